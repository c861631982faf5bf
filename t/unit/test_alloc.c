/*
 * The n-th allocation of lib fails, for every n (linked with --wrap): a reader
 * says SB_NOMEM, or has read the same as always; nothing crashes or leaks.
 * What cannot say so, in the helper too, allocates nothing.
 */

#include "multipart.h"
#include "request.h"
#include "stream.h"

#include "chain.h"
#include "json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>


void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);


static long  left = -1;     /* until one fails; -1: none does */
static bool  failed;


static bool
fails(void)
{
    if (left < 0 || left-- > 0) {
        return false;
    }

    failed = true;

    return true;
}


void *
__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}


void *
__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}


void *
__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}


/* Runs a reader until none of its allocations is left to fail. */

static void
every(void (*reader)(const void *data, bool whole), const void *data)
{
    long  n;

    left = -1;
    failed = false;
    reader(data, true);

    for (n = 0; /* void */ ; n++) {
        left = n;
        failed = false;
        reader(data, false);
        left = -1;

        if (!failed) {
            break;
        }
    }

    assert_true(n > 0 && n < 10000);
}


typedef struct {
    const char  *method, *target, *body;
} request_t;


static const request_t  requests[] = {

    { "POST", "/sandboxes/s1/proxy/44772/command",
      "{\"command\":\"ls -la\",\"cwd\":\"/w\",\"timeout\":5000,"
      "\"envs\":{\"B\":\"1\",\"A\":\"2\"},\"other\":[1,{\"x\":null}]}" },

    { "POST", "/sandboxes",
      "{\"image\":{\"uri\":\"python:3\"},\"metadata\":{"
      "\"sandbox_name\":\"box\",\"sandbox_instance_id\":\"i-1\"},"
      "\"env\":{\"SECRET\":\"x\"},\"resourceLimits\":{\"cpu\":\"1\"}}" },

    { "POST", "/sandboxes/s1/proxy/44772/files/mv",
      "[{\"src\":\"/w/a\",\"dest\":\"/w/b\"},{\"src\":\"/w/c\",\"dest\":\"/d\"}]" },

    { "DELETE", "/sandboxes/s1/proxy/44772/files?path=%2Fw%2Fa&path=%2Fw%2Fb",
      "" },

    { NULL, NULL, NULL }
};


static void
request(const void *data, bool whole)
{
    char             buf[512];
    sb_rc_t          rc;
    sb_route_t       route;
    sb_request_t     r;
    const request_t *c = data;

    static char      want[4096];
    static size_t    nwant, nfiles;

    memset(&r, 0, sizeof(r));
    assert_int_equal(sb_route(&route, sb_str(c->method, strlen(c->method)),
                              sb_str(c->target, strlen(c->target)), false, buf,
                              sizeof(buf)), SB_OK);

    rc = sb_request_read(&r, &route, sb_str(c->body, strlen(c->body)));

    if (whole) {
        assert_int_equal(rc, SB_OK);
        assert_true(r.json.len < sizeof(want));
        memcpy(want, r.json.data, r.json.len);
        nwant = r.json.len;
        nfiles = r.nfiles;

    } else if (rc == SB_OK) {
        assert_int_equal(r.json.len, nwant);
        assert_memory_equal(r.json.data, want, nwant);
        assert_int_equal(r.nfiles, nfiles);

    } else {
        assert_int_equal(rc, SB_NOMEM);
    }

    sb_request_free(&r);
}


static void
test_requests(void **state)
{
    (void) state;

    for (const request_t *r = requests; r->method; r++) {
        every(request, r);
    }
}


/* Feeds it in pieces, so that buffers grow. */

static void
upload(const void *data, bool whole)
{
    size_t                      i, n = strlen(data);
    sb_rc_t                     rc = SB_AGAIN;
    sb_multipart_t             *m;
    const char                 *p = data;
    const sb_multipart_file_t  *f;

    m = sb_multipart_new(sb_lit("B"), NULL);

    if (m == NULL) {
        assert_false(whole);
        return;
    }

    for (i = 0; i < n && rc == SB_AGAIN; i++) {
        rc = sb_multipart_feed(m, p + i, 1);
    }

    if (rc == SB_OK || rc == SB_AGAIN) {
        rc = sb_multipart_finish(m);
    }

    if (rc == SB_OK) {
        assert_int_equal(sb_multipart_count(m), 1);
        f = sb_multipart_file(m, 0);
        assert_int_equal(f->path.len, 4);
        assert_memory_equal(f->path.data, "/w/a", 4);
        assert_int_equal(f->size, 5);

    } else {
        assert_false(whole);
        assert_int_equal(rc, SB_NOMEM);
    }

    sb_multipart_free(m);
}


