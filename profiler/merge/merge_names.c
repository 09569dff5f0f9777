/*
 * What code is called. Two addresses are one where their module (its build-id, or without one its path) and their chain
 * of functions, files and lines are the same; without names, where their offsets are.
 */
#include "merge_private.h"

#include "../../common/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX (1u << 28) /* of each sort: ids have 32 bits */

static uint32_t *slot_of(struct input *in, struct text_map *map, const void *key, size_t length)
{
    if (text_map_count(map) >= NAMES_MAX) {
        merge_failed(in, EFBIG, "more names than memprof has room for");
        return NULL;
    }
    return text_map_slot(map, key, length);
}

static void bind_or_null(sqlite3_stmt *q, int at, int64_t id)
{
    if (id)
        sqlite3_bind_int64(q, at, id);
    else
        sqlite3_bind_null(q, at);
}

/* --- devices ----------------------------------------------------------------------------------------------------- */

/* "GPU-1b7e...", as device_row_uuid writes it; 0: it is none. */
static int read_uuid(const char *text, uint64_t uuid[2])
{
    uint8_t bytes[16] = {0};
    unsigned digits = 0;
    if (strncmp(text, "GPU-", 4) != 0)
        return 0;
    for (const char *p = text + 4; *p; p++) {
        const char *hex = "0123456789abcdef", *at = strchr(hex, *p);
        if (*p == '-')
            continue;
        if (!at || digits == 32)
            return 0;
        unsigned value = (unsigned)(at - hex);
        bytes[digits / 2] = (uint8_t)(digits % 2 ? bytes[digits / 2] | value : value << 4);
        digits++;
    }
    memcpy(uuid, bytes, sizeof bytes);
    return digits == 32;
}

/* By which the recordings know it. */
static void name_device(struct merge *m, const char *name, unsigned device)
{
    uint32_t *slot = text_map_slot(&m->device_names, name, strlen(name));
    if (*slot == device + 1)
        return;
    *slot = *slot ? DEVICE_SEVERAL : device + 1;
    m->name_counts[device]++;
}

static void device_row(struct input *in, sqlite3_stmt *s)
{
    struct merge *m = in->m;
    int64_t id = sqlite3_column_int64(s, 0), bytes = sqlite3_column_int64(s, 2);
    const char *name = db_text(s, 1), *model = db_text(s, 4), *colon = strchr(name, ':');
    char kind[8] = "", *end = NULL;
    uint64_t uuid[2];
    if (id == 0) {
        merge_map(in, MERGE_DEVICE, 0, 1);
        name_device(m, name, 0);
        return;
    }
    size_t length = colon ? (size_t)(colon - name) : 0;
    unsigned long ordinal = colon ? strtoul(colon + 1, &end, 10) : 0;
    if (!length || length >= sizeof kind || !end || *end || end == colon + 1 || ordinal > 65535) {
        merge_failed(in, EBADMSG, "a device has no name that memprof gives; it is left out");
        return;
    }
    memcpy(kind, name, length);
    int has_uuid = read_uuid(db_text(s, 3), uuid);
    unsigned device = device_rows_find(&m->devices, kind, (unsigned)ordinal, has_uuid ? uuid : NULL,
                                       bytes > 0 ? (uint64_t)bytes : 0, *model ? model : NULL);
    in->is_counted_once[device] = (uint8_t)has_uuid;
    name_device(m, *db_text(s, 3) ? db_text(s, 3) : name, device);
    merge_map(in, MERGE_DEVICE, id, device + 1);
}

/* --- modules ----------------------------------------------------------------------------------------------------- */

static int is_better(const char *symbols, const char *than)
{
    int ranks[2];
    const char *texts[] = {symbols, than};
    for (int i = 0; i < 2; i++)
        ranks[i] = !texts[i] || !*texts[i]             ? 0
                   : strncmp(texts[i], "none", 4) == 0 ? 1
                   : strcmp(texts[i], "symtab") == 0   ? 2
                                                       : 3;
    return ranks[0] > ranks[1];
}

static void module_row(struct input *in, sqlite3_stmt *s)
{
    struct merge *m = in->m;
    const char *path = db_text(s, 1), *build_id = db_text(s, 2);
    struct buf key = BUF(1 << 20);
    buf_printf(&key, "%c%s", *build_id ? 'b' : 'p', *build_id ? build_id : path);
    uint32_t *slot = slot_of(in, &m->module_map, buf_text(&key), key.length);
    buf_free(&key);
    if (!slot)
        return;
    if (!*slot) {
        struct merge_module *module = ARRAY_ADD(m->modules, m->module_count, m->module_capacity);
        *module = (struct merge_module){.path = xstrdup(path),
                                        .build_id = *build_id ? xstrdup(build_id) : NULL,
                                        .process_id = merge_column(in, MERGE_PROCESS, s, 3),
                                        .start = sqlite3_column_int64(s, 4),
                                        .end = sqlite3_column_int64(s, 5),
                                        .bias = sqlite3_column_int64(s, 6),
                                        .load_ns = wrap_add(sqlite3_column_int64(s, 7), in->source->shift_ns)};
        *slot = m->module_count;
    }
    struct merge_module *module = &m->modules[*slot - 1];
    if (is_better(db_text(s, 8), module->symbols)) {
        free(module->symbols);
        module->symbols = xstrdup(db_text(s, 8));
    }
    merge_map(in, MERGE_MODULE, sqlite3_column_int64(s, 0), *slot);
}

