#include "index_int.h"

#include "id.h"
#include "log.h"
#include "tokenize.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


/*
 * ops         a record: pos, its place in the list (the cursor); ev,
 *             history_events.seq in the file of box; words by their number,
 *             ids of threads, runs and correlations by a hash; head and body,
 *             the bytes of it in the full text
 * spans       when the records of 4096 positions began
 * parts       tables of the full text, how many records went into each, and
 *             how many of these count no more
 * boxes       history files: change, change_id: history_changes up to where
 *             the file was read; ino, the file
 */
static const char  index_schema[] =
    "create table meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"

    "create table boxes(id INTEGER PRIMARY KEY, dir TEXT NOT NULL UNIQUE,"
        " ino INTEGER NOT NULL, change INTEGER NOT NULL,"
        " change_id TEXT NOT NULL);"

    "create table words(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL,"
        " text TEXT NOT NULL, UNIQUE(kind, text));"
    "insert into words values(1, 1, 'succeeded'), (2, 2, 'sdk'),"
        " (3, 3, 'agent');"

    "create table ops(pos INTEGER PRIMARY KEY, box INTEGER NOT NULL,"
        " ev INTEGER NOT NULL, event BLOB NOT NULL, type INTEGER NOT NULL,"
        " status INTEGER NOT NULL, source INTEGER NOT NULL,"
        " actor_type INTEGER NOT NULL, actor INTEGER, thread INTEGER,"
        " run INTEGER, correlation INTEGER, started INTEGER NOT NULL,"
        " duration INTEGER, exit_code INTEGER, flags INTEGER NOT NULL,"
        " head INTEGER NOT NULL, body INTEGER NOT NULL);"
    "create index ops_event on ops(event);"
    "create index ops_box on ops(box);"
    "create index ops_foreign on ops(box, ev) where pos < 0;"
    "create index ops_type on ops(type);"
    "create index ops_status on ops(status) where status <> 1;"
    "create index ops_source on ops(source) where source <> 2;"
    "create index ops_actor_type on ops(actor_type) where actor_type <> 3;"
    "create index ops_actor on ops(actor) where actor is not null;"
    "create index ops_thread on ops(thread) where thread is not null;"
    "create index ops_run on ops(run) where run is not null;"
    "create index ops_correlation on ops(correlation)"
        " where correlation is not null;"
    "create index ops_exit on ops(exit_code) where exit_code <> 0;"
    "create index ops_second on ops(pos) where duration >= 1000;"
    "create index ops_long on ops(pos) where duration >= 30000;"

    "create table paths(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);"
    "create table op_paths(path INTEGER NOT NULL, pos INTEGER NOT NULL,"
        " PRIMARY KEY(path, pos)) WITHOUT ROWID;"
    "create index op_paths_pos on op_paths(pos);"

    "create table spans(id INTEGER PRIMARY KEY, lo INTEGER NOT NULL,"
        " hi INTEGER NOT NULL);"
    "create table parts(id INTEGER PRIMARY KEY, docs INTEGER NOT NULL,"
        " dead INTEGER NOT NULL);";

#define INDEX_SET_VERSION(n)  INDEX_SET_VERSION_(n)
#define INDEX_SET_VERSION_(n)  "pragma user_version = " #n


/* --- the tokenizer ---------------------------------------------------------- */

static int
index_token_create(void *ctx, const char **argv, int argc, Fts5Tokenizer **out)
{
    (void) argv;
    (void) argc;

    /* it has no state */
    *out = ctx;

    return SQLITE_OK;
}


static void
index_token_delete(Fts5Tokenizer *t)
{
    (void) t;
}


static int
index_token_run(Fts5Tokenizer *tokenizer, void *ctx, int flags,
    const char *text, int n,
    int (*add)(void *, int, const char *, int, int, int))
{
    int          rc;
    sb_tokens_t  t;

    (void) tokenizer;

    sb_tokens_init(&t, sb_str(text, (size_t) n),
                   (flags & FTS5_TOKENIZE_QUERY) != 0);
    rc = SQLITE_OK;

    while (rc == SQLITE_OK && sb_tokens_next(&t)) {
        rc = add(ctx, t.together ? FTS5_TOKEN_COLOCATED : 0, t.token,
                 (int) t.len, (int) t.from, (int) t.to);
    }

    return rc;
}


