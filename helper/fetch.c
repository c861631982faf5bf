#include "fetch.h"

#include "log.h"
#include "secret.h"
#include "stats.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


#define FETCH_KEY_MAX     4096
#define FETCH_TARGET_MAX  4096

typedef struct fetch_job_s  fetch_job_t;

struct fetch_job_s {
    fetch_job_t     *next;
    char            *target;
    bool             waited;        /* fetch_wait() stands behind it */
    bool             done;
    bool             abandoned;     /* ... and has left */
    fetch_answer_t   answer;
};

struct fetch_s {
    char            *upstream;
    char            *key_file;
    int              key_fd;
    int              wake_fd;

    pthread_t        thread;
    bool             running;
    bool             stop;

    pthread_mutex_t  lock;
    pthread_cond_t   work;          /* queue not empty, or stop */
    pthread_cond_t   ready;         /* a waited job is done */
    fetch_job_t     *queue, **queue_last;
    unsigned         queued;
    fetch_job_t     *answers, **answers_last;
    unsigned         nanswers;
};


static bool
fetch_clean(const char *p, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if ((unsigned char) p[i] <= 0x20 || (unsigned char) p[i] >= 0x7f) {
            return false;
        }
    }

    return true;
}


fetch_t *
fetch_new(const char *upstream, const char *key_file, int wake_fd, char *why,
    size_t why_size)
{
    size_t               n;
    fetch_t             *f;
    pthread_condattr_t   attr;

    n = strlen(upstream);

    if ((strncmp(upstream, "http://", 7) != 0
         && strncmp(upstream, "https://", 8) != 0)
        || !fetch_clean(upstream, n) || strchr(upstream, '@')
        || strpbrk(upstream, "?#") || n > 1024)
    {
        (void) snprintf(why, why_size, "--upstream \"%s\" is not an http:// or "
                        "https:// address without user, query or fragment",
                        upstream);
        return NULL;
    }

    f = calloc(1, sizeof(fetch_t));
    if (f == NULL) {
        (void) snprintf(why, why_size, "no memory");
        return NULL;
    }

    f->wake_fd = wake_fd;
    f->key_fd = -1;
    f->queue_last = &f->queue;
    f->answers_last = &f->answers;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->work, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&f->ready, &attr);
    pthread_condattr_destroy(&attr);

    f->upstream = strdup(upstream);
    f->key_file = key_file ? strdup(key_file) : NULL;

    if (f->upstream) {
        while (n && f->upstream[n - 1] == '/') {
            f->upstream[--n] = '\0';
        }
    }

    if (key_file) {
        f->key_fd = open(key_file, O_RDONLY|O_CLOEXEC);

        if (f->key_fd == -1) {
            (void) snprintf(why, why_size, "cannot read the API key file "
                            "\"%s\": %s", key_file, strerror(errno));
            fetch_stop(f);
            return NULL;
        }
    }

    return f;
}


/* The key as it is now: from the path, or, when that is out of our reach by
 * now, from the descriptor opened at start. */
static bool
fetch_key(fetch_t *f, char *dst, size_t size)
{
    int      fd;
    ssize_t  n;

    if (f->key_file == NULL) {
        dst[0] = '\0';
        return true;
    }

    fd = open(f->key_file, O_RDONLY|O_CLOEXEC);

    n = pread(fd != -1 ? fd : f->key_fd, dst, size - 1, 0);

    if (fd != -1) {
        close(fd);
    }

    if (n < 0) {
        return false;
    }

    while (n && (unsigned char) dst[n - 1] <= 0x20) {
        n--;
    }

    dst[n] = '\0';

    return n != 0 && fetch_clean(dst, (size_t) n);
}


bool
fetch_secret(fetch_t *f, sb_str_t text)
{
    bool  found;
    char  key[FETCH_KEY_MAX];

    if (f == NULL || !fetch_key(f, key, sizeof(key))) {
        key[0] = '\0';
    }

    found = sb_secrets_like(sb_str(key, strlen(key)), text);
    explicit_bzero(key, sizeof(key));

    return found;
}


static size_t
fetch_body(char *p, size_t size, size_t n, void *data)
{
    fetch_job_t  *job = data;

    n *= size;

    return sb_buf_add(&job->answer.body, p, n) == SB_OK ? n : 0;
}


static void
fetch_failed(fetch_job_t *job, const char *why)
{
    stats_add(STATS_FETCH_FAILED, 1);
    job->answer.status = 0;
    job->answer.body.len = 0;
    (void) sb_buf_add(&job->answer.body, why, strlen(why));
}


