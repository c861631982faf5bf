# sandbox-runtime: plays what was recorded from the real execd, and does by
# hand what the recordings do not show: the lifecycle, the server proxy, the
# walls between sandboxes.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Fcntl qw(F_GETFD F_SETFD FD_CLOEXEC);
use File::Temp qw(tempdir);
use IO::Select;
use JSON::PP;
use POSIX qw(strftime WNOHANG);
use Test::More;
use Time::HiRes qw(time sleep);

use FixturePlay;
use SandboxHttp;
use SandboxProcess;
use SandboxWs;

my $BUILD = $SandboxProcess::BUILD;
my $FIXTURES = "$FindBin::Bin/runtime-fixtures";
my $WORKERS = 4;

plan skip_all => "$BUILD/sandbox-runtime is not built"
    if !-x "$BUILD/sandbox-runtime";

my $dir = tempdir(CLEANUP => 1);
my %running;

END {
    local $?;
    kill 'TERM', keys %running;
    waitpid $_, 0 for keys %running;
}


# Starts a runtime; (port, pid).

sub start {
    my ($name, @args) = @_;

    pipe my $ready, my $tell or die "pipe: $!\n";
    fcntl $tell, F_SETFD, fcntl($tell, F_GETFD, 0) & ~FD_CLOEXEC;

    my $pid = SandboxProcess->spawn("$dir/$name.log", "$BUILD/sandbox-runtime",
        '--port=0', "--data=$dir/$name", '--ready-fd', fileno $tell, @args);

    close $tell;
    my $up = IO::Select->new($ready)->can_read(15)
             && sysread $ready, my $byte, 1;
    my $text = slurp("$dir/$name.log");

    plan skip_all => "bubblewrap cannot run here: $text"
        if !$up && $text =~ /bubblewrap \(bwrap\) does not run/;
    die "sandbox-runtime does not start: $text\n" if !$up;
    $running{$pid} = 1;

    return ($text =~ m{http://127\.0\.0\.1:(\d+)}, $pid);
}


sub slurp {
    my $file = shift;

    open my $f, '<:raw', $file or return '';
    local $/;
    return <$f>;
}


sub stop {
    my ($pid, $signal) = @_;

    kill $signal // 'TERM', $pid;
    my $ended = SandboxProcess::reaped($pid, 10);
    delete $running{$pid} if $ended;

    return $ended ? $? : -1;
}


my ($port, $pid) = start('main', '--grace=300', '--no-kernels');


sub call {
    my ($method, $target, $body, @headers) = @_;

    my $to = $port;
    $to = $1 if $target =~ s/^:(\d+)//;

    return SandboxHttp->connect(port => $to)->request($method, $target,
        headers => [ @headers, defined $body && ref $body
                               ? 'Content-Type: application/json' : () ],
        defined $body ? (body => ref $body ? JSON::PP->new->encode($body)
                                           : $body) : (),
        timeout => 20);
}


my %MINIMAL = (image => { uri => 'python:3.11' }, timeout => 600,
               resourceLimits => { cpu => '1', memory => '2Gi' },
               entrypoint => [ 'tail', '-f', '/dev/null' ],
               secureAccess => JSON::PP::false);


sub create {
    my $r = call(POST => '/v1/sandboxes', { %MINIMAL, @_ });
    die "create: " . $r->content . "\n" if $r->status != 202;
    return $r->json->{id};
}


# Ends a sandbox; what its execd had to say must be nothing bad.

my $bad_logs = '';

sub look_at_logs {
    for (glob "$dir/*/sandboxes/*/log") {
        my $text = slurp($_);
        $bad_logs .= $text
            if $text =~ /Sanitizer|runtime error:|Assertion|MHD|abort/;
    }
}


sub end {
    look_at_logs();
    return call(DELETE => "/v1/sandboxes/$_[0]");
}


# The address of execd as the endpoints answer gives it: (port, path).

sub endpoint {
    my ($id, $p) = @_;

    my $r = call(GET => "/v1/sandboxes/$id/endpoints/" . ($p // 44772));
    return $r->json->{endpoint} =~ m{^127\.0\.0\.1:(\d+)(/.*)$};
}


# Runs a command; its events.

sub run {
    my ($id, $command, %o) = @_;

    my ($p, $path) = endpoint($id);
    my $r = call(POST => ":$p$path/command", { command => $command, %o });
    my @events = map { JSON::PP->new->utf8->decode($_) }
                 split /\n\n/, $r->content;

    return { events => \@events, response => $r,
             out => join("\n", map { $_->{text} }
                               grep { $_->{type} eq 'stdout' } @events) };
}


# --- the recorded cases, in several sandboxes at the same time ----------------

sub play_all {
    my ($kind, $make) = @_;

    my @cases = FixturePlay::load("$FIXTURES/execd-$kind.jsonl");
    my @results;

    for my $w (0 .. $WORKERS - 1) {
        my $file = "$dir/play-$kind-$w";
        my $child = fork // die "fork: $!\n";

        if ($child == 0) {
            %running = ();
            my $play = $make->($w);
            open my $out, '>:raw', $file;

            for my $i (grep { $_ % $WORKERS == $w } 0 .. $#cases) {
                my @wrong = eval { $play->$kind($cases[$i]) };
                push @wrong, "died: $@" if $@;
                print $out JSON::PP->new->encode([ $i, @wrong ]), "\n";
            }

            close $out;
            POSIX::_exit(0);
        }

        $results[$w] = { pid => $child, file => $file };
    }

    my @wrong;

    for (@results) {
        waitpid $_->{pid}, 0;
        my @lines = map { JSON::PP->new->decode($_) }
                    split /\n/, slurp($_->{file});
        $wrong[ shift @$_ ] = $_ for @lines;
    }

    for my $i (0 .. $#cases) {
        is(join("\n", @{ $wrong[$i] // [ 'not played' ] }), '',
           "$kind: $cases[$i]{case}");
    }

    return scalar @cases;
}


my @boxes = map { create() } 1 .. $WORKERS;
my $direct = sub {
    my ($p) = endpoint($boxes[ $_[0] ]);
    return FixturePlay->new(port => $p);
};

is(play_all(http => $direct), 113, 'all recorded HTTP cases were played');
is(play_all(pty => $direct), 9, 'all recorded conversations were played');

end($_) for @boxes;

# what the server proxy changes is stated in docs/runtime.md
my %THROUGH = map { $_ => 1 } qw(head-ping options-ping double-slash);

{
    my $id = create();
    my $play = FixturePlay->new(port => $port, relaxed => 1,
                                prefix => "/sandboxes/$id/proxy/44772");
    my @cases = grep { !$THROUGH{ $_->{case} }
                       && $_->{case} =~ /^(?:ping|command-ok|command-long|background$|upload|download|mv|chmod$|dir-list|proxy)/ }
                FixturePlay::load("$FIXTURES/execd-http.jsonl");

    is(join("\n", $play->http($_)), '', "server proxy: $_->{case}")
        for @cases;

    my ($basic) = FixturePlay::load("$FIXTURES/execd-pty.jsonl");
    is(join("\n", $play->pty($basic)), '', 'server proxy: a terminal');

    my $ws = SandboxWs->open(conn => SandboxHttp->connect(port => $port),
        target => "/sandboxes/$id/proxy/44772/pty/nope/ws");
    is($ws->status, 101, 'a refused terminal is accepted first');
    is(unpack('n', $ws->recv->{payload}), 1008, 'and closed with 1008');

    $ws = SandboxWs->open(conn => SandboxHttp->connect(port => $port),
        target => "/sandboxes/nope/proxy/44772/pty/nope/ws");
    is(unpack('n', $ws->recv->{payload}), 1011, 'unknown sandbox: 1011');

    end($id);
}


# --- the sequence of an SDK ---------------------------------------------------

{
    my $r = call(POST => '/v1/sandboxes',
                 { %MINIMAL, metadata => { team => 'a' },
                   env => { GREETING => 'hello' } },
                 'X-Request-ID:  abc ');
    my $box = $r->json;

    is($r->status, 202, 'create');
    is($r->header('x-request-id'), 'abc', 'the request id comes back');
    is($r->header('server'), 'uvicorn', 'it looks like uvicorn');
    is($box->{status}{state}, 'Running', 'and runs at once');
    like($box->{id}, qr/^[0-9a-f-]{36}$/, 'with a uuid');
    is_deeply($box->{entrypoint}, [ 'tail', '-f', '/dev/null' ],
              'and its entrypoint');
    ok(!exists $box->{image}, 'the create answer has no image');

    my $id = $box->{id};

    for my $p (44772, 18080) {
        my $e = call(GET => "/v1/sandboxes/$id/endpoints/$p?use_server_proxy=false");
        like($e->json->{endpoint}, qr{^127\.0\.0\.1:\d+/proxy/$p$},
             "endpoint of $p");
        ok(!exists $e->json->{headers}, 'without headers');
    }

    my ($p, $path) = endpoint($id);

    is(call(GET => ":$p$path/ping")->status, 200, 'ping');
    is(run($id, 'echo $GREETING')->{out}, 'hello',
       'a command sees the sandbox\'s environment');

    my $upload = join "\r\n", '--B',
        'Content-Disposition: form-data; name="metadata"; filename="metadata"',
        '', '{"path":"/tmp/fx/a b.txt","mode":640}', '--B',
        'Content-Disposition: form-data; name="file"; filename="/tmp/fx/a b.txt"',
        'Content-Type: text/plain', '', "text\r\n--B-not\r\n", '--B--', '';

    is(call(POST => ":$p$path/files/upload", $upload,
            'Content-Type: multipart/form-data; boundary=B')->status, 200,
       'upload');
    is(call(GET => ":$p$path/files/download?path=%2Ftmp%2Ffx%2Fa+b.txt")
           ->content, "text\r\n--B-not\r\n", 'download gives the same bytes');
    is(call(GET => ":$p$path/directories/list?path=/tmp/fx")->json->[0]{mode},
       640, 'list');

    $r = call(POST => "/v1/sandboxes/$id/pause");
    is($r->status, 202, 'pause');
    is($r->header('Content-Length'), 0, 'with Content-Length 0');
    is(call(GET => "/v1/sandboxes/$id")->json->{status}{state}, 'Paused',
       'it is paused');
    is(call(POST => "/v1/sandboxes/$id/pause")->json->{code},
       'DOCKER::SANDBOX_NOT_RUNNING', 'not twice');

    my $c = SandboxHttp->connect(port => $p);
    $c->write($c->build(GET => '/ping'));
    is($c->response(timeout => 0.6)->{error}, 'timeout',
       'a paused sandbox does not answer');

    is(call(POST => "/v1/sandboxes/$id/resume")->status, 202, 'resume');
    is($c->response(timeout => 5)->status, 200,
       'then it answers what was asked meanwhile');
    is(call(POST => "/v1/sandboxes/$id/resume")->status, 409, 'not twice');

    my $until = strftime('%Y-%m-%dT%H:%M:%S', gmtime(time + 900));
    $r = call(POST => "/v1/sandboxes/$id/renew-expiration",
              { expiresAt => "$until.914744+00:00" });
    is($r->json->{expiresAt}, "$until.914744Z", 'renew');
    is(call(POST => "/v1/sandboxes/$id/renew-expiration",
            { expiresAt => '2020-01-01T00:00:00Z' })->status, 400,
       'not into the past');

    $r = call(PATCH => "/v1/sandboxes/$id/metadata",
              { team => undef, stage => 'test' });
    is_deeply($r->json->{metadata}, { stage => 'test' }, 'metadata is merged');
    is(call(PATCH => "/v1/sandboxes/$id/metadata", { '-bad' => 'x' })
           ->json->{code}, 'SANDBOX::INVALID_METADATA_LABEL',
       'a bad label is refused');

    my $list = call(GET => '/sandboxes?state=running&metadata=stage%3Dtest')
               ->json;
    is_deeply([ map { $_->{id} } @{ $list->{items} } ], [ $id ],
              'the list finds it by state and metadata');
    is_deeply($list->{pagination}, { page => 1, pageSize => 20,
        totalItems => 1, totalPages => 1, hasNextPage => JSON::PP::false },
        'with its pages');
    is(call(GET => '/sandboxes?metadata=stage%3Dother')->json
           ->{pagination}{totalItems}, 0, 'and not by another');
    is($list->{items}[0]{image}{uri}, 'python:3.11', 'it names its image');

    is(end($id)->status, 204, 'delete');
    is(call(GET => "/v1/sandboxes/$id")->json->{code},
       'DOCKER::SANDBOX_NOT_FOUND', 'then it is unknown');
    ok(!SandboxProcess::listens($p), 'its port is closed');
    ok(!-e "$dir/main/sandboxes/$id", 'and its directory gone');
}


# --- what clients get wrong ---------------------------------------------------

for ([ { %MINIMAL, timeout => 5 }, 'greater_than_equal', 'timeout' ],
     [ { %MINIMAL, timeout => 'x' }, 'int_parsing', 'timeout' ],
     [ { %MINIMAL, image => {} }, 'missing', 'image' ],
     [ { %MINIMAL, image => undef }, 'value_error' ],
     [ { %MINIMAL, entrypoint => [] }, 'too_short', 'entrypoint' ],
     [ { %MINIMAL, entrypoint => undef }, 'value_error' ],
     [ { %MINIMAL, resourceLimits => undef }, 'value_error' ],
     [ { %MINIMAL, env => { A => 1 } }, 'string_type', 'env' ])
{
    my ($body, $type, $member) = @$_;
    my $r = call(POST => '/sandboxes', $body);

    is($r->status, 422, "422 for $type " . ($member // ''));
    is($r->json->{detail}[0]{type}, $type, 'of this type');
    is($r->json->{detail}[0]{loc}[1], $member, 'at this place');
}

is(call(POST => '/sandboxes', '{}{}', 'Content-Type: application/json')
       ->status, 422, 'bytes behind the value are refused');
is(call(POST => '/sandboxes', '{}', 'Content-Type: text/plain')->status, 422,
   'another type than JSON too');
is(call(POST => '/sandboxes', { %MINIMAL,
        networkPolicy => { defaultAction => 'deny' } })->status, 400,
   'what cannot be done is refused, not passed over');

for ([ GET => '/nope', 404 ], [ PUT => '/sandboxes', 405 ],
     [ HEAD => '/health', 405 ], [ GET => '//sandboxes', 404 ],
     [ GET => '/%73andboxes', 200 ], [ GET => '/v1/pools', 501 ],
     [ GET => '/snapshots/x', 404 ], [ GET => '/health', 200 ],
     [ POST => '/v1/metrics/events', 204 ],
     [ GET => '/sandboxes/x/proxy/44772/ping', 404 ],
     [ GET => '/sandboxes/x/proxy/p/ping', 422 ],
     [ HEAD => '/sandboxes/x/proxy/44772/ping', 405 ],
     [ GET => '/sandboxes/x/endpoints/p', 422 ],
     [ GET => '/sandboxes?pageSize=201', 422 ])
{
    my ($method, $target, $status) = @$_;
    is(call($method => $target)->status, $status, "$method $target: $status");
}

{
    my $r = call(GET => '/v1/sandboxes/?page=2');
    is($r->status, 307, 'a slash too many is redirected');
    is($r->header('location'), "http://127.0.0.1:$port/v1/sandboxes?page=2",
       'to the absolute address, query included');
}


# --- commands: what the recordings leave open ---------------------------------

{
    my $id = create();
    my ($p, $path) = endpoint($id);

    my $r = run($id, 'true')->{response};
    cmp_ok($r->{total_time}, '>=', 0.3, 'the last chunk waits for the grace');

    # interrupted from outside
    my $c = SandboxHttp->connect(port => $p);
    $c->write($c->build(POST => '/command',
        body => '{"command":"trap \"\" INT; sleep 30"}'));
    my $head = $c->response(head_only => 1);
    my $cid;
    SandboxProcess->wait_for(sub {
        $c->fill(time + 1);
        ($cid) = $c->{buf} =~ /"text":"([0-9a-f]{32})"/;
    });
    is(call(GET => ":$p/command/status/$cid")->json->{running},
       JSON::PP::true, 'it runs');
    is(call(DELETE => ":$p/command?id=$cid")->status, 200, 'interrupt');
    $c->body($head, timeout => 5);
    like($head->content, qr/"evalue":"-1","traceback":\["signal: terminated"\]/,
         'the stream ends with the signal');
    is(call(DELETE => ":$p/command?id=$cid")->status, 500, 'not twice');

    # the client leaves, the command goes on
    $c = SandboxHttp->connect(port => $p);
    $c->write($c->build(POST => '/command',
        body => '{"command":"sleep 0.5; echo x > /tmp/went-on"}'));
    $c->response(head_only => 1);
    $c->close;
    ok(SandboxProcess->wait_for(sub {
        call(GET => ":$p/files/info?path=/tmp/went-on")->status == 200;
    }, 5), 'a command outlives its client');

    is(run($id, 'cat /proc/$$/stat | cut -d" " -f5; echo $$')->{out}
       =~ /^(\d+)\n\1$/, 1, 'a command leads a process group of its own');
    is(run($id, 'id -u; id -g', uid => 1000)->{out}, "1000\n1000",
       'it runs as the user asked for')
        if $> == 0;

    my $big = SandboxHttp->connect(port => $p);
    $big->write($big->build(POST => '/command',
        body => '{"command":"head -c 5000000 /dev/zero | tr \'\\\\0\' y"}'));
    $r = $big->response(timeout => 20);
    ok(index($r->content, '"text":"' . 'y' x 5_000_000 . '"') > 0,
       'a line of 5 MB is one event');

    $r = run($id, 'printf "a\\r\\nb\\rc\\n\\r\\n"');
    is_deeply([ map { $_->{text} } grep { $_->{type} eq 'stdout' }
                @{ $r->{events} } ], [ 'a', 'b', 'c', "\n" ],
              'line ends of all kinds');

    # a session that runs out of time: a tail without a type
    my $sid = call(POST => ":$p/session", {})->json->{session_id};
    $r = call(POST => ":$p/session/$sid/run",
              { command => 'echo a; sleep 9', timeout => 300 });
    like($r->content, qr/\}\n\n\{"code":"RUNTIME_ERROR","message":"error running in session\. timeout after 300ms"\}$/,
         'a session\'s time-out');
    run($id, 'true');
    $r = call(POST => ":$p/session/$sid/run",
              { command => "export A=\"x\ny\"; cd /tmp; exit 4" });
    like($r->content, qr/"evalue":"4"/, 'exit of a session');
    $r = call(POST => ":$p/session/$sid/run",
              { command => 'echo "$PWD ${#A}"' });
    unlike($r->content, qr/"text":"\/tmp 3"/, 'exit leaves nothing behind');
    call(POST => ":$p/session/$sid/run",
         { command => "export A=\"x\ny\"; cd /tmp" });
    $r = call(POST => ":$p/session/$sid/run",
              { command => 'echo "$PWD ${#A}"' });
    like($r->content, qr/"text":"\/tmp 3"/,
         'directory and variables are kept, line feeds included');

    # user ports
    $c = SandboxHttp->connect(port => $p);
    $c->write($c->build(POST => '/command', body => JSON::PP->new->encode({
        background => JSON::PP::true, cwd => '/workspace',
        command => 'echo page > index.html; exec python3 -m http.server --bind 127.0.0.1 18999' })));
    $c->response;

    SKIP: {
        skip 'no python3 on this machine', 2 if !-x '/usr/bin/python3';
        my $through = "/sandboxes/$id/proxy/18999/index.html";
        SandboxProcess->wait_for(sub { call(GET => $through)->status == 200 });
        is(call(GET => $through)->content, "page\n",
           'a port of the sandbox through the server proxy');
        is(call(GET => ":$p/proxy/18999/index.html")->content, "page\n",
           'and through execd');
    }

    $r = call(GET => "/sandboxes/$id/proxy/9/x");
    is($r->status, 502, 'a closed port: 502');
    is(call(GET => "/sandboxes/$id/proxy/44772/%2570ing")->status, 200,
       'the proxied path is decoded twice');
    is(call(GET => "/sandboxes/$id/proxy/0044772/files/info%3Fpath=/tmp")
           ->json->{'/tmp'}{type}, 'directory', 'a hidden query is one');
    is(call(POST => "/sandboxes/$id/proxy/44772/proxy/44772/command",
            { command => 'echo deep' })->content =~ /"deep"/, 1, 'nested');

    is(call(GET => "/v1/sandboxes/$id/diagnostics/inspect")->status, 200,
       'diagnostics');
    end($id);
}


# --- walls --------------------------------------------------------------------

{
    my ($one, $two) = (create(), create());

    run($one, 'echo secret > /tmp/here; echo x > /etc/runtime-test; rm -rf /home; echo changed > /etc/passwd');
    is(run($two, 'ls /tmp/here /etc/runtime-test 2>/dev/null; ls -d /home')
       ->{out}, '/home', 'what one sandbox writes another does not see');
    ok(!-e '/tmp/here' && !-e '/etc/runtime-test' && -d '/home',
       'nor does the host');
    is(run($one, 'cat /etc/passwd')->{out}, 'changed', '/etc is writable');

    is(run($one, 'touch /usr/x 2>/dev/null || echo read-only')->{out},
       'read-only', '/usr is not');
    is(run($one, "ls -d $dir '$FindBin::Bin' /boot/* /sys/* 2>/dev/null")
       ->{out}, '', 'the host\'s files are not there');
    is(run($one, 'ps ax 2>/dev/null | grep -c sandbox-runtim[e]')->{out}, '0',
       'nor its processes');
    like(run($one, 'for d in root home/user tmp var/tmp workspace; do test -w /$d && echo ok; done')
         ->{out}, qr/^ok(\nok){3,4}$/, 'its own directories are writable');

    # links that lead out lead nowhere
    my ($p) = endpoint($one);
    run($one, "ln -s $dir /workspace/out; ln -s / /workspace/root");
    is(call(GET => ":$p/files/search?path=/workspace/out&pattern=*")->status,
       404, 'a link to the host\'s files is dangling');
    is(call(GET => ":$p/files/download?path=/../../../etc/hostname")
           ->content, run($one, 'cat /etc/hostname')->{out} . "\n",
       '.. ends at the sandbox\'s root');

    SKIP: {
        skip 'not root', 2 if $> != 0;
        is(run($one, 'mknod /tmp/sda b 8 0 2>/dev/null || echo no')->{out},
           'no', 'no device can be made');
        is(run($one, 'mount -t tmpfs none /mnt 2>/dev/null || echo no')
           ->{out}, 'no', 'nothing can be mounted');
    }

    # all of a sandbox ends with it
    run($one, 'setsid sleep 4711 >/dev/null 2>&1 &');
    my $left = sub { scalar grep { slurp($_) =~ /^sleep\0004711/ }
                     glob '/proc/[0-9]*/cmdline' };
    is($left->(), 1, 'a daemon in a sandbox');
    end($one);
    is($left->(), 0, 'ends with it');
    end($two);
}


# --- time is over -------------------------------------------------------------

{
    my $id = create(timeout => 60);
    my $soon = strftime('%Y-%m-%dT%H:%M:%SZ', gmtime(time + 2));

    call(POST => "/sandboxes/$id/renew-expiration", { expiresAt => $soon });
    ok(SandboxProcess->wait_for(sub {
        call(GET => "/sandboxes/$id")->status == 404;
    }, 5), 'a sandbox whose time is over is ended');
    my $never = create(timeout => undef);
    is(call(POST => "/sandboxes/$never/renew-expiration",
            { expiresAt => '2099-01-01T00:00:00Z' })->status, 409,
       'one without an end cannot be renewed');
}


# --- the end ------------------------------------------------------------------

{
    my $id = create();
    my ($p) = endpoint($id);

    look_at_logs();
    is($bad_logs, '', 'nothing bad in the logs of the sandboxes');
    is(stop($pid), 0, 'SIGTERM: it ends with 0');
    ok(!SandboxProcess::listens($p), 'with all sandboxes');
    is(scalar(() = glob "$dir/main/sandboxes/*"), 0, 'and their files');
    unlike(slurp("$dir/main.log"), qr/Sanitizer|runtime error|MHD/,
           'its log is clean');
}


# --- the key ------------------------------------------------------------------

{
    open my $f, '>', "$dir/key";
    print $f "the-key\n";
    close $f;

    my ($p, $pid2) = start('keyed', "--api-key-file=$dir/key", '--grace=0');
    my $mine = 'OPEN-SANDBOX-API-KEY: the-key';

    is(call(GET => ":$p/sandboxes")->json->{code}, 'MISSING_API_KEY',
       'no key');
    is(call(GET => ":$p/sandboxes", undef, 'OPEN-SANDBOX-API-KEY: the-kez')
           ->json->{code}, 'INVALID_API_KEY', 'a wrong key');
    is(call(GET => ":$p/sandboxes", undef, $mine)->status, 200, 'the key');
    is(call(GET => ":$p/health")->status, 200, '/health needs none');
    is(call(GET => ":$p/healthXYZ")->status, 404, 'nor what begins like it');
    is(call(GET => ":$p/sandboxes/x/proxy/44772/ping")->status, 404,
       'nor the server proxy');
    is(call(GET => ":$p/sandboxes/x/proxy/44772/a..b")->status, 401,
       'but for two dots');

    my $r = call(POST => ":$p/sandboxes", { %MINIMAL }, $mine);
    my $id = $r->json->{id};
    my $c = SandboxHttp->connect(port => $p);
    $r = $c->request(POST => "/sandboxes/$id/proxy/44772/command",
        headers => [ $mine ], body => '{"command":"env; echo done"}');
    like($r->content, qr/"done"/, 'a command');
    unlike($r->content, qr/the-key/, 'which does not see the key');

    # the runtime is killed: nothing of it stays
    my ($e) = call(GET => ":$p/sandboxes/$id/endpoints/44772", undef, $mine)
              ->json->{endpoint} =~ /:(\d+)/;
    stop($pid2, 'KILL');
    ok(SandboxProcess->wait_for(sub { !SandboxProcess::listens($e) }, 5),
       'sandboxes end with a runtime that was killed');

    ($p, $pid2) = start('keyed', '--grace=0');
    is_deeply([ map { s{.*/}{}r } glob "$dir/keyed/sandboxes/*" ], [],
              'what it left is removed at the next start');
    stop($pid2);
}


# --- where bubblewrap cannot run ----------------------------------------------

{
    local $ENV{PATH} = "$dir/empty";
    mkdir "$dir/empty";

    my $child = SandboxProcess->spawn("$dir/no-bwrap.log",
        "$BUILD/sandbox-runtime", '--port=0', "--data=$dir/no-bwrap");
    waitpid $child, 0;
    is($? >> 8, 1, 'without bubblewrap it does not start');
    like(slurp("$dir/no-bwrap.log"), qr/^sandbox-runtime: bubblewrap.*--unconfined.*\n\z/,
         'and says in one sentence what to do');

    my ($p, $pid3) = start('free', '--unconfined', '--grace=0');
    like(slurp("$dir/free.log"), qr/NOTHING IS ISOLATED/, 'unconfined is loud');

    my $id = call(POST => ":$p/sandboxes", { %MINIMAL })->json->{id};
    my $r = call(POST => ":$p/sandboxes/$id/proxy/44772/command",
                 { command => '/bin/pwd; echo $HOME; /bin/sleep 4712 & exit 0' });
    like($r->content, qr{"text":"\Q$dir\E/free/sandboxes/$id/root/workspace"},
         'a command starts in the sandbox\'s directory');
    is(call(DELETE => ":$p/sandboxes/$id")->status, 204, 'delete');
    is(scalar(grep { slurp($_) =~ /sleep\0004712/ }
              glob '/proc/[0-9]*/cmdline'), 0, 'ends its processes too');
    is(stop($pid3), 0, 'SIGTERM');
}

done_testing;
