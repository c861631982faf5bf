package SanitizerBuild;

# use SanitizerBuild; before SandboxTest: this test runs on the build with
# sanitizers (make san), whose nginx is the packaged one with libasan preloaded.
#
# Also: SanitizerBuild::environment(), for tests that run others so.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);

my $root = abs_path(dirname(__FILE__) . '/../..');
our $BUILD = $ENV{SANDBOX_SAN_BUILD} // "$root/build/san";


sub built { -e "$BUILD/ngx_http_sandbox_module.so" && -x "$BUILD/bin/nginx" }


# What is freed waits in a small quarantine, or memory could never be flat.

sub environment {
    return (
        SANDBOX_BUILD => $BUILD,
        SANDBOX_TEST_PATIENCE => $ENV{SANDBOX_TEST_PATIENCE} // 3,
        PATH          => "$BUILD/bin:" . ($ENV{PATH} // ''),
        ASAN_OPTIONS  => join(':', grep { length }
            'quarantine_size_mb=8', 'thread_local_quarantine_size_kb=64',
            'detect_leaks=0', $ENV{ASAN_OPTIONS} // ''),
        UBSAN_OPTIONS => join(':', grep { length }
            'print_stacktrace=1', $ENV{UBSAN_OPTIONS} // ''),
    );
}


sub import {
    my %env = environment();

    @ENV{keys %env} = values %env;
}

1;
