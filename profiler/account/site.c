#include "site.h"

#include "../store/store.h"
#include "huge.h"

#include "../../common/array.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLAB_PAGES 64u /* of sites: three huge pages; a divisor of every page_capacity */
#define SLAB_BYTES (SLAB_PAGES * SITE_PAGE * sizeof(struct site))
#define SLAB_AHEAD 2u                 /* from this one on the next one is touched while it fills */
#define PAGE_WORDS (SITE_PAGE / 64ul) /* of bits */
#define PARTS_MOST 256u               /* of newer values: a reader takes longer with each */

static void bits_grow(uint64_t **bits, uint32_t pages, uint32_t more)
{
    *bits = xrealloc(*bits, more * PAGE_WORDS * sizeof **bits);
    memset(*bits + pages * PAGE_WORDS, 0, (more - pages) * PAGE_WORDS * sizeof **bits);
}

/* Takes huge pages until one was slow. */
static void huge_pages(struct site_table *t, char *slab)
{
    for (size_t at = 0; at < SLAB_BYTES && !t->huge_is_slow; at += HUGE_BYTES) {
        uint64_t before_ns = huge_clock_ns();
        *(volatile char *)(slab + at) = 0;
        t->huge_is_slow = huge_was_slow(before_ns);
        if (t->huge_is_slow)
            madvise(slab, SLAB_BYTES, MADV_NOHUGEPAGE); /* what is there stays */
    }
}

static char *slab_take(struct site_table *t, uint32_t page)
{
    char *slab = ahead_take(t->worker, &t->next_slab, &t->huge_is_slow);
    if (!slab) {
        slab = ahead_map(SLAB_BYTES, !t->huge_is_slow);
        if (!slab)
            out_of_memory(SLAB_BYTES);
        huge_pages(t, slab);
    }
    if (page >= SLAB_AHEAD * SLAB_PAGES)
        ahead_begin(t->worker, &t->next_slab, SLAB_BYTES, !t->huge_is_slow);
    return slab;
}

/* Sites are set as they are added. The first ones take as little memory as they can, the others as few faults. */
static void pages_add(struct site_table *t, uint32_t page)
{
    if (page < SLAB_PAGES) {
        t->pages[page] = aligned_alloc(_Alignof(struct site), SITE_PAGE * sizeof(struct site));
        if (!t->pages[page])
            out_of_memory(SITE_PAGE * sizeof(struct site));
        return;
    }
    struct site *sites = (struct site *)(void *)slab_take(t, page);
    for (unsigned i = 0; i < SLAB_PAGES; i++)
        t->pages[page + i] = sites + i * SITE_PAGE;
}

uint32_t site_add(struct site_table *t, uint32_t stack_id, uint16_t process_id, uint8_t device, uint8_t kind)
{
    if (t->count == UINT32_MAX - 1)
        bug("%u sites", t->count);
    uint32_t id = t->count + 1, page = id >> SITE_PAGE_BITS;
    if (page >= t->page_capacity) {
        uint32_t capacity = t->page_capacity ? t->page_capacity * 2 : 64;
        t->pages = xrealloc(t->pages, capacity * sizeof *t->pages);
        memset(t->pages + t->page_capacity, 0, (capacity - t->page_capacity) * sizeof *t->pages);
        bits_grow(&t->dirty, t->page_capacity, capacity);
        bits_grow(&t->loose, t->page_capacity, capacity);
        t->page_capacity = capacity;
    }
    if (!t->pages[page])
        pages_add(t, page);
    ARRAY_ROOM_ZERO(t->by_stack, stack_id + 1ul, t->stack_capacity);
    t->count = id;
    *site_at(t, id) = (struct site){
        .stack_id = stack_id, .process_id = process_id, .device = device, .kind = kind, .next = t->by_stack[stack_id]};
    t->by_stack[stack_id] = id;
    site_mark_dirty(t, site_at(t, id), id); /* events may name it without changing it */
    return id;
}

void site_mark_dirty(struct site_table *t, struct site *s, uint32_t id)
{
    if (s->dirty)
        return;
    s->dirty = 1;
    t->dirty[id / 64] |= 1ull << (id & 63);
}

struct tally_rare *site_add_rare(struct site_table *t, struct site *s)
{
    struct site_rares *rares = t->rares;
    if (!rares || rares->used == SITE_RARES) {
        rares = xmalloc(sizeof *rares);
        rares->next = t->rares;
        rares->used = 0;
        t->rares = rares;
    }
    s->tally.rare = &rares->rare[rares->used++];
    *s->tally.rare = (struct tally_rare){0};
    return s->tally.rare;
}

/* --- their rows --- */

/* The columns before the statistics. */
#define SITE_KEYS "site_id, stack_id, process_id, device_id, kind"

