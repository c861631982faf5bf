#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "execd.h"
#include "multipart.h"


#define RT_UPLOAD_FILES     100000
#define RT_UPLOAD_META_MAX  (1024 * 1024)           /* of one part */
#define RT_UPLOAD_META_SUM  (64 * 1024 * 1024)


/* What has come in: file parts lie behind each other in one nameless file,
 * metadata parts in memory, until both are complete. */

typedef struct {
    rt_multipart_t   m;
    bool             ok;        /* it is multipart with a boundary */
    enum { RT_OTHER, RT_META, RT_FILE } kind;

    int              spool;
    int              error;     /* errno of the spool */
    uint64_t         spooled;
    uint64_t        *ends;      /* of each file in the spool */
    size_t           nfiles;

    sb_buf_t         meta;      /* texts, each with a NUL behind */
    size_t          *metas;     /* where each begins */
    size_t           nmetas;
} rt_upload_t;


static void
rt_upload_free(void *ctx)
{
    rt_upload_t  *u;

    u = ctx;
    close(u->spool);
    rt_multipart_free(&u->m);
    sb_buf_free(&u->meta);
    free(u->ends);
    free(u->metas);
    free(u);
}


/* Room for one more element, doubling; false without memory. */

static bool
rt_upload_grow(void **list, size_t n, size_t size)
{
    void  *p;

    if ((n & (n - 1)) != 0 || n >= RT_UPLOAD_FILES) {
        return n < RT_UPLOAD_FILES;
    }

    p = realloc(*list, (n ? n * 2 : 1) * size);

    if (p == NULL) {
        return false;
    }

    *list = p;

    return true;
}


static bool
rt_upload_part(void *data, const char *name, const char *filename)
{
    void         *p;
    rt_upload_t  *u;

    u = data;

    if (u->kind == RT_META && sb_buf_add_c(&u->meta, '\0') != SB_OK) {
        return false;
    }

    u->kind = RT_OTHER;

    if (filename[0] == '\0') {
        return true;
    }

    if (strcmp(name, "metadata") == 0) {
        p = u->metas;

        if (!rt_upload_grow(&p, u->nmetas, sizeof(size_t))) {
            return false;
        }

        u->metas = p;
        u->metas[u->nmetas++] = u->meta.len;
        u->kind = RT_META;

    } else if (strcmp(name, "file") == 0) {
        p = u->ends;

        if (!rt_upload_grow(&p, u->nfiles, sizeof(uint64_t))) {
            return false;
        }

        u->ends = p;
        u->ends[u->nfiles++] = u->spooled;
        u->kind = RT_FILE;
    }

    return true;
}


static bool
rt_upload_content(void *data, const char *p, size_t n)
{
    ssize_t       w;
    rt_upload_t  *u;

    u = data;

    if (u->kind == RT_META) {
        return u->meta.len - u->metas[u->nmetas - 1] + n
               <= RT_UPLOAD_META_MAX
               && sb_buf_add(&u->meta, p, n) == SB_OK;
    }

    if (u->kind == RT_OTHER) {
        return true;
    }

    while (n > 0 && u->error == 0) {
        w = write(u->spool, p, n);

        if (w > 0) {
            p += w;
            n -= (size_t) w;
            u->spooled += (uint64_t) w;

        } else if (errno != EINTR) {
            u->error = w == -1 ? errno : ENOSPC;
        }
    }

    u->ends[u->nfiles - 1] = u->spooled;

    return true;
}


static bool
rt_upload_sink(rt_req_t *r, const char *p, size_t n)
{
    rt_upload_t  *u;

    u = r->ctx;

    return u->ok && u->error == 0 && rt_multipart_feed(&u->m, p, n);
}


void
rt_upload_begin(rt_req_t *r)
{
    rt_parts_t    parts;
    rt_upload_t  *u;

    u = calloc(1, sizeof(rt_upload_t));

    if (u == NULL) {
        abort();
    }

    parts.part = rt_upload_part;
    parts.content = rt_upload_content;
    parts.data = u;
    u->meta.max = RT_UPLOAD_META_SUM;
    u->ok = rt_multipart_init(&u->m, rt_header(r, "Content-Type"), &parts);
    u->spool = open("/tmp", O_TMPFILE|O_RDWR|O_CLOEXEC, 0600);

    if (u->spool == -1) {
        u->spool = memfd_create("upload", MFD_CLOEXEC);
    }

    if (u->spool == -1) {
        u->error = errno;
    }

    r->ctx = u;
    r->ctx_free = rt_upload_free;
    r->sink = rt_upload_sink;
}


