/* Live credentials in texts (secret.h). */

#include "secret.h"
#include "digest.h"

#define SB_SECRET_RANDOM  43        /* base64url of 32 bytes */
#define SB_SECRET_TRIES   64        /* forged ones of one text */
#define SB_SECRET_LEAST   8
#define SB_SECRET_ALONE   16
/* base64url of as many bytes as tell the credential of an endpoint token */
#define SB_SECRET_CLAIMS  48


typedef struct {
    const sb_secrets_t  *s;
    uint64_t             now_us;
    unsigned             tries;
    const char          *run;       /* where claims end that were looked at */
} sb_secret_scan_t;


static bool
sb_secret_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9') || c == '-' || c == '_';
}


static bool
sb_secret_letter(char c)
{
    return sb_secret_char(c) && c != '-' && c != '_';
}


/* How many characters of base64url stand at i, at most max. */
static size_t
sb_secret_run(sb_str_t s, size_t i, size_t max)
{
    size_t  start;

    for (start = i; i < s.len && i - start < max; i++) {
        if (!sb_secret_char(s.data[i])) {
            break;
        }
    }

    return i - start;
}


/* The end of the id behind "sbx_"; s.len when the text ends in it, 0 when none
 * stands there. */
static size_t
sb_secret_id(sb_str_t s)
{
    size_t  i;

    for (i = 4; i < s.len; i++) {
        if (!((s.data[i] >= 'a' && s.data[i] <= 'z')
              || (s.data[i] >= '0' && s.data[i] <= '9')))
        {
            return i > 4 && s.data[i] == '_' ? i : 0;
        }

        if (i - 4 == SB_TOKEN_ID_MAX) {
            return 0;
        }
    }

    return s.len;
}


static bool
sb_secret_known(const sb_secrets_t *s, sb_str_t id, uint64_t now_us)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->sets[i].tokens
            && sb_token_find(s->sets[i].tokens, id, now_us))
        {
            return true;
        }
    }

    return false;
}


/* Sessions of people and tickets of user ports have the form of tokens.  Which of
 * them live is known to nginx alone: each counts as one that does. */
static bool
sb_secret_form(sb_str_t id)
{
    return sb_eq(id, sb_lit("session")) || sb_eq(id, sb_lit("port"));
}


static bool
sb_secret_live(const sb_secrets_t *s, sb_str_t id, uint64_t now_us)
{
    return sb_secret_form(id) || sb_secret_known(s, id, now_us);
}


/* Does an endpoint token with such claims, or with more of them, name an
 * existing credential?  Unless it is too short to tell. */
static bool
sb_secret_claims(const sb_secrets_t *s, sb_str_t claims, uint64_t now_us)
{
    size_t   n;
    uint8_t  head[SB_SECRET_CLAIMS];

    if (claims.len > 1
        && (claims.data[0] != 'A'
            || claims.data[1] < 'Q' || claims.data[1] > 'S'))
    {
        return false;
    }

    if (claims.len > SB_SECRET_CLAIMS) {
        claims.len = SB_SECRET_CLAIMS;
    }

    claims.len -= claims.len % 4;

    if (sb_unb64url(head, &n, claims) != SB_OK) {
        return false;
    }

    if (n < 2 || n < (size_t) 2 + head[1]) {
        return true;
    }

    return sb_secret_known(s, sb_str(head + 2, head[1]), now_us);
}


/* The length of a live token that s begins with, *from its secret part. */
static size_t
sb_secret_token(sb_secret_scan_t *c, sb_str_t s, size_t *from)
{
    bool    form;
    size_t  id, i;

    id = sb_secret_id(s);

    if (id == 0 || id == s.len
        || sb_secret_run(s, id + 1, SB_SECRET_RANDOM) < SB_SECRET_RANDOM
        || !sb_secret_live(c->s, sb_str(s.data + 4, id - 4), c->now_us))
    {
        return 0;
    }

    *from = id + 1;
    form = sb_secret_form(sb_str(s.data + 4, id - 4));
    s.len = id + 1 + SB_SECRET_RANDOM;

    if (form || c->tries == SB_SECRET_TRIES) {
        return s.len;
    }

    for (i = 0; i < c->s->n; i++) {
        if (c->s->sets[i].tokens
            && sb_token_check(c->s->sets[i].tokens, s, c->now_us))
        {
            return s.len;
        }
    }

    c->tries++;

    return 0;
}


