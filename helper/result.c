#include "result.h"

#include "json.h"

#include <stdlib.h>


void
result_str(result_t *r, const char *name, sb_str_t text)
{
    if (text.data == NULL || r->n == RESULT_MEMBERS) {
        return;
    }

    r->m[r->n].name = name;
    r->m[r->n].text = text;
    r->m[r->n].kind = RESULT_STRING;
    r->n++;
}


void
result_int(result_t *r, const char *name, int64_t v)
{
    char      *p, digits[24];
    uint64_t   u;

    if (r->n == RESULT_MEMBERS) {
        return;
    }

    p = digits + sizeof(digits);
    *--p = '\0';
    u = v < 0 ? -(uint64_t) v : (uint64_t) v;

    do {
        *--p = (char) ('0' + u % 10);
        u /= 10;
    } while (u);

    if (v < 0) {
        *--p = '-';
    }

    r->m[r->n].name = name;
    (void) strcpy(r->m[r->n].number, p);
    r->m[r->n].kind = RESULT_NUMBER;
    r->n++;
}


void
result_bool(result_t *r, const char *name, bool on)
{
    if (r->n == RESULT_MEMBERS) {
        return;
    }

    r->m[r->n].name = name;
    r->m[r->n].on = on;
    r->m[r->n].kind = RESULT_BOOL;
    r->n++;
}


static void
result_node(sb_jv_t *v, const result_t *r, size_t i)
{
    memset(v, 0, sizeof(sb_jv_t));
    v->key = sb_str(r->m[i].name, strlen(r->m[i].name));

    switch (r->m[i].kind) {

    case RESULT_STRING:
        v->kind = SB_JSON_STRING;
        v->text = r->m[i].text;
        break;

    case RESULT_NUMBER:
        v->kind = SB_JSON_NUMBER;
        v->text = sb_str(r->m[i].number, strlen(r->m[i].number));
        break;

    default:
        v->kind = r->m[i].on ? SB_JSON_TRUE : SB_JSON_FALSE;
    }
}


/* One member after the other: nearly every operation has nothing but these. */
static sb_rc_t
result_write_own(const result_t *r, sb_buf_t *out)
{
    size_t       i, k, n, order[RESULT_MEMBERS];
    sb_rc_t      rc;
    const char  *name, *value;

    for (i = 0; i < r->n; i++) {
        for (k = i; k && strcmp(r->m[order[k - 1]].name, r->m[i].name) > 0; k--)
        {
            order[k] = order[k - 1];
        }

        order[k] = i;
    }

    rc = sb_buf_add_c(out, '{');

    for (i = 0; i < r->n && rc == SB_OK; i++) {
        n = order[i];
        name = r->m[n].name;
        rc = sb_buf_add(out, i ? ",\"" : "\"", i ? 2 : 1);

        if (rc == SB_OK) {
            rc = sb_buf_add(out, name, strlen(name));
        }

        if (rc == SB_OK) {
            rc = sb_buf_add(out, "\":", 2);
        }

        if (rc != SB_OK) {
            break;
        }

        if (r->m[n].kind == RESULT_STRING) {
            rc = sb_json_write_str(out, r->m[n].text);
            continue;
        }

        value = r->m[n].kind == RESULT_NUMBER ? r->m[n].number
                : r->m[n].on ? "true" : "false";
        rc = sb_buf_add(out, value, strlen(value));
    }

    return rc == SB_OK ? sb_buf_add_c(out, '}') : rc;
}


sb_rc_t
result_write(const result_t *r, sb_str_t base, sb_buf_t *out)
{
    size_t          n, k, i;
    sb_rc_t         rc;
    sb_jv_t         root, *nodes;
    sb_jdoc_t      *doc;
    const sb_jv_t  *top, *v;
    result_t        own;

    sb_json_limits_t  limits = { 0, RESULT_MAX };

    if (base.len == 0) {
        return r->n ? result_write_own(r, out) : SB_OK;
    }

    doc = NULL;
    top = NULL;
    n = 0;
    own = *r;

    doc = sb_jdoc_parse(base, &limits, NULL);
    top = doc ? sb_jdoc_root(doc) : NULL;

    if (top == NULL || top->kind != SB_JSON_OPEN_OBJECT) {
        result_bool(&own, "unparsed", true);
        top = NULL;
    }

    for (v = top ? top->child : NULL; v; v = v->next) {
        n++;
    }

    if (n + own.n == 0) {
        sb_jdoc_free(doc);
        return SB_OK;
    }

    nodes = calloc(n + own.n, sizeof(sb_jv_t));

    if (nodes == NULL) {
        sb_jdoc_free(doc);
        return SB_NOMEM;
    }

    k = 0;

    for (v = top ? top->child : NULL; v; v = v->next) {
        nodes[k++] = *v;
    }

    for (i = 0; i < own.n; i++) {
        result_node(&nodes[k++], &own, i);
    }

    for (i = 0; i < k; i++) {
        nodes[i].next = i + 1 < k ? &nodes[i + 1] : NULL;
    }

    memset(&root, 0, sizeof(root));
    root.kind = SB_JSON_OPEN_OBJECT;
    root.child = nodes;

    rc = sb_jv_canonical(out, &root);

    free(nodes);
    sb_jdoc_free(doc);

    return rc;
}
