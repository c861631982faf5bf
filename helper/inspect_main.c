/*
 * sandbox-inspect: looks into one archive, confined.
 *
 *   sandbox-inspect FILE            tells a person what it found
 *   sandbox-inspect - SECONDS MEMORY PARENT
 *                                   answers sandbox-helper: an INSPECT frame on
 *                                   standard input, the file as descriptor 3,
 *                                   an INSPECTED frame on standard output
 */

#include "inspect_int.h"

#include "id.h"
#include "json.h"
#include "number.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>


#define MAIN_SECONDS  60
#define MAIN_MEMORY   ((uint64_t) 512 << 20)

static const char  main_help[] =
    "Usage: sandbox-inspect [option]... FILE\n"
    "\n"
    "Tells what the conditions of a policy would find in an archive, as JSON.\n"
    "\n"
    "  --entries N      how much is looked at: members,\n"
    "  --size N         bytes of all of them unpacked,\n"
    "  --file-size N    ... of one,\n"
    "  --ratio N        ... to the size of the file,\n"
    "  --depth N        archives in archives\n"
    "  --version, --help\n";

static const char *const  main_counts[SB_IN_COUNTS] = {
    "entries", "size", "file_size", "ratio", "depth"
};


/* Writes all of it at once: a pipe has room. */
static int
main_write(const void *p, size_t n)
{
    return write(INSPECT_ANSWER, p, n) == (ssize_t) n ? 0 : 1;
}


static void
main_run(inspect_t *in, uint64_t offset, uint64_t size)
{
    inspect_blob_t  blob;

    memset(&blob, 0, sizeof(blob));
    blob.fd = INSPECT_FILE;
    blob.offset = offset;
    blob.size = size;

    in->size = size;
    in->rank = UINT32_MAX;

    (void) inspect_blob(in, &blob, 1);
}


static bool
main_prepare(inspect_t *in)
{
    memset(in, 0, sizeof(*in));
    sb_inspect_most(in->most);

    /* it was started as the number of a descriptor */
    (void) prctl(PR_SET_NAME, "sandbox-inspect", 0, 0, 0);

    /* names of members are UTF-8 then */
    (void) setlocale(LC_CTYPE, "C.UTF-8");

    return getrandom(&in->seed, sizeof(in->seed), 0)
           == (ssize_t) sizeof(in->seed);
}


/* --- for people --------------------------------------------------------------- */

static int
main_tell(const sb_inspect_t *out)
{
    int        rc;
    size_t     i;
    bool       first = true;
    sb_buf_t   b;
    unsigned   bit;

    memset(&b, 0, sizeof(b));
    b.max = 65536;

    (void) sb_buf_printf(&b, "{\"archive\":%s,\"found\":[",
                         out->found & SB_IN_ARCHIVE ? "true" : "false");

    for (bit = 2; bit <= SB_IN_MISNAMED; bit <<= 1) {
        if (out->found & bit) {
            (void) sb_buf_printf(&b, "%s\"%s\"", first ? "" : ",",
                                 sb_inspect_name(bit));
            first = false;
        }
    }

    (void) sb_buf_add_c(&b, ']');

    for (i = 0; i < SB_IN_COUNTS; i++) {
        (void) sb_buf_printf(&b, ",\"%s\":%llu", main_counts[i],
                             (unsigned long long) out->counts[i]);
    }

    (void) sb_buf_printf(&b, ",\"cut\":%s,\"why\":",
                         out->cut ? "true" : "false");
    (void) sb_json_write_str(&b, sb_str(out->why, strlen(out->why)));
    (void) sb_buf_add_str(&b, sb_lit(",\"member\":"));
    (void) sb_json_write_str(&b, sb_str(out->name, strlen(out->name)));
    (void) sb_buf_add_str(&b, sb_lit("}\n"));

    rc = b.data ? main_write(b.data, b.len) : 1;
    sb_buf_free(&b);

    return rc;
}


static int
main_fail(const char *what, const char *why)
{
    fprintf(stderr, "sandbox-inspect: %s: %s\n", what, why);

    return 2;
}


