/*
 * New files.  The tables are made once, in memory; a new file is a copy of
 * that image, which takes its name when it is complete: no reader ever meets
 * half a schema, and forty DDL statements are not run for each sandbox.
 */

#include "store_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>


/* Offsets of "write version" and "read version" in the header of an SQLite
 * file; 2 is WAL. */
#define STORE_VERSION_AT  18


static int
store_image(store_t *s)
{
    int             rc;
    sqlite3        *db;
    sqlite3_int64   n;

    if (s->image) {
        return SQLITE_OK;
    }

    rc = sqlite3_open(":memory:", &db);

    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db, "pragma auto_vacuum = incremental", NULL, NULL,
                          NULL);
    }

    if (rc == SQLITE_OK) {
        rc = schema_create(db);
    }

    if (rc == SQLITE_OK) {
        s->image = sqlite3_serialize(db, "main", &n, 0);

        if (s->image == NULL || n < 512) {
            rc = SQLITE_NOMEM;

        } else {
            s->image_size = (size_t) n;
            s->image[STORE_VERSION_AT] = 2;
            s->image[STORE_VERSION_AT + 1] = 2;
        }
    }

    (void) sqlite3_close(db);

    return rc;
}


int
store_make(store_t *s, const char *path)
{
    int      fd, rc;
    char     new[STORE_PATH_MAX + 8];
    ssize_t  n;

    rc = store_image(s);
    if (rc != SQLITE_OK) {
        return rc;
    }

    (void) snprintf(new, sizeof(new), "%s.new", path);

    fd = open(new, O_WRONLY|O_CREAT|O_TRUNC|O_NOFOLLOW|O_CLOEXEC, 0640);
    if (fd == -1) {
        return SQLITE_CANTOPEN;
    }

    n = write(fd, s->image, s->image_size);
    close(fd);

    if (n != (ssize_t) s->image_size) {
        (void) unlink(new);
        return SQLITE_FULL;
    }

    if (rename(new, path) == -1) {
        (void) unlink(new);
        return SQLITE_CANTOPEN;
    }

    return SQLITE_OK;
}


void
store_make_free(store_t *s)
{
    sqlite3_free(s->image);
    s->image = NULL;
}
