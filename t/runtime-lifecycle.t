#!/usr/bin/perl

# sandbox-runtime: what the real lifecycle server was seen to answer where no
# sandbox is needed (it was run from its sources at 3bb6fad3, with a Docker that
# knows no container): routes, validation, filters; and diagnostics.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use LocalRuntime;
use SandboxProcess;

my $rt = LocalRuntime->start('--grace=0');
my $json = JSON::PP->new->utf8->canonical;


sub call { $rt->call(@_) }

# An answer in short: "422 missing body.image.uri", "400 CODE", "404".
sub said {
    my $r = shift;

    my $j = $r->json;
    my $d = ref $j eq 'HASH' && ref $j->{detail} eq 'ARRAY' ? $j->{detail}[0]
                                                            : undef;
    return join ' ', grep { defined } $r->status,
        $d ? ($d->{type}, join '.', @{ $d->{loc} }) : $r->code;
}


# --- routes -------------------------------------------------------------------------

for ([ 307, GET => '/health/' ], [ 404, GET => '/v1/health' ],
     [ 404, GET => '/v1/v1/sandboxes' ], [ 405, GET => '/sandboxes/a/pause' ],
     [ 405, GET => '/sandboxes/a/snapshots' ], [ 405, POST => '/snapshots' ],
     [ 405, TRACE => '/sandboxes/a/proxy/44772/' ],
     [ 404, GET => '/sandboxes/a/diagnostics/zzz' ],
     [ 404, GET => '/sandboxes/a%2Fb' ],
     [ '400 DOCKER::INVALID_PORT', GET => '/sandboxes/a/endpoints/0' ],
     [ '400 DOCKER::INVALID_PORT', GET => '/sandboxes/a/endpoints/70000' ],
     [ '422 int_parsing path.port', GET => '/sandboxes/a/endpoints/1.5' ],
     [ '422 bool_parsing query.use_server_proxy',
       GET => '/sandboxes/a/endpoints/1?use_server_proxy=maybe' ],
     [ '404 DOCKER::SANDBOX_NOT_FOUND',
       GET => '/sandboxes/a/endpoints/1?use_server_proxy=YES' ],
     [ '422 int_parsing query.expires',
       GET => '/sandboxes/a/endpoints/1?expires=x' ],
     [ '422 greater_than_equal query.page', GET => '/sandboxes?page=1&page=0' ],
     [ '200', GET => '/sandboxes?page=0&page=1' ],
     [ '422 less_than_equal query.pageSize', GET => '/snapshots?pageSize=201' ],
     [ '400 INVALID_METADATA_FORMAT', GET => '/sandboxes?metadata=a' ],
     [ '400 INVALID_METADATA_FORMAT', GET => '/sandboxes?metadata=a%3Db%26c' ],
     [ '200', GET => '/sandboxes?metadata=' ],
     [ '200', GET => '/sandboxes?metadata=a%3Db%3Dc' ],
     [ '422 less_than_equal query.tail',
       GET => '/sandboxes/a/diagnostics/logs?tail=10001' ],
     [ '422 greater_than_equal query.tail',
       GET => '/sandboxes/a/diagnostics/logs?tail=0&scope=x' ],
     [ '501 DIAGNOSTICS_NOT_IMPLEMENTED',
       GET => '/sandboxes/a/diagnostics/logs?scope=' ],
     [ '404 DOCKER::SANDBOX_NOT_FOUND',
       GET => '/sandboxes/a/diagnostics/inspect?scope=x' ],
     [ '422 less_than_equal query.limit',
       GET => '/sandboxes/a/diagnostics/events?limit=501' ],
     [ '422 greater_than_equal query.event_limit',
       GET => '/sandboxes/a/diagnostics/summary?event_limit=0' ],
     [ '501 KUBERNETES::POOL_NOT_SUPPORTED', DELETE => '/pools/x' ])
{
    my ($want, @request) = @$_;
    is(said(call(@request)), $want, "@request");
}

