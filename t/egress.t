#!/usr/bin/perl

# The egress sidecar of a sandbox, port 18080 (reference 6.1, 8.4), by every
# road: what is recorded of policies, and that no value of the credential vault
# is ever recorded, whoever says it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;

my $t;
$t = SandboxTest->new(
    fake => { listeners => [ qw(lifecycle a b ingress ingress_uri) ] },
    conf => sub {
        my $conf = shift;
        my ($location) = $conf =~ m{(location / \{.*?\n        \})}s;
        my $port = $t->up->port('ingress_uri');
        $location =~ s{location / \{}{location /e4/ \{ sandbox_ingress uri;};
        $location =~ s{//opensandbox}{//127.0.0.1:$port};
        $conf =~ s{(location / \{)}{$location\n        $1};
        return $conf;
    },
);
$t->start;
my $up = $t->up;

# how the same inner request is reached
my @roads = (
    [ 'server proxy', 'e1', '/v1/sandboxes/e1/proxy/18080' ],
    [ 'server proxy without /v1', 'e2', '/sandboxes/e2/proxy/18080' ],
    [ 'straight', 'e3', '/v1/sandboxes/e3/proxy/18080' ],
    [ 'ingress', 'e4', '/e4/18080' ],
    [ 'through execd', 'e5', '/v1/sandboxes/e5/proxy/44772/proxy/18080' ],
    [ 'leading zeros', 'e6', '/v1/sandboxes/e6/proxy/018080' ],
);
my $n = 0;

for (@roads) {
    my ($road, $id, $base) = @$_;

    $t->sandbox($id);
    $t->endpoint($id, 18080) if $road eq 'straight';

    my $policy = '{"defaultAction":"deny","egress":'
                 . '[{"action":"allow","target":"pypi.test"}]}';

    # METHOD, path, body, operation, what the record holds of the request
    for my $case (
        [ GET => '/policy', undef, 'egress.policy.get', {} ],
        [ POST => '/policy', $policy, 'egress.policy.set',
          { defaultAction => 'deny',
            egress => [ { action => 'allow', target => 'pypi.test' } ] } ],
        [ PUT => '/policy', $policy, 'egress.policy.set',
          { defaultAction => 'deny',
            egress => [ { action => 'allow', target => 'pypi.test' } ] } ],
        [ POST => '/policy', '', 'egress.policy.reset', {} ],
        [ PATCH => '/policy', '[{"action":"deny","target":"x.test"}]',
          'egress.policy.patch',
          { egress => [ { action => 'deny', target => 'x.test' } ] } ],
        [ DELETE => '/policy', '["a.test","b.test"]',
          'egress.policy.delete_rules', { targets => [ 'a.test', 'b.test' ] } ],
        [ GET => '/nothing', undef, 'egress.unknown', {} ])
    {
        my ($method, $path, $body, $operation, $request) = @$case;
        $up->mark;
        my $r = $t->request($method, "$base$path",
            headers => [ 'OPENSANDBOX-EGRESS-AUTH: '
                         . $t->secret('egress-token-1') ],
            defined $body ? (body => $body) : ());
        my $e = $t->record($r);
        is($e->{operation_type}, $operation, "$road: $method $path");
        is($e->{in}, $id, 'for its sandbox');
        is($e->{wire}{port}, 18080, 'and port');
        my ($seen) = $up->requests;
        is($seen->{body} // '', $body // '', 'its body passes as it is');
        like($seen->{head}, qr/^OPENSANDBOX-EGRESS-AUTH: egress-token-1\r$/mi,
             'with the token of the sidecar');

        my %got = %{ $e->{request} // {} };
        is_deeply({ map { $_ => $got{$_} } keys %$request }, $request,
                  'recorded what it asks for') or diag($e->{request_json});

        is($e->{result}{mode}, 'enforcing', 'and the mode it found')
            if $r->status == 200;
    }

    # the vault
    my $value = $t->secret('vault-value-' . ++$n);
    my $new = $t->secret("vault-new-$n");
    my $echo = $t->secret("vault-echo-$n");
    my $odd = $t->secret("vault-odd-$n");

    $up->script("POST $_", FakeUpstream::answer(201, { revision => 4,
        credentials => [ { name => 'git', source => { value => $echo } } ],
        value => $echo })),
    $up->script("GET $_/credentials", FakeUpstream::answer(200,
        { name => 'git', revision => 5, source => { value => $echo } }))
        for upstream_path($road, $id) . '/credential-vault';

    for my $case (
        [ POST => '', '{"credentials":[{"name":"git","source":{"type":"inline",'
          . "\"value\":\"$value\"}}],\"bindings\":[{\"name\":\"b1\","
          . '"match":{"hosts":["git.test"]},"auth":{"type":"header",'
          . "\"credential\":\"git\",\"headers\":{\"X\":\"$odd\"}}}]}",
          'vault.create', 4 ],
        [ PATCH => '', '{"expectedRevision":4,"credentials":{"add":['
          . "{\"name\":\"npm\",\"source\":{\"value\":\"$new\"}}],\"replace\":["
          . "{\"name\":\"git\",\"source\":{\"value\":\"$new\"}}],"
          . '"delete":["old"]}}', 'vault.patch', 1 ],
        [ GET => '/credentials/git', undef, 'vault.get', 5 ],
        [ GET => '', undef, 'vault.get', 1 ],
        [ DELETE => '', undef, 'vault.delete', undef ])
    {
        my ($method, $path, $body, $operation, $revision) = @$case;
        $up->mark;
        my $r = $t->request($method, "$base/credential-vault$path",
                            defined $body ? (body => $body) : ());
        cmp_ok($r->status, '<', 300, "$road: $method vault$path");
        my $e = $t->record($r);
        is($e->{operation_type}, $operation, $operation);
        is($e->{in}, $id, 'for its sandbox');
        is($e->{result}{revision}, $revision, 'with its revision')
            or diag($e->{result_json});
        is(($up->requests)[0]{body} // '', $body // '', 'the body passes whole');
        like($r->content, qr/\Q$echo\E/, 'so does the answer')
            if $revision && $revision > 1;

        if ($operation eq 'vault.create') {
            like($e->{request_json}, qr/"git"/, 'names are recorded')
                or diag($e->{request_json});
            like($e->{request_json}, qr/"b1"/, 'of bindings too');
        }
    }

    # where a value does not belong: beside its place, misspelt, refused
    for my $body (
        "{\"credentials\":[{\"name\":\"git\",\"Source\":{\"value\":\"$odd\"}}]}",
        "{\"credentials\":[{\"name\":\"git\",\"value\":\"$odd\"}],"
        . "\"$odd-key\":1}",
        "{\"credentials\":\"$odd\"}",
        "{\"credentials\":[\"$odd\"]}",
        "{\"credentials\":[{\"name\":\"git\",\"source\":\"$odd\"}",
        "\"$odd\"", "[\"$odd\"]",
        "{\"credentials\":[{\"source\":{\"value\":\"$odd\"},\"name\":{}}]}",
        "{\"credentials\":{\"$odd\":\"$odd\"}}")
    {
        my $r = $t->post("$base/credential-vault", body => $body);
        ok($r->status, "$road: " . ($body =~ s/\Q$odd\E/.../gr));
        is($t->record($r)->{operation_type}, 'vault.create', 'on record');
    }

    # upstream's complaint repeats what it was told
    $up->script('POST ' . upstream_path($road, $id) . '/credential-vault',
        FakeUpstream::answer(400, "bad credential value $odd",
                             'Content-Type: text/plain'));
    my $r = $t->post("$base/credential-vault",
                     body => '{"credentials":[]}');
    is($r->content, "bad credential value $odd", "$road: a complaint passes");
    is($t->record($r)->{status}, 'failed', 'and is recorded as such');

    $up->script('POST ' . upstream_path($road, $id) . '/credential-vault',
        FakeUpstream::answer(409, { code => 'X', message => "no $odd" }));
    $r = $t->post("$base/credential-vault", body => '{"credentials":[]}');
    is($t->record($r)->{wire}{error_code}, 'X', 'its code is kept');
    $up->clear;
}

$t->stop;
done_testing;


sub upstream_path {
    my ($road, $id) = @_;

    my ($row) = grep { $_->[0] eq $road } @roads;

    return $road eq 'straight' ? '/proxy/18080' : $row->[2];
}
