/*
 * The stored instants: what every site held at them, and what it allocated between them. Most of the run is read as
 * each chunk's sums per site; events are decoded only in the chunks that an instant falls into, so that every instant
 * is exact to the event and the cost does not grow with the run. Without events the key frames are the instants.
 */
#include "page_categories.h"

#include "../../common/chunk.h"
#include "../../common/db.h"
#include "../query/temporaries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Sums of a damaged file may not fit: they wrap. */
#define ADD(sum, by) ((sum) = (int64_t)((uint64_t)(sum) + (uint64_t)(by)))
#define SUB(sum, by) ((sum) = (int64_t)((uint64_t)(sum) - (uint64_t)(by)))

#define NAMED_MAX 64 /* instants at peaks, failures, marks */

struct cut {
    int64_t time_ns;
    uint32_t flags;
};

struct walk {
    struct page *page;
    struct chunk_codec *codec;
    struct cut *cuts;
    uint32_t cut_count, cut_capacity, next_cut;
    uint32_t *entry_of;          /* site -> its entry since the last instant, MAP_NONE */
    uint32_t first_entry, flags; /* of the instant being worked on */
    struct chunk_codec *delta_codec;
};

static int by_time(const void *a, const void *b)
{
    const struct cut *left = a, *right = b;
    return left->time_ns < right->time_ns ? -1 : left->time_ns > right->time_ns;
}

static void add_cut(struct walk *w, int64_t time_ns, uint32_t flags)
{
    if (time_ns < 0 || time_ns > w->page->duration_ns)
        return;
    *ARRAY_ADD(w->cuts, w->cut_count, w->cut_capacity) = (struct cut){time_ns, flags};
}

static int add_named_cuts(struct walk *w, const char *sql, uint32_t flags)
{
    sqlite3_stmt *s = page_query(w->page, sql);
    if (!s)
        return -EIO;
    int rc, left = NAMED_MAX;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW && left--)
        add_cut(w, sqlite3_column_int64(s, 0), flags);
    return page_query_end(w->page, s, rc);
}

static int choose_cuts(struct walk *w)
{
    static const struct {
        const char *sql;
        uint32_t flags;
    } named[] = {
        {"SELECT time_ns FROM peak WHERE what = 'active' AND rank = 0 AND kind = 'all' ORDER BY value_bytes DESC",
         INSTANT_PEAK},
        {"SELECT time_ns FROM peak WHERE what = 'reserved' AND rank = 0 AND kind = 'all' ORDER BY value_bytes DESC",
         INSTANT_RESERVED_PEAK},
        {"SELECT time_ns FROM peak WHERE what = 'active' AND rank BETWEEN 1 AND 12 AND kind = 'all' ORDER BY "
         "value_bytes DESC",
         INSTANT_LOCAL_PEAK},
        {"SELECT time_ns FROM oom ORDER BY time_ns LIMIT 24", INSTANT_OOM},
        {"SELECT time_ns FROM oom ORDER BY time_ns DESC LIMIT 24", INSTANT_OOM},
        {"SELECT start_ns FROM mark ORDER BY mark_id LIMIT 24", INSTANT_MARK},
    };
    for (unsigned i = 0; i < sizeof named / sizeof *named; i++) {
        int rc = add_named_cuts(w, named[i].sql, named[i].flags);
        if (rc)
            return rc;
    }
    const struct html_options *o = w->page->options;
    const int64_t begin_ns = w->page->begin_ns;
    if (o->has_window && o->from_ns > 0) /* what is before them is up to the nanosecond before */
        add_cut(w, o->from_ns - 1, INSTANT_WINDOW);
    if (o->has_window && o->to_ns != INT64_MAX)
        add_cut(w, o->to_ns - 1, INSTANT_WINDOW);
    for (int i = 1; i <= PAGE_INSTANTS; i++)
        add_cut(w, begin_ns + (int64_t)((double)(w->page->duration_ns - begin_ns) * i / PAGE_INSTANTS), 0);
    if (w->cut_count)
        qsort(w->cuts, w->cut_count, sizeof *w->cuts, by_time);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->cut_count; i++) {
        if (kept && w->cuts[kept - 1].time_ns == w->cuts[i].time_ns)
            w->cuts[kept - 1].flags |= w->cuts[i].flags;
        else
            w->cuts[kept++] = w->cuts[i];
    }
    w->cut_count = kept;
    return 0;
}

