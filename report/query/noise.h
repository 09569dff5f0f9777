/*
 * noise.h: what the C and C++ libraries and Python's interpreter keep for themselves in every program: made before
 * main() by nothing else, and buffers, locales and tables that they make once. Nobody can free it, so it is not what a
 * search for leaks is after.
 */
#ifndef MEMPROF_NOISE_H
#define MEMPROF_NOISE_H

#include "walk.h"

int noise_is_library(const struct walk_stack *stack);
/* Of Python's: its start-up, code and modules that an import makes, interned strings, what it knows of types. What a
 * module of the user's makes while it is imported is the user's. */
int noise_is_interpreter(const struct walk_stack *stack);

#endif
