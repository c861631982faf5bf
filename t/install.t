#!/usr/bin/perl

# make install: what it puts where, that it runs from there without the checkout's
# build, and that a second one leaves nothing of the first behind.

use strict;
use warnings;

use File::Find;
use File::Temp;
use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxGateway;
use SandboxProcess;
use SandboxTest;
use Test::More;

my $build = $SandboxProcess::BUILD;
my $to = File::Temp->newdir('sandbox-i-XXXXXX', TMPDIR => 1);
my $prefix = "$to/opt/gate way";

# as its user calls it; nothing is built here, whatever this tree was built for
delete @ENV{ qw(MAKEFLAGS MAKELEVEL MFLAGS) };

sub install {
    my $out = qx(make -C '$SandboxProcess::ROOT' -s -o all install B='$build' DESTDIR='$to' PREFIX='/opt/gate way' 2>&1);
    return $? == 0 ? '' : $out;
}

sub files {
    my @files;
    find(sub { push @files, $File::Find::name =~ s/^\Q$prefix\E\///r if -f }, $prefix);
    return sort @files;
}

is(install(), '', 'make install');

my @files = files();
my %has = map { $_ => 1 } @files;

ok($has{$_}, "$_ is there") for
    qw(bin/sandbox-gateway bin/sandbox-history lib/sandbox-gateway/sandbox-helper
       lib/sandbox-gateway/sandbox-inspect
       lib/sandbox-gateway/sandbox-runtime
       lib/sandbox-gateway/ngx_http_sandbox_module.so
       share/sandbox-gateway/console/index.html),
    map { "share/doc/sandbox-gateway/$_" }
        qw(LICENSE NOTICE README.md drop-in.conf policy.default policy.seed tls.conf
           sandbox-gateway.service docs/directives.md docs/policy.md);

is_deeply([ grep { -x "$prefix/$_" } @files ],
          [ qw(bin/sandbox-gateway bin/sandbox-history lib/sandbox-gateway/sandbox-helper
               lib/sandbox-gateway/sandbox-inspect
               lib/sandbox-gateway/sandbox-runtime) ], 'only programs can be run');
is_deeply([ grep { (stat "$prefix/$_")[2] & 022 } @files ], [],
          'nobody else can write any of it');
is_deeply([ grep { SandboxTest::read_file("$prefix/$_") =~ /\Q$SandboxProcess::ROOT\E/ }
            grep { /\.(?:conf|service|md|html)$/ } @files ], [],
          'and nothing names the checkout');

for my $doc (qw(drop-in.conf sandbox-gateway.service)) {
    my $text = SandboxTest::read_file("$prefix/share/doc/sandbox-gateway/$doc");
    like($text, qr{/opt/gate way/}, "$doc names the prefix");
    unlike($text, qr{/usr/local/}, 'and no other');
}

# with the local runtime, as `make run`
$SandboxGateway::PROGRAM = "$prefix/bin/sandbox-gateway";
my $g = SandboxGateway->new;
my ($rc, $out, $err) = $g->run('--print-config', $g->arguments);
like($out, qr{load_module\s+"\Q$prefix\E/lib/sandbox-gateway/ngx_http_sandbox_module\.so"},
     'it takes the module that was installed');
$g->start;
my $page = $g->get('/console/');
is($page->status, 200, 'it runs');
is($page->content,
   SandboxTest::read_file("$prefix/share/sandbox-gateway/console/index.html"),
   'and shows the console that was installed');
$g->stop;

$out = qx('$prefix/bin/sandbox-history' --help 2>&1);
like($out, qr/^usage:/im, 'sandbox-history runs');

my $old = "$prefix/share/sandbox-gateway/console/assets/of-before.js";
SandboxTest::write_file($old, 'x');
is(install(), '', 'again');
ok(!-e $old, 'the assets of before are gone');
is_deeply([ files() ], \@files, 'and all else is there');

done_testing;
