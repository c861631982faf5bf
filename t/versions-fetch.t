#!/usr/bin/perl

# sandbox_versions fetch: what stands in a file is read in the sandbox before it
# is changed, unless the history tells.  Whatever becomes of that, the change goes
# on; what cannot have been the state before does not count.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;
use Time::HiRes qw(time sleep);

my $MIB = 1 << 20;
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $token = 'execd-secret-of-the-sandbox';

my $t = SandboxTest->new(location => 'sandbox_versions fetch;',
    helper_args => [ '--fetches', 2 ], locations => <<'EOF2')->start;
        location /v1/sandboxes/loose {
            sandbox on;
            sandbox_versions fetch;
            sandbox_record * best_effort;
            proxy_pass http://opensandbox$sandbox_upstream_uri;
            proxy_http_version 1.1;
            proxy_set_header Host $sandbox_upstream_host;
            proxy_set_header Connection $sandbox_connection;
        }
EOF2

my $up = $t->up;
$t->secret($token);
$t->sandbox($_) for qw(s1 loose);
$t->sandbox('s2', learn => 1);
$t->sandbox('dead', execd => 'refusing', learn => 1);


# --- it is read -------------------------------------------------------------------------

stands('/w/a', "old\n");
my $e = upload('s1', [ '/w/a', "new\n" ], headers => [
    "X-EXECD-ACCESS-TOKEN: $token", 'Authorization: Bearer ' . $t->token ]);
before($e, 0, 'fetched', "old\n", 'nothing was known of it: it is read');
like($e->{file}{diff_data}, qr/^-old\n\+new\n\z/m, 'there is a difference');

my ($get, $put) = map { $_->{method} } $up->requests(qr{files/}, helper => 1);
is_deeply([ $get, $put ], [ 'GET', 'POST' ], 'first it is read, then written');

my ($seen) = reads();
is($seen->{target}, "$execd/files/download?path=%2Fw%2Fa", 'by the same road');
my %head = map { lc $_->[0] => $_->[1] } @{ $seen->{headers} };
is($head{'x-execd-access-token'}, $token, 'with what the sandbox wants of the client');
is_deeply([ grep { exists $head{$_} } qw(open-sandbox-api-key authorization) ], [],
          'and nothing else of it');
is_deeply([ map { $_->{operation_type} } $t->records('s1') ], [ 'file.write' ],
          'it is no operation of its own');

$e = upload('s1', [ '/w/a', "newer\n" ]);
before($e, 0, 'history', "new\n", 'the history tells now');
is(scalar(my @once = reads()), 1, 'and it is not read again');

stands('/w/a', "by a command\n");
$t->record($t->post("$execd/command", body => '{"command":"x"}'), sandbox => 's1');
$e = upload('s1', [ '/w/a', "newest\n" ]);
before($e, 0, 'fetched', "by a command\n", 'a command may have changed it: it is read');

$up->script(qr{^GET (?!/v1).*/files/download\?path=%2Fw%2Fs$}, ok_step("straight\n"));
$e = upload('s2', [ '/w/s', "x\n" ]);
before($e, 0, 'fetched', "straight\n", 'straight from the sandbox');
isnt((reads('path=%2Fw%2Fs'))[0]{listener}, 'lifecycle',
     'whose address was learnt');

stands('/w/empty', '');
$e = upload('s1', [ '/w/empty', "x\n" ]);
before($e, 0, 'fetched', '', 'an empty file');

my $full = join '', map { sprintf "%07d\n", $_ } 1 .. 1 << 17;
stands('/w/full', $full);
$e = upload('s1', [ '/w/full', $full . '.' ]);
before($e, 0, 'fetched', $full, '1 MiB');

