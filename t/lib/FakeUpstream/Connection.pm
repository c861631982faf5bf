package FakeUpstream::Connection;

# One connection of the scripted upstream: reads requests as raw bytes, logs
# them and plays the steps of a script (see FakeUpstream).

use strict;
use warnings;

use Digest::SHA;
use Errno qw(EINTR);
use JSON::PP;
use MIME::Base64 qw(encode_base64);
use Socket qw(IPPROTO_TCP SOL_SOCKET SO_LINGER TCP_NODELAY);
use Time::HiRes qw(time sleep);

use FakeUpstream::Play;
use SandboxWs;

our $BODY_KEPT = 1 << 20;


sub new {
    my ($class, %o) = @_;

    binmode $o{socket};
    setsockopt $o{socket}, IPPROTO_TCP, TCP_NODELAY, 1;

    return bless { buf => '', %o }, $class;
}


sub run {
    my $self = shift;

    while (my $req = $self->read_head) {
        my $up = $self->{upstream};
        my $steps = $up->find_script("$req->{method} $req->{target}");

        if (!$steps || ($steps->[0][0] // '') ne 'early') {
            $self->read_body($req);
            $self->log_request($req);
            return if !$req->{complete};
        }

        $self->{req} = $req;
        $self->{gone} = 0;

        my $alive = $steps ? $self->play($req, @$steps)
                           : FakeUpstream::Play::answer($self, $req);

        $self->log_request($req);

        return if !$alive || $self->{gone}
                  || ($req->{header}{connection} // '') =~ /close/i;
    }
}


sub log_request {
    my ($self, $req) = @_;

    return if $req->{logged}++;

    my %entry = %$req;
    delete @entry{qw(header digest)};
    $self->{upstream}->log({ kind => 'request', %entry,
                             listener => $self->{listener},
                             conn => $self->{conn} });
}


sub fill {
    my $self = shift;

    for ( ;; ) {
        my $n = sysread($self->{socket}, $self->{buf}, 1 << 17,
                        length $self->{buf});
        next if !defined $n && $! == EINTR;
        return $n // 0;
    }
}


sub read_head {
    my $self = shift;

    while ($self->{buf} !~ /\r\n\r\n/) {
        $self->fill or return undef;
    }

    $self->{buf} =~ s/^(.*?\r\n\r\n)//s;
    my $head = $1;
    my ($line, @lines) = split /\r\n/, $head;
    my ($method, $target, $version) = $line =~ m{^(\S+) (.*) HTTP/(\d\.\d)$}
        or return undef;
    my @headers = map { [ /^([^:]*):\s*(.*)$/ ] } @lines;

    return {
        method => $method, target => $target, version => $version,
        head => $head, headers => \@headers,
        header => { map { lc $_->[0] => $_->[1] } @headers },
        body => '', length => 0, complete => 0, framing => 'none',
        digest => Digest::SHA->new(256),
    };
}


sub take {
    my ($self, $req, $piece) = @_;

    $req->{digest}->add($piece);
    $req->{length} += length $piece;
    $req->{body} .= substr $piece, 0, $BODY_KEPT - length $req->{body}
        if length $req->{body} < $BODY_KEPT;
}


sub read_body {
    my ($self, $req) = @_;

    return if $req->{body_read}++;

    my $h = $req->{header};

    if (lc($h->{'transfer-encoding'} // '') eq 'chunked') {
        $req->{framing} = 'chunked';

        for ( ;; ) {
            while ($self->{buf} !~ /\r\n/) { $self->fill or return }
            $self->{buf} =~ s/^([0-9a-fA-F]+)[^\r]*\r\n// or return;
            my $left = hex $1;

            if ($left == 0) {
                while ($self->{buf} !~ /^(?:[^\r\n]+\r\n)*\r\n/) {
                    $self->fill or return;
                }
                $self->{buf} =~ s/^((?:[^\r\n]+\r\n)*)\r\n//;
                $req->{trailer} = $1;
                last;
            }

            $self->read_exactly($req, $left) or return;
            while (length $self->{buf} < 2) { $self->fill or return }
            substr $self->{buf}, 0, 2, '';
        }

    } elsif (defined $h->{'content-length'}) {
        $req->{framing} = 'length';
        $self->read_exactly($req, $h->{'content-length'} - $req->{length})
            or return;
    }

    $req->{sha256} = $req->{digest}->clone->hexdigest;
    $req->{complete} = 1;
}


sub read_exactly {
    my ($self, $req, $left) = @_;

    while ($left > 0) {
        if (!length $self->{buf}) { $self->fill or return 0 }
        my $piece = substr $self->{buf}, 0, $left, '';
        $left -= length $piece;
        $self->take($req, $piece);
    }

    return 1;
}


# --- playing -------------------------------------------------------------------

sub send {
    my ($self, $bytes) = @_;

    my $off = 0;

    while (!$self->{gone} && $off < length $bytes) {
        my $n = syswrite $self->{socket}, $bytes, 1 << 17, $off;

        if (!defined $n) {
            next if $! == EINTR;
            $self->{gone} = 1;
            $self->{upstream}->log({ kind => 'closed', conn => $self->{conn},
                                     while => 'sending' });
            return;
        }

        $off += $n;
    }
}


sub chunk {
    my ($self, $bytes) = @_;

    $self->send(sprintf("%x\r\n", length $bytes) . $bytes . "\r\n");
}


sub event {
    my ($self, $event) = @_;

    $event = encode_event($event) if ref $event;
    $self->chunk("$event\n\n");
}


# An event in execd's order of members, with Go's escapes.

sub encode_event {
    my $e = shift;

    my $json = JSON::PP->new->utf8->allow_nonref;
    my @order = qw(type text execution_count execution_time timestamp results
                   error);
    my %known = map { $_ => 1 } @order;
    my @members = map { $json->encode($_) . ':' . $json->encode($e->{$_}) }
                  grep { defined $e->{$_} }
                  @order, sort grep { !$known{$_} } keys %$e;
    my $text = '{' . join(',', @members) . '}';

    $text =~ s/([<>&])/sprintf '\u%04x', ord $1/ge;

    return $text;
}


# Plays steps; false when the connection is not to be used any more.

sub play {
    my ($self, $req, @steps) = @_;

    for my $step (@steps) {
        my ($do, @arg) = @$step;

        return 0 if $self->{gone};

        if ($do eq 'send') {
            $self->send($arg[0]);

        } elsif ($do eq 'pause') {
            sleep $arg[0];

        } elsif ($do eq 'until') {
            my $file = "$self->{upstream}{dir}/released-$arg[0]";

            for (1 .. 3000) {
                last if -e $file;
                sleep 0.01;
            }

        } elsif ($do eq 'chunk') {
            $self->chunk($arg[0]);

        } elsif ($do eq 'event') {
            $self->event($arg[0]);

        } elsif ($do eq 'repeat') {
            for (1 .. $arg[0]) {
                $self->play($req, @arg[1 .. $#arg]);
                return 0 if $self->{gone};
            }

        } elsif ($do eq 'early') {
            next;

        } elsif ($do eq 'read_body') {
            $self->read_body($req);
            $self->log_request($req);

        } elsif ($do eq 'read_some') {
            $self->read_exactly($req, $arg[0]);

        } elsif ($do eq 'close') {
            return 0;

        } elsif ($do eq 'reset') {
            setsockopt $self->{socket}, SOL_SOCKET, SO_LINGER, pack 'II', 1, 0;
            return 0;

        } elsif ($do eq 'hang') {
            $self->log_request($req);
            1 while $self->fill;
            $self->{upstream}->log({ kind => 'closed', conn => $self->{conn},
                                     while => 'hanging' });
            return 0;

        } elsif ($do eq 'default') {
            FakeUpstream::Play::answer($self, $req) or return 0;

        } elsif ($do eq 'echo') {
            FakeUpstream::Play::echo($self, $req);

        } elsif ($do eq 'ws_accept') {
            $self->log_request($req);
            $self->ws_accept($req, @arg);

        } elsif ($do eq 'frame') {
            $self->frame(@arg);

        } elsif ($do eq 'ws_recv') {
            for (1 .. $arg[0]) {
                my $f = $self->recv_frame or return 0;
                $self->{upstream}->log({ kind => 'frame', %$f,
                                         conn => $self->{conn} });
            }

        } elsif ($do eq 'ws_echo') {
            while (my $f = $self->recv_frame) {
                $self->frame($f->{op}, $f->{payload}, { fin => $f->{fin} });
                return 0 if $f->{op} == 8;
            }
            return 0;

        } else {
            die "unknown step $do\n";
        }
    }

    return 1;
}


# --- WebSocket -------------------------------------------------------------------

sub ws_accept {
    my ($self, $req, @headers) = @_;

    my $with = ref $headers[0] ? shift(@headers)->{with} : '';
    my $key = $req->{header}{'sec-websocket-key'} // '';
    my $accept = encode_base64(Digest::SHA::sha1(
        $key . '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'), '');

    $self->send(join "\r\n", 'HTTP/1.1 101 Switching Protocols',
                'Upgrade: websocket', 'Connection: Upgrade',
                "Sec-WebSocket-Accept: $accept", @headers, '', $with);
}


# Bytes of a frame as a server sends it.

sub frame_bytes {
    my ($op, $payload, $o) = @_;

    return SandboxWs::bytes($op, $payload, %{ $o // {} }, mask => '');
}


sub frame {
    my ($self, @frame) = @_;

    $self->send(frame_bytes(@frame));
}


# The next frame of the client, unmasked; undef at the end.

sub recv_frame {
    my $self = shift;

    return SandboxWs::take_frame(\$self->{buf}, sub {
        while (length $self->{buf} < $_[0]) { $self->fill or return 0 }
        return 1;
    });
}

1;
