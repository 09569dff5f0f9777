/*
 * The text of notebooks' cells: from the notebooks that the processes were started with or in. It is kept in the
 * recording always, because its only other place is a file that people go on editing.
 */
#include "../../common/array.h"
#include "../../common/buf.h"
#include "../../common/io.h"
#include "finish_private.h"
#include "notebook.h"

#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTEBOOK_BYTES_MAX (64u << 20)
#define NOTEBOOKS_MAX      256u
#define CELLS_MAX          65536u

struct cell { /* that ran and has no text yet */
    int64_t file_id;
    uint32_t hash;
};

struct search {
    sqlite3 *db;
    sqlite3_stmt *update;
    struct cell *cells;
    size_t count, capacity, missing;
    char *paths[NOTEBOOKS_MAX];
    size_t path_count;
    int rc;
};

static int load_cells(struct search *s, struct error *err)
{
    sqlite3_stmt *q = NULL;
    int rc = db_prepare(
        s->db, "SELECT file_id, path FROM file WHERE source IS NULL AND path GLOB '*/ipykernel_*/[0-9]*.py'", &q, err);
    while (rc == 0 && sqlite3_step(q) == SQLITE_ROW && s->count < CELLS_MAX) {
        struct cell c = {sqlite3_column_int64(q, 0), 0};
        if (!notebook_name(db_text(q, 1), &c.hash))
            continue;
        *ARRAY_ADD(s->cells, s->count, s->capacity) = c;
    }
    sqlite3_finalize(q);
    s->missing = s->count;
    return rc;
}

/* --- where notebooks are --- */

static void add_path(struct search *s, const char *path)
{
    for (size_t i = 0; i < s->path_count; i++)
        if (strcmp(s->paths[i], path) == 0)
            return;
    if (s->path_count < NOTEBOOKS_MAX)
        s->paths[s->path_count++] = xstrdup(path);
}

static int is_notebook(const char *path)
{
    size_t length = strlen(path);
    return length > 6 && strcmp(path + length - 6, ".ipynb") == 0;
}

static void add_argument(struct search *s, const char *argument, const char *cwd)
{
    struct buf path = BUF(1 << 16);
    if (is_notebook(argument)) {
        buf_printf(&path, "%s%s%s", *argument == '/' ? "" : cwd, *argument == '/' ? "" : "/", argument);
        if (path.data && *path.data == '/')
            add_path(s, path.data);
    }
    buf_free(&path);
}

/* The words of a command line as buf_shell quotes them. */
static void add_command(struct search *s, const char *command, const char *cwd)
{
    struct buf word = BUF(1 << 16);
    int quoted = 0;
    for (const char *p = command; *p; p++) {
        if (*p == '\'') {
            quoted = !quoted;
        } else if (!quoted && *p == ' ') {
            add_argument(s, buf_text(&word), cwd);
            buf_reset(&word);
        } else {
            p += !quoted && *p == '\\' && p[1];
            buf_putc(&word, *p);
        }
    }
    add_argument(s, buf_text(&word), cwd);
    buf_free(&word);
}

static void add_directory(struct search *s, const char *path)
{
    struct buf pattern = BUF(1 << 16);
    glob_t found;
    for (const char *p = path; *p; p++) {
        if (strchr("*?[\\", *p))
            buf_putc(&pattern, '\\');
        buf_putc(&pattern, *p);
    }
    buf_puts(&pattern, "/*.ipynb");
    if (*path == '/' && !pattern.failed && glob(pattern.data, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            add_path(s, found.gl_pathv[i]);
        globfree(&found);
    }
    buf_free(&pattern);
}

static int find_notebooks(struct search *s, struct error *err)
{
    sqlite3_stmt *q = NULL;
    char *cwd = db_meta_text(s->db, "cwd");
    int rc = db_prepare(s->db, "SELECT command_line FROM process ORDER BY process_id", &q, err);
    while (rc == 0 && sqlite3_step(q) == SQLITE_ROW)
        add_command(s, db_text(q, 0), cwd ? cwd : "");
    sqlite3_finalize(q);
    size_t named = s->path_count;
    for (size_t i = 0; i < named; i++) { /* beside those that were named, and where it was started */
        char *directory = xstrdup(s->paths[i]);
        *strrchr(directory, '/') = 0;
        add_directory(s, directory);
        free(directory);
    }
    if (cwd)
        add_directory(s, cwd);
    free(cwd);
    return rc;
}

/* --- what is in them --- */

static void keep_cell(void *arg, const char *source, size_t bytes)
{
    struct search *s = arg;
    uint32_t hash = notebook_hash(source, bytes);
    for (size_t i = 0; i < s->count && s->rc == 0; i++) {
        struct cell *c = &s->cells[i];
        if (c->hash != hash || !c->file_id)
            continue;
        sqlite3_bind_int64(s->update, 1, c->file_id);
        sqlite3_bind_text(s->update, 2, source, (int)bytes, SQLITE_TRANSIENT);
        s->rc = sqlite3_step(s->update) == SQLITE_DONE ? 0 : -1;
        sqlite3_reset(s->update);
        c->file_id = 0;
        s->missing--;
    }
}

static void read_notebook(struct search *s, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= (off_t)NOTEBOOK_BYTES_MAX) {
        char *text = xmalloc((size_t)st.st_size);
        notebook_cells(s->db, text, io_read(fd, text, (size_t)st.st_size), keep_cell, s);
        free(text);
    }
    close(fd);
}

int finish_notebooks(sqlite3 *db, struct error *err)
{
    struct search s = {.db = db};
    int rc = load_cells(&s, err);
    if (rc == 0 && s.count)
        rc = find_notebooks(&s, err);
    if (rc == 0 && s.path_count)
        rc = db_prepare(db, "UPDATE file SET source = ?2 WHERE file_id = ?1", &s.update, err);
    for (size_t i = 0; i < s.path_count && rc == 0 && s.rc == 0 && s.missing; i++)
        read_notebook(&s, s.paths[i]);
    if (rc == 0 && s.rc)
        rc = db_error(db, err);
    sqlite3_finalize(s.update);
    for (size_t i = 0; i < s.path_count; i++)
        free(s.paths[i]);
    free(s.cells);
    return rc;
}
