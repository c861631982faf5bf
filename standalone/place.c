/*
 * Where an instance keeps its files, and as whom its parts run.
 *
 * DATA may be closed to everybody but its owner, and may lie below a directory
 * that nginx's workers cannot pass.  So what workers need lies elsewhere when
 * we are root: the helper's socket and a copy of the console in
 * /run/sandbox-gateway/HASH, nginx's temporary files in
 * /var/cache/sandbox-gateway/HASH; HASH is that of DATA's path.  Without root
 * there is one user only: socket and temporary files stay in DATA, and the
 * console is served from where it is installed.
 */

#include "gateway.h"
#include "digest.h"
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define GW_RUN    "/run/sandbox-gateway"
#define GW_CACHE  "/var/cache/sandbox-gateway"


static const char  *gw_worker_users[] = { "www-data", "nginx", "nobody", NULL };
static const char  *gw_helper_users[] = { "sandbox-helper", "daemon", NULL };


static bool gw_name(char *dst, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static bool gw_absolute(char *dst, const char *path, const char *what);
static bool gw_data_default(char *dst);
static bool gw_place_lock(const gw_place_t *p);
static bool gw_pick_workers(gw_place_t *p);
static void gw_pick_helper(gw_place_t *p);
static bool gw_reach(const char *path, int mode, uid_t uid, gid_t gid);
static void gw_open_for_helper(gw_place_t *p);
static bool gw_own_dir(const char *dir, uid_t uid, gid_t gid, mode_t mode);


bool
gw_place_name(gw_place_t *p, const gw_options_t *opt)
{
    char                hash[13];
    uint8_t             digest[32];
    struct sockaddr_un  sun;

    memset(p, 0, sizeof(*p));
    p->root = (geteuid() == 0);

    if (opt->data) {
        if (!gw_absolute(p->data, opt->data, "--data")) {
            return false;
        }

    } else if (!gw_data_default(p->data)) {
        return false;
    }

    if (opt->history) {
        if (!gw_absolute(p->history, opt->history, "--history")) {
            return false;
        }

    } else if (!gw_name(p->history, "%s/history", p->data)) {
        return false;
    }

    sb_sha256(digest, sb_str(p->data, strlen(p->data)));
    sb_hex(hash, digest, 6);

    if (!gw_name(p->tokens, "%s/tokens", p->data)
        || !gw_name(p->conf, "%s/nginx/nginx.conf", p->data))
    {
        return false;
    }

    if (opt->config && !gw_absolute(p->conf, opt->config, "--config")) {
        return false;
    }

    if (opt->policy == NULL) {
        if (!gw_name(p->policy, "%s/nginx/policy.default", p->data)) {
            return false;
        }

    } else if (strcmp(opt->policy, "off") != 0
               && !gw_absolute(p->policy, opt->policy, "--policy"))
    {
        return false;
    }

    /* nginx takes what is relative from its own directory, not from ours */

    if ((opt->tls_cert && !gw_absolute(p->tls_cert, opt->tls_cert,
                                       "--tls-cert"))
        || (opt->tls_key && !gw_absolute(p->tls_key, opt->tls_key,
                                         "--tls-key")))
    {
        return false;
    }

    if (opt->api_key_file) {
        if (!gw_absolute(p->key, opt->api_key_file, "--api-key-file")) {
            return false;
        }

    } else if (opt->api_key || opt->upstream == NULL) {
        if (!gw_name(p->key, "%s/nginx/%s.key", p->data,
                     opt->upstream ? "upstream" : "runtime"))
        {
            return false;
        }
    }

    if (p->root) {
        return gw_name(p->run, GW_RUN "/%s", hash)
               && gw_name(p->socket, "%s/helper/helper.sock", p->run)
               && gw_name(p->temp, GW_CACHE "/%s", hash)
               && gw_pick_workers(p);
    }

    if (!gw_name(p->run, "%s/nginx/run", p->data)
        || !gw_name(p->temp, "%s/nginx/temp", p->data)
        || !gw_name(p->socket, "%s/helper.sock", p->data))
    {
        return false;
    }

    if (strlen(p->socket) >= sizeof(sun.sun_path)) {
        return gw_name(p->run, "/tmp/sandbox-gateway-%u-%s",
                       (unsigned) geteuid(), hash)
               && gw_name(p->socket, "%s/helper.sock", p->run);
    }

    return true;
}


bool
gw_place_make(gw_place_t *p, const gw_programs_t *prog,
    const gw_options_t *opt)
{
    char         dir[GW_PATH_MAX];
    struct stat  st;

    if (!gw_mkdirs(p->data, p->root ? 0711 : 0700)) {
        return gw_fail("the data directory %s cannot be made: %s; choose"
                       " another with --data.", p->data, strerror(errno));
    }

    if (stat(p->data, &st) == -1 || !S_ISDIR(st.st_mode)
        || faccessat(AT_FDCWD, p->data, W_OK|X_OK, AT_EACCESS) == -1)
    {
        return gw_fail("the data directory %s is not writable; correct its"
                       " owner and mode or choose another with --data.",
                       p->data);
    }

    /* what root writes and runs below it, its owner could exchange */

    if (!gw_trusted(&st)) {
        return gw_fail("the data directory %s is not ours alone to write;"
                       " correct its owner and mode or choose another with"
                       " --data.", p->data);
    }

    if (!gw_place_lock(p)) {
        return false;
    }

    if (p->root) {
        gw_pick_helper(p);
        gw_open_for_helper(p);
    }

    if (!gw_name(dir, "%s/nginx", p->data) || !gw_own_dir(dir, 0, 0, 0700)) {
        return false;
    }

    if (p->root) {
        if (!gw_own_dir(GW_RUN, 0, 0, 0755) || !gw_own_dir(p->run, 0, 0, 0711)
            || !gw_own_dir(GW_CACHE, 0, 0, 0755)
            || !gw_own_dir(p->temp, 0, 0, 0711)
            || !gw_name(dir, "%s/helper", p->run)
            || !gw_own_dir(dir, p->helper_uid, p->helper_gid, 0711)
            || !gw_name(dir, "%s/console", p->run))
        {
            return false;
        }

        if (!gw_copy_tree(prog->console, dir)) {
            return gw_fail("the console's files cannot be copied from %s to"
                           " %s: %s.", prog->console, dir, strerror(errno));
        }

    } else if (!gw_own_dir(p->run, 0, 0, 0700)
               || !gw_own_dir(p->temp, 0, 0, 0700))
    {
        return false;
    }

    if (opt->api_key
        && !gw_write_file(p->key, opt->api_key, strlen(opt->api_key), 0600))
    {
        return gw_fail("%s cannot be written: %s.", p->key, strerror(errno));
    }

    return true;
}


bool
gw_place_check(const gw_place_t *p)
{
    char         dir[GW_PATH_MAX];
    char        *slash;
    struct stat  st;

    (void) gw_name(dir, "%s", p->data);

    while (stat(dir, &st) == -1 && (slash = strrchr(dir, '/')) != NULL) {
        slash[slash == dir] = '\0';

        if (slash == dir) {
            break;
        }
    }

    if (stat(dir, &st) == -1 || !S_ISDIR(st.st_mode)
        || faccessat(AT_FDCWD, dir, W_OK|X_OK, AT_EACCESS) == -1)
    {
        return gw_fail("the data directory %s is not writable; correct its"
                       " owner and mode or choose another with --data.",
                       p->data);
    }

    return true;
}


/* Takes DATA/gateway.lock for as long as the process lives and writes our pid
 * into it. */

static bool
gw_place_lock(const gw_place_t *p)
{
    int      fd;
    char     path[GW_PATH_MAX], pid[16];
    ssize_t  n;

    if (!gw_name(path, "%s/gateway.lock", p->data)) {
        return false;
    }

    fd = open(path, O_RDWR|O_CREAT|O_CLOEXEC|O_NOFOLLOW, 0600);

    if (fd == -1) {
        return gw_fail("%s cannot be opened: %s.", path, strerror(errno));
    }

    if (flock(fd, LOCK_EX|LOCK_NB) == -1) {
        n = read(fd, pid, sizeof(pid) - 1);
        pid[n > 0 ? n : 0] = '\0';
        pid[strcspn(pid, "\n")] = '\0';

        return gw_fail("another sandbox-gateway (process %s) uses the data"
                       " directory %s; end it or choose another with --data.",
                       pid, p->data);
    }

    n = snprintf(pid, sizeof(pid), "%d\n", (int) getpid());

    if (ftruncate(fd, 0) == -1 || pwrite(fd, pid, (size_t) n, 0) != n) {
        return gw_fail("%s cannot be written: %s.", path, strerror(errno));
    }

    /* stays open, and with it the lock, until the process ends */

    return true;
}


static bool
gw_name(char *dst, const char *fmt, ...)
{
    int      n;
    va_list  args;

    va_start(args, fmt);
    n = vsnprintf(dst, GW_PATH_MAX, fmt, args);
    va_end(args);

    if (n < 0 || n >= GW_PATH_MAX) {
        return gw_fail("the path %.60s... is too long.", dst);
    }

    return true;
}


/* Paths end up in nginx.conf between quotes. */

static bool
gw_absolute(char *dst, const char *path, const char *what)
{
    char    cwd[GW_PATH_MAX];
    char   *slash;
    size_t  len;

    for (len = 0; path[len]; len++) {
        if ((unsigned char) path[len] < 0x20 || strchr("\"\\$", path[len])) {
            return gw_fail("%s: the path must not hold quotes, backslashes,"
                           " \"$\" or control characters.", what);
        }
    }

    if (path[0] == '/') {
        if (!gw_name(dst, "%s", path)) {
            return false;
        }

    } else {
        if (getcwd(cwd, sizeof(cwd)) == NULL) {
            return gw_fail("the working directory is gone: %s.",
                           strerror(errno));
        }

        if (cwd[strcspn(cwd, "\"\\$")] != '\0') {
            return gw_fail("%s: the working directory's path holds quotes,"
                           " backslashes or \"$\"; give another one.", what);
        }

        /* "./" and "../" at its beginning go: getcwd() names no links */

        if (strcmp(cwd, "/") == 0) {
            cwd[0] = '\0';
        }

        for ( ;; ) {
            if (strncmp(path, "./", 2) == 0) {
                path += 2;

            } else if (strncmp(path, "../", 3) == 0) {
                path += 3;
                slash = strrchr(cwd, '/');

                if (slash) {
                    *slash = '\0';
                }

            } else {
                break;
            }

            path += strspn(path, "/");
        }

        if (!gw_name(dst, "%s/%s", cwd, path)) {
            return false;
        }
    }

    for (len = strlen(dst); len > 1 && dst[len - 1] == '/'; len--) {
        dst[len - 1] = '\0';
    }

    return true;
}


static bool
gw_data_default(char *dst)
{
    const char  *dir;

    if (geteuid() == 0) {
        return gw_name(dst, "/var/lib/sandbox-gateway");
    }

    dir = getenv("XDG_STATE_HOME");

    if (dir && dir[0] == '/') {
        return gw_name(dst, "%s/sandbox-gateway", dir);
    }

    dir = getenv("HOME");

    if (dir == NULL || dir[0] != '/') {
        return gw_fail("there is no home directory to keep data in; name one"
                       " with --data.");
    }

    return gw_name(dst, "%s/.local/state/sandbox-gateway", dir);
}


static bool
gw_pick_workers(gw_place_t *p)
{
    struct group   *gr;
    struct passwd  *pw;
    const char    **name;

    for (name = gw_worker_users; *name; name++) {
        pw = getpwnam(*name);

        if (pw == NULL) {
            continue;
        }

        p->worker_user = *name;
        p->worker_uid = pw->pw_uid;
        p->worker_gid = pw->pw_gid;

        gr = getgrgid(pw->pw_gid);
        if (gr == NULL) {
            continue;
        }

        p->worker_group = strdup(gr->gr_name);

        return p->worker_group != NULL;
    }

    return gw_fail("there is none of the users www-data, nginx and nobody for"
                   " nginx's workers; make one.");
}


/*
 * The helper's user must not be the workers': only then are history and keys
 * out of reach of what faces the network.  A history that is there already
 * stays with its owner.
 */

static void
gw_pick_helper(gw_place_t *p)
{
    struct stat      st;
    struct passwd   *pw;
    const char     **name;

    pw = NULL;

    if (stat(p->history, &st) == 0 && st.st_uid != 0
        && st.st_uid != p->worker_uid)
    {
        pw = getpwuid(st.st_uid);
    }

    for (name = gw_helper_users; pw == NULL && *name; name++) {
        pw = getpwnam(*name);
    }

    if (pw == NULL) {
        gw_note("there is no user sandbox-helper, so the helper runs as"
                " root.");
        return;
    }

    p->helper_user = strdup(pw->pw_name);
    p->helper_uid = pw->pw_uid;
    p->helper_gid = pw->pw_gid;
}


/* Can a user get at this?  Asked in a child that has become that user. */

static bool
gw_reach(const char *path, int mode, uid_t uid, gid_t gid)
{
    int    status;
    pid_t  pid;

    pid = fork();

    if (pid == 0) {
        _exit(setgroups(0, NULL) == -1 || setgid(gid) == -1
              || setuid(uid) == -1 || access(path, mode) == -1);
    }

    return pid != -1 && waitpid(pid, &status, 0) == pid && status == 0;
}


/*
 * The helper must be able to pass DATA.  A directory that is root's alone is
 * opened to the helper's group, for passing only.
 */

static void
gw_open_for_helper(gw_place_t *p)
{
    struct stat  st;

    if (p->helper_user == NULL
        || gw_reach(p->data, X_OK, p->helper_uid, p->helper_gid))
    {
        return;
    }

    if (stat(p->data, &st) == 0 && st.st_uid == 0 && !(st.st_mode & 0077)
        && chown(p->data, (uid_t) -1, p->helper_gid) == 0
        && chmod(p->data, (st.st_mode & 0700) | 0010) == 0
        && gw_reach(p->data, X_OK, p->helper_uid, p->helper_gid))
    {
        return;
    }

    gw_note("the user %s cannot reach %s, so the helper runs as root; a data"
            " directory below /var/lib would let it run as %s.",
            p->helper_user, p->data, p->helper_user);

    p->helper_user = NULL;
    p->helper_uid = 0;
    p->helper_gid = 0;
}


/* Makes a directory or takes the one that is there, if it is ours. */

static bool
gw_own_dir(const char *dir, uid_t uid, gid_t gid, mode_t mode)
{
    struct stat  st;

    if (geteuid() != 0) {
        uid = geteuid();
        gid = getegid();
    }

    if (!gw_mkdirs(dir, mode) || lstat(dir, &st) == -1) {
        return gw_fail("%s cannot be made: %s.", dir, strerror(errno));
    }

    if (!S_ISDIR(st.st_mode)
        || (st.st_uid != uid && geteuid() != 0))
    {
        return gw_fail("%s belongs to somebody else; remove it.", dir);
    }

    if ((st.st_uid != uid || st.st_gid != gid) && geteuid() == 0
        && lchown(dir, uid, gid) == -1)
    {
        return gw_fail("%s cannot be given to user %u: %s.", dir,
                       (unsigned) uid, strerror(errno));
    }

    if ((st.st_mode & 07777) != mode && chmod(dir, mode) == -1) {
        return gw_fail("the mode of %s cannot be set: %s.", dir,
                       strerror(errno));
    }

    return true;
}
