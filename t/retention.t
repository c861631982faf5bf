#!/usr/bin/perl

# Limits of history files through nginx and helper: what their policies do to the
# traffic, what becomes of the file of a deleted sandbox; the clock of the limits
# is moved.  The limits themselves: t/unit/test_purge.c.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use JSON::PP ();
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $DAY = 86400;
our $t;
my $clock = File::Temp->new;
chmod 0644, $clock->filename;

sub at {
    my $seconds = shift;

    SandboxTest::write_file($clock->filename, $seconds);
}

sub command {
    my ($t, $sandbox, $bytes, @o) = @_;

    return $t->post("/v1/sandboxes/$sandbox/proxy/44772/command",
                    body => '{"command":"' . ('x' x ($bytes // 4)) . '"}', @o);
}

sub helper_with {
    my @args = @_;

    my $t = SandboxTest->new(helper_args => [ '--test-clock',
                                              $clock->filename, @args ]);

    at(0);
    $t->start;
    $t->sandbox($_) for qw(s1 s2);

    return $t;
}


# Exit status and output of sandbox-history, as the user of the helper.

sub tool {
    my @args = @_;

    unshift @args, '--history', $t->history->{dir} if $args[0] !~ /^-/;
    my @command = map { "'$_'" } "$SandboxProcess::BUILD/sandbox-history", @args;
    my $said = `@command 2>&1`;

    return ($? >> 8, $said);
}

sub tool_status { (tool(@_))[0] }
sub tool_out { (tool(@_))[1] }


# --- fail_operation ----------------------------------------------------------------

$t = helper_with('--history-overflow', 'fail_operation', '--history-size', '1m');

$t->record(command($t, 's2'));
my ($r, $full);

for (1 .. 40) {
    $r = command($t, 's1', 60_000);
    last if $full = $r->status == 503;
    # (the last one may be a gap: it was begun before all was full)
    $t->record($r, timeout => 2);
}

ok($full || $t->wait_for(sub { ($r = command($t, 's1'))->status == 503 }, 8),
   'fail_operation: a strict operation of a full sandbox is refused');
is($r->code, 'GATEWAY_RECORDER_UNAVAILABLE', 'as not to be recorded');
like($r->content, qr/sandbox_history_size/, 'the limit is named');
is(command($t, 's2')->status, 200, 'other sandboxes are not concerned');
is($t->get('/v1/sandboxes/s1/proxy/44772/files/info?path=%2Fa')->status, 200,
   'nor is what is best_effort');

$t->reload;
ok($t->wait_for(sub { command($t, 's1')->status == 503 }, 5),
   'new workers are told, too');

$t->kill_helper;
$t->start_helper;
ok($t->wait_for(sub { command($t, 's1')->status == 503 }, 8),
   'so are all by a new helper');

# Its records become old, and go by themselves.

at(8 * $DAY);
ok($t->wait_for(sub { command($t, 's1')->status == 200 }, 10),
   'there is room again: it goes on');
ok($t->wait_for(sub { 'ttl' eq ($t->{history}->value('s1', q{select
   json_extract(result_json, '$.rule') from history_events where operation_type
   = 'gateway.purge' and status = 'succeeded' limit 1}) // '') }, 5),
   'a tombstone says what went');
at(0);

for (1 .. 40) {
    $r = command($t, 's1', 60_000);
    last if $r->status == 503;
    $t->record($r, timeout => 2);
}

$t->wait_for(sub { command($t, 's1')->status == 503 }, 8);
is($t->delete('/v1/sandboxes/s1')->status, 204,
   'a sandbox that is full can be deleted');
$t->stop;


# --- fail_operation, for the sum of all files --------------------------------------

$t = helper_with('--history-overflow', 'fail_operation', '--history-total', '4m');

for (1 .. 120) {
    $r = command($t, $_ % 2 ? 's1' : 's2', 60_000);
    last if $full = $r->status == 503;
}

ok($full || $t->wait_for(sub { ($r = command($t, 's1'))->status == 503 }, 8),
   'fail_operation: strict operations are refused when the sum is reached');
like($r->content, qr/sandbox_history_total/, 'the limit is named');
$t->sandbox('s3');
# (a log that begins anew gives room back once more)
ok($t->wait_for(sub { command($t, $_, 60_000)->status == 503 }, 8), "in $_") for qw(s1 s2 s3);
ok(!(grep { command($t, $_)->status != 503 } qw(s1 s2 s3)), 'in all of them');
is($t->get('/v1/sandboxes/s1/proxy/44772/files/info?path=%2Fa')->status, 200,
   'what is best_effort goes on');
is($t->{history}->value($_, q{select count(*) from history_events where
   operation_type = 'gateway.purge'}), 0, "nothing of $_ is deleted") for qw(s1 s2);
is($t->delete('/v1/sandboxes/s2')->status, 204, 'a sandbox can be deleted');

at(8 * $DAY);
ok($t->wait_for(sub { command($t, 's1')->status == 200 }, 20),
   'they go on when there is room again');
at(0);
$t->stop;


# --- stop_recording ----------------------------------------------------------------

$t = helper_with('--history-overflow', 'stop_recording', '--history-size', '1m',
                 '--history-keep', 'off');

for (1 .. 30) {
    command($t, 's1', 60_000);
}

ok($t->wait_for(sub {
    command($t, 's1');
    return $t->{history}->value('s1', q{select 1 from history_events where
        operation_type = 'gateway.gap' and json_extract(result_json,
        '$.reason') = 'history_full'});
}, 10), 'stop_recording: what is not kept is a gap with a count');
is(command($t, 's1')->status, 200, 'traffic goes on');
is($t->{history}->value('s1', q{select count(*) from history_events where
   operation_type = 'gateway.purge'}), 0, 'nothing is deleted');
cmp_ok(-s $t->{history}->path_of('s1'), '<', 2.5 * 1024 * 1024, 'the file is bounded');
$t->stop;


# --- rows are deleted while others are written and read (C112) ---------------------

$t = helper_with('--history-size', '1m', '--history-keep', 'off');

my (@ids, @seen, $errors);
my ($many, $bytes) = ($ENV{T_SCALE} // 1) >= 10 ? (30_000, 2000) : (150, 20_000);
my $writer;
$errors = 0;

for my $n (1 .. $many) {
    $writer = $t->connect if $n % 500 == 1;
    my $answer = command($t, 's1', $bytes, conn => $writer);
    push @ids, $answer->header('X-Operation-Id');

    if ($n % 5 == 0) {
        my @page = eval { $t->{history}->events('s1') };
        $errors++ if $@;
    }
}

$t->record($ids[-1]);
ok($t->wait_for(sub { $t->{history}->value('s1', q{select count(*) filter (where
       operation_type = 'gateway.purge') > 0 and count(*) filter (where status =
       'started') = 0 from history_events}) }, 10),
   'C112: the oldest are purged while new ones come');
is($errors, 0, 'C112: a reader gets no error');

my %there = map { $_->{event_id} => 1 } $t->{history}->events('s1');
my ($first) = grep { $there{ $ids[$_] } } 0 .. $#ids;
is_deeply([ grep { !$there{ $ids[$_] } } $first .. $#ids ], [],
          'C112: only the oldest are gone, without a hole');
cmp_ok(scalar keys %there, '>', 5, 'C112: and no more than must');
is($t->{history}->value('s1', 'pragma integrity_check'), 'ok', 'C112: the file is whole');
is($t->{history}->value('s1', q{select count(*) + (select
   json_extract(result_json, '$.operations_total') from history_events where
   operation_type = 'gateway.purge' order by seq desc limit 1) from history_events
   where operation_type = 'command.execute'}), scalar @ids,
   'C112: what is there and what tombstones tell is all there was');
$t->stop;


# --- the file of a deleted sandbox -------------------------------------------------

$t = helper_with('--history-on-delete', 'archive');
$t->record(command($t, 's1'));
my $path = $t->{history}->path_of('s1');
is($t->delete('/v1/sandboxes/s1')->status, 204, 'a sandbox is deleted');
at(60);

my @archived;
ok($t->wait_for(sub {
    @archived = glob $t->history->{dir} . '/archive/s1-*.sqlite3';
    return @archived && !-e $path;
}, 10), 'on_delete archive: the file moves');

my $tool = "$SandboxProcess::BUILD/sandbox-history";
like(scalar `"$tool" --database "$archived[0]" health`, qr/"sandbox_id":"s1"/,
     'sandbox-history reads it there');
like(scalar `"$tool" --database "$archived[0]" query --after-change-seq 0 --limit 100 --max-bytes 100000`,
     qr/command\.execute/, 'all of it');
is($t->{history}->value('_gateway', q{select json_extract(result_json,
   '$.sandbox') from history_events where operation_type =
   'gateway.archive'}), 's1', 'the gateway says so');
my @verify = ('--database', $archived[0], 'verify', '--head',
              $t->history->{dir} . '/heads.jsonl', '--key',
              $t->dir . '/data/keys/history.pub');
is(tool_status(@verify), 0, 'it verifies there') or diag(tool_out(@verify));
$t->kill_helper('TERM');
$t->start_helper;
is(tool_status(@verify), 0, 'after a restart too');

# upstream lost sight of it only for a while: the sandbox gets another file
$t->sandbox('s1', learn => 1);
$t->record(command($t, 's1'));
ok($t->wait_for(sub { tool_status('verify', 's1') == 0 }, 10),
   'the same sandbox again: its new file verifies') or diag(tool_out('verify', 's1'));
is(tool_status(@verify), 0, 'and the archived one, still') or diag(tool_out(@verify));
$t->stop;


# --- contents of files go with the records that speak of them --------------------------

$t = helper_with('--history-ttl', '1d');
$t->record($t->post('/v1/sandboxes/s1/proxy/44772/files/upload',
    headers => [ 'Content-Type: multipart/form-data; boundary=B' ],
    body => join "\r\n", '--B', 'Content-Disposition: form-data; name="metadata";'
        . ' filename="m"', '', '{"path":"/w/a"}', '--B', 'Content-Disposition:'
        . ' form-data; name="file"; filename="f"', '', 'kept', '--B--', ''));
is($t->{history}->value('s1', 'select count(*) from gateway_contents'), 1, 'a content');
$t->record($t->get('/v1/sandboxes/s1/proxy/44772/files/info?path=%2Fa'));
at(30 * $DAY);
ok($t->wait_for(sub {
    $t->{history}->value('s1', 'select count(*) from gateway_contents') == 0;
}, 10), 'goes with its record');
ok($t->wait_for(sub { tool_status('verify', 's1') == 0 }, 8),
   'what is left after retention verifies') or diag(tool_out('verify', 's1'));
$t->stop;
at(0);


# --- sandbox-history writes through the helper ---------------------------------------

$t = helper_with('--history-ttl', '1d');
push @ids, $t->record(command($t, 's1'))->{event_id} for 1 .. 3;
$path = $t->{history}->path_of('s1');

my ($status, $out) = tool('hold', 's1');
is($status, 0, 'hold: exit 0') or diag($out);
at(30 * $DAY);
sleep 2;
is($t->{history}->value('s1', q{select count(*) from history_events where
   operation_type = 'command.execute'}), 3, 'what is held stays, however old');

($status, $out) = tool('--database', $path, 'cleanup', '--max-bytes', 1,
                       '--overflow-policy', 'delete_oldest');
is($status, 1, 'cleanup of a held file is refused');
like($out, qr/"message":"this file is on legal hold/, 'in the envelope');
at(0);
sleep 1;        # the limits look at the clock five times a second
($status, $out) = tool('release', 's1');
is($status, 0, 'release: exit 0') or diag($out);
is(join(' ', map { $_->{operation_type} . '/' . ($_->{actor_type} // '') }
        grep { $_->{operation_type} =~ /^gateway\.(hold|release)/ }
        $t->{history}->events('s1')),
   'gateway.hold/user gateway.release/user', 'both are on record');

($status, $out) = tool('--database', $path, 'ack', '--consumer-id', 'c', '--seq', 1);
is($status, 0, 'ack: exit 0') or diag($out);
like($out, qr/^\{"data":\{"acknowledged_seq":1,"consumer_id":"c",.*"ok":true,/,
     'the same envelope');

# nothing behind change 1 has been acknowledged
($status, $out) = tool('--database', $path, 'cleanup', '--max-bytes', 1,
                       '--overflow-policy', 'delete_oldest');
like($out, qr/"deleted_operations":0,.*"protected_acknowledged_seq":1/,
     'cleanup respects what consumers have not seen') or diag($out);
tool('--database', $path, 'ack', '--consumer-id', 'c', '--seq', 1000);
($status, $out) = tool('--database', $path, 'cleanup', '--max-bytes', 1,
                       '--overflow-policy', 'delete_oldest');
like($out, qr/"deleted_operations":[3-9],.*"executed":true/,
     'then it deletes') or diag($out);
ok($t->wait_for(sub { $t->{history}->value('s1', q{select json_extract(result_json,
   '$.rule') from history_events where operation_type = 'gateway.purge' and status
   = 'succeeded' order by seq desc limit 1}) }, 5), 'a tombstone tells of it');
ok($t->wait_for(sub { $t->get('/console/api/v1/operations?type=command.execute&facets=1')
                        ->json->{facets}{total} == 0 }, 10),
   'and lists have nothing of it any more');
is($t->{history}->value('s1', q{select value from history_meta where key =
   'last_cleanup_reason'}), 'ttl_or_capacity', 'and the keys of the format');

for my $command ([ 'lease-acquire', '--ttl-ms', 60000 ], [ 'lease-renew', '--ttl-ms', 60000 ],
                 [ 'lease-release' ]) {
    ($status, $out) = tool('--database', $path, shift @$command, '--resource-key',
                           'r', '--owner-id', 'o', @$command);
    like($out, qr/"(?:acquired|renewed|released)":true.*"ok":true/, 'lease') or diag($out);
}

my $file = "$t->{dir}/batch.json";
my $own = $t->record(command($t, 's1'))->{event_id};

SandboxTest::write_file($file, '{"changes":{"ttl_days":30},"updated_by":"me"}');
($status, $out) = tool('--database', $path, 'config-set', '--config-file', $file,
                       '--expected-revision', 0);
like($out, qr/"revision":1,/, 'config-set') or diag($out);

SandboxTest::write_file($file, '{"batch_id":"b","schema_version":1,"records":[{"type":'
    . '"operation_started","event":{"event_id":"e1","operation_type":"note",'
    . '"occurred_at":"2026-11-29T09:00:00Z"}}]}');
($status, $out) = tool('--database', $path, 'apply', '--batch-file', $file);
like($out, qr/"records_applied":1\}/, 'apply') or diag($out);

SandboxTest::write_file($file, '{"batch_id":"b","schema_version":1,"records":[{"type":'
    . "\"command_output\",\"event_id\":\"$own\",\"chunks\":[]}]}");
($status, $out) = tool('--database', $path, 'apply', '--batch-file', $file);
is($status, 1, 'apply changes no record of the gateway');
like($out, qr/gateway's own record/, 'and says so');

# init again, as the SDK does each time it connects: what is there stays
my $meta = sub { return { map { $_->{key} => $_->{value} }
    $t->{history}->query('s1', 'select key, value from history_meta') } };
my $was = $meta->();
my %identity = ((map { $_ => $was->{$_} } qw(provider_key sandbox_id sandbox_instance_id)),
                sdk_version => '9.9', schema_version => 1);
SandboxTest::write_file($file, JSON::PP->new->canonical->encode(\%identity));
($status, $out) = tool('--database', $path, 'init', '--identity-file', $file);
is($status, 0, 'init of a held file: exit 0') or diag($out);
like($out, qr/"ok":true/, 'in the envelope');
my $is = $meta->();
is($is->{sdk_version}, '9.9', 'it says who comes');
delete $_->{sdk_version} for $was, $is;
is_deeply($is, $was, 'and changes nothing else');

SandboxTest::write_file($file, JSON::PP->new->canonical->encode(
    { %identity, sandbox_instance_id => 'another' }));
($status, $out) = tool('--database', $path, 'init', '--identity-file', $file);
is($status, 1, 'init as another sandbox is refused');
like($out, qr/"ok":false/, 'in the envelope');
is($meta->()->{sandbox_instance_id}, $identity{sandbox_instance_id}, 'and changes nothing');

ok($t->wait_for(sub { tool_status('verify', '--allow-foreign', 's1') == 0 }, 8),
   'verify finds what was recorded') or diag(tool_out('verify', '--allow-foreign', 's1'));

$t->kill_helper;
($status, $out) = tool('--database', $path, 'ack', '--consumer-id', 'c', '--seq', 2);
is($status, 1, 'without the helper a file of the gateway is not written');
like($out, qr/is not running/, 'and the reason said');
($status, $out) = tool('--database', $path, 'init', '--identity-file', $file);
is($status, 1, 'nor by init');
like($out, qr/is not running/, 'for the same reason');
$t->start_helper;
$t->stop;


# --- a hold of the configuration ------------------------------------------------------

$t = helper_with('--history-hold', 's1');
$t->record(command($t, 's1'));
like(tool_out('--database', $t->{history}->path_of('s1'), 'cleanup', '--max-bytes', 1,
              '--overflow-policy', 'delete_oldest'),
     qr/"message":"this file is on legal hold by the configuration/,
     'cleanup of what the configuration holds is refused');
tool('hold', 's1');
like(tool_out('release', 's1'), qr/released, but the configuration/,
     'release says that it is not free yet');
is($t->{history}->value('s1', q{select count(*) from history_events where
   operation_type = 'command.execute'}), 1, 'all is there');
$t->stop;


# --- options that work alone work together (C109) ------------------------------------

# Every value of each with every value of every other (pairwise).
my @values = (
    [ [ '--sync', 'normal' ], [ '--sync', 'full' ] ],
    [ [ '--history-size', '1m' ], [ '--history-ttl', '1d' ] ],
    [ [ '--history-overflow', 'stop_recording' ], [ '--history-overflow', 'delete_oldest' ] ],
    [ 'sandbox_capture_limit 1k;', 'sandbox_capture_limit 0;' ],
    [ 'sandbox_record * strict;', 'sandbox_record * best_effort;' ],
    [ 'sandbox_digest on;', 'sandbox_digest off;' ],
);

for my $row ([ 0, 0, 0, 0, 0, 0 ], [ 0, 1, 1, 1, 1, 1 ], [ 1, 0, 1, 0, 1, 0 ],
             [ 1, 1, 0, 1, 0, 0 ], [ 1, 0, 1, 1, 0, 1 ], [ 0, 1, 0, 0, 1, 1 ],
             [ 1, 1, 1, 0, 0, 1 ]) {
    my @chosen = map { $values[$_][ $row->[$_] ] } 0 .. $#values;
    my $name = join ' ', map { ref $_ ? "@$_" : $_ } @chosen;

    $t = SandboxTest->new(helper_args => [ map { @$_ } grep { ref } @chosen ],
                          http => join(' ', grep { !ref } @chosen));
    $t->start;
    $t->sandbox('s1');
    command($t, 's1') for 1 .. 10;
    $t->get('/v1/sandboxes/s1/proxy/44772/files/info?path=%2Fa') for 1 .. 10;
    is(scalar $t->records('s1', count => 20), 20, "C109: 20 of 20 records: $name");
    $t->stop;
}


# --- the directives, of a helper that nginx starts ----------------------------------

my $lines = 'sandbox_history_ttl 30d; sandbox_history_size 64m;'
    . ' sandbox_history_total 20g; sandbox_history_keep off;'
    . ' sandbox_history_overflow stop_recording;'
    . ' sandbox_history_on_delete delete; sandbox_history_hold s1;'
    . ' sandbox_history_hold s2;';

$t = SandboxTest->new(helper => 0, conf => sub {
    my $conf = shift;

    $conf =~ s{sandbox_helper unix:(\S+)/run/helper\.sock;}
              {sandbox_helper exec:$SandboxProcess::BUILD/sandbox-helper;
               sandbox_data $1/data; $lines};

    return $conf;
});
$t->start;
$t->sandbox('s1');

my ($said) = '';
ok($t->wait_for(sub {
    ($said) = grep { /\0--data\0\Q$t->{dir}\E\/data\0/ }
              map { SandboxTest::read_file($_) // '' } glob '/proc/[0-9]*/cmdline';
    return defined $said;
}, 10), 'nginx starts a helper');
$said //= '';
$said =~ tr/\0/ /;
my $flags = '--history-ttl 2592000 --history-size 67108864'
    . ' --history-total 21474836480 --history-keep off'
    . ' --history-overflow stop_recording --history-on-delete delete';
like($said, qr/ \Q$flags\E .* --history-hold s1 --history-hold s2 /,
     'and tells it all limits');
$t->stop;

# --- a full file that nothing may be deleted from yet: counted, and then at rest

$t = SandboxTest->new(helper_args => [ '--history-size', '1m' ],
                      location => 'sandbox_record * best_effort;')->start;
$t->get('/v1/sandboxes') for 1 .. 1200;

ok($t->wait_for(sub { $t->history->gaps('_gateway') }),
   'what a full file does not take is a gap');

my $ticks = sub {
    my ($user, $system) = SandboxTest::read_file("/proc/$t->{helper_pid}/stat")
        =~ /^\d+ \(.*\) \S(?: \S+){10} (\d+) (\d+)/s;
    return $user + $system;
};

ok($t->wait_for(sub {
    my $before = $ticks->();
    sleep 1;
    return $ticks->() - $before < 10;
}), 'and the helper does not look at it for ever');
$t->stop;

done_testing;
