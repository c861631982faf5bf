#!/usr/bin/perl

# Three reloads and a graceful stop under a load of streams, uploads, terminals
# and strict waiters: what was begun is ended and on record, once, and nothing is
# cut but connections that were idle.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use ParallelLoad;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $dir = File::Temp->newdir('sandbox-t-XXXXXX', TMPDIR => 1);
my $load = ParallelLoad->new(dir => "$dir/load", slow => 1.5);
my $t = SandboxTest->new(workers => 2, upstream_url => $load->url,
    http => q{log_format ops '$sandbox_operation_id $http_x_correlation_id';},
    server => 'access_log logs/ops.log ops;',
    conf => sub { $_[0] =~ s/worker_connections 512/worker_connections 2048/r },
)->start;

$t->endpoint('s1');
$load->begin($t, slots => 100,
             mix => [ qw(command info upload slow info command pty) ]);

for (1 .. 3) {
    sleep 0.6 + rand 0.4;
    $t->reload;
}

sleep 0.5;
my $old = $t->{nginx_pid};
my @workers = $t->worker_pids;
kill 'QUIT', $old;
ok(SandboxProcess::reaped($old, 12), 'nginx has left');
is($?, 0, 'in good order');
delete $t->{nginx_pid};
is(scalar(grep { -d "/proc/$_" } @workers), 0, 'and no worker stays behind');
ok($load->end, 'the load has ended');

my $a = $load->account($t, 3);
my $results = $load->results;
note($load->summary);
note(join ', ', map { "$a->{status}{$_} $_" } sort keys %{ $a->{status} });

cmp_ok(scalar(grep { $_->[4] eq 'done' } @$results), '>', 200,
       scalar(@$results) . ' operations');
is(scalar @{ $a->{open} }, 0, 'begun = ended');
is(join(' ', grep { $_ ne 'succeeded' } keys %{ $a->{status} }), '',
   'each with success');

# What nginx has logged is what is on record.

my %logged = map { (split ' ')[0] => 1 }
             grep { !/ -$/ } split /\n/, $t->log_text('ops.log');
my %record = map { $_->[0] => 1 } $t->history->rows(
    "select event_id from history_events where correlation_id like 'r1-%'");
is(join(' ', grep { !$record{$_} } sort keys %logged), '',
   scalar(keys %logged) . ' operations, all on record');
is(join(' ', grep { !$logged{$_} } sort keys %record), '', 'and no others');
is($a->{gaps}, 0, 'without a gap');
is(scalar(grep { $_ > 1 } values %{ $a->{by_event} }, values %{ $a->{by_id} }),
   0, 'each once');

# A client whose answer did not come had no operation: it crossed the end of an
# idle connection, or came too late.

my @cut = grep { $_->[4] ne 'done' } @$results;
is(join(' ', map { "@$_" } grep { $a->{by_id}{$_->[0]} || $_->[2] } @cut), '',
   'nothing is cut that had begun');
is(join(' ', map { "@$_" } grep { $_->[2] !~ /^(?:0|101|200)$/ } @$results), '',
   'nothing is refused');

$t->stop;
done_testing;
