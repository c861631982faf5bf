#include "chain_verify_int.h"

#include "digest.h"
#include "json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>


#define VERIFY_STEP  1024       /* entries between two calls of stop() */


verify_rc_e
verify_fault(verify_ctx_t *c, const char *fault, int64_t seq,
    const char *event)
{
    c->v->fault = fault;
    c->v->seq = seq;
    (void) snprintf(c->v->event, sizeof(c->v->event), "%s", event);

    return VERIFY_FAULT;
}


verify_rc_e
verify_unable(verify_ctx_t *c, const char *what)
{
    (void) snprintf(c->v->why, sizeof(c->v->why), "%s", what);

    return VERIFY_UNABLE;
}


verify_rc_e
verify_sqlite(verify_ctx_t *c)
{
    (void) snprintf(c->v->why, sizeof(c->v->why), "The file cannot be read:"
                    " %s.", sqlite3_errmsg(c->db));

    return VERIFY_UNABLE;
}


int
verify_number(sqlite3 *db, const char *sql, const char *event, int64_t missing,
    int64_t *v)
{
    int            rc;
    sqlite3_stmt  *st;

    *v = missing;

    rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    if (event) {
        sqlite3_bind_text(st, 1, event, -1, SQLITE_STATIC);
    }

    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW && sqlite3_column_type(st, 0) != SQLITE_NULL) {
        *v = sqlite3_column_int64(st, 0);
    }

    (void) sqlite3_finalize(st);

    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}


/* --- one entry ---------------------------------------------------------- */

/* Of a record whose row does not give the hash: is it the order that changed,
 * or the row?  Rows are numbered in the order of the chain. */
static const char *
verify_why_begin(verify_ctx_t *c, const verify_entry_t *e, int64_t seq)
{
    int64_t  mine, next;

    if (!c->holes && seq != c->seq + 1) {
        return "reordered";
    }

    if (verify_number(c->db, "select seq from history_events where event_id ="
                      " ?1", e->event, 0, &mine) == SQLITE_OK
        && verify_number(c->db, "select e.seq from gateway_chain a join"
                         " gateway_chain b on b.n > a.n and b.kind in"
                         " ('begin', 'gap') join history_events e on"
                         " e.event_id = b.event_id where a.event_id = ?1 and"
                         " a.kind in ('begin', 'gap') order by b.n limit 1",
                         e->event, INT64_MAX, &next) == SQLITE_OK
        && mine > next)
    {
        return "reordered";
    }

    return "changed";
}


static verify_rc_e
verify_begin(verify_ctx_t *c, const verify_entry_t *e)
{
    int      rc;
    int64_t  seq;
    uint8_t  hash[CHAIN_HASH];

    if (e->purged) {
        c->holes = true;
        return VERIFY_OK;
    }

    rc = chain_content(c->db, &c->stmts, e->kind, e->event, &c->text, &seq);

    if (rc == SQLITE_NOTFOUND) {
        return verify_fault(c, "removed", c->holes ? 0 : c->seq + 1,
                            e->event);
    }

    if (rc != SQLITE_OK) {
        return verify_sqlite(c);
    }

    chain_hash(hash, c->hash, seq, e->kind, sb_str(c->text.data, c->text.len));

    if (memcmp(hash, e->hash, CHAIN_HASH) != 0) {
        return verify_fault(c, verify_why_begin(c, e, seq), seq, e->event);
    }

    c->seq = seq;
    c->holes = false;
    c->v->checked++;

    return VERIFY_OK;
}


static verify_rc_e
verify_end(verify_ctx_t *c, const verify_entry_t *e)
{
    int      rc;
    int64_t  seq;
    uint8_t  hash[CHAIN_HASH];

    if (e->purged) {
        return VERIFY_OK;
    }

    rc = chain_content(c->db, &c->stmts, CHAIN_END, e->event, &c->text, &seq);

    if (rc == SQLITE_NOTFOUND) {
        return verify_fault(c, "removed", 0, e->event);
    }

    if (rc != SQLITE_OK) {
        return verify_sqlite(c);
    }

    chain_hash(hash, c->hash, seq, e->kind, sb_str(c->text.data, c->text.len));

    return memcmp(hash, e->hash, CHAIN_HASH) == 0
           ? VERIFY_OK : verify_fault(c, "changed", seq, e->event);
}


