/*
 * What a question about a policy tells of a file that nobody has looked into:
 * the words and counts of the conditions `content` and `archive…`.
 */

#ifndef SB_POLICY_FACTS_H_INCLUDED
#define SB_POLICY_FACTS_H_INCLUDED

#include "policy.h"

/* Zero-initialise. */
typedef struct {
    bool                 has_content;
    unsigned             content;   /* SB_SCAN_* */
    sb_policy_archive_e  archive;
    sb_inspect_t         facts;
    const sb_str_t      *names;     /* of the archive's members */
    size_t               nnames;
} sb_policy_facts_t;

/* "archive_entries" and so on, in the order of sb_inspect_count_e. */
extern const char *const  sb_policy_facts_counts[SB_IN_COUNTS];

/* Takes a word of `content`; false: no file has it (`secret` stands for several).
 */
bool sb_policy_facts_content(sb_policy_facts_t *facts, sb_str_t word);

/* Takes a word of `archive`, `any` for an archive of which nothing else is to be
 * told, or "uninspected"; false: it is none, or stands for several as `unsafe`
 * does. */
bool sb_policy_facts_archive(sb_policy_facts_t *facts, sb_str_t word);

/* Takes one count. */
void sb_policy_facts_count(sb_policy_facts_t *facts, sb_inspect_count_e count,
    uint64_t n);

/* Takes names of members; they must stay. */
void sb_policy_facts_names(sb_policy_facts_t *facts, const sb_str_t *names,
    size_t n);

/* Is anything told? */
bool sb_policy_facts_told(const sb_policy_facts_t *facts);

/*
 * Judges a request all of whose files are like that, by one policy.  The facts
 * belong to it until the verdict is not looked at any more.  SB_NOMEM.
 */
sb_rc_t sb_policy_facts_check(sb_policy_facts_t *facts,
    const sb_policy_t *policy, sb_policy_request_t *request,
    sb_policy_verdict_t *verdict);

#endif /* SB_POLICY_FACTS_H_INCLUDED */
