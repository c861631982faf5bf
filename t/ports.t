#!/usr/bin/perl

# The listener for user ports: a ticket opens one, used once; a cookie keeps it
# open, for this sandbox and port; each has a name and so an origin of its own.
# What a hostile page does with that in a real browser: t/console/hostile.t.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxPorts;
use SandboxProcess;
use SandboxTest;
use Test::More;

my $SCALE = $ENV{T_SCALE} // 1;
my $LABEL = qr/p[a-z2-7]{25}/;

my $listener = SandboxProcess::free_port();
my $t = SandboxTest->new(workers => 2,
                         http => SandboxPorts::server($listener))->start;
my $up = $t->up;
$t->sandbox($_) for qw(s1 s2);


$t->get("/v1/sandboxes/$_") for qw(s1 s2);    # they exist: histories of their own

# the address

my ($url, $r) = SandboxPorts::ask($t, 's1', 8080);
is($r->status, 200, 'the console API names an address');
like($url, qr{^http://$LABEL\.localhost:$listener/\?sandbox_ticket=
              sbx_port_[\w-]{43}$}x, 'with a name of its own and a ticket');
is($r->header('Cache-Control'), 'no-store', 'which no cache keeps');

my ($again) = SandboxPorts::ask($t, 's1', 8080);
is(host_of($again), host_of($url), 'the name of a port stays');
isnt($again, $url, 'a ticket does not');
isnt(host_of(SandboxPorts::ask($t, 's1', 8081)), host_of($url),
     'another port has another name');
isnt(host_of(SandboxPorts::ask($t, 's2', 8080)), host_of($url),
     'so has another sandbox');

# what is not opened, and by whom

for my $case ([ 44772, 403, 'execd' ], [ 18080, 403, 'egress' ],
              [ 0, 400, 'no port' ], [ 65536, 400, 'no port' ],
              [ 'x', 400, 'no port' ])
{
    my ($port, $status, $what) = @$case;
    is((SandboxPorts::ask($t, 's1', $port))[1]->status, $status,
       "$port is $what");
}

is((SandboxPorts::ask($t, 's1', 8080, token => 'viewer'))[1]->status, 403,
   'a viewer opens none');
is((SandboxPorts::ask($t, 's1', 8080, token => undef))[1]->status, 401,
   'nor does a stranger');

# ticket to cookie

my $p = SandboxPorts->open($t, $listener, 's1', 8080,
    url => "$url&a=b%20c&&d=", headers => [ 'X-Actor-Id: someone' ]);
$r = $p->first;
is($r->status, 303, 'the ticket is exchanged');
is_deeply([ $r->headers('Location') ],
          [ 'http://' . $p->host . '/?a=b%20c&&d=' ],
          'it leaves the address, the rest stays as it was');
like($r->header('Set-Cookie'),
     qr{^sandbox_port=sbe_\S+;\ Path=/;\ Max-Age=28800;\ HttpOnly;\ SameSite=Lax$}x,
     'the cookie');
is($r->header('Cache-Control'), 'no-store', 'no cache keeps it');
is($r->header('Referrer-Policy'), 'no-referrer', 'no other page is told');

my $e = $t->record($r);
is($e->{operation_type}, 'proxy.http', 'the exchange is on record');
is($e->{in}, 's1', "in the sandbox's history");
is($e->{status}, 'succeeded', 'succeeded');
is($e->{actor_id}, 'tester', 'by whom the ticket was made for');
is($e->{wire}{identity}, 'ticket:admin', 'known by it') or diag explain $e;

$up->mark;
$r = $p->get('/x/../y?q=1') for 1;
is($r->status, 400, 'a climbing path is refused');
$r = $p->get('/app/@x//y?q=%41', headers => [ 'Cookie: theirs=1; a=b' ],
             cookie => undef);
is($r->status, 401, 'without the cookie nothing opens');
is(scalar $up->requests, 0, 'none of it came to upstream');

$r = $p->get('/app/@x//y?q=%41', cookie => 'theirs=1;  ' . $p->cookie
             . '; sandbox_session_8080=abc; last=2',
             headers => [ 'X-Actor-Id: forged', 'Authorization: Basic eDp5' ]);
is($r->status, 200, 'with it the port answers');
my ($seen) = $up->requests;
is($seen->{target}, '/v1/sandboxes/s1/proxy/8080/app/@x//y?q=%41',
   'the path as it was');
