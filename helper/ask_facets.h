/* Counts of the index, as JSON. */

#ifndef ASK_FACETS_H_INCLUDED
#define ASK_FACETS_H_INCLUDED

#include "api.h"

/* An object: total, failed, exact, and for each facet values and other. */
void ask_facets_json(api_t *api, sb_out_t *out, const index_facets_t *f);
/* An object: from, to, step_ms, exact, counts. */
void ask_histogram_json(sb_out_t *out, const index_histogram_t *h);

#endif /* ASK_FACETS_H_INCLUDED */
