/*
 * What is recorded of each operation's request: "record from the request" and
 * "file paths" of reference/opensandbox-api.md 8.  A member that is not named
 * here is dropped, and its name told.
 */

#include "request_table.h"
#include "operation_table.h"


#define sub(table)  NULL, table
#define end         { NULL, SB_M_KEEP, NULL, NULL }


/* --- lifecycle ------------------------------------------------------------ */

static const sb_member_t  auth[] = {
    { "username", SB_M_KEEP, NULL, NULL },
    { "password", SB_M_SECRET, NULL, NULL },
    end
};

static const sb_member_t  image[] = {
    { "uri", SB_M_IMAGE, NULL, NULL },
    { "auth", SB_M_OBJECT, sub(auth) },
    end
};

static const sb_member_t  rule[] = {
    { "action", SB_M_KEEP, NULL, NULL },
    { "target", SB_M_KEEP, NULL, NULL },
    end
};

static const sb_member_t  policy[] = {
    { "defaultAction", SB_M_KEEP, NULL, NULL },
    { "egress", SB_M_ARRAY, sub(rule) },
    end
};

static const sb_member_t  host[] = {
    { "path", SB_M_KEEP, NULL, NULL },
    end
};

static const sb_member_t  pvc[] = {
    { "claimName", SB_M_KEEP, NULL, NULL },
    { "createIfNotExists", SB_M_KEEP, NULL, NULL },
    { "deleteOnSandboxTermination", SB_M_KEEP, NULL, NULL },
    { "storageClass", SB_M_KEEP, NULL, NULL },
    { "storage", SB_M_KEEP, NULL, NULL },
    { "accessModes", SB_M_KEEP, NULL, NULL },
    end
};

static const sb_member_t  ossfs[] = {
    { "bucket", SB_M_KEEP, NULL, NULL },
    { "endpoint", SB_M_KEEP, NULL, NULL },
    { "version", SB_M_KEEP, NULL, NULL },
    { "options", SB_M_SECRET, NULL, NULL },
    { "accessKeyId", SB_M_SECRET, NULL, NULL },
    { "accessKeySecret", SB_M_SECRET, NULL, NULL },
    end
};

static const sb_member_t  volume[] = {
    { "name", SB_M_KEEP, NULL, NULL },
    { "mountPath", SB_M_KEEP, NULL, NULL },
    { "readOnly", SB_M_KEEP, NULL, NULL },
    { "subPath", SB_M_KEEP, NULL, NULL },
    { "host", SB_M_OBJECT, sub(host) },
    { "pvc", SB_M_OBJECT, sub(pvc) },
    { "ossfs", SB_M_OBJECT, sub(ossfs) },
    end
};

static const sb_member_t  create[] = {
    { "image", SB_M_OBJECT, sub(image) },
    { "snapshotId", SB_M_KEEP, NULL, NULL },
    { "platform", SB_M_KEEP, NULL, NULL },
    { "timeout", SB_M_KEEP, NULL, NULL },
    { "resourceLimits", SB_M_KEEP, NULL, NULL },
    { "resourceRequests", SB_M_KEEP, NULL, NULL },
    { "env", SB_M_NAMES, "env_names", NULL },
    { "metadata", SB_M_METADATA, NULL, NULL },
    { "entrypoint", SB_M_KEEP, NULL, NULL },
    { "networkPolicy", SB_M_OBJECT, sub(policy) },
    { "credentialProxy", SB_M_KEEP, NULL, NULL },
    { "secureAccess", SB_M_KEEP, NULL, NULL },
    { "extensions", SB_M_NAMES, "extension_names", NULL },
    { "volumes", SB_M_ARRAY, sub(volume) },
    end
};

static const sb_member_t  renew[] = {
    { "expiresAt", SB_M_KEEP, NULL, NULL },
    end
};

static const sb_member_t  snapshot[] = {
    { "name", SB_M_KEEP, NULL, NULL },
    end
};

static const sb_member_t  pool[] = {
    { "name", SB_M_KEEP, NULL, NULL },
    { "capacitySpec", SB_M_KEEP, NULL, NULL },
    { "template", SB_M_SIZE, NULL, NULL },
    end
};

static const sb_member_t  client_metrics[] = {
    { "eventType", SB_M_KEEP, NULL, NULL },
    { "sandboxId", SB_M_KEEP, NULL, NULL },
    end
};


/* --- execd ---------------------------------------------------------------- */

static const sb_member_t  command[] = {
    { "command", SB_M_COMMAND, NULL, NULL },
    { "cwd", SB_M_CWD, NULL, NULL },
    { "background", SB_M_BACKGROUND, NULL, NULL },
    { "timeout", SB_M_TIMEOUT_MS, "timeout_ms", NULL },
    { "uid", SB_M_KEEP, NULL, NULL },
    { "gid", SB_M_KEEP, NULL, NULL },
    { "envs", SB_M_NAMES, "env_names", NULL },
    { "argv", SB_M_KEEP, NULL, NULL },
    end
};

