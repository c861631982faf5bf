#include "settled.h"

#include "schema.h"

#include <pthread.h>
#include <string.h>


static pthread_mutex_t  settled_lock = PTHREAD_MUTEX_INITIALIZER;
static settled_t        settled_now = { .polls = UINT64_MAX,
                                        .all = UINT64_MAX };


void
settled_init(settled_t *s)
{
    memset(s, 0, sizeof(settled_t));
    s->polls = UINT64_MAX;
    s->all = UINT64_MAX;
}


void
settled_add(settled_t *s, const char *dir, uint64_t cursor)
{
    unsigned  i;

    if (cursor < s->all) {
        s->all = cursor;
    }

    for (i = 0; i < s->n && strcmp(s->files[i].dir, dir) != 0; i++) {
        /* void */
    }

    if (i == SETTLED_FILES) {
        s->more = true;
        return;
    }

    if (i == s->n) {
        s->n++;
        (void) strcpy(s->files[i].dir, dir);
        s->files[i].cursor = cursor;

    } else if (cursor < s->files[i].cursor) {
        s->files[i].cursor = cursor;
    }
}


void
settled_add_poll(settled_t *s, uint64_t cursor)
{
    if (cursor < s->polls) {
        s->polls = cursor;
    }
}


uint64_t
settled_files(const settled_t *s, const char *dir)
{
    unsigned  i;
    uint64_t  cursor;

    if (dir == NULL || s->more) {
        return s->all;
    }

    cursor = UINT64_MAX;

    for (i = 0; i < s->n; i++) {
        if ((strcmp(s->files[i].dir, dir) == 0
             || strcmp(s->files[i].dir, SCHEMA_GATEWAY) == 0)
            && s->files[i].cursor < cursor)
        {
            cursor = s->files[i].cursor;
        }
    }

    return cursor;
}


uint64_t
settled_to(const settled_t *s, const char *dir)
{
    uint64_t  cursor;

    cursor = settled_files(s, dir);

    return cursor < s->polls ? cursor : s->polls;
}


void
settled_put(const settled_t *s)
{
    pthread_mutex_lock(&settled_lock);
    settled_now = *s;
    pthread_mutex_unlock(&settled_lock);
}


void
settled_get(settled_t *s)
{
    pthread_mutex_lock(&settled_lock);
    *s = settled_now;
    pthread_mutex_unlock(&settled_lock);
}
