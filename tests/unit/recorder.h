/*
 * recorder.h: the recorder's database without rows, with what fills it beside the events: stacks, frames that bring
 * their names, Python's code. A test's set-up and tear-down, inside scratch_begin and scratch_end.
 */
#ifndef MEMPROF_TEST_RECORDER_H
#define MEMPROF_TEST_RECORDER_H

#include "../../profiler/store/named.h"
#include "../../profiler/store/python.h"
#include "../../profiler/store/stacks.h"
#include "../../profiler/store/store.h"

#include <stdint.h>

extern struct recorder {
    struct store *store;
    struct stacks *stacks;
    struct named *named;
    struct python *python;
} rec;

int recorder_begin(void **state);
int recorder_end(void **state);

/* One value; -1 where there is none. */
int64_t rec_value(const char *sql);

#endif
