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

$c->fact(sandbox => $c->sandbox('data-cleaning-7'), other => $c->sandbox('report-builder'));
$c->look('sandboxes');
$c->stop;

done_testing;
