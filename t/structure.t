#!/usr/bin/perl

# What the layout of the sources promises (design 3): who includes and links
# what, how long a file may be, how names begin, that no path of somebody's
# machine is in them.  Files that git knows are looked at, or all when this is
# no checkout.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Find;
use Test::More;

my $root = dirname(dirname(abs_path($0)));
my $build = $ENV{SANDBOX_BUILD} // "$root/build";

chdir $root or die "$root: $!\n";

my @files = tracked();
my %text = map { $_ => read_text($_) } @files;
my @c = grep { /\.[ch]$/ } @files;

ok(scalar(grep { m{^lib/} } @c), 'the sources are there');


# --- who includes what ----------------------------------------------------------------

# lib is pure C: nothing of nginx, no socket, no database, and nothing of others.

my $foreign = qr{^(?:ngx_|sqlite3|curl/|archive|microhttpd|wslay|libpq
                  |sys/(?:socket|un|epoll|select)|netinet/|arpa/|netdb|poll
                  |openssl/(?:ssl|bio)|pthread)}x;

is_deeply([ grep_includes(qr{^lib/}, sub { $_[0] =~ $foreign }) ], [],
          'lib includes no nginx, socket or database header');

my %own = map { $_ => 1 } map { m{([^/]+)$} } grep { m{^lib/.*\.h$} } @c;

is_deeply([ grep_includes(qr{^lib/}, sub {
    my ($name, $quoted) = @_;
    return $quoted && !$own{$name =~ s{.*/}{}r};
}) ], [], 'nor one of the rooms that are built on it');

# Arrows: module, helper, standalone -> lib; never across.  The module gets a
# header by its name: -I lists lib only.

my %room = (ngx_sandbox_module => qr{^(?:helper|standalone)/},
            helper     => qr{^(?:ngx_|standalone/)},
            standalone => qr{^(?:ngx_|helper/)});
my %where;
push @{ $where{s{.*/}{}r} }, dirname($_) for grep { /\.h$/ } @c;

