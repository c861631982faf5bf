#!/usr/bin/perl

# sandbox_helper exec:PATH: nginx's manager process starts the helper, keeps it
# running, shares it over a reload, and never starts it in a loop.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $more = '';
my $program = "$SandboxProcess::BUILD/sandbox-helper";

my $t = SandboxTest->new(helper => 0, conf => \&exec_conf,
    # it is killed below, on purpose, and nginx is not told of it before
    allow => [ qr/unknown process \d+ exited on signal 9/ ]);

# `nginx -t` starts nothing, whatever the configuration says.

my ($ok, $said) = $t->check_conf;
ok($ok, 'the configuration is right') or diag($said);
is(helpers($t), 0, 'a test of it starts no helper');

$t->start;
my $first = helper_is_there($t, 'nginx has started it');

is((stat "/proc/$first")[4], $> == 0 ? scalar getpwnam('www-data') : $>,
   "as the workers' user");
is_deeply([ shared_sockets($t, $first) ], [], 'without sockets of nginx');

$t->sandbox('s1');
recorded('records are kept');

# It dies.

kill 'KILL', $first;
recorded('a command right after its death waits for the next one');
my $second = helper_is_there($t, 'it is started again after its death', $first);
recorded('and keeps records');

# A reload goes on with the same one.

$t->reload;
recorded('records are kept after a reload');
sleep 2.5;      # the new manager has looked at its arguments by then
is(helper_is_there($t, 'after a reload'), $second, 'it is still the same one');

# A reload with other words for it goes on with another one.

$more = 'sandbox_history_sync full; sandbox_history_lag 90s;'
        . ' sandbox_versions_limit 3m; sandbox_versions_fetches 5;'
        . ' sandbox_follow 2m; sandbox_live_limit 5000;'
        . ' sandbox_helper_option readers 40;'
        . ' sandbox_helper_option inspect-memory 100m;';
SandboxTest::write_file($t->dir . '/conf/nginx.conf', $t->conf_text);
$t->reload;
my $third = helper_is_there($t, 'other arguments: another helper', $second);
like(cmdline($third), qr/\0--sync\0full\0--lag\x{0}90\0--contents\x{0}3145728
                      \0--fetches\x{0}5\0--follow\x{0}120\0/x,
     'which has been told');
like(cmdline($third), qr/\0--readers\x{0}40\0--inspect-memory\x{0}104857600
                      \0--live\x{0}5000\0/x,
     'options, and of as many live streams as a worker may have');
ok($t->wait_for(sub { $t->get('/console/api/v1/metrics')->content
                      =~ /^sandbox_gateway_live_streams_limit 5000$/m }, 8),
   'which it keeps to');
recorded('and keeps records');

# The manager dies: the helper is not its to end, nor started twice.

kill 'KILL', manager($t);
push @{ $t->{allow} }, qr/cache manager process \d+ exited on signal 9/;
sleep 3;
is(helper_is_there($t, 'a new manager'), $third, 'finds the helper running');

# nginx leaves, the helper after it.

kill 'QUIT', $t->{nginx_pid};
ok(SandboxProcess::reaped(delete $t->{nginx_pid}, 5), 'nginx has left');
ok($t->wait_for(sub { !helpers($t) }, 12), 'the helper leaves by itself');
$t->stop;


# --- one that does not start -------------------------------------------------------

$program = '/bin/false';
$t = SandboxTest->new(helper => 0, conf => \&exec_conf)->start;
$t->sandbox('s1');
sleep 2;

my $starts = () = $t->log_text =~ /start sandbox-helper \d+/g;
cmp_ok($starts, '>=', 2, 'it is tried again');
cmp_ok($starts, '<=', 6, 'but not in a loop');
like($t->log_text, qr/sandbox-helper \d+ has left before it listened/,
     'and said');

my $r = $t->post('/v1/sandboxes/s1/proxy/44772/command',
                 body => '{"command":"echo hi"}');
