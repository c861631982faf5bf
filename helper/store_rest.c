/*
 * Files at rest.  To open a history file is dear: SQLite reads the whole of a
 * write-ahead log that nobody else has open.  So files stay open after the store
 * has let go of what they cost in memory, their statements and pages; what is
 * left is the connection, and it holds the log's index.
 */

#include "store_int.h"

#include <sys/resource.h>


unsigned
store_handles(void)
{
    struct rlimit  r;

    /* three descriptors each; readers want some, too, and so do workers */

    if (getrlimit(RLIMIT_NOFILE, &r) == -1
        || r.rlim_cur / 8 <= STORE_AWAKE)
    {
        return STORE_AWAKE;
    }

    return r.rlim_cur / 8 < STORE_HANDLES ? (unsigned) (r.rlim_cur / 8)
                                          : STORE_HANDLES;
}


void
store_free_stmts(store_db_t *db)
{
    unsigned  i;

    for (i = 0; i < db->nstmts; i++) {
        (void) sqlite3_finalize(db->stmts[i]);
        db->stmts[i] = NULL;
    }

    for (i = 0; i < BULK_TABLES; i++) {
        (void) sqlite3_finalize(db->bulk_stmts[i]);
        db->bulk_stmts[i] = NULL;
    }

    chain_stmts_free(&db->chain.stmts);
}


/* Those unused for longest, until as many are awake as may be. */
void
store_rest(store_t *s)
{
    store_db_t  *db;

    /* not the last, which is about to be used */

    for (db = s->first; db != s->last && s->awake > STORE_AWAKE; db = db->next) {

        if (db->rests || db->pins || db->in_tx) {
            continue;
        }

        store_free_stmts(db);
        (void) sqlite3_db_release_memory(db->db);
        db->rests = true;
        s->awake--;
    }
}


void
store_wake(store_t *s, store_db_t *db)
{
    if (db->rests) {
        db->rests = false;
        s->awake++;
        store_rest(s);
    }
}
