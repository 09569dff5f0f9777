#include "heap.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/text.h"
#include "heap_private.h"
#include "named_caller.h"
#include "rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_HEADER 16u
#define CHUNK_LEAST  32u
#define RANGE_MOST   (UINT64_C(1) << 48)

/* --- the ranges ------------------------------------------------------------------------------------------------ */

int heap_is_known(sqlite3 *db)
{
    return db_int(db,
                  "SELECT EXISTS (SELECT 1 FROM heap_range) OR EXISTS (SELECT 1 FROM segment WHERE device_id = 0 AND "
                  "kind IN ('heap', 'arena'))",
                  0) == 1;
}

static struct heap_range *add_range(struct heap *h, enum heap_kind kind, sqlite3_stmt *s)
{
    struct heap_range *r = ARRAY_ADD(h->ranges, h->range_count, h->range_capacity);
    r->kind = kind;
    r->process_id = (uint32_t)sqlite3_column_int64(s, 0);
    r->address = (uint64_t)sqlite3_column_int64(s, 1);
    return r;
}

/* A size between two samples is the first one's, and more where blocks lie above it: up to the second one's. */
int heap_load_glibc(struct heap *h, sqlite3 *db, const struct instant *at, int64_t process_id, int is_forked,
                    uint64_t **limit, struct error *err)
{
    sqlite3_stmt *s = NULL;
    size_t room = 0;
    int rc = db_prepare(
        db,
        "SELECT r.process_id, r.address, r.arena, r.size_bytes, r.time_ns, coalesce(t.time_ns, ?2) FROM heap_range r "
        "JOIN main.process p USING(process_id) LEFT JOIN teardown t ON t.process_id = r.process_id AND ?5 WHERE "
        "(p.start_kind = 'fork') = ?3 AND (?1 OR p.end_ns IS NULL OR "
        "p.end_ns >= ?2) AND r.address > 0 AND r.size_bytes BETWEEN 0 AND 1 << 48 AND r.process_id "
        "BETWEEN 0 AND 65535 AND (?4 < 0 OR r.process_id = ?4) ORDER BY r.process_id, r.address, r.time_ns, r.range_id",
        &s, err);
    if (rc)
        return rc;
    sqlite3_bind_int(s, 1, at->end_ns[0] == INT64_MAX);
    sqlite3_bind_int64(s, 2, at->end_ns[0]);
    sqlite3_bind_int(s, 3, is_forked);
    sqlite3_bind_int64(s, 4, process_id);
    sqlite3_bind_int(s, 5, at->is_before_teardown);
    struct heap_range *r = NULL;
    int has_next = 0;
    while (sqlite3_step(s) == SQLITE_ROW) {
        uint64_t size = (uint64_t)sqlite3_column_int64(s, 3), arena = (uint64_t)sqlite3_column_int64(s, 2);
        int64_t time_ns = sqlite3_column_int64(s, 4);
        if (!r || r->process_id != (uint32_t)sqlite3_column_int64(s, 0) ||
            r->address != (uint64_t)sqlite3_column_int64(s, 1)) {
            r = add_range(h, arena ? HEAP_THREAD : HEAP_MAIN, s);
            ARRAY_ROOM(*limit, h->range_count, room);
            (*limit)[h->range_count - 1] = 0;
            r->arena = arena;
            has_next = 0;
        }
        uint64_t *most = &(*limit)[h->range_count - 1];
        if (has_next)
            continue;
        has_next = time_ns > sqlite3_column_int64(s, 5);
        *most = size > *most || !has_next ? size : *most;
        if (!has_next)
            r->size_bytes = size;
    }
    sqlite3_finalize(s);
    return 0;
}

