#!/usr/bin/perl

# Every page of the console in a real browser, with things on record: as people
# see it, in both themes, both languages and three widths (the pictures are in
# build/t-output/console), and as programs do (axe, sizes, requests, errors).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Test::More;

use SandboxConsole;

my $c = SandboxConsole->new;

my $id = $c->sandbox('data-cleaning-7');
my $other = $c->sandbox('report-builder', image => 'node:22-slim', actor => 'report-bot', run => 'weekly-8');
my $gone = $c->sandbox('old-experiment', actor => 'alice', run => 'try-1');

$c->command($id, 'echo applying 014_orders.sql; echo \'error: relation "orders" already exists\' >&2; exit 1');
$c->command($id, 'for i in 1 2 3 4 5 6; do echo "row $i of the table of orders: ok"; done');
$c->write($id, '/tmp/db/schema.sql', "create table orders (id int);\n");
$c->write($id, '/tmp/db/schema.sql', "create table orders (id int, total int);\n");
$c->command($other, 'printf \'\033[32mgreen\033[0m and plain\n\'', actor => 'report-bot', run => 'weekly-8');
$c->command($gone, 'cat /does/not/exist', actor => 'alice', run => 'try-1');
$c->ask(DELETE => "/v1/sandboxes/$gone", actor => 'alice', run => 'try-1');

# C129, C130: text that would do something if it were let
my $hostile = "<img src=x onerror=alert(1)> \e]52;c;ZXZpbA==\a \x{202e}gnp.exe";
$c->command($other, 'printf %s "$X"', body => { envs => { X => $hostile } }, actor => '<b>bold</b>');
$c->command($other, "echo '<script>document.title=1</script>'", actor => '<b>bold</b>');

$c->fact(sandbox => $id, other => $other, gone => $gone, gateway => $c->gateway->pid,
         link => [ "$SandboxProcess::BUILD/sandbox-gateway", 'link', '--data', $c->gateway->data ]);

# tokens of all roles, as an admin makes them
my %tokens = (admin => $c->gateway->token);
$tokens{$_} = $c->ask(POST => '/console/api/v1/tokens', json => { role => $_, actor => { id => "a-$_" } })->json->{token}
    for qw(viewer operator);
$tokens{limited} = $c->ask(POST => '/console/api/v1/tokens', json => {
    role => 'operator', actor => { id => 'a-operator' }, sandboxes => [ $other, "$other-*" ] })->json->{token};
$c->fact(tokens => \%tokens);

$c->look('pages');
$c->look('signin', 'prefix', 'roles');
# these count what is there, and go round it: nobody else works on it meanwhile
$c->look('keyboard', 'overview');
$c->stop;

done_testing;
