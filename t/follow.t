#!/usr/bin/perl

# Commands that outlive their request (design 5): the helper asks execd about
# them until they have ended, though nobody else does.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;

my $t = SandboxTest->new(runtime => 1, runtime_args => [ '--grace=0' ])->start;

my $r = $t->post('/v1/sandboxes',
    headers => [ 'Content-Type: application/json' ],
    body => '{"image":{"uri":"python:3.11"},"timeout":600,'
            . '"resourceLimits":{"cpu":"1"},"entrypoint":["tail"]}');
is($r->status, 202, 'a sandbox is made');
my $id = $r->json->{id};
my $execd = "/v1/sandboxes/$id/proxy/44772";
ok($t->wait_for(sub { $t->get("$execd/ping")->status == 200 }), 'it is ready');

sub background {
    my $answer = $t->post("$execd/command",
                          body => qq({"command":"$_[0]","background":true}));
    is($answer->status, 200, "in the background: $_[0]");
    return $answer;
}

my $good = background('sleep 0.5');
my $bad = background('sleep 0.7; exit 6');
my $long = background('sleep 300');

# The client of this one leaves in the middle of the stream.

my $c = $t->connect;
$c->write($c->build(POST => "$execd/command",
                    body => '{"command":"echo begun; sleep 1; exit 3"}',
                    headers => [ $t->credential ]));
my $left = $c->response(head_only => 1);
ok($t->wait_for(sub { $c->fill(time + 5); $c->{buf} =~ /begun/ }), 'it runs');
$c->close;

my $e = $t->record($good, timeout => 15);
is($e->{status}, 'succeeded', 'its end is found out');
is($e->{command}{exit_code}, 0, 'with the exit code');
cmp_ok($e->{duration_ms}, '>=', 500, 'and how long it ran');
cmp_ok($e->{duration_ms}, '<', 1900, 'not how long it took us to ask');

$e = $t->record($bad, timeout => 15);
is($e->{status}, 'failed', 'a failure too');
is($e->{command}{exit_code}, 6, 'with the exit code');

$e = $t->record($left, timeout => 15);
is($e->{status}, 'failed', 'one whose client left');
is($e->{command}{exit_code}, 3, 'with the exit code');
is($t->history->output($e->{event_id}, 'stdout', $id), "begun\n",
   'and the output until then');

is($t->record($long, started => 1)->{status}, 'started', 'what runs on is open');
is($t->delete("/v1/sandboxes/$id")->status, 204, 'until its sandbox ends');
is($t->record($long, timeout => 15)->{status}, 'unknown', 'then it is unknown');

$t->stop;
done_testing;
