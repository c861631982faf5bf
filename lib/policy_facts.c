#include "policy_facts.h"

#include "policy_names.h"
#include "scan.h"

#define FACTS_WORD  32


const char *const  sb_policy_facts_counts[SB_IN_COUNTS] = {
    "archive_entries", "archive_size", "archive_file_size", "archive_ratio",
    "archive_depth"
};


/* A word as a C string; an empty one when it is too long for any. */
static const char *
sb_policy_facts_word(char to[FACTS_WORD], sb_str_t word)
{
    size_t  n = word.len < FACTS_WORD && !memchr(word.data, '\0', word.len)
                ? word.len : 0;

    memcpy(to, word.data, n);
    to[n] = '\0';

    return to;
}


/* Is it one bit? */
static bool
sb_policy_facts_single(unsigned found)
{
    return found && (found & (found - 1)) == 0;
}


static void
sb_policy_facts_is(sb_policy_facts_t *f)
{
    f->facts.found |= SB_IN_ARCHIVE;

    if (f->archive == SB_POLICY_NO_ARCHIVE) {
        f->archive = SB_POLICY_INSPECTED;
    }

    if (f->facts.counts[SB_IN_DEPTH] == 0) {
        f->facts.counts[SB_IN_DEPTH] = 1;
    }
}


bool
sb_policy_facts_content(sb_policy_facts_t *f, sb_str_t word)
{
    char      text[FACTS_WORD];
    unsigned  found = sb_scan_word(sb_policy_facts_word(text, word));

    f->has_content = true;
    f->content |= found;

    return sb_policy_facts_single(found);
}


bool
sb_policy_facts_archive(sb_policy_facts_t *f, sb_str_t word)
{
    char      text[FACTS_WORD];
    unsigned  found;

    if (sb_eq(word, sb_lit("uninspected"))) {
        sb_policy_facts_is(f);
        f->archive = SB_POLICY_UNINSPECTED;
        return true;
    }

    found = sb_inspect_word(sb_policy_facts_word(text, word));

    if (!sb_policy_facts_single(found)) {
        return false;
    }

    f->facts.found |= found;

    if (found == SB_IN_MISNAMED) {
        /* this is no archive; but facts of one may be told as well */
        f->archive = f->archive == SB_POLICY_NO_ARCHIVE ? SB_POLICY_INSPECTED
                                                        : f->archive;
        return true;
    }

    sb_policy_facts_is(f);

    return true;
}


void
sb_policy_facts_count(sb_policy_facts_t *f, sb_inspect_count_e count,
    uint64_t n)
{
    f->facts.counts[count] = n;
    sb_policy_facts_is(f);
}


void
sb_policy_facts_names(sb_policy_facts_t *f, const sb_str_t *names, size_t n)
{
    f->names = names;
    f->nnames = n;

    if (n) {
        sb_policy_facts_is(f);
    }
}


bool
sb_policy_facts_told(const sb_policy_facts_t *f)
{
    return f->has_content || f->archive != SB_POLICY_NO_ARCHIVE;
}


/* A name with "/" at its end is a directory's, as in ZIPs. */
static sb_rc_t
sb_policy_facts_match(sb_policy_facts_t *f, const sb_policy_t *policy)
{
    size_t              i;
    sb_str_t            name;
    sb_policy_names_t  *names;

    f->facts.matched = 0;

    if (f->nnames == 0) {
        return SB_OK;
    }

    names = sb_policy_names_of(policy);
    if (names == NULL) {
        return SB_NOMEM;
    }

    for (i = 0; i < f->nnames; i++) {
        name = f->names[i];
        f->facts.matched |= sb_policy_names_match(names, name,
                                                  name.len
                                                  && name.data[name.len - 1]
                                                     == '/');
    }

    sb_policy_names_free(names);

    return SB_OK;
}


sb_rc_t
sb_policy_facts_check(sb_policy_facts_t *f, const sb_policy_t *policy,
    sb_policy_request_t *r, sb_policy_verdict_t *verdict)
{
    size_t   i;
    sb_rc_t  rc;

    rc = sb_policy_facts_match(f, policy);

    if (rc != SB_OK) {
        return rc;
    }

    for (i = 0; i < r->nfiles; i++) {
        r->files[i].has_found = f->has_content;
        r->files[i].found = f->content;
        r->files[i].archive = f->archive;
        r->files[i].facts = &f->facts;
    }

    return sb_policy_check(policy, r, verdict);
}
