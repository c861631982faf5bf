#!/usr/bin/perl

# The rewritten endpoints answer, byte by byte: what stays, what goes, and what
# passes when it cannot be rewritten.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;

my $t = SandboxTest->new->start;
my $up = $t->up;
my $host = '127.0.0.1:' . $t->port;
my $target = '/v1/sandboxes/s1/endpoints/44772';
my $mine = "$host/sandboxes/s1/proxy/44772";

$t->sandbox('s1');


# Members in their order, numbers as they were written, nothing lost.

my ($text) = body_of('{ "b" : 1.50e+3, "endpoint": "exec.example:1/x", "a":{"z":'
    . '[1,{"y":null},[],{},false],"ü":"\u0001\"\\\\"}, "headers":'
    . '{"open-sandbox-api-key":"upstreams","K":"v"}, "t":true }');
is($text, '{"b":1.50e+3,"endpoint":"' . $mine . '","a":{"z":[1,{"y":null},[],{},'
    . 'false],"ü":"\u0001\"\\\\"},"headers":{"K":"v","OPEN-SANDBOX-API-KEY":'
    . '"TOKEN"},"t":true}', 'all else as it was');

($text) = body_of('{"endpoint":"exec.example:1"}');
is($text, '{"endpoint":"' . $mine . '","headers":{"OPEN-SANDBOX-API-KEY":'
    . '"TOKEN"}}', 'headers are added');

# Readers differ in which of two members they take.

($text) = body_of('{"endpoint":"exec.example:1","endpoint":"exec.example:2",'
    . '"headers":{"A":"1"},"headers":{"B":"2"}}');
is($text, '{"endpoint":"' . $mine . '","headers":{"B":"2",'
    . '"OPEN-SANDBOX-API-KEY":"TOKEN"}}', 'one of each');

# A token for each who asks: of nobody else's credential or port.

my ($t1) = (body_of('{"endpoint":"exec.example:1"}'))[1];
my ($t2) = (body_of('{"endpoint":"exec.example:1"}', token => 'plain'))[1];
isnt($t1, $t2, 'tokens of two credentials differ');

my $ping = '/sandboxes/s1/proxy/44772/ping';
is($t->get($ping, token => $t2)->status, 200, 'a token opens its port');
is($t->get('/sandboxes/s1/proxy/18080/policy', token => $t2)->status, 401,
   'and no other');
is($t->get($target, token => $t2)->status, 401, 'nor the lifecycle API');

# Header lines that spoke of the body as it was.

my ($r) = (body_of('{"endpoint":"exec.example:1"}', lines => [
    'ETag: "1"', 'Last-Modified: Sun, 29 Nov 2026 09:00:00 GMT',
    'Content-MD5: xxxx', 'Digest: sha-256=xxxx', 'Accept-Ranges: bytes',
    'Cache-Control: public, max-age=60', 'X-Request-ID: kept' ]))[2];

is_deeply([ map { $r->headers($_) } qw(ETag Last-Modified Content-MD5 Digest
                                       Accept-Ranges) ], [],
          'no header speaks of the old body');
is_deeply([ $r->headers('Cache-Control') ], [ 'no-store' ],
          'no cache keeps the token');
is($r->header('X-Request-ID'), 'kept', 'others stay');

# In any pieces, with any framing.

my $answer = '{"endpoint":"exec.example:1/proxy/44772","x":"' . 'y' x 5000 . '"}';

