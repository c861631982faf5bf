#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "execd.h"
#include "fsutil.h"
#include "url.h"


#define RT_DEPTH_MAX  1000

/* One walk: entries in the order of their names, links not followed. */
typedef struct {
    sb_buf_t    *b;
    const char  *pattern;       /* of base names; NULL: everything */
    bool         dirs;          /* directories are listed too */
    int64_t      depth;         /* levels to go down */
    bool         bad;           /* the pattern, found when a name was there */
} rt_walk_t;


static int
rt_by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}


static int
rt_not_dots(const struct dirent *d)
{
    return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}


static int
rt_walk_add(rt_walk_t *w, const char *path)
{
    if (w->b->len > 1 && sb_buf_add_c(w->b, ',') != SB_OK) {
        errno = EFBIG;
        return -1;
    }

    if (rt_file_info(w->b, path) == -1) {
        if (errno != ENOENT) {
            return -1;
        }

        /* gone meanwhile */

        if (w->b->data[w->b->len - 1] == ',') {
            w->b->len--;
        }
    }

    return 0;
}


static int
rt_walk(rt_walk_t *w, const char *dir, int64_t level)
{
    int             i, n, rc;
    char           *path;
    bool            is_dir;
    struct stat     st;
    struct dirent **list;

    n = scandir(dir, &list, rt_not_dots, rt_by_name);

    if (n == -1) {
        return -1;
    }

    rc = 0;

    for (i = 0; i < n; i++) {
        if (rc == 0
            && asprintf(&path, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir,
                        list[i]->d_name)
               != -1)
        {
            is_dir = lstat(path, &st) == 0 && S_ISDIR(st.st_mode);

            if (w->pattern != NULL && !is_dir && !w->bad) {
                w->bad = !rt_glob_valid(w->pattern);
            }

            if ((w->dirs || !is_dir) && !w->bad
                && (w->pattern == NULL
                    || rt_glob(w->pattern, list[i]->d_name)))
            {
                rc = rt_walk_add(w, path);
            }

            if (rc == 0 && !w->bad && is_dir && level + 1 < w->depth) {
                rc = rt_walk(w, path, level + 1);
            }

            free(path);
        }

        free(list[i]);
    }

    free(list);

    return rc;
}


static char *
rt_query_path(rt_req_t *r)
{
    char      *path;
    sb_buf_t   given;

    if (!rt_query_value(r->query, "path", &given) || given.len == 0) {
        rt_fail(r, 400, "MISSING_QUERY", "missing query parameter 'path'");
        sb_buf_free(&given);
        return NULL;
    }

    path = rt_expand(sb_str(given.data, given.len), true);

    if (path == NULL) {
        rt_fail_errno(r, errno, given.data);
    }

    sb_buf_free(&given);

    return path;
}


static void
rt_walk_reply(rt_req_t *r, rt_walk_t *w, char *path)
{
    int          rc;
    sb_buf_t     b;
    struct stat  st;

    memset(&b, 0, sizeof(b));
    b.max = RT_BODY_MAX * 4;
    sb_buf_add_c(&b, '[');
    w->b = &b;

    /* a link is not followed, at the beginning neither */

    if (lstat(path, &st) == 0 && !S_ISDIR(st.st_mode)) {
        w->bad = !rt_glob_valid(w->pattern);
        rc = !w->bad && rt_glob(w->pattern, strrchr(path, '/') + 1)
             ? rt_walk_add(w, path) : 0;

    } else {
        rc = w->depth > 0 ? rt_walk(w, path, 0) : 0;
    }

    if (w->bad) {
        rt_fail(r, 500, "RUNTIME_ERROR", "invalid pattern %s", w->pattern);
        sb_buf_free(&b);

    } else if (rc == -1) {
        rt_fail(r, 500, "RUNTIME_ERROR", "error reading %s: %s", path,
                strerror(errno));
        sb_buf_free(&b);

    } else {
        sb_buf_add_c(&b, ']');
        rt_json(r, 200, &b);
    }

    free(path);
}