like($seen->{head}, qr/^Cookie: theirs=1; last=2\r$/m,
     "only the page's own cookies go up");
like($seen->{head}, qr/^Authorization: Basic eDp5\r$/m, 'and its credentials');
unlike($seen->{head}, qr/sbe_|sandbox_port|sandbox_session|ticket/,
       'nothing of ours');
unlike(join(' ', map { $_->[1] } @{ $r->{headers} }), qr/sandbox allow/,
       'a real origin: no sandbox policy');
is_deeply([ $r->headers('Content-Security-Policy') ],
          [ "frame-ancestors 'self'" ], 'but nobody frames it');
is($r->header('Cross-Origin-Opener-Policy'), 'same-origin-allow-popups',
   'nor keeps a handle on it');

$e = $t->record($r);
is($e->{operation_type}, 'proxy.http', 'recorded');
is($e->{in}, 's1', 'in its sandbox');
is($e->{wire}{port}, 8080, 'with its port');
is($e->{actor_id}, 'tester', 'as the actor of the ticket, whatever a page says');
is($e->{actor_type}, 'user', 'and its kind');

# cookies of the page go up byte for byte, however many and short

my $ours = $p->cookie;
my $short = 'a;' x 3000;
for my $case ([ "$ours;$short" => $short =~ s/;\z//r ],
              [ "b;$ours;c;\t d ; sandbox_port;e" => "b;c;\t d;e" ],
              [ "; b=1;;$ours; ;c" => 'b=1; ;c' ])
{
    $up->mark;
    is($p->get('/', cookie => $case->[0])->status, 200, 'ours is found among many');
    my ($cookies) = (($up->requests)[0] // { head => '' })->{head}
        =~ /^Cookie: (.*)\r$/m;
    ok(($cookies // '') eq $case->[1], 'only ours is taken out of them')
        or diag(substr $cookies // 'none', 0, 80);
}

my $q = SandboxPorts->open($t, $listener, 's1', 9090, token => 'plain',
                           headers => [ 'X-Actor-Id: nobody' ]);
is($t->record($q->get('/'))->{actor_id}, 'plain-agent',
   "another's ticket, another actor");

# once, also by many at once in two workers

is($p->get($p->{target}, cookie => undef)->status, 401,
   'a ticket is good once');
is($p->get($p->{target})->status, 303, 'who has the cookie is sent on');

my $race = SandboxPorts::ask($t, 's1', 8080);
my ($target) = $race =~ m{:\d+(/.*)$};
my @c = map { SandboxHttp->connect(port => $listener) } 1 .. 24;
$_->write($_->build(GET => $target, headers => [ 'Host: ' . host_of($race) ]))
    for @c;
my %status;
$status{ $_->response->status }++ for @c;
is_deeply(\%status, { 303 => 1, 401 => 23 }, '24 at once: one of them')
    or diag explain \%status;

# a ticket does not open another's name, and is gone by the attempt

my $one = SandboxPorts::ask($t, 's1', 8080);
($target) = $one =~ m{:\d+(/.*)$};
is($q->get($target, cookie => undef)->status, 401,
   'a ticket at the name of another port');
is($p->get($target, cookie => undef)->status, 401, 'is lost');

is($p->request(POST => '/?sandbox_ticket=x', body => 'a')->status, 400,
   'nothing but GET brings one');

# an open redirect it is not

my $evil = SandboxPorts::ask($t, 's1', 8080);
($target) = $evil =~ /(\?.*)$/;
$r = $p->get("//evil.example/x$target");
is($r->header('Location'), 'http://' . $p->host . '//evil.example/x',
   'the redirect stays here');

$r = $p->get('/?sandbox%5fticket=' . 'sbx_port_' . ('A' x 43), cookie => undef);
is($r->status, 401, 'a name in escapes is read, too');

# all of many are gone from wherever nginx keeps the target

my @many = map { $t->secret('sbx_port_' . substr(SandboxTest::random_text(32) . 'x' x 43, 0, 43)) }
    1 .. 40;
$r = $p->get('/?a=1&' . join('&', map { "sandbox_ticket=$_" } @many) . '&b=2&sandbox_ticket');
is($r->status, 303, 'many of them are read as the first');
is($r->header('Location'), 'http://' . $p->host . '/?a=1&b=2', 'and all leave the address');
my $log = SandboxTest::read_file($t->dir . '/logs/access.log');
like($log, qr{GET /\?a=1&(?:sandbox_ticket=\*+&){40}b=2&sandbox_ticket HTTP/1\.1"},
     'in the log they are stars');

# cookies: of another port, forged, cut

is($p->get('/', cookie => $q->cookie)->status, 401, 'that of another port');
is($q->get('/', cookie => $q->cookie . '; ' . $p->cookie)->status, 200,
   'one right one suffices');
is($q->get('/', cookie => $p->cookie . '; ' . $q->cookie)->status, 200,
   'wherever it stands');

my ($name, $value) = $p->cookie =~ /^(\w+)=(.*)$/;
my $bad = $value;
substr($bad, 30, 1) =~ tr/A-Za-z0-9/B-ZAb-za1-90/;
is($p->get('/', cookie => "$name=$bad")->status, 401, 'one with a letter changed');
is($p->get('/', cookie => "$name=" . substr($value, 0, length($value) - $_))
     ->status, 401, "one without its last $_ bytes") for 1, 44, 60;
is($p->get('/', cookie => "x$name=$value")->status, 401, 'one of another name');
is($p->get('/', cookie => undef, headers => [ $t->credential ])->status, 401,
   'nor does a token of the gateway open it');

my $endpoint = $t->endpoint('s1')->{headers}{'OPEN-SANDBOX-API-KEY'};
is($p->get('/', cookie => "$name=$endpoint")->status, 401,
   'nor an endpoint token');
is($t->get('/v1/sandboxes/s1/proxy/8080/', token => $value)->status, 401,
   'and the cookie is no token elsewhere');
is($t->get('/v1/sandboxes', token => undef,
           headers => [ 'Cookie: ' . $p->cookie ])->status, 401,
   'nor a session');

# nothing but the port

for my $path ('/v1/sandboxes', '/v1/sandboxes/s2/proxy/44772/files/info',
              '/console/api/v1/metrics', '/proxy/44772/command', '/console/')
{
    $up->mark;
    $p->get($path);
    my @to = map { $_->{target} } $up->requests;
    ok(!grep({ $_ ne "/v1/sandboxes/s1/proxy/8080$path" } @to),
       "$path is a path of the port, if anything") or diag("@to");
}

# hosts

for my $host ("127.0.0.1:$listener", "localhost:$listener", 'evil.example',
              'x' . $p->host, 'a.' . $p->host, $p->host =~ s/localhost/evil/r)
{
    is($p->get('/', host => $host)->status, 421, "Host $host is refused");
}

is($p->get('/', host => uc $p->host)->status, 200, 'letter case is none');
is($t->get('/v1/sandboxes', headers => [ 'Host: ' . $p->host ])->status, 421,
   'and the console does not answer to that name');

# the page of who comes without

$r = $p->get('/', cookie => undef, headers => [ 'Accept: text/html,*/*' ]);
is($r->status, 401, 'without a cookie');
like($r->header('Content-Type'), qr{^text/html}, 'people get a page');
like($r->content, qr/Open this port from the console again/,
     'that says what to do');
like($r->header('Content-Security-Policy'), qr/default-src 'none'/,
     'that can do nothing');
$r = $p->get('/', cookie => undef);
is($r->code, 'GATEWAY_UNAUTHENTICATED', 'programs get the envelope');
ok($t->wait_for(sub {
       return grep { $_->{operation_type} eq 'proxy.http'
                     && $_->{status} eq 'failed' }
              $t->history->events('_gateway');
   }), "the gateway's own history has it");

# who sends it

my @from = (
    [ 403, 'a frame of another site', 'Sec-Fetch-Site: cross-site',
      'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: iframe' ],
    [ 403, 'a script of a sibling', 'Sec-Fetch-Site: same-site',
      'Sec-Fetch-Mode: no-cors', 'Sec-Fetch-Dest: script' ],
    [ 403, 'a request of another origin', 'Origin: http://evil.example' ],
    [ 403, 'an opaque origin', 'Origin: null' ],
    [ 403, 'another scheme', 'Origin: https://' . $p->host ],
    [ 403, 'a service worker', 'Service-Worker: script',
      'Sec-Fetch-Site: same-origin' ],
    [ 200, 'a link', 'Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate',
      'Sec-Fetch-Dest: document' ],
    [ 200, 'the address bar', 'Sec-Fetch-Site: none' ],
    [ 200, 'the page itself', 'Sec-Fetch-Site: same-origin',
      'Origin: http://' . uc $p->host ],
);

for (@from) {
    my ($status, $what, @headers) = @$_;
    $up->mark;
    is($p->get('/', headers => \@headers)->status, $status, "C052: $what");
    is(scalar $up->requests, $status == 200 ? 1 : 0,
       $status == 200 ? 'passes' : 'goes nowhere');
}

is($p->request(POST => '/', body => '', headers => [
       'Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate',
       'Sec-Fetch-Dest: document' ])->status, 403, "C052: another site's form");

# WebSockets

$up->mark;

for my $origin ('http://evil.example', 'null', undef,
                'http://' . $q->host)
{
    my $ws = $p->websocket('/ws', origin => $origin);
    is($ws->status, 403, 'C052: a WebSocket of ' . ($origin // 'nobody'));
    is($t->record($ws->response)->{operation_type}, 'proxy.ws',
       'is refused on record');
}

is(scalar $up->requests, 0, 'C052: before upstream is touched');
is($p->websocket('/ws', cookie => undef)->status, 401, 'nor without the cookie');

my $ws = $p->websocket('/ws?x=1');
is($ws->status, 101, 'that of the page is opened');
$ws->send(1, 'hello');
is($ws->recv->{payload}, 'hello', 'and carries');
$ws->close_frame(1000);
$ws->recv;
$e = $t->record($ws->response);
is($e->{operation_type}, 'proxy.ws', 'recorded');
is($e->{actor_id}, 'tester', 'with its actor');
is($e->{in}, 's1', 'in its sandbox');
is($e->{result}{close_code}, 1000, 'and how it was closed');
is(($up->requests(qr/ws/))[-1]{target}, '/v1/sandboxes/s1/proxy/8080/ws?x=1',
   'by the same road');

# C053: the default port is no other origin

my $h = SandboxPorts->open($t, $listener, 's1', 8080);
my $plain = $h->host =~ s/:\d+$//r;
is($h->get('/', host => "$plain:80", headers => [ "Origin: http://$plain" ])
     ->status, 200, 'C053: Host with :80, Origin without');
is($h->get('/', host => $plain, headers => [ "Origin: http://$plain:80" ])
     ->status, 200, 'C053: and the other way round');
is($h->get('/', host => "$plain:81", headers => [ "Origin: http://$plain" ])
     ->status, 403, 'C053: another port is another origin');

# cookies that an answer sets

$up->script('GET /v1/sandboxes/s1/proxy/8080/set', [ send => join "\r\n",
    'HTTP/1.1 200 OK', 'Content-Length: 0', 'Set-Cookie: mine=1; Path=/',
    'Set-Cookie: sandbox_port=x', 'Set-Cookie: __Host-sandbox_port=x; Secure',
    'Set-Cookie: SANDBOX_SESSION_8080=x', 'Set-Cookie: =sandbox_session_8080=x; Path=/',
    'Set-Cookie:  = sandbox_port=x', 'Set-Cookie: wide=1; Domain=localhost',
    'Set-Cookie: wide2=1; path=/; DOMAIN = .localhost',
    'Set-Cookie: text=domain=x', 'Service-Worker-Allowed: /',
    'Content-Security-Policy: default-src *', 'X-Content-Type-Options: nosniff',
    'Cross-Origin-Opener-Policy: same-origin', '', '' ]);
$r = $p->get('/set', cookie => $p->cookie);
is_deeply([ $r->headers('Set-Cookie') ], [ 'mine=1; Path=/', 'text=domain=x' ],
          'neither ours nor for other hosts');
is($r->header('Service-Worker-Allowed'), undef, 'no service worker');
is_deeply([ $r->headers('Content-Security-Policy') ],
          [ 'default-src *', "frame-ancestors 'self'" ],
          'its own policy stays beside ours');
is_deeply([ $r->headers('Cross-Origin-Opener-Policy') ], [ 'same-origin' ],
          'and stands for itself');
is($r->header('X-Content-Type-Options'), 'nosniff', 'as this does');
delete @{ $p->{cookies} }{ grep { $_ ne 'sandbox_port' } keys %{ $p->{cookies} } };

# straight to the sandbox, once its address is known

$t->endpoint('s1', 8080);
$up->mark;
is($p->get('/straight?a=b')->status, 200, 'the straight road');
($seen) = $up->requests;
is($seen->{target}, '/proxy/8080/straight?a=b', 'the same path behind it');
isnt($seen->{listener}, 'lifecycle', 'past the server proxy');

# over a reload

my $before = SandboxPorts::ask($t, 's1', 7070);
$t->reload;
is($p->get('/')->status, 200, 'a cookie outlives a reload');
is(host_of(SandboxPorts::ask($t, 's1', 8080)), $p->host, 'so does the name');
is(SandboxPorts->open($t, $listener, 's1', 7070, url => $before)->first->status,
   303, 'and a ticket');

# it ends with who made it

my $rows = SandboxTest::read_file($t->{token_file});
SandboxTest::write_file($t->{token_file}, $rows =~ s/^plain .*\n//mr);
$t->reload;
is($q->get('/')->status, 401, 'it ends with the credential');
is($p->get('/')->status, 200, 'that of others goes on');
SandboxTest::write_file($t->{token_file},
                        $rows =~ s/^(admin .*)role=admin/$1role=viewer/mr);
$t->reload;
is($p->get('/')->status, 401, 'or when its role no longer allows it');
SandboxTest::write_file($t->{token_file}, $rows);
$t->reload;
is($p->get('/')->status, 200, 'and only so long');

# and with the sandbox

$p = SandboxPorts->open($t, $listener, 's2', 8080);
is($p->get('/')->status, 200, 'a port of another sandbox');
my $late = SandboxPorts::ask($t, 's2', 8080);
$t->delete('/v1/sandboxes/s2');
is($p->get('/')->status, 401, 'it ends with the sandbox');
is(SandboxPorts->open($t, $listener, 's2', 8080, url => $late)->first->status,
   401, 'so does a ticket');
is((SandboxPorts::ask($t, 's2', 8080))[1]->status, 404, 'and no other is made');

SKIP: {
    skip 'a ticket lives for a minute: T_SCALE', 1 if $SCALE < 10;

    my $old = SandboxPorts::ask($t, 's1', 8080);
    sleep 61;
    is(SandboxPorts->open($t, $listener, 's1', 8080, url => $old)->first
         ->status, 401, 'a ticket is over after a minute');
}

$t->stop;


# the bound: the oldest unused ticket makes room

$listener = SandboxProcess::free_port();
$t = SandboxTest->new(http => SandboxPorts::server($listener,
    conf => 'sandbox_port_zone 32k; sandbox_port_lifetime 90m;'))->start;
$t->sandbox('s1');

my @urls = map { scalar SandboxPorts::ask($t, 's1', 8080) } 1 .. 300;
my @open = map { SandboxPorts->open($t, $listener, 's1', 8080, url => $_)
                   ->first->status } @urls;
is($open[-1], 303, 'the zone is full: the newest ticket is good');
is($open[0], 401, 'the oldest was dropped');
my ($first) = grep { $open[$_] == 303 } 0 .. $#open;
cmp_ok(scalar(grep { $_ == 303 } @open), '>=', 20, 'some room there is');
is_deeply([ grep { $open[$_] == 401 } $first .. $#open ], [],
          'none was dropped out of turn');
like(SandboxPorts->open($t, $listener, 's1', 8080)->first->header('Set-Cookie'),
     qr/Max-Age=5400;/, 'sandbox_port_lifetime');
my $metrics = $t->get('/console/api/v1/metrics')->content;
is($metrics =~ /^sandbox_gateway_port_tickets_$_->[0]total (\d+)$/m ? $1 : '',
   $_->[1], "counted: tickets $_->[0]")
    for [ '', 301 ], [ 'dropped_', $first ], [ 'refused_', $first ];
$t->stop;


# names below a domain, TLS in front

$listener = SandboxProcess::free_port();
$t = SandboxTest->new(http => SandboxPorts::server($listener,
    url => 'https://gw.example.com', conf => 'sandbox_port_host *.Ports.Example.com;'))
    ->start;
$t->sandbox('s1');
like($url = SandboxPorts::ask($t, 's1', 8080),
     qr{^https://$LABEL\.ports\.example\.com/\?}, 'sandbox_port_host');
$p = SandboxPorts->open($t, $listener, 's1', 8080, url => $url);
like($p->first->header('Set-Cookie'), qr/^__Host-sandbox_port=sbe_.*; Secure$/,
     'under TLS the cookie is bound to the host');
like($p->first->header('Location'), qr{^https://$LABEL\.ports\.example\.com/$},
     'and the address is https');
is($p->get('/')->status, 200, 'it opens');
is($p->get('/', headers => [ 'Origin: http://' . $p->host ])->status, 403,
   'C053: the scheme counts');
is($p->get('/', headers => [ 'Origin: https://' . $p->host . ':443' ])->status,
   200, 'C053: its default port does not');
unlike(join(' ', $p->get('/')->headers('Content-Security-Policy')), qr/sandbox /,
       'a real origin');
$t->stop;


# no name of its own: an opaque origin

$listener = SandboxProcess::free_port();
$t = SandboxTest->new(http => SandboxPorts::server($listener,
    url => "http://gw.example.com:$listener"))->start;
$t->sandbox('s1');
like($url = SandboxPorts::ask($t, 's1', 8080),
     qr{^http://gw\.example\.com:$listener/\?}, 'without a name of its own');
$p = SandboxPorts->open($t, $listener, 's1', 8080, url => $url);
$r = $p->get('/');
is($r->status, 200, 'it opens');
is_deeply([ $r->headers('Content-Security-Policy') ],
          [ 'sandbox allow-scripts allow-forms allow-popups' ],
          'the sandbox policy stays');
is($p->get('/', host => 'other.example.com')->status, 421, 'on its one name');
my $other = SandboxPorts->open($t, $listener, 's1', 9090);
$up = $t->up;
$up->mark;
$other->get('/z');
is(($up->requests)[0]{target}, '/v1/sandboxes/s1/proxy/9090/z',
   'the cookie says which port');
$t->stop;


# without a listener, and configurations that are refused

$t = SandboxTest->new->start;
is((SandboxPorts::ask($t, 's1', 8080))[1]->status, 501, 'no listener');
like((SandboxPorts::ask($t, 's1', 8080))[1]->content, qr/sandbox_port_listen/,
     'it says what to do');

my @conf = (
    [ 'sandbox_port_listen 127.0.0.1:1;', '', qr/must be the address/ ],
    [ 'sandbox_port_listen http://h/x;', '', qr/must be the address/ ],
    [ 'sandbox_port_listen http://h:0;', '', qr/must be the address/ ],
    [ 'sandbox_port_listen http://h; sandbox_port_listen http://i;', '',
      qr/is duplicate/ ],
    [ '', 'sandbox_port_host *.x.example;', qr/without sandbox_port_listen/ ],
    [ 'sandbox_port_listen http://h;', 'sandbox_port_host x.example;',
      qr/must be \*\.NAME/ ],
    [ 'sandbox_port_listen http://h;', 'sandbox_port_host *.;',
      qr/must be \*\.NAME/ ],
    [ 'sandbox_port_listen http://h;',
      'sandbox_port_host *.' . join('.', ('x' x 60) x 4) . ';',
      qr/must be \*\.NAME/ ],
    [ 'sandbox_port_listen http://h;', 'sandbox_port_lifetime 8d;',
      qr/must be 1m to 7d/ ],
    [ 'sandbox_port_listen http://h;', 'sandbox_port_lifetime 1s;',
      qr/must be 1m to 7d/ ],
    [ 'sandbox_port_listen http://h;', 'sandbox_port_zone 8k;',
      qr/is too small/ ],
    [ 'sandbox_port_listen http://h; sandbox_ingress uri;', '',
      qr/exclude each other/ ],
);

for (@conf) {
    my ($location, $http, $why) = @$_;
    my ($ok, $said) = $t->check_conf(location => $location, http => $http);
    ok(!$ok && $said =~ $why, "refused: $location $http") or diag($said);
}

my ($ok, $said) = $t->check_conf(locations =>
    'location /y/ { sandbox_port_listen http://h; sandbox off; }');
ok(!$ok && $said =~ /needs "sandbox on"/, 'it needs sandbox on') or diag($said);
($ok, $said) = $t->check_conf(server => 'sandbox_port_listen http://[::1]:81;',
    http => 'sandbox_port_lifetime 7d; sandbox_port_zone 1m;');
ok($ok, 'inherited by locations') or diag($said);

$t->stop;
done_testing;


sub host_of { return $_[0] =~ m{^https?://([^/]+)/} ? $1 : '' }
