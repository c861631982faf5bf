#!/usr/bin/perl

# The history file of one sandbox that cannot be used: its directory or its file
# may not be read or written, its disk is full, it is no database, it is gone.
# Operations go on as the journal takes them, those of others are written, nothing
# that stands in the file is harmed, and when it can be written again nothing is
# missing.  Nobody but the helper has a database open (C103).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA;
use File::Temp;
use SandboxTest;
use Test::More;

my $t = SandboxTest->new(helper_args => [ '--sync', 'full' ])->start;
my $history = $t->history;
my $tool = "$SandboxProcess::BUILD/sandbox-history --history $t->{dir}/data/history";
my @boxes = qw(s1 s2);
my (%want, $n);

$t->sandbox($_, learn => 1) for @boxes;
$t->sandbox('full');
command($_) for @boxes;
written($_, 'at first') for @boxes;


# --- may not be read or written -----------------------------------------------------

SKIP: {
    skip 'only root can put another user in the way', 1 if $>;

    my $dir = "$history->{dir}/s2";

    for my $case ([ 'a directory without rights', $dir, 0000 ],
                  [ 'a file without rights', "$dir/history.sqlite3", 0000 ],
                  [ 'a directory that is read-only', $dir, 0555 ],
                  [ 'a file that is read-only', "$dir/history.sqlite3", 0444 ])
    {
        my ($name, $path, $mode) = ("C105: $case->[0]", @$case[1, 2]);

        ok($t->kill_helper('TERM'), "$name: the helper stops");
        my $was = (stat $path)[2] & 07777;
        my @owner = (stat $path)[4, 5];
        # others than its owner: that one could change it back
        chown 0, 0, $path;
        chmod $mode, $path;
        my $before = digest("$dir/history.sqlite3");
        $t->start_helper;

        command($_) for @boxes;
        written('s1', "$name: others are");
        ok($t->wait_for(sub { metric('stalled_sandboxes') == 1 }, 8), 'one waits');
        is(digest("$dir/history.sqlite3"), $before, 'nothing in it is touched');

        # as SQLite leaves it, when a reader was there meanwhile
        my $beside = "$dir/history.sqlite3-shm";

        if ($mode == 0444) {
            SandboxTest::write_file($beside, '') if !-e $beside;
            chown $owner[0], $owner[1], $beside;
            chmod 0444, $beside;
        }

        chown @owner, $path;
        chmod $was, $path;
        written('s2', "$name: later all of it is");
    }
}


# --- a disk that is full -----------------------------------------------------------------

SKIP: {
    my $dir = "$history->{dir}/full";
    my $uid = (stat $history->{dir})[4];

    mkdir $dir;
    skip 'no file system can be mounted here', 1
        if $> || system "mount -t tmpfs -o size=512k,uid=$uid tmpfs $dir 2>/dev/null";

    my $lines = 'x' x 9000;

    for (1 .. 60) {
        command('full', $lines);
    }

    command('s1');
    written('s1', 'a full disk of one sandbox: others are');
    ok($t->wait_for(sub { metric('stalled_sandboxes') }, 8), 'it waits');
    system 'mount', '-o', 'remount,size=64m', $dir;
    written('full', 'with room again all of it is');
    ok($t->kill_helper('TERM'), 'the helper stops');
    system 'cp', '-a', $dir, "$dir.copy";
    system 'umount', $dir;
    rmdir $dir;
    rename "$dir.copy", $dir;
    $t->start_helper;
    verified('full');
}


# --- no database ---------------------------------------------------------------------------

my $file = $history->path_of('s2');
my $garbage = 'no database' x 1000;

$t->kill_helper('TERM');
my @owner = (stat $file)[4, 5];
unlink "$file-wal", "$file-shm";
SandboxTest::write_file($file, $garbage);
chown @owner, $file;
$t->start_helper;
$want{s2} = {};
command($_) for @boxes;
written('s1', 'a file that is no database: others are');
written('s2', 'a new one is made');
my @aside = glob "$file.broken-*";
is(scalar @aside, 1, 'the old one is set aside');
ok(SandboxTest::read_file($aside[0]) eq $garbage, 'as it was');
is($history->value('s2', q{select json_extract(result_json, '$.reason') from
   history_events where operation_type = 'gateway.gap'}), 'history_file_lost',
   'the new one says so');
verified($_) for 's1';


# --- gone, while it is open ------------------------------------------------------------------

command('s2');
written('s2', 'before');
unlink $file, "$file-wal", "$file-shm";
$want{s2} = {};
command($_) for @boxes;
written('s2', 'C105: a file that is gone is made anew');
is($history->value('s2', q{select count(*) from history_events where
   operation_type = 'gateway.gap' and json_extract(result_json, '$.reason') =
   'history_file_lost'}), 1, 'C105: and says so');


# --- gone, while the helper is not there ------------------------------------------------------

command('s2');
$t->record($t->get('/v1/sandboxes'));
written('s2', 'before');
$t->kill_helper('TERM');
unlink $file, "$file-wal", "$file-shm";
my $own = $history->path_of('_gateway');
unlink $own, "$own-wal", "$own-shm";
$want{s2} = {};
$t->start_helper;
command($_) for @boxes;
$t->record($t->get('/v1/sandboxes'));
written($_, 'C105: files that were removed meanwhile are made anew') for 's1', 's2';

