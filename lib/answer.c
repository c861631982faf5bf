/* Facts in JSON answers, gathered while they pass; answer_table.c says which. */

#include "answer_table.h"
#include "id.h"
#include "json_object.h"
#include "token.h"

#include "utf8.h"

#include <stdlib.h>


#define SB_ANSWER_BYTES   (1024 * 1024)
#define SB_ANSWER_ITEMS   1000
#define SB_ANSWER_TEXT    512       /* longer ids are none */
#define SB_ANSWER_NAMES   64
#define SB_ANSWER_FILES   256
#define SB_ANSWER_PATH    5120
#define SB_ANSWER_DEPTH   64
#define SB_ANSWER_RESULT  (64 * 1024)
#define SB_ANSWER_SPARE   1024      /* of a buffer that is kept */


typedef struct sb_answer_text_s  sb_answer_text_t;

struct sb_answer_text_s {
    sb_answer_text_t  *next;
    char               data[];
};


struct sb_answer_s {
    sb_answer_facts_t        facts;
    const sb_answer_row_t   *rows;
    sb_json_t               *json;
    sb_rc_t                  rc;
    bool                     finished;
    bool                     full;          /* of items */
    sb_answer_text_t        *texts;

    uint64_t                 count;
    const char              *count_as;

    const char              *keys_as;
    size_t                   nkeys, keys_total;

    size_t                   nfiles;
    uint64_t                 files_total, replaced_total;

    /* where the parser is; base[d] is the length of the path of what holds
     * the values at depth d */
    uint64_t                 arrays[2];
    size_t                   len;
    size_t                   base[SB_ANSWER_DEPTH + 2];

    /* not cleared: that costs more than all the rest of an answer */
    sb_object_t              out;
    sb_str_t                 keys[SB_ANSWER_NAMES];
    sb_str_t                 files[SB_ANSWER_FILES];
    int64_t                  replaced[SB_ANSWER_FILES];
    char                     path[SB_ANSWER_PATH];
};


/* The last one that was freed, with its parser and small buffers: most answers
 * are read one after another. */
static __thread sb_answer_t  *sb_answer_spare;


static sb_rc_t
sb_answer_keep(sb_answer_t *a, sb_str_t *out, sb_str_t s)
{
    sb_answer_text_t  *t;

    t = malloc(sizeof(sb_answer_text_t) + s.len + 1);
    if (t == NULL) {
        return SB_NOMEM;
    }

    if (s.len) {
        memcpy(t->data, s.data, s.len);
    }

    t->data[s.len] = '\0';
    t->next = a->texts;
    a->texts = t;

    *out = sb_str(t->data, s.len);

    return SB_OK;
}


/* An id or a name: nothing is taken that is too long to be one. */
static sb_rc_t
sb_answer_word(sb_answer_t *a, sb_str_t *out, sb_json_event_e event,
    sb_str_t text)
{
    if (event != SB_JSON_STRING || text.len == 0 || text.len > SB_ANSWER_TEXT) {
        return SB_OK;
    }

    return sb_answer_keep(a, out, text);
}


/*
 * What of an error's message is kept.  The server proxy tells in full which
 * endpoint it could not reach, the sandbox's tokens among its headers
 * (reference/opensandbox-api.md 2.4).
 */
static sb_str_t
sb_answer_redact(sb_answer_t *a, sb_str_t text)
{
    const char  *headers;

    if (sb_token_like(text)) {
        a->facts.redacted++;
        return sb_lit("[redacted]");
    }

    headers = memmem(text.data, text.len, "headers=", 8);

    if (headers) {
        a->facts.redacted++;
        text.len = (size_t) (headers - text.data) + 8;
    }

    return sb_str(text.data, sb_utf8_cut(text, SB_ANSWER_TEXT));
}


static sb_rc_t
sb_answer_message(sb_answer_t *a, sb_str_t *out, sb_json_event_e event,
    sb_str_t text)
{
    if (event != SB_JSON_STRING || out->len) {
        return SB_OK;
    }

    return sb_answer_keep(a, out, text);
}


