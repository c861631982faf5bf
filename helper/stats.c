#include "stats.h"

#include <stdatomic.h>


typedef struct {
    atomic_uint_least64_t  bucket[STATS_BUCKETS];
    atomic_uint_least64_t  sum_us;
    atomic_uint_least64_t  max_us;
} stats_hist_t;

static atomic_uint_least64_t  stats_value[STATS_COUNT];
static stats_hist_t           stats_hist[STATS_TIMES];

const uint64_t  stats_bounds[STATS_BUCKETS] = {
    10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000,
    250000, 1000000, UINT64_MAX
};

static const struct {
    const char  *name;
    const char  *help;
    const char  *kind;
} stats_info[STATS_COUNT] = {
#define STATS_ROW(id, kind, name, help)  { name, help, #kind },
    STATS_LIST(STATS_ROW)
#undef STATS_ROW
};

static const struct {
    const char  *name;
    const char  *help;
} stats_time_info[STATS_TIMES] = {
    { "journal_append_seconds", "one write to the journal" },
    { "journal_sync_seconds", "one flush of the journal" },
    { "history_commit_seconds", "one transaction on a history file" },
    { "history_checkpoint_seconds", "checkpoints of a group of files" }
};


void
stats_add(stats_e n, uint64_t v)
{
    atomic_fetch_add_explicit(&stats_value[n], v, memory_order_relaxed);
}


void
stats_set(stats_e n, uint64_t v)
{
    atomic_store_explicit(&stats_value[n], v, memory_order_relaxed);
}


uint64_t
stats_get(stats_e n)
{
    return atomic_load_explicit(&stats_value[n], memory_order_relaxed);
}


const char *
stats_name(stats_e n)
{
    return stats_info[n].name;
}


const char *
stats_help(stats_e n)
{
    return stats_info[n].help;
}


bool
stats_is_counter(stats_e n)
{
    return stats_info[n].kind[0] == 'c';
}


uint64_t
stats_lag_us(uint64_t now_us)
{
    uint64_t  applied;

    if (stats_lag_records() == 0) {
        return 0;
    }

    applied = stats_get(STATS_APPLIED_US);

    return applied && now_us > applied ? now_us - applied : 0;
}


uint64_t
stats_lag_records(void)
{
    uint64_t  applied, cursor;

    /* in this order: the journal goes first */
    applied = stats_get(STATS_APPLIED_CURSOR);
    cursor = stats_get(STATS_JOURNAL_CURSOR);

    return cursor > applied ? cursor - applied : 0;
}


void
stats_time(stats_time_e n, uint64_t us)
{
    unsigned        i;
    uint64_t        max;
    stats_hist_t   *h;

    h = &stats_hist[n];

    for (i = 0; us > stats_bounds[i]; i++) { /* void */ }

    atomic_fetch_add_explicit(&h->bucket[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum_us, us, memory_order_relaxed);

    max = atomic_load_explicit(&h->max_us, memory_order_relaxed);

    while (us > max
           && !atomic_compare_exchange_weak_explicit(&h->max_us, &max, us,
                                                     memory_order_relaxed,
                                                     memory_order_relaxed))
    { /* void */ }
}


void
stats_times(stats_time_e n, stats_times_t *out)
{
    unsigned       i;
    stats_hist_t  *h;

    h = &stats_hist[n];
    out->count = 0;

    for (i = 0; i < STATS_BUCKETS; i++) {
        out->bucket[i] = atomic_load_explicit(&h->bucket[i],
                                              memory_order_relaxed);
        out->count += out->bucket[i];
    }

    out->sum_us = atomic_load_explicit(&h->sum_us, memory_order_relaxed);
    out->max_us = atomic_load_explicit(&h->max_us, memory_order_relaxed);
}


const char *
stats_time_name(stats_time_e n)
{
    return stats_time_info[n].name;
}


const char *
stats_time_help(stats_time_e n)
{
    return stats_time_info[n].help;
}
