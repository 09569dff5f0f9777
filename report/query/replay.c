#include "replay.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/map.h"
#include "blocks.h"

#include <errno.h>
#include <stdlib.h>

/* --- accounts ---------------------------------------------------------------------------------------------------- */

struct level { /* of a device, or of one kind of it; the last peak's number is its epoch */
    struct replay_total total;
    uint64_t active_bytes, active_count;
    uint64_t epoch;
};

struct site {
    struct replay_site site;
    uint64_t live_bytes, live_count;
    uint64_t epoch, kind_epoch; /* up to which peaks at_peak is known */
};

struct state {
    struct chunk_codec *codec;
    int64_t event_count;
    struct blocks blocks;
    struct map site_of;
    uint32_t level_of[256][KIND_COUNT + 1]; /* by device and kind: level + 1 */
    struct site *sites;
    struct level *levels;
    uint32_t site_count, site_capacity, level_count, level_capacity;
    int64_t *teardown_ns; /* by process_id; 0: none */
    struct map last_at;
    uint64_t *last; /* by last_at of a thread: address of its last allocation */
    uint32_t last_count, last_capacity;
};

/* What is counted here. A statistic that is not in it is not known of a replay. */
#define OF(statistic) (1u << STAT_##statistic)
static const uint32_t counted = OF(alloc_count) | OF(alloc_bytes) | OF(free_count) | OF(free_bytes) |
                                OF(temporary_count) | OF(temporary_bytes) | OF(at_peak_bytes) | OF(at_peak_count) |
                                OF(at_kind_peak_bytes) | OF(own_peak_bytes) | OF(end_bytes) | OF(end_count) |
                                OF(active_peak_bytes) | OF(largest_bytes) | OF(lifetime_ns);
#undef OF

static struct site *site_at(struct state *s, const struct chunk_event *e)
{
    uint32_t i = map_number_or(&s->site_of, e->site_id, 0, s->site_count);
    if (i < s->site_count)
        return &s->sites[i];
    struct site *site = ARRAY_ADD(s->sites, s->site_count, s->site_capacity);
    site->site = (struct replay_site){.id = e->site_id, .device = e->device, .kind = e->kind, .stats.known = counted};
    return site;
}

static uint32_t level_at(struct state *s, unsigned device, unsigned kind)
{
    uint32_t *of = &s->level_of[device][kind];
    if (!*of) {
        struct level *l = ARRAY_ADD(s->levels, s->level_count, s->level_capacity);
        l->total = (struct replay_total){.device = (uint8_t)device, .kind = (uint8_t)kind, .stats.known = counted};
        *of = s->level_count;
    }
    return *of - 1;
}

static uint64_t *last_of(struct state *s, uint32_t thread_id)
{
    uint32_t i = map_number_or(&s->last_at, thread_id, 0, s->last_count);
    return i < s->last_count ? &s->last[i] : ARRAY_ADD(s->last, s->last_count, s->last_capacity);
}

/* A hostile file may make sums wrap, which is then merely wrong. */
static void plus(int64_t *value, uint64_t change)
{
    *value = (int64_t)((uint64_t)*value + change);
}

/* What the site held at the peaks since it changed last is what it holds now. */
static void seal(struct site *site, const struct level *device, const struct level *kind)
{
    int64_t *v = site->site.stats.value;
    if (site->epoch != device->epoch) {
        v[STAT_at_peak_bytes] = (int64_t)site->live_bytes;
        v[STAT_at_peak_count] = (int64_t)site->live_count;
        site->epoch = device->epoch;
    }
    if (site->kind_epoch != kind->epoch) {
        v[STAT_at_kind_peak_bytes] = (int64_t)site->live_bytes;
        site->kind_epoch = kind->epoch;
    }
}

static void raise_level(struct level *l, const struct chunk_event *e)
{
    l->active_bytes += e->size_bytes;
    l->active_count++;
    if ((int64_t)l->active_bytes > l->total.stats.value[STAT_at_peak_bytes]) {
        l->total.stats.value[STAT_at_peak_bytes] = (int64_t)l->active_bytes;
        l->total.peak_active_ns = (int64_t)e->time_ns;
        l->total.peak_active_count = (int64_t)l->active_count;
        l->epoch++;
    }
}

static void most(int64_t *value, uint64_t now)
{
    if ((int64_t)now > *value)
        *value = (int64_t)now;
}

