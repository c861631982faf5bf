/*
 * The lifecycle side: what OpenSandbox's server answers
 * (reference/opensandbox-api.md 1 and 2).
 */

#ifndef RT_LIFECYCLE_H_INCLUDED
#define RT_LIFECYCLE_H_INCLUDED

#include "box.h"
#include "http.h"
#include "json.h"

extern const rt_app_t  rt_lifecycle;

/* Before serving; key NULL: nothing is checked. */
void rt_lifecycle_init(const char *address, const char *key);
/* The address that clients reach sandboxes at. */
const char *rt_lc_address(void);

/* --- answers --- */

/* Date, server and X-Request-ID, as on every answer. */
void rt_lc_decorate(rt_req_t *r);
/* JSON; takes b's memory. */
void rt_lc_json(rt_req_t *r, unsigned status, sb_buf_t *b);
void rt_lc_empty(rt_req_t *r, unsigned status);
/* {"code","message"} */
void rt_lc_fail(rt_req_t *r, unsigned status, const char *code,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* 404 for an unknown id */
void rt_lc_unknown(rt_req_t *r, sb_str_t id);

/* A validation answer of FastAPI, 422.  loc is JSON without the brackets, such
 * as "\"body\",\"timeout\""; input and ctx are JSON or NULL. */
void rt_lc_invalid(rt_req_t *r, const char *type, const char *loc,
    const char *msg, const char *input, const char *ctx);

/* Whether v is nothing or an object of strings (null too when nulls is set);
 * name NULL: v is the body itself.  false: 422 was answered. */
bool rt_lc_strings(rt_req_t *r, const sb_jv_t *v, const char *name,
    bool nulls);
/* The body as a JSON object; NULL when 422 was answered. */
sb_jdoc_t *rt_lc_body(rt_req_t *r);

/* Which items of a list are asked for, and how many there are. */
typedef struct {
    int64_t  page;
    int64_t  size;
    size_t   total;             /* so far */
    size_t   shown;
} rt_page_t;

/* From the query; false when 422 was answered. */
bool rt_lc_page(rt_req_t *r, rt_page_t *page);
/* Counts one more item; true: it is to be appended (a comma was, if needed). */
bool rt_lc_page_item(sb_buf_t *b, rt_page_t *page);
/* Appends the end of the answer, behind the last item. */
void rt_lc_page_end(sb_buf_t *b, const rt_page_t *page);
/* An integer of the query; *out stays as it is when there is none.  false when
 * 422 was answered. */
bool rt_lc_query_int(rt_req_t *r, const char *name, int64_t max,
    int64_t *out);

/* A string in quotes, UTF-8 as it is. */
void rt_lc_str(sb_buf_t *b, sb_str_t s);
/* A time in quotes. */
void rt_lc_time(sb_buf_t *b, uint64_t us);

/* --- operations --- */

/* id and last: the first and the last variable segment of the path. */
void rt_lc_get(rt_req_t *r, const char *id, const char *last);
void rt_lc_delete(rt_req_t *r, const char *id, const char *last);
void rt_lc_pause(rt_req_t *r, const char *id, const char *last);
void rt_lc_resume(rt_req_t *r, const char *id, const char *last);
void rt_lc_renew(rt_req_t *r, const char *id, const char *last);
void rt_lc_patch(rt_req_t *r, const char *id, const char *last);
void rt_lc_endpoint(rt_req_t *r, const char *id, const char *last);
void rt_lc_diag(rt_req_t *r, const char *id, const char *last);

void rt_lc_snap_create(rt_req_t *r, const char *id, const char *last);
void rt_lc_snap_list(rt_req_t *r, const char *id, const char *last);
void rt_lc_snap_get(rt_req_t *r, const char *id, const char *last);
void rt_lc_snap_delete(rt_req_t *r, const char *id, const char *last);

void rt_lc_create(rt_req_t *r);
void rt_lc_list(rt_req_t *r);

/* What is asked for below /diagnostics. */
typedef struct {
    const char  *what;
    int64_t      tail;          /* lines of the log */
    int64_t      limit;         /* events */
    int64_t      since;         /* seconds; 0: all */
} rt_diag_t;

/* false: an answer was given, before anybody looks for the sandbox. */
bool rt_lc_diag_query(rt_req_t *r, const char *what, rt_diag_t *diag);
void rt_lc_diagnostics(rt_req_t *r, rt_box_t *b, const rt_diag_t *diag);
/* Begins to forward a request of a proxy route; leaves r unanswered when it
 * is to be refused once its body is there. */
void rt_lc_proxy_begin(rt_req_t *r);
void rt_lc_proxy_refused(rt_req_t *r);

/* Appends the Sandbox object; created: that of the create answer. */
void rt_lc_box(sb_buf_t *b, const rt_box_t *box, bool created);
/* The types of what a create request holds besides; false: 422 was answered. */
bool rt_lc_check(rt_req_t *r, const sb_jv_t *root);
/* The rules of the service behind the model; false: 400 was answered. */
bool rt_lc_check_service(rt_req_t *r, const sb_jv_t *root);
/* pydantic's words for yes and no; -1: neither. */
int rt_lc_bool(sb_str_t s);
/* The last value of a name, as FastAPI takes it; malloc'ed, or NULL. */
char *rt_lc_query(const char *query, const char *name);

/* Whether a metadata label may be set; else 400 was answered. */
bool rt_lc_label_ok(rt_req_t *r, sb_str_t key, sb_str_t value);
/* Sets (value NULL: removes) one.  false: too many. */
bool rt_lc_label_set(rt_box_t *b, sb_str_t key, const sb_str_t *value);

/* Pieces of /sandboxes/{id}/proxy/{port}/rest with the optional /v1, on the
 * decoded path. */
typedef struct {
    sb_str_t     id;
    sb_str_t     port;
    const char  *rest;      /* "" or beginning with `/` */
} rt_lc_route_t;

bool rt_lc_is_proxy(const rt_req_t *r, rt_lc_route_t *route);

#endif /* RT_LIFECYCLE_H_INCLUDED */