# of several routes with a path Starlette names the first
for ([ PUT => '/sandboxes', 'POST' ], [ PUT => '/sandboxes/a', 'GET' ],
     [ PUT => '/snapshots/x', 'GET' ], [ PATCH => '/pools/x', 'GET' ])
{
    is(call(@$_[0, 1])->header('allow'), $_->[2], "$_->[0] $_->[1]: allow");
}

my @ORIGIN = ('Origin: http://x', 'Access-Control-Request-Method: GET');
my $r = call(OPTIONS => '/v1/sandboxes', undef, @ORIGIN,
             'Access-Control-Request-Headers: a, b');
is($r->status, 200, 'a preflight');
is($r->header('access-control-allow-headers'), 'a, b', 'its headers');
is($r->header('access-control-max-age'), 600, 'for ten minutes');
is(call(OPTIONS => '/v1/sandboxes', undef, $ORIGIN[0],
        'Access-Control-Request-Method: ZZZ')->status, 400,
   'of an unknown method');


# --- bodies ---------------------------------------------------------------------------

for ([ '422 missing body', '' ], [ '422 string_type body.a', { a => 1 } ],
     [ '404 DOCKER::SANDBOX_NOT_FOUND', { a => 'b' } ],
     [ '404 DOCKER::SANDBOX_NOT_FOUND', { a => undef } ])
{
    is(said(call(PATCH => '/sandboxes/a/metadata', $_->[1],
                 'Content-Type: application/json')), $_->[0],
       'metadata: ' . (ref $_->[1] ? $json->encode($_->[1]) : 'nothing'));
}

my $UNKNOWN = '404 DOCKER::SANDBOX_NOT_FOUND';

for ([ '422 missing body.expiresAt', {} ],
     [ '422 datetime_type body.expiresAt', { expiresAt => undef } ],
     [ '422 datetime_from_date_parsing body.expiresAt', { expiresAt => 'x' } ],
     [ $UNKNOWN, { expiresAt => '2099-01-01' } ],
     [ $UNKNOWN, { expiresAt => '2099-01-01T00:00:00' } ],
     [ $UNKNOWN, { expiresAt => 4102444800 } ],
     [ $UNKNOWN, { expires_at => '2099-01-01T00:00:00+02:00' } ])
{
    is(said(call(POST => '/sandboxes/a/renew-expiration', $_->[1])), $_->[0],
       'renew: ' . $json->encode($_->[1]));
}

my ($T, $F) = (JSON::PP::true, JSON::PP::false);

