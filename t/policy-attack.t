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
use SandboxTest;
use Test::More;
use Time::HiRes qw(sleep);

srand($ENV{POLICY_SEED} // 1);

my $json = JSON::PP->new->allow_nonref;
my $marks = 0;
my $t = SandboxTest->new(runtime => 1, runtime_args => [ '--grace=0' ],
                         location => 'sandbox_policy policy;');

my $rules = <<'END_RULES';
deny port { port 9000-9099; }
deny image { operation sandbox.create; image evil/*; }
deny actor { operation command.execute; actor agent/mallory; }
deny no-rm { command "^rm\b" "\bmkfs"; }
deny role { operation command.execute; role operator; }
deny made { operation sandbox.create; metadata team=evil*; }
deny frozen { operation file.* dir.* command.*; access write; metadata team=blue; }
deny small { operation file.write; path /workspace/small/; file_size > 2k; }
deny whole { operation file.write; path /workspace/small/; request_size > 5k; }
deny number { operation file.write; path /workspace/small/; files > 5; }
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
    my $c = $t->connect;
    $c->write($c->build($method => "$execd$where", headers => [ $t->credential, @headers,
        'Content-Length: ' . length $body ]));
    $c->write(substr $body, 0, $at);
    sleep 0.001;
    $c->write(substr $body, $at);
    push @passed, $at if !refused($c->response(method => 'POST'));
    $n++;
}

judge('splits', $n, \@passed, 300);


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
}

judge('commands', $n, \@passed, 300);


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

judge('images', $n, \@passed, 300);

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
        push @passed, "$how $to$target " . $r->status if $r->status < 400;
        $n++;
    }

    judge($what, $n, \@passed, 300);
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
    my $r = $t->post("$execd/command", body => '{"command":' . $json->encode($_[0]) . '}');

    return join "\n", map { $_->{text} } grep { $_->{type} eq 'stdout' }
        map { $json->decode($_) } grep { length } split /\n\n/, $r->content;
}


# Every file there is, but what only shows the state of the system.

sub listing {
    return run('for d in / /workspace /tmp /root /opt /etc /.agent-history /.agent-upload '
        . '/.agent-helper; do find $d -maxdepth 3 \( -path /proc -o -path /sys -o -path /dev '
        . '-o -path /usr -o -path /run \) -prune -o -printf "%p %y %s %m\n" 2>/dev/null; done '
        . '| sort -u; cat /workspace/.env /workspace/.git/config /workspace/.ssh/id '
        . '/workspace/keep/a /root/.ssh/authorized_keys /opt/x/a /workspace/plain');
}
