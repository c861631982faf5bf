/* What index*.c share. */

#ifndef INDEX_INT_H_INCLUDED
#define INDEX_INT_H_INCLUDED

#include "history_db.h"
#include "index.h"
#include "table.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define INDEX_FILE      "index.sqlite3"
#define INDEX_VERSION   1

/* Cursors of one table of the full text: what is old goes as a whole. */
#define INDEX_PART_BITS  18
/* Cursors of one row of `spans`: where in the list a time is. */
#define INDEX_SPAN_BITS  12

/* Records of others stand at their time behind this. */
#define INDEX_FOREIGN   (-((int64_t) 1 << 62))
#define INDEX_FOREIGN_PART  (-1)

#define INDEX_CHANGES      512          /* of a file, looked at in one go */
#define INDEX_BATCH        2560         /* records of one transaction */
#define INDEX_BATCH_TEXT   (8 * 1024 * 1024)
#define INDEX_TOUCHES      4096         /* that wait, until all are looked at */
#define INDEX_HANDLES      64           /* history files kept open */
#define INDEX_PATHS        4096         /* of one record */
#define INDEX_HEAD         (64 * 1024)  /* bytes of command, paths, summary */
#define INDEX_READERS      8            /* connections kept for questions */
#define INDEX_TYPES        16           /* lists of types that are merged */
#define INDEX_TERMS        32           /* words and phrases of one q */

enum {
    INDEX_W_TYPE, INDEX_W_STATUS, INDEX_W_SOURCE, INDEX_W_ACTOR_TYPE,
    INDEX_W_ACTOR
};

/* Words with a number of their own: what most records have is left out of
 * indexes. */
#define INDEX_SUCCEEDED  1
#define INDEX_SDK        2
#define INDEX_AGENT      3

/* ops.flags */
#define INDEX_CUT        1              /* more output than INDEX_TEXT */
#define INDEX_NO_UUID    2              /* event_id is a text */

typedef struct index_touch_s  index_touch_t;

struct index_touch_s {
    index_touch_t  *next;
    uint64_t        at_us;
    bool            forget;
    char            dir[STORE_DIR_LEN];
};

/* A history file. */
typedef struct index_box_s  index_box_t;

struct index_box_s {
    table_node_t   node;
    char           dir[STORE_DIR_LEN];
    int64_t        id;              /* in `boxes`; 0: not yet */
    int64_t        ino;             /* of the file that was read */
    int64_t        change;          /* history_changes.seq up to which it was */
    char           change_id[160];  /* of that row */
    bool           dirty;           /* in ix->dirty */
    bool           forget;          /* compare what it still has */
    bool           done;            /* was read to its end */
    bool           seen;            /* by the sweep */
    bool           failing;         /* said so */
    uint64_t       retry_us;
    struct stat    main, wal;       /* as the sweep saw them */
    index_box_t   *next_dirty;

    sqlite3       *db;              /* NULL: closed */
    ino_t          open_ino;
    int64_t        schema;          /* of the tables that the statements know */
    bool           empty;           /* no tables are in it yet */
    sqlite3_stmt  *news, *record, *files, *output;
    index_box_t   *prev, *next;     /* open ones, least recently used first */
};

/* A record on its way into the list. */
typedef struct {
    index_box_t   *box;
    int64_t        pos, ev;
    int64_t        type, status, source, actor_type, actor;
    int64_t        thread, run, correlation;    /* 0: none */
    int64_t        started, duration;           /* -1: none */
    int64_t        exit_code;
    bool           has_exit_code;
    int64_t        flags;
    char           id[129];
    size_t         order;
    size_t         head, nhead;     /* in ix->text */
    size_t         out, nout;
    size_t         paths, npaths;   /* NUL-terminated, one after the other */
    bool           had;             /* is in the list */
    bool           keep_text;       /* so is its text, as it is */
    bool           skip;            /* the same was read again */
} index_doc_t;

typedef struct index_reader_s  index_reader_t;

struct index_reader_s {
    index_reader_t  *next;
    sqlite3         *db;
    unsigned         generation;
    uint8_t          secret[16];
    uint64_t         until_us;      /* monotonic; 0: no bound */
    unsigned         looks;         /* left until then; 0: any number */
};

