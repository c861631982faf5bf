package SoakLoad;

# Many clients at once against the gateway and the local runtime, and what has
# to hold while they work and when they have gone:
#
#   - every answer is the right one (SoakClient);
#   - operations in nginx's access log = records + folded polls + what gaps and
#     tombstones count; each record belongs to one of them, none is twice, none
#     `started`;
#   - every history file passes integrity_check;
#   - memory and descriptors of workers and helper are flat;
#   - records lag behind by at most `lag_max` (5 s; the median of the second half
#     of the probes);
#   - nothing in any log above `notice` that is not named in %EXPECTED, and
#     all that SandboxTest->stop judges.
#
# Flat: the median of the last third of the samples is at most FLAT_SHARE and
# FLAT_MIB above that of the second third (the first third warms up), in
# descriptors FLAT_FDS.  Seconds shorter than 30 have too few samples for that.

use strict;
use warnings;

use List::Util qw(sum0 min max);
use POSIX ();
use Storable qw(nstore retrieve);
use Test::More;
use Time::HiRes qw(time sleep);

use SandboxTest;
use SoakClient;

use constant { FLAT_SHARE => 1.10, FLAT_MIB => 4, FLAT_FDS => 16 };

# What is not recorded unless asked for (docs/operations.md).
my $OFF = qr/^(?:execd\.ping|server\.)/;

# Lines that clients who leave in the midst of things give rise to.
our @EXPECTED = (
    qr/client (?:prematurely )?closed (?:keepalive )?connection/,
    qr/\(104: Connection reset by peer\) while (?:reading client|sending to client|proxying upgraded)/,
    qr/\(32: Broken pipe\) while (?:sending to client|proxying upgraded)/,
);


# Options: clients (64), seconds, sandboxes (8), say (gets progress lines),
# every (seconds between two of them), think, lag_max,
# test (more for SandboxTest).

