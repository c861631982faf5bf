#!/usr/bin/perl

# Workers that leave (C153, C154), workers that stand still or die between others
# (C128, C156), zones that change with a reload (C155), clients that leave all at
# once (C157, C158), and what cannot be reloaded.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use ArchiveMaker qw(zip);
use FakeUpstream;
use SandboxLive qw(completed);
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $FULL = ($ENV{T_SCALE} // 1) >= 10;
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $slow = $FULL ? 30 : 2;


# --- C153: worker_shutdown_timeout ----------------------------------------------------

my $t = SandboxTest->new(main => "worker_shutdown_timeout ${slow}s;")->start;
my $up = $t->up;
$t->sandbox('s1', learn => 1);
$t->record($t->get("$execd/files/info?path=%2Ffirst"));

$up->script(qr{POST \S*/command$}, FakeUpstream::stream_head(),
    [ event => FakeUpstream::event('init', text => 'c' x 32) ],
    [ event => FakeUpstream::event('stdout', text => 'so far') ], [ 'hang' ]);
$up->script(qr{GET \S*/command/status}, FakeUpstream::answer(404, {}));

my @ws = map { $t->websocket("$execd/pty/p$_/ws") } 1 .. 10;
is(join(' ', map { $_->status } @ws), join(' ', (101) x 10),
   'C153: ten terminals');
$_->recv for @ws;
my ($c, $stream) = stream();
my ($worker) = $t->worker_pids;
my $begun = time;

$t->reload;
$ws[0]->send(2, "\x00still here\n");
is($ws[0]->recv->{payload}, "\x01still here\n",
   'C153: they live on in the old worker');
ok($t->wait_for(sub { !-d "/proc/$worker" }, $slow + 3),
   'C153: the old worker has left');
cmp_ok(time - $begun, '>', $slow - 0.3, 'C153: but not before the time-out');
is(join(' ', map { my $f = $_->recv(2);
                   $f ? "$f->{op}:" . unpack('n', $f->{payload}) : 'none' } @ws),
   join(' ', ('8:1012') x 10), 'C154: each is told to come again');
is(join(' ', map { my $e = $t->record($_->response);
                   "$e->{status} $e->{wire}{reason}" } @ws),
   join(' ', ('unknown worker_shutdown') x 10), 'C153: and on record');

my $e = $t->record($stream, timeout => 12);
is($e->{status}, 'unknown', 'C153: so is the command that ran');
is($t->history->output($e->{event_id}, 'stdout', 's1'), "so far\n",
   'C153: with what it wrote');

# the same when nginx as a whole is told to leave
{
    my $t = SandboxTest->new(main => "worker_shutdown_timeout ${slow}s;")->start;
    $t->sandbox('s1', learn => 1);
    my @ws = map { $t->websocket("$execd/pty/p$_/ws") } 1 .. 3;
    $_->recv for @ws;
    my $reader = SandboxLive->open($t, '/live');
    kill 'QUIT', $t->{nginx_pid};
    ok($reader->wait_for(sub { $_[0]->ended }), 'C153: nginx quits: live streams end at once');
    $ws[0]->send(2, "\x00still here\n");
    is($ws[0]->recv->{payload}, "\x01still here\n", 'C153: terminals do not');
    is(join(' ', map { my $f = $_->recv($slow + 3);
                       $f ? "$f->{op}:" . unpack('n', $f->{payload}) : 'none' } @ws),
       join(' ', ('8:1012') x 3), 'C153: until the time-out');
    is(join(' ', map { $t->record($_->response)->{wire}{reason} } @ws),
       join(' ', ('worker_shutdown') x 3), 'C153: and on record');
    $t->stop;
}

# C154: one generation of workers after another, each with its terminals, none stays

my ($reloads, $terminals, $pause) = $FULL ? (15, 100, 20) : (4, 1, 0);
my ($most, $times) = (0, $reloads * $terminals);

@ws = map {
    my @these = map { $t->websocket("$execd/pty/p$_/ws") } 1 .. $terminals;
    $t->reload;

    for (my $until = time + $pause; time < $until; sleep 0.5) {
        $most = memory($t) if memory($t) > $most;
    }

    $_->recv_until(sub { $_[0]{op} == 8 }, $slow) for $pause ? @these : ();
    @these;
} 1 .. $reloads;
ok($t->wait_for(sub { workers($t) == 1 }, $slow + 4),
   'C154: ' . ($reloads + 1) . ' generations, one is left');
is(join(' ', map { my $e = $t->record($_->response);
                   "$e->{status} $e->{wire}{reason}" } @ws),
   join(' ', ('unknown worker_shutdown') x $times), 'C154: all ended');
cmp_ok($most, '<', 3 * memory($t) + 64 * 1024,
       "C154: all workers together had $most KiB at most") if $pause;


# --- C155: another size of the zone ---------------------------------------------------

$t->endpoint('s1');
$t->{http} = 'sandbox_endpoint_zone 2m;';
SandboxTest::write_file($t->dir . '/conf/nginx.conf', $t->conf_text);
my $held = $t->websocket("$execd/pty/p1/ws");
$t->reload;
is($t->get("$execd/files/info?path=%2Fa")->status, 200,
   'C155: the zone has another size: the server proxy serves');
ok($t->wait_for(sub {
       $t->endpoint('s1');
       my $r = $t->get("$execd/files/info?path=%2Fb");
       ($t->record($r)->{wire}{route} // '') eq 'straight' }),
   'C155: and addresses are learnt anew');
$held->recv;
$held->send(2, "\x00exit 0\n");
$held->recv_until(sub { $_[0]{op} == 8 });
is($t->record($held->response)->{status}, 'succeeded',
   'C155: the old worker ends what it has');
$up->clear;
$t->stop;


# --- C156, C128: one worker stands still, another dies -----------------------------

$t = SandboxTest->new(workers => 2,
    allow => [ qr/worker process \d+ exited on signal 9/ ])->start;
$t->sandbox('s1', learn => 1);
$t->record(command());

my ($still, $dies) = $t->worker_pids;
my %to;
ok($t->wait_for(sub {
       %to = $t->to_each_worker;
       !grep { $_->request(GET => '/console/api/v1/overview',
                           headers => [ $t->credential ])->status != 200 } values %to }),
   'C156: both have the helper');
my @readers = map { SandboxLive->open($t, '/live', conn => $to{$_}, once => 1,
                                      query => 'type=command.*') } $still, $dies;
kill 'STOP', $still;
my %answers = map { $_ => command(timeout => 0.5) } 1 .. 12;
kill 'KILL', $dies;
ok($t->wait_for(sub { grep { $_ != $still && $_ != $dies } $t->worker_pids }),
   'C156: another worker');
my $served = grep { (eval { command(timeout => 0.5)->status } // 0) == 200 } 1 .. 12;
cmp_ok($served, '>', 0, 'C128: it serves while one stands still');
# longer than the helper waits for one that died; what happens meanwhile waits for it
for (my $until = time + ($FULL ? 125 : 2.5); time < $until; sleep 0.02) {
    eval { command(timeout => 0.5) };
}
kill 'CONT', $still;
ok($t->wait_for(sub {
    6 == grep { (eval { command(timeout => 1)->status } // 0) == 200 } 1 .. 6 }),
   'C156: it goes on as if nothing had been');
my $last = 'echo ' . SandboxTest::random_text(12);
$t->post("$execd/command", body => qq({"command":"$last"}));
ok($readers[0]->until(completed($last), 30), 'C156: and tells its readers all of it');
ok($readers[1]->wait_for(sub { $_[0]->ended }), 'C156: those of the dead one have to come again');
ended($t, 'C156');
$t->stop;


# --- C156: a worker dies with what it had not sent ---------------------------------

$t = SandboxTest->new(
    allow => [ qr/worker process \d+ exited on signal 9/ ])->start;
$t->sandbox('s1', learn => 1);
$t->record(command());

$t->kill_helper;
my @reads = map { $t->get("$execd/files/info?path=%2F$_") } 1 .. 7;
is(join(' ', map { $_->status } @reads), join(' ', (200) x 7),
   'C156: the helper is away, reads pass');
kill 'KILL', $t->worker_pids;
$t->start_helper;
ok($t->wait_for(sub { lost($t) >= 7 }), 'C156: who comes after it says how many '
                                        . 'operations went with it');
is(lost($t), 7, 'C156: just these');
ended($t, 'C156');
$t->stop;


# --- C157, C158: clients that leave all at once -----------------------------------------

# an archive is looked into meanwhile

$t = SandboxTest->new(workers => 2, location => 'sandbox_policy policy;');
SandboxTest::write_file("$t->{dir}/conf/policy",
    "deny unsafe { operation file.write; archive unsafe; }\ndefault allow;\n");
$t->start;
$up = $t->up;
$t->sandbox('s1', learn => 1);
$t->record(command());
$up->script(qr{GET \S*/command/status}, FakeUpstream::answer(404, {}));

my $archive = SandboxTest::upload_body('/workspace/a.zip',
    zip([ map { { name => "f$_", data => 'x' x 1000 } } 1 .. 50 ]));
my %fds = map { $_ => open_files($_) } $t->worker_pids;

# 100,000 clients and 10 minutes, or four waves

my $first = time;

for (my $wave = 1; $FULL ? $wave * 60 <= 100_000 || time < $first + 600 : $wave <= 4; $wave++) {
    kill 'STOP', $t->{helper_pid} if $wave % 2;
    my @c = map { $t->connect } 1 .. 60;

    for my $i (0 .. $#c) {
        my ($method, $target, $body) = (
            [ POST => "$execd/command", '{"command":"echo 1; echo 2"}' ],
            [ GET => "$execd/files/info?path=%2Fa", '' ],
            [ GET => '/v1/sandboxes/s1/endpoints/44772', '' ],
            [ GET => "$execd/files/download?path=%2Fa", '' ],
            [ POST => '/v1/sandboxes', '{"image":{"uri":"x"}}' ],
            [ POST => "$execd/files/upload", $archive ],
        )[$i % 6]->@*;
        $c[$i]->write($c[$i]->build($method => $target, headers => [ $t->credential,
                ($i % 6 == 5 ? 'Content-Type: multipart/form-data; boundary=B' : ()) ],
            $body ? (body => $body) : ()));
    }

    sleep 0.001 * (1 + ($wave - 1) % 40);
    $_->${\ (rand() < 0.5 ? 'reset' : 'close')} for @c;
    kill 'CONT', $t->{helper_pid};
}

ok($t->wait_for(sub { command()->status == 200 }), 'C157, C158: all goes on');
is(join(' ', sort $t->worker_pids), join(' ', sort keys %fds),
   'C158: with the same workers');
ended($t, 'C158', $FULL ? 120 : 20);
ok($t->wait_for(sub { !grep { open_files($_) > $fds{$_} + 34 } keys %fds }),
   'C158: no descriptor stays but idle ones to upstream');
$t->stop;


# --- master_process off -----------------------------------------------------------------

$t = SandboxTest->new(main => 'master_process off;', allow => [
    qr/\[emerg\].*cannot be reloaded/ ])->start;
$t->sandbox('s1', learn => 1);
is(command()->status, 200, 'master_process off: it serves');
kill 'HUP', $t->{nginx_pid};
ok($t->wait_for(sub { $t->log_text =~ /master_process off.*cannot be reloaded/ }),
   'a reload is refused, with a word');
is($t->record(command())->{status}, 'succeeded', 'and all goes on as it was');
$t->stop;

done_testing;


sub command { $t->post("$execd/command", body => '{"command":"echo hi"}', @_) }


sub stream {
    my $c = $t->connect;
    $c->write($c->build(POST => "$execd/command", body => '{"command":"x"}',
                        headers => [ $t->credential ]));

    return ($c, $c->response(head_only => 1));
}


# Workers, those that are shutting down among them.

sub workers {
    my $t = shift;

    return grep { SandboxTest::read_file("/proc/$_/cmdline") =~ /worker process/ }
           split ' ', SandboxTest::read_file("/proc/$t->{nginx_pid}/task/"
                                             . "$t->{nginx_pid}/children");
}


# KiB that they have in memory, all of them.

sub memory {
    my $t = shift;

    my $kib = 0;
    $kib += $_ // 0 for map { SandboxTest::read_file("/proc/$_/status") =~ /^RssAnon:\s+(\d+)/m }
                        workers($t);

    return $kib;
}


# Operations that gaps stand for, of workers that were killed.

sub lost {
    my $t = shift;

    my $n = 0;
    $n += $_->[0] for $t->history->rows('select coalesce(sum(operations), 0)'
        . " from gateway_gaps where reason = 'worker_died'");

    return $n;
}


sub open_files { scalar(my @fds = glob "/proc/$_[0]/fd/*") }


# Every record has its end, and its number.

sub ended {
    my ($t, $name, $timeout) = @_;

    my @open;
    $t->wait_for(sub {
        @open = $t->history->rows('select event_id, operation_type from'
                                  . " history_events where status = 'started'");
        return !@open;
    }, $timeout // 8);
    is(join(' ', map { "@$_" } @open), '', "$name: started = ended");
    is(join(' ', $t->history->broken), '', "$name: integrity_check: ok");
}
