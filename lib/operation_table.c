/*
 * The operations and their routes as data (reference/opensandbox-api.md 8.2 to
 * 8.5).  Nothing here is code: operation.c matches, documentation and tests
 * are made from it.
 */

#include "operation_table.h"

#define M   SB_OPF_MUTATES
#define S   SB_OPF_STREAM
#define L   SB_OPF_LONG
#define U   SB_OPF_UPGRADE
#define J   SB_OPF_JSON
#define W   SB_OPF_UPLOAD
#define PS  SB_OPF_PATHS
#define P   SB_OPF_PATH
#define C   SB_OPF_COMMAND
#define F   SB_OPF_FOLD
#define O   SB_OPF_OFF
#define A   SB_OPF_ANSWER
#define X   SB_OPF_UNKNOWN
#define R   SB_OPF_OPERATOR


const sb_op_t  sb_op_table[SB_OP_COUNT] = {

    /* lifecycle */

    [SB_OP_SANDBOX_CREATE] = { "sandbox.create", M|L|J|A },
    [SB_OP_SANDBOX_LIST] = { "sandbox.list", A },
    [SB_OP_SANDBOX_GET] = { "sandbox.get", F|A },
    [SB_OP_SANDBOX_DELETE] = { "sandbox.delete", M },
    [SB_OP_SANDBOX_METADATA_PATCH] = { "sandbox.metadata.patch", M|J|A },
    [SB_OP_SANDBOX_PAUSE] = { "sandbox.pause", M },
    [SB_OP_SANDBOX_RESUME] = { "sandbox.resume", M },
    [SB_OP_SANDBOX_RENEW] = { "sandbox.renew", M|J|A },
    [SB_OP_ENDPOINT_GET] = { "endpoint.get", F|A },
    [SB_OP_SNAPSHOT_CREATE] = { "snapshot.create", M|J|A },
    [SB_OP_SNAPSHOT_LIST] = { "snapshot.list", A },
    [SB_OP_SNAPSHOT_GET] = { "snapshot.get", A },
    [SB_OP_SNAPSHOT_DELETE] = { "snapshot.delete", M },
    [SB_OP_DIAGNOSTICS_LOGS] = { "diagnostics.logs", 0 },
    [SB_OP_DIAGNOSTICS_EVENTS] = { "diagnostics.events", 0 },
    [SB_OP_DIAGNOSTICS_INSPECT] = { "diagnostics.inspect", 0 },
    [SB_OP_DIAGNOSTICS_SUMMARY] = { "diagnostics.summary", 0 },
    [SB_OP_POOL_CREATE] = { "pool.create", M|J|A },
    [SB_OP_POOL_LIST] = { "pool.list", 0 },
    [SB_OP_POOL_GET] = { "pool.get", 0 },
    [SB_OP_POOL_UPDATE] = { "pool.update", M|J },
    [SB_OP_POOL_DELETE] = { "pool.delete", M },
    [SB_OP_SERVER_HEALTH] = { "server.health", O },
    [SB_OP_SERVER_DOCS] = { "server.docs", O },
    [SB_OP_SERVER_VERSION] = { "server.version", O },
    [SB_OP_CLIENT_METRICS] = { "client.metrics", J },
    [SB_OP_SANDBOX_NETWORKPOLICY_GET] = { "sandbox.networkpolicy.get", 0 },
    [SB_OP_SANDBOX_NETWORKPOLICY_SET] = { "sandbox.networkpolicy.set", M|J },
    [SB_OP_SANDBOX_NETWORKPOLICY_PATCH] =
        { "sandbox.networkpolicy.patch", M|J },
    [SB_OP_SANDBOX_NETWORKPOLICY_DELETE] =
        { "sandbox.networkpolicy.delete", M|J },
    [SB_OP_TEMPLATE_LIST] = { "template.list", 0 },
    [SB_OP_TEMPLATE_CREATE] = { "template.create", M },
    [SB_OP_TEMPLATE_GET] = { "template.get", 0 },
    [SB_OP_TEMPLATE_UPDATE] = { "template.update", M },
    [SB_OP_TEMPLATE_DELETE] = { "template.delete", M },
    [SB_OP_LIFECYCLE_UNKNOWN] = { "lifecycle.unknown", M|X },

    /* execd */

    [SB_OP_EXECD_PING] = { "execd.ping", O },
    [SB_OP_COMMAND_EXECUTE] = { "command.execute", M|S|L|J|C },
    [SB_OP_COMMAND_INTERRUPT] = { "command.interrupt", M },
    [SB_OP_COMMAND_STATUS] = { "command.status", A },
    [SB_OP_COMMAND_LOGS] = { "command.logs", 0 },
    [SB_OP_CODE_EXECUTE] = { "code.execute", M|S|L|J|C },
    [SB_OP_CODE_INTERRUPT] = { "code.interrupt", M },
    [SB_OP_CODE_CONTEXT_CREATE] = { "code.context.create", M|J|A },
    [SB_OP_CODE_CONTEXT_LIST] = { "code.context.list", 0 },
    [SB_OP_CODE_CONTEXT_GET] = { "code.context.get", 0 },
    [SB_OP_CODE_CONTEXT_DELETE_ALL] = { "code.context.delete_all", M },
    [SB_OP_CODE_CONTEXT_DELETE] = { "code.context.delete", M },
    [SB_OP_SESSION_CREATE] = { "session.create", M|J|A },
    [SB_OP_SESSION_RUN] = { "session.run", M|S|L|J|C },
    [SB_OP_SESSION_DELETE] = { "session.delete", M },
    [SB_OP_FILE_WRITE] = { "file.write", M|L|W },
    [SB_OP_FILE_READ] = { "file.read", L|P },
    [SB_OP_FILE_STAT] = { "file.stat", PS },
    [SB_OP_FILE_DELETE] = { "file.delete", M|PS },
    [SB_OP_FILE_MOVE] = { "file.move", M|J },
    [SB_OP_FILE_CHMOD] = { "file.chmod", M|J },
    [SB_OP_FILE_SEARCH] = { "file.search", P },
    [SB_OP_FILE_REPLACE] = { "file.replace", M|J|A },
    [SB_OP_DIR_LIST] = { "dir.list", P },
    [SB_OP_DIR_CREATE] = { "dir.create", M|J },
    [SB_OP_DIR_DELETE] = { "dir.delete", M|PS },
    [SB_OP_METRICS_GET] = { "metrics.get", 0 },
    [SB_OP_METRICS_WATCH] = { "metrics.watch", L },
    [SB_OP_PTY_CREATE] = { "pty.create", M|J|A },
    [SB_OP_PTY_STATUS] = { "pty.status", A },
    [SB_OP_PTY_DELETE] = { "pty.delete", M },
    [SB_OP_PTY_OPEN] = { "pty.open", M|L|U },
    [SB_OP_EXECD_READY] = { "execd.ready", A },
    [SB_OP_EXECD_INIT] = { "execd.init", M|J },
    [SB_OP_ISOLATED_CREATE] = { "isolated.create", M|J|A },
    [SB_OP_ISOLATED_LIST] = { "isolated.list", 0 },
    [SB_OP_ISOLATED_GET] = { "isolated.get", 0 },
    [SB_OP_ISOLATED_DELETE] = { "isolated.delete", M },
    [SB_OP_ISOLATED_RUN] = { "isolated.run", M|S|L|J|C },
    [SB_OP_ISOLATED_DIFF] = { "isolated.diff", 0 },
    [SB_OP_ISOLATED_COMMIT] = { "isolated.commit", M },
    [SB_OP_ISOLATED_CAPABILITIES] = { "isolated.capabilities", 0 },
    [SB_OP_ISOLATED_FILE_WRITE] = { "isolated.file.write", M|L|W },
    [SB_OP_ISOLATED_FILE_READ] = { "isolated.file.read", L|P },
    [SB_OP_ISOLATED_FILE_STAT] = { "isolated.file.stat", PS },
    [SB_OP_ISOLATED_FILE_DELETE] = { "isolated.file.delete", M|PS },
    [SB_OP_ISOLATED_FILE_MOVE] = { "isolated.file.move", M|J },
    [SB_OP_ISOLATED_FILE_CHMOD] = { "isolated.file.chmod", M|J },
    [SB_OP_ISOLATED_FILE_SEARCH] = { "isolated.file.search", P },
    [SB_OP_ISOLATED_FILE_REPLACE] = { "isolated.file.replace", M|J|A },
    [SB_OP_ISOLATED_DIR_LIST] = { "isolated.dir.list", P },
    [SB_OP_ISOLATED_DIR_CREATE] = { "isolated.dir.create", M|J },
    [SB_OP_ISOLATED_DIR_DELETE] = { "isolated.dir.delete", M|PS },
    [SB_OP_EXECD_UNKNOWN] = { "execd.unknown", M|X },

    /* egress */

    [SB_OP_EGRESS_POLICY_GET] = { "egress.policy.get", A },
    [SB_OP_EGRESS_POLICY_SET] = { "egress.policy.set", M|J|A },
    [SB_OP_EGRESS_POLICY_RESET] = { "egress.policy.reset", M|J|A },
    [SB_OP_EGRESS_POLICY_PATCH] = { "egress.policy.patch", M|J|A },
    [SB_OP_EGRESS_POLICY_DELETE_RULES] =
        { "egress.policy.delete_rules", M|J|A },
    [SB_OP_EGRESS_HEALTH] = { "egress.health", 0 },
    [SB_OP_VAULT_CREATE] = { "vault.create", M|J|A },
    [SB_OP_VAULT_PATCH] = { "vault.patch", M|J|A },
    [SB_OP_VAULT_DELETE] = { "vault.delete", M|J|A },
    [SB_OP_VAULT_GET] = { "vault.get", A|R },
    [SB_OP_EGRESS_UNKNOWN] = { "egress.unknown", M|X },

    /* user ports */

    [SB_OP_PROXY_HTTP] = { "proxy.http", M|L|R },
    [SB_OP_PROXY_HTTP_READ] = { "proxy.http", L|R },
    [SB_OP_PROXY_WS] = { "proxy.ws", M|L|U },
};