is($r->status, 503, 'what has to be recorded is refused');
is($r->code, 'GATEWAY_RECORDER_UNAVAILABLE', 'in the envelope');
$t->stop;

# An API key that the helper could not read.

SKIP: {
    skip 'root reads everything, but workers are not root here', 2 if $> != 0;

    $program = "$SandboxProcess::BUILD/sandbox-helper";
    $t = SandboxTest->new(helper => 0, conf => \&exec_conf);
    chmod 0600, $t->dir . '/etc/api-key';
    $t->start;
    ok($t->wait_for(sub { $t->log_text =~ /cannot be read by the workers' user/ },
                    5), 'an unreadable key is said');
    is(helpers($t), 0, 'and nothing is started');
    $t->stop;
}

# The files where sandbox_history_path says, and nowhere else.

$t = SandboxTest->new(helper => 0, conf => \&exec_conf);
my $elsewhere = $t->dir . '/elsewhere';
mkdir $elsewhere;
chown scalar getpwnam('www-data'), -1, $elsewhere if $> == 0;
$more = "sandbox_history_path $elsewhere;";
$t->history->{dir} = $elsewhere;
$t->start;
my $there = helper_is_there($t, 'with sandbox_history_path');
like(cmdline($there), qr/\0--history\0\Q$elsewhere\E\0/, 'the helper is told');
$t->sandbox('s1');
recorded('records are kept there');
ok(-s $t->history->path_of('s1'), 'in the file of the sandbox');
ok(!-e $t->dir . '/data/history', 'and not beside the journal');
$t->stop;
$more = '';

# Without a manager there is nobody to start it.

($ok, $said) = SandboxTest->new(helper => 0, conf => \&exec_conf,
                                main => 'master_process off;')->check_conf;
ok(!$ok, 'master_process off is refused');
like($said, qr/master_process on/, 'with a sentence that says why');

done_testing;


sub exec_conf {
    my $conf = shift;

    $conf =~ s{sandbox_helper unix:(\S+)/run/helper\.sock;}
              {sandbox_helper exec:$program; sandbox_data $1/data; $more}
        or die "no sandbox_helper in the configuration\n";

    return $conf;
}


# Processes that were told the data directory of a test.

sub helpers {
    my $self = shift;

    my $data = $self->dir . '/data';

    return grep { cmdline($_) =~ /\0--data\0\Q$data\E\0/ }
           map { m{(\d+)$} } glob '/proc/[0-9]*';
}


sub cmdline { SandboxTest::read_file("/proc/$_[0]/cmdline") }


# The one helper, once it listens; `other` is not meant.

sub helper_is_there {
    my ($self, $name, $other) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @pid;

    ok($self->wait_for(sub {
        @pid = grep { $_ != ($other // 0) } helpers($self);
        return @pid == 1 && helpers($self) == 1
               && SandboxTest::read_file('/proc/net/unix')
                  =~ m{ 00010000 .* \Q$self->{dir}\E/data/helper\.sock$}m;
    }, 10), $name) or diag("helpers: @pid\n" . $self->log_text);

    return $pid[0] // 0;
}


sub manager {
    my $self = shift;

    my ($pid) = grep { cmdline($_) =~ /^nginx: cache manager process/ }
                split ' ', SandboxTest::read_file("/proc/$self->{nginx_pid}/task/"
                                                  . "$self->{nginx_pid}/children");

    return $pid;
}


# Sockets that nginx and the helper have both open.

sub shared_sockets {
    my ($self, $pid) = @_;

    my %of = map { $_ => { map { (readlink // '') => 1 } glob "/proc/$_/fd/*" } }
             $pid, $self->{nginx_pid};

    return grep { /^socket:/ && $of{ $self->{nginx_pid} }{$_} }
           keys %{ $of{$pid} };
}


sub recorded {
    my $name = shift;

    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $got = $t->post('/v1/sandboxes/s1/proxy/44772/command',
                       body => '{"command":"echo hi"}');
    is($got->status, 200, "$name: the command runs");
    is($t->record($got)->{operation_type}, 'command.execute', $name);
}
