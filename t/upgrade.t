#!/usr/bin/perl

# Binary upgrade: USR2, WINCH and QUIT to the old master; and the way back, HUP to
# the old one and QUIT to the new one.  Streams, terminals and strict waiters run
# over it, both generations share one helper, started by us or by nginx (exec:),
# and nothing is lost.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use ParallelLoad;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my @masters;
my $program = "$SandboxProcess::BUILD/sandbox-helper";

for my $mode (qw(unix exec)) {
    my $dir = File::Temp->newdir('sandbox-t-XXXXXX', TMPDIR => 1);
    my $load = ParallelLoad->new(dir => "$dir/load", slow => 1.5);
    my $t = SandboxTest->new(workers => 2, upstream_url => $load->url,
                             helper => $mode eq 'unix',
        # the helper is killed below, and nginx is not told of it before
        allow => [ qr/unknown process \d+ exited on signal 9/ ], conf => sub {
        my $conf = shift;

        # with "daemon off" nginx takes its starter for an old binary
        $conf =~ s/daemon off;/daemon on;/;
        $conf =~ s/worker_connections 512/worker_connections 2048/;
        $conf =~ s{sandbox_helper unix:(\S+)/run/helper\.sock;}
                  {sandbox_helper exec:$program; sandbox_data $1/data;}
            if $mode eq 'exec';

        return $conf;
    });

    start($t);
    ok($t->wait_for(sub { helpers($t) == 1 }), "$mode: a helper");
    my ($helper) = helpers($t);
    $t->endpoint('s1');

    # a stream and a terminal from before, held through all of it
    my $ws = $t->websocket('/v1/sandboxes/s1/proxy/44772/pty/p1/ws');
    is($ws->status, 101, "$mode: a terminal is open");

    $load->begin($t, slots => 60,
                 mix => [ qw(command info upload slow info command pty) ]);
    sleep 0.7;

    # back: the new one is not wanted

    my $old = master($t);
    my $new = upgrade($t, $old);
    ok($new, "$mode: USR2: another master");
    sleep 0.3;

    if ($mode eq 'exec') {
        # two managers see it die, one helper takes its place
        kill 'KILL', $helper;
        ok($t->wait_for(sub {
            my @now = grep { $_ != $helper } helpers($t);
            return @now == 1 && -S $t->dir . '/data/helper.sock';
        }), 'exec: its helper dies: another one');
        sleep 0.7;
        ($helper) = helpers($t);
    }

    kill 'WINCH', $old;
    ok($t->wait_for(sub { running_workers($new) == 2 }), 'with its workers');
    sleep 0.3;
    kill 'HUP', $old;
    ok($t->wait_for(sub { running_workers($old) >= 2 }), 'HUP: the old one works');
    kill 'QUIT', $new;
    ok($t->wait_for(sub { gone($new) }, 10), 'QUIT: the new one has left');
    ok($t->wait_for(sub { master($t) == $old }), 'the old one has its name back');

    # forth

    sleep 0.3;
    $new = upgrade($t, $old);
    ok($new, "$mode: USR2 again");
    kill 'WINCH', $old;
    sleep 0.3;

    # the terminal belongs to a worker of the old one
    $ws->send(2, "\x00still here");
    is($ws->recv->{payload}, "\x00still here", 'the terminal goes on');
    $ws->send(8, pack 'n', 1000);
    $ws->recv_until(sub { $_[0]{op} == 8 });

    kill 'QUIT', $old;
    ok($t->wait_for(sub { gone($old) }, 10), 'QUIT: the old one has left');
    sleep 0.3;
    ok($load->end, 'the load has ended');
    is($t->post('/v1/sandboxes/s1/proxy/44772/command',
                body => '{"command":"echo last"}')->status, 200,
       "$mode: the new one serves");

    # a manager of the new generation has looked at the helper by now
    is(join(' ', helpers($t)), $helper, "$mode: one helper all the time");

    my $a = $load->account($t, 3);
    my @cut = grep { $_->[4] ne 'done' } @{ $load->results };

    note($load->summary);
    is(scalar @{ $a->{open} }, 0, "$mode: begun = ended");
    is(join(' ', keys %{ $a->{status} }), 'succeeded', 'each with success');
    is(join(' ', map { "@$_" } grep { $_->[4] ne 'idle' || $a->{by_id}{$_->[0]} }
            @cut), '', 'nothing is cut but idle connections');
    is(join(' ', map { "@$_" } grep { $_->[2] !~ /^(?:101|200)$/
                                      && $_->[4] ne 'idle' }
            @{ $load->results }), '', 'nothing is refused');
    is(join(' ', grep { !$a->{by_event}{$_} } map { $_->[3] }
            grep { $_->[4] eq 'done' } @{ $load->results }), '',
       'all is on record');
    is(scalar(grep { $_ > 1 } values %{ $a->{by_id} },
              values %{ $a->{by_event} }), 0, 'once');
    is($a->{gaps}, 0, 'without a gap');
    is(join(' ', $t->history->broken), '', 'integrity_check: ok');

    # all leave

    kill 'QUIT', $new;
    ok($t->wait_for(sub { gone($new) }, 10), 'nginx leaves');

    if ($mode eq 'exec') {
        ok($t->wait_for(sub { gone($helper) }, 12), 'its helper after it');
    }

    $t->stop;
}

done_testing;


# nginx as a daemon is not our child: it is ended by its own process id.

sub start {
    my $t = shift;

    $t->start_helper if $t->{helper};
    $t->{port} = SandboxProcess::free_port();
    SandboxTest::write_file($t->dir . '/conf/nginx.conf', $t->conf_text);

    my $pid = $t->spawn($t->dir . '/logs/nginx.out', $SandboxProcess::NGINX,
        '-p', $t->dir, '-c', $t->dir . '/conf/nginx.conf', '-e',
        $t->dir . '/logs/error.log');
    waitpid $pid, 0;
    is($?, 0, 'nginx has started')
        or BAIL_OUT($t->log_text('nginx.out'));
    $t->wait_for(sub { master($t) && SandboxProcess::listens($t->port) });
    push @masters, [ $t->dir, master($t) ];
}


# When a test dies in between.

END {
    my $status = $?;

    kill 'TERM', map { $_->[1] } grep {
        SandboxTest::read_file("/proc/$_->[1]/cmdline") =~ /\Q$_->[0]\E/
    } @masters;
    $? = $status;
}


sub master { (SandboxTest::read_file("$_[0]{dir}/run/nginx.pid") || 0) + 0 }


sub upgrade {
    my ($t, $old) = @_;

    kill 'USR2', $old;

    return $t->wait_for(sub {
        my $pid = SandboxTest::read_file("$t->{dir}/run/nginx.pid") || 0;
        return 0 if $pid == $old || running_workers($pid) != 2;
        push @masters, [ $t->dir, $pid + 0 ];
        return $pid + 0;
    });
}


sub gone {
    my $stat = SandboxTest::read_file("/proc/$_[0]/stat");

    return $stat eq '' || $stat =~ /\) Z /;
}


# Workers of a master that are not shutting down.

sub running_workers {
    my $master = shift;

    return SandboxProcess::worker_pids({ nginx_pid => $master + 0 });
}


sub helpers {
    my $t = shift;

    return grep { SandboxTest::read_file("/proc/$_/cmdline")
                  =~ /\0--data\0\Q$t->{dir}\E\/data\0/ && !gone($_) }
           map { m{(\d+)$} } glob '/proc/[0-9]*';
}
