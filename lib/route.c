/* Finds the operation of a request: see sb_route() in operation.h. */

#include "route_int.h"
#include "utf8.h"

#include <stdlib.h>

#define SB_PORT_DIGITS  10      /* leading zeros included */
#define SB_NESTED_MAX   4

/* Upstream decodes a path behind a carrier once or twice, depending on the
 * road it takes (reference/opensandbox-api.md 2.2). */
#define SB_DECODINGS    2


const char  sb_bad_port[] =
    "the segment that names a port is not a number from 1 to 65535";

/* Bytes of a path that mean something; all others are copied. */
#define SB_ROUTE_ODD    0x01
#define SB_ROUTE_SLASH  0x02
#define SB_ROUTE_DOT    0x04        /* does behind a slash only */
#define SB_ROUTE_HIGH   0x08        /* not ASCII; copied, too */

static const uint8_t  sb_route_class[256] = {
    [0 ... 0x1f] = SB_ROUTE_ODD, [0x7f] = SB_ROUTE_ODD,
    ['%'] = SB_ROUTE_ODD, [';'] = SB_ROUTE_ODD, ['?'] = SB_ROUTE_ODD,
    ['#'] = SB_ROUTE_ODD, ['\\'] = SB_ROUTE_ODD,
    ['/'] = SB_ROUTE_SLASH, ['.'] = SB_ROUTE_DOT,
    [0x80 ... 0xff] = SB_ROUTE_HIGH
};

#define sb_special(c)                                                         \
    (sb_route_class[(unsigned char) (c)] & (SB_ROUTE_ODD|SB_ROUTE_SLASH))


static bool sb_route_raw(sb_str_t target);
static bool sb_route_plain(sb_decoded_t *d, sb_str_t raw);
static void sb_route_decode(sb_decoded_t *d, sb_str_t raw);
static void sb_route_segment(sb_decoded_t *d, size_t start);
static const char *sb_route_doubt(char c, bool escaped);
static sb_rc_t sb_route_carrier(sb_route_t *route, const sb_decoded_t *d,
    size_t *inner);
static void sb_route_surface(sb_route_t *route);
static sb_rc_t sb_route_climb(sb_route_t *route, const sb_decoded_t *d,
    size_t inner);
static bool sb_route_carried(sb_str_t path);
static sb_rc_t sb_route_row(sb_route_t *route, sb_str_t method, bool upgrade);
static bool sb_route_pattern(sb_route_t *route, const char *pattern,
    size_t literal, sb_str_t *port);
static bool sb_begins(sb_str_t s, size_t i, sb_str_t with);


/*
 * Patterns begin with a slash and a letter or star: by its letter the rows are
 * found that a path of a surface may have, in the order of the table.
 */
#define SB_ROUTE_LETTERS  32
#define SB_ROUTE_ROWS     31
#define sb_route_letter(c)  ((unsigned char) (c) % SB_ROUTE_LETTERS)

typedef struct {
    uint8_t  n;
    uint8_t  rows[SB_ROUTE_ROWS];
} sb_route_rows_t;

static sb_route_rows_t
    sb_route_rows[SB_SURFACE_PORT + 1][SB_ROUTE_LETTERS];

/* How much of each pattern stands for itself. */
static uint8_t  sb_route_literal[UINT8_MAX + 1];


__attribute__((constructor))
static void
sb_route_init(void)
{
    size_t              i, letter;
    const sb_op_row_t  *row;
    sb_route_rows_t    *rows;

    for (i = 0; sb_op_row_table[i].op != NULL; i++) {

        row = &sb_op_row_table[i];

        sb_route_literal[i % sizeof(sb_route_literal)]
            = (uint8_t) strcspn(row->pattern, "{*");

        for (letter = 0; letter < SB_ROUTE_LETTERS; letter++) {

            if (row->pattern[1] != '*'
                && sb_route_letter(row->pattern[1]) != letter)
            {
                continue;
            }

            rows = &sb_route_rows[row->surface][letter];

            if (i > UINT8_MAX || rows->n == SB_ROUTE_ROWS) {
                /* the table has outgrown these */
                abort();
            }

            rows->rows[rows->n++] = (uint8_t) i;
        }
    }
}


