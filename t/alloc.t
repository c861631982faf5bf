#!/usr/bin/perl

# The n-th allocation fails, for every n: in a worker the request ends with 500
# or 503 or its connection is closed, in the helper records wait or it ends with
# a word and is started again, in sandbox-history the command says so.  Nothing
# crashes, and nothing that was acknowledged is missing.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use POSIX ();
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $shim = "$SandboxProcess::BUILD/t/shim_alloc.so";
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $every = ($ENV{T_SCALE} // 1) > 1 ? 1 : 7;

plan skip_all => 'the sanitizers have an allocator of their own'
    if qx(ldd $SandboxProcess::BUILD/sandbox-helper) =~ /lib[at]san/;
-e $shim or die "$shim is missing: run make unit\n";

my $dir = File::Temp->newdir('sandbox-t-XXXXXX', TMPDIR => 1);
my $control = "$dir/shim";
my $file;

chmod 0755, "$dir";
open $file, '+>:raw', $control or die "$control: $!\n";
chmod 0666, $control;
control(0);

my $upload = "--B\r\nContent-Disposition: form-data; name=\"metadata\"; "
    . "filename=\"m\"\r\n\r\n{\"path\":\"/w/a\"}\r\n--B\r\nContent-Disposition: "
    . "form-data; name=\"file\"; filename=\"f\"\r\n\r\nhello\r\n--B--\r\n";
my %request = (
    command  => [ POST => "$execd/command", body => '{"command":"echo hi"}' ],
    upload   => [ POST => "$execd/files/upload", body => $upload,
                  headers => [ 'Content-Type: multipart/form-data; boundary=B' ] ],
    info     => [ GET => "$execd/files/info?path=%2Fa" ],
    endpoint => [ GET => '/v1/sandboxes/s1/endpoints/44772' ],
    create   => [ POST => '/v1/sandboxes', body => '{"image":{"uri":"x"}}' ],
    list     => [ GET => '/v1/sandboxes' ],
    refused  => [ POST => "$execd/command", body => '{', token => undef ],
    pty      => [ GET => "$execd/pty/p1/ws", plain => 0, headers => [
        'Connection: Upgrade', 'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' ] ],
);


# --- a worker -----------------------------------------------------------------------

my $t;

{
    local @ENV{qw(LD_PRELOAD SHIM_ALLOC)} = ($shim, $control);

    $t = SandboxTest->new(allow => [
        qr/(?:malloc|calloc|memalign)\(.*failed/ ])->start;
}

$t->sandbox('s1', learn => 1);
$t->record($t->get("$execd/files/info?path=%2Ffirst"));

my ($worker) = $t->worker_pids;
my @passed;

for my $kind (sort keys %request) {
    my (%how, $n, $failed);

    for ($n = 0; $n < 400; $n++) {
        my $how;
        ($how, $failed) = one($kind, $worker, $n);
        last if !$failed;
        $how{$how}++;
    }

    my @wrong = grep { !/^(?:0|101|2..|50[0-4] GATEWAY_\w+)$/ } keys %how;
    push @wrong, '500 GATEWAY_FORBIDDEN' if $how{'500 GATEWAY_FORBIDDEN'};

    # a request that is refused is refused all the same
    @wrong = grep { !/^401 GATEWAY_/ } @wrong if $kind eq 'refused';
    is(join(', ', @wrong), '', "worker, $kind: $n places");
    note(join ', ', map { "$_: $how{$_}" } sort keys %how);
    cmp_ok($n, '>', 2, 'all of them');
    is($failed, 0, 'to the last');
}

is(join(' ', $t->worker_pids), $worker, 'the worker lives');
is($t->post("$execd/command", body => '{"command":"echo"}')->status, 200,
   'and works');
all_on_record('worker');
$t->stop;


# --- the helper ---------------------------------------------------------------------

{
    local @ENV{qw(LD_PRELOAD SHIM_ALLOC)} = ($shim, $control);

    $t = SandboxTest->new(helper => 0, location => 'sandbox_timeout 400ms;');
    $t->start_helper;
    $t->start;
}

$t->sandbox('s1', learn => 1);
$t->record($t->get("$execd/files/info?path=%2Ffirst"));
@passed = ();

my ($places, $ended, $quiet, @wrong, %how) = (0, 0, 0);

for (my $n = 0; $quiet < 3 && $n < 1000; $n += $n < 20 ? 1 : 8 * $every + 1) {
    my $log = length $t->log_text('helper.log');

    # a sandbox of its own: its file is made meanwhile
    $t->sandbox("n$n");
    my $new = "/v1/sandboxes/n$n/proxy/44772";

    control($t->{helper_pid}, $n, 1);
    my $info = $t->get("$execd/files/info?path=%2F$n")->status;
    my $r = $t->post("$execd/command", body => '{"command":"echo hi"}');
    my $last = $t->post("$new/command", body => '{"command":"echo last"}');
    # until it is applied
    $t->wait_for(sub { -e $t->history->path_of("n$n") }, 0.4);
    sleep 0.02;

    if (control(0)) {
        $places++;
        $quiet = 0;

    } else {
        $quiet++;
    }

    push @wrong, "info $info" if $info != 200;

    for ($r, $last) {
        my $how = $_->status == 200 ? 200
            : $_->status . ' ' . ($_->code // 'without an envelope');
        $how{$how}++;
        push @wrong, $how if $how !~ /^200$|^503 GATEWAY_RECORDER_UNAVAILABLE$/;
        push @passed, [ $_->header('X-Operation-Id'), "n=$n" ] if $how eq '200';
    }

    next if waitpid($t->{helper_pid}, POSIX::WNOHANG) == 0;

    # it has ended: in good order, with a word

    $ended++;
    push @wrong, "n=$n: the helper ended by " . ($? & 127 ? 'signal ' : 'status ')
                 . ($? & 127 || $? >> 8)
        if $? & 127 || $? == 0;
    push @wrong, "n=$n: the helper has ended without a word"
        if $log == length $t->log_text('helper.log');

    local @ENV{qw(LD_PRELOAD SHIM_ALLOC)} = ($shim, $control);
    $t->start_helper;
    $t->wait_for(sub { $t->post("$execd/command",
        body => '{"command":"echo"}')->status == 200 });
}

is(join('; ', @wrong), '', "helper: $places places, it ended $ended times");
note(join ', ', map { "$_: $how{$_}" } sort keys %how);
cmp_ok($places, '>', 15, 'many of them');
all_on_record('helper');
is(join('; ', $t->history->broken), '', 'helper: integrity_check: ok');


# --- sandbox-history ----------------------------------------------------------------

my $history = "$SandboxProcess::BUILD/sandbox-history";
my @base = ($history, '--history', $t->dir . '/data/history');
my $database = $t->history->path_of('s1');
my $event = $passed[0][0];

for my $command ([ @base, 'list', 's1', '--limit', 5 ], [ @base, 'show', $event ],
                 [ @base, 'tail', 's1' ],
                 [ $history, '--database', $database, 'query',
                   '--after-change-seq', 0, '--limit', 10, '--max-bytes', 10000 ],
                 [ $history, '--database', $database, 'get-operation',
                   '--event-id', $event ])
{
    my $name = $command->[3];
    my $want = command($command, 1_000_000);
    my (%end, @bad, $n);

    is($want->{status}, 0, "sandbox-history $name") or diag($want->{err});

    for ($n = 0; $n < 4000; $n += $n < 20 ? 1 : 8 * $every + 1) {
        my $got = command($command, $n);
        last if !$got->{failed};
        $end{$got->{status}}++;
        push @bad, "n=$n: $got->{status}" if $got->{status} =~ /signal/;
        push @bad, "n=$n: nothing said" if $got->{status} && "$got->{err}$got->{out}"
                                                            !~ /\S/;
        # what it says without an error is all of it
        push @bad, "n=$n: cut" if !$got->{status} && $got->{out} ne $want->{out};
    }

    is(join('; ', @bad), '', "$name: $n places");
    note(join ', ', map { "$_: $end{$_}" } sort keys %end);
}

$t->stop;
done_testing;


# A program whose n-th allocation fails.

sub command {
    my ($command, $n) = @_;

    control(0);
    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        @ENV{qw(LD_PRELOAD SHIM_ALLOC)} = ($shim, $control);
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$dir/out";
        open STDERR, '>', "$dir/err";
        control($$, $n, 1);
        { exec { $command->[0] } @$command }
        POSIX::_exit(127);
    }

    waitpid $pid, 0;
    my $status = $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;

    return { status => $status, failed => control(0),
             out => SandboxTest::read_file("$dir/out"),
             err => SandboxTest::read_file("$dir/err") };
}


# One request while the n-th allocation of a process fails: how it ended, and
# whether one has failed.

sub one {
    my ($kind, $pid, $n) = @_;

    my ($method, $target, %o) = @{ $request{$kind} };
    my $c = $t->connect;

    control($pid, $n, 1);
    my $r = eval { $t->request($method, $target, %o, conn => $c, timeout => 6,
                               head_only => $kind eq 'pty') };
    eval { $c->body($r) } if $r && $kind eq 'pty' && $r->status != 101;
    # what comes behind the answer
    $c->close;
    sleep 0.005;
    my $failed = control(0);

    return ('0', $failed) if !$r || !$r->status;

    my $id = $r->header('X-Operation-Id');
    push @passed, [ $id, $kind ]
        if $r->status < 300 && $id && $kind =~ /^(?:command|upload|pty|create)$/;

    my $code = $r->status >= 300 ? ' ' . ($r->code // 'without an envelope') : '';

    return ($r->status . $code, $failed);
}


# Says whom it concerns; how many allocations have failed since the last time.

sub control {
    my ($pid, $pass, $fail) = @_;

    sysseek $file, 0, 0;
    my $n = sysread $file, my $old, 32;
    my $failed = $n ? (unpack 'q4', $old)[3] : 0;

    # the process id last: it switches it on
    sysseek $file, 0, 0;
    syswrite $file, pack 'q4', 0, $pass // 0, $fail // 0, 0;
    sysseek $file, 0, 0;
    syswrite $file, pack 'q', $pid;

    return $failed;
}


# What was answered and has to be on record is, once, and everything has ended.

sub all_on_record {
    my $name = shift;

    my (%have, @open);

    $t->wait_for(sub {
        my @rows = $t->history->rows('select event_id, operation_type, status'
                                     . ' from history_events');
        %have = ();
        $have{$_->[0]}++ for @rows;
        @open = grep { $_->[2] eq 'started' } @rows;
        return !@open && !grep { !$have{$_->[0]} } @passed;
    }, 12);

    is(join(' ', map { "@$_" } @open), '', "$name: every record has its end");
    is(join(' ', map { "@$_" } grep { !$have{$_->[0]} } @passed), '',
       scalar(@passed) . ' that were answered are on record');
    is(join(' ', grep { $have{$_} > 1 } keys %have), '', 'once');
}
