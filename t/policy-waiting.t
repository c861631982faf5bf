#!/usr/bin/perl

# Rules, and rights of a token, that change while an operation waits for a lock: the
# worker that it waits in is one of before the reload; the new ones count.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use ArchiveMaker qw(zip);
use SandboxTest;
use Test::More;

my $LOCKS = '/console/api/v1/sandboxes/s1/locks';
my $execd = '/v1/sandboxes/s1/proxy/44772';
my $hold = "$execd/files/download?path=%2Fhold";
my @type = ('Content-Type: multipart/form-data; boundary=B');

my $t = SandboxTest->new(workers => 2,
    location => 'sandbox_locks on; sandbox_lock_timeout 1m; sandbox_policy policy;',
    locations => 'location /other/ { sandbox on; sandbox_policy off;
                  proxy_pass http://opensandbox$sandbox_upstream_uri; }');
my $up = $t->up;
my $conf = "$t->{dir}/conf/nginx.conf";
my $before = "deny etc { access write; path /etc; }\ndefault allow;\n";

sub policy { SandboxTest::write_file("$t->{dir}/conf/" . ($_[1] // 'policy'), $_[0]) }

policy($before);
$t->start;
$t->sandbox('s1');
ok($t->wait_for(sub { $t->get($LOCKS)->status == 200 }), 'the helper is there');

sub again {
    my ($n) = $t->get('/console/api/v1/metrics')->content
              =~ /^sandbox_gateway_policy_again_total (\d+)$/m;
    return $n;
}

sub begin {
    my ($method, $target, $body, @headers) = @_;

    my $c = $t->connect;
    $c->write($c->build($method => $target, body => $body,
                        headers => [ (grep { /^OPEN-SANDBOX-API-KEY:/ } @headers) ? ()
                                     : $t->credential, @headers ]));

    return $c;
}

# Has an operation wait while `change` does something and nginx is reloaded; its
# answer, and whether upstream has seen it.

my $n = 0;

sub waits {
    my ($change, $method, $target, $body, @headers) = @_;

    my $name = 'end' . $n++;
    $up->script("GET $hold", [ until => $name ], [ 'default' ]);

    my $holder = begin(GET => $hold);
    $t->wait_for(sub { grep { $_->{state} eq 'held' }
                       @{ $t->get($LOCKS)->json->{items} } }) or die "nobody holds\n";
    my $waiter = begin($method, $target, $body, @headers);
    $t->wait_for(sub { grep { $_->{state} eq 'waiting' }
                       @{ $t->get($LOCKS)->json->{items} } }) or die "nobody waits\n";
    $up->mark;
    $change->();
    $t->reload;
    $up->release($name);
    $holder->response->status == 200 or die "the holder has failed\n";

    my $r = $waiter->response;

    return ($r, scalar grep { "$_->{method} $_->{target}" eq "$method $target" }
                       $up->requests);
}

my @delete = (DELETE => "$execd/files?path=%2Fhold");
my @upload = (POST => "$execd/files/upload", SandboxTest::upload_body('/hold', 'x'), @type);
my @command = (POST => "$execd/command", '{"command":"make"}',
               'Content-Type: application/json', 'X-Sandbox-Lock: write:/hold');


# --- the rules are the same

my ($r, $seen) = waits(sub { }, @delete);
is($r->status, 200, 'a reload without a change: it goes on');
is($seen, 1, 'to upstream');
is(again(), 0, 'and is not judged again');


# --- they are others

for my $case (
    [ 'a deletion', "deny hold { operation file.delete; path /hold; reason \"Not now.\"; }\n",
      @delete ],
    [ 'an upload', "deny hold { path /hold; reason \"Not now.\"; }\n", @upload ],
    [ 'a command', "deny hold { command \"^make\"; reason \"Not now.\"; }\n", @command ],
) {
    my ($what, $rule, @op) = @$case;
    my $count = again();

    ($r, $seen) = waits(sub { policy($rule . $before) }, @op);
    is($r->status, 403, "$what that a new rule denies");
    is($r->code, 'GATEWAY_POLICY_DENIED', 'in the envelope');
    is($r->json->{details}{rule}, 'hold', 'by its rule');
    is($r->json->{message}, 'Not now.', 'for its reason');
    is($seen, 0, 'upstream has not seen it');
    is(again(), $count + 1, 'it was judged again');

    my $e = $t->record($r, sandbox => 's1');
    is($e->{result}{verdict}, 'deny', 'which is on record');
    is($e->{result}{verdict_rule}, 'hold', 'with the rule');

    policy($before);
    $t->reload;
    ($r, $seen) = waits(sub { policy("observe hold { access write; }\n$before# $n\n") }, @op);
    is($r->status, 200, "$what that the new rules allow");
    is($seen, 1, 'goes on');
    is($t->record($r, sandbox => 's1')->{result}{verdict}, 'observe',
       'on record by the new rules');
    is(again(), $count + 2, 'it was judged again, too');
}

policy("deny big { file_size > 3; }\n$before");
$t->reload;
($r, $seen) = waits(sub { policy("deny big { file_size > 0; }\n$before") }, @upload);
is($r->status, 413, 'a lower limit');
is($r->code, 'GATEWAY_LIMIT_EXCEEDED', 'is told as one');
is($seen, 0, 'and nothing went up');


# --- another file, none, and where there was none

my $text = SandboxTest::read_file($conf);

sub configure { SandboxTest::write_file($conf, $text =~ s/sandbox_policy policy;/$_[0]/r) }

policy($before);
$t->reload;
is($t->delete("$execd/files?path=%2Fhold")->status, 200, 'and now all is as before');
policy("default deny \"Closed.\";\n", 'closed');
($r, $seen) = waits(sub { configure('sandbox_policy closed;') }, @delete);
is($r->status, 403, 'the location has another file');
is($r->json->{message}, 'Closed.', 'which counts');

configure('sandbox_policy policy;');
$t->reload;
($r, $seen) = waits(sub { configure('sandbox_policy off;') }, @delete);
is($r->status, 200, 'it has no policy any more');

($r, $seen) = waits(sub { configure('sandbox_policy closed;') }, @delete);
is($r->status, 403, 'it had none');
is($r->json->{details}{rule}, 'default', 'and the new one counts');

# whose answer is not known: closed

configure('sandbox_policy policy;');
$t->reload;
($r, $seen) = waits(sub {
    SandboxTest::write_file($conf, $text =~ s/location \/ \{/location ~ ^\/v1\/ {/r);
}, @delete);
is($r->status, 503, 'the location has another name');
is($r->code, 'GATEWAY_OVERLOADED', 'nobody knows what counts there');
ok($r->header('Retry-After'), 'it may come again');
is($seen, 0, 'nothing went up');

SandboxTest::write_file($conf, $text);
$t->reload;

my $archive = SandboxTest::upload_body('/hold', zip([ { name => 'a', data => 1 } ]));
my @archive = (POST => "$execd/files/upload", $archive, @type);

($r, $seen) = waits(sub { policy("deny climbs { archive climbs; }\n$before") }, @archive);
is($r->status, 503, 'an archive that nobody has looked into for the new rules');
is($seen, 0, 'nothing went up');
is($t->post($archive[1], body => $archive, headers => \@type)->status, 200,
   'sent again it passes');

policy($before);
$t->reload;
($r, $seen) = waits(sub { policy("deny tokens { content token; }\n$before") }, @upload);
is($r->status, 503, 'nor has anybody looked for secrets');
is($seen, 0, 'nothing went up');

policy("deny climbs { archive climbs; }\n$before");
$t->reload;
($r, $seen) = waits(sub { policy("deny links { archive links; }\n$before") }, @archive);
is($r->status, 503, 'other rules about archives');
is($seen, 0, 'nothing went up');

policy("deny climbs { archive climbs; }\n$before");
$t->reload;
($r, $seen) = waits(sub { policy("observe links { archive links; }\n$before") }, @archive);
is($r->status, 200, 'an archive about which the new rules deny nothing');
is($seen, 1, 'goes on');


# --- a token that may less

my $tokens = SandboxTest::read_file($t->{token_file});
my $secret = $t->token('plain');
my ($id) = $secret =~ /^sbx_([a-z0-9]+)_/;

sub change {
    my ($from, $to) = @_;

    my $new = join '', map { /\b\Q$id\E\b/ ? s/\Q$from\E/$to/r : $_ } $tokens =~ /^.*\n/mg;
    isnt($new, $tokens, 'its line is changed');

    return sub { SandboxTest::write_file($t->{token_file}, $new) };
}

my @operator = ("OPEN-SANDBOX-API-KEY: $secret");

($r, $seen) = waits(sub { }, @delete, undef, @operator);
is($r->status, 200, 'a token that is as it was');
($r, $seen) = waits(change('role=operator', 'role=viewer'), @delete, undef, @operator);
is($r->status, 401, 'one whose role is a lower one by now');
is($seen, 0, 'nothing went up');
SandboxTest::write_file($t->{token_file}, $tokens);
$t->reload;
($r, $seen) = waits(change('role=operator', 'role=operator sandboxes=other-*'), @delete, undef,
                    @operator);
is($r->status, 401, 'one that is for other sandboxes by now');
is($seen, 0, 'nothing went up');

$t->stop;
done_testing;
