#!/usr/bin/perl

# Credentials are not stored (C116): those of the gateway wherever they stand in
# what is recorded, those of OpenSandbox by their members and headers, those that
# a command calls by name.  Names and lengths stay, the bytes that pass do too;
# the record counts what it lacks.  At the end every file is searched for all of
# them.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use JSON::PP;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep);

my $t = SandboxTest->new(location => 'sandbox_endpoints all;')->start;
my $up = $t->up;
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $ours = $t->token('plain');
my ($id, $random) = $ours =~ /^(sbx_plain_)(.+)/;
my $key = $t->{api_key};
my $json = JSON::PP->new->canonical;

$t->sandbox($_) for 's1', 's2';
my $endpoint = $t->endpoint('s2')->{headers}{'OPEN-SANDBOX-API-KEY'};
like($endpoint, qr/^sbe_/, 'an endpoint token');


# --- the gateway's own, wherever they stand -------------------------------------------------

my $text = "$ours, ($endpoint) and $key";
my $masked = $id . '*' x length($random) . ', (sbe_' . '*' x (length($endpoint) - 4)
             . ') and ' . '*' x length $key;

$up->mark;
my $r = run("echo $text");
my $e = $t->record($r);
is($e->{command}{command}, "echo $masked", 'C116: masked in the command');
is($json->decode($e->{request_json})->{command} // "echo $masked",
   "echo $masked", 'and in the request');
is($t->history->output($e->{event_id}, 'stdout', 's1'), "$masked\n",
   'in what it prints');
is($e->{result}{redacted}, 6, 'three here, three there: counted') or diag($e->{result_json});
is($e->{command}{output_complete}, 1, 'output is complete all the same');
ok(index(($up->requests)[-1]{body}, $text) >= 0, 'upstream gets what was sent');
ok(index($r->content, $text) >= 0, 'the client gets what was answered');

# sessions of people and tickets of user ports have the same form

for my $form ('sbx_session_', 'sbx_port_') {
    my $secret = $t->secret(substr SandboxTest::random_text(32) . 'x' x 43, 0, 43);
    my $stars = $form . '*' x 43;
    $up->mark;
    $e = $t->record($r = run("echo $form$secret"));
    is($e->{command}{command}, "echo $stars", "$form in a command: masked");
    is($t->history->output($e->{event_id}, 'stdout', 's1'), "$stars\n", 'and in what it prints');
    is($e->{result}{redacted}, 2, 'counted');
    ok(index($r->content, "$form$secret") >= 0, 'the client gets it');
}

my $other = "sbx_plain_" . 'x' x 43;
$e = $t->record(run("echo $other $t->{tokens}{plain}x sbx_ sbe_ s"));
like($t->history->output($e->{event_id}, 'stdout', 's1'),
     qr/^\Q$other\E sbx_plain_\*{43}x sbx_ sbe_ s\n$/,
     'what only looks like one stays');
is($t->record(run('echo s; echo sb; err sbx_plain'))->{result}{redacted}, undef,
   'nothing to count');

# In paths, names, headers that are recorded, results.

$e = $t->record($t->post("$execd/files/mv",
    body => qq([{"src":"/a/$ours","dest":"/b/$key"}])));
is_deeply([ map { @$_{qw(path old_path)} } @{ $e->{files} } ],
          [ '/b/' . '*' x length $key, '/a/' . $id . '*' x 43 ],
          'masked in paths of a body');

$e = $t->record($t->get("$execd/files/info?path=%2Fx", headers => [
    "User-Agent: a $ours", "X-Request-ID: $key", "X-Actor-Id: $endpoint",
    "X-Thread-Id: Bearer $ours" ]));
is_deeply([ $e->{wire}{agent}, $e->{wire}{request_id}, @$e{qw(actor_id thread_id)} ],
          [ ('[redacted]') x 4 ], 'headers that hold one are not kept');
is($e->{result}{redacted}, 4, 'and counted');

$up->script("POST $execd/code", FakeUpstream::stream(
    FakeUpstream::event('init', text => 'x'),
    FakeUpstream::event('result', results => { text => "'$ours'" }),
    FakeUpstream::event('error', error => { ename => 'E', evalue => "no $key",
                                            traceback => [] })));
