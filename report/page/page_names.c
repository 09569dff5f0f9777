/* Names of the page: devices, functions, files, modules, lines. Each is read when it is first used. */
#include "page_names.h"

#include "../../common/db.h"
#include "../../common/hash.h"
#include "../../common/kind.h"
#include "../../common/text.h"
#include "../query/device.h"
#include "../query/short_name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

sqlite3_stmt *page_query(struct page *page, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    return db_prepare(page->db, sql, &statement, page->err) ? NULL : statement;
}

int page_query_end(struct page *page, sqlite3_stmt *statement, int rc)
{
    int result = rc == SQLITE_DONE || rc == SQLITE_ROW ? 0 : db_error(page->db, page->err);
    sqlite3_finalize(statement);
    return result;
}

int32_t page_line_number(sqlite3_stmt *s, int column)
{
    int64_t line = sqlite3_column_int64(s, column);
    return line < 0 || line > 100000000 ? 0 : (int32_t)line;
}

const char *page_basename(const char *path)
{
    return text_filename(path);
}

static int64_t find_device(struct page *page, const char *sql)
{
    int64_t device_id = -1;
    sqlite3_stmt *s = page_query(page, sql);
    if (s && sqlite3_bind_parameter_count(s))
        sqlite3_bind_text(s, 1, page->options ? page->options->device : NULL, -1, SQLITE_STATIC); /* a diff has none */
    if (s && sqlite3_step(s) == SQLITE_ROW)
        device_id = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return device_id;
}

/* The one that was asked for; else where memory ran out last; else the GPU with the largest peak; else the first device
 * that has allocations. */
static int64_t find_open_device(struct page *page)
{
    static const char *const queries[] = {
        "SELECT device_id FROM total JOIN device USING(device_id) WHERE kind = 'all' AND ?1 IS NOT NULL AND " DEVICE_IS(
            "name", "?1") " ORDER BY peak_active_bytes DESC, device_id LIMIT 1",
        "SELECT device_id FROM v_oom v JOIN device d ON d.name = v.device WHERE NOT is_handled ORDER BY time_ns DESC, "
        "oom_id DESC LIMIT 1",
        ("SELECT device_id FROM total JOIN device USING(device_id) WHERE kind = 'all' AND name GLOB 'cuda:*' AND "
         "peak_active_bytes > 0 ORDER BY peak_active_bytes DESC, device_id LIMIT 1"),
        "SELECT device_id FROM total WHERE kind = 'all' AND alloc_count > 0 ORDER BY device_id LIMIT 1"};
    int64_t device_id = -1;
    for (unsigned i = 0; i < sizeof queries / sizeof *queries && device_id < 0; i++)
        device_id = find_device(page, queries[i]);
    return device_id;
}

int page_load_devices(struct page *page)
{
    sqlite3_stmt *s = page_query(
        page,
        "SELECT device_id, name, coalesce(nullif(total_bytes, 0), (SELECT max(x.total_bytes) FROM device_sample x "
        "WHERE x.device_id = d.device_id)) FROM device d ORDER BY device_id");
    if (!s)
        return -EIO;
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW && page->device_count < PAGE_DEVICES_MAX) {
        struct page_device *d = ARRAY_ADD(page->devices, page->device_count, page->device_capacity);
        d->device_id = sqlite3_column_int64(s, 0);
        d->name = short_name_cut(db_text(s, 1));
        d->total_bytes = sqlite3_column_int64(s, 2);
    }
    int32_t open = page_device_index(page, find_open_device(page));
    page->open_device = open < 0 ? 0 : (uint32_t)open;
    return page_query_end(page, s, rc);
}

int32_t page_device_index(const struct page *page, int64_t device_id)
{
    for (uint32_t i = 0; i < page->device_count; i++)
        if (page->devices[i].device_id == device_id)
            return (int32_t)i;
    return -1;
}

uint32_t page_kind(const char *name)
{
    for (unsigned i = 0; i < KIND_COUNT; i++)
        if (!strcmp(name, kind_name(i)))
            return i;
    return KIND_COUNT;
}

