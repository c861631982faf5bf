#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "execd_session.h"


#define RT_SESSIONS_MAX  1024


pthread_mutex_t          rt_sessions_lock = PTHREAD_MUTEX_INITIALIZER;

static rt_session_t     *rt_sessions;
static unsigned          rt_nsessions;


void
rt_session_unref(rt_session_t *s)
{
    if (--s->refs == 0) {
        rt_env_free(s->env);
        free(s->cwd);
        free(s);
    }
}


static rt_session_t **
rt_session_find(const char *id)
{
    rt_session_t  **p;

    for (p = &rt_sessions; *p != NULL; p = &(*p)->next) {
        if (strcmp((*p)->id, id) == 0) {
            return p;
        }
    }

    return NULL;
}


void
rt_session_create(rt_req_t *r)
{
    bool           empty, full;
    char          *cwd;
    sb_buf_t       b;
    sb_str_t       text;
    sb_jdoc_t     *doc;
    rt_session_t  *s;

    text = sb_lit("");
    doc = rt_go_parse(sb_str(r->body.data, r->body.len), &empty);

    if ((doc == NULL && !empty)
        || (doc != NULL && ((sb_jdoc_root(doc)->kind != SB_JSON_OPEN_OBJECT
                             && sb_jdoc_root(doc)->kind != SB_JSON_NULL)
            || rt_go_str(sb_jdoc_root(doc), "cwd", &text) < 0)))
    {
        sb_jdoc_free(doc);
        rt_fail(r, 400, "INVALID_REQUEST_BODY",
                "the body must be a JSON object with a string cwd");
        return;
    }

    cwd = text.len ? rt_expand(text, false) : NULL;

    if (text.len && (cwd == NULL || rt_mkdirs(cwd, 0777) == -1)) {
        rt_fail(r, 500, "RUNTIME_ERROR", "cwd %s cannot be used: %s",
                text.data, strerror(errno));
        sb_jdoc_free(doc);
        free(cwd);
        return;
    }

    sb_jdoc_free(doc);
    s = calloc(1, sizeof(rt_session_t));

    if (s == NULL) {
        abort();
    }

    rt_uuid4(s->id);
    s->cwd = cwd;
    s->refs = 1;

    pthread_mutex_lock(&rt_sessions_lock);
    full = rt_nsessions == RT_SESSIONS_MAX;

    if (!full) {
        s->next = rt_sessions;
        rt_sessions = s;
        rt_nsessions++;
    }

    pthread_mutex_unlock(&rt_sessions_lock);

    if (full) {
        rt_session_unref(s);
        rt_fail(r, 500, "RUNTIME_ERROR", "there are %d sessions already: "
                "delete some first", RT_SESSIONS_MAX);
        return;
    }

    memset(&b, 0, sizeof(b));
    b.max = 128;
    sb_buf_printf(&b, "{\"session_id\":\"%s\"}", s->id);
    rt_json(r, 200, &b);
}


void
rt_session_delete(rt_req_t *r, const char *id)
{
    rt_session_t  *s, **p;

    pthread_mutex_lock(&rt_sessions_lock);
    p = rt_session_find(id);

    if (p != NULL) {
        s = *p;
        *p = s->next;
        rt_nsessions--;
        s->deleted = true;

        if (s->pid != 0) {
            kill(-s->pid, SIGKILL);
        }

        rt_session_unref(s);
    }

    pthread_mutex_unlock(&rt_sessions_lock);

    if (p == NULL) {
        rt_fail(r, 404, "CONTEXT_NOT_FOUND", "no session has the id %s", id);

    } else {
        rt_ok(r);
    }
}


static int
rt_session_script(sb_str_t command)
{
    int              fd;
    static const char  tail[] =
        "\n{ __execd_code=$?; builtin printf '%s\\0' \"$PWD\"; "
        "command -p env -0; } >&198\n"
        "builtin exit $__execd_code\n";

    fd = memfd_create("script", MFD_CLOEXEC);

    if (fd != -1
        && (write(fd, command.data, command.len) != (ssize_t) command.len
            || write(fd, tail, sizeof(tail) - 1)
               != (ssize_t) sizeof(tail) - 1
            || lseek(fd, 0, SEEK_SET) == -1))
    {
        close(fd);
        fd = -1;
    }

    return fd;
}


/* Starts bash for one run; -1 with errno. */

