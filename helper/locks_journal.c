/* Leases in the journal, and what commands keep that go on without their
 * requests: LEASE frames (lib/frame.h). */

#include "locks_int.h"

#include "id.h"

#include <stdlib.h>


size_t
locks_lease_frame(const locks_lease_t *l, void *mem, size_t size)
{
    size_t             i;
    sb_frame_writer_t  w;

    sb_frame_begin(&w, mem, size, SB_F_LEASE, 0, 0, l->id, sb_now_us());
    sb_frame_put(&w, SB_T_SANDBOX, l->sandbox);
    sb_frame_put(&w, SB_T_HASH, sb_str(l->hash, 32));
    sb_frame_put_u64(&w, SB_T_FENCE, l->fence);
    sb_frame_put_u64(&w, SB_T_EXPIRES, l->expires_us);

    if (l->actor_type.len) {
        sb_frame_put(&w, SB_T_ACTOR_TYPE, l->actor_type);
    }

    if (l->actor.len) {
        sb_frame_put(&w, SB_T_ACTOR_ID, l->actor);
    }

    if (l->identity.len) {
        sb_frame_put(&w, SB_T_IDENTITY, l->identity);
    }

    if (l->owner.len) {
        sb_frame_put(&w, SB_T_OWNER, l->owner);
    }

    for (i = 0; i < l->nkeys; i++) {
        sb_frame_put(&w, l->keys[i].write ? SB_T_LOCK_WRITE : SB_T_LOCK_READ,
                     l->keys[i].path);
    }

    return sb_frame_end(&w);
}


static void
locks_kept_restore(locks_t *t, const locks_lease_t *l, sb_str_t type)
{
    sb_rc_t       rc;
    locks_req_t  *r;

    pthread_mutex_lock(&t->lock);

    if (table_find(&t->reqs, l->id, 16) == NULL) {
        /* there is room for what there was room for before */
        r = locks_req_new(t, l->id, l->sandbox, l->keys, l->nkeys, &rc);

        if (r) {
            locks_copy(r->type, sizeof(r->type), type);
            locks_copy(r->actor, sizeof(r->actor), l->actor);
            r->since_us = sb_mono_us();
            r->state = LOCKS_R_HELD;
            r->declared = true;
            r->detached = true;
            r->told = true;
            locks_link(r, true);
        }
    }

    pthread_mutex_unlock(&t->lock);
}


/* It is over, and was told of before we started. */
static void
locks_note_over(locks_t *t, const uint8_t id[16])
{
    locks_req_t  *r;

    pthread_mutex_lock(&t->lock);

    r = table_find(&t->reqs, id, 16);

    if (r) {
        r->told = false;
        locks_req_end(t, r, sb_mono_us());
    }

    pthread_mutex_unlock(&t->lock);
}


void
locks_note(locks_t *t, const sb_frame_t *f)
{
    bool            kept;
    uint16_t        tag;
    sb_str_t        fields, v, type;
    locks_lease_t   l;
    sb_lock_key_t   keys[SB_LOCK_KEYS];

    if (f->type == SB_F_END && !sb_field_get(f, SB_T_DETACHED, &v)) {
        locks_note_over(t, f->op);
        return;
    }

    if (f->type == SB_F_LOCK) {

        /* nobody renewed it, or an admin took it away: no other frame says so */

        if (sb_field_get(f, SB_T_STATE, &v)
            && (sb_eq(v, sb_lit("released")) || sb_eq(v, sb_lit("broken"))))
        {
            locks_note_over(t, f->op);
        }

        return;
    }

    if (f->type != SB_F_LEASE) {
        return;
    }

    memset(&l, 0, sizeof(l));
    type = sb_str("", 0);
    kept = false;
    memcpy(l.id, f->op, 16);
    l.keys = keys;

    for (fields = f->fields; sb_field_next(&fields, &tag, &v); /* void */ ) {

        switch (tag) {

        case SB_T_SANDBOX:
            l.sandbox = v;
            break;

        case SB_T_ACTOR_TYPE:
            l.actor_type = v;
            break;

        case SB_T_ACTOR_ID:
            l.actor = v;
            break;

        case SB_T_IDENTITY:
            l.identity = v;
            break;

        case SB_T_OWNER:
            l.owner = v;
            break;

        case SB_T_TYPE:
            type = v;
            break;

        case SB_T_DECLARED:
            kept = true;
            break;

        case SB_T_HASH:
            if (v.len == 32) {
                memcpy(l.hash, v.data, 32);
            }

            break;

        case SB_T_FENCE:
            l.fence = sb_value_u64(v, 0);
            break;

        case SB_T_EXPIRES:
            l.expires_us = sb_value_u64(v, 0);
            break;

        case SB_T_LOCK_READ:
        case SB_T_LOCK_WRITE:
            if (l.nkeys < SB_LOCK_KEYS) {
                keys[l.nkeys].write = tag == SB_T_LOCK_WRITE;
                keys[l.nkeys++].path = v;
            }

            break;

        default:
            break;
        }
    }

    if (kept) {
        locks_kept_restore(t, &l, type);
        return;
    }

    /* without memory it is not there: what was inside is refused */
    (void) locks_lease_restore(t, &l, sb_mono_us());
}


