#include "retain_int.h"

#include "id.h"
#include "log.h"
#include "stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


#define RETAIN_ENTRIES  64          /* of a directory, in one step */
#define RETAIN_CLOCK_US 200000u

const char *const  retain_overflow_names[3] = {
    "delete_oldest", "stop_recording", "fail_operation"
};


void
retain_defaults(retain_conf_t *conf)
{
    memset(conf, 0, sizeof(retain_conf_t));
    conf->ttl_us = RETAIN_TTL;
    conf->size = RETAIN_SIZE;
    conf->total = RETAIN_TOTAL;
    conf->keep_us = RETAIN_KEEP;
}


retain_t *
retain_new(const retain_conf_t *conf, store_t *store,
    const retain_hooks_t *hooks)
{
    retain_t  *r;

    r = calloc(1, sizeof(retain_t));
    if (r == NULL) {
        return NULL;
    }

    r->conf = *conf;
    r->store = store;
    r->last = &r->first;

    if (hooks) {
        r->hooks = *hooks;
    }

    stats_set(STATS_HISTORY_LIMIT, conf->total);

    return r;
}


static void
retain_free_file(void *entry, void *data)
{
    retain_t       *r = data;
    retain_file_t  *f = entry;

    table_remove(&r->files, &f->node);
    free(f);
}


void
retain_free(retain_t *r)
{
    if (r == NULL) {
        return;
    }

    if (r->sweep) {
        closedir(r->sweep);
    }

    table_each(&r->files, retain_free_file, r);
    table_free(&r->files);
    free(r);
}


uint64_t
retain_now(retain_t *r)
{
    int       fd;
    char      text[32];
    int64_t   ahead;
    ssize_t   n;
    uint64_t  now, mono;

    now = sb_now_us();

    if (r->conf.clock == NULL) {
        return now;
    }

    mono = sb_mono_us();

    if (mono >= r->clock_us + RETAIN_CLOCK_US) {
        r->clock_us = mono;
        fd = open(r->conf.clock, O_RDONLY|O_CLOEXEC);
        n = fd == -1 ? -1 : read(fd, text, sizeof(text) - 1);

        if (fd != -1) {
            close(fd);
        }

        text[n > 0 ? n : 0] = '\0';
        ahead = n > 0 ? strtoll(text, NULL, 10) * 1000000 : 0;

        if (ahead != r->ahead_us) {
            /* all is older than it was */
            r->ahead_us = ahead;
            r->sweep_us = 0;
        }
    }

    return now + (uint64_t) r->ahead_us;
}


/* --- files that are known -------------------------------------------------- */

retain_file_t *
retain_file(retain_t *r, const char *dir, bool archive)
{
    size_t          n;
    retain_file_t  *f;

    n = strlen(dir);
    f = table_find(&r->files, dir, n);

    if (f || n >= RETAIN_NAME_LEN || r->files.count >= RETAIN_FILES) {
        return f && f->archive == archive ? f : NULL;
    }

    f = calloc(1, sizeof(retain_file_t));
    if (f == NULL) {
        return NULL;
    }

    memcpy(f->dir, dir, n + 1);
    f->archive = archive;

    if (table_add(&r->files, &f->node, f->dir, n) != SB_OK) {
        free(f);
        return NULL;
    }

    return f;
}


void
retain_forget(retain_t *r, retain_file_t *f)
{
    retain_file_t  **p;

    for (p = &r->first; f->queued && *p; p = &(*p)->next) {
        if (*p == f) {
            *p = f->next;

            if (*p == NULL) {
                r->last = p;
            }

            break;
        }
    }

    if (r->urgent == f) {
        r->urgent = NULL;
    }

    if (f->full && r->hooks.full) {
        r->hooks.full(r->hooks.data, f->dir, NULL, false, NULL);
    }

    r->total -= f->physical < r->total ? f->physical : r->total;
    table_remove(&r->files, &f->node);
    free(f);
}


void
retain_queue(retain_t *r, retain_file_t *f)
{
    if (!f->queued) {
        f->queued = true;
        f->next = NULL;
        *r->last = f;
        r->last = &f->next;
    }
}


size_t
retain_path(const retain_t *r, const retain_file_t *f, char *dst, size_t size)
{
    int  n;

    if (!f->archive) {
        return store_dir_path(dst, size, store_base(r->store), f->dir);
    }

    n = snprintf(dst, size, "%s/" RETAIN_ARCHIVE "/%s", store_base(r->store),
                 f->dir);

    return n > 0 && (size_t) n < size ? (size_t) n : 0;
}