/* The same of a site s, as VALUE(column, of_site); its statistics are in tally.def. */
#define SITE_VALUES(VALUE)                                                                                             \
    VALUE(stack_id, s->stack_id)                                                                                       \
    VALUE(process_id, s->process_id)                                                                                   \
    VALUE(device_id, s->device)                                                                                        \
    VALUE(kind, s->kind)

static uint64_t value_of(const struct site *s, enum packed_column column)
{
    const struct tally *t = &s->tally;
    const struct tally_peaks *p = &t->written;
    const struct tally_rare *r = tally_rare(t);
    switch ((int)column) {
#define VALUE(name, of_site)                                                                                           \
    case PACKED_site_##name:                                                                                           \
        return of_site;
        SITE_VALUES(VALUE)
#define STAT(name, of_tally) VALUE(name, of_tally)
#include "tally.def"
#undef STAT
#undef VALUE
    }
    return 0;
}

/* The columns as in common/packed.def, after the id. */
static void column(void *arg, uint32_t row, int number, sqlite3_context *value)
{
    const struct site_table *sites = arg;
    uint32_t id = sites->writing[row];
    enum packed_column which = PACKED_KEY_site + (unsigned)number - 1;
    if (number == 0)
        sqlite3_result_int64(value, id);
    else if (which == PACKED_site_kind)
        sqlite3_result_text(value, kind_name(site_at(sites, id)->kind), -1, SQLITE_STATIC);
    else
        sqlite3_result_int64(value, (int64_t)value_of(site_at(sites, id), which));
}

/* Sites come with their new values; of those that do not, none has more than the top had. Of equals, the oldest. */
static void update_top(struct top *top, uint32_t id, uint64_t bytes)
{
    if (id == top->site_id) {
        top->is_unsure |= bytes < top->bytes;
        top->bytes = bytes;
    } else if (bytes > top->bytes || (bytes && bytes == top->bytes && id < top->site_id)) {
        *top = (struct top){bytes, id, top->is_unsure};
    }
}

static void find_top(const struct site_table *t, struct top *top, unsigned device, unsigned kind)
{
    *top = (struct top){0};
    for (uint32_t id = 1; id <= t->count; id++) {
        const struct site *s = site_at(t, id);
        if (s->device == device && (kind == KIND_all || s->kind == kind))
            update_top(top, id, kind == KIND_all ? s->tally.written.bytes : s->tally.written.kind_bytes);
    }
}

static void settle_tops(const struct site_table *t, struct device_account *const *devices, unsigned device_count)
{
    for (unsigned i = 0; i < device_count; i++) {
        struct device_account *d = devices[i];
        if (d && d->top.is_unsure)
            find_top(t, &d->top, i, KIND_all);
        for (unsigned kind = 0; d && kind < KIND_COUNT; kind++)
            if (d->kinds[kind] && d->kinds[kind]->top.is_unsure)
                find_top(t, &d->kinds[kind]->top, i, kind);
    }
}

/* 1: its row is to be written. */
static int update_site(struct site_table *t, struct device_account *const *devices, uint32_t id)
{
    struct site *s = site_at(t, id);
    struct device_account *d = devices[s->device];
    struct kind_account *k = d->kinds[s->kind];
    struct tally_peaks peaks = tally_peaks(&s->tally, d, k);
    uint64_t bit = 1ull << (id & 63);
    if (tally_peaks_stay(&s->tally, &peaks))
        t->loose[id / 64] &= ~bit;
    else
        t->loose[id / 64] |= bit;
    if (!s->dirty && !tally_peaks_moved(&s->tally, &peaks))
        return 0;
    s->dirty = 0;
    s->tally.written = peaks;
    update_top(&d->top, id, peaks.bytes);
    update_top(&k->top, id, peaks.kind_bytes);
    return 1;
}

static void write_rows(struct site_table *t, struct store *store, uint32_t count)
{
#define STAT(name, of_tally) ", " #name
    static const char sql[] = "INSERT OR REPLACE INTO site(" SITE_KEYS
#include "tally.def"
                              ") SELECT * FROM new_site(?1)";
    static const char declaration[] = "CREATE TABLE x(rows HIDDEN, " SITE_KEYS
#include "tally.def"
                                      ")";
#undef STAT
    t->rows.name = "new_site";
    t->rows.declaration = declaration;
    t->rows.column = column;
    t->rows.arg = t;
    t->rows.last = count - 1;
    store_rows(store, &t->rows, sql);
}

/* --- the same, packed --- */

/* Of what processes had left which took their interpreter down; no more than had ended. */
static uint64_t kept_count(const struct site_table *sites, const struct tally_rare *r, uint32_t id)
{
    return r->end_count ? map_get(&sites->kept, id, 0) : 0;
}

