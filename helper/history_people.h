/* The commands for people: list, show, output, versions, tail and so on. */

#ifndef HISTORY_PEOPLE_H_INCLUDED
#define HISTORY_PEOPLE_H_INCLUDED

#include "sb.h"

/* Where the command line says that histories are; NULL: not said. */
typedef struct {
    const char  *data;
    const char  *history;
} history_where_t;

bool history_people_find(const char *name);

/* Runs one with the arguments behind its name; returns the exit code: 0, 1
 * after a sentence on stderr, 2 with usage on stderr. */
int history_people_run(const char *name, const history_where_t *where,
    int argc, char **argv);

#endif /* HISTORY_PEOPLE_H_INCLUDED */
