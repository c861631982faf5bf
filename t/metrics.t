#!/usr/bin/perl

# GET /console/api/v1/metrics: the text is Prometheus' to the letter, and what
# it says is what has happened.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use PromText;
use SandboxTest;
use Test::More;

my $P = 'sandbox_gateway_';


sub metrics {
    my ($t, %o) = @_;

    my $r = $t->get('/console/api/v1/metrics', token => 'viewer', %o);
    my $m = eval { PromText::parse($r->content) };
    fail("the text is well-formed: $@") if !$m;

    return wantarray ? ($m, $r) : $m;
}


# Of a metric with labels, the sum of the series that have all of some.

sub total {
    my ($m, $name, @labels) = @_;

    my $n = 0;

    SERIES:
    for my $s (grep { /^\Q$P$name\E[{]/ } keys %$m) {
        $s =~ /[{,]\Q$_\E[,}]/ or next SERIES for @labels;
        $n += $m->{$s};
    }

    return $n;
}


# the reader itself can fail

for (["a 1\n", 'no TYPE'], ["# HELP a x\n# TYPE a gauge\na 1", 'no line feed'],
     ["# HELP a x\n# TYPE a counter\na 1\n", 'a counter without _total'],
     ["# HELP a x\n# TYPE a gauge\na 1\na 2\n", 'a series twice'],
     ["# HELP a x\n# TYPE a gauge\na{b=\"c} 1\n", 'an open label'],
     ["# HELP a x\n# TYPE a histogram\na_bucket{le=\"1\"} 2\n"
      . "a_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n", 'buckets that fall'],
     ["# HELP a x\n# TYPE a histogram\na_bucket{le=\"1\"} 2\na_sum 1\na_count 2\n",
      'no +Inf'],
     ["# HELP a x\n# TYPE a histogram\na_bucket{le=\"+Inf\"} 2\na_count 2\n",
      'no sum'])
{
    my ($text, $what) = @$_;
    ok(!eval { PromText::parse($text); 1 }, "the reader refuses $what");
}

my $t = SandboxTest->new(workers => 2,
    server => 'sandbox_record file.* best_effort; sandbox_timeout 3s;')->start;
my $execd = '/v1/sandboxes/s1/proxy/44772';

$t->sandbox('s1');

my ($m, $r);

# a worker that has just begun has not met the helper yet
$t->wait_for(sub { ($m, $r) = metrics($t); $m->{"${P}helper_up"} });

is($r->status, 200, 'metrics are told');
is($r->header('Content-Type'), 'text/plain; version=0.0.4; charset=utf-8',
   'by their type');
is($m->{"${P}helper_up"}, 1, 'those of the helper, too');
ok($t->wait_for(sub { metrics($t)->{"${P}workers"} == 2 }), 'two workers');
is($t->get('/console/api/v1/metrics', token => undef)->status, 401,
   'not without a token');
is($t->request(HEAD => '/console/api/v1/metrics')->status, 200, 'HEAD');

# begun = ended = rows

my @r = map { $t->post("$execd/command", body => '{"command":"echo hi"}') } 1 .. 7;
$t->up->script("POST $execd/command", [ send => "HTTP/1.1 500 No\r\n"
    . "Content-Length: 2\r\nContent-Type: application/json\r\n\r\n{}" ]);
push @r, $t->post("$execd/command", body => '{"command":"false"}');
$t->up->clear;
push @r, $t->get("$execd/files/download?path=/a");
push @r, $t->get('/v1/sandboxes/s1/proxy/8080/x');
push @r, $t->post('/v1/sandboxes/s1/proxy/8080/x', body => 'x');
push @r, $t->get('/v1/sandboxes/s1/endpoints/44772');
push @r, $t->get("$execd/files/info?path=/a");
$t->record($_) for @r;

$m = metrics($t);
is(total($m, 'operations_begun_total'), scalar @r, 'all have begun');
is(total($m, 'operations_ended_total'), scalar @r, 'all have ended');
is(total($m, 'operations_ended_total', 'operation="command.execute"',
         'status="succeeded"'), 7, 'seven commands well');
is(total($m, 'operations_ended_total', 'operation="command.execute"',
         'status="failed"'), 1, 'one not');
is(total($m, 'operations_begun_total', 'operation="proxy.http"'), 2,
   'operations of one name are one series');
is($m->{"${P}gaps_total"}, 0, 'no gap');
cmp_ok(total($m, 'upstream_header_seconds_count'), '==', scalar @r,
       'upstream has answered each');
cmp_ok($m->{"${P}upstream_header_seconds_count{road=\"straight\"}"}, '>', 0,
       'some straight') if grep { $t->record($_)->{wire}{route} eq 'straight' } @r;
cmp_ok($m->{"${P}upstream_header_seconds_count{road=\"lifecycle\"}"}, '==', 1,
       'one by the lifecycle API');
ok($t->wait_for(sub { metrics($t)->{"${P}apply_lag_records"} == 0 }),
   'and nothing waits to be applied');
$m = metrics($t);
is($m->{"${P}apply_lag_seconds"} + 0, 0, 'so there is no lag');
cmp_ok($m->{"${P}journal_records_total"}, '>=', 2 * @r, 'the journal has them');
cmp_ok($m->{"${P}history_commit_seconds_count"}, '>', 0, 'commits were timed');
cmp_ok($m->{"${P}history_handles"}, '>=', 1, 'a file is open');
ok($t->wait_for(sub { metrics($t)->{"${P}queue_bytes"} == 0 }),
   'the queue is empty');

# refusals

is($t->get('/v1/sandboxes', token => undef)->status, 401, 'refused');
is($t->get('/v1/sandboxes/a%2fb')->status, 400, 'refused');
my $now = metrics($t);
my $more = sub { ($now->{$_[0]} // 0) - ($m->{$_[0]} // 0) };
is($more->("${P}refused_total{code=\"GATEWAY_UNAUTHENTICATED\"}"), 1,
   'a refusal is counted by its code');
is($more->("${P}refused_total{code=\"GATEWAY_AMBIGUOUS_REQUEST\"}"), 1, 'each');
is($more->("${P}auth_failures_total"), 1, 'and a missing token as such');

# waiters and the queue, while the helper does not answer

kill 'STOP', $t->{helper_pid};
my $c = $t->connect;
$c->write($c->build(POST => "$execd/command", body => '{"command":"echo hi"}',
                    headers => [ $t->credential ]));
is(metrics($t)->{"${P}waiters"}, 1, 'a strict request waits');
is($c->response->status, 503, 'in vain');
$m = metrics($t);
is($m->{"${P}helper_up"}, 0, 'the helper has nothing to tell');
is($m->{"${P}waiters"}, 0, 'nobody waits now');
cmp_ok($m->{"${P}queue_bytes"}, '>', 0, 'its record is in the queue');
cmp_ok($m->{"${P}queue_longest_bytes"}, '<=', $m->{"${P}queue_bytes"},
       'of one worker');
is($m->{"${P}queue_limit_bytes"}, 32 * 1024 * 1024, 'which has a bound');
kill 'CONT', $t->{helper_pid};
ok($t->wait_for(sub { metrics($t)->{"${P}queue_bytes"} == 0 }),
   'the queue goes away');
ok($t->wait_for(sub { metrics($t)->{"${P}helper_up"} == 1 }), 'the helper tells');

# gaps: the count of the metric is that of the rows

$t->kill_helper;
ok($t->wait_for(sub { metrics($t)->{"${P}helper_up"} == 0 }), 'no helper');
# (each worker sees it for itself)
ok($t->wait_for(sub { metrics($t)->{"${P}helper_connections_lost_total"} >= 4 }),
   'its connections were lost');
my $gone = sub {
    $t->wait_for(sub {
        my $before = metrics($t)->{"${P}gaps_total"};
        $t->get("$execd/files/info?path=/gap");
        return metrics($t)->{"${P}gaps_total"} > $before;
    });
};
ok($gone->(), 'what passes without a record is a gap');
$t->get("$execd/files/info?path=/gap") for 1 .. 5;
my $gaps = metrics($t)->{"${P}gaps_total"};
cmp_ok($gaps, '>=', 5, 'each is');
$t->start_helper;
my $rows = sub {
    my $n = 0;
    $n += $t->history->value($_, 'select coalesce(sum(operations), 0)'
                                 . ' from gateway_gaps') // 0
        for $t->history->dirs;
    return $n;
};
ok($t->wait_for(sub { $rows->() == $gaps }), 'the gap rows hold as many')
    or diag("rows: ", $rows->(), ", gaps: $gaps");

# a reload keeps the counters; a killed worker's gauges are gone with it

$m = metrics($t);
$t->reload;
$now = metrics($t);
is(total($now, 'operations_begun_total'), total($m, 'operations_begun_total'),
   'counters survive a reload');
is($now->{"${P}counting_since_seconds"}, $m->{"${P}counting_since_seconds"},
   'they count since the same time');
ok($t->wait_for(sub { metrics($t)->{"${P}workers"} == 2 }),
   'workers are those that live');

push @{ $t->{allow} }, qr/exited on signal 9/;
my %old = map { $_ => 1 } my @old = $t->worker_pids;
kill 'KILL', @old;
ok($t->wait_for(sub { my @p = grep { !$old{$_} } $t->worker_pids; @p == 2 }),
   'killed workers are replaced');
ok($t->wait_for(sub { (eval { metrics($t) } // {})->{"${P}workers"} == 2 }),
   'and their places in the zone used again');
$now = metrics($t);
is(total($now, 'operations_begun_total'),
   total($m, 'operations_begun_total'), 'counters survive that, too');

$t->stop;
done_testing;
