#include "errand.h"

#include "history_api_write.h"
#include "id.h"
#include "purge.h"
#include "stats.h"
#include "store_int.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>


#define ERRAND_ARGS  64

struct errands_s {
    int              fd;
    pthread_mutex_t  lock;
    errand_t        *first, **last;     /* to be done */
    unsigned         n;
    errand_t        *done;
};

/* What the body of one says. */
typedef struct {
    const char  *file;          /* DEVICE:INODE of the history file */
    const char  *dir;
    const char  *who;
    char        *argv[ERRAND_ARGS];
    int          argc;
    sb_str_t     content;       /* of the file that an argument names */
} errand_parts_t;

typedef struct {
    store_db_t  *db;
    retain_t    *retain;
} errand_purge_t;


errands_t *
errands_new(int fd)
{
    errands_t  *e;

    e = calloc(1, sizeof(errands_t));

    if (e) {
        e->fd = fd;
        e->last = &e->first;
        pthread_mutex_init(&e->lock, NULL);
    }

    return e;
}


void
errand_free(errand_t *e)
{
    sb_buf_free(&e->out);
    free(e);
}


void
errands_free(errands_t *e)
{
    errand_t  *one;

    if (e == NULL) {
        return;
    }

    while ((one = e->first) != NULL) {
        e->first = one->next;
        errand_free(one);
    }

    while ((one = e->done) != NULL) {
        e->done = one->next;
        errand_free(one);
    }

    pthread_mutex_destroy(&e->lock);
    free(e);
}


bool
errands_put(errands_t *e, uint64_t conn, uint64_t seq, sb_str_t body)
{
    bool       room;
    errand_t  *one;

    one = calloc(1, sizeof(errand_t) + body.len + 1);
    if (one == NULL) {
        return false;
    }

    one->conn = conn;
    one->seq = seq;
    one->len = body.len;
    one->out.max = SB_OUT_MAX;
    memcpy(one->body, body.data, body.len);

    pthread_mutex_lock(&e->lock);
    room = e->n < ERRAND_MAX;

    if (room) {
        *e->last = one;
        e->last = &one->next;
        e->n++;
    }

    pthread_mutex_unlock(&e->lock);

    if (!room) {
        stats_add(STATS_ERRANDS_REFUSED, 1);
        free(one);
    }

    return room;
}


errand_t *
errands_take(errands_t *e)
{
    errand_t  *done;

    pthread_mutex_lock(&e->lock);
    done = e->done;
    e->done = NULL;
    pthread_mutex_unlock(&e->lock);

    return done;
}


/* --- doing one ------------------------------------------------------------- */

static bool
errand_parts(errand_t *e, errand_parts_t *p)
{
    char       *pos, *last, *nul;
    unsigned    n;

    memset(p, 0, sizeof(errand_parts_t));
    pos = e->body;
    last = e->body + e->len;

    for (n = 0; pos < last; n++) {
        nul = memchr(pos, '\0', (size_t) (last - pos));

        if (nul == NULL) {
            return false;
        }

        if (n == 0) {
            p->file = pos;

        } else if (n == 1) {
            p->dir = pos;

        } else if (n == 2) {
            p->who = pos;

        } else if (nul == pos) {
            p->content = sb_str(nul + 1, (size_t) (last - nul - 1));
            return p->argc > 0;

        } else if (p->argc == ERRAND_ARGS) {
            return false;

        } else {
            p->argv[p->argc++] = pos;
        }

        pos = nul + 1;
    }

    return false;
}


static bool
errand_fail(errand_t *e, const char *type, const char *message)
{
    e->out.len = 0;
    (void) sb_buf_printf(&e->out, "%s\n%s", type, message);

    return false;
}


/* Rows that a cleanup chose. */
static bool
errand_purge(void *data, const int64_t *seqs, size_t n, int64_t *changes,
    history_error_t *err)
{
    int              rc;
    purge_rule_t     rule;
    purge_done_t     done;
    errand_purge_t  *p = data;

    memset(&rule, 0, sizeof(rule));
    memset(&done, 0, sizeof(done));
    rule.rule = "cleanup";
    rule.now_us = sb_now_us();

    rc = purge_events(p->db, seqs, n, &rule, &done);

    if (rc != SQLITE_OK) {
        history_error_sqlite(err, p->db->db, rc);
        return false;
    }

    *changes += (int64_t) done.changes;
    retain_purged(p->retain, p->db);

    return true;
}


/* A file that the subcommand reads: from memory, under a name of its own. */
static int
errand_content(sb_str_t content, char path[32])
{
    int      fd;
    size_t   at;
    ssize_t  n;

    fd = memfd_create("errand", MFD_CLOEXEC);

    for (at = 0; fd != -1 && at < content.len; at += (size_t) n) {
        n = write(fd, content.data + at, content.len - at);

        if (n <= 0) {
            close(fd);
            fd = -1;
        }
    }

    (void) snprintf(path, 32, "/proc/self/fd/%d", fd);

    return fd;
}


