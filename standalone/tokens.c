/* The token of the first start, and `sandbox-gateway token ...`. */

#include "gateway.h"
#include "args.h"
#include "files.h"
#include "id.h"
#include "token.h"
#include "token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define GW_TOKENS_HEAD                                                        \
    "# Tokens of this gateway, as SHA-256; made by `sandbox-gateway token"    \
    " add`.\n"


typedef struct {
    const char  *data;
    const char  *tokens;
    const char  *actor;
    const char  *type;
    const char  *role;
    const char  *name;
    const char  *expires;
    const char  *sandboxes;
    bool         states_actors;
    const char  *what;          /* what stands behind the options */
} gw_token_args_t;


static bool gw_token_path(char *path, const gw_token_args_t *a, char **envp);
static int gw_token_add(const gw_token_args_t *a, const char *path);
static int gw_token_list(const gw_token_args_t *a, const char *path);
static int gw_token_revoke(const gw_token_args_t *a, const char *path);
static bool gw_token_fill(sb_token_t *t, const gw_token_args_t *a,
    uint64_t now_us);
static bool gw_token_expires(uint64_t *us, const char *text, uint64_t now_us);
static bool gw_token_word(const char *word);


#define gw_at(field)  offsetof(gw_token_args_t, field)

#define GW_TOKEN_WHERE                                                        \
    { "data", "DIR", "DATA of the gateway", gw_at(data), NULL },              \
    { "tokens", "FILE", "its token file, in place of --data",                 \
      gw_at(tokens), NULL }

static const gw_arg_t  gw_token_add_args[] = {

    GW_TOKEN_WHERE,

    { "name", "ID", "its id, in place of one by chance", gw_at(name), NULL },

    { "role", "ROLE", "viewer, operator or admin (operator)", gw_at(role),
      NULL },

    { "actor", "NAME", "who acts with it, as records name him",
      gw_at(actor), NULL },

    { "type", "TYPE", "of the actor: agent, user, ...", gw_at(type), NULL },

    { "states-actors", NULL, "requests with it may say who acts",
      gw_at(states_actors), NULL },

    { "sandboxes", "GLOB,...", "the sandboxes that it is for (all)",
      gw_at(sandboxes), NULL },

    { "expires", "30d|12h|TIME", "when it ends (never)", gw_at(expires), NULL },

    { NULL, NULL, NULL, 0, NULL }
};

static const gw_arg_t  gw_token_file_args[] = {
    GW_TOKEN_WHERE,
    { NULL, NULL, NULL, 0, NULL }
};

static const struct {
    gw_command_t   command;
    int          (*run)(const gw_token_args_t *a, const char *path);
} gw_token_verbs[] = {

    { { "token add", "Makes a token and prints it once; the file keeps its"
        " hash.", gw_token_add_args, NULL, 0, false }, gw_token_add },

    { { "token list", "Says which there are.", gw_token_file_args, NULL, 0,
        false },
      gw_token_list },

    { { "token revoke", "Takes it out of the file; what it was used for ends"
        " with it.", gw_token_file_args, "ID", gw_at(what), false },
      gw_token_revoke }
};

#define GW_TOKEN_VERBS  (sizeof(gw_token_verbs) / sizeof(gw_token_verbs[0]))


bool
gw_token_first(const char *path, char *text)
{
    bool        ok;
    sb_buf_t    out;
    sb_token_t  t;

    text[0] = '\0';

    switch (gw_tokens_there(path)) {

    case 0:
        break;

    case 1:
        return true;

    default:
        return gw_fail("%s cannot be reached: %s.", path, strerror(errno));
    }

    memset(&t, 0, sizeof(t));
    sb_token_make(&t, text);

    t.role = SB_ROLE_ADMIN;
    t.states_actors = true;
    strcpy(t.actor, "admin");
    strcpy(t.type, "user");

    memset(&out, 0, sizeof(out));
    out.max = 4096;

    ok = sb_buf_add_str(&out, sb_lit(GW_TOKENS_HEAD)) == SB_OK
         && sb_token_line(&out, &t, sb_now_us()) == SB_OK
         && gw_write_file(path, out.data, out.len, 0600);

    sb_buf_free(&out);

    return ok || gw_fail("%s cannot be written: %s.", path, strerror(errno));
}


int
gw_token_main(int argc, char **argv, char **envp)
{
    int              rc;
    char             path[GW_PATH_MAX];
    size_t           i;
    const char      *verb;
    gw_token_args_t  a;

    verb = (argc > 1) ? argv[1] : "";

    for (i = 0; i < GW_TOKEN_VERBS; i++) {
        if (strcmp(gw_token_verbs[i].command.name + sizeof("token ") - 1, verb)
            == 0)
        {
            break;
        }
    }

    if (i == GW_TOKEN_VERBS) {
        for (i = 0; i < GW_TOKEN_VERBS; i++) {
            printf("sandbox-gateway %s [OPTION]...%s\n        %s\n",
                   gw_token_verbs[i].command.name,
                   gw_token_verbs[i].command.operand ? " ID" : "",
                   gw_token_verbs[i].command.about);
        }

        puts("--help behind one of them tells its options.");

        return gw_arg_help(verb) ? GW_EXIT_OK : GW_EXIT_USAGE;
    }

    memset(&a, 0, sizeof(a));

    rc = gw_args_read(&gw_token_verbs[i].command, &a, argc - 1, argv + 1);

    if (rc != GW_ARGS_READ) {
        return rc;
    }

    if (!gw_token_path(path, &a, envp)) {
        return GW_EXIT_USAGE;
    }

    return gw_token_verbs[i].run(&a, path);
}


