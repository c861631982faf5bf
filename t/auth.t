#!/usr/bin/perl

# Credentials (design 7): who gets in, what upstream and the sandbox see of
# them, and endpoint tokens.  That none of them is in any log or record is
# tested by stop() in every test.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA qw(sha256_hex);
use SandboxTest;
use Test::More;

my $t = SandboxTest->new(
    http => 'underscores_in_headers on;',
    locations => <<'EOF',
location /v1/open/ {
    satisfy any;
    allow all;
    sandbox on;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
}
location /v1/sandboxes/any {
    satisfy any;
    allow all;
    sandbox on;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_set_header Host $sandbox_upstream_host;
}
location /v1/sandboxes/closed {
    deny all;
    sandbox on;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
}
EOF
)->start;

$t->sandbox($_) for qw(s1 s2 any closed);

my $admin = $t->token;
my $execd = '/v1/sandboxes/s1/proxy/44772';
my @routes = (
    [ GET => '/v1/sandboxes' ],
    [ GET => '/sandboxes/s1' ],
    [ POST => '/v1/sandboxes', body => '{"image":{"uri":"x"}}' ],
    [ DELETE => '/v1/sandboxes/s1' ],
    [ GET => '/v1/sandboxes/s1/endpoints/44772' ],
    [ GET => "$execd/ping" ],
    [ POST => "$execd/command", body => '{"command":"echo hi"}' ],
    [ POST => "$execd/files/upload", body => 'x' ],
    [ GET => '/sandboxes/s1/proxy/18080/policy' ],
    [ GET => '/sandboxes/s1/proxy/8080/' ],
    [ OPTIONS => '/v1/sandboxes', headers => [ 'Origin: http://evil.example',
          'Access-Control-Request-Method: POST' ] ],
    [ GET => '/docs' ],
    [ GET => '/nothing/of/ours' ],
    [ GET => '/v1/open/x' ],
    [ GET => '/v1/sandboxes/any' ],
);

my %wrong = (
    'no token'        => [],
    'nonsense'        => [ 'OPEN-SANDBOX-API-KEY: nonsense' ],
    'empty'           => [ 'OPEN-SANDBOX-API-KEY:' ],
    'wrong secret'    => [ 'OPEN-SANDBOX-API-KEY: sbx_admin_' . 'A' x 43 ],
    'unknown id'      => [ 'OPEN-SANDBOX-API-KEY: sbx_nobody_' . 'A' x 43 ],
    'cut token'       => [ 'OPEN-SANDBOX-API-KEY: ' . substr $admin, 0, -1 ],
    'longer token'    => [ "OPEN-SANDBOX-API-KEY: ${admin}A" ],
    'expired token'   => [ 'OPEN-SANDBOX-API-KEY: ' . $t->token('expired') ],
    'upstream key'    => [ "OPEN-SANDBOX-API-KEY: $t->{api_key}" ],
    'wrong bearer'    => [ 'Authorization: Bearer nonsense' ],
    'token as basic'  => [ "Authorization: Basic $admin" ],
    'other header'    => [ "X-EXECD-ACCESS-TOKEN: $admin" ],
    'underscore twin' => [ "OPEN_SANDBOX_API_KEY: $admin" ],
    'hash of a token' => [ 'OPEN-SANDBOX-API-KEY: ' . sha256_hex($admin) ],
    'forged endpoint' => [ 'OPEN-SANDBOX-API-KEY: sbe_e30.' . 'A' x 43 ],
);

# Every route is closed without a token; nothing of the request goes further.

for my $route (@routes) {
    my ($method, $target, %o) = @$route;
    my $r = $t->request($method, $target, token => undef, %o);

    is($r->status, 401, "$method $target without a token");
    is($r->code, 'GATEWAY_UNAUTHENTICATED', 'and says whose refusal it is');
    ok(defined $r->header('X-Operation-Id'), 'with an operation id');
}

for my $name (sort keys %wrong) {
    for my $target ('/v1/sandboxes', "$execd/ping",
                    '/v1/sandboxes/s1/proxy/8080/')
    {
        my $r = $t->get($target, token => undef, headers => $wrong{$name});
        is($r->status, 401, "$name: $target");
    }
}

