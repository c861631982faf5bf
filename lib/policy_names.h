/*
 * The `archive_path` conditions of a policy on their way to whoever sees the
 * names of an archive's members, in fields of a frame, and there.
 */

#ifndef SB_POLICY_NAMES_H_INCLUDED
#define SB_POLICY_NAMES_H_INCLUDED

#include "frame.h"
#include "policy.h"

/* Puts all of them, in their order. */
void sb_policy_names_put(const sb_policy_t *policy, sb_frame_writer_t *w);

typedef struct sb_policy_names_s  sb_policy_names_t;

/* Reads them from a frame, whose bytes must stay; NULL without memory, or when
 * they are no patterns.  Free with sb_policy_names_free(). */
sb_policy_names_t *sb_policy_names_new(const sb_frame_t *f);
/* The same straight from the policy, which must stay. */
sb_policy_names_t *sb_policy_names_of(const sb_policy_t *policy);
void sb_policy_names_free(sb_policy_names_t *names);

/*
 * Which of them the name of a member matches, a bit for each: it is taken as a
 * path from the root of the archive.  UINT64_MAX when memory is short or it has
 * too many segments.
 */
uint64_t sb_policy_names_match(const sb_policy_names_t *names, sb_str_t name,
    bool directory);

#endif /* SB_POLICY_NAMES_H_INCLUDED */
