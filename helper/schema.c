#include "schema.h"

#include "digest.h"

#include <inttypes.h>
#include <stdio.h>


static const char  schema_format[] =
    "create table if not exists history_meta("
        "key TEXT PRIMARY KEY, value TEXT NOT NULL);"

    "create table if not exists history_events("
        "seq INTEGER PRIMARY KEY AUTOINCREMENT,"
        "event_id TEXT NOT NULL UNIQUE,"
        "provider_key TEXT NOT NULL,"
        "sandbox_id TEXT NOT NULL,"
        "sandbox_instance_id TEXT NOT NULL,"
        "source TEXT NOT NULL DEFAULT 'sdk',"
        "actor_type TEXT NOT NULL,"
        "actor_id TEXT,"
        "thread_id TEXT,"
        "run_id TEXT,"
        "correlation_id TEXT,"
        "operation_type TEXT NOT NULL,"
        "status TEXT NOT NULL,"
        "occurred_at TEXT NOT NULL,"
        "completed_at TEXT,"
        "duration_ms INTEGER,"
        "request_json TEXT,"
        "result_json TEXT,"
        "schema_version INTEGER NOT NULL DEFAULT 1);"
    "create index if not exists idx_history_sandbox_seq on history_events("
        "provider_key, sandbox_id, sandbox_instance_id, seq);"
    "create index if not exists idx_history_run on history_events("
        "thread_id, run_id, seq);"
    "create index if not exists idx_history_operation on history_events("
        "operation_type, status, seq);"

    "create table if not exists history_changes("
        "seq INTEGER PRIMARY KEY AUTOINCREMENT,"
        "change_id TEXT NOT NULL UNIQUE,"
        "event_id TEXT NOT NULL,"
        "change_type TEXT NOT NULL CHECK(change_type IN ('created',"
            "'output_appended','completed','storage_state_changed')),"
        "changed_at TEXT NOT NULL,"
        "schema_version INTEGER NOT NULL DEFAULT 1);"
    "create index if not exists idx_history_changes_event on "
        "history_changes(event_id, seq);"

    "create table if not exists command_executions("
        "event_id TEXT PRIMARY KEY REFERENCES history_events(event_id) "
            "ON DELETE CASCADE,"
        "command TEXT NOT NULL,"
        "cwd TEXT NOT NULL,"
        "environment_json TEXT,"
        "timeout_ms INTEGER,"
        "exit_code INTEGER,"
        "provider_command_id TEXT,"
        "output_complete INTEGER NOT NULL DEFAULT 1,"
        "history_storage_state TEXT NOT NULL DEFAULT 'complete');"

    "create table if not exists command_output_chunks("
        "id INTEGER PRIMARY KEY AUTOINCREMENT,"
        "event_id TEXT NOT NULL REFERENCES history_events(event_id) "
            "ON DELETE CASCADE,"
        "stream TEXT NOT NULL CHECK(stream IN ('stdout','stderr')),"
        "chunk_index INTEGER NOT NULL,"
        "data BLOB NOT NULL,"
        "encoding TEXT NOT NULL DEFAULT 'identity' "
            "CHECK(encoding IN ('identity','gzip','zlib')),"
        "original_size INTEGER NOT NULL,"
        "created_at TEXT NOT NULL,"
        "UNIQUE(event_id, stream, chunk_index));"
    "create index if not exists idx_command_output_chunks on "
        "command_output_chunks(event_id, stream, chunk_index);"

    "create table if not exists file_operations("
        "event_id TEXT PRIMARY KEY REFERENCES history_events(event_id) "
            "ON DELETE CASCADE,"
        "path TEXT NOT NULL,"
        "old_path TEXT,"
        "change_type TEXT NOT NULL,"
        "before_hash TEXT,"
        "after_hash TEXT,"
        "before_size INTEGER,"
        "after_size INTEGER,"
        "diff_data BLOB,"
        "diff_encoding TEXT CHECK(diff_encoding IS NULL OR "
            "diff_encoding IN ('identity','gzip','zlib')),"
        "diff_complete INTEGER NOT NULL DEFAULT 1);"

    "create table if not exists history_consumers("
        "consumer_id TEXT PRIMARY KEY,"
        "acknowledged_seq INTEGER NOT NULL DEFAULT 0,"
        "updated_at TEXT NOT NULL);"

    "create table if not exists history_leases("
        "resource_key TEXT PRIMARY KEY,"
        "owner_id TEXT NOT NULL,"
        "expires_at TEXT NOT NULL,"
        "updated_at TEXT NOT NULL);"

    "pragma user_version = 1;";


