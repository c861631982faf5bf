#!/usr/bin/perl

# Field cases of uploads that need sizes, configurations or a sandbox of their
# own, in small with T_SCALE=1 and in full from T_SCALE=10 on (make soak).  The
# others are in t/upload.t, t/unit/test_multipart.c and (C074) t/policy.t.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;
use Time::HiRes qw(time sleep);

my $FULL = ($ENV{T_SCALE} // 1) >= 10;
my $MIB = 1 << 20;

my $common = 'sandbox on; proxy_pass http://opensandbox$sandbox_upstream_uri;'
             . ' proxy_http_version 1.1; proxy_set_header Host'
             . ' $sandbox_upstream_host; client_max_body_size 0;'
             . ' proxy_set_header Connection $sandbox_connection;';

# C075: bodies that nginx spools; C076: a check in a subrequest, before us.
my $t = SandboxTest->new(locations => <<"EOF")->start;
        location /v1/sandboxes/small {
            $common
            client_body_buffer_size 8k;
        }
        location /v1/sandboxes/file {
            $common
            client_body_in_file_only on;
        }
        location /v1/sandboxes/asked {
            $common
            proxy_request_buffering off;
            auth_request /check;
        }
        location = /check {
            internal;
            proxy_pass http://opensandbox/health;
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
        }
EOF

my $up = $t->up;
my $type = 'Content-Type: multipart/form-data; boundary=B';

$t->sandbox($_) for qw(s1 small file asked);


# --- C061: three parts, split at every place ------------------------------------------

{
    my @content = ("one\r\n--Bx", "\r\n\r--", "\r\n-\r\n--\r");
    my $body = body(map { (meta("/w/$_"), file($content[$_])) } 0 .. 2);
    my @want = map { [ "/w/$_", length $content[$_], sha256_hex($content[$_]) ] }
               0 .. 2;
    my $step = $FULL ? 1 : 11;
    my $conn = $t->connect;
    my (@op, @bad);

    for (my $at = 1; $at < length $body; $at += $step) {
        $conn->write($conn->build(POST => target('s1'), headers => [
            $t->credential, $type, 'Content-Length: ' . length $body ])
            . substr $body, 0, $at);
        sleep 0.002;
        $conn->write(substr $body, $at);
        my $r = $conn->response;
        push @op, [ $at, $r->header('X-Operation-Id') ];
        push @bad, $at if $r->status != 200;
    }

    for my $op (@op) {
        my @got = map { [ @$_{qw(path size sha256)} ] }
                  @{ $t->record($op->[1], sandbox => 's1')->{files} // [] };
        push @bad, $op->[0] if !eq_array(\@got, \@want);
    }

    is_deeply(\@bad, [], 'C061: ' . @op . ' splits of three files: always the'
                         . ' same names, sizes and digests');
}


# --- C064: behind the last delimiter --------------------------------------------------

for my $case (
    [ 'no line end', '' ],
    [ '200 bytes', "\r\n" . 'e' x 200 ],
    [ 'what looks like parts', "\r\n" . meta('/etc/x') . file('evil') . "--B--\r\n" ],
    [ 'a line end in another packet', "\r", "\n" ],
) {
    my ($name, @rest) = @$case;
    my $body = body(meta('/w/a'), file('content')) =~ s/\r\n\z//r;
    my $c = $t->connect;
    my $n = length($body) + length join '', @rest;

    $up->mark;
    $c->write($c->build(POST => target('s1'), headers => [ $t->credential,
        $type, "Content-Length: $n" ]) . $body . (shift(@rest) // ''));

    for (@rest) {
        sleep 0.05;
        $c->write($_);
    }

    my $r = $c->response;
    my $e = $t->record($r);
    is($r->status, 200, "C064: $name behind the end: accepted");
    is_deeply([ map { $_->{path} } @{ $e->{files} } ], [ '/w/a' ],
              'and no file for us');
    is($e->{wire}{bytes_in}, $n, 'but counted');
    is(($up->requests)[-1]{length}, $n, 'passed on as it came');
}


# --- C071: large and small, by either framing -----------------------------------------

for my $n (17 << 10, 18 << 10, 19 << 10, $MIB, ($FULL ? 1024 : 48) * $MIB) {
    for my $chunked (0, 1) {
        my $head = join '', meta('/w/big'), file('') =~ s/\r\n\z//r;
        my $tail = "\r\n--B--\r\n";
        my $block = substr join('', map { chr($_ * 31 & 255) } 0 .. 65_535), 0,
                           $n < 65_536 ? $n : 65_536;
        my ($file, $whole) = map { Digest::SHA->new(256) } 1, 2;
        my $length = length($head) + $n + length $tail;

        $up->mark;
        my $c = $t->connect;
        $c->write($c->build(POST => target('s1'), headers => [ $t->credential,
            $type, $chunked ? 'Transfer-Encoding: chunked'
                            : "Content-Length: $length" ]));

        my $give = sub {
            $whole->add($_[0]);
            $c->write($chunked ? sprintf("%x\r\n", length $_[0]) . "$_[0]\r\n"
                               : $_[0]);
        };

        $give->($head);

        for (my $left = $n; $left > 0; $left -= length $block) {
            my $piece = substr $block, 0, $left;
            $file->add($piece);
            $give->($piece);
        }

        $give->($tail);
        $c->write("0\r\n\r\n") if $chunked;

        my $r = $c->response(timeout => 600);
        my $name = $n . ($chunked ? ' bytes, chunked' : ' bytes');
        is($r->status, 200, "C071: $name");
        is(($up->requests)[-1]{sha256}, $whole->hexdigest, 'arrive whole');
        is($t->record($r, timeout => 30)->{files}[0]{sha256}, $file->hexdigest,
           'and are on record by their digest');
    }
}


# --- C072: the end of the body does not come -------------------------------------------

for my $framing ('Content-Length: 1000000', 'Transfer-Encoding: chunked') {
    $up->mark;
    my $body = body(meta('/w/half'), file('x' x 900_000));
    my $piece = substr $body, 0, 600_000;
    my $c = $t->connect;
    $c->write($c->build(POST => target('s1'), headers => [ $t->credential,
        $type, $framing ])
        . ($framing =~ /chunked/ ? sprintf("%x\r\n", length $piece) . $piece
           . "\r\n" : $piece));
    $up->wait_request(qr{nothing}, timeout => 0.3);     # let it get there
    $c->close;

    my $seen = $up->wait_request(qr{upload});
    ok($seen && !$seen->{complete},
       "C072: $framing, cut: upstream has no clean end");
}

{
    my @e = @{ $t->wait_for(sub {
        my @e = grep { ($_->{wire}{reason} // '') eq 'client_aborted' }
                $t->history->events('s1');
        return @e >= 2 ? \@e : undef;
    }) || [] };
    is(scalar @e, 2, 'both are on record as left by the client');
    is_deeply([ map { $_->{status} } @e ], [ 'cancelled', 'cancelled' ],
              'cancelled');
    ok(!grep({ $_->{wire}{bytes_in} < 1 || $_->{wire}{bytes_in} > 600_000 } @e),
       'with the bytes that came');
}


# --- C075: bodies that nginx keeps in files ---------------------------------------------

for my $sandbox (qw(small file)) {
    for my $n (7 << 10, 8 << 10, 9 << 10, 300 << 10) {
        my $content = substr(pack('N*', 1 .. $n / 4 + 1), 0, $n);
        my $body = body(meta('/w/spooled'), file($content));

        $up->mark;
        my $r = $t->post(target($sandbox), headers => [ $type ], body => $body);
        is($r->status, 200, "C075: $n bytes, spooled ($sandbox)");
        is(($up->requests)[-1]{sha256}, sha256_hex($body), 'arrive whole');
        is($t->record($r)->{files}[0]{sha256}, sha256_hex($content),
           'and were seen whole');
    }

    my $command = join '', map { chr(97 + $_ % 26) } 1 .. 20_000;
    my $r = $t->post("/v1/sandboxes/$sandbox/proxy/44772/command",
                     body => qq({"command":"$command"}));
    is($t->record($r)->{command}{command}, $command, 'so was a JSON body');
}


# --- C076: a check in a subrequest leaves the body alone ---------------------------------

{
    my $rounds = $FULL ? 1000 : 60;
    my $conn = $t->connect;
    my @wrong;

    for my $n (1 .. $rounds) {
        my $body = $n % 2 ? body(meta("/w/$n"), file("content $n"))
                          : qq({"command":"echo $n"});
        my $r = $t->post($n % 2 ? target('asked')
                                : '/v1/sandboxes/asked/proxy/44772/command',
            conn => $conn, headers => [ $n % 2 ? $type : () ], body => $body);
        push @wrong, "$n: " . $r->status if $r->status != 200;

        $r = $t->get("/v1/sandboxes/asked/proxy/44772/files/info?path=%2Fw%2F$n",
                     conn => $conn);
        push @wrong, "$n, the next: " . $r->status if $r->status != 200;
        last if @wrong;
    }

    is_deeply(\@wrong, [], "C076: $rounds times a checked POST and a GET on one"
                           . ' connection');

    my @all = $t->records('asked', count => 2 * $rounds, timeout => 30);
    my @writes = grep { $_->{operation_type} eq 'file.write' } @all;
    is(scalar(grep { $_->{status} eq 'succeeded' } @writes), ($rounds + 1) / 2 | 0,
       'each upload once on record');
    my ($last) = $t->history->query('asked', 'select path, sha256 from'
        . " gateway_files where event_id = '$writes[-1]{event_id}'");
    my $n = $rounds - 1 + $rounds % 2;
    is($last->{sha256}, sha256_hex("content $n"), 'with what was in it');
}


# --- C078: the body ends inside a delimiter, and nothing more can come -------------------

# nginx takes a client that half-closes for one that leaves (as everybody's
# nginx does), so that one may get no answer; nobody waits for anything.

for my $tail ("\r\n-", "\r\n--", "\r\n--B", "\r\n--B-", "\r") {
    for my $half_close (0, 1) {
        my $body = (body(meta('/w/a'), file('x'))
                    =~ s/\r\n--B--\r\n\z//r) . $tail;
        my $c = $t->connect;
        my $n = @{ [ $t->history->events('s1') ] };

        $up->mark;
        $c->write($c->build(POST => target('s1'),
            headers => [ $t->credential, $type ], body => $body));
        shutdown $c->socket, 1 if $half_close;

        my $r = $c->response(timeout => 10);
        my $name = 'C078: ' . ($tail =~ s/\r/CR/r =~ s/\n/LF/r) . ' at the end'
                   . ($half_close ? ', half closed' : '');

        if ($half_close) {
            ok($r->status == 400 || $r->{error} eq 'closed',
               "$name: over at once") or diag($r->status, $r->{error});
        } else {
            is($r->status, 400, "$name: refused at once");
        }

        is(scalar(grep { $_->{complete} } $up->requests), 0,
           'upstream has no whole upload');
        my @all = $t->records('s1', count => $n + 1);
        like($all[-1]{status}, qr/^(?:failed|cancelled)$/,
             'it is on record, and not as a success');
        is(scalar @all, $n + 1, 'once');
    }
}

$t->stop;


# --- C079: what was uploaded is there when its answer is --------------------------------------

{
    my $real = SandboxTest->new(runtime => 1, workers => 2,
                                runtime_args => [ '--grace=0' ])->start;
    my $r = $real->post('/v1/sandboxes',
        headers => [ 'Content-Type: application/json' ],
        body => '{"image":{"uri":"python:3.11"},"timeout":600,'
                . '"resourceLimits":{"cpu":"1"},"entrypoint":["tail"]}');
    my $execd = '/v1/sandboxes/' . $r->json->{id} . '/proxy/44772';
    ok($real->wait_for(sub { $real->get("$execd/ping")->status == 200 }),
       'a sandbox is ready');

    my ($rounds, @missing) = ($FULL ? 200 : 20);

    for my $n (1 .. $rounds) {
        my $content = "round $n " . 'x' x (1000 * ($n % 50));
        my $c = $real->connect;
        $c->write($c->build(POST => "$execd/files/upload",
            headers => [ $real->credential, $type ],
            body => body(meta("/workspace/f$n"), file($content))));
        $c->fill(time + 10);                    # its first bytes

        # another connection, so that it may be the other worker's
        my $cat = $real->post("$execd/command",
            body => qq({"command":"sha256sum /workspace/f$n"}));
        push @missing, $n
            if index($cat->content, sha256_hex($content)) < 0
               || $c->response->status != 200;
    }

    is_deeply(\@missing, [], "C079: $rounds uploads are visible at the first"
                             . ' byte of their answer');
    $real->stop;
}

# Nor is the answer there before upstream's is.

{
    my $late = SandboxTest->new->start;
    $late->sandbox('s1');
    $late->up->script('POST ' . target('s1'), [ pause => 0.5 ], [ 'default' ]);
    my $c = $late->connect;
    $c->write($c->build(POST => target('s1'), body => body(meta('/w/a'), file('x')),
                        headers => [ $late->credential, $type ]));
    ok(!$c->fill(time + 0.3), 'C079: no answer while upstream has given none');
    is($c->response->status, 200, 'then it comes');
    $late->stop;
}

# And the path is its alone until all of upstream's answer is there.

{
    my $held = SandboxTest->new(workers => 2, location => 'sandbox_locks on;')->start;
    my $soon = 'X-Sandbox-Lock-Timeout: 100ms';
    my $info = '/v1/sandboxes/s1/proxy/44772/files/info?path=%2Fw%2Fa';
    my $write = sub {
        my ($content, @headers) = @_;
        my $c = $held->connect;

        $c->write($c->build(POST => target('s1'), body => body(meta('/w/a'), file($content)),
                            headers => [ $held->credential, $type, @headers ]));

        return $c;
    };

    $held->sandbox('s1');
    ok($held->wait_for(sub {
        $held->get('/console/api/v1/sandboxes/s1/locks')->status == 200;
    }), 'the helper is there');
    $held->up->script('POST ' . target('s1'),
        [ send => "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                  . "Transfer-Encoding: chunked\r\n\r\n" ],
        [ chunk => '{"half":' ], [ until => 'end' ], [ chunk => 'true}' ], [ chunk => '' ]);

    my $first = $write->('first');
    ok($first->fill(time + 10), 'C079: half of the answer is there');

    my $r = $write->('second', $soon)->response;
    is($r->status, 423, 'another writer waits for the rest');
    my ($holder) = grep { $_->{state} eq 'held' }
                   @{ $held->get('/console/api/v1/sandboxes/s1/locks')->json->{items} };
    is($r->json->{details}{holder}{id}, $holder->{id}, 'of the first one');
    is($held->get($info, headers => [ $soon ])->status, 423, 'and so does who reads');

    my $third = $write->('third');
    ok($held->wait_for(sub {
        grep { $_->{state} eq 'waiting' }
            @{ $held->get('/console/api/v1/sandboxes/s1/locks')->json->{items} };
    }), 'a third one is in the queue');
    is(scalar(grep { $_->{target} =~ /upload/ } $held->up->requests), 1,
       'upstream has seen one upload only');

    $held->up->release('end');
    $r = $first->response;
    is_deeply([ $r->status, $r->content ], [ 200, '{"half":true}' ], 'the answer is complete');
    is($third->response->status, 200, 'and the third one goes on');
    is(scalar(grep { $_->{target} =~ /upload/ } $held->up->requests), 2,
       'upstream has seen two, one after the other');
    is($held->get($info, headers => [ $soon ])->status, 200, 'nobody holds it any more');
    $held->stop;
}

done_testing;


sub target { "/v1/sandboxes/$_[0]/proxy/44772/files/upload" }


sub part {
    my ($name, $bytes) = @_;

    return "--B\r\nContent-Disposition: form-data; name=\"$name\";"
           . " filename=\"f\"\r\n\r\n$bytes\r\n";
}


sub meta { part('metadata', qq({"path":"$_[0]"})) }
sub file { part('file', $_[0]) }
sub body { join('', @_) . "--B--\r\n" }
