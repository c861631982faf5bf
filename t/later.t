#!/usr/bin/perl

# Sessions, code and what its kernels say; routes of later releases (reference
# 8.5), event and member names that nobody knows yet, and routes that are none:
# all pass unchanged and are recorded as what they are.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;

my $t = SandboxTest->new(location => 'sandbox_record * strict;')->start;
my $up = $t->up;
$t->sandbox('s1');
my $execd = '/v1/sandboxes/s1/proxy/44772';

sub event { FakeUpstream::event(@_) }


# --- code -----------------------------------------------------------------------

my @kernel = (
    event('init', text => 'jupyter-1'), event('ping', text => 'pong'),
    event('stdout', text => "printed\n"), event('stdout', text => "no end"),
    event('execution_count', execution_count => 7),
    event('result', results => { text => '42', 'text/html' => '<b>42</b>',
                                 'image/png' => 'aGVsbG8=' }),
    event('result', results => { text => "\x{4f60}\n\"", extra => [ 1, {} ] }),
    event('status', text => 'ok'),
    event('execution_complete', execution_time => 12));

$up->script("POST $execd/code", FakeUpstream::stream(@kernel));
my $r = $t->post("$execd/code", body =>
    '{"context":{"language":"python","id":"c7"},"code":"print(6*7)"}');
my $e = $t->record($r);
is($e->{operation_type}, 'code.execute', 'code');
is($e->{status}, 'succeeded', 'succeeded');
is($e->{command}{command}, 'print(6*7)', 'with its text');
is($e->{request}{context}{language} // $e->{request}{language}, 'python',
   'and language') or diag($e->{request_json});
is($e->{result}{execution_count}, 7, 'the count of the kernel');
is_deeply($e->{result}{results},
          [ { text => '42', 'text/html' => '<b>42</b>',
              'image/png' => 'aGVsbG8=' },
            { text => "\x{4f60}\n\"", extra => [ 1, {} ] } ],
          'every result in all its forms') or diag($e->{result_json});
is($e->{result}{execution_ms}, 12, 'and the time it took');
is($t->history->output($e->{event_id}, 'stdout'), "printed\nno end",
   'its output, with the line ends that a kernel gives');
is($e->{result}{line_ends}, undef, 'none is made up');

# an exception
$up->script("POST $execd/code", FakeUpstream::stream(
    @kernel[0, 1, 2, 4],
    event('error', error => { ename => 'ZeroDivisionError', evalue => 'by zero',
                              traceback => [ 'line 1', 'line 2' ] })));
$e = $t->record($t->post("$execd/code",
    body => '{"context":{"language":"python"},"code":"1/0"}'));
is($e->{status}, 'failed', 'an exception: failed');
is($e->{result}{ename}, 'ZeroDivisionError', 'of this class');
is($e->{result}{evalue}, 'by zero', 'with its message');
is($e->{result}{execution_count}, 7, 'and the count');
is_deeply($e->{result}{results}, undef, 'without results');

# the count after the end, a null traceback
$up->script("POST $execd/code", FakeUpstream::stream(
    event('init', text => 'jupyter-2'),
    event('execution_complete', execution_time => 1),
    event('execution_count', execution_count => 8)));
is($t->record($t->post("$execd/code",
       body => '{"context":{"language":"python"},"code":"x"}'))
     ->{result}{execution_count}, 8, 'a count behind the end counts');

$up->script("POST $execd/code", FakeUpstream::stream(
    event('init', text => 'jupyter-2'),
    event('error', error => { ename => 'E', evalue => 'v',
                              traceback => undef })));
is($t->record($t->post("$execd/code",
       body => '{"context":{"language":"python"},"code":"x"}'))->{status},
   'failed', 'a null traceback');

# results of any size: the first ones kept, none lost in silence
my $large = 'x' x 60_000;
$up->script("POST $execd/code", FakeUpstream::stream(
    event('init', text => 'jupyter-3'),
    (map { event('result', results => { text => "$_$large" }) } 1 .. 5),
    event('result', results => { text => 'y' x 100_000 }),
    event('result', results => { text => 'small' }),
    event('execution_complete', execution_time => 1)));
$r = $t->post("$execd/code",
              body => '{"context":{"language":"python"},"code":"x"}');
$e = $t->record($r);
is($e->{status}, 'succeeded', 'large results');
is_deeply([ map { substr $_->{text}, 0, 2 } @{ $e->{result}{results} } ],
          [ '1x', '2x', 'sm' ], 'what fits is kept, in order');
