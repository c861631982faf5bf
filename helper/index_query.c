/* Questions to the index: which records, in the order of the list. */

#include "index_int.h"

#include "history_db.h"
#include "id.h"
#include "operation.h"
#include "tokenize.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>


#define INDEX_STEPS  2000       /* of SQLite, between two looks at the clock */


/* --- connections ------------------------------------------------------------------ */

static int
index_progress(void *data)
{
    index_reader_t  *r = data;

    if (r->looks && --r->looks == 0) {
        r->until_us = 1;
    }

    return r->until_us && sb_mono_us() > r->until_us;
}


index_reader_t *
index_reader(index_t *ix, char *why, size_t size)
{
    int              rc;
    unsigned         generation;
    index_reader_t  *r;

    pthread_mutex_lock(&ix->lock);
    generation = ix->generation;
    r = ix->readers;

    if (r) {
        ix->readers = r->next;
        ix->nreaders--;
    }

    pthread_mutex_unlock(&ix->lock);

    if (r && r->generation == generation
        && sqlite3_exec(r->db, "begin", NULL, NULL, NULL) == SQLITE_OK)
    {
        return r;
    }

    if (r) {
        (void) sqlite3_close(r->db);
        free(r);
    }

    r = calloc(1, sizeof(index_reader_t));
    if (r == NULL) {
        (void) snprintf(why, size, "no memory");
        return NULL;
    }

    r->generation = generation;
    rc = sqlite3_open_v2(ix->path, &r->db, SQLITE_OPEN_READONLY, ix->vfs);

    if (rc == SQLITE_OK) {
        (void) sqlite3_busy_timeout(r->db, 1000);
        rc = sqlite3_exec(r->db, "pragma temp_store = memory;"
                          "pragma cache_size = -4096;"
                          "select 1 from meta", NULL, NULL, NULL);
    }

    if (rc == SQLITE_OK) {
        rc = index_tokenizer(r->db);
    }

    if (rc == SQLITE_OK) {
        rc = index_secret(r->db, r->secret);
    }

    if (rc == SQLITE_OK) {
        /* one moment of the index for all of a question */
        rc = sqlite3_exec(r->db, "begin", NULL, NULL, NULL);
    }

    if (rc != SQLITE_OK) {
        (void) snprintf(why, size, "the index is being made");
        (void) sqlite3_close(r->db);
        free(r);
        return NULL;
    }

    sqlite3_progress_handler(r->db, INDEX_STEPS, index_progress, r);

    return r;
}


void
index_reader_back(index_t *ix, index_reader_t *r, bool broken)
{
    r->until_us = 0;
    r->looks = 0;
    broken = sqlite3_exec(r->db, "rollback", NULL, NULL, NULL) != SQLITE_OK
             || broken;

    pthread_mutex_lock(&ix->lock);

    if (!broken && ix->nreaders < INDEX_READERS
        && r->generation == ix->generation)
    {
        r->next = ix->readers;
        ix->readers = r;
        ix->nreaders++;
        r = NULL;
    }

    pthread_mutex_unlock(&ix->lock);

    if (r) {
        (void) sqlite3_close(r->db);
        free(r);
    }
}


