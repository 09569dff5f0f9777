/*
 * From addresses without frames to rows of function, file and frame. The look-ups happen outside any transaction; their
 * results go in with one.
 */
#include "../../common/map.h"
#include "../symbols/allocator.h"
#include "../symbols/symbols_pool.h"
#include "finish_private.h"

#include "../../common/array.h"
#include "../../common/buf.h"
#include "../../common/ids.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct wanted { /* an address to be looked up */
    int64_t address_id;
    uint64_t offset; /* what to look up: the call, not what follows it */
    uint32_t job;
    uint32_t order; /* of jobs for the same address: the first that knows it wins */
};

struct job_module { /* which rows of module a job answers for */
    int64_t module_id;
    uint32_t job;
};

struct pass {
    sqlite3 *db;
    const struct finish_options *options;
    struct error *err;
    struct text_map job_map; /* path, build-id or pid -> job + 1 */
    struct symbols_job *jobs;
    char **strings; /* owned by the pass: paths and build-ids of jobs */
    size_t job_count, job_capacity, string_count, string_capacity;
    struct job_module *modules;
    size_t module_count, module_capacity;
    struct wanted *wanted;
    size_t wanted_count, wanted_capacity;
    uint64_t *offsets; /* of all jobs */
    struct text_map functions, files, paths;
    sqlite3_stmt *insert_function, *insert_file, *insert_frame, *delete_frames;
};

static char *keep(struct pass *p, const char *text)
{
    return *ARRAY_ADD(p->strings, p->string_count, p->string_capacity) = xstrdup(text);
}

/* --- what to look up --------------------------------------------------------------------------------------------- */

static uint32_t job_for(struct pass *p, const char *path, const char *build_id, int perf_pid)
{
    struct buf key = BUF(1 << 20);
    if (path)
        buf_printf(&key, "f%s%c%s", path, 0, build_id ? build_id : "");
    else
        buf_printf(&key, "p%d", perf_pid);
    uint32_t *slot = text_map_slot(&p->job_map, buf_text(&key), key.length);
    buf_free(&key);
    if (!*slot) {
        *ARRAY_ADD(p->jobs, p->job_count, p->job_capacity) =
            (struct symbols_job){.path = path ? keep(p, path) : NULL,
                                 .build_id = build_id && *build_id ? keep(p, build_id) : NULL,
                                 .perf_pid = perf_pid};
        *slot = (uint32_t)p->job_count;
    }
    return *slot - 1;
}

static int has_perf_map(int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", pid);
    return pid > 0 && access(path, R_OK) == 0;
}

static void want(struct pass *p, int64_t address_id, uint64_t offset, uint32_t job, uint32_t order)
{
    *ARRAY_ADD(p->wanted, p->wanted_count, p->wanted_capacity) = (struct wanted){address_id, offset, job, order};
}

/* "again" replaces what we wrote, not the frames that a Python interpreter told. */
#define WITHOUT_FRAMES                                                                                                 \
    " NOT EXISTS(SELECT 1 FROM frame f WHERE f.address_id = a.address_id AND (?1 = 0 OR f.language NOT IN "            \
    "('native', 'jit')))"

struct module {
    const char *path, *build_id;
    uint64_t bias;
    int pid;
    uint32_t job; /* + 1; 0: none of its addresses is wanted yet */
};

static int load_modules(struct pass *p, struct ids *ids, struct module **modules)
{
    sqlite3_stmt *s = NULL;
    size_t count = 0, capacity = 0;
    int step, rc = db_prepare(p->db,
                              "SELECT m.module_id, m.path, m.build_id, m.bias, p.pid FROM module m LEFT JOIN process p "
                              "USING(process_id) ORDER BY m.module_id",
                              &s, p->err);
    if (rc)
        return rc;
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        ids_add(ids, sqlite3_column_int64(s, 0));
        *ARRAY_ADD(*modules, count, capacity) = (struct module){.path = keep(p, db_text(s, 1)),
                                                                .build_id = keep(p, db_text(s, 2)),
                                                                .bias = (uint64_t)sqlite3_column_int64(s, 3),
                                                                .pid = sqlite3_column_int(s, 4)};
    }
    if (step != SQLITE_DONE)
        rc = db_error(p->db, p->err);
    sqlite3_finalize(s);
    return rc;
}

