#!/usr/bin/perl

# What opens over the pages of the console, in a real browser and by keyboard
# alone.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Test::More;

use SandboxConsole;

my $c = SandboxConsole->new;
my $id = $c->sandbox('data-cleaning-7');

$c->command($id, 'for i in 1 2 3; do echo "line $i"; done; echo wrong >&2');
$c->write($id, "/tmp/db/$_.sql", "create table orders (id int);\n") for qw(schema one two three);
$c->ask(POST => "/console/api/v1/sandboxes/$id/leases",
        json => { keys => [ { path => '/tmp/held', mode => 'write' } ], ttl_ms => 900_000, owner => 'build' });
$c->ask(POST => '/console/api/v1/tokens', json => { role => 'viewer', actor => { id => 'reader' } });

$c->fact(sandbox => $id, gateway => $c->gateway->pid);
$c->look('dialogs');
$c->stop;

done_testing;
