package HistoryCli;

# Calls of a history helper, ours or the published one, on one database:
# status, standard output and standard error; and the recorded calls of the
# published one (t/fixtures/history-cli.jsonl).

use strict;
use warnings;

use File::Temp;
use JSON::PP;

my $json = JSON::PP->new->utf8->canonical->allow_nonref;


# Options: program (an array), database.

sub new {
    my ($class, %o) = @_;

    return bless { dir => File::Temp->newdir('sandbox-h-XXXXXX', TMPDIR => 1),
                   %o }, $class;
}


sub dir { "$_[0]{dir}" }
sub database { $_[0]{database} }


# Runs a program without a database: ($status, $out, $err).  A hash first:
# env => { NAME => VALUE or undef }.

sub run {
    my ($self, @command) = @_;

    my $o = ref $command[0] eq 'HASH' ? shift @command : {};
    my ($out, $err) = map { "$self->{dir}/$_" } qw(out err);
    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        for my $name (keys %{ $o->{env} // {} }) {
            my $v = $o->{env}{$name};
            defined $v ? ($ENV{$name} = $v) : delete $ENV{$name};
        }

        open STDIN, '<', '/dev/null';
        open STDOUT, '>', $out;
        open STDERR, '>', $err;
        exec { $command[0] } @command or POSIX::_exit(127);
    }

    waitpid $pid, 0;

    return ($? & 127 ? "signal " . ($? & 127) : $? >> 8,
            map { slurp($_) } $out, $err);
}


sub slurp {
    open my $fh, '<:raw', shift or return '';
    local $/;

    return scalar(<$fh>) // '';
}


sub write_json {
    my ($self, $name, $value) = @_;

    my $path = "$self->{dir}/$name";
    open my $fh, '>:raw', $path or die "$path: $!\n";
    print $fh ref $value ? $json->encode($value) : $value;
    close $fh or die "$path: $!\n";

    return $path;
}


# One call; what a JSON answer says of itself alone (request_id) is left out.

sub call {
    my ($self, @args) = @_;

    my ($status, $out, $err) = $self->run(@{ $self->{program} },
        '--database', $self->{database}, @args);
    my $answer = length $out ? eval { $json->decode($out) } : '';

    return { exit => $status, raw => $out, stderr => $err,
             stdout => $answer };
}


# The recorded calls.

sub recorded {
    my $path = shift;

    return map { $json->decode($_) } grep { /\S/ } split /^/m, slurp($path);
}


sub replay {
    my ($self, $case) = @_;

    my @args = @{ $case->{arguments} };

    for my $name (keys %{ $case->{files} }) {
        my $path = $self->write_json("$name.json", $case->{files}{$name});
        $_ eq "$name.json" and $_ = $path for @args;
    }

    return $self->call(@args);
}


# An answer with everything that the recording replaced replaced too.

sub like_recorded {
    my ($got, $want) = @_;

    return $want if defined $want && !ref $want
                    && $want =~ /^<(?:uuid|time|text|n)>\z/
                    && defined $got && !ref $got && fits($got, $want);

    if (ref $want eq 'HASH' && ref $got eq 'HASH') {
        return { map { $_ => like_recorded($got->{$_}, $want->{$_}) }
                 keys %$got };
    }

    if (ref $want eq 'ARRAY' && ref $got eq 'ARRAY') {
        return [ map { like_recorded($got->[$_], $want->[$_]) } 0 .. $#$got ];
    }

    return $got;
}


# Is a value of the kind that was replaced?

sub fits {
    my ($got, $want) = @_;

    return $got =~ /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\z/
        if $want eq '<uuid>';
    return $got =~ /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3}(?:\d{3})?)?Z\z/
        if $want eq '<time>';
    return $got =~ /^\d+\z/ if $want eq '<n>';

    return length $got;
}


# The schema of a database as SQLite reports it, in the form of
# t/fixtures/history-schema.json, without our own tables.

sub schema {
    my $db = shift;

    my $rows = sub {
        open my $fh, '-|', 'sqlite3', '-readonly', '-json', $db, shift
            or die "sqlite3: $!\n";
        local $/;
        my $text = <$fh>;
        close $fh;
        return defined $text && $text =~ /\S/ ? @{ $json->decode($text) } : ();
    };

    my ($version) = map { values %$_ } $rows->('pragma user_version');
    my %tables;

    for my $t ($rows->("select name, sql from sqlite_master where type = 'table'"
                       . " and name not like 'sqlite%'"
                       . " and name not like 'gateway%'"))
    {
        my $name = $t->{name};

        my @columns = map { $_->{default} = delete $_->{dflt_value}; $_ }
                      $rows->("pragma table_info('$name')");
        my @indexes = map {
            my $i = $_;
            { name => $i->{name}, unique => $i->{unique},
              origin => $i->{origin}, columns => [ map { $_->{name} }
                $rows->("pragma index_info('$i->{name}')") ] }
        } sort { $a->{name} cmp $b->{name} } $rows->("pragma index_list('$name')");

        $tables{$name} = {
            columns => \@columns,
            foreign_keys => [ $rows->("pragma foreign_key_list('$name')") ],
            indexes => \@indexes,
            autoincrement => $t->{sql} =~ /autoincrement/i ? 1 : 0,
        };
    }

    return { user_version => $version, tables => \%tables };
}

1;
