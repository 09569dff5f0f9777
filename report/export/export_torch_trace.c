/* The events of a device as entries of its history. */
#include "export_torch.h"

#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/search.h"

#include <stdlib.h>
#include <string.h>

#define ADDRESS_BITS  47
#define PROCESSES_MAX 63 /* whose addresses are told apart: numbers in the viewer are doubles, with 53 bits */

/* --- state ------------------------------------------------------------------------------------------------------ */

struct row { /* of v_event */
    int64_t time_us, size_bytes, stack_id, stream;
    int64_t free_stack_id; /* 0: not recorded */
    uint64_t address;
    uint8_t kind;
    enum {
        ROW_OTHER,
        ROW_ALLOC,
        ROW_FREE,
        ROW_FREE_REQUESTED,
        ROW_SEGMENT_ALLOC,
        ROW_SEGMENT_FREE,
        ROW_TO_SEGMENT,
        ROW_OOM
    } op;
    int is_silent;      /* of a state that no entry led to */
    int is_segment_map; /* a part of an expandable segment, or memory mapped as such are */
};

/* Where block and segment are one. Not on the host: what a map leaves there the heap takes next, and the reverse, so
 * that one region for all of them is all that can be said. */
static int is_own_segment(const struct exporting *e, const struct trace *t, unsigned kind)
{
    return !e->is_import && t->device_id != 0 && kind != KIND_heap && kind != KIND_pool && kind != KIND_sub;
}

uint32_t torch_segment_at(const struct trace *t, uint64_t address) /* the first that ends after it */
{
    const uint32_t low = SEARCH_FIRST(t->segment_count, i, !(t->segments[i].end > address));
    return low;
}

void torch_segment_insert(struct trace *t, uint32_t at, const struct range *r)
{
    ARRAY_ROOM(t->segments, t->segment_count + 1ul, t->segment_capacity);
    memmove(&t->segments[at + 1], &t->segments[at], (t->segment_count - at) * sizeof *t->segments);
    t->segments[at] = *r;
    t->segment_count++;
}

static void segment_cut(struct trace *t, uint64_t start, uint64_t end)
{
    for (uint32_t i; (i = torch_segment_at(t, start)) < t->segment_count && t->segments[i].start < end;) {
        struct range r = t->segments[i], rest = r;
        memmove(&t->segments[i], &t->segments[i + 1], (--t->segment_count - i) * sizeof r);
        if (r.end > end) {
            rest.start = end;
            torch_segment_insert(t, i, &rest);
        }
        if (r.start < start) {
            rest = r;
            rest.end = start;
            torch_segment_insert(t, i, &rest);
        }
    }
}

static void segment_add(struct trace *t, const struct row *r)
{
    struct range range = {
        r->address, r->address + (uint64_t)r->size_bytes, r->stack_id, r->stream, {0, 0}, r->is_segment_map, 0};
    if (r->size_bytes <= 0)
        return;
    segment_cut(t, range.start, range.end);
    torch_segment_insert(t, torch_segment_at(t, range.start), &range);
}

int torch_has_region(const struct trace *t, uint64_t number)
{
    const uint64_t *page = t->regions ? t->regions[number / TORCH_PAGE_REGIONS] : NULL;
    return page && (page[number % TORCH_PAGE_REGIONS / 64] >> number % 64 & 1);
}

static void add_region(struct trace *t, uint64_t number)
{
    if (!t->regions)
        t->regions = xcalloc(TORCH_PAGES, sizeof *t->regions);
    uint64_t **page = &t->regions[number / TORCH_PAGE_REGIONS];
    if (!*page)
        *page = xcalloc(TORCH_PAGE_REGIONS / 64, sizeof **page);
    (*page)[number % TORCH_PAGE_REGIONS / 64] |= 1ull << number % 64;
}

static void cover(struct trace *t, uint64_t address, int64_t size_bytes)
{
    uint64_t end = address + (size_bytes > 0 ? (uint64_t)size_bytes : 1);
    uint64_t to = address;
    for (uint32_t i = torch_segment_at(t, address); i < t->segment_count && t->segments[i].start <= to && to < end; i++)
        to = t->segments[i].end; /* a block may lie in several that meet */
    if (to >= end)
        return;
    for (uint64_t n = address / TORCH_REGION_BYTES; n <= (end - 1) / TORCH_REGION_BYTES && n < TORCH_REGIONS; n++)
        add_region(t, n);
}

/* --- entries ---------------------------------------------------------------------------------------------------- */

