#!/usr/bin/perl

# Locks over new connections to the helper: what is not acknowledged is not told
# twice, however often the worker has to come again, and who waits when the worker
# is stopped goes nowhere any more.  With a scripted helper.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeHelper;
use SandboxTest;
use Test::More;

my $API = '/console/api/v1';
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $t = SandboxTest->new(helper => 0, location => 'sandbox_locks on; sandbox_timeout 5s;');
my $up = $t->up;
my $h = FakeHelper->new($t->dir . '/run/helper.sock', $t->dir . '/fake.log')->start;

use constant HELD => 8;

$t->start;
$t->sandbox('s1');
$up->script(qr{^DELETE $execd/files}, [ 'hang' ]);
ok($t->wait_for(sub { $t->get("$API/echo")->status == 200 }), 'the helper is there');


# --- the journal has no room, for long -------------------------------------------------

flag('grant');
my @holder = map { begin(DELETE => "/files?path=%2F$_") } 1 .. 3;
ok($t->wait_for(sub { 3 == $up->requests(qr{^DELETE}) }), 'three hold keys');
flag('fail');

# their acknowledgements have come; what is told from now on has none
my $read = begin(GET => '/files/info?path=%2Fb');
is($read->response->status, 200, 'what only reads goes on');
hellos(3);
my $queued = metric('queue_bytes');
cmp_ok($queued, '>', 0, 'frames wait in the worker');
hellos(5);
is(metric('queue_bytes'), $queued, 'no more of them after five more connections');

# on each connection it tells of all that is held, and then that this was all

my @again = connection();
is(scalar(grep { /^keys \d+ \d+$/ && (split)[2] & HELD } @again), 3, 'three are held');
like($again[-1], qr/^keys \d+ \d+ nobody$/, 'that is all')  or diag explain \@again;

# what is granted meanwhile is told before that

push @holder, begin(DELETE => '/files?path=%2F4');
hellos(3);
$queued = metric('queue_bytes');
hellos(3);
is(metric('queue_bytes'), $queued, 'nor with one more that waits or holds');

flag('fail', 0);
ok($t->wait_for(sub { metric('queue_bytes') == 0 }), 'all is taken when there is room');
$_->close for @holder;
flag('grant', 0);


# --- fast shutdown ---------------------------------------------------------------------

$up->mark;
my $asked = $h->lines(qr/^keys \d+ \d+$/);
my $waiter = begin(DELETE => '/files?path=%2Flate');
ok($t->wait_for(sub { $h->lines(qr/^keys \d+ \d+$/) > $asked }), 'one waits');
flag('mute');
is($t->get("/v1/sandboxes/s1")->status, 200, 'a record that has no answer');

my ($worker) = $t->worker_pids;
kill 'TERM', $worker;
$t->wait_for(sub { $t->log_text =~ /\[notice\] $worker#\d+: exiting/ });
flag('late');
ok($t->wait_for(sub { !-d "/proc/$worker" }), 'the worker is stopped');
is(scalar $up->requests(qr{^DELETE\S* .*late}), 0, 'who waited is not sent upstream');

$t->stop;
$h->stop;
done_testing;


sub flag {
    my ($name, $on) = @_;
    my $file = $t->dir . "/fake-$name";

    $on // 1 ? SandboxTest::write_file($file, '') : unlink $file;
}


sub begin {
    my ($method, $path) = @_;

    my $c = $t->connect;
    $c->write($c->build($method => "$execd$path", headers => [ $t->credential ]));

    return $c;
}


sub metric {
    my ($name) = @_;

    my ($n) = $t->get("$API/metrics")->content =~ /^sandbox_gateway_$name (\d+)$/m;

    return $n;
}


# Waits for so many more connections.

sub hellos {
    my ($n) = @_;

    my $have = $h->lines(qr/^hello control/);
    ok($t->wait_for(sub { $h->lines(qr/^hello control/) >= $have + $n }, 4 + $n),
       "$n more connections");
}


# What came on the last connection that is over.

sub connection {
    my @lines = $h->lines(qr/^(?:hello control|keys|release)/);
    my @at = grep { $lines[$_] =~ /^hello/ } 0 .. $#lines;

    return @lines[$at[-2] + 1 .. $at[-1] - 1];
}
