/* The routes of the console API that a worker knows; docs/console-api.md is
 * held against this table and that of helper/api.c. */


#include "ngx_http_sandbox_api.h"
#include "ngx_http_sandbox_port.h"
#include "ngx_http_sandbox_session.h"


ngx_http_sandbox_api_route_t  ngx_http_sandbox_api_routes[] = {

    { "GET", "health", SB_ROLE_VIEWER, NGX_HTTP_SANDBOX_API_PUBLIC,
      ngx_http_sandbox_api_health },

    { "GET", "session", SB_ROLE_VIEWER, NGX_HTTP_SANDBOX_API_PUBLIC,
      ngx_http_sandbox_session_get },

    { "POST", "session", SB_ROLE_VIEWER, NGX_HTTP_SANDBOX_API_PUBLIC,
      ngx_http_sandbox_session_post },

    { "DELETE", "session", SB_ROLE_VIEWER, NGX_HTTP_SANDBOX_API_PUBLIC,
      ngx_http_sandbox_session_delete },

    { "GET", "metrics", SB_ROLE_VIEWER, 0,
      ngx_http_sandbox_api_metrics },

    { "GET", "live", SB_ROLE_VIEWER, 0,
      ngx_http_sandbox_api_live },

    { "GET", "sandboxes/{id}/live", SB_ROLE_VIEWER, 0,
      ngx_http_sandbox_api_live },

    { "POST", "sandboxes/{id}/ports/{port}", SB_ROLE_OPERATOR, 0,
      ngx_http_sandbox_port_api },

    { "GET", "policy", SB_ROLE_ADMIN, 0,
      ngx_http_sandbox_policy_api },

    { "POST", "policy/check", SB_ROLE_ADMIN, 0,
      ngx_http_sandbox_policy_check_api },

    { "GET", "tokens", SB_ROLE_ADMIN, 0,
      ngx_http_sandbox_tokens_list_api },

    { "POST", "tokens", SB_ROLE_ADMIN, 0,
      ngx_http_sandbox_tokens_add_api },

    { "DELETE", "tokens/{id}", SB_ROLE_ADMIN, 0,
      ngx_http_sandbox_tokens_revoke_api },

    /* what is not above: the helper's table says what there is */
    { "*", "**", SB_ROLE_VIEWER, 0,
      ngx_http_sandbox_api_ask },

    { NULL, NULL, SB_ROLE_VIEWER, 0, NULL }
};
