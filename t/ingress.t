#!/usr/bin/perl

# The Kubernetes ingress behind the gateway (reference 6.2): sandboxes named by
# a header, by the first label of Host, by the path.  The scripted ingress tells
# what it made of each request; the record has to say the same.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;

my $SIGNATURE = 'deadbeef7';
my $EXPIRES = 'tj8k2x';


# One server for each form, told apart by their names.

sub ingress_conf {
    my $conf = shift;

    my ($listen) = $conf =~ /(listen [^;]+;)/;
    my ($common) = $conf =~ /(sandbox_upstream.*?)\n\s+location/s;
    my ($location) = $conf =~ /(location \/ \{.*?\n        \})/s;
    my %form = (header => [ 'ingress.test', 'header', 'ingress' ],
                host   => [ '*.sbx.test', 'host SBX.test other.test',
                            'ingress' ],
                uri    => [ 'uri.test', 'uri', 'ingress_uri' ]);
    my $servers = '';

    for (sort keys %form) {
        my ($name, $ingress, $upstream) = @{ $form{$_} };
        my $l = $location =~ s/opensandbox/$upstream/r;
        $servers .= "server { $listen server_name $name; access_log off;\n"
                    . "$common\nsandbox_ingress $ingress;\n$l\n"
                    . "location /console/api/v1/ { sandbox_console_api; }\n}\n";
    }

    my $at = rindex $conf, '}';

    return substr($conf, 0, $at) . $servers . '}';
}


my $t;
$t = SandboxTest->new(
    fake => { listeners => [ qw(lifecycle a b ingress ingress_uri) ] },
    location => 'sandbox_record * best_effort;',
    conf => sub {
        my $conf = shift;
        return ingress_conf($conf =~ s{(upstream opensandbox)}{
            join('', map { "upstream $_ { server 127.0.0.1:"
                           . $t->up->port($_) . "; keepalive 4; }\n" }
                     qw(ingress ingress_uri)) . $1 }er);
    },
);
$t->start;
my $up = $t->up;

$t->secret($SIGNATURE, 'secure-token-1');

my $N = 0;


# Headers and target of a request for (sandbox, port, path) in each form.

sub in_form {
    my ($form, $id, $port, $path, $signed) = @_;

    my $token = "$id-$port" . ($signed ? "-$EXPIRES-$SIGNATURE" : '');

    return ([ 'Host: ingress.test', "OpenSandbox-Ingress-To: $token" ], $path)
        if $form eq 'header';
    return ([ 'Host: ingress.test', "OPEN-SANDBOX-INGRESS: $token" ], $path)
        if $form eq 'old header';
    return ([ "Host: $token.sbx.test" ], $path) if $form eq 'host';

    return ([ 'Host: uri.test' ],
            "/$id/$port" . ($signed ? "/$EXPIRES/$SIGNATURE" : '') . $path);
}


# Everything about one request: it passed, upstream took it for what we did.

sub passes {
    my ($name, $r, $operation, $id, $port, $inner) = @_;

    is($r->header('X-Fake-Route'), "$id $port $inner",
       "$name: the ingress finds the route") or diag($r->status, $r->content);
    my $e = $t->record($r);
    is($e->{operation_type}, $operation, "$name: $operation");
    is($e->{in}, $id, "$name: for this sandbox");
    is($e->{wire}{port}, $port, "$name: and port");
    is($e->{wire}{route}, 'ingress', "$name: by the ingress");

    return $e;
}


