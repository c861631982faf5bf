/* Uploads as execd reads them: field cases C061 to C070, C077, C078. */

#include "multipart.h"

#include "digest.h"
#include "path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>


#define N      "\r\n"
#define META   "Content-Disposition: form-data; name=\"metadata\"; " \
               "filename=\"metadata\"" N "Content-Type: application/json" N N
#define FILE_(f) "Content-Disposition: form-data; name=\"file\"; filename=\"" \
               f "\"" N "Content-Type: application/octet-stream" N N
#define B      "--B" N
#define END    N "--B--" N

#define M(path) B META "{\"path\":\"" path "\"}" N
#define F(text) B FILE_("f") text N


static sb_multipart_t *
feed(sb_str_t body, const char *boundary, size_t step, size_t cut, sb_rc_t *rc)
{
    char            *p;
    size_t           i, n;
    sb_multipart_t  *m;

    m = sb_multipart_new(sb_str(boundary, strlen(boundary)), NULL);
    assert_non_null(m);
    *rc = SB_AGAIN;

    for (i = 0; i < body.len && *rc >= SB_OK; i += n) {
        n = body.len - i < step ? body.len - i : step;

        if (i < cut && cut < i + n) {
            n = cut - i;
        }

        p = malloc(n);
        assert_non_null(p);
        memcpy(p, body.data + i, n);
        *rc = sb_multipart_feed(m, p, n);
        free(p);
    }

    if (*rc < SB_OK) {
        assert_int_equal(sb_multipart_feed(m, "x", 1), *rc);
        assert_int_equal(sb_multipart_finish(m), *rc);

    } else {
        *rc = sb_multipart_finish(m);
    }

    if (*rc == SB_OK) {
        assert_null(sb_multipart_reason(m));
    } else {
        assert_non_null(sb_multipart_reason(m));
    }

    return m;
}


/* Every single split, and byte by byte, gives the same (C061). */
static sb_multipart_t *
judge(sb_str_t body, const char *boundary, sb_rc_t *rc)
{
    size_t           cut, i;
    sb_rc_t          other;
    sb_multipart_t  *m, *s;

    const sb_multipart_file_t  *a, *b;

    m = feed(body, boundary, body.len + 1, 0, rc);

    for (cut = 0; cut < body.len; cut++) {
        s = feed(body, boundary, cut ? body.len : 1, cut, &other);
        assert_int_equal(*rc, other);

        if (*rc == SB_OK) {
            assert_int_equal(sb_multipart_count(m), sb_multipart_count(s));

            for (i = 0; i < sb_multipart_count(m); i++) {
                a = sb_multipart_file(m, i);
                b = sb_multipart_file(s, i);
                assert_true(sb_eq(a->path, b->path));
                assert_true(sb_eq(a->filename, b->filename));
                assert_int_equal(a->size, b->size);
                assert_memory_equal(a->sha256, b->sha256, 32);
                assert_int_equal(a->mode, b->mode);
                assert_int_equal(a->flags, b->flags);
            }

        } else {
            assert_string_equal(sb_multipart_reason(m),
                                sb_multipart_reason(s));
        }

        sb_multipart_free(s);
    }

    return m;
}


static void
is_file(const sb_multipart_t *m, size_t i, const char *path, sb_str_t content)
{
    uint8_t                     sha[32];
    const sb_multipart_file_t  *f = sb_multipart_file(m, i);

    assert_non_null(f);
    assert_true(f->has_file && f->has_metadata);
    assert_true(sb_eq(f->path, sb_str(path, strlen(path))));
    assert_int_equal(f->size, content.len);
    sb_sha256(sha, content);
    assert_memory_equal(f->sha256, sha, 32);
}


typedef struct {
    const char  *name;
    sb_str_t     body;
    const char  *files[6];      /* path, content, ...; NULL: none */
} good_t;


