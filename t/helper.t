#!/usr/bin/perl

# sandbox-helper by itself: a worker's frames over its socket, the history files
# read with the sqlite3 program.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Fcntl qw(F_GETFD F_SETFD FD_CLOEXEC);
use File::Temp qw(tempdir);
use HistoryCli;
use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use POSIX qw(:sys_wait_h);
use SandboxFrames qw(op_id frame);
use SandboxHistory;
use SandboxProcess;
use Test::More;
use Time::HiRes qw(sleep time);

my $HELPER = "$SandboxProcess::BUILD/sandbox-helper";
my $root = tempdir('/tmp/sandbox-h-XXXXXX', CLEANUP => 1);
my ($number, $ops, %running) = (0, 0);

chmod 0755, $root;


# --- a helper ---------------------------------------------------------------

sub slurp {
    open my $fh, '<:raw', $_[0] or return '';
    local $/;
    return <$fh> // '';
}


sub spit {
    open my $fh, '>:raw', $_[0] or die "$_[0]: $!\n";
    print $fh $_[1];
    close $fh;
}


# One directory, in which helpers are started one after the other.

sub place {
    my $dir = "$root/" . ++$number;

    mkdir $dir;
    chmod 0755, $dir;

    return { dir => $dir, data => "$dir/data", socket => "$dir/helper.sock",
             log => "$dir/log",
             history => SandboxHistory->new(dir => "$dir/data/history") };
}


