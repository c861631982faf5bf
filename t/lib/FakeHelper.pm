package FakeHelper;

# A helper that keeps nothing and answers questions of the console API by a
# script: for what a real one does not do on demand.  The first segment of a
# question's path says how it is answered; what happens stands in a log, a line
# each.
#
#   my $h = FakeHelper->new("$dir/run/helper.sock", "$dir/fake.log")->start;

use strict;
use warnings;

use IO::Select;
use IO::Socket::UNIX;
use JSON::PP;
use SandboxFrames qw(frame);
use Time::HiRes qw(time sleep);

use constant { LAST => 4, PIECE => 16384 };

my %NAME = reverse %SandboxFrames::TYPE;


sub new {
    my ($class, $socket, $log) = @_;

    return bless { path => $socket, log => $log }, $class;
}


sub start {
    my $self = shift;

    unlink $self->{path};
    my $listen = IO::Socket::UNIX->new(Local => $self->{path}, Listen => 16)
        or die "$self->{path}: $!\n";
    chmod 0666, $self->{path};

    $self->{pid} = fork // die "fork: $!\n";

    if ($self->{pid} == 0) {
        $SIG{PIPE} = 'IGNORE';
        open STDOUT, '>', '/dev/null';
        $self->serve($listen);
        POSIX::_exit(0);
    }

    return $self;
}


sub stop {
    my $self = shift;

    my $pid = delete $self->{pid} // return;
    kill 'KILL', $pid;
    waitpid $pid, 0;
}


sub DESTROY { local $?; $_[0]->stop }


# Lines of the log that match.

sub lines {
    my ($self, $pattern) = @_;

    open my $fh, '<', $self->{log} or return;
    return grep { /$pattern/ } map { chomp; $_ } <$fh>;
}


sub say {
    my ($self, $line) = @_;

    open my $fh, '>>', $self->{log} or die "$self->{log}: $!\n";
    syswrite $fh, "$line\n";
}


