/* History files for the index: connections, and how far they were read. */

#include "index_int.h"

#include "history_query.h"
#include "id.h"
#include "log.h"

#include <stdio.h>
#include <stdlib.h>


#define INDEX_RETRY_US   5000000u

/* history_changes beyond a number; what stands at that number comes first, to
 * see whether the file is still the one that was read. */
static const char  read_news[] =
    "select seq, change_id, event_id from history_changes where seq >= ?1"
    " order by seq limit 512";


/* --- connections ---------------------------------------------------------------- */

void
index_box_close(index_t *ix, index_box_t *box)
{
    if (box->db == NULL) {
        return;
    }

    (void) sqlite3_finalize(box->news);
    (void) sqlite3_finalize(box->record);
    (void) sqlite3_finalize(box->files);
    (void) sqlite3_finalize(box->output);
    (void) sqlite3_close(box->db);
    box->news = box->record = box->files = box->output = NULL;
    box->db = NULL;

    if (box->prev) {
        box->prev->next = box->next;
    } else {
        ix->first = box->next;
    }

    if (box->next) {
        box->next->prev = box->prev;
    } else {
        ix->last = box->prev;
    }

    ix->open--;
}


static void
index_box_used(index_t *ix, index_box_t *box, bool linked)
{
    if (linked) {
        if (ix->last == box) {
            return;
        }

        if (box->prev) {
            box->prev->next = box->next;
        } else {
            ix->first = box->next;
        }

        box->next->prev = box->prev;
    }

    box->prev = ix->last;
    box->next = NULL;

    if (ix->last) {
        ix->last->next = box;
    } else {
        ix->first = box;
    }

    ix->last = box;
}


/* The number that changes with the tables of a file; -1: it cannot be read. */
static int64_t
index_box_schema(sqlite3 *db)
{
    int64_t        n;
    sqlite3_stmt  *st;

    n = -1;

    if (sqlite3_prepare_v2(db, "pragma schema_version", -1, &st, NULL)
        == SQLITE_OK)
    {
        n = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int64(st, 0) : -1;
        (void) sqlite3_finalize(st);
    }

    return n;
}


static bool
index_box_prepare(index_box_t *box, history_error_t *err)
{
    /* first of all: what changes meanwhile is seen the next time */
    box->schema = index_box_schema(box->db);

    if (box->schema == -1) {
        history_error_sqlite(err, box->db, sqlite3_errcode(box->db));
        return false;
    }

    if (box->id == 0 && !history_has_table(box->db, "history_events")) {
        box->empty = true;
        return false;
    }

    return index_read_prepare(box, err)
           && (box->news = history_prepare(box->db, read_news, err)) != NULL;
}


bool
index_box_open(index_t *ix, index_box_t *box)
{
    int              rc;
    char             path[1024];
    struct stat      st;
    history_error_t  err;

    box->empty = false;

    if (store_dir_path(path, sizeof(path), ix->history, box->dir) == 0
        || stat(path, &st) == -1)
    {
        /* gone: the sweep takes it out of the list */
        box->failing = false;
        box->retry_us = 0;
        index_box_close(ix, box);
        return false;
    }

    if (box->db && box->open_ino != st.st_ino) {
        index_box_close(ix, box);
    }

    if (box->db) {
        index_box_used(ix, box, true);
        return true;
    }

    if (ix->open >= INDEX_HANDLES) {
        index_box_close(ix, ix->first);
    }

    rc = sqlite3_open_v2(path, &box->db,
                         SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW, ix->vfs);

    if (box->db == NULL) {
        /* no memory: what is closed is in no list */
        box->failing = true;
        box->retry_us = sb_mono_us() + INDEX_RETRY_US;
        return false;
    }

    box->open_ino = st.st_ino;
    ix->open++;
    index_box_used(ix, box, false);

    if (rc == SQLITE_OK) {
        (void) sqlite3_busy_timeout(box->db, 1000);
    }

    if (rc != SQLITE_OK || !index_box_prepare(box, &err)) {

        if (box->empty) {
            index_box_close(ix, box);
            return false;
        }

        if (!box->failing) {
            log_line(LOG_WARN, "the history of %s cannot be read for the"
                     " index: %s", box->dir,
                     rc == SQLITE_OK ? err.message : sqlite3_errmsg(box->db));
        }

        box->failing = true;
        box->retry_us = sb_mono_us() + INDEX_RETRY_US;
        index_box_close(ix, box);
        return false;
    }

    box->failing = false;

    return true;
}


