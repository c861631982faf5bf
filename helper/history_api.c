#include "history_api.h"
#include "history_api_read.h"
#include "history_api_write.h"
#include "history_remote.h"
#include "history_text.h"
#include "id.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>


#define HISTORY_PROGRAM  "sandbox-history"


static const history_arg_t  history_args_none[] = {
    { .name = NULL }
};

static const history_arg_t  history_args_init[] = {
    { "--identity-file", 0, HISTORY_ARG_TEXT, true, false, NULL },
    { .name = NULL }
};

static const history_arg_t  history_args_apply[] = {
    { "--batch-file", 0, HISTORY_ARG_TEXT, true, false, NULL },
    { .name = NULL }
};

static const history_arg_t  history_args_query[] = {
    { "--after-change-seq", 0, HISTORY_ARG_INT, true, false, NULL },
    { "--limit", 0, HISTORY_ARG_INT, true, false, NULL },
    { "--max-bytes", 0, HISTORY_ARG_INT, true, false, NULL },
    { .name = NULL }
};

static const history_arg_t  history_args_operation[] = {
    { "--event-id", 0, HISTORY_ARG_TEXT, true, false, NULL },
    { .name = NULL }
};

static const history_arg_t  history_args_operations[] = {
    { "--event-ids", 0, HISTORY_ARG_TEXT, true, false, NULL },
    { .name = NULL }
};

static const history_arg_t  history_args_output[] = {
    { "--event-id", 0, HISTORY_ARG_TEXT, true, false, NULL },
    { "--stream", 0, HISTORY_ARG_TEXT, true, false, "stdout|stderr" },
    { "--after-chunk", 0, HISTORY_ARG_INT, false, false, NULL },
    { .name = NULL }
};

static const history_arg_t  history_args_config_set[] = {
    { "--config-file", 0, HISTORY_ARG_TEXT, true, false, NULL },
    { "--expected-revision", 0, HISTORY_ARG_INT, true, false, NULL },
    { .name = NULL }
};

static const history_arg_t  history_args_ack[] = {
    { "--consumer-id", 0, HISTORY_ARG_TEXT, true, false, NULL },
    { "--seq", 0, HISTORY_ARG_INT, true, false, NULL },
    { .name = NULL }
};

static const history_arg_t  history_args_cleanup[] = {
    { "--max-bytes", 0, HISTORY_ARG_INT, true, false, NULL },
    { "--overflow-policy", 0, HISTORY_ARG_TEXT, true, false,
      "delete_oldest|stop_recording|fail_operation" },
    { "--ttl-days", 0, HISTORY_ARG_INT, false, false, NULL },
    { "--if-due", 0, HISTORY_ARG_FLAG, false, false, NULL },
    { "--min-interval-seconds", 0, HISTORY_ARG_INT, false, false, NULL },
    { "--consumer-active-ttl-days", 0, HISTORY_ARG_INT, false, false, NULL },
    { .name = NULL }
};

static const history_arg_t  history_args_lease[] = {
    { "--resource-key", 0, HISTORY_ARG_TEXT, true, false, NULL },
    { "--owner-id", 0, HISTORY_ARG_TEXT, true, false, NULL },
    { "--ttl-ms", 0, HISTORY_ARG_INT, true, false, NULL },
    { .name = NULL }
};

static const history_arg_t  history_args_release[] = {
    { "--resource-key", 0, HISTORY_ARG_TEXT, true, false, NULL },
    { "--owner-id", 0, HISTORY_ARG_TEXT, true, false, NULL },
    { .name = NULL }
};


const history_command_t  history_api_commands[] = {
    { "init", " --identity-file FILE", history_args_init, true,
      history_api_init },

    { "health", "", history_args_none, false, history_api_health },

    { "identity-get", "", history_args_none, false, history_api_identity },

    { "config-get", "", history_args_none, false, history_api_config },

    { "apply", " --batch-file FILE", history_args_apply, true,
      history_api_apply },

    { "query",
      " --after-change-seq N --limit N --max-bytes N",
      history_args_query, false, history_api_query },

    { "get-operation", " --event-id ID",
      history_args_operation, false, history_api_operation },

    { "get-operations", " --event-ids ID,ID,...",
      history_args_operations, false, history_api_operations },

    { "get-output",
      " --event-id ID\n                           --stream {stdout,stderr}\n"
      "                           [--after-chunk N]",
      history_args_output, false, history_api_output },

    { "config-set", " --config-file FILE --expected-revision N",
      history_args_config_set, true, history_api_config_set },

    { "ack", " --consumer-id ID --seq N", history_args_ack, true,
      history_api_ack },

    { "cleanup",
      " --max-bytes N\n"
      "                       --overflow-policy {delete_oldest,"
      "stop_recording,\n"
      "                                          fail_operation}\n"
      "                       [--ttl-days N] [--if-due]\n"
      "                       [--min-interval-seconds N]\n"
      "                       [--consumer-active-ttl-days N]",
      history_args_cleanup, true, history_api_cleanup },

    { "lease-acquire", " --resource-key KEY --owner-id ID --ttl-ms N",
      history_args_lease, true, history_api_lease_acquire },

    { "lease-renew", " --resource-key KEY --owner-id ID --ttl-ms N",
      history_args_lease, true, history_api_lease_renew },

    { "lease-release", " --resource-key KEY --owner-id ID",
      history_args_release, true, history_api_lease_release },

    { .name = NULL }
};


const history_command_t *
history_api_find(const char *name)
{
    for (const history_command_t *c = history_api_commands; c->name; c++) {
        if (strcmp(c->name, name) == 0) {
            return c;
        }
    }

    return NULL;
}