for my $room (sort keys %room) {
    is_deeply([ grep_includes(qr{^$room/}, sub {
        my ($name, $quoted, $file) = @_;
        my ($only) = @{ $where{$name =~ s{.*/}{}r} // [] };

        return 0 if $room eq 'ngx_sandbox_module' && $name =~ /^ngx_/;
        return 1 if $name =~ $room{$room};
        return 0 if !$quoted || !defined $only;
        return !grep { m{^(?:lib|\Q$room\E)(?:/|$)} }
                     @{ $where{$name =~ s{.*/}{}r} };
    }) ], [], "$room includes itself and lib");
}

# Whose headers stand where.  Two deviations from "only helper links libcurl":
# the local runtime's server proxy is a client too, and the launcher speaks TLS
# to look whether upstream answers.

my %may = (
    'sqlite3'        => qr{^(?:helper|t/unit)/},
    'archive'        => qr{^helper/},
    'curl/'          => qr{^(?:helper|standalone/runtime)/},
    'microhttpd'     => qr{^standalone/runtime/},
    'wslay'          => qr{^standalone/runtime/},
    'openssl/ssl'    => qr{^(?:standalone/[^/]*$|ngx_sandbox_module/)},
    'yajl'           => qr{^lib/json[^/]*$|^t/},
    'pcre2'          => qr{^lib/policy[^/]*$},
    'ngx_'           => qr{^ngx_sandbox_module/},
);

for my $header (sort keys %may) {
    is_deeply([ grep_includes(qr{^(?!$may{$header})}, sub {
        $_[0] =~ /^\Q$header\E/
    }) ], [], "$header…: only where it belongs");
}


# What sleeps until a time of the wall clock sleeps for an hour longer when that
# is set back.

is_deeply([ grep { m{^helper/} && ($text{$_} =~ /sem_timedwait/
                       || $text{$_} =~ /cond_timedwait|sem_clockwait/
                          && $text{$_} =~ /CLOCK_REALTIME/) } @c ], [],
          'threads of the helper wait by a clock that nobody sets');
is_deeply([ grep { m{^helper/index} && $text{$_} =~ /sb_now_us/ } @c ], [],
          'nor does the search index ask it when to try again');


# --- who is linked with what -------------------------------------------------------------

my %libraries = (
    'sandbox-helper'  => [ qw(c crypto curl sqlite3 z m pthread) ],
    'sandbox-history' => [ qw(c crypto curl sqlite3 z m pthread) ],
    'sandbox-inspect' => [ qw(c crypto archive m) ],
    'sandbox-gateway' => [ qw(c crypto ssl pcre2 m) ],
    'sandbox-runtime' => [ qw(c crypto curl microhttpd wslay util m pthread) ],
    'ngx_http_sandbox_module.so' => [ qw(c crypto pcre2 m) ],
);

for my $program (sort keys %libraries) {
    my %may_have = map { $_ => 1 } @{ $libraries{$program} },
                   qw(asan ubsan gcc_s yajl);
    my @needed = qx(readelf -d '$build/$program') =~ /\bNEEDED\b/
        ? map { /NEEDED.*\[lib(.*?)[-.][\d.so-]+\]/ }
          qx(readelf -d '$build/$program') : ();

    ok(scalar @needed, "$program is built");
    is_deeply([ grep { !$may_have{$_} } @needed ], [],
              'and linked with nothing that others have');
}


# --- names -------------------------------------------------------------------------------

# Whatever the module shows to nginx and its other modules has a name of ours.

my @symbols = map { /^\S+ [TDBRVC] (\S+)$/ }
    qx(nm -g --defined-only '$build/ngx_http_sandbox_module.so');

cmp_ok(scalar @symbols, '>', 50, 'the module has symbols');
is_deeply([ grep { !/^(?:ngx_http_sandbox_|sb_|ngx_modules?$|ngx_module_names$
                       |ngx_module_order$|__asan|__odr_asan|__ubsan|_)/x }
            @symbols ], [], 'which begin with ngx_http_sandbox_ or sb_');

# So do static functions and types of the module: what a debugger shows.

my @names;

for my $file (grep { m{^ngx_sandbox_module/} } @c) {
    push @names, "$file: $1" while $text{$file}
        =~ /^(?!ngx_http_sandbox_|sb_|return\b|if\b|while\b|for\b|switch\b)
             ([a-z]\w*)\((?:[^;{}]*?)\)\n\{/xmg;
    push @names, "$file: $1" while $text{$file}
        =~ /^\}\s+(?!ngx_http_sandbox_)(\w+_t);$/mg;
    push @names, "$file: struct $1" while $text{$file}
        =~ /^struct\s+(?!ngx_http_sandbox_)(\w+)\s*\{/mg;
}

is_deeply(\@names, [], 'functions and types of the module too');


# --- sizes ---------------------------------------------------------------------------------

my %lines = map { $_ => scalar(() = $text{$_} =~ /\n/g) }
            grep { m{\.(?:[ch]|pm|t|pl|tsx?|js|css|mjs|py)$|^Makefile$|/run$} }
            @files;

is_deeply([ grep { $lines{$_} > 1200 } sort keys %lines ], [],
          'no file above 1,200 lines');

my @long = grep { $lines{$_} > 600 } sort { $lines{$b} <=> $lines{$a} || $a cmp $b }
           keys %lines;
diag(@long . ' files above 600 lines: ' . join ', ',
     map { "$_ $lines{$_}" } @long) if @long && $ENV{SANDBOX_TEST_VERBOSE};
note("$lines{$_} $_") for @long;


# --- nothing of somebody's machine, nothing that was made -----------------------------------

my $home = qr{(?<![\w.\$\}])/(?:home/(?!node\b)[a-z][\w.-]*/|Users/\w+/|root/(?!\.)[\w-]+/\w|work/(?:main|shared)\b)};

is_deeply([ grep {
    $_ ne 't/structure.t' && !m{^t/(?:fuzz/seeds|runtime-fixtures|fixtures)/}
    && grep({ /$home/ } split /\n/, $text{$_})
} @files ], [], 'no path of a machine');

is_deeply([ grep { m{^build/|\.(?:o|a|so|gcda|gcno|sqlite3|pyc)$} } @files ], [],
          'nothing that is built');

is_deeply([ grep { m{^(?:ngx_sandbox_module|lib|helper|standalone)/}
                   && $text{$_} =~ /\b(?:TODO|FIXME|XXX)\b/ } @files ], [],
          'nothing left to do');


# --- tests ---------------------------------------------------------------------------------

# Every test, fuzz target and unit test is run by something.

for my $name (map { m{^t/fuzz/fuzz_(\w+)\.c$} } @files) {
    ok(scalar(grep { m{^t/fuzz/seeds/$name/} } @files),
       "fuzz_$name has seeds");
}

is_deeply([ grep { m{^t/.*\.t$} && !m{^t/(?:interop/|console/)?[^/]+\.t$} }
            @files ], [], 'every test lies where make test looks');
is_deeply([ grep { m{^t/.*\.t$} && $text{$_} !~ /done_testing|plan/ } @files ],
          [], 'and says when it is done');

# docs/contracts.md: tests name the cases that they hold, in what runs: the name of
# a test or of its function.  A comment promises nothing.

is(code_of('a.t', "# C001\nok(1, 'C002: x');   # C003\n"), "\nok(1, 'C002: x');\n",
   'comments of Perl are no code');
is(code_of('a.c', "/* C001\n * C002 */\nx(\"C003\"); // C004\n"), "\nx(\"C003\");\n",
   'nor are those of C');

my $tests = join '', map { code_of($_, $text{$_}) }
    grep { m{^(?:t|html/test)/.*\.(?:t|c|p[lm]|mjs|ts|py)$} && $_ ne 't/structure.t' }
    @files;
is_deeply([ grep { $tests !~ /(?<![A-Za-z0-9])$_(?!\d)/i }
            map { sprintf 'C%03d', $_ } 1 .. 162 ], [],
          'every field case is a test that is named after it');

done_testing;


# Files as paths from the root.

sub tracked {
    my @list = -e "$root/.git" ? qx(git -c core.quotePath=off ls-files -co --exclude-standard)
                               : ();
    chomp @list;

    if (!@list) {
        find({ no_chdir => 1, wanted => sub {
            $File::Find::prune = 1 if m{^\./(?:build|data|\.git|html/node_modules)$};
            push @list, s{^\./}{}r if -f && !m{^\./(?:build|data|\.git)/};
        } }, '.');
    }

    return grep { -f } @list;
}


sub read_text {
    my $path = shift;

    open my $fh, '<:raw', $path or die "$path: $!\n";
    local $/;

    return scalar(<$fh>) // '';
}


# A test without its comments.

sub code_of {
    my ($path, $text) = @_;

    if ($path =~ /\.(?:c|mjs|ts)$/) {
        $text =~ s{/\*.*?\*/}{}gs;
        return $text =~ s{(?:^|[ \t]+)//.*}{}gmr;
    }

    return $text =~ s{(?:^|[ \t]+)#.*}{}gmr;
}


# "file: header" for every include, in files that match, that the sub wants; it
# gets the name, whether it stands in quotes, and the file.

sub grep_includes {
    my ($match, $wants) = @_;

    my @found;

    for my $file (grep { $_ =~ $match } @c) {
        while ($text{$file} =~ /^\s*#\s*include\s*([<"])([^>"]+)[>"]/mg) {
            push @found, "$file: $2" if $wants->($2, $1 eq '"', $file);
        }
    }

    return @found;
}
