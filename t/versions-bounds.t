#!/usr/bin/perl

# Contents of files at their bounds: sandbox_versions_limit (--contents), half of
# sandbox_queue, sandbox_versions off.  Records are complete in any case, and what
# passes is not held up.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;

my $KIB = 1024;
my $type = 'Content-Type: multipart/form-data; boundary=B';

# bytes that do not compress, the same in each run
srand 3;
my @random = map { join '', map { pack 'N', int rand 2 ** 32 } 1 .. 75 * $KIB }
             0 .. 5;

my $t = SandboxTest->new(http => 'sandbox_queue 1m;',
    helper_args => [ '--contents', 1024 * $KIB ], locations => <<'EOF')->start;
        location /v1/sandboxes/none {
            sandbox on;
            sandbox_versions off;
            proxy_pass http://opensandbox$sandbox_upstream_uri;
            proxy_http_version 1.1;
            proxy_set_header Host $sandbox_upstream_host;
            proxy_set_header Connection $sandbox_connection;
        }
EOF

$t->sandbox($_) for qw(s1 s2 none);


# --- all contents together ------------------------------------------------------------

# 300 KiB each, three fit

my $e = upload('s2', '/w/small', 'kept');
is($e->{files}[0]{content}, 'kept', 'a small one of another sandbox');

my @e = map { upload('s1', "/w/$_", $random[$_]) } 0 .. 4;

is_deeply([ map { $_->{files}[0]{content} } @e ], [ ('kept') x 5 ],
          'five files of 300 KiB are kept');

ok($t->wait_for(sub { total() <= 1024 * $KIB }), 'until there are too many');
is_deeply([ map { held('s1', $_) } @random[0 .. 4] ], [ 0, 0, 1, 1, 1 ],
          'the oldest of the sandbox that holds most have made room');
is(held('s2', 'kept'), 1, 'not those of the other');
is($e[0]{files}[0]{sha256}, sha256_hex($random[0]), 'digests stay on record');

my $bytes = total();
is(metric('contents_max_bytes'), 1024 * $KIB, 'the bound');
is(metric('contents_dropped_total'), 2, 'what was dropped');
is(metric('contents_bytes'), $bytes, 'what is kept');

upload('s1', '/w/9', $random[4]);
is(held('s1', $random[4]), 1, 'the same content again');
is(total(), $bytes, 'takes no room');


# --- legal hold -----------------------------------------------------------------------

is(hold('hold'), 0, 'the sandbox that holds most is on hold');
upload('s1', '/w/10', $random[0]);
ok($t->wait_for(sub { !held('s2', 'kept') }), 'others make room');
is_deeply([ map { held('s1', $_) } @random[0, 2 .. 4] ], [ 1, 1, 1, 1 ],
          'nothing of it is dropped');
$bytes = total();
cmp_ok($bytes, '>', 1024 * $KIB, 'though it is too much');

# the bound was found to be held
$t->record($t->get('/v1/sandboxes/s1/proxy/44772/files/info?path=%2Fa'));
my $dropped = metric('contents_dropped_total');
$e = upload('s1', '/w/11', $random[1]);
is(held('s1', $random[1]), 0, 'no more are kept');
is($e->{files}[0]{sha256}, sha256_hex($random[1]), 'their records are');
is(total(), $bytes, 'so it grows no further');
is(metric('contents_dropped_total'), $dropped + 1, 'that is counted');

is(hold('release'), 0, 'released');
ok($t->wait_for(sub { total() <= 1024 * $KIB }), 'the bound counts again');
is_deeply([ map { held('s1', $_) } @random[0, 2 .. 4] ], [ 1, 0, 1, 1 ],
          'and the oldest is dropped');


# --- no room in the queue -------------------------------------------------------------

my $path = '/v1/sandboxes/s1/proxy/44772/files/download?path=/x';

$t->up->script("GET $path", [ send => "HTTP/1.1 200 OK\r\nContent-Length: "
    . length($random[5]) . "\r\nContent-Type: application/octet-stream\r\n\r\n"
    . $random[5] ]) for 0 .. 2;

kill 'STOP', $t->{helper_pid};

# half of 1 MiB has room for one of 300 KiB
my @r = map { $t->get($path) } 0 .. 2;

kill 'CONT', $t->{helper_pid};

is_deeply([ map { $_->status == 200 && $_->content eq $random[5] ? 1 : 0 } @r ],
          [ (1) x 3 ], 'downloads pass whole while the helper stands still');

@e = map { $t->record($_, sandbox => 's1') } @r;
is_deeply([ map { $_->{files}[0]{content} } @e ],
          [ 'kept', 'unavailable', 'unavailable' ],
          'for contents there was half of the queue');
