/*
 * What is known of a sandbox.  A seed is what upstream tells, or the text that
 * is kept.  Beside memory errors it looks for a text made from any answer that
 * does not read back, and for a mount that is none.
 */

#include <stdlib.h>

#include "path.h"
#include "policy_known.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t             i;
    sb_buf_t           b = { .max = SB_POLICY_KNOWN_MAX };
    sb_buf_t           made = { .max = SB_POLICY_KNOWN_MAX };
    sb_str_t           text = sb_str(data, size);
    sb_jdoc_t         *doc;
    sb_policy_known_t  k;

    if (sb_policy_known_read(&k, text) != SB_OK) {
        abort();
    }

    sb_policy_known_free(&k);

    if (sb_policy_known_told(sb_lit("s"), text, text, &b) == SB_OK) {

        if (sb_policy_known_read(&k, sb_str(b.data, b.len)) != SB_OK
            || k.doc == NULL)
        {
            abort();
        }

        sb_policy_known_free(&k);
    }

    doc = sb_jdoc_parse(text, NULL, NULL);

    if (doc && sb_policy_known_made(sb_jv_get(sb_jdoc_root(doc), "metadata"),
                                    sb_jv_get(sb_jdoc_root(doc), "volumes"),
                                    &made) == SB_OK)
    {
        if (sb_policy_known_read(&k, sb_str(made.data, made.len)) != SB_OK
            || k.doc == NULL)
        {
            abort();
        }

        for (i = 0; i < k.nmounts; i++) {
            if (sb_path_flags(k.mounts[i]) & (unsigned) ~SB_PATH_CONTROL) {
                abort();
            }
        }

        sb_policy_known_free(&k);
    }

    sb_jdoc_free(doc);
    sb_buf_free(&b);
    sb_buf_free(&made);

    return 0;
}
