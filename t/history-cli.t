#!/usr/bin/perl

# sandbox-history: the recorded calls of the published helper, the schema, and
# the commands for people on files with everything that makes a reader stumble.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Path qw(make_path);
use IO::Select;
use JSON::PP;
use POSIX qw(:sys_wait_h);
use Test::More;
use Time::HiRes qw(sleep time);

use HistoryCli;
use SandboxProcess;

my $program = "$SandboxProcess::BUILD/sandbox-history";
-x $program or die "$program is missing: run make first\n";

my $json = JSON::PP->new->utf8;


# --- for programs ------------------------------------------------------------

{
    my $h = HistoryCli->new(program => [ $program ]);
    $h->{database} = $h->dir . '/made/of/it/history.sqlite3';

    for my $case (HistoryCli::recorded("$FindBin::Bin/fixtures/history-cli.jsonl"))
    {
        my $got = $h->replay($case);
        my $name = "recorded call $case->{case}";

        is($got->{exit}, $case->{exit}, "$name: exit");
        is_deeply(HistoryCli::like_recorded($got->{stdout}, $case->{stdout}),
                  $case->{stdout}, "$name: members");
        is(scalar(() = $got->{stderr} =~ /\n/g), $case->{stderr_lines},
           "$name: standard error");
        unlike($got->{raw}, qr/\n./, "$name: one line");
    }

    my $want = $json->decode(
        HistoryCli::slurp("$FindBin::Bin/fixtures/history-schema.json"));
    is_deeply(HistoryCli::schema($h->{database}), $want,
              'a file of ours reports the recorded schema');

    numbers($h);
    readers($h);
}


# Stored JSON comes out in the one canonical form (history format 15.2).

sub numbers {
    my $h = shift;
    my $id = '0197a000-0000-7000-8000-000000000001';

    sql($h->{database}, <<'EOF');
update history_events set request_json =
 '{"z":1e5, "b":[1.10,-0,1e-7,1e16,123456.789e3,-0.0,5e-324,100.0,1e22,9007199254740993.0],'
 || '"é":"\u007f\u2028/\u0001\b\f\ud83d\ude00","b2":123456789012345678901234567890,"z":null}',
 result_json = '' where seq = 1;
alter table command_executions add column gateway_note text;
update command_executions set gateway_note = 'extra';
EOF

    my $got = $h->call('get-operation', '--event-id', $id);
    my $request = '"request":{"b":[1.1,0,1e-07,1e+16,123456789.0,-0.0,5e-324,'
        . '100.0,1e+22,9007199254740992.0],"b2":123456789012345678901234567890,'
        . "\"z\":null,\"\xc3\xa9\":\"\x7f\xe2\x80\xa8/\\u0001\\b\\f"
        . "\xf0\x9f\x98\x80\"}";

    like($got->{raw}, qr/\Q$request\E/, 'canonical JSON');
    is($got->{stdout}{data}{result}, undef, 'an empty text is null');
    is($got->{stdout}{data}{command}{gateway_note}, 'extra',
       'columns that others added are shown');

    sql($h->{database}, "update file_operations set diff_data = x'00ff'");
    $got = $h->call('get-operation', '--event-id', $id =~ s/1\z/2/r);
    is($got->{exit}, 1, 'a diff that is no text');
    is($got->{stdout}{error}{type}, 'TypeError', 'is a TypeError');

    sql($h->{database}, "update history_events set request_json = '[1'");
    $got = $h->call('get-operation', '--event-id', $id);
    is($got->{stdout}{error}{type}, 'JSONDecodeError', 'broken JSON is said');
    like($got->{stderr}, qr/^history-helper: JSONDecodeError: .+\n\z/,
         'in one line on standard error');

    $got = $h->call('get-operation', '--event-id', "x\ny\e[2J");
    unlike($got->{stderr}, qr/\e|\n./, 'what the caller gave cannot forge lines');
}


# Reading neither writes nor waits.

