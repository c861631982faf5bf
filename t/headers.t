#!/usr/bin/perl

# Headers in both directions: what the gateway adds to every response, what it
# keeps from reaching the other side, and who may say who acts (design 4, 7).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;

my $UUID7 = qr/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

my $t = SandboxTest->new(
    http => 'underscores_in_headers on;',
    locations => <<'EOF',
location /secret-file/ {
    internal;
    return 200 "stolen\n";
}
location /v1/sandboxes/conf {
    sandbox on;
    sandbox_actor_id $arg_who;
    sandbox_actor_type service;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_set_header Host $sandbox_upstream_host;
}
location /v1/sandboxes/accel {
    sandbox on;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_set_header Host $sandbox_upstream_host;
}
EOF
)->start;

my $up = $t->up;
$t->sandbox($_) for qw(s1 conf accel);
my $execd = '/v1/sandboxes/s1/proxy/44772';


# --- identity that upstream would believe ----------------------------------------------

$t->get('/v1/sandboxes', headers => [ 'X-OpenSandbox-User: root',
        'X-OpenSandbox-Team: all', 'X-OpenSandbox-Roles: admin',
        'X_OpenSandbox_User: root' ]);
unlike(($up->requests)[-1]{head}, qr/opensandbox.(?:user|team|roles)/i,
       'who a client says it is to OpenSandbox does not pass');


# --- what is on every response -------------------------------------------------------

