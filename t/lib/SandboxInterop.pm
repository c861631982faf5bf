package SandboxInterop;

# The real SDKs, unmodified, against the gateway in front of sandbox-runtime:
# installs them into build/, runs the sequence of reference 7.4 and compares
# what the program saw with what is on record.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use Fcntl qw(:flock);
use Encode qw(encode_utf8);
use File::Path qw(make_path);
use IPC::Open2;
use JSON::PP;
use Test::More;

use SandboxTest;

my $HERE = "$SandboxProcess::ROOT/t/interop";


# Runs a command only when what it is made from has changed since.

sub once {
    my ($stamp, $from, $code) = @_;

    my $sum = sha256_hex(join "\0", map { SandboxTest::read_file($_) } @$from);

    # tests may run beside each other
    open my $lock, '>>', "$stamp.lock" or die "$stamp.lock: $!\n";
    flock $lock, LOCK_EX or die "$stamp.lock: $!\n";

    return if SandboxTest::read_file($stamp) eq $sum;

    $code->();
    SandboxTest::write_file($stamp, $sum);
}


sub command {
    my ($log, @command) = @_;

    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        open STDOUT, '>>', $log;
        open STDERR, '>>', $log;
        exec { $command[0] } @command or POSIX::_exit(127);
    }

    waitpid $pid, 0;
    $? == 0 or die "@command failed; see $log\n";
}


# A virtual environment under build/ with a requirements file; its python.

sub python {
    my ($name, $requirements) = @_;

    my $dir = "$SandboxProcess::BUILD/$name";

    once("$dir.stamp", [ "$HERE/$requirements" ], sub {
        my $log = "$dir.log";
        command($log, 'python3', '-m', 'venv', '--clear', $dir);
        command($log, "$dir/bin/python", '-m', 'pip', 'install', '-q',
                '--disable-pip-version-check', '-r', "$HERE/$requirements");
    });

    return "$dir/bin/python";
}


# The JavaScript packages under build/; node, and a program of ours where it finds
# them.

sub node {
    my $program = shift // 'sdk.mjs';
    my $dir = "$SandboxProcess::BUILD/interop-js";
    my $bin = "$SandboxProcess::BUILD/node/bin";
    my ($node, $npm) = map { -x "$bin/$_" ? "$bin/$_"
                             : SandboxProcess::find_program($_) } qw(node npm);
    my @from = map { "$HERE/$_" } qw(package.json package-lock.json);

    make_path($dir);

    once("$dir/stamp", \@from, sub {
        for (qw(package.json package-lock.json)) {
            SandboxTest::write_file("$dir/$_",
                                    SandboxTest::read_file("$HERE/$_"));
        }

        local $ENV{PATH} = "$bin:$ENV{PATH}";
        command("$dir/npm.log", $npm, 'ci', '--prefix', $dir, '--no-audit',
                '--no-fund', '--ignore-scripts');
    });

    # modules are found from the place of the program
    SandboxTest::write_file("$dir/$program",
                            SandboxTest::read_file("$HERE/$program"));

    return ($node, "$dir/$program");
}


# A gateway in front of a runtime of its own.

sub gateway {
    my $t = SandboxTest->new(runtime => 1, server => 'sandbox_timeout 5s;');

    return $t->start;
}


# Runs one program in one mode and checks everything about it.

sub sequence {
    my ($t, $mode, $name, $path, @command) = @_;

    my $prefix = "$name, $mode";
    my $domain = '127.0.0.1:' . $t->port;
    my $text = encode_utf8("h\x{e9}llo \x{4f60}\x{597d}\n");

    local $ENV{OPEN_SANDBOX_API_KEY} = $t->token;
    local $ENV{NO_COLOR} = 1;
    delete local @ENV{qw(http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy
                         ALL_PROXY)};

    my $pid = open2(my $out, my $in, @command, $domain, $mode);
    my $first = eval { decode_json(scalar <$out>) };

    if (!$first) {
        waitpid $pid, 0;
        fail("$prefix: the program reaches the terminal step");
        return;
    }

    my $id = $first->{id};
    is($first->{endpoint}, "$domain/sandboxes/$id/proxy/44772",
       "$prefix: the SDK was sent to the gateway");

    terminal($t, $prefix, $first);

    print $in "go\n";
    close $in;
    my $saw = eval { decode_json(scalar <$out>) };
    waitpid $pid, 0;
    is($?, 0, "$prefix: the program ends well");
    ok($saw, "$prefix: the whole sequence is done") or return;

    is_deeply($saw->{echo}, [ 'hi' ], "$prefix: output of a command");
    is($saw->{error}, '3', "$prefix: an exit code");
    is(encode_utf8($saw->{read}), $text, "$prefix: a file comes back");
    is_deeply($saw->{listed}, [ $path ], "$prefix: a directory is listed");
    is(encode_utf8(join '', map { "$_\n" } @{ $saw->{after} }), $text,
       "$prefix: the file is still there after pause and resume");

    check_records($t, $prefix, $id, $path, $text, $mode);
}


# The step that has no SDK method: a terminal at the address the SDK was given.

