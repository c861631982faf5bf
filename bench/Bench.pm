package Bench;

# One case of bench/run: an upstream, plain nginx, and the gateway in several
# modes, measured in turn with wrk, or with load.c where wrk cannot.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp;
use JSON::PP;
use List::Util qw(min max sum);
use POSIX qw(sysconf _SC_CLK_TCK);
use SandboxInterop;
use SandboxProcess;
use SandboxTest;
use Time::HiRes qw(sleep time);

my $TICKS = sysconf(_SC_CLK_TCK);
my $LOAD = "$SandboxProcess::BUILD/bench/load";
my $POLICY = abs_path(dirname(__FILE__) . '/../conf/policy.default');

# A round in which others used more of the processors than this is measured
# again, so many times; $BUSY: it counts all the same.
our $FOREIGN = 0.2;
our $TRIES = 4;
our $BUSY = 0;


# A multipart upload of one file.

sub multipart {
    my ($path, $content) = @_;

    my $part = sub {
        "--B\r\nContent-Disposition: form-data; name=\"$_[0]\"; filename=\"f\""
        . "\r\n\r\n$_[1]\r\n";
    };

    return $part->('metadata', qq({"path":"$path"})) . $part->('file', $content)
           . "--B--\r\n";
}


sub new {
    my ($class, %o) = @_;

    my $self = bless { missed => [], %o, owner => $$, dir => File::Temp->newdir('sandbox-b-XXXXXX',
                                                     TMPDIR => 1) }, $class;
    chmod 0755, "$self->{dir}";

    if ($self->{sdk}) {
        $self->start_sdk;

    } elsif ($self->{runtime}) {
        $self->start_roads;

    } else {
        $self->{tool} || $self->{slow} ? $self->start_load
                                       : $self->start_upstream;
        $self->{front}{$_} = $self->front($_) for 'plain', @{ $self->{modes} };
    }

    return $self;
}


# Echoes messages, streams events, answers a millisecond late (load.c).

sub start_load {
    my $self = shift;

    my $port = SandboxProcess::free_port();

    $self->{upstream} = SandboxProcess->spawn("$self->{dir}/out", $LOAD, 'serve',
                                              $port);
    $self->{upstream_url} = "http://127.0.0.1:$port";

    SandboxProcess->wait_for(sub { SandboxProcess::listens($port) }, 10)
        or die "$LOAD does not start\n";
}


# An nginx that answers as fast as it can.

sub start_upstream {
    my $self = shift;

    my $dir = "$self->{dir}";
    my $port = SandboxProcess::free_port();
    my $id = 'c' x 32;
    my $events = join '', map { "$_\n\n" }
        qq({"type":"init","text":"$id","timestamp":1}),
        map({ qq({"type":"stdout","text":"line $_ of the output","timestamp":1}) }
            1 .. 900),
        '{"type":"execution_complete","execution_time":1,"timestamp":1}';

    SandboxTest::write_file("$dir/events", $events);
    SandboxTest::write_file("$dir/file", 'x' x (1024 * 1024));
    chmod 0644, "$dir/events", "$dir/file";
    mkdir "$dir/temp";
    chmod 0777, "$dir/temp";

    my $json = '{"items":[],"pad":"' . 'x' x 180 . '"}';

    SandboxTest::write_file("$dir/nginx.conf", <<"END_CONF");
daemon off;
worker_processes 1;
error_log $dir/error.log;
pid $dir/nginx.pid;
events { worker_connections 4096; }
http {
    access_log off;
    keepalive_requests 1000000000;
    client_max_body_size 0;
    client_body_buffer_size 2m;
    client_body_temp_path $dir/temp;
    proxy_temp_path $dir/temp;
    fastcgi_temp_path $dir/temp;
    scgi_temp_path $dir/temp;
    uwsgi_temp_path $dir/temp;
    server {
        listen 127.0.0.1:$port;
        location / { default_type application/json; return 200 '$json'; }
        location ~ /files/download\$ {
            default_type application/octet-stream; root $dir;
            rewrite ^ /file break;
        }
        # read whole before it is answered, as execd does
        location ~ /files/upload\$ {
            rewrite ^ /done break;
            proxy_pass http://127.0.0.1:$port;
        }
        location = /done { return 200; }
        location ~ /command\$ { error_page 405 =200 /events; return 405; }
        location = /events { default_type text/event-stream; root $dir; }
    }
}
END_CONF

    $self->{upstream} = SandboxProcess->spawn("$dir/out", $SandboxProcess::NGINX,
        '-p', $dir, '-c', "$dir/nginx.conf", '-e', "$dir/error.log");
    $self->{upstream_url} = "http://127.0.0.1:$port";

    SandboxProcess->wait_for(sub { SandboxProcess::listens($port) }, 10)
        or die "the upstream does not start:\n"
               . SandboxTest::read_file("$dir/error.log");
}


