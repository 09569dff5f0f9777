/*
 * symbols_beside.h: what reports on a recording that is still being written looked up and the cache (symbols_cache.h)
 * does not have: of files without a build-id, or all where there is no place for a cache. In RECORDING-symbols, so that
 * the next report looks up what is new alone. It is a hint: without it, or where it is damaged, old or another user's,
 * everything works without. It goes when the recording is finished, moved or replaced.
 */
#ifndef MEMPROF_SYMBOLS_BESIDE_H
#define MEMPROF_SYMBOLS_BESIDE_H

#include "symbols_table.h"

struct symbols_beside;
/* NULL: there is none that can be used. */
struct symbols_beside *symbols_beside_open(const char *recording);
void symbols_beside_close(struct symbols_beside *b);
/* NULL: nothing usable for this file as it is now. Close with symbols_table_close. */
struct symbols_table *symbols_beside_read(const struct symbols_beside *b, const char *path, const char *build_id);

/* The next one, written all at once: readers see the old file or the new one. */
struct symbols_beside_writer;
struct symbols_beside_writer *symbols_beside_begin(void);
/* old may be NULL, and so may fresh where old is not. What may not be cached is left out. */
void symbols_beside_add(struct symbols_beside_writer *w, const char *path, const char *build_id,
                        const struct symbols_table *fresh, const struct symbols_table *old);
/* Closes w, and writes where the recording is this user's; then removes what reports left that were killed while they
 * wrote. So does symbols_beside_remove. */
void symbols_beside_end(struct symbols_beside_writer *w, const char *recording);

void symbols_beside_remove(const char *recording);

#endif
