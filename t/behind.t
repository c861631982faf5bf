#!/usr/bin/perl

# A history file that somebody holds locked: who follows the list upwards misses
# nothing of it, lists of other sandboxes and lists from the newest on do not wait,
# and what is missing is said.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Temp ();
use IO::Handle;
use POSIX ();
use SandboxTest;
use Test::More;

my $t = SandboxTest->new->start;

$t->sandbox($_) for qw(s1 s2);

my $first = run('s1');
$t->record(run('s2'));
$t->record($first);

my $start = list('operations')->{items}[0]{cursor};

# --- locked ----------------------------------------------------------------------------

my $writer = writer($t->history->path_of('s1'));
my $held = File::Temp->newdir;
chmod 0777, $held;
print $writer ".timeout 10000\nbegin immediate;\n.shell touch $held/now\n";
$t->wait_for(sub { -e "$held/now" }) or die "the file is not held\n";

my $waits = id(run('s1'));
my $other = id(run('s2'));

my $newest;
ok($t->wait_for(sub {
    $newest = list('operations');
    return ids($newest) =~ /\Q$other/;
}), 'from the newest on it goes on');
unlike(ids($newest), qr/\Q$waits/, 'without what waits');
ok(!$newest->{complete}, 'which is said');
is("@{ $newest->{waiting} // [] }", 's1', 'and of whom');

my $box = list('sandboxes/s2/operations', 'order=asc', "after=$start");
is(ids($box), $other, 'nor does the other sandbox wait');
ok($box->{complete} && !$box->{waiting}, 'nothing of it is missing');

my $up = list('operations', 'order=asc', "after=$start");
is(ids($up), '', 'who follows is not led past it');
ok(!$up->{complete}, 'and is told');
is($up->{next}, undef, 'there is no page behind this one yet');

is($t->get('/console/api/v1/export?sandbox=s2')->status, 200, 'the other is exported');
my $export = $t->get('/console/api/v1/export');
is($export->status, 503, 'all of them are not');
like($export->json->{message}, qr/wait for a history file/, 'the answer says why');

# --- let go ----------------------------------------------------------------------------

print $writer "rollback;\n";
close $writer;

my $both;
ok($t->wait_for(sub {
    $both = list('operations', 'order=asc', "after=$start");
    return $both->{complete};
}), 'it is written again');
is(ids($both), "$waits $other", 'and who followed has all of it, in order');
is($both->{waiting}, undef, 'nothing waits');
is($t->get('/console/api/v1/export')->status, 200, 'all of it is exported');

$t->stop;
done_testing;


# As the owner of the file when we are root, as SandboxHistory reads it.

sub writer {
    my $path = shift;

    my ($uid, $gid) = (stat $path)[4, 5];
    my $pid = open(my $fh, '|-') // die "fork: $!\n";

    if ($pid == 0) {
        if ($> == 0) {
            $) = "$gid $gid";
            POSIX::setgid($gid);
            POSIX::setuid($uid);
        }

        { exec 'sqlite3', '-bail', $path }
        POSIX::_exit(127);
    }

    $fh->autoflush;

    return $fh;
}


sub run {
    return $t->post("/v1/sandboxes/$_[0]/proxy/44772/command",
                    body => '{"command":"echo hi"}');
}


sub id { $_[0]->header('X-Operation-Id') }


sub list {
    my ($path, @query) = @_;

    my $r = $t->get("/console/api/v1/$path?" . join '&', 'type=command.*', @query);
    is($r->status, 200, "$path @query") if $r->status != 200;

    return $r->json;
}


sub ids { join ' ', map { $_->{id} } @{ $_[0]{items} } }
