#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>

#include "proxy_int.h"


static bool
rt_in_list(const char *name, const char *const *list, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (strcasecmp(name, list[i]) == 0) {
            return true;
        }
    }

    return false;
}


bool
rt_hop_header(const char *name, const char *connection, bool secrets)
{
    size_t       n;
    const char  *p;

    static const char *const  hop[] = {
        "connection", "keep-alive", "proxy-authenticate",
        "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade"
    };
    static const char *const  dropped[] = {
        "authorization", "cookie", "open-sandbox-api-key"
    };

    if (rt_in_list(name, hop, sizeof(hop) / sizeof(hop[0]))
        || (secrets && rt_in_list(name, dropped,
                                  sizeof(dropped) / sizeof(dropped[0]))))
    {
        return true;
    }

    for (p = connection; p != NULL && *p != '\0'; p += n) {
        p += strspn(p, ", \t");
        n = strcspn(p, ", \t");

        if (n > 0 && n == strlen(name) && strncasecmp(p, name, n) == 0) {
            return true;
        }
    }

    return false;
}


static uint16_t
rt_peer(const rt_req_t *r, char *dst, size_t n)
{
    socklen_t           len;
    struct sockaddr_in  sin;

    memset(&sin, 0, sizeof(sin));
    len = sizeof(sin);
    snprintf(dst, n, "127.0.0.1");

    if (getpeername(rt_client_fd(r), (struct sockaddr *) &sin, &len) == -1
        || sin.sin_family != AF_INET)
    {
        return 0;
    }

    inet_ntop(AF_INET, &sin.sin_addr, dst, (socklen_t) n);

    return ntohs(sin.sin_port);
}


void
rt_peer_address(const rt_req_t *r, char *dst, size_t n)
{
    rt_peer(r, dst, n);
}


char *
rt_forwarded_for(const rt_req_t *r)
{
    int          len;
    char         peer[64], *text;
    uint16_t     port;
    const char  *first;

    port = rt_peer(r, peer, sizeof(peer));
    first = rt_header(r, "X-Forwarded-For");
    first = first ? first : rt_header(r, "X-Real-IP");

    if (first != NULL && first[0] != '\0') {
        len = asprintf(&text, "%.*s, %s", (int) strcspn(first, ","), first,
                       peer);

    } else {
        len = asprintf(&text, "%s:%u, %s", peer, (unsigned) port, peer);
    }

    return len == -1 ? NULL : text;
}


void
rt_lower(char *s)
{
    for ( /* void */ ; *s != '\0'; s++) {
        if (*s >= 'A' && *s <= 'Z') {
            *s = (char) (*s | 0x20);
        }
    }
}
