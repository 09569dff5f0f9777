/*
 * one_process.h: which process an export is of whose format holds one.
 */
#ifndef MEMPROF_EXPORT_ONE_PROCESS_H
#define MEMPROF_EXPORT_ONE_PROCESS_H

#include "../../common/buf.h"
#include "export.h"

struct one_process {
    int64_t pid;        /* 0: the recording does not tell processes apart */
    int64_t process_id; /* of its images (an exec ends one and starts the next) the one that allocated most; 0: as above
                         */
    int is_only;        /* nothing else allocated on the device: the recording's sums are its own */
    int64_t images;     /* of the process that allocated */
    char *command;      /* of that image; "" where nothing is known */
};

/* The one of --process, or the only one that allocated on the device. -EINVAL with err: there are several, and which of
 * them is not said. Before a lens is applied. one_process_close in any case. */
int one_process_find(sqlite3 *db, const struct export_options *options, const char *device, struct one_process *one,
                     struct error *err);
void one_process_close(struct one_process *one);

#endif
