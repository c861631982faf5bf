/*
 * Requests and answers.  The input is "METHOD TARGET\n" and a body; the body is
 * also fed to the answer reader of every operation.  The records are valid JSON
 * within their bounds, and an answer's do not depend on splits.
 */

#include "request.h"

#include "json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
check_object(sb_str_t json, size_t max)
{
    sb_rc_t     rc;
    sb_jdoc_t  *d;

    d = sb_jdoc_parse(json, NULL, &rc);

    if (json.len > max || d == NULL
        || sb_jdoc_root(d)->kind != SB_JSON_OPEN_OBJECT)
    {
        abort();
    }

    sb_jdoc_free(d);
}


static void
request(sb_str_t method, sb_str_t target, sb_str_t body)
{
    char          *buf;
    sb_rc_t        rc;
    sb_route_t     route;
    sb_request_t   r;

    buf = malloc(2 * target.len + 64);
    if (buf == NULL) {
        return;
    }

    if (sb_route(&route, method, target, false, buf, 2 * target.len + 64)
        == SB_OK)
    {
        rc = sb_request_read(&r, &route, body);

        if (rc > SB_OK || r.op == NULL || (rc != SB_OK && r.reason == NULL)
            || r.nfiles > SB_REQUEST_FILES_MAX || r.nfiles > r.files_total)
        {
            abort();
        }

        check_object(sb_str(r.json.data, r.json.len), SB_REQUEST_JSON_MAX);
        sb_request_free(&r);
    }

    free(buf);
}


static sb_answer_t *
answer(const sb_op_t *op, unsigned status, sb_str_t body, size_t step,
    const sb_answer_facts_t **facts)
{
    size_t        i, n;
    sb_answer_t  *a;

    a = sb_answer_new(op, status);

    if (a == NULL) {
        return NULL;
    }

    for (i = 0; i < body.len; i += n) {
        n = body.len - i < step ? body.len - i : step;
        sb_answer_feed(a, body.data + i, n);
    }

    *facts = sb_answer_finish(a);
    check_object(sb_str((*facts)->json.data, (*facts)->json.len), 64 * 1024);

    return a;
}


static void
answers(const sb_op_t *op, unsigned status, sb_str_t body)
{
    sb_answer_t              *a, *b;
    const sb_answer_facts_t  *x, *y;

    a = answer(op, status, body, body.len + 1, &x);
    b = answer(op, status, body, 3, &y);

    if (a && (!sb_eq(sb_str(x->json.data, x->json.len),
                     sb_str(y->json.data, y->json.len))
              || !sb_eq(x->id, y->id) || x->nitems != y->nitems))
    {
        abort();
    }

    sb_answer_free(a);
    sb_answer_free(b);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t       i;
    sb_str_t     method, target, body;
    const char  *p = (const char *) data, *lf, *blank;

    if (size > 50 * 1000) {
        return 0;
    }

    lf = memchr(p, '\n', size);
    blank = lf ? memchr(p, ' ', (size_t) (lf - p)) : NULL;

    if (blank == NULL) {
        return 0;
    }

    method = sb_str(p, (size_t) (blank - p));
    target = sb_str(blank + 1, (size_t) (lf - blank - 1));
    body = sb_str(lf + 1, size - (size_t) (lf + 1 - p));

    request(method, target, body);

    for (i = 0; i < sb_op_count(); i++) {
        answers(sb_op_at(i), 200, body);
    }

    answers(sb_op_at(0), 400, body);

    return 0;
}
