/* Upstream's API key: read from where it is told, and handed to the helper. */

#include "gateway.h"
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>


#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL  0x0008U        /* since Linux 6.3 */
#endif


static int gw_key_memory(void);
static bool gw_key_hand(int fd, const char *key);


bool
gw_key_read(const gw_t *g, char **key)
{
    char    *text;
    size_t   i, len;

    *key = NULL;

    if (g->opt.api_key) {
        text = strdup(g->opt.api_key);
        len = text ? strlen(text) : 0;

    } else if (g->opt.api_key_file) {
        text = gw_read_file(g->place.key, GW_KEY_MAX, &len);

        if (text == NULL) {
            return gw_fail("--api-key-file: %s cannot be read: %s.",
                           g->opt.api_key_file, strerror(errno));
        }

    } else {
        return true;
    }

    while (len && (text[len - 1] == '\n' || text[len - 1] == '\r')) {
        len--;
    }

    for (i = 0; i < len && text[i] > 0x20 && text[i] < 0x7f; i++) {
        /* void */
    }

    if (len == 0 || i < len) {
        free(text);
        return gw_fail("the API key in %s %s.", g->opt.api_key
                       ? "SANDBOX_GATEWAY_API_KEY" : g->opt.api_key_file,
                       len == 0 ? "is empty"
                       : "holds a space, a line break or a control character");
    }

    text[len] = '\0';
    *key = text;

    return true;
}


/*
 * A helper of its own user opens the key file while it is still root, and never
 * again: of a file that another one has taken the place of it would keep the old
 * key.  So it gets memory of ours, by a name that root alone can open, and we
 * write the new key there.
 */

bool
gw_key_share(gw_t *g)
{
    int    fd, err;
    bool   ok;
    char  *key;

    if (g->place.helper_user == NULL || g->opt.api_key_file == NULL) {
        return true;
    }

    if (!gw_key_read(g, &key)) {
        return false;
    }

    fd = gw_key_memory();
    ok = fd != -1 && gw_key_hand(fd, key);
    err = errno;
    free(key);

    if (!ok) {
        gw_note("the helper reads the API key from its file, and keeps it over"
                " a SIGHUP: there is no memory to share it: %s.", strerror(err));

        if (fd != -1) {
            close(fd);
        }

        return true;
    }

    g->helper_key_fd = fd;
    snprintf(g->helper_key, sizeof(g->helper_key), "/proc/%d/fd/%d",
             (int) getpid(), fd);

    return true;
}


/* Where vm.memfd_noexec is 2 only memory that is never executed is given; older
 * kernels do not know the flag. */

static int
gw_key_memory(void)
{
    int  fd;

    fd = memfd_create("sandbox-gateway-key", MFD_CLOEXEC|MFD_NOEXEC_SEAL);

    if (fd == -1 && errno == EINVAL) {
        fd = memfd_create("sandbox-gateway-key", MFD_CLOEXEC);
    }

    return fd;
}


void
gw_key_again(const gw_t *g)
{
    char  *key;

    if (g->helper_key[0] == '\0') {
        return;
    }

    if (!gw_key_read(g, &key)) {
        gw_note("the helper keeps the API key that it has.");
        return;
    }

    if (!gw_key_hand(g->helper_key_fd, key)) {
        gw_note("the API key cannot be given to the helper: %s; restart this"
                " gateway.", strerror(errno));
    }

    free(key);
}


/* In one write, with line breaks over the rest of a longer one: whoever reads
 * meanwhile gets either. */

static bool
gw_key_hand(int fd, const char *key)
{
    char         text[GW_KEY_MAX + 1];
    size_t       len;
    struct stat  st;

    len = strlen(key);

    if (fstat(fd, &st) == -1) {
        return false;
    }

    if (len < (size_t) st.st_size) {
        len = (size_t) st.st_size;
    }

    memset(text, '\n', sizeof(text));
    memcpy(text, key, strlen(key));

    return pwrite(fd, text, len, 0) == (ssize_t) len;
}
