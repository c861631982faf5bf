#!/usr/bin/perl

# The road to a sandbox (design 6): the endpoints answer is rewritten so that
# clients in their default mode come through the gateway, requests then go
# straight to the address upstream named, and never to a stale one.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep);

my $t = SandboxTest->new(workers => 2, locations => <<'EOF')->start;
location /v1/sandboxes/pub {
    sandbox on;
    sandbox_public sandbox.example:8443/osb;
    sandbox_endpoints all;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_set_header Host $sandbox_upstream_host;
}
location /v1/sandboxes/off {
    sandbox on;
    sandbox_endpoints off;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_set_header Host $sandbox_upstream_host;
}
EOF

my $up = $t->up;
my $host = '127.0.0.1:' . $t->port;


# --- the answer -------------------------------------------------------------------

$t->sandbox('s1', headers => { 'OPENSANDBOX-EGRESS-AUTH' => 'egress-secret-1',
                               'X-Own' => 'kept' });
$t->secret('egress-secret-1');

my ($json, $r) = $t->endpoint('s1', 44772);
is($r->status, 200, 'endpoints answer');
is($json->{endpoint}, "$host/sandboxes/s1/proxy/44772", 'names the gateway');
is($json->{headers}{'X-Own'}, 'kept', 'keeps the headers of upstream');
is($json->{headers}{'OPENSANDBOX-EGRESS-AUTH'}, 'egress-secret-1',
   'secret ones too');
like($json->{headers}{'OPEN-SANDBOX-API-KEY'}, qr/^sbe_/,
     'and adds an endpoint token');
is($r->header('Content-Length'), length $r->content, 'its length is right');
is(scalar($r->headers('Content-Length')), 1, 'and given once');

