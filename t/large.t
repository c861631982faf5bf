#!/usr/bin/perl

# Much output: the capture limit counts what is over it, truly; without a limit
# 100 MB are recorded to the last byte; the client gets all of it either way.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA;
use FakeUpstream;
use SandboxTest;
use Test::More;

my $MIB = 1 << 20;

my $t = SandboxTest->new(locations => <<'EOF')->start;
location /v1/sandboxes/all {
    sandbox on;
    sandbox_capture_limit 0;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_http_version 1.1;
    proxy_set_header Host $sandbox_upstream_host;
    proxy_buffering off;
}
location /v1/sandboxes/few {
    sandbox on;
    sandbox_capture_limit 100;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_http_version 1.1;
    proxy_set_header Host $sandbox_upstream_host;
    proxy_buffering off;
}
EOF

my $up = $t->up;
my $line = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.' x 16;
my $text = "$line\n";

# The default: the first 16 MiB, and a true count of the rest.

$t->sandbox('s1');
my ($e, $got) = produce('s1', 20 * 1024);
my $total = 20 * 1024 * length $text;

is($e->{status}, 'succeeded', '20 MiB of output under the default limit');
is(length $got, 16 * $MIB, 'the first 16 MiB are kept');
ok($got eq substr($text x 20_480, 0, 16 * $MIB), 'byte for byte');
is($e->{command}{output_complete}, 0, 'the record says that it was cut');
is($e->{command}{history_storage_state}, 'truncated_by_policy', 'and why');
is($e->{result}{stdout_total_bytes}, $total, 'with the true size')
    or diag($e->{result_json});
is($e->{result}{output_dropped_bytes}, $total - 16 * $MIB,
   'and a true count of the rest');

# A limit that cuts inside both streams counts them together.

$t->sandbox('few1');
$up->script('POST /v1/sandboxes/few1', FakeUpstream::stream(
    FakeUpstream::event('init', text => 'c' x 32),
    FakeUpstream::event('stdout', text => 'o' x 79),
    FakeUpstream::event('stderr', text => 'e' x 79),
    FakeUpstream::event('stdout', text => 'o' x 79),
    FakeUpstream::event('execution_complete', execution_time => 1)));
my $r = $t->post('/v1/sandboxes/few1/proxy/44772/command',
                 body => '{"command":"x"}');
$e = $t->record($r);
is(length($t->history->output($e->{event_id}, 'stdout', 'few1'))
   + length($t->history->output($e->{event_id}, 'stderr', 'few1')), 100,
   'sandbox_capture_limit counts both streams together');
is($e->{result}{output_dropped_bytes}, 140, 'and what is over it');

# No limit.

$t->sandbox('all1');
my $before = rss();
($e, $got) = produce('all1', 100 * 1024);
is($e->{status}, 'succeeded', '100 MB without a limit');
is(length $got, 100 * 1024 * length $text, 'all of it is kept');
is(Digest::SHA::sha256_hex($got), expected_digest(100 * 1024),
   'to the last byte');
is($e->{command}{output_complete}, 1, 'complete');
is($e->{command}{history_storage_state}, 'complete', 'and said so');
cmp_ok(rss() - $before, '<', 64 * 1024,
       'the worker did not grow by 64 MiB for it (KiB)');

$t->stop;
done_testing;


# A command that prints n lines; its record and what was recorded.

sub produce {
    my ($sandbox, $n) = @_;

    my $event = FakeUpstream::event('stdout', text => $line);
    my $frame = FakeUpstream::Connection::encode_event($event) . "\n\n";
    my $per = 64;

    $up->script("POST /v1/sandboxes/$sandbox", FakeUpstream::stream_head(),
        [ event => FakeUpstream::event('init', text => 'c' x 32) ],
        [ repeat => $n / $per, [ chunk => $frame x $per ] ],
        [ event => FakeUpstream::event('execution_complete',
                                       execution_time => 9) ],
        [ chunk => '' ]);

    my ($sha, $bytes) = (Digest::SHA->new(256), 0);
    my $r = $t->post("/v1/sandboxes/$sandbox/proxy/44772/command",
        body => '{"command":"yes"}', timeout => 60,
        on_data => sub { $bytes += length $_[0] });

    ok($r->complete, "$n lines passed");
    cmp_ok($bytes, '>=', $n * length $frame, 'all of them to the client');

    my $e = $t->record($r, sandbox => $sandbox, timeout => 60);

    return ($e, $t->history->output($e->{event_id}, 'stdout', $sandbox));
}


sub expected_digest {
    my $n = shift;

    my $sha = Digest::SHA->new(256);
    $sha->add($text x 1024) for 1 .. $n / 1024;

    return $sha->hexdigest;
}


# Resident memory of the worker in KiB.

sub rss {
    my ($pid) = $t->worker_pids;

    return SandboxTest::read_file("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m
           ? $1 : 0;
}
