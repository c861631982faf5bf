#!/usr/bin/perl

# Who waits for a lock when the helper goes and does not come back: what only reads
# goes on, what writes is refused at its own deadline, in the order of these.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;

my $API = '/console/api/v1';
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $t = SandboxTest->new(location => 'sandbox_locks on; sandbox_timeout 300ms;')->start;
my $up = $t->up;

$t->sandbox('s1');
$up->script("DELETE $execd/files?path=%2Fhold", [ 'hang' ]);
ok($t->wait_for(sub { $t->get("$API/sandboxes/s1/locks")->status == 200 }),
   'the helper is there');

sub waiting { scalar grep { $_->{state} eq 'waiting' }
              @{ $t->get("$API/sandboxes/s1/locks")->json->{items} } }

sub metric {
    my ($name) = @_;

    my ($n) = $t->get("$API/metrics")->content =~ /^sandbox_gateway_$name (\d+)$/m;

    return $n;
}

sub begin {
    my ($method, $path, @headers) = @_;

    my $c = $t->connect;
    $c->write($c->build($method => "$execd$path", headers => [ $t->credential, @headers ]));

    return $c;
}

my $holder = begin(DELETE => '/files?path=%2Fhold');
ok($up->wait_request(qr{^DELETE}), 'one holds a key');

# those with less time come last

my @late = map {
    my $c = begin(DELETE => '/directories?path=%2Fhold%2Fx', "X-Sandbox-Lock-Timeout: ${_}ms");
    my $n = $_;
    $t->wait_for(sub { waiting() == (3000 - $n) / 1000 + 1 }) or die "it does not wait\n";
    $c;
} 3000, 2000, 1000;
my $reader = begin(GET => '/files/info?path=%2Fhold');
ok($t->wait_for(sub { waiting() == 4 }), 'four wait for it');

$t->kill_helper;

my $r = $reader->response;
is($r->status, 200, 'what only reads goes on without');
is(metric('locks_passed_total'), 1, 'and is counted');
is(metric('waiters'), 3, 'the others wait');

for my $n (reverse 0 .. $#late) {
    my $bits = '';
    vec($bits, fileno $_->socket, 1) = 1 for @late[0 .. $n];
    select($bits, undef, undef, 60);
    ok(vec($bits, fileno $late[$n]->socket, 1), 'the one with the least time left is answered');

    $r = $late[$n]->response;
    is($r->status, 503, 'it is refused');
    is($r->code, 'GATEWAY_OVERLOADED', 'as nobody grants it');
    is(metric('waiters'), $n, 'and waits no more');
}

is(metric('locks_passed_total'), 1, 'none of them has passed');
is(scalar(grep { $_->{target} =~ /directories/ } $up->requests), 0, 'nor gone up');

# it comes back, and so do locks

$t->start_helper;
ok($t->wait_for(sub { $t->get("$API/sandboxes/s1/locks")->status == 200 }), 'another helper');
$r = $t->delete("$execd/directories?path=%2Fhold%2Fx",
                headers => [ 'X-Sandbox-Lock-Timeout: 200ms' ]);
is($r->status, 423, 'who held a key holds it still');
$holder->reset;
ok($t->wait_for(sub { $t->delete("$execd/directories?path=%2Fhold%2Fx")->status == 200 }),
   'until it leaves');

$t->stop;
done_testing;