/* --- files and functions ----------------------------------------------------------------------------------------- */

static void file_row(struct input *in, sqlite3_stmt *s)
{
    struct merge *m = in->m;
    const char *path = db_text(s, 1);
    uint32_t *slot = slot_of(in, &m->files, path, strlen(path));
    if (!slot)
        return;
    int is_new = !*slot, has_source = sqlite3_column_type(s, 2) == SQLITE_TEXT;
    if (is_new)
        *slot = (uint32_t)text_map_count(&m->files);
    sqlite3_stmt *q =
        is_new       ? store_statement(m->store, "INSERT INTO file(file_id, path, source) VALUES(?1, ?2, ?3)")
        : has_source ? store_statement(
                           m->store, "UPDATE file SET source = ?3 WHERE file_id = ?1 AND ?2 = path AND source IS NULL")
                     : NULL;
    if (q) {
        sqlite3_bind_int64(q, 1, *slot);
        sqlite3_bind_text(q, 2, path, -1, SQLITE_TRANSIENT);
        if (has_source)
            sqlite3_bind_text(q, 3, db_text(s, 2), -1, SQLITE_TRANSIENT);
        else
            sqlite3_bind_null(q, 3);
        store_step(m->store, q);
    }
    merge_map(in, MERGE_FILE, sqlite3_column_int64(s, 0), *slot);
}

static void function_row(struct input *in, sqlite3_stmt *s)
{
    struct merge *m = in->m;
    int64_t file = merge_column(in, MERGE_FILE, s, 4), line = sqlite3_column_int64(s, 5);
    int is_allocator = sqlite3_column_int(s, 6) != 0;
    struct buf key = BUF(1 << 24);
    for (int i = 1; i <= 3; i++)
        buf_add(&key, db_text(s, i), strlen(db_text(s, i)) + 1);
    buf_add(&key, &file, sizeof file);
    buf_add(&key, &line, sizeof line);
    buf_putc(&key, (char)is_allocator);
    uint32_t *slot = slot_of(in, &m->functions, key.data, key.length);
    buf_free(&key);
    if (!slot)
        return;
    if (!*slot) {
        *slot = (uint32_t)text_map_count(&m->functions);
        sqlite3_stmt *q = store_statement(m->store, "INSERT INTO function(function_id, name, plain_name, raw_name, "
                                                    "file_id, line, is_allocator) VALUES(?, ?, ?, ?, ?, ?, ?)");
        sqlite3_bind_int64(q, 1, *slot);
        for (int i = 1; i <= 3; i++)
            sqlite3_bind_text(q, i + 1, db_text(s, i), -1, SQLITE_TRANSIENT);
        bind_or_null(q, 5, file);
        bind_or_null(q, 6, line);
        sqlite3_bind_int(q, 7, is_allocator);
        store_step(m->store, q);
    }
    merge_map(in, MERGE_FUNCTION, sqlite3_column_int64(s, 0), *slot);
}

/* --- addresses --------------------------------------------------------------------------------------------------- */

struct chain_frame {
    uint32_t function, file;
    int64_t line, column;
    uint32_t language, is_inline;
};

#define CHAIN_MAX 64 /* as frame_id has room for */

struct chain {
    int64_t id, module, offset;
    struct chain_frame frames[CHAIN_MAX];
    unsigned count;
    int is_named; /* each frame has a function */
};

static const char *const languages[] = {"native", "python", "jit"};

static uint32_t language_of(const char *text)
{
    for (uint32_t i = 1; i < 3; i++)
        if (strcmp(text, languages[i]) == 0)
            return i;
    return 0;
}

static void write_address(struct merge *m, uint32_t id, const struct chain *c)
{
    sqlite3_stmt *q = store_statement(m->store, "INSERT INTO address(address_id, module_id, offset) VALUES(?, ?, ?)");
    sqlite3_bind_int64(q, 1, id);
    bind_or_null(q, 2, c->module);
    sqlite3_bind_int64(q, 3, !c->module && c->offset < 0 ? -(int64_t)++m->named_count : c->offset);
    store_step(m->store, q);
    for (unsigned i = 0; i < c->count; i++) {
        const struct chain_frame *f = &c->frames[i];
        q = store_statement(m->store, "INSERT INTO frame(address_id, inline_depth, function_id, file_id, line, column, "
                                      "language, is_inline) VALUES(?, ?, ?, ?, ?, ?, ?, ?)");
        sqlite3_bind_int64(q, 1, id);
        sqlite3_bind_int64(q, 2, i);
        bind_or_null(q, 3, f->function);
        bind_or_null(q, 4, f->file);
        bind_or_null(q, 5, f->line);
        bind_or_null(q, 6, f->column);
        sqlite3_bind_text(q, 7, languages[f->language], -1, SQLITE_STATIC);
        sqlite3_bind_int64(q, 8, f->is_inline);
        store_step(m->store, q);
    }
}

