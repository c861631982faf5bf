#!/usr/bin/perl

# The unmodified Python SDK, in its default mode and with the server proxy; the
# newest one and the one that the published history package works with.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use SandboxInterop;
use Test::More;

my $t = SandboxInterop::gateway();

for my $sdk ([ 'venv', 'requirements.txt' ],
             [ 'venv-newest', 'requirements-newest.txt' ])
{
    my $python = SandboxInterop::python(@$sdk);

    for my $mode (qw(default proxy)) {
        SandboxInterop::sequence($t, $mode, "Python SDK ($sdk->[1])",
            '/tmp/fx/py.txt', $python, "$FindBin::Bin/sdk.py");
    }
}

$t->stop;
done_testing;
