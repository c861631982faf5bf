package SandboxGateway;

# sandbox-gateway as a test runs it: a private directory, a free port, the lines
# that it prints, the messages that it writes.
#
#   my $g = SandboxGateway->new(args => ['--upstream', $url])->start;
#   $g->get('/v1/sandboxes', headers => ['OPEN-SANDBOX-API-KEY: ' . $g->token]);
#   $g->stop;

use strict;
use warnings;

use File::Temp;
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(time sleep);

use SandboxHttp;
use SandboxProcess;
use SandboxTest;

our $PROGRAM = "$SandboxProcess::BUILD/sandbox-gateway";


# Options: args, env, data (a directory; default: a new one that does not exist
# yet), mode (of a data directory that exists before the start), port.

sub new {
    my ($class, %o) = @_;

    my $dir = File::Temp->newdir('sandbox-g-XXXXXX', TMPDIR => 1,
                                 CLEANUP => !$ENV{SANDBOX_TEST_KEEP});
    chmod 0755, "$dir";
    mkdir "$dir/cwd";

    my $self = bless {
        tmp  => $dir,
        dir  => "$dir",
        data => "$dir/data",
        args => [],
        env  => {},
        %o,
    }, $class;

    $self->{port} //= SandboxProcess::free_port();
    mkdir $self->{data}, $self->{mode} if defined $self->{mode};

    return $self;
}


sub port { $_[0]{port} }
sub data { $_[0]{data} }
sub pid { $_[0]{pid} }
sub token { $_[0]{token} }
sub errors { SandboxTest::read_file("$_[0]{dir}/err") }
sub lines { split /\n/, SandboxTest::read_file("$_[0]{dir}/out") }

sub line {
    my ($self, $name) = @_;

    my ($line) = grep { /^\Q$name\E: / } $self->lines;

    return $line && $line =~ s/^\Q$name\E: //r;
}


sub spawn {
    my ($self, @args) = @_;

    unlink "$self->{dir}/out", "$self->{dir}/err";
    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        chdir "$self->{dir}/cwd" or die "chdir: $!\n";
        delete @ENV{ grep { /^SANDBOX_GATEWAY_/ } keys %ENV };
        $ENV{SANDBOX_GATEWAY_NGINX} = $ENV{SANDBOX_NGINX} if $ENV{SANDBOX_NGINX};
        %ENV = (%ENV, %{ $self->{env} });
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$self->{dir}/out";
        open STDERR, '>', "$self->{dir}/err";
        { exec { $PROGRAM } $PROGRAM, @args }
        POSIX::_exit(127);
    }

    return $pid;
}


# Runs it to its end (at most 30 s): exit code, standard output, errors.

sub run {
    my ($self, @args) = @_;

    my $pid = $self->spawn(@args);

    if (!SandboxProcess::reaped($pid, 30)) {
        kill 'TERM', $pid;
        SandboxProcess::reaped($pid, 60);
        return (-1, '', $self->errors . '(it did not end by itself)');
    }

    return ($? & 127 ? -1 : $? >> 8,
            SandboxTest::read_file("$self->{dir}/out"), $self->errors);
}


sub arguments {
    my $self = shift;

    return ('--port', $self->{port}, '--data', $self->{data},
            @{ $self->{args} });
}


# Starts it and waits for its last line; dies with its messages otherwise.

sub start {
    my $self = shift;

    my $began = time;
    $self->{pid} = $self->spawn($self->arguments);

    my $up = SandboxProcess->wait_for(sub {
        return 'gone' if waitpid($self->{pid}, WNOHANG) == $self->{pid};
        return defined $self->line('History') ? 'up' : '';
    }, 60);

    if ($up ne 'up') {
        my $pid = delete $self->{pid};

        if ($up eq '') {
            kill 'TERM', $pid;
            SandboxProcess::reaped($pid, 60);
        }

        die "sandbox-gateway does not start:\n" . $self->errors;
    }

    $self->{seconds} = time - $began;

    my $token = $self->line('Token');
    $self->{token} = $token if $token =~ /^sbx_\S+$/;

    return $self;
}


# Processes of this gateway by name: what has it as its parent.

sub children {
    my $self = shift;

    my %child;

    for my $stat (glob '/proc/[0-9]*/stat') {
        my ($pid, $name, $state, $parent)
            = SandboxTest::read_file($stat) =~ /^(\d+) \((.*)\) (\S) (\d+) /s
            or next;
        $child{$name} = $pid if $parent == $self->{pid} && $state ne 'Z';
    }

    return %child;
}


# Those of the processes that still run; remains that nobody has waited for do
# not.

sub alive {
    return grep {
        SandboxTest::read_file("/proc/$_/stat") =~ /^\d+ \(.*\) ([^ZX]) /s
    } @_;
}


# Ends it gracefully; its exit code.

sub stop {
    my ($self, $signal) = @_;

    my $pid = delete $self->{pid} // return;

    kill $signal // 'TERM', $pid;

    if (!SandboxProcess::reaped($pid, 40)) {
        kill 'TERM', $pid;
        SandboxProcess::reaped($pid, 40);
        return -1;
    }

    return $? & 127 ? -1 : $? >> 8;
}


sub request {
    my ($self, $method, $target, %o) = @_;

    my @headers = @{ $o{headers} // [] };
    my $token = exists $o{token} ? $o{token} : $self->{token};
    push @headers, "OPEN-SANDBOX-API-KEY: $token" if defined $token;

    return SandboxHttp->connect(port => $self->{port},
                                host_header => $o{host})
        ->request($method, $target, %o, headers => \@headers);
}


sub get { my $self = shift; $self->request(GET => @_) }


# Message lines that no run may have.

sub bad_lines {
    my $self = shift;

    return grep { $_ =~ $SandboxTest::BAD_LINE } split /\n/, $self->errors;
}


sub DESTROY {
    my $self = shift;

    return if !$self->{pid} || $self->{owner_gone};

    local $?;
    $self->stop;
}

1;
