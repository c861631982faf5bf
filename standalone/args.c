/* Command lines of sandbox-gateway: options from a table. */

#include "args.h"

#include <stdio.h>

#define GW_HELP_LEFT  22        /* columns of an option's name */


static const gw_arg_t *gw_arg_find(const gw_arg_t *args, const char *name,
    size_t len);
static void gw_args_help(const gw_command_t *c);


int
gw_args_read(const gw_command_t *c, void *args, int argc, char **argv)
{
    int              i;
    char            *end, *field;
    const char      *arg, *value, **operand;
    const gw_arg_t  *a;

    operand = NULL;

    if (c->operand) {
        operand = (const char **) (void *) ((char *) args + c->operand_at);
    }

    for (i = 1; i < argc; i++) {
        arg = argv[i];

        if (gw_arg_help(arg)) {
            gw_args_help(c);
            return GW_EXIT_OK;
        }

        if (strncmp(arg, "--", 2) != 0) {
            if (operand && *operand == NULL) {
                *operand = arg;
                continue;
            }

            (void) gw_fail("%s: \"%s\" is not expected here; see"
                           " sandbox-gateway %s --help.", c->name, arg,
                           c->name);
            return GW_EXIT_USAGE;
        }

        end = argv[i] + strcspn(arg, "=");
        a = gw_arg_find(c->args, arg + 2, (size_t) (end - argv[i]) - 2);

        if (a == NULL) {
            (void) gw_fail("%s: there is no option %.*s; see sandbox-gateway"
                           " %s --help.", c->name, (int) (end - argv[i]), arg,
                           c->name);
            return GW_EXIT_USAGE;
        }

        field = (char *) args + a->offset;

        if (a->value == NULL) {
            if (*end) {
                (void) gw_fail("%s: --%s takes no value.", c->name, a->name);
                return GW_EXIT_USAGE;
            }

            *(bool *) (void *) field = true;
            continue;
        }

        value = gw_arg_value(end, &i, argc, argv);

        if (value == NULL || (value[0] == '\0' && !c->empty)) {
            (void) gw_fail("%s: --%s needs a value; one that begins with"
                           " \"--\" stands behind \"=\".", c->name, a->name);
            return GW_EXIT_USAGE;
        }

        if (a->take == NULL) {
            *(const char **) (void *) field = value;

        } else if (!a->take(args, value)) {
            return GW_EXIT_USAGE;
        }
    }

    return GW_ARGS_READ;
}


const char *
gw_arg_value(const char *end, int *i, int argc, char **argv)
{
    if (*end == '=') {
        return end + 1;
    }

    if (*i + 1 == argc || strncmp(argv[*i + 1], "--", 2) == 0) {
        return NULL;
    }

    return argv[++*i];
}


bool
gw_arg_help(const char *arg)
{
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}


void
gw_arg_line(const char *name, const char *value, const char *help)
{
    char  left[64];

    snprintf(left, sizeof(left), "--%s%s%s", name, value ? " " : "",
             value ? value : "");

    if (strlen(left) > GW_HELP_LEFT) {
        printf("  %s\n  %-*s  %s\n", left, GW_HELP_LEFT, "", help);

    } else {
        printf("  %-*s  %s\n", GW_HELP_LEFT, left, help);
    }
}


static const gw_arg_t *
gw_arg_find(const gw_arg_t *args, const char *name, size_t len)
{
    for ( /* void */ ; args->name; args++) {
        if (strlen(args->name) == len && memcmp(args->name, name, len) == 0) {
            return args;
        }
    }

    return NULL;
}


static void
gw_args_help(const gw_command_t *c)
{
    const gw_arg_t  *a;

    printf("sandbox-gateway %s [OPTION]...%s%s\n\n%s\n\n", c->name,
           c->operand ? " " : "", c->operand ? c->operand : "", c->about);

    for (a = c->args; a->name; a++) {
        gw_arg_line(a->name, a->value, a->help);
    }
}
