#!/usr/bin/perl

# Every cmocka program of t/unit, built with the sanitizers.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Test::More;

use lib dirname(abs_path($0)) . '/lib';
use RunProgram qw(run_program sources);

my $root = dirname(dirname(abs_path($0)));
my @names = sources("$root/t/unit", 'test_');

ok(scalar @names, 'there are unit tests');

for my $name (@names) {
    my $program = "$root/build/t/unit/$name";

    if (!-x $program) {
        fail("$name is built");
        next;
    }

    my ($status, $out) = run_program($program);
    my ($passed) = $out =~ /\[  PASSED  \] (\d+) test/;

    ok($status == 0 && $passed, "$name: " . ($passed // 0) . ' tests')
        or do { diag($out); next };

    # what was measured
    diag("$name: $_") for grep { /^\d+ / } split /\n/, $out;
}

done_testing;
