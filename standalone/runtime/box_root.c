/* The file tree of a sandbox: its own but for /usr. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box.h"
#include "fsutil.h"


/* What programs from the host's /usr look for in /etc.  No passwords, keys or
 * host names are among it. */

static const char *const  rt_etc[] = {
    "alternatives", "bash.bashrc", "ca-certificates.conf", "debian_version",
    "fonts", "gai.conf", "host.conf", "inputrc", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "locale.alias", "locale.gen", "localtime", "login.defs",
    "magic", "mime.types", "os-release", "pam.conf", "pam.d", "perl",
    "profile", "profile.d", "protocols", "python3", "python3.11",
    "resolv.conf", "rpc", "security/access.conf", "security/limits.conf",
    "security/pam_env.conf", "services", "shells", "skel", "ssl/certs",
    "ssl/openssl.cnf", "terminfo", "timezone", "xattr.conf"
};

static const char  rt_passwd[] =
    "root:x:0:0:root:/root:/bin/bash\n"
    "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
    "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
    "mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
    "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
    "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
    "user:x:1000:1000:user:/home/user:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";

static const char  rt_group[] =
    "root:x:0:\ndaemon:x:1:\nbin:x:2:\ntty:x:5:\nmail:x:8:\nsudo:x:27:\n"
    "www-data:x:33:\nshadow:x:42:\nstaff:x:50:\nuser:x:1000:\n"
    "nogroup:x:65534:\n";

static const char  rt_shadow[] =
    "root:*:19700:0:99999:7:::\nuser:*:19700:0:99999:7:::\n"
    "nobody:*:19700:0:99999:7:::\n";

static const char  rt_nsswitch[] =
    "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n"
    "protocols: files\n";


static int
rt_mk(const char *root, const char *name, mode_t mode)
{
    char  path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", root, name)
        >= (int) sizeof(path))
    {
        errno = ENAMETOOLONG;
        return -1;
    }

    if (mkdir(path, mode) == -1 && errno != EEXIST) {
        return -1;
    }

    return chmod(path, mode);
}


static int
rt_mk_file(const char *root, const char *name, const char *text)
{
    char  path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", root, name);

    return rt_write_file(path, text);
}


/* /bin and its like: links as on a merged host, else directories to bind the
 * host's on. */

static int
rt_mk_like_host(const char *root, const char *name)
{
    char         path[PATH_MAX], host[64], link[PATH_MAX];
    ssize_t      n;
    struct stat  st;

    snprintf(host, sizeof(host), "/%s", name);

    if (lstat(host, &st) == -1) {
        return 0;
    }

    if (!S_ISLNK(st.st_mode)) {
        return rt_mk(root, name, 0755);
    }

    n = readlink(host, link, sizeof(link) - 1);
    snprintf(path, sizeof(path), "%s/%s", root, name);

    if (n <= 0) {
        return -1;
    }

    link[n] = '\0';

    return symlink(link, path);
}


static void
rt_hosts(char *dst, size_t n, const char *hostname)
{
    snprintf(dst, n, "127.0.0.1\tlocalhost\n127.0.1.1\t%s\n"
             "::1\tlocalhost ip6-localhost\n", hostname);
}


