package SandboxConsole;

# The console in a real browser: sandbox-gateway with its local runtime, things
# that agents have done there, and scripts for Chromium that look at them
# (t/console/*.mjs, written with t/console/lib/browser.mjs).
#
#   my $c = SandboxConsole->new;
#   $c->sandbox('data-cleaning-7')->command($id, 'echo hello');
#   $c->look('pages');

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp;
use IO::Poll qw(POLLIN POLLHUP POLLERR);
use JSON::PP;
use Test::More;

use ConsoleCalls;
use SandboxGateway;
use SandboxProcess;
use SandboxTest;

my $json = JSON::PP->new->utf8->canonical;
my ($root) = $INC{'SandboxConsole.pm'} =~ m{^(.*?)/?t/lib/};
$root = '.' if !length $root;


sub new {
    my ($class, %o) = @_;

    my $chromium = SandboxProcess::find_program('chromium');
    -x $chromium or die "chromium is missing: run .ci/deps test\n";

    my $programs = programs();
    local $SandboxGateway::PROGRAM = "$programs/sandbox-gateway";

    return bless {
        chromium => $chromium,
        programs => $programs,
        gateway  => SandboxGateway->new(%o)->start,
        facts    => {},
    }, $class;
}


# The programs as they are, but for a runtime that does not wait a second behind
# each command for what may still be written, as execd does: pages are tested
# here, with many commands.

