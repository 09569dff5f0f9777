/* What is there at the end of the history: segments, filled without gaps. */
#include "export_torch.h"

#include "../../common/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_block(const void *a, const void *b)
{
    const struct block *x = a, *y = b;
    if ((x->state == BLOCK_UNUSED) != (y->state == BLOCK_UNUSED))
        return x->state == BLOCK_UNUSED ? 1 : -1;
    return (x->address > y->address) - (x->address < y->address);
}

/* Where a segment is already, nothing is needed. */
static void add_region(struct trace *t, uint64_t at, uint64_t end)
{
    while (at < end) {
        uint32_t n = torch_segment_at(t, at);
        uint64_t to = n < t->segment_count && t->segments[n].start < end ? t->segments[n].start : end;
        if (to > at) {
            struct range r = {.start = at, .end = to};
            torch_segment_insert(t, n, &r);
            n++;
        }
        at = to < end ? t->segments[n].end : end;
    }
}

/* Regions beside each other are one. */
static void add_regions(struct trace *t)
{
    for (uint64_t first = 0, end; t->regions && first < TORCH_REGIONS; first = end + 1) {
        end = first;
        if (first % TORCH_PAGE_REGIONS == 0 && !t->regions[first / TORCH_PAGE_REGIONS])
            end = first + TORCH_PAGE_REGIONS - 1; /* none of the page */
        else
            while (end < TORCH_REGIONS && torch_has_region(t, end))
                end++;
        if (end > first && torch_has_region(t, first))
            add_region(t, first * TORCH_REGION_BYTES, end * TORCH_REGION_BYTES);
    }
}

/* What only an import knows of its segments. */
static void segment_properties(struct exporting *e, struct trace *t)
{
    static const char sql[] = "SELECT stream, pool, type, is_expandable, stack_id FROM segment WHERE device_id = ? AND "
                              "address = ? ORDER BY alloc_ns DESC, segment_id DESC LIMIT 1";
    sqlite3_stmt *s = NULL;
    if (!e->is_import || sqlite3_prepare_v2(e->db, sql, -1, &s, NULL) != SQLITE_OK)
        return;
    for (uint32_t i = 0; i < t->segment_count; i++) {
        struct range *r = &t->segments[i];
        long long pool[2] = {0, 0};
        sqlite3_bind_int64(s, 1, t->device_id);
        sqlite3_bind_int64(s, 2, (int64_t)r->start);
        if (sqlite3_step(s) == SQLITE_ROW) {
            r->stream = sqlite3_column_int64(s, 0);
            if (sscanf(db_text(s, 1), "%lld,%lld", &pool[0], &pool[1]) == 2) {
                r->pool[0] = pool[0];
                r->pool[1] = pool[1];
            }
            r->is_small = strcmp(db_text(s, 2), "small") == 0;
            r->is_expandable = sqlite3_column_int(s, 3) != 0;
            r->stack_id = sqlite3_column_int64(s, 4);
        }
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
}

/* The mapped parts of an expandable segment are one where they meet. Others stay apart: readers look for each where it
 * began. */
static void merge_segments(struct trace *t)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->segment_count; i++) {
        struct range *before = kept ? &t->segments[kept - 1] : NULL, *r = &t->segments[i];
        if (before && before->is_expandable && r->is_expandable && before->end == r->start &&
            before->stream == r->stream && memcmp(before->pool, r->pool, sizeof r->pool) == 0)
            before->end = r->end;
        else
            t->segments[kept++] = *r;
    }
    t->segment_count = kept;
}

static int64_t rounded(sqlite3_stmt *s, const struct trace *t, const struct block *b)
{
    int64_t size = b->size_bytes;
    if (!s)
        return size;
    sqlite3_bind_int64(s, 1, t->device_id);
    sqlite3_bind_int64(s, 2, (int64_t)b->address);
    if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int64(s, 0) >= size)
        size = sqlite3_column_int64(s, 0);
    sqlite3_reset(s);
    return size;
}

struct sums {
    int64_t allocated, active, requested;
};

static void put_block(struct exporting *e, uint64_t address, int64_t size, int64_t requested, enum snapshot_word state,
                      int64_t stack_id, int64_t *count)
{
    struct snapshot_writer *w = &e->writer;
    pickle_put_begin(&w->pickle, PICKLE_DICT);
    snapshot_put_item(w, WORD_address, (int64_t)address);
    snapshot_put_item(w, WORD_size, size);
    snapshot_put_item(w, WORD_requested_size, requested);
    snapshot_put_word(w, WORD_state);
    snapshot_put_word(w, state);
    torch_frames(e, stack_id);
    pickle_put_end(&w->pickle, PICKLE_DICT);
    pickle_put_next(&w->pickle, ++*count);
}

