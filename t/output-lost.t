#!/usr/bin/perl

# Output while the helper takes nothing (C111): the queue keeps what it has room
# for, the client gets all of it, and the record says how many bytes are missing,
# of commands and of terminals.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use JSON::PP;
use SandboxTest;
use Test::More;

my $QUEUE = 1 << 20;
my $LINES = 8 * 1024;

my $line = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.' x 16;
my $total = $LINES * (length($line) + 1);

my $t = SandboxTest->new(
    http => "sandbox_queue $QUEUE;",
    location => 'sandbox_record command.execute best_effort;
                 sandbox_record pty.open best_effort;',
)->start;
my $up = $t->up;
my ($worker) = $t->worker_pids;
my $execd = '/v1/sandboxes/s1/proxy/44772';

$t->sandbox('s1');


# --- a command --------------------------------------------------------------------

my $frame = FakeUpstream::Connection::encode_event(
    FakeUpstream::event('stdout', text => $line)) . "\n\n";

$up->script('POST /v1/sandboxes/s1', FakeUpstream::stream_head(),
    [ event => FakeUpstream::event('init', text => 'c' x 32) ],
    [ event => FakeUpstream::event('stderr', text => 'begun') ],
    [ until => 'stopped' ],
    [ repeat => $LINES / 64, [ chunk => $frame x 64 ] ],
    [ event => FakeUpstream::event('execution_complete', execution_time => 9) ],
    [ chunk => '' ]);

my $c = $t->connect;
$c->write($c->build(POST => "$execd/command", headers => [ $t->credential ],
                    body => '{"command":"yes"}'));
my $r = $c->response(head_only => 1);
ok($t->record($r, started => 1)->{event_id}, 'a command has begun');
ok($t->wait_for(sub {
    $t->history->output($r->header('X-Operation-Id'), 'stderr', 's1') ne ''
}, 8), 'what it says is kept');

kill 'STOP', $t->{helper_pid};
my $before = rss();
$up->release('stopped');

my $bytes = 0;
my $last = '';
$c->body($r, timeout => 60, on_data => sub {
    $bytes += length $_[0];
    $last = substr $last . $_[0], -200;
});

ok($r->complete, 'the client gets its output to the end');
cmp_ok($bytes, '>=', $LINES * length $frame, 'all of it');
like($last, qr/execution_complete/, 'and how it ended');
cmp_ok(rss() - $before, '<', 6 * 1024,
       'the worker keeps what the queue has room for (KiB)');

kill 'CONT', $t->{helper_pid};

my $e = $t->record($r, timeout => 30);
my $kept = length $t->history->output($e->{event_id}, 'stdout', 's1');

is($e->{status}, 'succeeded', 'the command is on record with its end');
is($e->{command}{output_complete}, 0, 'its output is not whole');
is($e->{command}{history_storage_state}, 'partial', 'and the record says so');
is($e->{result}{stdout_total_bytes}, $total, 'with its true size')
    or diag($e->{result_json});
cmp_ok($kept, '<', $total, 'some of it is missing');
cmp_ok($kept, '>', $QUEUE / 2, 'what the queue held is kept');
is($e->{result}{output_lost_bytes}, $total - $kept,
   'the record counts what is missing, to the byte');
is(lost(), $total - $kept, 'and so do the metrics');


# --- one that comes after it ------------------------------------------------------

$up->script('POST /v1/sandboxes/s1', FakeUpstream::stream(
    FakeUpstream::event('init', text => 'c' x 32),
    FakeUpstream::event('stdout', text => 'whole'),
    FakeUpstream::event('execution_complete', execution_time => 1)));
$e = $t->record($t->post("$execd/command", body => '{"command":"x"}'));
is($e->{command}{output_complete}, 1, 'the next one is whole');
is($e->{result}{output_lost_bytes}, undef, 'nothing of it is missing');
is($t->history->output($e->{event_id}, 'stdout', 's1'), "whole\n", 'as it was');

# --- a terminal -------------------------------------------------------------------

my $N = 512;
my $shown = 'x' x 8192;

$up->script("GET /v1/sandboxes/s1/proxy/44772/pty/p1/ws", [ 'ws_accept' ],
    [ frame => 2, "\x01begun" ], [ until => 'again' ],
    [ repeat => $N, [ frame => 2, "\x01$shown" ] ],
    [ frame => 8, pack 'n', 1000 ], [ ws_recv => 1 ], [ 'close' ]);

my $ws = $t->websocket("$execd/pty/p1/ws");
is($ws->status, 101, 'a terminal is opened');
is(substr($ws->recv->{payload}, 1), 'begun', 'and shows something');
my $id = $ws->response->header('X-Operation-Id');
ok($t->wait_for(sub { $t->history->output($id, 'stdout', 's1') eq 'begun' }, 8),
   'which is kept');

my $lost = lost();
kill 'STOP', $t->{helper_pid};
$up->release('again');
my $seen = 0;
$ws->recv_until(sub { $seen += length($_[0]{payload}) - 1 if $_[0]{op} == 2;
                      $_[0]{op} == 8 }, 30);
is($seen, $N * length $shown, 'the client gets all that it shows');
$ws->close_frame;
$ws->close;
kill 'CONT', $t->{helper_pid};

$e = $t->record($id, timeout => 30);
$kept = length $t->history->output($id, 'stdout', 's1');
$total = length('begun') + $N * length $shown;

cmp_ok($kept, '<', $total, 'the terminal: some of it is missing');
is($e->{result}{output_lost_bytes}, $total - $kept, 'it is counted to the byte')
    or diag($e->{result_json});
is($e->{result}{output_complete}, JSON::PP::false, 'and not called whole');
is(lost() - $lost, $total - $kept, 'the metrics count it, too');

$t->stop;
done_testing;


sub rss {
    return SandboxTest::read_file("/proc/$worker/status")
           =~ /^VmRSS:\s+(\d+)/m ? $1 : die "no size of the worker\n";
}


sub lost {
    return $t->get('/console/api/v1/metrics')->content
           =~ /^sandbox_gateway_output_lost_bytes_total (\d+)$/m ? $1 : undef;
}
