/* sandbox-gateway: what is asked, is it sound, and then go. */

#include "gateway.h"
#include "files.h"
#include "token_file.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <arpa/inet.h>


#define GW_PORT_DEFAULT  8080


static void gw_say(const char *fmt, va_list args);
static bool gw_prepare(gw_t *g);
static bool gw_prepare_listen(gw_t *g);
static bool gw_prepare_tls(gw_t *g);
static bool gw_prepare_public(gw_t *g);
static bool gw_prepare_upstream(gw_t *g);
static bool gw_prepare_files(const gw_t *g, char **key);
static void gw_prepare_console(gw_t *g);
static void gw_add_host(gw_t *g, const char *name, size_t len);
static int gw_print_config(const gw_t *g);
static int gw_check(gw_t *g);
static int gw_print_version(const gw_t *g);


int
main(int argc, char **argv, char **envp)
{
    char         *key;
    static gw_t   g;

    if (argc > 1 && strcmp(argv[1], "token") == 0) {
        return gw_token_main(argc - 1, argv + 1, envp);
    }

    if (argc > 1 && strcmp(argv[1], "link") == 0) {
        return gw_link_main(argc - 1, argv + 1, envp);
    }

    if (argc > 1 && strcmp(argv[1], "policy") == 0) {
        return gw_policy_main(argc - 1, argv + 1);
    }

    key = NULL;

    if (!gw_options_read(&g.opt, argc, argv, envp)) {
        return GW_EXIT_USAGE;
    }

    if (g.opt.help) {
        gw_options_help();
        return GW_EXIT_OK;
    }

    if (g.opt.version) {
        return gw_print_version(&g);
    }

    if (!gw_prepare(&g)) {
        return GW_EXIT_USAGE;
    }

    if (!gw_programs_find(&g.prog, &g.opt)) {
        return GW_EXIT_FAILED;
    }

    if (g.opt.print_config) {
        return gw_print_config(&g);
    }

    if (!gw_prepare_files(&g, &key)) {
        return GW_EXIT_FAILED;
    }

    if (!gw_helper_check(&g)) {
        return GW_EXIT_USAGE;
    }

    /* a key can be corrected while we run: what is wrong with it ends a check
     * only */

    if (!g.runtime
        && (!gw_upstream_probe(&g.upstream, g.opt.upstream)
            || (!gw_upstream_key(&g.upstream, g.opt.upstream, key)
                && g.opt.check)))
    {
        return GW_EXIT_FAILED;
    }

    free(key);

    if (!g.runtime) {
        gw_upstream_servers(&g);
    }

    if (g.opt.check) {
        return gw_check(&g);
    }

    if (!gw_place_make(&g.place, &g.prog, &g.opt)) {
        return GW_EXIT_FAILED;
    }

    return gw_supervise(&g);
}


bool
gw_fail(const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    gw_say(fmt, args);
    va_end(args);

    return false;
}


void
gw_note(const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    gw_say(fmt, args);
    va_end(args);
}


static void
gw_say(const char *fmt, va_list args)
{
    fflush(stdout);
    fputs("sandbox-gateway: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
}


static bool
gw_prepare(gw_t *g)
{
    return gw_prepare_listen(g)
           && gw_prepare_tls(g)
           && gw_prepare_public(g)
           && gw_prepare_ports(g)
           && gw_prepare_upstream(g)
           && gw_place_name(&g->place, &g->opt)
           && (gw_prepare_console(g), true);
}


static bool
gw_prepare_listen(gw_t *g)
{
    unsigned  port;

    port = 0;

    if (!gw_address_parse("--listen", g->opt.listen ? g->opt.listen
                                                    : "127.0.0.1",
                          g->listen_addr, &port, &g->loopback))
    {
        return false;
    }

    if (port && g->opt.port && g->opt.port != port) {
        return gw_fail("--listen and --port name different ports (%u and"
                       " %u).", port, g->opt.port);
    }

    if (g->opt.port == 0) {
        g->opt.port = port ? port : GW_PORT_DEFAULT;
    }

    return true;
}


static bool
gw_prepare_tls(gw_t *g)
{
    const gw_options_t *o;

    o = &g->opt;

    if ((o->tls_cert == NULL) != (o->tls_key == NULL)) {
        return gw_fail("--tls-cert and --tls-key belong together; %s is"
                       " missing.", o->tls_cert ? "--tls-key" : "--tls-cert");
    }

    if (o->tls_cert == NULL && !g->loopback && !o->insecure) {
        return gw_fail("%s is not a loopback address: give --tls-cert and"
                       " --tls-key, or --insecure if tokens may cross the"
                       " network in clear.", g->listen_addr);
    }

    return true;
}


static bool
gw_prepare_public(gw_t *g)
{
    size_t       len;
    char         addr[72];
    const char  *p;

    p = g->opt.public_name;

    if (p) {
        if (strstr(p, "://")) {
            return gw_fail("--public: \"%s\" is HOST[:PORT][/PREFIX], without"
                           " http:// or https://.", p);
        }

        len = strcspn(p, "/");

        if (len == 0 || len > 255
            || p[strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
                           "XYZ0123456789.-_~:[]/")] != '\0'
            || p[strlen(p) - 1] == '/')
        {
            return gw_fail("--public: \"%s\" is not HOST[:PORT][/PREFIX].", p);
        }

        gw_add_host(g, p, len);
    }

    /* who listens on one address is called by it */

    if (!g->loopback && strcmp(g->listen_addr, "0.0.0.0") != 0
        && strcmp(g->listen_addr, "::") != 0)
    {
        len = (size_t) snprintf(addr, sizeof(addr),
                                strchr(g->listen_addr, ':') ? "[%s]" : "%s",
                                g->listen_addr);
        gw_add_host(g, addr, len);
    }

    return true;
}


