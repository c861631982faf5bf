#include "options.h"

#include "ask.h"
#include "before.h"
#include "contents.h"
#include "inspector.h"
#include "locks.h"
#include "number.h"
#include "reader.h"

#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>


static const char  options_help[] =
    "Usage: sandbox-helper --data DIR [option]...\n"
    "\n"
    "Keeps the journal and the history files of one gateway.\n"
    "\n"
    "  --data DIR            journal, keys and, unless told otherwise, history\n"
    "                        files and socket\n"
    "  --history DIR         history files (DIR/history below --data)\n"
    "  --socket PATH         Unix socket for the nginx workers\n"
    "                        (helper.sock below --data)\n"
    "  --socket-mode OCTAL   its permissions (0660)\n"
    "  --socket-group GROUP  its group, a name or a number\n"
    "  --peer USER           may connect besides root and our own user; a name\n"
    "                        or a number, may be given several times\n"
    "  --user NAME           become this user after start as root\n"
    "  --sync normal|full    flush the journal every 100 ms, or before each\n"
    "                        answer (normal)\n"
    "  --mode provider|none  keep a history, or nothing at all (provider)\n"
    "  --upstream URL        the OpenSandbox server, for questions of our own\n"
    "  --api-key-file FILE   its API key; read again when it changes\n"
    "  --tokens FILE         tokens that the console API may add and revoke; our\n"
    "                        user must be able to write it\n"
    "  --follow SECONDS      how long commands are followed that outlive their\n"
    "                        request (600)\n"
    "  --locks N             operations and leases that hold keys or wait for\n"
    "                        them, at once (65536)\n"
    "  --leases N            leases at once (4096)\n"
    "  --questions N         of the console API that may be open at once (256)\n"
    "  --live N              live streams that may be open besides (1024)\n"
    "  --question-threads N  threads that answer them (4)\n"
    "  --readers N           history files that stay open for them (256)\n"
    "  --lag SECONDS         how far history files may be behind the traffic (5)\n"
    "  --contents BYTES      kept of files that were written and read, all\n"
    "                        sandboxes together (1073741824)\n"
    "  --fetches N           files that are read in sandboxes at once, before they\n"
    "                        are changed (16)\n"
    "  --inspections N       archives that are looked into at once (2)\n"
    "  --inspect-seconds N   processor time for each (20)\n"
    "  --inspect-memory SIZE memory for each (512m)\n"
    "  --stop SECONDS        how long stopping may take; the rest stays in the\n"
    "                        journal for the next start (10)\n"
    "  --history-ttl TIME    operations are kept that long: 90s, 15m, 12h, 7d,\n"
    "                        or off (7d)\n"
    "  --history-size SIZE   bytes of one history file: 64k, 128m, 2g, or off\n"
    "                        (128m)\n"
    "  --history-total SIZE  of all of them on the disk (10g)\n"
    "  --history-keep TIME   younger operations are not deleted to make room\n"
    "                        (10m)\n"
    "  --history-overflow delete_oldest|stop_recording|fail_operation\n"
    "                        at a size limit: delete the oldest operations, keep\n"
    "                        no more output and records, or have strict\n"
    "                        operations refused (delete_oldest)\n"
    "  --history-on-delete keep|archive|delete\n"
    "                        what becomes of the file of a sandbox that is\n"
    "                        deleted (keep)\n"
    "  --history-hold ID     nothing of that sandbox is ever deleted; * for all;\n"
    "                        may be given several times\n"
    "  --exec                leave 5 s after the last connection closed\n"
    "  --ready-fd N          write one byte there when listening\n"
    "  --log FILE            log there instead of standard error\n"
    "  --check               read these options, say what is wrong, and exit\n"
    "  --version, --help\n";


enum {
    OPT_DATA = 256, OPT_HISTORY, OPT_SOCKET, OPT_SOCKET_MODE,
    OPT_SOCKET_GROUP, OPT_PEER, OPT_USER, OPT_SYNC, OPT_MODE, OPT_UPSTREAM,
    OPT_LOCKS, OPT_LEASES, OPT_KEY, OPT_TOKENS, OPT_FOLLOW, OPT_LAG, OPT_STOP,
    OPT_QUESTIONS, OPT_LIVE,
    OPT_QUESTION_THREADS, OPT_READERS, OPT_TTL,
    OPT_SIZE, OPT_TOTAL, OPT_KEEP, OPT_OVERFLOW, OPT_ON_DELETE, OPT_HOLD,
    OPT_CLOCK, OPT_CONTENTS, OPT_FETCHES, OPT_INSPECTIONS,
    OPT_INSPECT_SECONDS, OPT_INSPECT_MEMORY, OPT_EXEC,
    OPT_READY, OPT_LOG, OPT_CHECK, OPT_VERSION, OPT_HELP
};

