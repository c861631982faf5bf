/*
 * sandbox-runtime: a local server that speaks OpenSandbox's API, for trying out
 * and for tests.  With --execd it is the program that runs inside a sandbox.
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box.h"
#include "execd.h"
#include "lifecycle.h"
#include "number.h"
#include "proxy.h"


typedef struct {
    const char       *listen;
    uint16_t          port;
    const char       *data;
    const char       *key_file;
    bool              execd;
    rt_boxes_conf_t   boxes;
    rt_execd_conf_t   inside;
    int               ready_fd;
} rt_options_t;


static const char  rt_usage[] =
    "sandbox-runtime: a local OpenSandbox-compatible server, for trying out "
    "and tests\n\n"
    "  --listen ADDR         address to listen on (127.0.0.1)\n"
    "  --port N              port, 0 for any (8090)\n"
    "  --data DIR            where the sandboxes' files live (needed)\n"
    "  --api-key-file FILE   file with the API key that clients must send\n"
    "                        (else OPEN_SANDBOX_API_KEY, else none)\n"
    "  --unconfined          run sandboxes as plain processes, isolated from\n"
    "                        nothing, where bubblewrap cannot run\n"
    "  --no-kernels          no python and bash for /code, as an execd without\n"
    "                        Jupyter\n"
    "  --grace MS            time between the end of a command and the end\n"
    "                        of its answer (1000)\n"
    "  --ready-fd N          write one byte there when listening\n"
    "  --version, --help\n";


static int
rt_bad(const char *what, const char *value, const char *hint)
{
    fprintf(stderr, "sandbox-runtime: %s %s: %s\n", what, value, hint);

    return -1;
}


static int
rt_number(const char *name, const char *text, long max, long *out)
{
    uint64_t  n;

    if (!sb_number(sb_str(text, strlen(text)), 10, (uint64_t) max, &n)) {
        return rt_bad(name, text, "a number is needed there");
    }

    *out = (long) n;

    return 0;
}


static int
rt_parse(int argc, char **argv, rt_options_t *o)
{
    int   c;
    long  n;

    static const struct option  longs[] = {
        { "listen", required_argument, NULL, 'l' },
        { "port", required_argument, NULL, 'p' },
        { "data", required_argument, NULL, 'd' },
        { "api-key-file", required_argument, NULL, 'k' },
        { "unconfined", no_argument, NULL, 'u' },
        { "grace", required_argument, NULL, 'g' },
        { "ready-fd", required_argument, NULL, 'r' },
        { "version", no_argument, NULL, 'v' },
        { "help", no_argument, NULL, 'h' },
        { "execd", no_argument, NULL, 'x' },
        { "listen-fd", required_argument, NULL, 'f' },
        { "init", no_argument, NULL, 'i' },
        { "no-kernels", no_argument, NULL, 'n' },
        { NULL, 0, NULL, 0 }
    };

    memset(o, 0, sizeof(rt_options_t));
    o->listen = "127.0.0.1";
    o->port = 8090;
    o->ready_fd = -1;
    o->boxes.grace_ms = 1000;
    o->inside.listen_fd = -1;

    while ((c = getopt_long(argc, argv, "+", longs, NULL)) != -1) {
        switch (c) {

        case 'l':
            o->listen = optarg;
            break;

        case 'd':
            o->data = optarg;
            break;

        case 'k':
            o->key_file = optarg;
            break;

        case 'u':
            o->boxes.unconfined = true;
            break;

        case 'x':
            o->execd = true;
            break;

        case 'i':
            o->inside.init = true;
            break;

        case 'n':
            o->boxes.no_kernels = o->inside.no_kernels = true;
            break;

        case 'p':
            if (rt_number("--port", optarg, 65535, &n) == -1) {
                return -1;
            }

            o->port = (uint16_t) n;
            break;

        case 'g':
            if (rt_number("--grace", optarg, 600000, &n) == -1) {
                return -1;
            }

            o->boxes.grace_ms = (unsigned) n;
            break;

        case 'r':
            if (rt_number("--ready-fd", optarg, INT_MAX, &n) == -1) {
                return -1;
            }

            o->ready_fd = (int) n;
            break;

        case 'f':
            if (rt_number("--listen-fd", optarg, INT_MAX, &n) == -1) {
                return -1;
            }

            o->inside.listen_fd = (int) n;
            break;

        case 'v':
            printf("sandbox-runtime %s\n", SB_VERSION);
            exit(0);

        case 'h':
            fputs(rt_usage, stdout);
            exit(0);

        default:
            fprintf(stderr, "sandbox-runtime: see --help\n");
            return -1;
        }
    }

    if (o->execd) {
        o->inside.entrypoint = argv[optind] ? argv + optind : NULL;

    } else if (argv[optind] != NULL) {
        return rt_bad("argument", argv[optind], "only flags are taken, see "
                      "--help");
    }

    return 0;
}


/* The key, or NULL when there is none; *failed when there should be one. */

