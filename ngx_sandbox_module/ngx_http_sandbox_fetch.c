/* Questions to upstream through the helper (ngx_http_sandbox_fetch.h). */


#include "ngx_http_sandbox_fetch.h"
#include "ngx_http_sandbox_metrics.h"


#define NGX_HTTP_SANDBOX_FETCH_TIME  10000


typedef struct {
    uint64_t                      seq;
    ngx_msec_t                    deadline;
    ngx_http_sandbox_fetched_pt   done;
    void                         *data;
} ngx_http_sandbox_fetch_t;


typedef struct {
    ngx_http_sandbox_link_t      *bulk;
    uint64_t                      seq;
    ngx_uint_t                    n;
    ngx_http_sandbox_fetch_t      items[NGX_HTTP_SANDBOX_FETCHES];
    ngx_event_t                   timer;
    ngx_connection_t              dummy;
} ngx_http_sandbox_fetches_t;


static void ngx_http_sandbox_fetch_done(uint64_t seq, ngx_uint_t status,
    ngx_str_t *body);
static void ngx_http_sandbox_fetch_timer_handler(ngx_event_t *ev);


static ngx_http_sandbox_fetches_t  fetches;


void
ngx_http_sandbox_fetch_init(ngx_http_sandbox_link_t *bulk, ngx_log_t *log)
{
    ngx_memzero(&fetches, sizeof(ngx_http_sandbox_fetches_t));

    fetches.bulk = bulk;
    fetches.dummy.fd = (ngx_socket_t) -1;

    fetches.timer.handler = ngx_http_sandbox_fetch_timer_handler;
    fetches.timer.data = &fetches.dummy;
    fetches.timer.log = log;
    fetches.timer.cancelable = 1;
}


ngx_uint_t
ngx_http_sandbox_helper_fetch(ngx_str_t *target,
    ngx_http_sandbox_fetched_pt done, void *data)
{
    sb_frame_writer_t  w;

    if (ngx_http_sandbox_fetch_begin(&w, SB_FRAME_HEAD + 16 + target->len,
                                     NULL)
        != NGX_OK)
    {
        return 0;
    }

    sb_frame_put(&w, SB_T_TARGET, ngx_http_sandbox_str(target));

    return ngx_http_sandbox_fetch_send(&w, done, data);
}


ngx_int_t
ngx_http_sandbox_fetch_begin(sb_frame_writer_t *w, size_t size,
    const u_char *id)
{
    u_char                   *p;
    ngx_http_sandbox_link_t  *l;

    l = fetches.bulk;

    ngx_http_sandbox_metric_add(FETCHES, 1);

    if (l == NULL || !l->ready || fetches.n == NGX_HTTP_SANDBOX_FETCHES) {
        ngx_http_sandbox_metric_add(FETCHES_REFUSED, 1);
        return NGX_DECLINED;
    }

    p = ngx_http_sandbox_link_room(l, size);
    if (p == NULL) {
        return NGX_DECLINED;
    }

    sb_frame_begin(w, p, size, SB_F_FETCH, 0, ++fetches.seq, id, sb_now_us());

    return NGX_OK;
}


ngx_uint_t
ngx_http_sandbox_fetch_send(sb_frame_writer_t *w,
    ngx_http_sandbox_fetched_pt done, void *data)
{
    size_t                     len;
    ngx_http_sandbox_link_t   *l;
    ngx_http_sandbox_fetch_t  *f;

    l = fetches.bulk;

    len = sb_frame_end(w);

    if (len == 0) {
        return 0;
    }

    l->out_len += len;

    f = &fetches.items[fetches.n++];
    ngx_http_sandbox_metric_gauge(fetches, fetches.n);

    f->seq = fetches.seq;
    f->deadline = ngx_current_msec + NGX_HTTP_SANDBOX_FETCH_TIME;
    f->done = done;
    f->data = data;

    if (!fetches.timer.timer_set) {
        ngx_add_timer(&fetches.timer, NGX_HTTP_SANDBOX_FETCH_TIME);
    }

    if (ngx_http_sandbox_link_write(l) == NGX_ERROR) {
        /* answered by the time-out */
        ngx_http_sandbox_link_close(l);
    }

    return 1;
}


void
ngx_http_sandbox_fetch_forget(void *data)
{
    ngx_uint_t  i;

    for (i = 0; i < fetches.n; i++) {

        if (fetches.items[i].data == data) {
            fetches.items[i] = fetches.items[--fetches.n];
            ngx_http_sandbox_metric_gauge(fetches, fetches.n);
            return;
        }
    }
}


void
ngx_http_sandbox_fetch_answer(sb_frame_t *f)
{
    sb_str_t   body;
    ngx_str_t  text;

    ngx_str_null(&text);

    if (sb_field_get(f, SB_T_DATA, &body)) {
        text.data = (u_char *) body.data;
        text.len = body.len;
    }

    ngx_http_sandbox_fetch_done(f->seq,
                        (ngx_uint_t) sb_field_u64(f, SB_T_HTTP_STATUS, 0),
                        &text);
}


static void
ngx_http_sandbox_fetch_done(uint64_t seq, ngx_uint_t status, ngx_str_t *body)
{
    ngx_uint_t                i;
    ngx_http_sandbox_fetch_t  f;

    for (i = 0; i < fetches.n; i++) {

        if (fetches.items[i].seq == seq) {
            f = fetches.items[i];
            fetches.items[i] = fetches.items[--fetches.n];
            ngx_http_sandbox_metric_gauge(fetches, fetches.n);
            f.done(f.data, status, body);
            return;
        }
    }
}


/* Questions that were not answered: the helper was replaced, or hangs. */

static void
ngx_http_sandbox_fetch_timer_handler(ngx_event_t *ev)
{
    ngx_str_t   none;
    ngx_uint_t  i;

    ngx_str_null(&none);

    i = 0;

    while (i < fetches.n) {

        if ((ngx_msec_int_t) (fetches.items[i].deadline - ngx_current_msec)
            <= 0)
        {
            ngx_http_sandbox_fetch_done(fetches.items[i].seq, 0, &none);
            continue;
        }

        i++;
    }

    if (fetches.n) {
        ngx_add_timer(&fetches.timer, 1000);
    }
}
