#!/usr/bin/perl

# The bounds of sessions: sandbox_session_zone, sandbox_session_lifetime.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;

my $API = '/console/api/v1';
my $t = SandboxTest->new(
    http => 'sandbox_session_zone 32k; sandbox_session_lifetime 90m;')->start;

sub sign_in {
    my $r = $t->request(POST => "$API/session", token => undef,
        body => '{"token":"' . $t->token('viewer') . '"}', conn => $_[0]);
    my ($cookie, $age) = ($r->header('Set-Cookie') // '')
                         =~ /=([^;]+);.* Max-Age=(\d+)/ or return;
    $t->secret($cookie);

    return ($cookie, $age);
}

sub role {
    return $t->get("$API/session", token => undef, headers =>
        [ 'Cookie: sandbox_session_' . $t->port . "=$_[0]" ])->json->{role};
}

my ($first, $age) = sign_in();
is($age, 5400, 'the cookie lasts as long as sandbox_session_lifetime');
is(role($first), 'viewer', 'a session');

my ($conn, $last, $n) = ($t->connect);
for ($n = 1; $n < 500 && (role($first) // '') eq 'viewer'; $n++) {
    ($last) = sign_in($conn) or last;
}

cmp_ok($n, '>', 20, "32k hold some ($n)");
cmp_ok($n, '<', 500, 'and not any number');
is(role($first), undef, 'the first one has ended');
is(role($last), 'viewer', 'the last one is there');

my $text = $t->get("$API/metrics")->content;
my ($begun) = $text =~ /^sandbox_gateway_sessions_total (\d+)$/m;
my ($dropped) = $text =~ /^sandbox_gateway_sessions_dropped_total (\d+)$/m;
is($begun, $n, 'all are counted');
cmp_ok($dropped, '>', 0, 'and those that made room');

$t->stop;
done_testing;