static bool
errand_api(errand_t *e, errand_parts_t *p, store_db_t *db, retain_t *retain,
    const char *path)
{
    int                       fd;
    bool                      ok;
    char                      name[32];
    size_t                    i;
    errand_purge_t            purge;
    history_call_t            call;
    history_value_t           values[HISTORY_API_ARGS];
    const history_command_t  *command;

    history_parse_t  parse = { .values = values };

    command = history_api_find(p->argv[0]);

    if (command == NULL || !command->writes) {
        return errand_fail(e, "HelperError", "this helper does not know that "
                           "subcommand: the programs are of different "
                           "versions");
    }

    parse.args = command->args;

    if (!history_args_parse(&parse, p->argc - 1, p->argv + 1) || parse.help) {
        return errand_fail(e, "HelperError", parse.why);
    }

    fd = -1;

    for (i = 0; command->args[i].name; i++) {
        if (values[i].n && strstr(command->args[i].name, "-file")) {
            fd = errand_content(p->content, name);
            values[i].text[0] = name;

            if (fd == -1) {
                return errand_fail(e, "MemoryError", "no memory for the file");
            }
        }
    }

    memset(&call, 0, sizeof(call));
    memset(&purge, 0, sizeof(purge));
    purge.db = db;
    purge.retain = retain;
    call.values = values;
    call.out.buf.max = SB_OUT_MAX;
    call.held = true;
    call.purge = errand_purge;
    call.purge_data = &purge;
    call.db = history_open_write(path, &call.err);

    ok = call.db && command->run(&call);

    if (call.db && !sqlite3_get_autocommit(call.db)) {
        (void) sqlite3_exec(call.db, "rollback", NULL, NULL, NULL);
    }

    if (ok && call.out.rc != SB_OK) {
        ok = false;
        history_error(&call.err, "MemoryError", "the answer is too large");
    }

    (void) sqlite3_close(call.db);

    if (fd != -1) {
        close(fd);
    }

    if (ok) {
        e->out = call.out.buf;

    } else {
        sb_buf_free(&call.out.buf);
        (void) errand_fail(e, call.err.type, call.err.message);
    }

    (void) purge_end(db, sb_now_us());
    db->nfolds = 0;
    db->limits.read_us = 0;

    return ok;
}


static bool
errand_hold(errand_t *e, errand_parts_t *p, store_db_t *db, retain_t *retain,
    bool hold)
{
    int   rc;
    bool  changed;

    rc = retain_hold(retain, db, hold, p->who, &changed);

    if (rc != SQLITE_OK) {
        return errand_fail(e, "OperationalError", sqlite3_errstr(rc));
    }

    /* what the configuration holds is not free yet */
    hold = hold || retain_named(retain, db->sandbox);

    return sb_buf_printf(&e->out, "{\"changed\":%s,\"held\":%s}",
                         changed ? "true" : "false", hold ? "true" : "false")
           == SB_OK;
}


static bool
errand_do(errand_t *e, store_t *store, retain_t *retain)
{
    int             rc;
    bool            ok;
    char            path[STORE_PATH_MAX], file[64];
    store_db_t     *db;
    struct stat     st;
    errand_parts_t  p;

    if (!errand_parts(e, &p)
        || store_dir_path(path, sizeof(path), store_base(store), p.dir) == 0)
    {
        return errand_fail(e, "HelperError", "that is no errand");
    }

    db = store_get(store, p.dir, false, &rc);

    if (db == NULL || db->fresh || stat(path, &st) == -1) {
        return errand_fail(e, "OperationalError", "the helper has no such "
                           "history file");
    }

    (void) snprintf(file, sizeof(file), "%llu:%llu",
                    (unsigned long long) st.st_dev,
                    (unsigned long long) st.st_ino);

    if (strcmp(file, p.file) != 0) {
        return errand_fail(e, "HelperError", "the helper holds another file "
                           "of that name");
    }

    db->pins++;

    if (strcmp(p.argv[0], "hold") == 0 || strcmp(p.argv[0], "release") == 0) {
        ok = errand_hold(e, &p, db, retain, p.argv[0][0] == 'h');

    } else if (strcmp(p.argv[0], "cleanup") == 0
               && retain_named(retain, db->sandbox))
    {
        ok = errand_fail(e, "HelperError", "this file is on legal hold by the "
                         "configuration of the gateway");

    } else {
        ok = errand_api(e, &p, db, retain, path);

        if (ok) {
            retain_again(retain, db);
        }
    }

    db->pins--;
    db->dirty = true;

    if (store->news) {
        store->news(store->news_data, p.dir);
    }

    return ok;
}


void
errands_run(errands_t *e, store_t *store, retain_t *retain)
{
    uint64_t   wake;
    errand_t  *one;

    for ( ;; ) {
        pthread_mutex_lock(&e->lock);
        one = e->first;

        if (one) {
            e->first = one->next;
            e->n--;

            if (e->first == NULL) {
                e->last = &e->first;
            }
        }

        pthread_mutex_unlock(&e->lock);

        if (one == NULL) {
            return;
        }

        one->ok = errand_do(one, store, retain);

        pthread_mutex_lock(&e->lock);
        one->next = e->done;
        e->done = one;
        pthread_mutex_unlock(&e->lock);

        wake = 1;

        if (write(e->fd, &wake, sizeof(wake)) == -1) {
            /* it is written already */
        }
    }
}
