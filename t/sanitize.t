#!/usr/bin/perl

# Tests of t/ once more on the build with the address and undefined sanitizers
# (make san): helper, runtime, launcher, sandbox-history and the module, inside
# the packaged nginx with libasan preloaded.  Here those that go through the
# most code in the least time; make soak runs all of t/ so.
#
# t/load.t runs on that build by itself.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Test::More;

use lib dirname(abs_path($0)) . '/lib';
use RunProgram qw(run_program);
use SanitizerBuild;

my @tests = qw(sanity record routes ambiguous stream upload websocket abort
               endpoints-answer headers journal-full real history-cli
               console-api);

SanitizerBuild::built()
    or plan(skip_all => 'needs the build with sanitizers: make san');

my $t = dirname(abs_path($0));

for my $name (@tests) {
    my ($status, $out) = run_program($^X, "-I$t/lib", "$t/$name.t");
    my $n = () = $out =~ /^ok /mg;

    ok($status == 0 && $out =~ /^1\.\.\d+$/m, "$name.t: $n tests")
        or diag(join "\n", grep { !/^ok / } split /\n/, $out);
}

done_testing;