enum {
    INDEX_S_WORD, INDEX_S_WORD_ADD, INDEX_S_HAVE, INDEX_S_ADD, INDEX_S_SET,
    INDEX_S_FOREIGN, INDEX_S_FREE, INDEX_S_PATH, INDEX_S_PATH_ADD,
    INDEX_S_PATHS_ADD, INDEX_S_PATHS_DEL, INDEX_S_SPAN, INDEX_S_PART,
    INDEX_S_PART_ADD, INDEX_S_PART_DOCS, INDEX_S_PART_DEAD, INDEX_S_BOX_ADD, INDEX_S_BOX_SET,
    INDEX_S_BOX_DEL, INDEX_S_OPS_OF, INDEX_S_OP_DEL, INDEX_S_EVENTS,
    INDEX_S_EVENT,
    INDEX_STMTS
};

#define INDEX_WORDS  4096               /* remembered */

typedef struct {
    table_node_t  node;
    int64_t       id;
    char          key[];
} index_word_t;

struct index_s {
    char             path[1100];
    char            *history;
    const char      *vfs;

    /* the thread's own */
    sqlite3         *db;
    sqlite3_stmt    *stmts[INDEX_STMTS];
    uint8_t          secret[16];        /* of hashes of ids */
    table_t          words;
    int64_t          part_id;           /* whose statement is at hand */
    sqlite3_stmt    *part_stmt;
    uint64_t         part_docs;
    int64_t          max_pos;
    ino_t            ino;

    table_t          boxes;
    index_box_t     *dirty, **dirty_last;
    index_box_t     *first, *last;      /* open ones */
    unsigned         open;
    uint64_t         sweep_us;
    uint64_t         oldest_us;         /* news that waits; 0: none */

    index_doc_t     *docs;
    size_t           ndocs;
    sb_buf_t         text;
    bool             in_tx;
    bool             lost;              /* rows left: parts may be empty */

    /* shared */
    _Atomic(index_touch_t *)  touched;
    atomic_uint      ntouched;
    atomic_bool      all;               /* too many: look at all */
    atomic_bool      pending;
    atomic_bool      stop;
    atomic_ullong    hurry;             /* up to this cursor without pauses */
    atomic_ullong    hurry_us;          /* since then */
    atomic_ullong    waiting_us;        /* since when there is news; 0: none */
    sem_t            wake;

    pthread_t        thread;
    bool             running;
    bool             yields;
    pthread_mutex_t  lock;
    bool             usual;             /* priority, not the lowest */
    pthread_cond_t   news;              /* reached moved */
    uint64_t         reached;
    settled_t        settled;           /* what was missing in front of it */
    index_numbers_t  numbers;
    index_reader_t  *readers;           /* free ones */
    unsigned         nreaders;
    unsigned         generation;        /* of the file */
};

/* --- index_db.c: the file ------------------------------------------------- */

/* Registers our tokenizer. */
int index_tokenizer(sqlite3 *db);
/* Opens the index for writing; what cannot be used is made anew.  False: not
 * possible now (it is in the log). */
bool index_db_open(index_t *ix);
void index_db_close(index_t *ix);
/* Removes the file and makes a new one. */
bool index_db_anew(index_t *ix, const char *why);
/* Is it a fault of the file rather than of the machine? */
bool index_db_broken(int rc);
/* A prepared statement of the writer, reset; NULL on error. */
sqlite3_stmt *index_stmt(index_t *ix, unsigned n, const char *sql);
int index_run(sqlite3_stmt *st);

/* The number of a word, made if need be; 0 on error. */
int64_t index_word(index_t *ix, int kind, sb_str_t text);
void index_forget_words(index_t *ix);
/* What stands for an id in the list; 0 for none. */
int64_t index_hash(const uint8_t secret[16], sb_str_t text);
/* Reads the secret of the file. */
int index_secret(sqlite3 *db, uint8_t secret[16]);

/* The name of the table of a part. */
void index_part_name(char dst[32], int64_t part);
int64_t index_part(int64_t pos);

/* --- index_write.c: into the file ------------------------------------------- */

int index_begin(index_t *ix);
/* Writes the records at hand and how far their files were read; commits. */
int index_commit(index_t *ix);
void index_rollback(index_t *ix);
/* What others wrote has this place in the list. */
int index_place(index_t *ix, index_box_t *box, int64_t ev, int64_t started,
    int64_t *pos);
/* Takes all records of a box out (`gone`: and the box itself). */
int index_box_drop(index_t *ix, index_box_t *box, bool gone);
int index_op_drop(index_t *ix, int64_t pos);
/* Notes how many went into the part at hand. */
int index_part_note(index_t *ix);
/* Adds the text of a record. */
int index_text(index_t *ix, int64_t pos, sb_str_t head, sb_str_t out);

