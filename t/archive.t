#!/usr/bin/perl

# Archives in the module: who is asked about, what the answer says, every limit of
# a policy at its value and above, spooled bodies and those in memory, what is
# refused when nobody can look into an archive, and that who is not judged does
# not wait.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use ArchiveMaker qw(zip tar member gz);
use Digest::SHA qw(sha256_hex);
use File::Copy qw(copy);
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $t = SandboxTest->new(
    location => "sandbox_policy policy;\nclient_body_buffer_size 16k;\n"
                . "sandbox_archives 3;\nsandbox_archive_timeout 30s;",
    helper_args => [ '--inspections', 2, '--inspect-seconds', 1 ],
    allow => [ qr/archives are not looked into/, qr/cannot connect for an archive/ ]);

SandboxTest::write_file("$t->{dir}/conf/policy", <<'END_POLICY');
allow trusted { path /w/trusted/; }
observe tried { path /w/tried/; archive unsafe; }
deny entries { path /w/entries/; archive_entries > 3; reason "Too many."; }
deny size { path /w/size/; archive_size > 300; }
deny large { path /w/large/; archive_file_size > 100; }
deny ratio { path /w/ratio/; archive_ratio > 100; }
deny depth { path /w/depth/; archive_depth > 2; }
deny names { path /w/names/; archive_path nocase .env /etc/ **/.git/config !ok.env; }
deny more { path /w/names/; archive_path *.exe; reason "No programs."; }
deny misnamed { path /w/named/; archive misnamed; }
deny no-links { path /w/links/; archive links; }
deny archives { path /w/none/; archive any; }
deny only-archives { path /w/only/; not archive any; }
deny unsafe { path /w/safe/; archive unsafe; reason "Not safe to unpack."; }
deny slow { path /w/slow/; archive climbs; }
default allow;
END_POLICY

$t->start;
$t->sandbox('s1');

my $up = $t->up;
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $type = 'Content-Type: multipart/form-data; boundary=B';
$t->post("$execd/command", body => '{"command":"true"}');

my $ok = zip([ { name => 'a', data => 'hello' }, { name => 'b/c', data => 'x' } ]);
my $bad = zip([ { name => '../x', data => 'hello' } ]);


sub upload {
    my (@files) = @_;

    my $body = SandboxTest::upload_body(@files);
    $up->mark;

    return $t->post("$execd/files/upload", body => $body, headers => [ $type ]);
}

sub passes {
    my ($what, @files) = @_;

    my $r = upload(@files);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is($r->status, 200, "$what: passes") or diag($r->content);

    return $r;
}

sub refused {
    my ($what, $rule, $status, @files) = @_;

    my $r = upload(@files);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $d = $r->status >= 400 ? $r->json->{details} : {};

    is($r->status, $status, "$what: refused") or diag($r->content);
    is($d->{rule}, $rule, "by $rule");
    is(scalar(grep { $_->{target} =~ /upload/ } $up->requests), 0,
       'upstream saw nothing');

    return $r;
}

sub metric {
    my ($name) = @_;
    my ($n) = $t->get('/console/api/v1/metrics')->content
              =~ /^sandbox_gateway_$name (\d+)$/m;
    return $n;
}


# --- what the answer says ----------------------------------------------------------------

my $r = refused('a name that climbs', 'unsafe', 403, '/w/safe/x.zip', $bad);
is($r->json->{code}, 'GATEWAY_POLICY_DENIED', 'with its code');
is($r->json->{message}, 'Not safe to unpack.', 'for the reason of the rule');
is($r->json->{details}{path}, '/w/safe/x.zip', 'and the file');
is_deeply($r->json->{details}{archive}, { found => 'climbs', member => '../x',
    why => "A member's name may lead out of where it is unpacked." },
    'and what was found in it');

my $e = $t->record($r, sandbox => 's1');
is($e->{result}{verdict}, 'deny', 'on record as denied');
is($e->{result}{verdict_rule}, 'unsafe', 'by its rule');

passes('an honest one', '/w/safe/x.zip', $ok);
passes('a file that is none', '/w/safe/x.txt', 'hello');

