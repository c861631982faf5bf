#!/usr/bin/perl

# sandbox_digest: the SHA-256 of files is made, or not, as server and location
# say; path and size are there either way, and the bytes pass.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA qw(sha256_hex);
use FakeUpstream;
use SandboxTest;
use Test::More;

my $t = SandboxTest->new(server => 'sandbox_digest off;',
                         locations => <<'EOF')->start;
location /v1/sandboxes/on {
    sandbox on;
    sandbox_digest on;
    proxy_pass http://opensandbox$sandbox_upstream_uri;
    proxy_http_version 1.1;
    proxy_set_header Host $sandbox_upstream_host;
}
EOF

# a file with many carriage returns, one of a single line, and an empty one
my @files = ("\r" x 50_000 . "\r\n--", "one line\n", '');

for my $id (qw(inherits1 on1)) {
    my $on = $id eq 'on1';
    my $execd = "/v1/sandboxes/$id/proxy/44772";

    $t->sandbox($id);

    for my $file (@files) {
        my $name = "$id, " . length($file) . ' bytes';
        my $body = join '', map { "--B\r\nContent-Disposition: form-data; "
                                  . "name=\"$_->[0]\"; filename=\"f\"\r\n\r\n"
                                  . "$_->[1]\r\n" }
            [ metadata => '{"path":"/w/a"}' ], [ file => $file ];
        $body .= "--B--\r\n";

        my $r = $t->post("$execd/files/upload", body => $body,
            headers => [ 'Content-Type: multipart/form-data; boundary=B' ]);
        is(($t->up->requests)[-1]{sha256}, sha256_hex($body),
           "$name: the upload passes");

        my $f = $t->record($r)->{files}[0];
        is_deeply([ @$f{qw(path size sha256)} ],
                  [ '/w/a', length $file, $on ? sha256_hex($file) : undef ],
                  "$name: what is on record of it");

        $t->up->script("GET $execd/files/download", [ send =>
            "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
            . 'Content-Length: ' . length($file) . "\r\n\r\n$file" ]);
        $r = $t->get("$execd/files/download?path=/w/a");
        ok($r->content eq $file, "$name: the download passes");

        my $e = $t->record($r);
        is($e->{wire}{bytes_out}, length $file, "$name: its size");
        is($e->{files}[0]{sha256}, $on ? sha256_hex($file) : undef,
           "$name: its digest");
    }
}

$t->stop;
done_testing;