static int
rt_session_start(rt_session_run_t *run, const char *cwd, char **env,
    sb_str_t command)
{
    int         script, out[2], e;
    char       *argv[5];
    rt_spawn_t  s;
    const char *name;

    script = rt_session_script(command);
    run->state = memfd_create("state", MFD_CLOEXEC);
    out[0] = out[1] = -1;

    if (script == -1 || run->state == -1 || pipe2(out, O_CLOEXEC) == -1) {
        e = errno;
        close(script);
        close(run->state);
        errno = e;
        return -1;
    }

    memset(&s, 0, sizeof(s));
    s.path = rt_shell(&name);
    argv[0] = (char *) (uintptr_t) name;
    argv[1] = (char *) (uintptr_t) "--noprofile";
    argv[2] = (char *) (uintptr_t) "--norc";
    argv[3] = (char *) (uintptr_t) "/dev/fd/197";
    argv[4] = NULL;

    s.argv = argv;
    s.env = env;
    s.cwd = cwd;
    s.in = -1;
    s.out = s.err = out[1];
    s.fd3 = script;
    s.fd4 = run->state;

    run->pid = rt_spawn(&s);
    e = errno;
    run->pidfd = run->pid == -1
                 ? -1 : (int) syscall(SYS_pidfd_open, run->pid, 0);

    close(script);
    close(out[1]);

    if (run->pid == -1) {
        close(out[0]);
        close(run->state);
        errno = e;
        return -1;
    }

    fcntl(out[0], F_SETFL, O_NONBLOCK);
    run->out = out[0];

    return 0;
}


static void
rt_session_run_in(rt_req_t *r, rt_session_t *s, sb_str_t command,
    sb_str_t cwd_text, int64_t timeout_ms)
{
    int                rc, e;
    char              *cwd, **env;
    rt_events_t       *events;
    rt_session_run_t  *run;

    run = calloc(1, sizeof(rt_session_run_t));
    events = rt_events_new(r, 0);

    if (run == NULL || events == NULL) {
        abort();
    }

    pthread_mutex_lock(&rt_sessions_lock);
    env = s->env ? s->env : rt_env_make(NULL);
    cwd = cwd_text.len ? rt_expand(cwd_text, false)
                       : s->cwd ? strdup(s->cwd) : NULL;

    run->session = s;
    run->events = events;
    run->timeout_ms = timeout_ms;
    run->start_ms = rt_ms();

    rc = env == NULL ? -1 : rt_session_start(run, cwd, env, command);
    e = errno;

    if (rc == 0) {
        s->pid = run->pid;
    }

    if (env != s->env) {
        rt_env_free(env);
    }

    pthread_mutex_unlock(&rt_sessions_lock);

    if (rc == -1) {
        rt_events_release(events);
        rt_events_release(events);
        pthread_mutex_lock(&rt_sessions_lock);
        rt_session_unref(s);
        pthread_mutex_unlock(&rt_sessions_lock);
        free(run);
        rt_fail(r, 500, "RUNTIME_ERROR", "error running in session. bash "
                "did not start in %s: %s", cwd ? cwd : ".", strerror(e));
        free(cwd);
        return;
    }

    free(cwd);
    rt_events_text(events, "init", sb_str(s->id, 36));

    if (!rt_thread(rt_session_pump, run)) {
        abort();
    }

    rt_events_reply(r, events);
}


void
rt_session_run(rt_req_t *r, const char *id)
{
    int64_t         timeout;
    sb_str_t        command, cwd;
    sb_jdoc_t      *doc;
    rt_session_t  **p, *s;
    const sb_jv_t  *root;

    timeout = 0;
    command = cwd = sb_lit("");
    doc = rt_go_parse(sb_str(r->body.data, r->body.len), NULL);
    root = doc ? sb_jdoc_root(doc) : NULL;

    if (root == NULL || root->kind != SB_JSON_OPEN_OBJECT
        || rt_go_str(root, "command", &command) < 0
        || rt_go_str(root, "cwd", &cwd) < 0
        || rt_go_int(root, "timeout", &timeout) < 0
        || timeout < 0 || command.len == 0)
    {
        sb_jdoc_free(doc);
        rt_fail(r, 400, "INVALID_REQUEST_BODY", "the body must be a JSON "
                "object: command (not empty), cwd, timeout in milliseconds");
        return;
    }

    if (cwd.len > 0 && !rt_is_dir(cwd)) {
        sb_jdoc_free(doc);
        rt_fail(r, 400, "INVALID_REQUEST_BODY",
                "invalid request: cwd is not a directory");
        return;
    }

    pthread_mutex_lock(&rt_sessions_lock);
    p = rt_session_find(id);
    s = p ? *p : NULL;

    if (s != NULL) {
        s->refs++;
    }

    pthread_mutex_unlock(&rt_sessions_lock);

    if (s == NULL) {
        rt_fail(r, 500, "RUNTIME_ERROR",
                "error running in session. context not found");

    } else {
        rt_session_run_in(r, s, command, cwd, timeout);
    }

    sb_jdoc_free(doc);
}
