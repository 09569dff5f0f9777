/* The accounts of a window by the thread that allocated, by process, and by size: from the sums of whole chunks, and of
 * the chunks that are read from their events and from who allocated what they free. */
#include "window_private.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- which there are --------------------------------------------------------------------------------------------- */

static uint32_t part_at(struct window *w, uint32_t id, unsigned device, unsigned kind, unsigned is_process)
{
    struct window_parts *p = w->parts;
    uint32_t i = map_number_or(&p->of, (uint64_t)id << 1 | is_process, (uint64_t)device << 8 | kind, p->count);
    if (i < p->count)
        return (uint32_t)w->site_count + i;
    const size_t index = w->site_count + i;
    *ARRAY_ADD(p->part, p->count, p->capacity) = (struct window_part){
        .id = id, .device = (uint8_t)device, .kind = (uint8_t)kind, .is_process = (uint8_t)is_process};
    ARRAY_ROOM(w->live, index + 1, w->live_room);
    ARRAY_ROOM(w->sites, index + 1, w->site_room);
    w->live[index] = (struct at_live){.site_id = 0};
    w->sites[index] = (struct window_site){.levels = {WINDOW_NONE, WINDOW_NONE}, .seen = w->entered};
    return (uint32_t)index;
}

/* A thread's row of a kind and of its device, and its process's. */
enum { THREAD_KIND, THREAD_DEVICE, PROCESS_KIND, PROCESS_DEVICE, ROWS };

static void rows_of(struct window *w, uint32_t thread_id, unsigned device, unsigned kind, uint32_t rows[ROWS])
{
    const uint32_t process_id = map_number(&w->parts->process_of, thread_id, 0);
    rows[THREAD_KIND] = part_at(w, thread_id, device, kind, 0);
    rows[THREAD_DEVICE] = part_at(w, thread_id, device, KIND_all, 0);
    rows[PROCESS_KIND] = part_at(w, process_id, device, kind, 1);
    rows[PROCESS_DEVICE] = part_at(w, process_id, device, KIND_all, 1);
}

int window_parts_open(struct window *w, int has_processes, struct error *err)
{
    sqlite3_stmt *s = NULL;
    w->parts = xcalloc(1, sizeof *w->parts);
    w->parts->codec = chunk_codec_open();
    w->parts->has_processes = has_processes;
    w->parts->swept = WINDOW_NONE;
    w->live_room = w->site_count; /* at least */
    w->site_room = w->site_count + 1;
    int rc = db_prepare(w->db, "SELECT thread_id, process_id FROM main.thread", &s, err);
    while (db_next(s, &rc, err))
        map_set_number(&w->parts->process_of, (uint32_t)sqlite3_column_int64(s, 0), 0,
                       (uint16_t)sqlite3_column_int64(s, 1));
    sqlite3_finalize(s);
    if (rc == 0)
        rc = db_prepare(w->db, "SELECT data FROM chunk_sum WHERE chunk_id = ?", &w->parts->read, err);
    return rc;
}

void window_parts_close(struct window *w)
{
    struct window_parts *p = w->parts;
    if (!p)
        return;
    for (uint32_t i = 0; i < p->count; i++)
        free(p->part[i].bounds);
    sqlite3_finalize(p->read);
    chunk_codec_close(p->codec);
    map_close(&p->of);
    map_close(&p->process_of);
    map_close(&p->born);
    map_close(&p->size_of);
    free(p->part);
    free(p->sizes);
    free(p->touched);
    free(p);
}

/* What a chunk did; NULL, and nothing is known of parts any more: it is not there, or damaged. */
static const struct chunk_sums *read_sums(struct window *w, int64_t chunk_id)
{
    struct window_parts *p = w->parts;
    sqlite3_bind_int64(p->read, 1, chunk_id);
    const void *data = sqlite3_step(p->read) == SQLITE_ROW ? sqlite3_column_blob(p->read, 0) : NULL;
    int rc = data ? chunk_decode_sums(p->codec, data, (size_t)sqlite3_column_bytes(p->read, 0), &p->sums) : -EBADMSG;
    sqlite3_reset(p->read);
    p->is_missing |= rc != 0;
    return rc == 0 ? &p->sums : NULL;
}

