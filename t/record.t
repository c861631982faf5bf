#!/usr/bin/perl

# One operation, one record: its identity, its order, its status whatever
# happened, what is recorded by default and what by sandbox_record.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $t = SandboxTest->new(
    location => 'proxy_connect_timeout 1s; sandbox_record pool.* off;'
                . ' sandbox_record execd.ping off;',
    locations => <<'EOF',
location /v1/sandboxes/redir {
    sandbox on;
    error_page 502 504 = @fallback;
    proxy_intercept_errors on;
    error_page 404 = /fallback/page;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_set_header Host $sandbox_upstream_host;
}
location @fallback {
    return 200 "fallback\n";
}
location /fallback/ {
    sandbox on;
    return 200 "page\n";
}
location /v1/sandboxes/slow {
    sandbox on;
    proxy_read_timeout 300ms;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_set_header Host $sandbox_upstream_host;
}
location /v1/sandboxes/off {
    sandbox on;
    sandbox_record * off;
    sandbox_record file.* best_effort;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_set_header Host $sandbox_upstream_host;
}
location /plain/ {
    proxy_pass http://opensandbox;
}
EOF
)->start;

my $up = $t->up;
$t->sandbox($_) for qw(s1 redir1 slow1 off1 fold1);
my $execd = '/v1/sandboxes/s1/proxy/44772';


# --- a record --------------------------------------------------------------------------

my $before = time;
my $r = $t->post("$execd/command", headers => [ 'X-Actor-Id: agent-1' ],
    body => '{"command":"echo hi","cwd":"/workspace","timeout":5000,'
            . '"envs":{"SECRET_NAME":"env-value-1"}}');
$t->secret('env-value-1');
my $after = time;
my $e = $t->record($r);

is($e->{event_id}, $r->header('X-Operation-Id'), 'its id is the operation id');
is($e->{sandbox_id}, 's1', 'sandbox');
is($e->{provider_key}, 'opensandbox-default', 'provider');
like($e->{sandbox_instance_id}, qr/^legacy-[0-9a-f]{32}$/,
     'instance id of a sandbox without one');
is($e->{operation_type}, 'command.execute', 'operation');
is($e->{status}, 'succeeded', 'status');
is($e->{actor_id}, 'agent-1', 'actor');
is($e->{schema_version}, 1, 'schema version');
like($e->{occurred_at}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/,
     'time with six digits');
cmp_ok($e->{occurred_at}, 'ge', SandboxTest::utc($before - 0.01), 'not earlier');
cmp_ok($e->{completed_at}, 'le', SandboxTest::utc($after + 0.01), 'not later');
is($e->{command}{command}, 'echo hi', 'command');
is($e->{command}{cwd}, '/workspace', 'cwd');
is($e->{command}{timeout_ms}, 5000, 'timeout');
is($e->{command}{exit_code}, 0, 'exit code');
like($e->{request_json}, qr/SECRET_NAME/, 'names of variables');
is($e->{wire}{method}, 'POST', 'method');
is($e->{wire}{path}, '/command', 'inner path');
is($e->{wire}{port}, 44772, 'port');
is($e->{wire}{http_status}, 200, 'HTTP status');
is($e->{wire}{route}, 'server-proxy', 'road');
is($e->{wire}{bytes_out}, length $r->content, 'bytes out');
is($e->{wire}{record}, 'strict', 'what mutates is strict');

$e = $t->record($t->post("$execd/command", body => '{"command":"echo"}'));
is($e->{command}{cwd}, '', 'no cwd given: the empty text');

$e = $t->record($t->get("$execd/files/info?path=%2Fa%20b&path=%2Fc"));
is($e->{wire}{record}, 'best_effort', 'what reads is best_effort');
is_deeply([ map { $_->{path} } @{ $e->{files} } ], [ '/a b', '/c' ],
          'decoded paths');

# create: begins in _gateway and becomes the first record of the sandbox