sb_rc_t
sb_route(sb_route_t *route, sb_str_t method, sb_str_t target, bool upgrade,
    char *buf, size_t size)
{
    size_t        inner;
    sb_rc_t       rc;
    sb_decoded_t  d;

    rc = sb_route_begin(route, &d, target, buf, size);
    if (rc != SB_OK) {
        return rc;
    }

    rc = sb_route_carrier(route, &d, &inner);
    if (rc != SB_OK) {
        return rc;
    }

    return sb_route_end(route, &d, inner, method, upgrade);
}


sb_rc_t
sb_route_begin(sb_route_t *route, sb_decoded_t *d, sb_str_t target, char *buf,
    size_t size)
{
    const char  *query;

    memset(route, 0, sizeof(sb_route_t));
    route->op = &sb_op_table[SB_OP_LIFECYCLE_UNKNOWN];

    if (size < 2 * target.len + 64) {
        return SB_LIMIT;
    }

    if (target.len == 0 || target.data[0] != '/') {
        return sb_route_refuse(route, "the request target is not a path");
    }

    if (sb_route_raw(target)) {
        return sb_route_refuse(route, "the request target holds a raw control "
                                      "character or blank");
    }

    d->target = target;
    d->raw = target;
    query = memchr(target.data, '?', target.len);

    if (query != NULL) {
        d->raw.len = (size_t) (query - target.data);
        route->query = sb_str(query + 1, target.len - d->raw.len - 1);
    }

    d->data = buf;
    sb_route_decode(d, d->raw);

    return SB_OK;
}


sb_rc_t
sb_route_end(sb_route_t *route, const sb_decoded_t *d, size_t inner,
    sb_str_t method, bool upgrade)
{
    sb_rc_t  rc;

    route->path = sb_str(d->data + inner, d->len - inner);

    if (route->path.len == 0) {
        route->path = sb_lit("/");
    }

    if (route->surface == SB_SURFACE_PORT) {
        rc = sb_route_climb(route, d, inner);
        if (rc != SB_OK) {
            return rc;
        }

    } else {
        rc = sb_route_clean(route, d, d->len);
        if (rc != SB_OK) {
            return rc;
        }

        if (memchr(d->target.data, '#', d->target.len) != NULL) {
            return sb_route_refuse(route, "the request target holds a \"#\"");
        }
    }

    return sb_route_row(route, method, upgrade);
}


/* Does a target hold a control character or blank?  Eight bytes at once: the
 * highest bit of each tells whether it is below 0x21, or is 0x7f. */
static bool
sb_route_raw(sb_str_t target)
{
    size_t       left;
    uint64_t     word, del;
    const char  *p;

    p = target.data;

    for (left = target.len; left >= 8; left -= 8, p += 8) {
        memcpy(&word, p, 8);
        del = word ^ 0x7f7f7f7f7f7f7f7full;

        if ((((word - 0x2121212121212121ull) & ~word)
             | ((del - 0x0101010101010101ull) & ~del))
            & 0x8080808080808080ull)
        {
            return true;
        }
    }

    for ( /* void */ ; left; left--, p++) {
        if ((unsigned char) *p <= 0x20 || *p == 0x7f) {
            return true;
        }
    }

    return false;
}


/* Of nearly all paths nothing has to be decoded, and nothing is doubtful: such a
 * one is copied. */
static bool
sb_route_plain(sb_decoded_t *d, sb_str_t raw)
{
    unsigned     c, odd, all;
    const char  *p, *end = raw.data + raw.len;

    odd = SB_ROUTE_ODD;
    all = 0;

    for (p = raw.data; p < end; p++) {

        c = sb_route_class[(unsigned char) *p];

        if (c & odd) {
            return false;
        }

        /* "//", "/." and, by and by, "/.." */

        odd = c & SB_ROUTE_SLASH ? SB_ROUTE_ODD|SB_ROUTE_SLASH|SB_ROUTE_DOT
                                 : SB_ROUTE_ODD;
        all |= c;
    }

    memcpy(d->data, raw.data, raw.len);

    d->len = raw.len;
    d->utf8 = !(all & SB_ROUTE_HIGH)
              || sb_utf8_valid(sb_str(d->data, d->len));

    return true;
}


