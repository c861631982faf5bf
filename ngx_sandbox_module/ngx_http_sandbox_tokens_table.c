/*
 * The zone of a file of tokens: rows that the console API adds and takes away,
 * and from where wrong ones come: a table of fixed size, in which an address
 * that has been quiet for longest makes room.
 */


#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_tokens_int.h"


/* so many wrong ones are as mistakes happen; one is forgotten in that time */
#define NGX_HTTP_SANDBOX_WRONG_FREE   10
#define NGX_HTTP_SANDBOX_WRONG_TIME   6000
#define NGX_HTTP_SANDBOX_WRONG_STEP   200
#define NGX_HTTP_SANDBOX_WRONG_DELAY  2000
#define NGX_HTTP_SANDBOX_WRONG_MAX    1000


static size_t ngx_http_sandbox_tokens_place(ngx_http_sandbox_tokens_sh_t *sh,
    ngx_str_t *id, ngx_uint_t *found);
static uint64_t ngx_http_sandbox_wrong_address(ngx_connection_t *c);


/* Where an id stands among the rows, or would; with the zone locked. */

static size_t
ngx_http_sandbox_tokens_place(ngx_http_sandbox_tokens_sh_t *sh, ngx_str_t *id,
    ngx_uint_t *found)
{
    size_t     i;
    ngx_int_t  rc;

    *found = 0;

    for (i = 0; i < sh->n; i++) {
        rc = ngx_strncmp(sh->rows[i].id, id->data, id->len);

        if (rc == 0 && sh->rows[i].id[id->len] == '\0') {
            *found = 1;
            break;
        }

        if (rc >= 0) {
            break;
        }
    }

    return i;
}


ngx_int_t
ngx_http_sandbox_tokens_add(sb_tokens_t *tokens, const sb_token_t *token)
{
    size_t                         i;
    ngx_str_t                      id;
    ngx_int_t                      rc;
    ngx_uint_t                     found;
    ngx_http_sandbox_tokens_t     *t;
    ngx_http_sandbox_tokens_sh_t  *sh;

    t = (ngx_http_sandbox_tokens_t *) tokens;
    sh = t->sh;
    rc = NGX_BUSY;

    id.data = (u_char *) token->id;
    id.len = ngx_strlen(token->id);

    ngx_shmtx_lock(&t->shpool->mutex);

    i = ngx_http_sandbox_tokens_place(sh, &id, &found);

    if (!found && sh->n < SB_TOKENS_MAX) {
        ngx_memmove(&sh->rows[i + 1], &sh->rows[i],
                    (sh->n - i) * sizeof(sb_token_t));
        sh->rows[i] = *token;
        sh->n++;
        sh->changes++;
        sh->generation++;
        rc = NGX_OK;
    }

    ngx_shmtx_unlock(&t->shpool->mutex);

    return rc;
}


ngx_int_t
ngx_http_sandbox_tokens_drop(sb_tokens_t *tokens, ngx_str_t *id)
{
    size_t                         i;
    ngx_uint_t                     found;
    ngx_http_sandbox_tokens_t     *t;
    ngx_http_sandbox_tokens_sh_t  *sh;

    t = (ngx_http_sandbox_tokens_t *) tokens;
    sh = t->sh;

    if (id->len > SB_TOKEN_ID_MAX) {
        return NGX_DECLINED;
    }

    ngx_shmtx_lock(&t->shpool->mutex);

    i = ngx_http_sandbox_tokens_place(sh, id, &found);

    /* a reload that has read the file before this looks again */
    sh->changes++;

    if (found) {
        sh->n--;
        ngx_memmove(&sh->rows[i], &sh->rows[i + 1],
                    (sh->n - i) * sizeof(sb_token_t));
        sh->generation++;
    }

    ngx_shmtx_unlock(&t->shpool->mutex);

    return found ? NGX_OK : NGX_DECLINED;
}


ngx_msec_t
ngx_http_sandbox_tokens_wrong(sb_tokens_t *tokens, ngx_connection_t *c)
{
    uint64_t                    address;
    ngx_msec_t                  delay;
    ngx_uint_t                  i, gone;
    ngx_http_sandbox_wrong_t   *set, *w;
    ngx_http_sandbox_tokens_t  *t;

    t = (ngx_http_sandbox_tokens_t *) tokens;

    ngx_http_sandbox_metric_add(WRONG_TOKENS, 1);

    address = ngx_http_sandbox_wrong_address(c);
    set = t->sh->wrong[(address * UINT64_C(0x9e3779b97f4a7c15)) >> 56];

    ngx_shmtx_lock(&t->shpool->mutex);

    w = &set[0];

    for (i = 0; i < NGX_HTTP_SANDBOX_WRONG_WAYS; i++) {

        if (set[i].address == address) {
            w = &set[i];
            break;
        }

        if (w->address
            && (set[i].address == 0
                || (ngx_msec_int_t) (set[i].last - w->last) < 0))
        {
            w = &set[i];
        }
    }

    if (w->address != address) {
        w->address = address;
        w->n = 0;
        w->last = ngx_current_msec;
    }

    gone = (ngx_current_msec - w->last) / NGX_HTTP_SANDBOX_WRONG_TIME;

    if (gone || w->n == 0) {
        w->n -= ngx_min(w->n, gone);
        w->last = ngx_current_msec;
    }

    if (w->n < NGX_HTTP_SANDBOX_WRONG_MAX) {
        w->n++;
    }

    i = w->n;

    ngx_shmtx_unlock(&t->shpool->mutex);

    if (i <= NGX_HTTP_SANDBOX_WRONG_FREE) {
        return 0;
    }

    ngx_http_sandbox_metric_add(WRONG_SLOWED, 1);

    delay = (i - NGX_HTTP_SANDBOX_WRONG_FREE) * NGX_HTTP_SANDBOX_WRONG_STEP;

    return ngx_min(delay, NGX_HTTP_SANDBOX_WRONG_DELAY);
}


/* An address, or for IPv6 the network of one customer; never 0. */

static uint64_t
ngx_http_sandbox_wrong_address(ngx_connection_t *c)
{
    uint64_t             address;
    struct sockaddr_in  *sin;
#if (NGX_HAVE_INET6)
    struct sockaddr_in6 *sin6;
#endif

    switch (c->sockaddr->sa_family) {

#if (NGX_HAVE_INET6)
    case AF_INET6:
        sin6 = (struct sockaddr_in6 *) c->sockaddr;
        ngx_memcpy(&address, &sin6->sin6_addr, sizeof(uint64_t));
        break;
#endif

    case AF_INET:
        sin = (struct sockaddr_in *) c->sockaddr;
        address = sin->sin_addr.s_addr;
        break;

    default:
        address = 0;
    }

    return address ? address : 1;
}
