/* The policy of this gateway, and `sandbox-gateway policy check`. */

#include "gateway.h"
#include "args.h"
#include "files.h"
#include "number.h"
#include "path.h"
#include "policy_facts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define GW_POLICY_PATHS     64
#define GW_POLICY_METADATA  64
#define GW_POLICY_NAMES     64


const char  gw_policy_default[] =
#include "default_policy.h"
;


typedef struct {
    const char         *policy;
    const char         *operation;
    const char         *command;
    const char         *actor;
    const char         *role;
    const char         *sandbox;
    const char         *image;
    const char         *port;
    const char         *size;
    const char         *mode;
    const char         *content;
    const char         *archive;
    const char         *counts[SB_IN_COUNTS];
    sb_policy_file_t    files[GW_POLICY_PATHS];
    size_t              nfiles;
    sb_policy_pair_t    metadata[GW_POLICY_METADATA];
    size_t              nmetadata;
    sb_str_t            names[GW_POLICY_NAMES];
    size_t              nnames;
    sb_policy_facts_t   facts;
} gw_policy_args_t;


static bool gw_policy_path(void *args, const char *value);
static bool gw_policy_metadata(void *args, const char *value);
static bool gw_policy_name(void *args, const char *value);
static sb_policy_t *gw_policy_load(const char *file);
static bool gw_policy_request(gw_policy_args_t *a, sb_policy_request_t *r);
static bool gw_policy_facts(gw_policy_args_t *a);
static bool gw_policy_words(gw_policy_args_t *a, const char *option,
    const char *words, bool (*take)(sb_policy_facts_t *facts, sb_str_t word),
    const char *what);
static int gw_policy_explain(gw_policy_args_t *a, const sb_policy_t *policy,
    const char *file, sb_policy_request_t *r);


#define gw_at(field)  offsetof(gw_policy_args_t, field)

static const gw_arg_t  gw_policy_table[] = {

    { "policy", "FILE", "the policy (the one that sandbox-gateway comes with)",
      gw_at(policy), NULL },

    { "operation", "NAME", "what is asked about; without one the policy only is"
      " checked", gw_at(operation), NULL },

    { "path", "PATH", "of a file; may be repeated", 0, gw_policy_path },

    { "command", "TEXT", "of command.execute and the like", gw_at(command),
      NULL },

    { "actor", "TYPE[/ID]", "who acts", gw_at(actor), NULL },

    { "role", "ROLE", "viewer, operator or admin", gw_at(role), NULL },

    { "sandbox", "ID", "where", gw_at(sandbox), NULL },

    { "metadata", "KEY=VALUE", "of the sandbox; may be repeated", 0,
      gw_policy_metadata },

    { "image", "NAME", "of sandbox.create", gw_at(image), NULL },

    { "port", "N", "of a user port", gw_at(port), NULL },

    { "size", "BYTES", "of each file", gw_at(size), NULL },

    { "mode", "MODE", "of each file, such as 644", gw_at(mode), NULL },

    { "content", "WORD[,WORD]...", "what is found in the files",
      gw_at(content), NULL },

    { "archive", "WORD[,WORD]...", "what is found in them as archives",
      gw_at(archive), NULL },

    { "archive-path", "NAME", "of a member; may be repeated", 0,
      gw_policy_name },

    { "archive-entries", "N", "members", gw_at(counts[SB_IN_ENTRIES]), NULL },

    { "archive-size", "BYTES", "of all that is unpacked",
      gw_at(counts[SB_IN_SIZE]), NULL },

    { "archive-file-size", "BYTES", "of the largest member",
      gw_at(counts[SB_IN_FILE_SIZE]), NULL },

    { "archive-ratio", "N", "how many times what is packed",
      gw_at(counts[SB_IN_RATIO]), NULL },

    { "archive-depth", "N", "of archives in archives",
      gw_at(counts[SB_IN_DEPTH]), NULL },

    { NULL, NULL, NULL, 0, NULL }
};

static const gw_command_t  gw_policy_command = {
    "policy check", "Says whether the policy allows it, and by which rule: exit"
    " 0 allowed, 1 denied,\n2 the policy or an option is wrong.",
    gw_policy_table, NULL, 0, true      /* what is asked about may be empty */
};


bool
gw_policy_write(const gw_t *g)
{
    return g->opt.policy
           || gw_write_file(g->place.policy, gw_policy_default,
                            sizeof(gw_policy_default) - 1, 0600)
           || gw_fail("%s cannot be written: %s.", g->place.policy,
                      strerror(errno));
}


