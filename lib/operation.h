/*
 * What a request is: one data table of every operation
 * (reference/opensandbox-api.md 8) and the rules that find the sandbox, the
 * port and the inner request in a raw request target (8.1).
 */

#ifndef SB_OPERATION_H_INCLUDED
#define SB_OPERATION_H_INCLUDED

#include "sb.h"

typedef enum {
    SB_SURFACE_LIFECYCLE = 0,   /* the OpenSandbox server itself */
    SB_SURFACE_EXECD,           /* port 44772 of a sandbox */
    SB_SURFACE_EGRESS,          /* port 18080 of a sandbox */
    SB_SURFACE_PORT             /* any other port of a sandbox */
} sb_surface_e;

#define SB_PORT_EXECD   44772
#define SB_PORT_EGRESS  18080

/* Properties of an operation. */
#define SB_OPF_MUTATES   0x0001u  /* M of the table; else it only reads */
#define SB_OPF_STREAM    0x0002u  /* answers with execd's event stream (4) */
#define SB_OPF_LONG      0x0004u  /* the answer may take unbounded time */
#define SB_OPF_UPGRADE   0x0008u  /* a WebSocket */
#define SB_OPF_JSON      0x0010u  /* JSON request body, read and judged first */
#define SB_OPF_UPLOAD    0x0020u  /* multipart upload, 3.4 */
#define SB_OPF_PATHS     0x0040u  /* every query `path` names a file */
#define SB_OPF_PATH      0x0080u  /* the first query `path` names a file */
#define SB_OPF_COMMAND   0x0100u  /* has a command_executions row */
#define SB_OPF_FOLD      0x0200u  /* repeated polling is folded into a count */
#define SB_OPF_OFF       0x0400u  /* not recorded unless asked for */
#define SB_OPF_ANSWER    0x0800u  /* the JSON answer holds facts to record */
#define SB_OPF_UNKNOWN   0x1000u  /* execd.unknown, lifecycle.unknown, ... */
#define SB_OPF_OPERATOR  0x2000u  /* not for viewers, if it only reads too */

typedef struct {
    const char  *name;      /* "command.execute" */
    unsigned     flags;     /* SB_OPF_* */
} sb_op_t;

/* When a row counts. */
#define SB_OPC_ROOT     0x01u   /* lifecycle: only without /v1 */
#define SB_OPC_UPGRADE  0x02u   /* only when the request asks for a WebSocket */

/*
 * One row of the table: method, pattern -> operation.  In a pattern "{id}" is
 * the segment that names the sandbox, "{port}" one that must be a port, any
 * other "{...}" a segment that is kept as the route's argument; none of them
 * is empty or holds a "/".  "**" at the end is any rest, also an empty one.
 * Lifecycle patterns have no /v1, those of the other surfaces are inner paths.
 */
typedef struct {
    sb_surface_e    surface;
    const char     *method;     /* "GET"; "*" any */
    const char     *pattern;    /* "/sandboxes/{id}/endpoints/{port}" */
    unsigned        when;       /* SB_OPC_* */
    const sb_op_t  *op;
} sb_op_row_t;

/*
 * The whole table in order of matching, ended by a row whose op is NULL.  Every
 * surface ends with a row that takes anything, so that a route always has an
 * operation.  Documentation and tests are made from it.
 */
const sb_op_row_t *sb_op_rows(void);

/*
 * The properties of a named operation, or NULL.  Pointers are stable and may
 * be compared.  Names are unique but for "proxy.http", which mutates unless the
 * method is GET or HEAD: there are two entries of that name, and this function
 * gives the mutating one.  Settings by name must visit both (sb_op_at(),
 * sb_op_glob()); comparing names treats them as one.
 */
const sb_op_t *sb_op_find(sb_str_t name);

/* Number of operations and the operation with an index (0..n-1); the indices
 * are sb_op_e of operation_table.h. */
size_t sb_op_count(void);
const sb_op_t *sb_op_at(size_t i);
/* Index of an operation in that order. */
size_t sb_op_index(const sb_op_t *op);

/* Does a glob such as "file.*", "*", "*.unknown" match an operation name?  Only
 * `*` is special: any text, also none, dots too. */
bool sb_op_glob(sb_str_t glob, sb_str_t name);

/* May a viewer do it?  What is not only read, and what a read could do more
 * with (user ports, vaults), is for operators. */
