package FakeUpstream::Play;

# The default answers of the scripted upstream: a lifecycle server in the habits
# of uvicorn (lower-case header names, compact JSON) and, behind it or on a port
# of its own, execd in the habits of Go's net/http.  Only what travels matters:
# commands are not run, files are not kept.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use JSON::PP;
use POSIX qw(strftime);
use Time::HiRes qw(sleep);

use FakeUpstream::Ingress;

my $json = JSON::PP->new->utf8->canonical;


# Answers one request; false when the connection shall be closed.

sub answer {
    my ($c, $req) = @_;

    my $state = $c->{upstream}->state;

    return FakeUpstream::Ingress::answer($c, $req, $state)
        if $c->{listener} =~ /^ingress/;

    my ($path, $query) = split /\?/, $req->{target}, 2;
    $query //= '';
    $path =~ s{%([0-9a-fA-F]{2})}{chr hex $1}ge;

    return lifecycle($c, $req, $state, $path, $query)
        if $c->{listener} eq 'lifecycle';

    # execd's own port proxy
    my $port = 44772;
    $port = $1 + 0 while $port == 44772 && $path =~ s{^/proxy/(\d+)}{};
    $path = '/' if $path eq '';

    return sandbox_port($c, $req, $state, $port, $path, $query, 0);
}


# A connection that is closed after the answer says so, else it would be used
# again in the moment in between.