void
retain_measure(retain_t *r, retain_file_t *f)
{
    char         path[RETAIN_PATH_MAX];
    size_t       n;
    uint64_t     bytes;
    struct stat  st;

    n = retain_path(r, f, path, sizeof(path) - 8);
    bytes = 0;
    f->wal = 0;

    if (n && lstat(path, &st) == 0) {
        bytes = (uint64_t) st.st_size;
        (void) strcpy(path + n, "-wal");

        if (lstat(path, &st) == 0) {
            f->wal = (uint64_t) st.st_size;
            bytes += f->wal;
        }
    }

    r->total += bytes;
    r->total -= f->physical < r->total ? f->physical : r->total;
    f->physical = bytes;
    stats_set(STATS_HISTORY_BYTES, r->total);
}


void
retain_touch(retain_t *r, const store_db_t *db)
{
    uint64_t        now;
    retain_file_t  *f;

    f = retain_file(r, db->dir, false);
    if (f == NULL) {
        return;
    }

    now = sb_mono_us();
    f->written_us = now;
    f->dry = f->dry && now < f->dry_us;

    if (now >= f->look_us) {
        f->look_us = now + RETAIN_TOUCH_US;
        retain_measure(r, f);
        retain_queue(r, f);
    }
}


void
retain_purged(retain_t *r, const store_db_t *db)
{
    if (r->hooks.purged) {
        r->hooks.purged(r->hooks.data, db->dir);
    }
}


void
retain_again(retain_t *r, const store_db_t *db)
{
    retain_file_t  *f;

    f = retain_file(r, db->dir, false);

    if (f) {
        f->ttl_us = 0;
        f->dry = false;
        retain_queue(r, f);
    }
}


/* --- how full -------------------------------------------------------------- */

/* Of two bounds the second: where records are left out, too. */
static retain_level_e
retain_level_of(uint64_t bytes, uint64_t limit, uint64_t slack,
    retain_overflow_e overflow)
{
    if (limit == 0) {
        return RETAIN_ROOM;
    }

    if (overflow == RETAIN_DELETE_OLDEST) {
        /* what is too much is about to be deleted, if it may be */
        limit += slack;
    }

    return bytes < limit ? RETAIN_ROOM
           : bytes < limit + slack ? RETAIN_NO_OUTPUT : RETAIN_NO_RECORDS;
}


retain_level_e
retain_level(retain_t *r, store_db_t *db)
{
    uint64_t        logical;
    retain_facts_t  facts;
    retain_level_e  one, all;

    all = r->known ? retain_level_of(r->total, r->conf.total,
                                     r->conf.total / 8, r->conf.overflow)
                   : RETAIN_ROOM;

    if (db->limits.read_us == 0
        || sb_mono_us() > db->limits.read_us + RETAIN_TOUCH_US)
    {
        if (retain_facts(r, db, &facts) != SQLITE_OK) {
            return all;
        }

        db->limits.read_us = sb_mono_us();
        db->limits.size = facts.size;
        db->limits.overflow = facts.overflow;
        logical = facts.logical;

    } else if (purge_size(db, &logical, NULL, NULL) != SQLITE_OK) {
        return all;
    }

    if (db->limits.overflow == RETAIN_DELETE_OLDEST && db->limits.size
        && logical > db->limits.size + db->limits.size / 16)
    {
        /* it grows faster than it is looked at */
        retain_room(r, db);

        if (purge_size(db, &logical, NULL, NULL) != SQLITE_OK) {
            return all;
        }
    }

    one = retain_level_of(logical, db->limits.size, db->limits.size / 8,
                          db->limits.overflow);

    return one > all ? one : all;
}


bool
retain_urgent(const retain_t *r)
{
    return r->urgent != NULL;
}


/* --- all files in turn ----------------------------------------------------- */

typedef struct {
    retain_t  *r;
    unsigned   n;
} retain_stale_t;


static void
retain_stale(void *entry, void *data)
{
    retain_t       *r = data;
    retain_file_t  *f = entry;

    if (f->sweep != r->sweeps && !f->queued) {
        retain_forget(r, f);
    }
}


static bool
retain_sweep_begin(retain_t *r, bool archive)
{
    char  path[RETAIN_PATH_MAX];

    (void) snprintf(path, sizeof(path), "%s/%s", store_base(r->store),
                    archive ? RETAIN_ARCHIVE : ".");

    r->sweep_archive = archive;
    r->sweep = opendir(path);

    return r->sweep != NULL;
}


static void
retain_sweep_end(retain_t *r)
{
    closedir(r->sweep);
    r->sweep = NULL;

    if (!r->sweep_archive && retain_sweep_begin(r, true)) {
        return;
    }

    table_each(&r->files, retain_stale, r);
    r->known = true;
    r->sweep_us = sb_mono_us() + RETAIN_SWEEP_US;
    stats_set(STATS_HISTORY_BYTES, r->total);
    stats_set(STATS_HISTORY_FILES, r->files.count);
}


