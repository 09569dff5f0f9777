#include "ownpeak_timeline.h"

#include <stdlib.h>

struct ownpeak_timeline {
    sqlite3_stmt *buckets;                /* NULL: there are no more, or they have gaps */
    int64_t start_ns, end_ns, most_bytes; /* of the bucket read last; end_ns -1: none */
};

int ownpeak_timeline_open(sqlite3 *db, int64_t device, struct ownpeak_timeline **timeline, struct error *err)
{
    static const char sql[] =
        "SELECT time_ns, width_ns, active_max_bytes FROM timeline WHERE device_id = ? AND level = 0 ORDER BY time_ns";
    struct ownpeak_timeline *t = xcalloc(1, sizeof *t);
    int rc = db_prepare(db, sql, &t->buckets, err);
    if (rc == 0)
        sqlite3_bind_int64(t->buckets, 1, device);
    t->end_ns = -1;
    *timeline = t;
    return rc;
}

void ownpeak_timeline_close(struct ownpeak_timeline *t)
{
    if (t)
        sqlite3_finalize(t->buckets);
    free(t);
}

/* 0: there is none that follows without a gap. */
static int next_bucket(struct ownpeak_timeline *t, int64_t first_ns)
{
    int64_t before_ns = t->end_ns;
    if (sqlite3_step(t->buckets) != SQLITE_ROW)
        return 0;
    t->start_ns = sqlite3_column_int64(t->buckets, 0);
    t->most_bytes = sqlite3_column_int64(t->buckets, 2);
    if (__builtin_add_overflow(t->start_ns, sqlite3_column_int64(t->buckets, 1), &t->end_ns) ||
        t->end_ns <= t->start_ns)
        return 0;
    return before_ns < 0 ? t->start_ns <= first_ns : t->start_ns == before_ns;
}

int64_t ownpeak_timeline_most(struct ownpeak_timeline *t, int64_t first_ns, int64_t last_ns)
{
    int64_t most_bytes = 0;
    while (t && t->buckets) {
        if (t->end_ns >= first_ns && t->most_bytes > most_bytes)
            most_bytes = t->most_bytes;
        if (t->end_ns > last_ns)
            return most_bytes;
        if (!next_bucket(t, first_ns)) {
            sqlite3_finalize(t->buckets);
            t->buckets = NULL;
        }
    }
    return OWNPEAK_UNKNOWN;
}
