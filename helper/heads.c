#include "heads.h"

#include "digest.h"
#include "id.h"
#include "json.h"
#include "log.h"
#include "table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


typedef struct {
    table_node_t  node;
    char         *dir;
    char         *sandbox;
    char         *instance;
    int64_t       n;
    int64_t       records;
    int64_t       proven;
    uint8_t       hash[CHAIN_HASH];
    const char   *ended;            /* how; NULL: it goes on */
    uint8_t       file[CHAIN_HASH];
} heads_news_t;

struct heads_s {
    int             dirfd;
    keys_t         *keys;
    table_t         news;
    table_t         ends;
    uint64_t        written_us;     /* tried then, by a clock nobody sets */
    heads_known_t  *known;          /* read when a file is opened first */
};


heads_t *
heads_new(int dirfd, keys_t *keys)
{
    heads_t  *h;

    h = calloc(1, sizeof(heads_t));

    if (h == NULL) {
        return NULL;
    }

    h->dirfd = dirfd;
    h->keys = keys;

    return h;
}


static void
heads_news_free(heads_news_t *n)
{
    free(n->dir);
    free(n->sandbox);
    free(n->instance);
    free(n);
}


static void
heads_drop(void *entry, void *data)
{
    heads_t       *h = data;
    heads_news_t  *n = entry;

    table_remove(n->ended ? &h->ends : &h->news, &n->node);
    heads_news_free(n);
}


static void
heads_written(void *entry, void *data)
{
    heads_t       *h = data;
    heads_news_t  *n = entry;

    if (h->known) {
        heads_known_set(h->known, n->dir, n->ended ? 0 : n->n, n->proven);
    }

    heads_drop(entry, data);
}


void
heads_free(heads_t *h)
{
    if (h) {
        table_each(&h->news, heads_drop, h);
        table_each(&h->ends, heads_drop, h);
        table_free(&h->news);
        table_free(&h->ends);
        heads_known_free(h->known);
        free(h);
    }
}


static heads_news_t *
heads_add(heads_t *h, table_t *in, const char *dir, const char *sandbox,
    const char *instance, const chain_t *c, int64_t records)
{
    heads_news_t  *n;

    if (h->keys == NULL || c->n == 0) {
        return NULL;
    }

    n = table_find(in, dir, strlen(dir));

    if (n == NULL) {
        if (in->count >= HEADS_NEWS) {
            return NULL;
        }

        n = calloc(1, sizeof(heads_news_t));
        if (n == NULL) {
            return NULL;
        }

        n->dir = strdup(dir);
        n->sandbox = strdup(sandbox);
        n->instance = strdup(instance);

        if (n->dir == NULL || n->sandbox == NULL || n->instance == NULL
            || table_add(in, &n->node, n->dir, strlen(n->dir)) != SB_OK)
        {
            heads_news_free(n);
            return NULL;
        }
    }

    n->n = c->n;
    n->records = records;
    n->proven = c->proven;
    memcpy(n->hash, c->hash, CHAIN_HASH);

    return n;
}


void
heads_note(heads_t *h, const char *dir, const char *sandbox,
    const char *instance, const chain_t *c, int64_t records)
{
    (void) heads_add(h, &h->news, dir, sandbox, instance, c, records);
}


bool
heads_end(heads_t *h, const char *dir, const char *sandbox,
    const char *instance, const chain_t *c, int64_t records, const char *how,
    const uint8_t file[CHAIN_HASH])
{
    heads_news_t  *n, *news;

    n = heads_add(h, &h->ends, dir, sandbox, instance, c, records);

    if (n == NULL) {
        return false;
    }

    n->ended = how;
    memcpy(n->file, file, CHAIN_HASH);

    /* it says that, too, and what comes later is of another file */
    news = table_find(&h->news, dir, strlen(dir));

    if (news) {
        heads_drop(news, h);
    }

    return true;
}


static bool
heads_load(heads_t *h)
{
    if (h->known == NULL) {
        h->known = heads_known_new(h->dirfd);
    }

    return h->known != NULL;
}


const keys_t *
heads_keys(const heads_t *h)
{
    return h->keys;
}


bool
heads_knew(heads_t *h, const char *dir)
{
    return heads_load(h) && heads_known_any(h->known, dir);
}


