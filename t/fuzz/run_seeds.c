/*
 * Runs a fuzz target without libFuzzer, with any compiler:
 *
 *     fuzz_x [-t SECONDS] [-s FILE] SEED...
 *
 * feeds it every seed and then, for that many seconds, what comes out of
 * changing them at random; an input that takes the code where none did before
 * is changed further (t/fuzz/cov.c counts edges).  FILE always holds the input
 * that runs, so that it is there when the target has crashed.  FUZZ_SEED makes
 * a run repeatable.
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define COV_SIZE    65536
#define INPUT_MAX   16384
#define CORPUS_MAX  4096

typedef struct {
    uint8_t  *data;
    size_t    size;
} input_t;

typedef struct {
    uint32_t  size;
    uint8_t   data[INPUT_MAX];
} saved_t;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *name);
static void run(const uint8_t *data, size_t size);
static int found_new(void);
static void keep(const uint8_t *data, size_t size);
static size_t mutate(uint8_t *p, size_t size);
static size_t change(uint8_t *p, size_t size);
static uint32_t below(uint32_t n);

extern uint8_t  *cov_map;

static uint8_t   map[COV_SIZE];
static uint8_t   seen[COV_SIZE];
static input_t   corpus[CORPUS_MAX];
static unsigned  ncorpus;
static uint64_t  state;
static saved_t  *saved;


int
main(int argc, char **argv)
{
    int             fd, opt;
    long            seconds = 0;
    size_t          n;
    time_t          end;
    uint8_t         input[INPUT_MAX];
    unsigned        at, edges = 0;
    unsigned long   runs = 0;
    const char     *text, *file = NULL;

    while ((opt = getopt(argc, argv, "t:s:")) != -1) {
        switch (opt) {
        case 't': seconds = atol(optarg); break;
        case 's': file = optarg; break;
        default: return 2;
        }
    }

    if (file) {
        fd = open(file, O_RDWR|O_CREAT|O_TRUNC, 0644);

        if (fd == -1 || ftruncate(fd, sizeof(saved_t)) == -1
            || (saved = mmap(NULL, sizeof(saved_t), PROT_READ|PROT_WRITE,
                             MAP_SHARED, fd, 0)) == MAP_FAILED)
        {
            fprintf(stderr, "cannot write %s\n", file);
            return 1;
        }

        close(fd);
    }

    text = getenv("FUZZ_SEED");
    state = text ? strtoull(text, NULL, 10)
                 : (uint64_t) time(NULL) * 1000003u + (uint64_t) getpid();

    if (seconds) {
        printf("FUZZ_SEED=%llu\n", (unsigned long long) state);
        fflush(stdout);
        cov_map = map;
    }

    for (at = (unsigned) optind; at < (unsigned) argc; at++) {
        if (run_file(argv[at]) != 0) {
            return 1;
        }
    }

    /* one input may take as long as all others together, not for ever */

    if (seconds) {
        alarm((unsigned) seconds + 30);
    }

    for (end = time(NULL) + seconds; time(NULL) < end; runs++) {
        if (ncorpus) {
            /* what was found last leads on */
            at = below(2) ? below(ncorpus)
                          : ncorpus - 1 - below(ncorpus / 8 + 1);
            n = corpus[at].size;
            memcpy(input, corpus[at].data, n);

        } else {
            n = 0;
        }

        n = mutate(input, n);
        run(input, n);

        if (found_new()) {
            keep(input, n);
        }
    }

    for (at = 0; at < COV_SIZE; at++) {
        edges += seen[at] != 0;
    }

    printf("%d seeds, %lu inputs, %u kept, %u edges\n", argc - optind, runs,
           ncorpus, edges);

    return 0;
}


static int
run_file(const char *name)
{
    FILE     *f = fopen(name, "rb");
    long      n;
    uint8_t  *p;

    if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (n = ftell(f)) < 0) {
        fprintf(stderr, "cannot read %s\n", name);
        return 1;
    }

    rewind(f);
    p = malloc((size_t) n + 1);

    if (p == NULL || fread(p, 1, (size_t) n, f) != (size_t) n) {
        fprintf(stderr, "cannot read %s\n", name);
        return 1;
    }

    fclose(f);
    run(p, (size_t) n);
    (void) found_new();

    if (n <= INPUT_MAX) {
        keep(p, (size_t) n);
    }

    free(p);

    return 0;
}


