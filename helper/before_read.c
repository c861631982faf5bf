/* Reads the question for a file, which is to become a request: nothing of it may
 * lead elsewhere, or end a line. */

#include "before_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define BEFORE_URL      8192
#define BEFORE_LINE     8192        /* of the request's head */
#define BEFORE_LINES    8


static bool
before_clean(sb_str_t s, unsigned char least, size_t max)
{
    size_t  i;

    if (s.len == 0 || s.len > max) {
        return false;
    }

    for (i = 0; i < s.len; i++) {
        if ((unsigned char) s.data[i] < least || s.data[i] == 0x7f) {
            return false;
        }
    }

    return true;
}


static bool
before_line(struct curl_slist **list, const char *prefix, sb_str_t text)
{
    char                line[BEFORE_LINE + 8];
    struct curl_slist  *more;

    (void) snprintf(line, sizeof(line), "%s%.*s", prefix, (int) text.len,
                    text.data);

    more = curl_slist_append(*list, line);
    explicit_bzero(line, sizeof(line));

    if (more) {
        *list = more;
    }

    return more != NULL;
}


static bool
before_url(before_job_t *job, sb_str_t upstream, sb_str_t target)
{
    if (!before_clean(upstream, 0x21, 1024) || !before_clean(target, 0x21,
                                                             BEFORE_URL)
        || target.data[0] != '/'
        || (strncmp(upstream.data, "http://", 7) != 0
            && strncmp(upstream.data, "https://", 8) != 0)
        || memchr(upstream.data, '@', upstream.len)
        || memchr(upstream.data, '?', upstream.len)
        || memchr(upstream.data, '#', upstream.len))
    {
        return false;
    }

    return asprintf(&job->url, "%.*s%.*s", (int) upstream.len, upstream.data,
                    (int) target.len, target.data) != -1;
}


bool
before_read(before_job_t *job, const sb_frame_t *f)
{
    bool      ok;
    size_t    lines;
    uint16_t  tag;
    sb_str_t  fields, value, upstream, target;

    fields = f->fields;
    upstream = sb_str(NULL, 0);
    target = sb_str(NULL, 0);
    lines = 0;
    ok = true;

    while (ok && sb_field_next(&fields, &tag, &value)) {

        switch (tag) {

        case SB_T_UPSTREAM:
            upstream = value;
            break;

        case SB_T_TARGET:
            target = value;
            break;

        case SB_T_ADDRESS:
            ok = job->to == NULL && before_clean(value, 0x21, 256)
                 && before_line(&job->to, "::", value);
            break;

        case SB_T_HEADER:
            ok = ++lines <= BEFORE_LINES
                 && before_clean(value, 0x20, BEFORE_LINE)
                 && before_line(&job->head, "", value);
            break;

        case SB_T_SANDBOX:
            free(job->sandbox);
            job->sandbox = strndup(value.data, value.len);
            break;

        case SB_T_FILE_PATH:
            free(job->path);
            job->path = strndup(value.data, value.len);
            break;

        default:
            break;
        }
    }

    return ok && job->path && before_url(job, upstream, target);
}