is_deeply([ map { $_->{file}{after_hash} } @e ],
          [ (sha256_hex($random[5])) x 3 ], 'their records are whole');
is(metric('contents_lost_total'), 2, 'and that is counted');


# --- off ------------------------------------------------------------------------------

upload('none', '/w/a', 'first');
$e = upload('none', '/w/a', 'second');
is($e->{files}[0]{content}, 'unavailable', 'off: no content');
is($e->{file}{before_hash}, sha256_hex('first'), 'but what stood there before');
is(held('none', 'second'), 0, 'nothing is kept');



# --- a restore ------------------------------------------------------------------------

$e = upload('s1', '/w/restored', 'as it was', "X-Sandbox-Restored-From: $e[0]{event_id}");
is_deeply($e->{request}, { restored_from => $e[0]{event_id} }, 'a restore is on record');
my ($version) = @{ $t->get('/console/api/v1/sandboxes/s1/versions?path=/w/restored')
                     ->json->{items} };
is($version->{restored_from}, $e[0]{event_id}, 'and among the versions');
is(upload('s1', '/w/plain', 'x')->{request}{restored_from}, undef, 'no other upload is one');
unlike($_->{head}, qr/restored/i, 'the header stays here') for ($t->up->requests(qr{upload}))[-2];
my $sent = my @sent = $t->up->requests(qr{upload});

for ([ 'x' ], [ $e[0]{event_id}, $e[1]{event_id} ], [ '' ]) {
    my @bad = map { "X-Sandbox-Restored-From: $_" } @$_;
    is($t->post('/v1/sandboxes/s1/proxy/44772/files/upload', body => '',
                headers => [ $type, @bad ])->code, 'GATEWAY_AMBIGUOUS_REQUEST',
       "not the id of one operation: @$_");
}

is(scalar(my @now = $t->up->requests(qr{upload})), $sent, 'nothing of that goes upstream');


# --- of a sandbox that nobody has shown to exist ----------------------------------------

my $upload = '/v1/sandboxes/nobody/proxy/44772/files/upload';
$t->up->script("POST $upload", [ send => "HTTP/1.1 404 Not Found\r\n"
                                        . "Content-Length: 0\r\n\r\n" ]);
my $r = $t->post($upload, headers => [ $type ], body => join "\r\n",
    (map { ('--B', 'Content-Disposition: form-data; name="metadata"; '
            . 'filename="m"', '', qq({"path":"$_"}), '--B',
            'Content-Disposition: form-data; name="file"; filename="f"', '',
            'x') } qw(/n1 /n2)), '--B--', '');
$t->record($r, sandbox => '_gateway');
is_deeply([ map { @$_{qw(path before)} }
            @{ $t->get('/console/api/v1/sandboxes/_gateway/versions?path=/n2')
                 ->json->{items} } ], [ '/n2', 'unavailable' ],
          'its records, and their versions, are in _gateway');

$t->stop;
done_testing;


sub metric {
    my ($name) = @_;

    my $text = $t->get('/console/api/v1/metrics')->content;
    my ($n) = $text =~ /^sandbox_gateway_(?:helper_)?$name (\d+)$/m;

    return $n;
}


sub hold {
    my ($what) = @_;

    system("$SandboxProcess::BUILD/sandbox-history --history $t->{history}{dir}"
           . " $what s1 >/dev/null");

    return $? >> 8;
}


sub held {
    my ($sandbox, $text) = @_;
    my $sha = sha256_hex($text);
    my @row = $t->history->query($sandbox, 'select 1 as one from'
        . " gateway_contents where sha256 = '$sha'");

    return scalar @row;
}


# Bytes in the files of both.

sub total {
    my $n = 0;

    for my $s (qw(s1 s2)) {
        my ($row) = $t->history->query($s, 'select coalesce(sum(length(data)), 0)'
                                           . ' as n from gateway_contents');
        $n += $row->{n} if $row;
    }

    return $n;
}


sub upload {
    my ($sandbox, $file, $bytes, @headers) = @_;

    my $r = $t->post("/v1/sandboxes/$sandbox/proxy/44772/files/upload",
        headers => [ $type, @headers ], body => join "\r\n", '--B',
        'Content-Disposition: form-data; name="metadata"; filename="m"', '',
        qq({"path":"$file"}), '--B',
        'Content-Disposition: form-data; name="file"; filename="f"', '',
        $bytes, '--B--', '');
    diag('upload: ' . $r->status) if $r->status != 200;

    return $t->record($r, sandbox => $sandbox);
}