/* One number, or `none` when there is no row; -1 with *rc on failure. */
static int64_t
index_ask(index_reader_t *r, int *rc, int64_t none, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static int64_t
index_ask(index_reader_t *r, int *rc, int64_t none, const char *fmt, ...)
{
    char           sql[1024];
    int64_t        n;
    va_list        args;
    sqlite3_stmt  *st;

    va_start(args, fmt);
    (void) vsnprintf(sql, sizeof(sql), fmt, args);
    va_end(args);

    *rc = sqlite3_prepare_v2(r->db, sql, -1, &st, NULL);
    if (*rc != SQLITE_OK) {
        return -1;
    }

    n = none;

    if (sqlite3_step(st) == SQLITE_ROW
        && sqlite3_column_type(st, 0) != SQLITE_NULL)
    {
        n = sqlite3_column_int64(st, 0);
    }

    *rc = sqlite3_finalize(st);

    return n;
}


static int64_t
index_ask_text(index_reader_t *r, int *rc, const char *sql, int kind,
    const char *text)
{
    int64_t        id;
    sqlite3_stmt  *st;

    *rc = sqlite3_prepare_v2(r->db, sql, -1, &st, NULL);
    if (*rc != SQLITE_OK) {
        return 0;
    }

    sqlite3_bind_text(st, 1, text, -1, SQLITE_STATIC);

    if (kind >= 0) {
        sqlite3_bind_int(st, 2, kind);
    }

    id = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    *rc = sqlite3_finalize(st);

    return id;
}


/* --- the plan ----------------------------------------------------------------------- */

#define INDEX_IN     2000       /* records that a set of several values may have
                                   to be put together */
#define INDEX_MOST   5000       /* ... that are counted to choose an index */
#define INDEX_LEAD   300        /* no more than that may be looked up in the
                                   full text one by one ... */
#define INDEX_SPREAD 150        /* ... when they are that far apart */
#define INDEX_NPATHS 2000       /* different paths that a glob may match */

typedef struct {
    index_reader_t  *r;
    index_plan_t    *p;
    int              rc;
    int64_t          best;      /* records that the best index leaves */
    char             cond[200]; /* its condition */
} index_choice_t;


static void
index_and(index_choice_t *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void
index_and(index_choice_t *c, const char *fmt, ...)
{
    char     text[256];
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    if (sb_buf_add_str(&c->p->where, sb_lit(" and ")) != SB_OK
        || sb_buf_add(&c->p->where, text, strlen(text)) != SB_OK)
    {
        c->rc = SQLITE_NOMEM;
    }
}


/* A condition that an index answers in the order of the list: is it the one
 * that leaves least? */
static void
index_lead(index_choice_t *c, const char *index, const char *cond)
{
    int64_t  n;

    if (c->rc != SQLITE_OK) {
        return;
    }

    n = index_ask(c->r, &c->rc, 0, "select count(*) from (select 1 from ops"
                  " indexed by %s where %s limit %d)", index, cond,
                  INDEX_MOST);

    if (c->rc == SQLITE_OK && n < c->best) {
        c->best = n;
        (void) snprintf(c->p->index, sizeof(c->p->index), "indexed by %s",
                        index);
        (void) snprintf(c->cond, sizeof(c->cond), "%s", cond);
    }
}


/* column = n; `common` is the value that its index leaves out. */
static void
index_equal(index_choice_t *c, const char *column, int64_t n, int64_t common)
{
    char  cond[120], index[32];

    index_and(c, "o.%s = %" PRId64, column, n);

    if (n == common) {
        return;
    }

    (void) snprintf(index, sizeof(index), "ops_%s", column);

    if (common == INT64_MIN) {
        (void) snprintf(cond, sizeof(cond), "%s = %" PRId64 " and %s is not"
                        " null", column, n, column);
    } else {
        (void) snprintf(cond, sizeof(cond), "%s = %" PRId64 " and %s <> %"
                        PRId64, column, n, column, common);
        index_and(c, "o.%s <> %" PRId64, column, common);
    }

    index_lead(c, index, cond);
}


static int64_t
index_known(index_choice_t *c, int kind, const char *text)
{
    int64_t  id;

    id = index_ask_text(c->r, &c->rc, "select id from words where text = ?1"
                        " and kind = ?2", kind, text);
    c->p->none = c->p->none || id == 0;

    return id;
}


/* One of several numbers. */
static void
index_one_of(index_choice_t *c, const char *column, const sb_buf_t *list,
    bool not)
{
    index_and(c, "o.%s %sin (", column, not ? "not " : "");

    if (sb_buf_add(&c->p->where, list->data, list->len) != SB_OK
        || sb_buf_add_c(&c->p->where, ')') != SB_OK)
    {
        c->rc = SQLITE_NOMEM;
    }
}


static void
index_types(index_choice_t *c, const history_filter_t *f)
{
    bool           hit;
    size_t         n;
    int64_t        last;
    sb_buf_t       list = { .max = 65536 };
    sb_str_t       text;
    sqlite3_stmt  *st;

    if (f->type.n == 0 && f->console) {
        return;
    }

    c->rc = sqlite3_prepare_v2(c->r->db, "select id, text from words where"
                               " kind = 0", -1, &st, NULL);
    if (c->rc != SQLITE_OK) {
        return;
    }

    n = 0;
    last = 0;

    while (sqlite3_step(st) == SQLITE_ROW) {
        text = history_column(st, 1);
        hit = f->type.n == 0 && sb_op_glob(sb_lit("console.*"), text);

        for (unsigned i = 0; i < f->type.n && !hit; i++) {
            hit = sb_op_glob(sb_str(f->type.text[i], strlen(f->type.text[i])),
                             text);
        }

        if (hit && sb_buf_printf(&list, "%s%lld", n ? "," : "",
                                 (long long) (last = sqlite3_column_int64(st,
                                                                          0)))
                   == SB_OK)
        {
            if (n < INDEX_TYPES) {
                c->p->types[n] = last;
            }

            n++;
        }
    }

    c->rc = sqlite3_finalize(st);
    c->p->ntypes = f->type.n && n > 1 && n <= INDEX_TYPES ? (unsigned) n : 0;

    if (f->type.n == 0) {
        if (n) {
            index_one_of(c, "type", &list, true);
        }

    } else if (n == 0) {
        c->p->none = true;

    } else if (n == 1) {
        index_equal(c, "type", last, INT64_MIN);

    } else {
        int64_t  total = c->rc != SQLITE_OK || list.len > 600 ? INDEX_IN
            : index_ask(c->r, &c->rc, 0, "select count(*) from (select 1 from"
                        " ops indexed by ops_type where type in (%.*s) limit"
                        " %d)", (int) list.len, list.data, INDEX_IN);

        index_one_of(c, "type", &list, false);

        if (c->rc == SQLITE_OK && total < INDEX_IN && total < c->best) {
            c->best = total;
            (void) snprintf(c->p->index, sizeof(c->p->index),
                            "indexed by ops_type");
            c->cond[0] = '\0';
        }
    }

    sb_buf_free(&list);
}


static void
index_statuses(index_choice_t *c, const history_filter_t *f)
{
    int64_t   id;
    size_t    n;
    sb_buf_t  list = { .max = 4096 };

    if (f->status.n == 0) {
        return;
    }

    n = 0;
    id = 0;

    for (unsigned i = 0; i < f->status.n && c->rc == SQLITE_OK; i++) {
        int64_t  one = index_ask_text(c->r, &c->rc, "select id from words"
                                      " where text = ?1 and kind = ?2",
                                      INDEX_W_STATUS, f->status.text[i]);
        if (one) {
            id = one;
            (void) sb_buf_printf(&list, "%s%lld", n++ ? "," : "",
                                 (long long) one);
        }
    }

    if (n == 0) {
        c->p->none = true;

    } else if (n == 1) {
        index_equal(c, "status", id, INDEX_SUCCEEDED);

    } else {
        index_one_of(c, "status", &list, false);
    }

    sb_buf_free(&list);
}


/* Which paths a glob means goes into a table of the connection. */
static void
index_paths_of(index_choice_t *c, const char *glob)
{
    bool           ok;
    size_t         prefix, n;
    int64_t        total;
    sb_str_t       path;
    sqlite3_stmt  *st, *add;

    c->rc = sqlite3_exec(c->r->db, "create temp table if not exists asked("
                         "id INTEGER PRIMARY KEY); delete from asked", NULL,
                         NULL, NULL);
    if (c->rc != SQLITE_OK) {
        return;
    }

    prefix = strcspn(glob, "*");

    c->rc = sqlite3_prepare_v2(c->r->db, glob[prefix] == '\0'
                ? "select id, path from paths where path = ?1"
                : "select id, path from paths where path >= ?1"
                  " and path < ?1 || char(1114111)", -1, &st, NULL);
    if (c->rc != SQLITE_OK) {
        return;
    }

    c->rc = sqlite3_prepare_v2(c->r->db, "insert into asked values(?1)", -1,
                               &add, NULL);
    if (c->rc != SQLITE_OK) {
        (void) sqlite3_finalize(st);
        return;
    }

    sqlite3_bind_text(st, 1, glob, (int) prefix, SQLITE_STATIC);
    n = 0;
    ok = true;

    while (n < INDEX_NPATHS && ok && sqlite3_step(st) == SQLITE_ROW) {
        path = history_column(st, 1);

        if (sb_op_glob(sb_str(glob, strlen(glob)), path)) {
            sqlite3_bind_int64(add, 1, sqlite3_column_int64(st, 0));
            ok = index_run(add) == SQLITE_OK;
            n++;
        }
    }

    (void) sqlite3_finalize(add);
    c->rc = sqlite3_finalize(st);

    if (n == 0) {
        c->p->none = true;
    }

    if (n == 0 || c->rc != SQLITE_OK) {
        return;
    }

    if (n >= INDEX_NPATHS) {
        /* too many to name: each path of a record is looked at */
        index_and(c, "exists(select 1 from op_paths q join paths t on"
                  " t.id = q.path where q.pos = o.pos and asked_glob(t.path))");
        return;
    }

    total = index_ask(c->r, &c->rc, 0, "select count(*) from (select 1 from"
                      " asked a cross join op_paths q on q.path = a.id limit"
                      " %d)", INDEX_IN);

    if (c->rc == SQLITE_OK && total < INDEX_IN && total < c->best) {
        index_and(c, "o.pos in (select q.pos from asked a cross join op_paths q"
                  " on q.path = a.id)");
        c->best = total;
        (void) snprintf(c->p->index, sizeof(c->p->index), "not indexed");
        c->cond[0] = '\0';

    } else {
        index_and(c, "exists(select 1 from op_paths q where q.pos = o.pos and"
                  " q.path in (select id from asked))");
    }
}


/* asked_glob(path): only while a plan that needs it is run. */
static void
index_sql_glob(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const char  *glob;

    (void) argc;
    glob = sqlite3_user_data(ctx);

    sqlite3_result_int(ctx, sqlite3_value_text(argv[0]) != NULL
        && sb_op_glob(sb_str(glob, strlen(glob)),
                      sb_str(sqlite3_value_text(argv[0]),
                             (size_t) sqlite3_value_bytes(argv[0]))));
}


/* Positions between which records of a time can stand. */
static void
index_times(index_choice_t *c, const history_filter_t *f)
{
    int64_t  pos, foreign;

    if (f->from_us != -1) {
        index_and(c, "o.started >= %" PRId64, f->from_us);

        foreign = index_ask(c->r, &c->rc, 0, "select pos from ops where pos"
                            " between %" PRId64 " and -1 limit 1",
                            INDEX_FOREIGN + f->from_us);
        pos = c->rc != SQLITE_OK || foreign < 0 ? INDEX_FOREIGN + f->from_us
              : index_ask(c->r, &c->rc, INT64_MAX >> INDEX_SPAN_BITS,
                          "select min(id) from spans where hi >= %" PRId64,
                          f->from_us) << INDEX_SPAN_BITS;

        c->p->lo = pos > c->p->lo ? pos : c->p->lo;
    }

    if (f->to_us != -1 && c->rc == SQLITE_OK) {
        index_and(c, "o.started < %" PRId64, f->to_us);

        pos = index_ask(c->r, &c->rc, -1, "select max(id) from spans where lo <"
                        " %" PRId64, f->to_us);

        /* the last position of that span, or all of others */
        pos = pos < 0 ? -1 : ((pos + 1) << INDEX_SPAN_BITS) - 1;
        c->p->hi = pos < c->p->hi ? pos : c->p->hi;
    }
}


static void
index_ids(index_choice_t *c, const char *column, const char *text)
{
    if (text) {
        index_equal(c, column, index_hash(c->r->secret,
                                          sb_str(text, strlen(text))),
                    INT64_MIN);
    }
}


static void
index_words_of(index_choice_t *c, const history_filter_t *f)
{
    if (f->actor) {
        index_equal(c, "actor", index_known(c, INDEX_W_ACTOR, f->actor),
                    INT64_MIN);
    }

    if (f->actor_type) {
        index_equal(c, "actor_type", index_known(c, INDEX_W_ACTOR_TYPE,
                                                 f->actor_type), INDEX_AGENT);
    }

    if (f->source) {
        index_equal(c, "source", index_known(c, INDEX_W_SOURCE, f->source),
                    INDEX_SDK);
    }
}


static void
index_plan_numbers(index_choice_t *c, const history_filter_t *f)
{
    char     cond[80];
    int64_t  least;

    if (f->has_exit_code) {
        index_and(c, "o.exit_code = %" PRId64, f->exit_code);

        if (f->exit_code) {
            index_and(c, "o.exit_code <> 0");
            (void) snprintf(cond, sizeof(cond), "exit_code = %" PRId64
                            " and exit_code <> 0", f->exit_code);
            index_lead(c, "ops_exit", cond);
        }
    }

    if (f->min_duration_ms != -1) {
        index_and(c, "o.duration >= %" PRId64, f->min_duration_ms);
        least = f->min_duration_ms >= 30000 ? 30000
                : f->min_duration_ms >= 1000 ? 1000 : 0;

        if (least) {
            index_and(c, "o.duration >= %" PRId64, least);
            (void) snprintf(cond, sizeof(cond), "duration >= %" PRId64, least);
            index_lead(c, least == 1000 ? "ops_second" : "ops_long", cond);
        }
    }
}


index_rc_e
index_plan(index_reader_t *r, const index_question_t *q, index_plan_t *p,
    char *why, size_t size)
{
    int                      rc;
    sb_rc_t                  text;
    int64_t                  box, edge;
    index_choice_t           c;
    const history_filter_t  *f = q->filter;

    memset(p, 0, sizeof(index_plan_t));
    memset(&c, 0, sizeof(c));
    p->where.max = 256 * 1024;
    p->match.max = 16 * 1024;
    p->lo = q->has_after && q->after < INT64_MAX ? q->after + 1 : INT64_MIN;
    p->hi = q->has_before && q->before > INT64_MIN ? q->before - 1 : INT64_MAX;
    (void) strcpy(p->index, "not indexed");
    c.r = r;
    c.p = p;
    c.best = INT64_MAX;

    r->looks = q->looks;
    r->until_us = sb_mono_us() + (uint64_t) (q->ms ? q->ms : INDEX_MS) * 1000;

    if (f->q) {
        text = sb_tokens_query(&p->match, sb_str(f->q, strlen(f->q)),
                               INDEX_TERMS);

        if (text != SB_OK) {
            (void) snprintf(why, size, text == SB_LIMIT
                            ? "q has more than %d words and phrases, or is too"
                              " long"
                            : "q has no word that can be searched for",
                            INDEX_TERMS);
            return text == SB_NOMEM ? INDEX_FAILED : INDEX_BAD;
        }

        p->text = true;
    }

    if (q->dir) {
        box = index_ask_text(r, &c.rc, "select id from boxes where dir = ?1",
                             -1, q->dir);
        p->none = box == 0;
        index_and(&c, "o.box = %" PRId64, box);
        {
            char  cond[64];

            (void) snprintf(cond, sizeof(cond), "box = %" PRId64, box);
            index_lead(&c, "ops_box", cond);
        }
    }

    index_words_of(&c, f);
    index_ids(&c, "thread", f->thread);
    index_ids(&c, "run", f->run);
    index_ids(&c, "correlation", f->correlation);
    index_statuses(&c, f);
    index_types(&c, f);
    index_plan_numbers(&c, f);

    if (f->path && c.rc == SQLITE_OK) {
        (void) sqlite3_create_function(r->db, "asked_glob", 1, SQLITE_UTF8,
                                       (void *) (uintptr_t) f->path,
                                       index_sql_glob, NULL, NULL);
        index_paths_of(&c, f->path);
    }

    index_times(&c, f);

    if (p->text && c.rc == SQLITE_OK && c.cond[0] && c.best < INDEX_MOST
        && !p->none)
    {
        /* the full text is asked for that stretch only */
        edge = index_ask(r, &c.rc, INT64_MAX, "select min(pos) from ops %s"
                         " where %s", p->index, c.cond);
        p->lo = edge > p->lo ? edge : p->lo;

        if (c.rc == SQLITE_OK) {
            edge = index_ask(r, &c.rc, INT64_MIN, "select max(pos) from ops %s"
                             " where %s", p->index, c.cond);
            p->hi = edge < p->hi ? edge : p->hi;
        }
    }

    /* one by one costs far more for each than going through the stretch */
    if (c.best != INT64_MAX) {
        p->ntypes = 0;
    }

    if (p->lo > p->hi) {
        p->none = true;
    }

    p->few = p->text && !p->none && c.best <= INDEX_LEAD
             && (p->lo < 0 || p->hi == INT64_MAX
                 || (p->hi - p->lo) / INDEX_SPREAD > c.best);
    rc = c.rc;

    if (rc == SQLITE_OK && (sb_buf_cstr(&p->where) == NULL
                            || sb_buf_cstr(&p->match) == NULL))
    {
        rc = SQLITE_NOMEM;
    }

    if (rc == SQLITE_OK || p->none) {
        return INDEX_OK;
    }

    (void) snprintf(why, size, "%s", rc == SQLITE_INTERRUPT
                    ? "the question took too long" : sqlite3_errstr(rc));

    return rc == SQLITE_INTERRUPT ? INDEX_PARTIAL : INDEX_FAILED;
}


void
index_plan_free(index_plan_t *p)
{
    sb_buf_free(&p->where);
    sb_buf_free(&p->match);
}
