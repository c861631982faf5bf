/*
 * lib/ws: whatever passes and however it is cut, the reader stays in its
 * bounds and comes to the same end.  The first byte of an input says in which
 * pieces the rest is fed.
 */

#include <assert.h>

#include "ws.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t   at, n, step;
    sb_ws_t  whole = { 0 }, pieces = { 0 };

    if (size == 0) {
        return 0;
    }

    step = (size_t) data[0] % 16 + 1;
    data++;
    size--;

    sb_ws_feed(&whole, data, size);

    for (at = 0; at < size; at += n) {
        n = size - at < step ? size - at : step;
        sb_ws_feed(&pieces, data + at, n);
    }

    assert(whole.text_len <= SB_WS_TEXT_MAX);
    assert(whole.payload <= size);
    assert(whole.frames == pieces.frames);
    assert(whole.messages == pieces.messages);
    assert(whole.controls == pieces.controls);
    assert(whole.payload == pieces.payload);
    assert(whole.closed == pieces.closed);
    assert(whole.broken == pieces.broken);
    assert(whole.close_code == pieces.close_code);
    assert(whole.has_exit == pieces.has_exit);
    assert(whole.exit_code == pieces.exit_code);
    assert(whole.text_len == pieces.text_len);
    assert(memcmp(whole.text, pieces.text, whole.text_len) == 0);

    return 0;
}
