#!/usr/bin/perl

# Field cases of area 11, JSON, through the gateway: in requests that are
# judged, in streams, in answers, in metadata of uploads.  The parsers by
# themselves are in t/unit (test_json, test_request, test_stream).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use JSON::PP;
use SandboxTest;
use Test::More;

my $t = SandboxTest->new->start;
my $up = $t->up;
$t->sandbox('s1');
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $json = JSON::PP->new->utf8;
my ($r, $e);


sub refused {
    my ($name, $path, $body, %o) = @_;

    $up->mark;
    my $r = $t->post("$execd$path", body => $body, %o);
    is($r->status, 400, "$name: refused");
    is($r->code, 'GATEWAY_AMBIGUOUS_REQUEST', "$name: by us");
    ok(eval { $json->decode($r->content) }, "$name: in valid JSON");
    is(scalar $up->requests, 0, "$name: and not forwarded");
}

sub upload {
    my $metadata = shift;

    return ("--B\r\nContent-Disposition: form-data; name=\"metadata\"; "
            . "filename=\"metadata\"\r\n\r\n$metadata\r\n--B\r\n"
            . "Content-Disposition: form-data; name=\"file\"; "
            . "filename=\"f\"\r\n\r\nhello\r\n--B--\r\n",
            headers => [ 'Content-Type: multipart/form-data; boundary=B' ]);
}


# C146: deep nesting, as a body, as metadata, as an event, as an answer

refused('C146: 200 KiB of [', '/command', '[' x (200 << 10));
refused('C146: valid and 100,000 deep', '/command',
        '[' x 100_000 . ']' x 100_000);
refused('C146: below a member', '/command', '{"command":"a","x":'
        . '{"a":' x 50_000 . '1' . '}' x 50_000 . '}');

# metadata: a level too many is a limit; an upload streams, so what is refused
# late is broken off before its end
for my $depth (65, 2000, 50_000) {
    $up->mark;
    my ($body, %o) = upload('[' x $depth);
    $r = $t->post("$execd/files/upload", body => $body, %o);
    like($r->status, qr/^4(?:00|13)$/, "C146: metadata $depth deep is refused");
    like($r->code, qr/^GATEWAY_(?:AMBIGUOUS_REQUEST|LIMIT_EXCEEDED)$/,
         'C146: by us');
    ok(!(grep { $_->{complete} } $up->requests), 'C146: and does not arrive');
}

my $deep = '[' x (200 << 10);
$up->script("POST $execd/command", FakeUpstream::stream_head(),
    [ event => FakeUpstream::event('init', text => 'c' x 32) ],
    [ chunk => "{\"type\":\"stdout\",\"x\":$deep\n\n" ],
    [ chunk => '{"a":' x 100_000 . '1' . '}' x 100_000 . "\n\n" ],
    [ event => FakeUpstream::event('stdout', text => 'after') ],
    [ event => FakeUpstream::event('execution_complete') ], [ chunk => '' ]);
$r = $t->post("$execd/command", body => '{"command":"x"}');
ok(index($r->content, $deep) > 0, 'C146: a deep event is relayed');
$e = $t->record($r);
is($e->{status}, 'succeeded', 'C146: and disturbs nothing');
is($e->{result}{bad_frames}, 2, 'C146: it counts as unparsed')
    or diag($e->{result_json});
is($t->history->output($e->{event_id}, 'stdout'), "after\n",
   'C146: what comes behind is recorded');

$up->script("GET $execd/command/status",
            FakeUpstream::answer(200, '{"id":' . $deep,
                                 'Content-Type: application/json'));
$r = $t->get("$execd/command/status/x");
is(length $r->content, 6 + length $deep, 'C146: a deep answer is relayed');
is($t->record($r)->{status}, 'succeeded', 'C146: and recorded');
$up->clear;


# C147: exactly the documented limit, 64 levels; siblings do not add up

sub nested {
    my $depth = shift;

    # the object around it is a level too
    return '{"command":"a","x":' . '[' x ($depth - 1) . ']' x ($depth - 1) . '}';
}

for my $depth (63, 64) {
    $r = $t->post("$execd/command", body => nested($depth));
    is($r->status, 200, "C147: $depth levels pass");
    is($t->record($r)->{command}{command}, 'a', 'C147: and are recorded');
}

refused('C147: 65 levels', '/command', nested(65));
$r = $t->post("$execd/command", body => '{"command":"b","x":['
              . join(',', ('[' x 10 . ']' x 10) x 1000) . ']}');
