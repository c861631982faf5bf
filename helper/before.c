#include "before_int.h"

#include "ask_boxes.h"
#include "contents.h"
#include "id.h"
#include "json.h"
#include "stats.h"
#include "versions_find.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define BEFORE_ERROR    4096        /* of an answer that is no file */
#define BEFORE_AGE_S    20L         /* OpenSandbox closes idle connections after
                                       30 s */

struct before_s {
    unsigned         max;
    readers_t       *readers;
    fetch_t         *fetch;
    int              wake_fd;

    CURLM           *multi;
    pthread_t        thread;
    bool             running;

    pthread_mutex_t  lock;
    bool             stop;
    unsigned         jobs;          /* from asking until it is taken */
    unsigned         checks;        /* the same */
    before_job_t    *fresh, **fresh_last;
    before_job_t    *answers, **answers_last;

    before_job_t    *active;        /* of the thread alone */
};


before_t *
before_new(unsigned max, readers_t *readers, fetch_t *fetch, int wake_fd)
{
    before_t  *b;

    b = calloc(1, sizeof(before_t));
    if (b == NULL) {
        return NULL;
    }

    b->multi = curl_multi_init();

    if (b->multi == NULL) {
        free(b);
        return NULL;
    }

    b->max = max;
    b->fetch = fetch;
    b->readers = readers;
    b->wake_fd = wake_fd;
    b->fresh_last = &b->fresh;
    b->answers_last = &b->answers;
    pthread_mutex_init(&b->lock, NULL);
    stats_set(STATS_BEFORE_LIMIT, max);

    (void) curl_multi_setopt(b->multi, CURLMOPT_MAXCONNECTS, (long) max);

    return b;
}


void
before_job_free(before_job_t *job)
{
    if (job->curl) {
        curl_easy_cleanup(job->curl);
    }

    sb_sha256_free(job->hash);
    curl_slist_free_all(job->head);
    curl_slist_free_all(job->to);
    sb_buf_free(&job->answer.body);
    free(job->url);
    free(job->sandbox);
    free(job->path);
    free(job);
}


static void
before_jobs_free(before_job_t *job)
{
    before_job_t  *next;

    for ( /* void */ ; job; job = next) {
        next = job->next;
        before_job_free(job);
    }
}


static void
before_finish(before_t *b, before_job_t *job, unsigned status,
    const char *reason)
{
    uint64_t  one;

    job->answer.status = status;
    job->answer.reason = reason;
    job->next = NULL;

    if (job->answer.kind != SB_CONTENT_CHECK) {

        if (status == 200) {
            stats_add(STATS_BEFORE_READ, 1);

        } else if (status == 0) {
            stats_add(STATS_BEFORE_FAILED, 1);
        }
    }

    pthread_mutex_lock(&b->lock);
    *b->answers_last = job;
    b->answers_last = &job->next;
    pthread_mutex_unlock(&b->lock);

    one = 1;

    if (write(b->wake_fd, &one, sizeof(one)) == -1) {
        /* the counter is full: the reader is awake anyway */
    }
}


/* --- what the history tells ----------------------------------------------- */

/* Does it hold how the file stands, with certainty, and the content too? */
static bool
before_held(sqlite3 *db, const before_job_t *job)
{
    bool              held;
    char              now[SB_TIME_LEN + 1];
    version_t         found;
    sqlite3_stmt     *st;
    versions_self_t   self;

    memset(&self, 0, sizeof(self));
    sb_uuid_text(self.id, job->answer.op);
    sb_time_text(now, job->came_us);
    (void) snprintf(self.begun, sizeof(self.begun), "%s", now);

    if (versions_find_in(db, &self, job->path, 0, &found) != SQLITE_OK
        || found.state == VERSION_UNKNOWN || found.assumed)
    {
        return false;
    }

    if (found.state == VERSION_ABSENT || found.size > SB_CONTENT_MAX) {
        return true;
    }

    if (sqlite3_prepare_v2(db, "select 1 from gateway_contents where sha256 ="
                           " ?1", -1, &st, NULL) != SQLITE_OK)
    {
        return false;
    }

    sqlite3_bind_text(st, 1, found.sha256, -1, SQLITE_STATIC);
    held = sqlite3_step(st) == SQLITE_ROW;
    (void) sqlite3_finalize(st);

    return held;
}


static bool
before_known(before_t *b, const before_job_t *job)
{
    bool              held;
    char              dir[STORE_DIR_LEN];
    reader_t         *reader;
    history_error_t   err;

    if (!job->current || b->readers == NULL || job->sandbox == NULL
        || job->answer.kind == SB_CONTENT_CHECK)
    {
        return false;
    }

    ask_box_dir(dir, sb_str(job->sandbox, strlen(job->sandbox)));

    if (reader_take(b->readers, dir, &reader, &err) != READER_OK) {
        return false;
    }

    held = before_held(reader->db, job);
    reader_give(b->readers, reader, false);

    return held;
}


