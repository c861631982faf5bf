#include "ask_args.h"

#include "number.h"
#include "operation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>


static bool
ask_args_once(ask_args_t *a, const ask_param_t *p)
{
    unsigned  i;

    if (strcmp(p->name, "type") == 0 || strcmp(p->name, "status") == 0) {
        return true;
    }

    for (i = 0; i < a->n; i++) {
        if (strcmp(a->p[i].name, p->name) == 0) {
            (void) snprintf(a->why, sizeof(a->why),
                            "The parameter \"%.60s\" is given twice.", p->name);
            return false;
        }
    }

    return true;
}


bool
ask_args_read(ask_args_t *a, sb_str_t query)
{
    char         *pos;
    size_t        n, v;
    sb_str_t      name, value;
    ask_param_t  *p;

    a->text = malloc(query.len * 2 + 2);

    if (a->text == NULL) {
        (void) snprintf(a->why, sizeof(a->why), "There is no memory.");
        return false;
    }

    pos = a->text;

    while (sb_query_next(&query, &name, &value)) {

        if (name.len == 0 && value.len == 0) {
            continue;
        }

        if (a->n == ASK_PARAMS) {
            (void) snprintf(a->why, sizeof(a->why), "There are more than %d "
                            "parameters.", ASK_PARAMS);
            return false;
        }

        /* both and their ends need no more room than with "&" and "=" */

        if (sb_query_decode(pos, &n, name) != SB_OK
            || sb_query_decode(pos + n + 1, &v, value) != SB_OK)
        {
            (void) snprintf(a->why, sizeof(a->why), "The parameter \"%.*s\" is "
                            "not encoded in the one way that everybody reads "
                            "alike: encode it with %%XX.",
                            (int) (name.len < 60 ? name.len : 60), name.data);
            return false;
        }

        p = &a->p[a->n];
        p->name = pos;
        pos[n] = '\0';
        p->value = pos + n + 1;
        pos += n + 1 + v;
        *pos++ = '\0';

        if (!ask_args_once(a, p)) {
            return false;
        }

        a->n++;
    }

    return true;
}


void
ask_args_free(ask_args_t *a)
{
    free(a->text);
}


bool
ask_args_int(ask_args_t *a, const ask_param_t *p, int64_t *n, int64_t least,
    int64_t most)
{
    if (!sb_number_signed(sb_str(p->value, strlen(p->value)), least, most, n)) {
        if (least == INT64_MIN || most == INT64_MAX) {
            (void) snprintf(a->why, sizeof(a->why), "%s=%.60s is not a whole "
                            "number that is possible there.", p->name,
                            p->value);

        } else {
            (void) snprintf(a->why, sizeof(a->why), "%s=%.60s is not a whole "
                            "number from %" PRId64 " to %" PRId64 ".", p->name,
                            p->value, least, most);
        }

        return false;
    }

    return true;
}


int
ask_args_word(ask_args_t *a, const ask_param_t *p, const char *const *words)
{
    int     i;
    size_t  n;

    for (i = 0; words[i]; i++) {
        if (strcmp(words[i], p->value) == 0) {
            return i;
        }
    }

    (void) snprintf(a->why, sizeof(a->why), "%s=%.60s is none of", p->name,
                    p->value);

    for (i = 0; words[i]; i++) {
        n = strlen(a->why);
        (void) snprintf(a->why + n, sizeof(a->why) - n, "%s %s%s",
                        i ? "," : "", words[i], words[i + 1] ? "" : ".");
    }

    return -1;
}


bool
ask_args_filter(ask_args_t *a, const ask_param_t *p, history_filter_t *f)
{
    size_t   n;
    sb_rc_t  rc;

    rc = history_filter_set(f, p->name, p->value, a->why, sizeof(a->why) - 1);

    if (rc == SB_DECLINED) {
        return ask_args_unknown(a, p);
    }

    if (rc != SB_OK) {
        n = strlen(a->why);

        if (n && a->why[n - 1] != '.') {
            (void) strcpy(a->why + n, ".");
        }
    }

    return rc == SB_OK;
}


bool
ask_args_unknown(ask_args_t *a, const ask_param_t *p)
{
    (void) snprintf(a->why, sizeof(a->why), "There is no parameter \"%.60s\" "
                    "here.", p->name);
    return false;
}


ask_rc_e
ask_args_refuse(ask_question_t *q, const ask_args_t *a)
{
    return ask_refuse(q, 400, "GATEWAY_INVALID_PARAMETER", a->why);
}