sub readers {
    my $h = shift;
    my $db = $h->{database};

    sql($db, 'pragma wal_checkpoint(truncate)');
    my $before = HistoryCli::slurp($db);

    open my $writer, '|-', 'sqlite3', '-bail', $db or die "sqlite3: $!\n";
    $writer->autoflush;
    print $writer "begin immediate; update history_meta set value = value;\n";
    sleep 0.3;
    my $began = time;
    is($h->call('health')->{exit}, 0, 'a writer at work is no obstacle');
    ok(time - $began < 2, 'nor makes it wait');
    print $writer "rollback;\n";
    close $writer;

    $h->call($_) for qw(health identity-get config-get);
    is(HistoryCli::slurp($db), $before, 'reading changes nothing in the file');

    SKIP: {
        skip 'only root can become another user', 3 if $>;

        my ($uid, $gid) = (getpwnam 'nobody')[2, 3];
        my $dir = $h->dir . '/owned';
        mkdir $dir;
        chmod 0755, $h->dir;
        system 'cp', $db, "$dir/history.sqlite3";
        chown $uid, $gid, $dir, "$dir/history.sqlite3";
        chmod 0700, $dir;

        my $o = HistoryCli->new(program => [ $program ],
                                database => "$dir/history.sqlite3");
        is($o->call('health')->{exit}, 0, 'root reads what another user owns');
        my @left = grep { (stat)[4] != $uid } glob "$dir/*";
        is("@left", '', 'and leaves nothing of its own behind');
        is((stat "$dir/history.sqlite3")[4], $uid, 'the file keeps its owner');
    }

    for my $case ([ 'a text', 'DatabaseError', sub { print { $_[0] } 'x' x 200 } ])
    {
        my $path = $h->dir . '/bad.sqlite3';
        open my $fh, '>', $path;
        $case->[2]->($fh);
        close $fh;
        my $o = HistoryCli->new(program => [ $program ], database => $path);
        my $got = $o->call('query', '--after-change-seq', 0, '--limit', 1,
                           '--max-bytes', 9);
        is($got->{stdout}{error}{type}, $case->[1], "$case->[0] is no database");
        is($got->{exit}, 1, 'exit 1');
    }
}


sub sql {
    my ($db, $text) = @_;

    open my $fh, '|-', 'sqlite3', '-bail', $db or die "sqlite3: $!\n";
    print $fh $text;
    close $fh or die "sqlite3 failed on: $text\n";
}


# --- for people --------------------------------------------------------------

my $h = HistoryCli->new(program => [ $program ]);
my $root = $h->dir . '/data/history';
my $number = 0;


sub quote {
    my $v = shift;

    return 'null' if !defined $v;
    return "x'" . unpack('H*', $$v) . "'" if ref $v;
    return "cast(x'" . unpack('H*', $v) . "' as text)";
}


sub insert {
    my ($table, %row) = @_;

    my @names = sort keys %row;

    return "insert into $table(" . join(',', @names) . ') values('
           . join(',', map { quote($row{$_}) } @names) . ");\n";
}


# A sandbox's file; its tables are made by the program itself.

sub sandbox {
    my ($id, $name) = @_;

    my $db = "$root/$id/history.sqlite3";
    my $o = HistoryCli->new(program => [ $program ], database => $db);
    my $identity = $o->write_json('identity.json', {
        provider_key => 'opensandbox-default', sandbox_id => $id,
        sandbox_instance_id => 'i', sdk_version => '1', schema_version => 1,
        defined $name ? (sandbox_name => $name) : () });
    is($o->call('init', '--identity-file', $identity)->{exit}, 0,
       "a file for $id");

    return $db;
}


# An operation as the helper writes it, in one transaction.