static int load_segments(struct heap *h, sqlite3 *db, const struct instant *at, int64_t process_id, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT g.process_id, g.address, g.kind = 'arena', g.size_bytes FROM segment g LEFT JOIN "
                        "main.process p USING(process_id) LEFT JOIN teardown t ON t.process_id = g.process_id AND ?4 "
                        "WHERE g.device_id = 0 AND g.kind IN ('heap', 'arena') AND g.address > 0 AND g.size_bytes "
                        "BETWEEN 1 AND 1 << 48 AND g.alloc_ns <= coalesce(t.time_ns, ?2) AND (g.free_ns > "
                        "coalesce(t.time_ns, ?2) OR (g.free_ns IS NULL AND (?1 OR p.end_ns IS NULL OR p.end_ns >= "
                        "?2))) AND g.process_id BETWEEN 0 AND 65535 AND (?3 < 0 OR g.process_id = ?3) ORDER BY "
                        "g.process_id, g.address",
                        &s, err);
    if (rc)
        return rc;
    sqlite3_bind_int(s, 1, at->end_ns[0] == INT64_MAX);
    sqlite3_bind_int64(s, 2, at->end_ns[0]);
    sqlite3_bind_int64(s, 3, process_id);
    sqlite3_bind_int(s, 4, at->is_before_teardown);
    while (sqlite3_step(s) == SQLITE_ROW)
        add_range(h, sqlite3_column_int(s, 2) ? HEAP_PYTHON : HEAP_SEGMENT, s)->size_bytes =
            (uint64_t)sqlite3_column_int64(s, 3);
    sqlite3_finalize(s);
    return 0;
}

/* --- the pages of one range ------------------------------------------------------------------------------------ */

static uint32_t line_of(struct heap *h, const struct site_lines *site_line, uint32_t site_id, uint32_t is_inherited)
{
    uint64_t known = map_get(&h->site_of, site_id, is_inherited);
    if (known)
        return (uint32_t)known - 1;
    int64_t line_id = site_lines_of(site_line, site_id, -1 - (int64_t)site_id);
    uint32_t i = map_number_or(&h->line_of, (uint64_t)line_id, is_inherited, h->line_count);
    if (i == h->line_count)
        *ARRAY_ADD(h->lines, h->line_count, h->line_capacity) =
            (struct heap_line){.line_id = line_id, .site_id = site_id, .is_inherited = is_inherited};
    *map_slot(&h->site_of, site_id, is_inherited) = i + 1ull;
    return i;
}

static void add_run(struct heap *h, struct heap_range *r, uint64_t pages, uint32_t line, int is_free)
{
    struct heap_run *last = r->run_count ? &h->runs[h->run_count - 1] : NULL;
    if (!pages)
        return;
    if (last && last->line == line && last->is_free == is_free) {
        last->pages += pages;
        return;
    }
    *ARRAY_ADD(h->runs, h->run_count, h->run_capacity) = (struct heap_run){pages, line, is_free};
    r->run_count++;
}

/* The last page, which was one line's, is another's too. */
static void share_last(struct heap *h, struct heap_range *r, uint32_t line)
{
    struct heap_run *last = &h->runs[h->run_count - 1];
    if (last->line == line || last->line == HEAP_SHARED)
        return;
    if (--last->pages == 0) {
        h->run_count--;
        r->run_count--;
    }
    add_run(h, r, 1, HEAP_SHARED, 0);
}

#define PARTS 64 /* lines that are told apart on a page; the others' bytes are the last one's */

struct shared_page { /* the last one that a block was seen on */
    uint64_t page;
    unsigned count;
    struct {
        uint32_t line;
        uint64_t bytes;
    } part[PARTS];
};

struct walk {
    struct shared_page shared;
    struct heap *heap;
    struct heap_range *range;
    const struct site_lines *site_line;
    uint64_t next;  /* the first page that no block was seen on yet */
    uint64_t first; /* of the range */
    uint64_t most;  /* behind its last one, as far as that is known */
    struct spill {  /* out of the range before, whose last block goes on in this one */
        uint64_t next;
        uint32_t line, process_id;
    } * spill;
};

/* The bytes that make a page belong to the block. */
static void extent(const struct block *b, int is_glibc, uint64_t *start, uint64_t *end)
{
    uint64_t size = b->size_bytes < RANGE_MOST ? b->size_bytes : RANGE_MOST;
    *start = b->address;
    *end = b->address + (size ? size : 1);
    if (!is_glibc || b->address < CHUNK_HEADER)
        return;
    uint64_t chunk = (size + 8 + 15) & ~UINT64_C(15);
    *start -= CHUNK_HEADER;
    chunk = chunk < CHUNK_LEAST ? CHUNK_LEAST : chunk;
    if (*start + chunk > *end)
        *end = *start + chunk;
}

