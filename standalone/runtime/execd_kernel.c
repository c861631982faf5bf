/* The interpreter of a kernel, and one run in it. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "execd_kernel.h"
#include "utf8.h"


#define RT_TOLD_MAX   (16 * 1024 * 1024)    /* one line of the interpreter */
#define RT_CHUNK_MAX  65536


typedef struct {
    rt_kernel_t  *kernel;
    rt_events_t  *events;
    uint64_t      start_ms;
    char         *code;
    size_t        len;
    sb_buf_t      told;
    char          rest[2][4];       /* a character that is not whole yet */
    size_t        nrest[2];
    bool          failed;
    bool          done;
} rt_cell_t;


int
rt_kernel_start(rt_kernel_t *k)
{
    int          in[2], out[2], err[2], ctl[2], e;
    char        *argv[6];
    char       **env;
    rt_spawn_t   s;
    const char  *name;

    in[0] = in[1] = out[0] = out[1] = -1;
    err[0] = err[1] = ctl[0] = ctl[1] = -1;
    k->pid = -1;
    env = rt_env_make(NULL);

    if (env != NULL && pipe2(in, O_CLOEXEC) == 0
        && pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0
        && pipe2(ctl, O_CLOEXEC) == 0)
    {
        memset(&s, 0, sizeof(s));

        if (k->lang == RT_KERNEL_PYTHON) {
            argv[0] = (char *) (uintptr_t) "python3";
            argv[1] = (char *) (uintptr_t) "-c";
            argv[2] = (char *) (uintptr_t) rt_kernel_python;
            argv[3] = NULL;

        } else {
            s.path = rt_shell(&name);
            argv[0] = (char *) (uintptr_t) name;
            argv[1] = (char *) (uintptr_t) "--noprofile";
            argv[2] = (char *) (uintptr_t) "--norc";
            argv[3] = (char *) (uintptr_t) "-c";
            argv[4] = (char *) (uintptr_t) rt_kernel_bash;
            argv[5] = NULL;
        }

        /* a terminal is what both streams of a bash kernel come from */

        s.argv = argv;
        s.env = env;
        s.cwd = k->cwd;
        s.in = -1;
        s.out = out[1];
        s.err = k->lang == RT_KERNEL_BASH ? out[1] : err[1];
        s.fd3 = in[0];
        s.fd4 = ctl[1];
        k->pid = rt_spawn(&s);
    }

    e = errno;
    rt_env_free(env);
    close(in[0]);
    close(out[1]);
    close(err[1]);
    close(ctl[1]);

    if (k->pid > 0) {
        k->pidfd = (int) syscall(SYS_pidfd_open, k->pid, 0);
        k->in = in[1];
        k->out = out[0];
        k->err = err[0];
        k->ctl = ctl[0];
        fcntl(k->out, F_SETFL, O_NONBLOCK);
        fcntl(k->err, F_SETFL, O_NONBLOCK);
        fcntl(k->ctl, F_SETFL, O_NONBLOCK);
        return 0;
    }

    k->pid = 0;
    close(in[1]);
    close(out[0]);
    close(err[0]);
    close(ctl[0]);
    errno = e;

    return -1;
}


void
rt_kernel_end(rt_kernel_t *k)
{
    if (k->pid == 0) {
        return;
    }

    kill(-k->pid, SIGKILL);
    waitpid(k->pid, NULL, 0);
    k->pid = 0;
    close(k->pidfd);
    close(k->in);
    close(k->out);
    close(k->err);
    close(k->ctl);
}


void
rt_kernel_unref(rt_kernel_t *k)
{
    if (--k->refs == 0) {
        rt_kernel_end(k);
        free(k->cwd);
        free(k);
    }
}


/* Bytes at the end of p that begin a character which is not whole. */

static size_t
rt_cut_character(const char *p, size_t n)
{
    size_t         i, want;
    unsigned char  c;

    for (i = 1; i <= 3 && i <= n; i++) {
        c = (unsigned char) p[n - i];

        if ((c & 0xc0) != 0x80) {
            want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
            return want > i ? i : 0;
        }
    }

    return 0;
}


/* As the kernels give it: with its line ends, a bash's line by line. */

static void
rt_cell_text(rt_cell_t *c, int which, const char *p, size_t n)
{
    size_t       len;
    const char  *lf;

    while (n > 0) {
        lf = c->kernel->lang == RT_KERNEL_BASH ? memchr(p, '\n', n) : NULL;
        len = lf != NULL ? (size_t) (lf - p) + 1 : n;
        rt_events_text(c->events, which ? "stderr" : "stdout",
                       sb_str(p, len));
        p += len;
        n -= len;
    }
}


