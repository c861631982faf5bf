/* Paths of requests, FileInfo and permissions. */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "execd.h"


static bool
rt_var_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'
           || (!first && c >= '0' && c <= '9');
}


/* Replaces variables; false: one is not set. */

static bool
rt_expand_vars(sb_buf_t *b, const char *p)
{
    char         name[256];
    size_t       n;
    const char  *q, *value;

    while (*p != '\0') {
        q = p + 1;

        if (*p == '$' && *q == '{') {
            q++;
        }

        n = 0;

        if (*p == '$') {
            while (n < sizeof(name) - 1 && rt_var_char(q[n], n == 0)) {
                name[n] = q[n];
                n++;
            }
        }

        if (n == 0 || (p[1] == '{' && q[n] != '}')) {
            sb_buf_add_c(b, *p++);
            continue;
        }

        name[n] = '\0';
        value = getenv(name);

        if (value == NULL) {
            return false;
        }

        sb_buf_add(b, value, strlen(value));
        p = q + n + (p[1] == '{' ? 1 : 0);
    }

    return true;
}


/* Lexically, as Go's filepath.Clean does with absolute paths. */

static void
rt_clean(char *path)
{
    char        *dst, *p, *end;
    size_t       n;

    dst = path;

    for (p = path; *p != '\0'; p = end) {
        while (*p == '/') {
            p++;
        }

        end = p + strcspn(p, "/");
        n = (size_t) (end - p);

        if (n == 0 || (n == 1 && p[0] == '.')) {
            continue;
        }

        if (n == 2 && p[0] == '.' && p[1] == '.') {
            while (dst > path && *--dst != '/') { /* void */ }
            continue;
        }

        *dst++ = '/';
        memmove(dst, p, n);
        dst += n;
    }

    if (dst == path) {
        *dst++ = '/';
    }

    *dst = '\0';
}


bool
rt_atoi(const char *s, int64_t *out)
{
    char  *end;

    if (s[0] != '-' && s[0] != '+' && (s[0] < '0' || s[0] > '9')) {
        return false;
    }

    errno = 0;
    *out = strtoll(s, &end, 10);

    return errno == 0 && end[-1] >= '0' && end[-1] <= '9' && *end == '\0';
}


char *
rt_expand(sb_str_t given, bool abs)
{
    char        *cwd;
    sb_buf_t     b, full;
    const char  *home, *path;

    path = given.data;

    if (strlen(path) != given.len) {
        errno = EINVAL;
        return NULL;
    }

    memset(&b, 0, sizeof(b));
    memset(&full, 0, sizeof(full));
    b.max = full.max = 1024 * 1024;

    if (!rt_expand_vars(&b, path) || sb_buf_cstr(&b) == NULL) {
        sb_buf_free(&b);
        errno = ENOKEY;
        return NULL;
    }

    if (b.data[0] == '~' && (b.data[1] == '\0' || b.data[1] == '/')) {
        home = getenv("HOME");
        sb_buf_printf(&full, "%s%s", home ? home : "/root", b.data + 1);
        sb_buf_free(&b);
        b = full;

    } else if (abs && b.data[0] != '/') {
        cwd = getcwd(NULL, 0);
        sb_buf_printf(&full, "%s/%s", cwd ? cwd : "", b.data);
        free(cwd);
        sb_buf_free(&b);
        b = full;
    }

    if (sb_buf_cstr(&b) == NULL) {
        sb_buf_free(&b);
        errno = ENOMEM;
        return NULL;
    }

    if (abs) {
        rt_clean(b.data);
    }

    return b.data;
}


bool
rt_is_dir(sb_str_t given)
{
    bool         is;
    char        *path;
    struct stat  st;

    path = rt_expand(given, false);
    is = path != NULL && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    free(path);

    return is;
}


int
rt_mkdirs(const char *path, mode_t mode)
{
    int          rc, e;
    char        *copy, *p;
    struct stat  st;

    copy = strdup(path);

    if (copy == NULL) {
        return -1;
    }

    rc = 0;

    for (p = copy + 1; copy[0] != '\0' && rc == 0; p++) {
        if (*p != '/' && *p != '\0') {
            continue;
        }

        if (*p == '/') {
            *p = '\0';
            rc = mkdir(copy, mode);
            *p = '/';

        } else {
            rc = mkdir(copy, mode);
        }

        if (rc == -1 && errno == EEXIST) {
            rc = 0;
        }

        if (*p == '\0') {
            break;
        }
    }

    if (rc == 0 && path[0] != '\0') {
        rc = stat(path, &st);

        if (rc == 0 && !S_ISDIR(st.st_mode)) {
            rc = -1;
            errno = ENOTDIR;
        }
    }

    e = errno;
    free(copy);
    errno = e;

    return rc;
}


