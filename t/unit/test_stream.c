/*
 * The event stream scanner: fixtures of the real execd, every split, framings
 * (C029-C035, C146), memory and speed bounds.
 */

#include "stream.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#ifdef __SANITIZE_ADDRESS__
/* of the sanitizer's run-time library, whose header is not everywhere */
size_t __sanitizer_get_current_allocated_bytes(void);
#endif


typedef struct {
    sb_buf_t           log;         /* init, results, ends of events */
    sb_buf_t           out[2];
    unsigned           lasts[2];
    size_t             largest;     /* piece */
    sb_stream_facts_t  facts;
} seen_t;


static void
on_output(void *data, sb_std_e which, const char *p, size_t n, bool last)
{
    seen_t  *s = data;

    assert_true(n || last);
    assert_int_equal(sb_buf_add(&s->out[which], p, n), SB_OK);
    s->lasts[which] += last;
    s->largest = n > s->largest ? n : s->largest;
}


static void
on_init(void *data, sb_str_t id)
{
    seen_t  *s = data;

    assert_int_equal(sb_buf_printf(&s->log, "init(%.*s)", (int) id.len,
                                   id.data), SB_OK);
}


static void
on_result(void *data, sb_str_t json, bool whole)
{
    seen_t  *s = data;

    assert_int_equal(sb_buf_printf(&s->log, "result%s(%.*s)",
                                   whole ? "" : "-cut", (int) json.len,
                                   json.data), SB_OK);
}


static sb_stream_t *
start(seen_t *s)
{
    sb_stream_t          *p;
    sb_stream_handler_t   h = { on_output, on_init, on_result, s };

    s->log.max = s->out[0].max = s->out[1].max = 1 << 26;

    p = sb_stream_new(&h);
    assert_non_null(p);

    return p;
}


static void
stop(seen_t *s, sb_stream_t *p)
{
    const sb_stream_facts_t  *f;

    f = sb_stream_finish(p);
    assert_ptr_equal(f, sb_stream_finish(p));
    s->facts = *f;
    sb_stream_free(p);
    assert_non_null(sb_buf_cstr(&s->log));
    assert_non_null(sb_buf_cstr(&s->out[0]));
    assert_non_null(sb_buf_cstr(&s->out[1]));
}


static void
forget(seen_t *s)
{
    sb_buf_free(&s->log);
    sb_buf_free(&s->out[0]);
    sb_buf_free(&s->out[1]);
    memset(s, 0, sizeof(*s));
}


/* Pieces of at most `step` bytes in memory of their own, a border at `cut`. */
static void
run(seen_t *s, sb_str_t text, size_t step, size_t cut)
{
    char         *q;
    size_t        i, n;
    sb_stream_t  *p = start(s);

    for (i = 0; i < text.len; i += n) {
        n = text.len - i < step ? text.len - i : step;

        if (i < cut && cut < i + n) {
            n = cut - i;
        }

        q = malloc(n);
        assert_non_null(q);
        memcpy(q, text.data + i, n);
        sb_stream_feed(p, q, n);
        free(q);
    }

    stop(s, p);
}


static void
same(const seen_t *a, const seen_t *b)
{
    assert_string_equal(a->log.data, b->log.data);
    assert_int_equal(a->out[0].len, b->out[0].len);
    assert_memory_equal(a->out[0].data, b->out[0].data, a->out[0].len);
    assert_int_equal(a->out[1].len, b->out[1].len);
    assert_memory_equal(a->out[1].data, b->out[1].data, a->out[1].len);
    assert_int_equal(a->lasts[0], b->lasts[0]);
    assert_int_equal(a->lasts[1], b->lasts[1]);
    assert_memory_equal(&a->facts, &b->facts, sizeof(a->facts));
}


/* Runs a text in every split and compares; leaves the result in s. */
static void
judge(seen_t *s, sb_str_t text)
{
    size_t  cut;
    seen_t  part = { 0 };

    run(s, text, text.len + 1, 0);

    run(&part, text, 1, 0);
    same(s, &part);
    forget(&part);

    for (cut = 1; cut < text.len; cut++) {
        run(&part, text, text.len, cut);
        same(s, &part);
        forget(&part);
    }
}