sub terminal {
    my ($t, $prefix, $first) = @_;

    my ($host, $base) = $first->{endpoint} =~ m{^([^/]+)(/.*)$} or return;
    my @headers = map { "$_: $first->{headers}{$_}" } keys %{ $first->{headers} };
    push @headers, 'OPEN-SANDBOX-API-KEY: ' . $t->token
        if !grep { /^open-sandbox-api-key:/i } @headers;
    my %o = (token => undef, headers => \@headers);

    my $r = $t->post("$base/pty", %o, body => '{}');
    is($r->status, 201, "$prefix: a terminal is made");
    my $pty = $r->json->{session_id};
    my $ws = $t->websocket("$base/pty/$pty/ws?since=0", %o);
    is($ws->status, 101, "$prefix: and opened");

    $ws->send(2, "\x00echo in-\$((6*7))\n");
    my $seen = '';
    $ws->recv_until(sub {
        $seen .= substr $_[0]{payload}, 1 if $_[0]{op} == 2;
        return $seen =~ /in-42/;
    }, 10);
    like($seen, qr/in-42/, "$prefix: what is typed is run");

    is($t->get("$base/pty/$pty", %o)->status, 200, "$prefix: its status");
    $ws->send(2, "\x00exit 7\n");
    my @f = $ws->recv_until(sub { $_[0]{op} == 8 }, 10);
    ok((grep { $_->{op} == 1 && $_->{payload} =~ /"exit_code":7/ } @f),
       "$prefix: it ends with its exit code");
    is($t->record($ws->response)->{wire}{http_status}, 101,
       "$prefix: the terminal is on record");
    is($t->delete("$base/pty/$pty", %o)->status, 200, "$prefix: it is deleted");
}


sub check_records {
    my ($t, $prefix, $id, $path, $text, $mode) = @_;

    my @want = (
        [ 'sandbox.create', 'succeeded' ], [ 'endpoint.get', 'succeeded' ],
        [ 'endpoint.get', 'succeeded' ],
        [ 'command.execute', 'succeeded' ], [ 'command.execute', 'failed' ],
        [ 'file.write', 'succeeded' ], [ 'file.read', 'succeeded' ],
        [ 'dir.list', 'succeeded' ], [ 'endpoint.get', 'succeeded' ],
        [ 'pty.create', 'succeeded' ],
        [ 'pty.open', 'failed' ], [ 'pty.status', 'succeeded' ],
        [ 'pty.delete', 'succeeded' ], [ 'sandbox.pause', 'succeeded' ],
        [ 'sandbox.resume', 'succeeded' ], [ 'endpoint.get', 'succeeded' ],
        [ 'endpoint.get', 'succeeded' ], [ 'command.execute', 'succeeded' ],
        [ 'sandbox.renew', 'succeeded' ], [ 'sandbox.delete', 'succeeded' ],
    );

    my @all = $t->records($id, count => 12);
    $t->wait_for(sub {
        @all = $t->history->events($id);
        return grep { $_->{operation_type} eq 'sandbox.delete'
                      && $_->{status} ne 'started' } @all;
    });

    # Which endpoints an SDK resolves, and whether it polls for the state, is
    # its own affair: these rows are compared by kind, the others one by one.
    my $skip = qr/^(?:endpoint\.get|sandbox\.get|client\.metrics)$/;
    is_deeply([ map { [ $_->{operation_type}, $_->{status} ] }
                grep { $_->{operation_type} !~ $skip } @all ],
              [ grep { $_->[0] !~ $skip } @want ],
              "$prefix: each operation once, in order, with its status");
    ok((grep { $_->{operation_type} eq 'endpoint.get' } @all),
       "$prefix: asking for the address is on record");
    is_deeply([ map { $_->{record_seq} } @all ], [ 1 .. @all ],
              "$prefix: without a gap");

    my ($lang) = $path =~ m{/(\w+)\.};
    my @sdk = grep { $_->{operation_type} !~ /^pty\./ } @all;
    is_deeply([ grep { ($_->{actor_id} // '') ne "$lang-$mode" } @sdk ], [],
              "$prefix: the actor given by ConnectionConfig.headers");
    is_deeply([ grep { ($_->{run_id} // '') ne "run-$lang" } @sdk ], [],
              "$prefix: and the run");
    is_deeply([ grep { $_->{source} ne 'sdk' } @sdk ], [],
              "$prefix: known as an SDK");
    is_deeply([ grep { !defined $_->{duration_ms} } @all ], [],
              "$prefix: every duration");

    my @run = map { $t->history->event($_->{event_id}, $id) }
              grep { $_->{operation_type} eq 'command.execute' } @all;
    is_deeply([ map { $_->{command}{exit_code} } @run ], [ 0, 3, 0 ],
              "$prefix: exit codes");
    is($t->history->output($run[1]{event_id}, 'stdout', $id), "out\n\n",
       "$prefix: stdout");
    is($t->history->output($run[1]{event_id}, 'stderr', $id), "err\n",
       "$prefix: stderr");
    is($t->history->output($run[2]{event_id}, 'stdout', $id), $text,
       "$prefix: CJK output");

    my ($write) = map { $t->history->event($_->{event_id}, $id) }
                  grep { $_->{operation_type} eq 'file.write' } @all;
    is_deeply([ @{ $write->{files}[0] }{qw(path size sha256)} ],
              [ $path, length $text, sha256_hex($text) ],
              "$prefix: path, size and digest of the file written");

    my ($read) = map { $t->history->event($_->{event_id}, $id) }
                 grep { $_->{operation_type} eq 'file.read' } @all;
    is($read->{wire}{bytes_out}, length $text, "$prefix: size of the file read");
    is($read->{files}[0]{path}, $path, "$prefix: and its path");

    my @inside = grep { ($_->{wire}{port} // 0) == 44772
                        && $_->{operation_type} !~ $skip } @all;
    is_deeply([ grep { $_->{wire}{route} ne
                       ($mode eq 'proxy' ? 'server-proxy' : 'straight') }
                @inside ], [],
              "$prefix: by the " . ($mode eq 'proxy' ? 'server proxy'
                                                     : 'straight road'));

    is($t->history->value($id, 'pragma integrity_check'), 'ok',
       "$prefix: the file is sound");
}

1;
