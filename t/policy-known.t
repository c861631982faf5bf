#!/usr/bin/perl

# What rules ask about a sandbox: its metadata, and where the create request mounts
# volumes.  Learnt at create, asked of upstream when it is not known; what is not known
# counts against the operation.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;

my $t = SandboxTest->new(location => 'sandbox_policy policy;', workers => 2);

SandboxTest::write_file("$t->{dir}/conf/policy", <<'END');
deny frozen { operation file.delete; metadata state=frozen; }
allow red { operation file.*; metadata team=red; path /red/; }
deny outside {
    operation  file.delete dir.*;
    access     write;
    not path   /workspace <mounts>;
}
deny in-mounts { operation file.chmod; path <mounts>; }
default allow;
END
$t->start;

my $up = $t->up;


sub make {
    my $body = shift;

    my $r = $t->post('/v1/sandboxes', body => $body);
    is($r->status, 202, 'a sandbox is made') or diag $r->content;

    return $r->json->{id};
}

sub remove {
    my ($id, $path, @conn) = @_;

    my $r = $t->request(DELETE => "/v1/sandboxes/$id/proxy/44772/files?path=$path", @conn);

    return $r->status == 200 ? 'passes' : $r->json->{details}{rule} // $r->status;
}


# --- mounts -------------------------------------------------------------------------------

my $id = make('{"image":{"uri":"a"},"metadata":{"team":"blue"},"volumes":['
    . '{"name":"d","mountPath":"/data","host":{"path":"/x"}},'
    . '{"name":"e","mountPath":"//srv/./deep/","pvc":{"claimName":"c"}},'
    . '{"name":"r","mountPath":"/ro","readOnly":true,"pvc":{"claimName":"c"}},'
    . '{"name":"c","mountPath":"/a/../etc","pvc":{"claimName":"c"}},'
    . '{"name":"s","mountPath":"/","pvc":{"claimName":"c"}},'
    . '{"name":"t","mountPath":"/./","pvc":{"claimName":"c"}}]}');

is(remove($id, $_), 'passes', "$_ is in a mount") for '/workspace/a', '/data/a', '/data/a/b',
    '/srv/deep/a', '//data/./a';
is(remove($id, $_), 'outside', "$_ is in none") for '/etc/a', '/database', '/dat', '/srv/a',
    '/ro/a', '/', '/a';

my $r = $t->post("/v1/sandboxes/$id/proxy/44772/files/permissions",
                 body => '{"/data/x":{"mode":644}}');
is($r->json->{details}{rule}, 'in-mounts', 'a rule may deny what is in mounts');
$r = $t->post("/v1/sandboxes/$id/proxy/44772/files/permissions",
              body => '{"/dat/x":{"mode":644}}');
is($r->status, 200, 'and not what is not');

my $none = make('{"image":{"uri":"a"}}');
is(remove($none, '/data/a'), 'outside', "another sandbox's mounts are not its own");
is(remove($none, '/workspace/a'), 'passes', 'of a sandbox without any');

# one that was made before us

$t->sandbox('old', metadata => { team => 'blue' });
is(remove('old', '/data/a'), 'outside', 'what is not known to be a mount is none');
$r = $t->post('/v1/sandboxes/old/proxy/44772/files/permissions',
              body => '{"/dat/x":{"mode":644}}');
is($r->json->{details}{rule}, 'in-mounts', 'and may be one where that is denied');


# --- metadata -----------------------------------------------------------------------------

is(remove('old', '/red/a'), 'outside', 'blue is not red');

$t->sandbox('older', metadata => { team => 'red' });
is(remove('older', '/red/a'), 'passes', 'upstream is asked for metadata');
$t->sandbox('older', metadata => { team => 'blue' });
my %to = $t->to_each_worker;
is(remove('older', '/red/a', conn => $_), 'passes', 'and then it is known to each worker')
    for values %to;

my $red = make('{"image":{"uri":"a"},"metadata":{"team":"red"}}');
$up->sandbox($red, metadata => { team => 'blue' });
is(remove($red, '/red/a'), 'passes', 'metadata of the create request is known');

# it changes

$up->sandbox($red, metadata => { team => 'red', state => 'frozen' });
$r = $t->request(PATCH => "/v1/sandboxes/$red/metadata", body => '{"state":"frozen"}',
                 headers => [ 'Content-Type: application/merge-patch+json' ]);
is($r->status, 200, 'metadata is changed');
is(remove($red, '/workspace/a'), 'frozen', 'and the change is seen');
is(remove($id, '/data/a'), 'passes', 'of another sandbox nothing changes');

# nobody knows it