static const sb_member_t  context[] = {
    { "id", SB_M_KEEP, "context_id", NULL },
    { "language", SB_M_LANGUAGE, NULL, NULL },
    { "cwd", SB_M_CWD, NULL, NULL },
    end
};

static const sb_member_t  code[] = {
    { "context", SB_M_FLAT, sub(context) },
    { "code", SB_M_COMMAND, NULL, NULL },
    end
};

static const sb_member_t  code_context[] = {
    { "language", SB_M_KEEP, NULL, NULL },
    { "cwd", SB_M_CWD, NULL, NULL },
    end
};

static const sb_member_t  session[] = {
    { "cwd", SB_M_CWD, NULL, NULL },
    end
};

static const sb_member_t  session_run[] = {
    { "command", SB_M_COMMAND, NULL, NULL },
    { "cwd", SB_M_CWD, NULL, NULL },
    { "timeout", SB_M_TIMEOUT_MS, "timeout_ms", NULL },
    end
};

static const sb_member_t  pty[] = {
    { "cwd", SB_M_CWD, NULL, NULL },
    { "command", SB_M_COMMAND, NULL, NULL },
    end
};

static const sb_member_t  move[] = {
    { "src", SB_M_OLD_PATH, NULL, NULL },
    { "dest", SB_M_PATH, NULL, NULL },
    end
};

static const sb_member_t  permissions[] = {
    { "owner", SB_M_KEEP, NULL, NULL },
    { "group", SB_M_KEEP, NULL, NULL },
    { "mode", SB_M_MODE, NULL, NULL },
    end
};

static const sb_member_t  replace[] = {
    { "old", SB_M_SIZE, NULL, NULL },
    { "new", SB_M_SIZE, NULL, NULL },
    end
};

static const sb_member_t  init[] = {
    { "sandboxId", SB_M_KEEP, NULL, NULL },
    { "generation", SB_M_KEEP, NULL, NULL },
    { "entrypointPolicy", SB_M_KEEP, NULL, NULL },
    { "accessTokenHash", SB_M_SECRET, NULL, NULL },
    { "envs", SB_M_NAMES, "env_names", NULL },
    end
};

static const sb_member_t  workspace[] = {
    { "path", SB_M_PATH, NULL, NULL },
    { "mode", SB_M_KEEP, NULL, NULL },
    end
};

static const sb_member_t  bind[] = {
    { "source", SB_M_PATH, NULL, NULL },
    { "dest", SB_M_PATH, NULL, NULL },
    { "readonly", SB_M_KEEP, NULL, NULL },
    end
};

static const sb_member_t  passthrough[] = {
    { "mode", SB_M_KEEP, NULL, NULL },
    { "keys", SB_M_KEEP, NULL, NULL },
    end
};

static const sb_member_t  isolated[] = {
    { "profile", SB_M_KEEP, NULL, NULL },
    { "workspace", SB_M_OBJECT, sub(workspace) },
    { "extra_writable", SB_M_PATHS, NULL, NULL },
    { "binds", SB_M_ARRAY, sub(bind) },
    { "share_net", SB_M_KEEP, NULL, NULL },
    { "env_passthrough", SB_M_OBJECT, sub(passthrough) },
    { "uid", SB_M_KEEP, NULL, NULL },
    { "gid", SB_M_KEEP, NULL, NULL },
    { "uid_mode", SB_M_KEEP, NULL, NULL },
    { "idle_timeout_seconds", SB_M_KEEP, NULL, NULL },
    end
};

static const sb_member_t  isolated_run[] = {
    { "code", SB_M_COMMAND, NULL, NULL },
    { "envs", SB_M_NAMES, "env_names", NULL },
    { "timeout_seconds", SB_M_TIMEOUT_S, NULL, NULL },
    end
};


/* --- egress --------------------------------------------------------------- */

static const sb_member_t  vault[] = {
    { "credentials", SB_M_NAMED, "credential_names", NULL },
    { "bindings", SB_M_NAMED, "binding_names", NULL },
    end
};

static const sb_member_t  vault_change[] = {
    { "add", SB_M_NAMED, NULL, NULL },
    { "replace", SB_M_NAMED, NULL, NULL },
    { "delete", SB_M_LIST, NULL, NULL },
    end
};

static const sb_member_t  vault_patch[] = {
    { "expectedRevision", SB_M_KEEP, NULL, NULL },
    { "credentials", SB_M_OBJECT, sub(vault_change) },
    { "bindings", SB_M_OBJECT, sub(vault_change) },
    end
};

static const sb_member_t  none[] = {
    end
};


/* --- operations ----------------------------------------------------------- */

#define object(table)       SB_M_OBJECT, NULL, table
#define map(table)          SB_M_MAP, "files", table
#define array(name, table)  SB_M_ARRAY, name, table
#define nothing             SB_M_OBJECT, NULL, NULL