int
index_tokenizer(sqlite3 *db)
{
    int              rc;
    fts5_api        *api;
    sqlite3_stmt    *st;
    static int       nothing;

    static fts5_tokenizer  tokenizer = {
        index_token_create, index_token_delete, index_token_run
    };

    api = NULL;
    rc = sqlite3_prepare_v2(db, "select fts5(?1)", -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    (void) sqlite3_bind_pointer(st, 1, &api, "fts5_api_ptr", NULL);
    (void) sqlite3_step(st);
    rc = sqlite3_finalize(st);

    if (rc == SQLITE_OK && api == NULL) {
        rc = SQLITE_ERROR;
    }

    return rc != SQLITE_OK ? rc
           : api->xCreateTokenizer(api, "sandbox", &nothing, &tokenizer, NULL);
}


/* --- the file ----------------------------------------------------------------- */

bool
index_db_broken(int rc)
{
    switch (rc & 0xff) {

    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:          /* a table is not what it should be */
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_SCHEMA:
        return true;

    default:
        return false;
    }
}


void
index_db_close(index_t *ix)
{
    unsigned  i;

    for (i = 0; i < INDEX_STMTS; i++) {
        (void) sqlite3_finalize(ix->stmts[i]);
        ix->stmts[i] = NULL;
    }

    (void) sqlite3_finalize(ix->part_stmt);
    ix->part_stmt = NULL;
    (void) sqlite3_close(ix->db);
    ix->db = NULL;
    ix->in_tx = false;
}


static int64_t
index_number(sqlite3 *db, const char *sql, int *rc)
{
    int64_t        n;
    sqlite3_stmt  *st;

    n = -1;
    *rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

    if (*rc == SQLITE_OK) {
        if (sqlite3_step(st) == SQLITE_ROW) {
            n = sqlite3_column_int64(st, 0);
        }

        *rc = sqlite3_finalize(st);
    }

    return n;
}


static int
index_make(index_t *ix)
{
    int            rc;
    uint8_t        secret[16];
    sqlite3_stmt  *st;

    rc = sqlite3_exec(ix->db, "begin immediate", NULL, NULL, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(ix->db, index_schema, NULL, NULL, NULL);
    }

    if (rc == SQLITE_OK) {
        rc = sqlite3_prepare_v2(ix->db, "insert into meta values('secret', ?1)",
                                -1, &st, NULL);
    }

    if (rc == SQLITE_OK) {
        sb_random(secret, sizeof(secret));
        (void) sqlite3_bind_blob(st, 1, secret, sizeof(secret), SQLITE_STATIC);
        (void) sqlite3_step(st);
        rc = sqlite3_finalize(st);
    }

    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(ix->db, INDEX_SET_VERSION(INDEX_VERSION) "; commit",
                          NULL, NULL, NULL);
    }

    return rc;
}