for my $size (1, 7, 4096) {
    my @pieces = $answer =~ /.{1,$size}/gs;

    script([ send => head('Transfer-Encoding: chunked') ],
           (map { [ chunk => $_ ] } @pieces), [ chunk => '' ]);
    like($t->get($target)->content, qr/^\{"endpoint":"\Q$mine\E","x":"y{5000}",/,
         "chunks of $size bytes");

    script([ send => head('Connection: close') ],
           (map { [ send => $_ ] } @pieces), [ 'close' ]);
    like($t->get($target)->content, qr/^\{"endpoint":"\Q$mine\E","x":"y{5000}",/,
         "ended by a close, $size bytes at a time");
}

# Not ours to change: types, encodings, lengths, cuts.

for my $lines ([ 'Content-Type: text/plain' ],
               [ 'Content-Type: application/jsonx' ],
               [ 'Content-Type: application/json', 'Content-Encoding: x' ])
{
    my $body = '{"endpoint":"exec.example:1"}';
    script(FakeUpstream::answer(200, $body, @$lines));
    is($t->get($target)->content, $body, "unchanged: $lines->[-1]");
}

script(FakeUpstream::answer(200, '', 'Content-Type: application/json'));
is($t->get($target)->header('Content-Length'), 0, 'an empty answer stays empty');

my $long = '{"endpoint":"exec.example:1","x":"' . 'y' x 80_000 . '"}';
script([ send => head('Transfer-Encoding: chunked') ],
       (map { [ chunk => $_ ] } $long =~ /.{1,9000}/gs), [ chunk => '' ]);
$r = $t->get($target);
is($r->content, $long, 'longer than is held, without a length');
ok($r->complete, 'and whole');
cmp_ok($t->metric('endpoints_unchanged_total'), '>=', 1, 'it is counted');
like($t->log_text, qr/endpoints answer passes unchanged: it is too long/,
     'the log says so');

for my $cut ('', '{"endpoint":"127.0') {
    script([ send => head('Content-Length: 60') . $cut ], [ pause => 0.1 ],
           [ 'close' ]);
    $r = $t->get($target);
    ok(!$r->complete, 'cut by upstream: cut for the client');
    is($r->content, $cut, 'who gets what came');
}

# Without a Host the gateway has no name to put there: upstream's own address
# would be a way past it.

script(FakeUpstream::answer(200, '{"endpoint":"exec.example:1"}',
                            'Content-Type: application/json'));
$up->mark;
for my $token ('admin', 'plain') {
    $r = $t->get($target, version => '1.0', plain => 1, token => $token);
    is($r->status, 400, 'HTTP/1.0 without Host');
    is($r->json->{code}, 'GATEWAY_AMBIGUOUS_REQUEST', 'is refused');
    like($r->json->{message}, qr/Host.*sandbox_public/, 'and told why');
    unlike($r->content, qr/exec\.example/, 'without the address');
}
is(scalar $up->requests(qr/endpoints/), 0, 'nor was upstream asked');
is($t->get($target, version => '1.0')->json->{endpoint}, $mine,
   'with one it is rewritten');

# What is not rewritten needs no name.

my $signed = '{"endpoint":"exec.example:1/signed"}';
$up->script("GET $target?expires=1999999999",
            FakeUpstream::answer(200, $signed, 'Content-Type: application/json'));
is($t->get("$target?expires=1999999999", version => '1.0', plain => 1)->content,
   $signed, 'a signed endpoint passes without Host');

# The client leaves while it is held.

script([ send => head('Content-Length: 60') . '{"endpoint"' ], [ 'hang' ]);
my $c = $t->connect;
$c->write($c->build(GET => $target, headers => [ $t->credential ]));
ok($t->wait_for(sub { $up->requests(qr/endpoints/) }, 5), 'asked');
$c->close;

$up->clear;
is($t->get($ping)->status, 200, 'the worker goes on');

$t->stop;
done_testing;


sub script {
    $up->clear;
    $up->script("GET $target", @_);
}


sub head {
    return join "\r\n", 'HTTP/1.1 200 OK', 'Content-Type: application/json', @_,
                        '', '';
}


# The answer to an endpoints request, with TOKEN for the token; the token; the
# response.

sub body_of {
    my ($body, %o) = @_;

    script(FakeUpstream::answer(200, $body, 'Content-Type: application/json',
                                @{ delete $o{lines} // [] }));
    my $got = $t->get($target, %o);
    my ($token) = $got->content =~ /"(sbe_[\w.-]+)"/;

    $t->secret($token) if defined $token;
    is($got->header('Content-Length'), length $got->content, 'right length');

    return ($got->content =~ s/sbe_[\w.-]+/TOKEN/r, $token, $got);
}
