/* `sandbox-gateway link`: an address that signs in to the console once. */

#include "gateway.h"
#include "args.h"
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


static const gw_arg_t  gw_link_table[] = {

    { "data", "DIR", "DATA of the gateway", offsetof(gw_link_args_t, data),
      NULL },

    { "tokens", "FILE", "its token file, in place of --data",
      offsetof(gw_link_args_t, tokens), NULL },

    { "role", "ROLE", "viewer, operator or admin (the highest there is)",
      offsetof(gw_link_args_t, role), NULL },

    { "url", "URL", "the console's address, needed with --tokens",
      offsetof(gw_link_args_t, url), NULL },

    { NULL, NULL, NULL, 0, NULL }
};

static const gw_command_t  gw_link_command = {
    "link", "Prints an address that signs a browser in to the console, once,"
    " within 60 s.", gw_link_table, NULL, 0, false
};


static bool gw_link_sound(const gw_link_args_t *a);
static bool gw_link_place(const gw_link_args_t *a, char *tokens, char *url,
    char **envp);
static const sb_token_t *gw_link_row(const sb_tokens_t *all, sb_role_e *role,
    const char *wanted, uint64_t now_us);


int
gw_link_main(int argc, char **argv, char **envp)
{
    int              rc;
    char             tokens[GW_PATH_MAX], url[GW_URL_MAX];
    char             code[SB_ENDPOINT_TOKEN_MAX];
    char            *text;
    size_t           len;
    sb_code_t        c;
    sb_tokens_t      all;
    gw_link_args_t   a;

    memset(&a, 0, sizeof(a));

    rc = gw_args_read(&gw_link_command, &a, argc, argv);

    if (rc != GW_ARGS_READ) {
        return rc;
    }

    if (!gw_link_sound(&a) || !gw_link_place(&a, tokens, url, envp)) {
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
gw_link_sound(const gw_link_args_t *a)
{
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
