/* What limits do with a history file for reasons of its own: what was set for
 * it, and who holds it; the clock is moved by hand. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "limits_place.h"
#include "schema.h"


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


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        limits_case(test_config_ttl)
    };

    return store_run(argc, argv, tests);
}
