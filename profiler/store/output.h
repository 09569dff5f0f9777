/*
 * output.h: the place of the database. An older one is kept as PATH.old, with the write-ahead log that may belong to
 * it; one that another memprof writes is left alone, and the next free name taken; what is no recording is not touched.
 */
#ifndef MEMPROF_OUTPUT_H
#define MEMPROF_OUTPUT_H

#include "../../common/error.h"

struct output {
    char *path;       /* where to create the file: as wanted, or with a number before its ".db" */
    int is_other;     /* the number: the wanted one is being written */
    int moved;        /* an older file is PATH.old now */
    int older_hidden; /* and the one that was PATH.old is PATH.old~ */
    int fd;           /* of the new file: its lock says that it is being written */
    int directory_fd; /* locked from output_prepare to output_claim */
};

/* Makes way for a new file. 0, or -errno with err, and then nothing was changed and there is nothing to close: -EEXIST
 * where something else than a recording is there. */
int output_prepare(struct output *output, const char *path, struct error *err);
/* The file is there: from now on others see that it is being written. SQLite must have it open before, and close it
 * before output_close: its own locks would go with ours. */
void output_claim(struct output *output);
/* The recording has begun: what was PATH.old may go, and what an output_set_aside has left as PATH.old~. */
void output_keep(struct output *output);
/* Nothing came of it: removes the new file. With undo, the older ones are as they were; without, the older file stays
 * PATH.old, so that nobody takes it for the one that was wanted. */
void output_remove(struct output *output, int undo);
void output_close(struct output *output);
/* Nothing is recorded there: what would be read as this run's is PATH.old, and what was PATH.old is PATH.old~. However
 * often, nothing is lost. Errors as of output_prepare. */
int output_set_aside(const char *path, struct error *err);

#endif
