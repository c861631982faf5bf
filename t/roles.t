#!/usr/bin/perl

# Who may what (issue 5, "Who"): every row of the operation table, by every
# road that leads to it, without a credential and with each role; tokens for
# certain sandboxes; peers that are trusted to say who acts.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA qw(sha256_hex);
use SandboxTest;
use Test::More;

# What a viewer may do; all else is for operators.

my %viewer = map { $_ => 1 } qw(
    sandbox.list sandbox.get endpoint.get snapshot.list snapshot.get
    diagnostics.logs diagnostics.events diagnostics.inspect diagnostics.summary
    pool.list pool.get server.health server.docs server.version client.metrics
    sandbox.networkpolicy.get template.list template.get
    execd.ping command.status command.logs code.context.list code.context.get
    file.read file.stat file.search dir.list metrics.get metrics.watch
    pty.status execd.ready isolated.list isolated.get isolated.diff
    isolated.capabilities isolated.file.read isolated.file.stat
    isolated.file.search isolated.dir.list egress.policy.get egress.health);

# Behind the role comes a policy that denies all: who passes the one is told by
# the other, and nothing goes upstream.

my $t = SandboxTest->new(location => 'sandbox_policy deny;',
    locations => <<'END_CONF');
location /v1/sandboxes/free/ {
    sandbox on;
    sandbox_trusted_peer 127.0.0.1;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_set_header Host $sandbox_upstream_host;
}
END_CONF
SandboxTest::write_file("$t->{dir}/conf/deny", "default deny;\n");

my %row = (limited => 'role=operator sandboxes=s1,build-*',
           peer => 'role=operator actor=plain type=agent');

for my $id (sort keys %row) {
    $t->{tokens}{$id} = $t->secret("sbx_${id}_" . SandboxTest::random_text(32));
    SandboxTest::write_file($t->{token_file},
        SandboxTest::read_file($t->{token_file})
        . "$id " . sha256_hex($t->{tokens}{$id}) . " $row{$id}\n");
}

$t->start;
$t->sandbox($_) for qw(s1 s2 build-7 free);

my @rows = table_rows();
cmp_ok(scalar @rows, '>', 90, 'the table has ' . @rows . ' rows');

my (%seen, @open, @wrong);

