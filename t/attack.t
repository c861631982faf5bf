#!/usr/bin/perl

# Ways around the record that were tried from outside and once worked, or nearly:
# uploads that only execd could read, a second road behind a port, credentials
# where nobody looks for them, histories filled by strangers, files that others
# may write.  What is refused here must not reach upstream whole; what passes must
# be on record as what it is.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxGateway;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep);

my $t = SandboxTest->new(location => 'sandbox_record code.execute off;')->start;
my $up = $t->up;
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $key = 'OPEN-SANDBOX-API-KEY';

$t->sandbox('s1');


# --- uploads: whoever can read it to its end writes a file --------------------------

my $type = 'Content-Type: multipart/form-data; boundary=B';
my $file = part('file', 'hello');

for my $case (
    [ 'metadata in much white space', meta('/w/a', ' ' x 70_000) . $file ],
    [ 'metadata nested deep', part('metadata', '{"path":"/w/a","x":'
          . '[' x 70 . ']' x 70 . '}') . $file ],
    [ 'half a character', part('metadata', '{"path":"/w/a","x":"\ud800"}')
          . $file ],
    [ 'bad UTF-8', part('metadata', qq({"path":"/w/a","x":"\xff"})) . $file ],
    [ 'metadata of many members', part('metadata', '{"path":"/w/a",'
          . join(',', map { qq("x$_":1) } 1 .. 1000) . '}') . $file ],
    [ 'a long line before the first part', 'x' x 4050 . "\r\n" . meta('/w/a')
          . $file ],
    [ 'a part with a long head', meta('/w/a')
          . part('file', 'x', 'X-Y: ' . 'z' x 20_000 . "\r\n") ],
    [ 'too many files', join '', (meta('/w/a') . $file) x 10_001 ],
    [ 'two types, the first one harmless', meta('/w/a') . $file,
      'Content-Type: text/plain', $type ],
    [ 'two types, the last one harmless', meta('/w/a') . $file, $type,
      'Content-Type: text/plain' ],
    [ 'two boundaries in two types', meta('/w/a') . $file,
      $type =~ s/B$/C/r, $type ],
    (map { [ "type \"$_\"", meta('/w/a') . $file,
             "Content-Type: $_; boundary=B" ] }
        "multipart/form-data\xc2\xa0", "\xc2\xa0multipart/form-data",
        "mult\xc4\xb0part/form-data", "multipart/form-data\x0b"),
) {
    my ($name, $body, @headers) = @$case;

    for my $how ([], [ chunked => 1 ]) {
        $up->mark;
        my $r = $t->post("$execd/files/upload", body => "$body--B--\r\n", @$how,
                         headers => @headers ? \@headers : [ $type ]);
        like($r->status, qr/^4(?:00|13)$/, "upload, $name: refused");
        like($r->code // '', qr/^GATEWAY_/, 'by us');
        is(scalar(grep { $_->{complete} } $up->requests(qr/upload/)), 0,
           'and upstream never has the whole of it');
    }
}


# --- a port that may be upstream itself -----------------------------------------------

for my $rest ('sandboxes/b/proxy/44772/command', 'v1/sandboxes/b/proxy/44772/x',
              '/sandboxes/b/proxy/44772/command',
              '%73andboxes/b/proxy/44772/command',
              '%2573andboxes%252Fb%252Fproxy%252F44772/command')
{
    $up->mark;
    my $r = $t->post("/v1/sandboxes/s1/proxy/8080/$rest",
                     body => '{"command":"x"}');
    is($r->status, 400, "a second server proxy behind a port: $rest");
    is(scalar $up->requests(qr{proxy/8080|sandboxes/b}), 0, 'reaches nobody');
}


# --- a shell through /code, where code is not recorded ----------------------------------

my $r = $t->post("$execd/code", body => '{"code":"id"}');
my $e = $t->record($r);
is($e->{operation_type}, 'command.execute', 'code without a language');
is($e->{command}{command}, 'id', 'is on record though code.execute is off');


# --- what goes to a sandbox ---------------------------------------------------------

$t->endpoint('s1');
$up->mark;
$t->get("$execd/ping", headers => [ "$key: a-key-of-upstream-unknown-here",
        "open_sandbox_api_key: another", 'Upgrade: foo', 'Upgrade: websocket',
        'Connection: upgrade' ]);
my ($seen) = $up->requests(qr/ping/);
isnt($seen->{listener}, 'lifecycle', 'straight to the sandbox');
unlike($seen->{head}, qr/^open.sandbox.api.key:/mi,
       'no key of upstream goes there, known or not');
unlike($seen->{head}, qr/^upgrade:|^connection:.*upgrade/mi,
       'nor an upgrade of what was judged as a plain request');

$up->script('GET ' . $seen->{target}, FakeUpstream::answer(200, 'x',
    'Strict-Transport-Security: max-age=1', 'Alt-Svc: h2=":1"', 'NEL: {}',
    'Report-To: {}', 'Reporting-Endpoints: a="b"', 'X-Kept: 1'));
$r = $t->get("$execd/ping");
is($r->header('X-Kept'), 1, 'headers of a sandbox pass');
is(scalar(grep { defined $r->header($_) } qw(Strict-Transport-Security Alt-Svc
    NEL Report-To Reporting-Endpoints)), 0, 'not those for the whole host');
$up->clear;

# What a command wrote is on record whatever its answer calls itself.

for my $answer ('text/plain', 'application/json', undef) {
    $up->script('POST ' . $seen->{target} =~ s/ping/command/r,
        FakeUpstream::answer(200, qq({"type":"init","text":"c1"}\n\n)
            . qq({"type":"stdout","text":"hidden"}\n\n)
            . qq({"type":"execution_complete"}\n\n),
            defined $answer ? "Content-Type: $answer" : ()));
    $e = $t->record($t->post("$execd/command", body => '{"command":"x"}'));
    is($e->{command}{exit_code}, 0,
       'events in an answer of type ' . ($answer // '(none)'));
    is($t->history->output($e->{event_id}, 'stdout', 's1'), "hidden\n",
       'and its output are on record');
}

$up->clear;


# --- secrets in what upstream says ----------------------------------------------------

my $access = $t->secret('secure-access-0123456789');

$up->script('POST /v1/sandboxes/s2/proxy/44772/command', FakeUpstream::answer(502,
    { code => 'GENERAL::UNKNOWN_ERROR', message => 'Could not connect to the '
      . "backend sandbox endpoint='10.0.0.1:44772' headers={"
      . "'OpenSandbox-Secure-Access': '$access'}: x" }));
$r = $t->post('/v1/sandboxes/s2/proxy/44772/command',
              body => '{"command":"x"}');
is($r->status, 502, 'the server proxy tells of a sandbox');
like($t->record($r)->{result}{error} // '', qr/^Could not connect.*headers=$/,
     'the record leaves the headers out');
$up->clear;


# --- histories of sandboxes that were made up --------------------------------------------

my @status = (400, 403, 409, 500, 501, 502, 503, 307);

for my $status (@status) {
    $up->script("GET /v1/sandboxes/made-up-$status", FakeUpstream::answer($status,
        { code => 'X', message => 'm' }, 'Location: /v1/x'));
    $r = $t->get("/v1/sandboxes/made-up-$status");
    is($r->status, $status, "upstream says $status of a sandbox");
}

$up->script('GET /v1/sandboxes/made-up-ws/proxy/8080/',
    [ send => "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
              . "\x88\x0b\x03\xf3not found" ], [ 'close' ]);
my $ws = $t->websocket('/v1/sandboxes/made-up-ws/proxy/8080/');
is($ws->status, 101, 'and accepts a WebSocket before it looks');
undef $ws;

$t->get("/v1/sandboxes/s1");
ok($t->wait_for(sub { grep { $_ eq 'made-up-409' } $t->history->dirs }),
   'a conflict shows that there is one');
sleep 0.5;
is_deeply([ grep { /^made-up/ } $t->history->dirs ], [ 'made-up-409' ],
          'nothing else makes a file');


# --- strangers ------------------------------------------------------------------------

my $before = $t->history->events('_gateway');

for my $n (1 .. 40) {
    $t->get("/v1/sandboxes/stranger-$n", token => undef);
    $t->post("/v1/sandboxes/s1/proxy/" . (1000 + $n) . '/x', body => 'x',
             token => undef);
    $t->delete('/v1/sandboxes/s1', token => undef) if $n % 2;
}

my @knocks;
ok($t->wait_for(sub {
    @knocks = grep { ($_->{wire}{identity} // '') eq 'none' }
              $t->history->events('_gateway');
    my $n = @knocks;
    $n += $t->history->folded('_gateway', $_->{event_id}) for @knocks;
    return $n >= 100;
}), 'a hundred knocks without a credential are counted');
cmp_ok(scalar @knocks, '<=', 3, 'in a row or two');
is(scalar(grep { ($_->{wire}{identity} // '') eq 'none' }
          $t->history->events('s1')), 0, 'and in no history of a sandbox');

$t->stop;


# --- files that others may write --------------------------------------------------------

my $g = SandboxGateway->new;
SandboxTest::write_file("$g->{dir}/cwd/.env", "SANDBOX_GATEWAY_PORT=1\n");
chmod 0666, "$g->{dir}/cwd/.env";
my ($rc, $out, $err) = $g->run('--check', '--data', $g->data);
isnt($rc, 0, 'a .env that everybody may write');
like($err, qr/\.env .*not ours alone to write/, 'is refused');
unlink "$g->{dir}/cwd/.env";

require POSIX;
POSIX::mkfifo("$g->{dir}/cwd/.env", 0600);
($rc, $out, $err) = $g->run('--check', '--data', $g->data);
like($err, qr/\.env .*not ours alone to write/, 'nor is a pipe waited for');
unlink "$g->{dir}/cwd/.env";

mkdir $g->data;
chmod 0777, $g->data;
($rc, $out, $err) = $g->run('--port', $g->port, '--data', $g->data);
isnt($rc, 0, 'a data directory that everybody may write');
like($err, qr/data directory .*not ours alone to write/, 'is refused');

done_testing;


sub part {
    my ($name, $content, $head) = @_;

    return qq(--B\r\nContent-Disposition: form-data; name="$name"; filename="f"\r\n)
           . ($head // '') . "\r\n$content\r\n";
}


sub meta {
    my ($path, $more) = @_;

    return part('metadata', qq({"path":"$path"}) . ($more // ''));
}
