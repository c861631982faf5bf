#include "ask_records.h"

#include "history_record.h"

#include <stdlib.h>


#define ASK_RECORDS_MAX  ((size_t) 64 * 1024 * 1024)


typedef struct {
    const index_hit_t  *hit;
    size_t              at;         /* in the text */
    size_t              len;        /* 0: is gone */
} ask_place_t;


/* Those of one file behind each other, so that it is opened once. */
static int
ask_records_order(const void *one, const void *two)
{
    int                       n;
    const ask_place_t *const *a = one, *const *b = two;

    n = strcmp((*a)->hit->dir, (*b)->hit->dir);

    return n ? n : ((*a)->hit > (*b)->hit) - ((*a)->hit < (*b)->hit);
}


/* One record into the text; false when its file cannot be read. */
static bool
ask_records_row(sb_out_t *text, reader_t *reader, int64_t row,
    ask_place_t *p)
{
    int               rc;
    sqlite3_stmt     *stmt;
    history_error_t   err;

    stmt = reader_record(reader, &err);

    if (stmt == NULL) {
        return false;
    }

    sqlite3_bind_int64(stmt, 1, row);
    rc = history_step(stmt, &err);

    if (rc == 1 && sb_eq(history_column(stmt, HR_ID),
                         sb_str(p->hit->id, strlen(p->hit->id))))
    {
        p->at = text->buf.len;
        sb_out_text(text, "{");
        history_record_members(text, stmt);

        if (p->hit->text_cut) {
            sb_out_text(text, ",\"text_cut\":true");
        }

        sb_out_text(text, "}");
        p->len = text->buf.len - p->at;
    }

    sqlite3_reset(stmt);

    return rc != -1;
}


/* The same of one that _gateway has no longer: it may have moved on since it
 * was indexed. */
static bool
ask_records_moved(api_t *api, sb_out_t *text, ask_place_t *p)
{
    bool              ok;
    int64_t           row;
    reader_t         *reader;
    reader_rc_e       rc;
    history_error_t   err;

    row = p->hit->row;
    rc = reader_take_of(api->readers, p->hit->dir, p->hit->id, &row, &reader,
                        &err);

    if (rc != READER_OK) {
        return rc == READER_MISSING;
    }

    ok = ask_records_row(text, reader, row, p);
    reader_give(api->readers, reader, !ok);

    return ok;
}


/* Reads all of them, file by file; false: there is no room for all. */
static bool
ask_records_read(api_t *api, sb_out_t *text, ask_place_t **order,
    size_t n, bool *unreadable)
{
    bool              broken, gateway;
    size_t            i;
    reader_t         *reader;
    const char       *dir;
    reader_rc_e       rc;
    history_error_t   err;

    for (i = 0; i < n; /* void */) {
        dir = order[i]->hit->dir;
        gateway = strcmp(dir, SCHEMA_GATEWAY) == 0;
        rc = reader_take(api->readers, dir, &reader, &err);
        broken = rc == READER_FAILED;

        for ( /* void */ ; i < n && strcmp(order[i]->hit->dir, dir) == 0; i++) {

            if (reader && !broken) {
                broken = !ask_records_row(text, reader, order[i]->hit->row,
                                          order[i]);

                if (gateway && !broken && order[i]->len == 0
                    && !ask_records_moved(api, text, order[i]))
                {
                    *unreadable = true;
                }

                if (text->rc != SB_OK) {
                    break;
                }
            }

        }

        if (reader) {
            reader_give(api->readers, reader, broken);
        }

        *unreadable = *unreadable || broken;

        if (text->rc != SB_OK) {
            return false;
        }
    }

    return true;
}


/* Where the last of them begin that reach `most` bytes. */
static size_t
ask_records_first(const ask_place_t *places, size_t n, size_t most)
{
    bool    any;
    size_t  len;

    any = false;

    for (len = 0; n && !(any && len >= most); n--) {

        if (places[n - 1].len) {
            len += places[n - 1].len + any;
            any = true;
        }
    }

    return n;
}


static bool
ask_records_try(api_t *api, sb_out_t *out, const index_hit_t *hits,
    size_t n, size_t most, bool last, ask_records_t *r)
{
    bool           ok;
    size_t         i, from;
    ask_place_t   *places, **order;
    sb_out_t       text = { .buf.max = n == 1 ? SB_OUT_MAX
                                               : ASK_RECORDS_MAX };

    memset(r, 0, sizeof(ask_records_t));
    places = calloc(n, sizeof(ask_place_t));
    order = calloc(n, sizeof(ask_place_t *));
    ok = false;

    if (places == NULL || order == NULL) {
        out->rc = SB_NOMEM;
        goto done;
    }

    for (i = 0; i < n; i++) {
        places[i].hit = &hits[i];
        order[i] = &places[i];
    }

    qsort(order, n, sizeof(ask_place_t *), ask_records_order);

    ok = ask_records_read(api, &text, order, n, &r->unreadable);

    if (text.rc == SB_NOMEM) {
        out->rc = SB_NOMEM;
    }

    from = out->buf.len;
    r->first = last && ok ? ask_records_first(places, n, most) : 0;

    for (i = r->first; i < n && ok; i++) {

        if (!last && r->written && out->buf.len - from >= most) {
            break;
        }

        r->taken++;

        if (places[i].len) {
            sb_out_text(out, r->written ? "," : "");
            sb_out_raw(out, text.buf.data + places[i].at, places[i].len);
            r->written++;
        }
    }

done:

    sb_buf_free(&text.buf);
    free(places);
    free(order);

    return ok;
}


static void
ask_records_some(api_t *api, sb_out_t *out, const index_hit_t *hits, size_t n,
    size_t most, bool last, ask_records_t *r)
{
    size_t  from;

    from = 0;
    memset(r, 0, sizeof(ask_records_t));

    /* very large ones: fewer at a time */

    while (n && out->rc == SB_OK
           && !ask_records_try(api, out, hits + from, n, most, last, r))
    {
        if (n == 1) {
            out->rc = out->rc == SB_OK ? SB_LIMIT : out->rc;
            break;
        }

        from += last ? n / 2 : 0;
        n = (n + 1) / 2;
    }

    r->first += from;
}


void
ask_records(api_t *api, sb_out_t *out, const index_hit_t *hits, size_t n,
    size_t most, ask_records_t *r)
{
    ask_records_some(api, out, hits, n, most, false, r);
}


void
ask_records_last(api_t *api, sb_out_t *out, const index_hit_t *hits, size_t n,
    size_t most, ask_records_t *r)
{
    ask_records_some(api, out, hits, n, most, true, r);
}
