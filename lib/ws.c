#include "ws.h"
#include "json.h"


#define SB_WS_CONTINUATION  0x0
#define SB_WS_CLOSE         0x8
#define SB_WS_PONG          0xa

#define SB_WS_PLAIN         1024    /* bytes unmasked at a time */


static unsigned
sb_ws_head_len(const sb_ws_t *ws)
{
    unsigned  n = 2;

    if (ws->head_len < 2) {
        return n;
    }

    switch (ws->head[1] & 0x7f) {

    case 126:
        n += 2;
        break;

    case 127:
        n += 8;
        break;
    }

    return n + (ws->head[1] & 0x80 ? 4 : 0);
}


/* Is this frame allowed to come now?  RSV bits are not: the module takes
 * Sec-WebSocket-Extensions out of the request, so nothing was agreed on. */
static bool
sb_ws_head_valid(const sb_ws_t *ws)
{
    if (ws->head[0] & 0x70) {
        return false;
    }

    if (ws->frame_opcode & 0x8) {
        return ws->frame_opcode <= SB_WS_PONG && ws->fin && ws->left <= 125;
    }

    if (ws->frame_opcode == SB_WS_CONTINUATION) {
        return ws->opcode != 0;
    }

    return ws->frame_opcode <= SB_WS_BINARY && ws->opcode == 0;
}


static void
sb_ws_head(sb_ws_t *ws)
{
    unsigned  i, at = 2, n = 0;

    ws->fin = (ws->head[0] & 0x80) != 0;
    ws->frame_opcode = ws->head[0] & 0x0f;
    ws->masked = (ws->head[1] & 0x80) != 0;
    ws->left = ws->head[1] & 0x7f;
    ws->offset = 0;

    if (ws->left == 126) {
        n = 2;

    } else if (ws->left == 127) {
        n = 8;
    }

    if (n) {
        ws->left = 0;

        for (i = 0; i < n; i++) {
            ws->left = ws->left << 8 | ws->head[at++];
        }
    }

    if (ws->masked) {
        memcpy(ws->mask, ws->head + at, 4);
    }

    if (ws->left >> 63 || !sb_ws_head_valid(ws)) {
        ws->broken = true;
        return;
    }

    ws->frames++;

    if (ws->frame_opcode & 0x8) {
        ws->controls++;

    } else if (ws->frame_opcode != SB_WS_CONTINUATION) {
        ws->opcode = ws->frame_opcode;
        ws->text_len = 0;
        ws->text_cut = false;
        ws->at = 0;
    }
}


static void
sb_ws_message(sb_ws_t *ws)
{
    int64_t     code;
    sb_str_t    text;
    sb_jdoc_t  *doc;

    static const sb_json_limits_t  limits = { 8, SB_WS_TEXT_MAX };

    ws->messages++;

    text = sb_str(ws->text, ws->text_len);

    /* a look at the bytes spares the parser for all other messages */

    if (ws->opcode == SB_WS_TEXT
        && !ws->text_cut
        && memmem(text.data, text.len, "\"exit\"", 6) != NULL)
    {
        doc = sb_jdoc_parse(text, &limits, NULL);

        if (doc
            && sb_eq(sb_jv_str(sb_jdoc_root(doc), "type"), sb_lit("exit"))
            && sb_jv_int(sb_jv_get(sb_jdoc_root(doc), "exit_code"), &code)
            && code >= INT32_MIN && code <= INT32_MAX)
        {
            ws->has_exit = true;
            ws->exit_code = (int32_t) code;
        }

        sb_jdoc_free(doc);
    }

    if (ws->message) {
        ws->message(ws->ctx, ws);
    }

    ws->opcode = 0;
}


static void
sb_ws_frame_end(sb_ws_t *ws)
{
    ws->head_len = 0;

    if (ws->frame_opcode == SB_WS_CLOSE) {
        ws->closed = true;

    } else if (!(ws->frame_opcode & 0x8) && ws->fin) {
        sb_ws_message(ws);
    }
}


static uint8_t
sb_ws_byte(const sb_ws_t *ws, uint8_t c, uint64_t offset)
{
    return ws->masked ? c ^ ws->mask[offset & 3] : c;
}


/* Hands payload on, without its mask. */
static void
sb_ws_data(sb_ws_t *ws, const uint8_t *p, size_t n)
{
    size_t    i, size;
    uint8_t   plain[SB_WS_PLAIN];
    uint64_t  offset;

    if (!ws->masked) {
        ws->data(ws->ctx, ws, ws->at, p, n);
        ws->at += n;
        return;
    }

    for (offset = ws->offset; n; n -= size, p += size, offset += size) {
        size = n < sizeof(plain) ? n : sizeof(plain);

        for (i = 0; i < size; i++) {
            plain[i] = sb_ws_byte(ws, p[i], offset + i);
        }

        ws->data(ws->ctx, ws, ws->at, plain, size);
        ws->at += size;
    }
}


static void
sb_ws_payload(sb_ws_t *ws, const uint8_t *p, size_t n)
{
    size_t   i;
    uint8_t  c;

    if (ws->frame_opcode == SB_WS_CLOSE) {

        for (i = 0; i < n && ws->offset + i < 2; i++) {
            c = sb_ws_byte(ws, p[i], ws->offset + i);

            if (ws->offset + i == 0) {
                /* the head has been read: its room keeps the first byte */
                ws->head[0] = c;

            } else {
                ws->close_code = (uint16_t) (ws->head[0] << 8 | c);
            }
        }

    } else if (!(ws->frame_opcode & 0x8) && ws->opcode == SB_WS_TEXT
               && !ws->text_cut)
    {
        for (i = 0; i < n; i++) {
            if (ws->text_len == SB_WS_TEXT_MAX) {
                ws->text_cut = true;
                break;
            }

            ws->text[ws->text_len++] =
                                (char) sb_ws_byte(ws, p[i], ws->offset + i);
        }
    }

    if (ws->data && !(ws->frame_opcode & 0x8) && n) {
        sb_ws_data(ws, p, n);
    }

    ws->offset += n;
    ws->left -= n;
    ws->payload += n;
}


void
sb_ws_feed(sb_ws_t *ws, const void *data, size_t n)
{
    size_t          size;
    const uint8_t  *p = data;

    while (n && !ws->broken && !ws->closed) {

        if (ws->head_len < 2 || ws->head_len < sb_ws_head_len(ws)) {
            ws->head[ws->head_len++] = *p++;
            n--;

            if (ws->head_len < sb_ws_head_len(ws)) {
                continue;
            }

            sb_ws_head(ws);

            if (!ws->broken && ws->left == 0) {
                sb_ws_frame_end(ws);
            }

            continue;
        }

        size = ws->left < n ? (size_t) ws->left : n;

        sb_ws_payload(ws, p, size);

        p += size;
        n -= size;

        if (ws->left == 0) {
            sb_ws_frame_end(ws);
        }
    }
}
