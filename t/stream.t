#!/usr/bin/perl

# Event streams of commands, code and sessions (reference 4): what the client
# gets is what upstream sent, at once; what is recorded follows the output rule
# of design 5; how each ended is told rightly.

use strict;
use warnings;
use utf8;

use Encode qw(encode_utf8);
use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use JSON::PP;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep);

binmode Test::More->builder->$_, ':utf8'
    for qw(output failure_output todo_output);

my $common = 'sandbox on; proxy_pass http://opensandbox$sandbox_upstream_uri;'
             . ' proxy_http_version 1.1; proxy_set_header Host'
             . ' $sandbox_upstream_host;';
my $t = SandboxTest->new;
my $policy = $t->dir . '/etc/policy';
SandboxTest::write_file($policy, "default allow;\n");
$t->{locations} = <<"EOF_CONF";
        location /v1/sandboxes/off { $common sandbox_record command.* off; }
        location /v1/sandboxes/judged { $common sandbox_policy $policy; }
EOF_CONF
$t->start;
my $up = $t->up;
$t->sandbox($_) for qw(s1 off judged);
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $id = '2bb1427947aa4d16948956ea295368e5';

my @head = (FakeUpstream::event('init', text => $id),
            FakeUpstream::event('ping', text => 'pong'));
my $done = FakeUpstream::event('execution_complete', execution_time => 3);

sub failed {
    my ($evalue, @trace) = @_;
    return FakeUpstream::event('error', error => {
        ename => 'CommandExecError', evalue => $evalue,
        traceback => \@trace });
}

sub out { map { FakeUpstream::event('stdout', text => $_) } @_ }


# Reads until the text has come.

sub comes {
    my ($c, $regex) = @_;

    my $deadline = time + $SandboxHttp::TIMEOUT;

    while ($c->{buf} !~ $regex) {
        return 0 if !$c->fill($deadline);
    }

    return 1;
}


# --- the output rule ----------------------------------------------------------------

# Each event is its text plus one LF; a text that is a single LF is that LF.

output_is('plain lines', "a\nb\n", out('a', 'b'));
output_is('C031: blank lines', "a\n\n\nb\n", out('a', "\n", "\n", 'b'));
output_is('CJK and emoji', encode_utf8("你好，世界\n😀 ok\n"),
          out('你好，世界', '😀 ok'));
output_is('escapes of JSON', "a<b>&c \"q\" \\ \t end\n",
          out("a<b>&c \"q\" \\ \t end"));
output_is('C032: carriage returns', " 10%\n 50%\r\n100%\n",
          out(' 10%', " 50%\r", '100%'));
output_is('C035: NUL and control bytes', "a\0b\x01\x1b[0m\n",
          out("a\0b\x01\x1b[0m"));
output_is('C034: a character split between events', encode_utf8("日\n") x 2,
          out('日', '日'));
output_is('an event with an empty text', "\n", out(''));
output_is('LF inside a text', "a\nb\n", out("a\nb"));

{
    my ($r, $e) = run(@head, FakeUpstream::event('stdout', text => 'out'),
                      FakeUpstream::event('stderr', text => 'err'),
                      FakeUpstream::event('stdout', text => 'more'), $done);
    is($t->history->output($e->{event_id}, 'stdout', 's1'), "out\nmore\n",
       'stdout by itself');
    is($t->history->output($e->{event_id}, 'stderr', 's1'), "err\n",
       'stderr by itself');
    is($e->{command}{output_complete}, 1, 'all of it');
    is($e->{command}{history_storage_state}, 'complete', 'and said so');
    is($e->{result}{line_ends}, 'reconstructed',
       'the record says where line ends come from')
        or diag($e->{result_json});
    my @order = map { $_->{stream} } $t->history->query('s1',
        "select stream from gateway_output where event_id = '$e->{event_id}'"
        . ' order by ord');
    ok(@order >= 1, 'the order of both streams is kept');
}

