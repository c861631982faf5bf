/*
 * Looks for credentials in a file as it passes, in pieces of any size: texts of
 * forms that nothing else has.
 */

#ifndef SB_SCAN_H_INCLUDED
#define SB_SCAN_H_INCLUDED

#include "sb.h"

#define SB_SCAN_PRIVATE_KEY  0x01u      /* PEM or OpenPGP armour */
#define SB_SCAN_AWS_KEY      0x02u      /* id of an AWS access key */
#define SB_SCAN_GOOGLE_KEY   0x04u
#define SB_SCAN_TOKEN        0x08u      /* GitHub, GitLab, Slack, npm, PyPI,
                                           Stripe */
#define SB_SCAN_GATEWAY      0x10u      /* a token of this gateway */
#define SB_SCAN_ALL          0x1fu

#define SB_SCAN_KEEP         96         /* no form is longer */

/* Zero-initialise for each file. */
typedef struct {
    unsigned  found;                    /* SB_SCAN_* */
    size_t    len;
    char      tail[SB_SCAN_KEEP + 1];   /* the last bytes, and the one before */
} sb_scan_t;

void sb_scan_feed(sb_scan_t *s, const char *p, size_t n);

/* SB_SCAN_* of a word of the policy language; 0: it is none. */
unsigned sb_scan_word(const char *word);

#endif /* SB_SCAN_H_INCLUDED */