$r = passes('what is only observed', '/w/tried/x.zip', $bad);
is($t->record($r, sandbox => 's1')->{result}{verdict}, 'observe', 'is on record');
$r = passes('an honest one that is observed', '/w/tried/x.zip', $ok);
is($t->record($r, sandbox => 's1')->{result}{verdict}, 'allow', 'is allowed');


# --- who is asked about --------------------------------------------------------------------

my $before = metric('archives_total');
cmp_ok($before, '>', 3, 'archives are counted');

passes('one that a rule allowed before', '/w/trusted/x.zip', $bad);
passes('one that no rule is about', '/w/other/x.zip', $bad);
passes('no archive at all', '/w/safe/x', 'x' x 100_000);
is(metric('archives_total'), $before, 'nobody looked into them');

refused('one of several', 'unsafe', 403, '/w/safe/a', 'text', '/w/safe/b', $ok,
        '/w/safe/c', $bad);
is(metric('archives_total'), $before + 2, 'two were looked into');

passes('three archives', map { ("/w/safe/$_", $ok) } 1 .. 3);
$r = refused('four, where sandbox_archives is 3', 'unsafe', 403,
             map { ("/w/safe/$_", $ok) } 1 .. 4);
is($r->json->{details}{archive}{found}, 'uninspected', 'as nothing is known');
like($r->json->{details}{archive}{why}, qr/more archives than sandbox_archives/,
     'and why');
is($r->json->{details}{path}, '/w/safe/4', 'of the fourth');
passes('four of which one is judged', '/w/safe/1', $ok,
       map { ("/w/other/$_", $ok) } 2 .. 4);


# --- conditions ------------------------------------------------------------------------------

my @m = map { { name => "f$_", data => 'x' x 100 } } 1 .. 4;
my $z = gz('y' x 3000 . "\0" x (2 << 20));
my $dense = gz(join('', map { pack 'N', ($_ * 2654435761) % 2**32 } 1 .. 8000)
               . "\0" x (2 << 20));

for ([ 'entries', zip([ @m[0 .. 2] ]), zip(\@m) ],
     [ 'entries', tar(map { member("f$_") } 1 .. 3),
                  tar(map { member("f$_") } 1 .. 4) ],
     [ 'size', zip([ @m[0 .. 2] ]), zip([ @m[0 .. 2], { name => 'g', data => 1 } ]) ],
     [ 'large', zip([ $m[0] ]), zip([ { name => 'f', data => 'x' x 101 } ]) ],
     [ 'ratio', $dense, $z ],
     [ 'depth', zip([ { name => 'i', data => zip(\@m) } ]),
                zip([ { name => 'j', data => zip([ { name => 'i',
                                                     data => zip(\@m) } ]) } ]) ])
{
    my ($rule, $at, $above) = @$_;

    passes("$rule at its limit", "/w/$rule/x", $at);
    $r = refused("$rule above it", $rule, 413, "/w/$rule/x", $above);
    is($r->json->{code}, 'GATEWAY_LIMIT_EXCEEDED', 'as a limit');
    is($r->json->{details}{archive}{found}, 'limit', 'of the archive');
}

for my $name ('.env', 'a/.ENV', 'etc/passwd', 'etc/', 'x/.git/config', './a/.env/b') {
    refused("a member $name", 'names', 403, '/w/names/x.tar', tar(member($name)));
}

passes("a member $_", '/w/names/x.tar', tar(member($_)))
    for 'ok.env', 'env', 'a/etc/x', '.git/configs', 'x';
$r = refused('a member by another condition', 'more', 403, '/w/names/x.tgz',
             gz(tar(member('setup.exe'))));
is($r->json->{message}, 'No programs.', 'for its reason');
refused('a member of an archive in it', 'names', 403, '/w/names/x.zip',
        zip([ { name => 'i', data => zip([ { name => '.env', data => 1 } ]) } ]));

