/*
 * sandbox-gateway: one command that writes nginx's configuration and runs
 * nginx with the module, the helper and, without an upstream, the local
 * runtime (design 1, 2).
 *
 * Everything here runs once per start in one thread; texts that live as long
 * as the process are never freed.
 */

#ifndef GATEWAY_H_INCLUDED
#define GATEWAY_H_INCLUDED

#include "sb.h"

#include <sys/types.h>

#define GW_HOSTS_MAX     32
#define GW_HOLDS_MAX     64      /* sandboxes whose history is held, as in the
                                    helper */
#define GW_PATH_MAX      1024
#define GW_CONF_MAX      (64 * 1024)
#define GW_KEY_MAX       4096
#define GW_ADDR_MAX      64

/* Exit codes. */
#define GW_EXIT_OK       0
#define GW_EXIT_FAILED   1
#define GW_EXIT_USAGE    2

typedef struct {
    const char  *upstream;
    const char  *api_key_file;
    const char  *api_key;       /* environment and .env only */
    const char  *listen;
    const char  *public_name;
    const char  *port_listen;   /* of user ports; "off" */
    const char  *port_host;
    const char  *tls_cert;
    const char  *tls_key;
    const char  *data;
    const char  *history;
    const char  *history_ttl;   /* these as the helper reads them */
    const char  *history_size;
    const char  *history_total;
    const char  *history_keep;
    const char  *history_overflow;
    const char  *history_on_delete;
    const char  *contents;
    const char  *fetches;
    const char  *inspections;
    const char  *inspect_seconds;
    const char  *inspect_memory;
    const char  *sync;
    const char  *lag;
    const char  *locks;
    const char  *leases;
    const char  *questions;
    const char  *live;
    const char  *lock_timeout;  /* these as nginx reads them */
    const char  *limits;
    const char  *rate;
    const char  *spool_limit;
    const char  *archives;
    const char  *holds[GW_HOLDS_MAX];
    unsigned     nholds;
    const char  *config;
    const char  *policy;        /* "off" */
    const char  *nginx;         /* environment and .env only */
    const char  *hosts[GW_HOSTS_MAX];
    unsigned     nhosts;
    unsigned     port;          /* 0: not said, until it is known */
    unsigned     workers;       /* 0: as many as cores */
    bool         insecure;
    bool         unconfined;
    bool         print_config;
    bool         check;
    bool         version;
    bool         help;
} gw_options_t;

/* An http or https address in its parts. */
typedef struct {
    bool         tls;
    char         host[256];     /* without brackets */
    char         authority[280]; /* HOST[:PORT] as written, for nginx */
    unsigned     port;
} gw_url_t;

/* Programs and files that belong to this one. */
typedef struct {
    char         self[GW_PATH_MAX];
    char         nginx[GW_PATH_MAX];
    char         module[GW_PATH_MAX];
    char         helper[GW_PATH_MAX];
    char         inspect[GW_PATH_MAX];  /* the helper starts it */
    char         runtime[GW_PATH_MAX];
    char         console[GW_PATH_MAX];
    unsigned     nginx_version;  /* 1022001 for 1.22.1 */
} gw_programs_t;

/* Where this instance keeps its files, and as whom its parts run. */
typedef struct {
    char         data[GW_PATH_MAX];
    char         history[GW_PATH_MAX];
    char         tokens[GW_PATH_MAX];
    char         conf[GW_PATH_MAX];     /* the nginx configuration in use */
    char         policy[GW_PATH_MAX];   /* "": none */
    char         run[GW_PATH_MAX];      /* workers reach it: socket, console */
    char         socket[GW_PATH_MAX];
    char         temp[GW_PATH_MAX];     /* nginx's body and proxy files */
    char         key[GW_PATH_MAX];      /* upstream's API key; "": none */
    char         tls_cert[GW_PATH_MAX]; /* "": no TLS */
    char         tls_key[GW_PATH_MAX];
    bool         root;                  /* we can change users */
    const char  *worker_user;           /* NULL when not root */
    const char  *worker_group;
    uid_t        worker_uid;
    gid_t        worker_gid;
    const char  *helper_user;           /* NULL: the helper runs as we do */
    uid_t        helper_uid;
    gid_t        helper_gid;
} gw_place_t;

