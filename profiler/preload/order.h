/*
 * order.h: orders: what a policy of the recording wants this process to do itself, such as to trim its heap. Taken at
 * safe points alone: by a thread of this library's own, or by memprof_poll. Never in a hook, where the program may hold
 * an allocator's lock, or the interpreter's.
 */
#ifndef MEMPROF_ORDER_H
#define MEMPROF_ORDER_H

#include "thread.h"

/* The process begins: orders that its slot has are for the one before it. */
void order_begin(void) HIDDEN;
/* Where there may be orders: starts the thread that takes them. Not in a hook; nothing where it runs already. */
void order_start(void) HIDDEN;
/* The same as a program begins, of the one that memprof run started alone: others may be about to do what the kernel
 * refuses to who has threads, such as to enter a user namespace. */
void order_start_first(void) HIDDEN;
/* The thread ends, before what the kernel refuses to a program with threads. Waits for that, two seconds at most, as it
 * may be trimming. 1: order_go_on is to follow; 0: there was none. */
int order_stop(void) HIDDEN;
void order_go_on(void) HIDDEN;
/* In a process that lacks it (any other one, one that is older than the policy): the same at the first order, from a
 * hook that has been through its real call, unless that may be a signal handler's. */
void order_look(struct thread *t) HIDDEN;

/* Trims what is known of this device's pools; is_sync: after all its work is done. What they reserve before and after.
 * 0: nothing is known of it. NULL: a build without CUDA. */
int cuda_pools_trim(unsigned ordinal, int is_sync, uint64_t *before_bytes, uint64_t *after_bytes) HIDDEN
    __attribute__((weak));
/* The same without doing anything. */
int cuda_pools_reserved(unsigned ordinal, uint64_t *bytes) HIDDEN __attribute__((weak));

#endif
