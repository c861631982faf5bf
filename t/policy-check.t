#!/usr/bin/perl

# `sandbox-gateway policy check`: which rule says what; what the shipped policies
# say of names, roots and roads.  C089: names by letter case, dots, spaces.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp;
use Test::More;

my $root = dirname(dirname(abs_path($0)));
my $gateway = ($ENV{SANDBOX_BUILD} // "$root/build") . '/sandbox-gateway';
my $tmp = File::Temp->newdir('sandbox-t-XXXXXX', TMPDIR => 1);


sub check {
    my @args = @_;

    my $pid = open(my $fh, '-|') // die "fork: $!\n";

    if ($pid == 0) {
        open STDERR, '>&', \*STDOUT;
        exec $gateway, 'policy', 'check', @args;
        exit 127;
    }

    local $/;
    my $out = <$fh>;
    close $fh;

    return ($? >> 8, $out);
}

sub policy {
    open my $fh, '>', "$tmp/p" or die "$tmp/p: $!\n";
    print $fh @_;
    close $fh;

    return '--policy', "$tmp/p";
}


# --- the command --------------------------------------------------------------------------

my ($rc, $out) = check(policy("deny x {\n  colour red;\n}\ndefault allow;\n"));
is($rc, 2, 'a fault is exit 2');
like($out, qr{^sandbox-gateway: \S+/p:2:3: a condition is missing}, 'with its place');
is((check('--policy', "$tmp/none"))[0], 2, 'so is a file that is not there');
is((check('--operation', 'file.wirte'))[0], 2, '... an unknown operation');
is((check('--colour', 'red'))[0], 2, '... an unknown option');
is((check('--path'))[0], 2, '... a missing value');

for my $pair ('team', '=blue', '=') {
    ($rc, $out) = check('--operation', 'file.write', '--metadata', $pair);
    is($rc, 2, "... metadata \"$pair\"");
    like($out, qr/--metadata is KEY=VALUE/, 'with what it should be');
}

is((check('--operation', 'file.write', '--path', '/tmp/a', '--metadata', 'team='))[0], 0,
   'an empty value is one');

my @p = policy(<<'END');
observe try { command "^make\b"; }
deny dark { command unread; role viewer; reason "Say what it runs."; }
deny rm { command "^rm\b"; actor agent/x*; sandbox s-*; }
deny img { not image python:*; }
deny meta { operation sandbox.create; not metadata team=red; }
deny port { port 9000; }
deny big { file_size > 10; }
deny set-id { mode 6000; }
default allow;
END

for my $case (
    [ 'allowed: default, FILE:9', 'command.execute', '--command', 'rm x' ],
    [ "denied: rm, FILE:3\nreason: A rule of the policy denies it.",
      'command.execute', '--command', 'ls;rm x', '--actor', 'agent/x1', '--sandbox', 's-1' ],
    [ "denied: dark, FILE:2\nreason: Say what it runs.\nunread: not all of the command"
      . ' could be read', 'command.execute', '--command', 'sh x', '--role', 'viewer' ],
    [ "allowed: default, FILE:9\nwould be denied: try, FILE:1: A rule of the policy "
      . 'denies it.', 'command.execute', '--command=make x' ],
    [ "denied: img, FILE:4\nreason: A rule of the policy denies it.", 'sandbox.create',
      '--image', 'alpine' ],
    [ "denied: meta, FILE:5\nreason: A rule of the policy denies it.", 'sandbox.create',
      '--image', 'python:3', '--metadata', 'team=blue' ],
    [ 'allowed: default, FILE:9', 'sandbox.create', '--image', 'python:3', '--metadata',
      'team=red' ],
    [ "denied: port, FILE:6\nreason: A rule of the policy denies it.", 'proxy.http',
      '--port', '9000' ],
    [ "denied: big, FILE:7\npath: /b\nreason: A rule of the policy denies it.",
      'file.write', '--path', '/b', '--size', 11 ],
    [ "denied: set-id, FILE:8\npath: /b\nreason: A rule of the policy denies it.",
      'file.chmod', '--path', '/b', '--mode', 4755 ],
) {
    my ($want, $op, @args) = @$case;

    ($rc, $out) = check(@p, '--operation', $op, @args);
    is($out, $want =~ s/FILE/$tmp\/p/gr . "\n", "$op @args");
    is($rc, $want =~ /^denied/ ? 1 : 0, 'with its exit code');
}


# --- the shipped ones ------------------------------------------------------------------------

my $id = '0190a0f1-2b3c-7d4e-8f50-61728394a5b6';
my @own = ('/.agent-history/VERSION', '/.agent-history/bin/history-helper-v1.pyz',
    "/.agent-history/tmp/helper-$id.pyz", "/.agent-history/tmp/identity-$id.json",
    "/.agent-history/tmp/request-$id.json", '/.agent-upload/VERSION',
    '/.agent-upload/bin/upload-helper-v1.pyz', "/.agent-upload/tmp/helper-$id.pyz",
    "/.agent-upload/tmp/archive-$id.tar.gz", "/.agent-upload/tmp/manifest-$id.json",
    "/.agent-upload/$id/files/src/a.py");
my @not_own = ('/.agent-history/history.sqlite3', '/.agent-history/history.sqlite3-wal',
    '/.agent-history/version', '/.agent-history/tmp/helper-x.pyz',
    "/.agent-history/tmp/helper-$id.py", "/.agent-history/bin/x", '/.agent-upload/x/files/a',
    '/.agent-history/tmp/helper-' . uc($id) . '.pyz', '/.agent-history');
my @odd = ('', 'a', './a', '../a', '/workspace/../etc/x', '/workspace/..', '~/x', '~root/x',
    '$HOME/x', '/workspace/${X}', '/workspace/a\\b', 'C:\\x', "/workspace/\xc0\xae",
    "/workspace/\xff");

my %policy = (
    default => {
        allow => [ '/workspace/a', '/workspace/environment.py', '/workspace/a..b', '/tmp/x/y',
            '//workspace/./a', '/workspace/50%25.txt', '/workspace/git/config',
            '/workspace/.gitignore', '/workspace/ssh/x', '/workspace/.envrc', @own ],
        deny => [ '/etc/passwd', '/etc', '//etc/./x', '/proc/1/mem', '/sys/x', '/dev/sda',
            '/usr/bin/ls', '/root/.ssh/authorized_keys', '/home/node/.ssh/x', '/root/x',
            '/workspace2/a', '/workspac/a', '/tmpx/a', '/', '/.agent-helper/x',
            '/workspace/.env', '/workspace/.ENV', '/workspace/.env.', '/workspace/.env.local',
            '/workspace/a/.Ssh/x', '/workspace/.aws/credentials', '/workspace/.gnupg/x',
            '/workspace/x/.git/config', '/workspace/.git/hooks/pre-commit', '/tmp/.netrc',
            '/.AGENT-history/x', @not_own, @odd ],
    },
    seed => {
        allow => [ '/workspace/a', '/workspace/.git', '/workspace/.ENV', '/workspace/x.env',
            '/workspace/node_modules.txt', @own ],
        deny => [ '/tmp/x', '/workspace/.git/config', '/workspace/.env', '/workspace/.env.x',
            '/workspace/a/node_modules/b/c.js', '/workspace/__pycache__/x.pyc',
            '/workspace/.venv/bin/x', '/workspace/.sandboxignore', @not_own, @odd ],
    },
);

for my $name (sort keys %policy) {
    my @file = $name eq 'default' ? () : ('--policy', "$root/conf/policy.$name");

    is((check('--policy', "$root/conf/policy.$name"))[0], 0, "policy.$name is sound");

    for my $want (qw(allow deny)) {
        for my $path (@{ $policy{$name}{$want} }) {
            ($rc, $out) = check(@file, '--operation', 'file.write', '--path', $path);
            is($rc, $want eq 'allow' ? 0 : 1, "policy.$name: $want " . printable($path))
                or diag($out);
        }
    }
}

# other roads to the same, and what only reads

for my $op (qw(file.move file.replace file.chmod file.delete dir.create dir.delete
               isolated.file.write isolated.dir.delete)) {
    is((check('--operation', $op, '--path', '/workspace/a', '--path', '/etc/x'))[0], 1,
       "$op of two paths, one protected");
    is((check('--operation', $op, '--path', '/workspace/a'))[0], 0, "$op where it may be");
}

is((check('--operation', 'dir.delete', '--path', '/root'))[0], 1, 'what a directory takes along');
is((check('--operation', 'dir.delete', '--path', '/workspace'))[0], 0, 'a root itself');
is((check('--operation', 'isolated.create', '--path', '/workspace/a'))[0], 0, 'isolated');
for my $path ('/', '/root', '/etc', '/srv/data') {
    is((check('--operation', 'isolated.create', '--path', '/workspace', '--path', $path))[0], 1,
       "isolated, with all of $path");
}
is((check('--operation', 'file.read', '--path', '/etc/hosts'))[0], 0, 'reading');

# C084: what execd would resolve is not read either, by a rule that says so; C086: a name
# with a backslash can be shown, and taken away by an administrator

for my $name (sort keys %policy) {
    my @file = $name eq 'default' ? () : ('--policy', "$root/conf/policy.$name");

    for my $op (qw(file.read file.stat file.search dir.list isolated.file.read)) {
        for my $path ('~/.ssh/id_rsa', '$HOME/x', '/workspace/${X}', '../x', '/workspace/../x',
                      'x', '', "/workspace/\xff", '/workspace\\..\\x') {
            ($rc, $out) = check(@file, '--operation', $op, '--path', $path);
            like($out, qr/^denied: unclear,.*\nreason: A path is absolute/s,
                 "C084: $name, $op of " . printable($path));
        }

        is((check(@file, '--operation', $op, '--path', '/workspace/a\\b'))[0], 0,
           "C086: $name, $op of a name with a backslash");
        is((check(@file, '--operation', $op, '--path', '/.agent-history/VERSION'))[0], 0,
           'and of what the SDK has');
    }

    for my $role (qw(admin operator)) {
        ($rc, $out) = check(@file, '--operation', 'file.delete', '--path', '/workspace/a\\b',
                            '--role', $role);
        my $rule = $name eq 'seed' || $role ne 'admin' ? 'denied: odd-file,'
                   : 'allowed: odd-file-removed,';
        like($out, qr/^\Q$rule\E/, "C086: $name, deleting one as $role");
    }

    for my $op (qw(file.write file.move dir.delete file.chmod)) {
        like((check(@file, '--operation', $op, '--path', '/workspace/a\\b', '--role', 'admin'))[1],
             qr/^denied: odd-file,.*\nreason: The path holds a "\\"/s, "$name: nor $op");
    }
}

is((check('--operation', 'file.delete', '--path', '/workspace/../a\\b', '--role', 'admin'))[0], 1,
   'nor one that climbs');
is((check('--operation', 'command.execute', '--command', 'rm -rf /'))[0], 0,
   'commands are not judged by the default');
is((check('--operation', 'file.write', '--path', '/workspace/a', '--size', 134217729))[0], 1,
   'a file of more than 128 MiB');
is((check('--operation', 'file.write', '--path', '/workspace/a', '--size', 134217728))[0], 0,
   'and one of 128');
is((check('--operation', 'file.write', '--path', '/workspace/a', '--mode', $_))[0], 1,
   "mode $_") for qw(4755 2755 6755 40000755 8);

# archives, of which the question tells

my @upload = ('--operation', 'file.write', '--path', '/workspace/a.tgz');

for (
    [ 0, qr/^allowed: default/, 'any' ],
    [ 0, qr/^would be denied: odd-archive/m, 'links' ],
    [ 0, qr/^would be denied: odd-archive/m, 'duplicates,encrypted' ],
    [ 0, qr/^would be denied: odd-archive/m, 'misnamed' ],
    (map { [ 1, qr/^denied: unsafe-archive/, $_ ] }
     qw(climbs escapes devices set-id inconsistent broken), 'links,escapes'),
    [ 1, qr/^denied: unsafe-archive.*nobody knows what is in it/s, 'uninspected' ],
    [ 1, qr/^denied: archive-bomb/, 'any', '--archive-ratio', 201 ],
    [ 0, qr/^allowed/, 'any', '--archive-ratio', 200 ],
    [ 1, qr/^denied: archive-size/, 'any', '--archive-size', 2**30 + 1 ],
    [ 0, qr/^allowed/, 'any', '--archive-size', 2**30 ],
    [ 1, qr/^denied: archive-entries/, 'any', '--archive-entries', 100_001 ],
    [ 0, qr/^allowed/, 'any', '--archive-entries', 100_000 ],
    [ 1, qr/^denied: archive-depth/, 'any', '--archive-depth', 5 ],
    [ 0, qr/^allowed/, 'any', '--archive-depth', 4 ],
) {
    my ($want, $says, $archive, @more) = @$_;

    ($rc, $out) = check(@upload, '--archive', $archive, @more);
    is($rc, $want, "policy.default: an archive, $archive @more");
    like($out, $says, 'by its rule');
}

my @facts = policy('deny names { archive_path **/.env dir/; }', "\n",
                   'deny content { content token; }', "\n",
                   'deny file-size { archive_file_size > 5; }', "\ndefault allow;\n");

for (
    [ 'names', '--archive-path', 'a/b', '--archive-path', 'x/.env' ],
    [ 'names', '--archive-path', 'dir/' ],
    [ 'default', '--archive-path', 'dir' ],
    [ 'default', '--archive-path', '.environment' ],
    [ 'content', '--content', 'aws-key,token' ],
    [ 'default', '--content', 'aws-key' ],
    [ 'file-size', '--archive-file-size', 6 ],
    [ 'default', '--archive-file-size', 5 ],
    [ 'names', '--archive', 'uninspected' ],
    [ 'default' ],
) {
    my ($rule, @told) = @$_;

    ($rc, $out) = check(@facts, @upload, @told);
    like($out, qr/^(?:allowed|denied): \Q$rule\E,/, "told: @told");
}

for (
    [ qr/words of --archive are any, climbs/, '--archive', 'unsafe' ],
    [ qr/words of --archive are/, '--archive', 'links,' ],
    [ qr/words of --archive are/, '--archive', 'link' ],
    [ qr/words of --content are private-key/, '--content', 'secret' ],
    [ qr/archive_entries is a number, not "x"/, '--archive-entries', 'x' ],
    [ qr/archive_size is a number, not "-1"/, '--archive-size', -1 ],
    [ qr/there is no option --archive-sizes/, '--archive-sizes', 1 ],
) {
    my ($says, @bad) = @$_;

    ($rc, $out) = check(@upload, @bad);
    is($rc, 2, "@bad: no such thing to tell");
    like($out, $says, 'and why');
}

($rc, $out) = check('--operation', 'file.write', '--archive', 'links');
is($rc, 2, 'an archive without a path');
like($out, qr/belongs to a --path/, 'and why');

done_testing;


sub printable { $_[0] =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ger }
