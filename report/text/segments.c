/* Fragmentation: the segments that are live at an instant, how full they are, and what keeps them from being given
 * back. Addresses are in the events alone, so these are replayed up to that instant. */
#include "report.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/units.h"
#include "../print/listing.h"
#include "../query/at.h"
#include "../query/device.h"
#include "../query/ending.h"
#include "../query/heap.h"
#include "../query/inherited.h"
#include "../query/names.h"
#include "../query/process_label.h"
#include "../query/rows.h"
#include "arenas.h"
#include "heap_lines.h"
#include "heap_returned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char none[] = "No segments: nothing in this recording is known to hand out parts of its memory.";
enum { DEFAULT_TOP = 20, NAME = 2, PID = 23, PROCESS = 24 /* columns */ };

struct segment {
    uint64_t address, size, live_bytes, hole_bytes, block_count;
    uint64_t joined_address; /* of the first of those that lie one behind the other up to this one */
    int64_t alloc_ns;
    const struct block *pin;              /* its oldest block; NULL: it is empty */
    uint32_t process_id, device, site_id; /* of the stack that took it; 0: not known */
    int is_opaque;                        /* what is live in it nobody sees: an arena of Python's */
    char kind[16], *name;                 /* what the program calls it; NULL: nothing */
};

struct fragments {
    sqlite3 *db;
    const struct report_options *options;
    const struct report_out *out;
    char *cwd, *devices[INSTANT_DEVICES];
    struct instant at;
    struct blocks blocks; /* sorted */
    struct heap heap;
    struct segment *segments;
    size_t segment_count;
    size_t opaque_count; /* of them; once measured they are the last ones */
};

/* --- the segments of the instant --- */

static int find_instants(struct fragments *f, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = 0;
    instant_at(&f->at, f->options->at == REPORT_AT_TIME ? f->options->at_ns : INT64_MAX);
    if (f->options->at == REPORT_AT_ALL)
        instant_end(&f->at);
    if (f->options->at == REPORT_AT_PEAK)
        rc = instant_peak(f->db, &f->at, err);
    if (rc == 0)
        rc = db_prepare(f->db, "SELECT device_id, name FROM device", &s, err);
    while (rc == 0 && sqlite3_step(s) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(s, 0);
        if (id < 0 || id >= INSTANT_DEVICES)
            continue;
        free(f->devices[id]);
        f->devices[id] = xstrdup(db_text(s, 1));
    }
    sqlite3_finalize(s);
    return rc;
}

/* At an instant those of a process that had ended are gone; without one each process's at its own end count. */
static int is_gone(sqlite3_stmt *s, int64_t at_ns)
{
    if (sqlite3_column_type(s, 5) != SQLITE_NULL)
        return sqlite3_column_int64(s, 5) <= at_ns;
    return at_ns < INT64_MAX && sqlite3_column_type(s, 10) != SQLITE_NULL && sqlite3_column_int64(s, 10) < at_ns;
}

static int load_segments(struct fragments *f, struct error *err)
{
    sqlite3_stmt *s = NULL;
    size_t room = 0;
    int rc = db_prepare(
        f->db,
        "SELECT g.device_id, g.process_id, g.address, g.size_bytes, g.alloc_ns, g.free_ns, g.kind,"
        " " NAME_OF_SEGMENT ","
        " g.kind = 'arena', s.site_id, p.end_ns, t.time_ns FROM segment g JOIN device d USING(device_id) LEFT JOIN "
        "site s ON"
        " s.stack_id = g.stack_id AND s.device_id = g.device_id AND s.kind = g.kind LEFT JOIN main.process p ON"
        " p.process_id = g.process_id LEFT JOIN teardown t ON t.process_id = g.process_id AND ?2 WHERE " DEVICE_IS(
            "d.name", "?1") " AND g.address >= 0 AND g.size_bytes > 0 ORDER BY g.process_id, g.device_id, g.address",
        &s, err);
    if (rc)
        return rc;
    sqlite3_bind_text(s, 1, f->options->device, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, f->at.is_before_teardown);
    while (sqlite3_step(s) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(s, 0), alloc_ns = sqlite3_column_int64(s, 4);
        int64_t at_ns = id < 0 || id >= INSTANT_DEVICES ? -1 : f->at.end_ns[id];
        if (at_ns >= 0 && sqlite3_column_type(s, 11) != SQLITE_NULL)
            at_ns = sqlite3_column_int64(s, 11);
        if (alloc_ns > at_ns || is_gone(s, at_ns))
            continue;
        ARRAY_ROOM(f->segments, f->segment_count + 1ul, room);
        struct segment *g = &f->segments[f->segment_count++];
        *g = (struct segment){.address = (uint64_t)sqlite3_column_int64(s, 2),
                              .size = (uint64_t)sqlite3_column_int64(s, 3),
                              .alloc_ns = alloc_ns,
                              .process_id = (uint32_t)sqlite3_column_int64(s, 1),
                              .device = (uint32_t)id,
                              .site_id = (uint32_t)sqlite3_column_int64(s, 9),
                              .is_opaque = sqlite3_column_int(s, 8)};
        f->opaque_count += (size_t)g->is_opaque;
        snprintf(g->kind, sizeof g->kind, "%s", db_text(s, 6));
        if (sqlite3_column_type(s, 7) != SQLITE_NULL)
            g->name = xstrdup(db_text(s, 7));
    }
    sqlite3_finalize(s);
    return 0;
}