static uint32_t module_job(struct pass *p, struct module *m, int64_t module_id)
{
    if (m->job)
        return m->job - 1;
    int is_jit = (*m->path != '/' || strncmp(m->path, "//anon", 6) == 0) && has_perf_map(m->pid);
    uint32_t job = is_jit ? job_for(p, NULL, NULL, m->pid) : job_for(p, m->path, m->build_id, 0);
    if (!is_jit)
        m->bias = 0;
    *ARRAY_ADD(p->modules, p->module_count, p->module_capacity) = (struct job_module){module_id, job};
    m->job = job + 1;
    return job;
}

static int want_modules(struct pass *p)
{
    sqlite3_stmt *s = NULL;
    struct ids ids = {0};
    struct module *modules = NULL;
    int step = SQLITE_DONE, rc = load_modules(p, &ids, &modules);
    if (rc == 0)
        rc = db_prepare(p->db,
                        "SELECT a.address_id, a.offset, a.module_id FROM address a WHERE a.module_id IS NOT NULL "
                        "AND" WITHOUT_FRAMES,
                        &s, p->err);
    if (rc == 0) {
        sqlite3_bind_int(s, 1, p->options->again);
        while ((step = sqlite3_step(s)) == SQLITE_ROW) {
            uint32_t place = ids_column(&ids, s, 2);
            if (!place)
                continue;
            struct module *m = &modules[place - 1];
            uint32_t job = module_job(p, m, sqlite3_column_int64(s, 2));
            want(p, sqlite3_column_int64(s, 0), (uint64_t)sqlite3_column_int64(s, 1) + m->bias - 1, job, 0);
        }
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = db_error(p->db, p->err);
    sqlite3_finalize(s);
    free(ids.ids);
    free(modules);
    return rc;
}

/* Code in no module may be a just-in-time compiler's. Which process an address belongs to is known from the stacks of
 * the sites that it is in. */
static int want_jit(struct pass *p)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(p->db, "SELECT process_id, pid FROM process", &s, p->err);
    if (rc)
        return rc;
    struct buf list = BUF(1 << 20);
    while (sqlite3_step(s) == SQLITE_ROW)
        if (has_perf_map(sqlite3_column_int(s, 1)))
            buf_printf(&list, "%s%lld", list.length ? "," : "", (long long)sqlite3_column_int64(s, 0));
    sqlite3_finalize(s);
    s = NULL;
    if (list.length && !list.failed) {
        struct buf sql = BUF(2 << 20);
        buf_printf(
            &sql,
            "WITH RECURSIVE up(stack_id, process_id) AS (SELECT stack_id, process_id FROM site WHERE process_id IN "
            "(%s) UNION SELECT s.parent_id, u.process_id FROM up u JOIN stack s USING(stack_id) WHERE s.parent_id "
            "IS NOT NULL) SELECT DISTINCT a.address_id, a.offset, p.pid, p.process_id FROM up u JOIN stack s "
            "USING(stack_id) JOIN address a USING(address_id) JOIN process p ON p.process_id = u.process_id WHERE "
            "a.module_id IS NULL AND a.offset >= 0 AND" WITHOUT_FRAMES " ORDER BY a.address_id, p.process_id",
            list.data);
        rc = db_prepare(p->db, sql.data, &s, p->err);
        buf_free(&sql);
    }
    buf_free(&list);
    if (!s)
        return rc;
    sqlite3_bind_int(s, 1, p->options->again);
    int step;
    uint32_t order = 0;
    while ((step = sqlite3_step(s)) == SQLITE_ROW)
        want(p, sqlite3_column_int64(s, 0), (uint64_t)sqlite3_column_int64(s, 1) - 1,
             job_for(p, NULL, NULL, sqlite3_column_int(s, 2)), order++);
    if (step != SQLITE_DONE)
        rc = db_error(p->db, p->err);
    sqlite3_finalize(s);
    return rc;
}