static const good_t  good[] = {
    { "one", sb_lit(M("/w/a.txt") F("hello\n") "--B--" N),
      { "/w/a.txt", "hello\n" } },
    { "m f m f", sb_lit(M("/1") F("1") M("/2") F("22") "--B--" N),
      { "/1", "1", "/2", "22" } },
    { "m m f f (C068)", sb_lit(M("/1") M("/2") F("1") F("22") "--B--" N),
      { "/1", "1", "/2", "22" } },
    { "f f m m (C068)", sb_lit(F("1") F("22") M("/1") M("/2") "--B--" N),
      { "/1", "1", "/2", "22" } },
    { "f m", sb_lit(F("fm") M("/fm") "--B--" N), { "/fm", "fm" } },
    { "empty file", sb_lit(M("/e") F("") "--B--" N), { "/e", "" } },
    { "other parts between (C068)", sb_lit(M("/1") B
      "Content-Disposition: form-data; name=\"x\"" N N "field" N B
      "Content-Disposition: form-data; name=\"Metadata\"; filename=\"m\"" N N
      "{\"path\":\"/no\"}" N F("1") "--B--" N), { "/1", "1" } },
    { "boundary in content (C062)", sb_lit(M("/1")
      F("x--B" N "--Bx" N "--B-" N "--B-x--B--y" N "--" N N N "\r\r\n--" N
        "--C" N "\n--B" N "--b") "--B--" N),
      { "/1", "x--B" N "--Bx" N "--B-" N "--B-x--B--y" N "--" N N N "\r\r\n--" N
        "--C" N "\n--B" N "--b" } },
    { "boundary in a filename (C062)", sb_lit(M("/1") B FILE_("--B--") "1" N
      "--B--" N), { "/1", "1" } },
    { "padding (C062)", sb_lit("--B  \t" N META "{\"path\":\"/1\"}" N
      "--B \t" N FILE_("f") "1" N "--B-- \t" N), { "/1", "1" } },
    { "content begins like a boundary", sb_lit(M("/1") F("--Bx") M("/2")
      F("--B-") M("/3") F("--") "--B--" N),
      { "/1", "--Bx", "/2", "--B-", "/3", "--" } },
    { "no last CR LF (C064)", sb_lit(M("/1") F("1") "--B--"), { "/1", "1" } },
    { "no last CR LF but blanks", sb_lit(M("/1") F("1") "--B-- "),
      { "/1", "1" } },
    { "epilogue (C064)", sb_lit(M("/1") F("1") "--B--" N "epilogue" N M("/2")
      F("2") "--B--" N), { "/1", "1" } },
    { "preamble (C065)", sb_lit(N "see --B below" N "\n" "--Bx" N "--B--x" N
      M("/1") F("1") "--B--" N), { "/1", "1" } },
    { "glued to its head (C070)", sb_lit(M("/1") B FILE_("f") M("/2")
      F("2") "--B--" N), { "/1", "", "/2", "2" } },
    { "LF in content (C069)", sb_lit(M("/1") F("a\nb\n\r\n\n") "--B--" N),
      { "/1", "a\nb\n\r\n\n" } },
    { "percent signs (C077)", sb_lit(M("/w/%41") B FILE_("sale50%0Aoff.txt")
      "1" N "--B--" N), { "/w/%41", "1" } },
    { "python's metadata", sb_lit(B META "{\"path\": \"/w/py.txt\", \"owner\": "
      "null, \"group\": null, \"mode\": 755}" N F("x") "--B--" N),
      { "/w/py.txt", "x" } },
    { "C#'s head", sb_lit(B "Content-Type: application/json" N
      "content-disposition: form-data; name=metadata; filename=metadata; "
      "filename*=utf-8''metadata" N N "{\"path\":\"/1\"}" N B
      "Content-Disposition: FORM-DATA; NAME=file; filename*=UTF-8''%C3%A9" N N
      "1" N "--B--" N), { "/1", "1" } },
};