for my $form ('header', 'old header', 'host', 'uri') {
    for my $signed (0, 1) {
        my $name = ($signed ? 'signed ' : '') . $form;
        my $id = 'fsb-' . $N++ . '-x';
        $t->sandbox($id, $signed ? (secure => 'secure-token-1',
                                    signature => $SIGNATURE) : ());

        # a command, its stream and exit code
        my ($headers, $target) = in_form($form, $id, 44772, '/command', $signed);
        $up->mark;
        my $r = $t->post($target, headers => $headers,
                         body => '{"command":"echo one; exit 3"}');
        is($r->status, 200, "$name: a command passes");
        my $e = $t->record($r);
        is($e->{operation_type}, 'command.execute', "$name: is recorded");
        is($e->{in}, $id, "$name: for its sandbox");
        is($e->{command}{exit_code}, 3, "$name: with its exit code");
        is($t->history->output($e->{event_id}, 'stdout'), "one\n",
           "$name: and output");
        is($e->{actor_id}, 'tester', "$name: and actor");

        # what the ingress saw: the route as judged, nothing of ours
        my ($seen) = $up->requests(qr{^POST });
        is($seen->{target}, $target, "$name: the target goes up as it was");
        my @host = grep { /^host:/i } split /\r\n/, $seen->{head};
        is_deeply(\@host, [ $headers->[0] ], "$name: Host too");
        my @to = grep { /ingress[^:]*:/i } split /\r\n/, $seen->{head};
        is_deeply([ grep { !/^host:/i } @to ],
                  [ grep { !/^Host:/ } @$headers ],
                  "$name: the route header stands there once, or not at all");
        unlike($seen->{head}, qr/open-sandbox-api-key|sbx_admin/i,
               "$name: no token of ours and no upstream key");

        # files, the egress sidecar, a user port, nested
        for my $case (
            [ DELETE => 44772, '/files?path=%2Fa%20b', 'file.delete', '/files' ],
            [ GET => 18080, '/policy', 'egress.policy.get', '/policy' ],
            [ GET => 8080, '/a/%41?x=1', 'proxy.http', '/a/A' ],
            [ GET => 8080, '/', 'proxy.http', '/' ],
            [ GET => 44772, '/v1/isolated/capabilities',
              'isolated.capabilities', '/v1/isolated/capabilities' ],
            [ PUT => 44772, '/nobody/knows', 'execd.unknown',
              '/nobody/knows' ])
        {
            my ($method, $port, $path, $operation, $inner) = @$case;
            ($headers, $target) = in_form($form, $id, $port, $path, $signed);
            $r = $t->request($method, $target, headers => $headers);
            $e = passes("$name $method $port$path", $r, $operation, $id, $port,
                        $inner);
            is($e->{wire}{path}, $inner, "$name: path $inner");
        }

        ($headers, $target) = in_form($form, $id, 44772,
                                      '/proxy/18080/policy', $signed);
        $r = $t->get($target, headers => $headers);
        $e = $t->record($r);
        is($e->{operation_type}, 'egress.policy.get', "$name: nested");
        is($e->{wire}{port}, 18080, "$name: nested port");

        my $value = $t->secret("vault-$N-value");
        ($headers, $target) = in_form($form, $id, 18080, '/credential-vault',
                                      $signed);
        $r = $t->post($target, headers => $headers,
            body => "{\"credentials\":[{\"name\":\"n1\",\"source\":"
                    . "{\"value\":\"$value\"}}]}");
        $e = passes("$name: a vault", $r, 'vault.create', $id, 18080,
                    '/credential-vault');
        like($e->{request_json}, qr/"n1"/, "$name: names only");

        # WebSockets: execd's terminal and a user port
        for my $case ([ 44772, '/pty/p1/ws', 'pty.open' ],
                      [ 8080, '/ws', 'proxy.ws' ])
        {
            my ($port, $path, $operation) = @$case;
            ($headers, $target) = in_form($form, $id, $port, $path, $signed);
            $up->mark;
            my $ws = $t->websocket($target, headers => $headers);
            is($ws->status, 101, "$name: $operation opens");

            if ($port == 8080) {
                $ws->send(1, 'hello');
                is($ws->recv->{payload}, 'hello', "$name: frames pass");
                $ws->close_frame(1000, 'bye');

            } else {
                $ws->send(2, "\x00exit 5\n");
            }

            $ws->recv_until(sub { $_[0]{op} == 8 }, 5);
            $ws->close;
            $e = $t->record($ws->response);
            is($e->{operation_type}, $operation, "$name: recorded");
            is($e->{in}, $id, "$name: for its sandbox");
            ($seen) = $up->requests(qr{^GET });
            like($seen->{head}, qr/^Connection: upgrade\r$/mi,
                 "$name: an upgrade as the ingress passes whole");
        }
    }

    # who has no token gets nothing
    my ($headers, $target) = in_form($form, 'fsb-0-x', 44772, '/command');
    $up->mark;
    my $r = $t->post($target, headers => $headers, body => '{"command":"x"}',
                     token => undef);
    is($r->status, 401, "$form: nothing without a token");
    is($r->code, 'GATEWAY_UNAUTHENTICATED', 'by us');
    ok(!$up->requests(qr{^POST }), 'and nothing went up');
    is($t->record($r)->{in}, '_gateway', 'a stranger writes no history');

    # the health of the ingress is nobody's sandbox
    ($headers, $target) = in_form($form, 'fsb-0-x', 44772, '');
    $r = $t->get('/status.ok', headers => $headers);
    is($r->content, 'OK', "$form: /status.ok");
    is($t->record($r)->{operation_type}, 'server.health', 'server.health');
    my ($seen) = $up->requests(qr{^GET /status});
    unlike($seen->{head}, qr/open-sandbox-api-key/i, 'without upstream key');
}


