#!/usr/bin/perl

# C071, C161: a large upload of four files, judged by conf/policy.default, passes byte for
# byte while the memory of the worker stays flat.  52 MiB, and with T_SCALE=10 (make soak)
# the 512 MiB that the policy allows.

use strict;
use warnings;

use Cwd qw(abs_path);
use Digest::SHA;
use FindBin;
use lib "$FindBin::Bin/lib";
use List::Util qw(max min);

use SandboxTest;
use Test::More;

my $MIB = 1 << 20;
my $scale = min(10, $ENV{T_SCALE} // 1);
my $size = int(12.8 * $MIB * $scale);       # of each file
my $policy = abs_path("$FindBin::Bin/../conf/policy.default");

my $t = SandboxTest->new(location => "sandbox_policy $policy;")->start;
$t->sandbox('s1');

my $target = '/v1/sandboxes/s1/proxy/44772/files/upload';
my $piece = join '', map { chr(($_ * 7 + ($_ >> 8)) & 255) } 0 .. 65535;


# Sends n files of a size; the answer, the digest of the body, the worker's growth in KiB.

sub upload {
    my ($n, $bytes) = @_;

    my $part = sub {
        "--B\r\nContent-Disposition: form-data; name=\"$_[0]\"; filename=\"$_[0]\"\r\n\r\n"
    };
    my @heads = map {
        $part->('metadata') . "{\"path\":\"/workspace/large$_\"}\r\n" . $part->('file')
    } 1 .. $n;
    my $tail = "--B--\r\n";
    my $length = $n * ($bytes + 2) + length join '', @heads, $tail;

    my $c = $t->connect;
    my $sha = Digest::SHA->new(256);
    my $before = rss();
    my $most = 0;
    my $send = sub {
        $sha->add($_[0]);
        $c->write($_[0]);
    };

    $c->write($c->build(POST => $target, headers => [ $t->credential,
        'Content-Type: multipart/form-data; boundary=B', "Content-Length: $length" ]));

    for my $head (@heads) {
        $send->($head);

        for (my $left = $bytes; $left > 0; $left -= length $piece) {
            $send->(substr $piece, 0, $left);
            $most = max($most, rss()) if $left % (4 * $MIB) < length $piece;
        }

        $send->("\r\n");
    }

    $send->($tail);

    my $r = $c->response(method => 'POST', timeout => 120);

    return ($r, $sha->hexdigest, max($most, rss()) - $before);
}

# Resident memory of the worker in KiB.

sub rss {
    my ($pid) = $t->worker_pids;

    return SandboxTest::read_file("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m ? $1 : 0;
}


# what a first upload sets up is no growth
upload(1, 100_000);

$t->up->mark;
my ($r, $sha, $grown) = upload(4, $size);
is($r->status, 200, 4 * $size . ' bytes pass') or diag $r->content;

my ($seen) = $t->up->requests(qr/upload/);
is($seen->{sha256}, $sha, 'C071, C161: byte for byte');
cmp_ok($grown, '<', 8 * 1024, 'C161: and the worker did not grow by 8 MiB (KiB)');

my $e = $t->record($r, sandbox => 's1');
is($e->{result}{verdict}, 'allow', 'on record as allowed');
is_deeply([ map { $_->{size} } @{ $e->{files} } ], [ ($size) x 4 ], 'with all files');

# one file too large: refused before its end, by the rule

SKIP: {
    skip 'needs T_SCALE=10', 3 if $scale < 10;

    $t->up->mark;
    ($r) = upload(1, 128 * $MIB + 1);
    is($r->status, 413, 'a byte too many is refused');
    is($r->json->{details}{rule}, 'big-file', 'by the rule');
    is(scalar($t->up->requests(qr/upload/)), 0, 'upstream saw nothing');
}

$t->stop;
done_testing;
