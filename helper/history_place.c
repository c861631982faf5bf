#include "history_place.h"
#include "history_query.h"
#include "history_text.h"
#include "number.h"
#include "path.h"
#include "schema.h"

#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


static bool
history_place_join(char dst[PATH_MAX], const char *dir, const char *name)
{
    int  n;

    n = snprintf(dst, PATH_MAX, "%s/%s", dir, name);

    if (n < 0 || n >= PATH_MAX) {
        history_say("the path %s is too long", dir);
        return false;
    }

    return true;
}


/* The history directory by flags, environment and the launcher's default. */
static bool
history_place_root(char root[PATH_MAX], char data[PATH_MAX],
    const history_where_t *where)
{
    const char  *dir, *env;

    if (where->history != NULL) {
        return history_place_join(root, where->history, "")
               && (where->data ? history_place_join(data, where->data, "")
                               : history_place_join(data, root, ".."));
    }

    dir = where->data;

    if (dir == NULL) {
        env = getenv("SANDBOX_GATEWAY_HISTORY");

        if (env != NULL && *env != '\0') {
            return history_place_join(root, env, "")
                   && history_place_join(data, root, "..");
        }

        env = getenv("SANDBOX_GATEWAY_DATA");

        if (env != NULL && *env != '\0') {
            dir = env;
        }
    }

    if (dir == NULL) {
        env = getenv("XDG_STATE_HOME");

        if (geteuid() == 0) {
            dir = "/var/lib/sandbox-gateway";

        } else if (env != NULL && *env == '/') {
            if (!history_place_join(data, env, "sandbox-gateway")) {
                return false;
            }

            dir = data;

        } else {
            env = getenv("HOME");

            if (env == NULL || *env == '\0') {
                history_say("neither $HOME nor $SANDBOX_GATEWAY_DATA is set:"
                            " give --data DIR");
                return false;
            }

            if (!history_place_join(data, env,
                                    ".local/state/sandbox-gateway"))
            {
                return false;
            }

            dir = data;
        }
    }

    return history_place_join(root, dir, "history")
           && (dir == data || history_place_join(data, dir, ""));
}


/* Why a directory cannot be read, with what to do about it. */
static void
history_place_unreadable(const char *root, int code)
{
    struct stat     st;
    struct passwd  *pw;

    if (code == ENOENT || code == ENOTDIR) {
        history_say("there is no history directory %s: give the gateway's data"
                    " directory with --data DIR", root);
        return;
    }

    if (code == EACCES) {
        pw = stat(root, &st) == 0 ? getpwuid(st.st_uid) : NULL;

        history_say("%s must not be read by this user: run sandbox-history as"
                    " %s or root", root, pw != NULL ? pw->pw_name
                                                    : "its owner");
        return;
    }

    history_say("%s cannot be read: %s", root, strerror(code));
}


static int
history_box_compare(const void *one, const void *two)
{
    bool                         ga, gb;
    const history_box_t *const  *a = one, *const *b = two;

    /* Events move from _gateway to the others, never back: read in this order,
     * none is missed. */

    ga = strcmp((*a)->dir, SCHEMA_GATEWAY) == 0;
    gb = strcmp((*b)->dir, SCHEMA_GATEWAY) == 0;

    if (ga != gb) {
        return ga ? -1 : 1;
    }

    return strcmp((*a)->dir, (*b)->dir);
}


static bool
history_place_add(history_place_t *place, const char *dir)
{
    size_t          cap;
    char            path[PATH_MAX];
    struct stat     st;
    history_box_t  *box, **boxes;

    if (snprintf(path, sizeof(path), "%s%s/" HISTORY_FILE, place->root, dir)
        >= (int) sizeof(path)
        || stat(path, &st) == -1)
    {
        return true;
    }

    if (place->n == place->cap) {
        cap = place->cap ? place->cap * 2 : 64;

        boxes = realloc(place->boxes, cap * sizeof(history_box_t *));
        if (boxes == NULL) {
            return false;
        }

        place->boxes = boxes;
        place->cap = cap;
    }

    box = calloc(1, sizeof(history_box_t));
    if (box == NULL) {
        return false;
    }

    box->dir = strdup(dir);
    box->id = strdup(dir);

    if (box->dir == NULL || box->id == NULL) {
        free(box->dir);
        free(box->id);
        free(box);
        return false;
    }

    place->boxes[place->n++] = box;

    return true;
}


static bool
history_place_has(const history_place_t *place, size_t n, const char *dir)
{
    history_box_t         key;
    const history_box_t  *keyp = &key;

    key.dir = (char *) dir;

    return n != 0 && bsearch(&keyp, place->boxes, n, sizeof(history_box_t *),
                             history_box_compare) != NULL;
}


bool
history_place_scan(history_place_t *place)
{
    DIR            *dir;
    size_t          known;
    struct dirent  *entry;

    dir = opendir(place->root);
    if (dir == NULL) {
        history_place_unreadable(place->root, errno);
        return false;
    }

    known = place->n;

    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.'
            || history_place_has(place, known, entry->d_name))
        {
            continue;
        }

        if (!history_place_add(place, entry->d_name)) {
            history_say("out of memory");
            closedir(dir);
            return false;
        }
    }

    closedir(dir);

    if (place->n > known) {
        qsort(place->boxes, place->n, sizeof(history_box_t *),
              history_box_compare);
    }

    return true;
}


