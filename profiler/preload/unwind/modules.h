/*
 * modules.h: which loaded module an address belongs to, found without a lock, and telling the collector about each
 * module before the first stack that runs through it (record_module_load), and about those that went.
 */
#ifndef MEMPROF_MODULES_H
#define MEMPROF_MODULES_H

#include "cfi.h"

#include <link.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

enum module_found {
    MODULE_NONE,    /* no module there */
    MODULE_KNOWN,   /* announced: what is computed from *image may be kept until modules change */
    MODULE_PENDING, /* could not be announced now: keep nothing, so that the next look-up tries again */
};

/* Where MODULE_NONE is not the answer, *image is the module's unwind information; image->header NULL: it has none. */
enum module_found module_find(uint64_t address, struct cfi_image *image);

/* The whole mapping of the module that an address belongs to; 0: none is there. */
int module_range(uint64_t address, uint64_t *start, uint64_t *end);

/* Withdraws modules that are gone: after a dlclose. */
void modules_sweep(void);

/* In a forked child: nothing is announced, and no thread holds the table. */
void modules_forget(void);

/* All are announced anew. The caller has no ring; other threads may use the table. */
void modules_restart(void);

/* A module was announced, or is gone. Whoever wants to know defines these (python/python_find.c). Never two calls at
 * once. */
void modules_watch_seen(const struct link_map *map, uint64_t start);
void modules_watch_gone(uint64_t start);

/* Whether the 8 bytes at an address can be read. One system call. */
int memory_readable(uint64_t address);
/* Copies memory that may go at any time. The bytes copied, or a negative errno. */
long memory_read(const void *from, void *to, size_t bytes);

#pragma GCC visibility pop

#endif
