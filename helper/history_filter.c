#include "history_query.h"
#include "history_text.h"
#include "id.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>


/* A time of the command line: a date, a time of ISO 8601 (UTC when it names no
 * zone), or so much ago. */
static bool
history_filter_time(int64_t *us, const char *text)
{
    char       full[64];
    char      *end;
    size_t     len;
    uint64_t   value;
    long long  n, unit;

    len = strlen(text);

    if (isdigit((unsigned char) text[0])
        && text[strspn(text, "0123456789")] != '\0'
        && text[strspn(text, "0123456789") + 1] == '\0'
        && strchr("smhd", text[len - 1]) != NULL && len < 10)
    {
        n = strtoll(text, &end, 10);
        unit = *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : 86400;
        *us = (int64_t) sb_now_us() - n * unit * 1000000;
        return true;
    }

    if (len >= sizeof(full) - 16) {
        return false;
    }

    strcpy(full, text);

    if (len > 10 && full[10] == ' ') {
        full[10] = 'T';
    }

    if (len == 10) {
        strcat(full, "T00:00:00Z");

    } else if (len == 16) {
        strcat(full, ":00Z");

    } else if (len >= 19 && strpbrk(full + 19, "Zz+-") == NULL) {
        strcat(full, "Z");
    }

    if (sb_time_parse(&value, sb_str(full, strlen(full))) != SB_OK) {
        return false;
    }

    *us = (int64_t) value;

    return true;
}


bool
history_filter_read(history_filter_t *filter, const history_value_t *values)
{
    const history_value_t  *from, *to;

    filter->values = values;
    filter->from_us = -1;
    filter->to_us = -1;

    from = values[HF_SINCE].n ? &values[HF_SINCE] : &values[HF_FROM];
    to = &values[HF_TO];

    if (from->n && !history_filter_time(&filter->from_us, from->text[0])) {
        history_say("%s is no time: write 2026-11-29, 2026-11-29T09:30 or 10m"
                    " (ago)", from->text[0]);
        return false;
    }

    if (to->n && !history_filter_time(&filter->to_us, to->text[0])) {
        history_say("%s is no time: write 2026-11-29, 2026-11-29T09:30 or 10m"
                    " (ago)", to->text[0]);
        return false;
    }

    return true;
}


/* "expression(:name0) OR expression(:name1) ..." for a repeatable option. */
static void
history_filter_any(history_out_t *sql, const history_value_t *v,
    const char *before, const char *name, const char *after)
{
    char  item[64];

    if (v->n == 0) {
        return;
    }

    history_out_text(sql, " AND (");

    for (unsigned i = 0; i < v->n; i++) {
        snprintf(item, sizeof(item), "%s%s:%s%u%s", i ? " OR " : "", before,
                 name, i, after);
        history_out_text(sql, item);
    }

    history_out_text(sql, ")");
}


static void
history_filter_where(history_out_t *sql, const history_filter_t *filter)
{
    static const struct {
        int          option;
        const char  *text;
    } simple[] = {
        { HF_ACTOR, " AND e.actor_id = :actor" },
        { HF_ACTOR_TYPE, " AND e.actor_type = :actor_type" },
        { HF_SOURCE, " AND e.source = :source" },
        { HF_THREAD, " AND e.thread_id = :thread" },
        { HF_RUN, " AND e.run_id = :run" },
        { HF_CORRELATION, " AND e.correlation_id = :correlation" },
        { HF_MIN_DURATION, " AND e.duration_ms >= :duration" },
        { HF_EXIT_CODE, " AND EXISTS(SELECT 1 FROM command_executions c"
          " WHERE c.event_id = e.event_id AND c.exit_code = :exit)" },
        { HF_PATH, " AND (EXISTS(SELECT 1 FROM file_operations f"
          " WHERE f.event_id = e.event_id"
          " AND (op_glob(:path, f.path) OR op_glob(:path, f.old_path)))"
          " OR EXISTS(SELECT 1 FROM gateway_files g"
          " WHERE g.event_id = e.event_id"
          " AND (op_glob(:path, g.path) OR op_glob(:path, g.old_path))))" }
    };

    const history_value_t  *v = filter->values;

    history_filter_any(sql, &v[HF_TYPE], "op_glob(", "type",
                       ", e.operation_type)");
    history_filter_any(sql, &v[HF_STATUS], "e.status = ", "status", "");

    for (size_t i = 0; i < sizeof(simple) / sizeof(simple[0]); i++) {
        if (v[simple[i].option].n) {
            history_out_text(sql, simple[i].text);
        }
    }

    /* What people do in the console itself is kept out of the way unless it is
     * asked for. */

    if (v[HF_TYPE].n == 0) {
        history_out_text(sql, " AND e.operation_type NOT LIKE 'console.%'");
    }

    if (filter->from_us != -1) {
        history_out_text(sql, " AND time_us(e.occurred_at) >= :from");
    }

    if (filter->to_us != -1) {
        history_out_text(sql, " AND time_us(e.occurred_at) < :to");
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
history_filter_bind(sqlite3_stmt *stmt, const history_filter_t *filter)
{
    static const struct {
        int          option;
        const char  *name;
    } texts[] = {
        { HF_ACTOR, ":actor" }, { HF_ACTOR_TYPE, ":actor_type" },
        { HF_SOURCE, ":source" }, { HF_THREAD, ":thread" }, { HF_RUN, ":run" },
        { HF_CORRELATION, ":correlation" }, { HF_PATH, ":path" }
    };

    char                    name[24];
    const history_value_t  *v = filter->values;

    for (unsigned i = 0; i < v[HF_TYPE].n; i++) {
        snprintf(name, sizeof(name), ":type%u", i);
        history_filter_bind_text(stmt, name, v[HF_TYPE].text[i]);
    }

    for (unsigned i = 0; i < v[HF_STATUS].n; i++) {
        snprintf(name, sizeof(name), ":status%u", i);
        history_filter_bind_text(stmt, name, v[HF_STATUS].text[i]);
    }

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (v[texts[i].option].n) {
            history_filter_bind_text(stmt, texts[i].name,
                                     v[texts[i].option].text[0]);
        }
    }

    history_filter_bind_int(stmt, ":duration", v[HF_MIN_DURATION].number);
    history_filter_bind_int(stmt, ":exit", v[HF_EXIT_CODE].number);
    history_filter_bind_int(stmt, ":from", filter->from_us);
    history_filter_bind_int(stmt, ":to", filter->to_us);
}


static sqlite3_stmt *
history_filter_prepare(sqlite3 *db, const char *select, const char *order,
    const history_filter_t *filter, history_error_t *err)
{
    sqlite3_stmt   *stmt;
    history_out_t   sql = { .buf.max = 64 * 1024 };

    history_out_text(&sql, select);
    history_filter_where(&sql, filter);
    history_out_text(&sql, order);

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
