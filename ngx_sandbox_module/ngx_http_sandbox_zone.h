/*
 * The shared zone of learnt addresses: one node per sandbox, found by its id
 * and kept in the order of use, with the few ports that upstream has named for
 * it.  What is in the zone is read and written between
 * ngx_http_sandbox_zone_open() and _unlock() only; nothing blocks, logs or
 * allocates elsewhere in between.
 */

#ifndef _NGX_HTTP_SANDBOX_ZONE_H_INCLUDED_
#define _NGX_HTTP_SANDBOX_ZONE_H_INCLUDED_


#include "ngx_http_sandbox_named.h"


#define NGX_HTTP_SANDBOX_ZONE_ID_MAX  255

/* how long an address is left alone that gave no connection: at first, at most;
 * ms */
#define NGX_HTTP_SANDBOX_ZONE_AVOID      15000
#define NGX_HTTP_SANDBOX_ZONE_AVOID_MAX  600000


/* changes of metadata are counted by the hash of the sandbox's id */
#define NGX_HTTP_SANDBOX_ZONE_CHANGES  128


typedef struct {
    uint64_t                      n;
    time_t                        unsure;       /* until then */
} ngx_http_sandbox_zone_changes_t;


typedef struct {
    ngx_uint_t                    layout;
    ngx_rbtree_t                  sandboxes;
    ngx_rbtree_node_t             sandboxes_sentinel;
    ngx_rbtree_t                  owners;
    ngx_rbtree_node_t             owners_sentinel;
    ngx_queue_t                   lru;          /* the last used is first */
    uint64_t                      asked;        /* questions so far */
    uint64_t                      changed;      /* changes of metadata so far */
    ngx_http_sandbox_zone_changes_t
                                  changes[NGX_HTTP_SANDBOX_ZONE_CHANGES];
} ngx_http_sandbox_zone_sh_t;


typedef struct {
    ngx_http_sandbox_zone_sh_t   *sh;
    ngx_slab_pool_t              *shpool;
} ngx_http_sandbox_zone_t;


typedef struct {
    ngx_rbtree_node_t             node;         /* key: crc32 of the id */
    ngx_queue_t                   lru;
    ngx_queue_t                   ports;
    ngx_uint_t                    nports;
    uint64_t                      expires_us;   /* 0: never, or not known */
    ngx_msec_t                    gone_ms;
    ngx_uint_t                    gone;
    u_char                       *known;        /* lib/policy_known.h */
    size_t                        known_len;
    ngx_uint_t                    known_stale;  /* its metadata may be others */
    size_t                        len;
    u_char                        id[1];
} ngx_http_sandbox_zone_node_t;


typedef struct {
    ngx_rbtree_node_t             node;         /* key: crc32 of the address */
    ngx_queue_t                   queue;
    ngx_http_sandbox_zone_node_t *sandbox;
    uint32_t                      port;
    uint32_t                      upstream;     /* who named it */

    ngx_msec_t                    learnt;
    ngx_msec_t                    used;
    ngx_msec_t                    asked;
    uint64_t                      question;     /* 0: nothing is asked */
    ngx_msec_t                    avoid;        /* until then, after failures */
    ngx_uint_t                    failures;
    ngx_uint_t                    valid;        /* in the tree of owners */

    ngx_http_sandbox_sockaddr_t   addr;
    socklen_t                     socklen;
    size_t                        host_len;
    size_t                        path_len;
    size_t                        prefix_len;   /* of path, before "/proxy/" */
    size_t                        ingress_len;
    u_char                        text[1];      /* host, path, ingress_to */
} ngx_http_sandbox_zone_port_t;


/* Locks the zone and finds the node of a sandbox (NULL: it is not known).
 * Returns NULL, and locks nothing, when there is no zone. */
ngx_http_sandbox_zone_t *ngx_http_sandbox_zone_open(
    ngx_http_sandbox_main_conf_t *mcf, sb_str_t sandbox,
    ngx_http_sandbox_zone_node_t **sn);
void ngx_http_sandbox_zone_unlock(ngx_http_sandbox_zone_t *zone);

/* A new node; NULL when there is no room or the id is too long. */
ngx_http_sandbox_zone_node_t *ngx_http_sandbox_zone_create(
    ngx_http_sandbox_zone_t *zone, sb_str_t sandbox);
/* Makes it the last to be thrown out. */
void ngx_http_sandbox_zone_touch(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_node_t *sn);

/* What is kept for a port of a sandbox, or NULL. */
ngx_http_sandbox_zone_port_t *ngx_http_sandbox_zone_port(
    ngx_http_sandbox_zone_node_t *sn, uint32_t port);
/* Keeps what upstream has named just now.  Without room it is not kept. */
void ngx_http_sandbox_zone_store(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_node_t *sn, uint32_t port, uint32_t upstream,
    ngx_http_sandbox_named_t *named);

/* An address (all addresses of a sandbox) is not used before upstream names it
 * again; that it was in use stays known. */
void ngx_http_sandbox_zone_disown(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_port_t *e);
void ngx_http_sandbox_zone_drop(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_node_t *sn);
/* Nothing is known of the port (of any port) any more; frees it. */
void ngx_http_sandbox_zone_remove(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_port_t *e);
void ngx_http_sandbox_zone_remove_all(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_node_t *sn);
/* What counts the changes of metadata of the sandbox, known or not; of some
 * others as well. */
ngx_http_sandbox_zone_changes_t *ngx_http_sandbox_zone_changes(
    ngx_http_sandbox_zone_t *zone, sb_str_t sandbox);
/* Keeps what is known of the sandbox for its policy.  Without room nothing is. */
void ngx_http_sandbox_zone_know(ngx_http_sandbox_zone_t *zone,
    ngx_http_sandbox_zone_node_t *sn, sb_str_t text);


#endif /* _NGX_HTTP_SANDBOX_ZONE_H_INCLUDED_ */
