/* What request.c, request_body.c and request_query.c share. */

#ifndef SB_REQUEST_INTERNAL_H_INCLUDED
#define SB_REQUEST_INTERNAL_H_INCLUDED

#include "json_object.h"
#include "operation_table.h"
#include "request_table.h"

#define SB_REQUEST_DROPPED    64        /* names listed */
#define SB_REQUEST_NAME       128       /* bytes of such a name */

#define SB_REQUEST_FEW        4         /* files that need no array */
#define SB_REQUEST_IMAGES     64        /* of a template; of one with more not
                                           all is read */

/* Behind sb_request_t.mem: what nearly every request needs is one piece. */
typedef struct {
    sb_jdoc_t          *doc;
    sb_buf_t            argv;           /* `argv` as the command's text */
    sb_str_t           *images;         /* of a template, else NULL */

    /* not cleared */
    char                reason[256];
    sb_request_file_t   files[SB_REQUEST_FEW];
    char                query[];        /* decoded components */
} sb_request_mem_t;

typedef struct {
    sb_request_t             *r;
    sb_request_mem_t         *mem;
    const sb_route_t         *route;
    const sb_request_rule_t  *rule;

    sb_str_t                  language;     /* of a code context */

    size_t                    nfiles;   /* room in r->files */

    size_t                    ndropped;
    size_t                    dropped_more;
    size_t                    names_len;

    /* not cleared */
    sb_object_t               out;

    /* names of members that are not recorded */
    sb_str_t                  dropped[SB_REQUEST_DROPPED];
    char                      names[SB_REQUEST_DROPPED * SB_REQUEST_NAME];
} sb_request_ctx_t;

/* All values below one, in the order of the text.  `depth` begins at 0; NULL: that
 * was the last. */
#define SB_REQUEST_DEPTH      64        /* that of the parser */

typedef struct {
    unsigned        depth;
    const sb_jv_t  *stack[SB_REQUEST_DEPTH + 1];
} sb_request_walk_t;

const sb_jv_t *sb_request_next(sb_request_walk_t *w, const sb_jv_t *v);

/* Sets the reason (one sentence; %.*s of a name that is cut) and returns rc. */
sb_rc_t sb_request_refuse(sb_request_ctx_t *c, sb_rc_t rc, const char *fmt,
    sb_str_t name);

/* Adds a file that the operation names.  SB_AMBIGUOUS for a NUL in it. */
sb_rc_t sb_request_file(sb_request_ctx_t *c, sb_str_t path, sb_str_t old_path,
    int32_t mode);

/* Tells that a member is not recorded; prefix is "image." or so. */
void sb_request_drop(sb_request_ctx_t *c, const char *prefix, sb_str_t name);

sb_rc_t sb_request_body(sb_request_ctx_t *c, sb_str_t body);
sb_rc_t sb_request_query(sb_request_ctx_t *c);

/* request_runs.c: what is run, as policies judge it.  Names in the environment
 * of a command that have more run than its text says; */
void sb_request_envs(sb_request_ctx_t *c);
/* ... the programme and arguments in place of a command: SB_AMBIGUOUS with both;
 * ... what a new sandbox starts, and whether its image is named; */
sb_rc_t sb_request_argv(sb_request_ctx_t *c);
sb_rc_t sb_request_created(sb_request_ctx_t *c);
/* ... the images and commands of a pool's template. */
sb_rc_t sb_request_template(sb_request_ctx_t *c);

#endif /* SB_REQUEST_INTERNAL_H_INCLUDED */