static void
test_good(void **state)
{
    size_t           i, n;
    sb_rc_t          rc;
    sb_multipart_t  *m;

    (void) state;

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        m = judge(good[i].body, "B", &rc);

        if (rc != SB_OK) {
            fail_msg("%s: %d %s", good[i].name, rc, sb_multipart_reason(m));
        }

        for (n = 0; n < 3 && good[i].files[2 * n]; n++) {
            is_file(m, n, good[i].files[2 * n],
                    sb_str(good[i].files[2 * n + 1],
                           strlen(good[i].files[2 * n + 1])));
        }

        assert_int_equal(sb_multipart_count(m), n);
        assert_null(sb_multipart_file(m, n));

        sb_multipart_free(m);
    }
}


typedef struct {
    const char  *name;
    sb_rc_t      rc;
    sb_str_t     body;
} bad_t;


#define HEAD(h)  B h N N "{\"path\":\"/1\"}" N F("1") "--B--" N

static const bad_t  bad[] = {

    /* C063, C078 */
    { "empty", SB_ERROR, sb_lit("") },
    { "only the end", SB_ERROR, sb_lit("--B--" N) },
    { "cut in a file", SB_ERROR, sb_lit(M("/1") B FILE_("f") "abc") },
    { "cut behind a boundary", SB_ERROR, sb_lit(M("/1") F("1") "--B") },
    { "cut behind a dash", SB_ERROR, sb_lit(M("/1") F("1") "--B-") },
    { "cut in the last CR LF", SB_ERROR, sb_lit(M("/1") F("1") "--B--\r") },
    { "cut in a head", SB_ERROR, sb_lit(M("/1") F("1") B "Content-Disp") },
    { "no boundary at all", SB_ERROR, sb_lit("{\"path\":\"/1\"}" N) },
    { "another boundary", SB_ERROR, sb_lit(M("/1") F("1") "--C--" N) },

    /* C062: what Go calls an unexpected line */
    { "text behind a boundary", SB_ERROR, sb_lit(M("/1") B FILE_("f") "1" N
      "--B x" N "2" N "--B--" N) },
    { "text behind the end", SB_ERROR, sb_lit(M("/1") F("1") "--B--x" N) },
    { "CR without LF", SB_ERROR, sb_lit(M("/1") F("1") "--B\rx" N) },

    /* C065 */
    { "preamble holds a boundary", SB_ERROR, sb_lit("x" N "--B" N "y" N
      M("/1") F("1") "--B--" N) },
    { "preamble holds the end", SB_ERROR, sb_lit("--B--" N M("/1") F("1")
      "--B--" N) },

    { "C066: quote swallowed", SB_ERROR, sb_lit(HEAD("Content-Disposition: form-data;"
      " name=\"metadata\"; filename=\"folder\\\"")) },
    { "C066: not closed", SB_ERROR, sb_lit(HEAD("Content-Disposition: form-data; "
      "name=\"metadata\"; filename=\"folder")) },
    { "C066: CR LF in quotes", SB_ERROR, sb_lit(HEAD("Content-Disposition: form-data;"
      " name=\"metadata\"; filename=\"a" N "b\"")) },
    { "C066: injected line", SB_AMBIGUOUS, sb_lit(HEAD("Content-Disposition: "
      "form-data; name=\"x\"" N "Content-Disposition: form-data; "
      "name=\"metadata\"; filename=\"m\"")) },
    { "CR in a head", SB_ERROR, sb_lit(HEAD("Content-Disposition: form-data; "
      "name=\"metadata\"; filename=\"a\rb\"")) },
    { "NUL in a head", SB_ERROR, sb_lit(HEAD("Content-Disposition: form-data; "
      "name=\"metadata\"; filename=\"a\0b\"")) },
    { "two names", SB_ERROR, sb_lit(HEAD("Content-Disposition: form-data; "
      "name=\"x\"; name=\"metadata\"; filename=\"a\"")) },
    { "two filenames", SB_ERROR, sb_lit(HEAD("Content-Disposition: form-data; "
      "name=\"metadata\"; filename=\"\"; filename=\"a\"")) },
    { "name*", SB_AMBIGUOUS, sb_lit(HEAD("Content-Disposition: form-data; "
      "name=\"x\"; name*=utf-8''metadata; filename=\"a\"")) },
    { "filename*0", SB_AMBIGUOUS, sb_lit(HEAD("Content-Disposition: form-data; "
      "name=\"metadata\"; filename*0=\"a\"")) },
    { "empty filename*", SB_AMBIGUOUS, sb_lit(HEAD("Content-Disposition: "
      "form-data; name=\"metadata\"; filename=\"m\"; filename*=utf-8''")) },
    { "broken filename*", SB_AMBIGUOUS, sb_lit(HEAD("Content-Disposition: "
      "form-data; name=\"metadata\"; filename=\"m\"; filename*=utf-8''%4")) },
    { "escaped name", SB_AMBIGUOUS, sb_lit(HEAD("Content-Disposition: form-data"
      "; name=\"meta\\data\"; filename=\"a\"")) },
    { "blank before =", SB_ERROR, sb_lit(HEAD("Content-Disposition: form-data; "
      "name =\"metadata\"; filename=\"a\"")) },
    { "attachment", SB_ERROR, sb_lit(HEAD("Content-Disposition: attachment; "
      "name=\"metadata\"; filename=\"a\"")) },
    { "no name", SB_ERROR, sb_lit(HEAD("Content-Disposition: form-data; "
      "filename=\"a\"")) },
    { "no disposition", SB_AMBIGUOUS, sb_lit(HEAD("Content-Type: a/b")) },
    { "no colon", SB_ERROR, sb_lit(HEAD("Content-Disposition")) },
    { "blank before the colon", SB_ERROR, sb_lit(HEAD("Content-Disposition : "
      "form-data; name=\"metadata\"; filename=\"a\"")) },
    { "folded", SB_AMBIGUOUS, sb_lit(HEAD("Content-Disposition: form-data; "
      "name=\"metadata\"" N " ; filename=\"a\"")) },
    { "folded behind a semicolon", SB_ERROR, sb_lit(HEAD("Content-Disposition: "
      "form-data; name=\"metadata\";" N " filename=\"a\"")) },
    { "transfer encoding", SB_AMBIGUOUS, sb_lit(HEAD("Content-Disposition: "
      "form-data; name=\"metadata\"; filename=\"a\"" N
      "content-transfer-encoding: quoted-printable")) },

    /* C067 */
    { "decoy", SB_AMBIGUOUS, sb_lit(B "Content-Disposition: form-data; "
      "name=\"metadata\"" N N "{\"path\":\"/ok\"}" N M("/etc/x") F("1")
      "--B--" N) },
    { "empty filename", SB_AMBIGUOUS, sb_lit(HEAD("Content-Disposition: "
      "form-data; name=\"metadata\"; filename=\"\"")) },
    { "file without filename", SB_AMBIGUOUS, sb_lit(M("/1") B
      "Content-Disposition: form-data; name=\"file\"" N N "1" N "--B--" N) },

    /* C068 */
    { "no metadata", SB_ERROR, sb_lit(F("1") "--B--" N) },
    { "no file", SB_ERROR, sb_lit(M("/1") "--B--" N) },
    { "m f f", SB_ERROR, sb_lit(M("/1") F("1") F("2") "--B--" N) },
    { "m f m", SB_ERROR, sb_lit(M("/1") F("1") M("/2") "--B--" N) },

    /* C069 */
    { "LF framing", SB_AMBIGUOUS, sb_lit("--B\nContent-Disposition: form-data; "
      "name=\"metadata\"; filename=\"m\"\n\n{\"path\":\"/1\"}\n--B--\n") },
    { "LF in a head", SB_AMBIGUOUS, sb_lit(B "Content-Disposition: form-data; "
      "name=\"metadata\"; filename=\"m\"\n" N "{\"path\":\"/1\"}" N F("1")
      "--B--" N) },
    { "LF behind a boundary", SB_AMBIGUOUS, sb_lit(M("/1") "--B\n" FILE_("f")
      "1" N "--B--" N) },
    { "LF behind the end", SB_AMBIGUOUS, sb_lit(M("/1") F("1") "--B--\n") },

    /* metadata: C146, C148 to C151 */
    { "other case", SB_AMBIGUOUS, sb_lit(B META "{\"path\":\"/ok\",\"PATH\":"
      "\"/etc/x\"}" N F("1") "--B--" N) },
    { "other case alone", SB_AMBIGUOUS, sb_lit(B META "{\"Path\":\"/ok\"}" N
      F("1") "--B--" N) },
    { "Kelvin sign and the like", SB_AMBIGUOUS, sb_lit(B META "{\"path\":"
      "\"/ok\",\"\xe2\x84\xaa\":1}" N F("1") "--B--" N) },
    { "twice", SB_AMBIGUOUS, sb_lit(B META "{\"path\":\"/ok\",\"p\\u0061th\":"
      "\"/etc/x\"}" N F("1") "--B--" N) },
    { "trailing", SB_AMBIGUOUS, sb_lit(B META "{\"path\":\"/ok\"}{}" N F("1")
      "--B--" N) },
    { "bad JSON", SB_ERROR, sb_lit(B META "{bad" N F("1") "--B--" N) },
    { "no JSON", SB_ERROR, sb_lit(B META N F("1") "--B--" N) },
    { "array", SB_ERROR, sb_lit(B META "[]" N F("1") "--B--" N) },
    { "empty path", SB_ERROR, sb_lit(M("") F("1") "--B--" N) },
    { "no path", SB_ERROR, sb_lit(B META "{\"mode\":644}" N F("1") "--B--" N) },
    { "path is no text", SB_ERROR, sb_lit(B META "{\"path\":7}" N F("1") "--B--"
      N) },
    { "mode is no integer", SB_ERROR, sb_lit(B META "{\"path\":\"/1\",\"mode\":"
      "\"644\"}" N F("1") "--B--" N) },
    { "NUL in the path", SB_AMBIGUOUS, sb_lit(M("/a\\u0000b") F("1") "--B--" N)
    },
    { "lone surrogate", SB_ERROR, sb_lit(M("/\\ud800") F("1") "--B--" N) },
};


