/*
 * Peaks of a file that 'memprof merge' made: its own are sums of what each recording had at its own peak. What all held
 * at one instant is known where the merge could compare their clocks; else it lies between the highest peak and the
 * sum.
 */
#include "check_private.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../query/merged.h"

#include <stdlib.h>
#include <string.h>

/* The common peak, as the merge found it. 0: it says nothing, or nothing of a kind alone. */
static int load_common(struct check_measure *m, const char *device, struct check_value *value, int *rc,
                       struct error *err)
{
    sqlite3_stmt *s = NULL;
    int is_there = 0;
    if (m->options->kind && strcmp(m->options->kind, "all") != 0)
        return 0;
    *rc = db_prepare(m->db,
                     "SELECT least_bytes, most_bytes FROM common_peak JOIN device USING(device_id) WHERE name = ?1 AND "
                     "least_bytes >= 0 AND most_bytes >= least_bytes",
                     &s, err);
    if (*rc == 0)
        sqlite3_bind_text(s, 1, device, -1, SQLITE_STATIC);
    if (*rc == 0 && db_next(s, rc, err)) {
        is_there = 1;
        value->value = sqlite3_column_int64(s, 0);
        value->most = sqlite3_column_int64(s, 1);
    }
    sqlite3_finalize(s);
    return is_there;
}

/* The highest of the recordings' own peaks, and how many had anything there: of one alone that is it. */
static int load_highest(struct check_measure *m, enum check_id id, const char *device, int64_t sum,
                        struct check_value *value, struct error *err)
{
    sqlite3_stmt *s = NULL;
    const int is_all = !m->options->kind || strcmp(m->options->kind, "all") == 0;
    int rc = db_prepare(m->db,
                        id == CHECK_max_peak ? "SELECT max(peak_active_bytes), total(peak_active_bytes > 0) FROM "
                                               "recording_total JOIN device USING(device_id) WHERE name = ?1"
                                             : "SELECT max(peak_reserved_bytes), total(peak_reserved_bytes > 0) FROM "
                                               "recording_total JOIN device USING(device_id) WHERE name = ?1",
                        &s, err);
    value->most = sum;
    if (rc == 0)
        sqlite3_bind_text(s, 1, device, -1, SQLITE_STATIC);
    if (rc == 0 && db_next(s, &rc, err)) {
        const int64_t highest = sqlite3_column_int64(s, 0);
        value->value = is_all && highest > 0 && highest <= sum ? highest : 0;
        if (sqlite3_column_double(s, 1) <= 1)
            value->value = sum;
    }
    sqlite3_finalize(s);
    return rc;
}

int check_value_of_merged(struct check_measure *m, enum check_id id, const char *device, int64_t sum,
                          struct check_value *value, struct error *err)
{
    char count[UNITS_TEXT], text[UNITS_TEXT];
    int rc = 0;
    if (id != CHECK_max_peak || !load_common(m, device, value, &rc, err))
        rc = rc ? rc : load_highest(m, id, device, sum, value, err);
    value->is_known = value->value == value->most;
    value->is_sum = 1;
    if (value->is_known)
        snprintf(value->note, sizeof value->note, "of %s recordings together; the sum of their peaks is %s",
                 units_count(count, merged_count(m->db)), units_bytes(text, sum));
    else
        snprintf(value->note, sizeof value->note,
                 "merged from %s recordings, which held at most %s at one instant, as far as is known",
                 units_count(count, merged_count(m->db)), units_bytes(text, value->most));
    return rc;
}