/* --- asking the sandbox --------------------------------------------------- */

static size_t
before_body(char *p, size_t size, size_t n, void *data)
{
    before_job_t  *job = data;

    n *= size;

    if (job->hash) {
        job->size += n;
        sb_sha256_add(job->hash, p, n);
        /* an error says which one */
        size = BEFORE_ERROR - job->answer.body.len;
        size = n < size ? n : size;

    } else {
        size = n;
    }

    if (job->size > BEFORE_CHECK_MAX
        || sb_buf_add(&job->answer.body, p, size) != SB_OK)
    {
        job->too_large = true;
        return 0;
    }

    return n;
}


static bool
before_request(before_t *b, before_job_t *job)
{
    CURL      *curl;
    uint64_t   now, end;

    now = sb_now_us();
    end = job->came_us + job->wait_ms * 1000u;

    if (now >= end) {
        return false;
    }

    curl = curl_easy_init();
    if (curl == NULL) {
        return false;
    }

    job->curl = curl;

    curl_easy_setopt(curl, CURLOPT_PRIVATE, (void *) job);
    curl_easy_setopt(curl, CURLOPT_URL, job->url);
    curl_easy_setopt(curl, CURLOPT_CONNECT_TO, job->to);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, job->head);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXAGE_CONN, BEFORE_AGE_S);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long) ((end - now) / 1000 + 1));
    curl_easy_setopt(curl, CURLOPT_MAXFILESIZE,
                     (long) (job->hash ? BEFORE_CHECK_MAX : SB_CONTENT_MAX));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, before_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, job);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "ngx_sandbox_module/" SB_VERSION);

    if (curl_multi_add_handle(b->multi, curl) != CURLM_OK) {
        return false;
    }

    job->next = b->active;
    b->active = job;

    return true;
}


/* A 404 may be the server's, of a sandbox or a route that is not there; only
 * execd speaks of files. */
static bool
before_no_file(const before_job_t *job)
{
    bool        none;
    sb_jdoc_t  *doc;

    sb_json_limits_t  limits = { 8, BEFORE_ERROR };

    doc = sb_jdoc_parse(sb_str(job->answer.body.data, job->answer.body.len),
                        &limits, NULL);
    if (doc == NULL) {
        return false;
    }

    none = sb_eq(sb_jv_str(sb_jdoc_root(doc), "code"),
                 sb_lit("FILE_NOT_FOUND"));
    sb_jdoc_free(doc);

    return none;
}


static void
before_answered(before_t *b, before_job_t *job, CURLcode rc)
{
    long            status;
    before_job_t  **p;

    status = 0;
    (void) curl_easy_getinfo(job->curl, CURLINFO_RESPONSE_CODE, &status);

    for (p = &b->active; *p != job; p = &(*p)->next) {
        /* void */
    }

    *p = job->next;

    (void) curl_multi_remove_handle(b->multi, job->curl);
    curl_easy_cleanup(job->curl);
    job->curl = NULL;

    if (rc == CURLE_OK && status == 200 && job->hash == NULL
        && fetch_secret(b->fetch, sb_str(job->answer.body.data,
                                         job->answer.body.len)))
    {
        before_finish(b, job, 0, "it holds a credential");
        return;
    }

    if (rc == CURLE_OK && status == 200) {

        if (job->hash) {
            sb_sha256_final(job->hash, job->answer.digest);
            job->hash = NULL;
        }

        before_finish(b, job, 200, NULL);
        return;
    }

    if (rc == CURLE_OK && status == 404 && job->answer.body.len
        && before_no_file(job))
    {
        before_finish(b, job, 404, NULL);
        return;
    }

    if (job->hash && (rc == CURLE_FILESIZE_EXCEEDED || job->too_large)) {
        before_finish(b, job, 413, NULL);
        return;
    }

    before_finish(b, job, 0,
                  rc == CURLE_OK ? "execd refused"
                  : rc == CURLE_OPERATION_TIMEDOUT ? "not in time"
                  : rc == CURLE_FILESIZE_EXCEEDED || job->too_large
                  ? "the file is too large" : "no answer");
}


static void
before_begin(before_t *b, before_job_t *job)
{
    if (before_known(b, job)) {
        before_finish(b, job, 304, NULL);

    } else if (!before_request(b, job)) {
        before_finish(b, job, 0, "not in time");
    }
}