# the console is not served under a sandbox's name

for my $host ('s1-8080.sbx.test', 'x.SBX.test') {
    is($t->get('/console/api/v1/health', headers => [ "Host: $host" ])->status,
       421, "no console for $host");
}

is($t->get('/console/api/v1/health', headers => [ 'Host: uri.test' ])->status,
   200, 'but for a name of its own');

# an endpoint token opens its sandbox and port here too, and no other
{
    my $id = $t->sandbox('s1');
    $t->sandbox('s2');
    my $token = $t->endpoint($id)->{headers}{'OPEN-SANDBOX-API-KEY'};
    my ($headers, $target) = in_form('host', $id, 44772, '/ping');
    is($t->get($target, headers => $headers, token => $token)->status, 200,
       'an endpoint token opens its sandbox');

    for ([ 's2', 44772 ], [ 's1', 8080 ]) {
        ($headers, $target) = in_form('host', @$_, '/ping');
        is($t->get($target, headers => $headers, token => $token)->status, 401,
           "but not @$_");
    }

    # straight roads are for lifecycle locations: the ingress was asked
    $t->endpoint($id);
    ($headers, $target) = in_form('header', $id, 44772, '/ping');
    $up->mark;
    $t->get($target, headers => $headers);
    my ($seen) = $up->requests(qr{^GET /ping});
    is($seen->{listener}, 'ingress', 'a learnt address changes nothing');
}


