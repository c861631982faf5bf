#!/usr/bin/perl

# Commands in the console: run, watched line by line, interrupted, left in the
# background, found again and run again, as people do it in a real browser.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use File::Temp;
use Test::More;

use SandboxConsole;
use SandboxTest;

my $tmp = File::Temp->newdir('sandbox-c-XXXXXX', TMPDIR => 1);

SandboxTest::write_file("$tmp/policy", <<'END_POLICY');
deny no-shutdown {
    operation  command.execute;
    command    "^shutdown";
    reason     "Sandboxes are deleted, not shut down.";
}
default allow;
END_POLICY

my $c = SandboxConsole->new(args => [ '--policy', "$tmp/policy" ]);
my $id = $c->sandbox('data-cleaning-7');

$c->command($id, 'for i in 1 2 3; do echo "row $i of the table of orders: ok"; done');
$c->command($id, 'cat /does/not/exist', actor => 'alice', run => 'try-1');
$c->fact(sandbox => $id, other => $c->sandbox('report-builder'));
$c->look('commands');
$c->stop;

done_testing;
