/* sandbox-history export. */

#include "history_export.h"
#include "history_list.h"
#include "history_text.h"

#include <stdio.h>
#include <stdlib.h>


enum {
    EXPORT_SANDBOX = HF_COUNT, EXPORT_Q, EXPORT_FORMAT, EXPORT_DATA,
    EXPORT_HISTORY,
    EXPORT_COUNT
};

static const history_arg_t  history_export_args[] = {
    HISTORY_FILTER_ARGS,
    { "--sandbox", 0, HISTORY_ARG_TEXT, false, false, NULL },
    { "--q", 0, HISTORY_ARG_TEXT, false, false, NULL },
    { "--format", 0, HISTORY_ARG_TEXT, false, false, "jsonl|csv|html" },
    { "--data", 0, HISTORY_ARG_TEXT, false, false, NULL },
    { "--history", 0, HISTORY_ARG_TEXT, false, false, NULL },
    { .name = NULL }
};

static const char  history_export_help[] =
    "usage: sandbox-history export [options] [SANDBOX]\n"
    "\n"
    "All operations that pass the filters, the oldest first, on standard\n"
    "output.  Its last line says how many there are: without that line, or\n"
    "with another exit status than 0, it is not whole.\n"
    "\n"
    HISTORY_FILTER_HELP
    "  --q TEXT               full text of commands, paths and output: every\n"
    "                         word must occur, \"...\" is a phrase\n"
    "  --sandbox SANDBOX      the same as the argument\n"
    "  --format FORMAT        jsonl (default), csv or html\n";


/* A part that no record is. */
static bool
history_export_print(sb_out_t *out)
{
    bool  ok;

    ok = out->rc == SB_OK
         && history_text_raw(stdout, sb_str(out->buf.data, out->buf.len));
    sb_buf_free(&out->buf);

    return ok;
}


static bool
history_export_all(history_place_t *place, history_list_t *list,
    history_export_e format, const char *what)
{
    bool                ok;
    sb_out_t            head = { .buf.max = 64 * 1024 };
    sb_out_t            tail = { .buf.max = 64 * 1024 };
    history_printer_t   printer;

    if (!history_printer_init(&printer, true)) {
        return false;
    }

    printer.format = (int) format + 1;

    history_export_head(&head, format, sb_str(what, strlen(what)));
    ok = history_export_print(&head)
         && history_list_print(list, &printer, false)
         && !place->incomplete;

    if (ok) {
        history_export_tail(&tail, format, printer.rows);
        ok = history_export_print(&tail);
    }

    history_printer_free(&printer);

    return fflush(stdout) == 0 && ok;
}


int
history_export_run(const history_where_t *given, int argc, char **argv)
{
    int                rc;
    bool               ok;
    const char        *sandbox;
    history_box_t     *only;
    history_list_t     list;
    history_value_t    values[EXPORT_COUNT];
    history_where_t    where;
    history_place_t    place;
    history_export_e   format;
    history_filter_t   filter;
    history_parse_t    parse = {
        .args = history_export_args, .values = values, .rest = &sandbox,
        .max = 1
    };

    sandbox = NULL;

    rc = history_options(&parse, "export", history_export_help, given, &where,
                         argc, argv);
    if (rc != -1) {
        return rc;
    }

    if (values[EXPORT_SANDBOX].n) {
        if (sandbox != NULL) {
            history_say("export: give the sandbox once");
            return 2;
        }

        sandbox = values[EXPORT_SANDBOX].text[0];
    }

    format = HISTORY_EXPORT_JSONL;

    while (values[EXPORT_FORMAT].n
           && strcmp(values[EXPORT_FORMAT].text[0],
                     history_export_names[format])
              != 0)
    {
        format++;
    }

    if (!history_filter_read(&filter, values)) {
        return 2;
    }

    filter.q = values[EXPORT_Q].n ? values[EXPORT_Q].text[0] : NULL;

    if (!history_place_open(&place, &where)) {
        return 1;
    }

    only = NULL;
    memset(&list, 0, sizeof(list));

    ok = (sandbox == NULL
          || (only = history_place_find(&place, sandbox)) != NULL)
         && history_list_collect(&list, &place, only, &filter, -1)
         && history_export_all(&place, &list, format,
                               sandbox ? sandbox : "all sandboxes");

    history_list_free(&list);
    history_place_close(&place);

    return ok ? 0 : 1;
}
