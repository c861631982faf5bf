package SandboxTest;

# The harness of t/*.t: a private directory, free ports, a scripted upstream,
# sandbox-helper and nginx with the module; stopping it is a test of its own:
# an alert, a crash or a sanitizer report in any log fails, and so does a
# credential found in any file written meanwhile.
#
#   my $t = SandboxTest->new->start;
#   $t->sandbox('s1');
#   my $r = $t->post('/v1/sandboxes/s1/proxy/44772/command',
#                    body => '{"command":"echo hi"}');
#   is($t->record($r)->{operation_type}, 'command.execute');
#   $t->stop;
#   done_testing;
#
# t/README.md says more.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use File::Path qw(make_path);
use File::Temp;
use JSON::PP;
use MIME::Base64 qw(encode_base64);
use POSIX qw(strftime);
use Test::More;
use Time::HiRes qw(time sleep);

use FakeUpstream;
use SandboxHistory;
use SandboxProcess;
use SandboxHttp;
use SandboxWs;

our @ISA = ('SandboxProcess');

# What no log may hold.
our $BAD_LINE = qr/\[(?:alert|crit|emerg)\]|AddressSanitizer|LeakSanitizer
    |runtime\ error:|Segmentation|exited\ on\ signal|core\ dumped
    |Assertion\ .*failed/x;

my @running;

# sandbox-helper takes the flags of tests
$ENV{SANDBOX_TESTING} = 1;


# Options (all may be left out):
#   main, http, upstream, server, location   lines added at that place; http
#                may be a sub that is given the object
#   api          lines in the location of the console API
#   locations    whole location blocks beside the intercepted one
#   workers      number of worker processes (1)
#   api_key      upstream's key; undef: none
#   helper       0: the helper is not started
#   helper_args  more arguments for it
#   upstream_url another upstream than the scripted one
#   runtime      1: sandbox-runtime is the upstream
#   conf         sub that gets the whole configuration and returns it changed
#   allow        patterns of log lines that are meant to be there

