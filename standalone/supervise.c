/*
 * Starting in order (runtime, helper, nginx), staying, and ending in the
 * reverse one: nginx first, so that every operation finds its end on record.
 */

#include "gateway.h"
#include "files.h"
#include "token.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define GW_READY_MS        60000    /* a long journal may be replayed */
#define GW_NGINX_END_MS    25000    /* worker_shutdown_timeout and a bit */
#define GW_HELPER_END_MS   60000    /* it applies what is in its journal */
#define GW_RUNTIME_END_MS  10000
#define GW_FAST_END_MS     3000
#define GW_WORKERS_END_MS  2000     /* of a master that was killed */
#define GW_DELAY_MIN_MS    100
#define GW_DELAY_MAX_MS    5000
#define GW_STEADY_MS       60000    /* ran this long: start over with delays */

#define GW_NGINX    0
#define GW_HELPER   1
#define GW_RUNTIME  2
#define GW_CHILDREN 3


typedef struct {
    gw_t         *g;
    gw_child_t    child[GW_CHILDREN];
    int           sigfd;
    unsigned      ends;         /* signals to end that came in */
    bool          nginx_gone;
    char          token[SB_TOKEN_TEXT_MAX];
} gw_run_t;


static bool gw_signals(gw_run_t *r);
static void gw_children(gw_run_t *r);
static bool gw_configure(gw_run_t *r);
static bool gw_bring_up(gw_run_t *r);
static bool gw_await(gw_run_t *r, gw_child_t *c);
static void gw_events(gw_run_t *r, int timeout_ms);
static void gw_reap(gw_run_t *r);
static void gw_restart(gw_run_t *r);
static int gw_next_restart(const gw_run_t *r);
static void gw_finish(gw_run_t *r, gw_child_t *c, int sig, int64_t patience);
static void gw_bring_down(gw_run_t *r);
static void gw_lines(const gw_run_t *r);


int
gw_supervise(gw_t *g)
{
    int              rc;
    static gw_run_t  r;

    r.g = g;

    if (!gw_signals(&r)) {
        return GW_EXIT_FAILED;
    }

    gw_children(&r);

    rc = GW_EXIT_FAILED;

    if (gw_token_first(g->place.tokens, r.token) && gw_configure(&r)
        && gw_bring_up(&r))
    {
        gw_lines(&r);

        while (r.ends == 0 && !r.nginx_gone) {
            gw_events(&r, gw_next_restart(&r));
            gw_restart(&r);
        }

        rc = r.nginx_gone ? GW_EXIT_FAILED : GW_EXIT_OK;

    } else {
        rc = r.ends ? GW_EXIT_OK : GW_EXIT_FAILED;

        /* nobody has seen this token: the next start makes another */

        if (r.token[0]) {
            (void) unlink(g->place.tokens);
        }
    }

    gw_bring_down(&r);

    return rc;
}


static bool
gw_signals(gw_run_t *r)
{
    sigset_t  set;

    (void) signal(SIGPIPE, SIG_IGN);

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);

    if (sigprocmask(SIG_BLOCK, &set, NULL) == -1) {
        return gw_fail("signals cannot be blocked: %s.", strerror(errno));
    }

    r->sigfd = signalfd(-1, &set, SFD_CLOEXEC|SFD_NONBLOCK);

    return r->sigfd != -1
           || gw_fail("signals cannot be read: %s.", strerror(errno));
}


static void
gw_children(gw_run_t *r)
{
    unsigned     i;
    gw_child_t  *c;

    static const struct {
        const char  *name;
        const char  *note;
        int          end_signal;
    } kinds[GW_CHILDREN] = {
        { "nginx", "nginx", SIGQUIT },
        { "sandbox-helper", "helper", 0 },  /* it must outlive nginx */
        { "sandbox-runtime", "runtime", SIGTERM }
    };

    for (i = 0; i < GW_CHILDREN; i++) {
        c = &r->child[i];
        c->name = kinds[i].name;
        c->end_signal = kinds[i].end_signal;
        c->ready = -1;
        c->delay_ms = GW_DELAY_MIN_MS;

        if (snprintf(c->note, sizeof(c->note), "%s/nginx/%s.process",
                     r->g->place.data, kinds[i].note)
            >= (int) sizeof(c->note))
        {
            c->note[0] = '\0';
        }
    }

    gw_child_end_leftover(&r->child[GW_NGINX], SIGQUIT, 2000);
    gw_child_end_leftover(&r->child[GW_HELPER], SIGTERM, GW_HELPER_END_MS);
    gw_child_end_leftover(&r->child[GW_RUNTIME], SIGTERM, GW_RUNTIME_END_MS);
}