void
heads_opened(heads_t *h, const char *dir, const char *sandbox,
    const char *instance, chain_t *c, int64_t records)
{
    int64_t              proven;
    const heads_news_t  *n;

    /* what no head speaks of may be anything: of it nothing is proven */
    n = table_find(&h->news, dir, strlen(dir));
    proven = n ? n->proven
             : heads_load(h) ? heads_known_proven(h->known, dir) : -1;
    c->proven = proven < 0 || proven > c->n ? c->n : proven;

    if (heads_load(h) && heads_known_behind(h->known, dir, c->n)) {
        heads_note(h, dir, sandbox, instance, c, records);
    }
}


bool
heads_any(const heads_t *h)
{
    return h->news.count || h->ends.count;
}


bool
heads_due(const heads_t *h, uint64_t mono_us)
{
    return heads_any(h)
           && (h->news.count >= HEADS_NEWS
               || mono_us >= h->written_us + HEADS_US);
}


/* --- writing ------------------------------------------------------------ */

typedef struct {
    heads_t   *h;
    sb_buf_t   out;
    char       now[SB_TIME_LEN + 1];
    bool       failed;
} heads_round_t;


static void
heads_line(void *entry, void *data)
{
    char            hex[2 * CHAIN_HASH + 1], file[2 * CHAIN_HASH + 1];
    size_t          from;
    sb_buf_t       *out;
    heads_news_t   *n = entry;
    heads_round_t  *round = data;

    out = &round->out;
    from = out->len;
    sb_hex(hex, n->hash, CHAIN_HASH);
    sb_hex(file, n->file, CHAIN_HASH);

    if (round->failed
        || sb_buf_printf(out, "{\"at\":\"%s\",\"dir\":", round->now) != SB_OK
        || sb_json_write_str(out, sb_str(n->dir, strlen(n->dir))) != SB_OK
        || (n->ended
            && sb_buf_printf(out, ",\"ended\":\"%s\",\"file\":\"%s\"",
                             n->ended, file) != SB_OK)
        || sb_buf_printf(out, ",\"hash\":\"%s\",\"instance\":", hex) != SB_OK
        || sb_json_write_str(out, sb_str(n->instance, strlen(n->instance)))
           != SB_OK
        || sb_buf_printf(out, ",\"key\":\"%s\",\"n\":%lld,\"proven\":%lld,"
                         "\"records\":%lld,\"sandbox\":",
                         keys_name(round->h->keys), (long long) n->n,
                         (long long) n->proven, (long long) n->records)
           != SB_OK
        || sb_json_write_str(out, sb_str(n->sandbox, strlen(n->sandbox)))
           != SB_OK
        || sb_buf_add_c(out, '}') != SB_OK
        || !keys_sign_member(round->h->keys, out, from, out->len - 1)
        || sb_buf_add_c(out, '\n') != SB_OK)
    {
        round->failed = true;
    }
}


static bool
heads_put(int fd, sb_str_t text)
{
    ssize_t  n;

    while (text.len) {
        n = write(fd, text.data, text.len);

        if (n == -1 && errno == EINTR) {
            continue;
        }

        if (n <= 0) {
            return false;
        }

        text.data += n;
        text.len -= (size_t) n;
    }

    return true;
}


/*
 * All of it or nothing: half a line would make the next one unreadable, too.
 * One that was left by a crash is ended first.
 */
static bool
heads_append(int fd, sb_str_t text)
{
    int          err;
    char         last;
    struct stat  st;

    if (fstat(fd, &st) == -1) {
        return false;
    }

    if (st.st_size && pread(fd, &last, 1, st.st_size - 1) != 1) {
        return false;
    }

    if ((st.st_size == 0 || last == '\n' || heads_put(fd, sb_lit("\n")))
        && heads_put(fd, text) && fdatasync(fd) == 0)
    {
        return true;
    }

    err = errno;

    if (ftruncate(fd, st.st_size) == -1) {
        log_minutely(LOG_ERROR, "cannot take back what was written to "
                     HEADS_FILE ": %s; it is passed over", strerror(errno));
    }

    errno = err;

    return false;
}


typedef struct {
    table_node_t  node;
    char         *line;             /* and what it is found by: the directory,
                                       "/" in front of it where it ends one */
    size_t        len;
} heads_last_t;

typedef struct {
    table_t   lines;
    FILE     *out;
    bool      ended;                /* are they to be written now, or others? */
} heads_turn_t;


