/*
 * Is a ZIP the same for everybody who reads it?  Some programs go by the
 * directory at its end, others by the headers in front of the members; some take
 * the first end that they find, others the last one.  Here all of them must
 * agree, no two members may share bytes, and nothing that looks like a member
 * may stand where the directory names none.  What members hold is not looked at.
 */

#ifndef SB_ZIP_H_INCLUDED
#define SB_ZIP_H_INCLUDED

#include "sb.h"

#define SB_ZIP_DIRECTORY  (64u * 1024 * 1024)   /* bytes of a directory */

typedef enum {
    SB_ZIP_NONE = 0,        /* there is no ZIP in it */
    SB_ZIP_FINE,
    SB_ZIP_INCONSISTENT,
    SB_ZIP_FOLLOWED,        /* bytes stand behind its end */
    SB_ZIP_BROKEN,
    SB_ZIP_TOO_MANY,        /* members, or a directory that is too long */
    SB_ZIP_NO_MEMORY
} sb_zip_e;

typedef struct {
    uint64_t   size;        /* of the file */
    uint64_t   most;        /* members */
    void      *data;
    /* Reads exactly n bytes; false: they cannot be read. */
    bool     (*read)(void *data, uint64_t offset, void *buf, size_t n);
    /* Each name that some reader may give a member, raw bytes, a NUL may be
     * among them; and its mode with its type, as Unix has it (0: not told).  May
     * be NULL. */
    void     (*name)(void *data, sb_str_t name, unsigned mode);
} sb_zip_t;

/* `why`: a static sentence about what is not SB_ZIP_FINE or _NONE; `entries`:
 * members in the directory. */
sb_zip_e sb_zip_audit(const sb_zip_t *zip, uint64_t *entries, const char **why);

#endif /* SB_ZIP_H_INCLUDED */
