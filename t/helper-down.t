#!/usr/bin/perl

# When the helper is dead, mute or not there: what must be on record is refused
# within two seconds, the rest passes and is counted in a gap; when it is back all
# goes on, and nothing that was acknowledged is missing.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $t = SandboxTest->new->start;
my $up = $t->up;
$t->sandbox($_) for qw(s1 s2 s3);
my $execd = '/v1/sandboxes/s1/proxy/44772';
my @ids;

sub command { $t->post("$execd/command", body => '{"command":"echo hi"}') }

push @ids, command()->header('X-Operation-Id') for 1 .. 5;
$t->record($ids[-1]);
$t->record($t->get('/v1/sandboxes/s3/proxy/44772/files/info?path=%2Fa'));

# Killed while nothing is going on.

$t->kill_helper;
$up->mark;

my $slowest = 0;

for (1 .. 3) {
    my $started = time;
    my $r = command();
    my $took = time - $started;
    $slowest = $took if $took > $slowest;
    is($r->status, 503, 'helper dead: strict is refused');
    is($r->code, 'GATEWAY_RECORDER_UNAVAILABLE', 'in the envelope');
    ok($r->header('Retry-After'), 'with Retry-After');
    ok($r->header('X-Operation-Id'), 'and an operation id');
}

cmp_ok($slowest, '<', 2.3, 'within two seconds');
is(scalar $up->requests, 0, 'and nothing of it reached upstream');

my $started = time;
my @reads = map { $t->get("$execd/files/info?path=%2F$_") } 1 .. 7;
is_deeply([ map { $_->status } @reads ], [ (200) x 7 ], 'best_effort passes');
cmp_ok(time - $started, '<', 1, 'without waiting');
is($t->get("$execd/ping")->status, 200, 'so does what is off');

my @lost = ($t->get('/v1/sandboxes/s2/proxy/44772/files/info?path=%2Fa'));

# Who has no credential is refused, and named in no history of a sandbox.

my @strangers = map { $t->get('/v1/sandboxes/s3/proxy/44772/files/info?path=%2Fa',
                              token => undef) } 1 .. 3;
is_deeply([ map { $_->status } @strangers ], [ (401) x 3 ], 'strangers');

# Back again.

$t->start_helper;
my $back = $t->wait_for(sub { my $r = command(); $r->status == 200 ? $r : '' });
ok($back, 'the helper is back: all goes on');
push @ids, $back->header('X-Operation-Id');
ok($t->record($back)->{event_id}, 'and is recorded');

# What passed meanwhile is either on record or in a gap that says how many.

my %known = map { $_->{event_id} => $_ } map { $t->history->events($_) } qw(s1 s2);
my $recorded = grep { $known{$_->header('X-Operation-Id')} } @reads, @lost;
my $gap_count = gap_operations();
is($recorded + $gap_count, 8 + @strangers,
   "eight operations passed, three did not: $recorded on record, $gap_count in gaps");
is_deeply([ $t->history->gaps('s3') ], [], 'the gap of strangers is in no sandbox');
is($t->history->value('_gateway', 'select sum(operations) from gateway_gaps'),
   @strangers + @lost, 'but in _gateway, as is that of s2, which has no file yet');

for my $gap ($t->history->gaps('s1')) {
    is($gap->{status}, 'unknown', 'a gap is unknown');
    cmp_ok($gap->{record_seq}, '>', 0, 'with a number of its own');
}

# Everything acknowledged before is still there, once.

for my $id (@ids) {
    is($t->history->value('s1', 'select count(*) from history_events where'
                                . " event_id = '$id'"), 1, 'kept: once');
}

my @all = $t->records('s1');
is_deeply([ map { $_->{record_seq} } @all ], [ 1 .. @all ], 'no number is missing');

# Killed while an operation runs: its record ends all the same.

my $id = 'c' x 32;
$up->script("POST $execd/command", FakeUpstream::stream_head(),
    [ event => FakeUpstream::event('init', text => $id) ],
    [ event => FakeUpstream::event('stdout', text => 'before') ],
    [ pause => 0.8 ],
    [ event => FakeUpstream::event('stdout', text => 'between') ],
    [ pause => 0.8 ],
    [ event => FakeUpstream::event('stdout', text => 'after') ],
    [ event => FakeUpstream::event('execution_complete', execution_time => 1) ],
    [ chunk => '' ]);
my $c = $t->connect;
$c->write($c->build(POST => "$execd/command", body => '{"command":"x"}',
                    headers => [ $t->credential ]));