#define INIT   "{\"type\":\"init\",\"text\":\"2bb1427947aa4d16948956ea295368e5\"" \
               ",\"timestamp\":1795957342222}\n\n"
#define PING   "{\"type\":\"ping\",\"text\":\"pong\",\"timestamp\":0}\n\n"
#define DONE   "{\"type\":\"execution_complete\",\"execution_time\":3," \
               "\"timestamp\":0}\n\n"
#define OUT(t) "{\"type\":\"stdout\",\"text\":\"" t "\",\"timestamp\":0}\n\n"
#define ERR(t) "{\"type\":\"stderr\",\"text\":\"" t "\",\"timestamp\":0}\n\n"
#define FAIL(v, t) "{\"type\":\"error\",\"timestamp\":0,\"error\":{\"ename\":" \
               "\"CommandExecError\",\"evalue\":\"" v "\",\"traceback\":[\"" t \
               "\"]}}\n\n"

#define ID     "init(2bb1427947aa4d16948956ea295368e5)"


typedef struct {
    const char       *name;
    sb_str_t          text;
    const char       *log, *out, *err;
    sb_stream_end_e   end;
    int               exit;         /* 999: none */
    unsigned          events, unknown, bad;
    bool              incomplete;
} case_t;


/* Bodies as execd was seen to send them. */
static const case_t  cases[] = {
    { "command-ok", sb_lit(INIT PING OUT("hello") DONE), ID, "hello\n", "",
      SB_STREAM_COMPLETE, 0, 4, 0, 0, false },
    { "stderr-exit", sb_lit(INIT PING OUT("out") ERR("err")
                            FAIL("3", "exit status 3")),
      ID, "out\n", "err\n", SB_STREAM_FAILED, 3, 5, 0, 0, false },
    { "C031 empty lines", sb_lit(INIT PING OUT("a") OUT("\\n") OUT("\\n")
                                 OUT("b") DONE),
      ID, "a\n\n\nb\n", "", SB_STREAM_COMPLETE, 0, 7, 0, 0, false },
    { "html", sb_lit(INIT OUT("a\\u003cb\\u003e\\u0026c") PING DONE), ID,
      "a<b>&c\n", "", SB_STREAM_COMPLETE, 0, 4, 0, 0, false },
    { "unicode", sb_lit(INIT OUT("\xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x99\x82 "
                                 "\xc3\xa9") DONE), ID,
      "\xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x99\x82 \xc3\xa9\n", "",
      SB_STREAM_COMPLETE, 0, 3, 0, 0, false },
    { "invalid utf-8", sb_lit(INIT OUT("a\\ufffd\\ufffdb") DONE), ID,
      "a\xef\xbf\xbd\xef\xbf\xbd" "b\n", "", SB_STREAM_COMPLETE, 0, 3, 0, 0,
      false },
    { "ansi", sb_lit(INIT OUT("\\u001b[31mred\\u001b[0m") DONE), ID,
      "\x1b[31mred\x1b[0m\n", "", SB_STREAM_COMPLETE, 0, 3, 0, 0, false },
    { "quotes", sb_lit(INIT OUT("it's \\\"quoted\\\" \\\\ \\/ \\b\\f\\n\\r\\t")
                       DONE), ID,
      "it's \"quoted\" \\ / \b\f\n\r\t\n", "", SB_STREAM_COMPLETE, 0, 3, 0, 0,
      false },
    { "signal", sb_lit(INIT PING FAIL("-1", "signal: killed")), ID, "", "",
      SB_STREAM_FAILED, -1, 3, 0, 0, false },
    { "background", sb_lit(INIT PING "{\"type\":\"execution_complete\","
                           "\"timestamp\":0}\n\n"), ID, "", "",
      SB_STREAM_COMPLETE, 0, 3, 0, 0, false },
    { "could not start", sb_lit(INIT FAIL("no such file", "x")), ID, "", "",
      SB_STREAM_FAILED, 999, 2, 0, 0, false },
    { "jupyter", sb_lit(INIT "{\"type\":\"status\",\"text\":\"ok\"}\n\n"
        "{\"type\":\"result\",\"results\":{\"text\":\"42\",\"a\":[1,{}]},"
        "\"timestamp\":1}\n\n{\"results\" : {\"image/png\":\"\\u0041}]\"} ,"
        "\"type\":\"result\"}\n\n"
        "{\"type\":\"error\",\"error\":{\"ename\":\"ZeroDivisionError\","
        "\"evalue\":\"division by zero\",\"traceback\":null}}\n\n"
        "{\"type\":\"execution_count\",\"execution_count\":3}\n\n"),
      ID "result({\"text\":\"42\",\"a\":[1,{}]})"
      "result({\"image/png\":\"\\u0041}]\"})", "", "",
      SB_STREAM_FAILED, 999, 6, 0, 0, false },
    { "runtime tail", sb_lit(INIT PING "{\"code\":\"RUNTIME_ERROR\",\"message\":"
        "\"error running in session. timeout after 300ms\"}"), ID, "", "",
      SB_STREAM_RUNTIME, 999, 3, 0, 0, false },
    { "tail after the end", sb_lit(DONE "{\"code\":\"X\"}"), "", "", "",
      SB_STREAM_COMPLETE, 0, 2, 0, 0, false },
    { "an error after the end", sb_lit(INIT DONE OUT("x\\n")
        "{\"type\":\"status\",\"text\":\"error\"}\n\n"
        "{\"type\":\"error\",\"error\":{\"ename\":\"KeyError\","
        "\"evalue\":\"'k'\",\"traceback\":[]}}\n\n"), ID, "x\n\n", "",
      SB_STREAM_FAILED, 999, 5, 0, 0, false },
    { "an end after the error", sb_lit(INIT FAIL("3", "") DONE), ID, "", "",
      SB_STREAM_FAILED, 3, 3, 0, 0, false },
    { "no timestamps, other order", sb_lit(
        "{\"text\":\"i\",\"type\":\"init\"}\n\n"
        "{\"timestamp\":1,\"text\":\"a\\nb\",\"type\":\"stderr\"}\n"
        "{\"text\":\"\\n\",\"type\":\"stdout\"}\n"
        "{\"type\":\"stdout\"}\n" DONE), "init(i)", "\n\n", "a\nb\n",
      SB_STREAM_COMPLETE, 0, 5, 0, 0, false },
    { "C030 data lines", sb_lit(": hello\r\n\r\nevent: message\r\nid: 7\r\n"
        "data: {\"type\":\"stdout\",\"text\":\"a\"}\r\n\r\nretry: 5\r\n"
        "data:{\"type\":\"stdout\",\"text\":\"b\"}\r\n\r\ndata\r\nid\r\n"
        "data: \r\n:\r\nevent\n"
        "data:\t{\"type\":\"execution_complete\"}\r\n\r\n"), "", "a\nb\n", "",
      SB_STREAM_COMPLETE, 0, 3, 0, 0, false },
    { "C030 one line feed", sb_lit(
        "{\"type\":\"stdout\",\"text\":\"a\"}\n"
        "{\"type\":\"stdout\",\"text\":\"b\"}{\"type\":\"stdout\",\"text\":"
        "\"c\"} \r\n{\"type\":\"execution_complete\"}"), "", "a\nb\nc\n", "",
      SB_STREAM_COMPLETE, 0, 4, 0, 0, false },
    { "C033 cut before the brace", sb_lit(OUT("a") "{\"type\":\"stdout\","
        "\"text\":\"bcd\""), "", "a\nbcd", "", SB_STREAM_OPEN, 999, 1, 0, 0,
      true },
    { "C033 cut in the text", sb_lit("{\"type\":\"stderr\",\"text\":\"b\\u00"),
      "", "", "b", SB_STREAM_OPEN, 999, 0, 0, 0, true },
    { "C033 cut in a surrogate pair", sb_lit("{\"type\":\"stdout\",\"text\":"
        "\"b\\ud83d\\ude0"), "", "b\xef\xbf\xbd", "", SB_STREAM_OPEN, 999, 0, 0,
      0, true },
    { "C033 terminal event cut", sb_lit(OUT("a") "{\"type\":\"execution_compl"),
      "", "a\n", "", SB_STREAM_OPEN, 999, 1, 0, 0, true },
    { "cut in an SSE field", sb_lit(OUT("a") "dat"), "", "a\n", "",
      SB_STREAM_OPEN, 999, 1, 0, 0, true },
    { "cut before the type", sb_lit("{\"text\":\"abc\""), "", "", "",
      SB_STREAM_OPEN, 999, 0, 0, 1, true },
    { "C034 split characters", sb_lit(
        "{\"type\":\"stdout\",\"text\":\"\xc3\"}\n"
        "{\"type\":\"stderr\",\"text\":\"\xe6\x97\"}\n"
        "{\"type\":\"stdout\",\"text\":\"\xa9\"}\n"), "", "\xc3\n\xa9\n",
      "\xe6\x97\n", SB_STREAM_OPEN, 999, 3, 0, 0, false },
    { "C035 raw bytes", sb_lit(OUT("\xff\xfe\x80\t\x01") DONE), "",
      "\xff\xfe\x80\t\x01\n", "", SB_STREAM_COMPLETE, 0, 2, 0, 0, false },
    { "surrogates", sb_lit(OUT("\\ud83d\\ude00\\uD83D\\uDE00|\\ud800|\\udc00|"
        "\\ud800\\ud83d\\ude00|\\ud800\\n|\\ud800\\u0041|\\udbff\\udfff\\ud800")
        ), "",
      "\xf0\x9f\x98\x80\xf0\x9f\x98\x80|\xef\xbf\xbd|\xef\xbf\xbd|"
      "\xef\xbf\xbd\xf0\x9f\x98\x80|\xef\xbf\xbd\n|\xef\xbf\xbd" "A|"
      "\xf4\x8f\xbf\xbf\xef\xbf\xbd\n", "", SB_STREAM_OPEN, 999, 1, 0, 0,
      false },
    { "C032 carriage returns", sb_lit(OUT("\\r 1%\\r 2%\\r") DONE), "",
      "\r 1%\r 2%\r\n", "", SB_STREAM_COMPLETE, 0, 2, 0, 0, false },
    { "garbage", sb_lit("hello {\"type\":\"stdout\",\"text\":\"no\"}\n"
        "data: [DONE]\n<html>\n123\n\"x\"\n[[[[\n" OUT("yes")
        "{\"type\":\"stdout\",\"text\":\"q\nw\"}\n"
        "{\"type\":\"stdout\",\"text\":\"x\\qy\"}\n"
        "{\"type\":\"stdout\",\"text\":\"\\u12x4\"}\n"
        "{\"type\":stdout}\n{\"a\":01}\n{\"a\":1.}\n{\"a\":-}\n{\"a\":1e}\n"
        "{,}\n{\"a\" \"b\"}\n{\"a\":[1,]}\n{\"a\":1]\n{\"a\":1,}\n{]\n{'a':1}\n"
        "{\"a\":\n1}\n" DONE), "", "yes\nqx", "",
      SB_STREAM_COMPLETE, 0, 2, 0, 6 + 16 + 2, false },
    { "unknown", sb_lit("{\"type\":\"new\",\"text\":\"x\",\"deep\":{\"a\":"
        "[{\"text\":\"x\",\"type\":\"stdout\"},null,true,-1.5e+3,[]]}}\n"
        "{}\n{\"message\":\"x\"}\n" OUT("a") DONE), "", "a\n", "",
      SB_STREAM_COMPLETE, 0, 5, 3, 0, false },
    { "escaped names", sb_lit("{\"\\u0074ype\":\"std\\u006fut\",\"te\\u0078t\":"
        "\"a\"}\n"), "", "a\n", "", SB_STREAM_OPEN, 999, 1, 0, 0, false },
    { "long name", sb_lit("{\"typetypetypetypetypetypetypetypetypetypetypetype"
        "typetypetypetypetype\":\"stdout\",\"text\":\"a\"}\n"), "", "", "",
      SB_STREAM_OPEN, 999, 1, 1, 0, false },
    { "odd members", sb_lit("{\"type\":\"stdout\",\"text\":7,\"error\":\"x\"}\n"
        "{\"type\":5,\"code\":3}\n{\"type\":\"error\",\"error\":[\"1\",{"
        "\"ename\":\"n\"}]}\n"), "", "\n", "", SB_STREAM_FAILED, 999, 3, 1, 0,
      false },
    { "nothing", sb_lit("\n\r\n \t"), "", "", "", SB_STREAM_OPEN, 999, 0, 0, 0,
      false },
};


