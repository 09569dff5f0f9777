/* Reads the events, and makes what they changed a result. */
#include "replay.h"

#include "../../common/db.h"
#include "../../common/kind.h"
#include "replay_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int replay_each_event(sqlite3 *db, const struct replay_images *images,
                      int (*see)(void *context, const struct chunk_event *e), void *context, struct error *err)
{
    int goes_on = 1;
    struct chunk_codec *codec = chunk_codec_open();
    sqlite3_stmt *q = NULL;
    int rc = db_prepare(db, "SELECT data, chunk_id FROM event_chunk ORDER BY chunk_id", &q, err), step = SQLITE_DONE;
    while (rc == 0 && goes_on && (step = sqlite3_step(q)) == SQLITE_ROW) {
        const struct chunk_event *events;
        const void *data = sqlite3_column_blob(q, 0);
        long n = data ? chunk_decode_events(codec, data, (size_t)sqlite3_column_bytes(q, 0), &events) : -EBADMSG;
        if (n < 0)
            rc = error_set(err, EBADMSG,
                           "%s: chunk %lld of the events is damaged, so processes and threads cannot be told apart",
                           sqlite3_db_filename(db, "main"), (long long)sqlite3_column_int64(q, 1));
        for (long i = 0; goes_on && i < n; i++)
            if (!images || replay_has(images, events[i].process_id))
                goes_on = see(context, &events[i]);
    }
    if (rc == 0 && goes_on && step != SQLITE_DONE)
        rc = db_error(db, err);
    sqlite3_finalize(q);
    chunk_codec_close(codec);
    return rc;
}

static int see_event(void *context, const struct chunk_event *e)
{
    struct replay_state *s = context;
    replay_advance(s, (int64_t)e->time_ns);
    if (s->ranges && s->range == s->range_count)
        return 0;
    s->event_count += s->is_inside;
    replay_apply(s, e);
    return 1;
}

static int by_id(const void *a, const void *b)
{
    const struct site *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* In the order of their ids. */
static void take_sites(struct replay_state *s, struct replay *replay)
{
    if (s->site_count)
        qsort(s->sites, s->site_count, sizeof *s->sites, by_id);
    free(s->blocks.slots); /* its room is for what takes the sites */
    s->blocks.slots = NULL;
    for (uint32_t i = 0; i < s->site_count; i++) {
        struct site *site = &s->sites[i];
        const struct replay_site taken = {.id = site->id,
                                          .stats = replay_end_held(s, &site->held, site->device, site->kind),
                                          .torn_bytes = site->torn_bytes,
                                          .torn_count = site->torn_count,
                                          .moved_count = site->moved_count,
                                          .device = site->device,
                                          .kind = site->kind};
        replay_give(replay, s->site_count, &taken);
    }
}

static int load_teardowns(sqlite3 *db, struct replay_state *s, struct error *err)
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

/* A thread's of a device: the peaks of its kinds do not count, that of all of them is the device's. */
static void take_threads(struct replay_state *s, struct replay *replay)
{
    replay->threads = xcalloc(s->thread_count + 1ul, sizeof *replay->threads);
    for (uint32_t i = 0; i < s->thread_count; i++) {
        struct thread *t = &s->threads[i];
        struct stat_row stats = replay_end_held(s, &t->held, t->device, t->kind);
        if (t->kind == KIND_all)
            stats.value[STAT_at_kind_peak_bytes] = stats.value[STAT_at_peak_bytes];
        if (!replay_is_nothing(&stats)) /* it had ended, or all that it had was gone */
            replay->threads[replay->thread_count++] =
                (struct replay_thread){.id = t->id, .stats = stats, .device = t->device, .kind = t->kind};
    }
}

int replay_load(sqlite3 *db, const struct replay_images *images, const struct window_range *ranges, size_t range_count,
                int64_t min_size_bytes, struct replay *replay, struct error *err)
{
    struct replay_state s = {.ranges = ranges,
                             .range_count = range_count,
                             .is_inside = !ranges,
                             .has_threads = ranges != NULL && !replay->take,
                             .min_size_bytes = min_size_bytes > 0 ? (uint64_t)min_size_bytes : 0};
    replay_begin(replay);
    int rc = load_teardowns(db, &s, err);
    if (rc == 0)
        rc = replay_each_event(db, images, see_event, &s, err);
    if (rc == 0)
        replay_advance(&s, WINDOW_END - 1);
    if (rc == 0)
        take_sites(&s, replay);
    replay->totals = xcalloc(s.level_count + 1ul, sizeof *replay->totals);
    if (rc == 0 && s.has_threads)
        take_threads(&s, replay);
    replay->processes = xcalloc(s.process_count + 1ul, sizeof *replay->processes);
    for (uint32_t i = 0; rc == 0 && i < s.process_count; i++)
        replay->processes[replay->process_count++] = s.processes[i].peak;
    for (uint32_t i = 0; rc == 0 && i < s.level_count; i++) {
        replay_end_level(&s.levels[i]);
        replay->totals[replay->total_count++] = s.levels[i].total;
    }
    replay->event_count = s.event_count;
    replay->has_lifetimes = 1;
    replay->sizes = s.sizes || !s.has_threads ? s.sizes : xcalloc(1, sizeof *replay->sizes);
    replay->size_count = s.size_count;
    replay_state_close(&s);
    return rc;
}

void replay_free(struct replay *replay)
{
    free(replay->sites);
    free(replay->totals);
    free(replay->threads);
    free(replay->processes);
    free(replay->sizes);
    *replay = (struct replay){0};
}

void replay_begin(struct replay *replay)
{
    *replay = (struct replay){.take = replay->take, .take_arg = replay->take_arg};
}

void replay_give(struct replay *replay, size_t most, const struct replay_site *site)
{
    if (replay->take) {
        replay->take(replay->take_arg, site);
        return;
    }
    if (!replay->sites)
        replay->sites = xcalloc(most, sizeof *replay->sites);
    replay->sites[replay->site_count++] = *site;
}
