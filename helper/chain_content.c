/* What an entry speaks of, as canonical JSON (history format 15.2). */

#include "chain.h"

#include "digest.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>


enum {
    CHAIN_S_META, CHAIN_S_BEGIN, CHAIN_S_EVENT, CHAIN_S_COMMAND,
    CHAIN_S_FILE, CHAIN_S_FILES, CHAIN_S_GAPS, CHAIN_S_WIRE,
    CHAIN_S_CHUNKS, CHAIN_S_RUNS, CHAIN_S_SEQ
};

static const char  *chain_kinds[CHAIN_KINDS] = {
    "file", "begin", "output", "end", "gap", "purge", "note"
};

static const char  *chain_streams[2] = { "stdout", "stderr" };


const char *
chain_kind_name(chain_kind_e kind)
{
    return chain_kinds[kind];
}


chain_kind_e
chain_kind(sb_str_t name)
{
    int  i;

    for (i = 0; i < CHAIN_KINDS; i++) {
        if (sb_eq(name, sb_str(chain_kinds[i], strlen(chain_kinds[i])))) {
            break;
        }
    }

    return (chain_kind_e) i;
}


void
chain_stmts_free(chain_stmts_t *s)
{
    size_t  i;

    for (i = 0; i < sizeof(s->st) / sizeof(s->st[0]); i++) {
        (void) sqlite3_finalize(s->st[i]);
        s->st[i] = NULL;
    }
}


static int
chain_stmt(sqlite3 *db, chain_stmts_t *s, unsigned n, const char *sql,
    const char *event, sqlite3_stmt **st)
{
    int  rc;

    if (s->st[n] == NULL) {
        rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                &s->st[n], NULL);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }

    *st = s->st[n];

    if (event == NULL) {
        return SQLITE_OK;
    }

    return sqlite3_bind_text(*st, 1, event, -1, SQLITE_STATIC);
}


static int
chain_rc(sb_rc_t rc)
{
    switch (rc) {

    case SB_OK:
        return SQLITE_OK;

    case SB_LIMIT:
        return SQLITE_TOOBIG;

    default:
        return SQLITE_NOMEM;
    }
}


sb_rc_t
chain_int(sb_buf_t *out, int64_t v)
{
    sb_rc_t  rc;

    if (v >= 0) {
        return sb_buf_add_uint(out, (uint64_t) v);
    }

    rc = sb_buf_add_c(out, '-');

    return rc == SB_OK ? sb_buf_add_uint(out, 0 - (uint64_t) v) : rc;
}


sb_rc_t
chain_blob(sb_buf_t *out, const void *p, size_t n)
{
    char     hex[2 * CHAIN_HASH + 1];
    uint8_t  digest[CHAIN_HASH];

    sb_sha256(digest, sb_str(p, n));
    sb_hex(hex, digest, CHAIN_HASH);

    return sb_buf_printf(out, "{\"sha256\":\"%s\",\"size\":%zu}", hex, n);
}


static sb_rc_t
chain_value(sb_buf_t *out, sqlite3_stmt *st, int i)
{
    char  number[SB_DOUBLE_MAX];

    switch (sqlite3_column_type(st, i)) {

    case SQLITE_TEXT:
        return sb_json_write_str(out,
                                 sb_str(sqlite3_column_text(st, i),
                                        (size_t) sqlite3_column_bytes(st, i)));

    case SQLITE_INTEGER:
        return chain_int(out, sqlite3_column_int64(st, i));

    case SQLITE_FLOAT:
        sb_double_text(number, sqlite3_column_double(st, i));
        return sb_buf_add(out, number, strlen(number));

    case SQLITE_BLOB:
        return chain_blob(out, sqlite3_column_blob(st, i),
                          (size_t) sqlite3_column_bytes(st, i));

    default:
        return sb_buf_add(out, "null", 4);
    }
}


/* The first columns of the row at hand; they are named, and in alphabetical
 * order. */