static void
rt_owner(sb_buf_t *b, uid_t uid, gid_t gid)
{
    char            buf[4096];
    struct group    gr, *g;
    struct passwd   pw, *u;

    sb_buf_printf(b, ",\"owner\":");

    if (getpwuid_r(uid, &pw, buf, sizeof(buf), &u) == 0 && u != NULL) {
        rt_go_write(b, sb_str(pw.pw_name, strlen(pw.pw_name)));

    } else {
        sb_buf_printf(b, "\"%u\"", (unsigned) uid);
    }

    sb_buf_printf(b, ",\"group\":");

    if (getgrgid_r(gid, &gr, buf, sizeof(buf), &g) == 0 && g != NULL) {
        rt_go_write(b, sb_str(gr.gr_name, strlen(gr.gr_name)));

    } else {
        sb_buf_printf(b, "\"%u\"", (unsigned) gid);
    }
}


int
rt_file_info(sb_buf_t *b, const char *path)
{
    const char    *type;
    struct statx   st;

    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW,
              STATX_BASIC_STATS|STATX_BTIME, &st)
        == -1)
    {
        return -1;
    }

    type = S_ISLNK(st.stx_mode) ? "symlink"
           : S_ISDIR(st.stx_mode) ? "directory"
           : S_ISREG(st.stx_mode) ? "file" : "other";

    if (!(st.stx_mask & STATX_BTIME)) {
        st.stx_btime = st.stx_ctime;
    }

    sb_buf_printf(b, "{\"path\":");
    rt_go_write(b, sb_str(path, strlen(path)));
    sb_buf_printf(b, ",\"type\":\"%s\",\"size\":%llu,\"modified_at\":", type,
                  (unsigned long long) st.stx_size);
    rt_go_time(b, st.stx_mtime.tv_sec, st.stx_mtime.tv_nsec);
    sb_buf_printf(b, ",\"created_at\":");
    rt_go_time(b, st.stx_btime.tv_sec, st.stx_btime.tv_nsec);
    rt_owner(b, st.stx_uid, st.stx_gid);
    sb_buf_printf(b, ",\"mode\":%o}", (unsigned) st.stx_mode & 0777);

    return 0;
}


bool
rt_perm_parse(rt_perm_t *p, const sb_jv_t *v)
{
    memset(p, 0, sizeof(rt_perm_t));

    return v->kind == SB_JSON_NULL
           || (v->kind == SB_JSON_OPEN_OBJECT
               && rt_go_str(v, "owner", &p->owner) >= 0
               && rt_go_str(v, "group", &p->group) >= 0
               && rt_go_int(v, "mode", &p->mode) >= 0);
}


int
rt_perm_apply(const char *path, const rt_perm_t *p)
{
    char            digits[24], *end, buf[4096];
    uid_t           uid;
    gid_t           gid;
    unsigned long   mode;
    struct group    gr, *g;
    struct passwd   pw, *u;

    if (p->mode != 0) {
        snprintf(digits, sizeof(digits), "%lld", (long long) p->mode);
        mode = strtoul(digits, &end, 8);

        if (p->mode < 0 || *end != '\0' || mode > 07777) {
            errno = EINVAL;
            return -1;
        }

        /* Go takes only the permission bits of such a number */

        if (chmod(path, (mode_t) mode & 0777) == -1) {
            return -1;
        }
    }

    uid = (uid_t) -1;
    gid = (gid_t) -1;

    if (p->owner.len > 0) {
        if (getpwnam_r(p->owner.data, &pw, buf, sizeof(buf), &u) != 0
            || u == NULL)
        {
            errno = ENOTNAM;
            return -1;
        }

        uid = pw.pw_uid;
    }

    if (p->group.len > 0) {
        if (getgrnam_r(p->group.data, &gr, buf, sizeof(buf), &g) != 0
            || g == NULL)
        {
            errno = ENOTNAM;
            return -1;
        }

        gid = gr.gr_gid;
    }

    return uid == (uid_t) -1 && gid == (gid_t) -1 ? 0
                                                  : chown(path, uid, gid);
}
