#!/usr/bin/perl

# Beside the lua module, as many have it: loaded before or after it, variables
# read and headers written by Lua in every phase, and the record is the same.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use FakeUpstream;
use SandboxTest;
use Test::More;

my ($lib) = grep { -e "$_/ngx_http_lua_module.so" }
            qw(/usr/lib/nginx/modules /usr/share/nginx/modules);

# .ci/deps test installs the module of Debian's nginx; another one has its own
my $mine = $SandboxProcess::NGINX =~ m{^(?:/usr/sbin|\Q$SandboxProcess::BUILD\E)/};

plan skip_all => "no lua module is known for $SandboxProcess::NGINX" if !$mine;
$lib or die "libnginx-mod-http-lua is missing: run .ci/deps test\n";

my $load = "load_module $lib/ndk_http_module.so;\n"
           . "load_module $lib/ngx_http_lua_module.so;\n";

for my $order (qw(before after)) {
    my $t = SandboxTest->new(
        http => 'lua_package_path "/usr/share/lua/5.1/?.lua;;";',
        location => <<'EOF',
            # too early: which location serves it may still change
            rewrite_by_lua_block {
                ngx.ctx.rewrite = ngx.var.sandbox_id or "not yet"
            }
            access_by_lua_block {
                ngx.ctx.access = ngx.var.sandbox_id .. " "
                                 .. ngx.var.sandbox_operation
                if ngx.var.http_x_by_lua == "403" then
                    return ngx.exit(403)
                end
            }
            header_filter_by_lua_block {
                ngx.header["X-Lua-Rewrite"] = ngx.ctx.rewrite
                ngx.header["X-Lua-Access"] = ngx.ctx.access
                ngx.header["X-Lua-Filter"] = ngx.var.sandbox_id .. " "
                    .. (ngx.var.sandbox_port or "none") .. " " .. ngx.var.sandbox_operation_id
            }
            body_filter_by_lua_block {
                ngx.ctx.length = (ngx.ctx.length or 0) + #ngx.arg[1]
            }
            log_by_lua_block {
                ngx.log(ngx.WARN, "by lua: ", ngx.var.sandbox_operation, " ",
                        ngx.var.sandbox_status, " ", ngx.ctx.length)
            }
EOF
        conf => sub {
            return $order eq 'before' ? $load . $_[0]
                : $_[0] =~ s/\A([^\n]*\n)/$1$load/r;
        })->start;

    $t->sandbox('s1', learn => 1);

    my $r = $t->post('/v1/sandboxes/s1/proxy/44772/command',
                     body => '{"command":"echo hi"}');
    is($r->status, 200, "lua loaded $order us: a command");
    is($r->header('X-Lua-Rewrite'), 'not yet',
       'ngx.var.sandbox_id is no error when it rewrites');
    is($r->header('X-Lua-Access'), 's1 command.execute',
       'is the sandbox when it judges');
    is($r->header('X-Lua-Filter'),
       's1 44772 ' . $r->header('X-Operation-Id'), 'and in the answer');
    ok($t->wait_for(sub { $t->log_text =~ /by lua: command.execute \w+ \d+/ }),
       'and in the log');
    my ($status, $length) = $t->log_text =~ /by lua: command.execute (\w+) (\d+)/;
    is($status, 'succeeded', 'where the status is known');
    is($length, $r->{length}, 'both saw the whole body');

    my $e = $t->record($r);
    is($e->{operation_type}, 'command.execute', 'recorded as ever');
    is($e->{wire}{route}, 'straight', 'straight to the sandbox');
    is($e->{wire}{bytes_out}, $r->{length}, 'with its size');

    # what Lua refuses reaches nobody
    $t->up->mark;
    $r = $t->post('/v1/sandboxes/s1/proxy/44772/command',
                  body => '{"command":"x"}', headers => [ 'X-By-Lua: 403' ]);
    is($r->status, 403, 'a request that Lua refuses');
    is(scalar(() = $t->up->requests), 0, 'reaches no sandbox');

    # nor does Lua let in who has no token
    $r = $t->get('/v1/sandboxes/s1', token => undef);
    is($r->status, 401, 'a request without a token is refused');
    is($r->code, 'GATEWAY_UNAUTHENTICATED', 'by us');
    is($t->record($r)->{status}, 'failed', 'and on record');

    $t->stop;
}

done_testing;
