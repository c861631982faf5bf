package ParallelLoad::Upstream;

# The upstream of ParallelLoad: a lifecycle server with one sandbox and its
# execd, all connections in one loop.

use strict;
use warnings;

use Digest::SHA qw(sha1_base64);
use Fcntl;
use Time::HiRes qw(time);


sub new {
    my ($class, %o) = @_;

    return bless { conns => {}, later => [], %o }, $class;
}


sub run {
    my $self = shift;

    srand 1;
    open $self->{log_fh}, '>>', $self->{log} or die "$self->{log}: $!\n";
    $_->blocking(0) for @$self{qw(lifecycle execd)};

    for ( ;; ) {
        my ($r, $w) = ('', '');
        vec($r, fileno $_, 1) = 1 for @$self{qw(lifecycle execd)};

        for my $fd (keys %{ $self->{conns} }) {
            vec($r, $fd, 1) = 1;
            vec($w, $fd, 1) = 1 if length $self->{conns}{$fd}{out};
        }

        # what happens within some ms is looked at together
        select undef, undef, undef, 0.003;
        my $n = select $r, $w, undef, @{ $self->{later} } ? 0.01 : 0.2;
        next if $n < 0;

        for my $l (@$self{qw(lifecycle execd)}) {
            next if !vec $r, fileno $l, 1;

            while (my $s = $l->accept) {
                $s->blocking(0);
                $self->{conns}{fileno $s} = { socket => $s, in => '', out => '' };
            }
        }

        for my $fd (keys %{ $self->{conns} }) {
            my $c = $self->{conns}{$fd};
            $self->readable($c) if vec $r, $fd, 1;
            $self->written($c) if vec $w, $fd, 1;
        }

        $self->due;
    }
}


sub drop {
    my ($self, $c) = @_;

    $c->{gone} = 1;
    my $fd = fileno $c->{socket};
    delete $self->{conns}{$fd} if defined $fd;
    close $c->{socket};
}


sub readable {
    my ($self, $c) = @_;

    my $n = sysread $c->{socket}, $c->{in}, 65536, length $c->{in};

    if (!defined $n) {
        $self->drop($c) if !$!{EAGAIN} && !$!{EINTR};
        return;
    }

    return $self->drop($c) if $n == 0;

    if ($c->{ws}) {
        $self->frames($c);
        return;
    }

    while (!$c->{busy} && $c->{in} =~ /\r\n\r\n/) {
        my $head = substr $c->{in}, 0, $+[0];
        my $size = length($head) + ($head =~ /^content-length: (\d+)/mi ? $1 : 0);

        # an upload may be chunked when nginx does not know its length
        if ($head =~ /^transfer-encoding: chunked/mi) {
            my $end = index $c->{in}, "\r\n0\r\n\r\n", length($head) - 2;
            last if $end < 0;
            $size = $end + 7;
        }

        last if length $c->{in} < $size;
        my $body = substr $c->{in}, length $head, $size - length $head;
        substr $c->{in}, 0, $size, '';
        $self->request($c, $head, $body);
    }
}


sub written {
    my ($self, $c) = @_;

    my $n = syswrite $c->{socket}, $c->{out};

    if (defined $n) {
        substr $c->{out}, 0, $n, '';

    } elsif (!$!{EAGAIN} && !$!{EINTR}) {
        $self->drop($c);
    }
}


# Sends bytes after a while; `last`: the answer is whole then, 2: and the
# connection ends.

sub later {
    my ($self, $c, $after, $bytes, $last) = @_;

    push @{ $self->{later} }, [ time + $after, $c, $bytes, $last ];
}


