package SandboxLive;

# A reader of a live stream of the console API.
#
#   my $s = SandboxLive->open($t, '/live', after => 7);
#   my $e = $s->until(sub { $_[0]{data}{phase} eq 'completed' });
#   my @all = @{ $s->events };           # { event, id, data }, in order

use strict;
use warnings;

use Exporter qw(import);
use FakeUpstream;
use JSON::PP ();
use SandboxHttp;
use SandboxProcess;
use Time::HiRes qw(sleep time);

our @EXPORT_OK = qw(command completed ids rss);

our $API = '/console/api/v1';


sub open {
    my ($class, $t, $path, %o) = @_;

    my $self;

    my $deadline = time + patient();

    # right after a start the worker has no helper yet
    for ( ;; ) {
        $self = $class->try($t, $path, %o);
        last if $o{once} || ($self->{status} // 0) != 503 || time > $deadline;
        sleep 0.05;
    }

    return $self;
}


# How long something may take on a machine that does other things, too.

sub patient {
    my $seconds = shift;

    return defined $seconds ? $seconds * $SandboxProcess::PATIENCE : $SandboxHttp::TIMEOUT;
}


sub try {
    my ($class, $t, $path, %o) = @_;

    my $c = $o{conn} // $t->connect;
    my @headers = $t->credential(%o);
    push @headers, "Last-Event-ID: $o{last}" if defined $o{last};
    push @headers, @{ $o{headers} // [] };

    my $query = join '&', grep { defined } $o{query},
        defined $o{after} ? "after=$o{after}" : undef;
    my $target = $API . $path . (length $query ? "?$query" : '');

    $c->write($c->build(GET => $target, headers => \@headers));

    my $self = bless { c => $c, text => '', events => [],
                       id => undef, ended => 0 }, $class;
    $self->head_in;

    return $self;
}


# Reads the head of the answer.

sub head_in {
    my $self = shift;

    my $c = $self->{c};
    my $deadline = time + $SandboxHttp::TIMEOUT;
    while ($c->{buf} !~ /\r\n\r\n/) {
        my $n = $c->fill($deadline);
        last if !$n;
    }

    $c->{buf} =~ s/\A(.*?\r\n)\r\n//s or return 0;
    $self->{head} = $1;
    ($self->{status}) = $self->{head} =~ m{^HTTP/1\.1 (\d+)};

    return 1;
}


sub status { $_[0]{status} }
sub head { $_[0]{head} }
sub events { $_[0]{events} }
sub id { $_[0]{id} }
sub retry { $_[0]{retry} }
sub comments { $_[0]{comments} // 0 }

# 1: the end of the stream came, as it should; -1: it was cut.

sub ended { $_[0]{ended} }
sub close { $_[0]{c}->close }


# Takes what has come out of its chunks.

sub digest {
    my $self = shift;

    my $c = $self->{c};

    # cut off once, not for each: there may be megabytes
    my $at = 0;

    for ( ;; ) {
        my $eol = index $c->{buf}, "\r\n", $at;
        last if $eol < 0;

        my $n = hex substr $c->{buf}, $at, $eol - $at;
        last if length $c->{buf} < $eol + $n + 4;

        if ($n == 0) {
            $self->{ended} = 1;
            last;
        }

        $self->{text} .= substr $c->{buf}, $eol + 2, $n;
        $at = $eol + $n + 4;
    }

    substr($c->{buf}, 0, $at) = '' if $at;
    $self->{ended} = -1 if $c->{eof} && !$self->{ended};

    my $end;

    for ($at = 0; ($end = index $self->{text}, "\n\n", $at) >= 0;
         $at = $end + 2)
    {
        my (%e, $data);

        for (split /\n/, substr $self->{text}, $at, $end - $at) {
            my ($name, $value) = /^([^:]*):? ?(.*)/s;
            $self->{comments}++ if $name eq '';
            $data = defined $data ? "$data\n$value" : $value if $name eq 'data';
            $e{event} = $value if $name eq 'event';
            $self->{id} = $value if $name eq 'id';
            $self->{retry} = $value if $name eq 'retry';
        }

        next if !defined $data;
        $e{id} = $self->{id};
        $e{data} = JSON::PP::decode_json($data);
        push @{ $self->{events} }, \%e;
    }

    substr($self->{text}, 0, $at) = '' if $at;

    return $self;
}


# Reads until an event is the wanted one; undef: it did not come in time.  What
# was looked at before is not looked at again.

sub until {
    my ($self, $want, $seconds) = @_;

    my $deadline = time + patient($seconds);

    for ( ;; ) {
        $self->digest;

        while (($self->{seen} //= 0) < @{ $self->{events} }) {
            my $e = $self->{events}[ $self->{seen}++ ];
            return $e if $want->($e);
        }

        return undef if $self->{ended};
        return undef if !defined $self->{c}->fill($deadline);
    }
}


# Reads until something holds of the reader itself.

sub wait_for {
    my ($self, $want, $seconds) = @_;

    my $deadline = time + patient($seconds);

    for ( ;; ) {
        $self->digest;
        return 1 if $want->($self);
        return 0 if $self->{ended} || !defined $self->{c}->fill($deadline);
    }
}


# --- for tests of them; exported if asked for -----------------------------------

# A command that prints some lines; its response.

sub command {
    my ($t, $sandbox, $text, @lines) = @_;

    my $path = "/v1/sandboxes/$sandbox/proxy/44772/command";
    $t->up->script("POST $path", FakeUpstream::stream(
        FakeUpstream::event('init', text => 'c1'),
        (map { FakeUpstream::event('stdout', text => $_) } @lines),
        FakeUpstream::event('execution_complete', execution_time => 3)));

    return $t->post($path, body => JSON::PP::encode_json({ command => $text }));
}


# What until() waits for: the end of that command.

sub completed {
    my ($summary) = @_;

    return sub {
        my $d = $_[0]{data};
        return ($d->{phase} // '') eq 'completed' && $d->{summary} eq $summary;
    };
}


sub ids { map { $_->{id} } @{ $_[0]->events } }


# Resident memory of a process, in KiB.

sub rss {
    my ($kb) = SandboxTest::read_file("/proc/$_[0]/status") =~ /VmRSS:\s+(\d+)/;
    return $kb;
}

1;
