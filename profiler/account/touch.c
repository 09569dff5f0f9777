#include "touch.h"

#include "account_private.h"

#include "../../common/array.h"

#include <stdlib.h>

const struct block_touch *touches_find(const struct touches *t, unsigned process_id, uint64_t key, uint64_t birth_ns)
{
    const struct block_touch *b =
        t->blocks.count ? (const struct block_touch *)(uintptr_t)map_get(&t->blocks, key, process_id) : NULL;
    return b && b->birth_ns == birth_ns ? b : NULL;
}

static struct site_touch *site_touch(struct touches *t, uint32_t site)
{
    uint32_t i = map_number_or(&t->sites, site, 0, t->site_count);
    if (i == t->site_count)
        *ARRAY_ADD(t->site_touches, t->site_count, t->site_capacity) = (struct site_touch){.site = site};
    return &t->site_touches[i];
}

/* --- uploads --- */

static uint64_t upload_hash(const struct upload *u)
{
    const uint64_t parts[] = {u->source_birth_ns, u->bytes, u->size_bytes, u->process_id << 8 | u->device};
    uint64_t h = 0;
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        h = (h ^ parts[i]) * 0x9E3779B97F4A7C15ull ^ h >> 29;
    return h;
}

static int is_same(const struct upload *a, const struct upload *b)
{
    return a->source == b->source && a->source_birth_ns == b->source_birth_ns && a->bytes == b->bytes &&
           a->size_bytes == b->size_bytes && a->process_id == b->process_id && a->device == b->device;
}

/* What one says is kept while a block has it, and where several had it at the peak so far. */
static void forget(struct touches *t, uint32_t number, uint64_t peak_bytes)
{
    struct upload *u = &t->uploads[number];
    if (u->member_count || (u->at_peak_count > 1 && u->peak_bytes == peak_bytes))
        return;
    map_take(&t->upload_of, u->source, upload_hash(u));
    *u = (struct upload){.site = t->unused_upload};
    t->unused_upload = number + 1;
}

/* The block has something else from now on, or is gone. */
static void leave_upload(struct account *a, struct block_touch *b)
{
    struct touches *t = &a->touches;
    const struct level *level = &a->devices[b->device]->level;
    if (!b->upload)
        return;
    struct upload *u = &t->uploads[b->upload - 1];
    if (u->peak_bytes != level->peak_bytes)
        u->at_peak_count = u->newest_ns = 0;
    u->peak_bytes = level->peak_bytes;
    u->member_count--;
    if (b->from_ns <= level->peak_ns) {
        u->at_peak_count++;
        if (b->join_ns >= u->newest_ns) {
            u->newest_ns = b->join_ns;
            u->site = b->site;
        }
    }
    forget(t, b->upload - 1, level->peak_bytes);
    b->upload = 0;
}

static uint32_t find_upload(struct touches *t, const struct upload *like)
{
    uint64_t hash = upload_hash(like);
    uint32_t next = t->unused_upload ? t->unused_upload - 1 : t->upload_count;
    uint32_t i = map_number_or(&t->upload_of, like->source, hash, next);
    if (i != next)
        return i;
    if (t->unused_upload)
        t->unused_upload = t->uploads[i].site;
    else
        ARRAY_ADD(t->uploads, t->upload_count, t->upload_capacity);
    t->uploads[i] = *like;
    return i;
}

/* When the host's block that begins there was born: memory that was given out anew has other contents. 0: none does. */
static uint64_t source_birth(const struct account *a, const struct event *e)
{
    static const unsigned kinds[] = {KIND_heap, KIND_pinned, KIND_map};
    struct process_account *p = a->processes[e->process_id];
    for (unsigned i = 0; p && i < sizeof kinds / sizeof *kinds; i++) {
        uint64_t key = live_key(e->size_bytes, account_space(kinds[i]));
        const struct live_block *b = live_find(p->live, key, live_hash(key));
        if (b && site_at(&a->sites, b->site)->device == 0)
            return b->time_ns;
    }
    return 0;
}

static void uploaded(struct account *a, const struct event *e, struct block_touch *b)
{
    struct touches *t = &a->touches;
    const struct upload like = {.source = e->size_bytes,
                                .source_birth_ns = source_birth(a, e),
                                .bytes = b->last_bytes,
                                .size_bytes = b->size_bytes,
                                .process_id = e->process_id,
                                .device = b->device};
    if (b->upload && is_same(&t->uploads[b->upload - 1], &like))
        return;
    leave_upload(a, b);
    uint32_t number = find_upload(t, &like);
    if (!is_same(&t->uploads[number], &like))
        return;
    t->uploads[number].member_count++;
    b->upload = number + 1;
    b->join_ns = a->now_ns;
    b->from_ns = b->count == 1 ? b->birth_ns : a->now_ns;
}

/* --- blocks --- */

/* It is gone; what lives at the peak so far lived from its birth up to now. */
static void settle(struct account *a, struct block_touch *b)
{
    struct touches *t = &a->touches;
    const struct level *level = &a->devices[b->device]->level;
    struct site_touch *s = site_touch(t, b->site);
    s->block_count++;
    s->block_bytes += b->size_bytes;
    s->lifetime_ns += a->now_ns - b->birth_ns;
    s->before_ns += b->first_ns - b->birth_ns;
    s->after_ns += a->now_ns - b->last_ns;
    if (s->peak.peak_bytes != level->peak_bytes)
        s->peak = (struct touch_peak){.peak_bytes = level->peak_bytes};
    int was_there = b->birth_ns <= level->peak_ns;
    /* where as much was active at the first copy, that was the peak, too */
    if (was_there && b->first_ns > level->peak_ns && b->first_active < level->peak_bytes &&
        b->first_what == TOUCH_WRITE) {
        s->peak.early_count++;
        s->peak.early_bytes += b->size_bytes;
    } else if (was_there && b->last_ns < level->peak_ns && b->last_what == TOUCH_READ) {
        s->peak.late_count++;
        s->peak.late_bytes += b->size_bytes;
    }
}

