#!/usr/bin/perl

# If-Match: sha256:... and If-None-Match: * of uploads: the file is looked at in
# the sandbox, whatever the history knows, with its key held; who asks for this is
# never let through without.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $execd = '/v1/sandboxes/s1/proxy/44772';
my $place = 'proxy_pass http://opensandbox$sandbox_upstream_uri;
             proxy_set_header Host $sandbox_upstream_host;';
my $t = SandboxTest->new(location => 'sandbox_locks on; sandbox_versions off;',
    locations => "location /v1/sandboxes/free { sandbox on; $place }
                  location /v1/sandboxes/blind {
                      sandbox on; sandbox_locks on; sandbox_record * off; $place }")
    ->start;
my $up = $t->up;
my $secret = 'execd-secret-of-the-sandbox';

$t->secret($secret);
$t->sandbox($_) for qw(s1 free blind);
$t->sandbox('straight', learn => 1);
ok($t->wait_for(sub { $t->get('/console/api/v1/sandboxes/s1/locks')->status == 200 }),
   'the helper is there');


# --- what passes ----------------------------------------------------------------

stands('/w/a', "one\n");
my $r = upload('/w/a', if_match("one\n"), "X-EXECD-ACCESS-TOKEN: $secret");
is($r->status, 200, 'the file is the expected one');
my ($get, $put) = $up->requests(qr{files/}, helper => 1);
is_deeply([ $get->{method}, $put->{method} ], [ 'GET', 'POST' ],
          'it was looked at, then written');
is($get->{target}, "$execd/files/download?path=%2Fw%2Fa", 'by the same road');
like($get->{head}, qr/^x-execd-access-token: \Q$secret\E\r$/mi,
     'with what the sandbox wants to see');
unlike($put->{head}, qr/^if-/mi, 'the condition goes no further');
is_deeply([ map { $_->{operation_type} } $t->records('s1') ], [ 'file.write' ],
          'the look is no operation of its own');

is(upload('/w/a', 'If-Match: "sha256:' . uc(sha256_hex("one\n")) . '"')->status, 200,
   'in quotes, and upper case');
missing('/w/new');
is(upload('/w/new', 'If-None-Match: *')->status, 200, 'there is no file yet');
stands('/w/empty', '');
is(upload('/w/empty', if_match(''))->status, 200, 'an empty file');
my $large = 'x' x (3 << 20);
stands('/w/large', $large);
is(upload('/w/large', if_match($large))->status, 200, 'one of 3 MiB');


# --- what does not --------------------------------------------------------------

my $before = posts();
stands('/w/a', "two\n");
$r = upload('/w/a', if_match("one\n"));
is($r->status, 412, 'another content, that nobody has put on record');
is($r->code, 'GATEWAY_PRECONDITION_FAILED', 'in the envelope');
my $d = $r->json->{details};
delete $d->{operation_id};
is_deeply($d, { path => '/w/a', exists => JSON::PP::true,
                sha256 => sha256_hex("two\n") }, 'with what it is');
my $e = $t->record($r);
is_deeply([ $e->{status}, $e->{result}{error_code} ],
          [ 'failed', 'GATEWAY_PRECONDITION_FAILED' ], 'it is on record');
$r = upload('/w/a', 'If-None-Match: *');
is($r->status, 412, 'a file that must not be there');
$r = upload('/w/new', if_match('x'));
is($r->status, 412, 'one that is not there');
is($r->json->{details}{sha256}, undef, 'has no content');

for my $bad ([ 'If-Match: *' ], [ 'If-Match: sha256:12' ], [ 'If-Match: "v1"' ],
             [ 'If-Match: sha256:' . 'g' x 64 ], [ 'If-None-Match: "v1"' ],
             [ if_match('a'), 'If-None-Match: *' ],
             [ 'If-Match: ' ], [ 'If-Match: sha256:' . 'a' x 64 . ', x' ])
{
    $r = upload('/w/a', @$bad);
    is_deeply([ $r->status, $r->code ], [ 400, 'GATEWAY_AMBIGUOUS_REQUEST' ],
              "refused: @$bad");
}

is(upload('/w/a', if_match('a'), if_match('a'))->status, 400, 'twice the same header');
is(upload([ '/w/a', '/w/b' ], if_match("two\n"))->status, 400, 'two files at once');

for ([ n404 => 404, '{"code":"DOCKER::SANDBOX_NOT_FOUND","message":""}' ],
     [ n500 => 500, '{}' ], [ n401 => 401, '' ], [ n206 => 206, 'x' ])
{
    my ($name, $status, $body) = @$_;
    answers("/w/$name", $status, $body);
    $r = upload("/w/$name", $status == 404 ? 'If-None-Match: *' : if_match('x'));
    is_deeply([ $r->status, $r->code ], [ 502, 'GATEWAY_UPSTREAM_UNAVAILABLE' ],
              "how it stands is not known: $name");
}

$up->script("GET $execd/files/download?path=%2Fw%2Fcut",
            [ send => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf" ], [ 'close' ]);
is(upload('/w/cut', if_match('half'))->status, 502, 'nor with half an answer');
$up->script("GET $execd/files/download?path=%2Fw%2Fhuge", [ send =>
            "HTTP/1.1 200 OK\r\nContent-Length: 134217729\r\n\r\n" ], [ 'hang' ]);
$r = upload('/w/huge', if_match('x'));
is_deeply([ $r->status, $r->code ], [ 413, 'GATEWAY_LIMIT_EXCEEDED' ],
          'more than 128 MiB is not compared');
is(upload('/w/huge', 'If-None-Match: *')->status, 412, 'but is there');

is(posts(), $before, 'nothing of all this was written');

$r = upload('/w/a', { sandbox => 'free' }, if_match('x'));
is_deeply([ $r->status, $r->code ], [ 501, 'GATEWAY_UNSUPPORTED' ],
          'without locks there is no promise');
$r = $t->get("$execd/files/download?path=%2Fw%2Fa", headers => [ 'If-None-Match: "x"' ]);
my ($seen) = $up->requests(qr{^GET .*path=%2Fw%2Fa});
like($seen->{head}, qr/^if-none-match: "x"\r$/mi, 'that of a download passes');

stands('/w/a', "blind\n", 'blind');
is(upload('/w/a', { sandbox => 'blind' }, if_match("blind\n"))->status, 200,
   'what is not recorded is compared as well');
is(upload('/w/a', { sandbox => 'blind' }, if_match("x\n"))->status, 412, 'so is this');

$up->script(qr{^GET (?!/v1).*/files/download\?path=%2Fw%2Fs$},
    [ send => "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ns" ]);
is(upload('/w/s', { sandbox => 'straight' }, if_match('s'))->status, 200,
   'straight from the sandbox');


# --- the key is held meanwhile ----------------------------------------------------

$up->script("GET $execd/files/download?path=%2Fw%2Fslow", [ 'hang' ]);
my $c = $t->connect;
my $body = body('/w/slow');
$c->write($c->build(POST => "$execd/files/upload", body => $body, headers => [
    $t->credential, if_match('x'), 'Content-Type: multipart/form-data; boundary=B' ]));
ok($t->wait_for(sub { $up->requests(qr{^GET .*slow}, helper => 1) }), 'one is looked at');
is(upload('/w/slow', 'X-Sandbox-Lock-Timeout: 100ms')->status, 423,
   'another writer waits');
$c->reset;
ok($t->wait_for(sub { !@{ $t->get('/console/api/v1/sandboxes/s1/locks')->json->{items} } }),
   'its client leaves: the key is free');

like($t->get('/console/api/v1/metrics')->content, qr/preconditions_failed_total\S* 5$/m,
     'failures are counted');


# --- without a helper ---------------------------------------------------------------

stands('/w/a', "x\n");
$t->kill_helper;
my $soon = 'X-Sandbox-Lock-Timeout: 100ms';
$before = posts();
$r = upload('/w/a', { sandbox => 'blind' }, if_match("blind\n"), $soon);
is($r->status, 503, 'nobody to ask: it does not go on');
$r = upload('/w/a', { sandbox => 'blind' }, $soon);
is($r->status, 503, 'nor does any other writing without its lock');
is($t->get('/v1/sandboxes/blind/proxy/44772/files/info?path=%2Fw%2Fa')->status, 200,
   'what only reads does');
is($t->get('/v1/sandboxes/blind/proxy/44772/files/info?path=%2Fw%2Fa',
           headers => [ 'X-Sandbox-Lock: read:/w' ])->status, 503,
   'unless it has asked for a lock');
is(posts(), $before, 'nothing was written');
$t->start_helper;

$t->stop;
done_testing;


sub if_match { 'If-Match: sha256:' . sha256_hex($_[0]) }

sub escaped { my $p = shift; $p =~ s{/}{%2F}g; $p }

sub stands {
    my ($path, $bytes, $sandbox) = @_;

    answers($path, 200, $bytes, $sandbox);
}

sub missing { answers($_[0], 404, '{"code":"FILE_NOT_FOUND","message":"no"}') }

sub answers {
    my ($path, $status, $bytes, $sandbox) = @_;

    $sandbox //= 's1';
    $up->script("GET /v1/sandboxes/$sandbox/proxy/44772/files/download?path="
                . escaped($path),
        [ send => "HTTP/1.1 $status X\r\nContent-Length: " . length($bytes)
                  . "\r\n\r\n$bytes" ]);
}

sub posts { scalar $up->requests(qr{^POST .*/files/upload}) }

sub body {
    return join "\r\n", (map {
        ('--B', 'Content-Disposition: form-data; name="metadata"; filename="m"', '',
         qq({"path":"$_"}), '--B',
         'Content-Disposition: form-data; name="file"; filename="f"', '', 'new')
    } @_), '--B--', '';
}

sub upload {
    my ($path, @headers) = @_;

    my $o = ref $headers[0] ? shift @headers : {};
    my $sandbox = $o->{sandbox} // 's1';

    return $t->post("/v1/sandboxes/$sandbox/proxy/44772/files/upload",
        headers => [ 'Content-Type: multipart/form-data; boundary=B', @headers ],
        body => body(ref $path ? @$path : $path));
}
