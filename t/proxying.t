#!/usr/bin/perl

# Field cases of area 1, proxying: each by its id, with all that it asks for.
# Those about raw request lines are in t/rawline.t and t/ambiguous.t, early
# answers in t/upload.t, broken streams in t/stream.t.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use IO::Socket::INET;
use List::Util qw(sum);
use SandboxTest;
use Socket qw(SOCK_NONBLOCK);
use Test::More;
use Time::HiRes qw(sleep time);

my $SCALE = $ENV{T_SCALE} // 1;

# what the shipped configurations say about X-Forwarded-*
my $shipped = SandboxTest::read_file("$SandboxProcess::ROOT/conf/drop-in.conf");
my $forwarded = join "\n",
    $shipped =~ /^\s*(proxy_set_header\s+X-Forwarded-\S+\s+[^;]+;)/mg;

my $t = SandboxTest->new(
    workers => 2,
    location => "$forwarded proxy_connect_timeout 1s;",
    server => 'error_page 404 = /v1/sandboxes/$arg_page;
               error_page 403 = /status/$arg_page;',
    locations => <<'EOF',
location = /missing { return 404; }
location = /v1/sandboxes/virtual {
    sandbox on;
    sandbox_upstream_host upstream;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_set_header Host $sandbox_upstream_host;
    proxy_set_header X-Forwarded-Host $http_host;
}
EOF
)->start;
my $up = $t->up;
$t->sandbox($_) for qw(s1 s2);
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $user = '/v1/sandboxes/s1/proxy/8080';
my ($r, $e, $seen);

sub of_head {
    my ($head, $name) = @_;

    return [ $head =~ /^\Q$name\E:[ \t]*(.*?)\r$/mig ];
}


