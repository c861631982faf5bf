#!/usr/bin/perl

# What is there is documented: directives, variables, operations, options; and
# what the documents name is there.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Test::More;

my $root = dirname(dirname(abs_path($0)));


sub text {
    my $name = shift;

    open my $fh, '<', "$root/$name" or die "$name: $!\n";
    local $/;

    return <$fh>;
}


sub unlike_list {
    my ($missing, $what) = @_;

    is(join(' ', sort @$missing), '', $what);
}


my $readme = text('README.md');
my $directives = text('docs/directives.md');
my $operations = text('docs/operations.md');

my ($table) = text('ngx_sandbox_module/ngx_http_sandbox_module.c')
    =~ /ngx_command_t\s+ngx_http_sandbox_commands\[\] = \{(.*?)ngx_null_command/s;
my %directive = map { $_ => 1 } $table =~ /ngx_string\("(sandbox\w*)"\)/g;

my ($vars) = text('ngx_sandbox_module/ngx_http_sandbox_variables.c')
    =~ /ngx_http_variable_t\s+ngx_http_sandbox_variables\[\] = \{(.*?)null_variable/s;
my %variable = map { $_ => 1 } $vars =~ /ngx_string\("(sandbox_\w+)"\)/g;

my %operation = map { $_ => 1 }
    text('lib/operation_table.c') =~ /\{ "([a-z_.]+)",/g;

ok(keys %directive > 20 && keys %variable > 5 && keys %operation > 50,
   'the tables are found');

unlike_list([ grep { $directives !~ /^\| `$_[ `]/m } keys %directive ],
            'every directive is in docs/directives.md');
unlike_list([ grep { $readme !~ /`$_`/ } keys %directive ],
            'and in the README');
unlike_list([ grep { $directives !~ /^\| `\$$_` /m } keys %variable ],
            'every variable is in docs/directives.md');
unlike_list([ grep { $readme !~ /`\$$_`/ } keys %variable ],
            'and in the README');
unlike_list([ grep { $operations !~ /`\Q$_\E`/ } keys %operation ],
            'every operation is in docs/operations.md');

# tables of docs/frames.md: numbers and names, as in lib/frame.h

my ($header, $frames) = (text('lib/frame.h'), text('docs/frames.md'));

for (['SB_F_', 'Types'], ['SB_T_', 'Fields']) {
    my ($prefix, $title) = @$_;
    my ($section) = $frames =~ /^## $title\n(.*?)(?=^## |\z)/ms;
    my %want = reverse $header =~ /\b$prefix(\w+) = (\d+)/g;
    my %have = $section =~ /^\| (\d+) \| (\w+) \|/mg;

    ok(keys %want > 10, "lib/frame.h has names $prefix");
    is_deeply(\%have, \%want, "$title of docs/frames.md are those of it");
}

# the bounds: what sets them, what tells of them and what tests them is there

my ($bounds) = $directives =~ /^## Bounds\n(.*)\z/ms;
my ($flags, $counted) = (text('helper/options.c'), join '', map { text($_) }
    qw(helper/stats.h helper/stats.c helper/ask_metrics.c
       ngx_sandbox_module/ngx_http_sandbox_metrics.h
       ngx_sandbox_module/ngx_http_sandbox_metrics_text.c));
my @bounds = grep { /^\| (?!what|---)/ } split /\n/, $bounds;
my %bounded;

cmp_ok(scalar @bounds, '>', 15, 'docs/directives.md has bounds');

for (@bounds) {
    my (undef, $what, $by, $default, $then, $metric, $test) = split / *\| */;

    my ($name) = $by =~ /^`(\S+)`$/;
    my $flag = ($name // '') =~ s/^--//r;
    $bounded{ $name // '' } = 1;
    ok($by eq 'fixed' || $directive{ $name // '' } || $flags =~ /"$flag", required/,
       "$what: $by sets it");
    ok(length $default && length $then, 'default and what then happens');
    unlike_list([ grep { $counted !~ /"$_"/ } $metric =~ /`(\w+)`/g ],
                'its metrics are told');
    ok($metric =~ /`/ && $test =~ /^`(\S+)`$/ && -e "$root/$1",
       "it is tested in $test");
    my ($file) = $test =~ /`(.*)`/;
    like(text($file), qr/\b$name\b/, 'which names it')
        if $directive{ $name // '' };
}

unlike_list([ grep { !$bounded{$_} }
              grep { /_(?:queue|zone|limit|timeout|questions|lag)$/ } keys %directive ],
            'every directive that bounds something is among them');

# the routes of docs/console-api.md are those of the tables

my $console = text('docs/console-api.md');
my ($listed_routes) = $console =~ /^## Routes\n(.*?)^## /ms;
my %doc_routes = map { $_ => 1 } $listed_routes =~ /^\| `([A-Z]+ [^`]+)` \|/mg;
my %code_routes = map { $_ => 1 } grep { !/^\*/ } map { s/", "/ /r }
    text('ngx_sandbox_module/ngx_http_sandbox_api_routes.c')
        =~ /\{ "([A-Z]+", "[^"]+)",/g,
    text('helper/api.c') =~ /\{ "([A-Z]+", "[^"]+)",/g;

is_deeply(\%doc_routes, \%code_routes,
          'docs/console-api.md lists the routes that there are');

# refusals on intercepted routes: status and code as the module sends them

my %number = (BAD_REQUEST => 400, UNAUTHORIZED => 401, FORBIDDEN => 403, CONFLICT => 409,
    PRECONDITION_FAILED => 412, REQUEST_ENTITY_TOO_LARGE => 413, UNSUPPORTED_MEDIA_TYPE => 415,
    MISDIRECTED_REQUEST => 421, TOO_MANY_REQUESTS => 429, INTERNAL_SERVER_ERROR => 500,
    NOT_IMPLEMENTED => 501, BAD_GATEWAY => 502, SERVICE_UNAVAILABLE => 503,
    GATEWAY_TIME_OUT => 504);
my $module = join '', map { text(s{^\Q$root\E/}{}r) }
    grep { !/_api(?:_\w+)?\.c$|_metrics/ } glob "$root/ngx_sandbox_module/*.c";
my %refused;

while ($module =~ /ngx_http_sandbox_(?:refuse\(r, ctx,|special\[\] = \{)\s*(.*?)(?:\);|0, NULL)/gs) {
    my $call = $1;
    $refused{ ($1 ? $number{$1} // $1 : $2) . " $3" } = 1
        while $call =~ /(?:NGX_HTTP_(\w+)|\b(\d{3}))\b[^";]*?"(GATEWAY_\w+)"/g;
}

my ($refusals) = $operations =~ /^## What the gateway refuses\n(.*?)^Backup:/ms;
my %told = map { $_ => 1 } map { s/ \| `/ /r } $refusals =~ /^\| (\d{3} \| `\w+)`/mg;
cmp_ok(scalar keys %refused, '>', 15, 'the refusals of the module are found');
is_deeply(\%told, \%refused, 'docs/operations.md lists them, and no other');
my %coded = map { s/^\d+ //r => 1 } keys %told;
unlike_list([ grep { !$coded{$_} } $module =~ /"(GATEWAY_[A-Z_]+)"/g ],
            'and every code that comes on another way');

# what docs/history.md says of our tables, but for those of the helper's own

my ($schema, $history) = (text('helper/schema.c'), text('docs/history.md'));

$schema =~ s/\bEVENT_KEY\b/"event_id TEXT,"/g;
$schema = join '', $schema =~ /"((?:[^"\\]|\\.)*)"/g;
my %ours = $schema
    =~ /create table if not exists (gateway_\w+)\(((?:[^()]|\([^()]*\))*)\)/g;
ok(keys %ours > 8, 'the tables of ours are found');

for my $name (sort keys %ours) {
    my ($row) = $history =~ /^\|[^|\n]*`$name`[^|\n]*\|(.*)$/m;
    ok($row, "docs/history.md has $name") or next;
    next if $row =~ /the helper's own/;

    my @columns = map { /^\s*([a-z]\w*) / } split /,/, $ours{$name} =~ s/\([^()]*\)//gr;
    unlike_list([ grep { $_ ne 'event_id' && $row !~ /`$_`/ } @columns ],
                "and every column of $name");
}

# options of sandbox-runtime

my ($usage) = text('standalone/runtime/runtime_main.c') =~ /"sandbox-runtime: (.*?)";/s;
my ($synopsis) = text('docs/runtime.md') =~ /^    sandbox-runtime (.*\n(?:     +.*\n)*)/m;
my %listed = map { $_ => 1 } $synopsis =~ /--[a-z-]+/g;
unlike_list([ grep { !/^--(?:version|help)$/ && !delete $listed{$_} }
              $usage =~ /--[a-z-]+/g ],
            'every option of sandbox-runtime is in docs/runtime.md');
unlike_list([ keys %listed ], 'and no other');

# options of sandbox-gateway

my %option = text('standalone/options_table.c')
    =~ /^    \{ "([a-z-]+)", GW_[A-Z]+, GW_FLAG\b.*?\n?\s*("[^"]*"|NULL),/mg;
my ($options) = $operations =~ /^## Options and environment\n(.*?)^## /ms;
my %row = $options =~ /^\| `--([a-z-]+)(?: ([^`]+))?` \|/mg;

cmp_ok(scalar keys %option, '>', 30, 'the options of sandbox-gateway are found');
$_ = defined ? s/\\\|/|/gr : '' for values %row;
$_ = $_ eq 'NULL' ? '' : s/"//gr for values %option;
is_deeply(\%row, \%option, 'every option of sandbox-gateway is in docs/operations.md, with its'
          . ' value, and no other');

for my $file ('README.md', 'docs/directives.md', 'docs/operations.md',
              'docs/threat-model.md', 'conf/drop-in.conf',
              'conf/standalone.conf')
{
    my $text = text($file);
    my %named = map { $_ => 1 } $text =~ /(?<![\w\$.\/-])(sandbox_[a-z_]+)(?![\w.])/g;
    delete @named{ qw(sandbox_tls sandbox_gateway_) };   # a cache, metrics
    unlike_list([ grep { !$directive{$_} && !$variable{$_} } keys %named ],
                "$file names no directive that is not there");

    my %var = map { $_ => 1 } $text =~ /\$(sandbox_\w+)/g;
    unlike_list([ grep { !$variable{$_} } keys %var ],
                "$file names no variable that is not there");

    next if $file !~ /\.md$/;

    my @gone = grep { !-e dirname("$root/$file") . "/$_" }
               map { s/#.*//r } $text =~ /\]\(((?!https?:)[^)#][^)]*)\)/g;
    unlike_list(\@gone, "$file links to nothing that is not there");
}

# every document can be found from the README

for my $file (map { s/^\Q$root\E\///r } glob("$root/docs/*.md"), "$root/t/README.md") {
    like($readme, qr/\]\(\Q$file\E\)/, "README names $file");
}

# the console's page and the README point at the same package names

for my $package ('opensandbox', '@alibaba-group/opensandbox') {
    like($readme, qr/install \Q$package\E/, "README installs $package");
    like(text('html/src/ui/connect.tsx'), qr/install \Q$package\E/, 'so does the page');
}

done_testing;