static const sb_request_rule_t  rules[] = {
    { "sandbox.create", NULL, "", object(create) },
    { "sandbox.list", NULL, "*state\0metadata\0page\0pageSize\0", nothing },
    { "sandbox.metadata.patch", NULL, "", SB_M_KEEP, "metadata", NULL },
    { "sandbox.renew", NULL, "", object(renew) },
    { "endpoint.get", NULL, "use_server_proxy\0", nothing },
    { "snapshot.create", NULL, "", object(snapshot) },
    { "snapshot.list", NULL, "sandboxId\0*state\0name\0page\0pageSize\0",
      nothing },
    { "snapshot.get", "snapshot_id", "", nothing },
    { "snapshot.delete", "snapshot_id", "", nothing },
    { "diagnostics.logs", NULL, "tail\0since\0scope\0", nothing },
    { "diagnostics.events", NULL, "limit\0scope\0", nothing },
    { "diagnostics.summary", NULL, "tail\0event_limit\0", nothing },
    { "pool.create", NULL, "", object(pool) },
    { "pool.get", "name", "", nothing },
    { "pool.update", "name", "", object(pool) },
    { "pool.delete", "name", "", nothing },
    { "template.get", "name", "", nothing },
    { "template.update", "name", "", nothing },
    { "template.delete", "name", "", nothing },
    { "client.metrics", NULL, "", object(client_metrics) },
    { "sandbox.networkpolicy.set", NULL, "", object(policy) },
    { "sandbox.networkpolicy.patch", NULL, "", array("egress", rule) },
    { "sandbox.networkpolicy.delete", NULL, "", SB_M_KEEP, "targets", NULL },

    { "command.execute", NULL, "", object(command) },
    { "command.interrupt", NULL, "id\0", nothing },
    { "command.status", "id", "", nothing },
    { "command.logs", "id", "cursor\0", nothing },
    { "code.execute", NULL, "", object(code) },
    { "code.interrupt", NULL, "id\0", nothing },
    { "code.context.create", NULL, "", object(code_context) },
    { "code.context.list", NULL, "language\0", nothing },
    { "code.context.get", "context_id", "", nothing },
    { "code.context.delete_all", NULL, "language\0", nothing },
    { "code.context.delete", "context_id", "", nothing },
    { "session.create", NULL, "", object(session) },
    { "session.run", "session_id", "", object(session_run) },
    { "session.delete", "session_id", "", nothing },
    { "file.read", NULL, "path\0offset\0limit\0", nothing },
    { "file.stat", NULL, "*path\0", nothing },
    { "file.delete", NULL, "*path\0", nothing },
    { "file.move", NULL, "", array("moves", move) },
    { "file.chmod", NULL, "", map(permissions) },
    { "file.search", NULL, "path\0pattern\0", nothing },
    { "file.replace", NULL, "verbose\0", map(replace) },
    { "dir.list", NULL, "path\0depth\0", nothing },
    { "dir.create", NULL, "", map(permissions) },
    { "dir.delete", NULL, "*path\0", nothing },
    { "pty.create", NULL, "", object(pty) },
    { "pty.status", "session_id", "", nothing },
    { "pty.delete", "session_id", "", nothing },
    { "pty.open", "session_id", "pty\0since\0takeover\0client\0", nothing },
    { "execd.init", NULL, "", object(init) },
    { "isolated.create", NULL, "", object(isolated) },
    { "isolated.get", "session_id", "", nothing },
    { "isolated.delete", "session_id", "", nothing },
    { "isolated.run", "session_id", "", object(isolated_run) },
    { "isolated.diff", "session_id", "", nothing },
    { "isolated.commit", "session_id", "", nothing },

    { "egress.policy.set", NULL, "", object(policy) },
    { "egress.policy.reset", NULL, "", object(policy) },
    { "egress.policy.patch", NULL, "", array("egress", rule) },
    { "egress.policy.delete_rules", NULL, "", SB_M_KEEP, "targets", NULL },
    { "vault.create", NULL, "", object(vault) },
    { "vault.patch", NULL, "", object(vault_patch) },
    { "vault.delete", NULL, "", object(none) },
    { "vault.get", "name", "", nothing },
};

static const sb_request_rule_t  no_rule = { NULL, NULL, "", object(none) };


const sb_request_rule_t *
sb_request_rule(const sb_op_t *op)
{
    size_t       i, at = sb_op_index(op);
    const char  *name = op->name;

    /* found once for each operation */
    static const sb_request_rule_t  *found[SB_OP_COUNT];

    if (__atomic_load_n(&found[at], __ATOMIC_RELAXED)) {
        return found[at];
    }

    /* isolated.file.* and isolated.dir.* are told as file.* and dir.* are */

    if (strncmp(name, "isolated.file.", 14) == 0
        || strncmp(name, "isolated.dir.", 13) == 0)
    {
        name += 9;
    }

    for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (strcmp(rules[i].op, name) == 0) {
            break;
        }
    }

    __atomic_store_n(&found[at], i < sizeof(rules) / sizeof(rules[0])
                                 ? &rules[i] : &no_rule, __ATOMIC_RELAXED);

    return found[at];
}
