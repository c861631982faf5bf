#!/usr/bin/perl

# The published history helper (PyPI agent-sandbox-backends) on files that
# sandbox-helper wrote from real traffic, and sandbox-history on the same: the
# same exits, the same bytes.  And both on a file that the other one wrote.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use HistoryCli;
use JSON::PP;
use MIME::Base64;
use SandboxInterop;
use SandboxTest;
use Test::More;

my $python = SandboxInterop::python('venv', 'requirements.txt');
my $published = `$python -c 'import agent_sandbox_backends.helper.source.history_helper as h; print(h.__file__)'`;
chomp $published;
ok(-f $published, 'the published helper is there') or BAIL_OUT('no helper');

my %program = (
    published => [ $python, $published ],
    ours      => [ "$SandboxProcess::BUILD/sandbox-history" ],
);


# One call to both; request_id and the program's name are all that may differ.

sub both {
    my ($name, $db, @args) = @_;

    my ($theirs, $ours) = map {
        my $h = HistoryCli->new(program => $program{$_}, database => $db);
        my $got = $h->call(@args);
        $got->{raw} =~ s/"request_id":"[0-9a-f-]{36}"/"request_id":""/;
        $got;
    } qw(published ours);

    is($ours->{exit}, $theirs->{exit}, "$name: exit") or diag $ours->{stderr};
    is($ours->{raw}, $theirs->{raw}, "$name: answer");
    is($ours->{stderr}, $theirs->{stderr}, "$name: standard error")
        if $theirs->{exit} == 1;

    return $theirs->{stdout};
}


# Every reading call there is, on one file.