static void put_entry(struct exporting *e, struct trace *t, enum snapshot_word action, const struct row *r,
                      int64_t size_bytes, int64_t stack_id)
{
    struct snapshot_writer *w = &e->writer;
    pickle_put_begin(&w->pickle, PICKLE_DICT);
    snapshot_put_word(w, WORD_action);
    snapshot_put_word(w, action);
    snapshot_put_item(w, action == WORD_oom ? WORD_device_free : WORD_addr, (int64_t)r->address);
    snapshot_put_item(w, WORD_size, size_bytes);
    snapshot_put_item(w, WORD_stream, r->stream);
    snapshot_put_item(w, WORD_time_us, r->time_us);
    torch_import_texts(e, t);
    if ((action == WORD_free_requested || action == WORD_free_completed) && !r->free_stack_id)
        torch_frames_freed(e, stack_id);
    else if (r->free_stack_id)
        torch_frames(e, r->free_stack_id);
    else
        torch_frames(e, stack_id);
    pickle_put_end(&w->pickle, PICKLE_DICT);
    t->count++;
    e->entries++;
    pickle_put_next(&w->pickle, t->count);
}

/* Of a block that is born, the place of one that is gone where there is one: memory does not follow the number of
 * events, whether addresses are used again or not. */
static uint32_t place_block(struct trace *t, const struct row *r)
{
    uint32_t next = t->unused_count ? t->unused[t->unused_count - 1] : t->block_count;
    uint32_t index = map_number_or(&t->live, r->address, r->kind, next);
    if (index != next)
        return index;
    if (t->unused_count)
        t->unused_count--;
    else
        (void)ARRAY_ADD(t->blocks, t->block_count, t->block_capacity);
    return index;
}

static void remove_block(struct trace *t, uint32_t index)
{
    struct block *b = &t->blocks[index];
    map_take(&t->live, b->address, b->kind);
    b->state = BLOCK_UNUSED;
    *ARRAY_ADD(t->unused, t->unused_count, t->unused_capacity) = index;
}

static void give_alloc(struct exporting *e, struct trace *t, const struct row *r)
{
    struct row segment = *r;
    const uint32_t index = place_block(t, r);
    t->blocks[index] = (struct block){r->address, r->size_bytes, r->stack_id, r->kind, BLOCK_ACTIVE};
    if (is_own_segment(e, t, r->kind)) {
        segment.size_bytes = r->size_bytes > 0 ? r->size_bytes : 1;
        if (!r->is_silent)
            put_entry(e, t, r->is_segment_map ? WORD_segment_map : WORD_segment_alloc, &segment, segment.size_bytes,
                      r->stack_id);
        segment_add(t, &segment);
    } else {
        cover(t, r->address, r->size_bytes);
    }
    if (!r->is_silent)
        put_entry(e, t, WORD_alloc, r, r->size_bytes, r->stack_id);
}

static void give_free(struct exporting *e, struct trace *t, const struct row *r)
{
    uint32_t index = map_number(&t->live, r->address, r->kind);
    struct block *b = index == MAP_NONE ? NULL : &t->blocks[index];
    int was_pending = b && b->state == BLOCK_PENDING;
    int64_t stack_id = b ? b->stack_id : r->stack_id;
    if (r->op == ROW_FREE_REQUESTED) {
        if (b)
            b->state = BLOCK_PENDING;
        if (!r->is_silent)
            put_entry(e, t, WORD_free_requested, r, r->size_bytes, stack_id);
        return;
    }
    if (!b) /* its birth is not kept: its segment has to be there from the start */
        cover(t, r->address, r->size_bytes);
    if (!r->is_silent && !e->is_import && !was_pending)
        put_entry(e, t, WORD_free_requested, r, r->size_bytes, stack_id);
    if (!r->is_silent)
        put_entry(e, t, WORD_free_completed, r, r->size_bytes, stack_id);
    if (b)
        remove_block(t, index);
    if (b && is_own_segment(e, t, r->kind) && r->op == ROW_FREE) {
        int64_t bytes = r->size_bytes > 0 ? r->size_bytes : 1;
        if (!r->is_silent)
            put_entry(e, t, r->is_segment_map ? WORD_segment_unmap : WORD_segment_free, r, bytes, 0);
        segment_cut(t, r->address, r->address + (uint64_t)bytes);
    }
}

/* Only a part of a segment goes. */
static int is_part(const struct trace *t, const struct row *r)
{
    uint32_t i = torch_segment_at(t, r->address);
    uint64_t end = r->address + (uint64_t)r->size_bytes;
    return i < t->segment_count && t->segments[i].start < end &&
           (t->segments[i].start != r->address || t->segments[i].end != end);
}

