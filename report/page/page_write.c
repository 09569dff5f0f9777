/* Writing what page_sites.c and page_instants.c made: names, frames, the tree, sites; and the stored instants. */
#include "page_categories.h"

#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/module_kind.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/* Copies a field of every element into an array of int64_t and writes that. */
#define COLUMN(pack, key, count, expression, delta)                                                                    \
    do {                                                                                                               \
        int64_t *column = xmalloc(((count) + 1ul) * sizeof *column);                                                   \
        for (uint32_t i = 0; i < (count); i++)                                                                         \
            column[i] = (expression);                                                                                  \
        pack_column(pack, key, count, column, sizeof *column, delta);                                                  \
        free(column);                                                                                                  \
    } while (0)

/* Names are read before folding decides; what nothing shown refers to is left empty. */
struct used {
    uint8_t *lines, *functions, *files;
};

static void use(uint8_t *used, int32_t index)
{
    if (index >= 0)
        used[index] = 1;
}

static struct used find_used(const struct page *page)
{
    struct used u = {xcalloc(page->line_count + 1ul, 1), xcalloc(page->function_count + 1ul, 1),
                     xcalloc(page->file_count + 1ul, 1)};
    for (uint32_t i = 0; i < page->site_count; i++)
        use(u.lines, page->sites[i].line);
    for (uint32_t i = 0; i < page->line_count; i++)
        if (u.lines[i]) {
            use(u.functions, page->lines[i].function);
            use(u.files, page->lines[i].file);
            use(u.functions, page->lines[i].caller);
        }
    for (uint32_t i = 0; i < page->frame_count; i++) {
        use(u.functions, page->frames[i].function);
        use(u.files, page->frames[i].file);
    }
    for (uint32_t i = 0; i < page->function_count; i++)
        if (u.functions[i])
            use(u.files, page->functions[i].file);
    return u;
}

static void write_names(const struct page *page, const struct used *used, struct page_pack *pack)
{
    pack_open(pack, "functions", '{');
    pack_open(pack, "name", '[');
    for (uint32_t i = 0; i < page->function_count; i++)
        pack_text(pack, NULL, used->functions[i] ? page->functions[i].name : "");
    pack_close(pack, ']');
    COLUMN(pack, "file", page->function_count, used->functions[i] ? page->functions[i].file : -1, 0);
    COLUMN(pack, "line", page->function_count, used->functions[i] ? page->functions[i].line : 0, 0);
    COLUMN(pack, "unknown", page->function_count, page->functions[i].unknown, 0);
    pack_close(pack, '}');
    pack_open(pack, "files", '[');
    for (uint32_t i = 0; i < page->file_count; i++)
        pack_text(pack, NULL, used->files[i] ? page->files[i] : "");
    pack_close(pack, ']');
    pack_open(pack, "modules", '[');
    for (uint32_t i = 0; i < page->module_count; i++)
        pack_text(pack, NULL, page->modules[i]);
    pack_close(pack, ']');
    pack_open(pack, "kinds", '[');
    for (unsigned i = 0; i <= KIND_COUNT; i++)
        pack_text(pack, NULL, i < KIND_COUNT ? kind_name(i) : "other");
    pack_close(pack, ']');
}

/* What a program's author did not write: the allocator and the C and C++ libraries; the interpreter and the standard
 * library of Python, where Python's own frames say what the program did. */
static uint8_t is_library(const struct page *page, const struct page_frame *f, int has_python)
{
    const char *file = f->file >= 0 ? page->files[f->file] : "";
    if (f->language == PAGE_JIT)
        return 0;
    if (f->language == PAGE_PYTHON || (f->folded && f->module < 0))
        return module_is_python_library(file) != 0;
    if (f->function >= 0 && page->functions[f->function].is_allocator)
        return 1;
    const char *module = f->module >= 0 ? page->modules[f->module] : "";
    return module_is_runtime(module) || (has_python && module_is_python(module));
}

static uint8_t *find_libraries(const struct page *page)
{
    uint8_t *library = xcalloc(page->frame_count + 1ul, 1);
    int has_python = 0;
    for (uint32_t i = 0; i < page->frame_count; i++)
        has_python |= page->frames[i].language == PAGE_PYTHON;
    for (uint32_t i = 0; i < page->frame_count; i++)
        library[i] = is_library(page, &page->frames[i], has_python);
    return library;
}

