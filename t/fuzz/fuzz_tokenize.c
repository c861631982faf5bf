/* Tokens stay inside the text and their bound; a question made of any text is
 * made of quoted tokens only. */

#include "tokenize.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
fuzz_text(sb_str_t text, bool query)
{
    size_t       last;
    sb_tokens_t  t;

    last = 0;
    sb_tokens_init(&t, text, query);

    while (sb_tokens_next(&t)) {
        if (t.len == 0 || t.len > SB_TOKEN_MAX || t.from >= t.to
            || t.to > text.len || t.to < last || (t.together && query))
        {
            abort();
        }

        for (size_t i = 0; i < t.len; i++) {
            if ((unsigned char) t.token[i] <= ' ' || t.token[i] == '"') {
                abort();
            }
        }

        last = t.to;
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool      quoted;
    sb_buf_t  b = { .max = 2048 };
    sb_str_t  text = sb_str(data, size);

    fuzz_text(text, false);
    fuzz_text(text, true);

    if (sb_tokens_query(&b, text, 16) == SB_OK) {
        quoted = false;

        for (size_t i = 0; i < b.len; i++) {
            if (b.data[i] == '"') {
                quoted = !quoted;

            } else if (!quoted && b.data[i] != ' ' && b.data[i] != '*') {
                abort();
            }
        }

        if (quoted) {
            abort();
        }
    }

    sb_buf_free(&b);

    return 0;
}
