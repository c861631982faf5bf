#!/usr/bin/perl

# The shared zone of learnt addresses: full, too small, kept over a reload; and
# who has an address when several sandboxes were named the same one.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;

my $t = SandboxTest->new(workers => 2)->start;
my $up = $t->up;
my $port = $up->port('b');


# --- one address, several sandboxes --------------------------------------------

# Docker gives a port to the next sandbox; all ports of one sandbox share it.

$t->sandbox('one', execd => 'b', learn => 1);
$t->endpoint('one', 8080);
is(road('one'), 'b', 'a sandbox');
is(road('one', 8080), 'b', 'and another port of it at the same address');

$t->sandbox('two', execd => 'b', learn => 1);
is(road('two'), 'b', 'the sandbox that was named last has the address');
is(road('one'), 'lifecycle', 'the one before has not');
is(road('one', 8080), 'lifecycle', 'for none of its ports');

# An ingress serves many at one address, told apart by path or header.

for my $id (qw(uri1 uri2)) {
    $t->sandbox($id, endpoint => "127.0.0.1:$port/$id/%PORT%", learn => 1);
}

is(road($_), 'b', "$_: by its path") for qw(uri1 uri2 uri1);

for my $id (qw(head1 head2)) {
    $t->sandbox($id, endpoint => "127.0.0.1:$port", learn => 1,
                headers => { 'OpenSandbox-Ingress-To' => "$id-44772" });
}

is(road($_), 'b', "$_: by its routing header") for qw(head1 head2 head1);
is(road('two'), 'b', 'the one without either is left alone');

# An older way to route, which a straight request would not carry.

$t->sandbox('old', endpoint => "127.0.0.1:$port", learn => 1,
            headers => { 'OPEN-SANDBOX-INGRESS' => 'old-44772' });
is(road('old'), 'lifecycle', 'OPEN-SANDBOX-INGRESS is left to upstream');

# What is named later and cannot be followed replaces what was learnt.

$t->sandbox('moved', endpoint => "127.0.0.1:$port/moved/%PORT%", learn => 1);
is(road('moved'), 'b', 'moved: learnt');
$t->sandbox('moved', endpoint => "sandbox.example:$port/proxy/%PORT%",
            learn => 1);
is(road('moved'), 'lifecycle', 'moved: it is elsewhere now');


# --- no connection (C021) ------------------------------------------------------------

$t->sandbox('dead', execd => 'refusing', learn => 1);
is($t->get('/v1/sandboxes/dead/proxy/44772/ping')->status, 502, 'no connection');
is(road('dead'), 'lifecycle', 'the server proxy serves');
$t->endpoint('dead');
is(road('dead'), 'lifecycle', 'also when the same address is named again');
$t->sandbox('dead', endpoint => "127.0.0.1:$port/dead/%PORT%", learn => 1);
is(road('dead'), 'b', 'another address is tried at once');
is(road('two'), 'b', 'others are unaffected');


# --- reload (C155) -------------------------------------------------------------------

$t->reload;
is(road('two'), 'b', 'an address outlives a reload');

$t->{http} = 'sandbox_endpoint_zone 2m;';
reload_with();
is(road('two'), 'lifecycle', 'a zone of another size begins empty');
$t->endpoint('two');
is(road('two'), 'b', 'and is used');

$t->{server} = 'sandbox_endpoint_allow 10.0.0.0/8;';
reload_with();
is(road('two'), 'lifecycle', 'what was learnt is judged by the new range');

$t->stop;


# --- full (C160) ---------------------------------------------------------------------

my ($ok, $said) = SandboxTest->new->check_conf(
    http => 'sandbox_endpoint_zone 8k;');
ok(!$ok, 'a zone of 8 KiB is refused');
like($said, qr/"sandbox_endpoint_zone" of 8192 bytes is too small/, 'and why');

$t = SandboxTest->new(http => 'sandbox_endpoint_zone 64k;')->start;
$up = $t->up;
$port = $up->port('b');

my $first = 'full-0001';
my ($last, $failed) = ('', 0);

for my $round (1 .. 2) {
    for my $n (1 .. 150) {
        $last = sprintf 'full-%04d%s', $n, 'x' x ($n % 90);
        my $text = "127.0.0.1:$port/$last/%PORT%" . '/z' x ($n % 50);
        $t->sandbox($last, endpoint => $text);

        my ($json, $r) = $t->endpoint($last);
        $failed++ if $r->status != 200
                     || $json->{endpoint} !~ m{/sandboxes/$last/proxy/44772$};
    }
}

is($failed, 0, 'C160: no request fails on a full zone');
is(road($last), 'b', 'the last sandbox was learnt');

$t->sandbox($first, endpoint => "127.0.0.1:$port/$first/%PORT%");
is(road($first), 'lifecycle', 'the first had to make room');
cmp_ok($t->metric('endpoint_zone_evicted_total'), '>=', 1, 'which is counted');
cmp_ok($t->metric('endpoint_zone_used_bytes'), '>', 32 * 1024, 'so are the bytes');
$t->endpoint($first);
is(road($first), 'b', 'until it is named again');

$t->stop;
done_testing;


# Which listener a ping for a sandbox reaches.

sub road {
    my ($id, $to) = @_;

    $to //= 44772;
    $up->mark;
    my $got = $t->get("/v1/sandboxes/$id/proxy/$to/ping");
    my @seen = map { $_->{listener} } $up->requests(qr{/ping});

    return @seen == 1 ? $seen[0] : "@seen (status " . $got->status . ')';
}


sub reload_with {
    SandboxTest::write_file($t->dir . '/conf/nginx.conf', $t->conf_text);
    $t->reload;
}