sub programs {
    my $dir = File::Temp->newdir('sandbox-p-XXXXXX', TMPDIR => 1);
    my $build = abs_path($SandboxProcess::BUILD);

    chmod 0755, "$dir";
    link("$build/sandbox-gateway", "$dir/sandbox-gateway")
        || copy("$build/sandbox-gateway", "$dir/sandbox-gateway") or die "sandbox-gateway: $!\n";
    chmod 0755, "$dir/sandbox-gateway";
    symlink("$build/$_", "$dir/$_") || die "$_: $!\n"
        for qw(sandbox-helper sandbox-inspect ngx_http_sandbox_module.so console);
    SandboxTest::write_file("$dir/sandbox-runtime",
        qq{#!/bin/sh\nexec "$build/sandbox-runtime" --grace 50 "\$@"\n});
    chmod 0755, "$dir/sandbox-runtime";

    return $dir;
}


sub gateway { $_[0]{gateway} }
sub url { 'http://127.0.0.1:' . $_[0]{gateway}->port . '/console/' }


# Tells the scripts something: `facts` there.

sub fact {
    my ($self, %facts) = @_;

    $self->{facts}{$_} = $facts{$_} for keys %facts;
    return $self;
}


# Asks as an agent does; dies unless the answer has the status.

sub ask {
    my ($self, $method, $target, %o) = @_;

    my $body = ref $o{json} ? $json->encode($o{json}) : $o{body};
    my $r = $self->{gateway}->request($method, $target,
        headers => [ 'X-Actor-Id: ' . ($o{actor} // 'etl-bot'), 'X-Run-Id: ' . ($o{run} // 'nightly-31'),
                     defined $body ? ('Content-Type: ' . ($o{type} // 'application/json')) : () ],
        defined $body ? (body => $body) : (), timeout => 60);

    my $want = $o{status} // qr/^2/;
    $r->status =~ $want or die "$method $target: " . $r->status . ' ' . $r->content . "\n";

    return $r;
}


# A sandbox of that name; its id, once it runs.

sub sandbox {
    my ($self, $name, %o) = @_;

    my $r = $self->ask(POST => '/v1/sandboxes', %o, json => {
        image          => { uri => $o{image} // 'python:3.11' },
        entrypoint     => [ 'sleep', '3600' ],
        timeout        => 3600,
        resourceLimits => { cpu => '500m', memory => '512Mi' },
        metadata       => { sandbox_name => $name },
    });
    my $id = $json->decode($r->content)->{id};

    SandboxProcess->wait_for(sub {
        $self->ask(GET => "/v1/sandboxes/$id")->content =~ /"Running"/;
    }, 30) or die "$name does not run\n";

    return $id;
}


sub command {
    my ($self, $id, $command, %o) = @_;

    return $self->ask(POST => "/v1/sandboxes/$id/proxy/44772/command", %o,
        json => { command => $command, %{ $o{body} // {} } });
}


sub write {
    my ($self, $id, $path, $content, %o) = @_;

    my $b = 'b0undary';
    my $meta = $json->encode({ path => $path, mode => 644 });

    return $self->ask(POST => "/v1/sandboxes/$id/proxy/44772/files/upload", %o,
        type => "multipart/form-data; boundary=$b",
        body => "--$b\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"metadata\"\r\n"
                . "Content-Type: application/json\r\n\r\n$meta\r\n"
                . "--$b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n"
                . "Content-Type: application/octet-stream\r\n\r\n$content\r\n--$b--\r\n");
}


# Where pictures of a test go.

sub out {
    my $name = shift;

    my $dir = "$SandboxProcess::BUILD/t-output/console/$name";
    make_path($dir);
    return $dir;
}


# Runs t/console/NAME.mjs, several at the same time; each thing that they say is
# a result of this test.  With CONSOLE_TIMES set it is told how long parts take.

sub look {
    my ($self, @names) = @_;

    my $poll = IO::Poll->new;
    my %script = map { my $s = $self->run_script($_); $s->{fh}->fileno => $s } @names;

    binmode Test::More->builder->$_, ':utf8' for qw(output failure_output todo_output);
    $poll->mask($_->{fh} => POLLIN) for values %script;

    while (%script) {
        $poll->poll;

        for my $fh ($poll->handles(POLLIN | POLLHUP | POLLERR)) {
            my $s = $script{ $fh->fileno };

            if (sysread $fh, $s->{rest}, 65536, length $s->{rest}) {
                $self->said($s, $1) while $s->{rest} =~ s/^(.*)\n//;
                next;
            }

            $poll->remove($fh);
            delete $script{ $fh->fileno };
            close $fh;
            ok($s->{done} && $? == 0, "$s->{name}.mjs has run to its end");
        }
    }

    return $self;
}


sub run_script {
    my ($self, $name) = @_;

    local %ENV = (%ENV,
        CHROMIUM => $self->{chromium}, CONSOLE_URL => $self->url,
        CONSOLE_TOKEN => $self->{gateway}->token, CONSOLE_OUT => out($name),
        CONSOLE_FACTS => $json->encode($self->{facts}));

    my $node = -x "$root/build/node/bin/node" ? "$root/build/node/bin/node"
             : SandboxProcess::find_program('node');
    open(my $fh, '-|', $node, "$root/t/console/$name.mjs") // die "node: $!\n";

    return { name => $name, fh => $fh, rest => '' };
}


# A line of a script.

sub said {
    my ($self, $script, $line) = @_;

    my $said = eval { $json->decode($line) } or return diag($line);

    if ($said->{done}) {
        $script->{done} = 1;
        $self->{calls}{$_} = 1 for @{ $said->{calls} };
    }

    diag("$said->{ms} ms: $script->{name}: $said->{part}") if $said->{part} && $ENV{CONSOLE_TIMES};
    ok($said->{ok}, $said->{name}) || diag(join "\n", @{ $said->{diag} }) if defined $said->{name};
}


sub stop {
    my $self = shift;

    my ($used, $foreign) = ConsoleCalls::sort_out(keys %{ $self->{calls} });
    note("pages have asked for $_") for @$used;
    cmp_ok(scalar @$used, '>', 2, 'what pages have asked for was heard');
    is_deeply($foreign, [], 'it is routes of OpenSandbox and of the console API alone');

    is($self->{gateway}->stop, 0, 'the gateway ends well');
    is_deeply([ $self->{gateway}->bad_lines ], [], 'and has no bad message');
}

1;
