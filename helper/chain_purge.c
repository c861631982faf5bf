/* Purging: what the chain says of records that are deleted. */

#include "chain.h"

#include "digest.h"

#include <stdio.h>


/* entries of earlier purges that one may take over, for each that goes */
#define CHAIN_HANDED       4
#define CHAIN_HANDED_FREE  4096

typedef struct {
    int64_t   entry;            /* number of the purge entry */
    int64_t   count;            /* of records */
    int64_t   marked;           /* entries */
    int64_t   from, to;         /* their numbers */
    uint8_t   digest[CHAIN_HASH];
    int64_t   base;             /* the chain begins behind it; 0: as it did */
    uint8_t   base_hash[CHAIN_HASH];
    uint8_t   file[CHAIN_HASH];
} chain_purge_t;


static int
chain_purge_mark(sqlite3 *db, chain_purge_t *p, const char *const *ids,
    size_t n)
{
    int            rc;
    size_t         i;
    int64_t        seq;
    sqlite3_stmt  *mark, *find;

    mark = NULL;
    find = NULL;

    rc = sqlite3_prepare_v2(db, "update gateway_chain set purged = ?2 where"
                            " event_id = ?1 and purged is null", -1, &mark,
                            NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_prepare_v2(db, "select seq from gateway_records where"
                                " event_id = ?1", -1, &find, NULL);
    }

    for (i = 0; i < n && rc == SQLITE_OK; i++) {
        sqlite3_bind_text(find, 1, ids[i], -1, SQLITE_STATIC);
        rc = sqlite3_step(find);

        if (rc == SQLITE_ROW) {
            seq = sqlite3_column_int64(find, 0);
            p->from = p->count == 0 || seq < p->from ? seq : p->from;
            p->to = p->count == 0 || seq > p->to ? seq : p->to;
            p->count++;
            rc = SQLITE_DONE;
        }

        (void) sqlite3_reset(find);

        if (rc != SQLITE_DONE) {
            break;
        }

        sqlite3_bind_text(mark, 1, ids[i], -1, SQLITE_STATIC);
        sqlite3_bind_int64(mark, 2, p->entry);
        rc = sqlite3_step(mark);
        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
        p->marked += rc == SQLITE_OK ? sqlite3_changes(db) : 0;
        (void) sqlite3_reset(mark);
    }

    (void) sqlite3_finalize(mark);
    (void) sqlite3_finalize(find);

    return rc;
}


/* Over the hashes of all entries that it took. */
static int
chain_purge_digest(sqlite3 *db, chain_purge_t *p)
{
    int            rc;
    sb_sha256_t   *h;
    sqlite3_stmt  *st;

    h = sb_sha256_new();
    if (h == NULL) {
        return SQLITE_NOMEM;
    }

    rc = sqlite3_prepare_v2(db, "select hash from gateway_chain where"
                            " purged = ?1 order by n", -1, &st, NULL);

    if (rc == SQLITE_OK) {
        sqlite3_bind_int64(st, 1, p->entry);

        while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
            sb_sha256_add(h, sqlite3_column_blob(st, 0),
                          (size_t) sqlite3_column_bytes(st, 0));
        }

        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
        (void) sqlite3_finalize(st);
    }

    sb_sha256_final(h, p->digest);

    return rc;
}


static int
chain_number(sqlite3 *db, const char *sql, int64_t bound, int64_t second,
    int64_t *v)
{
    int            rc;
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    (void) sqlite3_bind_int64(st, 1, bound);
    (void) sqlite3_bind_int64(st, 2, second);

    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW) {
        *v = sqlite3_column_int64(st, 0);
        rc = SQLITE_OK;
    }

    (void) sqlite3_finalize(st);

    return rc;
}


