package SoakClient;

# One of the many clients of SoakLoad, a process of its own: until its time is
# over it does one thing after the other to a sandbox of the local runtime, at
# random, and checks what comes back.  What it says at the end is a hash:
#
#   done     how often it did what
#   errors   sentences about what came back wrong (the first 20)
#   wrong    how many there were

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use JSON::PP;
use MIME::Base64 qw(encode_base64);
use Time::HiRes qw(time sleep);

my $json = JSON::PP->new->utf8->canonical;

# What a client does, and how often in proportion.
my @acts = (
    [ command    => 24 ],
    [ failing    => 4 ],
    [ stream     => 8 ],
    [ output     => 4 ],
    [ session    => 2 ],
    [ background => 4 ],
    [ leaves     => 3 ],
    [ file       => 12 ],
    [ upload     => 3 ],
    [ tree       => 6 ],
    [ polls      => 10 ],
    [ lifecycle  => 6 ],
    [ terminal   => 5 ],
    [ refused    => 3 ],
);


# Options: test (a SandboxTest), number, sandboxes (ids), until (a time), think
# (seconds of rest between two things, at most).

sub new {
    my ($class, %o) = @_;

    return bless { think => 0, %o, done => {}, errors => [], wrong => 0,
                   n => 0 }, $class;
}


sub run {
    my $self = shift;

    srand($self->{number} * 7919 + 1);

    my @wheel = map { my ($name, $n) = @$_; ($name) x $n } @acts;

    while (time < $self->{until}) {
        my $act = $wheel[rand @wheel];
        $self->{n}++;
        $self->{id} = $self->{sandboxes}[rand @{ $self->{sandboxes} }];
        $self->{execd} = "/v1/sandboxes/$self->{id}/proxy/44772";
        $self->{doing} = $act;

        eval { $self->can("do_$act")->($self); 1 }
            or $self->wrong("died: $@");

        $self->{done}{$act}++;
        sleep rand $self->{think} if $self->{think};
    }

    delete $self->{conn};

    return { map { $_ => $self->{$_} } qw(done errors wrong) };
}


sub wrong {
    my ($self, $text) = @_;

    chomp $text;
    push @{ $self->{errors} }, sprintf('client %d, %s: %s', $self->{number},
                                       $self->{doing}, $text)
        if $self->{wrong}++ < 20;

    return;
}


# A request on the kept connection, or on a new one from time to time; undef
# after saying what is wrong when its status is not the expected one.

