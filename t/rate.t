#!/usr/bin/perl

# How many requests an actor may send, over all workers, and what happens when
# there are more actors than the zone has room for.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $t = SandboxTest->new(workers => 2, http => 'sandbox_rate_zone 32k;',
    location => 'sandbox_rate 6r/m burst=4; sandbox_actor_id $arg_a;',
    locations => 'location /v1/sandboxes/fast { sandbox on; sandbox_rate 2r/s;
                      sandbox_actor_id $arg_a;
                      proxy_pass http://opensandbox$sandbox_upstream_uri; }')->start;

$t->sandbox('s1');

sub as {
    my ($actor, %o) = @_;

    return $t->get("/v1/sandboxes/s1?a=$actor", %o);
}

my @r = map { as('a') } 1 .. 6;
is(join(' ', map { $_->status } @r), '200 200 200 200 200 429',
   'a burst, and no more, whatever the worker');
my $r = $r[-1];
is($r->code, 'GATEWAY_BUSY', 'in the envelope');
cmp_ok($r->header('Retry-After'), '>', 1, 'it says when to come again');
is($t->record($r)->{result}{error_code}, 'GATEWAY_BUSY', 'it is on record');
is(as('b')->status, 200, 'another actor has an account of his own');
is($t->get('/v1/sandboxes/s1?a=a', token => undef)->status, 401,
   'who is not known is not counted');
as('d') for 1 .. 5;
$t->reload;
is(as('d')->status, 429, 'a reload forgets nothing');

sub fast { $t->get('/v1/sandboxes/fast?a=a')->status }

isnt(fast(), 429, 'another setting, another account');
ok($t->wait_for(sub { fast() == 429 }), 'which has an end, too');
ok($t->wait_for(sub { sleep 0.6; fast() != 429 }), 'and room again after a while');

my $c = $t->connect;
as("many$_", conn => $c) for 1 .. 1500;
my $text = $t->get('/console/api/v1/metrics')->content;
like($text, qr/rate_refused_total\S* [3-9]$/m, 'refusals are counted');
my ($n) = $text =~ /rate_forgotten_total\S* (\d+)$/m;
cmp_ok($n, '>', 0, 'so are accounts that made room');

$t->stop;
done_testing;
