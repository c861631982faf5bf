#include "ask_boxes.h"

#include "history_record.h"
#include "id.h"
#include "path.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>


/* A file that was changed so shortly before it was read may have changed again
 * without a trace in its time. */
#define BOXES_TICK_NS  20000000


/* How a file lay there when it was read. */
typedef struct {
    dev_t            dev;
    ino_t            ino;
    off_t            size[2];       /* database, log */
    struct timespec  time[2];
} boxes_trace_t;

typedef struct {
    char           dir[STORE_DIR_LEN];
    ask_box_t      box;
    boxes_trace_t  trace;
    bool           read;            /* once at least */
    bool           trusted;         /* the trace is */
    uint64_t       round;           /* in which it was seen last */
} boxes_entry_t;

struct ask_boxes_s {
    pthread_mutex_t   lock;

    boxes_entry_t   **files;        /* by directory */
    size_t            n, cap;
    uint64_t          round;
    bool              full;         /* there are more than ASK_BOXES */

    ask_listed_t     *listed;
};


ask_boxes_t *
ask_boxes_new(void)
{
    ask_boxes_t  *b;

    b = calloc(1, sizeof(ask_boxes_t));

    if (b) {
        pthread_mutex_init(&b->lock, NULL);
        b->listed = ask_listed_new();

        if (b->listed == NULL) {
            ask_boxes_free(b);
            b = NULL;
        }
    }

    return b;
}


void
ask_boxes_free(ask_boxes_t *b)
{
    size_t  i;

    if (b == NULL) {
        return;
    }

    for (i = 0; i < b->n; i++) {
        ask_box_clear(&b->files[i]->box);
        free(b->files[i]);
    }

    free(b->files);
    ask_listed_free(b->listed);
    pthread_mutex_destroy(&b->lock);
    free(b);
}


void
ask_box_dir(char dir[STORE_DIR_LEN], sb_str_t id)
{
    if (sb_eq(id, sb_lit(SCHEMA_GATEWAY))) {
        (void) strcpy(dir, SCHEMA_GATEWAY);
        return;
    }

    sb_history_dir(dir, id);
}


/* --- history files ---------------------------------------------------------------- */

static bool
boxes_trace(const char *path, boxes_trace_t *t)
{
    char         wal[1100];
    struct stat  st;

    memset(t, 0, sizeof(boxes_trace_t));

    if (stat(path, &st) == -1 || !S_ISREG(st.st_mode)) {
        return false;
    }

    t->dev = st.st_dev;
    t->ino = st.st_ino;
    t->size[0] = st.st_size;
    t->time[0] = st.st_mtim;
    (void) snprintf(wal, sizeof(wal), "%s-wal", path);

    if (stat(wal, &st) == 0) {
        t->size[1] = st.st_size;
        t->time[1] = st.st_mtim;
    }

    return true;
}


static bool
boxes_fresh(const boxes_trace_t *t)
{
    int              i;
    int64_t          age;
    struct timespec  now;

    (void) clock_gettime(CLOCK_REALTIME, &now);

    for (i = 0; i < 2; i++) {
        age = (int64_t) (now.tv_sec - t->time[i].tv_sec) * 1000000000
              + (now.tv_nsec - t->time[i].tv_nsec);

        if (age < BOXES_TICK_NS) {
            return true;
        }
    }

    return false;
}


static char *
boxes_value(sqlite3 *db, const char *sql, history_error_t *err)
{
    char          *text;
    sqlite3_stmt  *stmt;

    stmt = history_prepare(db, sql, err);
    if (stmt == NULL) {
        return NULL;
    }

    text = history_step(stmt, err) == 1 ? ask_box_text(history_column(stmt, 0))
                                        : NULL;
    sqlite3_finalize(stmt);

    return text;
}


