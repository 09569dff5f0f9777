/*
 * suppress.h: LeakSanitizer's suppression files: lines "leak:PATTERN". PATTERN is found anywhere in a function, file or
 * module name; * stands for anything, ^ for the beginning and $ for the end. Lines that are empty or begin with # count
 * not.
 */
#ifndef MEMPROF_SUPPRESS_H
#define MEMPROF_SUPPRESS_H

#include "../../common/error.h"
#include "walk.h"

#include <stdint.h>

#define SUPPRESS_LINE_MAX  4096 /* bytes of one line */
#define SUPPRESS_FILE_MAX  (64 << 20)
#define SUPPRESS_COUNT_MAX 65536

struct suppression {
    char *pattern;
    int64_t stacks, bytes, blocks; /* that it left out */
};

struct suppressions { /* all-zero: none */
    struct suppression *item;
    int count, capacity;
};

/* Adds the patterns of a file; may be called for several. */
int suppressions_load(struct suppressions *s, const char *path, struct error *err);
void suppressions_free(struct suppressions *s);

/* Time at most length(pattern) * length(name). */
int suppress_matches(const char *pattern, const char *name);
/* The first item that matches any frame shown of a stack; -1: none. */
int suppressed_by(const struct suppressions *suppressions, const struct walk_stack *stack);

#endif