static bool
gw_configure(gw_run_t *r)
{
    bool      ok;
    gw_t     *g;
    sb_buf_t  out;

    g = r->g;

    if (!gw_port_free(g->listen_addr, g->opt.port, "--port")) {
        return false;
    }

    if (g->runtime) {
        if (!gw_runtime_port(g) || !gw_runtime_key(g)) {
            return false;
        }

        gw_runtime_args(g, &r->child[GW_RUNTIME]);
    }

    if (!gw_ports_pick(g)) {
        return false;
    }

    if (!gw_key_share(g)) {
        return false;
    }

    gw_token_share(g);
    gw_helper_args(g, &r->child[GW_HELPER]);
    gw_nginx_args(g, &r->child[GW_NGINX]);

    /* a --config may name it as well */

    if (!gw_policy_write(g)) {
        return false;
    }

    if (g->opt.config == NULL) {
        memset(&out, 0, sizeof(out));
        out.max = GW_CONF_MAX;

        ok = gw_conf_render(g, &out)
             && (gw_write_file(g->place.conf, out.data, out.len, 0600)
                 || gw_fail("%s cannot be written: %s.", g->place.conf,
                            strerror(errno)));

        sb_buf_free(&out);

        if (!ok) {
            return false;
        }
    }

    return gw_conf_test(g, g->place.conf, g->place.data);
}


static bool
gw_bring_up(gw_run_t *r)
{
    gw_child_t  *c;

    if (r->g->runtime) {
        c = &r->child[GW_RUNTIME];

        if (!gw_child_start(c, true) || !gw_await(r, c)) {
            return false;
        }
    }

    c = &r->child[GW_HELPER];

    if (!gw_child_start(c, true) || !gw_await(r, c)) {
        return false;
    }

    c = &r->child[GW_NGINX];

    return gw_child_start(c, false) && gw_await(r, c);
}


/* Waits until a child says that it is ready; nginx is when it accepts. */

static bool
gw_await(gw_run_t *r, gw_child_t *c)
{
    char           byte;
    pid_t          pid;
    int64_t        until;
    struct pollfd  p[2];

    pid = c->pid;
    c->starting = true;
    until = gw_now_ms() + GW_READY_MS;

    while (gw_now_ms() < until) {

        if (r->ends) {
            return false;
        }

        if (c->pid != pid || r->nginx_gone) {
            return false;       /* gw_reap() has said why */
        }

        if (c->ready == -1) {
            if (gw_port_open(r->g->listen_addr, r->g->opt.port)) {
                c->starting = false;
                return true;
            }

            gw_events(r, 10);
            continue;
        }

        p[0].fd = c->ready;
        p[0].events = POLLIN;
        p[1].fd = r->sigfd;
        p[1].events = POLLIN;

        if (poll(p, 2, 1000) <= 0) {
            continue;
        }

        if (p[0].revents) {
            if (read(c->ready, &byte, 1) == 1) {
                close(c->ready);
                c->ready = -1;
                c->starting = false;
                return true;
            }

            /* closed without a word: it is ending, wait for that */

            close(c->ready);
            c->ready = -1;

            while (c->pid == pid && gw_now_ms() < until) {
                gw_events(r, 100);
            }

            break;
        }

        gw_events(r, 0);
    }

    if (c->pid == pid) {
        gw_fail("%s is not ready after %d s.", c->name, GW_READY_MS / 1000);
    }

    return false;
}


/* Waits for signals, at most timeout_ms (-1: any time), and acts on them. */

static void
gw_events(gw_run_t *r, int timeout_ms)
{
    struct pollfd            p;
    struct signalfd_siginfo  si;

    p.fd = r->sigfd;
    p.events = POLLIN;

    if (poll(&p, 1, timeout_ms) <= 0) {
        return;
    }

    while (read(r->sigfd, &si, sizeof(si)) == (ssize_t) sizeof(si)) {

        switch (si.ssi_signo) {

        case SIGCHLD:
            gw_reap(r);
            break;

        case SIGHUP:
            gw_key_again(r->g);
            /* fall through */

        case SIGUSR1:
            if (r->child[GW_NGINX].pid && r->ends == 0) {
                (void) kill(r->child[GW_NGINX].pid, (int) si.ssi_signo);
            }

            break;

        default:
            r->ends++;
        }
    }
}