static void write_frames(const struct page *page, const struct used *used, struct page_pack *pack)
{
    pack_open(pack, "frames", '{');
    COLUMN(pack, "function", page->frame_count, page->frames[i].function, 1);
    COLUMN(pack, "file", page->frame_count, page->frames[i].file, 0);
    COLUMN(pack, "line", page->frame_count, page->frames[i].line, 0);
    COLUMN(pack, "module", page->frame_count, page->frames[i].module, 0);
    uint8_t *library = find_libraries(page);
    COLUMN(pack, "flags", page->frame_count,
           page->frames[i].language | page->frames[i].is_inline << 2 | page->frames[i].folded << 3 | library[i] << 4,
           0);
    free(library);
    pack_close(pack, '}');
    pack_open(pack, "nodes", '{');
    COLUMN(pack, "depth", page->node_count, page->nodes[page->node_order[i]].depth, 1);
    COLUMN(pack, "frame", page->node_count, page->nodes[page->node_order[i]].frame, 1);
    pack_close(pack, '}');
    pack_open(pack, "lines", '{');
    COLUMN(pack, "function", page->line_count, used->lines[i] ? page->lines[i].function : -1, 0);
    COLUMN(pack, "file", page->line_count, used->lines[i] ? page->lines[i].file : -1, 0);
    COLUMN(pack, "line", page->line_count, used->lines[i] ? page->lines[i].line : 0, 0);
    COLUMN(pack, "caller", page->line_count, used->lines[i] && page->lines[i].caller >= 0 ? page->lines[i].caller : -1,
           0);
    COLUMN(pack, "other_callers", page->line_count, used->lines[i] ? page->lines[i].other_callers : 0, 0);
    pack_close(pack, '}');
}

/* Lines without a name by their ids. */
static void find_unnamed(const struct page *page, struct map *line_of)
{
    for (uint32_t i = 0; i < page->line_count; i++)
        if (page->lines[i].unnamed_id && !page->lines[i].is_of_builds)
            map_set_number(line_of, (uint64_t)page->lines[i].unnamed_id, 0, i);
}

/* Of a row's function_id, file_id, line. MAP_NONE: the page has none; names are never added from here. */
static uint32_t named_line(const struct page *page, sqlite3_stmt *s)
{
    uint32_t function = map_number(&page->function_of, (uint64_t)sqlite3_column_int64(s, 0), 0);
    uint32_t file =
        sqlite3_column_int64(s, 1) ? map_number(&page->file_of, (uint64_t)sqlite3_column_int64(s, 1), 0) : 0;
    if (function == MAP_NONE || file == MAP_NONE)
        return MAP_NONE;
    return map_number(&page->line_at, (uint64_t)(function - 1) << 32 | (file - 1), (uint32_t)sqlite3_column_int(s, 2));
}

static int write_own_peaks(struct page *page, struct page_pack *pack)
{
    struct map unnamed = {0};
    sqlite3_stmt *s = page_query(
        page, "SELECT coalesce(l.function_id, 0), coalesce(l.file_id, 0), l.line, a.device_id, a.own_peak_bytes, "
              "l.line_id FROM account a JOIN line l ON l.line_id = a.key_id WHERE a.scope = 'line' AND a.inclusive = 0 "
              "AND a.kind = 'all' AND a.own_peak_bytes IS NOT NULL");
    if (!s)
        return -EIO;
    int rc;
    find_unnamed(page, &unnamed);
    pack_open(pack, "line_peaks", '[');
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        uint32_t line = sqlite3_column_int64(s, 0) ? named_line(page, s)
                                                   : map_number(&unnamed, (uint64_t)sqlite3_column_int64(s, 5), 0);
        int32_t device = page_device_index(page, sqlite3_column_int64(s, 3));
        if (line == MAP_NONE || device < 0)
            continue;
        pack_int(pack, NULL, line);
        pack_int(pack, NULL, device);
        pack_int(pack, NULL, sqlite3_column_int64(s, 4));
    }
    pack_close(pack, ']');
    map_close(&unnamed);
    return page_query_end(page, s, rc);
}

