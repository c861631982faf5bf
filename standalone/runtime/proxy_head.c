/* Headers of proxied requests and answers (2.2, 2.3, 3.6). */

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "proxy_int.h"


typedef struct {
    rt_proxy_t  *p;
    bool         agent, encoding, accept, fwd_proto, fwd_host, fwd_for;
} rt_forward_t;


void
rt_proxy_add(rt_proxy_t *p, const char *name, const char *value)
{
    char               *line;
    struct curl_slist  *list;

    if (asprintf(&line, value[0] ? "%s: %s" : "%s;%s", name, value) == -1) {
        return;
    }

    list = curl_slist_append(p->headers, line);

    if (list != NULL) {
        p->headers = list;
    }

    free(line);
}


/* The server proxy keeps the last field of a name, as its dict does. */

static void
rt_proxy_replace(rt_proxy_t *p, const char *name, const char *value)
{
    size_t              n;
    char               *line;
    struct curl_slist  *l;

    n = strlen(name);

    for (l = p->headers; l != NULL; l = l->next) {
        if (strncasecmp(l->data, name, n) == 0
            && (l->data[n] == ':' || l->data[n] == ';'))
        {
            if (asprintf(&line, value[0] ? "%s: %s" : "%s;%s", name, value)
                != -1)
            {
                free(l->data);
                l->data = line;
            }

            return;
        }
    }

    rt_proxy_add(p, name, value);
}


static void
rt_proxy_forward(void *data, const char *name, const char *value)
{
    rt_forward_t  *f;

    f = data;

    if (rt_hop_header(name, rt_header(f->p->r, "Connection"),
                      f->p->b.server)
        || strcasecmp(name, "Content-Length") == 0
        || strcasecmp(name, "Host") == 0)
    {
        return;
    }

    f->agent |= strcasecmp(name, "User-Agent") == 0;
    f->accept |= strcasecmp(name, "Accept") == 0;
    f->encoding |= strcasecmp(name, "Accept-Encoding") == 0;
    f->fwd_proto |= strcasecmp(name, "X-Forwarded-Proto") == 0;
    f->fwd_host |= strcasecmp(name, "X-Forwarded-Host") == 0;
    f->fwd_for |= strcasecmp(name, "X-Forwarded-For") == 0;

    if (f->p->b.server) {
        rt_proxy_replace(f->p, name, value);

    } else if (strncasecmp(name, "X-Forwarded-", 12) != 0
               || strcasecmp(name + 12, "Port") == 0)
    {
        rt_proxy_add(f->p, name, value);
    }
}


void
rt_proxy_headers(rt_proxy_t *p)
{
    char           peer[64];
    const char    *host;
    rt_forward_t   f;

    memset(&f, 0, sizeof(f));
    f.p = p;
    rt_each_header(p->r, rt_proxy_forward, &f);
    rt_peer_address(p->r, peer, sizeof(peer));
    host = rt_header(p->r, "Host");

    if (p->b.server) {
        if (!f.fwd_proto) {
            rt_proxy_add(p, "X-Forwarded-Proto", "http");
        }

        if (!f.fwd_host && host != NULL) {
            rt_proxy_add(p, "X-Forwarded-Host", host);
        }

        if (!f.fwd_for) {
            rt_proxy_add(p, "X-Forwarded-For", peer);
        }

        if (!f.encoding) {
            rt_proxy_add(p, "Accept-Encoding", "gzip, deflate");
        }

        if (!f.agent) {
            rt_proxy_add(p, "User-Agent", "python-httpx/0.28.1");
        }

        if (!f.accept) {
            rt_proxy_add(p, "Accept", "*/*");
        }

    } else {
        char  *fwd;

        fwd = rt_forwarded_for(p->r);

        if (fwd != NULL) {
            rt_proxy_add(p, "X-Forwarded-For", fwd);
            free(fwd);
        }

        rt_proxy_add(p, "X-Forwarded-Proto", "http");

        if (host != NULL) {
            rt_proxy_add(p, "Host", host);
        }

        if (!f.accept) {
            p->headers = curl_slist_append(p->headers, "Accept:");
        }
    }

    if (rt_header(p->r, "Expect") == NULL) {
        p->headers = curl_slist_append(p->headers, "Expect:");
    }
}


void
rt_proxy_answer_headers(rt_proxy_t *p, const char *connection)
{
    char         *joined;
    bool          seen;
    unsigned      i, j;
    const char   *name;
    rt_header_t  *h;

    for (i = 0; i < p->nhead; i++) {
        h = &p->head[i];
        name = h->name;

        if (rt_hop_header(name, connection, false)
            || strcasecmp(name, "Content-Length") == 0
            || (p->b.server && strcasecmp(name, "date") == 0)
            || (p->b.request_id != NULL
                && strcasecmp(name, "x-request-id") == 0))
        {
            continue;
        }

        if (!p->b.server) {
            rt_out(p->r, name, h->value);
            continue;
        }

        /* the server proxy joins fields of one name, in lower case */

        for (j = 0, seen = false; j < i; j++) {
            seen |= strcasecmp(p->head[j].name, name) == 0;
        }

        if (seen) {
            continue;
        }

        for (j = i + 1; j < p->nhead; j++) {
            if (strcasecmp(p->head[j].name, name) == 0
                && asprintf(&joined, "%s, %s", h->value, p->head[j].value)
                   != -1)
            {
                free(h->value);
                h->value = joined;
            }
        }

        rt_lower(h->name);
        rt_out(p->r, h->name, h->value);
    }
}