sub new {
    my ($class, %o) = @_;

    for ($SandboxProcess::MODULE, "$SandboxProcess::BUILD/sandbox-helper") {
        $_ eq 'none' || -e or die "$_ is missing: run make first\n";
    }

    my $dir = File::Temp->newdir('sandbox-t-XXXXXX', TMPDIR => 1,
                                 CLEANUP => !$ENV{SANDBOX_TEST_KEEP});
    chmod 0755, "$dir";

    my $self = bless {
        tmp     => $dir,
        dir     => "$dir",
        owner   => $$,
        workers => 1,
        helper  => 1,
        api_key => 'upstream-key-' . random_text(24),
        secrets => [],
        allow   => [],
        %o,
    }, $class;

    make_path(map { "$dir/$_" } qw(conf etc logs run data temp));

    if ($> == 0) {
        chown scalar getpwnam('www-data'), -1, "$dir/temp";
    }

    if ($self->{runtime}) {
        $self->{upstream_url} = 'http://127.0.0.1:' . SandboxProcess::free_port();

    } elsif (!$self->{upstream_url}) {
        $self->{up} = FakeUpstream->new(dir => "$dir/upstream",
            api_key => $self->{api_key}, %{ $o{fake} // {} });
        $self->{upstream_url} = $self->{up}->url;
    }

    ($self->{upstream_address}) = $self->{upstream_url} =~ m{^\w+://([^/]+)};

    $self->make_tokens;

    if (defined $self->{api_key}) {
        write_file("$dir/etc/api-key", "$self->{api_key}\n");
        $self->secret($self->{api_key});
    }

    $self->{history} = SandboxHistory->new(dir => "$dir/data/history");

    return $self;
}


sub up { $_[0]{up} }
sub dir { $_[0]{dir} }
sub port { $_[0]{port} }
sub history { $_[0]{history} }
sub token { $_[0]{tokens}{$_[1] // 'admin'} }


# Declares a text that must not be in any log, record or journal at the end.

sub secret {
    my ($self, @text) = @_;

    push @{ $self->{secrets} }, @text;

    return $text[0];
}


sub random_text {
    my $n = shift;

    open my $fh, '<:raw', '/dev/urandom' or die "urandom: $!\n";
    my $bytes;
    sysread $fh, $bytes, $n;

    return encode_base64($bytes, '') =~ tr{+/=}{-_}dr;
}


sub write_file {
    my ($path, $text) = @_;

    open my $fh, '>:raw', "$path.new" or die "$path: $!\n";
    print $fh $text;
    close $fh or die "$path: $!\n";
    rename "$path.new", $path or die "$path: $!\n";
}


sub read_file {
    my $path = shift;

    open my $fh, '<:raw', $path or return '';
    local $/;

    return scalar(<$fh>) // '';
}


# Unix time as the API writes it.

sub utc {
    my $t = shift;

    return strftime('%Y-%m-%dT%H:%M:%S', gmtime int $t)
           . sprintf('.%06dZ', ($t - int $t) * 1e6);
}


# The file of lib/token.h, and the texts that belong to it.

sub make_tokens {
    my $self = shift;

    my %rows = (
        admin  => 'role=admin actor=tester type=user states-actors',
        plain  => 'role=operator actor=plain-agent type=agent',
        viewer => 'role=viewer actor=looker type=user',
        expired => 'role=admin actor=late type=user '
                   . 'expires=2020-01-01T00:00:00.000000Z',
    );

    for my $id (keys %rows) {
        $self->{tokens}{$id} //= "sbx_${id}_" . random_text(32);
        $self->secret((split /_/, $self->{tokens}{$id}, 3)[2]);
    }

    write_file($self->{token_file} = "$self->{dir}/etc/tokens",
        join '', map { "$_ " . sha256_hex($self->{tokens}{$_}) . " $rows{$_}\n" }
                 sort keys %rows);
}


# --- configuration ----------------------------------------------------------------

sub conf_text {
    my ($self, %o) = @_;

    my %v = (main => '', http => '', upstream => '', server => '',
             location => '', locations => '', api => '', %$self, %o);
    $v{http} = $v{http}->($self) if ref $v{http};
    my $user = $> == 0 ? 'user www-data;' : '';
    my $key = defined $v{api_key}
        ? "sandbox_api_key_file $v{dir}/etc/api-key;" : '';

    my $conf = <<"END_CONF";
$SandboxProcess::LOAD_MODULE
$user
daemon off;
worker_processes $v{workers};
error_log $v{dir}/logs/error.log info;
pid $v{dir}/run/nginx.pid;
$v{main}

events {
    worker_connections 512;
}

http {
    access_log $v{dir}/logs/access.log;
    client_body_temp_path $v{dir}/temp/body;
    proxy_temp_path $v{dir}/temp/proxy;
    fastcgi_temp_path $v{dir}/temp/fastcgi;
    scgi_temp_path $v{dir}/temp/scgi;
    uwsgi_temp_path $v{dir}/temp/uwsgi;

    sandbox_helper unix:$v{dir}/run/helper.sock;
    $v{http}

    upstream opensandbox {
        server $v{upstream_address};
        sandbox_peer;
        keepalive 32;
        keepalive_timeout 25s;
        $v{upstream}
    }

    server {
        listen 127.0.0.1:$v{port};
        server_name localhost gateway.test;
        request_pool_size 12k;

        sandbox_upstream $v{upstream_url};
        $key
        sandbox_tokens $v{dir}/etc/tokens;
        $v{server}

        location / {
            sandbox on;
            proxy_pass http://opensandbox\$sandbox_upstream_uri;
            proxy_http_version 1.1;
            proxy_set_header Host \$sandbox_upstream_host;
            proxy_set_header Connection \$sandbox_connection;
            proxy_set_header Upgrade \$http_upgrade;
            proxy_buffering off;
            proxy_request_buffering off;
            client_max_body_size 0;
            proxy_next_upstream off;
            proxy_read_timeout 1h;
            proxy_send_timeout 1h;
            proxy_ignore_headers X-Accel-Redirect X-Accel-Expires
                                 X-Accel-Limit-Rate X-Accel-Charset;
            $v{location}
        }

        location /console/api/v1/ {
            sandbox_console_api;
            $v{api}
        }

        location = /pid { return 200 \$pid; }

        $v{locations}
    }
}
END_CONF

    return $v{conf} ? $v{conf}->($conf) : $conf;
}


# Runs `nginx -t` on a variant of the configuration: (success, messages).

sub check_conf {
    my ($self, %o) = @_;

    my $file = "$self->{dir}/conf/check.conf";
    my $port = $self->{port} // 8080;
    write_file($file, $self->conf_text(port => $port, %o));
    my $out = qx($SandboxProcess::NGINX -p $self->{dir} -c $file -e stderr -t 2>&1);

    return ($? == 0 ? 1 : 0, $out);
}


# Starts everything; several tests may run several of these at once.

sub start {
    my $self = shift;

    push @running, $self;
    $self->{up}->start if $self->{up};
    $self->start_runtime if $self->{runtime};
    $self->start_helper if $self->{helper};
    $self->start_nginx;

    return $self;
}


# Ends everything and judges what is left behind.

sub stop {
    my ($self, %o) = @_;

    @running = grep { $_ != $self } @running;
    my @problems = ($self->halt(%o), $self->bad_lines);

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    ok(!@problems, 'no alert, crash or sanitizer report in any log')
        or diag(join '', map { "$_\n" } @problems);

    my @leaks = $self->find_secrets;
    ok(!@leaks, 'no credential in any log, record or journal')
        or diag("found in @leaks");

    return !@problems && !@leaks;
}


# Ends everything and judges nothing: for bench/.

sub discard {
    my $self = shift;

    @running = grep { $_ != $self } @running;
    $self->halt;
}


sub log_text { read_file("$_[0]{dir}/logs/" . ($_[1] // 'error.log')) }


sub bad_lines {
    my ($self, @more) = @_;

    my @bad;

    for my $file (glob("$self->{dir}/logs/*"), @more) {
        next if $file =~ /access\.log$/;
        open my $fh, '<', $file or next;

        while (my $line = <$fh>) {
            chomp $line;
            next if $line !~ $BAD_LINE;
            next if grep { $line =~ $_ } @{ $self->{allow} };
            push @bad, (split m{/}, $file)[-1] . ": $line";
        }
    }

    return @bad;
}


# Files under the test's directory (not its own inputs and not what upstream was
# sent) that hold one of the secrets.

sub find_secrets {
    my $self = shift;

    my $list = "$self->{dir}/etc/secrets";
    write_file($list, join '', map { "$_\n" } @{ $self->{secrets} });

    my @where = grep { -e } map { "$self->{dir}/$_" } qw(data logs temp run
                                                        runtime);
    open my $fh, '-|', 'grep', '-rlaF', '-f', $list, @where or die "grep: $!\n";
    chomp(my @found = <$fh>);
    close $fh;
    s{^\Q$self->{dir}\E/}{} for @found;

    return @found;
}


END {
    my $status = $?;

    for my $t (grep { $_->{owner} == $$ } @running) {
        diag('the test ended without stop()');
        $t->halt(fast => 1);
        diag($t->log_text) if $ENV{SANDBOX_TEST_VERBOSE};
    }

    $? = $status;
}


# --- requests -------------------------------------------------------------------------

sub connect {
    my ($self, %o) = @_;

    return SandboxHttp->connect(port => $self->{port}, %o);
}


# A connection to each worker: their ids => connections.

sub to_each_worker {
    my $self = shift;

    my %to;

    for (1 .. 50) {
        # a burst: a worker that is busy leaves some to the others
        my @c = map { $self->connect } 1 .. 8;
        $to{$_->request(GET => '/pid')->content} = $_ for @c;
        return %to if keys %to == $self->{workers};
    }

    die 'of ', $self->{workers}, ' workers only ', scalar(keys %to), " answer\n";
}


# One request, on a connection of its own unless `conn` is given.  The admin
# token is sent unless `token` names another one (undef: none).

sub request {
    my ($self, $method, $target, %o) = @_;

    my $c = $o{conn} // $self->connect;
    my @headers = ($self->credential(%o), @{ $o{headers} // [] });

    return $c->request($method, $target, %o, headers => \@headers);
}


sub credential {
    my ($self, %o) = @_;

    my $name = exists $o{token} ? $o{token} : 'admin';
    return () if !defined $name;

    return 'OPEN-SANDBOX-API-KEY: ' . ($self->{tokens}{$name} // $name);
}


sub get    { my $self = shift; $self->request(GET => @_) }
sub post   { my $self = shift; $self->request(POST => @_) }
sub put    { my $self = shift; $self->request(PUT => @_) }
sub patch  { my $self = shift; $self->request(PATCH => @_) }
sub delete { my $self = shift; $self->request(DELETE => @_) }


# The body of an upload (boundary B): path, bytes, path, bytes, ...

sub upload_body {
    my @files = @_;
    my $body = '';

    while (my ($path, $bytes) = splice @files, 0, 2) {
        my $name = JSON::PP->new->allow_nonref->encode($path);
        $body .= qq(--B\r\nContent-Disposition: form-data; name="metadata"; )
              . qq(filename="metadata"\r\n\r\n{"path":$name}\r\n)
              . qq(--B\r\nContent-Disposition: form-data; name="file"; )
              . qq(filename="f"\r\n\r\n$bytes\r\n);
    }

    return "$body--B--\r\n";
}


sub websocket {
    my ($self, $target, %o) = @_;

    return SandboxWs->open(conn => $self->connect, target => $target, %o,
        headers => [ $self->credential(%o), @{ $o{headers} // [] } ]);
}


# Makes a sandbox upstream and returns its id.  With `learn` its execd address is
# asked for through the gateway first, so that requests go straight there.

sub sandbox {
    my ($self, $id, %o) = @_;

    my $learn = delete $o{learn};
    $self->{up}->sandbox($id, %o);
    $self->endpoint($id) if $learn;

    return $id;
}


# Asks for an endpoint; the answer's JSON (its token becomes a secret).

sub endpoint {
    my ($self, $id, $port, %o) = @_;

    $port //= 44772;
    my $query = delete $o{query} // '?use_server_proxy=false';
    my $r = $self->get("/v1/sandboxes/$id/endpoints/$port$query", %o);
    my $json = $r->json;

    if (ref $json eq 'HASH' && ref $json->{headers} eq 'HASH') {
        my $text = $json->{headers}{'OPEN-SANDBOX-API-KEY'};
        $self->secret($text) if defined $text && length $text > 8;
    }

    return wantarray ? ($json, $r) : $json;
}


# --- records --------------------------------------------------------------------------

# The record of a response (or operation id), once it has ended; with `started`,
# as soon as it is there.

sub record {
    my ($self, $what, %o) = @_;

    my $id = ref $what ? $what->header('X-Operation-Id') : $what;

    if (!defined $id) {
        diag('no X-Operation-Id in the response: status '
             . (ref $what ? $what->status : '?'));
        return {};
    }

    my $e = $self->wait_for(sub {
        my $e = $self->{history}->event($id, $o{sandbox});
        return $e && ($o{started} || $e->{status} ne 'started') ? $e : undef;
    }, $o{timeout} // 8);

    diag("no ended record of operation $id, at line " . (caller)[2]) if !$e;

    return $e // {};
}


# A number of GET metrics, of nginx or of the helper, without its prefix.

sub metric {
    my ($self, $name) = @_;

    my ($n) = $self->get('/console/api/v1/metrics')->content
              =~ /^sandbox_gateway_(?:helper_)?\Q$name\E (\S+)$/m;

    return $n // 'none';
}


# All records of a sandbox in order, once there are at least `count` and all
# have ended.

sub records {
    my ($self, $sandbox, %o) = @_;

    my @all;

    $self->wait_for(sub {
        @all = $self->{history}->events($sandbox);
        return @all >= ($o{count} // 1)
               && !grep { $_->{status} eq 'started' } @all;
    }, $o{timeout} // 8);

    return @all;
}

1;
