/* The query of a question to the console API, and the filters in it: what is read
 * is read again alike when it is encoded anew, each refusal has its sentence, and
 * filters keep to their bounds. */

#include "ask_args.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


/* As others would write it. */

static size_t
encode(char *to, const char *text)
{
    char *p = to;

    for ( ; *text; text++) {
        p += sprintf(p, "%%%02X", (unsigned char) *text);
    }

    return (size_t) (p - to);
}


static void
check_again(const ask_args_t *a, size_t size)
{
    char        *query, *p;
    unsigned     i;
    ask_args_t   b = { 0 };

    /* "&" and "=" are among the bytes that were there */

    query = malloc(3 * size + 2 * ASK_PARAMS + 1);
    if (query == NULL) {
        abort();
    }

    p = query;

    for (i = 0; i < a->n; i++) {
        *p++ = '&';
        p += encode(p, a->p[i].name);
        *p++ = '=';
        p += encode(p, a->p[i].value);
    }

    if (!ask_args_read(&b, sb_str(query, (size_t) (p - query))) || b.n != a->n) {
        abort();
    }

    for (i = 0; i < a->n; i++) {
        if (strcmp(a->p[i].name, b.p[i].name) != 0
            || strcmp(a->p[i].value, b.p[i].value) != 0)
        {
            abort();
        }
    }

    ask_args_free(&b);
    free(query);
}


/* Was it refused with a sentence? */

static void
check_why(const ask_args_t *a)
{
    size_t  n = strlen(a->why);

    if (n < 10 || n >= sizeof(a->why) || a->why[n - 1] != '.') {
        abort();
    }
}


static void
check_filters(ask_args_t *a)
{
    int64_t                 n;
    unsigned                i;
    history_filter_t        f;
    history_filter_facts_t  facts = { .duration_ms = -1 };

    static const char *const  words[] = { "asc", "desc", NULL };

    history_filter_init(&f);

    for (i = 0; i < a->n; i++) {
        a->why[0] = '\0';

        if (!ask_args_filter(a, &a->p[i], &f)) {
            check_why(a);
        }

        a->why[0] = '\0';

        if (!ask_args_int(a, &a->p[i], &n, -5, 1000)) {
            check_why(a);

        } else if (n < -5 || n > 1000) {
            abort();
        }

        a->why[0] = '\0';

        if (ask_args_word(a, &a->p[i], words) == -1) {
            check_why(a);
        }
    }

    if (f.type.n > HISTORY_FILTER_VALUES || f.status.n > HISTORY_FILTER_VALUES) {
        abort();
    }

    (void) history_filter_match(&f, &facts);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char        *query;
    ask_args_t   a = { 0 };

    /* in memory of its own, so that a byte more is seen */

    query = malloc(size ? size : 1);
    if (query == NULL) {
        abort();
    }

    if (size) {
        memcpy(query, data, size);
    }

    if (ask_args_read(&a, sb_str(query, size))) {
        check_again(&a, size);
        check_filters(&a);

    } else {
        check_why(&a);
    }

    ask_args_free(&a);
    free(query);

    return 0;
}