int32_t page_file(struct page *page, int64_t file_id)
{
    uint32_t known = map_number(&page->file_of, (uint64_t)file_id, 0);
    if (known != MAP_NONE)
        return (int32_t)known - 1;
    int32_t index = -1;
    sqlite3_stmt *s = page_query(page, "SELECT path FROM file WHERE file_id = ?");
    if (s) {
        sqlite3_bind_int64(s, 1, file_id);
        if (sqlite3_step(s) == SQLITE_ROW) {
            index = (int32_t)page->file_count;
            *ARRAY_ADD(page->files, page->file_count, page->file_capacity) = short_name_cut(db_text(s, 0));
            *ARRAY_ADD(page->file_ids, page->file_id_count, page->file_id_capacity) = file_id;
        }
        sqlite3_finalize(s);
    }
    map_set_number(&page->file_of, (uint64_t)file_id, 0, (uint32_t)(index + 1));
    return index;
}

int32_t page_function(struct page *page, int64_t function_id)
{
    uint32_t known = map_number(&page->function_of, (uint64_t)function_id, 0);
    if (known != MAP_NONE)
        return (int32_t)known - 1;
    int32_t index = -1;
    sqlite3_stmt *s = page_query(page, "SELECT name, file_id, line, is_allocator FROM function WHERE function_id = ?");
    if (s) {
        sqlite3_bind_int64(s, 1, function_id);
        if (sqlite3_step(s) == SQLITE_ROW) {
            int32_t file = sqlite3_column_type(s, 1) == SQLITE_NULL ? -1 : page_file(page, sqlite3_column_int64(s, 1));
            index = (int32_t)page->function_count;
            struct page_function *f = ARRAY_ADD(page->functions, page->function_count, page->function_capacity);
            f->name = short_name_cut(db_text(s, 0));
            f->file = file;
            f->line = page_line_number(s, 2);
            f->is_allocator = sqlite3_column_int(s, 3) != 0;
        }
        sqlite3_finalize(s);
    }
    map_set_number(&page->function_of, (uint64_t)function_id, 0, (uint32_t)(index + 1));
    return index;
}

int32_t page_module(struct page *page, const char *path, uint64_t key, unsigned space)
{
    uint32_t index = map_number(&page->module_of, key, space);
    if (index != MAP_NONE)
        return (int32_t)index;
    char *name = short_name_cut(path);
    uint64_t hash = hash_text(HASH_START, name);
    index = map_number(&page->module_of, hash, PAGE_MODULE_PATH);
    if (index != MAP_NONE && !strcmp(page->modules[index], name)) {
        free(name);
    } else {
        index = page->module_count;
        *ARRAY_ADD(page->modules, page->module_count, page->module_capacity) = name;
        map_set_number(&page->module_of, hash, PAGE_MODULE_PATH, index);
    }
    map_set_number(&page->module_of, key, space, index);
    return (int32_t)index;
}

int32_t page_unknown_function(struct page *page, int32_t module, uint64_t offset)
{
    uint32_t known = map_number(&page->function_of, offset, 2 + (uint64_t)(module + 1));
    if (known != MAP_NONE)
        return (int32_t)known;
    struct buf name = BUF(2 * SHORT_NAME_BYTES);
    if (module >= 0)
        buf_printf(&name, "%s+0x%" PRIx64, page_basename(page->modules[module]), offset);
    else
        buf_printf(&name, "0x%" PRIx64, offset);
    uint32_t index = page->function_count;
    struct page_function *f = ARRAY_ADD(page->functions, page->function_count, page->function_capacity);
    *f = (struct page_function){.name = name.data, .file = -1, .unknown = 1};
    map_set_number(&page->function_of, offset, 2 + (uint64_t)(module + 1), index);
    return (int32_t)index;
}

uint32_t page_line(struct page *page, int32_t function, int32_t file, int32_t line)
{
    uint64_t a = (uint64_t)(uint32_t)function << 32 | (uint32_t)file, b = (uint32_t)line;
    uint32_t index = map_number(&page->line_at, a, b);
    if (index == MAP_NONE) {
        index = page->line_count;
        *ARRAY_ADD(page->lines, page->line_count, page->line_capacity) =
            (struct page_line){.function = function, .file = file, .line = line, .caller = -1};
        map_set_number(&page->line_at, a, b, index);
    }
    return index;
}

int32_t page_named_function(struct page *page, const char *name, unsigned number)
{
    uint32_t known = map_number(&page->function_of, number, 1);
    if (known != MAP_NONE)
        return (int32_t)known;
    uint32_t index = page->function_count;
    struct page_function *f = ARRAY_ADD(page->functions, page->function_count, page->function_capacity);
    *f = (struct page_function){.name = short_name_cut(name), .file = -1, .unknown = 1};
    map_set_number(&page->function_of, number, 1, index);
    return (int32_t)index;
}
