/* The helper's log: one line an event, UTC time first, to stderr or a file. */

#ifndef LOG_H_INCLUDED
#define LOG_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

typedef enum { LOG_INFO = 0, LOG_WARN, LOG_ERROR } log_level_e;

/* Logs to a file from now on (NULL: stderr).  False with errno set when it
 * cannot be opened; the log stays where it was. */
bool log_open(const char *path);
/* Opens the same file again (after rotation); keeps the old one on failure. */
void log_reopen(void);

void log_line(log_level_e level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* One place in the code that may want to say the same many times. */
typedef struct {
    uint64_t  next;         /* microseconds; not before then */
    uint64_t  suppressed;
} log_limit_t;

/* May this place speak?  At most once in `seconds`; *suppressed is how often
 * it was silent since. */
bool log_due(log_limit_t *l, unsigned seconds, uint64_t *suppressed);

/* A line at most once a minute from this place. */
#define log_minutely(level, fmt, ...)                                        \
    do {                                                                     \
        static log_limit_t  log_limit_;                                      \
        uint64_t            log_n_;                                          \
                                                                             \
        if (log_due(&log_limit_, 60, &log_n_)) {                             \
            log_line(level, fmt " (%llu more like this)", __VA_ARGS__,       \
                     (unsigned long long) log_n_);                           \
        }                                                                    \
    } while (0)

#endif /* LOG_H_INCLUDED */
