/*
 * record_heap.h: samples of the memory that glibc's heap holds, from mallinfo2. Any thread takes one, one at a time;
 * only between thread_enter and thread_leave.
 */
#ifndef MEMPROF_RECORD_HEAP_H
#define MEMPROF_RECORD_HEAP_H

#include "thread.h"

/* The stamp from which a sample is due; threads race for it with compare and swap. */
extern uint64_t record_heap_due HIDDEN;

/* As the process starts. */
void record_heap_start(void) HIDDEN;
void record_heap_sample_if_due(struct thread *t, uint64_t stamp) HIDDEN;
/* A sample now, where the heap may be asked. */
void record_heap_sample(struct thread *t) HIDDEN;
/* As the process exits: a last sample, for which the heap is asked only where no other thread is left or nothing is
 * known of it, and where it lies. */
void record_heap_end(struct thread *t) HIDDEN;
/* Where the heap lies as the image ends; asks for nothing that takes a lock. */
void record_heap_last(struct thread *t) HIDDEN;

#endif
