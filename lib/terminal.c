#include "terminal.h"
#include "json.h"

#include <stdio.h>


#define PTY_STDIN   0x00
#define PTY_STDOUT  0x01
#define PTY_STDERR  0x02
#define PTY_REPLAY  0x03

#define PTY_SIZE_MAX  65535


static void
sb_pty_server_data(void *ctx, const sb_ws_t *ws, uint64_t at, const uint8_t *p,
    size_t n)
{
    unsigned   stream;
    sb_pty_t  *pty = ctx;

    if (ws->opcode != SB_WS_BINARY) {
        return;
    }

    if (at == 0) {
        pty->channel = *p++;
        pty->offset = 0;
        pty->offset_len = 0;
        n--;
    }

    switch (pty->channel) {

    case PTY_STDOUT:
    case PTY_STDERR:

        if (n == 0) {
            break;
        }

        stream = pty->channel == PTY_STDERR;
        sb_echo_shown(&pty->echo, p, n, pty->now_us);
        pty->output(pty->ctx, stream, pty->shown, (const char *) p, n);
        pty->shown += n;
        break;

    case PTY_REPLAY:

        while (n && pty->offset_len < 8) {
            pty->offset = pty->offset << 8 | *p++;
            pty->offset_len++;
            n--;
        }

        if (n) {
            pty->replay(pty->ctx, pty->offset, (const char *) p, n);
            pty->offset += n;
            pty->replayed += n;
        }

        break;

    default:
        break;
    }
}


static void
sb_pty_server_message(void *ctx, const sb_ws_t *ws)
{
    int         n;
    char        text[16];
    sb_str_t    type;
    sb_pty_t   *pty = ctx;
    sb_jdoc_t  *doc;

    static const sb_json_limits_t  limits = { 8, SB_WS_TEXT_MAX };

    if (ws->opcode != SB_WS_TEXT || ws->text_cut) {
        return;
    }

    doc = sb_jdoc_parse(sb_str(ws->text, ws->text_len), &limits, NULL);
    if (doc == NULL) {
        return;
    }

    type = sb_jv_str(sb_jdoc_root(doc), "type");

    if (sb_eq(type, sb_lit("connected"))) {
        pty->note(pty->ctx, SB_PTY_MODE, sb_jv_str(sb_jdoc_root(doc), "mode"));

    } else if (sb_eq(type, sb_lit("error"))) {
        pty->note(pty->ctx, SB_PTY_FAULT, sb_jv_str(sb_jdoc_root(doc), "code"));

    } else if (sb_eq(type, sb_lit("exit")) && ws->has_exit) {
        n = snprintf(text, sizeof(text), "%d", ws->exit_code);
        pty->note(pty->ctx, SB_PTY_EXIT, sb_str(text, (size_t) n));
    }

    sb_jdoc_free(doc);
}


/* What is echoed is shown later, and judged then. */
static void
sb_pty_typed(sb_pty_t *pty, const char *p, size_t n)
{
    pty->typed += n;

    if (pty->keep == SB_PTY_OFF || n == 0) {
        return;
    }

    if (pty->keep == SB_PTY_ON) {
        pty->input(pty->ctx, p, n);
    }

    sb_echo_typed(&pty->echo, p, n, pty->now_us);
}


static void
sb_pty_kept(void *ctx, sb_str_t line, bool prompt)
{
    char       command[SB_ECHO_LINE];
    size_t     n;
    sb_pty_t  *pty = ctx;

    if (pty->keep == SB_PTY_HIDDEN) {
        pty->input(pty->ctx, line.data, line.len);
    }

    n = prompt ? sb_echo_command(command, line) : 0;

    if (n) {
        pty->note(pty->ctx, SB_PTY_COMMAND, sb_str(command, n));
    }
}


static void
sb_pty_client_data(void *ctx, const sb_ws_t *ws, uint64_t at, const uint8_t *p,
    size_t n)
{
    sb_pty_t  *pty = ctx;

    if (ws->opcode != SB_WS_BINARY) {
        return;
    }

    if (at == 0) {
        pty->client_channel = *p++;
        n--;
    }

    if (pty->client_channel == PTY_STDIN) {
        sb_pty_typed(pty, (const char *) p, n);
    }
}


static void
sb_pty_client_message(void *ctx, const sb_ws_t *ws)
{
    int             n;
    char            text[32];
    int64_t         cols, rows;
    sb_str_t        type, data;
    sb_pty_t       *pty = ctx;
    sb_jdoc_t      *doc;
    const sb_jv_t  *root;

    static const sb_json_limits_t  limits = { 8, SB_WS_TEXT_MAX };

    if (ws->opcode != SB_WS_TEXT) {
        return;
    }

    doc = ws->text_cut ? NULL : sb_jdoc_parse(sb_str(ws->text, ws->text_len),
                                              &limits, NULL);
    if (doc == NULL) {
        pty->typed_unread++;
        return;
    }

    root = sb_jdoc_root(doc);
    type = sb_jv_str(root, "type");

    if (sb_eq(type, sb_lit("stdin"))) {
        data = sb_jv_str(root, "data");
        sb_pty_typed(pty, data.data, data.len);

    } else if (sb_eq(type, sb_lit("resize"))) {

        if (sb_jv_int(sb_jv_get(root, "cols"), &cols)
            && sb_jv_int(sb_jv_get(root, "rows"), &rows)
            && cols > 0 && cols <= PTY_SIZE_MAX
            && rows > 0 && rows <= PTY_SIZE_MAX)
        {
            n = snprintf(text, sizeof(text), "%dx%d", (int) cols, (int) rows);
            pty->note(pty->ctx, SB_PTY_RESIZE,
                      sb_str(text, (size_t) n));
        }

    } else if (sb_eq(type, sb_lit("signal"))) {
        data = sb_jv_str(root, "signal");
        pty->note(pty->ctx, SB_PTY_SIGNAL,
                  sb_str(data.data, data.len < 32 ? data.len : 32));
    }

    sb_jdoc_free(doc);
}


void
sb_pty_init(sb_pty_t *pty, sb_ws_t *from_server, sb_ws_t *from_client)
{
    from_server->data = sb_pty_server_data;
    from_server->message = sb_pty_server_message;
    from_server->ctx = pty;

    from_client->data = sb_pty_client_data;
    from_client->message = sb_pty_client_message;
    from_client->ctx = pty;

    pty->echo.kept = sb_pty_kept;
    pty->echo.ctx = pty;
}


void
sb_pty_end(sb_pty_t *pty)
{
    sb_echo_end(&pty->echo);
}