/* The blocks from *next on that lie in the segment, and what is between them. */
static void put_blocks(struct exporting *e, struct trace *t, const struct range *r, uint32_t *next, sqlite3_stmt *sizes,
                       struct sums *sums)
{
    int64_t count = 0;
    uint64_t at = r->start;
    snapshot_put_word(&e->writer, WORD_blocks);
    pickle_put_begin(&e->writer.pickle, PICKLE_LIST);
    for (; *next < t->block_count && t->blocks[*next].state && t->blocks[*next].address < r->end; ++*next) {
        const struct block *b = &t->blocks[*next];
        const struct block *after = *next + 1 < t->block_count && b[1].state ? &b[1] : NULL;
        uint64_t limit = after && after->address < r->end ? after->address : r->end;
        int64_t size = rounded(sizes, t, b);
        if (b->address < at || (uint64_t)b->size_bytes > limit - b->address) { /* across another, or past the end */
            e->left_out++;
            continue;
        }
        if ((uint64_t)size > limit - b->address)
            size = b->size_bytes;
        if (b->address > at)
            put_block(e, at, (int64_t)(b->address - at), 0, WORD_inactive, 0, &count);
        put_block(e, b->address, size, b->size_bytes,
                  b->state == BLOCK_PENDING ? WORD_active_pending_free : WORD_active_allocated, b->stack_id, &count);
        sums->active += size;
        sums->requested += b->size_bytes;
        sums->allocated += b->state == BLOCK_PENDING ? 0 : size;
        at = b->address + (uint64_t)size;
    }
    if (at < r->end)
        put_block(e, at, (int64_t)(r->end - at), 0, WORD_inactive, 0, &count);
    pickle_put_end(&e->writer.pickle, PICKLE_LIST);
}

static void put_segment(struct exporting *e, struct trace *t, const struct range *r, uint32_t *next,
                        sqlite3_stmt *sizes)
{
    struct snapshot_writer *w = &e->writer;
    struct sums sums = {0};
    pickle_put_begin(&w->pickle, PICKLE_DICT);
    snapshot_put_item(w, WORD_device, t->number);
    snapshot_put_item(w, WORD_address, (int64_t)r->start);
    snapshot_put_item(w, WORD_total_size, (int64_t)(r->end - r->start));
    snapshot_put_item(w, WORD_stream, r->stream);
    snapshot_put_word(w, WORD_segment_type);
    snapshot_put_word(w, r->is_small ? WORD_small : WORD_large);
    snapshot_put_word(w, WORD_segment_pool_id);
    pickle_put_pair(&w->pickle, r->pool[0], r->pool[1]);
    snapshot_put_word(w, WORD_is_expandable);
    pickle_put_bool(&w->pickle, r->is_expandable);
    torch_frames(e, r->stack_id);
    put_blocks(e, t, r, next, sizes, &sums);
    snapshot_put_item(w, WORD_allocated_size, sums.allocated);
    snapshot_put_item(w, WORD_active_size, sums.active);
    snapshot_put_item(w, WORD_requested_size, sums.requested);
    pickle_put_end(&w->pickle, PICKLE_DICT);
}

void torch_final_write(struct exporting *e, struct trace *t, int64_t *count)
{
    static const char sql[] =
        "SELECT size_bytes FROM segment_block WHERE device_id = ? AND address = ? AND state <> 'inactive'";
    sqlite3_stmt *sizes = NULL;
    uint32_t next = 0;
    if (e->is_import) {
        /* found by address for each block that is left */
        sqlite3_exec(e->db,
                     "CREATE TEMP TABLE IF NOT EXISTS block_size AS SELECT device_id, address, size_bytes, state FROM "
                     "main.segment_block WHERE state <> 'inactive'; CREATE INDEX IF NOT EXISTS temp.block_size_at "
                     "ON block_size(device_id, address)",
                     NULL, NULL, NULL);
        sqlite3_prepare_v2(e->db, "SELECT size_bytes FROM temp.block_size WHERE device_id = ? AND address = ?", -1,
                           &sizes, NULL);
        if (!sizes)
            sqlite3_prepare_v2(e->db, sql, -1, &sizes, NULL);
    }
    add_regions(t);
    segment_properties(e, t);
    merge_segments(t);
    if (t->block_count)
        qsort(t->blocks, t->block_count, sizeof *t->blocks, by_block);
    for (uint32_t i = 0; i < t->segment_count && e->rc == 0; i++) {
        while (next < t->block_count && t->blocks[next].state && t->blocks[next].address < t->segments[i].start) {
            e->left_out++; /* in no segment */
            next++;
        }
        put_segment(e, t, &t->segments[i], &next, sizes);
        pickle_put_next(&e->writer.pickle, ++*count);
    }
    sqlite3_finalize(sizes);
}
