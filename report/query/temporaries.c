#include "temporaries.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/map.h"

#include <errno.h>
#include <stdlib.h>

/* A block's allocation is in an earlier chunk: it is a temporary if its thread, whichever that is, did nothing since.
 */
struct candidate {
    uint32_t index;  /* of the free */
    int64_t decided; /* number of the event that decided it: the free, or where that was asked for */
    uint32_t site;   /* of sites */
    uint64_t address, space;
    int is_open;
};

struct site {
    int64_t missing; /* temporaries that are counted and not found yet */
    uint32_t open;
};

struct mark {
    sqlite3 *db;
    const struct temporaries_chunk *chunk;
    uint8_t *is_temporary;
    struct map last;      /* thread -> index of its newest allocation so far */
    struct map next;      /* thread -> number of its first allocation from where is looked on, and 1 */
    struct map born;      /* block -> index of its allocation */
    struct map requested; /* block -> index at which its free was asked for, times 2, and whether it was a temporary */
    struct map site_of;   /* site_id -> sites */
    struct map candidate_of; /* block -> candidates */
    struct site *sites;
    struct candidate *candidates;
    uint32_t site_count, site_capacity, count, capacity;
};

static struct site *site_at(struct mark *m, uint32_t site_id)
{
    uint32_t i = map_number_or(&m->site_of, site_id, 0, m->site_count);
    return i < m->site_count ? &m->sites[i] : ARRAY_ADD(m->sites, m->site_count, m->site_capacity);
}

#define PART (MAP_NONE - 1) /* in the place of the index of an allocation */

static int is_newest(const struct mark *m, uint32_t born)
{
    return born != PART && map_number(&m->last, m->chunk->events[born].thread_id, 0) == born;
}

static void mark_free(struct mark *m, uint32_t index, const struct chunk_event *e)
{
    const uint64_t space = chunk_event_space(e);
    uint32_t born = (uint32_t)(map_take(&m->born, e->address, space) - 1);
    uint64_t asked = map_take(&m->requested, e->address, space);
    struct site *site = site_at(m, e->site_id);
    if (e->op == CHUNK_realloc_free && !asked) /* it lives on */
        return;
    if (born != MAP_NONE) {
        m->is_temporary[index] = asked ? (uint8_t)((asked - 1) & 1) : (uint8_t)is_newest(m, born);
        site->missing -= m->is_temporary[index];
        return;
    }
    *ARRAY_ADD(m->candidates, m->count, m->capacity) =
        (struct candidate){.index = index,
                           .decided = m->chunk->first_event + (asked ? (int64_t)((asked - 1) >> 1) : index),
                           .site = (uint32_t)(site - m->sites),
                           .address = e->address,
                           .space = space,
                           .is_open = 1};
    site->open++;
}

/* What the chunk itself tells; of the rest candidates are made. */
static void look_within(struct mark *m)
{
    for (uint32_t i = 0; i < (uint32_t)m->chunk->count; i++) {
        const struct chunk_event *e = &m->chunk->events[i];
        const uint64_t space = chunk_event_space(e);
        uint32_t born;
        switch (e->op) {
        case CHUNK_alloc:
        case CHUNK_realloc_alloc:
            map_set_number(&m->born, e->address, space, i);
            map_set_number(&m->last, e->thread_id, 0, i);
            if (!map_get(&m->next, e->thread_id, 0))
                *map_slot(&m->next, e->thread_id, 0) = (uint64_t)m->chunk->first_event + i + 1;
            break;
        case CHUNK_free_requested:
            born = map_number(&m->born, e->address, space);
            *map_slot(&m->requested, e->address, space) = (2ull * i | (born != MAP_NONE && is_newest(m, born))) + 1;
            break;
        case CHUNK_free:
        case CHUNK_realloc_free:
            mark_free(m, i, e);
            break;
        case CHUNK_split: /* the second part is none, as it does not begin where the block did */
            map_set_number(&m->born, e->address + e->size_bytes, space, PART);
            break;
        case CHUNK_to_segment:
        case CHUNK_cut:
            map_take(&m->born, e->address, space);
            break;
        default:
            break;
        }
    }
}

