/* Reading stacks and sites whole. */
#include "page_raw.h"

#include "../../common/db.h"
#include "../../common/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Both are read in the order of their ids, which are dense in files that nobody touched. */
#define FIND(array, count, wanted)                                                                                     \
    if ((count) && (wanted) >= (array)[0].id && (uint64_t)(wanted) - (uint64_t)(array)[0].id < (count) &&              \
        (array)[(wanted) - (array)[0].id].id == (wanted))                                                              \
        return (uint32_t)((wanted) - (array)[0].id);                                                                   \
    const uint32_t low = SEARCH_FIRST(count, i, (array)[i].id < (wanted));                                             \
    return low < (count) && (array)[low].id == (wanted) ? low : MAP_NONE

static uint32_t find_address(const struct raw *raw, int64_t id)
{
    FIND(raw->addresses, raw->address_count, id);
}

static uint32_t find_stack(const struct raw *raw, int64_t id)
{
    FIND(raw->stacks, raw->stack_count, id);
}

static int load_addresses(struct page *page, struct raw *raw)
{
    sqlite3_stmt *s =
        page_query(page, "SELECT address_id, coalesce(module_id, 0), offset FROM address ORDER BY address_id");
    if (!s)
        return -EIO;
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct raw_address *a = ARRAY_ADD(raw->addresses, raw->address_count, raw->address_capacity);
        a->id = sqlite3_column_int64(s, 0);
        a->module_id = sqlite3_column_int64(s, 1);
        a->offset = (uint64_t)sqlite3_column_int64(s, 2);
    }
    if ((rc = page_query_end(page, s, rc)))
        return rc;
    s = page_query(
        page,
        "SELECT address_id, coalesce(function_id, 0), coalesce(file_id, 0), coalesce(line, 0), language, is_inline "
        "FROM frame ORDER BY address_id, inline_depth");
    if (!s)
        return -EIO;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        uint32_t address = find_address(raw, sqlite3_column_int64(s, 0));
        if (address == MAP_NONE)
            continue;
        struct raw_address *a = &raw->addresses[address];
        if (!a->frame_count)
            a->first_frame = raw->frame_count;
        a->frame_count++;
        struct raw_frame *f = ARRAY_ADD(raw->frames, raw->frame_count, raw->frame_capacity);
        const char *language = db_text(s, 4);
        f->function_id = sqlite3_column_int64(s, 1);
        f->file_id = sqlite3_column_int64(s, 2);
        f->line = page_line_number(s, 3);
        f->language = !strcmp(language, "python") ? PAGE_PYTHON : !strcmp(language, "jit") ? PAGE_JIT : PAGE_NATIVE;
        f->is_inline = sqlite3_column_int(s, 5) != 0;
    }
    return page_query_end(page, s, rc);
}

static int load_stacks(struct page *page, struct raw *raw)
{
    sqlite3_stmt *s =
        page_query(page, "SELECT stack_id, coalesce(parent_id, 0), address_id FROM stack ORDER BY stack_id");
    if (!s)
        return -EIO;
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct raw_stack *stack = ARRAY_ADD(raw->stacks, raw->stack_count, raw->stack_capacity);
        stack->id = sqlite3_column_int64(s, 0);
        stack->parent_id = sqlite3_column_int64(s, 1);
        stack->address = find_address(raw, sqlite3_column_int64(s, 2));
        stack->node = MAP_NONE;
    }
    for (uint32_t i = 0; i < raw->stack_count; i++)
        raw->stacks[i].parent = raw->stacks[i].parent_id ? find_stack(raw, raw->stacks[i].parent_id) : MAP_NONE;
    return page_query_end(page, s, rc);
}

static int load_raw_sites(struct page *page, struct raw *raw)
{
    sqlite3_stmt *s = page_query(page, "SELECT s.site_id, s.stack_id, s.device_id, s.kind, coalesce(sl.line_id, 0)"
#define STAT(column, option, unit, combine, text) ", s." #column
#define SCANNED(column, option, unit, text)       ", s." #column
#include "../../common/stat.def"
#undef STAT
                                       " FROM site_stat s LEFT JOIN site_line sl USING(site_id) ORDER BY s.site_id");
    if (!s)
        return -EIO;
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        int32_t device = page_device_index(page, sqlite3_column_int64(s, 2));
        if (device < 0)
            continue;
        struct raw_site *site = ARRAY_ADD(raw->sites, raw->site_count, raw->site_capacity);
        site->id = sqlite3_column_int64(s, 0);
        site->stack = find_stack(raw, sqlite3_column_int64(s, 1));
        site->device = (uint16_t)device;
        site->kind = (uint8_t)page_kind(db_text(s, 3));
        site->line_id = sqlite3_column_int64(s, 4);
        for (int i = 0; i < STAT_SCANNED_END; i++)
            site->stats[i] = sqlite3_column_int64(s, 5 + i);
    }
    return page_query_end(page, s, rc);
}

int page_raw_load(struct page *page, struct raw *raw)
{
    int rc = load_addresses(page, raw);
    if (!rc)
        rc = load_stacks(page, raw);
    return rc ? rc : load_raw_sites(page, raw);
}

void page_raw_free(struct raw *raw)
{
    free(raw->addresses);
    free(raw->frames);
    free(raw->stacks);
    free(raw->sites);
}
