#!/usr/bin/perl

# What is forwarded is what was sent: the request line byte for byte on both
# roads, bodies of every method, empty answers with their Content-Length, and
# one decision for each request on a connection.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;

my $h2 = SandboxProcess::free_port();
my $t = SandboxTest->new(server => "listen 127.0.0.1:$h2 http2;")->start;
my $up = $t->up;
$t->sandbox('s1');
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $user = '/v1/sandboxes/s1/proxy/8080';

for my $road ('server proxy', 'straight') {
    my $straight = $road eq 'straight';
    my $prefix = $straight ? '/proxy' : '/v1/sandboxes/s1/proxy';
    $t->endpoint('s1', $_) for $straight ? (44772, 8080) : ();

    # C001: the query; no re-encoding, no reordering, nothing dropped
    for my $query ('path=/workspace&pattern=*.py', 'path=%2Fworkspace%2Fa%20b.txt',
                   'path=a+b&path=&empty&path=%e4%bd%a0', 'b=2&a=1&b=1',
                   'path=%2Fa%25b')
    {
        is(forwarded("$execd/files/search?$query"),
           "$prefix/44772/files/search?$query", "$road, C001: $query");
    }

    # C008: reserved characters on a user port
    my $odd = '/@org/pkg/~a,b;c=1/%E4%BD%A0.js?x=%2f&y=[1]|2';
    is(forwarded("$user$odd"), "$prefix/8080$odd", "$road, C008: $odd");

    # C011: doubled slashes that matter; C087: dots inside names
    for my $path ('/fetch/https://host/x', '//a', '/a//', '/js/a..b.js',
                  '/...', '/%2e.js', '/a%2Fb', '/%41', '/a%20b%3Fc')
    {
        is(forwarded("$user$path"), "$prefix/8080$path", "$road, C011, C087: $path on a user port");
    }

    # C007: the root of a port in its four forms
    for my $form ('', '/', '?x=1', '/?x=1') {
        is(forwarded("$user$form"), "$prefix/8080$form", "$road, C007: '$form'");
        next if $straight;
        is(forwarded("/sandboxes/s1/proxy/8080$form"),
           "/sandboxes/s1/proxy/8080$form", 'also without /v1');
    }

    # C002: bodies of DELETE, with the next request on the same connection
    my $conn = $t->connect;
    my $body = '["a.example"]';

    for my $how ([ 'Content-Length', body => $body ],
                 [ 'chunked', body => $body, chunked => 1 ])
    {
        my ($name, %o) = @$how;
        $up->mark;
        my $r = $t->delete("$user/x", conn => $conn, %o);
        is($r->status, 200, "$road, C002: DELETE with a body, $name");
        is(($up->requests)[-1]{body}, $body, 'it arrives');
        is($t->get("$user/next", conn => $conn)->status, 200,
           'the next request on the connection is read from the right place');
        is(($up->requests)[-1]{target}, "$prefix/8080/next", 'and forwarded');
    }

    $up->mark;
    my $r = $t->get("$user/get-with-body", conn => $conn, body => 'abc');
    ok($r->status, "$road: GET with a body is answered");
    is($t->get("$user/next", conn => $conn)->status, 200,
       'and leaves nothing behind in the connection');
    is(($up->requests)[-1]{target}, "$prefix/8080/next", 'of it');

    for my $method (qw(PUT PATCH POST)) {
        $up->mark;
        $t->request($method, "$user/y", conn => $conn, body => "\x00\xff$method");
        is(($up->requests)[-1]{body}, "\x00\xff$method", "$road: $method body");
    }

    # empty answers stay Content-Length: 0 (7.2)
    for my $case ([ GET => "$execd/ping" ], [ DELETE => "$execd/files?path=%2Fa" ],
                  [ POST => "$execd/files/mv", '[]' ])
    {
        my ($method, $target, $b) = @$case;
        my $r = $t->request($method, $target, conn => $conn, body => $b);
        is($r->header('Content-Length'), 0, "$road: empty answer of $method $target");
        is($r->header('Transfer-Encoding'), undef, 'not chunked');
    }
}

for my $what (qw(pause resume)) {
    my $r = $t->post("/v1/sandboxes/s1/$what", body => '');
    is($r->status, 202, $what);
    is($r->header('Content-Length'), 0, 'keeps Content-Length: 0');
    is($r->header('Transfer-Encoding'), undef, 'is not chunked');
}