/* Site by site: all columns of one lie in the same three lines of the cache. */
static void take_values(const struct site_table *sites, uint32_t row, uint32_t id)
{
    const struct site *s = site_at(sites, id);
    const struct tally *t = &s->tally;
    const struct tally_peaks *p = &t->written;
    const struct tally_rare *r = tally_rare(t);
    uint64_t *values = packer_values(sites->packer, PACKED_KEY_site) + row;
#define VALUE(name, of_site) values[(size_t)(PACKED_site_##name - PACKED_KEY_site) * PACKER_STRIDE] = of_site;
    SITE_VALUES(VALUE)
#define STAT(name, of_tally) VALUE(name, of_tally)
#include "tally.def"
#undef STAT
    VALUE(torn_bytes, r->teardown_bytes)
    VALUE(torn_count, r->teardown_count)
    VALUE(kept_count, kept_count(sites, r, id))
#undef VALUE
}

/* ids: of the sites; NULL: those from first_row on. */
static void pack_sites(struct site_table *t, uint32_t part, const uint32_t *ids, uint32_t first_row, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        take_values(t, i, ids ? ids[i] : first_row + i);
    for (enum packed_column c = PACKED_KEY_site; c < PACKED_site_line_id; c++)
        packer_column(t->packer, part, c, first_row, count);
    uint64_t *row_ids = packer_values(t->packer, PACKED_ROW_IDS);
    for (uint32_t i = 0; ids && i < count; i++)
        row_ids[i] = ids[i];
    if (ids)
        packer_column(t->packer, part, PACKED_ROW_IDS, first_row, count);
}

static uint32_t chunk_rows(uint32_t left)
{
    return left < PACKED_ROWS ? left : PACKED_ROWS;
}

/* All sites, instead of what was written before. */
static void pack_all(struct site_table *t)
{
    packer_drop_all(t->packer);
    for (uint32_t id = 1; id <= t->count; id += PACKED_ROWS)
        pack_sites(t, 0, NULL, id, chunk_rows(t->count - id + 1));
    t->parts = t->part_sites = 0;
}

/* The sites that changed; all of them now and then, so that a reader never has to read much more than there are. */
static void write_packed(struct site_table *t, uint32_t count, int last)
{
    t->part_sites += count;
    if (last || t->part_sites > t->count || t->parts == PARTS_MOST) {
        if (count || t->parts)
            pack_all(t);
        return;
    }
    t->parts += count != 0;
    for (uint32_t at = 0; at < count; at += PACKED_ROWS)
        pack_sites(t, t->parts, t->writing + at, at, chunk_rows(count - at));
}

static void begin_packing(struct site_table *t, struct store *store)
{
    t->packer = packer_open(store, PACKED_TABLE_site);
    store_step(store, store_statement(store, "DELETE FROM site"));
    store_step(store, store_statement(store, "DELETE FROM site_teardown"));
    store_step(store, store_statement(store, "DELETE FROM site_kept"));
    pack_all(t);
}

void sites_write(struct site_table *t, struct store *store, struct device_account *const *devices,
                 unsigned device_count, int peaks_moved, int last)
{
    uint32_t count = 0;
    for (uint32_t word = 0; t->count && word <= t->count / 64; word++) {
        uint64_t bits = t->dirty[word] | (peaks_moved ? t->loose[word] : 0);
        t->dirty[word] = 0;
        for (; bits; bits &= bits - 1) {
            uint32_t id = word * 64 + (uint32_t)__builtin_ctzll(bits);
            if (!update_site(t, devices, id))
                continue;
            *ARRAY_ADD(t->writing, count, t->writing_capacity) = id;
        }
    }
    settle_tops(t, devices, device_count);
    if (!t->packer && t->count > PACKED_SITES)
        begin_packing(t, store);
    else if (t->packer)
        write_packed(t, count, last);
    else if (count)
        write_rows(t, store, count);
}

void sites_all_anew(struct site_table *t)
{
    t->parts = PARTS_MOST;
}

void sites_close(struct site_table *t)
{
    ahead_drop(t->worker, &t->next_slab);
    for (uint32_t i = 0; i < t->page_capacity && i < SLAB_PAGES; i++)
        free(t->pages[i]);
    for (uint32_t i = SLAB_PAGES; i < t->page_capacity && t->pages[i]; i += SLAB_PAGES)
        munmap(t->pages[i], SLAB_BYTES);
    for (struct site_rares *rares = t->rares, *next; rares; rares = next) {
        next = rares->next;
        free(rares);
    }
    packer_close(t->packer);
    map_close(&t->kept);
    free(t->pages);
    free(t->by_stack);
    free(t->dirty);
    free(t->loose);
    free(t->writing);
}