static int by_job(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void give_offsets(struct pass *p)
{
    if (!p->wanted_count)
        return;
    qsort(p->wanted, p->wanted_count, sizeof *p->wanted, by_job);
    p->offsets = xmalloc(p->wanted_count * sizeof *p->offsets);
    size_t n = 0;
    for (size_t i = 0; i < p->wanted_count; i++) {
        struct symbols_job *job = &p->jobs[p->wanted[i].job];
        if (job->count == 0)
            job->offsets = p->offsets + n;
        if (job->count && p->offsets[n - 1] == p->wanted[i].offset)
            continue;
        p->offsets[n++] = p->wanted[i].offset;
        job->count++;
    }
}

static void show_progress(size_t done, size_t count)
{
    char text[80];
    int n = snprintf(text, sizeof text, "\rmemprof: symbolizing %zu/%zu modules%s", done, count,
                     done == count ? "\r\033[K" : "");
    if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
        return; /* nobody is looking */
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

static int run(struct pass *p, sqlite3_stmt *s)
{
    int rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(p->db, p->err);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return rc;
}

/* The same function is one row in all modules that hold it, when the debug information says where it is declared; names
 * from symbol tables are told apart by module. */
static uint32_t *function_slot(struct pass *p, int64_t file, int line, uint32_t job, const char *raw_name,
                               const char *name)
{
    struct buf key = BUF(1 << 20);
    buf_printf(&key, "%lld:%d:%u:%s:%s", (long long)file, line, file ? 0 : job + 1, raw_name, file ? "" : name);
    uint32_t *slot = text_map_slot(&p->functions, buf_text(&key), key.length);
    buf_free(&key);
    return slot;
}

static int load_names(struct pass *p)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(p->db, "SELECT file_id, path FROM file", &s, p->err);
    if (rc)
        return rc;
    while (sqlite3_step(s) == SQLITE_ROW)
        *text_map_slot(&p->files, db_text(s, 1), (size_t)sqlite3_column_bytes(s, 1)) =
            (uint32_t)sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    s = NULL;
    rc = db_prepare(p->db, "SELECT function_id, file_id, line, raw_name FROM function WHERE file_id IS NOT NULL", &s,
                    p->err);
    if (rc)
        return rc;
    while (sqlite3_step(s) == SQLITE_ROW)
        *function_slot(p, sqlite3_column_int64(s, 1), sqlite3_column_int(s, 2), 0, db_text(s, 3), "") =
            (uint32_t)sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return 0;
}

/* Writes the path without "a/..". Of a relative one, which begins with what its directory was mapped to, ".." stays at
 * the front; the root has none. Returns its length. */
static size_t fold_path(const char *path, char out[PATH_MAX])
{
    size_t is_rooted = *path == '/', n = is_rooted, kept = n; /* kept: what no ".." takes away */
    out[0] = '/';
    for (const char *c = path; *c;) {
        size_t part = strcspn(c, "/");
        int is_up = part == 2 && c[0] == '.' && c[1] == '.';
        if (is_up && n > kept) {
            while (n > kept && out[n - 1] != '/')
                n--;
            n -= n > kept; /* the slash */
        } else if (part && !(is_up && is_rooted)) {
            if (n > is_rooted)
                out[n++] = '/';
            memcpy(out + n, c, part);
            n += part;
            kept = is_up ? n : kept;
        }
        c += part + (c[part] == '/');
    }
    out[n] = 0;
    return n;
}

/* One path for the ways in which debug information names a file: "a/../b" becomes "b" unless a is a link that leads
 * elsewhere. Of a relative one nobody knows that. */
static const char *one_path(const char *path, char out[PATH_MAX])
{
    if (!strstr(path, "/../") || strlen(path) >= PATH_MAX || fold_path(path, out) == 0)
        return path;
    struct stat as_named, as_made;
    if (*path == '/' && stat(path, &as_named) == 0 &&
        (stat(out, &as_made) || as_named.st_ino != as_made.st_ino || as_named.st_dev != as_made.st_dev))
        return path;
    return out;
}

static int file_row(struct pass *p, const char *path, int64_t *id)
{
    *id = 0;
    if (!path)
        return 0;
    uint32_t *known = text_map_slot(&p->paths, path, strlen(path));
    if (*known) {
        *id = *known;
        return 0;
    }
    char buffer[PATH_MAX];
    const char *one = one_path(path, buffer);
    uint32_t *slot = text_map_slot(&p->files, one, strlen(one));
    int rc = 0;
    if (!*slot) {
        sqlite3_bind_text(p->insert_file, 1, one, -1, SQLITE_STATIC);
        rc = run(p, p->insert_file);
        *slot = (uint32_t)sqlite3_last_insert_rowid(p->db);
    }
    *known = *slot;
    *id = *slot;
    return rc;
}

static void bind_id(sqlite3_stmt *s, int at, int64_t id)
{
    if (id)
        sqlite3_bind_int64(s, at, id);
}

static int function_row(struct pass *p, const struct symbols_frame *f, uint32_t job, int64_t *id)
{
    *id = 0;
    if (!f->raw_name)
        return 0;
    int64_t file;
    int rc = file_row(p, f->declared_file, &file);
    if (rc)
        return rc;
    const char *name = f->name ? f->name : f->raw_name;
    uint32_t *slot = function_slot(p, file, f->declared_line, job, f->raw_name, name);
    if (*slot) {
        *id = *slot;
        return 0;
    }
    char *plain = symbols_plain_name(name);
    sqlite3_bind_text(p->insert_function, 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_text(p->insert_function, 2, plain, -1, SQLITE_STATIC);
    sqlite3_bind_text(p->insert_function, 3, f->raw_name, -1, SQLITE_STATIC);
    bind_id(p->insert_function, 4, file);
    bind_id(p->insert_function, 5, f->declared_line);
    sqlite3_bind_int(p->insert_function, 6, allocator_is_function(f->raw_name, name, f->declared_file));
    rc = run(p, p->insert_function);
    free(plain);
    *slot = (uint32_t)sqlite3_last_insert_rowid(p->db);
    *id = *slot;
    return rc;
}

static int frame_row(struct pass *p, const struct wanted *w, const struct symbols_frame *f, int depth)
{
    int64_t function = 0, file = 0;
    int rc = f ? function_row(p, f, w->job, &function) : 0;
    if (rc == 0 && f)
        rc = file_row(p, f->file, &file);
    if (rc)
        return rc;
    sqlite3_stmt *s = p->insert_frame;
    sqlite3_bind_int64(s, 1, w->address_id);
    sqlite3_bind_int(s, 2, depth);
    bind_id(s, 3, function);
    bind_id(s, 4, file);
    if (f && file) {
        bind_id(s, 5, f->line);
        bind_id(s, 6, f->column);
    }
    sqlite3_bind_text(s, 7, p->jobs[w->job].path || !function ? "native" : "jit", -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 8, f && f->is_inline);
    return run(p, s);
}

static int is_none(const struct symbols_job *job)
{
    return strncmp(job->source, "none", 4) == 0;
}

static int by_address(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    if (x->address_id != y->address_id)
        return x->address_id < y->address_id ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int write_frames(struct pass *p)
{
    struct symbols_frame frames[SYMBOLS_INLINE_MAX];
    int rc = 0;
    if (p->wanted_count)
        qsort(p->wanted, p->wanted_count, sizeof *p->wanted, by_address);
    for (size_t i = 0; i < p->wanted_count && rc == 0; i++) {
        const struct wanted *w = &p->wanted[i];
        int is_last = i + 1 == p->wanted_count || w[1].address_id != w->address_id;
        int count = symbols_job_frames(&p->jobs[w->job], w->offset, frames);
        if (count == 0 && !is_last)
            continue; /* another process's map may know it */
        if (p->options->again) {
            if (is_none(&p->jobs[w->job]))
                continue; /* what an earlier look-up found is better than nothing */
            sqlite3_bind_int64(p->delete_frames, 1, w->address_id);
            rc = run(p, p->delete_frames);
        }
        for (int depth = 0; depth < count && rc == 0; depth++)
            rc = frame_row(p, w, &frames[depth], depth);
        if (count == 0 && rc == 0)
            rc = frame_row(p, w, NULL, 0);
        while (i + 1 < p->wanted_count && p->wanted[i + 1].address_id == w->address_id)
            i++;
        if (finish_interrupted && rc == 0)
            rc = -EINTR;
    }
    return rc;
}

static int write_sources(struct pass *p)
{
    sqlite3_stmt *s = NULL;
    /* ?3: of a second look only what it found counts */
    int rc = db_prepare(p->db, "UPDATE module SET symbols = ?1 WHERE module_id = ?2 AND (symbols IS NULL OR NOT ?3)",
                        &s, p->err);
    for (size_t i = 0; i < p->module_count && rc == 0; i++) {
        const struct symbols_job *job = &p->jobs[p->modules[i].job];
        sqlite3_bind_text(s, 1, job->source, -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, p->modules[i].module_id);
        sqlite3_bind_int(s, 3, is_none(job));
        rc = run(p, s);
    }
    sqlite3_finalize(s);
    return rc;
}

static int write_rows(struct pass *p)
{
    int rc = load_names(p);
    if (rc == 0)
        rc = db_prepare(
            p->db,
            "INSERT INTO function(name, plain_name, raw_name, file_id, line, is_allocator) VALUES(?, ?, ?, ?, ?, ?)",
            &p->insert_function, p->err);
    if (rc == 0)
        rc = db_prepare(p->db, "INSERT INTO file(path) VALUES(?)", &p->insert_file, p->err);
    if (rc == 0)
        rc = db_prepare(
            p->db,
            "INSERT OR IGNORE INTO frame(address_id, inline_depth, function_id, file_id, line, column, language, "
            "is_inline) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
            &p->insert_frame, p->err);
    if (rc == 0)
        rc = db_prepare(p->db, "DELETE FROM frame WHERE address_id = ?", &p->delete_frames, p->err);
    if (rc == 0)
        rc = write_frames(p);
    if (rc == 0)
        rc = write_sources(p);
    if (rc == 0 && p->options->again)
        rc = db_exec(p->db,
                     "DELETE FROM function WHERE function_id NOT IN (SELECT function_id FROM frame WHERE function_id "
                     "IS NOT NULL)",
                     p->err);
    return rc;
}

static void close_pass(struct pass *p)
{
    for (size_t i = 0; i < p->job_count; i++)
        symbols_job_close(&p->jobs[i]);
    for (size_t i = 0; i < p->string_count; i++)
        free(p->strings[i]);
    sqlite3_finalize(p->insert_function);
    sqlite3_finalize(p->insert_file);
    sqlite3_finalize(p->insert_frame);
    sqlite3_finalize(p->delete_frames);
    text_map_close(&p->job_map);
    text_map_close(&p->functions);
    text_map_close(&p->files);
    text_map_close(&p->paths);
    free(p->jobs);
    free(p->strings);
    free(p->modules);
    free(p->wanted);
    free(p->offsets);
}

int finish_symbols(sqlite3 *db, struct model_ahead *ahead, const struct finish_options *options, struct error *err)
{
    struct pass p = {.db = db, .options = options, .err = err};
    int rc = want_modules(&p);
    if (rc == 0)
        rc = want_jit(&p);
    if (rc == 0) {
        give_offsets(&p);
        struct symbols_place place = {options->recording, options->is_recording};
        rc = symbols_pool_run(p.jobs, p.job_count, &place, &finish_interrupted,
                              options->progress ? show_progress : NULL);
    }
    model_ahead_wait(ahead);
    if (rc == 0 && (rc = db_exec(db, "BEGIN IMMEDIATE", err)) == 0) {
        rc = write_rows(&p);
        if (rc == 0)
            rc = db_exec(db, "COMMIT", err);
        if (rc)
            sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    close_pass(&p);
    return rc;
}
