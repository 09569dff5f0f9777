/*
 * own_stack.h: room for what we do, where the limit of the stack (ulimit -s), which a program that is run inherits and
 * which stays as it is, leaves too little.
 */
#ifndef MEMPROF_OWN_STACK_H
#define MEMPROF_OWN_STACK_H

typedef int own_stack_main(int argc, char **argv);

/* What main(argc, argv) returns: on a stack of its own if the limit is low, as are then those of new threads. */
int own_stack_run(own_stack_main *main, int argc, char **argv);

#endif
