/*
 * sandboxes/{id}/leases: keys held over several operations.  A lease is in the
 * journal before its token is told, so that it holds over a restart.
 */

#include "ask_answer.h"
#include "ask_int.h"
#include "id.h"
#include "json.h"
#include "path.h"

#include <stdio.h>
#include <stdlib.h>

#define ASK_LEASE_TTL_MS      30000     /* as the SDK has it */
#define ASK_LEASE_TTL_MAX_MS  3600000
#define ASK_LEASE_WAIT_MS     20000
#define ASK_LEASE_WAIT_MAX_MS 300000
#define ASK_LEASE_LOOK_US     10000     /* between two looks */


/* A question that waits for its keys. */
typedef struct {
    locks_t        *locks;
    bool            asked;
    bool            kept;               /* granted, and told */
    char            token[LOCKS_TOKEN];
    char           *text;               /* what the keys point into */
    sb_jdoc_t      *doc;
    uint64_t        until_us;
    int64_t         ttl_ms;
    locks_lease_t   lease;
    sb_lock_key_t   keys[SB_LOCK_KEYS];
} ask_lease_t;


static void
ask_lease_release(void *state)
{
    ask_lease_t  *l = state;

    if (l->asked && !l->kept) {
        /* nobody would know its token */
        (void) locks_lease_end(l->locks, l->lease.id, l->lease.sandbox);
    }

    sb_jdoc_free(l->doc);
    free(l->text);
    free(l);
}


static ask_rc_e
ask_lease_bad(ask_question_t *q, const char *why)
{
    return ask_refuse(q, 400, "GATEWAY_AMBIGUOUS_REQUEST", why);
}


/* A whole number of the body, `def` when it is not there. */
static bool
ask_lease_ms(const sb_jv_t *root, const char *name, int64_t def, int64_t least,
    int64_t most, int64_t *out)
{
    const sb_jv_t  *v;

    v = sb_jv_get(root, name);
    *out = def;

    return v == NULL || (v->kind == SB_JSON_NUMBER && sb_jv_int(v, out)
                         && *out >= least && *out <= most);
}


/* NULL: fine; else a sentence. */
static const char *
ask_lease_keys(ask_lease_t *l, const sb_jv_t *list)
{
    char           *p;
    size_t          n;
    sb_str_t        mode, path;
    const sb_jv_t  *v;
    sb_lock_key_t  *k;

    p = l->text;

    if (list == NULL || list->kind != SB_JSON_OPEN_ARRAY
        || list->child == NULL)
    {
        return "\"keys\" must be a list of {\"path\",\"mode\"}, "
               "with one at least.";
    }

    for (v = list->child; v; v = v->next) {

        if (l->lease.nkeys == SB_LOCK_KEYS) {
            return "A lease has at most 64 keys.";
        }

        mode = sb_jv_str(v, "mode");
        path = sb_jv_str(v, "path");

        if (path.len == 0 || path.len > SB_LOCK_PATH
            || sb_path_flags(path) & ~(unsigned) SB_PATH_BACKSLASH)
        {
            return "The path of a key must be absolute, at most 4096 bytes "
                   "long and without \"..\", \"$\" and control "
                   "characters.";
        }

        k = &l->keys[l->lease.nkeys++];
        k->write = sb_eq(mode, sb_lit("write"));

        if (!k->write && !sb_eq(mode, sb_lit("read"))) {
            return "The mode of a key is read or write.";
        }

        n = sb_lock_path(p, path);
        k->path = sb_str(p, n);
        p += n;
    }

    return NULL;
}


/* Reads the body; ASK_AGAIN: it is fine. */
static ask_rc_e
ask_lease_read(ask_question_t *q, ask_lease_t *l)
{
    int64_t         wait_ms;
    const char     *why;
    const sb_jv_t  *root;

    l->doc = sb_jdoc_parse(q->body, NULL, NULL);
    l->text = malloc(q->body.len + 2 * SB_LOCK_KEYS);
    root = l->doc ? sb_jdoc_root(l->doc) : NULL;

    if (root == NULL || l->text == NULL || root->kind != SB_JSON_OPEN_OBJECT) {
        return ask_lease_bad(q, "The body must be a JSON object with "
                             "\"keys\".");
    }

    if (!ask_lease_ms(root, "ttl_ms", ASK_LEASE_TTL_MS, 3,
                      ASK_LEASE_TTL_MAX_MS, &l->ttl_ms)
        || !ask_lease_ms(root, "timeout_ms", ASK_LEASE_WAIT_MS, 0,
                         ASK_LEASE_WAIT_MAX_MS, &wait_ms))
    {
        return ask_lease_bad(q, "\"ttl_ms\" is a whole number of 3 to "
                             "3600000 and \"timeout_ms\" of 0 to 300000.");
    }

    l->lease.keys = l->keys;
    l->lease.sandbox = q->args[0];
    l->lease.actor_type = q->actor_type;
    l->lease.actor = q->actor_id;
    l->lease.identity = q->identity;
    l->lease.owner = sb_jv_str(root, "owner");

    why = ask_lease_keys(l, sb_jv_get(root, "keys"));

    if (why) {
        return ask_lease_bad(q, why);
    }

    l->until_us = sb_mono_us() + (uint64_t) wait_ms * 1000;

    return ASK_AGAIN;
}


