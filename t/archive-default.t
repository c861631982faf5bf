#!/usr/bin/perl

# Archives under conf/policy.default as it is shipped: what would write outside of
# where it is unpacked, reads in two ways or is a bomb is refused (field cases C091
# to C100); honest ones pass, a packed node_modules with its links among them.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use ArchiveCases qw(attacks twins uploader);
use ArchiveMaker qw(zip tar member gz);
use Cwd qw(abs_path);
use Digest::SHA qw(sha256_hex);
use File::Copy qw(copy);
use File::Path qw(make_path);
use SandboxTest;
use Test::More;

my $policy = abs_path("$FindBin::Bin/../conf/policy.default");
my $t = SandboxTest->new(location => "sandbox_policy $policy;")->start;

$t->sandbox('s1');

my $execd = '/v1/sandboxes/s1/proxy/44772';
my $upload = uploader($t, $execd);

sub upload { return $upload->(@_) }


# --- what must not pass --------------------------------------------------------------

my @attacks = grep {
    grep { /^(?:climbs|escapes|devices|set-id|inconsistent|broken|ratio|depth)$/ }
         @{ $_->{want} }
} attacks();
my (@passed, %rule);

$t->up->mark;

for my $case (@attacks) {
    my $r = upload('/workspace/x', $case->{data});
    my $rule = (eval { $r->json } // {})->{details}{rule} // '?';

    $rule{$rule}++;
    push @passed, "$case->{id} $case->{what}: " . $r->status . ' ' . $r->content
        unless ($r->status == 403 || $r->status == 413)
               && $rule =~ /^(?:unsafe-archive|archive-(?:bomb|size|entries|depth))$/;
}

is_deeply(\@passed, [], @attacks . ' archives are refused')
    or diag(join "\n", @passed[0 .. ($#passed > 9 ? 9 : $#passed)]);
cmp_ok(scalar @attacks, '>=', 300, 'which are many');
cmp_ok($rule{$_} // 0, '>', 0, "by rule $_: " . ($rule{$_} // 0))
    for qw(unsafe-archive archive-bomb archive-depth);
is(scalar(grep { $_->{target} =~ /upload/ } $t->up->requests), 0,
   'upstream saw none of them');

my $many = gz(tar(map { member("f$_") } 1 .. 100_001));
my $r = upload('/workspace/many.tgz', $many);
is($r->status, 413, 'more than 100000 members');
is($r->json->{details}{rule}, 'archive-entries', 'by its rule');


# --- what must ---------------------------------------------------------------------------

my @refused;

for my $case (twins()) {
    my $r = upload("/workspace/$case->{name}", $case->{data});
    push @refused, "$case->{id} $case->{what}: " . $r->content if $r->status != 200;
}

is_deeply(\@refused, [], 'honest ones pass')
    or diag(join "\n", @refused[0 .. ($#refused > 9 ? 9 : $#refused)]);


# node_modules as npm and pnpm make it, packed by tar

my $dir = "$t->{dir}/project";

sub file {
    my ($name, $data) = @_;

    make_path("$dir/$name" =~ s{/[^/]*\z}{}r);
    SandboxTest::write_file("$dir/$name", $data);
}

sub link_to {
    my ($name, $to) = @_;

    make_path("$dir/$name" =~ s{/[^/]*\z}{}r);
    symlink $to, "$dir/$name" or die "$dir/$name: $!\n";
}

file('package.json', '{"name":"project"}');
file("node_modules/p$_/package.json", qq({"name":"p$_"}) . ' ' x ($_ % 97)) for 1 .. 400;
file("node_modules/p1/lib/$_.js", "module.exports = $_;\n") for 1 .. 300;
file('node_modules/typescript/bin/tsc', "#!/usr/bin/env node\n");
link_to('node_modules/.bin/tsc', '../typescript/bin/tsc');
file('node_modules/@scope/tool/cli.js', "#!/usr/bin/env node\n");
link_to('node_modules/.bin/tool', '../@scope/tool/cli.js');
file('node_modules/.pnpm/dep@2.0.0/node_modules/dep/index.js', '1');
file('node_modules/.pnpm/top@1.0.0/node_modules/top/index.js', '2');
link_to('node_modules/.pnpm/top@1.0.0/node_modules/dep',
        '../../dep@2.0.0/node_modules/dep');
link_to('node_modules/top', '.pnpm/top@1.0.0/node_modules/top');
link_to('node_modules/@scope/own', '../../packages/own');
file('packages/own/index.js', '3');
link "$dir/node_modules/p1/lib/1.js", "$dir/node_modules/p1/lib/same.js"
    or die "link: $!\n";

for (['the directory', '.'], ['its entries', 'node_modules', 'packages', 'package.json']) {
    my ($what, @names) = @$_;
    my $tgz = "$t->{dir}/project.tgz";

    is(system('tar', '-C', $dir, '-czf', $tgz, @names), 0, "$what packed by tar");

    my $data = SandboxTest::read_file($tgz);

    $t->up->mark;
    $r = upload('/workspace/project.tgz', $data);
    is($r->status, 200, 'a packed node_modules passes') or diag($r->content);

    my ($seen) = grep { $_->{target} =~ /upload/ } $t->up->requests;
    is(sha256_hex($seen->{body} // ''),
       sha256_hex(SandboxTest::upload_body('/workspace/project.tgz', $data)),
       'as it was sent');

    my $e = $t->record($r, sandbox => 's1');
    is($e->{result}{verdict}, 'observe', 'its links are on record');
    is($e->{result}{verdict_rule}, 'odd-archive', 'by a rule');
}

# the same with one link that leads out

for my $to ('/etc/passwd', '../../../x', '../../x/../../..') {
    my $name = "$dir/node_modules/.bin/odd";

    symlink $to, $name or die "$name: $!\n";
    is(system('tar', '-C', $dir, '-czf', "$t->{dir}/odd.tgz", '.'), 0, "a link to $to");
    unlink $name;

    $r = upload('/workspace/project.tgz', SandboxTest::read_file("$t->{dir}/odd.tgz"));
    is($r->status, 403, 'is refused');
    is($r->json->{details}{rule}, 'unsafe-archive', 'by its rule');
    is($r->json->{details}{archive}{found}, 'escapes', 'as it leads out');
    like($r->json->{details}{archive}{member}, qr{node_modules/\.bin/odd$}, 'this one');
}

# the SDK's own archive is judged like others

my $id = '0190a0f1-2b3c-7d4e-8f50-61728394a5b6';
my $sdk = "/.agent-upload/tmp/archive-$id.tar.gz";

is(upload($sdk, gz(tar(member('src/a.py', data => 1))))->status, 200, 'an archive of the SDK');
is(upload($sdk, gz(tar(member('../a.py', data => 1))))->status, 403, 'one that climbs');

# a helper without sandbox-inspect

mkdir "$t->{dir}/alone";
copy("$SandboxProcess::BUILD/sandbox-helper", "$t->{dir}/alone/sandbox-helper");
chmod 0755, "$t->{dir}/alone/sandbox-helper";
$t->kill_helper;
{
    no warnings 'redefine';
    local $SandboxProcess::BUILD = "$t->{dir}/alone";
    $t->start_helper;
}
ok($t->wait_for(sub { upload('/workspace/x', 'x')->status == 200 }),
   'where nobody looks into archives other files pass');
$r = upload('/workspace/x.tgz', gz(tar(member('a', data => 1))));
is($r->status, 403, 'an archive does not');
is($r->json->{details}{rule}, 'unsafe-archive', 'by the first rule that asks');
is($r->json->{details}{archive}{found}, 'uninspected', 'as nothing is known');

$t->stop;
done_testing;