my $e = $t->record($r);
is($e->{operation_type}, 'endpoint.get', 'recorded');
is($e->{wire}{sandbox} // $e->{sandbox_id}, 's1', 'for the sandbox');

($json) = $t->endpoint('s1', 18080);
is($json->{endpoint}, "$host/sandboxes/s1/proxy/18080", 'egress port too');

my $address = '127.0.0.1:' . $up->port('a');
($json) = $t->endpoint('s1', 8080);
is($json->{endpoint}, "$address/proxy/8080", 'other ports pass unchanged');
is($json->{headers}{'OPEN-SANDBOX-API-KEY'}, undef, 'without a token');

($json) = $t->endpoint('s1', 44772, query => '');
is($json->{endpoint}, "$host/sandboxes/s1/proxy/44772", 'without a query');

($json) = $t->endpoint('s1', 44772, query => '',
                       headers => [ 'Host: localhost:1234' ]);
is($json->{endpoint}, 'localhost:1234/sandboxes/s1/proxy/44772',
   'the name under which the client knows the gateway');

$t->sandbox('public1');
($json) = $t->endpoint('public1', 44772);
is($json->{endpoint}, 'sandbox.example:8443/osb/sandboxes/public1/proxy/44772',
   'sandbox_public with a prefix');
($json) = $t->endpoint('public1', 8080);
is($json->{endpoint}, 'sandbox.example:8443/osb/sandboxes/public1/proxy/8080',
   'sandbox_endpoints all');

$t->sandbox('off1');
($json) = $t->endpoint('off1', 44772);
is($json->{endpoint}, "$address/proxy/44772", 'sandbox_endpoints off');

# Asked for without encoding, so that it can be read.

$up->mark;
$t->endpoint('s1', 44772, headers => [ 'Accept-Encoding: gzip, br' ]);
my ($seen) = $up->requests(qr{/endpoints/});
unlike($seen->{head}, qr/gzip/, 'no encoding is asked for');

# Signed answers pass unchanged and are marked.

($json, $r) = $t->endpoint('s1', 44772, query => '?expires=1999999999');
is($json->{endpoint}, "$address/proxy/44772/signed", 'signed: unchanged');
$e = $t->record($r);
is($e->{result}{bypass}, 'signed', 'and recorded as a bypass')
    or diag($e->{result_json});
unlike($e->{result_json} // '', qr/\/signed/, 'without the signed route');

# What cannot be read, or is larger than what is held, passes unchanged.

for my $body ('{"endpoint":', '{"endpoint":5}', '[]', 'text',
              '{"endpoint":"' . 'x' x 70_000 . '"}')
{
    $up->script('GET /v1/sandboxes/s1/endpoints', FakeUpstream::answer(
                    200, $body, 'Content-Type: application/json'));
    $r = $t->get('/v1/sandboxes/s1/endpoints/44772');
    is($r->content, $body, 'passes unchanged: ' . substr $body, 0, 20);
}

for my $status (404, 500) {
    $up->script('GET /v1/sandboxes/s1/endpoints', FakeUpstream::answer(
                    $status, { code => 'X::Y', message => 'm' }));
    $r = $t->get('/v1/sandboxes/s1/endpoints/44772');
    is($r->status, $status, "upstream's $status passes");
    is($r->code, 'X::Y', 'with its body');
}

# Chunked and in pieces it is rewritten as well.

$up->script('GET /v1/sandboxes/s1/endpoints',
    [ send => "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
              . "Transfer-Encoding: chunked\r\n\r\n" ],
    [ chunk => '{"endp' ], [ pause => 0.05 ],
    [ chunk => "oint\":\"$address/proxy/44772\"" ], [ pause => 0.05 ],
    [ chunk => '}' ], [ chunk => '' ]);
($json, $r) = $t->endpoint('s1', 44772);
is($json->{endpoint}, "$host/sandboxes/s1/proxy/44772",
   'a chunked answer in pieces is rewritten');
$up->clear;


# --- the straight road --------------------------------------------------------------

$t->sandbox('s2');
road_is('s2', 'lifecycle', '/sandboxes/s2/proxy/44772/ping',
        'nothing learnt: by the server proxy, in the form sent', '/sandboxes');
road_is('s2', 'lifecycle', '/v1/sandboxes/s2/proxy/44772/ping',
        'also with /v1');

$t->endpoint('s2');

for (1 .. 6) {
    road_is('s2', 'a', '/proxy/44772/ping', 'straight, whatever the worker');
}

($seen) = $up->requests(qr{/ping}, listener => 'a');
my %header = map { lc $_->[0] => $_->[1] } @{ $seen->{headers} };
is($header{host}, $address, 'under the Host that upstream named');

$r = $t->post('/v1/sandboxes/s2/proxy/44772/command',
              body => '{"command":"echo hi"}');
$e = $t->record($r);
is($e->{wire}{route}, 'straight', 'the record says so');
is($e->{wire}{upstream}, $address, 'and whom it reached');

$up->mark;
$t->get('/sandboxes/s2/proxy/44772');
is(($up->requests)[-1]{target}, '/proxy/44772', 'the bare port');
$t->get('/sandboxes/s2/proxy/44772?a=1');
is(($up->requests)[-1]{target}, '/proxy/44772?a=1', 'with a query');

# Each port is an address of its own.

$up->mark;
$t->get('/v1/sandboxes/s2/proxy/18080/policy');
is(($up->requests)[-1]{listener}, 'lifecycle', '18080 was not learnt');
$t->endpoint('s2', 18080);
$t->get('/v1/sandboxes/s2/proxy/18080/policy');
is(($up->requests)[-1]{listener}, 'a', 'now it is');
is(($up->requests)[-1]{target}, '/proxy/18080/policy', 'with its path');
$t->endpoint('s2', 8080);
$t->get('/v1/sandboxes/s2/proxy/8080/x//y?z');
is(($up->requests)[-1]{target}, '/proxy/8080/x//y?z', 'a user port too');

# An ingress: a path, a Host, a routing header.

$t->sandbox('s3', endpoint => '127.0.0.1:' . $up->port('b') . '/s3/%PORT%',
            headers => { 'OpenSandbox-Ingress-To' => 's3-44772' });
$t->endpoint('s3');
$up->mark;
$t->get('/v1/sandboxes/s3/proxy/44772/files/info?path=%2Fa',
        headers => [ 'OpenSandbox-Ingress-To: other-44772',
                     'OPEN-SANDBOX-INGRESS: other-44772' ]);
($seen) = $up->requests;
is($seen->{listener}, 'b', 'an ingress address');
is($seen->{target}, '/s3/44772/files/info?path=%2Fa', 'its path in front');
is_deeply([ map { $_->[1] } grep { $_->[0] =~ /ingress/i }
            @{ $seen->{headers} } ], [ 's3-44772' ],
          'its routing header, and not what the client sent (C020)');

# Answers for the server proxy teach nothing.

$t->sandbox('s4');
($json) = $t->endpoint('s4', 44772, query => '?use_server_proxy=true');
is($json->{endpoint}, "$host/sandboxes/s4/proxy/44772", 'rewritten');
like($json->{headers}{'OPEN-SANDBOX-API-KEY'}, qr/^sbe_/, 'with a token');
road_is('s4', 'lifecycle', '/v1/sandboxes/s4/proxy/44772/ping',
        'use_server_proxy=true teaches nothing');

# Nor do addresses outside the allowed range, names, and the gateway itself.

my $port_a = $up->port('a');

for my $endpoint ("127.0.0.2:$port_a/proxy/44772", "10.1.2.3:$port_a",
                  "elsewhere.example:$port_a", "169.254.169.254:80",
                  "metadata.internal:80", $host, "$host/sandboxes/s5/proxy/44772",
                  "127.0.0.1:0", '127.0.0.1:99999', '127.0.0.1:x',
                  "user\@127.0.0.1:$port_a", "127.0.0.1:$port_a/a b",
                  "127.0.0.1:$port_a/a?b=c", "127.0.0.1:$port_a/a\r\nX: y")
{
    $t->sandbox('s5', endpoint => $endpoint);
    my ($j) = $t->endpoint('s5');
    is($j->{endpoint}, "$host/sandboxes/s5/proxy/44772", "$endpoint: rewritten")
        if $endpoint !~ /[\r\n]/;
    $up->mark;
    $t->get('/v1/sandboxes/s5/proxy/44772/ping');
    my @seen = $up->requests(qr{/ping});
    is_deeply([ map { $_->{listener} } @seen ], [ 'lifecycle' ],
              'and not followed');
    is($seen[0]{target}, '/v1/sandboxes/s5/proxy/44772/ping', 'as it was sent')
        if @seen;
}


# localhost is upstream's own when upstream is on loopback (Docker's default).

$t->sandbox('s6', endpoint => "localhost:$port_a/proxy/%PORT%");
$t->endpoint('s6');
road_is('s6', 'a', '/proxy/44772/ping', 'localhost is loopback');


# --- stale addresses ------------------------------------------------------------------

# A sandbox deleted through us.

$t->sandbox('d1', learn => 1);
road_is('d1', 'a', '/proxy/44772/ping', 'd1 runs');
is($t->delete('/v1/sandboxes/d1')->status, 204, 'd1 is deleted');
road_is('d1', 'lifecycle', '/v1/sandboxes/d1/proxy/44772/ping',
        'its address is forgotten', '/v1', 404);

# Paused and resumed: ports may change.

for my $what (qw(pause resume)) {
    $t->sandbox('d2', execd => 'a', learn => 1);
    road_is('d2', 'a', '/proxy/44772/ping', 'd2 runs');
    is($t->post("/v1/sandboxes/d2/$what", body => '')->status, 202, $what);
    road_is('d2', 'lifecycle', '/v1/sandboxes/d2/proxy/44772/ping',
            "its address is forgotten after $what");
}

# Ended behind our back, its port goes to another: nothing meant for the first
# reaches the second.

$t->sandbox('d3', execd => 'b', learn => 1);
road_is('d3', 'b', '/proxy/44772/ping', 'd3 runs behind b');
$up->forget('d3');
$t->sandbox('d4', execd => 'b', learn => 1);
$up->mark;
$r = $t->post('/v1/sandboxes/d3/proxy/44772/command',
              body => '{"command":"rm -rf /"}');
is($r->status, 404, 'd3 is not found any more');
is(scalar $up->requests(undef, listener => 'b'), 0,
   'and its command did not reach d4');
road_is('d4', 'b', '/proxy/44772/ping', 'd4 has the address now');

# The lifecycle server says 404.

$t->sandbox('d5', learn => 1);
$up->forget('d5');
is($t->get('/v1/sandboxes/d5')->status, 404, 'd5 is gone, as we hear');
road_is('d5', 'lifecycle', '/v1/sandboxes/d5/proxy/44772/ping',
        'its address is forgotten', '/v1', 404);

# Its expiry has passed.

$t->sandbox('d6', learn => 1);
my $soon = SandboxTest::utc(time + 1);
$up->script('GET /v1/sandboxes/d6', FakeUpstream::answer(200,
    { id => 'd6', status => { state => 'Running' }, expiresAt => $soon,
      createdAt => '2026-11-29T09:00:00Z' }));
$t->get('/v1/sandboxes/d6');
$up->clear;
sleep 2.1;
road_is('d6', 'lifecycle', '/v1/sandboxes/d6/proxy/44772/ping',
        'an expired sandbox is not reached straight');

# A failed connect.

$t->sandbox('d7', execd => 'refusing', learn => 1);
$up->mark;
$r = $t->get('/v1/sandboxes/d7/proxy/44772/ping');
is($r->status, 502, 'a dead address: 502');
is($r->code, 'GATEWAY_UPSTREAM_UNAVAILABLE', 'in the envelope');
road_is('d7', 'lifecycle', '/v1/sandboxes/d7/proxy/44772/ping',
        'then it is forgotten');

# Changed by a later answer.

$t->sandbox('d8', execd => 'a', learn => 1);
$t->sandbox('d8', execd => 'b', learn => 1);
road_is('d8', 'b', '/proxy/44772/ping', 'the later answer counts');

$t->stop;


# --- the allowed range -------------------------------------------------------------------

$t = SandboxTest->new(server => 'sandbox_endpoint_allow 127.0.0.8/30;')->start;
$up = $t->up;

$t->sandbox('s1', endpoint => '127.0.0.1:' . $up->port('a') . '/proxy/%PORT%',
            learn => 1);
$up->mark;
$t->get('/v1/sandboxes/s1/proxy/44772/ping');
is(($up->requests)[-1]{listener}, 'lifecycle',
   'sandbox_endpoint_allow replaces the default');

$t->stop;
done_testing;


# One ping for a sandbox: which port it reached, and with which target.

sub road_is {
    my ($id, $listener, $target, $name, $prefix, $status) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $prefix = ($prefix // '/v1') eq '/v1' ? '/v1' : '';

    my $before = () = $up->requests(qr{/ping});
    my $got = $t->get("$prefix/sandboxes/$id/proxy/44772/ping");
    my @seen = $up->requests(qr{/ping});
    splice @seen, 0, $before;

    is_deeply([ map { [ $_->{listener}, $_->{target} ] } @seen ],
              [ [ $listener, $target ] ], $name);
    is($got->status, $status // 200, 'answered');
}
