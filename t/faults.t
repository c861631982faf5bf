#!/usr/bin/perl

# What the machine may run out of: room for the history, room for bodies,
# descriptors in a worker and in the helper.  Each ends with an answer that says
# so, nothing that was acknowledged is missing, and it recovers by itself.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Fcntl qw(F_GETFD F_SETFD FD_CLOEXEC);
use FakeUpstream;
use SandboxLive;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $shim = "$SandboxProcess::BUILD/t/shim_disk.so";
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $FULL = ($ENV{T_SCALE} // 1) >= 10;
my $sanitized = qx(ldd $SandboxProcess::BUILD/sandbox-helper) =~ /lib[at]san/;

my $dir = File::Temp->newdir('sandbox-t-XXXXXX', TMPDIR => 1);
my $file;

chmod 0755, "$dir";
open $file, '+>:raw', "$dir/disk" or die "$dir/disk: $!\n";
chmod 0666, "$dir/disk";
full('');

my $t = SandboxTest->new(conf => sub {
    $_[0] =~ s/proxy_request_buffering off/proxy_request_buffering on/r;
}, location => 'client_body_buffer_size 16k; sandbox_timeout 500ms;',
    # what is provoked here
    allow => [ qr/pwrite\(\) .*No space left/, qr/Too many open files/,
               qr/No space left on device/ ]);

SKIP: {
    skip 'the sanitizers want to be loaded first', 1 if $sanitized;
    -e $shim or die "$shim is missing: run make unit\n";
    local @ENV{qw(LD_PRELOAD SHIM_DISK)} = ($shim, "$dir/disk");
    $t->start;
    pass('a disk that can be full');
}

$t->start if $sanitized;

my $up = $t->up;
$t->sandbox($_, learn => 1) for qw(s1 s2);

sub command { $t->post("$execd/command", body => '{"command":"echo hi"}', @_) }

is($t->record(command())->{status}, 'succeeded', 'all is well');


# --- no room for the history --------------------------------------------------------

SKIP: {
    skip 'no shim', 6 if $sanitized;

    full('/data/history/');
    my @answers = map { command() } 1 .. 20;
    push @answers, $t->post('/v1/sandboxes/s2/proxy/44772/command',
                            body => '{"command":"echo first"}');
    is(join(' ', grep { $_->status != 200 } @answers), '',
       'no room for the history: all goes on');
    ok($t->wait_for(sub { $t->log_text('helper.log')
                          =~ /\[(?:warn|error)\][^\n]*history/ }),
       'the helper says so');
    cmp_ok(full(), '>', 0, 'writes have failed');
    sleep 1;
    cmp_ok(scalar(() = $t->log_text('helper.log') =~ /cannot/g), '<', 20,
           'but not without end');
    push @answers, command();
    is($answers[-1]->status, 200, 'and goes on');

    full('');
    my @missing = grep { ($t->record($_, timeout => 12)->{status} // '')
                         ne 'succeeded' } @answers;
    is(scalar @missing, 0, 'room again: all ' . @answers . ' are on record');
    is(join(' ', $t->history->broken), '', 'integrity_check: ok');
}


# --- C110: a slow disk under the history ---------------------------------------------

SKIP: {
    skip 'no shim', 5 if $sanitized;

    # in small not the slowest percent, but the one in the middle: who has so few
    # of a machine that does other things would see those

    my ($streams, $requests, $which) = $FULL ? (500, 2000, 0.99) : (50, 40, 0.5);
    my @idle = map { SandboxLive->open($t, '/live', query => 'type=nothing.*') }
        1 .. $streams;
    is(scalar(grep { $_->wait_for(sub { defined $_[0]->id }) } @idle), $streams,
       "C110: $streams idle streams");

    my @plain = map { [ paced() ] } 1 .. $requests / 2;
    full('200:/data/history/');
    my (@slow, $writes);
    my $until = time + $requests / 2;

    do {
        push @slow, [ paced() ];
        $writes = full();
    } while (($writes < 6 || @slow < $requests) && time < $until);

    full('');

    my ($before, $meanwhile) = map { (sort { $a <=> $b } map { $_->[1] } @$_)[@$_ * $which] }
        \@plain, \@slow;
    cmp_ok($writes, '>', 0, "C110: $writes writes of history took 200 ms each");
    cmp_ok($meanwhile, '<', $before + 0.15, sprintf 'C110: a request takes %.0f ms, and'
           . ' took %.0f', 1000 * $meanwhile, 1000 * $before);

    my %at = map { $slow[$_][0]->header('X-Operation-Id') => $_ } 0 .. $#slow;
    my @missing = grep { ($t->record($_->[0], timeout => 30)->{status} // '')
                         ne 'succeeded' } @slow;
    is(scalar @missing, 0, 'C110: all are on record');
    is(join(' ', grep { defined } map { $at{ $_->{event_id} } } $t->history->query('s1',
           'select event_id from history_events order by seq')),
       join(' ', 0 .. $#slow), 'C110: in their order');
    $_->close for @idle;
}


# --- no room for bodies -------------------------------------------------------------

SKIP: {
    skip 'no shim', 6 if $sanitized;

    my $body = part('name="metadata"; filename="m"', '{"path":"/w/big"}')
        . part('name="file"; filename="f"', 'x' x 300_000) . "--B--\r\n";
    my @upload = ("$execd/files/upload", body => $body,
                  headers => [ 'Content-Type: multipart/form-data; boundary=B' ]);

    is($t->post(@upload)->status, 200, 'room for a body');
    $up->mark;
    full('/temp/body/');
    my $r = $t->post(@upload);
    full('');
    is($r->status, 503, 'no room for it: 503');
    is($r->code, 'GATEWAY_OVERLOADED', 'which says why');
    ok($r->header('Retry-After'), 'and to come back');
    is(scalar $up->requests, 0, 'nothing of it went upstream');
    my $e = $t->record($r);
    is("$e->{status} $e->{result}{error_code}", 'failed GATEWAY_OVERLOADED',
       'it is on record');
    is($t->post(@upload)->status, 200, 'room again');
}


# --- no descriptors in a worker -----------------------------------------------------

my ($worker) = $t->worker_pids;
my $held = $t->connect;
$held->write($held->build(GET => "$execd/files/info?path=%2Fheld",
                          headers => [ $t->credential ]));
is($held->response->status, 200, 'a connection is there');

descriptors($worker, 3);
$up->mark;
my @other = map { $t->connect } 1 .. 3;
$held->write($held->build(POST => '/v1/sandboxes/s2/proxy/44772/command',
    headers => [ $t->credential, 'Connection: close' ],
    body => '{"command":"echo none"}'));
my $r = $held->response(timeout => 5);
like($r->status, qr/^(?:200|50[0234])$/,
     'no descriptors: a connection that is there gets an answer');
like($r->code // '', qr/^GATEWAY_/, 'in the envelope') if $r->status != 200;
ok($t->record($r)->{status}, 'on record');
descriptors($worker, 1024);
$_->close for @other;
ok($t->wait_for(sub { (eval { command(timeout => 2)->status } // 0) == 200 }, 8),
   'descriptors again: all goes on');
is(join(' ', $t->worker_pids), $worker, 'with the same worker');


# --- no descriptors in the helper ---------------------------------------------------

my $helper = $t->{helper_pid};
descriptors($helper, 3);

# an old worker that stays holds its connections; a new sandbox wants a file
my $ws = $t->websocket("$execd/pty/p1/ws");
is($ws->status, 101, 'a terminal is open');
$t->sandbox('s3');
my @answers = (command(), $t->post('/v1/sandboxes/s3/proxy/44772/command',
                                   body => '{"command":"echo new"}'));
is($answers[0]->status, 200, 'no descriptors in the helper: all goes on');
kill 'HUP', $t->{nginx_pid};
$t->wait_for(sub { my @now = $t->worker_pids; @now && $now[0] != $worker });
my $before = cpu($helper);
sleep 0.5;
cmp_ok(cpu($helper) - $before, '<', 8, 'it does not turn in circles');
is(command()->status, 503, 'a worker that it cannot accept refuses');
$ws->conn->close;
descriptors($helper, 1024);
ok($t->wait_for(sub { command()->status == 200 }, 8),
   'descriptors again: all goes on');
push @answers, command();
is(join(' ', map { $t->record($_)->{status} // 'none' }
        grep { $_->status == 200 } @answers),
   join(' ', ('succeeded') x grep { $_->status == 200 } @answers),
   'all is on record');
is($t->{helper_pid}, $helper, 'with the same helper');

# --- no descriptor for what the helper's threads wake it by -----------------------------

# Not one of them may be missing: without the last, --sync full would acknowledge
# what is not flushed.

SKIP: {
    skip 'the sanitizers want to be loaded first', 3 if $sanitized;

    my ($n, $ready, @said) = (0, 0);

    while (!$ready && $n++ < 20) {
        ($ready, my $text) = started($n);
        push @said, $text if !$ready;
    }

    cmp_ok($n, '>', 8, 'eight events, and --sync full starts with none less');
    ok($ready, 'but with all');
    is(scalar(grep { !/\Asandbox-helper: [^\n]+\n\z/ } @said), 0,
       'each time it says so, in one sentence') or diag(@said);
}

$t->stop;
done_testing;


# Starts a helper whose n-th eventfd cannot be had: whether it is ready, and what
# it said.

sub started {
    my $n = shift;

    pipe my $ready, my $tell or die "pipe: $!\n";
    fcntl $tell, F_SETFD, fcntl($tell, F_GETFD, 0) & ~FD_CLOEXEC;
    local @ENV{qw(LD_PRELOAD SHIM_EVENTFD)}
        = ("$SandboxProcess::BUILD/t/shim_eventfd.so", $n);
    my $pid = SandboxProcess->spawn("$dir/said-$n",
        "$SandboxProcess::BUILD/sandbox-helper", '--data', "$dir/events",
        '--socket', "$dir/events.sock", '--log', "$dir/events.log", '--sync',
        'full', '--ready-fd', fileno $tell);
    close $tell;

    my $is = sysread $ready, my $byte, 1;
    kill 'TERM', $pid;
    SandboxProcess::reaped($pid, 10) or die "$pid does not end\n";

    return ($is, SandboxTest::read_file("$dir/said-$n"));
}


# The paths of what cannot be written; how many writes have failed before.

# The answer to a command, and how long it took.

sub timed {
    my $began = time;
    my $r = command();

    return ($r, time - $began);
}


# The same, 100 times a second.

my $next;

sub paced {
    sleep $next - time if $next && $next > time;
    $next = time + 0.01;

    return timed();
}


sub full {
    my $part = shift;

    sysseek $file, 0, 0;
    my $n = sysread $file, my $old, 8;

    if (defined $part) {
        sysseek $file, 0, 0;
        syswrite $file, pack 'q Z248', 0, $part;
    }

    return $n ? unpack 'q', $old : 0;
}


sub part {
    my ($disposition, $body) = @_;

    return "--B\r\nContent-Disposition: form-data; $disposition\r\n\r\n"
           . "$body\r\n";
}


# The soft limit concerns new ones; those that are open stay.

sub descriptors {
    my ($pid, $n) = @_;

    my ($uid, $gid) = (stat "/proc/$pid")[4, 5];
    my @as = $> == $uid ? () : ('setpriv', "--reuid=$uid", "--regid=$gid",
                             '--clear-groups');
    system(@as, 'prlimit', "--pid=$pid", "--nofile=$n:") == 0
        or die "prlimit: $?\n";
}


# Clock ticks that a process has used.

sub cpu {
    my @f = split ' ', SandboxTest::read_file("/proc/$_[0]/stat") =~ s/^.*\) //r;

    return $f[11] + $f[12];
}
