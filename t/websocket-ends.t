#!/usr/bin/perl

# WebSockets at their edges: TLS on either side, large frames and slow readers,
# ends of every kind, reload and stop, handshakes that are none.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use FindBin;
use IO::Handle;
use Socket;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use FakeUpstream::Connection;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $SCALE = $ENV{T_SCALE} // 1;

my $proxied = 'proxy_http_version 1.1; proxy_set_header Host $sandbox_upstream_host;'
    . ' proxy_set_header Connection $sandbox_connection;'
    . ' proxy_set_header Upgrade $http_upgrade;';
my ($tls, $h2, $up_tls) = map { SandboxProcess::free_port() } 1 .. 3;
my $t = SandboxTest->new(
    http   => \&tls_upstream,
    server => "listen 127.0.0.1:$tls ssl; listen 127.0.0.1:$h2 http2;",
    locations => <<"END_LOCATION");
        location /v1/sandboxes/tls/ {
            sandbox on;
            sandbox_upstream https://127.0.0.1:$up_tls;
            proxy_pass https://127.0.0.1:$up_tls\$sandbox_upstream_uri;
            $proxied
            proxy_buffering off;
        }
        location /v1/sandboxes/quiet/ {
            sandbox on;
            proxy_pass http://opensandbox\$sandbox_upstream_uri;
            $proxied
            proxy_read_timeout 1s;
        }
END_LOCATION

my $certificate = certificate($t->dir . '/etc');
$t->start;

my $up = $t->up;
$t->sandbox($_) for qw(s1 tls quiet);
my $user = '/v1/sandboxes/s1/proxy/8080/ws';
my $pty = '/v1/sandboxes/s1/proxy/44772/pty/p1/ws';


# --- TLS: of the client, towards upstream, both

for my $case ([ 'the client', 's1', 1 ], [ 'upstream', 'tls', 0 ],
              [ 'both', 'tls', 1 ])
{
    my ($who, $id, $secure) = @$case;
    my $target = "/v1/sandboxes/$id/proxy/8080/ws";

    $up->script("GET $target",
        [ ws_accept => { with => FakeUpstream::Connection::frame_bytes(
                             1, 'first', {}) } ],
        [ ws_recv => 1 ], [ frame => 1, 'second' ], [ 'ws_echo' ]);

    my $ws = SandboxWs->open(target => $target, conn => $secure ? secure() : $t->connect,
        headers => [ $t->credential ],
        early => SandboxWs::bytes(1, 'early'));
    is($ws->status, 101, "TLS of $who: opened");
    is($ws->recv->{payload}, 'first', 'C043: what came with the 101');
    is($ws->recv->{payload}, 'second', 'C043: and what was sent with the handshake');

    my $payload = join '', map { pack 'N', $_ * 2654435761 % 2 ** 32 } 1 .. 75_000;
    $ws->send(2, $payload);
    my $f = $ws->recv(15);
    ok($f && $f->{payload} eq $payload, 'a frame of 300 KB there and back');

    $ws->close_frame(1000, 'bye');
    is(unpack('n', ($ws->recv_until(sub { $_[0]{op} == 8 }))[-1]{payload}), 1000,
       'the close code crosses');

    my $e = $t->record($ws->response);
    is($e->{result}{close_code}, 1000, 'and is recorded');
    is($e->{status}, 'succeeded', 'succeeded');
    cmp_ok($e->{wire}{$_}, '>', 300_000, $_) for qw(bytes_in bytes_out);
    $up->clear;
}


# --- sizes are those of the wire, to the byte, and the time that it took

$up->script("GET $user", [ ws_accept => { with =>
    FakeUpstream::Connection::frame_bytes(2, 'x' x 1000, {}) } ],
    [ ws_recv => 3 ], [ pause => 0.3 ], [ frame => 8, pack 'n', 1001 ]);
