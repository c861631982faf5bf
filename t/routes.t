#!/usr/bin/perl

# Every route of the operation table, in both carrier forms (with and without
# /v1), through the gateway to a scripted upstream: the recorded operation and
# the sandbox it was recorded for.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;

# METHOD, path ({S}: the sandbox), operation, options:
#   body, upgrade
#   root => 1    only without /v1
#   in => '_gateway'   recorded there, the route names no sandbox

my $json = '{}';
my $vault = '{"credentials":[{"name":"n","source":'
            . '{"type":"inline","value":"vault-value-1"}}],"bindings":[]}';
my $file = "--B\r\nContent-Disposition: form-data; name=\"metadata\"; "
    . "filename=\"metadata\"\r\nContent-Type: application/json\r\n\r\n"
    . "{\"path\":\"/work/a.txt\"}\r\n--B\r\nContent-Disposition: form-data; "
    . "name=\"file\"; filename=\"a.txt\"\r\n\r\nhello\r\n--B--\r\n";
my @upload = (body => $file,
              headers => [ 'Content-Type: multipart/form-data; boundary=B' ]);
my @gw = (in => '_gateway');

my @lifecycle = (
    [ GET => '/sandboxes', 'sandbox.list', @gw ],
    [ GET => '/sandboxes/{S}', 'sandbox.get' ],
    [ PATCH => '/sandboxes/{S}/metadata', 'sandbox.metadata.patch',
      body => '{"team":"a"}' ],
    [ POST => '/sandboxes/{S}/pause', 'sandbox.pause', body => '' ],
    [ POST => '/sandboxes/{S}/resume', 'sandbox.resume', body => '' ],
    [ POST => '/sandboxes/{S}/renew-expiration', 'sandbox.renew',
      body => '{"expiresAt":"2026-12-01T00:00:00Z"}' ],
    [ GET => '/sandboxes/{S}/endpoints/8080', 'endpoint.get' ],
    [ POST => '/sandboxes/{S}/snapshots', 'snapshot.create',
      body => '{"name":"n"}' ],
    [ GET => '/snapshots', 'snapshot.list', @gw ],
    [ GET => '/snapshots/snap-1', 'snapshot.get', @gw ],
    [ DELETE => '/snapshots/snap-1', 'snapshot.delete', @gw ],
    [ GET => '/sandboxes/{S}/diagnostics/logs?tail=5', 'diagnostics.logs' ],
    [ GET => '/sandboxes/{S}/diagnostics/events', 'diagnostics.events' ],
    [ GET => '/sandboxes/{S}/diagnostics/inspect', 'diagnostics.inspect' ],
    [ GET => '/sandboxes/{S}/diagnostics/summary', 'diagnostics.summary' ],
    [ POST => '/pools', 'pool.create', @gw, body => '{"name":"p"}' ],
    [ GET => '/pools', 'pool.list', @gw ],
    [ GET => '/pools/p', 'pool.get', @gw ],
    [ PUT => '/pools/p', 'pool.update', @gw,
      body => '{"capacitySpec":{"bufferMax":1}}' ],
    [ DELETE => '/pools/p', 'pool.delete', @gw ],
    [ GET => '/health', 'server.health', @gw, root => 1 ],
    [ GET => '/docs', 'server.docs', @gw, root => 1 ],
    [ GET => '/docs/oauth2-redirect', 'server.docs', @gw, root => 1 ],
    [ GET => '/redoc', 'server.docs', @gw, root => 1 ],
    [ GET => '/openapi.json', 'server.docs', @gw, root => 1 ],
    [ GET => '/version', 'server.version', in => '*' ],
    [ POST => '/metrics/events', 'client.metrics', in => '*',
      body => '{"eventType":"x","sandboxId":"{S}"}' ],
    [ GET => '/sandboxes/{S}/networkpolicy', 'sandbox.networkpolicy.get' ],
    [ PUT => '/sandboxes/{S}/networkpolicy', 'sandbox.networkpolicy.set',
      body => $json ],
    [ PATCH => '/sandboxes/{S}/networkpolicy', 'sandbox.networkpolicy.patch',
      body => $json ],
    [ DELETE => '/sandboxes/{S}/networkpolicy',
      'sandbox.networkpolicy.delete' ],
    [ GET => '/templates', 'template.list', @gw ],
    [ POST => '/templates', 'template.create', @gw, body => $json ],
    [ GET => '/templates/t', 'template.get', @gw ],
    [ PUT => '/templates/t', 'template.update', @gw, body => $json ],
    [ DELETE => '/templates/t', 'template.delete', @gw ],
    [ GET => '/sandboxes/{S}/nothing', 'lifecycle.unknown', in => '*' ],
    [ GET => '/sandboxes/{S}/proxy/8080', 'proxy.http' ],
    [ GET => '/sandboxes/{S}/proxy/8080/', 'proxy.http' ],
    [ POST => '/sandboxes/{S}/proxy/8080/a/b?x=1', 'proxy.http', body => 'x' ],
    [ GET => '/sandboxes/{S}/proxy/8080/ws', 'proxy.ws', upgrade => 1 ],
    [ DELETE => '/sandboxes/{S}', 'sandbox.delete' ],
);

