#!/usr/bin/perl

# A scripted run of 30 operations, flushed before each answer, while the disk or
# the memory of the helper fails: every write and every flush once and for good,
# a power cut behind every write, an allocation here and there, or all from then
# on.  What is left opens, agrees with its chain, and has every operation that was
# acknowledged.
#
# Every so many of them, in about 20 s; with T_FAULTS=all, as in make soak, it is
# every single one and 3,000 allocations, which takes minutes.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Fcntl qw(F_GETFD F_SETFD FD_CLOEXEC);
use File::Temp qw(tempdir);
use IO::Select;
use POSIX qw(:sys_wait_h ceil _exit);
use SandboxFrames qw(op_id);
use SandboxHistory;
use SandboxProcess;
use Test::More;
use Time::HiRes qw(sleep time);

my $all = ($ENV{T_FAULTS} // '') eq 'all';
my $scale = $ENV{T_SCALE} || 1;
my $bin = $SandboxProcess::BUILD;
my $root = tempdir('/tmp/sandbox-h-XXXXXX', CLEANUP => !$ENV{SANDBOX_TEST_KEEP});
my $OPS = 30;
my ($number, %seen) = (0);

chmod 0755, $root;

plan skip_all => 'the sanitizers want to be loaded first'
    if qx(ldd $bin/sandbox-helper) =~ /lib[at]san/;

for (qw(shim_history shim_alloc)) {
    -e "$bin/t/$_.so" or die "$_.so is missing: run make unit\n";
}


# --- one run ------------------------------------------------------------------------------

sub spit {
    open my $fh, '>:raw', $_[0] or die "$_[0]: $!\n";
    print $fh $_[1];
    close $fh;
}


sub start {
    my ($p, %o) = @_;

    pipe my $ready, my $tell or die "pipe: $!\n";
    fcntl $tell, F_SETFD, fcntl($tell, F_GETFD, 0) & ~FD_CLOEXEC;

    local %ENV = (%ENV, $o{shim} ? (
        LD_PRELOAD   => "$bin/t/shim_history.so:$bin/t/shim_alloc.so",
        SHIM_HISTORY => "$p->{dir}/shim", SHIM_PART => "$p->{dir}/data/",
        SHIM_ALLOC   => "$p->{dir}/alloc") : ());

    $p->{pid} = SandboxProcess->spawn("$p->{dir}/out", "$bin/sandbox-helper",
        '--data', "$p->{dir}/data", '--socket', "$p->{dir}/s", '--log',
        "$p->{dir}/log", '--sync', 'full', '--stop', 1, '--ready-fd', fileno $tell);
    close $tell;

    return IO::Select->new($ready)->can_read(10) && sysread $ready, my $byte, 1;
}


sub stop {
    my $p = shift;

    kill 'TERM', $p->{pid};

    my $until = time + 8;

    while (time < $until) {
        return $? if waitpid($p->{pid}, WNOHANG) == $p->{pid};
        sleep 0.005;
    }

    kill 'KILL', $p->{pid};
    waitpid $p->{pid}, 0;

    return 'late';
}


# Each operation waits for its acknowledgement as a strict request does; what was
# refused is sent once more, as by a worker (docs/frames.md, 5 and 6).

sub work {
    my $p = shift;

    my %acked;
    my $c = connect_to($p) or return \%acked;

    for my $n (1 .. $OPS) {
        my @frames = (
            [ BEGIN => $n, FLAGS => 1, TYPE => 'command.execute',
              SANDBOX => 's1', METHOD => 'POST', PATH => '/command',
              ACTOR_TYPE => 'agent', ACTOR_ID => 'bot', IDENTITY => 'token:t' ],
            [ FACTS => $n, FLAGS => 1, COMMAND => "echo $n" ],
            [ OUTPUT => $n, STREAM => 0, DATA => "out $n\n" x (1 + $n * 8) ],
            [ END => $n, STATUS => 'succeeded', HTTP_STATUS => 200,
              EXIT_CODE => 0 ]);

        unshift @frames, [ SEEN => 0, SANDBOX => 's1', STATE => 'Running' ]
            if $n == 1;

        my $first = $c->{seq} + 1;

        for my $try (0, 1) {
            $c->put(@$_) for @frames;

            my $ack = $c->ack(undef, 1);

            if ($ack && !defined $ack->{CODE}) {
                $acked{$n} = 1;
                last;
            }

            # gone, or a disk that takes nothing: 503 for all that follow
            return \%acked if $try || !$ack;

            $c->close;
            sleep 0.02;
            $c = connect_to($p) or return \%acked;
            splice @frames, 0, $c->{seq} + 1 - $first;
        }
    }

    return \%acked;
}


sub connect_to {
    return SandboxFrames->new("$_[0]{dir}/s", 77);
}


# call, at, mode as the shim has them; alloc: which allocation fails, of how many
# one in so many.

sub run {
    my ($what, %o) = @_;

    my $dir = "$root/$$-" . ++$number;
    my $p = { dir => $dir };

    mkdir $dir;
    chmod 0755, $dir;
    spit("$dir/shim", pack 'q6', $o{call} // 0, $o{at} // 0, $o{mode} // 0, 0, 0, 0);
    spit("$dir/alloc", pack 'q4', 0, 0, 0, 0);
    chmod 0666, "$dir/shim", "$dir/alloc";

    my $acked = {};

    if (start($p, shim => 1)) {
        if ($o{alloc}) {
            spit_at("$dir/alloc", pack 'q4', $p->{pid}, @{ $o{alloc} }, 0);
        }

        $acked = work($p);
    }

    my $end = stop($p);
    my @count = unpack 'q6', slurp("$dir/shim");
    my @alloced = unpack 'q4', slurp("$dir/alloc");

    # a signal but that of the power cut is a crash
    my @wrong;
    push @wrong, "ended with $end" if $end ne 'late' && ($end & 127)
        && !(($o{mode} // 0) == 2 && ($end & 127) == 9) && ($end & 127) != 15;

    # the machine is well again
    start($p) or push @wrong, 'does not start again';
    my $file = "$dir/data/history/s1/history.sqlite3";
    my $history = SandboxHistory->new(dir => "$dir/data/history");
    my @have;

    SandboxProcess->wait_for(sub {
        my %have = map { $_->{event_id} => 1 } -e $file ? $history->query('s1',
            "select event_id from history_events where status <> 'started'") : ();
        @have = grep { $have{ op_id($_) } } sort { $a <=> $b } keys %$acked;
        return @have == keys %$acked;
    }, 8) or push @wrong, scalar(keys(%$acked)) . ' acknowledged, there are ' . @have;

    # what a full disk kept from being signed is
    !-e $file or SandboxProcess->wait_for(sub {
        slurp("$dir/data/history/heads.jsonl") =~ /"dir":"s1"/;
    }, 8) or push @wrong, 'no head';

    my $status = stop($p);
    push @wrong, "the second ended with $status" if $status ne '0';

    if (-e $file) {
        my $out = qx($bin/sandbox-history --data $dir/data verify s1 2>&1);
        push @wrong, 'verify ' . ($? >> 8) . ": $out" if $?;
        push @wrong, 'broken' if $history->broken;

        my %text;
        $text{ $_->{event_id} } .= pack 'H*', $_->{data}
            for $history->query('s1', 'select event_id, hex(data) as data'
                . ' from command_output_chunks order by event_id, chunk_index');

        for my $n (sort { $a <=> $b } keys %$acked) {
            push @wrong, "output of $n"
                if ($text{ op_id($n) } // '') ne "out $n\n" x (1 + $n * 8);
        }

        push @wrong, 'rows twice' if $history->value('s1', 'select count(*)'
            . ' from history_events') > $OPS;

    } elsif (%$acked) {
        push @wrong, 'no file';
    }

    if (@wrong) {
        diag("$what: @wrong");
        diag(join '', grep { /\[(error|crit|alert)\]/ } split /^/m, slurp("$dir/log"));

    } else {
        system('rm', '-rf', $dir) if !$ENV{SANDBOX_TEST_KEEP};
    }

    return { ok => !@wrong, writes => $count[3], flushes => $count[4],
             failed => $count[5], acked => scalar(keys %$acked),
             allocs => $alloced[3] };
}


sub slurp {
    open my $fh, '<:raw', $_[0] or return '';
    local $/;
    return <$fh> // '';
}


sub spit_at {
    open my $fh, '+<:raw', $_[0] or die "$_[0]: $!\n";
    syswrite $fh, $_[1];
    close $fh;
}


# --- all of them ---------------------------------------------------------------------------

my $seed = $ENV{SANDBOX_SEED} // int(time) % 100_000;
srand $seed;

my $began = time;
my $well = run('nothing fails');
ok($well->{ok}, 'nothing fails');
is($well->{acked}, $OPS, 'all is acknowledged');
diag("SANDBOX_SEED=$seed, $well->{writes} writes, $well->{flushes} flushes; one run takes ",
     sprintf '%.2f s', time - $began);

my @modes = ([ 'write, once', 0, 0 ], [ 'write, for good', 0, 1 ],
             [ 'power cut behind a write', 0, 2 ],
             [ 'flush, once', 1, 0 ], [ 'flush, for good', 1, 1 ],
             [ 'power cut behind a flush', 1, 2 ]);

for my $m (@modes) {
    my ($name, $call, $mode) = @$m;
    my $there = $call ? $well->{flushes} : $well->{writes};
    my $step = $all ? 1 : ceil($there / (4 * $scale));
    my @at = map { $_ * $step + 1 + int rand $step } 0 .. ceil($there / $step) - 1;
    my @r = runs(map { [ "$name, number $_", call => $call, at => $_, mode => $mode ] }
                 grep { $_ <= $there } @at);

    is(scalar(grep { !$_->{ok} } @r), 0, "$name: " . @r . " of $there");
    cmp_ok(scalar(grep { $_->{failed} || $mode == 2 } @r), '>', 0,
           sum(acked => @r) . ' acknowledged, some met');
}

# Allocations: one fails, or all of a while, or all from then on.

my $for_good = 1 << 40;
my @r = runs(map { my $pass = int rand 2000;
                   my $n = (1, 75, $for_good)[$_ % 3];
                   [ 'allocations behind ' . $pass . ($n == $for_good ? ', for good' : ''),
                     alloc => [ $pass, $n ] ] }
             1 .. ($all ? 180 : 6 * $scale));

is(scalar(grep { !$_->{ok} } @r), 0, sum(allocs => @r) . ' allocations');
cmp_ok(sum(allocs => @r), '>', $all ? 3000 : 0, 'have failed');
diag(sprintf 'all of it took %d s', time - $began);

done_testing;


sub sum {
    my ($what, @results) = @_;

    my $sum = 0;
    $sum += $_->{$what} for @results;

    return $sum;
}


# Several at a time: most of one is waiting.

sub runs {
    my @todo = @_;

    my $jobs = $all ? 8 : 2;
    my (@results, @from);

    for my $job (0 .. $jobs - 1) {
        pipe my $from, my $to or die "pipe: $!\n";
        my $pid = fork // die "fork: $!\n";

        if ($pid == 0) {
            close $from;

            for (my $i = $job; $i < @todo; $i += $jobs) {
                my $r = run(@{ $todo[$i] });
                syswrite $to, join(' ', map { $_ || 0 } @$r{qw(ok failed acked allocs)})
                              . "\n";
            }

            _exit(0);
        }

        close $to;
        push @from, [ $pid, $from ];
    }

    for (@from) {
        my ($pid, $from) = @$_;

        while (my $line = <$from>) {
            my %r;
            @r{qw(ok failed acked allocs)} = split ' ', $line;
            push @results, \%r;
        }

        waitpid $pid, 0;
    }

    # one that died has told nothing
    die 'only ' . @results . ' of ' . @todo . " have an end\n" if @results != @todo;

    return @results;
}
