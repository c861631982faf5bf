#!/usr/bin/perl

# The console API: who may, which route, and the road of answers that the
# helper gives: bounded, flushed piece by piece, never silently cut.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeHelper;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $API = '/console/api/v1';


# --- with a real helper: credentials, roles, routes, health -----------------

{
    my $t = SandboxTest->new->start;

    my $r;
    ok($t->wait_for(sub {
        $r = $t->get("$API/health", token => undef);
        return $r->status == 200;
    }), 'health needs no token');
    is($r->content, '{"status":"ok"}', 'and says nothing else then');
    is($r->header('Cache-Control'), 'no-store', 'it is not kept by caches');
    is($r->header('X-Content-Type-Options'), 'nosniff', 'nor guessed at');
    is($r->header('Content-Type'), 'application/json', 'it is JSON');

    is($t->get("$API/health", token => 'expired')->content, '{"status":"ok"}',
       'a wrong token is as none');

    $r = $t->get("$API/health", token => 'viewer')->json;
    is_deeply([ @{$r}{ qw(status workers) } ], [ 'ok', 1 ], 'with a token: more');
    is($r->{helper}{connected}, JSON::PP::true, 'the helper is connected');
    is($r->{helper}{isolation}, $> == 0 ? 'user' : 'none', 'and who it is');
    is_deeply([ @{ $r->{helper} }{ qw(mode sync version) } ],
              [ qw(provider normal), $r->{version} ], 'and what');
    is($r->{store}{writable}, JSON::PP::true, 'history can be written');
    is($r->{store}{lag_records}, 0, 'nothing waits');
    is_deeply([ @{ $r->{upstream} }{ qw(status http_status) } ], [ 'ok', 200 ],
              'upstream answers');

    for my $how ([ 'Authorization: Bearer ' . $t->token('viewer') ],
                 [ 'authorization: bearer ' . $t->token('viewer') ],
                 [ 'OPEN-SANDBOX-API-KEY: ' . $t->token('viewer') ])
    {
        my ($name) = $how->[0] =~ /^([^:]+)/;
        ok($t->get("$API/health", token => undef, headers => $how)->json->{store},
           "$name is a credential");
    }

    $r = $t->request(HEAD => "$API/health", token => 'viewer');
    is($r->status, 200, 'HEAD is answered');
    ok($r->header('Content-Length') > 100, 'with the length of GET');

    for my $method (qw(POST PUT DELETE)) {
        $r = $t->request($method => "$API/health");
        is($r->status, 405, "$method health is refused");
        is($r->code, 'GATEWAY_METHOD_NOT_ALLOWED', 'in the envelope');
        is($r->header('Allow'), 'GET, HEAD', 'with what is allowed');
    }

    for my $path ('nothing', '', 'healthy', 'health/', 'sandboxes//operations',
                  'health%2f')
    {
        $r = $t->get("$API/$path");
        is($r->status, 404, "there is no \"$path\"");
        is($r->code, 'GATEWAY_NOT_FOUND', 'in the envelope');
        is($r->header('Cache-Control'), 'no-store', 'with the headers');

        $r = $t->get("$API/$path", token => undef);
        is($r->status, 401, 'without a token nobody learns that');
        is($r->code, 'GATEWAY_UNAUTHENTICATED', 'in the envelope');
        is($r->header('WWW-Authenticate'), 'Bearer', 'and how to ask');
    }

    is($t->get("$API/nothing", headers => [ 'Host: evil.example' ],
               plain => 0)->status, 421, 'another Host is refused');
    is($t->get("$API/nothing", headers => [ 'X-Actor-Id: a', 'X-Actor-Id: b' ])
         ->status, 400, 'two actors are refused');

    # an endpoint token opens a sandbox, not the console

    $t->sandbox('s1');
    my $e = $t->get('/v1/sandboxes/s1/endpoints/44772')->json;
    my $key = $e->{headers}{'OPEN-SANDBOX-API-KEY'};
    $t->secret($key);
    is($t->get("$API/nothing", token => $key)->status, 401,
       'an endpoint token is none for the console');

    # bodies

    is($t->post("$API/nothing", body => 'x' x 65536)->status, 404,
       'a body of 64 KiB is read');
    $r = $t->post("$API/nothing", body => 'x' x 65537);
    is($r->status, 413, 'a longer one is refused');
    is($r->code, 'GATEWAY_LIMIT_EXCEEDED', 'in the envelope');
    $r = $t->post("$API/nothing", body => 'x', chunked => 1);
    is($r->status, 411, 'one without a length, too');

    # a helper that is away

    $t->kill_helper;
    ok($t->wait_for(sub { $t->get("$API/health", token => undef)->status == 503 }),
       'without a helper health is 503');
    $r = $t->get("$API/health", token => undef);
    is($r->content, '{"status":"unavailable"}', 'and says so');
    is($t->get("$API/health")->json->{helper}{connected}, JSON::PP::false,
       'and whom it misses');
    $r = $t->get("$API/nothing");
    is($r->status, 503, 'what the helper answers is refused');
    is($r->code, 'GATEWAY_RECORDER_UNAVAILABLE', 'in the envelope');
    is($r->header('Retry-After'), 1, 'for the moment');

    $t->start_helper;
    ok($t->wait_for(sub { $t->get("$API/health", token => undef)->status == 200 }),
       'when it is back, so is health');

    # upstream gone: what is ours still works

    $t->up->stop;
    my $h;
    ok($t->wait_for(sub {
        $h = $t->get("$API/health")->json;
        return $h->{status} eq 'degraded';
    }, 12), 'without upstream health is degraded');
    is($h->{upstream}{status}, 'unreachable', 'and says why');
    is($t->get("$API/health", token => undef)->status, 200,
       'but the gateway works');

    $t->stop;
}


