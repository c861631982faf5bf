/*
 * A history directory: where it is, which sandboxes have a file in it, and
 * connections for reading them.
 */

#ifndef HISTORY_PLACE_H_INCLUDED
#define HISTORY_PLACE_H_INCLUDED

#include "history_db.h"
#include "history_people.h"

#include <limits.h>
#include <sys/stat.h>

#define HISTORY_FILE       "history.sqlite3"

/* Connections kept open at a time. */
#define HISTORY_OPEN_MAX   256

/* The history of one sandbox. */
typedef struct {
    char        *dir;           /* name below the history directory */
    char        *id;            /* sandbox id; dir until the file is open */
    char        *name;          /* display name, or NULL */
    sqlite3     *db;            /* NULL: not open */
    uint64_t     used;          /* for closing the one not used for longest */
    bool         broken;        /* could not be read; said once */

    /* tail -f */
    int64_t      change;        /* last history_changes.seq seen */
    struct stat  main;          /* the file and its -wal as last looked at */
    struct stat  wal;
} history_box_t;

typedef struct {
    char             root[PATH_MAX];
    char             data[PATH_MAX];    /* the gateway's data directory, or
                                           where it would be */
    history_box_t  **boxes;     /* _gateway first, then by name */
    size_t           n;
    size_t           cap;
    size_t           open;
    uint64_t         clock;
    bool             incomplete;    /* something could not be read */
} history_place_t;

/* Finds the directory, takes on its owner when root runs us, and lists it.
 * False after a sentence. */
bool history_place_open(history_place_t *place, const history_where_t *where);
void history_place_close(history_place_t *place);

/* Looks for sandboxes that are new since; false after a sentence when the
 * directory cannot be read any more. */
bool history_place_scan(history_place_t *place);

/*
 * The connection of a sandbox, opened when it is not.  All tables of the
 * gateway can be named in queries: those that the file has not are empty
 * views.  NULL when it cannot be read (said once; place->incomplete is set) or
 * has no tables yet.
 * A connection stays open only until HISTORY_OPEN_MAX others were asked for.
 */
sqlite3 *history_place_db(history_place_t *place, history_box_t *box);
/* The path of its file. */
void history_place_path(const history_place_t *place, const history_box_t *box,
    char path[PATH_MAX]);
/* Says why a query on it failed. */
void history_place_broken(history_place_t *place, history_box_t *box,
    const history_error_t *err);
/* Closes the connection (the file was replaced). */
void history_place_drop(history_place_t *place, history_box_t *box);

/* The sandbox that the user means: its id, a display name, or the beginning of
 * an id that fits one only.  NULL after a sentence. */
history_box_t *history_place_find(history_place_t *place, const char *text);

/* A record that the user means by an id, the beginning of one (6 characters at
 * least) or SANDBOX/SEQ.  False after a sentence.  `id` receives the event id
 * (HISTORY_ID_MAX bytes with the NUL). */
#define HISTORY_ID_MAX  256
bool history_place_record(history_place_t *place, const char *text,
    history_box_t **box, char *id);

#endif /* HISTORY_PLACE_H_INCLUDED */
