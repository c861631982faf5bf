/*
 * What a request has run beside, or in place of, the text of a command: as
 * policies judge it.
 */

#include "request_internal.h"

#include <stdlib.h>


/* Names in the environment that have a shell, or the loader of programmes, run
 * what the command does not name. */
static bool
sb_runs_env(sb_str_t name)
{
    size_t  i;

    static const sb_str_t  names[] = {
        { "PATH", 4 }, { "ENV", 3 }, { "IFS", 3 }, { "PS4", 3 },
        { "PROMPT_COMMAND", 14 }, { "SHELLOPTS", 9 }, { "BASHOPTS", 8 }
    };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (sb_eq(name, names[i])) {
            return true;
        }
    }

    return (name.len > 3 && memcmp(name.data, "LD_", 3) == 0)
           || (name.len > 5 && memcmp(name.data, "BASH_", 5) == 0);
}


/* An environment: names and values, or a list of objects with a name. */
static bool
sb_runs_envs(const sb_jv_t *v)
{
    bool            array, found = false;
    const sb_jv_t  *m;

    array = v && v->kind == SB_JSON_OPEN_ARRAY;

    if (v == NULL || (!array && v->kind != SB_JSON_OPEN_OBJECT)) {
        return false;
    }

    for (m = v->child; m; m = m->next) {
        found |= sb_runs_env(array ? sb_jv_str(m, "name") : m->key);
    }

    return found;
}


void
sb_request_envs(sb_request_ctx_t *c)
{
    c->r->env_runs |= sb_runs_envs(sb_jv_get(sb_jdoc_root(c->mem->doc),
                                             "envs"));
}


/* A programme and its arguments, told as their JSON text. */
static sb_rc_t
sb_runs_words(sb_request_ctx_t *c, const sb_jv_t *v)
{
    sb_rc_t  rc;

    c->mem->argv.max = SIZE_MAX / 2;

    rc = sb_jv_canonical(&c->mem->argv, v);

    if (rc == SB_OK) {
        c->r->command = sb_str(c->mem->argv.data, c->mem->argv.len);
        c->r->argv = true;
    }

    return rc;
}


sb_rc_t
sb_request_argv(sb_request_ctx_t *c)
{
    const sb_jv_t  *v;

    v = sb_jv_get(sb_jdoc_root(c->mem->doc), "argv");

    if (v == NULL || v->kind != SB_JSON_OPEN_ARRAY || v->child == NULL) {
        return SB_OK;
    }

    if (c->r->command.len) {
        return sb_request_refuse(c, SB_AMBIGUOUS, "The body has both command "
                                 "and argv, of which one is run: send that "
                                 "one.%.0s", sb_str("", 0));
    }

    c->r->has_command = true;

    return sb_runs_words(c, v);
}


static bool
sb_runs_there(const sb_jv_t *v)
{
    return v && v->kind != SB_JSON_NULL;
}


sb_rc_t
sb_request_created(sb_request_ctx_t *c)
{
    const sb_jv_t  *v, *root;

    root = sb_jdoc_root(c->mem->doc);

    /* a snapshot and a pool have images of their own, named or not */

    c->r->image_unread = !c->r->has_image
                         || sb_runs_there(sb_jv_get(root, "snapshotId"))
                         || sb_runs_there(sb_jv_get(root, "snapshot_id"))
                         || sb_runs_there(sb_jv_get(sb_jv_get(root,
                                                              "extensions"),
                                                    "poolRef"));

    v = sb_jv_get(root, "entrypoint");

    if (!sb_runs_there(v)) {
        return SB_OK;
    }

    c->r->env_runs |= sb_runs_envs(sb_jv_get(root, "env"));

    return sb_runs_words(c, v);
}


/* One command of a template: its words, behind those of others. */
static sb_rc_t
sb_runs_add(sb_request_ctx_t *c, const sb_jv_t *command, const sb_jv_t *args)
{
    bool            first = true;
    sb_rc_t         rc;
    sb_buf_t       *b = &c->mem->argv;
    const sb_jv_t  *v, *list[] = { command, args };

    rc = sb_buf_add_c(b, b->len ? ',' : '[');
    rc = rc == SB_OK ? sb_buf_add_c(b, '[') : rc;

    for (size_t i = 0; i < 2; i++) {

        if (!sb_runs_there(list[i])) {
            continue;
        }

        /* what is no list is refused, or taken for something unknown */
        c->r->env_runs |= list[i]->kind != SB_JSON_OPEN_ARRAY;

        for (v = list[i]->child; rc == SB_OK && v; v = v->next) {
            rc = first ? SB_OK : sb_buf_add_c(b, ',');
            rc = rc == SB_OK ? sb_jv_canonical(b, v) : rc;
            first = false;
        }
    }

    /* the programme is then one of the image */
    c->r->env_runs |= !sb_runs_there(command);

    return rc == SB_OK ? sb_buf_add_c(b, ']') : rc;
}


/* An object somewhere in a template: a container, a probe, a hook, or none. */
static sb_rc_t
sb_runs_object(sb_request_ctx_t *c, const sb_jv_t *v)
{
    sb_request_t   *r = c->r;
    const sb_jv_t  *m, *command = NULL, *args = NULL;

    for (m = v->child; m; m = m->next) {

        if (sb_ieq(m->key, sb_lit("command"))) {
            command = m;

        } else if (sb_ieq(m->key, sb_lit("args"))) {
            args = m;

        } else if (sb_ieq(m->key, sb_lit("env"))) {
            r->env_runs |= sb_runs_envs(m);

        } else if (sb_ieq(m->key, sb_lit("envFrom"))) {
            r->env_runs |= sb_runs_there(m);

        } else if (sb_ieq(m->key, sb_lit("image"))
                   && m->kind == SB_JSON_STRING)
        {
            if (r->nimages == SB_REQUEST_IMAGES) {
                r->image_unread = true;
                continue;
            }

            if (c->mem->images == NULL) {
                c->mem->images = malloc(SB_REQUEST_IMAGES * sizeof(sb_str_t));

                if (c->mem->images == NULL) {
                    return SB_NOMEM;
                }
            }

            c->mem->images[r->nimages++] = m->text;
            r->images = c->mem->images;
        }
    }

    return sb_runs_there(command) || sb_runs_there(args)
           ? sb_runs_add(c, command, args) : SB_OK;
}


/*
 * The template of a pool is Kubernetes': a pod, or what has one in it.  Wherever
 * an image or a command stands in it, it may be run.
 */
sb_rc_t
sb_request_template(sb_request_ctx_t *c)
{
    sb_rc_t             rc = SB_OK;
    sb_buf_t           *b = &c->mem->argv;
    const sb_jv_t      *v;
    sb_request_walk_t   walk = { .depth = 0 };

    v = sb_jv_get(sb_jdoc_root(c->mem->doc), "template");

    if (!sb_runs_there(v)) {
        return SB_OK;
    }

    b->max = SIZE_MAX / 2;

    for ( /* void */ ; rc == SB_OK && v; v = sb_request_next(&walk, v)) {
        if (v->kind == SB_JSON_OPEN_OBJECT) {
            rc = sb_runs_object(c, v);
        }
    }

    c->r->image_unread |= c->r->nimages == 0;

    if (rc == SB_OK && b->len) {
        rc = sb_buf_add_c(b, ']');
        c->r->command = sb_str(b->data, b->len);
        c->r->argv = true;
    }

    return rc;
}