static void birth(struct state *s, const struct chunk_event *e, struct site *site, struct level *levels[2])
{
    int64_t *const stats[] = {site->site.stats.value, levels[0]->total.stats.value, levels[1]->total.stats.value};
    for (int i = 0; i < 3; i++) {
        plus(&stats[i][STAT_alloc_count], 1);
        plus(&stats[i][STAT_alloc_bytes], e->size_bytes);
        most(&stats[i][STAT_largest_bytes], e->size_bytes);
    }
    for (int i = 0; i < 2; i++) {
        levels[i]->total.realloc_count += e->op == CHUNK_realloc_alloc;
        raise_level(levels[i], e);
    }
    site->live_bytes += e->size_bytes;
    site->live_count++;
    most(&stats[0][STAT_own_peak_bytes], site->live_bytes);
    most(&stats[0][STAT_active_peak_bytes], levels[0]->active_bytes);
    *last_of(s, e->thread_id) = e->address;
    if (e->address)
        blocks_put(&s->blocks, e, e->process_id);
}

/* Live when its process's interpreter began to take itself down: that is the end. */
static int is_torn_down(const struct state *s, const struct chunk_event *e, const struct block *block)
{
    int64_t began_ns = s->teardown_ns ? s->teardown_ns[e->process_id] : 0;
    return began_ns && (int64_t)e->time_ns >= began_ns && (int64_t)block->time_ns <= began_ns;
}

static void split(struct state *s, const struct chunk_event *e)
{
    struct block block;
    if (!blocks_take(&s->blocks, e->address, e->process_id, &block))
        return;
    struct chunk_event part = {.address = block.address,
                               .size_bytes = e->size_bytes,
                               .time_ns = block.time_ns,
                               .site_id = block.site_id,
                               .thread_id = block.thread_id};
    blocks_put(&s->blocks, &part, block.space);
    part.address += e->size_bytes;
    part.size_bytes = block.size_bytes - e->size_bytes;
    if (part.address)
        blocks_put(&s->blocks, &part, block.space);
}

/* A part of a block leaves, which counts when the last one does. */
static void cut(struct state *s, const struct chunk_event *e, struct site *site, struct level *levels[2])
{
    int64_t *const stats[] = {site->site.stats.value, levels[0]->total.stats.value, levels[1]->total.stats.value};
    struct block block = {0};
    int is_torn = blocks_take(&s->blocks, e->address, e->process_id, &block) && is_torn_down(s, e, &block);
    for (int i = 0; i < 3; i++) {
        plus(&stats[i][STAT_free_bytes], e->size_bytes);
        plus(&stats[i][STAT_end_bytes], is_torn ? e->size_bytes : 0);
    }
    plus(&site->site.torn_bytes, is_torn ? e->size_bytes : 0);
    for (int i = 0; i < 2; i++)
        levels[i]->active_bytes -= e->size_bytes;
    site->live_bytes -= e->size_bytes;
}

/* count blocks leave; a block that turned out to be a segment never was one. */
static void death(struct state *s, const struct chunk_event *e, struct site *site, struct level *levels[2])
{
    int64_t *const stats[] = {site->site.stats.value, levels[0]->total.stats.value, levels[1]->total.stats.value};
    struct block block = {0};
    uint64_t count = e->op == CHUNK_end ? e->address : 1;
    int is_known = e->op != CHUNK_end && blocks_take(&s->blocks, e->address, e->process_id, &block);
    int is_torn = is_known && e->op != CHUNK_to_segment && is_torn_down(s, e, &block);
    int is_temporary = is_known && e->op != CHUNK_realloc_free && *last_of(s, block.thread_id) == e->address;
    for (int i = 0; i < 3; i++) {
        if (e->op == CHUNK_end) {
            plus(&stats[i][STAT_end_count], count);
            plus(&stats[i][STAT_end_bytes], e->size_bytes);
        } else if (e->op == CHUNK_to_segment) {
            plus(&stats[i][STAT_alloc_count], (uint64_t)-1);
            plus(&stats[i][STAT_alloc_bytes], -e->size_bytes);
        } else {
            plus(&stats[i][STAT_free_count], 1);
            plus(&stats[i][STAT_free_bytes], e->size_bytes);
            plus(&stats[i][STAT_lifetime_ns], is_known ? e->time_ns - block.time_ns : 0);
            plus(&stats[i][STAT_temporary_count], (uint64_t)is_temporary);
            plus(&stats[i][STAT_temporary_bytes], is_temporary ? e->size_bytes : 0);
        }
        if (is_torn) {
            plus(&stats[i][STAT_end_count], 1);
            plus(&stats[i][STAT_end_bytes], e->size_bytes);
        }
    }
    if (is_torn) {
        plus(&site->site.torn_bytes, e->size_bytes);
        plus(&site->site.torn_count, 1);
    }
    for (int i = 0; i < 2; i++) {
        levels[i]->active_bytes -= e->size_bytes;
        levels[i]->active_count -= count;
    }
    site->live_bytes -= e->size_bytes;
    site->live_count -= count;
}

