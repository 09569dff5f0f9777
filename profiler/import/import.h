/*
 * import.h: `memprof import`: what another tool has written becomes a recording like any other: a memory snapshot of
 * PyTorch (torch.cuda.memory._dump_snapshot, or its C++ pickler), a file of heaptrack, a heap profile of pprof. Each
 * may be packed with gzip or zstd; which one it is its first bytes say.
 */
#ifndef MEMPROF_IMPORT_H
#define MEMPROF_IMPORT_H

#include "../../common/error.h"

#include <stdint.h>

struct import_options {
    const char *path;   /* of the other tool's file */
    const char *output; /* of the database; an older one is kept as OUTPUT.old */
    int with_source;
    void (*progress)(void *context, const char *what, int percent); /* NULL: none */
    void *progress_context;
};

struct import_result {
    const char *form; /* what was read: "PyTorch memory snapshot" */
    uint64_t event_count;
    uint32_t devices;
    int64_t peak_bytes, peak_reserved_bytes; /* the device's with the largest peak; -1: not known */
    int64_t output_bytes;
    char *output; /* where it is: beside what was asked for, where that is being written. The caller frees it. */
    char *note;   /* what is unknown, or does not fit together, in one line; NULL: nothing. The caller frees it. */
};

/* Nothing is written, and an older output left in its place, unless the file could be read: a snapshot and a profile
 * whole, a file of heaptrack as far as it goes. 0 or -errno with err: -EEXIST where something that is no recording has
 * the output's name. */
int import_file(const struct import_options *options, struct import_result *result, struct error *err);

#endif
