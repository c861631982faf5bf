/*
 * What the files of the module share: configuration, the context of one
 * operation, and the entry points of each facility.  The course of an
 * operation is described in ngx_http_sandbox_operation.c.
 */

#ifndef _NGX_HTTP_SANDBOX_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "operation.h"
#include "operation_table.h"
#include "request.h"
#include "multipart.h"
#include "policy.h"
#include "stream.h"
#include "frame.h"
#include "token.h"
#include "digest.h"
#include "id.h"
#include "json.h"
#include "ws.h"
#include "terminal.h"
#include "path.h"
#include "utf8.h"


#define NGX_HTTP_SANDBOX_OFF          0
#define NGX_HTTP_SANDBOX_BEST_EFFORT  1
#define NGX_HTTP_SANDBOX_STRICT       2

#define NGX_HTTP_SANDBOX_ENDPOINTS_OFF      0
#define NGX_HTTP_SANDBOX_ENDPOINTS_REWRITE  1
#define NGX_HTTP_SANDBOX_ENDPOINTS_ALL      2

/* Host of what goes to the OpenSandbox server; AUTO: the client's over http */
#define NGX_HTTP_SANDBOX_HOST_AUTO      0
#define NGX_HTTP_SANDBOX_HOST_CLIENT    1
#define NGX_HTTP_SANDBOX_HOST_UPSTREAM  2

/* how requests to the Kubernetes ingress name their sandbox */
#define NGX_HTTP_SANDBOX_INGRESS_OFF     0
#define NGX_HTTP_SANDBOX_INGRESS_HEADER  1
#define NGX_HTTP_SANDBOX_INGRESS_HOST    2
#define NGX_HTTP_SANDBOX_INGRESS_URI     3

/* the headers for that: what ctx->ingress_seen is made of */
#define NGX_HTTP_SANDBOX_INGRESS_NEW  0x01
#define NGX_HTTP_SANDBOX_INGRESS_OLD  0x02

#define NGX_HTTP_SANDBOX_VERSIONS_OFF    0
#define NGX_HTTP_SANDBOX_VERSIONS_ON     1
#define NGX_HTTP_SANDBOX_VERSIONS_FETCH  2

#define NGX_HTTP_SANDBOX_HELPER_NONE  0
#define NGX_HTTP_SANDBOX_HELPER_UNIX  1
#define NGX_HTTP_SANDBOX_HELPER_EXEC  2

/* the biggest frame the module makes; output goes in pieces of 16 KiB */
#define NGX_HTTP_SANDBOX_SCRATCH  SB_FRAME_MAX

/* of a command's text; what is longer is cut, its size stands beside it */
#define NGX_HTTP_SANDBOX_COMMAND  (1024 * 1024)
#define NGX_HTTP_SANDBOX_PIECE    16384
/* of the results of one execution of code */
#define NGX_HTTP_SANDBOX_RESULTS  (128 * 1024)

#define ngx_http_sandbox_str(s)   sb_str((s)->data, (s)->len)

/* a field of a NUL-terminated text */
#define ngx_http_sandbox_put_text(w, tag, text)                               \
    sb_frame_put(w, tag, sb_str((text), ngx_strlen((text))))


typedef struct ngx_http_sandbox_port_listen_s  ngx_http_sandbox_port_listen_t;


/* one per nginx: http level */