bool
history_place_open(history_place_t *place, const history_where_t *where)
{
    size_t       len;
    struct stat  st;

    memset(place, 0, sizeof(history_place_t));

    if (!history_place_root(place->root, place->data, where)) {
        return false;
    }

    if (stat(place->root, &st) == -1) {
        history_place_unreadable(place->root, errno);
        return false;
    }

    len = strlen(place->root);

    if (place->root[len - 1] != '/') {
        if (len + 1 >= sizeof(place->root)) {
            history_say("the path %s is too long", place->root);
            return false;
        }

        strcpy(place->root + len, "/");
    }

    if (!history_become_owner(place->root)) {
        history_say("cannot take on the owner of %s: %s", place->root,
                    strerror(errno));
        return false;
    }

    return history_place_scan(place);
}


void
history_place_close(history_place_t *place)
{
    for (size_t i = 0; i < place->n; i++) {
        sqlite3_close(place->boxes[i]->db);
        free(place->boxes[i]->dir);
        free(place->boxes[i]->id);
        free(place->boxes[i]->name);
        free(place->boxes[i]);
    }

    free(place->boxes);
}


void
history_place_drop(history_place_t *place, history_box_t *box)
{
    if (box->db != NULL) {
        sqlite3_close(box->db);
        box->db = NULL;
        place->open--;
    }
}


static void
history_place_make_room(history_place_t *place)
{
    history_box_t  *oldest;

    while (place->open >= HISTORY_OPEN_MAX) {
        oldest = NULL;

        for (size_t i = 0; i < place->n; i++) {
            history_box_t  *box = place->boxes[i];

            if (box->db != NULL
                && (oldest == NULL || box->used < oldest->used))
            {
                oldest = box;
            }
        }

        history_place_drop(place, oldest);
    }
}


void
history_place_broken(history_place_t *place, history_box_t *box,
    const history_error_t *err)
{
    place->incomplete = true;

    if (!box->broken) {
        box->broken = true;
        history_say("%s%s/" HISTORY_FILE " cannot be read: %s", place->root,
                    box->dir, err->message);
    }
}


static bool
history_box_meta(sqlite3 *db, const char *key, char **text,
    history_error_t *err)
{
    bool      ok, found;
    sb_buf_t  value = { 0 };

    ok = history_meta_get(db, key, &value, &found, err);

    if (ok && found) {
        free(*text);
        *text = value.data;

    } else {
        sb_buf_free(&value);
    }

    return ok;
}


void
history_place_path(const history_place_t *place, const history_box_t *box,
    char path[PATH_MAX])
{
    /* It fitted when the directory was read. */

    snprintf(path, PATH_MAX, "%.*s%s/" HISTORY_FILE, PATH_MAX - NAME_MAX - 32,
             place->root, box->dir);
}


sqlite3 *
history_place_db(history_place_t *place, history_box_t *box)
{
    char             path[PATH_MAX];
    sqlite3         *db;
    history_error_t  err;

    box->used = ++place->clock;

    if (box->db != NULL) {
        return box->db;
    }

    history_place_make_room(place);

    history_place_path(place, box, path);

    db = history_open_read(path, &err);

    /* A file that the helper is just making has no tables yet. */

    if (db != NULL && !history_has_table(db, "history_changes")) {
        sqlite3_close(db);
        return NULL;
    }

    if (db == NULL) {
        history_place_broken(place, box, &err);
        return NULL;
    }

    if (!history_query_prepare(db, &err)
        || !history_box_meta(db, "sandbox_id", &box->id, &err)
        || !history_box_meta(db, "sandbox_name", &box->name, &err))
    {
        sqlite3_close(db);
        history_place_broken(place, box, &err);
        return NULL;
    }

    box->db = db;
    place->open++;

    return db;
}


history_box_t *
history_place_find(history_place_t *place, const char *text)
{
    char            dir[130];
    size_t          len, matches;
    history_box_t  *found, *box;

    if (strcmp(text, SCHEMA_GATEWAY) == 0) {
        strcpy(dir, text);

    } else {
        sb_history_dir(dir, sb_str(text, strlen(text)));
    }

    for (size_t i = 0; i < place->n; i++) {
        if (strcmp(place->boxes[i]->dir, dir) == 0) {
            (void) history_place_db(place, place->boxes[i]);
            return place->boxes[i];
        }
    }

    found = NULL;
    matches = 0;
    len = strlen(text);

    for (size_t i = 0; i < place->n; i++) {
        box = place->boxes[i];

        if (history_place_db(place, box) == NULL) {
            continue;
        }

        if ((len >= 3 && strncmp(box->id, text, len) == 0)
            || strcmp(box->id, text) == 0
            || (box->name != NULL && strcmp(box->name, text) == 0))
        {
            found = box;
            matches++;
        }
    }

    if (matches == 1) {
        return found;
    }

    if (matches) {
        history_say("%s fits %zu sandboxes: give more of the id", text,
                    matches);

    } else {
        history_say("no sandbox %s has a history in %s", text, place->root);
    }

    return NULL;
}


