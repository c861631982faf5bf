#!/usr/bin/perl

# What nginx asks by itself is no operation: it is refused in a location of ours
# (C026 has a download by a subrequest), and works as ever in any other.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;

my $DOWNLOAD = '/v1/sandboxes/s1/proxy/44772/files/download?path=/a';
my $SLICE = 64 << 10;

my $common = 'sandbox on; proxy_pass http://opensandbox$sandbox_upstream_uri;'
             . ' proxy_http_version 1.1;'
             . ' proxy_set_header Host $sandbox_upstream_host;'
             . ' proxy_set_header Connection $sandbox_connection;';

my $t = SandboxTest->new(locations => <<"EOF_CONF")->start;
        location /page { ssi on; ssi_types *; proxy_pass http://opensandbox; }
        location /static/ {
            sandbox on; root conf;
        }
        location /v1/sandboxes/slice {
            $common slice $SLICE; proxy_set_header Range \$slice_range;
        }
        location /v1/sandboxes/asked {
            $common auth_request /check; mirror /copy;
        }
        location = /check { internal; proxy_pass http://opensandbox/check; }
        location = /copy { internal; proxy_pass http://opensandbox/copied; }
        location /v1/sandboxes/wrong { $common auth_request /wrong; }
        location = /wrong { $common }
        location /v1/sandboxes/failed { $common error_page 404 /error; }
        location = /error { ssi on; ssi_types *; proxy_pass http://opensandbox/page; }
EOF_CONF

my $up = $t->up;

mkdir "$t->{dir}/conf/static";
SandboxTest::write_file("$t->{dir}/conf/static/part", 'a file');
chmod 0755, "$t->{dir}/conf", "$t->{dir}/conf/static";
chmod 0644, "$t->{dir}/conf/static/part";

$t->sandbox($_) for qw(s1 slice asked wrong failed);

sub seen { scalar(() = $up->requests(@_)) }


# --- C026: a page that includes what is a sandbox's ------------------------------------

{
    my $include = sub { qq(<!--# include virtual="$_[0]" -->) };

    $up->script("GET $DOWNLOAD", FakeUpstream::answer(200, 'SECRET'));
    $up->script('GET /page', FakeUpstream::answer(200,
        'begin ' . $include->($DOWNLOAD) . ' middle ' . $include->('/static/part') . ' end',
        'Content-Type: text/html'));

    my $r = $t->get($DOWNLOAD);
    is($r->content, 'SECRET', 'a download by a client');

    # neither for a stranger nor for who could ask for it himself
    for my $token (undef, $t->token) {
        $up->mark;
        $r = $t->get('/page', token => $token);
        is($r->status, 200, 'C026: a page that includes it');
        like($r->content, qr/^begin .*403 Forbidden.* middle /s, 'has a refusal in its place');
        unlike($r->content, qr/SECRET/, 'and nothing of it');
        like($r->content, qr/ middle a file end$/, 'a file of the same kind is included');
        is(seen(), 1, 'upstream was asked for the page only');
    }

    like($t->log_text, qr{subrequest to "/v1/sandboxes/s1/.*" in a location with .*, refused},
         'the log says so');
}


# --- parts that slice asks for ---------------------------------------------------------

{
    my $bytes = 'x' x $SLICE;

    $up->script('GET /v1/sandboxes/slice/', FakeUpstream::answer(206, $bytes,
        "Content-Range: bytes 0-@{[ $SLICE - 1 ]}/@{[ 2 * $SLICE ]}"));
    $up->mark;

    my $c = $t->connect;
    $c->write($c->build(GET => $DOWNLOAD =~ s{/s1/}{/slice/}r,
                        headers => [ $t->credential ]));
    my $r = eval { $c->response(timeout => 5) };
    ok(!$r || length $r->content < 2 * $SLICE, 'slice gets no further part');
    $c->close;
    is(seen(qr/slice/), 1, 'for upstream is not asked for it');
    like($t->log_text, qr{subrequest to "/v1/sandboxes/slice/.*refused}, 'the log says so');
}


# --- checks and copies in locations of their own ---------------------------------------

$up->script('GET /check', FakeUpstream::answer(200, ''));
$up->script('GET /copied', FakeUpstream::answer(200, ''));
$up->mark;

my $r = $t->get('/v1/sandboxes/asked');
is($r->status, 200, 'a request that auth_request has a word about, and mirror copies');
is($t->record($r)->{sandbox_id}, 'asked', 'is on record');
is(seen(qr{^GET /check}), 1, 'the check was made');
ok($t->wait_for(sub { seen(qr{^GET /copied}) == 1 }), 'and the copy');

$up->script('GET /check', FakeUpstream::answer(403, ''));
is($t->get('/v1/sandboxes/asked')->status, 403, 'a check that says no');

$r = $t->get('/v1/sandboxes/wrong');
is($r->status, 403, 'a check that is a location of ours says no, too');
is(seen(qr{/wrong}), 0, 'and reaches nobody');

# not a subrequest: error_page goes on with the request itself, which may include others
$up->script('GET /v1/sandboxes/failed', FakeUpstream::answer(404, {}));
$r = $t->get('/v1/sandboxes/failed/x');
is($r->status, 404, 'an error page of nginx is served');

$t->stop;

done_testing;
