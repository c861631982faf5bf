package SandboxPorts;

# The user-port listener in tests: a server block for it, and a browser's part:
# opening a port, using its ticket, keeping the cookie.
#
#   my $port = SandboxProcess::free_port();
#   my $t = SandboxTest->new(http => SandboxPorts::server($port))->start;
#   my $p = SandboxPorts->open($t, $port, 's1', 8080);
#   is($p->get('/')->status, 200);

use strict;
use warnings;

use SandboxHttp;
use SandboxWs;


# Options: url, conf (lines for http), server, location (lines there).

sub server {
    my ($port, %o) = @_;

    my %v = (url => "http://127.0.0.1:$port", conf => '', server => '',
             location => '', %o);

    return sub {
        my $t = shift;
        my $key = defined $t->{api_key}
            ? "sandbox_api_key_file $t->{dir}/etc/api-key;" : '';

        return <<"END_CONF";
    $v{conf}

    server {
        listen 127.0.0.1:$port;
        sandbox_upstream $t->{upstream_url};
        $key
        sandbox_tokens $t->{dir}/etc/tokens;
        $v{server}

        location / {
            sandbox on;
            sandbox_port_listen $v{url};
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
            $v{location}
        }
    }
END_CONF
    };
}


# The address of a port, as the console API names it; (url, response).

sub ask {
    my ($t, $sandbox, $port, %o) = @_;

    my $r = $t->post("/console/api/v1/sandboxes/$sandbox/ports/$port", %o);
    my $url = ref $r->json eq 'HASH' ? $r->json->{url} : undef;

    $t->secret($1) if defined $url && $url =~ /sandbox_ticket=([^&]+)/;

    return wantarray ? ($url, $r) : $url;
}


# Opens a port as a browser does.

sub open {
    my ($class, $t, $listener, $sandbox, $port, %o) = @_;

    my $url = $o{url} // ask($t, $sandbox, $port, %o);
    my ($host, $target) = ($url // '') =~ m{^https?://([^/]+)(/.*)$}
        or die 'no address: ' . ($url // 'none') . "\n";

    my $self = bless { t => $t, listener => $listener, host => $host,
                       url => $url, target => $target, cookies => {} }, $class;

    $self->{first} = $self->get($target);

    return $self;
}


sub first { $_[0]{first} }
sub host { $_[0]{host} }
sub cookie { join '; ', map { "$_=$_[0]{cookies}{$_}" } sort keys %{ $_[0]{cookies} } }


sub get { my $self = shift; $self->request(GET => @_) }


# Options: host, cookie (instead of ours; undef: none), headers.

sub request {
    my ($self, $method, $target, %o) = @_;

    my $c = SandboxHttp->connect(port => $self->{listener});
    my $r = $c->request($method, $target, %o, headers => $self->headers(%o));

    for ($r->headers('Set-Cookie')) {
        my ($name, $value) = /^([^=]+)=([^;]*)/ or next;
        $self->{cookies}{$name} = $value;
        $self->{t}->secret($value) if $name =~ /sandbox_port$/;
    }

    return $r;
}


sub headers {
    my ($self, %o) = @_;

    my $cookie = exists $o{cookie} ? $o{cookie} : $self->cookie;

    return [ 'Host: ' . ($o{host} // $self->{host}),
             defined $cookie && length $cookie ? "Cookie: $cookie" : (),
             @{ $o{headers} // [] } ];
}


sub websocket {
    my ($self, $target, %o) = @_;

    my $origin = exists $o{origin} ? $o{origin} : "http://$self->{host}";

    return SandboxWs->open(target => $target, %o,
        conn => SandboxHttp->connect(port => $self->{listener}),
        headers => [ @{ $self->headers(%o) },
                     defined $origin ? "Origin: $origin" : () ]);
}

1;
