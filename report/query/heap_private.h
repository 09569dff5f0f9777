/* heap_private.h: what the files of heap.h share. */
#ifndef MEMPROF_QUERY_HEAP_PRIVATE_H
#define MEMPROF_QUERY_HEAP_PRIVATE_H

#include "heap.h"

/* Adds glibc's ranges at an instant, of processes that began as a fork or of the others. limit: by range, up to where
 * blocks may lie that came since its sample. */
int heap_load_glibc(struct heap *h, sqlite3 *db, int64_t at_ns, int64_t process_id, int is_forked, uint64_t **limit,
                    struct error *err);
/* heap_forked.c: fills forked. */
int heap_load_forked(struct heap *h, sqlite3 *db, int64_t at_ns, int64_t process_id, const struct blocks *blocks,
                     struct error *err);

#endif
