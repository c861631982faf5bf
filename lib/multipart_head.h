/* The head of one part; for multipart.c only. */

#ifndef SB_MULTIPART_HEAD_H_INCLUDED
#define SB_MULTIPART_HEAD_H_INCLUDED

#include "sb.h"

/* Parameters of a Content-Disposition; slices point into the value given. */
typedef struct {
    sb_str_t  name;
    sb_str_t  filename;     /* as sent, without its quotes */
    bool      has_name;
    bool      has_filename; /* and it is not empty */
} sb_disposition_t;

/* Reads "form-data; name=...; filename=...".  SB_ERROR: Go would not read it;
 * SB_AMBIGUOUS: it may be read in several ways.  `why` is a static sentence. */
sb_rc_t sb_disposition_read(sb_disposition_t *d, sb_str_t value,
    const char **why);

bool sb_token_chars(sb_str_t s);

#endif /* SB_MULTIPART_HEAD_H_INCLUDED */
