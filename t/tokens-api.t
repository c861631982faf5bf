#!/usr/bin/perl

# Tokens made and revoked over the console API: what is asked for, what is told,
# that it counts in all workers without a reload and after one, and who may.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA qw(sha256_hex);
use Fcntl qw(:flock);
use JSON::PP qw(encode_json);
use SandboxTest;
use Test::More;

my $API = '/console/api/v1';
my $t = SandboxTest->new(workers => 2);
my $file = $t->{token_file};
$t->{helper_args} = [ '--tokens', $file ];
SandboxTest::write_file($file, SandboxTest::read_file($file)
    . 'narrow ' . sha256_hex('y') . ' role=admin sandboxes=s1');
chmod 0666, $file;
$t->start;
$t->sandbox('s1');

sub make {
    my ($body, %o) = @_;
    my $r = $t->post("$API/tokens", body => ref $body ? encode_json($body) : $body,
                     %o);
    $t->secret((split /_/, $r->json->{token}, 3)[2]) if $r->status == 201;
    return $r;
}

sub revoke { $t->request(DELETE => "$API/tokens/$_[0]", @_[1 .. $#_]) }
sub items { map { $_->{id} => $_ } @{ $t->get("$API/tokens")->json->{items} } }

# what each worker answers
sub everywhere {
    my ($token, $status, $what) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my %to = $t->to_each_worker;
    is_deeply([ map { $t->get("$API/overview", token => $token, conn => $_)->status }
                values %to ], [ $status, $status ], $what);
}

ok($t->wait_for(sub { $t->get("$API/overview")->status == 200 }),
   'the helper is there');

# --- seen ----------------------------------------------------------------------

my %all = items();
is_deeply([ sort keys %all ], [ sort 'narrow', keys %{ $t->{tokens} } ],
          'all tokens are listed, one that is over, too');
is_deeply($all{expired}, { id => 'expired', role => 'admin',
    actor => { type => 'user', id => 'late' },
    sandboxes => [], states_actors => JSON::PP::false, self => JSON::PP::false,
    created_at => undef, expires_at => '2020-01-01T00:00:00.000000Z' },
    'with what the file says');
is_deeply($all{narrow}{sandboxes}, [ 's1' ], 'and the sandboxes it is for');
ok($all{admin}{self}, 'the one that asks is marked');
is(scalar(grep { $_->{self} } values %all), 1, 'and no other');
unlike($t->get("$API/tokens")->content, qr/[0-9a-f]{64}/, 'hashes stay here');

# --- made ----------------------------------------------------------------------

my $r = make({ role => 'viewer', actor => { type => 'agent', id => 'b"ot' },
               sandboxes => [ 's1', 'build-*' ], states_actors => JSON::PP::true,
               expires_in => 3600 });
is($r->status, 201, 'a token is made') or diag($r->content);
my $one = $r->json;
like($one->{token}, qr/^sbx_\Q$one->{id}\E_[\w-]{43}$/, 'and told');
is_deeply($one->{actor}, { type => 'agent', id => 'b"ot' }, 'its actor');
is_deeply($one->{sandboxes}, [ 's1', 'build-*' ], 'its sandboxes');
ok($one->{states_actors}, 'that it states actors');
like($one->{created_at}, qr/^\d{4}-\d\d-\d\dT[\d:]+\.\d{6}Z$/, 'when');
cmp_ok($one->{expires_at}, 'gt', $one->{created_at}, 'until when');

my ($line) = SandboxTest::read_file($file) =~ /^(\Q$one->{id}\E .*)$/m;
is((split / /, $line)[1], sha256_hex($one->{token}), 'the file has its hash');
unlike(SandboxTest::read_file($file), qr/\Q$one->{token}\E/, 'and nothing else');
like(SandboxTest::read_file($file), qr/^narrow .*sandboxes=s1\n/m,
     'a last line without an end gets one');

my %copy = %$one;
delete $copy{token};
%all = items();
is_deeply($all{$one->{id}}, \%copy, 'it is listed, without the token');

my $two = make('{}')->json;
is($two->{role}, 'operator', 'who says nothing gets an operator\'s');
is_deeply([ @{$two}{ qw(actor sandboxes expires_at) } ], [ undef, [], undef ],
          'of nobody, for all, for ever');
everywhere($two->{token}, 200, 'all workers know it at once');
is($t->get("$API/sandboxes/s1/operations", token => $one->{token})->status, 200,
   'one for a sandbox counts there');
is($t->get("$API/overview", token => $one->{token})->status, 403, 'and only there');

my $soon = make({ expires_at => SandboxTest::utc(time + 3) })->json;
is($t->get("$API/overview", token => $soon->{token})->status, 200,
   'one that ends soon counts');
ok($t->wait_for(sub {
    $t->get("$API/overview", token => $soon->{token})->status == 401;
}), 'and is over then');

# --- refused -------------------------------------------------------------------

my $before = SandboxTest::read_file($file);

for (
    [ 'a list',            '[]' ],
    [ 'no JSON',           '{"role":' ],
    [ 'another member',    { name => 'x' } ],
    [ 'a twin',            '{"role":"viewer","role":"admin"}' ],
    [ 'a role',            { role => 'root' } ],
    [ 'a role of a number', { role => 1 } ],
    [ 'a blank',           { actor => { id => 'a b' } } ],
    [ 'a line',            { actor => { id => "a\nb role=admin" } } ],
    [ 'a NUL',             { actor => { id => "a\0b" } } ],
    [ 'a long id',         { actor => { id => 'a' x 129 } } ],
    [ 'a type',            { actor => { type => 'a/b', id => 'x' } } ],
    [ 'an actor of a text', { actor => 'x' } ],
    [ 'sandboxes',         { sandboxes => 's1' } ],
    [ 'an empty sandbox',  { sandboxes => [ '' ] } ],
    [ 'a comma',           { sandboxes => [ 'a,b' ] } ],
    [ 'a path',            { sandboxes => [ 'a/b' ] } ],
    [ 'long sandboxes',    { sandboxes => [ ('a' x 63) x 5 ] } ],
    [ 'the past',          { expires_at => '2020-01-01T00:00:00Z' } ],
    [ 'no span',           { expires_in => 0 } ],
    [ 'both ends',         { expires_in => 9, expires_at => '2099-01-01T00:00:00Z' } ],
    [ 'states_actors',     { states_actors => 'yes' } ],
) {
    my $bad = make($_->[1]);
    is($bad->status . ' ' . $bad->code, '400 GATEWAY_INVALID_PARAMETER',
       "$_->[0] is refused");
}

for my $who (qw(viewer plain)) {
    is($t->get("$API/tokens", token => $who)->status, 403, "$who sees none");
    is(make({ role => 'viewer' }, token => $who)->status, 403, "$who makes none");
    is(revoke($one->{id}, token => $who)->status, 403, "$who revokes none");
}

is($t->get("$API/tokens", token => undef)->status, 401, 'nobody sees one');
is(revoke('nothere')->code, 'GATEWAY_NOT_FOUND', 'one that is not there');
is(revoke('ad')->code, 'GATEWAY_NOT_FOUND', 'half an id is no id');
is(SandboxTest::read_file($file), $before, 'the file is as it was');

# --- revoked -------------------------------------------------------------------

my $ws = $t->websocket('/v1/sandboxes/s1/proxy/8080/ws', token => $two->{token});
is($ws->status, 101, 'it has a WebSocket open');
is(revoke($two->{id})->status, 204, 'it is revoked');
everywhere($two->{token}, 401, 'no worker knows it any more');
is(revoke($two->{id})->status, 404, 'once');
my %left = items();
ok(!$left{$two->{id}}, 'it is not listed');
ok($t->wait_for(sub { $t->log_text =~ /token "\Q$two->{id}\E".* has been revoked/ }),
   'what it had open is cut');

$t->reload;
everywhere($two->{token}, 401, 'nor after a reload');
is($t->get("$API/sandboxes/s1/operations", token => $one->{token})->status, 200,
   'which knows the other one');
is(revoke('expired')->status, 204, 'one that is over can go, too');

# --- the last admin -------------------------------------------------------------

my $brief = make({ role => 'admin', expires_in => 3600 })->json;
$r = revoke('admin', token => $brief->{token});
is($r->status . ' ' . $r->code, '409 GATEWAY_LAST_ADMIN',
   'the last admin stays: neither one that ends nor one for a sandbox counts');
my $next = make({ role => 'admin' })->json;
is(revoke('admin', token => $next->{token})->status, 204, 'else it can go');
is($t->get("$API/tokens")->status, 401, 'at once');
$r = revoke($next->{id}, token => $next->{token});
is($r->status . ' ' . $r->code, '409 GATEWAY_LAST_ADMIN', 'nobody locks all out');

# --- beside sandbox-gateway token -------------------------------------------------

my $cli = "$SandboxProcess::BUILD/sandbox-gateway";
like(`$cli token revoke --tokens $file $one->{id} 2>&1`, qr/written/,
     'sandbox-gateway revokes what was made here');
is($t->get("$API/sandboxes/s1/operations", token => $one->{token})->status, 200,
   'which counts after a reload');
is(revoke($one->{id}, token => $next->{token})->status, 204,
   'or when it is revoked here as well');
is($t->get("$API/sandboxes/s1/operations", token => $one->{token})->status, 401,
   'at once');

open my $lock, '<', $file or die $!;
flock $lock, LOCK_EX or die $!;
my $pid = fork;
if ($pid == 0) {
    sleep 1;
    SandboxTest::write_file("$t->{dir}/released", '');
    require POSIX;
    POSIX::_exit(0);
}
close $lock;
$r = make({}, token => $next->{token});
is($r->status, 201, 'who holds the lock is waited for');
ok(-e "$t->{dir}/released", 'until it lets go');
waitpid $pid, 0;

# --- on record -------------------------------------------------------------------

my %n;
ok($t->wait_for(sub {
    %n = ();
    push @{ $n{$_->{operation_type}} }, $_ for $t->history->events('_gateway');
    return @{ $n{'console.token_revoke'} // [] } >= 5
           && @{ $n{'console.token_add'} // [] } >= 4;
}), 'all of it is on record');

my ($made) = grep { ($_->{result_json} // '') =~ /"id":"\Q$one->{id}\E"/ }
             @{ $n{'console.token_add'} };
is_deeply(JSON::PP->new->utf8->decode($made->{result_json}),
          { http_status => 201, token => { map { $_ => $one->{$_} } grep { !/^(?:token|self)$/ }
                       keys %$one } }, 'with what was made, and no secret');
is($made->{actor_id}, 'tester', 'and who made it');

# --- at its bound

my $small = SandboxTest::read_file($file);
open my $fh, '>>', $file or die $!;
print $fh '# ', 'x' x (4 * 1024 * 1024 - length($small) - 3), "\n";
close $fh;
$r = make({}, token => $next->{token});
is($r->status . ' ' . $r->code, '409 GATEWAY_LIMIT_EXCEEDED', 'a full file is full');
is(-s $file, 4 * 1024 * 1024, 'and stays as it is');
truncate $file, length $small or die $!;

my $rows = () = $small =~ /^[a-z0-9]/mg;
open $fh, '>>', $file or die $!;
print $fh map { "row$_ " . 'a' x 64 . "\n" } $rows + 1 .. 4096;
close $fh;
my $size = -s $file;
$r = make({}, token => $next->{token});
is($r->status . ' ' . $r->code, '409 GATEWAY_LIMIT_EXCEEDED',
   'so is one of 4,096 tokens');
is(-s $file, $size, 'and stays as it is');
truncate $file, length $small or die $!;

# --- without a file of the helper's ----------------------------------------------

$t->kill_helper;
$t->{helper_args} = [];
$t->start_helper;
ok($t->wait_for(sub {
    $t->get("$API/overview", token => $next->{token})->status == 200;
}), 'a helper without --tokens');

for (make({}, token => $next->{token}), revoke('plain', token => $next->{token})) {
    is($_->status . ' ' . $_->code, '501 GATEWAY_UNSUPPORTED', 'it changes none');
    like($_->json->{message}, qr/sandbox-gateway token add/, 'and says what does');
}

is($t->get("$API/tokens", token => $next->{token})->status, 200, 'they are listed');
is($t->get("$API/overview", token => 'plain')->status, 200, 'and count');

$t->stop;
done_testing;
