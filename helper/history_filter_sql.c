#include "history_query.h"
#include "history_text.h"

#include <stdio.h>


bool
history_filter_read(history_filter_t *filter, const history_value_t *values)
{
    char  why[200];

    /* in the order of HISTORY_FILTER_ARGS */
    static const char *const  names[HF_COUNT] = {
        "type", "status", "actor", "actor_type", "source", "thread", "run",
        "correlation", "path", NULL, NULL, "from", "from", "to"
    };

    history_filter_init(filter);

    for (unsigned i = 0; i < HF_COUNT; i++) {
        if (names[i] == NULL
            || (i == HF_FROM && values[HF_SINCE].n))
        {
            continue;
        }

        for (unsigned n = 0; n < values[i].n; n++) {
            if (history_filter_set(filter, names[i], values[i].text[n], why,
                                   sizeof(why)) != SB_OK)
            {
                history_say("%s", why);
                return false;
            }
        }
    }

    if (values[HF_EXIT_CODE].n) {
        filter->has_exit_code = true;
        filter->exit_code = values[HF_EXIT_CODE].number;
    }

    if (values[HF_MIN_DURATION].n) {
        filter->min_duration_ms = values[HF_MIN_DURATION].number;
    }

    return true;
}


/* "expression(:name0) OR expression(:name1) ..." for a repeatable option. */
static void
history_filter_any(sb_out_t *sql, const history_filter_any_t *v,
    const char *before, const char *name, const char *after)
{
    char  item[64];

    if (v->n == 0) {
        return;
    }

    sb_out_text(sql, " AND (");

    for (unsigned i = 0; i < v->n; i++) {
        snprintf(item, sizeof(item), "%s%s:%s%u%s", i ? " OR " : "", before,
                 name, i, after);
        sb_out_text(sql, item);
    }

    sb_out_text(sql, ")");
}


static void
history_filter_where(sb_out_t *sql, const history_filter_t *f)
{
    const struct {
        bool         given;
        const char  *text;
    } simple[] = {
        { f->actor, " AND e.actor_id = :actor" },
        { f->actor_type, " AND e.actor_type = :actor_type" },
        { f->source, " AND e.source = :source" },
        { f->thread, " AND e.thread_id = :thread" },
        { f->run, " AND e.run_id = :run" },
        { f->correlation, " AND e.correlation_id = :correlation" },
        { f->min_duration_ms != -1, " AND e.duration_ms >= :duration" },
        { f->has_exit_code, " AND EXISTS(SELECT 1 FROM command_executions c"
          " WHERE c.event_id = e.event_id AND c.exit_code = :exit)" },
        { f->path, " AND (EXISTS(SELECT 1 FROM file_operations f"
          " WHERE f.event_id = e.event_id"
          " AND (op_glob(:path, f.path) OR op_glob(:path, f.old_path)))"
          " OR EXISTS(SELECT 1 FROM gateway_files g"
          " WHERE g.event_id = e.event_id"
          " AND (op_glob(:path, g.path) OR op_glob(:path, g.old_path))))" },
        { f->from_us != -1, " AND time_us(e.occurred_at) >= :from" },
        { f->to_us != -1, " AND time_us(e.occurred_at) < :to" }
    };

    history_filter_any(sql, &f->type, "op_glob(", "type",
                       ", e.operation_type)");
    history_filter_any(sql, &f->status, "e.status = ", "status", "");

    for (size_t i = 0; i < sizeof(simple) / sizeof(simple[0]); i++) {
        if (simple[i].given) {
            sb_out_text(sql, simple[i].text);
        }
    }

    /* What people do in the console itself is kept out of the way unless it is
     * asked for. */

    if (f->type.n == 0 && !f->console) {
        sb_out_text(sql, " AND e.operation_type NOT LIKE 'console.%'");
    }
}


static void
history_filter_bind_text(sqlite3_stmt *stmt, const char *name, const char *text)
{
    int  i;

    i = sqlite3_bind_parameter_index(stmt, name);

    if (i) {
        sqlite3_bind_text(stmt, i, text, -1, SQLITE_STATIC);
    }
}


static void
history_filter_bind_int(sqlite3_stmt *stmt, const char *name, int64_t n)
{
    int  i;

    i = sqlite3_bind_parameter_index(stmt, name);

    if (i) {
        sqlite3_bind_int64(stmt, i, n);
    }
}


static void
history_filter_bind(sqlite3_stmt *stmt, const history_filter_t *f)
{
    char  name[24];

    const struct {
        const char  *name;
        const char  *text;
    } texts[] = {
        { ":actor", f->actor }, { ":actor_type", f->actor_type },
        { ":source", f->source }, { ":thread", f->thread }, { ":run", f->run },
        { ":correlation", f->correlation }, { ":path", f->path }
    };

    for (unsigned i = 0; i < f->type.n; i++) {
        snprintf(name, sizeof(name), ":type%u", i);
        history_filter_bind_text(stmt, name, f->type.text[i]);
    }

    for (unsigned i = 0; i < f->status.n; i++) {
        snprintf(name, sizeof(name), ":status%u", i);
        history_filter_bind_text(stmt, name, f->status.text[i]);
    }

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].text) {
            history_filter_bind_text(stmt, texts[i].name, texts[i].text);
        }
    }

    history_filter_bind_int(stmt, ":duration", f->min_duration_ms);
    history_filter_bind_int(stmt, ":exit", f->exit_code);
    history_filter_bind_int(stmt, ":from", f->from_us);
    history_filter_bind_int(stmt, ":to", f->to_us);
}


static sqlite3_stmt *
history_filter_prepare(sqlite3 *db, const char *select, const char *order,
    const history_filter_t *filter, history_error_t *err)
{
    sqlite3_stmt   *stmt;
    sb_out_t        sql = { .buf.max = 64 * 1024 };

    sb_out_text(&sql, select);
    history_filter_where(&sql, filter);
    sb_out_text(&sql, order);

    stmt = NULL;

    if (sql.rc == SB_OK && sb_buf_cstr(&sql.buf) != NULL) {
        stmt = history_prepare(db, sql.buf.data, err);

        if (stmt != NULL) {
            history_filter_bind(stmt, filter);
        }

    } else {
        history_error(err, "MemoryError", "out of memory");
    }

    sb_buf_free(&sql.buf);

    return stmt;
}


sqlite3_stmt *
history_query_filter(sqlite3 *db, const history_filter_t *filter,
    int64_t limit, history_error_t *err)
{
    sqlite3_stmt  *stmt;

    stmt = history_filter_prepare(db,
               "SELECT e.seq, coalesce(r.cursor, -1), time_us(e.occurred_at)"
               " FROM history_events e"
               " LEFT JOIN gateway_records r ON r.event_id = e.event_id"
               " WHERE 1",
               " ORDER BY 2 DESC, 3 DESC, 1 DESC LIMIT :limit", filter, err);

    if (stmt != NULL) {
        history_filter_bind_int(stmt, ":limit", limit);
    }

    return stmt;
}


sqlite3_stmt *
history_query_passes(sqlite3 *db, const history_filter_t *filter,
    history_error_t *err)
{
    return history_filter_prepare(db, "SELECT e.seq FROM history_events e"
                                      " WHERE e.seq = ?1", "", filter,
                                  err);
}
