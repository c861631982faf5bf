package SandboxWs;

# A WebSocket client that shows every frame as it came.
#
#   my $ws = $t->websocket("/v1/sandboxes/s1/proxy/44772/pty/p/ws");
#   is($ws->status, 101);
#   $ws->send(2, "\x00ls\n");
#   my $f = $ws->recv;                  # {op, fin, rsv, payload} or undef

use strict;
use warnings;

use Digest::SHA qw(sha1);
use MIME::Base64 qw(encode_base64);
use Time::HiRes qw(time);


# Options: conn (a SandboxHttp), target, headers, early (bytes sent right behind
# the handshake, in the same write), plain (no handshake headers of our own).

sub open {
    my ($class, %o) = @_;

    my $c = $o{conn};
    my $key = $o{key}
        // encode_base64(pack('N4', map { rand 2 ** 32 } 1 .. 4), '');
    my @headers = @{ $o{headers} // [] };

    push @headers, 'Upgrade: ' . ($o{upgrade} // 'websocket'),
                   'Connection: ' . ($o{connection} // 'Upgrade'),
                   "Sec-WebSocket-Key: $key", 'Sec-WebSocket-Version: 13'
        if !$o{plain};

    delete $o{plain};
    $c->write($c->build(GET => $o{target}, %o, headers => \@headers)
              . ($o{early} // ''));
    my $r = $c->response(timeout => $o{timeout});

    return bless {
        conn => $c, response => $r,
        accepted => ($r->header('Sec-WebSocket-Accept') // '')
            eq encode_base64(sha1($key
                . '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'), ''),
    }, $class;
}


sub status { $_[0]{response}->status }
sub response { $_[0]{response} }
sub accepted { $_[0]{accepted} }
sub conn { $_[0]{conn} }


# Bytes of a masked frame.

sub bytes {
    my ($op, $payload, %o) = @_;

    my $n = length $payload;
    my $b0 = $op | (($o{fin} // 1) ? 0x80 : 0) | (($o{rsv} // 0) << 4);
    my $mask = $o{mask} // pack 'N', rand 2 ** 32;

    return pack('C', $b0)
           . ($n < 126 ? pack('C', 0x80 | $n)
              : $n < 65536 ? pack('Cn', 0x80 | 126, $n)
                           : pack('CQ>', 0x80 | 127, $n))
           . $mask . ($payload ^ substr($mask x (int($n / 4) + 1), 0, $n));
}


sub send {
    my ($self, $op, $payload, %o) = @_;

    return $self->{conn}->write(bytes($op, $payload, %o));
}


# The next frame; undef when the connection ended or time is over.

sub recv {
    my ($self, $timeout) = @_;

    my $c = $self->{conn};
    my $deadline = time + ($timeout // 5);

    my $want = sub {
        while (length $c->{buf} < $_[0]) { $c->fill($deadline) or return 0 }
        return 1;
    };

    $want->(2) or return undef;
    my ($b0, $b1) = unpack 'CC', $c->{buf};
    my $n = $b1 & 0x7f;
    my $off = 2;

    if ($n == 126) {
        $want->(4) or return undef;
        $n = unpack 'x2n', $c->{buf};
        $off = 4;

    } elsif ($n == 127) {
        $want->(10) or return undef;
        $n = unpack 'x2Q>', $c->{buf};
        $off = 10;
    }

    $want->($off + $n) or return undef;
    my $payload = substr $c->{buf}, $off, $n;
    substr $c->{buf}, 0, $off + $n, '';

    return { op => $b0 & 0x0f, fin => $b0 >> 7, rsv => ($b0 >> 4) & 7,
             payload => $payload };
}


# Reads frames until a condition on one of them holds; the frames.

sub recv_until {
    my ($self, $code, $timeout) = @_;

    my $deadline = time + ($timeout // 5);
    my @frames;

    while ((my $left = $deadline - time) > 0) {
        my $f = $self->recv($left) or last;
        push @frames, $f;
        last if $code->($f);
    }

    return @frames;
}


sub close_frame {
    my ($self, $code, $reason) = @_;

    $self->send(8, pack('n', $code // 1000) . ($reason // ''));
}


sub close { $_[0]{conn}->close }

1;
