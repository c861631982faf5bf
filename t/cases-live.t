#!/usr/bin/perl

# Field cases of live streams that need many readers, much data or time of their
# own, in small with T_SCALE=1 and in full from T_SCALE=10 on (make soak).  The
# others are in t/live.t.

use strict;
use warnings;

use File::Path qw(remove_tree);
use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;
use IO::Socket::INET;
use POSIX ();
use SandboxLive qw(command completed ids rss);
use SandboxTest;
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Test::More;
use Time::HiRes qw(time);

my $API = '/console/api/v1';
my $PATIENCE = $ENV{SANDBOX_TEST_PATIENCE} // 1;
my $FULL = ($ENV{T_SCALE} // 1) >= 10;
my $ASAN = qx(ldd $SandboxProcess::BUILD/sandbox-helper) =~ /libasan/;

# C039
my $TIMES = $FULL ? 100_000 : 600;
# C040
my $READERS = $FULL ? 5000 : 30;
my $SILENT = 10;
my $EVENTS = $FULL ? 1000 : 160;
# C042: signs of life that have to come through; in full more than 5 minutes
my $BEATS = $FULL ? 32 : 2;

my $t = SandboxTest->new(main => 'worker_rlimit_nofile 16384;',
    helper_args => $FULL ? [ '--live', $READERS + 100 ] : [], conf => sub {
    $_[0] =~ s/worker_connections\s+\d+/worker_connections 16384/r
          =~ s/(listen 127\.0\.0\.1:\d+)/$1 sndbuf=64k/r })->start;
$t->sandbox($_) for qw(s1 s2);


sub commands {
    return map { $_->{data}{summary} }
           grep { ($_->{data}{phase} // '') eq 'completed' } @{ $_[0]->events };
}


sub begun {
    my $s = SandboxLive->open(@_);

    $s->wait_for(sub { defined $_[0]->id }) or die "no stream\n";

    return $s;
}


sub fds {
    opendir my $dh, "/proc/$_[0]/fd" or die "fd: $!\n";
    return scalar grep { !/^\./ } readdir $dh;
}


sub streams {
    my ($n) = $t->get("$API/metrics")->content =~ /live_streams (\d+)\n/;
    return $n;
}


# --- C042: what signs of life there are ------------------------------------------

# What docs/console-api.md promises is what the helper does.

my $root = "$FindBin::Bin/..";
my ($beat) = SandboxTest::read_file("$root/helper/live.h") =~ /LIVE_BEAT_US\s+(\d+)u/;
my ($said) = SandboxTest::read_file("$root/docs/console-api.md")
    =~ /sign of life \(a comment, every (\d+) s/;
cmp_ok($beat, '<', 15_000_000, 'C042: signs of life come more often than every 15 s');
is($said * 1_000_000, $beat, 'C042: as is documented');

for my $bad (qw(x -1 16385 1&padding=2)) {
    my $r = $t->get("$API/live?padding=$bad");
    is($r->status, 400, "C042: padding=$bad is refused");
}


# --- C038: a position outlives what it is the position of -------------------------

my $s = begun($t, '/live');
my $begin = $s->id;
command($t, 's1', "first $_", $_) for 1 .. 3;
ok($s->until(completed('first 3')), 'C038: a reader');
my $n = $s->id;
my @first = ids($s);

# nginx and the helper are restarted
$s->close;
$t->kill_helper('TERM');
$t->reload;
$t->start_helper;
command($t, 's1', "second $_", $_) for 1 .. 3;

$s = SandboxLive->open($t, '/live', last => $n);
ok($s->until(completed('second 3')), 'C038: comes back after a restart');
is_deeply([ commands($s) ], [ map { "second $_" } 1 .. 3 ],
          'C038: to what is new, and to nothing else');

# the file of the sandbox goes, and is made anew, under him and while he is away

sub forget {
    ok($t->wait_for(sub { -e $t->history->path_of('s1') }), 'C038: the file of a sandbox');
    remove_tree($t->history->path_of('s1') =~ s{/[^/]+\z}{}r);
}

forget();
command($t, 's1', "third $_", $_) for 1 .. 3;
ok($s->until(completed('third 3')), 'C038: is removed under a reader');
$n = $s->id;
$s->close;
$t->kill_helper('TERM');
forget();
$t->start_helper;
command($t, 's1', "fourth $_", $_) for 1 .. 3;
$s = SandboxLive->open($t, '/live', last => $n);
ok($s->until(completed('fourth 3')), 'C038: and while he is away');
is_deeply([ commands($s) ], [ map { "fourth $_" } 1 .. 3 ],
          'C038: he misses nothing, and sees nothing twice');
is(scalar(grep { $_->{event} eq 'reset' } @{ $s->events }), 0, 'C038: and no reset');
$s->close;

$s = SandboxLive->open($t, '/live', last => $begin);
ok($s->until(completed('fourth 3')), 'C038: from the beginning');
is_deeply([ (ids($s))[0 .. $#first] ], \@first, 'C038: all have the numbers that they had');
is_deeply([ commands($s) ], [ map { my $w = $_; map { "$w $_" } 1 .. 3 }
                              qw(first second third fourth) ], 'C038: each once');
$n = $s->id;
my $many = grep { $_->{event} eq 'operation' } @{ $s->events };
$s->close;

# everything goes: what is new must not be taken for what was

$t->kill_helper('TERM');
remove_tree(map { "$t->{dir}/data/$_" } qw(journal history));
$t->start_helper;
my $other = begun($t, '/live');
my $more = 0;

while ($more <= $many) {
    command($t, 's2', 'other ' . ++$more, 'x');
}

ok($other->until(completed("other $more")), 'C038: another journal, as long as the first');
$other->close;
$s = SandboxLive->open($t, '/live', last => $n);
command($t, 's2', 'known', 'x');
my $e = $s->until(sub { 1 });
is($e->{event}, 'reset', 'C038: a position in the first is none in the other');
is($e->{data}{after}, $n, 'C038: which says what is missing');
ok($s->until(completed('known')), 'C038: he goes on');
$s->close;


# --- C042: begun here, looked at in the end ---------------------------------------

my ($hop_port, $hop_pid) = hop(4096, 30);
my $padded = behind_hop('padding=4096');
my $bare = behind_hop('');
ok($t->wait_for(sub { streams() == 2 }), 'C042: two streams behind a hop');


# --- C039: those who leave leave nothing behind ------------------------------------

my $known = $e->{id};
my ($worker) = $t->worker_pids;

sub leave {
    for (1 .. $_[0]) {
        my $one = SandboxLive->open($t, '/live', after => $known, once => 1);
        $one->wait_for(sub { @{ $_[0]->events } > 0 }) or return 0;
        $one->{c}->reset;
    }

    return $t->wait_for(sub { streams() == 2 }, 60 * $PATIENCE);
}

# (two are behind the hop)
ok(leave(300), 'C039: some open, read an event and are gone');
my %base = map { $_ => [ rss($_), fds($_) ] } $t->{helper_pid}, $worker;
ok(leave($TIMES), "C039: $TIMES do, and none is counted any more");
# the case waits until whatever timers there were have come
sleep 300 if $FULL;

SKIP: {
    skip 'a sanitizer keeps what was freed', 2 if $ASAN;

    cmp_ok(rss($_) - $base{$_}[0], '<', 4096, "C039: memory is what it was (process $_, KiB)")
        for keys %base;
}

# (readers of files are kept, as many as were busy at once)
ok($t->wait_for(sub { !grep { fds($_) > $base{$_}[1] + $TIMES / 10 } keys %base }),
   'C039: so are descriptors')
    or diag(join ' ', map { "$base{$_}[1]:" . fds($_) } keys %base);


# --- C040: many readers, some of whom never read ------------------------------------

my @big = map { chr(97 + $_) x 16_000 } 0 .. 3;

# what is kept for all is there before it is measured: the ring is full
my $seen = begun($t, '/live');
command($t, 's2', "warm $_", @big) for 1 .. 150;
ok($seen->until(completed('warm 150'), 60 * $PATIENCE), 'C040: the ring is full');
$seen->close;

my @silent = map { begun($t, '/live', query => 'type=command.*') } 1 .. $SILENT;
setsockopt $_->{c}->socket, SOL_SOCKET, SO_RCVBUF, 65536 for @silent;
my @readers = map { begun($t, '/live', query => 'type=command.*&output=0') } 1 .. $READERS;
my $from = $silent[0]->id;
my %before = map { $_ => rss($_) } $t->{helper_pid}, $worker;

for my $i (1 .. $EVENTS) {
    command($t, 's2', "much $i", @big);
    next if $i % 20 && $i < $EVENTS;
    $_->until(completed("much $i"), 60 * $PATIENCE) // die "reader at $i\n" for @readers;
}

# what each silent one would hold is over this many times
my $held = $SILENT * $EVENTS * 64_000 / 1024;
my $grown = 0;
$grown += rss($_) - $before{$_} for keys %before;

SKIP: {
    skip 'a sanitizer keeps what was freed', 1 if $ASAN;

    cmp_ok($grown, '<', $held / 2,
           "C040: no reader has a copy of his own (KiB; they would have $held)");
}

is_deeply([ commands($_) ], [ map { "much $_" } 1 .. $EVENTS ], 'C040: who reads has all of it')
    for @readers[0, -1];
is(scalar(grep { ids($_) == ids($readers[0]) } @readers), $READERS, 'C040: all do');
$_->close for @readers;

# He who did not read is told, and goes on where he was; in a journal that has
# gone on meanwhile, behind a reset.

my @late = ($silent[0]);
$silent[1]->wait_for(sub { $_[0]->comments > 0 || @{ $_[0]->events } > 0 });
push @late, SandboxLive->open($t, '/live', query => 'type=command.*', last => $silent[1]->id);
my @have = ([], [ grep { $_ <= $silent[1]->id } ids($silent[1]) ]);

for my $i (0, 1) {
    my $one = $late[$i];
    ok($one->until(completed("much $EVENTS"), 120 * $PATIENCE), 'C040: the rest comes later');

    my ($reset) = grep { $_->{event} eq 'reset' } @{ $one->events };
    my @all = (@{ $have[$i] }, ids($one));
    my @done = commands($one);
    cmp_ok(scalar @all, '==', scalar keys %{ { map { $_ => 1 } @all } }, 'C040: once');

    if ($reset) {
        cmp_ok($reset->{id}, '>', $from, 'C040: or he is told from where on');
    } elsif ($i == 0) {
        is_deeply(\@done, [ map { "much $_" } 1 .. $EVENTS ], 'C040: and whole');
    } else {
        is_deeply(\@done, [ map { "much $_" } $EVENTS - $#done .. $EVENTS ],
                  'C040: up to the end');
    }
}

cmp_ok($silent[0]->comments, '>', 0, 'C040: who did not read was told that he was behind');
$_->close for @silent, $late[1];


# --- C042 ------------------------------------------------------------------------------

like($padded->head, qr/^X-Accel-Buffering: no\r/m, 'C042: no hop needs to hold it back');
ok($padded->wait_for(sub { $_[0]->comments > $BEATS }, 15 * $BEATS * $PATIENCE),
   "C042: $BEATS signs of life come through a hop that holds 4 KiB");
is($padded->ended, 0, 'C042: which did not cut it after 30 s without a byte');
is_deeply([ grep { $_->{event} eq 'operation' } @{ $padded->events } ], [],
          'C042: although nothing passed');
$bare->{c}->fill(time + 0.01);
is($bare->{c}{buf}, '', 'C042: small ones do not come through');
$_->{c}->close for $padded, $bare;
kill 'TERM', $hop_pid;
waitpid $hop_pid, 0;

$t->stop;
done_testing;


# A stream of which nothing but signs of life comes, behind the hop; not waited for.

sub behind_hop {
    my ($query) = @_;

    my $c = SandboxHttp->connect(port => $hop_port);
    $c->write($c->build(GET => "$API/live?type=nothing.*&$query", headers => [ $t->credential ]));

    my $self = bless { c => $c, text => '', events => [], id => undef, ended => 0 },
                     'SandboxLive';
    return $self if $query eq '';

    $self->head_in or die "no head\n";

    return $self;
}


# A process that passes bytes on, answers in pieces of $size only, and cuts off
# whom it had nothing for during $limit seconds: its port and its id.

sub hop {
    my ($size, $limit) = @_;

    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5, Proto => 'tcp')
        or die "hop: $!\n";
    my $port = $listen->sockport;
    my $pid = fork // die "fork: $!\n";
    return ($port, $pid) if $pid;

    my ($select, $parent, %link) = (IO::Select->new($listen), getppid);

    while (getppid == $parent) {
        for my $s ($select->can_read(0.5)) {
            if ($s == $listen) {
                my $down = $listen->accept or next;
                my $up = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $t->port)
                    or next;
                $link{$down} = { to => $up, down => $down };
                $link{$up} = { to => $down, held => '', at => time, up => $up };
                $select->add($down, $up);
                next;
            }

            my $l = $link{$s} // next;
            my $n = sysread $s, my $bytes, 65536;

            if (!$n) {
                drop($select, \%link, $s);

            } elsif ($l->{down}) {
                syswrite $l->{to}, $bytes;

            } else {
                $l->{held} .= $bytes;
                my $whole = length($l->{held}) - length($l->{held}) % $size;

                if ($whole) {
                    syswrite $l->{to}, substr $l->{held}, 0, $whole, '';
                    $l->{at} = time;
                }
            }
        }

        drop($select, \%link, $_->{up})
            for grep { $_->{up} && time - $_->{at} > $limit } values %link;
    }

    POSIX::_exit(0);
}


sub drop {
    my ($select, $link, $s) = @_;

    my $l = delete $link->{$s} or return;
    my $to = $l->{to};
    delete $link->{$to};
    $select->remove($s, $to);
    close $_ for $s, $to;
}
