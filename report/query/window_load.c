/* What bounds a window's work: the timeline's maxima, and when interpreters began to take themselves down. */
#include "window_private.h"

#include "../../common/array.h"
#include "../../common/db.h"

int window_load_timeline(struct window *w, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(w->db,
                        "SELECT device_id, time_ns, width_ns, active_max_bytes FROM timeline WHERE level = 0 AND "
                        "device_id BETWEEN 0 AND 255 ORDER BY device_id, time_ns",
                        &s, err);
    while (db_next(s, &rc, err)) {
        struct window_bucket b = {.first_ns = sqlite3_column_int64(s, 1),
                                  .most_bytes = sqlite3_column_int64(s, 3),
                                  .device = (uint8_t)sqlite3_column_int64(s, 0)};
        if (!__builtin_add_overflow(b.first_ns, sqlite3_column_int64(s, 2), &b.end_ns))
            *ARRAY_ADD(w->buckets, w->bucket_count, w->bucket_capacity) = b;
    }
    sqlite3_finalize(s);
    return rc;
}

int64_t window_timeline_most(const struct window *w, uint8_t device, int64_t first_ns, int64_t last_ns)
{
    uint32_t low = 0, high = w->bucket_count;
    int64_t most = -1, covered_ns = first_ns;
    while (low < high) { /* the first one that ends behind first_ns */
        uint32_t middle = low + (high - low) / 2;
        const struct window_bucket *b = &w->buckets[middle];
        if (b->device < device || (b->device == device && b->end_ns <= first_ns))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < w->bucket_count && w->buckets[low].device == device && w->buckets[low].first_ns <= last_ns; low++) {
        const struct window_bucket *b = &w->buckets[low];
        if (b->first_ns > covered_ns)
            return -1; /* nothing is known of some of it */
        covered_ns = b->end_ns;
        most = b->most_bytes > most ? b->most_bytes : most;
    }
    return covered_ns > last_ns ? most : -1;
}

/* What frees the interpreter's blocks are the events of its process from then on, as far as the range goes. */
int window_load_teardowns(struct window *w, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(w->db,
                        "SELECT t.process_id, t.time_ns, p.end_ns FROM teardown t LEFT JOIN main.process p "
                        "USING(process_id)",
                        &s, err);
    while (db_next(s, &rc, err)) {
        struct window_teardown t = {.process_id = sqlite3_column_int64(s, 0),
                                    .began_ns = sqlite3_column_int64(s, 1),
                                    .until_ns = sqlite3_column_type(s, 2) == SQLITE_NULL ? WINDOW_END
                                                                                         : sqlite3_column_int64(s, 2)};
        if (t.until_ns < WINDOW_END)
            t.until_ns++;
        for (size_t i = 0; i < w->range_count; i++) {
            const struct window_range *r = &w->ranges[i];
            if (t.began_ns < r->from_ns || t.began_ns >= r->to_ns)
                continue;
            map_set_number(&w->teardown_of, (uint64_t)t.process_id, 0, w->teardown_count);
            t.until_ns = r->to_ns < t.until_ns ? r->to_ns : t.until_ns;
            *ARRAY_ADD(w->teardowns, w->teardown_count, w->teardown_capacity) = t;
        }
    }
    sqlite3_finalize(s);
    return rc;
}
