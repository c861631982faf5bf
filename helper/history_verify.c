#include "history_verify.h"

#include "history_args.h"
#include "history_list.h"
#include "history_text.h"
#include "json.h"
#include "path.h"
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


enum {
    VERIFY_KEY = 0, VERIFY_HEAD, VERIFY_FOREIGN, VERIFY_JSON, VERIFY_DATA,
    VERIFY_HISTORY,
    VERIFY_COUNT
};

static const history_arg_t  history_verify_args[] = {
    { "--key", 0, HISTORY_ARG_TEXT, false, false, NULL },
    { "--head", 0, HISTORY_ARG_TEXT, false, false, NULL },
    { "--allow-foreign", 0, HISTORY_ARG_FLAG, false, false, NULL },
    HISTORY_COMMON_ARGS
};

static const char  history_verify_help[] =
    "usage: sandbox-history verify [options] SANDBOX\n"
    "       sandbox-history --database FILE verify [options]\n"
    "\n"
    "Holds a history against its chain, and the chain against the heads that\n"
    "the gateway signed.  Ends with 0 when all is as it was recorded, with 1\n"
    "when something is not, with 2 when it cannot be told.\n"
    "\n"
    "  --key FILE       public or private key (default: keys/history.pub of\n"
    "                   the data directory)\n"
    "  --head FILE      the heads (default: heads.jsonl of the history\n"
    "                   directory); a file that does not lie beside them as the\n"
    "                   gateway has it is held to those of the sandbox that it\n"
    "                   says it is of\n"
    "  --allow-foreign  rows that others wrote are counted, no fault\n"
    "  --json           the result as one JSON object, on a terminal too\n";

static const struct {
    const char  *fault;
    const char  *sentence;
} history_faults[] = {
    { "changed", "is not what was recorded" },
    { "removed", "was recorded and is not there" },
    { "reordered", "does not stand where it was recorded" },
    { "foreign", "was not recorded by the gateway" },
    { "broken", "is followed by a broken chain" },
    { "cut", "and what follows it was signed and is not there" },
    { "rewritten", "stands in another chain than the signed one" },
    { "swapped", "belongs to the history of another sandbox" },
    { "signature", "has a head that is not signed with this key" }
};


sb_rc_t
history_verify_json(sb_buf_t *out, verify_rc_e rc, const verify_t *v)
{
    (void) sb_buf_printf(out, "{\"before\":%lld,\"checked\":%lld,"
                         "\"entries\":%lld,\"fault\":",
                         (long long) v->before, (long long) v->checked,
                         (long long) v->entries);

    if (rc == VERIFY_FAULT) {
        (void) sb_buf_add_str(out, sb_lit("{\"id\":"));

        if (v->event[0]) {
            (void) sb_json_write_str(out, sb_str(v->event, strlen(v->event)));
        } else {
            (void) sb_buf_add_str(out, sb_lit("null"));
        }

        (void) sb_buf_printf(out, ",\"kind\":\"%s\",\"seq\":", v->fault);

        if (v->seq) {
            (void) sb_buf_printf(out, "%lld}", (long long) v->seq);
        } else {
            (void) sb_buf_add_str(out, sb_lit("null}"));
        }

    } else {
        (void) sb_buf_add_str(out, sb_lit("null"));
    }

    (void) sb_buf_printf(out, ",\"foreign\":%lld,\"head\":",
                         (long long) v->foreign);

    if (v->head) {
        (void) sb_buf_printf(out, "{\"at\":\"%s\",\"n\":%lld}", v->head_at,
                             (long long) v->head);
    } else {
        (void) sb_buf_add_str(out, sb_lit("null"));
    }

    (void) sb_buf_printf(out, ",\"ok\":%s,\"sandbox\":",
                         rc == VERIFY_OK ? "true"
                         : rc == VERIFY_FAULT ? "false" : "null");

    if (v->sandbox[0]) {
        (void) sb_json_write_str(out, sb_str(v->sandbox, strlen(v->sandbox)));
    } else {
        (void) sb_buf_add_str(out, sb_lit("null"));
    }

    (void) sb_buf_printf(out, ",\"unsigned\":%lld,\"why\":",
                         (long long) v->unsigned_entries);

    if (rc == VERIFY_UNABLE) {
        (void) sb_json_write_str(out, sb_str(v->why, strlen(v->why)));
    } else {
        (void) sb_buf_add_str(out, sb_lit("null"));
    }

    return sb_buf_add_c(out, '}');
}