int
index_secret(sqlite3 *db, uint8_t secret[16])
{
    int            rc;
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(db, "select value from meta where key = 'secret'",
                            -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    rc = SQLITE_CORRUPT;

    if (sqlite3_step(st) == SQLITE_ROW
        && sqlite3_column_bytes(st, 0) == 16)
    {
        memcpy(secret, sqlite3_column_blob(st, 0), 16);
        rc = SQLITE_OK;
    }

    (void) sqlite3_finalize(st);

    return rc;
}


static int
index_try(index_t *ix)
{
    int          rc;
    int64_t      version;
    struct stat  st;

    rc = sqlite3_open_v2(ix->path, &ix->db,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ix->vfs);
    if (rc != SQLITE_OK) {
        return rc;
    }

    (void) sqlite3_extended_result_codes(ix->db, 1);
    (void) sqlite3_busy_timeout(ix->db, 5000);

    rc = sqlite3_exec(ix->db, "pragma auto_vacuum = incremental;"
                      "pragma journal_mode = wal;"
                      "pragma synchronous = normal;"
                      "pragma wal_autocheckpoint = 4000;"
                      "pragma cache_size = -16384;"
                      "pragma temp_store = memory;", NULL, NULL, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    rc = index_tokenizer(ix->db);
    if (rc != SQLITE_OK) {
        return rc;
    }

    version = index_number(ix->db, "pragma user_version", &rc);

    if (rc == SQLITE_OK && version == 0
        && index_number(ix->db, "select count(*) from sqlite_master", &rc) == 0)
    {
        rc = index_make(ix);

    } else if (rc == SQLITE_OK && version != INDEX_VERSION) {
        rc = SQLITE_SCHEMA;
    }

    if (rc == SQLITE_OK) {
        rc = index_secret(ix->db, ix->secret);
    }

    if (rc == SQLITE_OK) {
        ix->max_pos = index_number(ix->db, "select coalesce(max(pos), 0)"
                                   " from ops", &rc);
    }

    ix->ino = stat(ix->path, &st) == 0 ? st.st_ino : 0;

    return rc;
}


void
index_forget_words(index_t *ix)
{
    size_t         i;
    table_node_t  *n, *next;

    for (i = 0; ix->words.buckets && i <= ix->words.mask; i++) {
        for (n = ix->words.buckets[i]; n; n = next) {
            next = n->next;
            free(n);
        }
    }

    table_free(&ix->words);
    memset(&ix->words, 0, sizeof(ix->words));
}


bool
index_db_open(index_t *ix)
{
    int  rc;

    rc = index_try(ix);

    if (rc == SQLITE_OK) {
        return true;
    }

    if (index_db_broken(rc)) {
        index_db_close(ix);
        return index_db_anew(ix, rc == SQLITE_SCHEMA ? "another version"
                                                     : "broken");
    }

    log_minutely(LOG_ERROR, "the index %s cannot be opened: %s", ix->path,
                 ix->db ? sqlite3_errmsg(ix->db) : sqlite3_errstr(rc));
    index_db_close(ix);

    return false;
}


bool
index_db_anew(index_t *ix, const char *why)
{
    int   rc;
    char  path[1120];

    static const char *const  suffixes[] = { "", "-wal", "-shm" };

    log_line(LOG_WARN, "the index is made anew from the history files: %s",
             why);
    index_db_close(ix);
    index_forget_words(ix);

    for (unsigned i = 0; i < 3; i++) {
        (void) snprintf(path, sizeof(path), "%s%s", ix->path, suffixes[i]);
        (void) unlink(path);
    }

    rc = index_try(ix);

    pthread_mutex_lock(&ix->lock);
    ix->generation++;
    ix->numbers.rebuilds++;
    ix->numbers.ready = false;
    pthread_mutex_unlock(&ix->lock);

    if (rc == SQLITE_OK) {
        return true;
    }

    log_minutely(LOG_ERROR, "the index %s cannot be made: %s", ix->path,
                 ix->db ? sqlite3_errmsg(ix->db) : sqlite3_errstr(rc));
    index_db_close(ix);

    return false;
}


sqlite3_stmt *
index_stmt(index_t *ix, unsigned n, const char *sql)
{
    if (ix->stmts[n] == NULL) {
        (void) sqlite3_prepare_v3(ix->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                  &ix->stmts[n], NULL);
    }

    return ix->stmts[n];
}


int
index_run(sqlite3_stmt *st)
{
    (void) sqlite3_step(st);

    return sqlite3_reset(st);
}


/* --- words and ids -------------------------------------------------------------- */

int64_t
index_word(index_t *ix, int kind, sb_str_t text)
{
    char           key[300];
    size_t         len;
    int64_t        id;
    index_word_t  *w;
    sqlite3_stmt  *st;

    len = text.len < sizeof(key) - 1 ? text.len : sizeof(key) - 1;
    key[0] = (char) kind;
    memcpy(key + 1, text.data ? text.data : "", len);

    w = table_find(&ix->words, key, len + 1);

    if (w) {
        return w->id;
    }

    st = index_stmt(ix, INDEX_S_WORD, "select id from words where kind = ?1"
                    " and text = ?2");
    if (st == NULL) {
        return 0;
    }

    sqlite3_bind_int(st, 1, kind);
    sqlite3_bind_text(st, 2, key + 1, (int) len, SQLITE_STATIC);
    id = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    (void) sqlite3_reset(st);

    if (id == 0) {
        st = index_stmt(ix, INDEX_S_WORD_ADD, "insert into words(kind, text)"
                        " values(?1, ?2)");
        if (st == NULL) {
            return 0;
        }

        sqlite3_bind_int(st, 1, kind);
        sqlite3_bind_text(st, 2, key + 1, (int) len, SQLITE_STATIC);

        if (index_run(st) != SQLITE_OK) {
            return 0;
        }

        id = sqlite3_last_insert_rowid(ix->db);
    }

    if (ix->words.count >= INDEX_WORDS) {
        index_forget_words(ix);
    }

    w = malloc(sizeof(index_word_t) + len + 1);

    if (w) {
        w->id = id;
        memcpy(w->key, key, len + 1);

        if (table_add(&ix->words, &w->node, w->key, len + 1) != SB_OK) {
            free(w);
        }
    }

    return id;
}


static uint64_t
index_load(const uint8_t *p, size_t n)
{
    size_t    i;
    uint64_t  v;

    v = 0;

    for (i = 0; i < n; i++) {
        v |= (uint64_t) p[i] << (8 * i);
    }

    return v;
}


static void
index_sip_rounds(uint64_t v[4], unsigned n)
{
    while (n--) {
        v[0] += v[1];
        v[1] = (v[1] << 13 | v[1] >> 51) ^ v[0];
        v[0] = v[0] << 32 | v[0] >> 32;
        v[2] += v[3];
        v[3] = (v[3] << 16 | v[3] >> 48) ^ v[2];
        v[0] += v[3];
        v[3] = (v[3] << 21 | v[3] >> 43) ^ v[0];
        v[2] += v[1];
        v[1] = (v[1] << 17 | v[1] >> 47) ^ v[2];
        v[2] = v[2] << 32 | v[2] >> 32;
    }
}


/* SipHash-2-4: nobody who does not know the secret finds two ids that would be
 * taken for one. */
int64_t
index_hash(const uint8_t secret[16], sb_str_t text)
{
    size_t          left;
    uint64_t        m, k0, k1, v[4];
    const uint8_t  *p = (const uint8_t *) text.data;

    if (text.len == 0) {
        return 0;
    }

    k0 = index_load(secret, 8);
    k1 = index_load(secret + 8, 8);
    v[0] = k0 ^ 0x736f6d6570736575ull;
    v[1] = k1 ^ 0x646f72616e646f6dull;
    v[2] = k0 ^ 0x6c7967656e657261ull;
    v[3] = k1 ^ 0x7465646279746573ull;

    for (left = text.len; left >= 8; left -= 8, p += 8) {
        m = index_load(p, 8);
        v[3] ^= m;
        index_sip_rounds(v, 2);
        v[0] ^= m;
    }

    m = index_load(p, left) | (uint64_t) text.len << 56;
    v[3] ^= m;
    index_sip_rounds(v, 2);
    v[0] ^= m;
    v[2] ^= 0xff;
    index_sip_rounds(v, 4);

    m = v[0] ^ v[1] ^ v[2] ^ v[3];

    return m ? (int64_t) m : 1;
}


int64_t
index_part(int64_t pos)
{
    return pos < 0 ? INDEX_FOREIGN_PART : pos >> INDEX_PART_BITS;
}


void
index_part_name(char dst[32], int64_t part)
{
    if (part < 0) {
        (void) strcpy(dst, "text_foreign");

    } else {
        (void) snprintf(dst, 32, "text_%lld", (long long) part);
    }
}
