#include "survivors.h"

#include "../../common/array.h"
#include "../../common/chunk.h"
#include "../../common/db.h"
#include "../../common/map.h"
#include "../../common/search.h"

#include <errno.h>
#include <stdlib.h>

struct part { /* of a block, which is whole at first */
    uint64_t size_bytes;
    uint32_t block;
};

struct block {
    uint64_t time_ns;
    uint32_t site; /* of sites */
    uint32_t parts;
};

struct site {
    int64_t bytes, count;
    int is_open; /* what the sums leave open, events tell */
    int was_open;
};

struct survivors {
    sqlite3 *db;
    const struct replay_images *images;
    const struct window_range *ranges;
    size_t range_count, range;
    const struct replay *replay;
    struct site *sites; /* as those of the replay */
    uint32_t open_count;
    struct part *parts;
    struct block *blocks;
    uint32_t part_count, part_capacity, block_count, block_capacity;
    uint32_t *free_parts, *free_blocks; /* places of those that went */
    uint32_t free_part_count, free_part_capacity, free_block_count, free_block_capacity;
    struct map part_at;   /* (address, process and kind) -> parts; backwards: of blocks that went later */
    int64_t *teardown_ns; /* by process_id; 0: none */
};

static uint32_t site_at(const struct survivors *s, int64_t site_id)
{
    const uint32_t low = SEARCH_FIRST(s->replay->site_count, i, s->replay->sites[i].id < site_id);
    return low < s->replay->site_count && s->replay->sites[low].id == site_id && s->sites[low].is_open ? low : MAP_NONE;
}

/* Where nothing was live at the start, or nothing was freed, the sums tell. With gaps between ranges they never do. */
static void look_at_sums(struct survivors *s)
{
    for (uint32_t i = 0; i < s->replay->site_count; i++) {
        const int64_t *v = s->replay->sites[i].stats.value;
        struct site *site = &s->sites[i];
        int is_lost = v[STAT_free_count] != 0 || v[STAT_free_bytes] != 0 || s->replay->sites[i].moved_count != 0;
        if ((v[STAT_end_count] <= 0 && s->range_count == 1) || (v[STAT_alloc_count] == 0 && !is_lost))
            continue;
        if (s->range_count > 1 || (v[STAT_start_count] != 0 && is_lost)) {
            site->is_open = site->was_open = 1;
            s->open_count++;
        } else if (v[STAT_start_count] == 0) {
            site->bytes = v[STAT_end_bytes];
            site->count = v[STAT_end_count];
        } else {
            site->bytes = v[STAT_alloc_bytes];
            site->count = v[STAT_alloc_count];
        }
    }
}

static void add_part(struct survivors *s, const struct chunk_event *e, uint64_t address, uint64_t size_bytes,
                     uint32_t block)
{
    uint32_t part = s->free_part_count ? s->free_parts[--s->free_part_count] : s->part_count;
    if (part == s->part_count)
        ARRAY_ADD(s->parts, s->part_count, s->part_capacity);
    s->parts[part] = (struct part){size_bytes, block};
    map_set_number(&s->part_at, address, chunk_event_space(e), part);
    s->blocks[block].parts++;
    s->sites[s->blocks[block].site].bytes += (int64_t)size_bytes;
    s->sites[s->blocks[block].site].count += s->blocks[block].parts == 1;
}

static void take_part(struct survivors *s, uint32_t part)
{
    struct block *block = &s->blocks[s->parts[part].block];
    block->parts--;
    s->sites[block->site].bytes -= (int64_t)s->parts[part].size_bytes;
    s->sites[block->site].count -= block->parts == 0;
    *ARRAY_ADD(s->free_parts, s->free_part_count, s->free_part_capacity) = part;
    if (!block->parts)
        *ARRAY_ADD(s->free_blocks, s->free_block_count, s->free_block_capacity) = s->parts[part].block;
}

static uint32_t add_block(struct survivors *s, uint64_t time_ns, uint32_t site)
{
    uint32_t block = s->free_block_count ? s->free_blocks[--s->free_block_count] : s->block_count;
    if (block == s->block_count)
        ARRAY_ADD(s->blocks, s->block_count, s->block_capacity);
    s->blocks[block] = (struct block){.time_ns = time_ns, .site = site};
    return block;
}

/* Live when the interpreter of its process began to take itself down within the ranges: that was the end. */
static int is_torn_down(const struct survivors *s, const struct chunk_event *e, const struct block *block)
{
    int64_t began_ns = s->teardown_ns[e->process_id];
    const struct window_range *r = &s->ranges[s->range];
    return began_ns && began_ns >= r->from_ns && (int64_t)e->time_ns >= began_ns && (int64_t)e->time_ns < r->to_ns &&
           (int64_t)block->time_ns <= began_ns;
}