/* What the page shows of all statistics: the stored ones by their columns, the derived ones by what they follow from.
 */
static void write_stats(struct page_pack *pack)
{
    static const struct {
        const char *column, *unit, *combine, *text, *a, *b;
    } stats[] = {
#define STAT(column, option, unit, combine, text)      {#column, #unit, #combine, text, "", ""},
#define SCANNED(column, option, unit, text)            {#column, #unit, "sum", text, "", ""},
#define DERIVED(column, option, unit, a, how, b, text) {#column, #unit, #how, text, #a, #b},
#include "../../common/stat.def"
#undef STAT
    };
    pack_open(pack, "stats", '[');
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++) {
        pack_open(pack, NULL, '{');
        pack_text(pack, "column", stats[i].column);
        pack_text(pack, "unit", stats[i].unit);
        pack_text(pack, "combine", stats[i].combine);
        pack_text(pack, "text", stats[i].text);
        pack_text(pack, "a", stats[i].a);
        pack_text(pack, "b", stats[i].b);
        pack_close(pack, '}');
    }
    pack_close(pack, ']');
}

void page_write_tree(struct page *page, struct page_pack *pack)
{
    struct used used = find_used(page);
    write_names(page, &used, pack);
    write_frames(page, &used, pack);
    free(used.lines);
    free(used.functions);
    free(used.files);
}

int page_write_sites(struct page *page, struct page_pack *pack)
{
    static const char *const names[] = {
#define STAT(column, option, unit, combine, text) #column,
#define SCANNED(column, option, unit, text)       #column,
#include "../../common/stat.def"
#undef STAT
    };
    const int stat_count = db_int(page->db, "SELECT 1 FROM resident_scan LIMIT 1", 0) ? STAT_SCANNED_END : STAT_COUNT;
    pack_open(pack, NULL, '{');
    page_write_tree(page, pack);
    write_stats(pack);
    int rc = write_own_peaks(page, pack);
    pack_open(pack, "sites", '{');
    COLUMN(pack, "node", page->site_count, page->nodes[page->sites[i].node].order, 0);
    COLUMN(pack, "line", page->site_count, page->sites[i].line, 0);
    COLUMN(pack, "module", page->site_count, page->sites[i].module, 0);
    COLUMN(pack, "device", page->site_count, page->sites[i].device, 0);
    COLUMN(pack, "kind", page->site_count, page->sites[i].kind, 0);
    COLUMN(pack, "site_count", page->site_count, page->sites[i].site_count, 0);
    for (int stat = 0; stat < stat_count; stat++)
        if (stat != STAT_active_peak_bytes && stat != STAT_reserved_peak_bytes)
            COLUMN(pack, names[stat], page->site_count, page->sites[i].stats[stat], 0);
    pack_close(pack, '}');
    pack_close(pack, '}');
    return rc;
}

int page_write_instants(struct page *page, struct page_pack *pack)
{
    pack_open(pack, NULL, '{');
    COLUMN(pack, "time", page->instant_count, page->instants[i].time_ns, 1);
    COLUMN(pack, "flags", page->instant_count, page->instants[i].flags, 0);
    COLUMN(pack, "entry_count", page->instant_count, page->instants[i].entry_count, 0);
    COLUMN(pack, "site", page->entry_count, page->entries[i].site, 1);
    COLUMN(pack, "alloc_count", page->entry_count, page->entries[i].alloc_count, 0);
    COLUMN(pack, "alloc_bytes", page->entry_count, page->entries[i].alloc_bytes, 0);
    /* Most of what comes goes again before the next instant. */
    COLUMN(pack, "grown_count", page->entry_count,
           (int64_t)((uint64_t)page->entries[i].alloc_count - (uint64_t)page->entries[i].gone_count), 0);
    COLUMN(pack, "grown_bytes", page->entry_count,
           (int64_t)((uint64_t)page->entries[i].alloc_bytes - (uint64_t)page->entries[i].gone_bytes), 0);
    COLUMN(pack, "ended_bytes", page->entry_count, page->entries[i].ended_bytes, 0);
    COLUMN(pack, "temporary_count", page->entry_count, page->entries[i].temporary_count, 0);
    int rc = page_write_categories(page, pack);
    pack_close(pack, '}');
    return rc;
}