my $r = $c->response(head_only => 1);
sleep 0.3;
$t->kill_helper;
sleep 0.8;
$t->start_helper;
$c->body($r);
ok($r->complete, 'killed in mid-stream: the client notices nothing');
my $e = $t->record($r);
is($e->{status}, 'succeeded', 'and the record has its end');
is($t->history->output($e->{event_id}, 'stdout', 's1'),
   "before\nbetween\nafter\n", 'with all of its output, once');
$up->clear;

# Killed while a strict operation waits: it is refused, or goes on once.

my @answers;

for my $round (1 .. 3) {
    $up->mark;
    my @conn = map {
        my $c = $t->connect;
        $c->write($c->build(POST => "$execd/command",
            body => qq({"command":"echo $round"}), headers => [ $t->credential ]));
        $c;
    } 1 .. 8;
    $t->kill_helper;
    sleep 0.1;
    $t->start_helper;
    my @r = map { $_->response } @conn;
    my $passed = grep { $_->status == 200 } @r;
    is(scalar(grep { $_->status != 200 && $_->status != 503 } @r), 0,
       'killed under load: passed or refused, nothing else');
    is(scalar(() = $up->requests(qr{/command})), $passed,
       "$passed passed, each once");
    push @answers, grep { $_->status == 200 } @r;
}

is(scalar(grep { !$t->record($_)->{event_id} } @answers), 0,
   'what passed is on record');

# A helper that is stopped (SIGSTOP) does not answer: the same 2 s.

kill 'STOP', $t->{helper_pid};
$started = time;
$r = command();
my $took = time - $started;
kill 'CONT', $t->{helper_pid};
is($r->status, 503, 'a helper that hangs: strict is refused');
cmp_ok($took, '>', 1.5, 'after sandbox_timeout');
cmp_ok($took, '<', 2.5, 'which is two seconds');
ok($t->wait_for(sub { command()->status == 200 }), 'then it goes on');

# Clients that leave while their operation waits for the helper: nothing of it
# happens, and each is on record as cancelled by its client.

$up->mark;
kill 'STOP', $t->{helper_pid};
my @waiting = map {
    my $c = $t->connect;
    $c->write($c->build(POST => "$execd/command", headers => [ $t->credential,
        'X-Run-Id: left' ], body => '{"command":"echo left"}'));
    $c;
} 1 .. 20;
sleep 0.3;
$waiting[$_]->${\ ($_ % 2 ? 'reset' : 'close')} for 0 .. $#waiting;
sleep 0.3;
kill 'CONT', $t->{helper_pid};
ok($t->wait_for(sub { command()->status == 200 }),
   'clients left while waiting: all goes on');
is(scalar(grep { $_->{body} =~ /left/ } $up->requests), 0,
   'nothing of theirs was forwarded');

my @left;
$t->wait_for(sub {
    @left = grep { ($_->{run_id} // '') eq 'left' } $t->history->events('s1');
    return @left >= 20 && !grep { $_->{status} eq 'started' } @left;
});
is_deeply([ map { "$_->{status} $_->{wire}{reason}" } @left ],
          [ ('cancelled client_disconnected') x 20 ],
          'each is on record as cancelled');

# Ended in good order: what it acknowledged is in the files. (Ends that nobody
# waits for are on their way within 5 ms.)

push @ids, command()->header('X-Operation-Id') for 1 .. 20;
sleep 0.1;
$t->kill_helper('TERM');
is($?, 0, 'SIGTERM: exit 0');
my $kept = grep {
    $t->history->value('s1', "select count(*) from history_events where"
                             . " event_id = '$_' and status = 'succeeded'") == 1
} @ids;
is($kept, scalar @ids, 'everything is applied, nothing twice');
$t->start_helper;

$t->stop;

# A gateway that starts without a helper serves what it may.

$t = SandboxTest->new(helper => 0)->start;
$t->sandbox('s1');
my $passed = $t->get("$execd/files/info?path=%2Fa");
is($passed->status, 200, 'never there: best_effort passes');
$started = time;
is(command()->status, 503, 'strict is refused');
cmp_ok(time - $started, '<', 2.5, 'in time');
$t->start_helper;
ok($t->wait_for(sub { command()->status == 200 }), 'started later: it is found');
ok($t->wait_for(sub {
       $t->history->index->{$passed->header('X-Operation-Id')} })
   || gap_operations() >= 1, 'and told what it missed');

$t->stop;
done_testing;


# Operations that all gaps together stand for.

sub gap_operations {
    my $n = 0;

    $t->wait_for(sub {
        $n = 0;
        $n += $t->history->value($_, 'select coalesce(sum(operations), 0)'
                                     . ' from gateway_gaps') // 0
            for $t->history->dirs;
        return $n;
    }, 2);

    return $n;
}