{
    my $conn = $t->connect;
    my $r = $t->delete('/v1/sandboxes/s1', conn => $conn);
    is($r->status, 204, 'delete');
    is($r->header('Transfer-Encoding'), undef, 'no body of any kind');
    is($t->get('/v1/sandboxes', conn => $conn)->status, 200,
       'and the connection goes on');
}

$t->sandbox('s1');

# C009: pipelined requests are two decisions and two records.

$t->{up}->mark;
my $c = $t->connect;
my $token = $t->credential;
$c->write($c->build(GET => "$execd/metrics", headers => [ $token ])
          . $c->build(POST => "$execd/command", body => '{"command":"echo 2"}')
          . $c->build(POST => "$execd/command", headers => [ $token ],
                      body => '{"command":"echo 3"}'));
my @r = map { $c->response } 1 .. 3;
is_deeply([ map { $_->status } @r ], [ 200, 401, 200 ],
          'C009: each pipelined request is judged by itself');
is_deeply([ map { $_->{method} } $up->requests ], [ qw(GET POST) ],
          'the refused one does not reach upstream');
is($t->record($r[0])->{operation_type}, 'metrics.get', 'the first is recorded');
is($t->record($r[2])->{command}{command}, 'echo 3', 'so is the third');

# HTTP/1.0

$up->mark;
my $r = $t->get("$execd/metrics", version => '1.0');
is($r->status, 200, 'HTTP/1.0');
is(($up->requests)[-1]{version}, '1.1', 'upstream is spoken to in HTTP/1.1');
$r = $t->post("$execd/command", version => '1.0', body => '{"command":"echo x"}');
is($r->header('Transfer-Encoding'), undef, 'a stream is not chunked for 1.0');
like($r->content, qr/execution_complete/, 'and ends with the connection');
is($t->record($r)->{status}, 'succeeded', 'recorded');

# HTTP/2 from the client (with curl)

SKIP: {
    skip 'curl has no HTTP/2', 5 if qx(curl --version) !~ /HTTP2/;

    my @curl = ('curl', '-s', '-i', '--http2-prior-knowledge', '-H',
                $t->credential);
    my $out = run(@curl, '-d', '{"command":"echo two"}',
                  "http://127.0.0.1:$h2$execd/command");
    like($out, qr{^HTTP/2 200}, 'HTTP/2: a command');
    like($out, qr/execution_complete/, 'with its stream');
    my ($id) = $out =~ /^x-operation-id: (\S+)/mi;
    is($t->record($id)->{command}{command}, 'echo two', 'recorded');

    $up->mark;
    $out = run(@curl, "http://127.0.0.1:$h2$user/\@a//b?x=%2F");
    is(($up->requests)[-1]{target}, "$user/\@a//b?x=%2F",
       'the target byte for byte');
    $out = run(@curl[0 .. 3], "http://127.0.0.1:$h2/v1/sandboxes");
    like($out, qr{^HTTP/2 401}, 'without a token: 401');
}

# Large answers of any size near the buffers (C026)

for my $n (1, 4095, 4096, 4097, 32767, 60_000, 65_537, 102_400, 5_000_000) {
    my $bytes = substr(join('', map { pack 'N', $_ } 0 .. $n / 4 + 1), 0, $n);
    $up->script("GET $execd/files/download", FakeUpstream::answer(
        200, $bytes, 'Content-Type: application/octet-stream'));
    my $r = $t->get("$execd/files/download?path=/a");
    ok($r->content eq $bytes, "C026: a download of $n bytes");
    my $e = $t->record($r);
    is($e->{wire}{bytes_out}, $n, 'its size is recorded');
}

$t->stop;
done_testing;


# What a program prints.

sub run {
    open my $fh, '-|', @_ or die "$_[0]: $!\n";
    local $/;
    my $text = <$fh>;
    close $fh;

    return $text // '';
}


# Sends a GET; the target that upstream saw.

sub forwarded {
    my $target = shift;

    $up->mark;
    my $r = $t->get($target);
    my @seen = $up->requests;

    return @seen == 1 ? $seen[0]{target} : 'status ' . $r->status;
}
