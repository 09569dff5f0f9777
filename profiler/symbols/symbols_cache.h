/*
 * symbols_cache.h: tables of the last runs, a file per build-id, under ${XDG_CACHE_HOME:-~/.cache}/memprof. Without
 * such a directory, or when it cannot be written, everything works without it.
 */
#ifndef MEMPROF_SYMBOLS_CACHE_H
#define MEMPROF_SYMBOLS_CACHE_H

#include "symbols_table.h"

/* NULL: nothing usable for this file as it is now. Close with symbols_table_close. */
struct symbols_table *symbols_cache_read(const char *path, const char *build_id);
/* Adds a fresh table to what is stored (old may be NULL). 1: it is stored. */
int symbols_cache_write(const char *build_id, const struct symbols_table *fresh, const struct symbols_table *old);
/* Removes the oldest files until the directory is below its limit. */
void symbols_cache_trim(void);

#endif