/* --- index_box.c: history files ---------------------------------------- */

typedef enum {
    INDEX_READ_DONE, INDEX_READ_MORE, INDEX_READ_FULL, INDEX_READ_FAILED
} index_read_e;

/* Reads what is new in a box into ix->docs.  FAILED with *rc: an error of the
 * index itself, or SQLITE_OK: of the history file. */
index_read_e index_read(index_t *ix, index_box_t *box, int *rc);
/* Opens a file, if it is not; false when that cannot be. */
bool index_box_open(index_t *ix, index_box_t *box);
void index_box_close(index_t *ix, index_box_t *box);
/* One moment of a file, which it opens: index_box_end() ends it.  False when
 * that cannot be (it is in the log), or the file is gone or box->empty. */
bool index_box_begin(index_t *ix, index_box_t *box);
void index_box_end(index_box_t *box);
/* Gives it a number in the list, if it has none. */
int index_box_add(index_t *ix, index_box_t *box);

/* --- index_compare.c: what is gone ---------------------------------------- */

/* Compares the list with what a box still has: what was deleted leaves the
 * list, what has moved on from _gateway is read where it is now.  False: a
 * history file cannot be read now, or *rc: the index itself failed. */
bool index_compare(index_t *ix, index_box_t *box, int *rc);

/* --- index_files.c: which there are --------------------------------------- */

/* The box of a directory, made if need be; NULL without memory. */
index_box_t *index_box(index_t *ix, const char *dir);
/* Is it that of what has no sandbox, or not yet? */
bool index_is_gateway(const index_box_t *box);
/* It has news; `forget`: something may be gone from it. */
void index_dirty(index_t *ix, index_box_t *box, bool forget);
/* Looks at all files: what has changed becomes dirty, what is gone leaves the
 * list.  SQLITE_OK, or what the index itself failed with. */
int index_sweep(index_t *ix);
/* Makes the boxes that the index has rows of. */
int index_load_boxes(index_t *ix);
/* Closes and frees all boxes. */
void index_forget_boxes(index_t *ix);

/* --- index_read.c: records of history files ------------------------------------ */

bool index_read_prepare(index_box_t *box, history_error_t *err);
/* Reads a record into ix->docs.  *bad: the history file failed. */
int index_read_one(index_t *ix, index_box_t *box, const char *id, bool *bad);
/* The text of one record again, for a part that is made anew. */
bool index_read_text(index_t *ix, index_box_t *box, const char *id,
    sb_str_t *head, sb_str_t *out);

/* --- index_parts.c: what is no more --------------------------------------------- */

/* Drops parts of the full text that no record is left of, makes one anew that
 * few are left of (`much`: there is time), gives space back. */
int index_parts_tidy(index_t *ix, bool much);

/* --- index_query.c: questions ------------------------------------------------ */

index_reader_t *index_reader(index_t *ix, char *why, size_t size);
void index_reader_back(index_t *ix, index_reader_t *r, bool broken);

/* What is asked for, as SQL. */
typedef struct {
    sb_buf_t   where;           /* " AND ..." about ops o */
    char       index[64];       /* which index of ops leads */
    bool       none;            /* nothing can match */
    bool       text;
    bool       few;             /* the list leads, not the full text */
    sb_buf_t   match;
    int64_t    lo, hi;          /* positions, both inclusive */
    int64_t    types[INDEX_TYPES];  /* one list for each, merged in order */
    unsigned   ntypes;          /* 0: another index leads */
} index_plan_t;

index_rc_e index_plan(index_reader_t *r, const index_question_t *q,
    index_plan_t *p, char *why, size_t size);
void index_plan_free(index_plan_t *p);
/* Counts one of ix->numbers; NULL: none. */
void index_note(index_t *ix, uint64_t *number);

/*
 * Runs the plan over the list, or over one part of the full text after the
 * other; calls `row` with the columns asked for until it returns false.
 */
typedef bool (*index_row_pt)(void *data, sqlite3_stmt *st);
index_rc_e index_rows(index_t *ix, index_reader_t *r, index_plan_t *p,
    const char *columns, bool ascending, int64_t limit, index_row_pt row,
    void *data, bool *has_resume, int64_t *resume, char *why, size_t size);

#endif /* INDEX_INT_H_INCLUDED */
