/* Operations that pass without a record (ngx_http_sandbox_gap.h). */


#include "ngx_http_sandbox_gap.h"
#include "ngx_http_sandbox_metrics.h"


#define NGX_HTTP_SANDBOX_GAPS  64


typedef struct {
    size_t            len;
    uint64_t          count;
    uint64_t          first_us;
    uint64_t          last_us;
    const char       *reason;
    u_char            sandbox[128];
} ngx_http_sandbox_gap_t;


static ngx_http_sandbox_gap_t  gaps[NGX_HTTP_SANDBOX_GAPS];
static ngx_uint_t              ngaps;


void
ngx_http_sandbox_helper_gap(sb_str_t sandbox, const char *reason)
{
    uint64_t                 now;
    ngx_uint_t               i;
    ngx_http_sandbox_gap_t  *g;

    if (!ngx_http_sandbox_helper_active()) {
        return;
    }

    ngx_http_sandbox_metric_add(GAPS, 1);
    ngx_http_sandbox_metric_worker->unsent++;

    now = sb_now_us();

    if (sandbox.len > sizeof(gaps[0].sandbox)) {
        sandbox.len = 0;
    }

    for (i = 0; i < ngaps; i++) {
        g = &gaps[i];

        if (g->len == sandbox.len && g->reason == reason
            && (g->len == 0
                || ngx_memcmp(g->sandbox, sandbox.data, sandbox.len) == 0))
        {
            g->count++;
            g->last_us = now;
            return;
        }
    }

    if (ngaps == NGX_HTTP_SANDBOX_GAPS) {
        /* the last one is for all others */
        g = &gaps[NGX_HTTP_SANDBOX_GAPS - 1];
        g->len = 0;
        g->count++;
        g->last_us = now;
        return;
    }

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "sandbox helper: operations pass without a record (%s)",
                  reason);

    g = &gaps[ngaps++];

    g->len = sandbox.len;

    if (g->len) {
        ngx_memcpy(g->sandbox, sandbox.data, sandbox.len);
    }

    g->count = 1;
    g->reason = reason;
    g->first_us = now;
    g->last_us = now;

    /* sent a little later, when there may be more of them */
    ngx_http_sandbox_helper_hold();
}


ngx_uint_t
ngx_http_sandbox_gap_pending(void)
{
    return ngaps;
}


void
ngx_http_sandbox_gap_send(void)
{
    size_t                   len;
    ngx_uint_t               i;
    sb_frame_writer_t        w;
    ngx_http_sandbox_gap_t  *g;
    u_char                   frame[1024];

    for (i = 0; i < ngaps; i++) {
        g = &gaps[i];

        sb_frame_begin(&w, frame, sizeof(frame), SB_F_GAP, 0, 0, NULL,
                       g->last_us);

        if (g->len) {
            sb_frame_put(&w, SB_T_SANDBOX, sb_str(g->sandbox, g->len));
        }

        sb_frame_put_u64(&w, SB_T_COUNT, g->count);
        sb_frame_put_u64(&w, SB_T_TIME, g->first_us);
        sb_frame_put_u64(&w, SB_T_TIME_END, g->last_us);
        sb_frame_put(&w, SB_T_REASON, sb_str(g->reason, ngx_strlen(g->reason)));

        len = sb_frame_end(&w);

        /* not into the room that is kept for ends */

        if (ngx_http_sandbox_helper_send(frame, len, 0) == 0) {
            break;
        }
    }

    ngx_memmove(gaps, gaps + i, (ngaps - i) * sizeof(ngx_http_sandbox_gap_t));
    ngaps -= i;
}