static void
index_box_failed(index_t *ix, index_box_t *box)
{
    log_minutely(LOG_WARN, "the history of %s cannot be read for the index: %s",
                 box->dir, sqlite3_errmsg(box->db));
    box->retry_us = sb_mono_us() + INDEX_RETRY_US;
    index_box_close(ix, box);
}


bool
index_box_begin(index_t *ix, index_box_t *box)
{
    unsigned  i;

    for (i = 0; i < 2; i++) {

        if (!index_box_open(ix, box)) {
            return false;
        }

        if (sqlite3_exec(box->db, "begin", NULL, NULL, NULL) != SQLITE_OK) {
            break;
        }

        if (index_box_schema(box->db) == box->schema) {
            return true;
        }

        /* tables were made in it: views that stand in for them would hide
         * these */
        index_box_close(ix, box);
    }

    if (box->db) {
        index_box_failed(ix, box);
    }

    return false;
}


void
index_box_end(index_box_t *box)
{
    (void) sqlite3_exec(box->db, "commit", NULL, NULL, NULL);
}


/* --- one file --------------------------------------------------------------------------- */

/* Notes how far a file was read, in the transaction of its records. */
static int
index_box_note(index_t *ix, index_box_t *box)
{
    sqlite3_stmt  *st;

    st = index_stmt(ix, INDEX_S_BOX_SET, "update boxes set ino = ?2,"
                    " change = ?3, change_id = ?4 where id = ?1");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    sqlite3_bind_int64(st, 1, box->id);
    sqlite3_bind_int64(st, 2, box->ino);
    sqlite3_bind_int64(st, 3, box->change);
    sqlite3_bind_text(st, 4, box->change_id, -1, SQLITE_STATIC);

    return index_run(st);
}


int
index_box_add(index_t *ix, index_box_t *box)
{
    int            rc;
    sqlite3_stmt  *st;

    if (box->id) {
        return SQLITE_OK;
    }

    st = index_stmt(ix, INDEX_S_BOX_ADD, "insert into boxes(dir, ino, change,"
                    " change_id) values(?1, 0, 0, '')");
    if (st == NULL) {
        return sqlite3_errcode(ix->db);
    }

    sqlite3_bind_text(st, 1, box->dir, -1, SQLITE_STATIC);
    rc = index_run(st);

    if (rc == SQLITE_OK) {
        box->id = sqlite3_last_insert_rowid(ix->db);
        box->change = 0;
        box->change_id[0] = '\0';
        box->ino = 0;
    }

    return rc;
}


/* The highest number that history_changes ever gave; -1: unknown. */
static int64_t
index_box_top(index_box_t *box)
{
    int64_t        top;
    sqlite3_stmt  *st;

    top = -1;

    if (sqlite3_prepare_v2(box->db, "select seq from sqlite_sequence where"
                           " name = 'history_changes'", -1, &st, NULL)
        == SQLITE_OK)
    {
        top = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
        (void) sqlite3_finalize(st);
    }

    return top;
}


/* One page of history_changes. */
typedef struct {
    size_t   n;
    int64_t  last;
    char     last_id[160];
    char     ids[INDEX_CHANGES][129];
    int64_t  before[INDEX_CHANGES];     /* the change in front of its first */
    char     before_id[INDEX_CHANGES][160];
    bool     again;                     /* the file is another one */
} index_page_t;


