/* GET operations/{op}: one record whole, and what is linked with it. */

#include "ask_answer.h"
#include "ask_args.h"
#include "ask_boxes.h"
#include "ask_find.h"
#include "ask_records.h"

#include "history_record.h"

#include <stdio.h>
#include <stdlib.h>


#define ASK_LINKS  50           /* records told of each kind */


/* What links of a record start from. */
typedef struct {
    char      id[129];
    char      correlation[513];
    char      parent[129];
    sb_buf_t  says;             /* its type and what it did */
} ask_links_t;


static void
ask_link_text(char *dst, size_t size, sb_str_t text)
{
    /* one that is longer is no link: an empty text finds nothing */
    (void) snprintf(dst, size, "%.*s", text.len < size ? (int) text.len : 0,
                    text.data ? text.data : "");
}


static void
ask_link_says(sb_buf_t *b, history_row_t *row)
{
    b->len = 0;
    (void) sb_buf_add_str(b, history_column(row, HR_TYPE));
    (void) sb_buf_add_c(b, '\n');
    (void) history_record_summary(b, row);
}


/* Type and summary of a record that the index has found. */
static bool
ask_link_read(api_t *api, const index_hit_t *hit, sb_buf_t *says)
{
    int               rc;
    int64_t           row;
    reader_t         *reader;
    sqlite3_stmt     *stmt;
    history_error_t   err;

    row = hit->row;

    if (reader_take_of(api->readers, hit->dir, hit->id, &row, &reader, &err)
        != READER_OK)
    {
        return false;
    }

    rc = -1;
    stmt = reader_record(reader, &err);

    if (stmt) {
        sqlite3_bind_int64(stmt, 1, row);
        rc = history_step(stmt, &err);

        if (rc == 1) {
            ask_link_says(says, stmt);
        }

        sqlite3_reset(stmt);
    }

    reader_give(api->readers, reader, rc == -1);

    return rc == 1;
}


/* The ids of those that name this one as their parent, in its own file. */
static bool
ask_links_children(api_t *api, const char *dir, const ask_links_t *l,
    index_hit_t *hits, size_t *n, bool *more)
{
    int               rc;
    bool              ok;
    sb_str_t          id;
    reader_t         *reader;
    sqlite3_stmt     *stmt;
    history_error_t   err;

    *n = 0;
    *more = false;

    if (reader_take(api->readers, dir, &reader, &err) != READER_OK) {
        return false;
    }

    stmt = history_prepare(reader->db, "SELECT w.event_id, e.seq"
                           " FROM gateway_wire w JOIN history_events e"
                           " ON e.event_id = w.event_id WHERE w.parent = ?1"
                           " LIMIT 51", &err);
    ok = stmt != NULL;

    if (ok) {
        sqlite3_bind_text(stmt, 1, l->id, -1, SQLITE_STATIC);

        while ((rc = history_step(stmt, &err)) == 1) {

            if (*n == ASK_LINKS) {
                *more = true;
                break;
            }

            id = history_column(stmt, 0);
            memset(&hits[*n], 0, sizeof(index_hit_t));
            ask_link_text(hits[*n].id, sizeof(hits[*n].id), id);
            (void) snprintf(hits[*n].dir, sizeof(hits[*n].dir), "%s", dir);
            hits[*n].row = sqlite3_column_int64(stmt, 1);
            (*n)++;
        }

        ok = rc != -1;
        sqlite3_finalize(stmt);
    }

    reader_give(api->readers, reader, !ok);

    return ok;
}


/* A list of linked records, under a name. */
static bool
ask_links_list(api_t *api, sb_out_t *out, const char *name,
    const index_hit_t *hits, size_t n)
{
    ask_records_t  r;

    sb_out_key(out, name);
    sb_out_text(out, "[");
    ask_records(api, out, hits, n, ASK_ANSWER_BYTES, &r);
    sb_out_text(out, "]");

    return r.taken == n && !r.unreadable;
}


/* The same correlation, newest first, but for the record itself. */
static bool
ask_links_correlation(api_t *api, sb_out_t *out, const ask_links_t *l)
{
    bool              all;
    size_t            i, n;
    index_rc_e        rc;
    index_answer_t    a;
    index_question_t  q;
    history_filter_t  f;

    history_filter_init(&f);
    f.correlation = l->correlation;
    memset(&q, 0, sizeof(q));
    q.filter = &f;
    q.limit = ASK_LINKS + 1;

    memset(&a, 0, sizeof(a));
    rc = l->correlation[0] ? index_query(api->index, &q, &a) : INDEX_OK;
    n = 0;

    for (i = 0; i < a.n; i++) {
        if (strcmp(a.hits[i].id, l->id) != 0) {
            a.hits[n++] = a.hits[i];
        }
    }

    all = rc == INDEX_OK && !a.more && n <= ASK_LINKS;
    n = n < ASK_LINKS ? n : ASK_LINKS;
    all = ask_links_list(api, out, "correlation", a.hits, n) && all;
    index_answer_free(&a);

    return all;
}


