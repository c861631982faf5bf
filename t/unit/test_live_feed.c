/* What live streams tell of an operation that goes on. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "store_place.h"

#include "live_feed.h"
#include "stats.h"


static live_event_t *
next(live_feed_t *feed)
{
    live_event_t    *e;
    live_feed_rc_e   rc;

    do {
        rc = live_feed_next(feed, &e);
    } while (rc == LIVE_FEED_NONE);

    assert_int_equal(rc, LIVE_FEED_EVENT);

    return e;
}


static void
is_text(sb_str_t have, const char *want)
{
    assert_int_equal(have.len, strlen(want));
    assert_memory_equal(have.data, want, have.len);
}


/* Its pieces of output share what is known of it, until more is known. */
static void
test_output_shares(void **state)
{
    live_feed_t   *feed;
    live_event_t  *started, *one, *two, *told, *three, *over;

    (void) state;

    feed = live_feed_new(p.journal, NULL, 0);
    assert_non_null(feed);

    begin(1, "command.execute", "s1", 1);
    tf_str(&f, SB_T_ACTOR_ID, "bot");
    tf_str(&f, SB_T_COMMAND, "make");
    put();
    output(1, 0, "one\n", 4, 2);
    output(1, 0, "two\n", 4, 3);
    facts(1);
    tf_str(&f, SB_T_COMMAND, "make all");
    put();
    output(1, 0, "three\n", 6, 4);
    end(1, "succeeded", 200, 5);
    put();

    started = next(feed);
    one = next(feed);
    two = next(feed);
    told = next(feed);
    three = next(feed);
    over = next(feed);

    assert_ptr_equal(one->facts.head.data, two->facts.head.data);
    is_text(one->facts.head, "make");
    is_text(one->facts.actor, "bot");
    is_text(one->facts.out, "one\n");
    is_text(two->facts.out, "two\n");
    is_text(two->sandbox, "s1");
    is_text(three->facts.head, "make all");
    is_text(three->facts.out, "three\n");
    is_text(over->facts.status, "succeeded");

    /* each stays whole when the others are gone */
    live_event_free(started);
    live_event_free(one);
    live_event_free(told);
    live_event_free(over);
    live_feed_free(feed);
    is_text(two->facts.type, "command.execute");
    assert_non_null(strstr(two->text, "\"text\":\"two\\n\""));
    live_event_free(two);
    live_event_free(three);
}


/* So many operations are open that what is known of them has no room: those that
 * begin then are told in part, the others whole. */
static void
test_state_is_bounded(void **state)
{
    static char  command[100 * 1000];

    unsigned        i, n, whole, last;
    live_feed_t    *feed;
    live_event_t   *e;

    (void) state;

    n = LIVE_STATE_MAX / sizeof(command) + 20;
    memset(command, 'x', sizeof(command) - 1);
    feed = live_feed_new(p.journal, NULL, 0);
    assert_non_null(feed);

    for (i = 1; i <= n; i++) {
        begin(i, "command.execute", "s1", i);
        tf_str(&f, SB_T_COMMAND, command);
        put();
    }

    for (i = 1; i <= n; i++) {
        end(i, "succeeded", 200, i);
        put();
    }

    for (i = 1; i <= n; i++) {
        live_event_free(next(feed));
    }

    last = (unsigned) stats_get(STATS_LIVE_PARTIAL);
    /* their buffers have up to as much room again */
    assert_in_range(last, 20, n / 2);

    for (whole = 0, i = 1; i <= n; i++) {
        e = next(feed);
        whole += strstr(e->text, "\"partial\":true") == NULL;
        live_event_free(e);
    }

    assert_int_equal(whole, n - last);
    live_feed_free(feed);
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        store_case(test_output_shares),
        store_case(test_state_is_bounded)
    };

    return store_run(argc, argv, tests);
}
