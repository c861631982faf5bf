#!/usr/bin/perl

# Terminals in the console: real shells of the local runtime, typed into, left
# and found again, shared out, pasted into and flooded, in a real browser.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Test::More;

use SandboxConsole;

my $c = SandboxConsole->new;

$c->fact(sandbox => $c->sandbox('data-cleaning-7'), other => $c->sandbox('report-builder'));
$c->look('terminal');
$c->stop;

done_testing;
