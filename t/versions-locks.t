#!/usr/bin/perl

# sandbox_versions fetch with sandbox_locks: a file is read under the keys of the
# operation that is to change it, after the verdict and before anything goes
# upstream; and how many files of one operation are read.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep);

my $execd = '/v1/sandboxes/s1/proxy/44772';

my $t = SandboxTest->new(location => "sandbox_versions fetch; sandbox_locks on;",
    helper_args => [ '--fetches', 40 ], locations => <<'EOF')->start;
        location /v1/sandboxes/plain {
            sandbox on;
            sandbox_locks on;
            sandbox_versions on;
            proxy_pass http://opensandbox$sandbox_upstream_uri;
            proxy_http_version 1.1;
            proxy_set_header Host $sandbox_upstream_host;
            proxy_set_header Connection $sandbox_connection;
        }
EOF

my $up = $t->up;
$t->sandbox($_) for qw(s1 plain);


# --- who waits for a key reads nothing yet -------------------------------------------------

my $hold = [ pause => 0.5 ];
my @created = ([ send => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" ]);

reads_as('/w/a', "before all\n");
$up->script("POST $execd/files/upload", $hold, @created);
my $first = begin('/w/a', "first\n");
ok($t->wait_for(sub { writes() == 1 }), 'the first is on its way');
$up->script("POST $execd/files/upload", @created);
reads_as('/w/a', "first\n");
my $second = begin('/w/a', "second\n");
ok($t->wait_for(sub { waiting() == 1 }), 'the second waits for its key');
is(scalar(my @reads = reads()), 1, 'and has not read the file');

my ($e1, $e2) = map { $t->record($_->response, sandbox => 's1') } $first, $second;
stood($e1, 0, 'fetched', "before all\n", 'the first: as it was read');
like($e2->{files}[0]{before}, qr/^(?:fetched|history)$/, 'the second is certain');
is($e2->{files}[0]{before_sha256}, sha256_hex("first\n"), 'of what the first left');
ok($e2->{result}{lock_waited_us} > 100_000, 'it has waited');

# Without a reading the history tells for certain: what waits overlaps with nobody.

my $plain = '/v1/sandboxes/plain/proxy/44772/files/upload';
$up->script("POST $plain", $hold, @created);
$first = begin('/w/b', "first\n", $plain);
$t->wait_for(sub { writes() == 3 });
$up->script("POST $plain", @created);
$second = begin('/w/b', "second\n", $plain);
ok($t->wait_for(sub { waiting('plain') == 1 }), 'one waits');
($e1, $e2) = map { $t->record($_->response, sandbox => 'plain') } $first, $second;
stood($e2, 0, 'history', "first\n", 'for what is on record when it goes on');

# A command that runs: nobody can tell, the file is read, under the key.

reads_as('/w/c', "old\n");
$up->script("POST $execd/command", [ send => "HTTP/1.1 200 OK\r\n"
    . "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" ], [ 'hang' ]);
my $command = $t->connect;
$command->write($command->build(POST => "$execd/command", body => '{"command":"x"}',
    headers => [ $t->credential ]));
$t->wait_for(sub { $up->requests(qr{^POST .*/command}) });
$up->script("POST $execd/files/upload", $hold, @created);
$first = begin('/w/c', "first\n");
ok($t->wait_for(sub { writes() == 5 }), 'one beside a command');
reads_as('/w/c', "by a command\n");
$up->script("POST $execd/files/upload", @created);
$second = begin('/w/c', "second\n");
$t->wait_for(sub { waiting() == 1 });
is(scalar(reads_of('/w/c')), 1, 'the second has not read');
($e1, $e2) = map { $t->record($_->response, sandbox => 's1') } $first, $second;
stood($e2, 0, 'fetched', "by a command\n", 'and reads when the first is through');
is(scalar(reads_of('/w/c')), 2, 'each once');
$command->close;


# --- refused: nothing is read ---------------------------------------------------------------

reads_as('/w/d', "d\n");
$up->script("POST $execd/files/upload", [ pause => 1 ], @created);
$first = begin('/w/d', "first\n");
$t->wait_for(sub { reads_of('/w/d') == 1 && waiting() == 0 && held() == 1 });
my $late = upload([ '/w/d', "late\n" ], 'X-Sandbox-Lock-Timeout: 50ms');
is($late->status, 423, 'a key that is not free in time');
is(scalar(reads_of('/w/d')), 1, 'nothing is read for what does not happen');
is($first->response->status, 200, 'the first goes on');


# --- the bound -----------------------------------------------------------------------------

my @paths = map { sprintf '/n/%02d', $_ } 1 .. 18;
reads_as($_, "old $_\n") for @paths;
my $before = metric('file_fetches_read_total');
my $e = $t->record(upload([ map { $_ => "new\n" } @paths ]), sandbox => 's1');
is(scalar @{ $e->{files} }, 18, '18 files in one upload');
first16($e, [ reads_of('/n/') ], 'uploads');
my $n = metric('file_fetches_read_total') - $before;
ok($n > 0 && $n <= 16, 'the first 16 are read');

@paths = map { sprintf '/m/%02d', $_ } 1 .. 18;
reads_as($_, "from $_\n"), reads_as("$_.to", "to $_\n") for @paths;
$e = $t->record($t->post("$execd/files/mv", body => '['
    . join(',', map { qq({"src":"$_","dest":"$_.to"}) } @paths) . ']'), sandbox => 's1');
first16($e, [ reads_of('/m/') ], 'moves');
is_deeply([ map { $_->{sha256} } @{ $e->{files} }[16, 17] ], [ undef, undef ],
          'nor what is moved there');

is($t->post('/console/api/v1/sandboxes/s1/verify')->json->{ok}, JSON::PP::true,
   'the history is what was recorded');

$t->stop;
done_testing;


# What execd says of a file from now on.

sub reads_as {
    my ($path, $text) = @_;

    my $name = $path =~ s{/}{%2F}gr;
    $up->script("GET $execd/files/download?path=$name", [ send =>
        "HTTP/1.1 200 OK\r\nContent-Length: " . length($text) . "\r\n\r\n$text" ]);
}


sub reads { $up->requests(qr{^GET .*files/download}, helper => 1) }

sub reads_of {
    my $name = $_[0] =~ s{/}{%2F}gr;

    return grep { $_->{target} =~ /\Q$name\E/ } reads();
}

sub writes { my @posts = $up->requests(qr{^POST .*files/upload}); return scalar @posts }

sub locks {
    my ($state, $sandbox) = @_;

    my $items = $t->get("/console/api/v1/sandboxes/$sandbox/locks")->json->{items};

    return scalar grep { $_->{state} eq $state } @{ $items // [] };
}

sub waiting { locks('waiting', $_[0] // 's1') }

sub held { locks('held', 's1') }


# On a machine that is busy not all may come in time; but none of the others does.

sub first16 {
    my ($e, $reads, $name) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    my @before = map { $_->{before} } @{ $e->{files} };
    is_deeply([ @before[16, 17] ], [ ('unavailable') x 2 ], "$name: the last two of 18 are not known");
    ok((grep { $_ eq 'fetched' } @before[0 .. 15]), "$name: others are");
    is_deeply([ grep { /%2F(?:17|18)/ } map { $_->{target} } @$reads ], [],
              "$name: nobody asks for them");
}


sub metric {
    my ($n) = $t->get('/console/api/v1/metrics')->content
              =~ /^sandbox_gateway_(?:helper_)?$_[0] (\d+)$/m;

    return $n;
}


sub stood {
    my ($e, $n, $how, $text, $name) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    my $f = $e->{files}[$n] // {};
    is_deeply([ @$f{qw(before before_size before_sha256)} ],
              [ $how, length $text, sha256_hex($text) ], $name) or diag(explain($f));
}


sub headers { ('Content-Type: multipart/form-data; boundary=B', @_) }

sub upload {
    my ($files, @more) = @_;

    return $t->post("$execd/files/upload", headers => [ headers(@more) ],
                    body => SandboxTest::upload_body(@$files));
}


# Begins an upload and does not wait for its answer.

sub begin {
    my ($path, $text, $where) = @_;

    my $c = $t->connect;
    $c->write($c->build(POST => $where // "$execd/files/upload", body => SandboxTest::upload_body($path, $text),
                        headers => [ $t->credential, headers() ]));

    return $c;
}