verify_rc_e
verify_detail(verify_ctx_t *c, const verify_entry_t *e, int64_t seq)
{
    uint8_t  hash[CHAIN_HASH];

    if (e->purged) {
        /* the number of the record may be gone */
        return VERIFY_OK;
    }

    chain_hash(hash, c->hash, seq, e->kind, e->detail);

    return memcmp(hash, e->hash, CHAIN_HASH) == 0
           ? VERIFY_OK : verify_fault(c, "broken", seq, e->event);
}


static verify_rc_e
verify_output(verify_ctx_t *c, const verify_entry_t *e)
{
    int             rc;
    int64_t         seq;
    uint8_t         digest[CHAIN_HASH], said[CHAIN_HASH];
    verify_rc_e     ok;
    chain_output_t  o;

    if (e->purged) {
        return VERIFY_OK;
    }

    rc = chain_seq(c->db, &c->stmts, e->event, &seq);

    if (rc == SQLITE_NOTFOUND) {
        return verify_fault(c, "removed", 0, e->event);
    }

    if (rc != SQLITE_OK) {
        return verify_sqlite(c);
    }

    ok = verify_detail(c, e, seq);
    if (ok != VERIFY_OK) {
        return ok;
    }

    if (chain_output_read(e->detail, &o, said) != SB_OK) {
        return verify_fault(c, "broken", seq, e->event);
    }

    rc = chain_output_digest(c->db, &c->stmts, e->event, &o, digest);

    if (rc != SQLITE_OK && rc != SQLITE_NOTFOUND) {
        return verify_sqlite(c);
    }

    return rc == SQLITE_OK && memcmp(digest, said, CHAIN_HASH) == 0
           ? VERIFY_OK : verify_fault(c, "changed", seq, e->event);
}


/* A note is only its detail, but for that of a terminal: it stands for a row. */
static verify_rc_e
verify_note(verify_ctx_t *c, const verify_entry_t *e)
{
    int             rc;
    bool            terminal, same;
    int64_t         seq, n;
    uint8_t         digest[CHAIN_HASH], said[CHAIN_HASH];
    sb_rc_t         parsed;
    sb_jdoc_t      *doc;
    verify_rc_e     ok;
    sb_sha256_t    *h;
    const sb_jv_t  *v;

    if (e->purged) {
        return VERIFY_OK;
    }

    rc = chain_seq(c->db, &c->stmts, e->event, &seq);

    if (rc != SQLITE_OK) {
        return rc == SQLITE_NOTFOUND ? verify_fault(c, "removed", 0, e->event)
                                     : verify_sqlite(c);
    }

    ok = verify_detail(c, e, seq);
    if (ok != VERIFY_OK) {
        return ok;
    }

    doc = sb_jdoc_parse(e->detail, NULL, &parsed);
    v = doc ? sb_jv_get(sb_jdoc_root(doc), "terminal") : NULL;

    terminal = v && sb_jv_int(sb_jv_get(v, "n"), &n)
               && sb_unhex(said, CHAIN_HASH, sb_jv_str(v, "sha256")) == SB_OK;
    sb_jdoc_free(doc);

    if (!terminal) {
        return VERIFY_OK;
    }

    h = sb_sha256_new();
    if (h == NULL) {
        return verify_unable(c, "There is no memory.");
    }

    sqlite3_bind_text(c->terminal, 1, e->event, -1, SQLITE_STATIC);
    sqlite3_bind_int64(c->terminal, 2, n);
    same = sqlite3_step(c->terminal) == SQLITE_ROW;

    if (same) {
        sb_sha256_add(h, sqlite3_column_text(c->terminal, 0),
                      (size_t) sqlite3_column_bytes(c->terminal, 0));
    }

    (void) sqlite3_reset(c->terminal);
    sb_sha256_final(h, digest);

    return same && memcmp(digest, said, CHAIN_HASH) == 0
           ? VERIFY_OK : verify_fault(c, "changed", seq, e->event);
}


static verify_rc_e
verify_file(verify_ctx_t *c, const verify_entry_t *e)
{
    int      rc;
    int64_t  seq;
    uint8_t  hash[CHAIN_HASH];

    rc = chain_content(c->db, &c->stmts, CHAIN_FILE, NULL, &c->text, &seq);
    if (rc != SQLITE_OK) {
        return verify_sqlite(c);
    }

    /* how many records there were before is known by trying: few files have
     * any, and none more than it has records now */

    for (seq = 0; seq <= c->before; seq++) {
        chain_hash(hash, c->hash, seq, e->kind,
                   sb_str(c->text.data, c->text.len));

        if (memcmp(hash, e->hash, CHAIN_HASH) == 0) {
            c->before = seq;
            c->seq = seq;
            c->v->before = seq;
            return VERIFY_OK;
        }
    }

    return verify_fault(c, "swapped", 0, "");
}


