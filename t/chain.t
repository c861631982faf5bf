#!/usr/bin/perl

# The chain: what a gateway recorded verifies, and nothing of it can be changed,
# removed, reordered, added or cut without being found, by the command line and
# by the console API, with the public key alone.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Copy qw(copy);
use File::Path qw(make_path remove_tree);
use File::Temp;
use JSON::PP;
use SandboxTest;
use Test::More;

my $program = "$SandboxProcess::BUILD/sandbox-history";
my $json = JSON::PP->new->utf8;
my $tmp = File::Temp->newdir('sandbox-chain-XXXXXX', TMPDIR => 1);


# --- something to verify -------------------------------------------------------

my $t = SandboxTest->new->start;

# the create makes the file: its record moves there from _gateway
my $created = $t->post('/v1/sandboxes', body =>
    '{"image":{"uri":"python:3"},"timeout":600,"resourceLimits":{"cpu":"1"}}')
    ->json->{id};
ok($created, 'a sandbox is made');

for my $id ('s1', 's2') {
    $t->sandbox($id, learn => 1);
    my $execd = "/v1/sandboxes/$id/proxy/44772";

    $t->post("$execd/command", body => '{"command":"echo one"}',
             headers => [ 'X-Actor-Id: bot', 'X-Actor-Type: agent' ]);
    $t->get("$execd/files/download?path=%2Fworkspace%2Fa");
    $t->delete("$execd/files?path=%2Fworkspace%2Fa&path=%2Fworkspace%2Fb");
    $t->post("$execd/command", body => '{"command":"echo two"}');
    $t->get("$execd/files/info?path=%2Fno");
}

$t->get('/v1/sandboxes');

for my $id ('s1', 's2') {
    my @records = $t->records($id, count => 5);
    cmp_ok(scalar @records, '>=', 5, "$id has its records");
}

my $path = $t->history->path_of('s1');
my $dir = $t->history->dir_of('s1');
my $data = $t->dir . '/data';

# through the API, of a file that is being written
my $r;
ok($t->wait_for(sub {
    $r = $t->post("/console/api/v1/sandboxes/s1/verify", token => 'viewer');
    return $r->status == 200 && $r->json->{ok};
}, 8), 'the API verifies it') or diag($r->status, ' ', $r->content);

is($r->json->{fault}, undef, 'no fault');
cmp_ok($r->json->{checked}, '>=', 5, 'all records were looked at');
cmp_ok($r->json->{head}{n}, '>', $r->json->{checked}, 'against a signed head');

$r = $t->post('/console/api/v1/sandboxes/none/verify', token => 'viewer');
is($r->status, 404, 'a sandbox without history has nothing to verify');
is($r->json->{code}, 'GATEWAY_NOT_FOUND', 'and the answer says so as others do');
ok($t->wait_for(sub {
    $r = $t->post('/console/api/v1/sandboxes/_gateway/verify', token => 'viewer');
    return $r->status == 200 && $r->json->{ok};
}, 8), 'what belongs to no sandbox is verified, too')
    or diag($r->status, ' ', $r->content);
is($t->post('/console/api/v1/sandboxes/s1/verify', token => undef)->status,
   401, 'nobody verifies without a token');

# what others wrote beside the gateway
{
    my $asked = sub { $t->post("/console/api/v1/sandboxes/s2/verify$_[0]", token => 'viewer') };
    my $sqlite = sub { system('sqlite3', '-cmd', '.timeout 5000', $t->history->path_of('s2'), @_) == 0 or die };

    $sqlite->('insert into history_events(event_id, provider_key, sandbox_id,'
        . ' sandbox_instance_id, actor_type, operation_type, status, occurred_at)'
        . " select 'other', provider_key, sandbox_id, sandbox_instance_id, 'system',"
        . " 'file.list', 'succeeded', occurred_at from history_events limit 1");
    is($asked->('')->json->{fault}{kind}, 'foreign', 'the API finds what others wrote');

    ok($t->wait_for(sub { $r = $asked->('?allow_foreign=1'); $r->json->{ok} }, 8),
       'and verifies the rest when that is allowed') or diag($r->content);
    is($r->json->{foreign}, 1, 'it is counted');
    is($asked->('?allow_foreign=2')->status, 400, 'a value that is none');
    is($asked->('?foreign=1')->json->{code}, 'GATEWAY_INVALID_PARAMETER', 'no such parameter');
    $sqlite->("delete from history_events where event_id = 'other'");
}

# over a restart of the helper, and a record in between
$t->kill_helper('TERM');
$t->start_helper;
$t->post('/v1/sandboxes/s1/proxy/44772/command', body => '{"command":"three"}');
$t->records('s1', count => 6);

ok($t->stop, 'all of it ends well');

ok(!((stat "$data/keys/history.key")[2] & 077), 'the key is for the helper only');
is((stat _)[7] > 0, 1, 'and is one');


# --- the untouched file ----------------------------------------------------------

