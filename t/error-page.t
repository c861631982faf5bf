#!/usr/bin/perl

# error_page on an intercepted route: the internal redirect that it makes must
# neither hang, nor send anything upstream a second time, nor hide a page that
# is the user's own.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;

my $execd = '/v1/sandboxes/s1/proxy/44772';

# The page lies where everything is intercepted.

my $t = SandboxTest->new(server => 'sandbox_body_limit 1k;
    error_page 400 404 413 500 502 503 504 /error.html;')->start;
my $up = $t->up;
$t->sandbox('s1');

sub chunked {
    my $body = shift;

    my $c = $t->connect;
    $c->write(join "\r\n", "POST $execd/command HTTP/1.1", 'Host: localhost',
              $t->credential, 'Content-Type: application/json',
              'Transfer-Encoding: chunked', '', $body);

    return $c->response(timeout => 5);
}

refused('a body that grows too large', 413, 'GATEWAY_LIMIT_EXCEEDED',
        chunked(sprintf("%x\r\n", 3000) . 'x' x 3000 . "\r\n0\r\n\r\n"));
refused('a broken chunk', 400, 'GATEWAY_AMBIGUOUS_REQUEST', chunked("zzz\r\n"));
is(scalar $up->requests, 0, 'nothing of them goes upstream');

$up->script("GET $execd/files/info", ['reset']);
$up->script("POST $execd/command", ['reset']);

refused('upstream breaks off a read', 502, 'GATEWAY_UPSTREAM_UNAVAILABLE',
        $t->get("$execd/files/info?path=%2Fa"));
is(scalar $up->requests(qr{/files/info}), 1, 'asked once');
refused('upstream breaks off a command', 502, 'GATEWAY_UPSTREAM_UNAVAILABLE',
        $t->post("$execd/command", body => '{"command":"x"}'));
is(scalar $up->requests(qr{/command}), 1, 'sent once, as a POST');

$up->clear;
is($t->get('/v1/sandboxes/s1')->status, 200, 'all goes on');
ok($t->stop, 'and nothing is left over');

# The page is a file of the user's, here even with "sandbox on" around it.

$t = SandboxTest->new(
    server => 'error_page 502 /error.html; sandbox on;',
    locations => 'location = /error.html { root html; }')->start;
$up = $t->up;
$t->sandbox('s1');
mkdir $t->dir . '/html';
SandboxTest::write_file($t->dir . '/html/error.html', "the user's page\n");
$up->script("GET $execd/files/info", ['reset']);

my $r = $t->get("$execd/files/info?path=%2Fa");
is($r->status, 502, 'a page of the user');
is($r->content, "the user's page\n", 'is shown');
is($t->record($r)->{status}, 'failed', 'and the record tells');

$t->stop;
done_testing;


sub refused {
    my ($what, $status, $code, $r) = @_;

    is($r->status, $status, "$what: $status");
    is($r->code, $code, "$what: $code");
    is($t->record($r)->{status}, 'failed', "$what: on record with its end");
}
