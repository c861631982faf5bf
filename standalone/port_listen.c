/* Addresses to listen on, and the listener for user ports (design 7). */

#include "gateway.h"

#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>


static bool gw_ports_host(gw_t *g);
static void gw_ports_url(gw_t *g);


/* ADDRESS, ADDRESS:PORT, [IPV6] or [IPV6]:PORT */

bool
gw_address_parse(const char *flag, const char *text, char addr[GW_ADDR_MAX],
    unsigned *port, bool *loopback)
{
    size_t           len;
    const char      *p, *end;
    struct in_addr   in;
    struct in6_addr  in6;

    p = text;

    if (p[0] == '[') {
        p++;
        end = strchr(p, ']');

        if (end == NULL) {
            return gw_fail("%s: \"%s\" has a \"[\" without \"]\".", flag, text);
        }

        len = (size_t) (end - p);
        end++;

    } else {
        end = strchr(p, ':');

        if (end == NULL || strchr(end + 1, ':')) {
            end = p + strlen(p);        /* a bare IPv6 address too */
        }

        len = (size_t) (end - p);
    }

    if (*end != '\0'
        && (*end != ':' || !gw_number(end + 1, 1, 65535, port)))
    {
        return gw_fail("%s: \"%s\" has no valid port.", flag, text);
    }

    if (len >= GW_ADDR_MAX) {
        return gw_fail("%s: \"%s\" is not an address of IPv4 or IPv6.", flag,
                       text);
    }

    memcpy(addr, p, len);
    addr[len] = '\0';

    if (strcmp(addr, "localhost") == 0) {
        strcpy(addr, "127.0.0.1");

    } else if (strcmp(addr, "*") == 0) {
        strcpy(addr, "0.0.0.0");
    }

    if (inet_pton(AF_INET, addr, &in) == 1) {
        *loopback = (ntohl(in.s_addr) >> 24 == 127);
        return true;
    }

    if (inet_pton(AF_INET6, addr, &in6) == 1) {
        *loopback = IN6_IS_ADDR_LOOPBACK(&in6);
        return true;
    }

    return gw_fail("%s: \"%s\" is not an address of IPv4 or IPv6.", flag, addr);
}


/*
 * On loopback there is one unless told otherwise, on the next port: browsers
 * find {label}.localhost by themselves.  Elsewhere its names have to be known.
 */

bool
gw_prepare_ports(gw_t *g)
{
    bool                 loopback;
    const gw_options_t  *o;

    o = &g->opt;

    if (o->port_listen && strcmp(o->port_listen, "off") == 0) {

        if (o->port_host) {
            return gw_fail("--port-host without a listener for user ports:"
                           " --port-listen is off.");
        }

        return true;
    }

    if (o->port_listen == NULL) {

        if (!g->loopback) {

            if (o->port_host) {
                return gw_fail("--port-host needs --port-listen, the address"
                               " that these names lead to.");
            }

            return true;
        }

        strcpy(g->ports_addr, g->listen_addr);
        g->ports_port = o->port < 65535 ? o->port + 1 : o->port - 1;
        g->ports_free = true;
        loopback = true;

    } else {

        if (!gw_address_parse("--port-listen", o->port_listen, g->ports_addr,
                              &g->ports_port, &loopback))
        {
            return false;
        }

        if (g->ports_port == 0) {
            return gw_fail("--port-listen: \"%s\" is ADDRESS:PORT or off.",
                           o->port_listen);
        }

        if (g->ports_port == o->port) {
            return gw_fail("--port-listen and --port are both %u: what a"
                           " sandbox serves must not share the console's"
                           " address.", o->port);
        }

        if (o->tls_cert == NULL && !loopback && !o->insecure) {
            return gw_fail("--port-listen: %s is not a loopback address: give"
                           " --tls-cert and --tls-key, or --insecure.",
                           g->ports_addr);
        }
    }

    if (o->port_host && !gw_ports_host(g)) {
        return false;
    }

    if (!loopback && o->port_host == NULL && o->nhosts == 0) {
        return gw_fail("--port-listen: name what browsers call it, *.NAME with"
                       " --port-host, or one name for all with --host.");
    }

    g->ports_loopback = loopback;
    gw_ports_url(g);

    return true;
}


/* *.NAME; nginx says the rest. */

static bool
gw_ports_host(gw_t *g)
{
    const char  *p;

    p = g->opt.port_host;

    if (strncmp(p, "*.", 2) != 0 || p[2] == '\0' || strlen(p) > 226
        || p[2 + strspn(p + 2, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                               "UVWXYZ0123456789.-")] != '\0')
    {
        return gw_fail("--port-host: \"%s\" is not *.NAME.", p);
    }

    return true;
}


static void
gw_ports_url(gw_t *g)
{
    bool         brackets;
    const char  *host;

    host = g->ports_addr;

    if (!g->ports_loopback && g->opt.nhosts) {
        host = g->opt.hosts[0];
    }

    brackets = (strchr(host, ':') != NULL && host[0] != '[');

    snprintf(g->ports_url, sizeof(g->ports_url), "%s://%s%s%s:%u",
             g->opt.tls_cert ? "https" : "http", brackets ? "[" : "", host,
             brackets ? "]" : "", g->ports_port);
}


bool
gw_ports_pick(gw_t *g)
{
    unsigned  i, port;

    if (g->ports_port == 0 || g->opt.config) {
        return true;
    }

    if (!g->ports_free) {
        return gw_port_free(g->ports_addr, g->ports_port, "--port-listen");
    }

    port = g->ports_port;

    for (i = 0; i < 20 && port + i <= 65535; i++) {

        if (port + i != g->opt.port
            && (!g->runtime || port + i != g->upstream.port)
            && !gw_port_open(g->ports_addr, port + i))
        {
            g->ports_port = port + i;
            gw_ports_url(g);
            return true;
        }
    }

    return gw_fail("port %u on %s, for user ports, is taken; choose another"
                   " with --port-listen, or off.", port, g->ports_addr);
}
