/* What a new history file says of itself. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "schema.h"


#define DAY  86400000000u


/* Members of the configuration of a file that is made now. */
static void
made(const char *days, const char *bytes, const char *overflow)
{
    char               text[200];
    sqlite3           *db;
    sqlite3_stmt      *st;
    schema_identity_t  id = { "s1", "i", NULL, "2026-01-01T00:00:00.000000Z" };

    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(schema_create(db), SQLITE_OK);
    assert_int_equal(schema_write_meta(db, &id), SQLITE_OK);

    assert_int_equal(sqlite3_prepare_v2(db, "select coalesce(json_extract("
        "m.value, '$.ttl_days'), 'null') || ' ' || json_extract(m.value,"
        " '$.max_database_bytes') || ' ' || json_extract(m.value,"
        " '$.overflow_policy') || ' ' || (select count(*) from json_each("
        "m.value)) || ' ' || (s.value = m.value) from history_meta m,"
        " gateway_state s where m.key = 'history_config_json' and"
        " s.key = 'config'", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    (void) snprintf(text, sizeof(text), "%s %s %s 24 1", days, bytes, overflow);
    assert_string_equal((const char *) sqlite3_column_text(st, 0), text);

    (void) sqlite3_finalize(st);
    (void) sqlite3_close(db);
}


static void
test_limits(void **state)
{
    (void) state;

    made("7", "134217728", "delete_oldest");

    schema_limits(3 * (uint64_t) DAY, 64 << 20, "stop_recording");
    made("3", "67108864", "stop_recording");

    /* the format knows whole days, and a least size */
    schema_limits(90000000, 1 << 20, "fail_operation");
    made("1", "16777217", "fail_operation");
    schema_limits(3 * (uint64_t) DAY + 1, 1 << 30, "delete_oldest");
    made("4", "1073741824", "delete_oldest");

    /* none */
    schema_limits(0, 0, "delete_oldest");
    made("null", "9007199254740991", "delete_oldest");

    schema_limits(7 * (uint64_t) DAY, 128 << 20, "delete_oldest");
    made("7", "134217728", "delete_oldest");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_limits)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
