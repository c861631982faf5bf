#include "history_memory.h"

#include <stddef.h>
#include <sqlite3.h>


static sqlite3_mem_methods  history_memory;
static volatile bool        history_memory_failed;


static void *
history_memory_malloc(int n)
{
    void  *p;

    p = history_memory.xMalloc(n);

    if (p == NULL) {
        history_memory_failed = true;
    }

    return p;
}


static void *
history_memory_realloc(void *old, int n)
{
    void  *p;

    p = history_memory.xRealloc(old, n);

    if (p == NULL) {
        history_memory_failed = true;
    }

    return p;
}


void
history_memory_watch(void)
{
    sqlite3_mem_methods  watched;

    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &history_memory) != SQLITE_OK) {
        return;
    }

    watched = history_memory;
    watched.xMalloc = history_memory_malloc;
    watched.xRealloc = history_memory_realloc;

    (void) sqlite3_config(SQLITE_CONFIG_MALLOC, &watched);
}


void
history_memory_check(bool failed)
{
    if (failed) {
        history_memory_failed = true;
    }
}


bool
history_memory_short(void)
{
    return history_memory_failed;
}
