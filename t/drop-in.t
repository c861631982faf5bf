#!/usr/bin/perl

# conf/drop-in.conf as it is shipped, in an nginx that has a site of its own:
# the helper is started by nginx, and leaves after it.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use POSIX ();
use Test::More;

use lib dirname(abs_path($0)) . '/lib';
use FakeUpstream;
use SandboxGateway;
use SandboxHistory;

my $tmp = File::Temp->newdir('sandbox-d-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $tmp;

my $build = $SandboxProcess::BUILD;
my $up = FakeUpstream->new(dir => "$tmp/upstream")->start;
my ($site, $port, $ports) = map { SandboxProcess::free_port() } 1 .. 3;
my $address = $up->url =~ s{http://}{}r;


# --- what the README says: a token, a directory, the module, a server

my $tool = SandboxGateway->new;
my ($rc, $out, $err) = $tool->run(qw(token add --role admin --states-actors
    --tokens), "$tmp/tokens");
chomp(my $token = $out);

mkdir "$tmp/$_" for qw(data logs temp);

if ($> == 0) {
    my ($uid, $gid) = (getpwnam('www-data'))[2, 3];
    chown $uid, $gid, "$tmp/data", "$tmp/temp";
}

chmod 0700, "$tmp/data";

my $conf = SandboxTest::read_file("$SandboxProcess::ROOT/conf/drop-in.conf");

for ([ '/usr/local/lib/sandbox-gateway', $build ],
     [ '/usr/local/share/sandbox-gateway/console', "$build/console" ],
     [ '/var/lib/sandbox', "$tmp/data" ],
     [ '/etc/nginx/sandbox.tokens', "$tmp/tokens" ],
     [ '127.0.0.1:8080', "127.0.0.1:$port" ],
     [ '127.0.0.1:8081', "127.0.0.1:$ports" ],
     [ '127.0.0.1:8090', $address ])
{
    my ($is, $becomes) = @$_;
    ok($conf =~ s/\Q$is\E/$becomes/g, "it has $is");
}

# what stands there as a comment works as well

ok($conf =~ s/^(# server \{\n(?:#.*\n)+)\z/$1 =~ s{^# ?}{}mgr/me,
   'it has a listener for user ports');

SandboxTest::write_file("$tmp/drop-in.conf", $conf);

my $user = $> == 0 ? 'user www-data;' : '';
SandboxTest::write_file("$tmp/nginx.conf", <<"END_CONF");
load_module $SandboxProcess::MODULE;
$user
daemon off;
worker_processes 2;
pid $tmp/nginx.pid;
error_log $tmp/logs/error.log;

events {
    worker_connections 768;
}

http {
    sendfile on;
    tcp_nopush on;
    types_hash_max_size 2048;
    access_log off;
    gzip on;
    client_body_temp_path $tmp/temp/body;
    proxy_temp_path $tmp/temp/proxy;
    fastcgi_temp_path $tmp/temp/fastcgi;
    uwsgi_temp_path $tmp/temp/uwsgi;
    scgi_temp_path $tmp/temp/scgi;

    include $tmp/drop-in.conf;

    server {
        listen 127.0.0.1:$site;

        location / {
            return 200 "a site\\n";
        }
    }
}
END_CONF

my $pid = SandboxProcess->spawn("$tmp/logs/out", $SandboxProcess::NGINX,
    '-p', "$tmp", '-c', "$tmp/nginx.conf", '-e', "$tmp/logs/error.log");


sub ask {
    my ($to, $target, @headers) = @_;

    return SandboxHttp->connect(port => $to)
        ->request(GET => $target, headers => \@headers);
}


SandboxProcess->wait_for(sub { SandboxProcess::listens($port) })
    or BAIL_OUT('nginx does not start: '
                . SandboxTest::read_file("$tmp/logs/error.log"));

is(ask($site, '/')->content, "a site\n", 'the site that was there');

my $r = SandboxProcess->wait_for(sub {
    -S "$tmp/data/helper.sock"
    && ask($port, '/v1/sandboxes', "OPEN-SANDBOX-API-KEY: $token",
           'X-Actor-Id: dropped-in');
});
is($r->status, 200, 'with the token');
is(ask($port, '/v1/sandboxes')->status, 401, 'without');
is(ask($port, '/v1/sandboxes', "Authorization: Bearer $token")->status, 200,
   'as bearer');

my $url = SandboxHttp->connect(port => $port)->request(
    POST => '/console/api/v1/sandboxes/s1/ports/8080',
    headers => [ "Authorization: Bearer $token" ])->json->{url};
my ($host, $ticket) = $url =~ m{^http://([^/]+:$ports)(/.*)$};
is(ask($ports, $ticket, "Host: $host")->status, 303, 'a user port is opened');

my $history = SandboxHistory->new(dir => "$tmp/data/history");
my ($event) = SandboxProcess->wait_for(sub {
    my @e = grep { $_->{event_id} eq $r->header('X-Operation-Id') }
            $history->events('_gateway');
    return $e[0];
});
is($event && $event->{actor_id}, 'dropped-in', 'on record');


# --- the console, as the standalone gateway serves it

my @wanted = (
    [ 'Content-Security-Policy' => qr/^default-src 'self'; script-src 'self'; .*frame-ancestors 'none'/ ],
    [ 'X-Content-Type-Options' => qr/^nosniff$/ ],
    [ 'Referrer-Policy' => qr/^no-referrer$/ ],
    [ 'Cross-Origin-Opener-Policy' => qr/^same-origin$/ ],
);
$r = ask($port, '/console/sandboxes/s1/history?q=a');
is($r->status, 200, 'the console needs no token');
my ($script) = $r->content =~ /<script[^>]* src="(?:\.\/)?(assets\/[^"]+)"/;
my $asset = ask($port, '/console/' . ($script // 'none'));
is($asset->status, 200, 'its files are there');
like($asset->header('Cache-Control'), qr/immutable/, '... for good');

for my $of ([ 'a page' => $r ], [ 'a file' => $asset ]) {
    like($of->[1]->header($_->[0]) // '', $_->[1], "$of->[0] has $_->[0]")
        for @wanted;
}

for ([ '/console', 'console/' ], [ '/console?x=/', 'console/?x=/' ]) {
    $r = ask($port, $_->[0]);
    is($r->status, 301, "C133 $_->[0] is led on");
    is($r->header('Location'), $_->[1], '... with its query, to nowhere else');
}

my ($helper) = grep {
    SandboxTest::read_file("/proc/$_/cmdline")
        =~ /\A\Q$build\E\/sandbox-helper\0.*\0?\Q$tmp\/data\E\0/s
} map { m{/(\d+)/} } glob '/proc/[0-9]*/cmdline';
ok($helper, 'the helper names its data on its command line');

kill 'HUP', $pid;
ok(SandboxProcess->wait_for(sub {
    my $a = ask($port, '/v1/sandboxes', "OPEN-SANDBOX-API-KEY: $token");
    return $a->status == 200 && $a->header('X-Operation-Id');
}), 'it goes on over a reload');
ok(SandboxGateway::alive($helper), 'with the same helper');

kill 'QUIT', $pid;
ok(SandboxProcess::reaped($pid, 10), 'nginx ends');
ok(SandboxProcess->wait_for(sub { !SandboxGateway::alive($helper) }, 15),
   'and the helper after it');

$up->stop;

my @bad = grep { /$SandboxTest::BAD_LINE/ }
          map { split /\n/, SandboxTest::read_file("$tmp/logs/$_") }
          qw(error.log out);
is(join("\n", @bad), '', 'no alert');

done_testing;