static void
test_bad(void **state)
{
    size_t           i;
    sb_rc_t          rc;
    sb_multipart_t  *m;

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        m = judge(bad[i].body, "B", &rc);

        if (rc != bad[i].rc) {
            fail_msg("%s: %d %s", bad[i].name, rc,
                     sb_multipart_reason(m) ? sb_multipart_reason(m) : "");
        }

        sb_multipart_free(m);
    }
}


static void
test_members(void **state)
{
    sb_rc_t                     rc;
    sb_multipart_t             *m;
    const sb_multipart_file_t  *f;

    (void) state;

    m = judge(sb_lit(B META "{\"path\":\"~/../\xc3\xa9\",\"owner\":\"o\","
        "\"group\":\"g\",\"mode\":1777,\"more\":{\"x\":1}}" N B
        FILE_("D:\\data\\ta\\\"b.csv") "1" N M("/2") F("2") "--B--" N), "B",
        &rc);
    assert_int_equal(rc, SB_OK);

    f = sb_multipart_file(m, 0);
    assert_true(sb_eq(f->path, sb_lit("~/../\xc3\xa9")));
    assert_int_equal(f->flags, SB_PATH_RELATIVE | SB_PATH_CLIMBS
                               | SB_PATH_EXPANDS);
    assert_true(sb_eq(f->owner, sb_lit("o")));
    assert_true(sb_eq(f->group, sb_lit("g")));
    assert_int_equal(f->mode, 1777);
    assert_true(sb_eq(f->filename, sb_lit("D:\\data\\ta\\\"b.csv")));

    f = sb_multipart_file(m, 1);
    assert_int_equal(f->mode, -1);
    assert_int_equal(f->owner.len, 0);
    assert_int_equal(f->flags, 0);

    sb_multipart_free(m);

    /* the longest boundary, as browsers write them */

    m = judge(sb_lit("------------------case" N META "{\"path\":\"/1\"}" N
        "------------------case" N FILE_("f") "--" N "----" N
        "------------------cas" N "------------------case--" N),
        "----------------case", &rc);
    assert_int_equal(rc, SB_OK);
    is_file(m, 0, "/1", sb_lit("--" N "----" N "------------------cas"));
    sb_multipart_free(m);
}


