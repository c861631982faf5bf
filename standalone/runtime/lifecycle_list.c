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
rt_lc_patch(rt_req_t *r, const char *id, const char *last)
{
    bool            ok;
    rt_box_t       *b;
    sb_buf_t        buf;
    sb_jdoc_t      *doc;
    const sb_jv_t  *v;

    (void) last;
    doc = rt_lc_body(r);

    if (doc == NULL) {
        return;
    }

    if (!rt_lc_strings(r, sb_jdoc_root(doc), NULL, true)) {
        sb_jdoc_free(doc);
        return;
    }

    b = rt_box_find(sb_str(id, strlen(id)));

    if (b == NULL) {
        rt_lc_unknown(r, sb_str(id, strlen(id)));
        sb_jdoc_free(doc);
        return;
    }

    for (v = sb_jdoc_root(doc)->child; v != NULL; v = v->next) {
        if (!rt_lc_label_ok(r, v->key, v->kind == SB_JSON_STRING
                                       ? v->text : sb_lit("")))
        {
            sb_jdoc_free(doc);
            rt_box_release(b);
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
        rt_box_release(b);
        return;
    }

    memset(&buf, 0, sizeof(buf));
    buf.max = RT_BODY_MAX;
    rt_lc_box(&buf, b, false);
    rt_box_release(b);
    rt_lc_json(r, 200, &buf);
}


/* Whether each piece between `&` is a pair. */

static bool
rt_is_filter(const char *filter)
{
    size_t       n;
    const char  *p;

    for (p = filter; *p != '\0'; p += n + (p[n] == '&' ? 1 : 0)) {
        n = strcspn(p, "&");

        if (n > 0 && memchr(p, '=', n) == NULL) {
            return false;
        }
    }

    return true;
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


bool
rt_lc_query_int(rt_req_t *r, const char *name, int64_t max, int64_t *out)
{
    char  *text, *end, loc[64], input[32], ctx[32], msg[80];

    text = rt_lc_query(r->query, name);

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
        snprintf(ctx, sizeof(ctx), "{\"%s\":%lld}", *out < 1 ? "ge" : "le",
                 *out < 1 ? 1LL : (long long) max);
        snprintf(msg, sizeof(msg), "Input should be %s than or equal to %lld",
                 *out < 1 ? "greater" : "less",
                 *out < 1 ? 1LL : (long long) max);
        rt_lc_invalid(r, *out < 1 ? "greater_than_equal" : "less_than_equal",
                      loc, msg, input, ctx);
    }

    free(text);

    return !r->replied;
}


bool
rt_lc_page(rt_req_t *r, rt_page_t *page)
{
    memset(page, 0, sizeof(rt_page_t));
    page->page = 1;
    page->size = 20;

    return rt_lc_query_int(r, "page", INT32_MAX, &page->page)
           && rt_lc_query_int(r, "pageSize", 200, &page->size);
}


bool
rt_lc_page_item(sb_buf_t *b, rt_page_t *page)
{
    size_t  first, n;

    first = (size_t) ((page->page - 1) * page->size);
    n = page->total++;

    if (n < first || n >= first + (size_t) page->size) {
        return false;
    }

    if (page->shown++ > 0) {
        sb_buf_add_c(b, ',');
    }

    return true;
}


void
rt_lc_page_end(sb_buf_t *b, const rt_page_t *page)
{
    int64_t  pages;

    pages = ((int64_t) page->total + page->size - 1) / page->size;
    sb_buf_printf(b, "],\"pagination\":{\"page\":%lld,\"pageSize\":%lld,"
                     "\"totalItems\":%zu,\"totalPages\":%lld,"
                     "\"hasNextPage\":%s}}",
                  (long long) page->page, (long long) page->size, page->total,
                  (long long) pages, page->page < pages ? "true" : "false");
}


void
rt_lc_list(rt_req_t *r)
{
    bool        shown;
    char       *filter;
    size_t      i, n;
    sb_buf_t    b;
    rt_box_t  **list;
    rt_page_t   page;

    if (!rt_lc_page(r, &page)) {
        return;
    }

    filter = rt_lc_query(r->query, "metadata");

    if (filter != NULL && !rt_is_filter(filter)) {
        rt_lc_fail(r, 400, "INVALID_METADATA_FORMAT", "metadata must be "
                   "pairs of k=v, joined by &: %.200s", filter);
        free(filter);
        return;
    }

    list = rt_boxes_list(&n);
    memset(&b, 0, sizeof(b));
    b.max = RT_BODY_MAX;
    sb_buf_printf(&b, "{\"items\":[");

    for (i = 0; i < n; i++) {
        rt_boxes_lock();
        shown = rt_has_state(list[i], r->query)
                && (filter == NULL || rt_has_labels(list[i], filter));
        rt_boxes_unlock();

        if (shown && rt_lc_page_item(&b, &page)) {
            rt_lc_box(&b, list[i], false);
        }

        rt_box_release(list[i]);
    }

    free(list);
    free(filter);
    rt_lc_page_end(&b, &page);
    rt_lc_json(r, 200, &b);
}