static size_t
sb_secret_endpoint(sb_secret_scan_t *c, sb_str_t s, size_t *from)
{
    char                 buf[SB_ENDPOINT_TOKEN_MAX];
    size_t               n, i;
    sb_endpoint_token_t  e;

    /* claims within others end where these do: that is looked for once */

    if (c->run == NULL || c->run < s.data + 4) {
        c->run = s.data + 4 + sb_secret_run(s, 4, s.len);
    }

    n = (size_t) (c->run - s.data);

    if (n == 4 || n + 1 + SB_SECRET_RANDOM > s.len
        || n + 1 + SB_SECRET_RANDOM >= SB_ENDPOINT_TOKEN_MAX
        || s.data[n] != '.'
        || sb_secret_run(s, n + 1, SB_SECRET_RANDOM) < SB_SECRET_RANDOM
        || !sb_secret_claims(c->s, sb_str(s.data + 4, n - 4), c->now_us))
    {
        return 0;
    }

    *from = 4;
    s.len = n + 1 + SB_SECRET_RANDOM;

    if (c->tries == SB_SECRET_TRIES) {
        return s.len;
    }

    for (i = 0; i < c->s->n; i++) {
        if (c->s->sets[i].tokens
            && sb_endpoint_token_check(&e, c->s->sets[i].tokens, s, c->now_us,
                                       buf)
               == SB_OK)
        {
            return s.len;
        }
    }

    c->tries++;

    return 0;
}


/* Where "sbx_" or "sbe_" stands, at p or behind it. */
static char *
sb_secret_next(char *p, char *end, const char *start)
{
    while ((p = memchr(p, '_', (size_t) (end - p))) != NULL) {
        if (p - start >= 3 && p[-3] == 's' && p[-2] == 'b'
            && (p[-1] == 'x' || p[-1] == 'e'))
        {
            return p - 3;
        }

        p++;
    }

    return NULL;
}


/* The next place of a key.  memmem() prepares a table for every call, which
 * costs more than to look through the few hundred bytes of a frame. */
static char *
sb_secret_key_next(sb_str_t key, char *p, char *end)
{
    char  *last;

    if ((size_t) (end - p) < key.len) {
        return NULL;
    }

    last = end - key.len + 1;

    while ((p = memchr(p, key.data[0], (size_t) (last - p))) != NULL) {

        if (memcmp(p, key.data, key.len) == 0) {
            return p;
        }

        p++;
    }

    return NULL;
}


static size_t
sb_secret_key(sb_str_t key, char *p, size_t n)
{
    char    *end = p + n, *at, *start = p;
    size_t   count = 0;

    if (key.len < SB_SECRET_LEAST) {
        return 0;
    }

    while ((at = sb_secret_key_next(key, p, end)) != NULL) {

        p = at + key.len;

        if (key.len < SB_SECRET_ALONE
            && ((at > start && sb_secret_letter(at[-1]))
                || (p < end && sb_secret_letter(*p))))
        {
            p = at + 1;
            continue;
        }

        memset(at, '*', key.len);
        count++;
    }

    return count;
}


size_t
sb_secrets_mask(const sb_secrets_t *s, char *p, size_t n, uint64_t now_us)
{
    char              *at, *end = p + n, *from = p;
    size_t             len, shown = 0, count = 0;
    sb_str_t           text;
    sb_secret_scan_t   c = { s, now_us, 0, NULL };

    for (size_t i = 0; i < s->n; i++) {
        count += sb_secret_key(s->sets[i].key, p, n);
        count += sb_secret_key(s->sets[i].key_json, p, n);
    }

    while ((at = sb_secret_next(from, end, p)) != NULL) {

        text = sb_str(at, (size_t) (end - at));
        len = at[2] == 'x' ? sb_secret_token(&c, text, &shown)
                           : sb_secret_endpoint(&c, text, &shown);

        if (len) {
            memset(at + shown, '*', len - shown);
            from = at + len;
            count++;

        } else {
            from = at + 4;
        }
    }

    return count;
}


bool
sb_secrets_like(sb_str_t key, sb_str_t text)
{
    char        *at, *from = (char *) (uintptr_t) text.data;
    char        *end = from + text.len;
    size_t       n;
    sb_str_t     s;
    const char  *run = NULL;

    if (text.len == 0) {
        return false;
    }

    if (key.len >= SB_SECRET_LEAST && sb_secret_key_next(key, from, end)) {
        return true;
    }

    while ((at = sb_secret_next(from, end, text.data)) != NULL) {
        s = sb_str(at, (size_t) (end - at));
        from = at + 4;

        if (at[2] == 'x') {
            n = sb_secret_id(s);

        } else {

            if (run == NULL || run < from) {
                run = from + sb_secret_run(s, 4, s.len);
            }

            n = run > from && run < end && *run == '.' ? (size_t) (run - at)
                                                       : 0;
        }

        if (n && n < s.len
            && sb_secret_run(s, n + 1, SB_SECRET_RANDOM) == SB_SECRET_RANDOM)
        {
            return true;
        }
    }

    return false;
}


/* Could s go on as a token? */
static bool
sb_secret_begun(const sb_secrets_t *s, sb_str_t text)
{
    size_t  i;

    static const char  *prefix[] = { "sbx_", "sbe_" };

    for (i = 0; i < 2; i++) {
        if (memcmp(text.data, prefix[i], text.len < 4 ? text.len : 4) == 0) {
            break;
        }
    }

    if (i == 2) {
        return false;
    }

    if (text.len <= 4) {
        return true;
    }

    if (text.data[2] == 'x') {
        i = sb_secret_id(text);

        if (i == 0 || i == text.len) {
            return i != 0;
        }

        return text.len - i - 1 < SB_SECRET_RANDOM
               && sb_secret_run(text, i + 1, SB_SECRET_RANDOM)
                  == text.len - i - 1
               && sb_secret_live(s, sb_str(text.data + 4, i - 4), 0);
    }

    i = 4 + sb_secret_run(text, 4, text.len);

    if (i < text.len
        && (text.data[i] != '.' || text.len - i - 1 >= SB_SECRET_RANDOM
            || sb_secret_run(text, i + 1, text.len) < text.len - i - 1))
    {
        return false;
    }

    return sb_secret_claims(s, sb_str(text.data + 4, i - 4), 0);
}


