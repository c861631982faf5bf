/* Rows that the chain knows nothing of. */

#include "chain_verify_int.h"

#include <stdio.h>


/* A query that gives event ids; the first of them that is not `good` (NULL: none
 * is) is at fault. */
static verify_rc_e
verify_each(verify_ctx_t *c, const char *sql, const char *fault,
    bool (*good)(verify_ctx_t *c, sqlite3_stmt *st))
{
    int            rc;
    char           event[40];
    int64_t        seq;
    sqlite3_stmt  *st;

    rc = sqlite3_prepare_v2(c->db, sql, -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return verify_sqlite(c);
    }

    if (sqlite3_bind_parameter_count(st)) {
        sqlite3_bind_int64(st, 1, c->before);
    }

    while ((rc = sqlite3_step(st)) == SQLITE_ROW && good && good(c, st)) {
        /* void */
    }

    if (rc == SQLITE_ROW) {
        (void) snprintf(event, sizeof(event), "%s",
                        (const char *) sqlite3_column_text(st, 0));
        (void) sqlite3_finalize(st);

        if (chain_seq(c->db, &c->stmts, event, &seq) != SQLITE_OK) {
            seq = 0;
        }

        return verify_fault(c, fault, seq, event);
    }

    (void) sqlite3_finalize(st);

    return rc == SQLITE_DONE ? VERIFY_OK : verify_sqlite(c);
}


static verify_rc_e
verify_none(verify_ctx_t *c, const char *sql, const char *fault)
{
    return verify_each(c, sql, fault, NULL);
}


#define VERIFY_KNOWN(table)                                                  \
    "exists(select 1 from gateway_chain c where c.event_id = "               \
    table ".event_id and c.kind in ('begin', 'gap') and c.purged is null)"
/* a record of before the chain, which says nothing of it */
#define VERIFY_OLD(table)                                                    \
    "exists(select 1 from gateway_records r where r.event_id = "             \
    table ".event_id and r.seq <= ?1)"

/* Columns behind the event of verify_terminals(). */
enum {
    VERIFY_ROWS = 1, VERIFY_FIRST, VERIFY_LAST, VERIFY_NOTES, VERIFY_NOTED,
    VERIFY_BEGUN
};

/*
 * A terminal has a row for each of its entries.  Earlier versions made none for
 * rows that came from _gateway: where they began the record, its first rows may
 * be without.
 */
static bool
verify_terminal_whole(verify_ctx_t *c, sqlite3_stmt *st)
{
    int64_t  rows, notes;

    rows = sqlite3_column_int64(st, VERIFY_ROWS);
    notes = sqlite3_column_int64(st, VERIFY_NOTES);

    if (rows == notes) {
        return true;
    }

    return sqlite3_column_type(st, VERIFY_BEGUN) != SQLITE_NULL
           && verify_proof(c, sqlite3_column_int64(st, VERIFY_BEGUN))
              != VERIFY_PROVEN
           && sqlite3_column_int64(st, VERIFY_FIRST) == 0
           && sqlite3_column_int64(st, VERIFY_LAST) == rows - 1
           && (notes == 0
               || sqlite3_column_int64(st, VERIFY_NOTED) == rows - notes);
}


static verify_rc_e
verify_terminals(verify_ctx_t *c)
{
    return verify_each(c, "select t.event_id, t.rows, t.first, t.last,"
            " count(j.n), min(j.n), (select b.n from gateway_chain b join"
            " history_events e using (event_id) where b.event_id = t.event_id"
            " and b.kind = 'begin' and e.operation_type = 'pty.open') from"
            " (select event_id, count(*) as rows, min(n) as first, max(n) as"
            " last from gateway_terminal group by event_id) t left join"
            " (select event_id, json_extract(detail, '$.terminal.n') as n from"
            " gateway_chain where kind = 'note' and purged is null) j on"
            " j.event_id = t.event_id where " VERIFY_KNOWN("t")
            " group by t.event_id", "foreign", verify_terminal_whole);
}


verify_rc_e
verify_foreign(verify_ctx_t *c)
{
    verify_rc_e  ok;

    ok = verify_none(c, "select event_id from gateway_chain c where purged is"
                     " not null and not exists(select 1 from gateway_chain p"
                     " where p.n = c.purged and p.kind = 'purge') limit 1",
                     "removed");
    if (ok != VERIFY_OK) {
        return ok;
    }

    if (c->conf->allow_foreign) {
        if (verify_number(c->db, "select count(*) from history_events e where"
                          " not " VERIFY_KNOWN("e"), NULL, 0, &c->v->foreign)
            != SQLITE_OK)
        {
            return verify_sqlite(c);
        }

        c->v->foreign -= c->before < c->v->foreign ? c->before : c->v->foreign;

    } else {
        ok = verify_none(c, "select event_id from history_events e where not "
                         VERIFY_KNOWN("e") " and not " VERIFY_OLD("e")
                         " order by seq limit 1", "foreign");
        if (ok != VERIFY_OK) {
            return ok;
        }
    }

    /* ended behind the chain's back */

    ok = verify_none(c, "select event_id from history_events e where status <>"
                     " 'started' and " VERIFY_KNOWN("e") " and not exists("
                     "select 1 from gateway_chain c where c.event_id ="
                     " e.event_id and c.kind in ('end', 'gap')) limit 1",
                     "changed");

    /* output of a known record that no entry speaks of */

    if (ok == VERIFY_OK) {
        ok = verify_none(c, "select o.event_id from (select event_id,"
                         " count(*) as n from command_output_chunks group by"
                         " event_id) o where " VERIFY_KNOWN("o") " and o.n <>"
                         " (select coalesce(sum(1 + json_extract(detail,"
                         " '$.stdout[1]') - json_extract(detail,"
                         " '$.stdout[0]') + 1 + json_extract(detail,"
                         " '$.stderr[1]') - json_extract(detail,"
                         " '$.stderr[0]')), 0) from gateway_chain c where"
                         " c.event_id = o.event_id and c.kind = 'output')"
                         " limit 1", "foreign");
    }

    /* ... or that is told in another order, or twice */

    if (ok == VERIFY_OK) {
        ok = verify_none(c, "select o.event_id from (select event_id,"
                         " count(*) as n from gateway_output group by"
                         " event_id) o where " VERIFY_KNOWN("o") " and o.n <>"
                         " (select coalesce(sum(1 + json_extract(detail,"
                         " '$.runs[1]') - json_extract(detail, '$.runs[0]')),"
                         " 0) from gateway_chain c where c.event_id ="
                         " o.event_id and c.kind = 'output') limit 1",
                         "foreign");
    }

    return ok == VERIFY_OK ? verify_terminals(c) : ok;
}
