#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "execd.h"
#include "id.h"


static bool
rt_cpu_times(double *total, double *idle)
{
    int                 n;
    FILE               *f;
    unsigned long long  v[8];

    f = fopen("/proc/stat", "re");

    if (f == NULL) {
        return false;
    }

    n = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0],
               &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]);
    fclose(f);

    if (n != 8) {
        return false;
    }

    *idle = (double) (v[3] + v[4]);
    *total = (double) (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) + *idle;

    return true;
}


static bool
rt_memory(double *total, double *used)
{
    char                line[256];
    FILE               *f;
    unsigned long long  kb, all, available;

    f = fopen("/proc/meminfo", "re");

    if (f == NULL) {
        return false;
    }

    all = available = 0;

    while (fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, "MemTotal: %llu", &kb) == 1) {
            all = kb;

        } else if (sscanf(line, "MemAvailable: %llu", &kb) == 1) {
            available = kb;
        }
    }

    fclose(f);
    *total = (double) all / 1024;
    *used = (double) (all - available) / 1024;

    return all > 0;
}


/* Looks at the processors for a second, as execd does. */

static bool
rt_metrics_text(sb_buf_t *b)
{
    double           total[2], idle[2], mem, used, pct;
    struct timespec  second;

    second.tv_sec = 1;
    second.tv_nsec = 0;

    if (!rt_cpu_times(&total[0], &idle[0])) {
        return false;
    }

    nanosleep(&second, NULL);

    if (!rt_cpu_times(&total[1], &idle[1]) || !rt_memory(&mem, &used)) {
        return false;
    }

    pct = total[1] > total[0]
          ? 100 * (1 - (idle[1] - idle[0]) / (total[1] - total[0])) : 0;

    return sb_buf_printf(b, "{\"cpu_count\":%ld,\"cpu_used_pct\":%.6g,"
                            "\"mem_total_mib\":%.9g,\"mem_used_mib\":%.9g,"
                            "\"timestamp\":%llu}",
                         sysconf(_SC_NPROCESSORS_ONLN), pct > 0 ? pct : 0,
                         mem, used,
                         (unsigned long long) (sb_now_us() / 1000))
           == SB_OK;
}


void
rt_metrics(rt_req_t *r)
{
    sb_buf_t  b;

    memset(&b, 0, sizeof(b));
    b.max = 1024;

    if (!rt_metrics_text(&b)) {
        sb_buf_free(&b);
        rt_fail(r, 500, "RUNTIME_ERROR", "/proc cannot be read");
        return;
    }

    rt_json(r, 200, &b);
}


static ssize_t
rt_metrics_read(void *ctx, char *buf, size_t max)
{
    ssize_t          n;
    sb_buf_t         b;
    struct timespec  second;

    (void) ctx;

    second.tv_sec = 1;
    second.tv_nsec = 0;
    nanosleep(&second, NULL);

    memset(&b, 0, sizeof(b));
    b.max = 1024;

    if (!rt_metrics_text(&b)) {
        b.len = 0;
        sb_buf_printf(&b, "{\"error\":\"/proc cannot be read\"}");
    }

    sb_buf_add_c(&b, '\n');
    n = (ssize_t) (b.len < max ? b.len : max);
    memcpy(buf, b.data, (size_t) n);
    sb_buf_free(&b);

    return n;
}


void
rt_metrics_watch(rt_req_t *r)
{
    rt_out(r, "Cache-Control", "no-cache");
    rt_out(r, "Content-Type", "text/event-stream");
    rt_out(r, "X-Accel-Buffering", "no");
    rt_reply_stream(r, 200, UINT64_MAX, rt_metrics_read, NULL, NULL);
}