typedef struct {
    ngx_uint_t        helper;           /* NGX_HTTP_SANDBOX_HELPER_* */
    ngx_str_t         helper_path;      /* exec: the binary */
    ngx_str_t         socket;           /* path of the helper's socket */
    ngx_str_t         data;             /* sandbox_data */
    ngx_str_t         history;          /* sandbox_history: provider | none */
    ngx_uint_t        history_none;
    ngx_str_t         history_path;
    ngx_str_t         history_sync;     /* normal | full */
    ngx_str_t         history_lag;      /* seconds; empty: the helper's own */
    ngx_str_t         history_ttl;      /* ... so all of these; bytes; "off" */
    ngx_str_t         history_size;
    ngx_str_t         history_total;
    ngx_str_t         history_keep;
    ngx_str_t         history_overflow;
    ngx_str_t         history_on_delete;
    ngx_array_t      *history_holds;    /* of ngx_str_t: sandbox ids */
    ngx_str_t         follow;           /* seconds; empty: the helper's own */
    ngx_array_t      *helper_options;   /* of ngx_keyval_t: a flag with its
                                           value, or NULL */
    ngx_str_t         versions_limit;   /* bytes; empty: the helper's own */
    ngx_str_t         versions_fetches; /* at once; empty: the same */
    size_t            queue;            /* bytes kept per worker for the helper */
    off_t             spool_limit;      /* of all workers */
    size_t            zone_size;        /* sandbox_endpoint_zone */
    ngx_shm_zone_t   *zone;             /* learnt endpoints */
    ngx_shm_zone_t   *metrics;

    /* what an exec: helper is told, taken from the first sandbox location */
    ngx_str_t         upstream_url;
    ngx_str_t         api_key_file;

    ngx_uint_t        questions;        /* sandbox_api_questions, per worker */
    ngx_uint_t        live_limit;       /* sandbox_live_limit, per worker */
    ngx_uint_t        locations;        /* with sandbox on */
    ngx_uint_t        apis;             /* with sandbox_console_api */
    ngx_uint_t        peer_upstreams;   /* upstream blocks whose balancer is
                                           ours */
    ngx_array_t      *peers;            /* of ngx_http_sandbox_peer_t */
    ngx_array_t      *tokens;           /* one for each file of them */
    ngx_array_t      *secrets;          /* of sb_secret_set_t, all locations */
    ngx_array_t      *policies;         /* of ngx_http_sandbox_policed_t */
    ngx_shm_zone_t   *rules_zone;       /* ... for workers of before */

    ngx_http_sandbox_port_listen_t
                     *port_listen;      /* sandbox_port_listen */
    ngx_str_t         port_host;        /* sandbox_port_host without "*.",
                                           empty: no names of their own */
    ngx_uint_t        port_locations;   /* that it serves */
    size_t            port_zone_size;
    size_t            rate_zone_size;
    ngx_uint_t        rates;            /* locations with sandbox_rate */
    ngx_shm_zone_t   *rate_zone;        /* of them; else NULL */
    time_t            port_lifetime;
    ngx_shm_zone_t   *port_zone;        /* tickets */

    size_t            session_zone_size;
    time_t            session_lifetime;
    ngx_shm_zone_t   *session_zone;     /* NULL: no console API */
} ngx_http_sandbox_main_conf_t;


typedef struct {
    ngx_str_t         glob;
    ngx_uint_t        mode;             /* NGX_HTTP_SANDBOX_OFF ... */
} ngx_http_sandbox_record_t;


/* sandbox_upstream URL */

typedef struct {
    ngx_str_t         url;              /* without a trailing slash */
    ngx_str_t         host;             /* lower case, without port */
    ngx_str_t         authority;        /* host[:port] as in the URL */
    in_port_t         port;
    ngx_addr_t       *addrs;
    ngx_uint_t        naddrs;
    ngx_uint_t        tls;
} ngx_http_sandbox_upstream_t;


/* sandbox_ingress */

typedef struct {
    ngx_uint_t        form;             /* NGX_HTTP_SANDBOX_INGRESS_* */
    ngx_array_t       bases;            /* of ngx_str_t: domains, lower case */
} ngx_http_sandbox_ingress_t;


/* sandbox_limits: how many run at once in a sandbox */

typedef struct {
    ngx_uint_t        most[SB_LIMITS];  /* 0: without limit */
    ngx_uint_t        queue;            /* that may wait besides, of each */
    ngx_msec_t        timeout;
} ngx_http_sandbox_limits_t;


typedef struct {
    ngx_flag_t                    enable;
    ngx_uint_t                    api;          /* sandbox_console_api */
    ngx_msec_t                    api_timeout;
    ngx_http_sandbox_upstream_t  *upstream;
    ngx_str_t                     public;       /* HOST[:PORT][/PREFIX] */
    ngx_array_t                  *hosts;        /* of ngx_str_t */
    ngx_array_t                  *names;        /* of ngx_http_server_name_t:
                                                   of the server around it */
    ngx_str_t                     api_key;
    ngx_str_t                     api_key_file;
    sb_tokens_t                  *tokens;
    sb_policy_t                  *policy;       /* NULL: none */
    void                        **within;       /* of a server: settings of
                                                   its first sandbox location */
    ngx_uint_t                    host_header;  /* NGX_HTTP_SANDBOX_HOST_* */
    ngx_http_sandbox_ingress_t   *ingress;
    ngx_uint_t                    endpoints;
    ngx_array_t                  *allow;        /* of ngx_cidr_t */
    ngx_array_t                  *peers;        /* of ngx_cidr_t: trusted */
    ngx_array_t                  *record;       /* ngx_http_sandbox_record_t */
    u_char                       *modes;        /* by sb_op_index() */
    off_t                         capture_limit;
    ngx_flag_t                    digest;       /* of files that pass */
    ngx_uint_t                    record_input; /* sb_pty_input_e */
    ngx_uint_t                    versions;     /* NGX_HTTP_SANDBOX_VERSIONS_*
                                                   */
    size_t                        body_limit;
    ngx_msec_t                    timeout;
    ngx_uint_t                    archives;     /* of one upload that are
                                                   looked into */
    ngx_msec_t                    archive_timeout;
    ngx_flag_t                    locks;
    ngx_msec_t                    lock_timeout;
    ngx_http_sandbox_limits_t    *limits;       /* NULL: off */
    ngx_uint_t                    rate;         /* thousandths of requests a
                                                   second; 0: off */
    ngx_uint_t                    rate_burst;
    ngx_http_sandbox_port_listen_t  *port_listen;   /* it is the listener */

    ngx_http_complex_value_t     *actor_type;
    ngx_http_complex_value_t     *actor_id;
    ngx_http_complex_value_t     *thread;
    ngx_http_complex_value_t     *run;
    ngx_http_complex_value_t     *correlation;
    ngx_http_complex_value_t     *parent;
} ngx_http_sandbox_loc_conf_t;