/* --- how they fit --- */

static uint32_t place_of(const struct segment *g)
{
    return g->process_id << 8 | g->device;
}

static uint64_t end_of(const struct segment *g)
{
    uint64_t end;
    return __builtin_add_overflow(g->address, g->size, &end) ? UINT64_MAX : end;
}

/* An allocator may join segments that lie one behind the other: a block that begins in one goes on in the next. before:
 * the segment before this one, NULL: none. One that begins before all of them holds the segments, it is not in them. */
static size_t first_block(const struct fragments *f, struct segment *g, const struct segment *before)
{
    size_t first = live_blocks_find(&f->blocks, place_of(g), g->address);
    int is_behind = before && place_of(before) == place_of(g) && end_of(before) == g->address;
    g->joined_address = is_behind ? before->joined_address : g->address;
    const struct block *b = first ? &f->blocks.slots[first - 1] : NULL;
    return b && b->space >> 8 == place_of(g) && b->address >= g->joined_address &&
                   b->size_bytes > g->address - b->address
               ? first - 1
               : first;
}

static void measure(struct fragments *f, struct segment *g, const struct segment *before)
{
    uint64_t at = g->address, end = end_of(g);
    for (size_t low = first_block(f, g, before); low < f->blocks.count; low++) {
        const struct block *b = &f->blocks.slots[low];
        if (b->space >> 8 != place_of(g) || b->address >= end)
            break;
        uint64_t from = b->address > g->address ? b->address : g->address, hole = from > at ? from - at : 0;
        uint64_t rest = b->size_bytes - (from - b->address), size = rest < end - from ? rest : end - from;
        if (hole > g->hole_bytes)
            g->hole_bytes = hole;
        if (from + size > at)
            at = from + size;
        g->live_bytes += size;
        g->block_count++;
        if (!g->pin || b->time_ns < g->pin->time_ns)
            g->pin = b;
    }
    if (end - at > g->hole_bytes)
        g->hole_bytes = end - at;
    if (g->live_bytes > g->size)
        g->live_bytes = g->size;
}

