/* Answers of the lifecycle side and their pieces. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "digest.h"
#include "id.h"
#include "lifecycle.h"
#include "url.h"


void
rt_lc_decorate(rt_req_t *r)
{
    char         date[32], id[33], *copy;
    uint8_t      raw[16];
    const char  *given;
    size_t       n;

    rt_http_date(date, (int64_t) time(NULL));
    rt_out(r, "date", date);
    rt_out(r, "server", "uvicorn");

    given = rt_header(r, "X-Request-ID");
    copy = NULL;

    if (given != NULL) {
        given += strspn(given, " \t");
        copy = strdup(given);

        if (copy != NULL) {
            n = strlen(copy);

            while (n > 0 && (copy[n - 1] == ' ' || copy[n - 1] == '\t')) {
                copy[--n] = '\0';
            }
        }
    }

    if (copy != NULL && copy[0] != '\0') {
        rt_out(r, "x-request-id", copy);

    } else {
        sb_random(raw, sizeof(raw));
        sb_hex(id, raw, sizeof(raw));
        rt_out(r, "x-request-id", id);
    }

    free(copy);

    if (rt_header(r, "Origin") != NULL) {
        rt_out(r, "access-control-allow-origin", "*");
        rt_out(r, "access-control-allow-credentials", "true");
    }
}


void
rt_lc_json(rt_req_t *r, unsigned status, sb_buf_t *b)
{
    rt_lc_decorate(r);
    rt_out(r, "content-type", "application/json");
    rt_reply(r, status, b->data, b->len);
    sb_buf_free(b);
}


void
rt_lc_empty(rt_req_t *r, unsigned status)
{
    rt_lc_decorate(r);
    rt_reply(r, status, "", 0);
}


void
rt_lc_str(sb_buf_t *b, sb_str_t s)
{
    size_t         i;
    unsigned char  c;

    sb_buf_add_c(b, '"');

    for (i = 0; i < s.len; i++) {
        c = (unsigned char) s.data[i];

        if (c == '"' || c == '\\') {
            sb_buf_printf(b, "\\%c", c);

        } else if (c < 0x20) {
            sb_buf_printf(b, "\\u%04x", c);

        } else {
            sb_buf_add_c(b, (char) c);
        }
    }

    sb_buf_add_c(b, '"');
}


void
rt_lc_time(sb_buf_t *b, uint64_t us)
{
    char  text[SB_TIME_LEN + 1];

    sb_time_text(text, us);
    sb_buf_printf(b, "\"%s\"", text);
}


void
rt_lc_fail(rt_req_t *r, unsigned status, const char *code, const char *fmt,
    ...)
{
    va_list   args;
    sb_buf_t  b;

    va_start(args, fmt);
    rt_envelope(&b, code, rt_lc_str, fmt, args);
    va_end(args);

    rt_lc_json(r, status, &b);
}


void
rt_lc_unknown(rt_req_t *r, sb_str_t id)
{
    rt_lc_fail(r, 404, "DOCKER::SANDBOX_NOT_FOUND", "Sandbox %.*s not found.",
               (int) (id.len < 200 ? id.len : 200), id.data);
}


void
rt_lc_invalid(rt_req_t *r, const char *type, const char *loc,
    const char *msg, const char *input, const char *ctx)
{
    sb_buf_t  b;

    memset(&b, 0, sizeof(b));
    b.max = RT_BODY_MAX;
    sb_buf_printf(&b, "{\"detail\":[{\"type\":\"%s\",\"loc\":[%s],\"msg\":",
                  type, loc);
    rt_lc_str(&b, sb_str(msg, strlen(msg)));
    sb_buf_printf(&b, ",\"input\":%s", input ? input : "null");

    if (ctx != NULL) {
        sb_buf_printf(&b, ",\"ctx\":%s", ctx);
    }

    sb_buf_add(&b, "}]}", 3);
    rt_lc_json(r, 422, &b);
}


bool
rt_lc_strings(rt_req_t *r, const sb_jv_t *v, const char *name, bool nulls)
{
    sb_buf_t        b;
    const sb_jv_t  *m;

    if (v == NULL) {
        return true;
    }

    memset(&b, 0, sizeof(b));
    b.max = RT_BODY_MAX;
    sb_buf_printf(&b, name ? "\"body\",\"%s\"" : "\"body\"", name);

    if (v->kind != SB_JSON_OPEN_OBJECT) {
        rt_lc_invalid(r, "dict_type", sb_buf_cstr(&b),
                      "Input should be a valid dictionary", NULL, NULL);
        sb_buf_free(&b);
        return false;
    }

    for (m = v->child; m != NULL; m = m->next) {
        if (m->kind != SB_JSON_STRING
            && !(nulls && m->kind == SB_JSON_NULL))
        {
            sb_buf_add_c(&b, ',');
            rt_lc_str(&b, m->key);
            rt_lc_invalid(r, "string_type", sb_buf_cstr(&b),
                          "Input should be a valid string", NULL, NULL);
            sb_buf_free(&b);
            return false;
        }
    }

    sb_buf_free(&b);

    return true;
}


char *
rt_lc_query(const char *query, const char *name)
{
    char        *value;
    rt_query_t   q;

    value = NULL;
    rt_query_init(&q, query);

    while (rt_query_next(&q)) {
        if (strcmp(q.name.data, name) == 0) {
            free(value);
            value = strdup(q.value.data);
        }
    }

    rt_query_free(&q);

    return value;
}


static bool
rt_json_type(const char *type)
{
    size_t  n;

    if (type == NULL) {
        return false;
    }

    n = strcspn(type, "; ");

    return (n == 16 && strncasecmp(type, "application/json", 16) == 0)
           || (n > 17 && strncasecmp(type, "application/", 12) == 0
               && strncasecmp(type + n - 5, "+json", 5) == 0);
}


sb_jdoc_t *
rt_lc_body(rt_req_t *r)
{
    sb_rc_t            rc;
    sb_jdoc_t         *doc;
    sb_json_limits_t   limits;

    if (r->too_large) {
        rt_lc_fail(r, 413, "GENERAL::UNKNOWN_ERROR",
                   "the body is larger than %u bytes", RT_BODY_MAX);
        return NULL;
    }

    if (r->body.len == 0) {
        rt_lc_invalid(r, "missing", "\"body\"", "Field required", NULL,
                      NULL);
        return NULL;
    }

    doc = NULL;
    limits.max_depth = 200;
    limits.max_bytes = RT_BODY_MAX;

    if (rt_json_type(rt_header(r, "Content-Type"))) {
        doc = sb_jdoc_parse(sb_str(r->body.data, r->body.len), &limits, &rc);

        if (doc == NULL) {
            rt_lc_invalid(r, "json_invalid", "\"body\",0",
                          "JSON decode error", "{}",
                          "{\"error\":\"the body is not one JSON value\"}");
            return NULL;
        }
    }

    if (doc == NULL || sb_jdoc_root(doc)->kind != SB_JSON_OPEN_OBJECT) {
        sb_jdoc_free(doc);
        rt_lc_invalid(r, "model_attributes_type", "\"body\"",
                      "Input should be a valid dictionary or object to "
                      "extract fields from", NULL, NULL);
        return NULL;
    }

    return doc;
}


void
rt_lc_box(sb_buf_t *b, const rt_box_t *box, bool created)
{
    unsigned  i;

    static const char *const  states[] = {
        "Pending", "Running", "Paused", "Stopping", "Terminated"
    };

    rt_boxes_lock();
    sb_buf_printf(b, "{\"id\":\"%s\"", box->id);

    if (!created && box->snapshot[0] != '\0') {
        sb_buf_printf(b, ",\"snapshotId\":\"%s\"", box->snapshot);

    } else if (!created) {
        sb_buf_printf(b, ",\"image\":%s", box->image);
    }

    if (box->platform != NULL) {
        sb_buf_printf(b, ",\"platform\":%s", box->platform);
    }

    sb_buf_printf(b, ",\"status\":{\"state\":\"%s\",\"reason\":\"%s\","
                     "\"message\":\"%s\",\"lastTransitionAt\":",
                  states[box->state], box->reason, box->message);
    rt_lc_time(b, box->changed_us);
    sb_buf_add_c(b, '}');

    if (box->nmetadata > 0) {
        sb_buf_printf(b, ",\"metadata\":{");

        for (i = 0; i < box->nmetadata; i++) {
            if (i > 0) {
                sb_buf_add_c(b, ',');
            }

            rt_lc_str(b, sb_str(box->metadata[i].key,
                                strlen(box->metadata[i].key)));
            sb_buf_add_c(b, ':');
            rt_lc_str(b, sb_str(box->metadata[i].value,
                                strlen(box->metadata[i].value)));
        }

        sb_buf_add_c(b, '}');
    }

    if (!created) {
        sb_buf_printf(b, ",\"entrypoint\":%s", box->entrypoint);
    }

    if (box->expires_us != 0) {
        sb_buf_printf(b, ",\"expiresAt\":");
        rt_lc_time(b, box->expires_us);
    }

    sb_buf_printf(b, ",\"createdAt\":");
    rt_lc_time(b, box->created_us);

    if (created) {
        sb_buf_printf(b, ",\"entrypoint\":%s", box->entrypoint);
    }

    sb_buf_add_c(b, '}');
    rt_boxes_unlock();
}
