#!/usr/bin/perl

# sandbox-history versions, content, diff: files over time on the command line.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use FindBin;
use JSON::PP;
use lib "$FindBin::Bin/lib";

use HistoryCli;
use SandboxProcess;
use SandboxTest;
use Test::More;

my $program = "$SandboxProcess::BUILD/sandbox-history";
my $t = SandboxTest->new->start;
my $h = HistoryCli->new(program => [ $program ]);
my $json = JSON::PP->new->utf8;

$t->sandbox($_) for qw(s1 s2);

my %text = (one => "one\ntwo\n", two => "one\n2\n", raw => "\e[2J\0\xff\n");
my @e = map { upload('s1', '/w/a', $text{$_}) } qw(one two raw);
my $many = upload('s1', '/w/b', "b1\n", '/w/a', "b2\n");
my $back = upload('s1', '/w/a', $text{one}, [ "X-Sandbox-Restored-From: $e[0]{event_id}" ]);
my $other = upload('s2', '/w/a', "elsewhere\n");
my $odd = upload('s1', "/w/x\x{1b}[31m y", "odd\n");


# --- versions ---------------------------------------------------------------------------

my ($status, $out, $err) = history('versions', 's1', '/w/a');
is($status, 0, 'versions') or diag($err);
my ($head, @lines) = map { [ split /\t/, $_, -1 ] } split /\n/, $out;
is_deeply($head, [ qw(TIME SEQ ACTOR TYPE STATUS BEFORE SIZE SHA256 KEPT ID) ], 'its header');
is_deeply([ map { [ @$_[5 .. 9] ] } @lines ],
    [ [ 'unavailable', 8, sha256_hex($text{one}), 'yes', $e[0]{event_id} ],
      [ 'history', 6, sha256_hex($text{two}), 'yes', $e[1]{event_id} ],
      [ 'history', 7, sha256_hex($text{raw}), 'yes', $e[2]{event_id} ],
      [ 'history', 3, sha256_hex("b2\n"), 'yes', $many->{event_id} ],
      [ 'history', 8, sha256_hex($text{one}), 'yes', $back->{event_id} ] ],
    'a line each, the newest last');
is_deeply([ map { @$_[3, 4] } $lines[0] ], [ 'file.write', 'succeeded' ], 'what was done');

my @json = map { $json->decode($_) } split /\n/,
    (history('versions', '--json', '--order', 'desc', 's1', '/w/a'))[1];
is_deeply(\@json,
    $t->get('/console/api/v1/sandboxes/s1/versions?path=/w/a')->json->{items},
    '--json: what the console API says');
is($json[0]{restored_from}, $e[0]{event_id}, 'a restored one says from what');

($status, $out, $err) = history('versions', '-n', 2, 's1', '/w/a');
is_deeply([ map { (split /\t/)[9] } (split /\n/, $out)[1, 2] ],
          [ $many->{event_id}, $back->{event_id} ], '-n: the newest');
is($err, '', 'nothing is said of what was not asked for');

for my $width (60, 80, 120, 200) {
    my $page = terminal("stty cols $width; exec $program --history $t->{dir}/data/history"
                        . ' versions s1 /w/a');
    utf8::decode($page);
    my @rows = split /\r?\n/, $page;
    is(scalar @rows, 6, "on $width columns a line each");
    is(scalar(grep { length > $width } @rows), 0, 'nothing wraps') or diag($page);
}

($status, $out, $err) = history('versions', 's1', "/w/x\x{1b}[31m y");
is(scalar(() = $out =~ /\n/g), 2, 'an odd name');

refused([ 'versions', 's1', '/w/none' ], 1, qr/nothing has changed \/w\/none in sandbox s1/);
refused([ 'versions', 'nobody', '/w/a' ], 1, qr/no sandbox nobody/);
refused([ 'versions', 's1', "/w/\e[1m" ], 1, qr/\\x1b/);
refused([ 'versions', 's1' ], 2, qr/give SANDBOX and PATH/);
refused([ 'versions', 's1', '/a', '/b' ], 2, qr/unrecognized/);
refused([ 'versions', '--limit', '-1', 's1', '/w/a' ], 2, qr/--limit/);
refused([ 'versions', '--order', 'up', 's1', '/w/a' ], 2, qr/--order/);


# --- content ----------------------------------------------------------------------------

is_deeply([ (history('content', $e[2]{event_id}))[0, 1] ], [ 0, $text{raw} ], 'content: exact bytes');
is((history('content', '--version', 'before', $e[2]{event_id}))[1], $text{two}, 'before');
is((history('content', '--file', 1, $many->{event_id}))[1], "b2\n", 'of another file');
is((history('content', "s2/1"))[1], "elsewhere\n", 'by number');
is(terminal("exec $program --history $t->{dir}/data/history content $e[2]{event_id}") =~ s/\r//gr,
   "\\x1b[2J\\x00\\xff\n", 'on a terminal it is made safe');