/* Called by libcurl about once a second: not zero ends the transfer. */
static int
fetch_progress(void *data, curl_off_t dt, curl_off_t dn, curl_off_t ut,
    curl_off_t un)
{
    bool      stop;
    fetch_t  *f = data;

    (void) dt;
    (void) dn;
    (void) ut;
    (void) un;

    pthread_mutex_lock(&f->lock);
    stop = f->stop;
    pthread_mutex_unlock(&f->lock);

    return stop;
}


static void
fetch_run(fetch_t *f, CURL *curl, fetch_job_t *job)
{
    char                key[FETCH_KEY_MAX], header[FETCH_KEY_MAX + 32];
    char                url[FETCH_TARGET_MAX + 1100];
    long                status;
    CURLcode            rc;
    struct curl_slist  *headers;

    if (!fetch_key(f, key, sizeof(key))) {
        log_minutely(LOG_WARN, "the API key file \"%s\" is empty or cannot be "
                     "read", f->key_file);
        fetch_failed(job, "the API key cannot be read");
        return;
    }

    headers = NULL;

    if (key[0]) {
        (void) snprintf(header, sizeof(header), "OPEN-SANDBOX-API-KEY: %s",
                        key);
        headers = curl_slist_append(NULL, header);
    }

    (void) snprintf(url, sizeof(url), "%s%s", f->upstream, job->target);

    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long) FETCH_TIMEOUT_S);
    curl_easy_setopt(curl, CURLOPT_MAXFILESIZE, (long) FETCH_BODY_MAX);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, fetch_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, f);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, fetch_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, job);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "ngx_sandbox_module/" SB_VERSION);

    rc = curl_easy_perform(curl);

    if (rc == CURLE_OK) {
        status = 0;
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        job->answer.status = (unsigned) status;

    } else {
        log_minutely(LOG_WARN, "upstream %s did not answer: %s", f->upstream,
                     curl_easy_strerror(rc));
        fetch_failed(job, rc == CURLE_WRITE_ERROR ? "the answer is too long"
                                                  : curl_easy_strerror(rc));
    }

    curl_slist_free_all(headers);
    explicit_bzero(key, sizeof(key));
    explicit_bzero(header, sizeof(header));
}


static void
fetch_job_free(fetch_job_t *job)
{
    sb_buf_free(&job->answer.body);
    free(job->target);
    free(job);
}


static void
fetch_finish(fetch_t *f, fetch_job_t *job)
{
    uint64_t  one;

    if (job->waited) {
        if (job->abandoned) {
            fetch_job_free(job);

        } else {
            job->done = true;
            pthread_cond_broadcast(&f->ready);
        }

        return;
    }

    job->next = NULL;
    *f->answers_last = job;
    f->answers_last = &job->next;
    f->nanswers++;

    one = 1;

    if (write(f->wake_fd, &one, sizeof(one)) == -1) {
        /* the counter is full: the reader is awake anyway */
    }
}


static void *
fetch_thread(void *data)
{
    CURL         *curl;
    fetch_t      *f = data;
    fetch_job_t  *job;

    curl = curl_easy_init();

    pthread_mutex_lock(&f->lock);

    for ( ;; ) {

        while (f->queue == NULL && !f->stop) {
            pthread_cond_wait(&f->work, &f->lock);
        }

        if (f->stop) {
            break;
        }

        job = f->queue;
        f->queue = job->next;
        f->queued--;
        stats_set(STATS_FETCH_WAITING, f->queued);

        if (f->queue == NULL) {
            f->queue_last = &f->queue;
        }

        pthread_mutex_unlock(&f->lock);

        if (curl) {
            fetch_run(f, curl, job);

        } else {
            fetch_failed(job, "no memory");
        }

        pthread_mutex_lock(&f->lock);
        fetch_finish(f, job);
    }

    pthread_mutex_unlock(&f->lock);

    if (curl) {
        curl_easy_cleanup(curl);
    }

    return NULL;
}


bool
fetch_start(fetch_t *f)
{
    f->running = (pthread_create(&f->thread, NULL, fetch_thread, f) == 0);

    return f->running;
}


void
fetch_stop(fetch_t *f)
{
    fetch_job_t  *job;

    if (f == NULL) {
        return;
    }

    if (f->running) {
        pthread_mutex_lock(&f->lock);
        f->stop = true;
        pthread_cond_signal(&f->work);
        pthread_mutex_unlock(&f->lock);
        pthread_join(f->thread, NULL);
    }

    while ((job = f->queue) != NULL) {
        f->queue = job->next;
        fetch_job_free(job);
    }

    while ((job = f->answers) != NULL) {
        f->answers = job->next;
        fetch_job_free(job);
    }

    if (f->key_fd != -1) {
        close(f->key_fd);
    }

    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->work);
    pthread_cond_destroy(&f->ready);
    free(f->upstream);
    free(f->key_file);
    free(f);
}


