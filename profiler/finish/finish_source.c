/*
 * The text of the source files, for reports on another machine. Bounded, and only what frames name.
 */
#include "../../common/io.h"
#include "../../common/zip.h"
#include "finish_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX  (4u << 20)
#define TOTAL_BYTES_MAX (64u << 20)

/* The file's text, NULL when it is none that we take. */
static char *read_source(const char *path, size_t *length)
{
    int fd = *path == '/' ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    struct stat st;
    char *text = NULL;
    if (fd < 0)
        return zip_read(path, FILE_BYTES_MAX, length, &st);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= (off_t)FILE_BYTES_MAX) {
        text = xmalloc((size_t)st.st_size + 1);
        *length = io_read(fd, text, (size_t)st.st_size);
        if (memchr(text, 0, *length)) { /* no text */
            free(text);
            text = NULL;
        }
    }
    close(fd);
    return text;
}

int finish_source(sqlite3 *db, struct error *err)
{
    sqlite3_stmt *files = NULL, *update = NULL;
    int rc = db_prepare(
        db,
        "SELECT file_id, path FROM file WHERE source IS NULL AND file_id IN (SELECT file_id FROM frame WHERE "
        "line > 0) ORDER BY file_id",
        &files, err);
    if (rc == 0)
        rc = db_prepare(db, "UPDATE file SET source = ?2 WHERE file_id = ?1", &update, err);
    size_t total = 0;
    while (rc == 0 && sqlite3_step(files) == SQLITE_ROW) {
        size_t length;
        char *text = read_source(db_text(files, 1), &length);
        if (text && total + length <= TOTAL_BYTES_MAX) {
            total += length;
            sqlite3_bind_int64(update, 1, sqlite3_column_int64(files, 0));
            sqlite3_bind_text(update, 2, text, (int)length, SQLITE_STATIC);
            rc = sqlite3_step(update) == SQLITE_DONE ? 0 : db_error(db, err);
            sqlite3_reset(update);
        }
        free(text);
        if (rc == 0 && finish_interrupted)
            rc = -EINTR;
    }
    sqlite3_finalize(files);
    sqlite3_finalize(update);
    return rc;
}
