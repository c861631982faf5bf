#include "history_people.h"
#include "history_export.h"
#include "history_list.h"
#include "history_text.h"

#include <stdio.h>


static const struct {
    const char  *name;
    int        (*run)(const history_where_t *where, int argc, char **argv);
} history_people[] = {
    { "list", history_list_run },
    { "show", history_show_run },
    { "output", history_output_run },
    { "cast", history_cast_run },
    { "versions", history_versions_run },
    { "content", history_content_run },
    { "diff", history_diff_run },
    { "tail", history_tail_run },
    { "export", history_export_run }
};

#define HISTORY_PEOPLE  (sizeof(history_people) / sizeof(history_people[0]))


bool
history_people_find(const char *name)
{
    for (size_t i = 0; i < HISTORY_PEOPLE; i++) {
        if (strcmp(history_people[i].name, name) == 0) {
            return true;
        }
    }

    return false;
}


int
history_people_run(const char *name, const history_where_t *where, int argc,
    char **argv)
{
    for (size_t i = 0; i < HISTORY_PEOPLE; i++) {
        if (strcmp(history_people[i].name, name) == 0) {
            return history_people[i].run(where, argc, argv);
        }
    }

    return 2;
}


int
history_options(history_parse_t *parse, const char *name, const char *help,
    const history_where_t *given, history_where_t *where, int argc,
    char **argv)
{
    *where = *given;

    if (!history_args_parse(parse, argc, argv)) {
        history_say("%s: %s (try \"sandbox-history %s --help\")", name,
                    parse->why, name);
        return 2;
    }

    if (parse->help) {
        fputs(help, stdout);
        fputs("  --data DIR             data directory of the gateway, or\n"
              "  --history DIR          its history directory\n", stdout);
        return 0;
    }

    for (int i = 0; parse->args[i].name != NULL; i++) {
        if (strcmp(parse->args[i].name, "--data") == 0 && parse->values[i].n) {
            where->data = parse->values[i].text[0];
            where->history = NULL;
        }

        if (strcmp(parse->args[i].name, "--history") == 0
            && parse->values[i].n)
        {
            where->history = parse->values[i].text[0];
        }
    }

    return -1;
}


int
history_single_run(const history_single_t *single, history_value_t *values,
    const history_where_t *given, int argc, char **argv)
{
    int               rc;
    bool              ok;
    const char       *text;
    history_place_t   place;
    history_where_t   where;
    history_parse_t   parse = {
        .args = single->args, .values = values, .rest = &text, .max = 1
    };

    text = NULL;

    rc = history_options(&parse, single->name, single->help, given, &where,
                         argc, argv);
    if (rc != -1) {
        return rc;
    }

    if (text == NULL) {
        history_say("%s: of which operation? give ID or SANDBOX/SEQ",
                    single->name);
        return 2;
    }

    if (!history_place_open(&place, &where)) {
        return 1;
    }

    ok = single->run(&place, text, values);
    history_place_close(&place);

    return ok ? 0 : 1;
}
