#!/usr/bin/perl

# A token or a session that ends while a request is on its way: what has not
# gone up by then does not go.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use SandboxTest;
use Test::More;

my $API = '/console/api/v1';
my $UPLOAD = '/v1/sandboxes/s1/proxy/44772/files/upload';

my $t = SandboxTest->new(workers => 2,
    location => 'sandbox_locks on;');
$t->{helper_args} = [ '--tokens', $t->{token_file} ];
chmod 0666, $t->{token_file};
$t->start;
$t->sandbox('s1');

ok($t->wait_for(sub {
    my %to = $t->to_each_worker;
    2 == grep { $t->get("$API/overview", conn => $_)->status == 200 } values %to;
}), 'both workers have the helper');

# Sends the first bytes of a request's body, to a certain worker; the rest is sent
# by its code.

sub begin {
    my ($worker, $target, $token, $body, @headers) = @_;

    my %to = $t->to_each_worker;
    my $c = $to{$worker};
    my $half = int(length($body) / 2);
    $c->write("POST $target HTTP/1.1\r\nHost: localhost\r\n"
              . join('', map { "$_\r\n" } "OPEN-SANDBOX-API-KEY: $token",
                     'Content-Length: ' . length $body, @headers)
              . "\r\n" . substr $body, 0, $half);

    return sub { $c->write(substr $body, $half); return $c->response };
}

sub upload { return "--b\r\n" . join("\r\n--b\r\n", map { "Content-Disposition: form-data;"
    . " name=\"$_->[0]\"; filename=\"x\"\r\nContent-Type: $_->[1]\r\n\r\n$_->[2]" }
    [ metadata => 'application/json', '{"path":"/tmp/f"}' ],
    [ file => 'application/octet-stream', 'x' x 4000 ]) . "\r\n--b--\r\n" }

my @multipart = ('Content-Type: multipart/form-data; boundary=b');

my ($one, $other) = keys %{ { $t->to_each_worker } };

for ([ 'by nobody' ], [ 'by the same worker', $one ], [ 'by another worker', $other ]) {
    my ($how, $revoked) = @$_;
    my $made = $t->post("$API/tokens", body => '{"role":"admin"}')->json;
    $t->secret($made->{token});

    my $token = begin($one, "$API/tokens", $made->{token}, '{"role":"viewer"}');
    my $command = begin($one, '/v1/sandboxes/s1/proxy/44772/command', $made->{token},
                        '{"command":"echo waited"}', 'Content-Type: application/json');
    my $upload = begin($one, $UPLOAD, $made->{token}, upload(), @multipart);

    # each has reached its worker
    select undef, undef, undef, 0.3;

    if ($revoked) {
        my %to = $t->to_each_worker;
        is($t->request(DELETE => "$API/tokens/$made->{id}", conn => $to{$revoked})->status,
           204, "the token is revoked $how meanwhile");
    }

    my $r = $token->();
    is($r->status, $revoked ? 401 : 201, "revoked $how: a token that it asked for");
    $t->secret($r->json->{token}) if $r->status == 201;
    is($command->()->status, $revoked ? 401 : 200, 'a command');
    is($upload->()->status, $revoked ? 401 : 200, 'an upload');
}

# --- a session that is ended ends what it has open

my $in = $t->request(POST => "$API/session", token => undef,
    body => encode_json({ token => $t->{tokens}{admin} }));
my ($value) = $in->header('Set-Cookie') =~ /=(sbx_session_[\w-]+)/;
$t->secret($value);
my @cookie = ('Cookie: sandbox_session_' . $t->port . "=$value",
              'Origin: http://127.0.0.1:' . $t->port,
              'Host: 127.0.0.1:' . $t->port);
my $ws = $t->websocket('/v1/sandboxes/s1/proxy/44772/pty/p1/ws', token => undef,
                       headers => \@cookie);
is($ws->status, 101, 'a terminal of a session');

is($t->request(DELETE => "$API/session", token => undef, headers => \@cookie)->status,
   204, 'which signs out');

my $ended = eval {
    local $SIG{ALRM} = sub { die "it goes on\n" };
    alarm 10;
    1 while sysread $ws->conn->{socket}, my $some, 4096;
    alarm 0;
    1;
};
alarm 0;
ok($ended, 'the terminal ends with it');

$t->stop;
done_testing;
