package FakeUpstream;

# A scripted OpenSandbox: a lifecycle server and the execd of some sandboxes,
# each on a loopback port of its own, in a forked process.  It logs every
# request as raw bytes and plays either the default answers of
# FakeUpstream::Play or the steps of a script.
#
#   my $up = FakeUpstream->new(dir => $dir)->start;
#   $up->sandbox('s1', execd => 'a');              # s1 runs behind port "a"
#   $up->script('POST /command', [ send => "HTTP/1.1 200 OK\r\n..." ],
#               [ pause => 0.5 ], [ 'close' ]);
#   my @seen = $up->requests(qr{^POST /command});
#
# A script belongs to requests whose "METHOD TARGET" begins with the text (or
# matches the pattern); it may be changed at any time, also while running.
# Steps:
#
#   [ send => BYTES ]            [ pause => SECONDS ]
#   [ until => NAME ]            wait for $up->release(NAME), 30 s at most
#   [ chunk => BYTES ]           one HTTP chunk (an empty one ends the body)
#   [ event => HASH or TEXT ]    one execd event in a chunk of its own
#   [ repeat => N, STEP ]        N times a step
#   [ echo => ... ]              the request as JSON (what a user port sees)
#   [ 'close' ]                  FIN;   [ 'reset' ]  RST
#   [ 'hang' ]                   wait until the peer closes; the time is logged
#   [ frame => OPCODE, BYTES, {fin => 0, rsv => 4} ]   a WebSocket frame
#   [ ws_accept => HEADERS ]     101 with the right accept value; a first
#                                argument {with => BYTES} is sent in one write
#   [ ws_echo => ]               echo frames until a close frame
#   [ ws_recv => N ]             read N frames (logged with kind "frame")
#   [ 'early' ]                  first step only: do not wait for the body
#   [ read_some => N ]           read N bytes of it;   [ 'read_body' ]  the rest
#   [ 'default' ]                the answer FakeUpstream::Play would give
#
# Request log entries are hashes: listener, method, target, version, head (raw
# bytes), headers ([name, value] pairs), body (first 1 MiB, decoded), length,
# sha256, framing, complete, conn (number of its connection), time.

use strict;
use warnings;

use Errno qw(EINTR);
use Fcntl qw(:flock);
use File::Path qw(make_path);
use IO::Select;
use IO::Socket::INET;
use Storable qw(freeze thaw);
use Time::HiRes qw(time sleep);

use FakeUpstream::Connection;


sub new {
    my ($class, %o) = @_;

    my $self = bless {
        dir       => $o{dir},
        names     => $o{listeners} // [ qw(lifecycle a b) ],
        api_key   => $o{api_key},
        listeners => {},
    }, $class;

    make_path($self->{dir});

    for my $name (@{ $self->{names} }) {
        $self->{listeners}{$name} = IO::Socket::INET->new(
            Proto => 'tcp', LocalAddr => '127.0.0.1', LocalPort => 0,
            Listen => 128,
        ) or die "cannot listen: $!\n";
    }

    # Bound but not listening: a connect to it is refused, and nobody else gets
    # the port meanwhile.
    $self->{refusing} = IO::Socket::INET->new(
        Proto => 'tcp', LocalAddr => '127.0.0.1', LocalPort => 0,
    ) or die "cannot bind: $!\n";

    $self->store({ scripts => [], sandboxes => {}, conns => 0,
                   api_key => $o{api_key}, ports => $self->ports });

    return $self;
}


sub port {
    my ($self, $name) = @_;

    return $self->{refusing}->sockport if $name eq 'refusing';
    return $self->{listeners}{$name}->sockport;
}


sub ports {
    my $self = shift;

    return { map { $_ => $self->port($_) } @{ $self->{names} }, 'refusing' };
}


sub url { 'http://127.0.0.1:' . $_[0]->port('lifecycle') }


