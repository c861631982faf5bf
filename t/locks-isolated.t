#!/usr/bin/perl

# Files of isolated sessions: who writes one is alone with it in its session, over
# all workers; other sessions and the sandbox's own files are others.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;

my $LOCKS = '/console/api/v1/sandboxes/s1/locks';
my $t = SandboxTest->new(workers => 2, location => 'sandbox_locks on;')->start;
my $up = $t->up;
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $i1 = "$execd/v1/isolated/session/i1";
my $soon = 'X-Sandbox-Lock-Timeout: 100ms';
my @type = ('Content-Type: multipart/form-data; boundary=B');
my @answer = ([ send => "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                        . "Content-Length: 2\r\n\r\n{}" ]);

$t->sandbox('s1');
ok($t->wait_for(sub { $t->get($LOCKS)->status == 200 }), 'the helper is there');

# whatever it is asked for, upstream does it
$up->script(qr{/v1/isolated/session/}, @answer);

sub locks { @{ $t->get($LOCKS)->json->{items} // [] } }

sub begin {
    my ($method, $target, $body, @headers) = @_;

    my $c = $t->connect;
    $c->write($c->build($method => $target, body => $body,
                        headers => [ $t->credential, @headers ]));

    return $c;
}

sub held {
    my ($what, $key) = @_;

    my ($held, @more);
    ok($t->wait_for(sub { ($held, @more) = locks(); $held && $held->{state} eq 'held' }), $what);
    is_deeply([ map { "$_->{mode}:$_->{path}" } @{ $held->{keys} } ], [ $key ], 'by this key');
    is(scalar @more, 0, 'and nothing else');
}

# Sends it; does it have to wait?

sub waits { status(423, @_) }
sub goes { status(200, @_) }

sub status {
    my ($want, $what, $method, $target, $body, @headers) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 2;
    my $r = begin($method, $target, $body, $soon, @headers)->response;
    is($r->status, $want, "$what: " . ($want == 423 ? 'waits' : 'goes on')) or diag($r->content);

    return $r;
}

sub upload { return ("$_[0]/files/upload", SandboxTest::upload_body($_[1], 'x'), @type) }


# --- an upload is on its way

$up->script("POST $i1/files/upload", [ until => 'first' ], @answer);
my $first = begin(POST => upload($i1, '/w/a'));
held('an upload holds', 'write:isolated:i1/w/a');
ok($up->wait_request(qr{/files/upload}), 'and is at upstream');
$up->script("POST $i1/files/upload", @answer);

my $r = waits('another one', POST => upload($i1, '/w/a'));
is($r->code, 'GATEWAY_LOCK_TIMEOUT', 'in the envelope');
is($r->json->{details}{key}, 'isolated:i1/w/a', 'it says for what');
is($r->json->{details}{holder}{id}, [ locks() ]->[0]{id}, 'and who holds it');

waits('by another spelling', POST => upload($i1, '/w//x/.././a'));
waits('by a relative path', POST => upload($i1, 'w/a'));
waits('one below', POST => upload($i1, '/w/a/b'));
waits('who reads it', GET => "$i1/files/download?path=%2Fw%2Fa");
waits('who asks about it', GET => "$i1/files/info?path=%2Fw%2Fa");
waits('who deletes it', DELETE => "$i1/files?path=%2Fw%2Fa");
waits('who deletes what it lies in', DELETE => "$i1/directories?path=%2Fw");
waits('who moves it away', POST => "$i1/files/mv", '[{"src":"/w/a","dest":"/w/b"}]');
waits('who moves something there', POST => "$i1/files/mv", '[{"src":"/w/b","dest":"/w/a"}]');
waits('who changes its mode', POST => "$i1/files/permissions", '{"/w/a":{"mode":600}}');
waits('who replaces in it', POST => "$i1/files/replace", '{"/w/a":{"old":"x","new":"y"}}');
waits('who commits the session', POST => "$i1/commit", '{}');
waits('who ends the session', DELETE => $i1);

goes('another file', POST => upload($i1, '/w/ab'));
goes('a listing', GET => "$i1/directories/list?path=%2Fw");
goes('the same in another session', POST => upload("$execd/v1/isolated/session/i10", '/w/a'));
goes('the end of another session', DELETE => "$execd/v1/isolated/session/i10");
goes('the same in the sandbox', POST => upload($execd, '/w/a'));
goes('a key of the sandbox', POST => "$execd/command", '{"command":"true"}',
     'X-Sandbox-Lock: write:/w/a');

# who waits long enough goes on when it is free

my $second = begin(POST => upload($i1, '/w/a'));
ok($t->wait_for(sub { grep { $_->{state} eq 'waiting' } locks() }), 'the next one waits');
$up->release('first');
is($first->response->status, 200, 'the first one is done');
is($second->response->status, 200, 'so is the next');
ok($t->wait_for(sub { !locks() }), 'and nothing stays');


# --- readers share, and a session as a whole

$up->script("GET $i1/files/download?path=%2Fw%2Fa", [ until => 'read' ], @answer);
my $reader = begin(GET => "$i1/files/download?path=%2Fw%2Fa");
held('a download holds', 'read:isolated:i1/w/a');
goes('another reader', GET => "$i1/files/info?path=%2Fw%2Fa");
waits('a writer', POST => upload($i1, '/w/a'));
$up->release('read');
is($reader->response->status, 200, 'it is done');

$up->script("POST $i1/commit", [ until => 'commit' ], @answer);
my $commit = begin(POST => "$i1/commit", '{}');
held('a commit holds', 'write:isolated:i1');
waits('an upload', POST => upload($i1, '/anything'));
waits('a relative one', POST => upload($i1, 'anything'));
goes('one in the sandbox', POST => upload($execd, '/anything'));
$up->release('commit');
is($commit->response->status, 200, 'it is done');

# more than can be told: all there is

$up->script("POST $i1/files/upload", [ until => 'many' ], @answer);
my $many = begin(POST => "$i1/files/upload",
                 SandboxTest::upload_body(map { ("/w/$_", 'x') } 1 .. 70), @type);
ok($t->wait_for(sub { grep { $_->{state} eq 'held' } locks() }), 'an upload of 70 files');
is_deeply([ sort map { "$_->{mode}:$_->{path}" } @{ [ locks() ]->[0]{keys} } ],
          [ 'write:.', 'write:/' ], 'holds all there is');
waits('another session', DELETE => "$execd/v1/isolated/session/i2/files?path=%2Fw");
$up->release('many');
is($many->response->status, 200, 'it is done');

$t->stop;
done_testing;
