/* The other programs: nginx, and what was built together with this one. */

#include "gateway.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>


static bool gw_sibling(char *dst, const char *dir, const char *installed,
    const char *name);
static bool gw_nginx_path(gw_programs_t *p, const gw_options_t *opt);


bool
gw_programs_find(gw_programs_t *p, const gw_options_t *opt)
{
    char     dir[GW_PATH_MAX];
    char    *slash;
    ssize_t  n;

    memset(p, 0, sizeof(*p));

    n = readlink("/proc/self/exe", p->self, sizeof(p->self) - 1);

    if (n <= 0) {
        return gw_fail("/proc is not mounted, so the programs that belong"
                       " together cannot be found.");
    }

    memcpy(dir, p->self, (size_t) n + 1);

    slash = strrchr(dir, '/');
    *slash = '\0';

    return gw_sibling(p->module, dir, "lib/sandbox-gateway",
                      "ngx_http_sandbox_module.so")
           && gw_sibling(p->helper, dir, "lib/sandbox-gateway",
                         "sandbox-helper")
           && gw_sibling(p->inspect, dir, "lib/sandbox-gateway",
                         "sandbox-inspect")
           && gw_sibling(p->runtime, dir, "lib/sandbox-gateway",
                         "sandbox-runtime")
           && gw_sibling(p->console, dir, "share/sandbox-gateway", "console")
           && gw_nginx_find(p, opt);
}


bool
gw_nginx_find(gw_programs_t *p, const gw_options_t *opt)
{
    int       status;
    char      out[512];
    char     *argv[] = { p->nginx, "-v", NULL };
    char     *slash;
    unsigned  major, minor, patch;

    if (!gw_nginx_path(p, opt)) {
        return false;
    }

    status = gw_run(argv, out, sizeof(out));
    slash = strchr(out, '/');

    if (status != 0 || slash == NULL
        || sscanf(slash, "/%u.%u.%u", &major, &minor, &patch) != 3)
    {
        return gw_fail("%s -v does not tell a version; is it nginx?",
                       p->nginx);
    }

    p->nginx_version = major * 1000000 + minor * 1000 + patch;

    return true;
}


int
gw_run(char *const argv[], char *out, size_t size)
{
    int      fds[2], status, null;
    char     more[512];
    pid_t    pid;
    size_t   n;
    ssize_t  got;

    if (pipe2(fds, O_CLOEXEC) == -1) {
        return -1;
    }

    pid = fork();

    if (pid == -1) {
        close(fds[0]);
        close(fds[1]);
        return -1;
    }

    if (pid == 0) {
        null = open("/dev/null", O_RDONLY);
        (void) dup2(null, 0);
        (void) dup2(fds[1], 1);
        (void) dup2(fds[1], 2);
        execv(argv[0], argv);
        _exit(127);
    }

    close(fds[1]);
    n = 0;

    for ( ;; ) {
        if (n < size - 1) {
            got = read(fds[0], out + n, size - 1 - n);
            n += (got > 0) ? (size_t) got : 0;

        } else {
            got = read(fds[0], more, sizeof(more));
        }

        if (got == 0 || (got == -1 && errno != EINTR)) {
            break;
        }
    }

    out[n] = '\0';
    close(fds[0]);

    while (waitpid(pid, &status, 0) == -1) {
        if (errno != EINTR) {
            return -1;
        }
    }

    return status;
}


/* Beside us in build/, or below the prefix that we are installed in. */

static bool
gw_sibling(char *dst, const char *dir, const char *installed,
    const char *name)
{
    char  path[GW_PATH_MAX * 2];

    snprintf(path, sizeof(path), "%s/%s", dir, name);

    if (access(path, F_OK) == -1) {
        snprintf(path, sizeof(path), "%s/../%s/%s", dir, installed, name);
    }

    /* dst has room for less than PATH_MAX: resolve into memory of its own */

    {
        char  *real = realpath(path, NULL);

        if (real == NULL || strlen(real) >= GW_PATH_MAX) {
            free(real);
            return gw_fail("%s is neither in %s nor in %s/../%s; run make, or"
                           " make install.", name, dir, dir, installed);
        }

        strcpy(dst, real);
        free(real);
    }

    if (dst[strcspn(dst, "\"\\$")] != '\0') {
        return gw_fail("the path %s holds a quote, a backslash or \"$\", which"
                       " nginx's configuration cannot hold; move it.", dst);
    }

    return true;
}


static bool
gw_nginx_path(gw_programs_t *p, const gw_options_t *opt)
{
    char        *list, *dir, *rest;
    const char  *path;

    if (opt->nginx) {
        if (access(opt->nginx, X_OK) == -1) {
            return gw_fail("SANDBOX_GATEWAY_NGINX: %s cannot be run: %s.",
                           opt->nginx, strerror(errno));
        }

        snprintf(p->nginx, sizeof(p->nginx), "%s", opt->nginx);
        return true;
    }

    path = getenv("PATH");

    if (asprintf(&list, "%s:/usr/sbin:/usr/local/sbin:/usr/local/nginx/sbin"
                        ":/sbin", path ? path : "") == -1)
    {
        return gw_fail("out of memory.");
    }

    rest = list;

    while ((dir = strsep(&rest, ":")) != NULL) {

        if (dir[0] != '/') {
            continue;
        }

        snprintf(p->nginx, sizeof(p->nginx), "%s/nginx", dir);

        if (access(p->nginx, X_OK) == 0) {
            free(list);
            return true;
        }
    }

    free(list);

    return gw_fail("nginx is not installed; install the package nginx, or name"
                   " the binary in SANDBOX_GATEWAY_NGINX.");
}
