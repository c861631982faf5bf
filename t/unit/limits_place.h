/* Limits of history files whose clock is moved by hand. */

#ifndef LIMITS_PLACE_H_INCLUDED
#define LIMITS_PLACE_H_INCLUDED

#include "purge.h"
#include "retain_int.h"
#include "store_place.h"


#define DAY  ((int64_t) 86400)

static retain_conf_t  conf;
static retain_t      *retain;
static char           clock_path[96];
static char           told[256];
static unsigned       purges;       /* told */


/* Limits see T0 and so many seconds more. */
static inline void
at(int64_t s)
{
    clock_at(clock_path, s);
}


static inline void
full_hook(void *data, const char *dir, const char *sandbox, bool full,
    const char *limit)
{
    (void) data;
    (void) snprintf(told, sizeof(told), "%s %s %d %s", dir ? dir : "-",
                    sandbox ? sandbox : "-", full, limit ? limit : "-");
}


static inline void
purged_hook(void *data, const char *dir)
{
    (void) data;
    (void) dir;
    purges++;
}


/* A new engine, as after a start. */
static inline void
limits(void)
{
    retain_hooks_t  hooks = {
        .data = p.apply, .busy = apply_busy, .removed = apply_removed,
        .purged = purged_hook, .full = full_hook
    };

    retain_free(retain);
    conf.clock = clock_path;
    retain = retain_new(&conf, p.store, &hooks);
    assert_non_null(retain);
    apply_retain(p.apply, retain);
}


static inline void
work(void)
{
    unsigned  n;

    /* a new engine looks at everything now */
    limits();

    for (n = 0; retain_work(retain, UINT64_MAX, 1000000); n++) {
        assert_true(n < 1000);
    }
}


static inline int
setup_limits(void **state)
{
    setup(state);
    (void) snprintf(clock_path, sizeof(clock_path), "%s/clock", p.path);
    retain_defaults(&conf);
    conf.keep_us = 0;
    retain = NULL;
    told[0] = '\0';
    purges = 0;
    at(0);
    limits();

    return 0;
}


static inline int
teardown_limits(void **state)
{
    apply_retain(p.apply, NULL);
    retain_free(retain);

    return teardown(state);
}


/* A command of sandbox `id` with so many bytes of output, at a second. */
static inline void
command(unsigned op, const char *id, size_t bytes, int64_t s)
{
    size_t       n;
    uint64_t     us;

    static char  data[16000];

    us = (uint64_t) s * 1000000;
    memset(data, 'a' + (int) (op % 26), sizeof(data));
    begin(op, "command.execute", id, us);
    put();
    facts(op);
    tf_str(&f, SB_T_COMMAND, "make");
    put();

    while (bytes) {
        n = bytes < sizeof(data) ? bytes : sizeof(data);
        output(op, 0, data, n, us);
        bytes -= n;
    }

    end(op, "succeeded", 200, us);
    put();
}


static inline uint64_t
size_of(const char *dir)
{
    char         path[512];
    struct stat  st;

    (void) store_dir_path(path, sizeof(path), p.history, dir);

    return stat(path, &st) == 0 ? (uint64_t) st.st_size : 0;
}


static inline void
gone(const char *sandbox)
{
    tf_begin(&f, SB_F_SEEN, 0, ++p.seq, 0, 0);
    tf_str(&f, SB_T_SANDBOX, sandbox);
    tf_str(&f, SB_T_STATE, "gone");
    put();
}


static inline unsigned
archived(char *name, size_t size)
{
    char            path[96];
    DIR            *d;
    unsigned        n;
    struct dirent  *e;

    (void) snprintf(path, sizeof(path), "%s/archive", p.history);
    d = opendir(path);

    for (n = 0; d && (e = readdir(d)) != NULL; /* void */ ) {
        if (strlen(e->d_name) > 8
            && strcmp(e->d_name + strlen(e->d_name) - 8, ".sqlite3") == 0)
        {
            (void) snprintf(name, size, "%s/%s", path, e->d_name);
            n++;
        }
    }

    if (d) {
        closedir(d);
    }

    return n;
}


#define limits_case(fn)                                                       \
    cmocka_unit_test_setup_teardown(fn, setup_limits, teardown_limits)

#endif /* LIMITS_PLACE_H_INCLUDED */
