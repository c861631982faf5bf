/*
 * Takes multipart/form-data apart as execd's mime/multipart does, in pieces of
 * any size, and hands out the content of its parts.  (lib/multipart.h judges
 * such bodies and refuses what can be read in two ways; this one has to accept
 * what execd accepts, and to give the bytes.)
 */

#ifndef RT_MULTIPART_H_INCLUDED
#define RT_MULTIPART_H_INCLUDED

#include "sb.h"

typedef struct {
    /* A part begins; filename is "" for a plain field. */
    bool  (*part)(void *data, const char *name, const char *filename);
    bool  (*content)(void *data, const char *p, size_t n);
    void   *data;
} rt_parts_t;

typedef struct {
    rt_parts_t  parts;
    sb_buf_t    buf;
    char        text[80];       /* CR LF -- boundary */
    const char *delim;          /* in it, at CR or at LF */
    size_t      delim_len;
    size_t      skip;           /* bytes of buf that are not content */
    enum { RT_PART_PREAMBLE, RT_PART_HEAD, RT_PART_BODY, RT_PART_DONE,
           RT_PART_FAILED } state;
} rt_multipart_t;

/* false: not multipart/form-data, or no usable boundary. */
bool rt_multipart_init(rt_multipart_t *m, const char *content_type,
    const rt_parts_t *parts);
/* false: broken, or a callback said so; further calls say it again. */
bool rt_multipart_feed(rt_multipart_t *m, const char *p, size_t n);
/* Whether the closing boundary was seen. */
bool rt_multipart_done(const rt_multipart_t *m);
void rt_multipart_free(rt_multipart_t *m);

#endif /* RT_MULTIPART_H_INCLUDED */