#define CHAIN_TABLE                                                          \
    "create table if not exists gateway_chain("                              \
        "n INTEGER PRIMARY KEY,"                                             \
        "event_id TEXT,"                                                     \
        "kind TEXT NOT NULL,"                                                \
        "detail TEXT,"                                                       \
        "purged INTEGER,"                                                    \
        "hash BLOB NOT NULL);"                                               \
    "create index if not exists idx_gateway_chain_event on "                 \
        "gateway_chain(event_id);"                                           \
    "create index if not exists idx_gateway_chain_purged on "                \
        "gateway_chain(purged) where purged is not null;"

#define EVENT_KEY                                                            \
    "event_id TEXT PRIMARY KEY REFERENCES history_events(event_id) "         \
    "ON DELETE CASCADE,"

/* Also of an older file. */
#define PURGE_TABLE                                                           \
    "create table if not exists gateway_purges("                             \
        "n INTEGER PRIMARY KEY,"                                             \
        "event_id TEXT NOT NULL,"                                            \
        "at TEXT NOT NULL,"                                                  \
        "rule TEXT NOT NULL,"                                                \
        "operations INTEGER NOT NULL,"                                       \
        "changes INTEGER NOT NULL,"                                          \
        "output_bytes INTEGER NOT NULL,"                                     \
        "from_seq INTEGER,"                                                  \
        "to_seq INTEGER,"                                                    \
        "from_at TEXT,"                                                      \
        "to_at TEXT);"                                                       \
    "create index if not exists idx_gateway_purges on "                      \
        "gateway_purges(event_id);"

/* Files over time: tables and indexes that came later. */
#define VERSION_TABLES                                                       \
    "create table if not exists gateway_contents("                           \
        "id INTEGER PRIMARY KEY,"                                            \
        "sha256 TEXT NOT NULL UNIQUE,"                                       \
        "size INTEGER NOT NULL,"                                             \
        "stored INTEGER NOT NULL,"                                           \
        "encoding TEXT NOT NULL,"                                            \
        "used INTEGER NOT NULL,"                                             \
        "data BLOB NOT NULL);"                                               \
    "create index if not exists idx_gateway_contents_used on "               \
        "gateway_contents(used, stored);"                                    \
    "create table if not exists gateway_parts("                              \
        "event_id TEXT NOT NULL REFERENCES history_events(event_id) "        \
            "ON DELETE CASCADE,"                                             \
        "n INTEGER NOT NULL,"                                                \
        "kind INTEGER NOT NULL,"                                             \
        "offset INTEGER NOT NULL,"                                           \
        "data BLOB NOT NULL,"                                                \
        "PRIMARY KEY(event_id, n, kind, offset));"                           \
    "create index if not exists idx_gateway_files_old on "                   \
        "gateway_files(old_path) where old_path is not null;"                \
    "create index if not exists idx_gateway_files_sha256 on "                \
        "gateway_files(sha256) where sha256 is not null;"                    \
    "create index if not exists idx_gateway_files_before on "                \
        "gateway_files(before_sha256) where before_sha256 is not null;"