for my $name ('no token', 'nonsense', 'upstream key') {
    for my $path ("$execd/pty/p/ws?takeover=1",
                  '/v1/sandboxes/s1/proxy/8080/ws')
    {
        my $ws = $t->websocket($path, token => undef, headers => $wrong{$name});
        is($ws->status, 401, "WebSocket with $name: $path");
    }
}

is(scalar $t->up->requests, 0, 'none of these reached upstream');

# The user's own rules stay in force for who has a token.

my $denied = $t->get('/v1/sandboxes/closed');
is($denied->status, 403, 'deny all is obeyed');
is($denied->code, 'GATEWAY_FORBIDDEN', 'in the envelope');
ok(defined $denied->header('X-Operation-Id'), 'with an operation id');
is($t->get('/v1/sandboxes/closed', token => undef)->status, 403,
   'also without a token');
is($t->get('/v1/sandboxes/any')->status, 200, 'satisfy any with a token');
is(scalar $t->up->requests(qr{/closed}), 0, 'nothing passed deny all');

# Forms that are accepted; the lifecycle server sees its own key and no other.

for my $form ([ "OPEN-SANDBOX-API-KEY: $admin" ],
              [ "open-sandbox-api-key: $admin" ],
              [ "Authorization: Bearer $admin" ],
              [ "authorization: bearer $admin" ],
              [ "OPEN-SANDBOX-API-KEY: $admin", 'Authorization: Bearer x' ],
              [ 'OPEN-SANDBOX-API-KEY: x', "Authorization: Bearer $admin" ])
{
    my $name = join ' + ', map { /^([^:]+: (?:bearer )?)/i } @$form;
    $t->up->mark;
    my $r = $t->get('/v1/sandboxes', token => undef, headers => $form);
    is($r->status, 200, "accepted: $name");

    my ($seen) = $t->up->requests;
    my @keys = map { $_->[1] } grep { lc $_->[0] eq 'open-sandbox-api-key' }
               @{ $seen->{headers} };
    is_deeply(\@keys, [ $t->{api_key} ], 'upstream gets its own key, once');
    unlike($seen->{head}, qr/\Q$admin/, 'and not the token');
}

# Towards a sandbox nothing of ours is left, on either road, whatever header it
# stands in (C138); the sandbox's own credentials pass.

my @dirty = (
    "OPEN-SANDBOX-API-KEY: $admin",
    "Authorization: Bearer $admin",
    "X-EXECD-ACCESS-TOKEN: $admin",
    "X-Custom: $t->{api_key}",
    "Cookie: a=1; t=$admin",
    'OpenSandbox-Secure-Access: sandbox-own-1',
    'OPENSANDBOX-EGRESS-AUTH: sandbox-own-2',
    'X-Plain: stays',
);

$t->secret('sandbox-own-1', 'sandbox-own-2', 'sandbox-own-3');

for my $road ('server proxy', 'straight') {
    $t->endpoint('s1', $_) for $road eq 'straight' ? (44772, 18080, 8080) : ();

    for my $path ('44772/ping', '18080/policy', '8080/echo') {
        $t->up->mark;
        my $r = $t->get("/v1/sandboxes/s1/proxy/$path", token => undef,
                        headers => \@dirty);
        is($r->status, 200, "$road: $path");

        my ($seen) = $t->up->requests;
        unlike($seen->{head}, qr/\Q$admin/, 'no token of ours');
        unlike($seen->{head}, qr/\Q$t->{api_key}/, 'no upstream key');
        like($seen->{head}, qr/^OpenSandbox-Secure-Access: sandbox-own-1\r$/mi,
             'secure access passes');
        like($seen->{head}, qr/^OPENSANDBOX-EGRESS-AUTH: sandbox-own-2\r$/mi,
             'egress token passes');
        like($seen->{head}, qr/^X-Plain: stays\r$/m, 'other headers pass');
    }

    $t->up->mark;
    $t->get("$execd/ping", headers => [ 'X-EXECD-ACCESS-TOKEN: sandbox-own-3' ]);
    my ($seen) = $t->up->requests;
    like($seen->{head}, qr/^X-EXECD-ACCESS-TOKEN: sandbox-own-3\r$/m,
         "$road: execd's own token passes");
    is($seen->{listener}, $road eq 'straight' ? 'a' : 'lifecycle',
       "and it was the $road road");
}

# A WebSocket is no way around either.

