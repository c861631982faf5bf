/*
 * ngx_http_sandbox_module: a flight recorder and gate in front of OpenSandbox.
 *
 * This file holds the directives and the module's place in nginx; what an
 * operation goes through begins in ngx_http_sandbox_operation.c.
 */


#include "ngx_http_sandbox_api.h"
#include "ngx_http_sandbox_metrics.h"
#include "ngx_http_sandbox_archive.h"
#include "ngx_http_sandbox_rate.h"
#include "ngx_http_sandbox_rules.h"
#include "ngx_http_sandbox_policy.h"
#include "ngx_http_sandbox_secret.h"
#include "ngx_http_sandbox_session.h"


static void *ngx_http_sandbox_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_sandbox_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_sandbox_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_sandbox_preconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_sandbox_postconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_sandbox_init_process(ngx_cycle_t *cycle);
static void ngx_http_sandbox_exit_process(ngx_cycle_t *cycle);
static char *ngx_http_sandbox_hosts(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


static ngx_conf_num_bounds_t  ngx_http_sandbox_archives_bounds = {
    ngx_conf_check_num_bounds, 1, NGX_HTTP_SANDBOX_ARCHIVES
};


static ngx_conf_enum_t  ngx_http_sandbox_endpoints[] = {
    { ngx_string("off"), NGX_HTTP_SANDBOX_ENDPOINTS_OFF },
    { ngx_string("rewrite"), NGX_HTTP_SANDBOX_ENDPOINTS_REWRITE },
    { ngx_string("all"), NGX_HTTP_SANDBOX_ENDPOINTS_ALL },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_sandbox_versions[] = {
    { ngx_string("off"), NGX_HTTP_SANDBOX_VERSIONS_OFF },
    { ngx_string("on"), NGX_HTTP_SANDBOX_VERSIONS_ON },
    { ngx_string("fetch"), NGX_HTTP_SANDBOX_VERSIONS_FETCH },
    { ngx_null_string, 0 }
};


static ngx_http_sandbox_ingress_t  ngx_http_sandbox_ingress_off = {
    NGX_HTTP_SANDBOX_INGRESS_OFF, { NULL, 0, 0, 0, NULL }
};


static ngx_conf_enum_t  ngx_http_sandbox_record_input[] = {
    { ngx_string("hidden"), SB_PTY_HIDDEN },
    { ngx_string("on"), SB_PTY_ON },
    { ngx_string("off"), SB_PTY_OFF },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_sandbox_host_header[] = {
    { ngx_string("auto"), NGX_HTTP_SANDBOX_HOST_AUTO },
    { ngx_string("client"), NGX_HTTP_SANDBOX_HOST_CLIENT },
    { ngx_string("upstream"), NGX_HTTP_SANDBOX_HOST_UPSTREAM },
    { ngx_null_string, 0 }
};


#define NGX_HTTP_SANDBOX_ANY                                                  \
    NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF


static ngx_command_t  ngx_http_sandbox_commands[] = {

    { ngx_string("sandbox"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, enable),
      NULL },

    { ngx_string("sandbox_helper"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_TAKE1,
      ngx_http_sandbox_conf_helper,
      0,
      0,
      NULL },

    { ngx_string("sandbox_data"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, data),
      NULL },

    { ngx_string("sandbox_history"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_sandbox_conf_history,
      0,
      0,
      NULL },

    { ngx_string("sandbox_history_path"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, history_path),
      NULL },

    { ngx_string("sandbox_history_sync"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, history_sync),
      NULL },

    { ngx_string("sandbox_versions_limit"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, versions_limit),
      NULL },

    { ngx_string("sandbox_versions_fetches"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, versions_fetches),
      NULL },

    { ngx_string("sandbox_history_lag"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, history_lag),
      NULL },

    { ngx_string("sandbox_history_ttl"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, history_ttl),
      NULL },

    { ngx_string("sandbox_history_size"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, history_size),
      NULL },

    { ngx_string("sandbox_history_total"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, history_total),
      NULL },

    { ngx_string("sandbox_history_keep"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, history_keep),
      NULL },

    { ngx_string("sandbox_history_overflow"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, history_overflow),
      NULL },

    { ngx_string("sandbox_history_on_delete"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, history_on_delete),
      NULL },

    { ngx_string("sandbox_history_hold"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_array_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, history_holds),
      NULL },

    { ngx_string("sandbox_follow"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, follow),
      NULL },

    { ngx_string("sandbox_helper_option"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE2,
      ngx_conf_set_keyval_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, helper_options),
      NULL },

    { ngx_string("sandbox_queue"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, queue),
      NULL },

    { ngx_string("sandbox_spool_limit"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_off_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, spool_limit),
      NULL },

    { ngx_string("sandbox_api_questions"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, questions),
      NULL },

    { ngx_string("sandbox_live_limit"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, live_limit),
      NULL },

    { ngx_string("sandbox_console_api"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_sandbox_conf_api,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("sandbox_api_timeout"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, api_timeout),
      NULL },

    { ngx_string("sandbox_endpoint_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, zone_size),
      NULL },

    { ngx_string("sandbox_port_listen"),
      NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_sandbox_conf_port_listen,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("sandbox_port_host"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_sandbox_conf_port_host,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("sandbox_port_lifetime"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_sec_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, port_lifetime),
      NULL },

    { ngx_string("sandbox_port_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, port_zone_size),
      NULL },

    { ngx_string("sandbox_session_lifetime"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_sec_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, session_lifetime),
      NULL },

    { ngx_string("sandbox_session_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, session_zone_size),
      NULL },

    { ngx_string("sandbox_upstream"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_http_sandbox_conf_upstream,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("sandbox_public"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_http_sandbox_conf_public,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("sandbox_host"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_1MORE,
      ngx_http_sandbox_hosts,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("sandbox_api_key_file"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_http_sandbox_conf_api_key,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("sandbox_tokens"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_http_sandbox_conf_tokens,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("sandbox_archives"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, archives),
      &ngx_http_sandbox_archives_bounds },

    { ngx_string("sandbox_archive_timeout"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, archive_timeout),
      NULL },

    { ngx_string("sandbox_policy"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_http_sandbox_conf_policy,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("sandbox_upstream_host"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, host_header),
      ngx_http_sandbox_host_header },

    { ngx_string("sandbox_ingress"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_1MORE,
      ngx_http_sandbox_conf_ingress,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("sandbox_endpoints"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, endpoints),
      ngx_http_sandbox_endpoints },

    { ngx_string("sandbox_endpoint_allow"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_1MORE,
      ngx_http_sandbox_conf_allow,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, allow),
      NULL },

    { ngx_string("sandbox_trusted_peer"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_1MORE,
      ngx_http_sandbox_conf_allow,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, peers),
      NULL },

    { ngx_string("sandbox_record"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE2,
      ngx_http_sandbox_conf_record,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("sandbox_capture_limit"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_off_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, capture_limit),
      NULL },

    { ngx_string("sandbox_record_input"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, record_input),
      ngx_http_sandbox_record_input },

    { ngx_string("sandbox_digest"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, digest),
      NULL },

    { ngx_string("sandbox_versions"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, versions),
      &ngx_http_sandbox_versions },

    { ngx_string("sandbox_body_limit"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, body_limit),
      NULL },

    { ngx_string("sandbox_timeout"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, timeout),
      NULL },

    { ngx_string("sandbox_locks"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, locks),
      NULL },

    { ngx_string("sandbox_lock_timeout"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, lock_timeout),
      NULL },

    { ngx_string("sandbox_limits"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_1MORE,
      ngx_http_sandbox_conf_limit,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("sandbox_rate"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE12,
      ngx_http_sandbox_conf_rate,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("sandbox_rate_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sandbox_main_conf_t, rate_zone_size),
      NULL },

    { ngx_string("sandbox_actor_type"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, actor_type),
      NULL },

    { ngx_string("sandbox_actor_id"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, actor_id),
      NULL },

    { ngx_string("sandbox_thread_id"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, thread),
      NULL },

    { ngx_string("sandbox_run_id"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, run),
      NULL },

    { ngx_string("sandbox_correlation_id"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, correlation),
      NULL },

    { ngx_string("sandbox_parent_operation_id"),
      NGX_HTTP_SANDBOX_ANY|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_sandbox_loc_conf_t, parent),
      NULL },

    { ngx_string("sandbox_peer"),
      NGX_HTTP_UPS_CONF|NGX_CONF_NOARGS,
      ngx_http_sandbox_peer,
      0,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sandbox_module_ctx = {
    ngx_http_sandbox_preconfiguration,     /* preconfiguration */
    ngx_http_sandbox_postconfiguration,    /* postconfiguration */

    ngx_http_sandbox_create_main_conf,     /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_sandbox_create_loc_conf,      /* create location configuration */
    ngx_http_sandbox_merge_loc_conf        /* merge location configuration */
};


ngx_module_t  ngx_http_sandbox_module = {
    NGX_MODULE_V1,
    &ngx_http_sandbox_module_ctx,          /* module context */
    ngx_http_sandbox_commands,             /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_sandbox_rules_publish,        /* init module */
    ngx_http_sandbox_init_process,         /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_sandbox_exit_process,         /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_http_sandbox_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_sandbox_main_conf_t));
    if (mcf == NULL) {
        return NULL;
    }

    mcf->helper = NGX_CONF_UNSET_UINT;
    mcf->queue = NGX_CONF_UNSET_SIZE;
    mcf->spool_limit = NGX_CONF_UNSET;
    mcf->zone_size = NGX_CONF_UNSET_SIZE;
    mcf->questions = NGX_CONF_UNSET_UINT;
    mcf->live_limit = NGX_CONF_UNSET_UINT;
    mcf->port_zone_size = NGX_CONF_UNSET_SIZE;
    mcf->rate_zone_size = NGX_CONF_UNSET_SIZE;
    mcf->port_lifetime = NGX_CONF_UNSET;
    mcf->session_zone_size = NGX_CONF_UNSET_SIZE;
    mcf->session_lifetime = NGX_CONF_UNSET;
    mcf->history_holds = NGX_CONF_UNSET_PTR;

    return mcf;
}


static void *
ngx_http_sandbox_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_sandbox_loc_conf_t  *lcf;

    lcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_sandbox_loc_conf_t));
    if (lcf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     lcf->public, api_key, api_key_file = { 0, NULL };
     *     lcf->names = NULL;
     *     lcf->api = 0;
     *     lcf->modes = NULL;
     *     lcf->actor_type, actor_id, ... = NULL;
     */

    lcf->enable = NGX_CONF_UNSET;
    lcf->upstream = NGX_CONF_UNSET_PTR;
    lcf->hosts = NGX_CONF_UNSET_PTR;
    lcf->tokens = NGX_CONF_UNSET_PTR;
    lcf->policy = NGX_CONF_UNSET_PTR;
    lcf->archives = NGX_CONF_UNSET_UINT;
    lcf->archive_timeout = NGX_CONF_UNSET_MSEC;
    lcf->host_header = NGX_CONF_UNSET_UINT;
    lcf->ingress = NGX_CONF_UNSET_PTR;
    lcf->endpoints = NGX_CONF_UNSET_UINT;
    lcf->allow = NGX_CONF_UNSET_PTR;
    lcf->peers = NGX_CONF_UNSET_PTR;
    lcf->record = NGX_CONF_UNSET_PTR;
    lcf->capture_limit = NGX_CONF_UNSET;
    lcf->digest = NGX_CONF_UNSET;
    lcf->record_input = NGX_CONF_UNSET_UINT;
    lcf->versions = NGX_CONF_UNSET_UINT;
    lcf->body_limit = NGX_CONF_UNSET_SIZE;
    lcf->timeout = NGX_CONF_UNSET_MSEC;
    lcf->locks = NGX_CONF_UNSET;
    lcf->lock_timeout = NGX_CONF_UNSET_MSEC;
    lcf->limits = NGX_CONF_UNSET_PTR;
    lcf->rate = NGX_CONF_UNSET_UINT;
    lcf->api_timeout = NGX_CONF_UNSET_MSEC;
    lcf->port_listen = NGX_CONF_UNSET_PTR;

    return lcf;
}


static char *
ngx_http_sandbox_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_sandbox_loc_conf_t *prev = parent;
    ngx_http_sandbox_loc_conf_t *conf = child;

    ngx_http_core_loc_conf_t      *clcf;
    ngx_http_core_srv_conf_t      *cscf;
    ngx_http_sandbox_loc_conf_t   *server;
    ngx_http_sandbox_main_conf_t  *mcf;

    if (conf->api && conf->enable == 1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sandbox on\" and sandbox_console_api exclude "
                           "each other in one location");
        return NGX_CONF_ERROR;
    }

    ngx_conf_merge_value(conf->enable, prev->enable, 0);
    ngx_conf_merge_ptr_value(conf->upstream, prev->upstream, NULL);
    ngx_conf_merge_ptr_value(conf->hosts, prev->hosts, NULL);
    ngx_conf_merge_ptr_value(conf->tokens, prev->tokens, NULL);
    ngx_conf_merge_ptr_value(conf->policy, prev->policy, NULL);
    ngx_conf_merge_uint_value(conf->archives, prev->archives, 64);
    ngx_conf_merge_msec_value(conf->archive_timeout, prev->archive_timeout,
                              60000);
    ngx_conf_merge_uint_value(conf->host_header, prev->host_header,
                              NGX_HTTP_SANDBOX_HOST_AUTO);
    ngx_conf_merge_ptr_value(conf->ingress, prev->ingress,
                             &ngx_http_sandbox_ingress_off);
    ngx_conf_merge_uint_value(conf->endpoints, prev->endpoints,
                              NGX_HTTP_SANDBOX_ENDPOINTS_REWRITE);
    ngx_conf_merge_ptr_value(conf->allow, prev->allow, NULL);
    ngx_conf_merge_ptr_value(conf->peers, prev->peers, NULL);
    ngx_conf_merge_ptr_value(conf->record, prev->record, NULL);
    ngx_conf_merge_value(conf->digest, prev->digest, 1);
    ngx_conf_merge_uint_value(conf->record_input, prev->record_input,
                              SB_PTY_HIDDEN);
    ngx_conf_merge_uint_value(conf->versions, prev->versions,
                              NGX_HTTP_SANDBOX_VERSIONS_ON);
    ngx_conf_merge_off_value(conf->capture_limit, prev->capture_limit,
                             16 * 1024 * 1024);
    ngx_conf_merge_size_value(conf->body_limit, prev->body_limit, 1024 * 1024);
    ngx_conf_merge_msec_value(conf->timeout, prev->timeout, 2000);
    ngx_conf_merge_value(conf->locks, prev->locks, 0);
    ngx_conf_merge_msec_value(conf->lock_timeout, prev->lock_timeout, 20000);
    ngx_conf_merge_ptr_value(conf->limits, prev->limits, NULL);

    if (conf->rate == NGX_CONF_UNSET_UINT) {
        conf->rate = prev->rate == NGX_CONF_UNSET_UINT ? 0 : prev->rate;
        conf->rate_burst = prev->rate_burst;
    }

    ngx_conf_merge_msec_value(conf->api_timeout, prev->api_timeout, 30000);
    ngx_conf_merge_str_value(conf->public, prev->public, "");
    ngx_conf_merge_ptr_value(conf->port_listen, prev->port_listen, NULL);

    if (conf->api_key.data == NULL) {
        conf->api_key = prev->api_key;
        conf->api_key_file = prev->api_key_file;
    }

    if (conf->actor_type == NULL) {
        conf->actor_type = prev->actor_type;
    }

    if (conf->actor_id == NULL) {
        conf->actor_id = prev->actor_id;
    }

    if (conf->thread == NULL) {
        conf->thread = prev->thread;
    }

    if (conf->run == NULL) {
        conf->run = prev->run;
    }

    if (conf->correlation == NULL) {
        conf->correlation = prev->correlation;
    }

    if (conf->parent == NULL) {
        conf->parent = prev->parent;
    }

    conf->names = prev->names;

    if (conf->names == NULL
        && ngx_http_sandbox_conf_names(cf, conf) != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sandbox_module);

    if (conf->api) {
        conf->enable = 0;
        mcf->apis++;

        if (conf->tokens == NULL) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sandbox_console_api needs sandbox_tokens FILE; "
                               "make one with \"sandbox-gateway token add "
                               "--tokens FILE\"");
            return NGX_CONF_ERROR;
        }

        if (conf->api_timeout == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sandbox_api_timeout must not be 0");
            return NGX_CONF_ERROR;
        }
    }

    if ((conf->api || conf->enable)
        && ngx_http_sandbox_secret_conf(cf, conf) != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (!conf->enable) {
        return NGX_CONF_OK;
    }

    if (conf->tokens == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sandbox on\" needs sandbox_tokens FILE; make one "
                           "with \"sandbox-gateway token add --tokens FILE\"");
        return NGX_CONF_ERROR;
    }

    if (conf->upstream == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sandbox on\" needs sandbox_upstream URL, the "
                           "OpenSandbox server that this location stands for");
        return NGX_CONF_ERROR;
    }

    if (conf->timeout == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_timeout must not be 0");
        return NGX_CONF_ERROR;
    }

    if (conf->lock_timeout == 0 || conf->lock_timeout > 300000) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sandbox_lock_timeout must be 1ms to 5m");
        return NGX_CONF_ERROR;
    }

    mcf->rates += conf->rate != 0;

    cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);
    server = cscf->ctx->loc_conf[ngx_http_sandbox_module.ctx_index];

    if (server->within == NULL) {
        clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
        server->within = clcf->loc_conf;
    }

    if (ngx_http_sandbox_policy_known(cf, mcf, conf->policy) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    mcf->locations++;

    if (conf->port_listen) {
        mcf->port_locations++;

        if (conf->ingress->form != NGX_HTTP_SANDBOX_INGRESS_OFF) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sandbox_port_listen and sandbox_ingress "
                               "exclude each other in one location");
            return NGX_CONF_ERROR;
        }
    }

    if (mcf->upstream_url.data == NULL) {
        mcf->upstream_url = conf->upstream->url;
        mcf->api_key_file = conf->api_key_file;
    }

    return ngx_http_sandbox_conf_modes(cf, conf);
}


/* sandbox_host NAME... */

static char *
ngx_http_sandbox_hosts(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sandbox_loc_conf_t  *lcf = conf;

    ngx_str_t   *value, *host;
    ngx_uint_t   i;

    if (lcf->hosts == NGX_CONF_UNSET_PTR) {
        lcf->hosts = ngx_array_create(cf->pool, 2, sizeof(ngx_str_t));
        if (lcf->hosts == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        host = ngx_array_push(lcf->hosts);
        if (host == NULL) {
            return NGX_CONF_ERROR;
        }

        *host = value[i];
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_sandbox_preconfiguration(ngx_conf_t *cf)
{
    return ngx_http_sandbox_add_variables(cf);
}


static ngx_int_t
ngx_http_sandbox_postconfiguration(ngx_conf_t *cf)
{
    ngx_http_handler_pt           *h;
    ngx_http_core_main_conf_t     *cmcf;
    ngx_http_sandbox_main_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sandbox_module);

    if (ngx_http_sandbox_conf_main(cf, mcf) != NGX_CONF_OK) {
        return NGX_ERROR;
    }

    if (mcf->locations == 0 && mcf->apis == 0) {
        /* an idle module costs nothing */
        return NGX_OK;
    }

    if (ngx_http_sandbox_metric_zone(cf, mcf) != NGX_CONF_OK
        || ngx_http_sandbox_rate_zone(cf, mcf) != NGX_CONF_OK
        || ngx_http_sandbox_rules_zone(cf, mcf) != NGX_CONF_OK
        || ngx_http_sandbox_endpoint_zone(cf, mcf) != NGX_CONF_OK
        || ngx_http_sandbox_conf_ports(cf, mcf) != NGX_CONF_OK
        || ngx_http_sandbox_session_zone(cf, mcf) != NGX_CONF_OK)
    {
        return NGX_ERROR;
    }

    if (mcf->helper == NGX_HTTP_SANDBOX_HELPER_EXEC
        && ngx_http_sandbox_manager_add(cf, mcf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_SERVER_REWRITE_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_sandbox_redirect_handler;

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_REWRITE_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_sandbox_redirect_handler;

    if (mcf->port_listen) {

        /* comes before the one above: the last one is run first */

        h = ngx_array_push(&cmcf->phases[NGX_HTTP_REWRITE_PHASE].handlers);
        if (h == NULL) {
            return NGX_ERROR;
        }

        *h = ngx_http_sandbox_port_handler;
    }

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_ACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_sandbox_access_handler;

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PRECONTENT_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_sandbox_precontent_handler;

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_LOG_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    /* before the access log, which may tell $sandbox_status */

    h = cmcf->phases[NGX_HTTP_LOG_PHASE].handlers.elts;

    ngx_memmove(h + 1, h, (cmcf->phases[NGX_HTTP_LOG_PHASE].handlers.nelts - 1)
                          * sizeof(ngx_http_handler_pt));

    h[0] = ngx_http_sandbox_log_handler;

    ngx_http_sandbox_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_sandbox_header_filter;

    ngx_http_sandbox_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_sandbox_body_filter;

    ngx_http_sandbox_next_request_body_filter =
                                              ngx_http_top_request_body_filter;
    ngx_http_top_request_body_filter = ngx_http_sandbox_request_body_filter;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sandbox_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                     lost;
    ngx_http_sandbox_main_conf_t  *mcf;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_sandbox_module);

    if (mcf == NULL) {
        /* no http block */
        return NGX_OK;
    }

    lost = ngx_http_sandbox_metric_init(mcf);

    if (ngx_http_sandbox_helper_init(cycle, mcf) != NGX_OK) {
        return NGX_ERROR;
    }

    while (lost) {
        ngx_http_sandbox_helper_gap((sb_str_t) { "", 0 }, "worker_died");
        lost--;
    }

    return NGX_OK;
}


static void
ngx_http_sandbox_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_sandbox_helper_exit(cycle);
    ngx_http_sandbox_metric_exit();
}
