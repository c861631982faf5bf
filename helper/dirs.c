#include "dirs.h"

#include "log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>


#define DIRS_DEPTH  4       /* of what is handed to another user */


static bool
dirs_why(char *why, size_t size, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(why, size, fmt, args);
    va_end(args);

    return false;
}


/* Hands a directory of an earlier start as root to the user, links left as
 * they are. */
static void
dirs_chown_below(int fd, const options_t *o, unsigned depth)
{
    int             sub;
    DIR            *dir;
    struct stat     st;
    struct dirent  *e;

    sub = openat(fd, ".", O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    if (sub == -1) {
        return;
    }

    dir = fdopendir(sub);
    if (dir == NULL) {
        close(sub);
        return;
    }

    while ((e = readdir(dir)) != NULL) {

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0
            || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == -1)
        {
            continue;
        }

        if (fchownat(fd, e->d_name, o->uid, o->gid, AT_SYMLINK_NOFOLLOW)
            == -1)
        {
            log_line(LOG_WARN, "cannot give \"%s\" to %s: %s", e->d_name,
                     o->user, strerror(errno));
        }

        if (S_ISDIR(st.st_mode) && depth) {
            sub = openat(fd, e->d_name,
                         O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC);

            if (sub != -1) {
                dirs_chown_below(sub, o, depth - 1);
                close(sub);
            }
        }
    }

    closedir(dir);
}


/* Opens a directory of ours, made when it is missing. */
static bool
dirs_one(int at, const char *path, const char *shown, const options_t *o,
    int *fd, char *why, size_t size)
{
    struct stat  st;

    if (mkdirat(at, path, 0750) == -1 && errno != EEXIST) {
        return dirs_why(why, size, "cannot make the directory \"%s\": %s",
                        shown, strerror(errno));
    }

    *fd = openat(at, path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (*fd == -1 || fstat(*fd, &st) == -1) {
        return dirs_why(why, size, "cannot open the directory \"%s\": %s",
                        shown, strerror(errno));
    }

    if (o->user && geteuid() == 0 && st.st_uid != o->uid) {

        if (fchown(*fd, o->uid, o->gid) == -1) {
            return dirs_why(why, size, "cannot give the directory \"%s\" to "
                            "%s: %s", shown, o->user, strerror(errno));
        }

        dirs_chown_below(*fd, o, DIRS_DEPTH);
    }

    if (!o->user && faccessat(*fd, ".", W_OK|X_OK, AT_EACCESS) == -1) {
        return dirs_why(why, size, "the directory \"%s\" is not writable: %s",
                        shown, strerror(errno));
    }

    return true;
}


static bool
dirs_lock(int dirfd, const char *shown, const options_t *o, int *lock,
    char *why, size_t size)
{
    int      n;
    char     pid[32];
    ssize_t  len;

    *lock = openat(dirfd, ".lock", O_RDWR|O_CREAT|O_CLOEXEC|O_NOFOLLOW, 0640);

    if (*lock == -1) {
        return dirs_why(why, size, "cannot make the lock \"%s/.lock\": %s",
                        shown, strerror(errno));
    }

    if (flock(*lock, LOCK_EX|LOCK_NB) == -1) {

        if (errno != EWOULDBLOCK) {
            return dirs_why(why, size, "cannot lock \"%s/.lock\": %s", shown,
                            strerror(errno));
        }

        len = pread(*lock, pid, sizeof(pid) - 1, 0);
        pid[len > 0 ? len : 0] = '\0';
        pid[strcspn(pid, "\n")] = '\0';

        return dirs_why(why, size, "\"%s\" is in use by another "
                        "sandbox-helper (process %s): stop that one or choose "
                        "other directories", shown, pid[0] ? pid : "unknown");
    }

    n = snprintf(pid, sizeof(pid), "%d\n", (int) getpid());

    if (ftruncate(*lock, 0) == -1 || pwrite(*lock, pid, (size_t) n, 0) != n) {
        log_line(LOG_WARN, "cannot write our process number into \"%s/.lock\"",
                 shown);
    }

    if (o->user && geteuid() == 0
        && fchown(*lock, o->uid, o->gid) == -1)
    {
        log_line(LOG_WARN, "cannot give \"%s/.lock\" to %s: %s", shown,
                 o->user, strerror(errno));
    }

    return true;
}


static bool
dirs_listen(dirs_t *d, const options_t *o, char *why, size_t size)
{
    int                 n;
    mode_t              mask;
    struct stat         st;
    struct sockaddr_un  sun;

    n = o->socket ? snprintf(d->socket, sizeof(d->socket), "%s", o->socket)
                  : snprintf(d->socket, sizeof(d->socket), "%s/helper.sock",
                             o->data);

    if (n < 0 || (size_t) n >= sizeof(sun.sun_path)) {
        d->socket[0] = '\0';
        return dirs_why(why, size, "the path of the socket is longer than %d "
                        "bytes: give a shorter --socket",
                        (int) sizeof(sun.sun_path) - 1);
    }

    memset(&sun, 0, sizeof(sun));
    sun.sun_family = AF_UNIX;
    (void) strcpy(sun.sun_path, d->socket);

    /* we hold the locks: a socket left there is nobody's */
    if (lstat(d->socket, &st) == 0) {
        if (!S_ISSOCK(st.st_mode)) {
            n = dirs_why(why, size, "\"%s\" is in the way of the socket: "
                         "remove it or choose another --socket", d->socket);
            d->socket[0] = '\0';
            return n;
        }

        (void) unlink(d->socket);
    }

    d->listen = socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK, 0);

    if (d->listen == -1) {
        return dirs_why(why, size, "cannot make a socket: %s",
                        strerror(errno));
    }

    /* nobody connects before it has its own mode */
    mask = umask(0777);
    n = bind(d->listen, (struct sockaddr *) &sun, sizeof(sun));
    (void) umask(mask);

    if (n == -1) {
        n = errno;
        dirs_why(why, size, "cannot listen on \"%s\": %s", d->socket,
                 strerror(n));
        d->socket[0] = '\0';
        return false;
    }

    if ((o->user || o->has_group)
        && lchown(d->socket, o->user ? o->uid : (uid_t) -1,
                  o->has_group ? o->group : o->user ? o->gid : (gid_t) -1)
           == -1)
    {
        return dirs_why(why, size, "cannot set the owner of \"%s\": %s",
                        d->socket, strerror(errno));
    }

    if (chmod(d->socket, o->socket_mode) == -1
        || listen(d->listen, 511) == -1)
    {
        return dirs_why(why, size, "cannot listen on \"%s\": %s", d->socket,
                        strerror(errno));
    }

    return true;
}