static void
test_cases(void **state)
{
    size_t         i;
    seen_t         s = { 0 };
    const case_t  *c;

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        c = &cases[i];
        judge(&s, c->text);

        if (strcmp(s.log.data, c->log) || s.facts.end != c->end
            || s.out[0].len != strlen(c->out)
            || memcmp(s.out[0].data, c->out, s.out[0].len)
            || s.out[1].len != strlen(c->err)
            || memcmp(s.out[1].data, c->err, s.out[1].len)
            || s.facts.has_exit_code != (c->exit != 999)
            || s.facts.exit_code != (c->exit == 999 ? -1 : c->exit)
            || s.facts.events != c->events
            || s.facts.unknown_events != c->unknown
            || s.facts.bad_frames != c->bad
            || s.facts.incomplete_frame != c->incomplete)
        {
            fail_msg("%s: log %s, stdout %s, stderr %s, end %d, exit %d %d, "
                     "events %u, unknown %u, bad %u, incomplete %d", c->name,
                     s.log.data, s.out[0].data, s.out[1].data, s.facts.end,
                     s.facts.has_exit_code, s.facts.exit_code,
                     (unsigned) s.facts.events,
                     (unsigned) s.facts.unknown_events,
                     (unsigned) s.facts.bad_frames, s.facts.incomplete_frame);
        }

        forget(&s);
    }
}


