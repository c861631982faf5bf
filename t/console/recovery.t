#!/usr/bin/perl

# Pages that stay open while the network is cut, nginx reloaded and the helper
# killed: they recover by themselves, and miss nothing.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Test::More;

use SandboxConsole;

my $c = SandboxConsole->new;

$c->fact(sandbox => $c->sandbox('data-cleaning-7'), gateway => $c->gateway->pid);
$c->look('recovery');
$c->stop;

done_testing;