static bool
sb_answer_int(sb_json_event_e event, sb_str_t text, int64_t *n)
{
    sb_jv_t  v = { .kind = event, .text = text };

    return sb_jv_int(&v, n);
}


static void
sb_answer_result(sb_answer_t *a, const char *as, sb_json_event_e event,
    sb_str_t text)
{
    size_t   i;
    int64_t  n;

    /* the first of two equal names stays: no object is written with two */

    for (i = 0; i < a->out.n; i++) {
        if (a->out.members[i].name == as) {
            return;
        }
    }

    if (event == SB_JSON_STRING) {
        sb_object_str(&a->out, as, text);

    } else if (event == SB_JSON_TRUE || event == SB_JSON_FALSE) {
        sb_object_bool(&a->out, as, event == SB_JSON_TRUE);

    } else if (sb_answer_int(event, text, &n)) {
        sb_object_int(&a->out, as, n);
    }
}


static sb_rc_t
sb_answer_item(sb_answer_t *a)
{
    void   *p;
    size_t  n = a->facts.nitems;

    a->full = n == SB_ANSWER_ITEMS;

    if (a->full) {
        return SB_OK;
    }

    /* grows at 0, 1, 2, 4, 8 ... */

    if ((n & (n - 1)) == 0 || n == 0) {
        p = realloc(a->facts.items, (n ? n * 2 : 1)
                                    * sizeof(struct sb_answer_item_s));
        if (p == NULL) {
            return SB_NOMEM;
        }

        a->facts.items = p;
    }

    memset(&a->facts.items[n], 0, sizeof(struct sb_answer_item_s));
    a->facts.nitems++;

    return SB_OK;
}


static sb_rc_t
sb_answer_item_member(sb_answer_t *a, sb_answer_kind_e kind,
    sb_json_event_e event, sb_str_t text)
{
    struct sb_answer_item_s  *item;

    if (a->facts.nitems == 0 || a->full) {
        return SB_OK;
    }

    item = &a->facts.items[a->facts.nitems - 1];

    switch (kind) {

    case SB_A_ITEM_ID:
        return sb_answer_word(a, &item->id, event, text);

    case SB_A_ITEM_OLD_NAME:
        if (item->name.len) {
            return SB_OK;
        }

        /* fall through */

    case SB_A_ITEM_NAME:
        return sb_answer_word(a, &item->name, event, text);

    case SB_A_ITEM_INSTANCE:
        return sb_answer_word(a, &item->instance, event, text);

    default:
        return sb_answer_word(a, &item->state, event, text);
    }
}


static sb_rc_t
sb_answer_replaced(sb_answer_t *a, sb_json_event_e event, sb_str_t text)
{
    int64_t  n;

    if (!sb_answer_int(event, text, &n) || n < 0) {
        return SB_OK;
    }

    a->files_total++;
    a->replaced_total += (uint64_t) n;

    if (a->nfiles == SB_ANSWER_FILES) {
        return SB_OK;
    }

    a->replaced[a->nfiles] = n;

    return sb_answer_keep(a, &a->files[a->nfiles++],
                          sb_str(a->path, a->base[2]));
}


