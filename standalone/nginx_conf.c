/*
 * The generated nginx configuration: conf/standalone.conf with its @name@
 * places filled in.  A place that stands alone on its line may hold several
 * lines, or none and then the line goes.  What stands between @if name@ and
 * @end@ goes when that place is empty.
 */

#include "gateway.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define GW_NOFILE       65536u
#define GW_CONNECTIONS  16384u
#define GW_WORKERS_MAX  64u
#define GW_PLACES       32


static const char  gw_template[] =
#include "standalone_conf.h"
;

static const char  gw_tls_template[] =
#include "tls_conf.h"
;

static const char  *gw_ca_files[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    NULL
};


typedef struct {
    const char  *name;
    sb_buf_t     text;
} gw_fill_t;


static void gw_fill(gw_fill_t *f, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static unsigned gw_cores(void);
static unsigned gw_nofile(void);
static void gw_fill_all(gw_fill_t *f, const gw_t *g);
static void gw_fill_tls(gw_fill_t *f, const gw_t *g);
static void gw_fill_ports(gw_fill_t *f, const gw_t *g);
static void gw_fill_upstream(gw_fill_t *f, const gw_t *g);
static void gw_fill_bounds(gw_fill_t *f, const gw_options_t *o);
static bool gw_condition(const gw_fill_t *f, const char *line, size_t len,
    bool *skip);
static bool gw_expand(sb_buf_t *out, const gw_fill_t *f, const char *line,
    size_t len);
static const gw_fill_t *gw_place_find(const gw_fill_t *f, const char *name,
    size_t len);


bool
gw_conf_render(const gw_t *g, sb_buf_t *out)
{
    bool         ok, skip;
    size_t       len;
    unsigned     i;
    gw_fill_t    f[GW_PLACES];
    const char  *line;

    memset(f, 0, sizeof(f));
    gw_fill_all(f, g);

    ok = true;
    skip = false;

    for (line = gw_template; *line && ok; line += len) {
        len = strcspn(line, "\n");
        len += (line[len] == '\n');

        if (!gw_condition(f, line, len, &skip) && !skip) {
            ok = gw_expand(out, f, line, len);
        }
    }

    for (i = 0; i < GW_PLACES; i++) {
        sb_buf_free(&f[i].text);
    }

    return ok || gw_fail("the nginx configuration grows too large.");
}


bool
gw_conf_test(const gw_t *g, const char *conf, const char *prefix)
{
    int    status;
    char   out[8192];
    char  *argv[] = { (char *) g->prog.nginx, "-t", "-q", "-e", "stderr",
                      "-p", (char *) prefix, "-c", (char *) conf, NULL };
    char  *said, *end;

    status = gw_run(argv, out, sizeof(out));

    if (status == 0) {
        return true;
    }

    if (status == -1 || !WIFEXITED(status)) {
        return gw_fail("%s -t cannot be run.", g->prog.nginx);
    }

    said = strstr(out, "[emerg] ");

    if (said == NULL) {
        said = out;

    } else {
        said += 8;

        /* process and thread, which it names from its second line on */

        end = said + strspn(said, "0123456789#");
        if (end > said && end[0] == ':' && end[1] == ' ') {
            said = end + 2;
        }
    }

    end = said + strcspn(said, "\n");

    if (end > said && end[-1] == '.') {
        end--;
    }

    return gw_fail("nginx refuses the configuration: %.*s.",
                   (int) (end - said), said);
}


static void
gw_fill_all(gw_fill_t *f, const gw_t *g)
{
    unsigned            i, nofile, workers;
    const char         *console;
    const gw_place_t   *p;
    const gw_options_t *o;

    o = &g->opt;
    p = &g->place;

    nofile = gw_nofile();
    workers = o->workers ? o->workers : gw_cores();

    if (p->root) {
        gw_fill(f, "user", "user  %s %s;\n", p->worker_user, p->worker_group);

    } else {
        gw_fill(f, "user", "%s", "");
    }

    gw_fill(f, "module", "%s", g->prog.module);
    gw_fill(f, "workers", "%u", workers);
    gw_fill(f, "nofile", "%u", nofile);
    gw_fill(f, "connections", "%u", nofile / 2 < GW_CONNECTIONS
                                    ? nofile / 2 : GW_CONNECTIONS);
    gw_fill(f, "data", "%s", p->data);
    gw_fill(f, "temp", "%s", p->temp);
    gw_fill(f, "socket", "%s", p->socket);
    gw_fill(f, "tokens", "%s", p->tokens);

    if (p->policy[0]) {
        gw_fill(f, "policy", "sandbox_policy    \"%s\";\n", p->policy);

    } else {
        gw_fill(f, "policy", "%s", "");
    }

    /* without root the workers are us and read the files where they are */

    console = p->root ? p->run : NULL;

    if (console) {
        gw_fill(f, "console", "%s/console", console);

    } else {
        gw_fill(f, "console", "%s", g->prog.console);
    }

    gw_fill_tls(f, g);
    gw_fill_ports(f, g);
    gw_fill_upstream(f, g);
    gw_fill_bounds(f, o);

    if (o->public_name) {
        gw_fill(f, "public", "sandbox_public        \"%s\";\n",
                o->public_name);

    } else {
        gw_fill(f, "public", "%s", "");
    }

    gw_fill(f, "hosts", "%s", o->nhosts ? "sandbox_host         " : "");

    for (i = 0; i < o->nhosts; i++) {
        gw_fill(f, "hosts", " %s%s", o->hosts[i],
                i + 1 == o->nhosts ? ";\n" : "");
    }
}


static void
gw_fill_ports(gw_fill_t *f, const gw_t *g)
{
    bool  tls, brackets;

    tls = (g->opt.tls_cert != NULL);
    brackets = (strchr(g->ports_addr, ':') != NULL);

    gw_fill(f, "ports_url", "%s", g->ports_url);

    if (g->ports_port == 0) {
        gw_fill(f, "ports_listen", "%s", "");
        gw_fill(f, "port_host", "%s", "");
        return;
    }

    gw_fill(f, "ports_listen", "%s%s%s:%u%s%s so_keepalive=on",
            brackets ? "[" : "", g->ports_addr, brackets ? "]" : "",
            g->ports_port, tls ? " ssl" : "",
            (tls && g->prog.nginx_version < 1025001) ? " http2" : "");

    if (g->opt.port_host) {
        gw_fill(f, "port_host", "sandbox_port_host \"%s\";\n",
                g->opt.port_host);

    } else {
        gw_fill(f, "port_host", "%s", "");
    }
}


static void
gw_fill_tls(gw_fill_t *f, const gw_t *g)
{
    bool                tls, brackets;
    size_t              len;
    const char         *line;
    const gw_options_t *o;

    o = &g->opt;
    tls = (o->tls_cert != NULL);
    brackets = (strchr(g->listen_addr, ':') != NULL);

    gw_fill(f, "listen", "%s%s%s:%u default_server%s%s so_keepalive=on",
            brackets ? "[" : "", g->listen_addr, brackets ? "]" : "",
            o->port, tls ? " ssl" : "",
            (tls && g->prog.nginx_version < 1025001) ? " http2" : "");

    gw_fill(f, "http2", "%s", (tls && g->prog.nginx_version >= 1025001)
                              ? "http2        on;\n" : "");

    if (!tls) {
        gw_fill(f, "tls", "%s", "");
        return;
    }

    gw_fill(f, "tls", "\nssl_certificate            \"%s\";\n"
                      "ssl_certificate_key        \"%s\";\n",
            g->place.tls_cert, g->place.tls_key);

    for (line = gw_tls_template; *line; line += len) {
        len = strcspn(line, "\n") + 1;

        if (line[0] != '#' && line[0] != '\n') {
            gw_fill(f, "tls", "%.*s", (int) len, line);
        }
    }

    gw_fill(f, "tls", "\n");
}


static void
gw_fill_upstream(gw_fill_t *f, const gw_t *g)
{
    const char  **ca;

    if (g->upstream_servers[0]) {
        gw_fill(f, "upstream_server", "%s", g->upstream_servers);

    } else {
        gw_fill(f, "upstream_server", strchr(g->upstream.host, ':')
                ? "[%s]:%u" : "%s:%u", g->upstream.host, g->upstream.port);
    }

    gw_fill(f, "upstream_url", "%s", g->upstream_url);
    gw_fill(f, "upstream_scheme", g->upstream.tls ? "https" : "http");

    if (g->place.key[0]) {
        gw_fill(f, "api_key", "sandbox_api_key_file  \"%s\";\n",
                g->place.key);

    } else {
        gw_fill(f, "api_key", "%s", "");
    }

    if (!g->upstream.tls) {
        gw_fill(f, "upstream_tls", "%s", "");
        return;
    }

    for (ca = gw_ca_files; *ca && access(*ca, R_OK) == -1; ca++) {
        /* void */
    }

    gw_fill(f, "upstream_tls",
            "\nproxy_ssl_server_name    on;\n"
            "proxy_ssl_name           \"%s\";\n"
            "proxy_ssl_verify         on;\n"
            "proxy_ssl_verify_depth   4;\n"
            "proxy_ssl_trusted_certificate  \"%s\";\n"
            "proxy_redirect  https://%s/  $scheme://$http_host/;\n",
            g->upstream.host, *ca ? *ca : gw_ca_files[0],
            g->upstream.authority);
}


static void
gw_fill_bounds(gw_fill_t *f, const gw_options_t *o)
{
    size_t  i;

    const struct {
        const char  *directive;
        const char  *value;
    } bounds[] = {
        { "sandbox_limits", o->limits ? o->limits : "on" },
        { "sandbox_lock_timeout", o->lock_timeout },
        { "sandbox_rate", o->rate },
        { "sandbox_spool_limit", o->spool_limit },
        /* policy.default refuses what is not looked into */
        { "sandbox_archives", o->archives ? o->archives : "256" },
        { "sandbox_api_questions", o->questions },
        { "sandbox_live_limit", o->live }
    };

    for (i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        if (bounds[i].value) {
            gw_fill(f, "bounds", "%-21s %s;\n", bounds[i].directive,
                    bounds[i].value);
        }
    }
}


/* Adds to a place; makes it when it is new.  GW_PLACES is more than there are
 * in the template. */

static void
gw_fill(gw_fill_t *f, const char *name, const char *fmt, ...)
{
    int        n;
    char       text[GW_PATH_MAX * 3];
    va_list    args;
    unsigned   i;

    for (i = 0; f[i].name && strcmp(f[i].name, name) != 0; i++) {
        if (i == GW_PLACES - 2) {
            abort();
        }
    }

    f[i].name = name;
    f[i].text.max = GW_CONF_MAX;

    va_start(args, fmt);
    n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    if (n < 0 || n >= (int) sizeof(text)
        || sb_buf_add(&f[i].text, text, (size_t) n) != SB_OK)
    {
        abort();
    }
}


/* Is the line @if name@ or @end@?  These do not nest. */

static bool
gw_condition(const gw_fill_t *f, const char *line, size_t len, bool *skip)
{
    size_t       n;
    const char  *name;

    n = strspn(line, " ");
    name = line + n;
    n = len - n;

    if (n > 6 && memcmp(name, "@if ", 4) == 0) {
        *skip = (gw_place_find(f, name + 4, n - 6)->text.len == 0);
        return true;
    }

    if (n == 6 && memcmp(name, "@end@", 5) == 0) {
        *skip = false;
        return true;
    }

    return false;
}


static bool
gw_expand(sb_buf_t *out, const gw_fill_t *f, const char *line, size_t len)
{
    size_t            i, n, indent;
    const char       *at, *end, *p, *last;
    const gw_fill_t  *place;

    last = line + len;

    /* a place alone on its line: every line of it is indented alike */

    indent = strspn(line, " ");

    if (line[indent] == '@') {
        end = memchr(line + indent + 1, '@', len - indent - 1);

        if (end && end[1] == '\n') {
            place = gw_place_find(f, line + indent + 1,
                                  (size_t) (end - line) - indent - 1);

            for (p = place->text.data, i = 0; i < place->text.len; i += n) {
                n = strcspn(p + i, "\n") + 1;

                if ((n > 1 && sb_buf_add(out, line, indent) != SB_OK)
                    || sb_buf_add(out, p + i, n) != SB_OK)
                {
                    return false;
                }
            }

            return true;
        }
    }

    for (p = line; p < last; p = end + 1) {
        at = memchr(p, '@', (size_t) (last - p));
        end = at ? memchr(at + 1, '@', (size_t) (last - at) - 1) : NULL;

        if (end == NULL) {
            return sb_buf_add(out, p, (size_t) (last - p)) == SB_OK;
        }

        place = gw_place_find(f, at + 1, (size_t) (end - at) - 1);

        if (sb_buf_add(out, p, (size_t) (at - p)) != SB_OK
            || sb_buf_add(out, place->text.data, place->text.len) != SB_OK)
        {
            return false;
        }
    }

    return true;
}


static const gw_fill_t *
gw_place_find(const gw_fill_t *f, const char *name, size_t len)
{
    for ( /* void */ ; f->name; f++) {
        if (strlen(f->name) == len && memcmp(f->name, name, len) == 0) {
            return f;
        }
    }

    /* the template and gw_fill_all() disagree */

    fprintf(stderr, "sandbox-gateway: no value for @%.*s@\n", (int) len, name);
    abort();
}


/* Cores that we may use: by affinity and by the control group's quota. */

static unsigned
gw_cores(void)
{
    int                 n;
    FILE               *f;
    unsigned            cores;
    cpu_set_t           set;
    unsigned long long  quota, period;

    cores = 1;

    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        n = CPU_COUNT(&set);
        cores = (n > 0) ? (unsigned) n : 1;
    }

    f = fopen("/sys/fs/cgroup/cpu.max", "re");

    if (f) {
        if (fscanf(f, "%llu %llu", &quota, &period) == 2 && period
            && (quota + period - 1) / period < cores)
        {
            cores = (unsigned) ((quota + period - 1) / period);
        }

        fclose(f);
    }

    return cores < GW_WORKERS_MAX ? (cores ? cores : 1) : GW_WORKERS_MAX;
}


static unsigned
gw_nofile(void)
{
    struct rlimit  r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_max < GW_NOFILE) {
        return (unsigned) r.rlim_max;
    }

    return GW_NOFILE;
}
