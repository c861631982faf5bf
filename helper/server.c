#include "server.h"
#include "server_int.h"

#include "flush.h"
#include "id.h"
#include "log.h"
#include "stats.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>


/* Tags of what is not a connection, in epoll data. */
enum { SERVER_LISTEN = 0, SERVER_SIGNAL, SERVER_FETCH, SERVER_BEFORE,
       SERVER_FLUSH, SERVER_ASK, SERVER_FULL, SERVER_ERRAND, SERVER_LOCKS,
       SERVER_INSPECT, SERVER_TAGS };

#define SERVER_EVENTS   64
#define SERVER_TICK_MS  250
#define SERVER_DEAF_US  250000u    /* without descriptors: look again after that */


static bool
server_add(server_t *s, int fd, uint64_t tag)
{
    struct epoll_event  ev;

    ev.events = EPOLLIN;
    ev.data.u64 = tag;

    return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) == 0;
}


static bool
server_trusted(server_t *s, int fd, struct ucred *from)
{
    unsigned      i;
    socklen_t     len;
    struct ucred  peer;

    len = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1) {
        return false;
    }

    *from = peer;

    if (peer.uid == 0 || peer.uid == s->conf->uid) {
        return true;
    }

    for (i = 0; i < s->conf->options->npeers; i++) {
        if (peer.uid == s->conf->options->peers[i]) {
            return true;
        }
    }

    log_minutely(LOG_WARN, "process %d of user %u may not connect: start us "
                 "with --peer %u if it shall", (int) peer.pid,
                 (unsigned) peer.uid, (unsigned) peer.uid);

    return false;
}


/* Who waits to be accepted makes the socket readable for as long: we do not
 * look for a while. */
static void
server_listen(server_t *s, bool on)
{
    struct epoll_event  ev;

    ev.events = on ? EPOLLIN : 0;
    ev.data.u64 = SERVER_LISTEN;

    if (epoll_ctl(s->epoll, EPOLL_CTL_MOD, s->conf->listen_fd, &ev) == 0) {
        s->deaf_us = on ? 0 : sb_mono_us();
    }
}


static void
server_accept(server_t *s)
{
    int                  fd;
    struct ucred         peer;
    conn_t              *c;
    struct epoll_event   ev;

    for ( ;; ) {
        fd = accept4(s->conf->listen_fd, NULL, NULL,
                     SOCK_CLOEXEC|SOCK_NONBLOCK);

        if (fd == -1) {
            if (errno == EINTR || errno == ECONNABORTED) {
                continue;
            }

            if (errno != EAGAIN) {
                log_minutely(LOG_ERROR, "cannot accept a connection: errno %d",
                             errno);
                server_listen(s, false);
            }

            return;
        }

        if (!server_trusted(s, fd, &peer)) {
            close(fd);
            continue;
        }

        if (s->nconns >= SERVER_CONNS) {
            stats_add(STATS_CONNECTIONS_REFUSED, 1);
            log_minutely(LOG_ERROR, "more than %d connections, one is refused",
                         SERVER_CONNS);
            close(fd);
            continue;
        }

        c = conn_new(fd, ++s->conn_ids);

        if (c == NULL) {
            close(fd);
            continue;
        }

        c->uid = peer.uid;
        c->pid = peer.pid;

        /* for reading only: with EPOLLOUT armed every read of the peer would
         * wake us */
        ev.events = EPOLLIN;
        ev.data.ptr = c;

        if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) == -1) {
            conn_free(c);
            continue;
        }

        c->next = s->conns;

        if (c->next) {
            c->next->prev = c;
        }

        s->conns = c;
        stats_set(STATS_CONNECTIONS, ++s->nconns);
    }
}