my $ws = $t->websocket($user, early => SandboxWs::bytes(2, 'y' x 100));
$ws->recv;
$ws->send(9, 'ping');
$ws->send(1, 'z' x 10, fin => 0);
$ws->recv_until(sub { $_[0]{op} == 8 });
$ws->close;
my $e = $t->record($ws->response);
is($e->{wire}{bytes_in}, 106 + 10 + 16, 'bytes of the client');
is($e->{wire}{bytes_out}, 1004 + 4, 'bytes of the service');
cmp_ok($e->{duration_ms}, '>=', 300, 'the time until its end');
cmp_ok($e->{duration_ms}, '<', 15_000, 'and no more');
is($e->{result}{close_code}, 1001, 'going away');
is($e->{status}, 'succeeded', 'is no failure');


# --- C058: who does not read holds the sender up, not the gateway's memory

my $size = (8 + 24 * ($SCALE > 1)) << 20;
my $frame = FakeUpstream::Connection::frame_bytes(2, 'f' x 65_536, {});
my $count = $size / 65_536;
$up->script("GET $user", [ 'ws_accept' ], [ repeat => $count, [ send => $frame ] ],
            [ frame => 8, pack 'n', 1000 ]);

my ($worker) = $t->worker_pids;
my $before = rss($worker);
$ws = $t->websocket($user);
sleep 1;                                     # as long as it takes to misbehave
cmp_ok(rss($worker) - $before, '<', 4096,
       'C058: the worker keeps little of what nobody reads (KB)');

my ($digest, $n) = (Digest::SHA->new(256), 0);
my @f = $ws->recv_until(sub {
    return 1 if $_[0]{op} == 8;
    $digest->add($_[0]{payload});
    $n += length $_[0]{payload};
    $_[0]{payload} = '';
    return 0;
}, 60);
is($n, $size, 'C058: all of it arrives in the end');
is($digest->hexdigest, sha256_hex('f' x $size), 'C058: as it was');
$ws->close;
cmp_ok($t->record($ws->response)->{wire}{bytes_out}, '>', $size, 'and is counted');
$up->clear;


# --- C046: a character cut between frames, and bytes that are none

my @pieces = ("\x01ab\xe4", "\x01\xbd\xa0c", "\x01\xff\xfe", "\x02\xc3");
$up->script("GET $pty", [ 'ws_accept' ], (map { [ frame => 2, $_ ] } @pieces),
            [ frame => 8, pack 'n', 1000 ]);
$ws = $t->websocket($pty);
is_deeply([ map { $ws->recv->{payload} } @pieces ], \@pieces,
          'C046: every byte of a terminal, in its frame');
$ws->close;
$t->record($ws->response);
$up->clear;


# --- C048: pings and pongs both ways, with what they carry

$up->script("GET $pty", [ 'ws_accept' ], [ frame => 9, 'abc' ], [ ws_recv => 2 ],
            [ frame => 10, 'mine' ], [ frame => 8, pack 'n', 1000 ]);
$ws = $t->websocket($pty);
is($ws->recv->{payload}, 'abc', 'C048: a ping comes through');
$ws->send(10, 'abc');
$ws->send(9, 'mine');
@f = $ws->recv_until(sub { $_[0]{op} == 8 });
is("$f[0]{op} $f[0]{payload}", '10 mine', 'C048: the pong of the other end, too');
$ws->close;
$t->record($ws->response);
$up->clear;

# nothing but pings for longer than nginx waits here; they keep it, while without them ...

my $quiet = $pty =~ s/s1/quiet/r;
my $pings = $SCALE >= 10 ? 60 : 5;
$up->script("GET $quiet", [ 'ws_accept' ],
            (map { ([ pause => 0.5 ], [ frame => 9, "n$_" ], [ ws_recv => 1 ]) } 1 .. $pings),
            [ frame => 8, pack 'n', 1000 ]);
