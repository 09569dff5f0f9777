/*
 * symbols_table.h: what is known of one module's addresses as one block of bytes: what a symbolizing worker sends and
 * what the cache stores. Reading treats the bytes as hostile.
 */
#ifndef MEMPROF_SYMBOLS_TABLE_H
#define MEMPROF_SYMBOLS_TABLE_H

#include "../../common/buf.h"
#include "symbols.h"

#define SYMBOLS_TABLE_MAX (256u << 20) /* bytes */

/* A table being built. Offsets may come in any order; of one added twice the first stays. */
struct symbols_builder;
struct symbols_builder *symbols_builder_open(void);
void symbols_builder_close(struct symbols_builder *b);
void symbols_builder_add(struct symbols_builder *b, uint64_t offset, const struct symbols_frame *frames, int count);
/* A file whose identity, as it is now, the answers depend on. The first is the module itself. */
void symbols_builder_probe(struct symbols_builder *b, const char *path);
/* Writes the table to out (a limit of SYMBOLS_TABLE_MAX). Returns 0 or -EFBIG. */
int symbols_builder_write(struct symbols_builder *b, const char *source, int may_cache, struct buf *out);

struct symbols_table; /* refers to bytes that it owns */
/* Takes bytes (from malloc), freed by close or on failure. NULL: damaged. */
struct symbols_table *symbols_table_open(void *bytes, size_t length);
void symbols_table_close(struct symbols_table *t);
const char *symbols_table_source(const struct symbols_table *t);
int symbols_table_may_cache(const struct symbols_table *t);
/* Every probed file is as it was, the first is path, and so is the environment. */
int symbols_table_is_current(const struct symbols_table *t, const char *path);
size_t symbols_table_count(const struct symbols_table *t);
uint64_t symbols_table_offset(const struct symbols_table *t, size_t index); /* ascending */
/* Frames of the index-th address; strings live as long as the table. Returns how many. */
int symbols_table_frames(const struct symbols_table *t, size_t index, struct symbols_frame frames[SYMBOLS_INLINE_MAX]);
/* The index of an offset, or -1. */
long symbols_table_find(const struct symbols_table *t, uint64_t offset);
/* Writes what a fresh table and an older one of the same files have, with the probes of the fresh one. As
 * symbols_builder_write. */
int symbols_table_merge(const struct symbols_table *fresh, const struct symbols_table *old, struct buf *out);
size_t symbols_table_bytes(const struct symbols_table *t, const void **bytes);

#endif
