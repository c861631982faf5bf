/* Parameters of Content-Type and Content-Disposition values. */

#include "multipart.h"
#include "multipart_head.h"


#define SB_BOUNDARY_MAX  70


static const char  sb_why_disposition[] =
    "A part's Content-Disposition is malformed: send form-data with a quoted "
    "name and filename.";

static const char  sb_why_star[] =
    "A part's Content-Disposition uses an extended parameter that may be read "
    "in several ways: send plain name and filename.";

static const char  sb_why_name[] =
    "A part's name holds a backslash, which may be read in several ways: send "
    "a plain name.";


static bool
sb_token_char(char c)
{
    return c > 0x20 && c < 0x7f && memchr("()<>@,;:\\\"/[]?=", c, 15) == NULL;
}


bool
sb_token_chars(sb_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len; i++) {
        if (!sb_token_char(s.data[i])) {
            return false;
        }
    }

    return s.len != 0;
}


static void
sb_skip(sb_str_t *s, size_t n)
{
    s->data += n;
    s->len -= n;
}


static void
sb_skip_blanks(sb_str_t *s)
{
    while (s->len && (s->data[0] == ' ' || s->data[0] == '\t')) {
        sb_skip(s, 1);
    }
}


static sb_str_t
sb_take_token(sb_str_t *s)
{
    size_t    n = 0;
    sb_str_t  token;

    while (n < s->len && sb_token_char(s->data[n])) {
        n++;
    }

    token = sb_str(s->data, n);
    sb_skip(s, n);

    return token;
}


/* Behind the opening quote; false when it is never closed. */
static bool
sb_take_quoted(sb_str_t *s, sb_str_t *value)
{
    size_t  n;

    for (n = 0; n < s->len && s->data[n] != '"'; n++) {

        /* A backslash hides the quote behind it; before a letter it stands for
         * itself, as old browsers send it. */

        if (s->data[n] == '\\' && n + 1 < s->len
            && (s->data[n + 1] == '"' || s->data[n + 1] == '\\'))
        {
            n++;
        }
    }

    if (n >= s->len) {
        return false;
    }

    *value = sb_str(s->data, n);
    sb_skip(s, n + 1);

    return true;
}


/* One step over "; key=value": SB_OK, SB_DECLINED at the end, or SB_ERROR.
 * `quoted` tells the form; the value has no quotes, its backslashes stay. */
static sb_rc_t
sb_param_next(sb_str_t *rest, sb_str_t *key, sb_str_t *value, bool *quoted)
{
    sb_skip_blanks(rest);

    if (rest->len == 0) {
        return SB_DECLINED;
    }

    if (rest->data[0] != ';') {
        return SB_ERROR;
    }

    sb_skip(rest, 1);
    sb_skip_blanks(rest);

    *key = sb_take_token(rest);

    if (key->len == 0 || rest->len == 0 || rest->data[0] != '=') {
        return SB_ERROR;
    }

    sb_skip(rest, 1);

    *quoted = rest->len && rest->data[0] == '"';

    if (*quoted) {
        sb_skip(rest, 1);
        return sb_take_quoted(rest, value) ? SB_OK : SB_ERROR;
    }

    *value = sb_take_token(rest);

    return value->len ? SB_OK : SB_ERROR;
}


static bool
sb_boundary_chars(sb_str_t s)
{
    char    c;
    size_t  i;

    for (i = 0; i < s.len; i++) {
        c = s.data[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')
              || (c >= 'A' && c <= 'Z')
              || (c && memchr("'()+_,-./:=? ", c, 13) != NULL)))
        {
            return false;
        }
    }

    return s.len && s.len <= SB_BOUNDARY_MAX && s.data[s.len - 1] != ' ';
}