/* --- who allocated what an event frees --------------------------------------------------------------------------- */

void window_parts_begin(struct window *w, int64_t chunk_id)
{
    struct window_parts *p = w->parts;
    map_close(&p->born);
    p->next_owner = 0;
    if (!read_sums(w, chunk_id))
        p->sums = (struct chunk_sums){0};
}

/* The thread of a block of this chunk's is told by its allocation, of others by a list; it is mostly the event's. */
static uint32_t owner_of(struct window_parts *p, const struct chunk_event *e, uint32_t index)
{
    const uint64_t space = chunk_event_space(e);
    uint32_t listed = WINDOW_NONE, born;
    while (p->next_owner < p->sums.owner_count && p->sums.owners[p->next_owner].index <= index) {
        const struct chunk_owner *o = &p->sums.owners[p->next_owner++];
        listed = o->index == index ? o->thread_id : listed;
    }
    if (chunk_op_is_birth(e->op)) {
        map_set_number(&p->born, e->address, space, e->thread_id);
        return e->thread_id;
    }
    if (e->op == CHUNK_split) {
        born = map_number(&p->born, e->address, space);
        if (born != MAP_NONE)
            map_set_number(&p->born, e->address + e->size_bytes, space, born);
        return e->thread_id;
    }
    if (!chunk_op_is_loss(e->op) || e->op == CHUNK_end)
        return e->thread_id;
    born = (uint32_t)(map_take(&p->born, e->address, space) - 1);
    return born != MAP_NONE ? born : listed != WINDOW_NONE ? listed : e->thread_id;
}

/* --- events ------------------------------------------------------------------------------------------------------ */

static struct replay_size *size_at(struct window_parts *p, unsigned device, unsigned kind, unsigned class)
{
    uint32_t i = map_number_or(&p->size_of, (uint64_t)device << 8 | kind, class, p->size_count);
    if (i == p->size_count)
        *ARRAY_ADD(p->sizes, p->size_count, p->size_capacity) =
            (struct replay_size){.device = (uint8_t)device, .kind = (uint8_t)kind, .log2_size = (int)class - 1};
    return &p->sizes[i];
}

static void count_size(struct window_parts *p, const struct chunk_event *e, int is_temporary)
{
    const unsigned class = e->size_bytes ? 64 - (unsigned)__builtin_clzll(e->size_bytes) : 0;
    const int is_birth = chunk_op_is_birth(e->op), is_segment = e->op == CHUNK_to_segment;
    if (!is_birth && !chunk_op_is_death(e->op))
        return;
    struct replay_size *size = size_at(p, e->device, e->kind, class);
    wrap_change(&size->alloc_count, is_segment ? (uint64_t)-1 : (uint64_t)is_birth);
    wrap_change(&size->alloc_bytes, is_segment ? -e->size_bytes : is_birth ? e->size_bytes : 0);
    wrap_change(&size->free_count, !is_birth && !is_segment);
    wrap_change(&size->temporary_count, (uint64_t)is_temporary);
}

/* All that the threads of a process have left ends with it; the first of its events tells. */
static void end_process(struct window *w, uint32_t process_id)
{
    struct window_parts *p = w->parts;
    if (p->swept == process_id)
        return;
    p->swept = process_id;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct window_part *part = &p->part[i];
        struct window_site *site = &w->sites[w->site_count + i];
        struct at_live *live = &w->live[w->site_count + i];
        if ((part->is_process ? part->id : map_number(&p->process_of, part->id, 0)) != process_id)
            continue;
        window_touch(w, (uint32_t)(w->site_count + i));
        wrap_change(&site->end_bytes, w->is_inside ? (uint64_t)live->bytes : 0);
        wrap_change(&site->end_count, w->is_inside ? (uint64_t)live->count : 0);
        live->bytes = live->count = 0;
    }
}

