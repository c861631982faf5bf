#!/usr/bin/perl

# sandbox_spool_limit: uploads that are read whole before they go on share a bounded
# spool over all workers; a share is given back when its request ends, however it ends.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA qw(sha256_hex);
use SandboxTest;
use Test::More;

my $t = SandboxTest->new(workers => 2, http => 'sandbox_spool_limit 4m;',
                         location => 'sandbox_policy policy;');

SandboxTest::write_file("$t->{dir}/conf/policy",
                        "deny etc { operation file.*; path /etc; }\ndefault allow;\n");
push @{ $t->{allow} }, qr/worker process \d+ exited on signal 9/;
$t->start;
$t->sandbox('s1');

my $target = '/v1/sandboxes/s1/proxy/44772/files/upload';
my $type = 'Content-Type: multipart/form-data; boundary=B';
my $head = "--B\r\nContent-Disposition: form-data; name=\"metadata\"; "
    . "filename=\"metadata\"\r\n\r\n{\"path\":\"/workspace/a\"}\r\n"
    . "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n";
my $tail = "\r\n--B--\r\n";


sub body { return $head . 'x' x $_[0] . $tail }

sub metric {
    my $name = shift;

    return $t->get('/console/api/v1/metrics')->content
           =~ /^sandbox_gateway_$name (\d+)$/m ? $1 : undef;
}

# An upload that stays unfinished, of which n bytes have come.

sub hold {
    my $n = shift;

    my $c = $t->connect;
    $c->write($c->build(POST => $target, headers => [ $t->credential, $type,
        'Content-Length: ' . length body($n + 100) ]));
    $c->write($head . 'x' x $n);

    return $c;
}

sub settles {
    my ($low, $high, $what) = @_;

    return ok($t->wait_for(sub {
        my $n = metric('spool_bytes');
        return $n >= $low && $n <= $high;
    }), $what) || diag metric('spool_bytes');
}


is(metric('spool_limit_bytes'), 4 << 20, 'the limit is told');
is(metric('spool_bytes'), 0, 'nothing is spooled');

my $body = body(3_000_000);
my $r = $t->post($target, body => $body, headers => [ $type ]);
is($r->status, 200, 'what has room passes');
my ($seen) = $t->up->requests(qr/upload/);
is($seen->{sha256}, sha256_hex($body), 'byte for byte');
settles(0, 0, 'and leaves nothing');

# at the bound

my $one = hold(3_000_000);
settles(2_900_000, 3_100_000, 'an upload on its way is counted');

$t->up->mark;
$r = $t->post($target, body => $body, headers => [ $type ]);
is($r->status, 503, 'what has no room beside it is refused');
is($r->json->{code}, 'GATEWAY_OVERLOADED', 'as too much');
is($r->header('Retry-After'), 1, 'for the moment');
like($r->json->{message}, qr/sandbox_spool_limit/, 'and by which limit');
is(scalar($t->up->requests(qr/upload/)), 0, 'upstream saw nothing');
is(metric('spool_refused_total'), 1, 'it is counted');
settles(2_900_000, 3_100_000, 'and holds nothing');

$r = $t->post($target, body => body(500_000), headers => [ $type ]);
is($r->status, 200, 'what still has room passes');

my $small = $t->post('/v1/sandboxes/s1/proxy/44772/command', body => '{"command":"ls"}');
is($small->status, 200, 'other operations are not concerned');

# the client leaves

$one->close;
settles(0, 0, 'a client that left gives its share back');
is($t->post($target, body => $body, headers => [ $type ])->status, 200,
   'and then there is room');

# refused ones, and those that end badly

$r = $t->post($target, body => $body =~ s{/workspace}{/etc}r, headers => [ $type ]);
is($r->status, 403, 'one is denied');
$r = $t->post($target, body => substr($body, 0, -20), headers => [ $type ]);
is($r->status, 400, 'one is broken off');
settles(0, 0, 'neither leaves anything');

# a worker dies

my @held = map { hold(1_000_000) } 1 .. 3;
settles(2_900_000, 3_100_000, 'three are on their way');
kill 'KILL', $t->worker_pids;
settles(0, 0, 'a killed worker\'s shares are given back by its successor');
is($t->post($target, body => $body, headers => [ $type ])->status, 200, 'and can be used');
$_->close for @held;

$t->stop;
done_testing;
