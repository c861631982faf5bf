#!/usr/bin/perl

# sandbox-gateway at work: what it starts, as whom and where, how it goes on when
# a part dies, and how it ends.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use POSIX ();
use Socket qw(inet_aton pack_sockaddr_in AF_INET SOCK_NONBLOCK SOCK_STREAM);
use Test::More;
use Time::HiRes qw(time sleep);

use lib dirname(abs_path($0)) . '/lib';
use FakeUpstream;
use RunProgram qw(run_program);
use ArchiveMaker qw(zip);
use SandboxGateway;
use SandboxHistory;

my $root = $> == 0;
my $key = 'upstream-key-' . SandboxTest::random_text(24);
my $tmp = File::Temp->newdir('sandbox-g-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $up = FakeUpstream->new(dir => "$tmp/upstream", api_key => $key)->start;

SandboxTest::write_file("$tmp/key", "$key\n");

my @upstream = ('--upstream', $up->url, '--api-key-file', "$tmp/key");


# --- a data directory that its owner alone may enter

my @limits = ('--history-ttl', '3d', '--history-size', '64m', '--history-total',
              '2g', '--history-keep', '5m', '--history-overflow',
              'stop_recording', '--history-on-delete', 'archive', '--contents',
              '2000000', '--fetches', 3, '--inspections', 5,
              '--inspect-seconds', 7, '--inspect-memory', '96m', '--sync', 'full', '--lag', 9,
              '--locks', 5000, '--leases', 50, '--questions', 99, '--live', 77, '--history-hold', 's-1',
              '--history-hold', 's-2,s-3');
my @bounds = ('--limits', 'commands=3', '--rate', '1000r/s', '--lock-timeout', '9s',
              '--spool-limit', '64m');
my $g = SandboxGateway->new(mode => 0700, args => [ @upstream, @limits, @bounds ]);
SandboxTest::write_file($g->data . '/tokens', '');      # as good as none
$g->start;

is(join(' ', map { /^(\w+:)/ } $g->lines),
   'Console: Token: Upstream: History:', 'four lines');
is($g->line('Console'), 'http://127.0.0.1:' . $g->port . '/console/', 'console');
like($g->line('Token'), qr/^sbx_[a-z0-9]+_[\w-]{43}$/, 'token');
is($g->line('Upstream'), $up->url, 'upstream');
is($g->line('History'), $g->data . '/history', 'history');
unlike($g->errors, qr/\[(?!info)\w+\]|^sandbox-gateway:/m, 'no warning');

my $mode = (stat $g->data)[2] & 07777;
ok(!($mode & 0007), sprintf 'nobody else may enter it (%04o)', $mode);

my $r = $g->get('/v1/sandboxes', headers => ['X-Actor-Id: tester']);
is($r->status, 200, 'a request with the token');
like($r->header('X-Operation-Id') // '', qr/^[0-9a-f-]{36}$/, 'its record');
is($g->get('/v1/sandboxes', token => undef)->status, 401, 'none without');
is($g->get('/v1/sandboxes', host => 'evil.example')->status, 421,
   'none for another Host');

my ($sent) = $up->requests(qr{^GET /v1/sandboxes});
my %sent = map { lc $_->[0] => $_->[1] } @{ $sent->{headers} };
is($sent{'open-sandbox-api-key'}, $key, "upstream's key goes up");

# C006: exactly one of each, the append rule for X-Forwarded-For

$g->get('/v1/sandboxes?c006', headers => ['x-forwarded-proto: https',
                                          'X-Forwarded-For: 192.0.2.1']);
($sent) = $up->requests(qr{c006});
my %of;
push @{ $of{ lc $_->[0] } }, $_->[1] for @{ $sent->{headers} };
is_deeply([ @of{qw(x-forwarded-proto x-forwarded-for x-forwarded-host)} ],
          [ ['http'], ['192.0.2.1, 127.0.0.1'], ['127.0.0.1:' . $g->port] ],
          'C006 one of each');

# policy.default looks into archives, so that what does that is always there

$up->sandbox('s9');

for ([ 200, undef, 'an honest archive', zip([ { name => 'a', data => 1 } ]) ],
     [ 403, 'unsafe-archive', 'one that climbs', zip([ { name => '../a', data => 1 } ]) ])
{
    my ($status, $rule, $what, $data) = @$_;

    my $upload = $g->request(POST => '/v1/sandboxes/s9/proxy/44772/files/upload',
        headers => [ 'Content-Type: multipart/form-data; boundary=B' ],
        body => SandboxTest::upload_body('/workspace/a.zip', $data));
    is($upload->status, $status, $what) or diag($upload->content);
    is($upload->json->{details}{rule}, $rule, 'by its rule') if $rule;
}

# tokens made by the console

my $minted = $g->request(POST => '/console/api/v1/tokens', body => '{"role":"viewer"}');
is($minted->status, 201, 'the helper may write the tokens') or diag($minted->content);
$minted = $minted->json;
is($g->get('/console/api/v1/overview', token => $minted->{token})->status, 200,
   'one that it has written counts');
is(system("$SandboxProcess::BUILD/sandbox-gateway token revoke --data "
          . $g->data . " $minted->{id} 2>/dev/null"), 0,
   'sandbox-gateway token revokes it');
ok(SandboxProcess->wait_for(sub {
    $g->get('/console/api/v1/overview', token => $minted->{token})->status == 401;
}), 'at once, too');
is($g->request(POST => '/console/api/v1/tokens', body => '{}')->status, 201,
   'the file that it has written is still the helper\'s');

# user ports

my $opened = $g->request(POST => '/console/api/v1/sandboxes/s1/ports/8080');
my ($name, $listener, $ticket) = ($opened->json->{url} // '')
    =~ m{^http://(\w+\.localhost):(\d+)(/\?\S+)$} or diag($opened->content);
isnt($listener, $g->port, 'user ports have a listener of their own');
my $c = SandboxHttp->connect(port => $listener, host_header => "$name:$listener");
is($c->request(GET => $ticket)->status, 303, 'which takes a ticket');

my $history = SandboxHistory->new(dir => $g->line('History'));
my ($event) = SandboxProcess->wait_for(sub {
    my @e = grep { $_->{event_id} eq $r->header('X-Operation-Id') }
            $history->events('_gateway');
    return $e[0];
});
is($event && $event->{operation_type}, 'sandbox.list', 'on record');
is($event && $event->{actor_id}, 'tester', 'with its actor');


# --- the page

$r = $g->get('/console/', token => undef);
is($r->status, 200, 'the page needs no token');
like($r->content, qr/<title>sandbox-gateway/, 'it is there');
is($r->header('Content-Security-Policy'),
   "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
   . "worker-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'self'; object-src 'none'",
   'C129 no inline script, nothing from elsewhere');
is($r->header('Cache-Control'), 'no-cache', 'it is asked for each time');
unlike($r->content, qr/<script(?![^>]*src=)|\son\w+=|style=/, 'nor needs one');
unlike($r->content, qr/(?:src|href)="\//, 'C133 no address from the root');

my ($script) = $r->content =~ /<script[^>]* src="([^"]+)"/;
my ($style) = $r->content =~ /<link rel="stylesheet"[^>]* href="([^"]+)"/;

for my $file ($script, $style) {
    $r = $g->get("/console/$file", token => undef, headers => ['Accept-Encoding: gzip']);
    is($r->status, 200, "$file is there");
    is($r->header('Content-Encoding'), 'gzip', '... compressed');
    like($r->header('Cache-Control'), qr/immutable/, '... for good');
    like($r->header('Vary'), qr/Accept-Encoding/, '... or not, as asked for');
    is($g->get("/console/$file", token => undef)->header('Content-Encoding'), undef, '... as it is');
}

is($g->get("/console/$_", token => undef)->status, 200, $_) for qw(icon.svg THIRD-PARTY.txt);
is($g->get('/console/assets/none.js', token => undef)->status, 404, 'what is not there is not');

# from each address the page finds the mount, whatever stands in front of it

for (['/console/?x=/', './'], ['/console/sandboxes', './'], ['/console/sandboxes?q=a/b', './'],
     ['/console/sandboxes/', '../'], ['/console/runs/a%2Fb', '../'],
     ['/console/sandboxes/s1/files?path=/a/b', '../../'])
{
    like($g->get($_->[0], token => undef)->content, qr/<base href="\Q$_->[1]\E">/, "C133 $_->[0]");
}

for (['/', 'console/'], ['/console', 'console/'],
     ['/console?x=/', 'console/?x=/'])
{
    $r = $g->get($_->[0], token => undef);
    is($r->header('Location'), $_->[1], "C134 $_->[0]");
}

is($g->get('//evil.example/', token => undef)->status, 401,
   'C134 no redirect to another host');


# --- who runs as whom

my %child = $g->children;
my %user;

like(join(' ', split /\0/, SandboxTest::read_file("/proc/$child{'sandbox-helper'}/cmdline")),
     qr/ \Q@{[ join(' ', @limits) =~ s{s-2,s-3}{s-2 --history-hold s-3}r ]}\E( |$)/, 'the helper is told the limits of the history');

for my $name (qw(nginx sandbox-helper)) {
    my ($uid) = SandboxTest::read_file("/proc/$child{$name}/status")
                =~ /^Uid:\s+(\d+)/m;
    $user{$name} = $uid;
}

# tokens were made and revoked: a reload may go on, and one that has just begun is
# no worker before it has its title

my $worker = SandboxProcess->wait_for(sub {
    my ($pid) = grep {
        my ($parent) = SandboxTest::read_file("/proc/$_/stat")
                       =~ /^\d+ \(.*\) \S (\d+) /s;
        ($parent // 0) == $child{nginx}
            && SandboxTest::read_file("/proc/$_/cmdline") =~ /worker process(?! is)/;
    } map { m{/(\d+)/} } glob '/proc/[0-9]*/stat';
    return $pid;
});
my ($worker_uid) = SandboxTest::read_file("/proc/$worker/status")
                   =~ /^Uid:\s+(\d+)/m;

SKIP: {
    skip 'users are changed by root only', 4 if !$root;

    isnt($worker_uid, 0, 'workers are not root');
    isnt($user{'sandbox-helper'}, 0, 'the helper is not root');
    isnt($user{'sandbox-helper'}, $worker_uid, 'nor what the workers are');

    my $pid = fork // die;

    if ($pid == 0) {
        $) = "$worker_uid $worker_uid";
        ($<, $>) = ($worker_uid, $worker_uid);
        my @open = grep { -r || -w || -x } map { $g->data . "/$_" }
                   qw(history history/_gateway journal keys tokens nginx);
        POSIX::_exit(scalar @open);
    }

    waitpid $pid, 0;
    is($? >> 8, 0, 'workers cannot get at history, journal, keys and tokens');
}


# --- one data directory, one gateway; one port, one listener

my $other = SandboxGateway->new(data => $g->data);
my ($rc, $out, $err) = $other->run($other->arguments, @upstream);
ok($rc == 1 && $err =~ /\A[^\n]*another sandbox-gateway \(process $g->{pid}\) uses[^\n]*\n\z/,
   'a second one on the same data') or diag($err);

$other = SandboxGateway->new(port => $g->port);
($rc, $out, $err) = $other->run($other->arguments, @upstream);
ok($rc == 1 && $err =~ /\A[^\n]*port \d+ on 127\.0\.0\.1 is taken[^\n]*\n\z/,
   'a second one on the same port') or diag($err);
ok(!-e $other->data . '/tokens', 'a token that nobody saw is none');


# --- a token added while it runs, a reload, a helper that dies

($rc, $out, $err) = $other->run(qw(token add --actor late --type agent --data),
                                $g->data);
chomp(my $late = $out);
like($err, qr/the running gateway reads it now/, 'that it counts is said');
ok(SandboxProcess->wait_for(sub {
    $g->get('/v1/sandboxes', token => $late)->status == 200;
}), 'a token counts without a restart');

# a key that another file brings, as secret stores do it

my $helper_asks = sub {
    my $with = shift;

    $g->get('/console/api/v1/sandboxes');
    my @asked = $up->requests(undef, helper => 1);
    return grep { $_->{head} =~ m{^User-Agent: ngx_sandbox_module/}m
                  && $_->{head} =~ /^OPEN-SANDBOX-API-KEY: \Q$with\E\r?$/mi } @asked;
};
ok(SandboxProcess->wait_for(sub { $helper_asks->($key) }), 'the helper asks with the key');
my $rotated = 'upstream-key-' . SandboxTest::random_text(16);
SandboxTest::write_file("$tmp/key", "$rotated\n");
$up->mark;
kill 'HUP', $g->pid;
ok(SandboxProcess->wait_for(sub { $helper_asks->($rotated) }),
   'after a reload with the one that has taken its place');
SandboxTest::write_file("$tmp/key", "$key\n");
$up->mark;
kill 'HUP', $g->pid;
ok(SandboxProcess->wait_for(sub { $helper_asks->($key) }), 'which may be longer');
ok(SandboxProcess->wait_for(sub { $g->get('/v1/sandboxes')->status == 200 }),
   'as nginx does');

kill 'KILL', $child{'sandbox-helper'};
ok(SandboxProcess->wait_for(sub {
    my %now = $g->children;
    return $now{'sandbox-helper'}
           && $now{'sandbox-helper'} != $child{'sandbox-helper'};
}), 'the helper is started again');
like($g->errors, qr/sandbox-helper was ended by signal 9 .*starting it again/,
     'and a line says so');

my $id = SandboxProcess->wait_for(sub {
    my $a = $g->get('/v1/sandboxes');
    return $a->status == 200 && $a->header('X-Operation-Id');
});
ok(SandboxProcess->wait_for(sub {
    grep { $_->{event_id} eq $id } $history->events('_gateway');
}), 'what comes then is on record');


# --- the end

is($g->stop, 0, 'TERM ends it with 0');
ok(!SandboxProcess::listens($g->port), 'nothing listens any more');
ok(!SandboxGateway::alive(values %child), 'nothing of it runs any more');
is(join("\n", $g->bad_lines), '', 'no alert');

my $first = $g->token;

$g->start;
unlike($g->line('Token'), qr/sbx_/, 'a second start prints no token');
like($g->line('Token'), qr/token add --data \S+ --role admin --states-actors$/,
     'but how to get another');
ok($g->{seconds} < 3 * $SandboxProcess::PATIENCE, sprintf 'it takes %.1f s', $g->{seconds});
is($g->get('/v1/sandboxes', token => $first)->status, 200, 'the first counts');


# --- killed, and started again

%child = $g->children;
kill 'KILL', $g->pid;
waitpid delete $g->{pid}, 0;

$g->start;
ok(!SandboxGateway::alive(values %child), 'what it left behind is ended');
is($g->get('/v1/sandboxes')->status, 200, 'and all goes on');


# --- a part that cannot go on

%child = $g->children;
kill 'KILL', $child{nginx};
ok(SandboxProcess::reaped($g->pid, 30), 'without nginx it ends');
is($? >> 8, 1, 'with status 1');
delete $g->{pid};
like($g->errors, qr/nginx was ended by signal 9/, 'and says so');
ok(!SandboxProcess::listens($g->port), 'and leaves no worker behind');


# --- no secret lies about

my @secrets = ($key, $rotated, map { (split /_/, $_, 3)[2] } $first, $late);
my $list = "$tmp/secrets";
SandboxTest::write_file($list, join '', map { "$_\n" } @secrets);

open my $fh, '-|', 'grep', '-rlaF', '-f', $list, $g->data, "$g->{dir}/err"
    or die "grep: $!\n";
chomp(my @found = <$fh>);
close $fh;
is("@found", '', 'no credential in any file');


# --- an upstream that wants another key

for ([ 1, qr/wants an API key \(401\): give it with --api-key-file/ ],
     [ 1, qr/refuses the API key \(401\)/, 'other' ],
     [ 0, qr/\A\z/, $key ])
{
    my ($code, $sentence, $try) = @$_;

    $other = SandboxGateway->new(env => { SANDBOX_GATEWAY_API_KEY => $try // '' });
    ($rc, $out, $err) = $other->run('--check', $other->arguments,
                                    '--upstream', $up->url);
    ok($rc == $code && $err =~ $sentence, 'a check of ' . ($try // 'no key')
       =~ s/\Q$key\E/the right key/r) or diag("exit $rc\n$err");
}


# --- an upstream's key from the environment

$g = SandboxGateway->new(args => ['--upstream', $up->url],
                         env => { SANDBOX_GATEWAY_API_KEY => $key })->start;
is($g->get('/v1/sandboxes')->status, 200, 'a key from the environment');
is((stat $g->data . '/nginx/upstream.key')[2] & 0777, 0600, 'is kept closely');
is($g->stop('INT'), 0, 'INT ends it too');


# --- TLS, on an address that needs it

my ($made, $said) = run_program(qw(openssl req -x509 -newkey rsa:2048 -nodes
    -days 2 -subj /CN=localhost -keyout), "$tmp/tls.key", '-out', "$tmp/tls.pem");
$made == 0 or die "openssl: $said\n";

$g = SandboxGateway->new(args => [ @upstream, '--listen', '0.0.0.0',
    '--tls-cert', "$tmp/tls.pem", '--tls-key', "$tmp/tls.key",
    '--host', 'gw.example' ])->start;
is($g->line('Console'), 'https://gw.example:' . $g->port . '/console/',
   'https, by its name');

my @curl = ('curl', '-s', '-o', '/dev/null', '-m', 10, '-w',
            '%{http_code} %{http_version}', '--noproxy', '*', '--cacert',
            "$tmp/tls.pem", '-H', 'OPEN-SANDBOX-API-KEY: ' . $g->token);

sub curl { open my $c, '-|', @curl, @_ or die "curl: $!\n"; return scalar <$c> }

is(curl('https://localhost:' . $g->port . '/v1/sandboxes'), '200 2', 'HTTP/2');
is(curl('--http1.1', 'https://localhost:' . $g->port . '/v1/sandboxes'),
   '200 1.1', 'HTTP/1.1');
is(curl('http://localhost:' . $g->port . '/v1/sandboxes'), '400 1.1',
   'nothing in clear');
is(curl('-k', '-H', 'Host: gw.example',
        'https://127.0.0.1:' . $g->port . '/v1/sandboxes'), '200 2',
   'for the name of --host');
is(curl('-k', '-H', 'Host: other.example',
        'https://127.0.0.1:' . $g->port . '/v1/sandboxes'), '421 2',
   'for no other');
is($g->stop, 0, 'and ends');
is(join("\n", $g->bad_lines), '', 'no alert');


# --- another configuration

my $own = SandboxGateway->new(args => \@upstream);
($rc, $out, $err) = $own->run('--print-config', $own->arguments);
SandboxTest::write_file("$own->{dir}/own.conf",
                        $out =~ s/(location = \/ \{)/location = \/own { return 204; }\n$1/r);
$own->{args} = [ @upstream, '--config', "$own->{dir}/own.conf" ];
($rc, $out, $err) = $own->run('--check', $own->arguments);
ok($rc == 1 && $err =~ /what the first start makes/, 'too early for a check')
    or diag($err);
$own->start;
is($own->get('/own')->status, 204, '--config runs that configuration');
is($own->get('/v1/sandboxes')->status, 200, 'with the helper');
is($own->stop, 0, 'and ends like the other');
($rc, $out, $err) = $own->run('--check', $own->arguments);
is("$rc$err", '0', 'now it can be checked');


# --- no upstream: the local runtime

my $local = SandboxGateway->new;
eval { $local->start; 1 } or do {
    $local->{args} = ['--unconfined'];
    $local->start;
};

like($local->line('Upstream'), qr{^http://127\.0\.0\.1:\d+$}, 'local runtime');
$r = $local->request(POST => '/v1/sandboxes',
    headers => ['Content-Type: application/json'],
    body => '{"image":{"uri":"debian"},"timeout":60,"resourceLimits":{},'
            . '"entrypoint":["tail","-f","/dev/null"]}');
is($r->status, 202, 'makes a sandbox') or diag($r->content);

my ($port) = $local->line('Upstream') =~ /(\d+)$/;
is(SandboxHttp->connect(port => $port)->request(GET => '/v1/sandboxes')->status,
   401, 'nobody goes past the gateway');
is($local->stop, 0, 'and ends');
ok(!SandboxProcess::listens($port), 'with it');

($rc, $out, $err) = $local->run('--print-config', $local->arguments);
SandboxTest::write_file("$local->{dir}/own.conf", $out);
push @{ $local->{args} }, '--config', "$local->{dir}/own.conf";
$local->start;
is($local->get('/v1/sandboxes')->status, 200, 'also with --config');
is($local->stop, 0, 'and ends');

my $odd = SandboxGateway->new(args => [ @upstream, '--history-ttl', 'soon' ]);
my ($code, undef, $why) = $odd->run($odd->arguments);
is($code, 2, 'a limit that the helper cannot read');
like($why, qr/--history-ttl "soon": give a time such as 7d, or off/, 'is an error that says so');
ok(!-e $odd->data, 'before anything is made');


# --- an upstream of two addresses, at one of which nobody listens

my ($at) = $up->url =~ /:(\d+)$/;
SandboxTest::write_file("$tmp/hosts", "::1 two.test three.test\n127.0.0.1 two.test three.test localhost\n"
    . "127.0.0.2 three.test\n");
SandboxTest::write_file("$tmp/gateway", <<"END");
#!/bin/sh
exec unshare -m sh -c 'mount --bind $tmp/hosts /etc/hosts && exec "\$@"' sh $SandboxGateway::PROGRAM "\$@"
END
chmod 0755, "$tmp/gateway";

SKIP: {
    skip 'names are given to addresses by root only', 4
        if !$root || system("$tmp/gateway --version > /dev/null 2>&1") != 0;

    local $SandboxGateway::PROGRAM = "$tmp/gateway";
    my $two = SandboxGateway->new(args => [ '--upstream', "http://two.test:$at",
                                            '--api-key-file', "$tmp/key" ]);
    $two->start;
    like(SandboxTest::read_file($two->data . '/nginx/nginx.conf'),
         qr/upstream opensandbox \{\s+server  127\.0\.0\.1:$at;/, 'the one that answers is used');
    is(join(' ', map { $two->get('/v1/sandboxes')->status } 1 .. 4), '200 200 200 200',
       'each time');
    like($two->errors, qr/has 2 addresses, of which 1 can be used/, 'and a line says so');
    $two->stop;

    # one whose queue is full answers neither yes nor no

    socket my $slow, AF_INET, SOCK_STREAM, 0 or die "socket: $!";
    bind $slow, pack_sockaddr_in($at, inet_aton('127.0.0.2')) or die "bind: $!";
    listen $slow, 0 or die "listen: $!";

    my @waiting = map {
        socket my $c, AF_INET, SOCK_STREAM|SOCK_NONBLOCK, 0 or die "socket: $!";
        connect $c, getsockname $slow;
        $c;
    } 1 .. 4;

    my $three = SandboxGateway->new(args => [ '--upstream', "http://three.test:$at",
                                              '--api-key-file', "$tmp/key", '--check' ]);
    my (undef, undef, $said) = $three->run($three->arguments);
    like($said, qr/has 3 addresses, of which 2 can be used/, 'one that does not answer yet is used, too');
}

$up->stop;

done_testing;
