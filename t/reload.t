#!/usr/bin/perl

# Reload, quit and death of workers: nothing that was acknowledged is lost, what
# is going on ends rightly, and every record ends.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use IO::Select;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $t = SandboxTest->new(workers => 2, main => 'worker_shutdown_timeout 20s;',
    # a worker is killed below, on purpose
    allow => [ qr/worker process \d+ exited on signal 9/ ])->start;
my $up = $t->up;
$t->sandbox('s1');
my $execd = '/v1/sandboxes/s1/proxy/44772';
my @done;

# A stream and a terminal live through a reload.

$up->script("POST $execd/command", FakeUpstream::stream_head(),
    [ event => FakeUpstream::event('init', text => 'c' x 32) ],
    [ pause => 1.5 ],
    [ event => FakeUpstream::event('stdout', text => 'after') ],
    [ event => FakeUpstream::event('execution_complete', execution_time => 1) ],
    [ chunk => '' ]);
my $stream = $t->connect;
$stream->write($stream->build(POST => "$execd/command",
    body => '{"command":"long"}', headers => [ $t->credential ]));
my $running = $stream->response(head_only => 1);
my $ws = $t->websocket("$execd/pty/p1/ws");
is($ws->status, 101, 'a terminal is open');
$ws->recv;
$up->clear;

# Load from two processes over three reloads.

my $stop = $t->dir . '/run/stop';
my @load = map { load($_) } 1 .. 2;

for (1 .. 3) {
    sleep 0.4;
    $t->reload;
}

sleep 0.3;
SandboxTest::write_file($stop, '');
my @loaded = map { results($_) } @load;

cmp_ok(scalar @loaded, '>', 50, scalar(@loaded) . ' commands over three reloads');
is(scalar(grep { $_->{status} != 200 } @loaded), 0, 'all answered with 200');

$stream->body($running);
ok($running->complete, 'the stream lived through it');
my $e = $t->record($running);
is($e->{status}, 'succeeded', 'with its end');
is($t->history->output($e->{event_id}, 'stdout', 's1'), "after\n",
   'and its output');

$ws->send(2, "\x00still here\n");
is($ws->recv->{payload}, "\x01still here\n", 'so did the terminal');
$ws->send(2, "\x00exit 0\n");
$ws->recv_until(sub { $_[0]{op} == 8 });
is($t->record($ws->response)->{status}, 'succeeded', 'with its end');

$t->wait_for(sub {
    my %have = map { $_->{event_id} => 1 } grep { $_->{status} eq 'succeeded' }
               $t->history->events('s1');
    return !grep { !$have{$_->{id}} } @loaded;
}, 5);
my %have = map { $_->{event_id} => $_->{status} } $t->history->events('s1');
is(scalar(grep { ($have{$_->{id}} // '') ne 'succeeded' } @loaded), 0,
   'every one of them is on record with its end');

# Learnt addresses are still known after a reload.

$t->endpoint('s1');
$t->reload;
$up->mark;
$t->get("$execd/ping");
is(($up->requests)[-1]{listener}, 'a', 'learnt addresses survive a reload');

# A worker that is killed: what it had begun ends as unknown.

$up->script('POST /proxy/44772/command', FakeUpstream::stream_head(),
    [ event => FakeUpstream::event('init', text => 'd' x 32) ],
    [ event => FakeUpstream::event('stdout', text => 'so far') ], [ 'hang' ]);
$up->script('GET /proxy/44772/command/status', FakeUpstream::answer(
    404, { code => 'INVALID_REQUEST_BODY' }));
my $c = $t->connect;
$c->write($c->build(POST => "$execd/command", body => '{"command":"x"}',
                    headers => [ $t->credential ]));
my $cut = $c->response(head_only => 1);
ok($t->wait_for(sub {
    $t->history->event($cut->header('X-Operation-Id'), 's1') }), 'begun');
my @workers = $t->worker_pids;
kill 'KILL', @workers;
ok($t->wait_for(sub {
    my @now = $t->worker_pids;
    return @now == 2 && !grep { my $p = $_; grep { $_ == $p } @workers } @now;
}), 'new workers are there');
$up->clear;
$e = $t->record($cut);
is($e->{status}, 'unknown', 'a worker died: unknown');
is($e->{wire}{reason}, 'worker_died', 'and why');
is($t->history->output($e->{event_id}, 'stdout', 's1'), "so far\n",
   'with the output so far');
ok($t->wait_for(sub {
    $t->post("$execd/command", body => '{"command":"echo"}')->status == 200 }),
   'and all goes on');

# QUIT while an operation waits for its answer.

$up->script('POST /proxy/44772/command', [ pause => 0.5 ],
    FakeUpstream::stream(
        FakeUpstream::event('init', text => 'e' x 32),
        FakeUpstream::event('execution_complete', execution_time => 1)));
$c = $t->connect;
$c->write($c->build(POST => "$execd/command", body => '{"command":"last"}',
                    headers => [ $t->credential ]));
$up->wait_request(qr{command}, listener => 'a', count => 3);
sleep 0.1;
kill 'QUIT', $t->{nginx_pid};
my $last = $c->response;
# else nginx lingers for 5 s, as behind any body
$c->close;
is($last->status, 200, 'QUIT: what is going on is finished');
$e = $t->record($last, timeout => 2);
is($e->{status}, 'succeeded', 'and recorded at once');
unlike($t->log_text, qr/may be lost/, 'no worker left with records unsent');

$t->stop;
done_testing;


# A process that sends commands until told to stop; its results go to a file.

sub load {
    my $n = shift;

    my $file = $t->dir . "/run/load.$n";
    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        open my $out, '>', "$file.new";

        while (!-e $stop) {
            my $r = $t->post("$execd/command", body => '{"command":"echo a"}');
            # a keep-alive-less connection may meet a closing listener: not sent
            next if !$r->status;
            print $out $r->status, ' ', $r->header('X-Operation-Id') // '-', "\n";
        }

        close $out;
        rename "$file.new", $file;
        POSIX::_exit(0);
    }

    return { pid => $pid, file => $file };
}


sub results {
    my $load = shift;

    waitpid $load->{pid}, 0;

    return map { my ($s, $id) = split ' '; { status => $s, id => $id } }
           split /\n/, SandboxTest::read_file($load->{file});
}
