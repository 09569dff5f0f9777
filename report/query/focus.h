/*
 * focus.h: the lines of Python functions in a window of a recording that goes on, from the events of the window and
 * the stacks through these functions alone. A lens (lens.h) makes the accounts of everything from all symbols, which a
 * running recording does not have yet: seconds where a program imported PyTorch. Python's names are in the file.
 */
#ifndef MEMPROF_FOCUS_H
#define MEMPROF_FOCUS_H

#include "lens.h"

struct focus {
    const char *const *functions; /* patterns (match.h); none: all of the files */
    int function_count;
    const char *const *files; /* patterns that mean Python's files; none: all of them */
    int file_count;
};

/* Whether a --file can only mean code of Python's. */
int focus_is_python(const char *pattern);
/* Tables of the connection's own, as lens_apply makes them, with the accounts of these lines, callees included, of all
 * kinds together; options has the window, and else a language at most. -EAGAIN: it is not told so, ask lens_apply. */
int focus_apply(sqlite3 *db, const struct lens_options *options, const struct focus *focus, struct error *err);

#endif
