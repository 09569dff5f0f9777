/*
 * heap_ask.h: asks glibc what its heap holds without standing in the way of a program that stops its threads by
 * signals. Any thread, one question at a time; whoever comes in between is told to do without.
 */
#ifndef MEMPROF_HEAP_ASK_H
#define MEMPROF_HEAP_ASK_H

#include "process.h"

struct heap_answer {
    uint64_t top;     /* the break at the beginning */
    uint64_t begin;   /* stamp */
    uint64_t end;     /* stamp */
    uint64_t cost_ns; /* of processor time */
    uint64_t arena_bytes, mapped_bytes;
    uint64_t
        used_bytes; /* of the arenas, in use as glibc says: with headers, and with what threads keep for themselves */
};

/* 1: answered, maybe to a question that nobody could wait for then. 0: no answer within `patience` stamps; it comes
 * later. */
int heap_ask(struct heap_answer *answer, uint64_t patience) HIDDEN;
/* Whether a thread of ours lives that asks. */
int heap_ask_is_busy(void) HIDDEN;
/* The answer to an earlier question is waited for and dropped: the next one is to a question of its own. */
void heap_ask_settle(uint64_t patience) HIDDEN;
/* In a forked child: nobody is asking. */
void heap_ask_forget(void) HIDDEN;

#endif
