/* Questions and answers about archives: as a frame the patterns in it, which are
 * matched with the rest of the input, and the facts, which are written again. */

#include <stdlib.h>

#include "inspect_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
facts(const sb_frame_t *f)
{
    char               mem[SB_IN_ANSWER];
    size_t             n, need;
    sb_frame_t         again;
    sb_inspect_t       in, copy;
    sb_frame_writer_t  w;

    if (!sb_inspect_get(f, &in)) {
        return;
    }

    sb_frame_begin(&w, mem, sizeof(mem), SB_F_INSPECTED, 0, 1, f->op, 0);
    sb_inspect_put(&w, &in);
    n = sb_frame_end(&w);

    if (n == 0 || sb_frame_read(&again, mem, n, &need) != SB_OK
        || !sb_inspect_get(&again, &copy) || copy.found != in.found
        || copy.matched != in.matched || copy.cut != in.cut
        || memcmp(copy.counts, in.counts, sizeof(in.counts)) != 0
        || strcmp(copy.why, in.why) != 0 || strcmp(copy.name, in.name) != 0)
    {
        abort();
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t              need;
    sb_str_t            rest = sb_str(data, size);
    sb_frame_t          f;
    inspect_t           in = { .seed = 1, .rank = UINT32_MAX };
    inspect_seen_t     *seen;
    sb_policy_names_t  *names = NULL;

    if (sb_frame_read(&f, (const char *) data, size, &need) == SB_OK) {
        facts(&f);
        names = sb_policy_names_new(&f);
        rest = sb_str(data + f.length, size - f.length);
    }

    seen = inspect_seen_new();
    if (seen == NULL) {
        abort();
    }

    in.names = names;

    if (!inspect_name(&in, seen, rest, INSPECT_IS_LINK, rest)
        || !inspect_name(&in, seen, rest, INSPECT_IS_FILE, rest)
        || !inspect_name(&in, seen, rest, INSPECT_IS_HARD, rest))
    {
        abort();
    }

    /* what begins at the root, or climbs, is never missed */

    if (rest.len && (rest.data[0] == '/' || memmem(rest.data, rest.len, "/../", 4))
        && !(in.out.found & SB_IN_CLIMBS))
    {
        abort();
    }

    inspect_seen_free(seen);
    sb_policy_names_free(names);

    return 0;
}
