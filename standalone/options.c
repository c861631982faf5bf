/* Options of sandbox-gateway: flags, environment, .env. */

#include "gateway.h"
#include "files.h"
#include "number.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define GW_ENV         "SANDBOX_GATEWAY_"
#define GW_ENV_LEN     (sizeof(GW_ENV) - 1)
#define GW_DOTENV_MAX  (64 * 1024)

typedef enum {
    GW_TEXT,
    GW_LIST,
    GW_HOLDS,
    GW_PORT,
    GW_WORKERS,
    GW_BOOL
} gw_kind_e;

#define GW_FLAG    1u       /* may be given as a flag */
#define GW_INENV   2u       /* may stand in the environment or .env */

typedef struct {
    const char  *name;
    gw_kind_e    kind;
    unsigned     where;
    size_t       offset;
    const char  *value;     /* how the help names it */
    const char  *help;
} gw_option_t;

#define gw_at(field)  offsetof(gw_options_t, field)

static const gw_option_t  gw_table[] = {

    { "upstream", GW_TEXT, GW_FLAG|GW_INENV, gw_at(upstream), "URL",
      "the OpenSandbox server; without it a local runtime is started" },

    { "api-key-file", GW_TEXT, GW_FLAG|GW_INENV, gw_at(api_key_file), "FILE",
      "file that holds upstream's API key" },

    { "api-key", GW_TEXT, GW_INENV, gw_at(api_key), NULL, NULL },

    { "listen", GW_TEXT, GW_FLAG|GW_INENV, gw_at(listen), "ADDRESS",
      "address to listen on (127.0.0.1)" },

    { "port", GW_PORT, GW_FLAG|GW_INENV, gw_at(port), "PORT",
      "port to listen on (8080)" },

    { "public", GW_TEXT, GW_FLAG|GW_INENV, gw_at(public_name),
      "HOST[:PORT][/PREFIX]",
      "how clients reach this gateway, for rewritten endpoints" },

    { "host", GW_LIST, GW_FLAG|GW_INENV, gw_at(hosts), "NAME",
      "Host that is accepted besides loopback; may be repeated" },

    { "port-listen", GW_TEXT, GW_FLAG|GW_INENV, gw_at(port_listen),
      "ADDRESS:PORT|off",
      "where browsers open user ports (loopback, the next free port)" },

    { "port-host", GW_TEXT, GW_FLAG|GW_INENV, gw_at(port_host), "*.NAME",
      "names that lead there, one per user port ({label}.localhost)" },

    { "tls-cert", GW_TEXT, GW_FLAG|GW_INENV, gw_at(tls_cert), "FILE",
      "certificate chain (PEM); together with --tls-key" },

    { "tls-key", GW_TEXT, GW_FLAG|GW_INENV, gw_at(tls_key), "FILE",
      "private key (PEM)" },

    { "insecure", GW_BOOL, GW_FLAG|GW_INENV, gw_at(insecure), NULL,
      "allow an address other than loopback without TLS" },

    { "data", GW_TEXT, GW_FLAG|GW_INENV, gw_at(data), "DIR",
      "tokens, journal, history and configuration" },

    { "history", GW_TEXT, GW_FLAG|GW_INENV, gw_at(history), "DIR",
      "history files, if not in DATA/history" },

    { "history-ttl", GW_TEXT, GW_FLAG|GW_INENV, gw_at(history_ttl),
      "TIME|off", "how long operations are kept (7d)" },

    { "history-size", GW_TEXT, GW_FLAG|GW_INENV, gw_at(history_size),
      "SIZE|off", "bytes of one sandbox's history (128m)" },

    { "history-total", GW_TEXT, GW_FLAG|GW_INENV, gw_at(history_total),
      "SIZE|off", "bytes of all of them (10g)" },

    { "history-keep", GW_TEXT, GW_FLAG|GW_INENV, gw_at(history_keep),
      "TIME|off", "younger operations do not make room (10m)" },

    { "history-overflow", GW_TEXT, GW_FLAG|GW_INENV, gw_at(history_overflow),
      "WORD", "delete_oldest, stop_recording or fail_operation" },

    { "history-on-delete", GW_TEXT, GW_FLAG|GW_INENV, gw_at(history_on_delete),
      "WORD", "a deleted sandbox's history: keep, archive or delete" },

    { "contents", GW_TEXT, GW_FLAG|GW_INENV, gw_at(contents), "BYTES",
      "contents of files kept in all histories (1073741824)" },

    { "fetches", GW_TEXT, GW_FLAG|GW_INENV, gw_at(fetches), "N",
      "files read in sandboxes at once, before they are changed (16)" },

    { "history-hold", GW_HOLDS, GW_FLAG|GW_INENV, gw_at(holds), "ID",
      "nothing of that sandbox is deleted; * for all; may be repeated" },

    { "workers", GW_WORKERS, GW_FLAG|GW_INENV, gw_at(workers), "N",
      "nginx worker processes (auto: one per core)" },

    { "policy", GW_TEXT, GW_FLAG|GW_INENV, gw_at(policy), "FILE|off",
      "rules that operations are judged by (conf/policy.default)" },

    { "config", GW_TEXT, GW_FLAG|GW_INENV, gw_at(config), "FILE",
      "run this nginx configuration instead of the generated one" },

    { "unconfined", GW_BOOL, GW_FLAG|GW_INENV, gw_at(unconfined), NULL,
      "local runtime: go on where bubblewrap cannot run" },

    { "print-config", GW_BOOL, GW_FLAG, gw_at(print_config), NULL,
      "print the generated nginx configuration and exit" },

    { "check", GW_BOOL, GW_FLAG, gw_at(check), NULL,
      "check options, files, upstream and configuration, and exit" },

    { "version", GW_BOOL, GW_FLAG, gw_at(version), NULL,
      "print versions and exit" },

    { "help", GW_BOOL, GW_FLAG, gw_at(help), NULL,
      "print this and exit" },

    /* for an nginx that is not on PATH, such as one built from sources */
    { "nginx", GW_TEXT, GW_INENV, gw_at(nginx), NULL, NULL }
};