sub due {
    my $self = shift;

    my $now = time;
    my @left;

    for my $l (@{ $self->{later} }) {
        my ($at, $c, $bytes, $last) = @$l;

        if ($c->{gone}) {
            next;

        } elsif ($at > $now) {
            push @left, $l;
            next;
        }

        $c->{out} .= $bytes;
        $c->{busy} = 0 if $last;
        $self->written($c);
        $self->drop($c) if !$c->{gone} && ($last // 0) == 2;
    }

    $self->{later} = \@left;
}


sub answer {
    my ($self, $c, $status, $json, $after) = @_;

    $c->{busy} = 1;
    $self->later($c, $after // 0, "HTTP/1.1 $status\r\nContent-Type: "
        . "application/json\r\nContent-Length: " . length($json)
        . "\r\n\r\n$json", 1);
}


sub request {
    my ($self, $c, $head, $body) = @_;

    my ($method, $target) = $head =~ /^(\S+) (\S+)/;
    my ($id) = $head =~ /^x-correlation-id: (\S+)/mi;
    my $delay = $self->{delay} * (0.2 + 0.8 * rand);

    syswrite $self->{log_fh}, "$id\n" if defined $id;

    $target =~ s{^/v1}{};
    $target =~ s{^/sandboxes/s1/proxy/44772(?=/)}{};

    if ($target =~ m{^/sandboxes/s1/endpoints/(\d+)}) {
        my $port = $self->{execd}->sockport;
        return $self->answer($c, '200 OK', qq({"endpoint":"127.0.0.1:$port"}));
    }

    if ($target =~ m{^/sandboxes/s1$}) {
        return $self->answer($c, '200 OK', '{"id":"s1","status":{"state":'
            . '"Running"},"metadata":{},"createdAt":"2026-06-15T09:00:00Z"}');
    }

    if ($target =~ m{^/command/status/(\w+)}) {
        return $self->answer($c, '200 OK', qq({"id":"$1","content":"x",)
            . '"running":false,"exit_code":0,"error":""}');
    }

    if ($target =~ m{^/pty/\w+/ws}) {
        my ($key) = $head =~ /^sec-websocket-key: (\S+)/mi;
        my $accept = sha1_base64(($key // '')
                                 . '258EAFA5-E914-47DA-95CA-C5AB0DC85B11') . '=';
        $c->{ws} = $c->{busy} = 1;
        $self->later($c, 0, "HTTP/1.1 101 Switching Protocols\r\n"
            . "Upgrade: websocket\r\nConnection: Upgrade\r\n"
            . "Sec-WebSocket-Accept: $accept\r\n\r\n");
        return $self->frames($c);
    }

    if ("$method $target" eq 'POST /command') {
        my $slow = $body =~ /slow/ ? $self->{slow} : 0;
        my $run = sprintf '%032x', ++$self->{commands};
        $c->{busy} = 1;
        $self->later($c, $slow ? 0 : $delay / 2, "HTTP/1.1 200 OK\r\n"
            . "Content-Type: text/event-stream\r\n"
            . "Transfer-Encoding: chunked\r\n\r\n"
            . event(qq("init","text":"$run"))
            . event('"stdout","text":"begun"'));
        $self->later($c, $slow || $delay, event('"stdout","text":"done"')
            . event('"execution_complete","execution_time":1') . "0\r\n\r\n", 1);
        return;
    }

    if ($target =~ m{^/files/}) {
        return $self->answer($c, '200 OK', '{}', $delay);
    }

    $self->answer($c, '404 Not Found', '{}');
}


sub event {
    my $text = qq({"type":$_[0],"timestamp":1795957342222}\n\n);

    return sprintf "%x\r\n%s\r\n", length $text, $text;
}


# Echoes short masked frames; a close frame is answered and ends it.

sub frames {
    my ($self, $c) = @_;

    while (length $c->{in} >= 6) {
        my ($first, $second) = unpack 'CC', $c->{in};
        my $length = $second & 0x7f;
        last if length $c->{in} < 6 + $length;

        my $frame = substr $c->{in}, 0, 6 + $length, '';
        my $mask = substr $frame, 2, 4;
        my $data = substr($frame, 6) ^ substr $mask x ($length / 4 + 1), 0,
                                              $length;
        $self->later($c, 0, pack('CC', $first, $length) . $data,
                     ($first & 15) == 8 ? 2 : 0);
    }
}

1;