static sb_rc_t
sb_answer_fact(sb_answer_t *a, const sb_answer_row_t *row,
    sb_json_event_e event, sb_str_t text)
{
    int64_t             n;
    sb_answer_facts_t  *f = &a->facts;

    switch (row->kind) {

    case SB_A_STR:
    case SB_A_KEYS:
        return SB_OK;

    case SB_A_ID:
        return sb_answer_word(a, &f->id, event, text);

    case SB_A_OLD_NAME:
        if (f->name.len) {
            return SB_OK;
        }

        /* fall through */

    case SB_A_NAME:
        return sb_answer_word(a, &f->name, event, text);

    case SB_A_INSTANCE:
        return sb_answer_word(a, &f->instance, event, text);

    case SB_A_STATE:
        return sb_answer_word(a, &f->state, event, text);

    case SB_A_COMMAND:
        return sb_answer_word(a, &f->command_id, event, text);

    case SB_A_CODE:
        return sb_answer_word(a, &f->error_code, event, text);

    case SB_A_MESSAGE:
        return sb_answer_message(a, &f->error_message, event, text);

    case SB_A_RUNNING:
        f->has_running = event == SB_JSON_TRUE || event == SB_JSON_FALSE;
        f->running = event == SB_JSON_TRUE;
        return SB_OK;

    case SB_A_EXIT:
        if (sb_answer_int(event, text, &n) && n >= INT32_MIN && n <= INT32_MAX)
        {
            f->has_exit_code = true;
            f->exit_code = (int32_t) n;
        }

        return SB_OK;

    case SB_A_EXPIRES:
        if (event == SB_JSON_NULL) {
            f->expires_us = 0;
            f->has_expires = true;

        } else if (event == SB_JSON_STRING
                   && sb_time_parse(&f->expires_us, text) == SB_OK)
        {
            f->has_expires = true;
        }

        return SB_OK;

    case SB_A_ITEM:
        return event == SB_JSON_OPEN_OBJECT ? sb_answer_item(a) : SB_OK;

    case SB_A_COUNT:
        a->count++;
        return SB_OK;

    case SB_A_REPLACED:
        return sb_answer_replaced(a, event, text);

    default:
        return sb_answer_item_member(a, row->kind, event, text);
    }
}


/* Does a row speak of the value at the present path? */
static bool
sb_answer_match(const sb_answer_t *a, const sb_answer_row_t *row,
    unsigned depth)
{
    size_t  n, from;

    if (row->path[0] == '*') {
        return depth == 1;
    }

    if (row->kind == SB_A_REPLACED) {
        n = strlen(row->path);
        from = a->base[depth] + 1;

        return depth == 2 && a->len == from + n
               && memcmp(a->path + from, row->path, n) == 0;
    }

    /* nearly all values are of no interest, and differ at once */

    if (a->len == 0) {
        return row->path[0] == '\0';
    }

    if (row->path[0] != a->path[0]) {
        return false;
    }

    return strnlen(row->path, a->len + 1) == a->len
           && memcmp(a->path, row->path, a->len) == 0;
}


static sb_rc_t
sb_answer_value(sb_answer_t *a, sb_json_event_e event, sb_str_t text,
    unsigned depth)
{
    sb_rc_t                 rc = SB_OK;
    const sb_answer_row_t  *row;

    for (row = a->rows; rc == SB_OK && row->path; row++) {
        if (!sb_answer_match(a, row, depth)) {
            continue;
        }

        if (row->kind == SB_A_MESSAGE) {
            text = sb_answer_redact(a, text);
        }

        if (row->as && row->kind < SB_A_ITEM) {
            sb_answer_result(a, row->as, event, text);
        }

        rc = sb_answer_fact(a, row, event, text);
    }

    return rc;
}


/* The name of a member below a path whose names are wanted. */
static sb_rc_t
sb_answer_key(sb_answer_t *a, sb_str_t name, unsigned depth)
{
    const sb_answer_row_t  *row;

    for (row = a->rows; row->path; row++) {
        if (row->kind != SB_A_KEYS || strlen(row->path) != a->base[depth]
            || memcmp(row->path, a->path, a->base[depth]) != 0)
        {
            continue;
        }

        a->keys_as = row->as;
        a->keys_total++;
        a->facts.redacted++;

        if (a->nkeys < SB_ANSWER_NAMES) {
            name.len = sb_utf8_cut(name, SB_ANSWER_TEXT);
            return sb_answer_keep(a, &a->keys[a->nkeys++], name);
        }
    }

    return SB_OK;
}


static bool
sb_answer_in_array(const sb_answer_t *a, unsigned depth)
{
    return depth && (a->arrays[depth >> 6] >> (depth & 63) & 1);
}


