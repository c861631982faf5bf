/* Frames and directories for the tests of helper/. */

#ifndef HELPER_FRAMES_H_INCLUDED
#define HELPER_FRAMES_H_INCLUDED

#include "frame.h"
#include "journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define T0  1795942800000000u       /* 2026-11-29T09:00:00Z */

/* Processes are killed here, machines are not: what is written is there, and
 * waiting for the disk would only take minutes. */
static void  (*tdir_synced)(int fd);    /* or NULL: what is to be flushed */


int
fsync(int fd)
{
    if (tdir_synced) {
        tdir_synced(fd);
    }

    return 0;
}


/* Or what a test has in its place. */
static int  (*flush_hook)(int fd);

int
fdatasync(int fd)
{
    return flush_hook ? flush_hook(fd) : fsync(fd);
}


/* One frame in memory, written field by field. */
typedef struct {
    char               mem[128 * 1024];
    sb_frame_writer_t  w;
    size_t             len;
} tframe_t;


static inline void
tf_id(uint8_t id[16], unsigned n)
{
    memset(id, 0, 16);
    id[0] = 0x01;
    id[6] = 0x70;
    id[8] = 0x80;
    id[12] = (uint8_t) (n >> 24);
    id[13] = (uint8_t) (n >> 16 & 0xff);
    id[14] = (uint8_t) (n >> 8 & 0xff);
    id[15] = (uint8_t) (n & 0xff);
}


/* Begins a frame of operation n (0: none) at T0 + at_us. */
static inline void
tf_begin(tframe_t *f, uint8_t type, uint8_t flags, uint64_t seq, unsigned n,
    uint64_t at_us)
{
    uint8_t  id[16];

    tf_id(id, n);

    if (n == 0) {
        memset(id, 0, 16);
    }

    sb_frame_begin(&f->w, f->mem, sizeof(f->mem), type, flags, seq, id,
                   T0 + at_us);
}


static inline void
tf_str(tframe_t *f, uint16_t tag, const char *text)
{
    sb_frame_put(&f->w, tag, sb_str(text, strlen(text)));
}


static inline void
tf_u64(tframe_t *f, uint16_t tag, uint64_t v)
{
    sb_frame_put_u64(&f->w, tag, v);
}


static inline size_t
tf_end(tframe_t *f)
{
    f->len = sb_frame_end(&f->w);
    assert_true(f->len != 0);

    return f->len;
}


/* A private directory below /tmp. */
static inline void
tdir_make(char path[64])
{
    (void) strcpy(path, "/tmp/sandbox-unit-XXXXXX");
    assert_non_null(mkdtemp(path));
}


static inline void
tdir_remove(const char *path)
{
    DIR            *d;
    char           *sub;
    struct stat     st;
    struct dirent  *e;

    d = opendir(path);

    while (d && (e = readdir(d)) != NULL) {

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }

        assert_true(asprintf(&sub, "%s/%s", path, e->d_name) > 0);

        if (lstat(sub, &st) == 0 && S_ISDIR(st.st_mode)) {
            tdir_remove(sub);
        } else {
            (void) unlink(sub);
        }

        free(sub);
    }

    if (d) {
        closedir(d);
    }

    (void) rmdir(path);
}


static inline int
tdir_open(const char *path)
{
    int  fd;

    (void) mkdir(path, 0700);
    fd = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    assert_true(fd != -1);

    return fd;
}

#endif /* HELPER_FRAMES_H_INCLUDED */