for my $road ('server proxy', 'straight') {
    $t->endpoint('s1', $_) for $road eq 'straight' ? (44772, 8080) : ();

    # C001: the query as sent; the record has the decoded path
    $up->mark;
    $r = $t->get("$execd/files/download?path=%2Fworkspace%2Fa%20b.txt&x=&x=1");
    like(($up->requests)[0]{target}, qr{\?path=%2Fworkspace%2Fa%20b\.txt&x=&x=1$},
         "C001 $road: the query goes up byte for byte");
    is($t->record($r)->{files}[0]{path}, '/workspace/a b.txt',
       'C001: the record holds the decoded path');
    $e = $t->record($t->get("$execd/files/search?path=/workspace&pattern=*.py"));
    is($e->{files}[0]{path}, '/workspace', 'C001: of a search too');
    is($e->{request}{pattern}, '*.py', 'C001: and its pattern')
        or diag($e->{request_json});

    # C003, both directions
    $up->mark;
    $up->script("GET ${\($road eq 'straight' ? '/proxy/8080' : $user)}/hop",
        [ send => "HTTP/1.1 200 OK\r\nConnection: X-Secret, X-Operation-Id\r\n"
          . "Connection: x-second\r\nX-Secret: 1\r\nX-Second: 2\r\nX-Keep: 3\r\n"
          . "Keep-Alive: timeout=9\r\nTrailer: X-T\r\n"
          . "Proxy-Authenticate: Basic\r\nTransfer-Encoding: chunked\r\n\r\n"
          . "3\r\nabc\r\n0\r\nX-T: trailing\r\n\r\n" ]);
    my $conn = $t->connect;
    $r = $t->get("$user/hop", conn => $conn, headers => [
        'Connection: X-Internal-Trace, X-Actor-Id, OPEN-SANDBOX-API-KEY',
        'X-Internal-Trace: 1', 'TE: trailers', 'Trailer: X-T',
        'Keep-Alive: timeout=5', 'Proxy-Authorization: Basic x',
        'Proxy-Connection: keep-alive', 'X-Actor-Id: agent-1', 'X-Through: 1' ]);
    ($seen) = $up->requests;
    is_deeply(of_head($seen->{head}, $_), [], "C003 $road: no $_ upstream")
        for 'X-Internal-Trace', 'TE', 'Trailer', 'Keep-Alive',
            'Proxy-Authorization', 'Proxy-Connection';
    is_deeply(of_head($seen->{head}, 'X-Through'), [ 1 ], 'C003: others pass');
    is($r->content, 'abc', 'C003: the body is framed rightly');
    is($r->header($_), undef, "C003 $road: no $_ to the client")
        for qw(X-Secret X-Second Trailer Proxy-Authenticate X-T);
    isnt($r->header('Keep-Alive'), 'timeout=9', "C003: nor upstream's Keep-Alive");
    is($r->header('X-Keep'), 3, 'C003: others pass');
    ok($r->header('X-Operation-Id'), 'C003: ours cannot be named away');
    is($t->record($r)->{actor_id}, 'agent-1', 'C003: nor can the actor');
    is($t->get("$user/next", conn => $conn)->status, 200,
       'C003: the connection goes on');
    $up->clear;

    # C004: encoded bodies
    my $gzip = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcbH\xcd\xc9\xc9\x07\x00"
               . "\x86\xa6\x106\x05\x00\x00\x00";
    $up->script("GET ${\($road eq 'straight' ? '/proxy/44772' : $execd)}/files",
        FakeUpstream::answer(200, $gzip, 'Content-Encoding: gzip',
                             'Content-Type: application/octet-stream'));
    $r = $t->get("$execd/files/download?path=/a",
                 headers => [ 'Accept-Encoding: gzip' ]);
    is($r->content, $gzip, "C004 $road: an encoded body byte for byte");
    is($r->header('Content-Encoding'), 'gzip', 'C004: with its encoding');
    is($r->header('Content-Length'), length $gzip, 'C004: and length');
    is($t->record($r)->{wire}{bytes_out}, length $gzip, 'C004: on record');

    # C005: upstream's errors, and ours
    for my $case ([ 409, 'X-A: b' ], [ 416, 'Content-Range: bytes */10' ],
                  [ 503, 'Retry-After: 7' ])
    {
        my ($status, $header) = @$case;
        my $body = '{"code":"X","message":"of theirs"}';
        $up->script("GET ${\($road eq 'straight' ? '/proxy/44772' : $execd)}/files",
            FakeUpstream::answer($status, $body, $header,
                                 'Content-Type: application/json'));
        $r = $t->get("$execd/files/download?path=/a");
        is($r->status, $status, "C005 $road: $status passes");
        is($r->content, $body, 'C005: with its body');
        my ($name, $value) = split /: /, $header;
        is($r->header($name), $value, "C005: and $name");
        $e = $t->record($r);
        is($e->{wire}{upstream_status}, $status, 'C005: upstream refused');
    }

    $up->clear;
    $r = $t->get("$execd/files/../x");
    like($r->code, qr/^GATEWAY_/, 'C005: our own refusal has a code of its own');
    $e = $t->record($r);
    is($e->{wire}{upstream_status}, undef, 'C005: the record says it was us');
    like($e->{wire}{error_code}, qr/^GATEWAY_/, 'C005: and why');

    # C007: the root of a port
    for my $prefix ('/v1', '') {
        for my $form ('', '/', '?x=1', '/?x=1') {
            $up->mark;
            $r = $t->get("$prefix/sandboxes/s1/proxy/8080$form");
            is($r->status, 200, "C007 $road: $prefix ... '$form'");
            like(($up->requests)[0]{target}, qr{/proxy/8080\Q$form\E$},
                 'C007: in the form sent');
            $e = $t->record($r);
            is($e->{in}, 's1', 'C007: recorded for its sandbox');
            is($e->{wire}{path}, '/', 'C007: and for its root');
        }
    }
}


# C006: exactly one of each, appended, never empty

for my $case ([ 'one in small letters', [ 'x-forwarded-proto: https',
                                          'x-forwarded-for: 192.0.2.1' ] ],
              [ 'none', [] ],
              [ 'empty ones', [ 'X-Forwarded-Proto:', 'X-Forwarded-Host:' ] ],
              [ 'HTTP/1.0 without Host', [], version => '1.0', plain => 1 ])
{
    my ($name, $headers, %o) = @$case;
    $up->mark;
    $r = $t->get('/v1/sandboxes', headers => $headers, %o);
    is($r->status, 200, "C006: $name");
    my $head = ($up->requests)[0]{head};
    is_deeply(of_head($head, 'X-Forwarded-Proto'), [ 'http' ], 'C006: one Proto');
    is_deeply(of_head($head, 'X-Forwarded-For'),
              [ (grep { /192/ } @$headers) ? '192.0.2.1, 127.0.0.1'
                                           : '127.0.0.1' ],
              'C006: one For, appended to');
    is(scalar @{ of_head($head, 'X-Forwarded-Host') }, $o{plain} ? 0 : 1,
       'C006: one Host or none');
    unlike($head, qr/^[\w-]+:[ \t]*\r$/m, 'C006: never an empty one');
}


