#!/usr/bin/perl

# Field cases of the gate that belong to no other file: links inside the sandbox and
# beside our own files (C085), names with percent signs (C083) and of downloads (C088),
# refusals that say who refuses, at once (C139).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Encode qw(decode);
use SandboxGateway;
use SandboxTest;
use Test::More;
use Time::HiRes qw(time);

my $API = '/console/api/v1';


# --- C085: what a path leads to is the sandbox's own affair -------------------------------

my $t = SandboxTest->new(runtime => 1, runtime_args => [ '--grace=0', '--no-kernels' ],
                         location => 'sandbox_policy policy;');

SandboxTest::write_file("$t->{dir}/conf/policy", <<'END');
deny keep { operation file.* dir.*; access write; path /tmp/keep; }
default allow;
END
$t->start;

my $r = $t->post('/v1/sandboxes', headers => [ 'Content-Type: application/json' ],
    body => '{"image":{"uri":"python:3.11"},"timeout":3600,'
          . '"resourceLimits":{"cpu":"1"},"entrypoint":["tail","-f","/dev/null"]}');
is($r->status, 202, 'a sandbox') or diag($r->content);
my $execd = '/v1/sandboxes/' . $r->json->{id} . '/proxy/44772';
ok($t->wait_for(sub { $t->get("$execd/ping")->status == 200 }), 'it runs');

sub upload {
    my $path = shift;

    return $t->post("$execd/files/upload", headers => [
        'Content-Type: multipart/form-data; boundary=B' ], body => join "\r\n", '--B',
        'Content-Disposition: form-data; name="metadata"; filename="m"', '',
        qq({"path":"$path"}), '--B',
        'Content-Disposition: form-data; name="file"; filename="f"', '', 'x', '--B--', '');
}

$t->post("$execd/command", body =>
    '{"command":"mkdir /tmp/keep && ln -s /tmp/keep /tmp/out && ln -s keep/y /tmp/file"}');
is(upload('/tmp/keep/x')->status, 403, 'C085: the rule holds for the path as it is sent');

