package ParallelLoad;

# Many operations at once, for tests in which something is killed, reloaded or
# replaced meanwhile: a process of clients and one of an upstream, both of one
# loop over all their connections.  Both write down what they saw, before they
# answer: an operation that upstream has seen, or a client has an answer of, must
# be on record.
#
#   my $load = ParallelLoad->new(dir => "$dir/load");
#   my $t = SandboxTest->new(upstream_url => $load->url, ...)->start;
#   $load->begin($t, slots => 200, mix => [ qw(command upload info) ]);
#   ...
#   $load->end;
#   my ($results, $seen) = ($load->results, $load->seen);
#
# Kinds: command (strict; a stream of events), upload (strict; multipart), info
# (best effort), pty (strict; a WebSocket that echoes), slow (a stream of
# `slow` seconds).

use strict;
use warnings;

use File::Path qw(make_path);
use IO::Socket::INET;
use POSIX qw(_exit);
use Time::HiRes qw(sleep time);

use ParallelLoad::Clients;
use ParallelLoad::Upstream;

our %STRICT = map { $_ => 1 } qw(command slow upload pty);
our %TYPE = (command => 'command.execute', slow => 'command.execute',
             upload => 'file.write', info => 'file.info', pty => 'pty.open');


# Options: dir; api_key; delay (seconds an answer takes at most).

sub new {
    my ($class, %o) = @_;

    my $self = bless { delay => 0.6, slow => 2, %o, owner => $$ }, $class;
    make_path($self->{dir});
    unlink glob "$self->{dir}/*";

    for my $name (qw(lifecycle execd)) {
        $self->{$name} = IO::Socket::INET->new(Proto => 'tcp', Listen => 1024,
            LocalAddr => '127.0.0.1', LocalPort => 0)
            or die "cannot listen: $!\n";
    }

    $self->{upstream_pid} = $self->process(sub {
        ParallelLoad::Upstream->new(%$self, log => "$self->{dir}/seen")->run;
    });

    return $self;
}


sub url { 'http://127.0.0.1:' . $_[0]{lifecycle}->sockport }


# Starts the clients.  Options: slots (parallel operations), mix, seed, leave
# (share of the clients that go away in between), port, prefix of the ids.

sub begin {
    my ($self, $t, %o) = @_;

    my $n = ++$self->{runs};
    my $file = "$self->{dir}/results.$n";
    my $stop = $self->{stop} = "$self->{dir}/stop.$n";

    $self->{client_pid} = $self->process(sub {
        ParallelLoad::Clients->new(slots => 200, leave => 0, seed => 1,
            mix => [ qw(command upload info) ], prefix => "r$n-",
            port => $t->port, credential => $t->credential, sandbox => 's1',
            %o, log => $file, stop => $stop)->run;
    });

    return $self;
}


# No new operations; waits until those that run have ended.

sub end {
    my $self = shift;

    my $pid = delete $self->{client_pid} // return;
    open my $fh, '>', $self->{stop} or die "$self->{stop}: $!\n";
    close $fh;
    waitpid $pid, 0;

    return $? == 0;
}


# [ id, kind, status, operation id, how it ended ] of every operation that has
# ended: "done"; "left" by the client; "cut"; "idle" (a connection that had
# answered before, without a byte of this answer); "refused".

sub results {
    my $self = shift;

    return [ map { [ split / / ] } map { read_lines($_) }
             glob "$self->{dir}/results.*" ];
}


# How often upstream has seen each id.

sub seen {
    my $self = shift;

    my %seen;
    $seen{$_}++ for read_lines("$self->{dir}/seen");

    return \%seen;
}


# What is on record, once every record has its end or time is over: open (those
# without), by_id (how often a correlation id occurs), by_event (an operation
# id), status (how many have it), gaps (operations they stand for).

sub account {
    my ($self, $t, $timeout) = @_;

    my %a = (by_id => {}, by_event => {}, status => {});
    my $h = $t->history;

    $t->wait_for(sub {
        $a{open} = [ $h->rows('select event_id, operation_type, correlation_id'
            . " from history_events where status = 'started'") ];
        return !@{ $a{open} };
    }, $timeout);

    for ($h->rows("select event_id, coalesce(correlation_id, ''), status"
                  . ' from history_events'))
    {
        $a{by_event}{$_->[0]}++;
        $a{by_id}{$_->[1]}++;
        $a{status}{$_->[2]}++;
    }

    $a{gaps} += $_->[0]
        for [ 0 ], $h->rows('select coalesce(sum(operations), 0)'
                            . ' from gateway_gaps');

    return \%a;
}


# "3 command 200 done, ...": how many of which kind ended how.

sub summary {
    my $self = shift;

    my %n;
    $n{"$_->[1] $_->[2] $_->[4]"}++ for @{ $self->results };

    return join ', ', map { "$n{$_} $_" } sort keys %n;
}


sub read_lines {
    my $path = shift;

    open my $fh, '<', $path or return;
    chomp(my @lines = <$fh>);

    return @lines;
}


sub process {
    my ($self, $code) = @_;

    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;

    $SIG{TERM} = 'DEFAULT';
    $SIG{PIPE} = 'IGNORE';
    eval { $code->(); 1 } or warn "load: $@";
    _exit($@ ? 1 : 0);
}


sub stop {
    my $self = shift;

    for my $pid (delete @$self{qw(client_pid upstream_pid)}) {
        next if !$pid;
        kill 'TERM', $pid;
        waitpid $pid, 0;
    }
}


sub DESTROY {
    my $self = shift;

    local ($?, $@, $!);
    $self->stop if $self->{owner} == $$;
}

1;
