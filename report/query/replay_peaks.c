/* The highest that each process held by itself. */
#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "replay_private.h"

#include <stdlib.h>

struct peaks {
    int kind;
    struct map of; /* (process, device) -> peaks */
    struct peak {
        uint32_t process_id, device;
        uint64_t active, peak;
    } * peak;
    uint32_t count, capacity;
};

static int see_peak(void *context, const struct chunk_event *e)
{
    struct peaks *p = context;
    int is_birth = chunk_op_is_birth(e->op);
    if ((p->kind != KIND_all && e->kind != p->kind) || (!is_birth && !chunk_op_is_loss(e->op)))
        return 1;
    uint32_t i = map_number_or(&p->of, e->process_id, e->device, p->count);
    if (i == p->count)
        *ARRAY_ADD(p->peak, p->count, p->capacity) = (struct peak){.process_id = e->process_id, .device = e->device};
    p->peak[i].active += is_birth ? e->size_bytes : -e->size_bytes;
    if (p->peak[i].active > p->peak[i].peak && (int64_t)p->peak[i].active > 0)
        p->peak[i].peak = p->peak[i].active;
    return 1;
}

static int window_peaks(sqlite3 *db, int kind, struct error *err)
{
    sqlite3_stmt *q = NULL;
    int rc =
        db_prepare(db,
                   "INSERT INTO temp.process_peak SELECT i.first_id, w.device_id, w.peak_bytes FROM "
                   "temp.window_process_peak w JOIN temp.process_image i ON w.process_id IN (-1, i.process_id) WHERE "
                   "w.kind = ?",
                   &q, err);
    if (rc == 0)
        sqlite3_bind_int(q, 1, kind);
    if (rc == 0 && sqlite3_step(q) != SQLITE_DONE)
        rc = db_error(db, err);
    sqlite3_finalize(q);
    return rc;
}

static void add_peak(struct peaks *p, uint32_t process_id, uint32_t device, int64_t bytes)
{
    *ARRAY_ADD(p->peak, p->count, p->capacity) =
        (struct peak){.process_id = process_id, .device = device, .peak = (uint64_t)bytes};
}

/* From the sums of chunks, few of which are read: 1, or 0 where these do not tell, as of some processes alone. */
static int sum_peaks(sqlite3 *db, struct peaks *p, struct error *err)
{
    const struct window_range whole = {0, WINDOW_END};
    struct window_result result;
    struct replay replay = {.sites = NULL};
    if (db_int(db, "SELECT 1 FROM temp.sqlite_master WHERE name = 'lens_site'", 0))
        return 0;
    int rc = window_load(db, &whole, 1, WINDOW_PROCESSES, &replay, &result, err);
    for (uint32_t i = 0; rc == 0 && result.has_parts && i < replay.process_count; i++)
        if (replay.processes[i].kind == p->kind)
            add_peak(p, (uint32_t)replay.processes[i].process_id, replay.processes[i].device,
                     replay.processes[i].peak_bytes);
    replay_free(&replay);
    return rc == 0 && result.has_parts;
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
    if (rc == 0 && db_int(db, "SELECT 1 FROM temp.sqlite_master WHERE name = 'window_process_peak'", 0))
        return window_peaks(db, kind, err);
    if (rc == 0 && replay_is_possible(db) && !sum_peaks(db, &p, err))
        rc = replay_each_event(db, NULL, see_peak, &p, err);
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
