#!/usr/bin/perl

# What the real execd was seen to answer beyond its recordings (it was built from
# its sources at 3bb6fad3 and asked the same as ours): edges of files, ranges,
# patterns, permissions, commands and sessions.

use strict;
use warnings;
use utf8;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use LocalRuntime;
use SandboxHttp;
use SandboxProcess;
use SandboxWs;

my $rt = LocalRuntime->start('--grace=0');
my $box = $rt->create;
my $W = '/workspace';


sub execd { $rt->execd($box, @_) }
sub upload { $rt->upload($box, @_) }
sub info { execd(GET => "/files/info?path=$_[0]")->json->{ $_[0] } // {} }

# "status code" of an answer, or "status" alone.
sub said {
    my $r = shift;

    return join ' ', grep { defined } $r->status, $r->code;
}


# A form of parts [ name, head lines, content ].

sub form {
    my ($parts, %o) = @_;

    my $nl = $o{nl} // "\r\n";
    my $text = join '', map {
        my ($head, $content) = @$_;
        "--B$nl$head$nl$nl$content$nl";
    } @$parts;

    return execd(POST => '/files/upload', ($o{before} // '') . "$text--B--$nl",
                 'Content-Type: ' . ($o{type}
                                     // 'multipart/form-data; boundary=B'));
}

my $META = 'Content-Disposition: form-data; name="metadata"; filename="m"';
my $FILE = 'Content-Disposition: form-data; name="file"; filename="f"';


# --- uploads --------------------------------------------------------------------

is(said(upload("$W/sl/", 'x')), '500 RUNTIME_ERROR',
   'a path with a slash at its end is no file');
is(info("$W/sl")->{type}, 'directory', 'but a directory now');

is(said(upload("$W/o1", 'x', owner => 'nosuch')), '500 RUNTIME_ERROR',
   'an unknown owner');
is(info("$W/o1")->{size}, 1, 'is found when the file is written');
is(said(upload("$W/o2", 'x', owner => '1000')), '500 RUNTIME_ERROR',
   'a number is not a name');

is(said(form([ [ $META, '{"path":"/workspace/tr"} x' ], [ $FILE, 'x' ] ])),
   '400 INVALID_FILE_METADATA', 'metadata with something behind it');
is(said(form([ [ $META =~ s/"m"/"m"a"/r, '{"path":"/workspace/q"}' ],
               [ $FILE, 'x' ] ])), '400 INVALID_FILE_METADATA',
   'a file name with a quote in it: no file part');
is(said(form([ [ $META, '{"path":"/workspace/lf"}' ], [ $FILE, 'hi' ] ],
             nl => "\n")), '200', 'lines that end with a line feed alone');
is(execd(GET => "/files/download?path=$W/lf")->content, 'hi', 'are lines');
is(said(form([ [ $META, '{"path":"/workspace/pre"}' ], [ $FILE, "a\nb" ] ],
             before => "before\n--Bx\n")), '200', 'a preamble');
is(execd(GET => "/files/download?path=$W/pre")->content, "a\nb",
   'does not count');
is(said(form([ [ $META, '{"path":"/workspace/bd"}' ],
               [ $FILE, "x\r\n--B in text" ] ])), '400 INVALID_FILE',
   'a boundary with text behind it breaks the form');
is(said(form([ [ $META, '{"path":"/workspace/be"}' ],
               [ $FILE, "x\r\n--Bz\r\n-" ] ])), '200',
   'what only begins like one does not');
is(said(form([ [ $META, '{"path":"/workspace/bt"}' ], [ $FILE, 'x' ] ],
             type => 'Multipart/Form-Data; BOUNDARY="B"; charset=x')), '200',
   'the type in any case');


# --- downloads ------------------------------------------------------------------

upload("$W/r10", '0123456789');
upload("$W/e0", '');
$rt->run($box, "touch -d 2020-01-01T00:00:00Z $W/r10");

sub range {
    my ($file, $value, @more) = @_;

    my $r = execd(GET => "/files/download?path=$W/$file", undef,
                  "Range: $value", @more);
    return $r->status == 416 ? 416
         : join ' ', $r->status, $r->header('Content-Range') // '-',
                     $r->content;
}

for ([ 'bytes=0-0', '206 bytes 0-0/10 0' ],
     [ 'bytes=9-100', '206 bytes 9-9/10 9' ],
     [ 'bytes=10-', 416 ], [ 'bytes=-0', '206 bytes 10-9/10 ' ],
     [ 'bytes=-100', '206 bytes 0-9/10 0123456789' ],
     [ 'bytes=5-2', 416 ], [ 'bytes=', '200 - 0123456789' ],
     [ 'bytes=-', 416 ], [ 'BYTES=1-2', 416 ],
     [ 'bytes= 2-3', '206 bytes 2-3/10 23' ],
     [ 'bytes=2 - 3 , 5-6', '206 bytes 2-3/10 23' ],
     [ 'bytes=99-,0-0', '206 bytes 0-0/10 0' ],
     [ 'bytes=1-+2', '206 bytes 1-2/10 12' ],
     [ 'bytes=0-18446744073709551616', 416 ])
{
    is(range('r10', $_->[0]), $_->[1], "Range: $_->[0]");
}

is(range('e0', 'bytes=0-'), '200 - ', 'a range of an empty file');

sub condition {
    return execd(GET => "/files/download?path=$W/r10", undef, @_)->status;
}

my $THEN = 'Wed, 01 Jan 2020 00:00:00 GMT';
my $BEFORE = 'Tue, 31 Dec 2019 23:59:59 GMT';

for ([ 304, "If-Modified-Since: $THEN" ],
     [ 200, "If-Modified-Since: $BEFORE" ],
     [ 200, 'If-Modified-Since: junk' ],
     [ 200, "If-Unmodified-Since: $THEN" ],
     [ 412, "If-Unmodified-Since: $BEFORE" ],
     [ 304, 'If-None-Match: *' ], [ 200, 'If-None-Match: "x"' ],
     [ 412, 'If-Match: "x"' ], [ 200, 'If-Match: *' ],
     [ 206, 'Range: bytes=1-2', "If-Range: $BEFORE" ],
     [ 416, 'Range: bytes=10-', "If-Range: $THEN" ],
     [ 200, 'Range: bytes=10-', "If-Range: $BEFORE" ])
{
    my ($status, @headers) = @$_;
    is(condition(@headers), $status, "@headers: $status");
}

my $r = execd(GET => "/files/download?path=$W/");
is($r->header('Content-Disposition'), 'attachment; filename="workspace"',
   'a directory has its name');
is($r->header('Content-Length'), '9223372036854775807', 'an absurd length');
is($r->complete ? 1 : 0, 0, 'and no content');

is(said(execd(GET => "/files/download?path=$W/r10%00")), '500 RUNTIME_ERROR',
   'a NUL does not end a path');
is(said(execd(GET => "/files/info?path=$W/r10%00x")), '500 RUNTIME_ERROR',
   'nowhere');
is(said(execd(POST => '/files/mv', '[{"src":"/workspace/r10\u0000","dest":"/workspace/x"}]')),
   '500 RUNTIME_ERROR', 'in JSON neither');

upload("$W/l6", "a\r\nb\r\n\r\nc\n\n");

for ([ 'offset=1', "a\nb\n\nc\n" ], [ 'offset=2&limit=2', "b\n" ],
     [ 'limit=1', 'a' ], [ 'offset=9', '' ])
{
    is(execd(GET => "/files/download?path=$W/l6&$_->[0]")->content, $_->[1],
       "lines: $_->[0]");
}

is(said(execd(GET => "/files/download?path=$W/l6&$_")),
   '400 INVALID_REQUEST_BODY', "lines: $_ is refused")
    for qw(offset=0 limit=0 offset=-1 offset=x offset=+2 limit=1.5
           offset=99999999999999999999);


# --- answers have a length as long as they are short ------------------------------

$rt->run($box, "mkdir $W/many; cd $W/many; touch \$(seq 1 30)");
$r = execd(GET => "/directories/list?path=$W/many");
is($r->{framing}, 'chunked', 'a JSON answer above 2048 bytes has none');
is(@{ $r->json }, 30, 'and is whole');
is(execd(GET => "/directories/list?path=$W/many&depth=0")->{framing}, 'length',
   'a short one has');

$r = execd(POST => '/command', { command => 'seq 1 2000', background => JSON::PP::true });
my ($cid) = $r->content =~ /"text":"([0-9a-f]{32})"/;
SandboxProcess->wait_for(sub {
    !execd(GET => "/command/status/$cid")->json->{running};
});
$r = execd(GET => "/command/$cid/logs?cursor=2");
is($r->{framing}, 'chunked', 'nor has a long log');
is($r->content, join('', map { "$_\n" } 2 .. 2000), 'from the cursor');
is($r->header('Execd-Commands-Tail-Cursor'), 8893, 'to the end');


# --- search ---------------------------------------------------------------------

$rt->run($box, "mkdir -p $W/S/a; cd $W/S; touch one.py two.txt a/three.py"
               . ' "[b].py" é.py ".h.py"; ln -s a lnk');

sub found {
    my $q = shift;
    utf8::encode($q);
    my $r = execd(GET => "/files/search?path=$W/S&pattern="
                         . $q =~ s/([^\w.*-])/sprintf '%%%02X', ord $1/ger);
    return said($r) if $r->status != 200;
    return join ' ', sort map { $_->{path} =~ s{^$W/S/}{}r } @{ $r->json };
}

for ([ 'one.*', 'one.py' ], [ '?.py', 'é.py' ], [ '??.py', '.h.py' ],
     [ '[é].py', 'é.py' ], [ '[à-ê].py', 'é.py' ],
     [ '**/t*.py', 'a/three.py' ], [ 'two.txt/**', 'two.txt' ],
     [ 'a/*.py', '' ], [ '{one,a/three,two}.{py,txt}', 'one.py two.txt' ],
     [ '{o{ne,x},q}.py', 'one.py' ], [ '{,one.py}', 'one.py' ],
     [ '[^o]*.txt', 'two.txt' ], [ '[!o]*.txt', 'two.txt' ],
     [ '\[b\].py', '[b].py' ], [ '[[:alpha:]]*', '' ], [ '.*', '.h.py' ],
     [ 'lnk', 'lnk' ], [ '!(*.py)', 'lnk two.txt' ],
     [ '[', '500 RUNTIME_ERROR' ], [ '{a', '500 RUNTIME_ERROR' ],
     [ '*}', '500 RUNTIME_ERROR' ], [ '[]', '500 RUNTIME_ERROR' ],
     [ 'a\\', '500 RUNTIME_ERROR' ], [ 'a!b', '500 RUNTIME_ERROR' ])
{
    is(found($_->[0]), $_->[1], "search: $_->[0]");
}

is_deeply([ map { [ @$_{qw(path type)} ] }
            @{ execd(GET => "/files/search?path=$W/S/lnk&pattern=*")->json } ],
          [ [ "$W/S/lnk", 'symlink' ] ], 'a link to begin at is not followed');
is(said(execd(GET => "/directories/list?path=$W/S&depth=$_")),
   '400 INVALID_REQUEST_BODY', "depth=$_") for qw(+1 9223372036854775808 1.0);
is(execd(GET => "/directories/list?path=$W/S&depth=%2B1")->status, 200,
   'depth=%2B1 is a number');


# --- permissions, directories -------------------------------------------------------

sub mode {
    my $m = shift;
    my $r = execd(POST => '/files/permissions',
                  { "$W/r10" => { mode => $m } });
    return $r->status == 200 ? info("$W/r10")->{mode} : said($r);
}

for ([ 7, 7 ], [ 0, 7 ], [ 777, 777 ], [ 1640, 640 ], [ 4755, 755 ],
     [ 888, '500 RUNTIME_ERROR' ], [ -1, '500 RUNTIME_ERROR' ])
{
    is(mode($_->[0]), $_->[1], "mode $_->[0]");
}

for my $who (qw(owner group)) {
    is(said(execd(POST => '/files/permissions',
                  { "$W/r10" => { $who => 'nosuch', mode => 600 } })),
       '500 RUNTIME_ERROR', "an unknown $who");
}

is(info("$W/r10")->{mode}, 600, 'is looked at behind the mode');

sub made { execd(POST => '/directories', { "$W/k/$_[0]" => $_[1] }) }

is(made(1 => { mode => 700 })->status, 200, 'a directory');
is(made(1 => { mode => 755 })->status, 200, 'that is there');
is(info("$W/k/1")->{mode}, 700, 'keeps its mode');
is(said(made(2 => { owner => 'nosuch' })), '500 RUNTIME_ERROR',
   'an unknown owner');
is(said(execd(DELETE => '/directories?path=')), '200',
   'an empty path is nothing');
is(info($W)->{type}, 'directory', 'and removes nothing');
is(said(execd(DELETE => "/directories?path=$W/k/.")), '500 RUNTIME_ERROR',
   'one that ends with a dot is refused');
is(info("$W/k/1")->{type}, 'directory', 'and stays');

is(said(execd(POST => $_, 'null')), '200', "$_ of null: nothing to do")
    for qw(/files/mv /files/permissions /files/replace /directories);


# --- commands, sessions, code ---------------------------------------------------------

my ($init, $ping, $error) = LocalRuntime::events(
    execd(POST => '/command', '{"command":"echo a\u0000b"}'));
is($error->{error}{ename}, 'CommandExecError', 'a command with a NUL');
like($error->{error}{evalue}, qr/invalid argument/i, 'cannot be started');

is(execd(POST => '/command', { command => 'printf "\b\f\v\n"' })->content
       =~ /"text":"\\b\\f\\u000b"/, 1, 'escapes of Go');

my $sid = execd(POST => '/session', 'null')->json->{session_id};
ok($sid, 'a session of null');

sub run_in {
    my $r = execd(POST => "/session/$sid/run", ref $_[0] ? $_[0]
                                               : { command => $_[0] });
    return said($r) if $r->status != 200;
    return join "\n", map { $_->{text} }
                      grep { $_->{type} eq 'stdout' } LocalRuntime::events($r);
}

is(run_in({ command => 'pwd', cwd => '/nonexist' }),
   '400 INVALID_REQUEST_BODY', 'a directory that is not there');
is(run_in({ command => 'pwd', cwd => '/etc' }), '/etc', 'one that is');
is(run_in('export Q=5; PATH=/nowhere; printf() { :; }; export -f printf'), '',
   'a session without a PATH');
is(run_in('echo $PATH $Q'), '/nowhere 5', 'keeps what it has');
is(said(execd(POST => '/session/nope/run', { command => 'x', cwd => '/no' })),
   '400 INVALID_REQUEST_BODY', 'the directory is looked at first');
is(said(execd(POST => '/code', '{"code":"x","context":5}')),
   '400 INVALID_REQUEST_BODY', 'a context that is none');



# bash has its script and its state at two descriptors: when many run at once
# execd has others of these numbers itself, whichever come to lie there

{
    my $port = $rt->port($box);
    my (@idle, @wrong);

    for my $idle (1 .. 6) {
        push @idle, SandboxHttp->connect(port => $port);
        my @runs = map { {
            n    => $_,
            id   => execd(POST => '/session', 'null')->json->{session_id},
            conn => SandboxHttp->connect(port => $port),
        } } 1 .. 60;

        for my $run (@runs) {
            $run->{conn}->write($run->{conn}->build(POST => "/session/$run->{id}/run",
                headers => [ 'Content-Type: application/json' ],
                body => qq({"command":"export V=$run->{n}; sleep 1; echo \$V"})));
        }

        for my $run (@runs) {
            my @said = map { LocalRuntime::events($_) }
                $run->{conn}->response(timeout => 60),
                execd(POST => "/session/$run->{id}/run", { command => 'echo $V' });
            my $text = join ' ', map { $_->{text} } grep { $_->{type} =~ /^std/ } @said;
            push @wrong, "$run->{n}: $text" if $text ne "$run->{n} $run->{n}";
            execd(DELETE => "/session/$run->{id}");
        }
    }

    is(join("\n", @wrong), '', 'many sessions run at once and keep what they have');
}


# --- terminals ------------------------------------------------------------------------

my $pty = execd(POST => '/pty', 'null')->json->{session_id};
ok($pty, 'a terminal of null');

sub terminal {
    return SandboxWs->open(target => "/pty/$pty/ws", @_,
        conn => SandboxHttp->connect(port => $rt->port($box)));
}

is(terminal(key => 'short')->status, 400, 'a key that is none');

my $ws = terminal();
is($ws->status, 101, 'opened');
$ws->recv_until(sub { $_[0]{payload} =~ /# $/ });

# what is no JSON, or more than that, is passed over; the answer to the last
# shows that nothing came before it
for ([ 'null', 'INVALID_FRAME' ], [ '{}', 'INVALID_FRAME' ],
     [ '{"type":"ping"}{"type":"ping"}', 'last' ], [ 'junk', 'last' ],
     [ '5', 'last' ], [ '{"type":5}', 'last' ], [ '', 'last' ])
{
    my ($text, $want) = @$_;
    $ws->send(1, $text);
    $ws->send(1, '{"type":"last"}');
    my ($first) = $ws->recv_until(sub { 1 });
    is($first->{payload} =~ /frame type \\"last/ ? 'last'
       : JSON::PP->new->decode($first->{payload})->{code}, $want,
       "frame '$text'");
    $ws->recv if $want ne 'last';
}

$ws->send(1, '{"type":"resize","cols":70000,"rows":5}');
$ws->send(2, "\0stty size\n");
my $seen = '';
$ws->recv_until(sub { $seen .= $_[0]{payload}; $seen =~ /size.*5 4464.*# $/s });
like($seen, qr/size.*\b5 4464\r\n/s, 'a width is taken modulo 65536');
$ws->send(2, "\0exit\n");
ok((grep { $_->{payload} =~ /"exit_code":0/ }
    $ws->recv_until(sub { $_[0]{op} == 8 })), 'it exits');

is($rt->complaints, '', 'nothing bad in any log');
is($rt->stop, 0, 'SIGTERM');

done_testing;
