#!/usr/bin/perl

# Files over time, against sandbox-runtime, so that what is recorded can be held
# against what stands in the files: state before and after, contents, differences,
# and what is said where that is not known.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use FindBin;
use lib "$FindBin::Bin/lib";

use SandboxTest;
use Test::More;

my $type = 'Content-Type: multipart/form-data; boundary=B';
my $t = SandboxTest->new(runtime => 1)->start;

my $r = $t->post('/v1/sandboxes',
    headers => [ 'Content-Type: application/json' ],
    body => '{"image":{"uri":"python:3.11"},"timeout":600,'
            . '"resourceLimits":{"cpu":"1"},"entrypoint":["tail"]}');
my $id = $r->json->{id} // BAIL_OUT('no sandbox');
my $execd = "/v1/sandboxes/$id/proxy/44772";
my $dir = '/tmp/versions';

$t->wait_for(sub { $t->get("$execd/ping")->status == 200 }, 15);


# --- a file is written, read, edited, moved, deleted -----------------------------------

my $one = "one\ntwo\nthree\n";
my $two = "one\n2\nthree\n";

my $e = upload("$dir/a", $one);
stands($e, 0, 'unavailable', undef, $one, 'what was there before nobody knows');
is(content($one), $one, 'its content is kept');
is($e->{file}{diff_data}, undef, 'and nothing to compare it with');

$e = upload("$dir/a", $two);
stands($e, 0, 'history', $one, $two, 'written again');
is($e->{file}{diff_data}, "--- a$dir/a\n+++ b$dir/a\n\@\@ -1,3 +1,3 \@\@\n one\n"
   . "-two\n+2\n three\n", 'the difference');
is($e->{file}{diff_encoding}, 'identity', 'as text');
is($e->{file}{diff_complete}, 1, 'all of it');

$e = $t->record($t->post("$execd/files/replace", body =>
    qq({"$dir/a":{"old":"three","new":"drei\\nvier"}})), sandbox => $id);
my $three = "one\n2\ndrei\nvier\n";
stands($e, 0, 'history', $two, $three, 'replaced: worked out');
is(download("$dir/a")->{body}, $three, 'and that is what stands there');
is(content($three), $three, 'it is kept');
like($e->{file}{diff_data}, qr/^-three\n\+drei\n\+vier\n\z/m, 'its difference');

$e = $t->record(download("$dir/a"), sandbox => $id);
stands($e, 0, 'read', $three, $three, 'read');

$e = $t->record($t->post("$execd/files/mv", body =>
    qq([{"src":"$dir/a","dest":"$dir/b"}])), sandbox => $id);
stands($e, 0, 'unavailable', undef, $three, 'moved');

$e = upload("$dir/a", $one);
stands($e, 0, 'absent', undef, $one, 'nothing stands where it was');
like($e->{file}{diff_data}, qr{^--- /dev/null\n\+\+\+ b\Q$dir\E/a\n}, 'a new file');

$e = $t->record($t->delete("$execd/files?path=$dir/b"), sandbox => $id);
stands($e, 0, 'history', $three, undef, 'deleted');
like($e->{file}{diff_data}, qr{^\+\+\+ /dev/null\n\@\@ -1,4 \+0,0 \@\@\n-one\n}m,
     'all of it goes');


# --- the console API tells of it ---------------------------------------------------------

my $api = "/console/api/v1";
my $v = $t->get("$api/sandboxes/$id/versions?path=$dir/a")->json;
is_deeply([ map { [ @$_{qw(type before)} ] } @{ $v->{items} } ],
    [ [ 'file.write', 'absent' ], [ 'file.move', 'unavailable' ],
      [ 'file.read', 'read' ], [ 'file.read', 'read' ],
      [ 'file.replace', 'history' ], [ 'file.write', 'history' ],
      [ 'file.write', 'unavailable' ] ], 'versions of a path, newest first');
is($v->{next}, undef, 'all of them');

my ($replace) = grep { $_->{type} eq 'file.replace' } @{ $v->{items} };
my $first = $v->{items}[-1];
ok($replace->{kept}, 'what is kept is told');

my $page = $t->get("$api/sandboxes/$id/versions?path=$dir/a&limit=2")->json;
is(scalar @{ $page->{items} }, 2, 'a page');
is($t->get("$api/sandboxes/$id/versions?path=$dir/a&before=$page->{next}")
       ->json->{items}[0]{id}, $v->{items}[2]{id}, 'and the next');

for my $way ("operations/$replace->{id}", "sandboxes/$id/operations/$replace->{id}") {
    is($t->get("$api/$way/content?version=before")->content, $two, "$way: before");
    is($t->get("$api/$way/content")->content, $three, 'after');
    my $d = $t->get("$api/$way/diff");
    like($d->content, qr/^-three\n\+drei\n/m, 'the difference');
    is($d->header('Content-Type'), 'text/plain; charset=utf-8', 'as text');
}

like($t->get("$api/sandboxes/$id/versions/diff?path=$dir/a"
     . "&from=$first->{sha256}&to=$replace->{sha256}")->content,
     qr/^-two\n-three\n\+2\n\+drei\n\+vier\n/m, 'of any two versions');
is($t->get("$api/sandboxes/$id/versions/diff?path=$dir/a&from=$first->{sha256}"
     . '&to=' . '0' x 64)->status, 404, 'of one that is not there');
is($t->get("$api/operations/$first->{id}/diff")->status, 404, 'no difference');
is($t->get("$api/operations/$first->{id}/content?version=before")->status, 404,
   'nothing before');
is($t->get("$api/sandboxes/$id/versions")->status, 400, 'without a path');
is($t->get("$api/operations/$first->{id}/content?version=x")->status, 400,
   'no such version');