static void
test_upload(void **state)
{
    (void) state;

    every(upload,
          "--B\r\nContent-Disposition: form-data; name=\"metadata\"; "
          "filename=\"m\"\r\nContent-Type: application/json\r\n\r\n"
          "{\"path\":\"/w/a\",\"mode\":644}\r\n"
          "--B\r\nContent-Disposition: form-data; name=\"file\"; "
          "filename=\"f\"\r\n\r\nhello\r\n--B--\r\n");
}


/* An answer never fails; what it has not read it says. */

static void
answer(const void *data, bool whole)
{
    sb_answer_t              *a;
    const char               *text = data;
    const sb_answer_facts_t  *f;

    a = sb_answer_new(sb_op_find(sb_lit("sandbox.list")), 200);

    if (a == NULL) {
        assert_false(whole);
        return;
    }

    sb_answer_feed(a, text, strlen(text));
    f = sb_answer_finish(a);

    if (f) {
        assert_true(f->nitems <= 2);

        for (size_t i = 0; i < f->nitems; i++) {
            assert_int_equal(f->items[i].id.len, 2);
            assert_memory_equal(f->items[i].id.data, i ? "s2" : "s1", 2);
        }
    }

    assert_true(!whole || (f && f->nitems == 2));
    sb_answer_free(a);
}


static void
test_answer(void **state)
{
    (void) state;

    every(answer,
          "{\"items\":[{\"id\":\"s1\",\"status\":{\"state\":\"Running\"},"
          "\"metadata\":{\"sandbox_name\":\"one\"}},{\"id\":\"s2\","
          "\"status\":{\"state\":\"Paused\"},\"metadata\":{}}],"
          "\"pagination\":{\"page\":1}}");
}


static void
stream_output(void *data, sb_std_e which, const char *p, size_t n, bool last)
{
    size_t  *seen = data;

    (void) which;
    (void) p;
    (void) last;

    *seen += n;
}


static void
stream(const void *data, bool whole)
{
    size_t                    seen = 0;
    const char               *text = data;
    sb_stream_t              *s;
    sb_stream_handler_t       h = { .output = stream_output, .data = &seen };

    s = sb_stream_new(&h);

    if (s == NULL) {
        assert_false(whole);
        return;
    }

    /* output is never lost for want of memory */

    sb_stream_feed(s, text, strlen(text));
    assert_int_equal(sb_stream_finish(s)->end, SB_STREAM_COMPLETE);
    assert_int_equal(seen, 6);
    sb_stream_free(s);
}


static void
test_stream(void **state)
{
    (void) state;

    every(stream,
          "{\"type\":\"init\",\"text\":\"abc\",\"timestamp\":1}\n\n"
          "{\"type\":\"stdout\",\"text\":\"hello\",\"timestamp\":1}\n\n"
          "{\"type\":\"result\",\"results\":{\"text/plain\":\"1\"},"
          "\"timestamp\":1}\n\n"
          "{\"type\":\"execution_complete\",\"execution_time\":1,"
          "\"timestamp\":1}\n\n");
}


/* The hash of an entry wants none: there is nobody to tell. */

static void
test_chain_hash(void **state)
{
    uint8_t  hash[2][CHAIN_HASH], before[CHAIN_HASH];

    (void) state;

    memset(before, 7, sizeof(before));
    left = -1;
    chain_hash(hash[0], before, 5, CHAIN_END, sb_lit("{}"));

    left = 0;
    failed = false;
    chain_hash(hash[1], before, 5, CHAIN_END, sb_lit("{}"));
    left = -1;

    assert_false(failed);
    assert_memory_equal(hash[0], hash[1], CHAIN_HASH);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_upload),
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_chain_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