for my $row (@rows) {
    my ($surface, $method, $pattern, $name) = @$row;
    my $path = $pattern =~ s/\{id\}/s1/r =~ s/\{port\}/44772/r
               =~ s/\{\w+\}/x/gr =~ s{\*\*$}{any/thing}r;
    $seen{$name} = 1;
    $method = 'PUT' if $method eq '*';

    my @targets = $surface == 0
        ? ($path, $path =~ m{^/(?:health|docs|redoc|openapi)} ? () : "/v1$path")
        : map { my $port = (0, 44772, 18080, 8080)[$surface];
                ("$_/sandboxes/s1/proxy/$port$path",
                 "$_/sandboxes/s1/proxy/44772/proxy/$port$path") } '', '/v1';

    for my $target (@targets) {
        for my $who (undef, qw(viewer plain admin)) {
            my $r = $name eq 'proxy.ws'
                ? $t->websocket($target, token => $who)
                : $t->request($method, $target, token => $who,
                              $method =~ /GET|HEAD/ ? () : (body => '{}'));
            my $what = ($who // 'nobody') . ": $method $target: " . $r->status;

            if (!defined $who) {
                push @open, $what if $r->status != 401 && $name ne 'server.health';
                next;
            }

            # no body comes with HEAD: there the record says who refused
            my $code = $name eq 'proxy.ws' ? $r->response->code
                       : $method eq 'HEAD' ? $t->record($r)->{wire}{error_code}
                       : $r->code;
            my $may = $who ne 'viewer' || $viewer{$name};
            my $want = $may ? 'GATEWAY_POLICY_DENIED' : 'GATEWAY_FORBIDDEN';

            push @wrong, "$what " . ($code // 'no code') . " ($name)"
                if $r->status == 401 || ($code // '') ne $want;
        }
    }
}

is_deeply(\@open, [], 'without a credential nothing answers but health');
is_deeply(\@wrong, [], 'roles hold on every row, by every road');
is_deeply([ grep { !$seen{$_} } sort keys %viewer ], [],
          'what a viewer may do is in the table');
is(scalar(grep { $_->{target} ne '/health' } $t->up->requests), 0,
   'nothing of it reached upstream');

my $docs = SandboxTest::read_file("$SandboxProcess::ROOT/docs/operations.md");
my ($list) = $docs =~ /^A viewer may do these operations: (.*?)\.\n\n/ms;
is_deeply([ sort(($list // '') =~ /`([^`]+)`/g) ], [ sort keys %viewer ],
          'and in the documentation');

# An address that is not rewritten would lead past us.

for my $q ('8080', '44772?expires=1893456000', '44772?%65xpires=1893456000') {
    my $r = $t->get("/v1/sandboxes/s1/endpoints/$q", token => 'viewer');
    is($r->code, 'GATEWAY_FORBIDDEN', "a viewer gets no endpoint $q");
}

# nor may he put another out of a terminal

my $ws = $t->websocket('/v1/sandboxes/s1/proxy/44772/pty/p/ws?takeover=1', token => 'viewer');
is($ws->response->code, 'GATEWAY_FORBIDDEN', 'C050: a viewer takes no terminal over');
is($t->record($ws->response)->{wire}{error_code}, 'GATEWAY_FORBIDDEN', 'C050: on record');
is(scalar(grep { $_->{target} =~ /takeover/ } $t->up->requests), 0,
   'C050: upstream was not touched');

my $r = $t->post('/v1/sandboxes/s1/pause', token => 'viewer');
is($r->code, 'GATEWAY_FORBIDDEN', 'a refusal ...');
my $e = $t->record($r);
is($e->{wire}{error_code}, 'GATEWAY_FORBIDDEN', '... is on record');

# The console API, by the rows of its two tables.

my $API = '/console/api/v1';
my (@api_open, @api_wrong, $n);

for my $file ('ngx_sandbox_module/ngx_http_sandbox_api_routes.c',
              'helper/api.c')
{
    my $text = SandboxTest::read_file("$SandboxProcess::ROOT/$file");

    while ($text =~ /\{\s*"(GET|POST|PUT|PATCH|DELETE)",\s*"([^"]+)",
                     \s*SB_ROLE_(\w+)/gx)
    {
        my ($method, $path, $role) = ($1, $2, $3);
        my $target = "$API/" . ($path =~ s/\{\w+\}/s1/gr);
        $n++;

        for my $who (undef, qw(viewer plain)) {
            # the stream of a live route has no end
            my $r = $t->request($method, $target, token => $who,
                                head_only => $path =~ /live$/ && defined $who,
                                $method eq 'GET' ? () : (body => '{}'));

            if (!defined $who) {
                push @api_open, "$method $path: " . $r->status
                    if $path !~ /^(?:health|session)$/ && $r->status != 401;
                next;
            }

            my $may = $role eq 'VIEWER'
                      || ($role eq 'OPERATOR' && $who ne 'viewer');
            push @api_wrong, "$who: $method $path: " . $r->status
                if ($r->status == 403
                    && ($path =~ /live$/ || $r->content =~ /with the role/)) != !$may;
        }
    }
}

cmp_ok($n, '>', 15, "$n routes of the console API");
is_deeply(\@api_open, [], 'none of them answers without a credential');
is_deeply(\@api_wrong, [], 'roles hold on them');

# A token for certain sandboxes.

for my $case ([ GET => '/v1/sandboxes/s1', 1 ],
              [ GET => '/v1/sandboxes/build-7/proxy/44772/ping', 1 ],
              [ GET => '/v1/sandboxes/s2', 0 ],
              [ GET => '/v1/sandboxes/s2/proxy/44772/ping', 0 ],
              [ GET => '/v1/sandboxes/xbuild-7', 0 ],
              [ GET => '/v1/sandboxes', 0 ],
              [ POST => '/v1/sandboxes', 0 ],
              [ GET => "$API/sandboxes/s1/operations", 1 ],
              [ GET => "$API/sandboxes/s2/operations", 0 ],
              [ GET => "$API/sandboxes/s2/live", 0 ],
              [ GET => "$API/operations", 0 ],
              [ GET => "$API/export?sandbox=s2", 0 ],
              [ POST => "$API/sandboxes/s2/ports/8080", 0 ],
              [ GET => "$API/session", 1 ],
              [ GET => "$API/health", 1 ])
{
    my ($method, $target, $may) = @$case;
    my $r = $t->request($method, $target, token => 'limited',
                        $method eq 'POST' ? (body => '{}') : ());
    my $refused = $r->status == 403 && $r->code eq 'GATEWAY_FORBIDDEN';
    ok($refused != $may, ($may ? 'may: ' : 'may not: ') . "$method $target")
        or diag($r->status, ' ', $r->content);
}

is_deeply($t->request('GET', "$API/session", token => 'limited')->json->{sandboxes},
          [ 's1', 'build-*' ], 'and it is told for which');
is_deeply($t->request('GET', "$API/session", token => 'viewer')->json->{sandboxes},
          [], 'one for all is told of none');

# A trusted peer says who acts; the three headers go up from it and from nobody
# else.

my @who = ('X-OpenSandbox-User: ada', 'X-OpenSandbox-Team: core',
           'X-OpenSandbox-Roles: dev');
my $free = '/v1/sandboxes/free/proxy/44772';

$t->up->mark;
$r = $t->get("$free/files/info?path=/a", token => 'peer', headers => \@who);
$e = $t->record($r);
is_deeply([ @{$e}{qw(actor_type actor_id)} ], [ 'user', 'ada' ],
          'X-OpenSandbox-User from a trusted peer');
is($e->{wire}{identity}, 'token:peer+stated', 'how that is known is recorded');
my ($up) = $t->up->requests;
like($up->{head}, qr/^\Q$_\E\r$/mi, "$_ goes up") for @who;

$e = $t->record($t->get("$free/files/info?path=/a", token => 'peer',
                        headers => [ 'X-Actor-Id: bot', @who ]));
is_deeply([ @{$e}{qw(actor_type actor_id)} ], [ 'agent', 'bot' ],
          'X-Actor-Id comes first');
is($t->get("$free/ping", token => 'peer',
           headers => [ @who, 'X-OpenSandbox-User: eve' ])->status, 400,
   'twice is refused');

$e = $t->record($t->get('/v1/sandboxes/s1/proxy/44772/files/info?path=/a',
                        token => 'peer', headers => \@who));
is_deeply([ @{$e}{qw(actor_type actor_id)} ], [ 'agent', 'plain' ],
          'from another peer it says nothing');

$t->stop;
done_testing;


# [surface, method, pattern, name], from lib/operation itself.

sub table_rows {
    my $table = "$t->{dir}/etc/table";

    SandboxTest::write_file("$table.c", <<'END_SOURCE');
#include "operation.h"
#include <stdio.h>

int
main(void)
{
    const sb_op_row_t  *r;

    for (r = sb_op_rows(); r->op; r++) {
        printf("%d %s %s %s\n", r->surface, r->method, r->pattern, r->op->name);
    }

    return 0;
}
END_SOURCE

    system('cc', '-D_GNU_SOURCE', "-I$SandboxProcess::ROOT/lib", '-o', $table,
           "$table.c", "$SandboxProcess::BUILD/libsb.a", '-lcrypto') == 0
        or die "the table program does not build\n";

    return map { chomp; [ split / / ] } qx($table);
}
