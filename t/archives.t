#!/usr/bin/perl

# sandbox-inspect by itself: what it finds in archives (field cases C091 to C100),
# that honest ones have nothing to be found, and its bounds, each at its value
# and one above.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp;
use JSON::PP;
use Test::More;

use lib dirname(abs_path($0)) . '/lib';
use ArchiveCases qw(attacks twins);
use ArchiveMaker qw(zip tar member gz);

my $root = dirname(dirname(abs_path($0)));
my $build = $ENV{SANDBOX_BUILD} // "$root/build";
my $tmp = File::Temp->newdir('sandbox-t-XXXXXX', TMPDIR => 1);

my @LIMITS = (entries => 10_000, size => 512 << 20, file_size => 128 << 20,
              ratio => 200, depth => 4);


# What it says of a file; `most` are its options.

sub inspect {
    my ($data, @most) = @_;

    open my $fh, '>:raw', "$tmp/file" or die "$tmp/file: $!\n";
    print $fh $data;
    close $fh;

    open my $out, '-|', "$build/sandbox-inspect", @most, "$tmp/file"
        or die "sandbox-inspect: $!\n";
    local $/;
    my $json = <$out>;
    close $out or return { died => $? };

    return decode_json($json);
}


# Words that a policy of the usual limits would refuse it for.

sub words {
    my ($in) = @_;

    my @words = @{ $in->{found} };
    my %limit = @LIMITS;

    push @words, grep { $in->{$_} > $limit{$_} } keys %limit;
    push @words, 'died' if exists $in->{died};

    return @words;
}

my @most = map { ('--' . $_->[0] =~ tr/_/-/r, $_->[1]) }
           map { [ $LIMITS[2 * $_], $LIMITS[2 * $_ + 1] ] } 0 .. 4;


# --- what must be found --------------------------------------------------------------

my (%seen, @missed);
my @attacks = attacks();

for my $case (@attacks) {
    my $in = inspect($case->{data}, @most);
    my %found = map { $_ => 1 } words($in);
    my @missing = grep { !$found{$_} } @{ $case->{want} };

    $seen{ $case->{id} }++;
    push @missed, "$case->{id} $case->{what}: no @missing, but "
                  . join(' ', sort keys %found)
        if @missing || !$in->{archive} || !length($in->{why} || $in->{cut});
}

is_deeply(\@missed, [], @attacks . ' archives are seen through')
    or diag(join "\n", @missed);
cmp_ok(scalar @attacks, '>=', 300, 'which are many');
is_deeply([ grep { !$seen{$_} } qw(C091 C094 C095 C096 C097 C098 C099 C100) ], [],
          'of all kinds');


# --- what must not -------------------------------------------------------------------

%seen = @missed = ();
my @twins = twins();

for my $case (@twins) {
    my $in = inspect($case->{data}, @most);
    my @found = words($in);

    $seen{ $case->{id} }++;
    push @missed, "$case->{id} $case->{what}: @found ($in->{why})" if @found;
}

is_deeply(\@missed, [], @twins . ' honest ones have nothing to be found')
    or diag(join "\n", @missed);
is_deeply([ grep { !$seen{$_} } qw(C092 C093 C095 C096 C098 C099 C100) ], [],
          'of all kinds');

my %is = map { $_->{what} => inspect($_->{data}, @most)->{archive} }
         grep { $_->{id} eq 'C100' } @twins;

ok(!$is{$_}, "$_: no archive") for grep { /named as a (?:ZIP|tar)$|^noise|text that|source|digits|mark and/ } sort keys %is;
ok($is{$_}, "$_: an archive") for 'a ZIP named text', 'a document', 'a jar',
    'a tar.gz named as a picture';


# --- C093: limits use all members ------------------------------------------------------

my $in = inspect(zip([ { name => 'a', data => 'x' },
                       { name => 'b', data => 'y' x 100 } ]));

is($in->{entries}, 2, 'C093 all members count');
is($in->{size}, 101, 'with their bytes');
is($in->{file_size}, 100, 'the largest one');


