/*
 * Heads: where the chain of each file stood, signed.  One line of canonical JSON
 * each in HISTORY/heads.jsonl, newest last:
 *
 *     {"at":TIME,"dir":DIR,"hash":HEX,"instance":ID,"key":NAME,"n":N,
 *      "proven":N,"records":N,"sandbox":ID,"signature":BASE64URL}
 *
 * Behind entry "proven", up to "n", every purge is signed, and every terminal
 * that begins has an entry for each of its rows; heads of earlier versions do
 * not say so, for it need not be.
 * What is signed is the line without its last member.  A head is written only
 * when what it speaks of is on the disk, so that no crash can undo it.  The last
 * one of a file that is archived or deleted has "ended":HOW,"file":HEX (of
 * chain_file()) behind "dir": what follows speaks of another file.
 */

#ifndef HEADS_H_INCLUDED
#define HEADS_H_INCLUDED

#include "chain.h"
#include "keys.h"

#include <stdio.h>

#define HEADS_FILE      "heads.jsonl"
#define HEADS_OLD       "heads.jsonl.1"
#define HEADS_LINE_MAX  2048
#define HEADS_BYTES     (64u * 1024 * 1024)     /* of the file, then it turns */
#define HEADS_US        1000000u                /* between two rounds */
#define HEADS_NEWS      4096                    /* files with news at most */

/* --- writing: of the thread that writes the files ------------------------- */

typedef struct heads_s  heads_t;

/* `dirfd` is the directory of history files; keys may be NULL: no heads. */
heads_t *heads_new(int dirfd, keys_t *keys);
void heads_free(heads_t *h);

/* A file's chain stands there now.  Files beyond HEADS_NEWS in one second wait
 * until they have news again. */
void heads_note(heads_t *h, const char *dir, const char *sandbox,
    const char *instance, const chain_t *c, int64_t records);
/* A file was opened, and its chain stands there: noted if the last head that is
 * written does not reach so far, as after a crash.  Sets c->proven. */
void heads_opened(heads_t *h, const char *dir, const char *sandbox,
    const char *instance, chain_t *c, int64_t records);
/*
 * The chain of a file ends there, for it is about to be archived or deleted;
 * `how` says so ("archive", "delete"), `file` is that of chain_file().  Written
 * with the next heads, in front of them.  False: there is no room, or no key.
 */
bool heads_end(heads_t *h, const char *dir, const char *sandbox,
    const char *instance, const chain_t *c, int64_t records, const char *how,
    const uint8_t file[CHAIN_HASH]);
/* The key, or NULL. */
const keys_t *heads_keys(const heads_t *h);
/* Does a written head speak of a file in that directory? */
bool heads_knew(heads_t *h, const char *dir);
bool heads_any(const heads_t *h);
/* Is there something to write, and is it a second since?  By sb_mono_us(). */
bool heads_due(const heads_t *h, uint64_t mono_us);
/* Signs and writes what was noted; to be called when the files are on the disk.
 * Past HEADS_BYTES the file begins anew with the last line of each, the old one
 * is kept as heads.jsonl.1.  False: it is in the log, and stays noted; nothing
 * of it is in the file. */
bool heads_write(heads_t *h, uint64_t now_us, uint64_t mono_us);

/* --- how far they reach: of the same thread -------------------------------- */

typedef struct heads_known_s  heads_known_t;

/* Reads HEADS_FILE; NULL without memory. */
heads_known_t *heads_known_new(int dirfd);
void heads_known_free(heads_known_t *k);
void heads_known_set(heads_known_t *k, const char *dir, int64_t n,
    int64_t proven);
/* Behind which entry all is proven; -1: it has no head. */
int64_t heads_known_proven(const heads_known_t *k, const char *dir);
/* Has a file a head? */
bool heads_known_any(const heads_known_t *k, const char *dir);
/* Is entry n of a file's chain beyond its last head? */
bool heads_known_behind(const heads_known_t *k, const char *dir, int64_t n);

/* --- reading ------------------------------------------------------------ */

typedef struct {
    char     dir[160];
    char     sandbox[512];
    char     instance[512];
    char     key[KEYS_NAME_LEN + 1];
    char     at[40];
    int64_t  n;
    int64_t  records;
    int64_t  proven;            /* -1: of an earlier version, which does not
                                   say */
    uint8_t  hash[CHAIN_HASH];
    bool     ended;             /* with that file: */
    uint8_t  file[CHAIN_HASH];
    bool     signed_right;
} head_t;

/*
 * Every head of a directory that stands in the first `bytes` of an open file, in
 * order; other lines are passed over.  `visit` returns false to stop.  False
 * with errno when the file cannot be read.
 */
bool heads_each(FILE *f, size_t bytes, const char *dir, const keys_t *keys,
    bool (*visit)(void *data, const head_t *head), void *data);

/* One line, without its LF. */
sb_rc_t heads_parse(sb_str_t line, const keys_t *keys, head_t *head);

#endif /* HEADS_H_INCLUDED */
