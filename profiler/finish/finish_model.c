/*
 * The recording as arrays: module keys, addresses with their frames; the tree and its sites are of finish_tree.c. The
 * database may be hostile: ids may be sparse, references may lead nowhere.
 */
#include "finish_private.h"

#include "../../common/array.h"
#include "../../common/ids.h"
#include "../../common/module_kind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIXES_MAX 16

struct load_module {
    uint32_t key;
    uint8_t is_ours, is_runtime, is_c, is_own; /* as in model_address */
};

struct load {
    sqlite3 *db;
    struct error *err;
    struct model *m;
    struct ids modules, functions, files, addresses;
    struct load_module *of_modules; /* by place in the table */
    size_t module_capacity;
    char *prefixes[PREFIXES_MAX]; /* of Python interpreters, with their last slash */
    size_t prefix_count;
};

int model_each(sqlite3 *db, const char *sql, void (*row)(void *, sqlite3_stmt *), void *arg, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, sql, &s, err);
    if (rc)
        return rc;
    int step;
    size_t n = 0;
    while ((step = sqlite3_step(s)) == SQLITE_ROW && n++ < UINT32_MAX / 4) {
        row(arg, s);
        if (finish_interrupted) {
            sqlite3_finalize(s);
            return -EINTR;
        }
    }
    if (step != SQLITE_DONE)
        rc = step == SQLITE_ROW ? error_set(err, EFBIG, "too many rows to account for") : db_error(db, err);
    sqlite3_finalize(s);
    return rc;
}

/* --- modules, names, frames -------------------------------------------------------------------------------------- */

static void function_row(void *arg, sqlite3_stmt *s)
{
    struct load *l = arg;
    struct model *m = l->m;
    ids_add(&l->functions, sqlite3_column_int64(s, 0));
    *ARRAY_ADD(m->functions, m->function_count, m->function_capacity) = (struct model_function){
        sqlite3_column_int64(s, 0), sqlite3_column_int(s, 1), c_library_allocates_for_itself(db_text(s, 2))};
}

static void file_row(void *arg, sqlite3_stmt *s)
{
    struct load *l = arg;
    struct model *m = l->m;
    ids_add(&l->files, sqlite3_column_int64(s, 0));
    *ARRAY_ADD(m->files, m->file_count, m->file_capacity) = (struct model_file){
        .id = sqlite3_column_int64(s, 0), .has_source = sqlite3_column_int(s, 1) || access(db_text(s, 2), R_OK) == 0};
}

/* A Python interpreter's directory, from PREFIX/bin/python3.11 or PREFIX/lib/libpython3.11.so.1.0. */
static void prefix_row(void *arg, sqlite3_stmt *s)
{
    struct load *l = arg;
    const char *path = db_text(s, 0), *name = strrchr(path, '/');
    if (!name || l->prefix_count == PREFIXES_MAX || (strncmp(name, "/python3", 8) && strncmp(name, "/libpython3", 11)))
        return;
    while (name > path && *--name != '/')
        ;
    if (name == path)
        return;
    char *prefix = xstrdup(path);
    prefix[name - path + 1] = 0;
    l->prefixes[l->prefix_count++] = prefix;
}

/* What a package manager, pip or the interpreter's own installation put there is not the user's code. */
static int is_installed(const struct load *l, const char *path)
{
    static const char *const systems[] = {"/usr/", "/lib", "/opt/", "/nix/", "/snap/"};
    static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib-dynload/"};
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        if (strncmp(path, systems[i], strlen(systems[i])) == 0)
            return 1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(path, parts[i]))
            return 1;
    for (size_t i = 0; i < l->prefix_count; i++)
        if (strncmp(path, l->prefixes[i], strlen(l->prefixes[i])) == 0)
            return 1;
    return 0;
}

static void module_row(void *arg, sqlite3_stmt *s)
{
    struct load *l = arg;
    const char *path = db_text(s, 2);
    int64_t key = sqlite3_column_int64(s, 1);
    ids_add(&l->modules, sqlite3_column_int64(s, 0));
    ARRAY_ROOM(l->of_modules, l->modules.count, l->module_capacity);
    struct load_module *m = &l->of_modules[l->modules.count - 1];
    *m = (struct load_module){.key = key > 0 && key < UINT32_MAX ? (uint32_t)key : 0};
    m->is_ours = (uint8_t)module_is_ours(path);
    m->is_runtime = (uint8_t)module_is_runtime(path);
    m->is_c = (uint8_t)module_is_c_library(path);
    m->is_own = !m->is_ours && !m->is_runtime && !is_installed(l, path);
    if ((size_t)key + 1 > l->m->module_count)
        l->m->module_count = (size_t)key + 1;
}

