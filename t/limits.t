#!/usr/bin/perl

# How many operations run at once in a sandbox, over all workers: a slot is taken
# last, and given back with the answer; who finds no place is refused.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $API = '/console/api/v1';
my $limits = 'sandbox_limits commands=2 uploads=1 reads=off queue=1 timeout=';
my $t = SandboxTest->new(workers => 2, location => "sandbox_locks on; ${limits}300ms;")->start;
my $up = $t->up;
my $execd = '/v1/sandboxes/s1/proxy/44772';

$t->sandbox($_) for qw(s1 s2);
$up->script("POST $execd/command", [ 'hang' ]);
ok($t->wait_for(sub { $t->get("$API/sandboxes/s1/locks")->status == 200 }),
   'the helper is there');

sub state_of {
    return join ' ', sort map { $_->{state} }
        @{ $t->get("$API/sandboxes/s1/locks")->json->{items} // [] };
}

sub becomes {
    my ($want, $what) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $have;
    $t->wait_for(sub { ($have = state_of()) eq $want });
    is($have, $want, $what);
}

sub begin {
    my @headers = @_;

    my $c = $t->connect;
    $c->write($c->build(POST => "$execd/command", body => '{"command":"x"}',
                        headers => [ $t->credential, @headers ]));

    return $c;
}

my @c = map { begin() } 1 .. 2;
becomes('held held', 'two commands run');
my $started = time;
my $r = $t->post("$execd/command", body => '{"command":"x"}');
is($r->status, 429, 'a third waits, and is refused');
cmp_ok(time - $started, '>=', 0.3, 'after the time of the queue');
is($r->code, 'GATEWAY_BUSY', 'in the envelope');
is($r->header('Retry-After'), 1, 'with Retry-After');
is($t->record($r)->{result}{error_code}, 'GATEWAY_BUSY', 'it is on record');

$up->script("POST /v1/sandboxes/s2/proxy/44772/command", [ 'default' ]);
is($t->post('/v1/sandboxes/s2/proxy/44772/command', body => '{"command":"x"}')
     ->status, 200, 'another sandbox has slots of its own');
is($t->get("$execd/files/info?path=%2Fa")->status, 200, 'so has another kind');

# from here on who waits has time, however slow we are; those that run stay in the
# workers of before

SandboxTest::write_file("$t->{dir}/conf/nginx.conf",
                        $t->conf_text(location => "sandbox_locks on; ${limits}60s;"));
$t->reload;
$up->clear;
$up->script("POST $execd/command", [ 'default' ]);
my $waits = begin();
becomes('held held queued', 'one waits for a slot');
is($t->post("$execd/command", body => '{"command":"x"}')->status, 429,
   'a second one finds no place');
is(state_of(), 'held held queued', 'and is refused at once: the first one still waits');
(shift @c)->reset;
is($waits->response->status, 200, 'a slot that is given back is taken');
becomes('held', 'and given back with the answer');

# C127: who waits for a key holds no slot

my $l = $t->post("$API/sandboxes/s1/leases",
    body => '{"keys":[{"path":"/k","mode":"write"}]}')->json;
$t->secret($l->{token});
$waits = begin('X-Sandbox-Lock: write:/k');
becomes('held held waiting', 'it waits for a key');
is($t->post("$execd/command", body => '{"command":"x"}')->status, 200,
   'C127: another one has the slot');
$t->delete("$API/sandboxes/s1/leases/$l->{id}");
is($waits->response->status, 200, 'until it gets the key');
$_->reset for @c;
becomes('', 'nothing stays');

like($t->get("$API/metrics")->content, qr/limit_refused_total\S* 2$/m, 'they are counted');

$t->stop;

# C127: who sends its body slowly holds no slot, where there are neither locks nor rules

$t = SandboxTest->new(location => 'sandbox_limits uploads=1 queue=0;')->start;
$t->sandbox('s1');
ok($t->wait_for(sub { $t->get("$API/sandboxes/s1/locks")->status == 200 }), 'limits alone');
is($t->get("$execd/files/info?path=%2Fa")->status, 200, 'upstream knows the sandbox');

sub upload {
    my ($path) = @_;

    my $body = join "\r\n", '--B', 'Content-Disposition: form-data; name="metadata"; filename="m"',
        '', qq({"path":"$path"}), '--B', 'Content-Disposition: form-data; name="file"; filename="f"',
        '', 'x' x 5000, '--B--', '';
    my $c = $t->connect;
    $c->write($c->build(POST => "$execd/files/upload", headers => [ $t->credential,
        'Content-Type: multipart/form-data; boundary=B', 'Content-Length: ' . length $body ]));
    $c->write(substr $body, 0, 3000);

    return ($c, substr $body, 3000);
}

sub begun {
    return scalar grep { $_->{type} eq 'file.write' && $_->{status} eq 'started' }
        @{ $t->get("$API/sandboxes/s1/operations")->json->{items} // [] };
}

for my $try (1, 2) {
    my ($slow, $rest) = upload('/slow');
    ok($t->wait_for(sub { begun() == 1 }), 'an upload has begun, and stalls');
    for (1 .. 3) {
        my ($quick, $tail) = upload("/quick");
        $quick->write($tail);
        is($quick->response->status, 200, 'C127: another one goes on beside it');
        $slow->write(substr $rest, 0, 1, '');
    }

    is(begun(), 1, 'it is still there');
    $slow->reset;
    ok($t->wait_for(sub { begun() == 0 }), 'it is over');
}

my ($slow, $tail) = upload('/slow');
ok($t->wait_for(sub { begun() == 1 }), 'one begins');
$slow->write($tail);
is($slow->response->status, 200, 'and ends well');

# a slot is held where nobody waits for the client: while upstream works

$t->up->script("POST $execd/files/upload", [ 'hang' ]);
my ($busy, $last) = upload('/busy');
$busy->write($last);
ok($t->wait_for(sub {
    my ($item) = @{ $t->get("$API/sandboxes/s1/locks")->json->{items} // [] };
    return $item && $item->{state} eq 'held' }), 'one is upstream');
my ($late, $more) = upload('/late');
$late->write($more);
is($late->response->status, 429, 'then there is none for another');
$busy->reset;

$t->stop;
done_testing;