is(remove('nobody', '/red/a'), 'frozen', 'what upstream does not know is denied');
old('silent', team => 'red');
$up->script('GET /v1/sandboxes/silent', [ 'close' ]);
is(remove('silent', '/red/a'), 'frozen', 'so is what it does not tell');
$up->script('GET /v1/sandboxes/silent');
is(remove('silent', '/red/a'), 'passes', 'until it does');
$up->sandbox('liar', metadata => { team => 'red' });
$up->script('GET /v1/sandboxes/liar', [ send => "HTTP/1.1 200 OK\r\nContent-Length: 38\r\n\r\n"
    . '{"id":"other","metadata":{"team":"x"}}' ]);
is(remove('liar', '/red/a'), 'frozen', 'an answer about another one does not count');

# a client that leaves while upstream is asked

old('slow', team => 'red');
$up->script('GET /v1/sandboxes/slow', upstream_waits('slow', 'slow', team => 'red'));
my $c = $t->connect;
$c->write($c->build(DELETE => '/v1/sandboxes/slow/proxy/44772/files?path=/red/a',
                    headers => [ $t->credential ]));
ok($t->wait_for(sub { asked('slow') > 1 }), 'upstream is asked');
$c->close;
ok($t->wait_for(sub { $t->log_text('access.log') =~ m{DELETE /v1/sandboxes/slow/\S+ \S+ 499 } }),
   'the client has left');
$up->script('GET /v1/sandboxes/slow');
$up->release('slow');
is(remove('slow', '/red/a'), 'passes', 'after a client that left');


# --- a change passes meanwhile ------------------------------------------------------------

my @merge = (headers => [ 'Content-Type: application/merge-patch+json' ]);

