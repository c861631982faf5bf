#!/usr/bin/perl

# Terminals on record: real shells of the local runtime, opened, typed into,
# resized, interrupted, left, taken over and opened again; what is recorded is
# what the client got, each byte once, and no password.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

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

$t->stop;
done_testing;