$ws = $t->websocket($quiet);
for (1 .. $pings) {
    my $f = $ws->recv;
    last if !$f || $f->{op} != 9;
    $ws->send(10, $f->{payload});
}
is(unpack('n', $ws->recv->{payload}), 1000, 'C048: pings keep a terminal that is silent');
is($t->record($ws->response)->{status}, 'succeeded', 'C048: until it ends by itself');
$ws->close;
$up->script("GET $quiet", [ 'ws_accept' ], [ 'hang' ]);
$ws = $t->websocket($quiet);
is($t->record($ws->response)->{wire}{reason}, 'upstream_timeout', '... it is cut');
$ws->close;
$up->clear;


# --- C049: taken over by somebody else

$up->script("GET $pty?takeover=1", [ 'ws_accept' ], [ ws_recv => 1 ],
            [ frame => 8, pack 'n', 1000 ]);
$up->script(qr{/pty/p1/ws$}, [ 'ws_accept' ], [ ws_recv => 1 ],
            [ frame => 8, pack('n', 4001) . 'TAKEN_OVER' ]);
my $first = $t->websocket($pty, headers => [ 'X-Actor-Id: one' ]);
my $second = $t->websocket("$pty?takeover=1", headers => [ 'X-Actor-Id: two' ]);
is($second->status, 101, 'C049: the second is in');
$first->send(2, "\0");
is(($first->recv_until(sub { $_[0]{op} == 8 }))[-1]{payload},
   pack('n', 4001) . 'TAKEN_OVER', 'C049: the first is told');
$second->send(2, "\0");
$second->recv_until(sub { $_[0]{op} == 8 });
$_->close for $first, $second;
my ($one, $two) = map { $t->record($_->response) } $first, $second;
is("$one->{actor_id} $one->{status} $one->{wire}{reason}",
   'one cancelled taken_over', 'C049: who lost it');
is("$two->{actor_id} $two->{status}", 'two succeeded', 'C049: who has it');
ok($one->{completed_at}, 'C049: and when');
$up->clear;


# --- C050: what is no handshake takes nothing over

my $good = 'A' x 22 . '==';
my @bad = (
    [ 'no upgrade at all' ],
    [ 'no Connection', 'Upgrade: websocket', "Sec-WebSocket-Key: $good",
      'Sec-WebSocket-Version: 13' ],
    [ 'no key', 'Upgrade: websocket', 'Connection: Upgrade',
      'Sec-WebSocket-Version: 13' ],
    [ 'a short key', 'Upgrade: websocket', 'Connection: Upgrade',
      'Sec-WebSocket-Key: abc', 'Sec-WebSocket-Version: 13' ],
    [ 'a key of no base64', 'Upgrade: websocket', 'Connection: Upgrade',
      'Sec-WebSocket-Key: ' . '*' x 24, 'Sec-WebSocket-Version: 13' ],
    [ 'two keys', 'Upgrade: websocket', 'Connection: Upgrade',
      "Sec-WebSocket-Key: $good", "Sec-WebSocket-Key: $good",
      'Sec-WebSocket-Version: 13' ],
    [ 'no version', 'Upgrade: websocket', 'Connection: Upgrade',
      "Sec-WebSocket-Key: $good" ],
    [ 'another version', 'Upgrade: websocket', 'Connection: Upgrade',
      "Sec-WebSocket-Key: $good", 'Sec-WebSocket-Version: 8' ],
);

for my $query ('takeover=1', 'since=0&take%6fver=true', 'takeover') {
    for (@bad) {
        my ($what, @headers) = @$_;
        $up->mark;
        my $r = $t->get("$pty?$query", headers => \@headers);
        is($r->status, 400, "C050: $query with $what");
        is(scalar $up->requests, 0, 'C050: the holder is untouched');
    }
}

my $r = $t->get("$pty?takeover=1");
is($r->code, 'GATEWAY_AMBIGUOUS_REQUEST', 'C050: by us');
is($t->record($r)->{operation_type}, 'pty.open', 'C050: on record');
$r = $t->get("$pty?takeover=1", token => undef,
             headers => [ 'Upgrade: websocket', 'Connection: Upgrade' ]);
is($r->status, 401, 'C050: strangers learn no more than that');
$up->mark;
$r = $t->get($pty);
is(scalar $up->requests, 1, 'without takeover it is for execd to say no');

