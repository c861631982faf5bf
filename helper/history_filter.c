#include "history_filter.h"
#include "id.h"
#include "number.h"
#include "operation.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>


#define HISTORY_FILTER_TEXT  4096


void
history_filter_init(history_filter_t *f)
{
    memset(f, 0, sizeof(history_filter_t));
    f->min_duration_ms = -1;
    f->from_us = -1;
    f->to_us = -1;
}


bool
history_filter_time(int64_t *us, const char *text)
{
    char       full[64];
    char      *end;
    size_t     len;
    uint64_t   value;
    long long  n, unit;

    len = strlen(text);

    if (isdigit((unsigned char) text[0])
        && text[strspn(text, "0123456789")] != '\0'
        && text[strspn(text, "0123456789") + 1] == '\0'
        && strchr("smhd", text[len - 1]) != NULL && len < 10)
    {
        n = strtoll(text, &end, 10);
        unit = *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : 86400;
        *us = (int64_t) sb_now_us() - n * unit * 1000000;
        return true;
    }

    if (len >= sizeof(full) - 16) {
        return false;
    }

    strcpy(full, text);

    if (len > 10 && full[10] == ' ') {
        full[10] = 'T';
    }

    if (len == 10) {
        strcat(full, "T00:00:00Z");

    } else if (len == 16) {
        strcat(full, ":00Z");

    } else if (len >= 19 && strpbrk(full + 19, "Zz+-") == NULL) {
        strcat(full, "Z");
    }

    if (sb_time_parse(&value, sb_str(full, strlen(full))) != SB_OK) {
        return false;
    }

    *us = (int64_t) value;

    return true;
}


static sb_rc_t
history_filter_int(int64_t *n, int64_t least, const char *name,
    const char *value, char *why, size_t size)
{
    if (!sb_number_signed(sb_str(value, strlen(value)), least, INT64_MAX, n)) {
        (void) snprintf(why, size, "%s=%.60s is no number that is possible "
                        "there", name, value);
        return SB_ERROR;
    }

    return SB_OK;
}


static bool
history_filter_status(const char *value)
{
    size_t  i;

    static const char *const  all[] = {
        "started", "succeeded", "failed", "timeout", "cancelled", "unknown"
    };

    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(value, all[i]) == 0) {
            return true;
        }
    }

    return false;
}


static sb_rc_t
history_filter_add(history_filter_any_t *any, const char *name,
    const char *value, char *why, size_t size)
{
    if (any->n == HISTORY_FILTER_VALUES) {
        (void) snprintf(why, size, "%s is given more than %d times", name,
                        HISTORY_FILTER_VALUES);
        return SB_ERROR;
    }

    any->text[any->n++] = value;

    return SB_OK;
}


sb_rc_t
history_filter_set(history_filter_t *f, const char *name, const char *value,
    char *why, size_t size)
{
    size_t    i;
    int64_t  *us;

    const struct {
        const char   *name;
        const char  **text;
    } texts[] = {
        { "actor", &f->actor }, { "actor_type", &f->actor_type },
        { "source", &f->source }, { "thread", &f->thread }, { "run", &f->run },
        { "correlation", &f->correlation }, { "path", &f->path }, { "q", &f->q }
    };

    if (strlen(value) > HISTORY_FILTER_TEXT) {
        (void) snprintf(why, size, "%.40s is longer than %d bytes", name,
                        HISTORY_FILTER_TEXT);
        return SB_ERROR;
    }

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].text = value;
            return SB_OK;
        }
    }

    if (strcmp(name, "type") == 0) {
        return history_filter_add(&f->type, name, value, why, size);
    }

    if (strcmp(name, "status") == 0) {

        if (!history_filter_status(value)) {
            (void) snprintf(why, size, "status=%.40s: it is one of started, "
                            "succeeded, failed, timeout, cancelled, unknown",
                            value);
            return SB_ERROR;
        }

        return history_filter_add(&f->status, name, value, why, size);
    }

    if (strcmp(name, "exit_code") == 0) {
        f->has_exit_code = true;
        return history_filter_int(&f->exit_code, INT64_MIN, name, value, why,
                                  size);
    }

    if (strcmp(name, "min_duration_ms") == 0) {
        return history_filter_int(&f->min_duration_ms, 0, name, value, why,
                                  size);
    }

    us = strcmp(name, "from") == 0 ? &f->from_us
         : strcmp(name, "to") == 0 ? &f->to_us : NULL;

    if (us == NULL) {
        return SB_DECLINED;
    }

    if (!history_filter_time(us, value)) {
        (void) snprintf(why, size, "%s=%.60s is no time: write 2026-11-29,"
                        " 2026-11-29T09:30 or 10m (ago)", name, value);
        return SB_ERROR;
    }

    return SB_OK;
}


static bool
history_filter_is(const char *wanted, sb_str_t text)
{
    return wanted == NULL || sb_eq(sb_str(wanted, strlen(wanted)), text);
}


static bool
history_filter_path(const char *path, const history_filter_facts_t *facts)
{
    size_t    i;
    sb_str_t  glob;

    glob = sb_str(path, strlen(path));

    for (i = 0; i < facts->npaths; i++) {
        if (sb_op_glob(glob, facts->paths[i])) {
            return true;
        }
    }

    return false;
}


bool
history_filter_match(const history_filter_t *f,
    const history_filter_facts_t *facts)
{
    bool      found;
    unsigned  i;

    found = f->type.n == 0
            && (f->console || facts->type.len < 8
                || memcmp(facts->type.data, "console.", 8) != 0);

    for (i = 0; i < f->type.n && !found; i++) {
        found = sb_op_glob(sb_str(f->type.text[i], strlen(f->type.text[i])),
                           facts->type);
    }

    if (!found) {
        return false;
    }

    found = f->status.n == 0;

    for (i = 0; i < f->status.n && !found; i++) {
        found = history_filter_is(f->status.text[i], facts->status);
    }

    return found
           && history_filter_is(f->actor, facts->actor)
           && history_filter_is(f->actor_type, facts->actor_type)
           && history_filter_is(f->source, facts->source)
           && history_filter_is(f->thread, facts->thread)
           && history_filter_is(f->run, facts->run)
           && history_filter_is(f->correlation, facts->correlation)
           && (f->path == NULL || history_filter_path(f->path, facts))
           && (!f->has_exit_code || (facts->has_exit_code
                                     && facts->exit_code == f->exit_code))
           && (f->min_duration_ms == -1
               || facts->duration_ms >= f->min_duration_ms)
           && (f->from_us == -1 || facts->started_us >= f->from_us)
           && (f->to_us == -1 || facts->started_us < f->to_us);
}