for (qw(s2 _gateway)) {
    is($history->value($_, q{select count(*) from history_events where
       operation_type = 'gateway.gap' and json_extract(result_json, '$.reason') =
       'history_file_lost'}), 1, "and $_ says so");
}

is($history->value('s1', q{select count(*) from history_events where
   operation_type = 'gateway.gap'}), 0, 'the others say nothing');


# --- C103: nobody else has one open ------------------------------------------------------------

my $reloads = ($ENV{T_SCALE} // 1) >= 10 ? 50 : 3;

for (1 .. $reloads) {
    # it goes on while it is reloaded
    kill 'HUP', $t->{nginx_pid};
    command($_) for @boxes;
}

$t->reload;

my @others = ($t->worker_pids, $t->{nginx_pid} // ());
my @open = map { my $pid = $_; map { readlink } glob "/proc/$pid/fd/*" } @others;
is_deeply([ grep { m{/data/} } @open ], [], 'C103: no worker, and no master, has a file of '
          . 'the history or the journal open');
unlike(scalar qx(ldd $SandboxProcess::BUILD/ngx_http_sandbox_module.so), qr/sqlite/,
       'C103: nor could one');
written($_, 'C103: all is on record') for @boxes;
is(join(' ', $history->broken), '', 'every file is sound');

$t->stop;


# --- retention while its disk is full (C117) -----------------------------------------------------

SKIP: {
    my $clock = File::Temp->new;
    chmod 0644, $clock->filename;
    SandboxTest::write_file($clock->filename, 0);
    $t = SandboxTest->new(helper_args => [ '--sync', 'full', '--test-clock',
                                           $clock->filename, '--history-hold', 's1' ])->start;
    $history = $t->history;
    %want = ();

    my $dir = "$history->{dir}/full";
    my $uid = (stat $history->{dir})[4];

    mkdir $dir;
    skip 'no file system can be mounted here', 1
        if $> || system "mount -t tmpfs -o size=16m,uid=$uid tmpfs $dir 2>/dev/null";

    $t->sandbox($_) for 'full', 's1';
    command('full', 'x' x 9000) for 1 .. 30;
    written('full', 'at first');
    $t->kill_helper('TERM');

    # all of it in the file, beside which there is room for little
    my $path = $history->path_of('full');
    my @owner = (stat $path)[4, 5];
    system('sqlite3', $path, 'pragma wal_checkpoint(truncate)') == 0
        or die "no checkpoint of $path\n";
    unlink "$path-wal", "$path-shm";
    chown @owner, $path;
    my ($free) = qx(df --output=avail -k $dir) =~ /(\d+)\s*\z/;
    SandboxTest::write_file("$dir/filler", 'x' x (($free - 56) * 1024));

    SandboxTest::write_file($clock->filename, 8 * 86400);
    $t->start_helper;
    ok($t->wait_for(sub {
        $t->log_text('helper.log') =~ /cannot purge the history of full: .*full/
    }, 12), 'C117: nothing can be deleted while the disk is full');
    is(purged('full'), 0, 'nothing is');
    is($history->value('full', 'select count(*) from history_events'), 30,
       'what is there can be read');
    command('s1');
    written('s1', 'C117: others are');

    # the clock moves, and all files are looked at again
    unlink "$dir/filler";
    SandboxTest::write_file($clock->filename, 8 * 86400 + 60);
    ok($t->wait_for(sub { purged('full') }, 20), 'with room again it goes on');
    is($history->value('full', q{select count(*) from history_events where
       operation_type = 'command.execute'}), 0, 'to its end');
    $t->kill_helper('TERM');
    system 'umount', $dir;
    $t->start_helper;
    $t->stop;
}

done_testing;


# Has a purge come to its end?

sub purged {
    return $history->value($_[0], q{select count(*) from history_events where
        operation_type = 'gateway.purge' and status = 'succeeded'});
}


# A command, which passes as it is on record in the journal.

sub command {
    my ($sandbox, $text) = @_;

    my $r = $t->wait_for(sub {
        my $r = $t->post("/v1/sandboxes/$sandbox/proxy/44772/command",
            body => '{"command":"echo ' . ++$n . ($text // '') . '"}');
        return $r->status == 200 && $r;
    });
    ok(0, "a command in $sandbox") if !$r;
    $want{$sandbox}{ $r->header('X-Operation-Id') } = 1 if $r;
}


# Everything of a sandbox is in its file.

sub written {
    my ($sandbox, $name) = @_;

    my @missing;

    ok($t->wait_for(sub {
        my %have = map { $_->{event_id} => 1 } eval { $history->query($sandbox,
            "select event_id from history_events where status = 'succeeded'") };
        @missing = grep { !$have{$_} } keys %{ $want{$sandbox} };
        return !@missing;
    }, 12), "$name written: " . keys %{ $want{$sandbox} }) or diag("@missing");
}


sub verified {
    my $sandbox = shift;

    my $said;
    ok($t->wait_for(sub { $said = qx($tool verify $sandbox 2>&1); $? == 0 }, 8),
       "$sandbox verifies") or diag($said);
}


sub digest {
    my $path = shift;

    return -e $path ? Digest::SHA->new(256)->addfile($path)->hexdigest : '';
}


sub metric {
    my $name = shift;

    my ($v) = $t->get('/console/api/v1/metrics')->content
        =~ /^sandbox_gateway_(?:helper_)?\Q$name\E (\d+)$/m;

    return $v // 0;
}