/* Each line that has bytes on the page gets its part of it; the first one what rounding leaves. */
static void split_page(struct walk *w)
{
    struct shared_page *p = &w->shared;
    uint64_t sum = 0, rest = w->heap->page;
    for (unsigned i = 0; i < p->count; i++)
        sum += p->part[i].bytes;
    for (unsigned i = p->count; p->count > 1 && i-- > 0;) {
        uint64_t bytes = i ? (uint64_t)((double)w->heap->page * (double)p->part[i].bytes / (double)sum) : rest;
        w->heap->lines[p->part[i].line].shared_bytes += bytes;
        rest -= bytes;
    }
    p->count = 0;
}

static void add_part(struct walk *w, uint64_t page, uint32_t line, uint64_t bytes)
{
    struct shared_page *p = &w->shared;
    unsigned i = 0;
    if (p->page != page)
        split_page(w);
    p->page = page;
    while (i < p->count && p->part[i].line != line)
        i++;
    if (i == PARTS)
        i--;
    if (i == p->count) {
        p->part[i].line = line;
        p->part[i].bytes = 0;
        p->count++;
    }
    p->part[i].bytes += bytes;
}

/* Only the first and the last page of a block may have others. */
static void see_parts(struct walk *w, uint32_t line, uint64_t start, uint64_t end, uint64_t low, uint64_t high)
{
    uint64_t page = w->heap->page;
    for (uint64_t i = low; i < high; i = i + 1 < high - 1 ? high - 1 : i + 1) {
        uint64_t from = i * page > start ? i * page : start, to = (i + 1) * page < end ? (i + 1) * page : end;
        add_part(w, i, line, to > from ? to - from : 1);
    }
}

static void count_block(struct heap_line *line, uint32_t process_id, uint64_t size_bytes)
{
    line->live_bytes += size_bytes;
    line->block_count++;
    line->process_count += line->last_process != process_id;
    line->last_process = process_id;
}

static void see_block(struct walk *w, const struct block *b)
{
    struct heap *h = w->heap;
    struct heap_range *r = w->range;
    uint32_t line = line_of(h, w->site_line, b->site_id, b->forks > 0);
    uint64_t start, end;
    extent(b, r->kind <= HEAP_OWN, &start, &end);
    uint64_t low = start / h->page, high = (end + h->page - 1) / h->page;
    if (low < w->first)
        low = w->first;
    if (r->kind >= HEAP_SEGMENT && high > w->most) {
        *w->spill = (struct spill){high, line, r->process_id};
        high = w->most;
    }
    see_parts(w, line, start, end, low, high);
    if (low > w->next) {
        if (r->kind != HEAP_OWN) /* between mappings nothing is held */
            add_run(h, r, low - w->next, line, 1);
        w->next = low;
    } else if (low < w->next && r->run_count) {
        share_last(h, r, line);
    }
    if (high > w->next) {
        add_run(h, r, high - w->next, line, 0);
        w->next = high;
    }
    *(b->forks ? &r->inherited_bytes : &r->live_bytes) += b->size_bytes;
    *(b->forks ? &r->inherited_count : &r->block_count) += 1;
    r->last = *b;
    count_block(&h->lines[line], r->process_id, b->size_bytes);
}

static void sum_runs(struct heap *h, struct heap_range *r)
{
    for (size_t i = r->first_run; i < r->first_run + r->run_count; i++) {
        const struct heap_run *run = &h->runs[i];
        uint64_t bytes = run->pages * h->page;
        struct heap_line *line = run->line < h->line_count ? &h->lines[run->line] : NULL;
        r->page_bytes += bytes;
        if (run->line == HEAP_TOP) {
            r->top_bytes += bytes;
        } else if (run->line == HEAP_SHARED) {
            r->shared_bytes += bytes;
        } else if (line && run->is_free) {
            r->held_bytes += bytes;
            line->held_bytes += bytes;
            line->trim_bytes += r->kind <= HEAP_THREAD ? bytes : 0;
        } else if (line) {
            r->pinned_bytes += bytes;
            line->pinned_bytes += bytes;
        }
    }
    h->page_bytes += r->page_bytes;
    h->pinned_bytes += r->pinned_bytes;
    h->shared_bytes += r->shared_bytes;
    h->held_bytes += r->held_bytes;
    h->trim_bytes += r->kind <= HEAP_THREAD ? r->held_bytes : 0;
    h->top_bytes += r->top_bytes;
    h->main_top_bytes += r->kind == HEAP_MAIN ? r->top_bytes : 0;
    h->live_bytes += r->live_bytes;
    if (r->kind == HEAP_OWN)
        r->size_bytes = r->page_bytes;
}