/* the straight road to a sandbox, copied out of the zone for one request */

typedef struct {
    struct sockaddr              *sockaddr;
    socklen_t                     socklen;
    ngx_str_t                     name;         /* address as text */
    ngx_str_t                     host;         /* Host to send */
    ngx_str_t                     path;         /* prefix of the URI, no "/" at
                                                   its end */
    ngx_str_t                     ingress_to;   /* OpenSandbox-Ingress-To */
} ngx_http_sandbox_road_t;


typedef struct ngx_http_sandbox_rewrite_s  ngx_http_sandbox_rewrite_t;
typedef struct ngx_http_sandbox_tunnel_s   ngx_http_sandbox_tunnel_t;
typedef struct ngx_http_sandbox_pty_s      ngx_http_sandbox_pty_t;
typedef struct ngx_http_sandbox_before_s   ngx_http_sandbox_before_t;
typedef struct ngx_http_sandbox_lock_s     ngx_http_sandbox_lock_t;
typedef struct ngx_http_sandbox_archive_s  ngx_http_sandbox_archive_t;
typedef struct ngx_http_sandbox_rules_s    ngx_http_sandbox_rules_t;
typedef struct ngx_http_sandbox_precondition_s
                                           ngx_http_sandbox_precondition_t;


/* one operation */