$r = $t->post('/v1/sandboxes', body => '{"image":{"uri":"python:3.11",'
    . '"auth":{"username":"u","password":"image-password-1"}},"timeout":600,'
    . '"resourceLimits":{"cpu":"1"},"env":{"A_NAME":"env-value-2"},'
    . '"metadata":{"agent_sandbox.name":"My box","sandbox_instance_id":"inst-1"},'
    . '"entrypoint":["tail"],"volumes":[{"name":"v","mountPath":"/m",'
    . '"ossfs":{"bucket":"bbb","endpoint":"e","accessKeyId":"oss-key-1",'
    . '"accessKeySecret":"oss-secret-1"}}]}');
$t->secret('image-password-1', 'env-value-2', 'oss-key-1', 'oss-secret-1');
my $id = $r->json->{id};
$e = $t->record($r, sandbox => $id);
is($e->{operation_type}, 'sandbox.create', 'create');
is($e->{record_seq}, 1, 'is the first record of the new file');
is($e->{sandbox_instance_id}, 'inst-1', 'which has the instance of the request');
is($e->{request}{image}{uri} // $e->{request}{'image.uri'}, 'python:3.11',
   'the image') or diag($e->{request_json});
like($e->{request_json}, qr/A_NAME/, 'names of variables');
is($t->history->value($id, "select value from history_meta where"
                           . " key = 'sandbox_name'"), 'My box', 'its name');
is($t->history->value('_gateway', 'select count(*) from history_events'
                      . " where event_id = '$e->{event_id}'"), 0,
   'and no longer in _gateway');

# the file itself

is($t->history->value($id, 'pragma user_version'), 1, 'user_version 1');
is($t->history->value($id, 'pragma journal_mode'), 'wal', 'WAL');
is($t->history->value($id, 'pragma integrity_check'), 'ok', 'integrity');
is($t->history->value($id, "select value from history_meta where"
                           . " key = 'schema_version'"), 1, 'schema v1');

# what fails makes no file for a sandbox that nobody has shown to exist

$r = $t->get('/v1/sandboxes/never-was');
is($r->status, 404, 'unknown sandbox');
$e = $t->record($r);
is($e->{in}, '_gateway', 'stays in _gateway');
ok(!-e $t->history->path_of('never-was'), 'and makes no file');
is($e->{status}, 'failed', 'failed');
is($e->{wire}{error_code}, 'DOCKER::SANDBOX_NOT_FOUND', "with upstream's code");

# ids that are no file names

$t->sandbox('odd id~1');
$r = $t->post('/v1/sandboxes/odd%20id~1/proxy/44772/command',
              body => '{"command":"echo hi"}');
is($t->record($r)->{in}, $t->history->dir_of('odd id~1'),
   'an odd id has its digest as directory');


# --- numbers ----------------------------------------------------------------------------

my @all = $t->records('s1', count => 3);
is_deeply([ map { $_->{record_seq} } @all ], [ 1 .. @all ],
          'seq is gap-free in a sandbox');
my @cursors = map { $_->{cursor} } @all;
is_deeply(\@cursors, [ sort { $a <=> $b } @cursors ], 'cursors grow');
my %all = map { $_ => 1 } map { my $s = $_; map { $_->{cursor} }
              $t->history->events($s) } $t->history->dirs;
my $rows = 0;
$rows += $_ for map { scalar $t->history->events($_) } $t->history->dirs;
is(scalar keys %all, $rows, 'and are one order over all sandboxes');


# --- what is recorded -----------------------------------------------------------------------

# execd.ping and server.* are not, by default

my $n = () = $t->history->events('s1');
$t->get("$execd/ping");
$t->get('/health');
$r = $t->get("$execd/metrics");
$t->record($r);
is(scalar(() = $t->history->events('s1')), $n + 1, 'a ping is not recorded');
is(scalar(grep { $_->{operation_type} =~ /^server\./ }
          $t->history->events('_gateway')), 0, 'server.health neither');

