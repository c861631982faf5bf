package SandboxWs;

# A WebSocket client that shows every frame as it came.
#
#   my $ws = $t->websocket("/v1/sandboxes/s1/proxy/44772/pty/p/ws");
#   is($ws->status, 101);
#   $ws->send(2, "\x00ls\n");
#   my $f = $ws->recv;          # {op, fin, rsv, masked, payload} or undef

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


# Bytes of a frame; masked, as a client must, unless `mask` is the empty text.

sub bytes {
    my ($op, $payload, %o) = @_;

    my $n = length $payload;
    my $mask = $o{mask} // pack 'N', rand 2 ** 32;
    my $bit = length $mask ? 0x80 : 0;

    $payload ^= substr($mask x (int($n / 4) + 1), 0, $n) if $bit;

    return pack('C', $op | (($o{fin} // 1) ? 0x80 : 0) | (($o{rsv} // 0) << 4))
           . ($n < 126 ? pack('C', $bit | $n)
              : $n < 65536 ? pack('Cn', $bit | 126, $n)
                           : pack('CQ>', $bit | 127, $n))
           . $mask . $payload;
}


# Takes a frame off the front of a buffer, which `want` fills up to a length;
# undef when that fails.

sub take_frame {
    my ($buf, $want) = @_;

    $want->(2) or return undef;
    my ($b0, $b1) = unpack 'CC', $$buf;
    my ($n, $off) = ($b1 & 0x7f, 2);

    if ($n >= 126) {
        $off = $n == 126 ? 4 : 10;
        $want->($off) or return undef;
        $n = unpack $n == 126 ? 'x2n' : 'x2Q>', $$buf;
    }

    my $masked = $b1 & 0x80 ? 4 : 0;
    $want->($off + $masked + $n) or return undef;

    my $mask = substr $$buf, $off, $masked;
    my $payload = substr $$buf, $off + $masked, $n;
    substr $$buf, 0, $off + $masked + $n, '';
    $payload ^= substr($mask x (int($n / 4) + 1), 0, $n) if $masked;

    return { op => $b0 & 0x0f, fin => $b0 >> 7, rsv => ($b0 >> 4) & 7,
             masked => $masked ? 1 : 0, payload => $payload };
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

    return take_frame(\$c->{buf}, sub {
        while (length $c->{buf} < $_[0]) { $c->fill($deadline) or return 0 }
        return 1;
    });
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
