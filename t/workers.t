#!/usr/bin/perl

# More workers than have a place for their gauges, and fewer again.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use PromText;
use SandboxTest;
use Test::More;

my $P = 'sandbox_gateway_';
my $PLACES = 256;       # docs/directives.md, "Bounds"

my $t = SandboxTest->new(workers => $PLACES + 2)->start;
my $execd = '/v1/sandboxes/s1/proxy/44772';

$t->sandbox('s1');


sub metrics {
    return PromText::parse(
        $t->get('/console/api/v1/metrics', token => 'viewer')->content);
}


# Requests that end on record, wherever they come in: all count.

sub counted {
    my $what = shift;

    my $name = "${P}operations_ended_total"
               . '{operation="command.execute",status="succeeded"}';
    my $before = metrics()->{$name} // 0;
    my $n = 20;

    my @ok = grep { $_->status == 200 }
             map { $t->post("$execd/command", body => '{"command":"echo hi"}') }
             1 .. $n;

    is(scalar @ok, $n, "$what: requests are served");
    # each is counted after its answer
    $t->wait_for(sub { metrics()->{$name} - $before >= $n });
    is(metrics()->{$name} - $before, $n, "$what: every one of them counts");
}


is(metrics()->{"${P}workers_limit"}, $PLACES, 'the bound is told');
ok($t->wait_for(sub { metrics()->{"${P}workers"} == $PLACES }, 60),
   'so many are told of, the others are not');
is(scalar(my @all = $t->worker_pids), $PLACES + 2, 'though they are there');
counted('at the bound');

# those that a reload starts find every place taken by those that it lets go

SandboxTest::write_file("$t->{dir}/conf/nginx.conf", $t->conf_text(workers => 2));
$t->reload;
ok($t->wait_for(sub { $t->worker_pids == 2 }, 60), 'the others have left');
ok($t->wait_for(sub { metrics()->{"${P}workers"} == 2 }, 60),
   'those that came before there was a place have one');
counted('after it');

$t->stop;
done_testing;
