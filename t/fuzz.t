#!/usr/bin/perl

# Every fuzz target of t/fuzz, built with the sanitizers: its seeds (those of
# fuzz_NAME lie in t/fuzz/seeds/NAME), then what comes out of changing them, for
# FUZZ_SECONDS (5) each, two at a time.  make soak has libFuzzer do it for longer.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp;
use POSIX ();
use Test::More;

use lib dirname(abs_path($0)) . '/lib';
use RunProgram qw(sources);

my $root = dirname(dirname(abs_path($0)));
my @names = sources("$root/t/fuzz", 'fuzz_');

ok(scalar @names, 'there are fuzz targets');

my $seconds = $ENV{FUZZ_SECONDS} // 5;
my $tmp = File::Temp->newdir('sandbox-f-XXXXXX', TMPDIR => 1);
my %running;

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

    finish() while keys %running >= 2;

    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$tmp/$name.out";
        open STDERR, '>&', \*STDOUT;
        { exec $program, '-t', $seconds, '-s', "$tmp/$name.input", @files }
        POSIX::_exit(127);
    }

    $running{$pid} = $name;
}

finish() while %running;

done_testing;


# Waits for one of them.

sub finish {
    my $pid = wait;
    my $name = delete $running{$pid} // die "no child left\n";
    my $status = $?;
    my $out = read_text("$tmp/$name.out");
    my ($what) = $out =~ /^(\d+ seeds, .*)$/m;

    ok($status == 0 && defined $what, "$name: " . ($what // 'no end'))
        or do {
            my $kept = "$root/build/crash-$name";
            my $input = read_text("$tmp/$name.input");

            open my $fh, '>:raw', $kept or die "$kept: $!\n";
            print $fh substr $input, 4, unpack 'L', $input;
            close $fh;
            diag("$out\nstatus $status, the input is kept as $kept");
        };
}


sub read_text {
    my $path = shift;

    open my $fh, '<:raw', $path or return '';
    local $/;

    return scalar(<$fh>) // '';
}