static char *
rt_key(const char *path, bool *failed)
{
    FILE        *f;
    char         line[1024], *key;
    size_t       n;
    const char  *env;

    *failed = false;

    if (path == NULL) {
        env = getenv("OPEN_SANDBOX_API_KEY");
        key = env != NULL && env[0] != '\0' ? strdup(env) : NULL;
        unsetenv("OPEN_SANDBOX_API_KEY");
        return key;
    }

    f = fopen(path, "re");

    if (f == NULL || fgets(line, sizeof(line), f) == NULL) {
        rt_bad("--api-key-file", path, f == NULL ? strerror(errno)
                                                 : "the file is empty");
        *failed = true;
        line[0] = '\0';
    }

    if (f != NULL) {
        fclose(f);
    }

    for (n = strlen(line); n > 0 && strchr(" \t\r\n", line[n - 1]); n--) {
        line[n - 1] = '\0';
    }

    if (line[0] == '\0' && !*failed) {
        rt_bad("--api-key-file", path, "its first line is empty");
        *failed = true;
    }

    return *failed ? NULL : strdup(line);
}


static void
rt_say(const rt_options_t *o)
{
    printf("sandbox-runtime %s on http://%s:%u: a local OpenSandbox-"
           "compatible runtime, for trying out and tests only.\n",
           SB_VERSION, o->listen, (unsigned) o->port);

    if (o->boxes.unconfined) {
        printf("WARNING: --unconfined: NOTHING IS ISOLATED. Commands of every "
               "sandbox run as uid %u on this machine and can read and write "
               "all that this user can.\n", (unsigned) geteuid());
    }

    if (strncmp(o->listen, "127.", 4) != 0) {
        printf("WARNING: --listen %s: whoever reaches this address can run "
               "commands here; the server proxy never asks for a key.\n",
               o->listen);
    }

    printf("Sandboxes share this machine's network and end with this "
           "process.\n");
    fflush(stdout);
}


static int
rt_serve(rt_options_t *o)
{
    int         fd;
    char       *key, why[1024], *data;
    bool        failed;
    rt_http_t  *http;

    key = rt_key(o->key_file, &failed);

    if (failed) {
        return 1;
    }

    if (o->data == NULL) {
        fprintf(stderr, "sandbox-runtime: --data DIR is needed: where the "
                        "sandboxes' files live\n");
        return 2;
    }

    fd = rt_listen(o->listen, &o->port);

    if (fd == -1) {
        fprintf(stderr, "sandbox-runtime: cannot listen on %s:%u: %s; choose "
                        "another with --listen and --port\n", o->listen,
                (unsigned) o->port, strerror(errno));
        return 1;
    }

    umask(022);
    rt_more_files();

    if (mkdir(o->data, 0700) == -1 && errno != EEXIST) {
        rt_bad("--data", o->data, strerror(errno));
        return 1;
    }

    data = realpath(o->data, NULL);
    o->boxes.data = data;
    o->boxes.address = o->listen;

    if (data == NULL || !rt_boxes_init(&o->boxes, why, sizeof(why))) {
        fprintf(stderr, "sandbox-runtime: %s%s\n",
                data ? why : strerror(errno),
                data && !o->boxes.unconfined && strstr(why, "bwrap")
                ? "; install it and allow it to make namespaces, or give "
                  "--unconfined to run without any isolation" : "");
        return 1;
    }

    rt_proxy_init();
    rt_lifecycle_init(o->listen, key);
    http = rt_http_start(fd, &rt_lifecycle, 30);

    if (http == NULL) {
        fprintf(stderr, "sandbox-runtime: the HTTP server did not start: "
                        "%s\n", strerror(errno));
        return 1;
    }

    rt_say(o);

    if (o->ready_fd != -1) {
        if (write(o->ready_fd, "R", 1) == -1) {
            rt_bad("--ready-fd", "", strerror(errno));
        }

        close(o->ready_fd);
    }

    rt_boxes_run();
    fflush(stdout);

    /* threads of connections may still be at work: no clean-up under them */

    _exit(0);
}


int
main(int argc, char **argv)
{
    rt_options_t  o;

    if (rt_parse(argc, argv, &o) == -1) {
        return 2;
    }

    if (!o.execd) {
        return rt_serve(&o);
    }

    o.inside.port = o.port;
    o.inside.ready_fd = o.ready_fd;
    o.inside.grace_ms = o.boxes.grace_ms;
    fcntl(o.inside.listen_fd, F_SETFD, FD_CLOEXEC);
    fcntl(o.inside.ready_fd, F_SETFD, FD_CLOEXEC);

    return rt_execd_main(&o.inside);
}
