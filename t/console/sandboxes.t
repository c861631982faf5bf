#!/usr/bin/perl

# Sandboxes in the console: made, paused, renewed, gone back with, opened and
# deleted, as people do it in a real browser.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Test::More;

use SandboxConsole;

my $c = SandboxConsole->new;

my $gone = $c->sandbox('old-experiment', image => 'node:22-slim');

$c->command($gone, 'echo before-it-went');
$c->ask(DELETE => "/v1/sandboxes/$gone");
$c->fact(sandbox => $c->sandbox('data-cleaning-7'), other => $c->sandbox('report-builder'));
$c->look('sandboxes');
$c->stop;

done_testing;
