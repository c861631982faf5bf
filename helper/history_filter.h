/*
 * Which records: the filters of the console API, of sandbox-history and of live
 * streams, in one structure.
 */

#ifndef HISTORY_FILTER_H_INCLUDED
#define HISTORY_FILTER_H_INCLUDED

#include "sb.h"

#define HISTORY_FILTER_VALUES  32       /* of one repeatable filter */

typedef struct {
    const char  *text[HISTORY_FILTER_VALUES];
    unsigned     n;                     /* 0: any */
} history_filter_any_t;

/* Texts belong to the caller; NULL is any. */
typedef struct {
    history_filter_any_t   type;        /* globs: only "*" is special */
    history_filter_any_t   status;
    const char            *actor;       /* actor_id */
    const char            *actor_type;
    const char            *source;
    const char            *thread;
    const char            *run;
    const char            *correlation;
    const char            *path;        /* glob; any file of the operation */
    const char            *q;           /* full text: words, "phrases"; only
                                           the index knows it */
    bool                   has_exit_code;
    int64_t                exit_code;
    int64_t                min_duration_ms;     /* -1: any */
    int64_t                from_us;     /* began then or later; -1: open */
    int64_t                to_us;       /* began before; -1: open */
    bool                   console;     /* console.* too; without it only when
                                           a type asks for it */
} history_filter_t;

void history_filter_init(history_filter_t *f);

/*
 * Sets one filter by its name in the API ("type", "min_duration_ms", ...); the
 * value must outlive the filter.  SB_DECLINED: that is no filter; SB_ERROR with
 * a sentence: the value is not possible.
 */
sb_rc_t history_filter_set(history_filter_t *f, const char *name,
    const char *value, char *why, size_t size);

/* A time as people and programs write it: a date, a time of ISO 8601 (UTC when
 * it names no zone), or so much ago ("10m"; s, m, h, d). */
bool history_filter_time(int64_t *us, const char *text);

/* What a record is matched by; an empty text is NULL. */
typedef struct {
    sb_str_t         type, status, actor, actor_type, source, thread, run,
                     correlation;
    const sb_str_t  *paths;
    size_t           npaths;
    bool             has_exit_code;
    int64_t          exit_code;
    int64_t          duration_ms;       /* -1: not ended */
    int64_t          started_us;
    sb_str_t         head;              /* what is searched: command, paths,
                                           summary ... */
    sb_str_t         out;               /* ... and output */
} history_filter_facts_t;

/* Does a record pass, `q` apart? */
bool history_filter_match(const history_filter_t *f,
    const history_filter_facts_t *facts);

#endif /* HISTORY_FILTER_H_INCLUDED */
