#!/usr/bin/perl

# sandbox-runtime: code in python and bash contexts, with events as the real
# execd gives them when a Jupyter stands behind it (seen from one that was built
# from its sources).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Test::More;

use LocalRuntime;
use SandboxHttp;
use SandboxProcess;

my $rt = LocalRuntime->start('--grace=0');
my $box = $rt->create;
my $json = JSON::PP->new->utf8->canonical;
my $UUID = qr/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;


sub execd { $rt->execd($box, @_) }
sub code { execd(POST => '/code', { context => $_[0], code => $_[1] }) }

sub said {
    my $r = shift;

    return join ' ', grep { defined } $r->status, $r->code;
}


# The events of an answer in short: "stdout a\n|result {...}|complete".

sub short {
    my $r = shift;

    return said($r) if $r->status != 200;

    my (@all, %text);

    for my $e (LocalRuntime::events($r)) {
        my $type = $e->{type};
        next if $type =~ /^(?:init|ping)$/;

        if ($type =~ /^std/) {
            # how it is cut is for the reader of the pipe to say
            if (@all && $all[-1] =~ /^$type /) { $all[-1] .= $e->{text} }
            else { push @all, "$type $e->{text}" }
            next;
        }

        push @all, $type eq 'execution_complete' ? 'complete'
            : $type eq 'result' ? 'result ' . $json->encode($e->{results})
            : $type eq 'execution_count' ? "count $e->{execution_count}"
            : $type eq 'error'
              ? "error $e->{error}{ename}: $e->{error}{evalue}"
            : "$type $e->{text}";
    }

    return join '|', @all;
}


sub context {
    my $r = execd(POST => '/code/context', { @_ });
    die 'context: ' . $r->content . "\n" if $r->status != 200;
    return $r->json;
}

SKIP: {
    skip 'no python3 in a sandbox', 1
        if $rt->run($box, 'command -v python3') eq '';
    python();
}

bash();
contexts();
ended();

is($rt->complaints, '', 'nothing bad in any log');
is($rt->stop, 0, 'SIGTERM');

without();

done_testing;


