#include "process_parts.h"

#include "../../common/array.h"
#include "../../common/chunk.h"
#include "../../common/db.h"
#include "../../common/wrap.h"

#include <stdlib.h>

/* A process's ends are events of the very instant that it has as its end. Where an interpreter took itself down before,
 * that was the end, and what follows tells what it freed. */
static const char sql[] =
    "SELECT data FROM event_chunk c WHERE EXISTS (SELECT 1 FROM process p LEFT JOIN teardown t USING(process_id) WHERE "
    "coalesce(t.time_ns, p.end_ns) <= c.last_ns AND coalesce(p.end_ns, c.first_ns) >= c.first_ns) ORDER BY chunk_id";

struct reader {
    struct process_parts *parts;
    int64_t *teardown_ns; /* by process_id; 0: none */
    struct map born;      /* (address, process and kind): allocated after that */
};

static struct process_part *part_at(struct process_parts *p, uint32_t site_id, uint16_t process_id)
{
    uint32_t i = map_number_or(&p->part_of, site_id, process_id, p->count);
    if (i == p->count) {
        *ARRAY_ADD(p->part, p->count, p->capacity) =
            (struct process_part){.next = map_number(&p->first_of, site_id, 0), .process_id = process_id};
        map_set_number(&p->first_of, site_id, 0, i);
    }
    return &p->part[i];
}

/* Whether it took away what was live when its process's interpreter began to take itself down. */
static int is_torn_down(struct reader *r, const struct chunk_event *e)
{
    const int64_t began_ns = r->teardown_ns[e->process_id];
    const uint64_t space = (uint64_t)e->process_id << 8 | e->kind;
    if (!began_ns || (int64_t)e->time_ns < began_ns)
        return 0;
    if (e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc) {
        if ((int64_t)e->time_ns > began_ns)
            *map_slot(&r->born, e->address, space) = 1;
        return 0;
    }
    if (e->op == CHUNK_split && map_get(&r->born, e->address, space))
        *map_slot(&r->born, e->address + e->size_bytes, space) = 1;
    if (e->op != CHUNK_free && e->op != CHUNK_realloc_free && e->op != CHUNK_cut)
        return 0;
    return !map_take(&r->born, e->address, space);
}

static void apply(struct reader *r, const struct chunk_event *e)
{
    const int is_torn = is_torn_down(r, e);
    if (!is_torn && e->op != CHUNK_end)
        return;
    struct process_part *part = part_at(r->parts, e->site_id, e->process_id);
    const uint64_t count = e->op == CHUNK_end ? e->address : e->op != CHUNK_cut;
    wrap_change(&part->bytes, e->size_bytes);
    wrap_change(&part->count, count);
    if (is_torn) {
        wrap_change(&part->torn_bytes, e->size_bytes);
        wrap_change(&part->torn_count, count);
    }
}

static int load_teardowns(sqlite3 *db, struct reader *r, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, "SELECT process_id, time_ns FROM teardown", &s, err);
    r->teardown_ns = xcalloc(65536, sizeof *r->teardown_ns);
    while (db_next(s, &rc, err))
        r->teardown_ns[(uint16_t)sqlite3_column_int64(s, 0)] = sqlite3_column_int64(s, 1);
    sqlite3_finalize(s);
    return rc;
}

int process_parts_load(sqlite3 *db, struct process_parts *parts, struct error *err)
{
    struct reader r = {.parts = parts};
    sqlite3_stmt *s = NULL;
    struct chunk_codec *codec = chunk_codec_open();
    *parts = (struct process_parts){0};
    int rc = load_teardowns(db, &r, err);
    if (rc == 0)
        rc = db_prepare(db, sql, &s, err);
    while (db_next(s, &rc, err)) {
        const struct chunk_event *events;
        const void *data = sqlite3_column_blob(s, 0);
        long count = data ? chunk_decode_events(codec, data, (size_t)sqlite3_column_bytes(s, 0), &events) : 0;
        for (long i = 0; i < count; i++)
            apply(&r, &events[i]);
    }
    sqlite3_finalize(s);
    chunk_codec_close(codec);
    map_close(&r.born);
    free(r.teardown_ns);
    return rc;
}

void process_parts_free(struct process_parts *parts)
{
    free(parts->part);
    map_close(&parts->part_of);
    map_close(&parts->first_of);
    *parts = (struct process_parts){0};
}

const struct process_part *process_parts_next(const struct process_parts *parts, int64_t site_id,
                                              const struct process_part *part)
{
    uint32_t i = part ? part->next : map_number(&parts->first_of, (uint64_t)site_id, 0);
    return i == MAP_NONE ? NULL : &parts->part[i];
}