refused('a text named as an archive', 'misnamed', 403, '/w/named/x.zip', 'hello');
passes('an archive', '/w/named/x.zip', $ok);
passes('a text', '/w/named/x.txt', 'hello');
refused('a link', 'no-links', 403, '/w/links/x.tar',
        tar(member('l', type => 2, link => 'a')));
passes('a climbing name where links are judged', '/w/links/x.zip', $bad);
refused('an archive', 'archives', 403, '/w/none/x', $ok);
passes('a text', '/w/none/x', 'hello');
passes('an archive where others are refused', '/w/only/x', $ok);
passes('a text, about which the rule says nothing', '/w/only/x', 'hello');


# --- in memory, on disk, in pieces ------------------------------------------------------------

my $noise = join '', map { pack 'N', ($_ * 2654435761) % 2**32 } 1 .. 20_000;

for ([ 'in memory', '' ], [ 'spooled', $noise ]) {
    my ($where, $more) = @$_;

    refused("$where, behind another file", 'unsafe', 403, '/w/other/a', "x$more",
            '/w/safe/b', $bad);
    refused("$where, before another file", 'unsafe', 403, '/w/safe/b', $bad,
            '/w/other/a', "x$more");
    refused("$where, within a file", 'unsafe', 403, '/w/safe/b.png',
            "\x89PNG$more$bad");

    my $honest = zip([ { name => 'n', data => "x$more" } ]);
    $r = passes("$where, an honest one", '/w/safe/n.zip', $honest);
    my ($seen) = grep { $_->{target} =~ /upload/ } $up->requests;
    is(sha256_hex($seen->{body} // ''),
       sha256_hex(SandboxTest::upload_body('/w/safe/n.zip', $honest)),
       'and passes byte for byte');
}

# chunks of any size

for my $size (1, 7, 4096) {
    my $body = SandboxTest::upload_body('/w/other/a', 'text', '/w/safe/b', $bad);
    my $raw = join '', map { sprintf("%x\r\n%s\r\n", length $_, $_) }
              unpack "(a$size)*", $body;
    my $c = $t->connect;

    $c->write("POST $execd/files/upload HTTP/1.1\r\nHost: localhost\r\n"
        . $t->credential . "\r\n$type\r\nTransfer-Encoding: chunked\r\n\r\n${raw}0\r\n\r\n");
    is($c->response->status, 403, "in chunks of $size bytes");
}


# --- nobody can look into it -------------------------------------------------------------------

# much more than the second that it has

my $long = zip([ { name => 'f', deflate => 1, data => "\0" x (100 << 20) } ]);
my $bytes = zip([ map { { name => "z$_", data => $long } } 1 .. 60 ]);

$r = refused('one that takes too long', 'slow', 403, '/w/slow/x.zip', $bytes);
is($r->json->{details}{archive}{found}, 'uninspected', 'nothing is known');
is($r->json->{details}{archive}{why}, 'It takes too long to look into the archive.',
   'and why');
like($r->json->{message}, qr/nobody knows what is in it/, 'in a sentence');
cmp_ok(metric('inspections_failed_total'), '>=', 1, 'which is counted');

# a client that leaves ends it

my $conn = $t->connect;
my $body = SandboxTest::upload_body('/w/slow/x.zip', $bytes);
$conn->write("POST $execd/files/upload HTTP/1.1\r\nHost: localhost\r\n"
    . $t->credential . "\r\n$type\r\nContent-Length: " . length($body) . "\r\n\r\n$body");
ok($t->wait_for(sub { inspectors() }), 'a process looks into it')
    or diag('too quick');
undef $conn;
ok($t->wait_for(sub { !inspectors() && metric('inspections') == 0 }),
   'and is gone when nobody waits');

# the process dies

$conn = $t->connect;
$conn->write("POST $execd/files/upload HTTP/1.1\r\nHost: localhost\r\n"
    . $t->credential . "\r\n$type\r\nContent-Length: " . length($body) . "\r\n\r\n$body");

# (the sanitizers leave the system calls free)

my ($pid, $status) = @{ $t->wait_for(sub {
    my ($p) = inspectors() or return;
    my $s = eval { SandboxTest::read_file("/proc/$p/status") } // '';
    return $s =~ /^Seccomp:\s+2$/m || $SandboxProcess::BUILD =~ /san$/ ? [ $p, $s ] : undef;
}) || [] };
my %limits = map { /^(Max [a-z ]+?)  +(\S+)/ ? ($1 => $2) : () }
             split /\n/, SandboxTest::read_file("/proc/$pid/limits");
kill KILL => $pid;
$r = $conn->response;
is($r->status, 403, 'the process was killed: refused');
like($r->json->{details}{archive}{why}, qr/died|too long/, 'and why');

SKIP: {
    skip 'the sanitizers need more', 2 if $SandboxProcess::BUILD =~ /san$/;

    is($limits{'Max open files'}, 0, 'it could open nothing');
    like($status, qr/^NoNewPrivs:\s+1$/m, 'nor gain rights');
}

is($limits{'Max cpu time'}, 1, 'its time was bounded');

passes('all goes on', '/w/safe/x.zip', $ok);

# sandbox_archive_timeout

my $conf = SandboxTest::read_file("$t->{dir}/conf/nginx.conf");
SandboxTest::write_file("$t->{dir}/conf/nginx.conf",
                        $conf =~ s/sandbox_archive_timeout 30s/sandbox_archive_timeout 20ms/r);
$t->reload;
$r = refused('longer than sandbox_archive_timeout', 'slow', 403, '/w/slow/x.zip',
             $bytes);
like($r->json->{details}{archive}{why}, qr/longer than sandbox_archive_timeout/,
     'which is told');
SandboxTest::write_file("$t->{dir}/conf/nginx.conf", $conf);
$t->reload;

# the helper is away

$t->kill_helper;
my $started = time;
$r = refused('without a helper', 'unsafe', 403, '/w/safe/x.zip', $ok);
is($r->json->{details}{archive}{why},
   'The helper, which looks into archives, does not answer.', 'and why');
cmp_ok(time - $started, '<', 10, 'at once');

# its program is not there

mkdir "$t->{dir}/alone";
copy("$SandboxProcess::BUILD/sandbox-helper", "$t->{dir}/alone/sandbox-helper");
chmod 0755, "$t->{dir}/alone/sandbox-helper";
{
    no warnings 'redefine';
    local $SandboxProcess::BUILD = "$t->{dir}/alone";
    $t->start_helper;
}
ok($t->wait_for(sub { upload('/w/other/x', 'x')->status == 200 }), 'it is back');
$r = refused('without sandbox-inspect', 'unsafe', 403, '/w/safe/x.zip', $ok);
like($r->json->{details}{archive}{why}, qr/cannot be started/, 'and why');
passes('what is no archive', '/w/safe/x.txt', 'text');

$t->kill_helper;
$t->start_helper;
ok($t->wait_for(sub { upload('/w/safe/x.zip', $ok)->status == 200 }), 'all is well again');


# its memory is bounded

SKIP: {
    skip 'the sanitizers need more', 6 if $SandboxProcess::BUILD =~ /san$/;

    $t->kill_helper;
    $t->{helper_args} = [ '--inspect-memory', '64m' ];
    $t->start_helper;
    ok($t->wait_for(sub { upload('/w/safe/x.zip', $ok)->status == 200 }), 'with 64 MiB');
    $r = refused('what takes more memory', 'unsafe', 403, '/w/safe/x.zip', $long);
    is($r->json->{details}{archive}{found}, 'broken', 'is taken for broken');
    like($r->json->{details}{archive}{why}, qr/not enough memory/, 'and why');
}

$t->stop;
done_testing;


# Processes of sandbox-inspect that our helper has started.

sub inspectors {
    my @found;

    for my $dir (glob '/proc/[0-9]*') {
        open my $fh, '<', "$dir/stat" or next;
        my ($comm, $state, $parent) = (<$fh> // '') =~ /\((.*)\) (\S) (\d+)/ or next;
        push @found, $dir =~ s{.*/}{}r
            if $comm =~ /^sandbox-inspect/ && $state ne 'Z'
               && $parent == $t->{helper_pid};
    }

    return @found;
}
