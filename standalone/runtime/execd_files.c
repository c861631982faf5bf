#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "execd.h"
#include "url.h"


#define RT_INFOS_MAX  8192      /* paths of one question */


/* The body as an object of objects; NULL after an answer was given. */

static sb_jdoc_t *
rt_body_object(rt_req_t *r, sb_json_event_e kind)
{
    sb_jdoc_t      *doc;
    const sb_jv_t  *root;

    doc = rt_go_parse(sb_str(r->body.data, r->body.len), NULL);
    root = doc ? sb_jdoc_root(doc) : NULL;

    if (root == NULL
        || (root->kind != kind && root->kind != SB_JSON_NULL))
    {
        rt_fail(r, 400, "INVALID_REQUEST_BODY", "the body must be a JSON %s",
                kind == SB_JSON_OPEN_ARRAY ? "array" : "object");
        sb_jdoc_free(doc);
        return NULL;
    }

    return doc;
}


/* The last duplicate of a key wins: earlier ones are passed over. */

static bool
rt_is_last(const sb_jv_t *v)
{
    const sb_jv_t  *w;

    for (w = v->next; w != NULL; w = w->next) {
        if (sb_eq(v->key, w->key)) {
            return false;
        }
    }

    return true;
}


/* A map is written with its keys in order. */

typedef struct {
    char      *key;
    sb_buf_t   info;
} rt_info_t;


static int
rt_by_key(const void *a, const void *b)
{
    return strcmp(((const rt_info_t *) a)->key, ((const rt_info_t *) b)->key);
}


static void
rt_infos_reply(rt_req_t *r, rt_info_t *list, size_t n)
{
    size_t    i;
    sb_buf_t  b;

    memset(&b, 0, sizeof(b));
    b.max = RT_BODY_MAX;
    sb_buf_add_c(&b, '{');

    if (n > 0) {
        qsort(list, n, sizeof(rt_info_t), rt_by_key);
    }

    for (i = 0; i < n; i++) {
        if (i > 0 && strcmp(list[i].key, list[i - 1].key) == 0) {
            continue;
        }

        sb_buf_add(&b, ",", b.len > 1 ? 1 : 0);
        rt_go_write(&b, sb_str(list[i].key, strlen(list[i].key)));
        sb_buf_add_c(&b, ':');
        sb_buf_add(&b, list[i].info.data, list[i].info.len);
    }

    sb_buf_add_c(&b, '}');
    rt_json(r, 200, &b);
}


void
rt_files_info(rt_req_t *r)
{
    char        *path;
    size_t       n;
    rt_info_t   *list, *e;
    rt_query_t   q;

    list = calloc(RT_INFOS_MAX, sizeof(rt_info_t));
    n = 0;
    rt_query_init(&q, r->query);

    while (list != NULL && n < RT_INFOS_MAX && !r->replied
           && rt_query_next(&q))
    {
        if (strcmp(q.name.data, "path") != 0) {
            continue;
        }

        e = &list[n++];
        e->key = strdup(q.value.data);
        e->info.max = 65536;
        path = rt_expand(sb_str(q.value.data, q.value.len), true);

        if (path == NULL || rt_file_info(&e->info, path) == -1) {
            rt_fail_errno(r, errno, q.value.data);
        }

        free(path);
    }

    rt_query_free(&q);

    if (!r->replied) {
        rt_infos_reply(r, list, n);
    }

    while (n > 0) {
        n--;
        free(list[n].key);
        sb_buf_free(&list[n].info);
    }

    free(list);
}


static int
rt_delete_file(sb_str_t given)
{
    int          rc;
    char        *path;
    struct stat  st;

    path = rt_expand(given, true);

    if (path == NULL) {
        return -1;
    }

    rc = stat(path, &st);

    if (rc == -1 && errno == ENOENT) {
        rc = 0;

    } else if (rc == 0 && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        rc = -1;

    } else if (rc == 0) {
        rc = unlink(path);
    }

    free(path);

    return rc;
}


