#!/usr/bin/perl

# What was recorded from the real execd passes through the gateway byte for byte
# as it does without it: each of the 122 cases is played by four players, past
# the gateway and through it, straight to the sandbox and by the server proxy,
# each against a sandbox of its own, and the answers are compared.
#
# Expected differences, which are taken away before two answers are compared:
#
#   headers that the gateway adds   X-Operation-Id, X-Correlation-Id,
#                                   Content-Security-Policy, and nosniff
#                                   where upstream has none (design 4, 7)
#   nginx's own                     Server and Date are its own; Connection is
#                                   per hop and of nginx's choice (the players
#                                   ask for close); it takes X-Accel-Buffering,
#                                   and writes Content-Type, Content-Length,
#                                   Last-Modified, Accept-Ranges, Location and
#                                   Transfer-Encoding itself: their place and
#                                   the case of their names, not their values
#   what varies from run to run     ids, times, durations, figures of /metrics,
#                                   sizes of directories; the order of stdout
#                                   against stderr, borders of chunks and frames
#
# Names, values and order of all other headers, the status line, the framing and
# the bytes of the body are the same.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use POSIX ();
use Storable qw(store retrieve);
use Test::More;
use Time::HiRes qw(sleep);

use FixturePlay;
use SandboxTest;

my $FIXTURES = "$FindBin::Bin/runtime-fixtures";

# What the gateway refuses (400, GATEWAY_AMBIGUOUS_REQUEST) although execd has
# an answer: the one rule of design 7, what cannot be read in exactly one way is
# refused.  Each for its reason.
#
# Of some execd would say 400 itself.  They are refused all the same: that it
# would write nothing could be proven only by reading the body just as Go does
# (which takes what stands behind the first value, folds the case of names, and
# has its own idea of what is a file part), for every version of execd.
my %REFUSED = (
    'double-slash'  => 'the server proxy strips it and execd does not',
    'dot-segment'   => 'nginx resolves it and upstream does not',
    'proxy-no-port' => 'a proxied port that is none',
    'command-broken-json'   => 'not JSON: nothing to put on record',
    'command-bom'           => 'not JSON for some readers',
    'pty-bad-json'          => 'not JSON: nothing to put on record',
    'command-key-case'      => 'Go takes COMMAND for command, others do not',
    'command-duplicate-key' => 'the last counts for Go, the first for others',
    'command-trailing'      => 'Go does not look at what follows',
    'upload-no-metadata'    => 'file parts whose path nobody told',
    'upload-no-file'        => 'a path without a file part',
    'upload-unequal'        => 'which file part belongs to which path',
    'upload-field-metadata' => 'a part that only some take for metadata',
    'upload-bad-json'       => 'a path that cannot be read',
    'upload-empty-path'     => 'a path that is none',
);

# What the server proxy itself, the real one too, answers in another way: 405 to
# these methods, a slash stripped, two dots only with the key (reference 1.2,
# 2.1), a terminal that is refused is accepted and closed (2.5).
my %THROUGH = map { $_ => 1 } qw(head-ping options-ping double-slash
                                 dot-segment ws-unknown second-and-takeover);

my $t = SandboxTest->new(runtime => 1,
    runtime_args => [ '--grace=0', '--no-kernels' ])->start;
my $json = JSON::PP->new->utf8->canonical;
my ($runtime) = $t->{upstream_url} =~ /:(\d+)$/;
my $key = "OPEN-SANDBOX-API-KEY: $t->{api_key}";


# --- the players ------------------------------------------------------------------------

my @players = map { player($_) } qw(execd straight runtime-proxy server-proxy);
my %cases = map { $_ => [ FixturePlay::load("$FIXTURES/execd-$_.jsonl") ] }
                qw(http pty);

is(@{ $cases{http} } + @{ $cases{pty} }, 122, 'all cases are here');

for my $p (@players) {
    $p->{pid} = fork // die "fork: $!\n";
    next if $p->{pid};

    play($p);
    POSIX::_exit(0);
}

for my $p (@players) {
    waitpid $p->{pid}, 0;
    $p->{got} = -e $p->{file} ? retrieve($p->{file}) : {};
}

my ($execd, $straight, $runtime_proxy, $server_proxy) = @players;

for my $pair ([ $execd, $straight ], [ $runtime_proxy, $server_proxy ]) {
    my ($without, $with) = @$pair;

    compare($without, $with, http => $_) for @{ $cases{http} };
    compare($without, $with, pty => $_) for @{ $cases{pty} };
}