static void
history_api_synopsis(FILE *to, const history_command_t *command)
{
    if (command != NULL) {
        fprintf(to, "usage: " HISTORY_PROGRAM " [--database FILE] %s%s\n",
                command->name, command->usage);
        return;
    }

    fprintf(to, "usage: " HISTORY_PROGRAM " [-h] [--database FILE]\n"
                "                       {");

    for (const history_command_t *c = history_api_commands; c->name; c++) {
        fprintf(to, "%s%s", c == history_api_commands ? "" : ",", c->name);
    }

    fprintf(to, "}\n                       ...\n");
}


int
history_api_usage(const history_command_t *command, const char *why)
{
    char  line[512];

    history_api_synopsis(stderr, command);
    history_text_safe(line, sizeof(line), sb_str(why, strlen(why)));
    fprintf(stderr, HISTORY_PROGRAM "%s%s: error: %s\n", command ? " " : "",
            command ? command->name : "", line);

    return 2;
}


void
history_call_flush(history_call_t *call)
{
    if (call->out.rc == SB_OK && call->out.buf.len) {
        (void) history_text_raw(stdout, sb_str(call->out.buf.data,
                                               call->out.buf.len));
        call->out.buf.len = 0;
        call->flushed = true;
    }
}


static sqlite3 *
history_api_open(const history_command_t *command, const char *database,
    history_error_t *err)
{
    bool           wal;
    sqlite3       *db;
    sqlite3_stmt  *stmt;

    if (!history_become_owner(database)) {
        history_error_errno(err, errno, database);
        return NULL;
    }

    if (command->writes || access(database, F_OK) == -1) {
        return history_open_write(database, err);
    }

    db = history_open_read(database, err);
    if (db == NULL) {
        return NULL;
    }

    wal = false;

    if (sqlite3_prepare_v2(db, "PRAGMA journal_mode", -1, &stmt, NULL)
        == SQLITE_OK)
    {
        wal = sqlite3_step(stmt) == SQLITE_ROW
              && sb_eq(history_column(stmt, 0), sb_lit("wal"));
        sqlite3_finalize(stmt);
    }

    if (wal || access(database, W_OK) == -1) {
        return db;
    }

    /* Not a history file in use yet: the published helper would switch WAL on,
     * and report it. */

    sqlite3_close(db);

    return history_open_write(database, err);
}


static bool
history_api_call(const history_command_t *command, history_call_t *call)
{
    bool  ok;

    /* One snapshot for the whole answer; a writer makes its own transaction. */

    if (!command->writes
        && sqlite3_exec(call->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
    {
        history_error_sqlite(&call->err, call->db,
                             sqlite3_extended_errcode(call->db));
        return false;
    }

    ok = command->run(call);

    if (!sqlite3_get_autocommit(call->db)) {
        sqlite3_exec(call->db, "ROLLBACK", NULL, NULL, NULL);
    }

    if (ok && call->out.rc != SB_OK) {
        history_error(&call->err, "MemoryError",
                      "the answer is too large, ask for less at a time");
        return false;
    }

    return ok;
}


static int
history_api_answer(history_call_t *call, bool ok)
{
    char     id[SB_UUID_LEN + 1], line[700];
    uint8_t  uuid[16];

    sb_random(uuid, sizeof(uuid));
    uuid[6] = (uint8_t) ((uuid[6] & 0x0f) | 0x40);
    uuid[8] = (uint8_t) ((uuid[8] & 0x3f) | 0x80);
    sb_uuid_text(id, uuid);

    if (!ok) {
        call->out.buf.len = 0;
        call->out.rc = SB_OK;
        sb_out_text(&call->out, "{\"error\":{");
        sb_out_key(&call->out, "message");
        sb_out_str(&call->out, sb_str(call->err.message,
                                      strlen(call->err.message)));
        sb_out_key(&call->out, "type");
        sb_out_str(&call->out, sb_str(call->err.type,
                                      strlen(call->err.type)));
        sb_out_text(&call->out, "}");
    }

    sb_out_text(&call->out, ok ? ",\"ok\":true" : ",\"ok\":false");
    sb_out_key(&call->out, "request_id");
    sb_out_str(&call->out, sb_str(id, SB_UUID_LEN));
    sb_out_text(&call->out, ",\"schema_version\":1}\n");
    history_call_flush(call);

    if (!ok) {
        history_text_safe(line, sizeof(line),
                          sb_str(call->err.message, strlen(call->err.message)));
        fprintf(stderr, "history-helper: %s: %s\n", call->err.type, line);
    }

    return fflush(stdout) == 0 && !ferror(stdout) && ok ? 0 : 1;
}


int
history_api_run(const history_command_t *command, const char *database,
    int argc, char **argv)
{
    int              rc;
    bool             ok;
    history_call_t   call;
    history_value_t  values[HISTORY_API_ARGS];
    history_remote_e  remote;
    history_parse_t  parse = { .args = command->args, .values = values };

    if (!history_args_parse(&parse, argc, argv)) {
        return history_api_usage(command, parse.why);
    }

    if (parse.help) {
        history_api_synopsis(stdout, command);
        return 0;
    }

    memset(&call, 0, sizeof(call));
    call.values = values;
    call.out.buf.max = SB_OUT_MAX;

    ok = false;
    remote = command->writes
             ? history_remote_call(command, values, database, argc, argv,
                                   &call)
             : HISTORY_REMOTE_NONE;

    if (remote == HISTORY_REMOTE_NONE) {
        call.db = history_api_open(command, database, &call.err);

    } else {
        ok = remote == HISTORY_REMOTE_OK;
    }

    if (call.db != NULL) {
        sb_out_text(&call.out, "{\"data\":");
        ok = history_api_call(command, &call);
    }

    rc = history_api_answer(&call, ok);

    sqlite3_close(call.db);
    sb_buf_free(&call.out.buf);

    return rc;
}
