#!/usr/bin/perl

# The gateway in front of the local runtime: real processes.  What a client gets
# is what is on record, a real shell is opened, typed into and left, and nothing
# inside a sandbox sees a credential of ours or of upstream's.

use strict;
use warnings;

use Encode qw(encode_utf8);
use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA qw(sha256_hex);
use JSON::PP;
use SandboxTest;
use Test::More;

my $t = SandboxTest->new(runtime => 1, runtime_args => [ '--grace=0' ])->start;
my $json = JSON::PP->new->utf8->canonical;

my $r = $t->post('/v1/sandboxes',
    headers => [ 'Content-Type: application/json' ], body => $json->encode({
    image => { uri => 'python:3.11' }, timeout => 600,
    resourceLimits => { cpu => '1' }, entrypoint => [ qw(tail -f /dev/null) ],
    metadata => { 'agent_sandbox.name' => 'real' } }));
is($r->status, 202, 'a sandbox is made');
my $id = $r->json->{id};
my $execd = "/v1/sandboxes/$id/proxy/44772";

ok($t->wait_for(sub { $t->get("$execd/ping")->status == 200 }), 'it is ready');


# --- by either road ---------------------------------------------------------------------

for my $road (qw(server-proxy straight)) {
    $t->endpoint($id) if $road eq 'straight';

    my ($got, $e) = command('printf "a\n\nb"; printf "\xe4\xbd\xa0\xe5\xa5\xbd\n" >&2; exit 4');
    is($e->{wire}{route}, $road, "$road: a command");
    is($e->{status}, 'failed', 'which fails');
    is($e->{command}{exit_code}, 4, 'with its exit code');
    is($t->history->output($e->{event_id}, 'stdout', $id), "a\n\nb\n",
       'stdout by the rule');
    is($t->history->output($e->{event_id}, 'stderr', $id),
       "\xe4\xbd\xa0\xe5\xa5\xbd\n", 'stderr by the rule');
    is($got->{stdout}, "a\n\nb\n", 'which is what the client got');
}

# A line of 5 MB, carriage returns, an exact copy of what came.

for my $case ([ '5 MB', q(head -c 5242880 /dev/zero | tr '\0' x; echo) ],
              [ 'carriage returns', q(for i in 1 2 3; do printf "\r$i%%"; done; echo) ],
              [ 'many lines', q(seq 1 20000) ])
{
    my ($name, $command) = @$case;
    my ($got, $e) = command($command);
    my $kept = $t->history->output($e->{event_id}, 'stdout', $id);
    cmp_ok(length $kept, '>', 3, "$name: output");
    ok($kept eq $got->{stdout}, 'on record as the client received it');
    is($e->{status}, 'succeeded', 'a good run');
}

# Time-out and interrupt.

my ($got, $e) = command('sleep 30', timeout => 300);
is($e->{status}, 'timeout', 'a command over its time');

my $c = $t->connect;
$c->write($c->build(POST => "$execd/command", body => '{"command":"sleep 30"}',
                    headers => [ $t->credential ]));
my $run = $c->response(head_only => 1);
my $first = '';
$first .= $c->{buf} while $c->fill(time + 5) && $c->{buf} !~ /"text":"([0-9a-f]{32})"/;
my ($cid) = $c->{buf} =~ /"text":"([0-9a-f]{32})"/;
is($t->delete("$execd/command?id=$cid")->status, 200, 'interrupted');
$c->body($run);
is($t->record($run)->{status}, 'cancelled', 'and so on record');

# Background: its start is not its end; a status answer that passes is.

$r = $t->post("$execd/command",
              body => '{"command":"echo bg; sleep 0.3; exit 6","background":true}');
($cid) = $r->content =~ /"text":"([0-9a-f]{32})"/;
is($t->record($r, started => 1)->{status}, 'started', 'a background command');

my $status;
ok($t->wait_for(sub {
    $status = $t->get("$execd/command/status/$cid")->json;
    return !$status->{running};
}), 'which is over some time later');
is($status->{exit_code}, 6, 'as a status answer says');
$e = $t->record($r);
is($e->{status}, 'failed', 'ends on record');
is($e->{command}{exit_code}, 6, 'with its exit code');

$r = $t->get("$execd/command/$cid/logs?cursor=0");
is($r->content, "bg\n", 'its output');
is($r->header('Execd-Commands-Tail-Cursor'), 3, 'and how far that is');


# Code in kernels: text as it came, an error although it says complete as well.

for ([ "print('a\\nb', end='')\n1/0", 'failed', "a\nb" ],
     [ "print('a')", 'succeeded', "a\n" ])
{
    my ($code, $end, $out) = @$_;
    $r = $t->post("$execd/code", body => $json->encode(
        { context => { language => 'python' }, code => $code }));
    $e = $t->record($r);
    is($e->{status}, $end, "python: $end");
    is($t->history->output($e->{event_id}, 'stdout', $id), $out,
       'with its output as it was');
}


