#include "ask_answer.h"

#include <stdio.h>


ask_rc_e
ask_json(ask_question_t *q, sb_out_t *out)
{
    if (out->rc != SB_OK) {
        sb_buf_free(&out->buf);
        return ASK_FAILED;
    }

    return ask_whole(q, 200, "application/json", &out->buf);
}


ask_rc_e
ask_nothing(ask_question_t *q)
{
    return ask_refuse(q, 503, "GATEWAY_RECORDER_UNAVAILABLE",
                      "This gateway keeps no history (sandbox_history none).");
}


ask_rc_e
ask_unreadable(ask_question_t *q, const history_error_t *err)
{
    char  text[700];

    (void) snprintf(text, sizeof(text), "The history file cannot be read now: "
                    "%s.", err->message);

    return ask_refuse(q, 503, "GATEWAY_RECORDER_UNAVAILABLE", text);
}


ask_rc_e
ask_absent(ask_question_t *q, const char *why)
{
    return ask_refuse(q, 404, "GATEWAY_NOT_FOUND", why);
}


ask_rc_e
ask_no_sandbox(ask_question_t *q)
{
    return ask_absent(q, "Neither the history nor upstream knows a sandbox of "
                      "that id.");
}


ask_rc_e
ask_no_operation(ask_question_t *q)
{
    return ask_absent(q, "No operation of that id is on record here.");
}
