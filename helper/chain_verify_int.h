/* Verifying a chain: what its parts share. */

#ifndef CHAIN_VERIFY_INT_H_INCLUDED
#define CHAIN_VERIFY_INT_H_INCLUDED

#include "chain_verify.h"

/* One entry of the chain as it stands in the file. */
typedef struct {
    int64_t        n;
    const char    *event;       /* "" without */
    chain_kind_e   kind;
    sb_str_t       detail;
    int64_t        purged;      /* 0: not */
    const uint8_t *hash;
} verify_entry_t;

/* Lines of the heads of a directory, counted from 1. */
typedef struct {
    int64_t  from;          /* those of this file stand behind it */
    int64_t  to;            /* ... up to that one */
    int64_t  ended;         /* the last that ends a file of the directory */
    bool     read;
    bool     forged;        /* one that ends a file is not signed right */
    bool     gone;          /* the file is older than that end, which is not
                               its own: those of this file turned away */
    char     ended_at[40];
} verify_lines_t;

/* Of which entries the heads of this file say that they are proven. */
typedef struct {
    struct {
        int64_t  from;      /* behind that one */
        int64_t  to;
    }       *ranges;
    size_t   n, alloc;
    int64_t  last;          /* the last head speaks of that one */
    bool     on;            /* and of what follows, too */
    bool     failed;
} verify_proven_t;

typedef enum {
    VERIFY_PROVEN,
    VERIFY_EARLIER,     /* an earlier version signed it as it stands there */
    VERIFY_UNSIGNED     /* nobody did yet, and that was an earlier one */
} verify_proof_e;

typedef struct {
    sqlite3              *db;
    const verify_conf_t  *conf;
    verify_t             *v;
    chain_stmts_t         stmts;
    sqlite3_stmt         *last;     /* entry of an event before one */
    sqlite3_stmt         *purge;    /* entries that a purge took */
    sqlite3_stmt         *at;       /* entry by number */
    sqlite3_stmt         *terminal; /* row of a terminal */
    sb_buf_t              text;
    uint8_t               hash[CHAIN_HASH];     /* of the entry before */
    int64_t               n;        /* its number */
    int64_t               base;     /* the chain begins behind it */
    int64_t               seq;      /* of the last record begun */
    bool                  holes;    /* purged records since then */
    int64_t               before;   /* records older than the chain */
    FILE                 *heads;    /* one and the same, should it turn */
    int                   heads_errno;
    size_t                heads_bytes;
    verify_lines_t        lines;    /* those of this file */
    verify_proven_t       proven;
    bool                  unsure;   /* a purge that nothing speaks for yet */
    uint8_t               file[CHAIN_HASH];     /* as the last purge has it */
    uint8_t               mine[CHAIN_HASH];     /* as it is */
} verify_ctx_t;

/* What they return, with what it says in `verify_t`. */
verify_rc_e verify_fault(verify_ctx_t *c, const char *fault, int64_t seq,
    const char *event);
verify_rc_e verify_unable(verify_ctx_t *c, const char *what);
verify_rc_e verify_sqlite(verify_ctx_t *c);

/* First column of the first row as a number; `missing` without a row. */
int verify_number(sqlite3 *db, const char *sql, const char *event,
    int64_t missing, int64_t *v);

/* The hash of an entry whose JSON is kept beside it. */
verify_rc_e verify_detail(verify_ctx_t *c, const verify_entry_t *e,
    int64_t seq);

/* --- chain_verify_purge.c: what purges took, and where the chain begins ---- */

verify_rc_e verify_purge(verify_ctx_t *c, const verify_entry_t *e);
verify_rc_e verify_base(verify_ctx_t *c);

/* --- chain_verify_rows.c: rows that the chain does not know ---------------- */

verify_rc_e verify_foreign(verify_ctx_t *c);

/* --- chain_verify_heads.c: the chain against what is signed ---------------- */

/* Reads which heads are of this file, and what they prove; what is wrong with
 * them is told by verify_heads().  False without memory. */
bool verify_heads_find(verify_ctx_t *c);
verify_proof_e verify_proof(const verify_ctx_t *c, int64_t n);
verify_rc_e verify_heads(verify_ctx_t *c);

#endif /* CHAIN_VERIFY_INT_H_INCLUDED */
