#include "log.h"

#include "id.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


static int              log_fd = STDERR_FILENO;
static char            *log_path;
static pthread_mutex_t  log_lock = PTHREAD_MUTEX_INITIALIZER;


bool
log_open(const char *path)
{
    int    fd;
    char  *copy;

    if (path == NULL) {
        return true;
    }

    copy = strdup(path);
    if (copy == NULL) {
        return false;
    }

    fd = open(path, O_WRONLY|O_APPEND|O_CREAT|O_CLOEXEC, 0640);
    if (fd == -1) {
        free(copy);
        return false;
    }

    pthread_mutex_lock(&log_lock);

    if (log_fd != STDERR_FILENO) {
        close(log_fd);
    }

    free(log_path);
    log_path = copy;
    log_fd = fd;

    pthread_mutex_unlock(&log_lock);

    return true;
}


void
log_reopen(void)
{
    char  *path;

    pthread_mutex_lock(&log_lock);
    path = log_path ? strdup(log_path) : NULL;
    pthread_mutex_unlock(&log_lock);

    if (path == NULL) {
        return;
    }

    if (!log_open(path)) {
        log_line(LOG_WARN, "cannot open the log \"%s\" again, keeping the old "
                 "one: %s", path, strerror(errno));
    }

    free(path);
}


void
log_line(log_level_e level, const char *fmt, ...)
{
    int           n, m;
    char          line[1024], now[SB_TIME_LEN + 1];
    size_t        len, i;
    va_list       args;

    static const char  *names[] = { "info", "warn", "error" };

    sb_time_text(now, sb_now_us());

    n = snprintf(line, sizeof(line), "%s [%s] %d: ", now, names[level],
                 (int) getpid());

    va_start(args, fmt);
    m = vsnprintf(line + n, sizeof(line) - (size_t) n - 1, fmt, args);
    va_end(args);

    if (m < 0) {
        return;
    }

    len = (size_t) n + (size_t) m;

    if (len > sizeof(line) - 2) {
        len = sizeof(line) - 2;
    }

    /* names and paths in a line come from others: one event, one line */
    for (i = (size_t) n; i < len; i++) {
        if ((unsigned char) line[i] < 0x20 || line[i] == 0x7f) {
            line[i] = '?';
        }
    }

    line[len++] = '\n';

    pthread_mutex_lock(&log_lock);

    if (write(log_fd, line, len) == -1) {
        /* nowhere left to say it */
    }

    pthread_mutex_unlock(&log_lock);
}


bool
log_due(log_limit_t *l, unsigned seconds, uint64_t *suppressed)
{
    bool      due;
    uint64_t  now;

    now = sb_now_us();

    pthread_mutex_lock(&log_lock);

    due = (now >= l->next);

    if (due) {
        *suppressed = l->suppressed;
        l->suppressed = 0;
        l->next = now + (uint64_t) seconds * 1000000;

    } else {
        l->suppressed++;
    }

    pthread_mutex_unlock(&log_lock);

    return due;
}
