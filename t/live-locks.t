#!/usr/bin/perl

# What live streams tell of locks: waits that last, what became of them, leases; with
# cursors as everything else, so that who comes back misses nothing.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP qw(encode_json);
use SandboxLive;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep);

my $API = '/console/api/v1';
my $t = SandboxTest->new(workers => 2, location => 'sandbox_locks on;')->start;
my $execd = '/v1/sandboxes/s1/proxy/44772';

$t->sandbox($_) for qw(s1 s2);
$t->up->script("DELETE $execd/files?path=%2Fhold", [ 'hang' ]);
ok($t->wait_for(sub { $t->get("$API/sandboxes/s1/locks")->status == 200 }),
   'the helper is there');

my $live = SandboxLive->open($t, '/live');
ok($live->wait_for(sub { defined $_[0]->id }), 'a stream begins');
my $begin = $live->id;

sub begin {
    my ($method, $path, @headers) = @_;

    my $c = $t->connect;
    $c->write($c->build($method => "$execd$path", headers => [ $t->credential, @headers ]));

    return $c;
}

# Holds /hold, which is seen before this returns.

sub hold {
    my $c = begin(DELETE => '/files?path=%2Fhold');

    $t->wait_for(sub {
        grep { $_->{state} eq 'held' && $_->{type} eq 'file.delete' }
             @{ $t->get("$API/sandboxes/s1/locks")->json->{items} // [] };
    }) or fail('a key is held');

    return $c;
}

sub told {
    my ($phase, $what, $s) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $e = ($s // $live)->until(sub {
        $_[0]{event} eq 'lock' && $_[0]{data}{phase} eq $phase
    });
    ok($e, $what) or diag explain [ grep { $_->{event} eq 'lock' } @{ $live->events } ];

    return $e ? $e->{data} : {};
}

sub lease {
    my ($keys, %o) = @_;

    my $r = $t->post("$API/sandboxes/s1/leases", body => encode_json({
        keys => [ map { { mode => (split /:/)[0], path => (split /:/)[1] } } @$keys ],
        timeout_ms => 100, %o }));
    $t->secret($r->json->{token}) if $r->status == 201;

    return $r;
}


# --- a wait, and its end --------------------------------------------------------------

