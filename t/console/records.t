#!/usr/bin/perl

# What a record is good for in the console: what it tells is done again, as it
# was or not at all; and files are shown as they stood then.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Test::More;

use SandboxConsole;

my $c = SandboxConsole->new;

$c->fact(sandbox => $c->sandbox('data-cleaning-7'));
$c->look('records');
$c->stop;

done_testing;