sb_rc_t
sb_multipart_boundary(sb_str_t content_type, sb_str_t *boundary)
{
    bool      found = false, quoted;
    size_t    n;
    sb_rc_t   rc;
    sb_str_t  rest = content_type, key, value;
    static const char  type[] = "multipart/form-data";

    /* Go trims Unicode's blanks and folds Unicode's letters: what is no
     * multipart/form-data here may be one there */

    for (n = 0; n < content_type.len; n++) {
        if (((uint8_t) content_type.data[n] < 0x20
             && content_type.data[n] != '\t')
            || (uint8_t) content_type.data[n] >= 0x7f)
        {
            return SB_AMBIGUOUS;
        }
    }

    sb_skip_blanks(&rest);

    n = sizeof(type) - 1;

    if (rest.len < n || !sb_ieq(sb_str(rest.data, n), sb_str(type, n))) {
        return SB_DECLINED;
    }

    sb_skip(&rest, n);

    if (rest.len && rest.data[0] != ';' && rest.data[0] != ' '
        && rest.data[0] != '\t')
    {
        return SB_DECLINED;     /* a longer type */
    }

    while ((rc = sb_param_next(&rest, &key, &value, &quoted)) == SB_OK) {

        if (key.len < 8 || !sb_ieq(sb_str(key.data, 8), sb_lit("boundary"))) {
            continue;
        }

        /* boundary*, boundary*0 and the like are other spellings of it */

        if (found || key.len != 8 || !sb_boundary_chars(value)) {
            return SB_AMBIGUOUS;
        }

        *boundary = value;
        found = true;
    }

    if (rc != SB_DECLINED) {
        return SB_AMBIGUOUS;
    }

    return found ? SB_OK : SB_DECLINED;
}


/* utf-8''text, as some clients send it behind a plain filename. */
static bool
sb_extended_filename(sb_str_t value)
{
    size_t  i;

    if (value.len < 8 || !sb_ieq(sb_str(value.data, 7), sb_lit("utf-8''"))) {
        return false;
    }

    for (i = 7; i < value.len; i++) {
        if (!sb_token_char(value.data[i]) || value.data[i] == '\''
            || value.data[i] == '*')
        {
            return false;
        }

        /* a sequence that is broken, or gives a NUL */

        if (value.data[i] == '%'
            && (value.len - i < 3
                || memchr("0123456789abcdefABCDEF", value.data[i + 1], 22)
                   == NULL
                || memchr("0123456789abcdefABCDEF", value.data[i + 2], 22)
                   == NULL
                || memcmp(value.data + i, "%00", 3) == 0))
        {
            return false;
        }
    }

    return true;
}


static sb_rc_t
sb_disposition_param(sb_disposition_t *d, sb_str_t key, sb_str_t value,
    bool *extended, const char **why)
{
    *why = sb_why_disposition;

    if (sb_ieq(key, sb_lit("name"))) {
        if (d->has_name) {
            return SB_ERROR;
        }

        if (memchr(value.data, '\\', value.len)) {
            *why = sb_why_name;
            return SB_AMBIGUOUS;
        }

        d->name = value;
        d->has_name = true;

        return SB_OK;
    }

    if (sb_ieq(key, sb_lit("filename"))) {
        if (d->filename.data) {
            return SB_ERROR;
        }

        d->filename = value;
        d->has_filename = d->has_filename || value.len;

        return SB_OK;
    }

    if (sb_ieq(key, sb_lit("filename*"))) {
        if (*extended) {
            return SB_ERROR;
        }

        if (!sb_extended_filename(value)) {
            *why = sb_why_star;
            return SB_AMBIGUOUS;
        }

        *extended = true;
        d->has_filename = true;

        return SB_OK;
    }

    /* name*, filename*0*, and what else could give these a second value */

    if (memchr(key.data, '*', key.len)) {
        *why = sb_why_star;
        return SB_AMBIGUOUS;
    }

    return SB_OK;
}


sb_rc_t
sb_disposition_read(sb_disposition_t *d, sb_str_t value, const char **why)
{
    bool      quoted, extended = false;
    size_t    i;
    sb_rc_t   rc;
    sb_str_t  type, key, v;

    memset(d, 0, sizeof(*d));
    *why = sb_why_disposition;

    for (i = 0; i < value.len; i++) {
        if (((uint8_t) value.data[i] < 0x20 && value.data[i] != '\t')
            || value.data[i] == 0x7f)
        {
            return SB_ERROR;
        }
    }

    type = sb_take_token(&value);

    if (!sb_ieq(type, sb_lit("form-data"))) {
        return SB_ERROR;
    }

    while ((rc = sb_param_next(&value, &key, &v, &quoted)) == SB_OK) {
        rc = sb_disposition_param(d, key, v, &extended, why);

        if (rc != SB_OK) {
            return rc;
        }
    }

    *why = sb_why_disposition;

    if (rc != SB_DECLINED || !d->has_name || d->name.len == 0) {
        return SB_ERROR;
    }

    return SB_OK;
}