/* What the lease of a request is, for its frame; `keys` and `paths` are for
 * what it points to. */
static bool
locks_lease_of(const locks_req_t *r, locks_lease_t *l,
    sb_lock_key_t keys[SB_LOCK_KEYS], sb_buf_t *paths)
{
    char    path[SB_LOCK_PATH + 1];
    size_t  i, at;

    memcpy(l->id, r->id, 16);
    memcpy(l->hash, r->hash, 32);
    l->fence = r->fence;
    l->expires_us = r->expires_us;
    l->sandbox = sb_str(r->box->name, r->box->len);
    l->actor = sb_str(r->actor, strlen(r->actor));
    l->actor_type = sb_str(r->who->type, strlen(r->who->type));
    l->identity = sb_str(r->who->identity, strlen(r->who->identity));
    l->owner = sb_str(r->who->owner, strlen(r->who->owner));
    l->keys = keys;
    l->nkeys = r->nkeys;
    paths->len = 0;

    for (i = 0; i < r->nkeys; i++) {
        locks_path(path, sizeof(path), r->keys[i].node);
        keys[i].write = r->keys[i].write;
        keys[i].path.len = strlen(path);

        if (sb_buf_add(paths, path, keys[i].path.len) != SB_OK) {
            return false;
        }
    }

    for (i = 0, at = 0; i < r->nkeys; i++) {
        keys[i].path.data = paths->data + at;
        at += keys[i].path.len;
    }

    return true;
}


typedef struct {
    sb_buf_t  *out;
    sb_buf_t   paths;
    char      *mem;
    size_t     n;
} locks_state_t;


static size_t
locks_kept_of(const locks_req_t *r, void *mem)
{
    char               path[SB_LOCK_PATH + 1];
    size_t             i;
    sb_frame_writer_t  w;

    sb_frame_begin(&w, mem, LOCKS_FRAME, SB_F_LEASE, 0, 0, r->id, sb_now_us());
    sb_frame_put(&w, SB_T_SANDBOX, sb_str(r->box->name, r->box->len));
    sb_frame_put(&w, SB_T_TYPE, sb_str(r->type, strlen(r->type)));
    sb_frame_put(&w, SB_T_ACTOR_ID, sb_str(r->actor, strlen(r->actor)));
    sb_frame_put(&w, SB_T_DECLARED, sb_lit(""));

    for (i = 0; i < r->nkeys; i++) {
        locks_path(path, sizeof(path), r->keys[i].node);
        sb_frame_put(&w, r->keys[i].write ? SB_T_LOCK_WRITE : SB_T_LOCK_READ,
                     sb_str(path, strlen(path)));
    }

    return sb_frame_end(&w);
}


size_t
locks_kept_frame(locks_t *t, const uint8_t op[16], void *mem)
{
    size_t        len;
    locks_req_t  *r;

    pthread_mutex_lock(&t->lock);

    r = table_find(&t->reqs, op, 16);
    len = r && r->declared && !r->detached && r->state == LOCKS_R_HELD
          ? locks_kept_of(r, mem) : 0;

    pthread_mutex_unlock(&t->lock);

    return len;
}


static void
locks_state_one(void *entry, void *data)
{
    size_t          len;
    locks_req_t    *r = entry;
    locks_lease_t   l;
    locks_state_t  *s = data;
    sb_lock_key_t   keys[SB_LOCK_KEYS];

    if (r->detached) {
        len = locks_kept_of(r, s->mem);

    } else if (r->lease && r->state == LOCKS_R_HELD
               && locks_lease_of(r, &l, keys, &s->paths))
    {
        len = locks_lease_frame(&l, s->mem, LOCKS_FRAME);

    } else {
        return;
    }

    if (len && sb_buf_add(s->out, s->mem, len) == SB_OK) {
        s->n++;
    }
}


size_t
locks_state(locks_t *t, sb_buf_t *out)
{
    locks_state_t  s;

    memset(&s, 0, sizeof(s));
    s.out = out;
    s.paths.max = SB_LOCK_KEYS * SB_LOCK_PATH;
    s.mem = malloc(LOCKS_FRAME);

    if (s.mem == NULL) {
        return 0;
    }

    pthread_mutex_lock(&t->lock);
    table_each(&t->reqs, locks_state_one, &s);
    pthread_mutex_unlock(&t->lock);

    sb_buf_free(&s.paths);
    free(s.mem);

    return s.n;
}