/*
 * Decodes a path once and remembers the first doubtful place.  What is doubtful
 * is the same for all surfaces; how much of the path has to be free of it, the
 * caller knows.
 */
static void
sb_route_decode(sb_decoded_t *d, sb_str_t raw)
{
    char         c, *out;
    bool         escaped;
    size_t       start;
    const char  *p, *end, *reason;

    d->len = 0;
    d->dirty = SIZE_MAX;
    d->reason = NULL;

    if (sb_route_plain(d, raw)) {
        return;
    }

    start = 0;
    p = raw.data;
    end = p + raw.len;

    for ( ;; ) {

        for (out = d->data + d->len;
             p < end && !sb_special(*p);
             p++)
        {
            *out++ = *p;
        }

        d->len = (size_t) (out - d->data);

        if (p == end) {
            break;
        }

        c = *p;

        escaped = c == '%' && sb_unescape(&c, p, end);
        p += escaped ? 3 : 1;

        if (!sb_special(c)) {
            d->data[d->len++] = c;
            continue;
        }

        if (c == '/') {
            sb_route_segment(d, start);
            start = d->len + 1;
        }

        reason = sb_route_doubt(c, escaped);

        if (reason == NULL && c == '/' && d->len
            && d->data[d->len - 1] == '/')
        {
            reason = "the path holds \"//\"";
        }

        if (reason != NULL && d->reason == NULL) {
            d->dirty = d->len;
            d->reason = reason;
        }

        d->data[d->len++] = c;
    }

    sb_route_segment(d, start);

    d->utf8 = sb_utf8_valid(sb_str(d->data, d->len));
}


static void
sb_route_segment(sb_decoded_t *d, size_t start)
{
    size_t       n = d->len - start;
    const char  *s = d->data + start;

    if (n == 0 || n > 2 || s[0] != '.' || s[n - 1] != '.') {
        return;
    }

    if (d->reason == NULL) {
        d->dirty = start;
        d->reason = "the path holds a \".\" or \"..\" segment";
    }
}


static const char *
sb_route_doubt(char c, bool escaped)
{
    switch (c) {

    case '/':
        return escaped ? "the path holds an encoded \"/\"" : NULL;

    case '%':
        return escaped ? "the path is encoded more than once"
                       : "the path holds a broken escape";

    case '?':
        return "the path holds an encoded \"?\"";

    case '#':
        return "the path holds a \"#\"";

    case '\\':
    case ';':
        return "the path holds a backslash or semicolon";

    default:
        return (unsigned char) c < 0x20 || c == 0x7f
               ? "the path holds an encoded control character" : NULL;
    }
}


/*
 * Finds the sandbox, the port and where the inner path begins, in the decoded
 * path as upstream does it.  Whatever upstream would take for the carrier is
 * found, be it spelt doubtfully, and then has to be spelt without doubt.
 */
static sb_rc_t
sb_route_carrier(sb_route_t *route, const sb_decoded_t *d, size_t *inner)
{
    size_t    i, id, end;
    sb_rc_t   rc;
    sb_str_t  path;

    path = sb_str(d->data, d->len);
    i = 0;

    if (sb_eq(path, sb_lit("/v1")) || sb_begins(path, 0, sb_lit("/v1/"))) {
        route->versioned = true;
        i = sizeof("/v1") - 1;
    }

    *inner = i;

    if (!sb_begins(path, i, sb_lit("/sandboxes/"))) {
        return SB_OK;
    }

    id = i + sizeof("/sandboxes/") - 1;
    end = sb_segment(path, id);

    if (!sb_begins(path, end, sb_lit("/proxy/"))) {
        return SB_OK;
    }

    route->proxied = true;
    route->op = &sb_op_table[SB_OP_PROXY_HTTP];
    route->surface = SB_SURFACE_PORT;

    rc = sb_route_clean(route, d, end);
    if (rc != SB_OK) {
        return rc;
    }

    route->sandbox = sb_str(d->data + id, end - id);

    i = end + sizeof("/proxy/") - 1;
    end = sb_segment(path, i);

    if (!sb_route_port(&route->port, sb_str(d->data + i, end - i))) {
        return sb_route_refuse(route, sb_bad_port);
    }

    return sb_route_unwrap(route, d, end, inner);
}


