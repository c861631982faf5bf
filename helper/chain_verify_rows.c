/* Rows that the chain knows nothing of. */

#include "chain_verify_int.h"

#include <stdio.h>


/* A query that gives event ids; the first of them is at fault. */
static verify_rc_e
verify_none(verify_ctx_t *c, const char *sql, const char *fault)
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

    rc = sqlite3_step(st);

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


#define VERIFY_KNOWN(table)                                                  \
    "exists(select 1 from gateway_chain c where c.event_id = "               \
    table ".event_id and c.kind in ('begin', 'gap') and c.purged is null)"
/* a record of before the chain, which says nothing of it */
#define VERIFY_OLD(table)                                                    \
    "exists(select 1 from gateway_records r where r.event_id = "             \
    table ".event_id and r.seq <= ?1)"

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

    return ok;
}
