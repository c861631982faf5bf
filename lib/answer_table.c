/*
 * Where the facts stand in JSON answers: "result found in" of
 * reference/opensandbox-api.md 8.
 */

#include "answer_table.h"
#include "operation_table.h"


typedef struct {
    const char             *op;
    const sb_answer_row_t  *rows;
} sb_answer_rule_t;


static const sb_answer_row_t  error[] = {
    { "code", SB_A_CODE, "error_code" },
    { "message", SB_A_MESSAGE, "error" },
    { "error", SB_A_MESSAGE, "error" },         /* execd's 401 */
    { "detail", SB_A_MESSAGE, "error" },        /* the router's 404, 405 */
    { "detail[].msg", SB_A_MESSAGE, "error" },  /* validation, 422 */
    { NULL, SB_A_STR, NULL }
};

/* the words of a vault may repeat what it was given */
static const sb_answer_row_t  vault_error[] = {
    { "code", SB_A_CODE, "error_code" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  create[] = {
    { "id", SB_A_ID, "id" },
    { "status.state", SB_A_STATE, "state" },
    { "expiresAt", SB_A_EXPIRES, "expires_at" },
    { "metadata.agent_sandbox.name", SB_A_NAME, NULL },
    { "metadata.sandbox_name", SB_A_OLD_NAME, NULL },
    { "metadata.sandbox_instance_id", SB_A_INSTANCE, NULL },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  list[] = {
    { "items[]", SB_A_ITEM, NULL },
    { "items[].id", SB_A_ITEM_ID, NULL },
    { "items[].status.state", SB_A_ITEM_STATE, NULL },
    { "items[].metadata.agent_sandbox.name", SB_A_ITEM_NAME, NULL },
    { "items[].metadata.sandbox_name", SB_A_ITEM_OLD_NAME, NULL },
    { "items[].metadata.sandbox_instance_id", SB_A_ITEM_INSTANCE, NULL },
    { "items[]", SB_A_COUNT, "count" },
    { "pagination.totalItems", SB_A_STR, "total" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  get[] = {
    { "", SB_A_ITEM, NULL },
    { "id", SB_A_ITEM_ID, NULL },
    { "status.state", SB_A_ITEM_STATE, NULL },
    { "metadata.agent_sandbox.name", SB_A_ITEM_NAME, NULL },
    { "metadata.sandbox_name", SB_A_ITEM_OLD_NAME, NULL },
    { "metadata.sandbox_instance_id", SB_A_ITEM_INSTANCE, NULL },
    { "status.state", SB_A_STATE, "state" },
    { "metadata.agent_sandbox.name", SB_A_NAME, NULL },
    { "metadata.sandbox_name", SB_A_OLD_NAME, NULL },
    { "metadata.sandbox_instance_id", SB_A_INSTANCE, NULL },
    { "expiresAt", SB_A_EXPIRES, "expires_at" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  renew[] = {
    { "expiresAt", SB_A_EXPIRES, "expires_at" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  endpoint[] = {
    { "endpoint", SB_A_STR, "endpoint" },
    { "headers", SB_A_KEYS, "header_names" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  snapshot[] = {
    { "id", SB_A_STR, "id" },
    { "sandboxId", SB_A_STR, "sandbox_id" },
    { "status.state", SB_A_STATE, "state" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  count_items[] = {
    { "items[]", SB_A_COUNT, "count" },
    { "pagination.totalItems", SB_A_STR, "total" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  count_array[] = {
    { "[]", SB_A_COUNT, "count" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  count_map[] = {
    { "*", SB_A_COUNT, "count" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  pool[] = {
    { "name", SB_A_STR, "name" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  command_status[] = {
    { "id", SB_A_COMMAND, "id" },
    { "running", SB_A_RUNNING, "running" },
    { "exit_code", SB_A_EXIT, "exit_code" },
    { "error", SB_A_STR, "error" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  code_context[] = {
    { "id", SB_A_STR, "id" },
    { "language", SB_A_STR, "language" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  session[] = {
    { "session_id", SB_A_STR, "session_id" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  pty_status[] = {
    { "session_id", SB_A_STR, "session_id" },
    { "running", SB_A_RUNNING, "running" },
    { "output_offset", SB_A_STR, "output_offset" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  replace[] = {
    { "replacedCount", SB_A_REPLACED, NULL },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  ready[] = {
    { "initialized", SB_A_STR, "initialized" },
    { "generation", SB_A_STR, "generation" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  egress[] = {
    { "mode", SB_A_STR, "mode" },
    { "enforcementMode", SB_A_STR, "enforcement_mode" },
    { "reason", SB_A_STR, "reason" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_row_t  vault[] = {
    { "revision", SB_A_STR, "revision" },
    { NULL, SB_A_STR, NULL }
};

static const sb_answer_rule_t  rules[] = {
    { "sandbox.create", create },
    { "sandbox.list", list },
    { "sandbox.get", get },
    { "sandbox.metadata.patch", get },
    { "sandbox.renew", renew },
    { "endpoint.get", endpoint },
    { "snapshot.create", snapshot },
    { "snapshot.get", snapshot },
    { "snapshot.list", count_items },
    { "pool.create", pool },
    { "pool.list", count_items },
    { "command.status", command_status },
    { "code.context.create", code_context },
    { "code.context.get", code_context },
    { "code.context.list", count_array },
    { "session.create", session },
    { "pty.create", session },
    { "isolated.create", session },
    { "pty.status", pty_status },
    { "file.stat", count_map },
    { "file.search", count_array },
    { "dir.list", count_array },
    { "file.replace", replace },
    { "execd.ready", ready },
    { "egress.policy.get", egress },
    { "egress.policy.set", egress },
    { "egress.policy.reset", egress },
    { "egress.policy.patch", egress },
    { "egress.policy.delete_rules", egress },
    { "vault.create", vault },
    { "vault.patch", vault },
    { "vault.delete", vault },
    { "vault.get", vault },
};

#define SB_ANSWER_RULES  (sizeof(rules) / sizeof(rules[0]))


const sb_answer_row_t *
sb_answer_rows(const sb_op_t *op, unsigned status)
{
    size_t                  i, at = sb_op_index(op);
    const char             *name = op->name;
    const sb_answer_row_t  *rows = NULL;

    /* found once for each operation: one behind what was found */
    static size_t           found[SB_OP_COUNT];

    if (status >= 400) {
        return strncmp(name, "vault.", 6) == 0 ? vault_error : error;
    }

    i = __atomic_load_n(&found[at], __ATOMIC_RELAXED);

    if (i) {
        return i > SB_ANSWER_RULES ? NULL : rules[i - 1].rows;
    }

    if (strncmp(name, "isolated.file.", 14) == 0
        || strncmp(name, "isolated.dir.", 13) == 0)
    {
        name += 9;
    }

    for (i = 0; i < SB_ANSWER_RULES; i++) {
        if (strcmp(rules[i].op, name) == 0) {
            rows = rules[i].rows;
            break;
        }
    }

    __atomic_store_n(&found[at], i + 1, __ATOMIC_RELAXED);

    return rows;
}