void
rt_files_search(rt_req_t *r)
{
    char         *path, *pattern;
    rt_walk_t     w;
    struct stat   st;

    path = rt_query_path(r);

    if (path == NULL) {
        return;
    }

    if (stat(path, &st) == -1) {
        rt_fail_errno(r, errno, path);
        free(path);
        return;
    }

    pattern = rt_query_get(r->query, "pattern");
    memset(&w, 0, sizeof(w));
    w.pattern = pattern && pattern[0] != '\0' ? pattern : "**";
    w.depth = RT_DEPTH_MAX;
    rt_walk_reply(r, &w, path);
    free(pattern);
}


void
rt_dirs_list(rt_req_t *r)
{
    char         *path, *depth;
    rt_walk_t     w;
    struct stat   st;

    path = rt_query_path(r);

    if (path == NULL) {
        return;
    }

    memset(&w, 0, sizeof(w));
    w.dirs = true;
    w.depth = 1;
    depth = rt_query_get(r->query, "depth");

    if (depth != NULL && depth[0] != '\0'
        && (!rt_atoi(depth, &w.depth) || w.depth < 0))
    {
        rt_fail(r, 400, "INVALID_REQUEST_BODY",
                "depth must be an integer, 0 or more");
    }

    if (w.depth > RT_DEPTH_MAX) {
        w.depth = RT_DEPTH_MAX;
    }

    free(depth);

    if (!r->replied) {
        if (lstat(path, &st) == -1) {
            rt_fail_errno(r, errno, path);

        } else if (!S_ISDIR(st.st_mode)) {
            rt_fail(r, 400, "INVALID_REQUEST_BODY", "%s is not a directory",
                    path);
        }
    }

    if (r->replied) {
        free(path);

    } else {
        rt_walk_reply(r, &w, path);
    }
}


void
rt_dirs_create(rt_req_t *r)
{
    bool            existed;
    char           *path;
    rt_perm_t       perm;
    sb_jdoc_t      *doc;
    struct stat     st;
    const sb_jv_t  *v, *root;

    doc = rt_go_parse(sb_str(r->body.data, r->body.len), NULL);
    root = doc ? sb_jdoc_root(doc) : NULL;

    if (root == NULL || (root->kind != SB_JSON_OPEN_OBJECT
                         && root->kind != SB_JSON_NULL))
    {
        rt_fail(r, 400, "INVALID_REQUEST_BODY",
                "the body must be a JSON object");
        sb_jdoc_free(doc);
        return;
    }

    for (v = root->child; v != NULL; v = v->next) {
        if (!rt_perm_parse(&perm, v)) {
            rt_fail(r, 400, "INVALID_REQUEST_BODY",
                    "each path needs {\"owner\",\"group\",\"mode\"}");
            sb_jdoc_free(doc);
            return;
        }
    }

    for (v = root->child; v != NULL && !r->replied; v = v->next) {
        rt_perm_parse(&perm, v);
        path = rt_expand(v->key, true);
        existed = path != NULL && stat(path, &st) == 0;

        if (path == NULL || rt_mkdirs(path, 0777) == -1
            || (!existed && rt_perm_apply(path, &perm) == -1))
        {
            rt_fail_errno(r, errno, v->key.data);
        }

        free(path);
    }

    sb_jdoc_free(doc);

    if (!r->replied) {
        rt_ok(r);
    }
}


static bool
rt_ends_with_dot(char *path)
{
    size_t  n;

    n = strlen(path);

    while (n > 1 && path[n - 1] == '/') {
        path[--n] = '\0';
    }

    if (path[n - 1] == '.' && (n == 1 || path[n - 2] == '/')) {
        errno = EINVAL;
        return true;
    }

    return false;
}


void
rt_dirs_delete(rt_req_t *r)
{
    char        *path;
    rt_query_t   q;

    rt_query_init(&q, r->query);

    while (!r->replied && rt_query_next(&q)) {
        if (strcmp(q.name.data, "path") != 0) {
            continue;
        }

        path = rt_expand(sb_str(q.value.data, q.value.len), false);

        /* an empty one is nothing, one that ends with a dot is refused */

        if (path != NULL && path[0] == '\0') {
            free(path);
            continue;
        }

        if (path == NULL || rt_ends_with_dot(path)
            || rt_remove_at(AT_FDCWD, path) == -1)
        {
            rt_fail(r, 500, "RUNTIME_ERROR",
                    "error removing directory %s: %s", q.value.data,
                    strerror(errno));
        }

        free(path);
    }

    rt_query_free(&q);

    if (!r->replied) {
        rt_ok(r);
    }
}