static bool
index_page(index_box_t *box, index_page_t *page)
{
    int       rc;
    size_t    i, rows;
    int64_t   seq;
    sb_str_t  id, event;

    page->n = 0;
    page->last = box->change;
    page->again = box->open_ino != (ino_t) box->ino;
    (void) strcpy(page->last_id, box->change_id);
    rows = 0;

    sqlite3_bind_int64(box->news, 1, box->change);

    while ((rc = sqlite3_step(box->news)) == SQLITE_ROW) {
        seq = sqlite3_column_int64(box->news, 0);
        id = history_column(box->news, 1);
        event = history_column(box->news, 2);
        rows++;

        if (seq == box->change) {
            page->again = page->again
                          || strncmp(box->change_id, id.data ? id.data : "",
                                     sizeof(box->change_id) - 1) != 0;
            continue;
        }

        /* begin and end of an operation mostly stand side by side */

        for (i = page->n > 8 ? page->n - 8 : 0; i < page->n; i++) {
            if (sb_eq(event, sb_str(page->ids[i], strlen(page->ids[i])))) {
                break;
            }
        }

        if (i == page->n && event.len && event.len < sizeof(page->ids[0])) {
            memcpy(page->ids[i], event.data, event.len);
            page->ids[i][event.len] = '\0';
            page->before[i] = page->last;
            (void) strcpy(page->before_id[i], page->last_id);
            page->n++;
        }

        page->last = seq;
        (void) snprintf(page->last_id, sizeof(page->last_id), "%.*s",
                        (int) id.len, id.data ? id.data : "");
    }

    (void) sqlite3_reset(box->news);

    if (rows == 0 && box->change > 0) {
        page->again = page->again || index_box_top(box) < box->change;
    }

    return rc == SQLITE_DONE;
}


index_read_e
index_read(index_t *ix, index_box_t *box, int *rc)
{
    bool           bad, full;
    size_t         i;
    index_page_t  *page;

    *rc = SQLITE_OK;

    if (sb_mono_us() < box->retry_us) {
        return INDEX_READ_FAILED;
    }

    page = malloc(sizeof(index_page_t));
    if (page == NULL) {
        return INDEX_READ_FAILED;
    }

    /* one moment of the file for all of a page */

    if (!index_box_begin(ix, box)) {
        free(page);
        return box->empty ? INDEX_READ_DONE : INDEX_READ_FAILED;
    }

    bad = !index_page(box, page);

    if (!bad && page->n == 0 && !page->again && page->last == box->change
        && box->id)
    {
        index_box_end(box);
        free(page);
        return INDEX_READ_DONE;
    }

    if (!bad) {
        *rc = index_begin(ix);
    }

    if (!bad && *rc == SQLITE_OK) {
        *rc = index_box_add(ix, box);
    }

    if (!bad && *rc == SQLITE_OK && page->again) {
        /* another file, or one that lost its end: all of it anew */
        *rc = index_box_drop(ix, box, false);
        box->ino = (int64_t) box->open_ino;
        bad = !index_page(box, page);
    }

    full = false;

    for (i = 0; i < page->n && !bad && *rc == SQLITE_OK; i++) {

        if (i && ix->text.len >= INDEX_BATCH_TEXT) {
            /* the rest of the page another time */
            full = true;
            page->last = page->before[i];
            (void) strcpy(page->last_id, page->before_id[i]);
            break;
        }

        *rc = index_read_one(ix, box, page->ids[i], &bad);
    }

    index_box_end(box);

    if (!bad && *rc == SQLITE_OK) {
        box->change = page->last;
        (void) strcpy(box->change_id, page->last_id);
        *rc = index_box_note(ix, box);
    }

    i = page->n;
    free(page);

    if (bad || *rc != SQLITE_OK) {
        if (bad) {
            index_box_failed(ix, box);
        }

        return INDEX_READ_FAILED;
    }

    return full || ix->ndocs + INDEX_CHANGES > INDEX_BATCH
           || ix->text.len >= INDEX_BATCH_TEXT ? INDEX_READ_FULL
           : i == 0 ? INDEX_READ_DONE : INDEX_READ_MORE;
}