/*
 * A record begins once, changes once, to its end, and nothing is said of it
 * behind that: who can write the file could make the hash of such an entry fit
 * what they changed.
 */
static verify_rc_e
verify_order(verify_ctx_t *c, const verify_entry_t *e)
{
    bool          again;
    int64_t       seq;
    chain_kind_e  before;

    if (e->purged || e->kind == CHAIN_FILE || e->kind == CHAIN_PURGE) {
        return VERIFY_OK;
    }

    sqlite3_bind_text(c->last, 1, e->event, -1, SQLITE_STATIC);
    sqlite3_bind_int64(c->last, 2, e->n);
    again = false;

    if (sqlite3_step(c->last) == SQLITE_ROW) {
        before = chain_kind(sb_str(sqlite3_column_text(c->last, 0),
                                   (size_t) sqlite3_column_bytes(c->last, 0)));
        again = e->kind == CHAIN_BEGIN || e->kind == CHAIN_GAP
                || before == CHAIN_END || before == CHAIN_GAP;
    }

    (void) sqlite3_reset(c->last);

    if (!again) {
        return VERIFY_OK;
    }

    return verify_fault(c, "changed", chain_seq(c->db, &c->stmts, e->event,
                                                &seq) == SQLITE_OK ? seq : 0,
                        e->event);
}


static verify_rc_e
verify_entry(verify_ctx_t *c, const verify_entry_t *e)
{
    verify_rc_e  ok;

    if (e->n != c->n + 1) {
        return verify_fault(c, "broken", c->seq, e->event);
    }

    ok = verify_order(c, e);
    if (ok != VERIFY_OK) {
        return ok;
    }

    switch (e->kind) {

    case CHAIN_FILE:
        return verify_file(c, e);

    case CHAIN_BEGIN:
    case CHAIN_GAP:
        return verify_begin(c, e);

    case CHAIN_END:
        return verify_end(c, e);

    case CHAIN_OUTPUT:
        return verify_output(c, e);

    case CHAIN_PURGE:
        return verify_purge(c, e);

    case CHAIN_NOTE:
        return verify_note(c, e);

    default:
        return verify_fault(c, "broken", c->seq, e->event);
    }
}


/* --- the whole chain ---------------------------------------------------- */

static verify_rc_e
verify_entries(verify_ctx_t *c)
{
    int              rc;
    verify_rc_e      ok;
    sqlite3_stmt    *st;
    verify_entry_t   e;

    rc = sqlite3_prepare_v2(c->db, "select n, event_id, kind, detail, purged,"
                            " hash from gateway_chain order by n", -1, &st,
                            NULL);
    if (rc != SQLITE_OK) {
        return verify_sqlite(c);
    }

    ok = VERIFY_OK;

    while (ok == VERIFY_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        e.n = sqlite3_column_int64(st, 0);
        e.event = (const char *) sqlite3_column_text(st, 1);
        e.event = e.event ? e.event : "";
        e.kind = chain_kind(sb_str(sqlite3_column_text(st, 2),
                                   (size_t) sqlite3_column_bytes(st, 2)));
        e.detail = sb_str(sqlite3_column_text(st, 3),
                          (size_t) sqlite3_column_bytes(st, 3));
        e.purged = sqlite3_column_int64(st, 4);
        e.hash = sqlite3_column_blob(st, 5);

        if (sqlite3_column_bytes(st, 5) != CHAIN_HASH) {
            ok = verify_fault(c, "broken", c->seq, e.event);
            break;
        }

        ok = verify_entry(c, &e);
        c->n = e.n;
        memcpy(c->hash, e.hash, CHAIN_HASH);
        c->v->entries++;

        if (ok == VERIFY_OK && c->conf->stop
            && c->v->entries % VERIFY_STEP == 0
            && c->conf->stop(c->conf->data, c->v->entries))
        {
            ok = verify_unable(c, "It takes too long; run sandbox-history verify on the gateway's machine.");
        }
    }

    (void) sqlite3_finalize(st);

    return ok == VERIFY_OK && rc != SQLITE_DONE ? verify_sqlite(c) : ok;
}


/* --- all of it ---------------------------------------------------------- */

