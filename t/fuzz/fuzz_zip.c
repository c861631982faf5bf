/* ZIPs: the verdict does not depend on what was looked at before, only bytes of
 * the file are read, and what is fine has a directory that the file can hold. */

#include <stdlib.h>

#include "zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    const uint8_t  *data;
    size_t          size;
    size_t          names;
} file_t;


static bool
file_read(void *data, uint64_t offset, void *buf, size_t n)
{
    file_t  *f = data;

    if (offset > f->size || n > f->size - offset) {
        abort();
    }

    if (n) {
        memcpy(buf, f->data + offset, n);
    }

    return true;
}


static void
file_name(void *data, sb_str_t name, unsigned mode)
{
    volatile char   sum = 0;
    size_t          i;
    file_t         *f = data;

    for (i = 0; i < name.len; i++) {
        sum = (char) (sum ^ name.data[i]);
    }

    f->names += mode <= 0xffff;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    file_t       f = { data, size, 0 };
    sb_zip_t     zip = { size, 100000, &f, file_read, file_name };
    sb_zip_e     one, two;
    uint64_t     entries, again;
    const char  *why = NULL;

    one = sb_zip_audit(&zip, &entries, &why);

    if (one == SB_ZIP_FINE && (entries > size / 46 || f.names < 2 * entries)) {
        abort();
    }

    if (one != SB_ZIP_FINE && one != SB_ZIP_NONE && why == NULL) {
        abort();
    }

    zip.name = NULL;
    two = sb_zip_audit(&zip, &again, &why);

    if (one != two || entries != again) {
        abort();
    }

    return 0;
}