static void add_address(struct input *in, const struct chain *c)
{
    struct merge *m = in->m;
    char key[2 * sizeof(int64_t) + sizeof c->frames];
    size_t length = 0;
    int64_t offset = c->is_named ? INT64_MIN : c->offset;
    memcpy(key, &c->module, sizeof c->module);
    memcpy(key + sizeof c->module, &offset, sizeof offset);
    length = sizeof c->module + sizeof offset;
    memcpy(key + length, c->frames, c->count * sizeof *c->frames);
    length += c->count * sizeof *c->frames;
    uint32_t *slot = slot_of(in, &m->addresses, key, length);
    if (!slot)
        return;
    if (!*slot) {
        *slot = (uint32_t)text_map_count(&m->addresses);
        write_address(m, *slot, c);
    }
    merge_map(in, MERGE_ADDRESS, c->id, *slot);
}

/* Rows of one address after the other, its frames innermost first. */
static void read_addresses(struct input *in)
{
    static const char sql[] =
        "SELECT a.address_id, a.module_id, a.offset, f.address_id, f.function_id, f.file_id, f.line, f.column, "
        "f.language, f.is_inline FROM address a LEFT JOIN frame f ON f.address_id = a.address_id ORDER BY "
        "a.address_id, f.inline_depth";
    struct error err = {""};
    sqlite3_stmt *s = NULL;
    struct chain *c = xcalloc(1, sizeof *c);
    int has = 0, rc = db_prepare(in->db, sql, &s, &err);
    while (rc == 0 && db_next(s, &rc, &err)) {
        int64_t id = sqlite3_column_int64(s, 0);
        if (has && id != c->id)
            add_address(in, c);
        if (!has || id != c->id) {
            memset(c, 0, sizeof *c);
            c->id = id;
            c->module = merge_column(in, MERGE_MODULE, s, 1);
            c->offset = sqlite3_column_int64(s, 2);
            has = 1;
        }
        if (sqlite3_column_type(s, 3) == SQLITE_NULL || c->count == CHAIN_MAX)
            continue;
        struct chain_frame *f = &c->frames[c->count++];
        f->function = (uint32_t)merge_column(in, MERGE_FUNCTION, s, 4);
        f->file = (uint32_t)merge_column(in, MERGE_FILE, s, 5);
        f->line = sqlite3_column_int64(s, 6);
        f->column = sqlite3_column_int64(s, 7);
        f->language = language_of(db_text(s, 8));
        f->is_inline = sqlite3_column_int(s, 9) != 0;
        c->is_named = (c->count == 1 || c->is_named) && f->function;
    }
    if (has && rc == 0)
        add_address(in, c);
    sqlite3_finalize(s);
    free(c);
    if (rc)
        merge_failed(in, rc, err.text);
}

void merge_names(struct input *in)
{
    merge_each(in,
               "SELECT module_id, path, build_id, process_id, start_address, end_address, bias, load_ns, symbols FROM "
               "module ORDER BY module_id",
               module_row);
    merge_each(in, "SELECT file_id, path, source FROM file ORDER BY file_id", file_row);
    merge_each(in,
               "SELECT function_id, name, plain_name, raw_name, file_id, line, is_allocator FROM function ORDER BY "
               "function_id",
               function_row);
    read_addresses(in);
}

void merge_devices(struct input *in)
{
    merge_each(in, "SELECT device_id, name, total_bytes, uuid, model FROM device ORDER BY device_id", device_row);
}

void merge_names_end(struct merge *m)
{
    for (uint32_t i = 0; i < m->module_count; i++) {
        const struct merge_module *module = &m->modules[i];
        sqlite3_stmt *q =
            store_statement(m->store, "INSERT INTO module(module_id, process_id, path, build_id, start_address, "
                                      "end_address, bias, load_ns, symbols) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
        sqlite3_bind_int64(q, 1, i + 1);
        sqlite3_bind_int64(q, 2, module->process_id);
        sqlite3_bind_text(q, 3, module->path, -1, SQLITE_STATIC);
        sqlite3_bind_text(q, 4, module->build_id, -1, SQLITE_STATIC);
        sqlite3_bind_int64(q, 5, module->start);
        sqlite3_bind_int64(q, 6, module->end);
        sqlite3_bind_int64(q, 7, module->bias);
        sqlite3_bind_int64(q, 8, module->load_ns);
        sqlite3_bind_text(q, 9, module->symbols, -1, SQLITE_STATIC);
        store_step(m->store, q);
    }
}

void merge_names_free(struct merge *m)
{
    for (uint32_t i = 0; i < m->module_count; i++) {
        free(m->modules[i].path);
        free(m->modules[i].build_id);
        free(m->modules[i].symbols);
    }
    free(m->modules);
    m->modules = NULL;
    m->module_count = 0;
    text_map_close(&m->module_map);
    text_map_close(&m->files);
    text_map_close(&m->functions);
    text_map_close(&m->addresses);
}