/* For people: one sentence, or two. */
static void
history_verify_say(FILE *to, const char *name, verify_rc_e rc,
    const verify_t *v)
{
    size_t  i;

    switch (rc) {

    case VERIFY_OK:
        fprintf(to, "%s: %lld records of ", name, (long long) v->checked);
        history_text_put(to, sb_str(v->sandbox, strlen(v->sandbox)), false);
        fprintf(to, " are as they were recorded; signed %s", v->head_at);

        if (v->unsigned_entries) {
            fprintf(to, ", %lld entries since then are not signed yet",
                    (long long) v->unsigned_entries);
        }

        if (v->foreign) {
            fprintf(to, "; %lld records were written by others",
                    (long long) v->foreign);
        }

        if (v->before) {
            fprintf(to, "; %lld records are older than the chain",
                    (long long) v->before);
        }

        fputs(".\n", to);
        break;

    case VERIFY_FAULT:
        fprintf(to, "%s: ", name);

        if (v->seq) {
            fprintf(to, "record %lld", (long long) v->seq);
        } else {
            fputs("a record", to);
        }

        if (v->event[0]) {
            fputs(" (", to);
            history_text_put(to, sb_str(v->event, strlen(v->event)), false);
            fputc(')', to);
        }

        for (i = 0; i < sizeof(history_faults) / sizeof(history_faults[0]);
             i++)
        {
            if (strcmp(history_faults[i].fault, v->fault) == 0) {
                fprintf(to, " %s", history_faults[i].sentence);
            }
        }

        fprintf(to, " (%s).\n", v->fault);
        break;

    default:
        fprintf(to, "%s: it cannot be told. ", name);
        history_text_put(to, sb_str(v->why, strlen(v->why)), false);
        fputc('\n', to);
    }
}


/* "DIR/../NAME" of the directory of a file. */
static void
history_beside(char *dst, size_t size, const char *path, const char *name)
{
    const char  *slash;

    slash = strrchr(path, '/');

    if (slash == NULL) {
        (void) snprintf(dst, size, "../%s", name);

    } else {
        (void) snprintf(dst, size, "%.*s/../%s", (int) (slash - path), path,
                        name);
    }
}


/* The name of the directory that a file lies in, which says whose it is where it
 * lies beside the heads, as the gateway has them; else "". */
static void
history_dir_of(char *dst, size_t size, const char *path, const char *heads)
{
    char   real[PATH_MAX], beside[PATH_MAX];
    char  *file;

    dst[0] = '\0';

    if (realpath(path, real) == NULL || realpath(heads, beside) == NULL) {
        return;
    }

    file = strrchr(real, '/');

    if (strcmp(file + 1, HISTORY_FILE) != 0) {
        return;
    }

    *file = '\0';
    file = strrchr(real, '/');
    *strrchr(beside, '/') = '\0';

    if (file == NULL || strlen(file + 1) >= size) {
        return;
    }

    *file = '\0';

    if (strcmp(real, beside) == 0) {
        (void) strcpy(dst, file + 1);
    }
}


/* ... else what the sandbox in it would be kept in. */
static void
history_dir_named(char *dst, sqlite3 *db)
{
    sqlite3_stmt  *st;

    if (sqlite3_prepare_v2(db, "select value from history_meta where key ="
                           " 'sandbox_id'", -1, &st, NULL) != SQLITE_OK)
    {
        return;
    }

    if (sqlite3_step(st) == SQLITE_ROW) {
        sb_history_dir(dst, sb_str(sqlite3_column_text(st, 0),
                                   (size_t) sqlite3_column_bytes(st, 0)));
    }

    (void) sqlite3_finalize(st);
}