/* An instant is done: what was collected since the one before is its way. */
static void close_instant(struct walk *w, int64_t time_ns, uint32_t flags)
{
    struct page *page = w->page;
    for (uint32_t i = w->first_entry; i < page->entry_count; i++)
        w->entry_of[page->entries[i].site] = MAP_NONE;
    *ARRAY_ADD(page->instants, page->instant_count, page->instant_capacity) = (struct page_instant){
        time_ns, flags | w->flags, w->first_entry, page->entry_count - w->first_entry, page_phase_keep(page)};
    w->first_entry = page->entry_count;
    w->flags &= INSTANT_DAMAGED;
}

static struct page_entry *entry(struct walk *w, uint32_t site)
{
    struct page *page = w->page;
    if (w->entry_of[site] == MAP_NONE) {
        w->entry_of[site] = page->entry_count;
        ARRAY_ADD(page->entries, page->entry_count, page->entry_capacity)->site = site;
    }
    return &page->entries[w->entry_of[site]];
}

static void close_cuts_before(struct walk *w, int64_t time_ns)
{
    for (; w->next_cut < w->cut_count && w->cuts[w->next_cut].time_ns < time_ns; w->next_cut++)
        close_instant(w, w->cuts[w->next_cut].time_ns, w->cuts[w->next_cut].flags);
}

static void change(struct walk *w, uint32_t site, struct page_entry by)
{
    struct page_entry *e = entry(w, site);
    ADD(e->alloc_count, by.alloc_count);
    ADD(e->alloc_bytes, by.alloc_bytes);
    ADD(e->gone_count, by.gone_count);
    ADD(e->gone_bytes, by.gone_bytes);
    ADD(e->temporary_count, by.temporary_count);
    ADD(e->ended_bytes, by.ended_bytes);
}

static void apply_events(struct walk *w, const struct chunk_event *events, long count, const uint8_t *is_temporary)
{
    for (long i = 0; i < count; i++) {
        const struct chunk_event *e = &events[i];
        close_cuts_before(w, (int64_t)e->time_ns);
        int is_alloc = chunk_op_is_birth(e->op);
        int is_gone = chunk_op_is_loss(e->op);
        uint32_t site = page_site(w->page, e->site_id);
        if (site == MAP_NONE || (!is_alloc && !is_gone))
            continue;
        int64_t size = (int64_t)e->size_bytes;
        struct page_entry by = {.alloc_count = is_alloc,
                                .alloc_bytes = is_alloc ? size : 0,
                                .gone_count = is_gone,
                                .gone_bytes = is_gone ? size : 0,
                                .ended_bytes = e->op == CHUNK_end ? size : 0};
        page_phase_add(w->page, e->site_id, (uint64_t)(is_alloc ? size : -size));
        if (e->op == CHUNK_end) /* of all that the site has left: the count stands where an address does */
            by.gone_count = (int64_t)e->address;
        else if (e->op == CHUNK_cut)
            by.gone_count = 0;
        else
            by.temporary_count = is_temporary[i];
        change(w, site, by);
    }
}

static void apply_deltas(struct walk *w, const struct chunk_delta *deltas, long count)
{
    const struct page *page = w->page;
    for (long i = 0; i < count; i++) {
        if (i + 16 < count && deltas[i + 16].site_id < page->site_of_count) /* they are all over the table */
            __builtin_prefetch(&page->site_of[deltas[i + 16].site_id]);
        uint32_t site = page_site(page, deltas[i].site_id);
        page_phase_add(w->page, deltas[i].site_id, deltas[i].alloc_bytes - deltas[i].free_bytes);
        if (site != MAP_NONE)
            change(w, site,
                   (struct page_entry){.alloc_count = deltas[i].alloc_count,
                                       .alloc_bytes = (int64_t)deltas[i].alloc_bytes,
                                       .gone_count = deltas[i].free_count,
                                       .gone_bytes = (int64_t)deltas[i].free_bytes,
                                       .temporary_count = deltas[i].temporary_count});
    }
}