static int
chain_columns(sb_buf_t *out, sqlite3_stmt *st, int n)
{
    int          i;
    sb_rc_t      rc;
    const char  *name;

    rc = sb_buf_add_c(out, '{');

    for (i = 0; rc == SB_OK && i < n; i++) {
        name = sqlite3_column_name(st, i);
        rc = i ? sb_buf_add_str(out, sb_lit(",\"")) : sb_buf_add_c(out, '"');

        if (rc == SB_OK) {
            rc = sb_buf_add(out, name, strlen(name));
        }

        if (rc == SB_OK) {
            rc = sb_buf_add_str(out, sb_lit("\":"));
        }

        if (rc == SB_OK) {
            rc = chain_value(out, st, i);
        }
    }

    return chain_rc(rc == SB_OK ? sb_buf_add_c(out, '}') : rc);
}


static int
chain_row(sb_buf_t *out, sqlite3_stmt *st)
{
    return chain_columns(out, st, sqlite3_column_count(st));
}


/* "name":{...} of the row that a statement gives, null without one. */
static int
chain_member(sqlite3 *db, chain_stmts_t *s, unsigned n, const char *sql,
    const char *event, const char *name, sb_buf_t *out)
{
    int            rc, step;
    sqlite3_stmt  *st;

    rc = chain_stmt(db, s, n, sql, event, &st);

    if (rc == SQLITE_OK) {
        rc = chain_rc(sb_buf_printf(out, "\"%s\":", name));
    }

    if (rc != SQLITE_OK) {
        return rc;
    }

    step = sqlite3_step(st);

    if (step == SQLITE_ROW) {
        rc = chain_row(out, st);

    } else if (step == SQLITE_DONE) {
        rc = chain_rc(sb_buf_add(out, "null", 4));

    } else {
        rc = step;
    }

    (void) sqlite3_reset(st);

    return rc;
}


static int
chain_files(sqlite3 *db, chain_stmts_t *s, const char *event, sb_buf_t *out)
{
    int            rc, n;
    sqlite3_stmt  *st;

    rc = chain_stmt(db, s, CHAIN_S_FILES,
            "select before, before_sha256, before_size, content, flags, mode,"
            " n, old_path, path, sha256, size from gateway_files where event_id = ?1 order by n", event, &st);

    if (rc == SQLITE_OK) {
        rc = chain_rc(sb_buf_add_str(out, sb_lit("\"files\":[")));
    }

    if (rc != SQLITE_OK) {
        return rc;
    }

    for (n = 0; (rc = sqlite3_step(st)) == SQLITE_ROW; n++) {

        if (n) {
            rc = chain_rc(sb_buf_add_c(out, ','));
            if (rc != SQLITE_OK) {
                break;
            }
        }

        rc = chain_row(out, st);
        if (rc != SQLITE_OK) {
            break;
        }
    }

    (void) sqlite3_reset(st);

    return rc == SQLITE_DONE ? chain_rc(sb_buf_add_c(out, ']')) : rc;
}


static int
chain_begin(sqlite3 *db, chain_stmts_t *s, const char *event, sb_buf_t *out,
    int64_t *seq)
{
    int            rc, step, n;
    sqlite3_stmt  *st;

    /* the number of the record stands last, outside of the JSON */
    rc = chain_stmt(db, s, CHAIN_S_BEGIN,
            "select e.actor_id as actor_id, e.actor_type as actor_type,"
            " e.correlation_id as correlation_id, r.cursor as cursor,"
            " e.event_id as event_id, e.occurred_at as occurred_at,"
            " e.provider_key as provider_key, e.run_id as run_id,"
            " e.sandbox_id as sandbox_id,"
            " e.sandbox_instance_id as sandbox_instance_id, e.seq as seq,"
            " e.source as source, e.thread_id as thread_id,"
            " r.seq from history_events e"
            " join gateway_records r on r.event_id = e.event_id"
            " where e.event_id = ?1", event, &st);
    if (rc != SQLITE_OK) {
        return rc;
    }

    step = sqlite3_step(st);

    if (step == SQLITE_ROW) {
        n = sqlite3_column_count(st) - 1;
        *seq = sqlite3_column_int64(st, n);
        rc = chain_columns(out, st, n);

    } else {
        rc = step == SQLITE_DONE ? SQLITE_NOTFOUND : step;
    }

    (void) sqlite3_reset(st);

    return rc;
}


