#include "history_list.h"
#include "history_text.h"
#include "id.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>


#define HISTORY_TAIL_LINES    10
#define HISTORY_TAIL_POLL_MS  200

/* Changes taken from one file in one turn. */
#define HISTORY_TAIL_PAGE     1000

/* Ids remembered that were shown as started, so that a record which moves from
 * _gateway to its sandbox is not shown as started again. */
#define HISTORY_TAIL_RECENT   512


enum {
    TAIL_SANDBOX = HF_COUNT, TAIL_LINES, TAIL_FOLLOW, TAIL_JSON, TAIL_DATA,
    TAIL_HISTORY,
    TAIL_COUNT
};

static const history_arg_t  history_tail_args[] = {
    HISTORY_FILTER_ARGS,
    { "--sandbox", 0, HISTORY_ARG_TEXT, false, false, NULL },
    { "--lines", 'n', HISTORY_ARG_INT, false, false, NULL },
    { "--follow", 'f', HISTORY_ARG_FLAG, false, false, NULL },
    HISTORY_COMMON_ARGS
};

static const char  history_tail_help[] =
    "usage: sandbox-history tail [-f] [-n N] [options] [SANDBOX]\n"
    "\n"
    "The last operations; with -f also those to come, when they begin and\n"
    "when they end (one line when both came at once).\n"
    "\n"
    "  -f, --follow           go on until interrupted\n"
    "  -n, --lines N          begin with the last N (default 10)\n"
    HISTORY_FILTER_HELP
    "  --sandbox SANDBOX      the same as the argument\n"
    "  --json                 one JSON object a line\n";


typedef struct {
    int64_t         us;
    int64_t         change;
    int64_t         row;
    history_box_t  *box;
    bool            completed;
    char            id[SB_UUID_LEN + 1];
} history_news_t;

typedef struct {
    history_place_t    place;
    history_box_t     *only;
    history_filter_t   filter;
    history_printer_t  printer;
    history_list_t     first;           /* what was printed at first */
    history_news_t    *news;
    size_t             n;
    size_t             cap;
    char               recent[HISTORY_TAIL_RECENT][SB_UUID_LEN + 1];
    unsigned           next;
    struct stat        root;
} history_tail_t;


static volatile sig_atomic_t  history_tail_end;


static void
history_tail_signal(int signo)
{
    (void) signo;
    history_tail_end = 1;
}


static bool
history_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size
           && a->st_mtim.tv_sec == b->st_mtim.tv_sec
           && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}


/* May the file have changed since it was last looked at?  Times have grains:
 * what changed in the last second may change again without showing it. */
static bool
history_tail_touched(history_tail_t *tail, history_box_t *box)
{
    char         path[PATH_MAX + 8];
    bool         touched;
    time_t       now;
    struct stat  main, wal;

    history_place_path(&tail->place, box, path);

    if (stat(path, &main) == -1) {
        history_place_drop(&tail->place, box);
        memset(&box->main, 0, sizeof(box->main));
        return false;
    }

    strcat(path, "-wal");

    if (stat(path, &wal) == -1) {
        memset(&wal, 0, sizeof(wal));
    }

    if (box->main.st_ino && box->main.st_ino != main.st_ino) {
        history_place_drop(&tail->place, box);
        box->broken = false;
        box->change = 0;
    }

    now = time(NULL);

    touched = !history_same_file(&main, &box->main)
              || !history_same_file(&wal, &box->wal)
              || now - main.st_mtim.tv_sec < 2 || now - wal.st_mtim.tv_sec < 2;

    box->main = main;
    box->wal = wal;

    return touched;
}


/* From where the changes are news. */
static bool
history_tail_mark(history_tail_t *tail, history_box_t *box)
{
    int              rc;
    sqlite3         *db;
    sqlite3_stmt    *stmt;
    history_error_t  err;

    (void) history_tail_touched(tail, box);
    memset(&box->wal, 0xff, sizeof(box->wal));

    db = history_place_db(&tail->place, box);
    if (db == NULL) {
        return true;
    }

    stmt = history_prepare(db, "SELECT coalesce(max(seq), 0)"
                               " FROM history_changes", &err);
    rc = -1;

    if (stmt != NULL) {
        rc = history_step(stmt, &err);

        if (rc == 1) {
            box->change = sqlite3_column_int64(stmt, 0);
        }
    }

    if (rc == -1) {
        history_place_broken(&tail->place, box, &err);
    }

    sqlite3_finalize(stmt);

    return true;
}


static history_news_t *
history_tail_add(history_tail_t *tail)
{
    size_t           cap;
    history_news_t  *news;

    if (tail->n == tail->cap) {
        cap = tail->cap ? tail->cap * 2 : 256;

        news = realloc(tail->news, cap * sizeof(history_news_t));
        if (news == NULL) {
            history_say("out of memory");
            return NULL;
        }

        tail->news = news;
        tail->cap = cap;
    }

    return &tail->news[tail->n++];
}