static void
server_close(server_t *s, conn_t *c)
{
    if (c->inst && !c->bulk) {
        server_locks_closed(s, c);
    }

    if (c->inst) {
        inflight_closed(s->conf->inflight, c->inst, sb_now_us());
    }

    if (c->inspects) {
        inspector_cancel(s->conf->inspector, c->id);
    }

    if (c->bulk) {
        ask_closed(s->conf->ask, c->id);
    }

    if (c->prev) {
        c->prev->next = c->next;
    } else {
        s->conns = c->next;
    }

    if (c->next) {
        c->next->prev = c->prev;
    }

    /* by its close alone it would still be watched, and tell of what is freed,
     * while a process that is just being started (inspector.c) has it, too */
    (void) epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->fd, NULL);

    conn_free(c);
    stats_set(STATS_CONNECTIONS, --s->nconns);

    if (s->nconns == 0) {
        s->empty_us = sb_mono_us();
    }
}


/* Writing is watched only while something could not be sent. */
static void
server_watch(server_t *s, conn_t *c)
{
    struct epoll_event  ev;

    if (conn_blocked(c) == c->writing || c->dead) {
        return;
    }

    c->writing = !c->writing;
    ev.events = EPOLLIN | (c->writing ? (uint32_t) EPOLLOUT : 0);
    ev.data.ptr = c;

    if (epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->fd, &ev) == -1) {
        c->dead = true;
    }
}


void
server_send(server_t *s, conn_t *c, const void *p, size_t n)
{
    (void) s;

    if (!c->dead && !conn_send(c, p, n)) {
        c->dead = true;
    }
}


static void
server_signal(server_t *s)
{
    struct signalfd_siginfo  si;

    while (read(s->conf->signal_fd, &si, sizeof(si)) == sizeof(si)) {

        if (si.ssi_signo == SIGHUP) {
            log_reopen();

        } else if (si.ssi_signo == SIGTERM || si.ssi_signo == SIGINT) {
            s->stop = true;
        }
    }
}


static void
server_drain(int fd)
{
    uint64_t  n;

    if (read(fd, &n, sizeof(n)) == -1) {
        /* somebody was faster */
    }
}


static int
server_timeout(server_t *s)
{
    if (s->more) {
        return 0;
    }

    if (s->lazy_us) {
        return server_locks_timeout(s, SERVER_LAZY_US / 1000);
    }

    if ((s->conf->journal && inflight_waiting(s->conf->inflight))
        || s->conf->options->exec || s->deaf_us)
    {
        return server_locks_timeout(s, SERVER_TICK_MS);
    }

    return server_locks_timeout(s, -1);
}


/* One round: events, then everything that was read in one write. */
static void
server_round(server_t *s)
{
    int                  i, n;
    conn_t              *c, *next;
    struct epoll_event   events[SERVER_EVENTS];

    n = epoll_wait(s->epoll, events, SERVER_EVENTS, server_timeout(s));

    if (s->deaf_us && sb_mono_us() >= s->deaf_us + SERVER_DEAF_US) {
        server_listen(s, true);
    }

    s->idle = n == 0 && !s->more;
    s->more = false;
    s->nitems = 0;

    for (i = 0; i < n; i++) {

        switch (events[i].data.u64) {

        case SERVER_LISTEN:
            server_accept(s);
            continue;

        case SERVER_SIGNAL:
            server_signal(s);
            continue;

        case SERVER_FETCH:
            server_drain(s->conf->fetch_fd);
            server_fetched(s);
            continue;

        case SERVER_BEFORE:
            server_drain(s->conf->before_fd);
            server_before_read(s);
            continue;

        case SERVER_INSPECT:
            server_drain(s->conf->inspect_fd);
            server_inspected(s);
            continue;

        case SERVER_FLUSH:
            server_drain(s->conf->flush_fd);
            server_flushed(s);
            continue;

        case SERVER_ASK:
            server_drain(s->conf->ask_fd);
            server_answered(s);
            continue;

        case SERVER_ERRAND:
            server_drain(s->conf->errand_fd);
            server_errands(s);
            continue;

        case SERVER_LOCKS:
            server_drain(s->conf->locks_fd);
            s->locks_us = sb_mono_us();
            continue;

        case SERVER_FULL:
            server_drain(s->conf->full_fd);
            server_full(s);
            continue;

        default:
            break;
        }

        c = events[i].data.ptr;

        if ((events[i].events & EPOLLOUT) && !conn_flush(c)) {
            c->dead = true;
        }

        if ((events[i].events & (EPOLLIN|EPOLLHUP|EPOLLERR))
            && !conn_read(c))
        {
            /* what came before its end counts */
            c->dead = true;
        }

        c->more = true;
    }

    for (c = s->conns; c; c = c->next) {
        if (c->more) {
            server_frames(s, c);
        }
    }

    /* a grant at once goes with the ACK of what asked for it */
    server_granted(s);
    server_append(s);
    server_tales(s);
    server_console(s);

    for (c = s->conns; c; c = next) {
        next = c->next;

        if (c->in_used) {
            conn_consume(c);
        }

        if (!c->dead && conn_blocked(c) && !c->writing && !conn_flush(c)) {
            c->dead = true;
        }

        server_watch(s, c);

        if (c->dead && !c->more) {
            server_close(s, c);

        } else if (c->more) {
            s->more = true;
        }
    }

    server_ends(s);

    stats_set(STATS_OPERATIONS, inflight_operations(s->conf->inflight));
    stats_set(STATS_INSTANCES, inflight_instances(s->conf->inflight));
    stats_set(STATS_DETACHED, inflight_detached(s->conf->inflight));
}


