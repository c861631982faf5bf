/*
 * Sandboxes told as marks: SB_MARK bytes each, however long their ids are, so
 * that many fit into one frame.  A mark is the beginning of the id's SHA-256:
 * nobody finds an id that has the mark of another.
 */

#ifndef SB_MARKS_H_INCLUDED
#define SB_MARKS_H_INCLUDED

#include "sb.h"

#define SB_MARK  8

/* The mark of a sandbox. */
void sb_mark(uint8_t mark[SB_MARK], sb_str_t sandbox);
/* Puts n marks, one behind the other, in the order in which they are told. */
void sb_marks_sort(uint8_t *marks, size_t n);
/* Is the sandbox one of those of which `marks` are, in that order? */
bool sb_marks_have(sb_str_t marks, sb_str_t sandbox);

#endif /* SB_MARKS_H_INCLUDED */