static void
test_facts(void **state)
{
    size_t  i;
    seen_t  s = { 0 };
    char    text[2000];

    static const struct { const char *v; bool has; int code; } exits[] = {
        { "0", true, 0 }, { "137", true, 137 }, { "-1", true, -1 },
        { "", false, -1 }, { "-", false, -1 }, { "1x", false, -1 },
        { "2147483648", false, -1 }, { "99999999999999999999", false, -1 },
        { "1.5", false, -1 },
    };

    (void) state;

    for (i = 0; i < sizeof(exits) / sizeof(exits[0]); i++) {
        (void) snprintf(text, sizeof(text), "{\"type\":\"error\",\"error\":"
                        "{\"evalue\":\"%s\"}}", exits[i].v);
        judge(&s, sb_str(text, strlen(text)));
        assert_int_equal(s.facts.has_exit_code, exits[i].has);
        assert_int_equal(s.facts.exit_code, exits[i].code);
        forget(&s);
    }

    judge(&s, sb_lit(FAIL("-1", "signal: killed")));
    assert_true(s.facts.killed);
    assert_false(s.facts.terminated);
    assert_string_equal(s.facts.ename, "CommandExecError");
    assert_string_equal(s.facts.evalue, "-1");
    forget(&s);

    judge(&s, sb_lit(FAIL("-1", "x\",\"signal: terminated")));
    assert_false(s.facts.killed);
    assert_true(s.facts.terminated);
    forget(&s);

    judge(&s, sb_lit("{\"code\":\"RUNTIME_ERROR\",\"message\":\"a\\u0000b\"}"));
    assert_string_equal(s.facts.code, "RUNTIME_ERROR");
    assert_string_equal(s.facts.message, "a?b");
    assert_int_equal(s.facts.execution_ms, -1);
    forget(&s);

    judge(&s, sb_lit(DONE));
    assert_int_equal(s.facts.execution_ms, 3);
    forget(&s);

    judge(&s, sb_lit("{\"type\":\"execution_complete\"}"));
    assert_int_equal(s.facts.execution_ms, 0);
    forget(&s);

    /* C152: cut by bytes at a character border */

    strcpy(text, "{\"code\":\"C\",\"message\":\"x");

    for (i = 0; i < 200; i++) {
        strcat(text, "\xe6\x97\xa5");
    }

    strcat(text, "\"}");
    run(&s, sb_str(text, strlen(text)), 7, 0);
    assert_int_equal(strlen(s.facts.message), 1 + 170 * 3);
    forget(&s);
}


