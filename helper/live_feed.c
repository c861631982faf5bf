#include "live_feed.h"

#include "canonical.h"
#include "id.h"
#include "live_lock.h"
#include "live_row.h"
#include "stats.h"
#include "utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>


#define LIVE_FEED_BUF  (JOURNAL_RECORD_MAX + 256 * 1024)

#define LIVE_SEEN  1024     /* sandboxes of one SEEN frame */

struct live_feed_s {
    journal_t         *journal;
    journal_reader_t   reader;
    uint64_t           from;        /* events come behind it */
    uint64_t           cursor;      /* looked at */
    bool               first;       /* nothing has been read yet */
    bool               all;         /* events in front of `from`, too */
    char              *buf;
    size_t             len, pos;

    live_row_t        *row;
    table_t            ops;
    size_t             bytes;       /* of all frames kept */
};


/* --- events ---------------------------------------------------------------- */

static live_event_t *
live_event_new(uint64_t cursor, live_kind_e kind, size_t len)
{
    live_event_t  *e;

    e = calloc(1, sizeof(live_event_t) + len + 1);

    if (e) {
        e->refs = 1;
        e->cursor = cursor;
        e->kind = kind;
        e->len = len;
    }

    return e;
}


live_event_t *
live_event_text(uint64_t cursor, const char *fmt, ...)
{
    int            n;
    va_list        args;
    live_event_t  *e;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);

    if (n < 0) {
        return NULL;
    }

    e = live_event_new(cursor, LIVE_TEXT, (size_t) n);

    if (e) {
        va_start(args, fmt);
        (void) vsnprintf(e->text, (size_t) n + 1, fmt, args);
        va_end(args);
    }

    return e;
}


live_event_t *
live_event_ref(live_event_t *e)
{
    (void) __atomic_fetch_add(&e->refs, 1, __ATOMIC_RELAXED);

    return e;
}