my $holder = hold();
my $held = $live->until(sub { ($_[0]{data}{type} // '') eq 'file.delete' });
ok($held, 'one that holds a key begins');
my $reader = begin(GET => '/files/info?path=%2Fhold');

my $d = told('waiting', 'one that waits is told of');
is_deeply([ @{$d}{ qw(sandbox_id type actor keys keys_total reason) } ],
          [ 's1', 'file.stat', 'tester', [ { path => '/hold', mode => 'read' } ], 1, undef ],
          'what it is');
is_deeply($d->{holder}, { id => $held->{data}{id}, actor => 'tester', key => '/hold' },
          'and who is in the way');
cmp_ok($d->{waited_ms}, '>=', 100, 'after it has waited for a while');
my $id = $d->{id};

$holder->reset;
$d = told('granted', 'it goes on');
is($d->{id}, $id, 'this one');
is($d->{holder}, undef, 'nobody is in the way');
is($reader->response->status, 200, 'it is answered');
is(told('released', 'and holds nothing any more')->{id}, $id, 'this one');

my @mine = grep { ($_->{data}{id} // '') eq $id } @{ $live->events };
is(join(' ', map { "$_->{event}:$_->{data}{phase}" } @mine),
   'operation:started lock:waiting lock:granted operation:completed lock:released',
   'in this order, in between what is told of the operation');

# short waits are no news, and who holds without anybody in its way

is(scalar(grep { $_->{event} eq 'lock' && $_->{data}{id} eq $held->{data}{id} }
          @{ $live->events }), 0, 'of the one that held nothing is told');

# refused, and left

$holder = hold();
$reader = begin(GET => '/files/info?path=%2Fhold', 'X-Sandbox-Lock-Timeout: 300ms');
is($reader->response->status, 423, 'one waits in vain');
$d = told('refused', 'which is told');
is($d->{reason}, 'timeout', 'and why');
is($d->{holder}{key}, '/hold', 'and what it waited for');

$reader = begin(GET => '/files/info?path=%2Fhold');
$id = told('waiting', 'another waits')->{id};
$reader->reset;
is(told('left', 'and leaves')->{id}, $id, 'this one');

# by hand

$reader = begin(GET => '/files/info?path=%2Fhold');
$id = told('waiting', 'and another')->{id};
is($t->delete("$API/sandboxes/s1/locks/$id")->status, 204, 'an admin ends it');
is(told('broken', 'which is told')->{id}, $id, 'of this one');
$holder->reset;


# --- leases ----------------------------------------------------------------------------

my $l = lease([ 'write:/a', map { "read:/r$_" } 1 .. 9 ], owner => 'build 7')->json;
$d = told('granted', 'a lease is told of at once');
is_deeply([ @{$d}{ qw(id type actor owner fence expires_at keys_total) },
            scalar @{ $d->{keys} } ],
          [ @{$l}{'id'}, 'lease', 'tester', 'build 7', @{$l}{ qw(fence expires_at) }, 10, 8 ],
          'what it is, and its first keys');
unlike(encode_json($d), qr/lease-[0-9a-f]/, 'not its token');
$t->request(PATCH => "$API/sandboxes/s1/leases/$l->{id}", body => '{"ttl_ms":100000}');
cmp_ok(told('renewed', 'it is renewed')->{expires_at}, 'gt', $l->{expires_at}, 'for longer');
is(lease([ 'write:/a/b' ])->status, 423, 'another one cannot be had');
is_deeply(told('refused', 'which is told')->{holder},
          { id => $l->{id}, actor => 'tester', owner => 'build 7', key => '/a/b' },
          'with who is in the way');
$t->delete("$API/sandboxes/s1/leases/$l->{id}");
is(told('released', 'it is given back')->{id}, $l->{id}, 'this one');
lease([ 'write:/a' ], ttl_ms => 50);
$d = told('released', 'one that nobody renews');
is($d->{reason}, 'expired', 'is over by itself');


# --- who hears it ------------------------------------------------------------------------

my @all = grep { $_->{event} eq 'lock' } @{ $live->events };
my @cursors = map { $_->{id} } @{ $live->events };
is_deeply(\@cursors, [ sort { $a <=> $b } @cursors ], 'cursors grow');
is(scalar @cursors, scalar keys %{ { map { $_ => 1 } @cursors } }, 'each occurs once');

sub again {
    my ($path, $query, $want, $what) = @_;

    my $s = SandboxLive->open($t, $path, query => $query, last => $begin);
    $s->wait_for(sub { (grep { $_->{event} eq 'lock' } @{ $_[0]->events }) >= @$want
                       and ($_[0]->id // 0) >= ($want->[-1] // { id => 0 })->{id} });
    is_deeply([ grep { $_->{event} eq 'lock' && $_->{id} <= $all[-1]{id} } @{ $s->events } ],
              $want, $what);
    $s->close;
}

again('/live', undef, \@all, 'who comes back gets the same, out of the journal');
again('/sandboxes/s1/live', undef, \@all, 'of their own sandbox');
again('/live', 'type=lease', [ grep { $_->{data}{type} eq 'lease' } @all ], 'by type');
again('/live', 'type=file.*&status=failed&path=/x',
      [ grep { $_->{data}{type} ne 'lease' } @all ], 'other filters are not asked');
again('/live', 'actor=tester', [ grep { $_->{data}{actor} eq 'tester' } @all ], 'by actor');
again('/live', 'actor=build%207', [], 'who is not what a lease says of itself');

my $other = SandboxLive->open($t, '/sandboxes/s2/live', last => $begin);
$t->post('/v1/sandboxes/s2/proxy/44772/files/mv', body => '[{"src":"/a","dest":"/b"}]');
ok($other->until(sub { ($_[0]{data}{phase} // '') eq 'completed' }), 'another sandbox');
is(scalar(grep { $_->{event} eq 'lock' } @{ $other->events }), 0, 'hears nothing of it');
$other->close;


# --- over a restart of the helper ---------------------------------------------------------

$l = lease([ 'write:/hold/x' ], ttl_ms => 60000)->json;
told('granted', 'a lease holds');
$reader = begin(GET => '/files/info?path=%2Fhold', 'X-Sandbox-Lock-Timeout: 60s');
$id = told('waiting', 'one waits')->{id};
my $last = $live->id;
$live->close;

$t->kill_helper;
$t->start_helper;
ok($t->wait_for(sub { $t->get("$API/sandboxes/s1/locks")->status == 200
                      && @{ $t->get("$API/sandboxes/s1/locks")->json->{items} } == 2 }),
   'both are there after a kill of the helper');
$live = SandboxLive->open($t, '/live', last => $last);
is($t->delete("$API/sandboxes/s1/leases/$l->{id}")->status, 204, 'the lease is given back');
is(told('released', 'which is told')->{id}, $l->{id}, 'of this one');
is(told('granted', 'the one that waited goes on')->{id}, $id, 'this one');
is($reader->response->status, 200, 'and is answered');
is(told('released', 'to its end')->{id}, $id, 'this one');
$live->close;

$t->stop;
done_testing;
