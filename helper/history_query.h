/*
 * Records for people: which of them (filters), and one of them as a row whose
 * columns are named here.
 */

#ifndef HISTORY_QUERY_H_INCLUDED
#define HISTORY_QUERY_H_INCLUDED

#include "history_args.h"
#include "history_db.h"
#include "history_filter.h"
#include "history_pieces.h"

/* Makes a connection ready for the queries below: SQL functions, and empty
 * views for gateway_ tables that the file has not. */
bool history_query_prepare(sqlite3 *db, history_error_t *err);

/* Columns of a record: enum, expression. */
#define HISTORY_COLUMNS(X)                                                   \
    X(SEQ,              "r.seq")                                             \
    X(CURSOR,           "r.cursor")                                          \
    X(ID,               "e.event_id")                                        \
    X(SANDBOX,          "e.sandbox_id")                                      \
    X(SOURCE,           "e.source")                                          \
    X(TYPE,             "e.operation_type")                                  \
    X(STATUS,           "e.status")                                          \
    X(STARTED,          "e.occurred_at")                                     \
    X(COMPLETED,        "e.completed_at")                                    \
    X(DURATION_MS,      "e.duration_ms")                                     \
    X(ACTOR_TYPE,       "e.actor_type")                                      \
    X(ACTOR_ID,         "e.actor_id")                                        \
    X(THREAD,           "e.thread_id")                                       \
    X(RUN,              "e.run_id")                                          \
    X(CORRELATION,      "e.correlation_id")                                  \
    X(REQUEST,          "e.request_json")                                    \
    X(RESULT,           "e.result_json")                                     \
    X(COMMAND,          "c.command")                                         \
    X(CWD,              "c.cwd")                                             \
    X(TIMEOUT_MS,       "c.timeout_ms")                                      \
    X(EXIT_CODE,        "c.exit_code")                                       \
    X(COMMAND_ID,       "c.provider_command_id")                             \
    X(OUTPUT_COMPLETE,  "c.output_complete")                                 \
    X(OUTPUT_STATE,     "c.history_storage_state")                           \
    X(STDOUT_BYTES,     HISTORY_STREAM_SUM("stdout"))                        \
    X(STDERR_BYTES,     HISTORY_STREAM_SUM("stderr"))                        \
    X(STDOUT_TOTAL,     HISTORY_RESULT("stdout_total_bytes"))                \
    X(STDERR_TOTAL,     HISTORY_RESULT("stderr_total_bytes"))                \
    X(PATH,             "f.path")                                            \
    X(OLD_PATH,         "f.old_path")                                        \
    X(CHANGE,           "f.change_type")                                     \
    X(BEFORE_HASH,      "f.before_hash")                                     \
    X(AFTER_HASH,       "f.after_hash")                                      \
    X(BEFORE_SIZE,      "f.before_size")                                     \
    X(AFTER_SIZE,       "f.after_size")                                      \
    X(HAS_DIFF,         "f.diff_data IS NOT NULL")                           \
    X(FILES,            "(SELECT count(*) FROM gateway_files g"              \
                        " WHERE g.event_id = e.event_id)")                   \
    X(FILES_TOTAL,      "w.files_total")                                     \
    X(METHOD,           "w.method")                                          \
    X(URL_PATH,         "w.path")                                            \
    X(PORT,             "w.port")                                            \
    X(CLIENT,           "w.client")                                          \
    X(AGENT,            "w.agent")                                           \
    X(REQUEST_ID,       "w.request_id")                                      \
    X(HTTP_STATUS,      "w.http_status")                                     \
    X(UPSTREAM_STATUS,  "w.upstream_status")                                 \
    X(UPSTREAM,         "w.upstream")                                        \
    X(ROUTE,            "w.route")                                           \
    X(BYTES_IN,         "w.bytes_in")                                        \
    X(BYTES_OUT,        "w.bytes_out")                                       \
    X(DURATION_US,      "w.duration_us")                                     \
    X(IDENTITY,         "w.identity")                                        \
    X(PARENT,           "w.parent")                                          \
    X(ERROR_CODE,       "w.error_code")                                      \
    X(REASON,           "w.reason")                                          \
    X(VERDICT,          HISTORY_RESULT("verdict"))                           \
    X(RULE,             HISTORY_RESULT("verdict_rule"))                      \
    X(LOCK_WAITED_US,   HISTORY_RESULT("lock_waited_us"))                    \
    X(RECORD,           "w.record")                                          \
    X(NAMED,            "w.sandbox")                                         \
    X(FOLDED,           "d.count")                                           \
    X(FOLDED_AT,        "d.last_at")                                         \
    X(CHAIN,            "(SELECT lower(hex(k.hash)) FROM gateway_chain k"    \
                        " WHERE k.event_id = e.event_id"                     \
                        " ORDER BY k.n DESC LIMIT 1)")                       \
    X(GAP_OPERATIONS,   "p.operations")                                      \
    X(GAP_BYTES,        "p.output_bytes")                                    \
    X(GAP_FROM,         "p.from_at")                                         \
    X(GAP_TO,           "p.to_at")                                           \
    X(GAP_REASON,       "p.reason")                                          \
    X(DETACHED_SINCE,   "t.since")                                           \
    X(DETACHED_ENDED,   "t.ended_at")

