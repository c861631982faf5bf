package ConsoleCalls;

# What pages of the console may ask for: their own files, the routes of the
# console API (the table in docs/console-api.md) and those of OpenSandbox (the
# module's table of operations, lib/operation_table.c).  Nothing else.

use strict;
use warnings;

use SandboxTest;


# All routes: name => pattern.  The name is "METHOD path" as the tables have it.

sub routes {
    my $root = $SandboxProcess::ROOT;
    my %route = (
        'GET /console/{page or file}' => qr{^GET /console(?:/(?!api/)[^?]*)?$},
    );

    my ($table) = SandboxTest::read_file("$root/docs/console-api.md")
        =~ /^## Routes\n(.*?)^## /ms;
    while ($table =~ /^\| `([A-Z]+) ([^`]+)` \|/mg) {
        my ($method, $path) = ($1, "/console/api/v1/$2");
        $route{"$method $path"} = pattern($method, $path);
    }

    my $operations = SandboxTest::read_file("$root/lib/operation_table.c");
    my %mount = (lifecycle => '/v1', execd => '/v1/sandboxes/{id}/proxy/44772');
    while ($operations =~ /^\s+(lifecycle|execd)\("([A-Z]+)",\s*"([^"*]+)"/mg) {
        my ($method, $path) = ($2, $mount{$1} . $3);
        $route{"$method $path"} = pattern($method, $path);
    }

    return %route;
}


sub pattern {
    my ($method, $path) = @_;

    $path = join '[^/]+', map { quotemeta } split /\{\w+\}/, $path, -1;
    return qr{^$method $path$};
}


# Which routes these calls ("METHOD path") are, and which calls are none.

sub sort_out {
    my @calls = @_;

    my %route = routes();
    my (%used, @foreign);

    for my $call (@calls) {
        my ($name) = grep { $call =~ $route{$_} } sort keys %route;

        if (defined $name) {
            $used{$name} = 1;

        } else {
            push @foreign, $call;
        }
    }

    return ([ sort keys %used ], [ sort @foreign ]);
}

1;
