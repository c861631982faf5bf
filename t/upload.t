#!/usr/bin/perl

# Uploads (reference 3.4): every path with the size and digest of its file, in
# whatever order and framing the parts come; the bytes pass untouched; what
# execd would read in another way than we do is refused.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA qw(sha256_hex);
use FakeUpstream;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $FULL = ($ENV{T_SCALE} // 1) >= 10;
my $t = SandboxTest->new->start;
my $up = $t->up;
$t->sandbox('s1');
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $target = "$execd/files/upload";
my $type = 'Content-Type: multipart/form-data; boundary=B';


# --- orders of parts ------------------------------------------------------------------

my ($a, $b) = ("hello\n", join '', map { chr } 0 .. 255);

for my $case (
    [ 'one file', [ meta('/w/a'), file($a) ], [ '/w/a', $a ] ],
    [ 'm f m f', [ meta('/w/a'), file($a), meta('/w/b'), file($b) ],
      [ '/w/a', $a ], [ '/w/b', $b ] ],
    [ 'm m f f', [ meta('/w/a'), meta('/w/b'), file($a), file($b) ],
      [ '/w/a', $a ], [ '/w/b', $b ] ],
    [ 'C068: f f m m', [ file($a), file($b), meta('/w/a'), meta('/w/b') ],
      [ '/w/a', $a ], [ '/w/b', $b ] ],
    [ 'an empty file', [ meta('/w/e'), file('') ], [ '/w/e', '' ] ],
    [ 'other parts between', [ meta('/w/a'),
          part('form-data; name="note"', '', 'x'), file($a) ],
      [ '/w/a', $a ] ],
    [ 'C087, C083: odd names', [ meta('/w/a..b%41 50%.txt'), file($a) ],
      [ '/w/a..b%41 50%.txt', $a ] ],
    [ 'C062: boundary text inside', [ meta('/w/x'),
          file("x--B\r\n--Bx\r\nmid --B-- line\r\n-B\r\n--") ],
      [ '/w/x', "x--B\r\n--Bx\r\nmid --B-- line\r\n-B\r\n--" ] ],
    [ 'CR LF at the edges', [ meta('/w/x'), file("\r\n\r\nx\r\n\r\n") ],
      [ '/w/x', "\r\n\r\nx\r\n\r\n" ] ],
) {
    my ($name, $parts, @files) = @$case;
    my $body = body(@$parts);

    for my $how ([ 'Content-Length' ], [ 'chunked', chunked => 1 ]) {
        my ($framing, @o) = @$how;
        $up->mark;
        my $r = $t->post($target, body => $body, headers => [ $type ], @o);
        is($r->status, 200, "$name, $framing");

        my ($seen) = $up->requests;
        is($seen->{sha256}, sha256_hex($body), 'passes byte for byte');

        my $e = $t->record($r, sandbox => 's1');
        is($e->{operation_type}, 'file.write', 'file.write');
        is($e->{status}, 'succeeded', 'succeeded');
        is_deeply([ map { [ @$_{qw(path size sha256)} ] } @{ $e->{files} } ],
                  [ map { [ $_->[0], length $_->[1], sha256_hex($_->[1]) ] }
                    @files ], 'paths, sizes and digests');
        is($e->{file}{path}, $files[0][0], 'file_operations holds the first');
        is($e->{file}{after_hash}, sha256_hex($files[0][1]), 'its digest');
        is($e->{file}{after_size}, length $files[0][1], 'its size');
        is($e->{wire}{bytes_in}, length $body, 'bytes of the request');
    }
}

# What the SDKs send.

my $r = $t->post($target, headers => [ $type ], body => body(
    part('form-data; name="metadata"; filename="metadata"',
         'Content-Type: application/json',
         '{"path": "/tmp/fx/py.txt", "owner": null, "group": null, "mode": 755}'),
    part('form-data; name="file"; filename="/tmp/fx/py.txt"',
         'Content-Type: text/plain; charset=utf-8', 'text')));
my $e = $t->record($r);
is($e->{files}[0]{path}, '/tmp/fx/py.txt', 'as the Python SDK writes it');
is($e->{files}[0]{mode}, 755, 'with its mode');


# --- splits (C061): wherever the packets end, the same is seen -----------------------------

{
    my $file = "one\r\n--Bx\r\n-" . "\r" x 3;
    my $body = body(meta('/w/s'), file($file));
    my $conn = $t->connect;
    my @op;

    for (my $at = 1; $at < length $body; $at += 7) {
        $conn->write($conn->build(POST => $target, headers => [ $t->credential,
            $type, 'Content-Length: ' . length $body ]) . substr $body, 0, $at);
        sleep 0.002;
        $conn->write(substr $body, $at);
        my $r = $conn->response;
        push @op, [ $at, $r->header('X-Operation-Id') ];
    }

    my @bad = grep {
        my $f = $t->record($_->[1], sandbox => 's1')->{files}[0] // {};
        ($f->{sha256} // '') ne sha256_hex($file);
    } @op;

    is_deeply([ map { $_->[0] } @bad ], [],
              'C061: split at every seventh byte: the same digest');

    my $r = $t->post($target, headers => [ $type ], chunked => 1,
                     body => [ split //, $body ]);
    is($t->record($r)->{files}[0]{sha256}, sha256_hex($file),
       'C061: a chunk for each byte');
}


# --- sizes (C071, C075) ---------------------------------------------------------------------

for my $n (7 << 10, 8 << 10, 9 << 10, 17 << 10, 18 << 10, 19 << 10, 1 << 20,
           12 << 20)
{
    my $bytes = substr(pack('N*', 1 .. $n / 4 + 1), 0, $n);
    my $body = body(meta('/w/big'), file($bytes));
    $up->mark;
    my $r = $t->post($target, headers => [ $type ], body => $body);
    is($r->status, 200, "C071: an upload of $n bytes");
    is(($up->requests)[-1]{sha256}, sha256_hex($body), 'arrives whole');
    is($t->record($r)->{files}[0]{sha256}, sha256_hex($bytes), 'its digest');
}

# it streams: upstream has the head while the body is still on its way
{
    my $body = body(meta('/w/slow'), file('x' x 300_000));
    $up->script("POST $target", [ 'early' ], [ read_some => 1000 ],
                [ send => '' ], [ 'read_body' ], [ 'default' ]);
    $up->mark;
    my $c = $t->connect;
    $c->write($c->build(POST => $target, headers => [ $t->credential, $type,
        'Content-Length: ' . length $body ]) . substr $body, 0, 100_000);
    sleep 0.3;
    is(scalar(glob $t->dir . '/temp/body/*'), undef,
       'an upload is not spooled to disk');
    $c->write(substr $body, 100_000);
    is($c->response->status, 200, 'a slow upload');
    $up->clear;
}


# --- what cannot be read in one way --------------------------------------------------------

for my $case (
    [ 'C067: a decoy without filename', part('form-data; name="metadata"', '',
          '{"path":"/workspace/ok"}'), meta('/etc/cron.d/x'), file($a) ],
    [ 'C068: more metadata than files', meta('/w/a'), meta('/w/b'), file($a) ],
    [ 'C068: more files than metadata', meta('/w/a'), file($a), file($b) ],
    [ 'duplicate path', part('form-data; name="metadata"; filename="m"', '',
          '{"path":"/w/a","path":"/w/b"}'), file($a) ],
    [ 'case-folded path', part('form-data; name="metadata"; filename="m"', '',
          '{"path":"/w/a","Path":"/w/b"}'), file($a) ],
    [ 'trailing bytes', part('form-data; name="metadata"; filename="m"', '',
          '{"path":"/w/a"}{"path":"/w/b"}'), file($a) ],
    [ 'C082: bad UTF-8 in a path', meta("/w/\xc0\xae"), file($a) ],
    [ 'C081: NUL in a path', part('form-data; name="metadata"; filename="m"',
          '', '{"path":"/w/a\u0000b"}'), file($a) ],
    [ 'metadata without a closing quote', part('form-data; name="metadata; '
          . 'filename="m"', '', '{"path":"/w/a"}'), meta('/w/b'), file($a) ],
) {
    my ($name, @parts) = @$case;

    for my $chunked (0, 1) {
        $up->mark;
        my $r = $t->post($target, headers => [ $type ], body => body(@parts),
                         chunked => $chunked);
        is($r->status, 400, "$name: refused" . ($chunked ? ', chunked' : ''))
            or diag($r->status);
        is($r->code, 'GATEWAY_AMBIGUOUS_REQUEST', 'by us');
        is($t->record($r)->{status}, 'failed', 'and so on record');
        is(scalar(grep { $_->{complete} } $up->requests), 0,
           'upstream never has the whole of it');
    }
}

# C070: a part glued to its headers hides nothing: refused, or all is seen.
{
    my $r = $t->post($target, headers => [ $type ], body => body(
        part('form-data; name="a"', '', '') =~ s/\r\n\r\n\z/\r\n/r,
        meta('/w/hidden'), file($a)));
    my $e = $t->record($r);
    ok($r->status == 400 && $e->{status} eq 'failed'
       || $e->{files}[0]{path} eq '/w/hidden'
          && $e->{files}[0]{sha256} eq sha256_hex($a),
       'C070: a part glued to its headers') or diag(explain $e->{files});
}

# What execd refuses by itself may reach it; it is no success on record.

$up->script("POST $target", FakeUpstream::answer(400, { code => 'INVALID_FILE' }));

for my $case (
    [ 'no metadata', $type, file($a) ],
    [ 'metadata that is no JSON', $type, part('form-data; name="metadata"; '
          . 'filename="m"', '', '{"path":'), file($a) ],
    [ 'metadata without a path', $type, part('form-data; name="metadata"; '
          . 'filename="m"', '', '{"mode":644}'), file($a) ],
    [ 'no boundary', 'Content-Type: multipart/form-data', meta('/w/a'),
      file($a) ],
    [ 'an empty boundary', 'Content-Type: multipart/form-data; boundary=',
      meta('/w/a'), file($a) ],
    [ 'two boundaries', 'Content-Type: multipart/form-data; boundary=B; '
          . 'boundary=C', meta('/w/a'), file($a) ],
    [ 'another type', 'Content-Type: text/plain', meta('/w/a'), file($a) ],
    [ 'no type', 'X-None: 1', meta('/w/a'), file($a) ],
) {
    my ($name, $header, @parts) = @$case;
    my $r = $t->post($target, headers => [ $header ], body => body(@parts));
    is($r->status, 400, "$name: refused by one of us");
    is($t->record($r)->{status}, 'failed', 'and so on record');
}

$up->clear;

# C063, C078: no closing boundary; upstream must not be able to finish
for my $body (body(meta('/w/a'), file($a)) =~ s/--B--\r\n\z//r,
              body(meta('/w/a'), file($a)) =~ s/--\r\n\z//r,
              body(meta('/w/a'), file($a)) =~ s/-\r\n\z//r,
              substr body(meta('/w/a'), file($a x 100)), 0, 300)
{
    for my $chunked (0, 1) {
        $up->mark;
        my $r = $t->post($target, headers => [ $type ], body => $body,
                         chunked => $chunked);
        isnt($r->status, 200, 'C063: an upload without its end is no success'
                              . ($chunked ? ', chunked' : ''));
        my $e = $t->record($r);
        is($e->{status}, 'failed', 'nor on record');
        my @whole = grep { $_->{complete} } $up->requests;
        is(scalar @whole, 0, 'and upstream never has the whole of it');
    }
}

# C064, C065: legal endings and beginnings
for my $case ([ 'no last CR LF', sub { $_[0] =~ s/\r\n\z//r } ],
              [ 'an epilogue', sub { "$_[0]epilogue\r\n" } ],
              [ 'a preamble', sub { "see --B below\r\n$_[0]" } ],
              [ 'a leading CR LF', sub { "\r\n$_[0]" } ],
              [ 'padding behind the boundary', sub { $_[0] =~ s/--B\r/--B \r/gr } ])
{
    my ($name, $change) = @$case;
    my $r = $t->post($target, headers => [ $type ],
                     body => $change->(body(meta('/w/a'), file($a))));
    my $e = $t->record($r);
    is($r->status, 200, "C064, C065: $name") or diag($r->content);
    is(join(' ', map { $_->{sha256} } @{ $e->{files} }), sha256_hex($a), '... one file, whole');
}

# C073: an encoding that cannot be judged
for my $encoding ('gzip', 'x-gzip', 'deflate', 'br', 'gzip, gzip') {
    for my $where ($target, "$execd/command") {
        $up->mark;
        my $r = $t->post($where, body => 'xxxx', headers => [ $type,
                         "Content-Encoding: $encoding" ]);
        is($r->status, 415, "C073: Content-Encoding: $encoding");
        is($r->code, 'GATEWAY_UNSUPPORTED_ENCODING', 'says so');
        is(scalar $up->requests, 0, 'and does not pass');
    }
}

$r = $t->post($target, headers => [ $type, 'Content-Encoding: identity' ],
              body => body(meta('/w/a'), file($a)));
is($r->status, 200, 'identity is no encoding');


# --- interrupted ------------------------------------------------------------------------------

# C016: upstream answers before the upload ends, and the key of its path is free again
my $locking = SandboxTest->new(location => 'sandbox_locks on;')->start;

for my $t ($t, $locking) {
    my $up = $t->up;
    $t->sandbox('s1');
    $up->script("POST $target", [ 'early' ], [ read_some => 65_536 ],
        FakeUpstream::answer(400, { code => 'INVALID_FILE', message => 'm' },
                             'Connection: close'), [ pause => 0.2 ], [ 'close' ]);
    my $body = body(meta('/w/early'), file('x' x ($FULL ? 50 << 20 : 20 << 20)));
    my $c = $t->connect;
    $c->write($c->build(POST => $target, headers => [ $t->credential, $type ],
                        body => $body));
    my $r = $c->response;
    is($r->status, 400, "C016: upstream's early answer reaches the client");
    is($r->code, 'INVALID_FILE', 'with its body');
    my $e = $t->record($r);
    is($e->{status}, 'failed', 'recorded as failed');
    is($e->{wire}{upstream_status}, 400, 'by upstream');
    # with locks it has been read whole, for its paths, before it goes on
    cmp_ok($e->{wire}{bytes_in}, '<', length($body) + ($t == $locking), 'with the bytes so far');
    cmp_ok($e->{wire}{bytes_in}, '>=', 65_536, 'all of them');
    $up->clear;

    $r = $t->post($target, headers => [ $type ], body => body(meta('/w/early'), file($a)),
                  timeout => 5);
    is($r->status, 200, 'and the next may write there');
}

$locking->stop;

# C072: the client stops half-way
{
    $up->mark;
    my $c = $t->connect;
    $c->write($c->build(POST => $target, headers => [ $t->credential, $type,
        'Content-Length: 1000000' ])
        . substr body(meta('/w/half'), file('x' x 900_000)), 0, 600_000);
    sleep 0.2;
    $c->close;
    my $seen = $up->wait_request(qr{upload});
    ok($seen && !$seen->{complete}, 'C072: upstream never has a clean end');

    my ($e) = grep { ($_->{wire}{reason} // '') eq 'client_aborted' }
              @{ $t->wait_for(sub {
                  my @e = grep { ($_->{wire}{reason} // '') eq 'client_aborted' }
                          $t->history->events('s1');
                  return @e ? \@e : undef;
              }) || [] };
    is($e->{status}, 'cancelled', 'recorded as cancelled by the client');
    cmp_ok($e->{wire}{bytes_in}, '<=', 600_000, 'with the bytes received');
}

# the connection is good for more after all kinds of uploads
{
    my $conn = $t->connect;

    for (1 .. 20) {
        my $r = $t->post($target, conn => $conn, headers => [ $type ],
                         body => body(meta("/w/$_"), file($a)));
        is($r->status, 200, 'keep-alive upload') if $r->status != 200;
        $r = $t->get("$execd/files/info?path=%2Fw%2F$_", conn => $conn);
        is($r->status, 200, 'keep-alive read') if $r->status != 200;
    }

    pass('twenty uploads and reads on one connection');
}

$t->stop;
done_testing;


sub part {
    my ($disposition, $headers, $bytes) = @_;

    return "--B\r\nContent-Disposition: $disposition\r\n"
           . ($headers ? "$headers\r\n" : '') . "\r\n$bytes\r\n";
}


sub meta {
    my $path = shift;

    return part('form-data; name="metadata"; filename="metadata"',
                'Content-Type: application/json', qq({"path":"$path"}));
}


sub file {
    my $bytes = shift;

    return part('form-data; name="file"; filename="f"',
                'Content-Type: application/octet-stream', $bytes);
}


sub body { join('', @_) . "--B--\r\n" }
