/* POST sandboxes/{id}/ports/{port}: where a person opens a user port. */


#include "ngx_http_sandbox_api.h"
#include "ngx_http_sandbox_port.h"


ngx_int_t
ngx_http_sandbox_port_api(ngx_http_request_t *r, ngx_http_sandbox_api_t *a)
{
    ngx_int_t                      rc, port;
    ngx_str_t                      url, body;
    sb_endpoint_token_t            e;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    port = ngx_atoi(a->args[1].data, a->args[1].len);

    if (port < 1 || port > 65535 || a->args[0].len > 255) {
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_BAD_REQUEST,
                                           "GATEWAY_AMBIGUOUS_REQUEST",
                                           "A port is a number from 1 to "
                                           "65535, and an id has at most 255 "
                                           "bytes.");
    }

    if (port == SB_PORT_EXECD || port == SB_PORT_EGRESS) {
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_FORBIDDEN,
                                           "GATEWAY_FORBIDDEN",
                                           "Ports 44772 and 18080 control the "
                                           "sandbox and are not opened in a "
                                           "browser.");
    }

    if (ngx_http_sandbox_endpoint_is_gone(mcf,
                                          ngx_http_sandbox_str(&a->args[0])))
    {
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_NOT_FOUND,
                                           "GATEWAY_NOT_FOUND",
                                           "This sandbox has been deleted.");
    }

    ngx_memzero(&e, sizeof(sb_endpoint_token_t));

    e.sandbox = ngx_http_sandbox_str(&a->args[0]);
    e.port = (uint32_t) port;
    e.row = a->token;
    e.actor_type = ngx_http_sandbox_str(&a->actor_type);
    e.actor_id = ngx_http_sandbox_str(&a->actor_id);

    rc = ngx_http_sandbox_port_open(r, &e, &url);

    if (rc == NGX_DECLINED) {
        return ngx_http_sandbox_api_refuse(r, NGX_HTTP_NOT_IMPLEMENTED,
                                           "GATEWAY_UNSUPPORTED",
                                           "This gateway has no listener for "
                                           "user ports: start it with "
                                           "--port-listen, or add "
                                           "sandbox_port_listen.");
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    body.data = ngx_pnalloc(r->pool, sizeof("{\"url\":\"\"}") + url.len);
    if (body.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    body.len = ngx_sprintf(body.data, "{\"url\":\"%V\"}", &url) - body.data;

    return ngx_http_sandbox_api_send(r, NGX_HTTP_OK, "application/json", &body);
}