static const struct option  options_long[] = {
    { "data", required_argument, NULL, OPT_DATA },
    { "history", required_argument, NULL, OPT_HISTORY },
    { "socket", required_argument, NULL, OPT_SOCKET },
    { "socket-mode", required_argument, NULL, OPT_SOCKET_MODE },
    { "socket-group", required_argument, NULL, OPT_SOCKET_GROUP },
    { "peer", required_argument, NULL, OPT_PEER },
    { "user", required_argument, NULL, OPT_USER },
    { "sync", required_argument, NULL, OPT_SYNC },
    { "mode", required_argument, NULL, OPT_MODE },
    { "upstream", required_argument, NULL, OPT_UPSTREAM },
    { "api-key-file", required_argument, NULL, OPT_KEY },
    { "tokens", required_argument, NULL, OPT_TOKENS },
    { "follow", required_argument, NULL, OPT_FOLLOW },
    { "locks", required_argument, NULL, OPT_LOCKS },
    { "leases", required_argument, NULL, OPT_LEASES },
    { "questions", required_argument, NULL, OPT_QUESTIONS },
    { "live", required_argument, NULL, OPT_LIVE },
    { "question-threads", required_argument, NULL, OPT_QUESTION_THREADS },
    { "readers", required_argument, NULL, OPT_READERS },
    { "lag", required_argument, NULL, OPT_LAG },
    { "contents", required_argument, NULL, OPT_CONTENTS },
    { "fetches", required_argument, NULL, OPT_FETCHES },
    { "inspections", required_argument, NULL, OPT_INSPECTIONS },
    { "inspect-seconds", required_argument, NULL, OPT_INSPECT_SECONDS },
    { "inspect-memory", required_argument, NULL, OPT_INSPECT_MEMORY },
    { "stop", required_argument, NULL, OPT_STOP },
    { "history-ttl", required_argument, NULL, OPT_TTL },
    { "history-size", required_argument, NULL, OPT_SIZE },
    { "history-total", required_argument, NULL, OPT_TOTAL },
    { "history-keep", required_argument, NULL, OPT_KEEP },
    { "history-overflow", required_argument, NULL, OPT_OVERFLOW },
    { "history-on-delete", required_argument, NULL, OPT_ON_DELETE },
    { "history-hold", required_argument, NULL, OPT_HOLD },
    { "test-clock", required_argument, NULL, OPT_CLOCK },
    { "exec", no_argument, NULL, OPT_EXEC },
    { "ready-fd", required_argument, NULL, OPT_READY },
    { "log", required_argument, NULL, OPT_LOG },
    { "check", no_argument, NULL, OPT_CHECK },
    { "version", no_argument, NULL, OPT_VERSION },
    { "help", no_argument, NULL, OPT_HELP },
    { NULL, 0, NULL, 0 }
};


static bool
options_number(const char *text, unsigned base, unsigned long max,
    unsigned long *out)
{
    uint64_t  n;

    if (!sb_number(sb_str(text, strlen(text)), base, max, &n)) {
        return false;
    }

    *out = (unsigned long) n;

    return true;
}


static bool
options_uid(const char *text, uid_t *uid, gid_t *gid)
{
    unsigned long   n;
    struct passwd  *pw;

    pw = getpwnam(text);

    if (pw) {
        *uid = pw->pw_uid;
        *gid = pw->pw_gid;
        return true;
    }

    if (options_number(text, 10, UINT_MAX - 1, &n)) {
        *uid = (uid_t) n;
        *gid = (gid_t) n;
        return true;
    }

    return false;
}