static char  block[64 * 1024];


static void
feed(sb_stream_t *p, const char *text)
{
    sb_stream_feed(p, text, strlen(text));
}


/* Bytes that malloc has given out and the program still holds. */
static size_t
held(void)
{
#ifdef __SANITIZE_ADDRESS__
    return __sanitizer_get_current_allocated_bytes();
#else
    struct mallinfo2  m = mallinfo2();

    return m.uordblks + m.hblkhd;
#endif
}


/* C029: one event of 20 MiB passes while it comes, the next is still read. */
static void
test_large_event(void **state)
{
    size_t        i, n = 20 * 1024 * 1024 / sizeof(block), before;
    seen_t        s = { 0 };
    sb_stream_t  *p;

    (void) state;

    memset(block, 'x', sizeof(block));

    p = start(&s);
    feed(p, INIT "{\"type\":\"stdout\",\"text\":\"");

    for (i = 0; i < n; i++) {
        before = s.out[0].len;
        sb_stream_feed(p, block, sizeof(block));
        assert_int_equal(s.out[0].len, before + sizeof(block));
        assert_int_equal(s.lasts[0], 0);
    }

    feed(p, "\"}\n\n" OUT("after") DONE);
    stop(&s, p);

    assert_int_equal(s.out[0].len, n * sizeof(block) + 1 + 6);
    assert_int_equal(s.lasts[0], 2);
    assert_int_equal(s.facts.end, SB_STREAM_COMPLETE);
    assert_int_equal(s.facts.bad_frames, 0);

    forget(&s);
}