static int
chain_end(sqlite3 *db, chain_stmts_t *s, const char *event, sb_buf_t *out)
{
    int  rc;

    rc = chain_rc(sb_buf_add_c(out, '{'));

    if (rc == SQLITE_OK) {
        rc = chain_member(db, s, CHAIN_S_COMMAND,
                "select command, cwd, environment_json, exit_code,"
                " history_storage_state, output_complete, provider_command_id,"
                " timeout_ms from command_executions where event_id = ?1",
                event, "command", out);
    }

    if (rc == SQLITE_OK) {
        rc = chain_rc(sb_buf_add_c(out, ','));
    }

    if (rc == SQLITE_OK) {
        rc = chain_member(db, s, CHAIN_S_EVENT,
                "select completed_at, duration_ms, event_id, operation_type,"
                " request_json, result_json, schema_version, status from"
                " history_events where event_id = ?1", event, "event", out);
    }

    if (rc == SQLITE_OK) {
        rc = chain_rc(sb_buf_add_c(out, ','));
    }

    if (rc == SQLITE_OK) {
        rc = chain_member(db, s, CHAIN_S_FILE,
                "select after_hash, after_size, before_hash, before_size,"
                " change_type, diff_complete, diff_data, diff_encoding,"
                " old_path, path from file_operations where event_id = ?1",
                event, "file", out);
    }

    if (rc == SQLITE_OK) {
        rc = chain_rc(sb_buf_add_c(out, ','));
    }

    if (rc == SQLITE_OK) {
        rc = chain_files(db, s, event, out);
    }

    if (rc == SQLITE_OK) {
        rc = chain_rc(sb_buf_add_c(out, ','));
    }

    if (rc == SQLITE_OK) {
        rc = chain_member(db, s, CHAIN_S_GAPS,
                "select cursor, from_at, operations, output_bytes, reason,"
                " to_at from gateway_gaps where event_id = ?1", event, "gap",
                out);
    }

    if (rc == SQLITE_OK) {
        rc = chain_rc(sb_buf_add_c(out, ','));
    }

    if (rc == SQLITE_OK) {
        rc = chain_member(db, s, CHAIN_S_WIRE,
                "select agent, bytes_in, bytes_out, client, duration_us,"
                " error_code, files_total, foldable, http_status, identity,"
                " method, parent, path, port, reason, record, request_id,"
                " route, sandbox, upstream, upstream_status from gateway_wire"
                " where event_id = ?1", event, "wire", out);
    }

    return rc == SQLITE_OK ? chain_rc(sb_buf_add_c(out, '}')) : rc;
}


int
chain_seq(sqlite3 *db, chain_stmts_t *s, const char *event, int64_t *seq)
{
    int            rc, step;
    sqlite3_stmt  *st;

    rc = chain_stmt(db, s, CHAIN_S_SEQ,
                    "select seq from gateway_records where event_id = ?1",
                    event, &st);
    if (rc != SQLITE_OK) {
        return rc;
    }

    step = sqlite3_step(st);

    if (step == SQLITE_ROW) {
        *seq = sqlite3_column_int64(st, 0);

    } else {
        rc = step == SQLITE_DONE ? SQLITE_NOTFOUND : step;
    }

    (void) sqlite3_reset(st);

    return rc;
}


int
chain_content(sqlite3 *db, chain_stmts_t *s, chain_kind_e kind,
    const char *event, sb_buf_t *out, int64_t *seq)
{
    int  rc;

    out->len = 0;

    if (kind == CHAIN_FILE) {
        *seq = 0;
        rc = chain_rc(sb_buf_add_c(out, '{'));

        if (rc == SQLITE_OK) {
            rc = chain_member(db, s, CHAIN_S_META,
                    "select max(case key when 'created_at' then value end)"
                    " as created_at, max(case key when 'provider_key' then"
                    " value end) as provider_key, max(case key when"
                    " 'sandbox_id' then value end) as sandbox_id, max(case key"
                    " when 'sandbox_instance_id' then value end) as"
                    " sandbox_instance_id from history_meta", NULL, "file",
                    out);
        }

        return rc == SQLITE_OK ? chain_rc(sb_buf_add_c(out, '}')) : rc;
    }

    if (kind == CHAIN_BEGIN) {
        return chain_begin(db, s, event, out, seq);
    }

    rc = SQLITE_OK;

    if (kind == CHAIN_GAP) {
        /* nothing of it ever changes: both in one */
        rc = chain_rc(sb_buf_add_c(out, '['));

        if (rc == SQLITE_OK) {
            rc = chain_begin(db, s, event, out, seq);
        }

        if (rc == SQLITE_OK) {
            rc = chain_rc(sb_buf_add_c(out, ','));
        }

    } else {
        rc = chain_seq(db, s, event, seq);
    }

    if (rc == SQLITE_OK) {
        rc = chain_end(db, s, event, out);
    }

    if (rc == SQLITE_OK && kind == CHAIN_GAP) {
        rc = chain_rc(sb_buf_add_c(out, ']'));
    }

    return rc;
}