static bool
options_gid(const char *text, gid_t *gid)
{
    unsigned long  n;
    struct group  *gr;

    gr = getgrnam(text);

    if (gr) {
        *gid = gr->gr_gid;
        return true;
    }

    if (options_number(text, 10, UINT_MAX - 1, &n)) {
        *gid = (gid_t) n;
        return true;
    }

    return false;
}


/* One of two words; 0, 1 or -1. */
static int
options_word(const char *text, const char *first, const char *second)
{
    return strcmp(text, first) == 0 ? 0 : strcmp(text, second) == 0 ? 1 : -1;
}


static options_rc_e
options_bad(const char *flag, const char *value, const char *want)
{
    fprintf(stderr, "sandbox-helper: %s \"%s\": %s\n", flag, value, want);

    return OPTIONS_EXIT_BAD;
}


/* A number and a unit of `units`, each worth what stands in `worth`; "off" is
 * 0. */
static bool
options_unit(const char *text, const char *units, const uint64_t *worth,
    uint64_t max, uint64_t *out)
{
    size_t       len;
    uint64_t     n;
    const char  *unit;

    if (strcmp(text, "off") == 0) {
        *out = 0;
        return true;
    }

    len = strspn(text, "0123456789");
    unit = units;

    if (text[len]) {
        unit = text[len + 1] ? NULL : strchr(units, text[len] | 0x20);
    }

    if (unit == NULL || !sb_number(sb_str(text, len), 10, UINT64_MAX, &n)
        || n == 0 || n > max / worth[unit - units])
    {
        return false;
    }

    *out = n * worth[unit - units];

    return true;
}


static bool
options_time(const char *text, uint64_t *us)
{
    static const uint64_t  worth[] = {
        1000000, 60000000, 3600000000u, 86400000000u
    };

    return options_unit(text, "smhd", worth, 36500 * worth[3], us);
}


static bool
options_size(const char *text, uint64_t *bytes)
{
    static const uint64_t  worth[] = {
        1, 1024, 1024 * 1024, 1024 * 1024 * 1024,
        (uint64_t) 1024 * 1024 * 1024 * 1024
    };

    return options_unit(text, "bkmgt", worth, (uint64_t) 1 << 60, bytes);
}


static options_rc_e
options_limit(options_t *o, int c, const char *v)
{
    size_t          i;
    retain_conf_t  *l;

    static const char  *on_delete[] = { "keep", "archive", "delete" };

    l = &o->limits;

    switch (c) {

    case OPT_TTL:
        return options_time(v, &l->ttl_us) ? OPTIONS_RUN
               : options_bad("--history-ttl", v, "give a time such as 7d, or "
                             "off");

    case OPT_KEEP:
        return options_time(v, &l->keep_us) ? OPTIONS_RUN
               : options_bad("--history-keep", v, "give a time such as 10m, or "
                             "off");

    case OPT_SIZE:
        return options_size(v, &l->size)
               && (l->size == 0 || l->size >= RETAIN_SIZE_MIN)
               ? OPTIONS_RUN
               : options_bad("--history-size", v, "give a size such as 128m, "
                             "at least 1m, or off");

    case OPT_TOTAL:
        return options_size(v, &l->total)
               && (l->total == 0 || l->total >= RETAIN_SIZE_MIN)
               ? OPTIONS_RUN
               : options_bad("--history-total", v, "give a size such as 10g, "
                             "at least 1m, or off");

    case OPT_OVERFLOW:
        for (i = 0; i < 3; i++) {
            if (strcmp(v, retain_overflow_names[i]) == 0) {
                l->overflow = (retain_overflow_e) i;
                return OPTIONS_RUN;
            }
        }

        return options_bad("--history-overflow", v, "it is delete_oldest, "
                           "stop_recording or fail_operation");

    case OPT_ON_DELETE:
        for (i = 0; i < 3; i++) {
            if (strcmp(v, on_delete[i]) == 0) {
                l->on_delete = (retain_on_delete_e) i;
                return OPTIONS_RUN;
            }
        }

        return options_bad("--history-on-delete", v, "it is keep, archive or "
                           "delete");

    case OPT_HOLD:
        if (l->nholds == RETAIN_HOLDS) {
            return options_bad("--history-hold", v, "too many of them");
        }

        l->holds[l->nholds++] = v;
        return OPTIONS_RUN;

    default:
        l->clock = v;
        return OPTIONS_RUN;
    }
}