# --- what is not known is said ----------------------------------------------------------

$t->record($t->post("$execd/command", body => '{"command":"true"}'),
           sandbox => $id);

$e = upload("$dir/a", $two);
stands($e, 0, 'assumed', $one, $two, 'a command ran since: it may have changed it');

$t->record($t->post("$execd/command", body =>
    qq({"command":"echo else > $dir/a"})), sandbox => $id);
$e = $t->record($t->post("$execd/files/replace", body =>
    qq({"$dir/a":{"old":"else","new":"x"}})), sandbox => $id);
stands($e, 0, 'assumed', $two, undef, 'nothing is worked out of a guess');
is($e->{files}[0]{content}, 'unavailable', 'its content is not there');

$e = upload("$dir/a", $one);
stands($e, 0, 'unavailable', undef, $one, 'after which nobody knows');

$t->record($t->delete("$execd/directories?path=$dir"), sandbox => $id);
$e = upload("$dir/a", $two);
stands($e, 0, 'unavailable', undef, $two, 'the directory above was removed');


# --- several, empty, binary, large ------------------------------------------------------

$e = upload("$dir/m1", "1\n", "$dir/m2", '', "$dir/m1", "2\n");
stands($e, 1, 'unavailable', undef, '', 'an empty file among several');
stands($e, 2, 'history', "1\n", "2\n", 'the same path twice: one after the other');
is(content(''), '', 'the empty content');
like($t->get("$api/operations/$e->{event_id}/diff?n=2")->content,
     qr/^-1\n\+2\n/m, 'differences of further files are made when asked for');

my $binary = join '', map { chr } 0 .. 255;
$e = upload("$dir/bin", $binary);
$e = upload("$dir/bin", $binary . 'x');
stands($e, 0, 'history', $binary, $binary . 'x', 'binary');
is($e->{file}{diff_data}, undef, 'has no difference');
is(content($binary), $binary, 'but is kept');

my $full = join '', map { sprintf "%07d\n", $_ } 1 .. 1 << 17;
$e = upload("$dir/large", $full);
stands($e, 0, 'unavailable', undef, $full, '1 MiB');
is($e->{files}[0]{content}, 'kept', 'is kept');
ok(content($full) eq $full, 'whole');

$e = upload("$dir/large", $full . '.');
stands($e, 0, 'history', $full, $full . '.', 'one byte more');
is($e->{files}[0]{content}, 'too_large', 'is too large');
cmp_ok($t->metric('contents_missed_total'), '>=', 1, 'and counted');

(my $changed = $full) =~ s/5\n/five\n/g;
$changed = substr $changed, 0, 1 << 20;
$e = upload("$dir/cut", $full);
$e = upload("$dir/cut", $changed);
is($e->{file}{diff_complete}, 0, 'a long difference is cut');
ok(length $e->{file}{diff_data} <= 65536 && length $e->{file}{diff_data} > 60000,
   'at 64 KiB');
like($e->{file}{diff_data}, qr/\n\z/, 'behind a line');

$t->stop;
done_testing;


# One file's state before and after.

sub stands {
    my ($e, $n, $how, $before, $after, $name) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    my $f = $e->{files}[$n];
    my %want = (before => $how);

    for ([ before_ => $before ], [ '' => $after ]) {
        my ($prefix, $text) = @$_;
        $want{"${prefix}size"} = defined $text ? length $text : undef;
        $want{"${prefix}sha256"} = defined $text ? sha256_hex($text) : undef;
    }

    is_deeply({ map { $_ => $f->{$_} } keys %want }, \%want, $name)
        or diag(explain($f));

    return if $n;

    is_deeply([ @{ $e->{file} }{qw(before_size before_hash after_size
                                   after_hash)} ],
              [ @want{qw(before_size before_sha256 size sha256)} ],
              '... of the first file');

    my %listed;
    @listed{qw(before_size before_hash after_size after_hash)}
        = @want{qw(before_size before_sha256 size sha256)};
    @listed{qw(path old_path change has_diff)}
        = (@$f{qw(path old_path)}, $e->{file}{change_type},
           defined $e->{file}{diff_data} ? JSON::PP::true : JSON::PP::false);
    my ($item) = grep { $_->{id} eq $e->{event_id} }
        @{ $t->get("/console/api/v1/sandboxes/$id/operations?limit=5")
             ->json->{items} };
    is_deeply($item->{file}, \%listed, '... in the list');
}


# A content as it is kept.

sub content {
    my $sha = sha256_hex($_[0]);
    my ($row) = $t->history->query($id, 'select encoding, size, hex(data) as data'
        . " from gateway_contents where sha256 = '$sha'");

    return undef if !$row;

    my $data = pack 'H*', $row->{data};

    if ($row->{encoding} eq 'zlib') {
        require Compress::Zlib;
        $data = Compress::Zlib::uncompress($data);
    }

    return $data;
}


sub download { $t->get("$execd/files/download?path=$_[0]") }


sub upload {
    my @files = @_;
    my $body = '';

    while (my ($path, $bytes) = splice @files, 0, 2) {
        $body .= qq(--B\r\nContent-Disposition: form-data; name="metadata"; )
              . qq(filename="metadata"\r\n\r\n{"path":"$path"}\r\n)
              . qq(--B\r\nContent-Disposition: form-data; name="file"; )
              . qq(filename="f"\r\n\r\n$bytes\r\n);
    }

    my $r = $t->post("$execd/files/upload", headers => [ $type ],
                     body => "$body--B--\r\n");
    diag('upload: ' . $r->status . ' ' . $r->{body}) if $r->status != 200;

    return $t->record($r, sandbox => $id);
}
