/*
 * call.h: records with text: CALL (wire_calls.def) and MARK. For calls that the program makes of its own accord: never
 * from within an allocator.
 */
#ifndef MEMPROF_CALL_H
#define MEMPROF_CALL_H

#include "record.h"

#define CALL_TEXT_MAX 1000 /* bytes; longer text is cut */

/* One part of a text: bytes up to a NUL, or wide characters. NULL: empty. */
struct call_text {
    const char *bytes;
    const int32_t *wide;
};

/* A CALL of this thread with its stack, stamped now. device: WIRE_DEVICE_* | flags << 8. text: NULL: the call has none.
 * errno stays.
 */
void call_record(struct unwind_state s, unsigned hook, unsigned call, unsigned device, const uint64_t *arguments,
                 unsigned argument_count, const struct call_text *text) HIDDEN;

/* A MARK; id: of START and END. */
void call_mark(struct unwind_state s, enum wire_mark kind, uint64_t id, const struct call_text *parts,
               unsigned part_count) HIDDEN;

#endif