# C010: whatever form leads to an upload is an upload, or refused

for my $target ("$user/../44772/files/upload", "$user/%2e%2e/44772/files/upload",
                "$user/.%2e/44772/files/upload",
                "/v1/sandboxes/s1/proxy/44772//files/upload",
                "$execd/./files/upload", "$execd/files/upload;a=b",
                "http://h$execd/files/upload")
{
    $up->mark;
    $r = $t->post($target, body => 'x');
    like($r->status, qr/^(?:400|421)$/, "C010: refused: $target");
    is(scalar $up->requests, 0, 'C010: and not forwarded');
}


# C012: an internal redirect with a part of the client's choice goes nowhere

for my $page ('../v1/sandboxes', 's2', 's1/proxy/44772/command', '%2e%2e/x') {
    $up->mark;
    $r = $t->get("/missing?page=$page", token => undef);
    is(scalar $up->requests, 0, "C012: page=$page reaches nothing")
        or diag(($up->requests)[0]{head});
    cmp_ok($r->status, '>=', 400, 'C012: it is refused');
}

$up->mark;
$r = $t->get('/v1/sandboxes/nobody?page=s2');
is($r->status, 404, "C012: upstream's 404 is its own");
is(scalar $up->requests, 1, 'C012: and one request');


# C013, C014: refused by nginx before anybody looks, and on record all the same

