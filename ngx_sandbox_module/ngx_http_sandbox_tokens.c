/*
 * The tokens of one file, in a shared zone: a reload puts the new ones there,
 * and workers of before, who still serve their connections, see at once who has
 * been revoked.  Each worker has a copy of its own, made anew when the zone's
 * generation has changed.
 */


#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_session.h"
#include "ngx_http_sandbox_tokens_int.h"


#define NGX_HTTP_SANDBOX_TOKENS_FILE  (4 * 1024 * 1024)


/* a row that is kept for a request */

typedef struct {
    sb_token_t                     token;
    ngx_uint_t                     generation;
} ngx_http_sandbox_kept_t;


/* a request that lasts */

typedef struct {
    ngx_queue_t                    queue;
    ngx_http_request_t            *request;
    ngx_http_sandbox_tokens_t     *tokens;
    const sb_token_t              *token;
    ngx_str_t                      session;
} ngx_http_sandbox_held_t;


static ngx_http_sandbox_tokens_t *ngx_http_sandbox_tokens_known(
    ngx_http_sandbox_main_conf_t *mcf, ngx_str_t *file);
static void ngx_http_sandbox_tokens_cleanup(void *data);
static char *ngx_http_sandbox_tokens_zone(ngx_conf_t *cf,
    ngx_http_sandbox_tokens_t *t);
static void ngx_http_sandbox_tokens_again(ngx_http_sandbox_tokens_t *t,
    ngx_log_t *log);