/* next: that no block of this one is looked for in, NULL: none. Only a damaged file has ranges that overlap. */
static void walk_range(struct heap *h, struct heap_range *r, uint64_t limit, const struct heap_range *next,
                       const struct blocks *blocks, struct spill *spill, const struct site_lines *site_line)
{
    uint64_t first = r->address / h->page, end = (r->address + r->size_bytes + h->page - 1) / h->page;
    struct walk w = {
        .heap = h, .range = r, .site_line = site_line, .next = first, .first = first, .most = end, .spill = spill};
    uint32_t place = r->process_id << 8;
    size_t i = live_blocks_find(blocks, place, r->address);
    uint64_t most = limit > r->size_bytes ? limit : r->size_bytes;
    if (next && next->process_id == r->process_id && next->address - r->address < most)
        most = next->address - r->address;
    r->first_run = h->run_count;
    if (r->kind >= HEAP_SEGMENT && spill->process_id == r->process_id && spill->next > first) {
        w.next = spill->next < end ? spill->next : end;
        add_run(h, r, w.next - first, spill->line, 0);
        add_part(&w, w.next - 1, spill->line, 1);
    }
    for (; i < blocks->count; i++) {
        const struct block *b = &blocks->slots[i];
        if (b->space >> 8 != place || b->address - r->address >= most)
            break;
        see_block(&w, b);
    }
    split_page(&w);
    if (end > w.next)
        add_run(h, r, end - w.next, HEAP_TOP, 1);
    else if (r->kind <= HEAP_THREAD && w.next * h->page > r->address + r->size_bytes)
        r->size_bytes = w.next * h->page - r->address; /* it grew since the sample */
}

/* --- all ------------------------------------------------------------------------------------------------------- */

static int by_address(const void *x, const void *y)
{
    const struct heap_range *a = x, *b = y;
    if (a->process_id != b->process_id)
        return a->process_id < b->process_id ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

/* Blocks of a process with glibc's heaps that lie in none, nor in an arena of Python's: from its range `first` on. */
static void walk_own(struct heap *h, size_t first, size_t count, const struct blocks *blocks,
                     const struct site_lines *site_line)
{
    struct heap_range own = {
        .kind = HEAP_OWN, .process_id = h->ranges[first].process_id, .is_forked = h->ranges[first].is_forked};
    struct walk w = {.heap = h, .range = &own, .site_line = site_line};
    uint32_t place = own.process_id << 8;
    size_t range = first;
    own.first_run = h->run_count;
    for (size_t i = live_blocks_find(blocks, place, 0); i < blocks->count; i++) {
        const struct block *b = &blocks->slots[i];
        if (b->space >> 8 != place)
            break;
        while (range < first + count && b->address - h->ranges[range].address >= h->ranges[range].size_bytes &&
               b->address > h->ranges[range].address)
            range++;
        if ((b->space & 255) == KIND_heap && (range == first + count || b->address < h->ranges[range].address))
            see_block(&w, b);
    }
    split_page(&w);
    if (own.block_count + own.inherited_count) {
        sum_runs(h, &own);
        *ARRAY_ADD(h->ranges, h->range_count, h->range_capacity) = own;
    }
}

/* Python's arenas whose objects were not seen, and what glibc gave back, say nothing. */
static void drop_empty(struct heap *h)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->range_count; i++)
        if (h->ranges[i].size_bytes && (h->ranges[i].kind != HEAP_PYTHON || h->ranges[i].block_count))
            h->ranges[kept++] = h->ranges[i];
    h->range_count = kept;
}

static int is_glibc(const struct heap *h, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (h->ranges[i].kind == HEAP_MAIN || h->ranges[i].kind == HEAP_THREAD)
            return 1;
    return 0;
}

