/*
 * A journal segment of any bytes: opening never fails for them, what is found
 * is whole, and after opening once the same is found again, with nothing to
 * cut.  What is applied from it makes a sound database or none.
 */

#include "apply.h"
#include "inflight.h"
#include "journal.h"
#include "log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


typedef struct {
    unsigned     n;
    uint64_t     last;
    inflight_t  *inflight;
} fuzz_t;


static void
fuzz_scan(void *data, const journal_record_t *r)
{
    fuzz_t  *f = data;

    if (f->n++ && r->cursor <= f->last) {
        abort();
    }

    if (r->frame.length < SB_FRAME_HEAD || r->frame.length > SB_FRAME_MAX) {
        abort();
    }

    f->last = r->cursor;
    inflight_note(f->inflight, r->instance, &r->frame);
}


static journal_t *
fuzz_open(int dir, fuzz_t *f)
{
    char        why[256];
    journal_t  *j;

    f->n = 0;
    f->inflight = inflight_new(1000000);

    j = journal_open(dir, JOURNAL_SEGMENT, 0, 0, fuzz_scan, f, why,
                     sizeof(why));

    if (j == NULL || f->inflight == NULL) {
        abort();
    }

    return j;
}


static void
fuzz_due(fuzz_t *f)
{
    sb_buf_t  out;

    memset(&out, 0, sizeof(out));
    out.max = 1 << 24;

    inflight_started(f->inflight, 0);
    (void) inflight_due(f->inflight, UINT64_MAX / 2, &out);
    out.len = 0;
    (void) inflight_state(f->inflight, 0, &out);

    sb_buf_free(&out);
    inflight_free(f->inflight);
}


static void
fuzz_apply(const char *history, int dir, journal_t *j)
{
    apply_t  *a;
    store_t  *s;

    s = store_new(history, 8, false);
    a = s ? apply_new(s, NULL, dir, 0) : NULL;

    if (a == NULL) {
        abort();
    }

    (void) apply_attach(a, j);
    (void) apply_all(a);

    apply_free(a);
    store_free(s);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int         dir, fd;
    char        root[] = "/tmp/sandbox-fuzz-XXXXXX", path[64], command[96];
    fuzz_t      f, again;
    journal_t  *j;

    if (size > 4 * 1024 * 1024 || mkdtemp(root) == NULL) {
        return 0;
    }

    (void) log_open("/dev/null");

    (void) snprintf(path, sizeof(path), "%s/journal", root);
    (void) mkdir(path, 0700);
    dir = open(path, O_RDONLY|O_DIRECTORY);
    fd = openat(dir, "0000000001.seg", O_WRONLY|O_CREAT, 0600);

    if (dir == -1 || fd == -1 || write(fd, data, size) != (ssize_t) size) {
        abort();
    }

    close(fd);

    j = fuzz_open(dir, &f);
    fuzz_due(&f);
    journal_close(j);

    j = fuzz_open(dir, &again);
    fuzz_due(&again);

    if (f.n != again.n || (f.n && f.last != again.last)) {
        abort();
    }

    (void) snprintf(path, sizeof(path), "%s/history", root);
    (void) mkdir(path, 0700);
    fuzz_apply(path, dir, j);

    journal_close(j);
    close(dir);

    (void) snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command) == 0 ? 0 : 1;
}
