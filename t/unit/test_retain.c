/* What limits do with a history file for reasons of its own: what was set for
 * it, and who holds it; the clock is moved by hand. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "errand.h"
#include "limits_place.h"
#include "schema.h"
#include "stats.h"

#include <sys/eventfd.h>


/* What config-set does. */
static void
config_set(const char *dir, const char *changes)
{
    char  sql[512];

    (void) snprintf(sql, sizeof(sql), "update history_meta set value ="
                    " json_set(value, %s) where key = 'history_config_json';"
                    "update history_meta set value = value + 1 where key ="
                    " 'history_config_revision'", changes);
    change_file(dir, sql);
}


/* What sandbox-history sends: words, each with its end, and one more. */
static void
errand(const char *dir, const char *words, size_t n, bool ok, const char *want)
{
    int          fd;
    char         path[256], body[512];
    size_t       len;
    errand_t    *done;
    errands_t   *all;
    struct stat  st;

    (void) store_dir_path(path, sizeof(path), p.history, dir);
    assert_int_equal(stat(path, &st), 0);
    len = (size_t) snprintf(body, sizeof(body), "%llu:%llu%c%s%csue%c",
                            (unsigned long long) st.st_dev,
                            (unsigned long long) st.st_ino, 0, dir, 0, 0);
    memcpy(body + len, words, n);

    fd = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);
    all = errands_new(fd);
    assert_true(errands_put(all, 1, 1, sb_str(body, len + n)));
    errands_run(all, p.store, retain);
    done = errands_take(all);
    assert_non_null(done);
    assert_int_equal(sb_buf_add(&done->out, "", 1), SB_OK);

    if (done->ok != ok || strstr(done->out.data, want) == NULL) {
        fail_msg("%s", done->out.data);
    }

    errand_free(done);
    errands_free(all);
    close(fd);
}

#define errand_ok(dir, words, want)                                           \
    errand(dir, words "\0", sizeof(words) + 1, true, want)
#define errand_refused(dir, words, want)                                      \
    errand(dir, words "\0", sizeof(words) + 1, false, want)

#define CLEANUP  "cleanup\0--max-bytes\0" "1\0--overflow-policy\0delete_oldest"


static void
commands(const char *dir, const char *want)
{
    is(dir, "select count(*) from history_events where operation_type ="
       " 'command.execute'", want);
}


/* ttl_days null is "no limit" (format 7.1), of a file whatever is configured;
 * and a number is a limit where none is. */
static void
test_config_ttl(void **state)
{
    (void) state;

    seen("a");
    seen("b");
    command(1, "a", 100, 0);
    command(2, "b", 100, 0);
    go();
    config_set("a", "'$.ttl_days', null");
    at(30 * DAY);
    work();
    commands("a", "1");
    commands("b", "0");

    /* 7 is the preset of the format, and still a decision */
    schema_limits(0, 0, "delete_oldest");
    conf.ttl_us = 0;
    seen("c");
    seen("d");
    command(3, "c", 100, 30 * DAY);
    command(4, "d", 100, 30 * DAY);
    go();
    schema_limits(RETAIN_TTL, RETAIN_SIZE, "delete_oldest");
    is("c", "select json_type(value, '$.ttl_days') from gateway_state where"
       " key = 'config'", "null");
    config_set("c", "'$.ttl_days', 7");
    at(36 * DAY);
    work();
    commands("c", "1");
    at(38 * DAY);
    work();
    commands("c", "0");
    commands("d", "1");

    /* what the file was made with is none: what is configured counts */
    conf.ttl_us = RETAIN_TTL;
    config_set("d", "'$.ttl_days', null");
    work();
    commands("d", "0");
}


/* A hold of the configuration is one for cleanup, too, and release says so. */
static void
test_hold_configured(void **state)
{
    (void) state;

    seen("a");
    seen("b");
    command(1, "a", 100, 0);
    command(2, "b", 100, 0);
    go();
    conf.holds[0] = "a";
    conf.nholds = 1;
    limits();
    errand_refused("a", CLEANUP, "on legal hold by the configuration");
    errand_ok("a", "release", "{\"changed\":false,\"held\":true}");
    commands("a", "1");
    errand_ok("b", "hold", "{\"changed\":true,\"held\":true}");
    errand_ok("b", "release", "{\"changed\":true,\"held\":false}");

    conf.holds[0] = "*";
    limits();
    errand_refused("b", CLEANUP, "on legal hold by the configuration");
    conf.nholds = 0;
    limits();
    errand_ok("a", CLEANUP, "\"deleted_operations\":1,");
    commands("a", "0");
}


/* Who follows a file is told of what a cleanup deletes, and it is counted. */
static void
test_cleanup_told(void **state)
{
    uint64_t  before;

    (void) state;

    seen("a");
    command(1, "a", 100, 0);
    command(2, "a", 100, 0);
    go();
    purges = 0;
    before = stats_get(STATS_PURGED);
    errand_ok("a", "ack\0--consumer-id\0c\0--seq\0" "1000",
              "\"acknowledged_seq\":1000");
    assert_int_equal(purges, 0);
    errand_ok("a", CLEANUP, "\"deleted_operations\":2,");
    assert_int_equal(purges, 1);
    assert_int_equal(stats_get(STATS_PURGED) - before, 2);
}


/* config-set counts at once, not when the limit before would have. */
static void
test_config_again(void **state)
{
    unsigned  i;

    (void) state;

    seen("a");
    command(1, "a", 100, 0);
    go();
    at(3 * DAY);
    work();
    commands("a", "1");
    config_set("a", "'$.ttl_days', 1");
    errand_ok("a", "ack\0--consumer-id\0c\0--seq\0" "1000",
              "\"acknowledged_seq\":1000");

    for (i = 0; i < 100 && retain_work(retain, UINT64_MAX, 1000000); i++) {
        /* void */
    }

    commands("a", "0");
}


/* Nothing goes while somebody has the lease of cleanup, for its time. */
static void
test_lease(void **state)
{
    retain_file_t  *file;

    (void) state;

    seen("a");
    command(1, "a", 100, 0);
    go();
    errand_ok("a", "lease-acquire\0--resource-key\0history:cleanup\0"
              "--owner-id\0me\0--ttl-ms\0" "600000", "\"acquired\":true");
    at(30 * DAY);
    work();
    commands("a", "1");

    /* who never gives it back does not keep everything for ever */
    file = retain_file(retain, "a", false);
    assert_true(file->lease_us != 0);
    file->lease_us -= RETAIN_LEASE_US;
    retain_queue(retain, file);
    while (retain_work(retain, UINT64_MAX, 1000000)) { /* void */ }
    commands("a", "0");

    seen("b");
    command(2, "b", 100, 0);
    go();
    errand_ok("b", "lease-acquire\0--resource-key\0history:cleanup\0"
              "--owner-id\0me\0--ttl-ms\0" "600000", "\"acquired\":true");
    work();
    commands("b", "1");
    errand_ok("b", "lease-release\0--resource-key\0history:cleanup\0"
              "--owner-id\0me", "\"released\":true");
    while (retain_work(retain, UINT64_MAX, 1000000)) { /* void */ }
    commands("b", "0");
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        limits_case(test_config_ttl),
        limits_case(test_hold_configured),
        limits_case(test_cleanup_told),
        limits_case(test_config_again),
        limits_case(test_lease)
    };

    return store_run(argc, argv, tests);
}
