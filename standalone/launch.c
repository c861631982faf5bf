/* What the three programs are started with. */

#include "gateway.h"
#include "digest.h"
#include "files.h"
#include "id.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>


/* The local runtime is asked with a key of its own, or any process on this
 * machine could go past the gateway. */

bool
gw_runtime_key(const gw_t *g)
{
    char     hex[65];
    uint8_t  secret[32];

    sb_random(secret, sizeof(secret));
    sb_hex(hex, secret, sizeof(secret));

    return gw_write_file(g->place.key, hex, 64, 0600)
           || gw_fail("%s cannot be written: %s.", g->place.key,
                      strerror(errno));
}


bool
gw_runtime_port(gw_t *g)
{
    unsigned  port, i;

    port = g->upstream.port;

    for (i = 0; i < 20 && port + i <= 65535; i++) {

        if (port + i != g->opt.port && !gw_port_open("127.0.0.1", port + i)) {
            g->upstream.port = port + i;
            snprintf(g->upstream.authority, sizeof(g->upstream.authority),
                     "127.0.0.1:%u", port + i);
            snprintf(g->upstream_url, sizeof(g->upstream_url),
                     "http://127.0.0.1:%u", port + i);
            return true;
        }

        if (g->opt.config) {
            break;      /* that configuration names one port */
        }
    }

    return gw_fail("port %u on 127.0.0.1, for the local runtime, is taken; end"
                   " what listens there or choose another --port.", port);
}


void
gw_runtime_args(const gw_t *g, gw_child_t *c)
{
    static char  data[GW_PATH_MAX + 16], port[8];

    snprintf(port, sizeof(port), "%u", g->upstream.port);
    snprintf(data, sizeof(data), "%s/runtime", g->place.data);

    gw_child_arg(c, g->prog.runtime);
    gw_child_arg(c, "--port");
    gw_child_arg(c, port);
    gw_child_arg(c, "--data");
    gw_child_arg(c, data);
    gw_child_arg(c, "--api-key-file");
    gw_child_arg(c, g->place.key);
    gw_child_arg(c, "--ready-fd");
    gw_child_arg(c, "3");

    if (g->opt.unconfined) {
        gw_child_arg(c, "--unconfined");
    }
}


void
gw_helper_args(const gw_t *g, gw_child_t *c)
{
    size_t       i;
    static char  peer[16];

    const struct {
        const char  *flag;
        const char  *value;
    } limits[] = {
        { "--history-ttl", g->opt.history_ttl },
        { "--history-size", g->opt.history_size },
        { "--history-total", g->opt.history_total },
        { "--history-keep", g->opt.history_keep },
        { "--history-overflow", g->opt.history_overflow },
        { "--history-on-delete", g->opt.history_on_delete },
        { "--contents", g->opt.contents },
        { "--fetches", g->opt.fetches },
        { "--inspections", g->opt.inspections },
        { "--inspect-seconds", g->opt.inspect_seconds },
        { "--inspect-memory", g->opt.inspect_memory },
        { "--sync", g->opt.sync },
        { "--lag", g->opt.lag },
        { "--locks", g->opt.locks },
        { "--leases", g->opt.leases },
        { "--questions", g->opt.questions },
        { "--live", g->opt.live }
    };

    gw_child_arg(c, g->prog.helper);
    gw_child_arg(c, "--data");
    gw_child_arg(c, g->place.data);
    gw_child_arg(c, "--history");
    gw_child_arg(c, g->place.history);
    gw_child_arg(c, "--socket");
    gw_child_arg(c, g->place.socket);
    gw_child_arg(c, "--upstream");
    gw_child_arg(c, g->upstream_url);

    if (g->opt.config == NULL) {
        /* a configuration of its own may read another file */
        gw_child_arg(c, "--tokens");
        gw_child_arg(c, g->place.tokens);
    }

    for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (limits[i].value) {
            gw_child_arg(c, limits[i].flag);
            gw_child_arg(c, limits[i].value);
        }
    }

    for (i = 0; i < g->opt.nholds; i++) {
        gw_child_arg(c, "--history-hold");
        gw_child_arg(c, g->opt.holds[i]);
    }

    if (g->place.key[0]) {
        gw_child_arg(c, "--api-key-file");
        gw_child_arg(c, g->helper_key[0] ? g->helper_key : g->place.key);
    }

    if (g->place.root) {
        gw_child_arg(c, "--socket-mode");
        gw_child_arg(c, "0660");
        gw_child_arg(c, "--socket-group");
        gw_child_arg(c, g->place.worker_group);

        snprintf(peer, sizeof(peer), "%u",
                 (unsigned) g->place.worker_uid);
        gw_child_arg(c, "--peer");
        gw_child_arg(c, peer);

        if (g->place.helper_user) {
            gw_child_arg(c, "--user");
            gw_child_arg(c, g->place.helper_user);
        }
    }

    gw_child_arg(c, "--ready-fd");
    gw_child_arg(c, "3");
}


bool
gw_helper_check(const gw_t *g)
{
    int                status;
    char               out[1024];
    char              *said, *end;
    static gw_child_t  c;

    gw_helper_args(g, &c);
    gw_child_arg(&c, "--check");

    status = gw_run((char *const *) c.argv, out, sizeof(out));

    if (status == 0) {
        return true;
    }

    said = out;

    if (strncmp(said, "sandbox-helper: ", 16) == 0) {
        said += 16;
    }

    end = said + strcspn(said, "\n");

    if (status == -1 || !WIFEXITED(status) || end == said) {
        return gw_fail("%s --check cannot be run.", g->prog.helper);
    }

    return gw_fail("%.*s.", (int) (end - said), said);
}


void
gw_nginx_args(const gw_t *g, gw_child_t *c)
{
    gw_child_arg(c, g->prog.nginx);
    gw_child_arg(c, "-p");
    gw_child_arg(c, g->place.data);
    gw_child_arg(c, "-c");
    gw_child_arg(c, g->place.conf);
    gw_child_arg(c, "-e");
    gw_child_arg(c, "stderr");
    gw_child_arg(c, "-g");
    gw_child_arg(c, "daemon off;");
}
