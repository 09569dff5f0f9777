#include "live_blocks.h"

#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/search.h"

#include "inherited.h"
#include "live_sites.h"
#include "merged.h"
#include "rotated_part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void instant_at(struct instant *at, int64_t time_ns)
{
    for (unsigned i = 0; i < INSTANT_DEVICES; i++) {
        at->end_event[i] = INT64_MAX;
        at->end_ns[i] = time_ns;
    }
    at->is_before_teardown = 0;
}

void instant_end(struct instant *at)
{
    instant_at(at, INT64_MAX);
    at->is_before_teardown = 1;
}

int instant_peak(sqlite3 *db, struct instant *at, struct error *err)
{
    sqlite3_stmt *s = NULL;
    instant_at(at, INT64_MAX);
    int rc = db_prepare(db, "SELECT device_id, event_count, time_ns FROM keyframe WHERE reason = 'peak'", &s, err);
    if (rc)
        return rc;
    while (sqlite3_step(s) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(s, 0);
        if (id < 0 || id >= INSTANT_DEVICES)
            continue;
        at->end_event[id] = sqlite3_column_int64(s, 1);
        at->end_ns[id] = sqlite3_column_int64(s, 2);
    }
    sqlite3_finalize(s);
    return 0;
}

enum { AHEAD = 16 }; /* events whose places in the table are fetched before their turn */

struct reading {
    const struct instant *at;
    struct blocks *blocks;
    struct inherited *inherited; /* NULL: not asked for, or nothing is */
    int64_t *teardown_ns;        /* by process_id; 0: none */
    uint8_t *is_live_site;       /* of site_count (live_sites.h); NULL: not known */
    size_t site_count;
    uint8_t is_idle[CHUNK_EVENTS]; /* of a chunk's events: it changes nothing */
};

/* What was live as the interpreter began to take its process down is live to the end. */
static int is_torn_down(const struct reading *r, const struct chunk_event *e)
{
    int64_t began_ns = r->teardown_ns ? r->teardown_ns[e->process_id] : 0;
    return began_ns && (int64_t)e->time_ns >= began_ns && (!chunk_op_is_birth(e->op) || (int64_t)e->time_ns > began_ns);
}

static int load_teardowns(sqlite3 *db, struct reading *r, struct error *err)
{
    sqlite3_stmt *q = NULL;
    int rc = db_prepare(db, "SELECT process_id, time_ns FROM teardown", &q, err);
    r->teardown_ns = xcalloc(65536, sizeof *r->teardown_ns);
    while (db_next(q, &rc, err))
        r->teardown_ns[(uint16_t)sqlite3_column_int64(q, 0)] = sqlite3_column_int64(q, 1);
    sqlite3_finalize(q);
    return rc;
}

/* Whether it is about what may live at the instant, and before it. */
static int is_asked(const struct reading *r, const struct chunk_event *e, int64_t number)
{
    const struct instant *at = r->at;
    return number < at->end_event[e->device] && (int64_t)e->time_ns <= at->end_ns[e->device] &&
           (e->device != 0 || e->kind != KIND_map) && e->address &&
           (!r->is_live_site || e->site_id >= r->site_count || r->is_live_site[e->site_id]) && !is_torn_down(r, e);
}

/* a device too: each ends at an instant of its own, and others reuse its addresses after that */
static uint32_t space_of(const struct chunk_event *e)
{
    return (uint32_t)e->process_id << 16 | (uint32_t)e->device << 8 | e->kind;
}

static void replay(struct reading *r, const struct chunk_event *e)
{
    uint32_t space = space_of(e);
    struct block block;
    if (chunk_op_is_birth(e->op))
        blocks_put(r->blocks, e, space);
    else if (chunk_op_is_death(e->op) && blocks_take(r->blocks, e->address, space, &block) && r->inherited)
        inherited_gone(r->inherited, &block, e->time_ns);
    else if (e->op == CHUNK_inherited_free && r->inherited)
        inherited_freed(r->inherited, e);
}

/* What comes and goes in one chunk is not live behind it: most blocks of most programs, whose events need no look at
 * the others. Forked children may have inherited such a block. */
static void find_pairs(struct reading *r, const struct chunk_event *events, long count, int64_t first)
{
    memset(r->is_idle, 0, sizeof r->is_idle);
    for (long i = 0; i < count && !r->inherited; i++) {
        const struct chunk_event *e = &events[i], *birth = &events[e->match];
        if (e->match && e->match < i && chunk_op_is_death(e->op) && chunk_op_is_birth(birth->op) &&
            birth->address == e->address && space_of(birth) == space_of(e) && is_asked(r, e, first + i))
            r->is_idle[i] = r->is_idle[e->match] = 1;
    }
}

static void replay_chunk(struct reading *r, const struct chunk_event *events, long count, int64_t first)
{
    find_pairs(r, events, count, first);
    for (long i = 0, ahead = 0; i < count; i++) {
        for (; ahead < count && ahead < i + AHEAD; ahead++) {
            if (r->is_idle[ahead])
                continue;
            r->is_idle[ahead] = !is_asked(r, &events[ahead], first + ahead);
            if (!r->is_idle[ahead])
                blocks_foresee(r->blocks, events[ahead].address, space_of(&events[ahead]));
        }
        if (!r->is_idle[i])
            replay(r, &events[i]);
    }
}