#define GW_NOPTIONS  (sizeof(gw_table) / sizeof(gw_table[0]))


static const gw_option_t *gw_option_find(const char *name, size_t len,
    unsigned where, bool env);
static bool gw_option_set(gw_options_t *opt, const gw_option_t *o,
    const char *value, const char *from);
static bool gw_list_add(gw_options_t *opt, const char *value,
    const char *from);
static bool gw_holds_add(gw_options_t *opt, const char *value,
    const char *from);
static bool gw_flags_read(gw_options_t *opt, bool *set, int argc,
    char **argv);
static bool gw_environ_read(gw_options_t *opt, bool *set, char **envp);
static bool gw_dotenv_read(gw_options_t *opt, bool *set);
static bool gw_dotenv_line(gw_options_t *opt, const bool *set, bool *now,
    char *line, unsigned number);
static bool gw_orchestrator_name(const char *name, size_t len,
    const char *value);


bool
gw_options_read(gw_options_t *opt, int argc, char **argv, char **envp)
{
    bool  set[GW_NOPTIONS] = { false };

    memset(opt, 0, sizeof(*opt));
    opt->port = 8080;

    return gw_flags_read(opt, set, argc, argv)
           && (opt->help || opt->version
               || (gw_environ_read(opt, set, envp)
                   && gw_dotenv_read(opt, set)));
}


