/*
 * A recording in parts (collect/rotate.h): at a boundary the accounts begin anew. What is live then is inherited: it is
 * no allocation of the part, and its free is one. Peaks are those within the part, which begins with what is inherited.
 * Live blocks, sites, threads and all numbers stay as they are.
 */
#include "account_figures.h"
#include "account_private.h"

#include "../../common/array.h"
#include "../../common/db.h"

#include <stdlib.h>
#include <string.h>

void account_inherited_left(struct account *a, const struct process_account *p, const struct live_block *b,
                            uint64_t count)
{
    struct started *started = &a->started;
    if (p->is_torn_down && b->time_ns <= p->teardown_ns) /* it counts as live at the end */
        return;
    ARRAY_ROOM_ZERO(started->sites, b->site + 1ul, started->site_capacity);
    started->sites[b->site].left_bytes += b->size;
    started->sites[b->site].left_count += count;
    started->sites[b->site].moved = 1;
    started->moved = 1;
}

/* --- rows of what is inherited --- */

static void write_start(struct account *a, const char *sql, const uint64_t *values, unsigned count, const char *kind)
{
    sqlite3_stmt *s = store_statement(a->store, sql);
    if (!s)
        return;
    for (unsigned i = 0; i < count; i++)
        sqlite3_bind_int64(s, (int)i + 1, (int64_t)values[i]);
    if (kind)
        sqlite3_bind_text(s, (int)count + 1, kind, -1, SQLITE_STATIC);
    store_step(a->store, s);
}

/* Of the sites that it changed of. */
void account_started_write(struct account *a)
{
    static const char sql[] = "INSERT OR REPLACE INTO site_start(site_id, start_bytes, start_count, left_bytes, "
                              "left_count) VALUES(?,?,?,?,?)";
    if (!a->started.moved)
        return;
    a->started.moved = 0;
    for (uint32_t id = 1; id < a->started.site_capacity; id++) {
        struct site_start *s = &a->started.sites[id];
        if (!s->moved)
            continue;
        const struct tally_rare *r = tally_rare(&site_at(&a->sites, id)->tally);
        write_start(a, sql, (uint64_t[]){id, r->start_bytes, r->start_count, s->left_bytes, s->left_count}, 5, NULL);
        s->moved = 0;
    }
}

static void write_totals(struct account *a)
{
    static const char sql[] = "INSERT INTO total_start(device_id, start_bytes, start_count, kind) VALUES(?,?,?,?)";
    for (unsigned i = 0; i < ACCOUNT_DEVICES; i++) {
        const struct device_account *d = a->devices[i];
        if (!d)
            continue;
        for (unsigned kind = 0; kind < KIND_COUNT; kind++)
            if (d->kinds[kind])
                write_start(a, sql,
                            (uint64_t[]){i, d->kinds[kind]->level.active_bytes, d->kinds[kind]->level.active_count}, 3,
                            kind_name(kind));
        write_start(a, sql, (uint64_t[]){i, d->level.active_bytes, d->level.active_count}, 3, kind_name(KIND_all));
    }
}

static void write_thread(struct account *a, uint32_t thread_id, const struct thread_device *t)
{
    static const char sql[] =
        "INSERT INTO account_start(scope, inclusive, key_id, device_id, start_bytes, start_count, "
        "kind) VALUES('thread', 0, ?,?,?,?,?)";
    uint64_t bytes = 0, count = 0;
    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        const struct tally_rare *r = t->kinds[kind] ? &t->kinds[kind]->rare : NULL;
        if (!r || !r->start_count)
            continue;
        bytes += r->start_bytes;
        count += r->start_count;
        write_start(a, sql, (uint64_t[]){thread_id, t->device, r->start_bytes, r->start_count}, 4, kind_name(kind));
    }
    if (count)
        write_start(a, sql, (uint64_t[]){thread_id, t->device, bytes, count}, 4, kind_name(KIND_all));
}

/* --- what begins anew --- */

static void begin_level(struct account *a, struct level *l, struct reserved *r, struct top *top)
{
    level_anew(l, a->now_ns, a->event_count);
    r->peak_bytes = r->bytes;
    r->peak_ns = a->now_ns;
    *top = (struct top){0};
}

static void begin_device(struct account *a, struct device_account *d)
{
    begin_level(a, &d->level, &d->reserved, &d->top);
    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        struct kind_account *k = d->kinds[kind];
        if (!k)
            continue;
        begin_level(a, &k->level, &k->reserved, &k->top);
        k->realloc_count = k->temporary_bytes = k->end_bytes = k->end_count = 0;
        k->teardown_bytes = k->teardown_count = 0;
        memset(&k->histogram, 0, sizeof k->histogram);
        memset(k->chunk_sizes, 0, sizeof k->chunk_sizes);
    }
    d->generation++;
    d->written_epochs = 0;
    timeline_anew(d->timeline, a->now_ns, d->alloc_count, d->alloc_bytes);
}

