/* How far the heads of each file reach (heads.h). */

#include "heads.h"

#include "table.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define HEADS_KNOWN  65536      /* files remembered */

typedef struct {
    table_node_t  node;
    int64_t       n;
    int64_t       proven;
    char          dir[];
} heads_known_file_t;

struct heads_known_s {
    table_t  files;
};


void
heads_known_set(heads_known_t *k, const char *dir, int64_t n, int64_t proven)
{
    size_t               len;
    heads_known_file_t  *f;

    len = strlen(dir);
    f = table_find(&k->files, dir, len);

    if (f == NULL) {
        if (k->files.count >= HEADS_KNOWN) {
            return;
        }

        f = malloc(sizeof(heads_known_file_t) + len + 1);
        if (f == NULL) {
            return;
        }

        memcpy(f->dir, dir, len + 1);

        if (table_add(&k->files, &f->node, f->dir, len) != SB_OK) {
            free(f);
            return;
        }
    }

    f->n = n;
    f->proven = proven;
}


bool
heads_known_any(const heads_known_t *k, const char *dir)
{
    const heads_known_file_t  *f;

    f = table_find(&k->files, dir, strlen(dir));

    return f && f->n > 0;
}


int64_t
heads_known_proven(const heads_known_t *k, const char *dir)
{
    const heads_known_file_t  *f;

    f = table_find(&k->files, dir, strlen(dir));

    if (f == NULL || f->n == 0) {
        return -1;
    }

    /* what an earlier version signed ends there */
    return f->proven < 0 ? f->n : f->proven;
}


bool
heads_known_behind(const heads_known_t *k, const char *dir, int64_t n)
{
    const heads_known_file_t  *f;

    f = table_find(&k->files, dir, strlen(dir));

    /* one that found no room counts as signed: it is with its next news */
    return f ? f->n < n : k->files.count < HEADS_KNOWN;
}


heads_known_t *
heads_known_new(int dirfd)
{
    int             fd;
    FILE           *in;
    char           *line;
    head_t          head;
    size_t          size;
    ssize_t         n;
    heads_known_t  *k;

    k = calloc(1, sizeof(heads_known_t));
    if (k == NULL) {
        return NULL;
    }

    fd = openat(dirfd, HEADS_FILE, O_RDONLY|O_NOFOLLOW|O_CLOEXEC);
    in = fd == -1 ? NULL : fdopen(fd, "r");

    if (in == NULL) {
        if (fd != -1) {
            close(fd);
        }

        return k;
    }

    line = NULL;
    size = 0;

    while ((n = getline(&line, &size, in)) > 0) {
        if (line[n - 1] == '\n'
            && heads_parse(sb_str(line, (size_t) n - 1), NULL, &head) == SB_OK)
        {
            heads_known_set(k, head.dir, head.ended ? 0 : head.n,
                            head.proven);
        }
    }

    free(line);
    (void) fclose(in);

    return k;
}


static void
heads_known_drop(void *entry, void *data)
{
    heads_known_t       *k = data;
    heads_known_file_t  *f = entry;

    table_remove(&k->files, &f->node);
    free(f);
}


void
heads_known_free(heads_known_t *k)
{
    if (k) {
        table_each(&k->files, heads_known_drop, k);
        table_free(&k->files);
        free(k);
    }
}