/* Sets the path to that of a member (or an element, without name). */
static void
sb_answer_path(sb_answer_t *a, unsigned depth, const sb_str_t *name)
{
    size_t  n = a->base[depth];

    if (name == NULL) {
        if (n + 2 <= SB_ANSWER_PATH) {
            memcpy(a->path + n, "[]", 2);
            n += 2;
        }

    } else if (n + 1 + name->len <= SB_ANSWER_PATH) {
        if (n) {
            a->path[n++] = '.';
        }

        memcpy(a->path + n, name->data, name->len);
        n += name->len;

    } else if (n < SB_ANSWER_PATH) {
        /* too long to be one of ours: nothing below matches either */
        a->path[n++] = '\x01';
    }

    a->len = n;
}


static sb_rc_t
sb_answer_event(void *data, sb_json_event_e event, sb_str_t text,
    unsigned depth)
{
    sb_rc_t       rc;
    uint64_t      bit;
    sb_answer_t  *a = data;

    switch (event) {

    case SB_JSON_CLOSE_OBJECT:
    case SB_JSON_CLOSE_ARRAY:
        return SB_OK;

    case SB_JSON_KEY:
        rc = sb_answer_key(a, text, depth);
        sb_answer_path(a, depth, &text);
        return rc;

    default:
        break;
    }

    if (sb_answer_in_array(a, depth)) {
        sb_answer_path(a, depth, NULL);

    } else if (depth == 0) {
        a->len = 0;
    }

    rc = sb_answer_value(a, event, text, depth);

    if (event == SB_JSON_OPEN_OBJECT || event == SB_JSON_OPEN_ARRAY) {
        depth++;
        a->base[depth] = a->len;
        bit = (uint64_t) 1 << (depth & 63);

        if (event == SB_JSON_OPEN_ARRAY) {
            a->arrays[depth >> 6] |= bit;
        } else {
            a->arrays[depth >> 6] &= ~bit;
        }
    }

    return rc;
}


bool
sb_answer_dates(const sb_op_t *op, unsigned status)
{
    const sb_answer_row_t  *row = sb_answer_rows(op, status);

    while (row && row->path && row->kind != SB_A_EXPIRES) {
        row++;
    }

    return row && row->path;
}


sb_answer_t *
sb_answer_new(const sb_op_t *op, unsigned status)
{
    sb_buf_t                text, told;
    sb_json_t              *json;
    sb_answer_t            *a;
    sb_json_limits_t        limits = { SB_ANSWER_DEPTH, SB_ANSWER_BYTES };
    const sb_answer_row_t  *rows, *row;

    rows = sb_answer_rows(op, status);

    if (rows == NULL) {
        return NULL;
    }

    a = sb_answer_spare;
    sb_answer_spare = NULL;

    if (a == NULL) {
        a = malloc(sizeof(sb_answer_t));
        if (a == NULL) {
            return NULL;
        }

        a->json = NULL;
        memset(&a->facts.json, 0, sizeof(sb_buf_t));
        memset(&a->out.text, 0, sizeof(sb_buf_t));
    }

    json = a->json;
    told = a->facts.json;
    text = a->out.text;

    memset(a, 0, offsetof(sb_answer_t, out));
    sb_object_init(&a->out, SB_ANSWER_RESULT);

    a->rows = rows;
    a->rc = SB_AGAIN;
    a->json = json;
    a->facts.json = told;
    a->facts.json.max = SB_ANSWER_RESULT;
    a->out.text = text;
    a->out.text.max = SB_ANSWER_RESULT;

    for (row = rows; row->path; row++) {
        if (row->kind == SB_A_COUNT) {
            a->count_as = row->as;
        }
    }

    if (a->json == NULL) {
        a->json = sb_json_new(sb_answer_event, a, &limits);

        if (a->json == NULL) {
            sb_answer_free(a);
            return NULL;
        }
    }

    return a;
}


void
sb_answer_feed(sb_answer_t *a, const char *p, size_t n)
{
    if (a->rc >= SB_OK && !a->finished) {
        a->rc = sb_json_feed(a->json, p, n);
    }
}


