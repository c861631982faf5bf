#!/usr/bin/perl

# Terminals on record: real shells of the local runtime, opened, typed into,
# resized, interrupted, left, taken over and opened again; what is recorded is
# what the client got, each byte once, and no password.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Encode ();
use JSON::PP;
use SandboxTest;
use Test::More;
use Time::HiRes qw(time);

my $scale = $ENV{T_SCALE} || 1;
my $t = SandboxTest->new(runtime => 1, runtime_args => [ '--grace=0' ],
                         workers => 2)->start;
my $json = JSON::PP->new->utf8->canonical;

my $r = $t->post('/v1/sandboxes', headers => [ 'Content-Type: application/json' ],
    body => $json->encode({
    image => { uri => 'python:3.11' }, timeout => 600,
    resourceLimits => { cpu => '1' }, entrypoint => [ qw(tail -f /dev/null) ] }));
is($r->status, 202, 'a sandbox is made');
my $id = $r->json->{id};
my $execd = "/v1/sandboxes/$id/proxy/44772";
ok($t->wait_for(sub { $t->get("$execd/ping")->status == 200 }), 'it is ready');

sub session { return $t->post("$execd/pty", body => '{}')->json->{session_id} }


# A terminal as a client sees it: {out}, the bytes shown; {live}, without what
# was replayed; {replay}, where that began.

