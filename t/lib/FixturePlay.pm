package FixturePlay;

# Plays what was recorded from the real execd (t/runtime-fixtures) against
# something that should answer in the same way, and says what differs.
#
#   my $p = FixturePlay->new(port => $execd_port);
#   for my $case (FixturePlay::load("$Bin/runtime-fixtures/execd-http.jsonl")) {
#       is_deeply([ $p->http($case) ], [], $case->{case});
#   }
#
# Options of new: port (loopback), prefix (put before each target, such as
# /sandboxes/ID/proxy/44772), headers (lines sent with each request), relaxed
# (something stands between: header names in any case, further headers, chunk
# borders and the hop-by-hop headers are not looked at), seen (an array that
# gets the answer to each step of a case).
#
# What varies from run to run stands in the recordings as <id32>, <uuid>,
# <time>, <date>, <n>, <text>, <html>, or as 0 and 1 for times of events.  Ids
# are taken from the answers and put into later requests of the same case.
# Sizes of directories belong to the file system and are not compared; stdout
# and stderr are compared each in its order; pings by their number.

use strict;
use warnings;

use JSON::PP;
use MIME::Base64 qw(decode_base64);
use Time::HiRes qw(time sleep);

use SandboxHttp;
use SandboxWs;

our $UUID = qr/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;
our $ID32 = qr/(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])/;
our $TIME = qr/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[-+]\d\d:\d\d)/;
our $DATE = qr/(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT/;
my $STRING = qr/"(?:[^"\\]|\\.)*"/;


sub load {
    my $file = shift;

    open my $f, '<:raw', $file or die "$file: $!\n";
    return map { JSON::PP->new->utf8->decode($_) } <$f>;
}


sub new {
    my ($class, %o) = @_;

    return bless { prefix => '', headers => [], %o }, $class;
}


sub connect { SandboxHttp->connect(port => $_[0]{port}) }


# A recorded piece of text as bytes.

sub bytes {
    my $v = shift;

    return undef if !defined $v;
    return decode_base64($v->{base64}) if exists $v->{base64};

    my $s = $v->{text};
    utf8::encode($s);
    return $s;
}


# Plays one case; the differences.

sub http {
    my ($self, $case) = @_;

    my (%ids, @wrong);
    my $n = 0;

    for my $step (@{ $case->{steps} }) {
        my $deadline = time + 5;
        $ids{step} = $n++;

        # when it was recorded, a background command had ended in between
        my $ended = ($step->{response}{body}{text} // '') =~ /"running":false/;
        my @differ;

        do {
            sleep 0.05 if @differ;
            @differ = $self->step($case, $step, \%ids);
        } while ($ended && time < $deadline
                 && grep { /"running":true/ } @differ);

        push @wrong, map { "step $n: $_" } @differ;
    }

    return @wrong;
}


sub step {
    my ($self, $case, $step, $ids) = @_;

    my ($q, $want) = @$step{qw(request response)};
    my $target = $q->{target};

    $target =~ s/<(id32|uuid)>/$ids->{$1} \/\/ '?'/ge;

    my $c = $self->connect;
    my $body = bytes($q->{body});
    my @headers = (@{ $q->{headers} }, @{ $self->{headers} },
                   $self->{keep} ? () : 'Connection: close');

    my $continue = grep { /^expect:/i } @headers;

    $c->write($c->build($q->{method}, $self->{prefix} . $target,
        headers => \@headers,
        (grep { /^transfer-encoding:/i } @headers)
            ? (plain_body => $body) : (body => $body)));
    $c->write($body) if grep { /^transfer-encoding:/i } @headers;

    if ($continue) {
        $c->fill(time + 5);
        return "no 100 Continue"
            if $c->{buf} !~ s{^HTTP/1\.1 100 Continue\r\n(?:[^\r\n]+\r\n)*\r\n}{};
        $want = { status_line => 'HTTP/1.1 200 OK', body => { text => '' },
                  headers => [ 'Date: <date>', 'Content-Length: 0',
                               'Connection: close' ] };
    }

    my $r = $c->response(method => $q->{method}, timeout => 20);

    $self->{seen}[ $ids->{step} ] = $r if $self->{seen};

    return "no answer ($r->{error})" if !$r->{status};

    for ($r->{body}) {
        $ids->{uuid} = $1 if /($UUID)/;
        $ids->{id32} = $1 if /($ID32)/;
    }

    # the real answer is cut where its Content-Length promises more
    my $cut = $r->status == 416;

    return ($cut || $r->complete ? () : "incomplete ($r->{error})",
            $self->compare_head($r, $want),
            $self->compare_body($case, $r, $want));
}


sub compare_head {
    my ($self, $r, $want) = @_;

    my @wrong;
    my ($status, $reason) = $want->{status_line} =~ m{^HTTP/1\.1 (\d+) (.*)$};

    push @wrong, "status $r->{status}, not $status" if $r->{status} != $status;
    # of 416 the specification changed the name
    push @wrong, "reason '$r->{reason}', not '$reason'"
        if !$self->{relaxed} && $r->{reason} ne $reason && $status != 416;

    my $fold = sub { $self->{relaxed} ? lc $_[0] : $_[0] };
    my %have;

    push @{ $have{ $fold->($_->[0]) } }, $_->[1] for @{ $r->{headers} };

    for my $line (@{ $want->{headers} }) {
        my ($name, $value) = $line =~ /^([^:]+): (.*)$/;

        next if $self->{relaxed} && $name =~
            /^(?:date|connection|transfer-encoding|server|x-accel-buffering|content-length)$/i;

        my $values = $have{ $fold->($name) };

        if (!$values || !@$values) {
            push @wrong, "no header $line";
            next;
        }

        my $got = shift @$values;
        my $re = quotemeta $value;
        $re =~ s/\\<date\\>/$DATE/;
        $re =~ s/\\<n\\>/\\d+/;

        push @wrong, "header $name: $got, not $value" if $got !~ /^$re$/;
    }

    if (!$self->{relaxed}) {
        for my $name (sort keys %have) {
            push @wrong, "header $name: $_ is too much" for @{ $have{$name} };
        }
    }

    return @wrong;
}


# Replaces what varies by its sign.

sub general {
    my ($self, $case, $text) = @_;

    $text =~ s/"message":$STRING/"message":"<text>"/g;
    $text =~ s/$TIME/<time>/g;
    $text =~ s/$UUID/<uuid>/g;
    $text =~ s/$ID32/<id32>/g;
    $text =~ s/"type":"directory","size":\d+/"type":"directory","size":0/g;
    $text =~ s/:[0-9.]+(?:e[-+]\d+)?(?=[,}])/:0/g
        if $case->{case} eq 'metrics';

    return $text;
}