int
rt_root_make(const char *root, const char *hostname)
{
    size_t  i;
    char    from[PATH_MAX], to[PATH_MAX], hosts[512];

    static const struct {
        const char  *name;
        mode_t       mode;
    } dirs[] = {
        { "usr", 0755 }, { "proc", 0755 }, { "dev", 0755 }, { "sys", 0755 },
        { "etc", 0755 }, { "etc/ssl", 0755 },
        { "etc/security", 0755 }, { "root", 0755 },
        { "home", 0755 }, { "home/user", 0755 }, { "tmp", 01777 },
        { "run", 0755 }, { "run/lock", 01777 }, { "opt", 0755 },
        { "opt/opensandbox", 0755 }, { "mnt", 0755 }, { "media", 0755 },
        { "srv", 0755 }, { "boot", 0755 }, { "var", 0755 },
        { "var/tmp", 01777 }, { "var/log", 0755 }, { "var/cache", 0755 },
        { "var/lib", 0755 }, { "var/mail", 0755 }, { "var/spool", 0755 },
        { "workspace", 0755 }
    };
    static const char *const  merged[] = {
        "bin", "sbin", "lib", "lib32", "lib64", "libx32"
    };

    if (mkdir(root, 0755) == -1 || chmod(root, 0755) == -1) {
        return -1;
    }

    for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        if (rt_mk(root, dirs[i].name, dirs[i].mode) == -1) {
            return -1;
        }
    }

    for (i = 0; i < sizeof(merged) / sizeof(merged[0]); i++) {
        if (rt_mk_like_host(root, merged[i]) == -1) {
            return -1;
        }
    }

    snprintf(to, sizeof(to), "%s/var/run", root);

    if (symlink("/run", to) == -1) {
        return -1;
    }

    for (i = 0; i < sizeof(rt_etc) / sizeof(rt_etc[0]); i++) {
        snprintf(from, sizeof(from), "/etc/%s", rt_etc[i]);
        snprintf(to, sizeof(to), "%s/etc/%s", root, rt_etc[i]);
        rt_copy(from, to);
    }

    /* a link such as systemd-resolved's leads out of /etc */

    snprintf(to, sizeof(to), "%s/etc/resolv.conf", root);
    unlink(to);

    if (realpath("/etc/resolv.conf", from) != NULL) {
        rt_copy(from, to);
    }

    rt_hosts(hosts, sizeof(hosts), hostname);
    snprintf(from, sizeof(from), "%s\n", hostname);

    if (rt_mk_file(root, "etc/passwd", rt_passwd) == -1
        || rt_mk_file(root, "etc/group", rt_group) == -1
        || rt_mk_file(root, "etc/shadow", rt_shadow) == -1
        || rt_mk_file(root, "etc/nsswitch.conf", rt_nsswitch) == -1
        || rt_mk_file(root, "etc/hosts", hosts) == -1
        || rt_mk_file(root, "etc/hostname", from) == -1)
    {
        return -1;
    }

    snprintf(to, sizeof(to), "%s/etc/shadow", root);
    chmod(to, 0640);
    snprintf(to, sizeof(to), "%s/home/user", root);

    return geteuid() == 0 ? chown(to, 1000, 1000) : 0;
}


/* What stands at name in a directory becomes a real directory. */

static int
rt_real_dir(int dir, const char *name)
{
    struct stat  st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0
        && S_ISDIR(st.st_mode))
    {
        return 0;
    }

    return rt_remove_at(dir, name) == -1 ? -1 : mkdirat(dir, name, 0755);
}


/* Replaces a file; what stands there is not opened. */

static void
rt_replace_at(int dir, const char *name, const char *text)
{
    int     fd;
    size_t  n;

    if (rt_remove_at(dir, name) == -1) {
        return;
    }

    fd = openat(dir, name, O_WRONLY|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC,
                0644);

    if (fd == -1) {
        return;
    }

    n = strlen(text);

    if (write(fd, text, n) != (ssize_t) n) {
        (void) unlinkat(dir, name, 0);
    }

    close(fd);
}


int
rt_root_mend(const char *root, const char *hostname)
{
    int          dir, sub, rc;
    size_t       i;
    char         text[512], host[64];
    struct stat  st;

    static const char *const  mounts[] = { "usr", "proc", "dev", "opt" };
    static const char *const  unmerged[] = {
        "bin", "sbin", "lib", "lib32", "lib64", "libx32"
    };

    dir = open(root, O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC);

    if (dir == -1) {
        return -1;
    }

    rc = 0;

    for (i = 0; i < sizeof(mounts) / sizeof(mounts[0]) && rc == 0; i++) {
        rc = rt_real_dir(dir, mounts[i]);
    }

    for (i = 0; i < sizeof(unmerged) / sizeof(unmerged[0]) && rc == 0; i++) {
        snprintf(host, sizeof(host), "/%s", unmerged[i]);

        if (lstat(host, &st) == 0 && S_ISDIR(st.st_mode)) {
            rc = rt_real_dir(dir, unmerged[i]);
        }
    }

    sub = rc == 0 ? openat(dir, "opt",
                           O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC) : -1;

    if (sub != -1) {
        rc = rt_real_dir(sub, "opensandbox");
        close(sub);
    }

    sub = rc == 0 ? openat(dir, "opt/opensandbox",
                           O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC) : -1;

    if (sub != -1) {
        rc = rt_remove_at(sub, "execd");
        close(sub);
    }

    sub = rc == 0 ? openat(dir, "etc",
                           O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC) : -1;

    if (sub != -1) {
        rt_hosts(text, sizeof(text), hostname);
        rt_replace_at(sub, "hosts", text);
        snprintf(text, sizeof(text), "%s\n", hostname);
        rt_replace_at(sub, "hostname", text);
        close(sub);
    }

    close(dir);

    return rc;
}