sub operation {
    my ($sandbox, $seq, $cursor, $type, %o) = @_;

    my $id = $o{id} // sprintf '0197a000-0000-7000-8000-%012x', ++$number;
    my $at = $o{at} // sprintf '2026-11-29T10:00:%02d.000001Z', $number % 60;
    my $status = $o{status} // 'succeeded';
    my $ended = $status ne 'started';

    my $sql = insert('history_events', event_id => $id, provider_key => 'p',
        sandbox_id => $sandbox, sandbox_instance_id => 'i', source => 'sdk',
        actor_type => 'agent', actor_id => $o{actor} // 'bot',
        thread_id => 't-1', run_id => $o{run} // 'r-1',
        correlation_id => 'c-1', operation_type => $type, status => $status,
        occurred_at => $at, completed_at => $ended ? $at : undef,
        duration_ms => $ended ? $o{ms} // 12 : undef,
        request_json => $o{request} // '{}', result_json => $o{result});

    $sql .= insert('gateway_records', event_id => $id, seq => $seq,
                   cursor => $cursor)
        . insert('gateway_wire', event_id => $id, method => 'POST',
            path => $o{path} // '/command', port => 44772,
            http_status => $o{http} // 200, bytes_in => 100, bytes_out => 2048,
            identity => 'token:first+stated', error_code => $o{code},
            client => '127.0.0.1') if defined $seq;

    if (defined $o{command}) {
        $sql .= insert('command_executions', event_id => $id,
                       command => $o{command}, cwd => '',
                       exit_code => $o{exit});
        my (%index, $ord);

        for my $piece (@{ $o{output} // [] }) {
            my ($stream, $data) = @$piece;
            my $i = $index{$stream}++ // 0;
            $sql .= insert('command_output_chunks', event_id => $id,
                           stream => $stream, chunk_index => $i,
                           data => \$data, original_size => length $data,
                           created_at => $at);
            $sql .= insert('gateway_output', event_id => $id,
                           ord => $ord++ // 0, stream => $stream,
                           chunk_index => $i, offset => 0,
                           length => length $data, at => $at,
                           cursor => $cursor) if defined $seq;
        }
    }

    my $n = 0;

    for my $path (@{ $o{files} // [] }) {
        $sql .= insert('file_operations', event_id => $id, path => $path,
                       change_type => 'write', after_size => 5,
                       after_hash => 'ab' x 32) if $n == 0;
        $sql .= insert('gateway_files', event_id => $id, n => $n++,
                       path => $path, size => 5, sha256 => 'ab' x 32,
                       flags => 0) if defined $seq;
    }

    $sql .= insert('history_changes', change_id => "$id:created",
                   event_id => $id, change_type => 'created',
                   changed_at => $at);
    $sql .= insert('history_changes', change_id => "$id:completed:$status",
                   event_id => $id, change_type => 'completed',
                   changed_at => $at) if $ended;

    sql("$root/$sandbox/history.sqlite3", ".timeout 5000\nbegin immediate;\n$sql"
                                          . "commit;\n");

    return $id;
}


sub history {
    my @args = @_;

    return $h->run({ env => { SANDBOX_GATEWAY_DATA => undef,
                              SANDBOX_GATEWAY_HISTORY => undef } },
                   $program, '--history', $root, @args);
}


sub rows {
    my @args = @_;

    my ($status, $out, $err) = history(@args, '--json');
    is($status, 0, "@args: exit") or diag $err;

    return map { $json->decode($_) } split /\n/, $out;
}


sub ids { return [ map { $_->{id} } @_ ] }

make_path($root);
sandbox('_gateway');
sandbox('sbx-aaaa-1111', 'demo');
sandbox('sbx-bbbb-2222');

my $hostile = "echo \xe4\xbd\xa0\xe5\xa5\xbd \e[31mred\e]0;title\a "
              . "\xe2\x80\xaegnp.exe\n\tsecond \xff \xc2\x9b2J";
my @op;
$op[1] = operation('_gateway', 1, 1, 'sandbox.list', path => '/sandboxes');
$op[2] = operation('sbx-aaaa-1111', 1, 2, 'sandbox.create',
                   request => '{"image":{"uri":"python:3.11"}}', run => 'r-2');
$op[3] = operation('sbx-aaaa-1111', 2, 5, 'command.execute',
                   command => $hostile, exit => 3, status => 'failed',
                   ms => 65000,
                   output => [ [ stdout => "a\n" ], [ stderr => "warn\e[2J\n" ],
                               [ stdout => "\xe4\xbd\xa0\n\n\r1%\0" ] ]);
$op[4] = operation('sbx-bbbb-2222', 1, 3, 'file.write',
                   files => [ '/workspace/a b.txt', '/workspace/c.txt' ]);
$op[5] = operation('sbx-bbbb-2222', 2, 9, 'file.read', status => 'failed',
                   files => [ '/etc/shadow' ], code => 'GATEWAY_FORBIDDEN',
                   http => 403, actor => 'other');
$op[6] = operation('sbx-aaaa-1111', 3, 11, 'command.execute',
                   status => 'started', command => 'sleep 1000');

my @in_order = @op[1, 2, 4, 3, 5, 6];

{
    my @all = rows('list');
    is_deeply(ids(@all), \@in_order, 'list: all sandboxes in one order');
    is_deeply([ sort keys %{ $all[0] } ],
        [ sort qw(seq cursor id sandbox_id source type status started_at
                  completed_at duration_ms actor summary summary_bytes exit_code http_status
                  bytes_in bytes_out output file verdict lock chain error_code
                  reason folded) ], 'list: members');
    is_deeply([ sort keys %{ $all[0]{actor} } ],
        [ sort qw(type id thread run correlation parent identity) ],
        'list: members of the actor');
    is($all[1]{summary}, 'python:3.11', 'list: the image');
    is($all[2]{summary}, '/workspace/a b.txt and 1 more', 'list: the files');
    is($all[3]{exit_code}, 3, 'list: the exit code');
    is_deeply([ @{ $all[3]{output} }{qw(stdout_bytes stderr_bytes)} ], [ 11, 9 ],
              'list: sizes of the output');
    is($all[2]{file}{after_hash}, 'ab' x 32, 'list: a digest');
    is($all[4]{error_code}, 'GATEWAY_FORBIDDEN', 'list: why it was refused');
    is($all[5]{completed_at}, undef, 'list: what still runs has no end');

    is_deeply(ids(rows('list', '--order', 'desc')), [ reverse @in_order ],
              'newest first');
    is_deeply(ids(rows('list', '--limit', 2)), [ @in_order[4, 5] ],
              'the newest two, oldest of them first');
    is_deeply(ids(rows('tail', '-n', 2)), [ @in_order[4, 5] ],
              'tail: the same');

    for my $sandbox ('sbx-aaaa-1111', 'sbx-a', 'demo') {
        is_deeply(ids(rows('list', $sandbox)), [ @op[2, 3, 6] ],
                  "one sandbox: $sandbox");
    }

    my %filters = (
        '--type file.*' => [ @op[4, 5] ],
        '--type file.* --type sandbox.list' => [ @op[1, 4, 5] ],
        '--status failed --status started' => [ @op[3, 5, 6] ],
        '--actor other' => [ $op[5] ],
        '--actor-type user' => [],
        '--run r-2' => [ $op[2] ],
        '--thread t-1 --correlation c-1 --limit 1' => [ $op[6] ],
        '--path /workspace/c.*' => [ $op[4] ],
        '--exit-code 3' => [ $op[3] ],
        '--exit-code 0' => [],
        '--min-duration-ms 1000' => [ $op[3] ],
        '--source sdk --sandbox sbx-bbbb-2222' => [ @op[4, 5] ],
        '--since 2026-11-29T10:00:05' => [ @op[5, 6] ],
        '--from 2026-11-29 --to 2026-11-29T10:00:02Z' => [ $op[1] ],
        '--since 2026-11-29T11:00:02+01:00' => [ @op[2, 4, 3, 5, 6] ],
        '--to 2020-01-01' => [],
    );

    for my $filter (sort keys %filters) {
        is_deeply(ids(rows('list', split / /, $filter)), $filters{$filter},
                  "filter $filter");
    }
}

# Recorded text is hostile: nothing of it reaches a terminal as it is.
{
    my $control = qr/[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]/;
    my ($status, $out) = history('list');
    my @lines = split /\n/, $out;
    is(scalar @lines, 7, 'list: a line each, and a header');
    is(scalar(grep { 12 != split /\t/ } @lines), 0, 'list: twelve fields each');
    unlike($out, $control, 'list: no control character');
    like($out, qr/\\x1b\[31mred\\x1b\]0;title\\x07 \\u\{202e\}gnp\.exe\\n\\tsecond \\xff \\u\{9b\}2J/,
         'list: all of them shown');
    like($out, qr/\xe4\xbd\xa0\xe5\xa5\xbd/, 'list: CJK as it is');

    ($status, $out) = history('show', $op[3]);
    is($status, 0, 'show');
    unlike($out, $control, 'show: no control character');
    like($out, qr/^command\.execute  failed  exit 3  took 1m05s$/m, 'show: head');
    like($out, qr/^a\nwarn\\x1b\[2J\n\xe4\xbd\xa0\n\n\\r1%\\x00$/m,
         'show: output, in order');

    ($status, $out) = history('list', '--json');
    unlike($out, $control, 'list --json: no control character');

    for my $width (60, 80, 100, 132, 200) {
        my $page = terminal("stty cols $width; exec $program --history $root list");
        my @wide = grep { columns($_) > $width } split /\r?\n/, $page;
        is(scalar @wide, 0, "on $width columns nothing wraps") or diag @wide;
        unlike($page =~ s/\r//gr, $control, "on $width columns no control character");
        is(scalar(split /\r?\n/, $page), 7, "on $width columns a line each");
    }

    my $page = terminal("exec $program --history $root output $op[3]");
    like($page, qr/^warn\\x1b\[2J\r?$/m, 'output on a terminal is made safe');
    $page = terminal("exec $program --history $root output --raw $op[3]");
    like($page, qr/^warn\e\[2J\r?$/m, 'unless asked for raw');
}


# Runs a command on a terminal.

sub terminal {
    my $command = shift;
    my ($status, $out) = $h->run('script', '-qec', $command, '/dev/null');

    return $out;
}


# Columns of a line: CJK counts two.

sub columns {
    my $line = shift;
    utf8::decode($line);

    return length($line) + (() = $line =~ /[\x{2e80}-\x{9fff}]/g);
}


# Bytes come out as they went in, in the order in which they came (C035).
{
    my $all = "a\nwarn\e[2J\n\xe4\xbd\xa0\n\n\r1%\0";
    my %want = (
        '' => $all,
        '--stream stdout' => "a\n\xe4\xbd\xa0\n\n\r1%\0",
        '--stream stderr' => "warn\e[2J\n",
        '--after 0' => substr($all, 2),
        '--stream stdout --after 0' => "\xe4\xbd\xa0\n\n\r1%\0",
        '--after 99' => '',
    );

    for my $args (sort keys %want) {
        my ($status, $out) = history('output', (split / /, $args), $op[3]);
        is($status, 0, "output $args: exit");
        is($out, $want{$args}, "output $args: bytes");
    }

    my ($status, $out) = history('output', 'sbx-aaaa-1111/2');
    is($out, $all, 'output SANDBOX/SEQ');

    my @pieces = map { $json->decode($_) }
                 split /\n/, (history('output', '--json', $op[3]))[1];
    is_deeply([ map { $_->{stream} } @pieces ], [ qw(stdout stderr stdout) ],
              'output --json: a piece a line');

    my $many = join '', map { "line $_\n" } 1 .. 300;
    my $id = operation('sbx-bbbb-2222', 3, 20, 'command.execute',
        command => 'many', exit => 0,
        output => [ map { [ $_ % 3 ? 'stdout' : 'stderr', "line $_\n" ] }
                    1 .. 300 ]);
    is((history('output', $id))[1], $many, 'many runs, in order');
    is((history('output', '--stream', 'stderr', $id))[1],
       join('', map { "line " . 3 * $_ . "\n" } 1 .. 100), 'and one stream');
    push @in_order, $id;
}

# C101: a reader that does not go on holds no snapshot, so that the WAL can be
# emptied; C107: what is large is shown too.
{
    sandbox('big');
    my $big = operation('big', 1, 21, 'command.execute',
        command => 'x' x 2_000_000, exit => 0,
        output => [ map { [ stdout => 'y' x 16384 ] } 1 .. 128 ]);

    for my $command ([ 'output', $big ], [ 'list', '--json' ], [ 'tail', '-f' ])
    {
        my $pid = open my $fh, '-|', $program, '--history', $root, @$command
            or die "$program: $!\n";
        sysread $fh, my $buffer, 1000;
        sleep 0.3;
        open my $sqlite, '-|', 'sqlite3', '-cmd', '.timeout 100',
            "$root/big/history.sqlite3",
            'update history_meta set value = value;'
            . ' pragma wal_checkpoint(truncate);' or die "sqlite3: $!\n";
        like(join('', <$sqlite>), qr/^0\|0\|0$/m,
             "C101: @$command does not stand in the way of a checkpoint");
        close $sqlite;
        kill TERM => $pid;
        close $fh;
    }

    my ($status, $out) = history('show', '--json', $big);
    my $whole = '"command":"' . 'x' x 2_000_000 . '"';
    ok(index($out, $whole) > 0, 'C107: a large command, whole');
    like($out, qr/"summary":"x{4096}","summary_bytes":2000000,/,
         'C107: its line is cut, and says so');
    like($out, qr/"stdout_bytes":@{[ 128 * 16384 ]},/, 'C107: and its output');
    system 'rm', '-r', "$root/big";
}

# One record whole.
{
    my ($r) = rows('show', 'sbx-bbbb-2222/1');
    is($r->{id}, $op[4], 'show SANDBOX/SEQ');
    is_deeply([ map { $_->{path} } @{ $r->{files} } ],
              [ '/workspace/a b.txt', '/workspace/c.txt' ], 'show: all files');
    is($r->{wire}{method}, 'POST', 'show: what passed');
    is($r->{actor}{identity}, 'token:first+stated',
       'show: how the actor was known');
    ($r) = rows('show', $op[2]);
    is_deeply($r->{request}, { image => { uri => 'python:3.11' } },
              'show: the request');
    like((history('show', $op[4]))[1], qr/sha256 (?:ab){32}/, 'show: digests');
}

# Sentences: what is wrong, where, what to do.
{
    my %wrong = (
        'show 0197a' => [ 1, qr/6 characters of it at least/ ],
        'show 0197a0' => [ 1, qr/fits several records: 0197a000-/ ],
        'show ffffffff' => [ 1, qr/there is no record ffffffff in \Q$root\E/ ],
        'show demo/99' => [ 1, qr{there is no record demo/99} ],
        'show demo/x' => [ 1, qr{after the slash stands its number} ],
        'show nosuch/1' => [ 1, qr/no sandbox nosuch has a history/ ],
        'list nosuch' => [ 1, qr/no sandbox nosuch has a history in \Q$root\E/ ],
        'list sbx-' => [ 1, qr/sbx- fits 2 sandboxes/ ],
        'list --since yesterday' => [ 2, qr/yesterday is no time/ ],
        'list --nope' => [ 2, qr/unrecognized arguments: --nope.*--help/ ],
        'list --status odd' => [ 2, qr/invalid choice: 'odd'/ ],
        'list --limit x' => [ 2, qr/invalid int value/ ],
        'show' => [ 2, qr/give ID or SANDBOX\/SEQ/ ],
        'output' => [ 2, qr/give ID or SANDBOX\/SEQ/ ],
        'nothing' => [ 2, qr/there is no command 'nothing'/ ],
    );

    for my $args (sort keys %wrong) {
        my ($status, $out, $err) = history(split / /, $args);
        is($status, $wrong{$args}[0], "$args: exit");
        like($err, $wrong{$args}[1], "$args: sentence");
        is($out, '', "$args: nothing else");
    }

    my ($status, $out, $err) = $h->run($program, '--data', '/nonexistent', 'list');
    is($status, 1, 'no such data directory: exit');
    like($err, qr{there is no history directory /nonexistent/history.*--data DIR},
         'no such data directory: sentence');

    ($status) = $h->run({ env => { SANDBOX_GATEWAY_DATA => $h->dir . '/data' } },
                        $program, 'list');
    is($status, 0, 'the data directory from the environment');

    ($status, $out, $err) = $h->run($program, 'list', '--data', $h->dir . '/data');
    is($status, 0, 'or behind the command');

    SKIP: {
        skip 'root may read everything', 2 if $> == 0;
        chmod 0000, $root;
        ($status, $out, $err) = history('list');
        chmod 0755, $root;
        is($status, 1, 'unreadable: exit');
        like($err, qr/must not be read by this user/, 'unreadable: sentence');
    }
}

# One broken file does not hide the others (C115); what has no tables yet is
# not broken.
{
    for my $bad ([ text => 'x' x 5000 ], [ short => "SQLite format 3\0" . 'y' x 84 ])
    {
        mkdir "$root/bad-$bad->[0]";
        open my $fh, '>', "$root/bad-$bad->[0]/history.sqlite3";
        print $fh $bad->[1];
        close $fh;
    }

    mkdir "$root/bad-dir";
    mkdir "$root/bad-dir/history.sqlite3";
    mkdir "$root/new";
    sql("$root/new/history.sqlite3", 'pragma journal_mode=wal; vacuum;');

    my ($status, $out, $err) = history('list', '--json');
    is_deeply(ids(map { $json->decode($_) } split /\n/, $out), \@in_order,
              'C115: the others are listed');
    is($status, 1, 'C115: the exit code says that something is missing');
    is(scalar(() = $err =~ /cannot be read/g), 3, 'C115: a sentence for each');
    unlike($err, qr{/new/}, 'a file that is just being made is no fault');

    system 'rm', '-r', map { "$root/bad-$_" } qw(text short dir);
}

# Files of the SDK, without our tables, are read too.
{
    sandbox('plain');
    my $db = "$root/plain/history.sqlite3";
    sql($db, join '', map { "drop table gateway_$_;" }
        qw(state output files folded gaps detached held wire records pending));
    my $id = operation('plain', undef, undef, 'command.execute',
        id => 'Plain-Id-1', command => 'true', exit => 0,
        output => [ [ stdout => "1\n" ], [ stderr => "2\n" ],
                    [ stdout => "3\n" ] ]);

    my @all = rows('list', 'plain');
    is_deeply(ids(@all), [ 'Plain-Id-1' ], 'a file without our tables');
    is($all[0]{seq}, undef, 'has no number');
    is((history('output', 'Plain-Id-1'))[1], "1\n2\n3\n",
       'its output in the order of the chunks');
    is((history('output', '--after', 0, 'Plain-Id'))[1], "2\n3\n",
       'and from a place on');
    is(scalar(rows('list')), @in_order + 1, 'and it is among the others');
}

# Following: new operations, their beginning and their end, new sandboxes.
{
    my $out = $h->dir . '/tail';
    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        open STDOUT, '>', $out;
        exec $program, '--history', $root, 'tail', '-f', '-n', 1, '--json';
    }

    my $lines = sub { map { $json->decode($_) } split /\n/, HistoryCli::slurp($out) };
    my $until = sub {
        my ($n) = @_;
        my $end = time + 10;
        sleep 0.05 while $lines->() < $n && time < $end;
        return $lines->();
    };

    is(scalar($until->(1)), 1, 'tail -f begins with the last one');

    my $began = time;
    my $one = operation('sbx-aaaa-1111', 4, 30, 'command.execute',
                        status => 'started', command => 'true',
                        id => '0197a000-0000-7000-8000-00000000aaaa');
    my @seen = $until->(2);
    is($seen[1]{id}, $one, 'tail -f: a new one');
    is($seen[1]{status}, 'started', 'tail -f: as it begins');
    ok(time - $began < 5, 'tail -f: at once');

    sql("$root/sbx-aaaa-1111/history.sqlite3", ".timeout 5000\nbegin immediate;"
        . "update history_events set status = 'succeeded',"
        . " completed_at = occurred_at where event_id = '$one';"
        . "insert into history_changes(change_id, event_id, change_type,"
        . " changed_at) values('$one:completed:succeeded', '$one', 'completed',"
        . " '2026-11-29T10:00:00.000000Z'); commit;");
    @seen = $until->(3);
    is_deeply([ @{ $seen[2] }{qw(id status)} ], [ $one, 'succeeded' ],
              'tail -f: as it ends');

    sandbox('sbx-cccc-3333');
    my $two = operation('sbx-cccc-3333', 1, 31, 'file.write',
                        files => [ '/x' ],
                        id => '0197a000-0000-7000-8000-00000000bbbb');
    @seen = $until->(4);
    is_deeply([ @{ $seen[3] }{qw(id status)} ], [ $two, 'succeeded' ],
              'tail -f: a new sandbox');
    sleep 0.6;
    is(scalar($lines->()), 4, 'tail -f: each once');

    kill INT => $pid;
    waitpid $pid, 0;
    is($?, 0, 'tail -f ends well when interrupted');

    my $reader = open my $fh, '-|', $program, '--history', $root, 'tail', '-f';
    my $first = <$fh>;
    my $t0 = time;
    close $fh;
    ok(time - $t0 < 3, 'tail -f ends when nobody reads any more');
}

done_testing;
