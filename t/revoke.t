#!/usr/bin/perl

# Tokens that are taken out of their file: what they have open ends, in workers
# of before the reload too; and wrong ones, which are counted and wait.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA qw(sha256_hex);
use SandboxTest;
use Test::More;

my $API = '/console/api/v1';
my $t = SandboxTest->new(workers => 2);
my $brief = $t->secret('sbx_brief_' . SandboxTest::random_text(32));
SandboxTest::write_file($t->{token_file}, SandboxTest::read_file($t->{token_file})
    . 'brief ' . sha256_hex($brief) . ' role=viewer expires='
    . SandboxTest::utc(time + 6) . "\n");
$t->start;
$t->sandbox('s1');

sub metric {
    my $name = shift;
    my ($n) = $t->get("$API/metrics")->content =~ /^sandbox_gateway_$name (\d+)$/m;
    return $n;
}

sub drop {
    my $id = shift;
    my $text = SandboxTest::read_file($t->{token_file});
    $text =~ s/^$id .*\n//m;
    SandboxTest::write_file($t->{token_file}, $text);
    $t->reload;
}

# Reads until the connection ends.

sub ends {
    my $socket = shift;

    local $SIG{ALRM} = sub { die "it goes on\n" };
    my $ended = eval {
        alarm 10;
        1 while sysread $socket, my $some, 4096;
        alarm 0;
        1;
    };
    alarm 0;

    return $ended;
}

# --- what lasts is cut

my %ws = map { $_ => $t->websocket('/v1/sandboxes/s1/proxy/8080/ws', token => $_) }
         qw(plain admin);
is($ws{$_}->status, 101, "$_ has a WebSocket open") for sort keys %ws;

my $live = $t->connect;
print { $live->{socket} } "GET $API/live HTTP/1.1\r\nHost: localhost\r\n",
    "OPEN-SANDBOX-API-KEY: $brief", "\r\n\r\n";
my $head = '';
while ($head !~ /\r\n\r\n/ && sysread $live->{socket}, my $some, 4096) {
    $head .= $some;
}
like($head, qr{^HTTP/1.1 200 }, 'a live stream with a token that ends soon');
ok(ends($live->{socket}), 'the stream ends with it');

drop('plain');
ok(ends($ws{plain}->conn->{socket}),
   'the WebSocket ends with its token');

$ws{admin}->send(1, 'still here');
is($ws{admin}->recv->{payload}, 'still here', 'those of others go on');
$ws{admin}->close;
is(metric('tokens_cut_total'), 2, 'it is counted');

# --- wrong ones

my $wrong = metric('wrong_tokens_total');
is($t->get('/v1/sandboxes', token => undef)->status, 401, 'who shows nothing');
is(metric('wrong_tokens_total'), $wrong, 'shows nothing wrong');

for my $i (1 .. 12) {
    my $r = $i % 3 == 0
        ? $t->request(POST => "$API/session", token => undef, body => '{"token":"x"}')
        : $t->get($i % 3 == 1 ? '/v1/sandboxes' : "$API/overview", token => 'nonsense');
    is($r->status, 401, "wrong token $i");
}

is(metric('wrong_tokens_total'), $wrong + 12, 'wrong tokens are counted');
cmp_ok(metric('wrong_tokens_slowed_total'), '>=', 1, 'and after some, slowed down');

my $slowed = metric('wrong_tokens_slowed_total');
is($t->get('/v1/sandboxes')->status, 200, 'who is right from the same address');
is(metric('wrong_tokens_slowed_total'), $slowed, 'does not wait');

my $c = $t->connect;
print { $c->{socket} } "GET /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\n",
    "OPEN-SANDBOX-API-KEY: nonsense\r\n\r\n";
close($c->{socket});
is($t->get('/v1/sandboxes')->status, 200, 'who leaves while it waits harms nobody');

# ... of more addresses than are remembered: one that has been quiet makes room

my @many = map { my $c = $t->connect(from => '127.9.9.9'); $c->write($c->build(
    GET => '/v1/sandboxes', headers => [ $t->credential(token => 'nonsense') ])); $c } 1 .. 100;
is(scalar(grep { $_->response->status != 401 } @many), 0, 'many wrong ones of one address');

sub slowed_of {
    my $before = metric('wrong_tokens_slowed_total');
    $t->get('/v1/sandboxes', token => 'nonsense', conn => $t->connect(from => $_[0]));
    return metric('wrong_tokens_slowed_total') - $before;
}

is(slowed_of('127.9.9.9'), 1, 'one more has to wait');
is(slowed_of('127.9.9.8'), 0, 'its neighbour has not');

my $refused = 0;

for my $i (0 .. 2499) {
    $refused += $t->get('/v1/sandboxes', token => 'nonsense', conn => $t->connect(
        from => sprintf '127.%d.%d.7', 100 + $i / 250, $i % 250))->status == 401;
}

is($refused, 2500, 'wrong ones of 2,500 addresses are refused');
is(slowed_of('127.9.9.9'), 0, 'the first has been forgotten for them');

$t->stop;
done_testing;