stands('/w/m1', "1\n");
stands('/w/m2', "2\n");
$e = upload('s1', [ '/w/m1', "a\n", '/w/m2', "b\n", '/w/m1', "c\n" ]);
before($e, 0, 'fetched', "1\n", 'several files: the first');
before($e, 1, 'fetched', "2\n", 'the second');
before($e, 2, 'history', "a\n", 'the first again: as the operation itself left it');

stands('/w/x y&z%/ä', "odd\n");
$e = upload('s1', [ '/w/x y&z%/ä', "x\n" ]);
before($e, 0, 'fetched', "odd\n", 'an odd name');


# --- other changes ----------------------------------------------------------------------

stands('/w/r', "one two\n");
$e = $t->record($t->post("$execd/files/replace",
    body => '{"/w/r":{"old":"two","new":"2"}}'), sandbox => 's1');
before($e, 0, 'fetched', "one two\n", 'replace');
is($e->{files}[0]{sha256}, sha256_hex("one 2\n"), 'what comes of it is worked out');

stands('/w/from', "moved\n");
missing('/w/to');
$e = $t->record($t->post("$execd/files/mv",
    body => '[{"src":"/w/from","dest":"/w/to"}]'), sandbox => 's1');
before($e, 0, 'absent', undef, 'move: nothing stood there');
is($e->{files}[0]{sha256}, sha256_hex("moved\n"), 'now what came from elsewhere does');
is($t->get("/console/api/v1/operations/$e->{event_id}/content")->content, "moved\n",
   'which is kept');

my $failed = metric('file_fetches_failed_total');

for my $secret ($t->token, $t->{api_key}, 'sbx_gone_' . 'x' x 43) {
    my $path = '/w/' . substr $secret, 0, 6;
    stands($path, "x $secret\n");
    before(upload('s1', [ $path, "x\n" ]), 0, 'unavailable', undef,
           'a credential stands in it: it is not kept');
}

is(metric('file_fetches_failed_total') - $failed, 3, 'which is counted');

stands('/w/d', "gone\n");
$e = $t->record($t->delete("$execd/files?path=/w/d"), sandbox => 's1');
before($e, 0, 'fetched', "gone\n", 'delete');
like($e->{file}{diff_data}, qr/^-gone\n\z/m, 'tells what is lost');


# --- it is not there, or cannot be read --------------------------------------------------

missing('/w/new');
$e = upload('s1', [ '/w/new', "first\n" ]);
before($e, 0, 'absent', undef, 'execd knows of no such file');
like($e->{file}{diff_data}, qr{^--- /dev/null$}m, 'so it is new');