/* SANDBOX/SEQ. */
static bool
history_place_numbered(history_place_t *place, const char *text,
    const char *slash, history_box_t **box, char *id)
{
    int              rc;
    char            *sandbox;
    int64_t          seq;
    sqlite3         *db;
    sqlite3_stmt    *stmt;
    history_error_t  err;

    if (!sb_number_signed(sb_str(slash + 1, strlen(slash + 1)), 0, INT64_MAX,
                          &seq))
    {
        history_say("%s is no record: after the slash stands its number in the"
                    " sandbox", text);
        return false;
    }

    sandbox = strndup(text, (size_t) (slash - text));
    if (sandbox == NULL) {
        history_say("out of memory");
        return false;
    }

    *box = history_place_find(place, sandbox);
    free(sandbox);

    if (*box == NULL) {
        return false;
    }

    db = history_place_db(place, *box);
    if (db == NULL) {
        return false;
    }

    stmt = history_prepare(db, "SELECT event_id, moved_to FROM gateway_records"
                               " WHERE seq = ?1", &err);
    rc = -1;

    if (stmt != NULL) {
        sqlite3_bind_int64(stmt, 1, seq);
        rc = history_step(stmt, &err);
    }

    if (rc == 1) {
        snprintf(id, HISTORY_ID_MAX, "%s",
                 (const char *) sqlite3_column_text(stmt, 0));

        if (sqlite3_column_type(stmt, 1) != SQLITE_NULL) {
            history_say("record %s now belongs to sandbox %s: ask for %s",
                        text, (const char *) sqlite3_column_text(stmt, 1), id);
            rc = -2;
        }

    } else if (rc == 0) {
        history_say("there is no record %s", text);

    } else {
        history_place_broken(place, *box, &err);
    }

    sqlite3_finalize(stmt);

    return rc == 1;
}


bool
history_place_record(history_place_t *place, const char *text,
    history_box_t **box, char *id)
{
    int              rc;
    char             low[64], high[64], list[256];
    size_t           len, matches;
    sqlite3         *db;
    const char      *slash;
    sqlite3_stmt    *stmt;
    history_error_t  err;

    slash = strrchr(text, '/');

    if (slash != NULL) {
        return history_place_numbered(place, text, slash, box, id);
    }

    len = strlen(text);

    if (len < 6 || len >= sizeof(low)) {
        history_say("%s is no record: give its id, 6 characters of it at least,"
                    " or SANDBOX/SEQ", text);
        return false;
    }

    /* UUIDs are kept in lower case.  What begins with the text lies between it
     * and the text with its last byte one higher. */

    strcpy(low, text);

    if (strspn(text, "0123456789abcdefABCDEF-") == len) {
        for (char *c = low; *c != '\0'; c++) {
            if (*c >= 'A' && *c <= 'F') {
                *c = (char) (*c | 0x20);
            }
        }
    }

    strcpy(high, low);
    high[len - 1] = (char) (high[len - 1] + 1);

    matches = 0;
    list[0] = '\0';

    for (size_t i = 0; i < place->n && matches <= 3; i++) {
        db = history_place_db(place, place->boxes[i]);
        if (db == NULL) {
            continue;
        }

        stmt = history_prepare(db, "SELECT event_id FROM history_events"
                                   " WHERE event_id >= ?1 AND event_id < ?2"
                                   " LIMIT 4", &err);
        rc = -1;

        if (stmt != NULL) {
            sqlite3_bind_text(stmt, 1, low, -1, SQLITE_STATIC);
            sqlite3_bind_text(stmt, 2, high, -1, SQLITE_STATIC);

            while ((rc = history_step(stmt, &err)) == 1) {
                const char  *full = (const char *) sqlite3_column_text(stmt,
                                                                       0);

                size_t  used = strlen(list);

                if (matches && strcmp(full, id) == 0) {
                    *box = place->boxes[i];     /* it moved meanwhile */
                    continue;
                }

                *box = place->boxes[i];
                snprintf(id, HISTORY_ID_MAX, "%s", full);

                if (strcmp(full, low) == 0) {
                    sqlite3_finalize(stmt);
                    return true;
                }

                matches++;

                if (used + strlen(full) + 3 < sizeof(list)) {
                    snprintf(list + used, sizeof(list) - used, "%s%s",
                             used ? ", " : "", full);
                }
            }
        }

        if (rc == -1) {
            history_place_broken(place, place->boxes[i], &err);
        }

        sqlite3_finalize(stmt);
    }

    if (matches == 1) {
        return true;
    }

    if (matches) {
        history_say("%s fits several records: %s%s", text, list,
                    matches > 3 ? " and more" : "");

    } else {
        history_say("there is no record %s in %s", text, place->root);
    }

    return false;
}