static void
gw_reap(gw_run_t *r)
{
    int          status;
    char         text[160];
    pid_t        pid;
    unsigned     i;
    gw_child_t  *c;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {

        for (i = 0; i < GW_CHILDREN && r->child[i].pid != pid; i++) {
            /* void */
        }

        if (i == GW_CHILDREN) {
            continue;
        }

        c = &r->child[i];
        c->pid = 0;
        (void) unlink(c->note);

        if (i == GW_NGINX) {
            gw_child_end_group(pid, GW_WORKERS_END_MS);
        }

        if (r->ends || r->nginx_gone) {
            continue;
        }

        gw_child_ended(c, status, text, sizeof(text));

        if (i == GW_NGINX) {
            r->nginx_gone = true;
            gw_fail("%s%s.", text, WIFSIGNALED(status)
                    ? "" : "; its reason stands above");
            continue;
        }

        if (c->ready != -1) {
            close(c->ready);
            c->ready = -1;
        }

        if (c->starting) {
            gw_fail("%s before it was ready; its reason stands above.", text);
            continue;
        }

        if (gw_now_ms() - c->started_ms > GW_STEADY_MS) {
            c->delay_ms = GW_DELAY_MIN_MS;
        }

        gw_note("%s; starting it again in %u ms.", text, c->delay_ms);

        c->again_ms = gw_now_ms() + c->delay_ms;
        c->delay_ms = (c->delay_ms * 2 < GW_DELAY_MAX_MS) ? c->delay_ms * 2
                                                           : GW_DELAY_MAX_MS;
    }
}


static void
gw_restart(gw_run_t *r)
{
    unsigned     i;
    gw_child_t  *c;

    for (i = 0; i < GW_CHILDREN && r->ends == 0; i++) {
        c = &r->child[i];

        if (c->again_ms == 0 || c->again_ms > gw_now_ms()) {
            continue;
        }

        c->again_ms = 0;

        /* workers connect again by themselves: nobody waits for its word */

        if (!gw_child_start(c, true)) {
            c->again_ms = gw_now_ms() + c->delay_ms;
        }
    }
}


static int
gw_next_restart(const gw_run_t *r)
{
    int64_t   next, now;
    unsigned  i;

    next = 0;

    for (i = 0; i < GW_CHILDREN; i++) {
        if (r->child[i].again_ms
            && (next == 0 || r->child[i].again_ms < next))
        {
            next = r->child[i].again_ms;
        }
    }

    if (next == 0) {
        return -1;
    }

    now = gw_now_ms();

    return next > now ? (int) (next - now) : 0;
}


/* Ends one child; another signal to us shortens its time. */

static void
gw_finish(gw_run_t *r, gw_child_t *c, int sig, int64_t patience)
{
    bool      killed;
    int64_t   until, now;
    unsigned  ends;

    if (c->pid == 0) {
        return;
    }

    ends = r->ends;
    killed = false;
    until = gw_now_ms() + patience;

    (void) kill(c->pid, sig);

    while (c->pid) {
        now = gw_now_ms();

        if (r->ends > ends && !killed) {
            ends = r->ends;
            (void) kill(c->pid, SIGTERM);

            if (until > now + GW_FAST_END_MS) {
                until = now + GW_FAST_END_MS;
            }
        }

        if (now >= until) {
            if (!killed) {
                gw_note("%s did not end in time and is killed.", c->name);
            }

            (void) kill(c->pid, SIGKILL);
            killed = true;
            until = now + GW_FAST_END_MS;
        }

        gw_events(r, (int) (until - now));
    }
}


static void
gw_bring_down(gw_run_t *r)
{
    r->ends += (r->ends == 0);

    gw_finish(r, &r->child[GW_NGINX], SIGQUIT, GW_NGINX_END_MS);
    gw_finish(r, &r->child[GW_HELPER], SIGTERM, GW_HELPER_END_MS);
    gw_finish(r, &r->child[GW_RUNTIME], SIGTERM, GW_RUNTIME_END_MS);

    /* outside DATA nothing stays; the next start makes it again */

    if (r->g->place.root) {
        (void) gw_remove_tree(r->g->place.run);
        (void) gw_remove_tree(r->g->place.temp);
    }
}


static void
gw_lines(const gw_run_t *r)
{
    char         path[GW_PATH_MAX + 16];
    const gw_t  *g;

    g = r->g;

    /* for sandbox-gateway link, which does not know our options */
    snprintf(path, sizeof(path), "%s/" GW_CONSOLE_FILE, g->place.data);

    if (!gw_write_file(path, g->console_url, strlen(g->console_url), 0600)) {
        gw_note("%s cannot be written: %s; sandbox-gateway link needs --url.",
                path, strerror(errno));
    }

    printf("Console: %s\n", g->console_url);

    if (r->token[0]) {
        printf("Token: %s\n", r->token);

    } else {
        printf("Token: as printed at the first start; for another: %s token"
               " add --data %s --role admin --states-actors\n",
               g->prog.self, g->place.data);
    }

    printf("Upstream: %s\nHistory: %s\n", g->upstream_url, g->place.history);
    fflush(stdout);
}
