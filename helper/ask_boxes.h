/*
 * Sandboxes: what is known of each from its history file, kept until the file
 * changes, and upstream's own list, kept for a while.
 */

#ifndef ASK_BOXES_H_INCLUDED
#define ASK_BOXES_H_INCLUDED

#include "api.h"

#define ASK_BOXES        20000      /* histories and sandboxes told at most */
#define ASK_BOXES_MS     200        /* that reading files may take in one go */
#define ASK_BOXES_ALL_MS 5000       /* ... in all, for one question */
#define ASK_LISTED_US    5000000u   /* how long upstream's list counts */
#define ASK_LISTED_MS    1500       /* that it has for a page of it */
#define ASK_LISTED_PAGES 100        /* of it at most */

/* One sandbox; texts may be NULL. */
typedef struct {
    char      *id;
    char      *name;
    char      *state;
    char      *image;
    char      *created;
    char      *expires;
    char      *last;                /* activity */
    int64_t    operations;
    int64_t    failures;
    int64_t    running;
    int64_t    gaps;
    int64_t    bytes;
    bool       history;             /* has a file; the numbers count then */
    bool       readable;
    bool       upstream;            /* is in upstream's list */
    bool       deleted;             /* was, through here */
} ask_box_t;

typedef struct ask_boxes_s  ask_boxes_t;

ask_boxes_t *ask_boxes_new(void);
void ask_boxes_free(ask_boxes_t *b);

/* The directory of a sandbox's history; "_gateway" is itself. */
void ask_box_dir(char dir[STORE_DIR_LEN], sb_str_t id);
/* The id of the sandbox with that directory, in `id` if it is not the same. */
const char *ask_box_id(api_t *api, const char *dir, char *id, size_t size);
/* Has it a history, or does upstream list it? */
bool ask_box_exists(api_t *api, const char *dir, sb_str_t id);

/* Asks upstream unless that was done a while ago. */
void ask_boxes_listed(api_t *api);
/* Reads files that have changed, for ASK_BOXES_MS; true: all are read. */
bool ask_boxes_read(api_t *api);

typedef enum {
    ASK_LISTED_NOT, ASK_LISTED_OK, ASK_LISTED_PART, ASK_LISTED_FAILED
} ask_listed_e;

/* Calls `each` for all of them while nothing changes. */
typedef void (*ask_box_pt)(void *data, const ask_box_t *box);
ask_listed_e ask_boxes_each(api_t *api, ask_box_pt each, void *data,
    bool *complete);

#endif /* ASK_BOXES_H_INCLUDED */
