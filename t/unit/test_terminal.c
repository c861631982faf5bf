/* lib/echo and lib/terminal: what of a terminal is kept. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "terminal.h"


#define SECOND  1000000u


/* --- echo ----------------------------------------------------------------- */

typedef struct {
    sb_echo_t  e;
    char       kept[4096];
    size_t     len;
    char       command[512];
    bool       prompt;
    uint64_t   now;
} talk_t;


static void
talk_kept(void *ctx, sb_str_t line, bool prompt)
{
    size_t   n;
    talk_t  *t = ctx;

    memcpy(t->kept + t->len, line.data, line.len);
    t->len += line.len;
    t->kept[t->len] = '\0';
    t->prompt = prompt;

    n = prompt ? sb_echo_command(t->command, line) : 0;
    t->command[n] = '\0';
}


/* Pairs of what is typed and what is shown then. */
static talk_t *
talk(const char *const *lines)
{
    talk_t  *t;

    t = calloc(1, sizeof(talk_t));
    assert_non_null(t);
    t->e.kept = talk_kept;
    t->e.ctx = t;
    t->now = SECOND;

    for (; lines[0]; lines += 2) {
        sb_echo_typed(&t->e, lines[0], strlen(lines[0]), t->now);
        t->now += 1000;
        sb_echo_shown(&t->e, lines[1], strlen(lines[1]), t->now);
        t->now += 1000;
    }

    sb_echo_end(&t->e);

    return t;
}


#define TALK(...)  talk((const char *const []) { __VA_ARGS__, NULL })


static void
test_echo_keys(void **state)
{
    talk_t  *t;

    (void) state;

    /* as bash does it: key by key, bracketed paste around each line */
    t = TALK("", "\033[?2004hbox# ", "l", "l", "s", "s", "\r",
             "\r\n\033[?2004l\ra.txt\r\n\033[?2004hbox# ");
    assert_string_equal(t->kept, "ls\r");
    assert_string_equal(t->command, "ls");
    assert_int_equal(t->e.hidden_bytes, 0);
    free(t);

    /* at once, echoed at once and in the middle of a line */
    t = TALK("", "$ ", "echo hi\n", "echo hi\r\n", "", "hi\r\n");
    assert_string_equal(t->kept, "echo hi\n");
    assert_string_equal(t->command, "echo hi");
    free(t);

    /* deletions; colours between */
    t = TALK("", "% ", "m", "m", "x", "x", "\177", "\b \b", "v", "v", "\r",
             "\r\r\n");
    assert_string_equal(t->kept, "mx\177v\r");
    assert_string_equal(t->command, "mv");
    free(t);

    t = TALK("", "$ ", "\xe4\xbd\xa0", "\033[1m\xe4\xbd\xa0\033[m", "\177",
             "\b\b  \b\b", "a", "a", "\r", "\r\n");
    assert_string_equal(t->command, "a");
    free(t);

    /* completion and history: kept, but no command can be told */
    t = TALK("", "$ ", "c", "c", "a", "a", "\t", "t ", "f", "f", "\r", "\r\n");
    assert_string_equal(t->kept, "ca\tf\r");
    assert_string_equal(t->command, "");
    free(t);

    t = TALK("", "$ ", "\033[A", "ls", "\r", "\r\n");
    assert_string_equal(t->kept, "\033[A\r");
    assert_string_equal(t->command, "");
    free(t);

    /* a question is no prompt */
    t = TALK("", "Name? ", "b", "b", "o", "o", "\r", "\r\n");
    assert_string_equal(t->kept, "bo\r");
    assert_false(t->prompt);
    free(t);

    /* pasted with its marks */
    t = TALK("", "$ ", "\033[200~ls -l\033[201~", "\033[7mls -l\033[27m",
             "\r", "\r\n");
    assert_string_equal(t->command, "ls -l");
    free(t);

    /* typed ahead while lines come back one by one */
    t = TALK("a\rb\r", "a\r\nb\r\n");
    assert_string_equal(t->kept, "a\rb\r");
    free(t);

    t = TALK("", "$ ", "sl", "sl", "\003", "^C\r\n$ ", "ls\r", "ls\r\n");
    assert_string_equal(t->kept, "sl\003ls\r");
    assert_string_equal(t->command, "ls");
    free(t);
}


