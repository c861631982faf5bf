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

    whole(1, "file.list", "s1", "failed", 500);
    whole(2, "file.list", NULL, "failed", 404);
    go();
    collect();
    assert_int_equal(list.n, 2);
    twin = list.keys[0];
    done();

    seen("s1");
    go();
    collect();
    assert_int_equal(list.n, 2);
    twin.box = list.keys[1].box;
    assert_int_equal(twin.cursor, list.keys[0].cursor);
    assert_int_not_equal(list.keys[0].box, twin.box);
    assert_true(history_list_add(&list, &twin));
    history_list_trim(&list, -1);

    assert_true(history_list_print(&list, &printer, true));
    assert_int_equal(printer.rows, 2);
    assert_int_equal(list.gone, 0);
    assert_false(place.incomplete);
    done();
}


/* Beside one of ours that has the same cursor. */
static void
test_moved_beside(void **state)
{
    unsigned  i;

    (void) state;

    whole(1, "file.list", "s1", "failed", 500);
    whole(2, "file.list", NULL, "failed", 404);
    go();
    change_file("_gateway",
        "update gateway_records set cursor = (select min(cursor)"
        " from gateway_records)");

    for (i = 0; i < 2; i++) {
        collect();
        assert_int_equal(list.n, 2);

        if (i == 0) {
            seen("s1");
            go();
            is("_gateway", "select count(*) from history_events", "1");
        }

        assert_true(history_list_print(&list, &printer, false));
        assert_int_equal(printer.rows, 2);
        assert_false(place.incomplete);
        done();
    }

    /* that one goes, and what moved is not told for it */
    collect();
    change_file("_gateway", "delete from history_events");
    assert_true(history_list_print(&list, &printer, false));
    assert_int_equal(printer.rows, 1);
    assert_false(place.incomplete);
    done();
}


/* What retention removes meanwhile is not missing in what is there. */
static void
test_gone(void **state)
{
    char  path[512];

    (void) state;

    seen("s1");
    seen("s2");
    whole(1, "file.list", "s1", "succeeded", 200);
    whole(2, "file.list", "s1", "succeeded", 200);
    whole(3, "file.list", "s2", "succeeded", 200);
    whole(4, "file.list", NULL, "failed", 404);
    go();

    collect();
    assert_int_equal(list.n, 4);
    list.keys[0].row = 4711;
    list.keys[3].row = 4711;

    /* a whole file; it was not open any more */
    history_place_drop(&place, list.boxes[list.keys[2].box]);
    assert_true(store_dir_path(path, sizeof(path), p.history, "s2") != 0);
    assert_int_equal(unlink(path), 0);

    assert_true(history_list_print(&list, &printer, false));
    assert_int_equal(printer.rows, 1);
    assert_int_equal(list.gone, 3);
    assert_false(place.incomplete);
    done();
}


/* What is there and cannot be read is. */
static void
test_unreadable(void **state)
{
    int   fd;
    char  path[512];

    (void) state;

    seen("s1");
    whole(1, "file.list", "s1", "succeeded", 200);
    whole(2, "file.list", NULL, "failed", 404);
    go();

    collect();
    assert_int_equal(list.n, 2);
    stop();
    history_place_drop(&place, list.boxes[list.keys[0].box]);
    assert_true(store_dir_path(path, sizeof(path), p.history, "s1") != 0);
    fd = open(path, O_WRONLY|O_TRUNC);
    assert_int_equal(write(fd, "nothing of ours, at all", 23), 23);
    close(fd);

    assert_true(history_list_print(&list, &printer, false));
    assert_int_equal(printer.rows, 1);
    assert_int_equal(list.gone, 0);
    assert_true(place.incomplete);
    done();
    start(STORE_HANDLES);
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        store_case(test_moved),
        store_case(test_moved_meanwhile),
        store_case(test_moved_beside),
        store_case(test_gone),
        store_case(test_unreadable)
    };

    return store_run(argc, argv, tests);
}