void
rt_files_delete(rt_req_t *r)
{
    rt_query_t  q;

    rt_query_init(&q, r->query);

    while (rt_query_next(&q)) {
        if (strcmp(q.name.data, "path") == 0
            && rt_delete_file(sb_str(q.value.data, q.value.len)) == -1)
        {
            rt_fail(r, 500, "RUNTIME_ERROR", "error removing file %s: %s",
                    q.value.data, strerror(errno));
            rt_query_free(&q);
            return;
        }
    }

    rt_query_free(&q);
    rt_ok(r);
}


static int
rt_move(sb_str_t from, sb_str_t to)
{
    int          rc, e;
    char        *src, *dest, *slash;
    struct stat  st;

    src = rt_expand(from, true);
    dest = rt_expand(to, true);
    rc = -1;

    if (src == NULL || dest == NULL || stat(src, &st) == -1) {
        goto done;
    }

    slash = strrchr(dest, '/');
    *slash = '\0';
    rc = rt_mkdirs(dest, 0755);
    *slash = '/';

    if (rc == 0 && stat(dest, &st) == 0) {
        errno = EEXIST;
        rc = -1;
    }

    if (rc == 0) {
        rc = rename(src, dest);
    }

done:

    e = errno;
    free(src);
    free(dest);
    errno = e;

    return rc;
}


void
rt_files_mv(rt_req_t *r)
{
    sb_str_t        src, dest;
    sb_jdoc_t      *doc;
    const sb_jv_t  *v;

    doc = rt_body_object(r, SB_JSON_OPEN_ARRAY);

    if (doc == NULL) {
        return;
    }

    for (v = sb_jdoc_root(doc)->child; v != NULL; v = v->next) {
        src = dest = sb_lit("");

        if ((v->kind != SB_JSON_OPEN_OBJECT && v->kind != SB_JSON_NULL)
            || rt_go_str(v, "src", &src) < 0
            || rt_go_str(v, "dest", &dest) < 0)
        {
            rt_fail(r, 400, "INVALID_REQUEST_BODY",
                    "each element needs the strings src and dest");
            sb_jdoc_free(doc);
            return;
        }
    }

    for (v = sb_jdoc_root(doc)->child; v != NULL; v = v->next) {
        src = dest = sb_lit("");
        rt_go_str(v, "src", &src);
        rt_go_str(v, "dest", &dest);

        if (rt_move(src, dest) == -1) {
            rt_fail_errno(r, errno, src.data);
            sb_jdoc_free(doc);
            return;
        }
    }

    sb_jdoc_free(doc);
    rt_ok(r);
}


void
rt_files_permissions(rt_req_t *r)
{
    int             rc;
    char           *path;
    rt_perm_t       perm;
    sb_jdoc_t      *doc;
    const sb_jv_t  *v;

    doc = rt_body_object(r, SB_JSON_OPEN_OBJECT);

    if (doc == NULL) {
        return;
    }

    for (v = sb_jdoc_root(doc)->child; v != NULL; v = v->next) {
        if (!rt_perm_parse(&perm, v)) {
            rt_fail(r, 400, "INVALID_REQUEST_BODY",
                    "each path needs {\"owner\",\"group\",\"mode\"}");
            sb_jdoc_free(doc);
            return;
        }
    }

    for (v = sb_jdoc_root(doc)->child; v != NULL; v = v->next) {
        if (!rt_is_last(v)) {
            continue;
        }

        rt_perm_parse(&perm, v);
        path = rt_expand(v->key, true);
        rc = path ? rt_perm_apply(path, &perm) : -1;
        free(path);

        if (rc == -1) {
            rt_fail(r, 500, "RUNTIME_ERROR", "error changing permissions "
                    "for %s: %s", v->key.data, strerror(errno));
            sb_jdoc_free(doc);
            return;
        }
    }

    sb_jdoc_free(doc);
    rt_ok(r);
}


/* Writes content over a file without changing its mode. */

static int
rt_overwrite(const char *path, const char *p, size_t n)
{
    int      fd, rc;
    ssize_t  w;

    fd = open(path, O_WRONLY|O_TRUNC|O_CLOEXEC);

    if (fd == -1) {
        return -1;
    }

    rc = 0;

    while (n > 0 && rc == 0) {
        w = write(fd, p, n);

        if (w > 0) {
            p += w;
            n -= (size_t) w;

        } else if (errno != EINTR) {
            rc = -1;
        }
    }

    return close(fd) == -1 ? -1 : rc;
}