my @execd = (
    [ GET => '/ping', 'execd.ping' ],
    [ POST => '/command', 'command.execute', body => '{"command":"echo a"}' ],
    [ DELETE => '/command?id=c1', 'command.interrupt' ],
    [ GET => '/command/status/c1', 'command.status' ],
    [ GET => '/command/c1/logs?cursor=0', 'command.logs' ],
    [ POST => '/code', 'code.execute',
      body => '{"context":{"language":"python"},"code":"echo a"}' ],
    [ DELETE => '/code?id=c1', 'code.interrupt' ],
    [ POST => '/code/context', 'code.context.create',
      body => '{"language":"python"}' ],
    [ GET => '/code/contexts?language=python', 'code.context.list' ],
    [ GET => '/code/contexts/x', 'code.context.get' ],
    [ DELETE => '/code/contexts?language=python', 'code.context.delete_all' ],
    [ DELETE => '/code/contexts/x', 'code.context.delete' ],
    [ POST => '/session', 'session.create', body => '' ],
    [ POST => '/session/x/run', 'session.run', body => '{"command":"echo a"}' ],
    [ DELETE => '/session/x', 'session.delete' ],
    [ POST => '/files/upload', 'file.write', @upload ],
    [ GET => '/files/download?path=%2Fa', 'file.read' ],
    [ GET => '/files/info?path=%2Fa', 'file.stat' ],
    [ DELETE => '/files?path=%2Fa', 'file.delete' ],
    [ POST => '/files/mv', 'file.move', body => '[{"src":"/a","dest":"/b"}]' ],
    [ POST => '/files/permissions', 'file.chmod', body => '{"/a":{"mode":644}}' ],
    [ GET => '/files/search?path=%2F&pattern=*', 'file.search' ],
    [ POST => '/files/replace', 'file.replace',
      body => '{"/a":{"old":"x","new":"y"}}' ],
    [ GET => '/directories/list?path=%2F', 'dir.list' ],
    [ POST => '/directories', 'dir.create', body => '{"/d":{"mode":755}}' ],
    [ DELETE => '/directories?path=%2Fd', 'dir.delete' ],
    [ GET => '/metrics', 'metrics.get' ],
    [ GET => '/metrics/watch', 'metrics.watch' ],
    [ POST => '/pty', 'pty.create', body => '{}' ],
    [ GET => '/pty/p', 'pty.status' ],
    [ GET => '/pty/p/ws?since=0', 'pty.open', upgrade => 1 ],
    [ DELETE => '/pty/p', 'pty.delete' ],
    [ GET => '/ready', 'execd.ready' ],
    [ POST => '/internal/init', 'execd.init', body => '{"generation":1}' ],
    [ POST => '/v1/isolated/session', 'isolated.create', body => $json ],
    [ GET => '/v1/isolated/sessions', 'isolated.list' ],
    [ GET => '/v1/isolated/session/x', 'isolated.get' ],
    [ POST => '/v1/isolated/session/x/run', 'isolated.run',
      body => '{"code":"id"}' ],
    [ GET => '/v1/isolated/session/x/diff', 'isolated.diff' ],
    [ POST => '/v1/isolated/session/x/commit', 'isolated.commit' ],
    [ GET => '/v1/isolated/capabilities', 'isolated.capabilities' ],
    [ POST => '/v1/isolated/session/x/files/upload', 'isolated.file.write',
      @upload ],
    [ GET => '/v1/isolated/session/x/files/download?path=%2Fa',
      'isolated.file.read' ],
    [ GET => '/v1/isolated/session/x/files/info?path=%2Fa',
      'isolated.file.stat' ],
    [ DELETE => '/v1/isolated/session/x/files?path=%2Fa',
      'isolated.file.delete' ],
    [ POST => '/v1/isolated/session/x/files/mv', 'isolated.file.move',
      body => '[]' ],
    [ POST => '/v1/isolated/session/x/files/permissions',
      'isolated.file.chmod', body => $json ],
    [ GET => '/v1/isolated/session/x/files/search?path=%2F',
      'isolated.file.search' ],
    [ POST => '/v1/isolated/session/x/files/replace', 'isolated.file.replace',
      body => $json ],
    [ GET => '/v1/isolated/session/x/directories/list?path=%2F',
      'isolated.dir.list' ],
    [ POST => '/v1/isolated/session/x/directories', 'isolated.dir.create',
      body => $json ],
    [ DELETE => '/v1/isolated/session/x/directories?path=%2Fd',
      'isolated.dir.delete' ],
    [ DELETE => '/v1/isolated/session/x', 'isolated.delete' ],
    [ PUT => '/command', 'execd.unknown', body => $json ],
    [ GET => '/nope', 'execd.unknown' ],
);