static void give_segment(struct exporting *e, struct trace *t, const struct row *r)
{
    int is_alloc = r->op == ROW_SEGMENT_ALLOC;
    if (t->device_id == 0 && !e->is_import)
        return;
    enum snapshot_word action = is_alloc && !r->is_segment_map       ? WORD_segment_alloc
                                : is_alloc                           ? WORD_segment_map
                                : r->is_segment_map || is_part(t, r) ? WORD_segment_unmap
                                                                     : WORD_segment_free;
    if (is_alloc)
        segment_add(t, r);
    else
        segment_cut(t, r->address, r->address + (uint64_t)r->size_bytes);
    if (!r->is_silent)
        put_entry(e, t, action, r, r->size_bytes, is_alloc ? r->stack_id : 0);
}

/* The marks of an imported snapshot from before that time. */
static void give_marks(struct exporting *e, struct trace *t, int64_t before_us, int is_silent)
{
    struct row r = {.op = ROW_OTHER};
    const char *name;
    while ((name = torch_import_mark(e, t, before_us, &r.time_us))) {
        torch_import_next(e, t);
        if (!is_silent)
            put_entry(e, t, strcmp(name, "snapshot") == 0 ? WORD_snapshot : WORD_user_defined, &r, 0, 0);
        torch_import_mark_done(e, t);
    }
}

static void give_row(struct exporting *e, struct trace *t, const struct row *r)
{
    switch (r->op) {
    case ROW_ALLOC:
        give_alloc(e, t, r);
        break;
    case ROW_FREE:
    case ROW_FREE_REQUESTED:
    case ROW_TO_SEGMENT:
        give_free(e, t, r);
        break;
    case ROW_SEGMENT_ALLOC:
    case ROW_SEGMENT_FREE:
        give_segment(e, t, r);
        break;
    case ROW_OOM:
        if (!r->is_silent)
            put_entry(e, t, WORD_oom, r, r->size_bytes, r->stack_id);
        break;
    default:
        break;
    }
}

/* --- reading events --------------------------------------------------------------------------------------------- */

static const char event_sql[] =
    "SELECT e.time_ns, e.op, e.address, e.size_bytes, e.stack_id, e.kind, e.hook, e.process_id, t.tid, "
    "e.free_stack_id FROM v_event e "
    "LEFT JOIN thread t ON t.thread_id = e.thread_id WHERE e.device = ?1 AND (?2 = 0 OR e.process_id = ?2)";

static uint8_t kind_number(const char *name)
{
    for (unsigned kind = 0; kind < KIND_COUNT; kind++)
        if (strcmp(kind_name(kind), name) == 0)
            return (uint8_t)kind;
    return KIND_heap;
}

/* Addresses of several processes in one numbering. 0 or -1: no more of them. */
static int place_address(struct trace *t, int64_t process_id, uint64_t *address)
{
    uint32_t order = map_number(&t->processes, (uint64_t)process_id, 0);
    if (order == MAP_NONE) {
        order = t->process_count++;
        map_set_number(&t->processes, (uint64_t)process_id, 0, order);
    }
    *address = (*address & ((1ull << ADDRESS_BITS) - 1)) | (uint64_t)order << ADDRESS_BITS;
    return order < PROCESSES_MAX ? 0 : -1;
}

static int read_row(const struct exporting *e, struct trace *t, sqlite3_stmt *s, struct row *r)
{
    static const struct {
        const char *name;
        int op;
    } ops[] = {{"alloc", ROW_ALLOC},
               {"realloc", ROW_ALLOC},
               {"free", ROW_FREE},
               {"free_requested", ROW_FREE_REQUESTED},
               {"segment_alloc", ROW_SEGMENT_ALLOC},
               {"segment_free", ROW_SEGMENT_FREE},
               {"to_segment", ROW_TO_SEGMENT},
               {"oom", ROW_OOM}};
    const char *name = db_text(s, 1), *hook = db_text(s, 6);
    *r = (struct row){
        .time_us = e->start_us + sqlite3_column_int64(s, 0) / 1000,
        .address = (uint64_t)sqlite3_column_int64(s, 2),
        .size_bytes = sqlite3_column_int64(s, 3),
        .stack_id = sqlite3_column_int64(s, 4),
        .kind = kind_number(db_text(s, 5)),
        .free_stack_id = sqlite3_column_int64(s, 9),
        .stream = e->is_import ? sqlite3_column_int64(s, 8) : 0,
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(name, ops[i].name) == 0)
            r->op = (unsigned)ops[i].op;
    if (e->is_import) {
        r->is_silent = strcmp(hook, "before the history") == 0 || strcmp(hook, "final state") == 0;
        r->is_segment_map = strcmp(hook, "segment_map") == 0 || strcmp(hook, "segment_unmap") == 0;
    } else {
        r->is_segment_map = r->kind == KIND_vmm;
    }
    if (r->op == ROW_OTHER)
        return 0;
    if (r->size_bytes < 0 || r->size_bytes >= 1ll << ADDRESS_BITS)
        return -1;
    return r->op == ROW_OOM ? 0 : place_address(t, sqlite3_column_int64(s, 7), &r->address);
}

