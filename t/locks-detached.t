#!/usr/bin/perl

# A command in the background keeps the keys that it declared for as long as it
# runs, whatever becomes of the helper meanwhile.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;

my $API = '/console/api/v1';
my $t = SandboxTest->new(runtime => 1, runtime_args => [ '--grace=0', '--no-kernels' ],
                         location => 'sandbox_locks on;')->start;

my $r = $t->post('/v1/sandboxes', headers => [ 'Content-Type: application/json' ],
    body => '{"image":{"uri":"python:3.11"},"timeout":600,'
            . '"resourceLimits":{"cpu":"1"},"entrypoint":["tail"]}');
is($r->status, 202, 'a sandbox is made');
my $id = $r->json->{id};
my $execd = "/v1/sandboxes/$id/proxy/44772";
ok($t->wait_for(sub { $t->get("$execd/ping")->status == 200 }), 'it is ready');

# an error is no empty list: it dies, and who waits asks again

sub locks {
    my $r = $t->get("$API/sandboxes/$id/locks");
    die 'the list of locks: ', $r->status, "\n" if $r->status != 200;

    return @{ $r->json->{items} };
}

sub holds {
    my $n = shift;

    return $t->wait_for(sub { my @held = eval { locks() }; !$@ && @held == $n }, @_);
}

sub background {
    return $t->post("$execd/command", headers => [ "X-Sandbox-Lock: $_[1]" ],
                    body => qq({"command":"$_[0]","background":true}));
}

sub stat_of {
    return $t->get("$execd/files/info?path=$_[0]",
                   headers => [ 'X-Sandbox-Lock-Timeout: 100ms' ])->status;
}

is($t->post("$execd/command", body => '{"command":"touch /tmp/a"}')->status, 200,
   'a file is made');
is(stat_of('/tmp/a'), 200, 'and seen');

my $run = background('sleep 300', 'write:/tmp/a, read:/tmp/b');
is($run->status, 200, 'a command runs on');
my ($command) = $run->content =~ /"text":"([0-9a-f]{32})"/;
ok($command, 'execd names it') or diag($run->content);
ok($t->wait_for(sub { my ($held) = eval { locks() }; $held && $held->{detached} }),
   'it keeps its keys');
my $before = [ locks() ];
is(stat_of('/tmp/a'), 423, 'others wait for it');

my $short = background('sleep 1', 'write:/tmp/c');
ok(holds(2), 'so does another');

$t->kill_helper;
$t->start_helper;
ok($t->wait_for(sub { scalar(() = eval { locks() }) >= 1 }), 'the helper is there again');

# 503: no lock is granted until the worker is there, too
like(stat_of('/tmp/a'), qr/^(?:423|503)$/, 'others still wait for it');
ok(holds(1, 10), 'the one that has ended keeps none');
ok($t->wait_for(sub { stat_of('/tmp/a') == 423 }), 'and the other still holds');
is($t->record($short, sandbox => $id, timeout => 10)->{status}, 'succeeded',
   'its end was found out');

my ($now) = locks();
is_deeply([ @{$now}{ qw(id type actor state detached keys) } ],
          [ @{ $before->[0] }{ qw(id type actor state detached keys) } ],
          'the other is told of as before');

$t->kill_helper;
$t->start_helper;
ok(holds(1), 'after a second restart, too');

$t->delete("$execd/command?id=$command");
ok(holds(0, 10), 'it ends: its keys are free');
is(stat_of('/tmp/a'), 200, 'for others');

$t->kill_helper;
$t->start_helper;
ok($t->wait_for(sub { eval { locks(); 1 } }), 'after another restart');
is(scalar(() = locks()), 0, 'nothing comes back');

$t->stop;
done_testing;
