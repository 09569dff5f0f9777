#include "page_categories.h"

#include "../../common/db.h"
#include "../../common/search.h"
#include "../../common/sum.h"
#include "../query/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CATEGORIES_MAX 256u /* of devices and kinds; what is beyond is in the rest */

static const struct {
    const char *phase, *shown;
} phases[] = {
#define X(phase, category) {phase, category},
    NAMES_OF_PHASES(X)
#undef X
};
#define PHASES (sizeof phases / sizeof *phases)

struct page_phase { /* on a device, of a kind */
    int32_t device;
    uint32_t kind, phase;
    uint64_t now_bytes; /* unsigned: sums of a damaged file wrap */
};

struct row {
    const char *name;
    int32_t device;
    uint32_t kind;
    int64_t *bytes; /* at each instant; until sum_up, what came and went */
};

struct rows {
    struct page *page;
    struct row *rows;
    uint32_t count, capacity;
    struct text_map number_of; /* of names; rows are found by it, device and kind */
    struct map row_of;
    uint32_t name_count;
};

static uint32_t phase_index(struct page *page, int32_t device, uint32_t kind, uint32_t phase)
{
    for (uint32_t i = 0; i < page->phase_count; i++)
        if (page->phases[i].device == device && page->phases[i].kind == kind && page->phases[i].phase == phase)
            return i;
    if (page->phase_count >= CATEGORIES_MAX)
        return MAP_NONE;
    *ARRAY_ADD(page->phases, page->phase_count, page->phase_capacity) =
        (struct page_phase){.device = device, .kind = kind, .phase = phase};
    return page->phase_count - 1;
}

int page_load_phases(struct page *page)
{
    page->has_categories = db_int(page->db, "SELECT EXISTS (SELECT 1 FROM block_name WHERE category IS NOT NULL)", 0);
    if (!page->has_categories)
        return 0;
    sqlite3_stmt *s = page_query(page, "SELECT site_id, s.device_id, s.kind, o.phase FROM site_op JOIN op o "
                                       "USING(op_id) JOIN site s USING(site_id) WHERE o.phase IS NOT NULL");
    if (!s)
        return -EIO;
    page->phase_of = xcalloc(page->site_of_count + 1ul, sizeof *page->phase_of);
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        const int64_t site_id = sqlite3_column_int64(s, 0);
        const int32_t device = page_device_index(page, sqlite3_column_int64(s, 1));
        for (uint32_t i = 0; i < PHASES; i++)
            if (site_id >= 0 && site_id < page->site_of_count && device >= 0 && !strcmp(db_text(s, 3), phases[i].phase))
                page->phase_of[site_id] = (uint16_t)(phase_index(page, device, page_kind(db_text(s, 2)), i) + 1);
    }
    return page_query_end(page, s, rc);
}

static struct page_phase *phase_of(const struct page *page, int64_t site_id)
{
    const uint16_t number =
        page->phase_of && site_id >= 0 && site_id < page->site_of_count ? page->phase_of[site_id] : 0;
    return number ? &page->phases[number - 1] : NULL;
}

void page_phase_add(struct page *page, int64_t site_id, uint64_t bytes)
{
    struct page_phase *phase = phase_of(page, site_id);
    if (phase)
        phase->now_bytes += bytes;
}

void page_phase_restart(struct page *page, int32_t device)
{
    for (uint32_t i = 0; i < page->phase_count; i++)
        if (device < 0 || page->phases[i].device == device)
            page->phases[i].now_bytes = 0;
}

uint32_t page_phase_keep(struct page *page)
{
    for (uint32_t i = 0; i < page->phase_count; i++)
        *ARRAY_ADD(page->phase_bytes, page->phase_bytes_count, page->phase_bytes_capacity) =
            (int64_t)page->phases[i].now_bytes;
    return page->phase_count ? page->phase_bytes_count / page->phase_count - 1 : 0;
}

/* --- the rows ----------------------------------------------------------------------------------------------------- */

/* NULL: there are as many as there may be. */
static struct row *row_of(struct rows *all, const char *name, int32_t device, uint32_t kind)
{
    uint32_t *number = text_map_slot(&all->number_of, name, strlen(name));
    if (!*number)
        *number = ++all->name_count;
    const uint64_t place = (uint64_t)(uint32_t)device << 32 | kind;
    const uint32_t i = map_number(&all->row_of, *number, place);
    if (i != MAP_NONE)
        return &all->rows[i];
    if (all->count >= CATEGORIES_MAX)
        return NULL;
    map_set_number(&all->row_of, *number, place, all->count);
    struct row *row = ARRAY_ADD(all->rows, all->count, all->capacity);
    *row = (struct row){.name = text_map_key(number), .device = device, .kind = kind};
    row->bytes = xcalloc(all->page->instant_count + 1ul, sizeof *row->bytes);
    return row;
}