/* Takes a key frame's word for what is live, however it came to that. device: the one that it is of; -1: all. */
static void apply_keyframe(struct walk *w, const struct chunk_live *sites, long count, int32_t device)
{
    struct page *page = w->page;
    int64_t(*now)[2] = xcalloc(page->site_count + 1ul, sizeof *now);
    for (uint32_t i = 0; i < page->entry_count; i++) { /* what is live by all that is known up to here */
        const struct page_entry *e = &page->entries[i];
        ADD(now[e->site][0], e->gone_count);
        SUB(now[e->site][0], e->alloc_count);
        ADD(now[e->site][1], e->gone_bytes);
        SUB(now[e->site][1], e->alloc_bytes);
    }
    page_phase_restart(page, device);
    for (long i = 0; i < count; i++) {
        uint32_t site = page_site(page, sites[i].site_id);
        if (site == MAP_NONE)
            continue;
        if (device < 0 || page->sites[site].device == device)
            page_phase_add(page, sites[i].site_id, (uint64_t)sites[i].live_bytes);
        ADD(now[site][0], sites[i].live_count);
        ADD(now[site][1], sites[i].live_bytes);
    }
    for (uint32_t site = 0; site < page->site_count; site++) {
        if (device >= 0 && page->sites[site].device != device)
            continue;
        int64_t blocks = now[site][0], bytes = now[site][1];
        if (blocks || bytes)
            change(w, site,
                   (struct page_entry){.alloc_count = blocks > 0 ? blocks : 0,
                                       .alloc_bytes = bytes > 0 ? bytes : 0,
                                       .gone_count = blocks < 0 ? (int64_t) - (uint64_t)blocks : 0,
                                       .gone_bytes = bytes < 0 ? (int64_t) - (uint64_t)bytes : 0});
    }
    free(now);
    w->flags |= INSTANT_NET;
    w->flags &= ~(uint32_t)INSTANT_DAMAGED;
    page->net_only = 1;
}

static int apply_keyframe_row(struct walk *w, sqlite3_stmt *s, int column, int32_t device)
{
    const struct chunk_live *sites;
    const void *data = sqlite3_column_blob(s, column);
    long count = chunk_decode_live(w->codec, data, (size_t)sqlite3_column_bytes(s, column), &sites);
    if (count < 0)
        return 0;
    apply_keyframe(w, sites, count, device);
    return 1;
}

/* The key frames of times whose events are not kept. */
static int walk_keyframes(struct walk *w, int64_t first_event)
{
    sqlite3_stmt *s = page_query(w->page, "SELECT time_ns, reason, data, coalesce(device_id, -1) FROM keyframe WHERE "
                                          "event_count <= ? AND reason <> 'end' "
                                          "ORDER BY event_count, time_ns");
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, first_event);
    int rc;
    int64_t before = -1;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW && w->page->instant_count < 2 * PAGE_INSTANTS) {
        int64_t time_ns = sqlite3_column_int64(s, 0);
        const char *reason = db_text(s, 1);
        uint32_t flags = INSTANT_KEYFRAME;
        if (!strcmp(reason, "peak"))
            flags |= INSTANT_PEAK;
        else if (!strcmp(reason, "reserved peak"))
            flags |= INSTANT_RESERVED_PEAK;
        else if (!strcmp(reason, "oom"))
            flags |= INSTANT_OOM;
        int32_t device = !strcmp(reason, "peak") ? page_device_index(w->page, sqlite3_column_int64(s, 3)) : -1;
        if (time_ns <= before || !apply_keyframe_row(w, s, 2, device))
            continue;
        close_instant(w, time_ns, flags);
        before = time_ns;
    }
    while (w->next_cut < w->cut_count && w->cuts[w->next_cut].time_ns <= before)
        w->next_cut++;
    return page_query_end(w->page, s, rc);
}