static void end(struct account *a, struct block_touch *b, int is_moved)
{
    map_take(&a->touches.blocks, b->key, b->process_id);
    leave_upload(a, b);
    if (!is_moved)
        settle(a, b);
    free(b);
}

static uint8_t direction(const struct event *e)
{
    return e->stack_id == TOUCH_READ ? TOUCH_READ : TOUCH_WRITE;
}

static struct block_touch *begin(struct account *a, const struct event *e, uint64_t key)
{
    const struct process_account *p = a->processes[e->process_id];
    const struct live_block *live = p ? live_find(p->live, key, live_hash(key)) : NULL;
    struct block_touch *b = (struct block_touch *)(uintptr_t)map_get(&a->touches.blocks, key, e->process_id);
    if (b && live && b->birth_ns == live->time_ns)
        return b;
    if (b) /* its end was not told */
        end(a, b, 0);
    if (!live)
        return NULL;
    b = xcalloc(1, sizeof *b);
    b->process_id = e->process_id;
    b->key = key;
    b->size_bytes = live->size;
    b->birth_ns = live->time_ns;
    b->first_ns = a->now_ns;
    b->first_what = direction(e);
    b->site = live->site;
    b->device = site_at(&a->sites, live->site)->device;
    b->first_active = a->devices[b->device]->level.active_bytes;
    *map_slot(&a->touches.blocks, key, e->process_id) = (uintptr_t)b;
    return b;
}

void account_touch(struct account *a, const struct event *e)
{
    uint64_t key = live_key(e->address, account_space(e->kind));
    struct block_touch *b = (struct block_touch *)(uintptr_t)map_get(&a->touches.blocks, key, e->process_id);
    if (e->op == EVENT_TOUCH_END && b)
        end(a, b, e->stack_id == TOUCH_MOVED);
    if (e->op == EVENT_UPLOAD && b)
        uploaded(a, e, b);
    b = e->op == EVENT_TOUCH ? begin(a, e, key) : NULL;
    if (!b)
        return;
    b->count++;
    b->last_ns = a->now_ns;
    b->last_what = direction(e);
    b->last_bytes = e->size_bytes;
    if (e->stack_id == TOUCH_WRITE)
        leave_upload(a, b);
}

void account_touch_process_end(struct account *a, unsigned process_id)
{
    struct block_touch **of_process = NULL;
    size_t count = 0, capacity = 0;
    for (struct map_entry *e = NULL; (e = map_next(&a->touches.blocks, e));)
        if (e->b == process_id)
            *ARRAY_ADD(of_process, count, capacity) = (struct block_touch *)(uintptr_t)e->value;
    for (size_t i = 0; i < count; i++)
        end(a, of_process[i], 0);
    free(of_process);
}

void touches_anew(struct touches *t)
{
    map_close(&t->sites);
    t->sites = (struct map){0};
    t->site_count = 0;
    for (uint32_t i = 0; i < t->upload_count; i++)
        t->uploads[i].at_peak_count = t->uploads[i].newest_ns = 0;
}

void touches_close(struct touches *t)
{
    map_close_pointers(&t->blocks, free);
    map_close(&t->sites);
    map_close(&t->upload_of);
    free(t->site_touches);
    free(t->uploads);
}

/* --- rows --- */

static void write_row(struct store *store, const char *sql, const uint64_t *values, unsigned count)
{
    sqlite3_stmt *s = store_statement(store, sql);
    if (!s)
        return;
    for (unsigned i = 0; i < count; i++)
        sqlite3_bind_int64(s, (int)i + 1, (int64_t)values[i]);
    store_step(store, s);
}

static void write_site(struct account *a, const struct site_touch *s)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO site_touch(site_id, block_count, block_bytes, lifetime_ns, before_ns, after_ns, "
        "early_peak_count, early_peak_bytes, late_peak_count, late_peak_bytes) VALUES(?,?,?,?,?,?,?,?,?,?)";
    static const struct touch_peak none;
    const struct level *level = &a->devices[site_at(&a->sites, s->site)->device]->level;
    const struct touch_peak *p = s->peak.peak_bytes == level->peak_bytes ? &s->peak : &none;
    const uint64_t values[] = {s->site,     s->block_count, s->block_bytes, s->lifetime_ns, s->before_ns,
                               s->after_ns, p->early_count, p->early_bytes, p->late_count,  p->late_bytes};
    write_row(a->store, sql, values, sizeof values / sizeof *values);
}

static void write_upload(struct account *a, const struct upload *u)
{
    static const char sql[] = "INSERT INTO upload_again(site_id, process_id, source_address, upload_bytes, size_bytes, "
                              "at_peak_count) VALUES(?,?,?,?,?,?)";
    const uint64_t values[] = {u->site, u->process_id, u->source, u->bytes, u->size_bytes, u->at_peak_count};
    if (u->at_peak_count > 1 && u->peak_bytes == a->devices[u->device]->level.peak_bytes)
        write_row(a->store, sql, values, sizeof values / sizeof *values);
}

void account_touch_write(struct account *a)
{
    const struct touches *t = &a->touches;
    for (uint32_t i = 0; i < t->site_count; i++)
        write_site(a, &t->site_touches[i]);
    for (uint32_t i = 0; i < t->upload_count; i++)
        write_upload(a, &t->uploads[i]);
}