static void walk_all(struct heap *h, const uint64_t *limits, size_t limit_count, const struct blocks *blocks,
                     const struct site_lines *site_line)
{
    size_t known = h->range_count;
    struct spill spill = {0};
    for (size_t i = 0; i < known; i++) /* in the order of limits; glibc's by address, then segments by address */
        walk_range(h, &h->ranges[i], i < limit_count ? limits[i] : 0,
                   i + 1 < known && i + 1 != limit_count ? &h->ranges[i + 1] : NULL, blocks, &spill, site_line);
    for (size_t i = 0; i < known; i++)
        if (h->ranges[i].kind != HEAP_PYTHON || h->ranges[i].block_count)
            sum_runs(h, &h->ranges[i]);
    if (known)
        qsort(h->ranges, known, sizeof *h->ranges, by_address);
    for (size_t i = 0, n; i < known; i += n) {
        for (n = 1; i + n < known && h->ranges[i + n].process_id == h->ranges[i].process_id;)
            n++;
        if (is_glibc(h, i, n))
            walk_own(h, i, n, blocks, site_line);
    }
    drop_empty(h);
    if (h->range_count)
        qsort(h->ranges, h->range_count, sizeof *h->ranges, by_address);
}

static int by_weight(const void *x, const void *y)
{
    const struct heap_line *a = x, *b = y;
    uint64_t sums[2] = {a->held_bytes + a->pinned_bytes + a->shared_bytes,
                        b->held_bytes + b->pinned_bytes + b->shared_bytes};
    if (sums[0] != sums[1])
        return sums[0] > sums[1] ? -1 : 1;
    if (a->line_id != b->line_id)
        return a->line_id < b->line_id ? -1 : 1;
    return (int)a->is_inherited - (int)b->is_inherited;
}

static void sort_lines(struct heap *h)
{
    h->place = xcalloc(h->line_count + 1ul, sizeof *h->place);
    if (h->line_count)
        qsort(h->lines, h->line_count, sizeof *h->lines, by_weight);
    for (uint32_t i = 0; i < h->line_count; i++)
        h->place[map_get(&h->site_of, h->lines[i].site_id, h->lines[i].is_inherited) - 1] = i;
}

/* What stands beside lines without a file in the tables of the report. */
static int find_beside(struct heap *h, sqlite3 *db, struct error *err)
{
    struct rows rows = {.row = xcalloc(h->line_count + 1ul, sizeof *rows.row), .count = (int)h->line_count};
    for (uint32_t i = 0; i < h->line_count; i++) { /* strings borrowed; without a symbol it has no function's row */
        const struct heap_line *line = &h->lines[i];
        rows.row[i] = (struct row){
            .key_id = line->line_id, .function = line->is_bare ? NULL : line->function, .file = line->file};
    }
    rows_find_modules(db, ROW_LINE, &rows);
    int rc = rows_name_callers(db, ROW_LINE, &rows, err);
    for (uint32_t i = 0; i < h->line_count; i++) {
        struct buf text = BUF(1 << 20);
        if (!h->lines[i].file)
            row_source_text(&rows.row[i], NULL, &text);
        if (text.length)
            h->lines[i].beside = buf_take(&text);
        buf_free(&text);
        free(rows.row[i].module);
        free(rows.row[i].caller);
    }
    free(rows.row);
    return rc;
}

static int name_lines(struct heap *h, sqlite3 *db, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT fn.name, f.path, l.line, coalesce(k.path, m.path), coalesce(l.offset, a.offset) FROM "
                        "site s LEFT JOIN site_line sl ON sl.site_id = s.site_id LEFT JOIN line l ON l.line_id = "
                        "sl.line_id LEFT JOIN function fn ON fn.function_id = l.function_id LEFT JOIN file f ON "
                        "f.file_id = l.file_id LEFT JOIN module_key k ON k.key_id = l.module_key_id LEFT JOIN stack t "
                        "ON t.stack_id = s.stack_id LEFT JOIN address a ON a.address_id = t.address_id LEFT JOIN "
                        "module m ON m.module_id = a.module_id WHERE s.site_id = ?",
                        &s, err);
    for (uint32_t i = 0; rc == 0 && i < h->line_count; i++) {
        struct heap_line *line = &h->lines[i];
        sqlite3_bind_int64(s, 1, line->site_id);
        if (sqlite3_step(s) == SQLITE_ROW) {
            char *code = NULL;
            if (sqlite3_column_type(s, 0) != SQLITE_NULL)
                line->function = xstrdup(db_text(s, 0));
            else if (sqlite3_column_type(s, 3) != SQLITE_NULL &&
                     asprintf(&code, "%s+0x%llx", text_basename(db_text(s, 3)),
                              (long long)sqlite3_column_int64(s, 4)) >= 0)
                line->function = code;
            line->is_bare = sqlite3_column_type(s, 0) == SQLITE_NULL;
            line->file = sqlite3_column_type(s, 1) != SQLITE_NULL ? xstrdup(db_text(s, 1)) : NULL;
            line->line = sqlite3_column_int64(s, 2);
        }
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return rc == 0 ? find_beside(h, db, err) : rc;
}