static int by_waste(const void *x, const void *y)
{
    const struct segment *a = x, *b = y;
    if (a->is_opaque != b->is_opaque)
        return a->is_opaque - b->is_opaque;
    uint64_t wasted[2] = {a->size - a->live_bytes, b->size - b->live_bytes};
    if (wasted[0] != wasted[1])
        return wasted[0] > wasted[1] ? -1 : 1;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

static void measure_all(struct fragments *f)
{
    for (size_t i = 0; i < f->segment_count; i++) {
        struct segment *g = &f->segments[i];
        measure(f, g, i ? g - 1 : NULL);
        f->opaque_count -= g->is_opaque && g->block_count; /* --python-allocators: its objects are seen */
        g->is_opaque &= !g->block_count;
    }
    if (f->segment_count)
        qsort(f->segments, f->segment_count, sizeof *f->segments, by_waste);
}

/* --- showing it --- */

struct line {
    char *function, *file;
    int64_t line;
};

static const char line_sql[] =
    "SELECT " ROW_FUNCTION_SQL ", p.path, l.line FROM site_line sl JOIN line l USING(line_id) LEFT JOIN function fn "
    "USING(function_id) LEFT JOIN file p ON p.file_id = l.file_id LEFT JOIN module_key m ON m.key_id = l.module_key_id "
    "WHERE sl.site_id = ?";

static struct line line_of(sqlite3_stmt *s, uint32_t site_id)
{
    struct line l = {NULL, NULL, 0};
    if (!site_id || !s)
        return l;
    sqlite3_bind_int64(s, 1, site_id);
    if (sqlite3_step(s) == SQLITE_ROW) {
        l.function = sqlite3_column_type(s, 0) == SQLITE_NULL ? NULL : xstrdup(db_text(s, 0));
        l.file = sqlite3_column_type(s, 1) == SQLITE_NULL ? NULL : xstrdup(db_text(s, 1));
        l.line = sqlite3_column_int64(s, 2);
    }
    sqlite3_reset(s);
    return l;
}

static void line_free(struct line *l)
{
    free(l->function);
    free(l->file);
}

/* Whether a device without segments has pools or mappings: their reserved bytes are known as sums alone. */
static int has_sums(const struct fragments *f)
{
    sqlite3_stmt *s = NULL;
    int found = 0;
    if (sqlite3_prepare_v2(f->db,
                           "SELECT 1 FROM v_total t WHERE t.kind IN ('pool', 'vmm') AND t.peak_reserved_bytes > 0"
                           " AND " DEVICE_IS("t.device", "?1") " AND NOT EXISTS (SELECT 1 FROM segment g JOIN device d"
                                                               " USING(device_id) WHERE d.name = t.device)",
                           -1, &s, NULL) == SQLITE_OK &&
        sqlite3_bind_text(s, 1, f->options->device, -1, SQLITE_STATIC) == SQLITE_OK)
        found = sqlite3_step(s) == SQLITE_ROW;
    sqlite3_finalize(s);
    return found;
}

/* One row a device: all its segments. */
static void print_devices(const struct fragments *f)
{
    static const struct column columns[] = {
        COLUMN(NULL, "device", TEXT, .none = "?"),
        COLUMN(NULL, "segments", COUNT),
        COLUMN(NULL, "size", BYTES),
        COLUMN(NULL, "live", BYTES),
        COLUMN(NULL, "", PERCENT),
        COLUMN(NULL, "in holes", BYTES),
        COLUMN(NULL, "largest\nhole", BYTES),
        COLUMN(NULL, "empty\nsegments", COUNT, .flags = COLUMN_OPTIONAL),
    };
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), f->out, NULL);
    for (unsigned d = 0; d < INSTANT_DEVICES; d++) {
        uint64_t count = 0, reserved = 0, live = 0, hole = 0, empty = 0;
        for (size_t i = 0; i < f->segment_count; i++) {
            const struct segment *g = &f->segments[i];
            if (g->device != d || g->is_opaque)
                continue;
            count++;
            reserved += g->size;
            live += g->live_bytes;
            empty += !g->block_count;
            hole = g->hole_bytes > hole ? g->hole_bytes : hole;
        }
        if (!count)
            continue;
        listing_text(l, f->devices[d]);
        listing_int(l, (int64_t)count);
        listing_int(l, (int64_t)reserved);
        listing_int(l, (int64_t)live);
        listing_share(l, (int64_t)live, (int64_t)reserved);
        listing_int(l, (int64_t)(reserved - live));
        listing_int(l, (int64_t)hole);
        listing_int(l, (int64_t)empty);
    }
    int sums = has_sums(f), known = (int)!!db_int(f->db, "SELECT count(*) FROM segment", 0);
    if (listing_rows(l))
        listing_print(l);
    else if (!f->heap.range_count && !f->heap.forked && !f->opaque_count && (known || !sums))
        table_prose(
            f->out, TABLE_PLAIN,
            known ? "No segments at that time; --at peak shows those of each device's peak, --at TIME those of an "
                    "instant."
                  : none);
    if (sums)
        table_prose(f->out, TABLE_PLAIN,
                    "What the driver's pools and mappings reserve is known as sums alone and not listed as segments "
                    "(docs/devices.md).");
    listing_close(l);
}