# C029: a line of 5 MB passes at once and is recorded whole.

{
    my $line = substr('0123456789abcdef' x 327_681, 0, 5 << 20);
    my ($r, $e) = run(@head, out($line), out('next'), $done);
    ok($r->content =~ /\Q$line\E/, 'a line of 5 MB passes');
    my $got = $t->history->output($e->{event_id}, 'stdout', 's1');
    ok($got eq "$line\nnext\n", 'and is recorded whole, and the next after it')
        or diag(length $got);
    is($e->{status}, 'succeeded', 'a good run');
    cmp_ok($t->history->value('s1', 'select max(length(data)) from'
           . " command_output_chunks where event_id = '$e->{event_id}'"),
           '<=', 16384, 'in pieces of at most 16 KiB');
}


# --- framing (C030, C033): any split, any of the known framings ------------------------

my $good = join '', map { FakeUpstream::Connection::encode_event($_) . "\n\n" }
           @head, out('one', encode_utf8('zwei')), $done;
my %framing = (
    'bare JSON'         => $good,
    'data: prefix'      => $good =~ s/^(\{)/data: $1/gmr,
    'CR LF and event:'  => $good =~ s/^(\{.*)\n\n/event: x\r\nid: 1\r\ndata: $1\r\n\r\n/gmr,
    'single LF'         => $good =~ s/\n\n/\n/gr,
    'comments'          => $good =~ s/^(\{)/: hello\n$1/gmr,
);

for my $name (sort keys %framing) {
    my $body = $framing{$name};
    $up->script("POST $execd/command", FakeUpstream::stream_head(),
                [ chunk => $body ], [ chunk => '' ]);
    my ($r, $e) = command();
    is($r->content, $body, "C030: $name: passes unchanged");
    is($t->history->output($e->{event_id}, 'stdout', 's1'), "one\nzwei\n",
       'and gives the same record');
    is($e->{command}{exit_code}, 0, 'with its exit code');
}

# Split anywhere: a byte at a time, and two chunks with a pause.

$up->script("POST $execd/command", FakeUpstream::stream_head(),
            (map { [ chunk => $_ ] } split //, $good), [ chunk => '' ]);
my ($r, $e) = command();
is($r->content, $good, 'a byte at a time: unchanged');
is($t->history->output($e->{event_id}, 'stdout', 's1'), "one\nzwei\n",
   'and recorded');

for my $at (5, 80, 150, 190, length($good) - 3) {
    $up->script("POST $execd/command", FakeUpstream::stream_head(),
                [ chunk => substr $good, 0, $at ], [ pause => 0.02 ],
                [ chunk => substr $good, $at ], [ chunk => '' ]);
    my ($r, $e) = command();
    is($t->history->output($e->{event_id}, 'stdout', 's1'), "one\nzwei\n",
       "split at $at");
}

# Two events in one chunk; a Content-Length instead of chunks.

$up->script("POST $execd/command", FakeUpstream::answer(
    200, $good, 'Content-Type: TEXT/Event-Stream; charset=utf-8'));
($r, $e) = command();
is($e->{command}{exit_code}, 0, 'a stream with a Content-Length is read too');

# Unknown events and members are passed and do no harm.

($r, $e) = run(@head, { type => 'novel', timestamp => 1, eid => 7 },
               { type => 'stdout', text => 'x', timestamp => 1, eid => 8 },
               $done);
is($t->history->output($e->{event_id}, 'stdout', 's1'), "x\n",
   'unknown events and members');
is($e->{status}, 'succeeded', 'are no failure');


# --- how things end (4.3) ------------------------------------------------------------

($r, $e) = run(@head, $done);
is($e->{status}, 'succeeded', 'exit 0');
is($e->{command}{exit_code}, 0, 'its code');
is($e->{command}{provider_command_id}, $id, "the command's id");
is($e->{command}{command}, 'x', 'the command');
cmp_ok($e->{duration_ms}, '>=', 0, 'its duration');

($r, $e) = run(@head, failed('3', 'exit status 3'));
is($e->{status}, 'failed', 'exit 3');
is($e->{command}{exit_code}, 3, 'its code');

($r, $e) = run(@head, failed('-1', 'signal: terminated'));
is($e->{status}, 'cancelled', 'interrupted');

$up->script("POST $execd/command",
            FakeUpstream::stream(@head, failed('-1', 'signal: killed')));
($r, $e) = command(body => '{"command":"x","timeout":300}');
is($e->{status}, 'timeout', 'command time-out');
is($e->{command}{timeout_ms}, 300, 'the limit that was asked for');

($r, $e) = run(@head, failed('no such file', 'exec failed'));
is($e->{status}, 'failed', 'could not start');
isnt($e->{command}{exit_code} // 'none', 0, 'an unknown code is not 0');

# a runtime failure after init: typeless, without line feed (4.4)
$up->script("POST $execd/session/x/run", FakeUpstream::stream_head(),
    (map { [ event => $_ ] } @head),
    [ chunk => '{"code":"RUNTIME_ERROR","message":"timeout after 300ms"}' ],
    [ chunk => '' ]);
$r = $t->post("$execd/session/x/run", body => '{"command":"x"}');
$e = $t->record($r);
is($e->{status}, 'failed', 'a late runtime error');
is($e->{wire}{error_code}, 'RUNTIME_ERROR', 'with its code');
is($e->{operation_type}, 'session.run', 'of a session');
is($e->{command}{command}, 'x', 'which has a command row too');

# an ordinary error is no stream (C037)
for my $status (400, 200) {
    $up->script("POST $execd/command", FakeUpstream::answer(
        $status, { code => 'INVALID_REQUEST_BODY', message => 'm' }));
    ($r, $e) = command();
    is($r->code, 'INVALID_REQUEST_BODY', "C037: JSON with status $status");
    isnt($e->{status}, 'succeeded', 'is not a success') if $status == 400;
    is($e->{wire}{error_code}, 'INVALID_REQUEST_BODY', 'its code')
        if $status == 400;
}

# Cut streams.

for my $cut ([ 'after an event', [ event => (out('half'))[0] ], [ 'close' ] ],
             [ 'inside an event', [ chunk => '{"type":"stdout","text":"hal' ],
               [ 'close' ] ],
             [ 'by a reset', [ event => (out('half'))[0] ], [ pause => 0.1 ],
               [ 'reset' ] ],
             [ 'clean end without a terminal event',
               [ event => (out('half'))[0] ], [ chunk => '' ] ])
{
    my ($name, @steps) = @$cut;
    $up->script("POST $execd/command", FakeUpstream::stream_head(),
                (map { [ event => $_ ] } @head), @steps);
    ($r, $e) = command();
    ok(!$r->complete, "cut $name: the client sees it")
        if $name !~ /clean/;
    is($e->{status}, 'unknown', "cut $name: unknown");
    is($e->{wire}{reason}, 'upstream_cut', 'by upstream');
    like($t->history->output($e->{event_id}, 'stdout', 's1'), qr/^hal/,
         'with what came');
}

# C033: the last event lacks its line feeds
$up->script("POST $execd/command", FakeUpstream::stream_head(),
    [ chunk => join "\n\n", map { FakeUpstream::Connection::encode_event($_) }
               @head, out('a'), $done ], [ chunk => '' ]);
($r, $e) = command();
is($e->{status}, 'succeeded', 'C033: the terminal event without line feeds');


# --- in time ---------------------------------------------------------------------------

# C024, C025: the head and each event at once, in whatever spelling of the type,
# recorded, not recorded, and judged: upstream goes on only when the client has
# what came before.

my $turn = 0;
my %took = map { $_ => [] } qw(head event);

for my $how ([ s1 => 'recorded' ], [ off => 'not recorded' ], [ judged => 'with a policy' ]) {
    my ($box, $what) = @$how;
    my $path = "/v1/sandboxes/$box/proxy/44772/command";

    for my $type ('text/event-stream', 'Text/Event-Stream',
                  'text/event-stream; charset=utf-8')
    {
        $turn++;
        $up->script("POST $path",
            [ send => "HTTP/1.1 200 OK\r\nContent-Type: $type\r\n"
                      . "Transfer-Encoding: chunked\r\n\r\n" ],
            [ until => "head $turn" ], [ event => $head[0] ], [ until => "first $turn" ],
            [ event => (out('a'))[0] ], [ until => "second $turn" ],
            [ event => $done ], [ chunk => '' ]);
        my $c = $t->connect;
        my $at = time;
        $c->write($c->build(POST => $path, body => '{"command":"x"}',
                            headers => [ $t->credential ]));
        $r = $c->response(head_only => 1);
        push @{ $took{head} }, time - $at;
        is($r->status, 200, "C025: $what, the head comes alone ($type)");
        $at = time;
        $up->release("head $turn");
        ok(comes($c, qr/"init"/), 'C024: the first event comes before the second');
        push @{ $took{event} }, time - $at;
        $at = time;
        $up->release("first $turn");
        ok(comes($c, qr/"stdout"/), 'and the second before the last');
        push @{ $took{event} }, time - $at;
        $up->release("second $turn");
        $c->body($r);
        like($r->content, qr/execution_complete/, 'which comes, too');

        $e = $t->record($r) if $box ne 'off';
        is($e->{status}, 'succeeded', 'on record') if $box ne 'off';
        is($e->{result}{verdict}, 'allow', 'as judged') if $box eq 'judged';
    }
}

# a busy machine is late now and then, who waits for more to come is always
for my $what (sort keys %took) {
    my @sorted = sort { $a <=> $b } @{ $took{$what} };
    cmp_ok($sorted[$#sorted / 2], '<', 0.05 * $SandboxProcess::PATIENCE,
           "C024, C025: the $what within 50 ms");
}

is_deeply([ grep { $_->{operation_type} eq 'command.execute' } $t->history->events('off') ],
          [], 'what is not to be recorded is not');

# The output is there while it runs.

$up->script("POST $execd/command", FakeUpstream::stream_head(),
    (map { [ event => $_ ] } @head, out('early')), [ pause => 1.5 ],
    [ event => $done ], [ chunk => '' ]);
my $c = $t->connect;
$c->write($c->build(POST => "$execd/command", body => '{"command":"x"}',
                    headers => [ $t->credential ]));
$r = $c->response(head_only => 1);
my $op = $r->header('X-Operation-Id');
ok($t->wait_for(sub {
       $t->history->output($op, 'stdout', 's1') eq "early\n" }, 1.2),
   'output is on record while the command runs');
is($t->history->event($op, 's1')->{status}, 'started', 'which is still started');
$c->body($r);
is($t->record($op)->{status}, 'succeeded', 'and ends once');

# C041: upstream is not asked to compress what is read as it passes.

$up->mark;
$up->clear;
$t->post("$execd/command", body => '{"command":"echo a"}',
         headers => [ 'Accept-Encoding: gzip, br' ]);
unlike(($up->requests)[-1]{head}, qr/gzip/, 'C041: no compression is asked for');

# C019: the client leaves in mid-stream; upstream sees it within a second.

$up->script("POST $execd/command", FakeUpstream::stream_head(),
    (map { [ event => $_ ] } @head, out('so far')), [ 'hang' ]);
$c = $t->connect;
$c->write($c->build(POST => "$execd/command", body => '{"command":"sleep 600"}',
                    headers => [ $t->credential ]));
$r = $c->response(head_only => 1);
$op = $r->header('X-Operation-Id');
sleep 0.2;
my $closed = () = $up->wait_entry('closed', timeout => 0);
$c->close;
ok($up->wait_entry('closed', count => $closed + 1, timeout => $SandboxProcess::PATIENCE),
   'C019: upstream is let go within a second');
$up->script("GET $execd/command/status", FakeUpstream::answer(200, {
    id => $id, content => 'sleep 600', running => \1, error => '' }));
$e = $t->record($op, started => 1);
is($t->history->output($op, 'stdout', 's1'), "so far\n",
   'the output so far is kept');
is($e->{status}, 'started', 'a command goes on without its client');

# Its end is seen in a status answer that passes.

$up->script("GET $execd/command/status", FakeUpstream::answer(200, {
    id => $id, content => 'sleep 600', running => \0, exit_code => 143,
    error => '', started_at => '2026-11-29T09:00:00Z',
    finished_at => '2026-11-29T09:00:01Z' }));
$t->get("$execd/command/status/$id");
$e = $t->record($op);
is($e->{status}, 'failed', 'then it has ended');
is($e->{command}{exit_code}, 143, 'with the exit code of the status answer');


# --- background (10.4) --------------------------------------------------------------------

my $bg = 'b' x 32;
$up->script("POST $execd/command", FakeUpstream::stream(
    FakeUpstream::event('init', text => $bg),
    FakeUpstream::event('ping', text => 'pong'), $done));
$up->script("GET $execd/command/status/$bg", FakeUpstream::answer(200, {
    id => $bg, content => 'x', running => \1, error => '' }));
$r = $t->post("$execd/command", body => '{"command":"x","background":true}');
is($r->status, 200, 'background command');
$op = $r->header('X-Operation-Id');
sleep 0.4;
is($t->history->event($op, 's1')->{status}, 'started',
   'its start is not its end');

$up->script("GET $execd/command/status/$bg", FakeUpstream::answer(200, {
    id => $bg, content => 'x', running => \0, exit_code => 5, error => 'e',
    started_at => '2026-11-29T09:00:00Z',
    finished_at => '2026-11-29T09:00:01Z' }));
$t->get("$execd/command/status/$bg");
$e = $t->record($op);
is($e->{status}, 'failed', 'the status answer ends it');
is($e->{command}{exit_code}, 5, 'with its exit code');

$r = $t->get("$execd/command/$bg/logs?cursor=0");
is($t->record($r)->{operation_type}, 'command.logs', 'logs are recorded too');


# --- code ----------------------------------------------------------------------------------

for my $case ([ '{"code":"id"}', 'command.execute' ],
              [ '{"context":{"id":"x"},"code":"id"}', 'command.execute' ],
              [ '{"language":"python","code":"id"}', 'command.execute' ],
              [ '{"context":{"language":""},"code":"id"}', 'command.execute' ],
              [ '{"context":{"language":"command"},"code":"id"}',
                'command.execute' ],
              [ '{"context":{"language":"background-command"},"code":"id"}',
                'command.execute' ],
              [ '{"context":{"language":"python"},"code":"id"}',
                'code.execute' ])
{
    my ($body, $op) = @$case;
    $up->script("POST $execd/code", FakeUpstream::stream(@head, $done));
    $r = $t->post("$execd/code", body => $body);
    # a background command has not ended yet
    $e = $t->record($r, started => scalar($body =~ /background/));
    is($e->{operation_type}, $op, "shell through code: $body");
    is($e->{command}{command}, 'id', 'with the text that runs');
}

$t->stop;
done_testing;


sub command {
    my (%o) = @_;

    my $r = $t->post("$execd/command", body => '{"command":"x"}', %o);

    return ($r, $t->record($r, sandbox => 's1'));
}


# Plays events as the answer of a command.

sub run {
    my @events = @_;

    $up->script("POST $execd/command", FakeUpstream::stream(@events));

    return command();
}


sub output_is {
    my ($name, $expected, @events) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($r, $e) = run(@head, @events, $done);
    is($t->history->output($e->{event_id}, 'stdout', 's1'), $expected, $name);
}
