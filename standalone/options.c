/* Options of sandbox-gateway: flags, environment, .env. */

#include "options.h"
#include "args.h"


static bool gw_flags_read(gw_options_t *opt, bool *set, int argc,
    char **argv);


bool
gw_options_read(gw_options_t *opt, int argc, char **argv, char **envp)
{
    bool  set[GW_OPTIONS_MAX] = { false };

    memset(opt, 0, sizeof(*opt));

    return gw_flags_read(opt, set, argc, argv)
           && (opt->help || opt->version
               || (gw_environ_read(opt, set, envp)
                   && gw_dotenv_read(opt, set)));
}


static bool
gw_flags_read(gw_options_t *opt, bool *set, int argc, char **argv)
{
    int                 i;
    const char         *name, *value;
    const gw_option_t  *o;

    for (i = 1; i < argc; i++) {

        if (strncmp(argv[i], "--", 2) != 0 || argv[i][2] == '\0') {
            if (gw_arg_help(argv[i])) {
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

        if (value || o->kind != GW_BOOL) {
            value = gw_arg_value(value ? value : "", &i, argc, argv);

            if (value == NULL) {
                return gw_fail("--%s needs a value; one that begins with"
                               " \"--\" stands behind \"=\".", o->name);
            }
        }

        if (!gw_option_set(opt, o, value, "--")) {
            return false;
        }

        set[o - gw_table] = true;
    }

    return true;
}
