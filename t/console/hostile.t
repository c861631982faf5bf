#!/usr/bin/perl

# A page of a sandbox's, opened on a user port in a real browser, tries all that
# a page can: the console and lifecycle APIs, another sandbox's port, cookies,
# service workers, frames and window handles.  Next to each attack stands the
# same on its own origin, which works: the page has not just been broken.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use JSON::PP;
use POSIX ();
use Test::More;

use SandboxPorts;
use SandboxProcess;
use SandboxTest;

my $chromium = SandboxProcess::find_program('chromium');
-x $chromium or die "chromium is missing: run .ci/deps test\n";

my $tmp = File::Temp->newdir('sandbox-h-XXXXXX', TMPDIR => 1, CLEANUP => 1);


# --- the console stands on "localhost", whose names below are the ports

my $listener = SandboxProcess::free_port();
my $t = SandboxTest->new(http => SandboxPorts::server($listener),
    locations => <<"END_LOCATIONS")->start;
        location = /console/cookies { return 200 "<p>\$http_cookie</p>"; }
        location /console/ {
            default_type text/html;
            alias $tmp/;
            add_header Content-Security-Policy "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'";
            add_header Cross-Origin-Opener-Policy same-origin;
            add_header Set-Cookie "console_view=console-secret; Max-Age=900; Path=/";
        }
END_LOCATIONS

my $up = $t->up;
my $console = 'http://localhost:' . $t->port;
$t->sandbox($_) for qw(s1 s2);
$t->get("/v1/sandboxes/$_") for qw(s1 s2);

SandboxTest::write_file("$tmp/index.html",
    '<title>console</title><script src="tell.js"></script>');
SandboxTest::write_file("$tmp/tell.js", says('console'));
SandboxTest::write_file("$tmp/still.html",
    '<title>-</title><script src="still.js"></script>');
SandboxTest::write_file("$tmp/still.js", <<'END_SCRIPT');
const r = new XMLHttpRequest();
r.open("GET", "/v1/sandboxes", false);
r.send();
document.title = "sandboxes: " + r.status;
END_SCRIPT
chmod 0755, $tmp;

page('s2', $_, '<title>victim</title><link rel="icon" href="data:,"><script>'
               . says('victim') . '</script><p>victim-secret</p>')
    for '/', '/opened';
page('s2', '/secret', 'victim-secret', 'Access-Control-Allow-Origin: *',
     'Access-Control-Allow-Credentials: true');