sub read_all {
    my ($name, $db) = @_;

    both("$name: $_", $db, $_) for qw(health identity-get config-get);

    my @query = ('query', '--limit', 100000, '--max-bytes', 100000000);
    my $all = both("$name: query", $db, @query, '--after-change-seq', 0);
    my @changes = @{ $all->{data}{changes} };

    my %ids = map { $_->{event_id} => 1 } @changes;

    for my $id (sort keys %ids) {
        both("$name: get-operation $id", $db, 'get-operation', '--event-id', $id);

        for my $stream (qw(stdout stderr)) {
            both("$name: get-output $id $stream", $db, 'get-output',
                 '--event-id', $id, '--stream', $stream);
        }
    }

    # by pages of 3 changes, and of few bytes
    my $after = 0;

    for (1 .. 4) {
        my $page = both("$name: page after $after", $db, 'query', '--limit', 3,
                        '--max-bytes', 5000, '--after-change-seq', $after);
        $after = $page->{data}{next_change_seq};
    }

    both("$name: few bytes", $db, 'query', '--limit', 100, '--max-bytes', 700,
         '--after-change-seq', 0);
    both("$name: too few bytes", $db, 'query', '--limit', 1, '--max-bytes', 9,
         '--after-change-seq', 0);
    both("$name: beyond the end", $db, 'query', '--limit', 1, '--max-bytes',
         9, '--after-change-seq', 1 << 40);
    both("$name: bad bounds", $db, 'query', '--limit', 0, '--max-bytes', 9,
         '--after-change-seq', 0);
    both("$name: a number too large", $db, 'query', '--limit', 1,
         '--max-bytes', 9, '--after-change-seq', '99999999999999999999');
    both("$name: no such operation", $db, 'get-operation', '--event-id', 'nope');
    both("$name: no output of it", $db, 'get-output', '--event-id', 'nope',
         '--stream', 'stdout');
    both("$name: several", $db, 'get-operations', '--event-ids',
         join ',', 'nope', ' ' . ((sort keys %ids)[0] // q()) . ' ');

    return @changes;
}

# --- files that sandbox-helper wrote ------------------------------------------

my $t = SandboxTest->new->start;
my $sandbox = 'py-1';
my $base = "/v1/sandboxes/$sandbox/proxy/44772";
my $cjk = "\xe4\xbd\xa0\xe5\xa5\xbd";

$t->sandbox($sandbox);

my $text = "$cjk \\\"quoted\\\" \\u0001";
my $r = $t->post("$base/command", body => qq({"command":"echo $text"}),
    headers => [ 'X-Actor-Type: agent', "X-Actor-Id: bot-$cjk",
                 'X-Run-Id: run-1', 'X-Thread-Id: t-1' ]);
is($r->status, 200, 'a command');
my $command = $t->record($r);
$t->record($t->get("$base/files/info?path=/a%20b.txt&path=/c"));
$t->record($t->get("$base/files/download?path=/etc/%E4%BD%A0"));
my $upload = $t->post("$base/files/upload",
    headers => [ 'Content-Type: multipart/form-data; boundary=B' ],
    body => join("\r\n", '--B',
        'Content-Disposition: form-data; name="metadata"; filename="m"', '',
        '{"path":"/workspace/u.txt","mode":644}', '--B',
        'Content-Disposition: form-data; name="file"; filename="f"', '',
        "hello $cjk", '--B--', ''));
$t->record($upload);
$t->record($t->get("/v1/sandboxes/$sandbox"));

my $db = $t->history->path_of($sandbox);
$t->wait_for(sub { $t->history->events($sandbox) >= 5 });

is($t->history->value($sandbox, 'pragma user_version'), 1, 'user_version 1');
is($t->history->value($sandbox, 'pragma journal_mode'), 'wal', 'WAL');
is($t->history->value($sandbox, 'pragma integrity_check'), 'ok', 'sound');
is_deeply(HistoryCli::schema($db), JSON::PP->new->utf8->decode(HistoryCli::slurp(
              "$FindBin::Bin/../fixtures/history-schema.json")),
          'the file reports the recorded schema');

my @changes = read_all('gateway file, while the helper runs', $db);
ok((grep { $_->{operation_type} eq 'command.execute'
           && $_->{change_type} eq 'completed' } @changes),
   'the published helper sees the command');

my $h = HistoryCli->new(program => $program{published}, database => $db);
my $op = $h->call('get-operation', '--event-id', $command->{event_id})
           ->{stdout}{data};
is($op->{actor_type}, 'agent', 'the published helper reads the actor');
is($op->{run_id}, 'run-1', 'and the run');
is($op->{command}{exit_code}, $command->{command}{exit_code},
   'and the exit code');
my $chunks = $h->call('get-output', '--event-id', $command->{event_id},
                      '--stream', 'stdout')->{stdout}{data}{chunks};
is(join('', map { decode_base64($_->{data_base64}) } @$chunks),
   $t->history->output($command->{event_id}, 'stdout', $sandbox),
   'and the output');

# The gateway's files have one writer: while it runs, it writes for others.

my $writer = HistoryCli->new(program => $program{ours}, database => $db);
my $got = $writer->call('ack', '--consumer-id', 'x', '--seq', 1);
is($got->{exit}, 0, 'sandbox-history writes through the helper');
is($got->{stdout}{data}{acknowledged_seq}, 1, 'and answers as always');
is($t->history->value($sandbox, 'select acknowledged_seq from'
                      . " history_consumers where consumer_id = 'x'"), 1,
   'it is in the file');

read_all('_gateway', $t->history->path_of('_gateway'))
    if -e $t->history->path_of('_gateway');
$t->stop;
read_all('gateway file, after the helper', $db);

$got = $writer->call('ack', '--consumer-id', 'x', '--seq', 2);
is($got->{exit}, 1, 'without the helper nobody writes into it');
like($got->{stderr}, qr/only its sandbox-helper/, 'and it is said');

# --- files that one of the two wrote -----------------------------------------

for my $who (qw(published ours)) {
    my $w = HistoryCli->new(program => $program{$who});
    $w->{database} = $w->dir . '/history.sqlite3';

    for my $case (HistoryCli::recorded(
        "$FindBin::Bin/../fixtures/history-cli.jsonl"))
    {
        is($w->replay($case)->{exit}, $case->{exit},
           "$who writes: $case->{case}");
    }

    read_all("file by $who", $w->{database});
}

for my $missing ('missing', 'missing/deep') {
    for my $call ([ 'health' ], [ 'identity-get' ], [ 'config-get' ],
                  [ 'get-operation', '--event-id', 'x' ])
    {
        my @dirs = map { File::Temp->newdir } 1 .. 2;
        my @got = map {
            HistoryCli->new(program => $program{ (qw(published ours))[$_] },
                database => "$dirs[$_]/$missing.sqlite3")->call(@$call)
        } 0, 1;
        delete $_->{stdout}{request_id} for @got;
        is_deeply($got[1]{stdout}, $got[0]{stdout}, "@$call on $missing");
        is($got[1]{exit}, $got[0]{exit}, "@$call on $missing: exit");
    }
}

done_testing;
