#include "tokens.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>


/* The file, locked and read. */
typedef struct {
    int           fd;
    sb_str_t      text;         /* malloc'd */
    sb_tokens_t   set;
} tokens_t;


static void
tokens_close(tokens_t *t)
{
    sb_tokens_free(&t->set);
    free((char *) t->text.data);

    if (t->fd != -1) {
        close(t->fd);
    }
}


static tokens_rc_e
tokens_fail(const char *path, const char *why)
{
    log_line(LOG_ERROR, "--tokens %s: %s", path, why);

    return TOKENS_FAILED;
}


static tokens_rc_e
tokens_read(tokens_t *t, const char *path)
{
    char         *text;
    off_t         size;
    sb_rc_t       rc;
    ssize_t       n;
    unsigned      line;
    const char   *why;
    struct stat   st, there;

    if (flock(t->fd, LOCK_EX|LOCK_NB) == -1) {
        return errno == EWOULDBLOCK ? TOKENS_BUSY
                                    : tokens_fail(path, strerror(errno));
    }

    if (fstat(t->fd, &st) == -1 || stat(path, &there) == -1) {
        return tokens_fail(path, strerror(errno));
    }

    if (st.st_ino != there.st_ino || st.st_dev != there.st_dev) {
        /* it was just replaced */
        return TOKENS_BUSY;
    }

    size = st.st_size;

    if (!S_ISREG(st.st_mode) || size > TOKENS_FILE_MAX) {
        return tokens_fail(path, "it is no file of at most 4 MiB");
    }

    text = malloc((size_t) size + 1);

    if (text == NULL) {
        return tokens_fail(path, "no memory");
    }

    t->text = sb_str(text, (size_t) size);
    n = pread(t->fd, text, (size_t) size, 0);

    if (n != size) {
        return tokens_fail(path, n == -1 ? strerror(errno)
                                         : "it cannot be read whole");
    }

    rc = sb_tokens_parse(&t->set, t->text, &line, &why);

    if (rc != SB_OK) {
        return tokens_fail(path, rc == SB_ERROR ? why : "no memory");
    }

    return TOKENS_OK;
}


static tokens_rc_e
tokens_open(tokens_t *t, const char *path)
{
    tokens_rc_e  rc;

    memset(t, 0, sizeof(*t));
    t->fd = open(path, O_RDWR|O_CLOEXEC|O_NOCTTY|O_NONBLOCK);

    if (t->fd == -1) {
        return errno == EACCES || errno == EPERM || errno == ENOENT
               || errno == EROFS || errno == ENOTDIR
               ? TOKENS_CLOSED : tokens_fail(path, strerror(errno));
    }

    rc = tokens_read(t, path);

    if (rc != TOKENS_OK) {
        tokens_close(t);
    }

    return rc;
}


/* Appends a line; nothing is left of it when it does not fit. */
static tokens_rc_e
tokens_append(tokens_t *t, const char *path, const sb_buf_t *line)
{
    int      err;
    ssize_t  n;

    n = pwrite(t->fd, line->data, line->len, (off_t) t->text.len);

    if (n == (ssize_t) line->len && fsync(t->fd) == 0) {
        return TOKENS_OK;
    }

    err = n == -1 ? errno : n == (ssize_t) line->len ? EIO : ENOSPC;

    if (ftruncate(t->fd, (off_t) t->text.len) == -1) {
        log_line(LOG_ERROR, "--tokens %s: half a line is at its end; remove it",
                 path);
    }

    return tokens_fail(path, strerror(err));
}


tokens_rc_e
tokens_add(const char *path, const sb_token_t *token, uint64_t now_us)
{
    size_t       len;
    sb_buf_t     b;
    tokens_t     t;
    tokens_rc_e  rc;

    rc = tokens_open(&t, path);

    if (rc != TOKENS_OK) {
        return rc;
    }

    memset(&b, 0, sizeof(b));
    b.max = 8192;

    if (sb_token_line_of(t.text, sb_str(token->id, strlen(token->id)), &len)) {
        rc = TOKENS_TAKEN;

    } else if ((t.text.len && t.text.data[t.text.len - 1] != '\n'
                && sb_buf_add_c(&b, '\n') != SB_OK)
               || sb_token_line(&b, token, now_us) != SB_OK)
    {
        rc = tokens_fail(path, "no memory");

    } else if (t.set.n >= SB_TOKENS_MAX
               || t.text.len + b.len > TOKENS_FILE_MAX)
    {
        rc = TOKENS_FULL;

    } else {
        rc = tokens_append(&t, path, &b);
    }

    sb_buf_free(&b);
    tokens_close(&t);

    return rc;
}


tokens_rc_e
tokens_revoke(const char *path, sb_str_t id, uint64_t now_us,
    sb_token_t *token)
{
    size_t       i, len;
    tokens_t     t;
    const char  *line;
    tokens_rc_e  rc;

    rc = tokens_open(&t, path);

    if (rc != TOKENS_OK) {
        return rc;
    }

    rc = TOKENS_NONE;

    /* also one that is expired */

    for (i = 0; i < t.set.n; i++) {
        if (sb_eq(sb_str(t.set.items[i].id, strlen(t.set.items[i].id)), id)) {
            *token = t.set.items[i];
            rc = sb_token_last_admin(&t.set, token, now_us) ? TOKENS_LAST
                                                            : TOKENS_OK;
        }
    }

    line = rc == TOKENS_OK ? sb_token_line_of(t.text, id, &len) : NULL;

    if (line
        && (pwrite(t.fd, "#", 1, (off_t) (line - t.text.data)) != 1
            || fsync(t.fd) == -1))
    {
        rc = tokens_fail(path, strerror(errno));
    }

    tokens_close(&t);

    return rc;
}
