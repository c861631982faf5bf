/*
 * sandbox-helper: the only writer of a gateway's history (design 2).
 */

#include "api.h"
#include "apply.h"
#include "ask_boxes.h"
#include "contents.h"
#include "dirs.h"
#include "fetch.h"
#include "id.h"
#include "index.h"
#include "inflight.h"
#include "inspector.h"
#include "journal.h"
#include "log.h"
#include "options.h"
#include "schema.h"
#include "server.h"
#include "store.h"

#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>


typedef struct {
    options_t      options;
    dirs_t         dirs;
    store_t       *store;
    keys_t        *keys;
    heads_t       *heads;
    index_t       *index;
    retain_t      *retain;
    full_t        *full;
    errands_t     *errands;
    journal_t     *journal;
    inflight_t    *inflight;
    locks_t       *locks;
    apply_t       *apply;
    fetch_t       *fetch;
    before_t      *before;
    inspector_t   *inspector;
    ask_t         *ask;
    console_t     *console;
    api_t          api;
    server_conf_t  server;
} helper_t;


static void
helper_scan(void *data, const journal_record_t *r)
{
    helper_t  *h = data;

    inflight_note(h->inflight, r->instance, &r->frame);
    locks_note(h->locks, &r->frame);
    apply_scan(h->apply, r);
}


static bool
helper_signals(helper_t *h)
{
    sigset_t  set;

    (void) signal(SIGPIPE, SIG_IGN);
    (void) signal(SIGXFSZ, SIG_IGN);    /* then a write says EFBIG */

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGTERM);
    (void) sigaddset(&set, SIGINT);
    (void) sigaddset(&set, SIGHUP);

    if (sigprocmask(SIG_BLOCK, &set, NULL) == -1) {
        return false;
    }

    h->server.signal_fd = signalfd(-1, &set, SFD_NONBLOCK|SFD_CLOEXEC);

    return h->server.signal_fd != -1;
}


/* What the threads wake the server by.  Not one of them is optional: without that
 * of the flushes, --sync full would be acknowledged as --sync normal is. */
static bool
helper_events(helper_t *h)
{
    size_t          i;
    server_conf_t  *s = &h->server;

    int  *const  fds[] = {
        &s->fetch_fd, &s->before_fd, &s->inspect_fd, &s->ask_fd, &s->locks_fd,
        &s->full_fd, &s->errand_fd, &s->flush_fd
    };

    for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {

        *fds[i] = -1;

        if (fds[i] == &s->flush_fd && (!h->options.full || h->options.none)) {
            continue;
        }

        *fds[i] = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

        if (*fds[i] == -1) {
            return false;
        }
    }

    return true;
}


/* Three descriptors for each open database, and the workers'; priorities. */
static void
helper_limits(void)
{
    struct rlimit  r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max < 65536 ? r.rlim_max : 65536;
        (void) setrlimit(RLIMIT_NOFILE, &r);
    }

    /* who takes the lowest priority may come back, also without root */
    r.rlim_cur = 20;
    r.rlim_max = 20;
    (void) setrlimit(RLIMIT_NICE, &r);
}


static void
helper_news(void *data, const char *dir)
{
    index_touch(data, dir);
}


static bool
helper_busy(void *data, const char *sandbox)
{
    helper_t  *h = data;

    return apply_busy(h->apply, sandbox);
}


static void
helper_removed(void *data, const char *sandbox)
{
    helper_t  *h = data;

    apply_removed(h->apply, sandbox);
}


static void
helper_purged(void *data, const char *dir)
{
    helper_t  *h = data;

    index_forget(h->index, dir);
}


static void
helper_full(void *data, const char *dir, const char *sandbox, bool full,
    const char *limit)
{
    helper_t  *h = data;

    full_set(h->full, dir, sandbox, full, limit);
}