static verify_rc_e
verify_identity(verify_ctx_t *c)
{
    int            rc;
    int64_t        have;
    sqlite3_stmt  *st;

    static const uint8_t  none[CHAIN_HASH];

    if (verify_number(c->db, "select count(*) from sqlite_master where type ="
                      " 'table' and name in ('gateway_chain',"
                      " 'gateway_records', 'history_meta')", NULL, 0, &have)
        != SQLITE_OK)
    {
        return verify_sqlite(c);
    }

    if (have != 3) {
        return verify_unable(c, "The file has no chain: no gateway of this"
                             " version wrote it.");
    }

    rc = sqlite3_prepare_v2(c->db, "select value from history_meta where key ="
                            " 'sandbox_id'", -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return verify_sqlite(c);
    }

    if (sqlite3_step(st) == SQLITE_ROW) {
        (void) snprintf(c->v->sandbox, sizeof(c->v->sandbox), "%s",
                        (const char *) sqlite3_column_text(st, 0));
    }

    (void) sqlite3_finalize(st);

    if (chain_file(c->db, &c->stmts, c->mine) != SQLITE_OK) {
        return verify_sqlite(c);
    }

    if (c->base == 0 || memcmp(c->file, none, CHAIN_HASH) == 0) {
        return VERIFY_OK;
    }

    return memcmp(c->mine, c->file, CHAIN_HASH) == 0
           ? VERIFY_OK : verify_fault(c, "swapped", 0, "");
}


static verify_rc_e
verify_all(verify_ctx_t *c)
{
    verify_rc_e  ok, rows;

    ok = verify_identity(c);

    if (ok == VERIFY_OK) {
        ok = verify_base(c);
    }

    if (ok == VERIFY_OK && c->base) {
        ok = verify_identity(c);
    }

    if (ok != VERIFY_OK) {
        return ok;
    }

    if (!verify_heads_find(c)) {
        return verify_unable(c, "There is no memory.");
    }

    if (sqlite3_prepare_v2(c->db, "select kind from gateway_chain where"
                           " event_id = ?1 and n < ?2 order by n desc limit 1",
                           -1, &c->last, NULL) != SQLITE_OK
        || sqlite3_prepare_v2(c->db, "select hash from gateway_chain where"
                              " purged = ?1 order by n", -1, &c->purge, NULL)
           != SQLITE_OK
        || sqlite3_prepare_v2(c->db, "select hash from gateway_chain where"
                              " n = ?1", -1, &c->at, NULL) != SQLITE_OK
        || sqlite3_prepare_v2(c->db, "select at || events from"
                              " gateway_terminal where event_id = ?1 and"
                              " n = ?2", -1, &c->terminal, NULL) != SQLITE_OK)
    {
        return verify_sqlite(c);
    }

    ok = verify_entries(c);
    if (ok != VERIFY_OK) {
        return ok;
    }

    /* a chain that was cut or written anew says little of the rows */

    ok = verify_heads(c);
    c->v->unsigned_entries = c->n - (c->v->head ? c->v->head : c->base);

    if (ok == VERIFY_FAULT) {
        return ok;
    }

    rows = verify_foreign(c);

    return rows == VERIFY_OK ? ok : rows;
}


verify_rc_e
chain_verify(sqlite3 *db, const verify_conf_t *conf, verify_t *v)
{
    struct stat   st;
    verify_rc_e   ok;
    verify_ctx_t  c;

    memset(v, 0, sizeof(verify_t));
    memset(&c, 0, sizeof(c));
    c.db = db;
    c.conf = conf;
    c.v = v;
    c.text.max = CHAIN_TEXT_MAX;

    /* what is signed while this goes on speaks of what comes behind our
     * snapshot */
    if (conf->heads) {
        c.heads = fopen(conf->heads, "re");
        c.heads_errno = errno;

        if (c.heads && fstat(fileno(c.heads), &st) == 0) {
            c.heads_bytes = (size_t) st.st_size;
        }
    }

    ok = sqlite3_exec(db, "begin", NULL, NULL, NULL) == SQLITE_OK
         ? verify_all(&c) : verify_sqlite(&c);

    (void) sqlite3_finalize(c.last);
    (void) sqlite3_finalize(c.purge);
    (void) sqlite3_finalize(c.at);
    (void) sqlite3_finalize(c.terminal);
    chain_stmts_free(&c.stmts);
    sb_buf_free(&c.text);
    free(c.proven.ranges);
    (void) sqlite3_exec(db, "rollback", NULL, NULL, NULL);

    if (c.heads) {
        (void) fclose(c.heads);
    }

    return ok;
}