void window_parts_apply(struct window *w, const struct chunk_event *e, uint32_t index, int64_t event, int is_torn,
                        int is_temporary)
{
    struct window_parts *p = w->parts;
    const uint32_t thread_id = owner_of(p, e, index);
    const int is_birth = chunk_op_is_birth(e->op);
    uint32_t rows[ROWS];
    if ((!is_birth && !chunk_op_is_loss(e->op)) || e->kind >= KIND_COUNT || event < w->first_event)
        return;
    if (e->op == CHUNK_end) {
        end_process(w, e->process_id);
        return;
    }
    p->swept = is_birth ? WINDOW_NONE : p->swept;
    rows_of(w, thread_id, e->device, e->kind, rows);
    for (int i = 0; i < ROWS; i++) {
        window_touch(w, rows[i]);
        if (w->is_inside && is_birth)
            window_birth(w, rows[i], e, event);
        else if (w->is_inside)
            window_loss(w, rows[i], e, is_torn);
        else
            window_change(w, rows[i], is_birth ? e->size_bytes : -e->size_bytes,
                          is_birth             ? 1
                          : e->op == CHUNK_cut ? 0
                                               : (uint64_t)-1);
        w->sites[rows[i]].temporary_count += w->is_inside && is_temporary;
    }
    if (w->is_inside)
        count_size(p, e, is_temporary);
}

/* --- whole chunks ------------------------------------------------------------------------------------------------ */

static void highest(struct window *w, uint32_t index, uint64_t rise_bytes)
{
    int64_t high = w->live[index].bytes;
    window_touch(w, index);
    wrap_change(&high, rise_bytes);
    window_most(&w->sites[index].own_peak_bytes, high);
}

/* A process of which one thread alone did something rose as that did; of several, no higher than their rises. */
static void process_rises(struct window *w, uint32_t index, uint64_t rise_bytes)
{
    struct window_parts *p = w->parts;
    struct window_part *part = &p->part[index - w->site_count];
    if (!p->has_processes)
        return;
    if (part->seen != p->serial) {
        *ARRAY_ADD(p->touched, p->touched_count, p->touched_room) = index;
        part->seen = p->serial;
        part->rise_count = 0;
        part->rise_bytes = 0;
    }
    part->rise_count++;
    if (rise_bytes > INT64_MAX || __builtin_add_overflow(part->rise_bytes, (int64_t)rise_bytes, &part->rise_bytes))
        part->rise_bytes = INT64_MAX;
}

static void end_rises(struct window *w, const struct window_chunk *c)
{
    struct window_parts *p = w->parts;
    for (uint32_t i = 0; i < p->touched_count; i++) {
        const uint32_t index = p->touched[i];
        struct window_part *part = &p->part[index - w->site_count];
        int64_t bound, most_bytes = window_timeline_most(w, part->device, c->first_ns, c->last_ns);
        window_touch(w, index);
        if (part->rise_count == 1) {
            highest(w, index, (uint64_t)part->rise_bytes);
            continue;
        }
        if (__builtin_add_overflow(w->live[index].bytes, part->rise_bytes, &bound))
            bound = INT64_MAX;
        if (most_bytes >= 0 && most_bytes < bound)
            bound = most_bytes;
        *ARRAY_ADD(part->bounds, part->bound_count, part->bound_room) =
            (struct window_bound){c->chunk_id, c->first_event, w->live[index].bytes, bound, 0};
    }
    p->touched_count = 0;
}

/* How high each row rose in the chunk, before anything is changed: a device's row has a rise of its own only where
 * several kinds changed. */
static void add_rises(struct window *w, const struct window_chunk *c, const struct chunk_sums *sums)
{
    struct window_parts *p = w->parts;
    p->serial++;
    for (uint32_t i = 0; i < sums->thread_count; i++) {
        const struct chunk_thread *t = &sums->threads[i];
        if (t->kind != KIND_all)
            continue;
        const uint32_t index = part_at(w, t->thread_id, t->device, KIND_all, 0);
        p->part[index - w->site_count].seen = p->serial;
    }
    for (uint32_t i = 0; i < sums->thread_count; i++) {
        const struct chunk_thread *t = &sums->threads[i];
        uint32_t rows[ROWS];
        rows_of(w, t->thread_id, t->device, t->kind, rows);
        if (t->kind != KIND_all) {
            highest(w, rows[THREAD_KIND], t->rise_bytes);
            process_rises(w, rows[PROCESS_KIND], t->rise_bytes);
        }
        if (t->kind == KIND_all || p->part[rows[THREAD_DEVICE] - w->site_count].seen != p->serial) {
            highest(w, rows[THREAD_DEVICE], t->rise_bytes);
            process_rises(w, rows[PROCESS_DEVICE], t->rise_bytes);
        }
    }
    end_rises(w, c);
}