static void
on_nothing(void *data, sb_std_e which, const char *p, size_t n, bool last)
{
    size_t  *total = data;

    (void) which;
    (void) p;
    (void) last;

    *total += n;
}


static void
test_memory(void **state)
{
    size_t               i, j, before, used, total = 0;
    sb_stream_t         *p;
    sb_stream_handler_t  h = { on_nothing, NULL, NULL, &total };

    static const char  *openings[] = {
        "{\"type\":\"stdout\",\"text\":\"", "{\"text\":\"", "{\"x\":\"", "{\"",
        "{\"type\":\"", "{\"type\":\"error\",\"error\":{\"ename\":\"",
        "{\"type\":\"error\",\"error\":{\"traceback\":[\"", "{\"code\":\"",
        "{\"type\":\"init\",\"text\":\"", "{\"x\":", "data:", "garbage",
        "{\"type\":\"result\",\"results\":{\"a\":\"",
    };
    static const char  fillers[] = "x[{\\1\"";

    (void) state;

    before = held();
    p = sb_stream_new(&h);
    assert_non_null(p);
    used = held() - before;

    assert_true(used > 0 && used < 20 * 1024);
    sb_stream_free(p);

    for (i = 0; i < sizeof(openings) / sizeof(openings[0]); i++) {
        for (j = 0; j < sizeof(fillers) - 1; j++) {
            memset(block, fillers[j], sizeof(block));
            before = held();
            p = sb_stream_new(&h);
            assert_non_null(p);
            feed(p, openings[i]);

            for (used = 0; used < 32; used++) {
                sb_stream_feed(p, block, sizeof(block));
            }

            used = held() - before;
            assert_true(used < (strstr(openings[i], "results") ? 84 : 20)
                                  * 1024u);

            (void) sb_stream_finish(p);
            sb_stream_free(p);
        }
    }
}


/* Text before its type is kept up to a bound, and never lost in silence. */
static void
test_text_first(void **state)
{
    size_t        n;
    seen_t        s = { 0 };
    sb_stream_t  *p;

    (void) state;

    memset(block, 'y', sizeof(block));

    for (n = 8191; n <= 8193; n++) {
        p = start(&s);
        feed(p, "{\"text\":\"");
        sb_stream_feed(p, block, n);
        feed(p, "\",\"type\":\"stderr\"}\n" OUT("a"));
        stop(&s, p);

        assert_int_equal(s.facts.bad_frames, n > 8192);
        assert_int_equal(s.facts.unknown_events, n > 8192);
        assert_int_equal(s.out[1].len, n > 8192 ? 0 : n + 1);
        assert_int_equal(s.out[0].len, 2);
        forget(&s);
    }
}