/* Copies a range of the spool over path.  0 or -1 with errno. */

static int
rt_upload_store(rt_upload_t *u, const char *path, uint64_t from,
    uint64_t to)
{
    int      fd, e;
    char     buf[65536];
    size_t   n;
    ssize_t  got, w, off;

    fd = open(path, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0777);

    if (fd == -1) {
        return -1;
    }

    while (from < to) {
        n = to - from < sizeof(buf) ? (size_t) (to - from) : sizeof(buf);
        got = pread(u->spool, buf, n, (off_t) from);

        for (off = 0; off < got; off += w) {
            w = write(fd, buf + off, (size_t) (got - off));

            if (w <= 0) {
                got = -1;
                break;
            }
        }

        if (got <= 0) {
            e = errno;
            close(fd);
            errno = e ? e : EIO;
            return -1;
        }

        from += (uint64_t) got;
    }

    return close(fd);
}


static void
rt_upload_pair(rt_req_t *r, rt_upload_t *u, size_t i)
{
    int             rc;
    char           *path, *slash;
    size_t          n;
    sb_str_t        given;
    rt_perm_t       perm;
    sb_jdoc_t      *doc;
    const char     *text;
    const sb_jv_t  *root;

    text = u->meta.data + u->metas[i];
    n = (i + 1 < u->nmetas ? u->metas[i + 1] : u->meta.len) - u->metas[i] - 1;
    doc = rt_go_parse_all(sb_str(text, n));
    root = doc ? sb_jdoc_root(doc) : NULL;
    given = sb_lit("");

    if (root == NULL || root->kind != SB_JSON_OPEN_OBJECT
        || rt_go_str(root, "path", &given) < 0
        || !rt_perm_parse(&perm, root) || given.len == 0)
    {
        rt_fail(r, 400, "INVALID_FILE_METADATA", "metadata part %zu must be "
                "a JSON object with a path", i + 1);
        sb_jdoc_free(doc);
        return;
    }

    /* with a slash at its end all of it is a directory, and no file */

    path = rt_expand(given, false);
    slash = path ? strrchr(path, '/') : NULL;
    rc = path ? 0 : -1;

    if (slash != NULL) {
        *slash = '\0';
        rc = rt_mkdirs(path, 0777);
        *slash = '/';
    }

    if (rc == 0) {
        rc = rt_upload_store(u, path, i ? u->ends[i - 1] : 0, u->ends[i]);
    }

    if (rc == 0) {
        rc = rt_perm_apply(path, &perm);
    }

    if (rc == -1) {
        rt_fail(r, 500, "RUNTIME_ERROR", "error writing %s: %s", given.data,
                strerror(errno));
    }

    free(path);
    sb_jdoc_free(doc);
}


void
rt_files_upload(rt_req_t *r)
{
    size_t        i;
    rt_upload_t  *u;

    u = r->ctx;

    if (u->error != 0) {
        rt_fail(r, 500, "RUNTIME_ERROR", "the upload cannot be kept: %s",
                strerror(u->error));

    } else if (!u->ok || !rt_multipart_done(&u->m)) {
        rt_fail(r, 400, "INVALID_FILE", "the body must be a complete "
                "multipart/form-data with a boundary");

    } else if (u->nmetas == 0) {
        rt_fail(r, 400, "INVALID_FILE_METADATA",
                "no part named metadata with a filename");

    } else if (u->nfiles == 0) {
        rt_fail(r, 400, "INVALID_FILE_CONTENT",
                "no part named file with a filename");

    } else if (u->nmetas != u->nfiles) {
        rt_fail(r, 400, "INVALID_FILE", "%zu metadata parts but %zu files",
                u->nmetas, u->nfiles);

    } else if (u->kind == RT_META
               && sb_buf_add_c(&u->meta, '\0') != SB_OK)
    {
        rt_fail(r, 500, "RUNTIME_ERROR", "out of memory");
    }

    for (i = 0; !r->replied && i < u->nfiles; i++) {
        rt_upload_pair(r, u, i);
    }

    if (!r->replied) {
        rt_ok(r);
    }
}