sub start {
    my $self = shift;

    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        $SIG{TERM} = 'DEFAULT';
        $SIG{CHLD} = 'IGNORE';
        $SIG{PIPE} = 'IGNORE';
        setpgrp;
        eval { $self->serve };
        warn "upstream: $@" if $@;
        POSIX::_exit(1);
    }

    $self->{pid} = $pid;

    return $self;
}


sub stop {
    my $self = shift;

    my $pid = delete $self->{pid} // return;
    kill 'TERM', -$pid, $pid;
    waitpid $pid, 0;
}


sub DESTROY {
    my $self = shift;

    local ($?, $@, $!);
    $self->stop if $self->{pid} && ($self->{owner} // $$) == $$;
}


sub serve {
    my $self = shift;

    require POSIX;
    my %name = map { fileno($self->{listeners}{$_}) => $_ }
               keys %{ $self->{listeners} };
    my $select = IO::Select->new(values %{ $self->{listeners} });
    my $conn = 0;

    for ( ;; ) {
        for my $l ($select->can_read) {
            my $s = $l->accept or next;
            my $listener = $name{fileno $l};
            $conn++;

            my $pid = fork;
            next if !defined $pid;

            if ($pid == 0) {
                close $_ for values %{ $self->{listeners} };
                eval {
                    FakeUpstream::Connection->new(
                        upstream => $self, socket => $s,
                        listener => $listener, conn => $conn,
                    )->run;
                };
                warn "upstream: $@" if $@;
                close $s;
                POSIX::_exit(0);
            }

            close $s;
        }
    }
}


# --- state shared by files ---------------------------------------------------

sub locked {
    my ($self, $code) = @_;

    open my $fh, '>>', "$self->{dir}/lock" or die "lock: $!\n";
    flock $fh, LOCK_EX;
    my @r = $code->();
    close $fh;

    return wantarray ? @r : $r[0];
}


sub store {
    my ($self, $state) = @_;

    Storable::nstore($state, "$self->{dir}/state.new");
    rename "$self->{dir}/state.new", "$self->{dir}/state" or die "state: $!\n";
}


sub state { Storable::retrieve("$_[0]{dir}/state") }


# Changes the state: the sub gets it as its argument.

sub change {
    my ($self, $code) = @_;

    return $self->locked(sub {
        my $state = $self->state;
        my @r = $code->($state);
        $self->store($state);
        return @r;
    });
}


# --- what tests say -----------------------------------------------------------

# Makes or changes a sandbox.  Members: execd (name of its port, or "refusing"),
# state, metadata, headers (of endpoint answers), endpoint (text instead of the
# address of its port), known (0: lifecycle answers 404).

sub sandbox {
    my ($self, $id, %o) = @_;

    $self->change(sub {
        my $s = $_[0]{sandboxes}{$id} //= { execd => 'a', state => 'Running' };
        $s->{$_} = $o{$_} for keys %o;
        return;
    });

    return $id;
}


sub forget {
    my ($self, $id) = @_;

    $self->change(sub { delete $_[0]{sandboxes}{$id}; return });
}


sub script {
    my ($self, $match, @steps) = @_;

    $self->change(sub {
        my $scripts = $_[0]{scripts};
        @$scripts = grep { $_->{match} ne "$match" } @$scripts;
        unshift @$scripts, {
            match => "$match", pattern => ref $match ? 1 : 0,
            steps => \@steps,
        } if @steps;
        return;
    });
}


# Lets the steps go on that wait with [ until => NAME ].

sub release {
    my ($self, $name) = @_;

    open my $fh, '>', "$self->{dir}/released-$name" or die "release: $!\n";
    close $fh;
}


sub clear {
    my $self = shift;

    $self->change(sub { $_[0]{scripts} = []; return });
}


sub find_script {
    my ($self, $what) = @_;

    for my $s (@{ $self->state->{scripts} }) {
        return $s->{steps}
            if $s->{pattern} ? $what =~ /$s->{match}/
                             : index($what, $s->{match}) == 0;
    }

    return undef;
}


# --- the log ------------------------------------------------------------------

sub log {
    my ($self, $entry) = @_;

    $entry->{time} //= time;
    my $bytes = freeze($entry);

    $self->locked(sub {
        open my $fh, '>>:raw', "$self->{dir}/requests" or die "log: $!\n";
        syswrite $fh, pack('N', length $bytes) . $bytes;
        close $fh;
    });
}


sub entries {
    my $self = shift;

    open my $fh, '<:raw', "$self->{dir}/requests" or return;
    local $/;
    my $bytes = $self->locked(sub { <$fh> }) // '';
    my @entries;

    while (length $bytes) {
        my $n = unpack 'N', substr $bytes, 0, 4, '';
        push @entries, thaw(substr $bytes, 0, $n, '');
    }

    return @entries;
}


# Requests seen since the last mark(), filtered by a pattern on "METHOD TARGET"
# and by listener.  What the gateway's own helper asks (the identity of a new
# sandbox, an address again before it lapses) is left out unless `helper` is
# given.

sub requests {
    my ($self, $match, %o) = @_;

    my @all = grep { $_->{kind} eq 'request' } $self->entries;
    @all = @all[ ($self->{mark} // 0) .. $#all ];

    return grep {
        ($o{helper} || $_->{head} !~ m{^User-Agent: ngx_sandbox_module/}m)
        && (!defined $match || "$_->{method} $_->{target}" =~ $match)
        && (!defined $o{listener} || $_->{listener} eq $o{listener})
    } @all;
}


# Waits until at least one such request was seen and returns the last one.

sub wait_request {
    my ($self, $match, %o) = @_;

    my $deadline = time + ($o{timeout} // 5);

    for ( ;; ) {
        my @r = $self->requests($match, %o);
        return $r[-1] if @r >= ($o{count} // 1);
        return undef if time > $deadline;
        sleep 0.02;
    }
}


# Forgets what was seen so far.

sub mark {
    my $self = shift;

    $self->{mark} = grep { $_->{kind} eq 'request' } $self->entries;
}


# Waits for a log entry of another kind ("closed": the peer closed during a
# hang; "frame": a frame of ws_recv).

sub wait_entry {
    my ($self, $kind, %o) = @_;

    my $deadline = time + ($o{timeout} // 5);

    for ( ;; ) {
        my @e = grep { $_->{kind} eq $kind } $self->entries;
        return wantarray ? @e : $e[-1] if @e >= ($o{count} // 1);
        return if time > $deadline;
        sleep 0.02;
    }
}


# --- building blocks of scripts -------------------------------------------------

# A whole answer: status, body (a hash or list becomes compact JSON), header
# lines.

sub answer {
    my ($status, $body, @headers) = @_;

    require JSON::PP;
    my %reason = (200 => 'OK', 201 => 'Created', 202 => 'Accepted',
                  204 => 'No Content', 400 => 'Bad Request', 404 => 'Not Found',
                  409 => 'Conflict', 416 => 'Range Not Satisfiable',
                  500 => 'Internal Server Error', 503 => 'Service Unavailable');

    if (ref $body) {
        $body = JSON::PP->new->utf8->canonical->encode($body);
        push @headers, 'Content-Type: application/json'
            if !grep { /^content-type:/i } @headers;
    }

    $body //= '';
    push @headers, 'Content-Length: ' . length $body if $status != 204;

    return [ send => join("\r\n", "HTTP/1.1 $status " . ($reason{$status} // 'X'),
                          @headers, '', '') . $body ];
}


# Head of an event stream as execd sends it.

sub stream_head {
    return [ send => join("\r\n", 'HTTP/1.1 200 OK',
        'Content-Type: text/event-stream', 'Cache-Control: no-cache',
        'Connection: keep-alive', 'X-Accel-Buffering: no',
        'Transfer-Encoding: chunked', '', '') ];
}


# Steps of a stream of events with its head and its end.

sub stream {
    my @events = @_;

    return (stream_head(), (map { [ event => $_ ] } @events), [ chunk => '' ]);
}


sub event {
    my ($type, %o) = @_;

    return { type => $type, timestamp => 1795957342222, %o };
}

1;
