/* The event stream: what is seen does not depend on splits. */

#include "stream.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


typedef struct {
    sb_buf_t           log;
    sb_buf_t           out[2];
    sb_stream_facts_t  facts;
} seen_t;


static void
on_output(void *data, sb_std_e which, const char *p, size_t n, bool last)
{
    seen_t  *s = data;

    if (sb_buf_add(&s->out[which], p, n) != SB_OK
        || (last && sb_buf_add_c(&s->out[which], '|') != SB_OK)
        || (n == 0 && !last))
    {
        abort();
    }
}


static void
on_init(void *data, sb_str_t id)
{
    seen_t  *s = data;

    if (id.len > 256 || sb_buf_add_str(&s->log, id) != SB_OK) {
        abort();
    }
}


static void
on_result(void *data, sb_str_t json, bool whole)
{
    seen_t  *s = data;

    if (json.len >= 64 * 1024 || sb_buf_add_str(&s->log, json) != SB_OK
        || sb_buf_add_c(&s->log, whole ? 'w' : 'c') != SB_OK)
    {
        abort();
    }
}


static void
run(seen_t *s, const char *p, size_t n, size_t step)
{
    size_t                i, part;
    sb_stream_t          *st;
    sb_stream_handler_t   h = { on_output, on_init, on_result, s };

    memset(s, 0, sizeof(*s));
    s->log.max = s->out[0].max = s->out[1].max = 1 << 24;

    st = sb_stream_new(&h);
    if (st == NULL) {
        abort();
    }

    for (i = 0; i < n; i += part) {
        part = n - i < step ? n - i : step;
        sb_stream_feed(st, p + i, part);
    }

    s->facts = *sb_stream_finish(st);
    sb_stream_free(st);
}


static void
same(const sb_buf_t *a, const sb_buf_t *b)
{
    if (a->len != b->len || (a->len && memcmp(a->data, b->data, a->len) != 0)) {
        abort();
    }
}


static void
forget(seen_t *s)
{
    sb_buf_free(&s->log);
    sb_buf_free(&s->out[0]);
    sb_buf_free(&s->out[1]);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t               step;
    seen_t               whole, part;
    static const size_t  steps[] = { 1, 5, 64 };

    if (size > 200 * 1000) {
        return 0;
    }

    run(&whole, (const char *) data, size, size + 1);

    for (step = 0; step < 3; step++) {
        run(&part, (const char *) data, size, steps[step]);
        same(&whole.log, &part.log);
        same(&whole.out[0], &part.out[0]);
        same(&whole.out[1], &part.out[1]);

        if (memcmp(&whole.facts, &part.facts, sizeof(whole.facts)) != 0) {
            abort();
        }

        forget(&part);
    }

    forget(&whole);

    return 0;
}
