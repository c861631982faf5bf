#include "history_remote.h"

#include "frame.h"
#include "history_place.h"
#include "id.h"
#include "json.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>


#define REMOTE_SECONDS  60

typedef struct {
    int    fd;
    char  *in;
    size_t len, cap;
} remote_t;

static const uint8_t  remote_no_op[16];


/* The socket of the helper that holds HISTORY, as HISTORY/.lock names it. */
static bool
remote_socket(const char *file, char socket_path[108], char dir[256])
{
    FILE  *f;
    char   path[PATH_MAX], line[256], *slash;
    bool   ok;

    if (realpath(file, path) == NULL) {
        return false;
    }

    /* HISTORY/DIR/history.sqlite3 */
    slash = strrchr(path, '/');

    if (slash == NULL || slash == path
        || strcmp(slash + 1, HISTORY_FILE) != 0)
    {
        return false;
    }

    *slash = '\0';
    slash = strrchr(path, '/');

    if (slash == NULL || strlen(slash + 1) >= 256
        || (size_t) (slash - path) + 8 >= sizeof(path))
    {
        return false;
    }

    (void) strcpy(dir, slash + 1);
    (void) strcpy(slash, "/.lock");

    f = fopen(path, "re");
    if (f == NULL) {
        return false;
    }

    ok = fgets(line, sizeof(line), f) != NULL
         && fgets(line, sizeof(line), f) != NULL;
    fclose(f);

    if (!ok) {
        return false;
    }

    line[strcspn(line, "\n")] = '\0';

    if (line[0] != '/' || strlen(line) >= 108) {
        return false;
    }

    (void) strcpy(socket_path, line);

    return true;
}


static bool
remote_write(remote_t *r, const char *p, size_t n)
{
    ssize_t  done;

    while (n) {
        done = send(r->fd, p, n, MSG_NOSIGNAL);

        if (done <= 0) {
            return false;
        }

        p += done;
        n -= (size_t) done;
    }

    return true;
}


/* The next frame; its bytes stay until the next call. */
static bool
remote_read(remote_t *r, size_t *used, sb_frame_t *f)
{
    char     *p;
    size_t    need;
    sb_rc_t   rc;
    ssize_t   n;

    if (*used) {
        memmove(r->in, r->in + *used, r->len - *used);
        r->len -= *used;
    }

    *used = 0;

    for ( ;; ) {
        need = SB_FRAME_HEAD;
        rc = r->len ? sb_frame_read(f, r->in, r->len, &need) : SB_AGAIN;

        if (rc == SB_OK) {
            *used = f->length;
            return true;
        }

        if (rc != SB_AGAIN || need > SB_FRAME_MAX) {
            return false;
        }

        if (r->cap < need + 4096) {
            p = realloc(r->in, need + 4096);
            if (p == NULL) {
                return false;
            }

            r->in = p;
            r->cap = need + 4096;
        }

        n = recv(r->fd, r->in + r->len, r->cap - r->len, 0);

        if (n <= 0) {
            return false;
        }

        r->len += (size_t) n;
    }
}


static bool
remote_talk(remote_t *r, const char *mem, size_t n, uint64_t *status,
    sb_buf_t *out)
{
    size_t      used;
    sb_str_t    v;
    sb_frame_t  f;

    used = 0;
    *status = 0;

    if (!remote_write(r, mem, n)) {
        return false;
    }

    while (remote_read(r, &used, &f)) {

        if (f.type != SB_F_ANSWER) {
            continue;       /* WELCOME */
        }

        *status = sb_field_u64(&f, SB_T_HTTP_STATUS, *status);

        if (sb_field_get(&f, SB_T_DATA, &v)
            && sb_buf_add(out, v.data, v.len) != SB_OK)
        {
            return false;
        }

        if (f.flags & SB_FF_LAST) {
            return true;
        }
    }

    return false;
}