/* After a gap in the chunks: a key frame at exactly this event makes the rest right again. */
static int resync(struct walk *w, int64_t event)
{
    sqlite3_stmt *s = page_query(
        w->page, "SELECT data FROM keyframe WHERE event_count = ? AND reason IN ('periodic', 'oom') LIMIT 1");
    int done = 0;
    if (s) {
        sqlite3_bind_int64(s, 1, event);
        done = sqlite3_step(s) == SQLITE_ROW && apply_keyframe_row(w, s, 0, -1);
        sqlite3_finalize(s);
    }
    return done;
}

/* Which of its frees are of temporaries is told apart where an instant cuts the chunk. */
static int apply_cut_chunk(struct walk *w, sqlite3_stmt *s, const struct chunk_delta *deltas, long delta_count)
{
    const struct chunk_event *events;
    const void *data = sqlite3_column_blob(s, 3);
    long count = chunk_decode_events(w->codec, data, (size_t)sqlite3_column_bytes(s, 3), &events);
    if (count < 0)
        return 0;
    const struct temporaries_chunk chunk = {
        sqlite3_column_int64(s, 6), sqlite3_column_int64(s, 2), events, count, deltas, delta_count};
    uint8_t *is_temporary = xcalloc((size_t)count + 1, 1);
    temporaries_mark(w->page->db, &chunk, is_temporary);
    apply_events(w, events, count, is_temporary);
    free(is_temporary);
    return 1;
}

/* Whether a process ended in a chunk with something live, which its sums do not tell from frees. */
static int has_ends(struct walk *w, int64_t chunk_id)
{
    char head[4096];
    sqlite3_blob *blob = NULL;
    long ops = -EBADMSG;
    if (sqlite3_blob_open(w->page->db, "main", "event_chunk", "data", chunk_id, 0, &blob) == SQLITE_OK) {
        int bytes = sqlite3_blob_bytes(blob) < (int)sizeof head ? sqlite3_blob_bytes(blob) : (int)sizeof head;
        if (sqlite3_blob_read(blob, head, bytes, 0) == SQLITE_OK)
            ops = chunk_decode_ops(w->codec, head, (size_t)bytes);
    }
    sqlite3_blob_close(blob);
    return ops >= 0 && ops >> CHUNK_end & 1;
}

/* Returns 0 when neither form of the chunk could be read. */
static int apply_chunk(struct walk *w, sqlite3_stmt *s, int64_t last_ns)
{
    const struct chunk_delta *deltas = NULL;
    const void *data = sqlite3_column_blob(s, 4);
    long count =
        data ? chunk_decode_deltas(w->delta_codec, data, (size_t)sqlite3_column_bytes(s, 4), &deltas) : -EBADMSG;
    deltas = count >= 0 ? deltas : NULL;
    int holds_cut = w->next_cut < w->cut_count && w->cuts[w->next_cut].time_ns < last_ns;
    if ((holds_cut || !deltas || has_ends(w, sqlite3_column_int64(s, 6))) && apply_cut_chunk(w, s, deltas, count))
        return 1;
    if (!deltas)
        return 0;
    apply_deltas(w, deltas, count);
    return 1;
}

