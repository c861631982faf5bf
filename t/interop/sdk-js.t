#!/usr/bin/perl

# The unmodified JavaScript SDK, in its default mode and with the server proxy.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use SandboxInterop;
use Test::More;

my $t = SandboxInterop::gateway();
my @program = SandboxInterop::node();

for my $mode (qw(default proxy)) {
    SandboxInterop::sequence($t, $mode, 'JavaScript SDK', '/tmp/fx/js.txt',
                             @program);
}

$t->stop;
done_testing;
