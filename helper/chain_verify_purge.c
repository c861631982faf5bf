/* What was purged, as the chain accounts for it. */

#include "chain_verify_int.h"

#include "digest.h"
#include "json.h"


/* Anybody could write an entry that accounts for what they took out, or that
 * says where the chain begins: the gateway signs its own. */
static verify_rc_e
verify_purge_signed(verify_ctx_t *c, const verify_entry_t *e)
{
    if (c->conf->keys == NULL || keys_verify_member(c->conf->keys, e->detail))
    {
        return VERIFY_OK;
    }

    switch (verify_proof(c, e->n)) {

    case VERIFY_PROVEN:
        return verify_fault(c, "removed", 0, "");

    case VERIFY_UNSIGNED:
        c->unsure = true;
        break;

    default:
        break;
    }

    return VERIFY_OK;
}


/* A purge accounts for all that it took, or for nothing that is left. */
verify_rc_e
verify_purge(verify_ctx_t *c, const verify_entry_t *e)
{
    bool          any;
    uint8_t       digest[CHAIN_HASH], said[CHAIN_HASH];
    sb_rc_t       rc;
    sb_jdoc_t    *doc;
    verify_rc_e   ok;
    sb_sha256_t  *h;

    ok = verify_detail(c, e, 0);
    if (ok != VERIFY_OK) {
        return ok;
    }

    doc = sb_jdoc_parse(e->detail, NULL, &rc);

    if (doc == NULL
        || sb_unhex(said, CHAIN_HASH, sb_jv_str(sb_jdoc_root(doc), "digest"))
           != SB_OK)
    {
        sb_jdoc_free(doc);
        return verify_fault(c, "broken", 0, "");
    }

    sb_jdoc_free(doc);

    h = sb_sha256_new();
    if (h == NULL) {
        return verify_unable(c, "There is no memory.");
    }

    any = false;
    sqlite3_bind_int64(c->purge, 1, e->n);

    while (sqlite3_step(c->purge) == SQLITE_ROW) {
        any = true;
        sb_sha256_add(h, sqlite3_column_blob(c->purge, 0),
                      (size_t) sqlite3_column_bytes(c->purge, 0));
    }

    (void) sqlite3_reset(c->purge);
    sb_sha256_final(h, digest);

    return !any || memcmp(digest, said, CHAIN_HASH) == 0
           ? verify_purge_signed(c, e) : verify_fault(c, "removed", 0, "");
}


/* Where the chain begins: at its file entry, or behind what the last purge
 * that forgot something says. */
verify_rc_e
verify_base(verify_ctx_t *c)
{
    int             rc;
    int64_t         first, base;
    sb_rc_t         parsed;
    sb_jdoc_t      *doc;
    const sb_jv_t  *root;
    sqlite3_stmt   *st;

    if (verify_number(c->db, "select min(n) from gateway_chain", NULL, 1,
                      &first) != SQLITE_OK
        || verify_number(c->db, "select max(seq) from gateway_records", NULL, 0,
                         &c->before) != SQLITE_OK)
    {
        return verify_sqlite(c);
    }

    if (first == 1) {
        return VERIFY_OK;
    }

    rc = sqlite3_prepare_v2(c->db, "select detail from gateway_chain where"
                            " kind = 'purge' order by n desc", -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return verify_sqlite(c);
    }

    while (c->base == 0 && sqlite3_step(st) == SQLITE_ROW) {

        doc = sb_jdoc_parse(sb_str(sqlite3_column_text(st, 0),
                                   (size_t) sqlite3_column_bytes(st, 0)),
                            NULL, &parsed);
        if (doc == NULL) {
            continue;
        }

        root = sb_jdoc_root(doc);

        if (sb_jv_int(sb_jv_get(root, "base"), &base) && base == first - 1
            && sb_unhex(c->hash, CHAIN_HASH, sb_jv_str(root, "base_hash"))
               == SB_OK
            && sb_unhex(c->file, CHAIN_HASH, sb_jv_str(root, "file")) == SB_OK)
        {
            c->base = base;
            c->n = base;
            c->holes = true;
        }

        sb_jdoc_free(doc);
    }

    (void) sqlite3_finalize(st);

    return c->base ? VERIFY_OK : verify_fault(c, "broken", 0, "");
}
