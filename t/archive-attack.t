#!/usr/bin/perl

# Archives (field cases C091 to C100) uploaded through the gateway, in front of the
# real local runtime, whose files are compared before and after: of those that must
# not pass none does, each for a reason of its own; of their honest twins none is
# refused, and each arrives as it was sent.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use ArchiveCases qw(attacks twins uploader);
use Digest::SHA qw(sha256_hex);
use JSON::PP;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep);

my $t = SandboxTest->new(runtime => 1, runtime_args => [ '--grace=0' ],
                         location => 'sandbox_policy policy;');

my $bounds = <<'END_BOUNDS';
deny entries { archive_entries > 10000; }
deny size { archive_size > 512m; }
deny file_size { archive_file_size > 128m; }
deny ratio { archive_ratio > 200; }
deny depth { archive_depth > 4; }
END_BOUNDS

SandboxTest::write_file("$t->{dir}/conf/policy", <<'END_RULES' . $bounds
deny climbs { archive climbs; }
deny escapes { archive escapes; }
deny inconsistent { archive inconsistent; }
deny unsafe { archive unsafe; reason "It is not safe to unpack."; }
END_RULES
    . SandboxTest::read_file("$FindBin::Bin/../conf/policy.default"));
$t->start;

my $made = $t->post('/v1/sandboxes', headers => [ 'Content-Type: application/json' ],
    body => '{"image":{"uri":"python:3.11"},"timeout":900,'
            . '"resourceLimits":{"cpu":"1"},"entrypoint":["tail"]}');
my $id = $made->json->{id};
my $execd = "/v1/sandboxes/$id/proxy/44772";
ok($t->wait_for(sub { $t->get("$execd/ping")->status == 200 }), 'a sandbox is ready');

run('mkdir -p /workspace/a /workspace/t; echo bait > /workspace/a/bait');
my $before = listing('/workspace/a');
like($before, qr{a/bait}, 'its files are listed');

my $upload = uploader($t, $execd);


# --- those that must not pass ---------------------------------------------------------

my @attacks = attacks();
my (@passed, %rule);
my $n = 0;

for my $case (@attacks) {
    my $r = upload('/workspace/a/' . $n++, $case->{data});
    my $error = eval { $r->json } // {};
    my $details = $error->{details} // {};
    my $rule = $details->{rule} // '?';

    $rule{$rule}++;

    next if $r->status == ($rule =~ /entries|size|ratio|depth/
                           && $details->{archive}{found} ne 'uninspected' ? 413 : 403)
        && $rule =~ /^(?:climbs|escapes|inconsistent|unsafe|entries|size|file_size
                       |ratio|depth)$/x
        && $details->{archive} && length($details->{archive}{why} // $rule);

    push @passed, "$case->{id} $case->{what}: " . $r->status . ' '
                  . $r->content;
}

is_deeply(\@passed, [], @attacks . ' archives are refused')
    or diag(join "\n", @passed[0 .. ($#passed > 9 ? 9 : $#passed)]);
cmp_ok(scalar @attacks, '>=', 300, 'which are many');
cmp_ok($rule{$_} // 0, '>', 0, "by rule $_: " . ($rule{$_} // 0))
    for qw(climbs escapes inconsistent unsafe entries ratio depth file_size);
is(listing('/workspace/a'), $before, 'the sandbox is as it was');


# --- those that must ---------------------------------------------------------------------

my @twins = twins();
my (@refused, %want);
$n = 0;

for my $case (@twins) {
    my $name = '/workspace/t/' . $n++ . "-$case->{name}";
    my $r = upload($name, $case->{data});

    $want{$name} = sha256_hex($case->{data});
    push @refused, "$case->{id} $case->{what}: " . $r->content if $r->status != 200;
}

is_deeply(\@refused, [], @twins . ' honest ones pass')
    or diag(join "\n", @refused[0 .. ($#refused > 9 ? 9 : $#refused)]);

my %have = map { reverse /^(\w{64})  (.*)$/ } split /\n/,
    listing('/workspace/t', 'sha256sum');
is_deeply([ grep { ($have{$_} // '') ne $want{$_} } sort keys %want ], [],
          'and arrive as they were sent');

$t->stop;
done_testing;


sub upload { return $upload->(@_) }


sub run {
    my $r = $t->post("$execd/command", headers => [ 'Content-Type: application/json' ],
                     body => encode_json({ command => $_[0] }));

    return join "\n", map { $_->{text} } grep { $_->{type} eq 'stdout' }
        map { decode_json($_) } grep { length } split /\n\n/, $r->content;
}


sub listing {
    my ($dir, $program) = @_;

    return run("find $dir -type f | sort | xargs -r " . ($program // 'cksum'));
}