int
chain_file(sqlite3 *db, chain_stmts_t *s, uint8_t digest[CHAIN_HASH])
{
    int       rc;
    int64_t   seq;
    sb_buf_t  text;

    memset(&text, 0, sizeof(text));
    text.max = CHAIN_TEXT_MAX;

    rc = chain_content(db, s, CHAIN_FILE, NULL, &text, &seq);

    if (rc == SQLITE_OK) {
        sb_sha256(digest, sb_str(text.data, text.len));
    }

    sb_buf_free(&text);

    return rc;
}


/* --- output ------------------------------------------------------------- */

const char *
chain_stream_name(int stream)
{
    return chain_streams[stream];
}


void
chain_output_chunk(sb_sha256_t *h, const char *stream, int64_t index,
    int64_t original, const char *created, const char *encoding, sb_str_t data)
{
    char  head[128];

    (void) snprintf(head, sizeof(head), "%s %lld %d %lld %.40s %.16s\n",
                    stream, (long long) index, (int) data.len,
                    (long long) original, created, encoding);
    sb_sha256_add(h, head, strlen(head));
    sb_sha256_add(h, data.data, data.len);
}


static int
chain_output_chunks(sqlite3 *db, chain_stmts_t *s, const char *event,
    const chain_output_t *o, sb_sha256_t *h)
{
    int            rc, i;
    int64_t        next;
    sqlite3_stmt  *st;

    for (i = 0; i < 2; i++) {

        if (o->last[i] < o->first[i]) {
            continue;
        }

        rc = chain_stmt(db, s, CHAIN_S_CHUNKS,
                "select chunk_index, created_at, data, encoding, original_size"
                " from command_output_chunks where event_id = ?1 and"
                " stream = ?2 and chunk_index between ?3 and ?4"
                " order by chunk_index", event, &st);
        if (rc != SQLITE_OK) {
            return rc;
        }

        sqlite3_bind_text(st, 2, chain_streams[i], -1, SQLITE_STATIC);
        sqlite3_bind_int64(st, 3, o->first[i]);
        sqlite3_bind_int64(st, 4, o->last[i]);

        for (next = o->first[i]; (rc = sqlite3_step(st)) == SQLITE_ROW; next++)
        {
            if (sqlite3_column_int64(st, 0) != next) {
                break;
            }

            chain_output_chunk(h, chain_streams[i], next,
                               sqlite3_column_int64(st, 4),
                               (const char *) sqlite3_column_text(st, 1),
                               (const char *) sqlite3_column_text(st, 3),
                               sb_str(sqlite3_column_blob(st, 2),
                                      (size_t) sqlite3_column_bytes(st, 2)));
        }

        (void) sqlite3_reset(st);

        if (rc != SQLITE_DONE && rc != SQLITE_ROW) {
            return rc;
        }

        if (next != o->last[i] + 1) {
            return SQLITE_NOTFOUND;
        }
    }

    return SQLITE_OK;
}


static int
chain_output_runs(sqlite3 *db, chain_stmts_t *s, const char *event,
    const chain_output_t *o, sb_sha256_t *h)
{
    int            rc;
    int64_t        next;
    sb_buf_t       row;
    sqlite3_stmt  *st;

    if (o->ord_last < o->ord_first) {
        return SQLITE_OK;
    }

    rc = chain_stmt(db, s, CHAIN_S_RUNS,
            "select at, chunk_index, cursor, length, offset, ord, other_index,"
            " other_offset, runs, stream from gateway_output where"
            " event_id = ?1 and ord between ?2 and ?3 order by ord", event,
            &st);
    if (rc != SQLITE_OK) {
        return rc;
    }

    sqlite3_bind_int64(st, 2, o->ord_first);
    sqlite3_bind_int64(st, 3, o->ord_last);

    memset(&row, 0, sizeof(row));
    row.max = 64 * 1024;

    for (next = o->ord_first; (rc = sqlite3_step(st)) == SQLITE_ROW; next++) {
        row.len = 0;

        rc = chain_row(&row, st);
        if (rc != SQLITE_OK) {
            break;
        }

        sb_sha256_add(h, row.data, row.len);
    }

    sb_buf_free(&row);
    (void) sqlite3_reset(st);

    if (rc != SQLITE_DONE) {
        return rc;
    }

    return next == o->ord_last + 1 ? SQLITE_OK : SQLITE_NOTFOUND;
}


