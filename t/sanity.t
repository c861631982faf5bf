#!/usr/bin/perl

# The module loads and does nothing unasked; each directive in a good and a bad
# form, what it inherits, and the variables.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;

my $http = q{log_format sandbox '$sandbox_id|$sandbox_operation|'
              '$sandbox_operation_id|$sandbox_port|$sandbox_actor_id|'
              '$sandbox_status|$sandbox_upstream_uri|$uri';};
my $t = SandboxTest->new(
    http => $http,
    server => 'sandbox_body_limit 100;',
    locations => <<'EOF',
location /v1/sandboxes/vars {
    sandbox on;
    access_log logs/vars.log sandbox;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_set_header Host $sandbox_upstream_host;
}
location /v1/sandboxes/inherits/proxy/44772/session {
    sandbox on;
    sandbox_body_limit 1k;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_set_header Host $sandbox_upstream_host;
}
location /untouched {
    return 200 "id:$sandbox_id op:$sandbox_operation_id\n";
}
EOF
);

# --- configurations that are refused with a sentence that helps ----------------------

sub good {
    my ($name, %o) = @_;
    my ($ok, $out) = $t->check_conf(%o);
    ok($ok, "accepted: $name") or diag($out);
}

sub bad {
    my ($name, $like, %o) = @_;
    my ($ok, $out) = $t->check_conf(%o);
    ok(!$ok, "refused: $name") or diag($out);
    like($out, qr/\[emerg\].*$like/, 'with a sentence that says why');
    like($out, qr/in .*check\.conf:\d+|check\.conf/, 'and where');
}

good('the harness itself');
good($_, location => $_) for (
    'sandbox_record * strict;', 'sandbox_record command.* best_effort;',
    'sandbox_record file.read off;', 'sandbox_capture_limit 0;',
    'sandbox_capture_limit 64m;', 'sandbox_body_limit 2m;',
    'sandbox_digest off;', 'sandbox_digest on;',
    'sandbox_timeout 500ms;', 'sandbox_endpoints off;',
    'sandbox_endpoints rewrite;', 'sandbox_public a.example:8443/osb;',
    'sandbox_public a.example;', 'sandbox_host a.example b.example;',
    'sandbox_endpoint_allow 10.0.0.0/8 192.168.0.0/16;',
    'sandbox_endpoint_allow fd00::/8;', 'sandbox_actor_id $remote_user;',
    'sandbox_actor_id $ssl_client_s_dn;');
good($_, http => "$http\n$_") for ('sandbox_history provider;', 'sandbox_history none;');
good($_, http => "$http\n$_", conf => sub {
    $_[0] =~ s{sandbox_helper [^;]*;}{sandbox_helper exec:/bin/true; sandbox_data /tmp;}r
}) for ('sandbox_history_sync full;', 'sandbox_history_sync normal;',
        'sandbox_history_lag 1s;', 'sandbox_history_lag 1h;');

bad("$_->[0]", $_->[1], location => $_->[0]) for (
    [ 'sandbox_record command.* sometimes;', 'sometimes' ],
    [ 'sandbox_record comand.* strict;', 'comand' ],
    [ 'sandbox_capture_limit much;', 'sandbox_capture_limit' ],
    [ 'sandbox_digest maybe;', 'sandbox_digest' ],
    [ 'sandbox_body_limit -1;', 'sandbox_body_limit' ],
    [ 'sandbox_timeout soon;', 'sandbox_timeout' ],
    [ 'sandbox_endpoints maybe;', 'maybe' ],
    [ 'sandbox_endpoint_allow 10.0.0.0/99;', '10\.0\.0\.0/99' ],
    [ 'sandbox_public "";', 'sandbox_public' ],
    [ 'sandbox_public "http://a.example";', 'sandbox_public' ],
    [ 'sandbox_upstream "ftp://x";', 'sandbox_upstream' ],
    [ 'sandbox_upstream "127.0.0.1:80";', 'sandbox_upstream' ],
    [ 'sandbox_tokens /nonexistent/tokens;', '/nonexistent/tokens' ],
    [ 'sandbox_api_key_file /nonexistent/key;', '/nonexistent/key' ]);
bad("$_->[0]", $_->[1], http => "$http\n$_->[0]") for (
    [ 'sandbox_history sandbox;', 'sandbox_history' ],
    [ 'sandbox_history database;', 'sandbox_history' ],
    [ 'sandbox_history_sync often;', 'normal or full' ],
    [ 'sandbox_history_lag 0;', '1s to 1h' ],
    [ 'sandbox_history_lag 2h;', '1s to 1h' ],
    [ 'sandbox_history_lag soon;', '1s to 1h' ],
    [ 'sandbox_data /x;', 'sandbox_data' ],
    [ 'sandbox_history_path /x;', 'sandbox_history_path' ],
    [ 'sandbox_helper unix:/x;', 'duplicate' ]);

