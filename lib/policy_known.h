/*
 * What rules ask about a sandbox that its operations do not tell: its metadata,
 * and the paths where the create request mounts volumes.  Between operations it
 * is kept as a JSON text: {"metadata":{…},"mounts":[…]}; what is not there is
 * not known.
 */

#ifndef SB_POLICY_KNOWN_H_INCLUDED
#define SB_POLICY_KNOWN_H_INCLUDED

#include "json.h"
#include "policy.h"

#define SB_POLICY_KNOWN_MAX     (64 * 1024)     /* bytes of the text */
#define SB_POLICY_KNOWN_PAIRS   256             /* of each */

/* Slices live as long as it does. */
typedef struct {
    bool               has_metadata;
    sb_policy_pair_t  *metadata;
    size_t             nmetadata;
    bool               has_mounts;
    sb_str_t          *mounts;
    size_t             nmounts;
    sb_jdoc_t         *doc;         /* owned, as the arrays are */
} sb_policy_known_t;

/* Appends the text for a sandbox made with these (NULL: without). */
sb_rc_t sb_policy_known_made(const sb_jv_t *metadata, const sb_jv_t *volumes,
    sb_buf_t *out);

/*
 * Appends the text for what upstream has told of a sandbox (the answer to GET
 * /v1/sandboxes/{id}) over what was known before (empty: nothing), whose mounts
 * stay.  SB_ERROR: the answer is not about this sandbox.
 */
sb_rc_t sb_policy_known_told(sb_str_t sandbox, sb_str_t answer,
    sb_str_t before, sb_buf_t *out);

/* Reads such a text; nothing is known of one that cannot be read.  SB_NOMEM.
 * Free with sb_policy_known_free() in every case. */
sb_rc_t sb_policy_known_read(sb_policy_known_t *k, sb_str_t text);
void sb_policy_known_free(sb_policy_known_t *k);

#endif /* SB_POLICY_KNOWN_H_INCLUDED */
