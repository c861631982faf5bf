/* GET overview: how many of what, what runs, how the recorder does. */

#include "ask_answer.h"
#include "ask_args.h"
#include "ask_facets.h"
#include "ask_records.h"

#include "id.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>


#define ASK_RUNNING  50         /* told of what runs */
#define ASK_FAILED_ONES  20     /* ... of what failed last */


typedef struct {
    ask_args_t        args;
    api_wait_t        wait;
    history_filter_t  filter;
} ask_overview_t;


static void
ask_overview_release(void *state)
{
    ask_overview_t  *s = state;

    ask_args_free(&s->args);
    free(s);
}


static bool
ask_overview_args(ask_overview_t *s)
{
    unsigned      i;
    ask_param_t  *p;

    for (i = 0; i < s->args.n; i++) {
        p = &s->args.p[i];

        if (strcmp(p->name, "from") != 0 && strcmp(p->name, "to") != 0) {
            return ask_args_unknown(&s->args, p);
        }

        if (!ask_args_filter(&s->args, p, &s->filter)) {
            return false;
        }
    }

    return true;
}


/* The newest records that pass, and how many there are. */
static bool
ask_overview_list(api_t *api, sb_out_t *out, const char *name,
    const history_filter_t *f, unsigned limit)
{
    bool              all;
    index_rc_e        rc;
    ask_records_t     r;
    index_answer_t    a;
    index_facets_t    n;
    index_question_t  q;

    memset(&q, 0, sizeof(q));
    q.filter = f;
    q.limit = limit;

    sb_out_key(out, name);
    sb_out_text(out, "{");
    sb_out_key(out, "items");
    sb_out_text(out, "[");

    rc = index_query(api->index, &q, &a);
    all = rc == INDEX_OK;
    memset(&r, 0, sizeof(r));

    if (rc == INDEX_OK || rc == INDEX_PARTIAL) {
        ask_records(api, out, a.hits, a.n, ASK_ANSWER_BYTES, &r);
    }

    sb_out_text(out, "]");
    sb_out_key(out, "count");

    if (rc == INDEX_OK && !a.more) {
        sb_out_int(out, (int64_t) a.n);
        sb_out_key(out, "exact");
        sb_out_text(out, "true");

    } else {
        rc = index_facets(api->index, &q, &n);
        sb_out_int(out, (int64_t) n.total);
        sb_out_key(out, "exact");
        sb_out_text(out, rc == INDEX_OK && n.exact ? "true" : "false");
        all = all && (rc == INDEX_OK || rc == INDEX_PARTIAL);
        index_facets_free(&n);
    }

    sb_out_text(out, "}");
    index_answer_free(&a);

    return all && !r.unreadable;
}


static void
ask_overview_number(sb_out_t *out, const char *name, uint64_t n)
{
    sb_out_key(out, name);
    sb_out_int(out, (int64_t) n);
}


static void
ask_overview_recorder(api_t *api, sb_out_t *out)
{
    uint64_t         lag;
    index_numbers_t  n;

    lag = stats_lag_us(sb_now_us());
    index_numbers(api->index, &n);

    sb_out_key(out, "recorder");
    sb_out_text(out, "{");
    sb_out_key(out, "status");
    sb_out_text(out, stats_get(STATS_JOURNAL_FAILING) ? "\"unavailable\""
                     : lag > api->options->lag_us
                       || stats_get(STATS_STALLED) ? "\"degraded\""
                     : "\"ok\"");
    ask_overview_number(out, "cursor", stats_get(STATS_JOURNAL_CURSOR));
    ask_overview_number(out, "applied_cursor",
                        stats_get(STATS_APPLIED_CURSOR));
    ask_overview_number(out, "lag_records", stats_lag_records());
    ask_overview_number(out, "lag_ms", lag / 1000);
    ask_overview_number(out, "stalled_sandboxes", stats_get(STATS_STALLED));
    ask_overview_number(out, "refused_records",
                        stats_get(STATS_JOURNAL_REFUSED));
    ask_overview_number(out, "files_lost", stats_get(STATS_FILES_LOST));
    ask_overview_number(out, "journal_bytes", stats_get(STATS_JOURNAL_BYTES));
    sb_out_key(out, "index");
    sb_out_text(out, "{");
    sb_out_key(out, "ready");
    sb_out_text(out, n.ready ? "true" : "false");
    ask_overview_number(out, "files", n.files);
    ask_overview_number(out, "operations", n.rows);
    ask_overview_number(out, "lag_ms", n.lag_us / 1000);
    sb_out_text(out, "}}");
}


static ask_rc_e
ask_overview_answer(ask_question_t *q, ask_overview_t *s)
{
    bool              complete;
    char              text[300];
    api_t            *api;
    index_rc_e        rc;
    index_facets_t    f;
    sb_out_t          out = { .buf.max = SB_OUT_MAX };
    history_filter_t  one;
    index_question_t  ask;

    api = q->context;
    memset(&ask, 0, sizeof(ask));
    ask.filter = &s->filter;
    ask.limit = 1;

    rc = index_facets(api->index, &ask, &f);

    if (rc != INDEX_OK && rc != INDEX_PARTIAL) {
        (void) snprintf(text, sizeof(text), "The index cannot be read now: %s; "
                        "ask again.", f.why);
        index_facets_free(&f);

        if (rc == INDEX_FAILED && api_wait_more(q, &s->wait)) {
            return ASK_AGAIN;
        }

        return ask_refuse(q, 503, "GATEWAY_RECORDER_UNAVAILABLE", text);
    }

    complete = s->wait.reached && rc == INDEX_OK;

    sb_out_text(&out, "{");
    sb_out_key(&out, "counts");
    ask_facets_json(api, &out, &f);
    index_facets_free(&f);

    one = s->filter;
    one.status.text[0] = "failed";
    one.status.text[1] = "timeout";
    one.status.n = 2;
    complete = ask_overview_list(api, &out, "failures", &one, ASK_FAILED_ONES)
               && complete;

    one = s->filter;
    one.type.text[0] = "gateway.gap";
    one.type.n = 1;
    complete = ask_overview_list(api, &out, "gaps", &one, ASK_FAILED_ONES)
               && complete;

    /* what runs now, whenever it began */
    history_filter_init(&one);
    one.status.text[0] = "started";
    one.status.n = 1;
    complete = ask_overview_list(api, &out, "running", &one, ASK_RUNNING)
               && complete;

    ask_overview_recorder(api, &out);

    sb_out_key(&out, "complete");
    sb_out_text(&out, complete ? "true}" : "false}");

    return ask_json(q, &out);
}


ask_rc_e
ask_overview(ask_question_t *q)
{
    api_t           *api;
    ask_overview_t  *s;

    api = q->context;
    s = q->state;

    if (api->index == NULL || api->readers == NULL) {
        return ask_nothing(q);
    }

    if (s == NULL) {
        s = calloc(1, sizeof(ask_overview_t));

        if (s == NULL) {
            return ASK_FAILED;
        }

        q->state = s;
        q->release = ask_overview_release;
        s->wait.brief = true;
        history_filter_init(&s->filter);

        if (!ask_args_read(&s->args, q->query) || !ask_overview_args(s)) {
            return ask_args_refuse(q, &s->args);
        }
    }

    return api_wait_index(q, &s->wait) ? ask_overview_answer(q, s) : ASK_AGAIN;
}
