#!/usr/bin/perl

# A process with the Python SDK, one with the JavaScript SDK and a raw client write
# one file at the same time, and another reads it: with locks nobody ever sees what
# two of them have written.  50 times each, and 1,000 from T_SCALE=10 on.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use POSIX ();
use SandboxInterop;
use SandboxTest;
use Test::More;

my $TIMES = ($ENV{T_SCALE} // 1) >= 10 ? 1000 : 50;
my $PATH = '/tmp/shared';
my $t = SandboxTest->new(runtime => 1, workers => 2,
    location => 'sandbox_locks on; sandbox_limits on;',
    server => 'sandbox_timeout 5s;')->start;

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

is_deeply(\@torn, [], 'every reading is of one writing');
cmp_ok(($seen{py} // 0) + ($seen{js} // 0) + ($seen{rw} // 0), '>', 3,
       'and there were some');
note(join ', ', map { "$_: $seen{$_}" } sort keys %seen);

my @writes = grep { $_->{operation_type} eq 'file.write' }
             $t->records($id, count => 3 * $TIMES, timeout => 30);
is(scalar(grep { $_->{status} eq 'succeeded' } @writes), 3 * $TIMES + 1,
   'all are on record');

$t->stop;
done_testing;


sub start {
    my ($name, $do) = @_;

    my $pid = fork // die "fork: $!\n";
    return $pid => $name if $pid;

    eval { $do->() };
    POSIX::_exit(1);
}

sub exec_sdk {
    $ENV{OPEN_SANDBOX_API_KEY} = $t->token;
    delete @ENV{qw(http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY)};
    exec @_, '127.0.0.1:' . $t->port, $id, $PATH, $TIMES;
}

sub write_once {
    my ($n, $conn) = @_;

    my $r = $t->post("$execd/files/upload", conn => $conn,
        headers => [ 'Content-Type: multipart/form-data; boundary=B' ],
        body => join "\r\n", '--B', 'Content-Disposition: form-data; name="metadata";'
            . ' filename="m"', '', qq({"path":"$PATH"}), '--B',
            'Content-Disposition: form-data; name="file"; filename="f"', '',
            sprintf("rw %06d\n", $n) x (2000 + $n % 7 * 500), '--B--', '');
    die 'upload: ' . $r->status . "\n" if $r->status != 200;
}
