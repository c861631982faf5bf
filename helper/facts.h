/* What the frames of one operation say, gathered. */

#ifndef FACTS_H_INCLUDED
#define FACTS_H_INCLUDED

#include "frame.h"

#define FACTS_TAGS   96
#define FACTS_FILES  1024       /* of one operation in one go */

typedef struct {
    sb_str_t  path;
    sb_str_t  old_path;
    sb_str_t  sha256;           /* 32 bytes, or empty */
    int64_t   size;             /* -1: not said */
    int64_t   mode;             /* -1: not said */
    uint64_t  flags;
} facts_file_t;

/* Values point into the frames; the last of a tag wins. */
typedef struct {
    sb_str_t       v[FACTS_TAGS];       /* data is NULL when absent */
    facts_file_t  *files;
    size_t         nfiles;
    size_t         afiles;
    size_t         lost_files;          /* over FACTS_FILES */
} facts_t;

/* Zero-initialise; add frames in order; free. */
void facts_add(facts_t *t, const sb_frame_t *f);
void facts_free(facts_t *t);

static inline bool
facts_has(const facts_t *t, uint16_t tag)
{
    return t->v[tag].data != NULL;
}

/* An integer, or def. */
static inline int64_t
facts_int(const facts_t *t, uint16_t tag, int64_t def)
{
    return facts_has(t, tag) && t->v[tag].len == 8
           ? (int64_t) sb_value_u64(t->v[tag], 0) : def;
}

#endif /* FACTS_H_INCLUDED */