int
gw_policy_main(int argc, char **argv)
{
    int                       rc;
    const char               *file;
    sb_policy_t              *policy;
    sb_policy_request_t       r;
    static gw_policy_args_t   a;

    if (argc < 2 || strcmp(argv[1], "check") != 0) {
        rc = argc > 1 && gw_arg_help(argv[1]);

        fputs("usage: sandbox-gateway policy check [OPTION]...; --help behind it"
              " tells them.\n", rc ? stdout : stderr);

        return rc ? GW_EXIT_OK : GW_EXIT_USAGE;
    }

    rc = gw_args_read(&gw_policy_command, &a, argc - 1, argv + 1);

    if (rc != GW_ARGS_READ) {
        return rc;
    }

    file = a.policy ? a.policy : "policy.default";
    policy = gw_policy_load(a.policy);

    if (policy == NULL) {
        return GW_EXIT_USAGE;
    }

    if (a.operation == NULL) {
        printf("%s is fine.\n", file);
        rc = GW_EXIT_OK;

    } else if (!gw_policy_request(&a, &r)) {
        rc = GW_EXIT_USAGE;

    } else {
        rc = gw_policy_explain(&a, policy, file, &r);
    }

    sb_policy_free(policy);

    return rc;
}


static bool
gw_policy_path(void *args, const char *value)
{
    gw_policy_args_t  *a = args;

    if (a->nfiles == GW_POLICY_PATHS) {
        return gw_fail("policy check: there are more than %d paths.",
                       GW_POLICY_PATHS);
    }

    a->files[a->nfiles++].path = sb_str(value, strlen(value));

    return true;
}


static bool
gw_policy_name(void *args, const char *value)
{
    gw_policy_args_t  *a = args;

    if (a->nnames == GW_POLICY_NAMES) {
        return gw_fail("policy check: there are more than %d members of the"
                       " archive.", GW_POLICY_NAMES);
    }

    a->names[a->nnames++] = sb_str(value, strlen(value));

    return true;
}


static bool
gw_policy_metadata(void *args, const char *value)
{
    const char        *equals;
    gw_policy_args_t  *a = args;

    equals = strchr(value, '=');

    if (equals == NULL || equals == value
        || a->nmetadata == GW_POLICY_METADATA)
    {
        return gw_fail("policy check: --metadata is KEY=VALUE, at most %d"
                       " times.", GW_POLICY_METADATA);
    }

    a->metadata[a->nmetadata].key = sb_str(value, (size_t) (equals - value));
    a->metadata[a->nmetadata++].value = sb_str(equals + 1, strlen(equals + 1));

    return true;
}


/* NULL: the one that we come with. */

static sb_policy_t *
gw_policy_load(const char *file)
{
    char               *text;
    size_t              len;
    sb_rc_t             rc;
    sb_policy_t        *policy;
    sb_policy_error_t   error;

    text = NULL;
    len = sizeof(gw_policy_default) - 1;

    if (file) {
        text = gw_read_file(file, SB_POLICY_TEXT_MAX, &len);

        if (text == NULL) {
            gw_fail("--policy: %s cannot be read: %s.", file, strerror(errno));
            return NULL;
        }
    }

    rc = sb_policy_parse(sb_str(text ? text : gw_policy_default, len),
                         file ? file : "policy.default", &policy, &error);

    free(text);

    if (rc == SB_OK) {
        return policy;
    }

    gw_fail("%s.", rc == SB_ERROR ? error.text : "there is no memory left");

    return NULL;
}


