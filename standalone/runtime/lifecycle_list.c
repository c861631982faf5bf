/* GET /sandboxes with its filters, metadata. */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "id.h"
#include "lifecycle.h"
#include "url.h"


static const char *const  rt_state_names[] = {
    "Pending", "Running", "Paused", "Stopping", "Terminated"
};


static bool
rt_label_name(const char *p, size_t n, size_t max)
{
    size_t  i;

    if (n == 0 || n > max || !isalnum((unsigned char) p[0])
        || !isalnum((unsigned char) p[n - 1]))
    {
        return false;
    }

    for (i = 0; i < n; i++) {
        if (!isalnum((unsigned char) p[i])
            && (p[i] == '\0' || strchr("-_.", p[i]) == NULL))
        {
            return false;
        }
    }

    return true;
}


static bool
rt_label_prefix(const char *p, size_t n)
{
    size_t  i;

    if (!rt_label_name(p, n, 253)) {
        return false;
    }

    for (i = 0; i < n; i++) {
        if (isupper((unsigned char) p[i]) || p[i] == '_'
            || (p[i] == '.' && (p[i + 1] == '.' || p[i + 1] == '-'))
            || (p[i] == '-' && p[i + 1] == '.'))
        {
            return false;
        }
    }

    return true;
}


bool
rt_lc_label_ok(rt_req_t *r, sb_str_t key, sb_str_t value)
{
    const char  *slash, *end;

    end = key.data + key.len;
    slash = memchr(key.data, '/', key.len);

    if (key.len >= 15 && memcmp(key.data, "opensandbox.io/", 15) == 0) {
        rt_lc_fail(r, 400, "SANDBOX::INVALID_METADATA_LABEL",
                   "Metadata keys under opensandbox.io/ are reserved.");
        return false;
    }

    if ((slash != NULL
         && !rt_label_prefix(key.data, (size_t) (slash - key.data)))
        || !rt_label_name(slash ? slash + 1 : key.data,
                          (size_t) (end - (slash ? slash + 1 : key.data)),
                          63))
    {
        rt_lc_fail(r, 400, "SANDBOX::INVALID_METADATA_LABEL", "Metadata key "
                   "'%.*s' is invalid.",
                   (int) (key.len < 100 ? key.len : 100), key.data);
        return false;
    }

    if (value.len > 0 && !rt_label_name(value.data, value.len, 63)) {
        rt_lc_fail(r, 400, "SANDBOX::INVALID_METADATA_LABEL", "Metadata "
                   "value '%.*s' is invalid.",
                   (int) (value.len < 100 ? value.len : 100), value.data);
        return false;
    }

    return true;
}


bool
rt_lc_label_set(rt_box_t *b, sb_str_t key, const sb_str_t *value)
{
    unsigned     i;
    rt_label_t  *l;

    for (i = 0; i < b->nmetadata; i++) {
        l = &b->metadata[i];

        if (!sb_eq(sb_str(l->key, strlen(l->key)), key)) {
            continue;
        }

        free(l->value);

        if (value != NULL) {
            l->value = strndup(value->data, value->len);

        } else {
            free(l->key);
            b->nmetadata--;
            memmove(l, l + 1, (b->nmetadata - i) * sizeof(rt_label_t));
        }

        return true;
    }

    if (value == NULL) {
        return true;
    }

    if (b->nmetadata == RT_METADATA_MAX) {
        return false;
    }

    l = &b->metadata[b->nmetadata++];
    l->key = strndup(key.data, key.len);
    l->value = strndup(value->data, value->len);

    return true;
}


void
rt_lc_metadata(rt_req_t *r, rt_box_t *b)
{
    bool            ok;
    sb_buf_t        buf;
    sb_jdoc_t      *doc;
    const sb_jv_t  *v;

    doc = rt_lc_body(r);

    if (doc == NULL) {
        return;
    }

    for (v = sb_jdoc_root(doc)->child; v != NULL; v = v->next) {
        if (v->kind != SB_JSON_STRING && v->kind != SB_JSON_NULL) {
            rt_lc_invalid(r, "string_type", "\"body\",\"value\"",
                          "Input should be a valid string", NULL, NULL);
            sb_jdoc_free(doc);
            return;
        }

        if (!rt_lc_label_ok(r, v->key, v->kind == SB_JSON_STRING
                                       ? v->text : sb_lit("")))
        {
            sb_jdoc_free(doc);
            return;
        }
    }

    ok = true;
    rt_boxes_lock();

    for (v = sb_jdoc_root(doc)->child; v != NULL && ok; v = v->next) {
        ok = rt_lc_label_set(b, v->key, v->kind == SB_JSON_STRING ? &v->text
                                                                  : NULL);
    }

    rt_boxes_unlock();
    sb_jdoc_free(doc);

    if (!ok) {
        rt_lc_fail(r, 400, "SANDBOX::INVALID_PARAMETER", "metadata must not "
                   "have more than %d members", RT_METADATA_MAX);
        return;
    }

    memset(&buf, 0, sizeof(buf));
    buf.max = RT_BODY_MAX;
    rt_lc_box(&buf, b, false);
    rt_lc_json(r, 200, &buf);
}


