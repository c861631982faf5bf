/* Queries and escapes as the local runtime reads and writes them. */

#include "standalone/runtime/url.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROOM  (8 * 1024 * 1024)


static sb_str_t
text(const sb_buf_t *b)
{
    return sb_str(b->len ? b->data : "", b->len);
}


/* What is escaped whole comes back as it was. */
static void
there_and_back(sb_str_t s)
{
    sb_buf_t  there = { .max = ROOM }, back = { .max = ROOM };

    if (rt_escape(&there, s, "", false) != SB_OK
        || rt_unescape(&back, text(&there), true) != SB_OK
        || !sb_eq(text(&back), s))
    {
        abort();
    }

    sb_buf_free(&there);
    sb_buf_free(&back);
}


/* The value that is found is that of the first pair of the name. */
static void
pairs(const char *query)
{
    char        *get;
    size_t       i, n, done;
    sb_buf_t     value, *name;
    rt_query_t   q;

    n = 0;
    name = calloc(64, sizeof(sb_buf_t));
    if (name == NULL) {
        abort();
    }

    rt_query_init(&q, query);

    while (n < 64 && rt_query_next(&q)) {

        if (q.name.data[q.name.len] != '\0'
            || q.value.data[q.value.len] != '\0')
        {
            abort();
        }

        if (strlen(q.name.data) == q.name.len) {

            for (i = 0, done = false; i < n; i++) {
                done |= strcmp(name[i].data, q.name.data) == 0;
            }

            if (!rt_query_value(query, q.name.data, &value)
                || (!done && !sb_eq(text(&value), text(&q.value))))
            {
                abort();
            }

            sb_buf_free(&value);

            get = rt_query_get(query, q.name.data);

            if (get == NULL) {
                abort();
            }

            free(get);
        }

        name[n].max = ROOM;

        if (sb_buf_add(&name[n], q.name.data, q.name.len) != SB_OK
            || sb_buf_cstr(&name[n]) == NULL)
        {
            abort();
        }

        n++;
    }

    rt_query_free(&q);

    for (i = 0; i < n; i++) {
        sb_buf_free(&name[i]);
    }

    free(name);
}


/* Written anew, and that once more: it does not change again. */
static void
anew(const char *query)
{
    sb_buf_t  one = { .max = ROOM }, two = { .max = ROOM };

    if (rt_query_httpx(&one, query) != SB_OK
        || sb_buf_cstr(&one) == NULL
        || rt_query_httpx(&two, one.data) != SB_OK
        || !sb_eq(text(&one), text(&two)))
    {
        abort();
    }

    sb_buf_free(&one);
    sb_buf_free(&two);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char  *query;

    if (size > 64 * 1024) {
        return 0;
    }

    there_and_back(sb_str((const char *) data, size));

    query = malloc(size + 1);
    if (query == NULL) {
        abort();
    }

    memcpy(query, data, size);
    query[size] = '\0';

    pairs(query);
    anew(query);

    free(query);

    return 0;
}