static int
rt_slurp(const char *path, sb_buf_t *b)
{
    int      fd, e;
    char     buf[65536];
    ssize_t  n;

    b->max = RT_BODY_MAX * 4;
    fd = open(path, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        return -1;
    }

    while ((n = read(fd, buf, sizeof(buf))) > 0) {
        if (sb_buf_add(b, buf, (size_t) n) != SB_OK) {
            errno = EFBIG;
            n = -1;
            break;
        }
    }

    e = errno;
    close(fd);
    errno = e;

    return n < 0 ? -1 : 0;
}


static int
rt_replace(sb_str_t given, sb_str_t old, sb_str_t new, unsigned *count)
{
    int          rc, e;
    char        *path;
    sb_buf_t     in, out;
    const char  *p, *q, *end;

    memset(&in, 0, sizeof(in));
    memset(&out, 0, sizeof(out));
    out.max = RT_BODY_MAX * 4;
    *count = 0;
    path = rt_expand(given, true);
    rc = path ? rt_slurp(path, &in) : -1;

    if (rc == 0) {
        p = in.data ? in.data : "";
        end = p + in.len;

        while ((q = memmem(p, (size_t) (end - p), old.data, old.len))) {
            if (sb_buf_add(&out, p, (size_t) (q - p)) != SB_OK
                || sb_buf_add_str(&out, new) != SB_OK)
            {
                errno = EFBIG;
                rc = -1;
                break;
            }

            p = q + old.len;
            (*count)++;
        }

        if (rc == 0 && sb_buf_add(&out, p, (size_t) (end - p)) != SB_OK) {
            errno = EFBIG;
            rc = -1;
        }
    }

    if (rc == 0) {
        rc = rt_overwrite(path, out.data, out.len);
    }

    e = errno;
    sb_buf_free(&in);
    sb_buf_free(&out);
    free(path);
    errno = e;

    return rc;
}


void
rt_files_replace(rt_req_t *r)
{
    char           *verbose;
    unsigned        count;
    sb_buf_t        b;
    sb_str_t        old, new;
    sb_jdoc_t      *doc;
    const sb_jv_t  *v;

    doc = rt_body_object(r, SB_JSON_OPEN_OBJECT);

    if (doc == NULL) {
        return;
    }

    verbose = rt_query_get(r->query, "verbose");
    memset(&b, 0, sizeof(b));
    b.max = RT_BODY_MAX;
    sb_buf_add_c(&b, '{');

    for (v = sb_jdoc_root(doc)->child; v != NULL; v = v->next) {
        if (!rt_is_last(v)) {
            continue;
        }

        old = new = sb_lit("");

        if ((v->kind != SB_JSON_OPEN_OBJECT && v->kind != SB_JSON_NULL)
            || rt_go_str(v, "old", &old) < 0
            || rt_go_str(v, "new", &new) < 0)
        {
            rt_fail(r, 400, "INVALID_REQUEST_BODY",
                    "each path needs the strings old and new");
            break;
        }

        if (old.len == 0) {
            char  *path;

            path = rt_expand(v->key, true);

            if (path != NULL && access(path, F_OK) == 0) {
                rt_fail(r, 400, "INVALID_REQUEST_BODY",
                        "old content must not be empty");

            } else {
                rt_fail_errno(r, errno, v->key.data);
            }

            free(path);
            break;
        }

        if (rt_replace(v->key, old, new, &count) == -1) {
            rt_fail_errno(r, errno, v->key.data);
            break;
        }

        if (b.len > 1) {
            sb_buf_add_c(&b, ',');
        }

        rt_go_write(&b, v->key);
        sb_buf_printf(&b, ":{\"replacedCount\":%u}", count);
    }

    sb_buf_add_c(&b, '}');

    if (r->replied) {
        sb_buf_free(&b);

    } else if (verbose != NULL && strcmp(verbose, "true") == 0) {
        rt_json(r, 200, &b);

    } else {
        sb_buf_free(&b);
        rt_ok(r);
    }

    free(verbose);
    sb_jdoc_free(doc);
}