static void
heads_last_write(void *entry, void *data)
{
    heads_last_t  *l = entry;
    heads_turn_t  *t = data;

    if ((l->line[l->len] == '/') != t->ended) {
        return;
    }

    (void) fwrite(l->line, 1, l->len, t->out);
    table_remove(&t->lines, &l->node);
    free(l->line);
    free(l);
}


static void
heads_last_drop(heads_turn_t *t, const char *key, size_t n)
{
    heads_last_t  *l;

    l = table_find(&t->lines, key, n);

    if (l) {
        table_remove(&t->lines, &l->node);
        free(l->line);
        free(l);
    }
}


/*
 * Remembers a line in the place of an older one of the same file.  One that ends
 * a file takes the place of all of its lines: the new file has those that end one
 * in front, and what stands behind would be held against a file yet to come.
 */
static bool
heads_last(heads_turn_t *t, sb_str_t line)
{
    char           key[sizeof(((head_t *) 0)->dir) + 1];
    size_t         n;
    head_t         head;
    heads_last_t  *l;

    if (heads_parse(line, NULL, &head) != SB_OK) {
        return true;
    }

    n = (size_t) snprintf(key, sizeof(key), "%s%s", head.ended ? "/" : "",
                          head.dir);
    heads_last_drop(t, key, n);

    if (head.ended) {
        heads_last_drop(t, head.dir, strlen(head.dir));
    }

    l = malloc(sizeof(heads_last_t));
    if (l == NULL) {
        return false;
    }

    l->len = line.len + 1;
    l->line = malloc(l->len + n);

    if (l->line == NULL) {
        free(l);
        return false;
    }

    memcpy(l->line, line.data, line.len);
    l->line[line.len] = '\n';
    memcpy(l->line + l->len, key, n);

    if (table_add(&t->lines, &l->node, l->line + l->len, n) != SB_OK) {
        free(l->line);
        free(l);
        return false;
    }

    return true;
}


/* A new file that holds the last line of each; the old one stays beside it. */
static bool
heads_turn(heads_t *h)
{
    int            fd;
    bool           ok;
    FILE          *in;
    char          *line;
    size_t         size;
    ssize_t        n;
    heads_turn_t   t;

    memset(&t, 0, sizeof(t));
    line = NULL;
    size = 0;
    ok = true;

    fd = openat(h->dirfd, HEADS_FILE, O_RDONLY|O_NOFOLLOW|O_CLOEXEC);
    in = fd == -1 ? NULL : fdopen(fd, "r");

    if (in == NULL) {
        return false;
    }

    fd = openat(h->dirfd, HEADS_FILE ".new",
                O_WRONLY|O_CREAT|O_TRUNC|O_NOFOLLOW|O_CLOEXEC, 0644);
    t.out = fd == -1 ? NULL : fdopen(fd, "w");

    if (t.out == NULL) {
        (void) fclose(in);
        return false;
    }

    while (ok && (n = getline(&line, &size, in)) > 0) {
        ok = line[n - 1] != '\n' || heads_last(&t, sb_str(line, (size_t) n - 1));
    }

    free(line);
    (void) fclose(in);

    t.ended = true;
    table_each(&t.lines, heads_last_write, &t);
    t.ended = false;
    table_each(&t.lines, heads_last_write, &t);
    table_free(&t.lines);

    ok = fflush(t.out) == 0 && fsync(fd) == 0 && ok;
    ok = fclose(t.out) == 0 && ok;

    if (!ok) {
        return false;
    }

    (void) unlinkat(h->dirfd, HEADS_OLD, 0);

    return linkat(h->dirfd, HEADS_FILE, h->dirfd, HEADS_OLD, 0) == 0
           && renameat(h->dirfd, HEADS_FILE ".new", h->dirfd, HEADS_FILE) == 0;
}


