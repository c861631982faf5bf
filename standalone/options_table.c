/* The options of sandbox-gateway; docs/operations.md has a row for each. */

#include "options.h"
#include "args.h"

#include <stdio.h>

#define gw_at(field)  offsetof(gw_options_t, field)

const gw_option_t  gw_table[] = {

    { "upstream", GW_TEXT, GW_FLAG|GW_INENV, gw_at(upstream), "URL",
      "the OpenSandbox server; without it a local runtime is started", 0 },

    { "api-key-file", GW_TEXT, GW_FLAG|GW_INENV, gw_at(api_key_file), "FILE",
      "file that holds upstream's API key", 0 },

    { "api-key", GW_TEXT, GW_INENV, gw_at(api_key), NULL, NULL, 0 },

    { "listen", GW_TEXT, GW_FLAG|GW_INENV, gw_at(listen), "ADDRESS",
      "address to listen on (127.0.0.1)", 0 },

    { "port", GW_PORT, GW_FLAG|GW_INENV, gw_at(port), "PORT",
      "port to listen on (8080)", 0 },

    { "public", GW_TEXT, GW_FLAG|GW_INENV, gw_at(public_name),
      "HOST[:PORT][/PREFIX]",
      "how clients reach this gateway, for rewritten endpoints", 0 },

    { "host", GW_LIST, GW_FLAG|GW_INENV, gw_at(hosts), "NAME",
      "Host that is accepted besides loopback; may be repeated", 0 },

    { "port-listen", GW_TEXT, GW_FLAG|GW_INENV, gw_at(port_listen),
      "ADDRESS:PORT|off",
      "where browsers open user ports (loopback, the next free port)", 0 },

    { "port-host", GW_TEXT, GW_FLAG|GW_INENV, gw_at(port_host), "*.NAME",
      "names that lead there, one per user port ({label}.localhost)", 0 },

    { "tls-cert", GW_TEXT, GW_FLAG|GW_INENV, gw_at(tls_cert), "FILE",
      "certificate chain (PEM); together with --tls-key", 0 },

    { "tls-key", GW_TEXT, GW_FLAG|GW_INENV, gw_at(tls_key), "FILE",
      "private key (PEM)", 0 },

    { "insecure", GW_BOOL, GW_FLAG|GW_INENV, gw_at(insecure), NULL,
      "allow an address other than loopback without TLS", 0 },

    { "data", GW_TEXT, GW_FLAG|GW_INENV, gw_at(data), "DIR",
      "tokens, journal, history and configuration", 0 },

    { "history", GW_TEXT, GW_FLAG|GW_INENV, gw_at(history), "DIR",
      "history files, if not in DATA/history", 0 },

    { "history-ttl", GW_TEXT, GW_FLAG|GW_INENV, gw_at(history_ttl),
      "TIME|off", "how long operations are kept (7d)", 0 },

    { "history-size", GW_TEXT, GW_FLAG|GW_INENV, gw_at(history_size),
      "SIZE|off", "bytes of one sandbox's history (128m)", 0 },

    { "history-total", GW_TEXT, GW_FLAG|GW_INENV, gw_at(history_total),
      "SIZE|off", "bytes of all of them (10g)", 0 },

    { "history-keep", GW_TEXT, GW_FLAG|GW_INENV, gw_at(history_keep),
      "TIME|off", "younger operations do not make room (10m)", 0 },

    { "history-overflow", GW_TEXT, GW_FLAG|GW_INENV, gw_at(history_overflow),
      "WORD", "delete_oldest, stop_recording or fail_operation", 0 },

    { "history-on-delete", GW_TEXT, GW_FLAG|GW_INENV, gw_at(history_on_delete),
      "WORD", "a deleted sandbox's history: keep, archive or delete", 0 },

    { "contents", GW_TEXT, GW_FLAG|GW_INENV, gw_at(contents), "BYTES",
      "contents of files kept in all histories (1073741824)", 0 },

    { "fetches", GW_TEXT, GW_FLAG|GW_INENV, gw_at(fetches), "N",
      "files read in sandboxes at once, before they are changed (16)", 0 },

    { "history-hold", GW_HOLDS, GW_FLAG|GW_INENV, gw_at(holds), "ID",
      "nothing of that sandbox is deleted; * for all; may be repeated", 0 },

    { "sync", GW_SYNC, GW_FLAG|GW_INENV, gw_at(sync), "normal|full",
      "flush the journal every 100 ms, or before each answer (normal)", 0 },

    { "lag", GW_COUNT, GW_FLAG|GW_INENV, gw_at(lag), "SECONDS",
      "how far history files may be behind the traffic (5)", 3600 },

    { "locks", GW_COUNT, GW_FLAG|GW_INENV, gw_at(locks), "N",
      "operations and leases that hold keys or wait for them (65536)",
      16777216 },

    { "leases", GW_COUNT, GW_FLAG|GW_INENV, gw_at(leases), "N",
      "leases at once (4096)", 16777216 },

    { "lock-timeout", GW_WORDS, GW_FLAG|GW_INENV, gw_at(lock_timeout), "TIME",
      "how long keys are waited for, unless a request says (20s)", 0 },

    { "limits", GW_WORDS, GW_FLAG|GW_INENV, gw_at(limits), "WORDS|off",
      "at once in a sandbox (\"commands=4 reads=32 writes=8 uploads=1\")", 0 },

    { "rate", GW_WORDS, GW_FLAG|GW_INENV, gw_at(rate), "RATE|off",
      "requests of an actor, such as \"20r/s burst=100\" (off)", 0 },

    { "spool-limit", GW_SIZE, GW_FLAG|GW_INENV, gw_at(spool_limit), "SIZE",
      "uploads that are read whole before they go on, all (4g)", 1 },

    { "archives", GW_COUNT, GW_FLAG|GW_INENV, gw_at(archives), "N",
      "files of one upload that are looked into as archives (256)", 1024 },

    { "inspections", GW_COUNT, GW_FLAG|GW_INENV, gw_at(inspections), "N",
      "archives that are looked into at once (2)", 64 },

    { "inspect-seconds", GW_COUNT, GW_FLAG|GW_INENV, gw_at(inspect_seconds),
      "N", "processor time for each archive (20)", 3600 },

    { "inspect-memory", GW_SIZE, GW_FLAG|GW_INENV, gw_at(inspect_memory),
      "SIZE", "memory for each archive (512m)", 64 },

    { "questions", GW_COUNT, GW_FLAG|GW_INENV, gw_at(questions), "N",
      "open questions of the console API (256, 64 a worker)", 65536 },

    { "live", GW_COUNT, GW_FLAG|GW_INENV, gw_at(live), "N",
      "live streams at once (1024)", 65536 },

    { "workers", GW_WORKERS, GW_FLAG|GW_INENV, gw_at(workers), "N",
      "nginx worker processes (auto: one per core)", 0 },

    { "policy", GW_TEXT, GW_FLAG|GW_INENV, gw_at(policy), "FILE|off",
      "rules that operations are judged by (conf/policy.default)", 0 },

    { "config", GW_TEXT, GW_FLAG|GW_INENV, gw_at(config), "FILE",
      "run this nginx configuration instead of the generated one", 0 },

    { "unconfined", GW_BOOL, GW_FLAG|GW_INENV, gw_at(unconfined), NULL,
      "local runtime: go on where bubblewrap cannot run", 0 },

    { "print-config", GW_BOOL, GW_FLAG, gw_at(print_config), NULL,
      "print the generated nginx configuration and exit", 0 },

    { "check", GW_BOOL, GW_FLAG, gw_at(check), NULL,
      "check options, files, upstream and configuration, and exit", 0 },

    { "version", GW_BOOL, GW_FLAG, gw_at(version), NULL,
      "print versions and exit", 0 },

    { "help", GW_BOOL, GW_FLAG, gw_at(help), NULL,
      "print this and exit", 0 },

    /* for an nginx that is not on PATH, such as one built from sources */
    { "nginx", GW_TEXT, GW_INENV, gw_at(nginx), NULL, NULL, 0 }
};