sub start {
    my ($p, @args) = @_;

    pipe my $ready, my $tell or die "pipe: $!\n";
    fcntl $tell, F_SETFD, fcntl($tell, F_GETFD, 0) & ~FD_CLOEXEC;

    $p->{pid} = SandboxProcess->spawn("$p->{dir}/out", @{ $p->{before} // [] },
        $HELPER, '--data', $p->{data}, '--socket', $p->{socket}, '--log',
        $p->{log}, '--ready-fd', fileno $tell, @args);
    $running{$p->{pid}} = 1;
    close $tell;

    return IO::Select->new($ready)->can_read(20) && sysread $ready, my $x, 1;
}


sub quit {
    my ($p, $signal, $timeout) = @_;

    kill $signal // 'TERM', $p->{pid};
    my $ended = SandboxProcess::reaped($p->{pid}, $timeout // 20);
    delete $running{$p->{pid}} if $ended;

    return $ended ? $? : -1;
}


sub helper_fails {
    my @args = @_;

    my $out = qx{@{[ join ' ', map { "'$_'" } $HELPER, @args ]} 2>&1 </dev/null};

    return ($? >> 8, $out);
}


sub worker { SandboxFrames->new($_[0]{socket}, $_[1], $_[2]) }

sub wait_for { SandboxProcess->wait_for(@_) }

sub events {
    my ($p, $sandbox) = @_;

    return join ' ', map { "$_->{operation_type}=$_->{status}" }
                     $p->{history}->events($sandbox);
}

sub reason {
    my ($p, $op) = @_;

    my ($e) = grep { $_->{event_id} eq op_id($op) } $p->{history}->events('s1');

    return $e ? "$e->{status} " . ($e->{result}{reason} // '-') : 'none';
}

# A whole operation; its number.

sub whole {
    my ($w, $sandbox, $type) = @_;

    my $op = ++$ops;

    $w->put('BEGIN', $op, TYPE => $type // 'file.stat', SANDBOX => $sandbox);
    $w->put('END', $op, STATUS => 'succeeded', HTTP_STATUS => 200,
            UPSTREAM_STATUS => 200);

    return $op;
}

END {
    kill 'KILL', $_ for keys %running;
}


# --- the command line --------------------------------------------------------

{
    my ($status, $out) = helper_fails('--version');
    is($status, 0, '--version');
    like($out, qr/^sandbox-helper \d+\.\d+\.\d+\n\z/, 'says the version');

    ($status, $out) = helper_fails('--help');
    is($status, 0, '--help');
    like($out, qr/--ready-fd/, 'names the flags');

    my $data = "$root/none";

    for ([ [], qr/--data DIR is missing/ ],
         [ [ '--data', $data, '--sync', 'often' ], qr/--sync "often"/ ],
         [ [ '--data', $data, '--mode=database' ], qr/not available yet/ ],
         [ [ '--data', $data, '--peer', 'no-such-user' ], qr/no such user/ ],
         [ [ '--data', $data, '--follow=x' ], qr/give seconds/ ],
         [ [ '--data', $data, 'more' ], qr/"more"/ ],
         [ [ '--data', $data, '--api-key-file', '/x' ], qr/--upstream/ ],
         [ [ '--frobnicate' ], qr/--help/ ])
    {
        ($status, $out) = helper_fails(@{ $_->[0] });
        is($status, 2, "bad flags: @{ $_->[0] }");
        like($out, $_->[1], 'say what is wrong');
    }

    ($status, $out) = helper_fails('--check', '--data', $data, '--history-ttl', 'soon');
    is($status, 2, '--check refuses what a start refuses');
    like($out, qr/--history-ttl "soon"/, 'and says what is wrong');
    ($status, $out) = helper_fails('--check', '--data', $data, '--history-ttl', '7d');
    is("$status $out", '0 ', 'it takes what is right');
    ok(!-e $data, 'and makes nothing');

    ($status, $out) = helper_fails('--data', $data, '--upstream', 'ftp://x');
    is($status, 1, 'bad upstream');
    like($out, qr{^sandbox-helper: --upstream "ftp://x" is not.*\n\z},
         'one sentence');

    ($status, $out) = helper_fails('--data', '/proc/none');
    is($status, 1, 'data directory cannot be made');
    like($out, qr{^sandbox-helper: cannot make the data directory "/proc/none"},
         'says which');
}


# --- one operation, idle -----------------------------------------------------

my $p = place();
ok(start($p), 'starts and says so');

{
    my $w = worker($p, 7);
    is($w->{welcome}{MODE}, 'provider', 'WELCOME names the mode');
    is($w->{welcome}{LAST_SEQ}, 0, 'a new instance has nothing yet');

    my $bulk = worker($p, 7, 'bulk');
    ok($bulk, 'the second connection of the same worker');

    my $op = whole($w, 's1', 'command.execute');
    my $sent = time;
    my $ack = $w->ack;
    is($ack->{seq}, 2, 'one cumulative ACK');
    ok(!exists $ack->{CODE}, 'without complaint');

    wait_for(sub { events($p, 's1') });
    my $took = time - $sent;
    is(events($p, 's1'), 'command.execute=succeeded', 'is in the file');
    cmp_ok($took, '<', 2, 'soon');
    note(sprintf 'in the file after %.0f ms', $took * 1000);

    my $db = $p->{history}->path_of('s1');
    my $want = decode_json(slurp("$FindBin::Bin/fixtures/history-schema.json"));
    is_deeply(HistoryCli::schema($db), $want,
              'the file reports exactly the schema of the SDK');
    is(HistoryCli::schema($p->{history}->path_of('_gateway'))->{user_version},
       1, '_gateway has a file of the same kind');

    # sent again: dropped
    my $again = frame('BEGIN', 1, ++$ops, TYPE => 'file.read', SANDBOX => 's1');
    $w->send($again);
    is($w->ack(2)->{seq}, 2, 'a duplicate is answered');
    sleep 0.3;
    is(events($p, 's1'), 'command.execute=succeeded', 'and dropped');

    # a long frame, in many pieces
    my $long = ++$ops;
    $w->put('BEGIN', $long, TYPE => 'command.execute', SANDBOX => 's1',
            COMMAND => 'x' x 1_900_000);
    $w->put('END', $long, STATUS => 'succeeded');
    ok($w->ack, 'a frame of 1.9 MB');
    wait_for(sub { events($p, 's1') =~ / / });
    is($p->{history}->value('s1', 'select max(length(command)) from'
                            . ' command_executions'), 1_900_000, 'whole');

    # what is no frame closes that connection only
    my $bad = worker($p, 8);
    $bad->send("\xff" x 64);
    ok(!$bad->read(2), 'garbage: closed');
    my $early = IO::Socket::UNIX->new(Peer => $p->{socket});
    syswrite $early, frame('BEGIN', 1, 99, TYPE => 'x');
    ok(!sysread($early, my $x, 1), 'a record before HELLO: closed');
    whole($w, 's1');
    ok($w->ack, 'the others go on');
}


# --- only one, and only for whom it is ---------------------------------------

{
    my ($status, $out) = helper_fails('--data', $p->{data}, '--socket',
                                      "$p->{dir}/other.sock");
    is($status, 1, 'a second helper refuses');
    like($out, qr/^sandbox-helper: "\S+" is in use by another sandbox-helper \(process $p->{pid}\).*\n\z/,
         'in one sentence that names the first');

    ($status, $out) = helper_fails('--data', "$p->{dir}/data2", '--history',
        "$p->{data}/history", '--socket', "$p->{dir}/other.sock");
    is($status, 1, 'other data, the same history: refuses too');
    like($out, qr/history" is in use.*process $p->{pid}/, 'and says so');
    ok(!-e "$p->{dir}/other.sock", 'without leaving a socket');

    my $w = worker($p, 9);
    ok($w, 'the first goes on');
}

SKIP: {
    skip 'needs root to become others', 8 if $> != 0;

    my ($nobody, $www) = (scalar getpwnam('nobody'), scalar getpwnam('www-data'));

    my $as = sub {
        my ($uid, $q) = @_;
        my $pid = fork;

        if ($pid == 0) {
            $( = $) = "65534 65534";
            $< = $> = $uid;
            POSIX::_exit(worker($q, 50) ? 0 : 1);
        }

        waitpid $pid, 0;
        return $? >> 8;
    };

    # DATA is root's and closed; the helper is somebody else
    my $q = place();
    mkdir $q->{data};
    chmod 0700, $q->{data};
    mkdir "$q->{data}/history";
    ok(start($q, '--user', 'nobody', '--socket-mode', '0666', '--peer',
             'www-data'), 'drops privileges');

    my ($uid) = slurp("/proc/$q->{pid}/status") =~ /^Uid:\s+(\d+)/m;
    is($uid, $nobody, 'is the other user');
    is($as->($www, $q), 0, 'a --peer may connect');
    is($as->($nobody, $q), 0, 'so may its own user');
    is($as->(scalar getpwnam('daemon'), $q), 1, 'others may not');

    my $w = worker($q, 1);
    whole($w, 's1');
    wait_for(sub { -e "$q->{data}/history/s1/history.sqlite3" });
    sleep 0.3;
    chmod 0755, $q->{data};
    wait_for(sub { events($q, 's1') });
    is(events($q, 's1'), 'file.stat=succeeded',
       'and writes below a directory that is closed to it');
    is((stat "$q->{data}/history/s1/history.sqlite3")[4], $nobody, 'as itself');
    is((stat _)[2] & 07777, 0640, 'not readable by everybody');
    is(quit($q), 0, 'ends well');
}


# --- crashes -----------------------------------------------------------------

is(quit($p), 0, 'SIGTERM: exit 0');
ok(!-e $p->{socket}, 'the socket is gone');

{
    # killed while frames come in: nothing acknowledged is missing, nothing
    # that is sent again is there twice
    my $q = place();
    my (@sent, $acked, $killed);

    start($q);
    my $w = worker($q, 77);
    my $first = $ops + 1;

    for my $round (1 .. 6) {
        for (1 .. 300) {
            my $op = ++$ops;
            push @sent, [ 'BEGIN', $op, TYPE => 'file.stat', SANDBOX => 's1' ],
                        [ 'END', $op, STATUS => 'succeeded',
                          UPSTREAM_STATUS => 200 ];
        }

        my $from = $w->{seq};
        my $bytes = join '', map { frame($_->[0], ++$w->{seq},
                                         @{ $_ }[1 .. $#$_]) }
                             @sent[$from .. $#sent];
        my $cut = int length($bytes) * $round / 7;

        $w->send(substr $bytes, 0, $cut);
        sleep 0.01 * $round;
        quit($q, 'KILL');

        # what was answered before its death
        while (my $f = $w->read(0.05)) {
            $acked = $f->{seq};
        }

        $killed++;
        start($q) or die 'helper does not start again';
        $w = worker($q, 77);
        cmp_ok($w->{welcome}{LAST_SEQ}, '>=', $acked // 0,
               "kill -9, round $round: nothing acknowledged is lost");

        # the rest again
        my $seq = $w->{welcome}{LAST_SEQ};
        $w->send(join '', map { frame($_->[0], ++$seq, @{ $_ }[1 .. $#$_]) }
                          @sent[$seq .. $#sent]);
        $w->{seq} = $seq;
        ok($w->ack, 'and the rest is taken');
        $acked = $seq;
    }

    my $n = $ops - $first + 1;
    wait_for(sub {
        ($q->{history}->value('s1', 'select count(*) from history_events where'
                              . " status = 'succeeded'") // 0) == $n
    }, 15);
    is($q->{history}->value('s1', 'select count(*) from history_events'), $n,
       "all $n operations are there once");
    is($q->{history}->value('s1', 'select max(seq) || count(*) from'
                            . ' gateway_records'), "$n$n", 'numbered without gaps');
    is($q->{history}->value('s1', 'pragma integrity_check'), 'ok', 'sound');

    # a torn end
    quit($q, 'KILL');
    open my $fh, '>>:raw', "$q->{data}/journal/0000000001.seg";
    print $fh "SBXJ" . "\1" x 50;
    close $fh;
    ok(start($q), 'starts with a torn journal');
    like(slurp($q->{log}), qr/54 bytes behind the last whole record are cut off/,
         'and says what it cut off');
    $w = worker($q, 77);
    is($w->{welcome}{LAST_SEQ}, scalar @sent, 'with all that was whole');
    is(quit($q), 0, 'and ends');
}

{
    # C108: whoever leaves, what was begun is ended
    my $q = place();
    start($q);

    my $w = worker($q, 5);
    my $bulk = worker($q, 5, 'bulk');
    my ($died, $restarted, $back) = ($ops + 1, $ops + 2, $ops + 3);
    $ops += 3;

    $w->put('SEEN', 0, SANDBOX => 's1');
    $w->put('BEGIN', $died, TYPE => 'command.execute', SANDBOX => 's1');
    $w->put('OUTPUT', $died, STREAM => 0, DATA => "begun\n");
    $w->ack;
    $w->close;
    sleep 0.3;
    is(reason($q, $died), 'started -', 'one connection is left: no hurry');
    $bulk->close;
    wait_for(sub { reason($q, $died) !~ /^started/ });
    is(reason($q, $died), 'unknown worker_died', 'a worker that is gone');
    is($q->{history}->value('s1', 'select history_storage_state ||'
                            . ' output_complete from command_executions'),
       'partial0', 'its output may be cut');

    my $x = worker($q, 6);
    my $y = worker($q, 7);
    $x->put('BEGIN', $restarted, TYPE => 'command.execute', SANDBOX => 's1');
    $y->put('BEGIN', $back, TYPE => 'command.execute', SANDBOX => 's1');
    $_->ack for $x, $y;
    quit($q);
    start($q);
    $y = worker($q, 7);
    wait_for(sub { reason($q, $restarted) =~ /gateway/ }, 12);
    is(reason($q, $restarted), 'unknown gateway_restarted',
       'a worker that did not come back after a restart');
    is(reason($q, $back), 'started -', 'one that did');
    $y->put('END', $back, STATUS => 'succeeded');
    wait_for(sub { reason($q, $back) !~ /^started/ });
    is(reason($q, $back), 'succeeded -', 'ends its own');
    quit($q);
}


# --- commands that outlive their request -------------------------------------

{
    my $q = place();
    start($q, '--follow', '2');

    my $w = worker($q, 5);
    my ($ends, $asks, $expires) = ($ops + 1, $ops + 2, $ops + 3);
    $ops += 3;

    $w->put('SEEN', 0, SANDBOX => 's1');

    for ($ends, $expires) {
        $w->put('BEGIN', $_, TYPE => 'command.execute', SANDBOX => 's1',
                COMMAND => 'sleep 9', BACKGROUND => '');
        $w->put('END', $_, STATUS => 'succeeded', COMMAND_ID => "cmd$_",
                DETACHED => '');
    }

    $w->put('BEGIN', $asks, TYPE => 'command.status', SANDBOX => 's1');
    $w->put('END', $asks, STATUS => 'succeeded', COMMAND_ID => "cmd$ends",
            RUNNING => 0, EXIT_CODE => 6, UPSTREAM_STATUS => 200);
    $w->ack;

    wait_for(sub { reason($q, $ends) !~ /^(?:started|none)/ });
    is(reason($q, $ends), 'failed -', 'a status answer ends a command');
    is($q->{history}->value('s1', "select exit_code from command_executions"
                            . " where provider_command_id = 'cmd$ends'"), 6,
       'with its exit code');
    is(reason($q, $expires), 'started -', 'the other is followed');
    wait_for(sub { reason($q, $expires) !~ /^started/ });
    is(reason($q, $expires), 'unknown follow_expired', 'not for ever');
    quit($q);
}


# --- no room (C104) ----------------------------------------------------------

{
    my $q = place();
    start($q);

    my $w = worker($q, 5);
    whole($w, 's1');
    $w->ack;
    wait_for(sub { events($q, 's1') });

    my $limit = sub {
        system('prlimit', "--pid=$q->{pid}", "--fsize=$_[0]:") == 0
            or die "prlimit: $?\n";
    };

    # databases are small, the journal has a long record
    $limit->((-s "$q->{data}/journal/0000000001.seg") + 1000);
    $w->put('BEGIN', ++$ops, TYPE => 'command.execute', SANDBOX => 's1',
            COMMAND => 'x' x 5000);
    my $ack = $w->ack;
    is($ack->{CODE}, POSIX::EFBIG(), 'C104: cannot write: ACK with a code');
    like($ack->{REASON}, qr/File too large/, 'and a reason');
    like(slurp($q->{log}), qr/cannot write the journal/, 'and a line in the log');

    # One ACK speaks of all frames up to it: what comes behind a frame that
    # could not be kept is refused until that one has come again.

    $limit->('unlimited');
    $w->put('SEEN', 0, SANDBOX => 's1');
    ok($w->ack->{CODE}, 'nothing is taken behind a hole');

    $w->{seq} -= 2;
    my $op = whole($w, 's1');
    ok(!exists $w->ack->{CODE}, 'goes on when there is room');
    sleep 1.1;
    $w->put('SEEN', 0, SANDBOX => 's1');
    $w->ack;
    like(slurp($q->{log}), qr/can be written again/, 'and says so');

    my $again = worker($q, 5);
    is($again->{welcome}{LAST_SEQ}, $w->{seq}, 'counting what it has');
    wait_for(sub { events($q, 's1') =~ / / });
    is(events($q, 's1'), 'file.stat=succeeded file.stat=succeeded',
       'what was refused is not there');
    is(quit($q), 0, 'ends well');
}


# --- upstream ----------------------------------------------------------------

{
    my $q = place();
    my $key = "$q->{dir}/key";
    my $http = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16,
                                     LocalPort => 0, ReuseAddr => 1)
        or die "no port: $!\n";
    my $port = $http->sockport;

    my $server = fork;

    if ($server == 0) {
        # the helper breaks off what is too long
        $SIG{PIPE} = 'IGNORE';

        while (my $c = $http->accept) {
            my $head = '';
            while ($head !~ /\r\n\r\n/ && sysread $c, $head, 4096, length $head)
            { }
            my ($path) = $head =~ m{^GET (\S+)};
            my ($k) = $head =~ /^OPEN-SANDBOX-API-KEY: (.*)\r$/im;
            my $body = $path eq '/long' ? 'x' x 70000
                : $path =~ m{/v1/sandboxes/asked$}
                ? '{"id":"asked","metadata":{"sandbox_instance_id":"inst-3",'
                  . '"agent_sandbox.name":"A name"}}'
                : "$path key=" . ($k // 'none');
            my $status = $path eq '/moved' ? "302 Found\r\nLocation: /there"
                                           : '200 OK';
            print $c "HTTP/1.1 $status\r\nContent-Length: " . length($body)
                     . "\r\nConnection: close\r\n\r\n$body";
            close $c;
        }
        POSIX::_exit(0);
    }

    $running{$server} = 1;
    close $http;
    spit($key, "first-key\n");
    start($q, "--upstream=http://127.0.0.1:$port/", '--api-key-file', $key);

    my $bulk = worker($q, 5, 'bulk');
    my $fetch = sub {
        $bulk->send(frame('FETCH', $_[0], 0, TARGET => $_[1]));
        return $bulk->read;
    };

    my $a = $fetch->(31, '/v1/sandboxes/x/endpoints/44772?a=b');
    is($a->{seq}, 31, 'FETCHED carries the number of its FETCH');
    is($a->{HTTP_STATUS}, 200, 'the status');
    is($a->{DATA}, '/v1/sandboxes/x/endpoints/44772?a=b key=first-key',
       'the body, asked for with the key');

    spit("$key.new", "second-key\n");
    rename "$key.new", $key;
    like($fetch->(32, '/k')->{DATA}, qr/key=second-key$/, 'a changed key is read');
    is($fetch->(33, '/moved')->{HTTP_STATUS}, 302, 'redirects are not followed');
    $a = $fetch->(34, '/long');
    is($a->{HTTP_STATUS}, 0, 'an answer over 64 KiB is none');
    ok(length $a->{REASON}, 'with a reason');
    is($fetch->(35, "/a b")->{HTTP_STATUS}, 0, 'what is no target neither');
    is($fetch->(36, 'http://elsewhere/')->{HTTP_STATUS}, 0, 'nor another host');

    my $w = worker($q, 5);
    whole($w, 'asked');
    wait_for(sub { events($q, 'asked') });
    is($q->{history}->value('asked', 'select sandbox_instance_id from'
                            . ' history_events'), 'inst-3',
       'the instance of an unknown sandbox is asked for');
    is($q->{history}->value('asked', "select value from history_meta where key"
                            . " = 'sandbox_name'"), 'A name', 'so is its name');

    kill 'KILL', $server;
    waitpid $server, 0;
    delete $running{$server};

    is($fetch->(37, '/gone')->{HTTP_STATUS}, 0, 'upstream gone: an answer too');
    my $began = time;
    whole($w, 'unasked');
    wait_for(sub { events($q, 'unasked') });
    cmp_ok(time - $began, '<', 3, 'and no long wait');
    like($q->{history}->value('unasked', 'select sandbox_instance_id from'
                              . ' history_events'), qr/^legacy-[0-9a-f]{32}$/,
         'the legacy form then');

    # it is back: for a while new files do without, so that waits do not add up
    $http = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16,
                                  LocalPort => $port, ReuseAddr => 1)
        or die "port $port: $!\n";
    whole($w, 'paused');
    ok(wait_for(sub { events($q, 'paused') }), 'the next new file');
    is(scalar(my @asks = IO::Select->new($http)->can_read(0)), 0,
       'for which it is not asked');
    close $http;
    is(quit($q), 0, 'ends well');
    unlike(slurp($q->{log}), qr/(?:first|second)-key/, 'no key in the log');
    is(system("grep -rqE '(first|second)-key' '$q->{data}'") >> 8, 1,
       'nor in any file');
}


# No thread waits for upstream: here there is only one for all questions.

{
    my $q = place();
    my $http = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16,
                                     LocalPort => 0) or die "no port: $!\n";
    start($q, '--upstream=http://127.0.0.1:' . $http->sockport,
          '--question-threads', 1);

    my $bulk = worker($q, 5, 'bulk');
    my $ask = sub {
        my ($seq, $path) = @_;
        $bulk->send(frame('ASK', $seq, 0, METHOD => 'GET', PATH => $path,
                          ROLE => 'viewer', COUNT => 1 << 15));
    };
    my $answer = sub {
        my ($c, $body) = @_;
        print $c "HTTP/1.1 200 OK\r\nContent-Length: " . length($body)
                 . "\r\nConnection: close\r\n\r\n$body";
        close $c;
    };

    $ask->(1, 'sandboxes');
    ok(IO::Select->new($http)->can_read(10), 'upstream is asked for its list');
    my $c = $http->accept;
    $ask->(2, 'overview');
    is(($bulk->read // {})->{seq}, 2, 'others are answered meanwhile');
    $answer->($c, '{"items":[{"id":"far"}],"pagination":{"hasNextPage":true}}');

    $c = IO::Select->new($http)->can_read(10) && $http->accept;
    sysread $c, my $head, 4096;
    like($head, qr/[?]page=2&/, 'the next page');
    $answer->($c, '{"items":[{"id":"away"}],"pagination":{}}');

    my $a = $bulk->read // { DATA => '' };
    is($a->{seq}, 1, 'then it is answered');
    is(join(' ', sort $a->{DATA} =~ /"id":"(\w+)"/g), 'away far', 'with both');
    like($a->{DATA}, qr/"upstream":"ok"/, 'all is well');

    $ask->(3, 'sandboxes/far/operations');
    is(($bulk->read // {})->{HTTP_STATUS}, 200, 'the list counts for a while');
    $ask->(4, 'sandboxes/near/operations');
    is(($bulk->read // {})->{HTTP_STATUS}, 404, 'for what is not in it, too');
    is(quit($q), 0, 'ends well');
}


# --- the other modes ---------------------------------------------------------

{
    my $q = place();
    start($q, '--mode', 'none');
    my $w = worker($q, 5);
    is($w->{welcome}{MODE}, 'none', 'mode none says so');
    whole($w, 's1') for 1 .. 10;
    is($w->ack->{seq}, 20, 'answers');
    ok(!-e "$q->{data}/journal/0000000001.seg", 'and keeps nothing');
    is(quit($q), 0, 'ends well');

    $q = place();
    start($q, '--sync', 'full');
    my @w = map { worker($q, 60 + $_) } 1 .. 3;

    for my $round (1 .. 20) {
        whole($_, 's1') for @w;
    }

    is($_->ack->{seq}, 40, 'sync full answers all') for @w;
    is(quit($q), 0, 'ends well');
    is($q->{history}->value('s1', 'select count(*) from history_events'), 60,
       'SIGTERM applies everything first');
    is($q->{history}->value('s1', 'select count(*) from history_events where'
                            . " status = 'succeeded'"), 60, 'each ended');
}

{
    my $q = place();
    start($q, '--exec');
    my $w = worker($q, 5);
    whole($w, 's1');
    $w->ack;
    my $began = time;
    $w->close;
    ok(SandboxProcess::reaped($q->{pid}, 9), '--exec: leaves when nobody is there');
    is($?, 0, 'well');
    cmp_ok(time - $began, '>', 4, 'after 5 s');
    is(events($q, 's1'), 'file.stat=succeeded', 'with everything applied');
    delete $running{$q->{pid}};
}

{
    my $q = place();
    start($q);
    rename $q->{log}, "$q->{log}.old";
    kill 'HUP', $q->{pid};
    ok(wait_for(sub { -e $q->{log} }), 'SIGHUP opens the log anew');
    is(quit($q), 0, 'ends well');
    like(slurp($q->{log}), qr/^\d{4}-\d\d-\d\dT[\d:.]{15}Z \[info\] \d+: stopped$/m,
         'lines carry the time in UTC');
}


# --- many (C159, C162) -------------------------------------------------------

{
    my $q = place();
    # how long all of it takes is a matter of the machine
    start($q, '--stop', 100);
    my $w = worker($q, 5);
    my ($n, $began) = (1000, time);

    for my $s (1 .. $n) {
        $w->put('SEEN', 0, SANDBOX => "m$s");
        whole($w, "m$s");
    }

    ok($w->ack(undef, 60), 'a thousand sandboxes');
    my $answered = time - $began;

    # again, rotating over more files than may be open
    whole($w, "m$_") for 1 .. $n;
    ok($w->ack(undef, 60), 'twice');

    opendir my $dh, "/proc/$q->{pid}/fd";
    my $open = grep { !/^\./ } readdir $dh;
    cmp_ok($open, '<', 128 * 3 + 64, 'C159: few descriptors');
    is(quit($q, 'TERM', 120), 0, 'all applied');
    note(sprintf 'answered after %.1f s, in the files after %.1f s', $answered,
         time - $began);

    my @dirs = grep { /^m/ } $q->{history}->dirs;
    is(scalar @dirs, $n, 'each has its file');
    is(events($q, "m$_"), 'file.stat=succeeded file.stat=succeeded', "m$_")
        for 1, 500, 1000;
    unlike(slurp($q->{log}), qr/\[(?:warn|error)\]/, 'no complaint');
}


# --- the last frames -----------------------------------------------------------

# More than one round takes (8,192) waits in the sockets of workers that are gone
# when the helper is told to stop.

{
    my $q = place();
    start($q);
    my %sent = map { $_ => $_ == 1 || $_ == 12 ? 50 : 1500 } 1 .. 12;
    my %w = map { $_ => worker($q, 200 + $_) } 1 .. 12;

    kill 'STOP', $q->{pid};

    for my $n (1 .. 12) {
        $w{$n}->send(join '', map {
            SandboxFrames::frame('OUTPUT', $_, 900, STREAM => 0, DATA => 'x')
        } 1 .. $sent{$n});
        $w{$n}->close;
    }

    kill 'TERM', $q->{pid};
    kill 'CONT', $q->{pid};
    is(quit($q), 0, 'told to stop while fifteen thousand frames wait');

    start($q);
    is_deeply({ map { $_ => worker($q, 200 + $_)->{welcome}{LAST_SEQ} } 1 .. 12 },
              \%sent, 'all of them are in the journal');
    unlike(slurp($q->{log}), qr/more than \d+ rounds/, 'and it could say so');
    is(quit($q), 0, 'ends well');
}


# --- much traffic ------------------------------------------------------------

# How the threads of a helper are scheduled (proc(5), "policy").

sub policies {
    my $pid = shift;

    return map { (split ' ', slurp($_) =~ s/^.*\) //sr)[38] // 0 }
               glob "/proc/$pid/task/*/stat";
}


SKIP: {
    skip 'needs root, to be another user', 4 if $>;

    # one that cannot take its priority back
    my $q = place();
    $q->{before} = [ 'prlimit', '--nice=0:0', 'setpriv', '--bounding-set=-sys_resource',
                     '--inh-caps=-sys_resource', '--' ];
    ok(start($q, '--user', 'nobody'), 'a helper without rights');

    my $w = worker($q, 5);
    my $idle = 0;

    $w->put('SEEN', 0, SANDBOX => 'much');

    for (1 .. 60) {
        whole($w, 'much') for 1 .. 100;
        $w->ack(undef, 60);
        $idle ||= grep { $_ == 5 } policies($q->{pid});
    }

    ok($idle, 'much traffic is written with the lowest priority');
    is(quit($q, 'TERM', 60), 0, 'all applied');

    my $db = $q->{history}->path_of('much');
    chomp(my $kept = qx(sqlite3 $db "select count(*), status from history_events"));
    is($kept, '6000|succeeded', 'nothing is missing');
}

done_testing;