is(terminal("exec $program --history $t->{dir}/data/history content --raw $e[2]{event_id}")
   =~ s/\r//gr, $text{raw}, 'unless asked for raw');

refused([ 'content', '--version', 'before', $e[0]{event_id} ], 1, qr/is not known/);
refused([ 'content', '--file', 1, $e[0]{event_id} ], 1, qr/no such file/);
refused([ 'content', '--file', 1024, $e[0]{event_id} ], 2, qr/--file must be 0 to 1023/);
refused([ 'content', '--version', 'now', $e[0]{event_id} ], 2, qr/--version/);
refused([ 'content' ], 2, qr/of which operation/);
refused([ 'content', 's1/999' ], 1, qr/no record/);


# --- diff -------------------------------------------------------------------------------

my $want = "--- a/w/a\n+++ b/w/a\n\@\@ -1,2 +1,2 \@\@\n one\n-two\n+2\n";
is_deeply([ (history('diff', $e[1]{event_id}))[0, 1] ], [ 0, $want ], 'diff of an operation');
is((history('diff', $e[0]{event_id}, $e[1]{event_id}))[1], $want, 'of two');
is((history('diff', $e[1]{event_id}, 's1/1'))[1], $want =~ s/-two\n\+2/-2\n+two/r,
   'whichever is the older');
is((history('diff', '--file', 1, $many->{event_id}, $back->{event_id}))[1],
   "--- a/w/a\n+++ b/w/a\n\@\@ -1 +1,2 \@\@\n-b2\n+one\n+two\n", 'of another file');
is((history('diff', $back->{event_id}, $many->{event_id}))[1],
   "--- a/w/a\n+++ b/w/a\n\@\@ -1,2 +1 \@\@\n-one\n-two\n+b2\n", 'found by its path');
is_deeply([ (history('diff', $e[0]{event_id}, $back->{event_id}))[0, 1] ], [ 0, '' ],
          'none: nothing is printed');

refused([ 'diff', $e[0]{event_id} ], 1, qr/no difference/);
refused([ 'diff', $e[0]{event_id}, $e[2]{event_id} ], 1, qr/no texts/);
refused([ 'diff', $e[0]{event_id}, $other->{event_id} ], 1, qr/two sandboxes/);
refused([ 'diff', $many->{event_id}, $e[0]{event_id} ], 1, qr/second operation has not/);
refused([ 'diff', '--file', 7, $e[1]{event_id}, $e[0]{event_id} ], 1, qr/no such file/);
refused([ 'diff', ($e[0]{event_id}) x 3 ], 2, qr/unrecognized/);


# --- what others wrote, and what is gone ---------------------------------------------------

my $file = "$t->{dir}/data/history/s1/history.sqlite3";
$t->history->query('s1', 'select 1');
$t->stop;
$h->run('sqlite3', $file, 'delete from gateway_contents');
refused([ 'content', $e[1]{event_id} ], 1, qr/not kept/);
is((history('diff', $e[1]{event_id}))[1], $want, 'a difference on record stays');
is((split /\t/, (split /\n/, (history('versions', 's1', '/w/a'))[1])[1])[8], 'no',
   'what is not kept is told');

$h->run('sqlite3', $file, 'drop table gateway_contents');
refused([ 'versions', 's1', '/w/a' ], 1, qr/nothing has changed/);
refused([ $_, $e[1]{event_id} ], 1, qr/knows of no versions/) for qw(content diff);

done_testing;


sub history { $h->run($program, '--history', "$t->{dir}/data/history", @_) }


sub refused {
    my ($args, $exit, $like) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    my ($code, $text, $said) = history(@$args);
    is("$code $text", "$exit ", "refused: @$args[0 .. $#$args]" =~ s/[^ -~]/?/gr);
    like($said, qr/^sandbox-history: [^\n\e]*$like[^\n\e]*\n\z/, 'with a sentence');
}


# Runs a command on a terminal.

sub terminal { ($h->run('script', '-qec', $_[0], '/dev/null'))[1] }


# One upload of a file; further headers, or files.

sub upload {
    my ($sandbox, @files) = @_;

    my $headers = ref $files[-1] ? pop @files : [];
    my $r = $t->post("/v1/sandboxes/$sandbox/proxy/44772/files/upload",
        headers => [ 'Content-Type: multipart/form-data; boundary=B', @$headers ],
        body => SandboxTest::upload_body(@files));

    return $t->record($r, sandbox => $sandbox);
}
