/* Which state of a file the history holds; parts of versions.c. */

#ifndef VERSIONS_FIND_H_INCLUDED
#define VERSIONS_FIND_H_INCLUDED

#include "contents.h"
#include "facts.h"
#include "operation.h"
#include "rows.h"

typedef enum {
    VERSION_UNKNOWN = 0,
    VERSION_ABSENT,         /* there is no such file */
    VERSION_KNOWN
} version_state_e;

typedef struct {
    version_state_e  state;
    bool             assumed;       /* it may have changed unseen */
    int64_t          size;
    char             sha256[CONTENTS_HEX + 1];
} version_t;

#define VERSIONS_DIRS  8192         /* directories above its files, looked at for
                                       one operation */

/* The operation that asks. */
typedef struct {
    char     id[37];
    int64_t  seq;
    char     begun[32];             /* when it could first change files */
    bool     parts;                 /* gateway_parts holds some of it */

    unsigned dirs;                  /* that were looked at */
    char     quiet[4096];           /* nothing became of this one, nor of those
                                       above it, ... */
    char     quiet_since[37];       /* ... since that record */
} versions_self_t;

int versions_self(store_db_t *db, const uint8_t id[16], versions_self_t *self);
/* The operation's row of lib's table, or NULL. */
int versions_type(store_db_t *db, const uint8_t id[16], const sb_op_t **op);

/* Was the operation turned down before it did anything? */
bool versions_refused(const facts_t *t);

/* How file number n of the operation, of that path, stood before it. */
int versions_find(store_db_t *db, versions_self_t *self, const char *path,
    int64_t n, version_t *out);

/* The same through a connection of somebody else's, which may only read. */
int versions_find_in(sqlite3 *db, versions_self_t *self, const char *path,
    int64_t n, version_t *out);

#endif /* VERSIONS_FIND_H_INCLUDED */
