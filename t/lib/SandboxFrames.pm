package SandboxFrames;

# A worker as sandbox-helper sees it: frames (lib/frame.h) over the helper's
# socket, without nginx.

use strict;
use warnings;

use Exporter qw(import);
use IO::Select;
use IO::Socket::UNIX;
use Time::HiRes qw(time);

our @EXPORT_OK = qw(op_id frame);

our %TYPE = (HELLO => 1, WELCOME => 2, ACK => 3, BEGIN => 16, FACTS => 17,
             OUTPUT => 18, END => 19, GAP => 20, SEEN => 21, KEYS => 24,
             RELEASE => 25, GRANTED => 40, FETCH => 32,
             FETCHED => 33, ASK => 34, ANSWER => 35, CREDIT => 36,
             CANCEL => 37);

our %TAG = (INSTANCE => 1, PID => 2, ROLE => 3, LAST_SEQ => 4, CODE => 5,
            REASON => 6, COUNT => 7, TIME => 8, TIME_END => 9, TARGET => 10,
            DATA => 11, MODE => 12, QUERY => 13, CONTENT_TYPE => 14,
            ALLOW => 15, TYPE => 20, SANDBOX => 21, PORT => 22,
            METHOD => 25, PATH => 26, ACTOR_TYPE => 30, ACTOR_ID => 31,
            IDENTITY => 36,
            COMMAND => 41, BACKGROUND => 44, NAME => 45, INSTANCE_ID => 46,
            STATE => 47, STREAM => 60, COMMAND_ID => 61, STATUS => 70,
            HTTP_STATUS => 71, UPSTREAM_STATUS => 72, EXIT_CODE => 76,
            DETACHED => 81, NEW_SANDBOX => 84, OUTPUT_LOST => 85,
            RUNNING => 86);

my %NAME = reverse %TAG;
my %INTEGER = map { $_ => 1 } qw(INSTANCE PID LAST_SEQ CODE COUNT TIME TIME_END
    PORT STREAM HTTP_STATUS UPSTREAM_STATUS EXIT_CODE OUTPUT_LOST RUNNING);


# The text form of operation n, as it stands in event_id.

sub op_id { sprintf '01000000-0000-7000-8000-%012x', $_[0] }


# Bytes of a frame: frame('BEGIN', 5, 1, TYPE => 'file.read', ...); op 0: none, or
# one as decode() tells it.
# A field FLAGS sets those of the header.

sub frame {
    my ($type, $seq, $op, @fields) = @_;

    my ($body, $flags) = ('', 0);

    while (my ($name, $v) = splice @fields, 0, 2) {
        if ($name eq 'FLAGS') {
            $flags = $v;
            next;
        }

        $v = pack 'q<', $v if $INTEGER{$name};
        $body .= pack('vvV', $TAG{$name}, 0, length $v) . $v;
    }

    my $id = $op ? pack('H32', length $op == 32 ? $op : op_id($op) =~ tr/-//dr)
                 : "\0" x 16;

    return pack('VCCvQ<', 40 + length $body, $TYPE{$type}, $flags, 1, $seq) . $id
           . pack('Q<', int(time * 1e6)) . $body;
}


# new(socket, instance, role): connects and says HELLO.  undef when the helper
# closes the connection instead of answering.

sub new {
    my ($class, $path, $instance, $role) = @_;

    my $self = bless { in => '', seq => 0 }, $class;

    $self->{socket} = IO::Socket::UNIX->new(Peer => $path) or return undef;
    $self->send(frame('HELLO', 0, 0, INSTANCE => $instance, PID => $$,
                      ROLE => $role // 'control')) or return undef;

    $self->{welcome} = $self->read or return undef;
    $self->{seq} = $self->{welcome}{LAST_SEQ};

    return $self;
}


sub send {
    my ($self, $bytes) = @_;

    local $SIG{PIPE} = 'IGNORE';

    while (length $bytes) {
        my $n = syswrite $self->{socket}, $bytes or return 0;
        substr $bytes, 0, $n, '';
    }

    return 1;
}


# A record with the next seq; returns the seq.

sub put {
    my ($self, $type, $op, @fields) = @_;

    $self->send(frame($type, ++$self->{seq}, $op, @fields));

    return $self->{seq};
}


# The next frame as a hash, or undef at the end or after a time.

sub read {
    my ($self, $timeout) = @_;

    my $until = time + ($timeout // 8);

    for ( ;; ) {
        my $n = length $self->{in} >= 4 ? unpack 'V', $self->{in} : 40;

        if (length $self->{in} >= $n && $n >= 40) {
            return $self->decode(substr $self->{in}, 0, $n, '');
        }

        my $left = $until - time;
        return undef if $left <= 0;

        IO::Select->new($self->{socket})->can_read($left) or return undef;
        sysread $self->{socket}, $self->{in}, 65536, length $self->{in}
            or return undef;
    }
}


sub decode {
    my ($self, $bytes) = @_;

    my (undef, $type, $flags, undef, $seq) = unpack 'VCCvQ<', $bytes;
    my %f = (type => $type, flags => $flags, seq => $seq);
    my $op = unpack 'H32', substr $bytes, 16, 16;
    $f{op} = $op if $op =~ /[^0]/;

    for (my $at = 40; $at < length $bytes; ) {
        my ($tag, undef, $n) = unpack 'vvV', substr $bytes, $at, 8;
        my $v = substr $bytes, $at + 8, $n;
        my $name = $NAME{$tag} // "tag$tag";

        $f{$name} = $INTEGER{$name} ? unpack('q<', $v) : $v;
        $at += 8 + $n;
    }

    return \%f;
}


# Waits until everything up to a seq is answered; the last ACK, or undef.

sub ack {
    my ($self, $seq, $timeout) = @_;

    $seq //= $self->{seq};

    while (my $f = $self->read($timeout)) {
        return $f if $f->{type} == $TYPE{ACK} && $f->{seq} >= $seq;
    }

    return undef;
}


sub close { close delete $_[0]{socket} }

1;