static const char  schema_gateway[] =
    "create table if not exists gateway_state("
        "key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;"

    "create table if not exists gateway_records("
        "seq INTEGER PRIMARY KEY,"
        "event_id TEXT NOT NULL UNIQUE,"
        "cursor INTEGER NOT NULL,"
        "moved_to TEXT);"

    CHAIN_TABLE

    "create table if not exists gateway_wire("
        EVENT_KEY
        "sandbox TEXT,"
        "method TEXT,"
        "path TEXT,"
        "port INTEGER,"
        "client TEXT,"
        "agent TEXT,"
        "request_id TEXT,"
        "http_status INTEGER,"
        "upstream_status INTEGER,"
        "upstream TEXT,"
        "route TEXT,"
        "bytes_in INTEGER,"
        "bytes_out INTEGER,"
        "duration_us INTEGER,"
        "identity TEXT,"
        "parent TEXT,"
        "error_code TEXT,"
        "reason TEXT,"
        "record TEXT,"
        "files_total INTEGER,"
        "foldable INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;"
    "create index if not exists idx_gateway_wire_parent on "
        "gateway_wire(parent) WHERE parent IS NOT NULL;"

    "create table if not exists gateway_files("
        "event_id TEXT NOT NULL REFERENCES history_events(event_id) "
            "ON DELETE CASCADE,"
        "n INTEGER NOT NULL,"
        "path TEXT NOT NULL,"
        "old_path TEXT,"
        "size INTEGER,"
        "sha256 TEXT,"
        "mode INTEGER,"
        "flags INTEGER NOT NULL DEFAULT 0,"
        "before TEXT,"
        "before_size INTEGER,"
        "before_sha256 TEXT,"
        "content TEXT,"
        "PRIMARY KEY(event_id, n)) WITHOUT ROWID;"
    "create index if not exists idx_gateway_files_path on "
        "gateway_files(path);"
    VERSION_TABLES

    "create table if not exists gateway_output("
        "event_id TEXT NOT NULL REFERENCES history_events(event_id) "
            "ON DELETE CASCADE,"
        "ord INTEGER NOT NULL,"
        "stream TEXT NOT NULL,"
        "chunk_index INTEGER NOT NULL,"
        "offset INTEGER NOT NULL,"
        "length INTEGER NOT NULL,"
        "at TEXT NOT NULL,"
        "cursor INTEGER NOT NULL,"
        "other_index INTEGER,"
        "other_offset INTEGER,"
        "runs BLOB,"
        "PRIMARY KEY(event_id, ord)) WITHOUT ROWID;"

    "create table if not exists gateway_folded("
        EVENT_KEY
        "count INTEGER NOT NULL,"
        "last_at TEXT NOT NULL,"
        "cursor INTEGER NOT NULL) WITHOUT ROWID;"

    "create table if not exists gateway_gaps("
        EVENT_KEY
        "cursor INTEGER NOT NULL,"
        "operations INTEGER NOT NULL,"
        "output_bytes INTEGER NOT NULL,"
        "from_at TEXT NOT NULL,"
        "to_at TEXT NOT NULL,"
        "reason TEXT) WITHOUT ROWID;"

    "create table if not exists gateway_detached("
        EVENT_KEY
        "command_id TEXT,"
        "since TEXT NOT NULL,"
        "reason TEXT,"
        "result TEXT,"
        "ended_at TEXT) WITHOUT ROWID;"

    "create table if not exists gateway_held("
        EVENT_KEY
        "sandbox TEXT NOT NULL) WITHOUT ROWID;"
    "create index if not exists idx_gateway_held on gateway_held(sandbox);"

    PURGE_TABLE
    "create table if not exists gateway_pending("
        "event_id TEXT PRIMARY KEY,"
        "cursor INTEGER NOT NULL,"
        "frames BLOB NOT NULL);";


static const char  schema_terminals[] =
    "create table if not exists gateway_terminals("
        EVENT_KEY
        "session TEXT NOT NULL,"
        "mode TEXT,"
        "base INTEGER,"
        "recorded_to INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;"
    "create index if not exists idx_gateway_terminals on "
        "gateway_terminals(session, recorded_to);"

    "create table if not exists gateway_terminal("
        "event_id TEXT NOT NULL REFERENCES history_events(event_id) "
            "ON DELETE CASCADE,"
        "n INTEGER NOT NULL,"
        "at TEXT NOT NULL,"
        "events TEXT NOT NULL,"
        "PRIMARY KEY(event_id, n)) WITHOUT ROWID;";


/* The 24 persisted fields of HistoryConfig with their defaults (format 7.1),
 * in canonical form; those that we limit are filled in. */
