#!/usr/bin/perl

# Ways around the rules: generated variants of what is denied, by every road, in
# front of the real local runtime, whose files are compared before and after; none
# passes.  Their legitimate twins: none is refused.
#
# POLICY_SEED=N makes others.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use LocalRuntime;
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep);

srand($ENV{POLICY_SEED} // 1);

my $json = JSON::PP->new->allow_nonref;
my $marks = 0;
my $t = SandboxTest->new(runtime => 1, runtime_args => [ '--grace=0' ],
                         location => 'sandbox_policy policy;'
                             . ' add_header X-Passed $upstream_addr always;');

my $rules = <<'END_RULES';
deny port { port 9000-9099; }
deny image { operation sandbox.create; image evil/*; }
deny known { operation sandbox.create pool.* template.*; not image python:* python; }
deny actor { operation command.execute; actor agent/mallory; }
deny no-rm { command "^rm\b" "\bmkfs"; }
deny role { operation command.execute; role operator; }
deny made { operation sandbox.create; metadata team=evil*; }
deny frozen { operation file.* dir.* command.*; access write; metadata team=blue; }
deny small { operation file.write; path /workspace/small/; file_size > 2k; }
deny whole { operation file.write; path /workspace/small/; request_size > 5k; }
deny number { operation file.write; path /workspace/small/; files > 5; }
deny content { content secret; }
END_RULES

SandboxTest::write_file("$t->{dir}/conf/policy",
    $rules . SandboxTest::read_file("$FindBin::Bin/../conf/policy.default"));
$t->start;

my $made = $t->post('/v1/sandboxes', headers => [ 'Content-Type: application/json' ],
    body => '{"image":{"uri":"python:3.11"},"timeout":600,'
            . '"resourceLimits":{"cpu":"1"},"entrypoint":["tail"]}');
my $id = $made->json->{id};
my $execd = "/v1/sandboxes/$id/proxy/44772";
ok($t->wait_for(sub { $t->get("$execd/ping")->status == 200 }), 'a sandbox is ready');

# what attacks would change or take away

run('mkdir -p /workspace/.git /workspace/.ssh /workspace/keep /root/.ssh /opt/x; '
    . 'for f in /workspace/.env /workspace/.git/config /workspace/.ssh/id /workspace/keep/a '
    . '/root/.ssh/authorized_keys /opt/x/a /workspace/plain; do echo bait > $f; done');
my $before = listing();
cmp_ok(length $before, '>', 300, 'its files are listed');


# --- paths, by all roads -------------------------------------------------------------------

my @targets = ('/etc/x', '/etc/passwd', '/.agent-history/history.sqlite3', '/.agent-upload/x',
    '/.agent-helper/x', '/proc/self/mem', '/usr/bin/x', '/root/.ssh/authorized_keys',
    '/opt/x/a', '/x', '/workspace/.env', '/workspace/.env.local', '/workspace/a/.aws/x',
    '/workspace/.git/config', '/workspace/.ssh/id', '/tmp/.netrc');

my @spellings = (
    sub { $_[0] },
    sub { $_[0] =~ s{/}{//}gr },
    sub { $_[0] =~ s{/}{/./}gr },
    sub { $_[0] =~ s{/([^/]*)$}{/././//$1}r },
    sub { "/workspace/..$_[0]" },
    sub { "/workspace/a/../..$_[0]" },
    sub { "/tmp/./../$_[0]" },
    sub { '/workspace/a' . '/..' x 9 . $_[0] },
    sub { substr $_[0], 1 },
    sub { '../../../..' . $_[0] },
    sub { '~/..' . $_[0] },
    sub { '$X' . $_[0] },
    sub { '${PWD%%*}' . $_[0] },
    sub { '/$EMPTY' . $_[0] },
    sub { "/workspace\\..\\..$_[0]" },
    sub { $_[0] =~ s{/}{\\}gr },
    sub { "/workspace/ok\0/../..$_[0]" },
    sub { "$_[0]\0.txt" },
    sub { "/workspace/\xc0\xae\xc0\xae$_[0]" },
    sub { "/workspace/\xed\xa0\x80/..$_[0]" },
);

my %road = (
    upload => sub { upload([ $_[0], 'x' ]) },
    'upload, second' => sub { upload([ '/workspace/new', 'x' ], [ $_[0], 'x' ]) },
    'mv to' => sub { post('/files/mv', '[{"src":"/workspace/plain","dest":'
                                       . text($_[0]) . '}]') },
    'mv from' => sub { post('/files/mv', '[{"src":' . text($_[0])
                                         . ',"dest":"/workspace/new"}]') },
    replace => sub { post('/files/replace', '{' . text($_[0])
                                            . ':{"old":"bait","new":"x"}}') },
    permissions => sub { post('/files/permissions', '{' . text($_[0])
                                                    . ':{"mode":777}}') },
    directories => sub { post('/directories', '{"/workspace/keep":{},' . text($_[0])
                                              . ':{}}') },
    rm => sub { [ DELETE => '/files?path=/workspace/none&path=' . query($_[0]) ] },
    'rm -r' => sub { [ DELETE => '/directories?path=' . query($_[0])
                                 . '&path=/workspace/none' ] },
);

my ($n, @passed) = (0);

for my $target (@targets) {
    for my $spell (@spellings) {
        my $path = $spell->($target);

        for my $name (sort keys %road) {
            next if rand() > 0.4;
            my $r = send_to($road{$name}->($path));
            push @passed, "$name " . $path if !refused($r);
            $n++;
        }
    }
}

judge('paths', $n, \@passed, 900);

# set-id bits in every mode that has some, and in numbers that are no modes

($n, @passed) = (0);

for my $mode ((grep { oct($_) & 06000 } map { sprintf '%o', $_ } 1 .. 4095), 8, 88, 799, 10000,
              40000755, 20000755, 60000000, 4294967295, 2147483648, -4755, '4755.0', '4.755e3',
              '"4755"', '47550', 104755) {
    next if $mode =~ /^\d{4}$/ && rand() > 0.1;

    for my $make ([ '/files/permissions', '{"/workspace/plain":{"mode":%s}}' ],
                  [ '/directories', '{"/workspace/keep":{"mode":%s}}' ]) {
        my $r = send_to(post($make->[0], sprintf $make->[1], $mode));
        push @passed, "$make->[0] $mode" if !refused($r);
        $n++;
    }

    my $r = send_to(upload([ '/workspace/new', 'x', $mode ]));
    push @passed, "upload $mode" if !refused($r);
    $n++;
}

judge('set-id modes', $n, \@passed, 300);

# an upload split at every byte

($n, @passed) = (0);
my ($method, $where, $body, @headers) = @{ upload([ '/workspace/new', 'x' ], [ '/etc/x', 'x' ]) };

for my $at (1 .. length($body) - 1) {
    push @passed, $at if !refused(in_two($at, $method, $where, $body, @headers));
    $n++;
}

judge('splits', $n, \@passed, 300);

# a credential in a file, wherever it is split: at every byte, and around the sizes that
# buffers have

my @secrets = ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "-----BEGIN OPENSSH PRIVATE KEY-----\n",
    'AKIA' . 'Q7' x 8, 'AIza' . 'Sy-_0' x 7, 'ghp_' . 'a1B2' x 9, 'npm_' . 'Z9' x 18,
    'glpat-' . 'x-1_' x 5);

($n, @passed) = (0);

for my $secret (@secrets[0, 2, 4]) {
    ($method, $where, $body, @headers)
        = @{ upload([ '/workspace/new', "a\n$secret\nb" ], [ '/workspace/plain2', 'c' ]) };

    for my $at (1 .. length($body) - 1) {
        push @passed, "$secret, in two at $at"
            if !refused(in_two($at, $method, $where, $body, @headers));
        $n++;
    }
}

for my $size (4096, 8192, 16384) {
    for my $off (-40 .. 40) {
        my $secret = $secrets[rand @secrets];
        my $pad = sub { "x\n" x ($_[0] / 2) . ($_[0] % 2 ? "\n" : '') };
        my @file = ('/workspace/new', '');
        my $head = index upload([ $file[0], '@' ])->[2], '@';

        # so far into the body, or into the file
        $file[1] = $pad->($size + $off - (rand() < 0.5 ? $head : 0)) . "$secret\n" . $pad->(rand 9000);
        my ($how, $target, $text, @h) = @{ upload(rand() < 0.3 ? ([ '/workspace/plain2', 'c' ])
                                                                : (), \@file) };
        my $r = $t->request($how, "$execd$target", body => $text, headers => \@h,
                            rand() < 0.5 ? (chunked => 1) : ());
        push @passed, "$secret at $size $off" if !refused($r);
        $n++;
    }
}

for my $secret (map { ($_) x 5 } @secrets) {
    my $r = send_to(post('/files/replace', '{"/workspace/plain":{"old":"bait","new":'
                                           . text('x ' x rand(3000) . $secret) . '}}'));
    push @passed, "replace $secret" if !refused($r);
    $n++;
}

judge('contents', $n, \@passed, 900);


# --- commands --------------------------------------------------------------------------------

my @base = ('rm -rf /workspace/keep', 'rm /workspace/plain', '/bin/rm -f /workspace/.env',
            'mkfs.ext4 /workspace/plain');

my @quote = (
    sub { $_[0] },
    sub { $_[0] =~ s/^(\S)(\S*)/"$1$2"/r },
    sub { $_[0] =~ s/^(\S*)(\S)/'$1'$2/r },
    sub { $_[0] =~ s/^(\S+?)(\w)/$1\\$2/r },
    sub { $_[0] =~ s/^(\S)/$1\\\n/r },
    sub { $_[0] =~ s/^(\S+)/join '', '$\'', (map { sprintf '\\x%02x', ord } split m{}, $1), "'"/er },
    sub { $_[0] =~ s/ /\t  /r },
    sub { $_[0] =~ s/^(\S+)/""$1''/r },
);

my @wrap = (
    sub { "ls; $_[0]" }, sub { "true && $_[0]" }, sub { "false || $_[0]" },
    sub { "ls | $_[0]" }, sub { "sleep 0 & $_[0]" }, sub { "ls\n$_[0]" },
    sub { "( $_[0] )" }, sub { "{ $_[0]; }" }, sub { "! $_[0]" }, sub { "echo \$( $_[0] )" },
    sub { "echo \"\$( $_[0] )\"" }, sub { "X=\$( $_[0] )" }, sub { "cat <($_[0])" },
    sub { 'echo `' . $_[0] =~ s/([\\`\$])/\\$1/gr . '`' },
    sub { 'sh -c ' . single($_[0]) }, sub { 'bash -lc ' . single($_[0]) },
    sub { '/bin/bash -e -o pipefail -c ' . single($_[0]) }, sub { 'eval ' . single($_[0]) },
    sub { "env X=1 sh -c " . single($_[0]) }, sub { 'timeout 5 sh -c ' . single($_[0]) },
    sub { 'nohup bash -c ' . single($_[0]) . ' &' }, sub { "if true; then $_[0]; fi" },
    sub { "time { $_[0]; }" }, sub { "time ! $_[0]" }, sub { "coproc N { $_[0]; }; wait" },
    sub { "while $_[0]; do break; done" }, sub { "f() { $_[0]; }; f" },
    sub { my $e = mark(); "bash <<'$e'\n$_[0]\n$e" }, sub { 'bash <<< ' . single($_[0]) },
    sub { 'find / -maxdepth 0 -exec sh -c ' . single($_[0]) . ' \;' },
    sub { "trap " . single($_[0]) . ' EXIT' }, sub { "echo \${x:-\$( $_[0] )}" },
    sub { "# ls\n$_[0]" }, sub { my $e = mark(); "cat <<$e\n\$( $_[0] )\n$e" }, sub { ">/dev/null $_[0]" },
    sub { "A=1 $_[0]" },
);

my @roads = ([ '/command', 'command' ], [ '/code', 'code' ], [ '/session/x/run', 'command' ],
             [ '/pty', 'command' ]);

# A command that is only quoted may take one of these before it.
my @before = ('sudo -n ', 'env -i ', 'env A=1 ', 'nohup ', 'nice -n 5 ', 'timeout -k 1 5 ',
              'setsid -w ', 'exec ', 'command ', 'time ', 'xargs -r ', 'stdbuf -oL ',
              'sudo -u root env B=2 nice ');

($n, @passed) = (0);

for (1 .. 600) {
    my $text = $quote[rand @quote]->($base[rand @base]);

    $text = $before[rand @before] . $text if rand() < 0.4 && $text !~ /\n/;
    $text = $wrap[rand @wrap]->($text) for 1 .. int rand 4;

    my ($where, $member) = @{ $roads[rand @roads] };
    my $r = send_to(post($where, sprintf '{"%s":%s}', $member, text($text)));
    push @passed, $text if !refused($r);
    $n++;

    # what a new sandbox starts, and the sandboxes of a pool
    next if rand() < 0.4;
    my $words = '[' . join(',', map { text($_) } ('sh', 'bash', '/bin/sh')[rand 3], '-c', $text)
                . ']';
    $r = rand() < 0.7 ? create('"image":{"uri":"python:3.11"},"entrypoint":' . $words)
        : pool('{"spec":{"containers":[{"image":"python:3.11"},{"image":"python:3.12",'
               . (rand() < 0.5 ? qq("command":$words)
                  : '"lifecycle":{"postStart":{"exec":{"command":' . $words . '}}}') . '}]}}');
    push @passed, "entrypoint $words" if !refused($r);
    $n++;
}

# ... by its words
for my $words ('["rm","-rf","/workspace"]', '["/bin/rm","x"]', '["env","A=1","rm","x"]',
               '["\u0072m"]', '[ "r\u006d" , "x" ]', '["sudo","-n","/usr/bin/rm","x"]',
               '["mkfs.ext4","/dev/x"]') {
    for my $r (create('"image":{"uri":"python:3.11"},"entrypoint":' . $words),
               pool('{"spec":{"initContainers":[{"image":"python:3","command":' . $words
                    . '}]}}'),
               pool('{"spec":{"containers":[{"image":"python:3","command":["sh","-c"],"args":['
                    . text('true; rm x') . ']}]}}')) {
        push @passed, "words $words" if !refused($r);
        $n++;
    }
}

judge('commands', $n, \@passed, 900);


# --- ports, images, actors -----------------------------------------------------------------

($n, @passed) = (0);

for my $port (9000 .. 9099) {
    for my $form ($port, "0$port", "0000$port", $port =~ s/(\d)/sprintf '%%%02x', ord $1/ger,
                  "8080/proxy/$port", "44772/proxy/$port") {
        next if rand() > 0.8;
        my $v = rand() < 0.5 ? '/v1' : '';
        my $r = $t->request([qw(GET POST PUT DELETE)]->[rand 4],
                            "$v/sandboxes/$id/proxy/$form/");
        # only execd itself would follow the first port of a nested one
        next if $form =~ m{^8080/} && $r->status == 502;
        push @passed, $form . ' ' . $r->status if !refused($r);
        $n++;
    }
}

judge('ports', $n, \@passed, 300);

($n, @passed) = (0);

for (1 .. 320) {
    my $image = join '', map { rand() < 0.3 ? sprintf('\u%04x', ord) : $_ }
                         split //, 'evil/' . int rand 1000;
    my $body = '{"image":{"uri":"' . $image . '"},"timeout":600,'
               . '"resourceLimits":{"cpu":"1"},"entrypoint":["tail"]}';
    $body =~ s/"uri"/'"' . join('', map { sprintf '\u%04x', ord } split m{}, 'uri') . '"'/e
        if rand() < 0.3;
    $body =~ s/"uri"/"URI":"python","uri"/ if rand() < 0.1;
    $body =~ s/("uri":"[^"]*")/"uri":"python",$1/ if rand() < 0.1;
    $body =~ s/\{"image"/{"image":{"uri":"python"},"image"/ if rand() < 0.1;
    my $r = $t->post('/v1/sandboxes', body => $body,
                     headers => [ 'Content-Type: application/json' ]);
    push @passed, $body if !refused($r);
    $n++;
}

# one that is not named, or not the only one

for (1 .. 320) {
    my $named = rand() < 0.5 ? '"image":{"uri":"python:3.11"},' : '';
    my $evil = ('evil/x', 'python-evil:1', 'EVIL', 'docker.io/python:3.11', '')[rand 5];
    my $box = '{"name":"x","image":' . text($evil) . ',"command":["tail"]}';
    my @good = map { qq({"name":"c$_","image":"python:3.$_"}) } 1 .. rand 5;
    my @all = rand() < 0.5 ? ($box, @good) : (@good, $box);
    my $list = join ',', @all;
    my $r = (
        sub { create($named . '"' . ('snapshotId', 'snapshot_id')[rand 2] . '":"s-'
                     . int(rand 1000) . '","entrypoint":["tail"]') },
        sub { create($named . '"extensions":{"a":"b",' . text('poolRef') . ':"p"}') },
        sub { create('"entrypoint":["tail"]') },
        sub { create('"image":' . ('"python:3.11"', '["python:3.11"]', '{"uri":["python:3.11"]}',
                                   '{"uri":null}', '{}', 'null')[rand 6]
                     . ',"entrypoint":["tail"]') },
        sub { pool('{"spec":{"containers":[' . $list . ']}}') },
        sub { pool('{"spec":{"initContainers":[' . $list . '],"containers":[{"image":"python:3"}]}}') },
        sub { pool('{"template":{"metadata":{},"spec":{"containers":[' . $list . ']}}}') },
        sub { pool('{"spec":{"containers":[' . join(',', @good) . '],"' . ('ephemeralContainers',
                   'sidecars')[rand 2] . '":[' . $box . ']}}') },
        sub { pool(('{}', '{"spec":{}}', '"python:3"', '[]', '{"spec":{"containers":[{}]}}')[rand 5]) },
        sub { pool('{"spec":{"containers":[' . $list . ']}}', [ PUT => '/v1/pools/p' ]) },
    )[rand 10]->();
    push @passed, "$list " . $r->status if !refused($r);
    $n++;
}

for my $how ([ POST => '/v1/templates' ], [ PUT => '/v1/templates/x' ], [ PATCH => '/templates/x' ]) {
    my $r = $t->request(@$how, body => '{"image":{"uri":"python:3.11"}}',
                        headers => [ 'Content-Type: application/json' ]);
    push @passed, "@$how" if !refused($r);
    $n++;
}

judge('images', $n, \@passed, 600);

($n, @passed) = (0);

for (1 .. 320) {
    my $who = ([ 'X-Agent-Id: mallory' ], [ 'X-Actor-Type: agent', 'X-Actor-Id: mallory' ])
        [rand 2];
    my @h = map { s/^([^:]*)/rand() < 0.5 ? lc $1 : rand() < 0.5 ? uc $1 : $1/er } @$who;
    push @h, $h[-1] =~ s/mallory/alice/r if rand() < 0.3;
    unshift @h, 'X_Agent_Id: alice' if rand() < 0.2;
    my $r = $t->post("$execd/command", body => '{"command":"echo mallory > /workspace/plain"}',
                     headers => \@h);
    push @passed, "@h" if !refused($r);
    $n++;
}

judge('actors', $n, \@passed, 300);


# --- roles ---------------------------------------------------------------------------------

($n, @passed) = (0);

for (1 .. 320) {
    my $token = $t->token('plain');
    my $carrier = ("Authorization: Bearer $token", "OPEN-SANDBOX-API-KEY: $token")[rand 2];
    my @h = ($carrier =~ s/^([^:]*)/rand() < 0.5 ? lc $1 : rand() < 0.5 ? uc $1 : $1/er);
    push @h, ('X-OpenSandbox-Roles: admin', 'X-Role: admin', 'Role: admin',
              'X-Sandbox-Role: admin', 'x-opensandbox-user: root', 'X-Actor-Type: user')[rand 6]
        if rand() < 0.6;
    my ($where, $member) = @{ $roads[rand 2] };
    my $r = $t->post("$execd$where", token => undef, headers => \@h,
                     body => sprintf '{"%s":"echo operator > /workspace/plain"}', $member);
    push @passed, "@h[1 .. $#h] $where" if !refused($r);
    $n++;
}

judge('roles', $n, \@passed, 300);


# --- metadata, sandboxes -------------------------------------------------------------------

($n, @passed) = (0);

for (1 .. 320) {
    my $escape = sub {
        join '', map { rand() < 0.3 ? sprintf('\u%04x', ord) : $_ } split //, $_[0]
    };
    my $body = '{"image":{"uri":"python:3.11"},"timeout":600,"resourceLimits":{"cpu":"1"},'
        . '"entrypoint":["tail"],"metadata":{"' . $escape->('team') . '":"'
        . $escape->('evil' . int rand 1000) . '"}}';
    $body =~ s/"metadata":/"Metadata":{"team":"red"},"metadata":/ if rand() < 0.1;
    $body =~ s/"metadata":/"metadata":{"team":"red"},"metadata":/ if rand() < 0.1;
    $body =~ s/\}\}$/,"team":"red"}}/ if rand() < 0.1;
    $body =~ s/"metadata":\{/"metadata":{"Team":"red","a":"b",/ if rand() < 0.2;
    $body =~ s/([,:{])/$1 \n\t/g if rand() < 0.3;
    my $r = $t->post('/v1/sandboxes', body => $body,
                     headers => [ 'Content-Type: application/json' ]);
    push @passed, $body if !refused($r);
    $n++;
}

judge('metadata of new sandboxes', $n, \@passed, 300);

my $blue = $t->post('/v1/sandboxes', headers => [ 'Content-Type: application/json' ],
    body => '{"image":{"uri":"python:3.11"},"timeout":600,"resourceLimits":{"cpu":"1"},'
            . '"entrypoint":["tail"],"metadata":{"\u0074eam":"bl\u0075e"}}')->json->{id};
my $jail = $t->post('/v1/sandboxes', headers => [ 'Content-Type: application/json' ],
    body => '{"image":{"uri":"python:3.11"},"timeout":600,"resourceLimits":{"cpu":"1"},'
            . '"entrypoint":["tail"]}')->json->{id};

SandboxTest::write_file("$t->{dir}/conf/policy", "deny jail { operation file.* dir.* command.*; access write; sandbox $jail; }\n"
    . SandboxTest::read_file("$t->{dir}/conf/policy"));
$t->reload;

for my $case ([ 'metadata', $blue, 'frozen' ], [ 'sandboxes', $jail, 'jail' ]) {
    my ($what, $box, $rule) = @$case;

    ok($t->wait_for(sub {
        $t->get("/v1/sandboxes/$box/proxy/44772/ping")->status == 200 }), "$rule: it is ready");
    my $files = listing($box);

    ($n, @passed) = (0);

    for (1 .. 320) {
        my $name = join '', map { rand() < 0.2 ? sprintf('%%%02' . (rand() < 0.5 ? 'x' : 'X'), ord)
                                               : $_ } split //, $box;
        my $to = ('', '/v1')[rand 2] . ('/sandboxes/', '//sandboxes/', '/./sandboxes/',
            "/sandboxes/$id/../", '/%73andboxes/')[rand() < 0.6 ? 0 : rand 5] . $name
            . ('/proxy/44772', '/proxy/044772', '/proxy/44772/proxy/44772',
               '/proxy/8080/proxy/44772', '//proxy/44772')[rand() < 0.6 ? 0 : rand 5];
        my ($how, $target, $text, @h) = @{ (
            upload([ '/workspace/new', 'x' ]), post('/command', '{"command":"touch /tmp/new"}'),
            post('/directories', '{"/workspace/new":{}}'),
            [ DELETE => '/files?path=/workspace/new', '' ])[rand 4] };
        push @h, "OpenSandbox-Ingress-To: $id-44772" if rand() < 0.2;
        my $r = $t->request($how, "$to$target", body => $text, headers => \@h);
        # a port of the sandbox where nobody listens
        next if $to =~ m{/proxy/8080/} && $r->status == 502;
        push @passed, "$how $to$target " . $r->status
            if !refused($r) && defined $r->header('X-Passed');
        $n++;
    }

    judge($what, $n, \@passed, 250);
    is(listing($box), $files, 'its files are what they were');
}


# --- sizes and counts ------------------------------------------------------------------------

($n, @passed) = (0);

for (1 .. 320) {
    my $kind = int rand 3;
    my $path = '/workspace/small/' . int rand 100;
    my @files = $kind == 0 ? ([ $path, 'x' x (2049 + rand 2000) ])
        : $kind == 1 ? (map { [ "$path$_", 'x' x (1700 + rand 300) ] } 1 .. 3 + int rand 3)
        :              (map { [ "$path$_", 'x' x rand 10 ] } 1 .. 6 + int rand 20);
    unshift @files, [ $path =~ s{small}{other}r, 'y' ] if rand() < 0.3;
    push @files, [ $path =~ s{small}{other}r, '' ] if rand() < 0.3;
    $_->[0] =~ s{/}{//} for rand() < 0.2 ? @files : ();
    my ($how, $target, $text, @h) = @{ upload(@files) };

    # the file before its name; words that look like the end of a part
    $text =~ s/(--B\r\n[^{]*\{[^\r]*\r\n)(--B\r\n.*?\r\n\r\n.*?\r\n)(?=--B)/$2$1/gs
        if rand() < 0.3;
    $text =~ s/x{20}/\r\n--Bx\r\n--\r\nB--\r\n---/ if rand() < 0.3;
    $text = "see\r\n$text" if rand() < 0.1;
    $text .= "--B--\r\n" x rand 3 if rand() < 0.2;
    my $r = $t->request($how, "$execd$target", body => $text, headers => \@h,
                        rand() < 0.4 ? (chunked => 1) : ());
    push @passed, "$kind " . $r->status if !refused($r);
    $n++;
}

judge('sizes and counts', $n, \@passed, 300);


# --- nothing has changed ----------------------------------------------------------------------

is(listing(), $before, 'no file of the runtime is another one');


# --- legitimate twins ---------------------------------------------------------------------------

my @refused;
$n = 0;

for my $path ('/workspace/plain', '/workspace/a..b', '/workspace/...', '/workspace/.envrc',
              '/workspace/environment.py', '/workspace/50%25.txt', '/workspace/%2e%2e',
              '/workspace/git/config', '//workspace/./x', '/tmp/x', '/workspace/a b',
              '/workspace/a~', "/workspace/\xe6\x8a\xa5", '/workspace/etc/passwd',
              '/workspace/.gitignore', "/workspace/\xef\xbc\x8e\xef\xbc\x8e") {
    for my $name ('upload', 'upload, second', 'replace', 'permissions', 'directories', 'rm') {
        my $r = send_to($road{$name}->($path));
        push @refused, "$name $path" if refused($r);
        $n++;
    }
}

for my $text ('echo rm -rf /workspace', "echo 'ls; rm -rf /'", 'rmdir /workspace/none',
              'grep -c "rm -rf" /workspace/plain', "cat <<E\nrm -rf /\nE", "# rm\nls",
              'git commit -m "rm x"', 'npm rm x', 'echo "$HOME" | wc -c', 'ls $(echo /tmp)',
              "printf 'rm\\n' | wc -l", 'farm=1; echo $farm', 'echo mkf; true',
              'sh -c "echo rm"', 'env A=1 echo rm', 'for i in rm; do echo $i; done',
              'test -f /workspace/rm || echo no', 'x=rm; echo $x', 'bash -lc "ls /tmp"') {
    my $r = send_to(post('/command', '{"command":' . text($text) . '}'));
    push @refused, $text if refused($r);
    $n++;
}

for my $mode (0, 4, 44, 600, 644, 755, 777, 1777) {
    my $r = send_to(upload([ '/workspace/m', 'x', $mode ]));
    push @refused, "mode $mode" if refused($r);
    $n++;
}

for my $sizes ([ 2048 ], [ 2048, 2048, 1024 ], [ (10) x 5 ]) {
    my $r = send_to(upload(map { [ "/workspace/small/$_", 'x' x $sizes->[$_] ] } 0 .. $#$sizes));
    push @refused, "sizes @$sizes" if refused($r);
    $n++;
}

for my $headers ([], [ 'X-OpenSandbox-Roles: operator' ], [ 'X-Role: operator' ]) {
    my $r = $t->post("$execd/command", body => '{"command":"true"}', headers => $headers);
    push @refused, "role @$headers" if refused($r);
    $n++;
}

for my $r (create('"image":{"uri":"python:3.11"},"entrypoint":["echo","rm -rf /"]'),
           create('"image":{"uri":"python"},"snapshotId":null,"extensions":{"a":"poolRef"},'
                  . '"entrypoint":["sh","-c","tail -f /dev/null"],"env":{"A":"rm x"}'),
           pool('{"spec":{"containers":[{"image":"python:3","command":["echo"],"args":["rm"]}]}}'),
           pool(undef, [ PUT => '/v1/pools/p' ])) {
    push @refused, $r->content if refused($r);
    $n++;
}

for my $text ('-----BEGIN PUBLIC KEY-----', 'AKIA' . 'q7' x 8, 'AKIAQ7', 'ghp_short', 'npm_config',
              'x' x 8192) {
    my $r = send_to(upload([ '/workspace/text', $text ]));
    push @refused, "text $text" if refused($r);
    $n++;
}

for my $target ("/v1/sandboxes/$jail/proxy/44772/files/info?path=/tmp",
                "/v1/sandboxes/$blue/proxy/44772/ping") {
    my $r = $t->get($target);
    push @refused, $target if refused($r);
    $n++;
}

is_deeply(\@refused, [], "$n legitimate requests: none is refused");

$t->stop;
done_testing;


# Text in JSON, with some of its characters escaped; bytes stay what they are.

sub text {
    my $s = shift;

    return '"' . join('', map {
        /["\\]/ ? "\\$_" : ord($_) < 32 ? sprintf('\u%04x', ord)
        : ord($_) < 127 && rand() < 0.15 ? sprintf('\u%04' . (rand() < 0.5 ? 'x' : 'X'), ord)
        : $_ } split //, $s) . '"';
}


sub query {
    my $s = shift;

    return join '', map {
        /[\w.\/~-]/ && rand() < 0.7 ? $_
        : sprintf('%%%02' . (rand() < 0.5 ? 'x' : 'X'), ord) } split //, $s;
}


# The end of a here-document: of two in one another each has its own.

sub mark { 'E' . ++$marks }


sub single { "'" . $_[0] =~ s/'/'\\''/gr . "'" }


sub upload {
    my @files = @_;

    my $text = join '', map {
        my ($path, $data, $mode) = @$_;
        "--B\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"m\"\r\n\r\n"
        . '{"path":' . text($path) . (defined $mode ? ",\"mode\":$mode" : '') . "}\r\n"
        . "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n$data\r\n"
    } @files;

    return [ POST => '/files/upload', "$text--B--\r\n",
             'Content-Type: multipart/form-data; boundary=B' ];
}


sub post { [ POST => $_[0], $_[1], 'Content-Type: application/json' ] }


sub send_to {
    my ($how, $target, $text, @h) = @{ $_[0] };

    return $t->request($how, "$execd$target", body => $text, headers => \@h);
}


# A request whose body comes in two pieces.

sub in_two {
    my ($at, $how, $target, $text, @h) = @_;

    my $c = $t->connect;
    $c->write($c->build($how => "$execd$target", headers => [ $t->credential, @h,
        'Content-Length: ' . length $text ]));
    $c->write(substr $text, 0, $at);
    sleep 0.001;
    $c->write(substr $text, $at);

    return $c->response(method => $how);
}


# A new sandbox with these members, and what must be there too.

sub create {
    my ($members) = @_;

    return $t->post('/v1/sandboxes', headers => [ 'Content-Type: application/json' ],
        body => '{' . $members . ',"timeout":600,"resourceLimits":{"cpu":"1"}}');
}


# A pool with this template.

sub pool {
    my ($template, $how) = @_;

    return $t->request(@{ $how // [ POST => '/v1/pools' ] },
        headers => [ 'Content-Type: application/json' ],
        body => '{"name":"p","capacitySpec":{"bufferMax":1,"bufferMin":0,"poolMax":1,"poolMin":0}'
                . (defined $template ? ',"template":' . $template : '') . '}');
}


# By us, and not by upstream.

sub refused {
    my $r = shift;

    my $code = eval { $r->code } // '';

    return $r->status =~ /^(?:400|403|413)$/ && $code =~ /^GATEWAY_/;
}


sub judge {
    my ($what, $count, $bad, $least) = @_;

    cmp_ok($count, '>=', $least, "$what: $count variants");
    is_deeply($bad, [], 'none passes');
}


sub run {
    my ($command, $box) = @_;

    # past the gateway, whose rules hold for some
    my ($port) = $t->{upstream_address} =~ /:(\d+)/;
    my $to = LocalRuntime::ask($port, GET => '/v1/sandboxes/' . ($box // $id) . '/endpoints/44772',
                               undef, "OPEN-SANDBOX-API-KEY: $t->{api_key}")->json->{endpoint};
    my $runtime = bless { execd => { $box // $id => $to =~ /:(\d+)/ } }, 'LocalRuntime';

    return $runtime->run($box // $id, $command);
}


# Every file there is, but what only shows the state of the system.

sub listing {
    my ($box) = @_;

    return run('for d in / /workspace /tmp /root /opt /etc /.agent-history /.agent-upload '
        . '/.agent-helper; do find $d -maxdepth 3 \( -path /proc -o -path /sys -o -path /dev '
        . '-o -path /usr -o -path /run \) -prune -o -printf "%p %y %s %m\n" 2>/dev/null; done '
        . '| sort -u; cat /workspace/.env /workspace/.git/config /workspace/.ssh/id '
        . '/workspace/keep/a /root/.ssh/authorized_keys /opt/x/a /workspace/plain', $box);
}
