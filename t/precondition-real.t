#!/usr/bin/perl

# If-Match against a real execd: two clients that read, change and write one file
# lose nothing, and a command that changes it is seen although the history has not
# the content that it left.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use FindBin;
use lib "$FindBin::Bin/lib";

use POSIX ();
use SandboxTest;
use Test::More;

my $ROUNDS = ($ENV{T_SCALE} // 1) >= 10 ? 1000 : 200;
my $t = SandboxTest->new(runtime => 1, workers => 2, location => 'sandbox_locks on;',
    runtime_args => [ '--grace=0', '--no-kernels' ])->start;

my $r = $t->post('/v1/sandboxes', headers => [ 'Content-Type: application/json' ],
    body => '{"image":{"uri":"python:3.11"},"timeout":3600,'
          . '"resourceLimits":{"cpu":"1"},"entrypoint":["tail","-f","/dev/null"]}');
is($r->status, 202, 'a sandbox') or diag($r->content);
my $execd = '/v1/sandboxes/' . $r->json->{id} . '/proxy/44772';
ok($t->wait_for(sub { $t->get("$execd/ping")->status == 200 }), 'it runs');


# --- a command is seen ---------------------------------------------------------------

is(upload('/tmp/a', 'one', undef, 'If-None-Match: *')->status, 200, 'a new file');
is(upload('/tmp/a', 'two', undef, 'If-None-Match: *')->status, 412, 'is there now');
is(upload('/tmp/a', 'two', undef, if_match('one'))->status, 200, 'it is as expected');
$t->post("$execd/command", body => '{"command":"printf three >/tmp/a"}');
is(upload('/tmp/a', 'four', undef, if_match('two'))->status, 412,
   'a command has changed it');
is(read_of('/tmp/a'), 'three', 'and what it wrote is not lost');
is(upload('/tmp/a', 'four', undef, if_match('three'))->status, 200,
   'who knows that may write');
$t->post("$execd/command", body => '{"command":"rm /tmp/a"}');
is(upload('/tmp/a', 'five', undef, if_match('four'))->status, 412, 'it was removed');


# --- no lost update --------------------------------------------------------------------

upload('/tmp/count', '0');
my @pids = map { child() } 1 .. 2;
waitpid($_, 0), is($?, 0, 'a client has done its rounds') for @pids;
is(read_of('/tmp/count'), 2 * $ROUNDS, "$ROUNDS changes each: none is lost");

my ($refused) = $t->get('/console/api/v1/metrics')->content
                =~ /preconditions_failed_total\S* (\d+)$/m;
cmp_ok($refused, '>', 3, 'they were in each other\'s way');
note("$refused of them were refused and tried again");

$t->stop;
done_testing;


sub if_match { 'If-Match: sha256:' . sha256_hex($_[0]) }

sub read_of { $t->get("$execd/files/download?path=$_[0]", conn => $_[1])->content }

sub upload {
    my ($path, $bytes, $conn, @headers) = @_;

    return $t->post("$execd/files/upload", conn => $conn,
        headers => [ 'Content-Type: multipart/form-data; boundary=B', @headers ],
        body => join "\r\n", '--B', 'Content-Disposition: form-data; name="metadata";'
            . ' filename="m"', '', qq({"path":"$path"}), '--B',
            'Content-Disposition: form-data; name="file"; filename="f"', '', $bytes,
            '--B--', '');
}

sub child {
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;

    POSIX::_exit(eval { rounds(); 1 } ? 0 : 1);
}

sub rounds {
    my $conn = $t->connect;

    for (1 .. $ROUNDS) {
        my $status;

        do {
            my $have = read_of('/tmp/count', $conn);
            $status = upload('/tmp/count', $have + 1, $conn, if_match($have))->status;
        } while ($status == 412);

        die "status $status\n" if $status != 200;
    }
}
