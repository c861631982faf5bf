package SandboxProcess;

# The processes of a test: sandbox-helper, nginx, perhaps sandbox-runtime, each
# a child of the test, ended by their own process ids only.  Base class of
# SandboxTest.

use strict;
use warnings;

use Cwd qw(abs_path);
use Fcntl qw(F_GETFD F_SETFD FD_CLOEXEC);
use File::Basename qw(dirname);
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(time sleep);

our $ROOT = abs_path(dirname(__FILE__) . '/../..');
our $BUILD = $ENV{SANDBOX_BUILD} // "$ROOT/build";
our $NGINX = $ENV{SANDBOX_NGINX} // find_program('nginx');

# "none": nginx was built with the module in it, as for the sanitizers.
our $MODULE = $ENV{SANDBOX_MODULE} // "$BUILD/ngx_http_sandbox_module.so";
our $LOAD_MODULE = $MODULE eq 'none' ? '' : "load_module $MODULE;";


sub find_program {
    my $name = shift;

    for (split(/:/, $ENV{PATH} // ''), '/usr/sbin', '/usr/local/sbin') {
        return "$_/$name" if -x "$_/$name";
    }

    return $name;
}


# Times that a test waits at most are longer where everything is slower, as under
# memcheck.
our $PATIENCE = $ENV{SANDBOX_TEST_PATIENCE} // 1;


# A port that is free and stays so, with the one behind it, until this test ends:
# it is not among those that the system gives to connections, and tests that run
# beside this one take others (a name in the abstract namespace says so).

my @taken;

sub free_port {
    my ($low) = SandboxTest::read_file('/proc/sys/net/ipv4/ip_local_port_range')
                =~ /^(\d+)/;
    my $first = 20000;
    my $pairs = int((($low // 32768) - $first) / 2);

    for (1 .. 1000) {
        my $port = $first + 2 * int rand $pairs;
        my $name = IO::Socket::UNIX->new(Listen => 1,
                                         Local => "\0sandbox-t-port-$port")
            or next;
        next if grep { !IO::Socket::INET->new(Proto => 'tcp', Listen => 1,
            ReuseAddr => 1, LocalAddr => '127.0.0.1', LocalPort => $_) }
            $port, $port + 1;
        push @taken, $name;
        return $port;
    }

    die "no free port below $low\n";
}


sub listens {
    my $port = shift;

    return defined IO::Socket::INET->new(Proto => 'tcp', Timeout => 1,
        PeerAddr => '127.0.0.1', PeerPort => $port);
}


# Starts a program with its output appended to a log.

sub spawn {
    my ($self, $log, @command) = @_;

    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', $log;
        open STDERR, '>>', $log;
        $ENV{ASAN_OPTIONS} //= 'detect_leaks=0';
        { exec { $command[0] } @command }
        print STDERR "[emerg] cannot run $command[0]: $!\n";
        POSIX::_exit(127);
    }

    return $pid;
}


# True when the process has ended within the time.

sub reaped {
    my ($pid, $timeout) = @_;

    my $deadline = time + $timeout * $PATIENCE;

    for ( ;; ) {
        return 1 if waitpid($pid, WNOHANG) != 0;
        return 0 if time > $deadline;
        sleep 0.01;
    }
}


# Polls a condition; its value, or false when time is over.

sub wait_for {
    my ($self, $code, $timeout) = @_;

    my $deadline = time + ($timeout // 8) * $PATIENCE;

    for ( ;; ) {
        my $v = $code->();
        return $v if $v || time > $deadline;
        sleep 0.02;
    }
}


# Starts a program that writes a byte to its --ready-fd when it listens.

sub spawn_ready {
    my ($self, $name, @args) = @_;

    my $log = "$self->{dir}/logs/$name.log";

    pipe my $ready, my $tell or die "pipe: $!\n";
    fcntl $tell, F_SETFD, fcntl($tell, F_GETFD, 0) & ~FD_CLOEXEC;

    my $pid = $self->spawn($log, "$BUILD/sandbox-$name", @args,
        defined $self->{api_key}
            ? ('--api-key-file', "$self->{dir}/etc/api-key") : (),
        '--ready-fd', fileno $tell);
    close $tell;

    IO::Select->new($ready)->can_read(10 * $PATIENCE) && sysread($ready, my $byte, 1)
        or die "sandbox-$name does not start:\n" . SandboxTest::read_file($log);

    return $pid;
}


sub start_helper {
    my $self = shift;

    my $dir = $self->{dir};
    my @drop = $> == 0
        ? ('--user', 'nobody', '--socket-group', 'www-data',
           '--socket-mode', '0660', '--peer', 'www-data') : ();

    $self->{helper_pid} = $self->spawn_ready('helper', '--data', "$dir/data",
        '--socket', "$dir/run/helper.sock", '--upstream',
        $self->{upstream_url}, @drop, @{ $self->{helper_args} // [] });

    return $self;
}


# The local OpenSandbox-compatible runtime as upstream, on a port of its own.

sub start_runtime {
    my $self = shift;

    my ($port) = $self->{upstream_url} =~ /:(\d+)$/;

    $self->{runtime_pid} = $self->spawn_ready('runtime', '--port', $port,
        '--data', "$self->{dir}/runtime", @{ $self->{runtime_args} // [] });

    return $self;
}


sub start_nginx {
    my $self = shift;

    my $dir = $self->{dir};

    for my $try (1 .. 5) {
        $self->{port} = free_port();
        SandboxTest::write_file("$dir/conf/nginx.conf", $self->conf_text);

        my $pid = $self->spawn("$dir/logs/nginx.out", $NGINX, '-p', $dir, '-c',
            "$dir/conf/nginx.conf", '-e', "$dir/logs/error.log");

        my $state = $self->wait_for(sub {
            return 'gone' if waitpid($pid, WNOHANG) == $pid;
            return -s "$dir/run/nginx.pid" && listens($self->{port})
                   ? 'up' : '';
        }, 10);

        if ($state eq 'up') {
            $self->{nginx_pid} = $pid;
            return $self->workers_begun;
        }

        kill 'TERM', $pid if $state ne 'gone';

        my $why = SandboxTest::read_file("$dir/logs/error.log")
                  . SandboxTest::read_file("$dir/logs/nginx.out");

        die "nginx does not start:\n$why"
            if $why !~ /Address already in use/ || $try == 5;

        unlink glob "$dir/logs/*";
    }
}


# The master listens before its workers run: waits until each has its title.

sub workers_begun {
    my $self = shift;

    my $conf = SandboxTest::read_file("$self->{dir}/conf/nginx.conf");
    return $self if $conf =~ /^\s*master_process\s+off/m;

    my ($n) = $conf =~ /^\s*worker_processes\s+(\d+)/m;
    $self->wait_for(sub { $self->worker_pids >= ($n // 1) }, 10)
        or die "nginx has no worker:\n"
               . SandboxTest::read_file("$self->{dir}/logs/error.log");

    return $self;
}


# Pids of the workers that are not shutting down.

sub worker_pids {
    my $self = shift;

    my @pids;

    for my $stat (glob '/proc/[0-9]*/stat') {
        my ($pid, $state, $parent)
            = SandboxTest::read_file($stat) =~ /^(\d+) \(.*\) (\S) (\d+) /s
            or next;

        next if $parent != $self->{nginx_pid} || $state eq 'Z';
        push @pids, $pid
            if SandboxTest::read_file("/proc/$pid/cmdline")
               =~ /worker process(?! is)/;
    }

    return @pids;
}


# A graceful reload; returns when new workers have taken over.

sub reload {
    my $self = shift;

    my %old = map { $_ => 1 } $self->worker_pids;
    kill 'HUP', $self->{nginx_pid};

    $self->wait_for(sub {
        my @now = $self->worker_pids;
        return @now && !grep { $old{$_} } @now;
    }) or die "no new worker after HUP\n";

    return $self;
}


# Ends the helper by a signal (KILL) and waits until it is gone.

sub kill_helper {
    my ($self, $signal) = @_;

    my $pid = delete $self->{helper_pid} // return;
    kill $signal // 'KILL', $pid;
    reaped($pid, 10) or die "the helper does not go\n";
}


# Ends a process of ours; sentences about what went wrong.

sub end_process {
    my ($self, $name, $signal, $timeout) = @_;

    my $pid = delete $self->{"${name}_pid"} // return;
    my @problems;

    kill $signal, $pid;

    if (!reaped($pid, $timeout)) {
        push @problems, "$name did not end within $timeout s after $signal";
        kill 'TERM', $pid;

        if (!reaped($pid, 3)) {
            kill 'KILL', $pid;
            reaped($pid, 2);
        }

    } elsif ($?) {
        my @last = split /\n/, SandboxTest::read_file("$self->{dir}/logs/$name.log");
        push @problems, "$name ended with status $?", @last > 5 ? @last[-5 .. -1] : @last;
    }

    return @problems;
}


# Ends nginx, then the helper, then upstream.

sub halt {
    my ($self, %o) = @_;

    my @problems = (
        $self->end_process('nginx', $o{fast} ? 'TERM' : 'QUIT', 5),
        $self->end_process('helper', 'TERM', 15),
        $self->end_process('runtime', 'TERM', 10),
    );

    $self->{up}->stop if $self->{up};

    return @problems;
}

1;