answers('/w/n404', 404, '{"code":"DOCKER::SANDBOX_NOT_FOUND","message":""}');
answers('/w/n500', 500, '{"code":"RUNTIME_ERROR","message":""}');
answers('/w/n401', 401, 'unauthorized');
answers('/w/n206', 206, 'half');
answers('/w/long', 200, 'x' x ($MIB + 1));
script('/w/open', [ send => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" ],
       [ repeat => 20, [ chunk => 'x' x 65536 ] ], [ chunk => '' ]);
script('/w/cut', [ send => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf" ], [ 'close' ]);
script('/w/mute', [ 'close' ]);
script('/w/slow', [ 'hang' ]);
script('/w/half', [ send => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf" ], [ 'hang' ]);

for ([ n404 => "a 404 that is not of the file" ], [ n500 => 'a failure' ],
     [ n401 => 'no access' ], [ n206 => 'a part' ], [ long => 'more than 1 MiB' ],
     [ open => 'more than 1 MiB, its length not told' ], [ cut => 'half an answer' ],
     [ mute => 'no answer' ], [ slow => 'silence' ], [ half => 'silence in the middle' ])
{
    my ($file, $name) = @$_;
    $e = upload('s1', [ "/w/$file", "x\n" ]);
    is($e->{status}, 'succeeded', "$name: the file is written");
    before($e, 0, 'unavailable', undef, 'and what stood there is not known');
}

$e = $t->record(post_upload('dead', [ '/w/a', "x\n" ]), sandbox => 'dead');
is($e->{status}, 'failed', 'a sandbox that cannot be reached');
before($e, 0, 'unavailable', undef, 'and what stood there is not known');

cmp_ok(metric('file_fetches_failed_total'), '>=', 10, 'failures are counted');
is(metric('file_fetches'), 0, 'nothing is left');


# --- its bound --------------------------------------------------------------------------

script("/w/b$_", [ pause => 0.25 ], ok_step("b$_\n")) for 1 .. 3;
my @c = map { my $c = $t->connect; $c->write(raw_upload('s1', [ "/w/b$_", "x\n" ])); $c }
        1 .. 3;
my @e = map { $t->record($_->response, sandbox => 's1') } @c;
is_deeply([ sort map { $_->{files}[0]{before} } @e ],
          [ qw(fetched fetched unavailable) ], 'two at once, a third is not read');
is(metric('file_fetches_refused_total'), 1, 'which is counted');
is(metric('file_fetches_limit'), 2, 'the bound');


# --- meanwhile --------------------------------------------------------------------------

script('/w/leave', [ 'hang' ]);
my $c = $t->connect;
$c->write(raw_upload('s1', [ '/w/leave', "x\n" ]));
$t->wait_for(sub { reads('leave') }) or diag('it was not read');
$c->close;
ok($t->wait_for(sub { grep { $_->{status} eq 'cancelled' } $t->history->events('s1') }),
   'the client leaves while it is read');
is(scalar(grep { $_->{body} =~ m{/w/leave} } $up->requests(qr{^POST .*upload})), 0,
   'nothing is written');

script('/w/reload', [ pause => 0.3 ], ok_step("before the reload\n"));
$c = $t->connect;
$c->write(raw_upload('s1', [ '/w/reload', "x\n" ]));
$t->wait_for(sub { reads('reload') }) or diag('it was not read');
$t->reload;
$e = $t->record($c->response, sandbox => 's1');
is($e->{status}, 'succeeded', 'a reload while it is read');
before($e, 0, 'fetched', "before the reload\n", 'changes nothing');

# What need not be on record before it happens is asked about as well.

my $loose = '/v1/sandboxes/loose/proxy/44772/files';
$up->script("GET $loose/download?path=%2Fw%2Floose", ok_step("loose\n"));
before(upload('loose', [ '/w/loose', "x\n" ]), 0, 'fetched', "loose\n", 'best_effort');

# The helper stands still, the worker gives up, the file is written; then the helper
# goes on and reads what may be the new state.

my $late = metric('files_late_total');
$up->script("GET $loose/download?path=%2Fw%2Flate", ok_step("too late\n"));
$up->script("POST $loose/upload", [ pause => 1.5 ],
            [ send => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" ]);
kill 'STOP', $t->{helper_pid};
$c = $t->connect;
$c->write(raw_upload('loose', [ '/w/late', "x\n" ]));
$t->wait_for(sub { (my @posts = $up->requests(qr{^POST \Q$loose})) == 2 });
kill 'CONT', $t->{helper_pid};
my $r = $c->response;
is($r->status, 200, 'a helper that does not answer does not stop a write');
is(scalar(my @late = reads('path=%2Fw%2Flate')), 1, 'it reads the file afterwards');
$e = $t->record($r, sandbox => 'loose');
before($e, 0, 'unavailable', undef, 'which is not taken for the state before');
is(metric('files_late_total'), $late + 1, 'that is counted');


# --- the body of an upload is read first -------------------------------------------------

my $long = join '', map { pack 'N', $_ } 1 .. 1 << 19;
stands('/w/spool', "x\n");
$e = upload('s1', [ '/w/spool', $long ]);
before($e, 0, 'fetched', "x\n", 'an upload of 2 MiB');
is($e->{file}{after_hash}, sha256_hex($long), 'its digest');
ok((grep { $_->{body} =~ /spool/ || $_->{length} > 2 * $MIB }
    $up->requests(qr{^POST .*upload}))[0], 'goes upstream whole');
is_deeply([ glob "$t->{dir}/temp/body/*" ], [], 'nothing is left of it');

$r = $t->post("$execd/files/upload", body => 'no part at all',
    headers => [ 'Content-Type: multipart/form-data; boundary=B' ]);
is($r->status, 400, 'one that cannot be read');
is($r->code, 'GATEWAY_AMBIGUOUS_REQUEST', 'is refused as ever');

stands('/w/chunked', "c\n");
my ($headers, $body) = split /\r\n\r\n/, raw_upload('s1', [ '/w/chunked', "x\n" ]), 2;
$headers =~ s/Content-Length: \d+/Transfer-Encoding: chunked/;
$c = $t->connect;
$c->write("$headers\r\n\r\n");
$c->write(sprintf "%x\r\n%s\r\n", length, $_) for $body =~ /(.{1,40})/gs;
$c->write("0\r\n\r\n");
$e = $t->record($c->response, sandbox => 's1');
before($e, 0, 'fetched', "c\n", 'one in chunks');

is($t->post("/console/api/v1/sandboxes/s1/verify")->json->{ok}, JSON::PP::true,
   'the history is what was recorded');

$t->stop;
done_testing;


sub reply200 {
    my ($body) = @_;

    return "HTTP/1.1 200 OK\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
}


sub ok_step { [ send => reply200($_[0]) ] }


# What execd says of a file.

sub script {
    my ($path, @steps) = @_;

    $path =~ s/([^A-Za-z0-9_.~-])/sprintf '%%%02X', ord $1/ge;
    $up->script("GET $execd/files/download?path=$path", @steps);
}


sub stands { script($_[0], ok_step($_[1])) }


sub answers {
    my ($path, $status, $body) = @_;

    script($path, [ send => "HTTP/1.1 $status X\r\nContent-Length: "
                            . length($body) . "\r\n\r\n$body" ]);
}


sub missing { answers($_[0], 404, '{"code":"FILE_NOT_FOUND","message":"no"}') }


sub reads {
    my ($what) = @_;

    return $up->requests(qr{^GET .*files/download.*\Q${\($what // '')}\E}, helper => 1);
}


sub metric {
    my ($name) = @_;

    my $text = $t->get('/console/api/v1/metrics')->content;
    my ($n) = $text =~ /^sandbox_gateway_(?:helper_)?$name (\d+)$/m;

    return $n;
}


# How a file stood before, by its record.

sub before {
    my ($e, $n, $how, $text, $name) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    my $f = $e->{files}[$n] // {};
    is_deeply([ @$f{qw(before before_size before_sha256)} ],
              [ $how, defined $text ? (length $text, sha256_hex($text))
                                    : (undef, undef) ], $name)
        or diag(explain($f));
}


sub post_upload {
    my ($sandbox, $files, %o) = @_;

    return $t->post("/v1/sandboxes/$sandbox/proxy/44772/files/upload",
        headers => [ 'Content-Type: multipart/form-data; boundary=B',
                     @{ $o{headers} // [] } ], body => SandboxTest::upload_body(@$files));
}


sub upload {
    my ($sandbox, @rest) = @_;

    my $r = post_upload($sandbox, @rest);
    diag('upload: ' . $r->status . ' ' . $r->content) if $r->status != 200;

    return $t->record($r, sandbox => $sandbox);
}


# The request as bytes.

sub raw_upload {
    my ($sandbox, $files) = @_;
    my $body = SandboxTest::upload_body(@$files);

    return join "\r\n", "POST /v1/sandboxes/$sandbox/proxy/44772/files/upload HTTP/1.1",
        'Host: localhost', $t->credential, 'Content-Length: ' . length $body,
        'Content-Type: multipart/form-data; boundary=B', '', $body;
}
