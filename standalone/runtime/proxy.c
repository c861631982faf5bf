#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "proxy.h"
#include "proxy_int.h"


void
rt_proxy_init(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}


static void
rt_proxy_forget_head(rt_proxy_t *p)
{
    while (p->nhead > 0) {
        p->nhead--;
        free(p->head[p->nhead].name);
        free(p->head[p->nhead].value);
    }
}


static void
rt_proxy_free(void *ctx)
{
    rt_proxy_t  *p;

    p = ctx;

    if (p->multi != NULL && p->easy != NULL) {
        curl_multi_remove_handle(p->multi, p->easy);
    }

    curl_easy_cleanup(p->easy);
    curl_multi_cleanup(p->multi);
    curl_slist_free_all(p->headers);
    rt_proxy_forget_head(p);
    sb_buf_free(&p->in);
    free(p->b.target);
    free(p);
}


static size_t
rt_proxy_read(char *buf, size_t size, size_t n, void *data)
{
    rt_proxy_t  *p;

    p = data;
    n *= size;

    if (p->up_len == 0) {
        if (p->up_eof) {
            return 0;
        }

        p->up_paused = true;
        return CURL_READFUNC_PAUSE;
    }

    n = n < p->up_len ? n : p->up_len;
    memcpy(buf, p->up, n);
    p->up += n;
    p->up_len -= n;

    return n;
}


static size_t
rt_proxy_write(char *buf, size_t size, size_t n, void *data)
{
    rt_proxy_t  *p;

    p = data;
    n *= size;

    if (p->in.len - p->in_pos > RT_IN_MAX) {
        p->in_paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }

    return sb_buf_add(&p->in, buf, n) == SB_OK ? n : 0;
}


static size_t
rt_proxy_header(char *line, size_t size, size_t n, void *data)
{
    size_t        len;
    char         *colon, *value;
    rt_proxy_t   *p;
    rt_header_t  *h;

    p = data;
    n *= size;

    for (len = n; len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r');
         len--)
    {
        /* void */
    }

    if (p->head_done) {
        return n;
    }

    if (len == 0) {
        p->head_done = p->status >= 200;
        return n;
    }

    if (len > 12 && strncmp(line, "HTTP/", 5) == 0) {
        rt_proxy_forget_head(p);
        p->status = (unsigned) strtoul(line + 9, NULL, 10);
        return n;
    }

    colon = memchr(line, ':', len);

    if (colon == NULL || p->nhead == RT_HEADERS_MAX) {
        return n;
    }

    for (value = colon + 1; value < line + len && *value == ' '; value++) { }

    h = &p->head[p->nhead];
    h->name = strndup(line, (size_t) (colon - line));
    h->value = strndup(value, (size_t) (line + len - value));

    if (h->name != NULL && h->value != NULL) {
        p->nhead++;

    } else {
        free(h->name);
        free(h->value);
    }

    return n;
}


/* Lets curl work once and waits for the backend or the client.  false: the
 * client has gone. */

static bool
rt_proxy_pump(rt_proxy_t *p)
{
    int                 running, left;
    CURLMsg            *msg;
    struct curl_waitfd  fd;

    curl_multi_perform(p->multi, &running);

    while ((msg = curl_multi_info_read(p->multi, &left)) != NULL) {
        if (msg->msg == CURLMSG_DONE) {
            p->done = true;
            p->rc = msg->data.result;
        }
    }

    if (p->done || p->in.len > p->in_pos) {
        return true;
    }

    if (p->up_paused && p->up_len == 0 && !p->up_eof) {
        return true;
    }

    fd.fd = p->client;
    fd.events = 0;
    fd.revents = 0;
    curl_multi_poll(p->multi, &fd, p->up_eof ? 1 : 0, 500, NULL);

    return !rt_client_gone(p->client) || !p->up_eof;
}


static void
rt_proxy_body(rt_proxy_t *p)
{
    bool         body;
    const char  *m, *len, *te;

    m = p->r->method;
    len = rt_header(p->r, "Content-Length");
    te = rt_header(p->r, "Transfer-Encoding");

    if (p->b.server) {
        body = strcmp(m, "GET") != 0;

    } else {
        body = te != NULL || (len != NULL && strcmp(len, "0") != 0)
               || strcmp(m, "POST") == 0 || strcmp(m, "PUT") == 0
               || strcmp(m, "PATCH") == 0;

        if (body && te == NULL && len == NULL) {
            len = "0";
        }
    }

    if (strcmp(m, "HEAD") == 0) {
        curl_easy_setopt(p->easy, CURLOPT_NOBODY, 1L);
        return;
    }

    curl_easy_setopt(p->easy, CURLOPT_CUSTOMREQUEST, m);

    if (!body) {
        return;
    }

    curl_easy_setopt(p->easy, CURLOPT_UPLOAD, 1L);

    if (len != NULL) {
        curl_easy_setopt(p->easy, CURLOPT_INFILESIZE_LARGE,
                         (curl_off_t) strtoll(len, NULL, 10));

    } else {
        rt_proxy_add(p, "Transfer-Encoding", "chunked");
    }
}