#define SCHEMA_CONFIG(bytes, overflow, days)                                 \
    "{\"capture_stderr\":true,\"capture_stdout\":true,"                      \
    "\"cleanup_interval_operations\":100,"                                   \
    "\"cleanup_min_interval_seconds\":3600,"                                 \
    "\"cleanup_on_connect\":true,"                                           \
    "\"compression\":\"identity\",\"compression_level\":1,"                  \
    "\"compression_min_bytes\":4096,"                                        \
    "\"consumer_active_ttl_days\":30,"                                       \
    "\"helper_envelope_max_bytes\":1048576,"                                 \
    "\"helper_query_max_bytes\":4194304,"                                    \
    "\"max_database_bytes\":" bytes ","                                      \
    "\"max_operation_output_bytes\":16777216,"                               \
    "\"output_chunk_bytes\":16384,\"output_flush_bytes\":32768,"             \
    "\"output_flush_interval_ms\":50,"                                       \
    "\"output_queue_max_bytes\":4194304,"                                    \
    "\"output_queue_max_chunks\":256,"                                       \
    "\"output_write_timeout_seconds\":10.0,"                                 \
    "\"overflow_policy\":\"" overflow "\","                                  \
    "\"sqlite_busy_timeout_ms\":5000,\"sqlite_cache_bytes\":4194304,"        \
    "\"stale_started_after_seconds\":300,\"ttl_days\":" days "}"

#define SCHEMA_DAY_US     86400000000u
#define SCHEMA_BYTES_MIN  16777217              /* more than one output */
#define SCHEMA_BYTES_MAX  9007199254740991      /* exact in any reader */

static char  schema_config[1024] = SCHEMA_CONFIG("134217728", "delete_oldest",
                                                 "7");


void
schema_limits(uint64_t ttl_us, uint64_t size, const char *overflow)
{
    char      days[24];
    uint64_t  bytes;

    if (ttl_us) {
        (void) snprintf(days, sizeof(days), "%" PRIu64,
                        (ttl_us + SCHEMA_DAY_US - 1) / SCHEMA_DAY_US);
    } else {
        (void) strcpy(days, "null");
    }

    bytes = size == 0 || size > SCHEMA_BYTES_MAX ? SCHEMA_BYTES_MAX
            : size < SCHEMA_BYTES_MIN ? SCHEMA_BYTES_MIN : size;

    (void) snprintf(schema_config, sizeof(schema_config),
                    SCHEMA_CONFIG("%" PRIu64, "%s", "%s"), bytes, overflow,
                    days);
}


static int
schema_terminal(sqlite3 *db)
{
    return sqlite3_exec(db, schema_terminals, NULL, NULL, NULL);
}


int
schema_create(sqlite3 *db)
{
    int  rc;

    rc = sqlite3_exec(db, schema_format, NULL, NULL, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    rc = sqlite3_exec(db, schema_gateway, NULL, NULL, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    return schema_terminal(db);
}


/* Does the schema hold something that a query finds? */
static int
schema_has(sqlite3 *db, const char *sql, bool *has)
{
    int            rc;
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    rc = sqlite3_step(st);
    *has = rc == SQLITE_ROW;
    (void) sqlite3_finalize(st);

    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}


int
schema_upgrade(sqlite3 *db)
{
    int   rc;
    bool  ours, runs, chain, terminals, versions;

    rc = schema_has(db, "select 1 from pragma_table_info('gateway_output')",
                    &ours);
    if (rc != SQLITE_OK || !ours) {
        return rc;
    }

    rc = schema_has(db, "select 1 from pragma_table_info('gateway_output')"
                    " where name = 'runs'", &runs);

    if (rc == SQLITE_OK) {
        rc = schema_has(db, "select 1 from pragma_table_info('gateway_chain')",
                        &chain);
    }

    if (rc == SQLITE_OK) {
        rc = schema_has(db, "select 1 from"
                        " pragma_table_info('gateway_terminal')", &terminals);
    }

    if (rc == SQLITE_OK && !runs) {
        rc = sqlite3_exec(db, "begin immediate;"
                          "alter table gateway_output add column other_index"
                          " INTEGER;"
                          "alter table gateway_output add column other_offset"
                          " INTEGER;"
                          "alter table gateway_output add column runs BLOB;"
                          "commit", NULL, NULL, NULL);
    }

    if (rc == SQLITE_OK) {
        rc = schema_has(db, "select 1 from pragma_table_info("
                        "'gateway_contents')", &versions);
    }

    if (rc == SQLITE_OK && !versions) {
        rc = sqlite3_exec(db, "begin immediate;"
                          "alter table gateway_files add column before TEXT;"
                          "alter table gateway_files add column before_size"
                          " INTEGER;"
                          "alter table gateway_files add column before_sha256"
                          " TEXT;"
                          "alter table gateway_files add column content TEXT;"
                          VERSION_TABLES "commit", NULL, NULL, NULL);
    }

    if (rc == SQLITE_OK && !chain) {
        rc = sqlite3_exec(db, "begin immediate;" CHAIN_TABLE "commit", NULL,
                          NULL, NULL);
    }

    if (rc == SQLITE_OK && !terminals) {
        rc = schema_terminal(db);
    }

    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db, PURGE_TABLE, NULL, NULL, NULL);
    }

    return rc;
}