# --- C095: names in full ------------------------------------------------------------------

$in = inspect(tar(member('n' x 99 . '/', type => 2, link => '/' . 'l' x 99,
                         prefix => 'p' x 155)));

like($in->{member}, qr{^p+/n+/$}, 'C095 full fields do not run into each other');


# --- bounds: at the value, and one above ---------------------------------------------------

my @three = map { { name => "f$_", data => 'x' x 100 } } 1 .. 3;
my $noise = join '', map { pack 'N', ($_ * 2654435761) % 2**32 } 1 .. 3000;
my $dense = gz($noise . "\0" x (2 << 20));
my $ratio = int(((2 << 20) + length $noise) / length $dense) + 1;

for ([ 'entries', 3, zip(\@three) ],
     [ 'entries', 3, tar(map { member("f$_", data => 'x') } 1 .. 3) ],
     [ 'entries', 3, zip([ { name => 'z', data => zip([ @three[0, 1] ]) } ]) ],
     [ 'size', 300, zip(\@three) ],
     [ 'size', 300, gz(tar(map { member("f$_", data => 'x' x 100) } 1 .. 3)) ],
     [ 'size', 5000, gz('x' x 5000) ],
     [ 'file-size', 100, zip(\@three) ],
     [ 'file-size', 100, tar(member('f', data => 'x' x 100)) ],
     [ 'file-size', 5000, gz('x' x 5000) ],
     [ 'ratio', $ratio, $dense ],
     [ 'depth', 2, zip([ { name => 'z', data => zip(\@three) } ]) ],
     [ 'depth', 1, gz(tar(member('f'))) ],
     [ 'depth', 2, gz(gz('x')) ])
{
    my ($what, $n, $data) = @$_;
    my $name = $what =~ tr/-/_/r;

    $in = inspect($data, "--$what", $n);
    is($in->{cut}, JSON::PP::false, "$what $n: all is looked at");
    is($in->{$name}, $n, 'and is just that');

    $in = inspect($data, "--$what", $n - 1);
    is($in->{cut}, JSON::PP::true, 'one less: not all');
    cmp_ok($in->{$name}, '>', $n - 1, 'and more is told');
}

# archives in archives, whatever is said

my $deep = 'hello';
$deep = zip([ { name => 'z', data => $deep } ]) for 1 .. 16;
is(inspect($deep)->{cut}, JSON::PP::false, 'sixteen archives in another');
is(inspect(zip([ { name => 'z', data => $deep } ]))->{cut}, JSON::PP::true,
   'are the most');

# a ratio counts from 1 MiB on

is(inspect(gz("\0" x (1 << 20)))->{ratio}, 0, 'a small file has no ratio');
cmp_ok(inspect(gz("\0" x ((1 << 20) + 1)))->{ratio}, '>', 500, 'a larger one has');

# what may become an archive is kept up to 128 MiB; memory is bounded, and time

my $big = zip([ { name => 'in.gz', deflate => 1,
                  data => "\x1f\x8b\x08" . "\0" x (130 << 20) } ]);
$in = inspect($big);
is_deeply($in->{found}, [ 'broken' ], 'an archive of 130 MiB in an archive');
like($in->{why}, qr/too large to be looked into/, 'is not looked into');

$in = inspect(zip([ { name => 'in.bin', deflate => 1, data => "\0" x (130 << 20) } ]));
is_deeply($in->{found}, [], 'a file of that size is one');
is($in->{size}, 130 << 20, 'and counts');


# --- it may do nothing else ----------------------------------------------------------------

SKIP: {
    skip 'the sanitizers do more', 3 if $build =~ /san$/;

    my $text = qx('$build/sandbox-inspect' --help);

    like($text, qr/--depth/, 'it says what it can do');
    is(system("'$build/sandbox-inspect' /nothing 2> /dev/null") >> 8, 2,
       'and that a file is not there');
    is(system("'$build/sandbox-inspect' '$tmp' 2> /dev/null") >> 8, 2,
       'or is none');
}

done_testing;
