/*
 * sandbox-history: reads the histories of sandboxes.  Two faces: the command
 * line of the published Python helper, for programs (--database FILE and its
 * subcommands), and list, show, output and tail, for people.
 */

#include "history_api.h"
#include "history_memory.h"
#include "history_people.h"
#include "history_text.h"
#include "history_remote.h"
#include "history_verify.h"

#include <stdio.h>
#include <stdlib.h>


enum {
    MAIN_DATABASE = 0, MAIN_DATA, MAIN_HISTORY, MAIN_VERSION
};

static const history_arg_t  history_main_args[] = {
    { "--database", 0, HISTORY_ARG_TEXT, false, false, NULL },
    { "--data", 0, HISTORY_ARG_TEXT, false, false, NULL },
    { "--history", 0, HISTORY_ARG_TEXT, false, false, NULL },
    { "--version", 0, HISTORY_ARG_FLAG, false, false, NULL },
    { .name = NULL }
};


static const char  history_main_help[] =
    "usage: sandbox-history [--data DIR | --history DIR] COMMAND ...\n"
    "       sandbox-history [--database FILE] SUBCOMMAND ...\n"
    "\n"
    "For people; the history of all sandboxes of a gateway:\n"
    "  list [SANDBOX]         operations, the newest last\n"
    "  show ID|SANDBOX/SEQ    one operation whole\n"
    "  output ID|SANDBOX/SEQ  what a command wrote, byte for byte\n"
    "  cast ID|SANDBOX/SEQ    a terminal, or what a command wrote, to be played\n"
    "  versions SANDBOX PATH  how a file changed over time\n"
    "  content ID|SANDBOX/SEQ what stood in a file after it, or before\n"
    "  diff ID|SANDBOX/SEQ    what it changed in a file; of two: between them\n"
    "  tail [-f] [SANDBOX]    the last operations, and new ones as they come\n"
    "  verify SANDBOX         is it what was recorded?\n"
    "  hold SANDBOX           nothing of it is deleted any more, until\n"
    "  release SANDBOX        its limits are to count again\n"
    "  export [SANDBOX]       all that pass a filter, as JSON lines, CSV or HTML\n"
    "  --data DIR     data directory of the gateway (default:"
    " $SANDBOX_GATEWAY_DATA,\n"
    "                 else where sandbox-gateway keeps it)\n"
    "  --history DIR  history directory (default: DATA/history)\n"
    "  \"sandbox-history COMMAND --help\" tells the options of a command.\n"
    "\n"
    "For programs; one history file, as the Python helper of\n"
    "agent-sandbox-backends answers:\n"
    "  --database FILE  (default: " HISTORY_API_DATABASE ")\n";


static void
history_main_usage(void)
{
    fputs(history_main_help, stdout);

    for (const history_command_t *c = history_api_commands; c->name; c++) {
        printf("  %s%s\n", c->name, c->usage);
    }
}


static int history_main(int argc, char **argv);


int
main(int argc, char **argv)
{
    int  status;

    history_memory_watch();

    status = history_main(argc, argv);

    if (status == 0 && history_memory_short()) {
        fputs("sandbox-history: out of memory: what was printed may not be"
              " all, try again when there is more\n", stderr);
        return 1;
    }

    return status;
}


static int
history_main(int argc, char **argv)
{
    int                       first;
    const char               *name;
    history_value_t           values[4];
    history_where_t           where;
    const history_command_t  *command;
    history_parse_t           parse = {
        .args = history_main_args, .values = values, .stop = true
    };

    if (!history_args_parse(&parse, argc - 1, argv + 1)) {
        return history_api_usage(NULL, parse.why);
    }

    if (parse.help) {
        history_main_usage();
        return 0;
    }

    if (values[MAIN_VERSION].n) {
        puts("sandbox-history " SB_VERSION);
        return 0;
    }

    first = parse.nrest + 1;

    if (first >= argc) {
        return history_api_usage(NULL, "the following arguments are required:"
                                       " command (try --help)");
    }

    name = argv[first];
    argc -= first + 1;
    argv += first + 1;

    command = history_api_find(name);

    if (command != NULL) {
        if (values[MAIN_DATA].n || values[MAIN_HISTORY].n) {
            return history_api_usage(command, "this subcommand reads one file:"
                                              " give --database FILE instead of"
                                              " --data or --history");
        }

        return history_api_run(command,
                               values[MAIN_DATABASE].n
                                   ? values[MAIN_DATABASE].text[0]
                                   : HISTORY_API_DATABASE,
                               argc, argv);
    }

    where.data = values[MAIN_DATA].n ? values[MAIN_DATA].text[0] : NULL;
    where.history = values[MAIN_HISTORY].n ? values[MAIN_HISTORY].text[0]
                                           : NULL;

    if (strcmp(name, "verify") == 0) {
        return history_verify_run(values[MAIN_DATABASE].n
                                      ? values[MAIN_DATABASE].text[0] : NULL,
                                  &where, argc, argv);
    }

    if (strcmp(name, "hold") == 0 || strcmp(name, "release") == 0) {
        return history_hold_run(name, values[MAIN_DATABASE].n
                                      ? values[MAIN_DATABASE].text[0] : NULL,
                                where.data, where.history, argc, argv);
    }

    if (history_people_find(name)) {
        if (values[MAIN_DATABASE].n) {
            fprintf(stderr, "sandbox-history: %s reads a whole history"
                            " directory: give --history DIR instead of"
                            " --database\n", name);
            return 2;
        }

        return history_people_run(name, &where, argc, argv);
    }

    char  why[300], safe[200];

    history_text_safe(safe, sizeof(safe), sb_str(name, strlen(name)));

    if (values[MAIN_DATABASE].n == 0) {
        fprintf(stderr, "sandbox-history: there is no command '%s': try list,"
                        " show, output, cast or tail, or --help for all of them\n",
                safe);
        return 2;
    }

    snprintf(why, sizeof(why), "argument command: invalid choice: '%s'"
                               " (try --help)", safe);

    return history_api_usage(NULL, why);
}
