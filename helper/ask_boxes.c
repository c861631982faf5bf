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

    ask_box_t        *listed;       /* by id */
    size_t            nlisted;
    ask_listed_e      how;
    uint64_t          listed_us;    /* when it was asked for */
    bool              asking;
    uint64_t          asked_us;     /* 0: never */
};


ask_boxes_t *
ask_boxes_new(void)
{
    ask_boxes_t  *b;

    b = calloc(1, sizeof(ask_boxes_t));

    if (b) {
        pthread_mutex_init(&b->lock, NULL);
    }

    return b;
}


static void
boxes_clear(ask_box_t *box)
{
    free(box->id);
    free(box->name);
    free(box->state);
    free(box->image);
    free(box->created);
    free(box->expires);
    free(box->last);
    memset(box, 0, sizeof(ask_box_t));
}


static void
boxes_clear_all(ask_box_t *boxes, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        boxes_clear(&boxes[i]);
    }

    free(boxes);
}


void
ask_boxes_free(ask_boxes_t *b)
{
    size_t  i;

    if (b == NULL) {
        return;
    }

    for (i = 0; i < b->n; i++) {
        boxes_clear(&b->files[i]->box);
        free(b->files[i]);
    }

    free(b->files);
    boxes_clear_all(b->listed, b->nlisted);
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

static char *
boxes_text(sb_str_t text)
{
    return text.len ? strndup(text.data, text.len) : NULL;
}


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

    text = history_step(stmt, err) == 1 ? boxes_text(history_column(stmt, 0))
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
        box->image = boxes_text(sb_str(image.data, image.len));
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
            boxes_clear(&b->files[i]->box);
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
        boxes_clear(&e->box);
        e->box = box;
        e->trace = t;
        e->read = true;
        e->trusted = trusted;

    } else {
        boxes_clear(&box);
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
        boxes_clear(&box);
    }

    return id;
}


/* --- upstream's list -------------------------------------------------------------- */

static int
boxes_by_id(const void *one, const void *two)
{
    const ask_box_t  *a = one, *b = two;

    return strcmp(a->id, b->id);
}


/* What upstream says of one sandbox. */
static bool
boxes_listed_one(ask_box_t *box, const sb_jv_t *v)
{
    sb_str_t        name, image;
    const sb_jv_t  *m;

    memset(box, 0, sizeof(ask_box_t));
    box->upstream = true;
    box->id = boxes_text(sb_jv_str(v, "id"));

    if (box->id == NULL) {
        return false;
    }

    m = sb_jv_get(v, "metadata");
    name = sb_jv_str(m, "agent_sandbox.name");

    if (name.len == 0) {
        name = sb_jv_str(m, "sandbox_name");
    }

    m = sb_jv_get(v, "image");
    image = m && m->kind == SB_JSON_STRING ? m->text : sb_jv_str(m, "uri");

    box->name = boxes_text(name);
    box->image = boxes_text(image);
    box->state = boxes_text(sb_jv_str(sb_jv_get(v, "status"), "state"));
    box->created = boxes_text(sb_jv_str(v, "createdAt"));
    box->expires = boxes_text(sb_jv_str(v, "expiresAt"));

    return true;
}


/* A page of the list; its sandboxes are added.  *more: there are others. */
static ask_listed_e
boxes_listed_page(sb_str_t text, ask_box_t **boxes, size_t *n, bool *more)
{
    ask_box_t        *grown;
    sb_jdoc_t        *doc;
    ask_listed_e      how;
    const sb_jv_t    *items, *v;
    sb_json_limits_t  limits;

    *more = false;
    limits.max_depth = 64;
    limits.max_bytes = FETCH_BODY_MAX;
    doc = sb_jdoc_parse(text, &limits, NULL);
    items = doc ? sb_jv_get(sb_jdoc_root(doc), "items") : NULL;

    if (items == NULL || items->kind != SB_JSON_OPEN_ARRAY) {
        sb_jdoc_free(doc);
        return ASK_LISTED_FAILED;
    }

    how = ASK_LISTED_OK;

    for (v = items->child; v; v = v->next) {

        if (*n == ASK_BOXES) {
            how = ASK_LISTED_PART;
            break;
        }

        grown = realloc(*boxes, (*n + 1) * sizeof(ask_box_t));

        if (grown == NULL) {
            how = ASK_LISTED_PART;
            break;
        }

        *boxes = grown;

        if (boxes_listed_one(&grown[*n], v)) {
            (*n)++;
        }
    }

    v = sb_jv_get(sb_jv_get(sb_jdoc_root(doc), "pagination"), "hasNextPage");
    *more = how == ASK_LISTED_OK && items->child && v
            && v->kind == SB_JSON_TRUE;

    sb_jdoc_free(doc);

    return how;
}


/* Asks for the list, page by page; a first page that is too large is asked for
 * again, smaller. */
