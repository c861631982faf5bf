package SandboxHttp;

# One raw HTTP/1.x connection: what is sent is sent byte for byte, what comes
# back is read with its framing, its times and its end remembered.
#
#   my $c = SandboxHttp->connect(port => 8080);
#   $c->write("GET /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\n\r\n");
#   my $r = $c->response;                 # a SandboxHttp::Response
#
#   my $r = SandboxHttp->connect(port => $p)->request(
#       POST => '/x', headers => ['X-A: 1'], body => '{}');

use strict;
use warnings;

use Errno qw(EINTR EPIPE ECONNRESET);
use IO::Select;
use IO::Socket::INET;
use Socket qw(IPPROTO_TCP SOL_SOCKET SO_LINGER TCP_NODELAY);
use Time::HiRes qw(time);

our $TIMEOUT = 15 * ($ENV{SANDBOX_TEST_PATIENCE} // 1);


sub connect {
    my ($class, %o) = @_;

    my $s = IO::Socket::INET->new(
        Proto    => 'tcp',
        PeerAddr => $o{host} // '127.0.0.1',
        PeerPort => $o{port},
        $o{from} ? (LocalAddr => $o{from}) : (),
        Timeout  => 5,
    ) or die "cannot connect to port $o{port}: $!\n";

    binmode $s;
    setsockopt $s, IPPROTO_TCP, TCP_NODELAY, 1;

    return bless {
        socket => $s,
        buf    => '',
        eof    => 0,
        host   => $o{host_header} // "127.0.0.1:$o{port}",
    }, $class;
}


sub socket { $_[0]{socket} }


# Writes everything; false when the peer has gone meanwhile (that is for the
# caller to judge: a gateway may answer and close before it has read all).

sub write {
    my ($self, $bytes) = @_;

    local $SIG{PIPE} = 'IGNORE';
    my $off = 0;

    while ($off < length $bytes) {
        my $n = syswrite($self->{socket}, $bytes, 1 << 16, $off);

        if (!defined $n) {
            next if $! == EINTR;
            return 0 if $! == EPIPE || $! == ECONNRESET;
            die "write: $!\n";
        }

        $off += $n;
    }

    return 1;
}


# Reads some bytes into the buffer; 0 at the end, undef when time is over.

sub fill {
    my ($self, $deadline) = @_;

    return 0 if $self->{eof};

    for ( ;; ) {
        my $left = $deadline - time;
        return undef if $left <= 0;

        IO::Select->new($self->{socket})->can_read($left) or return undef;

        my $n = sysread($self->{socket}, $self->{buf}, 1 << 18,
                        length $self->{buf});

        if (!defined $n) {
            next if $! == EINTR;
            $self->{eof} = 1;
            $self->{reset} = 1 if $! == ECONNRESET;
            return 0;
        }

        $self->{eof} = 1 if $n == 0;
        return $n;
    }
}


# Builds the bytes of a request.  `headers` are whole lines without CR LF; a
# Host and, with a body, a Content-Length are added unless they are there or
# `plain` is set.

sub build {
    my ($self, $method, $target, %o) = @_;

    my @lines = @{ $o{headers} // [] };
    my $body = $o{body};

    if (!$o{plain}) {
        unshift @lines, "Host: $self->{host}"
            if !grep { /^host:/i } @lines;

        if ($o{chunked}) {
            push @lines, 'Transfer-Encoding: chunked';
            $body = join('', map { sprintf("%x\r\n", length) . "$_\r\n" }
                             grep { length } ref $body ? @$body : $body)
                    . "0\r\n\r\n";

        } elsif (defined $body && !grep { /^content-length:/i } @lines) {
            push @lines, 'Content-Length: ' . length $body;
        }
    }

    my $version = $o{version} // '1.1';

    return join("\r\n", "$method $target HTTP/$version", @lines, '', '')
           . ($body // '');
}


sub request {
    my ($self, $method, $target, %o) = @_;

    my $started = time;
    $self->write($self->build($method, $target, %o));

    return $self->response(%o, method => $method, started => $started);
}


# Reads one response.  Options: method (HEAD has no body), timeout, head_only
# (leave the body in the connection), on_data (sub called with decoded pieces
# instead of keeping the body), started (time the durations count from).
# Informational 100s are skipped.

sub response {
    my ($self, %o) = @_;

    my $started = $o{started} // time;
    my $deadline = time + ($o{timeout} // $TIMEOUT);
    my $r = SandboxHttp::Response->new(started => $started);

    AGAIN:
    while ($self->{buf} !~ /\r\n\r\n/) {
        my $n = $self->fill($deadline);

        if (!$n) {
            $r->{error} = defined $n
                ? ($self->{reset} ? 'reset' : 'closed') : 'timeout';
            $r->{rest} = $self->{buf};
            return $r;
        }
    }

    $r->{head_time} = time - $started;
    $self->{buf} =~ s/^(.*?\r\n)\r\n//s;
    $r->parse_head($1);

    goto AGAIN if $r->{status} == 100;

    if (($o{method} // '') eq 'HEAD' || $r->{status} == 101
        || $r->{status} == 204 || $r->{status} == 304)
    {
        $r->{framing} = 'none';
        $r->{complete} = 1;
        return $r;
    }

    return $r if $o{head_only};

    return $self->body($r, deadline => $deadline, on_data => $o{on_data});
}


# Reads the body of a response whose head was read with head_only.

sub body {
    my ($self, $r, %o) = @_;

    my $deadline = $o{deadline} // time + ($o{timeout} // $TIMEOUT);
    my $give = $o{on_data} // sub { $r->{body} .= $_[0] };

    if (lc($r->header('Transfer-Encoding') // '') eq 'chunked') {
        $r->{framing} = 'chunked';
        $self->read_chunked($r, $deadline, $give);

    } elsif (defined(my $left = $r->header('Content-Length'))) {
        $r->{framing} = 'length';

        while ($left > 0) {
            if (!length $self->{buf} && !$self->fill($deadline)) {
                $r->{error} = $self->{eof} ? 'closed' : 'timeout';
                last;
            }

            my $piece = substr($self->{buf}, 0, $left, '');
            $left -= length $piece;
            $r->{length} += length $piece;
            $give->($piece);
        }

        $r->{complete} = 1 if $left <= 0;

    } else {
        $r->{framing} = 'close';

        for ( ;; ) {
            if (length $self->{buf}) {
                $r->{length} += length $self->{buf};
                $give->($self->{buf});
                $self->{buf} = '';
            }

            my $n = $self->fill($deadline);
            next if $n;
            $r->{error} = 'timeout' if !defined $n;
            $r->{error} = 'reset' if $self->{reset};
            $r->{complete} = 1 if defined $n && !$self->{reset};
            last;
        }
    }

    $r->{total_time} = time - $r->{started};

    return $r;
}


sub read_chunked {
    my ($self, $r, $deadline, $give) = @_;

    my $need = sub {
        my $re = shift;

        while ($self->{buf} !~ $re) {
            if (!$self->fill($deadline)) {
                $r->{error} = $self->{eof} ? 'closed' : 'timeout';
                return 0;
            }
        }

        return 1;
    };

    for ( ;; ) {
        $need->(qr/\r\n/) or return;
        $self->{buf} =~ s/^([0-9a-fA-F]+)[^\r\n]*\r\n//
            or do { $r->{error} = 'bad chunk'; return };

        my $left = hex $1;

        if ($left == 0) {
            $need->(qr/^(?:[^\r\n]+\r\n)*\r\n/) or return;
            $self->{buf} =~ s/^((?:[^\r\n]+\r\n)*)\r\n//;
            $r->{trailer} = $1;
            $r->{complete} = 1;
            return;
        }

        push @{ $r->{chunks} }, $left if @{ $r->{chunks} } < 10_000;
        push @{ $r->{chunk_times} }, time - $r->{started}
            if @{ $r->{chunk_times} } < 10_000;

        while ($left > 0) {
            if (!length $self->{buf} && !$self->fill($deadline)) {
                $r->{error} = $self->{eof} ? 'closed' : 'timeout';
                return;
            }

            my $piece = substr($self->{buf}, 0, $left, '');
            $left -= length $piece;
            $r->{length} += length $piece;
            $give->($piece);
        }

        $need->(qr/^\r\n/) or return;
        $self->{buf} =~ s/^\r\n//;
    }
}


# Is the connection closed by the peer within the time?

sub closed {
    my ($self, $timeout) = @_;

    my $deadline = time + ($timeout // 3);

    while (!$self->{eof}) {
        defined $self->fill($deadline) or return 0;
    }

    return 1;
}


sub close { CORE::close($_[0]{socket}) }


# Closes with a reset instead of a FIN.

sub reset {
    my $self = shift;

    setsockopt($self->{socket}, SOL_SOCKET, SO_LINGER, pack('II', 1, 0));
    CORE::close($self->{socket});
}


package SandboxHttp::Response;

sub new {
    my ($class, %o) = @_;

    return bless {
        status => 0, headers => [], body => '', length => 0, complete => 0,
        framing => '', chunks => [], chunk_times => [], error => '', %o,
    }, $class;
}


sub parse_head {
    my ($self, $head) = @_;

    $self->{head} = $head;
    my ($line, @lines) = split /\r\n/, $head;

    ($self->{version}, $self->{status}, $self->{reason})
        = $line =~ m{^HTTP/(\d\.\d) (\d{3}) ?(.*)$};
    $self->{status} //= 0;
    $self->{headers} = [ map { [ /^([^:]*):[ \t]*(.*?)[ \t]*$/ ] } @lines ];
}


sub status   { $_[0]{status} }
sub content  { $_[0]{body} }
sub complete { $_[0]{complete} }


# First value of a header, or undef; all values.

sub header { (headers(@_))[0] }

sub headers {
    my ($self, $name) = @_;

    return map { $_->[1] }
           grep { defined $_->[0] && lc $_->[0] eq lc $name }
           @{ $self->{headers} };
}


sub json {
    my $self = shift;

    require JSON::PP;
    return eval { JSON::PP->new->utf8->decode($self->{body}) };
}


sub code { my $j = $_[0]->json; return ref $j eq 'HASH' ? $j->{code} : undef }

1;
