/*
 * stack_call.h: calls a function on a stack of its own, where that of the thread may have too little room.
 */
#ifndef MEMPROF_STACK_CALL_H
#define MEMPROF_STACK_CALL_H

#include <stddef.h>

/* function(argument), on so many bytes below which nothing can be written; they take memory only as they are used.
 * 0, or -errno when there are no addresses for them: nothing was called. A longjmp must stay within. */
int stack_call(size_t bytes, void (*function)(void *argument), void *argument);

#endif