static void add_thread(struct window *w, const struct chunk_thread *t)
{
    uint32_t rows[ROWS];
    rows_of(w, t->thread_id, t->device, t->kind, rows);
    for (int i = 0; i < ROWS; i++) {
        struct window_site *site = &w->sites[rows[i]];
        window_touch(w, rows[i]);
        if (w->is_inside) {
            wrap_change(&site->alloc_count, t->alloc_count);
            wrap_change(&site->alloc_bytes, t->alloc_bytes);
            wrap_change(&site->free_count, t->left_count);
            wrap_change(&site->free_bytes, t->left_bytes);
            wrap_change(&site->temporary_count, t->temporary_count);
        }
        window_change(w, rows[i], t->alloc_bytes - t->left_bytes, t->alloc_count - t->left_count);
    }
}

static void add_size(struct window_parts *p, const struct chunk_size *c)
{
    struct replay_size *size = size_at(p, c->device, c->kind, c->class);
    wrap_change(&size->alloc_count, c->alloc_count);
    wrap_change(&size->alloc_bytes, c->alloc_bytes);
    wrap_change(&size->free_count, c->free_count);
    wrap_change(&size->temporary_count, c->temporary_count);
}

void window_parts_sum(struct window *w, const struct window_chunk *c)
{
    const struct chunk_sums *sums = read_sums(w, c->chunk_id);
    if (!sums)
        return;
    if (w->is_inside)
        add_rises(w, c, sums);
    for (uint32_t i = 0; i < sums->thread_count; i++)
        if (sums->threads[i].kind != KIND_all)
            add_thread(w, &sums->threads[i]);
    for (uint32_t i = 0; w->is_inside && i < sums->size_count; i++)
        add_size(w->parts, &sums->sizes[i]);
}

void window_parts_temporaries(struct window *w)
{
    const struct chunk_sums *sums = &w->parts->sums; /* of the chunk that was read */
    for (uint32_t i = 0; i < sums->thread_count; i++) {
        const struct chunk_thread *t = &sums->threads[i];
        uint32_t rows[ROWS];
        if (t->kind == KIND_all)
            continue;
        rows_of(w, t->thread_id, t->device, t->kind, rows);
        for (int k = 0; k < ROWS; k++)
            wrap_change(&w->sites[rows[k]].temporary_count, t->temporary_count);
    }
    for (uint32_t i = 0; i < sums->size_count; i++) {
        const struct chunk_size *c = &sums->sizes[i];
        wrap_change(&size_at(w->parts, c->device, c->kind, c->class)->temporary_count, c->temporary_count);
    }
}

/* --- what was live at an instant --------------------------------------------------------------------------------- */

struct held {
    int64_t bytes, count;
};

struct at_parts {
    struct held *held; /* by part */
    uint32_t room;
};

static void hold(struct window *w, struct at_parts *at, uint32_t thread_id, unsigned device, unsigned kind,
                 uint64_t bytes, uint64_t count)
{
    uint32_t rows[ROWS];
    rows_of(w, thread_id, device, kind, rows);
    ARRAY_ROOM_ZERO(at->held, w->parts->count, at->room);
    for (int i = 0; i < ROWS; i++) {
        wrap_change(&at->held[rows[i] - w->site_count].bytes, bytes);
        wrap_change(&at->held[rows[i] - w->site_count].count, count);
    }
}

static void let_go(struct window *w, struct at_parts *at, uint32_t process_id)
{
    const struct window_parts *p = w->parts;
    for (uint32_t i = 0; i < p->count && i < at->room; i++)
        if ((p->part[i].is_process ? p->part[i].id : map_number(&p->process_of, p->part[i].id, 0)) == process_id)
            at->held[i] = (struct held){0, 0};
}