sub upstream_waits {
    my ($id, $name, %metadata) = @_;

    my $body = JSON::PP::encode_json({ id => $id, status => { state => 'Running' },
                                       metadata => \%metadata });

    return [ until => $name ], [ send => "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        . 'Content-Length: ' . length($body) . "\r\n\r\n$body" ];
}

sub asked {
    my $id = shift;

    return scalar $up->requests(qr{^GET /v1/sandboxes/$id$}, helper => 1);
}

# One that has a history, for which the helper asks once.  What is not answered within
# a second it does not ask again for 30 s, of any sandbox: here, each that upstream
# leaves waiting has its history before.

sub old {
    my ($id, %metadata) = @_;

    $t->sandbox($id, metadata => \%metadata);
    $t->post("/v1/sandboxes/$id/proxy/44772/command", body => '{"command":"true"}');
    ok($t->wait_for(sub { asked($id) == 1 }), "$id is asked for by its history");
}

sub start_remove {
    my $id = shift;

    my $c = $t->connect;
    $c->write($c->build(DELETE => "/v1/sandboxes/$id/proxy/44772/files?path=/red/a",
                        headers => [ $t->credential ]));

    return $c;
}

sub ends {
    my $r = shift->response;

    return $r->status == 200 ? 'passes' : $r->json->{details}{rule} // $r->status;
}

# upstream has answered what it was asked before the change, the answer comes after it

for my $known (0, 1) {
    my $id = "late$known";

    old($id, team => 'red');

    if ($known) {
        is(remove($id, '/red/a'), 'passes', 'known before');
        is($t->request(PATCH => "/v1/sandboxes/$id/metadata", body => '{"a":"b"}', @merge)
             ->status, 200, 'and changed once');
    }

    my $before = asked($id);

    $up->script("GET /v1/sandboxes/$id", upstream_waits($id, $id, team => 'red'));
    my $c = start_remove($id);
    ok($t->wait_for(sub { asked($id) > $before }), 'upstream is asked');

    $up->script("GET /v1/sandboxes/$id");
    $up->sandbox($id, metadata => { team => 'red', state => 'frozen' });
    is($t->request(PATCH => "/v1/sandboxes/$id/metadata", body => '{"state":"frozen"}', @merge)
         ->status, 200, 'meanwhile it is frozen');
    $up->release($id);

    is(ends($c), 'frozen', 'the old answer does not count');
    is(asked($id), $before + 2, 'it is asked again');
    is(remove($id, '/red/a'), 'frozen', 'for nobody') for 1 .. 4;
    $c->close;
}

# it changes all the time

old('moving', team => 'red');
$up->script('GET /v1/sandboxes/moving', upstream_waits('moving', 'moving-1', team => 'red'));
$c = start_remove('moving');

for my $n (1 .. 3) {
    ok($t->wait_for(sub { asked('moving') == $n + 1 }), 'upstream is asked');
    $up->script('GET /v1/sandboxes/moving', upstream_waits('moving', 'moving-' . ($n + 1),
                                                           team => 'red'));
    is($t->request(PATCH => '/v1/sandboxes/moving/metadata', body => '{"a":"b"}', @merge)
         ->status, 200, 'and it changes');
    $up->release("moving-$n");
}

is(ends($c), 'frozen', 'what changes all the time is not known');
is(asked('moving'), 4, 'and not asked for ever');
$c->close;
$up->script('GET /v1/sandboxes/moving');
is(remove('moving', '/red/a'), 'passes', 'until it is at rest');

# the change has no answer: nobody knows when it is carried out

for my $how ('close', 'leave') {
    my $id = "unsure-$how";

    $t->sandbox($id, metadata => { team => 'red' });
    is(remove($id, '/red/a'), 'passes', 'it is known');

    $up->script("PATCH /v1/sandboxes/$id", $how eq 'close' ? [ 'close' ] : [ 'hang' ]);

    if ($how eq 'close') {
        is($t->request(PATCH => "/v1/sandboxes/$id/metadata", body => '{"state":"frozen"}',
                       @merge)->status, 502, 'upstream leaves');

    } else {
        my $c = $t->connect;
        $c->write($c->build(PATCH => "/v1/sandboxes/$id/metadata", body => '{"state":"frozen"}',
                            headers => [ $t->credential, @{ $merge[1] } ]));
        my $patch;
        ok($t->wait_for(sub { ($patch) = $up->requests(qr{^PATCH .*$id}) }), 'it is on its way');
        $c->close;
        # (of another connection it would tell nothing)
        ok($t->wait_for(sub { grep { $_->{kind} eq 'closed' && $_->{conn} == $patch->{conn} }
                              $up->entries }), 'the client leaves');
    }

    is(remove($id, '/red/a'), 'passes', 'upstream has not done it yet') for 1 .. 2;
    $up->sandbox($id, metadata => { team => 'red', state => 'frozen' });
    is(remove($id, '/red/a'), 'frozen', 'and is asked until it has');
}

# an upload is judged by what is known at its end

SandboxTest::write_file("$t->{dir}/conf/policy", <<'END');
deny frozen { operation file.*; metadata state=frozen; }
deny big { operation file.write; file_size > 1m; }
default allow;
END
$t->reload;

$t->sandbox('upload', metadata => { team => 'red' });

my $part = qq{--b\r\nContent-Disposition: form-data; name="metadata"; filename="m"\r\n}
    . qq{Content-Type: application/json\r\n\r\n{"path":"/workspace/a"}\r\n}
    . qq{--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nhello\r\n};

$c = $t->connect;
$c->write($c->build(POST => '/v1/sandboxes/upload/proxy/44772/files/upload', headers => [
    $t->credential, 'Content-Type: multipart/form-data; boundary=b',
    'Content-Length: ' . (length($part) + 7) ]) . $part);
ok($t->wait_for(sub { asked('upload') }), 'upstream is asked while the upload comes');
$up->sandbox('upload', metadata => { state => 'frozen' });
is($t->request(PATCH => '/v1/sandboxes/upload/metadata', body => '{"state":"frozen"}', @merge)
     ->status, 200, 'meanwhile it is frozen');
$c->write("--b--\r\n");
is(ends($c), 'frozen', 'and the upload is refused');

# a sandbox that is changed before its create request is answered

$t->sandbox('young', metadata => { state => 'frozen' });
$up->script('POST /v1/sandboxes', [ until => 'young' ],
            [ send => "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\n"
                . "Content-Length: 14\r\n\r\n" . '{"id":"young"}' ]);
$c = $t->connect;
$c->write($c->build(POST => '/v1/sandboxes', body => '{"image":{"uri":"a"},"metadata":{}}',
                    headers => [ $t->credential, 'Content-Type: application/json' ]));
ok($t->wait_for(sub { grep { index($_->{body} // '', '"metadata":{}') > 0 }
                      $up->requests(qr{^POST /v1/sandboxes$}) }), 'one is being made');
is($t->request(PATCH => '/v1/sandboxes/young/metadata', body => '{"state":"frozen"}', @merge)
     ->status, 200, 'it is frozen');
$up->release('young');
is($c->response->status, 202, 'and made');
is(remove('young', '/a'), 'frozen', 'it stays frozen');

# a reload while upstream is asked: who waits is served by the old worker

old('reloaded', team => 'red');
$up->script('GET /v1/sandboxes/reloaded',
            upstream_waits('reloaded', 'reload', team => 'red'));
$c = start_remove('reloaded');
ok($t->wait_for(sub { asked('reloaded') > 1 }), 'upstream is asked');
$up->script('GET /v1/sandboxes/reloaded');
my @old = $t->worker_pids;
$t->reload;
ok(!$t->wait_for(sub { !grep { -d "/proc/$_" } @old },
                 1.5 / $SandboxProcess::PATIENCE), 'one of the old workers stays');
$up->release('reload');
is(eval { ends($c) } // $@, 'passes', 'its answer comes after the reload');
ok($t->wait_for(sub { !grep { -d "/proc/$_" } @old }), 'then it leaves');

$t->stop;
done_testing;