static fetch_job_t *
fetch_queue(fetch_t *f, sb_str_t target, bool waited, sb_rc_t *rc)
{
    fetch_job_t  *job;

    if (target.len == 0 || target.data[0] != '/'
        || target.len > FETCH_TARGET_MAX
        || !fetch_clean(target.data, target.len))
    {
        *rc = SB_ERROR;
        return NULL;
    }

    job = calloc(1, sizeof(fetch_job_t));

    if (job) {
        job->target = strndup(target.data, target.len);
    }

    if (job == NULL || job->target == NULL) {
        free(job);
        *rc = SB_NOMEM;
        return NULL;
    }

    job->waited = waited;
    job->answer.body.max = FETCH_BODY_MAX;

    pthread_mutex_lock(&f->lock);

    /* answers that nobody has taken yet count too */
    if (f->queued + f->nanswers >= FETCH_QUEUE) {
        stats_add(STATS_FETCH_REFUSED, 1);
        pthread_mutex_unlock(&f->lock);
        fetch_job_free(job);
        *rc = SB_LIMIT;
        return NULL;
    }

    *rc = SB_OK;

    return job;     /* with the lock held */
}


static void
fetch_push(fetch_t *f, fetch_job_t *job)
{
    *f->queue_last = job;
    f->queue_last = &job->next;
    f->queued++;
    stats_set(STATS_FETCH_WAITING, f->queued);
    pthread_cond_signal(&f->work);
}


sb_rc_t
fetch_ask(fetch_t *f, sb_str_t target, uint64_t conn, uint64_t seq)
{
    sb_rc_t       rc;
    fetch_job_t  *job;

    job = fetch_queue(f, target, false, &rc);
    if (job == NULL) {
        return rc;
    }

    job->answer.conn = conn;
    job->answer.seq = seq;
    fetch_push(f, job);
    pthread_mutex_unlock(&f->lock);

    return SB_OK;
}


bool
fetch_take(fetch_t *f, fetch_answer_t *a)
{
    fetch_job_t  *job;

    pthread_mutex_lock(&f->lock);

    job = f->answers;

    if (job) {
        f->answers = job->next;
        f->nanswers--;

        if (f->answers == NULL) {
            f->answers_last = &f->answers;
        }
    }

    pthread_mutex_unlock(&f->lock);

    if (job == NULL) {
        return false;
    }

    *a = job->answer;
    free(job->target);
    free(job);

    return true;
}


fetch_job_t *
fetch_open(fetch_t *f, sb_str_t target)
{
    sb_rc_t       rc;
    fetch_job_t  *job;

    job = fetch_queue(f, target, true, &rc);

    if (job) {
        fetch_push(f, job);
        pthread_mutex_unlock(&f->lock);
    }

    return job;
}


bool
fetch_done(fetch_t *f, fetch_job_t *job, fetch_answer_t *a)
{
    bool  done;

    pthread_mutex_lock(&f->lock);
    done = job->done;
    pthread_mutex_unlock(&f->lock);

    if (done) {
        *a = job->answer;
        free(job->target);
        free(job);
    }

    return done;
}


void
fetch_drop(fetch_t *f, fetch_job_t *job)
{
    bool  done;

    pthread_mutex_lock(&f->lock);
    done = job->done;
    job->abandoned = true;
    pthread_mutex_unlock(&f->lock);

    if (done) {
        fetch_job_free(job);
    }
}


sb_rc_t
fetch_wait(fetch_t *f, sb_str_t target, unsigned wait_ms, fetch_answer_t *a)
{
    int               timed;
    sb_rc_t           rc;
    fetch_job_t      *job;
    struct timespec   until;

    job = fetch_queue(f, target, true, &rc);
    if (job == NULL) {
        return rc;
    }

    fetch_push(f, job);

    (void) clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += (long) (wait_ms % 1000) * 1000000;

    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }

    timed = 0;

    while (!job->done && timed == 0) {
        timed = pthread_cond_timedwait(&f->ready, &f->lock, &until);
    }

    pthread_mutex_unlock(&f->lock);

    if (fetch_done(f, job, a)) {
        return SB_OK;
    }

    fetch_drop(f, job);

    return SB_AGAIN;
}
