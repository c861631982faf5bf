#!/usr/bin/perl

# Every fuzz target of t/fuzz on its seeds, built with the sanitizers.  The
# seeds of fuzz_NAME lie in t/fuzz/seeds/NAME.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Test::More;

use lib dirname(abs_path($0)) . '/lib';
use RunProgram qw(run_program sources);

my $root = dirname(dirname(abs_path($0)));
my @names = sources("$root/t/fuzz", 'fuzz_');

ok(scalar @names, 'there are fuzz targets');

for my $name (@names) {
    my $program = "$root/build/t/fuzz/$name";
    my $seeds = "$root/t/fuzz/seeds/" . $name =~ s/^fuzz_//r;
    my @files;

    if (!-x $program) {
        fail("$name is built");
        next;
    }

    if (opendir my $dh, $seeds) {
        @files = map { "$seeds/$_" } sort grep { !/^\./ } readdir $dh;
    }

    if (!@files) {
        fail("$name has seeds");
        next;
    }

    my ($status, $out) = run_program($program, @files);

    ok($status == 0, "$name: " . @files . ' seeds') or diag($out);
}

done_testing;
