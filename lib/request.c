#include "request_internal.h"

#include "path.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>


/* The code of a context without a language, or with one of these two, is run
 * by the shell, whatever the context's id says. */
#define SB_LANGUAGE_SHELL       sb_lit("command")
#define SB_LANGUAGE_BACKGROUND  sb_lit("background-command")


sb_rc_t
sb_request_refuse(sb_request_ctx_t *c, sb_rc_t rc, const char *fmt,
    sb_str_t name)
{
    size_t  n;

    n = name.len > 64 ? sb_utf8_cut(name, 64) : name.len;

    (void) snprintf(c->mem->reason, sizeof(c->mem->reason), fmt, (int) n,
                    name.data);
    c->r->reason = c->mem->reason;

    return rc;
}


sb_rc_t
sb_request_file(sb_request_ctx_t *c, sb_str_t path, sb_str_t old_path,
    int32_t mode)
{
    void               *p;
    size_t              n;
    sb_request_t       *r = c->r;
    sb_request_file_t  *f;

    if (memchr(path.data, '\0', path.len)
        || memchr(old_path.data, '\0', old_path.len))
    {
        return sb_request_refuse(c, SB_AMBIGUOUS, "A file path in the request "
                                 "holds a NUL byte: remove it.%.0s",
                                 sb_str("", 0));
    }

    r->files_total++;

    if (r->nfiles == SB_REQUEST_FILES_MAX) {
        return SB_OK;
    }

    if (r->nfiles == c->nfiles) {
        n = c->nfiles * 4;

        p = realloc(r->files == c->mem->files ? NULL : r->files,
                    n * sizeof(sb_request_file_t));
        if (p == NULL) {
            return SB_NOMEM;
        }

        if (r->files == c->mem->files) {
            memcpy(p, r->files, sizeof(c->mem->files));
        }

        r->files = p;
        c->nfiles = n;
    }

    f = &r->files[r->nfiles++];

    f->path = path;
    f->old_path = old_path;
    f->mode = mode;
    f->flags = sb_path_flags(path);

    if (old_path.len) {
        f->flags |= sb_path_flags(old_path);
    }

    return SB_OK;
}


void
sb_request_drop(sb_request_ctx_t *c, const char *prefix, sb_str_t name)
{
    char    *p = c->names + c->names_len;
    size_t   i, n;
    sb_str_t full;

    if (c->ndropped == SB_REQUEST_DROPPED) {
        c->dropped_more++;
        return;
    }

    n = strlen(prefix);
    memcpy(p, prefix, n);

    i = sb_utf8_cut(name, SB_REQUEST_NAME - n);
    memcpy(p + n, name.data, i);

    full = sb_str(p, n + i);

    for (i = 0; i < c->ndropped; i++) {
        if (sb_eq(c->dropped[i], full)) {
            return;
        }
    }

    c->dropped[c->ndropped++] = full;
    c->names_len += full.len;
}


/* What the body says about which operation this is. */
static sb_rc_t
sb_request_refine(sb_request_ctx_t *c, bool empty)
{
    sb_rc_t        rc = SB_OK;
    sb_str_t       name;
    sb_request_t  *r = c->r;

    name = sb_str(r->op->name, strlen(r->op->name));

    if (sb_eq(name, sb_lit("egress.policy.set")) && empty) {
        r->op = sb_op_find(sb_lit("egress.policy.reset"));

    } else if (sb_eq(name, sb_lit("code.execute")) && !empty) {

        if (c->language.len == 0 || sb_eq(c->language, SB_LANGUAGE_SHELL)) {
            r->op = sb_op_find(sb_lit("command.execute"));

        } else if (sb_eq(c->language, SB_LANGUAGE_BACKGROUND)) {
            r->op = sb_op_find(sb_lit("command.execute"));
            r->background = true;
        }

    } else if (sb_eq(name, sb_lit("command.execute")) && !empty) {
        sb_request_envs(c);
        rc = sb_request_argv(c);

    } else if (sb_eq(name, sb_lit("isolated.run")) && !empty) {
        sb_request_envs(c);

    } else if (sb_eq(name, sb_lit("sandbox.create")) && !empty) {
        r->volumes = sb_jv_get(sb_jdoc_root(c->mem->doc), "volumes");
        rc = sb_request_created(c);

    } else if (strncmp(r->op->name, "pool.", 5) == 0 && !empty) {
        rc = sb_request_template(c);
    }

    return rc;
}