static const struct heap_range *heap_at(const struct fragments *f, const struct segment *g)
{
    return g->device == 0 ? heap_range_at(&f->heap, g->process_id, g->address) : NULL;
}

static void list_pages(struct listing *l, const struct heap_range *r)
{
    listing_int_if(l, r != NULL, r ? (int64_t)r->pinned_bytes : 0);
    listing_int_if(l, r != NULL, r ? (int64_t)r->shared_bytes : 0);
    listing_int_if(l, r != NULL, r ? (int64_t)r->held_bytes : 0);
    listing_int_if(l, r != NULL, r ? (int64_t)r->top_bytes : 0);
}

/* Of a row; NULL where the file is damaged. */
struct queries {
    sqlite3_stmt *line, *process;
};

static void list_segment(const struct fragments *f, const struct queries *q, struct listing *l, const struct segment *g)
{
    const struct block *pin = g->pin;
    struct line line = line_of(q->line, pin ? pin->site_id : 0), taker = line_of(q->line, g->site_id);
    int is_people = f->out->format == REPORT_TEXT, is_seen = !g->is_opaque;
    listing_text(l, f->devices[g->device]);
    listing_text(l, g->kind);
    listing_text(l, g->name);
    listing_int(l, g->process_id);
    listing_int(l, (int64_t)g->address);
    listing_int(l, (int64_t)g->size);
    listing_int(l, g->alloc_ns);
    listing_int_if(l, is_seen, (int64_t)g->live_bytes);
    listing_share(l, (int64_t)g->live_bytes, (int64_t)g->size);
    listing_int_if(l, is_seen, (int64_t)g->block_count);
    listing_int_if(l, is_seen, (int64_t)g->hole_bytes);
    listing_int_if(l, pin != NULL, pin ? (int64_t)pin->size_bytes : 0);
    listing_int_if(l, pin != NULL, pin ? (int64_t)pin->time_ns : 0);
    listing_text(l, line.function || !is_people ? line.function : pin ? "??" : "(no block)");
    listing_text(l, line.file);
    listing_int_if(l, line.line > 0, line.line);
    listing_text(l, taker.function);
    listing_text(l, taker.file);
    listing_int_if(l, taker.line > 0, taker.line);
    list_pages(l, is_people ? NULL : heap_at(f, g));
    struct buf name = BUF(1 << 16);
    int64_t pid = process_label(q->process, g->process_id, &name);
    listing_int_if(l, pid >= 0, pid);
    listing_text(l, pid >= 0 ? buf_text(&name) : NULL);
    buf_free(&name);
    line_free(&line);
    line_free(&taker);
}