my @egress = (
    [ GET => '/policy', 'egress.policy.get' ],
    [ POST => '/policy', 'egress.policy.set',
      body => '{"defaultAction":"deny"}' ],
    [ PUT => '/policy', 'egress.policy.set',
      body => '{"defaultAction":"deny"}' ],
    [ POST => '/policy', 'egress.policy.reset', body => '' ],
    [ PATCH => '/policy', 'egress.policy.patch',
      body => '[{"action":"allow","target":"a.test"}]' ],
    [ DELETE => '/policy', 'egress.policy.delete_rules', body => '["a.test"]' ],
    [ GET => '/healthz', 'egress.health' ],
    [ POST => '/credential-vault', 'vault.create', body => $vault ],
    [ PATCH => '/credential-vault', 'vault.patch',
      body => '{"expectedRevision":1}' ],
    [ GET => '/credential-vault', 'vault.get' ],
    [ GET => '/credential-vault/credentials/n', 'vault.get' ],
    [ DELETE => '/credential-vault', 'vault.delete' ],
    [ GET => '/else', 'egress.unknown' ],
);

my $t = SandboxTest->new(
    # what is off by default is walked too
    location => 'sandbox_record * best_effort;',
)->start;

$t->secret('vault-value-1');

my $conn = $t->connect;
my (@sent, %seen);
my $n = 0;

for my $prefix ('', '/v1') {
    walk($prefix, '', @lifecycle);
    walk($prefix, '/sandboxes/{S}/proxy/44772', @execd);
    walk($prefix, '/sandboxes/{S}/proxy/18080', @egress);
}

# one sandbox is made by each form
for my $prefix ('', '/v1') {
    my $r = $t->post("$prefix/sandboxes", conn => $conn,
                     body => '{"image":{"uri":"python:3.11"}}');
    is($r->status, 202, "POST $prefix/sandboxes");
    push @sent, [ "POST $prefix/sandboxes", $r, 'sandbox.create',
                  $r->json->{id} ];
}

# every operation that the table has was walked
my @missing = grep { !$seen{$_} && $_ ne 'sandbox.create' } table_operations();
is_deeply(\@missing, [], 'no operation of the table was left out');

my $index;
$t->wait_for(sub {
    $index = $t->history->index;
    return !grep {
        my $e = $index->{$_->[1]->header('X-Operation-Id')};
        !$e || $e->{status} eq 'started';
    } @sent;
}, 10);

for my $s (@sent) {
    my ($what, $r, $op, $sandbox) = @$s;
    my $e = $index->{$r->header('X-Operation-Id')};

    is($e->{type}, $op, "$what is $op");

    # after a 404 the record may still wait in _gateway, under the sandbox's name
    if ($sandbox ne '*') {
        is($e->{in} eq '_gateway' && $r->status == 404 ? $e->{sandbox}
                                                       : $e->{in},
           $sandbox, "for $sandbox");
    }
}

$t->stop;
done_testing;


# Sends the rows about a sandbox that nobody else uses.

sub walk {
    my ($prefix, $carrier, @rows) = @_;

    my $sandbox = 's' . $n++;
    $t->up->sandbox($sandbox);

    for my $row (@rows) {
        my ($method, $path, $op, %o) = @$row;
        next if $o{root} && $prefix;

        my $target = "$prefix$carrier$path" =~ s/\{S\}/$sandbox/r;
        my $in = $o{in} // $sandbox;
        my $r;

        $seen{$op}++;

        if ($o{upgrade}) {
            my $ws = $t->websocket($target);
            $r = $ws->response;
            is($r->status, 101, "$method $target opens a WebSocket");
            $ws->close_frame;
            $ws->recv_until(sub { $_[0]{op} == 8 }, 2);
            $ws->close;

        } else {
            $o{body} =~ s/\{S\}/$sandbox/g if defined $o{body};
            $r = $t->request($method, $target, conn => $conn, %o);
            ok($r->complete && ($r->code // '') !~ /^GATEWAY_/,
               "$method $target is passed on")
                or diag($r->status . ' ' . $r->content . $r->{error});
            $conn = $t->connect if ($r->header('Connection') // '') eq 'close'
                                   || !$r->complete;
        }

        push @sent, [ "$method $target", $r, $op, $in ];
    }
}


# Names in the operation table, from lib/operation itself.

sub table_operations {
    my $source = $t->dir . '/etc/table.c';
    my $program = $t->dir . '/etc/table';

    SandboxTest::write_file($source, <<'EOF');
#include "operation.h"
#include <stdio.h>

int
main(void)
{
    size_t  i;

    for (i = 0; i < sb_op_count(); i++) {
        puts(sb_op_at(i)->name);
    }

    return 0;
}
EOF

    system('cc', '-D_GNU_SOURCE', "-I$SandboxProcess::ROOT/lib", '-o', $program,
           $source, "$SandboxProcess::BUILD/libsb.a", '-lcrypto') == 0
        or die "the table program does not build\n";

    my %name = map { chomp; $_ => 1 } qx($program);

    return sort keys %name;
}
