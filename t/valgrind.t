#!/usr/bin/perl

# Tests of t/ with programs under valgrind's memcheck, which sees what the
# sanitizers do not: values that nobody set, also inside nginx and the libraries.
# Any report fails; so does memory that is lost for
# good.  One test here, all of them with
# VALGRIND_TESTS=all (make soak), or those that VALGRIND_TESTS names.
#
# nginx's worker is not asked about leaks: it leaves its pools to the system.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp;
use Test::More;

use lib dirname(abs_path($0)) . '/lib';
use RunProgram qw(run_program);
use SandboxTest;

# What each test has under memcheck.
my @tests = (
    [ 'sanity',       'sandbox-helper', 'nginx' ],
    [ 'error-page',   'sandbox-helper', 'nginx' ],
    [ 'record',       'sandbox-helper', 'nginx' ],
    [ 'stream',       'sandbox-helper', 'nginx' ],
    [ 'upload',       'sandbox-helper' ],
    [ 'journal-full', 'sandbox-helper' ],
    [ 'helper',       'sandbox-helper' ],
    [ 'history-cli',  'sandbox-history' ],
);

my $wanted = $ENV{VALGRIND_TESTS} // 'journal-full';
my $valgrind = SandboxProcess::find_program('valgrind');
my $t = dirname(abs_path($0));

-x $valgrind or die "valgrind is missing: run .ci/deps test\n";

my @unknown = grep {
    my $name = $_;
    $name ne 'all' && !grep { $_->[0] eq $name } @tests
} split ' ', $wanted;
die "VALGRIND_TESTS: no such test: @unknown\n" if @unknown;

for my $test (@tests) {
    my ($name, @programs) = @$test;
    next if $wanted ne 'all' && $wanted !~ /\b\Q$name\E\b/;

    # a build directory in which those programs are called by valgrind
    my $dir = File::Temp->newdir('sandbox-v-XXXXXX', TMPDIR => 1);
    chmod 0755, "$dir";
    mkdir "$dir/logs";

    symlink $_, "$dir/" . s{.*/}{}r for glob "$SandboxProcess::BUILD/*";

    for my $program (@programs) {
        my $real = $program eq 'nginx' ? $SandboxProcess::NGINX
                                       : "$SandboxProcess::BUILD/$program";
        my $leaks = $program eq 'nginx'
            ? '--leak-check=no'
            : '--leak-check=full --show-leak-kinds=definite';

        unlink "$dir/$program";
        open my $fh, '>', "$dir/$program" or die "$program: $!\n";
        print $fh "#!/bin/sh\nexec $valgrind -q --vgdb=no $leaks --errors-for-leak-kinds=definite"
                  . " --suppressions=$t/valgrind.supp"
                  . " --log-file=$dir/logs/$program.%p $real \"\$@\"\n";
        close $fh;
        chmod 0755, "$dir/$program";
    }

    local $ENV{SANDBOX_BUILD} = "$dir";
    local $ENV{SANDBOX_TEST_PATIENCE} = 10;
    local $ENV{SANDBOX_NGINX} = "$dir/nginx" if grep { $_ eq 'nginx' } @programs;

    my ($status, $out) = run_program($^X, "-I$t/lib", "$t/$name.t");
    my $n = () = $out =~ /^ok /mg;

    ok($status == 0 && $out =~ /^1\.\.\d+$/m,
       "$name.t with @programs under memcheck: $n tests")
        or diag(join "\n", grep { !/^ok / } split /\n/, $out);

    my @logs = glob "$dir/logs/*";
    my $reports = join '', map { known(SandboxTest::read_file($_)) } @logs;

    ok(scalar @logs, 'memcheck ran');
    is($reports, '', 'and has nothing to report');
}

done_testing;


# Without what this valgrind says of a call that it does not know, pidfd_open: it
# fails with ENOSYS, and the helper does without.  A helper that is killed may
# leave half a line.

sub known {
    my $log = shift;

    my @notice = ('WARNING: unhandled amd64-linux syscall: 434',
        'You may be able to write your own handler.',
        'Read the file README_MISSING_SYSCALL_OR_IOCTL.',
        'Nevertheless we consider this a bug.  Please report',
        'it at http://valgrind.org/support/bug_reports.html.');

    return join '', grep {
        my $line = $_;
        my ($pid) = $line =~ /^--?(\d*)/;
        !defined $pid || !grep { index("--$pid-- $_\n", $line) == 0 } @notice;
    } $log =~ /([^\n]*\n|[^\n]+\z)/g;
}