void
gw_options_help(void)
{
    char                left[64];
    const gw_option_t  *o;

    puts("sandbox-gateway: OpenSandbox behind nginx, every operation on"
         " record\n\n"
         "    sandbox-gateway [OPTION]...\n"
         "    sandbox-gateway token add|list|revoke [OPTION]...\n"
         "    sandbox-gateway link [OPTION]...\n"
         "    sandbox-gateway policy check [OPTION]...\n");

    for (o = gw_table; o < gw_table + GW_NOPTIONS; o++) {
        if (!(o->where & GW_FLAG)) {
            continue;
        }

        snprintf(left, sizeof(left), "--%s%s%s", o->name,
                 o->value ? " " : "", o->value ? o->value : "");

        if (strlen(left) > 22) {
            printf("  %s\n  %-22s  %s\n", left, "", o->help);

        } else {
            printf("  %-22s  %s\n", left, o->help);
        }
    }

    puts("\nEach option may also be given as --option=value, as " GW_ENV
         "OPTION in the\nenvironment, or in the file .env of the working"
         " directory, in this order.\n" GW_ENV "API_KEY holds the API key"
         " itself, " GW_ENV "NGINX the\nnginx binary to run.\n\n"
         "Signals: HUP reloads (tokens, keys, certificates), TERM, INT and"
         " QUIT end it\ngracefully, a second one at once.");
}


bool
gw_number(const char *text, unsigned min, unsigned max, unsigned *n)
{
    uint64_t  v;

    if (!sb_number(sb_str(text, strlen(text)), 10, max, &v) || v < min) {
        return false;
    }

    *n = (unsigned) v;

    return true;
}


/* With env the name is in capitals with underscores. */

static const gw_option_t *
gw_option_find(const char *name, size_t len, unsigned where, bool env)
{
    char                c;
    size_t              i;
    const gw_option_t  *o;

    for (o = gw_table; o < gw_table + GW_NOPTIONS; o++) {

        if (!(o->where & where) || strlen(o->name) != len) {
            continue;
        }

        for (i = 0; i < len; i++) {
            c = o->name[i];

            if (env) {
                c = (c == '-') ? '_' : (char) (c - 'a' + 'A');
            }

            if (c != name[i]) {
                break;
            }
        }

        if (i == len) {
            return o;
        }
    }

    return NULL;
}


static bool
gw_option_set(gw_options_t *opt, const gw_option_t *o, const char *value,
    const char *from)
{
    char  *field;

    field = (char *) opt + o->offset;

    if (o->kind == GW_BOOL) {
        if (value == NULL || strcmp(value, "1") == 0
            || strcmp(value, "true") == 0 || strcmp(value, "yes") == 0
            || strcmp(value, "on") == 0)
        {
            *(bool *) (void *) field = true;
            return true;
        }

        if (strcmp(value, "0") == 0 || strcmp(value, "false") == 0
            || strcmp(value, "no") == 0 || strcmp(value, "off") == 0)
        {
            *(bool *) (void *) field = false;
            return true;
        }

        return gw_fail("%s%s is a switch: \"%s\" is none of 1, true, yes, on,"
                       " 0, false, no, off.", from, o->name, value);
    }

    if (value == NULL || value[0] == '\0') {
        return gw_fail("%s%s needs a value.", from, o->name);
    }

    switch (o->kind) {

    case GW_TEXT:
        *(const char **) (void *) field = value;
        return true;

    case GW_LIST:
        return gw_list_add(opt, value, from);

    case GW_HOLDS:
        return gw_holds_add(opt, value, from);

    case GW_PORT:
        if (!gw_number(value, 1, 65535, (unsigned *) (void *) field)) {
            return gw_fail("%sport: \"%s\" is not a port number (1 to 65535).",
                           from, value);
        }

        return true;

    case GW_WORKERS:
        if (strcmp(value, "auto") == 0) {
            *(unsigned *) (void *) field = 0;
            return true;
        }

        if (!gw_number(value, 1, 256, (unsigned *) (void *) field)) {
            return gw_fail("%sworkers: \"%s\" is neither auto nor a number"
                           " from 1 to 256.", from, value);
        }

        return true;

    default:
        return false;
    }
}