$t->up->mark;
my $ws = $t->websocket('/v1/sandboxes/s1/proxy/8080/ws', token => undef,
                       headers => \@dirty);
is($ws->status, 101, 'WebSocket with a token');
my $seen = $t->up->wait_request(qr{/ws});
unlike($seen->{head}, qr/\Q$admin\E|\Q$t->{api_key}/, 'strips it as well');
$ws->close;

# Endpoint tokens: bound to a sandbox, a port, an actor and a credential.

my $answer = $t->endpoint('s1', 44772,
    headers => [ 'X-Actor-Id: agent-7', 'X-Actor-Type: agent' ]);
my $key = $answer->{headers}{'OPEN-SANDBOX-API-KEY'};

like($key, qr/^sbe_/, 'the endpoints answer carries an endpoint token');
is($t->get("$execd/ping", token => $key)->status, 200, 'it opens its port');

my $r = $t->post("$execd/command", token => $key,
                 body => '{"command":"echo hi"}');
my $e = $t->record($r);
is($e->{actor_id}, 'agent-7', 'it acts for the actor who asked');
is($e->{actor_type}, 'agent', 'and its type');
is($e->{wire}{identity}, 'endpoint:admin', 'how that is known is recorded');

$r = $t->post("$execd/command", token => $key, body => '{"command":"echo hi"}',
              headers => [ 'X-Actor-Id: agent-8' ]);
is($t->record($r)->{actor_id}, 'agent-8',
   'tokens issued to who may state actors may state them');

my $plain = $t->endpoint('s1', 44772, token => 'plain')
    ->{headers}{'OPEN-SANDBOX-API-KEY'};
$r = $t->post("$execd/command", token => $plain,
              body => '{"command":"echo hi"}',
              headers => [ 'X-Actor-Id: somebody-else' ]);
is($t->record($r)->{actor_id}, 'plain-agent', 'others may not');

for my $other ('/v1/sandboxes/s2/proxy/44772/ping',
               '/v1/sandboxes/s1/proxy/18080/policy',
               '/v1/sandboxes/s1/proxy/8080/',
               '/v1/sandboxes/s1/proxy/44772/proxy/8080/',
               '/v1/sandboxes/s1', '/v1/sandboxes',
               '/v1/sandboxes/s1/endpoints/44772')
{
    my $status = $t->get($other, token => $key)->status;
    ok($status == 401 || $status == 403, "it does not open $other")
        or diag($status);
}

is($t->get('/v1/sandboxes/s1/proxy/44772/proxy/44772/ping', token => $key)
     ->status, 200, 'the port counts after unwrapping');
my $like = sub {
    my $text = shift;
    return substr($text, 0, -1) . (substr($text, -1) eq 'A' ? 'B' : 'A');
};

is($t->get("$execd/ping", token => $like->($key))->status, 401,
   'a changed one is refused');

# A connection remembers what was right on it, and nothing else.

my $conn = $t->connect;
my $over = sub { $t->get($_[0], token => $_[1], conn => $conn)->status };

is($over->($execd . '/ping', $key), 200, "an endpoint token, request $_")
    for 1 .. 3;
is($over->("$execd/ping", $like->($key)), 401, 'another in its place');
is($over->('/v1/sandboxes', $key), 401, 'it still does not open others');
is($over->('/v1/sandboxes/s2/proxy/44772/ping', $key), 401,
   'nor another sandbox');
is($over->("$execd/ping", $key), 200, 'but its own');

$r = $t->post("$execd/command", token => $key, conn => $conn,
              body => '{"command":"echo hi"}');
is($t->record($r)->{actor_id}, 'agent-7', 'and acts for who asked');

is($over->('/v1/sandboxes', $admin), 200, "a token, request $_") for 1 .. 2;
is($over->('/v1/sandboxes', $like->($admin)), 401, 'another in its place');
is($over->('/v1/sandboxes', substr $admin, 0, -1), 401, 'or a part of it');
is($over->('/v1/sandboxes', undef), 401, 'or none');

is($over->("$execd/ping", $key), 200, 'the endpoint token once more');

# It ends with the credential that asked ...

my $tokens = SandboxTest::read_file($t->{token_file});
my $brief = $t->secret('sbx_brief_' . SandboxTest::random_text(32));

SandboxTest::write_file($t->{token_file}, $tokens =~ s/^plain .*\n//mr
    . 'brief ' . sha256_hex($brief) . ' role=admin expires='
    . SandboxTest::utc(time + 3) . "\n");
