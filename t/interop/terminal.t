#!/usr/bin/perl

# A terminal session (20 MB of output, a second size in the middle of it, vim, top,
# colours, CJK) rendered by a terminal emulator ends on the same screen, recorded
# or as the client saw it; Debian's
# asciinema opens version 2, the player of npm (asciinema-player) both.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Encode ();
use JSON::PP;
use SandboxInterop;
use SandboxTest;
use Test::More;

my $python = SandboxInterop::python('interop-terminal', 'requirements-terminal.txt');
my $json = JSON::PP->new->utf8->canonical;
# 20 MB, as in the case, from T_SCALE=10 on: the emulator takes half a minute for it
my $BULK = ($ENV{T_SCALE} // 1) >= 10 ? 20_000_000 : 1_000_000;
my $t = SandboxTest->new(runtime => 1, runtime_args => [ '--grace=0' ],
                         location => 'sandbox_capture_limit 0;')->start;
my $r = $t->post('/v1/sandboxes', headers => [ 'Content-Type: application/json' ],
    body => $json->encode({ image => { uri => 'python:3.11' }, timeout => 600,
        resourceLimits => { cpu => '1' }, entrypoint => [ qw(tail -f /dev/null) ] }));
my $id = $r->json->{id};
my $execd = "/v1/sandboxes/$id/proxy/44772";
ok($t->wait_for(sub { $t->get("$execd/ping")->status == 200 }), 'a sandbox');

my $pty = $t->post("$execd/pty", body => '{}')->json->{session_id};
my $ws = $t->websocket("$execd/pty/$pty/ws");
$ws->send(1, '{"type":"resize","cols":100,"rows":30}');
my $out = '';

# Types, and reads until the output since then matches.
sub type {
    my ($keys, $until) = @_;

    my $from = length $out;
    $ws->send(2, "\x00$keys") if length $keys;

    while (substr($out, $from) !~ $until) {
        my $f = $ws->recv(20) // return fail("no $until");
        $out .= substr $f->{payload}, 1 if $f->{op} == 2;
        return if $f->{op} == 8;
    }

    return pass("typed, saw $until");
}

type('', qr/[#\$] \z/);
type("export TERM=xterm-256color; stty size\r", qr/30 100.*[#\$] \z/s);
# much, and another size in the middle of it
my @sizes;
my $from = length $out;
$ws->send(2, "\x00yes 0123456789012345678901234567890123456789 | head -c $BULK; echo bulk-\$((6*7))\r");

while (substr($out, -200) !~ /bulk-42\r\n.*[#\$] \z/s) {
    my $f = $ws->recv(60) // last;
    $out .= substr $f->{payload}, 1 if $f->{op} == 2;
    last if $f->{op} == 8;

    if (!@sizes && length($out) - $from > $BULK / 2) {
        @sizes = length($out) . ':90x25';
        $ws->send(1, '{"type":"resize","cols":90,"rows":25}');
    }
}

cmp_ok(length($out) - $from, '>', $BULK, "$BULK bytes of output");
is(scalar @sizes, 1, 'another size in the middle');
type("stty size\r", qr/25 90.*[#\$] \z/s);

type("vim -u NONE /tmp/t.txt\r", qr/\x1b\[\d*;?\d*H.*t\.txt/s);
type("ihello \xe4\xbd\xa0\x1b:wq\r", qr/written.*[#\$] \z/s);
type("top -b -n 1 | head -5; top -n 1 -d 0.1; echo top-\$?\r", qr/top-0\r\n.*[#\$] \z/s);
type("printf '\\033[1;31mred\\033[0m \\033[42mgreen\\033[m \\344\\275\\240\\345\\245\\275 \\xff\\n'\r",
     qr/\x1b\[1;31mred.*[#\$] \z/s);
type("echo the-\$((40+2))-end\r", qr/the-42-end\r\n.*[#\$] \z/s);
$ws->close_frame(1000);
my $e = $t->record($ws->response);

is($e->{result}{stdout_total_bytes}, length $out, 'all of it is on record');
is($e->{result}{output_dropped_bytes} // 0, 0, 'and nothing left out');

my $dir = $t->dir . '/cast';
mkdir $dir;
SandboxTest::write_file("$dir/raw", $out);

sub screen {
    open my $fh, '-|', $python, "$FindBin::Bin/screen.py", @_ or die;
    local $/;

    return <$fh>;
}

my $want = screen(raw => "$dir/raw", '0:100x30', @sizes);
like($want, qr/the-42-end/, 'the screen of the client');
like($want, qr/"red"/, 'with its colours');
is(scalar @{ $json->decode($want)->[0] }, 25, 'of the size that it had in the end');

for my $v (2, 3) {
    SandboxTest::write_file("$dir/$v", $t->get(
        "/console/api/v1/sandboxes/$id/operations/$e->{event_id}/recording?version=$v")->content);
    is(screen(cast => "$dir/$v"), $want, "version $v ends on the same screen");
}

# it wants a terminal of its own
my $shown = `LC_ALL=C.UTF-8 script -qec 'asciinema cat $dir/2' $dir/err < /dev/null`;
like($shown, qr/the-42-end/, 'asciinema opens version 2')
    or diag(SandboxTest::read_file("$dir/err"));
(my $text = $out) =~ s/\xff/\xef\xbf\xbd/g;
tr/\r//d for $shown, $text;
ok(index($shown, $text) >= 0, 'and shows what the client saw');

# The player, in a browser: its last screen.

my ($node, $program) = SandboxInterop::node();
my $chromium = SandboxProcess::find_program('chromium');
-x $chromium or die "chromium is missing: run .ci/deps test\n";
my $player = SandboxTest::read_file($program =~ s{[^/]+\z}{}r
    . 'node_modules/asciinema-player/dist/bundle/asciinema-player.min.js');
# pyte has an empty cell behind each that takes two
my @lines = map { Encode::encode('UTF-8', s/\s+\z//r) } grep { /\S/ }
            @{ $json->decode($want)->[0] };
cmp_ok(scalar @lines, '>', 2, 'lines on the screen');

for my $v (2, 3) {
    my $played = played(SandboxTest::read_file("$dir/$v"));
    my @missing = grep { index($played, $_) < 0 } @lines;
    is_deeply(\@missing, [], "asciinema-player ends on that screen, version $v")
        or diag($played);
}

$t->stop;
done_testing;


sub played {
    my $cast = shift;

    # as a string of JavaScript that no HTML parser stumbles over
    my $text = JSON::PP->new->ascii->allow_nonref->encode(Encode::decode('UTF-8', $cast));
    $text =~ s{</}{<\\/}g;
    (my $code = $player) =~ s{</script}{<\\/script}g;

    SandboxTest::write_file("$dir/player.html", <<"EOF2");
<!doctype html><meta charset="utf-8"><div id="player"></div><pre id="out"></pre>
<script>$code</script>
<script>
const out = document.getElementById('out');
const say = (...text) => { out.textContent += text.join(' '); };
const quiet = () => {};
const p = AsciinemaPlayer.create({ data: $text }, document.getElementById('player'),
    { preload: true, logger: { debug: quiet, info: quiet, log: quiet, warn: say, error: say } });
p.addEventListener('ready', async () => {
    await p.seek('100%');
    setTimeout(() => say([...document.querySelectorAll('.ap-line')]
                         .map(line => line.textContent).join('\\n') + '\\nEND'), 500);
});
</script>
EOF2

    my $all = `'$chromium' --headless=new --no-sandbox --disable-gpu --virtual-time-budget=20000 --user-data-dir='$dir/browser' --dump-dom 'file://$dir/player.html' 2>$dir/browser.err`;
    my ($shown) = $all =~ m{<pre id="out">(.*?)</pre>}s;
    my %char = (lt => '<', gt => '>', amp => '&', nbsp => ' ');
    $shown //= '';
    $shown =~ s/&(lt|gt|amp|nbsp);/$char{$1}/g;

    return $shown;
}
