/*
 * output.h: the place of the database: an older one is kept as PATH.old, with the write-ahead log that may belong to
 * it.
 */
#ifndef MEMPROF_OUTPUT_H
#define MEMPROF_OUTPUT_H

#include "../../common/error.h"

struct output {
    const char *path; /* borrowed */
    int moved;        /* an older file is PATH.old now */
};

/* Makes way for a new file. Returns 0 or -errno with err, and then nothing was changed. */
int output_prepare(struct output *output, const char *path, struct error *err);
/* Nothing was recorded: removes the new file and puts the older one back. */
void output_undo(const struct output *output);

#endif
