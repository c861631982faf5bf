#!/usr/bin/perl

# The 22 quirks of OpenSandbox that a proxy must respect (reference 9.3), one by
# one.  Most are tested in depth elsewhere; here each has its number.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;

# quirk 19: without versions nothing of a file's content is kept
my $t = SandboxTest->new(http => 'sandbox_versions off;', conf => sub {
    $_[0] =~ s/(proxy_read_timeout) 1h/$1 2s/r;
})->start;
my $up = $t->up;
$t->sandbox($_) for qw(s1 s2 weird~id_1);
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $user = '/v1/sandboxes/s1/proxy/8080';
my ($r, $e);


# The target that upstream saw of a GET.

sub forwarded {
    $up->mark;
    $t->get(@_);
    my @seen = $up->requests;

    return @seen ? $seen[0]{target} : 'nothing';
}

sub operation { $t->record($_[0])->{operation_type} }

sub refused {
    my ($name, $r) = @_;

    is($r->status, 400, "$name is refused");
    is($r->code, 'GATEWAY_AMBIGUOUS_REQUEST', "$name: by us");
}


for ("$user/a%2Fb/%e4?path=%2Fa%20b&x=a%2Bb", "$execd/files/info?path=%2fA%41") {
    is(forwarded($_), $_, 'quirk 1: the raw request line');
}

is(forwarded("$user//a/./b"), "$user//a/./b", 'quirk 2: nothing is normalised');
refused("quirk 2: $_", $t->post($_, body => '{"command":"a"}'))
    for "$execd//command", "$execd/./command", "$user/../44772/command";

is(operation($t->post($_, body => '{"command":"a"}')), 'command.execute',
   "quirk 3: $_")
    for '/%73andboxes/s1/proxy/44772/%63ommand',
        '/v1/sandboxes/s1/proxy/0044772/command', "$execd/proxy/44772/command";
refused("quirk 3: $_", $t->delete($_))
    for "$execd/%2563ommand", "$execd/files%3Fpath=/a", "$execd%2Ffiles";

refused("quirk 4: $_", $t->post("$execd/command", body => $_))
    for '{"command":"a","COMMAND":"b"}', '{"command":"a"}{"command":"b"}',
        '{"command":"a","command":"b"}';
$r = $t->post("$execd/command", body => '{"command":"a"}',
              headers => [ 'Content-Type: text/plain' ]);
is($t->record($r)->{command}{command}, 'a', 'quirk 4: any Content-Type');
$r = $t->post('/v1/sandboxes', body => '{"snapshot_id":"snap-9"}');
like($t->record($r)->{request_json}, qr/"snap-9"/,
     "quirk 4: lifecycle's other names");

$e = $t->record($t->get("$execd/files/download?path=%2Fa&path=%2Fb"));
is_deeply([ map { $_->{path} } @{ $e->{files} } ], [ '/a' ],
          'quirk 5: the first path');
$e = $t->record($t->get("$execd/files/info?path=%2Fa&path=%2Fb+c"));
is_deeply([ map { $_->{path} } @{ $e->{files} } ], [ '/a', '/b c' ],
          'quirk 5: or all');
refused('quirk 5: ";"', $t->delete("$execd/files?path=/a;path=/b"));

for my $path ('%24HOME%2Fx', '~%2Fx', 'relative', '%2Fa%2F..%2Fb') {
    $e = $t->record($t->get("$execd/files/download?path=$path"));
    cmp_ok($e->{files}[0]{flags}, '>', 0, "quirk 6: $path is flagged");
}

for ([ GET => "$execd/ping" ], [ POST => '/v1/sandboxes/s1/pause' ],
     [ POST => '/v1/sandboxes/s1/resume' ])
{
    $r = $t->request(@$_, $_->[0] eq 'POST' ? (body => '') : ());
    is($r->header('Content-Length'), 0, "quirk 7: @$_: Content-Length: 0");
    is($r->header('Transfer-Encoding'), undef, 'quirk 7: and not chunked');
}

{
    my $conn = $t->connect;
    $up->script("GET $user/304", [ send => "HTTP/1.1 304 Not Modified\r\n\r\n" ]);
    $up->script("DELETE $user/204",
                [ send => "HTTP/1.1 204 No Content\r\n\r\n" ]);

    for ([ GET => "$user/304", 304 ], [ DELETE => "$user/204", 204 ]) {
        my ($method, $target, $status) = @$_;
        $r = $t->request($method, $target, conn => $conn);
        is($r->status, $status, "quirk 8: $status");
        is($r->content, '', 'quirk 8: without a body');
        is($r->header('Transfer-Encoding'), undef, 'quirk 8: of any kind');
    }

    is($t->get("$user/after", conn => $conn)->status, 200,
       'quirk 8: the connection goes on');
    $up->clear;
}