static bool
server_idle(server_t *s)
{
    uint64_t  limit;

    if (!s->conf->options->exec || s->nconns) {
        return false;
    }

    limit = s->conn_ids ? SERVER_IDLE_US : SERVER_IDLE_US * 12;

    return sb_mono_us() >= s->empty_us + limit;
}


/* The console's own records are those of a worker that is always there. */
static void
server_introduce(server_t *s)
{
    inflight_inst_t  *i;

    i = inflight_instance(s->conf->inflight,
                          console_instance(s->conf->console));
    if (i) {
        inflight_connected(s->conf->inflight, i);
    }
}


bool
server_run(const server_conf_t *conf)
{
    bool       ok;
    server_t   s;

    memset(&s, 0, sizeof(s));
    s.conf = conf;
    s.empty_us = sb_mono_us();
    s.ends.max = SERVER_ENDS_MAX;
    s.locks_us = sb_mono_us();

    s.epoll = epoll_create1(EPOLL_CLOEXEC);

    ok = s.epoll != -1
         && server_add(&s, conf->listen_fd, SERVER_LISTEN)
         && server_add(&s, conf->signal_fd, SERVER_SIGNAL)
         && server_add(&s, conf->fetch_fd, SERVER_FETCH)
         && server_add(&s, conf->before_fd, SERVER_BEFORE)
         && server_add(&s, conf->inspect_fd, SERVER_INSPECT)
         && server_add(&s, conf->ask_fd, SERVER_ASK)
         && server_add(&s, conf->full_fd, SERVER_FULL)
         && server_add(&s, conf->locks_fd, SERVER_LOCKS)
         && server_add(&s, conf->errand_fd, SERVER_ERRAND)
         && (conf->flush_fd == -1
             || server_add(&s, conf->flush_fd, SERVER_FLUSH));

    if (ok && conf->journal) {
        s.flush = flush_start(conf->journal, conf->flush_fd);
        ok = s.flush != NULL;
    }

    if (!ok) {
        log_line(LOG_ERROR, "cannot begin to serve: errno %d", errno);
    }

    if (ok && conf->console) {
        server_introduce(&s);
    }

    while (ok && !s.stop && !server_idle(&s)) {
        server_round(&s);
    }

    if (ok) {
        server_last(&s);
    }

    while (s.conns) {
        server_close(&s, s.conns);
    }

    flush_stop(s.flush);
    sb_buf_free(&s.ends);
    free(s.items);

    if (s.epoll != -1) {
        close(s.epoll);
    }

    return ok;
}