/* Puts a lease as it is now into the journal; false: it is not sure to get
 * there. */
static bool
ask_lease_journal(ask_question_t *q, const locks_lease_t *l)
{
    bool     ok;
    char    *mem;
    size_t   i, size, n;
    api_t   *api;

    api = q->context;

    if (api->console == NULL) {
        return true;        /* mode none */
    }

    size = 2048 + l->sandbox.len + l->owner.len + l->actor_type.len
           + l->actor.len + l->identity.len;

    for (i = 0; i < l->nkeys; i++) {
        size += l->keys[i].path.len + 16;
    }

    mem = malloc(size);
    n = mem ? locks_lease_frame(l, mem, size) : 0;
    ok = console_keep(api->console, mem, n, q->in->conn, q->in->seq);
    free(mem);

    return ok;
}


static ask_rc_e
ask_lease_unkept(ask_question_t *q)
{
    return ask_refuse(q, 503, "GATEWAY_RECORDER_UNAVAILABLE", "A lease must be "
                      "in the journal and there is no room for it now; try "
                      "again shortly.");
}


static ask_rc_e
ask_lease_answer(ask_question_t *q, unsigned status, const locks_lease_t *l,
    const char *token)
{
    char      id[SB_UUID_LEN + 1], at[40];
    sb_out_t  out = { .buf.max = 4096 };

    sb_uuid_text(id, l->id);
    sb_time_text(at, l->expires_us);

    sb_out_text(&out, "{");
    sb_out_key(&out, "id");
    sb_out_str(&out, sb_str(id, SB_UUID_LEN));

    if (token) {
        sb_out_key(&out, "token");
        sb_out_str(&out, sb_str(token, strlen(token)));
    }

    sb_out_key(&out, "fence");
    sb_out_int(&out, (int64_t) l->fence);
    sb_out_key(&out, "expires_at");
    sb_out_str(&out, sb_str(at, strlen(at)));
    sb_out_text(&out, "}");

    if (out.rc != SB_OK) {
        sb_buf_free(&out.buf);
        return ASK_FAILED;
    }

    return ask_whole(q, status, "application/json", &out.buf);
}


/* Its time is over: who is in the way? */
static ask_rc_e
ask_lease_late(ask_question_t *q, ask_lease_t *l)
{
    sb_out_t        out = { .buf.max = 64 * 1024 };
    locks_event_t   e;

    locks_lease_refuse(l->locks, l->lease.id, &e);
    l->asked = false;

    sb_out_text(&out, "{\"code\":\"GATEWAY_LOCK_TIMEOUT\",\"message\":"
                "\"A key of the lease was not free in time.\","
                "\"details\":{");
    sb_out_key(&out, "holder");
    sb_out_text(&out, "{");
    sb_out_key(&out, "actor");
    sb_out_str(&out, sb_str(e.actor, strlen(e.actor)));

    if (e.owner[0]) {
        sb_out_key(&out, "owner");
        sb_out_str(&out, sb_str(e.owner, strlen(e.owner)));
    }

    sb_out_key(&out, "id");
    sb_out_str(&out, sb_str(e.holder, strlen(e.holder)));
    sb_out_text(&out, "}");
    sb_out_key(&out, "key");
    sb_out_str(&out, sb_str(e.key, strlen(e.key)));
    sb_out_key(&out, "waited_ms");
    sb_out_int(&out, (int64_t) (e.waited_us / 1000));
    sb_out_text(&out, "}}");

    if (out.rc != SB_OK) {
        sb_buf_free(&out.buf);
        return ASK_FAILED;
    }

    return ask_whole(q, 423, "application/json", &out.buf);
}


