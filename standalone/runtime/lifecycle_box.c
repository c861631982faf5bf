/* Operations on one sandbox. */

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "id.h"
#include "lifecycle.h"
#include "url.h"


static rt_box_t *
rt_lc_find(rt_req_t *r, const char *id)
{
    rt_box_t  *b;

    b = rt_box_find(sb_str(id, strlen(id)));

    if (b == NULL) {
        rt_lc_unknown(r, sb_str(id, strlen(id)));
    }

    return b;
}


void
rt_lc_get(rt_req_t *r, const char *id, const char *last)
{
    sb_buf_t   buf;
    rt_box_t  *b;

    (void) last;
    b = rt_lc_find(r, id);

    if (b != NULL) {
        memset(&buf, 0, sizeof(buf));
        buf.max = RT_BODY_MAX;
        rt_lc_box(&buf, b, false);
        rt_box_release(b);
        rt_lc_json(r, 200, &buf);
    }
}


void
rt_lc_delete(rt_req_t *r, const char *id, const char *last)
{
    rt_box_t  *b;

    (void) last;
    b = rt_lc_find(r, id);

    if (b != NULL) {
        pthread_mutex_lock(&b->op);
        rt_box_delete(b);
        pthread_mutex_unlock(&b->op);
        rt_box_release(b);
        rt_lc_empty(r, 204);
    }
}


static void
rt_lc_change(rt_req_t *r, const char *id, bool (*change)(rt_box_t *b),
    const char *code, const char *wanted)
{
    bool       ok;
    rt_box_t  *b;

    b = rt_lc_find(r, id);

    if (b == NULL) {
        return;
    }

    pthread_mutex_lock(&b->op);
    ok = change(b);
    pthread_mutex_unlock(&b->op);
    rt_box_release(b);

    if (ok) {
        rt_lc_empty(r, 202);

    } else {
        rt_lc_fail(r, 409, code, "Sandbox %s is not %s.", id, wanted);
    }
}


void
rt_lc_pause(rt_req_t *r, const char *id, const char *last)
{
    (void) last;
    rt_lc_change(r, id, rt_box_pause, "DOCKER::SANDBOX_NOT_RUNNING",
                 "running");
}


void
rt_lc_resume(rt_req_t *r, const char *id, const char *last)
{
    (void) last;
    rt_lc_change(r, id, rt_box_resume, "DOCKER::SANDBOX_NOT_PAUSED",
                 "paused");
}


/* RFC 3339, also without a zone (UTC) or as a date alone, or Unix seconds. */

static bool
rt_lc_datetime(sb_str_t s, uint64_t *us)
{
    char   text[64], *end;
    double seconds;

    if (s.len == 0 || s.len > 40) {
        return false;
    }

    memcpy(text, s.data, s.len);
    text[s.len] = '\0';
    seconds = strtod(text, &end);

    if (*end == '\0' && seconds >= 0 && seconds < 2e10) {
        *us = (uint64_t) (seconds * 1000000);
        return true;
    }

    if (sb_time_parse(us, s) == SB_OK) {
        return true;
    }

    snprintf(text + s.len, sizeof(text) - s.len, "%s",
             s.len == 10 ? "T00:00:00Z" : "Z");

    return sb_time_parse(us, sb_str(text, strlen(text))) == SB_OK;
}


void
rt_lc_renew(rt_req_t *r, const char *id, const char *last)
{
    sb_buf_t        buf;
    uint64_t        us;
    rt_box_t       *b;
    sb_jdoc_t      *doc;
    const sb_jv_t  *v;

    (void) last;
    doc = rt_lc_body(r);

    if (doc == NULL) {
        return;
    }

    v = sb_jv_get(sb_jdoc_root(doc), "expiresAt");

    if (v == NULL) {
        v = sb_jv_get(sb_jdoc_root(doc), "expires_at");
    }

    if (v == NULL) {
        rt_lc_invalid(r, "missing", "\"body\",\"expiresAt\"",
                      "Field required", "{}", NULL);

    } else if (v->kind != SB_JSON_STRING && v->kind != SB_JSON_NUMBER) {
        rt_lc_invalid(r, "datetime_type", "\"body\",\"expiresAt\"",
                      "Input should be a valid datetime", NULL, NULL);

    } else if (!rt_lc_datetime(v->text, &us)) {
        rt_lc_invalid(r, "datetime_from_date_parsing",
                      "\"body\",\"expiresAt\"",
                      "Input should be a valid datetime or date", NULL,
                      "{\"error\":\"invalid datetime\"}");

    } else if ((b = rt_lc_find(r, id)) != NULL) {

        pthread_mutex_lock(&b->op);

        if (us <= sb_now_us()) {
            rt_lc_fail(r, 400, "DOCKER::INVALID_EXPIRATION",
                       "expiresAt must be in the future.");

        } else if (b->expires_us == 0) {
            rt_lc_fail(r, 409, "DOCKER::INVALID_EXPIRATION",
                       "Sandbox %s does not expire.", id);

        } else {
            rt_boxes_lock();
            b->expires_us = us;
            rt_boxes_unlock();

            memset(&buf, 0, sizeof(buf));
            buf.max = 256;
            sb_buf_printf(&buf, "{\"expiresAt\":");
            rt_lc_time(&buf, us);
            sb_buf_add_c(&buf, '}');
            rt_lc_json(r, 200, &buf);
        }

        pthread_mutex_unlock(&b->op);
        rt_box_release(b);
    }

    sb_jdoc_free(doc);
}


