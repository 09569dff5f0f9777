/* heap_private.h: what the files of heap.h share. */
#ifndef MEMPROF_QUERY_HEAP_PRIVATE_H
#define MEMPROF_QUERY_HEAP_PRIVATE_H

#include "heap.h"
#include "site_rows.h"

/* Adds glibc's ranges at an instant, of processes that began as a fork or of the others. limit: by range, up to where
 * blocks may lie that came since its sample. */
int heap_load_glibc(struct heap *h, sqlite3 *db, const struct instant *at, int64_t process_id, int is_forked,
                    uint64_t **limit, struct error *err);
/* The pages of the ranges of one process, from first on, by address: its blocks that lie in none are added as one more.
 */
void heap_walk_process(struct heap *h, size_t first, size_t count, const uint64_t *limits, const struct blocks *blocks,
                       const struct site_lines *site_line);
/* Once all are walked: sorts the lines, and names them. */
int heap_name_lines(struct heap *h, sqlite3 *db, struct error *err);
/* heap_forked.c: fills forked. */
int heap_load_forked(struct heap *h, sqlite3 *db, const struct instant *at, int64_t process_id,
                     const struct blocks *blocks, const struct inherited *inherited, const struct site_lines *site_line,
                     struct error *err);

#endif
