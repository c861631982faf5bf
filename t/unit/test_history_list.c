/* Lists of sandbox-history while records go elsewhere. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "store_place.h"

#include "history_list.h"


static history_place_t    place;
static history_list_t     list;
static history_filter_t   filter;
static history_printer_t  printer;


static void
collect(void)
{
    history_where_t  where;

    memset(&where, 0, sizeof(where));
    where.history = p.history;
    history_filter_init(&filter);
    assert_true(history_place_open(&place, &where));
    assert_true(history_list_collect(&list, &place, NULL, &filter, -1));
    assert_true(history_printer_init(&printer, true));
}


static void
done(void)
{
    history_printer_free(&printer);
    history_list_free(&list);
    history_place_close(&place);
}


/* Moved into the file of its sandbox, which is made in between. */
static void
test_moved(void **state)
{
    (void) state;

    whole(1, "file.list", "s1", "failed", 500);
    whole(2, "file.list", "s1", "failed", 500);
    go();
    is("_gateway", "select count(*) from history_events", "2");

    collect();
    assert_int_equal(list.n, 2);
    seen("s1");
    go();
    is("_gateway", "select count(*) from history_events", "0");

    assert_true(history_list_print(&list, &printer, false));
    assert_int_equal(printer.rows, 2);
    assert_false(place.incomplete);
    done();
}


/* Met in both files, for it moved while they were read. */
static void
test_moved_meanwhile(void **state)
{
    history_key_t  twin;

    (void) state;

    seen("s1");
    whole(1, "file.list", "s1", "succeeded", 200);
    whole(2, "file.list", NULL, "failed", 404);
    go();

    collect();
    assert_int_equal(list.n, 2);
    twin = list.keys[0];
    twin.box = list.keys[1].box;
    twin.row = 4711;
    assert_true(history_list_add(&list, &twin));
    history_list_trim(&list, -1);

    assert_true(history_list_print(&list, &printer, true));
    assert_int_equal(printer.rows, 2);
    assert_false(place.incomplete);
    done();
}


/* One that is gone is missing, and that is said. */
static void
test_gone(void **state)
{
    (void) state;

    seen("s1");
    whole(1, "file.list", "s1", "succeeded", 200);
    whole(2, "file.list", "s1", "succeeded", 200);
    go();

    collect();
    list.keys[0].row = 4711;
    assert_true(history_list_print(&list, &printer, false));
    assert_int_equal(printer.rows, 1);
    assert_true(place.incomplete);
    done();
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        store_case(test_moved),
        store_case(test_moved_meanwhile),
        store_case(test_gone)
    };

    return store_run(argc, argv, tests);
}
