#include "history_args.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>


bool
history_args_choice(const char *choices, const char *text)
{
    size_t       len, n;
    const char  *end;

    len = strlen(text);

    for (const char *c = choices; ; c = end + 1) {
        end = strchrnul(c, '|');
        n = (size_t) (end - c);

        if (n == len && memcmp(c, text, n) == 0) {
            return true;
        }

        if (*end == '\0') {
            return false;
        }
    }
}


/* Does it look like an option rather than a value? */
static bool
history_args_is_option(const char *text)
{
    const char  *p;

    if (text[0] != '-' || text[1] == '\0') {
        return false;
    }

    if (strchr(text, ' ') != NULL) {
        return false;
    }

    p = text + 1;
    p += strspn(p, "0123456789");

    if (*p == '.') {
        p++;
        p += strspn(p, "0123456789");
    }

    return *p != '\0' || strcmp(text, "-.") == 0;
}


/* Python's int(): blanks around, a sign, digits that may be grouped by single
 * underscores. */
static bool
history_args_int(history_value_t *v, const char *text)
{
    bool      negative, digit;
    uint64_t  n;

    v->big = false;
    n = 0;

    while (isspace((unsigned char) *text)) {
        text++;
    }

    negative = *text == '-';

    if (*text == '-' || *text == '+') {
        text++;
    }

    digit = false;

    for ( ; ; text++) {
        if (*text == '_' && digit && isdigit((unsigned char) text[1])) {
            continue;
        }

        if (!isdigit((unsigned char) *text)) {
            break;
        }

        digit = true;

        if (n > (uint64_t) INT64_MAX / 10
            || n * 10 + (uint64_t) (*text - '0') > (uint64_t) INT64_MAX)
        {
            v->big = true;
            n = (uint64_t) INT64_MAX;
            continue;
        }

        if (!v->big) {
            n = n * 10 + (uint64_t) (*text - '0');
        }
    }

    while (isspace((unsigned char) *text)) {
        text++;
    }

    v->number = negative ? -(int64_t) n : (int64_t) n;

    return digit && *text == '\0';
}


/* The option that `name` of `len` bytes means, -1: none, -2: several. */
static int
history_args_find(const history_arg_t *args, const char *name, size_t len)
{
    int  found;

    found = -1;

    for (int i = 0; args[i].name != NULL; i++) {
        if (strncmp(args[i].name, name, len) != 0) {
            continue;
        }

        if (args[i].name[len] == '\0') {
            return i;
        }

        found = found == -1 ? i : -2;
    }

    return found;
}


static bool
history_args_set(history_parse_t *p, int i, const char *text)
{
    history_value_t      *v = &p->values[i];
    const history_arg_t  *arg = &p->args[i];

    if (arg->type == HISTORY_ARG_INT && !history_args_int(v, text)) {
        snprintf(p->why, sizeof(p->why), "argument %s: invalid int value: '%s'",
                 arg->name, text);
        return false;
    }

    if (arg->choices != NULL && !history_args_choice(arg->choices, text)) {
        snprintf(p->why, sizeof(p->why),
                 "argument %s: invalid choice: '%s' (choose from %s)",
                 arg->name, text, arg->choices);
        return false;
    }

    if (!arg->repeats) {
        v->n = 0;
    }

    if (v->n == HISTORY_ARG_VALUES) {
        snprintf(p->why, sizeof(p->why),
                 "argument %s: given more than %d times", arg->name,
                 HISTORY_ARG_VALUES);
        return false;
    }

    v->text[v->n++] = text;

    return true;
}


static bool
history_args_required(history_parse_t *p)
{
    size_t  len;

    len = 0;

    for (int i = 0; p->args[i].name != NULL; i++) {
        if (!p->args[i].required || p->values[i].n) {
            continue;
        }

        len += (size_t) snprintf(p->why + len, sizeof(p->why) - len, "%s%s",
                                 len ? ", " : "the following arguments are"
                                              " required: ",
                                 p->args[i].name);

        if (len >= sizeof(p->why)) {
            break;
        }
    }

    return len == 0;
}


bool
history_args_parse(history_parse_t *p, int argc, char **argv)
{
    int          i, k;
    bool         options;
    size_t       len;
    const char  *text, *value;

    options = true;
    p->nrest = 0;
    p->help = false;

    for (k = 0; p->args[k].name != NULL; k++) {
        memset(&p->values[k], 0, sizeof(history_value_t));
    }

    for (i = 0; i < argc; i++) {
        text = argv[i];

        if (options && strcmp(text, "--") == 0) {
            options = false;
            continue;
        }

        if (!options || !history_args_is_option(text)) {
            if (p->stop) {
                p->nrest = i;
                return history_args_required(p);
            }

            if (p->nrest == p->max) {
                snprintf(p->why, sizeof(p->why), "unrecognized arguments: %s",
                         text);
                return false;
            }

            p->rest[p->nrest++] = text;
            continue;
        }

        if (strcmp(text, "-h") == 0 || strcmp(text, "--help") == 0) {
            p->help = true;
            return true;
        }

        value = NULL;
        k = -1;

        if (text[1] == '-') {
            len = strcspn(text, "=");

            if (text[len] == '=') {
                value = text + len + 1;
            }

            k = history_args_find(p->args, text, len);

            if (k == -2) {
                snprintf(p->why, sizeof(p->why),
                         "ambiguous option: %.*s could match several options",
                         (int) len, text);
                return false;
            }

        } else {
            for (int j = 0; p->args[j].name != NULL; j++) {
                if (p->args[j].letter == text[1]) {
                    k = j;
                }
            }

            if (text[2] != '\0') {
                value = text + 2;
            }
        }

        if (k == -1) {
            snprintf(p->why, sizeof(p->why), "unrecognized arguments: %s",
                     text);
            return false;
        }

        if (p->args[k].type == HISTORY_ARG_FLAG) {
            if (value != NULL) {
                snprintf(p->why, sizeof(p->why),
                         "argument %s: ignored explicit argument '%s'",
                         p->args[k].name, value);
                return false;
            }

            p->values[k].n = 1;
            continue;
        }

        if (value == NULL) {
            if (i + 1 == argc || history_args_is_option(argv[i + 1])) {
                snprintf(p->why, sizeof(p->why),
                         "argument %s: expected one argument",
                         p->args[k].name);
                return false;
            }

            value = argv[++i];
        }

        if (!history_args_set(p, k, value)) {
            return false;
        }
    }

    if (p->stop) {
        p->nrest = argc;
    }

    return history_args_required(p);
}