static bool
gw_list_add(gw_options_t *opt, const char *value, const char *from)
{
    char  *copy, *name, *rest;

    copy = strdup(value);
    if (copy == NULL) {
        return gw_fail("out of memory.");
    }

    rest = copy;

    while ((name = strsep(&rest, ", ")) != NULL) {

        if (name[0] == '\0') {
            continue;
        }

        if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789.-_[]:")] != '\0'
            || (name[0] != '[' && strchr(name, ':')))
        {
            return gw_fail("%shost: \"%s\" is not a host name without a"
                           " port.", from, name);
        }

        if (opt->nhosts == GW_HOSTS_MAX) {
            return gw_fail("%shost: more than %d names.", from, GW_HOSTS_MAX);
        }

        opt->hosts[opt->nhosts++] = name;
    }

    return true;
}


static bool
gw_holds_add(gw_options_t *opt, const char *value, const char *from)
{
    char  *copy, *id, *rest;

    copy = strdup(value);
    if (copy == NULL) {
        return gw_fail("out of memory.");
    }

    rest = copy;

    while ((id = strsep(&rest, ", ")) != NULL) {

        if (id[0] == '\0') {
            continue;
        }

        if (opt->nholds == GW_HOLDS_MAX) {
            return gw_fail("%shistory-hold: more than %d sandboxes.", from,
                           GW_HOLDS_MAX);
        }

        opt->holds[opt->nholds++] = id;
    }

    return true;
}


static bool
gw_flags_read(gw_options_t *opt, bool *set, int argc, char **argv)
{
    int                 i;
    char               *value;
    const char         *name;
    const gw_option_t  *o;

    for (i = 1; i < argc; i++) {

        if (strncmp(argv[i], "--", 2) != 0 || argv[i][2] == '\0') {
            if (strcmp(argv[i], "-h") == 0) {
                opt->help = true;
                continue;
            }

            return gw_fail("\"%s\" is not an option; see --help.", argv[i]);
        }

        name = argv[i] + 2;
        value = strchr(name, '=');

        o = gw_option_find(name, value ? (size_t) (value - name)
                                       : strlen(name), GW_FLAG, false);
        if (o == NULL) {
            return gw_fail("there is no option %.*s; see --help.",
                           value ? (int) (value - argv[i])
                                 : (int) strlen(argv[i]), argv[i]);
        }

        if (value) {
            value++;

        } else if (o->kind != GW_BOOL) {
            if (i + 1 == argc) {
                return gw_fail("--%s needs a value.", o->name);
            }

            value = argv[++i];
        }

        if (!gw_option_set(opt, o, value, "--")) {
            return false;
        }

        set[o - gw_table] = true;
    }

    return true;
}


static bool
gw_environ_read(gw_options_t *opt, bool *set, char **envp)
{
    bool                now[GW_NOPTIONS] = { false };
    size_t              len;
    unsigned            i;
    const char         *name, *value;
    const gw_option_t  *o;

    for ( /* void */ ; *envp; envp++) {

        if (strncmp(*envp, GW_ENV, GW_ENV_LEN) != 0) {
            continue;
        }

        name = *envp + GW_ENV_LEN;
        value = strchr(name, '=');

        if (value == NULL) {
            continue;
        }

        len = (size_t) (value - name);
        value++;

        if (value[0] == '\0' || gw_orchestrator_name(name, len, value)) {
            continue;
        }

        o = gw_option_find(name, len, GW_INENV, true);

        if (o == NULL) {
            return gw_fail("the environment holds %.*s, which is no setting;"
                           " see --help.", (int) (len + GW_ENV_LEN), *envp);
        }

        if (set[o - gw_table]) {
            continue;
        }

        if (!gw_option_set(opt, o, value, "environment: ")) {
            return false;
        }

        now[o - gw_table] = true;
    }

    for (i = 0; i < GW_NOPTIONS; i++) {
        set[i] = set[i] || now[i];
    }

    return true;
}


/*
 * Kubernetes puts SANDBOX_GATEWAY_SERVICE_HOST, SANDBOX_GATEWAY_PORT=tcp://...
 * and the like into every container beside a service named sandbox-gateway.
 */

