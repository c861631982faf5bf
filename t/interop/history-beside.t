#!/usr/bin/perl

# The published helper and the SDK's store beside a writer. They read a file of
# the gateway while sandbox-helper writes it: nobody meets an error, nothing is
# seen twice or missed. On a file that no helper holds, they and sandbox-history
# write, in turn and at once: nothing is lost, nothing is there twice.
#
# 10,000 records and reads, and 2,000 records alternately, with T_SCALE=10.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use HistoryCli;
use JSON::PP;
use SandboxFrames qw(op_id);
use SandboxInterop;
use SandboxTest;
use Test::More;
use Time::HiRes qw(time sleep);

my $scale = $ENV{T_SCALE} || 1;
$scale = 10 if $scale > 10;
my $python = SandboxInterop::python('venv', 'requirements.txt');
my $beside = "$FindBin::Bin/beside.py";
my $ours = "$SandboxProcess::BUILD/sandbox-history";


# --- they read, the helper writes --------------------------------------------------------

my $t = SandboxTest->new;
my $count = 1000 * $scale;
my $reads = $scale == 10 ? $count : 300 * $scale;
my $c;

$t->start_helper;
$c = SandboxFrames->new("$t->{dir}/run/helper.sock", 9) or die "no helper\n";

# the file has to be there
operation(1);
ok($t->wait_for(sub { $t->history->value('s1', 'select count(*) from'
    . " history_events where status = 'succeeded'") }), 'a first record');

my $log = "$t->{dir}/reader";
my $pid = SandboxProcess->spawn($log, $python, $beside, 'read',
                                $t->history->path_of('s1'), $reads, $count);
my $began = time;
my $acked;

for my $n (2 .. $count) {
    operation($n);

    if ($n % 50 == 0) {
        $acked = $c->ack // last;
        # about as fast as they read
        sleep 0.05;
    }
}

is($acked->{seq}, $c->{seq}, "$count operations are acknowledged");
my $written = time - $began;
waitpid $pid, 0;
is($?, 0, 'no reader met an error') or diag(SandboxTest::read_file($log));

my $said = eval { JSON::PP->new->decode(SandboxTest::read_file($log)) } // {};
is($said->{created}, $count, 'each beginning was seen once');
is($said->{completed}, $count, 'each end too');
cmp_ok($said->{reads} // 0, '>=', $reads, "$said->{reads} reads");
diag(sprintf '%d records in %.1f s, %d reads in %.1f s', $count, $written,
     $said->{reads} // 0, time - $began);
is(join(' ', $t->history->broken), '', 'integrity_check: ok');

$t->stop;


# --- both write --------------------------------------------------------------------------

my $each = 15 * $scale;
my $h = HistoryCli->new(program => [ $python, published() ]);
my $db = $h->{database} = $h->dir . '/history.sqlite3';
my ($init) = grep { ($_->{arguments}[0] // '') eq 'init' }
             HistoryCli::recorded("$FindBin::Bin/../fixtures/history-cli.jsonl");
is($h->replay($init)->{exit}, 0, 'a file');

# record by record, three for an operation: start, output, end
is(system($python, $beside, 'write', $db, 'both', int(4.5 * $each), $ours), 0,
   'in turn');

my @pids = map {
    SandboxProcess->spawn($h->dir . "/$_", $python, $beside, 'write', $db, $_,
                          $each, $ours)
} qw(published ours);

for my $who (qw(published ours)) {
    waitpid shift @pids, 0;
    is($?, 0, "at once: $who") or diag(SandboxTest::read_file($h->dir . "/$who"));
}

my $all = 2 * $each + int(4.5 * $each);
my %value = map { split /\|/, $_, 2 } split /\n/, sqlite(
    "select 'events', count(*) from history_events where status = 'succeeded'",
    "union all select 'all', count(*) from history_events",
    "union all select 'chunks', count(*) from command_output_chunks",
    "union all select 'commands', count(*) from command_executions where exit_code = 0",
    "union all select change_type, count(*) from history_changes group by change_type",
    "union all select 'wrong', count(*) from command_output_chunks o"
    . " join command_executions c using (event_id)"
    . " where cast(o.data as text) <> 'out ' || c.command || char(10)",
    "union all select 'check', integrity_check from pragma_integrity_check");

is_deeply(\%value, { events => $all, all => $all, chunks => $all,
                     commands => $all, created => $all, completed => $all,
                     output_appended => $all, wrong => 0, check => 'ok' },
          3 * $all . ' records: nothing lost, nothing twice')
    or diag(explain(\%value));

for my $program ([ $ours ], [ $python, published() ]) {
    my $r = HistoryCli->new(program => $program, database => $db);
    my $got = $r->call('query', '--after-change-seq', 0, '--limit', 100000,
                       '--max-bytes', 100000000);
    is(scalar @{ $got->{stdout}{data}{changes} }, 3 * $all, 'both read it');
}

done_testing;


sub operation {
    my $n = shift;

    $c->put(SEEN => 0, SANDBOX => 's1', STATE => 'Running') if $n == 1;
    $c->put(BEGIN => $n, TYPE => 'command.execute', SANDBOX => 's1',
            METHOD => 'POST', PATH => '/command', ACTOR_TYPE => 'agent',
            ACTOR_ID => 'bot', IDENTITY => 'token:t');
    $c->put(FACTS => $n, COMMAND => $n);
    $c->put(OUTPUT => $n, STREAM => 0, DATA => "out $n\n");
    $c->put(END => $n, STATUS => 'succeeded', HTTP_STATUS => 200, EXIT_CODE => 0);
}


sub published {
    my $file = `$python -c 'import agent_sandbox_backends.helper.source.history_helper as h; print(h.__file__)'`;
    chomp $file;

    return $file;
}


sub sqlite {
    open my $fh, '-|', 'sqlite3', $db, join ' ', @_ or die "sqlite3: $!\n";
    local $/;

    return scalar(<$fh>) // '';
}
