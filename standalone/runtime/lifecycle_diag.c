/* GET /sandboxes/{id}/diagnostics/...: plain text for people. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "id.h"
#include "lifecycle.h"
#include "url.h"


#define RT_TAIL_MAX  (256 * 1024)


/* Where the last lines of a text begin. */

static size_t
rt_diag_last(const char *text, size_t n, int64_t lines)
{
    size_t  from;

    for (from = n; from > 0; from--) {
        if (text[from - 1] == '\n' && from < n && --lines == 0) {
            break;
        }
    }

    return from;
}


/* Appends the last lines of the sandbox's log.  Those of the entrypoint begin
 * with their time; those before `since` are left out. */

static void
rt_diag_log(sb_buf_t *b, const rt_box_t *box, const rt_diag_t *diag)
{
    char      path[PATH_MAX], *text;
    FILE     *f;
    long      size;
    size_t    n, from, len, begin;
    uint64_t  us, cut;

    snprintf(path, sizeof(path), "%s/log", box->dir);
    f = fopen(path, "re");
    text = malloc(RT_TAIL_MAX);
    begin = b->len;

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
    cut = diag->since ? sb_now_us() - (uint64_t) diag->since * 1000000 : 0;

    for (from = rt_diag_last(text, n, diag->tail); from < n; from += len) {
        len = 0;

        while (from + len < n && text[from + len++] != '\n') { /* void */ }

        if (cut == 0 || len < SB_TIME_LEN
            || sb_time_parse(&us, sb_str(text + from, SB_TIME_LEN)) != SB_OK
            || us >= cut)
        {
            sb_buf_add(b, text + from, len);
        }
    }

    free(text);

    if (b->len == begin) {
        sb_buf_printf(b, "(no logs)");
    }
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
rt_diag_events(sb_buf_t *b, const rt_box_t *box, const rt_diag_t *diag)
{
    char  created[SB_TIME_LEN + 1], changed[SB_TIME_LEN + 1];

    rt_boxes_lock();
    sb_time_text(created, box->created_us);
    sb_time_text(changed, box->changed_us);

    if (diag->limit > 1) {
        sb_buf_printf(b, "%s created\n", created);
    }

    sb_buf_printf(b, "%s %s: %s\n", changed, box->reason, box->message);
    rt_boxes_unlock();
}


/* "10m" and the like in seconds; what is none of it counts as that. */

static int64_t
rt_diag_since(rt_req_t *r)
{
    char     *text, *end;
    int64_t   n;

    text = rt_query_get(r->query, "since");

    if (text == NULL || text[0] == '\0') {
        free(text);
        return 0;
    }

    n = strtoll(text, &end, 10);
    end += strspn(end, " ");

    n = end == text || n < 0 || n > INT32_MAX || (end[0] && end[1])
        ? 600
        : *end == 's' ? n
        : *end == 'm' ? n * 60
        : *end == 'h' ? n * 3600
        : *end == 'd' ? n * 86400 : 600;

    free(text);

    return n > 0 ? n : 1;
}


bool
rt_lc_diag_query(rt_req_t *r, const char *what, rt_diag_t *diag)
{
    bool       logs, events, summary;
    char      *scope;
    sb_buf_t   b;

    memset(diag, 0, sizeof(rt_diag_t));
    logs = strcmp(what, "logs") == 0;
    events = strcmp(what, "events") == 0;
    summary = strcmp(what, "summary") == 0;
    diag->what = what;
    diag->tail = summary ? 50 : 100;
    diag->limit = summary ? 20 : 50;

    if (!logs && !events && !summary && strcmp(what, "inspect") != 0) {
        memset(&b, 0, sizeof(b));
        b.max = 64;
        sb_buf_printf(&b, "{\"detail\":\"Not Found\"}");
        rt_lc_json(r, 404, &b);
        return false;
    }

    if (((logs || summary)
         && !rt_lc_query_int(r, "tail", 10000, &diag->tail))
        || (events && !rt_lc_query_int(r, "limit", 500, &diag->limit))
        || (summary
            && !rt_lc_query_int(r, "event_limit", 500, &diag->limit)))
    {
        return false;
    }

    scope = logs || events ? rt_query_get(r->query, "scope") : NULL;

    if (scope != NULL) {
        free(scope);
        rt_lc_fail(r, 501, "DIAGNOSTICS_NOT_IMPLEMENTED",
                   "The local runtime has no diagnostics by scope.");
        return false;
    }

    diag->since = logs ? rt_diag_since(r) : 0;

    return true;
}


void
rt_lc_diagnostics(rt_req_t *r, rt_box_t *box, const rt_diag_t *diag)
{
    bool      logs, events;
    sb_buf_t  b;

    logs = strcmp(diag->what, "logs") == 0;
    events = strcmp(diag->what, "events") == 0;
    memset(&b, 0, sizeof(b));
    b.max = RT_BODY_MAX;

    if (logs) {
        rt_diag_log(&b, box, diag);

    } else if (events) {
        rt_diag_events(&b, box, diag);

    } else if (strcmp(diag->what, "inspect") == 0) {
        rt_diag_inspect(&b, box);

    } else {
        rt_diag_inspect(&b, box);
        rt_diag_events(&b, box, diag);
        rt_diag_log(&b, box, diag);
    }

    rt_lc_decorate(r);
    rt_out(r, "content-type", "text/plain; charset=utf-8");

    if (logs || events) {
        rt_out(r, "deprecation", "true");
    }

    rt_reply(r, 200, b.data ? b.data : "", b.len);
    sb_buf_free(&b);
}
