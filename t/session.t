#!/usr/bin/perl

# Sessions of people: signing in with a token or with a code, the cookie, where
# it counts, and from which pages (console-api.md, "Sessions"; C052, C053, C138).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA qw(sha256_hex);
use SandboxTest;
use Test::More;

my $API = '/console/api/v1';

my $t = SandboxTest->new(workers => 2, locations => <<'END_CONF')->start;
location /v1/sandboxes/peer/ {
    sandbox on;
    sandbox_trusted_peer 127.0.0.0/8;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_set_header Host $sandbox_upstream_host;
}
END_CONF
$t->sandbox($_) for qw(s1 peer);

my $host = '127.0.0.1:' . $t->port;
my $origin = "http://$host";
my $name = 'sandbox_session_' . $t->port;

sub ask {
    my ($method, $target, $cookie, @headers) = @_;
    my $body = $method =~ /POST|PATCH/ ? '{}' : undef;
    ($body, @headers) = @{ $headers[0] } if ref $headers[0];

    return $t->request($method, $target, token => undef,
        headers => [ $cookie ? "Cookie: $name=$cookie" : (), @headers ],
        defined $body ? (body => $body) : ());
}

sub sign_in {
    my ($what, $value, @headers) = @_;
    my $r = ask(POST => "$API/session", undef,
                [ qq({"$what":"$value"}), "Origin: $origin", @headers ]);
    my ($cookie) = ($r->header('Set-Cookie') // '') =~ /=([^;]+)/;
    $t->secret($cookie) if $cookie;

    return ($r, $cookie);
}

# --- in and out

is(ask(GET => "$API/session")->content, '{"actor":null}', 'signed out');

my ($r, $cookie) = sign_in(token => $t->token('plain'));
is($r->status, 200, 'in with a token');
is_deeply($r->json->{actor}, { type => 'console', id => 'plain-agent' }, 'who');
is($r->json->{role}, 'operator', 'and with which role');
like($r->json->{expires_at}, qr/^20\d\d-.*Z$/, 'until when');
like($r->header('Set-Cookie'),
     qr/^$name=sbx_session_[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
     'the cookie');

is_deeply(ask(GET => "$API/session", $cookie)->json->{actor},
          { type => 'console', id => 'plain-agent' }, 'signed in');
is(ask(GET => "$API/overview", $cookie)->status, 200, 'it reads');
is(ask(GET => "$API/overview", join "; $name=", ('x') x 7, $cookie)->status, 200,
   'beside others of its name');
is(ask(GET => "$API/overview", join "; $name=", ('x') x 8, $cookie)->status, 401,
   'but no end of them is looked at');

for my $case ([ '{}' => 400 ], [ '{"token":""}' => 400 ], [ 'x' => 400 ],
              [ '{"token":"a","code":"b"}' => 400 ],
              [ '{"token":"nonsense"}' => 401 ], [ '{"code":"nonsense"}' => 401 ],
              [ '{"token":"' . $t->token('expired') . '"}' => 401 ])
{
    $r = ask(POST => "$API/session", undef, [ $case->[0] ]);
    is($r->status, $case->[1], "POST session $case->[0]");
    is($r->header('Set-Cookie'), undef, 'and no cookie');
}

for my $o ('http://evil.example', 'null', "https://$host",
           'http://127.0.0.1:1', "$origin/", "http://$host.evil.example")
{
    $r = ask(POST => "$API/session", undef,
             [ '{"token":"' . $t->token . '"}', "Origin: $o" ]);
    is($r->status, 403, "nobody signs in from $o");
}

# --- where it counts, and as whom

my $execd = '/v1/sandboxes/s1/proxy/44772';

for my $road ('the server proxy', 'straight') {
    $t->endpoint('s1', $_) for $road eq 'straight' ? (44772, 18080) : ();
    $t->up->mark;

    for my $target ('/v1/sandboxes', "$execd/files/info?path=/a",
                    '/v1/sandboxes/s1/proxy/18080/policy')
    {
        is(ask(GET => $target, "$cookie; other=1")->status, 200,
           "$road: the session opens $target");
    }

    for my $seen ($t->up->requests) {
        unlike($seen->{head}, qr/sandbox_session|\Q$cookie/,
               'C138: no cookie of ours goes up');
        like($seen->{head}, qr/^Cookie: other=1\r$/mi, 'others do');
        is($seen->{head} =~ /\Q$t->{api_key}/ ? 1 : 0,
           $seen->{target} eq '/v1/sandboxes' ? 1 : 0,
           'upstream gets its key, the sandbox does not');
    }
}

$t->up->mark;
is(ask(GET => '/v1/sandboxes/s1/proxy/8080/', $cookie)->status, 401,
   'it opens no user port');
is(ask(GET => '/v1/sandboxes/s1/proxy/44772/proxy/8080/', $cookie)->status, 401,
   'by no detour');
is($t->websocket('/v1/sandboxes/s1/proxy/8080/ws', token => undef, headers =>
   [ "Cookie: $name=$cookie", "Origin: $origin" ])->status, 401, 'nor a socket of one');
is(scalar $t->up->requests, 0, 'nothing of that went up');

$r = ask(POST => "$execd/directories", $cookie, [ '{"/a":{"mode":755}}',
         "Origin: $origin", 'X-Actor-Id: somebody-else', 'X-Actor-Type: agent' ]);
my $e = $t->record($r);
is_deeply([ @{$e}{qw(actor_type actor_id)} ], [ qw(console plain-agent) ],
          'who acts is the session, whatever is stated');
is($e->{wire}{identity}, 'session:plain', 'as such');

$r = ask(GET => '/v1/sandboxes/s1/endpoints/44772', $cookie);
ok(!exists $r->json->{headers}{'OPEN-SANDBOX-API-KEY'},
   'no endpoint token is made of a session');

# --- from which pages

my @bad = ("Origin: http://evil.example", 'Origin: null', "Origin: https://$host",
           'Origin: http://127.0.0.1:9', "Origin: $origin.evil.example",
           "Origin: http://x\@$host");
my $n = 0;
$t->up->mark;

for my $o (@bad) {
    for my $case ([ GET => "$API/overview" ], [ GET => '/v1/sandboxes' ],
                  [ POST => "$execd/directories" ], [ DELETE => "$API/session" ])
    {
        my $r = ask($case->[0], $case->[1], $cookie, $o);
        $n++ if $r->status == 403 && $r->code eq 'GATEWAY_FORBIDDEN';
    }
}

is($n, 4 * @bad, 'C052: another origin is refused, reads too');

for my $case ([ POST => "$execd/directories" ], [ DELETE => '/v1/sandboxes/s1' ],
              [ POST => "$API/sandboxes/s1/verify" ], [ DELETE => "$API/session" ],
              [ GET => "$execd/pty/p/ws" ])
{
    is(ask(@$case, $cookie)->status, 403, "without Origin: $case->[0] $case->[1]");
}

for my $case (map { my $q = $_; map { [ $_, $q ] } 'http://evil.example', undef }
              '', '?takeover=1')
{
    my ($o, $query) = @$case;
    my $ws = $t->websocket("$execd/pty/p/ws$query", token => undef,
        headers => [ "Cookie: $name=$cookie", $o ? "Origin: $o" : () ]);
    is($ws->status, 403, 'C052: no terminal for ' . ($o // 'one without Origin'));
    is($t->record($ws->response)->{wire}{error_code}, 'GATEWAY_FORBIDDEN',
       'C050: it is on record, and nobody is put out') if $query;
}

is(ask(GET => "$API/overview", $cookie, "Origin: $origin", "Origin: $origin")
     ->status, 403, 'two origins are none');
is(scalar $t->up->requests, 0, 'and upstream was not touched');

$r = ask(GET => '/v1/sandboxes', $cookie, 'Origin: http://evil.example');
is($t->record($r)->{wire}{error_code}, 'GATEWAY_FORBIDDEN', 'it is on record');

# what is written in another way is the same (C053)

for my $case ([ 'Localhost', 'http://LOCALHOST', 80 ], [ 'localhost:80', 'http://localhost', 80 ],
              [ 'localhost', 'http://localhost:80', 80 ], [ '[::1]:81', 'HTTP://[::1]:81', 81 ])
{
    my ($h, $o, $port) = @$case;
    $r = $t->request(GET => "$API/overview", token => undef, headers => [ "Host: $h",
        "Origin: $o", "Cookie: sandbox_session_$port=$cookie" ]);
    is($r->status, 200, "C053: Host $h, Origin $o");
}

# forwarded ones count from trusted peers only

my @forwarded = ('X-Forwarded-Host: console.example', 'X-Forwarded-Proto: https');
my $far = "Cookie: __Host-sandbox_session_443=$cookie";

$r = $t->get('/v1/sandboxes/peer/proxy/44772/ping', token => undef,
             headers => [ @forwarded, $far, 'Origin: https://console.example' ]);
is($r->status, 200, 'C053: behind a trusted proxy');
is($t->get('/v1/sandboxes', token => undef, headers => [ @forwarded, $far,
   'Origin: https://console.example' ])->status, 401, 'not behind another one');
is($t->get('/v1/sandboxes/peer/proxy/44772/ping', token => undef,
   headers => [ @forwarded, $far, "Origin: $origin" ])->status, 403,
   'and then its own origin is another');

# what upstream says about other origins is not passed on

$t->up->script('GET /v1/sandboxes/s1', [ send => "HTTP/1.1 200 OK\r\n"
    . "Access-Control-Allow-Origin: *\r\naccess-control-allow-credentials: true\r\n"
    . "Content-Type: application/json\r\nContent-Length: 2\r\nX-Kept: 1\r\n\r\n{}" ]);
$r = ask(GET => '/v1/sandboxes/s1', $cookie);
is($r->header('X-Kept'), 1, 'the answer passes');
is(scalar($r->header("Access-Control-Allow-$_")), undef,
   "without Access-Control-Allow-$_") for qw(Origin Credentials);

# --- codes

sub make_link {
    my $out = qx($SandboxProcess::BUILD/sandbox-gateway link --tokens $t->{token_file} --url $origin/console @_ 2>&1);
    my ($code) = $out =~ m{\A\Q$origin\E/console/#code=(sbe_\S+)\n\z} or diag $out;
    $t->secret($code) if $code;
    return $code;
}

my $code = make_link('--role viewer');
my ($in, $viewer) = sign_in(code => $code);
is($in->status, 200, 'in with a code');
is($in->json->{role}, 'viewer', 'with the role that was asked for');
is((sign_in(code => $code))[0]->status, 401, 'C142: once') for 1 .. 4;
is((sign_in(code => make_link('--role operator')))[0]->json->{role}, 'operator',
   'another role');
is((sign_in(code => make_link()))[0]->json->{role}, 'admin', 'all there is');
is((sign_in(token => make_link()))[0]->status, 401, 'a code is no token');
is($t->get("$execd/ping", token => make_link())->status, 401,
   'nor an endpoint token');
is(ask(POST => "$execd/directories", $viewer, [ '{}', "Origin: $origin" ])
     ->status, 403, 'the role of the session counts');

my $admin = $t->token('admin');
(my $high, my $high_cookie) = sign_in(code => make_link('--role viewer'));
is(ask(DELETE => '/v1/sandboxes/s1', $high_cookie, "Origin: $origin")->status, 403,
   'whatever its token may');

# --- the end

$r = ask(DELETE => "$API/session", $viewer, "Origin: $origin");
is($r->status, 204, 'out');
like($r->header('Set-Cookie'), qr/^$name=; .*Max-Age=0/, 'the cookie goes');
is(ask(GET => "$API/session", $viewer)->content, '{"actor":null}', 'it is over');

my (undef, $second) = sign_in(token => $t->token('plain'));
ask(POST => "$API/session", $second, [ '{"token":"' . $t->token('viewer') . '"}',
    "Origin: $origin" ]);
is(ask(GET => "$API/session", $second)->content, '{"actor":null}',
   'signing in anew ends the session before');

# --- on record

sub recorded {
    return @{ $t->get("$API/operations?$_[0]&order=asc&limit=500")->json->{items} };
}

sub told {
    my $o = shift;

    return join ' ', map { $_ // '-' } @{$o}{ qw(type status) }, $o->{actor}{type}, $o->{actor}{id},
                                      $o->{actor}{identity}, @{$o}{ qw(http_status error_code) };
}

ok($t->wait_for(sub { recorded('type=console.sign_out') == 1 }), 'signing out is on record');
my @record = recorded('type=console.sign_*');
my %told;
$told{ told($_) }++ for @record;

is(told($record[0]), 'console.sign_in succeeded console plain-agent token:plain 200 -',
   'signing in with a token');
ok($told{'console.sign_in succeeded console tester code:admin 200 -'}, 'with a code')
    or diag explain \%told;
ok($told{'console.sign_out succeeded console looker session:viewer 204 -'}, 'and out')
    or diag explain \%told;
ok((grep { /sign_in failed .* none 401 GATEWAY_UNAUTHENTICATED$/ } keys %told), 'in vain')
    or diag explain \%told;
ok((grep { /sign_in failed .* none 403 GATEWAY_FORBIDDEN$/ } keys %told),
   'and by a page of others') or diag explain \%told;
is_deeply([ grep { $_->{sandbox_id} && $_->{sandbox_id} ne '_gateway' } @record ], [],
          'in _gateway');

# (two workers: in any order)
my ($whole) = grep { $_->{result}{role} eq 'viewer' }
              map { $t->get("$API/operations/$_->{id}")->json }
              grep { told($_) =~ / code:/ } @record;
ok($whole, 'with the role of the code') or diag explain [ map { $t->get("$API/operations/$_->{id}")->json->{result} } @record ];
like($whole->{result}{expires_at}, qr/^20\d\d-.*Z$/, 'and the end of the session');
is($whole->{wire}{client}, '127.0.0.1', 'and from where');
is(scalar(grep { $_->{type} =~ /^console/ } recorded('source=console')), 0,
   'lists are without them unless they are asked for');

# who knocks makes no rows

my $rows = recorded("type=console.sign_in");
my $good = recorded("type=console.sign_in&status=succeeded");
sign_in(token => 'sbx_plain_' . SandboxTest::random_text(32)) for 1 .. 5;
sign_in(token => $t->token('plain'));
ok($t->wait_for(sub {
    my @now = recorded('type=console.sign_in');
    return grep({ $_->{status} eq q(succeeded) } @now) > $good;
}), 'a right one after some wrong ones');
cmp_ok(recorded('type=console.sign_in') - $rows, '<=', 2, 'which make no rows');

$t->reload;
is(ask(GET => "$API/session", $cookie)->json->{role}, 'operator',
   'a session survives a reload');

SandboxTest::write_file($t->{token_file}, join '', map {
    /^plain / ? 'plain ' . sha256_hex('x') . " role=admin\n" : $_
} SandboxTest::read_file($t->{token_file}) =~ /^.*\n/mg);
$t->reload;
is(ask(GET => "$API/session", $cookie)->content, '{"actor":null}',
   'it ends with its token, also when one of that name is made anew');
is(ask(GET => '/v1/sandboxes', $cookie)->status, 401, 'everywhere');

$t->stop;
done_testing;