static bool
gw_policy_request(gw_policy_args_t *a, sb_policy_request_t *r)
{
    size_t       i;
    unsigned     n, mode;
    const char  *slash;

    memset(r, 0, sizeof(*r));

    r->op = sb_op_find(sb_str(a->operation, strlen(a->operation)));

    if (r->op == NULL) {
        return gw_fail("policy check: there is no operation \"%s\"; their"
                       " names stand in docs/operations.md.", a->operation);
    }

    if (a->actor) {
        slash = strchr(a->actor, '/');
        n = (unsigned) (slash ? (size_t) (slash - a->actor)
                              : strlen(a->actor));
        r->actor_type = sb_str(a->actor, n);
        r->actor_id = slash ? sb_str(slash + 1, strlen(slash + 1))
                            : sb_lit("");
    }

    if (a->role) {
        r->role = sb_str(a->role, strlen(a->role));
    }

    if (a->sandbox) {
        r->sandbox = sb_str(a->sandbox, strlen(a->sandbox));
    }

    if (a->command) {
        r->has_command = true;
        r->command = sb_str(a->command, strlen(a->command));
        r->dark = strcmp(a->operation, "code.execute") == 0;
    }

    if (a->image) {
        r->has_image = true;
        r->image = sb_str(a->image, strlen(a->image));
    }

    if (a->port) {
        if (!gw_number(a->port, 1, 65535, &n)) {
            return gw_fail("policy check: --port is 1 to 65535.");
        }

        r->port = n;
    }

    mode = 0;

    if (a->mode && !gw_number(a->mode, 0, INT_MAX, &mode)) {
        return gw_fail("policy check: --mode is a number such as 644.");
    }

    n = 0;

    if (a->size && !gw_number(a->size, 0, UINT_MAX, &n)) {
        return gw_fail("policy check: --size is a number of bytes.");
    }

    for (i = 0; i < a->nfiles; i++) {
        a->files[i].mode = a->mode ? sb_mode(mode) : SB_MODE_NONE;
        a->files[i].has_size = a->size != NULL;
        a->files[i].size = n;
    }

    r->has_size = a->size != NULL;
    r->size = n * a->nfiles;
    r->files = a->files;
    r->nfiles = a->nfiles;
    r->files_total = a->nfiles;

    r->has_metadata = a->nmetadata > 0
                      || strcmp(a->operation, "sandbox.create") == 0;
    r->metadata = a->metadata;
    r->nmetadata = a->nmetadata;

    return gw_policy_facts(a);
}


/* What is in the files, that nobody looks into here. */

static bool
gw_policy_facts(gw_policy_args_t *a)
{
    size_t    i;
    uint64_t  n;

    if (!gw_policy_words(a, "content", a->content, sb_policy_facts_content,
                         "private-key, aws-key, google-key, token,"
                         " gateway-token")
        || !gw_policy_words(a, "archive", a->archive, sb_policy_facts_archive,
                            "any, climbs, escapes, links, devices, set-id,"
                            " encrypted, broken, inconsistent, duplicates,"
                            " misnamed, uninspected"))
    {
        return false;
    }

    sb_policy_facts_names(&a->facts, a->names, a->nnames);

    for (i = 0; i < SB_IN_COUNTS; i++) {

        if (a->counts[i] == NULL) {
            continue;
        }

        if (!sb_number(sb_str(a->counts[i], strlen(a->counts[i])), 10,
                       INT64_MAX, &n))
        {
            return gw_fail("policy check: %s is a number, not \"%s\".",
                           sb_policy_facts_counts[i], a->counts[i]);
        }

        sb_policy_facts_count(&a->facts, (sb_inspect_count_e) i, n);
    }

    return !sb_policy_facts_told(&a->facts) || a->nfiles
           || gw_fail("policy check: what is in a file belongs to a --path.");
}


static bool
gw_policy_words(gw_policy_args_t *a, const char *option, const char *words,
    bool (*take)(sb_policy_facts_t *facts, sb_str_t word), const char *what)
{
    size_t  n;

    if (words == NULL) {
        return true;
    }

    for ( ;; ) {
        n = strcspn(words, ",");

        if (!take(&a->facts, sb_str(words, n))) {
            return gw_fail("policy check: words of --%s are %s.", option,
                           what);
        }

        if (words[n] == '\0') {
            return true;
        }

        words += n + 1;
    }
}


static int
gw_policy_explain(gw_policy_args_t *a, const sb_policy_t *policy,
    const char *file, sb_policy_request_t *r)
{
    bool                 denied;
    sb_policy_verdict_t  v;

    if (sb_policy_facts_check(&a->facts, policy, r, &v) != SB_OK) {
        gw_fail("there is no memory left.");
        return GW_EXIT_USAGE;
    }

    denied = v.decision == SB_POLICY_DENY;

    printf("%s: %s, %s:%u\n", denied ? "denied" : "allowed", v.rule, file,
           v.line);

    if (denied) {
        if (v.path.len) {
            printf("path: %.*s\n", (int) v.path.len, v.path.data);
        }

        printf("reason: %s\n", v.reason);
    }

    if (v.observed) {
        printf("would be denied: %s, %s:%u: %s\n", v.observed, file,
               v.observed_line, v.observed_reason);
    }

    if (v.unread) {
        puts("unread: not all of the command could be read");
    }

    return denied ? GW_EXIT_FAILED : GW_EXIT_OK;
}
