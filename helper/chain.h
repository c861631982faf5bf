/*
 * The chain of a history file (docs/history.md, "Chain"): what was recorded can
 * be shown to be what is there.  One entry for the beginning of a record, for
 * each batch of its output, for its end, for a gap, for what was purged; each
 * holds the hash of the one before:
 *
 *     hash = SHA-256(hash of entry n - 1, seq (8 bytes, big-endian), kind,
 *                    canonical JSON)
 *
 * The JSON of a beginning and of an end is that of the rows as they stand in the
 * file: those who verify read them there, those who write have them at hand
 * (chain_rows.c), or read them as well.
 * That of other kinds is kept beside the hash, as `detail`.
 *
 * Entries are noted while rows are written and made in the same transaction,
 * by store_commit().
 */

#ifndef CHAIN_H_INCLUDED
#define CHAIN_H_INCLUDED

#include "bulk.h"
#include "digest.h"
#include "keys.h"

#define CHAIN_HASH      32
/* of the JSON of one entry: a request, a result, 1,024 files */
#define CHAIN_TEXT_MAX  (64u * 1024 * 1024)

typedef enum {
    CHAIN_FILE,         /* whose history this is: the first entry */
    CHAIN_BEGIN,        /* what never changes of a record */
    CHAIN_OUTPUT,       /* a batch of output */
    CHAIN_END,          /* the rest of it, with its side rows */
    CHAIN_GAP,          /* of an event that says that records were lost */
    CHAIN_PURGE,        /* records were deleted by a rule, or moved into the
                           file of their sandbox */
    CHAIN_NOTE,         /* detail only: something else about a record */
    CHAIN_KINDS
} chain_kind_e;

/* "begin" and so on; chain_kind() gives CHAIN_KINDS for another text. */
const char *chain_kind_name(chain_kind_e kind);
chain_kind_e chain_kind(sb_str_t name);

/* --- content ------------------------------------------------------------ */

/* Statements of one connection, prepared as they are needed. */
typedef struct {
    sqlite3_stmt  *st[12];
} chain_stmts_t;

void chain_stmts_free(chain_stmts_t *s);

/*
 * Writes the JSON of CHAIN_FILE, CHAIN_BEGIN, CHAIN_END or CHAIN_GAP (the
 * event's id; NULL for a file) into `out`, emptied first, and the record's
 * number into *seq.  SQLITE_NOTFOUND when the event is not there.
 */
int chain_content(sqlite3 *db, chain_stmts_t *s, chain_kind_e kind,
    const char *event, sb_buf_t *out, int64_t *seq);
/* SHA-256 of that of CHAIN_FILE: another one for each file that was made. */
int chain_file(sqlite3 *db, chain_stmts_t *s, uint8_t digest[CHAIN_HASH]);
/* Only the number. */
int chain_seq(sqlite3 *db, chain_stmts_t *s, const char *event, int64_t *seq);

/* Which output a CHAIN_OUTPUT entry speaks of; last < first: none. */
typedef struct {
    int64_t  first[2];      /* chunk_index, per stream: stdout, stderr */
    int64_t  last[2];
    int64_t  ord_first;     /* gateway_output.ord */
    int64_t  ord_last;
} chain_output_t;

/* Digest of those chunks and of their order and times, as they stand there. */
int chain_output_digest(sqlite3 *db, chain_stmts_t *s, const char *event,
    const chain_output_t *o, uint8_t digest[CHAIN_HASH]);
/* The detail of such an entry, and what it says (SB_ERROR: not one). */
sb_rc_t chain_output_detail(sb_buf_t *out, const chain_output_t *o,
    const uint8_t digest[CHAIN_HASH]);
sb_rc_t chain_output_read(sb_str_t detail, chain_output_t *o,
    uint8_t digest[CHAIN_HASH]);

/* Parts of these texts: numbers, bytes as their digest and size, and what the
 * digest takes of a chunk in front of its data. */
sb_rc_t chain_int(sb_buf_t *out, int64_t v);
sb_rc_t chain_blob(sb_buf_t *out, const void *p, size_t n);
void chain_output_chunk(sb_sha256_t *h, const char *stream, int64_t index,
    int64_t original, const char *created, const char *encoding,
    sb_str_t data);
/* "stdout", "stderr" */
const char *chain_stream_name(int stream);

/* hash of an entry; `hash` may be `before`. */
void chain_hash(uint8_t hash[CHAIN_HASH], const uint8_t before[CHAIN_HASH],
    int64_t seq, chain_kind_e kind, sb_str_t json);

/* --- writing ------------------------------------------------------------ */