/* What we wrote ourselves is as long as it was, which is known without a look
 * behind the data. */
#define HISTORY_STREAM_SUM(stream)                                           \
    "(SELECT sum(CASE WHEN r.seq IS NULL THEN k.original_size"               \
    " ELSE length(k.data) END) FROM command_output_chunks k"                 \
    " WHERE k.event_id = e.event_id AND k.stream = '" stream "')"

#define HISTORY_RESULT(member)                                               \
    "CASE WHEN json_valid(e.result_json) THEN"                               \
    " json_extract(e.result_json, '$." member "') END"

typedef enum {
#define X(name, expression)  HR_##name,
    HISTORY_COLUMNS(X)
#undef X
    HR_COUNT
} history_column_e;

/* A statement that gives the row of one record: by history_events.seq in ?1,
 * or (by_id) by its event id. */
sqlite3_stmt *history_query_record(sqlite3 *db, bool by_id,
    history_error_t *err);

/* Options of filters, to stand first in a command's table, in this order. */
#define HISTORY_FILTER_ARGS                                                  \
    { "--type", 0, HISTORY_ARG_TEXT, false, true, NULL },                    \
    { "--status", 0, HISTORY_ARG_TEXT, false, true,                          \
      "started|succeeded|failed|timeout|cancelled|unknown" },                \
    { "--actor", 0, HISTORY_ARG_TEXT, false, false, NULL },                  \
    { "--actor-type", 0, HISTORY_ARG_TEXT, false, false, NULL },             \
    { "--source", 0, HISTORY_ARG_TEXT, false, false, NULL },                 \
    { "--thread", 0, HISTORY_ARG_TEXT, false, false, NULL },                 \
    { "--run", 0, HISTORY_ARG_TEXT, false, false, NULL },                    \
    { "--correlation", 0, HISTORY_ARG_TEXT, false, false, NULL },            \
    { "--path", 0, HISTORY_ARG_TEXT, false, false, NULL },                   \
    { "--exit-code", 0, HISTORY_ARG_INT, false, false, NULL },               \
    { "--min-duration-ms", 0, HISTORY_ARG_INT, false, false, NULL },         \
    { "--from", 0, HISTORY_ARG_TEXT, false, false, NULL },                   \
    { "--since", 0, HISTORY_ARG_TEXT, false, false, NULL },                  \
    { "--to", 0, HISTORY_ARG_TEXT, false, false, NULL }

enum {
    HF_TYPE = 0, HF_STATUS, HF_ACTOR, HF_ACTOR_TYPE, HF_SOURCE, HF_THREAD,
    HF_RUN, HF_CORRELATION, HF_PATH, HF_EXIT_CODE, HF_MIN_DURATION, HF_FROM,
    HF_SINCE, HF_TO,
    HF_COUNT
};

#define HISTORY_FILTER_HELP                                                  \
    "  --type GLOB            type, such as \"file.*\"; may be repeated\n"   \
    "  --status STATUS        started, succeeded, failed, timeout, cancelled\n"\
    "                         or unknown; may be repeated\n"                 \
    "  --actor ID             who did it; also --actor-type TYPE\n"          \
    "  --run ID               also --thread ID, --correlation ID,\n"         \
    "                         --source NAME\n"                               \
    "  --path GLOB            a file of the operation, such as \"/etc/*\"\n" \
    "  --exit-code N          of its command\n"                              \
    "  --min-duration-ms N    took at least this long\n"                     \
    "  --since TIME --to TIME began in this time: 2026-11-29,\n"             \
    "                         2026-11-29T09:30, \"10m\" (ago; also s, h, d)\n"

/* Reads them; false after a sentence.  `values` must outlive the filter. */
bool history_filter_read(history_filter_t *filter,
    const history_value_t *values);

/*
 * A statement over the records that pass the filters: history_events.seq,
 * cursor (-1: none), Unix microseconds of the beginning.  The newest `limit`
 * (-1: all), newest first.
 */
sqlite3_stmt *history_query_filter(sqlite3 *db, const history_filter_t *filter,
    int64_t limit, history_error_t *err);

/* A statement that tells whether the record with history_events.seq ?1 passes:
 * a row, or none. */
sqlite3_stmt *history_query_passes(sqlite3 *db, const history_filter_t *filter,
    history_error_t *err);

/*
 * Calls `piece` with what a command wrote, in order: one stream ("stdout",
 * "stderr"), or both as they came (NULL).  `after` skips the chunks of a
 * stream, or the runs of both, up to this number (-1: none).  `piece` returns
 * false to stop.  1 all was read, 0 stopped, -1 with err.
 */
typedef bool (*history_piece_pt)(void *data, const history_piece_t *piece,
    sb_str_t bytes);
int history_query_output(sqlite3 *db, const char *id, const char *stream,
    int64_t after, history_piece_pt piece, void *data, history_error_t *err);

/* history_events.seq of a record: 1, 0 it is not there, -1 with err. */
int history_query_row(sqlite3 *db, const char *id, int64_t *row,
    history_error_t *err);
/* The directory of the sandbox that a record went to from _gateway, whose file
 * this is: 1, 0 it did not, -1 with err. */
int history_query_moved(sqlite3 *db, const char *id, char dir[130],
    history_error_t *err);

#endif /* HISTORY_QUERY_H_INCLUDED */