static void apply(struct survivors *s, const struct chunk_event *e)
{
    const uint64_t space = chunk_event_space(e);
    int is_birth = chunk_op_is_birth(e->op);
    if (s->images && !replay_has(s->images, e->process_id))
        return;
    if (is_birth) {
        const struct window_range *r = &s->ranges[s->range];
        int is_inside = (int64_t)e->time_ns >= r->from_ns && (int64_t)e->time_ns < r->to_ns;
        uint32_t site = is_inside ? site_at(s, e->site_id) : MAP_NONE;
        map_take(&s->part_at, e->address, space);
        if (site == MAP_NONE)
            return;
        add_part(s, e, e->address, e->size_bytes, add_block(s, e->time_ns, site));
    } else if (chunk_op_is_death(e->op) || e->op == CHUNK_cut || e->op == CHUNK_split) {
        uint32_t part = (uint32_t)(map_take(&s->part_at, e->address, space) - 1);
        if (part == MAP_NONE)
            return;
        const struct part was = s->parts[part];
        if (e->op != CHUNK_to_segment && e->op != CHUNK_split && is_torn_down(s, e, &s->blocks[was.block]))
            return;
        if (e->op == CHUNK_split) {
            add_part(s, e, e->address, e->size_bytes, was.block);
            add_part(s, e, e->address + e->size_bytes, was.size_bytes - e->size_bytes, was.block);
        }
        take_part(s, part);
    }
}

static int is_wanted(struct survivors *s, struct chunk_codec *codec, const void *data, size_t bytes)
{
    const struct chunk_delta *deltas;
    long count = data ? chunk_decode_deltas(codec, data, bytes, &deltas) : -EBADMSG;
    for (long i = 0; i < count; i++)
        if (site_at(s, deltas[i].site_id) != MAP_NONE)
            return 1;
    return count < 0;
}

/* --- from the end of the window backwards ------------------------------------------------------------------------ */

/* A birth behind which nothing takes the block away is a survivor; a site of which all that were live at the end are
 * found needs no events any more. -EAGAIN: only the way forwards tells. */
static int apply_backwards(struct survivors *s, const struct chunk_event *e)
{
    const uint64_t space = chunk_event_space(e);
    const int is_birth = chunk_op_is_birth(e->op);
    if (e->op == CHUNK_cut || e->op == CHUNK_split || e->op == CHUNK_to_segment)
        return -EAGAIN;
    const uint32_t i = is_birth || chunk_op_is_death(e->op) ? site_at(s, e->site_id) : MAP_NONE;
    if (i == MAP_NONE)
        return 0;
    if (!is_birth) {
        map_set_number(&s->part_at, e->address, space, 0);
        return 0;
    }
    if (map_take(&s->part_at, e->address, space))
        return 0;
    struct site *site = &s->sites[i];
    site->bytes += (int64_t)e->size_bytes;
    if (++site->count == s->replay->sites[i].stats.value[STAT_end_count]) {
        site->is_open = 0;
        s->open_count--;
    }
    return 0;
}

static int has_teardown(const struct survivors *s)
{
    for (int i = 0; i < 65536; i++)
        if (s->teardown_ns[i] >= s->ranges[0].from_ns && s->teardown_ns[i] && s->teardown_ns[i] < s->ranges[0].to_ns)
            return 1;
    return 0;
}

static long decode(sqlite3_stmt *data, struct chunk_codec *codec, int64_t chunk_id, const struct chunk_event **events)
{
    sqlite3_bind_int64(data, 1, chunk_id);
    const void *bytes = sqlite3_step(data) == SQLITE_ROW ? sqlite3_column_blob(data, 0) : NULL;
    long n = bytes ? chunk_decode_events(codec, bytes, (size_t)sqlite3_column_bytes(data, 0), events) : -EBADMSG;
    sqlite3_reset(data);
    return n;
}

static int read_backwards(struct survivors *s, struct error *err)
{
    const int64_t from_ns = s->ranges[0].from_ns, to_ns = s->ranges[0].to_ns;
    if (s->range_count != 1 || s->images || has_teardown(s))
        return -EAGAIN;
    struct chunk_codec *codec = chunk_codec_open();
    sqlite3_stmt *q = NULL, *data = NULL;
    int rc = db_prepare(s->db,
                        "SELECT chunk_id, site_delta FROM event_chunk WHERE last_ns >= ?1 AND first_ns < ?2 ORDER BY "
                        "chunk_id DESC",
                        &q, err);
    if (rc == 0)
        rc = db_prepare(s->db, "SELECT data FROM event_chunk WHERE chunk_id = ?", &data, err);
    if (rc == 0) {
        sqlite3_bind_int64(q, 1, from_ns);
        sqlite3_bind_int64(q, 2, to_ns);
    }
    while (rc == 0 && s->open_count && db_next(q, &rc, err)) {
        const struct chunk_event *events;
        if (!is_wanted(s, codec, sqlite3_column_blob(q, 1), (size_t)sqlite3_column_bytes(q, 1)))
            continue;
        long n = decode(data, codec, sqlite3_column_int64(q, 0), &events);
        rc = n < 0 ? -EAGAIN : 0;
        for (long i = n - 1; rc == 0 && i >= 0 && (int64_t)events[i].time_ns >= from_ns; i--)
            if ((int64_t)events[i].time_ns < to_ns)
                rc = apply_backwards(s, &events[i]);
    }
    sqlite3_finalize(data);
    sqlite3_finalize(q);
    chunk_codec_close(codec);
    return rc;
}