for ([ '422 greater_than_equal body.timeout', timeout => 59 ],
     [ '422 int_parsing body.timeout', timeout => 'x' ],
     [ '422 int_from_float body.timeout', timeout => 60.5 ],
     [ '422 greater_than_equal body.timeout', timeout => $T ],
     [ '422 int_type body.timeout', timeout => [] ],
     [ '422 value_error body', image => undef ],
     [ '422 missing body.image.uri', image => {} ],
     [ '422 value_error body', image => { uri => ' ' } ],
     [ '422 missing body.image.auth.username',
       image => { uri => 'x', auth => {} } ],
     [ '422 missing body.image.auth.password',
       image => { uri => 'x', auth => { username => 'a' } } ],
     [ '422 model_attributes_type body.image.auth',
       image => { uri => 'x', auth => 5 } ],
     [ '422 too_short body.entrypoint', entrypoint => [] ],
     [ '422 string_type body.entrypoint.1', entrypoint => [ 'a', 5 ] ],
     [ '422 value_error body', entrypoint => undef ],
     [ '422 string_type body.resourceLimits.cpu',
       resourceLimits => { cpu => 1 } ],
     [ '422 string_type body.env.a', env => { a => 5 } ],
     [ '422 dict_type body.env', env => [] ],
     [ '422 string_type body.metadata.a', metadata => { a => 5 } ],
     [ '400 SANDBOX::INVALID_METADATA_LABEL', metadata => { '-a' => 'x' } ],
     [ '400 SANDBOX::INVALID_METADATA_LABEL',
       metadata => { 'opensandbox.io/a' => 'b' } ],
     [ '422 string_type body.snapshotId', snapshotId => 5, image => undef ],
     [ '422 value_error body', snapshotId => '  ', image => undef ],
     [ '422 value_error body', snapshotId => 'x', image => undef,
       resourceLimits => undef ],
     [ '400 SANDBOX::INVALID_PARAMETER',
       extensions => { 'access.renew.extend.seconds' => '299' } ],
     [ '400 SANDBOX::UNSUPPORTED_POOL_REF', extensions => { poolRef => 'x' } ],
     [ '400 SANDBOX::INVALID_PARAMETER', secureAccess => $T ],
     [ '422 bool_parsing body.secureAccess', secureAccess => 'x' ],
     [ '422 bool_type body.secureAccess', secureAccess => undef ],
     [ '422 missing body.platform.arch', platform => { os => 'linux' } ],
     [ '422 model_attributes_type body.platform', platform => 5 ],
     [ '422 model_attributes_type body.networkPolicy', networkPolicy => 5 ],
     [ '422 value_error body', credentialProxy => { enabled => $T } ],
     [ '422 list_type body.volumes', volumes => 5 ],
     [ '422 model_attributes_type body.volumes.0', volumes => [ 5 ] ],
     [ '422 missing body.volumes.0.name', volumes => [ {} ] ])
{
    my ($want, %change) = @$_;
    is(said(call(POST => '/v1/sandboxes', { %LocalRuntime::MINIMAL, %change })),
       $want, 'create: ' . $json->encode(\%change));
}

is_deeply($rt->call(GET => '/sandboxes')->json->{items}, [],
          'none of these made a sandbox');


# --- diagnostics ------------------------------------------------------------------------

my $id = $rt->create(timeout => '600', entrypoint => [ 'sh', '-c',
    'echo first; sleep 1.2; for i in 2 3 4; do echo line $i; done; sleep 99' ]);
my $logs = "/v1/sandboxes/$id/diagnostics/logs";
my $TIME = qr/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z/;

SandboxProcess->wait_for(sub { call(GET => $logs)->content =~ /line 4/ }, 10);
$r = call(GET => $logs);
like($r->content, qr/^$TIME first\n$TIME line 2\n$TIME line 3\n$TIME line 4\n\z/,
     'what the entrypoint writes, with its time');
is($r->header('deprecation'), 'true', 'which is deprecated');
like(call(GET => "$logs?tail=2")->content, qr/^$TIME line 3\n$TIME line 4\n\z/,
     'the last lines');
unlike(call(GET => "$logs?since=1s")->content, qr/first/, 'those since');
like(call(GET => "$logs?since=1h")->content, qr/first/, 'an hour ago');
like(call(GET => "$logs?since=junk")->content, qr/first/,
     'what is no time is ten minutes');

my $events = "/v1/sandboxes/$id/diagnostics/events";
like(call(GET => $events)->content, qr/created\n.*CONTAINER_RUNNING/, 'events');
unlike(call(GET => "$events?limit=1")->content, qr/created/, 'the last one');

$r = call(GET => "/v1/sandboxes/$id/diagnostics/summary?tail=1&event_limit=1");
like($r->content, qr/$id.*CONTAINER_RUNNING.*line 4\n\z/s, 'a summary');
unlike($r->content, qr/line 3/, 'of so many lines');
is($r->header('content-type'), 'text/plain; charset=utf-8', 'as text');

my $silent = $rt->create;
is(call(GET => "/v1/sandboxes/$silent/diagnostics/logs")->content, '(no logs)',
   'no logs');

is($rt->complaints, '', 'nothing bad in any log');
is($rt->stop, 0, 'SIGTERM');

done_testing;