sb_rc_t
sb_route_unwrap(sb_route_t *route, const sb_decoded_t *d, size_t end,
    size_t *inner)
{
    size_t       i;
    sb_rc_t      rc;
    sb_str_t     path;
    const char  *p;

    path = sb_str(d->data, d->len);

    for ( ;; ) {
        sb_route_surface(route);

        /* the slash behind the port belongs to the carrier */

        rc = sb_route_clean(route, d, end < d->len ? end + 1 : end);
        if (rc != SB_OK) {
            return rc;
        }

        if (route->carrier_port == 0) {
            route->carrier_port = route->port;

            /* so far every escape stands for one character */

            p = d->raw.data;

            if (d->len == d->raw.len) {
                p += end;

            } else {
                for (size_t k = 0; k < end; k++) {
                    p += *p == '%' ? 3 : 1;
                }
            }

            route->rest = (size_t) (p - d->raw.data);

        } else if (++route->nested > SB_NESTED_MAX) {
            return sb_route_refuse(route, "the path holds more than four "
                                          "nested \"/proxy/\"");
        }

        if (route->port != SB_PORT_EXECD
            || !sb_begins(path, end, sb_lit("/proxy/")))
        {
            break;
        }

        i = end + sizeof("/proxy/") - 1;
        end = sb_segment(path, i);

        if (!sb_route_port(&route->port, sb_str(d->data + i, end - i))) {
            return sb_route_refuse(route, sb_bad_port);
        }
    }

    *inner = end;

    return SB_OK;
}


static void
sb_route_surface(sb_route_t *route)
{
    switch (route->port) {

    case SB_PORT_EXECD:
        route->surface = SB_SURFACE_EXECD;
        route->op = &sb_op_table[SB_OP_EXECD_UNKNOWN];
        break;

    case SB_PORT_EGRESS:
        route->surface = SB_SURFACE_EGRESS;
        route->op = &sb_op_table[SB_OP_EGRESS_UNKNOWN];
        break;

    default:
        route->surface = SB_SURFACE_PORT;
        route->op = &sb_op_table[SB_OP_PROXY_HTTP];
    }
}


sb_rc_t
sb_route_clean(sb_route_t *route, const sb_decoded_t *d, size_t n)
{
    if (d->dirty < n) {
        return sb_route_refuse(route, d->reason);
    }

    if (!d->utf8 && !sb_utf8_valid(sb_str(d->data, n))) {
        return sb_route_refuse(route, "the path is not valid UTF-8");
    }

    return SB_OK;
}


/*
 * Refuses a ".." segment behind a user port: in some deployments the port is a
 * part of the path that is sent on, and must not be climbed out of.  And a
 * second carrier: where sandboxes share upstream's network a port may be
 * upstream itself, whose server proxy asks nobody for a key.
 */
static sb_rc_t
sb_route_climb(sb_route_t *route, const sb_decoded_t *d, size_t inner)
{
    char        *dst, *out;
    size_t       end;
    sb_str_t     s;
    const char  *p, *last;

    s = sb_str(d->data + inner, d->len - inner);
    dst = d->data + d->len;

    for (unsigned n = 1; /* void */ ; n++) {

        for (size_t i = 0; i < s.len; i = end + 1) {
            end = sb_segment(s, i);

            if (sb_eq(sb_str(s.data + i, end - i), sb_lit(".."))) {
                return sb_route_refuse(route, "the path holds a \"..\" "
                                              "segment");
            }
        }

        if (sb_route_carried(s)) {
            return sb_route_refuse(route, "the path behind a port leads "
                                          "through another server proxy");
        }

        if (n == SB_DECODINGS || s.len == 0
            || memchr(s.data, '%', s.len) == NULL)
        {
            return SB_OK;
        }

        /* what this makes is looked at and forgotten */

        last = s.data + s.len;
        out = dst;

        for (p = s.data; p < last; out++) {
            if (sb_unescape(out, p, last)) {
                p += 3;

            } else {
                *out = *p++;
            }
        }

        s = sb_str(dst, (size_t) (out - dst));
    }
}