static int
main_person(int argc, char **argv)
{
    int          i, fd;
    size_t       k;
    inspect_t    in;
    const char  *file = NULL, *why;
    struct stat  st;

    if (!main_prepare(&in)) {
        return main_fail("the random numbers", strerror(errno));
    }

    for (i = 1; i < argc; i++) {

        if (strcmp(argv[i], "--help") == 0) {
            fputs(main_help, stdout);
            return 0;
        }

        if (strcmp(argv[i], "--version") == 0) {
            printf("sandbox-inspect %s\n", SB_VERSION);
            return 0;
        }

        if (strncmp(argv[i], "--", 2) != 0) {
            if (file) {
                return main_fail(argv[i], "name one file");
            }

            file = argv[i];
            continue;
        }

        for (k = 0; k < SB_IN_COUNTS; k++) {
            if (strcmp(argv[i] + 2, k == SB_IN_FILE_SIZE ? "file-size"
                                                         : main_counts[k])
                == 0)
            {
                break;
            }
        }

        if (k == SB_IN_COUNTS || i + 1 == argc
            || !sb_number(sb_str(argv[i + 1], strlen(argv[i + 1])), 10,
                          in.most[k], &in.most[k]))
        {
            return main_fail(argv[i], "no option, or its number is missing or "
                             "too large; see --help");
        }

        i++;
    }

    if (file == NULL) {
        fputs(main_help, stderr);
        return 2;
    }

    fd = open(file, O_RDONLY|O_CLOEXEC);

    if (fd == -1 || fstat(fd, &st) == -1
        || (fd != INSPECT_FILE && dup2(fd, INSPECT_FILE) == -1))
    {
        return main_fail(file, strerror(errno));
    }

    if (!S_ISREG(st.st_mode)) {
        return main_fail(file, "is no plain file");
    }

    why = inspect_confine(MAIN_SECONDS, MAIN_MEMORY, 0);

    if (why) {
        return main_fail("cannot give up", why);
    }

    main_run(&in, 0, (uint64_t) st.st_size);

    return main_tell(&in.out);
}


/* --- for sandbox-helper --------------------------------------------------------- */

/* The whole question: its writer has closed the pipe behind it. */
static bool
main_question(char *mem, size_t size, sb_frame_t *f)
{
    size_t   n, need;
    ssize_t  got;

    for (n = 0; n < size; n += (size_t) got) {
        got = read(INSPECT_QUESTION, mem + n, size - n);

        if (got <= 0) {
            break;
        }
    }

    return sb_frame_read(f, mem, n, &need) == SB_OK && f->length == n
           && f->type == SB_F_INSPECT;
}


static void
main_bounds(inspect_t *in, const sb_frame_t *f)
{
    size_t    i = 0;
    uint16_t  tag;
    uint64_t  v;
    sb_str_t  fields = f->fields, value;

    while (i < SB_IN_COUNTS && sb_field_next(&fields, &tag, &value)) {

        if (tag == SB_T_COUNT) {
            v = sb_value_u64(value, 0);
            in->most[i] = v < in->most[i] ? v : in->most[i];
            i++;
        }
    }
}


static int
main_helper(char **argv)
{
    uint64_t            seconds, memory, parent;
    inspect_t           in;
    sb_frame_t          f;
    const char         *why;
    sb_frame_writer_t   w;

    static char  question[SB_IN_FRAME];
    static char  answer[SB_IN_ANSWER];

    if (!sb_number(sb_str(argv[2], strlen(argv[2])), 10, 86400, &seconds)
        || !sb_number(sb_str(argv[3], strlen(argv[3])), 10, UINT64_MAX / 2,
                      &memory)
        || !sb_number(sb_str(argv[4], strlen(argv[4])), 10, INT32_MAX, &parent)
        || !main_prepare(&in)
        || !main_question(question, sizeof(question), &f))
    {
        return main_fail("the question", "cannot be read");
    }

    in.names = sb_policy_names_new(&f);

    if (in.names == NULL) {
        return main_fail("the question", "its patterns cannot be read");
    }

    main_bounds(&in, &f);

    why = inspect_confine((unsigned) seconds, memory, (pid_t) parent);

    if (why) {
        return main_fail("cannot give up", why);
    }

    main_run(&in, sb_field_u64(&f, SB_T_FILE_OFFSET, UINT64_MAX / 2),
             sb_field_u64(&f, SB_T_FILE_SIZE, 0));

    sb_frame_begin(&w, answer, sizeof(answer), SB_F_INSPECTED, 0, f.seq, f.op,
                   sb_now_us());
    sb_inspect_put(&w, &in.out);

    return main_write(answer, sb_frame_end(&w));
}


int
main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "-") == 0) {
        return main_helper(argv);
    }

    return main_person(argc, argv);
}
