#!/usr/bin/perl

# The texts of the console: the same in all languages, none that nobody shows,
# none that is not there.  (That a key exists is checked by the compiler too.)

use strict;
use warnings;

use File::Find;
use JSON::PP;
use Test::More;

my $src = 'html/src';
my %plural = ('en' => [qw(one other)], 'zh-CN' => [qw(other)]);
my $json = JSON::PP->new->utf8;

my %areas = map { m{([^/]+)\.json$} => 1 } glob "$src/i18n/en/*.json";
cmp_ok(scalar keys %areas, '>', 3, 'there are texts');
is_deeply([ map { m{([^/]+)\.json$} } glob "$src/i18n/zh-CN/*.json" ], [ sort keys %areas ],
          'of the same areas in both languages');

my $code = '';
find({ no_chdir => 1, wanted => sub { $code .= read_file($_) if /\.tsx?$/ } }, $src);
my $declared = read_file("$src/i18n/i18next.d.ts");

for my $area (sort keys %areas) {
    my %text = map { $_ => flat($json->decode(read_file("$src/i18n/$_/$area.json"))) } keys %plural;
    my %base = map { my $l = $_; $l => { map { base($_) => 1 } keys %{ $text{$l} } } } keys %text;

    like($declared, qr/^\s+\Q$area\E: typeof \Q$area\E;/m, "$area: the compiler knows its keys");
    is_deeply([ sort keys %{ $base{'zh-CN'} } ], [ sort keys %{ $base{en} } ], "$area: the same keys");

    for my $l (sort keys %plural) {
        my %forms;
        for my $key (keys %{ $text{$l} }) {
            push @{ $forms{$1} }, $2 if $key =~ /^(.*)_(zero|one|two|few|many|other)$/;
        }
        is_deeply([ grep { "@{[ sort @{ $forms{$_} } ]}" ne "@{ $plural{$l} }" } sort keys %forms ], [],
                  "$area: $l has its plural forms");
        is_deeply([ grep { $text{$l}{$_} !~ /\S/ } sort keys %{ $text{$l} } ], [], "$area: $l says something");
    }

    is_deeply([ grep { places($text{en}, $_) ne places($text{'zh-CN'}, $_) } sort keys %{ $base{en} } ], [],
              "$area: the same places to fill in");
    is_deeply([ grep { !used($_) } sort keys %{ $base{en} } ], [], "$area: no text that nobody shows");
}

# What a page shows is loaded with it: texts that come when a part of it is drawn
# hide the page until then, and take the keyboard from it.

my $routes = read_file("$src/routes.tsx");
my $pages = 0;

while ($routes =~ /page\(\(\) => import\('\@([^']+)'\)((?:, '\w+')*)\)/g) {
    my ($page, $given) = ($1, $2);
    my %loaded = map { $_ => 1 } $given =~ /'(\w+)'/g;

    is_deeply([ sort keys %loaded ], [ sort keys %{ shown_by("$src$page") } ], "$page: comes with the texts of all its parts");
    $pages++;
}

is($pages, scalar(() = $routes =~ /lazy:/g), 'so does every page');

# a component's own text would be in one language only
my @bare;

find({ no_chdir => 1, wanted => sub {
    return if !/\.tsx$/;
    my $text = read_file($_);
    push @bare, "$_: $1" while $text =~ />\s*([A-Za-z][a-z]+(?: [a-z]+)+)\s*</g;
    push @bare, "$_: $1" while $text =~ /(?:aria-label|title|placeholder|alt)="([A-Za-z][A-Za-z ]+)"/g;
} }, $src);
is_deeply(\@bare, [], 'all words come from the texts');

done_testing;


sub flat {
    my ($tree, $at) = @_;

    return { map { my $k = defined $at ? "$at.$_" : $_;
                   ref $tree->{$_} ? %{ flat($tree->{$_}, $k) } : ($k => $tree->{$_}) } keys %$tree };
}


sub base { $_[0] =~ s/_(?:zero|one|two|few|many|other)$//r }


# Areas of which a module shows texts, and all that it imports at once.

sub shown_by {
    my ($module, $seen) = (@_, {});

    my ($file) = grep { -f } $module, map { $module . $_ } qw(.tsx .ts /index.tsx /index.ts);
    my %areas;

    return \%areas if !defined $file || $seen->{$file}++;

    my $text = read_file($file);
    $areas{$_} = 1 for $text =~ /useTranslation\('(\w+)'\)/g;

    # (types are not there any more when it runs)
    for my $from ($text =~ /^(?:import|export) (?!type )[^;]*?from '([.\@]\/?[^']*)'/mg) {
        my $there = $from =~ s{^\@}{$src}r;
        ($there = $file) =~ s{[^/]+$}{$from} if $there eq $from;
        $areas{$_} = 1 for keys %{ shown_by($there, $seen) };
    }

    return \%areas;
}


# What stands in {{}}, in all forms of a text.

sub places {
    my ($texts, $key) = @_;

    my %seen = map { $_ => 1 } map { /\{\{(\w+)\}\}/g }
               map { $texts->{$_} } grep { base($_) eq $key } keys %$texts;
    return join ' ', sort keys %seen;
}


# 'a.b' as it is, or with its last part filled in: `a.${x}`.

sub used {
    my $key = shift;

    return 1 if $code =~ /['"`]\Q$key\E['"`]/;
    my ($head) = $key =~ /^(.*\.)[^.]+$/ or return 0;
    return $code =~ /`\Q$head\E\$\{/;
}


sub read_file {
    open my $fh, '<:raw', $_[0] or die "$_[0]: $!\n";
    local $/;
    return <$fh>;
}
