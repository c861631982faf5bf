/* Feeds every file named on the command line to a fuzz target, so that seeds
 * run as ordinary tests with any compiler. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        FILE     *f = fopen(argv[i], "rb");
        long      n;
        uint8_t  *p;

        if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (n = ftell(f)) < 0) {
            fprintf(stderr, "cannot read %s\n", argv[i]);
            return 1;
        }

        rewind(f);
        p = malloc((size_t) n + 1);

        if (p == NULL || fread(p, 1, (size_t) n, f) != (size_t) n) {
            fprintf(stderr, "cannot read %s\n", argv[i]);
            return 1;
        }

        fclose(f);
        LLVMFuzzerTestOneInput(p, (size_t) n);
        free(p);
    }

    printf("%d seeds\n", argc - 1);

    return 0;
}