static bool
helper_open(helper_t *h, char *why, size_t size)
{
    uint64_t        from, fresh;
    retain_hooks_t  hooks;

    memset(&hooks, 0, sizeof(hooks));
    (void) snprintf(why, size, "no memory");

    h->inflight = inflight_new(h->options.follow_us);
    h->full = full_new(h->server.full_fd);
    h->server.full = h->full;
    h->locks = locks_new(h->options.locks, h->options.leases,
                         h->server.locks_fd);

    if (h->inflight == NULL || h->full == NULL || h->locks == NULL) {
        return false;
    }

    if (h->options.none) {
        /* nobody knows who was here before */
        locks_recall(h->locks, sb_mono_us());
        return true;
    }

    h->store = store_new(h->dirs.history_base, store_handles(), h->dirs.plain);

    h->index = index_new(h->dirs.index_base, h->dirs.history_base,
                         h->dirs.plain);

    if (h->store == NULL || h->index == NULL) {
        return false;
    }

    store_set_news(h->store, helper_news, h->index);

    h->keys = keys_open(h->dirs.keys, why, size);
    if (h->keys == NULL) {
        return false;
    }

    h->heads = heads_new(h->dirs.history, h->keys);
    if (h->heads == NULL) {
        (void) snprintf(why, size, "no memory");
        return false;
    }

    store_set_heads(h->store, h->heads);

    from = journal_applied_load(h->dirs.journal);
    h->apply = apply_new(h->store, h->fetch, h->dirs.journal, from);

    if (h->apply == NULL) {
        return false;
    }

    contents_limit(h->options.contents);
    schema_limits(h->options.limits.ttl_us, h->options.limits.size,
                  retain_overflow_names[h->options.limits.overflow]);
    apply_bounds(h->apply, h->options.lag_us, h->options.stop_us);

    hooks.data = h;
    hooks.busy = helper_busy;
    hooks.removed = helper_removed;
    hooks.purged = helper_purged;
    hooks.full = helper_full;
    h->retain = retain_new(&h->options.limits, h->store, &hooks);

    if (h->retain == NULL) {
        return false;
    }

    h->errands = errands_new(h->server.errand_fd);

    if (h->errands == NULL) {
        return false;
    }

    h->server.errands = h->errands;
    apply_retain(h->apply, h->retain);
    apply_errands(h->apply, h->errands);

    /*
     * A new journal must not count from 1 again: cursors order everything,
     * files of an older one know how far it got, and readers of live streams
     * come back with the last that they saw of it.
     */
    fresh = sb_now_us() / 1000;

    h->journal = journal_open(h->dirs.journal, JOURNAL_SEGMENT, from, fresh,
                              helper_scan, h, why, size);

    if (h->journal == NULL) {
        return false;
    }

    inflight_started(h->inflight, sb_now_us());

    if (inflight_away(h->inflight)) {
        locks_recall(h->locks, sb_mono_us());
    }

    if (!apply_attach(h->apply, h->journal)) {
        log_line(LOG_WARN, "history files cannot be written now; the journal "
                 "keeps what comes");
    }

    if (!apply_start(h->apply) || !index_start(h->index)) {
        (void) snprintf(why, size, "cannot start a thread");
        return false;
    }

    return true;
}


static void
helper_ready(const options_t *o)
{
    if (o->ready_fd == -1) {
        return;
    }

    if (write(o->ready_fd, "1", 1) != 1) {
        log_line(LOG_WARN, "--ready-fd %d cannot be written: %s", o->ready_fd,
                 strerror(errno));
    }

    close(o->ready_fd);
}


static int
helper_fail(const char *why)
{
    fprintf(stderr, "sandbox-helper: %s\n", why);

    return 1;
}


static bool
helper_record_begin(void *data, ask_question_t *q, const ask_route_t *r)
{
    return console_begin(data, q, r);
}


static void
helper_record_end(void *data, ask_question_t *q, unsigned status, bool whole)
{
    console_end(data, q, status, whole);
}


static void
helper_record(helper_t *h)
{
    ask_record_t  record;

    record.begin = helper_record_begin;
    record.end = helper_record_end;
    record.data = h->console;
    ask_record(h->ask, &record);
}


