#!/usr/bin/perl

# What belongs to the gateway itself, in a real browser: the rules in force and
# what they would say, who holds what in a sandbox, and tokens.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Test::More;

use SandboxConsole;

my $c = SandboxConsole->new;

$c->fact(sandbox => $c->sandbox('data-cleaning-7'), origin => $c->url =~ s{/console/$}{}r);
$c->look('policy', 'locks', 'tokens');
$c->stop;

done_testing;
