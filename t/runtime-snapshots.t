#!/usr/bin/perl

# sandbox-runtime: snapshots, and sandboxes that begin with one.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use LocalRuntime;
use SandboxProcess;

my $rt = LocalRuntime->start('--grace=0');
my %FROM = (%LocalRuntime::MINIMAL, image => undef, entrypoint => undef);
my $UUID = qr/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;


sub state_of { $rt->call(GET => "/v1/snapshots/$_[0]")->json->{status}{state} }


# Makes one and waits until it is ready.

sub snapshot {
    my ($box, $body) = @_;

    my $r = $rt->call(POST => "/v1/sandboxes/$box/snapshots", $body);
    die 'snapshot: ' . $r->content . "\n" if $r->status != 202;
    my $id = $r->json->{id};
    SandboxProcess->wait_for(sub { state_of($id) ne 'Creating' }, 20);

    return ($id, $r);
}


# --- one is made --------------------------------------------------------------

my $box = $rt->create(metadata => { team => 'a' }, env => { A => 'secret' });

$rt->run($box, 'mkdir -p /workspace/d; echo kept > /workspace/d/f;'
    . ' chmod 2750 /workspace/d; chown 1000:8 /workspace/d/f;'
    . ' ln -s d/f /workspace/link; ln /workspace/d/f /workspace/hard;'
    . ' mkfifo /workspace/pipe; echo x > "/workspace/sp ace";'
    . ' touch -d 2020-01-02T03:04:05Z /workspace/link -h;'
    . ' echo etc > /etc/of-box; echo root > /root/of-box; sleep 4713 &');

my ($id, $r) = snapshot($box, { name => 'first one' });
my $made = $r->json;

is($r->status, 202, 'a snapshot is accepted');
is($r->header('location'), "/v1/snapshots/$id", 'Location names it, with /v1');
like($id, $UUID, 'its id');
is($made->{sandboxId}, $box, 'of that sandbox');
is($made->{name}, 'first one', 'with its name');
is($made->{status}{state}, 'Creating', 'it is being made');
is_deeply([ sort keys %$made ], [ qw(createdAt id name sandboxId status) ],
          'nothing else');
is(state_of($id), 'Ready', 'then ready');
is($rt->call(GET => "/sandboxes/$box")->json->{status}{state}, 'Running',
   'the sandbox runs on');
is($rt->run($box, 'pgrep -c -f "sleep 471[3]"'), '1', 'with its processes');

my ($plain) = snapshot($box);
ok(!exists $rt->call(GET => "/snapshots/$plain")->json->{name},
   'a name need not be given');
is($rt->call(POST => "/sandboxes/$box/snapshots", { name => '' })
       ->json->{detail}[0]{type}, 'string_too_short', 'but is not empty');
is($rt->call(POST => "/sandboxes/$box/snapshots", { name => 5 })->status, 422,
   'and a text');
is($rt->call(POST => '/sandboxes/nope/snapshots')->json->{code},
   'DOCKER::SANDBOX_NOT_FOUND', 'of an unknown sandbox: 404');
is($rt->call(PUT => "/sandboxes/$box/snapshots")->status, 405,
   'another method: 405');

$rt->call(POST => "/sandboxes/$box/pause");
$r = $rt->call(POST => "/sandboxes/$box/snapshots");
is($r->status . ' ' . $r->code, '409 SNAPSHOT::INVALID_SOURCE_STATE',
   'not of a paused one');
$rt->call(POST => "/sandboxes/$box/resume");


# --- lists ----------------------------------------------------------------------

my $other = $rt->create;
my ($foreign) = snapshot($other);

sub ids { [ map { $_->{id} } @{ $rt->call(GET => "/v1/snapshots$_[0]")
                                    ->json->{items} } ] }

is_deeply(ids(''), [ $foreign, $plain, $id ], 'newest first');
is_deeply(ids("?sandboxId=$box"), [ $plain, $id ], 'of one sandbox');
is_deeply(ids('?state=Ready&state=Failed&pageSize=1&page=2'), [ $plain ],
          'by state, page by page');
is_deeply(ids('?state=ready'), [], 'whose case counts');
is_deeply($rt->call(GET => '/snapshots?pageSize=2')->json->{pagination},
          { page => 1, pageSize => 2, totalItems => 3, totalPages => 2,
            hasNextPage => JSON::PP::true }, 'pagination');
is($rt->call(GET => '/snapshots?page=0')->status, 422, 'page 0: 422');
is($rt->call(GET => '/snapshots/nope')->code, 'SNAPSHOT::NOT_FOUND',
   'an unknown one');