static void *
before_thread(void *data)
{
    int            n;
    bool           stop;
    CURLMsg       *m;
    before_t      *b = data;
    before_job_t  *job, *next;

    for ( ;; ) {
        pthread_mutex_lock(&b->lock);
        stop = b->stop;
        job = b->fresh;
        b->fresh = NULL;
        b->fresh_last = &b->fresh;
        pthread_mutex_unlock(&b->lock);

        if (stop) {
            before_jobs_free(job);
            return NULL;
        }

        while (job) {
            next = job->next;
            before_begin(b, job);
            job = next;
        }

        (void) curl_multi_perform(b->multi, &n);

        while ((m = curl_multi_info_read(b->multi, &n)) != NULL) {

            if (m->msg != CURLMSG_DONE
                || curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE,
                                     (char **) (void *) &job) != CURLE_OK)
            {
                continue;
            }

            before_answered(b, job, m->data.result);
        }

        (void) curl_multi_poll(b->multi, NULL, 0, 1000, NULL);
    }
}


bool
before_start(before_t *b)
{
    b->running = (pthread_create(&b->thread, NULL, before_thread, b) == 0);

    return b->running;
}


void
before_stop(before_t *b)
{
    before_job_t  *job;

    if (b == NULL) {
        return;
    }

    if (b->running) {
        pthread_mutex_lock(&b->lock);
        b->stop = true;
        pthread_mutex_unlock(&b->lock);
        (void) curl_multi_wakeup(b->multi);
        pthread_join(b->thread, NULL);
    }

    for (job = b->active; job; job = job->next) {
        (void) curl_multi_remove_handle(b->multi, job->curl);
    }

    before_jobs_free(b->active);
    before_jobs_free(b->fresh);
    before_jobs_free(b->answers);
    (void) curl_multi_cleanup(b->multi);
    pthread_mutex_destroy(&b->lock);
    free(b);
}


/* --- questions ------------------------------------------------------------ */

/* One more, or one less, that is under way; false: there are too many. */
static bool
before_count(before_t *b, bool check, bool more)
{
    bool       room;
    unsigned  *n;

    pthread_mutex_lock(&b->lock);

    n = check ? &b->checks : &b->jobs;
    room = !more || *n < (check ? BEFORE_CHECKS : b->max);

    if (room) {
        *n = more ? *n + 1 : *n - 1;
        stats_set(check ? STATS_CHECKS_RUNNING : STATS_BEFORE_RUNNING, *n);
    }

    pthread_mutex_unlock(&b->lock);

    return room;
}


sb_rc_t
before_ask(before_t *b, const sb_frame_t *f, uint64_t conn, bool current)
{
    bool           check;
    uint64_t       kind;
    before_job_t  *job;

    kind = sb_field_u64(f, SB_T_FILE_KIND, SB_CONTENT_BEFORE);
    check = (kind == SB_CONTENT_CHECK);

    if (!before_count(b, check, true)) {
        stats_add(check ? STATS_CHECKS_REFUSED : STATS_BEFORE_REFUSED, 1);
        return SB_LIMIT;
    }

    job = calloc(1, sizeof(before_job_t));

    if (job && check) {
        job->hash = sb_sha256_new();
    }

    if (job == NULL || (check && job->hash == NULL) || !before_read(job, f)) {

        if (job) {
            before_job_free(job);
        }

        (void) before_count(b, check, false);

        return SB_ERROR;
    }

    job->current = current;
    job->came_us = sb_now_us();
    job->wait_ms = check ? BEFORE_CHECK_MS : BEFORE_MS;
    job->answer.conn = conn;
    job->answer.seq = f->seq;
    memcpy(job->answer.op, f->op, sizeof(job->answer.op));
    job->answer.n = sb_field_u64(f, SB_T_FILE_N, 0);
    job->answer.kind = kind;
    job->answer.body.max = SB_CONTENT_MAX;

    pthread_mutex_lock(&b->lock);
    *b->fresh_last = job;
    b->fresh_last = &job->next;
    pthread_mutex_unlock(&b->lock);

    (void) curl_multi_wakeup(b->multi);

    return SB_OK;
}


bool
before_take(before_t *b, before_answer_t *a)
{
    before_job_t  *job;

    pthread_mutex_lock(&b->lock);

    job = b->answers;

    if (job) {
        b->answers = job->next;

        if (b->answers == NULL) {
            b->answers_last = &b->answers;
        }
    }

    pthread_mutex_unlock(&b->lock);

    if (job == NULL) {
        return false;
    }

    (void) before_count(b, job->answer.kind == SB_CONTENT_CHECK, false);

    *a = job->answer;
    memset(&job->answer.body, 0, sizeof(sb_buf_t));
    before_job_free(job);

    return true;
}
