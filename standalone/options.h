/* What options*.c share; what they are is in gateway.h. */

#ifndef OPTIONS_H_INCLUDED
#define OPTIONS_H_INCLUDED

#include "gateway.h"

#include <stddef.h>

#define GW_ENV         "SANDBOX_GATEWAY_"
#define GW_ENV_LEN     (sizeof(GW_ENV) - 1)

#define GW_OPTIONS_MAX  64

typedef enum {
    GW_TEXT,
    GW_LIST,
    GW_HOLDS,
    GW_PORT,
    GW_WORKERS,
    GW_BOOL,
    GW_COUNT,           /* a number, kept as text: of the helper or nginx */
    GW_SYNC,
    GW_SIZE,            /* as nginx takes it */
    GW_WORDS            /* nginx says what is wrong with them */
} gw_kind_e;

#define GW_FLAG    1u       /* may be given as a flag */
#define GW_INENV   2u       /* may stand in the environment or .env */

typedef struct {
    const char  *name;
    gw_kind_e    kind;
    unsigned     where;
    size_t       offset;
    const char  *value;     /* how the help names it */
    const char  *help;
    unsigned     bound;     /* of GW_COUNT: from 1 to this; of GW_SIZE: MiB
                               that it is at least */
} gw_option_t;

/* options_table.c */

extern const gw_option_t  gw_table[];
extern const size_t       gw_noptions;  /* up to GW_OPTIONS_MAX */

/* With env the name is in capitals with underscores.  NULL: there is none. */
const gw_option_t *gw_option_find(const char *name, size_t len,
    unsigned where, bool env);

/* options_value.c */

/* Checks a value (NULL: a switch without one) and keeps it; `from` begins the
 * sentence about a fault.  Options may point into it for good. */
bool gw_option_set(gw_options_t *opt, const gw_option_t *o, const char *value,
    const char *from);

/* options_env.c: those that are not in `set` yet, which is filled in */

bool gw_environ_read(gw_options_t *opt, bool *set, char **envp);
/* The file .env of the working directory. */
bool gw_dotenv_read(gw_options_t *opt, bool *set);

#endif /* OPTIONS_H_INCLUDED */