for my $case ([ 'C013: CL then TE', "Content-Length: 6\r\n"
                . "Transfer-Encoding: chunked\r\n", "0\r\n\r\nG" ],
              [ 'C013: TE then CL', "Transfer-Encoding: chunked\r\n"
                . "Content-Length: 6\r\n", "0\r\n\r\nG" ],
              [ 'C014: two lengths', "Content-Length: 5\r\n"
                . "Content-Length: 50\r\n", 'x' ],
              [ 'C014: a list', "Content-Length: 5, 5\r\n", 'x' ],
              [ 'C014: a sign', "Content-Length: +5\r\n", 'x' ])
{
    my ($name, $lines, $body) = @$case;

    $up->mark;
    my $c = $t->connect;
    $c->write("POST $execd/command HTTP/1.1\r\nHost: localhost\r\n"
              . $t->credential . "\r\n$lines\r\n$body"
              . "GET $execd/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    is($c->response->status, 400, "$name: 400");
    ok($c->closed(3), "$name: and closed");
    is(scalar $up->requests, 0, "$name: nothing goes up");
}

ok($t->wait_for(sub {
    my @first = grep { $_->{wire}{identity} eq 'none'
                       && ($_->{wire}{error_code} // '')
                          eq 'GATEWAY_AMBIGUOUS_REQUEST' }
                $t->history->events('_gateway');
    return sum(0, map { 1 + $t->history->folded('_gateway', $_->{event_id}) }
                  @first) >= 5;
}, 10), 'C013, C014: refused requests are on record');


# C018: Expect: 100-continue and gone

{
    my $n = $SCALE >= 10 ? 4000 : 100;

    for my $i (1 .. $n) {
        my $c = $t->connect;
        $c->write($c->build(POST => "$execd/files/upload", headers => [
            $t->credential, 'Expect: 100-continue', 'Content-Length: 10',
            'Content-Type: multipart/form-data; boundary=B' ]));
        $c->reset;
    }

    is($t->get('/v1/sandboxes')->status, 200, "C018: $n aborted uploads");
    my @open = ('?');
    $t->wait_for(sub {
        @open = grep { $_->{status} eq 'started' } $t->history->events('s1');
        return !@open;
    }, 10);
    is(scalar @open, 0, 'C018: no record stays open');
}


# C020: what a client says does not choose the upstream

for my $case ([ 'X-Sandbox-Pod-IP: 169.254.169.254' ],
              [ 'X-Forwarded-Host: internal', 'X-Forwarded-Port: 1' ],
              [ 'X-Original-URL: /other', 'X-Rewrite-URL: /other' ],
              [ 'OpenSandbox-Ingress-To: s2-44772' ],
              [ 'OPEN-SANDBOX-INGRESS: s2-44772' ])
{
    $up->mark;
    $r = $t->get("$execd/files/info?path=/a", headers => $case);
    ($seen) = $up->requests;
    is($seen->{listener}, 'a', "C020: $case->[0] changes nothing");
    is($t->record($r)->{in}, 's1', 'C020: on record for what it is');
}

unlike($seen->{head}, qr/ingress/i, 'C020: routing headers are stripped');

for my $case ([ 'http://internal/v1/sandboxes', 421 ],
              [ '/v1/sandboxes', 421, 'Host: other' ])
{
    my ($target, $status, @headers) = @$case;
    $up->mark;
    is($t->get($target, headers => \@headers)->status, $status,
       "C020: $target @headers");
    is(scalar $up->requests, 0, 'C020: nothing goes up');
}


# C021: an address that never answers

{
    my $hole = IO::Socket::INET->new(Proto => 'tcp', LocalAddr => '127.0.0.1',
                                     Listen => 1) or die "listen: $!\n";
    my @fill;

    # its queue is full: whoever comes now hears nothing
    for (1 .. 4) {
        my $s = IO::Socket::INET->new(Proto => 'tcp', Blocking => 0,
            PeerAddr => '127.0.0.1', PeerPort => $hole->sockport);
        push @fill, $s if $s;
    }

    $t->sandbox('hole', endpoint => '127.0.0.1:' . $hole->sockport
                                    . '/proxy/%PORT%', learn => 1);
    my $c = $t->connect;
    my $start = time;
    $c->write($c->build(GET => '/v1/sandboxes/hole/proxy/44772/files/info',
                        headers => [ $t->credential ]));
    is($t->get('/v1/sandboxes/s2')->status, 200, 'C021: others are unaffected');
    $r = $c->response;
    like($r->status, qr/^50[24]$/, 'C021: a black hole is given up');
    cmp_ok(time - $start, '>=', 0.9, 'C021: after the limit for connecting');
    is($r->code, 'GATEWAY_UPSTREAM_UNAVAILABLE', 'C021: with our code');
    $e = $t->record($r);
    like($e->{status}, qr/^(?:timeout|failed)$/, 'C021: and the record ends');
}


# C022: Host, by default the client's, or upstream's own name

$t->sandbox('virtual');
$up->mark;
$t->get('/v1/sandboxes/s1', headers => [ 'Host: gateway.test' ]);
is_deeply(of_head(($up->requests)[0]{head}, 'Host'), [ 'gateway.test' ],
          "C022: the client's Host by default");
$up->mark;
$t->get('/v1/sandboxes/virtual', headers => [ 'Host: gateway.test' ]);
my $head = ($up->requests)[0]{head};
is_deeply(of_head($head, 'Host'), [ $up->url =~ s{^http://}{}r ],
          "C022: upstream's own with sandbox_upstream_host upstream");
is_deeply(of_head($head, 'X-Forwarded-Host'), [ 'gateway.test' ],
          "C022: the client's is in X-Forwarded-Host");

{
    my ($ok, $out) = $t->check_conf(location => 'sandbox_upstream_host x;');
    ok(!$ok, 'C022: another value is refused');
    like($out, qr/invalid value "x"/, 'and told');
    ($ok) = $t->check_conf(http => 'sandbox_upstream_host upstream;',
                           location => 'sandbox_upstream_host client;');
    ok($ok, 'C022: it is inherited and set again');
}


# C023: an interrupt sent as soon as the command is known, by another worker

for my $round (1 .. 5 * $SCALE) {
    my $id = sprintf '%032x', $round;
    $up->script('POST /proxy/44772/command', FakeUpstream::stream_head(),
        [ event => FakeUpstream::event('init', text => $id) ], [ pause => 0.1 ],
        [ event => FakeUpstream::event('error', error => {
              ename => 'CommandExecError', evalue => '-1',
              traceback => [ 'signal: terminated' ] }) ], [ chunk => '' ]);
    $t->endpoint('s1', 44772);
    my $c = $t->connect;
    $c->write($c->build(POST => "$execd/command", body => '{"command":"sleep 9"}',
                        headers => [ $t->credential ]));
    my $run = $c->response(head_only => 1);
    $c->fill(time + 5) while $c->{buf} !~ /init/ && !$c->{eof};
    $r = $t->delete("$execd/command?id=$id");
    $e = $t->record($r);
    is($e->{operation_type}, 'command.interrupt', "C023: round $round");
    is($e->{request}{id}, $id, 'C023: the interrupt names the command');
    $c->body($run);
    $e = $t->record($run);
    is($e->{result}{command_id}, $id, 'C023: which the record links')
        or diag($e->{result_json});
    is($e->{status}, 'cancelled', 'C023: as cancelled');
}

$t->stop;
done_testing;
