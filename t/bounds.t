#!/usr/bin/perl

# Bounds that no directive sets (docs/directives.md, "Bounds"), each filled, and
# the metric that tells of it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeHelper;
use IO::Socket::UNIX;
use PromText;
use SandboxFrames qw(frame);
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep);

my $P = 'sandbox_gateway_';


# --- a helper with more than it takes ------------------------------------------

my $t = SandboxTest->new->start;
my $socket = $t->dir . '/run/helper.sock';
my $bulk = SandboxFrames->new($socket, 77, 'bulk') or die "no helper\n";
my $asked = 0;

# the helper's own metrics, whatever workers are there
sub metrics {
    $bulk->send(frame('ASK', ++$asked, 0, METHOD => 'GET', PATH => 'metrics',
                      ROLE => 'viewer', COUNT => 32768));
    my $text = '';

    while (my $f = $bulk->read) {
        next if $f->{type} != $SandboxFrames::TYPE{ANSWER} || $f->{seq} != $asked;
        $text .= $f->{DATA} // '';
        last if $f->{flags} & 4;
    }

    return PromText::parse($text);
}

# requests to upstream: one runs, 32 wait, the rest is answered at once

$t->up->script('GET /hang', [ pause => 0.5 ], [ 'reset' ]);
my $n = 40;
$bulk->send(join '', map { frame('FETCH', 1000 + $_, 0, TARGET => '/hang') } 1 .. $n);
my @refused;
my $f = $bulk->read;
while ($f && ($f->{REASON} // '') =~ /too many requests/) {
    push @refused, $f->{seq};
    $f = @refused < $n - 33 ? $bulk->read : undef;
}
cmp_ok(scalar @refused, '>=', $n - 33, 'requests that find no room are answered');
is_deeply(\@refused, [ sort { $a <=> $b } @refused ], 'in their order');
cmp_ok($refused[0], '>=', 1033, 'the first 32 were taken');
my $m = metrics();
is($m->{"${P}upstream_requests_limit"}, 32, 'the bound is told');
cmp_ok($m->{"${P}upstream_requests_refused_total"}, '>=', $n - 33,
       'so are the refusals');
cmp_ok($m->{"${P}upstream_requests_waiting"}, '<=', 32, 'and what waits');
$t->up->clear;

# connections: 1024, the rest is refused; those that are served go on

my $many = 1100;
my @children;

for (1 .. 4) {
    pipe my $in, my $out or die "pipe: $!\n";
    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        close $in;
        my @c;
        for (1 .. $many / 4) {
            push @c, IO::Socket::UNIX->new(Peer => $socket) // last;
        }
        syswrite $out, "1";
        sleep 30;
        POSIX::_exit(0);
    }

    close $out;
    push @children, [ $pid, $in ];
}

sysread $_->[1], my $byte, 1 for @children;
ok($t->wait_for(sub {
    $m = metrics();
    return $m->{"${P}connections_refused_total"} > 0;
}), 'connections beyond the bound are refused');
is($m->{"${P}connections"}, $m->{"${P}connections_limit"}, 'at 1024');
is($t->post('/v1/sandboxes/s1/proxy/44772/command',
            body => '{"command":"echo hi"}')->status, 200,
   'the workers are served meanwhile') if $t->sandbox('s1') || 1;
kill 'KILL', map { $_->[0] } @children;
waitpid $_->[0], 0 for @children;
ok($t->wait_for(sub { metrics()->{"${P}connections"} < 10 }), 'they are let go');

$bulk->close;
$t->stop;


# --- a worker with more questions to upstream than it may have ------------------

$t = SandboxTest->new(helper => 0);
my $h = FakeHelper->new($t->dir . '/run/helper.sock', $t->dir . '/fake.log')->start;
$t->start;

my @box = map { "box-$_" } 1 .. 71;
my $answer = '{"endpoint":"127.0.0.1:' . $t->up->port('a') . '"}';
$t->sandbox($_) for @box;
ok($t->wait_for(sub { $t->get('/v1/sandboxes/box-1')->status == 200 }), 'it runs');

# an address has one sandbox: each takes it from the one before, which is then
# asked for again when it is used

for (@box) {
    $t->up->script("GET /v1/sandboxes/$_/endpoints/44772",
        [ send => "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
          . 'Content-Length: ' . length($answer) . "\r\n\r\n$answer" ]);
    $t->endpoint($_);
}

pop @box;
my %status;
$status{ $t->get("/v1/sandboxes/$_/proxy/44772/ping")->status }++ for @box;
is_deeply(\%status, { 200 => 70 }, 'the server proxy serves all of them');
my $count = sub { my @l = $h->lines(qr/^fetch /); return scalar @l };
ok($t->wait_for(sub { $count->() == 64 }), '64 are asked for')
    or diag($count->());
$m = PromText::parse($t->get('/console/api/v1/metrics')->content);
is($m->{"${P}fetches"}, 64, 'they are open');
is($m->{"${P}fetches_limit"}, 64, 'which is the bound');
is($m->{"${P}fetches_refused_total"}, 6, 'the rest is not asked for');

$t->stop;
$h->stop;

done_testing;
