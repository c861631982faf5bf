package FakeUpstream::Ingress;

# The Kubernetes ingress of the scripted upstream, in the habits of the real one
# (reference 6.2): the listener "ingress" works in header mode, "ingress_uri" in
# uri mode.  A sandbox with `secure` needs that token in
# OpenSandbox-Secure-Access, or the right signature (`signature`).
#
# Every answer tells in X-Fake-Route what the ingress made of the request: the
# sandbox, the port and the path that the sandbox saw.

use strict;
use warnings;


sub answer {
    my ($c, $req, $state) = @_;

    my ($path, $query) = split /\?/, $req->{target}, 2;
    $query //= '';
    $path =~ s{%([0-9a-fA-F]{2})}{chr hex $1}ge;

    # Go's ServeMux sends what is not clean elsewhere
    my $clean = clean($path);
    return FakeUpstream::Play::reply($c, 301, '', "Location: $clean")
        if $clean ne $path;

    return FakeUpstream::Play::reply($c, 200, 'OK',
                                     'Content-Type: text/plain')
        if $path eq '/status.ok';

    my ($id, $port, $signature, $plain);

    if ($c->{listener} eq 'ingress_uri') {
        my @p = split m{/}, $path =~ s{^/}{}r, 5;

        if (@p >= 4 && port($p[1]) && expires($p[2]) && signature($p[3])) {
            $plain = '/' . join '/', @p[2 .. $#p];
            ($id, $port, $signature) = @p[0, 1, 3];
            $path = '/' . ($p[4] // '');

        } else {
            @p = split m{/}, $path =~ s{^/}{}r, 3;
            ($id, $port) = @p if @p >= 2 && port($p[1]);
            $path = '/' . ($p[2] // '');
        }

    } else {
        my $h = $req->{header};
        my ($to) = grep { length } map { $h->{$_} // '' }
            qw(opensandbox-ingress-to open-sandbox-ingress host);
        my ($label) = split /\./, ($to // '') =~ s{^https?://}{}r;
        my @p = split /-/, $label // '', -1;

        if (@p >= 4 && port($p[-3]) && expires($p[-2]) && signature($p[-1])) {
            $signature = pop @p;
            pop @p;
        }

        $port = pop @p;
        $id = join '-', @p;
        $port = undef if ($port // '') !~ /^\d+$/;
    }

    return refuse($c, 400, 'invalid ingress route')
        if !length($id // '') || !$port;

    my $s = $state->{sandboxes}{$id}
        or return refuse($c, 404, 'sandbox not found');

    if (defined $s->{secure}) {
        my $token = $req->{header}{'opensandbox-secure-access'};
        return refuse($c, 401, 'access denied')
            if defined $token ? $token ne $s->{secure}
                              : ($signature // '') ne ($s->{signature} // '-');

    } elsif (defined $plain) {
        $path = $plain;
    }

    $port += 0;
    $c->{route} = "$id $port $path";

    $port = $1 + 0 while $port == 44772 && $path =~ s{^/proxy/(\d+)}{};

    return FakeUpstream::Play::sandbox_port($c, $req, $state, $port,
        $path eq '' ? '/' : $path, $query, 0);
}


sub refuse {
    my ($c, $status, $text) = @_;

    return FakeUpstream::Play::reply($c, $status,
        "OpenSandbox Ingress: $text\n", 'Content-Type: text/plain');
}


sub clean {
    my $path = shift;

    my @out;

    for (split m{/}, $path) {
        next if $_ eq '' || $_ eq '.';
        $_ eq '..' ? pop @out : push @out, $_;
    }

    my $clean = '/' . join '/', @out;

    return $path =~ m{/$} && $clean ne '/' ? "$clean/" : $clean;
}


sub port {
    my $s = shift;

    return $s =~ /^[1-9]\d{0,4}$/ && $s < 65536;
}


sub expires { $_[0] =~ /^(?:0|[1-9a-z][0-9a-z]{0,11})$/ }


sub signature { $_[0] =~ /^[0-9a-f]{8}[0-9a-z]$/ }

1;