# --- files -------------------------------------------------------------------------------

my $bytes = join '', map { chr } 0 .. 255;
my $part = sub { "--B\r\nContent-Disposition: form-data; name=\"$_[0]\"; "
                 . "filename=\"f\"\r\n\r\n$_[1]\r\n" };
$r = $t->post("$execd/files/upload",
    headers => [ 'Content-Type: multipart/form-data; boundary=B' ],
    body => $part->('metadata', '{"path":"/workspace/a b.bin","mode":640}')
            . $part->('file', $bytes) . "--B--\r\n");
is($r->status, 200, 'an upload');
is($r->header('Content-Length'), 0, 'answered with Content-Length: 0');
$e = $t->record($r);
is($e->{files}[0]{sha256}, sha256_hex($bytes), 'its digest on record');

$r = $t->get("$execd/files/download?path=%2Fworkspace%2Fa%20b.bin");
ok($r->content eq $bytes, 'comes back whole');
($got) = command('sha256sum "/workspace/a b.bin"');
like($got->{stdout}, qr/^@{[ sha256_hex($bytes) ]} /, 'and is what a command sees');

$r = $t->get("$execd/v1/isolated/capabilities");
is($r->status, 404, 'an execd route of the future: 404 passes');
is($t->record($r)->{operation_type}, 'isolated.capabilities', 'and has a name');


# --- no credential inside ------------------------------------------------------------------

($got) = command('env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr "\0" "\n";'
                 . ' find / -xdev -type f -size -64k -newermt "-10 minutes"'
                 . ' -not -path "/proc/*" -exec cat {} + 2>/dev/null');
cmp_ok(length $got->{stdout}, '>', 50, 'what a process inside can see');
unlike($got->{stdout}, qr/\Q$_/, 'holds no credential')
    for @{ $t->{secrets} };


# --- a terminal ------------------------------------------------------------------------------

$r = $t->post("$execd/pty", body => '{"cwd":"/workspace"}');
is($r->status, 201, 'a terminal is made');
my $pty = $r->json->{session_id};
my $ws = $t->websocket("$execd/pty/$pty/ws?since=0");
is($ws->status, 101, 'and opened');

my $seen = '';
my $read = sub {
    my $until = shift;
    $ws->recv_until(sub {
        $seen .= substr $_[0]{payload}, 1 if $_[0]{op} == 2;
        return $seen =~ $until;
    }, 10);
};

$ws->send(2, "\x00echo in-\$((6*7)); pwd\n");
$read->(qr{/workspace\r\n});
like($seen, qr/in-42/, 'what is typed is run');
$ws->send(1, '{"type":"resize","cols":100,"rows":30}');
$ws->send(2, "\x00stty size\n");
$read->(qr/30 100/);
like($seen, qr/30 100/, 'it has the size that was asked for');

my $other = $t->websocket("$execd/pty/$pty/ws");
is($other->status, 409, 'a second client is refused by execd');
is($t->record($other->response)->{status}, 'failed', 'and so on record');

$ws->send(2, "\x00exit 5\n");
my @f = $ws->recv_until(sub { $_[0]{op} == 8 }, 10);
ok((grep { $_->{op} == 1 && $_->{payload} =~ /"exit_code":5/ } @f), 'it exits');
is(unpack('n', $f[-1]{payload}), 1000, 'and closes');
$e = $t->record($ws->response);
is($e->{operation_type}, 'pty.open', 'on record');
is($e->{result}{exit_code}, 5, 'with its exit code');
is($t->delete("$execd/pty/$pty")->status, 200, 'deleted');


# --- the end ------------------------------------------------------------------------------------

is($t->delete("/v1/sandboxes/$id")->status, 204, 'the sandbox is deleted');
$r = $t->post("$execd/command", body => '{"command":"echo"}');
is($r->status, 404, 'and is not found any more');

my @all = $t->records($id);
is_deeply([ map { $_->{record_seq} } @all ], [ 1 .. @all ], 'numbers have no gap');
is(scalar(grep { $_->{status} eq 'started' } @all), 0, 'every record has ended');

$t->stop;
done_testing;


# Runs a command; what the client received as { stdout, stderr } by the output
# rule, and the record.

sub command {
    my ($command, %o) = @_;

    my $r = $t->post("$execd/command", timeout => 40,
        body => $json->encode({ command => $command, %o }));
    my %got = (stdout => '', stderr => '');

    for my $line (grep { length } split /\n/, $r->content) {
        my $event = eval { $json->decode($line) } or next;
        next if !exists $got{$event->{type} // ''};
        my $text = encode_utf8($event->{text} // '');
        $got{$event->{type}} .= $text eq "\n" ? $text : "$text\n";
    }

    return (\%got, $t->record($r, sandbox => $id, timeout => 20));
}
