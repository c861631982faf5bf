/* POST sandboxes/{id}/verify: is the history what was recorded? */

#include "ask_answer.h"
#include "ask_args.h"
#include "ask_boxes.h"
#include "chain_verify.h"
#include "history_verify.h"
#include "id.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>


/* It reads a whole file: one at a time, the other threads answer the rest.  Its
 * snapshot keeps the writer's log from being reused, so it has an end. */
#define ASK_VERIFY_US  60000000u

static atomic_bool  ask_verifying;

typedef struct {
    ask_question_t  *q;
    uint64_t         until_us;
} ask_verify_t;


static bool
ask_verify_stop(void *data, int64_t entries)
{
    ask_verify_t  *v = data;

    (void) entries;

    return ask_over(v->q) || sb_mono_us() > v->until_us;
}


/* False after a refusal. */
static bool
ask_verify_args(ask_question_t *q, bool *allow_foreign, ask_rc_e *rc)
{
    bool                ok;
    int64_t             v;
    unsigned            i;
    ask_args_t          args;
    const ask_param_t  *p;

    memset(&args, 0, sizeof(args));
    v = 0;
    ok = ask_args_read(&args, q->query);

    for (i = 0; ok && i < args.n; i++) {
        p = &args.p[i];
        ok = strcmp(p->name, "allow_foreign") == 0
             ? ask_args_int(&args, p, &v, 0, 1) : ask_args_unknown(&args, p);
    }

    if (!ok) {
        *rc = ask_args_refuse(q, &args);
    }

    ask_args_free(&args);
    *allow_foreign = v;

    return ok;
}


static ask_rc_e
ask_verify_answer(ask_question_t *q, reader_t *r, const char *dir,
    bool allow_foreign)
{
    char            path[4200];
    api_t          *api;
    sb_buf_t        out;
    verify_t        v;
    verify_rc_e     rc;
    ask_verify_t    end;
    verify_conf_t   conf;

    api = q->context;

    (void) snprintf(path, sizeof(path), "%s/" HEADS_FILE,
                    readers_base(api->readers));

    memset(&conf, 0, sizeof(conf));
    conf.dir = dir;
    conf.heads = path;
    conf.keys = api->keys;
    conf.allow_foreign = allow_foreign;
    end.q = q;
    end.until_us = sb_mono_us() + ASK_VERIFY_US;
    conf.stop = ask_verify_stop;
    conf.data = &end;

    rc = chain_verify(r->db, &conf, &v);

    memset(&out, 0, sizeof(out));
    out.max = 64 * 1024;

    if (history_verify_json(&out, rc, &v) != SB_OK) {
        sb_buf_free(&out);
        return ASK_FAILED;
    }

    return ask_whole(q, 200, "application/json", &out);
}


ask_rc_e
ask_verify(ask_question_t *q)
{
    bool              allow_foreign;
    char              dir[STORE_DIR_LEN];
    api_t            *api;
    ask_rc_e          rc;
    reader_t         *r;
    api_wait_t       *w;
    history_error_t   err;

    api = q->context;

    if (!ask_verify_args(q, &allow_foreign, &rc)) {
        return rc;
    }

    if (api->readers == NULL) {
        return ask_nothing(q);
    }

    if (q->state == NULL) {
        q->state = calloc(1, sizeof(api_wait_t));
        q->release = free;

        if (q->state == NULL) {
            return ASK_FAILED;
        }
    }

    w = q->state;

    if (!api_wait(q, w)) {
        return ASK_AGAIN;
    }

    if (atomic_exchange(&ask_verifying, true)) {
        return ask_refuse(q, 429, "GATEWAY_BUSY", "Another history is being "
                          "verified; try again when that is done.");
    }

    ask_box_dir(dir, q->args[0]);

    switch (reader_take(api->readers, dir, &r, &err)) {

    case READER_OK:
        /* as long as it takes, or until the one who asked leaves; in a
         * transaction of its own */
        r->until_us = 0;
        (void) sqlite3_exec(r->db, "rollback", NULL, NULL, NULL);
        rc = ask_verify_answer(q, r, dir, allow_foreign);
        reader_give(api->readers, r, true);
        break;

    case READER_MISSING:
        rc = ask_refuse(q, 404, "GATEWAY_NOT_FOUND", "There is no history of "
                        "a sandbox of that id.");
        break;

    default:
        rc = ask_unreadable(q, &err);
    }

    atomic_store(&ask_verifying, false);

    return rc;
}
