/*
 * stack.h: the frames of a stack for people and for programs.
 */
#ifndef MEMPROF_STACK_H
#define MEMPROF_STACK_H

#include "../print/out.h"
#include "../query/walk.h"

/* "#0 forward   src/net.c:42" lines, each after indent; at most limit frames (0: all). base: text_path(). */
void stack_print(const struct walk_stack *stack, const struct report_out *out, const char *base, int64_t limit,
                 const char *indent);
/* A JSON array of frames. */
void stack_json(const struct walk_stack *stack, struct buf *json);

#endif