bad('sandbox on without sandbox_helper', 'sandbox_helper',
    conf => sub { $_[0] =~ s/sandbox_helper [^;]*;//r });
bad('a helper that is neither unix: nor exec:', 'sandbox_helper',
    conf => sub { $_[0] =~ s/sandbox_helper [^;]*;/sandbox_helper tcp:1;/r });
bad('exec: without sandbox_data', 'sandbox_data',
    conf => sub { $_[0] =~ s{sandbox_helper [^;]*;}{sandbox_helper exec:/bin/true;}r });
bad('sandbox on without sandbox_upstream', 'sandbox_upstream',
    conf => sub { $_[0] =~ s/sandbox_upstream [^;]*;//r });
bad('sandbox on without sandbox_tokens', 'sandbox_tokens',
    conf => sub { $_[0] =~ s/sandbox_tokens [^;]*;//r });

# C145: files that are there but say nothing, or nonsense
SandboxTest::write_file($t->dir . '/etc/empty', '');
SandboxTest::write_file($t->dir . '/etc/nonsense', "admin nonsense\n");
SandboxTest::write_file($t->dir . '/etc/word', 'admin ' . 'a' x 64 . " rule=x\n");
bad('an empty key file', 'empty',
    location => 'sandbox_api_key_file ' . $t->dir . '/etc/empty;');
bad('a token file that is none', 'nonsense',
    location => 'sandbox_tokens ' . $t->dir . '/etc/nonsense;');
bad('a token file with an unknown word', 'word',
    location => 'sandbox_tokens ' . $t->dir . '/etc/word;');


# --- running --------------------------------------------------------------------------------

$t->start;
$t->sandbox($_) for qw(s1 vars1 inherits);

my $r = $t->get('/untouched', token => undef);
is($r->content, "id: op:\n", 'where sandbox is off there is nothing of ours');
is($r->header('X-Operation-Id'), undef, 'no header either');

$r = $t->get('/v1/sandboxes/s1');
is($r->status, 200, 'a request passes');
is($r->json->{id}, 's1', 'with the answer of upstream');
is($t->record($r)->{operation_type}, 'sandbox.get', 'and is recorded');

# variables

$r = $t->get('/v1/sandboxes/vars1/proxy/44772/files/info?path=%2Fa',
             headers => [ 'X-Actor-Id: agent-5' ]);
my $id = $r->header('X-Operation-Id');
$t->record($r);
my ($line) = $t->wait_for(sub { $t->log_text('vars.log') }, 2) =~ /(.*)\n\z/;
is($line, "vars1|file.stat|$id|44772|agent-5|succeeded|"
          . '/v1/sandboxes/vars1/proxy/44772/files/info?path=%2Fa|'
          . '/v1/sandboxes/vars1/proxy/44772/files/info', 'variables');

# inheritance: server, then location

my $body = '{"command":"' . 'x' x 200 . '"}';
is($t->post('/v1/sandboxes/s1/proxy/44772/command', body => $body)->status, 413,
   'sandbox_body_limit of the server');
is($t->post('/v1/sandboxes/inherits/proxy/44772/session/x/run', body => $body)
     ->status, 200, 'and of a location');

# the record of a location without its own sandbox_record has the defaults

is($t->record($t->delete('/v1/sandboxes/s1/proxy/44772/files?path=%2Fa'))
     ->{wire}{record}, 'strict', 'defaults');

$t->stop;

# Mode none: the gate without the recorder's files.

$t = SandboxTest->new(http => 'sandbox_history none;',
                      helper_args => [ '--mode', 'none' ])->start;
$t->sandbox('s1');
$r = $t->post('/v1/sandboxes/s1/proxy/44772/command',
              body => '{"command":"echo hi"}');
is($r->status, 200, 'sandbox_history none: a strict operation passes');
ok($r->header('X-Operation-Id'), 'with an id');
is($t->get('/v1/sandboxes', token => undef)->status, 401, 'the gate is closed');
$t->stop;
is(scalar(glob $t->dir . '/data/history/*/history.sqlite3'), undef,
   'and there are no history files');

# Without `sandbox on` anywhere the module needs nothing and changes nothing.

$t = SandboxTest->new(helper => 0, conf => sub {
    my $c = shift;
    $c =~ s/^\s*sandbox\w*(?: [^;]*)?;\n//mg;
    $c =~ s/^\s*sandbox_peer;\n//mg;
    $c =~ s/\$sandbox_upstream_uri/\$request_uri/;
    $c =~ s/\$sandbox_upstream_host/\$http_host/;
    $c =~ s/\$sandbox_connection/""/;
    return $c;
})->start;
$r = $t->get('/health', token => undef);
is($r->status, 200, 'loaded but unused: an ordinary proxy');
is($r->header('X-Operation-Id'), undef, 'that adds nothing');
$t->stop;

done_testing;
