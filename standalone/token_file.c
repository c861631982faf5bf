/* The token file: opened, read, and who counts what was written. */

#include "token_file.h"
#include "digest.h"
#include "files.h"
#include "gateway.h"
#include "id.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define GW_TOKENS_MAX  (4 * 1024 * 1024)


/* A token whose id the caller has chosen. */

void
gw_token_named(sb_token_t *t, const char *id, char *text)
{
    int      n;
    uint8_t  secret[32];

    sb_random(secret, sizeof(secret));

    n = snprintf(text, SB_TOKEN_TEXT_MAX, "sbx_%s_", id);
    (void) sb_b64url(text + n, secret, sizeof(secret));

    strcpy(t->id, id);
    sb_sha256(t->hash, sb_str(text, strlen(text)));
}


int
gw_tokens_there(const char *path)
{
    struct stat  st;

    if (stat(path, &st) == 0) {
        return !S_ISREG(st.st_mode) || st.st_size > 0;
    }

    return errno == ENOENT ? 0 : -1;
}


int
gw_tokens_open(const char *path, bool make)
{
    int          fd;
    struct stat  a, b;

    for ( ;; ) {
        fd = open(path, O_RDWR|O_APPEND|O_CLOEXEC|(make ? O_CREAT : 0), 0600);

        if (fd == -1) {
            gw_fail("%s cannot be opened: %s%s.", path, strerror(errno),
                    errno != ENOENT ? ""
                    : make ? "; make its directory first"
                    : "; name its directory with --data");
            return -1;
        }

        if (flock(fd, LOCK_EX) == -1) {
            gw_fail("%s cannot be locked: %s.", path, strerror(errno));
            close(fd);
            return -1;
        }

        /* another one may have replaced it while we waited */

        if (fstat(fd, &a) == 0 && stat(path, &b) == 0
            && a.st_ino == b.st_ino && a.st_dev == b.st_dev)
        {
            return fd;
        }

        close(fd);
    }
}


char *
gw_tokens_load(const char *path, sb_tokens_t *t, size_t *len)
{
    char        *text;
    unsigned     line;
    const char  *why;

    text = gw_read_file(path, GW_TOKENS_MAX, len);

    if (text == NULL) {
        gw_fail("%s cannot be read: %s%s.", path, strerror(errno),
                errno == ENOENT ? "; name its directory with --data" : "");
        return NULL;
    }

    why = "";
    line = 0;
    memset(t, 0, sizeof(*t));

    if (sb_tokens_parse(t, sb_str(text, *len), &line, &why) != SB_OK) {
        gw_fail("%s line %u: %s.", path, line, why);
        free(text);
        return NULL;
    }

    return text;
}


void
gw_token_share(const gw_t *g)
{
    int  fd;

    if (g->place.helper_user == NULL || g->opt.config) {
        return;
    }

    fd = open(g->place.tokens, O_RDONLY|O_CLOEXEC|O_NOFOLLOW);

    if (fd == -1
        || fchown(fd, g->place.helper_uid, g->place.helper_gid) == -1)
    {
        gw_note("%s cannot be given to the user %s: %s; the console will not"
                " make tokens.", g->place.tokens, g->place.helper_user,
                strerror(errno));
    }

    if (fd != -1) {
        close(fd);
    }
}


/* nginx reads the file when it starts and when it reloads.  Which nginx that is
 * we know if a gateway of ours holds the lock beside it. */

void
gw_token_hint(const char *path)
{
    int          fd;
    char         lock[GW_PATH_MAX + 16], pid[16];
    size_t       len;
    ssize_t      n;
    unsigned     n_pid;
    const char  *slash;

    slash = strrchr(path, '/');
    len = slash ? (size_t) (slash - path) + 1 : 0;

    snprintf(lock, sizeof(lock), "%.*sgateway.lock", (int) len, path);
    fd = open(lock, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        gw_note("%s is written; nginx counts it after its next reload"
                " (nginx -s reload).", path);
        return;
    }

    if (flock(fd, LOCK_SH|LOCK_NB) == -1) {
        n = read(fd, pid, sizeof(pid) - 1);
        pid[n > 0 ? n : 0] = '\0';
        pid[strcspn(pid, "\n")] = '\0';

        if (gw_number(pid, 2, INT_MAX, &n_pid)
            && kill((pid_t) n_pid, SIGHUP) == 0)
        {
            gw_note("%s is written; the running gateway reads it now.", path);

        } else {
            gw_note("%s is written; the running gateway counts it after kill"
                    " -HUP %s.", path, pid);
        }
    }

    close(fd);
}
