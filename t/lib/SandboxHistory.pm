package SandboxHistory;

# Reads the history files of a gateway with the sqlite3 program, as any other
# reader would.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use JSON::PP;
use POSIX ();

my $bytes = JSON::PP->new->utf8->allow_nonref;
my $chars = JSON::PP->new->allow_nonref;

# gateway_records numbers the records of a file without gaps (design 5); the row
# of gateway_wire comes along, so that both are of the same moment.
my @wire = qw(sandbox method path port client agent request_id http_status
              upstream_status upstream route bytes_in bytes_out duration_us
              identity parent error_code reason record files_total foldable);
my $select = 'select e.*, r.seq as record_seq, r.cursor as cursor, json_object('
    . join(', ', map { "'$_', w.$_" } @wire) . ') as wire'
    . ' from history_events e left join gateway_records r using (event_id)'
    . ' left join gateway_wire w using (event_id)';


sub new {
    my ($class, %o) = @_;

    return bless { %o }, $class;
}


# Directory name of a sandbox's history (design 5).

sub dir_of {
    my ($self, $sandbox) = @_;

    return $sandbox
        if $sandbox =~ /^(?:_gateway|[A-Za-z0-9][A-Za-z0-9._-]{0,127}|x-[0-9a-f]{64})\z/;

    return 'x-' . sha256_hex($sandbox);
}


sub path_of {
    my ($self, $sandbox) = @_;

    return "$self->{dir}/" . $self->dir_of($sandbox) . '/history.sqlite3';
}


sub dirs {
    my $self = shift;

    opendir my $dh, $self->{dir} or return;

    return sort grep { -e "$self->{dir}/$_/history.sqlite3" } readdir $dh;
}


# Runs the sqlite3 program, as the owner of the file when we are root: what root
# makes beside a database (-shm) would be in the owner's way for a moment.

sub sqlite3 {
    my ($path, $mode, $sql) = @_;

    my ($uid, $gid) = (stat $path)[4, 5];
    my $pid = open(my $fh, '-|') // die "fork: $!\n";

    if ($pid == 0) {
        if ($> == 0 && defined $uid) {
            $) = "$gid $gid";
            POSIX::setgid($gid);
            POSIX::setuid($uid);
        }

        open STDERR, '>&', \*STDOUT;
        { exec 'sqlite3', '-readonly', $mode, '-cmd', '.timeout 5000', $path,
               $sql }
        POSIX::_exit(127);
    }

    return $fh;
}


# Rows of a query as hashes; none when there is no such file yet.

sub query {
    my ($self, $sandbox, $sql) = @_;

    my $path = $self->path_of($sandbox);
    return if !-e $path;

    my $fh = sqlite3($path, '-json', $sql);
    my $text = do { local $/; <$fh> };
    close $fh;

    # a file that is just being made has no tables yet
    return if !defined $text || $text !~ /\S/
              || $text =~ /no such table|unable to open database file/;
    die "$path: $text" if $text =~ /^\w*\s?[Ee]rror/;

    return @{ $bytes->decode($text) };
}


sub value {
    my ($self, $sandbox, $sql) = @_;

    my ($row) = $self->query($sandbox, $sql);

    return $row ? (values %$row)[0] : undef;
}


sub decoded {
    my ($e, $sandbox) = @_;

    $e->{in} = $sandbox;
    $e->{wire} = $chars->decode($e->{wire});

    for (qw(request result)) {
        my $text = $e->{"${_}_json"};
        $e->{$_} = defined $text && length $text
            ? eval { $chars->decode($text) } : undef;
    }

    return $e;
}


# All records of a sandbox in the order of their numbers, with `wire` (the row
# of gateway_wire) and `in` (whose file it is).

sub events {
    my ($self, $sandbox) = @_;

    return map { decoded($_, $sandbox) }
           $self->query($sandbox, "$select order by r.seq, e.seq");
}


# The columns of a statement over every file, for very many rows.

sub rows {
    my ($self, $sql) = @_;

    return map {
        my $fh = sqlite3($self->path_of($_), '-list', $sql);
        chomp(my @lines = <$fh>);
        map { [ split /\|/, $_, -1 ] } @lines;
    } $self->dirs;
}


# What `pragma integrity_check` has to say of any file; nothing: all is well.

sub broken {
    my $self = shift;

    return grep { !/: ok$/ } map {
        "$_: " . ($self->value($_, 'pragma integrity_check') // 'none')
    } $self->dirs;
}


# Every record of every file in short, by its id: type, status, in, sandbox.

sub index {
    my $self = shift;

    my %index;

    for my $s ($self->dirs) {
        $index{$_->{event_id}} = { %$_, in => $s }
            for $self->query($s, 'select event_id, operation_type as type,'
                . ' status, coalesce(sandbox, sandbox_id) as sandbox'
                . ' from history_events left join gateway_wire'
                . ' using (event_id)');
    }

    return \%index;
}


# One record by its id, wherever it is, with its side rows: command, file
# (file_operations), files (gateway_files), wire; `in` says whose file holds it.

sub event {
    my ($self, $id, $sandbox) = @_;

    for my $s (defined $sandbox ? $sandbox : $self->dirs) {
        my ($e) = $self->query($s, "$select where e.event_id = '$id'")
            or next;

        decoded($e, $s);
        ($e->{command}) = $self->query($s,
            "select * from command_executions where event_id = '$id'");
        ($e->{file}) = $self->query($s,
            "select * from file_operations where event_id = '$id'");
        $e->{files} = [ $self->query($s,
            "select * from gateway_files where event_id = '$id' order by n") ];

        return $e;
    }

    return undef;
}


# The recorded output of an operation, as bytes.

sub output {
    my ($self, $id, $stream, $sandbox) = @_;

    for my $s (defined $sandbox ? $sandbox : $self->dirs) {
        my $path = $self->path_of($s);
        next if !-e $path;

        my $fh = sqlite3($path, '-list', 'select hex(data) from'
            . " command_output_chunks where event_id = '$id'"
            . " and stream = '$stream' order by chunk_index");

        my ($out, $any) = ('', 0);

        while (my $line = <$fh>) {
            chomp $line;
            last if $line =~ /[^0-9A-F]/;      # no such table yet
            $any = 1;
            $out .= pack 'H*', $line;
        }

        close $fh;
        return $out if $any;
    }

    return '';
}


# How often a folded polling record was repeated.

sub folded {
    my ($self, $sandbox, $id) = @_;

    return $self->value($sandbox,
        "select count from gateway_folded where event_id = '$id'") // 0;
}


sub gaps {
    my ($self, $sandbox) = @_;

    return grep { $_->{operation_type} eq 'gateway.gap' }
           $self->events($sandbox);
}

1;
