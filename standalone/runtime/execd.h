/*
 * The execd side: what runs inside a sandbox and answers on its port
 * (reference/opensandbox-api.md 3 to 5).  Handlers answer their request and
 * return; state is per process, one process per sandbox.
 */

#ifndef RT_EXECD_H_INCLUDED
#define RT_EXECD_H_INCLUDED

#include "gojson.h"
#include "http.h"

typedef struct {
    int           listen_fd;
    uint16_t      port;             /* of listen_fd */
    int           ready_fd;         /* one byte when serving; -1: none */
    uint64_t      grace_ms;         /* before the last chunk of /command */
    bool          init;             /* reap orphans: no pid namespace of ours */
    bool          no_kernels;       /* as an execd without Jupyter */
    char        **entrypoint;       /* argv, or NULL */
} rt_execd_conf_t;

extern rt_execd_conf_t  rt_execd;

/* Serves until the process is killed. */
int rt_execd_main(const rt_execd_conf_t *conf);

/* execd's port as the proxy knows it (for nesting). */
#define RT_EXECD_PORT  44772

/* --- answers --- */

/* Longer answers of Go's server have no length unless they were given one. */
#define RT_GO_BUFFER  2048

/* 200 without body. */
void rt_ok(rt_req_t *r);
/* An answer whose headers are set; takes b's memory.  As Go does, what is
 * longer than 2048 bytes goes out in a chunk, without a length. */
void rt_send(rt_req_t *r, unsigned status, sb_buf_t *b);
/* JSON; takes b's memory. */
void rt_json(rt_req_t *r, unsigned status, sb_buf_t *b);
/* {"code","message"} */
void rt_fail(rt_req_t *r, unsigned status, const char *code, const char *fmt,
    ...) __attribute__((format(printf, 4, 5)));
/* 404 FILE_NOT_FOUND for ENOENT, else 500 RUNTIME_ERROR. */
void rt_fail_errno(rt_req_t *r, int err, const char *path);
/* text/plain with nosniff, as Go's http.Error */
void rt_fail_text(rt_req_t *r, unsigned status, const char *text);

/* --- paths --- */

/* Expands $VAR, ${VAR} and a leading ~; abs: made absolute and cleaned.
 * malloc'ed; NULL with errno ENOKEY for an unknown variable, EINVAL for a NUL
 * in it. */
char *rt_expand(sb_str_t path, bool abs);
/* A decimal integer as Go's Atoi takes it. */
bool rt_atoi(const char *s, int64_t *out);
/* Whether a path, expanded, is a directory. */
bool rt_is_dir(sb_str_t path);
/* mkdir -p with 0777 and the umask.  0 or -1 with errno. */
int rt_mkdirs(const char *path, mode_t mode);

/* --- files --- */

void rt_files_info(rt_req_t *r);
void rt_files_delete(rt_req_t *r);
void rt_files_mv(rt_req_t *r);
void rt_files_permissions(rt_req_t *r);
void rt_files_replace(rt_req_t *r);
void rt_files_search(rt_req_t *r);
void rt_files_download(rt_req_t *r);
void rt_upload_begin(rt_req_t *r);
void rt_files_upload(rt_req_t *r);
void rt_dirs_list(rt_req_t *r);
void rt_dirs_create(rt_req_t *r);
void rt_dirs_delete(rt_req_t *r);

/* Whether a pattern of names is one; whether a name fits a valid one. */
bool rt_glob_valid(const char *pattern);
bool rt_glob(const char *pattern, const char *name);

/* Appends the FileInfo object of path.  0 or -1 with errno. */
int rt_file_info(sb_buf_t *b, const char *path);

typedef struct {
    sb_str_t  owner;
    sb_str_t  group;
    int64_t   mode;     /* octal digits read as a decimal number; 0: keep */
} rt_perm_t;

/* From a JSON object.  false: a member has the wrong type. */
bool rt_perm_parse(rt_perm_t *p, const sb_jv_t *v);
/* chmod and chown.  0 or -1 with errno, ENOTNAM for an unknown owner or
 * group. */
int rt_perm_apply(const char *path, const rt_perm_t *p);

/* --- processes --- */

/* where a process finds what it needs besides 0, 1 and 2 */
#define RT_SPAWN_FD3  197
#define RT_SPAWN_FD4  198

typedef struct {
    const char *path;           /* NULL: argv[0], looked for in PATH */
    char      **argv;
    char      **env;            /* whole environment */
    const char *cwd;            /* NULL: ours */
    int         in, out, err;   /* descriptors for 0, 1, 2; in -1: /dev/null */
    int         fd3, fd4;       /* for RT_SPAWN_FD3 and _FD4; -1: none */
    bool        tty;            /* new session, `in` is its terminal */
    bool        has_cred;
    uid_t       uid;
    gid_t       gid;
    gid_t      *groups;
    int         ngroups;
} rt_spawn_t;

