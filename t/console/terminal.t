#!/usr/bin/perl

# Terminals in the console: real shells of the local runtime, typed into, left
# and found again, shared out, pasted into and flooded, in a real browser.

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
deny no-terminals {
    operation  pty.open;
    metadata   sandbox_name=locked-down;
    reason     "Nobody works in here by hand.";
}
default allow;
END_POLICY

my $c = SandboxConsole->new(args => [ '--policy', "$tmp/policy" ]);

$c->fact(sandbox => $c->sandbox('data-cleaning-7'), other => $c->sandbox('report-builder'),
         locked => $c->sandbox('locked-down'), seen => $c->sandbox('as-seen'), replayed => $c->sandbox('replayed'), gateway => $c->gateway->pid);
$c->look('terminal');
$c->stop;

done_testing;