static int
chain_at(sqlite3 *db, int64_t n, uint8_t hash[CHAIN_HASH])
{
    int            rc;
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(db, "select hash from gateway_chain where n = ?1",
                            -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    sqlite3_bind_int64(st, 1, n);
    rc = sqlite3_step(st);

    if (rc == SQLITE_ROW && sqlite3_column_bytes(st, 0) == CHAIN_HASH) {
        memcpy(hash, sqlite3_column_blob(st, 0), CHAIN_HASH);
        rc = SQLITE_OK;

    } else if (rc == SQLITE_DONE || rc == SQLITE_ROW) {
        rc = SQLITE_NOTFOUND;
    }

    (void) sqlite3_finalize(st);

    return rc;
}


/* The last entry in front of the first of a record that is still there.  What is
 * purged stays so: who asks again goes on from there. */
static int
chain_purge_top(chain_t *c, sqlite3 *db, int64_t *top)
{
    int  rc;

    rc = chain_number(db, "select coalesce((select n from gateway_chain where"
                      " n >= ?1 and purged is null and kind in ('begin',"
                      " 'output', 'end', 'gap', 'note') order by n limit 1),"
                      " (select max(n) + 1 from gateway_chain))", c->kept, 0,
                      &c->kept);
    *top = c->kept - 1;

    return rc;
}


/* Purges that would be cut in two: each has an entry up to `top`, and is
 * noted behind it. */
#define CHAIN_CUT                                                            \
    "purged in (select distinct purged from gateway_chain not indexed where" \
    " n <= ?1 and purged > ?1) and n > ?1"

static int
chain_exec(sqlite3 *db, const char *sql, int64_t first, int64_t second)
{
    int            rc;
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    sqlite3_bind_int64(st, 1, first);

    (void) sqlite3_bind_int64(st, 2, second);

    rc = sqlite3_step(st);
    (void) sqlite3_finalize(st);

    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}


/*
 * Forgets the beginning of the chain that speaks of nothing any more.  Purges
 * that this cuts in two could not be checked any more: what is left of them
 * goes to this one, whose digest comes later.  So that no entry is handed on
 * too often, at least one must go for each CHAIN_HANDED that are; it is
 * looked at again when there are more of them to go by a quarter.
 */
static int
chain_purge_base(chain_t *c, sqlite3 *db, chain_purge_t *p)
{
    int      rc;
    int64_t  base, first, left, most;

    first = 0;
    left = 0;

    rc = chain_purge_top(c, db, &base);

    if (rc == SQLITE_OK) {
        rc = chain_number(db, "select coalesce(min(n), 0) from gateway_chain",
                          0, 0, &first);
    }

    if (rc != SQLITE_OK || base < first || base < c->wait) {
        return rc;
    }

    most = CHAIN_HANDED_FREE + CHAIN_HANDED * (base - first + 1);

    rc = chain_number(db, "select count(*) from (select 1 from gateway_chain"
                      " where " CHAIN_CUT " limit ?2)", base, most + 1, &left);
    if (rc != SQLITE_OK) {
        return rc;
    }

    if (left > most) {
        c->wait = base + (base - first) / 4 + 1;
        return SQLITE_OK;
    }

    rc = chain_at(db, base, p->base_hash);

    if (rc == SQLITE_NOTFOUND) {
        /* somebody took entries out; verify finds it */
        return SQLITE_OK;
    }

    if (rc == SQLITE_OK && left) {
        rc = chain_exec(db, "update gateway_chain set purged = ?2 where "
                        CHAIN_CUT, base, p->entry);
    }

    if (rc == SQLITE_OK) {
        rc = chain_exec(db, "delete from gateway_chain where n <= ?1", base, 0);
    }

    p->base = base;

    return rc;
}


/* The detail of the entry; `file` and `digest` tie what is signed to this file
 * and to what it took. */
static int
chain_purge_detail(sb_buf_t *out, const chain_purge_t *p, const keys_t *keys,
    const char *rule, const char *at)
{
    char    digest[2 * CHAIN_HASH + 1], hash[2 * CHAIN_HASH + 1];
    char    file[2 * CHAIN_HASH + 1];
    size_t  to;

    sb_hex(digest, p->digest, CHAIN_HASH);
    sb_hex(hash, p->base_hash, CHAIN_HASH);
    sb_hex(file, p->file, CHAIN_HASH);

    if (sb_buf_printf(out, "{\"at\":\"%s\",\"base\":%lld,"
                      "\"base_hash\":\"%s\",\"count\":%lld,"
                      "\"digest\":\"%s\",\"file\":\"%s\",\"from\":%lld,"
                      "\"rule\":\"%s\"", at, (long long) p->base, hash,
                      (long long) p->count, digest, file,
                      (long long) p->from, rule) != SB_OK)
    {
        return SQLITE_NOMEM;
    }

    to = out->len;

    if (sb_buf_printf(out, ",\"to\":%lld}", (long long) p->to) != SB_OK) {
        return SQLITE_NOMEM;
    }

    return keys == NULL || keys_sign_member(keys, out, 0, to) ? SQLITE_OK
                                                              : SQLITE_NOMEM;
}


int
chain_purge(chain_t *c, sqlite3 *db, const keys_t *keys,
    const char *const *ids, size_t n, const char *rule, const char *at)
{
    int            rc;
    chain_note_t  *note;
    chain_purge_t  p;

    memset(&p, 0, sizeof(p));

    /* of a file without a chain the first entry comes first */
    p.entry = c->n + (c->n ? 1 : 2) + (int64_t) c->nnotes;

    rc = chain_file(db, &c->stmts, p.file);

    if (rc == SQLITE_OK) {
        rc = chain_purge_mark(db, &p, ids, n);
    }

    if (rc != SQLITE_OK || (p.count == 0 && p.marked == 0)) {
        /* rows of others, which the chain says nothing of: no entry would tell
         * where it begins from now on */
        return rc;
    }

    rc = chain_purge_base(c, db, &p);

    if (rc == SQLITE_OK) {
        rc = chain_purge_digest(db, &p);
    }

    if (rc != SQLITE_OK) {
        return rc;
    }

    note = chain_add(c, CHAIN_PURGE, NULL);
    if (note == NULL) {
        return SQLITE_NOMEM;
    }

    return chain_purge_detail(&note->detail, &p, keys, rule, at);
}