/* What the device had free at its n-th failure. */
static int64_t oom_free(struct exporting *e, const struct trace *t, int64_t n)
{
    sqlite3_stmt *s = NULL;
    int64_t bytes = 0;
    if (sqlite3_prepare_v2(e->db,
                           "SELECT device_free_bytes FROM oom WHERE device_id = ? ORDER BY oom_id LIMIT 1 OFFSET ?", -1,
                           &s, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(s, 1, t->device_id);
        sqlite3_bind_int64(s, 2, n);
        if (sqlite3_step(s) == SQLITE_ROW)
            bytes = sqlite3_column_int64(s, 0);
    }
    sqlite3_finalize(s);
    return bytes < 0 ? 0 : bytes;
}

static int is_block_row(const struct row *r)
{
    return r->op == ROW_ALLOC || r->op == ROW_FREE || r->op == ROW_FREE_REQUESTED || r->op == ROW_TO_SEGMENT;
}

/* Events that --max-events leaves out: they lead to the state in which the history begins. */
static int count_early(struct exporting *e, const struct trace *t, const char *device, int64_t *early,
                       struct error *err)
{
    static const char sql[] =
        "SELECT count(*) FROM v_event e WHERE e.device = ?1 AND (?2 = 0 OR e.process_id = ?2) AND e.op <> 'end' AND "
        "e.hook NOT IN ('before the history', 'final state')";
    sqlite3_stmt *s = NULL;
    int64_t count = 0;
    int rc = e->options->max_events ? db_prepare(e->db, sql, &s, err) : 0;
    if (s) {
        sqlite3_bind_text(s, 1, device, -1, SQLITE_TRANSIENT);
        sqlite3_bind_int64(s, 2, t->process_id);
        if (sqlite3_step(s) == SQLITE_ROW)
            count = sqlite3_column_int64(s, 0);
        else
            rc = db_error(e->db, err);
    }
    sqlite3_finalize(s);
    *early = count > e->options->max_events ? count - e->options->max_events : 0;
    return rc;
}

int torch_trace_write(struct exporting *e, struct trace *t, const char *device, struct error *err)
{
    sqlite3_stmt *s = NULL;
    struct row r;
    int64_t ooms = 0, early = 0, seen = 0;
    int step = SQLITE_DONE, rc = count_early(e, t, device, &early, err);
    if (rc == 0)
        rc = db_prepare(e->db, event_sql, &s, err);
    if (rc == 0)
        rc = torch_import_open(e, t, err);
    e->early_left_out += early;
    pickle_put_begin(&e->writer.pickle, PICKLE_LIST);
    if (rc == 0) {
        sqlite3_bind_text(s, 1, device, -1, SQLITE_TRANSIENT);
        sqlite3_bind_int64(s, 2, t->process_id);
        while (e->rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
            const int64_t time_ns = sqlite3_column_int64(s, 0);
            const struct export_options *o = e->options;
            if (o->has_window && o->to_ns != INT64_MAX && time_ns >= o->to_ns) {
                e->has_late = 1;
                break;
            }
            if (read_row(e, t, s, &r)) {
                e->left_out++;
                continue;
            }
            if (r.op == ROW_OTHER)
                continue;
            if (!r.is_silent) {
                int is_before = o->has_window && time_ns < o->from_ns;
                e->window_left_out += is_before;
                r.is_silent = seen++ < early || is_before;
                give_marks(e, t, r.time_us, r.is_silent);
                torch_import_next(e, t);
            }
            if (is_block_row(&r) && r.size_bytes < e->options->min_size_bytes) {
                e->small_left_out += r.op == ROW_ALLOC;
                continue;
            }
            if (r.op == ROW_OOM)
                r.address = (uint64_t)oom_free(e, t, ooms++);
            give_row(e, t, &r);
        }
        if (step != SQLITE_DONE && step != SQLITE_ROW)
            rc = db_error(e->db, err);
    }
    give_marks(e, t, INT64_MAX, 0);
    torch_import_close(t);
    pickle_put_end(&e->writer.pickle, PICKLE_LIST);
    sqlite3_finalize(s);
    return rc ? rc : e->rc;
}