void
live_event_free(live_event_t *e)
{
    if (e && __atomic_sub_fetch(&e->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        live_event_free(e->base);
        free(e->mem);
        free(e);
    }
}


static void
live_event_keep(char **to, sb_str_t *v)
{
    if (v->len) {
        memcpy(*to, v->data, v->len);
    }

    v->data = *to;
    *to += v->len;
}


/* Makes the texts of the facts the event's own. */
static bool
live_event_facts(live_event_t *e, const history_filter_facts_t *t,
    sb_str_t sandbox)
{
    char      *to;
    size_t     i, n;
    sb_str_t  *paths, *all[11];

    e->facts = *t;
    e->sandbox = sandbox;

    all[0] = &e->facts.type;
    all[1] = &e->facts.status;
    all[2] = &e->facts.actor;
    all[3] = &e->facts.actor_type;
    all[4] = &e->facts.source;
    all[5] = &e->facts.thread;
    all[6] = &e->facts.run;
    all[7] = &e->facts.correlation;
    all[8] = &e->sandbox;
    all[9] = &e->facts.head;
    all[10] = &e->facts.out;

    n = t->npaths * sizeof(sb_str_t);

    for (i = 0; i < t->npaths; i++) {
        n += t->paths[i].len;
    }

    for (i = 0; i < 11; i++) {
        n += all[i]->len;
    }

    e->held = n;
    e->mem = malloc(n + 1);
    if (e->mem == NULL) {
        return false;
    }

    paths = (sb_str_t *) (void *) e->mem;
    to = e->mem + t->npaths * sizeof(sb_str_t);

    for (i = 0; i < t->npaths; i++) {
        paths[i] = t->paths[i];
        live_event_keep(&to, &paths[i]);
    }

    for (i = 0; i < 11; i++) {
        live_event_keep(&to, all[i]);
    }

    e->facts.paths = paths;

    return true;
}


/* "event: NAME", the cursor and `data`, which is JSON in one line. */
static live_event_t *
live_event_make(uint64_t cursor, live_kind_e kind, const char *name,
    sb_out_t *data, const history_filter_facts_t *facts,
    sb_str_t sandbox)
{
    int            n;
    char           head[80];
    live_event_t  *e;

    if (data->rc != SB_OK) {
        return NULL;
    }

    n = snprintf(head, sizeof(head), "event: %s\nid: %llu\ndata: ", name,
                 (unsigned long long) cursor);

    e = live_event_new(cursor, kind, (size_t) n + data->buf.len + 2);

    if (e == NULL) {
        return NULL;
    }

    memcpy(e->text, head, (size_t) n);
    memcpy(e->text + n, data->buf.data, data->buf.len);
    memcpy(e->text + (size_t) n + data->buf.len, "\n\n", 2);

    if (!live_event_facts(e, facts, sandbox)) {
        live_event_free(e);
        return NULL;
    }

    return e;
}


/* --- operations ------------------------------------------------------------ */

/* What was known of it is not all any more. */
static void
live_feed_stale(live_feed_t *f, live_op_t *op)
{
    if (op->facts) {
        f->bytes -= op->facts->held;
        live_event_free(op->facts);
        op->facts = NULL;
    }
}


static void
live_feed_drop(live_feed_t *f, live_op_t *op)
{
    live_feed_stale(f, op);
    f->bytes -= op->frames.cap;
    table_remove(&f->ops, &op->node);
    live_op_clear(op);
    free(op);
}


static live_op_t *
live_feed_op(live_feed_t *f, const journal_record_t *r, bool make)
{
    live_op_t  *op;

    op = table_find(&f->ops, r->frame.op, 16);

    if (op || !make) {
        return op;
    }

    op = calloc(1, sizeof(live_op_t));
    if (op == NULL) {
        return NULL;
    }

    memcpy(op->id, r->frame.op, 16);

    if (table_add(&f->ops, &op->node, op->id, 16) != SB_OK) {
        free(op);
        return NULL;
    }

    return op;
}


static void
live_feed_keep(live_feed_t *f, live_op_t *op, const journal_record_t *r)
{
    size_t  before;

    live_feed_stale(f, op);
    live_op_sandbox(op, &r->frame);
    before = op->frames.cap;

    if (f->bytes + r->frame.length > LIVE_STATE_MAX) {
        stats_add(STATS_LIVE_PARTIAL, 1);
        op->partial = true;
        return;
    }

    (void) live_op_add(op, &r->frame, r->raw);
    f->bytes += op->frames.cap - before;
}


static sb_str_t
live_sandbox(const live_op_t *op)
{
    return op->sandbox ? sb_str(op->sandbox, strlen(op->sandbox))
                       : sb_str("", 0);
}


/* An operation has begun, changed or ended. */
static live_event_t *
live_feed_operation(live_feed_t *f, live_op_t *op, const journal_record_t *r,
    bool end)
{
    live_event_t            *e;
    sb_out_t                 out = { .buf.max = LIVE_EVENT_MAX };
    history_filter_facts_t   facts;

    if (end) {
        live_op_sandbox(op, &r->frame);
    }

    sb_out_text(&out, "{");
    sb_out_key(&out, "phase");
    sb_out_text(&out, end ? "\"completed\"" : "\"started\"");

    e = NULL;

    if (live_row_write(f->row, op, end ? r : NULL, &out, &facts)) {
        sb_out_text(&out, "}");
        e = live_event_make(r->cursor, LIVE_OPERATION, "operation", &out,
                            &facts, live_sandbox(op));
    }

    if (e) {
        e->fold = op->fold && sb_eq(e->facts.status, end ? sb_lit("succeeded")
                                                         : e->facts.status);
    }

    sb_buf_free(&out.buf);

    return e;
}


static void
live_feed_piece(sb_out_t *out, uint64_t stream, uint64_t at_us,
    sb_str_t data)
{
    char  at[SB_TIME_LEN + 1], name[32];

    if (out->buf.data[out->buf.len - 1] != '[') {
        sb_out_text(out, ",");
    }

    sb_out_text(out, "{");
    sb_out_key(out, "stream");

    if (stream < 2) {
        sb_out_text(out, stream ? "\"stderr\"" : "\"stdout\"");

    } else {
        (void) snprintf(name, sizeof(name), "\"%llu\"",
                        (unsigned long long) stream);
        sb_out_text(out, name);
    }

    sb_time_text(at, at_us);
    sb_out_key(out, "at");
    sb_out_str(out, sb_str(at, SB_TIME_LEN));

    if (sb_utf8_valid(data)) {
        sb_out_key(out, "text");
        sb_out_str(out, data);

    } else {
        sb_out_key(out, "data_base64");
        sb_out_base64(out, data.data, data.len);
    }

    sb_out_text(out, "}");
}


/*
 * What filters look at of an operation, as an event without a text that its
 * output shares: a command of a megabyte is not read for each piece.
 */
static live_event_t *
live_feed_facts(live_feed_t *f, live_op_t *op)
{
    live_event_t            *e;
    history_filter_facts_t   facts;

    if (op->facts) {
        return live_event_ref(op->facts);
    }

    if (!live_row_facts(f->row, op, &facts)) {
        return NULL;
    }

    e = live_event_new(op->cursor, LIVE_TEXT, 0);

    if (e == NULL || !live_event_facts(e, &facts, sb_str("", 0))) {
        live_event_free(e);
        return NULL;
    }

    if (f->bytes + e->held <= LIVE_STATE_MAX) {
        f->bytes += e->held;
        op->facts = live_event_ref(e);
    }

    return e;
}


static live_event_t *
live_feed_output(live_feed_t *f, live_op_t *op, const journal_record_t *r)
{
    char                     id[SB_UUID_LEN + 1];
    size_t                   n;
    uint16_t                 tag;
    uint64_t                 stream, at_us, cut;
    sb_str_t                 fields, v;
    live_event_t            *e, *base;
    sb_buf_t                 text = { .max = 2 * LIVE_OUTPUT_MAX };
    sb_out_t                 out = { .buf.max = LIVE_EVENT_MAX };
    history_filter_facts_t   facts;

    base = live_feed_facts(f, op);

    if (base == NULL) {
        return NULL;
    }

    sb_uuid_text(id, op->id);

    sb_out_text(&out, "{\"phase\":\"output\"");
    sb_out_key(&out, "id");
    sb_out_str(&out, sb_str(id, SB_UUID_LEN));
    sb_out_key(&out, "sandbox_id");
    sb_out_str(&out, live_sandbox(op));
    sb_out_key(&out, "type");
    sb_out_str(&out, base->facts.type);
    sb_out_key(&out, "pieces");
    sb_out_text(&out, "[");

    fields = r->frame.fields;
    stream = 0;
    at_us = r->frame.time_us;
    n = 0;
    cut = 0;

    while (sb_field_next(&fields, &tag, &v)) {

        if (tag == SB_T_STREAM) {
            if (stream != sb_value_u64(v, 0)) {
                /* no word goes from one into the other */
                (void) sb_buf_add_c(&text, '\n');
            }

            stream = sb_value_u64(v, 0);

        } else if (tag == SB_T_TIME) {
            at_us = sb_value_u64(v, at_us);

        } else if (tag == SB_T_DATA) {
            op->pieces++;
            op->bytes[stream == 1] += (int64_t) v.len;

            if (n + v.len > LIVE_OUTPUT_MAX) {
                cut += v.len - (LIVE_OUTPUT_MAX - n);
                v.len = LIVE_OUTPUT_MAX - n;
            }

            n += v.len;

            if (v.len) {
                live_feed_piece(&out, stream, at_us, v);
                (void) sb_buf_add(&text, v.data, v.len);
            }
        }
    }

    sb_out_text(&out, "]");
    sb_out_key(&out, "cut");
    sb_out_int(&out, (int64_t) cut);
    sb_out_text(&out, "}");

    memset(&facts, 0, sizeof(facts));
    facts.out = sb_str(text.data, text.len);
    e = live_event_make(r->cursor, LIVE_OUTPUT, "operation", &out, &facts,
                        live_sandbox(op));
    sb_buf_free(&out.buf);
    sb_buf_free(&text);

    if (e == NULL) {
        live_event_free(base);
        return NULL;
    }

    facts = base->facts;
    facts.out = e->facts.out;
    e->facts = facts;
    e->held += base->held;
    e->base = base;

    return e;
}


/* Output that came before the feed's own time counts all the same. */
static void
live_feed_count(live_op_t *op, const journal_record_t *r)
{
    uint16_t  tag;
    uint64_t  stream;
    sb_str_t  fields, v;

    fields = r->frame.fields;
    stream = 0;

    while (sb_field_next(&fields, &tag, &v)) {

        if (tag == SB_T_STREAM) {
            stream = sb_value_u64(v, 0);

        } else if (tag == SB_T_DATA) {
            op->pieces++;
            op->bytes[stream == 1] += (int64_t) v.len;
        }
    }
}


/* --- what is about no operation -------------------------------------------- */

static void
live_feed_time(sb_out_t *out, const char *name, uint64_t us)
{
    char  text[SB_TIME_LEN + 1];

    sb_time_text(text, us);
    sb_out_key(out, name);
    sb_out_str(out, sb_str(text, SB_TIME_LEN));
}


static sb_str_t
live_field(const sb_frame_t *f, uint16_t tag)
{
    sb_str_t  v;

    return sb_field_get(f, tag, &v) ? v : sb_str(NULL, 0);
}


static live_event_t *
live_feed_gap(live_feed_t *f, const journal_record_t *r)
{
    char                     id[SB_UUID_LEN + 1];
    sb_str_t                 sandbox;
    live_op_t               *op;
    live_event_t            *e;
    sb_out_t                 out = { .buf.max = LIVE_EVENT_MAX };
    const sb_frame_t        *t;
    history_filter_facts_t   facts;

    t = &r->frame;
    op = live_feed_op(f, r, false);
    sandbox = live_field(t, SB_T_SANDBOX);
    sandbox = sandbox.len == 0 && op ? live_sandbox(op) : sandbox;

    sb_out_text(&out, "{");
    sb_out_member(&out, "sandbox_id", sandbox);
    sb_out_key(&out, "operations");
    sb_out_int(&out, (int64_t) sb_field_u64(t, SB_T_COUNT, 0));
    sb_out_key(&out, "output_bytes");
    sb_out_int(&out, (int64_t) sb_field_u64(t, SB_T_OUTPUT_LOST, 0));
    live_feed_time(&out, "from", sb_field_u64(t, SB_T_TIME, t->time_us));
    live_feed_time(&out, "to", sb_field_u64(t, SB_T_TIME_END, t->time_us));
    sb_out_member(&out, "reason", live_field(t, SB_T_REASON));

    sb_uuid_text(id, t->op);
    sb_out_member(&out, "operation_id", op ? sb_str(id, SB_UUID_LEN)
                                           : sb_str(NULL, 0));
    sb_out_text(&out, "}");

    memset(&facts, 0, sizeof(facts));
    e = live_event_make(r->cursor, LIVE_GAP, "gap", &out, &facts, sandbox);
    sb_buf_free(&out.buf);

    return e;
}


static live_event_t *
live_feed_seen(const journal_record_t *r)
{
    uint16_t                 tag;
    sb_str_t                 fields, v, sandbox, ids[LIVE_SEEN];
    live_event_t            *e;
    sb_out_t                 out = { .buf.max = LIVE_EVENT_MAX };
    history_filter_facts_t   facts;

    fields = r->frame.fields;
    sandbox = sb_str("", 0);
    memset(&facts, 0, sizeof(facts));
    facts.paths = ids;

    sb_out_text(&out, "{\"sandboxes\":[");

    while (sb_field_next(&fields, &tag, &v)) {

        if (tag == SB_T_SANDBOX) {
            sb_out_text(&out, sandbox.len ? "},{" : "{");
            sandbox = v;

            if (facts.npaths < LIVE_SEEN) {
                ids[facts.npaths++] = v;
            }

            sb_out_member(&out, "id", v);

        } else if (tag == SB_T_NAME && sandbox.len) {
            sb_out_member(&out, "name", v);

        } else if (tag == SB_T_STATE && sandbox.len) {
            sb_out_member(&out, "state", v);
        }
    }

    sb_out_text(&out, sandbox.len ? "}]" : "]");
    live_feed_time(&out, "at", r->frame.time_us);
    sb_out_text(&out, "}");

    e = sandbox.len ? live_event_make(r->cursor, LIVE_SANDBOX, "sandbox", &out,
                                      &facts, sb_str("", 0))
                    : NULL;
    sb_buf_free(&out.buf);

    return e;
}


static live_event_t *
live_feed_lock(const journal_record_t *r)
{
    live_event_t            *e;
    sb_out_t                 out = { .buf.max = LIVE_EVENT_MAX };
    history_filter_facts_t   facts;

    live_lock_write(&r->frame, &out, &facts);

    e = live_event_make(r->cursor, LIVE_LOCK, "lock", &out, &facts,
                        live_field(&r->frame, SB_T_SANDBOX));
    sb_buf_free(&out.buf);

    return e;
}


/* --- reading --------------------------------------------------------------- */

live_feed_t *
live_feed_new(journal_t *j, readers_t *readers, uint64_t cursor)
{
    live_feed_t  *f;

    f = calloc(1, sizeof(live_feed_t));
    if (f == NULL) {
        return NULL;
    }

    f->journal = j;
    f->from = cursor;
    f->cursor = cursor;
    f->first = true;
    f->buf = malloc(LIVE_FEED_BUF);
    f->row = live_row_new(readers);
    journal_reader_init(&f->reader, j, cursor);

    /* its segment from the beginning: what is open there is told of */
    f->reader.cursor = 0;

    if (f->buf == NULL || f->row == NULL) {
        live_feed_free(f);
        return NULL;
    }

    return f;
}


static void
live_feed_visit(void *entry, void *data)
{
    live_feed_drop(data, entry);
}


void
live_feed_free(live_feed_t *f)
{
    if (f == NULL) {
        return;
    }

    table_each(&f->ops, live_feed_visit, f);
    table_free(&f->ops);
    journal_reader_close(&f->reader);
    live_row_free(f->row);
    free(f->buf);
    free(f);
}


void
live_feed_all(live_feed_t *f)
{
    f->all = true;
}


uint64_t
live_feed_cursor(const live_feed_t *f)
{
    return f->cursor;
}


bool
live_feed_caught_up(const live_feed_t *f)
{
    return !f->first && f->cursor >= f->from;
}


/* Do these facts show in a record as listed? */
static bool
live_tells(const sb_frame_t *f)
{
    size_t    i;
    sb_str_t  v;

    static const uint16_t  tags[] = {
        SB_T_TYPE, SB_T_REQUEST, SB_T_COMMAND, SB_T_FILE_PATH
    };

    for (i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        if (sb_field_get(f, tags[i], &v)) {
            return true;
        }
    }

    return false;
}


static live_event_t *
live_feed_record(live_feed_t *f, const journal_record_t *r, bool tell)
{
    sb_str_t       v;
    live_op_t     *op;
    live_event_t  *e;

    e = NULL;

    switch (r->frame.type) {

    case SB_F_BEGIN:
        op = live_feed_op(f, r, true);

        if (op) {
            op->cursor = r->cursor;
            op->fold = (r->frame.flags & SB_FF_FOLD) != 0;
            live_feed_keep(f, op, r);
            e = tell ? live_feed_operation(f, op, r, false) : NULL;
        }

        break;

    case SB_F_FACTS:
        op = live_feed_op(f, r, true);

        if (op) {
            live_feed_keep(f, op, r);
            e = tell && live_tells(&r->frame)
                ? live_feed_operation(f, op, r, false) : NULL;
        }

        break;

    case SB_F_OUTPUT:
        op = live_feed_op(f, r, true);

        if (op && tell) {
            e = live_feed_output(f, op, r);

        } else if (op) {
            live_feed_count(op, r);
        }

        break;

    case SB_F_END:
        op = live_feed_op(f, r, tell);

        if (op && sb_field_get(&r->frame, SB_T_DETACHED, &v)) {
            live_feed_keep(f, op, r);
            e = tell ? live_feed_operation(f, op, r, false) : NULL;

        } else if (op) {
            e = tell ? live_feed_operation(f, op, r, true) : NULL;
            live_feed_drop(f, op);
        }

        break;

    case SB_F_GAP:
        e = tell ? live_feed_gap(f, r) : NULL;
        break;

    case SB_F_SEEN:
        e = tell ? live_feed_seen(r) : NULL;
        break;

    case SB_F_LOCK:
        e = tell ? live_feed_lock(r) : NULL;
        break;

    case JOURNAL_F_STATE_OPERATION:
        if (live_feed_op(f, r, false) == NULL) {
            op = live_feed_op(f, r, true);

            if (op) {
                live_op_sandbox(op, &r->frame);
            }
        }

        break;

    default:
        break;
    }

    return e;
}


live_feed_rc_e
live_feed_next(live_feed_t *f, live_event_t **e)
{
    ssize_t           n;
    uint64_t          last;
    journal_pos_t     end;
    journal_record_t  r;

    *e = NULL;

    if (f->pos == f->len) {
        end = journal_tail(f->journal);
        n = journal_read(&f->reader, f->buf, LIVE_FEED_BUF, &end);

        if (n == -1) {
            return errno == ENOENT ? LIVE_FEED_LOST : LIVE_FEED_ERROR;
        }

        if (n == 0) {
            return LIVE_FEED_END;
        }

        f->len = (size_t) n;
        f->pos = 0;
    }

    last = f->first ? 0 : f->cursor;

    if (!journal_next(&r, f->buf, f->len, &f->pos)) {
        return LIVE_FEED_ERROR;
    }

    if (f->first ? r.cursor > f->from + 1 : r.cursor != last + 1) {
        return LIVE_FEED_LOST;
    }

    f->first = false;
    f->cursor = r.cursor;

    *e = live_feed_record(f, &r, f->all || r.cursor > f->from);

    if (*e) {
        memcpy((*e)->op, r.frame.op, 16);
    }

    return *e ? LIVE_FEED_EVENT : LIVE_FEED_NONE;
}
