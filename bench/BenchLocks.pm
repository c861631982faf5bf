package BenchLocks;

# The case "locks" of bench/run: many clients that wait for few keys, through nginx
# and two workers. What a waiter costs; how long after an answer the next one has
# its own; and whose turn it was.
#
# A lease holds each key, and everybody else waits for it. Then the leases are given
# back one after the other, so that only one key is busy at a time: what is measured
# is the way from one request to the next, not how fast the machine can work off
# all of them. That way is: the end of a request at upstream, its END to the helper,
# GRANTED to the worker of the next one, and that one's request and answer.

use strict;
use warnings;

use parent -norequire, 'Bench';

use File::Temp;
use List::Util qw(max sum);
use POSIX ();
use SandboxProcess;
use SandboxTest;
use Time::HiRes qw(sleep time);

my $API = '/console/api/v1/sandboxes/s1';


sub new {
    my ($class, %o) = @_;

    my $self = bless { waiters => 10_000, keys => 100, %o, owner => $$,
                       dir => File::Temp->newdir('sandbox-b-XXXXXX', TMPDIR => 1) }, $class;
    chmod 0755, "$self->{dir}";

    my $files = POSIX::sysconf(POSIX::_SC_OPEN_MAX);
    die "locks: $files files may be open, and $self->{waiters} clients wait: ulimit -n\n"
        if $files < $self->{waiters} + 500;

    $self->start_upstream;

    my $t = SandboxTest->new(
        upstream_url => $self->{upstream_url},
        workers => 2,
        main => "worker_rlimit_nofile $files;",
        helper_args => [ '--locks', 2 * $self->{waiters} ],
        location => 'sandbox_locks on; sandbox_lock_timeout 5m; sandbox_limits off;',
        conf => sub {
            my $conf = shift;

            $conf =~ s/access_log [^;]+;/access_log off;/;
            $conf =~ s/error.log info;/error.log error;/;
            $conf =~ s/worker_connections \d+;/worker_connections $files;/;

            return $conf;
        })->start;

    $self->{front}{locks} = { test => $t };
    $t->wait_for(sub { $t->get("$API/locks")->status == 200 })
        or die "locks: the helper is not there\n";

    return $self;
}


sub memory {
    my ($kb) = SandboxTest::read_file("/proc/$_[0]/status") =~ /^VmRSS:\s+(\d+)/m;

    return $kb;
}


sub metric {
    my ($t, $name) = @_;

    my ($n) = $t->get('/console/api/v1/metrics')->content =~ /^sandbox_gateway_(?:helper_)?$name (\d+)/m;

    return $n // 0;
}


sub part {
    my ($of, @sorted) = @_;

    return $sorted[ int $of * $#sorted ];
}


# One round: its numbers.

sub round {
    my $self = shift;

    my $t = $self->{front}{locks}{test};
    my ($waiters, $keys) = @{$self}{ qw(waiters keys) };
    my $each = int $waiters / $keys;

    my @leases = map {
        my $r = $t->post("$API/leases", body =>
            qq({"keys":[{"path":"/k/$_","mode":"write"}],"ttl_ms":3600000}));
        $r->status == 201 or die 'locks: a lease: ' . $r->content . "\n";
        $t->secret($r->json->{token});
        $r->json->{id};
    } 0 .. $keys - 1;

    my @pids = ($t->{helper_pid}, $t->worker_pids);
    my @before = map { memory($_) } @pids;
    my @queue = map { [] } 1 .. $keys;

    for my $n (0 .. $waiters - 1) {
        my $k = $n % $keys;
        my $c = $t->connect;

        $c->write($c->build(DELETE => "/v1/sandboxes/s1/proxy/44772/files?path=%2Fk%2F$k",
                            headers => [ $t->credential ]));
        push @{ $queue[$k] }, $c;
    }

    $t->wait_for(sub { metric($t, 'lock_waiters') == $waiters }, 120)
        or die 'locks: ' . metric($t, 'lock_waiters') . " of $waiters wait\n";
    sleep 0.5;

    my @after = map { memory($_) } @pids;
    my (@gaps, @off, $last);

    for my $k (0 .. $keys - 1) {
        $t->delete("$API/leases/$leases[$k]")->status == 204 or die "locks: a lease is gone\n";
        undef $last;

        my @left = @{ $queue[$k] };
        my %asked = map { $left[$_] => $_ } 0 .. $#left;
        my $turn = 0;

        while (@left) {
            my $bits = '';
            vec($bits, fileno $_->socket, 1) = 1 for @left;
            select($bits, undef, undef, 30) > 0 or die "locks: nobody is let on\n";

            my $now = time;
            my ($c) = grep { vec $bits, fileno $_->socket, 1 } @left;
            my $r = $c->response;
            $r->status == 200 or die 'locks: ' . $r->status . ' ' . $r->content . "\n";

            push @gaps, 1000 * ($now - $last) if defined $last;
            $last = $now;
            push @off, abs $turn++ - $asked{$c};
            @left = grep { $_ != $c } @left;
            $c->close;
        }
    }

    @gaps = sort { $a <=> $b } @gaps;

    return {
        helper  => ($after[0] - $before[0]) / $waiters,
        workers => sum(map { $after[$_] - $before[$_] } 1 .. $#pids) / $waiters,
        p50     => part(0.5, @gaps),
        p99     => part(0.99, @gaps),
        most    => $gaps[-1],
        mean    => sum(@off) / @off,
        off     => max(@off),
        each    => $each,
    };
}


# Prints a line for each round, and hands on its row for build/bench.json.

sub report {
    my ($self, $rounds, $row) = @_;

    printf "locks: %d waiters on %d keys, two workers\n", $self->{waiters}, $self->{keys};

    for my $n (1 .. $rounds) {
        $self->settle;
        my $r = $self->round;

        printf "  round %d: a waiter costs %.1f KiB in the helper, %.1f KiB in a worker;"
             . " from an answer to the next one's p50 %.2f ms, p99 %.2f ms, at most %.1f ms;"
             . " out of turn by %.2f places on average, %d of %d at most\n",
             $n, @{$r}{ qw(helper workers p50 p99 most mean off each) };
        # a row of any case has these; there is no plain nginx to compare this with
        $row->({ (map { $_ => undef } qw(mode sync ratio ratio_min ratio_max worker_cpu_ratio
                                         helper_cpu_us p99_ratio p50_later_ms)),
                 connections => $self->{waiters}, rounds => 1,
                 case => 'locks', round => $n, waiters => $self->{waiters},
                      keys => $self->{keys}, helper_kib => $r->{helper},
                      worker_kib => $r->{workers}, p50_ms => $r->{p50}, p99_ms => $r->{p99},
                      out_of_turn => $r->{mean}, out_of_turn_max => $r->{off} });
    }
}

1;