/* Where the rows of a record stand in the queue of the transaction. */
typedef struct {
    size_t   event, record, wire;
    size_t   command;           /* if it has one */
    bool     has_command;
    size_t   operation;         /* file_operations, if there are files */
    size_t   file, nfiles;
    size_t   chunk, nchunks;    /* of output */
    size_t   run, nruns;
    int64_t  seq;               /* number of the record */
    uint64_t clears;            /* bulk_clears() when the event was queued */
} chain_rows_t;

typedef struct {
    chain_kind_e    kind;
    char            event[37];
    chain_output_t  output;
    sb_buf_t        detail;

    bool            queued;         /* the rows below tell its content */
    chain_rows_t    rows;
    bool            told;           /* they did: it stands in chain_t.text */
    size_t          from, len;
} chain_note_t;

/* Part of an open file of the store. */
typedef struct {
    int64_t         n;              /* of the last entry; 0: none */
    uint8_t         hash[CHAIN_HASH];
    bool            news;           /* entries since the last head was signed */
    int64_t         kept;           /* no record that is still there has an
                                       entry in front of that one */
    int64_t         wait;           /* the chain is not cut before that one */
    int64_t         proven;         /* see heads.h */
    chain_note_t   *notes;          /* of the transaction at hand */
    size_t          nnotes, alloc;
    size_t          taken;          /* of these, chain_take() has seen */
    sb_buf_t        text;
    bool            failed;         /* a note had no memory */
    chain_stmts_t   stmts;
} chain_t;

/* Reads where the chain of a file stands. */
int chain_load(chain_t *c, sqlite3 *db);
/* Statements and notes. */
void chain_free(chain_t *c);

/* Notes an entry; without memory chain_write() fails.  chain_add() is for the
 * kinds that have more to say. */
chain_note_t *chain_add(chain_t *c, chain_kind_e kind,
    const uint8_t event[16]);
void chain_note(chain_t *c, chain_kind_e kind, const uint8_t event[16]);
void chain_note_output(chain_t *c, const uint8_t event[16],
    const chain_output_t *o);
/*
 * The same for a beginning, output or end (`o`: of output, else NULL) whose rows
 * are all in the queue: chain_take() has its content from there, and nothing is
 * read back.  chain_changes() says that they will be changed after that: the end
 * of that event, noted last, is read from the file.
 */
void chain_note_rows(chain_t *c, chain_kind_e kind, const uint8_t event[16],
    const chain_rows_t *rows, const chain_output_t *o);
void chain_changes(chain_t *c, const uint8_t event[16]);
/* Behind bulk_insert() and in front of bulk_clear(). */
void chain_take(chain_t *c, const bulk_t *bulk);

/* CHAIN_NOTE, with canonical JSON of its own. */
void chain_note_detail(chain_t *c, const uint8_t event[16], sb_str_t detail);
/* CHAIN_NOTE of a row of gateway_terminal: its `n`, and the SHA-256 of its `at`
 * and `events`, one behind the other. */
void chain_note_terminal(chain_t *c, const uint8_t event[16], int64_t n,
    const uint8_t digest[CHAIN_HASH]);

/* How many are noted; chain_back() forgets those noted since (a savepoint). */
size_t chain_mark(const chain_t *c);
void chain_back(chain_t *c, size_t mark);

/* The JSON of an entry from rows that were inserted and are still queued, added
 * to `out`. */
sb_rc_t chain_rows_text(const bulk_t *b, chain_kind_e kind,
    const chain_rows_t *rows, const chain_output_t *o, sb_buf_t *out);

/*
 * Makes the entries noted and queues their rows; inside the transaction, behind
 * all rows of it.  `records` is the number of the file's last record.  What the
 * chain is meanwhile counts when chain_done() says that it was committed.
 */
int chain_write(chain_t *c, sqlite3 *db, bulk_t *bulk, int64_t records);
void chain_done(chain_t *c);
/* The transaction did not happen; chain_load() is to follow. */
void chain_forget(chain_t *c);

/*
 * Purging: marks the entries of events that are about to be deleted, inside the
 * transaction that deletes them and before the rows go, and notes the
 * CHAIN_PURGE entry that accounts for them.  `ids` are event ids, `rule` names
 * what asked for it ("ttl", "capacity" ...), `at` is the time.  What can be
 * forgotten at the beginning of the chain is deleted.  Nothing else may be noted
 * in the same transaction.  With a key the entry is signed: anybody could write
 * one that accounts for what they took out.
 */
int chain_purge(chain_t *c, sqlite3 *db, const keys_t *keys,
    const char *const *ids, size_t n, const char *rule, const char *at);

#endif /* CHAIN_H_INCLUDED */
