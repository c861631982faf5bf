package RunProgram;

# Runs a program to its end: its wait status, and what it wrote to standard
# output and standard error.

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT_OK = qw(run_program sources);


sub run_program {
    my @command = @_;

    my $pid = open(my $fh, '-|') // die "fork: $!\n";

    if ($pid == 0) {
        open STDIN, '<', '/dev/null' or die "null: $!\n";
        open STDERR, '>&', \*STDOUT or die "dup: $!\n";
        exec { $command[0] } @command or die "$command[0]: $!\n";
    }

    local $/;
    my $out = <$fh> // '';
    close $fh;

    return ($?, $out);
}


# Names of the C files in a directory that match, without their ending.

sub sources {
    my ($dir, $match) = @_;

    opendir my $dh, $dir or return;

    return sort map { s/\.c$//r } grep { /^$match.*\.c$/ } readdir $dh;
}

1;