sub compare_body {
    my ($self, $case, $r, $want) = @_;

    my $body = $want->{body};

    return $self->compare_long($r, $body) if exists $body->{length};
    return () if ($body->{text} // '') eq '<html>';

    my $expect = bytes($body);

    return $self->compare_stream($case, $r, $want, $expect)
        if ($r->header('Content-Type') // '') =~ m{^text/event-stream};

    my $got = $self->general($case, $r->content);
    $expect = $self->general($case, $expect);

    return $got eq $expect ? () : "body $got, not $expect";
}


# A long stream of which the recording keeps the beginning and the end.

sub compare_long {
    my ($self, $r, $body) = @_;

    my $got = $r->content;
    my $end = bytes($body->{end});
    my @wrong;

    # the length was taken as it came, with an execution_time of some figures
    push @wrong, 'length ' . length($got) . ", not $body->{length}"
        if abs(length($got) - $body->{length}) > 4;

    $got =~ s/"timestamp":\d+/"timestamp":0/g;
    $got =~ s/"execution_time":\d+/"execution_time":1/g;
    $got =~ s/$ID32/<id32>/;

    push @wrong, 'another end'
        if substr($got, -length $end) ne $end;

    return @wrong;
}


sub events {
    my $text = shift;

    $text =~ s/"timestamp":\d+/"timestamp":0/g;
    $text =~ s/"execution_time":\d+/"execution_time":1/g;

    my (@events, %by, @pings);

    for (split /(?<=\n\n)/, $text) {
        my ($type) = /^\{"type":"(\w+)"/;
        $type //= '?';

        if ($type eq 'ping') { push @pings, $_; next }

        push @events, $type =~ /^std/ ? '' : $_;
        push @{ $by{$type} }, $_;
    }

    # positions of output among the rest do not count, its order does
    return { frame => [ grep { length } @events ], pings => \@pings,
             first => $events[0], last => $events[-1],
             out => $by{stdout} // [], err => $by{stderr} // [] };
}


sub compare_stream {
    my ($self, $case, $r, $want, $expect) = @_;

    my @wrong;
    my $got = events($self->general($case, $r->content));
    my $rec = events($self->general($case, $expect));

    for my $part (qw(frame out err)) {
        my ($g, $w) = map { join '', @{ $_->{$part} } } $got, $rec;
        push @wrong, "$part events $g, not $w" if $g ne $w;
    }

    for my $part (qw(first last)) {
        push @wrong, "$part event $got->{$part}, not $rec->{$part}"
            if $got->{$part} ne $rec->{$part};
    }

    my $pings = @{ $got->{pings} };
    my $more = $self->{relaxed} ? 2 : 0;

    push @wrong, "$pings pings, not " . @{ $rec->{pings} }
        if $pings < @{ $rec->{pings} } || $pings > @{ $rec->{pings} } + $more;
    push @wrong, map { "ping $_" } grep {
        $_ ne qq({"type":"ping","text":"pong","timestamp":0}\n\n)
    } @{ $got->{pings} };

    # one event a chunk, and the empty one; a proxy may join events
    if (!$self->{relaxed} && $case->{case} !~ /nested/) {
        my $n = @{ $r->{chunks} } + 1;
        push @wrong, "$n chunks, not $want->{chunks}" if $n != $want->{chunks};
    }

    return @wrong;
}


# --- terminals ----------------------------------------------------------------

# What the recordings do not say: how a session is made and opened.
my %SETUP = (
    'pipe-mode'         => { query => 'pty=0' },
    'command-on-create' => { body => { command => 'echo from-command; exit 5' } },
    'ws-nested-proxy'   => { nested => '/proxy/44772' },
);


sub send_json {
    my ($self, $method, $target, $body) = @_;

    my $c = $self->connect;
    return $c->request($method, $self->{prefix} . $target,
        headers => [ @{ $self->{headers} }, 'Content-Type: application/json' ],
        defined $body ? (body => JSON::PP->new->encode($body)) : ());
}


sub open_pty {
    my ($self, $id, %o) = @_;

    my $query = $o{query} ? "?$o{query}" : '';
    return SandboxWs->open(conn => $self->connect, headers => $self->{headers},
        target => $self->{prefix} . ($o{nested} // '') . "/pty/$id/ws$query");
}


# The frames of a server until all of `want` (recorded ones, in a row) have
# come, as one text per kind: channels joined, the rest in order.

sub read_frames {
    my ($ws, $want, $timeout) = @_;

    my $expect = join_frames(@$want);
    my $deadline = time + ($timeout // 6);
    my @got;

    while (join_frames(@got) ne $expect && (my $left = $deadline - time) > 0) {
        my $f = $ws->recv($left);
        push @got, defined $f ? recorded_form($f) : [ 'server', 'eof', '' ];
        last if !defined $f;
    }

    return (join_frames(@got), $expect);
}


# A frame as the recordings write it.

sub recorded_form {
    my $f = shift;

    my $p = $f->{payload};

    if ($f->{op} == 8) {
        return [ 'server', 8, { close => unpack('n', $p), reason => substr $p, 2 } ];
    }

    if ($f->{op} == 1) {
        $p =~ s/$UUID/<uuid>/;
        return [ 'server', 1, { text => $p } ];
    }

    my $channel = ord $p;
    my %d = (channel => $channel, data => substr $p, 1);
    ($d{offset}, $d{data}) = unpack 'xQ>a*', $p if $channel == 3;
    return [ 'server', $f->{op}, \%d ];
}


sub join_frames {
    my (@parts, %open);

    # stdout and stderr are read apart: only the order in each is known
    my $flush = sub {
        push @parts, map { "channel $_: " . delete $open{$_} }
                     sort keys %open;
    };

    for (@_) {
        my ($who, $op, $d) = @$_;

        if ($op eq '2' && $d->{channel} != 3) {
            $open{ $d->{channel} } .= $d->{data};
            next;
        }

        $flush->();
        push @parts, $op eq 'eof' ? 'eof'
            : "$op " . JSON::PP->new->canonical->encode(
                  ref $d ? { map { $_ => "$d->{$_}" } keys %$d } : [ $d ]);
    }

    $flush->();

    return join "\n", @parts;
}


# Sends and expects the frames of a conversation; the differences.

sub converse {
    my ($self, $ws, $frames, $id) = @_;

    my (@wrong, @want);

    my $check = sub {
        return if !@want;
        my ($got, $expect) = read_frames($ws, \@want);
        push @wrong, "frames\n$got\nnot\n$expect" if $got ne $expect;
        @want = ();
    };

    for my $f (@$frames) {
        my ($who, $op, $d) = @$f;

        if ($who eq 'client') {
            $check->();
            last if @wrong;

            # a key pressed just when the shell is about to read
            sleep 0.15;
            $ws->send($op, $op == 2 ? chr($d->{channel}) . $d->{data}
                                    : $d->{text});
            next;
        }

        # what nobody asked for by a frame: the session was deleted
        if ($op eq '1' && $d->{text} =~ /"exit_code":-1/) {
            $check->();
            $self->send_json(DELETE => "/pty/$id");
        }

        push @want, $f;
    }

    $check->();

    return @wrong;
}


sub compare_handshake {
    my ($self, $ws, $want) = @_;

    return () if !$want;

    my ($line, @lines) = @$want;
    my $r = $ws->response;
    my @wrong;

    push @wrong, "status $r->{status}, not $line"
        if $line !~ m{^HTTP/1\.1 $r->{status} };
    push @wrong, 'wrong Sec-WebSocket-Accept'
        if $r->status == 101 && !$ws->accepted;

    for (@lines) {
        my ($name, $value) = /^([^:]+): (.*)$/;
        my @have = grep { $self->{relaxed} ? lc $_->[0] eq lc $name
                                           : $_->[0] eq $name }
                   @{ $r->{headers} };

        push @wrong, "no header $name" if !@have;
        push @wrong, "header $name: $have[0][1], not $value"
            if @have && $value !~ /<|^\d+$/ && lc $have[0][1] ne lc $value;
    }

    return @wrong;
}


sub pty_status {
    my ($self, $id, $want) = @_;

    my $r = $self->send_json(GET => "/pty/$id");
    my $got = $r->content =~ s/$UUID/<uuid>/r;

    return $r->status == $want->[0] && $got eq $want->[1] ? ()
           : "status of the session: $got, not $want->[1]";
}


sub pty_create {
    my ($self, $case) = @_;

    my $r = $self->send_json(POST => '/pty',
                             $SETUP{ $case->{case} }{body} // {});

    return $r->status == 201 ? $r->json->{session_id} : undef;
}


# Plays one conversation; the differences.

sub pty {
    my ($self, $case) = @_;

    my $name = $case->{case};
    my $setup = $SETUP{$name} // {};

    if ($name eq 'ws-unknown') {
        my $ws = $self->open_pty('nope');
        my $got = $self->general($case, $ws->response->content);
        return ($self->compare_handshake($ws, $case->{head}),
                $got eq $case->{rest} ? () : "body $got");
    }

    my $id = $self->pty_create($case) // return 'no session';

    return $self->pty_replay($case, $id) if $name eq 'replay';
    return $self->pty_takeover($case, $id) if $name eq 'second-and-takeover';

    my $ws = $self->open_pty($id, %$setup);
    my @wrong = $self->compare_handshake($ws, $case->{head});
    my @frames = @{ $case->{frames} };

    if (my $before = $case->{status_before_exit}) {
        # it was asked before the client's last frame
        my ($last) = grep { $frames[$_][0] eq 'client' } reverse 0 .. $#frames;
        push @wrong, $self->converse($ws, [ splice @frames, 0, $last ], $id);
        push @wrong, $self->pty_status($id, $before);
    }

    # attached before it is deleted: the greeting was not recorded
    if ($name eq 'delete-while-attached') {
        $ws->recv_until(sub { $_[0]{payload} =~ /# $/ });
    }

    push @wrong, $self->converse($ws, \@frames, $id);

    if (my $after = $case->{status_after_exit}) {
        push @wrong, $self->pty_status($id, $after);
    }

    return @wrong;
}


sub pty_replay {
    my ($self, $case, $id) = @_;

    my @wrong;
    my $ws = $self->open_pty($id);

    $ws->recv_until(sub { $_[0]{payload} =~ /# $/ });
    $ws->send(2, "\0echo first-part\n");
    $ws->recv_until(sub { $_[0]{payload} =~ /# $/ });
    $ws->close;
    sleep 0.3;

    push @wrong, $self->pty_status($id, $case->{status});

    for ([ 0, 'frames_since_0' ], [ 10, 'frames_since_10' ],
         [ 100_000, 'frames_since_too_far' ])
    {
        my ($since, $key) = @$_;
        my $again = $self->open_pty($id, query => "since=$since");
        my ($got, $expect) = read_frames($again, $case->{$key});

        push @wrong, "since=$since\n$got\nnot\n$expect" if $got ne $expect;
        $again->close;
        sleep 0.3;
    }

    $self->send_json(DELETE => "/pty/$id");

    return @wrong;
}


sub pty_takeover {
    my ($self, $case, $id) = @_;

    my @first = @{ $case->{first_frames} };
    my @end = splice @first, 2;
    my $ws = $self->open_pty($id);
    my @wrong = $self->converse($ws, \@first, $id);

    my $second = $self->open_pty($id);
    push @wrong, $self->compare_handshake($second, $case->{second_head});
    push @wrong, 'another code than ALREADY_CONNECTED: '
                 . $second->response->content
        if ($second->response->code // '') ne 'ALREADY_CONNECTED';

    my $taker = $self->open_pty($id, query => 'takeover=1');
    push @wrong, $self->converse($taker, $case->{taker_frames}, $id);
    push @wrong, $self->converse($ws, \@end, $id);

    $taker->close;
    $self->send_json(DELETE => "/pty/$id");

    return @wrong;
}

1;
