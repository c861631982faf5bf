/* GET health: is everything there that a gateway needs? */

#include "api.h"
#include "id.h"
#include "json.h"
#include "stats.h"

#include <unistd.h>


typedef struct {
    unsigned  status;
    uint64_t  asked_us;
    uint64_t  took_us;
} health_upstream_t;


/* What upstream says of itself, asked anew when that is old; one thread asks,
 * the others take what is known. */
static void
health_upstream(api_t *api, health_upstream_t *u)
{
    bool            ask;
    uint64_t        now;
    unsigned        status;
    fetch_answer_t  a;

    now = sb_now_us();

    pthread_mutex_lock(&api->lock);
    ask = api->fetch && !api->asking
          && (api->asked_us == 0 || now < api->asked_us
              || now - api->asked_us >= API_UPSTREAM_US);
    api->asking = api->asking || ask;
    pthread_mutex_unlock(&api->lock);

    status = 0;

    if (ask && fetch_wait(api->fetch, sb_lit("/health"), API_UPSTREAM_MS, &a)
               == SB_OK)
    {
        status = a.status;
        sb_buf_free(&a.body);
    }

    pthread_mutex_lock(&api->lock);

    if (ask) {
        api->asking = false;
        api->asked_us = now;
        api->took_us = sb_now_us() - now;
        api->status = status;
    }

    u->status = api->status;
    u->asked_us = api->asked_us;
    u->took_us = api->took_us;

    pthread_mutex_unlock(&api->lock);
}


static const char *
health_upstream_word(const api_t *api, const health_upstream_t *u)
{
    if (api->fetch == NULL || u->asked_us == 0) {
        return "unknown";
    }

    if (u->status == 0) {
        return "unreachable";
    }

    return u->status >= 200 && u->status < 300 ? "ok" : "failing";
}


/* The members of the answer; worker and console read them. */
static sb_rc_t
health_text(const ask_question_t *q, sb_buf_t *b)
{
    bool                failing, late, bad;
    api_t              *api;
    sb_rc_t             rc;
    uint64_t            lag;
    const char         *word;
    char                time[SB_TIME_LEN + 1];
    health_upstream_t   u;

    api = q->context;

    health_upstream(api, &u);
    word = health_upstream_word(api, &u);

    failing = stats_get(STATS_JOURNAL_FAILING) != 0;
    lag = stats_lag_us(sb_now_us());
    late = lag > api->options->lag_us;
    bad = strcmp(word, "unreachable") == 0 || strcmp(word, "failing") == 0;

    rc = sb_buf_printf(b, "{\"status\":\"%s\",\"helper\":{\"isolation\":\"%s\","
                       "\"version\":\"" SB_VERSION "\",\"mode\":\"%s\","
                       "\"sync\":\"%s\"},",
                       failing ? "unavailable" : late || bad ? "degraded" : "ok",
                       q->peer == geteuid() ? "none" : "user",
                       api->options->none ? "none" : "provider",
                       api->options->full ? "full" : "normal");

    if (rc == SB_OK) {
        rc = sb_buf_printf(b, "\"store\":{\"writable\":%s,\"lag_records\":%llu,"
                           "\"lag_seconds\":%llu.%03llu},",
                           failing ? "false" : "true",
                           (unsigned long long) stats_lag_records(),
                           (unsigned long long) (lag / 1000000u),
                           (unsigned long long) (lag / 1000u % 1000u));
    }

    if (rc == SB_OK) {
        rc = sb_buf_printf(b, "\"upstream\":{\"status\":\"%s\"", word);
    }

    if (rc == SB_OK && u.asked_us) {
        sb_time_text(time, u.asked_us);
        rc = sb_buf_printf(b, ",\"http_status\":%u,\"checked_at\":\"%s\","
                           "\"duration_ms\":%llu", u.status, time,
                           (unsigned long long) (u.took_us / 1000u));
    }

    return rc == SB_OK ? sb_buf_add_str(b, sb_lit("}}")) : rc;
}


ask_rc_e
ask_health(ask_question_t *q)
{
    sb_buf_t  b;

    memset(&b, 0, sizeof(b));
    b.max = 4096;

    if (health_text(q, &b) != SB_OK) {
        sb_buf_free(&b);
        return ASK_FAILED;
    }

    return ask_whole(q, 200, "application/json", &b);
}