static options_rc_e
options_one(options_t *o, int c, const char *v)
{
    gid_t          gid;
    unsigned long  n;

    switch (c) {

    case OPT_DATA:
        o->data = v;
        break;

    case OPT_HISTORY:
        o->history = v;
        break;

    case OPT_SOCKET:
        o->socket = v;
        break;

    case OPT_SOCKET_MODE:
        if (!options_number(v, 8, 0777, &n)) {
            return options_bad("--socket-mode", v, "give octal permissions "
                               "such as 0660");
        }

        o->socket_mode = (mode_t) n;
        break;

    case OPT_SOCKET_GROUP:
        if (!options_gid(v, &o->group)) {
            return options_bad("--socket-group", v, "there is no such group");
        }

        o->has_group = true;
        break;

    case OPT_PEER:
        if (o->npeers == OPTIONS_PEERS) {
            return options_bad("--peer", v, "too many of them");
        }

        if (!options_uid(v, &o->peers[o->npeers], &gid)) {
            return options_bad("--peer", v, "there is no such user");
        }

        o->npeers++;
        break;

    case OPT_USER:
        if (!options_uid(v, &o->uid, &o->gid)) {
            return options_bad("--user", v, "there is no such user");
        }

        o->user = v;
        break;

    case OPT_SYNC:
        if (options_word(v, "normal", "full") < 0) {
            return options_bad("--sync", v, "it is normal or full");
        }

        o->full = options_word(v, "normal", "full") == 1;
        break;

    case OPT_MODE:
        if (options_word(v, "provider", "none") < 0) {
            return options_bad("--mode", v, strcmp(v, "sandbox") == 0
                               || strcmp(v, "database") == 0
                               ? "not available yet, it is provider or none"
                               : "it is provider or none");
        }

        o->none = options_word(v, "provider", "none") == 1;
        break;

    case OPT_UPSTREAM:
        o->upstream = v;
        break;

    case OPT_KEY:
        o->api_key_file = v;
        break;

    case OPT_TOKENS:
        o->tokens = v;
        break;

    case OPT_FOLLOW:
        if (!options_number(v, 10, 31536000, &n)) {
            return options_bad("--follow", v, "give seconds");
        }

        o->follow_us = (uint64_t) n * 1000000;
        break;

    case OPT_LOCKS:
    case OPT_LEASES:
        if (!options_number(v, 10, 16777216, &n) || n == 0) {
            return options_bad(c == OPT_LOCKS ? "--locks" : "--leases", v,
                               "give a number of 1 to 16777216");
        }

        *(c == OPT_LOCKS ? &o->locks : &o->leases) = (size_t) n;
        break;

    case OPT_QUESTIONS:
        if (!options_number(v, 10, 65536, &n) || n == 0) {
            return options_bad("--questions", v, "give a number of 1 to 65536");
        }

        o->questions = (unsigned) n;
        break;

    case OPT_LIVE:
        if (!options_number(v, 10, 65536, &n) || n == 0) {
            return options_bad("--live", v, "give a number of 1 to 65536");
        }

        o->streams = (unsigned) n;
        break;

    case OPT_QUESTION_THREADS:
        if (!options_number(v, 10, ASK_THREADS_MAX, &n) || n == 0) {
            return options_bad("--question-threads", v, "give a number of 1 to "
                               "64");
        }

        o->question_threads = (unsigned) n;
        break;

    case OPT_READERS:
        if (!options_number(v, 10, 16384, &n) || n < 16) {
            return options_bad("--readers", v, "give a number of 16 to 16384");
        }

        o->readers = (unsigned) n;
        break;

    case OPT_LAG:
        if (!options_number(v, 10, 3600, &n) || n == 0) {
            return options_bad("--lag", v, "give seconds, from 1 to 3600");
        }

        o->lag_us = (uint64_t) n * 1000000;
        break;

    case OPT_CONTENTS:
        if (!options_number(v, 10, 1ul << 50, &n) || n < (1ul << 20)) {
            return options_bad("--contents", v, "give bytes, at least 1048576");
        }

        o->contents = n;
        break;

    case OPT_FETCHES:
        if (!options_number(v, 10, BEFORE_FETCHES_MAX, &n) || n == 0) {
            return options_bad("--fetches", v, "give a number of 1 to 256");
        }

        o->fetches = (unsigned) n;
        break;

    case OPT_INSPECTIONS:
        if (!options_number(v, 10, INSPECTOR_LIMIT, &n) || n == 0) {
            return options_bad("--inspections", v, "give a number of 1 to 64");
        }

        o->inspections = (unsigned) n;
        break;

    case OPT_INSPECT_SECONDS:
        if (!options_number(v, 10, 3600, &n) || n == 0) {
            return options_bad("--inspect-seconds", v, "give seconds, from 1 to "
                               "3600");
        }

        o->inspect_seconds = (unsigned) n;
        break;

    case OPT_INSPECT_MEMORY:
        if (!options_size(v, &o->inspect_memory)
            || o->inspect_memory < ((uint64_t) 64 << 20))
        {
            return options_bad("--inspect-memory", v, "give a size such as "
                               "512m, at least 64m");
        }

        break;

    case OPT_STOP:
        if (!options_number(v, 10, 3600, &n)) {
            return options_bad("--stop", v, "give seconds, at most 3600");
        }

        o->stop_us = (uint64_t) n * 1000000;
        break;

    case OPT_TTL:
    case OPT_SIZE:
    case OPT_TOTAL:
    case OPT_KEEP:
    case OPT_OVERFLOW:
    case OPT_ON_DELETE:
    case OPT_HOLD:
    case OPT_CLOCK:
        /* who moves the clock deletes history */
        if (c == OPT_CLOCK && getenv("SANDBOX_TESTING") == NULL) {
            return options_bad("--test-clock", v, "it is for the tests of this"
                               " project, with SANDBOX_TESTING set");
        }

        return options_limit(o, c, v);

    case OPT_EXEC:
        o->exec = true;
        break;

    case OPT_READY:
        if (!options_number(v, 10, 1000000, &n)) {
            return options_bad("--ready-fd", v, "give the number of an open "
                               "descriptor");
        }

        o->ready_fd = (int) n;
        break;

    case OPT_LOG:
        o->log = v;
        break;

    case OPT_VERSION:
        printf("sandbox-helper %s\n", SB_VERSION);
        return OPTIONS_EXIT_OK;

    case OPT_HELP:
        fputs(options_help, stdout);
        return OPTIONS_EXIT_OK;

    default:
        fprintf(stderr, "sandbox-helper: see sandbox-helper --help\n");
        return OPTIONS_EXIT_BAD;
    }

    return OPTIONS_RUN;
}