/* Adds a name without its port unless it is there. */

static void
gw_add_host(gw_t *g, const char *name, size_t len)
{
    char        *copy, *colon;
    unsigned     i;

    copy = strndup(name, len);

    if (copy == NULL) {
        abort();
    }

    colon = strrchr(copy, ':');

    if (colon && strchr(colon, ']') == NULL) {
        *colon = '\0';
    }

    for (i = 0; i < g->opt.nhosts; i++) {
        if (strcasecmp(g->opt.hosts[i], copy) == 0) {
            free(copy);
            return;
        }
    }

    if (i < GW_HOSTS_MAX) {
        g->opt.hosts[g->opt.nhosts++] = copy;
    }
}


static bool
gw_prepare_upstream(gw_t *g)
{
    const char    *why;
    gw_options_t  *o;

    o = &g->opt;

    if (o->api_key && o->api_key_file) {
        return gw_fail("SANDBOX_GATEWAY_API_KEY and --api-key-file exclude"
                       " each other.");
    }

    if (o->upstream == NULL) {

        if (o->api_key || o->api_key_file) {
            return gw_fail("an API key is given but no --upstream that it is"
                           " for.");
        }

        /* one that is taken is replaced by a free one at the start */

        g->runtime = true;
        snprintf(g->upstream_url, sizeof(g->upstream_url),
                 "http://127.0.0.1:%u", o->port <= 65525 ? o->port + 10
                                                         : o->port - 10);
        return gw_url_parse(&g->upstream, g->upstream_url, &why);
    }

    if (o->unconfined) {
        return gw_fail("--unconfined is for the local runtime, which does not"
                       " run with --upstream.");
    }

    if (!gw_url_parse(&g->upstream, o->upstream, &why)) {
        return gw_fail("--upstream: \"%s\" %s.", o->upstream, why);
    }

    if (g->upstream.port == o->port
        && (strcmp(g->upstream.host, g->listen_addr) == 0
            || (strcmp(g->upstream.host, "localhost") == 0 && g->loopback)))
    {
        return gw_fail("--upstream %s is this gateway's own address.",
                       o->upstream);
    }

    snprintf(g->upstream_url, sizeof(g->upstream_url), "%s://%s",
             g->upstream.tls ? "https" : "http", g->upstream.authority);

    return true;
}


static void
gw_prepare_console(gw_t *g)
{
    bool         brackets, wild;
    const char  *host, *scheme;

    scheme = g->opt.tls_cert ? "https" : "http";

    if (g->opt.public_name) {
        snprintf(g->console_url, sizeof(g->console_url), "%s://%s/console/",
                 scheme, g->opt.public_name);
        return;
    }

    wild = (strcmp(g->listen_addr, "0.0.0.0") == 0
            || strcmp(g->listen_addr, "::") == 0);

    host = g->listen_addr;

    if (wild) {
        host = "127.0.0.1";

        if (g->opt.nhosts && strpbrk(g->opt.hosts[0], "*:[") == NULL) {
            host = g->opt.hosts[0];
        }
    }

    brackets = (strchr(host, ':') != NULL);

    snprintf(g->console_url, sizeof(g->console_url), "%s://%s%s%s:%u/console/",
             scheme, brackets ? "[" : "", host, brackets ? "]" : "",
             g->opt.port);
}


/* Files that the options name; upstream's API key, NULL when there is none. */

