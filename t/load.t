#!/usr/bin/perl

# 64 clients at once mix commands, files, streams and terminals against the
# gateway and the local runtime, all built with the address and undefined
# sanitizers: every answer right, no report, no error, flat memory, and exactly
# the records of what passed.  15 s here; make soak: a minute so, an hour without
# sanitizers (t/load.t --plain SECONDS).  SOAK_THINK: seconds that a client waits
# at most between two of its operations (0), where other work shares the machine.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;

my ($plain, $seconds);

BEGIN {
    $plain = @ARGV && $ARGV[0] eq '--plain' && shift @ARGV;
    $seconds = shift(@ARGV)
               // (($ENV{T_SCALE} // 1) > 1 ? 60 : 15);

    if (!$plain && !$ENV{SANDBOX_BUILD}) {
        require SanitizerBuild;
        SanitizerBuild::built()
            or plan(skip_all => 'needs the build with sanitizers: make san');
        SanitizerBuild->import;
    }
}

use SoakLoad;

my $load = SoakLoad->new(
    seconds => $seconds,
    every   => $seconds > 300 ? 60 : 10,
    lag_max => $plain ? 5 : 30,
    think   => $ENV{SOAK_THINK} // 0,
);

ok($load->run, "$load->{clients} clients for $seconds s");
diag(join "\n", $load->problems) if $load->problems;

$plain ? diag($load->summary) : note($load->summary);

done_testing;
