/*
 * source.h: lines of source files: from the database where the recording holds them, else from the file on disk.
 */
#ifndef MEMPROF_SOURCE_H
#define MEMPROF_SOURCE_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct source {
    char *text;    /* owned; NULL: not to be had */
    size_t *start; /* offset of each line */
    int64_t line_count;
    int is_newer; /* the file on disk was changed after the recording began */
};

#define SOURCE_BYTES_MAX (64u << 20)

/* Whether the text of a file, by its path in the database, can be shown. */
int source_is_there(sqlite3 *db, const char *path);
/* Whether a file was changed after a recording that began then: not within its first second, as a file system may count
 * in seconds. */
int source_is_newer(const struct stat *st, int64_t start_unix_ns);
void source_load(sqlite3 *db, int64_t file_id, const char *path, struct source *source);
void source_free(struct source *source);
/* Line number (from 1) without its newline; length in *length; NULL beyond the text. Borrowed. */
const char *source_line(const struct source *source, int64_t line, size_t *length);

#endif
