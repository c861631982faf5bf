package LocalRuntime;

# sandbox-runtime by itself: a process on a port of its own, and short ways to
# ask it and the sandboxes in it.
#
#   my $rt = LocalRuntime->start('--grace=0');
#   my $id = $rt->create;
#   is($rt->execd($id, GET => '/ping')->status, 200);
#   is($rt->stop, 0);
#
# Tests are skipped where bubblewrap cannot run.

use strict;
use warnings;

use Fcntl qw(F_GETFD F_SETFD FD_CLOEXEC);
use File::Temp qw(tempdir);
use IO::Select;
use JSON::PP;
use Test::More;

use SandboxHttp;
use SandboxProcess;

my $JSON = JSON::PP->new->utf8->canonical;
my %running;

our %MINIMAL = (image => { uri => 'python:3.11' }, timeout => 600,
                resourceLimits => { cpu => '1', memory => '2Gi' },
                entrypoint => [ 'tail', '-f', '/dev/null' ]);

END {
    local $?;
    kill 'TERM', keys %running;
    waitpid $_, 0 for keys %running;
}


sub start {
    my ($class, @args) = @_;

    my $program = "$SandboxProcess::BUILD/sandbox-runtime";
    plan skip_all => "$program is not built" if !-x $program;

    my $dir = tempdir(CLEANUP => 1);
    pipe my $ready, my $tell or die "pipe: $!\n";
    fcntl $tell, F_SETFD, fcntl($tell, F_GETFD, 0) & ~FD_CLOEXEC;

    my $pid = SandboxProcess->spawn("$dir/log", $program, '--port=0',
        "--data=$dir/data", '--ready-fd', fileno $tell, @args);
    close $tell;

    my $up = IO::Select->new($ready)->can_read(15)
             && sysread $ready, my $byte, 1;
    my $self = bless { dir => $dir, pid => $pid, execd => {} }, $class;
    my $text = $self->log;

    plan skip_all => "bubblewrap cannot run here: $text"
        if !$up && $text =~ /bubblewrap \(bwrap\) does not run/;
    die "sandbox-runtime does not start: $text\n" if !$up;

    $running{$pid} = 1;
    ($self->{port}) = $text =~ m{http://127\.0\.0\.1:(\d+)};

    return $self;
}


sub log {
    my ($self, $file) = @_;

    open my $f, '<:raw', $file // "$self->{dir}/log" or return '';
    local $/;

    return scalar(<$f>) // '';
}


# What is wrong in the logs of the sandboxes that exist, and in its own.

sub complaints {
    my $self = shift;

    return join '', grep { /Sanitizer|runtime error:|Assertion|MHD|abort/ }
                    map { $self->log($_) } "$self->{dir}/log",
                    glob "$self->{dir}/data/sandboxes/*/log";
}


sub stop {
    my $self = shift;

    kill 'TERM', $self->{pid};
    my $ended = SandboxProcess::reaped($self->{pid}, 10);
    delete $running{ $self->{pid} } if $ended;

    return $ended ? $? : -1;
}


# One request to a port; a body that is a reference is sent as JSON.

sub ask {
    my ($port, $method, $target, $body, @headers) = @_;

    return SandboxHttp->connect(port => $port)->request($method, $target,
        headers => [ @headers, ref $body ? 'Content-Type: application/json'
                                         : () ],
        defined $body ? (body => ref $body ? $JSON->encode($body) : $body)
                      : (),
        timeout => 30);
}


# The lifecycle side.

sub call {
    my ($self, @request) = @_;

    return ask($self->{port}, @request);
}


sub create {
    my ($self, %o) = @_;

    my $r = $self->call(POST => '/v1/sandboxes', { %MINIMAL, %o });
    die 'create: ' . $r->content . "\n" if $r->status != 202;

    return $r->json->{id};
}


# The port of a sandbox's execd.

sub port {
    my ($self, $id) = @_;

    return $self->{execd}{$id} //= do {
        my $e = $self->call(GET => "/v1/sandboxes/$id/endpoints/44772")->json;
        $e->{endpoint} =~ /:(\d+)/ ? $1 : die "no endpoint\n";
    };
}


sub execd {
    my ($self, $id, @request) = @_;

    return ask($self->port($id), @request);
}


# The events of an answer.

sub events {
    my $r = shift;

    return map { $JSON->decode($_) } split /\n\n/, $r->content;
}


# Runs a command; its standard output, lines joined.

sub run {
    my ($self, $id, $command, %o) = @_;

    return join "\n", map { $_->{text} } grep { $_->{type} eq 'stdout' }
        events($self->execd($id, POST => '/command',
                            { command => $command, %o }));
}


# Uploads bytes to a path.

sub upload {
    my ($self, $id, $path, $bytes, %meta) = @_;

    return $self->execd($id, POST => '/files/upload',
        join("\r\n", '--B', 'Content-Disposition: form-data; name="metadata";'
             . ' filename="metadata"', '',
             $JSON->encode({ path => $path, %meta }), '--B',
             'Content-Disposition: form-data; name="file"; filename="f"', '',
             $bytes, '--B--', ''),
        'Content-Type: multipart/form-data; boundary=B');
}

1;
