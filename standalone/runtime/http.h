/*
 * The HTTP server under both halves of the runtime (libmicrohttpd inside,
 * nothing of it outside but the connection handle): one thread per connection,
 * raw request targets, streamed bodies in both directions.
 */

#ifndef RT_HTTP_H_INCLUDED
#define RT_HTTP_H_INCLUDED

#include <stdarg.h>
#include <sys/types.h>

#include <microhttpd.h>

#include "sb.h"

#define RT_BODY_MAX     (64u * 1024 * 1024)  /* of a collected request body */
#define RT_CONNECTIONS  512
#define RT_HEADERS_MAX  128                  /* of one answer */

typedef struct rt_req_s   rt_req_t;
typedef struct rt_http_s  rt_http_t;

typedef struct {
    /* The head has arrived.  May answer at once or set r->sink; otherwise the
     * body is collected in r->body. */
    void  (*begin)(rt_req_t *r);
    /* The body is complete: must answer. */
    void  (*handle)(rt_req_t *r);
} rt_app_t;

typedef struct {
    char  *name;
    char  *value;
} rt_header_t;

struct rt_req_s {
    struct MHD_Connection  *conn;
    const rt_app_t         *app;
    const char             *method;
    char                   *target;     /* as sent */
    sb_str_t                raw_path;   /* of target, before the `?` */
    const char             *query;      /* of target, "" when there is none */
    sb_buf_t                path;       /* decoded, NUL-terminated */
    sb_buf_t                body;

    /* Takes pieces of the body when set; false: the rest is thrown away. */
    bool                  (*sink)(rt_req_t *r, const char *p, size_t n);
    void                   *ctx;        /* of the handler, freed with it */
    void                  (*ctx_free)(void *ctx);

    rt_header_t             out[RT_HEADERS_MAX];
    unsigned                nout;
    bool                    began;
    bool                    replied;
    bool                    discard;
    bool                    too_large;
    enum MHD_Result         rc;
};

/* Reads the next bytes of an answer.  0: the end, -1: cut the connection. */
typedef ssize_t (*rt_reader_pt)(void *ctx, char *buf, size_t max);

/* Talks on a connection after 101; `extra` was read behind the head.  The
 * socket is closed by the caller. */
typedef void (*rt_upgraded_pt)(void *ctx, int fd, const char *extra,
    size_t n);

/* Serves on a listening socket until the process ends; idle_s is the keep-alive
 * time in seconds (0: none).  NULL when that is not possible. */
rt_http_t *rt_http_start(int listen_fd, const rt_app_t *app, unsigned idle_s);

/* Raises the limit of open files as far as allowed. */
void rt_more_files(void);

/* A listening socket on an IPv4 address; *port 0 means any and is filled in.
 * -1 with errno. */
int rt_listen(const char *addr, uint16_t *port);

/* Request header (case does not matter), or NULL. */
const char *rt_header(const rt_req_t *r, const char *name);
/* All request headers in order. */
void rt_each_header(const rt_req_t *r,
    void (*f)(void *data, const char *name, const char *value), void *data);

/* Header of the answer; kept until one of the functions below. */
void rt_out(rt_req_t *r, const char *name, const char *value);
void rt_outf(rt_req_t *r, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes {"code","message"} into an empty b; `str` writes a text in quotes, as
 * the server that is imitated escapes it. */
void rt_envelope(sb_buf_t *b, const char *code,
    void (*str)(sb_buf_t *b, sb_str_t s), const char *fmt, va_list args);

/* Answers; each queues exactly one answer.  rt_reply copies. */
void rt_reply(rt_req_t *r, unsigned status, const void *body, size_t n);
/* size UINT64_MAX: chunked, one chunk for each call of the reader. */
void rt_reply_stream(rt_req_t *r, unsigned status, uint64_t size,
    rt_reader_pt reader, void *ctx, void (*ctx_free)(void *));
/* A part of a file; takes the descriptor. */
void rt_reply_fd(rt_req_t *r, unsigned status, int fd, uint64_t offset,
    uint64_t size);
/* 101; the Upgrade header must have been set. */
void rt_reply_upgrade(rt_req_t *r, rt_upgraded_pt fn, void *ctx);

/* Whether the client has gone (looks at the socket, does not wait). */
bool rt_client_gone(int fd);
int rt_client_fd(const rt_req_t *r);

/* "Sun, 29 Nov 2026 14:51:14 GMT" */
void rt_http_date(char dst[32], int64_t t);

#endif /* RT_HTTP_H_INCLUDED */
