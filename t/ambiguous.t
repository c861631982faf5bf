#!/usr/bin/perl

# What cannot be read in exactly one way is refused before it is forwarded, and
# on record; what can is judged as the sandbox will judge it (reference 8.1,
# 10.4; field cases C010, C011, C013, C014, C080-C082, C143).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;
use IO::Socket::INET;
use POSIX ();
use SandboxTest;
use Test::More;
use Time::HiRes qw(time);

my $FULL = ($ENV{T_SCALE} // 1) >= 10;

# without versions nothing of a file's content is kept
my $t = SandboxTest->new(http => 'large_client_header_buffers 4 64k;'
                         . ' sandbox_versions off;')->start;
my $up = $t->up;
$t->sandbox('s1');
my $s = '/v1/sandboxes/s1/proxy';


# --- the forms of reference 10.4 -------------------------------------------------------

# either the same operation, or refused
for my $case (
    [ 'encoded route', POST => '/%73andboxes/s1/proxy/44772/%63ommand',
      'command.execute' ],
    [ 'leading zeros', POST => '/sandboxes/s1/proxy/0044772/command',
      'command.execute' ],
    [ 'encoded port', POST => '/sandboxes/s1/proxy/%34%34772/command',
      'command.execute' ],
    [ 'nested', POST => '/sandboxes/s1/proxy/44772/proxy/44772/command',
      'command.execute' ],
    [ 'nested with zeros', POST =>
      '/sandboxes/s1/proxy/44772/proxy/0044772/command', 'command.execute' ],
    [ 'nested to egress', GET => '/sandboxes/s1/proxy/44772/proxy/18080/policy',
      'egress.policy.get' ],
    [ 'nested to a user port', GET => '/sandboxes/s1/proxy/44772/proxy/8080/x',
      'proxy.http' ],
) {
    my ($name, $method, $target, $op) = @$case;
    $up->mark;
    my $r = $t->request($method, $target,
        $method eq 'POST' ? (body => '{"command":"echo hi"}') : ());
    is($r->status, 200, "$name is understood");
    my $e = $t->record($r);
    is($e->{operation_type}, $op, "as $op");
    is($e->{wire}{sandbox} // $e->{sandbox_id}, 's1', 'for the sandbox');
    is(($up->requests)[-1]{target}, $target, 'and forwarded as it was sent');
}

# Understood or refused; never something else that passes.
for my $case (
    [ 'encoded separator', POST => '/sandboxes/s1/proxy/44772%2Fcommand',
      'command.execute' ],
    [ 'double encoding', POST => '/sandboxes/s1/proxy/44772/%2563ommand',
      'command.execute' ],
    [ 'hidden query', DELETE => '/sandboxes/s1/proxy/44772/files%3Fpath=/a',
      'file.delete' ],
) {
    my ($name, $method, $target, $op) = @$case;
    $up->mark;
    my $r = $t->request($method, $target,
        $method eq 'POST' ? (body => '{"command":"echo hi"}') : ());

    if ($r->status == 400) {
        is($r->code, 'GATEWAY_AMBIGUOUS_REQUEST', "$name is refused");
        is(scalar $up->requests, 0, 'and does not pass');

    } else {
        is($t->record($r)->{operation_type}, $op, "$name is understood");
    }
}


# --- paths that are refused (C010, C011, C080, C143) ----------------------------------------

for my $path (
    "$s/8080/../44772/files/upload", "$s/8080/%2e%2e/44772/files/upload",
    "$s/8080/.%2e/44772/files/upload", "$s/44772//files/upload",
    "$s/44772/./files/upload", "$s/44772/%2e/files/upload",
    "$s/44772/files/../files/upload", '//v1//sandboxes/s1//proxy/44772//command',
    '/v1//sandboxes', '/v1/sandboxes/../sandboxes', '/v1/sandboxes/s1/./pause',
    "$s/44772/files%2Fupload", "$s/44772/files%23/upload", "$s/44772/%00",
    "$s/44772/a%0ab", "$s/44772/files%5cupload", "$s/44772/files\\upload",
    "$s/44772/%c0%af", "$s/44772/%ff", "$s/44772/%2500", "$s/44772/%zz",
    "$s/0/x", "$s/65536/x", "$s/99999999999/x", "$s/44772x/command", "$s/x/y",
    "$s/-1/x", "$s/+44772/command", "$s//44772/command",
    "$s/44772" . '/proxy/44772' x 6 . '/command',
    '/v1/sandboxes/a%2fproxy%2f44772/command',
    '/v1/sandboxes/s1%2f..%2fs2/proxy/44772/command',
    '/v1/sandboxes/%2e%2e/proxy/44772/command',
    '/v1/sandboxes/s1/proxy/8080/a/%2e%2e/%2e%2e/44772/command',
    '/v1/sandboxes/s1/proxy/8080/..', '/v1/sandboxes/s1%00/pause',
    '/v1/sandboxes/s1?a#b',
) {
    $up->mark;
    my $r = $t->post($path, body => '{"command":"x"}');
    is($r->status, 400, "C010, C011, C080, C143: $path is refused");
    is(scalar $up->requests, 0, 'and does not pass')
        or diag(($up->requests)[0]{head});
}

my $r = $t->post("$s/44772/./command", body => '{"command":"x"}');
is($r->code, 'GATEWAY_AMBIGUOUS_REQUEST', 'in the envelope');
my $e = $t->record($r);
is($e->{status}, 'failed', 'a refusal is on record');
is($e->{wire}{error_code}, 'GATEWAY_AMBIGUOUS_REQUEST', 'with its code');
is($e->{wire}{upstream_status}, undef, 'which is ours');

# Other prefixes are no way in (C143): unknown to us as to upstream.
for my $path ('/x/sandboxes/s1/proxy/44772/command',
              '/proxy/sandboxes/s1/proxy/44772/command',
              '/V1/sandboxes/s1/proxy/44772/command',
              '/v1/Sandboxes/s1/proxy/44772/command',
              '/v1/v1/sandboxes/s1/proxy/44772/command',
              '/sandboxes./s1/proxy/44772/command')
{
    my $r = $t->post($path, body => '{"command":"x"}');
    my $op = $t->record($r)->{operation_type};
    ok($r->status == 400 || $op eq 'lifecycle.unknown', "C143: $path: $op");
    is($t->post($path, token => undef, body => '{}')->status, 401,
       'and needs a token like everything');
}


# --- JSON (10.4) ------------------------------------------------------------------------------

for my $body (
    '{"command":"a","Command":"b"}', '{"command":"a","command":"b"}',
    '{"COMMAND":"a"}', "{\"comm\xc3\xa4nd\":\"a\"}", "{\"\xc5\xbfommand\":\"a\"}",
    '{"command":"a"}{"command":"b"}', '{"command":"a"}x', '{"command":"a"',
    '{"command":"a",}', "{'command':'a'}", '{"command":"a" /* */}', '[', 'x',
    "\xef\xbb\xbf{\"command\":\"a\"}", "{\"command\":\"\xff\"}",
    '{"command":"\ud800"}', '[' x 5000, '{"command":NaN}',
    '{"cwd":"/a","CWD":"/b","command":"a"}',
) {
    $up->mark;
    my $r = $t->post("$s/44772/command", body => $body);
    is($r->status, 400, 'refused: ' . substr $body, 0, 40);
    is($r->code, 'GATEWAY_AMBIGUOUS_REQUEST', 'in the envelope');
    is(scalar $up->requests, 0, 'and does not pass');
}

# white space, unknown members and odd but legal texts pass unchanged
for my $body (" {\n\"command\" : \"a\"\t} \r\n", '{"command":"a","novel":{"b":[1]}}',
              '{"command":"a\u0041\n\"\\\\ \ud83d\ude00"}', '{}',
              '{"command":"a","background":false,"envs":{"A":"1","a":"2"}}')
{
    $up->mark;
    my $r = $t->post("$s/44772/command", body => $body);
    is($r->status, 200, 'passes: ' . $body =~ s/\s+/ /gr);
    is(($up->requests)[-1]{body}, $body, 'unchanged');
}

$r = $t->post("$s/44772/command", body => '{"command":"a","novel":1}');
like($t->record($r)->{request_json}, qr/novel/, 'unknown members are named');

# keys that are paths
for my $case (
    [ '/files/permissions', '{"/w/b":{"mode":644},"/w/a":{"mode":755}}',
      'file.chmod', '/w/a', '/w/b' ],
    [ '/files/replace', '{"/w/a":{"old":"x","new":"y"}}', 'file.replace',
      '/w/a' ],
    [ '/directories', '{"/w/d":{"mode":755},"/w/e":{}}', 'dir.create',
      '/w/d', '/w/e' ],
    [ '/files/mv', '[{"src":"/w/a","dest":"/w/b"},{"src":"/w/c","dest":"/w/d"}]',
      'file.move', '/w/b', '/w/d' ],
) {
    my ($path, $body, $op, @paths) = @$case;
    my $e = $t->record($t->post("$s/44772$path", body => $body));
    is($e->{operation_type}, $op, "$path is $op");
    is_deeply([ sort map { $_->{path} } @{ $e->{files} } ], \@paths,
              'every path of it is recorded')
        or diag(explain $e->{files});
}

$e = $t->record($t->post("$s/44772/files/mv",
                         body => '[{"src":"/w/a","dest":"/w/b"}]'));
is($e->{files}[0]{old_path}, '/w/a', 'a move has both paths');
is($e->{file}{old_path}, '/w/a', 'also for other readers');

$r = $t->post("$s/44772/files/replace", body =>
    '{"/w/a":{"old":"replace-old-1","new":"replace-new-1"}}');
$t->secret('replace-old-1', 'replace-new-1');
ok($t->record($r)->{event_id}, 'texts of a replacement are not recorded');

$up->mark;
is($t->post("$s/44772/files/permissions",
            body => '{"/w/a":{"mode":1},"/w/a":{"mode":2}}')->status, 400,
   'the same path twice in a map is refused');
is(scalar $up->requests, 0, 'and does not pass');

# queries
$e = $t->record($t->delete("$s/44772/files?path=%2Fa&path=%2Fb+c&path=%2Fa"));
is_deeply([ map { $_->{path} } @{ $e->{files} } ], [ '/a', '/b c' ],
          'C090: repeated query: every path, duplicates once');
$e = $t->record($t->get("$s/44772/files/download?path=%2Ffirst&path=%2Fsecond"));
is_deeply([ map { $_->{path} } @{ $e->{files} } ], [ '/first' ],
          'a single-valued one: the first');

for my $query ('path=%zz', 'path=%', 'path=a;b', 'path=%00', 'path=%ff%fe',
               'path=%c0%ae%c0%ae')
{
    $up->mark;
    is($t->delete("$s/44772/files?$query")->status, 400, "refused: $query");
    is(scalar $up->requests, 0, 'and does not pass');
}

$e = $t->record($t->delete("$s/44772/files?" . join '&',
                           map { "path=%2Ff$_" } 1 .. 3000));
is($e->{wire}{files_total}, 3000, 'C090: thousands of paths are counted');
cmp_ok(scalar @{ $e->{files} }, '>=', 1000, 'and listed up to a bound');

for my $name ('$HOME/x', '~/x', '../up', 'relative') {
    my $e = $t->record($t->get("$s/44772/files/download?path="
                               . $name =~ s{([^\w.~])}{sprintf '%%%02X', ord $1}ger));
    is($e->{files}[0]{path}, $name, "C084: recorded as sent: $name");
    cmp_ok($e->{files}[0]{flags}, '>', 0, 'and flagged');
}


# --- sizes ---------------------------------------------------------------------------------------

my $big = '{"command":"' . 'x' x (1 << 20) . '"}';
$up->mark;

for my $how ([ 'Content-Length' ], [ 'chunked', chunked => 1 ]) {
    my ($name, @o) = @$how;
    my $r = $t->post("$s/44772/command", body => $big, @o);
    is($r->status, 413, "a body over sandbox_body_limit, $name");
    is($r->code, 'GATEWAY_LIMIT_EXCEEDED', 'in the envelope');
    is($t->record($r)->{status}, 'failed', 'on record');
}

is(scalar $up->requests, 0, 'and none passed');

$big = '{"command":"' . 'y' x ((1 << 20) - 100) . '"}';
$r = $t->post("$s/44772/command", body => $big);
is($r->status, 200, 'just below it passes');
is(eval { ($up->requests)[-1]{length} }, length $big, 'whole');
ok($t->record($r)->{command}{command} =~ /^y+$/, 'and is recorded');


# --- framing (C013, C014) ----------------------------------------------------------------------------

my $auth = $t->credential;
my $head = "POST $s/44772/command HTTP/1.1\r\nHost: localhost\r\n$auth\r\n";
my $smuggled = "GET /v1/sandboxes/s1 HTTP/1.1\r\nHost: localhost\r\n$auth\r\n\r\n";

for my $case (
    [ 'CL then TE', "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n",
      "0\r\n\r\nG$smuggled" ],
    [ 'TE then CL', "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n",
      "0\r\n\r\nG$smuggled" ],
    [ 'two lengths', "Content-Length: 5\r\nContent-Length: 50\r\n", $smuggled ],
    [ 'a list', "Content-Length: 5, 5\r\n", $smuggled ],
    [ 'a sign', "Content-Length: +5\r\n", $smuggled ],
    [ 'hexadecimal', "Content-Length: 0x5\r\n", $smuggled ],
    [ 'twenty digits', 'Content-Length: ' . 9 x 20 . "\r\n", $smuggled ],
    [ 'another coding', "Transfer-Encoding: gzip, chunked\r\n",
      "0\r\n\r\n$smuggled" ],
    [ 'chunked twice', "Transfer-Encoding: chunked\r\n"
                       . "Transfer-Encoding: chunked\r\n", "0\r\n\r\n$smuggled" ],
) {
    my ($name, $lines, $rest) = @$case;
    $up->mark;
    my $c = $t->connect;
    $c->write("$head$lines\r\n$rest");
    my $r = $c->response;
    ok($r->status == 400 || $r->status == 501, "C013, C014: $name")
        or diag($r->status);
    ok($c->closed(3), 'and the connection is closed');
    is(scalar $up->requests, 0, 'nothing reaches upstream');
}

# C017: a refusal is read by a client that is still sending a large body, over
# loopback and over a link on which everything takes 50 ms
{
    my ($rounds, $mib) = $FULL ? (50, 80) : (5, 30);
    my ($link, $far) = slow_link($t->{port}, 0.05);
    my @forbidden = ([ 401, undef ], [ 403, 'viewer' ]);
    my (@status, @want, @code);

    for my $port ($t->{port}, $far) {
        for my $round (1 .. $rounds) {
            my ($want, $token) = @{ $forbidden[$round % 2] };
            my $c = $t->connect(port => $port);
            $c->write($c->build(POST => "$s/44772/files/upload", headers => [
                $t->credential(token => $token), "Host: 127.0.0.1:$t->{port}",
                'Content-Length: ' . ($mib << 20) ]));

            for (1 .. $mib) {
                $c->write('x' x (1 << 20)) or last;
            }

            my $r = $c->response;
            push @status, $r->status;
            push @want, $want;
            push @code, $r->code // 'none';
        }
    }

    is_deeply(\@status, \@want, 'C017: a refusal is not lost behind a large body');
    is_deeply([ grep { !/^GATEWAY_(?:UNAUTHENTICATED|FORBIDDEN)$/ } @code ], [],
              'C017: nor is what it says');

    kill 'KILL', $link;
    waitpid $link, 0;
}

# C015: a refused request with an endless body is not read for ever
for my $viewer (0, 1) {
    my $c = $t->connect;
    $c->write("POST $s/44772/command HTTP/1.1\r\nHost: localhost\r\n"
              . ($viewer ? $t->credential(token => 'viewer') . "\r\n" : '')
              . "Transfer-Encoding: chunked\r\n\r\n");
    my $r = $c->response;
    is($r->status, $viewer ? 403 : 401, 'C015: refused before its body');
    # (of strangers only some are)
    is($t->record($r)->{wire}{error_code}, 'GATEWAY_FORBIDDEN',
       'on record before that ends') if $viewer;
    my $sent = 0;

    for (1 .. 2000) {
        $c->write("10000\r\n" . 'x' x 65_536 . "\r\n") or last;
        $sent++;
    }

    cmp_ok($sent, '<', 2000, 'and not read for ever');
    is($t->metric('refused_bodies_closed_total'), $viewer + 1, 'which is counted');
}

$t->stop;
done_testing;


# A process through which a port can be reached, with so many seconds between what
# is sent and what arrives, either way.  Returns it and its port.

sub slow_link {
    my ($port, $delay) = @_;

    my $listen = IO::Socket::INET->new(Listen => 8, LocalAddr => '127.0.0.1')
        or die "cannot listen: $!\n";
    my $pid = fork // die "fork: $!\n";

    return ($pid, $listen->sockport) if $pid;

    while (my $client = $listen->accept) {
        my $server = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                           PeerPort => $port) or die "connect: $!\n";
        my @way = map { { from => $_->[0], to => $_->[1], queue => [], held => 0 } }
            [ $client, $server ], [ $server, $client ];

        while (grep { $_->{from} || @{ $_->{queue} } } @way) {
            my $now = time;

            for my $w (@way) {
                while (@{ $w->{queue} } && $w->{queue}[0][0] <= $now) {
                    my (undef, $bytes) = @{ shift @{ $w->{queue} } };
                    $w->{held} -= length $bytes;

                    # nobody there any more: the other side learns of it
                    $bytes eq '' || !pass_on($w->{to}, $bytes)
                        ? shutdown($w->{to}, 1) : ();
                }
            }

            my $r = IO::Select->new(map { $_->{from} }
                                    grep { $_->{from} && $_->{held} < 1 << 20 } @way);

            for my $from ($r->can_read(0.005)) {
                my ($w) = grep { ($_->{from} // 0) == $from } @way;
                my $n = sysread $from, my $bytes, 65_536;
                push @{ $w->{queue} }, [ time + $delay, $n ? $bytes : '' ];
                $w->{held} += $n // 0;
                $w->{from} = undef if !$n;
            }
        }
    }

    POSIX::_exit(0);
}


sub pass_on {
    my ($to, $bytes) = @_;

    local $SIG{PIPE} = 'IGNORE';

    while (length $bytes) {
        my $n = syswrite $to, $bytes or return 0;
        substr $bytes, 0, $n, '';
    }

    return 1;
}