sub closing {
    my $c = shift;

    return ($c->{req}{header}{connection} // '') =~ /close/i
           ? 'Connection: close' : ();
}


sub reply {
    my ($c, $status, $body, @headers) = @_;

    push @headers, closing($c);
    push @headers, "X-Fake-Route: $c->{route}"
        if defined $c->{route} && $c->{route} !~ /[\r\n]/;
    delete $c->{route};
    my $answer = FakeUpstream::answer($status, $body, @headers);
    $c->send($answer->[1]);

    return 1;
}


# The lifecycle server's way: date, server, x-request-id in lower case.

sub reply_uvicorn {
    my ($c, $req, $status, $body, @headers) = @_;

    my $id = $req->{header}{'x-request-id'}
             // sha256_hex(rand . $$) =~ s/^(.{32}).*/$1/r;
    my $bytes = FakeUpstream::answer($status, $body,
        'date: ' . strftime('%a, %d %b %Y %H:%M:%S GMT', gmtime),
        'server: uvicorn', "x-request-id: $id", @headers, closing($c))->[1];

    $bytes =~ s/Content-Type: /content-type: /;
    $bytes =~ s/Content-Length: /content-length: /;
    $c->send($bytes);

    return 1;
}


sub lifecycle {
    my ($c, $req, $state, $path, $query) = @_;

    my $method = $req->{method};
    $path =~ s{^/v1(?=/)}{};

    if ($path =~ m{^/sandboxes/([^/]+)/proxy/(\d+)(/.*)?$}s) {
        my ($id, $port, $rest) = ($1, $2 + 0, $3 // '/');

        if (!$state->{sandboxes}{$id}) {
            return reply_uvicorn($c, $req, 404, not_found($id));
        }

        # the server proxy decodes the inner path once more
        $rest =~ s{%([0-9a-fA-F]{2})}{chr hex $1}ge;

        if ($port == 44772) {
            $port = $1 + 0
                while $port == 44772 && $rest =~ s{^/proxy/(\d+)}{};
            $rest = '/' if $rest eq '';
        }

        return sandbox_port($c, $req, $state, $port, $rest, $query, 1);
    }

    if ($path eq '/health') {
        return reply_uvicorn($c, $req, 200, { status => 'healthy' });
    }

    if (defined $state->{api_key}
        && ($req->{header}{'open-sandbox-api-key'} // '') ne $state->{api_key})
    {
        my $missing = !defined $req->{header}{'open-sandbox-api-key'};
        return reply_uvicorn($c, $req, 401, {
            code    => $missing ? 'MISSING_API_KEY' : 'INVALID_API_KEY',
            message => 'Authentication credentials are '
                       . ($missing ? 'missing' : 'invalid'),
        });
    }

    if ($path eq '/sandboxes' && $method eq 'POST') {
        my $in = eval { $json->decode($req->{body}) } // {};
        my $id = sprintf '%s-%s-4%s-8%s-%s',
            sha256_hex(rand . $$ . time) =~ /^(.{8})(.{4})(.{3})(.{3})(.{12})/;

        $c->{upstream}->sandbox($id, metadata => $in->{metadata} // {});

        return reply_uvicorn($c, $req, 202, sandbox_json($id, 'Running',
                                                         $in->{metadata}));
    }

    if ($path eq '/sandboxes' && $method eq 'GET') {
        my $all = $state->{sandboxes};
        my @items = map { sandbox_json($_, $all->{$_}{state},
                                       $all->{$_}{metadata}) }
                    sort keys %$all;

        return reply_uvicorn($c, $req, 200, {
            items => \@items,
            pagination => { page => 1, pageSize => 20, totalPages => 1,
                            totalItems => 0 + @items, hasNextPage => \0 },
        });
    }

    if ($path =~ m{^/sandboxes/([^/]+)(/.*)?$}) {
        return one_sandbox($c, $req, $state, $1, $2 // '', $query);
    }

    return others($c, $req, $path);
}


sub one_sandbox {
    my ($c, $req, $state, $id, $rest, $query) = @_;

    my $up = $c->{upstream};
    my $method = $req->{method};
    my $s = $state->{sandboxes}{$id}
        or return reply_uvicorn($c, $req, 404, not_found($id));
    my $what = "$method $rest";

    if ($what eq 'GET ') {
        return reply_uvicorn($c, $req, 200,
                             sandbox_json($id, $s->{state}, $s->{metadata}));
    }

    if ($what eq 'DELETE ') {
        $up->forget($id);
        return reply_uvicorn($c, $req, 204);
    }

    if ($what eq 'PATCH /metadata') {
        return reply_uvicorn($c, $req, 200,
                             sandbox_json($id, $s->{state}, $s->{metadata}));
    }

    if ($what =~ m{^POST /(pause|resume)$}) {
        $up->sandbox($id, state => $1 eq 'pause' ? 'Paused' : 'Running');
        return reply_uvicorn($c, $req, 202);
    }

    if ($what eq 'POST /renew-expiration') {
        return reply_uvicorn($c, $req, 200,
                             { expiresAt => '2026-12-01T00:00:00Z' });
    }

    if ($what eq 'POST /snapshots') {
        return reply_uvicorn($c, $req, 202,
            { id => 'snap-1', sandboxId => $id, status => { state => 'Creating' },
              createdAt => '2026-11-29T09:00:00Z' },
            'location: /v1/snapshots/snap-1');
    }

    if ($what =~ m{^GET /endpoints/(\d+)$}) {
        return endpoint($c, $req, $state, $id, $s, $1 + 0, $query);
    }

    if ($what =~ m{^GET /diagnostics/(logs|events|inspect|summary)$}) {
        return reply_uvicorn($c, $req, 200, "all is well\n",
                             'content-type: text/plain', 'deprecation: true');
    }

    return reply_uvicorn($c, $req, 404, { detail => 'Not Found' });
}


sub endpoint {
    my ($c, $req, $state, $id, $s, $port, $query) = @_;

    my $headers = $s->{headers};
    my $endpoint;

    if ($query =~ /use_server_proxy=true/) {
        my $host = $req->{header}{host} // '';
        $endpoint = "$host/sandboxes/$id/proxy/$port";

    } elsif (defined $s->{endpoint}) {
        $endpoint = $s->{endpoint};
        $endpoint =~ s/%PORT%/$port/g;

    } else {
        $endpoint = "127.0.0.1:$state->{ports}{$s->{execd}}/proxy/$port";
    }

    if ($query =~ /expires=(\d+)/) {
        $endpoint .= '/signed';
    }

    return reply_uvicorn($c, $req, 200, {
        endpoint => $endpoint, $headers ? (headers => $headers) : (),
    });
}


sub others {
    my ($c, $req, $path) = @_;

    my $what = "$req->{method} $path";

    return reply_uvicorn($c, $req, 200, '<html></html>',
                         'content-type: text/html')
        if $what =~ m{^GET /(docs|redoc|openapi\.json)};
    return reply_uvicorn($c, $req, 204)
        if $what =~ m{^DELETE /(snapshots|pools)/} || $path eq '/metrics/events';
    return reply_uvicorn($c, $req, 200,
            { id => 'snap-1', sandboxId => 'unknown', status => { state => 'Ready' } })
        if $what =~ m{^GET /snapshots/};
    return reply_uvicorn($c, $req, 200, { items => [] })
        if $what =~ m{^GET /(snapshots|pools)$};
    return reply_uvicorn($c, $req, $req->{method} eq 'POST' ? 201 : 200,
                         { name => 'p', status => { total => 0 } })
        if $what =~ m{^(POST /pools$|(GET|PUT) /pools/)};

    return reply_uvicorn($c, $req, 404, { detail => 'Not Found' });
}


sub not_found {
    return { code => 'DOCKER::SANDBOX_NOT_FOUND',
             message => "Sandbox $_[0] not found." };
}


sub sandbox_json {
    my ($id, $state, $metadata) = @_;

    return {
        id => $id, createdAt => '2026-06-15T09:00:00.000000Z',
        expiresAt => '2026-12-15T09:10:00.000000Z',
        entrypoint => [ qw(tail -f /dev/null) ],
        status => { state => $state, reason => 'CONTAINER_RUNNING' },
        $metadata && %$metadata ? (metadata => $metadata) : (),
    };
}


# --- inside a sandbox -----------------------------------------------------------

# What a service in the sandbox sees of a request.

sub echo {
    my ($c, $req) = @_;

    return reply($c, 200, {
        method => $req->{method}, target => $req->{target},
        headers => [ map { "$_->[0]: $_->[1]" } @{ $req->{headers} } ],
        body => $req->{body}, listener => $c->{listener},
    });
}


sub sandbox_port {
    my ($c, $req, $state, $port, $path, $query, $proxied) = @_;

    return execd($c, $req, $path, $query, $proxied) if $port == 44772;
    return egress($c, $req, $path) if $port == 18080;
    return user_ws($c, $req)
        if lc($req->{header}{upgrade} // '') eq 'websocket';
    return echo($c, $req);
}


sub user_ws {
    my ($c, $req) = @_;

    return $c->play($req, [ 'ws_accept' ], [ 'ws_echo' ]);
}


sub egress {
    my ($c, $req, $path) = @_;

    return reply($c, 200, 'ok', 'Content-Type: text/plain')
        if $path eq '/healthz';
    return reply($c, 200, {
        status => 'ok', mode => 'enforcing', enforcementMode => 'dns',
    }) if $path eq '/policy';
    return reply($c, $req->{method} eq 'DELETE' ? 204
                     : $req->{method} eq 'POST' ? 201 : 200,
                 $req->{method} eq 'DELETE' ? undef : { revision => 1 })
        if $path =~ m{^/credential-vault};

    return reply($c, 404, "404 page not found\n", 'Content-Type: text/plain');
}


my %simple = (
    'GET /ping'               => '',
    'DELETE /files'           => '',
    'POST /files/mv'          => '',
    'POST /files/permissions' => '',
    'POST /files/replace'     => '',
    'POST /files/upload'      => '',
    'POST /directories'       => '',
    'DELETE /directories'     => '',
    'DELETE /command'         => '',
    'DELETE /code'            => '',
    'DELETE /code/contexts'   => '',
    'GET /files/info'         => {},
    'GET /files/search'       => [],
    'GET /directories/list'   => [],
    'POST /code/context'      => { id => 'ctx-1', language => 'python' },
    'GET /code/contexts'      => [],
    'POST /session'           => { session_id => 'ses-1' },
    'GET /metrics'            => { cpu_count => 2, cpu_used_pct => 1 },
    'POST /internal/init'     => { status => 'ok' },
    'GET /ready'              => { initialized => \1 },
);


sub execd {
    my ($c, $req, $path, $query, $proxied) = @_;

    my $what = "$req->{method} $path";
    my @date = $proxied ? ('date: ' . strftime('%a, %d %b %Y %H:%M:%S GMT', gmtime),
                           'Date: ' . strftime('%a, %d %b %Y %H:%M:%S GMT', gmtime))
                        : ();

    if (exists $simple{$what}) {
        return reply($c, 200, $simple{$what}, @date);
    }

    if ($what =~ m{^POST /(command|code|session/[^/]+/run)$}) {
        return run($c, $req, $1);
    }

    if ($what =~ m{^GET /command/status/([^/]+)$}) {
        return reply($c, 200, {
            id => $1, content => 'x', running => \0, exit_code => 0, error => '',
            started_at => '2026-06-15T09:00:00Z',
            finished_at => '2026-06-15T09:00:01Z',
        }, @date);
    }

    if ($what =~ m{^GET /command/([^/]+)/logs$}) {
        return reply($c, 200, "log\n", 'Content-Type: text/plain',
                     'Execd-Commands-Tail-Cursor: 4', @date);
    }

    if ($what eq 'GET /files/download') {
        return reply($c, 200, "hello\n",
                     'Content-Type: application/octet-stream',
                     'Accept-Ranges: bytes', @date);
    }

    if ($what eq 'GET /metrics/watch') {
        return $c->play($req, FakeUpstream::stream_head(),
                        [ chunk => "{\"cpu_count\":2}\n" ], [ chunk => '' ]);
    }

    if ($what eq 'POST /pty') {
        return reply($c, 201, { session_id => 'pty-1' }, @date);
    }

    if ($what =~ m{^GET /pty/([^/]+)/ws$}
        && lc($req->{header}{upgrade} // '') eq 'websocket')
    {
        return pty($c, $req, $1);
    }

    if ($what =~ m{^(GET|DELETE) /pty/([^/]+)$}) {
        return reply($c, 200, $1 eq 'DELETE' ? '' : {
            session_id => $2, running => \1, output_offset => 0,
        }, @date);
    }

    if ($what =~ m{^(GET|DELETE) /(code/contexts|session)/[^/]+$}) {
        return reply($c, 200, $1 eq 'DELETE' ? '' : { id => 'ctx-1' }, @date);
    }

    return reply($c, 404, '404 page not found', 'Content-Type: text/plain',
                 @date);
}


# A shell of few words: "echo TEXT", "err TEXT", "exit N", joined by ";".

sub run {
    my ($c, $req, $what) = @_;

    my $in = eval { $json->decode($req->{body}) } // {};
    my $text = $in->{command} // $in->{code} // '';
    my $exit = 0;

    my @events = (FakeUpstream::event('init', text => '2bb1427947aa4d16948956ea295368e5'),
                  FakeUpstream::event('ping', text => 'pong'));

    for (split /\s*;\s*/, $text) {
        push @events, FakeUpstream::event('stdout', text => $1)
            if /^echo (.+)/s;
        push @events, FakeUpstream::event('stderr', text => $1)
            if /^err (.+)/s;
        $exit = $1 if /^exit (\d+)/;
    }

    push @events, $exit
        ? FakeUpstream::event('error', error => {
              ename => 'CommandExecError', evalue => "$exit",
              traceback => [ "exit status $exit" ] })
        : FakeUpstream::event('execution_complete', execution_time => 3);

    return $c->play($req, FakeUpstream::stream(@events));
}


# A terminal that echoes what is typed and ends with "exit".

sub pty {
    my ($c, $req, $id) = @_;

    $c->play($req, [ 'ws_accept' ],
        [ frame => 1, qq({"type":"connected","session_id":"$id","mode":"pty"}\n) ]);

    while (my $f = $c->recv_frame) {
        if ($f->{op} == 8) {
            $c->frame(8, $f->{payload});
            return 0;
        }

        $c->frame(10, $f->{payload}) if $f->{op} == 9;
        next if $f->{op} != 2 || $f->{payload} !~ /^\x00(.*)/s;

        my $typed = $1;
        $c->frame(2, "\x01$typed");

        if ($typed =~ /exit (\d+)/) {
            $c->frame(1, qq({"type":"exit","exit_code":$1}\n));
            $c->frame(8, pack('n', 1000) . 'process exited');
            return 0;
        }
    }

    return 0;
}

1;