# --- with a scripted helper -------------------------------------------------

my $h2 = SandboxProcess::free_port();
my $t = SandboxTest->new(helper => 0, http => 'sandbox_api_questions 4;',
    server => "listen 127.0.0.1:$h2 http2;",
    api => 'send_timeout 2s;',
    locations => <<'EOF',
location /fast/ {
    sandbox_console_api;
    sandbox_api_timeout 300ms;
}
EOF
);
my $dir = $t->dir;
my $h = FakeHelper->new("$dir/run/helper.sock", "$dir/fake.log")->start;
$t->start;

sub ready {
    my $t = shift;
    return $t->wait_for(sub { $t->get("$API/echo")->status == 200 });
}

ok(ready($t), 'the scripted helper is asked');

# what it is told

my $r = $t->post("$API/echo/201?a=%20b&c", token => 'plain', body => '{"x":1}',
                 headers => [ 'X-Actor-Id: somebody-else' ]);
is($r->status, 201, 'the status is its own');
is($r->header('Content-Length'), length $r->content, 'one piece has a length');
is_deeply($r->json, { METHOD => 'POST', PATH => 'echo/201', QUERY => 'a=%20b&c',
                      DATA => '{"x":1}', ROLE => 'operator', COUNT => 32768,
                      ACTOR_TYPE => 'agent', ACTOR_ID => 'plain-agent',
                      IDENTITY => 'token:plain' }, 'the whole question');
is($t->get("$API/echo", headers => [ 'X-Actor-Id: a1' ])->json->{ACTOR_ID}, 'a1',
   'who may state an actor does');
is($t->get("$API/echo/200/../200")->json->{PATH}, 'echo/200', 'paths are clean');

$r = $t->request(HEAD => "$API/bytes/1000000");
is($r->status, 200, 'HEAD of a long answer');
ok($t->wait_for(sub { $h->lines(qr{^cancel bytes/1000000}) }),
   'cancels what nobody reads');

# a long answer, byte for byte

for my $n (16, 16384, 32768, 32784, 65536, 3_000_000) {
    $r = $t->get("$API/bytes/$n");
    ok($r->complete && $r->content eq FakeHelper::bytes(0, $n),
       "$n bytes come whole and in order");
}

# a piece goes out at once

my $c = $t->connect;
$c->write($c->build(GET => "$API/wait",
                    headers => [ 'Authorization: Bearer ' . $t->token ]));
$r = $c->response(head_only => 1);
ok($t->wait_for(sub { $c->{buf} =~ /first / || ($c->fill(time + 0.1), 0)[1] }),
   'the first piece comes before the second is there');
SandboxTest::write_file("$dir/go", '');
$c->body($r);
is($r->content, 'first second', 'then the rest');

# a client that does not read: two windows, and not a byte more

$c = $t->connect;
setsockopt $c->socket, Socket::SOL_SOCKET(), Socket::SO_RCVBUF(), 4096;
$c->write($c->build(GET => "$API/bytes/64000000",
                    headers => [ 'Authorization: Bearer ' . $t->token ]));
my $sent = sub {
    my $n = 0;
    /^credit bytes\/64000000 (\d+)/ and $n += $1 for $h->lines(qr/^credit/);
    return $n;
};
my ($was, $is) = (-1, 0);
$t->wait_for(sub { ($was, $is) = ($is, $sent->()); sleep 0.3; $was == $is && $is },
             10);
cmp_ok($is, '<', 16_000_000, "the helper was let send $is bytes, and no more");
ok($t->wait_for(sub { $h->lines(qr{^cancel bytes/64000000}) }, 10),
   'after send_timeout the client is given up');
my ($all) = map { /(\d+)$/ } $h->lines(qr{^cancel bytes/64000000});
cmp_ok($all - $is, '<=', 32768, 'one window was on its way');
$c->reset;

# a client that leaves

$c = $t->connect;
$c->write($c->build(GET => "$API/silent/1",
                    headers => [ 'Authorization: Bearer ' . $t->token ]));
