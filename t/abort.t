#!/usr/bin/perl

# Clients that leave at any moment, an upstream that breaks off, a helper that
# hangs, dies and is replaced, and reloads, all at once: nothing goes upstream
# that had to be on record and is not, nothing goes twice, every operation is on
# record once or counted in a gap, and every record has its end.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use POSIX qw(_exit WNOHANG);
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $execd = '/v1/sandboxes/s1/proxy/44772';
my $upload = 'Content-Type: multipart/form-data; boundary=B';
my $FULL = ($ENV{T_SCALE} // 1) >= 10;

# type, status, end, correlation of every operation, as nginx saw them
my %log = (
    http   => q{log_format ops '$sandbox_operation_id $sandbox_operation }
              . q{$status $sandbox_status $http_x_correlation_id';},
    server => 'access_log logs/ops.log ops;',
);


# --- everything at once -------------------------------------------------------------

my $t = SandboxTest->new(workers => 2, %log)->start;
my $up = $t->up;
$t->sandbox('s1', learn => 1);
$t->record($t->get("$execd/files/info?path=%2Ffirst"));

# a read that is cut in its head and one that is cut in its body
$up->script(qr{^GET /files/info\?path=%2Fcut}, [ send => 'HTTP/1.1 2' ],
            ['reset']);
$up->script(qr{^GET /files/download}, [ send => "HTTP/1.1 200 OK\r\n"
            . "Content-Length: 100\r\n\r\nhalf" ], [ 'close' ]);

my $until = time + 5;
my @load = map { load($_) } 1 .. 5;
my $n = 0;

while (time < $until - 0.7) {
    my $what = $n++ % 4;

    if ($what == 0) {
        kill 'STOP', $t->{helper_pid};
        sleep 0.3;
        kill 'CONT', $t->{helper_pid};

    } elsif ($what == 1) {
        # a worker that leaves while its helper is being replaced
        kill 'HUP', $t->{nginx_pid};
        $t->kill_helper('TERM');
        $t->start_helper;

    } elsif ($what == 2) {
        $t->kill_helper('KILL');
        $t->start_helper;

    } else {
        kill 'HUP', $t->{nginx_pid};
    }

    sleep 0.3;
}

waitpid $_, 0 for @load;

# how many there were is a matter of the machine
balanced($t, 'everything at once', 20);
$t->stop;


# --- a helper that hangs while the queue is full --------------------------------------

$t = SandboxTest->new(http => "$log{http} sandbox_queue 1m;",
                      server => $log{server})->start;
$up = $t->up;
$t->sandbox('s1', learn => 1);

# An upload of many files has begun: its end will be long.

my @parts = map {
    my $path = "/w/$_/" . 'p' x 1500;
    part('name="metadata"; filename="m"', qq({"path":"$path"})),
    part('name="file"; filename="f"', $_),
} 1 .. 400;
my $body = join '', @parts, "--B--\r\n";
my $c = $t->connect;
my @head = ($t->credential, 'X-Correlation-Id: long', $upload);
$c->write($c->build(POST => "$execd/files/upload",
                    headers => [ @head, 'Content-Length: ' . length $body ])
          . substr $body, 0, 1000);
ok($t->wait_for(sub {
    grep { $_->{status} eq 'started' } $t->history->events('s1') }), 'begun');

kill 'STOP', $t->{helper_pid};

# 5,000 operations a second for 30 s, or as many in a longer time

my ($reads, $seconds) = $FULL ? (150_000, 30) : (600, 0);
my $stopped = time;
my @readers = map { reads($reads / 4, 'q' x ($FULL ? 10 : 3000)) } 1 .. 4;
my $sent = 1000;

# the upload must not seem to have stopped meanwhile
while (@readers || time < $stopped + $seconds) {
    @readers = grep { waitpid($_, WNOHANG) == 0
                      || ($? and fail('every read is answered') and 0) } @readers;
    sleep 0.1;
    $c->write(substr $body, $sent++, 1) if (time - $stopped) > ($sent - 999);
}

$c->write(substr $body, $sent);
my $r = $c->response;
is($r->status, 200, 'the upload ends');

kill 'CONT', $t->{helper_pid};

my $e = $t->record($r);
is($e->{status}, 'succeeded', 'an end that has no room is on record');
ok($e->{result}{details_lost}, 'in short, and says so');

my $gaps = balanced($t, 'a queue that was full', $reads + 1);
cmp_ok($gaps, '>', 0, 'C106: it was full, and all that passed is counted');
cmp_ok(scalar(() = $t->log_text =~ /pass without a record/g), '<', 30,
       'C106: which is not said for each operation');
cmp_ok(scalar($t->history->gaps('s1')), '<', 30, 'C106: nor a gap of its own');

$t->stop;


# --- bodies that are cut off while no helper is there ----------------------------------

$t = SandboxTest->new(%log)->start;
$up = $t->up;
$t->sandbox('s1', learn => 1);
$t->record($t->get("$execd/files/info?path=%2Ffirst"));
$t->kill_helper;
# what comes now waits for it no more
is($t->post("$execd/command", body => '{"command":"x"}')->status, 503, 'it is away');

for (1 .. 4) {
    my $cut = $t->connect;
    my $bytes = $cut->build(POST => "$execd/command", body => '{"command":"echo"}',
                            headers => [ $t->credential, "X-Correlation-Id: c0-$_" ]);
    $cut->write(substr $bytes, 0, -3);
    $_ % 2 ? $cut->close : $cut->reset;
}

ok($t->wait_for(sub { 4 == grep { $_->[1] eq 'command.execute' && $_->[2] == 400 }
                      operations($t) }), 'their clients leave');
is($t->get("$execd/files/info?path=%2Fa")->status, 200, 'a read passes');
$t->start_helper;
ok($t->wait_for(sub { $t->post("$execd/command", body => '{"command":"x"}')->status == 200 }),
   'it is back');
is(balanced($t, 'bodies cut off', 7), 1, 'what never began is in no gap');

$t->stop;
done_testing;


# A process that asks for a file so often; it fails when one is not answered.

sub reads {
    my ($times, $name) = @_;

    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;

    my $conn;

    for (1 .. $times) {
        $conn = $t->connect if $_ % 500 == 1;
        _exit(1) if $t->get("$execd/files/info?path=%2F$name", conn => $conn)->status != 200;
    }

    _exit(0);
}


sub part {
    my ($disposition, $body) = @_;

    return "--B\r\nContent-Disposition: form-data; $disposition\r\n\r\n"
           . "$body\r\n";
}


# A process that sends operations and leaves some of them at a random moment.

sub load {
    my $n = shift;

    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;

    srand $n;

    for (my $i = 1; time < $until; $i++) {
        my $id = "c$n-$i";
        my $c = eval { $t->connect } or next;
        my @h = ($t->credential, "X-Correlation-Id: $id", 'Connection: close');
        my $file = part('name="metadata"; filename="m"', qq({"path":"/w/$id"}))
            . part('name="file"; filename="f"', 'x' x int rand 60000)
            . "--B--\r\n";
        my $bytes = (
            $c->build(POST => "$execd/command", headers => \@h,
                      body => '{"command":"echo 1; err 2; echo 3"}'),
            $c->build(POST => "$execd/files/upload", headers => [ @h, $upload ],
                      body => $file),
            $c->build(GET => "$execd/files/info?path=%2Fa", headers => \@h),
            $c->build(GET => "$execd/files/info?path=%2Fcut", headers => \@h),
            $c->build(GET => "$execd/files/download?path=%2F$i",
                      headers => \@h),
            $c->build(GET => "$execd/pty/p1/ws", headers => [
                @h[0, 1], 'Connection: Upgrade', 'Upgrade: websocket',
                'Sec-WebSocket-Version: 13',
                'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' ]),
        )[$i % 6];

        my $leave = rand;

        if ($leave < 0.1) {
            $bytes = substr $bytes, 0, rand length $bytes;
        }

        eval {
            $c->write($bytes);
            sleep rand 0.03 if $leave < 0.4;
            $c->response(head_only => 1, timeout => 5) if $leave > 0.3;
            $c->body($c->response(timeout => 5)) if $leave > 0.7 && $i % 6 < 3;
        };

        eval { rand() < 0.5 ? $c->reset : $c->close };
    }

    _exit(0);
}


# Judges what is on record; the number of operations that are only counted, in
# gaps or with another one (heads that were cut off: nobody knows whose).

sub balanced {
    my ($t, $name, $least) = @_;

    my (%have, %count, @ops, @lost, $open, $gaps);

    # until the last of the log and of the journal are there
    $t->wait_for(sub {
        my @dirs = $t->history->dirs;
        %have = map { $_->{event_id} => $_ } map { $t->history->events($_) }
                @dirs;
        $open = grep { $_->{status} eq 'started' } values %have;
        @ops = operations($t);
        @lost = grep { !$have{$_->[0]} && !$_->[3] } @ops;
        $gaps = 0;
        $gaps += $t->history->value($_, 'select (select coalesce('
            . 'sum(operations), 0) from gateway_gaps) + (select coalesce('
            . 'sum(count), 0) from gateway_folded)') // 0 for @dirs;
        return !$open && @lost == $gaps;
    }, 6);

    $count{$_->{correlation_id} // ''}++ for values %have;

    is($open, 0, "$name: every record has its end");
    cmp_ok(scalar @ops, '>=', $least, "$name: " . @ops . ' operations');
    is($gaps, scalar @lost, "$name: what is not on record is counted")
        or diag(map { "@$_[0 .. 2]\n" } @lost[0 .. ($#lost < 9 ? $#lost : 9)]);

    my %seen;
    $seen{$_}++ for map { $_->{head} =~ /^X-Correlation-Id: (\S+)/mi }
                    grep { $_->{method} eq 'POST' } $up->requests;

    is(join(' ', grep { !$count{$_} } keys %seen), '',
       "$name: whatever was sent upstream and had to be on record is");
    is(join(' ', grep { $seen{$_} > 1 } keys %seen), '', "$name: nothing twice");
    is(join(' ', grep { /^(?:c\d|long)/ && $count{$_} > 1 } keys %count), '',
       "$name: nor in the record");

    return $gaps;
}


# [ id, type, status, refused ] of all operations that nginx has logged.
# refused: had to be on record, could not be, and so did not happen; 400 is for a
# body that its client cut off, before it was told so (and for a head, of which it
# is not known what it had to be).

sub operations {
    my $t = shift;

    my %strict = map { $_ => 1 } qw(command.execute file.write pty.open);

    return map {
        my ($id, $type, $status, $end) = split ' ';
        length $id == 36 && $type ne 'endpoint.get'
            ? [ $id, $type, $status,
                $strict{$type} && "$status $end" =~ /^(?:499 |503 |400 cancelled$)/ ] : ();
    } split /\n/, $t->log_text('ops.log');
}