$r = $t->get('/v1/pools');
is($r->status, 200, 'an operation that is off passes');
ok($r->header('X-Operation-Id'), 'with an id');
$t->get('/v1/sandboxes/off1');
$e = $t->record($t->get('/v1/sandboxes/off1/proxy/44772/files/info?path=/a'));
is($e->{operation_type}, 'file.stat', 'sandbox_record by glob: recorded');
is(scalar(grep { $_->{operation_type} =~ /^pool\./
                 || ($_->{wire}{sandbox} // '') eq 'off1' }
          $t->history->events('_gateway')), 0, 'off: not recorded');
is(scalar(() = $t->history->events('off1')), 1, 'in either file');

# polling is folded into a count

$t->record($t->post('/v1/sandboxes/fold1/pause', body => ''));
my @poll = map { $t->get('/v1/sandboxes/fold1') } 1 .. 5;
$t->get('/v1/sandboxes/fold1/endpoints/44772') for 1 .. 3;
$r = $t->get('/v1/sandboxes/fold1');
$t->record($t->post('/v1/sandboxes/fold1/resume', body => ''));
$t->get('/v1/sandboxes/fold1') for 1 .. 2;
$t->record($t->post('/v1/sandboxes/fold1/pause', body => ''));
@all = $t->history->events('fold1');
is_deeply([ map { $_->{operation_type} } @all ],
          [ qw(sandbox.pause sandbox.get endpoint.get sandbox.resume
               sandbox.get sandbox.pause) ],
          'repeated polling is one record');
is($t->history->folded('fold1', $all[1]{event_id}), 5, 'with a count');
is($t->history->folded('fold1', $all[2]{event_id}), 2, 'for each kind');
is($all[1]{event_id}, $poll[0]->header('X-Operation-Id'), 'the first one stays');
is($all[1]{status}, 'succeeded', 'unchanged');
ok($_->header('X-Operation-Id'), 'folded ones have ids') for $poll[1];

$t->record($t->get('/v1/sandboxes/fold1', headers => [ 'X-Actor-Id: other' ]));
is(($t->history->events('fold1'))[-1]{actor_id}, 'other',
   'another actor is not folded');


# --- how it ended ------------------------------------------------------------------------------

# upstream refuses connections, breaks off, is silent

$t->sandbox('dead', execd => 'refusing', learn => 1);
$r = $t->post('/v1/sandboxes/dead/proxy/44772/command', body => '{"command":"x"}');
is($r->status, 502, 'upstream gone: 502');
is($r->code, 'GATEWAY_UPSTREAM_UNAVAILABLE', 'in the envelope');
ok($r->json->{details}, 'with details');
$e = $t->record($r);
is($e->{status}, 'failed', 'failed');
is($e->{wire}{upstream_status}, undef, 'upstream gave no status');
is($e->{wire}{error_code}, 'GATEWAY_UPSTREAM_UNAVAILABLE', 'our code');

$up->script('GET /v1/sandboxes/s1', [ 'close' ]);
$r = $t->get('/v1/sandboxes/s1');
is($r->status, 502, 'closed before the head: 502');
is($t->record($r)->{status}, 'failed', 'failed');

$up->script('GET /v1/sandboxes/s1', [ send => "nonsense\r\n\r\n<p>" ],
            [ 'close' ]);
$r = $t->get('/v1/sandboxes/s1');
is($r->status, 502, 'an answer without a head is no answer: 502');
unlike($r->content, qr/nonsense/, 'and nothing of it passes');

$up->script('GET /v1/sandboxes/slow1', [ 'hang' ]);
$r = $t->get('/v1/sandboxes/slow1');
is($r->status, 504, 'C021: silence: 504');
is($r->code, 'GATEWAY_UPSTREAM_UNAVAILABLE', 'in the envelope');
is($t->record($r)->{status}, 'timeout', 'timeout');
$up->clear;

# an answer that is cut

$up->script("GET $execd/files/download", [ send =>
    "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc" ], [ 'close' ]);
$r = $t->get("$execd/files/download?path=/a");
ok(!$r->complete, 'a cut answer is cut for the client too');
$e = $t->record($r);
is($e->{status}, 'unknown', 'unknown');
is($e->{wire}{reason}, 'upstream_cut', 'cut by upstream');
is($e->{wire}{bytes_out}, 3, 'with the bytes that came');
$up->clear;

# internal redirects: one record

for my $case ([ '502', [ 'close' ], "fallback\n" ],
              [ '404', FakeUpstream::answer(404, { code => 'X' }), "page\n" ])
{
    my ($name, $step, $body) = @$case;
    my $had = () = map { $t->history->events($_) } qw(_gateway redir1);
    $up->script('GET /v1/sandboxes/redir1', $step);
    $r = $t->get('/v1/sandboxes/redir1');
    is($r->content, $body, "error_page after $name");
    $e = $t->record($r);
    is($e->{operation_type}, 'sandbox.get', 'is the same operation');
    sleep 0.3;
    is(scalar(() = map { $t->history->events($_) } qw(_gateway redir1)),
       $had + 1, 'recorded once');
}
$up->clear;

# the client leaves before the answer began

$up->script("GET $execd/metrics", [ 'hang' ]);
my $c = $t->connect;
$c->write($c->build(GET => "$execd/metrics", headers => [ $t->credential ]));
$up->wait_request(qr{/metrics}, count => 1);
sleep 0.1;
$c->close;
($e) = $t->wait_for(sub {
    return (grep { $_->{operation_type} eq 'metrics.get'
                   && $_->{status} eq 'cancelled' }
            $t->history->events('s1'))[0];
});
ok($e, 'client gone before the answer: cancelled');
is($e->{wire}{reason}, 'client_disconnected', 'by the client');

# ... and in the middle of it, by FIN and by RST

for my $how (qw(close reset)) {
    $up->script("GET $execd/files/download", [ send =>
        "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n" . 'x' x 1000 ],
        [ pause => 0.3 ], [ repeat => 100, [ send => 'x' x 100_000 ] ]);
    $c = $t->connect;
    $c->write($c->build(GET => "$execd/files/download?path=/a",
                        headers => [ $t->credential ]));
    $r = $c->response(head_only => 1);
    $c->$how;
    $e = $t->record($r);
    is($e->{status}, 'unknown', "client gone in mid-stream ($how): unknown");
    is($e->{wire}{reason}, 'client_disconnected', 'by the client');
}
$up->clear;

# many that leave at once leave no trace behind (C018, C158)

for (1 .. 60) {
    $c = $t->connect;
    $c->write($c->build(POST => "$execd/command", body => '{"command":"x"}',
                        headers => [ $t->credential ]))
        if $_ % 3;
    $c->write("POST $execd/files/upload HTTP/1.1\r\nHost: localhost\r\n"
              . "Expect: 100-continue\r\nContent-Length: 10\r\n\r\n")
        if $_ % 3 == 0;
    $_ % 2 ? $c->reset : $c->close;
}

is($t->get('/v1/sandboxes')->status, 200, 'after sixty aborts all is well');
@all = $t->records('s1', count => 10);
is(scalar(grep { $_->{status} eq 'started' } @all), 0,
   'and every record has ended') or diag(join ' ', map {
       "$_->{operation_type}:$_->{event_id}" } grep { $_->{status} eq 'started' }
       @all);

# what is not ours is not touched

$r = $t->get('/plain/x', token => undef);
is($r->code, 'MISSING_API_KEY', 'a location without the module');
is($r->header('X-Operation-Id'), undef, 'is left alone');

$t->stop;
done_testing;