/* The events of one chunk before number stop. */
static void hold_events(struct window *w, struct at_parts *at, int64_t chunk_id, int64_t stop)
{
    const struct chunk_event *events;
    window_parts_begin(w, chunk_id);
    long count = window_decode(w, chunk_id, &events);
    w->parts->is_missing |= count < 0;
    for (long i = 0; i < count && i < stop; i++) {
        const struct chunk_event *e = &events[i];
        const uint32_t thread_id = owner_of(w->parts, e, (uint32_t)i);
        if ((!chunk_op_is_birth(e->op) && !chunk_op_is_loss(e->op)) || e->kind >= KIND_COUNT)
            continue;
        if (e->op == CHUNK_end)
            let_go(w, at, e->process_id);
        else if (chunk_op_is_birth(e->op))
            hold(w, at, thread_id, e->device, e->kind, e->size_bytes, 1);
        else
            hold(w, at, thread_id, e->device, e->kind, -e->size_bytes, e->op == CHUNK_cut ? 0 : (uint64_t)-1);
    }
}

/* Before event number stop_event: the sums of all chunks from the first one on, and the events of the last one. */
static int hold_until(struct window *w, int64_t stop_event, struct at_parts *at, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int64_t next = 0;
    int rc = db_prepare(w->db,
                        "SELECT chunk_id, first_event, event_count FROM event_chunk WHERE first_event < ? ORDER BY "
                        "chunk_id",
                        &s, err);
    if (rc == 0)
        sqlite3_bind_int64(s, 1, stop_event);
    while (!w->parts->is_missing && db_next(s, &rc, err)) {
        const int64_t chunk_id = sqlite3_column_int64(s, 0), first = sqlite3_column_int64(s, 1);
        int64_t after;
        if (first != next || __builtin_add_overflow(first, sqlite3_column_int64(s, 2), &after)) {
            w->parts->is_missing = 1;
            break;
        }
        next = after;
        if (after > stop_event) {
            hold_events(w, at, chunk_id, stop_event - first);
            break;
        }
        const struct chunk_sums *sums = read_sums(w, chunk_id);
        for (uint32_t i = 0; sums && i < sums->thread_count; i++) {
            const struct chunk_thread *t = &sums->threads[i];
            if (t->kind != KIND_all)
                hold(w, at, t->thread_id, t->device, t->kind, t->alloc_bytes - t->left_bytes,
                     t->alloc_count - t->left_count);
        }
    }
    sqlite3_finalize(s);
    return rc;
}

int window_parts_start(struct window *w, struct error *err)
{
    struct at_parts at = {NULL, 0};
    int rc = hold_until(w, w->first_event, &at, err);
    for (uint32_t i = 0; rc == 0 && i < w->parts->count && i < at.room; i++) {
        w->live[w->site_count + i].bytes = at.held[i].bytes;
        w->live[w->site_count + i].count = at.held[i].count;
    }
    free(at.held);
    return rc;
}

int window_parts_peak(struct window *w, int64_t stop_event, struct error *err)
{
    struct at_parts at = {NULL, 0};
    int rc = hold_until(w, stop_event, &at, err);
    for (uint32_t i = 0; rc == 0 && i < w->parts->count && i < at.room; i++) {
        const struct window_part *part = &w->parts->part[i];
        struct window_site *site = &w->sites[w->site_count + i];
        for (uint32_t k = 0; k < w->level_count; k++) {
            const struct window_level *l = &w->levels[k];
            if (!l->is_holding || l->device != part->device)
                continue;
            if (l->kind == KIND_all) {
                site->at_peak_bytes = at.held[i].bytes;
                site->at_peak_count = at.held[i].count;
            }
            if (l->kind == part->kind)
                site->at_kind_peak_bytes = at.held[i].bytes;
        }
    }
    free(at.held);
    return rc;
}

/* --- peaks of processes ------------------------------------------------------------------------------------------ */

static void climb(struct window *w, uint32_t index, int64_t active, const struct chunk_event *events, long count)
{
    const struct window_part *part = &w->parts->part[index - w->site_count];
    for (long i = 0; i < count; i++) {
        const struct chunk_event *e = &events[i];
        const int is_birth = chunk_op_is_birth(e->op);
        if (e->process_id != part->id || e->device != part->device ||
            (part->kind != KIND_all && e->kind != part->kind) || (!is_birth && !chunk_op_is_loss(e->op)))
            continue;
        wrap_change(&active, is_birth ? e->size_bytes : -e->size_bytes);
        window_most(&w->sites[index].own_peak_bytes, active);
    }
}

