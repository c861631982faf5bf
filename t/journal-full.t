#!/usr/bin/perl

# C104: no room for the journal.  What must be on record is refused, the rest
# passes; its records wait in the worker and are all there once there is room.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;

plan skip_all => 'needs prlimit' if system('prlimit --version >/dev/null 2>&1');

my $t = SandboxTest->new(location => 'sandbox_locks on;')->start;
$t->sandbox('s1');
my $execd = '/v1/sandboxes/s1/proxy/44772';

sub command { $t->post("$execd/command", body => '{"command":"echo hi"}') }

# As the helper's own user: root in a container may not.

sub room {
    my $pid = $t->{helper_pid};
    my ($uid, $gid) = (stat "/proc/$pid")[4, 5];
    my @as = $> == $uid ? () : ('setpriv', "--reuid=$uid", "--regid=$gid",
                             '--clear-groups');

    system(@as, 'prlimit', "--pid=$pid", "--fsize=$_[0]:") == 0
        or die "prlimit: $?\n";
}

my $before = command();
is($before->status, 200, 'there is room');
$t->record($before);

# --- a lease that was asked for when there was room, and is granted when there is none ---

my $LEASES = '/console/api/v1/sandboxes/s1/leases';
my $LOCKS = '/console/api/v1/sandboxes/s1/locks';

sub lease_body { '{"keys":[{"path":"/a","mode":"write"}],"timeout_ms":' . "$_[0]}" }
sub locks { join ' ', sort map { "$_->{type}:$_->{state}" } @{ $t->get($LOCKS)->json->{items} } }

my @admin = (headers => [ 'Authorization: Bearer ' . $t->token ]);
my $download = "$execd/files/download?path=%2Fa";
$t->up->script("GET $download", [ until => 'room is gone' ],
    [ send => "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx" ]);

my $holder = $t->connect;
$holder->write($holder->build(GET => $download, @admin));
ok($t->wait_for(sub { locks() eq 'file.read:held' }), 'a download holds a key');

my $waiter = $t->connect;
$waiter->write($waiter->build(POST => $LEASES, @admin, body => lease_body(60000)));
ok($t->wait_for(sub { locks() eq 'file.read:held lease:waiting' }), 'a lease waits for it');

my ($segment) = glob $t->dir . '/data/journal/*.seg';
room(-s $segment);
$t->up->release('room is gone');

my $late = $waiter->response;
is($late->code, 'GATEWAY_RECORDER_UNAVAILABLE', 'when it is granted it cannot be kept');
ok($t->wait_for(sub { locks() eq '' }), 'and is not held by nobody');
is($holder->response->status, 200, 'the download came to its end');

my $r = command();
is($r->status, 503, 'C104: no room: strict is refused');
is($r->code, 'GATEWAY_RECORDER_UNAVAILABLE', 'in the envelope');

my @reads = map { $t->get("$execd/files/info?path=%2F$_") } 1 .. 20;
is_deeply([ map { $_->status } @reads ], [ (200) x 20 ], 'C104: best_effort passes');

is(command()->status, 503, 'strict still is refused');

sub lease {
    my $r = $t->post($LEASES, body => lease_body(0));
    $t->secret($r->json->{token}) if $r->status == 201;

    return $r;
}

is(lease()->code, 'GATEWAY_RECORDER_UNAVAILABLE', 'nor is a lease given');
is(locks(), '', 'and its keys are free');

room('unlimited');

my $after = $t->wait_for(sub { my $x = command(); $x->status == 200 ? $x : '' });
ok($after, 'C104: room again: all goes on');

for ($before, $after, @reads) {
    is($t->record($_)->{status}, 'succeeded', 'on record');
}

is($t->record($r)->{status}, 'failed', 'so is what was refused');
is(lease()->status, 201, 'the lease is given');
is_deeply([ $t->history->gaps('s1') ], [], 'nothing is missing');

$t->stop;
done_testing;
