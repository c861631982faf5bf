#!/usr/bin/perl

# conf/policy.seed beside the upload scanner of agent-sandbox-backends: of every
# file and target they say the same.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use File::Temp;
use SandboxInterop;
use SandboxProcess;
use Test::More;

my $python = SandboxInterop::python('venv', 'requirements.txt');
my $policy = "$FindBin::Bin/../../conf/policy.seed";
my @check = ("$SandboxProcess::BUILD/sandbox-gateway", 'policy', 'check', '--policy', $policy,
             '--operation', 'file.write');

my @names = map { ($_, "a/$_", "$_/x", "a/$_/b/x", "x$_", "${_}x", "$_.x", uc) }
    qw(.git .env .env.local .ssh .aws .gnupg node_modules .venv __pycache__ .agent-history
       .sandboxignore a.py .gitignore);
my @targets = qw(/workspace/t /workspace /workspace2 /tmp/x / /.agent-history/t /.agent-history
                 /.agent-upload/t /workspace/../etc /workspace//a/./b workspace/t);

my %seen;
my @cases = grep { !$seen{"@$_"}++ }
    (map { [ '/workspace/t', $_ ] } grep { length } @names), map { [ $_, 'a.py' ] } @targets;

my $in = File::Temp->new;
print $in "$_->[0]\t$_->[1]\n" for @cases;
close $in;

my @said = map { chomp; [ split /\t/ ] } qx($python "$FindBin::Bin/seed.py" < "$in");
my @limits = @{ pop @said // [] };

is(scalar @said, scalar @cases, 'the scanner has judged every case');

for my $case (@said) {
    my ($target, $name, $uploads) = @$case;

    is(judge('--path', "$target/$name"), $uploads,
       "$target $name: " . ($uploads ? 'uploaded' : 'left out'));
}

is("@limits", '134217728 536870912 10000', 'the limits are known');
is(judge('--path', '/workspace/a', '--size', $limits[0]), 1, 'a file at the limit');
is(judge('--path', '/workspace/a', '--size', $limits[0] + 1), 0, 'and one over it');
is(judge(map({ ('--path', "/workspace/$_") } 1 .. 4), '--size', $limits[1] / 4), 1,
   'files at the limit together');
is(judge(map({ ('--path', "/workspace/$_") } 1 .. 5), '--size', int($limits[1] / 5) + 1), 0,
   'and over it');

done_testing;


# 1 allowed, 0 denied

sub judge {
    my $rc = system join(' ', map { quotemeta } @check, @_) . ' > /dev/null';

    return { 0 => 1, 256 => 0 }->{$rc} // "status $rc";
}
