/*
 * lib/terminal: whatever passes in both directions and however it is cut, the same
 * comes out, and typed bytes that are kept stand in the output.  The first byte
 * says in which pieces the rest is fed; then a length and the bytes of one
 * direction, and so on, client and server in turn.
 */

#include <assert.h>
#include <stdlib.h>

#include "terminal.h"


typedef struct {
    sb_pty_t   pty;
    sb_ws_t    server, client;
    uint64_t   hash[4];     /* output, replay, input, notes: how one stands to
                               another depends on the pieces */
    uint64_t   out, in;
} term_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
term_hash(term_t *t, unsigned kind, uint64_t what, const char *p, size_t n)
{
    size_t     i;
    uint64_t  *h = &t->hash[kind];

    for (i = 0; i < n; i++) {
        *h = (*h ^ (what << 8 | (uint8_t) p[i])) * 1099511628211u;
    }
}


static void
term_output(void *ctx, unsigned stream, uint64_t at, const char *p, size_t n)
{
    term_t  *t = ctx;

    assert(stream < 2 && n);
    assert(at == t->out);
    t->out += n;
    term_hash(t, 0, stream, p, n);
}


static void
term_replay(void *ctx, uint64_t offset, const char *p, size_t n)
{
    assert(n);
    (void) offset;
    term_hash(ctx, 1, 0, p, n);
}


static void
term_input(void *ctx, const char *p, size_t n)
{
    term_t  *t = ctx;

    t->in += n;
    term_hash(t, 2, 0, p, n);
}


static void
term_note(void *ctx, char what, sb_str_t text)
{
    term_hash(ctx, 3, (uint64_t) what, text.data, text.len);
}


static term_t *
term_run(const uint8_t *data, size_t size, size_t step)
{
    bool     server;
    size_t   n, k, at;
    term_t  *t;

    t = calloc(1, sizeof(term_t));
    assert(t);

    t->pty.output = term_output;
    t->pty.replay = term_replay;
    t->pty.input = term_input;
    t->pty.note = term_note;
    t->pty.ctx = t;
    sb_pty_init(&t->pty, &t->server, &t->client);

    for (server = true; size; server = !server) {
        n = *data++;
        size--;
        n = n < size ? n : size;
        t->pty.now_us += 500000;

        for (at = 0; at < n; at += k) {
            k = n - at < step ? n - at : step;
            sb_ws_feed(server ? &t->server : &t->client, data + at, k);
        }

        data += n;
        size -= n;
    }

    sb_pty_end(&t->pty);

    return t;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    term_t  *whole, *pieces;

    if (size == 0) {
        return 0;
    }

    whole = term_run(data + 1, size - 1, SIZE_MAX);
    pieces = term_run(data + 1, size - 1, (size_t) data[0] % 16 + 1);

    assert(memcmp(whole->hash, pieces->hash, sizeof(whole->hash)) == 0);
    assert(whole->out == pieces->out && whole->in == pieces->in);
    assert(whole->pty.typed == pieces->pty.typed);
    assert(whole->pty.echo.kept_bytes + whole->pty.echo.hidden_bytes
           == whole->pty.typed);
    assert(whole->in == whole->pty.echo.kept_bytes);
    assert(whole->in <= whole->pty.typed);

    free(whole);
    free(pieces);

    return 0;
}