static bool
boxes_counts(sqlite3 *db, ask_box_t *box, history_error_t *err)
{
    int            rc;
    sqlite3_stmt  *stmt;

    /* out of idx_history_operation alone */
    stmt = history_prepare(db, "SELECT count(*),"
                           " sum(status IN ('failed', 'timeout')),"
                           " sum(status = 'started'),"
                           " sum(operation_type = 'gateway.gap'),"
                           " sum(operation_type = 'sandbox.delete'"
                           " AND status = 'succeeded')"
                           " FROM history_events INDEXED BY"
                           " idx_history_operation", err);
    if (stmt == NULL) {
        return false;
    }

    rc = history_step(stmt, err);

    if (rc == 1) {
        box->gaps = sqlite3_column_int64(stmt, 3);
        box->operations = sqlite3_column_int64(stmt, 0) - box->gaps;
        box->failures = sqlite3_column_int64(stmt, 1);
        box->running = sqlite3_column_int64(stmt, 2);
        box->deleted = sqlite3_column_int64(stmt, 4) != 0;
    }

    sqlite3_finalize(stmt);

    return rc == 1;
}


static void
boxes_image(sqlite3 *db, ask_box_t *box, history_error_t *err)
{
    char      *request;
    sb_buf_t   image;

    request = boxes_value(db, "SELECT request_json FROM history_events"
                          " WHERE operation_type = 'sandbox.create'"
                          " ORDER BY seq LIMIT 1", err);
    if (request == NULL) {
        return;
    }

    memset(&image, 0, sizeof(image));
    image.max = 4096;

    if (history_record_image(&image, sb_str(request, strlen(request)))) {
        box->image = ask_box_text(sb_str(image.data, image.len));
    }

    sb_buf_free(&image);
    free(request);
}


static bool
boxes_facts(sqlite3 *db, ask_box_t *box, history_error_t *err)
{
    if (!boxes_counts(db, box, err)) {
        return false;
    }

    box->id = boxes_value(db, "SELECT value FROM history_meta"
                              " WHERE key = 'sandbox_id'", err);
    box->name = boxes_value(db, "SELECT value FROM history_meta"
                                " WHERE key = 'sandbox_name'", err);
    box->created = boxes_value(db, "SELECT value FROM history_meta"
                                   " WHERE key = 'created_at'", err);
    box->last = boxes_value(db, "SELECT changed_at FROM history_changes"
                                " ORDER BY seq DESC LIMIT 1", err);

    if (history_has_table(db, "gateway_state")) {
        box->state = boxes_value(db, "SELECT value FROM gateway_state"
                                     " WHERE key = 'state'", err);
    }

    boxes_image(db, box, err);

    return true;
}


/* Reads what a file says; without the lock. */
static void
boxes_look(api_t *api, const char *dir, ask_box_t *box)
{
    bool              ok;
    reader_t         *reader;
    reader_rc_e       rc;
    history_error_t   err;

    memset(box, 0, sizeof(ask_box_t));
    box->history = true;

    rc = reader_take(api->readers, dir, &reader, &err);

    if (rc == READER_OK) {
        ok = boxes_facts(reader->db, box, &err);
        box->readable = ok;
        reader_give(api->readers, reader, !ok);

    } else {
        box->readable = rc == READER_MISSING;
        box->history = rc != READER_MISSING;
    }

    if (box->id == NULL) {
        box->id = strdup(dir);
    }
}


