#!/usr/bin/perl

# Locks over HTTP, with two workers: who waits for whom, what a refusal tells,
# and that nothing stays behind when clients, workers or the helper go.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $API = '/console/api/v1';
my $t = SandboxTest->new(workers => 2, location => 'sandbox_locks on;',
    http => 'log_format w "$sandbox_operation_id $sandbox_lock_wait";
             access_log logs/wait.log w;',
    allow => [ qr/worker process \d+ exited on signal 9/ ])->start;
my $up = $t->up;
my $execd = '/v1/sandboxes/s1/proxy/44772';

$t->sandbox('s1');
$up->script("GET $execd/files/download?path=%2Fhold", [ 'hang' ]);
$up->script("DELETE $execd/files?path=%2Fhold", [ 'hang' ]);
$up->script("POST $execd/command", [ 'hang' ]);
ok($t->wait_for(sub { $t->get("$API/sandboxes/s1/locks")->status == 200 }),
   'the helper is there');

sub locks { @{ $t->get("$API/sandboxes/s1/locks")->json->{items} // [] } }

sub state_of { join ' ', map { "$_->{type}:$_->{state}" } reverse locks() }

# Begins a request and does not wait for its answer.

sub begin {
    my ($method, $path, @headers) = @_;

    my ($body) = grep { ref } @headers;
    my $c = $t->connect;
    $c->write($c->build($method => "$execd$path", body => $body ? $$body : undef,
                        headers => [ $t->credential, grep { !ref } @headers ]));

    return $c;
}

sub becomes {
    my ($want, $what) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $have;
    $t->wait_for(sub { ($have = state_of()) eq $want });
    is($have, $want, $what);
}

sub upload {
    my ($path, @headers) = @_;

    return $t->post("$execd/files/upload", headers => [
        'Content-Type: multipart/form-data; boundary=B', @headers ], body =>
        join("\r\n", '--B', 'Content-Disposition: form-data; name="metadata";'
             . ' filename="m"', '', qq({"path":"$path"}), '--B',
             'Content-Disposition: form-data; name="file"; filename="f"', '',
             'x', '--B--', ''));
}

my $soon = 'X-Sandbox-Lock-Timeout: 200ms';


# --- reads share, writes exclude, with all below (C120, C123, C124, C126) -----

my $reader = begin(GET => '/files/download?path=%2Fhold');
becomes('file.read:held', 'a download holds a key');
is_deeply([ locks() ]->[0]{keys}, [ { path => '/hold', mode => 'read' } ], 'this one');

is($t->get("$execd/files/info?path=%2Fhold")->status, 200, 'another reads beside it');
my $started = time;
my $r = $t->delete("$execd/directories?path=%2Fhold%2F.%2F", headers => [ $soon ]);
is($r->status, 423, 'who writes waits, and is refused');
is($r->code, 'GATEWAY_LOCK_TIMEOUT', 'in the envelope');
is($r->header('Retry-After'), 1, 'with Retry-After');
cmp_ok(time - $started, '>=', 0.2, 'after its own time');
my $d = $r->json->{details};
is_deeply([ @{$d}{ qw(key mode) }, $d->{holder}{id}, $d->{holder}{actor} ],
          [ '/hold', 'write', [ locks() ]->[0]{id}, 'tester' ], 'it says who holds it');
cmp_ok($d->{waited_ms}, '>=', 200, 'and how long it waited');
my $e = $t->record($r);
is_deeply([ $e->{status}, $e->{result}{error_code} ], [ 'failed',
          'GATEWAY_LOCK_TIMEOUT' ], 'the refusal is on record');
my $row = $t->get("$API/sandboxes/s1/operations?type=dir.delete")->json->{items}[0];
cmp_ok($row->{lock}{waited_ms} // 0, '>=', 200, 'with its wait');
like($t->log_text('wait.log'), qr/^\Q$e->{event_id}\E 0\.[2-9]\d\d$/m,
     '$sandbox_lock_wait tells it');

is(upload('/hold/x', $soon)->status, 423, 'C123: an upload below waits');
is(upload('/hold2', $soon)->status, 200, 'C123: one beside it does not');
is(upload('/x/../hold', $soon)->status, 423, 'C126: another spelling is the same file');
is($t->post("$execd/files/mv", headers => [ $soon ],
            body => '[{"src":"/a","dest":"/hold"}]')->status, 423,
   'C124: the target of a move counts');
is($t->get("$execd/directories/list?path=%2F")->status, 200, 'listing waits for nobody');
is($t->post("$execd/files/mv", body => '[{"src":"/a","dest":"/./a"}]')->status, 200,
   'C122: from a name to itself');

# a writer that waits stops readers, and lets them go on when it gives up

my $writer = begin(DELETE => '/files?path=%2Fhold');
becomes('file.read:held file.delete:waiting', 'a writer waits');
is($t->get("$execd/files/info?path=%2Fhold", headers => [ $soon ])->status, 423,
   'C125: readers wait behind it');
$writer->reset;
becomes('file.read:held', 'C120: a client that leaves waits no more');
is($t->get("$execd/files/info?path=%2Fhold", headers => [ $soon ])->status, 200,
   'and readers go on');

$writer = begin(DELETE => '/files?path=%2Fhold');
becomes('file.read:held file.delete:waiting', 'once more');
$reader->reset;
becomes('file.delete:held', 'C120: the one that holds leaves: the next goes on');
$writer->reset;
becomes('', 'and nothing stays');


# --- commands declare ------------------------------------------------------------

my $cmd = begin(POST => '/command', \'{"command":"make"}',
                'X-Sandbox-Lock: read:/src, write:/out');
becomes('command.execute:held', 'declared keys are held');
is($t->get("$execd/files/info?path=%2Fsrc%2Fa")->status, 200, 'the one that is read');
is($t->get("$execd/files/info?path=%2Fout%2Fa", headers => [ $soon ])->status, 423,
   'the one that is written');
my ($seen) = $up->requests(qr{^POST .*/command});
unlike($seen->{head}, qr/x-sandbox-l/i, 'the header is for us alone');

for my $bad ('read:a', 'write:/a,', 'write', 'read:/a/../b', '') {
    is($t->post("$execd/command", body => '{"command":"x"}',
                headers => [ "X-Sandbox-Lock: $bad" ])->status, 400, "refused: $bad");
}

is($t->get("$execd/files/info?path=%2Fa", headers => [ $soon, $soon ])->status, 400,
   'twice is refused');
is($t->get("$execd/files/info?path=%2Fa", headers => [ 'X-Sandbox-Lock-Timeout: 6m' ])
     ->status, 400, 'too long is refused');

# --- leases ----------------------------------------------------------------------

my $l = $t->post("$API/sandboxes/s1/leases",
    body => '{"keys":[{"path":"/leased","mode":"write"}]}')->json;
$t->secret($l->{token});
is(upload('/leased/x', $soon)->status, 423, 'a lease holds');
$up->mark;
is(upload('/leased/x', $soon, "X-Sandbox-Lease: $l->{token}")->status, 200,
   'who is inside does not wait for it');
my @inside = $up->requests(qr{^POST .*/files/upload});
is(scalar @inside, 1, 'its upload has gone up');
unlike($inside[0]{head}, qr/x-sandbox-lease|lease-/i, 'and the token no further');
is(upload('/out/x', $soon, "X-Sandbox-Lease: $l->{token}")->status, 423,
   'but for others');
$r = upload('/leased/x', 'X-Sandbox-Lease: lease-0');
is($r->status, 409, 'a wrong one is refused');
is($r->code, 'GATEWAY_LEASE_INVALID', 'in the envelope');
$t->delete("$API/sandboxes/s1/leases/$l->{id}");
is(upload('/leased/x', "X-Sandbox-Lease: $l->{token}")->status, 409, 'so is one that is over');
is(upload('/leased/x')->status, 200, 'its keys are free');


# --- the helper dies ---------------------------------------------------------------

$writer = begin(DELETE => '/files?path=%2Fout');
becomes('command.execute:held file.delete:waiting', 'one holds, one waits');
$t->kill_helper;
$t->start_helper;
ok($t->wait_for(sub { join(' ', sort split / /, state_of()) eq
                     'command.execute:held file.delete:waiting' }),
   'after a restart they still do');
$up->script("DELETE $execd/files?path=%2Fout", [ 'hang' ]);
$started = time;
$cmd->reset;
$t->wait_for(sub { state_of() =~ /file.delete:held/ });
like(state_of(), qr/file.delete:held/, 'and the next goes on');


# --- a worker dies -------------------------------------------------------------------

$writer->reset;
$t->wait_for(sub { state_of() !~ /delete/ });
$reader = begin(GET => '/files/download?path=%2Fhold');
$t->wait_for(sub { state_of() =~ /read:held/ });
my @workers = $t->worker_pids;
kill 'KILL', @workers;
$started = time;
ok($t->wait_for(sub {
    my $r = eval { $t->delete("$execd/directories?path=%2Fhold%2Fz", headers => [ $soon ]) };
    return $r && $r->status == 200;
}), 'C128: all workers killed: the next goes on');
cmp_ok(time - $started, '<', 1.5, 'soon');


# --- a reload with waiters ------------------------------------------------------------

$reader = begin(GET => '/files/download?path=%2Fhold');
$t->wait_for(sub { state_of() =~ /read:held/ });
$writer = begin(DELETE => '/directories?path=%2Fhold%2Fy');
$t->wait_for(sub { state_of() =~ /delete:waiting/ });
$t->reload;
sleep 0.3;
like(state_of(), qr/delete:waiting/, 'C155: a reload: it still waits');
$reader->reset;
$r = $writer->response;
is($r->status, 200, 'C155: and is served by the worker that leaves');

ok($t->wait_for(sub { state_of() !~ /file/ }), 'nothing stays behind');

$t->stop;
done_testing;