my $whole = verify();
is($whole->{exit}, 0, 'the untouched copy verifies') or diag(explain($whole));
is($whole->{ok}, JSON::PP::true, 'and says so');
is($whole->{unsigned}, 0, 'everything is signed after a stop');
is($whole->{foreign}, 0, 'nothing is of others');

for my $of ('s2', $created, '_gateway') {
    my $v = verify(of => $of);
    is($v->{exit}, 0, "$of verifies, too") or diag(explain($v));
}

my $out = `$program --history $data/history verify s1 2>&1`;
is($? >> 8, 0, 'verify for people finds file, heads and key by itself');
is($json->decode($out)->{ok}, JSON::PP::true, 'and prints JSON into a pipe');

my ($listed) = map { $json->decode($_) }
    grep { /command\.execute/ } `$program --history $data/history list s1 --json`;
is($listed->{chain}{hash},
   $t->history->value('s1', "select lower(hex(hash)) from gateway_chain where"
                      . " event_id = '$listed->{id}' order by n desc limit 1"),
   'a record tells the hash of its last entry');

is(verify(key => "$data/keys/history.key")->{exit}, 0,
   'the private key will do, too');


# --- what can be done to it ------------------------------------------------------

my $record = 'select event_id from history_events where operation_type ='
    . " 'command.execute' order by seq limit 1";

tampered('changed', 'the command',
    "update command_executions set command = 'rm' where event_id = ($record)");
tampered('changed', 'the actor',
    "update history_events set actor_id = 'you' where event_id = ($record)");
tampered('changed', 'the time',
    'update history_events set occurred_at = replace(occurred_at, \'20\','
    . " '19') where event_id = ($record)");
tampered('changed', 'the status',
    "update history_events set status = 'failed' where event_id = ($record)");
tampered('changed', 'the request',
    "update history_events set request_json = '{}' where event_id ="
    . " (select event_id from history_events where request_json <> '{}'"
    . ' order by seq limit 1)');
tampered('changed', 'the address it came from',
    "update gateway_wire set client = '10.0.0.1' where event_id = ($record)");
tampered('changed', 'the output',
    "update command_output_chunks set data = x'78' where event_id = ($record)");
tampered('changed', 'the time of output',
    "update gateway_output set at = '2020-01-01T00:00:00.000000Z' where"
    . " event_id = ($record)");
tampered('changed', 'a path among many',
    "update gateway_files set path = '/etc' where n = 1 and event_id ="
    . ' (select event_id from gateway_files where n = 1 limit 1)');
tampered('changed', 'output removed',
    "delete from command_output_chunks where event_id = ($record)");
tampered('removed', 'a record', remove("($record)"));
tampered('removed', 'a record that claims to be purged',
    "update gateway_chain set purged = 3 where event_id = ($record);"
    . remove("($record)"), qr/^(?:removed|broken|changed)$/);
tampered('foreign', 'a record added',
    'insert into history_events(event_id, provider_key, sandbox_id,'
    . ' sandbox_instance_id, actor_type, operation_type, status, occurred_at)'
    . " select 'new', provider_key, sandbox_id, sandbox_instance_id, 'agent',"
    . " 'command.execute', 'succeeded', occurred_at from history_events limit 1");
tampered('foreign', 'output added',
    'insert into command_output_chunks(event_id, stream, chunk_index, data,'
    . " original_size, created_at) values(($record), 'stderr', 0, x'78', 1,"
    . " '2026-01-01T00:00:00.000000Z')");
tampered('foreign', 'output told twice',
    'insert into gateway_output(event_id, ord, stream, chunk_index, offset,'
    . ' length, at, cursor) select event_id, max(ord) + 1, stream, chunk_index,'
    . " offset, length, at, cursor from gateway_output where event_id = ($record)");
tampered('foreign', 'typed input added',
    'insert into gateway_terminal(event_id, n, at, events) values(('
    . "$record), 0, '2026-01-01T00:00:00.000000Z', '[[0,\"i\",\"rm -rf /\"]]')");
tampered('reordered', 'two numbers exchanged', exchange('gateway_records'));
tampered('reordered', 'two rows exchanged',
    'pragma foreign_keys = off;' . exchange('history_events'));
tampered('broken', 'an entry of the chain removed',
    'delete from gateway_chain where n = 3');
tampered('broken', 'the beginning of the chain removed',
    'delete from gateway_chain where n < 3');
tampered('cut', 'the last record',
    remove('(select event_id from gateway_records order by seq desc limit 1)')
    . 'delete from gateway_chain where n >= (select min(n) from gateway_chain'
    . ' where event_id = (select event_id from gateway_records order by seq'
    . ' desc limit 1));delete from gateway_records where seq = (select max(seq)'
    . ' from gateway_records)');
tampered('swapped', 'an identity',
    "update history_meta set value = 's9' where key = 'sandbox_id';"
    . "update history_events set sandbox_id = 's9'");

# another sandbox's file in its place
{
    my $v = verify(file => $t->history->path_of('s2'));
    is("$v->{exit} $v->{fault}{kind}", '1 swapped', 'the file of another sandbox');
}