/* Reads what is there.  false: the end of it. */

static bool
rt_cell_output(rt_cell_t *c, int which)
{
    int      fd;
    char     buf[RT_CHUNK_MAX + 4];
    size_t   have, cut;
    ssize_t  n;

    fd = which ? c->kernel->err : c->kernel->out;

    for ( ;; ) {
        have = c->nrest[which];
        memcpy(buf, c->rest[which], have);
        n = read(fd, buf + have, RT_CHUNK_MAX);

        if (n <= 0) {
            break;
        }

        have += (size_t) n;
        cut = rt_cut_character(buf, have);
        memcpy(c->rest[which], buf + have - cut, cut);
        c->nrest[which] = cut;
        rt_cell_text(c, which, buf, have - cut);
    }

    return n == -1 && errno == EAGAIN;
}


static void
rt_cell_flush(rt_cell_t *c)
{
    int  i;

    for (i = 0; i < 2; i++) {
        rt_cell_output(c, i);
        rt_cell_text(c, i, c->rest[i], c->nrest[i]);
        c->nrest[i] = 0;
    }
}


static void
rt_cell_failed(rt_cell_t *c, sb_str_t error)
{
    c->failed = true;
    rt_events_text(c->events, "status", sb_lit("error"));
    rt_events_json(c->events, "error", "error", error);
}


/* Appends a value as Go writes it. */

static void
rt_go_value(sb_buf_t *b, const sb_jv_t *v)
{
    char            close;
    const sb_jv_t  *m;

    switch (v->kind) {

    case SB_JSON_STRING:
        rt_go_write(b, v->text);
        return;

    case SB_JSON_NULL:
        sb_buf_add(b, "null", 4);
        return;

    case SB_JSON_TRUE:
        sb_buf_add(b, "true", 4);
        return;

    case SB_JSON_FALSE:
        sb_buf_add(b, "false", 5);
        return;

    case SB_JSON_OPEN_OBJECT:
    case SB_JSON_OPEN_ARRAY:
        close = v->kind == SB_JSON_OPEN_OBJECT ? '}' : ']';
        sb_buf_add_c(b, close == '}' ? '{' : '[');

        for (m = v->child; m != NULL; m = m->next) {
            if (m != v->child) {
                sb_buf_add_c(b, ',');
            }

            if (close == '}') {
                rt_go_write(b, m->key);
                sb_buf_add_c(b, ':');
            }

            rt_go_value(b, m);
        }

        sb_buf_add_c(b, close);
        return;

    default:
        sb_buf_add_str(b, v->text);
        return;
    }
}


/* One line of the interpreter.  It is whatever code in there makes of it: what
 * does not fit is passed over. */

static void
rt_cell_told(rt_cell_t *c, sb_str_t line)
{
    char            text[96];
    int64_t         n;
    sb_buf_t        b;
    sb_jdoc_t      *doc;
    const sb_jv_t  *root, *v;

    doc = rt_go_parse_all(line);
    root = doc ? sb_jdoc_root(doc) : NULL;
    memset(&b, 0, sizeof(b));
    b.max = RT_TOLD_MAX * 6;
    rt_cell_flush(c);

    v = sb_jv_get(root, "results");

    if (v != NULL && v->kind == SB_JSON_OPEN_OBJECT) {
        if (sb_jv_get(root, "count") != NULL
            && sb_jv_int(sb_jv_get(root, "count"), &n))
        {
            snprintf(text, sizeof(text), "%lld", (long long) n);
            rt_events_json(c->events, "execution_count", "execution_count",
                           sb_str(text, strlen(text)));
        }

        rt_go_value(&b, v);
        rt_events_json(c->events, "result", "results",
                       sb_str(b.data, b.len));
    }

    v = sb_jv_get(root, "error");

    if (v != NULL && v->kind == SB_JSON_OPEN_OBJECT) {
        b.len = 0;
        rt_go_value(&b, v);
        rt_cell_failed(c, sb_str(b.data, b.len));
    }

    v = sb_jv_get(root, "status");

    if (v != NULL && sb_jv_int(v, &n) && n != 0) {
        snprintf(text, sizeof(text), "{\"ename\":\"\",\"evalue\":\"%lld\","
                 "\"traceback\":[]}", (long long) n);
        rt_cell_failed(c, sb_str(text, strlen(text)));
    }

    c->done = sb_jv_get(root, "done") != NULL;
    sb_buf_free(&b);
    sb_jdoc_free(doc);
}