sub terminal {
    my ($pty, $query) = @_;

    my $self = { ws => $t->websocket("$execd/pty/$pty/ws" . ($query // '')),
                 out => '', live => '', texts => [] };
    is($self->{ws}->status, 101, 'opened' . ($query ? " with $query" : ''));

    return bless $self, 'T';
}

sub T::until {
    my ($self, $regex, $timeout) = @_;

    my $ok = $self->{out} =~ $regex;

    while (!$ok) {
        my $f = $self->{ws}->recv($timeout // 20) // last;
        my $p = $f->{payload};

        if ($f->{op} == 2 && $p =~ /^[\x01\x02]/) {
            $self->{out} .= substr $p, 1;
            $self->{live} .= substr $p, 1;

        } elsif ($f->{op} == 2) {
            $self->{replay} = unpack 'x Q>', $p;
            $self->{out} .= substr $p, 9;

        } elsif ($f->{op} == 1) {
            push @{ $self->{texts} }, $p;

        } else {
            $self->{code} = unpack 'n', $p if $f->{op} == 8;
            $ok = $f->{op} == 8 && 'close' =~ $regex;
            last;
        }

        $ok = $self->{out} =~ $regex;
    }

    return $ok;
}

sub T::type { $_[0]{ws}->send(2, "\x00$_[1]") }
sub T::text { $_[0]{ws}->send(1, $json->encode($_[1])) }
sub T::record { $t->record($_[0]{ws}->response) }

# Key by key, each when the one before has been shown.
sub T::keys {
    my ($self, $text) = @_;

    for my $key (split //, $text) {
        my $before = length $self->{out};
        $self->type($key);
        $self->until(qr/^.{$before}./s);
    }
}

sub T::run {
    my ($self, $command, $until) = @_;

    $self->keys($command);
    $self->type("\r");

    return $self->until($until);
}

# ... and waits for the next prompt.
sub T::prompt {
    my $self = shift;

    return $self->run(@_) && $self->until(qr/[\$#] \z/);
}

# What happened in it, as [seconds, code, ...].
sub events {
    my $e = shift;

    return map { @{ $json->decode($_->{events}) } } $t->history->query($id,
        "select events from gateway_terminal where event_id = '$e->{event_id}'"
        . ' order by n');
}

sub of { my $code = shift; return map { [ @$_[2 .. $#$_] ] } grep { $_->[1] eq $code } @_ }
sub typed { return join '', map { $_->[0] } of(i => @_) }
sub commands { return map { $_->[0] } of(c => @_) }
sub output { return $t->history->output($_[0]{event_id}, $_[1] // 'stdout', $id) }


# --- one session ------------------------------------------------------------------------

my $pty = session();
my $term = terminal($pty);
ok($term->until(qr/\$ |# /), 'a prompt');
$term->text({ type => 'resize', cols => 100, rows => 30 });
ok($term->prompt('echo sum=$((20+22))', qr/sum=42/), 'a command');
ok($term->prompt('stty size', qr/30 100/), 'it has the size asked for');
ok($term->prompt("printf '\\033[31mred\\033[m \\344\\275\\240\\345\\245\\275\\n'",
              qr/31mred.*\xe4\xbd\xa0/s), 'colours, CJK');
ok($term->run('sh -c "echo on; exec sleep 60"', qr/\ron\r\n/), 'a command that takes long');
$term->type("\x03");
ok($term->until(qr/\^C\r\n.*# \z/s), 'is interrupted');
ok($term->run('sh -c "echo still; exec sleep 60"', qr/\rstill\r\n/), 'another one');
$term->text({ type => 'signal', signal => 'SIGINT' });
$term->type("\x03");
ok($term->until(qr/\^C.*\^C\r\n.*# \z/s), 'is interrupted, too');

# C046: characters cut anywhere, bytes that are none
ok($term->prompt(q(printf '\342'; sleep .1; printf '\224\200 \377 end\n'), qr/\x80 \xff end/),
   'C046: a character in two pieces, a byte that is none');

# C058: no hidden input: a password is asked for, and echoed is nothing
my $password = $t->secret('pw-' . SandboxTest::random_text(16));
ok($term->run('read -s -p "Password: " P; echo got ${#P}', qr/Password: \z/), 'a password');
$term->type($_) for split //, $password;
$term->type("\r");
ok($term->until(qr/got \d+.*# \z/s), 'is read');
ok($term->run('read -s -p "Again: " P; echo again ${#P}', qr/Again: \z/), 'once more');
$term->type("$password\r");
ok($term->until(qr/again \d+.*# \z/s), 'at once');

$term->type("exit 3\r");
ok($term->until(qr/^close$/), 'the end');
is($term->{code}, 1000, 'closed by execd');

my $e = $term->record;
my @events = events($e);
is($e->{operation_type}, 'pty.open', 'on record');
is($e->{status}, 'failed', 'by its exit code');
is($e->{result}{exit_code}, 3, 'which is 3');
is(output($e), $term->{live}, 'its output is what the client got');
is_deeply([ of(r => @events) ], [ [ '100x30' ] ], 'the size');
is_deeply([ of(x => @events) ], [ [ '3' ] ], 'the exit');
is_deeply([ of(s => @events) ], [ [ 'SIGINT' ] ], 'the signal');
is($t->history->value($id, "select mode from gateway_terminals where event_id = '$e->{event_id}'"),
   'pty', 'a terminal, not pipes');
cmp_ok($e->{result}{input_hidden_bytes}, '>=', 2 * 20, 'what was not echoed is counted');
is($e->{result}{stdout_bytes}, length $term->{live}, 'so is output');
is($e->{result}{stdout_total_bytes}, length $term->{live}, 'all of it is kept');
is($e->{result}{line_ends}, undef, 'as it came');
like(typed(@events), qr/stty size\r/, 'what was echoed is kept');
like(typed(@events), qr/\x03/, 'so is Ctrl-C');
my @commands = commands(@events);
ok((grep { $_ eq 'stty size' } @commands), 'commands are derived') or diag("@commands");
cmp_ok($t->history->value($id, "select count(*) from gateway_terminal where event_id = '$e->{event_id}'"),
       '<', @events / 2, 'in few rows');


# --- its recording -----------------------------------------------------------------------

sub cast {
    my ($e, @args) = @_;

    open my $fh, '-|', "$FindBin::Bin/../build/sandbox-history", 'cast', '--history',
        $t->dir . '/data/history', @args, $e->{event_id} or die;
    local $/;
    my $text = <$fh>;
    close $fh;

    my ($head, @lines) = map { $json->decode($_) } split /\n/, $text;

    return ($head, $text, @lines);
}

sub shown { return join '', map { $_->[2] } grep { $_->[1] eq 'o' } @_ }

my $client = Encode::decode('UTF-8', $term->{live});
my ($head, $v2, @v2) = cast($e);
is_deeply([ @$head{qw(version width height)} ], [ 2, 80, 24 ], 'version 2');
is(shown(@v2), $client, 'C046: shows what the client saw, each character once');
is_deeply([ sort { $a <=> $b } map { $_->[0] } @v2 ], [ map { $_->[0] } @v2 ], 'in order');
is_deeply([ map { $_->[2] } grep { $_->[1] eq 'r' } @v2 ], [ '100x30' ], 'its size');
ok((grep { $_->[1] eq 'm' && $_->[2] eq 'derived: stty size' } @v2), 'a derived command');
ok((grep { $_->[1] eq 'i' && $_->[2] eq "stty size\r" } @v2), 'and what was typed');

($head, my $v3, my @v3) = cast($e, '--version', 3);
is_deeply([ $head->{version}, @{ $head->{term} }{qw(cols rows)} ], [ 3, 80, 24 ], 'version 3');
is(shown(@v3), $client, 'shows the same');
is_deeply([ @{ $v3[-1] }[1, 2] ], [ 'x', '3' ], 'with the exit');
my $sum = 0;
$sum += $_->[0] for @v3;
cmp_ok(abs($sum - $v2[-1][0]), '<', 1, 'its times are intervals');

my @idle = cast($e, '--idle-limit', 1);
cmp_ok($idle[-1][0], '<=', $v2[-1][0], 'pauses can be cut');

for my $v (2, 3) {
    $r = $t->get("/console/api/v1/sandboxes/$id/operations/$e->{event_id}/recording?version=$v");
    is($r->status, 200, "version $v by the API");
    is($r->{body}, $v == 2 ? $v2 : $v3, 'the same');
    $r = $t->get("/console/api/v1/operations/$e->{event_id}/recording?version=$v");
    is($r->status, 200, 'also without its sandbox');
    is($r->{body}, $v == 2 ? $v2 : $v3, 'the same');
}

is($t->get("/console/api/v1/$_/nope/recording")->status, 404, 'no such')
    for 'operations', "sandboxes/$id/operations";
is($t->get("/console/api/v1/sandboxes/$id/operations/$e->{event_id}/recording?version=4")->status,
   400, 'no such version');
is($t->get("/console/api/v1/sandboxes/$id/operations/$e->{event_id}/recording",
           token => undef)->status, 401, 'not for everybody');

# what is told of it: derived commands, labelled

open my $fh, '-|', "$FindBin::Bin/../build/sandbox-history", 'show', '--json', '--history',
    $t->dir . '/data/history', $e->{event_id} or die;
my $whole = $json->decode(do { local $/; <$fh> });
close $fh;
is($whole->{terminal}{session}, $pty, 'a record names its session');
my ($stty) = grep { $_->{command} eq 'stty size' } @{ $whole->{terminal}{commands} };
ok($stty && $stty->{derived}, 'and commands, as derived ones');
like($stty->{at}, qr/^\d{4}-.*\.\d{6}Z$/, 'with their time');

# of a command

$r = $t->post("$execd/command", body => $json->encode({
    command => 'echo one; sleep 0.3; echo two >&2; exit 4' }));
my $c = $t->record($r);
my (undef, undef, @c) = cast($c, '--version', 3);
is(shown(@c), "one\r\ntwo\r\n", 'of a command both streams');
cmp_ok($c[1][0], '>', 0.2, 'with their times');
is_deeply([ @{ $c[-1] }[1, 2] ], [ 'x', '4' ], 'and its exit');


# --- opened again ------------------------------------------------------------------------

# C051: what is sent again is recorded once; across workers and a helper that was restarted
$pty = session();
my $one = terminal($pty, '?since=0');
$one->until(qr/# \z/);
ok($one->prompt('seq 1 100', qr/\n100\r\n/), 'C051: 100 lines');
$one->{ws}->conn->reset;
my $first = $one->record;
is($first->{wire}{reason}, 'client_disconnected', 'cut');

$t->kill_helper;
$t->start_helper;

my $two = terminal($pty, '?since=0');
$two->until(qr/\n100\r\n.*# \z/s);
is($two->{replay}, 0, 'all of it comes again');
ok($two->prompt('seq 101 110', qr/\n110\r\n/), '10 new lines');
$two->{ws}->close_frame(1000);
my $second = $two->record;
is(output($first) . output($second), $two->{out}, 'recorded once');
my $lines = () = (output($first) . output($second)) =~ /^(?:\e\[\?2004l\r)?\d+\r$/mg;
is($lines, 110, '110 lines');
my ($p) = of(p => events($second));
is($p->[0], 0, 'the replay is noted');
cmp_ok($p->[1], '>=', length output($first), 'with its size');
is($second->{result}{replayed_bytes}, $p->[1], 'which is counted');

# what came while nobody was there, and a hole
my $three = terminal($pty, '?since=' . length $two->{out});
$three->type("(sleep 0.5; echo while away)\r");
$three->until(qr/away\)/);
$three->{ws}->close_frame(1000);
$three->record;
$t->wait_for(sub { $t->get("$execd/pty/$pty")->json->{output_offset}
                   >= length("$two->{out}$three->{out}") + 12 });
my $four = terminal($pty, '?since=' . length($two->{out} . $three->{out}));
ok($four->until(qr/while away/), 'output of meanwhile');
$four->{ws}->close_frame(1000);
$e = $four->record;
like(output($e), qr/while away/, 'is on record');
is_deeply([ of(h => events($e)) ], [], 'without a hole');

my $fresh = session();
my $five = terminal($fresh);
$five->until(qr/# \z/);
$five->{ws}->close_frame(1000);
$five->record;
$t->history->value($id, 'select 1');
my $from = length($five->{out}) - 3;
my $six = terminal($fresh, "?since=$from");
$six->until(qr/# \z/);
is($six->{replay}, $from, 'the end of it again');
# taken over (C049)
my $seven = terminal($fresh, '?since=0&takeover=1');
$six->until(qr/^close$/);
is($six->{code}, 4001, 'taken over');
$seven->until(qr/# \z/);
is($six->record->{status}, 'cancelled', 'on record');
is(output($six->record), '', 'with nothing new');
$seven->type("exit\r");
$seven->until(qr/^close$/);
is(output($five->record) . output($seven->record), $seven->{out}, 'nothing twice, nothing missing');


# --- pipes ----------------------------------------------------------------------------------

my $pipe = terminal(session(), '?pty=0');
$pipe->type("echo out; echo err >&2; exit 2\n");
$pipe->until(qr/^close$/);
$e = $pipe->record;
is(output($e, 'stdout'), "out\n", 'pipe mode: stdout');
is(output($e, 'stderr'), "err\n", 'and stderr');
is(typed(events($e)), '', 'nothing is echoed, nothing kept');


# --- much -----------------------------------------------------------------------------------

# C058: beyond the limit it is cut and counted, and Ctrl-C works
my $much = terminal(session());
$much->until(qr/# \z/);
$much->type("yes 0123456789012345678901234567890123456789 | head -c @{[ 20_000_000 * $scale ]}; echo end-\$((6*7))\r");
my $got = 0;
while (my $f = $much->{ws}->recv(30)) {
    next if $f->{op} != 2;
    $got += length($f->{payload}) - 1;
    $much->{tail} = substr(($much->{tail} // '') . $f->{payload}, -200);
    last if $much->{tail} =~ /end-42/;
}
cmp_ok($got, '>', 20_000_000 * $scale, 'C058: 20 MB pass');
$much->type("yes\r");
$much->until(qr/y\r\ny\r\n/);
my $at = time;
$much->type("\x03");
while (my $f = $much->{ws}->recv(10)) {
    $got += length($f->{payload}) - 1 if $f->{op} == 2;
    last if $f->{payload} =~ /\^C/;
}
cmp_ok(time - $at, '<', 10, 'Ctrl-C works');
$much->{ws}->close_frame(1000);
$e = $much->record;
my $all = length(output($e)) + length typed(events($e));
cmp_ok($all, '<=', 16 * 1024 * 1024, '16 MiB are kept');
cmp_ok($all, '>', 16 * 1024 * 1024 - 1000, 'not less');
is($e->{result}{history_storage_state}, 'truncated_by_policy', 'the cut is marked');
cmp_ok($e->{result}{output_dropped_bytes}, '>', 3_000_000, 'the rest is counted');


# --- C119 ------------------------------------------------------------------------------------

my $broken = terminal(session());
$broken->until(qr/# \z/);
ok($t->wait_for(sub { $t->history->value($id, 'select count(*) from gateway_terminal t join'
    . " history_events using (event_id) where status = 'started'") }), 'on record');
system('sqlite3', $t->history->path_of($id), 'create trigger no_more before insert on'
    . " gateway_terminal begin select raise(abort, 'not today'); end");
ok($broken->prompt('echo go on', qr/\rgo on/), 'C119: the table cannot be written, it goes on');
my ($gap) = $t->wait_for(sub { grep { ($_->{result}{reason} // '') eq 'recording_failed' }
                               $t->history->events($id) });
ok($gap, 'the timeline says so');
is(($gap // {})->{result}{operation_id}, $broken->{ws}->response->header('X-Operation-Id'),
   'of this session') if ref $gap;
$broken->{ws}->close_frame(1000);
$e = $broken->record;
like(output($e), qr/go on/, 'its output is on record');

$t->stop;

# --- C051: a replay that begins behind what we have ------------------------------------------

{
    my $f = SandboxTest->new->start;
    my ($execd, $ws) = '/v1/sandboxes/f1/proxy/44772';
    $f->sandbox('f1');

    my $open = sub {
        my ($frame, $until) = @_;
        $f->up->script("GET $execd/pty/p1/ws?since=0", [ 'ws_accept' ],
                       [ frame => 2, $frame ], [ ws_recv => 1 ],
                       [ frame => 8, pack 'n', 1000 ]);
        $ws = $f->websocket("$execd/pty/p1/ws?since=0");
        $ws->recv_until(sub { $_[0]{payload} eq $frame });
        $ws->close_frame(1000);
        $ws->recv_until(sub { $_[0]{op} == 8 });
        $ws->close;
        return $f->record($ws->response);
    };

    $open->("\x01before");
    my $late = $open->("\x03" . pack('Q>', 100) . 'behind');
    my @row = map { @{ $json->decode($_->{events}) } } $f->history->query('f1',
        "select events from gateway_terminal where event_id = '$late->{event_id}' order by n");

    is_deeply([ of(h => @row) ], [ [ 6, 100 ] ], 'C051: what nobody saw is a hole on record');
    is_deeply([ of(p => @row) ], [ [ 100, 6, 6 ] ], 'C051: what is behind it is new');
    is($f->history->output($late->{event_id}, 'stdout', 'f1'), 'behind', 'C051: and kept');
    my @lines = map { $json->decode($_) } split /\n/,
        $f->get("/console/api/v1/operations/$late->{event_id}/recording")->{body};
    is_deeply([ map { "$_->[1] $_->[2]" } @lines[1 .. $#lines] ],
              [ 'm not recorded: 94 bytes', 'o behind' ], 'C051: its recording says so');
    $f->stop;
}

# the chain covers what terminals showed, too
{
    my ($path) = grep {
        `sqlite3 $_ 'select count(*) from gateway_terminal'` > 0
    } glob $t->dir . '/data/history/*/history.sqlite3';
    my $verify = "$SandboxProcess::BUILD/sandbox-history --database $path verify 2>&1";

    my $v = `$verify`;
    is($? >> 8, 0, 'the history of the terminals verifies') or diag($v);

    system('sqlite3', $path, "update gateway_terminal set events ="
           . " replace(events, ',', ', ') where n = 0") == 0 or die;
    $v = `$verify`;
    is($? >> 8, 1, 'a recording that was changed does not');
    like($v, qr/"kind":"changed"/, 'and is named');
}

done_testing;