sub call {
    my ($self, $want, $method, $target, %o) = @_;

    my $t = $self->{test};
    my $c = $self->{conn};

    undef $c if $c && ($c->{eof} || length $c->{buf} || rand() < 0.1
                       || $c->{last} < time - 20);
    $c = $self->{conn} = $t->connect if !$c;

    my $r = $t->request($method, $target, timeout => 60, %o, conn => $c);
    $c->{last} = time;

    delete $self->{conn}
        if !$r->complete || lc($r->header('Connection') // '') eq 'close';

    return $self->wrong("$method $target: status " . $r->status
                        . ", wanted $want, $r->{error} " . substr($r->content, 0, 200))
        if $r->status != $want;

    return $self->wrong("$method $target: the answer breaks off, $r->{error}")
        if !$r->complete;

    return $self->wrong("$method $target: no X-Operation-Id")
        if !defined $r->header('X-Operation-Id');

    return $r;
}


# Runs something that answers with events; [stdout, stderr, last event, id].

sub events {
    my ($self, $path, $body) = @_;

    my $r = $self->call(200, POST => "$self->{execd}$path",
                        body => $json->encode($body)) or return;
    my %got = (stdout => '', stderr => '');

    for my $line (split /\n+/, $r->content) {
        my $e = eval { $json->decode($line) }
            or return $self->wrong('no event: ' . substr($line, 0, 100));

        $got{id} = $e->{text} if $e->{type} eq 'init';
        $got{end} = $e if $e->{type} =~ /^(?:error|execution_complete)$/;
        $got{$e->{type}} .= $e->{text} eq "\n" ? "\n" : "$e->{text}\n"
            if exists $got{$e->{type}} && defined $e->{text};
    }

    return $self->wrong('a stream without its end: '
                        . substr($r->content, -200)) if !$got{end};

    return \%got;
}


sub expect {
    my ($self, $what, $got, $want) = @_;

    return 1 if defined $got && $got eq $want;

    $got = defined $got ? length $got > 100 ? length($got) . ' bytes' : $got
                        : 'nothing';
    $want = length($want) . ' bytes' if length $want > 100;

    return $self->wrong("$what: '$got' in place of '$want'");
}


# --- commands ---------------------------------------------------------------------

sub do_command {
    my $self = shift;

    my $mark = "c$self->{number}-$self->{n}";
    my $got = $self->events('/command', { command => "echo $mark; echo e >&2" })
        or return;

    $self->expect('stdout', $got->{stdout}, "$mark\n");
    $self->expect('stderr', $got->{stderr}, "e\n");
}


sub do_failing {
    my $self = shift;

    my $code = 1 + int rand 100;
    my $got = $self->events('/command', { command => "exit $code" }) or return;

    $self->expect('exit code', $got->{end}{error}{evalue}, $code);
}


sub do_stream {
    my $self = shift;

    my $n = 3 + int rand 10;
    my $got = $self->events('/command', { command =>
        "for i in \$(seq $n); do echo line \$i; sleep 0.05; done" }) or return;

    $self->expect('lines', $got->{stdout},
                  join '', map { "line $_\n" } 1 .. $n);
}


sub do_output {
    my $self = shift;

    my $n = 1000 + int rand 9000;
    my $got = $self->events('/command', { command => "seq $n" }) or return;

    $self->expect('output', $got->{stdout}, join '', map { "$_\n" } 1 .. $n);
}


sub do_session {
    my $self = shift;

    my $r = $self->call(200, POST => "$self->{execd}/session", body => '{}')
        or return;
    my $s = $r->json->{session_id};

    $self->events("/session/$s/run", { command => "export X=$self->{n}" });
    my $got = $self->events("/session/$s/run", { command => 'echo $X' });
    $self->expect('variable', $got->{stdout}, "$self->{n}\n") if $got;
    $self->call(200, DELETE => "$self->{execd}/session/$s");
}


sub do_background {
    my $self = shift;

    my $got = $self->events('/command', {
        command => "sleep 0.2; echo bg $self->{n}", background => \1 })
        or return;

    for (1 .. 100) {
        my $r = $self->call(200, GET => "$self->{execd}/command/status/$got->{id}")
            or return;

        if (!$r->json->{running}) {
            $self->expect('exit code', $r->json->{exit_code}, 0);
            $r = $self->call(200, GET =>
                "$self->{execd}/command/$got->{id}/logs?cursor=0") or return;
            return $self->expect('log', $r->content, "bg $self->{n}\n");
        }

        sleep 0.1;
    }

    $self->wrong('a background command does not end');
}


# Leaves in the midst of an answer, by FIN or RST.

sub do_leaves {
    my $self = shift;

    my $t = $self->{test};
    my $c = $t->connect;
    $c->write($c->build(POST => "$self->{execd}/command",
        body => $json->encode({ command => 'for i in 1 2 3 4; do echo $i;'
                                           . ' sleep 0.1; done' }),
        headers => [ $t->credential ]));
    my $r = $c->response(head_only => 1);
    $self->expect('status', $r->status, 200);
    $c->fill(time + 5);
    rand() < 0.5 ? $c->close : $c->reset;
}


# --- files ------------------------------------------------------------------------

sub multipart {
    my ($path, $content) = @_;

    my $b = 'b' . encode_base64(pack('N2', rand 2 ** 32, rand 2 ** 32), '')
                  =~ tr{+/=}{-_.}r;
    my $part = sub {
        "--$b\r\nContent-Disposition: form-data; name=\"$_[0]\"; "
        . "filename=\"f\"\r\n\r\n$_[1]\r\n"
    };

    return ("Content-Type: multipart/form-data; boundary=$b",
            $part->('metadata', $json->encode({ path => $path }))
            . $part->('file', $content) . "--$b--\r\n");
}


sub put {
    my ($self, $path, $content) = @_;

    my ($type, $body) = multipart($path, $content);

    return $self->call(200, POST => "$self->{execd}/files/upload",
        headers => [ $type ], rand() < 0.3
            ? (body => [ unpack '(a20000)*', $body ], chunked => 1)
            : (body => $body));
}


sub random_bytes {
    my $n = shift;

    my $block = join '', map { pack 'N', rand 2 ** 32 } 1 .. 64;

    return substr $block x (1 + int $n / length $block), 0, $n;
}


sub do_file {
    my $self = shift;

    my $path = "/workspace/c$self->{number}/f" . $self->{n} % 7;
    my $content = random_bytes(int rand 60_000);

    $self->put($path, $content) or return;

    my $r = $self->call(200, GET => "$self->{execd}/files/download?path=$path")
        or return;
    $self->expect('file', $r->content, $content);

    if (length $content > 100) {
        $r = $self->call(206, GET => "$self->{execd}/files/download?path=$path",
                         headers => [ 'Range: bytes=10-59' ]) or return;
        $self->expect('range', $r->content, substr $content, 10, 50);
    }

    $self->call(200, DELETE => "$self->{execd}/files?path=$path")
        if rand() < 0.3;
}


sub do_upload {
    my $self = shift;

    my $path = "/workspace/c$self->{number}/big";
    my $content = random_bytes(500_000 + int rand 3_000_000);

    $self->put($path, $content) or return;
    my $got = $self->events('/command', { command => "sha256sum $path" })
        or return;
    $self->expect('digest', substr($got->{stdout}, 0, 64), sha256_hex($content));
}


sub do_tree {
    my $self = shift;

    my $dir = "/workspace/c$self->{number}/t$self->{n}";
    my $e = $self->{execd};

    $self->call(200, POST => "$e/directories",
                body => $json->encode({ $dir => { mode => 755 } })) or return;
    $self->put("$dir/a.txt", "one two one\n") or return;
    my $r = $self->call(200, POST => "$e/files/replace?verbose=true",
        body => $json->encode({ "$dir/a.txt" => { old => 'one', new => '1' } }));
    $self->call(200, POST => "$e/files/mv",
        body => $json->encode([ { src => "$dir/a.txt", dest => "$dir/b.txt" } ]));
    $self->call(200, POST => "$e/files/permissions",
        body => $json->encode({ "$dir/b.txt" => { mode => 600 } }));
    $r = $self->call(200, GET => "$e/files/info?path=$dir/b.txt");
    $self->expect('mode', $r->json->{"$dir/b.txt"}{mode}, 600) if $r;
    $r = $self->call(200, GET => "$e/files/download?path=$dir/b.txt");
    $self->expect('replaced', $r->content, "1 two 1\n") if $r;
    $r = $self->call(200, GET => "$e/files/search?path=$dir&pattern=*.txt");
    $self->expect('found', scalar @{ $r->json }, 1) if $r;
    $self->call(404, GET => "$e/files/info?path=$dir/a.txt");
    $self->call(200, DELETE => "$e/directories?path=$dir");
}


# --- the rest ---------------------------------------------------------------------

sub do_polls {
    my $self = shift;

    my $e = $self->{execd};

    $self->call(200, GET => "$e/ping") for 1 .. 3;
    $self->call(200, GET => "$e/directories/list?path=/workspace");
    $self->call(200, GET => "$e/files/info?path=/workspace");
}


sub do_lifecycle {
    my $self = shift;

    my $r = $self->call(200, GET => "/v1/sandboxes/$self->{id}") or return;
    $self->expect('id', $r->json->{id}, $self->{id});
    $self->call(200, GET => '/v1/sandboxes');
    $r = $self->call(200, GET => "/v1/sandboxes/$self->{id}/endpoints/44772"
                         . (rand() < 0.5 ? '' : '?use_server_proxy=false'));
    $self->wrong('an endpoint past us: ' . $r->content)
        if $r && $r->json->{endpoint} !~ m{:$self->{test}{port}/};
}


# A terminal: opened, typed into, resized, left by its own end or by ours.

sub do_terminal {
    my $self = shift;

    my $r = $self->call(201, POST => "$self->{execd}/pty",
                        body => '{"cwd":"/workspace"}') or return;
    my $pty = $r->json->{session_id};
    my $ws = $self->{test}->websocket("$self->{execd}/pty/$pty/ws?since=0",
                                      timeout => 60);

    return $self->wrong('a terminal is not opened: ' . $ws->status)
        if $ws->status != 101;

    my ($seen, $want) = ('', $self->{n} * 7);
    my $read = sub {
        my $until = shift;
        $ws->recv_until(sub {
            $seen .= substr $_[0]{payload}, 1 if $_[0]{op} == 2;
            return $seen =~ $until;
        }, 60);
    };

    $ws->send(1, '{"type":"resize","cols":100,"rows":30}');
    $ws->send(2, "\x00echo in-\$(($self->{n}*7))\n");
    $read->(qr/in-$want\r/);
    $self->wrong('what was typed is not run: ' . $seen) if $seen !~ /in-$want\r/;
    $ws->send(2, "\x00seq 200\n");
    $read->(qr/^200\r/m);
    $ws->send(9, 'p');

    if (rand() < 0.6) {
        $ws->send(2, "\x00exit 3\n");
        my @f = $ws->recv_until(sub { $_[0]{op} == 8 }, 60);
        $self->wrong('the end of a terminal is not seen')
            if !grep { $_->{op} == 1 && $_->{payload} =~ /"exit_code":3/ } @f;
    }

    $ws->close;
    $self->call(200, DELETE => "$self->{execd}/pty/$pty");
}


# What the gateway refuses by itself.

sub do_refused {
    my $self = shift;

    $self->call(401, GET => "/v1/sandboxes/$self->{id}", token => undef);
    $self->call(400, GET => "/v1/sandboxes/$self->{id}/proxy/8080/../44772/ping");
    $self->call(404, GET => "$self->{execd}/no/such/route");
}

1;