/* Starts a process as leader of a group of its own.  -1 with errno. */
pid_t rt_spawn(const rt_spawn_t *s);
/* A copy of the environment with further NAME=VALUE entries, which win;
 * free with rt_env_free(). */
char **rt_env_make(char *const *extra);
void rt_env_free(char **env);
/* bash, or sh where there is none; *name: its argv[0]. */
const char *rt_shell(const char **name);
/* Go's words for how a process ended: exit code (-1: by a signal) and, when it
 * is not 0, text such as "exit status 3". */
int rt_exit_text(int status, char *dst, size_t n);

/* --- event streams (4) --- */

typedef struct rt_events_s  rt_events_t;

/* A queue between the producer (a process pump) and the answer to r.  Two
 * owners: each ends with rt_events_release(). */
rt_events_t *rt_events_new(rt_req_t *r, uint64_t grace_ms);
/* Puts an event; waits while the client is slow, drops it when it is gone. */
void rt_events_text(rt_events_t *e, const char *type, sb_str_t text);
void rt_events_error(rt_events_t *e, const char *evalue,
    const char *traceback);
void rt_events_complete(rt_events_t *e, int64_t ms);
/* An event with one member of JSON text. */
void rt_events_json(rt_events_t *e, const char *type, const char *name,
    sb_str_t json);
/* Bytes as they are, not an event. */
void rt_events_raw(rt_events_t *e, sb_str_t text);
/* No more events. */
void rt_events_close(rt_events_t *e);
/* Whether the client has left (does not wait). */
bool rt_events_gone(rt_events_t *e);
void rt_events_release(rt_events_t *e);
/* Answers r with the queue. */
void rt_events_reply(rt_req_t *r, rt_events_t *e);

/* Splits output into lines: at \n and at \r (\r\n is one end); an empty line
 * is given as a line feed. */
typedef struct {
    sb_buf_t  buf;
    bool      cr;
} rt_lines_t;

void rt_lines_feed(rt_lines_t *l, const char *p, size_t n, rt_events_t *e,
    const char *type);
void rt_lines_flush(rt_lines_t *l, rt_events_t *e, const char *type);

/* --- commands, sessions, code --- */

#define RT_GROUPS_MAX  64

/* A parsed request to run something. */
typedef struct {
    sb_str_t     command;
    char        *cwd;
    char       **envs;
    int64_t      timeout_ms;
    bool         background;
    bool         has_cred;
    uid_t        uid;
    gid_t        gid;
    gid_t        groups[RT_GROUPS_MAX];
    int          ngroups;
    uint64_t     grace_ms;
} rt_run_t;

/* Starts the command and answers with its stream; run stays the caller's. */
void rt_command_execute(rt_req_t *r, const rt_run_t *run);
/* Starts a detached thread with a small stack. */
bool rt_thread(void *(*f)(void *), void *data);

void rt_command_run(rt_req_t *r);
void rt_command_interrupt(rt_req_t *r);
void rt_command_status(rt_req_t *r, const char *id);
void rt_command_logs(rt_req_t *r, const char *id);
void rt_code_run(rt_req_t *r);
/* Runs code in the context of this id ("": the standard one of lang). */
void rt_code_in_kernel(rt_req_t *r, sb_str_t lang, const char *id,
    sb_str_t code);
void rt_code_context_create(rt_req_t *r);
void rt_code_contexts(rt_req_t *r);
void rt_code_contexts_delete(rt_req_t *r);
void rt_code_context(rt_req_t *r, const char *id);
void rt_session_create(rt_req_t *r);
void rt_session_run(rt_req_t *r, const char *id);
void rt_session_delete(rt_req_t *r, const char *id);

/* --- the rest --- */

void rt_metrics(rt_req_t *r);
void rt_metrics_watch(rt_req_t *r);
void rt_pty_create(rt_req_t *r);
void rt_pty_status(rt_req_t *r, const char *id);
void rt_pty_delete(rt_req_t *r, const char *id);
void rt_pty_ws(rt_req_t *r, const char *id);

/* Milliseconds of a clock that only goes forward. */
uint64_t rt_ms(void);
/* 32 hex digits / a version 4 uuid; dst gets 33 / 37 bytes. */
void rt_id32(char *dst);
void rt_uuid4(char *dst);

#endif /* RT_EXECD_H_INCLUDED */