/* Reads what the interpreter tells.  false: the end of it. */

static bool
rt_cell_control(rt_cell_t *c)
{
    char     buf[4096], *p, *lf;
    size_t   left;
    ssize_t  n;

    while (!c->done && (n = read(c->kernel->ctl, buf, sizeof(buf))) != 0) {
        if (n == -1) {
            return errno == EAGAIN;
        }

        for (p = buf, left = (size_t) n; left > 0 && !c->done; /* void */ ) {
            lf = memchr(p, '\n', left);
            n = lf ? lf - p : (ssize_t) left;

            if (sb_buf_add(&c->told, p, (size_t) n) != SB_OK) {
                return false;
            }

            if (lf != NULL) {
                rt_cell_told(c, sb_str(c->told.data, c->told.len));
                c->told.len = 0;
                n++;
            }

            p += n;
            left -= (size_t) n;
        }
    }

    return c->done;
}


/* Hands the code over.  false: the interpreter is gone. */

static bool
rt_cell_send(rt_cell_t *c)
{
    char     head[32];
    size_t   n;
    ssize_t  w;

    n = c->kernel->lang == RT_KERNEL_PYTHON
        ? (size_t) snprintf(head, sizeof(head), "%zu\n", c->len) : 0;

    if (n > 0 && write(c->kernel->in, head, n) != (ssize_t) n) {
        return false;
    }

    /* bash reads up to the NUL behind it */

    n = c->len + (c->kernel->lang == RT_KERNEL_BASH ? 1 : 0);

    for (head[0] = 0; n > 0; n -= (size_t) w) {
        w = write(c->kernel->in, c->code, n);

        if (w <= 0) {
            return false;
        }

        memmove(c->code, c->code + w, n - (size_t) w);
    }

    return true;
}


static void *
rt_cell_pump(void *data)
{
    bool           alive, out, err;
    int64_t        ms;
    rt_cell_t     *c;
    rt_kernel_t   *k;
    struct pollfd  p[4];

    c = data;
    k = c->kernel;
    alive = rt_cell_send(c);
    out = err = true;

    while (alive && !c->done) {
        p[0].fd = out ? k->out : -1;
        p[1].fd = err ? k->err : -1;
        p[2].fd = k->ctl;
        p[3].fd = k->pidfd;
        p[0].events = p[1].events = p[2].events = p[3].events = POLLIN;

        if (poll(p, 4, -1) == -1) {
            if (errno == EINTR) {
                continue;
            }

            break;
        }

        if (p[0].revents) {
            out = rt_cell_output(c, 0);
        }

        if (p[1].revents) {
            err = rt_cell_output(c, 1);
        }

        alive = (!p[2].revents || rt_cell_control(c)) && !p[3].revents;
    }

    ms = (int64_t) (rt_ms() - c->start_ms);

    if (!c->done) {
        rt_cell_flush(c);

        /* `exit` ends a bash, and the next code has a new one */

        if (k->lang == RT_KERNEL_PYTHON) {
            rt_cell_failed(c, sb_lit("{\"ename\":\"DeadKernelError\","
                                     "\"evalue\":\"Kernel died\","
                                     "\"traceback\":[]}"));
        }
    }

    rt_events_complete(c->events, ms > 0 ? ms : 1);

    pthread_mutex_lock(&rt_kernels_lock);

    if (!c->done) {
        rt_kernel_end(k);
    }

    k->busy = false;
    rt_kernel_unref(k);
    pthread_mutex_unlock(&rt_kernels_lock);

    rt_events_close(c->events);
    rt_events_release(c->events);
    sb_buf_free(&c->told);
    free(c->code);
    free(c);

    return NULL;
}


void
rt_kernel_run(rt_req_t *r, rt_kernel_t *k, sb_str_t code)
{
    rt_cell_t    *c;
    rt_events_t  *e;

    e = rt_events_new(r, 0);
    c = calloc(1, sizeof(rt_cell_t));

    if (e == NULL || c == NULL
        || (c->code = calloc(1, code.len + 1)) == NULL)
    {
        abort();
    }

    memcpy(c->code, code.data, code.len);
    c->len = code.len;
    c->kernel = k;
    c->events = e;
    c->start_ms = rt_ms();
    c->told.max = RT_TOLD_MAX;

    rt_events_text(e, "init", sb_str(k->id, 36));

    if (!rt_thread(rt_cell_pump, c)) {
        abort();
    }

    rt_events_reply(r, e);
}