void heap_walk_process(struct heap *h, size_t first, size_t count, const uint64_t *limits, const struct blocks *blocks,
                       const struct site_lines *site_line)
{
    struct spill spill = {0};
    for (size_t i = first; i < first + count; i++)
        walk_range(h, &h->ranges[i], limits[i], i + 1 < first + count ? &h->ranges[i + 1] : NULL, blocks, &spill,
                   site_line);
    for (size_t i = first; i < first + count; i++)
        sum_runs(h, &h->ranges[i]);
    walk_own(h, first, count, blocks, site_line);
}

int heap_name_lines(struct heap *h, sqlite3 *db, struct error *err)
{
    sort_lines(h);
    return name_lines(h, db, err);
}

int heap_load(sqlite3 *db, const struct instant *at, const struct blocks *blocks, const struct inherited *inherited,
              int64_t process_id, struct heap *heap, struct error *err)
{
    struct site_lines site_line = {0};
    uint64_t *limits = NULL;
    int64_t page = db_meta_int(db, "page_bytes", 4096);
    *heap = (struct heap){.page = page >= 512 && page <= 1 << 30 ? (uint32_t)page : 4096};
    int rc = heap_load_glibc(heap, db, at, process_id, 0, &limits, err);
    size_t limit_count = heap->range_count;
    if (rc == 0)
        rc = load_segments(heap, db, at, process_id, err);
    if (rc == 0)
        rc = site_lines_open(db, &site_line, err);
    if (rc == 0) {
        walk_all(heap, limits, limit_count, blocks, &site_line);
        rc = heap_name_lines(heap, db, err);
    }
    if (rc == 0)
        rc = heap_load_forked(heap, db, at, process_id, blocks, inherited, &site_line, err);
    site_lines_close(&site_line);
    free(limits);
    return rc;
}

void heap_free(struct heap *heap)
{
    for (uint32_t i = 0; i < heap->line_count; i++) {
        free(heap->lines[i].function);
        free(heap->lines[i].beside);
        free(heap->lines[i].file);
    }
    if (heap->forked)
        heap_free(heap->forked);
    free(heap->forked);
    free(heap->ranges);
    free(heap->runs);
    free(heap->lines);
    free(heap->place);
    map_close(&heap->line_of);
    map_close(&heap->site_of);
    *heap = (struct heap){0};
}

const struct heap_line *heap_line_of(const struct heap *heap, const struct heap_run *run)
{
    return run->line < heap->line_count ? &heap->lines[heap->place[run->line]] : NULL;
}

const struct heap_line *heap_line_of_block(const struct heap *heap, const struct block *block)
{
    uint64_t known = block->address ? map_get(&heap->site_of, block->site_id, block->forks > 0) : 0;
    return known ? &heap->lines[heap->place[known - 1]] : NULL;
}

const struct heap_range *heap_range_at(const struct heap *heap, uint32_t process_id, uint64_t address)
{
    struct heap_range key = {.process_id = process_id, .address = address};
    return address && heap->range_count
               ? bsearch(&key, heap->ranges, heap->range_count, sizeof *heap->ranges, by_address)
               : NULL;
}

const char *heap_name(char *text, const struct heap_range *range)
{
    static const char *const names[] = {"main arena", NULL, "own mappings", "segment", "Python's arena"};
    if (range->kind != HEAP_THREAD)
        snprintf(text, HEAP_NAME, "%s", names[range->kind]);
    else if (range->address == range->arena)
        snprintf(text, HEAP_NAME, "arena 0x%" PRIx64, range->arena);
    else
        snprintf(text, HEAP_NAME, "arena 0x%" PRIx64 ", heap 0x%" PRIx64, range->arena, range->address);
    return text;
}