is($r->status, 200, 'C147: a thousand siblings of depth 10 pass');
is($t->record($r)->{command}{command}, 'b', 'C147: and are recorded');


# C148: a key in other letter case

for my $case ([ '/command', '{"command":"a","COMMAND":"b"}' ],
              [ '/command', '{"Command":"b"}' ],
              [ '/command', '{"comm\u0041nd":"b"}' ],
              [ '/command', "{\"bac\xe2\x84\xaaground\":true}" ],
              [ '/files/mv', '[{"src":"/a","Dest":"/b"}]' ],
              [ '/files/permissions', '{"/a":{"Mode":777}}' ],
              [ '/code', '{"context":{"Language":"python"},"code":"a"}' ],
              [ '/session/x/run', '{"CWD":"/","command":"a"}' ])
{
    refused("C148: $case->[1]", @$case);
}

for my $metadata ('{"path":"/workspace/ok","PATH":"/etc/x"}',
                  '{"Path":"/workspace/ok"}',
                  "{\"path\":\"/workspace/ok\",\"\xc4\xb1\":1,\"PATH\":\"/e\"}")
{
    refused("C148: metadata $metadata", '/files/upload', upload($metadata));
}


# C149: the same key twice

for my $case ([ '/command', '{"command":"a","command":"b"}' ],
              [ '/command', '{"command":"a","c\u006fmmand":"b"}' ],
              [ '/command', '{"command":"a","envs":{"A":"1","A":"2"}}' ],
              [ '/files/permissions', '{"/a":{"mode":1},"/a":{"mode":2}}' ])
{
    refused("C149: $case->[1]", @$case);
}

for my $metadata ('{"path":"/workspace/a","path":"/etc/x"}',
                  '{"path":"/workspace/a","p\u0061th":"/etc/x"}')
{
    refused("C149: metadata $metadata", '/files/upload', upload($metadata));
}

# elsewhere the last wins: a status that says it twice
$up->script("GET $execd/command/status", FakeUpstream::answer(200,
    '{"id":"x","running":false,"exit_code":1,"exit_code":0}',
    'Content-Type: application/json'));
$r = $t->get("$execd/command/status/x");
like($r->content, qr/"exit_code":1,"exit_code":0/, 'C149: an answer passes');
is($t->record($r)->{status}, 'succeeded', 'C149: and is recorded');
$up->clear;

# in an event: the text of the last
$up->script("POST $execd/command", FakeUpstream::stream_head(),
    [ chunk => "{\"type\":\"init\",\"text\":\"c1\"}\n\n"
               . "{\"type\":\"error\",\"type\":\"execution_complete\"}\n\n" ],
    [ chunk => '' ]);
is($t->record($t->post("$execd/command", body => '{"command":"x"}'))
     ->{status}, 'succeeded', 'C149: the last type of an event counts');
$up->clear;


# C150: what is no strict JSON is refused where it is judged; elsewhere the
# record follows upstream's answer

for my $body ('{"command":"a"} x', '{"command":"a"}{"command":"b"}',
              "\xef\xbb\xbf{\"command\":\"a\"}", "//c\n{\"command\":\"a\"}",
              '{"command":"a"/**/}', '{"command":"a",}', "{'command':'a'}",
              '{"command":NaN}', '{"command":"a","x":01}', '{"command":"a"',
              '{"command":"a","x":Infinity}', '{command:"a"}')
{
    refused('C150: ' . $body =~ s/[^ -~]/?/gr, '/command', $body);
}

for my $metadata ('{"path":"/a"} x', "\xef\xbb\xbf{\"path\":\"/a\"}",
                  '{"path":"/a",}', "{'path':'/a'}")
{
    refused('C150: metadata ' . $metadata =~ s/[^ -~]/?/gr, '/files/upload',
            upload($metadata));
}

for my $case ([ 200, 'succeeded' ], [ 400, 'failed' ]) {
    my ($status, $expect) = @$case;
    $up->script("POST /v1/sandboxes/s1/proxy/8080/json",
                FakeUpstream::answer($status, {}));
    $r = $t->post('/v1/sandboxes/s1/proxy/8080/json', body => '{"a":1} x');
    is($r->status, $status, 'C150: a user port gets what it is sent');
    is($t->record($r)->{status}, $expect, "C150: the record says $expect");
}
$up->clear;


# C151: NUL and bad UTF-8

