/*
 * What the helper counts about itself, for metrics and health.  Any thread may
 * count and read; a number is right by itself, two of them may be of different
 * moments.
 */

#ifndef STATS_H_INCLUDED
#define STATS_H_INCLUDED

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Name, kind (counter: only grows while the process lives; gauge), what it is.
 * Names are those of the metrics, without their prefix.
 */
#define STATS_LIST(X)                                                        \
    X(JOURNAL_BYTES, gauge, "journal_bytes",                                 \
      "bytes of all journal segments")                                       \
    X(JOURNAL_SEGMENTS, gauge, "journal_segments", "journal segments")       \
    X(JOURNAL_SEGMENTS_MAX, gauge, "journal_segments_max",                   \
      "segments at which appending is refused")                              \
    X(JOURNAL_CURSOR, gauge, "journal_cursor", "cursor of the last record")  \
    X(JOURNAL_RECORDS, counter, "journal_records_total",                     \
      "records appended")                                                    \
    X(JOURNAL_APPENDS, counter, "journal_appends_total",                     \
      "writes that appended them")                                           \
    X(JOURNAL_ERRORS, counter, "journal_errors_total",                       \
      "batches that could not be appended")                                  \
    X(JOURNAL_REFUSED, counter, "journal_refused_total",                     \
      "records refused because the journal could not take them")             \
    X(JOURNAL_FAILING, gauge, "journal_failing",                             \
      "1: the last append failed, records are refused")                      \
    X(CONNECTIONS, gauge, "connections", "connections of workers")           \
    X(CONNECTIONS_REFUSED, counter, "connections_refused_total",             \
      "connections refused because there were too many")                     \
    X(CONNECTIONS_CUT, counter, "connections_cut_total",                     \
      "connections ended because what the helper said was not read")         \
    X(FETCH_WAITING, gauge, "upstream_requests_waiting",                     \
      "requests of the helper's own to upstream that wait")                  \
    X(FETCH_REFUSED, counter, "upstream_requests_refused_total",             \
      "such requests that found no room")                                    \
    X(FETCH_FAILED, counter, "upstream_requests_failed_total",               \
      "such requests without an answer")                                     \
    X(OPERATIONS, gauge, "operations", "operations begun and not ended")     \
    X(INSTANCES, gauge, "worker_instances",                                  \
      "workers whose last frame is remembered")                              \
    X(DETACHED, gauge, "detached",                                           \
      "commands followed that go on without their request")                  \
    X(APPLIED_CURSOR, gauge, "applied_cursor",                               \
      "everything up to this cursor is in history files, or set aside")      \
    X(APPLIED_US, gauge, "applied_us",                                       \
      "records older than this time (Unix microseconds) are applied")        \
    X(APPLY_RECORDS, counter, "apply_records_total", "records applied")      \
    X(APPLY_COMMITS, counter, "apply_commits_total", "transactions")         \
    X(APPLY_BUSY, gauge, "apply_busy",                                       \
      "1: there is much traffic; files and index are written behind it")     \
    X(APPLY_HURRIES, counter, "apply_hurries_total",                         \
      "times the lag bound was passed and pauses were lifted")               \
    X(STALLED, gauge, "stalled_sandboxes",                                   \
      "sandboxes whose history file cannot be written now")                  \
    X(STALLED_RECORDS, gauge, "stalled_records",                             \
      "records that wait for these files")                                   \
    X(JOURNAL_DAMAGED, counter, "journal_damaged_records_total",             \
      "records that were acknowledged and cannot be read any more")          \
    X(HANDLES, gauge, "history_handles", "open history files")               \
    X(READERS, gauge, "history_readers",                                     \
      "history files kept open to be read, by nobody at the moment")         \
    X(READERS_MAX, gauge, "history_readers_max", "... at most")              \
    X(HANDLES_MAX, gauge, "history_handles_max", "files kept open at most")  \
    X(LIVE_SUBSCRIBERS, gauge, "live_streams", "live streams that are open") \
    X(LIVE_SEARCHES, gauge, "live_searches",                                 \
      "of these, those with a q")                                            \
    X(LIVE_EVENTS, counter, "live_events_total",                             \
      "events made for them")                                                \
    X(LIVE_BEHIND, counter, "live_behind_total",                             \
      "times a stream fell behind what is kept in memory")                   \
    X(LIVE_RESETS, counter, "live_resets_total",                             \
      "times what a stream missed was not kept any more")                    \
    X(LIVE_PARTIAL, counter, "live_partial_total",                           \
      "records of open operations that found no room there: events partial") \
    X(ERRANDS_REFUSED, counter, "errands_refused_total",                     \
      "changes of sandbox-history that found too many waiting")              \
    X(CONSOLE_REFUSED, counter, "console_records_refused_total",             \
      "records of what people do in the console that found no room")         \
    X(UNTIDY, gauge, "history_unfolded_logs",                                \
      "files whose write-ahead log is not in the database yet")              \
    X(WAL_MAX_BYTES, gauge, "history_wal_max_bytes",                         \
      "longest write-ahead log of a history file since the start")                             \
    X(CONTENTS_BYTES, gauge, "contents_bytes",                               \
      "stored contents of files")                                            \
    X(CONTENTS_MAX, gauge, "contents_max_bytes",                             \
      "at which the oldest contents go")                                     \
    X(CONTENTS_KEPT, counter, "contents_kept_total", "contents stored")      \
    X(CONTENTS_SAME, counter, "contents_same_total",                         \
      "contents that were there already")                                    \
    X(CONTENTS_MISSED, counter, "contents_missed_total",                     \
      "files written or read whose content is not kept: too large, or a"     \
      " piece is missing")                                                   \
    X(CONTENTS_DROPPED, counter, "contents_dropped_total",                   \
      "contents that made room at the bound")                                \
    X(BEFORE_RUNNING, gauge, "file_fetches",                                 \
      "files that are being read in sandboxes before they are changed")      \
    X(BEFORE_LIMIT, gauge, "file_fetches_limit",                             \
      "of them at once at most")                                             \
    X(BEFORE_READ, counter, "file_fetches_read_total", "files so read")      \
    X(BEFORE_FAILED, counter, "file_fetches_failed_total",                   \
      "files that could not be read: too large, late, or refused")           \
    X(BEFORE_REFUSED, counter, "file_fetches_refused_total",                 \
      "files not read because too many others were")                         \
    X(CHECKS_RUNNING, gauge, "file_checks",                                  \
      "files that are being read in sandboxes for If-Match")                 \
    X(CHECKS_REFUSED, counter, "file_checks_refused_total",                  \
      "uploads refused because too many others were checked")                \
    X(INSPECT_RUNNING, gauge, "inspections",                                 \
      "archives that are being looked into")                                 \
    X(INSPECT_LIMIT, gauge, "inspections_limit",                             \
      "of them at once at most")                                             \
    X(INSPECT_WAITING, gauge, "inspections_waiting",                         \
      "archives that wait for that")                                         \
    X(INSPECTED, counter, "inspections_total", "archives looked into")       \
    X(INSPECT_FAILED, counter, "inspections_failed_total",                   \
      "archives that could not be: the process died, or took too long")      \
    X(INSPECT_REFUSED, counter, "inspections_refused_total",                 \
      "archives not looked into because too many others waited")             \
    X(FILES_LOST, counter, "history_files_lost_total",                       \
      "history files that were set aside or vanished")                       \
    X(HISTORY_BYTES, gauge, "history_bytes",                                 \
      "bytes of all history files, archived ones too")                       \
    X(HISTORY_LIMIT, gauge, "history_limit_bytes",                           \
      "sandbox_history_total; 0: no limit")                                  \
    X(HISTORY_FILES, gauge, "history_files", "history files")                \
    X(HISTORY_FULL, gauge, "history_full_sandboxes",                         \
      "sandboxes whose strict operations are refused (fail_operation)")      \
    X(PURGED, counter, "history_purged_operations_total",                    \
      "operations deleted by a limit")                                       \
    X(PURGED_BYTES, counter, "history_purged_output_bytes_total",            \
      "their output")                                                        \
    X(UNKEPT_BYTES, counter, "history_unkept_output_bytes_total",            \
      "output not kept because its file was full")                           \
    X(UNKEPT, counter, "history_unkept_operations_total",                    \
      "operations not kept because their file was full")                     \
    X(ARCHIVED, counter, "history_files_archived_total",                     \
      "files of sandboxes that are gone that were archived")                 \
    X(REMOVED, counter, "history_files_removed_total",                       \
      "files that were deleted whole, archived ones too")                    \
    X(LOCKS, gauge, "lock_requests", "operations and leases that hold keys"  \
      " or wait for them")                                                   \
    X(LOCKS_MAX, gauge, "lock_requests_max", "at which more are refused")    \
    X(LOCKS_WAITING, gauge, "lock_waiters", "those that wait")               \
    X(LOCK_KEYS, gauge, "lock_keys", "keys held or waited for")              \
    X(LOCK_WAITS, counter, "lock_waits_total",                               \
      "operations that waited for a key")                                    \
    X(LOCK_TIMEOUTS, counter, "lock_timeouts_total",                         \
      "operations refused because a key was not free in time")               \
    X(LOCK_EVENTS_LOST, counter, "lock_events_lost_total",                   \
      "events of locks that live streams did not get")                       \
    X(LOCKS_REFUSED, counter, "lock_refused_total",                          \
      "operations refused because there are too many locks")                 \
    X(LIMIT_REFUSED, counter, "limit_refused_total",                         \
      "operations refused because too many ran in their sandbox")            \
    X(LEASES, gauge, "leases", "leases held or waited for")                  \
    X(LEASES_MAX, gauge, "leases_max", "at which more are refused")          \
    X(LEASES_EXPIRED, counter, "leases_expired_total",                       \
      "leases that were not renewed in time")