int
schema_write_meta(sqlite3 *db, const schema_identity_t *id)
{
    int            rc;
    size_t         i;
    sqlite3_stmt  *st;

    const struct {
        const char  *key;
        const char  *value;
    } rows[] = {
        { "schema_version", "1" },
        { "provider_key", SCHEMA_PROVIDER_KEY },
        { "sandbox_id", id->sandbox },
        { "sandbox_instance_id", id->instance },
        { "created_at", id->now },
        { "sdk_version", SCHEMA_SDK_VERSION },
        { "history_config_version", "1" },
        { "history_config_revision", "0" },
        { "history_config_json", schema_config },
        { "history_config_updated_at", id->now },
        { "history_config_updated_by", "sdk:initialize" },
        { "sandbox_name", id->name }
    };

    rc = sqlite3_prepare_v2(db, "insert or ignore into history_meta(key, value)"
                            " values(?1, ?2)", -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {

        if (rows[i].value == NULL) {
            continue;
        }

        sqlite3_bind_text(st, 1, rows[i].key, -1, SQLITE_STATIC);
        sqlite3_bind_text(st, 2, rows[i].value, -1, SQLITE_STATIC);

        (void) sqlite3_step(st);

        rc = sqlite3_reset(st);
        if (rc != SQLITE_OK) {
            break;
        }
    }

    (void) sqlite3_finalize(st);

    if (rc != SQLITE_OK) {
        return rc;
    }

    /* what differs from it later on is somebody's own decision */
    return sqlite3_exec(db, "insert or ignore into gateway_state(key, value)"
                        " select 'config', value from history_meta where key ="
                        " 'history_config_json'", NULL, NULL, NULL);
}


void
schema_legacy_instance(char dst[SCHEMA_LEGACY_LEN + 1], sb_str_t sandbox)
{
    char          hex[65];
    uint8_t       hash[32];
    sb_sha256_t  *h;

    h = sb_sha256_new();

    if (h == NULL) {
        memset(hash, 0, sizeof(hash));

    } else {
        sb_sha256_add(h, SCHEMA_PROVIDER_KEY ":",
                      sizeof(SCHEMA_PROVIDER_KEY ":") - 1);
        sb_sha256_add(h, sandbox.data, sandbox.len);
        sb_sha256_final(h, hash);
    }

    sb_hex(hex, hash, sizeof(hash));
    (void) snprintf(dst, SCHEMA_LEGACY_LEN + 1, "legacy-%.32s", hex);
}


int
schema_pragmas(sqlite3 *db, bool writer)
{
    int  rc;

    rc = sqlite3_busy_timeout(db, 5000);
    if (rc != SQLITE_OK) {
        return rc;
    }

    return sqlite3_exec(db, writer ? "pragma journal_mode = wal;"
                                     "pragma synchronous = normal;"
                                     "pragma foreign_keys = on;"
                                     "pragma wal_autocheckpoint = 1000;"
                                     "pragma cache_size = -256;"
                                   : "pragma foreign_keys = on;"
                                     "pragma query_only = on;",
                        NULL, NULL, NULL);
}