$ws = $t->websocket("$pty?takeover=1", connection => 'keep-alive, UPGRADE');
is($ws->status, 101, 'C050: a right one passes');
$ws->close;


# --- C044: the letter case of names, and HTTP/1.0

my $c = $t->connect;
$c->write("GET $user HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\n"
          . "connection: upgrade\r\nsec-websocket-key: $good\r\n"
          . 'sec-websocket-version: 13' . "\r\n" . lc((split /:/, $t->credential)[0])
          . ':' . (split /:/, $t->credential)[1] . "\r\n\r\n");
is($c->response->status, 101, 'C044: names in lower case');
$c->close;

$up->mark;
$r = $t->get($user, version => '1.0', headers => [ 'Upgrade: websocket',
    'Connection: Upgrade', "Sec-WebSocket-Key: $good", 'Sec-WebSocket-Version: 13' ]);
isnt($r->status, 101, 'C044: HTTP/1.0 has no WebSocket');
isnt($r->status, 0, 'C044: and gets an answer');
is($t->record($r)->{wire}{http_status}, $r->status, 'C044: on record');


# --- not over HTTP/2

$up->mark;
my $body = h2_get($user, 'upgrade: websocket', "sec-websocket-key: $good",
                  'sec-websocket-version: 13', lc((split /:/, $t->credential)[0])
                  . ':' . (split /:/, $t->credential)[1]);
is(scalar $up->requests, 0, 'HTTP/2: upstream is not touched');

if ($body =~ /^<html>.*400 Bad Request/s) {
    # later ones of nginx know by themselves that HTTP/2 has no Upgrade header
    pass('nginx refuses it');

} else {
    like($body, qr/"GATEWAY_UNSUPPORTED"/, 'refused');
    my ($id) = $body =~ /"operation_id":"([^"]+)"/;
    $e = $t->record($id);
    is("$e->{operation_type} $e->{wire}{http_status}", 'proxy.ws 501', 'on record');
}

like(h2_get($user, lc((split /:/, $t->credential)[0]) . ':'
            . (split /:/, $t->credential)[1]), qr/"target"/, 'what is none passes');


# --- ends without a close frame, on each side and of each kind

for my $case ([ 'upstream resets', 'upstream_cut', [ 'reset' ] ],
              [ 'upstream closes', 'upstream_cut', [ 'close' ] ],
              [ 'upstream closes in a frame', 'upstream_cut',
                [ send => "\x82\x7e\x10\x00abc" ], [ 'close' ] ])
{
    my ($what, $reason, @steps) = @$case;
    $up->script("GET $user", [ 'ws_accept' ], [ frame => 1, 'x' ],
                [ ws_recv => 1 ], @steps);
    $ws = $t->websocket($user);
    $ws->recv;
    $ws->send(1, 'go');
    ok($ws->conn->closed, "$what: the client is told");
    $e = $t->record($ws->response);
    is("$e->{status} $e->{wire}{reason}", "unknown $reason", 'and the record');
    ok(!$e->{result}{close_code}, 'no close code is made up');
}

$up->script("GET $user", [ 'ws_accept' ], [ frame => 1, 'x' ], [ 'hang' ]);

for my $how (qw(reset close)) {
    $ws = $t->websocket($user);
    $ws->recv;
    $ws->conn->write("\x82\xfe\x10");                 # half a frame's head
    $up->mark;
    my $gone = time;
    $ws->conn->$how;
    $e = $t->record($ws->response);
    is("$e->{status} $e->{wire}{reason}", 'unknown client_disconnected',
       "the client leaves in a frame ($how)");
    cmp_ok(time - $gone, '<', 5, 'which is seen at once');
}

$up->clear;


# --- a helper that is away takes nothing from an open terminal

$ws = $t->websocket($user);
$t->kill_helper;
$ws->send(1, 'still');
is($ws->recv->{payload}, 'still', 'the helper is gone, the WebSocket is not');
$t->start_helper;
$ws->close_frame(1000);
$ws->recv;
is($t->record($ws->response)->{result}{close_code}, 1000,
   'and its end is recorded by the next one');


