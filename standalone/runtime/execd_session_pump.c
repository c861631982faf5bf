/* One run in a session: its output, its end and what it leaves behind. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "execd_session.h"


#define RT_STATE_MAX  (4 * 1024 * 1024)     /* environment after a run */
#define RT_SLINE_MAX  (16 * 1024 * 1024)


/* Lines end at \n, a \r before it goes, empty ones are not shown: other rules
 * than those of /command.  false: a line is too long. */

static bool
rt_session_lines(rt_session_run_t *run, const char *p, size_t n, bool flush)
{
    const char  *end, *q;

    run->line.max = RT_SLINE_MAX;
    end = p + n;

    while (p < end || flush) {
        q = memchr(p, '\n', (size_t) (end - p));

        if (sb_buf_add(&run->line, p, (size_t) ((q ? q : end) - p))
            != SB_OK)
        {
            return false;
        }

        if (q == NULL && !flush) {
            break;
        }

        if (run->line.len > 0 && run->line.data[run->line.len - 1] == '\r') {
            run->line.len--;
        }

        if (run->line.len > 0) {
            rt_events_text(run->events, "stdout",
                           sb_str(run->line.data, run->line.len));
        }

        run->line.len = 0;
        p = q ? q + 1 : end;

        if (p == end && flush) {
            break;
        }
    }

    return true;
}


/* Takes over what the run left: directory and environment. */

static void
rt_session_keep(rt_session_run_t *run)
{
    char          *text, **env, *p;
    size_t         n, len;
    struct stat    st;
    rt_session_t  *s;

    if (fstat(run->state, &st) == -1 || st.st_size == 0
        || st.st_size > RT_STATE_MAX)
    {
        return;
    }

    len = (size_t) st.st_size;
    text = calloc(1, len + 1);
    env = calloc(len + 1, sizeof(char *));

    if (text == NULL || env == NULL
        || pread(run->state, text, len, 0) != (ssize_t) len
        || text[0] == '\0')
    {
        free(text);
        free(env);
        return;
    }

    n = 0;

    for (p = text + strlen(text) + 1; p < text + len; p += strlen(p) + 1) {
        if (strchr(p, '=') != NULL && strncmp(p, "_=", 2) != 0) {
            env[n] = strdup(p);

            if (env[n] == NULL) {
                break;
            }

            n++;
        }
    }

    pthread_mutex_lock(&rt_sessions_lock);
    s = run->session;
    free(s->cwd);
    s->cwd = text;

    if (n > 0) {
        rt_env_free(s->env);
        s->env = env;
        env = NULL;
    }

    pthread_mutex_unlock(&rt_sessions_lock);
    free(env);
}


static void
rt_session_end(rt_session_run_t *run, int status, bool timed_out,
    bool too_long)
{
    int       code;
    char      text[64], num[16];
    int64_t   ms;
    sb_buf_t  b;

    ms = (int64_t) (rt_ms() - run->start_ms);

    if (timed_out || too_long) {
        memset(&b, 0, sizeof(b));
        b.max = 256;
        sb_buf_printf(&b, "{\"code\":\"RUNTIME_ERROR\",\"message\":\"error "
                          "running in session. ");

        if (timed_out) {
            sb_buf_printf(&b, "timeout after %lldms\"}",
                          (long long) run->timeout_ms);

        } else {
            sb_buf_printf(&b, "a line is longer than %d bytes\"}",
                          RT_SLINE_MAX);
        }

        rt_events_raw(run->events, sb_str(b.data, b.len));
        sb_buf_free(&b);
        return;
    }

    rt_session_keep(run);
    code = rt_exit_text(status, text, sizeof(text));

    if (code != 0) {
        snprintf(num, sizeof(num), "%d", code);
        rt_events_error(run->events, num, text);

    } else {
        rt_events_complete(run->events, ms > 0 ? ms : 1);
    }
}


void *
rt_session_pump(void *data)
{
    int                status;
    bool               timed_out, too_long, killed;
    char               buf[65536];
    ssize_t            n;
    struct pollfd      p[2];
    rt_session_run_t  *run;

    run = data;
    timed_out = too_long = killed = false;

    for ( ;; ) {
        p[0].fd = run->out;
        p[1].fd = run->pidfd;
        p[0].events = p[1].events = POLLIN;
        p[0].revents = p[1].revents = 0;

        if (poll(p, 2, 100) == -1 && errno != EINTR) {
            break;
        }

        if (!killed && run->timeout_ms > 0
            && rt_ms() >= run->start_ms + (uint64_t) run->timeout_ms)
        {
            timed_out = true;
        }

        if (!killed
            && (timed_out || too_long || rt_events_gone(run->events)))
        {
            killed = true;
            kill(-run->pid, SIGKILL);
        }

        if (p[0].revents || p[1].revents) {
            n = run->out == -1 ? 0 : read(run->out, buf, sizeof(buf));

            if (n > 0) {
                if (!too_long
                    && !rt_session_lines(run, buf, (size_t) n, false))
                {
                    too_long = true;
                }

                continue;
            }

            if (n == 0 && run->out != -1) {
                close(run->out);
                run->out = -1;
            }

            if (p[1].revents) {
                break;
            }
        }
    }

    if (!too_long) {
        rt_session_lines(run, "", 0, true);
    }

    pthread_mutex_lock(&rt_sessions_lock);
    waitpid(run->pid, &status, 0);
    run->session->pid = 0;
    pthread_mutex_unlock(&rt_sessions_lock);

    rt_session_end(run, status, timed_out, too_long);
    rt_events_close(run->events);
    rt_events_release(run->events);

    pthread_mutex_lock(&rt_sessions_lock);
    rt_session_unref(run->session);
    pthread_mutex_unlock(&rt_sessions_lock);

    close(run->out);
    close(run->pidfd);
    close(run->state);
    sb_buf_free(&run->line);
    free(run);

    return NULL;
}
