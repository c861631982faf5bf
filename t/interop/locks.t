#!/usr/bin/perl

# A process with the Python SDK, one with the JavaScript SDK and a raw client write
# one file at the same time, and another reads it: with locks nobody ever sees what
# two of them have written.  Then they count in one file, by reading it and writing it
# again: with If-Match no update is lost.  Who had how many turns is printed.  50 times
# each, and 1,000 from T_SCALE=10 on.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Digest::SHA qw(sha256_hex);
use IO::Handle;
use POSIX ();
use SandboxInterop;
use SandboxTest;
use Test::More;

my $TIMES = ($ENV{T_SCALE} // 1) >= 10 ? 1000 : 50;
my $PATH = '/tmp/shared';
my $t = SandboxTest->new(runtime => 1, workers => 2,
    helper_args => [ '--history-size', 'off' ],
    location => 'sandbox_locks on; sandbox_limits on;',
    server => 'sandbox_timeout 5s; keepalive_requests 1000000;')->start;

my $r = $t->post('/v1/sandboxes', headers => [ 'Content-Type: application/json' ],
    body => '{"image":{"uri":"python:3.11"},"timeout":3600,'
          . '"resourceLimits":{"cpu":"1"},"entrypoint":["tail","-f","/dev/null"]}');
is($r->status, 202, 'a sandbox') or diag($r->content);
my $id = $r->json->{id};
my $execd = "/v1/sandboxes/$id/proxy/44772";
ok($t->wait_for(sub { $t->get("$execd/ping")->status == 200 }), 'it runs');

my $python = SandboxInterop::python('venv', 'requirements.txt');
my ($node, $program) = SandboxInterop::node('write.mjs');

write_once('0', $t->connect);

my %running = map { start(@$_) } (
    [ 'the Python SDK', sub { exec_sdk($python, "$FindBin::Bin/write.py") } ],
    [ 'the JavaScript SDK', sub { exec_sdk($node, $program) } ],
    [ 'a raw client', sub {
        my $c = $t->connect;
        write_once($_, $c) for 1 .. $TIMES;
        POSIX::_exit(0);
    } ]);

my (%seen, @torn);
my $conn = $t->connect;

while (%running) {
    # those that write go first
    my $r = $t->get("$execd/files/download?path=$PATH", conn => $conn,
                    headers => [ 'X-Sandbox-Lock-Timeout: 500ms' ]);
    my $text = $r->content;

    if ($r->status == 423) {
        $seen{locked}++;

    } elsif ($text =~ /\A((py|js|rw) \d{6}\n)\1{1999,}\z/) {
        $seen{$2}++;

    } else {
        push @torn, $r->status . ' ' . substr $text, 0, 40;
    }

    my $pid = waitpid -1, POSIX::WNOHANG();

    if ($pid > 0 && $running{$pid}) {
        is($?, 0, "$running{$pid}: $TIMES times");
        delete $running{$pid};
    }
}

sub fair {
    my ($what, $records) = @_;

    my (%n, %waits, $run, $longest, $last);
    my @turns = map { [ $_->{actor_id}, $_->{result}{lock_waited_us} // 0 ] }
                grep { $_->{status} eq 'succeeded' && ($_->{actor_id} // '') =~ /^(?:py|js|rw)$/ }
                sort { $a->{completed_at} cmp $b->{completed_at} } @$records;

    # as long as all three had something to do
    for (@turns) {
        my ($who, $waited) = @$_;

        $run = $last && $who eq $last ? $run + 1 : 1;
        $longest = $run if $run > ($longest // 0);
        $last = $who;
        push @{ $waits{$who} }, $waited / 1000;
        last if ++$n{$who} == $TIMES;
    }

    diag("$what: " . join '; ', map {
        my @w = sort { $a <=> $b } @{ $waits{$_} };
        sprintf '%s %d turns, waited p50 %.1f ms, p99 %.1f ms, at most %.1f ms', $_, scalar @w,
                $w[$#w / 2], $w[$#w * 0.99], $w[-1];
    } sort keys %waits);
    diag("$what: at most " . ($longest // 0) . ' turns of one of them in a row');
}

is_deeply(\@torn, [], 'every reading is of one writing');
cmp_ok(($seen{py} // 0) + ($seen{js} // 0) + ($seen{rw} // 0), '>', 3,
       'and there were some');
note(join ', ', map { "$_: $seen{$_}" } sort keys %seen);

# those that are not in `but`, as soon as so many have succeeded

sub writes {
    my ($n, %but) = @_;

    my @writes;

    $t->wait_for(sub {
        @writes = grep { $_->{operation_type} eq 'file.write' && !$but{ $_->{event_id} } }
                  $t->records($id);
        return grep({ $_->{status} eq 'succeeded' } @writes) >= $n;
    }, 60);

    return @writes;
}

my @writes = writes(3 * $TIMES + 1);
is(scalar(grep { $_->{status} eq 'succeeded' } @writes), 3 * $TIMES + 1,
   'all are on record')
    or diag(join "\n", map { "$_->{operation_type} $_->{status} " . ($_->{event_data} // '') }
            grep { $_->{operation_type} =~ /^gateway/ || $_->{status} ne 'succeeded' }
            $t->records($id));
fair('writing', \@writes);


# --- nobody's update is lost ---------------------------------------------------------

$PATH = '/tmp/count';
$r = upload('py 0 js 0 rw 0', $conn = $t->connect);
is($r->status, 200, 'nobody has counted yet') or diag($r->content);

(undef, my $count) = SandboxInterop::node('count.mjs');
my %again;

%running = map { start(@$_) } (
    [ 'the Python SDK', sub { exec_sdk($python, "$FindBin::Bin/count.py") } ],
    [ 'the JavaScript SDK', sub { exec_sdk($node, $count) } ],
    [ 'a raw client', sub {
        my $c = $t->connect;
        my $n = 0;

        # the first time surely too late: another one has counted since
        my $old = reading($c);
        select undef, undef, undef, 0.01 while reading($c) eq $old;
        die "not too late\n" if count_once($c, $old);
        $n++;

        for (1 .. $TIMES) {
            $n++ until count_once($c, reading($c));
        }

        print "$n\n";
        POSIX::_exit(0);
    } ]);

while ((my $pid = waitpid -1, 0) > 0) {
    my $name = delete $running{$pid} // next;
    is($?, 0, "$name: counts to $TIMES");
    ($again{$name}) = SandboxTest::read_file("$t->{dir}/out.$pid") =~ /^(\d+)$/m;
    last if !%running;
}

is($t->get("$execd/files/download?path=$PATH", conn => $conn)->content,
   "py $TIMES js $TIMES rw $TIMES", 'no update is lost');

my @counts = writes(3 * $TIMES + 1, map { $_->{event_id} => 1 } @writes);
my @late = grep { ($_->{result}{error_code} // '') eq 'GATEWAY_PRECONDITION_FAILED' } @counts;

is(scalar(grep { $_->{status} eq 'succeeded' } @counts), 3 * $TIMES + 1,
   'all that counted are on record');
cmp_ok(scalar @late, '>', 0, 'and those that came too late');
fair('counting', \@counts);
diag('counting: too late were ' . join ', ', map { "$_ " . ($again{$_} // '?') . ' times' }
                                             sort keys %again);

$t->stop;
done_testing;


sub start {
    my ($name, $do) = @_;

    my $pid = fork // die "fork: $!\n";
    return $pid => $name if $pid;

    open STDOUT, '>', "$t->{dir}/out.$$";
    STDOUT->autoflush;
    eval { $do->() };
    warn $@;
    POSIX::_exit(1);
}

sub exec_sdk {
    $ENV{OPEN_SANDBOX_API_KEY} = $t->token;
    delete @ENV{qw(http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY)};
    exec @_, '127.0.0.1:' . $t->port, $id, $PATH, $TIMES;
}

sub upload {
    my ($text, $conn, @headers) = @_;

    return $t->post("$execd/files/upload", conn => $conn,
        headers => [ 'Content-Type: multipart/form-data; boundary=B', 'X-Actor-Id: rw',
                     @headers ],
        body => join "\r\n", '--B', 'Content-Disposition: form-data; name="metadata";'
            . ' filename="m"', '', qq({"path":"$PATH"}), '--B',
            'Content-Disposition: form-data; name="file"; filename="f"', '', $text,
            '--B--', '');
}

sub write_once {
    my ($n, $conn) = @_;

    my $r = upload(sprintf("rw %06d\n", $n) x (2000 + $n % 7 * 500), $conn);
    die 'upload: ' . $r->status . "\n" if $r->status != 200;
}

sub reading {
    my $conn = shift;

    my $got = $t->get("$execd/files/download?path=$PATH", conn => $conn);
    die 'download: ' . $got->status . ' ' . $got->content . "\n" if $got->status != 200;

    return $got->content;
}

# Counts from what was read; 0: somebody else was faster.

sub count_once {
    my ($conn, $text) = @_;

    my $r = upload($text =~ s/rw (\d+)/'rw ' . ($1 + 1)/er, $conn,
                   'If-Match: sha256:' . sha256_hex($text));

    die 'upload: ' . $r->status . ' ' . $r->content . "\n" if $r->status !~ /^(?:200|412)$/;

    return $r->status == 200;
}
