#include "operation_table.h"
#include "digest.h"
#include "utf8.h"


const sb_op_row_t *
sb_op_rows(void)
{
    return sb_op_row_table;
}


const sb_op_t *
sb_op_find(sb_str_t name)
{
    for (size_t i = 0; i < SB_OP_COUNT; i++) {
        if (strncmp(sb_op_table[i].name, name.data, name.len) == 0
            && strlen(sb_op_table[i].name) == name.len)
        {
            return &sb_op_table[i];
        }
    }

    return NULL;
}


size_t
sb_op_count(void)
{
    return SB_OP_COUNT;
}


const sb_op_t *
sb_op_at(size_t i)
{
    return &sb_op_table[i];
}


size_t
sb_op_index(const sb_op_t *op)
{
    return (size_t) (op - sb_op_table);
}


bool
sb_op_viewer(const sb_op_t *op)
{
    return !(op->flags & (SB_OPF_MUTATES|SB_OPF_OPERATOR));
}


bool
sb_op_glob(sb_str_t glob, sb_str_t name)
{
    bool    starred;
    size_t  g, n, star, from;

    /* on a mismatch the last "*" takes one character more; earlier ones need
     * not be tried again, so this is quadratic at worst */

    g = 0;
    n = 0;
    star = 0;
    from = 0;
    starred = false;

    while (n < name.len) {

        if (g < glob.len && glob.data[g] == '*') {
            starred = true;
            star = ++g;
            from = n;

        } else if (g < glob.len && glob.data[g] == name.data[n]) {
            g++;
            n++;

        } else if (starred) {
            g = star;
            n = ++from;

        } else {
            return false;
        }
    }

    while (g < glob.len && glob.data[g] == '*') {
        g++;
    }

    return g == glob.len;
}


bool
sb_unescape(char *c, const char *p, const char *end)
{
    return *p == '%' && end - p >= 3
           && sb_unhex((uint8_t *) c, 1, sb_str(p + 1, 2)) == SB_OK;
}


bool
sb_query_next(sb_str_t *query, sb_str_t *name, sb_str_t *value)
{
    size_t       len;
    sb_str_t     pair;
    const char  *p;

    while (query->len) {
        p = memchr(query->data, '&', query->len);

        len = p == NULL ? query->len : (size_t) (p - query->data);
        pair = sb_str(query->data, len);

        if (p != NULL) {
            len++;
        }

        query->data += len;
        query->len -= len;

        if (pair.len == 0) {
            continue;
        }

        p = memchr(pair.data, '=', pair.len);

        if (p == NULL) {
            *name = pair;
            *value = sb_str(pair.data + pair.len, 0);

        } else {
            *name = sb_str(pair.data, (size_t) (p - pair.data));
            *value = sb_str(p + 1, pair.len - name->len - 1);
        }

        return true;
    }

    return false;
}


sb_rc_t
sb_query_decode(char *dst, size_t *len, sb_str_t src)
{
    char        *out;
    const char  *p, *end;

    out = dst;
    p = src.data;
    end = p + src.len;

    while (p < end) {

        switch (*p) {

        case '+':
            *out = ' ';
            p++;
            break;

        case '%':
            if (!sb_unescape(out, p, end)) {
                return SB_AMBIGUOUS;
            }

            p += 3;
            break;

        case ';':
            return SB_AMBIGUOUS;

        case '\0':
            return SB_AMBIGUOUS;

        default:
            *out++ = *p++;
            continue;
        }

        if (*out++ == '\0') {
            return SB_AMBIGUOUS;
        }
    }

    *len = (size_t) (out - dst);

    return sb_utf8_valid(sb_str(dst, *len)) ? SB_OK : SB_AMBIGUOUS;
}