/* Of all devices: no event after it is asked for. */
static int64_t last_ns(const struct instant *at)
{
    int64_t last = at->end_ns[0];
    for (unsigned i = 1; i < INSTANT_DEVICES; i++)
        last = at->end_ns[i] > last ? at->end_ns[i] : last;
    return last;
}

/* before: none of the events that there are was read yet. */
static int not_all(sqlite3 *db, const char *what, int before, struct error *err)
{
    const struct rotated_part part = rotated_part(db);
    if (before && part.number > 1)
        return error_set(err, ENODATA,
                         "%s needs all events, and this is part %lld of a rotated recording: those before it are in "
                         "the files of earlier parts",
                         what, (long long)part.number);
    return error_set(err, EBADMSG, "%s needs all events, and some are damaged or were not kept", what);
}

static int read_events(sqlite3 *db, const char *what, struct reading *r, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int64_t next = 0;
    int rc = db_prepare(db,
                        "SELECT first_event, data FROM event_chunk WHERE first_ns <= ?1 OR first_event = 0 "
                        "ORDER BY chunk_id",
                        &s, err);
    if (rc)
        return rc;
    sqlite3_bind_int64(s, 1, last_ns(r->at));
    struct chunk_codec *codec = chunk_codec_open();
    while (rc == 0 && codec && sqlite3_step(s) == SQLITE_ROW) {
        const struct chunk_event *events;
        int64_t first = sqlite3_column_int64(s, 0);
        const void *data = sqlite3_column_blob(s, 1);
        long n = data ? chunk_decode_events(codec, data, (size_t)sqlite3_column_bytes(s, 1), &events) : -EBADMSG;
        if (first != next || n < 0)
            rc = not_all(db, what, next == 0 && n >= 0, err);
        if (rc == 0)
            replay_chunk(r, events, n, first);
        next = rc == 0 ? first + n : 0;
    }
    chunk_codec_close(codec);
    sqlite3_finalize(s);
    if (rc == 0 && !next)
        rc = error_set(err, ENODATA, "%s needs the events, and this recording has none (%s)", what,
                       merged_count(db) ? "memprof merge" : "memprof run --aggregate");
    return rc;
}

enum { KEY_ADDRESS = 8, KEY = KEY_ADDRESS + 3 }; /* bytes of the key, the lowest first: address, then space >> 8 */

static unsigned key_byte(const struct block *b, unsigned i)
{
    return (unsigned)(i < KEY_ADDRESS ? b->address >> 8 * i : b->space >> 8 * (i - KEY_ADDRESS + 1)) & 255;
}

/* By one byte after the other, of those in which any differ: a few of them, where comparing would take twenty steps. */
static void sort_by_place(struct block *slots, size_t count)
{
    size_t(*counts)[256] = xcalloc(KEY, sizeof *counts);
    struct block *from = slots, *to = xcalloc(count, sizeof *to), *const spare = to;
    for (size_t i = 0; i < count; i++)
        for (unsigned k = 0; k < KEY; k++)
            counts[k][key_byte(&slots[i], k)]++;
    for (unsigned k = 0; k < KEY; k++) {
        size_t start = 0;
        if (counts[k][key_byte(&slots[0], k)] == count)
            continue;
        for (unsigned byte = 0; byte < 256; byte++) {
            size_t n = counts[k][byte];
            counts[k][byte] = start;
            start += n;
        }
        for (size_t i = 0; i < count; i++)
            to[counts[k][key_byte(&from[i], k)]++] = from[i];
        struct block *swap = from;
        from = to;
        to = swap;
    }
    if (from != slots)
        memcpy(slots, from, count * sizeof *slots);
    free(spare);
    free(counts);
}

int live_blocks_load(sqlite3 *db, const struct instant *at, const char *what, struct blocks *blocks,
                     struct inherited **inherited, struct error *err)
{
    struct reading r = {.at = at, .blocks = blocks};
    *blocks = (struct blocks){0};
    int rc = inherited ? inherited_open(db, at, &r.inherited, err) : 0;
    if (rc == 0 && at->is_before_teardown)
        rc = load_teardowns(db, &r, err);
    if (rc == 0 && !r.inherited) /* what a fork inherited may be gone since */
        r.is_live_site = live_sites(db, at, &r.site_count);
    if (rc == 0)
        rc = read_events(db, what, &r, err);
    free(r.is_live_site);
    free(r.teardown_ns);
    if (inherited)
        *inherited = r.inherited;
    uint64_t count = 0;
    for (uint64_t i = 0; blocks->slots && i <= blocks->mask; i++)
        if (blocks->slots[i].address)
            blocks->slots[count++] = blocks->slots[i];
    blocks->count = count;
    if (count)
        sort_by_place(blocks->slots, count);
    return rc;
}

size_t live_blocks_find(const struct blocks *blocks, uint32_t place, uint64_t address)
{
    const struct block *b = blocks->slots;
    return SEARCH_FIRST(blocks->count, i, b[i].space >> 8 != place ? b[i].space >> 8 < place : b[i].address < address);
}