typedef struct {
    ngx_queue_t                   queue;        /* among the waiters */
    ngx_http_request_t           *request;

    u_char                        id[16];
    u_char                        id_text[SB_UUID_LEN + 1];
    uint64_t                      started_us;
    uint64_t                      ready_us;     /* 0: it has not waited */
    ngx_msec_t                    deadline;     /* while waiting */
    uint64_t                      wait_seq;

    sb_route_t                    route;
    const sb_op_t                *op;           /* route.op, then refined */
    sb_rc_t                       route_rc;
    ngx_uint_t                    mode;         /* recording of this one */

    ngx_str_t                     target;       /* what route was read of:
                                                   the client's own, or on the
                                                   user-port listener the
                                                   carrier's */
    ngx_str_t                     port_target;  /* there: the client's own */
    ngx_str_t                     ticket;

    /* who */
    const sb_token_t             *token;
    ngx_str_t                     session;      /* value of its cookie; empty:
                                                   none */
    const char                   *origin_fault; /* of a session */
    sb_endpoint_token_t           endpoint;     /* its row is NULL: none */
    ngx_str_t                     actor_type;
    ngx_str_t                     actor_id;
    ngx_str_t                     thread;
    ngx_str_t                     run;
    ngx_str_t                     correlation;
    ngx_str_t                     parent;
    ngx_str_t                     identity;
    ngx_str_t                     request_id;   /* X-Request-ID */
    ngx_str_t                     restored;     /* of an upload: the operation
                                                   whose file it restores */

    /* request */
    uint32_t                      headers;      /* 1 << NGX_HTTP_SANDBOX_H_* of
                                                   those that it has */
    sb_request_t                 *facts;        /* freed with the pool */
    sb_multipart_t               *multipart;
    ngx_http_sandbox_before_t    *before;       /* sandbox_versions fetch */
    off_t                         bytes_in;
    size_t                        spool_bytes;  /* of it, taken of the limit */
    off_t                         looked;       /* at its limits, up to here */
    sb_policy_verdict_t          *verdict;      /* NULL: not judged */
    ngx_http_sandbox_rules_t     *rules;        /* it is of these newer ones */
    ngx_str_t                     known;        /* of the sandbox, for that */
    uint64_t                      known_changes;    /* of metadata, before */
    ngx_http_sandbox_archive_t   *archive;      /* ... of files that may be
                                                   archives; NULL: not asked */

    /* locks */
    ngx_str_t                     lock_keys;    /* X-Sandbox-Lock */
    ngx_str_t                     lock_lease;   /* X-Sandbox-Lease */
    ngx_msec_t                    lock_timeout;
    ngx_http_sandbox_lock_t      *lock;         /* NULL: it needs none */
    ngx_http_sandbox_precondition_t
                                 *precondition; /* If-Match; NULL: none */

    /* road */
    ngx_http_sandbox_road_t      *road;         /* NULL: server proxy or
                                                   lifecycle */
    ngx_uint_t                    ingress;      /* the form that named the
                                                   route; 0: no ingress */
    ngx_uint_t                    ingress_seen; /* headers that name it */
    ngx_str_t                     ingress_to;   /* what they say */
    ngx_http_log_handler_pt       log_handler;  /* nginx's own, once replaced */
    ngx_uint_t                    http_version; /* of the request */
    ngx_str_t                     upstream_uri;
    ngx_str_t                     upstream_host;

    /* answer */
    sb_stream_t                  *stream;
    sb_answer_t                  *answer;
    const sb_answer_facts_t      *answer_facts;
    sb_sha256_t                  *digest;
    ngx_http_sandbox_rewrite_t   *rewrite;
    ngx_http_sandbox_tunnel_t    *tunnel;
    ngx_uint_t                    upstream_status;  /* 0: no answer */
    void                        (*upstream_finalize)(ngx_http_request_t *r,
                                    ngx_int_t rc);  /* proxy's own */
    off_t                         bytes_out;
    off_t                         captured;
    off_t                         std_total[2];
    sb_buf_t                      results;      /* of code: JSON, comma by
                                                   comma; freed with the pool */
    ngx_uint_t                    results_dropped;
    struct ngx_http_sandbox_tail_s
                                 *tails[SB_STREAM_NOTE];    /* by stream */
    struct ngx_http_sandbox_tail_s
                                 *content_tail;     /* of the piece before: */
    ngx_uint_t                    content_kind;
    size_t                        content_file;
    uint64_t                      content_end;
    size_t                        redacted;     /* credentials not recorded */
    off_t                         output_dropped;
    off_t                         output_lost;
    ngx_str_t                     command_id;
    ngx_str_t                     refusal;      /* envelope sent by us */
    ngx_str_t                     error_code;   /* GATEWAY_* of our refusal */
    const char                   *status;       /* once it has ended */
    const char                   *reason;       /* result.reason */
    ngx_uint_t                    retry_after;  /* s; 0: the shortest */
    ngx_uint_t                    metric_op;    /* what it has begun as */

    unsigned                      checked:1;    /* credentials looked at */
    unsigned                      upstream_timedout:1;  /* by our own limit */
    unsigned                      authenticated:1;
    unsigned                      wrong:1;      /* a credential was shown, and is
                                                   none */
    unsigned                      slowed:1;
    unsigned                      trusted:1;    /* the peer says who acts */
    unsigned                      identity_bad:1;
    unsigned                      restored_bad:1;
    unsigned                      admitted:1;   /* what needs no body is judged */
    unsigned                      begun:1;      /* BEGIN is queued */
    unsigned                      lost:1;       /* BEGIN was not: a gap */
    unsigned                      ended:1;
    unsigned                      waiting:1;
    unsigned                      acked:1;
    unsigned                      failed:1;     /* could not be recorded */
    unsigned                      overloaded:1; /* ... as the queue is full */
    unsigned                      body_started:1;
    unsigned                      body_done:1;
    unsigned                      policed:1;    /* the policy has spoken */
    unsigned                      known_found:1;    /* known is what it is */
    unsigned                      known_waiting:1;
    unsigned                      known_asked:2;    /* times */
    unsigned                      known_told:1; /* it may have changed */
    unsigned                      spool_full:1;
    unsigned                      spooling:1;   /* an upload is read whole */
    unsigned                      spooled:1;
    unsigned                      routed:1;     /* road and headers are set */
    unsigned                      lock_timed:1; /* lock_timeout is stated */
    unsigned                      lock_asked:1;
    unsigned                      judged:1;     /* ready to be forwarded */
    unsigned                      refused:1;
    unsigned                      too_large:1;
    unsigned                      replace:1;    /* our envelope as the body */
    unsigned                      replaced:1;
    unsigned                      tapped:1;     /* header filter has run */
    unsigned                      last:1;       /* the whole answer passed */
    unsigned                      multipart_bad:1;
    unsigned                      path_told:1;  /* of an upload */
    unsigned                      digests:1;    /* of its files are made */
    unsigned                      content:1;    /* the answer is a file to be
                                                   kept */
    unsigned                      content_lost:1;   /* pieces of one are */
    unsigned                      upgrade:1;    /* asks for a WebSocket */
    unsigned                      port_listener:1;
    unsigned                      ticket_used:1;
} ngx_http_sandbox_ctx_t;


