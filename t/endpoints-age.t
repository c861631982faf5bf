#!/usr/bin/perl

# How long an address counts: it is asked for again while it is in use, and not
# used when upstream has not named it for 30 s.  Takes half a minute.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $t = SandboxTest->new->start;
my $up = $t->up;
my $port = $up->port('b');

for my $id (qw(used idle gone moved)) {
    $t->sandbox($id, endpoint => "127.0.0.1:$port/$id/%PORT%", learn => 1);
}

my $start = time;
$up->mark;
is(road($_), 'b', "$_: straight") for qw(used idle gone moved);
is(scalar questions(), 0, 'nothing is asked while they are fresh');

sleep_until(16);

# "gone" ends, "moved" moves, behind our back; both are found out in passing.

$up->forget('gone');
$t->sandbox('moved', endpoint => '127.0.0.1:' . $up->port('a') . '/m/%PORT%');
is(road($_), 'b', "$_: still straight after 16 s") for qw(used gone moved);

ok($t->wait_for(sub { questions() == 3 }, 5), 'the helper asks for each again')
    or diag(join "\n", map { $_->{target} } questions());
is_deeply([ sort map { $_->{target} } questions() ],
          [ map { "/v1/sandboxes/$_/endpoints/44772?use_server_proxy=false" }
                qw(gone moved used) ], 'as the direct address');
sleep 0.3;

is(road('used'), 'b', 'used: goes on');
is(road('gone'), 'lifecycle', 'gone: upstream does not know it');
is(road('moved'), 'a', 'moved: follows at once');
is(scalar questions(), 3, 'asked once');

sleep_until(31);

is(road('used'), 'b', 'used: straight after 31 s');
is(road('idle'), 'lifecycle', 'idle: its address has lapsed');
ok($t->wait_for(sub { grep { $_->{target} =~ /idle/ } questions() }, 5),
   'but is asked for when it is used again');
sleep 0.3;
is(road('idle'), 'b', 'and then it is straight again');

$t->stop;
done_testing;


sub sleep_until {
    my $rest = $start + $_[0] - time;

    sleep $rest if $rest > 0;
}


sub questions { $up->requests(qr{/endpoints/}, helper => 1) }


sub road {
    my $id = shift;

    my $before = () = $up->requests(qr{/ping});
    my $got = $t->get("/v1/sandboxes/$id/proxy/44772/ping");
    my @seen = $up->requests(qr{/ping});
    splice @seen, 0, $before;

    return @seen == 1 ? $seen[0]{listener}
                      : scalar(@seen) . ' requests, status ' . $got->status;
}