/* Is it what a crash left on its way out? */
static bool
retain_left(retain_t *r, const char *name)
{
    size_t  n;

    if (!r->sweep_archive) {

        if (name[0] != '.' && !store_exists(r->store, name)) {
            retain_come_back(r, name, false);
        }

        return false;
    }

    n = strlen(name);

    if (n <= sizeof(RETAIN_GONE) - 1
        || strcmp(name + n - sizeof(RETAIN_GONE) + 1, RETAIN_GONE) != 0)
    {
        return false;
    }

    retain_come_back(r, name, true);

    return true;
}


/* Some entries; true: there are more. */
static bool
retain_sweep(retain_t *r)
{
    uint64_t        now;
    unsigned        i;
    retain_file_t  *f;
    struct dirent  *e;

    if (r->sweep == NULL) {
        now = sb_mono_us();

        if (now < r->sweep_us) {
            return false;
        }

        r->sweep_us = now + RETAIN_SWEEP_US;
        r->sweeps++;

        if (!retain_sweep_begin(r, false)) {
            return false;
        }
    }

    for (i = 0; i < RETAIN_ENTRIES; i++) {
        e = readdir(r->sweep);

        if (e == NULL) {
            retain_sweep_end(r);
            return r->sweep != NULL;
        }

        if (retain_left(r, e->d_name)) {
            continue;
        }

        if (e->d_name[0] == '.'
            || strlen(e->d_name) >= (r->sweep_archive ? RETAIN_NAME_LEN
                                                      : STORE_DIR_LEN)
            || (r->sweep_archive ? retain_archived(e->d_name) == 0
                                 : !store_exists(r->store, e->d_name)))
        {
            continue;
        }

        f = retain_file(r, e->d_name, r->sweep_archive);
        if (f == NULL) {
            continue;
        }

        f->sweep = r->sweeps;
        f->dry = false;
        retain_measure(r, f);
        retain_queue(r, f);
    }

    return true;
}


/* --- the sum of all -------------------------------------------------------- */

typedef struct {
    retain_file_t  *oldest;
    retain_file_t  *log;            /* with a long one */
    uint64_t        now_us;
} retain_choice_t;


static void
retain_choose(void *entry, void *data)
{
    retain_file_t    *f = entry;
    retain_choice_t  *c = data;

    if (f->wal >= RETAIN_TRIM && c->now_us >= f->trim_us
        && (c->log == NULL || f->wal > c->log->wal))
    {
        c->log = f;
    }

    if (f->held || f->dry || f->oldest_us == 0) {
        return;
    }

    if (c->oldest == NULL || f->oldest_us < c->oldest->oldest_us) {
        c->oldest = f;
    }
}


static void
retain_total(retain_t *r)
{
    bool             full;
    retain_choice_t  c;

    if (!r->known || r->conf.total == 0) {
        return;
    }

    full = r->conf.overflow == RETAIN_FAIL_OPERATION
           && r->total >= (r->total_full ? r->conf.total - r->conf.total / 16
                                         : r->conf.total);

    if (full != r->total_full) {
        r->total_full = full;

        if (r->hooks.full) {
            r->hooks.full(r->hooks.data, NULL, NULL, full,
                          "sandbox_history_total");
        }
    }

    if (r->total <= r->conf.total) {
        return;
    }

    memset(&c, 0, sizeof(c));
    c.now_us = sb_mono_us();
    table_each(&r->files, retain_choose, &c);

    if (c.log) {
        /* what is in a file already costs nobody anything */
        c.log->trim = true;
        c.log->trim_us = c.now_us + RETAIN_TRIM_US;
        retain_queue(r, c.log);
        return;
    }

    if (r->conf.overflow != RETAIN_DELETE_OLDEST) {
        return;
    }

    if (c.oldest == NULL) {
        log_minutely(LOG_ERROR, "history files take %llu MiB of %llu, and "
                     "nothing in them may be deleted",
                     (unsigned long long) (r->total >> 20),
                     (unsigned long long) (r->conf.total >> 20));
        return;
    }

    if (c.oldest->squeeze == 0) {
        c.oldest->squeeze = r->total - r->conf.total + r->conf.total / 32;
    }

    retain_queue(r, c.oldest);
}


/* --- work ------------------------------------------------------------------ */

bool
retain_work(retain_t *r, uint64_t floor, uint64_t us)
{
    bool            more;
    uint64_t        until;
    retain_file_t  *f;

    r->floor = floor;
    until = sb_mono_us() + us;

    for ( ;; ) {
        (void) retain_now(r);
        more = retain_sweep(r);
        f = r->first;

        if (f == NULL) {
            if (!more) {
                retain_total(r);
                f = r->first;
            }

            if (f == NULL && !more) {
                return false;
            }
        }

        if (f) {
            r->first = f->next;

            if (r->first == NULL) {
                r->last = &r->first;
            }

            f->queued = false;
            more = true;

            if (retain_look(r, f)) {
                retain_queue(r, f);
            }
        }

        if (sb_mono_us() >= until) {
            return more;
        }
    }
}