static void
run(const uint8_t *data, size_t size)
{
    uint8_t  *copy;

    if (saved) {
        saved->size = (uint32_t) size;
        memcpy(saved->data, data, size < INPUT_MAX ? size : INPUT_MAX);
    }

    /* a copy of its very size: a byte behind it is an error */

    copy = malloc(size ? size : 1);

    if (copy == NULL) {
        abort();
    }

    memcpy(copy, data, size);
    memset(map, 0, sizeof(map));
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}


/* Edges that no input took before, or not as often (in powers of two). */

static int
found_new(void)
{
    int      any = 0;
    uint8_t  bit;

    for (size_t i = 0; i < COV_SIZE; i++) {
        if (map[i] == 0) {
            continue;
        }

        bit = (uint8_t) (map[i] == 1 ? 1 : map[i] == 2 ? 2 : map[i] < 4 ? 4
              : map[i] < 8 ? 8 : map[i] < 16 ? 16 : map[i] < 32 ? 32
              : map[i] < 128 ? 64 : 128);

        if (!(seen[i] & bit)) {
            seen[i] |= bit;
            any = 1;
        }
    }

    return any;
}


static void
keep(const uint8_t *data, size_t size)
{
    uint8_t   *p;
    unsigned   at;

    p = malloc(size ? size : 1);

    if (p == NULL) {
        return;
    }

    memcpy(p, data, size);

    at = ncorpus < CORPUS_MAX ? ncorpus++ : below(CORPUS_MAX);
    free(corpus[at].data);
    corpus[at].data = p;
    corpus[at].size = size;
}


static size_t
mutate(uint8_t *p, size_t size)
{
    for (uint32_t n = 1 + below(6); n; n--) {
        size = change(p, size);
    }

    return size;
}


static size_t
change(uint8_t *p, size_t size)
{
    static const char  *words[] = {
        "\r\n", "\n\n", "--", "\"", "\\", "{", "}", "[", "]", ":", ",", "/..",
        "%2e", "%00", "%", "\xff\xff\xff\xff", "\xef\xbf\xbd", "\xed\xa0\x80",
        "\\u0000", "\\ud83d", "null", "-1", "18446744073709551616", "1e999",
        "data: ", "44772", "=", "&", ";", "--B", "--B--", " ", "\t"
    };

    size_t          at, from, n;
    const input_t  *other;
    const char     *word;

    switch (size ? below(9) : 6) {

    case 0:
        p[below((uint32_t) size)] ^= (uint8_t) (1u << below(8));
        return size;

    case 1:
        p[below((uint32_t) size)] = (uint8_t) below(256);
        return size;

    case 2:
        /* a number near its bounds */
        at = below((uint32_t) size);
        n = size - at < 4 ? size - at : 1u << below(3);
        memset(p + at, below(2) ? 0xff : 0, n);
        p[at] = (uint8_t) (p[at] + below(3) - 1);
        return size;

    case 3:
        /* less */
        at = below((uint32_t) size);
        n = 1 + below((uint32_t) (size - at));
        n = below(4) ? n % 16 + 1 : n;
        n = n > size - at ? size - at : n;
        memmove(p + at, p + at + n, size - at - n);
        return size - n;

    case 4:
        /* once more */
        at = below((uint32_t) size);
        n = 1 + below((uint32_t) (size - at));

        if (size + n > INPUT_MAX) {
            return size;
        }

        memmove(p + at + n, p + at, size - at);
        return size + n;

    case 5:
        /* from elsewhere in it */
        at = below((uint32_t) size);
        from = below((uint32_t) size);
        n = 1 + below((uint32_t) (size - (at > from ? at : from)));
        memmove(p + at, p + from, n);
        return size;

    case 6:
        word = words[below(sizeof(words) / sizeof(words[0]))];
        n = strlen(word);
        at = below((uint32_t) size + 1);

        if (size + n > INPUT_MAX) {
            return size;
        }

        memmove(p + at + n, p + at, size - at);
        memcpy(p + at, word, n);
        return size + n;

    case 7:
        /* the end of another one */
        other = &corpus[below(ncorpus)];
        at = below((uint32_t) size + 1);
        from = other->size ? below((uint32_t) other->size) : 0;
        n = other->size - from;
        n = n > INPUT_MAX - at ? INPUT_MAX - at : n;
        memcpy(p + at, other->data + from, n);
        return at + n;

    default:
        /* another digit or letter */
        at = below((uint32_t) size);
        p[at] = (uint8_t) "0123456789abcxyzABCXYZ_.~"[below(25)];
        return size;
    }
}


static uint32_t
below(uint32_t n)
{
    state += 0x9e3779b97f4a7c15ull;

    uint64_t  z = state;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;

    return n ? (uint32_t) (z % n) : 0;
}