static bool
gw_token_path(char *path, const gw_token_args_t *a, char **envp)
{
    char          *argv[] = { (char *) "sandbox-gateway", NULL };
    gw_place_t     place;
    gw_options_t   opt;

    if (a->data && a->tokens) {
        return gw_fail("token: --data and --tokens exclude each other.");
    }

    if (a->tokens) {
        if (strlen(a->tokens) >= GW_PATH_MAX) {
            return gw_fail("--tokens: the path is too long.");
        }

        strcpy(path, a->tokens);
        return true;
    }

    /* the same DATA as a start in this directory would have */

    if (!gw_options_read(&opt, 1, argv, envp)) {
        return false;
    }

    if (a->data) {
        opt.data = a->data;
    }

    if (!gw_place_name(&place, &opt)) {
        return false;
    }

    strcpy(path, place.tokens);

    return true;
}


static int
gw_token_add(const gw_token_args_t *a, const char *path)
{
    int          fd, rc;
    char         text[SB_TOKEN_TEXT_MAX];
    char        *old;
    size_t       len, i;
    ssize_t      n;
    sb_buf_t     out;
    uint64_t     now;
    sb_token_t   t;
    sb_tokens_t  all;

    now = sb_now_us();
    memset(&t, 0, sizeof(t));
    memset(&out, 0, sizeof(out));
    out.max = 8192;

    if (!gw_token_fill(&t, a, now)) {
        return GW_EXIT_USAGE;
    }

    fd = gw_tokens_open(path, true);

    if (fd == -1) {
        return GW_EXIT_FAILED;
    }

    rc = GW_EXIT_FAILED;

    old = gw_tokens_load(path, &all, &len);

    if (old == NULL) {
        close(fd);
        return rc;
    }

    if (a->name) {
        gw_token_named(&t, a->name, text);

        for (i = 0; i < all.n; i++) {
            if (strcmp(all.items[i].id, a->name) == 0) {
                gw_fail("token add: %s holds a token %s already; remove it"
                        " first or choose another --name.", path, a->name);
                goto done;
            }
        }

    } else {
        sb_token_make(&t, text);
    }

    if ((len == 0 && sb_buf_add_str(&out, sb_lit(GW_TOKENS_HEAD)) != SB_OK)
        || (len && old[len - 1] != '\n' && sb_buf_add_c(&out, '\n') != SB_OK)
        || sb_token_line(&out, &t, now) != SB_OK)
    {
        gw_fail("token add: the line would be too long.");
        goto done;
    }

    n = write(fd, out.data, out.len);

    if (n != (ssize_t) out.len || fsync(fd) == -1) {
        gw_fail("%s cannot be written: %s.", path, strerror(errno));

        if (n > 0 && ftruncate(fd, (off_t) len) == -1) {
            gw_note("%s has half a line at its end; remove it.", path);
        }

        goto done;
    }

    puts(text);
    fflush(stdout);

    gw_token_hint(path);
    rc = GW_EXIT_OK;

done:

    sb_tokens_free(&all);
    sb_buf_free(&out);
    free(old);
    close(fd);

    return rc;
}


static int
gw_token_list(const gw_token_args_t *a, const char *path)
{
    char         when[SB_TIME_LEN + 1];
    char        *text;
    size_t       i, len;
    sb_tokens_t  all;

    static const char  *roles[] = { "viewer", "operator", "admin" };

    (void) a;

    text = gw_tokens_load(path, &all, &len);

    if (text == NULL) {
        return GW_EXIT_FAILED;
    }

    printf("%-16s %-9s %-20s %-8s %-13s %-27s %s\n", "ID", "ROLE", "ACTOR",
           "TYPE", "STATES ACTORS", "EXPIRES", "SANDBOXES");

    for (i = 0; i < all.n; i++) {
        strcpy(when, "never");

        if (all.items[i].expires_us) {
            sb_time_text(when, all.items[i].expires_us);
        }

        printf("%-16s %-9s %-20s %-8s %-13s %-27s %s\n", all.items[i].id,
               roles[all.items[i].role],
               all.items[i].actor[0] ? all.items[i].actor : "-",
               all.items[i].type[0] ? all.items[i].type : "-",
               all.items[i].states_actors ? "yes" : "no", when,
               all.items[i].sandboxes[0] ? all.items[i].sandboxes : "all");
    }

    sb_tokens_free(&all);
    free(text);

    return GW_EXIT_OK;
}


/* The new content takes the file's place with its owner and mode. */