static void apply(struct state *s, const struct chunk_event *e)
{
    int is_birth = e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc;
    if (e->op == CHUNK_split)
        split(s, e);
    if ((!is_birth && !chunk_op_is_loss(e->op)) || e->kind >= KIND_COUNT)
        return;
    uint32_t device = level_at(s, e->device, KIND_all), kind = level_at(s, e->device, e->kind);
    struct level *levels[2] = {&s->levels[device], &s->levels[kind]};
    struct site *site = site_at(s, e);
    seal(site, levels[0], levels[1]);
    if (is_birth)
        birth(s, e, site, levels);
    else if (e->op == CHUNK_cut)
        cut(s, e, site, levels);
    else
        death(s, e, site, levels);
}

/* --- the events -------------------------------------------------------------------------------------------------- */

/* Calls see for every event of images (NULL: of all), in order. */
static int each_event(sqlite3 *db, const struct replay_images *images,
                      void (*see)(void *context, const struct chunk_event *e), void *context, struct error *err)
{
    struct chunk_codec *codec = chunk_codec_open();
    sqlite3_stmt *q = NULL;
    int rc = db_prepare(db, "SELECT data, chunk_id FROM event_chunk ORDER BY chunk_id", &q, err), step = SQLITE_DONE;
    while (rc == 0 && (step = sqlite3_step(q)) == SQLITE_ROW) {
        const struct chunk_event *events;
        const void *data = sqlite3_column_blob(q, 0);
        long n = data ? chunk_decode_events(codec, data, (size_t)sqlite3_column_bytes(q, 0), &events) : -EBADMSG;
        if (n < 0)
            rc = error_set(err, EBADMSG, "%s: chunk %lld of the events is damaged, so one process cannot be told apart",
                           sqlite3_db_filename(db, "main"), (long long)sqlite3_column_int64(q, 1));
        for (long i = 0; i < n; i++)
            if (!images || replay_has(images, events[i].process_id))
                see(context, &events[i]);
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = db_error(db, err);
    sqlite3_finalize(q);
    chunk_codec_close(codec);
    return rc;
}

static void see_event(void *context, const struct chunk_event *e)
{
    struct state *s = context;
    s->event_count++;
    apply(s, e);
}

int replay_images(sqlite3 *db, int64_t pid, struct replay_images *images, struct error *err)
{
    sqlite3_stmt *q = NULL;
    int found = 0;
    *images = (struct replay_images){{0}};
    int rc = db_prepare(db, "SELECT process_id FROM main.process WHERE pid = ?", &q, err);
    if (rc == 0) {
        sqlite3_bind_int64(q, 1, pid);
        while (sqlite3_step(q) == SQLITE_ROW) {
            int64_t id = sqlite3_column_int64(q, 0);
            if (id >= 0 && id < 65536)
                images->bits[id >> 6] |= UINT64_C(1) << (id & 63);
            found = 1;
        }
        if (!found)
            rc = error_set(err, EINVAL, "no process %lld in this recording; 'memprof info' lists them", (long long)pid);
    }
    sqlite3_finalize(q);
    return rc;
}

int replay_is_possible(sqlite3 *db)
{
    char *kept = db_meta_text(db, "events_kept");
    int is_possible = kept && strcmp(kept, "all") == 0;
    free(kept);
    return is_possible;
}

/* Where the end of a process was not recorded, its end is that of the recording. */
static void still_live(struct stat_row *stats, uint64_t bytes, uint64_t count)
{
    plus(&stats->value[STAT_end_bytes], bytes);
    plus(&stats->value[STAT_end_count], count);
}

static int by_id(const void *a, const void *b)
{
    const struct replay_site *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int load_teardowns(sqlite3 *db, struct state *s, struct error *err)
{
    sqlite3_stmt *q = NULL;
    int rc = db_prepare(db, "SELECT process_id, time_ns FROM teardown", &q, err), step = SQLITE_DONE;
    s->teardown_ns = xcalloc(65536, sizeof *s->teardown_ns);
    while (rc == 0 && (step = sqlite3_step(q)) == SQLITE_ROW)
        s->teardown_ns[(uint16_t)sqlite3_column_int64(q, 0)] = sqlite3_column_int64(q, 1);
    if (rc == 0 && step != SQLITE_DONE)
        rc = db_error(db, err);
    sqlite3_finalize(q);
    return rc;
}

int replay_process(sqlite3 *db, const struct replay_images *images, struct replay *replay, struct error *err)
{
    struct state s = {0};
    *replay = (struct replay){0};
    int rc = load_teardowns(db, &s, err);
    if (rc == 0)
        rc = each_event(db, images, see_event, &s, err);
    replay->sites = xcalloc(s.site_count + 1ul, sizeof *replay->sites);
    replay->totals = xcalloc(s.level_count + 1ul, sizeof *replay->totals);
    for (uint32_t i = 0; rc == 0 && i < s.site_count; i++) {
        const struct replay_site *site = &s.sites[i].site;
        seal(&s.sites[i], &s.levels[level_at(&s, site->device, KIND_all)],
             &s.levels[level_at(&s, site->device, site->kind)]);
        still_live(&s.sites[i].site.stats, s.sites[i].live_bytes, s.sites[i].live_count);
        replay->sites[replay->site_count++] = *site;
    }
    for (uint32_t i = 0; rc == 0 && i < s.level_count; i++) {
        still_live(&s.levels[i].total.stats, s.levels[i].active_bytes, s.levels[i].active_count);
        replay->totals[replay->total_count++] = s.levels[i].total;
    }
    if (replay->site_count)
        qsort(replay->sites, replay->site_count, sizeof *replay->sites, by_id);
    replay->event_count = s.event_count;
    free(s.teardown_ns);
    free(s.sites);
    free(s.levels);
    free(s.last);
    free(s.blocks.slots);
    map_close(&s.last_at);
    map_close(&s.site_of);
    return rc;
}

void replay_free(struct replay *replay)
{
    free(replay->sites);
    free(replay->totals);
    *replay = (struct replay){0};
}

/* --- peaks of all processes -------------------------------------------------------------------------------------- */

struct peaks {
    int kind;
    struct map of; /* (process, device) -> peaks */
    struct peak {
        uint32_t process_id, device;
        uint64_t active, peak;
    } * peak;
    uint32_t count, capacity;
};

static void see_peak(void *context, const struct chunk_event *e)
{
    struct peaks *p = context;
    int is_birth = e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc;
    if ((p->kind != KIND_all && e->kind != p->kind) || (!is_birth && !chunk_op_is_loss(e->op)))
        return;
    uint32_t i = map_number_or(&p->of, e->process_id, e->device, p->count);
    if (i == p->count)
        *ARRAY_ADD(p->peak, p->count, p->capacity) = (struct peak){.process_id = e->process_id, .device = e->device};
    p->peak[i].active += is_birth ? e->size_bytes : -e->size_bytes;
    if (p->peak[i].active > p->peak[i].peak && (int64_t)p->peak[i].active > 0)
        p->peak[i].peak = p->peak[i].active;
}

/* Images of one process follow each other, so the largest of their peaks is the process's. */
int replay_peaks(sqlite3 *db, int kind, struct error *err)
{
    struct peaks p = {.kind = kind};
    sqlite3_stmt *q = NULL;
    int rc =
        db_exec(db,
                "DROP TABLE IF EXISTS temp.process_peak; CREATE TEMP TABLE process_peak(first_id INTEGER, device_id "
                "INTEGER, peak_bytes INTEGER); DROP TABLE IF EXISTS temp.process_image; CREATE TEMP TABLE "
                "process_image(process_id INTEGER PRIMARY KEY, first_id INTEGER); INSERT INTO temp.process_image "
                "SELECT process_id, first_id FROM v_image; CREATE INDEX temp.process_image_first ON "
                "process_image(first_id)",
                err);
    if (rc == 0 && replay_is_possible(db))
        rc = each_event(db, NULL, see_peak, &p, err);
    if (rc == 0)
        rc = db_prepare(
            db,
            "INSERT INTO temp.process_peak SELECT first_id, ?2, ?3 FROM temp.process_image WHERE process_id = "
            "?1",
            &q, err);
    for (uint32_t i = 0; rc == 0 && i < p.count; i++) {
        sqlite3_bind_int64(q, 1, p.peak[i].process_id);
        sqlite3_bind_int64(q, 2, p.peak[i].device);
        sqlite3_bind_int64(q, 3, (int64_t)p.peak[i].peak);
        rc = sqlite3_step(q) == SQLITE_DONE ? 0 : db_error(db, err);
        sqlite3_reset(q);
    }
    sqlite3_finalize(q);
    free(p.peak);
    map_close(&p.of);
    return rc;
}