int
chain_output_digest(sqlite3 *db, chain_stmts_t *s, const char *event,
    const chain_output_t *o, uint8_t digest[CHAIN_HASH])
{
    int           rc;
    sb_sha256_t  *h;

    h = sb_sha256_new();
    if (h == NULL) {
        return SQLITE_NOMEM;
    }

    rc = chain_output_chunks(db, s, event, o, h);

    if (rc == SQLITE_OK) {
        rc = chain_output_runs(db, s, event, o, h);
    }

    if (rc == SQLITE_OK) {
        sb_sha256_final(h, digest);

    } else {
        sb_sha256_free(h);
    }

    return rc;
}


sb_rc_t
chain_output_detail(sb_buf_t *out, const chain_output_t *o,
    const uint8_t digest[CHAIN_HASH])
{
    char  hex[2 * CHAIN_HASH + 1];

    sb_hex(hex, digest, CHAIN_HASH);

    return sb_buf_printf(out, "{\"runs\":[%lld,%lld],\"sha256\":\"%s\","
                         "\"stderr\":[%lld,%lld],\"stdout\":[%lld,%lld]}",
                         (long long) o->ord_first, (long long) o->ord_last,
                         hex, (long long) o->first[1], (long long) o->last[1],
                         (long long) o->first[0], (long long) o->last[0]);
}


static sb_rc_t
chain_range(const sb_jv_t *root, const char *name, int64_t *first,
    int64_t *last)
{
    const sb_jv_t  *v;

    v = sb_jv_get(root, name);

    if (v == NULL || v->kind != SB_JSON_OPEN_ARRAY || v->child == NULL
        || v->child->next == NULL || !sb_jv_int(v->child, first)
        || !sb_jv_int(v->child->next, last))
    {
        return SB_ERROR;
    }

    return SB_OK;
}


sb_rc_t
chain_output_read(sb_str_t detail, chain_output_t *o,
    uint8_t digest[CHAIN_HASH])
{
    sb_rc_t         rc;
    sb_jdoc_t      *doc;
    const sb_jv_t  *root;

    doc = sb_jdoc_parse(detail, NULL, &rc);
    if (doc == NULL) {
        return rc == SB_NOMEM ? SB_NOMEM : SB_ERROR;
    }

    root = sb_jdoc_root(doc);
    rc = chain_range(root, "runs", &o->ord_first, &o->ord_last);

    if (rc == SB_OK) {
        rc = chain_range(root, "stdout", &o->first[0], &o->last[0]);
    }

    if (rc == SB_OK) {
        rc = chain_range(root, "stderr", &o->first[1], &o->last[1]);
    }

    if (rc == SB_OK) {
        rc = sb_unhex(digest, CHAIN_HASH, sb_jv_str(root, "sha256"));
    }

    sb_jdoc_free(doc);

    return rc;
}


void
chain_hash(uint8_t hash[CHAIN_HASH], const uint8_t before[CHAIN_HASH],
    int64_t seq, chain_kind_e kind, sb_str_t json)
{
    int       i;
    uint8_t   number[8];
    sb_str_t  parts[4];

    for (i = 0; i < 8; i++) {
        number[i] = (uint8_t) ((uint64_t) seq >> (56 - 8 * i));
    }

    parts[0] = sb_str(before, CHAIN_HASH);
    parts[1] = sb_str(number, sizeof(number));
    parts[2] = sb_str(chain_kinds[kind], strlen(chain_kinds[kind]));
    parts[3] = json;

    sb_sha256_parts(hash, parts, 4);
}
