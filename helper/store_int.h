/* What store*.c share. */

#ifndef STORE_INT_H_INCLUDED
#define STORE_INT_H_INCLUDED

#include "store.h"

#define STORE_PATH_MAX  1024
#define STORE_UNTIDY    65536       /* remembered at most */

struct store_s {
    char        *base;
    const char  *vfs;
    unsigned     handles;
    unsigned     awake;             /* of the open files, see store_rest.c */
    int          wal_most;          /* pages of a log, then nothing is written */
    bool         gateway_lost;      /* that of _gateway was set aside */
    table_t      open;
    bulk_t      *bulk;
    store_db_t  *first, *last;
    table_t      untidy;            /* closed with a log, by directory */
    uint8_t     *image;             /* of a new file; sqlite3_free() */
    size_t       image_size;
    heads_t       *heads;           /* or NULL */
    store_news_pt  news;
    void        *news_data;
};

/* Makes a file with all tables and no rows.  Returns an SQLite code. */
int store_make(store_t *s, const char *path);
void store_make_free(store_t *s);

/* Ends all statements of a file; they are prepared again when they are needed. */
void store_free_stmts(store_db_t *db);
/* Puts to rest what is awake beyond STORE_AWAKE. */
void store_rest(store_t *s);
/* A file is used. */
void store_wake(store_t *s, store_db_t *db);

/* Remembers a directory; false when there is no room. */
bool store_untidy_add(store_t *s, const char *dir);
void store_untidy_free(store_t *s);

#endif /* STORE_INT_H_INCLUDED */