/* People are shown those whose blocks are seen, the others by arenas_print. */
static void list_segments(const struct fragments *f)
{
    struct column columns[] = {
        COLUMN("device", "device", TEXT, .place = 6, .none = "?"),
        COLUMN("kind", NULL, TEXT),
        [NAME] = COLUMN("name", "name", TEXT, .place = 7, .cut = TEXT_CUT_RIGHT, .flags = COLUMN_OPTIONAL),
        COLUMN("process_id", NULL, NUMBER),
        COLUMN("address", NULL, NUMBER),
        COLUMN("size_bytes", "size", BYTES, .place = 1),
        COLUMN("alloc_ns", NULL, NS),
        COLUMN("live_bytes", "live", BYTES, .place = 2),
        COLUMN(NULL, "", PERCENT, .place = 3),
        COLUMN("live_count", "blocks", COUNT, .place = 5, .flags = COLUMN_OPTIONAL),
        COLUMN("largest_hole_bytes", "largest\nhole", BYTES, .place = 4),
        COLUMN("pin_bytes", NULL, BYTES),
        COLUMN("pin_ns", "since", NS, .place = 9, .flags = COLUMN_OPTIONAL),
        COLUMN("pin_function", "pinned by", TEXT, .place = 8, .cut = TEXT_CUT_NAME),
        COLUMN("pin_file", "source", SOURCE, .place = 10, .cut = TEXT_CUT_LEFT),
        COLUMN("pin_line", NULL, NUMBER),
        COLUMN("function", NULL, TEXT),
        COLUMN("file", NULL, TEXT),
        COLUMN("line", NULL, NUMBER),
        COLUMN("pinned_page_bytes", NULL, BYTES),
        COLUMN("shared_page_bytes", NULL, BYTES),
        COLUMN("held_page_bytes", NULL, BYTES),
        COLUMN("top_page_bytes", NULL, BYTES),
        [PID] = COLUMN("pid", "pid", NUMBER, .place = 11),
        [PROCESS] = COLUMN("process", "process", TEXT, .place = 12, .cut = TEXT_CUT_RIGHT),
    };
    int is_people = f->out->format == REPORT_TEXT, has_names = 0, has_processes = 0;
    size_t all = is_people ? f->segment_count - f->opaque_count : f->segment_count;
    int64_t asked = f->options->top, top = asked < 0 && is_people ? DEFAULT_TOP : asked;
    size_t shown = top > 0 && (size_t)top < all ? (size_t)top : all;
    for (size_t i = 0; i < all; i++)
        has_names |= f->segments[i].name != NULL;
    for (size_t i = 1; i < all; i++)
        has_processes |= f->segments[i].process_id != f->segments[0].process_id;
    if (!has_processes)
        columns[PID].title = columns[PROCESS].title = NULL;
    if (!has_names)
        columns[NAME].title = NULL;
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), f->out, f->cwd);
    struct queries q = {.process = process_label_query(f->db)};
    db_prepare(f->db, line_sql, &q.line, NULL);
    for (size_t i = 0; i < shown; i++)
        list_segment(f, &q, l, &f->segments[i]);
    sqlite3_finalize(q.line);
    sqlite3_finalize(q.process);
    size_t empty = 0;
    for (size_t i = 0; is_people && i < shown; i++)
        empty += !f->segments[i].pin;
    if (listing_print_under(l, "Segments, by the bytes of them that are not live; pinned by their oldest block",
                            (int64_t)all) &&
        empty)
        table_prose(f->out, TABLE_DIM, "(no block: kept for what comes, or with data of the allocator's own)");
    listing_close(l);
}

/* --- where Python took itself down --- */

static int is_torn(sqlite3_stmt *s, uint32_t process_id)
{
    sqlite3_reset(s);
    sqlite3_bind_int64(s, 1, process_id);
    return sqlite3_step(s) == SQLITE_ROW;
}

/* glibc's heaps of these processes: size, live, pinned, held, at the top. 0: there are none. */
static int sum_torn(struct fragments *f, const struct heap *heap, uint64_t sums[5])
{
    sqlite3_stmt *s = NULL;
    int found = 0;
    if (db_prepare(f->db, "SELECT 1 FROM teardown WHERE process_id = ?", &s, NULL))
        return 0;
    for (size_t i = 0; i < heap->range_count; i++) {
        const struct heap_range *r = &heap->ranges[i];
        if (r->kind > HEAP_OWN || !is_torn(s, r->process_id))
            continue;
        found = 1;
        sums[0] += r->size_bytes;
        sums[1] += r->live_bytes;
        sums[2] += r->pinned_bytes + r->shared_bytes;
        sums[3] += r->held_bytes;
        sums[4] += r->top_bytes;
    }
    sqlite3_finalize(s);
    return found;
}

/* What is left when it is done is little: what kept the heap from shrinking while the program ran is the heap before
 * that. Beside it stands what is left. */
static int print_true_end(struct fragments *f, struct error *err)
{
    struct instant at;
    struct blocks blocks = {0};
    struct heap heap = {0};
    char t[5][UNITS_TEXT];
    uint64_t sums[5] = {0};
    struct buf line = BUF(1 << 12);
    instant_at(&at, INT64_MAX);
    int rc = live_blocks_load(f->db, &at, "--segments", &blocks, NULL, err);
    if (rc == 0)
        rc = heap_load(f->db, &at, &blocks, NULL, HEAP_ALL, &heap, err);
    if (rc == 0 && sum_torn(f, &heap, sums)) {
        for (int i = 0; i < 5; i++)
            units_bytes(t[i], (int64_t)sums[i]);
        buf_printf(&line,
                   "At the true end (--at end), when it had, its heaps were %s: %s live, %s of pages pinned, %s free "
                   "below the top, %s at the top.",
                   t[0], t[1], t[2], t[3], t[4]);
        table_prose(f->out, TABLE_PLAIN, buf_text(&line));
    }
    buf_free(&line);
    heap_free(&heap);
    free(blocks.slots);
    return rc;
}