static size_t
sb_secret_key_open(sb_str_t key, sb_str_t text)
{
    size_t       n;
    const char  *p, *end = text.data + text.len;

    if (key.len < SB_SECRET_LEAST) {
        return 0;
    }

    n = text.len < key.len ? text.len : key.len - 1;

    for (p = end - n; p < end; p++) {
        p = memchr(p, key.data[0], (size_t) (end - p));

        if (p == NULL) {
            return 0;
        }

        if (memcmp(p, key.data, (size_t) (end - p)) == 0) {
            return (size_t) (end - p);
        }
    }

    return 0;
}


size_t
sb_secrets_open(const sb_secrets_t *s, sb_str_t text)
{
    size_t       n, open = 0;
    const char  *p, *end;

    if (text.len >= SB_SECRET_MAX) {
        text.data += text.len - (SB_SECRET_MAX - 1);
        text.len = SB_SECRET_MAX - 1;
    }

    end = text.data + text.len;

    /* the first that goes on to the end is the longest */

    for (p = text.data; p < end; p++) {
        p = memchr(p, 's', (size_t) (end - p));

        if (p == NULL) {
            break;
        }

        if (sb_secret_begun(s, sb_str(p, (size_t) (end - p)))) {
            open = (size_t) (end - p);
            break;
        }
    }

    for (size_t i = 0; i < s->n; i++) {
        n = sb_secret_key_open(s->sets[i].key, text);
        open = n > open ? n : open;
        n = sb_secret_key_open(s->sets[i].key_json, text);
        open = n > open ? n : open;
    }

    return open;
}


static bool
sb_secret_text(uint16_t tag)
{
    switch (tag) {

    case SB_T_REASON:
    case SB_T_PATH:
    case SB_T_AGENT:
    case SB_T_REQUEST_ID:
    case SB_T_ACTOR_TYPE:
    case SB_T_ACTOR_ID:
    case SB_T_THREAD:
    case SB_T_RUN:
    case SB_T_CORRELATION:
    case SB_T_PARENT:
    case SB_T_REQUEST:
    case SB_T_COMMAND:
    case SB_T_CWD:
    case SB_T_NAME:
    case SB_T_INSTANCE_ID:
    case SB_T_FILE_PATH:
    case SB_T_FILE_OLD:
    case SB_T_COMMAND_ID:
    case SB_T_RESULT:
    case SB_T_ERROR_CODE:
        return true;

    default:
        return false;
    }
}


/* Is there anything in the frame to look for?  Nearly never. */
static bool
sb_secret_any(const sb_secrets_t *s, char *p, size_t n)
{
    if (sb_secret_next(p, p + n, p)) {
        return true;
    }

    for (size_t i = 0; i < s->n; i++) {
        if ((s->sets[i].key.len >= SB_SECRET_LEAST
             && sb_secret_key_next(s->sets[i].key, p, p + n))
            || (s->sets[i].key_json.len
                && sb_secret_key_next(s->sets[i].key_json, p, p + n)))
        {
            return true;
        }
    }

    return false;
}


size_t
sb_secrets_frame(const sb_secrets_t *s, void *frame, size_t len,
    uint64_t now_us)
{
    bool         any;
    char        *value;
    size_t       n, request = 0, body = 0, count = 0;
    uint8_t      type;
    uint16_t     tag;
    sb_str_t     fields, v;

    if (sb_frame_fields(frame, len, &type, &fields) != SB_OK) {
        return 0;
    }

    any = sb_secret_any(s, frame, len);

    if (!any && type != SB_F_FACTS && type != SB_F_BEGIN) {
        return 0;
    }

    while (sb_field_next(&fields, &tag, &v)) {

        if (!any && tag != SB_T_REQUEST && tag != SB_T_COMMAND) {
            continue;
        }

        value = (char *) frame + (v.data - (const char *) frame);

        n = any && sb_secret_text(tag)
            ? sb_secrets_mask(s, value, v.len, now_us) : 0;

        switch (tag) {

        case SB_T_REQUEST:
            request += n + sb_secrets_named(value, v.len);
            break;

        case SB_T_COMMAND:
            body += n + sb_secrets_named(value, v.len);
            break;

        case SB_T_CWD:
        case SB_T_NAME:
        case SB_T_INSTANCE_ID:
        case SB_T_FILE_PATH:
        case SB_T_FILE_OLD:
            body += n;
            break;

        default:
            count += n;
        }
    }

    /* the request says once more what other fields say */

    return count + (request > body ? request : body);
}