static int
helper_run(helper_t *h)
{
    char  why[8192];

    if (!helper_open(h, why, sizeof(why))) {
        return helper_fail(why);
    }

    h->server.options = &h->options;
    h->server.listen_fd = h->dirs.listen;
    h->server.fetch = h->fetch;
    h->server.journal = h->journal;
    h->server.inflight = h->inflight;
    h->server.locks = h->locks;
    h->server.apply = h->apply;
    h->server.uid = geteuid();

    if (h->fetch && !fetch_start(h->fetch)) {
        return helper_fail("cannot start a thread");
    }

    api_init(&h->api, &h->options, h->journal, h->apply, h->fetch);

    if (h->store) {
        h->api.readers = readers_new(h->dirs.history_base, h->dirs.plain,
                                     h->options.readers);

        h->api.boxes = ask_boxes_new();

        if (h->api.readers == NULL || h->api.boxes == NULL) {
            return helper_fail("no memory");
        }

        h->api.live = live_new(h->journal, h->api.readers);

        if (h->api.live == NULL || !live_start(h->api.live)) {
            return helper_fail("cannot start a thread");
        }

        h->server.live = h->api.live;
    }

    h->before = before_new(h->options.fetches, h->api.readers, h->fetch,
                           h->server.before_fd);

    if (h->before == NULL || !before_start(h->before)) {
        return helper_fail("cannot start a thread");
    }

    h->server.before = h->before;

    h->inspector = inspector_new(h->options.inspections,
                                 h->options.inspect_seconds,
                                 h->options.inspect_memory,
                                 h->server.inspect_fd);

    if (h->inspector == NULL || !inspector_start(h->inspector)) {
        return helper_fail("cannot start a thread");
    }

    h->server.inspector = h->inspector;

    if (h->journal) {
        h->console = console_new(h->server.ask_fd);

        if (h->console == NULL) {
            return helper_fail("no memory");
        }

        h->server.console = h->console;
    }

    h->api.locks = h->locks;
    h->api.console = h->console;

    h->ask = ask_new(api_routes, &h->api, h->server.ask_fd,
                     h->options.question_threads, h->options.questions);

    if (h->ask) {
        ask_streams(h->ask, api_streams, h->options.streams);

        if (h->console) {
            helper_record(h);
        }
    }

    if (h->ask == NULL || !ask_start(h->ask)) {
        return helper_fail("cannot start a thread");
    }

    h->api.ask = h->ask;
    h->api.index = h->index;
    h->api.keys = h->keys;
    h->server.ask = h->ask;

    log_line(LOG_INFO, "sandbox-helper %s keeps %s, listening on %s",
             SB_VERSION, h->options.none ? "nothing (mode none)"
                                         : h->options.data, h->dirs.socket);
    helper_ready(&h->options);

    if (!server_run(&h->server)) {
        return 1;
    }

    return 0;
}


static void
helper_close(helper_t *h)
{
    /* they read what is closed below */
    ask_stop(h->ask);
    live_stop(h->api.live);
    before_stop(h->before);
    inspector_stop(h->inspector);

    if (h->apply && !apply_stop(h->apply)) {
        log_line(LOG_WARN, "some records are in the journal only; they will "
                 "be applied at the next start");
    }

    index_stop(h->index);
    ask_free(h->ask);
    console_free(h->console);
    live_free(h->api.live);
    readers_free(h->api.readers);
    ask_boxes_free(h->api.boxes);
    fetch_stop(h->fetch);
    apply_free(h->apply);
    retain_free(h->retain);
    full_free(h->full);
    errands_free(h->errands);
    journal_close(h->journal);
    inflight_free(h->inflight);
    locks_free(h->locks);
    store_free(h->store);
    heads_free(h->heads);
    keys_free(h->keys);
    index_free(h->index);
    dirs_close(&h->dirs);
}


int
main(int argc, char **argv)
{
    int       rc;
    char      why[8192];
    helper_t  h;

    memset(&h, 0, sizeof(h));

    switch (options_read(&h.options, argc, argv)) {

    case OPTIONS_EXIT_OK:
        return 0;

    case OPTIONS_EXIT_BAD:
        return 2;

    default:
        break;
    }

    (void) umask(027);
    (void) sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);  /* a lock per malloc */
    (void) curl_global_init(CURL_GLOBAL_DEFAULT);

    if (!log_open(h.options.log)) {
        (void) snprintf(why, sizeof(why), "cannot open the log \"%s\": %s",
                        h.options.log, strerror(errno));
        return helper_fail(why);
    }

    helper_limits();

    if (!helper_events(&h) || !helper_signals(&h)) {
        (void) snprintf(why, sizeof(why), "no descriptor for events or signals"
                        ": %s", strerror(errno));
        return helper_fail(why);
    }

    if (h.options.upstream) {
        h.fetch = fetch_new(h.options.upstream, h.options.api_key_file,
                            h.server.fetch_fd, why, sizeof(why));
        if (h.fetch == NULL) {
            return helper_fail(why);
        }
    }

    if (!dirs_open(&h.dirs, &h.options, why, sizeof(why))) {
        rc = helper_fail(why);

    } else {
        rc = helper_run(&h);
    }

    helper_close(&h);

    if (rc == 0) {
        log_line(LOG_INFO, "stopped");
    }

    return rc;
}
