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
    my ($id, $path) = @_;

    my $r = $t->request(DELETE => "/v1/sandboxes/$id/proxy/44772/files?path=$path");

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
is(remove('older', '/red/a'), 'passes', 'and then it is known to all workers') for 1 .. 8;

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
$t->sandbox('silent', metadata => { team => 'red' });
$up->script('GET /v1/sandboxes/silent', [ 'close' ]);
is(remove('silent', '/red/a'), 'frozen', 'so is what it does not tell');
$up->script('GET /v1/sandboxes/silent');
is(remove('silent', '/red/a'), 'passes', 'until it does');
$up->sandbox('liar', metadata => { team => 'red' });
$up->script('GET /v1/sandboxes/liar', [ send => "HTTP/1.1 200 OK\r\nContent-Length: 38\r\n\r\n"
    . '{"id":"other","metadata":{"team":"x"}}' ]);
is(remove('liar', '/red/a'), 'frozen', 'an answer about another one does not count');

# a client that leaves while upstream is asked

$t->sandbox('slow', metadata => { team => 'red' });
$up->script('GET /v1/sandboxes/slow', [ pause => 0.5 ], [ 'default' ]);
my $c = $t->connect;
$c->write($c->build(DELETE => '/v1/sandboxes/slow/proxy/44772/files?path=/red/a',
                    headers => [ $t->credential ]));
ok($t->wait_for(sub { scalar $up->requests(qr{/sandboxes/slow$}, helper => 1) }),
   'upstream is asked');
$c->close;
select undef, undef, undef, 0.8;
$up->script('GET /v1/sandboxes/slow');
is(remove('slow', '/red/a'), 'passes', 'after a client that left');

$t->stop;
done_testing;
