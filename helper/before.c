#include "before.h"

#include "ask_boxes.h"
#include "contents.h"
#include "id.h"
#include "json.h"
#include "stats.h"
#include "versions_find.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define BEFORE_URL      8192
#define BEFORE_LINE     8192        /* of the request's head */
#define BEFORE_LINES    8
#define BEFORE_AGE_S    20L         /* OpenSandbox closes idle connections after
                                       30 s */

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
    uint64_t             came_us;
    before_answer_t      answer;
};

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


static void
before_job_free(before_job_t *job)
{
    if (job->curl) {
        curl_easy_cleanup(job->curl);
    }

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

    switch (status) {

    case 200:
        stats_add(STATS_BEFORE_READ, 1);
        break;

    case 0:
        stats_add(STATS_BEFORE_FAILED, 1);
        break;

    default:
        break;
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

    if (!job->current || b->readers == NULL || job->sandbox == NULL) {
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

    if (sb_buf_add(&job->answer.body, p, n) != SB_OK) {
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
    end = job->came_us + BEFORE_MS * 1000u;

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
    curl_easy_setopt(curl, CURLOPT_MAXFILESIZE, (long) SB_CONTENT_MAX);
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

    sb_json_limits_t  limits = { 8, 4096 };

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

    if (rc == CURLE_OK && status == 200
        && fetch_secret(b->fetch, sb_str(job->answer.body.data,
                                         job->answer.body.len)))
    {
        before_finish(b, job, 0, "it holds a credential");
        return;
    }

    if (rc == CURLE_OK && status == 200) {
        before_finish(b, job, 200, NULL);
        return;
    }

    if (rc == CURLE_OK && status == 404 && job->answer.body.len
        && before_no_file(job))
    {
        before_finish(b, job, 404, NULL);
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

static bool
before_clean(sb_str_t s, unsigned char least, size_t max)
{
    size_t  i;

    if (s.len == 0 || s.len > max) {
        return false;
    }

    for (i = 0; i < s.len; i++) {
        if ((unsigned char) s.data[i] < least || s.data[i] == 0x7f) {
            return false;
        }
    }

    return true;
}


static bool
before_line(struct curl_slist **list, const char *prefix, sb_str_t text)
{
    char                line[BEFORE_LINE + 8];
    struct curl_slist  *more;

    (void) snprintf(line, sizeof(line), "%s%.*s", prefix, (int) text.len,
                    text.data);

    more = curl_slist_append(*list, line);
    explicit_bzero(line, sizeof(line));

    if (more) {
        *list = more;
    }

    return more != NULL;
}


static bool
before_url(before_job_t *job, sb_str_t upstream, sb_str_t target)
{
    if (!before_clean(upstream, 0x21, 1024) || !before_clean(target, 0x21,
                                                             BEFORE_URL)
        || target.data[0] != '/'
        || (strncmp(upstream.data, "http://", 7) != 0
            && strncmp(upstream.data, "https://", 8) != 0)
        || memchr(upstream.data, '@', upstream.len)
        || memchr(upstream.data, '?', upstream.len)
        || memchr(upstream.data, '#', upstream.len))
    {
        return false;
    }

    return asprintf(&job->url, "%.*s%.*s", (int) upstream.len, upstream.data,
                    (int) target.len, target.data) != -1;
}


static bool
before_read(before_job_t *job, const sb_frame_t *f)
{
    bool      ok;
    size_t    lines;
    uint16_t  tag;
    sb_str_t  fields, value, upstream, target;

    fields = f->fields;
    upstream = sb_str(NULL, 0);
    target = sb_str(NULL, 0);
    lines = 0;
    ok = true;

    while (ok && sb_field_next(&fields, &tag, &value)) {

        switch (tag) {

        case SB_T_UPSTREAM:
            upstream = value;
            break;

        case SB_T_TARGET:
            target = value;
            break;

        case SB_T_ADDRESS:
            ok = job->to == NULL && before_clean(value, 0x21, 256)
                 && before_line(&job->to, "::", value);
            break;

        case SB_T_HEADER:
            ok = ++lines <= BEFORE_LINES
                 && before_clean(value, 0x20, BEFORE_LINE)
                 && before_line(&job->head, "", value);
            break;

        case SB_T_SANDBOX:
            free(job->sandbox);
            job->sandbox = strndup(value.data, value.len);
            break;

        case SB_T_FILE_PATH:
            free(job->path);
            job->path = strndup(value.data, value.len);
            break;

        default:
            break;
        }
    }

    return ok && job->path && before_url(job, upstream, target);
}


sb_rc_t
before_ask(before_t *b, const sb_frame_t *f, uint64_t conn, bool current)
{
    before_job_t  *job;

    pthread_mutex_lock(&b->lock);

    if (b->jobs == b->max) {
        pthread_mutex_unlock(&b->lock);
        stats_add(STATS_BEFORE_REFUSED, 1);
        return SB_LIMIT;
    }

    stats_set(STATS_BEFORE_RUNNING, ++b->jobs);
    pthread_mutex_unlock(&b->lock);

    job = calloc(1, sizeof(before_job_t));

    if (job == NULL || !before_read(job, f)) {

        if (job) {
            before_job_free(job);
        }

        pthread_mutex_lock(&b->lock);
        stats_set(STATS_BEFORE_RUNNING, --b->jobs);
        pthread_mutex_unlock(&b->lock);

        return SB_ERROR;
    }

    job->current = current;
    job->came_us = sb_now_us();
    job->answer.conn = conn;
    job->answer.seq = f->seq;
    memcpy(job->answer.op, f->op, sizeof(job->answer.op));
    job->answer.n = sb_field_u64(f, SB_T_FILE_N, 0);
    job->answer.kind = sb_field_u64(f, SB_T_FILE_KIND, SB_CONTENT_BEFORE);
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

        stats_set(STATS_BEFORE_RUNNING, --b->jobs);
    }

    pthread_mutex_unlock(&b->lock);

    if (job == NULL) {
        return false;
    }

    *a = job->answer;
    memset(&job->answer.body, 0, sizeof(sb_buf_t));
    before_job_free(job);

    return true;
}