# an auditor's copy, somewhere
for my $in ('evidence', 's2') {
    my $v = verify(in => $in, apart => 1);
    is($v->{exit}, 0, "a copy in a directory called $in verifies")
        or diag(explain($v));
    is($v->{sandbox}, 's1', 'and says whose it is');

    $v = verify(in => $in, apart => 1,
                change => "update command_executions set command = 'rm'");
    is("$v->{exit} $v->{fault}{kind}", '1 changed', 'when it is what was recorded');
}

{
    my $held = "$tmp/held";
    make_path("$held/s1");
    copy($t->history->path_of('s2'), "$held/s1/history.sqlite3");
    my $v = $json->decode(`$program --history $held verify s1 --head $data/history/heads.jsonl --key $data/keys/history.pub 2>/dev/null`);
    is($v->{fault}{kind}, 'swapped', 'a sandbox that is named must have its own, wherever the heads are');
}

# rewritten with all hashes right, which the signed head does not know
{
    my $v = verify(change => 'update gateway_chain set hash = randomblob(32)'
                   . ' where n = (select max(n) from gateway_chain)');
    like("$v->{exit} $v->{fault}{kind}", qr/^1 (?:rewritten|changed)$/,
         'a last entry made anew');
}

# heads
{
    my $v = verify(heads => sub { $_[0] =~ s/"n":\d+/"n":1/gr });
    is("$v->{exit} $v->{fault}{kind}", '1 signature', 'a head that was changed');

    $v = verify(heads => sub { '' });
    is($v->{exit}, 2, 'without a head it cannot be told');
    like($v->{why}, qr/holds no head/, 'and says why');

    system('openssl genpkey -algorithm ed25519 -out '
           . "$tmp/other.pem 2>/dev/null") == 0 or die;
    $v = verify(key => "$tmp/other.pem");
    is("$v->{exit} $v->{fault}{kind}", '1 signature', 'another key');

    $v = verify(key => "$tmp/none.pem");
    is($v->{exit}, 2, 'a key that is not there');
    like($v->{why}, qr/cannot be opened/, 'says why');
}

# what others wrote beside us
{
    my %foreign = (change => 'insert into history_events(event_id,'
        . ' provider_key, sandbox_id, sandbox_instance_id, actor_type,'
        . ' operation_type, status, occurred_at) select \'other\','
        . ' provider_key, sandbox_id, sandbox_instance_id, \'system\','
        . " 'file.list', 'succeeded', occurred_at from history_events limit 1");
    my $v = verify(%foreign, flags => '--allow-foreign');
    is($v->{exit}, 0, 'foreign rows can be allowed');
    is($v->{foreign}, 1, 'and are counted');
}

done_testing;


sub remove {
    my $event = shift;

    return 'create temp table gone as select ' . $event . ' as id;'
        . join('', map { "delete from $_ where event_id in (select id from gone);" }
               qw(history_changes command_executions command_output_chunks
                  file_operations gateway_wire gateway_files gateway_output
                  history_events));
}


sub exchange {
    my $table = shift;

    return "create temp table x as select min(seq) as a, max(seq) as b from"
        . " (select seq from $table order by seq limit 2);"
        . "update $table set seq = -1 where seq = (select a from x);"
        . "update $table set seq = (select a from x) where seq = (select b from x);"
        . "update $table set seq = (select b from x) where seq = -1";
}


sub tampered {
    my ($kind, $what, $sql, $like) = @_;

    my $v = verify(change => $sql);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is($v->{exit}, 1, "$what: found");
    $v->{fault} //= {};
    $like ? like($v->{fault}{kind}, $like, "$what: named")
          : is($v->{fault}{kind}, $kind, "$what: $kind");
}


# Verifies a copy, changed first; the answer with the exit code.

sub verify {
    my %o = @_;

    my $of = $o{of} // 's1';
    my $at = "$tmp/copy/" . ($o{in} // $t->history->dir_of($of));

    remove_tree("$tmp/copy");
    make_path($at);

    my $from = $o{file} // $t->history->path_of($of);
    copy("$from$_", "$at/history.sqlite3$_") for grep { -e "$from$_" } '', '-wal';

    if ($o{change}) {
        open my $sql, '|-', 'sqlite3', '-bail', "$at/history.sqlite3" or die;
        print $sql "$o{change};\n";
        close $sql or die "sqlite3 does not take: $o{change}\n";
    }

    # the heads lie beside, or somewhere else
    my $heads = $o{apart} ? "$tmp/heads.jsonl" : "$tmp/copy/heads.jsonl";
    my $text = SandboxTest::read_file("$data/history/heads.jsonl");
    SandboxTest::write_file($heads, $o{heads} ? $o{heads}->($text) : $text);

    my $key = $o{key} // "$data/keys/history.pub";
    my $flags = $o{flags} // '';
    my $out = `$program --database $at/history.sqlite3 verify --key $key --head $heads $flags 2>$tmp/err`;
    my $exit = $? >> 8;
    my $v = eval { $json->decode($out) } // {};

    return { %$v, exit => $exit };
}