/* HELLO and ASK, one behind the other. */
static char *
remote_request(const char *file, const char *dir, int argc, char **argv,
    const sb_buf_t *content, size_t *n)
{
    int                i;
    char              *mem, who[32], id[64];
    size_t             size, len;
    sb_buf_t           body = { .max = SB_FRAME_MAX - 4096 };
    struct stat        st;
    struct passwd     *pw;
    sb_frame_writer_t  w;
    uint64_t           instance;

    if (stat(file, &st) == -1) {
        return NULL;
    }

    pw = getpwuid(getuid());
    (void) snprintf(who, sizeof(who), "%.31s", pw ? pw->pw_name : "");

    if (who[0] == '\0') {
        (void) snprintf(who, sizeof(who), "%u", (unsigned) getuid());
    }

    (void) snprintf(id, sizeof(id), "%llu:%llu",
                    (unsigned long long) st.st_dev,
                    (unsigned long long) st.st_ino);

    (void) sb_buf_add(&body, id, strlen(id) + 1);
    (void) sb_buf_add(&body, dir, strlen(dir) + 1);
    (void) sb_buf_add(&body, who, strlen(who) + 1);

    for (i = 0; i < argc; i++) {
        (void) sb_buf_add(&body, argv[i], strlen(argv[i]) + 1);
    }

    (void) sb_buf_add(&body, "", 1);

    if (content && content->len
        && sb_buf_add(&body, content->data, content->len) != SB_OK)
    {
        sb_buf_free(&body);
        errno = EFBIG;
        return NULL;
    }

    size = body.len + 1024;
    mem = malloc(size);

    if (mem == NULL) {
        sb_buf_free(&body);
        return NULL;
    }

    sb_random(&instance, sizeof(instance));

    sb_frame_begin(&w, mem, size, SB_F_HELLO, 0, 0, remote_no_op, sb_now_us());
    sb_frame_put_u64(&w, SB_T_INSTANCE, instance ? instance : 1);
    sb_frame_put_u64(&w, SB_T_PID, (uint64_t) getpid());
    sb_frame_put(&w, SB_T_ROLE, sb_lit("cli"));
    len = sb_frame_end(&w);

    sb_frame_begin(&w, mem + len, size - len, SB_F_ASK, 0, 1, remote_no_op,
                   sb_now_us());
    sb_frame_put(&w, SB_T_DATA, sb_str(body.data, body.len));
    *n = len + sb_frame_end(&w);

    sb_buf_free(&body);

    return mem;
}


history_remote_e
history_remote(const char *database, int argc, char **argv,
    const sb_buf_t *content, sb_buf_t *out, history_error_t *err)
{
    bool                ok;
    char               *mem, *colon, dir[256];
    size_t              n;
    uint64_t            status;
    remote_t            r;
    struct timeval      tv;
    struct sockaddr_un  sun;

    memset(&sun, 0, sizeof(sun));
    memset(&r, 0, sizeof(r));
    sun.sun_family = AF_UNIX;

    if (!remote_socket(database, sun.sun_path, dir)) {
        return HISTORY_REMOTE_NONE;
    }

    r.fd = socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0);

    if (r.fd == -1 || connect(r.fd, (struct sockaddr *) &sun, sizeof(sun)) == -1)
    {
        ok = errno == ENOENT || errno == ECONNREFUSED;

        if (!ok) {
            history_error(err, "OperationalError", "a sandbox-helper holds "
                          "this file, and %s cannot be reached: %s",
                          sun.sun_path, strerror(errno));
        }

        if (r.fd != -1) {
            close(r.fd);
        }

        return ok ? HISTORY_REMOTE_NONE : HISTORY_REMOTE_FAILED;
    }

    tv.tv_sec = REMOTE_SECONDS;
    tv.tv_usec = 0;
    (void) setsockopt(r.fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));

    mem = remote_request(database, dir, argc, argv, content, &n);

    if (mem == NULL) {
        close(r.fd);
        history_error(err, "OperationalError", errno == EFBIG
                      ? "the file is too large to be sent to the helper: send "
                        "it in parts of less than 2 MiB"
                      : "cannot ask the helper that holds this file");
        return HISTORY_REMOTE_FAILED;
    }

    ok = remote_talk(&r, mem, n, &status, out);
    free(mem);
    free(r.in);
    close(r.fd);

    if (!ok) {
        history_error(err, "OperationalError", "the sandbox-helper that holds "
                      "this file did not do it: it takes this from root and "
                      "its own user only, and only while it runs");
        return HISTORY_REMOTE_FAILED;
    }

    if (status == 200) {
        return HISTORY_REMOTE_OK;
    }

    colon = out->len ? memchr(out->data, '\n', out->len) : NULL;

    if (colon) {
        history_error(err, "HelperError", "%.*s",
                      (int) (out->len - (size_t) (colon - out->data) - 1),
                      colon + 1);
        (void) snprintf(err->type, sizeof(err->type), "%.*s",
                        (int) (colon - out->data), out->data);
    } else {
        history_error(err, "HelperError", "the helper did not say why");
    }

    out->len = 0;

    return HISTORY_REMOTE_FAILED;
}


