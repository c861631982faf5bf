#!/usr/bin/perl

# Policies in the module: the verdict comes before the first byte reaches
# upstream, the answer names the rule, the record too; an upload is judged by
# all of its files and still passes byte for byte.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA qw(sha256_hex);
use FakeUpstream;
use SandboxTest;
use Test::More;

my $t = SandboxTest->new(
    location => "sandbox_policy policy;\nclient_body_buffer_size 16k;",
    http     => "log_format v '\$sandbox_operation \$sandbox_verdict \$sandbox_rule';",
);
$t->{server} = "access_log $t->{dir}/logs/verdict.access.log v; large_client_header_buffers 4 64k;";

my $policy = <<'END_POLICY';
deny big { file_size > 100k; reason "Too big."; }
deny many { request_size > 150k; }
deny keys { content private-key aws-key; reason "Keys stay at home."; }
observe tokens { content secret; }
deny set-id { mode 6000; }
observe tried { command "^make\b"; }
deny no-rm { command "^rm\b"; actor user agent; reason "Nothing is removed."; }
deny dark { command unread; actor agent/shy; }
deny images { operation sandbox.create; not image python:*; }
deny team { operation sandbox.create; not metadata team=red; }
deny port { port 9000-9099; }
deny secret { access write; path .env /etc/; reason "Not there."; }
deny outside { access write; not path /workspace/; }
default allow;
END_POLICY

SandboxTest::write_file("$t->{dir}/conf/policy", $policy);
$t->start;
$t->sandbox('s1');

my $up = $t->up;
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $type = 'Content-Type: multipart/form-data; boundary=B';

# upstream has shown that it is there: records go into its file
$t->post("$execd/command", body => '{"command":"true"}');


sub upload {
    my ($files, %o) = @_;

    my $body = join('', map {
        my ($path, $data, $mode) = @$_;
        "--B\r\nContent-Disposition: form-data; name=\"metadata\"; "
        . "filename=\"metadata\"\r\n\r\n{\"path\":\"$path\""
        . (defined $mode ? ",\"mode\":$mode" : '') . "}\r\n"
        . "--B\r\nContent-Disposition: form-data; name=\"file\"; "
        . "filename=\"x\"\r\n\r\n$data\r\n"
    } @$files) . "--B--\r\n";

    $up->mark;

    return ($t->post("$execd/files/upload", body => $body, headers => [ $type ],
                     %o), $body);
}


# That it was refused, by which rule, and that upstream saw nothing.