static int print_instant(struct fragments *f, struct error *err)
{
    const struct report_options *o = f->options;
    int is_end = o->at == REPORT_AT_ALL || o->at == REPORT_AT_END;
    if (!is_end || !ending_is_teardown(f->db, o->lens ? o->lens->pid : 0))
        return 0;
    table_prose(f->out, TABLE_PLAIN,
                f->at.is_before_teardown
                    ? "As at each process's end; of Python, as when it began to take itself down ('live at end' of the "
                      "report is there, too)."
                    : "As at each process's end, after Python took itself down; 'live at end' of the report is when "
                      "that began.");
    return f->at.is_before_teardown && f->heap.range_count ? print_true_end(f, err) : 0;
}

static void show(const struct fragments *f)
{
    const int is_alone = f->options->heaps != REPORT_HEAPS_BESIDE;
    if (is_alone && f->out->format == REPORT_TEXT && !f->heap.range_count && !f->heap.forked)
        table_prose(f->out, TABLE_PLAIN, none);
    const struct report_options *o = f->options;
    int is_people = f->out->format == REPORT_TEXT;
    if (o->heaps == REPORT_HEAPS_BESIDE) {
        if (is_people)
            print_devices(f);
        list_segments(f);
    }
    if (o->heaps == REPORT_HEAPS_EACH || (is_people && o->heaps == REPORT_HEAPS_BESIDE))
        heap_list_ranges(f->db, &f->heap, o, f->out, f->cwd);
    if (is_people && (o->at == REPORT_AT_ALL || o->at == REPORT_AT_END))
        heap_returned_say(f->db, &f->heap, f->out);
    int64_t top = o->top < 0 && is_people ? DEFAULT_TOP : o->top;
    if (is_people && (f->heap.range_count || f->heap.forked))
        heap_say_unseen(f->db, f->out);
    if (o->heaps == REPORT_HEAPS_BY_LINE || (is_people && o->heaps == REPORT_HEAPS_BESIDE))
        heap_list_lines(&f->heap, top, f->out, NULL, "What keeps the host's heaps from shrinking, by line", f->cwd);
    if (is_people && o->heaps != REPORT_HEAPS_EACH)
        heap_list_forked_lines(&f->heap, top, f->out, f->cwd);
}

int report_segments(sqlite3 *db, const struct report_options *options, const struct report_out *out, struct error *err)
{
    struct fragments f = {.db = db, .options = options, .out = out, .cwd = db_meta_text(db, "cwd")};
    int rc = device_check(db, options->device, NULL, err);
    if (rc == 0 && options->at == REPORT_AT_TIME)
        rc = at_check(db, options->at_ns, "--at", err);
    if (rc == 0)
        rc = find_instants(&f, err);
    if (rc == 0)
        rc = load_segments(&f, err);
    struct inherited *inherited = NULL;
    int is_host = device_is("host", options->device), has_heap = is_host && heap_is_known(db);
    if (rc == 0 && (f.segment_count > f.opaque_count || has_heap))
        rc = live_blocks_load(db, &f.at, "--segments", &f.blocks, has_heap ? &inherited : NULL, err);
    if (rc == 0 && has_heap)
        rc = heap_load(db, &f.at, &f.blocks, inherited, HEAP_ALL, &f.heap, err);
    inherited_close(inherited);
    if (rc == 0) {
        measure_all(&f);
        rc = out->format == REPORT_TEXT ? print_instant(&f, err) : 0;
    }
    if (rc == 0) {
        show(&f);
        if (out->format == REPORT_TEXT && options->heaps == REPORT_HEAPS_BESIDE)
            rc = arenas_print(db, options, out, &f.at, err);
    }
    for (unsigned i = 0; i < INSTANT_DEVICES; i++)
        free(f.devices[i]);
    for (size_t i = 0; i < f.segment_count; i++)
        free(f.segments[i].name);
    heap_free(&f.heap);
    free(f.blocks.slots);
    free(f.segments);
    free(f.cwd);
    return rc;
}
