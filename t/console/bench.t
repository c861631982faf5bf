#!/usr/bin/perl

# make bench BENCH=console: what the console costs a browser, shortly.  What it
# finds on a machine that others use says little; that it finds it is tested.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use JSON::PP;
use Test::More;

use SandboxTest;

chdir $SandboxProcess::ROOT or die "$SandboxProcess::ROOT: $!\n";

for ([ "console --seconds 2" => qr{^bench/console --seconds 2\s*$}m ],
     [ 'history --output 40m' => qr{^bench/history --output 40m\s*$}m ],
     [ '--case proxy' => qr{^bench/run --case proxy\s*$}m ])
{
    my ($bench, $wanted) = @$_;
    like(scalar qx(make -n bench BENCH='$bench' 2>&1), $wanted, "make bench BENCH='$bench'");
}

my $said = qx(bench/console --records 1000000 --seconds 2 2>&1);
is($?, 0, 'bench/console goes through') or diag($said);

for my $line ('gzipped ', 'the timeline loads', 'time to interactive', '1000000 records, frames',
              'frame, median', 'frames above 50 ms')
{
    like($said, qr/^\Q$line\E.*\d/m, "it says: $line");
}

my $found = JSON::PP->new->utf8->decode(SandboxTest::read_file('build/bench-console.json'));
cmp_ok($found->{timeline_bytes}, '>', 50_000, 'sizes are counted');
cmp_ok($found->{timeline_bytes}, '<', 220 * 1024, 'what a timeline opened at once loads is bounded');
cmp_ok($found->{frames}{n}, '>', 5, 'frames are drawn');
cmp_ok($found->{list}{rows_drawn}, '<', 200, 'only rows that are seen are there');
cmp_ok($found->{list}{height_px}, '<', 100_000, 'however long the timeline is');

done_testing;