$r = $t->post("$execd/command", body => '{"command":"echo a\u0000b"}');
is($r->status, 200, 'C151: a command with a NUL passes');
$e = $t->record($r);
# readers in C would see the text end at a NUL: it is marked, nothing is lost
is($e->{command}{command}, "echo a\x{fffd}b", 'C151: and is recorded whole')
    or diag($json->allow_nonref->encode($e->{command}{command} // ''));

refused("C151: $_->[1]", @$_)
    for [ '/files/mv', '[{"src":"/a\u0000b","dest":"/b"}]' ],
        [ '/files/permissions', '{"/a\u0000":{"mode":644}}' ],
        [ '/directories', '{"/a\u0000":{}}' ],
        [ '/command', '{"command":"\ud800"}' ],
        [ '/command', '{"command":"\udc00\ud800"}' ];
refused('C151: raw FF', '/command', "{\"command\":\"\xff\"}");
refused('C151: metadata with a NUL', '/files/upload',
        upload('{"path":"/workspace/a\u0000.txt"}'));

# in answers: lone surrogates and raw bytes, all recorded as valid JSON
$up->script("POST $execd/command", FakeUpstream::stream_head(),
    [ chunk => "{\"type\":\"init\",\"text\":\"c2\"}\n\n"
               . "{\"type\":\"stdout\",\"text\":\"a\\u0000b\"}\n\n"
               . "{\"type\":\"stdout\",\"text\":\"c\\ud800d\"}\n\n"
               . "{\"type\":\"stdout\",\"text\":\"e\xfff\"}\n\n"
               . "{\"type\":\"error\",\"error\":{\"ename\":\"E\\u0000\xff\","
               . "\"evalue\":\"\\ud800\xfe\"}}\n\n" ],
    [ chunk => '' ]);
$r = $t->post("$execd/command", body => '{"command":"x"}');
like($r->content, qr/e\xfff/, 'C151: odd bytes pass as they are');
$e = $t->record($r);
is($e->{status}, 'failed', 'C151: an error of odd bytes');
ok(ref $e->{result} eq 'HASH' && defined $e->{result}{ename},
   'C151: is recorded as valid JSON') or diag($e->{result_json});
my $out = $t->history->output($e->{event_id}, 'stdout');
like($out, qr/^a\0b\n/, 'C151: output with a NUL is whole')
    or diag(unpack 'H*', $out);
like($out, qr/e\xfff\n|e\xef\xbf\xbdf\n/, 'C151: raw bytes stay or are marked')
    or diag(unpack 'H*', $out);
$up->clear;

$up->script("POST $execd/files/mv", [ send => "HTTP/1.1 500 X\r\n"
    . "Content-Type: application/json\r\nContent-Length: 31\r\n\r\n"
    . "{\"code\":\"C\",\"message\":\"a\\ud800\xff\"}" =~ s/\\ud800/ /r . ' ' x 9 ]);
$r = $t->post("$execd/files/mv", body => '[]');
$e = $t->record($r);
is($e->{status}, 'failed', 'C151: an error whose message is no UTF-8');
ok(!length($e->{result_json} // '') || ref $e->{result} eq 'HASH',
   'C151: is valid JSON on record');
$up->clear;
$t->stop;


# C152: limits are bytes, and cut at a character border

for my $case ([ 333, 0 ], [ 334, 3 ], [ 400, 201 ]) {
    my ($n, $dropped) = @$case;
    my $u = SandboxTest->new(location => 'sandbox_capture_limit 1000;')->start;
    $u->sandbox('s1');
    $u->up->script('POST /v1/sandboxes/s1/proxy/44772/command',
        FakeUpstream::stream(
            FakeUpstream::event('init', text => 'c3'),
            FakeUpstream::event('stdout', text => "\x{65e5}" x $n),
            FakeUpstream::event('execution_complete')));
    my $e = $u->record($u->post('/v1/sandboxes/s1/proxy/44772/command',
                                body => '{"command":"x"}'));
    my $out = $u->history->output($e->{event_id}, 'stdout');
    my $kept = length($out =~ s/\n$//r) / 3;
    cmp_ok(length $out, '<=', 1000, "C152: $n characters: the limit is bytes");
    is($out =~ s/\n$//r, "\xe6\x97\xa5" x $kept, 'C152: no half character');
    cmp_ok($kept, '>=', $n > 333 ? 333 : $n, 'C152: as many as fit');
    is(($e->{result}{output_dropped_bytes} // 0) > 0 ? 1 : 0, $dropped ? 1 : 0,
       'C152: the record says whether it was cut') or diag($e->{result_json});
    is($e->{result}{stdout_total_bytes}, 3 * $n + 1, 'C152: and how long it was')
        if $dropped;
    $u->stop;
}

done_testing;
