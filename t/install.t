#!/usr/bin/perl

# make install and make package: what they put where, that it runs from there
# without the checkout's build, and that a second one leaves nothing of the first
# behind.

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

# a prefix with a blank is one argument for whoever reads them

my $shipped = SandboxTest::read_file("$prefix/share/doc/sandbox-gateway/sandbox-gateway.service");
like($shipped, qr{^ExecStart="/opt/gate way/bin/sandbox-gateway"$}m,
     'systemd is told the program and no option: these stand in /etc/default');

$shipped = SandboxTest::read_file("$prefix/share/doc/sandbox-gateway/drop-in.conf");
my ($load) = $shipped =~ /^#\s+(load_module\s[^\n]+;)$/m;
like($load, qr{/ngx_http_sandbox_module\.so}, 'drop-in.conf names the module');
like($shipped, qr{^    # sandbox_policy }m, 'and a policy');
$shipped =~ s/^    # (?=sandbox_policy )/    /m;

for ($load, $shipped) {
    s{/opt/gate way/}{$prefix/}g;
    s{/var/lib/sandbox|/etc/nginx/sandbox\.tokens}{$to/$&}g;
}

mkdir "$to/$_" for qw(etc etc/nginx var var/lib var/lib/sandbox temp);
SandboxTest::write_file("$to/etc/nginx/sandbox.tokens", '');
my $temp = join ' ', map { qq(${_}_temp_path "$to/temp/$_";) }
    qw(client_body proxy fastcgi uwsgi scgi);
SandboxTest::write_file("$to/nginx.conf", <<"END_CONF");
$load
pid "$to/nginx.pid";
error_log stderr;
events { }
http {
    access_log off;
    $temp
$shipped
}
END_CONF
my $said = qx($SandboxProcess::NGINX -t -e stderr -p "$to" -c "$to/nginx.conf" 2>&1);
is($?, 0, 'nginx takes drop-in.conf as it is installed') or diag($said);

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


# --- the same as one file

my $made = qx(make -C '$SandboxProcess::ROOT' -s -o all package B='$build' OUT='$to' PREFIX='/opt/gate way' 2>&1);
is($?, 0, 'make package') or diag($made);
my ($version) = SandboxTest::read_file("$SandboxProcess::ROOT/lib/sb.h")
    =~ /SB_VERSION\s+"([\d.]+)"/;
my ($package) = glob "$to/sandbox-gateway-*.tar.gz";
like($package, qr{/sandbox-gateway-\Q$version\E-linux-\w+-nginx-\d+\.\d+\.\d+\.tar\.gz$},
     'its name says what it fits');
is($made, "$package\n", 'and is told');

mkdir "$to/unpacked";
is(system('tar', '-xzf', $package, '-C', "$to/unpacked"), 0, 'it can be unpacked');
is(system('diff', '-r', $prefix, "$to/unpacked/opt/gate way"), 0, 'and is what make install makes');
my @listed = qx(tar -tvzf '$package');
is(scalar(grep { m{^-rw[x-]r-[x-]r-[x-] 0/0 } } @listed), scalar @files,
   'files of root, and no directory: / stays as it is') or diag(@listed);
is(scalar @listed, scalar @files, 'all of them');

done_testing;
