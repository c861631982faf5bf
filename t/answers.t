#!/usr/bin/perl

# What the console API tells of the history: lists that are paged without loss
# or repeat whatever happens meanwhile, records whole, output to the byte,
# sandboxes that are gone, counts; and what it refuses.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use HistoryCli;
use JSON::PP;
use MIME::Base64 qw(decode_base64);
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $API = '/console/api/v1';
my $json = JSON::PP->new->utf8;
my $t = SandboxTest->new->start;
my $up = $t->up;
my $cli = HistoryCli->new(program => [ "$SandboxProcess::BUILD/sandbox-history" ]);

$t->sandbox($_) for qw(s1 s2 s3);

sub event { FakeUpstream::event(@_) }

sub execd { "/v1/sandboxes/$_[0]/proxy/44772" }

# Runs a command; its operation's id.
sub run {
    my ($sandbox, $command, %o) = @_;

    my $r = $t->post(execd($sandbox) . '/command',
        body => $json->encode({ command => $command }), %o);
    return $r->header('X-Operation-Id');
}

# A question of the API; its answer's JSON, and the whole response.  Asked again
# while a busy machine has not come to what was just done: the answer says that it
# is not complete, or an operation is not there yet.
sub ask {
    my ($path, %o) = @_;

    my ($r, $got);

    $t->wait_for(sub {
        $r = $t->get("$API/$path", token => 'viewer', %o);
        $got = $r->json;
        return 1 if $o{fails} || $o{once};
        return $r->status == 200 && ($path =~ m{^[\w/]*operations/}
                                     || ($got->{complete} // 1));
    });

    diag("$path: ", $r->status, ' ', substr $r->content // '', 0, 300)
        if $r->status != 200 && !$o{fails};

    return wantarray ? ($got, $r) : $got;
}

sub ids { map { $_->{id} } @{ $_[0]{items} } }

# All pages: the ids in order.  `between` is called after each page.
sub pages {
    my ($path, $limit, %o) = @_;

    my $asc = $o{asc};
    my (@all, $next);
    my $n = 0;

    do {
        my $query = "limit=$limit" . ($asc ? '&order=asc' : '')
            . ($next ? '&' . ($asc ? 'after' : 'before') . "=$next" : '');
        my $page = ask("$path$query");
        push @all, ids($page);
        $o{between}->($page) if $o{between};
        $next = $page->{next};
    } while (defined $next && $n++ < 1000);

    return @all;
}

# Changes a history file as its owner.
sub change {
    my ($path, $sql) = @_;

    my ($uid, $gid) = (stat $path)[4, 5];
    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        if ($> == 0) {
            $) = "$gid $gid";
            POSIX::setgid($gid);
            POSIX::setuid($uid);
        }

        open STDIN, '<', '/dev/null';
        { exec 'sqlite3', '-cmd', '.timeout 5000', $path, $sql }
        POSIX::_exit(127);
    }

    waitpid $pid, 0;

    return $? == 0;
}


# --- people see their own actions -----------------------------------------------------

# A question waits 300 ms for that, which a busy machine may need longer for: then
# the answer has to say that it lacks something.

my ($seen, $lies) = (0, 0);

for my $i (1 .. 20) {
    my $id = run($i % 2 ? 's1' : 's2', "echo $i");
    my $got = ask('operations?limit=1', once => 1);
    my $has = ($got->{items}[0]{id} // '') eq $id;
    $seen++ if $has;
    $lies++ if !$has && $got->{complete};
}

is($lies, 0,
   'what was acknowledged is in the next answer, or that is not complete');
cmp_ok($seen, '>', 0, 'and it is there');

# --- one record in all its forms --------------------------------------------------------

{
    my $id = run('s1', "printf '</script>\e[31m\x{4f60}'", headers => [
        'X-Correlation-Id: c-links', 'X-Actor-Type: agent', 'X-Actor-Id: bot',
        'X-Thread-Id: t1', 'X-Run-Id: r1' ]);
    my $again = run('s1', "printf '</script>\e[31m\x{4f60}'",
        headers => [ "X-Parent-Operation-Id: $id", 'X-Correlation-Id: c-other' ]);
    my $with = run('s2', 'pwd', headers => [ 'X-Correlation-Id: c-links' ]);

    my ($listed) = grep { $_->{id} eq $id }
                   @{ ask('operations?correlation=c-links')->{items} };
    is($listed->{summary}, "printf '</script>\e[31m\x{4f60}'", 'a summary');
    is_deeply([ @{ $listed->{actor} }{ qw(type id thread run correlation) } ],
              [ qw(agent bot t1 r1 c-links) ], 'and its actor');

    my ($status, $out) = $cli->run(@{ $cli->{program} }, '--data',
        $t->dir . '/data', 'list', '--json', '--correlation', 'c-links');
    my ($printed) = grep { $_->{id} eq $id } map { $json->decode($_) }
                    split /\n/, $out;
    is_deeply($printed, $listed, 'the command line prints the same JSON');

    my $whole = ask("operations/$id");
    is_deeply({ map { $_ => $whole->{$_} } keys %$listed }, $listed,
              'the whole record has all of it');
    is($whole->{command}{command}, $listed->{summary}, 'and the command');
    is($whole->{wire}{path}, '/command', 'what passed');
    is($whole->{actor}{identity}, 'token:admin+stated', 'how it was known');
    is($whole->{result}{exit_code}, 0, 'the result');
    is($whole->{request}{command}, $listed->{summary}, 'the request');

    my $links = $whole->{links};
    is_deeply([ map { $_->{id} } @{ $links->{correlation} } ], [ $with ],
              'others of the same correlation, other sandboxes too');
    is_deeply([ map { $_->{id} } @{ $links->{children} } ], [ $again ],
              'its children');
    is_deeply($links->{reruns}, [ $again ], 'which ran it again');
    is($links->{rerun_of}, undef, 'it is none itself');
    is($links->{complete}, JSON::PP::true, 'and that is all');

    $links = ask("sandboxes/s1/operations/$again")->{links};
    is($links->{parent}[0]{id}, $id, 'the other way: the parent');
    is($links->{rerun_of}, $id, 'which was run again');

    ask("sandboxes/s2/operations/$id", fails => 1);
    is((ask("sandboxes/s2/operations/$id", fails => 1))[1]->status, 404,
       'it is not in another sandbox');
}


# --- filters ------------------------------------------------------------------------------

{
    $up->script('POST ' . execd('s2') . '/command', FakeUpstream::stream(
        event('init', text => 'c1'), event('stderr', text => 'oops'),
        event('error', error => { ename => 'CommandExecError', evalue => '7',
                                  traceback => [] })));
    my $failed = run('s2', 'false');
    $up->script('POST ' . execd('s2') . '/command');
    my $mv = $t->post(execd('s1') . '/files/mv', body =>
        '[{"src":"/w/old.txt","dest":"/w/new.txt"}]')->header('X-Operation-Id');

    my %want = (
        'exit_code=7'                     => [ $failed ],
        'status=failed&type=command.*'    => [ $failed ],
        'path=/w/*.txt'                   => [ $mv ],
        'path=%2Fw%2Fold.txt'             => [ $mv ],
        'type=file.*&type=command.execute&status=failed&status=succeeded'
            . '&path=/w/new.txt'          => [ $mv ],
        'actor=nobody'                    => [],
        'min_duration_ms=86400000'        => [],
        'from=1s&to=2s'                   => [],
        'to=2020-01-01'                   => [],
        'run=r1&thread=t1&actor_type=agent&source=gateway&actor=bot&limit=1'
            => [ (ids(ask('operations?run=r1')))[0] ],
        'q=oops'                          => [ $failed ],
    );

    for my $query (sort keys %want) {
        is_deeply([ ids(ask("operations?$query")) ], $want{$query}, $query);
    }

    is_deeply([ ids(ask('sandboxes/s1/operations?exit_code=7')) ], [],
              'only of that sandbox');

    my $all = ask('operations?facets=1&limit=1');
    my %n = map { $_->{value} => $_->{count} }
            @{ $all->{facets}{type}{values} };
    is($n{'file.move'} // $n{'file.rename'}, 1, 'facets count')
        or diag explain \%n;
    is($all->{facets}{total}, scalar(pages('operations?', 500)),
       'all of them, not the page');
    is($all->{facets}{failed}, 1, 'failures too');
    is($all->{facets}{exact}, JSON::PP::true, 'exactly');

    my $bars = ask('operations?buckets=7&from=1h&limit=1')->{histogram};
    my %sum;

    for my $bar (@{ $bars->{counts} }) {
        $sum{$_} += $bar->{$_} for keys %$bar;
    }

    is_deeply(\%sum, { total => $all->{facets}{total}, failed => 1 },
              'a histogram counts all, failures too');
    is($bars->{exact}, JSON::PP::true, 'exactly');
    is(scalar @{ $bars->{counts} }, 7, 'in so many steps');
    is($bars->{step_ms}, int(3_600_000 / 7) + 1, 'of that length');

    my $of = ask('sandboxes/s1/operations?buckets=1&from=2020-01-01'
                 . '&to=2100-01-01&status=failed&exit_code=7');
    is_deeply($of->{histogram},
              { from => '2020-01-01T00:00:00.000000Z',
                to => '2100-01-01T00:00:00.000000Z', exact => JSON::PP::true,
                step_ms => 2_524_608_000_000,
                counts => [ { total => 0, failed => 0 } ] },
              'by the filters, and of one sandbox');
    is(ask('operations?buckets=500&from=2020-01-01&to=2020-01-02T00:00:00.1Z')
       ->{histogram}{step_ms}, 172_801, 'the last step may be shorter');
}


# --- output -------------------------------------------------------------------------------

{
    my (@events, %stream, $both);
    my $n = 0;

    for my $i (1 .. 400) {
        my $name = $i % 3 ? 'stdout' : 'stderr';
        my $text = ($i % 50 ? "line $i \x{4f60}\x00\e[1m" : 'x' x 20000);
        push @events, event($name, text => $text);
        my $bytes = $text . "\n";
        utf8::encode($bytes);
        $stream{$name} .= $bytes;
        $both .= $bytes;
    }

    $up->script('POST ' . execd('s1') . '/command', FakeUpstream::stream(
        event('init', text => 'c2'), @events,
        event('execution_complete', execution_time => 5)));
    my $id = run('s1', 'lots');
    $up->script('POST ' . execd('s1') . '/command');

    for my $of ('both', 'stdout', 'stderr') {
        my $want = $stream{$of} // $both;
        my ($got, $after, @n) = ('', -1);
        my $rounds = 0;

        while (defined $after && $rounds++ < 100) {
            my $page = ask("operations/$id/output?stream=$of&after=$after");
            for my $item (@{ $page->{items} }) {
                my $bytes = defined $item->{data_base64}
                    ? decode_base64($item->{data_base64}) : $item->{text};
                utf8::encode($bytes) if !defined $item->{data_base64};
                $got .= $bytes;
                push @n, $item->{n};
                $n++ if length $bytes != $item->{bytes};
            }
            is($page->{complete}, JSON::PP::true, 'kept whole') if !$page->{next};
            $after = $page->{next};
        }

        ok($got eq $want, "$of: all of it, page by page");
        cmp_ok($rounds, '>', 1, "$of: in several pages") if $of eq 'both';
        my $r = $t->get("$API/operations/$id/output?stream=$of&format=raw");
        ok($r->content eq $want, "$of: raw bytes");
        is($r->header('Content-Type'), 'application/octet-stream', 'as such');
        is($r->header('X-Content-Type-Options'), 'nosniff', 'never guessed at');
    }

    is($n, 0, 'the length of each piece is right');

    my ($status, $out) = $cli->run(@{ $cli->{program} }, '--data',
        $t->dir . '/data', 'output', '--json', $id);
    my @printed = map { $json->decode($_) } split /\n/, $out;
    my $first = ask("sandboxes/s1/operations/$id/output");
    is_deeply([ @printed[0 .. $#{ $first->{items} }] ], $first->{items},
              'the command line prints the same pieces');

    # C101: who reads slowly holds no snapshot of the file

    $up->script('POST ' . execd('s3') . '/command', FakeUpstream::stream(
        event('init', text => 'c3'),
        (map { event('stdout', text => 'y' x 60000) } 1 .. 100),
        event('execution_complete', execution_time => 5)));
    my $big = run('s3', 'big');
    $up->script('POST ' . execd('s3') . '/command');
    ask("operations/$big");

    my $c = $t->connect;
    $c->write($c->build(GET => "$API/operations/$big/output?format=raw",
                        headers => [ $t->credential ]));
    ok($c->fill(time + 5), 'C101: a slow reader has begun');
    run('s3', "echo $_") for 1 .. 5;
    my $path = $t->history->path_of('s3');
    my $file = "$path-wal";
    ask('operations?limit=1');
    ok($t->wait_for(sub {
        change($path, 'pragma wal_checkpoint(truncate)') && -s $file == 0;
    }), 'C101: the log of the file can be emptied all the same');
    my $r = $c->response(method => 'GET');
    is(length $r->content, 100 * 60001, 'C101: and it gets all in the end');
}


# --- C118, C107, C114: what is strange, large, or went wrong ---------------------------------

{
    my @unknown = (
        $t->post(execd('s1') . '/isolated/new', body => '{}'),
        $t->get('/v1/sandboxes/s1/proxy/8080/app?x=1'));
    $t->record($_) for @unknown;
    my @seen = map { scalar ask('operations/' . $_->header('X-Operation-Id')) }
               @unknown;
    is_deeply([ map { $_->{type} } @seen ], [ 'execd.unknown', 'proxy.http' ],
              'C118: routes that nobody knows are on record');
    like($seen[0]{summary}, qr{^POST /isolated/new}, 'C118: readable');
    like($seen[1]{summary}, qr{^GET :8080/app}, 'C118: the other too');
    is_deeply([ ids(ask('operations?type=proxy.*')) ], [ $seen[1]{id} ],
              'C118: and found by their type');

    my $large = 'z' x 300_000;
    my $id = run('s2', $large);
    my $many = $t->delete(execd('s2') . '/files?' . join '&',
        map { "path=%2Fw%2F$_" } 1 .. 400)->header('X-Operation-Id');
    my $behind = run('s2', 'behind');

    my @all = pages('sandboxes/s2/operations?', 1);
    is_deeply([ @all[0, 1, 2] ], [ $behind, $many, $id ],
              'C107: readers pass what is large');
    my ($item) = @{ ask('operations?limit=1&before='
        . ask("operations/$many")->{cursor})->{items} };
    is(length $item->{summary}, 4096, 'C107: a list has its beginning');
    is($item->{summary_bytes}, 300_000, 'C107: and tells its length');
    ok(ask("operations/$id")->{command}{command} eq $large,
       'C107: the record has all of it');
    is(scalar @{ ask("operations/$many")->{files} }, 400, 'C107: every path');

    my $command = 'POST ' . execd('s2') . '/command';
    $up->script($command, [ send => "HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n"
                                    . "\r\nno" ]);
    my %went = (upstream => run('s2', 'upstream fails'));
    $up->script($command, [ 'reset' ]);
    $went{reset} = run('s2', 'upstream resets');
    $up->script($command);
    $went{refused} = $t->post(execd('s2') . '/files/upload', body => 'x',
        headers => [ 'Content-Type: multipart/form-data; boundary=b' ])
        ->header('X-Operation-Id');
    $went{twice} = $t->post(execd('s2') . '/command', body => '{"command":"x"}',
        headers => [ 'X-Actor-Id: a', 'X-Actor-Id: b' ])
        ->header('X-Operation-Id');

    $up->script($command, FakeUpstream::stream_head(), [ pause => 60 ]);
    my $c = $t->connect;
    $c->write($c->build(POST => execd('s2') . '/command',
        body => '{"command":"left"}', headers => [ $t->credential,
        'X-Correlation-Id: left' ]));
    $c->response(head_only => 1);
    $t->wait_for(sub {
        ($went{left}) = ids(ask('operations?correlation=left'));
        return $went{left};
    });
    is(ask("operations/$went{left}")->{status}, 'started',
       'C108: what runs is on record');
    is_deeply([ map { $_->{id} } @{ ask('overview')->{running}{items} } ],
              [ $went{left} ], 'and named in the overview');
    $c->close;
    $up->script($command);

    my %want = (
        upstream => [ 'failed', 500, undef ],
        reset    => [ 'failed', 502, 'GATEWAY_UPSTREAM_UNAVAILABLE' ],
        refused  => [ 'failed', 400, 'GATEWAY_AMBIGUOUS_REQUEST' ],
        twice    => [ 'failed', 400, 'GATEWAY_AMBIGUOUS_REQUEST' ],
    );

    for my $how (sort keys %want) {
        my $e = $went{$how} ? ask("operations/$went{$how}") : {};
        is_deeply([ @{$e}{ qw(status http_status error_code) } ], $want{$how},
                  "C114: $how: what happened") or diag explain $e;
        ok($e->{actor}{id} && $e->{started_at} && $e->{completed_at},
           "C114: $how: who and when");
    }

    $t->wait_for(sub { ask("operations/$went{left}")->{status} ne 'started' });
    is_deeply([ @{ ask("operations/$went{left}") }{ qw(status reason) } ],
              [ qw(unknown client_disconnected) ], 'C114: a client that left');
    is(scalar(grep { $_ eq $went{left} } pages('operations?', 100)), 1,
       'C114: in one record');
}


# --- sandboxes, overview --------------------------------------------------------------------

{
    $t->sandbox('s4', metadata => { 'agent_sandbox.name' => 'Four <b>' });
    $t->delete('/v1/sandboxes/s3');
    sleep 0.01;

    my ($all, $r);
    ok($t->wait_for(sub {
        $all = ask('sandboxes');
        my %state = map { $_->{id} => $_->{state} } @{ $all->{items} };
        return ($state{s3} // '') eq 'Deleted' && $state{s4};
    }, 12), 'a sandbox that is gone is listed as that');
    my %box = map { $_->{id} => $_ } @{ $all->{items} };
    is_deeply([ sort keys %box ], [ qw(s1 s2 s3 s4) ], 'all of them');
    is($all->{upstream}, 'ok', 'upstream was asked');
    is($box{s4}{name}, 'Four <b>', 'one without a history, by its name');
    is_deeply([ @{ $box{s4} }{ qw(history operations upstream) } ],
              [ 'none', 0, JSON::PP::true ], 'and nothing on record');
    is($box{s1}{operations}, scalar(pages('sandboxes/s1/operations?', 500)),
       'operations are counted');
    is($box{s1}{state}, 'Running', 'the state is upstream\'s');
    cmp_ok($box{s2}{failures}, '>=', 4, 'failures too');
    cmp_ok($box{s1}{history_bytes}, '>', 4096, 'and bytes');
    like($box{s1}{last_activity_at}, qr/^\d{4}-.*\.\d{6}Z$/, 'last activity');

    is_deeply([ ids(ask('sandboxes?state=deleted')) ], [ 's3' ], 'state');
    is_deeply([ ids(ask('sandboxes?q=FOUR')) ], [ 's4' ], 'q');
    my ($next, @paged) = ('');

    do {
        my $page = ask("sandboxes?limit=1$next");
        push @paged, ids($page);
        $next = $page->{next} ? '&after=' . $page->{next} : undef;
    } while (defined $next && @paged < 10);

    is_deeply([ sort @paged ], [ qw(s1 s2 s3 s4) ], 'page by page: each once');

    my $o = ask('overview');
    is($o->{counts}{total}, scalar(pages('operations?', 500)),
       'the overview counts');
    is($o->{failures}{count}, $o->{counts}{failed}, 'failures');
    is($o->{recorder}{status}, 'ok', 'the recorder is well');
    is($o->{recorder}{applied_cursor}, $o->{recorder}{cursor}, 'nothing waits');
    is(ask('overview?to=2020-01-01')->{counts}{total}, 0, 'of a time');

    # upstream's list is kept for a while: what is younger is not in it

    ask('sandboxes');
    my $id = $t->post('/v1/sandboxes', body => '{"image":{"uri":"x"}}')->json->{id};
    my $new;

    $t->wait_for(sub {
        ($new) = grep { $_->{id} eq $id } @{ ask('sandboxes')->{items} };
        return $new;
    });
    is($new->{history}, 'ok', 'one that was just made is listed');
    isnt($new->{state} // '', 'Deleted', 'and not as deleted');

    $t->delete("/v1/sandboxes/$id");
    ok($t->wait_for(sub {
        ($new) = grep { $_->{id} eq $id } @{ ask('sandboxes')->{items} };
        return ($new->{state} // '') eq 'Deleted';
    }, 12), 'but when it was');
}


# --- who may, and what is refused ------------------------------------------------------------

{
    is($t->get("$API/operations", token => undef)->status, 401, 'no token');
    is($t->get("$API/operations", token => 'expired')->status, 401, 'an old one');

    my ($some) = ids(ask('operations?limit=1'));

    for my $case (
        [ 'operations?limit=0', 'limit' ], [ 'operations?limit=501', 'limit' ],
        [ 'operations?limit=1e2', 'limit' ], [ 'operations?limit=%201', 'limit' ],
        [ 'operations?limit=', 'limit' ], [ 'operations?limit=1&limit=2', 'limit' ],
        [ 'operations?order=up', 'order' ], [ 'operations?facets=yes', 'facets' ],
        [ 'operations?before=x', 'before' ],
        [ 'operations?buckets=0&from=1h', 'buckets' ],
        [ 'operations?buckets=501&from=1h', 'buckets' ],
        [ 'operations?buckets=5', 'buckets' ],
        [ 'operations?buckets=5&from=1h&to=2h', 'buckets' ],
        [ 'operations?after=99999999999999999999', 'after' ],
        [ 'operations?status=done', 'status' ],
        [ 'operations?exit_code=zero', 'exit_code' ],
        [ 'operations?min_duration_ms=-1', 'min_duration_ms' ],
        [ 'operations?from=yesterday', 'from' ], [ 'operations?to=', 'to' ],
        [ 'operations?q=', 'q' ], [ 'operations?q=%21%21', 'q' ],
        [ 'operations?colour=red', 'colour' ], [ 'operations?Type=a', 'Type' ],
        [ 'operations?=x', '' ], [ 'operations?path=%zz', 'path' ],
        [ 'operations?path=%00', 'path' ], [ 'operations?path=%c0%af', 'path' ],
        [ 'operations?path=a;b', 'path' ],
        [ 'operations?path=' . 'x' x 4097, 'path' ],
        [ 'operations?' . join('&', map { "type=a$_" } 1 .. 33), 'type' ],
        [ 'overview?type=a', 'type' ], [ 'overview?from=x', 'from' ],
        [ 'sandboxes?limit=1001', 'limit' ], [ 'sandboxes?connection=a', 'connection' ],
        [ "operations/$some?x=1", 'x' ],
        [ "operations/$some/output?stream=stdin", 'stream' ],
        [ "operations/$some/output?format=xml", 'format' ],
        [ "operations/$some/output?after=-2", 'after' ])
    {
        my ($path, $name) = @$case;
        my $r = (ask($path, fails => 1))[1];
        my $short = substr $path, 0, 60;
        is($r->status, 400, "$short is refused");
        like($r->json->{message}, qr/^[^\n]*\b\Q$name\E\b[^\n]*\.$/,
             'with a sentence that names it');
    }

    for my $path ('operations/x', 'operations/' . 'x' x 500, 'operations/..%2f',
                  'operations/%27%20OR%201=1--', 'sandboxes/nobody/operations',
                  'sandboxes/-/operations', "sandboxes/s1/operations/x",
                  'operations/x/output', "sandboxes/nobody/operations/$some/output",
                  'sandboxes/' . 'y' x 2000 . '/operations')
    {
        my $r = (ask($path, fails => 1))[1];
        is($r->status, 404, substr($path, 0, 60) . ' is not there');
        is($r->code, 'GATEWAY_NOT_FOUND', 'in the envelope');
    }

    for my $q ("%27;drop+table+ops;--", '%22open', '-a', '*', 'NEAR(a+b)',
               '%e4%bd%a0', 'a' x 3000, 'OR', '%f0%9f%98%80')
    {
        my $r = (ask("operations?q=$q", fails => 1))[1];
        ok($r->status == 200 || $r->status == 400, "q=" . substr $q, 0, 30)
            or diag($r->status, $r->content);
    }

    is($t->request(POST => "$API/operations", body => '')->status, 405,
       'other methods are refused');
    is($t->request(HEAD => "$API/operations")->status, 200, 'HEAD is answered');
    is(scalar @{ ask('operations?before=-9223372036854775808')->{items} }, 0,
       'the least cursor');
    is(scalar @{ ask('operations?after=9223372036854775807')->{items} }, 0,
       'the greatest one');
}


# --- C113, C112: every record exactly once -----------------------------------------------------

{
    run($_ % 2 ? 's1' : 's2', "same $_") for 1 .. 60;

    # a file that others wrote, and one time for all

    $t->kill_helper('TERM');
    my $dir = $t->history->{dir};
    mkdir "$dir/foreign";
    my $path = "$dir/foreign/history.sqlite3";
    my $same = '2026-11-29T12:00:00.000000Z';

    system 'sqlite3', $t->history->path_of('s1'), "vacuum into '$path'";
    change($path, <<"EOF_SQL") or die;
delete from history_events;
delete from history_changes;
delete from command_executions;
delete from command_output_chunks;
delete from file_operations;
update history_meta set value = 'foreign' where key = 'sandbox_id';
@{[ map { "drop table if exists $_;" } map { values %$_ } $t->history->query('s1',
    "select name from sqlite_master where type = 'table' and name like 'gateway%'") ]}
with recursive n(i) as (select 1 union all select i + 1 from n where i < 500)
insert into history_events(event_id, provider_key, sandbox_id,
    sandbox_instance_id, actor_type, operation_type, status, occurred_at)
select printf('0197a000-0000-7000-8000-%012d', i), 'p', 'foreign', 'i', 'agent',
    'command.execute', 'succeeded', '$same' from n;
insert into history_changes(change_id, event_id, change_type, changed_at)
select event_id || ':created', event_id, 'created', '$same' from history_events;
EOF_SQL

    my ($uid, $gid) = (stat $dir)[4, 5];
    chown $uid, $gid, "$dir/foreign", glob "$path*";

    for my $s (qw(s1 s2)) {
        change($t->history->path_of($s),
               "update history_events set occurred_at = '$same'") or die;
    }

    system 'rm', '-r', $t->dir . '/data/index';
    $t->start_helper;

    ok($t->wait_for(sub {
        my $r = (ask('operations?limit=1', fails => 1))[1];
        return if $r->status != 200;
        my $n = ask('overview')->{recorder}{index};
        return $n->{ready} && $n->{operations} >= 600;
    }, 20), 'the index is made anew');

    my @want = pages('operations?', 500);
    cmp_ok(scalar @want, '>=', 500 + 60, 'records of one time: all are there');
    my %once = map { $_ => 1 } @want;
    is(scalar keys %once, scalar @want, 'each once');

    for my $asc (0, 1) {
        my $n = 0;
        my @new;
        my @got = pages('operations?', 7, asc => $asc, between => sub {
            push @new, run($n % 2 ? 's1' : 's2', "while paging $n") if $n++ % 9 == 0;
        });
        my $name = 'C113: pages of 7, ' . ($asc ? 'oldest' : 'newest') . ' first';
        my %new = map { $_ => 1 } @new;
        my @old = grep { !$new{$_} } @got;
        is_deeply(\@old, $asc ? [ reverse @want ] : \@want,
                  "$name: every record once, in order, while new ones come");
        is_deeply([ grep { $new{$_} } @got ], \@new,
                  'C113: and who goes up finds these at the end') if $asc;
        @want = pages('operations?', 500);
    }

    # forth and back over the same borders

    my @forth;
    my $page = ask('operations?limit=7');
    my @there = ([ ids($page) ]);

    for (1 .. 5) {
        $page = ask("operations?limit=7&before=$page->{next}");
        push @there, [ ids($page) ];
    }

    for my $i (reverse 0 .. 4) {
        $page = ask("operations?limit=7&after=$page->{previous}");
        is_deeply([ ids($page) ], $there[$i], "C113: back to page $i");
    }

    is($page->{previous}, undef, 'C113: and nothing in front of it');

    # C112: the oldest go while somebody reads

    my $gone = 0;
    my @got = pages('operations?', 9, between => sub {
        $gone += 10;
        change($path, 'pragma foreign_keys = on; delete from history_events'
               . " where seq in (select seq from history_events order by seq"
               . ' limit 10)') if $gone <= 300;
    });
    %once = map { $_ => 1 } @got;
    is(scalar keys %once, scalar @got, 'C112: while old ones go: each once');
    my %left = map { $_->{event_id} => 1 }
               $t->history->query('foreign', 'select event_id from history_events');
    my @missed = grep { !$once{$_} && (!/^0197a000/ || $left{$_}) } @want;
    is_deeply(\@missed, [], 'C112: nothing that stays is missed');
}


# --- without upstream; a broken file ------------------------------------------------------------

{
    $up->stop;
    my $all;
    ok($t->wait_for(sub { ($all = ask('sandboxes'))->{upstream} eq 'unreachable' },
                    12), 'upstream is away, and that is said');
    my %box = map { $_->{id} => $_ } @{ $all->{items} };
    ok($box{s1} && $box{s3} && $box{foreign}, 'the histories are there');

    # C115: one that cannot be read

    $t->kill_helper('TERM');
    my $path = $t->history->path_of('foreign');
    open my $fh, '+<:raw', $path or die;
    print $fh 'no database at all' x 100;
    close $fh;
    $t->start_helper;
    $t->wait_for(sub { (ask('operations?limit=1', fails => 1))[1]->status == 200 });
    my $one = ask('operations?limit=500');
    ok(@{ $one->{items} } > 60, 'C115: a broken file: the others are told');
    ($all) = grep { $_->{id} eq 'foreign' } @{ ask('sandboxes')->{items} };
    is($all->{history}, 'unreadable', 'C115: and which it is');
    is((ask('sandboxes/foreign/operations/0197a000-0000-7000-8000-000000000500',
            fails => 1))[1]->status, 503, 'C115: asked for itself, it says so');
}

$t->stop;
done_testing;