typedef struct {
    gw_options_t    opt;
    gw_programs_t   prog;
    gw_place_t      place;
    gw_url_t        upstream;
    char            upstream_url[600];
    char            upstream_servers[600];  /* addresses for nginx; "": the
                                               name of the URL */
    char            helper_key[48];     /* where the helper reads upstream's
                                           key; "": from place.key */
    int             helper_key_fd;
    char            listen_addr[GW_ADDR_MAX];   /* without brackets */
    bool            runtime;            /* started by us: no --upstream */
    bool            loopback;
    char            console_url[600];
    char            ports_addr[GW_ADDR_MAX];    /* listener of user ports */
    unsigned        ports_port;         /* 0: none */
    bool            ports_loopback;
    bool            ports_free;         /* any free port will do */
    char            ports_url[600];
} gw_t;

/* gateway_main.c */

/* "sandbox-gateway: TEXT" on standard error; always false. */
bool gw_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void gw_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* options.c */

/* Flags, then environment, then .env in the working directory; whatever is
 * given earlier in this order counts.  False after one sentence. */
bool gw_options_read(gw_options_t *opt, int argc, char **argv, char **envp);
void gw_options_help(void);

/* A whole number within bounds, nothing before or behind it. */
bool gw_number(const char *text, unsigned min, unsigned max, unsigned *n);

/* upstream.c */

/* Splits an http(s) URL; on false `why` is the end of a sentence. */
bool gw_url_parse(gw_url_t *url, const char *text, const char **why);

/* One GET /health, 2 s in all; any HTTP answer will do, one other than 200 is
 * worth a note. */
bool gw_upstream_probe(const gw_url_t *url, const char *text);
/* Of a name some of whose addresses do not answer, writes those that do. */
void gw_upstream_servers(gw_t *g);
/* Does it take this key, or none (NULL)?  False, after a sentence, only when it
 * says no. */
bool gw_upstream_key(const gw_url_t *url, const char *text, const char *key);

/* Can we listen there?  The sentence names what to do with the option. */
bool gw_port_free(const char *addr, unsigned port, const char *flag);
/* Does somebody accept connections there? */
bool gw_port_open(const char *addr, unsigned port);

/* port_listen.c */

/* Splits ADDRESS[:PORT] of an option; port stays when there is none. */
bool gw_address_parse(const char *flag, const char *text,
    char addr[GW_ADDR_MAX], unsigned *port, bool *loopback);
/* What the options say about the listener for user ports. */
bool gw_prepare_ports(gw_t *g);
/* At the start: is its port free, or which one is? */
bool gw_ports_pick(gw_t *g);

/* programs.c */

/* Finds nginx and what was built or installed together with this program. */
bool gw_programs_find(gw_programs_t *p, const gw_options_t *opt);
/* Of these, nginx and its version alone. */
bool gw_nginx_find(gw_programs_t *p, const gw_options_t *opt);
/* Runs a program, its output and errors in `out` (NUL-terminated, cut to
 * `size`); its wait status, or -1 with errno. */
int gw_run(char *const argv[], char *out, size_t size);

/* place.c */

/* Names of all places; nothing is made. */
bool gw_place_name(gw_place_t *p, const gw_options_t *opt);
/* Makes the directories, takes the lock, picks the helper's user, fills run/console. */
bool gw_place_make(gw_place_t *p, const gw_programs_t *prog,
    const gw_options_t *opt);
/* For --check: says whether gw_place_make() would be able to. */
bool gw_place_check(const gw_place_t *p);

/* nginx_conf.c */

