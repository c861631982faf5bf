/* Answers that several handlers give. */

#ifndef ASK_ANSWER_H_INCLUDED
#define ASK_ANSWER_H_INCLUDED

#include "api.h"

/* Sends JSON off and takes its buffer; ASK_FAILED when it could not be made. */
ask_rc_e ask_json(ask_question_t *q, sb_out_t *out);

/* 503: this gateway keeps no history. */
ask_rc_e ask_nothing(ask_question_t *q);
/* 503: a file cannot be read now. */
ask_rc_e ask_unreadable(ask_question_t *q, const history_error_t *err);
/* 404: there is no such thing, why is a sentence. */
ask_rc_e ask_absent(ask_question_t *q, const char *why);
/* 404: no sandbox, no operation of that id. */
ask_rc_e ask_no_sandbox(ask_question_t *q);
ask_rc_e ask_no_operation(ask_question_t *q);

#endif /* ASK_ANSWER_H_INCLUDED */
