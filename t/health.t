#!/usr/bin/perl

# The lifecycle's own GET /health, which passes without a token, and nothing
# else that looks like it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;

my $t = SandboxTest->new->start;

my $r = $t->get('/health', token => undef);
is($r->status, 200, 'GET /health needs no token');
my ($seen) = $t->up->requests(qr{^GET /health});
ok($seen, 'upstream has answered it');
unlike($seen->{head}, qr/^open-sandbox-api-key:/mi, 'and got no key of ours');
is_deeply([ $t->history->dirs ], [], 'nothing is on record');

$t->up->mark;
is($t->get('/health', token => 'sbx_wrong_token')->status, 200,
   'a wrong token is as none');
($seen) = $t->up->requests(qr{^GET /health});
unlike($seen->{head}, qr/sbx_|api-key/i, 'and does not pass');

$t->up->mark;
is($t->get('/health')->status, 200, 'with a token');
($seen) = $t->up->requests(qr{^GET /health});
like($seen->{head}, qr/^open-sandbox-api-key: \Q$t->{api_key}\E\r/mi,
     "upstream's key takes its place");

$t->up->mark;

for my $case (
    [ GET => '/v1/health' ], [ GET => '/health/' ], [ GET => '/health?a' ],
    [ GET => '//health' ], [ GET => '/heal%74h' ], [ GET => '/x/../health' ],
    [ GET => '/Health' ], [ GET => '/healthz' ], [ GET => '/health;x' ],
    [ HEAD => '/health' ], [ POST => '/health', body => '{}' ],
    [ PUT => '/health' ], [ DELETE => '/health' ], [ OPTIONS => '/health' ],
    [ GET => '/health', body => 'x' ],
    [ GET => '/health', body => 'x', chunked => 1 ],
    [ GET => '/health', headers => [ 'Connection: upgrade',
                                     'Upgrade: websocket' ] ],
    [ GET => '/sandboxes/s1/proxy/44772/health' ],
    [ GET => '/sandboxes/s1/proxy/8080/health' ],
    [ GET => '/v1/sandboxes' ], [ GET => '/' ],
) {
    my ($method, $path, %o) = @$case;
    my $status = $t->request($method => $path, %o, token => undef)->status;
    my $what = "$method $path" . (%o ? ' with ' . join ',', sort keys %o : '');

    ok($status == 401 || $status == 400, "$what is refused")
        or diag("status $status");
}

is(scalar $t->up->requests(qr/./), 0, 'none of these reached upstream');
is($t->get('/health', token => undef, headers => [ 'Host: evil.example' ])
     ->status, 421, 'another Host is refused');

$t->stop;

# it can be put on record

$t = SandboxTest->new(server => 'sandbox_record server.* best_effort;')->start;
$r = $t->get('/health', token => undef);
is($r->status, 200, 'with sandbox_record it passes as well');
is($t->record($r)->{operation_type}, 'server.health', 'and is on record');
$t->stop;

done_testing;
