package ParallelLoad::Clients;

# The clients of ParallelLoad: `slots` operations at any time, all connections
# in one loop.

use strict;
use warnings;

use Errno qw(EAGAIN ECONNREFUSED EINPROGRESS EINTR);
use Socket;
use Time::HiRes qw(time);

my $max_age = 15;       # seconds that an operation may take


sub new {
    my ($class, %o) = @_;

    return bless { conns => {}, n => 0, %o }, $class;
}


sub run {
    my $self = shift;

    srand $self->{seed};
    open $self->{log_fh}, '>>', $self->{log} or die "$self->{log}: $!\n";
    $self->{address} = pack_sockaddr_in($self->{port}, inet_aton('127.0.0.1'));

    for ( ;; ) {
        my $stopping = -e $self->{stop};
        my $conns = $self->{conns};

        if ($stopping) {
            # those that wait for another request
            $self->drop($_) for grep { !$_->{op} } values %$conns;
            last if !%$conns;

        } else {
            $self->next_operation($_) for grep { !$_->{op} } values %$conns;

            # a listener that is away refuses: not all at once again
            my $new = time < ($self->{pause} // 0) ? 0
                      : $self->{slots} - keys %$conns;
            $self->open_connection for 1 .. ($new > 40 ? 40 : $new);
        }

        my ($r, $w) = ('', '');

        for my $fd (keys %$conns) {
            vec($r, $fd, 1) = 1;
            vec($w, $fd, 1) = 1 if length $conns->{$fd}{out};
        }

        select undef, undef, undef, 0.004;
        my $n = select $r, $w, undef, 0.02;
        next if $n < 0;

        my $now = time;

        for my $fd (keys %$conns) {
            my $c = $conns->{$fd};
            $self->write($c) if vec $w, $fd, 1;
            $self->read($c) if !$c->{gone} && vec $r, $fd, 1;
            next if $c->{gone} || !$c->{op};
            my $op = $c->{op};

            if ($op->{leaves} && $now > $op->{leaves}) {
                $self->leave($c);

            } elsif ($now > $op->{begun} + $max_age) {
                $self->ended($c, 'stuck');

            } elsif ($op->{closes} && $now > $op->{closes}) {
                delete $op->{closes};
                $c->{out} .= frame(8, pack 'n', 1000);
            }
        }
    }
}


sub open_connection {
    my $self = shift;

    socket my $s, PF_INET, SOCK_STREAM, 0 or return;
    my $c = { socket => $s, in => '', out => '', answers => 0 };
    IO::Handle::blocking($s, 0);

    if (!connect($s, $self->{address}) && $! != EINPROGRESS) {
        close $s;
        return;
    }

    $self->{conns}{fileno $s} = $c;
    $self->next_operation($c);
}


sub next_operation {
    my ($self, $c) = @_;

    my $n = ++$self->{n};
    my $id = "$self->{prefix}$n";
    my $mix = $self->{mix};
    my $kind = $mix->[$n % @$mix];
    my $base = "/v1/sandboxes/$self->{sandbox}/proxy/44772";
    my @head = ('Host: localhost', $self->{credential},
                "X-Correlation-Id: $id");
    my ($line, $body) = ('', '');

    if ($kind eq 'command' || $kind eq 'slow') {
        $line = "POST $base/command";
        $body = qq({"command":"$kind $id"});
        push @head, 'Content-Type: application/json';

    } elsif ($kind eq 'upload') {
        $line = "POST $base/files/upload";
        push @head, 'Content-Type: multipart/form-data; boundary=B';
        $body = part('name="metadata"; filename="m"', qq({"path":"/w/$id"}))
              . part('name="file"; filename="f"', 'x' x int rand 20000)
              . "--B--\r\n";

    } elsif ($kind eq 'info') {
        $line = "GET $base/files/info?path=%2Fw%2F$id";

    } elsif ($kind eq 'pty') {
        $line = "GET $base/pty/p1/ws";
        push @head, 'Connection: Upgrade', 'Upgrade: websocket',
            'Sec-WebSocket-Version: 13',
            'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';

    } else {
        die "no operation \"$kind\"\n";
    }

    push @head, 'Content-Length: ' . length $body if $line =~ /^POST/;

    $c->{out} = join("\r\n", "$line HTTP/1.1", @head, '', '') . $body;
    $c->{in} = '';
    $c->{op} = { id => $id, kind => $kind, begun => time };

    if (rand() < $self->{leave}) {
        $c->{out} = substr $c->{out}, 0, rand length $c->{out} if rand() < 0.2;
        $c->{op}{leaves} = time + rand 0.6;
    }
}


sub part {
    my ($disposition, $body) = @_;

    return "--B\r\nContent-Disposition: form-data; $disposition\r\n\r\n"
           . "$body\r\n";
}


sub frame {
    my ($opcode, $data) = @_;

    # a mask of zeros leaves the bytes as they are
    return pack('CCN', 0x80 | $opcode, 0x80 | length $data, 0) . $data;
}


sub write {
    my ($self, $c) = @_;

    my $n = syswrite $c->{socket}, $c->{out};

    if (defined $n) {
        substr $c->{out}, 0, $n, '';

    } elsif ($! != EAGAIN && $! != EINTR) {
        return $self->ended($c, 'refused') if $! == ECONNREFUSED;

        # an answer may have come before the end
        $self->read($c);
        $self->ended($c, 'cut') if !$c->{gone} && $c->{op};
    }
}


sub read {
    my ($self, $c) = @_;

    my $n = sysread $c->{socket}, $c->{in}, 65536, length $c->{in};

    if (!defined $n) {
        return if $! == EAGAIN || $! == EINTR;
        return $self->ended($c, 'refused') if $! == ECONNREFUSED && $c->{op};
        $n = 0;
    }

    my $op = $c->{op};

    if ($n == 0) {
        return $self->drop($c) if !$op;
        return $self->ended($c, $op->{head} && $op->{until_close} ? 'done'
            : $op->{head} || length $c->{in} ? 'cut'
            : $c->{answers} ? 'idle' : 'cut');
    }

    return if !$op;

    if (!$op->{head}) {
        $c->{in} =~ s/\A(HTTP\/1\.1 (\d+).*?\r\n\r\n)//s or return;
        $op->{head} = $1;
        $op->{status} = $2;
        ($op->{record}) = $op->{head} =~ /^x-operation-id: (\S+)/mi;
        ($op->{length}) = $op->{head} =~ /^content-length: (\d+)/mi;
        $op->{until_close} = !defined $op->{length}
            && $op->{head} !~ /^transfer-encoding: chunked/mi;

        if ($op->{status} == 101) {
            $op->{until_close} = 0;
            $op->{closes} = time + rand 0.5;
            $c->{out} .= frame(2, "\x00$op->{id}");
        }
    }

    my $whole = $op->{status} == 101 ? $c->{in} =~ /\x88\x02/
        : defined $op->{length} ? length $c->{in} >= $op->{length}
        : $c->{in} =~ /(?:\A|\r\n)0\r\n\r\n\z/;

    $self->ended($c, 'done') if $whole;
}


# Goes away: by FIN or RST.

sub leave {
    my ($self, $c) = @_;

    setsockopt $c->{socket}, SOL_SOCKET, SO_LINGER, pack 'II', 1, 0
        if rand() < 0.5;
    $self->ended($c, 'left');
}


# Writes down how an operation has ended.

sub ended {
    my ($self, $c, $how) = @_;

    my $op = delete $c->{op};
    $c->{answers}++;
    $self->{pause} = time + 0.05 if $how eq 'refused';

    syswrite $self->{log_fh}, join(' ', $op->{id}, $op->{kind},
        $op->{status} // 0, $op->{record} // '-', $how) . "\n";

    $self->drop($c) if $how ne 'done' || $op->{status} == 101
        || $op->{until_close} || $op->{head} =~ /^connection: close/mi
        || $c->{answers} >= 8;
}


sub drop {
    my ($self, $c) = @_;

    $c->{gone} = 1;
    delete $self->{conns}{fileno $c->{socket}};
    close $c->{socket};
}

1;
