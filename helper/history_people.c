#include "history_people.h"
#include "history_list.h"


static const struct {
    const char  *name;
    int        (*run)(const history_where_t *where, int argc, char **argv);
} history_people[] = {
    { "list", history_list_run },
    { "show", history_show_run },
    { "output", history_output_run },
    { "tail", history_tail_run }
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
