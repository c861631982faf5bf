/* GET /sandboxes/{id}/diagnostics/...: plain text for people. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "id.h"
#include "lifecycle.h"
#include "url.h"


#define RT_TAIL_MAX  (256 * 1024)


/* Appends the last lines of the sandbox's log. */

static void
rt_diag_log(sb_buf_t *b, const rt_box_t *box, int64_t lines)
{
    char    path[PATH_MAX], *text;
    FILE   *f;
    long    size;
    size_t  n, from;

    snprintf(path, sizeof(path), "%s/log", box->dir);
    f = fopen(path, "re");
    text = malloc(RT_TAIL_MAX);

    if (f == NULL || text == NULL) {
        free(text);

        if (f != NULL) {
            fclose(f);
        }

        return;
    }

    fseek(f, 0, SEEK_END);
    size = ftell(f);
    fseek(f, size > RT_TAIL_MAX ? size - RT_TAIL_MAX : 0, SEEK_SET);
    n = fread(text, 1, RT_TAIL_MAX, f);
    fclose(f);

    for (from = n; from > 0; from--) {
        if (text[from - 1] == '\n' && from < n && --lines == 0) {
            break;
        }
    }

    sb_buf_add(b, text + from, n - from);
    free(text);
}


static void
rt_diag_inspect(sb_buf_t *b, const rt_box_t *box)
{
    rt_lc_box(b, box, false);
    sb_buf_printf(b, "\nexecd: 127.0.0.1:%u\nisolation: %s\n",
                  (unsigned) box->port,
                  rt_boxes_conf.unconfined ? "none" : "bubblewrap");
}


static void
rt_diag_events(sb_buf_t *b, const rt_box_t *box)
{
    char  created[SB_TIME_LEN + 1], changed[SB_TIME_LEN + 1];

    rt_boxes_lock();
    sb_time_text(created, box->created_us);
    sb_time_text(changed, box->changed_us);
    sb_buf_printf(b, "%s created\n%s %s: %s\n", created, changed,
                  box->reason, box->message);
    rt_boxes_unlock();
}


static int64_t
rt_diag_count(rt_req_t *r, const char *name, int64_t n)
{
    char  *text;

    text = rt_query_get(r->query, name);

    if (text != NULL && strtoll(text, NULL, 10) > 0) {
        n = strtoll(text, NULL, 10);
    }

    free(text);

    return n;
}


void
rt_lc_diagnostics(rt_req_t *r, rt_box_t *box, const char *what)
{
    char      *scope;
    bool       logs, events;
    sb_buf_t   b;

    logs = strcmp(what, "logs") == 0;
    events = strcmp(what, "events") == 0;
    scope = rt_query_get(r->query, "scope");
    memset(&b, 0, sizeof(b));
    b.max = RT_BODY_MAX;

    if (scope != NULL && (logs || events)) {
        free(scope);
        rt_lc_fail(r, 501, "DIAGNOSTICS_NOT_IMPLEMENTED",
                   "The local runtime has no diagnostics by scope.");
        return;
    }

    free(scope);

    if (logs) {
        rt_diag_log(&b, box, rt_diag_count(r, "tail", 100));

    } else if (events) {
        rt_diag_events(&b, box);

    } else if (strcmp(what, "inspect") == 0) {
        rt_diag_inspect(&b, box);

    } else if (strcmp(what, "summary") == 0) {
        rt_diag_inspect(&b, box);
        rt_diag_events(&b, box);
        rt_diag_log(&b, box, rt_diag_count(r, "tail", 50));

    } else {
        sb_buf_printf(&b, "{\"detail\":\"Not Found\"}");
        rt_lc_json(r, 404, &b);
        return;
    }

    rt_lc_decorate(r);
    rt_out(r, "content-type", "text/plain; charset=utf-8");

    if (logs || events) {
        rt_out(r, "deprecation", "true");
    }

    rt_reply(r, 200, b.data ? b.data : "", b.len);
    sb_buf_free(&b);
}