#define on(surface, method, pattern, cond, op)                                \
    { SB_SURFACE_##surface, method, pattern, cond, &sb_op_table[SB_OP_##op] }

#define lifecycle(method, pattern, op)  on(LIFECYCLE, method, pattern, 0, op)
#define execd(method, pattern, op)      on(EXECD, method, pattern, 0, op)
#define egress(method, pattern, op)     on(EGRESS, method, pattern, 0, op)
#define port(method, pattern, op)       on(PORT, method, pattern, 0, op)

const sb_op_row_t  sb_op_row_table[] = {

    lifecycle("POST", "/sandboxes", SANDBOX_CREATE),
    lifecycle("GET", "/sandboxes", SANDBOX_LIST),
    lifecycle("GET", "/sandboxes/{id}", SANDBOX_GET),
    lifecycle("DELETE", "/sandboxes/{id}", SANDBOX_DELETE),
    lifecycle("PATCH", "/sandboxes/{id}/metadata", SANDBOX_METADATA_PATCH),
    lifecycle("POST", "/sandboxes/{id}/pause", SANDBOX_PAUSE),
    lifecycle("POST", "/sandboxes/{id}/resume", SANDBOX_RESUME),
    lifecycle("POST", "/sandboxes/{id}/renew-expiration", SANDBOX_RENEW),
    lifecycle("GET", "/sandboxes/{id}/endpoints/{port}", ENDPOINT_GET),
    lifecycle("POST", "/sandboxes/{id}/snapshots", SNAPSHOT_CREATE),
    lifecycle("GET", "/snapshots", SNAPSHOT_LIST),
    lifecycle("GET", "/snapshots/{sid}", SNAPSHOT_GET),
    lifecycle("DELETE", "/snapshots/{sid}", SNAPSHOT_DELETE),
    lifecycle("GET", "/sandboxes/{id}/diagnostics/logs", DIAGNOSTICS_LOGS),
    lifecycle("GET", "/sandboxes/{id}/diagnostics/events", DIAGNOSTICS_EVENTS),
    lifecycle("GET", "/sandboxes/{id}/diagnostics/inspect",
              DIAGNOSTICS_INSPECT),
    lifecycle("GET", "/sandboxes/{id}/diagnostics/summary",
              DIAGNOSTICS_SUMMARY),
    lifecycle("POST", "/pools", POOL_CREATE),
    lifecycle("GET", "/pools", POOL_LIST),
    lifecycle("GET", "/pools/{name}", POOL_GET),
    lifecycle("PUT", "/pools/{name}", POOL_UPDATE),
    lifecycle("DELETE", "/pools/{name}", POOL_DELETE),
    on(LIFECYCLE, "GET", "/health", SB_OPC_ROOT, SERVER_HEALTH),
    on(LIFECYCLE, "GET", "/docs", SB_OPC_ROOT, SERVER_DOCS),
    on(LIFECYCLE, "GET", "/docs/**", SB_OPC_ROOT, SERVER_DOCS),
    on(LIFECYCLE, "GET", "/redoc", SB_OPC_ROOT, SERVER_DOCS),
    on(LIFECYCLE, "GET", "/openapi.json", SB_OPC_ROOT, SERVER_DOCS),
    lifecycle("GET", "/version", SERVER_VERSION),
    lifecycle("POST", "/metrics/events", CLIENT_METRICS),
    lifecycle("GET", "/sandboxes/{id}/networkpolicy",
              SANDBOX_NETWORKPOLICY_GET),
    lifecycle("PUT", "/sandboxes/{id}/networkpolicy",
              SANDBOX_NETWORKPOLICY_SET),
    lifecycle("PATCH", "/sandboxes/{id}/networkpolicy",
              SANDBOX_NETWORKPOLICY_PATCH),
    lifecycle("DELETE", "/sandboxes/{id}/networkpolicy",
              SANDBOX_NETWORKPOLICY_DELETE),
    lifecycle("GET", "/templates", TEMPLATE_LIST),
    lifecycle("POST", "/templates", TEMPLATE_CREATE),
    lifecycle("GET", "/templates/{name}", TEMPLATE_GET),
    lifecycle("PUT", "/templates/{name}", TEMPLATE_UPDATE),
    lifecycle("PATCH", "/templates/{name}", TEMPLATE_UPDATE),
    lifecycle("DELETE", "/templates/{name}", TEMPLATE_DELETE),
    lifecycle("*", "/sandboxes/{id}", LIFECYCLE_UNKNOWN),
    lifecycle("*", "/sandboxes/{id}/**", LIFECYCLE_UNKNOWN),
    lifecycle("*", "/**", LIFECYCLE_UNKNOWN),

    execd("GET", "/ping", EXECD_PING),
    execd("POST", "/command", COMMAND_EXECUTE),
    execd("DELETE", "/command", COMMAND_INTERRUPT),
    execd("GET", "/command/status/{cid}", COMMAND_STATUS),
    execd("GET", "/command/{cid}/logs", COMMAND_LOGS),
    execd("POST", "/code", CODE_EXECUTE),
    execd("DELETE", "/code", CODE_INTERRUPT),
    execd("POST", "/code/context", CODE_CONTEXT_CREATE),
    execd("GET", "/code/contexts", CODE_CONTEXT_LIST),
    execd("GET", "/code/contexts/{x}", CODE_CONTEXT_GET),
    execd("DELETE", "/code/contexts", CODE_CONTEXT_DELETE_ALL),
    execd("DELETE", "/code/contexts/{x}", CODE_CONTEXT_DELETE),
    execd("POST", "/session", SESSION_CREATE),
    execd("POST", "/session/{x}/run", SESSION_RUN),
    execd("DELETE", "/session/{x}", SESSION_DELETE),
    execd("POST", "/files/upload", FILE_WRITE),
    execd("GET", "/files/download", FILE_READ),
    execd("GET", "/files/info", FILE_STAT),
    execd("DELETE", "/files", FILE_DELETE),
    execd("POST", "/files/mv", FILE_MOVE),
    execd("POST", "/files/permissions", FILE_CHMOD),
    execd("GET", "/files/search", FILE_SEARCH),
    execd("POST", "/files/replace", FILE_REPLACE),
    execd("GET", "/directories/list", DIR_LIST),
    execd("POST", "/directories", DIR_CREATE),
    execd("DELETE", "/directories", DIR_DELETE),
    execd("GET", "/metrics", METRICS_GET),
    execd("GET", "/metrics/watch", METRICS_WATCH),
    execd("POST", "/pty", PTY_CREATE),
    execd("GET", "/pty/{p}", PTY_STATUS),
    execd("DELETE", "/pty/{p}", PTY_DELETE),
    execd("GET", "/pty/{p}/ws", PTY_OPEN),
    execd("GET", "/ready", EXECD_READY),
    execd("POST", "/internal/init", EXECD_INIT),
    execd("POST", "/v1/isolated/session", ISOLATED_CREATE),
    execd("GET", "/v1/isolated/sessions", ISOLATED_LIST),
    execd("GET", "/v1/isolated/session/{x}", ISOLATED_GET),
    execd("DELETE", "/v1/isolated/session/{x}", ISOLATED_DELETE),
    execd("POST", "/v1/isolated/session/{x}/run", ISOLATED_RUN),
    execd("GET", "/v1/isolated/session/{x}/diff", ISOLATED_DIFF),
    execd("POST", "/v1/isolated/session/{x}/commit", ISOLATED_COMMIT),
    execd("GET", "/v1/isolated/capabilities", ISOLATED_CAPABILITIES),
    execd("POST", "/v1/isolated/session/{x}/files/upload", ISOLATED_FILE_WRITE),
    execd("GET", "/v1/isolated/session/{x}/files/download", ISOLATED_FILE_READ),
    execd("GET", "/v1/isolated/session/{x}/files/info", ISOLATED_FILE_STAT),
    execd("DELETE", "/v1/isolated/session/{x}/files", ISOLATED_FILE_DELETE),
    execd("POST", "/v1/isolated/session/{x}/files/mv", ISOLATED_FILE_MOVE),
    execd("POST", "/v1/isolated/session/{x}/files/permissions",
          ISOLATED_FILE_CHMOD),
    execd("GET", "/v1/isolated/session/{x}/files/search", ISOLATED_FILE_SEARCH),
    execd("POST", "/v1/isolated/session/{x}/files/replace",
          ISOLATED_FILE_REPLACE),
    execd("GET", "/v1/isolated/session/{x}/directories/list",
          ISOLATED_DIR_LIST),
    execd("POST", "/v1/isolated/session/{x}/directories", ISOLATED_DIR_CREATE),
    execd("DELETE", "/v1/isolated/session/{x}/directories",
          ISOLATED_DIR_DELETE),
    execd("*", "/**", EXECD_UNKNOWN),

    egress("GET", "/policy", EGRESS_POLICY_GET),
    egress("POST", "/policy", EGRESS_POLICY_SET),
    egress("PUT", "/policy", EGRESS_POLICY_SET),
    egress("PATCH", "/policy", EGRESS_POLICY_PATCH),
    egress("DELETE", "/policy", EGRESS_POLICY_DELETE_RULES),
    egress("GET", "/healthz", EGRESS_HEALTH),
    egress("POST", "/credential-vault", VAULT_CREATE),
    egress("PATCH", "/credential-vault", VAULT_PATCH),
    egress("DELETE", "/credential-vault", VAULT_DELETE),
    egress("GET", "/credential-vault", VAULT_GET),
    egress("GET", "/credential-vault/credentials/{name}", VAULT_GET),
    egress("GET", "/credential-vault/bindings/{name}", VAULT_GET),
    egress("GET", "/credential-vault/**", VAULT_GET),
    egress("*", "/**", EGRESS_UNKNOWN),

    on(PORT, "GET", "/**", SB_OPC_UPGRADE, PROXY_WS),
    port("GET", "/**", PROXY_HTTP_READ),
    port("HEAD", "/**", PROXY_HTTP_READ),
    port("*", "/**", PROXY_HTTP),

    { SB_SURFACE_PORT, NULL, NULL, 0, NULL }
};