void
rt_proxy_begin(rt_req_t *r, const rt_backend_t *b)
{
    char         url[64];
    rt_proxy_t  *p;

    p = calloc(1, sizeof(rt_proxy_t));

    if (p == NULL) {
        abort();
    }

    p->r = r;
    p->b = *b;
    p->client = rt_client_fd(r);
    p->in.max = 2 * RT_IN_MAX;
    p->easy = curl_easy_init();
    p->multi = curl_multi_init();
    r->ctx = p;
    r->ctx_free = rt_proxy_free;
    r->sink = rt_proxy_sink;

    if (p->easy == NULL || p->multi == NULL) {
        abort();
    }

    rt_proxy_headers(p);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", (unsigned) b->port);

    curl_easy_setopt(p->easy, CURLOPT_URL, url);
    curl_easy_setopt(p->easy, CURLOPT_REQUEST_TARGET, p->b.target);
    curl_easy_setopt(p->easy, CURLOPT_HTTP_VERSION,
                     (long) CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(p->easy, CURLOPT_PROXY, "");
    curl_easy_setopt(p->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(p->easy, CURLOPT_CONNECTTIMEOUT_MS, 180000L);
    curl_easy_setopt(p->easy, CURLOPT_READFUNCTION, rt_proxy_read);
    curl_easy_setopt(p->easy, CURLOPT_READDATA, p);
    curl_easy_setopt(p->easy, CURLOPT_WRITEFUNCTION, rt_proxy_write);
    curl_easy_setopt(p->easy, CURLOPT_WRITEDATA, p);
    curl_easy_setopt(p->easy, CURLOPT_HEADERFUNCTION, rt_proxy_header);
    curl_easy_setopt(p->easy, CURLOPT_HEADERDATA, p);

    if (b->server) {

        /* silence for so long ends a transfer, as httpx's read time-out */

        curl_easy_setopt(p->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(p->easy, CURLOPT_LOW_SPEED_TIME, 180L);
    }

    rt_proxy_body(p);
    curl_easy_setopt(p->easy, CURLOPT_HTTPHEADER, p->headers);
    curl_multi_add_handle(p->multi, p->easy);
}


static void
rt_proxy_unpause(rt_proxy_t *p)
{
    if (p->up_paused) {
        p->up_paused = false;
        curl_easy_pause(p->easy, CURLPAUSE_CONT);
    }
}


bool
rt_proxy_sink(rt_req_t *r, const char *data, size_t n)
{
    rt_proxy_t  *p;

    p = r->ctx;
    p->up = data;
    p->up_len = n;
    rt_proxy_unpause(p);

    /* the answer may already come in: it is kept up to its bound, and the
     * backend then has to take the request before it is read further */

    while (p->up_len > 0 && !p->done) {
        if (!rt_proxy_pump(p)) {
            return false;
        }

        if (p->in.len > p->in_pos && p->up_len > 0 && !p->done) {
            curl_multi_poll(p->multi, NULL, 0, 100, NULL);
        }
    }

    return !p->done;
}


/* Hands on what has come, one piece for each call. */

static ssize_t
rt_proxy_stream(void *ctx, char *buf, size_t max)
{
    size_t       n;
    rt_proxy_t  *p;

    p = ctx;

    while (p->in.len == p->in_pos && !p->done) {
        p->in.len = p->in_pos = 0;

        if (p->in_paused) {
            p->in_paused = false;
            curl_easy_pause(p->easy, CURLPAUSE_CONT);
        }

        if (!rt_proxy_pump(p)) {
            return -1;
        }
    }

    n = p->in.len - p->in_pos;

    if (n == 0) {
        return p->rc == CURLE_OK ? 0 : -1;
    }

    n = n < max ? n : max;
    memcpy(buf, p->in.data + p->in_pos, n);
    p->in_pos += n;

    return (ssize_t) n;
}


void
rt_proxy_finish(rt_req_t *r)
{
    unsigned      i;
    curl_off_t    len;
    rt_proxy_t   *p;
    const char   *connection;

    p = r->ctx;
    p->up_eof = true;
    rt_proxy_unpause(p);

    while (!p->head_done && !p->done) {
        if (!rt_proxy_pump(p)) {
            rt_reply(r, 502, "", 0);
            return;
        }
    }

    if (!p->head_done) {
        p->b.fail(r, p->rc != CURLE_COULDNT_CONNECT,
                  curl_easy_strerror(p->rc));
        return;
    }

    connection = NULL;

    for (i = 0; i < p->nhead; i++) {
        if (strcasecmp(p->head[i].name, "Connection") == 0) {
            connection = p->head[i].value;
        }
    }

    if (p->b.decorate != NULL) {
        p->b.decorate(r);
    }

    rt_proxy_answer_headers(p, connection);

    len = -1;
    curl_easy_getinfo(p->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &len);

    if (len == 0 || p->status == 204 || p->status == 304) {
        rt_reply(r, p->status, "", 0);
        return;
    }

    rt_reply_stream(r, p->status, len > 0 ? (uint64_t) len : UINT64_MAX,
                    rt_proxy_stream, p, NULL);
}