bool
heads_write(heads_t *h, uint64_t now_us, uint64_t mono_us)
{
    int            fd;
    bool           ok;
    struct stat    st;
    heads_round_t  round;

    memset(&round, 0, sizeof(round));
    round.h = h;
    round.out.max = 2 * HEADS_NEWS * HEADS_LINE_MAX;
    sb_time_text(round.now, now_us);
    h->written_us = mono_us;

    table_each(&h->ends, heads_line, &round);
    table_each(&h->news, heads_line, &round);

    fd = round.failed ? -1
         : openat(h->dirfd, HEADS_FILE,
                  O_RDWR|O_CREAT|O_APPEND|O_NOFOLLOW|O_CLOEXEC, 0644);

    ok = fd != -1 && heads_append(fd, sb_str(round.out.data, round.out.len));

    if (!ok) {
        log_minutely(LOG_ERROR, "cannot write " HEADS_FILE ": %s; the heads"
                     " of %u files are signed later",
                     fd == -1 && round.failed ? "no memory" : strerror(errno),
                     (unsigned) (h->news.count + h->ends.count));
    }

    sb_buf_free(&round.out);

    if (fd != -1) {
        if (ok && fstat(fd, &st) == 0 && st.st_size > HEADS_BYTES
            && !heads_turn(h))
        {
            log_minutely(LOG_ERROR, "cannot begin a new " HEADS_FILE ": %s",
                         strerror(errno));
        }

        close(fd);
    }

    if (ok) {
        table_each(&h->ends, heads_written, h);
        table_each(&h->news, heads_written, h);
    }

    return ok;
}


/* --- reading ------------------------------------------------------------ */

static bool
heads_text(char *dst, size_t size, sb_str_t s)
{
    if (s.len == 0 || s.len >= size || memchr(s.data, '\0', s.len)) {
        return false;
    }

    memcpy(dst, s.data, s.len);
    dst[s.len] = '\0';

    return true;
}


static bool
heads_members(const sb_jv_t *root, head_t *head)
{
    if (!sb_jv_int(sb_jv_get(root, "proven"), &head->proven)
        || head->proven < 0)
    {
        head->proven = -1;
    }

    head->ended = sb_jv_str(root, "ended").len != 0;

    return (!head->ended
            || sb_unhex(head->file, CHAIN_HASH, sb_jv_str(root, "file"))
               == SB_OK)
           && heads_text(head->dir, sizeof(head->dir), sb_jv_str(root, "dir"))
           && heads_text(head->sandbox, sizeof(head->sandbox),
                         sb_jv_str(root, "sandbox"))
           && heads_text(head->instance, sizeof(head->instance),
                         sb_jv_str(root, "instance"))
           && heads_text(head->key, sizeof(head->key), sb_jv_str(root, "key"))
           && heads_text(head->at, sizeof(head->at), sb_jv_str(root, "at"))
           && sb_jv_int(sb_jv_get(root, "n"), &head->n)
           && sb_jv_int(sb_jv_get(root, "records"), &head->records)
           && sb_unhex(head->hash, CHAIN_HASH, sb_jv_str(root, "hash"))
              == SB_OK;
}


sb_rc_t
heads_parse(sb_str_t line, const keys_t *keys, head_t *head)
{
    sb_rc_t     rc;
    sb_jdoc_t  *doc;

    memset(head, 0, sizeof(head_t));

    if (line.len > HEADS_LINE_MAX) {
        return SB_ERROR;
    }

    doc = sb_jdoc_parse(line, NULL, &rc);
    if (doc == NULL) {
        return rc == SB_NOMEM ? SB_NOMEM : SB_ERROR;
    }

    rc = heads_members(sb_jdoc_root(doc), head) ? SB_OK : SB_ERROR;
    sb_jdoc_free(doc);

    if (rc == SB_OK && keys) {
        head->signed_right = keys_verify_member(keys, line);
    }

    return rc;
}


bool
heads_each(FILE *f, size_t bytes, const char *dir, const keys_t *keys,
    bool (*visit)(void *data, const head_t *head), void *data)
{
    bool      more;
    char     *line;
    head_t    head;
    size_t    size;
    ssize_t   n;
    sb_str_t  text;

    if (fseeko(f, 0, SEEK_SET) == -1) {
        return false;
    }

    line = NULL;
    size = 0;
    more = true;

    while (more && (n = getline(&line, &size, f)) > 0 && (size_t) n <= bytes)
    {
        bytes -= (size_t) n;
        text = sb_str(line, (size_t) n - 1);

        if (line[n - 1] == '\n' && heads_parse(text, NULL, &head) == SB_OK
            && strcmp(head.dir, dir) == 0
            && heads_parse(text, keys, &head) == SB_OK)
        {
            more = visit(data, &head);
        }
    }

    free(line);

    return ferror(f) == 0;
}
