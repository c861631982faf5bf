#!/usr/bin/perl

# sandbox-gateway before it starts anything: options and where they come from,
# the generated configuration, the sentences about what is wrong, tokens.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use IO::Socket::INET;
use Test::More;

use lib dirname(abs_path($0)) . '/lib';
use SandboxGateway;

my $g = SandboxGateway->new;


# --- one sentence for each thing that is wrong, and nothing is started

my $closed = SandboxProcess::free_port();

my @wrong = (
    [ 2, qr/there is no option --prt/, '--prt', 1 ],
    [ 2, qr/there is no option --prt/, '--prt=1' ],
    [ 2, qr/"up" is not an option/, 'up' ],
    [ 2, qr/--port needs a value/, '--port' ],
    [ 2, qr/--port needs a value/, '--port=' ],
    [ 2, qr/--policy needs a value; one that begins with "--"/, '--policy', '--check' ],
    (map { [ 2, qr/policy check: --policy needs a value/, 'policy', 'check', '--policy', @$_ ] }
     [], [ '--operation', 'file.read' ]),
    [ 2, qr/token list: there is no option --role;/, 'token', 'list', '--role', 'admin' ],
    [ 2, qr/token add: --states-actors takes no value/, 'token', 'add', '--states-actors=no' ],
    [ 2, qr/token list: "x" is not expected here/, 'token', 'list', 'x' ],
    [ 2, qr/link: there is no option --rol;/, 'link', '--rol=x' ],
    [ 2, qr/link: --role needs a value/, 'link', '--role', '--url=x' ],
    [ 2, qr/"80x" is not a port number/, '--port', '80x' ],
    [ 2, qr/"0" is not a port number/, '--port', 0 ],
    [ 2, qr/"65536" is not a port number/, '--port', 65536 ],
    [ 2, qr/"-1" is neither auto nor/, '--workers', -1 ],
    [ 2, qr/"257" is neither auto nor a number from 1 to 256/, '--workers', 257 ],
    [ 2, qr/--sync: "often" is neither normal nor full/, '--sync', 'often' ],
    [ 2, qr/--lag: "0" is not a number from 1 to 3600/, '--lag', 0 ],
    [ 2, qr/--lag: "3601" is not a number from 1 to 3600/, '--lag', 3601 ],
    [ 2, qr/--lag: "5s" is not a number from 1 to 3600/, '--lag', '5s' ],
    [ 2, qr/--locks: "0" is not a number from 1 to 16777216/, '--locks', 0 ],
    [ 2, qr/--leases: "x" is not a number from 1 to 16777216/, '--leases', 'x' ],
    [ 2, qr/--questions: "65537" is not a number from 1 to 65536/, '--questions', 65537 ],
    [ 2, qr/--live: "-1" is not a number from 1 to 65536/, '--live', -1 ],
    (map { [ 2, qr/--spool-limit: "\Q$_\E" is not a size of at least 1m/, '--spool-limit', $_ ] }
     '512k', '1024', 'x', '4t', '4gb', '99999999999g', '-1m'),
    [ 2, qr/--inspect-memory: "65535k" is not a size of at least 64m/, '--inspect-memory',
      '65535k' ],
    [ 2, qr/--inspect-seconds: "0" is not a number from 1 to 3600/, '--inspect-seconds', 0 ],
    [ 2, qr/--inspections: "65" is not a number from 1 to 64/, '--inspections', 65 ],
    # by the helper, before anything is made
    (map { my ($name, $value, $want) = @$_;
           my $wrong = qr/--$name "\Q$value\E": $want/;
           [ 2, $wrong, "--$name", $value ], [ 2, $wrong, '--check', "--$name=$value" ] }
     [ 'history-ttl', 'soon', qr/give a time/ ], [ 'history-keep', '5x', qr/give a time/ ],
     [ 'history-size', '1k', qr/give a size/ ], [ 'history-total', '0', qr/give a size/ ],
     [ 'history-overflow', 'wait', qr/it is delete_oldest/ ],
     [ 'history-on-delete', 'burn', qr/it is keep/ ],
     [ 'contents', '1g', qr/give bytes/ ], [ 'fetches', '257', qr/give a number/ ]),
    [ 2, qr/--archives: "1025" is not a number from 1 to 1024/, '--archives', 1025 ],
    [ 2, qr/--limits: "commands=1; x" has a character/, '--limits', 'commands=1; x' ],
    [ 2, qr/--rate: "\$x" has a character/, '--rate', '$x' ],
    [ 2, qr/--lock-timeout: "1s}" has a character/, '--lock-timeout', '1s}' ],
    [ 2, qr/insecure is a switch: "maybe"/, '--insecure=maybe' ],
    [ 2, qr/is not an address/, '--listen', 'example.com' ],
    [ 2, qr/is not an address/, '--listen', '127.0.0.300' ],
    (map { [ 2, qr/different ports/, '--listen', '127.0.0.1:81', '--port', $_ ] } 82, 8080),
    [ 2, qr/not a loopback address: give --tls-cert/, '--listen', '0.0.0.0' ],
    [ 2, qr/not a loopback address: give --tls-cert/, '--listen', '[::]' ],
    [ 2, qr/is ADDRESS:PORT or off/, '--port-listen', '127.0.0.1' ],
    [ 2, qr/--port-listen: "x" is not an address/, '--port-listen', 'x:1' ],
    [ 2, qr/must not share the console's/, '--port-listen', '127.0.0.1:8080' ],
    [ 2, qr/--port-listen: 0\.0\.0\.0 is not a loopback address/,
      '--port-listen', '0.0.0.0:81', '--port-host', '*.x.example' ],
    [ 2, qr/name what browsers call it/, '--port-listen', '0.0.0.0:81',
      '--insecure' ],
    [ 2, qr/"x\.example" is not \*\.NAME/, '--port-host', 'x.example' ],
    [ 2, qr/--port-listen is off/, '--port-listen', 'off', '--port-host',
      '*.x.example' ],
    [ 2, qr/--port-host needs --port-listen/, '--listen', '0.0.0.0',
      '--insecure', '--port-host', '*.x.example' ],
    [ 2, qr/--tls-key is missing/, '--tls-cert', '/x' ],
    [ 2, qr/--tls-cert is missing/, '--tls-key', '/x' ],
    [ 1, qr/--tls-cert: \/nowhere\/c cannot be read/, '--tls-cert',
      '/nowhere/c', '--tls-key', '/nowhere/k' ],
    [ 2, qr/does not begin with http/, '--upstream', '127.0.0.1:80' ],
    [ 2, qr/has a path/, '--upstream', 'http://127.0.0.1/x' ],
    [ 2, qr/no valid port/, '--upstream', 'http://127.0.0.1:99999' ],
    [ 2, qr/user name/, '--upstream', 'http://a:b@127.0.0.1' ],
    [ 2, qr/own address/, '--port', 8091, '--upstream',
      'http://localhost:8091' ],
    [ 1, qr/upstream http:\/\/127\.0\.0\.1:$closed is unreachable/,
      '--upstream', "http://127.0.0.1:$closed" ],
    [ 2, qr/without http/, '--public', 'https://h' ],
    [ 2, qr/is not HOST/, '--public', 'h/' ],
    [ 2, qr/is not a host name/, '--host', 'a b;c' ],
    [ 2, qr/is not a host name/, '--host', 'a:80' ],
    [ 2, qr/no --upstream that it is for/, '--api-key-file', '/x' ],
    [ 2, qr/for the local runtime/, '--unconfined', '--upstream',
      'http://127.0.0.1:1' ],
    [ 2, qr/must not hold quotes/, '--data', '/tmp/a"b' ],
    [ 2, qr/must not hold quotes/, '--data', '/tmp/$x' ],
    [ 1, qr/data directory \S+ (?:is not writable|cannot be made)/, '--check',
      '--data', '/dev/null/x' ],
    [ 1, qr/--config: \/nowhere cannot be read/, '--config', '/nowhere' ],
);

for (@wrong) {
    my ($code, $sentence, @args) = @$_;
    my ($rc, $out, $err) = $g->run(@args);

    ok($rc == $code && $err =~ /\Asandbox-gateway: [^\n]*$sentence[^\n]*\.\n\z/
       && $out eq '', "@args") or diag("exit $rc\n$out$err");
}


# --- flags, environment, .env, in this order

sub listens {
    my ($rc, $out, $err) = $g->run('--print-config', '--data',
                                   "$g->{dir}/never", @_);

    return $rc == 0 && $out =~ /listen\s+(\S+) default_server/
           ? $1 : "exit $rc: $err";
}

sub dotenv { SandboxTest::write_file("$g->{dir}/cwd/.env", join "\n", @_, '') }

sub ports {
    my ($rc, $out, $err) = $g->run('--print-config', '--data',
                                   "$g->{dir}/never", @_);

    return "exit $rc: $err" if $rc;

    my ($url) = $out =~ /sandbox_port_listen\s+"(\S+)"/ or return 'none';
    my ($listen) = $out =~ /listen\s+(\S+:\d+)(?! default)\b[^\n]*;\n
                            (?:(?!listen).)*sandbox_port_listen/sx;
    my ($host) = $out =~ /sandbox_port_host\s+(\S+);/;

    return join ' ', grep { defined } $listen, $url, $host;
}

is(ports(), '127.0.0.1:8081 http://127.0.0.1:8081', 'user ports by default');
is(ports('--listen', '[::1]:90'), '[::1]:91 http://[::1]:91', 'beside the console');
is(ports('--port-listen', '127.0.0.2:99'), '127.0.0.2:99 http://127.0.0.2:99',
   'where they are told to be');
is(ports('--port-listen', 'off'), 'none', 'nowhere');
is(ports('--listen', '0.0.0.0', '--insecure'), 'none',
   'beyond loopback not by themselves');
is(ports('--listen', '0.0.0.0', '--insecure', '--port-listen', '0.0.0.0:81',
         '--port-host', '*.x.example'),
   '0.0.0.0:81 http://0.0.0.0:81 "*.x.example"', 'by names');
is(ports('--listen', '0.0.0.0', '--host', 'gw.example', '--port-listen',
         '0.0.0.0:81', '--tls-cert', '/c', '--tls-key', '/k'),
   '0.0.0.0:81 https://gw.example:81', 'by one name, with TLS');

is(listens(), '127.0.0.1:8080', 'loopback and 8080 by default');
is(listens('--listen', 'localhost', '--port=81'), '127.0.0.1:81', 'flags');
is(listens('--listen', '[::1]:82'), '[::1]:82', 'IPv6 with its port');
is(listens('--listen', '::1'), '[::1]:8080', 'IPv6 bare');
is(listens('--listen', '*', '--insecure'), '0.0.0.0:8080', 'on demand');

dotenv('# a comment', 'OTHER=1', 'SANDBOX_GATEWAY_PORT=83');
is(listens(), '127.0.0.1:83', '.env');

$g->{env} = { SANDBOX_GATEWAY_PORT => 84 };
is(listens(), '127.0.0.1:84', 'the environment goes before .env');
is(listens('--port', 85), '127.0.0.1:85', 'a flag goes before both');

$g->{env} = { SANDBOX_GATEWAY_PORT => '' };
is(listens(), '127.0.0.1:83', 'an empty variable is none');

$g->{env} = { SANDBOX_GATEWAY_PORT => 'tcp://10.0.0.1:80',
              SANDBOX_GATEWAY_SERVICE_HOST => '10.0.0.1',
              SANDBOX_GATEWAY_PORT_80_TCP => 'tcp://10.0.0.1:80' };
is(listens(), '127.0.0.1:83', 'what Kubernetes puts there is left alone');

$g->{env} = { SANDBOX_GATEWAY_PORT_LISTEN => '127.0.0.2:97',
              SANDBOX_GATEWAY_PORT_HOST => '*.x.example' };
is(ports(), '127.0.0.2:97 http://127.0.0.2:97 "*.x.example"',
   'options of ours that are called much the same are not');

# bounds: what is not said is as the module and the helper have it

sub bounds {
    my ($rc, $out, $err) = $g->run('--print-config', '--data', "$g->{dir}/never", @_);

    return $rc ? "exit $rc: $err" : join ' ', map { s/\s+/ /gr }
           $out =~ /^\s*(sandbox_(?:limits|lock_timeout|rate|spool_limit|archives|api_questions
                                   |live_limit)\s+[^;]*;)/mgx;
}

$g->{env} = {};
is(bounds(), 'sandbox_limits on; sandbox_archives 256;', 'bounds by default');
is(bounds('--limits', 'commands=1 queue=0', '--lock-timeout', '3s', '--rate', '20r/s burst=9',
          '--spool-limit', '512m', '--archives', 9, '--questions', 7, '--live', 8),
   'sandbox_limits commands=1 queue=0; sandbox_lock_timeout 3s; sandbox_rate 20r/s burst=9;'
   . ' sandbox_spool_limit 512m; sandbox_archives 9; sandbox_api_questions 7;'
   . ' sandbox_live_limit 8;',
   'bounds that are given');
is(bounds('--limits', 'off', '--rate', 'off'),
   'sandbox_limits off; sandbox_rate off; sandbox_archives 256;', 'or off');
$g->{env} = { SANDBOX_GATEWAY_SPOOL_LIMIT => '1G' };
is(bounds(), 'sandbox_limits on; sandbox_spool_limit 1G; sandbox_archives 256;',
   'from the environment');

# C145: a misspelt option is no silent default

$g->{env} = { SANDBOX_GATEWAY_PROT => 1 };
like(listens(), qr/exit 2: .*SANDBOX_GATEWAY_PROT, which is no setting/,
     'C145 a misspelt variable is refused');

$g->{env} = {};
dotenv('SANDBOX_GATEWAY_PROT=1');
like(listens(), qr/exit 2: .*\.env line 1: SANDBOX_GATEWAY_PROT is no setting/,
     'C145 a misspelt name in .env is refused');

dotenv('SANDBOX_GATEWAY_PORT=x');
like(listens(), qr/\.env line 1: port: "x" is not/, 'its line is named');

dotenv(q(export SANDBOX_GATEWAY_LISTEN = "127.0.0.2"   # here),
       q(SANDBOX_GATEWAY_PORT='86'), 'SANDBOX_GATEWAY_INSECURE=off # no');
is(listens(), '127.0.0.2:86', 'export, quotes, spaces and comments in .env');

dotenv('SANDBOX_GATEWAY_HOST=a.example,b.example');
my ($rc, $out, $err) = $g->run('--print-config');
like($out, qr/sandbox_host\s+a\.example b\.example;/, 'a list');

unlink "$g->{dir}/cwd/.env";


# --- the generated configuration

ok(!-e "$g->{dir}/never", '--print-config makes nothing');

($rc, $out, $err) = $g->run('--print-config', '--data', "$g->{dir}/never");

like($out, qr/\Q$_\E/, "it has $_")
    for 'proxy_next_upstream      off;', 'client_max_body_size     0;',
        'proxy_buffering          off;', 'proxy_read_timeout       1h;',
        'merge_slashes                off;', 'keepalive_timeout   25s;',
        'access_log  off;', 'proxy_http_version  1.1;';

unlike($out, qr/\@\w+\@/, 'no place is left unfilled');
like($out, qr/proxy_ignore_headers\s+X-Accel-Redirect/, 'X-Accel-* is ignored');

for my $name (qw(For Proto Host)) {
    my @set = $out =~ /^\s*proxy_set_header\s+X-Forwarded-$name\s/mg;
    is(scalar @set, 1, "C006 X-Forwarded-$name is set once");
}

# C012: nothing a client says becomes an internal address

unlike($out, qr/error_page|rewrite/, 'C012 no internal redirect');

# The console's page is looked for by names that stand in the configuration.
my ($pages) = $out =~ /map\s+\$request_uri\s+\$console_page\s*\{(.*?)^\s*\}/ms;
my @pages = ($pages // '') =~ /(\S+);$/mg;
is(scalar(grep { /^index(?:-\d)?\.html$/ } @pages), 4, 'C012 fixed names');
is(scalar @pages, 4, 'C012 and no others');
is_deeply([ $out =~ /try_files\s+([^;]*);/g ], [ '/$console_page  =404' ],
          'C012 only these are tried, and then nothing else');

($rc, $out, $err) = $g->run('--print-config', '--listen', '0.0.0.0',
    '--tls-cert', '/c.pem', '--tls-key', '/k.pem', '--workers', 256,
    '--public', 'h.example:444/p', '--upstream', 'https://up.example:8443');

like($out, qr/listen\s+0\.0\.0\.0:8080 default_server ssl/, 'TLS');
like($out, qr/ssl_certificate_key\s+"\/k\.pem";/, 'its key');
like($out, qr/ssl_protocols\s+TLSv1\.2 TLSv1\.3;/, 'its settings');
like($out, qr/worker_processes\s+256;/, 'workers, up to the bound');
like($out, qr/sandbox_public\s+"h\.example:444\/p";/, 'public');
like($out, qr/sandbox_host\s+h\.example;/, 'whose host is accepted');
like($out, qr/sandbox_upstream\s+"https:\/\/up\.example:8443";/, 'upstream');
like($out, qr/proxy_pass\s+https:\/\/opensandbox\$sandbox_upstream_uri;/,
     'to which TLS is spoken');
like($out, qr/proxy_ssl_verify\s+on;/, 'and verified');

my $dir = abs_path($g->{dir});
($rc, $out, $err) = $g->run('--print-config', '--data', './/../never',
    '--tls-cert', 'c.pem', '--tls-key', '../k.pem');
like($out, qr/ssl_certificate\s+"\Q$dir\E\/cwd\/c\.pem";/,
     'paths are those of the working directory');
like($out, qr/ssl_certificate_key\s+"\Q$dir\E\/k\.pem";/, 'all of them');
like($out, qr/sandbox_tokens\s+"\Q$dir\E\/never\/tokens";/, 'without detours');

($rc, $out, $err) = $g->run('--check', '--data', "$g->{dir}/never");
ok($rc == 0 && $out =~ /fine/, 'nginx takes it') or diag($out, $err);
ok(!-e "$g->{dir}/never", '--check leaves nothing behind');

SandboxTest::write_file("$g->{dir}/bad.pem", "x\n");
($rc, $out, $err) = $g->run('--check', '--data', "$g->{dir}/never",
    '--tls-cert', "$g->{dir}/bad.pem", '--tls-key', "$g->{dir}/bad.pem");
ok($rc == 1 && $err =~ /\Asandbox-gateway: nginx refuses the configuration: cannot load certificate[^\n]*\n\z/,
   'a bad certificate is one sentence') or diag($err);

SandboxTest::write_file("$g->{dir}/empty", "\n");
($rc, $out, $err) = $g->run('--check', '--upstream', "http://127.0.0.1:$closed",
                            '--api-key-file', "$g->{dir}/empty");
ok($rc == 1 && $err =~ /the API key in \S+empty is empty\.\n\z/,
   'C145 an empty key file is refused') or diag($err);


# --- tokens

my $file = "$g->{dir}/tokens";

($rc, $out, $err) = $g->run(qw(token add --actor ci --type agent --tokens),
                            $file);
like($out, qr/\Asbx_[a-z0-9]{1,32}_[\w-]{43}\n\z/, 'a token');
chomp(my $token = $out);

is((stat $file)[2] & 0777, 0600, 'its file is for the owner alone');

my $secret = (split /_/, $token, 3)[2];
unlike(SandboxTest::read_file($file), qr/\Q$secret\E/, 'and holds no secret');

($rc, $out, $err) = $g->run(qw(token add --name boss --role=admin
    --states-actors --expires 2d --sandboxes), 'b-*,s1', '--tokens', $file);
like($out, qr/\Asbx_boss_/, 'a token with a chosen id');

($rc, $out, $err) = $g->run(qw(token list --tokens), $file);
like($out, qr/^\w+ +operator +ci +agent +no +never +all$/m, 'listed');
like($out, qr/^boss +admin +- +- +yes +20\d\d-\S+Z +b-\*,s1$/m, 'listed');

chmod 0640, $file;
($rc, $out, $err) = $g->run(qw(token revoke boss --tokens), $file);
is($rc, 0, 'revoked');
is((stat $file)[2] & 0777, 0640, 'the mode of the file stays');
unlike(SandboxTest::read_file($file), qr/^boss/m, 'it is gone');

for ([ qr/holds no token boss/, 1, qw(revoke boss) ],
     [ qr/name the ID/, 2, 'revoke' ],
     [ qr/--role is viewer/, 2, qw(add --role root) ],
     [ qr/--expires is a span/, 2, qw(add --expires soon) ],
     [ qr/--name is 1 to 32/, 2, qw(add --name A) ],
     [ qr/--sandboxes is at most/, 2, qw(add --sandboxes a/b) ],
     [ qr/--actor is at most/, 2, 'add', '--actor', 'a b' ],
     [ qr/no option --rol/, 2, qw(add --rol=x) ])
{
    my ($sentence, $code, @args) = @$_;
    my $before = SandboxTest::read_file($file);

    ($rc, $out, $err) = $g->run('token', @args, '--tokens', $file);

    ok($rc == $code && $err =~ $sentence && $out eq ''
       && SandboxTest::read_file($file) eq $before, "token @args")
        or diag("exit $rc\n$out$err");
}

unlink $file;
($rc, $out, $err) = $g->run(qw(token revoke boss --tokens), $file);
ok($rc == 1 && $err =~ /--data/ && !-e $file, 'where there are no tokens, revoking makes no file')
    or diag("exit $rc\n$out$err");

SandboxTest::write_file($file, "# ours\nnonsense\n");
($rc, $out, $err) = $g->run(qw(token add --tokens), $file);
like($err, qr/line 2: /, 'a broken file is not written to');


# --- words about itself

($rc, $out, $err) = $g->run('--version');
like($out, qr/\Asandbox-gateway \d+\.\d+\.\d+\nnginx \d+\.\d+\.\d+ /, 'versions');

($rc, $out, $err) = $g->run('--help');

for ([ 'token add', qw(name role actor type states-actors sandboxes expires data tokens) ],
     [ 'token list', qw(data tokens) ], [ 'token revoke', qw(data tokens) ],
     [ 'link', qw(data tokens role url) ],
     [ 'policy check', qw(policy operation path archive-depth) ])
{
    my ($command, @options) = @$_;

    for my $help ([ '--help' ], [ '--data', 'x', '-h' ]) {
        next if $command =~ /policy/ && @$help > 1;
        my ($rc, $out, $err) = $g->run(split(/ /, $command), @$help);
        my %has = map { $_ => 1 } $out =~ /^  --([a-z-]+)/mg;
        ok($rc == 0 && $err eq '' && $out =~ /\Asandbox-gateway $command \[OPTION\]/
           && !grep({ !$has{$_} } @options), "$command @$help") or diag("exit $rc\n$out$err");
    }
}

my @named = SandboxTest::read_file("$SandboxProcess::ROOT/standalone/options_table.c")
    =~ /^    \{ "([a-z-]+)", GW_[A-Z]+, GW_FLAG\b/mg;
cmp_ok(scalar @named, '>', 30, 'the options are found');
is_deeply([ sort $out =~ /^  --([a-z-]+)/mg ], [ sort @named ], '--help knows all of them');

done_testing;