static int
gw_token_revoke(const gw_token_args_t *a, const char *path)
{
    int          fd, rc;
    char        *text, *line;
    size_t       len, n, left;
    struct stat  st;
    sb_tokens_t  all;

    if (a->what == NULL) {
        gw_fail("token revoke: name the ID, as token list shows it.");
        return GW_EXIT_USAGE;
    }

    fd = gw_tokens_open(path, false);

    if (fd == -1) {
        return GW_EXIT_FAILED;
    }

    text = gw_tokens_load(path, &all, &len);

    if (text == NULL) {
        close(fd);
        return GW_EXIT_FAILED;
    }

    sb_tokens_free(&all);

    rc = GW_EXIT_FAILED;

    line = (char *) sb_token_line_of(sb_str(text, len),
                                     sb_str(a->what, strlen(a->what)), &n);

    if (line == NULL) {
        gw_fail("token revoke: %s holds no token %s.", path, a->what);
        goto done;
    }

    left = len - (size_t) (line - text) - n;
    memmove(line, line + n, left);
    len = (size_t) (line - text) + left;

    if (fstat(fd, &st) == -1
        || !gw_replace_file(path, text, len, st.st_mode & 0777, st.st_uid,
                            st.st_gid))
    {
        gw_fail("%s cannot be written: %s.", path, strerror(errno));
        goto done;
    }

    gw_token_hint(path);
    rc = GW_EXIT_OK;

done:

    free(text);
    close(fd);

    return rc;
}


static bool
gw_token_fill(sb_token_t *t, const gw_token_args_t *a, uint64_t now_us)
{
    const char  *role;

    role = a->role ? a->role : "operator";

    if (strcmp(role, "viewer") == 0) {
        t->role = SB_ROLE_VIEWER;

    } else if (strcmp(role, "operator") == 0) {
        t->role = SB_ROLE_OPERATOR;

    } else if (strcmp(role, "admin") == 0) {
        t->role = SB_ROLE_ADMIN;

    } else {
        return gw_fail("token add: --role is viewer, operator or admin, not"
                       " \"%s\".", role);
    }

    if (a->name && (strlen(a->name) > SB_TOKEN_ID_MAX
                    || a->name[strspn(a->name, "abcdefghijklmnopqrstuvwxyz"
                                               "0123456789")] != '\0'))
    {
        return gw_fail("token add: --name is 1 to %d of a-z and 0-9, not"
                       " \"%s\".", SB_TOKEN_ID_MAX, a->name);
    }

    if (a->actor) {
        if (strlen(a->actor) >= sizeof(t->actor)
            || !gw_token_word(a->actor))
        {
            return gw_fail("token add: --actor is at most %d printable"
                           " characters without spaces.", SB_TOKEN_NAME_MAX);
        }

        strcpy(t->actor, a->actor);
    }

    if (a->type) {
        if (strlen(a->type) >= sizeof(t->type)
            || !gw_token_word(a->type))
        {
            return gw_fail("token add: --type is at most %d printable"
                           " characters without spaces.",
                           (int) sizeof(t->type) - 1);
        }

        strcpy(t->type, a->type);
    }

    if (a->sandboxes) {
        if (!sb_token_globs(sb_str(a->sandboxes, strlen(a->sandboxes)))) {
            return gw_fail("token add: --sandboxes is at most %d letters,"
                           " digits, \".\", \"_\", \"-\" and \"*\": ids, by"
                           " commas.", SB_TOKEN_GLOBS_MAX);
        }

        strcpy(t->sandboxes, a->sandboxes);
    }

    t->states_actors = a->states_actors;

    return a->expires == NULL
           || gw_token_expires(&t->expires_us, a->expires, now_us);
}


/* "30d", "12h", "45m", or a time such as 2027-01-31T00:00:00Z. */

static bool
gw_token_expires(uint64_t *us, const char *text, uint64_t now_us)
{
    char      number[16];
    size_t    len;
    uint64_t  unit;
    unsigned  n;

    len = strlen(text);
    unit = 0;

    switch (text[len - 1]) {
    case 'd':
        unit = 24 * 3600;
        break;

    case 'h':
        unit = 3600;
        break;

    case 'm':
        unit = 60;
        break;
    }

    if (unit && len < sizeof(number)) {
        memcpy(number, text, len - 1);
        number[len - 1] = '\0';

        if (gw_number(number, 1, 1000000, &n)) {
            *us = now_us + n * unit * 1000000;
            return true;
        }
    }

    if (sb_time_parse(us, sb_str(text, len)) == SB_OK && *us > now_us) {
        return true;
    }

    return gw_fail("token add: --expires is a span such as 30d, 12h or 45m, or"
                   " a time to come such as 2030-01-31T00:00:00Z, not \"%s\".",
                   text);
}


/* A word of the token file is printable ASCII without spaces. */

static bool
gw_token_word(const char *word)
{
    const unsigned char  *p;

    for (p = (const unsigned char *) word; *p; p++) {
        if (*p <= 0x20 || *p >= 0x7f) {
            return false;
        }
    }

    return true;
}