static int by_chunk(const void *a, const void *b)
{
    const struct window_bound *x = a, *y = b;
    return (x->chunk_id > y->chunk_id) - (x->chunk_id < y->chunk_id);
}

/* Whoever may have been high in a chunk that is read anyway. */
static void climb_all(struct window *w, int64_t chunk_id)
{
    const struct chunk_event *events;
    const struct window_bound key = {.chunk_id = chunk_id};
    long count = window_decode(w, chunk_id, &events);
    w->result->chunks_read += count >= 0;
    w->parts->is_missing |= count < 0;
    for (uint32_t i = 0; i < w->parts->count; i++) {
        struct window_part *part = &w->parts->part[i];
        struct window_bound *bound =
            part->bound_count ? bsearch(&key, part->bounds, part->bound_count, sizeof key, by_chunk) : NULL;
        if (!bound || bound->is_read)
            continue;
        bound->is_read = 1;
        climb(w, (uint32_t)w->site_count + i, bound->before_bytes, events, count);
    }
}

/* From the chunk in which it may have risen highest downwards. */
static void climb_from_top(struct window *w, uint32_t index)
{
    const struct window_part *part = &w->parts->part[index - w->site_count];
    struct window_bound *bounds = xmalloc(part->bound_count * sizeof *bounds);
    memcpy(bounds, part->bounds, part->bound_count * sizeof *bounds);
    qsort(bounds, part->bound_count, sizeof *bounds, window_by_bound);
    for (uint32_t k = 0; k < part->bound_count && bounds[k].bytes > w->sites[index].own_peak_bytes; k++) {
        const struct window_bound *now = bsearch(&bounds[k], part->bounds, part->bound_count, sizeof *now, by_chunk);
        if (!now->is_read)
            climb_all(w, bounds[k].chunk_id);
    }
    free(bounds);
}

static int is_only_process(const struct window_parts *p)
{
    for (uint32_t i = 0, id = WINDOW_NONE; i < p->count; i++) {
        if (p->part[i].is_process && id != WINDOW_NONE && p->part[i].id != id)
            return 0;
        id = p->part[i].is_process ? p->part[i].id : id;
    }
    return 1;
}

/* The only process that there is has the device's peak. */
static void take_peak(const struct window *w, const struct window_part *part, struct window_site *site)
{
    for (uint32_t i = 0; i < w->level_count; i++)
        if (w->levels[i].device == part->device && w->levels[i].kind == part->kind)
            site->own_peak_bytes = w->levels[i].peak_bytes;
}

void window_parts_climb(struct window *w)
{
    const struct window_parts *p = w->parts;
    const int is_only = is_only_process(p);
    for (uint32_t i = 0; p->has_processes && i < p->count; i++) {
        const struct window_part *part = &p->part[i];
        const uint32_t index = (uint32_t)w->site_count + i;
        if (part->is_process && is_only)
            take_peak(w, part, &w->sites[index]);
        if (part->bound_count && !is_only)
            climb_from_top(w, index);
    }
}

/* --- result ------------------------------------------------------------------------------------------------------ */

void window_parts_fill(struct window *w, uint32_t known, struct replay *replay)
{
    struct window_parts *p = w->parts;
    replay->threads = xcalloc(p->count + 1ul, sizeof *replay->threads);
    if (p->has_processes)
        replay->processes = xcalloc(p->count + 1ul, sizeof *replay->processes);
    for (uint32_t i = 0; i < p->count; i++) {
        const struct window_part *part = &p->part[i];
        const size_t index = w->site_count + i;
        struct replay_thread t = {.id = part->id, .stats.known = known, .device = part->device, .kind = part->kind};
        if (part->is_process && !p->has_processes)
            continue;
        if (part->is_process) {
            replay->processes[replay->process_count++] =
                (struct replay_process){.process_id = part->id,
                                        .device = part->device,
                                        .kind = part->kind,
                                        .peak_bytes = w->sites[index].own_peak_bytes};
            continue;
        }
        window_fill_stats(w, index, &t.stats);
        if (!replay_is_nothing(&t.stats))
            replay->threads[replay->thread_count++] = t;
    }
    replay->sizes = p->sizes;
    replay->size_count = p->size_count;
    p->sizes = NULL;
    if (!replay->sizes)
        replay->sizes = xcalloc(1, sizeof *replay->sizes);
}