static void
test_result_cut(void **state)
{
    seen_t        s = { 0 };
    sb_stream_t  *p;

    (void) state;

    memset(block, 'z', sizeof(block));

    p = start(&s);
    feed(p, "{\"type\":\"result\",\"results\":{\"a\":\"");
    sb_stream_feed(p, block, sizeof(block) - 100);
    feed(p, "\"}}\n{\"type\":\"result\",\"results\":{\"a\":\"");
    sb_stream_feed(p, block, sizeof(block));
    feed(p, "\"}}\n{\"type\":\"result\",\"results\":{}}\n" DONE);
    stop(&s, p);

    assert_memory_equal(s.log.data, "result({\"a\":\"zzz", 15);
    assert_non_null(strstr(s.log.data, "zzz\"})result-cut({\"a\":\"zz"));
    assert_non_null(strstr(s.log.data, "zz)result({})"));
    assert_int_equal(s.facts.end, SB_STREAM_COMPLETE);
    forget(&s);
}


/* C146 */
static void
test_deep(void **state)
{
    unsigned      n;
    seen_t        s = { 0 };
    sb_stream_t  *p;

    (void) state;

    memset(block, '[', sizeof(block));

    for (n = 62; n <= 65; n++) {
        p = start(&s);
        feed(p, "{\"a\":");
        sb_stream_feed(p, block, n);
        memset(block, ']', n);
        sb_stream_feed(p, block, n);
        memset(block, '[', n);
        feed(p, "}\n" DONE);
        stop(&s, p);

        assert_int_equal(s.facts.bad_frames, n > 63);
        assert_int_equal(s.facts.end, SB_STREAM_COMPLETE);
        forget(&s);
    }

    p = start(&s);
    feed(p, "{\"type\":\"stdout\",\"x\":");
    sb_stream_feed(p, block, sizeof(block));
    sb_stream_feed(p, block, sizeof(block));
    feed(p, "\n" OUT("a") DONE);
    stop(&s, p);
    assert_int_equal(s.facts.bad_frames, 1);
    assert_string_equal(s.out[0].data, "a\n");
    assert_int_equal(s.facts.end, SB_STREAM_COMPLETE);
    forget(&s);
}


/* What is decoded by the end of a feed has been handed on. */
static void
test_live(void **state)
{
    seen_t        s = { 0 };
    sb_stream_t  *p = start(&s);

    (void) state;

    feed(p, "{\"type\":\"stdout\",\"text\":\"ab");
    assert_int_equal(s.out[0].len, 2);
    feed(p, "\\u00e9\\ud83d");
    assert_int_equal(s.out[0].len, 4);
    feed(p, "\\ude00");
    assert_int_equal(s.out[0].len, 8);
    assert_int_equal(s.lasts[0], 0);
    feed(p, "\"}");
    assert_int_equal(s.lasts[0], 1);
    assert_int_equal(sb_stream_facts(p)->events, 1);
    feed(p, "{\"type\":\"execution_complete\"}");
    assert_int_equal(sb_stream_facts(p)->end, SB_STREAM_COMPLETE);

    stop(&s, p);
    forget(&s);
}


/* Kernels give text with its line ends. */
static void
test_raw(void **state)
{
    seen_t        s = { 0 };
    sb_stream_t  *p = start(&s);

    (void) state;

    sb_stream_raw(p);
    feed(p, OUT("a\\nb\\n") OUT("c") OUT("\\n") OUT("") ERR("d") DONE);
    assert_int_equal(s.out[0].len, 6);
    assert_memory_equal(s.out[0].data, "a\nb\nc\n", 6);
    assert_int_equal(s.lasts[0], 4);
    assert_int_equal(s.out[1].len, 1);

    stop(&s, p);
    forget(&s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_large_event),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_text_first),
        cmocka_unit_test(test_result_cut),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_live),
        cmocka_unit_test(test_raw),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
