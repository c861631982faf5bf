/* Options in the environment and in .env. */

#include "options.h"
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define GW_DOTENV_MAX  (64 * 1024)


static bool gw_dotenv_line(gw_options_t *opt, const bool *set, bool *now,
    char *line, unsigned number);
static bool gw_orchestrator_name(const gw_option_t *o, const char *name,
    size_t len, const char *value);


bool
gw_environ_read(gw_options_t *opt, bool *set, char **envp)
{
    bool                now[GW_OPTIONS_MAX] = { false };
    size_t              len;
    unsigned            i;
    const char         *name, *value;
    const gw_option_t  *o;

    for ( /* void */ ; *envp; envp++) {

        if (strncmp(*envp, GW_ENV, GW_ENV_LEN) != 0) {
            continue;
        }

        name = *envp + GW_ENV_LEN;
        value = strchr(name, '=');

        if (value == NULL) {
            continue;
        }

        len = (size_t) (value - name);
        value++;

        if (value[0] == '\0') {
            continue;
        }

        /* options of ours have such names, too: PORT_LISTEN, PORT_HOST */

        o = gw_option_find(name, len, GW_INENV, true);

        if (gw_orchestrator_name(o, name, len, value)) {
            continue;
        }

        if (o == NULL) {
            return gw_fail("the environment holds %.*s, which is no setting;"
                           " see --help.", (int) (len + GW_ENV_LEN), *envp);
        }

        if (set[o - gw_table]) {
            continue;
        }

        if (!gw_option_set(opt, o, value, "environment: ")) {
            return false;
        }

        now[o - gw_table] = true;
    }

    for (i = 0; i < gw_noptions; i++) {
        set[i] = set[i] || now[i];
    }

    return true;
}


/*
 * Kubernetes puts SANDBOX_GATEWAY_SERVICE_HOST, SANDBOX_GATEWAY_PORT=tcp://...
 * and the like into every container beside a service named sandbox-gateway.
 */

static bool
gw_orchestrator_name(const gw_option_t *o, const char *name, size_t len,
    const char *value)
{
    if (o == NULL) {
        return (len > 8 && strncmp(name, "SERVICE_", 8) == 0)
               || (len > 5 && strncmp(name, "PORT_", 5) == 0);
    }

    return len == 4 && strncmp(name, "PORT", 4) == 0
           && (strncmp(value, "tcp://", 6) == 0
               || strncmp(value, "udp://", 6) == 0);
}


bool
gw_dotenv_read(gw_options_t *opt, bool *set)
{
    bool         now[GW_OPTIONS_MAX] = { false };
    int          fd;
    char        *text, *line;
    size_t       n;
    FILE        *f;
    unsigned     number;
    struct stat  st;

    /* a pipe is not waited for */

    fd = open(".env", O_RDONLY|O_CLOEXEC|O_NONBLOCK);
    f = (fd == -1) ? NULL : fdopen(fd, "re");

    if (f == NULL) {
        if (errno == ENOENT) {
            return true;
        }

        return gw_fail("the file .env in the working directory cannot be"
                       " read: %s.", strerror(errno));
    }

    /* it names programs to run: anybody could leave one in /tmp */

    if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) || !gw_trusted(&st)) {
        fclose(f);
        return gw_fail("the file .env in the working directory is not ours"
                       " alone to write; correct its owner and mode or start"
                       " in another directory.");
    }

    /* never freed: options point into it */

    text = malloc(GW_DOTENV_MAX + 1);
    if (text == NULL) {
        fclose(f);
        return gw_fail("out of memory.");
    }

    n = fread(text, 1, GW_DOTENV_MAX + 1, f);
    fclose(f);

    if (n > GW_DOTENV_MAX) {
        return gw_fail("the file .env in the working directory is larger than"
                       " %d bytes.", GW_DOTENV_MAX);
    }

    text[n] = '\0';
    number = 0;

    while ((line = strsep(&text, "\n")) != NULL) {
        if (!gw_dotenv_line(opt, set, now, line, ++number)) {
            return false;
        }
    }

    return true;
}


/* NAME=VALUE, also with "export" before it and quotes around the value; what
 * is meant for other programs is left alone. */

static bool
gw_dotenv_line(gw_options_t *opt, const bool *set, bool *now, char *line,
    unsigned number)
{
    char                quote;
    char               *value, *end;
    char                from[32];
    size_t              i;
    const gw_option_t  *o;

    line += strspn(line, " \t");

    if (strncmp(line, "export ", 7) == 0) {
        line += 7;
        line += strspn(line, " \t");
    }

    if (strncmp(line, GW_ENV, GW_ENV_LEN) != 0) {
        return true;
    }

    value = strchr(line, '=');

    if (value == NULL) {
        return gw_fail(".env line %u: \"=\" is missing.", number);
    }

    for (end = value; end > line && (end[-1] == ' ' || end[-1] == '\t');
         end--)
    {
        /* void */
    }

    o = gw_option_find(line + GW_ENV_LEN,
                       (size_t) (end - line) - GW_ENV_LEN, GW_INENV, true);
    if (o == NULL) {
        return gw_fail(".env line %u: %.*s is no setting; see --help.",
                       number, (int) (end - line), line);
    }

    value++;
    value += strspn(value, " \t");
    end = value + strcspn(value, "\r");
    *end = '\0';

    if (value[0] == '"' || value[0] == '\'') {
        quote = *value++;
        end = strchr(value, quote);

        if (end == NULL) {
            return gw_fail(".env line %u: the closing quote is missing.",
                           number);
        }

        *end = '\0';

    } else {
        end = strstr(value, " #");
        if (end == NULL) {
            end = value + strlen(value);
        }

        while (end > value && (end[-1] == ' ' || end[-1] == '\t')) {
            end--;
        }

        *end = '\0';
    }

    i = (size_t) (o - gw_table);

    if (set[i] || value[0] == '\0') {
        return true;
    }

    /* a list grows over lines; of others the last line counts */
    now[i] = true;

    snprintf(from, sizeof(from), ".env line %u: ", number);

    return gw_option_set(opt, o, value, from);
}