sub refused {
    my ($r, $rule, $what, %o) = @_;

    my $details = $r->json->{details};

    is($r->status, $o{status} // 403, "$what: refused");
    is($r->json->{code}, $o{code} // 'GATEWAY_POLICY_DENIED', 'with its code');
    is($details->{rule}, $rule, 'by its rule');
    is($details->{path}, $o{path}, 'for its path');
    ok(length $r->json->{message}, 'with a reason');
    is(scalar(grep { $_->{target} !~ /endpoints/ } $up->requests), 0,
       'upstream saw nothing');

    return $details;
}


# --- commands -------------------------------------------------------------------------

$up->mark;
my $r = $t->post("$execd/command", body => '{"command":"ls; rm -rf /x"}');
my $d = refused($r, 'no-rm', 'a command in a list');
is($d->{reason}, 'Nothing is removed.', 'whose reason is told');
is($d->{line}, 7, 'and its line');

my $e = $t->record($r, sandbox => 's1');
is($e->{status}, 'failed', 'on record as failed');
is($e->{result}{error_code}, 'GATEWAY_POLICY_DENIED', 'with the code');
is($e->{result}{reason}, 'denied', 'and as denied');
is($e->{result}{verdict}, 'deny', 'with the verdict');
is($e->{result}{verdict_rule}, 'no-rm', 'and the rule');

$r = $t->get('/console/api/v1/sandboxes/s1/operations?type=command.execute');
is_deeply($r->json->{items}[0]{verdict}, { decision => 'deny', rule => 'no-rm' },
          'the console API tells it');

$r = $t->post("$execd/command", body => '{"command":"make rmdir"}');
is($r->status, 200, 'what is observed passes');
$e = $t->record($r, sandbox => 's1');
is($e->{result}{verdict}, 'observe', 'and is on record');
is($e->{result}{verdict_rule}, 'tried', 'with its rule');

$r = $t->post("$execd/command", body => '{"command":"curl x | sh"}');
is($r->status, 200, 'what is not read passes');
$e = $t->record($r, sandbox => 's1');
is($e->{result}{verdict}, 'allow', 'as allowed');
is($e->{result}{verdict_rule}, 'default', 'by the default');
ok($e->{result}{verdict_unread}, 'and told as unread');

$r = $t->post("$execd/code", body => '{"code":"rm x"}');
is($r->status, 403, 'a shell command by way of /code');
$r = $t->post("$execd/session/x/run", body => '{"command":"sudo rm x"}');
is($r->status, 403, '... of a session');
$r = $t->post("$execd/pty", body => '{"command":"rm x"}');
is($r->status, 403, '... of a terminal');

# what is run beside the text

my @shy = ('X-Actor-Type: agent', 'X-Actor-Id: shy');

$r = $t->post("$execd/command", body => '{"command":"","argv":["rm","x"]}');
is($r->status, 403, 'words beside an empty command are judged');
$up->mark;
$r = $t->post("$execd/command", body => '{"command":"ls","argv":["rm","x"]}');
is($r->status, 400, 'a command beside words is refused');
is($r->json->{code}, 'GATEWAY_AMBIGUOUS_REQUEST', 'as ambiguous');
is(scalar($up->requests(qr/command/)), 0, 'upstream saw nothing');

for my $name (qw(PATH BASH_ENV LD_PRELOAD ENV)) {
    $r = $t->post("$execd/command", body => qq({"command":"ls","envs":{"$name":"/x"}}),
                  headers => [ @shy ]);
    is($r->status, 403, "$name makes of a command one that is not read");
    is($r->json->{details}{rule}, 'dark', 'which a rule may deny');
}

$r = $t->post("$execd/v1/isolated/session/x/run", body => '{"code":"ls","envs":{"PATH":"/x"}}',
              headers => [ @shy ]);
is($r->json->{details}{rule}, 'dark', '... in an isolated session too');

is($t->post("$execd/command", body => '{"command":"ls","envs":{"LANG":"C","PATHX":"/x"}}',
            headers => [ @shy ])->status, 200, 'other names do not');


# --- who and what ---------------------------------------------------------------------

$up->mark;
refused($t->get('/v1/sandboxes/s1/proxy/9001/'), 'port', 'a port');
is($t->get('/v1/sandboxes/s1/proxy/8080/')->status, 200, 'another port passes');

$up->mark;
refused($t->post('/v1/sandboxes', body => '{"image":{"uri":"alpine"}}'), 'images',
        'an image');
refused($t->post('/v1/sandboxes',
                 body => '{"image":{"uri":"python:3"},"metadata":{"team":"blue"}}'),
        'team', 'metadata');
is($t->post('/v1/sandboxes',
            body => '{"image":{"uri":"python:3"},"metadata":{"team":"red"}}')->status,
   202, 'what is right passes');


# --- files by other roads ----------------------------------------------------------------

for my $case (
    [ 'mv there', POST => '/files/mv',
      '[{"src":"/workspace/a","dest":"/etc/x"}]', 'secret', '/etc/x' ],
    [ 'mv away', POST => '/files/mv',
      '[{"src":"/etc/x","dest":"/workspace/a"}]', 'secret', '/etc/x' ],
    [ 'replace', POST => '/files/replace',
      '{"/workspace/a":{"old":"a","new":"b"},"/workspace/.env":{"old":"a","new":"b"}}',
      'secret', '/workspace/.env' ],
    [ 'permissions', POST => '/files/permissions',
      '{"/workspace/a":{"mode":4755}}', 'set-id', '/workspace/a' ],
    [ 'an odd mode', POST => '/files/permissions',
      '{"/workspace/a":{"mode":40000755}}', 'set-id', '/workspace/a' ],
    [ 'directories', POST => '/directories', '{"/etc/x":{}}', 'secret', '/etc/x' ],
    [ 'rm', DELETE => '/files?path=/workspace/a&path=/etc/x', '', 'secret', '/etc/x' ],
    [ 'rm -r', DELETE => '/directories?path=/', '', 'secret', '/' ],
    [ 'C080: encoded', DELETE => '/files?path=%2f%65tc%2fx', '', 'secret', '/etc/x' ],
    [ 'C080: climbs', DELETE => '/files?path=/workspace/%2e%2e/etc/x', '', 'secret',
      '/workspace/../etc/x' ],
    [ 'C084: expands', DELETE => '/files?path=%24HOME/x', '', 'secret', '$HOME/x' ],
    [ 'C084: tilde', DELETE => '/files?path=~/x', '', 'secret', '~/x' ],
    [ 'C086: backslash', DELETE => '/files?path=/workspace/a%5c..%5cx', '', 'secret',
      '/workspace/a\\..\\x' ],
    [ 'relative', DELETE => '/files?path=x', '', 'secret', 'x' ],
    [ 'C010: nested', DELETE => '/proxy/44772/files?path=/etc/x', '', 'secret',
      '/etc/x' ],
) {
    my ($what, $method, $target, $body, $rule, $path) = @$case;

    $up->mark;
    $r = $t->request($method, "$execd$target", body => $body);
    refused($r, $rule, $what, path => $path);
    $e = $t->record($r, sandbox => 's1');
    is($e->{result}{verdict_path}, $path, 'and the record says which path');
}

is($t->request(DELETE => "$execd/files?path=//workspace/./a..b%2541")->status, 200,
   'C083, C087, C089: what only looks odd passes');
is($t->get("$execd/files/download?path=/etc/hosts")->status, 200, 'reading is no writing');

# C090: more than are on record, one of them bad

my @many = map { "path=/workspace/$_" } 1 .. 1400;
$up->mark;
refused($t->request(DELETE => "$execd/files?" . join '&', @many, 'path=/etc/x'),
        'secret', 'the last of 1,401 paths', path => '/etc/x');


# --- uploads -----------------------------------------------------------------------------

for my $size (1, 100, 20_000, 100_000) {
    for my $how ([], [ chunked => 1 ]) {
        my $body;
        ($r, $body) = upload([ [ '/workspace/a', 'x' x $size ] ], @$how);
        is($r->status, 200, "$size bytes pass");
        my ($seen) = grep { $_->{target} =~ /upload/ } $up->requests;
        is($seen->{sha256}, sha256_hex($body), 'byte for byte');
        $e = $t->record($r, sandbox => 's1');
        is($e->{files}[0]{sha256}, sha256_hex('x' x $size), 'on record');
        is($e->{result}{verdict}, 'allow', 'and allowed');
    }
}

($r) = upload([ [ '/workspace/a', 'x' x 50_000 ], [ '/workspace/.env', 'x' ] ]);
refused($r, 'secret', 'the second of two files', path => '/workspace/.env');
$e = $t->record($r, sandbox => 's1');
is(scalar @{ $e->{files} }, 2, 'both are on record');
is($e->{status}, 'failed', 'as failed');

($r) = upload([ [ '/workspace/a', 'x', 4755 ] ]);
refused($r, 'set-id', 'a set-user-id file', path => '/workspace/a');
($r) = upload([ [ '/workspace/a', 'x' x 110_000 ] ]);
refused($r, 'big', 'a file over the limit', path => '/workspace/a', status => 413,
        code => 'GATEWAY_LIMIT_EXCEEDED');
($r) = upload([ map { [ "/workspace/$_", 'x' x 80_000 ] } 1, 2 ]);
refused($r, 'many', 'two files over the limit', path => '/workspace/1',
        status => 413, code => 'GATEWAY_LIMIT_EXCEEDED');

# of a large one not all is read before it is refused

($r) = upload([ [ '/workspace/a', 'x' x 12_000_000 ] ]);
is($r->status, 413, 'a large file is refused');
is($r->json->{code}, 'GATEWAY_LIMIT_EXCEEDED', 'by the limit');
is($r->json->{message}, 'Too big.', 'with the reason of the rule');
is_deeply([ @{ $r->json->{details} }{qw(rule line path)} ], [ 'big', 1, '/workspace/a' ],
          'and its name');
is(scalar($up->requests(qr/upload/)), 0, 'upstream saw nothing');
$e = $t->record($r, sandbox => 's1');
is($e->{result}{verdict_rule}, 'big', 'the record names the rule');
cmp_ok($e->{wire}{bytes_in}, '<', 11_000_000, 'and that it ended early');

# credentials in files: refused or noticed, never changed (C074: wherever they are split)

my $key = '-----BEGIN RSA ' . 'PRIVATE KEY-----';
my $forge = 'ghp' . '_' . 'a1B2c3D4e5' x 3 . 'a1B2c3';

for my $at (0, 1, 4_000, 16_300, 16_384, 60_000) {
    ($r) = upload([ [ '/workspace/ok', 'x' ], [ '/workspace/a', ' ' x $at . $key . 'y' x 50 ] ]);
    refused($r, 'keys', "C074: a private key at $at", path => '/workspace/a');
}

my ($whole) = (upload([ [ '/workspace/a', "x\n$key" ] ]))[1];
$up->mark;

for my $split (1 .. 12) {
    my $c = $t->connect;
    my $n = length($whole) - 4 * $split - 10;
    $c->write($c->build(POST => "$execd/files/upload", headers => [ $t->credential, $type,
        'Content-Length: ' . length $whole ]) . substr $whole, 0, $n);
    select undef, undef, undef, 0.01;
    $c->write(substr $whole, $n);
    is($c->response(method => 'POST')->status, 403, "C074: a key in two packets, $split");
}

is(scalar($up->requests(qr/upload/)), 0, 'upstream saw none of them');

($r, my $sent) = upload([ [ '/workspace/a', "token=$forge\n" ] ]);
is($r->status, 200, 'a token passes');
my ($token) = $up->requests(qr/upload/);
is($token->{sha256}, sha256_hex($sent), 'byte for byte');
$e = $t->record($r, sandbox => 's1');
is($e->{result}{verdict}, 'observe', 'and is noticed');
is($e->{result}{verdict_rule}, 'tokens', 'by its rule');
($r) = upload([ [ '/workspace/a', "-----BEGIN PUBLIC KEY-----\nghp_\n" ] ]);
is($t->record($r, sandbox => 's1')->{result}{verdict}, 'allow', 'what is none is not');

$up->mark;
$r = $t->post("$execd/files/replace", body => qq({"/workspace/a":{"old":"x","new":"\\u002d----$key"}}));
refused($r, 'keys', 'a key put in place of other text', path => '/workspace/a');
$r = $t->post("$execd/files/replace", body => qq({"/workspace/a":{"old":"$key","new":"x"}}));
is($r->status, 200, 'one that is taken away passes');


# C013 and the like: what cannot be read in one way is not judged

$up->mark;
$r = $t->post("$execd/files/upload", body => 'x', headers => [ 'Content-Type: text/plain' ]);
is($r->status, 400, 'what is no multipart is refused');
$r = $t->post("$execd/files/upload", body => "--B\r\n\r\n", headers => [ $type ]);
is($r->status, 400, 'so is half of an upload');
$r = $t->post("$execd/files/upload", body => 'x',
              headers => [ $type, 'Content-Encoding: gzip' ]);
is($r->status, 415, 'C073: and an encoded one');
is(scalar($up->requests(qr/upload/)), 0, 'upstream saw nothing');


# --- what is seen of it ------------------------------------------------------------------

ok($t->wait_for(sub {
    my $log = $t->log_text('verdict.access.log');
    $log =~ /^command\.execute deny no-rm$/m && $log =~ /^command\.execute observe tried$/m
        && $log =~ /^command\.execute allow default$/m
}), '$sandbox_verdict and $sandbox_rule');

my $metrics = $t->get('/console/api/v1/metrics')->content;
for my $name (qw(allowed denied observed unread)) {
    like($metrics, qr/^sandbox_gateway_policy_${name}_total [1-9]/m, "$name are counted");
}


# --- an upload that is judged without its body, and then read for its locks --------

{
    my $l = SandboxTest->new(location => "sandbox_policy policy;\nsandbox_locks on;",
        http => "log_format v '\$sandbox_operation \$sandbox_verdict \$sandbox_rule';");
    $l->{server} = "access_log $l->{dir}/logs/verdict.access.log v;";
    SandboxTest::write_file("$l->{dir}/conf/policy",
                            "observe writes { operation file.write; }\ndefault allow;\n");
    $l->start;
    $l->sandbox('s1');

    $r = $l->post("$execd/files/upload", headers => [ $type ],
                  body => SandboxTest::upload_body('/workspace/a', 'x' x 10));
    is($r->status, 200, 'an upload under lock passes');
    $e = $l->record($r, sandbox => 's1');
    is($e->{result}{verdict}, 'observe', 'its verdict is on record');
    is($e->{result}{verdict_rule}, 'writes', 'with the rule');
    ok($l->wait_for(sub {
        $l->log_text('verdict.access.log') =~ /^file\.write observe writes$/m
    }), 'and in the variables');
    $l->stop;
}


# --- reload ------------------------------------------------------------------------------

SandboxTest::write_file("$t->{dir}/conf/policy", "deny x { path; }\n");
push @{ $t->{allow} }, qr/sandbox_policy: \S+policy:1:14: a value is missing here/;
my ($ok, $out) = $t->check_conf;
ok(!$ok && $out =~ /policy:1:14: a value is missing here/, 'a broken policy is no start');
kill 'HUP', $t->{nginx_pid};
ok($t->wait_for(sub { $t->log_text =~ /policy:1:14: a value is missing/ }),
   'a reload says so');
is($t->post("$execd/command", body => '{"command":"rm x"}')->status, 403,
   'and the old rules hold');

SandboxTest::write_file("$t->{dir}/conf/policy", "default allow;\n");
kill 'HUP', $t->{nginx_pid};
ok($t->wait_for(sub {
    $t->post("$execd/command", body => '{"command":"rm x"}')->status == 200
}), 'until there are new ones');

$t->stop;
done_testing;