ask_rc_e
ask_lease_new(ask_question_t *q)
{
    api_t        *api;
    sb_rc_t       rc;
    ask_rc_e      answer;
    ask_lease_t  *l;

    api = q->context;
    l = q->state;

    if (l == NULL) {
        l = calloc(1, sizeof(ask_lease_t));

        if (l == NULL) {
            return ASK_FAILED;
        }

        l->locks = api->locks;
        q->state = l;
        q->release = ask_lease_release;

        answer = ask_lease_read(q, l);

        if (answer != ASK_AGAIN) {
            return answer;
        }

        rc = locks_lease_new(api->locks, &l->lease, l->token,
                             (uint64_t) l->ttl_ms * 1000, sb_mono_us());

        if (rc == SB_LIMIT) {
            return ask_refuse(q, 503, "GATEWAY_OVERLOADED", "There are too "
                              "many leases, or keys in them; try again "
                              "shortly.");
        }

        if (rc != SB_OK) {
            return ASK_FAILED;
        }

        l->asked = true;
    }

    if (locks_lease_state(api->locks, l->lease.id, &l->lease.expires_us)
        != SB_OK)
    {
        l->asked = false;
        return ask_refuse(q, 409, "GATEWAY_LEASE_INVALID", "The lease was "
                          "broken while it waited.");
    }

    if (l->lease.expires_us == 0) {

        if (sb_mono_us() >= l->until_us && !locks_recalling(l->locks)) {
            return ask_lease_late(q, l);
        }

        ask_later(q, ASK_LEASE_LOOK_US);
        return ASK_AGAIN;
    }

    if (!ask_lease_journal(q, &l->lease)) {
        return ask_lease_unkept(q);
    }

    l->kept = true;

    return ask_lease_answer(q, 201, &l->lease, l->token);
}


static ask_rc_e
ask_lease_none(ask_question_t *q)
{
    return ask_refuse(q, 409, "GATEWAY_LEASE_INVALID", "There is no such lease "
                      "of this sandbox, or it is over.");
}


/* Is it the lease of who asks?  ASK_AGAIN: it is, or an admin asks. */
static ask_rc_e
ask_lease_own(ask_question_t *q, uint8_t id[16])
{
    api_t          *api = q->context;
    locks_asker_t   by;

    by.token = q->lease;
    by.actor_type = q->actor_type;
    by.actor = q->actor_id;
    by.identity = q->identity;
    by.admin = q->role == SB_ROLE_ADMIN;

    if (sb_uuid_parse(id, q->args[1]) != SB_OK) {
        return ask_lease_none(q);
    }

    switch (locks_lease_may(api->locks, id, q->args[0], &by)) {

    case SB_OK:
        return ASK_AGAIN;

    case SB_DECLINED:
        return ask_lease_none(q);

    default:
        return ask_refuse(q, 403, "GATEWAY_FORBIDDEN", "Another actor holds "
                          "this lease: send its token in X-Sandbox-Lease, or "
                          "let an admin break it.");
    }
}


ask_rc_e
ask_lease_renew(ask_question_t *q)
{
    bool            ok;
    api_t          *api;
    int64_t         ttl_ms;
    ask_rc_e        answer;
    sb_jdoc_t      *doc;
    locks_lease_t   l;

    api = q->context;
    memset(&l, 0, sizeof(l));

    doc = q->body.len ? sb_jdoc_parse(q->body, NULL, NULL) : NULL;
    ok = (q->body.len == 0 || doc != NULL)
         && ask_lease_ms(doc ? sb_jdoc_root(doc) : NULL, "ttl_ms",
                         ASK_LEASE_TTL_MS, 3, ASK_LEASE_TTL_MAX_MS, &ttl_ms);
    sb_jdoc_free(doc);

    if (!ok) {
        return ask_lease_bad(q, "\"ttl_ms\" is a whole number of 3 to "
                             "3600000.");
    }

    answer = ask_lease_own(q, l.id);

    if (answer != ASK_AGAIN) {
        return answer;
    }

    if (!locks_lease_renew(api->locks, l.id, q->args[0],
                           (uint64_t) ttl_ms * 1000, sb_mono_us(), &l))
    {
        return ask_lease_none(q);
    }

    l.sandbox = q->args[0];

    if (!ask_lease_journal(q, &l)) {
        return ask_lease_unkept(q);
    }

    return ask_lease_answer(q, 200, &l, NULL);
}


ask_rc_e
ask_lease_end(ask_question_t *q)
{
    api_t          *api;
    ask_rc_e        answer;
    locks_lease_t   l;

    api = q->context;
    memset(&l, 0, sizeof(l));

    answer = ask_lease_own(q, l.id);

    if (answer != ASK_AGAIN) {
        return answer;
    }

    if (!locks_lease_end(api->locks, l.id, q->args[0])) {
        return ask_lease_none(q);
    }

    l.sandbox = q->args[0];

    /* when it cannot be written it is only over a little later after a
     * restart */
    (void) ask_lease_journal(q, &l);

    return ASK_DONE;
}