/* The first instant that is not before a time. */
static size_t instant_from(const struct page *page, int64_t time_ns)
{
    return SEARCH_FIRST(page->instant_count, i, page->instants[i].time_ns < time_ns);
}

static void add_block(struct row *row, const struct page *page, const int64_t life_ns[2], int64_t bytes)
{
    const size_t from = instant_from(page, life_ns[0]), to = instant_from(page, life_ns[1]);
    if (row && from < to) {
        sum_add(&row->bytes[from], bytes);
        sum_add(&row->bytes[to], -bytes);
    }
}

/* A block that has a name is of no phase. */
static void take_block(struct rows *all, sqlite3_stmt *s)
{
    const struct page *page = all->page;
    const int32_t device = page_device_index(page, sqlite3_column_int64(s, 0));
    const uint32_t kind = page_kind(db_text(s, 1));
    const int64_t bytes = sqlite3_column_int64(s, 3),
                  life_ns[] = {sqlite3_column_int64(s, 4), sqlite3_column_int64(s, 5)};
    if (device < 0 || bytes < 0 || bytes > INT64_C(1) << 52)
        return;
    if (sqlite3_column_type(s, 2) != SQLITE_NULL)
        add_block(row_of(all, db_text(s, 2), device, kind), page, life_ns, bytes);
    const struct page_phase *phase = phase_of(page, sqlite3_column_int64(s, 6));
    if (phase)
        add_block(row_of(all, phases[phase->phase].shown, phase->device, phase->kind), page, life_ns, -bytes);
}

static int take_blocks(struct rows *all)
{
    sqlite3_stmt *s = page_query(
        all->page,
        "SELECT n.device_id, s.kind, n.category, n.block_bytes, n.alloc_ns, coalesce(n.free_ns, p.end_ns, "
        "9223372036854775807), n.site_id FROM (SELECT *, min(name_id) OVER (PARTITION BY process_id, block_address, "
        "alloc_ns) AS first_id FROM block_name) n JOIN site s USING(site_id) LEFT JOIN process p ON p.process_id = "
        "n.process_id WHERE n.name_id = n.first_id ORDER BY n.name_id");
    if (!s)
        return -EIO;
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW)
        take_block(all, s);
    return page_query_end(all->page, s, rc);
}

static void sum_up(struct rows *all)
{
    for (uint32_t r = 0; r < all->count; r++)
        for (uint32_t i = 1; i < all->page->instant_count; i++)
            sum_add(&all->rows[r].bytes[i], all->rows[r].bytes[i - 1]);
}

/* All that its phases held, to what was named of it, which is below zero there. */
static void add_phases(struct rows *all)
{
    const struct page *page = all->page;
    for (uint32_t k = 0; k < page->phase_count; k++) {
        const struct page_phase *phase = &page->phases[k];
        struct row *row = row_of(all, phases[phase->phase].shown, phase->device, phase->kind);
        for (uint32_t i = 0; row && i < page->instant_count; i++)
            sum_add(&row->bytes[i], page->phase_bytes[(size_t)page->instants[i].phases * page->phase_count + k]);
    }
}

static void write_row(struct page *page, struct page_pack *pack, const struct row *row)
{
    for (uint32_t i = 0; i < page->instant_count; i++)
        if (row->bytes[i] < 0)
            row->bytes[i] = 0; /* where events are missing */
    pack_open(pack, NULL, '{');
    pack_text(pack, "name", row->name);
    pack_int(pack, "device", row->device);
    pack_int(pack, "kind", row->kind);
    pack_column(pack, "bytes", page->instant_count, row->bytes, sizeof *row->bytes, 1);
    pack_close(pack, '}');
}

int page_write_categories(struct page *page, struct page_pack *pack)
{
    struct rows all = {.page = page};
    int rc = page->has_categories ? take_blocks(&all) : 0;
    sum_up(&all);
    if (!rc)
        add_phases(&all);
    pack_open(pack, "categories", '[');
    for (uint32_t i = 0; i < all.count; i++)
        write_row(page, pack, &all.rows[i]);
    pack_close(pack, ']');
    for (uint32_t i = 0; i < all.count; i++)
        free(all.rows[i].bytes);
    free(all.rows);
    text_map_close(&all.number_of);
    map_close(&all.row_of);
    return rc;
}

void page_phases_free(struct page *page)
{
    free(page->phases);
    free(page->phase_of);
    free(page->phase_bytes);
}
