/* Patterns of names as the local runtime's search has them: a line with the
 * pattern, then the name. */

#include "sb.h"

#include "standalone/runtime/execd.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char  *text, *name;

    if (size > 4096) {
        return 0;
    }

    text = malloc(size + 1);
    if (text == NULL) {
        abort();
    }

    memcpy(text, data, size);
    text[size] = '\0';

    name = strchr(text, '\n');

    if (name && !strchr(name, '/')) {
        *name++ = '\0';

        if (rt_glob_valid(text)) {
            (void) rt_glob(text, name);
        }
    }

    free(text);

    return 0;
}