static bool
gw_orchestrator_name(const char *name, size_t len, const char *value)
{
    if (len > 8 && strncmp(name, "SERVICE_", 8) == 0) {
        return true;
    }

    if (len > 5 && strncmp(name, "PORT_", 5) == 0) {
        return true;
    }

    return len == 4 && strncmp(name, "PORT", 4) == 0
           && (strncmp(value, "tcp://", 6) == 0
               || strncmp(value, "udp://", 6) == 0);
}


static bool
gw_dotenv_read(gw_options_t *opt, bool *set)
{
    bool         now[GW_NOPTIONS] = { false };
    int          fd;
    char        *text, *line;
    size_t       n;
    FILE        *f;
    unsigned     number;
    struct stat  st;

    /* a pipe is not waited for */

    fd = open(".env", O_RDONLY|O_CLOEXEC|O_NONBLOCK);
    f = (fd == -1) ? NULL : fdopen(fd, "re");

    if (f == NULL) {
        if (errno == ENOENT) {
            return true;
        }

        return gw_fail("the file .env in the working directory cannot be"
                       " read: %s.", strerror(errno));
    }

    /* it names programs to run: anybody could leave one in /tmp */

    if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) || !gw_trusted(&st)) {
        fclose(f);
        return gw_fail("the file .env in the working directory is not ours"
                       " alone to write; correct its owner and mode or start"
                       " in another directory.");
    }

    /* never freed: options point into it */

    text = malloc(GW_DOTENV_MAX + 1);
    if (text == NULL) {
        fclose(f);
        return gw_fail("out of memory.");
    }

    n = fread(text, 1, GW_DOTENV_MAX + 1, f);
    fclose(f);

    if (n > GW_DOTENV_MAX) {
        return gw_fail("the file .env in the working directory is larger than"
                       " %d bytes.", GW_DOTENV_MAX);
    }

    text[n] = '\0';
    number = 0;

    while ((line = strsep(&text, "\n")) != NULL) {
        if (!gw_dotenv_line(opt, set, now, line, ++number)) {
            return false;
        }
    }

    return true;
}


/* NAME=VALUE, also with "export" before it and quotes around the value; what
 * is meant for other programs is left alone. */

static bool
gw_dotenv_line(gw_options_t *opt, const bool *set, bool *now, char *line,
    unsigned number)
{
    char                quote;
    char               *value, *end;
    char                from[32];
    size_t              i;
    const gw_option_t  *o;

    line += strspn(line, " \t");

    if (strncmp(line, "export ", 7) == 0) {
        line += 7;
        line += strspn(line, " \t");
    }

    if (strncmp(line, GW_ENV, GW_ENV_LEN) != 0) {
        return true;
    }

    value = strchr(line, '=');

    if (value == NULL) {
        return gw_fail(".env line %u: \"=\" is missing.", number);
    }

    for (end = value; end > line && (end[-1] == ' ' || end[-1] == '\t');
         end--)
    {
        /* void */
    }

    o = gw_option_find(line + GW_ENV_LEN,
                       (size_t) (end - line) - GW_ENV_LEN, GW_INENV, true);
    if (o == NULL) {
        return gw_fail(".env line %u: %.*s is no setting; see --help.",
                       number, (int) (end - line), line);
    }

    value++;
    value += strspn(value, " \t");
    end = value + strcspn(value, "\r");
    *end = '\0';

    if (value[0] == '"' || value[0] == '\'') {
        quote = *value++;
        end = strchr(value, quote);

        if (end == NULL) {
            return gw_fail(".env line %u: the closing quote is missing.",
                           number);
        }

        *end = '\0';

    } else {
        end = strstr(value, " #");
        if (end == NULL) {
            end = value + strlen(value);
        }

        while (end > value && (end[-1] == ' ' || end[-1] == '\t')) {
            end--;
        }

        *end = '\0';
    }

    i = (size_t) (o - gw_table);

    if (set[i] || value[0] == '\0') {
        return true;
    }

    /* a list grows over lines; of others the last line counts */
    now[i] = true;

    snprintf(from, sizeof(from), ".env line %u: ", number);

    return gw_option_set(opt, o, value, from);
}
