/*
 * GET policy and POST policy/check of the console API.  Locations may have
 * different policies: each distinct one is told with the places where it is in
 * force.
 */


#include "ngx_http_sandbox_api.h"
#include "ngx_http_sandbox_policy.h"
#include "policy_ask.h"


/* as many policies of full length as anybody would read */
#define NGX_HTTP_SANDBOX_POLICY_ANSWER  (16 * 1024 * 1024)


static ngx_int_t ngx_http_sandbox_policy_place(ngx_conf_t *cf,
    ngx_http_sandbox_policed_t *policed);
static sb_rc_t ngx_http_sandbox_policy_explain(ngx_http_request_t *r,
    sb_policy_question_t *q, sb_buf_t *b);
static sb_rc_t ngx_http_sandbox_policy_places(
    ngx_http_sandbox_policed_t *policed, sb_buf_t *b);


ngx_int_t
ngx_http_sandbox_policy_known(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf, sb_policy_t *policy)
{
    ngx_uint_t                   i;
    ngx_http_sandbox_policed_t  *policed;

    if (mcf->policies == NULL) {
        mcf->policies = ngx_array_create(cf->pool, 2,
                                         sizeof(ngx_http_sandbox_policed_t));
        if (mcf->policies == NULL) {
            return NGX_ERROR;
        }
    }

    policed = mcf->policies->elts;

    for (i = 0; i < mcf->policies->nelts; i++) {
        if (policed[i].policy == policy) {
            return ngx_http_sandbox_policy_place(cf, &policed[i]);
        }
    }

    policed = ngx_array_push(mcf->policies);
    if (policed == NULL) {
        return NGX_ERROR;
    }

    policed->policy = policy;

    if (ngx_array_init(&policed->places, cf->pool, 2,
                       sizeof(ngx_http_sandbox_place_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_sandbox_policy_place(cf, policed);
}


static ngx_int_t
ngx_http_sandbox_policy_place(ngx_conf_t *cf,
    ngx_http_sandbox_policed_t *policed)
{
    ngx_uint_t                 i;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_core_srv_conf_t  *cscf;
    ngx_http_sandbox_place_t  *place;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);

    place = policed->places.elts;

    for (i = 0; i < policed->places.nelts; i++) {

        /* an "if" has the name of the location around it */

        if (place[i].server == cscf
            && place[i].location.len == clcf->name.len
            && ngx_strncmp(place[i].location.data, clcf->name.data,
                           clcf->name.len)
               == 0)
        {
            return NGX_OK;
        }
    }

    place = ngx_array_push(&policed->places);
    if (place == NULL) {
        return NGX_ERROR;
    }

    place->server = cscf;
    place->name = cscf->server_name;
    place->location = clcf->name;

    return NGX_OK;
}


/* GET policy */

ngx_int_t
ngx_http_sandbox_policy_api(ngx_http_request_t *r, ngx_http_sandbox_api_t *a)
{
    sb_rc_t                        rc;
    sb_buf_t                       b;
    ngx_uint_t                     i;
    ngx_http_sandbox_policed_t    *policed;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    ngx_memzero(&b, sizeof(sb_buf_t));
    b.max = NGX_HTTP_SANDBOX_POLICY_ANSWER;

    policed = mcf->policies ? mcf->policies->elts : NULL;

    rc = sb_buf_add_str(&b, sb_lit("{\"items\":["));

    for (i = 0; rc == SB_OK && policed && i < mcf->policies->nelts; i++) {

        rc = sb_buf_printf(&b, "%s{\"places\":", i ? "," : "");

        if (rc == SB_OK) {
            rc = ngx_http_sandbox_policy_places(&policed[i], &b);
        }

        if (rc == SB_OK) {
            rc = sb_buf_add_str(&b, sb_lit(",\"policy\":"));
        }

        if (rc == SB_OK) {
            rc = policed[i].policy
                 ? sb_policy_describe(policed[i].policy, &b)
                 : sb_buf_add_str(&b, sb_lit("null"));
        }

        if (rc == SB_OK) {
            rc = sb_buf_add_c(&b, '}');
        }
    }

    if (rc == SB_OK) {
        rc = sb_buf_add_str(&b, sb_lit("]}"));
    }

    return ngx_http_sandbox_api_send_buf(r, NGX_HTTP_OK, rc, &b);
}


/* POST policy/check */

ngx_int_t
ngx_http_sandbox_policy_check_api(ngx_http_request_t *r,
    ngx_http_sandbox_api_t *a)
{
    char                  *why;
    sb_rc_t                rc;
    sb_buf_t               b;
    sb_policy_question_t   q;

    rc = sb_policy_question(&q, ngx_http_sandbox_str(&a->body));

    if (rc == SB_ERROR) {
        why = ngx_pnalloc(r->pool, sizeof(q.why));

        if (why) {
            ngx_memcpy(why, q.why, sizeof(q.why));
        }

        sb_policy_question_free(&q);

        return why ? ngx_http_sandbox_api_refuse(r, NGX_HTTP_BAD_REQUEST,
                                                 "GATEWAY_AMBIGUOUS_REQUEST",
                                                 why)
                   : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(&b, sizeof(sb_buf_t));
    b.max = NGX_HTTP_SANDBOX_POLICY_ANSWER;

    if (rc == SB_OK) {
        rc = ngx_http_sandbox_policy_explain(r, &q, &b);
    }

    sb_policy_question_free(&q);

    return ngx_http_sandbox_api_send_buf(r, NGX_HTTP_OK, rc, &b);
}


/* The verdict of each policy that is in force somewhere. */

static sb_rc_t
ngx_http_sandbox_policy_explain(ngx_http_request_t *r,
    sb_policy_question_t *q, sb_buf_t *b)
{
    sb_rc_t                        rc;
    ngx_uint_t                     i;
    sb_policy_verdict_t            v;
    ngx_http_sandbox_policed_t    *policed;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_sandbox_module);

    policed = mcf->policies ? mcf->policies->elts : NULL;

    rc = sb_buf_add_str(b, sb_lit("{\"items\":["));

    for (i = 0; rc == SB_OK && policed && i < mcf->policies->nelts; i++) {

        rc = sb_buf_printf(b, "%s{\"places\":", i ? "," : "");

        if (rc == SB_OK) {
            rc = ngx_http_sandbox_policy_places(&policed[i], b);
        }

        if (rc != SB_OK) {
            break;
        }

        if (policed[i].policy == NULL) {
            rc = sb_buf_add_str(b, sb_lit(",\"decision\":\"allow\",\"rule\":"
                                          "null,\"line\":null}"));
            continue;
        }

        rc = sb_policy_question_check(q, policed[i].policy, &v);

        if (rc == SB_OK) {
            rc = sb_buf_add_c(b, ',');
        }

        if (rc == SB_OK) {
            rc = sb_policy_answer(&v, b);
        }

        if (rc == SB_OK) {
            rc = sb_buf_add_c(b, '}');
        }
    }

    return rc == SB_OK ? sb_buf_add_str(b, sb_lit("]}")) : rc;
}


static sb_rc_t
ngx_http_sandbox_policy_places(ngx_http_sandbox_policed_t *policed,
    sb_buf_t *b)
{
    sb_rc_t                    rc;
    ngx_uint_t                 i;
    ngx_http_sandbox_place_t  *place;

    place = policed->places.elts;

    rc = sb_buf_add_c(b, '[');

    for (i = 0; rc == SB_OK && i < policed->places.nelts; i++) {

        rc = sb_buf_printf(b, "%s{\"server\":", i ? "," : "");

        if (rc == SB_OK) {
            rc = sb_json_write_str(b, ngx_http_sandbox_str(&place[i].name));
        }

        if (rc == SB_OK) {
            rc = sb_buf_add_str(b, sb_lit(",\"location\":"));
        }

        if (rc == SB_OK) {
            rc = sb_json_write_str(b, ngx_http_sandbox_str(&place[i].location));
        }

        if (rc == SB_OK) {
            rc = sb_buf_add_c(b, '}');
        }
    }

    return rc == SB_OK ? sb_buf_add_c(b, ']') : rc;
}
