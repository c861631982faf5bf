/* How far a question waits for what was acknowledged before it came. */

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "store_place.h"

#include "api.h"
#include "ask_int.h"
#include "id.h"
#include "stats.h"

#include <time.h>


static void
nap(unsigned ms)
{
    struct timespec  t;

    t.tv_sec = ms / 1000;
    t.tv_nsec = (long) (ms % 1000) * 1000000;
    (void) nanosleep(&t, NULL);
}


/* Many records in a short time, until the journal has noticed. */
static void
rush(uint64_t pace)
{
    unsigned  i;
    uint64_t  until;

    until = sb_mono_us() + 20000000u;

    while (journal_pace(p.journal) <= pace && sb_mono_us() < until) {
        for (i = 0; i < 500; i++) {
            tf_begin(&f, SB_F_SEEN, 0, ++p.seq, 0, 0);
            put();
        }
    }

    assert_true(journal_pace(p.journal) > pace);
}


static void
test_pace(void **state)
{
    uint64_t  before, pace, began;

    (void) state;

    assert_int_equal(journal_pace(p.journal), 0);
    began = sb_mono_us();
    before = journal_tail(p.journal).cursor;
    rush(0);
    pace = journal_pace(p.journal);

    /* all of it within a stretch would be the most */
    assert_true(pace <= (journal_tail(p.journal).cursor - before) * 10);
    assert_true(sb_mono_us() - began >= 100000);

    nap(600);
    assert_int_equal(journal_pace(p.journal), 0);

    /* the first ones behind a pause are no load */
    seen("s1");
    assert_int_equal(journal_pace(p.journal), 0);
}


/* A list does not wait while the traffic is heavy, whoever looks at one
 * operation does; nobody does longer than API_WAIT_MS. */
static void
test_wait(void **state)
{
    api_t       api;
    ask_int_t   i;
    api_wait_t  list, one;

    (void) state;

    memset(&api, 0, sizeof(api));
    memset(&i, 0, sizeof(i));
    api_init(&api, NULL, p.journal, p.apply, NULL);
    i.q.context = &api;
    i.q.in = &i;

    memset(&list, 0, sizeof(list));
    list.brief = true;
    go();
    assert_true(api_wait(&i.q, &list));
    assert_true(list.reached);

    /* a little is worth waiting for */
    whole(1, "file.list", NULL, "succeeded", 200);
    memset(&list, 0, sizeof(list));
    list.brief = true;
    assert_false(api_wait(&i.q, &list));
    go();
    assert_true(api_wait(&i.q, &list));
    assert_true(list.reached);

    /* under load it is not, however little waits at the moment */
    rush(API_WAIT_PACE);
    stats_set(STATS_APPLIED_CURSOR, journal_tail(p.journal).cursor - 1);

    memset(&list, 0, sizeof(list));
    list.brief = true;
    assert_true(api_wait(&i.q, &list));
    assert_false(list.reached);

    memset(&one, 0, sizeof(one));
    assert_false(api_wait(&i.q, &one));
    nap(API_WAIT_MS + 10);
    assert_true(api_wait(&i.q, &one));
    assert_false(one.reached);

    /* when it is over, it is again */
    nap(600);
    memset(&list, 0, sizeof(list));
    list.brief = true;
    assert_false(api_wait(&i.q, &list));

    pthread_mutex_destroy(&api.lock);
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        store_case(test_pace),
        store_case(test_wait)
    };

    return store_run(argc, argv, tests);
}