sub python {
    my $made = context(language => 'python', cwd => '/tmp/of kernel');
    like($made->{id}, qr/^$UUID$/, 'a context has a uuid');
    is($made->{cwd}, '/tmp/of kernel', 'and its directory');

    my $k = { language => 'python', id => $made->{id} };

    my $r = code($k, "import os\nx = 20\nprint('hi')\nos.getcwd()");
    is($r->content =~ /^\{"type":"init","text":"\Q$made->{id}\E","timestamp":\d+\}\n\n\{"type":"ping"/,
       1, 'the first event names the context');
    is(short($r), "stdout hi\n|count 1|result {\"text\":\"'/tmp/of kernel'\"}|complete",
       'output, then what the last line gives');
    like($r->content, qr/"type":"result","timestamp":\d+,"results":\{/,
         'members in their order');

    for ([ 'x + 1', 'count 2|result {"text":"21"}|complete' ],
         [ '_ + 1', 'count 3|result {"text":"22"}|complete' ],
         [ 'None', 'complete' ], [ 'x', 'count 5|result {"text":"20"}|complete' ],
         [ 'x;', 'complete' ], [ "print('a\\nb'); print('c', end='')",
                                 "stdout a\nb\nc|complete" ],
         [ "import sys\nsys.stderr.write('e\\n')\n0",
           "stderr e\n|count 8|result {\"text\":\"0\"}|complete" ],
         [ 'os.system("echo sub") and 1', "stdout sub\n|count 9|result {\"text\":\"0\"}|complete" ],
         [ "class R:\n def _repr_html_(s): return '<b>'\n def __repr__(s): return 'R'\nR()",
           'count 10|result {"text":"R","text/html":"<b>"}|complete' ],
         [ '1/0', 'status error|error ZeroDivisionError: division by zero|complete' ],
         [ 'def f(:', 'status error|error SyntaxError: invalid syntax (<cell 12>, line 1)|complete' ],
         [ 'raise SystemExit(3)', 'status error|error SystemExit: 3|complete' ],
         [ "print('out')\nraise KeyError('k')",
           "stdout out\n|status error|error KeyError: 'k'|complete" ],
         [ "'<&>\xe4\xbd\xa0'", "count 15|result {\"text\":\"'<&>\xe4\xbd\xa0'\"}|complete" ],
         [ 'input()', 'status error|error EOFError: EOF when reading a line|complete' ])
    {
        my ($text, $want) = @$_;
        utf8::decode(my $chars = $text);
        is(short(code($k, $chars)), $want, "python: $text");
    }

    like(code($k, '"<&>"')->content, qr/'\\u003c\\u0026\\u003e'/,
         'escaped as Go does');

    my ($error) = grep { $_->{type} eq 'error' } LocalRuntime::events(
        code($k, "def deep():\n    return [][1]\ndeep()"));
    is_deeply([ grep { /^  File/ } @{ $error->{error}{traceback} } ],
              [ '  File "<cell 18>", line 3, in <module>',
                '  File "<cell 18>", line 2, in deep' ],
              'a traceback shows the code, not what runs it');

    is(short(code({ language => 'python' }, 'y = 1')), 'complete',
       'code without a context');
    is(short(code({ language => 'python' }, 'y')),
       'count 2|result {"text":"1"}|complete', 'has a standard one');
    is(short(code({ language => 'bash', id => $made->{id} }, 'x')),
       'count 19|result {"text":"20"}|complete',
       'the id says which kernel, not the language');
    is(said(code({ language => 'python', id => 'nope' }, '1')),
       '500 RUNTIME_ERROR', 'an unknown id');

    # one at a time; an interrupt
    my $c = SandboxHttp->connect(port => $rt->port($box));
    $c->write($c->build(POST => '/code', body => $json->encode({ context => $k,
        code => "import time\nprint('begun')\ntime.sleep(60)" })));
    my $slow = $c->response(head_only => 1);
    SandboxProcess->wait_for(sub { $c->fill(time + 1); $c->{buf} =~ /begun/ });

    is(code($k, '1')->content =~ /^\{"type":"init".*\}\n\n\{"code":"RUNTIME_ERROR","message":"error running codes session is busy"\}$/s,
       1, 'a busy one says so at the end of a stream');
    is(execd(DELETE => "/code?id=$made->{id}")->status, 200, 'interrupted');
    $c->body($slow, timeout => 10);
    like($slow->content, qr/"ename":"KeyboardInterrupt".*"execution_complete"/s,
         'it ends');
    is(short(code($k, 'x')), 'count 21|result {"text":"20"}|complete',
       'and has lost nothing');
    is(execd(DELETE => "/code?id=$made->{id}")->status, 200,
       'an idle one can be interrupted');

    # a client that leaves does not stop it
    $c = SandboxHttp->connect(port => $rt->port($box));
    $c->write($c->build(POST => '/code', body => $json->encode({ context => $k,
        code => "time.sleep(0.3)\nopen('/tmp/went-on', 'w').close()" })));
    $c->response(head_only => 1);
    $c->close;
    ok(SandboxProcess->wait_for(sub {
        execd(GET => '/files/info?path=/tmp/went-on')->status == 200;
    }), 'code outlives its client');

    # characters that come in pieces, bytes that are none
    SandboxProcess->wait_for(sub {
        short(code($k, '1')) !~ /busy/ && code($k, '1')->content !~ /busy/;
    });
    is(short(code($k, "for b in (b'\\xe4\\xbd', b'\\xa0\\xff\\n'):\n"
                      . "  os.write(1, b); time.sleep(0.1)")),
       "stdout \x{4f60}\x{fffd}\n|complete", 'a character in two pieces');

    # what the interpreter tells is not believed
    is(short(code($k, "os.write(198, b'junk\\n{\"results\":5}\\n{\"error\":[]}\\n');")),
       'complete', 'lies are passed over');

    is(short(code($k, 'os._exit(3)')),
       'status error|error DeadKernelError: Kernel died|complete',
       'a kernel dies');
    is(short(code($k, "'x' in globals()")),
       'count 1|result {"text":"False"}|complete', 'the next code has a new one');
    is(execd(DELETE => "/code/contexts/$made->{id}")->status, 200, 'deleted');
    is(said(code($k, '1')), '500 RUNTIME_ERROR', 'it is gone');
}


sub bash {
    my $b = { language => 'bash' };

    for ([ 'echo hi; echo err >&2; pwd; A=5',
           "stdout hi\nerr\n/workspace\n|complete" ],
         [ 'echo $A; false', "stdout 5\n|status error|error : 1|complete" ],
         [ 'cd /tmp; export B=3; f() { echo fn; }', 'complete' ],
         [ 'pwd; echo $B; f; printf no', "stdout /tmp\n3\nfn\nno|complete" ],
         [ "for i in 1 2; do\n echo \$i\ndone", "stdout 1\n2\n|complete" ],
         [ 'set -e; true', 'complete' ], [ 'set +e; (exit 7)',
                                           'status error|error : 7|complete' ])
    {
        is(short(code($b, $_->[0])), $_->[1], "bash: $_->[0]");
    }

    like(short(code($b, 'if')), qr/^stdout .*syntax error.*\n\|status error\|error : 2\|complete$/,
         'a syntax error');
    is(short(code($b, 'echo $B; exit 4')), "stdout 3\n|complete",
       'exit ends it');
    is(short(code($b, 'echo "[$B]"')), "stdout []\n|complete",
       'the next code has a new one');
    is(scalar(grep { $_->{type} eq 'stdout' } LocalRuntime::events(
           code($b, 'echo 1; echo 2; echo 3'))), 3, 'an event for each line');
    is(said(execd(POST => '/code', '{"context":{"language":"bash"},"code":"a\u0000"}')),
       '500 RUNTIME_ERROR', 'a NUL');
}


sub contexts {
    execd(DELETE => "/code/contexts?language=$_") for qw(python bash);
    is_deeply(execd(GET => '/code/contexts')->json, [], 'no context');

    my @made = map { context(language => 'bash')->{id} } 1 .. 2;
    is_deeply([ sort map { $_->{id} }
                @{ execd(GET => '/code/contexts?language=bash')->json } ],
              [ sort @made ], 'those of a language');
    is_deeply(execd(GET => '/code/contexts?language=python')->json, [],
              'not of another');
    is_deeply(execd(GET => "/code/contexts/$made[0]")->json,
              { id => $made[0], language => 'bash' }, 'one');
    is(said(execd(GET => "/code/contexts?language=$_")),
       '500 RUNTIME_ERROR', "no contexts of $_") for qw(command sql);
    is(execd(DELETE => "/code/contexts/$made[0]")->status, 200, 'delete');
    is(said(execd(DELETE => "/code/contexts/$made[0]")),
       '404 CONTEXT_NOT_FOUND', 'once');
    is(execd(DELETE => '/code/contexts?language=bash')->status, 200,
       'all of a language');
    is(said(execd(GET => "/code/contexts/$made[1]")),
       '404 CONTEXT_NOT_FOUND', 'are gone');
    is(said(execd(POST => '/code/context', { language => $_ })),
       '500 RUNTIME_ERROR', "no kernel for '$_'") for 'go', '';
    is(said(code({ language => 'Python' }, '1')), '500 RUNTIME_ERROR',
       'an unknown language');

    # the bound
    my @many = map { execd(POST => '/code/context', { language => 'bash' }) }
               1 .. 65;
    is(scalar(grep { $_->status == 200 } @many), 64, 'at most 64 contexts');
    is($many[-1]->status, 500, 'then no more');
    execd(DELETE => '/code/contexts?language=bash');
    is(execd(POST => '/code/context', { language => 'bash' })->status, 200,
       'before some are deleted');
}


# A context that is deleted while its code runs ends it.

sub ended {
    my $id = context(language => 'bash')->{id};
    my $c = SandboxHttp->connect(port => $rt->port($box));
    $c->write($c->build(POST => '/code', body => $json->encode({
        context => { language => 'bash', id => $id },
        code => 'echo begun; sleep 4717' })));
    my $r = $c->response(head_only => 1);
    SandboxProcess->wait_for(sub { $c->fill(time + 1); $c->{buf} =~ /begun/ });

    is(execd(DELETE => "/code/contexts/$id")->status, 200,
       'deleted while it runs');
    $c->body($r, timeout => 10);
    ok($r->complete, 'the stream ends');
    is($rt->run($box, 'pgrep -c -f "sleep 471[7]"'), '0', 'with what it ran');
}


# As an execd without Jupyter.

sub without {
    $rt = LocalRuntime->start('--grace=0', '--no-kernels');
    $box = $rt->create;

    is(said(code({ language => 'python' }, '1')), '500 RUNTIME_ERROR',
       '--no-kernels: no code but for the shell');
    is(said(execd(POST => '/code/context', { language => 'python' })),
       '500 RUNTIME_ERROR', 'no contexts');
    is(short(code({}, 'echo shell')), 'stdout shell|complete', 'the shell is there');
    is($rt->stop, 0, 'SIGTERM');
}
