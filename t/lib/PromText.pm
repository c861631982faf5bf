package PromText;

# A strict reader of Prometheus' text format 0.0.4 and of its conventions:
# parse($text) gives { "name{label=\"v\"}" => value } or dies with what is wrong.

use strict;
use warnings;

my $NAME = qr/[a-zA-Z_:][a-zA-Z0-9_:]*/;
my $LABEL = qr/[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"/;


sub parse {
    my $text = shift;

    die "the text does not end with a line feed\n" if $text !~ /\n\z/;

    my (%help, %type, %series, %seen, $family);
    my $n = 0;

    for my $line (split /\n/, $text, -1) {
        $n++;
        next if $line eq '';

        my $bad = sub { die "line $n, \"$line\": $_[0]\n" };

        if ($line =~ /^# HELP ($NAME) (\S.*)$/) {
            $bad->('HELP twice') if exists $help{$1};
            $help{$1} = $2;
            next;
        }

        if ($line =~ /^# TYPE ($NAME) (counter|gauge|histogram)$/) {
            $bad->('TYPE twice') if exists $type{$1};
            $bad->('no HELP before') if !exists $help{$1};
            ($family, my $kind) = ($1, $2);
            $type{$family} = $kind;
            $bad->('a counter is named _total')
                if ($kind eq 'counter') != ($family =~ /_total$/);
            $bad->('no unit like that')
                if $family =~ /_(?:ms|us|milliseconds|microseconds|kb|mb)(?:_|$)/;
            next;
        }

        $bad->('a comment') if $line =~ /^#/;

        $line =~ /^($NAME)(?:\{($LABEL(?:,$LABEL)*)\})? ([0-9]+(?:\.[0-9]+)?)$/
            or $bad->('not a sample');
        my ($name, $labels, $value) = ($1, $2 // '', $3);

        my $base = $name =~ s/_(?:bucket|sum|count)$//r;
        $base = $name if ($type{$base} // '') ne 'histogram';
        $bad->('not behind its TYPE') if $base ne ($family // '');

        my %l;
        for (split /,(?=[a-zA-Z_])/, $labels) {
            my ($k) = /^([^=]+)/;
            $bad->('a label twice') if $l{$k}++;
        }

        $bad->('a series twice') if $seen{"$name\{$labels}"}++;
        $series{ $labels eq '' ? $name : "$name\{$labels}" } = $value;

        next if $type{$base} ne 'histogram';

        if ($name =~ /_bucket$/) {
            my ($le) = $labels =~ /(?:^|,)le="([^"]*)"/ or $bad->('no le');
            (my $rest = $labels) =~ s/,?le="[^"]*"//;
            my $h = $series{histograms}{$base}{$rest} //= { le => -1, n => 0 };
            my $v = $le eq '+Inf' ? 9e99 : $le;
            $bad->('buckets out of order') if $v <= $h->{le};
            $bad->('buckets do not add up') if $value < $h->{n};
            @{$h}{ qw(le n) } = ($v, $value);

        } elsif ($name =~ /_count$/) {
            my $h = $series{histograms}{$base}{$labels}
                or $bad->('no buckets before');
            $bad->('not what the bucket +Inf says')
                if $h->{le} != 9e99 || $h->{n} != $value;
            $h->{count} = 1;

        } elsif ($name =~ /_sum$/) {
            ($series{histograms}{$base}{$labels} or $bad->('no buckets before'))
                ->{sum} = 1;

        } else {
            $bad->('a histogram has no such sample');
        }
    }

    for my $base (keys %{ $series{histograms} }) {
        for my $h (values %{ $series{histograms}{$base} }) {
            die "$base: count or sum is missing\n" if !$h->{count} || !$h->{sum};
        }
    }

    for (keys %type) {
        die "$_ has no HELP\n" if !exists $help{$_};
    }

    for (keys %help) {
        die "$_ has no TYPE\n" if !exists $type{$_};
    }

    delete $series{histograms};

    return \%series;
}

1;