/* Appends the news of a file; false to end.  *more: there are further ones. */
static bool
history_tail_read(history_tail_t *tail, history_box_t *box, bool *more)
{
    int              rc;
    unsigned         taken;
    sqlite3         *db;
    uint64_t         us;
    sqlite3_stmt    *stmt;
    history_news_t  *news;
    history_error_t  err;

    db = history_place_db(&tail->place, box);
    if (db == NULL) {
        return true;
    }

    stmt = history_prepare(db,
               "SELECT c.seq, c.change_type, c.changed_at, e.event_id, e.seq"
               " FROM history_changes c"
               " LEFT JOIN history_events e ON e.event_id = c.event_id"
               " WHERE c.seq > ?1 ORDER BY c.seq LIMIT ?2", &err);
    rc = -1;
    taken = 0;

    if (stmt != NULL) {
        sqlite3_bind_int64(stmt, 1, box->change);
        sqlite3_bind_int(stmt, 2, HISTORY_TAIL_PAGE);

        while ((rc = history_step(stmt, &err)) == 1) {
            sb_str_t  type = history_column(stmt, 1);

            taken++;
            box->change = sqlite3_column_int64(stmt, 0);

            if (sqlite3_column_type(stmt, 4) == SQLITE_NULL
                || (!sb_eq(type, sb_lit("created"))
                    && !sb_eq(type, sb_lit("completed"))))
            {
                continue;
            }

            news = history_tail_add(tail);
            if (news == NULL) {
                sqlite3_finalize(stmt);
                return false;
            }

            us = 0;
            (void) sb_time_parse(&us, history_column(stmt, 2));

            news->us = (int64_t) us;
            news->change = box->change;
            news->row = sqlite3_column_int64(stmt, 4);
            news->box = box;
            news->completed = sb_eq(type, sb_lit("completed"));
            snprintf(news->id, sizeof(news->id), "%s",
                     (const char *) sqlite3_column_text(stmt, 3));
        }
    }

    if (rc == -1) {
        history_place_broken(&tail->place, box, &err);
    }

    sqlite3_finalize(stmt);

    if (taken == HISTORY_TAIL_PAGE) {
        *more = true;
    }

    return true;
}


static int
history_news_compare(const void *one, const void *two)
{
    const history_news_t  *a = one, *b = two;

    if (a->box == b->box) {
        return (a->change > b->change) - (a->change < b->change);
    }

    return (a->us > b->us) - (a->us < b->us);
}


static bool
history_tail_is_recent(const history_tail_t *tail, const char *id)
{
    for (unsigned i = 0; i < HISTORY_TAIL_RECENT; i++) {
        if (strcmp(tail->recent[i], id) == 0) {
            return true;
        }
    }

    return false;
}


/* Is the news already on the screen, from the list at first? */
static bool
history_tail_is_known(const history_tail_t *tail, const history_news_t *news)
{
    for (size_t i = 0; i < tail->first.n; i++) {
        const history_key_t  *key = &tail->first.keys[i];

        if (key->row == news->row && tail->first.boxes[key->box] == news->box) {
            return key->done || !news->completed;
        }
    }

    return false;
}


/* Does its end follow in the same batch? */
static bool
history_tail_ends(const history_tail_t *tail, size_t i)
{
    const history_news_t  *news = &tail->news[i];

    for (size_t k = i + 1; k < tail->n; k++) {
        if (tail->news[k].completed && tail->news[k].box == news->box
            && tail->news[k].row == news->row)
        {
            return true;
        }
    }

    return false;
}


static bool
history_tail_passes(history_tail_t *tail, const history_news_t *news)
{
    int              rc;
    sqlite3         *db;
    sqlite3_stmt    *stmt;
    history_error_t  err;

    db = history_place_db(&tail->place, news->box);
    if (db == NULL) {
        return false;
    }

    stmt = history_query_passes(db, &tail->filter, &err);
    rc = -1;

    if (stmt != NULL) {
        sqlite3_bind_int64(stmt, 1, news->row);
        rc = history_step(stmt, &err);
    }

    if (rc == -1) {
        history_place_broken(&tail->place, news->box, &err);
    }

    sqlite3_finalize(stmt);

    return rc == 1;
}