$e = $t->record($t->post("$execd/code", body => $json->encode({
    code => "print('$ours')", context => { language => 'python' } })));
is($e->{result}{results}[0]{text}, "'$id" . '*' x 43 . q('), 'in results of code');
is($e->{result}{evalue}, 'no ' . '*' x length $key, 'in errors');
is($e->{result}{redacted}, 3, 'all three counted');


# Over the borders of what is read at once, and of pieces of 16 KiB.

my $body = join '', map { FakeUpstream::Connection::encode_event($_) . "\n\n" }
    FakeUpstream::event('init', text => 'x'),
    FakeUpstream::event('stdout', text => $text),
    FakeUpstream::event('execution_complete', execution_time => 3);

$up->script("POST $execd/command", FakeUpstream::stream_head(),
            (map { [ chunk => $_ ] } $body =~ /(.{1,7})/sg), [ chunk => '' ]);
$r = run('x');
$e = $t->record($r);
is($r->content, $body, 'a few bytes at a time: what passes is unchanged');
like($t->history->output($e->{event_id}, 'stdout', 's1'),
     qr/^\Q$id\E\*{43}, \(sbe_\*+\) and .{0,3}\*+\n$/,
     'what is recorded is masked, but for so little that it tells nothing');
is($e->{result}{redacted}, 3, 'each once');

$up->clear;
my $long = join ' ', map { 'x' x (180 + $_ % 7) . $ours } 1 .. 400;
$r = run("echo $long");
$e = $t->record($r);
my $want = $long =~ s/\Q$ours\E/$id . '*' x 43/ger;
ok($t->history->output($e->{event_id}, 'stdout', 's1') eq "$want\n",
   'many in a line of many pieces');
is($e->{result}{redacted}, 800, 'each counted, those of the command too');

# Kernels end no line: a token may come in two events, and another stream between.

$up->script("POST $execd/code", FakeUpstream::stream_head(),
    map({ [ event => $_ ] } FakeUpstream::event('init', text => 'x')),
    [ event => FakeUpstream::event('stdout', text => "a sbx_plain_" . substr $random, 0, 20) ],
    [ event => FakeUpstream::event('stderr', text => 'between') ], [ pause => 0.1 ],
    [ event => FakeUpstream::event('stdout', text => substr($random, 20) . ' b') ],
    [ event => FakeUpstream::event('stdout', text => ' and sbx_plain_' . substr $random, 0, 42) ],
    [ event => FakeUpstream::event('execution_complete', execution_time => 3) ],
    [ chunk => '' ]);
$e = $t->record($t->post("$execd/code", body => $json->encode({
    code => 'x', context => { language => 'python' } })));
is($t->history->output($e->{event_id}, 'stdout', 's1'),
   "a $id" . '*' x 43 . ' b and sbx_plain_' . substr($random, 0, 42),
   'in two events; one that stays unfinished is whole at the end');
is($t->history->output($e->{event_id}, 'stderr', 's1'), 'between',
   'the other stream is whole');


# --- OpenSandbox's (reference 1.5, 6.3, 9.3) --------------------------------------------------

$up->clear;
my @secret = map { $t->secret('hidden-' . SandboxTest::random_text(12)) } 0 .. 19;

$e = $t->record($t->post('/v1/sandboxes', body => $json->encode({
    image => { uri => 'i', auth => { username => 'u', password => $secret[0] } },
    resourceLimits => { cpu => '1' }, entrypoint => [ 'x' ],
    env => { A => $secret[1], B => $secret[2] },
    extensions => { x => $secret[3] },
    volumes => [ { name => 'v', mountPath => '/v', ossfs => { bucket => 'bbb',
        accessKeyId => $secret[4], accessKeySecret => $secret[5] } } ] })));
is($e->{result}{redacted}, 6, 'sandbox.create: six secrets') or diag($e->{result_json});
is_deeply($e->{request}{env_names}, [ 'A', 'B' ], 'their names stay');

$e = $t->record($t->post("$execd/command", body => $json->encode({
    command => 'x', envs => { T => $secret[6] } })));
is($e->{result}{redacted}, 1, 'envs of a command');

$e = $t->record($t->post('/v1/sandboxes/s1/proxy/18080/credential-vault',
    body => $json->encode({ credentials => [ { name => 'c', source => {
        type => 'inline', value => $secret[7] } } ], bindings => [] })));
is($e->{result}{redacted}, 1, 'values of a vault') or diag($json->encode($e));

$up->script('GET /v1/sandboxes/s1/endpoints/18080', FakeUpstream::answer(200, {
    endpoint => '127.0.0.1:1/x', headers => {
        'OPENSANDBOX-EGRESS-AUTH' => $secret[8],
        'OpenSandbox-Secure-Access' => $secret[9] } }));
$r = $t->get('/v1/sandboxes/s1/endpoints/18080');
$t->secret($r->json->{headers}{'OPEN-SANDBOX-API-KEY'});
$e = $t->record($r);
is($r->json->{headers}{'OPENSANDBOX-EGRESS-AUTH'}, $secret[8],
   'headers of an endpoint pass');
is($e->{result}{redacted}, 2, 'and are not kept') or diag($e->{result_json});
is_deeply($e->{result}{header_names},
          [ 'OPENSANDBOX-EGRESS-AUTH', 'OpenSandbox-Secure-Access' ], 'but their names');

$up->script('GET /v1/sandboxes/s1/endpoints/8000', FakeUpstream::answer(200, {
    endpoint => "gw.example/s1/8000/tk/$secret[10]" }));
$e = $t->record($t->get('/v1/sandboxes/s1/endpoints/8000?expires=4000000000'));
is($e->{result}{bypass}, 'signed', 'a signed address');
is($e->{result}{redacted}, 1, 'is left out');

# The headers of 6.3 on their way to the sandbox; they are in no record.

my @headers = ("X-EXECD-ACCESS-TOKEN: $secret[11]",
               "OpenSandbox-Secure-Access: $secret[12]",
               "OPENSANDBOX-EGRESS-AUTH: $secret[13]",
               "Authorization: Basic $secret[14]", "Cookie: s=$secret[15]");
$up->mark;
$t->record($t->post("$execd/command", body => '{"command":"echo a"}',
                    headers => \@headers));
ok(index(($up->requests)[-1]{head}, $secret[11]) >= 0, 'upstream has them');


# --- contents of files: masked it would be another one, so it is not kept -----------------------

for my $case ([ 'a token', "a\n$ours\n" ], [ 'an endpoint token', $endpoint ],
              [ 'a key', "key=$key\n" x 3, 3 ])
{
    my ($what, $bytes, $n) = @$case;
    $e = upload([ '/w/f', $bytes ], 4096);
    is_deeply([ $e->{files}[0]{content}, $e->{result}{redacted} ],
              [ 'unavailable', $n // 1 ], "$what in a file: not kept, counted");
    ok(index(($up->requests)[-1]{body}, $bytes) >= 0, 'upstream gets all of it');
    $e = upload([ '/w/f', $bytes ], 7);
    is_deeply([ $e->{files}[0]{content}, $e->{result}{redacted} ],
              [ 'unavailable', $what eq 'a key' ? 1 : $n // 1 ],
              "$what, a few bytes at a time");
}

my $like = "sbx_ sbe_ sbx_plain_x " . substr $ours, 0, 30;
$e = upload([ '/w/a', $like, '/w/b', "sbx_plai" ], 7);
is_deeply([ map { $_->{content} } @{ $e->{files} } ], [ 'kept', 'kept' ],
          'what only looks like one is kept');
is($e->{result}{redacted}, undef, 'and not counted');
my $versions = '/console/api/v1/operations/';
is($t->get("$versions$e->{event_id}/content")->content, $like, 'whole');

$up->script("GET $execd/files/download?path=%2Fw%2Fd",
            FakeUpstream::answer(200, "x $ours\n"));
$r = $t->get("$execd/files/download?path=%2Fw%2Fd");
$e = $t->record($r);
like($r->content, qr/\Q$ours\E/, 'a download passes');
is_deeply([ $e->{files}[0]{content}, $e->{result}{redacted} ],
          [ 'unavailable', 1 ], 'and is not kept');


# --- what a command calls a credential -----------------------------------------------------------

my $named = qq{curl -H "Authorization: Bearer $secret[16]" -H 'Cookie: a=$secret[17]'}
            . qq{ 'https://u:$secret[18]\@h/x?a=1&token=$secret[19]&b' -H "X-Api-Key: \$KEY"};
$up->mark;
$e = $t->record(run($named));
my $stars = '*' x length $secret[0];
is($e->{command}{command},
   qq{curl -H "Authorization: Bearer $stars" -H 'Cookie: **$stars'}
   . qq{ 'https://u:$stars\@h/x?a=1&token=$stars&b' -H "X-Api-Key: \$KEY"},
   'C116: credentials that a command names, their lengths kept');
is($e->{result}{redacted}, 4, 'counted');
ok(index($json->decode(($up->requests)[-1]{body})->{command}, $named) == 0,
   'upstream gets the command as it was');

# Terminals: pasted, and typed key by key, each shown before the next.

my $ws = $t->websocket("$execd/pty/p/ws");
is($ws->status, 101, 'a terminal');
$ws->send(2, "\x00echo $ours\r");
$ws->send(2, "\x00$_") for split //, "$ours $key\r";
$ws->send(2, "\x00exit 0\r");

my $shown = '';

while (my $f = $ws->recv(5)) {
    last if $f->{op} == 8;
    $shown .= substr $f->{payload}, 1 if $f->{op} == 2;
}

ok(index($shown, "$ours $key") >= 0, 'the client sees all of it');
$e = $t->record($ws->response);
my $out = $t->history->output($e->{event_id}, 'stdout', 's1');
is(length $out, length $shown, 'the record is as long') or diag($out);
is(() = $out =~ /\Q$id\E\*{43}/g, $shown =~ s/\Q$ours\E//g, 'each masked');
cmp_ok($e->{result}{redacted}, '>=', 3, 'and counted');

# What agents print is theirs.

my $printed = 'Authorization: Bearer ' . SandboxTest::random_text(12);
$e = $t->record(run("err 1;echo x"));
$up->script("POST $execd/command", FakeUpstream::stream(
    FakeUpstream::event('init', text => 'x'),
    FakeUpstream::event('stdout', text => $printed),
    FakeUpstream::event('execution_complete', execution_time => 3)));
$e = $t->record(run('env'));
is($t->history->output($e->{event_id}, 'stdout', 's1'), "$printed\n",
   'what agents print is stored');
is($e->{result}{redacted}, undef, 'and nothing said');

# The list in the documentation is that of the code.

my $doc = SandboxTest::read_file("$FindBin::Bin/../docs/threat-model.md");
my $code = SandboxTest::read_file("$FindBin::Bin/../lib/secret_named.c");
my @names = $code =~ /^    \{ "([\w-]+)", \d+ \}/mg;
cmp_ok(scalar @names, '>', 20, 'names of credentials');
is_deeply([ grep { $doc !~ /`\Q$_\E`/i } @names ], [], 'all are documented');

my $metrics = $t->get('/console/api/v1/metrics')->content;
my ($n) = $metrics =~ /^\w*redacted_total (\d+)/m;
cmp_ok($n // 0, '>', 800, 'metrics count them');

$t->stop;    # greps all files for all of them
done_testing;


sub run {
    my $command = shift;

    return $t->post("$execd/command", body => $json->encode({ command => $command }));
}


# An upload in pieces of so many bytes.

sub upload {
    my ($files, $size) = @_;

    my $text = '';
    my @rest = @$files;

    while (my ($path, $bytes) = splice @rest, 0, 2) {
        $text .= qq(--B\r\nContent-Disposition: form-data; name="metadata"; )
               . qq(filename="m"\r\n\r\n{"path":"$path"}\r\n--B\r\n)
               . qq(Content-Disposition: form-data; name="file"; filename="f")
               . qq(\r\n\r\n$bytes\r\n);
    }

    $text .= "--B--\r\n";
    my $c = $t->connect;
    $c->write(join "\r\n", "POST $execd/files/upload HTTP/1.1", 'Host: localhost',
              $t->credential, 'Content-Length: ' . length $text,
              'Content-Type: multipart/form-data; boundary=B', '', '');

    while ($text =~ /(.{1,$size})/sg) {
        $c->write($1);
        sleep 0.001 if $size < 100;
    }

    return $t->record($c->response);
}
