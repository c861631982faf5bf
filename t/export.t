#!/usr/bin/perl

# Exports: exactly the records that pass, in three forms that are safe to open,
# never silently cut; and that exports, verifications and reading are on record
# themselves.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use JSON::PP qw(decode_json encode_json);
use RunProgram qw(run_program);
use SandboxLive;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $API = '/console/api/v1';
my $PATIENCE = $ENV{SANDBOX_TEST_PATIENCE} // 1;
my $MANY = 300 * ($ENV{T_SCALE} // 1);

my $t = SandboxTest->new->start;
$t->sandbox($_) for qw(s1 s2);

sub command {
    my ($sandbox, $text) = @_;

    return $t->post("/v1/sandboxes/$sandbox/proxy/44772/command",
                    body => encode_json({ command => $text }));
}


sub export {
    my ($query, %o) = @_;

    my $r;
    my $deadline = time + 15 * $PATIENCE;

    # while the machine is busy the index may need its time
    do {
        $r = $t->get("$API/export?$query", %o);
    } while ($r->status == 503 && time < $deadline);

    return $r;
}


# RFC 4180.

sub csv {
    my ($text) = @_;

    my @rows = ([]);

    while ($text =~ /\G(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|\z)/gc) {
        my ($quoted, $plain, $end) = ($1, $2, $3);

        push @{ $rows[-1] }, defined $quoted ? $quoted =~ s/""/"/gr : $plain;
        last if pos($text) >= length $text;
        push @rows, [] if $end eq "\r\n";
    }

    is(pos($text), length $text, 'it is CSV to its end');

    return @rows;
}

my @evil = ('=cmd|" /C calc"!A1', '+1+1', '-2+3', '@SUM(1)', "\tx", "\rx",
            'a,b', "two\nlines", '"quoted"', "it's", '<script>alert(1)</script>',
            "</td>&amp;<img src=x onerror=alert(1)>", "\x{1b}[31mred", 'plain');

for (@evil) {
    is(command('s1', $_)->status, 200, 'a command passes');
}

is($t->post('/v1/sandboxes/s2/proxy/44772/files/mv',
            body => '[{"src":"/a","dest":"/b"}]')->status, 200, 'a file moves');


# --- JSON lines -------------------------------------------------------------------

my $r = export('type=command.*');
is($r->status, 200, 'an export');
is($r->header('Content-Type'), 'application/x-ndjson', 'of JSON lines');
like($r->header('Content-Disposition'), qr/^attachment; filename="\S+\.jsonl"$/,
     'to keep');
is($r->header('Cache-Control'), 'no-store', 'but not for caches');
ok($r->complete, 'it is whole');

my @lines = map { decode_json($_) } split /\n/, $r->content;
my $tail = pop @lines;
is_deeply($tail, { export => { complete => JSON::PP::true,
                               records => scalar @evil } },
          'its last line says so');
is_deeply([ map { $_->{summary} } @lines ], \@evil, 'every command, in order');
is(scalar(grep { $_->{request}{command} eq $_->{summary} && $_->{result} } @lines),
   scalar @evil, 'with request and result');

my %listed = map { $_->{id} => $_ } @{
    $t->get("$API/operations?type=command.*&limit=500")->json->{items} };
delete @{$_}{qw(request result)} for @lines;
is_deeply({ map { $_->{id} => $_ } @lines }, \%listed,
          'but for these each is the record as listed');


# --- CSV --------------------------------------------------------------------------

$r = export('type=command.*&format=csv');
like($r->header('Content-Type'), qr{^text/csv}, 'CSV');

my ($head, @rows) = csv($r->content);
my $end = pop @rows;
is_deeply([ @{$end}[0, 1] ], [ '#end', scalar @evil ], 'its last row says so');
my ($summary) = grep { $head->[$_] eq 'summary' } 0 .. $#$head;
is(scalar(grep { @$_ == @$head } @rows, $end), @evil + 1,
   'all rows have as many cells');
is_deeply([ map { $_->[$summary] } @rows ],
          [ map { /^[=+\-\@\t\r]/ ? "'$_" : $_ } @evil ],
          'what a program would take for a formula begins with an apostrophe');
is(scalar(grep { grep { /^[=+\@\t\r]/ || /^-(?!\d+\z)/ } @$_ } @rows), 0,
   'in every cell');


# --- HTML -------------------------------------------------------------------------

$r = export('type=command.*&format=html');
like($r->header('Content-Type'), qr{^text/html}, 'a page');
like($r->header('Content-Security-Policy'), qr/default-src 'none'.*sandbox/,
     'that may do nothing');
my $page = $r->content;
unlike($page, qr/<script/i, 'without a script');
unlike($page, qr/<(?:img|link|iframe|object|embed|base|form)\b/i,
       'and nothing from elsewhere');
like($page, qr/&lt;script&gt;alert\(1\)&lt;\/script&gt;/, 'what agents wrote is text');
unlike($page, qr/[\x00-\x08\x0b-\x1f\x7f]/, 'control characters are shown');
like($page, qr/\@media print/, 'it is made for paper too');
my $n = @evil;
like($page, qr/End of the export: $n records/, 'and says where it ends');


# --- filters, and what is refused -------------------------------------------------

sub summaries {
    my @l = map { decode_json($_) } split /\n/, export($_[0])->content;
    pop @l;
    return map { $_->{summary} } @l;
}

is_deeply([ summaries('sandbox=s2&type=file.*') ], [ '/a -> /b' ], 'one sandbox');
is_deeply([ summaries('path=/b') ], [ '/a -> /b' ], 'a path');
is_deeply([ summaries('type=command.*&q=plain') ], [ 'plain' ], 'full text');
is_deeply([ summaries('actor=nobody') ], [], 'nothing');
is(scalar(grep { $_->{type} =~ /^console\./ } map { decode_json($_) }
          grep { /"type"/ } split /\n/, export('')->content), 0,
   'console.* is not among all');

for my $query ('format=xml', 'status=odd', 'nothing=1', 'format=csv&format=csv',
               'limit=5')
{
    $r = export($query);
    is($r->status, 400, "$query is refused");
    is($r->code, 'GATEWAY_INVALID_PARAMETER', 'and why');
}

is($t->get("$API/export", token => undef)->status, 401, 'a token is needed');


# --- the command line -------------------------------------------------------------

my $program = "$SandboxProcess::BUILD/sandbox-history";

for my $format (qw(jsonl csv html)) {
    my ($status, $out) = run_program($program, '--data', "$t->{dir}/data",
        'export', '--format', $format, '--type', 'command.*', 's1');
    my $api = export("sandbox=s1&type=command.*&format=$format")->content;

    is($status, 0, "sandbox-history export --format $format");
    s/<p>.*?<\/p>//s for $out, $api;     # the page: what and when
    is($out, $api, 'gives the same bytes as the API');
}

my ($status) = run_program($program, '--data', "$t->{dir}/data", 'export',
                           '--format', 'xml');
is($status >> 8, 2, 'another format is refused');


# --- many records, a slow reader, one that leaves ---------------------------------

command('s1', "n $_ " . 'x' x 900) for 1 .. $MANY;

$r = export('type=command.*&q=n');
my %seen;
my @n = grep { /^n \d/ } summaries('type=command.*');
is(scalar @n, $MANY, "$MANY records over many pages");
is(scalar(grep { !$seen{$_}++ } @n), $MANY, 'each once');

my $c = $t->connect;
$c->write($c->build(GET => "$API/export?type=command.*",
                    headers => [ $t->credential ]));
sleep 0.3;
$c->close;

# a cut one: the helper dies in the middle

$c = $t->connect;
setsockopt $c->socket, Socket::SOL_SOCKET(), Socket::SO_RCVBUF(), 4096;
$c->write($c->build(GET => "$API/export?type=command.*&format=csv",
                    headers => [ $t->credential ]));
ok($t->wait_for(sub {
    $c->fill(time + 1) and $c->{buf} =~ /\r\n\r\n/
}), 'an export is on its way');

my $whole = length export('type=command.*&format=csv')->content;
SKIP: {
    skip 'all of it fits into the sockets: needs T_SCALE', 1 if $whole < 4e6;
    $t->kill_helper;
    while ($c->fill(time + 5)) { }
    unlike($c->{buf}, qr/#end/, 'cut, it has no end');
    $t->start_helper;
}
$c->close;


# --- on record --------------------------------------------------------------------

sub console {
    my ($query) = @_;

    return @{ $t->get("$API/operations?$query&order=asc&limit=500")->json->{items} };
}

my @exports;
ok($t->wait_for(sub {
    @exports = console('type=console.export');
    return @exports > 8
           && !grep { $_->{status} eq 'started' } @exports;
}, 10 * $PATIENCE), 'exports are on record');
is(scalar(grep { $_->{sandbox_id} eq '_gateway' && $_->{actor}{id} eq 'tester'
                 && $_->{source} eq 'console' } @exports), scalar @exports,
   'in _gateway, with who did it');

my $whole_record = $t->get("$API/operations/$exports[0]{id}")->json;
is_deeply($whole_record->{request}, { query => 'type=command.*',
                                      view => 'export' }, 'what was asked for');
is($whole_record->{result}{records}, scalar @evil, 'and how much was taken');
is($exports[0]{status}, 'succeeded', 'that it went well');
ok((grep { $_->{status} eq 'failed' && $_->{http_status} == 400 } @exports),
   'and what was refused');

# reading: one record per user, view and minute

sleep 0.1 while (time % 60) > 50;
$t->get("$API/overview", token => 'viewer') for 1 .. 5;
$t->get("$API/sandboxes", token => 'viewer') for 1 .. 3;

my @reads;
ok($t->wait_for(sub {
    @reads = grep { $_->{actor}{identity} eq 'token:viewer' }
        console('type=console.read');
    return @reads >= 2;
}, 10 * $PATIENCE), 'reading is on record');
is(scalar @reads, 2, 'folded');
is_deeply([ sort map {
    $t->get("$API/operations/$_->{id}")->json->{request}{view} } @reads ],
    [ 'overview', 'sandboxes' ], 'to one per view');

# not in default lists, nor live

is(scalar(grep { $_->{type} =~ /^console\./ }
          @{ $t->get("$API/operations?limit=500")->json->{items} }), 0,
   'default lists are without them');

my $before = $t->get("$API/operations?order=asc&limit=1")->json->{items}[0]{cursor} - 1;
my $live = SandboxLive->open($t, '/live', after => $before, query => 'output=0');
my $asked = SandboxLive->open($t, '/live', after => $before, query => 'type=console.*');
ok($asked->until(sub { $_[0]{data}{type}
                       && $_[0]{data}{type} eq 'console.export' }),
   'who asks for them live gets them');
ok($live->wait_for(sub { @{ $_[0]->events } > 10 }), 'others get the rest');
is(scalar(grep { ($_->{data}{type} // '') =~ /^console\./ } @{ $live->events }), 0,
   'and nothing of that');
$_->close for $live, $asked;

# a verification

$r = $t->post("$API/sandboxes/s1/verify", body => '');
ok($t->wait_for(sub { console('type=console.verify') == 1 }, 10 * $PATIENCE),
   'a verification is on record');

$t->stop;

done_testing;