static bool
history_tail_print(history_tail_t *tail)
{
    bool             ok;
    history_news_t  *news;

    if (tail->n) {
        qsort(tail->news, tail->n, sizeof(history_news_t),
              history_news_compare);
    }

    ok = true;

    for (size_t i = 0; i < tail->n && ok; i++) {
        news = &tail->news[i];

        if (history_tail_is_known(tail, news)) {
            continue;
        }

        if (!news->completed) {
            if (history_tail_ends(tail, i)
                || history_tail_is_recent(tail, news->id))
            {
                continue;
            }

            strcpy(tail->recent[tail->next], news->id);
            tail->next = (tail->next + 1) % HISTORY_TAIL_RECENT;
        }

        if (history_tail_passes(tail, news)) {
            ok = history_list_print_one(&tail->place, news->box, news->row,
                                        &tail->printer);
        }
    }

    tail->n = 0;

    /* What was on the screen when we began has been passed. */

    tail->first.n = 0;

    return fflush(stdout) == 0 && ok;
}


/* Waits for the next turn; false when the reader of stdout is gone. */
static bool
history_tail_wait(void)
{
    struct pollfd  fd = { .fd = STDOUT_FILENO };

    return poll(&fd, 1, HISTORY_TAIL_POLL_MS) <= 0
           || (fd.revents & (POLLERR | POLLNVAL)) == 0;
}


static bool
history_tail_follow(history_tail_t *tail)
{
    bool             more;
    unsigned         turn;
    struct stat      root;
    history_box_t   *box;

    for (turn = 0; !history_tail_end; turn++) {
        if (stat(tail->place.root, &root) == -1
            || !history_same_file(&root, &tail->root) || turn % 10 == 0)
        {
            tail->root = root;

            if (!history_place_scan(&tail->place)) {
                return false;
            }
        }

        more = false;

        for (size_t i = 0; i < tail->place.n; i++) {
            box = tail->place.boxes[i];

            if ((tail->only == NULL || box == tail->only)
                && history_tail_touched(tail, box)
                && !history_tail_read(tail, box, &more))
            {
                return false;
            }
        }

        if (!history_tail_print(tail)) {
            return true;        /* nobody reads any more */
        }

        if (!more && !history_tail_wait()) {
            return true;
        }
    }

    return true;
}


static bool
history_tail(history_tail_t *tail, const history_value_t *values,
    const char *sandbox)
{
    bool              follow;
    int64_t           lines;
    struct sigaction  act;

    follow = values[TAIL_FOLLOW].n != 0;
    lines = values[TAIL_LINES].n ? values[TAIL_LINES].number
                                 : HISTORY_TAIL_LINES;

    if (sandbox != NULL) {
        tail->only = history_place_find(&tail->place, sandbox);

        if (tail->only == NULL) {
            return false;
        }
    }

    if (follow) {
        memset(&act, 0, sizeof(act));
        act.sa_handler = history_tail_signal;
        sigaction(SIGINT, &act, NULL);
        sigaction(SIGTERM, &act, NULL);
        sigaction(SIGHUP, &act, NULL);
        act.sa_handler = SIG_IGN;
        sigaction(SIGPIPE, &act, NULL);

        for (size_t i = 0; i < tail->place.n; i++) {
            history_tail_mark(tail, tail->place.boxes[i]);
        }
    }

    if (!history_list_collect(&tail->first, &tail->place, tail->only,
                              &tail->filter, lines)
        || !history_list_print(&tail->first, &tail->printer, false))
    {
        return false;
    }

    if (fflush(stdout) != 0) {
        return false;
    }

    return follow ? history_tail_follow(tail) : !tail->place.incomplete;
}


int
history_tail_run(const history_where_t *given, int argc, char **argv)
{
    int                rc;
    bool               ok;
    const char        *sandbox;
    history_tail_t    *tail;
    history_value_t    values[TAIL_COUNT];
    history_where_t    where;
    history_parse_t    parse = {
        .args = history_tail_args, .values = values, .rest = &sandbox, .max = 1
    };

    sandbox = NULL;

    rc = history_options(&parse, "tail", history_tail_help, given, &where,
                         argc, argv);
    if (rc != -1) {
        return rc;
    }

    if (values[TAIL_SANDBOX].n) {
        sandbox = values[TAIL_SANDBOX].text[0];
    }

    if (values[TAIL_LINES].n && values[TAIL_LINES].number < 0) {
        history_say("tail: --lines must not be negative");
        return 2;
    }

    tail = calloc(1, sizeof(history_tail_t));
    if (tail == NULL) {
        history_say("out of memory");
        return 1;
    }

    if (!history_filter_read(&tail->filter, values)) {
        free(tail);
        return 2;
    }

    ok = false;

    if (history_place_open(&tail->place, &where)) {
        if (history_printer_init(&tail->printer, values[TAIL_JSON].n != 0)) {
            ok = history_tail(tail, values, sandbox);
            history_printer_free(&tail->printer);
        }

        history_list_free(&tail->first);
        history_place_close(&tail->place);
    }

    free(tail->news);
    free(tail);

    return ok ? 0 : 1;
}