static bool
sb_route_carried(sb_str_t path)
{
    size_t  i;

    for (i = 0; i < path.len && path.data[i] == '/'; i++) {
        /* upstream takes all of them for one */
    }

    if (i == 0) {
        return false;
    }

    i--;

    if (sb_begins(path, i, sb_lit("/v1/"))) {
        i += sizeof("/v1") - 1;
    }

    if (!sb_begins(path, i, sb_lit("/sandboxes/"))) {
        return false;
    }

    i = sb_segment(path, i + sizeof("/sandboxes/") - 1);

    return sb_begins(path, i, sb_lit("/proxy/"));
}


static sb_rc_t
sb_route_row(sb_route_t *route, sb_str_t method, bool upgrade)
{
    char                    first, verb;
    size_t                  literal;
    sb_str_t                port;
    const sb_op_row_t      *row;
    const sb_route_rows_t  *rows;

    first = route->path.len > 1 ? route->path.data[1] : '\0';
    verb = method.len ? method.data[0] : '\0';

    rows = &sb_route_rows[route->surface][sb_route_letter(first)];

    for (size_t i = 0; i < rows->n; i++) {

        row = &sb_op_row_table[rows->rows[i]];
        literal = sb_route_literal[rows->rows[i]];

        if ((row->pattern[1] != first && row->pattern[1] != '*')
            || route->path.len < literal
            || (row->method[0] != '*'
                && (row->method[0] != verb
                    || !sb_eq(method, sb_str(row->method,
                                             strlen(row->method)))))
            || ((row->when & SB_OPC_ROOT) && route->versioned)
            || ((row->when & SB_OPC_UPGRADE) && !upgrade)
            || memcmp(route->path.data, row->pattern, literal) != 0
            || !sb_route_pattern(route, row->pattern, literal, &port))
        {
            continue;
        }

        if (port.len && !sb_route_port(&route->port, port)) {
            return sb_route_refuse(route, sb_bad_port);
        }

        route->op = row->op;

        return SB_OK;
    }

    /* not reached: every surface ends with a row that takes anything */

    return SB_ERROR;
}


/* The first `literal` bytes of both are the same. */
static bool
sb_route_pattern(sb_route_t *route, const char *pattern, size_t literal,
    sb_str_t *port)
{
    size_t       i, end;
    sb_str_t     path, sandbox, arg;
    const char  *name;

    path = route->path;
    sandbox = route->sandbox;
    arg = sb_str(NULL, 0);
    *port = arg;

    i = literal;
    pattern += literal;

    for ( ;; ) {

        switch (*pattern) {

        case '\0':
            if (i != path.len) {
                return false;
            }

            goto matched;

        case '*':
            goto matched;

        case '{':
            end = sb_segment(path, i);

            if (end == i) {
                return false;
            }

            name = pattern + 1;
            pattern = strchr(pattern, '}') + 1;

            if (strncmp(name, "id}", 3) == 0) {
                sandbox = sb_str(path.data + i, end - i);

            } else if (strncmp(name, "port}", 5) == 0) {
                *port = sb_str(path.data + i, end - i);

            } else {
                arg = sb_str(path.data + i, end - i);
            }

            i = end;
            break;

        default:
            if (i == path.len || path.data[i] != *pattern) {
                return false;
            }

            i++;
            pattern++;
        }
    }

matched:

    route->sandbox = sandbox;
    route->arg = arg;

    return true;
}


sb_rc_t
sb_route_refuse(sb_route_t *route, const char *reason)
{
    route->reason = reason;

    return SB_AMBIGUOUS;
}


/* Ports are numbers: leading zeros do not make another one. */
bool
sb_route_port(uint32_t *port, sb_str_t text)
{
    uint64_t  n;

    if (text.len == 0 || text.len > SB_PORT_DIGITS) {
        return false;
    }

    n = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }

        n = n * 10 + (uint64_t) (text.data[i] - '0');
    }

    if (n == 0 || n > 65535) {
        return false;
    }

    *port = (uint32_t) n;

    return true;
}


size_t
sb_segment(sb_str_t s, size_t i)
{
    const char  *slash;

    if (i >= s.len) {
        return s.len;
    }

    slash = memchr(s.data + i, '/', s.len - i);

    return slash == NULL ? s.len : (size_t) (slash - s.data);
}


static bool
sb_begins(sb_str_t s, size_t i, sb_str_t with)
{
    return s.len - i >= with.len
           && memcmp(s.data + i, with.data, with.len) == 0;
}
