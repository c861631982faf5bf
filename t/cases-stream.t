#!/usr/bin/perl

# Field cases of streaming that need sizes or times of their own, in small with
# T_SCALE=1 and in full from T_SCALE=10 on (make soak).  The others are in
# t/stream.t, t/large.t and t/record.t; those of live streams in t/cases-live.t.

use strict;
use warnings;

use Compress::Zlib ();
use Digest::SHA;
use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;
use Time::HiRes qw(time sleep);

my $FULL = ($ENV{T_SCALE} // 1) >= 10;
my $MIB = 1 << 20;

# How much a worker may grow, in KiB: its buffers, and what waits for the helper.
my $GROWTH = 24 * 1024;

# C024: nobody has said proxy_buffering off here.  C028: limits of plain requests
# are short, the one of streams long, or (brief) the other way round.
my $common = 'sandbox on; proxy_pass http://opensandbox$sandbox_upstream_uri;'
             . ' proxy_http_version 1.1; proxy_set_header Host'
             . ' $sandbox_upstream_host;';
my $plain = $FULL ? '' : 'send_timeout 1s; keepalive_timeout 1s;'
    . ' client_body_timeout 1s;'
    . ' proxy_connect_timeout 1s; proxy_send_timeout 1s;';

my $t = SandboxTest->new(locations => <<"EOF_CONF")->start;
        location /v1/sandboxes/buffered { $common proxy_buffering on; }
        location /v1/sandboxes/temp {
            $common proxy_buffering on; sendfile on; tcp_nopush on;
            proxy_buffers 4 8k; proxy_busy_buffers_size 16k;
        }
        location /v1/sandboxes/gzip {
            $common proxy_buffering on; gzip on; gzip_types *;
            gzip_min_length 0; gzip_proxied any;
        }
        location /v1/sandboxes/quiet {
            $common $plain proxy_read_timeout 1h;
        }
        location /v1/sandboxes/brief { $common proxy_read_timeout 1s; }
EOF_CONF

my $up = $t->up;
my @head = (FakeUpstream::event('init', text => 'c' x 32),
            FakeUpstream::event('ping', text => 'pong'));
my $done = FakeUpstream::event('execution_complete', execution_time => 3);

$t->sandbox($_) for qw(s1 buffered temp gzip quiet brief);


# --- C024: events pass at once though responses are buffered --------------------------

for my $accel ('', 'X-Accel-Buffering: no', 'X-Accel-Buffering: yes') {
    for my $type ('text/event-stream', 'TEXT/EVENT-STREAM',
                  'Text/Event-Stream; Charset=UTF-8')
    {
        # ended by the connection's end: nginx would wait for a whole buffer
        my @lines = ("Content-Type: $type", $accel || ());
        my $name = join ', ', @lines;

        $up->script('POST /v1/sandboxes/buffered/proxy/44772/command',
            [ send => join "\r\n", 'HTTP/1.1 200 OK', @lines, '', '' ],
            [ pause => 0.05 ],
            [ send => FakeUpstream::Connection::encode_event($head[0]) . "\n\n" ],
            [ pause => 0.05 ],
            [ send => qq({"type":"stdout","text":"x","timestamp":1}\n\n) ],
            [ 'hang' ]);
        my $c = start('buffered');
        my $r = $c->response(head_only => 1, timeout => 5);
        is($r->status, 200, "C024: the head is not held back: $name");
        ok(until_seen($c, qr/"text":"x"/), 'nor a small event');
        $c->close;
    }
}


# --- C026: downloads of any size, through buffers, files and filters ------------------

for my $sandbox (qw(s1 buffered temp gzip)) {
    for my $n (1, (32 << 10) - 1, 60 << 10, (64 << 10) + 1, 100 << 10,
               ($FULL ? 100 : 12) * $MIB)
    {
        my $block = join '', map { pack 'N', $_ * 2_654_435_761 % 4_294_967_296 }
                    1 .. 16_384;
        my $bytes = $n > length $block ? $block x ($n / length $block)
                    . substr $block, 0, $n % length $block : substr $block, 0, $n;
        my $got = Digest::SHA->new(256);
        my $first = 1;

        $up->script("GET /v1/sandboxes/$sandbox/proxy/44772/files/download",
            FakeUpstream::answer(200, $bytes,
                                 'Content-Type: application/octet-stream'));

        my ($z) = Compress::Zlib::inflateInit(-WindowBits => 31);
        my $r = $t->get("/v1/sandboxes/$sandbox/proxy/44772/files/download?path=/a",
            timeout => 120,
            headers => [ $sandbox eq 'gzip' ? 'Accept-Encoding: gzip' : () ],
            on_data => sub {
                # so slow that nginx needs its files
                sleep 0.3 if $first && $n > $MIB;
                $first = 0;
                $got->add($sandbox ne 'gzip' ? $_[0]
                          : scalar $z->inflate("$_[0]"));
            });

        is($got->hexdigest, Digest::SHA::sha256_hex($bytes),
           "C026: $n bytes to $sandbox arrive whole");
        is($r->header('Content-Encoding') // '', $sandbox eq 'gzip' ? 'gzip' : '',
           'as they were to be sent');
        is($t->record($r)->{wire}{bytes_out}, $n, 'their number is on record');
    }
}

like($t->log_text, qr/buffered to a temporary file/,
     'some of them by way of a file');


# --- C027: a large download leaves no trace in memory ---------------------------------

{
    my $size = ($FULL ? 4096 : 96) * $MIB;
    my $block = join '', map { chr($_ * 7 & 255) } 0 .. 65_535;
    my $n = $size / length $block;

    $up->script('GET /v1/sandboxes/s1/proxy/44772/files/download',
        [ send => "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
                  . "Content-Length: $size\r\n\r\n" ],
        [ repeat => $n, [ send => $block ] ]);

    my ($before, $journal) = (high_water(), journal());
    my $want = Digest::SHA->new(256);
    my $got = Digest::SHA->new(256);
    my $rest = 0;
    $want->add($block) for 1 .. $n;

    my $r = $t->get('/v1/sandboxes/s1/proxy/44772/files/download?path=/w/big',
        timeout => 600, on_data => sub {
            $got->add($_[0]);
            # a reader who is slow at the beginning: nothing piles up for it
            sleep 0.05 if $rest++ < 20;
        });

    ok($r->complete && $r->{length} == $size,
       'C027: a download of ' . $size / $MIB . ' MiB');
    my $digest = $want->hexdigest;
    is($got->hexdigest, $digest, 'byte for byte');
    cmp_ok(high_water() - $before, '<', $GROWTH,
           'and the worker does not grow with it (KiB)');
    cmp_ok(high_water(), '<', 256 * 1024, 'nor to the 256 MiB of a container');

    my $e = $t->record($r, timeout => 30);
    is($e->{wire}{bytes_out}, $size, 'its length is on record');
    cmp_ok(journal() - $journal, '<', $MIB, 'its bytes are not');
}


# --- C028: quiet for long ---------------------------------------------------------------

{
    my $quiet = $FULL ? 900 : 4;

    $up->script('POST /v1/sandboxes/quiet/proxy/44772/command',
        FakeUpstream::stream_head(), [ event => $head[0] ],
        [ pause => $quiet ], [ event => $done ], [ chunk => '' ]);
    my $c = start('quiet');

    # meanwhile the limit for streams of another location fires
    $up->script('POST /v1/sandboxes/brief/proxy/44772/command',
        FakeUpstream::stream_head(), [ event => $head[0] ], [ 'hang' ]);
    my $r = $t->post('/v1/sandboxes/brief/proxy/44772/command',
                     body => '{"command":"x"}');
    ok(!$r->complete, 'C028: a stream over its own limit is cut');
    my $e = $t->record($r);
    is($e->{status}, 'unknown', 'how it ended is not known');
    is($e->{wire}{reason}, 'upstream_timeout', 'the limit was ours');

    # the same where responses are buffered
    $up->script('GET /v1/sandboxes/brief/proxy/44772/files/download',
        [ send => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf" ],
        [ 'hang' ]);
    $r = $t->get('/v1/sandboxes/brief/proxy/44772/files/download?path=/x');
    ok(!$r->complete, 'so is a download');
    is($t->record($r)->{wire}{reason}, 'upstream_timeout', 'by us too');

    $r = $c->response(timeout => $quiet + 30);
    ok($r->complete, "C028: a stream lives through $quiet s of silence");
    like($r->content, qr/execution_complete/, 'to its end');
    $e = $t->record($r);
    is($e->{status}, 'succeeded', 'a good run');
    cmp_ok($e->{duration_ms}, '>=', $quiet * 1000 - 100, 'of that length');
}


# --- C029: a line of 20 MiB -------------------------------------------------------------

{
    my $size = 20 * $MIB;
    my $line = substr('0123456789abcdef' x ($size / 16), 0, $size);
    my $json = qq({"type":"stdout","text":"$line","timestamp":1}\n\n);

    # its second half waits until the client has the first
    $up->script('POST /v1/sandboxes/s1/proxy/44772/command',
        FakeUpstream::stream_head(), [ event => $head[0] ],
        [ chunk => substr $json, 0, $size / 2 ], [ pause => 1 ],
        [ chunk => substr $json, $size / 2 ],
        [ event => FakeUpstream::event('stderr', text => 'after') ],
        [ event => $done ], [ chunk => '' ]);

    my ($before, $half, $bytes, $began) = (high_water(), undef, 0, time);
    my $r = $t->post('/v1/sandboxes/s1/proxy/44772/command', timeout => 60,
        body => '{"command":"x"}',
        on_data => sub {
            $bytes += length $_[0];
            $half //= $bytes if $bytes > $size / 2 - 100_000
                                && $bytes <= $size / 2 + 1000;
        });
    ok($r->complete && $bytes > $size, 'C029: a line of 20 MiB passes');
    ok(defined $half, 'its first half before its end has come');
    cmp_ok(high_water() - $before, '<', $GROWTH + 16 * 1024,
           'through bounded memory');

    my $e = $t->record($r, timeout => 30);
    is($e->{status}, 'succeeded', 'a good run');
    my $kept = $t->history->output($e->{event_id}, 'stdout', 's1');
    cmp_ok(length $kept, '<=', 16 * $MIB, 'of which the beginning is kept');
    ok(length $kept > 15 * $MIB && $kept eq substr($line, 0, length $kept),
       'true to the byte');
    is($e->{command}{history_storage_state}, 'truncated_by_policy',
       'with a mark that it was cut');
    is($e->{result}{stdout_total_bytes}, $size + 1, 'and its true length');
    is($e->{result}{stderr_total_bytes}, 6, 'the event behind it is read');
}


# --- C032: a progress bar without an end of line --------------------------------------------

{
    my $n = $FULL ? 1_000_000 : 10_000;
    my $bar = join '', map { sprintf "\\r%3d%%", $_ % 101 } 1 .. 100;
    my $text = $bar =~ s/\\r/\r/gr;
    my $piece = qq({"type":"stdout","text":"$bar","timestamp":1}\n\n);

    $up->script('POST /v1/sandboxes/s1/proxy/44772/command',
        FakeUpstream::stream_head(), [ event => $head[0] ],
        [ repeat => $n / 100, [ chunk => $piece ] ],
        [ event => $done ], [ chunk => '' ]);
    my $r = $t->post('/v1/sandboxes/s1/proxy/44772/command', timeout => 60,
                     body => '{"command":"x"}');
    my $e = $t->record($r, timeout => 30);
    my $kept = $t->history->output($e->{event_id}, 'stdout', 's1');
    is($kept, "$text\n" x ($n / 100), "C032: $n updates of a progress bar");
    my $rows = $t->history->value('s1', 'select count(*) from'
        . " command_output_chunks where event_id = '$e->{event_id}'");
    cmp_ok($rows, '<=', length($kept) / 4096 + 2, 'are few pieces on record');
}


# --- C033: a tail that ends anywhere --------------------------------------------------------

{
    my $first = '{"type":"stdout","text":"one","timestamp":1}' . "\n\n";

    for my $case ([ 'one line feed', "$first\{\"type\":\"stdout\",\"text\":"
                        . "\"tail\",\"timestamp\":1}\n", "one\ntail\n", 0 ],
                  [ 'no line feed', "$first\{\"type\":\"stdout\",\"text\":"
                        . '"tail","timestamp":1}', "one\ntail\n", 0 ],
                  [ 'half a text', "$first\{\"type\":\"stdout\",\"text\":\"ta",
                    "one\nta", 1 ])
    {
        my ($name, $bytes, $want, $incomplete) = @$case;

        $up->script('POST /v1/sandboxes/s1/proxy/44772/command',
            FakeUpstream::stream_head(), [ event => $head[0] ],
            [ chunk => $bytes ], [ 'close' ]);
        my $r = $t->post('/v1/sandboxes/s1/proxy/44772/command',
                         body => '{"command":"x"}');
        my $e = $t->record($r);
        like($t->history->output($e->{event_id}, 'stdout', 's1'),
             qr/\A\Q$want\E\n?\z/, "C033: $name at the end: the tail is kept");
        is($e->{status}, 'unknown', 'but nothing says that it ended');
        is($e->{result}{incomplete_frame} ? 1 : 0, $incomplete,
           $incomplete ? 'and it is marked' : 'and it is whole');
    }
}


# --- C034, C035: bytes that are no text, characters in pieces ----------------------------------

{
    my $utf8 = "\xe6\x97\xa5\xc3\xa9\xf0\x9f\x98\x80";
    my $body = join '', map { qq({"type":"$_->[0]","text":"$_->[1]","timestamp":1}\n\n) }
        [ init => 'c' x 32 ], [ stdout => $utf8 ], [ stderr => $utf8 ];
    $body .= '{"type":"execution_complete","execution_time":1,"timestamp":1}'
             . "\n\n";

    # a packet for each byte
    $up->script('POST /v1/sandboxes/s1/proxy/44772/command',
        FakeUpstream::stream_head(), (map { [ chunk => $_ ] } split //, $body),
        [ chunk => '' ]);
    my $r = $t->post('/v1/sandboxes/s1/proxy/44772/command',
                     body => '{"command":"x"}');
    my $e = $t->record($r);
    is($t->history->output($e->{event_id}, $_, 's1'), "$utf8\n",
       "C034: characters in pieces on $_") for qw(stdout stderr);

    $body =~ s/\Q$utf8\E/a\xff\xfe\\u0000b/g;
    $up->script('POST /v1/sandboxes/s1/proxy/44772/command',
        FakeUpstream::stream_head(), [ chunk => $body ], [ chunk => '' ]);
    $r = $t->post('/v1/sandboxes/s1/proxy/44772/command',
                  body => '{"command":"x"}');
    is($r->content, $body, 'C035: bytes that are no UTF-8 pass unchanged');
    $e = $t->record($r);
    is($e->{status}, 'succeeded', 'and hide nothing behind them');
    like($t->history->output($e->{event_id}, 'stdout', 's1'),
         qr/\Aa(?:\xff\xfe|(?:\xef\xbf\xbd)+)\0b\n\z/,
         'nor does anything end at the NUL');

    my $json = qx($SandboxProcess::BUILD/sandbox-history show --json --history '$t->{dir}/data/history' $e->{event_id});
    ok(eval { JSON::PP->new->utf8->decode($json) },
       'what sandbox-history says of it is valid JSON') or diag($json);
}


# --- C036: output that grows when it is escaped ------------------------------------------------

{
    my $size = ($FULL ? 8 : 2) * $MIB;
    my $readers = $FULL ? 50 : 8;
    my $frame = '{"type":"stdout","text":"' . '\u0001' x 8191
                . qq(","timestamp":1}\n\n);

    $up->script('POST /v1/sandboxes/s1/proxy/44772/command',
        FakeUpstream::stream_head(), [ event => $head[0] ],
        [ repeat => $size / 8192, [ chunk => $frame ] ],
        [ event => $done ], [ chunk => '' ]);
    my $before = high_water();
    my $r = $t->post('/v1/sandboxes/s1/proxy/44772/command', timeout => 60,
                     body => '{"command":"x"}', on_data => sub { });
    my $e = $t->record($r, timeout => 30);
    my $want = ("\x01" x 8191 . "\n") x ($size / 8192);

    is($e->{result}{stdout_total_bytes}, $size, 'C036: bytes that count sixfold');
    cmp_ok(high_water() - $before, '<', $GROWTH, 'cost the worker no more (KiB)');

    # readers all at once: each has bounded memory, whatever it reads
    my $digest = Digest::SHA::sha256_hex($want);
    my @fh = map {
        open my $fh, '-|:raw', "$SandboxProcess::BUILD/sandbox-history", 'output',
            '--raw', '--history', "$t->{dir}/data/history", $e->{event_id}
            or die "sandbox-history: $!\n";
        [ $fh, Digest::SHA->new(256), 0, $_ ]
    } 1 .. $readers;
    my ($most, @open) = (0, @fh);

    while (@open) {
        @open = grep {
            my $n = read $_->[0], my $bytes, 256 * 1024;
            $_->[1]->add($bytes) if $n;
            $n
        } @open;
        $most = sum_of_children() if sum_of_children() > $most;
    }

    is(scalar(grep { $_->[1]->hexdigest eq $digest } @fh), $readers,
       "$readers readers at once all have it whole");
    cmp_ok($most / $readers, '<', 12 * 1024, 'in bounded memory each (KiB)')
        if $SandboxProcess::BUILD !~ /san$/;
}


# --- C041: compressed all the same ------------------------------------------------------------

{
    my $body = qq({"type":"init","text":"x","timestamp":1}\n\n);
    $up->script('POST /v1/sandboxes/s1/proxy/44772/command',
        FakeUpstream::answer(200, Compress::Zlib::memGzip($body),
            'Content-Type: text/event-stream', 'Content-Encoding: gzip'));
    my $r = $t->post('/v1/sandboxes/s1/proxy/44772/command',
        body => '{"command":"x"}', headers => [ 'Accept-Encoding: gzip' ]);
    is(Compress::Zlib::memGunzip($r->content), $body,
       'C041: an answer that upstream compresses unasked passes');
    is($t->record($r)->{wire}{reason}, 'answer_encoded',
       'and the record says why it is empty');
}

$t->stop;
done_testing;


# Sends a command and leaves the answer to the caller.

sub start {
    my $sandbox = shift;

    my $c = $t->connect;
    $c->write($c->build(POST => "/v1/sandboxes/$sandbox/proxy/44772/command",
                        body => '{"command":"x"}', headers => [ $t->credential ]));

    return $c;
}


sub until_seen {
    my ($c, $pattern) = @_;

    my $deadline = time + 5;

    while ($c->{buf} !~ $pattern) {
        $c->fill($deadline) or return 0;
    }

    return 1;
}


# The most memory that the worker has had, in KiB.

sub high_water {
    my ($pid) = $t->worker_pids;

    return SandboxTest::read_file("/proc/$pid/status") =~ /^VmHWM:\s+(\d+)/m
           ? $1 : 0;
}


# Bytes that were ever written to the journal: its segments go, their numbers grow.

sub journal {
    my $sum = 0;
    $sum += -s $_ // 0 for glob "$t->{dir}/data/journal/*";

    return $sum;
}


# Memory of the readers that this test has started, in KiB.

sub sum_of_children {
    my $sum = 0;

    for my $file (glob '/proc/[0-9]*/status') {
        my $text = SandboxTest::read_file($file);
        next if $text !~ /^PPid:\s+\Q${\ $$}\E$/m || $text !~ /^Name:\s+sandbox-history/m;
        $sum += $1 if $text =~ /^RssAnon:\s+(\d+)/m;
    }

    return $sum;
}
