#include "ask_facets.h"

#include "ask_boxes.h"
#include "id.h"


void
ask_facets_json(api_t *api, history_out_t *out, const index_facets_t *f)
{
    char                  id[300];
    const char           *value;
    unsigned              i;
    size_t                k;
    const index_facet_t  *v;

    history_out_text(out, "{");
    history_out_key(out, "total");
    history_out_int(out, (int64_t) f->total);
    history_out_key(out, "failed");
    history_out_int(out, (int64_t) f->failed);
    history_out_key(out, "exact");
    history_out_text(out, f->exact ? "true" : "false");

    for (i = 0; i < INDEX_FACET_COUNT; i++) {
        v = &f->of[i];
        history_out_key(out, index_facet_names[i]);
        history_out_text(out, "{");
        history_out_key(out, "values");
        history_out_text(out, "[");

        for (k = 0; k < v->n; k++) {
            value = v->values[k].value;

            if (i == INDEX_F_SANDBOX) {
                value = ask_box_id(api, value, id, sizeof(id));
            }

            history_out_text(out, k ? ",{" : "{");
            history_out_key(out, "value");
            history_out_str(out, sb_str(value, strlen(value)));
            history_out_key(out, "count");
            history_out_int(out, (int64_t) v->values[k].n);
            history_out_text(out, "}");
        }

        history_out_text(out, "]");
        history_out_key(out, "other");
        history_out_int(out, (int64_t) v->other);
        history_out_text(out, "}");
    }

    history_out_text(out, "}");
}


static void
ask_histogram_time(history_out_t *out, const char *name, int64_t us)
{
    char  time[SB_TIME_LEN + 1];

    sb_time_text(time, (uint64_t) us);
    history_out_key(out, name);
    history_out_str(out, sb_str(time, SB_TIME_LEN));
}


void
ask_histogram_json(history_out_t *out, const index_histogram_t *h)
{
    unsigned  i;

    history_out_text(out, "{");
    ask_histogram_time(out, "from", h->from_us);
    ask_histogram_time(out, "to", h->to_us);
    history_out_key(out, "step_ms");
    history_out_int(out, h->step_us / 1000);
    history_out_key(out, "exact");
    history_out_text(out, h->exact ? "true" : "false");
    history_out_key(out, "counts");
    history_out_text(out, "[");

    for (i = 0; i < h->n; i++) {
        history_out_text(out, i ? ",{" : "{");
        history_out_key(out, "total");
        history_out_int(out, (int64_t) h->buckets[i].total);
        history_out_key(out, "failed");
        history_out_int(out, (int64_t) h->buckets[i].failed);
        history_out_text(out, "}");
    }

    history_out_text(out, "]}");
}