static ngx_int_t ngx_http_sandbox_tokens_init(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_uint_t ngx_http_sandbox_tokens_may(const sb_token_t *now,
    const sb_token_t *then);
static void ngx_http_sandbox_held_free(void *data);
static void ngx_http_sandbox_held_look(ngx_event_t *ev);


/* ms between looks at whether those of requests that last are still there */
#define NGX_HTTP_SANDBOX_HELD_LOOK  250

static ngx_queue_t       ngx_http_sandbox_held;
static ngx_event_t       ngx_http_sandbox_held_event;
static ngx_connection_t  ngx_http_sandbox_held_conn;


/* sandbox_tokens FILE */

char *
ngx_http_sandbox_conf_tokens(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sandbox_loc_conf_t  *lcf = conf;

    unsigned                        line;
    ngx_str_t                      *value, text;
    const char                     *why;
    ngx_pool_cleanup_t             *cln;
    ngx_http_sandbox_tokens_t      *t, **known;
    ngx_http_sandbox_main_conf_t   *mcf;

    if (lcf->tokens != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;
    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sandbox_module);

    if (ngx_conf_full_name(cf->cycle, &value[1], 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    t = ngx_http_sandbox_tokens_known(mcf, &value[1]);

    if (t) {
        lcf->tokens = &t->set;
        return NGX_CONF_OK;
    }

    if (ngx_http_sandbox_read_file(cf, cmd, &value[1], &text) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    cln = ngx_pool_cleanup_add(cf->pool, sizeof(ngx_http_sandbox_tokens_t));
    if (cln == NULL) {
        return NGX_CONF_ERROR;
    }

    t = cln->data;
    ngx_memzero(t, sizeof(ngx_http_sandbox_tokens_t));

    t->file = value[1];
    line = 0;
    why = NULL;

    if (sb_tokens_parse(&t->set, ngx_http_sandbox_str(&text), &line, &why)
        != SB_OK)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_tokens: line %ui of \"%V\": %s",
                           (ngx_uint_t) line, &value[1],
                           why ? why : "cannot be read");
        return NGX_CONF_ERROR;
    }

    cln->handler = ngx_http_sandbox_tokens_cleanup;

    if (t->set.n == 0) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "sandbox_tokens: "
                           "\"%V\" holds no token: every request will be "
                           "refused; make one with \"sandbox-gateway token "
                           "add --tokens %V\"", &value[1], &value[1]);
    }

    if (mcf->tokens == NULL) {
        mcf->tokens = ngx_array_create(cf->pool, 2, sizeof(void *));
        if (mcf->tokens == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    known = ngx_array_push(mcf->tokens);
    if (known == NULL) {
        return NGX_CONF_ERROR;
    }

    *known = t;
    lcf->tokens = &t->set;

    return ngx_http_sandbox_tokens_zone(cf, t);
}


static ngx_http_sandbox_tokens_t *
ngx_http_sandbox_tokens_known(ngx_http_sandbox_main_conf_t *mcf,
    ngx_str_t *file)
{
    ngx_uint_t                   i;
    ngx_http_sandbox_tokens_t  **t;

    if (mcf->tokens == NULL) {
        return NULL;
    }

    t = mcf->tokens->elts;

    for (i = 0; i < mcf->tokens->nelts; i++) {
        if (t[i]->file.len == file->len
            && ngx_strncmp(t[i]->file.data, file->data, file->len) == 0)
        {
            return t[i];
        }
    }

    return NULL;
}


static void
ngx_http_sandbox_tokens_cleanup(void *data)
{
    ngx_http_sandbox_tokens_t  *t = data;

    sb_tokens_free(&t->set);
}


/* The zone has one size, for a reload keeps but what has the size of before;
 * what no row lies in costs no memory. */

static char *
ngx_http_sandbox_tokens_zone(ngx_conf_t *cf, ngx_http_sandbox_tokens_t *t)
{
    size_t           size;
    ngx_str_t        name;
    ngx_shm_zone_t  *zone;

    name.len = sizeof("sandbox_tokens:") - 1 + t->file.len;
    name.data = ngx_pnalloc(cf->pool, name.len + 1);
    if (name.data == NULL) {
        return NGX_CONF_ERROR;
    }

    (void) ngx_sprintf(name.data, "sandbox_tokens:%V%Z", &t->file);

    size = sizeof(ngx_http_sandbox_tokens_sh_t);
    size += size / 16 + 16 * ngx_pagesize;

    zone = ngx_shared_memory_add(cf, &name, size, &ngx_http_sandbox_module);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    zone->init = ngx_http_sandbox_tokens_init;
    zone->data = t;

    return NGX_CONF_OK;
}


/* Reads the file once more: since it was read for the configuration the console
 * API may have changed it.  When that fails what was read before counts. */

static void
ngx_http_sandbox_tokens_again(ngx_http_sandbox_tokens_t *t, ngx_log_t *log)
{
    size_t            size;
    u_char           *text;
    ssize_t           n;
    unsigned          line;
    ngx_file_t        file;
    const char       *why;
    sb_tokens_t       set;
    ngx_file_info_t   fi;

    ngx_memzero(&file, sizeof(ngx_file_t));
    file.name = t->file;
    file.log = log;
    file.fd = ngx_open_file(t->file.data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (file.fd == NGX_INVALID_FILE) {
        return;
    }

    text = NULL;

    if (ngx_fd_info(file.fd, &fi) != NGX_FILE_ERROR
        && ngx_file_size(&fi) <= NGX_HTTP_SANDBOX_TOKENS_FILE)
    {
        size = (size_t) ngx_file_size(&fi);
        text = ngx_alloc(size + 1, log);

        n = text ? ngx_read_file(&file, text, size, 0) : NGX_ERROR;

        if (n == (ssize_t) size
            && sb_tokens_parse(&set, sb_str((char *) text, size), &line, &why)
               == SB_OK)
        {
            sb_tokens_free(&t->set);
            t->set = set;
        }
    }

    ngx_free(text);
    ngx_close_file(file.fd);
}


static ngx_int_t
ngx_http_sandbox_tokens_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_sandbox_tokens_t  *old = data;

    ngx_atomic_uint_t              changes;
    ngx_http_sandbox_tokens_t     *t;
    ngx_http_sandbox_tokens_sh_t  *sh;

    t = shm_zone->data;
    t->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    sh = old ? old->sh : shm_zone->shm.exists ? t->shpool->data : NULL;

    if (sh == NULL) {
        sh = ngx_slab_alloc(t->shpool, sizeof(ngx_http_sandbox_tokens_sh_t));
        if (sh == NULL) {
            return NGX_ERROR;
        }

        sh->generation = 0;
        sh->changes = 0;
        sh->n = 0;
        ngx_memzero(sh->wrong, sizeof(sh->wrong));
        t->shpool->data = sh;
    }

    t->sh = sh;

    changes = sh->changes;

    if (old) {
        ngx_http_sandbox_tokens_again(t, shm_zone->shm.log);
    }

    ngx_shmtx_lock(&t->shpool->mutex);

    /* who changes the table has changed the file before */

    while (old && changes != sh->changes) {
        changes = sh->changes;

        ngx_shmtx_unlock(&t->shpool->mutex);
        ngx_http_sandbox_tokens_again(t, shm_zone->shm.log);
        ngx_shmtx_lock(&t->shpool->mutex);
    }

    if (t->set.n) {
        ngx_memcpy(sh->rows, t->set.items, t->set.n * sizeof(sb_token_t));
    }

    sh->n = t->set.n;
    t->generation = ++sh->generation;

    ngx_shmtx_unlock(&t->shpool->mutex);

    return NGX_OK;
}


void
ngx_http_sandbox_tokens_refresh(sb_tokens_t *tokens)
{
    sb_tokens_t                 set;
    ngx_http_sandbox_tokens_t  *t;

    t = (ngx_http_sandbox_tokens_t *) tokens;

    if (t->generation == t->sh->generation) {
        return;
    }

    ngx_memzero(&set, sizeof(sb_tokens_t));

    ngx_shmtx_lock(&t->shpool->mutex);

    set.items = t->sh->n ? malloc(t->sh->n * sizeof(sb_token_t)) : NULL;

    if (set.items) {
        set.n = t->sh->n;
        ngx_memcpy(set.items, t->sh->rows, set.n * sizeof(sb_token_t));
    }

    /* without memory nobody is let in, until there is some */

    t->generation = set.items || t->sh->n == 0 ? t->sh->generation : 0;

    ngx_shmtx_unlock(&t->shpool->mutex);

    sb_tokens_free(tokens);
    *tokens = set;
}


ngx_uint_t
ngx_http_sandbox_tokens_generation(const sb_tokens_t *tokens)
{
    return ((const ngx_http_sandbox_tokens_t *) tokens)->generation;
}


const sb_token_t *
ngx_http_sandbox_tokens_keep(ngx_http_request_t *r, const sb_tokens_t *tokens,
    const sb_token_t *row)
{
    ngx_http_sandbox_kept_t  *kept;

    kept = ngx_palloc(r->pool, sizeof(ngx_http_sandbox_kept_t));
    if (kept == NULL) {
        return NULL;
    }

    kept->token = *row;
    kept->generation = ngx_http_sandbox_tokens_generation(tokens);

    return &kept->token;
}


ngx_uint_t
ngx_http_sandbox_tokens_stand(ngx_http_request_t *r, sb_tokens_t *tokens,
    const sb_token_t *token, ngx_str_t *session)
{
    uint64_t                       now;
    sb_token_t                     found;
    const sb_token_t              *row;
    const ngx_http_sandbox_kept_t *kept;
    ngx_http_sandbox_main_conf_t  *mcf;

    now = sb_now_us();

    ngx_http_sandbox_tokens_refresh(tokens);

    kept = (const ngx_http_sandbox_kept_t *) token;

    if (session->len == 0
        && kept->generation == ngx_http_sandbox_tokens_generation(tokens))
    {
        /* no row has changed since */
        return token->expires_us == 0 || token->expires_us > now;
    }

    if (session->len) {
        mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

        return ngx_http_sandbox_session_find(mcf, tokens, session, now, &found)
               == NGX_OK
               && ngx_http_sandbox_tokens_may(&found, token);
    }

    row = sb_token_find(tokens, sb_str(token->id, ngx_strlen(token->id)), now);

    /* both are of the file: there is nothing to find out by time */

    return row && ngx_memcmp(row->hash, token->hash, sizeof(token->hash)) == 0
           && (token->expires_us == 0 || token->expires_us > now)
           && ngx_http_sandbox_tokens_may(row, token);
}


/* May it what it was let in for? */

static ngx_uint_t
ngx_http_sandbox_tokens_may(const sb_token_t *now, const sb_token_t *then)
{
    return now->role >= then->role
           && ngx_strcmp(now->sandboxes, then->sandboxes) == 0;
}


ngx_int_t
ngx_http_sandbox_tokens_hold(ngx_http_request_t *r, sb_tokens_t *tokens,
    const sb_token_t *token, ngx_str_t *session)
{
    ngx_event_t              *ev;
    ngx_pool_cleanup_t       *cln;
    ngx_http_sandbox_held_t  *held;

    ev = &ngx_http_sandbox_held_event;

    if (ev->handler == NULL) {
        ngx_queue_init(&ngx_http_sandbox_held);
        ngx_http_sandbox_held_conn.fd = (ngx_socket_t) -1;

        ev->handler = ngx_http_sandbox_held_look;
        ev->data = &ngx_http_sandbox_held_conn;
        ev->log = ngx_cycle->log;
        ev->cancelable = 1;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_sandbox_held_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    held = cln->data;
    held->request = r;
    held->tokens = (ngx_http_sandbox_tokens_t *) tokens;
    held->token = token;
    held->session = *session;

    cln->handler = ngx_http_sandbox_held_free;
    ngx_queue_insert_tail(&ngx_http_sandbox_held, &held->queue);

    if (!ev->timer_set) {
        ngx_add_timer(ev, NGX_HTTP_SANDBOX_HELD_LOOK);
    }

    return NGX_OK;
}


static void
ngx_http_sandbox_held_free(void *data)
{
    ngx_http_sandbox_held_t  *held = data;

    ngx_queue_remove(&held->queue);
}


static void
ngx_http_sandbox_held_look(ngx_event_t *ev)
{
    ngx_queue_t               all, *q;
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_sandbox_held_t  *held;

    if (ngx_queue_empty(&ngx_http_sandbox_held)) {
        return;
    }

    /* each is looked at once, whatever the end of others does to the queue */

    ngx_queue_init(&all);
    ngx_queue_add(&all, &ngx_http_sandbox_held);
    ngx_queue_init(&ngx_http_sandbox_held);

    while (!ngx_queue_empty(&all)) {
        q = ngx_queue_head(&all);
        ngx_queue_remove(q);
        ngx_queue_insert_tail(&ngx_http_sandbox_held, q);

        held = ngx_queue_data(q, ngx_http_sandbox_held_t, queue);

        r = held->request;

        if (ngx_http_sandbox_tokens_stand(r, &held->tokens->set, held->token,
                                          &held->session))
        {
            continue;
        }

        c = r->connection;

        ngx_http_set_log_request(c->log, r);

        ngx_log_error(NGX_LOG_INFO, c->log, 0,
                      "sandbox: the token \"%s\", or a session of it, has been "
                      "revoked or is over: what it had open is cut",
                      held->token->id);

        ngx_http_sandbox_metric_add(TOKENS_CUT, 1);

        /* an upstream gives up its hold among the cleanups: not the last one */
        r->main->count++;

        ngx_http_finalize_request(r, NGX_ERROR);
        ngx_http_run_posted_requests(c);
    }

    if (!ngx_queue_empty(&ngx_http_sandbox_held)) {
        ngx_add_timer(ev, NGX_HTTP_SANDBOX_HELD_LOOK);
    }
}


void
ngx_http_sandbox_tokens_delay(ngx_http_request_t *r, ngx_msec_t delay,
    ngx_http_event_handler_pt handler)
{
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = handler;

    r->connection->write->delayed = 1;
    ngx_add_timer(r->connection->write, delay);
}


ngx_uint_t
ngx_http_sandbox_tokens_delayed(ngx_http_request_t *r)
{
    ngx_event_t  *wev;

    wev = r->connection->write;

    if (wev->delayed) {

        if (ngx_handle_write_event(wev, 0) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        }

        return 1;
    }

    r->read_event_handler = ngx_http_block_reading;

    return 0;
}
