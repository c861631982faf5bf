#!/usr/bin/perl

# Live streams: what is recorded comes as it is recorded, exactly once, however
# often a reader leaves and comes back, and nobody suffers from a slow one.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use IO::Select;
use JSON::PP ();
use RunProgram qw(run_program);
use SandboxLive qw(command completed ids rss);
use SandboxTest;
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Test::More;
use Time::HiRes qw(sleep time);

my $API = '/console/api/v1';
my $N = 100 * ($ENV{T_SCALE} // 1);


# --- what comes, and that it is the record as listed --------------------------

my $t = SandboxTest->new(http => 'sandbox_api_questions 2; gzip on;'
                                 . ' gzip_types text/event-stream;'
                                 # who does not read is not cut for it
                                 . ' send_timeout 1h;',
                         conf => sub {
                             $_[0] =~ s/(listen 127\.0\.0\.1:\d+)/$1 sndbuf=64k/r
                         })->start;
$t->sandbox($_) for qw(s1 s2);

my $s = SandboxLive->open($t, '/live',
                          headers => [ 'Accept-Encoding: gzip' ]);
is($s->status, 200, 'a stream begins');
like($s->head, qr{^Content-Type: text/event-stream\r}m, 'of events');
like($s->head, qr{^X-Accel-Buffering: no\r}m, 'that nobody may hold back');
like($s->head, qr{^Cache-Control: no-store\r}m, 'or keep');
unlike($s->head, qr{^Content-Encoding}mi, 'or compress');
ok($s->wait_for(sub { defined $_[0]->id }), 'it says where it begins');
my $begin = $s->id;
is($s->retry, 1000, 'and when to come back');

# a quiet one, looked at again at the end
my $quiet = SandboxLive->open($t, '/live', query => 'type=nothing.*');
ok($quiet->wait_for(sub { defined $_[0]->id }), 'one that little passes');
my $opened = time;

my $r = command($t, 's1', 'echo one', 'one', 'two');
is($r->status, 200, 'a command passes');

my $e = $s->until(completed('echo one'));
ok($e, 'its end comes') or diag explain $s->events;

my @mine = grep { ($_->{data}{id} // '') eq $r->header('X-Operation-Id') }
    @{ $s->events };
like(join(' ', map { "$_->{event}:$_->{data}{phase}" } @mine),
     qr/^(?:operation:started\ ){2}(?:operation:output\ )+operation:completed$/x,
     'it began, its command was known, it wrote, it ended');
is($mine[1]{data}{summary}, 'echo one', 'the command is told while it runs');
is(join('', map { $_->{text} } map { @{ $_->{data}{pieces} // [] } } @mine),
   "one\ntwo\n",
   'and what it writes');

my @cursors = ids($s);
is_deeply(\@cursors, [ sort { $a <=> $b } @cursors ], 'cursors grow');
is(scalar @cursors, scalar keys %{ { map { $_ => 1 } @cursors } },
   'and each occurs once');

# the record as listed, of the same helper and of the command line

sub listed {
    my ($id) = @_;

    my ($status, $out) = run_program("$SandboxProcess::BUILD/sandbox-history",
        '--data', "$t->{dir}/data", 'list', '--json');
    my ($line) = grep { /"\Q$id\E"/ } split /\n/, $out;

    return $line && JSON::PP::decode_json($line);
}

$t->record($r);
my $live = { %{ $e->{data} } };
my $list = listed($r->header('X-Operation-Id'));
ok($list, 'it is listed');
is($live->{seq}, undef, 'its number in the sandbox is given later');
delete @{$_}{qw(seq chain phase)} for $live, $list;
is_deeply($live, $list, 'but for that the live record is the one that is listed');

# a file, a refusal, an operation without a sandbox

$r = $t->post('/v1/sandboxes/s2/proxy/44772/files/mv',
              body => '[{"src":"/tmp/a","dest":"/tmp/b"}]');
$e = $s->until(sub { $_[0]{data}{type} && $_[0]{data}{type} =~ /^file\./
                     && $_[0]{data}{phase} eq 'completed' });
ok($e, 'a file operation comes') or diag explain $s->events;
$t->record($r);
$live = { %{ $e->{data} } };
$list = listed($r->header('X-Operation-Id'));
delete @{$_}{qw(seq chain phase)} for $live, $list;
is_deeply($live, $list, 'it, too, as it is listed');

# an upload says where it goes to long before it is over

{
    my $body = SandboxTest::upload_body('/tmp/long', 'x' x 300_000, '/tmp/second', 'y' x 10);
    my $c = $t->connect;
    $c->write($c->build(POST => '/v1/sandboxes/s2/proxy/44772/files/upload', headers => [
        $t->credential, 'Content-Type: multipart/form-data; boundary=B',
        'Content-Length: ' . length $body ]) . substr $body, 0, 100_000);

    $e = $s->until(sub { $_[0]{data}{file} && $_[0]{data}{file}{path} eq '/tmp/long' });
    ok($e, 'the path of an upload is told') or diag explain $s->events;
    is($e->{data}{phase}, 'started', 'while it runs');
    is($e->{data}{summary}, '/tmp/long', 'and is what its row says');

    my $whole = $t->record($e->{data}{id}, started => 1, sandbox => 's2');
    is($whole->{status}, 'started', 'the record stands there');
    ok($t->wait_for(sub {
        my ($op) = @{ $t->get("$API/sandboxes/s2/operations?path=/tmp/long")->json->{items} // [] };
        return $op && $op->{id} eq $e->{data}{id} && $op->{status} eq 'started' && $op->{file}{path} eq '/tmp/long';
    }), 'and is found by its path');

    $c->write(substr $body, 100_000);
    $r = $c->response;
    is($r->status, 200, 'it goes through');
    $whole = $t->record($r, sandbox => 's2');
    is_deeply([ map { [ @$_{qw(path size)} ] } @{ $whole->{files} } ],
              [ [ '/tmp/long', 300_000 ], [ '/tmp/second', 10 ] ],
              'and has each of its files once');
    is($whole->{file}{after_size}, 300_000, 'with what is in it');
}

$s->close;


# --- resuming -------------------------------------------------------------------

command($t, 's1', "echo $_", $_) for 2 .. 6;

my $all = SandboxLive->open($t, '/live', last => $begin);
ok($all->until(completed('echo 6')), 'Last-Event-ID brings what came since');
my @all = ids($all);
$all->close;

ok(@all > @cursors, 'and more');
is_deeply([ @all[0 .. $#cursors] ], \@cursors,
          'what was seen then comes again in the same events');

for my $i (map { int rand @all } 1 .. 5) {
    my $again = SandboxLive->open($t, '/live', after => $all[$i]);
    my @rest = @all[$i + 1 .. $#all];
    ok($again->wait_for(sub { @{ $_[0]->events } >= @rest }), "after $all[$i]");
    is_deeply([ ids($again) ], \@rest, 'comes the rest, nothing twice');
    $again->close;
}

# a helper that was away: out of the journal, without what it remembered

my $over = SandboxLive->open($t, '/live');
ok($over->wait_for(sub { defined $_[0]->id }), 'a stream is open');
$t->kill_helper;
ok($over->wait_for(sub { $_[0]->ended == 1 }),
   'when the helper dies it ends well');
$t->start_helper;

my $again = SandboxLive->open($t, '/live', last => $begin);
ok($again->wait_for(sub { @{ $_[0]->events } >= @all }), 'and is there again');
is_deeply([ (ids($again))[0 .. $#all] ], \@all,
          'with the same events, out of the journal');
my %first = map { $_->{id} => $_ } @{ $all->events };
is_deeply([ map { $first{ $_->{id} } } @{ $again->events }[0 .. $#all] ],
          [ @{ $again->events }[0 .. $#all] ], 'to the letter');
$again->close;

# the middle of an operation: its end is whole all the same

my ($middle) = grep { $_->{data}{phase} && $_->{data}{phase} eq 'output' }
    @{ $all->events };
$again = SandboxLive->open($t, '/live', last => $middle->{id});
$e = $again->until(sub { ($_[0]{data}{phase} // '') eq 'completed' });
is($e->{data}{summary}, $first{ $e->{id} }{data}{summary},
   'who comes back in the middle gets whole records');
is_deeply($e->{data}{output}, $first{ $e->{id} }{data}{output},
          'and right counts of output');
$again->close;


# --- filters --------------------------------------------------------------------

my $n = $begin;

for (
    [ '/sandboxes/s2/live', '', sub { ($_[0]{sandbox_id} // '') eq 's2' } ],
    [ '/live', 'type=file.*', sub { $_[0]{type} =~ /^file\./ } ],
    [ '/live', 'type=file.*&type=command.*&status=succeeded',
      sub { $_[0]{status} && $_[0]{status} eq 'succeeded'
            && $_[0]{type} =~ /^(?:file|command)\./ } ],
    [ '/live', 'path=/tmp/*', sub { $_[0]{file} && $_[0]{type} =~ /^file/ } ],
    [ '/live', 'type=command.*&output=0',
      sub { $_[0]{type} =~ /^command/ && $_[0]{phase} ne 'output' } ],
    [ '/live', 'exit_code=0', sub { defined $_[0]{exit_code}
                                    && $_[0]{exit_code} == 0 } ],
    [ '/live', 'actor=nobody', sub { 0 } ],
) {
    my ($path, $query, $want) = @$_;

    my @want = map { $_->{id} }
        grep { $_->{event} eq 'operation' && $want->($_->{data}) }
        @{ $all->events };
    my $f = SandboxLive->open($t, $path, query => $query, after => $begin);
    $f->wait_for(sub { grep { $_->{event} eq 'operation' } @{ $_[0]->events }
                       and $_[0]->id >= ($want[-1] // 0) }, @want ? undef : 0.3);

    my @have = grep { $_->{event} eq 'operation' && $_->{id} <= $all[-1] }
        @{ $f->events };
    is_deeply([ map { $_->{id} } @have ], \@want, "$path?$query");
    $f->close;
}

for my $query ('q=%21', 'q=' . join('+', 1 .. 40), 'nothing=1', 'after=x', 'after=-1', 'status=odd',
               'output=2', 'from=yesterday', 'after=1&after=2')
{
    my $f = $t->get("$API/live?$query");
    is($f->status, 400, "$query is refused");
    is($f->code, 'GATEWAY_INVALID_PARAMETER', 'and why');
}

is($t->get("$API/live", headers => [ 'Last-Event-ID: x' ])->status, 400,
   'a Last-Event-ID that is none is refused');
is($t->get("$API/live", token => undef)->status, 401, 'a stream needs a token');
is($t->post("$API/live", body => '')->status, 405, 'and GET');


# --- full text --------------------------------------------------------------------

my %words = (
    'q=needle'             => [ qr/needle/ ],
    'q=Needle+hay'         => [ qr/needle/, qr/hay/ ],
    'q=%22hay+stack%22'    => [ qr/hay stack/ ],
    'q=%E7%BC%96%E8%AF%91' => [ qr/\x{7f16}\x{8bd1}/ ],
    'q=cat+nowhere'        => [ qr/cat/, qr/nowhere/ ],
    'q=stack&output=0'     => [ qr/stack/ ],
);
my %searched = map { $_ => SandboxLive->open($t, '/live', query => $_) } keys %words;
$_->wait_for(sub { defined $_[0]->id }) for values %searched;
my $plain = SandboxLive->open($t, '/live');
$plain->wait_for(sub { defined $_[0]->id });

command($t, 's1', 'cat needle', 'hay');
command($t, 's1', 'cat straw', 'a hay stack');
command($t, 's1', 'cat x', "\x{53d1}\x{751f}\x{7f16}\x{8bd1}\x{9519}");
command($t, 's1', 'end of search', 'x');
ok($plain->until(completed('end of search')), 'some commands ran');

# each event says whether all words have been there by then

for my $query (sort keys %words) {
    my (%text, @want);

    for my $event (grep { $_->{event} eq 'operation' } @{ $plain->events }) {
        my $d = $event->{data};
        $text{ $d->{id} } .= join "\n", $d->{summary} // '',
            map { $_->{text} // '' } @{ $d->{pieces} // [] };
        next if $query =~ /output=0/ && $d->{phase} eq 'output';
        push @want, $event->{id}
            if !grep { $text{ $d->{id} } !~ $_ } @{ $words{$query} };
    }

    my $one = $searched{$query};
    $one->wait_for(sub { !@want or grep { $_ == $want[-1] } ids($_[0]) },
                   @want ? undef : 0.3);
    my @have = map { $_->{id} } grep { $_->{event} eq 'operation' } @{ $one->events };
    is_deeply(\@have, \@want, "$query: " . @want . ' events');

    # who comes back in the middle of an operation gets the rest of the same
    for my $at (@{ $plain->events }[2, 3, 6]) {
        my $later = SandboxLive->open($t, '/live', query => $query, after => $at->{id});
        my @rest = grep { $_ > $at->{id} } @want;
        $later->wait_for(sub { !@rest or grep { $_ == $rest[-1] } ids($_[0]) },
                         @rest ? undef : 0.3);
        is_deeply([ map { $_->{id} } grep { $_->{event} eq 'operation' }
                    @{ $later->events } ], \@rest, "$query after $at->{id}");
        $later->close;
    }

    $one->close;
}

$plain->close;

# an operation that runs when a stream begins: what it has written counts

my @steps = FakeUpstream::stream(FakeUpstream::event('init', text => 'c1'),
    FakeUpstream::event('stdout', text => 'early bird'),
    FakeUpstream::event('stdout', text => 'worm'),
    FakeUpstream::event('execution_complete', execution_time => 3));
splice @steps, 3, 0, [ until => 'bird' ];        # in front of the worm
$t->up->script('POST /v1/sandboxes/s1/proxy/44772/command', @steps);

my $watch = SandboxLive->open($t, '/live', query => 'q=%22early+bird%22');
$watch->wait_for(sub { defined $_[0]->id });
my $running = $t->connect;
$running->write($running->build(POST => '/v1/sandboxes/s1/proxy/44772/command',
    headers => [ $t->credential ], body => '{"command":"catch"}'));
ok($watch->until(sub { ($_[0]{data}{phase} // '') eq 'output' }), 'a command is writing');

my $late = SandboxLive->open($t, '/live', query => 'q=bird+worm');
$late->wait_for(sub { defined $_[0]->id });
$t->up->release('bird');
ok($late->until(sub { ($_[0]{data}{phase} // '') eq 'completed'
                      && $_[0]{data}{summary} eq 'catch' }),
   'who comes meanwhile has its earlier words, too');
like($late->events->[0]{data}{pieces}[0]{text} // '', qr/worm/,
     'from the event on that has the last of them');
$_->close for $watch, $late, $running;

# searches are work for each event: there are few
$t->wait_for(sub { $t->get("$API/metrics")->content =~ /live_streams 0\n/ }, 10);
my @searches = map { SandboxLive->open($t, '/live', query => "q=word$_") } 1 .. 32;
is(scalar(grep { $_->status == 200 } @searches), 32, '32 searches at once');
is(SandboxLive->open($t, '/live', query => 'q=more', once => 1)->status, 503,
   'are the bound');
my $unsearched = SandboxLive->open($t, '/live', once => 1);
is($unsearched->status, 200, 'others are no searches');
$_->close for @searches, $unsearched;
ok($t->wait_for(sub {
    my $again = SandboxLive->open($t, '/live', query => 'q=more', once => 1);
    $again->close;
    return $again->status == 200;
}, 10), 'and it ends with them');


# --- what comes together goes out together, to those who all want it ------------

my %mixed = (
    ''                => sub { 1 },
    'output=0'        => sub { $_[0]{phase} ne 'output' },
    'type=command.*'  => sub { $_[0]{type} =~ /^command/ },
    'type=file.*'     => sub { $_[0]{type} =~ /^file/ },
    'status=started'  => sub { ($_[0]{status} // 'started') eq 'started' },
    'status=succeeded' => sub { ($_[0]{status} // '') eq 'succeeded' },
);
my %mixed_stream = map {
    $_ => [ map { SandboxLive->open($t, '/live', query => $_) } ($_) x 3 ]
} keys %mixed;

for my $all (values %mixed_stream) {
    $_->wait_for(sub { defined $_[0]->id }) for @$all;
}

for my $i (1 .. 8) {
    command($t, 's1', "mixed $i", 'x' x (700 * $i));
    $t->post('/v1/sandboxes/s2/proxy/44772/files/mv',
             body => '[{"src":"/tmp/a","dest":"/tmp/b"}]');
}

command($t, 's1', 'mixed end', 'x');
my $whole = $mixed_stream{''}[0];
ok($whole->until(completed('mixed end')), 'many events');

for my $query (sort keys %mixed) {
    my @want = map { $_->{id} }
        grep { $_->{event} eq 'operation' && $mixed{$query}->($_->{data}) }
        @{ $whole->events };

    for my $one (@{ $mixed_stream{$query} }) {
        $one->wait_for(sub { grep { $_ == $want[-1] } ids($_[0]) });
        is_deeply([ map { $_->{id} } grep { $_->{event} eq 'operation' }
                    @{ $one->events } ], \@want, "'$query': each once, in order");
        $one->close;
    }
}


# --- a cursor that cannot be had ------------------------------------------------

my $f = SandboxLive->open($t, '/live', last => '9' x 18);
$e = $f->until(sub { $_[0]{event} eq 'reset' });
is($e->{data}{reason}, 'unknown', 'a cursor of the future brings a reset');
is($e->{id}, $e->{data}{cursor}, 'with the cursor that it goes on from');
command($t, 's1', 'echo on', 'on');
ok($f->until(completed('echo on')), 'and it goes on');
is(scalar(grep { $_->{event} eq 'reset' } @{ $f->events }), 1, 'one reset');
$f->close;


# --- C153: a reload ends streams at once, and nothing is lost over it -----------

my @streams = map { SandboxLive->open($t, '/live') } 1 .. 10;
$_->wait_for(sub { defined $_[0]->id }) for @streams;
my @old = $t->worker_pids;
my $before = time;

$t->reload;
is(scalar(grep { $_->wait_for(sub { $_[0]->ended == 1 }) } @streams), 10,
   'C153: at a reload streams end well');
diag(sprintf 'streams ended %.2f s after the reload began', time - $before);
is(scalar(grep { $_->retry == 250 } @streams), 10,
   'C153: and say when to come back');
ok($t->wait_for(sub { !grep { kill 0, $_ } @old }, 5),
   'C153: the old worker leaves');

command($t, 's1', 'echo reloaded', 'x');
my $back = SandboxLive->open($t, '/live', last => $streams[0]->id);
ok($back->until(completed('echo reloaded')), 'C153: a reader misses nothing');
$back->close;


# --- gaps -----------------------------------------------------------------------

my $mark = do {
    my $m = SandboxLive->open($t, '/live');
    $m->wait_for(sub { defined $_[0]->id });
    $m->close;
    $m->id;
};

my $lost = sub {
    my ($n) = $t->get("$API/metrics")->content =~ /^sandbox_gateway_gaps_total (\d+)/m;
    return $n;
};
my $gaps = $lost->();

# until the worker knows that its helper has gone, it keeps what is to be told
$t->kill_helper;
ok($t->wait_for(sub {
    $t->get('/v1/sandboxes/s1');
    return $lost->() > $gaps;
}), 'something passes without a record');
$t->start_helper;

my $g = SandboxLive->open($t, '/live', last => $mark, query => 'type=none.*');
$e = $g->until(sub { $_[0]{event} eq 'gap' || $_[0]{event} eq 'operation' });
is($e->{event}, 'gap', 'what is not on record is told, whatever the filter');
cmp_ok($e->{data}{operations}, '>', 0, 'and how much');
$g->close;


# --- C137: many streams, and nobody else waits ------------------------------------

@streams = map { SandboxLive->open($t, '/live') } 1 .. 8;
is(scalar(grep { $_->status == 200 } @streams), 8, 'C137: eight streams');
is($t->get("$API/metrics")->status, 200,
   'C137: the rest of the API answers, past sandbox_api_questions');
$_->close for @streams;


# --- C111: a reader who does not read ---------------------------------------------

my @rss;
my $slow = SandboxLive->open($t, '/live', query => 'type=command.*');
setsockopt $slow->{c}->socket, SOL_SOCKET, SO_RCVBUF, 65536;
ok($slow->wait_for(sub { defined $_[0]->id }), 'one who stops reading');
my $fast = SandboxLive->open($t, '/live', query => 'type=command.*');
ok($fast->wait_for(sub { defined $_[0]->id }), 'and one who does not');

# what an allocator takes for itself, a few MiB, is little beside it
my $rounds = 32;
my @big = map { sprintf('%05d ', $_) . 'x' x 16000 } 1 .. 40;
my @who = ($t->{helper_pid}, $t->worker_pids);

# what everybody is kept for comes first: nothing of it is new later

for my $i (map({ "first $_" } 1 .. $rounds), 0, 1 .. $rounds) {
    @rss = map { rss($_) } @who if !$i;
    command($t, 's1', "big $i", $i ? @big : 'x');
    $fast->until(completed("big $i"), 60);
}

SKIP: {
    skip 'a sanitizer keeps what was freed', 2
        if qx(ldd $SandboxProcess::BUILD/sandbox-helper) =~ /libasan/;

    for my $name ('helper', 'worker') {
        my $grown = rss(shift @who) - shift @rss;

        # a third of what goes past him
        cmp_ok($grown, '<', $rounds * 40 * 16 / 3,
               "C111: the $name does not keep it for him (grew by $grown KiB)");
    }
}

is($fast->events->[-1]{data}{summary}, "big $rounds", 'the other has all of it');
ok($slow->until(completed("big $rounds"), 60), 'C111: later he gets all of it')
    or diag('ended: ', $slow->ended // 'no', "\n", $t->log_text, $t->log_text('helper.log'));
is_deeply([ ids($slow) ], [ ids($fast) ], 'C111: the same events');
ok($slow->comments > 0, 'C111: and was told that he was behind');
my ($behind) = $t->get("$API/metrics")->content
    =~ /^sandbox_gateway_helper_live_behind_total (\d+)/m;
$behind //= ($t->get("$API/metrics")->content =~ /live_behind_total (\d+)/)[0];
cmp_ok($behind, '>', 0, 'C111: as metrics tell');
$_->close for $slow, $fast;


# --- a sign of life ---------------------------------------------------------------

# (the helper was restarted meanwhile: the quiet one ended with it)
$quiet = SandboxLive->open($t, '/live', query => 'type=nothing.*');
$quiet->wait_for(sub { defined $_[0]->id });
my $id = $quiet->id;
command($t, 's1', 'echo unheard', 'x');
ok($quiet->wait_for(sub { $_[0]->comments > 0 && $_[0]->id > $id }, 20),
   'a sign of life comes, with a younger cursor');
is_deeply([ grep { $_->{event} eq 'operation' } @{ $quiet->events } ], [],
          'although nothing passed');
$quiet->close;


# --- what upstream names -------------------------------------------------------------

my %named = map { $_ => SandboxLive->open($t, $_ , query => 'type=nothing.*') }
    '/live', '/sandboxes/s1/live', '/sandboxes/nobody/live';
$_->wait_for(sub { defined $_[0]->id }) for values %named;

my $made = $t->post('/v1/sandboxes', body => '{"image":{"uri":"x"}}')->json->{id};
$t->sandbox($made);
is($t->get('/v1/sandboxes')->status, 200, 'upstream lists its sandboxes');

my $names = sub {
    my $id = shift;
    return sub { $_[0]{event} eq 'sandbox'
                 && grep { $_->{id} eq $id } @{ $_[0]{data}{sandboxes} } };
};
$e = $named{'/live'}->until($names->('s1'));
ok($e, 'a list is an event') or diag explain $named{'/live'}->events;
my ($one) = grep { $_->{id} eq 's1' } @{ $e->{data}{sandboxes} };
is($one->{state}, 'Running', 'with the state of each');
like($e->{data}{at}, qr/^\d{4}-.*Z$/, 'and its time');
my $of_one = $named{'/sandboxes/s1/live'}->until($names->('s1'));
is($of_one->{id}, $e->{id}, 'it is told in the stream of each that it names');
command($t, 's1', 'echo named', 'x');
my ($cursor) = map { $_->{id} } SandboxLive->open($t, '/live', after => $e->{id})
    ->until(completed('echo named'));
$named{'/sandboxes/nobody/live'}->wait_for(sub { $_[0]->id >= $cursor }, 20);
is_deeply($named{'/sandboxes/nobody/live'}->events, [], 'and in no other');
$_->close for values %named;


# --- a cursor that is not kept any more ------------------------------------------------

my $old = SandboxLive->open($t, '/live');
ok($old->wait_for(sub { defined $_[0]->id }), 'a reader');
$old->close;
command($t, 's1', 'echo forgotten', 'x');
$t->kill_helper('TERM');
unlink glob "$t->{dir}/data/journal/*.seg";
$t->start_helper;
command($t, 's1', 'echo kept', 'x');

for my $how ([ last => $old->id ], [ after => $begin ]) {
    my $back = SandboxLive->open($t, '/live', @$how);
    $e = $back->until(sub { $_[0]{event} eq 'reset' });
    is($e->{data}{reason}, 'too_old', "$how->[0]: too old brings a reset");
    cmp_ok($t->metric('live_resets_total'), '>=', 1, 'which is counted');
    is($e->{data}{after}, $how->[1], 'that says from where on something is missing');
    cmp_ok($e->{data}{oldest}, '>', $how->[1] + 1, 'and what there is');
    is($e->{id}, $e->{data}{cursor}, 'it goes on behind its cursor');
    my $text = "echo after $how->[0]";
    command($t, 's1', $text, 'x');
    ok($back->until(completed($text)), 'and does');
    is(scalar(grep { $_->{event} eq 'reset' } @{ $back->events }), 1, 'one reset');

    # what is missing is on record
    $t->wait_for(sub {
        $t->get("$API/operations?q=forgotten")->content =~ /echo forgotten/
    });
    like($t->get("$API/operations?q=forgotten")->content, qr/echo forgotten/,
         'what was missed is listed');
    my $resumed = SandboxLive->open($t, '/live', last => $e->{id});
    ok($resumed->until(completed($text)), 'its cursor is one to come back with');
    $_->close for $back, $resumed;
}

$t->stop;


# --- many -------------------------------------------------------------------------

$t = SandboxTest->new(main => 'worker_rlimit_nofile 8192;',
    http => "sandbox_live_limit $N;",
    helper_args => [ '--live', $N ],
    conf => sub { $_[0] =~ s/worker_connections\s+\d+/worker_connections 8192/r }
)->start;
$t->sandbox('s1');

my $warm = SandboxLive->open($t, '/live');
$warm->wait_for(sub { defined $_[0]->id });
my ($worker) = $t->worker_pids;
@rss = (rss($t->{helper_pid}), rss($worker));

@streams = ($warm, map { SandboxLive->open($t, '/live', once => 1) } 2 .. $N);
is(scalar(grep { $_->status == 200 } @streams), $N, "$N streams");
is(SandboxLive->open($t, '/live', once => 1)->status, 503,
   'sandbox_live_limit is the bound');
$_->wait_for(sub { defined $_[0]->id }) for @streams;

diag(sprintf 'an idle stream costs %.1f KiB in the helper, %.1f KiB in the worker',
     (rss($t->{helper_pid}) - $rss[0]) / ($N - 1),
     (rss($worker) - $rss[1]) / ($N - 1));

$r = command($t, 's1', 'echo all', 'x');
is(scalar(grep { $_->until(completed('echo all')) } @streams), $N,
   'all of them are served');
is(scalar(grep { join(' ', ids($_)) eq join(' ', ids($streams[0])) } @streams),
   $N, 'with the same events');

my ($open) = $t->get("$API/metrics")->content =~ /live_streams (\d+)/;
is($open, $N, 'metrics tell how many there are');

$_->close for @streams;
ok($t->wait_for(sub {
    $t->get("$API/metrics")->content =~ /live_streams 0\n/
}, 10), 'and that they are gone');

$t->stop;

done_testing;