static ask_listed_e
boxes_listed_ask(api_t *api, ask_box_t **boxes, size_t *n)
{
    int             len;
    bool            more;
    char            target[64];
    unsigned        page, size, asked;
    uint64_t        until;
    ask_listed_e    how;
    fetch_answer_t  a;

    until = sb_mono_us() + 2 * ASK_LISTED_MS * 1000u;
    size = 50;
    page = 1;

    for (asked = 0; asked < ASK_LISTED_PAGES; asked++) {
        len = snprintf(target, sizeof(target), "/v1/sandboxes?page=%u"
                       "&pageSize=%u", page, size);

        if (sb_mono_us() > until
            || fetch_wait(api->fetch, sb_str(target, (size_t) len),
                          ASK_LISTED_MS, &a) != SB_OK)
        {
            return *n ? ASK_LISTED_PART : ASK_LISTED_FAILED;
        }

        how = ASK_LISTED_FAILED;
        more = false;

        if (a.status == 200) {
            how = boxes_listed_page(sb_str(a.body.data, a.body.len), boxes, n,
                                    &more);
        }

        sb_buf_free(&a.body);

        if (how == ASK_LISTED_FAILED && a.status != 200 && a.status != 0) {
            return *n ? ASK_LISTED_PART : how;
        }

        if (how == ASK_LISTED_FAILED) {

            if (page != 1 || size <= 1) {
                return *n ? ASK_LISTED_PART : how;
            }

            size /= 7;
            size = size ? size : 1;
            continue;
        }

        if (!more) {
            return how;
        }

        page++;
    }

    return ASK_LISTED_PART;
}


void
ask_boxes_listed(api_t *api)
{
    bool           ask;
    size_t         n;
    uint64_t       now;
    ask_box_t     *boxes;
    ask_boxes_t   *b;
    ask_listed_e   how;

    b = api->boxes;
    now = sb_now_us();

    pthread_mutex_lock(&b->lock);
    ask = api->fetch && !b->asking
          && (b->asked_us == 0 || now < b->asked_us
              || now - b->asked_us >= ASK_LISTED_US);
    b->asking = b->asking || ask;
    pthread_mutex_unlock(&b->lock);

    if (!ask) {
        return;
    }

    boxes = NULL;
    n = 0;
    how = boxes_listed_ask(api, &boxes, &n);

    if (n) {
        qsort(boxes, n, sizeof(ask_box_t), boxes_by_id);
    }

    pthread_mutex_lock(&b->lock);

    b->asking = false;
    b->asked_us = sb_now_us();
    b->how = how;

    if (how != ASK_LISTED_FAILED) {
        b->listed_us = now;
        boxes_clear_all(b->listed, b->nlisted);
        b->listed = boxes;
        b->nlisted = n;
        boxes = NULL;
        n = 0;
    }

    pthread_mutex_unlock(&b->lock);

    boxes_clear_all(boxes, n);
}


static const ask_box_t *
boxes_listed_find(const ask_boxes_t *b, const char *id)
{
    ask_box_t  key;

    if (b->nlisted == 0) {
        return NULL;
    }

    key.id = (char *) id;

    return bsearch(&key, b->listed, b->nlisted, sizeof(ask_box_t), boxes_by_id);
}


bool
ask_box_exists(api_t *api, const char *dir, sb_str_t id)
{
    bool         found;
    char         path[1024], name[512];
    struct stat  st;

    if (store_dir_path(path, sizeof(path), readers_base(api->readers), dir)
        && stat(path, &st) == 0)
    {
        return true;
    }

    if (id.len >= sizeof(name)) {
        return false;
    }

    memcpy(name, id.data, id.len);
    name[id.len] = '\0';
    ask_boxes_listed(api);

    pthread_mutex_lock(&api->boxes->lock);
    found = boxes_listed_find(api->boxes, name) != NULL;
    pthread_mutex_unlock(&api->boxes->lock);

    return found;
}


/* --- both ------------------------------------------------------------------------- */

/* Was it made at about the time of upstream's list, or later?  Then that it is
 * not there tells nothing. */
static bool
boxes_younger(const ask_boxes_t *b, const ask_box_t *box)
{
    uint64_t  us;

    return box->created
           && sb_time_parse(&us, sb_str(box->created, strlen(box->created)))
              == SB_OK
           && us + ASK_LISTED_US > b->listed_us;
}


/* One with a history, and what upstream says of it today. */
static void
boxes_join(const ask_boxes_t *b, const boxes_entry_t *e, ask_box_t *box)
{
    static char       deleted[] = "Deleted";
    const ask_box_t  *u;

    *box = e->box;
    u = boxes_listed_find(b, box->id);

    if (u) {
        box->upstream = true;
        box->state = u->state ? u->state : box->state;
        box->name = u->name ? u->name : box->name;
        box->image = u->image ? u->image : box->image;
        box->expires = u->expires;
        box->created = u->created ? u->created : box->created;

    } else if ((b->how == ASK_LISTED_OK && !boxes_younger(b, box))
               || box->deleted
               || (box->state && strcmp(box->state, "gone") == 0))
    {
        box->state = deleted;
    }
}


ask_listed_e
ask_boxes_each(api_t *api, ask_box_pt each, void *data, bool *complete)
{
    size_t         i;
    bool          *has;
    ask_box_t      box;
    ask_boxes_t   *b;
    ask_listed_e   how;
    const ask_box_t  *u;

    b = api->boxes;

    pthread_mutex_lock(&b->lock);

    has = calloc(b->nlisted + 1, sizeof(bool));
    *complete = has && !b->full;

    for (i = 0; has && i < b->n; i++) {

        if (!b->files[i]->read) {
            *complete = false;
            continue;
        }

        if (!b->files[i]->box.history || b->files[i]->box.id == NULL) {
            continue;
        }

        boxes_join(b, b->files[i], &box);
        u = boxes_listed_find(b, box.id);

        if (u) {
            has[u - b->listed] = true;
        }

        each(data, &box);
    }

    for (i = 0; has && i < b->nlisted; i++) {
        if (!has[i]) {
            each(data, &b->listed[i]);
        }
    }

    free(has);
    how = b->how;
    pthread_mutex_unlock(&b->lock);

    return how;
}