bool sb_op_viewer(const sb_op_t *op);

typedef struct {
    const sb_op_t  *op;
    sb_surface_e    surface;
    bool            proxied;       /* came by /sandboxes/{id}/proxy/{port} or
                                      by an ingress route (ingress.h) */
    bool            versioned;     /* had the /v1 prefix */
    sb_str_t        sandbox;       /* decoded id; empty when path has none */
    uint32_t        carrier_port;  /* first port named; 0 when not proxied */
    uint32_t        port;          /* after unwrapping nested /proxy/;
                                      for endpoint.get the port asked for */
    unsigned        nested;        /* levels unwrapped */
    sb_str_t        path;          /* decoded path as the surface sees it
                                      (inner path when proxied, without /v1
                                      for lifecycle) */
    size_t          rest;          /* offset in the raw target behind the
                                      carrier's "/proxy/{port}": what is sent
                                      to a learnt address begins here ("/...",
                                      "?..." or nothing); 0 when not proxied */
    sb_str_t        arg;           /* {sid}, {name}, {x}, {cid}, {p}, decoded;
                                      else empty */
    sb_str_t        query;         /* raw query without "?" */
    sb_str_t        signature;     /* of a signed ingress route, as it stands in
                                      the target or token: a secret; else
                                      empty */
    const char     *reason;        /* on SB_AMBIGUOUS: what is ambiguous */
} sb_route_t;

/*
 * Classifies one request.  `target` is the raw request target exactly as the
 * client sent it (origin form; absolute form is SB_AMBIGUOUS), `upgrade` tells
 * that it asks for a WebSocket.  Decoded slices point into `buf`, which must
 * hold at least 2 * target.len + 64 bytes (else SB_LIMIT) and outlive the
 * route; reason, op and query point elsewhere (static data, target).
 *
 * SB_OK: route->op is set; what no row names is lifecycle.unknown (its sandbox
 * is set when the path begins with /sandboxes/{id}), execd.unknown,
 * egress.unknown, proxy.http or proxy.ws.  So is a known path with a method
 * that it has not, and one with a "/" too many at its end: upstream redirects
 * that or answers 404, it never acts.  A WebSocket handshake to anything but a
 * user port is classified as if it were none; GET /pty/{p}/ws without one is
 * pty.open as well, execd refuses it.
 *
 * SB_AMBIGUOUS: refuse with 400; reason says why.  op is the unknown operation
 * of the surface as far as that was found (never NULL), sandbox and port are
 * set when they could be read without doubt.  On ports 44772, 18080 and
 * lifecycle that is: "%" left after one decoding or a broken escape, an encoded
 * "/", "?", "#" or control character, a ".." or "." segment (encoded or not),
 * "//", "\\" or ";" (encoded or not), bad UTF-8, and a raw "#" anywhere.  On
 * user ports only what could leave the carrier: the carrier prefix, the slash
 * behind it included, must be clean in that sense, and a ".." segment in the
 * rest, or a second carrier at its beginning, after one or two decodings is
 * refused (upstream decodes twice);
 * everything else passes unchanged, so path may hold any byte there.  Raw
 * control characters and blanks are refused everywhere.  What stands for a
 * port and is not 1 to 10 digits with a value of 1 to 65535 is ambiguous
 * (upstream's parser takes "+44772" and "44772.0"), so are more than 4 levels
 * of nesting; a percent-encoded letter or digit and leading zeros are not.
 */
sb_rc_t sb_route(sb_route_t *route, sb_str_t method, sb_str_t target,
    bool upgrade, char *buf, size_t size);

/* Is there a whole %XX at p (p < end)?  Its byte goes to c. */
bool sb_unescape(char *c, const char *p, const char *end);

/* Next pair of a raw query: cuts at "&" and at the first "=", skips empty pairs
 * as both backends do.  Returns false at the end.  name and value are raw. */
bool sb_query_next(sb_str_t *query, sb_str_t *name, sb_str_t *value);

/*
 * Decodes one raw query component by Go's rules ("+" is a space, %XX) into
 * dst, which must hold src.len bytes.  SB_AMBIGUOUS for a broken escape, a raw
 * ";", NUL, or invalid UTF-8 after decoding.
 */
sb_rc_t sb_query_decode(char *dst, size_t *len, sb_str_t src);

#endif /* SB_OPERATION_H_INCLUDED */