for my $p ($straight, $server_proxy) {
    my @records = $t->records($p->{id}, timeout => 15);
    my %routes = map { $_ => 1 }
                 grep { !/^(?:|lifecycle)$/ }
                 map { $_->{wire}{route} // '' } @records;

    cmp_ok(scalar @records, '>', 150, "$p->{name}: all is on record");
    is_deeply([ keys %routes ], [ $p->{name} ], 'and took this road');
}

$t->stop;
done_testing;


sub player {
    my $name = shift;

    my $r = $t->post('/v1/sandboxes',
        headers => [ 'Content-Type: application/json' ],
        body => $json->encode({
            image => { uri => 'python:3.11' }, timeout => 3600,
            resourceLimits => { cpu => '1' },
            entrypoint => [ qw(tail -f /dev/null) ] }));
    die 'create: ' . $r->content . "\n" if $r->status != 202;

    my $id = $r->json->{id};
    my %p = (name => $name, id => $id, file => "$t->{dir}/$name.played",
             prefix => "/sandboxes/$id/proxy/44772", headers => []);

    if ($name eq 'execd') {
        my $e = SandboxHttp->connect(port => $runtime)
            ->request(GET => "/v1/sandboxes/$id/endpoints/44772",
                      headers => [ $key ])->json;
        @p{qw(port prefix)} = $e->{endpoint} =~ m{:(\d+)(/.*)$};

    } elsif ($name eq 'runtime-proxy') {
        $p{port} = $runtime;

    } else {
        $p{port} = $t->port;
        $p{headers} = [ $t->credential ];
        $t->endpoint($id) if $name eq 'straight';
    }

    return \%p;
}


# In a child: plays all cases and keeps what came.

sub play {
    my $p = shift;

    my (%got, @frames);
    my $recv = \&SandboxWs::recv;
    my $response = \&SandboxWs::response;

    no warnings 'redefine';
    local *SandboxWs::recv = sub {
        my $f = $recv->(@_);
        $_[0]{frames} //= do { push @frames, my $l = []; $l };
        push @{ $_[0]{frames} }, $f if $f;
        return $f;
    };
    my $open = \&SandboxWs::open;
    my @heads;
    local *SandboxWs::open = sub {
        my $ws = $open->(@_);
        push @heads, $ws->response;
        return $ws;
    };

    for my $kind (qw(http pty)) {
        for my $case (@{ $cases{$kind} }) {
            my $play = FixturePlay->new(
                (map { $_ => $p->{$_} } qw(port prefix headers)),
                relaxed => 1, seen => [], keep => $kind eq 'pty');

            (@frames, @heads) = ();
            my @wrong = eval { $play->$kind($case) };

            $got{"$kind: $case->{case}"} = {
                wrong => [ @wrong, $@ || () ],
                seen => [ @{ $play->{seen} }, @heads ],
                frames => [ @frames ],
            };
        }
    }

    store(\%got, $p->{file});
}


# --- the comparison ---------------------------------------------------------------------

sub compare {
    my ($without, $with, $kind, $case) = @_;

    my $name = "$kind: $case->{case}";
    my ($want, $got) = map { $_->{got}{$name} } $without, $with;

    if (!$want || !$got) {
        fail("$with->{name}, $name: not played");
        return;
    }

    # the sandbox past the gateway answers as the real one did
    is(join("\n", @{ $want->{wrong} }), '', "$without->{name}, $name")
        if $without->{name} eq 'execd' || !$THROUGH{ $case->{case} };

    if (my $why = $REFUSED{ $case->{case} }) {
        my $r = $got->{seen}[0];
        is($r->status . ' ' . ($r->code // ''),
           '400 GATEWAY_AMBIGUOUS_REQUEST',
           "$with->{name}, $name: refused ($why)");
        return;
    }

    my @a = map { answer($case, $_) } @{ $want->{seen} };
    my @b = map { answer($case, $_) } @{ $got->{seen} };

    is(join("\n--\n", @b), join("\n--\n", @a), "$with->{name}, $name");

    is(join("\n--\n", map { frames($_) } @{ $got->{frames} }),
       join("\n--\n", map { frames($_) } @{ $want->{frames} }),
       "$with->{name}, $name: frames") if $kind eq 'pty';
}


# An answer as text, without what is expected to differ.

sub answer {
    my ($case, $r) = @_;

    return "no answer: $r->{error}" if !$r->{status};

    my (@own, @other);

    for (@{ $r->{headers} }) {
        my ($name, $value) = @$_;

        next if $name =~ /^(?:Server|Date|Connection|X-Accel-Buffering
            |X-Operation-Id|X-Correlation-Id|Content-Security-Policy
            |X-Content-Type-Options)$/xi;

        if ($name =~ /^(?:Content-Type|Content-Length|Last-Modified
            |Accept-Ranges|Location|Transfer-Encoding)$/xi)
        {
            $name = lc $name;
            # times in it have so many figures
            $value = '<n>' if $name eq 'content-length'
                && plain($case, $r->content) ne $r->content;
            push @own, "$name: $value";

        } else {
            push @other, "$name: $value";
        }
    }

    my $text = join "\n", "HTTP/$r->{version} $r->{status} $r->{reason}",
        sort(@own), @other, "framing $r->{framing}"
        . ($r->{complete} ? '' : " cut: $r->{error}"), '';

    return plain($case, $text) . body($case, $r);
}


sub plain {
    my ($case, $text) = @_;

    $text =~ s/$FixturePlay::TIME/<time>/g;
    $text =~ s/$FixturePlay::DATE/<date>/g;
    $text =~ s/$FixturePlay::UUID/<uuid>/g;
    $text =~ s/$FixturePlay::ID32/<id32>/g;
    $text =~ s/"(timestamp|execution_time)":\d+/"$1":0/g;
    $text =~ s/"type":"directory","size":\d+/"type":"directory","size":0/g;
    $text =~ s/:[0-9.]+(?:e[-+]\d+)?(?=[,}])/:0/g
        if $case->{case} eq 'metrics';

    return $text;
}


sub body {
    my ($case, $r) = @_;

    my $text = plain($case, $r->content);

    return $text
        if ($r->header('Content-Type') // '') !~ m{^text/event-stream};

    my $e = FixturePlay::events($text);

    return join '', @{ $e->{frame} }, @{ $e->{out} }, @{ $e->{err} },
                    "first $e->{first}last $e->{last}", @{ $e->{pings} };
}


# What a server sent on a terminal.

sub frames {
    my $list = shift;

    my $text = FixturePlay::join_frames(
        map { FixturePlay::recorded_form($_) } @$list);

    return $text =~ s/$FixturePlay::UUID/<uuid>/gr;
}