my $victim = SandboxPorts::ask($t, 's2', 8080);
my $url = SandboxPorts::ask($t, 's1', 8080);
my ($b) = $victim =~ m{^(http://[^/]+)};
my ($a) = $url =~ m{^(http://[^/]+)};

page('s1', '/', hostile($a, $b, $console));
page('s1', '/own', 'own-secret');
page('s1', '/self', '<script>' . says('self') . '</script>');
$up->script('GET /v1/sandboxes/s1/proxy/8080/sw.js', [ send =>
    "HTTP/1.1 200 OK\r\nContent-Type: text/javascript\r\nContent-Length: 2\r\n"
    . "Service-Worker-Allowed: /\r\n\r\n//" ]);


# --- what the operator has open in the same browser

my $dom = browse("$console/console/");
like($dom, qr/<title>console/, 'the operator opens the console');
sign_in();
like(browse("$console/console/still.html"), qr/sandboxes: 200</,
     'and has signed in: a request of its page works by the cookie');
like(browse("$console/console/cookies"), qr/console_view=console-secret/,
     'whose cookie the browser keeps');
like(browse($victim), qr/victim-secret/, 'and the port of another sandbox')
    or diag(SandboxTest::read_file("$tmp/browser.log"));
like(browse("$b/"), qr/victim-secret/, 'which stays open by its cookie');

$up->mark;
my $pid = start($url);
my ($report) = $up->wait_request(qr{^POST \S*/report}, timeout => 120 * $SandboxProcess::PATIENCE);
kill 'TERM', $pid;
SandboxProcess::reaped($pid, 10) or kill 'KILL', $pid;

my $did = eval { JSON::PP->new->utf8->decode($report->{body}) } // {};
ok(scalar keys %$did, 'the hostile page has run and tells of it')
    or diag($t->log_text);


# --- what it could do

is($did->{origin}, $a, 'it has an origin of its own');

for my $works ([ own => 'a request to its own port' ],
               [ storage => 'storage of its own' ],
               [ frame_self => 'a frame of its own' ],
               [ open_self => 'a window of its own' ],
               [ cookie_self => 'a cookie of its own' ])
{
    is($did->{ $works->[0] }, 'done', "$works->[1] works");
}

# --- and what it could not

my %attack = (
    console_read      => 'read the console API',
    console_ticket    => 'get itself a ticket for another port',
    console_page      => "read the console's page",
    lifecycle_list    => 'list sandboxes',
    lifecycle_create  => 'create one',
    lifecycle_delete  => 'delete one',
    lifecycle_socket  => 'open a terminal of another sandbox',
    execd             => 'run a command there',
    port_read         => "read another sandbox's port",
    port_script       => 'run its answer as a script',
    port_socket       => 'open a WebSocket to it',
    port_frame        => 'frame it',
    port_open         => 'keep a handle on its window',
    port_opener       => 'be told by it who opened it',
    console_opener    => "be told so by the console's window",
    port_document     => "read its window's document",
    console_frame     => 'frame the console',
    console_open      => "keep a handle on the console's window",
    cookie_console    => "see the console's cookies",
    cookie_ticket     => 'see the cookie of its own port',
    worker_own        => 'install a service worker',
    worker_console    => 'install one for the console',
    worker_port       => 'install one for the other port',
    token_left        => 'find the ticket in its address or history',
);

for my $name (sort keys %attack) {
    is($did->{$name}, 'refused', "it cannot $attack{$name}");
}

# what came up: nothing but its own, and the other's page by a link

my @seen = map { "$_->{method} $_->{target}" } $up->requests;
my @foreign = grep { !m{^\w+ /v1/sandboxes/s1/proxy/8080/} } @seen;
is_deeply([ grep { $_ ne 'GET /v1/sandboxes/s2/proxy/8080/opened' } @foreign ],
          [], 'nothing of it came to upstream, to the sandbox or the other port');
ok(scalar(grep { /opened/ } @foreign), 'a link is a link');
my @heads = map { $_->{head} } $up->requests;
ok(!grep({ /console-secret|sandbox_(?:port|session)|sbx_|sbe_/ } @heads),
   "no cookie and no ticket came up, the operator's session neither");

# and to the gateway

my @statuses = $t->log_text('access.log') =~ m{"\w+ /(?:v1|console/api)[^"]*" (\d+)}g;
cmp_ok(scalar(grep { $_ == 401 || $_ == 403 } @statuses), '>', 3,
       'the gateway was asked, and refused');

# what it has set reaches nobody

$dom = browse("$console/console/cookies");
like($dom, qr/console_view=console-secret/, "the console's cookie is as it was");
like(browse("$console/console/still.html"), qr/sandboxes: 200</,
     'and the session goes on');
unlike($dom, qr/evil/, 'no cookie of the page came to the console');
$up->mark;
browse("$b/after");
my ($after) = $up->requests(qr{/after});
unlike($after->{head}, qr/evil/, 'nor to the other port');

# on record, as who opened it

my @records = grep { ($_->{wire}{port} // 0) == 8080 && $_->{operation_type} eq 'proxy.http' }
              $t->records('s1', count => 4);
ok(scalar @records, 'what it did is on record');
is_deeply([ grep { $_->{actor_id} ne 'tester' } @records ], [],
          'as who opened it');
ok(!grep({ $_->{operation_type} =~ /^(?:sandbox\.delete|command|pty|proxy\.ws)/
           && $_->{status} eq 'succeeded' } $t->records('s2')),
   'nothing it tried elsewhere has happened');

$t->stop;


# --- without a name of its own: no origin at all

$listener = SandboxProcess::free_port();
$t = SandboxTest->new(http => SandboxPorts::server($listener,
    url => "http://gw.example.com:$listener"))->start;
$up = $t->up;
$t->sandbox('s1');
page('s1', '/', <<'END_PAGE');
<p id="p"></p><script>
const out = { origin: self.origin };
const attempt = (name, f) => { try { f(); out[name] = 'done'; }
                               catch (e) { out[name] = e.name; } };
attempt('cookie', () => document.cookie);
attempt('storage', () => localStorage.setItem('a', 'b'));
attempt('worker', () => { if (!navigator.serviceWorker) throw { name: 'none' };
                          return navigator.serviceWorker.controller; });
document.getElementById('p').textContent = JSON.stringify(out);
</script>
END_PAGE

$dom = browse(scalar SandboxPorts::ask($t, 's1', 8080));
my ($json) = $dom =~ m{<p id="p">(.*?)</p>};
$did = eval { JSON::PP->new->utf8->decode($json) } // {};
is($did->{origin}, 'null', 'without a name of its own a page has no origin');
is($did->{cookie}, 'SecurityError', 'no cookies');
is($did->{storage}, 'SecurityError', 'no storage');
isnt($did->{worker}, 'done', 'no service worker');

$t->stop;
done_testing;


# --- pages

sub page {
    my ($id, $path, $body, @headers) = @_;

    $up->script(qr{^GET /v1/sandboxes/\Q$id\E/proxy/8080\Q$path\E$},
        [ send => join "\r\n", 'HTTP/1.1 200 OK', 'Content-Type: text/html',
          'Content-Length: ' . length $body, @headers, '', $body ]);
}


# Says who it is to whoever frames it or has opened it.

# By a page that is gone afterwards, since the token stands in it.

sub sign_in {
    SandboxTest::write_file("$tmp/signin.html",
        '<title>-</title><script src="signin.js"></script>');
    SandboxTest::write_file("$tmp/signin.js", <<"END_SCRIPT");
const r = new XMLHttpRequest();
r.open("POST", "/console/api/v1/session", false);
r.setRequestHeader("Content-Type", "application/json");
r.send('{"token":"$t->{tokens}{admin}"}');
document.title = "session: " + r.status;
END_SCRIPT

    like(browse("$console/console/signin.html"), qr/session: 20\d</,
         'the operator signs in');
    unlink "$tmp/signin.html", "$tmp/signin.js";
}


sub says {
    my $who = shift;

    return "if (parent !== self) parent.postMessage('$who framed', '*');"
           . "if (opener) opener.postMessage('$who opened', '*');";
}


sub hostile {
    my ($own, $other, $gateway) = @_;

    my $page = <<'END_PAGE';
<!DOCTYPE html><title>hostile</title><script>
// what has to come about is waited for longer than what must not
const own = "OWN", other = "OTHER", gateway = "GATEWAY", LONG = MILLISECONDS;
const did = { origin: self.origin };
const said = new Set();
addEventListener("message", e => said.add(e.data));

const wait = ms => new Promise(done => setTimeout(done, ms));
const until = async (f, ms) => {
    for (const end = Date.now() + ms; Date.now() < end; await wait(20)) {
        if (f()) return true;
    }
    return false;
};

// "done" when f succeeds, "refused" when it throws or says no
const attempt = async (name, f) => {
    try {
        did[name] = (await f()) ? "done" : "refused";
    } catch (e) {
        did[name] = "refused";
    }
};

// can any form of this request be read, or does the server say it was done?
const read = async (url, options = {}) => {
    const all = { credentials: "include", ...options };
    fetch(url, { ...all, mode: "no-cors", method: options.method === "POST"
                 ? "POST" : "GET" }).catch(() => 0);
    const r = await fetch(url, all);
    return r.ok;
};

const socket = url => new Promise(done => {
    const ws = new WebSocket(url);
    ws.onopen = () => done(true);
    ws.onerror = ws.onclose = () => done(false);
});

const frame = (url, message, ms) => {
    const f = document.createElement("iframe");
    f.src = url;
    document.documentElement.append(f);
    return until(() => said.has(message), ms);
};

const cookie = text => { document.cookie = text; };

(async () => {
    await attempt("own", async () =>
        (await (await fetch("/own")).text()) === "own-secret");
    await attempt("storage", () => {
        localStorage.setItem("a", "b");
        return localStorage.getItem("a") === "b";
    });
    await attempt("cookie_self", () => {
        cookie("mine=1");
        return document.cookie.includes("mine=1");
    });
    await attempt("frame_self", () => frame("/self", "self framed", LONG));
    await attempt("open_self", async () => {
        const w = open("/self");
        const seen = await until(() => said.has("self opened"), LONG);
        w.close();
        return seen;
    });

    await attempt("console_read", () => read(gateway + "/console/api/v1/metrics"));
    await attempt("console_ticket", () => read(
        gateway + "/console/api/v1/sandboxes/s2/ports/8080", { method: "POST" }));
    await attempt("console_page", () => read(gateway + "/console/"));
    await attempt("lifecycle_list", () => read(gateway + "/v1/sandboxes"));
    await attempt("lifecycle_create", () => read(gateway + "/v1/sandboxes",
        { method: "POST", body: "{}" }));
    await attempt("lifecycle_delete", () => read(gateway + "/v1/sandboxes/s2",
        { method: "DELETE" }));
    await attempt("lifecycle_socket", () => socket(gateway.replace("http", "ws")
        + "/v1/sandboxes/s2/proxy/44772/pty/p1/ws"));
    await attempt("execd", () => read(
        gateway + "/v1/sandboxes/s2/proxy/44772/command",
        { method: "POST", body: '{"command":"id"}' }));

    await attempt("port_read", () => read(other + "/secret"));
    await attempt("port_socket", () => socket(other.replace("http", "ws") + "/ws"));
    await attempt("port_script", () => new Promise(done => {
        const s = document.createElement("script");
        s.src = other + "/secret";
        s.onload = () => done(true);
        s.onerror = () => done(false);
        document.documentElement.append(s);
    }));

    const form = document.createElement("form");
    const sink = document.createElement("iframe");
    sink.name = "sink";
    form.method = "POST";
    form.target = "sink";
    form.action = other + "/form";
    document.documentElement.append(sink, form);
    form.submit();
    navigator.sendBeacon(other + "/beacon", "x");
    new Image().src = other + "/image";

    await attempt("port_frame", () => frame(other + "/", "victim framed", 1500));
    await attempt("console_frame", () =>
        frame(gateway + "/console/", "console framed", 1500));

    const w = open(other + "/opened");
    await attempt("port_open", () =>
        until(() => w.closed, LONG).then(severed => !severed));
    await attempt("port_opener", () =>
        until(() => said.has("victim opened"), 300));
    await attempt("port_document", () =>
        w.document.body.textContent.includes("victim"));
    const c = open(gateway + "/console/");
    await attempt("console_open", () =>
        until(() => c.closed, LONG).then(severed => !severed));
    await attempt("console_opener", () =>
        until(() => said.has("console opened"), 300));

    cookie("evil=1; Domain=localhost; Path=/");
    cookie("console_view=evil; Domain=localhost; Path=/");
    cookie("evil=2; Domain=" + new URL(other).hostname + "; Path=/");
    await attempt("cookie_console", () =>
        document.cookie.includes("console-secret"));
    await attempt("cookie_ticket", () => document.cookie.includes("sandbox_port"));

    await attempt("worker_own", () => navigator.serviceWorker.register("/sw.js"));
    await attempt("worker_console", () =>
        navigator.serviceWorker.register(gateway + "/console/tell.js"));
    await attempt("worker_port", () =>
        navigator.serviceWorker.register("/sw.js", { scope: other + "/" }));
    await attempt("token_left", () => (location.href + document.referrer
        + performance.getEntriesByType("navigation").map(e => e.name))
        .includes("sbx_port"));

    fetch("/report", { method: "POST", body: JSON.stringify(did) });
})();
</script>
END_PAGE

    $page =~ s/"OWN"/"$own"/;
    $page =~ s/"OTHER"/"$other"/;
    $page =~ s/"GATEWAY"/"$gateway"/;
    $page =~ s/MILLISECONDS/20_000 * $SandboxProcess::PATIENCE/e;

    return $page;
}


# --- the browser: one profile, and no way out of this machine

sub command {
    my @more = @_;

    return ($chromium, '--headless=new', '--no-sandbox', '--disable-gpu',
            '--disable-dev-shm-usage', '--no-first-run', '--disable-sync',
            '--disable-background-networking', '--disable-component-update',
            '--disable-popup-blocking', '--password-store=basic',
            "--user-data-dir=$tmp/profile", '--host-resolver-rules='
            . 'MAP *.example.com 127.0.0.1,MAP * ~NOTFOUND,EXCLUDE 127.0.0.1,'
            . 'EXCLUDE localhost,EXCLUDE *.localhost', @more);
}


# Opens a page and closes the browser: the document as it then is.

sub browse {
    my @command = command('--timeout=' . 20_000 * $SandboxProcess::PATIENCE, '--dump-dom', @_);
    my $pid = open(my $fh, '-|') // die "fork: $!\n";

    if ($pid == 0) {
        open STDIN, '<', '/dev/null';
        open STDERR, '>>', "$tmp/browser.log";
        { exec { $command[0] } @command }
        POSIX::_exit(127);
    }

    local $/;
    my $out = <$fh> // '';
    close $fh;

    return $out;
}


sub start {
    my $address = shift;

    return SandboxProcess->spawn("$tmp/browser.log", command($address));
}
