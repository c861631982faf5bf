/* A file that is to be read, between the thread that asks and the one that
 * reads. */

#ifndef BEFORE_INT_H_INCLUDED
#define BEFORE_INT_H_INCLUDED

#include "before.h"
#include "digest.h"

#include <curl/curl.h>

typedef struct before_job_s  before_job_t;

struct before_job_s {
    before_job_t        *next;
    CURL                *curl;      /* NULL: not under way */
    struct curl_slist   *head;
    struct curl_slist   *to;
    char                *url;
    char                *sandbox;
    char                *path;
    bool                 current;
    bool                 too_large;
    sb_sha256_t         *hash;      /* of a check: what came is not kept */
    uint64_t             size;
    unsigned             wait_ms;
    uint64_t             came_us;
    before_answer_t      answer;
};

/* What the frame says of it; false: it cannot be asked so. */
bool before_read(before_job_t *job, const sb_frame_t *f);
void before_job_free(before_job_t *job);

#endif /* BEFORE_INT_H_INCLUDED */