static void
test_echo_hidden(void **state)
{
    size_t   i;
    talk_t  *t;

    /* what may be printed after a password */
    static const char  *after[] = {
        "\r\n", "\r\nroot@box:~# ", "root@box:~# ", "s\r\n", "secre\r\n",
        "sorry\r\n", "\033[Ks", "\033]0;secret\007\r\n", "***", "\bs", "secret2\r\n"
    };

    (void) state;

    for (i = 0; i < sizeof(after) / sizeof(after[0]); i++) {

        /* at once; key by key; key by key, with output between */

        t = TALK("", "Password: ", "secret\r", after[i], "ls\r", "ls\r\n");
        assert_null(strstr(t->kept, "secret"));
        assert_null(strchr(t->kept, 'c'));
        free(t);

        t = TALK("", "Password: ", "s", "", "e", "", "c", "", "r", "", "e",
                 "", "t", "", "\r", after[i], "", "\r\n$ ", "ls\r", "ls\r\n");
        assert_null(strchr(t->kept, 'c'));
        assert_true(t->e.hidden_bytes >= 7);
        assert_string_equal(t->kept, "ls\r");
        free(t);

        t = TALK("", "Password: ", "s", "s", "e", "", "c", "x", "r", "", "e",
                 "", "t", "", "\r", after[i], "", "\r\n$ ", "ls\r", "ls\r\n");
        assert_null(strchr(t->kept, 'c'));
        free(t);
    }

    /* the end of a line that was given up is given up, too */
    t = TALK("pass", "x", "word\r", "word\r\n", "ls\r", "ls\r\n");
    assert_string_equal(t->kept, "ls\r");
    assert_int_equal(t->e.hidden_bytes, 9);
    free(t);

    /* Ctrl-C in a password: it alone */
    t = TALK("secret", "", "\003", "^C\r\n");
    assert_string_equal(t->kept, "\003");
    free(t);

    /* a line without an end */
    t = TALK("ls", "ls");
    assert_string_equal(t->kept, "");
    assert_int_equal(t->e.hidden_bytes, 2);
    free(t);

    /* Meta keys */
    t = TALK("\033secret\r", "\r\n");
    assert_string_equal(t->kept, "");
    free(t);
}


static void
test_echo_bounds(void **state)
{
    size_t   i;
    talk_t  *t;

    (void) state;

    t = TALK("", "$ ");

    /* too late */
    sb_echo_typed(&t->e, "a", 1, 10 * SECOND);
    sb_echo_shown(&t->e, "a", 1, 10 * SECOND + SB_ECHO_US + 1);
    sb_echo_typed(&t->e, "\r", 1, 20 * SECOND);
    sb_echo_shown(&t->e, "\r\n", 2, 20 * SECOND);
    assert_int_equal(t->len, 0);
    assert_int_equal(t->e.hidden_bytes, 2);

    /* one byte more than there is room for */
    for (i = 0; i < SB_ECHO_LINE; i++) {
        sb_echo_typed(&t->e, "x", 1, 30 * SECOND);
        sb_echo_shown(&t->e, "x", 1, 30 * SECOND);
    }

    sb_echo_typed(&t->e, "\r", 1, 30 * SECOND);
    sb_echo_shown(&t->e, "\r\n", 2, 30 * SECOND);
    assert_int_equal(t->len, 0);
    assert_int_equal(t->e.hidden_bytes, 2 + SB_ECHO_LINE + 1);

    sb_echo_typed(&t->e, "ls\r", 3, 31 * SECOND);
    sb_echo_shown(&t->e, "ls\r\n", 4, 31 * SECOND);
    assert_string_equal(t->kept, "ls\r");

    free(t);
}


/* --- pty ------------------------------------------------------------------ */

typedef struct {
    sb_pty_t  pty;
    sb_ws_t   server;
    sb_ws_t   client;
    char      log[4096];
    size_t    len;
} term_t;


static void
term_log(term_t *t, const char *what, uint64_t n, const char *p, size_t len)
{
    size_t  i;

    t->len += (size_t) snprintf(t->log + t->len, sizeof(t->log) - t->len,
                                "%s%llu:", what, (unsigned long long) n);

    for (i = 0; i < len; i++) {
        t->log[t->len++] = p[i];
    }

    t->log[t->len++] = ' ';
    t->log[t->len] = '\0';
}


static void
term_output(void *ctx, unsigned stream, uint64_t at, const char *p, size_t n)
{
    term_log(ctx, stream ? "err" : "out", at, p, n);
}


static void
term_replay(void *ctx, uint64_t offset, const char *p, size_t n)
{
    term_log(ctx, "replay", offset, p, n);
}


static void
term_input(void *ctx, const char *p, size_t n)
{
    term_log(ctx, "in", n, p, n);
}


static void
term_note(void *ctx, char what, sb_str_t text)
{
    char  name[2] = { what, '\0' };

    term_log(ctx, name, 0, text.data, text.len);
}


static term_t *
term_new(sb_pty_input_e keep)
{
    term_t  *t;

    t = calloc(1, sizeof(term_t));
    assert_non_null(t);

    t->pty.output = term_output;
    t->pty.replay = term_replay;
    t->pty.input = term_input;
    t->pty.note = term_note;
    t->pty.ctx = t;
    t->pty.keep = keep;
    t->pty.now_us = SECOND;

    sb_pty_init(&t->pty, &t->server, &t->client);

    return t;
}