# nginx in front of it: plain, or the gateway in a mode.

sub front {
    my ($self, $mode) = @_;

    my ($record, $sync) = split /-/, $mode;

    my $t = SandboxTest->new(
        upstream_url => $self->{upstream_url},
        helper => $mode ne 'plain',
        helper_args => [ '--sync', $sync // 'normal' ],
        location => $mode eq 'plain' ? ''
            : "sandbox_record * $record;"
              . ($self->{judged} ? "sandbox_policy $POLICY;" : ''),
        conf => sub {
            my $conf = shift;

            $conf =~ s/access_log [^;]+;/access_log off;\nkeepalive_requests 1000000000;/;
            $conf =~ s/error.log info;/error.log error;/;
            $conf =~ s/worker_connections 512;/worker_connections 4096;/;
            $conf =~ s/keepalive 32;/keepalive 256;/;
            $conf =~ s/proxy_request_buffering off;// if $self->{judged};

            if ($mode eq 'plain') {
                $conf =~ s/sandbox on;//;
                $conf =~ s/request_pool_size [^;]+;//;
                $conf =~ s/\$sandbox_upstream_uri/\$request_uri/;
                $conf =~ s/\$sandbox_upstream_host/\$http_host/;
                $conf =~ s/\$sandbox_connection/""/;
            }

            return $conf;
        })->start;

    return { test => $t, port => $t->{port}, prefix => '' };
}


# The local runtime behind the gateway, by either road.

sub start_roads {
    my $self = shift;

    my $t = SandboxTest->new(runtime => 1,
        conf => sub {
            $_[0] =~ s/access_log [^;]+;/access_log off;\nkeepalive_requests 1000000000;/r
        })->start;

    my %prefix;

    for my $mode ('plain', @{ $self->{modes} }) {
        my $r = $t->post('/v1/sandboxes',
            headers => [ 'Content-Type: application/json' ],
            body => '{"image":{"uri":"python:3.11"},"timeout":600,'
                    . '"resourceLimits":{"cpu":"1"},"entrypoint":["tail"]}');
        my $id = $r->json->{id} or die 'no sandbox: ' . $r->content . "\n";
        my $prefix = "/v1/sandboxes/$id/proxy/44772";

        $t->wait_for(sub { $t->get("$prefix/ping")->status == 200 })
            or die "a sandbox does not get ready\n";

        $t->endpoint($id) if $mode eq 'straight';
        $self->{front}{$mode} = { test => $t, port => $t->{port},
                                  prefix => $prefix };
    }
}


# A Python client of the local runtime: as it is, recording by itself in the
# sandbox ("own"), and recorded by the gateway.

sub start_sdk {
    my $self = shift;

    delete @ENV{qw(http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy
                   ALL_PROXY)};

    $self->{python} = SandboxInterop::python('venv', 'requirements.txt');

    my $t = SandboxTest->new(runtime => 1)->start;
    my @straight = ($t->{upstream_address}, $t->{api_key});
    my @through = ("127.0.0.1:$t->{port}", $t->token);

    $self->{front} = {
        plain   => { test => $t, sdk => [ @straight, 'none' ] },
        own     => { test => $t, sdk => [ @straight, 'sandbox' ] },
        gateway => { test => $t, sdk => [ @through, 'none' ] },
    };
}


sub measure_sdk {
    my ($self, $mode) = @_;

    my ($host, $key, $history) = @{ $self->{front}{$mode}{sdk} };
    local $ENV{OPEN_SANDBOX_API_KEY} = $key;

    my $out = qx($self->{python} $SandboxProcess::ROOT/bench/sdk.py $host $history 3 2>&1);
    my ($p50, $p99) = $out =~ /^RESULT ([\d.]+) ([\d.]+)/m
        or die "$self->{name}, $mode: $out\n";

    return { rate => 1000 / $p50, worker => 0, helper => 0, p50 => $p50,
             p99 => $p99 };
}


sub stop {
    my $self = shift;

    my %seen;
    $_->discard for grep { !$seen{$_}++ } map { $_->{test} } values %{ $self->{front} };

    $self->DESTROY;
}


sub DESTROY {
    my $self = shift;

    return if $self->{owner} != $$ || !$self->{upstream};

    my $pid = delete $self->{upstream};
    kill 'TERM', $pid;
    SandboxProcess::reaped($pid, 5);
}


# CPU seconds that a process has used.

sub cpu {
    my $pid = shift // return 0;

    my ($user, $system) = SandboxTest::read_file("/proc/$pid/stat")
        =~ /^\d+ \(.*\) \S(?: \S+){10} (\d+) (\d+)/s or return 0;

    return ($user + $system) / $TICKS;
}


# CPU seconds of all processes of this bench: of those that have ended, too.

sub ours {
    my %parent;
    my %used;

    for my $stat (glob '/proc/[0-9]*/stat') {
        my ($pid, $up, $user, $system) = SandboxTest::read_file($stat)
            =~ /^(\d+) \(.*\) \S (\d+)(?: \S+){9} (\d+) (\d+)/s or next;

        $parent{$pid} = $up;
        $used{$pid} = $user + $system;
    }

    my $sum = sum((times)[2, 3]) * $TICKS;

    for my $pid (keys %used) {
        my $p = $pid;
        $p = $parent{$p} while $p && $p != $$;
        $sum += $used{$pid} if $p;
    }

    return $sum / $TICKS;
}


# CPU seconds that the machine has used.

sub busy {
    my ($user, $nice, $system, $idle, $iowait, $irq, $softirq)
        = SandboxTest::read_file('/proc/stat') =~ /^cpu +(.*)/
          ? split ' ', $1 : (0) x 7;

    return ($user + $nice + $system + $irq + $softirq) / $TICKS;
}


# Nobody pays for another's work: waits until no helper applies any more.

sub settle {
    my $self = shift;

    my @pids = grep { $_ } map { $_->{test}{helper_pid} }
               values %{ $self->{front} };
    my $used = sub { sum(0, map { cpu($_) } @pids) };
    my $end = time + 60;
    my $quiet = 0;

    for (my $before = $used->(); $quiet < 3 && time < $end; ) {
        sleep 0.1;
        my $now = $used->();
        $quiet = $now > $before ? 0 : $quiet + 1;
        $before = $now;
    }
}


# The same until nobody disturbed it; undef: somebody always did.

sub undisturbed {
    my ($self, $mode, $connections, $seconds) = @_;

    for (1 .. $TRIES) {
        $self->settle;

        my ($busy, $ours) = (busy(), ours());
        my $m = $self->measure($mode, $connections, $seconds);
        my $foreign = (busy() - $busy) - (ours() - $ours);

        return $m if $BUSY || !$m || $foreign <= $FOREIGN * $seconds;

        printf STDERR "  %s: again, others used %.1f s of CPU\n", $mode, $foreign;
        sleep 1;
    }

    return undef;
}


# One measurement: a hash, or undef when it does not count.

sub measure {
    my ($self, $mode, $connections, $seconds) = @_;

    return $self->measure_sdk($mode) if $self->{sdk};

    my $front = $self->{front}{$mode};
    my $t = $front->{test};
    my $q = $self->{request};
    my $lua = "$self->{dir}/wrk.lua";
    my %headers = ('OPEN-SANDBOX-API-KEY' => $t->token, %{ $q->{headers} // {} });

    # the body comes from a file: quoting a megabyte is wrk's start-up time
    SandboxTest::write_file("$self->{dir}/body", $q->{body} // '');

    SandboxTest::write_file($lua, join '', map { "$_\n" }
        qq(wrk.method = "@{[ $q->{method} // 'GET' ]}"),
        map({ qq(wrk.headers["$_"] = "$headers{$_}") } sort keys %headers),
        defined $q->{body}
            ? qq(local f = io.open("$self->{dir}/body", "rb");)
              . ' wrk.body = f:read("*a"); f:close()' : (),
        'function done(s, l, r)',
        '  local e = s.errors',
        '  io.write(string.format("RESULT %d %d %d %d %.3f %.3f\n", s.requests,'
        . ' s.duration, s.bytes, e.connect + e.read + e.write + e.status +'
        . ' e.timeout, l:percentile(99) / 1000, l:percentile(50) / 1000))',
        'end');

    my ($worker) = $t->worker_pids;
    my @before = map { cpu($_) } $worker, $t->{helper_pid};

    my $out = $self->{tool}
        ? qx($LOAD $self->{tool} $front->{port} '$q->{target}' @{[ $t->token ]} $connections $seconds @{[ $self->{message} // '' ]} 2>&1)
        : qx(wrk -t1 -c$connections -d${seconds}s -s $lua http://127.0.0.1:$front->{port}$front->{prefix}$q->{target} 2>&1);

    my @after = map { cpu($_) } $worker, $t->{helper_pid};
    my ($requests, $us, $bytes, $errors, $p99, $p50)
        = $out =~ /^RESULT (\d+) (\d+) (\d+) (\d+) ([\d.]+) ([\d.]+)/m
        or die "$self->{name}, $mode: $out\n";

    if ($requests == 0 || $errors || $bytes < $requests * $self->{size}) {
        print STDERR "  $mode: does not count: $requests answers, $errors errors,"
                     . " $bytes bytes\n";
        return undef;
    }

    return {
        rate   => $requests / ($us / 1e6),
        worker => ($after[0] - $before[0]) / $requests,
        helper => ($after[1] - $before[1]) / $requests,
        p99    => $p99,
        p50    => $p50,
    };
}


sub median {
    my @v = sort { $a <=> $b } @_;

    return @v % 2 ? $v[$#v / 2] : ($v[@v / 2 - 1] + $v[@v / 2]) / 2;
}


# The rows of all modes; those of which no round counts are named in {missed}.

sub run {
    my ($self, %o) = @_;

    my @modes = @{ $self->{modes} };
    my %got;

    if (!$self->{sdk}) {
        $self->measure($_, $o{connections}, 1) for 'plain', @modes;
    }

    for my $round (1 .. $o{rounds}) {
        my @order = ('plain', @modes);
        my %m = map { $_ => $self->undisturbed($_, $o{connections}, $o{seconds}) }
                $round % 2 ? @order : reverse @order;
        my $plain = $m{plain} or next;

        for my $mode (grep { $m{$_} } @modes) {
            push @{ $got{$mode} }, {
                %{ $m{$mode} },
                ratio => $m{$mode}{rate} / $plain->{rate},
                cpu   => $plain->{worker} ? $m{$mode}{worker} / $plain->{worker} : 0,
                later => $m{$mode}{p50} - $plain->{p50},
                tail  => $plain->{p99} ? $m{$mode}{p99} / $plain->{p99} : 0,
            };
        }
    }

    return map {
        my $mode = $_;
        my @r = @{ $got{$mode} // [] };

        push @{ $self->{missed} }, "$self->{name}, $mode, $o{connections} connections:"
            . ' no round counts (a quieter machine, or --busy)' if !@r;

        !@r ? () : +{
            case             => $self->{name},
            mode             => $mode =~ s/-.*//r,
            sync             => $mode =~ /-full$/ ? 'full' : 'normal',
            connections      => $o{connections} + 0,
            rounds           => scalar @r,
            ratio            => median(map { $_->{ratio} } @r),
            ratio_min        => min(map { $_->{ratio} } @r),
            ratio_max        => max(map { $_->{ratio} } @r),
            worker_cpu_ratio => median(map { $_->{cpu} } @r),
            helper_cpu_us    => 1e6 * median(map { $_->{helper} } @r),
            p99_ms           => median(map { $_->{p99} } @r),
            p99_ratio        => median(map { $_->{tail} } @r),
            p50_ms           => median(map { $_->{p50} } @r),
            p50_later_ms     => median(map { $_->{later} } @r),
        }
    } @modes;
}

1;