int
rt_lc_bool(sb_str_t s)
{
    size_t  i;

    static const char *const  yes[] = { "true", "1", "yes", "on", "t", "y" };
    static const char *const  no[] = { "false", "0", "no", "off", "f", "n" };

    for (i = 0; i < 6; i++) {
        if (sb_ieq(s, sb_str(yes[i], strlen(yes[i])))) {
            return 1;
        }

        if (sb_ieq(s, sb_str(no[i], strlen(no[i])))) {
            return 0;
        }
    }

    return -1;
}


void
rt_lc_endpoint(rt_req_t *r, const char *id, const char *last)
{
    int          proxy;
    char        *text, *expires, *end;
    long         port;
    sb_buf_t     buf;
    rt_box_t    *b;
    const char  *host;

    port = strtol(last, &end, 10);

    if (end == last || *end != '\0') {
        rt_lc_invalid(r, "int_parsing", "\"path\",\"port\"",
                      "Input should be a valid integer, unable to parse "
                      "string as an integer", NULL, NULL);
        return;
    }

    text = rt_lc_query(r->query, "use_server_proxy");
    expires = rt_lc_query(r->query, "expires");
    proxy = text ? rt_lc_bool(sb_str(text, strlen(text))) : 0;
    free(text);

    if (proxy == -1) {
        free(expires);
        rt_lc_invalid(r, "bool_parsing", "\"query\",\"use_server_proxy\"",
                      "Input should be a valid boolean, unable to interpret "
                      "input", NULL, NULL);
        return;
    }

    if (expires == NULL && (port < 1 || port > 65535)) {
        rt_lc_fail(r, 400, "DOCKER::INVALID_PORT",
                   "The port must be 1 to 65535.");
        return;
    }

    if (expires != NULL) {
        strtoll(expires, &end, 10);

        if (end == expires || *end != '\0') {
            rt_lc_invalid(r, "int_parsing", "\"query\",\"expires\"",
                          "Input should be a valid integer, unable to parse "
                          "string as an integer", NULL, NULL);

        } else {
            rt_lc_fail(r, 400, proxy ? "SANDBOX::INVALID_PARAMETER"
                                     : "SANDBOX::API_NOT_SUPPORTED",
                       "Signed endpoints are not supported here.");
        }

        free(expires);
        return;
    }

    b = rt_lc_find(r, id);

    if (b == NULL) {
        return;
    }

    host = rt_header(r, "Host");
    memset(&buf, 0, sizeof(buf));
    buf.max = 4096;

    if (proxy) {
        sb_buf_printf(&buf, "{\"endpoint\":\"");
        rt_escape(&buf, sb_str(host ? host : "", host ? strlen(host) : 0),
                  ":[]", false);
        sb_buf_printf(&buf, "/sandboxes/%s/proxy/%ld\"}", b->id, port);
        rt_lc_json(r, 200, &buf);

    } else {
        sb_buf_printf(&buf, "{\"endpoint\":\"%s:%u/proxy/%ld\"}",
                      rt_lc_address(), (unsigned) b->port, port);
        rt_lc_json(r, 200, &buf);
    }

    rt_box_release(b);
}


void
rt_lc_diag(rt_req_t *r, const char *id, const char *last)
{
    rt_box_t   *b;
    rt_diag_t   diag;

    if (!rt_lc_diag_query(r, last, &diag)) {
        return;
    }

    b = rt_lc_find(r, id);

    if (b != NULL) {
        rt_lc_diagnostics(r, b, &diag);
        rt_box_release(b);
    }
}
