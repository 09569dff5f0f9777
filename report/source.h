/*
 * source.h: lines of source files: from the database where the recording holds them, else from the file on disk.
 */
#ifndef MEMPROF_SOURCE_H
#define MEMPROF_SOURCE_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

struct source {
    char *text;    /* owned; NULL: not to be had */
    size_t *start; /* offset of each line */
    int64_t line_count;
    int is_newer; /* the file on disk was changed after the recording began */
};

#define SOURCE_BYTES_MAX (64u << 20)

void source_load(sqlite3 *db, int64_t file_id, const char *path, struct source *source);
void source_free(struct source *source);
/* Line number (from 1) without its newline; length in *length; NULL beyond the text. Borrowed. */
const char *source_line(const struct source *source, int64_t line, size_t *length);

#endif
