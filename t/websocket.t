#!/usr/bin/perl

# WebSockets: user ports and execd's terminal.  Frames pass untouched in both
# directions, also those sent in one packet with the handshake; the record has
# sizes, close code and exit code.  A real shell is opened in t/real.t.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use FakeUpstream::Connection;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $t = SandboxTest->new->start;
my $up = $t->up;
$t->sandbox('s1');
my $user = '/v1/sandboxes/s1/proxy/8080/ws';
my $pty = '/v1/sandboxes/s1/proxy/44772/pty/p1/ws';


for my $road ('server proxy', 'straight') {
    $t->endpoint('s1', $_) for $road eq 'straight' ? (44772, 8080) : ();

    # C047: every byte value, empty frames, 48 KB frames; opcode kept
    my $ws = $t->websocket($user);
    is($ws->status, 101, "$road: opened");
    ok($ws->accepted, 'with the right accept value');
    ok($ws->response->header('X-Operation-Id'), 'and an operation id');

    for my $case ([ 1, 'text' ], [ 2, join '', map { chr } 0 .. 255 ], [ 2, '' ],
                  [ 1, '' ], [ 2, 'b' x 49_152 ], [ 2, 'c' x 70_000 ],
                  [ 1, "\xe4\xbd\xa0" ])
    {
        my ($op, $payload) = @$case;
        $ws->send($op, $payload);
        my $f = $ws->recv;
        ok($f && $f->{op} == $op && $f->{payload} eq $payload,
           "C047: opcode $op, " . length($payload) . ' bytes');
    }

    $ws->close_frame(1000, 'bye');
    my ($f) = $ws->recv_until(sub { $_[0]{op} == 8 });
    is(unpack('n', $f->{payload}), 1000, 'the close code crosses');
    ok($ws->conn->closed, 'and the connection ends');

    my $e = $t->record($ws->response);
    is($e->{operation_type}, 'proxy.ws', 'recorded');
    is($e->{status}, 'succeeded', 'succeeded');
    is($e->{wire}{http_status}, 101, 'with its HTTP status');
    cmp_ok($e->{wire}{bytes_in}, '>', 119_000, 'bytes of the client');
    cmp_ok($e->{wire}{bytes_out}, '>', 119_000, 'bytes of the service');
    is($e->{wire}{route}, $road eq 'straight' ? 'straight' : 'server-proxy',
       'by this road');
}

$t->post('/v1/sandboxes/s1/pause', body => '');      # forget the addresses
$t->post('/v1/sandboxes/s1/resume', body => '');

# C043: bytes right behind the handshake, from both sides

$up->script("GET $user",
    [ ws_accept => { with => FakeUpstream::Connection::frame_bytes(
                         1, 'first', {}) } ],
    [ ws_recv => 1 ], [ frame => 1, 'second' ], [ frame => 8, pack 'n', 4000 ]);
my $ws = $t->websocket($user, early => SandboxWs::bytes(1, 'early'));
is($ws->status, 101, 'C043: handshake with bytes behind it');
is($ws->recv->{payload}, 'first', "upstream's first frame arrives");
is(($up->wait_entry('frame'))[-1]{payload}, 'early', "so does the client's");
is($ws->recv->{payload}, 'second', 'and it goes on');
$ws->close;

# C045: a ping between fragments, split at every byte

my $bytes = pack('CC', 0x01, 3) . 'sta' . pack('CC', 0x89, 2) . 'p1'
            . pack('CC', 0x80, 3) . 'tus';
