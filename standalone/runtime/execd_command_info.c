/* Interrupt, status and logs of commands. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "execd_command.h"
#include "execd_kernel.h"
#include "url.h"


void
rt_command_interrupt(rt_req_t *r)
{
    char             *id;
    pid_t             pid;
    bool              done;
    rt_command_t     *c;
    struct timespec   until;

    id = rt_query_get(r->query, "id");

    if (id == NULL || id[0] == '\0') {
        rt_fail(r, 400, "MISSING_QUERY", "missing query parameter 'id'");
        free(id);
        return;
    }

    if (rt_kernel_interrupt(id)) {
        free(id);
        rt_ok(r);
        return;
    }

    pthread_mutex_lock(&rt_commands_lock);

    c = rt_command_find(id);
    pid = c != NULL && c->running ? c->pid : 0;

    if (pid != 0) {
        c->refs++;
        kill(-pid, SIGTERM);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 3;

        while (c->running
               && pthread_cond_timedwait(&rt_commands_cond,
                                         &rt_commands_lock, &until) == 0)
        {
            /* void */
        }

        done = !c->running;

        if (!done && c->pid != 0) {
            kill(-c->pid, SIGKILL);
        }

        rt_command_unref(c);
    }

    pthread_mutex_unlock(&rt_commands_lock);

    if (pid == 0) {
        rt_fail(r, 500, "RUNTIME_ERROR", "no running command has the id %s",
                id);

    } else {
        rt_ok(r);
    }

    free(id);
}


void
rt_command_status(rt_req_t *r, const char *id)
{
    sb_buf_t       b;
    rt_command_t  *c;

    memset(&b, 0, sizeof(b));
    b.max = RT_BODY_MAX * 2;

    pthread_mutex_lock(&rt_commands_lock);

    c = rt_command_find(id);

    if (c == NULL) {
        pthread_mutex_unlock(&rt_commands_lock);
        rt_fail(r, 404, "INVALID_REQUEST_BODY", "command not found: %s", id);
        return;
    }

    sb_buf_printf(&b, "{\"id\":\"%s\",\"content\":", c->id);
    rt_go_write(&b, sb_str(c->content, strlen(c->content)));
    sb_buf_printf(&b, ",\"running\":%s", c->running ? "true" : "false");

    if (!c->running) {
        sb_buf_printf(&b, ",\"exit_code\":%d", c->exit_code);

        if (c->error[0] != '\0') {
            sb_buf_printf(&b, ",\"error\":\"%s\"", c->error);
        }
    }

    sb_buf_printf(&b, ",\"started_at\":");
    rt_go_time(&b, c->started.tv_sec, (uint32_t) c->started.tv_nsec);

    if (!c->running) {
        sb_buf_printf(&b, ",\"finished_at\":");
        rt_go_time(&b, c->finished.tv_sec, (uint32_t) c->finished.tv_nsec);
    }

    sb_buf_add_c(&b, '}');

    pthread_mutex_unlock(&rt_commands_lock);

    rt_json(r, 200, &b);
}


typedef struct {
    int   fd;
    off_t pos;
    off_t end;
} rt_log_t;


static ssize_t
rt_log_read(void *ctx, char *buf, size_t max)
{
    ssize_t    n;
    rt_log_t  *log;

    log = ctx;

    if (log->pos == log->end) {
        return 0;
    }

    n = pread(log->fd, buf, log->end - log->pos < (off_t) max
                            ? (size_t) (log->end - log->pos) : max, log->pos);

    if (n <= 0) {
        return -1;
    }

    log->pos += n;

    return n;
}


static void
rt_log_free(void *ctx)
{
    rt_log_t  *log;

    log = ctx;
    close(log->fd);
    free(log);
}


/* As all answers of Go: with a length as long as they are short. */

static void
rt_log_send(rt_req_t *r, int fd, off_t from, off_t to)
{
    rt_log_t  *log;

    log = to - from > RT_GO_BUFFER ? calloc(1, sizeof(rt_log_t)) : NULL;

    if (log == NULL) {
        rt_reply_fd(r, 200, fd, (uint64_t) from, (uint64_t) (to - from));
        return;
    }

    log->fd = fd;
    log->pos = from;
    log->end = to;
    rt_reply_stream(r, 200, UINT64_MAX, rt_log_read, log, rt_log_free);
}


void
rt_command_logs(rt_req_t *r, const char *id)
{
    int            log;
    char          *s, *end;
    int64_t        cursor;
    struct stat    st;
    rt_command_t  *c;

    s = rt_query_get(r->query, "cursor");
    cursor = 0;

    if (s != NULL) {
        errno = 0;
        cursor = strtoll(s, &end, 10);

        if (errno != 0 || end == s || *end != '\0') {
            cursor = 0;
        }
    }

    free(s);
    log = -1;

    pthread_mutex_lock(&rt_commands_lock);

    c = rt_command_find(id);

    if (c != NULL && c->log != -1) {
        log = dup(c->log);
    }

    pthread_mutex_unlock(&rt_commands_lock);

    if (log == -1 || cursor < 0 || fstat(log, &st) == -1) {
        close(log);
        rt_fail(r, 400, "INVALID_REQUEST_BODY", c == NULL
                ? "command not found: %s"
                : "command %s has no log: only background commands have",
                id);
        return;
    }

    if (cursor > st.st_size) {
        st.st_size = cursor;
    }

    rt_outf(r, "Execd-Commands-Tail-Cursor", "%lld", (long long) st.st_size);
    rt_out(r, "Content-Type", "text/plain; charset=utf-8");
    rt_log_send(r, log, cursor, st.st_size);
}