static void address_row(void *arg, sqlite3_stmt *s)
{
    struct load *l = arg;
    struct model *m = l->m;
    ids_add(&l->addresses, sqlite3_column_int64(s, 0));
    struct model_address *a = ARRAY_ADD(m->addresses, m->address_count, m->address_capacity);
    *a = (struct model_address){.offset = sqlite3_column_int64(s, 2)};
    uint32_t module = ids_column(&l->modules, s, 1);
    if (!module)
        return;
    const struct load_module *of = &l->of_modules[module - 1];
    a->module = of->key;
    a->is_ours = of->is_ours;
    a->is_runtime = of->is_runtime;
    a->is_c = of->is_c;
    a->is_own = of->is_own;
}

static void frame_row(void *arg, sqlite3_stmt *s)
{
    struct load *l = arg;
    struct model *m = l->m;
    uint32_t address = ids_column(&l->addresses, s, 0);
    if (!address)
        return;
    struct model_address *a = &m->addresses[address];
    if (!a->frame_count)
        a->first_frame = (uint32_t)m->frame_count;
    a->frame_count++;
    struct model_frame *f = ARRAY_ADD(m->frames, m->frame_count, m->frame_capacity);
    int64_t line = sqlite3_column_int64(s, 3);
    *f = (struct model_frame){
        .function = ids_column(&l->functions, s, 1), .file = ids_column(&l->files, s, 2), .address = address};
    f->is_python = strcmp(db_text(s, 4), "python") == 0;
    f->line = f->file && line > 0 && line <= INT32_MAX ? (int32_t)line : 0;
}

/* --- all --------------------------------------------------------------------------------------------------------- */

static void first_rows(struct model *m)
{
    ARRAY_ADD(m->functions, m->function_count, m->function_capacity);
    ARRAY_ADD(m->files, m->file_count, m->file_capacity);
    ARRAY_ADD(m->addresses, m->address_count, m->address_capacity);
    ARRAY_ADD(m->frames, m->frame_count, m->frame_capacity);
    ARRAY_ADD(m->lines, m->line_count, m->line_capacity);
    m->module_count = 1;
}

static void total_row(void *arg, sqlite3_stmt *s)
{
    struct model *m = arg;
    int64_t device = sqlite3_column_int64(s, 0);
    const char *kind = db_text(s, 1);
    for (size_t i = 0; i < m->group_count; i++) {
        struct model_group *g = &m->groups[i];
        if (g->device != device)
            continue;
        if (strcmp(kind, "all") == 0)
            g->device_peak_bytes = sqlite3_column_int64(s, 2);
        else if (strcmp(kind, g->kind) == 0)
            g->peak_bytes = sqlite3_column_int64(s, 2);
    }
}

int model_load(sqlite3 *db, int is_self_only, struct model_ahead *ahead, struct model *m, struct error *err)
{
    *m = (struct model){.db = db, .is_self_only = is_self_only};
    first_rows(m);
    struct load l = {.db = db, .err = err, .m = m};
    int rc = db_exec(
        db,
        "DELETE FROM module_key;"
        "INSERT INTO module_key(path, build_id) SELECT DISTINCT path, build_id FROM module ORDER BY path, build_id;",
        err);
    if (rc == 0)
        rc = model_each(db, "SELECT DISTINCT path FROM module WHERE path GLOB '*python3*'", prefix_row, &l, err);
    if (rc == 0)
        rc = model_each(db,
                        "SELECT m.module_id, k.key_id, m.path FROM module m JOIN module_key k ON k.path = m.path AND "
                        "k.build_id IS m.build_id GROUP BY m.module_id ORDER BY m.module_id",
                        module_row, &l, err);
    if (rc == 0)
        rc = model_each(db, "SELECT function_id, is_allocator, plain_name FROM function ORDER BY function_id",
                        function_row, &l, err);
    if (rc == 0)
        rc = model_each(db, "SELECT file_id, source IS NOT NULL, path FROM file ORDER BY file_id", file_row, &l, err);
    if (rc == 0)
        rc = model_each(db, "SELECT address_id, module_id, offset FROM address ORDER BY address_id", address_row, &l,
                        err);
    if (rc == 0)
        rc = model_each(
            db, "SELECT address_id, function_id, file_id, line, language FROM frame ORDER BY address_id, inline_depth",
            frame_row, &l, err);
    if (rc == 0)
        model_ahead_take(ahead, m);
    if (rc == 0 && !m->nodes)
        rc = model_tree(db, m, err);
    if (rc == 0)
        rc = model_each(db, "SELECT device_id, kind, peak_active_bytes FROM total", total_row, m, err);
    free(l.modules.ids);
    free(l.functions.ids);
    free(l.files.ids);
    free(l.addresses.ids);
    free(l.of_modules);
    for (size_t i = 0; i < l.prefix_count; i++)
        free(l.prefixes[i]);
    return rc;
}

void model_free(struct model *m)
{
    packed_close(m->packed);
    free(m->functions);
    free(m->files);
    free(m->addresses);
    free(m->frames);
    free(m->nodes);
    free(m->sites);
    model_stats_free(&m->stats);
    free(m->groups);
    free(m->lines);
    memset(m, 0, sizeof *m);
}
