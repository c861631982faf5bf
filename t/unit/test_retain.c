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


#define TOLD(type)                                                            \
    "select group_concat(json_extract(result_json, '$.sandbox') ||"           \
    " json_extract(result_json, '$.rule'), ' ') from history_events where"    \
    " operation_type = '" type "' and json_extract(result_json, '$.sandbox')" \
    " is not null"


/* A command in the file of a sandbox that is deleted. */
static void
deleted(const char *sandbox)
{
    begin(9, "sandbox.create", NULL, 0);
    put();
    seen(sandbox);
    command(1, sandbox, 100, 0);
    gone(sandbox);
    go();
}


/* A directory in the place of a file that is about to be renamed. */
static void
block(const char *file, char name[700])
{
    (void) snprintf(name, 700, "%s" RETAIN_GONE, file);
    assert_int_equal(mkdir(name, 0700), 0);
}


/* What cannot be deleted is not told to be gone. */
static void
test_gone_not(void **state)
{
    char  path[512], name[600], in_the_way[700];

    (void) state;

    deleted("a");
    conf.on_delete = RETAIN_ON_DELETE_DELETE;
    at(60);
    (void) store_dir_path(path, sizeof(path), p.history, "a");
    block(path, in_the_way);
    work();
    commands("a", "1");
    is("_gateway", TOLD("gateway.purge"), "NULL");

    conf.on_delete = RETAIN_ON_DELETE_ARCHIVE;
    work();
    assert_int_equal(archived(name, sizeof(name)), 1);
    assert_int_equal(rmdir(in_the_way), 0);
    is("_gateway", TOLD("gateway.archive"), "aon_delete");

    block(name, in_the_way);
    at(100 * DAY);
    work();
    assert_int_equal(archived(name, sizeof(name)), 1);
    is("_gateway", TOLD("gateway.purge"), "NULL");

    /* ... nor for the total, over and over */
    conf.ttl_us = 0;
    conf.total = 1;
    work();
    assert_int_equal(archived(name, sizeof(name)), 1);
    is("_gateway", TOLD("gateway.purge"), "NULL");

    assert_int_equal(rmdir(in_the_way), 0);
    work();
    assert_int_equal(archived(name, sizeof(name)), 0);
    is("_gateway", TOLD("gateway.purge"), "atotal");
}


/* An archive goes for the total when it is not held, old enough, and nobody has
 * yet to see what is in it. */
static void
test_archive_stays(void **state)
{
    char      name[600];
    sqlite3  *db;

    (void) state;

    deleted("a");
    conf.on_delete = RETAIN_ON_DELETE_ARCHIVE;
    conf.ttl_us = 0;
    at(60);
    work();
    assert_int_equal(archived(name, sizeof(name)), 1);

    conf.total = 1;
    conf.holds[0] = "*";
    conf.nholds = 1;
    work();
    assert_int_equal(archived(name, sizeof(name)), 1);

    conf.nholds = 0;
    conf.keep_us = 600u * 1000000u;
    at(120);
    work();
    assert_int_equal(archived(name, sizeof(name)), 1);

    assert_int_equal(sqlite3_open(name, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "insert into history_consumers values("
                                  "'c', 1, '2026-11-29T09:00:00.000000Z')",
                                  NULL, NULL, NULL), SQLITE_OK);
    (void) sqlite3_close(db);
    at(DAY);
    work();
    assert_int_equal(archived(name, sizeof(name)), 1);

    at(31 * DAY);
    work();
    assert_int_equal(archived(name, sizeof(name)), 0);
    is("_gateway", TOLD("gateway.purge"), "atotal");
}


/* So does the file of a sandbox, and it comes back when a crash came between. */
static void
test_delete_stays(void **state)
{
    char  path[512], beside[600];

    (void) state;

    deleted("a");
    conf.on_delete = RETAIN_ON_DELETE_DELETE;
    change_file("a", "insert into history_consumers values('c', 1,"
                     " '2026-11-29T09:00:00.000000Z')");
    at(60);
    work();
    commands("a", "1");

    (void) store_dir_path(path, sizeof(path), p.history, "a");
    (void) snprintf(beside, sizeof(beside), "%s" RETAIN_GONE, path);
    stop();
    assert_int_equal(rename(path, beside), 0);
    start(STORE_HANDLES);
    work();
    commands("a", "1");
    assert_int_equal(access(beside, F_OK), -1);

    change_file("a", "update history_consumers set acknowledged_seq = 1000");
    work();
    assert_int_equal(size_of("a"), 0);
    is("_gateway", TOLD("gateway.purge"), "aon_delete");
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        limits_case(test_config_ttl),
        limits_case(test_hold_configured),
        limits_case(test_cleanup_told),
        limits_case(test_config_again),
        limits_case(test_lease),
        limits_case(test_gone_not),
        limits_case(test_archive_stays),
        limits_case(test_delete_stays)
    };

    return store_run(argc, argv, tests);
}
