#!/usr/bin/perl

# Every directive of the module, from the module's own list: where it may stand,
# a bad form of it with a sentence that says why, and, where it may stand at
# several levels, that the inner one counts and else the outer.  A directive
# without a row below fails.

use strict;
use warnings;

use Cwd qw(abs_path);
use Digest::SHA qw(sha256_hex);
use File::Basename qw(dirname);
use FindBin;
use lib "$FindBin::Bin/lib";

use ArchiveMaker qw(zip);
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep);

my $root = dirname(dirname(abs_path($0)));

my @LEVELS = qw(http server location);


# --- the module's list, and the documentation's -------------------------------

my $source = SandboxTest::read_file(
    "$root/ngx_sandbox_module/ngx_http_sandbox_module.c");
my ($commands) = $source
    =~ /ngx_http_sandbox_commands\[\] = \{(.*?)ngx_null_command/s;
my %list;

while ($commands =~ /\{ ngx_string\("(\w+)"\),\s*([A-Z_0-9|]+),/g) {
    my ($name, $flags) = ($1, $2);
    my %at;
    $at{$_} = 1 for $flags =~ /SANDBOX_ANY/ ? @LEVELS : (
        $flags =~ /HTTP_MAIN_CONF/ ? 'http' : (),
        $flags =~ /HTTP_SRV_CONF/ ? 'server' : (),
        $flags =~ /HTTP_LOC_CONF/ ? 'location' : (),
        $flags =~ /HTTP_UPS_CONF/ ? 'upstream' : ());
    $list{$name} = { at => \%at, none => scalar $flags =~ /NOARGS/ };
}

cmp_ok(keys %list, '>', 30, 'the list is found');

my $docs = SandboxTest::read_file("$root/docs/directives.md");

for my $name (sort keys %list) {
    my ($context) = $docs =~ /^\| `$name(?: [^|]*(?:\\\|[^|]*)*)?` \|[^|]*\| ([^|]+) \|/m
        or do { fail("$name has a row in docs/directives.md"); next };
    is(join(' ', sort $context =~ /http|server|location|upstream/g),
       join(' ', sort keys %{ $list{$name}{at} }),
       "$name: the documented contexts are its own");
}


# --- what each of them is tested with -----------------------------------------

# good: a line that is accepted wherever it may stand
# bad: lines that are refused, and how that is said
# effect: the test that tells what it does; this one: by what is inherited, below
# exec: only a helper that nginx starts is told; its flag
# (inheritance: below, by name)

# upstream takes any key
my $t = SandboxTest->new(fake => { api_key => undef });
my $etc = $t->dir . '/etc';

SandboxTest::write_file("$etc/empty", '');
SandboxTest::write_file("$etc/words", "two words\n");
SandboxTest::write_file("$etc/policy", "default allow;\n");
SandboxTest::write_file("$etc/policy-$_",
    "deny level-$_ { command \"^level \"; } deny packed { archive unsafe; } default allow;\n")
    for 1 .. 3;
SandboxTest::write_file("$etc/no-tokens", "admin nothing\n");

my $VALUE = [ [ 'NAME $nothing_of_the_kind;', qr/unknown "nothing_of_the_kind"/ ] ];

my %row = (
    sandbox => { good => 'on', bad => [ [ 'NAME maybe;', qr/"on" or "off"/ ] ],
        effect => 'auth.t' },
    sandbox_helper => { skip_good => 1, bad => [
        [ 'NAME tcp:1;', qr/unix:.*exec:|duplicate/ ] ], effect => 'helper-exec.t' },
    sandbox_data => { skip_good => 1, exec => '--data', effect => 'helper-exec.t', bad => [] },
    sandbox_history => { good => 'provider', effect => 'sanity.t', bad => [
        [ 'NAME database;', qr/not built yet/ ], [ 'NAME x;', qr/"x" must be/ ],
        [ 'NAME none; NAME none;', qr/duplicate/ ] ] },
    sandbox_history_path => { good => '/tmp', exec => '--history', effect => 'helper-exec.t',
        bad => [] },
    sandbox_history_sync => { exec => '--sync', good => 'full', effect => 'helper-exec.t',
        bad => [ [ 'NAME often;', qr/must be normal or full/ ] ] },
    sandbox_history_lag => { exec => '--lag', good => '10s', effect => 'helper-exec.t', bad => [
        [ 'NAME 2h;', qr/must be 1s to 1h/ ] ] },
    sandbox_history_ttl => { exec => '--history-ttl', good => '30d', effect => 'retention.t', bad => [
        [ 'NAME 0;', qr/must be a time of at least 1s, or off/ ] ] },
    sandbox_history_size => { exec => '--history-size', good => '64m', effect => 'retention.t', bad => [
        [ 'NAME 64k;', qr/must be a size of at least 1m, or off/ ] ] },
    sandbox_history_total => { exec => '--history-total', good => '20g', effect => 'retention.t', bad => [
        [ 'NAME much;', qr/must be a size of at least 1m, or off/ ] ] },
    sandbox_history_keep => { exec => '--history-keep', good => 'off', effect => 'retention.t', bad => [
        [ 'NAME soon;', qr/must be a time of at least 1s, or off/ ] ] },
    sandbox_history_overflow => { exec => '--history-overflow', good => 'stop_recording', effect => 'retention.t',
        bad => [ [ 'NAME stop;', qr/must be delete_oldest, stop_recording or fail/ ] ] },
    sandbox_history_on_delete => { exec => '--history-on-delete', good => 'archive', effect => 'retention.t',
        bad => [ [ 'NAME x;', qr/must be keep, archive or delete/ ] ] },
    sandbox_history_hold => { exec => '--history-hold', good => 's1', effect => 'retention.t', bad => [
        [ 'NAME a b;', qr/invalid number of arguments/ ] ] },
    sandbox_follow => { exec => '--follow', good => '0', effect => 'helper-exec.t', bad => [
        [ 'NAME long;', qr/must be 0 to 365d/ ], [ 'NAME 366d;', qr/must be 0 to 365d/ ] ] },
    sandbox_helper_option => { exec => '--readers', good => 'readers 300',
        effect => 'helper-exec.t', bad => [
        [ 'NAME data /tmp;', qr/"data" must be locks, leases, questions/ ],
        [ 'NAME readers many;', qr/readers must be 16 to 16384/ ],
        [ 'NAME inspect-memory 512x;', qr/must be a size of at least 64M/ ],
        [ 'NAME readers 20; NAME readers 30;', qr/readers is given twice/ ] ] },
    sandbox_queue => { good => '2m', effect => 'abort.t', bad => [
        [ 'NAME 512k;', qr/at least 1m/ ], [ 'NAME x;', qr/invalid value/ ] ] },
    sandbox_spool_limit => { good => '2m', effect => 'spool.t', bad => [
        [ 'NAME 512k;', qr/at least 1m/ ], [ 'NAME x;', qr/invalid value/ ] ] },
    sandbox_api_questions => { good => '7', effect => 'console-api.t', bad => [
        [ 'NAME 0;', qr/must be 1 to 65536/ ],
        [ 'NAME 65537;', qr/must be 1 to 65536/ ],
        [ 'NAME x;', qr/invalid number/ ] ] },
    sandbox_live_limit => { good => '7', effect => 'live.t', bad => [
        [ 'NAME 0;', qr/must be 1 to 65536/ ],
        [ 'NAME 65537;', qr/must be 1 to 65536/ ],
        [ 'NAME x;', qr/invalid number/ ] ] },
    sandbox_console_api => { skip_good => 1, effect => 'console-api.t', bad => [
        [ 'sandbox on; NAME;', qr/exclude each other/ ],
        [ 'NAME; NAME;', qr/duplicate/ ] ] },
    sandbox_api_timeout => { good => '5s', effect => 'console-api.t', bad => [
        [ 'NAME soon;', qr/invalid value/ ] ] },
    sandbox_endpoint_zone => { good => '256k', effect => 'endpoints-zone.t', bad => [
        [ 'NAME 8k;', qr/too small/ ], [ 'NAME x;', qr/invalid value/ ] ] },
    sandbox_port_listen => { skip_good => 1, effect => 'ports.t', bad => [
        [ 'NAME nonsense;', qr/sandbox_port_listen/ ] ] },
    sandbox_port_host => { skip_good => 1, effect => 'ports.t', bad => [
        [ 'NAME a.example;', qr/sandbox_port_host/ ] ] },
    sandbox_port_lifetime => { good => '2h', effect => 'ports.t', bad => [
        [ 'NAME x;', qr/invalid value/ ] ] },
    sandbox_session_lifetime => { good => '2h', effect => 'session-zone.t', bad => [
        [ 'NAME x;', qr/invalid value/ ], [ 'NAME 30s;', qr/1m to 7d/ ],
        [ 'NAME 8d;', qr/1m to 7d/ ] ] },
    sandbox_session_zone => { good => '128k', effect => 'session-zone.t', bad => [
        [ 'NAME x;', qr/invalid value/ ], [ 'NAME 8k;', qr/too small/ ] ] },
    sandbox_port_zone => { good => '128k', effect => 'ports.t', bad => [
        [ 'NAME x;', qr/invalid value/ ] ] },
    sandbox_upstream => { skip_good => 1, effect => 'endpoints.t', bad => [
        [ 'NAME ftp://x;', qr/http/ ], [ 'NAME http://x/path;', qr/path/ ] ] },
    sandbox_upstream_host => { good => 'auto', effect => 'proxying.t', bad => [
        [ 'NAME x;', qr/invalid value "x"/ ] ] },
    sandbox_public => { good => 'a.example:8443/osb', effect => 'endpoints.t', bad => [
        [ 'NAME http://a.example;', qr/without a scheme/ ] ] },
    sandbox_host => { good => 'localhost a.example', effect => 'host.t',
        bad => [], least => 1 },
    sandbox_api_key_file => { skip_good => 1, effect => 'auth.t', bad => [
        [ "NAME $etc/empty;", qr/API key alone/ ],
        [ "NAME $etc/words;", qr/API key alone/ ],
        [ "NAME $etc/not-there;", qr/cannot be read/ ] ] },
    sandbox_tokens => { skip_good => 1, effect => 'auth.t', bad => [
        [ "NAME $etc/no-tokens;", qr/line 1 of/ ],
        [ "NAME $etc/not-there;", qr/cannot be read/ ] ] },
    sandbox_archives => { good => '7', effect => 'archive.t', bad => [
        [ 'NAME 0;', qr/must be between 1 and 1024/ ],
        [ 'NAME 1025;', qr/must be between 1 and 1024/ ],
        [ 'NAME x;', qr/invalid number/ ] ] },
    sandbox_archive_timeout => { good => '7s', effect => 'archive.t', bad => [
        [ 'NAME soon;', qr/invalid value/ ] ] },
    sandbox_policy => { good => "$etc/policy", effect => 'policy.t', bad => [
        [ "NAME $etc/words;", qr/sandbox_policy: \S+words:1:1: allow, deny/ ],
        [ "NAME $etc/not-there;", qr/cannot be read/ ],
        [ 'NAME off; NAME off;', qr/duplicate/ ] ] },
    sandbox_ingress => { good => 'off', effect => 'ingress.t', bad => [
        [ 'NAME nonsense;', qr/must be off, header, uri or host/ ] ] },
    sandbox_endpoints => { good => 'all', effect => 'endpoints.t', bad => [
        [ 'NAME maybe;', qr/invalid value "maybe"/ ] ] },
    sandbox_endpoint_allow => { good => '10.0.0.0/8 fd00::/8',
        effect => 'endpoints.t', bad => [ [ 'NAME here;', qr/no address range/ ] ] },
    sandbox_trusted_peer => { good => '10.0.0.0/8 ::1', effect => 'roles.t', bad => [
        [ 'NAME here;', qr/sandbox_trusted_peer: "here" is no address range/ ] ] },
    sandbox_record => { good => 'file.* best_effort', effect => 'record.t', bad => [
        [ 'NAME file.* sometimes;', qr/must be strict, best_effort or off/ ],
        [ 'NAME fiel.* off;', qr/matches no operation/ ] ] },
    sandbox_capture_limit => { good => '1m', effect => 'large.t', bad => [
        [ 'NAME much;', qr/invalid value/ ] ] },
    sandbox_record_input => { good => 'on', effect => 'directives.t', bad => [
        [ 'NAME maybe;', qr/invalid value "maybe"/ ] ] },
    sandbox_digest => { good => 'off', effect => 'digest.t', bad => [
        [ 'NAME maybe;', qr/"on" or "off"/ ] ] },
    sandbox_versions => { good => 'off', effect => 'versions-bounds.t', bad => [
        [ 'NAME maybe;', qr/invalid value "maybe"/ ] ] },
    sandbox_versions_limit => { exec => '--contents', good => '2m', effect => 'helper-exec.t', bad => [
        [ 'NAME 64k;', qr/at least 1m/ ], [ 'NAME x;', qr/at least 1m/ ] ] },
    sandbox_versions_fetches => { exec => '--fetches', good => '4', effect => 'helper-exec.t', bad => [
        [ 'NAME 0;', qr/must be 1 to 256/ ], [ 'NAME 257;', qr/must be 1 to 256/ ],
        [ 'NAME x;', qr/must be 1 to 256/ ] ] },
    sandbox_locks => { good => 'on', effect => 'locks.t', bad => [
        [ 'NAME maybe;', qr/"on" or "off"/ ] ] },
    sandbox_lock_timeout => { good => '5s', effect => 'directives.t', bad => [
        [ 'NAME x;', qr/invalid value/ ] ] },
    sandbox_limits => { good => 'commands=2 reads=off queue=0 timeout=1s',
        effect => 'limits.t', bad => [
        [ 'NAME many;', qr/"many" must be off, on/ ],
        [ 'NAME commands=0;', qr/must be off, on/ ],
        [ 'NAME timeout=6m;', qr/must be off, on/ ],
        [ 'NAME on; NAME off;', qr/duplicate/ ] ] },
    sandbox_rate => { good => '600r/m burst=10', effect => 'rate.t', bad => [
        [ 'NAME on;', qr/must be off, or a rate/ ],
        [ 'NAME 0r/s;', qr/must be off, or a rate/ ],
        [ 'NAME 5r/h;', qr/must be off, or a rate/ ],
        [ 'NAME 5r/s burst=-1;', qr/must be off, or a rate/ ],
        [ 'NAME 5r/s queue=1;', qr/must be off, or a rate/ ],
        [ 'NAME off; NAME 1r/s;', qr/duplicate/ ] ] },
    sandbox_rate_zone => { good => '64k', effect => 'rate.t', bad => [
        [ 'NAME x;', qr/invalid value/ ],
        [ 'NAME 16k; sandbox_rate 1r/s;', qr/too small/ ] ] },
    sandbox_body_limit => { good => '2m', effect => 'sanity.t', bad => [
        [ 'NAME -1;', qr/invalid value/ ] ] },
    sandbox_timeout => { good => '1s', effect => 'helper-down.t', bad => [
        [ 'NAME soon;', qr/invalid value/ ], [ 'NAME 0;', qr/must not be 0/ ] ] },
    sandbox_peer => { skip_good => 1, effect => 'endpoints.t', bad => [
        [ 'NAME; NAME;', qr/duplicate/ ] ] },
    map { $_ => { good => '$remote_user', bad => $VALUE, effect => 'directives.t' } }
        qw(sandbox_actor_type sandbox_actor_id sandbox_thread_id sandbox_run_id
           sandbox_correlation_id sandbox_parent_operation_id),
);

is_deeply([ sort keys %row ], [ sort keys %list ],
          'each directive has a row, and each row is of one');


# Is it in what a test runs, or in what the harness runs for it?  Comments run
# nothing.

sub names {
    my ($file, $name) = @_;

    for my $path ("$root/t/$file", "$root/t/lib/SandboxTest.pm") {
        -e $path or return 0;
        my $code = SandboxTest::read_file($path) =~ s{(?:^|[ \t]+)#.*}{}gmr;
        return 1 if $code =~ /\b$name\b/;
    }

    return 0;
}

ok(names('sanity.t', 'sandbox_history'), 'a test that names a directive is found');
ok(!names('sanity.t', 'sandbox_versions_fetches'), 'one that does not is not');


# --- accepted and refused -----------------------------------------------------

sub check { $t->check_conf(conf => undef, @_) }


my ($ok, $out) = check();
ok($ok, 'the configuration around them is good') or diag($out);

for my $level (@LEVELS) {
    my @here = grep { $list{$_}{at}{$level} && !$row{$_}{skip_good} && !$row{$_}{exec} }
               sort keys %list;
    my $lines = join "\n", map { "$_ $row{$_}{good};" }
                           grep { $_ ne 'sandbox' || $level ne 'location' } @here;
    ($ok, $out) = check($level => $lines);
    ok($ok, "in $level: @here") or diag($out);
}

my $exec = sub {
    $_[0] =~ s{sandbox_helper unix:(\S+)/run/helper\.sock;}
              {sandbox_helper exec:/bin/true; sandbox_data $1/data;}r;
};
my @exec = grep { $row{$_}{exec} } sort keys %row;

($ok, $out) = check(conf => $exec,
                    http => join "\n", map { "$_ $row{$_}{good};" }
                                       grep { $row{$_}{good} } @exec);
ok($ok, "with exec: @exec") or diag($out);

# what of sandbox_helper_option nginx takes, and the helper

my %bounds = (
    locks => [ 1, 16777216 ], leases => [ 1, 16777216 ], questions => [ 1, 65536 ],
    'question-threads' => [ 1, 64 ], live => [ 1, 65536 ], readers => [ 16, 16384 ],
    inspections => [ 1, 64 ], 'inspect-seconds' => [ 1, 3600 ],
    'inspect-memory' => [ 67108864, 1 << 60 ],
);

sub takes {
    my ($name, $n) = @_;

    my $pid = fork // die "fork: $!\n";

    if (!$pid) {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', '/dev/null';
        exec "$SandboxProcess::BUILD/sandbox-helper", "--$name", $n, '--version';
    }

    waitpid $pid, 0;

    return $? == 0;
}

for my $end (0, 1) {
    ($ok, $out) = check(conf => $exec, http => join "\n", map {
        "sandbox_helper_option $_ $bounds{$_}[$end];" } sort keys %bounds);
    ok($ok, 'options of a helper, ' . ('least', 'most')[$end]) or diag($out);

    for my $name (sort keys %bounds) {
        my $n = $bounds{$name}[$end];
        my $beyond = $end ? $n + 1 : $n - 1;
        ok(takes($name, $n), "the helper takes $name $n");
        ok(!takes($name, $beyond), "but not $beyond");
        ($ok, $out) = check(conf => $exec,
                            http => "sandbox_helper_option $name $beyond;");
        ok(!$ok && $out =~ /sandbox_helper_option $name must be/,
           'nor does nginx') or diag($out);
    }
}

for my $name (@exec) {
    ($ok, $out) = check(http => "$name " . ($row{$name}{good} // '/tmp') . ';');
    ok(!$ok, "$name is refused with unix:") or diag($out);
    like($out, qr/\[emerg\].*\b$name does nothing.*with \Q$row{$name}{exec}\E\b/,
         'and told what to do');
}

for my $name (sort keys %row) {
    my ($d, $row) = ($list{$name}, $row{$name});

    ok($row->{effect} eq 'directives.t' || names($row->{effect}, $name),
       "$name: t/$row->{effect} tells what it does");

    # where it may not stand

    for my $level (grep { !$d->{at}{$_} } @LEVELS) {
        my $word = $row->{good} // 'x';
        ($ok, $out) = check($level => $d->{none} ? "$name;" : "$name $word;");
        ok(!$ok && $out =~ /"$name" directive is not allowed here/,
           "$name is not allowed in $level") or diag($out);
    }

    # bad forms, at the innermost place where it may stand

    my ($level) = grep { $d->{at}{$_} } qw(location server http upstream);

    for my $bad (@{ $row->{bad} },
        [ $d->{none} ? 'NAME x;' : 'NAME;', qr/invalid number of arguments in "$name"/ ])
    {
        my ($line, $like) = @$bad;
        (my $text = $line) =~ s/NAME/$name/g;

        my %where = $name eq 'sandbox' || $name eq 'sandbox_console_api'
            ? (locations => "location /d/ { $text }") : ($level => $text);

        ($ok, $out) = check(%where);
        ok(!$ok, "refused: $text") or diag($out);
        like($out, qr/\[emerg\].*$like/, 'and told why');
    }
}

($ok, $out) = check(api => 'sandbox_api_timeout 0;');
ok(!$ok && $out =~ /must not be 0/, 'refused: sandbox_api_timeout 0;');
($ok, $out) = check(locations => 'location /d { sandbox_console_api; }');
ok(!$ok && $out =~ m{ends with "/"}, 'the console API needs a path that ends with "/"');
($ok, $out) = check(locations => 'location ~ ^/d/ { sandbox_console_api; }');
ok(!$ok && $out =~ m{ends with "/"}, 'and is no regular expression');


# --- inheritance --------------------------------------------------------------

# One server takes what stands in http, another sets everything anew, a location
# in it once more.  Each row below asks at the three places.

my @places = (
    { level => 'http', host => 'h.test', box => 'hbox', n => 1 },
    { level => 'server', host => 's.test', box => 'sbox', n => 2 },
    { level => 'location', host => 's.test', box => 'lbox', n => 3 },
);

my %set = (
    sandbox_tokens => [ map { "$etc/tokens-$_" } 1 .. 3 ],
    sandbox_api_key_file => [ map { "$etc/key-$_" } 1 .. 3 ],
    sandbox_upstream_host => [ 'client', 'upstream', 'client' ],
    sandbox_public => [ 'h.pub:1', 's.pub:2/p', 'l.pub:3' ],
    sandbox_host => [ 'h.test only-h.test', 's.test only-s.test',
                      's.test only-l.test' ],
    sandbox_endpoints => [ 'rewrite', 'all', 'off' ],
    sandbox_endpoint_allow => [ '127.0.0.0/8', '10.0.0.0/8', '127.0.0.0/8' ],
    sandbox_trusted_peer => [ '10.0.0.0/8', '127.0.0.1', '10.0.0.0/8 ::1' ],
    sandbox_policy => [ map { "$etc/policy-$_" } 1 .. 3 ],
    sandbox_archives => [ 1, 2, 3 ],
    sandbox_archive_timeout => [ '20s', '1ms', '20s' ],
    sandbox_record => [ 'file.stat off', 'file.stat best_effort', 'file.stat off' ],
    sandbox_capture_limit => [ 1, 2, 0 ],
    sandbox_digest => [ 'off', 'on', 'off' ],
    sandbox_record_input => [ 'on', 'off', 'hidden' ],
    sandbox_versions => [ 'off', 'fetch', 'off' ],
    sandbox_locks => [ 'on', 'off', 'on' ],
    sandbox_lock_timeout => [ '400ms', '50ms', '100ms' ],
    sandbox_limits => [ 'commands=1 queue=0', 'commands=2 queue=0', 'off' ],
    sandbox_body_limit => [ 1000, 2000, 3000 ],
    sandbox_timeout => [ '800ms', '1600ms', '200ms' ],
    map { my $d = $_; $d => [ map { "$d-$_" } 1 .. 3 ] }
        qw(sandbox_actor_type sandbox_actor_id sandbox_thread_id sandbox_run_id
           sandbox_correlation_id sandbox_parent_operation_id),
);

for my $n (1 .. 3) {
    my $token = "sbx_level${n}_" . SandboxTest::random_text(32);
    $t->{tokens}{"level$n"} = $token;
    $t->secret((split /_/, $token, 3)[2]);
    SandboxTest::write_file("$etc/tokens-$n", "level$n " . sha256_hex($token)
        . " role=admin actor=x\n");
    SandboxTest::write_file("$etc/key-$n",
        $t->secret("key-of-level-$n-" . SandboxTest::random_text(12)) . "\n");
}

my $PROXY = 'proxy_pass http://opensandbox$sandbox_upstream_uri;
             proxy_http_version 1.1;
             proxy_set_header Host $sandbox_upstream_host;
             proxy_set_header Connection $sandbox_connection;
             proxy_set_header Upgrade $http_upgrade;
             proxy_buffering off; proxy_request_buffering off;';

sub lines_of {
    my ($n, @but) = @_;

    return join "\n", map { my $d = $_; grep({ $_ eq $d } @but) ? ()
                                        : "$d $set{$d}[$n - 1];" } sort keys %set;
}

$t->{conf} = sub {
    my $text = shift;

    my ($port) = $text =~ /listen 127\.0\.0\.1:(\d+)/;
    my ($head) = $text =~ /\A(.*?^http \{.*?)^\s*upstream opensandbox/ms;
    my ($upstream) = $text =~ /^(\s*upstream opensandbox \{.*?\n    \})/ms;
    my $self = "http://127.0.0.1:$port";
    my $real = $t->{upstream_url};

    return "$head\n$upstream\n" . lines_of(1) . "
    sandbox on;
    sandbox_upstream $real;
    sandbox_ingress off;
    sandbox_api_timeout 600ms;

    server {
        listen 127.0.0.1:$port;
        server_name h.test only-h.test not-h.test;
        location / { $PROXY }
        location /api-http/ { sandbox_console_api; }
    }

    server {
        listen 127.0.0.1:$port;
        server_name s.test only-s.test only-l.test;
        sandbox on;
        " . lines_of(2) . "
        sandbox_api_timeout 1200ms;
        location / { $PROXY }
        location /v1/sandboxes/lbox { " . lines_of(3) . " $PROXY }
        location /v1/sandboxes/pbox { sandbox_public p.pub;
            sandbox_endpoint_allow 127.0.0.0/8; $PROXY }
        location /api-server/ { sandbox_console_api; }
        location /api-location/ { sandbox_console_api; sandbox_api_timeout 100ms;
                                  sandbox_tokens $set{sandbox_tokens}[2]; }
    }

    server {                    # the plain switches
        listen 127.0.0.1:$port;
        server_name off.test;
        sandbox off;
        sandbox_host off.test;
        location / { return 204; }
        location /v1/sandboxes { sandbox on; $PROXY }
    }

    server {
        listen 127.0.0.1:$port;
        server_name loop.test;
        sandbox_host loop.test;
        sandbox_upstream $self;
        location / { $PROXY }
        location /v1/sandboxes/lbox { sandbox_upstream $real; $PROXY }
    }

    server {
        listen 127.0.0.1:$port;
        server_name rate.test;
        sandbox_host rate.test;
        sandbox_rate 1r/m burst=1;
        location / { $PROXY }
        location /v1/sandboxes/lbox { sandbox_rate 2r/m burst=3; $PROXY }
        location /v1/sandboxes/pbox { sandbox_rate off; $PROXY }
    }

    server {
        listen 127.0.0.1:$port;
        server_name ingress.test;
        sandbox_host ingress.test;
        sandbox_ingress uri;
        location / { $PROXY }
        location /v1/ { sandbox_ingress off; $PROXY }
    }
}
";
};

$t->start;
$t->sandbox($_) for qw(hbox sbox lbox pbox);

sub ask {
    my ($p, $method, $path, %o) = @_;

    return $t->request($method, "/v1/sandboxes/$p->{box}$path", token => "level$p->{n}",
        conn => $t->connect(host_header => $p->{host}), %o);
}

ok($t->wait_for(sub { ask($places[0], GET => '')->status == 200 }), 'it runs');

my %record;

for my $p (@places) {
    my $r = ask($p, POST => '/proxy/44772/command', body => '{"command":"echo hi"}');
    is($r->status, 200, "$p->{level}: a command passes");
    $record{$p->{n}} = $t->record($r);
}

my %field = (sandbox_actor_type => 'actor_type', sandbox_actor_id => 'actor_id',
             sandbox_thread_id => 'thread_id', sandbox_run_id => 'run_id',
             sandbox_correlation_id => 'correlation_id',
             sandbox_parent_operation_id => 'parent');

# Details of the refusal of an upload of archives, each with one member.

sub packed_in {
    my ($p, @data) = @_;

    my $r = ask($p, POST => '/proxy/44772/files/upload',
        headers => [ 'Content-Type: multipart/form-data; boundary=B' ],
        body => SandboxTest::upload_body(map {
            ("/w/$_.zip", zip([ { name => 'f', data => $data[$_], deflate => 1 } ]))
        } 0 .. $#data));

    return $r->status == 200 ? {} : $r->json->{details};
}


my %inherits = (

    sandbox => sub {
        my $at = sub {
            my ($host, $path) = @_;
            return $t->request(GET => $path, token => undef,
                conn => $t->connect(host_header => $host))->status;
        };
        is($at->('h.test', '/v1/x'), 401, 'http: on');
        is($at->('off.test', '/x'), 204, 'server: off');
        is($at->('off.test', '/v1/sandboxes'), 401, 'location: on again');
    },

    sandbox_upstream => sub {
        my $at = sub {
            my ($box, $host) = @_;
            return $t->request(GET => "/v1/sandboxes/$box", token => 'level1',
                conn => $t->connect(host_header => $host));
        };
        is($at->('hbox', 'h.test')->status, 200, 'http: upstream');
        my $loop = $at->('hbox', 'loop.test');
        is($loop->status, 508, 'server: ourselves');
        is($loop->code, 'GATEWAY_LOOP', 'is refused as such');
        like($loop->json->{message}, qr/\w.*\.$/, 'with a sentence');
        is($at->('lbox', 'loop.test')->status, 200, 'location: upstream again');
    },

    sandbox_ingress => sub {
        my $at = sub {
            my ($path, $host) = @_;
            my $r = $t->request(GET => $path, token => 'level1',
                conn => $t->connect(host_header => $host));
            return $t->record($r)->{operation_type};
        };
        is($at->('/hbox/8080/x', 'h.test'), 'lifecycle.unknown', 'http: off');
        is($at->('/hbox/8080/x', 'ingress.test'), 'proxy.http', 'server: uri');
        is($at->('/v1/sandboxes', 'ingress.test'), 'sandbox.list',
           'location: off again');
    },

    sandbox_tokens => sub {
        for my $p (@places) {
            is(join(' ', grep { ask($p, GET => '', token => "level$_")->status == 200 }
                              1 .. 3),
               $p->{n}, "$p->{level}: its own tokens, and no others");
        }
    },

    sandbox_api_key_file => sub {
        for my $p (@places) {
            $t->up->mark;
            ask($p, GET => '');
            my ($seen) = $t->up->requests(qr{^GET });
            like($seen->{head}, qr/key-of-level-$p->{n}-/, "$p->{level}: its key");
        }
    },

    sandbox_policy => sub {
        for my $p (@places) {
            my $r = ask($p, POST => '/proxy/44772/command',
                        body => '{"command":"level x"}');
            is($r->status, 403, "$p->{level}: denied");
            is($r->json->{details}{rule}, "level-$p->{n}", 'by its own rule');
        }
    },

    sandbox_archives => sub {
        for my $p (@places) {
            my $in = packed_in($p, map { '' } 1 .. $p->{n} + 1);
            is($in->{rule}, 'packed', "$p->{level}: one too many");
            like($in->{archive}{why}, $p->{n} == 2
                 ? qr/sandbox_archive/ : qr/more archives than sandbox_archives/,
                 'is not looked into');
            is(packed_in($p, map { '' } 1 .. $p->{n})->{rule}, undef,
               "$p->{n} are") if $p->{n} != 2;
        }
    },

    sandbox_archive_timeout => sub {
        my @want = (undef, 'packed', undef);
        for my $p (@places) {
            is(packed_in($p, "\0" x (60 << 20))->{rule}, $want[$p->{n} - 1],
               "$p->{level}: its time");
        }
    },

    sandbox_upstream_host => sub {
        my ($upstream) = $t->{upstream_url} =~ m{//(.*)};
        my @want = ('h.test', $upstream, 's.test');
        for my $p (@places) {
            $t->up->mark;
            ask($p, GET => '');
            my ($seen) = $t->up->requests(qr{^GET });
            my ($host) = $seen->{head} =~ /^host: (\S+)/mi;
            is($host, $want[$p->{n} - 1], "$p->{level}: its choice");
        }
    },

    sandbox_host => sub {
        my @want = ('', 'only-s.test', 'only-l.test');
        for my $p (@places[1, 2]) {
            is(join(' ', grep { ask({ %$p, host => $_ }, GET => '')->status == 200 }
                              qw(only-s.test only-l.test)),
               $want[$p->{n} - 1], "$p->{level}: its own names");
        }
        is(join(' ', grep { ask({ %{ $places[0] }, host => $_ }, GET => '')->status
                            == 200 } qw(only-h.test not-h.test)),
           'only-h.test', 'http: its names');
    },

    sandbox_public => sub {
        like($t->request(GET => "/v1/sandboxes/hbox/endpoints/44772",
                 token => 'level1', conn => $t->connect(host_header => 'h.test'))
               ->json->{endpoint}, qr{^h\.pub:1/}, 'http: its name');
        like(ask($places[1], GET => '/endpoints/44772')->json->{endpoint},
             qr{^s\.pub:2/p/}, 'server: its own');
        like(ask({ %{ $places[1] }, box => 'pbox' }, GET => '/endpoints/44772')
               ->json->{endpoint}, qr{^p\.pub/}, 'location: its own');
    },

    sandbox_endpoints => sub {
        my @want = ([ 1, 0 ], [ 1, 1 ], [ 0, 0 ]);
        for my $p (@places) {
            is_deeply([ map { ask($p, GET => "/endpoints/$_")->json->{endpoint}
                              =~ /\.pub/ ? 1 : 0 } 44772, 8080 ],
                      $want[$p->{n} - 1],
                      "$p->{level}: $set{sandbox_endpoints}[$p->{n} - 1]");
        }
    },

    sandbox_trusted_peer => sub {
        for my $p (@places) {
            $t->up->mark;
            ask($p, GET => '', headers => [ 'X-OpenSandbox-User: ada' ]);
            my ($seen) = $t->up->requests(qr{/v1/sandboxes/$p->{box}$});
            is($seen && $seen->{head} =~ /^X-OpenSandbox-User: ada/mi ? 1 : 0,
               $p->{n} == 2 ? 1 : 0, "$p->{level}: $set{sandbox_trusted_peer}[$p->{n} - 1]");
        }
    },

    sandbox_endpoint_allow => sub {
        my $answer = '{"endpoint":"127.0.0.1:' . $t->up->port('a') . '"}';
        for my $case ([ $places[0], 'straight' ], [ $places[1], 'server proxy' ],
                      [ { %{ $places[1] }, level => 'location', box => 'pbox' },
                        'straight' ])
        {
            my ($p, $want) = @$case;
            my $path = "/v1/sandboxes/$p->{box}/endpoints/44772";
            $t->up->script("GET $path", [ send => "HTTP/1.1 200 OK\r\n"
                . "Content-Type: application/json\r\nContent-Length: "
                . length($answer) . "\r\n\r\n$answer" ]);
            ask($p, GET => '/endpoints/44772');
            $t->up->mark;
            ask($p, GET => '/proxy/44772/ping');
            my ($seen) = $t->up->requests(qr{ping});
            is($seen->{listener} eq 'a' ? 'straight' : 'server proxy', $want,
               "$p->{level}: $want");
        }
        $t->up->clear;
    },

    sandbox_record => sub {
        my @id = map { [ $_, ask($_, GET => '/proxy/44772/files/info?path=/a')
                               ->header('X-Operation-Id') ] } @places;
        # one more that is recorded, behind them
        $t->record(ask($places[1], GET => ''));
        ok($t->wait_for(sub { $t->history->event($id[1][1]) }), 'server: on record');
        for (@id[0, 2]) {
            ok(!$t->history->event($_->[1]), "$_->[0]{level}: off");
        }
    },

    sandbox_capture_limit => sub {
        my $whole = $t->history->output($record{3}{event_id}, 'stdout');
        cmp_ok(length $whole, '>', 2, 'location: no limit');
        is($t->history->output($record{1}{event_id}, 'stdout'), substr($whole, 0, 1),
           'http: one byte');
        is($t->history->output($record{2}{event_id}, 'stdout'), substr($whole, 0, 2),
           'server: two');
    },

    sandbox_digest => sub {
        my @have = map {
            my $r = ask($_, GET => '/proxy/44772/files/download?path=/a');
            my $e = $t->record($r);
            defined $e->{file}{after_hash} || defined $e->{file}{before_hash}
                || grep({ defined && length } map { $_->{sha256} } @{ $e->{files} // [] })
                ? 1 : 0;
        } @places;
        is("@have", '0 1 0', 'off, on, off');
    },

    sandbox_record_input => sub {
        my @got = map {
            my $p = $_;
            my $ws = SandboxWs->open(conn => $t->connect(host_header => $p->{host}),
                target => "/v1/sandboxes/$p->{box}/proxy/44772/pty/p/ws",
                headers => [ $t->credential(token => "level$p->{n}") ]);
            $ws->send(2, "\x00x");
            $ws->recv_until(sub { $_[0]{payload} eq "\x01x" });
            $ws->close_frame;
            $ws->close;
            my $e = $t->record($ws->response);
            my ($row) = $t->history->query($e->{in}, 'select group_concat(j.value) as typed'
                . ' from gateway_terminal, json_each(events) j where event_id ='
                . " '$e->{event_id}' and j.value ->> 1 = 'i'");
            [ scalar(($row->{typed} // '') =~ /"x"/ ? 1 : 0),
              $e->{result}{input_hidden_bytes} // 'none' ];
        } @places;
        is_deeply(\@got, [ [ 1, 'none' ], [ 0, 'none' ], [ 0, 1 ] ], 'on, off, hidden');
    },

    sandbox_versions => sub {
        my @have = map {
            my $r = ask($_, POST => '/proxy/44772/files/upload', headers => [
                'Content-Type: multipart/form-data; boundary=B' ], body =>
                join("\r\n", '--B', 'Content-Disposition: form-data;'
                     . ' name="metadata"; filename="m"', '', '{"path":"/v"}',
                     '--B', 'Content-Disposition: form-data; name="file";'
                     . ' filename="f"', '', 'x', '--B--', ''));
            my $f = $t->record($r)->{files}[0];
            join ' ', map { $_ // '' } @$f{qw(content before)};
        } @places;
        is_deeply(\@have, [ 'unavailable unavailable', 'kept fetched',
                            'unavailable unavailable' ],
                  'off, fetch, off');
    },

    sandbox_body_limit => sub {
        my $post = sub {
            my ($p, $n) = @_;
            my $body = '{"command":"' . 'x' x ($n - 14) . '"}';
            return ask($p, POST => '/proxy/44772/command', body => $body)->status;
        };
        for my $p (@places) {
            my $n = $p->{n} * 1000;
            is($post->($p, $n), 200, "$p->{level}: $n bytes pass");
            is($post->($p, $n + 1), 413, 'and one more does not');
        }
    },

    sandbox_locks => sub {
        is(join(' ', map { ask($_, GET => '/proxy/44772/files/info?path=/a',
                               headers => [ 'X-Sandbox-Lock: read:/b' ])->status }
                     @places), '200 501 200', 'on, off, on');
    },

    sandbox_lock_timeout => sub {
        for my $p (@places[0, 2]) {
            my $l = $t->post("/api-http/sandboxes/$p->{box}/leases", token => 'level1',
                conn => $t->connect(host_header => 'h.test'),
                body => '{"keys":[{"path":"/a","mode":"write"}]}');
            is($l->status, 201, 'a lease');
            $t->secret($l->json->{token});
            my $r = ask($p, GET => '/proxy/44772/files/info?path=/a');
            is($r->status, 423, "$p->{level}: refused");
            my ($ms) = $set{sandbox_lock_timeout}[$p->{n} - 1] =~ /(\d+)/;
            cmp_ok($r->json->{details}{waited_ms}, '>=', $ms, 'in its time');
            cmp_ok($r->json->{details}{waited_ms}, '<', $ms + 290, 'not later');
        }
    },

    sandbox_limits => sub {
        for my $p (@places) {
            my @run = (POST => "/v1/sandboxes/$p->{box}/proxy/44772/command");
            $t->up->script(qr{^POST \S*/command}, [ 'hang' ]);
            $t->up->mark;
            my @c = map {
                my $c = $t->connect(host_header => $p->{host});
                $c->write($c->build(@run, body => '{"command":"sleep"}',
                    headers => [ $t->credential(token => "level$p->{n}") ]));
                $t->wait_for(sub { $t->up->requests(qr{^POST .*/command}) == $_ });
                $c;
            } 1 .. $p->{n};
            $t->up->clear;
            is(ask($p, POST => '/proxy/44772/command', body => '{"command":"x"}')
                 ->status, $p->{n} == 3 ? 200 : 429, "$p->{level}: beside $p->{n}");
            $_->reset for @c;
        }
    },

    sandbox_rate => sub {
        my $passes = sub {
            my ($host, $path) = @_;
            my $c = $t->connect(host_header => $host);
            scalar grep { $t->get("/v1/sandboxes/$path", conn => $c, token => 'level1')
                            ->status != 429 } 1 .. 6;
        };
        is($passes->('h.test', 'hbox'), 6, 'http: off');
        is($passes->('rate.test', 'hbox'), 2, 'server: its own');
        is($passes->('rate.test', 'lbox'), 4, 'location: its own');
        is($passes->('rate.test', 'pbox'), 6, 'location: off');
    },

    sandbox_timeout => sub {
        # the order in which they give up, with a helper that does not answer
        kill 'STOP', $t->{helper_pid};
        my @c = map {
            my $c = $t->connect(host_header => $_->{host});
            $c->write($c->build(POST => "/v1/sandboxes/$_->{box}/proxy/44772/command",
                body => '{"command":"echo hi"}',
                headers => [ $t->credential(token => "level$_->{n}") ]));
            [ $_, $c ];
        } @places;
        my @order;
        $t->wait_for(sub {
            for (@c) {
                my ($p, $c) = @$_;
                next if $p->{done};
                $c->fill(Time::HiRes::time() + 0.01);
                next if $c->{buf} !~ m{^HTTP/1.1 (\d+)};
                push @order, "$p->{level} $1";
                $p->{done} = 1;
            }
            return @order == 3;
        });
        kill 'CONT', $t->{helper_pid};
        is("@order", 'location 503 http 503 server 503', 'each in its time');
    },

    sandbox_api_timeout => sub {
        kill 'STOP', $t->{helper_pid};
        my @c = map {
            my ($level, $host, $n) = @$_;
            my $c = $t->connect(host_header => $host);
            $c->write($c->build(GET => "/api-$level/x",
                headers => [ $t->credential(token => "level$n") ]));
            [ $level, $c ];
        } ([ 'http', 'h.test', 1 ], [ 'server', 's.test', 2 ],
           [ 'location', 's.test', 3 ]);
        my (@order, %done);
        $t->wait_for(sub {
            for (@c) {
                my ($level, $c) = @$_;
                next if $done{$level};
                $c->fill(Time::HiRes::time() + 0.01);
                next if $c->{buf} !~ m{^HTTP/1.1 (\d+)};
                push @order, "$level $1";
                $done{$level} = 1;
            }
            return @order == 3;
        });
        kill 'CONT', $t->{helper_pid};
        is("@order", 'location 503 http 503 server 503', 'each in its time');
    },

    (map {
        my $d = $_;
        $d => sub {
            for my $p (@places) {
                my $e = $record{ $p->{n} };
                is($e->{ $field{$d} } // $e->{wire}{ $field{$d} }, "$d-$p->{n}",
                   "$p->{level}: its own");
            }
        }
    } keys %field),
);

my @any = grep { keys %{ $list{$_}{at} } == 3 } sort keys %list;

is_deeply([ grep { $row{$_}{effect} eq 'directives.t' && !$inherits{$_} } sort keys %row ],
          [], 'what is to be told here is');
is_deeply([ sort keys %inherits ], \@any,
          'each directive of several levels is asked what it inherits');

# those that stop the helper come last
for my $name (sort { ($a =~ /timeout/) <=> ($b =~ /timeout/) || $a cmp $b } @any) {
    subtest "$name: the inner counts, else the outer" => $inherits{$name}
        if $inherits{$name};
}

$t->stop;
done_testing;