static void
test_limits(void **state)
{
    char             text[300];
    size_t           i;
    sb_rc_t          rc;
    sb_buf_t         b = { .max = 1 << 24 };
    sb_multipart_t  *m;

    (void) state;

    assert_null(sb_multipart_new(sb_lit(""), NULL));
    memset(text, 'b', sizeof(text));
    assert_null(sb_multipart_new(sb_str(text, 71), NULL));
    m = sb_multipart_new(sb_str(text, 70), NULL);
    assert_non_null(m);
    sb_multipart_free(m);

    /* files, metadata, heads: exactly the limit */

    for (i = 1; i <= 3; i++) {
        sb_multipart_limits_t  limits = { .max_files = i };

        m = sb_multipart_new(sb_lit("B"), &limits);
        rc = sb_multipart_feed(m, good[1].body.data, good[1].body.len);
        assert_int_equal(rc, i < 2 ? SB_LIMIT : SB_OK);
        sb_multipart_free(m);
    }

    for (i = 12; i <= 14; i++) {
        sb_multipart_limits_t  limits = { .max_metadata = i };

        m = sb_multipart_new(sb_lit("B"), &limits);
        rc = sb_multipart_feed(m, good[1].body.data, good[1].body.len);
        assert_int_equal(rc, i < 13 ? SB_LIMIT : SB_OK);
        sb_multipart_free(m);
    }

    for (i = 0; i < 2; i++) {
        sb_multipart_limits_t  limits = { 0 };

        limits.max_headers = strlen(FILE_("f")) - i;

        if (limits.max_headers < strlen(META)) {
            limits.max_headers = strlen(META) - i;
        }

        m = sb_multipart_new(sb_lit("B"), &limits);
        rc = sb_multipart_feed(m, good[1].body.data, good[1].body.len);
        assert_int_equal(rc, i ? SB_LIMIT : SB_OK);
        sb_multipart_free(m);
    }

    /* a head, a metadata part and a preamble without end */

    assert_int_equal(sb_buf_add_str(&b, sb_lit(B META)), SB_OK);

    for (i = 0; i < 70 * 1024; i++) {
        assert_int_equal(sb_buf_add_c(&b, ' '), SB_OK);
    }

    m = feed(sb_str(b.data, b.len), "B", 1000, 0, &rc);
    assert_int_equal(rc, SB_LIMIT);
    sb_multipart_free(m);

    m = feed(sb_str(b.data + 20, b.len - 20), "B", 1000, 0, &rc);
    assert_int_equal(rc, SB_ERROR);
    sb_multipart_free(m);

    memcpy(b.data + 10, "xxxxxxxxxxx", 11);
    memset(b.data + 5, 'h', b.len - 5);
    m = feed(sb_str(b.data, b.len), "B", 1000, 0, &rc);
    assert_int_equal(rc, SB_LIMIT);
    sb_multipart_free(m);

    /* blanks behind a boundary without end */

    b.len = 0;
    assert_int_equal(sb_buf_add_str(&b, sb_lit(M("/1") B FILE_("f") "1" N
                                               "--B")), SB_OK);

    for (i = 0; i < 1000; i++) {
        assert_int_equal(sb_buf_add_c(&b, ' '), SB_OK);
    }

    m = feed(sb_str(b.data, b.len), "B", 100, 0, &rc);
    assert_int_equal(rc, SB_ERROR);
    sb_multipart_free(m);

    sb_buf_free(&b);
}