static void
sb_answer_write_replaced(sb_answer_t *a)
{
    size_t    i, j, order[SB_ANSWER_FILES], kept = 0, len;
    sb_rc_t   rc;
    sb_buf_t  b = { .max = a->out.room / 2 };

    for (i = 0; i < a->nfiles; i++) {
        for (j = i; j > 0 && sb_str_compare(&a->files[i],
                                            &a->files[order[j - 1]]) < 0; j--)
        {
            order[j] = order[j - 1];
        }

        order[j] = i;
    }

    rc = sb_buf_add_c(&b, '{');

    for (i = 0; rc == SB_OK && i < a->nfiles; i++) {
        len = b.len;

        if (kept) {
            rc = sb_buf_add_c(&b, ',');
        }

        if (rc == SB_OK) {
            rc = sb_json_write_str(&b, a->files[order[i]]);
        }

        if (rc == SB_OK) {
            rc = sb_buf_printf(&b, ":%lld",
                               (long long) a->replaced[order[i]]);
        }

        if (rc == SB_OK && b.len < b.max) {
            kept++;
        } else {
            b.len = len;
            rc = SB_LIMIT;
        }
    }

    if (sb_buf_add_c(&b, '}') == SB_OK) {
        sb_object_json(&a->out, "replaced", sb_str(b.data, b.len), kept,
                       a->files_total);
        sb_object_uint(&a->out, "replaced_count", "", a->replaced_total);
    }

    sb_buf_free(&b);
}


const sb_answer_facts_t *
sb_answer_finish(sb_answer_t *a)
{
    size_t  i, n = 0;

    if (a->finished) {
        return &a->facts;
    }

    a->finished = true;

    if (a->rc >= SB_OK) {
        a->rc = sb_json_finish(a->json);
    }

    if (a->count_as && a->rc != SB_DECLINED) {
        sb_object_uint(&a->out, a->count_as, "", a->count);
    }

    if (a->nkeys) {
        sb_object_names(&a->out, a->keys_as, a->keys, a->nkeys);
    }

    if (a->nkeys < a->keys_total) {
        sb_object_uint(&a->out, a->keys_as, "_seen", a->keys_total);
    }

    if (a->files_total) {
        sb_answer_write_replaced(a);
    }

    if (a->rc != SB_OK && a->rc != SB_DECLINED) {
        sb_object_bool(&a->out, "unparsed", true);
    }

    /* what has no id cannot be told from others */

    for (i = 0; i < a->facts.nitems; i++) {
        if (a->facts.items[i].id.len) {
            a->facts.items[n++] = a->facts.items[i];
        }
    }

    a->facts.nitems = n;

    if (sb_object_write(&a->out, &a->facts.json) != SB_OK) {
        a->facts.json.len = 0;
        (void) sb_buf_add_str(&a->facts.json, sb_lit("{\"unparsed\":true}"));
    }

    return &a->facts;
}


#if !defined(__SANITIZE_ADDRESS__)

static void
sb_answer_empty(sb_buf_t *b)
{
    if (b->cap > SB_ANSWER_SPARE) {
        sb_buf_free(b);
    }

    b->len = 0;
    b->nomem = false;
}

#endif


void
sb_answer_free(sb_answer_t *a)
{
    sb_answer_text_t  *t, *next;

    if (a == NULL) {
        return;
    }

    for (t = a->texts; t; t = next) {
        next = t->next;
        free(t);
    }

    free(a->facts.items);

#if !defined(__SANITIZE_ADDRESS__)
    if (sb_answer_spare == NULL) {

        if (a->json) {
            sb_json_again(a->json);
        }

        sb_answer_empty(&a->out.text);
        sb_answer_empty(&a->facts.json);
        sb_answer_spare = a;
        return;
    }
#endif

    sb_json_free(a->json);
    sb_object_free(&a->out);
    sb_buf_free(&a->facts.json);
    free(a);
}
