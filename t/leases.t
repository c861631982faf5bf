#!/usr/bin/perl

# Leases: keys held over several operations, journalled, renewed, expiring; what
# can be seen of locks, and taken away by hand.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA qw(sha256_hex);
use JSON::PP qw(encode_json);
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $API = '/console/api/v1';
my $t = SandboxTest->new(location => 'sandbox_locks on;');

# other operators: of another name, of the same name and another type, without one
my %row = (other => 'role=operator actor=other type=agent',
           same => 'role=operator actor=plain-agent type=user',
           none => 'role=operator', nobody => 'role=operator');

for my $id (sort keys %row) {
    $t->{tokens}{$id} = $t->secret("sbx_${id}_" . SandboxTest::random_text(32));
    SandboxTest::write_file($t->{token_file}, SandboxTest::read_file($t->{token_file})
        . "$id " . sha256_hex($t->{tokens}{$id}) . " $row{$id}\n");
}

$t->start;
my $LEASES = "$API/sandboxes/s1/leases";
my $LOCKS = "$API/sandboxes/s1/locks";

$t->sandbox('s1');

sub lease {
    my ($keys, %o) = @_;

    my $token = delete $o{token};
    my $r = $t->post($LEASES, token => $token // 'plain', body => encode_json({
        keys => [ map { { mode => (split /:/)[0], path => (split /:/)[1] } }
                  @$keys ], timeout_ms => 100, %o }));
    $t->secret($r->json->{token}) if $r->status == 201;

    return $r;
}

sub locks { @{ $t->get($LOCKS, token => 'viewer')->json->{items} } }


# --- made, seen, renewed, given back -----------------------------------------

ok($t->wait_for(sub { $t->get($LOCKS)->status == 200 }), 'the helper is there');
is_deeply([ locks() ], [], 'nothing is held');

my $r = lease([ 'write:/a//b/', 'read:/c' ], ttl_ms => 60000, owner => 'build 7');
is($r->status, 201, 'a lease is made');
my $l = $r->json;
like($l->{id}, qr/^[0-9a-f]{8}-[0-9a-f]{4}-7/, 'with an id');
like($l->{token}, qr/^lease-[0-9a-f]{48}$/, 'a token');
like($l->{expires_at}, qr/^\d{4}-\d\d-\d\dT[\d:.]+Z$/, 'and its end');

my ($item) = locks();
is_deeply([ @{$item}{ qw(id state type actor owner fence) } ],
          [ $l->{id}, 'held', 'lease', 'plain-agent', 'build 7', $l->{fence} ],
          'it is listed: with who took it, and what it says of itself');
is_deeply($item->{keys}, [ { path => '/a/b', mode => 'write' },
                           { path => '/c', mode => 'read' } ], 'with its keys');

$r = lease([ 'write:/a' ]);
is($r->status, 423, 'what is in its way waits, and is refused');
is($r->code, 'GATEWAY_LOCK_TIMEOUT', 'in the envelope');
my $d = $r->json->{details};
is_deeply([ $d->{key}, $d->{holder} ],
          [ '/a', { id => $l->{id}, actor => 'plain-agent', owner => 'build 7' } ],
          'which says who is in the way');

$r = $t->post('/v1/sandboxes/s1/proxy/44772/files/mv', body => '[{"src":"/c","dest":"/e"}]',
              headers => [ 'X-Sandbox-Lock-Timeout: 100ms' ]);
is_deeply($r->json->{details}{holder},
          { id => $l->{id}, actor => 'plain-agent', owner => 'build 7' }, 'so does an operation');
cmp_ok($d->{waited_ms}, '>=', 100, 'and it says how long it waited');

my $other = lease([ 'read:/c', 'write:/d' ], owner => 'x');
is($other->status, 201, 'what is not in its way is granted');
cmp_ok($other->json->{fence}, '>', $l->{fence}, 'the fence grows');
is(scalar(locks()), 2, 'both are there');

my $one = "$LEASES/$l->{id}";
$r = $t->request(PATCH => $one, body => '{"ttl_ms":120000}', token => 'plain');
is($r->status, 200, 'renewed');
cmp_ok($r->json->{expires_at}, 'gt', $l->{expires_at}, 'it ends later');
is($r->json->{fence}, $l->{fence}, 'with the same fence');

is($t->request(PATCH => "$API/sandboxes/s2/leases/$l->{id}", body => '{}')->code,
   'GATEWAY_LEASE_INVALID', 'another sandbox has no such lease');

# --- over a restart ------------------------------------------------------------

$t->kill_helper;
$t->start_helper;
ok($t->wait_for(sub { $t->get($LOCKS)->status == 200 && locks() == 2 }),
   'they are there after a kill of the helper');
is(lease([ 'write:/a' ])->status, 423, 'and hold');
$r = $t->request(DELETE => "$LEASES/" . $other->json->{id}, token => 'plain');
is($r->status, 204, 'given back');
$r = $t->request(DELETE => "$LEASES/" . $other->json->{id}, token => 'plain');
is($r->code, 'GATEWAY_LEASE_INVALID', 'once');

