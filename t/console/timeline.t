#!/usr/bin/perl

# The timeline and the replay in a real browser, with things on record.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Test::More;

use SandboxConsole;

my $c = SandboxConsole->new;

my $id = $c->sandbox('data-cleaning-7');
my $other = $c->sandbox('report-builder', image => 'node:22-slim', actor => 'report-bot', run => 'weekly-8');

# what people ask about: who did what, what failed and why, what changed, what went
$c->write($id, '/tmp/db/schema.sql', "create table orders (id int);\n");
$c->command($id, 'sh -c "echo applying 014_orders.sql; sleep 0.3; echo \'error: relation orders already exists\' >&2; exit 3"');
$c->write($id, '/tmp/db/schema.sql', "create table orders (id int, total int);\n");
$c->write($id, '/tmp/db/old.sql', "drop table orders;\n", run => 'nightly-32', actor => 'cleaner');
$c->ask(DELETE => "/v1/sandboxes/$id/proxy/44772/files?path=/tmp/db/old.sql", run => 'nightly-32', actor => 'cleaner');
$c->command($id, q{printf '\033[32mgreen\033[0m \033[1;31mred\033[0m plain\n'; printf '10%%\r50%%\r100%%\n'; sleep 2.4; echo later; echo err >&2});
$c->command($id, 'seq 1 400') for 1;
$c->command($other, 'echo from-report-bot', actor => 'report-bot', run => 'weekly-8');

# C129, C130: text that would do something if it were let
my %hostile = (
    html => '<img src=x onerror=alert(1)><script>document.title=1</script><svg onload=alert(2)>',
    osc => "\e]52;c;ZXZpbA==\a\e]0;title\a\e]8;;http://evil.example/\alink\e]8;;\a",
    moves => "\e[2J\e[1;1H\e[8mhidden\e[0m\e[1000Ctail",
    bidi => "\x{202e}gnp.exe \x{2066}isolate \x{200b}zero",
    long => 'x' x 20_000,
);
$c->command($other, 'printf "%s\n" "$X"', body => { envs => { X => $hostile{$_} } }, actor => '<b>bold</b>', run => "h-$_")
    for sort keys %hostile;
$c->command($other, q{printf 'a\000b\377\376c\n'}, actor => '<b>bold</b>', run => 'h-nul');
$c->command($other, "echo '<script>document.title=1</script>'", actor => '<b>bold</b>');

# more than a page of output: what went well, and what failed at its end
my $wrote = $c->sandbox('long-builds');

$c->command($wrote, 'seq 1 70000; echo the-needle', run => 'builds-7');
$c->command($wrote, "sh -c 'seq 1 50000 >&2; echo error: the last word of many >&2; exit 3'", run => 'builds-7');

$c->fact(sandbox => $id, other => $other, wrote => $wrote, gateway => $c->gateway->pid);
$c->look('timeline');
$c->look('questions', 'runs', 'output');
$c->look('replay');
$c->stop;

done_testing;