static int walk_chunks(struct walk *w)
{
    int rc = walk_keyframes(w, db_int(w->page->db, "SELECT min(first_event) FROM event_chunk", INT64_MAX));
    if (rc)
        return rc;
    sqlite3_stmt *s = page_query(
        w->page, "SELECT first_ns, last_ns, first_event, data, site_delta, event_count, chunk_id FROM event_chunk "
                 "ORDER BY chunk_id");
    if (!s)
        return -EIO;
    int64_t expected = 0;
    int broken = 0;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        int64_t first_event = sqlite3_column_int64(s, 2);
        close_cuts_before(w, sqlite3_column_int64(s, 0));
        if ((broken || first_event != expected) && resync(w, first_event))
            broken = 0;
        else if (first_event != expected)
            broken = 1;
        w->page->events_kept = 1;
        if (!apply_chunk(w, s, sqlite3_column_int64(s, 1))) {
            broken = 1;
            w->page->damaged_chunks++;
        }
        if (broken)
            w->flags |= INSTANT_DAMAGED;
        expected = first_event;
        ADD(expected, sqlite3_column_int64(s, 5));
    }
    if (w->page->events_kept)
        close_cuts_before(w, INT64_MAX);
    return page_query_end(w->page, s, rc);
}

/* Joins instants i and i + 1 (whose way then is both), for every second i whose instant has no name (any: whatever it
 * is). */
static void thin_out(struct page *page, int any)
{
    uint32_t *at = xmalloc((page->site_count + 1ul) * sizeof *at), kept = 0, entries = 0;
    memset(at, 0xff, (page->site_count + 1ul) * sizeof *at);
    int just_joined = 0;
    uint32_t first = 0;
    for (uint32_t i = 0; i < page->instant_count; i++) {
        struct page_instant now = page->instants[i];
        for (uint32_t k = now.first_entry; k < now.first_entry + now.entry_count; k++) {
            struct page_entry e = page->entries[k];
            if (at[e.site] != MAP_NONE) {
                struct page_entry *sum = &page->entries[at[e.site]];
                ADD(sum->alloc_count, e.alloc_count);
                ADD(sum->alloc_bytes, e.alloc_bytes);
                ADD(sum->gone_count, e.gone_count);
                ADD(sum->gone_bytes, e.gone_bytes);
                ADD(sum->temporary_count, e.temporary_count);
                ADD(sum->ended_bytes, e.ended_bytes);
            } else {
                at[e.site] = entries;
                page->entries[entries++] = e;
            }
        }
        const uint32_t named =
            INSTANT_PEAK | INSTANT_RESERVED_PEAK | INSTANT_LOCAL_PEAK | INSTANT_OOM | INSTANT_MARK | INSTANT_WINDOW;
        if (!just_joined && i + 1 < page->instant_count &&
            (any ? !(now.flags & (INSTANT_PEAK | INSTANT_WINDOW)) : !(now.flags & named))) {
            page->instants[i + 1].flags |= now.flags & (INSTANT_NET | INSTANT_DAMAGED);
            just_joined = 1;
            continue;
        }
        just_joined = 0;
        now.first_entry = first;
        now.entry_count = entries - first;
        for (uint32_t k = first; k < entries; k++)
            at[page->entries[k].site] = MAP_NONE;
        first = entries;
        page->instants[kept++] = now;
    }
    page->instant_count = kept;
    page->entry_count = entries;
    free(at);
}

int page_load_instants(struct page *page)
{
    struct walk w = {.page = page, .codec = chunk_codec_open(), .delta_codec = chunk_codec_open()};
    w.entry_of = xmalloc((page->site_count + 1ul) * sizeof *w.entry_of);
    memset(w.entry_of, 0xff, (page->site_count + 1ul) * sizeof *w.entry_of);
    int rc = page_load_phases(page);
    if (!rc)
        rc = choose_cuts(&w);
    if (!rc) {
        close_instant(&w, 0, 0); /* the start: nothing is live */
        if (w.cut_count && w.cuts[0].time_ns == 0)
            w.next_cut = 1;
        rc = walk_chunks(&w);
    }
    for (int round = 0; page->entry_count > PAGE_ENTRIES_MAX && page->instant_count > 8 && round < 12; round++)
        thin_out(page, round >= 3);
    chunk_codec_close(w.codec);
    free(w.cuts);
    free(w.entry_of);
    chunk_codec_close(w.delta_codec);
    return rc;
}