/* As if nothing had been read. */
static void forget(struct survivors *s)
{
    s->open_count = 0;
    for (uint32_t i = 0; i < s->replay->site_count; i++) {
        struct site *site = &s->sites[i];
        if (site->was_open)
            *site = (struct site){.is_open = 1, .was_open = 1};
        s->open_count += (uint32_t)site->was_open;
    }
    map_close(&s->part_at);
    s->part_at = (struct map){0};
}

/* --- forwards ---------------------------------------------------------------------------------------------------- */

static int read_events(struct survivors *s, struct error *err)
{
    const int64_t from_ns = s->ranges[0].from_ns, to_ns = s->ranges[s->range_count - 1].to_ns;
    struct chunk_codec *codec = chunk_codec_open();
    sqlite3_stmt *q = NULL, *data = NULL;
    int rc = db_prepare(s->db,
                        "SELECT chunk_id, site_delta FROM event_chunk WHERE last_ns >= ?1 AND first_ns < ?2 ORDER BY "
                        "chunk_id",
                        &q, err);
    if (rc == 0)
        rc = db_prepare(s->db, "SELECT data FROM event_chunk WHERE chunk_id = ?", &data, err);
    if (rc == 0) {
        sqlite3_bind_int64(q, 1, from_ns);
        sqlite3_bind_int64(q, 2, to_ns);
    }
    while (db_next(q, &rc, err)) {
        const struct chunk_event *events;
        if (!is_wanted(s, codec, sqlite3_column_blob(q, 1), (size_t)sqlite3_column_bytes(q, 1)))
            continue;
        long n = decode(data, codec, sqlite3_column_int64(q, 0), &events);
        for (long i = 0; i < n && (int64_t)events[i].time_ns < to_ns; i++) {
            while (s->range + 1 < s->range_count && (int64_t)events[i].time_ns >= s->ranges[s->range].to_ns &&
                   (int64_t)events[i].time_ns >= s->ranges[s->range + 1].from_ns)
                s->range++;
            if ((int64_t)events[i].time_ns >= from_ns)
                apply(s, &events[i]);
        }
    }
    sqlite3_finalize(data);
    sqlite3_finalize(q);
    chunk_codec_close(codec);
    return rc;
}

static int load_teardowns(struct survivors *s, struct error *err)
{
    sqlite3_stmt *q = NULL;
    int rc = db_prepare(s->db, "SELECT process_id, time_ns FROM teardown", &q, err);
    s->teardown_ns = xcalloc(65536, sizeof *s->teardown_ns);
    while (db_next(q, &rc, err))
        s->teardown_ns[(uint16_t)sqlite3_column_int64(q, 0)] = sqlite3_column_int64(q, 1);
    sqlite3_finalize(q);
    return rc;
}

static int store(struct survivors *s, struct error *err)
{
    sqlite3_stmt *q = NULL;
    int rc = db_exec(s->db,
                     "DROP TABLE IF EXISTS temp.survivor; CREATE TEMP TABLE survivor(site_id INTEGER PRIMARY KEY, "
                     "live_bytes INTEGER, live_count INTEGER); SAVEPOINT survivors",
                     err);
    if (rc == 0)
        rc = db_prepare(s->db, "INSERT INTO temp.survivor VALUES(?, ?, ?)", &q, err);
    for (uint32_t i = 0; rc == 0 && i < s->replay->site_count; i++) {
        if (s->sites[i].count <= 0)
            continue;
        sqlite3_bind_int64(q, 1, s->replay->sites[i].id);
        sqlite3_bind_int64(q, 2, s->sites[i].bytes);
        sqlite3_bind_int64(q, 3, s->sites[i].count);
        rc = sqlite3_step(q) == SQLITE_DONE ? 0 : db_error(s->db, err);
        sqlite3_reset(q);
    }
    sqlite3_finalize(q);
    return rc ? rc : db_exec(s->db, "RELEASE survivors", err);
}

int survivors_load(sqlite3 *db, const struct replay_images *images, const struct window_range *ranges, size_t count,
                   const struct replay *replay, struct error *err)
{
    struct survivors s = {.db = db, .images = images, .ranges = ranges, .range_count = count, .replay = replay};
    s.sites = xcalloc(replay->site_count + 1ul, sizeof *s.sites);
    int rc = load_teardowns(&s, err);
    look_at_sums(&s);
    if (rc == 0 && s.open_count)
        rc = read_backwards(&s, err);
    if (rc == -EAGAIN) {
        forget(&s);
        rc = read_events(&s, err);
    }
    if (rc == 0)
        rc = store(&s, err);
    free(s.sites);
    free(s.parts);
    free(s.blocks);
    free(s.free_parts);
    free(s.free_blocks);
    free(s.teardown_ns);
    map_close(&s.part_at);
    return rc;
}
