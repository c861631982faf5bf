/* JSON as the local runtime reads it: the first value of a body.  What it finds
 * there it must be able to write, and to read again. */

#include "standalone/runtime/gojson.h"

#include "utf8.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static sb_jdoc_t *
written(sb_buf_t *b, sb_str_t text)
{
    sb_jdoc_t  *doc;

    doc = rt_go_write(b, text) == SB_OK
          ? rt_go_parse_all(sb_str(b->data, b->len)) : NULL;

    if (doc == NULL || sb_jdoc_root(doc)->kind != SB_JSON_STRING) {
        abort();
    }

    return doc;
}


/* A text as it is written, and read once more: the same, but for bytes that are
 * no UTF-8. */
static void
again(sb_str_t text)
{
    sb_buf_t    one = { .max = 8 * 1024 * 1024 }, two = one;
    sb_jdoc_t  *first, *second;

    first = written(&one, text);
    second = written(&two, sb_jdoc_root(first)->text);

    if (!sb_eq(sb_jdoc_root(first)->text, sb_jdoc_root(second)->text)
        || (sb_utf8_valid(text) && !sb_eq(sb_jdoc_root(first)->text, text)))
    {
        abort();
    }

    sb_jdoc_free(first);
    sb_jdoc_free(second);
    sb_buf_free(&one);
    sb_buf_free(&two);
}


static void
members(const sb_jv_t *v)
{
    int             rc;
    bool            flag;
    size_t          i;
    int64_t         n;
    sb_str_t        text;
    const sb_jv_t  *m;

    static const char *const  names[] = { "command", "cwd", "TIMEOUT", "a" };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        rc = rt_go_str(v, names[i], &text);

        if (rc == 1) {
            again(text);
        }

        m = rt_go_get(v, names[i]);

        if ((rc != 0) != (m != NULL)
            || (rt_go_bool(v, names[i], &flag) != 0) != (m != NULL)
            || (rt_go_int(v, names[i], &n) != 0) != (m != NULL)
            || (m && m->kind == SB_JSON_NULL))
        {
            abort();
        }
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool        empty;
    sb_str_t    body = sb_str((const char *) data, size);
    sb_jdoc_t  *doc, *all;

    if (size > 256 * 1024) {
        return 0;
    }

    doc = rt_go_parse(body, &empty);
    all = rt_go_parse_all(body);

    if ((doc && empty)
        || (all && doc == NULL)
        || (all && sb_jdoc_root(all)->kind != sb_jdoc_root(doc)->kind))
    {
        /* what is JSON as a whole is JSON to its end */
        abort();
    }

    if (doc) {
        members(sb_jdoc_root(doc));
    }

    sb_jdoc_free(doc);
    sb_jdoc_free(all);

    again(body);

    return 0;
}