{
    $up->script("POST $execd/command", FakeUpstream::stream_head(),
        [ event => FakeUpstream::event('init', text => 'c1') ], [ 'hang' ]);
    $up->mark;
    my $c = $t->connect;
    $c->write($c->build(POST => "$execd/command", body => '{"command":"a"}',
        headers => [ $t->credential, 'Accept-Encoding: gzip' ]));
    $r = $c->response(head_only => 1);
    $c->fill(time + 5) while $c->{buf} !~ /init/ && !$c->{eof};
    like($c->{buf}, qr/"c1"/, 'quirk 9: an event comes while the stream is open');
    is($r->header('Content-Encoding'), undef, 'quirk 9: no gzip');
    is(($up->requests)[0]{version} // '1.1', '1.1', 'quirk 9: HTTP/1.1 upstream');
    $c->close;
    $up->clear;
}

{
    my $body = "--B\r\nContent-Disposition: form-data; name=\"metadata\"; "
               . "filename=\"metadata\"\r\n\r\n{\"path\":\"/w/a\"}\r\n--B\r\n"
               . "Content-Disposition: form-data; name=\"file\"; "
               . "filename=\"a\"\r\n\r\n" . 'x' x (3 << 20) . "\r\n--B--\r\n";
    my @type = ('Content-Type: multipart/form-data; boundary=B');

    $up->mark;
    $r = $t->post("$execd/files/upload", headers => \@type,
                  body => [ unpack '(a65536)*', $body ], chunked => 1);
    is($r->status, 200, 'quirk 10: a chunked upload of 3 MiB');
    is(($up->requests)[0]{length}, length $body, 'quirk 10: arrives whole');

    my $c = $t->connect;
    $c->write($c->build(POST => "$execd/files/upload", headers => [
        $t->credential, @type, 'Expect: 100-continue',
        'Content-Length: ' . length $body ]));
    $c->fill(time + 5) while $c->{buf} !~ /\r\n\r\n/ && !$c->{eof};
    like($c->{buf}, qr{^HTTP/1\.1 100 }, 'quirk 11: 100 Continue at once');
    $c->{buf} =~ s/^.*?\r\n\r\n//s;
    $c->write($body);
    is($c->response->status, 200, 'quirk 11: then the answer');
}

{
    my $conn = $t->connect;
    $r = $t->get("$user/x", conn => $conn, body => 'abc');
    ok($r->status, 'quirk 12: GET with a body is answered');
    $up->mark;
    $r = $t->delete("$user/x", conn => $conn, body => 'def');
    is(($up->requests)[0]{body}, 'def', 'quirk 12: DELETE with one passes');
}

{
    $up->script("HEAD $execd/ping",
                [ send => "HTTP/1.1 404 Not Found\r\nContent-Length: 18\r\n\r\n" ]);
    $r = $t->request(HEAD => "$execd/ping", head_only => 1);
    is($r->status, 404, "quirk 13: HEAD: upstream's word passes");
    is(operation($r), 'execd.unknown', 'quirk 13: and is nothing known');
    $up->clear;
}

for ([ "$execd/ping/", 301, '/ping' ],
     [ '/v1/sandboxes/', 307, 'http://127.0.0.1:1/v1/sandboxes' ])
{
    my ($target, $status, $location) = @$_;
    $up->script("GET $target", [ send => "HTTP/1.1 $status X\r\n"
        . "Location: $location\r\nContent-Length: 0\r\n\r\n" ]);
    $r = $t->get($target);
    is($r->status, $status, "quirk 14: $status");
    is($r->header('Location'), $location, 'quirk 14: goes where it went');
    $up->clear;
}

{
    $up->script("GET $user/twice", [ send => "HTTP/1.1 200 OK\r\n"
        . "date: Mon, 01 Jan 2024 00:00:00 GMT\r\nserver: uvicorn\r\n"
        . "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\nServer: other\r\n"
        . "Set-Cookie: a=1; Path=/, b=2\r\nContent-Length: 2\r\n\r\nok" ]);
    $r = $t->get("$user/twice");
    is($r->content, 'ok', 'quirk 15: doubled Date and Server do no harm');
    is(scalar(my @date = $r->headers('Date')), 1, 'quirk 15: one comes out');
    is($r->header('Set-Cookie'), 'a=1; Path=/, b=2', 'quirk 15: a joined cookie');
    $up->clear;
}

{
    $up->mark;
    my $host = 'gateway.test:18080';
    my $json = $t->get('/v1/sandboxes/s1/endpoints/44772?use_server_proxy=true',
                       headers => [ "Host: $host" ])->json;
    like(($up->requests)[0]{head}, qr/^Host: \Q$host\E\r$/mi,
         'quirk 16: Host with its port goes up');
    like($json->{endpoint}, qr/^\Q$host\E\//, 'quirk 16: and comes back');
    $t->secret($json->{headers}{'OPEN-SANDBOX-API-KEY'})
        if $json->{headers}{'OPEN-SANDBOX-API-KEY'};
}

{
    $up->mark;
    my $ws = $t->websocket("$execd/pty/p1/ws", headers => [
        'Sec-WebSocket-Extensions: permessage-deflate' ]);
    is($ws->status, 101, 'quirk 17: a terminal');
    my ($seen) = $up->requests(qr{pty});
    like($seen->{head}, qr/^Upgrade: websocket\r$/mi, 'quirk 17: Upgrade is set');
    like($seen->{head}, qr/^Connection: upgrade\r$/m, 'quirk 17: and Connection');
    unlike($seen->{head}, qr/deflate/, 'quirk 17: no compressed frames');
    $ws->close;

    $up->script("GET $execd/pty/gone/ws", [ 'ws_accept' ],
                [ frame => 8, pack 'n', 1008 ]);
    $ws = $t->websocket("$execd/pty/gone/ws");
    is($ws->status, 101, 'quirk 17: a failure comes as 101');
    $ws->recv_until(sub { $_[0]{op} == 8 }, 3);
    $ws->close;
    $e = $t->record($ws->response);
    is($e->{result}{close_code}, 1008, 'quirk 17: and close 1008, on record');
    isnt($e->{status}, 'succeeded', 'quirk 17: as no success');
    $up->clear;
}

{
    $up->script("GET $execd/metrics", [ 'hang' ]);
    $r = $t->get("$execd/metrics");
    is($r->status, 504, 'quirk 18: a frozen sandbox hangs and is given up');
    is($t->record($r)->{status}, 'timeout', 'quirk 18: as a timeout');
    $up->clear;
}

{
    my @secret = map { "quirk-19-secret-$_" } 1 .. 12;
    $t->secret(@secret);
    my $n = 0;

    $up->mark;
    $r = $t->post('/v1/sandboxes', body => '{"image":{"uri":"i","auth":'
        . "{\"username\":\"u\",\"password\":\"$secret[0]\"}},"
        . "\"env\":{\"A\":\"$secret[1]\"},\"volumes\":[{\"name\":\"v\","
        . "\"mountPath\":\"/m\",\"ossfs\":{\"bucket\":\"b\",\"endpoint\":\"e\","
        . "\"accessKeyId\":\"$secret[2]\",\"accessKeySecret\":\"$secret[3]\"}}]}");
    ok($t->record($r)->{event_id}, 'quirk 19: a create with secrets');
    like(($up->requests)[0]{body}, qr/\Q$secret[3]\E/, 'quirk 19: they pass');
    $r = $t->post("$execd/command", headers => [
            "X-EXECD-ACCESS-TOKEN: $secret[4]",
            "OpenSandbox-Secure-Access: $secret[5]",
            "OPENSANDBOX-EGRESS-AUTH: $secret[6]" ],
        body => "{\"command\":\"a\",\"envs\":{\"B\":\"$secret[7]\"}}");
    ok($t->record($r)->{event_id}, 'quirk 19: a command with secrets');
    $t->sandbox('s2', headers => { 'OPENSANDBOX-EGRESS-AUTH' => $secret[8] });
    my $json = $t->endpoint('s2', 18080);
    is($json->{headers}{'OPENSANDBOX-EGRESS-AUTH'}, $secret[8],
       "quirk 19: an answer's headers pass");
    $r = $t->post("$execd/files/upload",
        headers => [ 'Content-Type: multipart/form-data; boundary=B' ],
        body => "--B\r\nContent-Disposition: form-data; name=\"metadata\"; "
                . "filename=\"m\"\r\n\r\n{\"path\":\"/w/s\"}\r\n--B\r\n"
                . "Content-Disposition: form-data; name=\"file\"; filename=\""
                . "f\"\r\n\r\n$secret[9]\r\n--B--\r\n");
    ok($t->record($r)->{event_id}, 'quirk 19: a file');
    # nothing of it is in a log or record: stop() looks
}

{
    my $conf = SandboxTest::read_file("$SandboxProcess::ROOT/conf/drop-in.conf")
               . SandboxTest::read_file(
                     "$SandboxProcess::ROOT/conf/standalone.conf");
    my @upstream = $conf =~ /^\s*upstream opensandbox (\{.*?\})/msg;
    my @idle = map { /keepalive_timeout\s+(\d+)s;/ } @upstream;
    my @pool = map { /keepalive\s+(\d+);/ } @upstream;
    is(scalar @idle, 2, 'quirk 20: idle upstream connections are given up');
    ok(!(grep { $_ >= 30 } @idle), 'quirk 20: before upstream does');
    ok(@pool == 2 && !(grep { $_ > 64 } @pool), 'quirk 20: and are few');
}

is($t->record($t->get("/v1/sandboxes/$_/proxy/44772/metrics"))->{in}, $_,
   'quirk 21: the carrier says whose it is') for qw(s1 s2);

$r = $t->get('/v1/sandboxes/weird~id_1/proxy/44772/command/status/any.id~1');
$e = $t->record($r);
is($e->{request}{command_id} // $e->{request}{id}, 'any.id~1',
   'quirk 22: any segment is an id') or diag($e->{request_json});
like($e->{in}, qr/^x-[0-9a-f]{64}$|^weird~id_1$/,
     'quirk 22: of a sandbox or a command');

$t->stop;
done_testing;
