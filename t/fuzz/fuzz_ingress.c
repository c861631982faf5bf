/*
 * Ingress routes: the first line is what a header or a label of Host says, the
 * second the target.  A token read must be what it was read from, written
 * again; a route stays in its buffer, and the masked path says no signature.
 */

#include <stdio.h>
#include <stdlib.h>

#include "ingress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void route(const sb_ingress_t *t, sb_str_t target);


static void
check(bool so, const char *what)
{
    if (!so) {
        fprintf(stderr, "not so: %s\n", what);
        abort();
    }
}


static bool
inside(sb_str_t part, sb_str_t whole)
{
    return part.len == 0
           || (part.data >= whole.data
               && part.data + part.len <= whole.data + whole.len);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sb_rc_t       rc;
    sb_str_t      text, target;
    const char   *line;
    sb_ingress_t  t;

    text = sb_str(data, size);
    line = memchr(data, '\n', size);
    target = sb_lit("/");

    if (line) {
        target = sb_str(line + 1, text.len - (size_t) (line + 1 - text.data));
        text.len = (size_t) (line - text.data);
    }

    rc = sb_ingress_token(&t, text);

    check(rc == SB_OK || rc == SB_DECLINED || rc == SB_AMBIGUOUS, "result");

    if (rc == SB_OK) {
        check(t.sandbox.len > 0, "a sandbox");
        check(t.port <= 65535, "a port");
        check(inside(t.sandbox, text), "its id is from the text");
        check(inside(t.signature, text), "its signature too");
        check(t.signature.len == 0 || t.signature.len == 9, "nine characters");
        route(&t, target);
    }

    route(NULL, target);

    return 0;
}


static void
route(const sb_ingress_t *t, sb_str_t target)
{
    char        *buf;
    size_t       n;
    sb_rc_t      rc;
    sb_route_t   r;

    n = 2 * target.len + 64;
    buf = malloc(n);

    if (buf == NULL) {
        return;
    }

    memset(&r, 0, sizeof(r));
    rc = sb_ingress_route(&r, t, sb_lit("POST"), target, false, buf, n);

    if (rc == SB_OK) {
        check(r.op != NULL, "an operation");
        check(inside(r.path, sb_str(buf, n)) || inside(r.path, target)
              || sb_eq(r.path, sb_lit("/")),
              "its path is in the buffer, the target or the root");

    } else {
        check(rc == SB_AMBIGUOUS || rc == SB_DECLINED || rc == SB_ERROR
              || rc == SB_LIMIT, "refusal");
    }

    memset(&r, 0, sizeof(r));
    rc = sb_route(&r, sb_lit("GET"), target, false, buf, n);

    if (rc == SB_OK && r.op == sb_op_find(sb_lit("lifecycle.unknown"))) {
        sb_ingress_mask(&r, target);
    }

    free(buf);
}
