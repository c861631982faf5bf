/* `sandbox-gateway link`: an address that signs in to the console once. */

#include "gateway.h"
#include "files.h"
#include "id.h"
#include "token.h"
#include "token_file.h"

#include <stdio.h>
#include <stdlib.h>

#define GW_URL_MAX  600


typedef struct {
    const char  *data;
    const char  *tokens;
    const char  *role;
    const char  *url;
} gw_link_args_t;


static bool gw_link_args(gw_link_args_t *a, int argc, char **argv);
static bool gw_link_place(const gw_link_args_t *a, char *tokens, char *url,
    char **envp);
static const sb_token_t *gw_link_row(const sb_tokens_t *all, sb_role_e *role,
    const char *wanted, uint64_t now_us);


int
gw_link_main(int argc, char **argv, char **envp)
{
    char             tokens[GW_PATH_MAX], url[GW_URL_MAX];
    char             code[SB_ENDPOINT_TOKEN_MAX];
    char            *text;
    size_t           len;
    sb_code_t        c;
    sb_tokens_t      all;
    gw_link_args_t   a;

    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        puts("sandbox-gateway link [--data DIR | --tokens FILE] [--url URL]\n"
             "    [--role viewer|operator|admin]\n"
             "        prints an address that signs a browser in to the console,"
             " once, within\n        60 s; --url is the console's, needed with"
             " --tokens");
        return GW_EXIT_OK;
    }

    if (!gw_link_args(&a, argc, argv)
        || !gw_link_place(&a, tokens, url, envp))
    {
        return GW_EXIT_USAGE;
    }

    text = gw_tokens_load(tokens, &all, &len);

    if (text == NULL) {
        return GW_EXIT_FAILED;
    }

    free(text);

    c.made_us = sb_now_us();
    c.row = gw_link_row(&all, &c.role, a.role, c.made_us);

    if (c.row == NULL) {
        sb_tokens_free(&all);
        gw_fail("link: %s holds no token that a session%s%s could stand for;"
                " add one with sandbox-gateway token add.", tokens,
                a.role ? " with the role " : "", a.role ? a.role : "");
        return GW_EXIT_FAILED;
    }

    sb_code_make(code, &c);
    sb_tokens_free(&all);

    printf("%s#code=%s\n", url, code);

    return GW_EXIT_OK;
}


static bool
gw_link_args(gw_link_args_t *a, int argc, char **argv)
{
    int          i;
    size_t       n;
    unsigned     k;

    const struct {
        const char   *name;
        const char  **value;
    } texts[] = {
        { "--data", &a->data },
        { "--tokens", &a->tokens },
        { "--role", &a->role },
        { "--url", &a->url },
    };

    memset(a, 0, sizeof(*a));

    for (i = 1; i < argc; i++) {

        for (k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
            n = strlen(texts[k].name);

            if (strncmp(argv[i], texts[k].name, n) != 0) {
                continue;
            }

            if (argv[i][n] == '=') {
                *texts[k].value = argv[i] + n + 1;
                break;
            }

            if (argv[i][n] == '\0' && i + 1 < argc) {
                *texts[k].value = argv[++i];
                break;
            }
        }

        if (k == sizeof(texts) / sizeof(texts[0])
            || (*texts[k].value)[0] == '\0')
        {
            return gw_fail("link: \"%s\" is no option, or lacks its value; see"
                           " sandbox-gateway link --help.", argv[i]);
        }
    }

    if (a->role && strcmp(a->role, "viewer") != 0
        && strcmp(a->role, "operator") != 0 && strcmp(a->role, "admin") != 0)
    {
        return gw_fail("link: --role is viewer, operator or admin, not"
                       " \"%s\".", a->role);
    }

    if (a->tokens && (a->data || a->url == NULL)) {
        return gw_fail("link: --tokens FILE goes with --url URL, and not with"
                       " --data.");
    }

    return true;
}


/* The token file, and the console's address as the gateway wrote it at its
 * start. */

static bool
gw_link_place(const gw_link_args_t *a, char *tokens, char *url, char **envp)
{
    char          *argv[] = { (char *) "sandbox-gateway", NULL };
    char           path[GW_PATH_MAX + 16];
    char          *text;
    size_t         len;
    gw_place_t     place;
    gw_options_t   opt;

    if (a->url && strlen(a->url) >= GW_URL_MAX - 1) {
        return gw_fail("link: --url is too long.");
    }

    if (a->tokens) {
        if (strlen(a->tokens) >= GW_PATH_MAX) {
            return gw_fail("link: --tokens is too long.");
        }

        strcpy(tokens, a->tokens);

    } else {
        if (!gw_options_read(&opt, 1, argv, envp)) {
            return false;
        }

        if (a->data) {
            opt.data = a->data;
        }

        if (!gw_place_name(&place, &opt)) {
            return false;
        }

        strcpy(tokens, place.tokens);
    }

    if (a->url) {
        snprintf(url, GW_URL_MAX, "%s%s", a->url,
                 a->url[strlen(a->url) - 1] == '/' ? "" : "/");
        return true;
    }

    snprintf(path, sizeof(path), "%s/" GW_CONSOLE_FILE, place.data);
    text = gw_read_file(path, GW_URL_MAX - 1, &len);

    if (text == NULL) {
        return gw_fail("link: no gateway has run with %s yet; name its --data,"
                       " or the console's address with --url.", place.data);
    }

    snprintf(url, GW_URL_MAX, "%.*s", (int) strcspn(text, "\n"), text);
    free(text);

    return true;
}


/* The token that a session stands for: one for all sandboxes rather than for
 * some, and one that is no more than what is wanted. */

static const sb_token_t *
gw_link_row(const sb_tokens_t *all, sb_role_e *role, const char *wanted,
    uint64_t now_us)
{
    size_t             i;
    const sb_token_t  *t, *best;

    *role = SB_ROLE_ADMIN;

    if (wanted) {
        *role = strcmp(wanted, "viewer") == 0 ? SB_ROLE_VIEWER
                : strcmp(wanted, "operator") == 0 ? SB_ROLE_OPERATOR
                : SB_ROLE_ADMIN;
    }

    best = NULL;

    for (i = 0; i < all->n; i++) {
        t = &all->items[i];

        if ((t->expires_us && t->expires_us <= now_us)
            || (wanted && t->role < *role))
        {
            continue;
        }

        if (best == NULL
            || (best->sandboxes[0] && !t->sandboxes[0])
            || (!best->sandboxes[0] == !t->sandboxes[0]
                && (wanted ? t->role < best->role : t->role > best->role)))
        {
            best = t;
        }
    }

    if (best && best->role < *role) {
        *role = best->role;
    }

    return best;
}