$up->script("GET $user", [ 'ws_accept' ],
    (map { ([ send => $_ ], [ pause => 0.002 ]) } split //, $bytes),
    [ ws_recv => 1 ], [ frame => 8, pack 'n', 1000 ]);
$ws = $t->websocket($user);
my @f = map { $ws->recv } 1 .. 3;
is_deeply([ map { [ @$_{qw(op fin payload)} ] } @f ],
          [ [ 1, 0, 'sta' ], [ 9, 1, 'p1' ], [ 0, 1, 'tus' ] ],
          'C045: a ping between fragments');
$ws->send(10, 'p1');
is(($up->wait_entry('frame', count => 2))[-1]{payload}, 'p1',
   'C048: the pong goes back with its payload');
$ws->close;

# C044: spellings of the handshake; what is no WebSocket is not upgraded

$up->clear;

for my $case ([ 'WebSocket', 'Upgrade' ], [ 'websocket', 'keep-alive, Upgrade' ],
              [ 'websocket', 'upgrade' ], [ 'WEBSOCKET', 'keep-alive, upgrade' ])
{
    my $ws = $t->websocket($user, upgrade => $case->[0], connection => $case->[1]);
    is($ws->status, 101, "C044: Upgrade: $case->[0], Connection: $case->[1]");
    $ws->close_frame;
    $ws->close;
}

$up->mark;
my $r = $t->get('/v1/sandboxes', headers => [ 'Connection: Upgrade, HTTP2-Settings',
    'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__' ]);
is($r->status, 200, 'C044: h2c is no reason');
unlike(($up->requests)[-1]{head}, qr/^Upgrade:/mi, 'and is not passed on');

for my $case ([ 404, 'CONTEXT_NOT_FOUND' ], [ 409, 'ALREADY_CONNECTED' ],
              [ 403, 'X' ], [ 426, 'Y' ])
{
    my ($status, $code) = @$case;
    $up->script("GET $pty", FakeUpstream::answer($status, { code => $code }));
    my $ws = $t->websocket($pty);
    is($ws->status, $status, "C044: upstream refuses with $status");
    is($ws->response->code, $code, 'its body arrives');
    is($t->record($ws->response)->{status}, 'failed', 'failed');
}

# the server proxy refuses by accepting and closing (2.5)

$up->script("GET $pty", [ 'ws_accept' ], [ frame => 8, pack 'n', 1008 ]);
$ws = $t->websocket($pty);
is($ws->status, 101, 'accepted');
is(unpack('n', $ws->recv->{payload}), 1008, 'and closed with 1008');
$ws->close;
my $e = $t->record($ws->response);
is($e->{result}{close_code}, 1008, 'the code is recorded')
    or diag($e->{result_json});
is($e->{status}, 'failed', 'it is no success');

# C050: without a real handshake nothing is opened; refused ones are recorded

$up->clear;
$up->mark;
$r = $t->get("$pty?takeover=1", token => undef);
is($r->status, 401, 'C050: plain GET without a token');
my $bad = $t->websocket("$pty?takeover=1", token => 'nonsense');
is($bad->status, 401, 'C050: handshake with a wrong token');
is(scalar $up->requests, 0, 'upstream is not touched');
$r = $t->get("$pty?takeover=1");
is($t->record($r)->{wire}{http_status}, $r->status, 'a plain GET is recorded');

# C059: compression is not offered to a terminal

$up->mark;
$ws = $t->websocket($pty,
    headers => [ 'Sec-WebSocket-Extensions: permessage-deflate' ]);
unlike($up->wait_request(qr{/ws})->{head}, qr/permessage-deflate/,
       'C059: no compressed frames on a recorded terminal');

# a scripted terminal: what is typed comes back, the exit is recorded

is($ws->recv->{op}, 1, 'connected');
$ws->send(2, "\x00ls\n");
is($ws->recv->{payload}, "\x01ls\n", 'output');
$ws->send(1, '{"type":"resize","cols":80,"rows":24}');
$ws->send(2, "\x00exit 3\n");
@f = $ws->recv_until(sub { $_[0]{op} == 8 });
is($f[-1]{payload}, pack('n', 1000) . 'process exited', 'close code and reason');
$e = $t->record($ws->response);
is($e->{operation_type}, 'pty.open', 'pty.open');
is($e->{result}{exit_code} // $e->{command}{exit_code}, 3, 'its exit code')
    or diag($e->{result_json});
is($e->{status}, 'failed', 'which is not 0');
is($e->{result}{close_code}, 1000, 'and how it was closed');

# C049: taken over

$up->script("GET $pty", [ 'ws_accept' ], [ pause => 0.1 ],
            [ frame => 8, pack('n', 4001) . 'TAKEN_OVER' ]);
$ws = $t->websocket($pty);
is($ws->recv->{payload}, pack('n', 4001) . 'TAKEN_OVER',
   'C049: 4001 and its reason cross');
$ws->close;
is($t->record($ws->response)->{result}{close_code}, 4001, 'and are recorded');

# ends without a close frame

$up->script("GET $pty", [ 'ws_accept' ], [ frame => 2, "\x01x" ], [ 'close' ]);
$ws = $t->websocket($pty);
$ws->recv;
ok($ws->conn->closed, 'upstream breaks off');
$e = $t->record($ws->response);
is($e->{status}, 'unknown', 'unknown');
is($e->{wire}{reason}, 'upstream_cut', 'cut by upstream');

$up->clear;

for my $how (qw(reset close)) {
    $ws = $t->websocket($pty);
    $ws->recv;
    $ws->conn->$how;
    $e = $t->record($ws->response);
    is($e->{status}, 'unknown', "the client breaks off ($how): unknown");
    is($e->{wire}{reason}, 'client_disconnected', 'by the client');
}

# a command interrupted at once: the interrupt finds the command (C023)

my $id = 'd' x 32;
$up->script('POST /v1/sandboxes/s1/proxy/44772/command',
    FakeUpstream::stream_head(),
    [ event => FakeUpstream::event('init', text => $id) ], [ pause => 0.3 ],
    [ event => FakeUpstream::event('error', error => { ename =>
        'CommandExecError', evalue => '-1', traceback => [ 'signal: terminated' ] }) ],
    [ chunk => '' ]);
my $c = $t->connect;
$c->write($c->build(POST => '/v1/sandboxes/s1/proxy/44772/command',
                    body => '{"command":"sleep 9"}', headers => [ $t->credential ]));
my $run = $c->response(head_only => 1);
$r = $t->delete("/v1/sandboxes/s1/proxy/44772/command?id=$id");
is($t->record($r)->{operation_type}, 'command.interrupt', 'C023: the interrupt');
$c->body($run);
is($t->record($run)->{status}, 'cancelled', 'and the command it ended');

$t->stop;
done_testing;
