/* Uploads as the local runtime takes them: a line with the Content-Type, then
 * the body.  What is found does not depend on splits; and what the gateway says
 * of an upload that it passes, lib/multipart.h, is what the runtime writes. */

#include "standalone/runtime/multipart.h"

#include "digest.h"
#include "lib/multipart.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    rt_multipart_t   m;
    bool             ok;
    sb_sha256_t     *all;           /* of everything that was told */
    uint8_t          told[32];
    sb_sha256_t     *file;          /* of the file that comes */
    uint8_t        (*files)[32];
    size_t           nfiles;
} run_t;


static void
file_end(run_t *r)
{
    if (r->file) {
        sb_sha256_final(r->file, r->files[r->nfiles++]);
        r->file = NULL;
    }
}


static bool
part(void *data, const char *name, const char *filename)
{
    void   *p;
    run_t  *r = data;

    file_end(r);

    sb_sha256_add(r->all, "|", 1);
    sb_sha256_add(r->all, name, strlen(name) + 1);
    sb_sha256_add(r->all, filename, strlen(filename) + 1);

    if (filename[0] && strcmp(name, "file") == 0) {
        p = realloc(r->files, (r->nfiles + 1) * 32);
        r->file = sb_sha256_new();

        if (p == NULL || r->file == NULL) {
            abort();
        }

        r->files = p;
    }

    return true;
}


static bool
content(void *data, const char *p, size_t n)
{
    run_t  *r = data;

    sb_sha256_add(r->all, p, n);

    if (r->file) {
        sb_sha256_add(r->file, p, n);
    }

    return true;
}


static void
run(run_t *r, const char *type, const char *p, size_t n, size_t step)
{
    size_t      i, k;
    rt_parts_t  parts;

    memset(r, 0, sizeof(*r));
    parts.part = part;
    parts.content = content;
    parts.data = r;
    r->all = sb_sha256_new();

    if (r->all == NULL) {
        abort();
    }

    r->ok = rt_multipart_init(&r->m, type, &parts);

    for (i = 0; i < n && r->ok; i += k) {
        k = n - i < step ? n - i : step;
        r->ok = rt_multipart_feed(&r->m, p + i, k);
    }

    r->ok = r->ok && rt_multipart_done(&r->m);
    file_end(r);
    sb_sha256_final(r->all, r->told);
}


static void
end(run_t *r)
{
    rt_multipart_free(&r->m);
    free(r->files);
}


/* The gateway's reading of it, where it has one. */
static void
compare(const run_t *r, const char *type, const char *p, size_t n)
{
    size_t           i;
    sb_str_t         boundary;
    sb_multipart_t  *m;

    if (sb_multipart_boundary(sb_str(type, strlen(type)), &boundary) != SB_OK) {
        return;
    }

    m = sb_multipart_new(boundary, NULL);
    if (m == NULL) {
        abort();
    }

    if (sb_multipart_feed(m, p, n) >= SB_OK && sb_multipart_finish(m) == SB_OK)
    {
        if (!r->ok || r->nfiles != sb_multipart_count(m)) {
            abort();
        }

        for (i = 0; i < r->nfiles; i++) {
            if (memcmp(r->files[i], sb_multipart_file(m, i)->sha256, 32) != 0) {
                abort();
            }
        }
    }

    sb_multipart_free(m);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run_t        whole, piece;
    char        *type, *p;
    size_t       n, step;
    const char  *lf;

    if (size > 200 * 1000) {
        return 0;
    }

    lf = size ? memchr(data, '\n', size) : NULL;

    if (lf == NULL) {
        return 0;
    }

    n = (size_t) (lf - (const char *) data);
    type = malloc(n + 1);
    p = malloc(size - n);

    if (type == NULL || p == NULL) {
        abort();
    }

    memcpy(type, data, n);
    type[n] = '\0';

    n = size - n - 1;
    memcpy(p, lf + 1, n);

    run(&whole, type, p, n, n + 1);

    for (step = 1; step < 20; step += 6) {
        run(&piece, type, p, n, step);

        if (piece.ok != whole.ok
            || (whole.ok && memcmp(piece.told, whole.told, 32) != 0))
        {
            abort();
        }

        end(&piece);
    }

    compare(&whole, type, p, n);
    end(&whole);

    free(type);
    free(p);

    return 0;
}