/* A large file: its digest, and no byte of it kept. */
static void
test_large(void **state)
{
    char            *block;
    size_t           i, j, n = 64 * 1024;
    uint8_t          sha[32];
    sb_sha256_t     *h;
    sb_multipart_t  *m;

    (void) state;

    block = malloc(n);
    assert_non_null(block);
    h = sb_sha256_new();
    m = sb_multipart_new(sb_lit("B"), NULL);
    assert_non_null(h);
    assert_non_null(m);

    assert_int_equal(sb_multipart_feed(m, M("/big") B FILE_("f"),
                                       strlen(M("/big") B FILE_("f"))),
                     SB_AGAIN);

    for (i = 0; i < 160; i++) {
        for (j = 0; j < n; j++) {
            block[j] = "\r\n--\r\r\n--C\n--B"[(i * 7 + j * 5 + j / 77) % 14];
        }

        /* no delimiter by accident */
        for (j = 0; j < n; j++) {
            if (block[j] == 'B') {
                block[j] = 'b';
            }
        }

        sb_sha256_add(h, block, n);
        assert_int_equal(sb_multipart_feed(m, block, n), SB_AGAIN);
    }

    assert_int_equal(sb_multipart_feed(m, END, strlen(END)), SB_OK);
    assert_int_equal(sb_multipart_finish(m), SB_OK);
    sb_sha256_final(h, sha);
    assert_int_equal(sb_multipart_file(m, 0)->size, 160 * n);
    assert_memory_equal(sb_multipart_file(m, 0)->sha256, sha, 32);

    sb_multipart_free(m);
    free(block);
}


