/* What rules ask about a sandbox, kept between its operations. */

#include "policy_known.h"

#include "path.h"

#include <stdlib.h>


/* Is it a place that a volume makes writable, and nothing else? */
static bool
sb_policy_known_mount(const sb_jv_t *v)
{
    sb_str_t        path = sb_jv_str(v, "mountPath");
    const sb_jv_t  *readonly = sb_jv_get(v, "readOnly");

    return path.len > 1
           && (sb_path_flags(path) & (unsigned) ~SB_PATH_CONTROL) == 0
           && (readonly == NULL || readonly->kind == SB_JSON_FALSE
               || readonly->kind == SB_JSON_NULL);
}


static sb_rc_t
sb_policy_known_metadata(const sb_jv_t *metadata, sb_buf_t *out)
{
    if (metadata == NULL || metadata->kind != SB_JSON_OPEN_OBJECT) {
        return sb_buf_add_str(out, sb_lit("\"metadata\":{}"));
    }

    return sb_buf_add_str(out, sb_lit("\"metadata\":")) == SB_OK
           ? sb_jv_canonical(out, metadata) : SB_LIMIT;
}


sb_rc_t
sb_policy_known_made(const sb_jv_t *metadata, const sb_jv_t *volumes,
    sb_buf_t *out)
{
    sb_rc_t         rc;
    const char     *comma = "";
    const sb_jv_t  *v;

    rc = sb_buf_add_c(out, '{');

    if (rc == SB_OK) {
        rc = sb_policy_known_metadata(metadata, out);
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_str(out, sb_lit(",\"mounts\":["));
    }

    v = volumes && volumes->kind == SB_JSON_OPEN_ARRAY ? volumes->child : NULL;

    for ( /* void */ ; rc == SB_OK && v; v = v->next) {

        if (v->kind != SB_JSON_OPEN_OBJECT || !sb_policy_known_mount(v)) {
            continue;
        }

        rc = sb_buf_add(out, comma, strlen(comma));

        if (rc == SB_OK) {
            rc = sb_json_write_str(out, sb_jv_str(v, "mountPath"));
        }

        comma = ",";
    }

    return rc == SB_OK ? sb_buf_add_str(out, sb_lit("]}")) : rc;
}


sb_rc_t
sb_policy_known_told(sb_str_t sandbox, sb_str_t answer, sb_str_t before,
    sb_buf_t *out)
{
    sb_rc_t         rc;
    sb_jdoc_t      *told, *old;
    const sb_jv_t  *root, *mounts;

    told = sb_jdoc_parse(answer, NULL, &rc);
    root = told ? sb_jdoc_root(told) : NULL;

    if (root == NULL || root->kind != SB_JSON_OPEN_OBJECT
        || !sb_eq(sb_jv_str(root, "id"), sandbox))
    {
        sb_jdoc_free(told);
        return rc == SB_NOMEM ? SB_NOMEM : SB_ERROR;
    }

    old = before.len ? sb_jdoc_parse(before, NULL, NULL) : NULL;
    mounts = old ? sb_jv_get(sb_jdoc_root(old), "mounts") : NULL;

    rc = sb_buf_add_c(out, '{');

    if (rc == SB_OK) {
        rc = sb_policy_known_metadata(sb_jv_get(root, "metadata"), out);
    }

    if (rc == SB_OK && mounts) {
        rc = sb_buf_add_str(out, sb_lit(",\"mounts\":"));
        rc = rc == SB_OK ? sb_jv_canonical(out, mounts) : rc;
    }

    rc = rc == SB_OK ? sb_buf_add_c(out, '}') : rc;

    sb_jdoc_free(told);
    sb_jdoc_free(old);

    return rc;
}


sb_rc_t
sb_policy_known_read(sb_policy_known_t *k, sb_str_t text)
{
    sb_rc_t         rc;
    const sb_jv_t  *v, *w;

    memset(k, 0, sizeof(*k));

    k->doc = sb_jdoc_parse(text, NULL, &rc);

    if (k->doc == NULL) {
        return rc == SB_NOMEM ? SB_NOMEM : SB_OK;
    }

    k->metadata = calloc(SB_POLICY_KNOWN_PAIRS, sizeof(sb_policy_pair_t));
    k->mounts = calloc(SB_POLICY_KNOWN_PAIRS, sizeof(sb_str_t));

    if (k->metadata == NULL || k->mounts == NULL) {
        return SB_NOMEM;
    }

    v = sb_jv_get(sb_jdoc_root(k->doc), "metadata");

    if (v && v->kind == SB_JSON_OPEN_OBJECT) {

        for (w = v->child; w && k->nmetadata < SB_POLICY_KNOWN_PAIRS;
             w = w->next)
        {
            if (w->kind == SB_JSON_STRING) {
                k->metadata[k->nmetadata].key = w->key;
                k->metadata[k->nmetadata++].value = w->text;
            }
        }

        k->has_metadata = w == NULL;
    }

    v = sb_jv_get(sb_jdoc_root(k->doc), "mounts");

    if (v && v->kind == SB_JSON_OPEN_ARRAY) {

        for (w = v->child; w && k->nmounts < SB_POLICY_KNOWN_PAIRS;
             w = w->next)
        {
            if (w->kind == SB_JSON_STRING) {
                k->mounts[k->nmounts++] = w->text;
            }
        }

        k->has_mounts = w == NULL;
    }

    return SB_OK;
}


void
sb_policy_known_free(sb_policy_known_t *k)
{
    sb_jdoc_free(k->doc);
    free(k->metadata);
    free(k->mounts);
}