is($e->{result}{results_dropped}, 4, 'and the rest is counted');
is(length $r->content, length($r->content =~ s/\0//gr), 'the stream passed');
cmp_ok(length $r->content, '>', 400_000, 'whole');

# a single result above 64 KiB is kept as the text that it is, cut
$up->script("POST $execd/code", FakeUpstream::stream(
    event('init', text => 'jupyter-4'),
    event('result', results => { text => "\x{4f60}" x 30_000 }),
    event('execution_complete', execution_time => 1)));
$e = $t->record($t->post("$execd/code",
    body => '{"context":{"language":"python"},"code":"x"}'));
like($e->{result}{results}[0], qr/^\{"text":"/, 'a result that was cut');
cmp_ok(length $e->{result}{results}[0], '<', 65_536, 'to its bound');

# text before type, a result nested as deep as a record may be, and deeper
my $deep = '[' x 20 . ']' x 20;
my $deeper = '[' x 40 . ']' x 40;
$up->script("POST $execd/code", FakeUpstream::stream(
    event('init', text => 'jupyter-5'),
    "{\"results\":{\"text\":$deep},\"type\":\"result\"}\n\n",
    "{\"type\":\"result\",\"results\":{\"text\":$deeper}}\n\n",
    event('execution_complete', execution_time => 1)));
$e = $t->record($t->post("$execd/code",
    body => '{"context":{"language":"python"},"code":"x"}'));
is(ref $e->{result}{results}[0], 'HASH', 'results before the type');
like($e->{result}{results}[1], qr/^\{"text":\[\[/, 'a very deep one is text')
    or diag($e->{result_json});

# code that is a shell command, whatever the context says (10.4)
$up->clear;

for my $body ('{"code":"echo a"}', '{"context":{"id":"x"},"code":"echo a"}',
              '{"language":"python","code":"echo a"}',
              '{"context":{"language":""},"code":"echo a"}',
              '{"context":{"language":"command"},"code":"echo a"}',
              '{"context":{"language":"background-command"},"code":"echo a"}')
{
    $e = $t->record($t->post("$execd/code", body => $body), started => 1);
    is($e->{operation_type}, 'command.execute', "a shell command: $body");
}


# --- sessions -----------------------------------------------------------------------

$r = $t->post("$execd/session", body => '{"cwd":"/w"}');
$e = $t->record($r);
is($e->{operation_type}, 'session.create', 'a session is made');
is($e->{result}{session_id}, 'ses-1', 'with its id');
is($e->{request}{cwd} // $e->{command}{cwd}, '/w', 'and directory')
    or diag($e->{request_json});
is($t->record($t->post("$execd/session"))->{status}, 'succeeded',
   'also without a body');

$r = $t->post("$execd/session/ses-1/run",
              body => '{"command":"echo out; exit 4","cwd":"/w",'
                      . '"timeout":1500}');
$e = $t->record($r);
is($e->{operation_type}, 'session.run', 'a command of a session');
is($e->{status}, 'failed', 'failed');
is($e->{command}{exit_code}, 4, 'with its exit code');
is($e->{command}{command}, 'echo out; exit 4', 'text');
is($e->{command}{cwd}, '/w', 'directory');
is($e->{command}{timeout_ms}, 1500, 'and limit');
is($t->history->output($e->{event_id}, 'stdout'), "out\n", 'and output');
is($e->{request}{session_id}, 'ses-1', 'of this session');

# 4.3: the typeless tail of a session that ran into its limit
$up->script("POST $execd/session/ses-1/run", FakeUpstream::stream(
    event('init', text => 'ses-1'), event('stdout', text => 'so far'),
    '{"code":"RUNTIME_ERROR","message":"error running in session. timeout '
    . 'after 300ms"}'));
$e = $t->record($t->post("$execd/session/ses-1/run",
                         body => '{"command":"sleep 9","timeout":300}'));
is($e->{status}, 'failed', 'a late runtime error: failed');
is($e->{wire}{error_code}, 'RUNTIME_ERROR', 'with its code');
like($e->{result}{message}, qr/timeout after 300ms/, 'and message');
$up->clear;

is($t->record($t->delete("$execd/session/ses-1"))->{operation_type},
   'session.delete', 'and it is ended');

# contexts
$e = $t->record($t->post("$execd/code/context",
                         body => '{"language":"python","cwd":"/w"}'));
is($e->{operation_type}, 'code.context.create', 'a context');
is($e->{result}{id}, 'ctx-1', 'with its id');
is($e->{request}{language}, 'python', 'and language');


# --- what later releases send ---------------------------------------------------------

# events, members and types that nobody knows pass, and are counted for nothing
my $novel = join '', map { "$_\n\n" }
    '{"eid":1,"type":"init","text":"c1","timestamp":1}',
    '{"eid":2,"type":"novelty","text":"what","deep":{"a":[1,{"b":null}]}}',
    '{"eid":3,"type":"stdout","text":"a","timestamp":1,"more":{"x":1}}',
    '{"eid":4,"type":"execution_complete","execution_time":1,"more":[]}';
$up->script("POST $execd/command", FakeUpstream::stream_head(),
            [ chunk => $novel ], [ chunk => '' ]);
$r = $t->post("$execd/command", body => '{"argv":["echo","a"],"novel":true}');
is($r->content, $novel, 'unknown events and members pass as they are');
$e = $t->record($r);
is($e->{status}, 'succeeded', 'and disturb nothing');
is($t->history->output($e->{event_id}, 'stdout'), "a\n", 'the output is kept');
like($e->{request_json}, qr/argv/, 'argv is recorded');
$up->clear;

# METHOD, path, body, operation, what must be in the record of request or result
for my $case (
    [ GET => '/ready', undef, 'execd.ready', result => qr/initialized/ ],
    [ POST => '/internal/init', '{"sandboxId":"s1","generation":3,'
      . '"accessTokenHash":"sha256:init-hash-1","envs":{"KEY":"init-env-1"}}',
      'execd.init', request => qr/"generation":3/ ],
    [ POST => '/v1/isolated/session', '{"profile":"strict","workspace":'
      . '{"path":"/iso","mode":"rw"},"binds":[{"source":"/src","dest":"/dst",'
      . '"readonly":true}],"extra_writable":["/tmp/w"],"share_net":false}',
      'isolated.create', request => qr/strict/ ],
    [ GET => '/v1/isolated/sessions', undef, 'isolated.list' ],
    [ GET => '/v1/isolated/session/i1', undef, 'isolated.get',
      request => qr/i1/ ],
    [ GET => '/v1/isolated/session/i1/diff', undef, 'isolated.diff' ],
    [ POST => '/v1/isolated/session/i1/commit', '{}', 'isolated.commit' ],
    [ GET => '/v1/isolated/capabilities', undef, 'isolated.capabilities' ],
    [ DELETE => '/v1/isolated/session/i1/files?path=%2Fiso%2Fa', undef,
      'isolated.file.delete' ],
    [ DELETE => '/v1/isolated/session/i1', undef, 'isolated.delete' ],
    [ GET => '/command', undef, 'execd.unknown' ],
    [ POST => '/mcp', '{"jsonrpc":"2.0"}', 'execd.unknown' ],
    [ GET => '/command/c1/resume?after_eid=4', undef, 'execd.unknown' ],
    [ GET => '/v1/isolated/session/i1/novelty', undef, 'execd.unknown' ],
    [ PATCH => '/ping', '{}', 'execd.unknown' ])
{
    my ($method, $path, $body, $operation, $where, $like) = @$case;
    $up->mark;
    my $r = $t->request($method, "$execd$path",
                        defined $body ? (body => $body) : ());
    my ($seen) = $up->requests;
    is($seen->{target}, "$execd$path", "$method $path passes");
    is($seen->{body} // '', $body // '', 'with its body');
    my $e = $t->record($r);
    is($e->{operation_type}, $operation, "and is $operation");
    is($e->{in}, 's1', 'of its sandbox');
    is($e->{wire}{upstream_status}, $r->status, 'answered by upstream');
    like($e->{"${where}_json"}, $like, "recorded with its $where") if $where;

    is_deeply([ sort map { $_->{path} } @{ $e->{files} } ],
              [ '/dst', '/iso', '/src', '/tmp/w' ], 'and all its paths')
        if $operation eq 'isolated.create';
    is($e->{files}[0]{path}, '/iso/a', 'and its path')
        if $operation eq 'isolated.file.delete';
}

$t->secret('init-hash-1', 'init-env-1');

# a stream of an isolated session: no init, no ping
$up->script("POST $execd/v1/isolated/session/i1/run", FakeUpstream::stream(
    event('stdout', text => 'iso'),
    event('error', error => { ename => 'ExitError', evalue => '9' })));
$e = $t->record($t->post("$execd/v1/isolated/session/i1/run",
    body => '{"code":"false","timeout_seconds":2,"envs":{"A":"init-env-1"}}'));
is($e->{operation_type}, 'isolated.run', 'an isolated run');
is($e->{status}, 'failed', 'failed');
is($e->{command}{exit_code} // $e->{result}{exit_code}, 9,
   'with its exit code');
is($t->history->output($e->{event_id}, 'stdout'), "iso\n", 'and output');

# lifecycle
for my $case (
    [ GET => '/v1/sandboxes/s1/networkpolicy', undef,
      'sandbox.networkpolicy.get', 's1' ],
    [ PUT => '/v1/sandboxes/s1/networkpolicy', '{"defaultAction":"deny"}',
      'sandbox.networkpolicy.set', 's1' ],
    [ GET => '/v1/templates/t1', undef, 'template.get', '_gateway' ],
    [ GET => '/version', undef, 'server.version', '_gateway' ],
    [ GET => '/v1/novelty/1', undef, 'lifecycle.unknown', '_gateway' ],
    [ POST => '/v1/sandboxes/s1/novelty', '{"a":1}', 'lifecycle.unknown',
      undef ],
    [ GET => '/v1/sandboxes/fsb-0123456789', undef, 'sandbox.get', undef ])
{
    my ($method, $target, $body, $operation, $in) = @$case;
    my $r = $t->request($method, $target, defined $body ? (body => $body) : ());
    my $e = $t->record($r);
    is($e->{operation_type}, $operation, "$method $target: $operation");
    is($e->{wire}{upstream_status}, $r->status, 'passed on');
    is($e->{in}, $in, "in $in") if $in && $r->status != 404;
}

$t->stop;
done_testing;