static void
test_boundary(void **state)
{
    size_t    i;
    sb_rc_t   rc;
    sb_str_t  b;

    static const struct { const char *type; sb_rc_t rc; const char *b; } c[] = {
        { "multipart/form-data; boundary=B", SB_OK, "B" },
        { "Multipart/Form-Data;boundary=\"a b'()+_,-./:=?c\"", SB_OK,
          "a b'()+_,-./:=?c" },
        { "multipart/form-data ; charset=utf-8; BOUNDARY=----x", SB_OK,
          "----x" },
        { "multipart/form-data; boundary=a; charset=\"x;boundary=b\"", SB_OK,
          "a" },
        { "text/plain", SB_DECLINED, NULL },
        { "multipart/mixed; boundary=B", SB_DECLINED, NULL },
        { "multipart/form-datax; boundary=B", SB_DECLINED, NULL },
        { "multipart/form-data", SB_DECLINED, NULL },
        { "multipart/form-data; charset=x", SB_DECLINED, NULL },
        { "", SB_DECLINED, NULL },
        { "multipart/form-data; boundary=a; boundary=b", SB_AMBIGUOUS, NULL },
        { "multipart/form-data; boundary=a; boundary*=utf-8''b", SB_AMBIGUOUS,
          NULL },
        { "multipart/form-data; boundary*0=a", SB_AMBIGUOUS, NULL },
        { "multipart/form-data; boundary=", SB_AMBIGUOUS, NULL },
        { "multipart/form-data; boundary=\"\"", SB_AMBIGUOUS, NULL },
        { "multipart/form-data; boundary=\"a ", SB_AMBIGUOUS, NULL },
        { "multipart/form-data; boundary=\"a \"", SB_AMBIGUOUS, NULL },
        { "multipart/form-data; boundary=\"a\\b\"", SB_AMBIGUOUS, NULL },
        { "multipart/form-data; boundary=a b", SB_AMBIGUOUS, NULL },
        { "multipart/form-data; boundary=a, boundary=b", SB_AMBIGUOUS, NULL },
        { "multipart/form-data; boundary=a;", SB_AMBIGUOUS, NULL },
        { "multipart/form-data; boundary=a%b", SB_AMBIGUOUS, NULL },
        { "multipart/form-data; boundary=\xc3\xa9", SB_AMBIGUOUS, NULL },
        { "multipart/form-data; boundary=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
          "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", SB_AMBIGUOUS, NULL },
    };

    (void) state;

    for (i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        rc = sb_multipart_boundary(sb_str(c[i].type, strlen(c[i].type)), &b);

        if (rc != c[i].rc) {
            fail_msg("%d: %s", rc, c[i].type);
        }

        if (rc == SB_OK) {
            assert_true(sb_eq(b, sb_str(c[i].b, strlen(c[i].b))));
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_boundary),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