options_rc_e
options_read(options_t *o, int argc, char **argv)
{
    int           c;
    bool          check;
    options_rc_e  rc;

    check = false;
    memset(o, 0, sizeof(options_t));
    o->socket_mode = 0660;
    o->follow_us = 600u * 1000000u;
    o->lag_us = 5u * 1000000u;
    o->stop_us = 10u * 1000000u;
    o->ready_fd = -1;
    retain_defaults(&o->limits);
    o->contents = CONTENTS_LIMIT;
    o->locks = LOCKS_REQUESTS;
    o->leases = LOCKS_LEASES;
    o->fetches = BEFORE_FETCHES;
    o->inspections = INSPECTOR_MAX;
    o->inspect_seconds = INSPECTOR_SECONDS;
    o->inspect_memory = INSPECTOR_MEMORY;
    o->questions = ASK_QUESTIONS;
    o->streams = ASK_STREAMS;
    o->question_threads = ASK_THREADS;
    o->readers = READERS_IDLE;

    while ((c = getopt_long(argc, argv, "", options_long, NULL)) != -1) {
        if (c == OPT_CHECK) {
            check = true;
            continue;
        }

        rc = options_one(o, c, optarg);
        if (rc != OPTIONS_RUN) {
            return rc;
        }
    }

    if (optind < argc) {
        return options_bad("argument", argv[optind], "not expected here");
    }

    if (o->data == NULL) {
        fprintf(stderr, "sandbox-helper: --data DIR is missing: where journal "
                "and history are kept\n");
        return OPTIONS_EXIT_BAD;
    }

    if (o->api_key_file && o->upstream == NULL) {
        return options_bad("--api-key-file", o->api_key_file, "there is no "
                           "--upstream to use it for");
    }

    return check ? OPTIONS_EXIT_OK : OPTIONS_RUN;
}