static void begin_sites(struct account *a)
{
    struct site_table *t = &a->sites;
    struct started *started = &a->started;
    free(started->sites);
    started->sites = xcalloc(t->count + 1ul, sizeof *started->sites);
    started->site_capacity = t->count + 1;
    for (uint32_t id = 1; id <= t->count; id++) {
        struct site *s = site_at(t, id);
        if (tally_live_bytes(&s->tally) || tally_live_count(&s->tally))
            site_rare(t, s);
        tally_anew(&s->tally);
        s->dirty = 0;
        t->dirty[id / 64] &= ~(1ull << (id & 63));
        t->loose[id / 64] &= ~(1ull << (id & 63));
        const struct tally_rare *r = tally_rare(&s->tally);
        s->chunk_high_bytes = r->start_bytes;
        started->sites[id].moved = r->start_count || r->start_bytes;
        if (r->start_count || t->packer)
            site_mark_dirty(t, s, id);
    }
    map_close(&t->kept);
    t->kept = (struct map){0};
    sites_all_anew(t);
}

static void begin_thread_kind(struct thread_tally *k)
{
    const struct tally *t = &k->tally;
    const struct tally_rare *r = &k->rare;
    k->before_alloc_count += t->alloc_count - r->moved_count - r->start_count;
    k->before_alloc_bytes += t->alloc_bytes - r->moved_bytes - r->start_bytes;
    k->before_free_count += t->left_count - r->end_count - r->moved_count;
    k->before_free_bytes += t->left_bytes - r->end_bytes - r->moved_bytes;
    tally_anew(&k->tally);
    k->peak_bytes = 0;
}

static void begin_threads(struct account *a)
{
    for (uint32_t i = 0; i < a->thread_capacity; i++) {
        struct thread_account *t = a->threads[i];
        uint64_t live = 0;
        for (struct thread_device *d = t ? t->devices : NULL; d; d = d->next) {
            for (unsigned kind = 0; kind < KIND_COUNT; kind++)
                if (d->kinds[kind])
                    begin_thread_kind(d->kinds[kind]);
            d->peak_bytes = 0;
            d->own_peak_bytes = d->live_bytes;
            live |= d->live_bytes;
            write_thread(a, i, d);
        }
        if (live)
            account_thread_dirty(a, i);
    }
}

/* Chunks before the newest are no longer asked for. */
static void forget_chunks(struct account *a)
{
    if (a->short_count > 1) {
        a->short_chunks[0] = a->short_chunks[a->short_count - 1];
        a->short_count = 1;
    }
}

static void clear(struct account *a)
{
    static const char *const statements[] = {
        "DELETE FROM site",       "DELETE FROM site_teardown", "DELETE FROM site_kept",
        "DELETE FROM site_start", "DELETE FROM total",         "DELETE FROM total_start",
        "DELETE FROM peak",       "DELETE FROM account",       "DELETE FROM account_start",
        "DELETE FROM timeline",   "DELETE FROM size_class",    "DELETE FROM lifetime_class",
        "DELETE FROM free_site",  "DELETE FROM block",         "DELETE FROM block_touch",
        "DELETE FROM site_touch", "DELETE FROM upload_again"};
    for (unsigned i = 0; i < sizeof statements / sizeof *statements; i++) {
        sqlite3_stmt *s = store_statement(a->store, statements[i]);
        if (!s)
            return;
        store_step(a->store, s);
    }
}

void account_anew(struct account *a)
{
    struct keyframes *k = &a->keyframes;
    a->started.ns = ++a->now_ns; /* blocks from before are older, all others are not */
    a->started.moved = 1;
    a->started.event = a->event_count;
    store_needs(a->store, DB_SCHEMA_STARTED);
    clear(a);
    account_figures_anew(a);
    for (unsigned i = 0; i < ACCOUNT_DEVICES; i++)
        if (a->devices[i])
            begin_device(a, a->devices[i]);
    begin_sites(a);
    begin_threads(a);
    write_totals(a);
    account_teardown_anew(a);
    account_freed_close(a);
    a->freed = (struct freed){0};
    touches_anew(&a->touches);
    a->largest.count = 0;
    a->largest.least_bytes = 0;
    k->oom_count = k->teardown_count = k->policy_count = k->periodic_count = 0;
    buf_reset(&k->end);
    forget_chunks(a);
}

uint64_t account_started_event(const struct account *a)
{
    return a->started.event;
}

/* --- the end of a part: what is otherwise written at the end of the run --- */

struct offering {
    struct account *a;
    const struct process_account *process;
    uint16_t process_id;
};

static void offer(void *context, const struct live_block *b)
{
    const struct offering *x = context;
    if (account_part_is_first(x->process, b))
        account_offer_live(x->a, x->process, x->process_id, b);
}

void account_part_end(struct account *a)
{
    for (unsigned i = 0; i < ACCOUNT_PROCESSES; i++) {
        struct process_account *p = a->processes[i];
        if (!p)
            continue;
        account_parts_pass(p);
        live_each(p->live, offer, &(struct offering){a, p, (uint16_t)i});
    }
    account_write_end(a);
}
