#!/usr/bin/perl

# kill -9 of a client, a worker or the helper while keys are held and waited for:
# the next goes on, and no key stays.  How long it took is printed; the bounds are
# those of issue and field case (100 ms; 1 s for the helper), of which the best of
# three is held to them: a machine that does something else for a moment is no fault.
# SANDBOX_TEST_PATIENCE=N multiplies them where it does so all the time.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use POSIX ();
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $ROOM = $ENV{SANDBOX_TEST_PATIENCE} // 1;
my $API = '/console/api/v1';
my $t = SandboxTest->new(workers => 3, location => 'sandbox_locks on;',
    allow => [ qr/worker process \d+ exited on signal 9/ ])->start;
my $up = $t->up;
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $n = 0;

$t->sandbox('s1');
$up->script("GET $execd/files/download?path=%2Fhold", [ 'hang' ]);
$up->script("GET $execd/files/download?path=%2Fcut",
            [ send => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf" ], [ 'hang' ]);
ok($t->wait_for(sub { $t->get("$API/sandboxes/s1/locks")->status == 200 }),
   'the helper is there');

sub state_of {
    my $r = eval { $t->get("$API/sandboxes/s1/locks") } // return '?';
    return join ' ', map { "$_->{type}:$_->{state}" } reverse @{ $r->json->{items} // [] };
}

sub becomes {
    my ($want) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $have;
    $t->wait_for(sub { ($have = state_of()) eq $want });
    is($have, $want, "now: $want");
}

# A connection to a worker other than those given.

sub connection {
    my @but = @_;

    for (1 .. 200) {
        # one that is being killed may have taken it
        my $c = eval { $t->connect } or next;
        my $pid = eval { $c->request(GET => '/pid')->content } || next;
        $c->{worker} = $pid;
        return $c if !grep { $_ == $pid } @but;
    }

    die "all connections go to one worker\n";
}

sub holds {
    my $c = shift;

    $c->write($c->build(GET => "$execd/files/download?path=%2Fhold",
                        headers => [ $t->credential ]));
    return $c;
}

# One that waits for it, under a name of its own.

sub waits {
    my ($c, $under) = @_;

    $c->{path} = ($under // '%2Fhold%2F') . ++$n;
    $c->write($c->build(DELETE => "$execd/files?path=$c->{path}",
                        headers => [ $t->credential ]));
    return $c;
}

# What the numbers of the helper say.

sub none_held {
    my $text = $t->get("$API/metrics")->content;

    return $text =~ /lock_keys\S* 0$/m && $text =~ /lock_requests\S* 0$/m;
}

# A client in a process of its own.

sub client {
    my ($do, $c) = @_;

    my $pid = fork // die "fork: $!\n";

    if (!$pid) {
        $do->($c);
        sleep 60;
        POSIX::_exit(0);
    }

    close $c->socket;
    return $pid;
}

# It has reached upstream: how many seconds after the killing?

sub went_on {
    my ($c, $killed) = @_;

    my @seen;
    $t->wait_for(sub { @seen = $up->requests(qr{^DELETE .*path=\Q$c->{path}\E$}) });

    return @seen ? $seen[0]{time} - $killed : undef;
}

# The next goes on, each time; once at least within the bound.

sub best {
    my ($what, $bound, $once) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @took;

    while (@took < 3 && !grep { $_ < $bound * $ROOM } @took) {
        my $took = $once->();
        ok(defined $took, "$what: the next goes on") or return;
        push @took, $took;
    }

    my ($least) = sort { $a <=> $b } @took;
    cmp_ok($least, '<', $bound * $ROOM, 'within its bound');
    diag(join ', ', "$what", map { sprintf '%.1f ms', 1000 * $_ } @took);
}


# --- a client ---------------------------------------------------------------------

for my $way ([ 'in the same worker' ], [ 'in another', 1 ]) {
    best("C120: a client that holds is killed, $way->[0]", 0.1, sub {
        my $c = connection();
        my $pid = client(\&holds, $c);
        becomes('file.read:held');
        my $next = waits(connection($way->[1] ? $c->{worker} : ()));
        becomes('file.read:held file.delete:waiting');
        my $killed = time;
        kill 'KILL', $pid;
        my $took = went_on($next, $killed);
        waitpid $pid, 0;
        is($next->response->status, 200, 'and is answered');
        becomes('');
        return $took;
    });
}

best('C120: one that waits is killed: readers go on', 0.1, sub {
    my $holder = holds(connection());
    becomes('file.read:held');
    my $pid = client(\&waits, connection());
    becomes('file.read:held file.delete:waiting');
    my $killed = time;
    kill 'KILL', $pid;
    waitpid $pid, 0;
    my $r = $t->get("$execd/files/info?path=%2Fhold");
    my $took = time - $killed;
    is($r->status, 200, 'a reader has its answer');
    becomes('file.read:held');
    $holder->reset;
    becomes('');
    return $took;
});


# --- upstream -----------------------------------------------------------------------

# C120: it dies in the middle of its answer

best('C120: upstream is killed in mid-answer', 0.1, sub {
    my $holder = connection();
    $holder->write($holder->build(GET => "$execd/files/download?path=%2Fcut",
                                  headers => [ $t->credential ]));
    becomes('file.read:held');
    my $r = $holder->response(head_only => 1);
    is($r->status, 200, 'an answer has begun');
    my $next = waits(connection(), '%2Fcut%2F');
    becomes('file.read:held file.delete:waiting');
    ok($t->wait_for(sub { !none_held() }), 'numbers tell of keys');
    my $killed = time;
    $up->stop;
    $up->start;
    my $took = went_on($next, $killed);
    is($next->response->status, 200, 'and is answered');
    ok(!$holder->body($r)->complete, 'who was being answered sees that it is cut');
    becomes('');
    ok($t->wait_for(sub { none_held() }), 'none is held then');
    return $took;
});


# --- a worker ---------------------------------------------------------------------

best('C128: a worker that holds is killed', 0.1, sub {
    my $holder = holds(connection());
    becomes('file.read:held');
    my $next = waits(connection($holder->{worker}));
    becomes('file.read:held file.delete:waiting');
    my $killed = time;
    kill 'KILL', $holder->{worker};
    my $took = went_on($next, $killed);
    is($next->response->status, 200, 'and is answered');
    becomes('');
    return $took;
});

best('a worker that waits was killed', 0.1, sub {
    my $holder = holds(connection());
    becomes('file.read:held');
    my $first = waits(connection($holder->{worker}));
    becomes('file.read:held file.delete:waiting');
    my $next = waits(connection($holder->{worker}, $first->{worker}));
    becomes('file.read:held file.delete:waiting file.delete:waiting');
    kill 'KILL', $first->{worker};
    becomes('file.read:held file.delete:waiting');
    my $killed = time;
    $holder->reset;
    my $took = went_on($next, $killed);
    becomes('');
    return $took;
});


# --- the helper -------------------------------------------------------------------

best('the helper is killed, then who holds leaves', 1, sub {
    my $holder = holds(connection());
    becomes('file.read:held');
    my $next = waits(connection());
    becomes('file.read:held file.delete:waiting');
    my $killed = time;
    $t->kill_helper;
    $t->start_helper;
    $holder->reset;
    my $took = went_on($next, $killed);
    is($next->response->status, 200, 'and is answered');
    becomes('');
    return $took;
});

ok($t->wait_for(sub { none_held() }), 'no key is held in the end, and numbers say so');

$t->stop;
done_testing;
