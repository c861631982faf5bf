#!/usr/bin/perl

# Kill -9 of a worker, of all workers, of the helper, of nginx or of everything
# in the midst of 200 parallel operations, at random moments: whatever upstream
# has seen or a client has an answer of is on record, once, and has its end; the
# files are whole.
#
# T_ROUNDS says how often (20, times T_SCALE), SANDBOX_SEED repeats the moments
# of another run.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use ParallelLoad;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $rounds = $ENV{T_ROUNDS} // 20 * ($ENV{T_SCALE} // 1);
my $seed = $ENV{SANDBOX_SEED} // int(time * 1000) % 1_000_000;
my $dir = File::Temp->newdir('sandbox-t-XXXXXX', TMPDIR => 1);

diag("SANDBOX_SEED=$seed, $rounds rounds");
srand $seed;

my $load = ParallelLoad->new(dir => "$dir/load");
my $t = SandboxTest->new(workers => 2, upstream_url => $load->url,
    helper_args => [ '--history-size', 'off' ],     # 200 rounds are more than 128 MiB
    main => 'worker_rlimit_nofile 8192;',
    conf => sub { $_[0] =~ s/worker_connections 512/worker_connections 2048/r },
    # workers are killed here, on purpose
    allow => [ qr/worker process \d+ exited on signal 9/ ])->start;

$t->endpoint('s1');
$load->begin($t, seed => $seed, leave => 0.05,
             mix => [ qw(command info upload info command pty) ]);

my %kill = (
    worker  => sub { kill_workers(1) },
    workers => sub { kill_workers(9) },
    helper  => sub { kill_helper() },
    both    => sub { kill_helper(); kill_workers(9) },
    nginx   => sub { kill_nginx() },
    all     => sub { kill_nginx(1) },
);
my @what = sort keys %kill;
my (%done, @broken);

for my $round (1 .. $rounds) {
    sleep 0.1 + rand 0.9;

    # each at least once, then at random
    my $what = $round <= @what ? $what[$round - 1] : $what[rand @what];
    $kill{$what}->();
    $done{$what}++;

    sleep rand 0.2;
    start_again();
    push @broken, $t->history->broken if $round % 5 == 0;
}

sleep 0.5;
ok($load->end, 'the load has ended');
note(join ', ', map { "$_: $done{$_}" } sort keys %done);

judge();
$t->stop;
done_testing;


sub kill_workers {
    my $n = shift;

    my @pids = $t->worker_pids;
    kill 'KILL', splice @pids, 0, $n;
}


sub kill_helper { $t->kill_helper if $t->{helper_pid} }


# The master first: it would start others in place of its workers.

sub kill_nginx {
    my $helper = shift;

    my $master = $t->{nginx_pid};
    my @workers = $t->worker_pids;

    kill 'KILL', $master, @workers, $helper ? $t->{helper_pid} : ();
    $t->{nginx_pid} = 0;
    waitpid $master, 0;
    kill_helper() if $helper;

    $t->wait_for(sub {
        !grep { SandboxTest::read_file("/proc/$_/stat") =~ /\) [^Z] / } @workers
    }) or die "workers do not die\n";
}


sub start_again {
    my $dir = $t->dir;

    # in any order
    my @start = (
        sub { $t->start_helper if !$t->{helper_pid} },
        sub {
            return if $t->{nginx_pid};
            $t->{nginx_pid} = $t->spawn("$dir/logs/nginx.out",
                $SandboxProcess::NGINX, '-p', $dir, '-c',
                "$dir/conf/nginx.conf", '-e', "$dir/logs/error.log");
        },
    );

    $_->() for rand() < 0.5 ? @start : reverse @start;

    $t->wait_for(sub { SandboxProcess::listens($t->port) })
        or die "nginx does not come back:\n" . $t->log_text('nginx.out');
    $t->endpoint('s1');
}


sub judge {
    # until those that died are given up, and left commands have been asked about
    my $a = $load->account($t, 15);
    my ($results, $seen) = ($load->results, $load->seen);
    my %kind = map { $_->[0] => $_->[1] } @$results;
    my %strict = map { $_ => 1 }
                 grep { $ParallelLoad::STRICT{$kind{$_}} } keys %kind;

    is(scalar @{ $a->{open} }, 0, 'every record has its end')
        or diag(map { "@$_\n" } grep { defined } @{ $a->{open} }[0 .. 9]);

    note($load->summary);
    note(join ', ', map { "$a->{status}{$_} $_" } sort keys %{ $a->{status} });
    cmp_ok(scalar @$results, '>', $rounds * 20,
           scalar(@$results) . ' operations have ended');

    # what is strict and was seen upstream, or answered by it, is on record

    my @missing = grep { $strict{$_} && !$a->{by_id}{$_} } sort keys %$seen;
    is("@missing", '', 'whatever upstream has seen and had to be on record is');

    my @passed = grep { $_->[2] =~ /^(?:200|101)$/
                        && !$a->{by_event}{$_->[3]} } @$results;
    is(join(' ', map { $_->[0] } grep { $strict{$_->[0]} } @passed), '',
       'and whatever was answered');

    is(join(' ', grep { $seen->{$_} > 1 && $strict{$_} } sort keys %$seen), '',
       'nothing was sent twice');
    is(join(' ', grep { /-/ && $a->{by_id}{$_} > 1 } sort keys %{ $a->{by_id} }),
       '', 'nothing is on record twice');
    is(join(' ', grep { $a->{by_event}{$_} > 1 } keys %{ $a->{by_event} }), '',
       'under no id');
    is(scalar(grep { $_->[4] eq 'stuck' } @$results), 0,
       'no client waits for ever');

    # what is recorded as well as it goes: a gap says how many are missing, but for
    # those of an nginx that was killed as a whole, as here (without: t/shutdown.t)

    note(scalar @passed, " answers without a record, $a->{gaps} in gaps");

    # numbers and positions

    for my $s ($t->history->dirs) {
        my ($row) = $t->history->query($s, 'select count(*) as n, min(seq) as a,'
            . ' max(seq) as b, count(distinct cursor) as c from gateway_records');
        is("$row->{a} $row->{b} $row->{c}", "1 $row->{n} $row->{n}",
           "$s: $row->{n} numbers without a hole, each with a cursor of its own")
            if $row && $row->{n};
    }

    is(join('; ', @broken, $t->history->broken), '', 'integrity_check: ok');
}