static bool
sb_request_blank(sb_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len; i++) {
        if (s.data[i] != ' ' && s.data[i] != '\t' && s.data[i] != '\r'
            && s.data[i] != '\n')
        {
            return false;
        }
    }

    return true;
}


static void
sb_request_arg(sb_request_ctx_t *c)
{
    const char  *name = c->rule->arg;

    if (c->route->arg.len) {

        if (name == NULL && strncmp(c->r->op->name, "isolated.", 9) == 0) {
            name = "session_id";
        }

        if (name) {
            sb_object_str(&c->out, name, c->route->arg);
        }
    }

    if (sb_op_index(c->r->op) == SB_OP_ENDPOINT_GET) {
        sb_object_uint(&c->out, "port", "", c->route->port);
    }
}


static sb_rc_t
sb_request_gather(sb_request_ctx_t *c, sb_str_t body)
{
    bool     empty;
    sb_rc_t  rc;

    sb_request_arg(c);

    rc = sb_request_query(c);

    if (rc != SB_OK || !(c->r->op->flags & SB_OPF_JSON)) {
        return rc;
    }

    empty = sb_request_blank(body);

    if (!empty) {
        rc = sb_request_body(c, body);
    }

    return rc == SB_OK ? sb_request_refine(c, empty) : rc;
}


static sb_rc_t
sb_request_facts(sb_request_t *r, const sb_route_t *route, sb_str_t body,
    bool record)
{
    sb_rc_t            rc, written;
    sb_request_ctx_t   ctx, *c = &ctx;

    memset(r, 0, sizeof(*r));

    r->op = route->op;
    r->timeout_ms = -1;
    r->json.max = SB_REQUEST_JSON_MAX;

    memset(c, 0, offsetof(sb_request_ctx_t, out));

    c->mem = malloc(sizeof(sb_request_mem_t) + route->query.len + 1);
    if (c->mem == NULL) {
        return SB_NOMEM;
    }

    memset(c->mem, 0, offsetof(sb_request_mem_t, reason));

    r->mem = c->mem;
    r->files = c->mem->files;
    c->nfiles = SB_REQUEST_FEW;
    c->r = r;
    c->route = route;
    c->rule = sb_request_rule(route->op);

    /* without room nothing is written */
    sb_object_init(&c->out, record ? SB_REQUEST_JSON_MAX : 0);

    rc = sb_request_gather(c, body);

    if (!record) {
        sb_object_free(&c->out);
        return rc;
    }

    /* A refused request is on record too, with what could be read of it. */

    if (c->ndropped) {
        sb_object_names(&c->out, "dropped", c->dropped, c->ndropped);
    }

    if (c->dropped_more) {
        sb_object_uint(&c->out, "dropped", "_more", c->dropped_more);
    }

    written = sb_object_write(&c->out, &r->json);

    sb_object_free(&c->out);

    return rc == SB_OK ? written : rc;
}


sb_rc_t
sb_request_read(sb_request_t *r, const sb_route_t *route, sb_str_t body)
{
    return sb_request_facts(r, route, body, true);
}


sb_rc_t
sb_request_judge(sb_request_t *r, const sb_route_t *route)
{
    return sb_request_facts(r, route, sb_str("", 0), false);
}


void
sb_request_free(sb_request_t *r)
{
    sb_request_mem_t  *m = r->mem;

    if (m) {
        if (r->files != m->files) {
            free(r->files);
        }

        sb_jdoc_free(m->doc);
        sb_buf_free(&m->argv);
        free(m->images);
        free(m);
    }

    sb_buf_free(&r->json);

    r->mem = NULL;
    r->files = NULL;
    r->nfiles = 0;
    r->reason = NULL;
}