# a secure sandbox: its own token passes, is not ours and not recorded
{
    $t->sandbox('safe', secure => 'secure-token-1', signature => $SIGNATURE);
    my ($headers, $target) = in_form('uri', 'safe', 44772, '/ping');
    my $r = $t->get($target, headers => $headers);
    is($r->status, 401, "the ingress's own refusal passes");
    like($r->content, qr/^OpenSandbox Ingress: access denied/, 'unchanged');
    my $e = $t->record($r);
    is($e->{status}, 'failed', 'recorded as failed');
    is($e->{error_code} // '', '', 'and as not ours');
    $r = $t->get($target, headers => [ @$headers,
        'OpenSandbox-Secure-Access: secure-token-1' ]);
    is($r->status, 200, 'with its token it opens');
}


# What could be read in two ways, or leads nowhere: 400, and nothing goes up.

my @refused = (
    [ 'two headers', 'ingress.test', '/ping',
      'OpenSandbox-Ingress-To: s1-44772', 'OpenSandbox-Ingress-To: s2-44772' ],
    [ 'the same header twice', 'ingress.test', '/ping',
      'OpenSandbox-Ingress-To: s1-44772', 'OpenSandbox-Ingress-To: s1-44772' ],
    [ 'old and new header differ', 'ingress.test', '/ping',
      'OPEN-SANDBOX-INGRESS: s1-8080', 'OpenSandbox-Ingress-To: s1-44772' ],
    [ 'an empty new header, an old one', 'ingress.test', '/ping',
      'OPEN-SANDBOX-INGRESS: s1-8080', 'OpenSandbox-Ingress-To:' ],
    [ 'header and Host differ in the sandbox', 's1-44772.sbx.test', '/ping',
      'OpenSandbox-Ingress-To: s2-44772' ],
    [ 'header and Host differ in the port', 's1-8080.sbx.test', '/ping',
      'OpenSandbox-Ingress-To: s1-44772' ],
    [ 'no header', 'ingress.test', '/ping' ],
    [ 'an underscore twin alone', 'ingress.test', '/ping',
      'OpenSandbox_Ingress_To: s1-44772' ],
    [ 'a scheme', 'ingress.test', '/ping',
      'OpenSandbox-Ingress-To: http://s1-44772' ],
    [ 'further labels', 'ingress.test', '/ping',
      'OpenSandbox-Ingress-To: s1-44772.evil' ],
    [ 'a list', 'ingress.test', '/ping',
      'OpenSandbox-Ingress-To: s1-44772, s2-44772' ],
    [ 'no port', 'ingress.test', '/ping', 'OpenSandbox-Ingress-To: s1' ],
    [ 'port 0', 'ingress.test', '/ping', 'OpenSandbox-Ingress-To: s1-0' ],
    [ 'port too large', 'ingress.test', '/ping',
      'OpenSandbox-Ingress-To: s1-65536' ],
    [ 'no sandbox', 'ingress.test', '/ping', 'OpenSandbox-Ingress-To: -44772' ],
    [ 'signed for one ingress, unsigned for an older', 'ingress.test', '/ping',
      'OpenSandbox-Ingress-To: s1-8080-abc-000044772' ],
    [ 'capitals in Host', 'S1-44772.sbx.test', '/ping' ],
    [ 'a Host without a port', 's1.sbx.test', '/ping' ],
    [ 'a deeper Host', 'x.s1-44772.sbx.test', '/ping' ],
    [ 'dots', 's1-44772.sbx.test', '/files/../command' ],
    [ 'an encoded slash', 's1-44772.sbx.test', '/files%2Finfo' ],
    [ 'doubly encoded', 's1-44772.sbx.test', '/%2570ing' ],
    [ 'a path without a port', 'uri.test', '/s1' ],
    [ 'a path with an encoded separator', 'uri.test', '/s1%2F44772/ping' ],
    [ 'a path with dots', 'uri.test', '/s1/8080/../44772/ping' ],
    [ 'a path with encoded dots', 'uri.test', '/s1/8080/%2e%2e/44772/ping' ],
    [ 'a doubled slash', 'uri.test', '//s1/44772/ping' ],
    [ 'a signed path, encoded', 'uri.test',
      "/s1/44772/$EXPIRES/%64eadbeef7/ping" ],
    [ 'an operation with and without the signature', 'uri.test',
      '/s1/44772/proxy/000008080/ping' ],
    [ 'a lifecycle path', 'uri.test', '/v1/sandboxes' ],
);

$t->sandbox('s1');
$t->sandbox('s2');

for (@refused) {
    my ($name, $host, $target, @headers) = @$_;

    $up->mark;
    my $r = $t->get($target, headers => [ "Host: $host", @headers ]);
    is($r->status, 400, "refused: $name") or diag($r->content);
    is($r->code, 'GATEWAY_AMBIGUOUS_REQUEST', 'by us');
    ok(!$up->requests(qr{.}), 'nothing went up');
    is($t->record($r)->{in}, '_gateway', 'recorded in no sandbox');
}

# what agrees passes, Host may be written in capitals where it is no route
for (
    [ 'both headers alike', 'ingress.test', 'OPEN-SANDBOX-INGRESS: s1-44772',
      'OpenSandbox-Ingress-To: s1-44772' ],
    [ 'header and Host alike', 's1-44772.sbx.test',
      'OpenSandbox-Ingress-To: s1-44772' ],
    [ 'a header under another Host', 'gate.sbx.test',
      'OpenSandbox-Ingress-To: s1-44772' ],
    [ 'an empty header', 's1-44772.sbx.test', 'OpenSandbox-Ingress-To:' ],
    [ 'capitals in the base', 's1-44772.SBX.test' ],
    [ 'a Host with a port', 's1-44772.sbx.test:28888' ])
{
    my ($name, $host, @headers) = @$_;

    my $r = $t->get('/ping', headers => [ "Host: $host", @headers ]);
    passes($name, $r, 'execd.ping', 's1', 44772, '/ping');
}

# header mode looks at no Host: neither do we where a header is there
{
    my $r = $t->get('/ping', headers => [ 'Host: ingress.test',
        'OpenSandbox-Ingress-To: s1-044772' ]);
    passes('leading zeros', $r, 'execd.ping', 's1', 44772, '/ping');
}

# a path that looks signed but is none: /command/{id}/logs
{
    my $r = $t->get('/s1/44772/command/deadbee07/logs',
                    headers => [ 'Host: uri.test' ]);
    passes('looks signed', $r, 'command.logs', 's1', 44772,
           '/command/deadbee07/logs');
}

# a signed path for a lifecycle location: nobody's, and not recorded whole
{
    my $r = $t->get("/s1/8080/$EXPIRES/$SIGNATURE/x",
                    headers => [ 'Host: uri.test' ]);
    is($t->record($r)->{wire}{path}, '/x', 'the signature is not recorded');
    $r = $t->get("/s1/8080/$EXPIRES/cafebabe1/x");
    is($t->record($r)->{wire}{path}, "/s1/8080/$EXPIRES/*********/x",
       'nor where no ingress is');
}

# a route of the client's choice does not count outside an ingress (C020)
{
    $up->mark;
    my $r = $t->get('/v1/sandboxes/s1/proxy/44772/ping',
                    headers => [ 'OpenSandbox-Ingress-To: s2-44772' ]);
    is($t->record($r)->{in}, 's1', 'C020: no header steers elsewhere');
    my ($seen) = $up->requests(qr{ping});
    unlike($seen->{head}, qr/ingress-to/i, 'and none goes up');
}

# the ingress is down: a line in the log, without the signature
{
    for my $f ('host', 'uri') {
        my ($headers, $target) = in_form($f, 'fsb-1-x', 8080, '/boom', 1);
        $up->script("GET $target", [ 'reset' ]);
        my $r = $t->get($target, headers => $headers);
        is($r->status, 502, "$f: upstream broke off");
        is($r->code, 'GATEWAY_UPSTREAM_UNAVAILABLE', 'said by us');
        my $e = $t->record($r);
        is($e->{operation_type}, 'proxy.http', 'recorded');
    }

    my @lines = grep { m{/boom} } split /\n/, $t->log_text;
    cmp_ok(@lines, '>', 1, 'it is in the log');
    is(scalar(grep { /\*{9}/ } @lines), scalar @lines,
       'with the signature masked');
}


# --- the directive ------------------------------------------------------------

for ([ 'sandbox_ingress nonsense;', qr/must be off, header, uri or host/ ],
     [ 'sandbox_ingress host;', qr/is followed by domains/ ],
     [ 'sandbox_ingress uri x.test;', qr/is followed by domains/ ],
     [ 'sandbox_ingress host *.x.test;', qr/must be a domain/ ],
     [ 'sandbox_ingress host x.test:80;', qr/must be a domain/ ],
     [ 'sandbox_ingress host .x.test;', qr/must be a domain/ ],
     [ 'sandbox_ingress uri; sandbox_ingress uri;', qr/is duplicate/ ])
{
    my ($line, $expect) = @$_;
    my ($ok, $out) = $t->check_conf(server => $line, conf => undef);
    ok(!$ok, "$line is refused");
    like($out, $expect, 'and told why');
}

for my $case ([ 'inherited', server => 'sandbox_ingress uri;' ],
              [ 'inherited from http', http => 'sandbox_ingress uri;' ],
              [ 'set', location => 'sandbox_ingress uri;' ])
{
    my ($name, %o) = @$case;
    my $u = SandboxTest->new(%o, conf => undef)->start;
    $u->up->sandbox('s1');
    my $r = $u->get('/s1/8080/x');
    is($u->record($r)->{operation_type}, 'proxy.http', "the directive $name");
    $u->stop;
}

{
    my $u = SandboxTest->new(server => 'sandbox_ingress uri;',
                             location => 'sandbox_ingress off;')->start;
    my $r = $u->get('/v1/sandboxes');
    is($u->record($r)->{operation_type}, 'sandbox.list', 'switched off below');
    $u->stop;
}

$t->stop;
done_testing;