static void settle(struct mark *m, struct candidate *c, int is_temporary)
{
    struct site *site = &m->sites[c->site];
    c->is_open = 0;
    site->open--;
    m->is_temporary[c->index] = (uint8_t)is_temporary;
    site->missing -= is_temporary;
}

/* By what the sums leave: none of a site's candidates, or all. How many stay open. */
static uint32_t settle_by_count(struct mark *m)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        struct candidate *c = &m->candidates[i];
        const struct site *site = &m->sites[c->site];
        if (c->is_open && m->chunk->deltas && (site->missing <= 0 || site->missing >= site->open))
            settle(m, c, site->missing > 0);
        open += c->is_open != 0;
    }
    return open;
}

/* Backwards: the number of a thread's next allocation is kept for each. */
static void look_before(struct mark *m, const struct chunk_event *events, long count, int64_t first_event)
{
    for (long i = count - 1; i >= 0; i--) {
        const struct chunk_event *e = &events[i];
        if (e->op == CHUNK_free_requested) {
            uint32_t k = map_number(&m->candidate_of, e->address, chunk_event_space(e));
            if (k != MAP_NONE && m->candidates[k].is_open)
                m->candidates[k].decided = first_event + i;
        }
        if (e->op == CHUNK_split) {
            uint32_t k = map_number(&m->candidate_of, e->address + e->size_bytes, chunk_event_space(e));
            if (k != MAP_NONE && m->candidates[k].is_open)
                settle(m, &m->candidates[k], 0);
        }
        if (!chunk_op_is_birth(e->op))
            continue;
        uint64_t *next = map_slot(&m->next, e->thread_id, 0);
        uint32_t k = map_number(&m->candidate_of, e->address, chunk_event_space(e));
        if (k != MAP_NONE && m->candidates[k].is_open)
            settle(m, &m->candidates[k], !*next || (int64_t)*next - 1 > m->candidates[k].decided);
        *next = (uint64_t)(first_event + i) + 1;
    }
}

static void read_before(struct mark *m)
{
    struct chunk_codec *codec = chunk_codec_open();
    sqlite3_stmt *s = NULL;
    int64_t next = m->chunk->first_event;
    for (uint32_t i = 0; i < m->count; i++)
        if (m->candidates[i].is_open)
            map_number_or(&m->candidate_of, m->candidates[i].address, m->candidates[i].space, i);
    if (db_prepare(m->db,
                   "SELECT first_event, event_count, data FROM event_chunk WHERE chunk_id < ? ORDER BY chunk_id DESC",
                   &s, NULL) == 0) {
        sqlite3_bind_int64(s, 1, m->chunk->chunk_id);
        while (sqlite3_step(s) == SQLITE_ROW) {
            const struct chunk_event *events;
            const void *data = sqlite3_column_blob(s, 2);
            int64_t first = sqlite3_column_int64(s, 0), end;
            long count =
                data ? chunk_decode_events(codec, data, (size_t)sqlite3_column_bytes(s, 2), &events) : -EBADMSG;
            if (count < 0 || __builtin_add_overflow(first, sqlite3_column_int64(s, 1), &end) || end != next)
                break;
            next = first;
            look_before(m, events, count, first);
            if (!settle_by_count(m))
                break;
        }
    }
    sqlite3_finalize(s);
    chunk_codec_close(codec);
}

void temporaries_mark(sqlite3 *db, const struct temporaries_chunk *chunk, uint8_t *is_temporary)
{
    struct mark m = {.db = db, .chunk = chunk, .is_temporary = is_temporary};
    for (long i = 0; chunk->deltas && i < chunk->delta_count; i++)
        site_at(&m, chunk->deltas[i].site_id)->missing += chunk->deltas[i].temporary_count;
    look_within(&m);
    if (settle_by_count(&m))
        read_before(&m);
    map_close(&m.last);
    map_close(&m.next);
    map_close(&m.born);
    map_close(&m.requested);
    map_close(&m.site_of);
    map_close(&m.candidate_of);
    free(m.sites);
    free(m.candidates);
}