my $brief = lease([ 'write:/d' ], ttl_ms => 50)->json;
cmp_ok($brief->{fence}, '>', $other->json->{fence}, 'the fence still grows');
$r = lease([ 'write:/d' ], timeout_ms => 5000);
is($r->status, 201, 'one that is not renewed ends');
is($t->request(PATCH => "$LEASES/$brief->{id}", body => '{}')->status, 409,
   'and cannot be renewed');
is($t->request(DELETE => "$LEASES/" . $r->json->{id})->status, 204, 'tidied');

$t->kill_helper;
$t->start_helper;
ok($t->wait_for(sub { $t->get($LOCKS)->status == 200 }), 'once more');
is_deeply([ map { $_->{id} } locks() ], [ $l->{id} ],
          'what was given back or over does not come back');

# --- by hand -----------------------------------------------------------------

is($t->request(DELETE => "$LOCKS/$l->{id}", token => 'plain')->status, 403,
   'an operator breaks none');
is($t->request(DELETE => "$LOCKS/$l->{id}")->status, 204, 'an admin does');
is($t->request(DELETE => "$LOCKS/$l->{id}")->status, 404, 'once');
is_deeply([ locks() ], [], 'it is gone');
is(lease([ 'write:/a' ], ttl_ms => 3)->status, 201, 'and its keys are free');

ok($t->wait_for(sub {
    my %n;
    $n{$_->{operation_type}}++ for $t->history->events('_gateway');
    return ($n{'console.lock_break'} // 0) == 2 && ($n{'console.lease'} // 0) > 5;
}), 'it is on record');

# --- one that was broken stays away ----------------------------------------------

$l = lease([ 'write:/broken' ], ttl_ms => 60000)->json;
is($t->request(DELETE => "$LOCKS/$l->{id}")->status, 204, 'broken by hand');
$t->kill_helper;
$t->start_helper;
ok($t->wait_for(sub { $t->get($LOCKS)->status == 200 }), 'the helper starts anew');
is_deeply([ locks() ], [], 'it does not come back');

# --- whose it is --------------------------------------------------------------------

for my $restart (0, 1) {
    my $mine = lease([ 'write:/mine' ], ttl_ms => 60000, owner => 'tester',
                     timeout_ms => 20000)->json;
    my $again = sub {
        my ($id, $method, @headers) = @_;
        return $t->request($method => "$LEASES/$mine->{id}", token => $id, headers => \@headers,
                           body => $method eq 'PATCH' ? '{"ttl_ms":60000}' : '');
    };

    if ($restart) {
        $t->kill_helper;
        $t->start_helper;
        ok($t->wait_for(sub { $t->get($LOCKS)->status == 200 && locks() }), 'over a restart');
    }

    my ($seen) = locks();
    is_deeply([ @{$seen}{ qw(actor owner) } ], [ 'plain-agent', 'tester' ],
              'whatever it says of itself, it is told who took it');

    for my $method (qw(PATCH DELETE)) {
        for my $who ([ 'other' ], [ 'same' ], [ 'none' ], [ other => "X-Sandbox-Lease: lease-" . '0' x 48 ],
                     [ other => ('X-Sandbox-Lease: ' . $mine->{token}) x 2 ]) {
            $r = $again->(shift @$who, $method, @$who);
            is($r->status . $r->code, '403GATEWAY_FORBIDDEN', "$method by another is refused");
        }
    }

    is($again->('viewer', 'DELETE', "X-Sandbox-Lease: $mine->{token}")->status, 403,
       'a viewer ends none, with its token neither');
    is_deeply([ map { $_->{id} } locks() ], [ $mine->{id} ], 'it is still held');
    is($again->('other', 'PATCH', "X-Sandbox-Lease: $mine->{token}")->status, 200,
       'who has its token renews it');
    is($again->('plain', 'PATCH')->status, 200, 'so does who took it');
    is($again->('admin', 'PATCH')->status, 200, 'so does an admin');
    is($again->('other', 'DELETE', "X-Sandbox-Lease: $mine->{token}")->status, 204,
       'who has its token ends it');
    is_deeply([ locks() ], [], 'it is over');

    $r = lease([ 'write:/mine' ], token => 'none', timeout_ms => 20000);
    is($r->status, 201, 'one without a name takes one') or diag($r->content);
    $mine = $r->json;
    is($again->('nobody', 'DELETE')->status, 403, 'an actor without a name: not by another token');
    is($again->('plain', 'DELETE')->status, 403, 'nor by who has a name');
    is($again->('none', 'DELETE')->status, 204, 'by its own');
}

# --- who and what ----------------------------------------------------------------

is(lease([ 'write:/a' ], token => 'viewer')->status, 403, 'a viewer makes none');

for my $bad ('', '[]', '{}', '{"keys":[]}', '{"keys":[{"path":"/a"}]}',
             '{"keys":[{"path":"a","mode":"read"}]}',
             '{"keys":[{"path":"/a/../b","mode":"read"}]}',
             '{"keys":[{"path":"/a","mode":"read"}],"ttl_ms":2}',
             '{"keys":[{"path":"/a","mode":"read"}],"ttl_ms":"9"}',
             '{"keys":[{"path":"/a","mode":"read"}],"timeout_ms":300001}',
             '{"keys":[' . join(',', ('{"path":"/a","mode":"read"}') x 65) . ']}')
{
    is($t->post($LEASES, body => $bad)->status, 400, 'refused: '
       . substr($bad, 0, 60));
}

$t->stop;
done_testing;