extern ngx_module_t  ngx_http_sandbox_module;


/* ngx_http_sandbox_context.c.  The context of a request, also after an internal
 * redirect; NULL when the request is none of ours. */
ngx_http_sandbox_ctx_t *ngx_http_sandbox_get_ctx(ngx_http_request_t *r);
/* The same, made when it is missing; NULL without memory. */
ngx_http_sandbox_ctx_t *ngx_http_sandbox_make_ctx(ngx_http_request_t *r);
/* Reads ctx->target. */
ngx_int_t ngx_http_sandbox_route(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);

/* ngx_http_sandbox_operation.c */
ngx_int_t ngx_http_sandbox_access_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_sandbox_precontent_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_sandbox_log_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_sandbox_redirect_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_sandbox_port_handler(ngx_http_request_t *r);
/* Called by the helper client: the frame waited for is in the journal (rc
 * NGX_OK), could not be (NGX_ERROR), or was not in time (NGX_ABORT). */
void ngx_http_sandbox_resume(ngx_http_sandbox_ctx_t *ctx, ngx_int_t rc);
/* Runs the phases of a request that has waited, as the last thing of an
 * event. */
void ngx_http_sandbox_run(ngx_http_request_t *r);

/* ngx_http_sandbox_auth.c: credentials, Host, who acts, headers upstream */
void ngx_http_sandbox_authenticate(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* NGX_DECLINED: a value is no credential for this request. */
ngx_int_t ngx_http_sandbox_credential(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, const sb_tokens_t *tokens, ngx_str_t *value);
ngx_int_t ngx_http_sandbox_host_allowed(ngx_http_request_t *r);
/* Is the other end of the connection in sandbox_trusted_peer? */
ngx_uint_t ngx_http_sandbox_trusted(ngx_http_request_t *r);
ngx_int_t ngx_http_sandbox_identify(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* ngx_http_sandbox_role.c */
/* What the credential of an operation may not do, as a sentence; NULL: it may.
 */
const char *ngx_http_sandbox_role_fault(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);

/* ngx_http_sandbox_headers.c */
ngx_int_t ngx_http_sandbox_headers_upstream(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Takes out of the answer what upstream has meant for this hop only. */
void ngx_http_sandbox_hop_answer(ngx_http_request_t *r);

/* ngx_http_sandbox_ingress.c: locations that stand for the ingress */
void ngx_http_sandbox_ingress_route(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, char *buf, size_t size);
ngx_uint_t ngx_http_sandbox_ingress_host(ngx_http_request_t *r);
char *ngx_http_sandbox_conf_ingress(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* ngx_http_sandbox_refuse.c */
/* Sends the envelope {"code","message","details"} and finalizes; returns what
 * the phase handler has to return.  details is JSON or empty. */
ngx_int_t ngx_http_sandbox_refuse(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_uint_t status, const char *code,
    const char *message, ngx_str_t *details);
/* The envelope in place of nginx's own error page: called by the header filter
 * for a special response. */
ngx_int_t ngx_http_sandbox_replace_error(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);

/* ngx_http_sandbox_drain.c */
/* Bounds what is read of the body of a refused request. */
ngx_int_t ngx_http_sandbox_drain(ngx_http_request_t *r);

/* ngx_http_sandbox_body.c: request bodies */
ngx_int_t ngx_http_sandbox_read_body(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* The rest of it, once the multipart reader has begun. */
ngx_int_t ngx_http_sandbox_spool_upload(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Reads a whole upload, so that its paths are known; nginx spools it. */
ngx_int_t ngx_http_sandbox_read_upload(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Reads query and body of the operation into ctx->facts (lib/request.h).  On
 * ambiguity facts->reason is set; NGX_ERROR only without memory. */
ngx_int_t ngx_http_sandbox_read_facts(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, sb_str_t body, sb_rc_t *rc);
/* The body that was read, as one slice. */
ngx_int_t ngx_http_sandbox_body_text(ngx_http_request_t *r, sb_str_t *body);
/* Prepares the tap of a multipart upload.  NGX_DECLINED: its boundary can be
 * read in more than one way. */
ngx_int_t ngx_http_sandbox_upload_start(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
ngx_int_t ngx_http_sandbox_request_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
extern ngx_http_request_body_filter_pt
    ngx_http_sandbox_next_request_body_filter;

/* ngx_http_sandbox_response.c: taps */
ngx_int_t ngx_http_sandbox_header_filter(ngx_http_request_t *r);
ngx_int_t ngx_http_sandbox_body_filter(ngx_http_request_t *r, ngx_chain_t *in);
/* Adds a line to the answer; name and value are kept, not copied. */
ngx_int_t ngx_http_sandbox_add_header(ngx_http_request_t *r, const char *name,
    const char *value, size_t len);
extern ngx_http_output_header_filter_pt  ngx_http_sandbox_next_header_filter;
extern ngx_http_output_body_filter_pt    ngx_http_sandbox_next_body_filter;

/* ngx_http_sandbox_handshake.c */
/* Does it ask for a WebSocket? */
ngx_uint_t ngx_http_sandbox_wants_upgrade(ngx_http_request_t *r);
/* What is wrong with the handshake of an operation that needs a good one; NULL:
 * nothing. */
const char *ngx_http_sandbox_handshake_fault(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);

/* ngx_http_sandbox_tunnel.c: what passes after 101 */
ngx_int_t ngx_http_sandbox_tunnel_open(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
struct ngx_http_sandbox_tunnel_s {
    ngx_send_pt                   client_send;
    ngx_send_pt                   upstream_send;
    ngx_connection_t             *client;
    ngx_connection_t             *upstream;
    sb_ws_t                       from_upstream;
    sb_ws_t                       from_client;
    ngx_http_sandbox_pty_t       *pty;          /* NULL: no terminal, or not
                                                   recorded */
    off_t                         bytes_in;     /* client to upstream */
    off_t                         bytes_out;
};

/* ngx_http_sandbox_pty.c: terminals */
/* Reads what passes the tunnel as execd's terminal, and sends it to the helper.
 */
ngx_int_t ngx_http_sandbox_pty_open(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Before the readers are fed, and behind it. */
void ngx_http_sandbox_pty_now(ngx_http_sandbox_pty_t *p);
void ngx_http_sandbox_pty_flush(ngx_http_sandbox_ctx_t *ctx);
void ngx_http_sandbox_pty_end(ngx_http_sandbox_ctx_t *ctx);
/* What END says of it; up to 160 bytes. */
u_char *ngx_http_sandbox_pty_result(ngx_http_sandbox_pty_t *p, u_char *last);

/* ngx_http_sandbox_record.c: frames of one operation */
ngx_int_t ngx_http_sandbox_record_begin(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
ngx_int_t ngx_http_sandbox_record_facts(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
void ngx_http_sandbox_record_end(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Where an upload goes to, once, as soon as it has said so. */
void ngx_http_sandbox_record_path(ngx_http_sandbox_ctx_t *ctx);
/* What a list or get answer has shown to exist. */
void ngx_http_sandbox_record_seen(ngx_http_sandbox_ctx_t *ctx);
/* The id under which execd knows the running command. */
void ngx_http_sandbox_record_command(ngx_http_sandbox_ctx_t *ctx);

/* ngx_http_sandbox_output.c */
/* Keeps n bytes of stdout (fd 0) or stderr (1), up to the capture limit. */
void ngx_http_sandbox_record_output(ngx_http_sandbox_ctx_t *ctx, ngx_uint_t fd,
    const char *p, size_t n);
/* Keeps one result of code, the JSON object of its forms. */
void ngx_http_sandbox_record_result(ngx_http_sandbox_ctx_t *ctx, sb_str_t json,
    ngx_uint_t whole);
/* Sends what is kept of this operation; has to follow before the worker does
 * something else. */
void ngx_http_sandbox_record_flush(ngx_http_sandbox_ctx_t *ctx);
/* The same, and what was kept back as it might have gone on as a credential. */
void ngx_http_sandbox_record_last(ngx_http_sandbox_ctx_t *ctx);

/* ngx_http_sandbox_content.c */
/* Are contents of its files to be kept? */
ngx_uint_t ngx_http_sandbox_content_wanted(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Keeps n bytes of a file (SB_CONTENT_*), which is numbered within its
 * operation, at an offset, up to SB_CONTENT_MAX. */
void ngx_http_sandbox_content_add(ngx_http_sandbox_ctx_t *ctx, ngx_uint_t kind,
    size_t file, uint64_t offset, const char *p, size_t n);
/* Sends what is kept of this operation; has to follow before the worker does
 * something else. */
void ngx_http_sandbox_content_flush(ngx_http_sandbox_ctx_t *ctx);
/* The same, and what was kept back as it might have gone on as a credential. */
void ngx_http_sandbox_content_done(ngx_http_sandbox_ctx_t *ctx);
/* What the helper may still read of a file before it was written does not
 * count. */
void ngx_http_sandbox_content_void(ngx_http_sandbox_ctx_t *ctx, size_t file);
/* The same as _add() for sb_multipart_tap(). */
void ngx_http_sandbox_content_tap(void *data, size_t file, uint64_t offset,
    const char *p, size_t n);

/* ngx_http_sandbox_status.c */
/* Puts status, reason, exit code and HTTP status; sets ctx->status. */
void ngx_http_sandbox_put_status(sb_frame_writer_t *w, ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);

/* ngx_http_sandbox_helper.c: the connections to the helper, one set a worker */
ngx_int_t ngx_http_sandbox_helper_init(ngx_cycle_t *cycle,
    ngx_http_sandbox_main_conf_t *mcf);
void ngx_http_sandbox_helper_exit(ngx_cycle_t *cycle);
/* Copies a frame into the queue; the header's seq is filled in.  Returns the
 * seq, or 0 when there is no room.  reserve: how far it may go beyond the
 * limit, 0 or one of these; what has begun is to be closed. */
#define NGX_HTTP_SANDBOX_QUEUE_MORE    1    /* by a quarter: an END */
#define NGX_HTTP_SANDBOX_QUEUE_ALWAYS  2    /* the short form of it */
#define NGX_HTTP_SANDBOX_QUEUE_HALF    3    /* no more than half of it: what
                                               records can do without */
uint64_t ngx_http_sandbox_helper_send(u_char *frame, size_t len,
    ngx_uint_t reserve);
/* Sends off what is queued: the helper is to know an operation before it is
 * asked something about it on the other connection. */
void ngx_http_sandbox_helper_push(void);
/* The same at the end of this event, with all that is queued until then. */
void ngx_http_sandbox_helper_flush(void);
/* Is there a helper at all? */
ngx_uint_t ngx_http_sandbox_helper_active(void);
/* A worker that exits waits (a bounded time) until what is queued, and the
 * gaps, have been acknowledged; called for whatever is added to them. */
void ngx_http_sandbox_helper_hold(void);
/* Is the helper known to be away for longer than timeout ms? */
ngx_uint_t ngx_http_sandbox_helper_away(ngx_msec_t timeout);
/* A frame in the queue, and what it says. */
typedef void (*ngx_http_sandbox_queued_pt)(u_char *frame, sb_frame_t *f);
/* Goes through the frames that are not acknowledged, in their order; the handler
 * may change type and flags of one. */
void ngx_http_sandbox_helper_each(ngx_http_sandbox_queued_pt handler);
/* Is a frame in the journal already? */
ngx_uint_t ngx_http_sandbox_helper_acked(uint64_t seq);
/* Waits for the ACK of ctx->wait_seq; resumed by ngx_http_sandbox_resume(). */
void ngx_http_sandbox_helper_wait(ngx_http_sandbox_ctx_t *ctx,
    ngx_msec_t timeout);
void ngx_http_sandbox_helper_forget(ngx_http_sandbox_ctx_t *ctx);
/* One operation of this sandbox (empty: none) could not be recorded; reason is
 * a static text. */
void ngx_http_sandbox_helper_gap(sb_str_t sandbox, const char *reason);
/* Asks the helper to GET target from upstream; done is called once with the
 * status (0: failed) and body, unless 0 was returned (cannot be asked now). */
typedef void (*ngx_http_sandbox_fetched_pt)(void *data, ngx_uint_t status,
    ngx_str_t *body);
ngx_uint_t ngx_http_sandbox_helper_fetch(ngx_str_t *target,
    ngx_http_sandbox_fetched_pt done, void *data);

/* ngx_http_sandbox_manager.c: exec: helper in the cache manager's slot */
ngx_int_t ngx_http_sandbox_manager_add(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf);

/* ngx_http_sandbox_endpoint.c: learnt addresses in shared memory (design 6) */
char *ngx_http_sandbox_endpoint_zone(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf);
/* Finds the road for ctx->route (sandbox, carrier_port): sets ctx->road and
 * returns NGX_OK, or NGX_DECLINED.  Asks for a refresh when it is due. */
ngx_int_t ngx_http_sandbox_endpoint_find(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Takes what upstream named for (sandbox, port) in an answer to a plain
 * endpoints request. */
void ngx_http_sandbox_endpoint_learn(ngx_http_sandbox_main_conf_t *mcf,
    ngx_http_sandbox_loc_conf_t *lcf, ngx_log_t *log, sb_str_t sandbox,
    uint32_t port, ngx_str_t *body);
/* Forgets all addresses of a sandbox; or (port != 0) drops one, which is not
 * used again before upstream has named it again: that is asked for when it
 * would have been used. */
void ngx_http_sandbox_endpoint_drop(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox, uint32_t port);
/* No connection to the address: dropped, and not used again for a while even
 * when upstream names the same one again. */
void ngx_http_sandbox_endpoint_failed(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox, uint32_t port);
/* The sandbox is gone for good: its addresses and endpoint tokens end. */
void ngx_http_sandbox_endpoint_gone(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox);
ngx_uint_t ngx_http_sandbox_endpoint_is_gone(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox);
/* Upstream said when it expires (0: never). */
void ngx_http_sandbox_endpoint_expires(ngx_http_sandbox_main_conf_t *mcf,
    sb_str_t sandbox, uint64_t expires_us);

/* ngx_http_sandbox_rewrite.c: the endpoints answer, the one body we change */
/* Why the answer to this request could not be rewritten where it has to be; NULL
 * when it can, or need not. */
const char *ngx_http_sandbox_rewrite_fault(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Header filter: NGX_OK when the answer is held from now on (do not pass the
 * header on), NGX_DECLINED when it passes unchanged. */
ngx_int_t ngx_http_sandbox_rewrite_header(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx);
/* Body filter while it is held: passes header and body on when it is whole. */
ngx_int_t ngx_http_sandbox_rewrite_body(ngx_http_request_t *r,
    ngx_http_sandbox_ctx_t *ctx, ngx_chain_t *in);

/* ngx_http_sandbox_peer.c: sandbox_peer in an upstream block */
char *ngx_http_sandbox_peer(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_sandbox_variables.c */
ngx_int_t ngx_http_sandbox_add_variables(ngx_conf_t *cf);

/* ngx_http_sandbox_conf.c: directives that need more than a slot */
char *ngx_http_sandbox_conf_helper(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_sandbox_conf_upstream(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_sandbox_conf_public(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_sandbox_conf_api_key(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
/* ngx_http_sandbox_tokens.c */
char *ngx_http_sandbox_conf_tokens(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
/* ngx_http_sandbox_conf.c */
/* Reads a small file into memory of cf; tells the log what is wrong. */
ngx_int_t ngx_http_sandbox_read_file(ngx_conf_t *cf, ngx_command_t *cmd,
    ngx_str_t *name, ngx_str_t *text);
char *ngx_http_sandbox_conf_allow(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_sandbox_conf_record(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_sandbox_conf_limit(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_sandbox_conf_history(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
/* ngx_http_sandbox_policy.c */
char *ngx_http_sandbox_conf_policy(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
/* ngx_http_sandbox_port_conf.c: the listener for user ports */
char *ngx_http_sandbox_conf_port_listen(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_sandbox_conf_port_host(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_sandbox_conf_ports(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf);
/* The address at which a browser opens a user port, with a ticket for e
 * (sandbox, port, actor, row; the caller has judged the role) in it.
 * NGX_DECLINED: there is no listener. */
ngx_int_t ngx_http_sandbox_port_open(ngx_http_request_t *r,
    sb_endpoint_token_t *e, ngx_str_t *url);

/* Keeps the names of the server block: nginx's own list ends with the reading
 * of the configuration. */
char *ngx_http_sandbox_conf_names(ngx_conf_t *cf,
    ngx_http_sandbox_loc_conf_t *lcf);
/* Fills lcf->modes from the defaults of design 2 and the rules. */
char *ngx_http_sandbox_conf_modes(ngx_conf_t *cf,
    ngx_http_sandbox_loc_conf_t *lcf);
/* Checks the limits of history files. */
char *ngx_http_sandbox_conf_limits(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf);
/* Checks sandbox_helper_option, and makes flags of them. */
char *ngx_http_sandbox_conf_options(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf);
/* Refuses what only a helper that we start is told. */
char *ngx_http_sandbox_conf_unix(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf);
char *ngx_http_sandbox_conf_main(ngx_conf_t *cf,
    ngx_http_sandbox_main_conf_t *mcf);


#endif /* _NGX_HTTP_SANDBOX_H_INCLUDED_ */