for my $case ([ 200, '/v1/sandboxes' ], [ 404, '/v1/sandboxes/none' ],
              [ 404, "$execd/nope" ], [ 401, '/v1/sandboxes', token => undef ],
              [ 421, '/v1/sandboxes', headers => [ 'Host: evil.example' ] ],
              [ 400, "$execd/..%2fx" ], [ 200, "$execd/ping" ],
              [ 200, '/v1/sandboxes/s1/proxy/8080/' ])
{
    my ($status, $target, %o) = @$case;
    my $r = $t->get($target, %o);
    is($r->status, $status, "$target: $status");
    like($r->header('X-Operation-Id') // '', $UUID7, 'X-Operation-Id');
    is(scalar $r->headers('X-Operation-Id'), 1, 'once');
    is($r->header('X-Correlation-Id'), $r->header('X-Operation-Id'),
       'X-Correlation-Id is the operation itself when none is given');
}

my $r = $t->get('/v1/sandboxes', headers => [ 'X-Correlation-Id: job-17' ]);
is($r->header('X-Correlation-Id'), 'job-17', 'a given correlation comes back');
my $e = $t->record($r);
is($e->{correlation_id}, 'job-17', 'and is recorded');

$r = $t->get('/v1/sandboxes', headers => [
    'traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' ]);
is($r->header('X-Correlation-Id'), '4bf92f3577b34da6a3ce929d0e0e4736',
   'traceparent fills it when none is given');

$r = $t->get('/v1/sandboxes', headers => [ 'X-Correlation-Id: job-18',
    'traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' ]);
is($r->header('X-Correlation-Id'), 'job-18', 'the header comes first');

$r = $t->get("$execd/ping", headers => [ 'X-Request-ID: req-9' ]);
$up->script("GET $execd/metrics", FakeUpstream::answer(
    200, {}, 'X-Operation-Id: forged', 'X-Correlation-Id: forged'));
$r = $t->get("$execd/metrics");
is_deeply([ grep { $_ eq 'forged' } $r->headers('X-Operation-Id'),
            $r->headers('X-Correlation-Id') ], [],
          'upstream cannot put its own in their place');
$up->clear;


# --- answers of sandboxes are never same-origin with the console -----------------------

my $csp = 'sandbox allow-scripts allow-forms allow-popups';

for my $path ("$execd/ping", '/sandboxes/s1/proxy/8080/page',
              '/v1/sandboxes/s1/proxy/18080/policy')
{
    $up->script("GET $path", FakeUpstream::answer(
        200, '<script>', 'Content-Type: text/html', 'Clear-Site-Data: "*"',
        'Service-Worker-Allowed: /', 'X-Content-Type-Options: none',
        'Content-Security-Policy: default-src *', 'Set-Cookie: theirs=1',
        'Set-Cookie: __Host-sandbox_session=1'));
    $r = $t->get($path);
    ok((grep { $_ eq $csp } $r->headers('Content-Security-Policy')),
       "$path: sandboxed");
    is_deeply([ $r->headers('X-Content-Type-Options') ], [ 'nosniff' ],
              'nosniff');
    is($r->header('Service-Worker-Allowed'), undef,
       'Service-Worker-Allowed is removed');
    is($r->header('Clear-Site-Data'), undef, 'Clear-Site-Data is removed');
    ok((grep { $_ eq 'theirs=1' } $r->headers('Set-Cookie')),
       'cookies of the service pass');
}

$r = $t->get('/v1/sandboxes');
is($r->header('Content-Security-Policy'), undef,
   'lifecycle answers are left alone');
$up->clear;


# --- upstream cannot steer nginx ------------------------------------------------------

# once with the shipped proxy_ignore_headers, once without it
for my $id ('s1', 'accel') {
    my $path = "/v1/sandboxes/$id/proxy/8080/x";
    $up->script("GET $path",
        FakeUpstream::answer(200, 'plain', 'X-Accel-Redirect: /secret-file/x',
            # would slow the answer down where it is not ignored
            $id eq 's1' ? 'X-Accel-Limit-Rate: 1' : (),
            'X-Accel-Expires: 60', 'X-Accel-Charset: koi8-r'));
    $r = $t->get($path);
    unlike($r->content, qr/stolen/, "$id: X-Accel-Redirect is not followed");
    is($r->header('X-Accel-Redirect'), undef, 'nor handed on');
}

is($r->status, 502, 'without proxy_ignore_headers the answer is refused');
is($t->record($r)->{status}, 'failed', 'and recorded as failed');
$up->clear;


# --- hop-by-hop (C003) ------------------------------------------------------------------

$up->mark;
$up->script("GET $execd/metrics", [ send =>
    "HTTP/1.1 200 OK\r\nConnection: X-Secret\r\nX-Secret: 1\r\nX-Keep: 1\r\n"
    . "Content-Length: 2\r\n\r\n{}" ]);
$r = $t->get("$execd/metrics", headers => [
    'Connection: close, X-Internal-Trace, X-Actor-Id, Host',
    'X-Internal-Trace: 1', 'TE: trailers', 'Keep-Alive: timeout=5',
    'Proxy-Authorization: Basic x', 'X-Actor-Id: agent-1', 'X-Through: 1' ]);
my ($seen) = $up->requests;
unlike($seen->{head}, qr/^X-Internal-Trace:/mi,
       'what Connection names does not cross');
unlike($seen->{head}, qr/^Keep-Alive:/mi, 'nor Keep-Alive');
like($seen->{head}, qr/^X-Through: 1\r$/m, 'other headers do');
is(() = $seen->{head} =~ /^Host:/mgi, 1, 'Host cannot be named away');
is($r->header('X-Keep'), 1, 'answer: other headers pass');
is($t->record($r)->{actor_id}, 'agent-1',
   'the actor cannot be taken away by naming it in Connection');
$up->clear;

# each of its names costs a walk through all headers: they have an end

my @names = map { "X-$_" } 1 .. 33;
$up->mark;
is($t->get("$execd/metrics", headers => [ 'Connection: ' . join(', ', @names[0 .. 31]) ])->status,
   200, 'Connection may name 32');
for my $lines ([ join ',', @names ], [ join(' ,', @names[0 .. 16]), join ",\t", @names[17 .. 32] ]) {
    for my $target ("$execd/metrics", '/health') {
        $r = $t->get($target, headers => [ map { "Connection: $_" } @$lines ],
                     $target eq '/health' ? (token => undef) : ());
        is($r->status, 400, "$target: and no more, in " . @$lines . ' headers');
        is($r->json->{message}, 'Connection names more than 32 headers.', 'as the answer says');
    }
}
is(scalar $up->requests, 1, 'none of them went up');

# Encoded bodies pass untouched (C004), upstream errors too (C005).

my $gzip = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcbH\xcd\xc9\xc9\x07\x00"
           . "\x86\xa6\x106\x05\x00\x00\x00";
$up->script("GET $execd/files/download",
            FakeUpstream::answer(200, $gzip, 'Content-Encoding: gzip',
                                 'Content-Type: application/octet-stream'));
$r = $t->get("$execd/files/download?path=/a");
is($r->content, $gzip, 'an encoded body passes byte for byte');
is($r->header('Content-Encoding'), 'gzip', 'with its encoding');
is($r->header('Content-Length'), length $gzip, 'and its length');
$up->clear;

for my $case ([ 409, [ 'X-A: b' ] ], [ 416, [ 'Content-Range: bytes */10' ] ],
              [ 503, [ 'Retry-After: 7' ] ], [ 400, [] ], [ 404, [] ],
              [ 500, [] ])
{
    my ($status, $headers) = @$case;
    my $body = '{"code":"THEIRS","message":"of upstream"}';
    $up->script("POST $execd/files/mv", FakeUpstream::answer(
        $status, $body, 'Content-Type: application/json', @$headers));
    $r = $t->post("$execd/files/mv", body => '[]');
    is($r->status, $status, "upstream's $status passes");
    is($r->content, $body, 'with its body');
    my ($name, $value) = split /: /, $headers->[0] // 'Content-Type: application/json';
    is($r->header($name), $value, "and $name");
    $e = $t->record($r);
    is($e->{status}, 'failed', 'recorded as failed');
    is($e->{wire}{upstream_status}, $status, 'with the status of upstream');
    is($e->{wire}{error_code}, 'THEIRS', 'and its code')
        or diag(explain $e->{wire});
}
$up->clear;


# --- who acts (design 4) ------------------------------------------------------------------

sub actor_of {
    my (%o) = @_;
    my $r = $t->get('/v1/sandboxes', %o);
    my $e = $t->record($r);
    return [ map { $_ // '-' } @$e{qw(actor_type actor_id)},
             $e->{wire}{identity} ];
}

is_deeply(actor_of(), [ 'user', 'tester', 'token:admin' ],
          'without headers the actor of the token stands');
is_deeply(actor_of(headers => [ 'X-Actor-Id: a7' ]),
          [ 'agent', 'a7', 'token:admin+stated' ],
          'an id stated: an agent');
is_deeply(actor_of(headers => [ 'X-Actor-Id: u1', 'X-Actor-Type: user' ]),
          [ 'user', 'u1', 'token:admin+stated' ], 'with its type');
is_deeply(actor_of(headers => [ 'X-Agent-Id: a8' ]),
          [ 'agent', 'a8', 'token:admin+stated' ], 'X-Agent-Id');
is_deeply(actor_of(token => 'plain', headers => [ 'X-Actor-Id: a9',
                                                  'X-Actor-Type: user' ]),
          [ 'agent', 'plain-agent', 'token:plain' ],
          'who may not state an actor does not');

$e = $t->record($t->get('/v1/sandboxes', headers => [
    'X-Actor-Id: a7', 'X-Thread-Id: th-1', 'X-Run-Id: run-2',
    'X-Parent-Operation-Id: 0192f0c1-2a3b-7c4d-8e5f-001122334455',
    'X-Correlation-Id: c-3' ]));
is($e->{thread_id}, 'th-1', 'thread');
is($e->{run_id}, 'run-2', 'run');
is($e->{correlation_id}, 'c-3', 'correlation');
is($e->{wire}{parent}, '0192f0c1-2a3b-7c4d-8e5f-001122334455', 'parent');

# A duplicate identity header is refused.

for my $name ('X-Actor-Id', 'X-Actor-Type', 'X-Agent-Id', 'X-Thread-Id',
              'X-Run-Id', 'X-Correlation-Id', 'X-Parent-Operation-Id')
{
    $up->mark;
    $r = $t->get('/v1/sandboxes', headers => [ "$name: a", "$name: b" ]);
    is($r->status, 400, "two $name");
    is($r->code, 'GATEWAY_AMBIGUOUS_REQUEST', 'cannot be read in one way');
    is(scalar $up->requests, 0, 'and do not pass');
}

# Underscore twins are never taken for them, nor handed on (C140).

$up->mark;
$e = $t->record($t->get('/v1/sandboxes', headers => [
    'X_Actor_Id: twin', 'X-Actor_Id: twin', 'X_Request_Mine: stays' ]));
is($e->{actor_id}, 'tester', 'C140: an underscore twin is not the actor');
unlike(($up->requests)[-1]{head}, qr/twin/, 'and does not reach upstream');
like(($up->requests)[-1]{head}, qr/^X_Request_Mine: stays\r$/m,
     'other underscore headers pass');

# Very long and non-ASCII ids are kept readable and bounded.

$e = $t->record($t->get('/v1/sandboxes', headers => [
    'X-Actor-Id: ' . "\xe4\xbd\xa0" x 2000 ]));
like($e->{actor_id}, qr/^\x{4f60}+$/, 'a long id is cut between characters');
cmp_ok(length $e->{actor_id}, '<', 1000, 'and bounded');

# By configuration.

is_deeply([ @{ $t->record($t->get('/v1/sandboxes/conf?who=cert-cn',
                headers => [ 'X-Actor-Id: stated' ])) }{qw(actor_type actor_id)} ],
          [ 'service', 'cert-cn' ], 'sandbox_actor_id, sandbox_actor_type');

# The address recorded is the peer's (C144).

$e = $t->record($t->get('/v1/sandboxes', headers => [
    'X-Forwarded-For: 1.2.3.4', 'X-Real-IP: 1.2.3.4' ]));
like($e->{wire}{client}, qr/^127\.0\.0\.1/, 'C144: X-Forwarded-For is not believed');

$e = $t->record($t->get('/v1/sandboxes', headers => [
    'User-Agent: OpenSandbox-Python-SDK/0.1.10', 'X-Request-ID: rq-1' ]));
is($e->{source}, 'sdk', 'an SDK is known by its User-Agent');
is($e->{wire}{agent}, 'OpenSandbox-Python-SDK/0.1.10', 'which is recorded');
is($e->{wire}{request_id}, 'rq-1', 'as is X-Request-ID');
is($t->record($t->get('/v1/sandboxes', headers => [ 'User-Agent: curl/8' ]))
     ->{source}, 'gateway', 'others are "gateway"');

# The client does not choose the upstream (C020).

$up->mark;
$t->get('/v1/sandboxes/s1', headers => [ 'X-Sandbox-Pod-IP: 169.254.169.254',
        'X-Forwarded-Host: internal', 'X-Original-URL: /other' ]);
is(($up->requests)[-1]{listener}, 'lifecycle', 'the upstream is ours to choose');

# Nothing of ours leaks into the request that was not there.

$up->mark;
$t->get("$execd/ping", headers => [ 'X-Actor-Id: a7' ]);
($seen) = $up->requests;
is(() = $seen->{head} =~ /^Host:/mgi, 1, 'one Host');
unlike($seen->{head}, qr/^[\w-]+:\s*\r$/m, 'no empty header')
    or diag($seen->{head});

$t->stop;
done_testing;