/* Another record that is of the same type and did the same. */
static bool
ask_links_same(api_t *api, const ask_links_t *l, const index_hit_t *hit,
    sb_buf_t *says)
{
    return ask_link_read(api, hit, says)
           && sb_eq(sb_str(says->data, says->len),
                    sb_str(l->says.data, l->says.len));
}


static void
ask_links(api_t *api, sb_out_t *out, const char *dir, const ask_links_t *l)
{
    bool          all, more, rerun, first;
    size_t        i, n;
    sb_buf_t      says;
    index_hit_t   parent, *children;

    memset(&says, 0, sizeof(says));
    says.max = SB_OUT_MAX;

    sb_out_key(out, "links");
    sb_out_text(out, "{");

    all = ask_links_correlation(api, out, l);
    rerun = false;
    n = 0;

    if (l->parent[0] && strcmp(l->parent, l->id) != 0) {
        n = index_find(api->index, l->parent, &parent) == 1;
        rerun = n && ask_links_same(api, l, &parent, &says);
    }

    all = ask_links_list(api, out, "parent", &parent, n) && all;

    children = calloc(ASK_LINKS, sizeof(index_hit_t));
    more = false;
    i = 0;

    if (children == NULL) {
        out->rc = SB_NOMEM;

    } else if (!ask_links_children(api, dir, l, children, &i, &more)) {
        all = false;
    }

    all = ask_links_list(api, out, "children", children, i) && all && !more;

    /* A parent of the same type that did the same was run again. */

    sb_out_key(out, "rerun_of");

    if (rerun) {
        sb_out_str(out, sb_str(l->parent, strlen(l->parent)));

    } else {
        sb_out_text(out, "null");
    }

    sb_out_key(out, "reruns");
    sb_out_text(out, "[");
    first = true;

    for (n = 0; n < i; n++) {
        if (ask_links_same(api, l, &children[n], &says)) {
            sb_out_text(out, first ? "" : ",");
            sb_out_str(out, sb_str(children[n].id,
                                   strlen(children[n].id)));
            first = false;
        }
    }

    sb_out_text(out, "]");
    sb_out_key(out, "complete");
    sb_out_text(out, all ? "true}" : "false}");

    free(children);
    sb_buf_free(&says);
}


/* The record itself, from its file, which may be another one by now; 1 it is
 * there, 0 not, -1 with err. */
static int
ask_operation_read(api_t *api, sb_out_t *out, char dir[STORE_DIR_LEN],
    ask_links_t *l, history_error_t *err)
{
    int            rc;
    reader_t      *reader;
    reader_rc_e    found;
    sqlite3_stmt  *stmt;

    found = reader_take_of(api->readers, dir, l->id, NULL, &reader, err);

    if (found != READER_OK) {
        return found == READER_MISSING ? 0 : -1;
    }

    (void) strcpy(dir, reader->dir);
    rc = -1;
    stmt = history_query_record(reader->db, true, err);

    if (stmt) {
        sqlite3_bind_text(stmt, 1, l->id, -1, SQLITE_STATIC);
        rc = history_step(stmt, err);

        if (rc == 1) {
            ask_link_text(l->correlation, sizeof(l->correlation),
                          history_column(stmt, HR_CORRELATION));
            ask_link_text(l->parent, sizeof(l->parent),
                          history_column(stmt, HR_PARENT));
            ask_link_says(&l->says, stmt);

            if (!history_record_whole(out, reader->db, stmt, err)) {
                rc = -1;
            }
        }

        sqlite3_finalize(stmt);
    }

    reader_give(api->readers, reader, rc == -1);

    return rc;
}


static ask_rc_e
ask_whole_record(ask_question_t *q, bool of_one)
{
    int               rc;
    api_t            *api;
    ask_find_t       *s;
    ask_links_t       l;
    sb_out_t          out = { .buf.max = SB_OUT_MAX };
    history_error_t   err;

    api = q->context;
    s = ask_op_find(q, of_one, NULL);

    if (s == NULL || s->answered) {
        return s ? s->rc : ASK_FAILED;
    }

    memset(&l, 0, sizeof(l));
    l.says.max = SB_OUT_MAX;
    (void) strcpy(l.id, s->id);

    sb_out_text(&out, "{");
    rc = ask_operation_read(api, &out, s->dir, &l, &err);

    if (rc == 1) {
        ask_links(api, &out, s->dir, &l);
        sb_out_text(&out, "}");
    }

    sb_buf_free(&l.says);

    if (rc != 1) {
        sb_buf_free(&out.buf);
        return rc == 0 ? ask_no_operation(q) : ask_unreadable(q, &err);
    }

    return ask_json(q, &out);
}


ask_rc_e
ask_operation(ask_question_t *q)
{
    return ask_whole_record(q, false);
}


ask_rc_e
ask_box_operation(ask_question_t *q)
{
    return ask_whole_record(q, true);
}