const size_t  gw_noptions = sizeof(gw_table) / sizeof(gw_table[0]);

_Static_assert(sizeof(gw_table) / sizeof(gw_table[0]) <= GW_OPTIONS_MAX,
               "there are more options than GW_OPTIONS_MAX");


const gw_option_t *
gw_option_find(const char *name, size_t len, unsigned where, bool env)
{
    char                c;
    size_t              i;
    const gw_option_t  *o;

    for (o = gw_table; o < gw_table + gw_noptions; o++) {

        if (!(o->where & where) || strlen(o->name) != len) {
            continue;
        }

        for (i = 0; i < len; i++) {
            c = o->name[i];

            if (env) {
                c = (c == '-') ? '_' : (char) (c - 'a' + 'A');
            }

            if (c != name[i]) {
                break;
            }
        }

        if (i == len) {
            return o;
        }
    }

    return NULL;
}


void
gw_options_help(void)
{
    const gw_option_t  *o;

    puts("sandbox-gateway: OpenSandbox behind nginx, every operation on"
         " record\n\n"
         "    sandbox-gateway [OPTION]...\n"
         "    sandbox-gateway token add|list|revoke [OPTION]...\n"
         "    sandbox-gateway link [OPTION]...\n"
         "    sandbox-gateway policy check [OPTION]...\n");

    for (o = gw_table; o < gw_table + gw_noptions; o++) {
        if (!(o->where & GW_FLAG)) {
            continue;
        }

        gw_arg_line(o->name, o->value, o->help);
    }

    puts("\nEach option may also be given as --option=value, as " GW_ENV
         "OPTION in the\nenvironment, or in the file .env of the working"
         " directory, in this order.\n" GW_ENV "API_KEY holds the API key"
         " itself, " GW_ENV "NGINX the\nnginx binary to run.\n\n"
         "Signals: HUP reloads (tokens, keys, certificates), TERM, INT and"
         " QUIT end it\ngracefully, a second one at once.");
}