$t->reload;
$conn = $t->connect;
is($over->('/v1/sandboxes', $brief), 200, "one that ends soon, $_") for 1 .. 2;
ok($t->wait_for(sub { $over->('/v1/sandboxes', $brief) == 401 }),
   'it ends also on the connection that remembers it');

is($t->get("$execd/ping", token => $plain)->status, 401,
   'revoking the credential revokes it');
is($t->get('/v1/sandboxes', token => 'plain')->status, 401,
   'and the credential itself');
is($t->get("$execd/ping", token => $key)->status, 200, 'others are not hurt');

# ... and with the sandbox.

$conn = $t->connect;
is($over->("$execd/ping", $key), 200, "a connection that knows it, $_") for 1 .. 2;

is($t->delete('/v1/sandboxes/s1')->status, 204, 's1 is deleted');
$t->sandbox('s1');
is($t->get("$execd/ping", token => $key)->status, 401,
   'the endpoint token ended with the sandbox');
is($over->("$execd/ping", $key), 401, 'also where it was known');

# Refusals are on record, without what was presented.  Whoever has no credential
# makes one row, whatever is knocked at; what follows is counted.

my @refused;
ok($t->wait_for(sub {
    @refused = grep {
        ($_->{wire}{error_code} // '') eq 'GATEWAY_UNAUTHENTICATED'
        && $_->{status} ne 'started'
    } $t->history->events('_gateway');

    my $n = @refused;
    $n += $t->history->folded('_gateway', $_->{event_id}) for @refused;
    return $n >= 10;
}), 'refused attempts are recorded');
is_deeply([ grep { $_->{status} ne 'failed' } @refused ], [],
          'as failed');
is(scalar(grep { defined $_->{wire}{sandbox} } @refused), 0,
   'in no history of a sandbox');

$t->stop;

# A credential in the target is refused, one in a header that is recorded is left
# out (C141).  nginx's own logs hold the target, so they are off here.

$t = SandboxTest->new(conf => sub {
    $_[0] =~ s/access_log [^;]*;/access_log off;/r
          =~ s/(error_log [^;]*) info;/$1 crit;/r;
})->start;
$t->sandbox('s1');
$admin = $t->token;

my $encoded = $admin =~ s/^(.)/sprintf '%%%02x', ord $1/er;

for my $target (
    (map { ("/v1/sandboxes?token=$_", "$execd/ping?k=$_", "/v1/sandboxes/$_",
            "/v1/sandboxes/s1/proxy/8080/x/$_") } $admin, $t->{api_key}),
    "/v1/sandboxes/$encoded", "/v1/sandboxes/s1/proxy/8080/x/$encoded")
{
    is($t->get($target)->status, 400, 'C141: a credential in the target');
}

is(scalar $t->up->requests, 0, 'and does not reach upstream');

$r = $t->get('/v1/sandboxes', headers => [ map { "$_: $admin" }
    qw(X-Actor-Id X-Actor-Type X-Thread-Id X-Run-Id X-Parent-Operation-Id
       User-Agent X-Request-ID) ]);
$e = $t->record($r);
is($e->{operation_type}, 'sandbox.list', 'a credential in recorded headers');
unlike($e->{$_} // '', qr/sbx_/, "is not in $_") for qw(actor_id thread_id run_id);

# what is asked of the console API is on record as well

my $api = '/console/api/v1';

for my $target (
    (map { ("$api/export?q=$_", "$api/operations?actor=$_",
            "$api/sandboxes/$_/operations") } $admin, $t->{api_key}),
    "$api/operations/$encoded")
{
    $r = $t->get($target);
    is($r->status, 400, 'C141: a credential in a question');
    is($r->json->{code}, 'GATEWAY_AMBIGUOUS_REQUEST', 'is refused');
}

$r = $t->get("$api/overview", headers => [ map { "$_: $admin" }
                                           qw(X-Actor-Id X-Actor-Type) ]);
is($r->status, 200, 'one who is named like a token may ask');
ok($t->wait_for(sub {
    $r = $t->get("$api/operations?type=console.*&actor=%5Bredacted%5D");
    return @{ $r->json->{items} } > 0;
}), 'and the name is not on record');

$t->stop;
done_testing;