static bool
dirs_drop(dirs_t *d, const options_t *o, char *why, size_t size)
{
    if (o->user == NULL || (geteuid() == o->uid && geteuid() != 0)) {
        return true;
    }

    if (geteuid() != 0) {
        return dirs_why(why, size, "--user %s: only root can become another "
                        "user", o->user);
    }

    if (setgroups(0, NULL) == -1 || setgid(o->gid) == -1
        || setuid(o->uid) == -1
        || (o->uid != 0 && setuid(0) != -1))
    {
        return dirs_why(why, size, "cannot become the user %s: %s", o->user,
                        strerror(errno));
    }

    (void) snprintf(d->history_base, sizeof(d->history_base),
                    "/proc/self/fd/%d", d->history);
    (void) snprintf(d->index_base, sizeof(d->index_base),
                    "/proc/self/fd/%d", d->index);
    d->plain = true;

    return true;
}


/* Who is to write into a file that we hold finds us there. */
static void
dirs_tell(dirs_t *d)
{
    int   n;
    char  text[256], path[4096];

    if (realpath(d->socket, path) == NULL) {
        return;
    }

    n = snprintf(text, sizeof(text), "%d\n%s\n", (int) getpid(), path);

    if (n < 0 || (size_t) n >= sizeof(text)
        || pwrite(d->history_lock, text, (size_t) n, 0) != n)
    {
        log_line(LOG_WARN, "cannot note the socket in the lock of the history "
                 "files");
    }
}


bool
dirs_open(dirs_t *d, const options_t *o, char *why, size_t size)
{
    int   data;
    bool  ok;
    char  history[4096];

    memset(d, 0, sizeof(dirs_t));
    d->journal = -1;
    d->history = -1;
    d->keys = -1;
    d->index = -1;
    d->journal_lock = -1;
    d->history_lock = -1;
    d->listen = -1;

    if (mkdir(o->data, 0750) == -1 && errno != EEXIST) {
        return dirs_why(why, size, "cannot make the data directory \"%s\": %s",
                        o->data, strerror(errno));
    }

    data = open(o->data, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (data == -1) {
        return dirs_why(why, size, "cannot open the data directory \"%s\": %s",
                        o->data, strerror(errno));
    }

    if (o->history) {
        (void) snprintf(history, sizeof(history), "%s", o->history);
    } else {
        (void) snprintf(history, sizeof(history), "%s/history", o->data);
    }

    ok = dirs_one(data, "journal", "journal", o, &d->journal, why, size)
         && dirs_one(data, "keys", "keys", o, &d->keys, why, size)
         && dirs_one(data, "index", "index", o, &d->index, why, size)
         && dirs_one(AT_FDCWD, history, history, o, &d->history, why, size)
         && dirs_lock(d->journal, o->data, o, &d->journal_lock, why, size)
         && dirs_lock(d->history, history, o, &d->history_lock, why, size);

    close(data);

    if (!ok) {
        return false;
    }

    (void) snprintf(d->index_base, sizeof(d->index_base), "%s/index", o->data);

    if (realpath(history, d->history_base) == NULL) {
        return dirs_why(why, size, "cannot resolve \"%s\": %s", history,
                        strerror(errno));
    }

    if (!dirs_listen(d, o, why, size)) {
        return false;
    }

    dirs_tell(d);

    return dirs_drop(d, o, why, size);
}


void
dirs_close(dirs_t *d)
{
    int       fds[] = { d->listen, d->journal, d->history, d->keys, d->index,
                        d->journal_lock, d->history_lock };
    unsigned  i;

    if (d->socket[0]) {
        /* out of our reach after privileges were dropped: stays, harmless */
        (void) unlink(d->socket);
    }

    for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        if (fds[i] != -1) {
            close(fds[i]);
        }
    }
}
