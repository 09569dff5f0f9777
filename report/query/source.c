#include "source.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/io.h"
#include "../../common/zip.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *from_database(sqlite3 *db, int64_t file_id)
{
    sqlite3_stmt *s = NULL;
    char *text = NULL;
    if (sqlite3_prepare_v2(db, "SELECT source FROM file WHERE file_id = ? AND source IS NOT NULL", -1, &s, NULL) ==
        SQLITE_OK) {
        sqlite3_bind_int64(s, 1, file_id);
        if (sqlite3_step(s) == SQLITE_ROW)
            text = xstrdup(db_text(s, 0));
    }
    sqlite3_finalize(s);
    return text;
}

/* The path comes from the database: only regular files of a sane size are read, and opening never waits. */
static char *from_disk(const char *path, int64_t recorded_ns, int *is_newer)
{
    struct stat st;
    char *text = NULL;
    int fd = *path == '/' ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    if (fd < 0) {
        size_t length;
        text = zip_read(path, SOURCE_BYTES_MAX, &length, &st);
        if (text)
            *is_newer = source_is_newer(&st, recorded_ns);
        return text;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= (off_t)SOURCE_BYTES_MAX) {
        size_t size = (size_t)st.st_size;
        text = xmalloc(size + 1);
        text[io_read(fd, text, size)] = 0;
        *is_newer = source_is_newer(&st, recorded_ns);
    }
    close(fd);
    return text;
}

int source_is_there(sqlite3 *db, const char *path)
{
    sqlite3_stmt *s = NULL;
    struct stat st;
    int is_there = 0;
    if (sqlite3_prepare_v2(db, "SELECT 1 FROM file WHERE path = ? AND source IS NOT NULL", -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_text(s, 1, path, -1, SQLITE_STATIC);
        is_there = sqlite3_step(s) == SQLITE_ROW;
    }
    sqlite3_finalize(s);
    if (is_there || (*path == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, R_OK) == 0))
        return 1;
    size_t length;
    char *text = zip_read(path, SOURCE_BYTES_MAX, &length, &st);
    free(text);
    return text != NULL;
}

int source_is_newer(const struct stat *st, int64_t start_unix_ns)
{
    return start_unix_ns > 0 && st->st_mtim.tv_sec > start_unix_ns / 1000000000;
}

void source_load(sqlite3 *db, int64_t file_id, const char *path, struct source *source)
{
    *source = (struct source){0};
    source->text = from_database(db, file_id);
    if (!source->text)
        source->text = from_disk(path, db_meta_int(db, "start_unix_ns", 0), &source->is_newer);
    if (!source->text)
        return;
    size_t capacity = 0, length = strlen(source->text);
    for (size_t at = 0; at < length;) {
        *ARRAY_ADD(source->start, source->line_count, capacity) = at;
        const char *end = memchr(source->text + at, '\n', length - at);
        at = end ? (size_t)(end - source->text) + 1 : length;
    }
}

void source_free(struct source *source)
{
    free(source->text);
    free(source->start);
    *source = (struct source){0};
}

const char *source_line(const struct source *source, int64_t line, size_t *length)
{
    if (line < 1 || line > source->line_count)
        return NULL;
    const char *text = source->text + source->start[line - 1];
    *length = strcspn(text, "\r\n");
    return text;
}