sub serve {
    my ($self, $listen) = @_;

    my $select = IO::Select->new($listen);
    $self->{conns} = {};
    $self->{open} = {};

    for ( ;; ) {
        for my $s ($select->can_read(0.02)) {

            if ($s == $listen) {
                my $c = $listen->accept or next;
                $select->add($c);
                $self->{conns}{$c} = bless { in => '', socket => $c },
                                     'SandboxFrames';
                next;
            }

            my $c = $self->{conns}{$s};

            if (!sysread $s, $c->{in}, 65536, length $c->{in}) {
                $select->remove($s);
                delete $self->{conns}{$s};
                delete @{ $self->{open} }{ grep { $self->{open}{$_}{conn} == $c }
                                           keys %{ $self->{open} } };
                next;
            }

            while (length $c->{in} >= 40
                   && length $c->{in} >= unpack 'V', $c->{in})
            {
                my $n = unpack 'V', $c->{in};
                $self->take($c, $c->decode(substr $c->{in}, 0, $n, ''));
            }

            if (my $seq = delete $c->{failed}) {
                $c->send(frame('ACK', $seq, 0, CODE => 28));
            }
        }

        $self->go_on($_) for values %{ $self->{open} };

        if ($self->flag('late')) {
            $_->[0]->send(frame('GRANTED', 0, $_->[1], CODE => 0))
                for splice @{ $self->{asked} // [] };
        }
    }
}


sub take {
    my ($self, $c, $f) = @_;

    my $type = $NAME{ $f->{type} } // '';

    if ($type eq 'HELLO') {
        $self->say("hello $f->{ROLE}");
        $c->send(frame('WELCOME', 0, 0, LAST_SEQ => 0, MODE => 'provider'));

    } elsif ($type eq 'ASK') {
        my ($how, $n) = split m{/}, $f->{PATH} // '';
        my $q = { conn => $c, seq => $f->{seq}, how => $how, n => $n // 0,
                  window => $f->{COUNT}, sent => 0, ask => $f,
                  name => $f->{PATH} };

        $self->{open}{"$c $f->{seq}"} = $q;
        $self->say("ask $q->{name}");
        my $code = $self->can("do_$how") or die "no $how\n";
        $self->$code($q);

    } elsif ($type eq 'CREDIT') {
        my $q = $self->{open}{"$c $f->{seq}"} or return;
        $q->{window} += $f->{COUNT};
        $self->say("credit $q->{name} $f->{COUNT}");

    } elsif ($type eq 'CANCEL') {
        my $q = delete $self->{open}{"$c $f->{seq}"};
        $self->say("cancel $q->{name} $q->{sent}") if $q;

    } elsif ($type eq 'FETCH') {
        $self->say("fetch $f->{TARGET}");       # and no answer

    } elsif ($type eq 'KEYS' && $f->{op} && $self->flag('grant')) {
        $self->say("keys $f->{seq} $f->{flags}");
        $c->send(frame('GRANTED', 0, $f->{op}, CODE => 0));
        $c->send(frame('ACK', $f->{seq}, 0)) if !$self->flag('fail');

    } elsif ($f->{seq}) {
        $self->say(lc "$type $f->{seq} $f->{flags}" . ($f->{op} ? '' : ' nobody'))
            if $type =~ /^(?:KEYS|RELEASE)$/;
        push @{ $self->{asked} }, [ $c, $f->{op} ] if $type eq 'KEYS' && $f->{op};
        return if $self->flag('mute');

        if ($self->flag('fail')) {
            # told when all that has come was looked at
            $c->{failed} //= $f->{seq};
            return;
        }

        $c->send(frame('ACK', $f->{seq}, 0));
    }
}


# Tests switch it with files beside its log: "grant" locks at once; "late", those
# that were asked for before; "mute", no ACK; "fail", the journal has no room.

sub flag {
    my ($self, $name) = @_;

    return -e $self->{log} =~ s/[^\/]*$/fake-$name/r;
}


# A piece of an answer; the first says what it is.

sub piece {
    my ($self, $q, $data, %o) = @_;

    $q->{conn}->send(frame('ANSWER', $q->{seq}, 0,
        $o{last} ? (FLAGS => LAST) : (),
        $q->{head}++ ? () : (HTTP_STATUS => $o{status} // 200,
                             CONTENT_TYPE => $o{type} // 'text/plain'),
        length $data ? (DATA => $data) : ()));

    $q->{sent} += length $data;
    $q->{window} -= length $data;
    delete $self->{open}{"$q->{conn} $q->{seq}"} if $o{last};
}


sub cancel {
    my ($self, $q) = @_;

    $q->{conn}->send(frame('CANCEL', $q->{seq}, 0));
    delete $self->{open}{"$q->{conn} $q->{seq}"};
}


sub close_all {
    my $self = shift;

    shutdown $_->{socket}, 2 for values %{ $self->{conns} };
}


# What a question of N bytes is answered with.

sub bytes {
    my ($from, $n) = @_;

    return join '', map { sprintf "%015d\n", $_ }
                    $from / 16 .. ($from + $n) / 16 - 1;
}


# --- scripts ----------------------------------------------------------------

sub do_echo {
    my ($self, $q) = @_;

    my %f = %{ $q->{ask} };
    delete @f{ qw(type flags seq) };
    $self->piece($q, JSON::PP->new->canonical->encode(\%f), last => 1,
                 type => 'application/json', status => $q->{n} || 200);
}

# N bytes, as the window allows
sub do_bytes { }

# two pieces, and the second only when the file "go" is there
sub do_wait { $_[0]->piece($_[1], 'first ') }

sub do_cut { $_[0]->piece($_[1], 'half'); $_[0]->cancel($_[1]) }
sub do_no { $_[0]->cancel($_[1]) }
sub do_leave { $_[0]->piece($_[1], 'half') if $_[1]{n}; $_[0]->close_all }
sub do_metrics { $_[0]->piece($_[1], '', last => 1) }
sub do_silent { }
sub do_stall { $_[0]->piece($_[1], 'half') }
sub do_greedy { $_[0]->piece($_[1], 'x' x $_) for 4, 40000 }
sub do_bad { $_[0]->piece($_[1], 'x', status => 7) }

sub do_live {
    my ($self, $q) = @_;

    $self->piece($q, ": here\n\n", type => 'text/event-stream');
}


sub go_on {
    my ($self, $q) = @_;

    if ($q->{how} eq 'bytes') {

        while ($q->{window} > 0 && $q->{sent} < $q->{n}) {
            my $n = $q->{n} - $q->{sent};
            $n = PIECE if $n > PIECE;
            $n = $q->{window} if $n > $q->{window};
            $self->piece($q, bytes($q->{sent}, $n));
        }

        $self->piece($q, '', last => 1) if $q->{sent} >= $q->{n};

    } elsif ($q->{how} eq 'wait') {
        (my $go = $self->{log}) =~ s/[^\/]*$/go/;
        $self->piece($q, 'second', last => 1) if -e $go;

    } elsif ($q->{how} eq 'live' && $q->{window} > 100
             && time > ($q->{next} // 0))
    {
        $self->piece($q, 'data: ' . ++$q->{events} . "\n\n");
        $q->{next} = time + 0.05;
    }
}

1;