static bool
gw_prepare_files(const gw_t *g, char **key)
{
    unsigned  k;

    const struct {
        const char  *flag;
        const char  *path;
    } files[] = {
        { "--tls-cert", g->opt.tls_cert },
        { "--tls-key", g->opt.tls_key },
        { "--config", g->opt.config },
        { "--policy", g->opt.policy ? g->place.policy : NULL }
    };

    for (k = 0; k < sizeof(files) / sizeof(files[0]); k++) {

        if (files[k].path && files[k].path[0]
            && access(files[k].path, R_OK) == -1) {
            return gw_fail("%s: %s cannot be read: %s.", files[k].flag,
                           files[k].path, strerror(errno));
        }
    }

    return gw_key_read(g, key);
}


static int
gw_print_config(const gw_t *g)
{
    sb_buf_t  out;

    memset(&out, 0, sizeof(out));
    out.max = GW_CONF_MAX;

    if (!gw_conf_render(g, &out)) {
        return GW_EXIT_FAILED;
    }

    fwrite(out.data, 1, out.len, stdout);
    sb_buf_free(&out);

    return fflush(stdout) == 0 ? GW_EXIT_OK : GW_EXIT_FAILED;
}


/* Everything but starting, and nothing is left behind: nginx judges the
 * configuration in a directory that goes away again. */

static int
gw_check(gw_t *g)
{
    int       rc;
    char      dir[] = "/tmp/sandbox-gateway-check.XXXXXX";
    char      data[GW_PATH_MAX], text[128];
    bool      fresh;
    sb_buf_t  out;

    if (!gw_place_check(&g->place)) {
        return GW_EXIT_FAILED;
    }

    if (g->opt.config) {
        if (gw_tokens_there(g->place.tokens) != 1) {
            gw_fail("--check of a --config needs what the first start makes:"
                    " %s is not there yet.", g->place.tokens);
            return GW_EXIT_FAILED;
        }

        /* nginx makes its temporary directories in one that is there while it
         * runs */

        fresh = (access(g->place.temp, F_OK) == -1);

        if (fresh && !gw_mkdirs(g->place.temp, 0711)) {
            gw_fail("%s cannot be made: %s.", g->place.temp, strerror(errno));
            return GW_EXIT_FAILED;
        }

        rc = gw_conf_test(g, g->place.conf, g->place.data)
             ? GW_EXIT_OK : GW_EXIT_FAILED;

        if (fresh) {
            (void) gw_remove_tree(g->place.temp);
        }

        if (rc == GW_EXIT_OK) {
            puts("The configuration is fine.");
        }

        return rc;
    }

    if (mkdtemp(dir) == NULL) {
        gw_fail("/tmp is not writable: %s.", strerror(errno));
        return GW_EXIT_FAILED;
    }

    fresh = (gw_tokens_there(g->place.tokens) == 0);

    snprintf(data, sizeof(data), "%s/nginx", dir);
    snprintf(g->place.temp, sizeof(g->place.temp), "%s/temp", dir);
    snprintf(g->place.conf, sizeof(g->place.conf), "%s/nginx.conf", dir);
    snprintf(g->place.data, sizeof(g->place.data), "%s", dir);

    if (g->opt.policy == NULL) {
        snprintf(g->place.policy, sizeof(g->place.policy),
                 "%s/policy.default", dir);
    }

    /* a key of its own: the real one is not there yet */

    if (g->opt.api_key_file == NULL && g->place.key[0]) {
        snprintf(g->place.key, sizeof(g->place.key), "%s/key", dir);
    }

    if (fresh) {
        snprintf(g->place.tokens, sizeof(g->place.tokens), "%s/tokens", dir);
    }

    memset(&out, 0, sizeof(out));
    out.max = GW_CONF_MAX;

    rc = GW_EXIT_FAILED;

    if (gw_mkdirs(data, 0700) && gw_mkdirs(g->place.temp, 0700)
        && (!fresh || gw_token_first(g->place.tokens, text))
        && (g->opt.api_key_file || g->place.key[0] == '\0'
            || gw_write_file(g->place.key, "check", 5, 0600))
        && gw_conf_render(g, &out)
        && gw_policy_write(g)
        && gw_write_file(g->place.conf, out.data, out.len, 0600)
        && gw_conf_test(g, g->place.conf, dir))
    {
        puts("The configuration is fine.");
        rc = GW_EXIT_OK;
    }

    sb_buf_free(&out);

    if (!gw_remove_tree(dir)) {
        gw_note("%s could not be removed: %s.", dir, strerror(errno));
    }

    return rc;
}


static int
gw_print_version(const gw_t *g)
{
    gw_programs_t  prog;

    memset(&prog, 0, sizeof(prog));

    printf("sandbox-gateway %s\n", SB_VERSION);

    if (gw_nginx_find(&prog, &g->opt)) {
        printf("nginx %u.%u.%u (%s)\n", prog.nginx_version / 1000000,
               prog.nginx_version / 1000 % 1000, prog.nginx_version % 1000,
               prog.nginx);
    }

    return GW_EXIT_OK;
}