ok($t->wait_for(sub { $h->lines(qr{^ask silent/1}) }), 'asked');
$c->close;
ok($t->wait_for(sub { $h->lines(qr{^cancel silent/1 0}) }),
   'who leaves before the answer cancels it');

$c = $t->connect;
$c->write($c->build(GET => "$API/stall/2",
                    headers => [ 'Authorization: Bearer ' . $t->token ]));
$c->response(head_only => 1);
$c->reset;
ok($t->wait_for(sub { $h->lines(qr{^cancel stall/2 4}) }),
   'who leaves in the middle, too');

# an answer that breaks off is never a whole one

for (['cut', 'the helper cancels'], ['leave/1', 'the helper dies'],
     ['greedy', 'the helper sends more than it may'])
{
    my ($path, $what) = @$_;

    ready($t);
    $r = $t->get("$API/$path");
    is($r->status, 200, "$what: the head had been sent");
    ok(!$r->complete, 'the rest is missing');
    is($r->{framing}, 'chunked', 'and the last chunk with it');

    ready($t);
    $r = $t->get("$API/$path", version => '1.0');
    is($r->{error}, 'reset', 'HTTP/1.0 sees a reset');
}

# over HTTP/2, with curl: status, size, and 92 for a stream that was reset

sub h2 {
    my $path = shift;

    my @command = ('curl', '-s', '--http2-prior-knowledge', '-o', '/dev/null',
        '-w', '%{http_version} %{http_code} %{size_download}',
        '-H', '@' . "$dir/etc/header", "http://127.0.0.1:$h2$API/$path");
    ready($t);
    open my $curl, '-|', @command or die "curl: $!\n";
    my $said = join '', <$curl>;
    close $curl;

    return $said . ' ' . ($? >> 8);
}

SandboxTest::write_file("$dir/etc/header", $t->credential . "\n");
is(h2('bytes/300000'), '2 200 300000 0', 'HTTP/2: a long answer');
is(h2('no'), '2 503 ' . length($t->get("$API/no")->content) . ' 0',
   'HTTP/2: none is 503');
like(h2($_), qr/ 92$/, "HTTP/2: $_ resets the stream") for 'cut', 'leave/1';

for (['no', 'the helper cancels'], ['leave', 'the helper dies'],
     ['bad', 'the helper answers nonsense'])
{
    my ($path, $what) = @$_;

    ready($t);
    $r = $t->get("$API/$path");
    is($r->status, 503, "$what before its answer: 503");
    is($r->code, 'GATEWAY_RECORDER_UNAVAILABLE', 'in the envelope');
}

# time-outs

ready($t);
my $began = time;
$r = $t->get('/fast/silent');
is($r->status, 503, 'a helper that says nothing');
like($r->json->{message}, qr/in time/, 'is not waited for');
ok(!$t->get('/fast/stall')->complete, 'nor one that stops in the middle');
cmp_ok(time - $began, '<', 10, 'sandbox_api_timeout counts');
ok($t->wait_for(sub { $h->lines(qr{^cancel stall 4}) }), 'and is told');

# the bound of questions

my @c = map {
    my $c = $t->connect;
    $c->write($c->build(GET => "$API/silent/many",
                        headers => [ 'Authorization: Bearer ' . $t->token ]));
    $c;
} 1 .. 4;
ok($t->wait_for(sub { $h->lines(qr{^ask silent/many}) == 4 }),
   'sandbox_api_questions are open');
$r = $t->get("$API/echo");
is($r->status, 503, 'one more is refused');
is($r->code, 'GATEWAY_OVERLOADED', 'in the envelope');
is($t->get("$API/health", token => undef)->status, 503,
   'health cannot be asked for, and does not say "ok"');
$_->close for @c;
ok(ready($t), 'when they are gone there is room again');

# a reload: what has begun is finished, a live stream ends well

$c = $t->connect;
$c->write($c->build(GET => "$API/live",
                    headers => [ 'Authorization: Bearer ' . $t->token ]));
my $live = $c->response(head_only => 1);
is($live->header('Content-Type'), 'text/event-stream', 'a live stream');
ok($t->wait_for(sub { $c->fill(time + 0.2); $c->{buf} =~ /data: 3/ }),
   'its events come as they happen');

unlink "$dir/go";
my $w = $t->connect;
$w->write($w->build(GET => "$API/wait",
                    headers => [ 'Authorization: Bearer ' . $t->token ]));
my $waiting = $w->response(head_only => 1);

kill 'HUP', $t->{nginx_pid};
$c->body($live);
ok($live->complete, 'it ends with a last chunk at a reload');
ok($t->wait_for(sub { $h->lines(qr{^cancel live}) }), 'the helper is told');
ok(ready($t), 'the new worker asks');
SandboxTest::write_file("$dir/go", '');
$w->body($waiting);
ok($waiting->complete && $waiting->content eq 'first second',
   'an answer in progress is finished by the old one');

$t->stop;
$h->stop;

done_testing;
