#!/usr/bin/perl

# GET policy and POST policy/check of the console API: the rules in force, with the
# places where they are, and what each of them would say.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use SandboxTest;
use Test::More;

my $API = '/console/api/v1/policy';
my $json = JSON::PP->new->canonical;

my $t = SandboxTest->new(server => 'sandbox_policy policy;',
    locations => 'location /open/ { sandbox on; sandbox_policy off;
        proxy_pass http://opensandbox$sandbox_upstream_uri; }
        location /too/ { sandbox on;
        proxy_pass http://opensandbox$sandbox_upstream_uri; }
        location /strict/ { sandbox on; sandbox_policy strict;
        proxy_pass http://opensandbox$sandbox_upstream_uri; }
        location /files/ { sandbox on; sandbox_policy files;
        proxy_pass http://opensandbox$sandbox_upstream_uri; }');

SandboxTest::write_file("$t->{dir}/conf/policy", <<'END');
# what is tried
observe tried { command "^make\b"; reason "Not yet."; }
deny no-rm {
    command "^rm\b";
    actor agent/x* user;
}
deny secret { access write; path /etc/ .env; }
deny big { file_size > 10; }
deny team { operation sandbox.create; not metadata team=red; }
default allow;
END
SandboxTest::write_file("$t->{dir}/conf/strict", "default deny \"Nothing.\";\n");
SandboxTest::write_file("$t->{dir}/conf/files", <<'END');
deny climbs { archive climbs; }
deny many { archive_entries > 3; }
deny names { archive_path **/.env; }
deny names-too { archive_path *.exe; }
deny content { content token; }
default allow;
END
$t->start;

my $r = $t->get($API);
is($r->status, 200, 'the rules in force');
my @items = @{ $r->json->{items} };
is(scalar @items, 4, 'of each distinct policy');

my ($main) = grep { grep { $_->{location} eq '/' } @{ $_->{places} } } @items;
is_deeply([ sort map { $_->{location} } @{ $main->{places} } ], [ '/', '/too/' ],
          'with the places where it is in force');
is($main->{places}[0]{server}, 'localhost', 'and their server');
is_deeply([ map { [ @$_{qw(name effect line)} ] } @{ $main->{policy}{rules} } ],
          [ [ 'tried', 'observe', 2 ], [ 'no-rm', 'deny', 3 ], [ 'secret', 'deny', 7 ],
            [ 'big', 'deny', 8 ], [ 'team', 'deny', 9 ] ], 'rules in order, with their lines');
like($main->{policy}{rules}[1]{text}, qr/\Adeny no-rm \{\n    command "\^rm\\b";\n/,
     'and their text');
is($main->{policy}{default}{effect}, 'allow', 'and the default');
like($main->{policy}{name}, qr{conf/policy\z}, 'and the file');

my ($open) = grep { $_->{places}[0]{location} eq '/open/' } @items;
is($open->{policy}, undef, 'a location without a policy is told, too');


sub check {
    my ($question, $place) = @_;

    my $answer = $t->post("$API/check", body => ref $question ? $json->encode($question)
                                                             : $question);
    is($answer->status, 200, 'a question is answered') or diag $answer->content;
    my ($item) = grep { grep { $_->{location} eq ($place // '/') } @{ $_->{places} } }
                 @{ $answer->json->{items} };
    delete $item->{places};

    return $item;
}

my @deny = (decision => 'deny', reason => 'A rule of the policy denies it.');

is_deeply(check({ operation => 'command.execute', command => 'ls; rm x', actor => 'user/a' }),
          { @deny, rule => 'no-rm', line => 3 }, 'a command');
is_deeply(check({ operation => 'command.execute', command => [ 'rm', 'x' ],
                  actor => 'agent/x1' }),
          { @deny, rule => 'no-rm', line => 3 }, 'an array of words');
is_deeply(check({ operation => 'command.execute', command => 'rm x', actor => 'agent/y' }),
          { decision => 'allow', rule => 'default', line => 10 }, 'of somebody else');
is_deeply(check({ operation => 'command.execute', command => 'make all | sh' }),
          { decision => 'allow', rule => 'default', line => 10, unread => JSON::PP::true,
            observed => { rule => 'tried', line => 2, reason => 'Not yet.' } },
          'what is observed and what is not read');
is_deeply(check({ operation => 'file.write', path => [ '/a', '/b/.env' ] }),
          { @deny, rule => 'secret', line => 7, path => '/b/.env' }, 'the second path');
is_deeply(check({ operation => 'file.write', path => '/a', size => 11, mode => 644 }),
          { @deny, rule => 'big', line => 8, path => '/a', limit => JSON::PP::true }, 'a size');
is(check({ operation => 'sandbox.create', metadata => { team => 'red' } })->{decision},
   'allow', 'metadata');
is(check({ operation => 'sandbox.create' })->{rule}, 'team', 'none of it');
is_deeply(check({ operation => 'file.read' }, '/open/'),
          { decision => 'allow', rule => undef, line => undef }, 'where there is no policy');
is_deeply(check({ operation => 'file.read' }, '/strict/'),
          { decision => 'deny', rule => 'default', line => 1, reason => 'Nothing.' },
          'where there is another');

# what is in a file, as it is told

for (
    [ climbs => archive => 'climbs' ],
    [ climbs => archive => [ 'links', 'climbs' ] ],
    [ 'climbs' => archive => 'uninspected' ],
    [ many => archive_entries => 4 ],
    [ default => archive => 'any', archive_entries => 3 ],
    [ names => archive_path => 'a/.env' ],
    [ 'names-too' => archive_path => [ 'a', 'b.exe' ] ],
    [ default => archive_path => [ 'a', 'b/.envrc' ] ],
    [ content => content => [ 'aws-key', 'token' ] ],
    [ default => content => 'aws-key' ],
    [ default => archive => [] ],
) {
    my ($rule, %told) = @$_;
    my $item = check({ operation => 'file.write', path => '/a', %told }, '/files/');

    is($item->{rule}, $rule, 'told of a file: ' . $json->encode(\%told));
    is($item->{decision}, $rule eq 'default' ? 'allow' : 'deny', 'which decides');
    is(!!$item->{limit}, $rule eq 'many', 'by a limit or not');
}

for my $bad ((map { qq({"operation":"file.write","path":"/a",$_}) }
              '"archive":"unsafe"', '"archive":["link"]', '"archive":1', '"archive":[["any"]]',
              '"archive_path":1', '"archive_path":[1]', '"archive_entries":-1',
              '"archive_ratio":"3"', '"archive_size":1.5', '"content":"secret"',
              '"archive_names":[]'),
             '{"operation":"file.write","archive":"any"}',
             '{"operation":"file.write","path":[],"content":"token"}',
             '', '[]', 'null', '{', '{}', '{"operation":"file.wirte"}', '{"operation":1}',
             '{"operation":"file.read","path":1}', '{"operation":"file.read","path":[["a"]]}',
             '{"operation":"file.read","port":65536}', '{"operation":"file.read","mode":-1}',
             '{"operation":"file.read","command":[1]}', '{"operation":"file.read","x":1}',
             '{"operation":"file.read","operation":"file.write"}',
             '{"operation":"file.read","metadata":[]}',
             '{"operation":"file.read","metadata":{"a":1}}',
             '{"operation":"file.read","role":[]}', '{"operation":"file.read","size":1.5}')
{
    $r = $t->post("$API/check", body => $bad);
    is($r->status, 400, "no question: $bad");
    is($r->json->{code}, 'GATEWAY_AMBIGUOUS_REQUEST', 'in the envelope');
}

for my $who (qw(viewer plain)) {
    is($t->get($API, token => $t->token($who))->status, 403, "$who may not read the rules");
    is($t->post("$API/check", body => '{"operation":"file.read"}',
                token => $t->token($who))->status, 403, 'nor ask about them');
}

is($t->get($API, token => undef)->status, 401, 'nor a stranger');

$t->stop;
done_testing;
