/*
 * Commands that outlived their request are asked about every two seconds, until
 * they ended (design 5): GET /command/status/{id} of their sandbox, through the
 * server proxy, whose address does not change.
 */

#include "inflight_int.h"

#include "id.h"
#include "json.h"


static sb_rc_t
inflight_escape(sb_buf_t *b, const char *text)
{
    sb_rc_t  rc;

    for ( /* void */ ; *text; text++) {

        if ((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z')
            || (*text >= '0' && *text <= '9') || strchr("-_.~", *text))
        {
            rc = sb_buf_add_c(b, *text);

        } else {
            rc = sb_buf_printf(b, "%%%02X", (unsigned) (uint8_t) *text);
        }

        if (rc != SB_OK) {
            return rc;
        }
    }

    return SB_OK;
}


uint64_t
inflight_ask(inflight_t *t, uint64_t now_us, sb_buf_t *target)
{
    inflight_op_t  *op;

    for (op = t->detached; op; op = op->next) {

        if (now_us < (op->asked_us ? op->asked_us : op->since_us)) {
            /* the clock was set back */
            op->asked_us = now_us;
        }

        if (op->ended || op->sandbox == NULL || op->command == NULL
            || now_us < (op->asked_us ? op->asked_us : op->since_us)
                        + INFLIGHT_ASK_US)
        {
            continue;
        }

        op->asked_us = now_us;
        op->question = ++t->questions;

        target->len = 0;

        if (sb_buf_printf(target, "/sandboxes/") == SB_OK
            && inflight_escape(target, op->sandbox) == SB_OK
            && sb_buf_printf(target, "/proxy/44772/command/status/") == SB_OK
            && inflight_escape(target, op->command) == SB_OK)
        {
            return op->question;
        }
    }

    return 0;
}


/* How long the command ran by execd's own clock; 0: not told. */
static uint64_t
inflight_took(const sb_jv_t *root)
{
    uint64_t  from, to;

    if (sb_time_parse(&from, sb_jv_str(root, "started_at")) != SB_OK
        || sb_time_parse(&to, sb_jv_str(root, "finished_at")) != SB_OK
        || to < from)
    {
        return 0;
    }

    return to - from;
}


void
inflight_told(inflight_t *t, uint64_t question, unsigned status,
    sb_str_t body)
{
    sb_jdoc_t       *doc;
    const sb_jv_t   *root, *running;
    inflight_op_t   *op;

    for (op = t->detached; op && op->question != question; op = op->next) {
        /* void */
    }

    if (op == NULL || op->ended) {
        return;
    }

    if (status == 404) {
        /* the sandbox is gone, or execd has forgotten the command */
        op->reason = "command_lost";
        inflight_mark_ended(t, op);
        return;
    }

    doc = status == 200 ? sb_jdoc_parse(body, NULL, NULL) : NULL;

    if (doc == NULL) {
        return;
    }

    root = sb_jdoc_root(doc);
    running = sb_jv_get(root, "running");

    if (running && running->kind == SB_JSON_FALSE) {

        op->has_exit = sb_jv_int(sb_jv_get(root, "exit_code"), &op->exit_code);

        if (!op->has_exit) {
            op->reason = "exit_code_unknown";
        }

        op->took_us = inflight_took(root);
        inflight_mark_ended(t, op);
    }

    sb_jdoc_free(doc);
}