/* The configuration for g, GW_CONF_MAX at most; false after a sentence. */
bool gw_conf_render(const gw_t *g, sb_buf_t *out);
/* nginx -t on a file; its own words are passed on when it refuses. */
bool gw_conf_test(const gw_t *g, const char *conf, const char *prefix);

/* tokens.c */

/* `sandbox-gateway token ...`; argv[0] is "token".  Returns an exit code. */
int gw_token_main(int argc, char **argv, char **envp);

/* link.c */

/* Below DATA: the console's address, as it was at the last start. */
#define GW_CONSOLE_FILE  "console.url"

/* `sandbox-gateway link ...`; argv[0] is "link".  Returns an exit code. */
int gw_link_main(int argc, char **argv, char **envp);

/* policy.c */

/* conf/policy.default. */
extern const char  gw_policy_default[];

/* Writes it where the configuration names it, unless another one is used. */
bool gw_policy_write(const gw_t *g);

/* `sandbox-gateway policy ...`; an exit code. */
int gw_policy_main(int argc, char **argv);
/* Makes the token file with one token when there is none; `text` (at least
 * SB_TOKEN_TEXT_MAX bytes) is empty when there was one. */
bool gw_token_first(const char *path, char *text);
/* Gives the file to the helper's user, for tokens that the console makes.  Not
 * with --config, which may read another file. */
void gw_token_share(const gw_t *g);

/* child.c */

typedef struct {
    const char  *name;          /* as messages say it */
    char         note[GW_PATH_MAX];     /* file of pid and start time */
    const char  *argv[64 + 2 * GW_HOLDS_MAX];
    unsigned     argc;
    pid_t        pid;           /* 0: not running */
    int          ready;         /* reading end of its --ready-fd, or -1 */
    int          end_signal;    /* sent to it when we die; 0: none */
    bool         starting;      /* its first ready is being waited for */
    int64_t      started_ms;
    int64_t      again_ms;      /* when to start it again; 0: not */
    unsigned     delay_ms;
} gw_child_t;

/* The descriptor that a child's --ready-fd names. */
#define GW_READY_FD  3

int64_t gw_now_ms(void);
void gw_child_arg(gw_child_t *c, const char *arg);
/* Starts it in a process group of its own and notes pid and start time. */
bool gw_child_start(gw_child_t *c, bool ready);
/* Says how it ended, from a wait status. */
void gw_child_ended(const gw_child_t *c, int status, char *text, size_t size);
/* Ends what is left of the process group of a child that is gone: workers of
 * an nginx that was killed would keep the port. */
void gw_child_end_group(pid_t pgid, unsigned wait_ms);
/* Ends what a gateway that was killed has left running on this data. */
void gw_child_end_leftover(const gw_child_t *c, int sig, unsigned wait_ms);

/* key.c */

/* Upstream's API key, malloc'd; NULL when there is none.  False after a
 * sentence. */
bool gw_key_read(const gw_t *g, char **key);
/* For a helper that cannot read the key's file by itself: sets helper_key, or
 * leaves it empty, with a word, when there is no memory to share. */
bool gw_key_share(gw_t *g);
/* Hands it the key as it is now. */
void gw_key_again(const gw_t *g);

/* launch.c */

/* Writes a new key that gateway and helper ask the local runtime with. */
bool gw_runtime_key(const gw_t *g);
/* A free port for it, beginning with the wished one; sets upstream. */
bool gw_runtime_port(gw_t *g);
void gw_runtime_args(const gw_t *g, gw_child_t *c);
void gw_helper_args(const gw_t *g, gw_child_t *c);
/* Whether the helper takes its options; it alone knows what some may be. */
bool gw_helper_check(const gw_t *g);
void gw_nginx_args(const gw_t *g, gw_child_t *c);

/* supervise.c */

/* Starts everything, prints the lines, stays until the end; exit code. */
int gw_supervise(gw_t *g);

#endif /* GATEWAY_H_INCLUDED */
