#include "ask_facets.h"

#include "ask_boxes.h"
#include "id.h"


void
ask_facets_json(api_t *api, sb_out_t *out, const index_facets_t *f)
{
    char                  id[300];
    const char           *value;
    unsigned              i;
    size_t                k;
    const index_facet_t  *v;

    sb_out_text(out, "{");
    sb_out_key(out, "total");
    sb_out_int(out, (int64_t) f->total);
    sb_out_key(out, "failed");
    sb_out_int(out, (int64_t) f->failed);
    sb_out_key(out, "exact");
    sb_out_text(out, f->exact ? "true" : "false");

    for (i = 0; i < INDEX_FACET_COUNT; i++) {
        v = &f->of[i];
        sb_out_key(out, index_facet_names[i]);
        sb_out_text(out, "{");
        sb_out_key(out, "values");
        sb_out_text(out, "[");

        for (k = 0; k < v->n; k++) {
            value = v->values[k].value;

            if (i == INDEX_F_SANDBOX) {
                value = ask_box_id(api, value, id, sizeof(id));
            }

            sb_out_text(out, k ? ",{" : "{");
            sb_out_key(out, "value");
            sb_out_str(out, sb_str(value, strlen(value)));
            sb_out_key(out, "count");
            sb_out_int(out, (int64_t) v->values[k].n);
            sb_out_text(out, "}");
        }

        sb_out_text(out, "]");
        sb_out_key(out, "other");
        sb_out_int(out, (int64_t) v->other);
        sb_out_text(out, "}");
    }

    sb_out_text(out, "}");
}


static void
ask_histogram_time(sb_out_t *out, const char *name, int64_t us)
{
    char  time[SB_TIME_LEN + 1];

    sb_time_text(time, (uint64_t) us);
    sb_out_key(out, name);
    sb_out_str(out, sb_str(time, SB_TIME_LEN));
}


void
ask_histogram_json(sb_out_t *out, const index_histogram_t *h)
{
    unsigned  i;

    sb_out_text(out, "{");
    ask_histogram_time(out, "from", h->from_us);
    ask_histogram_time(out, "to", h->to_us);
    sb_out_key(out, "step_ms");
    sb_out_int(out, h->step_us / 1000);
    sb_out_key(out, "exact");
    sb_out_text(out, h->exact ? "true" : "false");
    sb_out_key(out, "counts");
    sb_out_text(out, "[");

    for (i = 0; i < h->n; i++) {
        sb_out_text(out, i ? ",{" : "{");
        sb_out_key(out, "total");
        sb_out_int(out, (int64_t) h->buckets[i].total);
        sb_out_key(out, "failed");
        sb_out_int(out, (int64_t) h->buckets[i].failed);
        sb_out_text(out, "}");
    }

    sb_out_text(out, "]}");
}