static void
term_frame(sb_ws_t *ws, uint8_t first, bool masked, const char *p, size_t n)
{
    size_t   i;
    uint8_t  frame[256], *q = frame;

    static const uint8_t  mask[4] = { 0x11, 0x22, 0xf3, 0x44 };

    *q++ = first;
    *q++ = (uint8_t) (n | (masked ? 0x80 : 0));

    if (masked) {
        memcpy(q, mask, 4);
        q += 4;
    }

    for (i = 0; i < n; i++) {
        *q++ = (uint8_t) (p[i] ^ (masked ? mask[i & 3] : 0));
    }

    sb_ws_feed(ws, frame, (size_t) (q - frame));
}


#define SERVER(t, first, text)                                               \
    term_frame(&(t)->server, first, false, text, sizeof(text) - 1)
#define CLIENT(t, first, text)                                               \
    term_frame(&(t)->client, first, true, text, sizeof(text) - 1)


static void
test_pty_frames(void **state)
{
    term_t  *t;

    (void) state;

    t = term_new(SB_PTY_HIDDEN);

    SERVER(t, 0x82, "\x03\0\0\0\0\0\0\x01\x02" "abc");
    SERVER(t, 0x81, "{\"type\":\"connected\",\"session_id\":\"x\","
                    "\"mode\":\"pty\"}\n");
    SERVER(t, 0x82, "\x01$ ");
    CLIENT(t, 0x82, "\0ls\r");
    SERVER(t, 0x82, "\x01ls\r\n");

    /* C045: fragments, a ping between them */
    SERVER(t, 0x02, "\x01x");
    SERVER(t, 0x89, "ping");
    SERVER(t, 0x80, "y");
    SERVER(t, 0x82, "\x02z");

    /* empty ones, channels that nobody knows */
    SERVER(t, 0x82, "");
    SERVER(t, 0x82, "\x01");
    SERVER(t, 0x82, "\x07q");
    CLIENT(t, 0x82, "\x05q");

    CLIENT(t, 0x81, "{\"type\":\"resize\",\"cols\":132,\"rows\":43}");
    CLIENT(t, 0x81, "{\"type\":\"resize\",\"cols\":-1,\"rows\":43}");
    CLIENT(t, 0x81, "{\"type\":\"signal\",\"signal\":\"SIGINT\"}");
    CLIENT(t, 0x81, "nonsense");
    SERVER(t, 0x81, "{\"type\":\"error\",\"error\":\"no\","
                    "\"code\":\"INVALID_FRAME\"}\n");
    SERVER(t, 0x81, "{\"type\":\"exit\",\"exit_code\":3}\n");

    assert_string_equal(t->log,
        "replay258:abc m0:pty out0:$  in3:ls\r c0:ls out2:ls\r\n out6:x out7:y "
        "err8:z r0:132x43 s0:SIGINT e0:INVALID_FRAME x0:3 ");
    assert_int_equal(t->pty.shown, 9);
    assert_int_equal(t->pty.replayed, 3);
    assert_int_equal(t->pty.typed, 3);
    assert_int_equal(t->pty.typed_unread, 1);
    assert_false(t->server.broken);

    free(t);
}


/* C059: what is compressed is nothing that we could read */
static void
test_pty_compressed(void **state)
{
    term_t  *t;

    (void) state;

    t = term_new(SB_PTY_HIDDEN);
    SERVER(t, 0xc2, "\x01noise");
    SERVER(t, 0x82, "\x01more");
    assert_true(t->server.broken);
    assert_string_equal(t->log, "");
    free(t);
}


static void
test_pty_input(void **state)
{
    term_t  *t;

    (void) state;

    t = term_new(SB_PTY_ON);
    CLIENT(t, 0x82, "\0top");
    CLIENT(t, 0x81, "{\"type\":\"stdin\",\"data\":\"se\\u4f60\"}");
    assert_string_equal(t->log, "in3:top in5:se\xe4\xbd\xa0 ");
    free(t);

    t = term_new(SB_PTY_OFF);
    SERVER(t, 0x82, "\x01$ ");
    CLIENT(t, 0x82, "\0ls\r");
    SERVER(t, 0x82, "\x01ls\r\n");
    assert_string_equal(t->log, "out0:$  out2:ls\r\n ");
    assert_int_equal(t->pty.typed, 3);
    free(t);

    /* a paste that is too long to be read is counted */
    t = term_new(SB_PTY_ON);

    for (int i = 0; i < 100; i++) {
        term_frame(&t->client, i ? 0x00 : 0x01, true,
                   "0123456789012345678901234567890123456789012345678", 49);
    }

    CLIENT(t, 0x80, "");
    assert_int_equal(t->pty.typed_unread, 1);
    CLIENT(t, 0x82, "\0x");
    assert_string_equal(t->log, "in1:x ");
    free(t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_echo_keys),
        cmocka_unit_test(test_echo_hidden),
        cmocka_unit_test(test_echo_bounds),
        cmocka_unit_test(test_pty_frames),
        cmocka_unit_test(test_pty_compressed),
        cmocka_unit_test(test_pty_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