typedef enum {
#define STATS_ENUM(id, kind, name, help)  STATS_##id,
    STATS_LIST(STATS_ENUM)
#undef STATS_ENUM
    STATS_COUNT
} stats_e;

void stats_add(stats_e n, uint64_t v);
void stats_set(stats_e n, uint64_t v);
uint64_t stats_get(stats_e n);

/* "journal_bytes"; what it is, in words; does it only grow? */
const char *stats_name(stats_e n);
const char *stats_help(stats_e n);
bool stats_is_counter(stats_e n);

/* How old the oldest record is that waits for being applied, at most, in
 * microseconds; 0: none waits. */
uint64_t stats_lag_us(uint64_t now_us);
/* Records in the journal that are not applied. */
uint64_t stats_lag_records(void);

/* --- times --------------------------------------------------------------- */

typedef enum {
    STATS_T_APPEND, STATS_T_SYNC, STATS_T_COMMIT, STATS_T_CHECKPOINT,
    STATS_TIMES
} stats_time_e;

#define STATS_BUCKETS  16

/* Upper bounds of the buckets in microseconds; the last is without bound
 * (UINT64_MAX). */
extern const uint64_t  stats_bounds[STATS_BUCKETS];

typedef struct {
    uint64_t  bucket[STATS_BUCKETS];    /* each for itself, not summed up */
    uint64_t  count;
    uint64_t  sum_us;
    uint64_t  max_us;                   /* since the process began */
} stats_times_t;

void stats_time(stats_time_e n, uint64_t us);
void stats_times(stats_time_e n, stats_times_t *out);
/* "journal_append_seconds" */
const char *stats_time_name(stats_time_e n);
const char *stats_time_help(stats_time_e n);

#endif /* STATS_H_INCLUDED */
