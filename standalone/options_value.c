/* Values of options: what they may be, and where they are kept. */

#include "options.h"
#include "number.h"

#include <stdlib.h>


static bool gw_list_add(gw_options_t *opt, const char *value,
    const char *from);
static bool gw_holds_add(gw_options_t *opt, const char *value,
    const char *from);
static bool gw_size(const char *text, unsigned least);


bool
gw_option_set(gw_options_t *opt, const gw_option_t *o, const char *value,
    const char *from)
{
    char      *field;
    unsigned   n;

    field = (char *) opt + o->offset;

    if (o->kind == GW_BOOL) {
        if (value == NULL || strcmp(value, "1") == 0
            || strcmp(value, "true") == 0 || strcmp(value, "yes") == 0
            || strcmp(value, "on") == 0)
        {
            *(bool *) (void *) field = true;
            return true;
        }

        if (strcmp(value, "0") == 0 || strcmp(value, "false") == 0
            || strcmp(value, "no") == 0 || strcmp(value, "off") == 0)
        {
            *(bool *) (void *) field = false;
            return true;
        }

        return gw_fail("%s%s is a switch: \"%s\" is none of 1, true, yes, on,"
                       " 0, false, no, off.", from, o->name, value);
    }

    if (value == NULL || value[0] == '\0') {
        return gw_fail("%s%s needs a value.", from, o->name);
    }

    switch (o->kind) {

    case GW_TEXT:
        break;

    case GW_LIST:
        return gw_list_add(opt, value, from);

    case GW_HOLDS:
        return gw_holds_add(opt, value, from);

    case GW_COUNT:
        if (!gw_number(value, 1, o->bound, &n)) {
            return gw_fail("%s%s: \"%s\" is not a number from 1 to %u.", from,
                           o->name, value, o->bound);
        }

        break;

    case GW_SYNC:
        if (strcmp(value, "normal") != 0 && strcmp(value, "full") != 0) {
            return gw_fail("%s%s: \"%s\" is neither normal nor full.", from,
                           o->name, value);
        }

        break;

    case GW_SIZE:
        if (!gw_size(value, o->bound)) {
            return gw_fail("%s%s: \"%s\" is not a size of at least %um, such as"
                           " 512m or 4g.", from, o->name, value, o->bound);
        }

        break;

    case GW_WORDS:
        if (value[strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789=/. ")]
            != '\0')
        {
            return gw_fail("%s%s: \"%s\" has a character that no such value"
                           " has; see --help.", from, o->name, value);
        }

        break;

    case GW_PORT:
        if (!gw_number(value, 1, 65535, (unsigned *) (void *) field)) {
            return gw_fail("%sport: \"%s\" is not a port number (1 to 65535).",
                           from, value);
        }

        return true;

    case GW_WORKERS:
        if (strcmp(value, "auto") == 0) {
            *(unsigned *) (void *) field = 0;
            return true;
        }

        if (!gw_number(value, 1, 256, (unsigned *) (void *) field)) {
            return gw_fail("%sworkers: \"%s\" is neither auto nor a number"
                           " from 1 to 256.", from, value);
        }

        return true;

    default:
        return false;
    }

    *(const char **) (void *) field = value;

    return true;
}


static bool
gw_list_add(gw_options_t *opt, const char *value, const char *from)
{
    char  *copy, *name, *rest;

    copy = strdup(value);
    if (copy == NULL) {
        return gw_fail("out of memory.");
    }

    rest = copy;

    while ((name = strsep(&rest, ", ")) != NULL) {

        if (name[0] == '\0') {
            continue;
        }

        if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789.-_[]:")] != '\0'
            || (name[0] != '[' && strchr(name, ':')))
        {
            return gw_fail("%shost: \"%s\" is not a host name without a"
                           " port.", from, name);
        }

        if (opt->nhosts == GW_HOSTS_MAX) {
            return gw_fail("%shost: more than %d names.", from, GW_HOSTS_MAX);
        }

        opt->hosts[opt->nhosts++] = name;
    }

    return true;
}


static bool
gw_holds_add(gw_options_t *opt, const char *value, const char *from)
{
    char  *copy, *id, *rest;

    copy = strdup(value);
    if (copy == NULL) {
        return gw_fail("out of memory.");
    }

    rest = copy;

    while ((id = strsep(&rest, ", ")) != NULL) {

        if (id[0] == '\0') {
            continue;
        }

        if (opt->nholds == GW_HOLDS_MAX) {
            return gw_fail("%shistory-hold: more than %d sandboxes.", from,
                           GW_HOLDS_MAX);
        }

        opt->holds[opt->nholds++] = id;
    }

    return true;
}


bool
gw_number(const char *text, unsigned min, unsigned max, unsigned *n)
{
    uint64_t  v;

    if (!sb_number(sb_str(text, strlen(text)), 10, max, &v) || v < min) {
        return false;
    }

    *n = (unsigned) v;

    return true;
}


/* Digits and a unit, as nginx takes them; at least so many MiB. */

static bool
gw_size(const char *text, unsigned least)
{
    size_t       n;
    uint64_t     v;
    const char  *unit;

    static const char  units[] = "kmg";

    n = strspn(text, "0123456789");

    if (!sb_number(sb_str(text, n), 10, (uint64_t) 1 << 32, &v)) {
        return false;
    }

    unit = text[n] ? strchr(units, text[n] | 0x20) : NULL;

    if (text[n] && (unit == NULL || text[n + 1])) {
        return false;
    }

    v <<= unit ? 10 * (unit - units + 1) : 0;

    return v >> 20 >= least;
}
