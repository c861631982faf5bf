#!/usr/bin/perl

# A live stream over HTTP/2 whose reader stops reading and then resets it: what
# is half written is written to its end, from memory that is still its own.
#
# Memory that was freed is filled with a letter that no event holds.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Handle;
use SandboxLive qw(command);
use SandboxTest;
use Socket qw(IPPROTO_TCP PF_INET SOCK_STREAM SOL_SOCKET SO_RCVBUF inet_aton
              pack_sockaddr_in);
use Test::More;

BEGIN { $ENV{MALLOC_PERTURB_} = 165 }

my $h2 = SandboxProcess::free_port();
my $t = SandboxTest->new(server => "listen 127.0.0.1:$h2 http2 sndbuf=8k;")->start;
$t->sandbox('s1');
ok($t->wait_for(sub { open_streams() eq '0' }), 'the helper is there');

my $c = slow_reader();
ok($t->wait_for(sub { open_streams() eq '1' }), 'a stream is open');

# more than both sockets and the windows hold

my @lines = map { sprintf('%05d ', $_) . 'x' x 16_000 } 1 .. 40;
for my $i (1 .. 2) {
    my $r = command($t, 's1', "big $i", @lines);
    is($r->status, 200, 'something happens');
    $t->record($r);
}

print {$c} frame(3, 0, 1, pack 'N', 8), frame(6, 0, 0, 'the last');
ok($t->wait_for(sub { open_streams() eq '0' }), 'the stream is reset');

my ($data, $last) = ('', '');
while (!length $last) {
    my ($type, $flags, $stream, $payload) = next_frame($c) or last;
    $data .= $payload if $type == 0 && $stream == 1;
    $last = $payload if $type == 6 && $flags & 1;
}

is($last, 'the last', 'the connection goes on');
cmp_ok(length $data, '>', 8192, 'what was on its way comes');
like($data, qr/^id: /m, 'as events');
my $foreign = () = $data =~ /[^\n\x20-\x7e]/g;
is($foreign, 0, 'and as they were');

$t->stop;
done_testing;


sub open_streams {
    my ($n) = $t->get('/console/api/v1/metrics')->content
        =~ /^sandbox_gateway_streams (\d+)$/m;
    return $n // '';
}


# A connection with little room at this end and none at the protocol's.

sub slow_reader {
    socket my $s, PF_INET, SOCK_STREAM, IPPROTO_TCP or die "socket: $!\n";
    setsockopt $s, SOL_SOCKET, SO_RCVBUF, 4096 or die "setsockopt: $!\n";
    connect $s, pack_sockaddr_in($h2, inet_aton('127.0.0.1')) or die "connect: $!\n";
    binmode $s;
    $s->autoflush(1);

    my @header = ([ ':method', 'GET' ], [ ':scheme', 'http' ],
                  [ ':authority', "127.0.0.1:$h2" ],
                  [ ':path', '/console/api/v1/live' ],
                  [ split /: /, lc(($t->credential)[0] =~ s/: .*//sr)
                                . ': ' . $t->token ]);

    print {$s} "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        frame(4, 0, 0, pack 'nN', 4, 0x7fffffff),
        frame(8, 0, 0, pack 'N', 0x7fff0000),
        frame(1, 5, 1, join '', map { "\0" . join '', map { text($_) } @$_ } @header);

    return $s;
}


# A string as HPACK writes it, not compressed; shorter than 254.

sub text {
    my ($s) = @_;
    my $n = length $s;

    return ($n < 127 ? chr $n : "\x7f" . chr $n - 127) . $s;
}


sub frame {
    my ($type, $flags, $stream, $payload) = @_;

    return substr(pack('N', length $payload), 1)
           . pack('CCN', $type, $flags, $stream) . $payload;
}


sub next_frame {
    my ($s) = @_;

    read($s, my $head, 9) == 9 or return;
    my ($high, $low, $type, $flags, $stream) = unpack 'CnCCN', $head;
    my $n = $high << 16 | $low;
    my $payload = '';
    $n == 0 || read($s, $payload, $n) == $n or return;

    return ($type, $flags, $stream, $payload);
}