static bool
remote_file(const char *path, sb_buf_t *content, history_error_t *err)
{
    bool    ok;
    char    chunk[65536];
    FILE   *f;
    size_t  n;

    f = fopen(path, "re");

    if (f == NULL) {
        history_error_errno(err, errno, path);
        return false;
    }

    ok = true;

    while (ok && (n = fread(chunk, 1, sizeof(chunk), f)) > 0) {
        ok = sb_buf_add(content, chunk, n) == SB_OK;
    }

    ok = ok && !ferror(f);
    fclose(f);

    if (!ok) {
        history_error(err, "OperationalError", "%s cannot be read whole: the "
                      "helper takes less than 2 MiB at a time", path);
    }

    return ok;
}


history_remote_e
history_remote_call(const history_command_t *command,
    const history_value_t *values, const char *database, int argc, char **argv,
    history_call_t *call)
{
    char              dir[256], path[108], **all;
    size_t            i;
    sb_buf_t          content = { .max = SB_FRAME_MAX }, out;
    history_remote_e  rc;

    if (!remote_socket(database, path, dir)) {
        return HISTORY_REMOTE_NONE;
    }

    for (i = 0; command->args[i].name; i++) {
        if (values[i].n && strstr(command->args[i].name, "-file")
            && !remote_file(values[i].text[0], &content, &call->err))
        {
            sb_buf_free(&content);
            return HISTORY_REMOTE_FAILED;
        }
    }

    all = calloc((size_t) argc + 1, sizeof(char *));

    if (all == NULL) {
        sb_buf_free(&content);
        history_error(&call->err, "MemoryError", "no memory");
        return HISTORY_REMOTE_FAILED;
    }

    all[0] = (char *) (uintptr_t) command->name;
    memcpy(all + 1, argv, (size_t) argc * sizeof(char *));

    memset(&out, 0, sizeof(out));
    out.max = SB_OUT_MAX;
    rc = history_remote(database, argc + 1, all, &content, &out, &call->err);

    if (rc == HISTORY_REMOTE_OK) {
        sb_out_text(&call->out, "{\"data\":");
        sb_out_raw(&call->out, out.data, out.len);
    }

    free(all);
    sb_buf_free(&out);
    sb_buf_free(&content);

    return rc;
}


/* --- hold, release --------------------------------------------------------- */

/* Does the helper say that the file is held? */
static bool
remote_held(sb_str_t answer)
{
    bool            held;
    sb_jdoc_t      *doc;
    const sb_jv_t  *v;

    doc = sb_jdoc_parse(answer, &(sb_json_limits_t) { 0, answer.len + 1 },
                        NULL);
    v = doc ? sb_jv_get(sb_jdoc_root(doc), "held") : NULL;
    held = v && v->kind == SB_JSON_TRUE;
    sb_jdoc_free(doc);

    return held;
}


static int
remote_hold(const char *name, const char *path, const char *sandbox)
{
    char              *argv[1];
    sb_buf_t           out = { .max = 65536 };
    history_error_t    err;
    history_remote_e   rc;

    argv[0] = (char *) (uintptr_t) name;
    rc = history_remote(path, 1, argv, NULL, &out, &err);

    if (rc == HISTORY_REMOTE_OK) {
        printf("%s: %s\n", sandbox, name[0] == 'h'
               ? "on legal hold, nothing of it is deleted or archived"
               : remote_held(sb_str(out.data, out.len))
               ? "released, but the configuration of the gateway holds it, "
                 "too: nothing of it is deleted or archived"
               : "released, its limits count again");

    } else {
        fprintf(stderr, "sandbox-history %s: %s\n", name,
                rc == HISTORY_REMOTE_NONE
                ? "no sandbox-helper holds this history: start the gateway "
                  "first" : err.message);
    }

    sb_buf_free(&out);

    return rc == HISTORY_REMOTE_OK ? 0 : 1;
}


int
history_hold_run(const char *name, const char *database, const char *data,
    const char *history, int argc, char **argv)
{
    int              status;
    char             path[PATH_MAX];
    history_box_t   *box;
    history_place_t  place;
    history_where_t  where;

    if (database && argc == 0) {
        return remote_hold(name, database, database);
    }

    if (database || argc != 1 || argv[0][0] == '-') {
        fprintf(stderr, "usage: sandbox-history [--data DIR | --history DIR]"
                        " %s SANDBOX\n", name);
        return argc == 1 && strcmp(argv[0], "--help") == 0 ? 0 : 2;
    }

    where.data = data;
    where.history = history;

    if (!history_place_open(&place, &where)) {
        return 1;
    }

    status = 1;
    box = history_place_find(&place, argv[0]);

    if (box) {
        history_place_path(&place, box, path);
        status = remote_hold(name, path, box->id);
    }

    history_place_close(&place);

    return status;
}