# --- a reload leaves it; the end of the gateway is an end

my @open = map { $t->websocket($user) } 1 .. 4;
$t->reload;

for (@open) {
    $_->send(1, 'after');
    is($_->recv->{payload}, 'after', 'open over a reload');
}

$_->close_frame(1000), $_->recv for @open[0, 1];
is($t->record($_->response)->{status}, 'succeeded', 'and ended well')
    for @open[0, 1];

$_->close for @open[2, 3];
is($t->record($_->response)->{wire}{reason}, 'client_disconnected',
   'or by the client') for @open[2, 3];

$t->stop;
done_testing;


# --- helpers

sub rss {
    my ($kb) = SandboxTest::read_file("/proc/$_[0]/status") =~ /^VmRSS:\s+(\d+)/m;
    return $kb;
}


sub certificate {
    my $dir = shift;

    system('openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
           . " -days 2 -subj /CN=localhost -keyout $dir/tls.key -out $dir/tls.crt"
           . " >$dir/openssl.log 2>&1") == 0
        or die SandboxTest::read_file("$dir/openssl.log");
    chmod 0644, "$dir/tls.key";

    return "$dir/tls.crt";
}


# The scripted upstream once more, behind TLS.

sub tls_upstream {
    my $self = shift;

    return <<"END_CONF";
    ssl_certificate $self->{dir}/etc/tls.crt;
    ssl_certificate_key $self->{dir}/etc/tls.key;

    server {
        listen 127.0.0.1:$up_tls ssl;

        location / {
            proxy_pass $self->{upstream_url};
            proxy_http_version 1.1;
            proxy_set_header Upgrade \$http_upgrade;
            proxy_set_header Connection \$http_connection;
            proxy_buffering off;
        }
    }
END_CONF
}


# One GET over HTTP/2 with header lines that no client would send: the body.

sub h2_get {
    my ($target, @lines) = @_;

    my $block = join '', map {
        my ($name, $value) = @$_;
        "\0" . pack('C', length $name) . $name
            . (length $value < 127 ? pack('C', length $value)
                                   : pack('CC', 127, length($value) - 127)) . $value;
    } [ ':method', 'GET' ], [ ':scheme', 'http' ], [ ':path', $target ],
      [ ':authority', 'localhost' ], map { [ /^([^:]+):\s*(.*)$/ ] } @lines;

    my $h2c = SandboxHttp->connect(port => $h2);
    $h2c->write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                . pack('CnCCN', 0, 0, 4, 0, 0)
                . pack('CnCCN', 0, length $block, 1, 5, 1) . $block);

    my ($data, $deadline) = ('', time + 10);

    for ( ;; ) {
        while (length $h2c->{buf} < 9) { $h2c->fill($deadline) or return $data }
        my ($high, $low, $type, $flags, $stream) = unpack 'CnCCN', $h2c->{buf};
        my $len = $high << 16 | $low;
        while (length $h2c->{buf} < 9 + $len) { $h2c->fill($deadline) or return $data }
        my $payload = substr $h2c->{buf}, 9, $len;
        substr $h2c->{buf}, 0, 9 + $len, '';
        $data .= $payload if $type == 0;
        return $data if $stream == 1 && $type <= 1 && $flags & 1;
    }
}


# A connection through "openssl s_client".

sub secure {
    socketpair my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC
        or die "socketpair: $!\n";
    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        open STDIN, '<&', $theirs;
        open STDOUT, '>&', $theirs;
        open STDERR, '>', '/dev/null';
        close $ours;
        { exec 'openssl', 's_client', '-quiet', '-connect', "127.0.0.1:$tls",
               '-CAfile', $certificate, '-verify_return_error' }
        POSIX::_exit(127);
    }

    close $theirs;
    binmode $ours;

    return bless { socket => $ours, buf => '', eof => 0, host => 'localhost' },
        'SandboxHttp';
}
