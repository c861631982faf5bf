#include "facts.h"

#include <stdlib.h>


static facts_file_t *
facts_file(facts_t *t, sb_str_t path)
{
    size_t         n;
    facts_file_t  *f;

    /* said again, with more: the same file */
    for (n = t->nfiles; n; n--) {
        f = &t->files[n - 1];

        if (f->size < 0 && f->sha256.len == 0 && sb_eq(f->path, path)) {
            return f;
        }
    }

    if (t->nfiles == FACTS_FILES) {
        t->lost_files++;
        return NULL;
    }

    if (t->nfiles == t->afiles) {
        n = t->afiles ? t->afiles * 2 : 4;

        f = realloc(t->files, n * sizeof(facts_file_t));
        if (f == NULL) {
            t->lost_files++;
            return NULL;
        }

        t->files = f;
        t->afiles = n;
    }

    f = &t->files[t->nfiles++];
    memset(f, 0, sizeof(facts_file_t));
    f->path = path;
    f->size = -1;
    f->mode = -1;

    return f;
}


void
facts_add(facts_t *t, const sb_frame_t *frame)
{
    uint16_t       tag;
    sb_str_t       fields, v;
    facts_file_t  *f;

    fields = frame->fields;
    f = NULL;

    while (sb_field_next(&fields, &tag, &v)) {

        if (v.data == NULL) {
            v.data = "";
        }

        switch (tag) {

        case SB_T_FILE_PATH:
            f = facts_file(t, v);
            break;

        case SB_T_FILE_OLD:
            if (f) {
                f->old_path = v;
            }

            break;

        case SB_T_FILE_SIZE:
            if (f && v.len == 8) {
                f->size = (int64_t) sb_value_u64(v, 0);
            }

            break;

        case SB_T_FILE_SHA256:
            if (f && v.len == 32) {
                f->sha256 = v;
            }

            break;

        case SB_T_FILE_MODE:
            if (f && v.len == 8) {
                f->mode = (int64_t) sb_value_u64(v, 0);
            }

            break;

        case SB_T_FILE_FLAGS:
            if (f) {
                f->flags = sb_value_u64(v, 0);
            }

            break;

        default:
            if (tag < FACTS_TAGS) {
                t->v[tag] = v;
            }
        }
    }
}


void
facts_free(facts_t *t)
{
    free(t->files);
    memset(t, 0, sizeof(facts_t));
}
