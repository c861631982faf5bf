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

sub locks { @{ (eval { $t->get("$API/sandboxes/$id/locks")->json } // {})->{items} // [] } }

sub background {
    return $t->post("$execd/command", headers => [ "X-Sandbox-Lock: $_[1]" ],
                    body => qq({"command":"$_[0]","background":true}));
}

sub stat_of {
    return $t->get("$execd/files/info?path=$_[0]",
                   headers => [ 'X-Sandbox-Lock-Timeout: 100ms' ])->status;
}

my $run = background('sleep 300', 'write:/tmp/a, read:/tmp/b');
is($run->status, 200, 'a command runs on');
my ($command) = $run->content =~ /"text":"([0-9a-f]{32})"/;
ok($command, 'execd names it') or diag($run->content);
ok($t->wait_for(sub { (locks())[0]{detached} }), 'it keeps its keys');
my $before = [ locks() ];
is(stat_of('/tmp/a'), 423, 'others wait for it');

my $short = background('sleep 1', 'write:/tmp/c');
ok($t->wait_for(sub { locks() == 2 }), 'so does another');

$t->kill_helper;
$t->start_helper;
ok($t->wait_for(sub { locks() >= 1 }), 'the helper is there again');
isnt(stat_of('/tmp/a'), 200, 'others still wait for it');
ok($t->wait_for(sub { locks() == 1 }, 10), 'the one that has ended keeps none');
is($t->record($short, sandbox => $id, timeout => 10)->{status}, 'succeeded',
   'its end was found out');

my ($now) = locks();
is_deeply([ @{$now}{ qw(id type actor state detached keys) } ],
          [ @{ $before->[0] }{ qw(id type actor state detached keys) } ],
          'the other is told of as before');

$t->kill_helper;
$t->start_helper;
ok($t->wait_for(sub { locks() == 1 }), 'after a second restart, too');

$t->delete("$execd/command?id=$command");
ok($t->wait_for(sub { locks() == 0 }, 10), 'it ends: its keys are free');
isnt(stat_of('/tmp/a'), 423, 'for others');

$t->kill_helper;
$t->start_helper;
ok($t->wait_for(sub { $t->get("$API/sandboxes/$id/locks")->status == 200 }),
   'after another restart');
is(scalar(locks()), 0, 'nothing comes back');

$t->stop;
done_testing;