/* Of the sandbox in the directory `known`, or (NULL) of whom it says it is. */
static int
history_verify_file(const char *path, const char *known,
    const history_value_t *values)
{
    char              dir[STORE_DIR_LEN], key[PATH_MAX], head[PATH_MAX];
    char              safe[PATH_MAX];
    keys_t           *keys;
    sqlite3          *db;
    sb_buf_t          out;
    verify_t          v;
    verify_rc_e       rc;
    verify_conf_t     conf;
    history_error_t   err;

    memset(&conf, 0, sizeof(conf));
    memset(&v, 0, sizeof(v));
    keys = NULL;
    rc = VERIFY_OK;

    history_beside(head, sizeof(head), path, "heads.jsonl");
    history_beside(key, sizeof(key), path, "../keys/" KEYS_PUBLIC);

    conf.heads = values[VERIFY_HEAD].n ? values[VERIFY_HEAD].text[0] : head;
    conf.allow_foreign = values[VERIFY_FOREIGN].n != 0;

    if (values[VERIFY_KEY].n || access(key, R_OK) == 0) {
        keys = keys_read(values[VERIFY_KEY].n ? values[VERIFY_KEY].text[0]
                                              : key, v.why, sizeof(v.why));
        rc = keys ? VERIFY_OK : VERIFY_UNABLE;
    }

    db = rc == VERIFY_OK ? history_open_read(path, &err) : NULL;

    if (rc == VERIFY_OK && db == NULL) {
        (void) snprintf(v.why, sizeof(v.why), "%s", err.message);
        rc = VERIFY_UNABLE;
    }

    if (rc == VERIFY_OK) {
        history_dir_of(dir, sizeof(dir), path, conf.heads);

        if (known == NULL && dir[0] == '\0') {
            history_dir_named(dir, db);
            conf.archived = true;
        }

        conf.dir = known ? known : dir;
        conf.keys = keys;
        rc = chain_verify(db, &conf, &v);
    }

    (void) sqlite3_close(db);
    keys_free(keys);

    history_text_safe(safe, sizeof(safe), sb_str(path, strlen(path)));

    if (values[VERIFY_JSON].n || !isatty(STDOUT_FILENO)) {
        memset(&out, 0, sizeof(out));
        out.max = 64 * 1024;

        if (history_verify_json(&out, rc, &v) == SB_OK) {
            (void) history_text_raw(stdout, sb_str(out.data, out.len));
            putchar('\n');
        }

        sb_buf_free(&out);

        if (rc != VERIFY_OK) {
            fputs("sandbox-history: ", stderr);
            history_verify_say(stderr, safe, rc, &v);
        }

    } else {
        history_verify_say(stdout, safe, rc, &v);
    }

    return rc == VERIFY_OK ? 0 : rc == VERIFY_FAULT ? 1 : 2;
}


int
history_verify_run(const char *database, const history_where_t *where,
    int argc, char **argv)
{
    int               status;
    char              path[PATH_MAX];
    const char       *rest[1];
    history_box_t    *box;
    history_place_t   place;
    history_where_t   w;
    history_value_t   values[VERIFY_COUNT];
    history_parse_t   parse = {
        .args = history_verify_args, .values = values, .rest = rest, .max = 1
    };

    if (!history_args_parse(&parse, argc, argv)) {
        fprintf(stderr, "sandbox-history verify: %s (try --help)\n",
                parse.why);
        return 2;
    }

    if (parse.help) {
        fputs(history_verify_help, stdout);
        return 0;
    }

    if (database) {
        if (parse.nrest) {
            fputs("sandbox-history verify: with --database no sandbox is"
                  " named (try --help)\n", stderr);
            return 2;
        }

        if (!history_become_owner(database)) {
            fprintf(stderr, "sandbox-history verify: cannot become the owner"
                            " of %s\n", database);
            return 2;
        }

        return history_verify_file(database, NULL, values);
    }

    if (parse.nrest == 0) {
        fputs("sandbox-history verify: which sandbox? (try --help)\n", stderr);
        return 2;
    }

    w.data = values[VERIFY_DATA].n ? values[VERIFY_DATA].text[0]
                                   : where->data;
    w.history = values[VERIFY_HISTORY].n ? values[VERIFY_HISTORY].text[0]
                                         : where->history;

    if (!history_place_open(&place, &w)) {
        return 2;
    }

    status = 2;
    box = history_place_find(&place, rest[0]);

    if (box) {
        history_place_path(&place, box, path);
        status = history_verify_file(path, box->dir, values);
    }

    history_place_close(&place);

    return status;
}