/* Whether the box has every pair of `k=v&k2=v2`. */

static bool
rt_has_labels(const rt_box_t *b, const char *filter)
{
    bool        all;
    unsigned    i;
    rt_query_t  q;

    all = true;
    rt_query_init(&q, filter);

    while (all && rt_query_next(&q)) {
        for (i = 0; i < b->nmetadata; i++) {
            if (strcmp(b->metadata[i].key, q.name.data) == 0
                && strcmp(b->metadata[i].value, q.value.data) == 0)
            {
                break;
            }
        }

        all = i < b->nmetadata;
    }

    rt_query_free(&q);

    return all;
}


/* Whether the box is in one of the states asked for, or none was. */

static bool
rt_has_state(const rt_box_t *b, const char *query)
{
    bool        any, hit;
    rt_query_t  q;

    any = hit = false;
    rt_query_init(&q, query);

    while (rt_query_next(&q)) {
        if (strcmp(q.name.data, "state") == 0) {
            any = true;
            hit |= strcasecmp(q.value.data, rt_state_names[b->state]) == 0;
        }
    }

    rt_query_free(&q);

    return !any || hit;
}


static bool
rt_page(rt_req_t *r, const char *name, int64_t max, int64_t *out)
{
    char  *text, *end, loc[64], input[32], ctx[32];

    text = rt_query_get(r->query, name);

    if (text == NULL) {
        return true;
    }

    snprintf(loc, sizeof(loc), "\"query\",\"%s\"", name);
    *out = strtoll(text, &end, 10);

    if (end == text || *end != '\0') {
        rt_lc_invalid(r, "int_parsing", loc, "Input should be a valid "
                      "integer, unable to parse string as an integer", NULL,
                      NULL);

    } else if (*out < 1 || *out > max) {
        snprintf(input, sizeof(input), "\"%lld\"", (long long) *out);
        snprintf(ctx, sizeof(ctx), *out < 1 ? "{\"ge\":1}" : "{\"le\":200}");
        rt_lc_invalid(r, *out < 1 ? "greater_than_equal" : "less_than_equal",
                      loc, *out < 1
                      ? "Input should be greater than or equal to 1"
                      : "Input should be less than or equal to 200", input,
                      ctx);
    }

    free(text);

    return !r->replied;
}


void
rt_lc_list(rt_req_t *r)
{
    bool        shown;
    char       *filter;
    size_t      i, n, total, first;
    int64_t     page, size, pages;
    sb_buf_t    b;
    rt_box_t  **list;

    page = 1;
    size = 20;

    if (!rt_page(r, "page", INT32_MAX, &page)
        || !rt_page(r, "pageSize", 200, &size))
    {
        return;
    }

    filter = rt_query_get(r->query, "metadata");
    list = rt_boxes_list(&n);
    memset(&b, 0, sizeof(b));
    b.max = RT_BODY_MAX;
    sb_buf_printf(&b, "{\"items\":[");
    first = (size_t) ((page - 1) * size);
    total = 0;

    for (i = 0; i < n; i++) {
        rt_boxes_lock();
        shown = rt_has_state(list[i], r->query)
                && (filter == NULL || rt_has_labels(list[i], filter));
        rt_boxes_unlock();

        if (shown) {
            if (total >= first && total < first + (size_t) size) {
                sb_buf_add(&b, ",", total > first ? 1 : 0);
                rt_lc_box(&b, list[i], false);
            }

            total++;
        }

        rt_box_release(list[i]);
    }

    free(list);
    free(filter);
    pages = ((int64_t) total + size - 1) / size;
    sb_buf_printf(&b, "],\"pagination\":{\"page\":%lld,\"pageSize\":%lld,"
                      "\"totalItems\":%zu,\"totalPages\":%lld,"
                      "\"hasNextPage\":%s}}",
                  (long long) page, (long long) size, total,
                  (long long) pages, page < pages ? "true" : "false");
    rt_lc_json(r, 200, &b);
}