# --- a sandbox begins with one ----------------------------------------------------

$rt->run($box, 'echo changed > /workspace/d/f; rm /etc/of-box');

$r = $rt->call(POST => '/v1/sandboxes', { %FROM, snapshotId => $id });
is($r->status, 202, 'a sandbox begins with a snapshot');
my $new = $r->json->{id};
is_deeply($r->json->{entrypoint}, [ 'tail', '-f', '/dev/null' ],
          'with the usual entrypoint');

my $shown = $rt->call(GET => "/sandboxes/$new")->json;
is($shown->{snapshotId}, $id, 'which it names');
ok(!exists $shown->{image}, 'instead of an image');
ok(!exists $shown->{metadata}, 'metadata is not copied');

is($rt->run($new, 'cat /workspace/d/f /etc/of-box /root/of-box'),
   "kept\netc\nroot", 'it has the files as they were');
is($rt->run($new, 'stat -c "%a %u %g" /workspace/d /workspace/d/f;'
                  . ' stat -c %h /workspace/hard; readlink /workspace/link;'
                  . ' stat -c %F /workspace/pipe; cat "/workspace/sp ace"'),
   join("\n", '2750 0 0', '644 1000 8', 2, 'd/f', 'fifo', 'x'),
   'owners, modes, links, pipes') if $> == 0;
is($rt->run($new, 'pgrep -c -f "sleep 471[3]"'), '0', 'but no processes');
is($rt->run($new, 'echo "[$A]"'), '[]', 'and no environment');
is($rt->run($new, 'cat /etc/hostname; grep -c "$(cat /etc/hostname)" /etc/hosts'),
   substr($new, 24) . "\n1", 'it has a host name of its own');

$rt->run($new, 'echo mine > /workspace/d/f');
is($rt->run($box, 'cat /workspace/d/f'), 'changed',
   'what it writes stays there');

$r = $rt->call(POST => '/v1/sandboxes', { %FROM, snapshotId => 'nope' });
is($r->status . ' ' . $r->code, '404 SNAPSHOT::NOT_FOUND',
   'an unknown snapshot');
is($rt->call(POST => '/v1/sandboxes', { %LocalRuntime::MINIMAL,
    snapshotId => $id })->status, 422, 'an image and a snapshot');
is($rt->call(POST => '/v1/sandboxes', { %FROM })->status, 422, 'neither');


# --- what a sandbox left behind is not followed -------------------------------------

$rt->run($other, 'mv /opt /opt-was; ln -s /workspace/trap /opt;'
    . ' mkdir -p /workspace/trap/opensandbox;'
    . ' rm -rf /etc/hosts; ln -s /workspace/victim /etc/hosts;'
    . ' echo safe > /workspace/victim; rm -f /etc/hostname;'
    . ' mkfifo /etc/hostname');
my ($odd) = snapshot($other);
$r = $rt->call(POST => '/v1/sandboxes', { %FROM, snapshotId => $odd });
is($r->status, 202, 'a tree full of traps');
my $odd_box = $r->json->{id};
is($rt->run($odd_box, 'cat /workspace/victim; cat /etc/hostname;'
                      . ' test -L /opt || echo real;'
                      . ' ls /workspace/trap/opensandbox'),
   join("\n", 'safe', substr($odd_box, 24), 'real'),
   'no link in it was followed');


# --- the end ----------------------------------------------------------------------

$r = $rt->call(DELETE => "/snapshots/$id");
is($r->status . ' ' . $r->code, '409 SNAPSHOT::DELETE_CONFLICT',
   'one that is in use stays');
is(state_of($id), 'Deleting', 'and waits');
$r = $rt->call(POST => '/v1/sandboxes', { %FROM, snapshotId => $id });
is($r->status . ' ' . $r->code, '409 SNAPSHOT::NOT_READY',
   'no further sandbox begins with it');
is($rt->call(DELETE => "/sandboxes/$new")->status, 204, 'after the sandbox');
is($rt->call(DELETE => "/snapshots/$id")->status, 204, 'it is deleted');
is($rt->call(DELETE => "/snapshots/$id")->status, 404, 'once');
is(-e "$rt->{dir}/data/snapshots/$id" ? 1 : 0, 0, 'with its files');

is($rt->call(DELETE => "/snapshots/$plain")->status, 204,
   'one that nobody uses');
is_deeply(ids(''), [ $odd, $foreign ], 'the others are there');

is($rt->complaints, '', 'nothing bad in any log');
is($rt->stop, 0, 'SIGTERM');

done_testing;
