#!/usr/bin/perl

# Which Host is served (design 7): loopback and what is named, nothing else, so
# that a foreign page cannot reach the gateway under a name of its own.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;

my $t = SandboxTest->new(server => 'sandbox_host box.example 10.9.8.7;')->start;
$t->sandbox('s1');

my $execd = '/v1/sandboxes/s1/proxy/44772';
my $port = $t->port;

for my $host ('evil.example', "evil.example:$port", '192.168.1.5', '10.9.8.70',
              'localhost.evil.example', '127.0.0.1.evil.example',
              'box.example.evil.example', 'xbox.example', 'gateway.test',
              '[2001:db8::1]')
{
    my $r = $t->get('/v1/sandboxes', headers => [ "Host: $host" ]);
    is($r->status, 421, "Host: $host");
    is($r->code, 'GATEWAY_WRONG_HOST', 'says what is wrong');
}

for my $target ("$execd/ping", '/v1/sandboxes/s1/proxy/8080/', '/docs') {
    is($t->get($target, headers => [ 'Host: evil.example' ])->status, 421,
       "foreign Host: $target");
}

is($t->post("$execd/command", body => '{"command":"x"}',
            headers => [ 'Host: evil.example' ])->status, 421,
   'foreign Host: a command');
is($t->websocket("$execd/pty/p/ws", headers => [ 'Host: evil.example' ])
     ->status, 421, 'foreign Host: WebSocket');
is($t->get('/v1/sandboxes', token => undef,
           headers => [ 'Host: evil.example' ])->status, 421,
   'foreign Host, no token');

is(scalar $t->up->requests, 0, 'none of these reached upstream');

for my $host ('localhost', "localhost:$port", 'LOCALHOST', "127.0.0.1:$port",
              '127.0.0.1', '[::1]', "[::1]:$port", 'box.example',
              'Box.Example:8443', '10.9.8.7')
{
    is($t->get('/v1/sandboxes', headers => [ "Host: $host" ])->status, 200,
       "Host: $host");
}

# The names that a proxy in front or the client claims do not count.

is($t->get('/v1/sandboxes', headers => [ 'Host: evil.example',
           'X-Forwarded-Host: localhost' ])->status, 421,
   'X-Forwarded-Host does not help');

# A target that names a host of its own is not readable in one way (C010, C020).

for my $case ([ 'http://evil.example/v1/sandboxes', '127.0.0.1' ],
              [ 'http://localhost/v1/sandboxes', 'evil.example' ],
              [ 'http://localhost/v1/sandboxes', 'localhost' ])
{
    my ($target, $host) = @$case;
    $t->up->mark;
    my $status = $t->get($target, headers => [ "Host: $host" ])->status;
    ok($status == 400 || $status == 421, "$target with Host: $host: $status");
    is(scalar $t->up->requests, 0, 'is not passed on');
}

$t->stop;

# Without sandbox_host the names of the server count.

$t = SandboxTest->new->start;

is($t->get('/v1/sandboxes', headers => [ 'Host: gateway.test' ])->status, 200,
   'a name of the server');
is($t->get('/v1/sandboxes', headers => [ 'Host: evil.example' ])->status, 421,
   'another name');

$t->stop;
done_testing;