for (['/tmp/out/x', '/tmp/keep/x'], ['/tmp/file', '/tmp/keep/y']) {
    my ($path, $real) = @$_;

    $r = upload($path);
    is($r->status, 200, "C085: $path passes: links are not seen");
    is($t->get("$execd/files/download?path=$real")->content, 'x', 'and leads where it leads');
    my $e = $t->record($r);
    is_deeply([ $e->{file}{path}, $e->{result}{verdict} // $e->{verdict} // 'allow' ],
              [ $path, 'allow' ], 'the record says what was sent, and claims no more');
    unlike(JSON::PP::encode_json({ map { $_ => $e->{$_} } qw(result wire request) }),
           qr/checked|\Q$real\E/, 'nor anything of what it led to');
}

# --- C083, C088: names are decoded once, and are what they are -------------------------------

for my $name ('50%.txt', 'a%2fb', '100%25', "\xe6\x8a\xa5\xe5\x91\x8a \"x\".txt",
              "a\r\nSet-Cookie: x=1", 'n' x 251 . '.txt') {
    my $path = "/tmp/$name";
    my $shown = substr $name =~ s/[^\x20-\x7e]/?/gr, 0, 30;
    my $query = 'path=' . $path =~ s/([^\w.\/-])/sprintf '%%%02x', ord $1/ger;
    my $text = join '', map { /["\\]/ ? "\\$_" : ord($_) < 32 ? sprintf('\u%04x', ord) : $_ }
                        split //, $path;
    my $known = decode('UTF-8', $path);

    for (
        [ 'written', upload($text), '' ],
        [ 'shown', $t->get("$execd/files/info?$query"), undef ],
        [ 'opened', $t->get("$execd/files/download?$query"), 'x' ],
        [ 'changed', $t->post("$execd/files/replace", body => qq({"$text":{"old":"x","new":"yz"}}),
                              headers => [ 'Content-Type: application/json' ]), undef ],
        [ 'opened again', $t->get("$execd/files/download?$query"), 'yz' ],
        [ 'deleted', $t->delete("$execd/files?$query"), undef ],
    ) {
        my ($what, $answer, $content) = @$_;

        is($answer->status, 200, "C083: $shown is $what") or diag($answer->content);
        is($answer->content, $content, 'as it is') if defined $content && length $content;
        is($answer->header('Set-Cookie'), undef, 'and nothing else comes of it');
        my $e = $t->record($answer);
        is($e->{file}{path} // $e->{files}[0]{path}, $known, 'the record has the name');
    }

    is($t->get("$execd/files/info?$query")->status, 404, 'it is gone');
}

like(SandboxTest::read_file("$FindBin::Bin/../docs/policy.md"),
     qr/Links that somebody makes inside\s+the sandbox are not seen/, 'C085: as docs/policy.md says');

$t->stop;

# our own files: a link in the place of one is not followed

$t = SandboxTest->new->start;
my $history = "$t->{dir}/data/history";
my $else = "$t->{dir}/elsewhere";

$t->sandbox($_) for qw(s-dir s-file s-good);
mkdir $_ or die "$_: $!\n" for $else, "$history/s-file";
chmod 0777, $else;
chown +(stat $history)[4, 5], "$history/s-file";
SandboxTest::write_file("$else/precious", 'x' x 100_000);
chmod 0666, "$else/precious";
symlink $else, "$history/s-dir" or die "symlink: $!\n";
symlink "$else/precious", "$history/s-file/history.sqlite3" or die "symlink: $!\n";

my %done = map {
    $_ => $t->post("/v1/sandboxes/$_/proxy/44772/files/mv", body => '[{"src":"/a","dest":"/b"}]')
} qw(s-dir s-file s-good);

for (sort keys %done) {
    my $file = "$history/$_/history.sqlite3";
    ok($t->wait_for(sub { -e $file && !-l $file && !-l "$history/$_" }, 20),
       "C085: $_: a file, and no link on the way");
}

is($t->record($done{$_})->{in}, $_, 'which has the record') for sort keys %done;

is_deeply([ glob "$else/*" ], [ "$else/precious" ], 'C085: nothing is made where links lead');
is(SandboxTest::read_file("$else/precious"), 'x' x 100_000, 'and nothing changed');
like($t->log_text('helper.log'), qr/a link stood in the place of the history of s-dir/,
     'a line in the log says so');
$t->stop;


# --- C088: names of downloads --------------------------------------------------------------

$t = SandboxTest->new->start;
$t->sandbox('s1');
$execd = '/v1/sandboxes/s1/proxy/44772';

my $name = "\xe6\x8a\xa5\xe5\x91\x8a \"x\".txt";
my $long = 'n' x 251 . '.txt';

for (
    [ $name, qq(attachment; filename="\xe6\x8a\xa5\xe5\x91\x8a \\"x\\".txt";)
             . qq( filename*=UTF-8''%E6%8A%A5%E5%91%8A%20%22x%22.txt) ],
    [ $name, qq(attachment; filename=$name) ],
    [ "a\r\nSet-Cookie: x=1", q(attachment; filename*=UTF-8''a%0D%0ASet-Cookie%3A%20x%3D1) ],
    [ $long, "attachment; filename=$long" ],
) {
    my ($file, $disposition) = @$_;

    my $escaped = "/w/$file" =~ s/([^\w.-])/sprintf '%%%02X', ord $1/ger;
    my $target = "$execd/files/download?path=$escaped";

    $t->up->script("GET $target", [ send => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
        . "Content-Disposition: $disposition\r\nContent-Type: application/octet-stream\r\n\r\nhi" ]);
    my $shown = substr $escaped, 0, 60;
    my $r = $t->get($target);
    is($r->status, 200, "C088: $shown");
    is($r->header('Content-Disposition'), $disposition, "upstream's header passes unchanged");
    is($r->header('Set-Cookie'), undef, 'and nothing comes of it');
    is($r->content, 'hi', 'with the file');
    my $e = $t->record($r);
    is($e->{file}{path}, decode('UTF-8', "/w/$file"), 'the record has the name');

    # what we serve ourselves has no name of the sandbox in its head

    my $own = $t->get("$API/operations/$e->{event_id}/content");
    unlike(join("\n", map { "@$_" } @{ $own->{headers} }), qr/[^\x09\x20-\x7e\n]|Set-Cookie|n{200}/i,
           'a header of our own is ASCII, without it');
}

# C083: upstream gets what was sent, not what it means

for my $sent ('/w/50%25.txt', '/w/a%252fb', '/w/a%2fb') {
    $t->up->mark;
    my $r = $t->get("$execd/files/download?path=$sent");
    my ($seen) = $t->up->requests;
    like($seen->{target}, qr/\?path=\Q$sent\E$/, "C083: $sent goes on as it is");
    is($t->record($r)->{file}{path}, $sent =~ s/%([\da-f]{2})/chr hex $1/gier,
       'the record has it decoded once');
}

for my $format (qw(csv html jsonl)) {
    my $own = $t->get("$API/export?format=$format");
    is($own->status, 200, "C088: an export as $format");
    like($own->header('Content-Disposition') // '', qr/^attachment; filename="[\w.-]+"$/,
         'has a plain name');
}

$t->stop;


# --- C139: a wrong key is said at once, and by whom ------------------------------------------

$t = SandboxTest->new->start;
$t->sandbox('s1');

sub at_once {
    my ($what, $r, $began) = @_;

    cmp_ok(time - $began, '<', 10 * ($ENV{SANDBOX_TEST_PATIENCE} // 1), "C139: $what: at once");
}

for (['creation', '/v1/sandboxes', '{"image":{"uri":"python:3.11"}}'],
     ['exec', "$execd/command", '{"command":"true"}'],
     ['console', "$API/session", '{"token":"sbx_wrong_' . 'x' x 43 . '"}'])
{
    my ($what, $target, $text) = @$_;

    $t->up->mark;
    my $began = time;
    my $r = $t->post($target, body => $text, token => undef,
        headers => [ 'OPEN-SANDBOX-API-KEY: sbx_wrong_' . 'x' x 43,
                     'Content-Type: application/json' ]);
    at_once($what, $r, $began);
    is($r->status, 401, 'refused');
    is($r->code, 'GATEWAY_UNAUTHENTICATED', 'with a code');
    like($r->json->{message}, qr/gateway/, 'that names the gateway');
    is(scalar $t->up->requests, 0, 'nothing goes upstream');
}

# upstream refuses the gateway's key, or execd the sandbox's own: what they say passes

for (['creation', 'POST /v1/sandboxes', '/v1/sandboxes', '{"image":{"uri":"python:3.11"}}'],
     ['exec', "POST $execd/command", "$execd/command", '{"command":"true"}'])
{
    my ($what, $match, $target, $text) = @$_;
    my $said = '{"code":"UNAUTHORIZED","message":"Invalid API key"}';

    $t->up->script($match, [ send => "HTTP/1.1 401 Unauthorized\r\nContent-Length: "
        . length($said) . "\r\nContent-Type: application/json\r\n\r\n$said" ]);
    $t->up->mark;
    my $began = time;
    my $r = $t->post($target, body => $text);
    at_once("$what, by upstream", $r, $began);
    is($r->status . $r->content, "401$said", "upstream's own answer");
    is(scalar $t->up->requests, 1, 'to one request: nothing is tried again');
    my $e = $t->record($r);
    is_deeply([ @{$e}{ qw(status http_status) } ], [ 'failed', 401 ], 'on record')
        if exists $e->{http_status};
    is($e->{status}, 'failed', 'as failed');
    isnt($e->{result}{error_code} // '', 'GATEWAY_UNAUTHENTICATED', 'not as our refusal');
}

# the command line

my $g = SandboxGateway->new;
my $began = time;
SandboxTest::write_file("$g->{dir}/key", "wrong\n");
my ($rc, $out, $err) = $g->run('--check', '--upstream', $t->up->url, '--api-key-file',
                               "$g->{dir}/key");
at_once('the command line', undef, $began);
is($rc, 1, 'it ends');
like($err, qr/upstream \S+ refuses the API key \(401\)/, 'with what upstream says');

$t->stop;
done_testing;