sub new {
    my ($class, %o) = @_;

    my $self = bless { clients => 64, seconds => 60, sandboxes => 8, every => 60,
                       say => sub { diag(@_) }, samples => [], problems => [],
                       %o }, $class;

    # the access log is the count that records are compared with
    $self->{test} = SandboxTest->new(runtime => 1, workers => $o{workers} // 2,
        runtime_args => [ '--grace=0' ], %{ $o{test} // {} },
        conf => sub {
            $_[0] =~ s/(access_log \S+);/log_format soak '\$sandbox_operation_id \$sandbox_operation \$status';\n    $1 soak;/r
                  =~ s/(worker_connections) \d+/$1 4096/r
                  =~ s/error\.log info/error.log notice/r
        });

    return $self;
}


sub problem {
    my ($self, @text) = @_;

    push @{ $self->{problems} }, @text;

    return;
}


sub start {
    my $self = shift;

    my $t = $self->{test}->start;

    for my $n (1 .. $self->{sandboxes}) {
        my $r = $t->post('/v1/sandboxes',
            headers => [ 'Content-Type: application/json' ],
            body => '{"image":{"uri":"python:3.11"},"timeout":86400,'
                    . '"resourceLimits":{"cpu":"1"},'
                    . '"entrypoint":["tail","-f","/dev/null"]}');
        $r->status == 202 or die 'no sandbox: ' . $r->content . "\n";
        push @{ $self->{ids} }, $r->json->{id};
    }

    for my $id (@{ $self->{ids} }) {
        $t->wait_for(sub {
            $t->get("/v1/sandboxes/$id/proxy/44772/ping")->status == 200
        }, 30) or die "a sandbox does not get ready\n";
    }

    # half of the sandboxes are reached straight from the beginning
    $t->endpoint($_) for @{ $self->{ids} }[0 .. $self->{sandboxes} / 2 - 1];

    return $self;
}


# All of it: true when nothing is wrong; `problems` has the sentences.

sub run {
    my $self = shift;

    $self->start;
    $self->sample;
    $self->{idle} = pop @{ $self->{samples} };
    $self->fork_clients;

    my $began = time;
    my $until = $began + $self->{seconds};
    my $step = max(0.5, $self->{seconds} / 360);
    my $next = $began + $self->{every};
    my $probe = $began + 2;

    while (time < $until && !$self->{dead}) {
        sleep min($step, max(0.01, $until - time));
        $self->sample;
        $self->watch_processes;

        if (time >= $probe) {
            $self->probe;
            $probe = time + min(10, $self->{seconds} / 5);
        }

        if (time >= $next) {
            $self->progress(time - $began);
            $next += $self->{every};
        }
    }

    $self->{took} = time - $began;
    $self->reap_clients;
    $self->settle;
    $self->judge_flat;
    $self->judge_counts;
    $self->judge_logs;

    my $t = $self->{test};
    my $well = $t->stop;
    $self->problem('what SandboxTest->stop found') if !$well;
    $self->judge_files;

    return !@{ $self->{problems} };
}


sub problems { @{ $_[0]{problems} } }


# --- clients ----------------------------------------------------------------------

sub fork_clients {
    my $self = shift;

    mkdir my $dir = "$self->{test}{dir}/clients";

    for my $n (1 .. $self->{clients}) {
        my $pid = fork // die "fork: $!\n";

        if ($pid == 0) {
            $SIG{PIPE} = 'IGNORE';
            my $report = eval {
                SoakClient->new(test => $self->{test}, number => $n,
                    sandboxes => $self->{ids}, think => $self->{think} // 0,
                    until => time + $self->{seconds})->run;
            } // { done => {}, wrong => 1, errors => [ "client $n: $@" ] };
            nstore($report, "$dir/$n");
            POSIX::_exit(0);
        }

        $self->{pids}{$pid} = $n;
    }
}


sub reap_clients {
    my $self = shift;

    my $deadline = time + 120;

    for my $pid (keys %{ $self->{pids} }) {
        my $n = $self->{pids}{$pid};

        if (!SandboxProcess::reaped($pid, max(0.1, $deadline - time))) {
            $self->problem("client $n does not end");
            kill 'KILL', $pid;
            waitpid $pid, 0;
        }

        my $report = eval { retrieve("$self->{test}{dir}/clients/$n") };

        if (!$report) {
            $self->problem("client $n left no report");
            next;
        }

        $self->{done}{$_} += $report->{done}{$_} for keys %{ $report->{done} };
        $self->{wrong} += $report->{wrong};
        push @{ $self->{errors} }, @{ $report->{errors} };
    }

    my @errors = @{ $self->{errors} // [] };
    $self->problem("$self->{wrong} wrong answers, among them:",
                   splice @errors, 0, 20) if $self->{wrong};
}


# --- samples ----------------------------------------------------------------------

sub rss_kib {
    my $pid = shift;

    return SandboxTest::read_file("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m
           ? $1 : 0;
}


sub descriptors {
    my $pid = shift;

    opendir my $dh, "/proc/$pid/fd" or return 0;

    return (grep { !/^\./ } readdir $dh) + 0;
}


sub sample {
    my $self = shift;

    my $t = $self->{test};
    my @workers = @{ $self->{workers_seen} //= [ $t->worker_pids ] };
    my $helper = $t->{helper_pid};

    push @{ $self->{samples} }, {
        worker_rss => sum0(map { rss_kib($_) } @workers),
        helper_rss => rss_kib($helper),
        runtime_rss => rss_kib($t->{runtime_pid}),
        worker_fds => sum0(map { descriptors($_) } @workers),
        helper_fds => descriptors($helper),
        journal    => sum0(map { -s $_ // 0 } glob "$t->{dir}/data/journal/*"),
    };
}


# How long it takes now until a reader of a history file finds an operation that
# was answered.

sub probe {
    my $self = shift;

    my $t = $self->{test};
    my $id = $self->{ids}[ $self->{probes}++ % @{ $self->{ids} } ];
    my $r = $t->get("/v1/sandboxes/$id/proxy/44772/files/info?path=/workspace");
    my $began = time;
    my $found;

    for ( ;; ) {
        my $status = $t->history->value($id, 'select status from history_events'
            . " where event_id = '" . $r->header('X-Operation-Id') . "'");
        $found = defined $status && $status ne 'started';
        last if $found || time > $began + 30;
        sleep 0.05;
    }

    push @{ $self->{lags} }, time - $began;
    $self->problem('an operation is not on record after 30 s') if !$found;
}


# Nobody may have died under the load.

sub watch_processes {
    my $self = shift;

    my $t = $self->{test};

    for my $pid (@{ $self->{workers_seen} }, $t->{helper_pid}, $t->{nginx_pid},
                 $t->{runtime_pid})
    {
        next if -e "/proc/$pid/fd";
        $self->problem("process $pid is gone") if !$self->{dead}++;
    }
}


sub operations {
    my $self = shift;

    my $fh = $self->{log} //= do {
        open my $log, '<', "$self->{test}{dir}/logs/access.log" or return 0;
        $log;
    };

    seek $fh, 0, 1;
    $self->{lines} += () = $_ =~ /\n/ while <$fh>;

    return $self->{lines} // 0;
}


sub progress {
    my ($self, $at) = @_;

    my $s = $self->{samples}[-1];

    $self->{say}->(sprintf 'load %5d s: %d operations, workers %.1f MiB %d fds,'
        . ' helper %.1f MiB %d fds, runtime %.1f MiB, journal %.1f MiB, lag %.2f s', $at, $self->operations,
        $s->{worker_rss} / 1024, $s->{worker_fds}, $s->{helper_rss} / 1024,
        $s->{helper_fds}, $s->{runtime_rss} / 1024, $s->{journal} / 1048576,
        $self->{lags} ? $self->{lags}[-1] : 0);
}


sub median {
    my @v = sort { $a <=> $b } @_;

    return @v ? $v[$#v / 2] : 0;
}


# Medians of the thirds of one column.

sub thirds {
    my ($self, $column) = @_;

    my @v = map { $_->{$column} } @{ $self->{samples} };
    my $n = int @v / 3;

    return (median(@v[0 .. $n - 1]), median(@v[$n .. 2 * $n - 1]),
            median(@v[2 * $n .. $#v]));
}


sub judge_flat {
    my $self = shift;

    for my $who (qw(worker helper)) {
        my @rss = map { $_ / 1024 } $self->thirds("${who}_rss");
        my @fds = $self->thirds("${who}_fds");

        $self->{flat}{$who} = sprintf '%.1f/%.1f/%.1f MiB, %d/%d/%d fds',
            @rss, @fds;
        next if $self->{seconds} < 30;

        $self->problem("memory of $who grows: $self->{flat}{$who}")
            if $rss[2] > $rss[1] * FLAT_SHARE + FLAT_MIB;
        $self->problem("descriptors of $who grow: $self->{flat}{$who}")
            if $fds[2] > $fds[1] * FLAT_SHARE + FLAT_FDS;
    }

    # sandbox_history_lag
    my $lag = median(@{ $self->{lags} }[@{ $self->{lags} } / 2
                                        .. $#{ $self->{lags} }]);
    $self->problem(sprintf 'records lag behind by %.1f s', $lag)
        if $lag > ($self->{lag_max} // 5);

    # whoever has gone leaves nothing open but what is kept for the next one
    my $t = $self->{test};
    my $before = $self->{idle}{worker_fds};
    my $most = $before + 34 * @{ $self->{workers_seen} };   # keepalive 32

    $t->wait_for(sub {
        $self->sample;
        return pop(@{ $self->{samples} })->{worker_fds} <= $most;
    }, 15) or $self->problem("workers keep descriptors: $before before, "
        . sum0(map { descriptors($_) } @{ $self->{workers_seen} }) . ' after');
}


# --- the end ----------------------------------------------------------------------

# Waits until everything that has begun has ended on record.

sub settle {
    my $self = shift;

    my $t = $self->{test};
    my $began = time;
    my ($left, $before, $moved) = (undef, -1, time);

    for ( ;; ) {
        my ($rows, $started) = (0, 0);

        for my $s ($t->history->dirs) {
            my ($row) = $t->history->query($s, 'select count(*) as rows,'
                . " coalesce(sum(status = 'started'), 0) as started"
                . ' from history_events') or next;
            $rows += $row->{rows};
            $started += $row->{started};
        }

        $moved = time if $rows != $before;
        $left = $started;

        # two looks with the same result, and nothing that has not ended
        last if $rows == $before && !$started;
        last if time > $moved + 60;
        $before = $rows;
        sleep 0.5;
    }

    $self->{settled} = time - $began;
    $self->problem("$left records are started for ever") if $left;
}


sub judge_counts {
    my $self = shift;

    my $t = $self->{test};
    my (%logged, %row, %count, @twice);

    open my $fh, '<', "$t->{dir}/logs/access.log" or die "access log: $!\n";

    while (<$fh>) {
        my ($id, $operation, $status) = split;
        $count{"status $status"}++;
        next if $operation =~ $OFF || $id !~ /^[0-9a-f-]{36}$/;
        $count{twice}++ if $logged{$id}++;
        $count{logged}++;
    }

    for my $s ($t->history->dirs) {
        for my $r ($t->history->query($s, 'select event_id,'
            . ' operation_type as type from history_events'))
        {
            if ($r->{type} eq 'gateway.gap') {
                $count{gaps}++;
                next;
            }

            # what its tombstones stand for is counted below
            next if $r->{type} eq 'gateway.purge';

            push @twice, $r->{event_id} if $row{$r->{event_id}}++;
            $count{rows}++;
            $count{strange}++ if !$logged{$r->{event_id}};
        }

        $count{folded} += $t->history->value($s,
            'select sum(count) from gateway_folded') // 0;
        $count{lost} += $t->history->value($s,
            'select sum(operations) from gateway_gaps') // 0;
        $count{purged} += $t->history->value($s, 'select value from'
            . " gateway_state where key = 'purged_operations'") // 0;
    }

    $count{$_} //= 0 for qw(logged rows folded lost gaps purged strange twice);
    $self->{count} = \%count;

    $self->problem('operations and records differ: ' . join ', ',
                   map { "$_ $count{$_}" } qw(logged rows folded lost gaps purged))
        if $count{logged} != $count{rows} + $count{folded} + $count{lost} + $count{purged};
    $self->problem("$count{strange} records of operations that nginx did not see")
        if $count{strange};
    $self->problem(@twice . ' records are there twice') if @twice;
    $self->problem("$count{twice} operation ids are used twice") if $count{twice};
    $self->problem("$count{gaps} gaps under a load that leaves none")
        if $count{gaps};

    my @bad = grep { /^status 5/ } sort keys %count;
    $self->problem('answers with ' . join ', ', map { "$_: $count{$_}" } @bad)
        if @bad;
}


sub judge_logs {
    my $self = shift;

    my (%seen, $n);

    for my $file (glob "$self->{test}{dir}/logs/*.log") {
        next if $file =~ /access\.log$/;
        open my $fh, '<', $file or next;

        while (my $line = <$fh>) {
            next if $line !~ /\[(?:warn|error|crit|alert|emerg)\]|\berror\b/;
            next if grep { $line =~ $_ } @EXPECTED;
            chomp $line;
            $n++;
            (my $kind = $line) =~ s/\d+/N/g;
            push @{ $seen{substr $kind, 0, 90} }, $line;
        }
    }

    $self->problem("$n lines in the logs, of " . keys(%seen) . ' kinds:',
                   map { '  ' . @{ $seen{$_} } . " x $seen{$_}[0]" }
                   (sort keys %seen)[0 .. min(9, keys(%seen) - 1)]) if $n;
}


sub judge_files {
    my $self = shift;

    my $t = $self->{test};
    my $files = 0;

    for my $s ($t->history->dirs) {
        my $answer = $t->history->value($s, 'pragma integrity_check') // 'nothing';
        $files++;
        $self->problem("integrity_check of $s: $answer") if $answer ne 'ok';
    }

    $self->{files} = $files;
    $self->problem('there is no history') if !$files;
}


sub summary {
    my $self = shift;

    my $c = $self->{count} // {};
    my $acts = $self->{done} // {};

    return sprintf('load: %d clients, %.0f s, %s operations (%.0f/s) = %s rows'
        . ' + %s folded + %s purged + %s in gaps; %s files; settled in %.1f s;'
        . ' lag at most %.2f s; workers %s; helper %s; did %s',
        $self->{clients}, $self->{took}, $c->{logged},
        $c->{logged} / ($self->{took} || 1), $c->{rows}, $c->{folded},
        $c->{purged}, $c->{lost}, $self->{files}, $self->{settled}, max(0, @{ $self->{lags} // [] }),
        $self->{flat}{worker}, $self->{flat}{helper},
        join ', ', map { "$acts->{$_} $_" } sort keys %$acts);
}

1;
