/*
 * Sandboxes: what is known of each from its history file, kept until the file
 * changes, and from upstream's list.
 */

#ifndef ASK_BOXES_H_INCLUDED
#define ASK_BOXES_H_INCLUDED

#include "ask_listed.h"

#define ASK_BOXES_MS     200        /* that reading files may take in one go */
#define ASK_BOXES_ALL_MS 5000       /* ... in all, for one question */

typedef struct ask_boxes_s  ask_boxes_t;

ask_boxes_t *ask_boxes_new(void);
void ask_boxes_free(ask_boxes_t *b);

/* The directory of a sandbox's history; "_gateway" is itself. */
void ask_box_dir(char dir[STORE_DIR_LEN], sb_str_t id);
/* The id of the sandbox with that directory, in `id` if it is not the same. */
const char *ask_box_id(api_t *api, const char *dir, char *id, size_t size);
/* Has it a history, or does upstream list it?  -1: as ask_boxes_listed()
 * false. */
int ask_box_exists(ask_question_t *q, ask_listed_wait_t *w, const char *dir,
    sb_str_t id);

/* Upstream's list is as young as it can be had; false: return ASK_AGAIN. */
bool ask_boxes_listed(ask_question_t *q, ask_listed_wait_t *w);
/* Reads files that have changed, for ASK_BOXES_MS; true: all are read. */
bool ask_boxes_read(api_t *api);

/* Calls `each` for all of them while nothing changes. */
typedef void (*ask_box_pt)(void *data, const ask_box_t *box);
ask_listed_e ask_boxes_each(api_t *api, ask_box_pt each, void *data,
    bool *complete);

#endif /* ASK_BOXES_H_INCLUDED */