/* The place of a directory, or where it belongs. */
static size_t
boxes_place(const ask_boxes_t *b, const char *dir, bool *found)
{
    int     n;
    size_t  low, high, mid;

    low = 0;
    high = b->n;
    *found = false;

    while (low < high) {
        mid = low + (high - low) / 2;
        n = strcmp(b->files[mid]->dir, dir);

        if (n == 0) {
            *found = true;
            return mid;
        }

        if (n < 0) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    return low;
}


/* The entry of a directory, made if need be; NULL: no room. */
static boxes_entry_t *
boxes_entry(ask_boxes_t *b, const char *dir)
{
    bool             found;
    size_t           at, cap;
    boxes_entry_t  **files, *e;

    at = boxes_place(b, dir, &found);

    if (found) {
        return b->files[at];
    }

    if (b->n == b->cap) {
        cap = b->cap ? b->cap * 2 : 64;

        if (b->n >= ASK_BOXES) {
            b->full = true;
            return NULL;
        }

        files = realloc(b->files, cap * sizeof(boxes_entry_t *));
        if (files == NULL) {
            return NULL;
        }

        b->files = files;
        b->cap = cap;
    }

    e = calloc(1, sizeof(boxes_entry_t));
    if (e == NULL) {
        return NULL;
    }

    (void) snprintf(e->dir, sizeof(e->dir), "%s", dir);
    memmove(&b->files[at + 1], &b->files[at],
            (b->n - at) * sizeof(boxes_entry_t *));
    b->files[at] = e;
    b->n++;

    return e;
}


/* Entries whose directories are gone. */
static void
boxes_sweep(ask_boxes_t *b, uint64_t round)
{
    size_t  i, n;

    n = 0;

    for (i = 0; i < b->n; i++) {

        if (b->files[i]->round < round) {
            ask_box_clear(&b->files[i]->box);
            free(b->files[i]);
            continue;
        }

        b->files[n++] = b->files[i];
    }

    b->n = n;
}


/* One directory.  False: its file has changed and there is no time left. */
static bool
boxes_visit(api_t *api, const char *dir, uint64_t round, bool late)
{
    bool            known, trusted;
    char            path[1024];
    ask_box_t       box;
    ask_boxes_t    *b;
    boxes_entry_t  *e;
    boxes_trace_t   t;

    b = api->boxes;

    if (store_dir_path(path, sizeof(path), readers_base(api->readers), dir) == 0
        || !boxes_trace(path, &t))
    {
        return true;
    }

    pthread_mutex_lock(&b->lock);

    e = boxes_entry(b, dir);
    known = e == NULL
            || (e->trusted && memcmp(&e->trace, &t, sizeof(t)) == 0);

    if (e && e->round < round) {
        e->round = round;       /* others may be a round ahead */
    }

    pthread_mutex_unlock(&b->lock);

    if (known || late) {
        return known;
    }

    trusted = !boxes_fresh(&t);
    boxes_look(api, dir, &box);
    box.bytes = t.size[0] + t.size[1];

    pthread_mutex_lock(&b->lock);

    e = boxes_entry(b, dir);

    if (e) {
        ask_box_clear(&e->box);
        e->box = box;
        e->trace = t;
        e->read = true;
        e->trusted = trusted;

    } else {
        ask_box_clear(&box);
    }

    pthread_mutex_unlock(&b->lock);

    return true;
}


bool
ask_boxes_read(api_t *api)
{
    DIR            *d;
    bool            all;
    uint64_t        round, until;
    ask_boxes_t    *b;
    struct dirent  *e;

    b = api->boxes;

    d = opendir(readers_base(api->readers));
    if (d == NULL) {
        return false;
    }

    pthread_mutex_lock(&b->lock);
    round = ++b->round;
    b->full = false;
    pthread_mutex_unlock(&b->lock);

    all = true;
    until = sb_mono_us() + ASK_BOXES_MS * 1000u;

    while ((e = readdir(d)) != NULL) {

        if (e->d_name[0] == '.' || e->d_name[0] == '_'
            || strlen(e->d_name) >= STORE_DIR_LEN)
        {
            continue;
        }

        if (!boxes_visit(api, e->d_name, round, sb_mono_us() > until)) {
            all = false;
        }
    }

    (void) closedir(d);

    pthread_mutex_lock(&b->lock);
    boxes_sweep(b, round);
    pthread_mutex_unlock(&b->lock);

    return all;
}


const char *
ask_box_id(api_t *api, const char *dir, char *id, size_t size)
{
    bool             found;
    size_t           at;
    ask_box_t        box;
    ask_boxes_t     *b;

    if (strncmp(dir, "x-", 2) != 0) {
        return dir;
    }

    b = api->boxes;

    pthread_mutex_lock(&b->lock);
    at = boxes_place(b, dir, &found);
    found = found && b->files[at]->read && b->files[at]->box.id;

    if (found) {
        (void) snprintf(id, size, "%s", b->files[at]->box.id);
    }

    pthread_mutex_unlock(&b->lock);

    if (!found) {
        boxes_look(api, dir, &box);
        (void) snprintf(id, size, "%s", box.id ? box.id : dir);
        ask_box_clear(&box);
    }

    return id;
}


/* --- with upstream's list -------------------------------------------------------- */

bool
ask_boxes_listed(ask_question_t *q, ask_listed_wait_t *w)
{
    api_t  *api;

    api = q->context;

    return ask_listed(api->boxes->listed, api->fetch, q, w);
}


int
ask_box_exists(ask_question_t *q, ask_listed_wait_t *w, const char *dir,
    sb_str_t id)
{
    bool                      found;
    char                      path[1024], name[512];
    api_t                    *api;
    struct stat               st;
    const ask_listed_view_t  *view;

    api = q->context;

    if (store_dir_path(path, sizeof(path), readers_base(api->readers), dir)
        && stat(path, &st) == 0)
    {
        return 1;
    }

    if (id.len >= sizeof(name)) {
        return 0;
    }

    if (!ask_boxes_listed(q, w)) {
        return -1;
    }

    memcpy(name, id.data, id.len);
    name[id.len] = '\0';

    view = ask_listed_hold(api->boxes->listed);
    found = ask_listed_find(view, name) != NULL;
    ask_listed_release(api->boxes->listed);

    return found;
}


/* Was it made at about the time of upstream's list, or later?  Then that it is
 * not there tells nothing. */
static bool
boxes_younger(const ask_listed_view_t *view, const ask_box_t *box)
{
    uint64_t  us;

    return box->created
           && sb_time_parse(&us, sb_str(box->created, strlen(box->created)))
              == SB_OK
           && us + ASK_LISTED_US > view->asked_us;
}


/* One with a history, and what upstream says of it today. */
static void
boxes_join(const ask_listed_view_t *view, const boxes_entry_t *e,
    ask_box_t *box)
{
    static char       deleted[] = "Deleted";
    const ask_box_t  *u;

    *box = e->box;
    u = ask_listed_find(view, box->id);

    if (u) {
        box->upstream = true;
        box->state = u->state ? u->state : box->state;
        box->name = u->name ? u->name : box->name;
        box->image = u->image ? u->image : box->image;
        box->expires = u->expires;
        box->created = u->created ? u->created : box->created;

    } else if ((view->how == ASK_LISTED_OK && !boxes_younger(view, box))
               || box->deleted
               || (box->state && strcmp(box->state, "gone") == 0))
    {
        box->state = deleted;
    }
}


ask_listed_e
ask_boxes_each(api_t *api, ask_box_pt each, void *data, bool *complete)
{
    size_t                    i;
    bool                     *has;
    ask_box_t                 box;
    ask_boxes_t              *b;
    ask_listed_e              how;
    const ask_box_t          *u;
    const ask_listed_view_t  *view;

    b = api->boxes;

    pthread_mutex_lock(&b->lock);
    view = ask_listed_hold(b->listed);

    has = calloc(view->n + 1, sizeof(bool));
    *complete = has && !b->full;

    for (i = 0; has && i < b->n; i++) {

        if (!b->files[i]->read) {
            *complete = false;
            continue;
        }

        if (!b->files[i]->box.history || b->files[i]->box.id == NULL) {
            continue;
        }

        boxes_join(view, b->files[i], &box);
        u = ask_listed_find(view, box.id);

        if (u) {
            has[u - view->boxes] = true;
        }

        each(data, &box);
    }

    for (i = 0; has && i < view->n; i++) {
        if (!has[i]) {
            each(data, &view->boxes[i]);
        }
    }

    free(has);
    how = view->how;
    ask_listed_release(b->listed);
    pthread_mutex_unlock(&b->lock);

    return how;
}
