#include "names.h"

#include "../../common/db.h"

static int run(sqlite3 *db, const char *sql, int64_t time_ns, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, sql, &s, err);
    if (rc == 0) {
        if (sqlite3_bind_parameter_count(s))
            sqlite3_bind_int64(s, 1, time_ns);
        while (db_next(s, &rc, err))
            ;
    }
    sqlite3_finalize(s);
    return rc;
}

/* What a block was live for: [alloc_ns, free_ns), or to its process's end. */
#define LIVE_AT(instant)                                                                                               \
    "alloc_ns <= " instant " AND coalesce(n.free_ns > " instant ", p.end_ns IS NULL OR p.end_ns >= " instant ")"
#define FROM_NAMES " FROM block_name n LEFT JOIN process p USING(process_id) WHERE "

/* As sites have it: what Python freed as it took itself down was live at the end. */
static const char at_end[] =
    "INSERT INTO temp.name_live SELECT name_id FROM block_name n WHERE free_ns IS NULL OR free_ns >= (SELECT time_ns "
    "FROM teardown t WHERE t.process_id = n.process_id AND n.alloc_ns < t.time_ns)";
static const char at_peak[] = "INSERT INTO temp.name_live SELECT name_id FROM block_name n JOIN (SELECT device_id, "
                              "peak_active_ns FROM total WHERE kind = 'all') t USING(device_id) LEFT JOIN process p "
                              "USING(process_id) WHERE " LIVE_AT("t.peak_active_ns");
static const char at_time[] = "INSERT INTO temp.name_live SELECT name_id" FROM_NAMES LIVE_AT("?1");

int names_load(sqlite3 *db, enum names_at at, int64_t time_ns, struct at_result *result, struct error *err)
{
    static const char *const names[] = {[NAMES_AT_END] = at_end, [NAMES_AT_PEAK] = at_peak, [NAMES_AT_TIME] = at_time};
    static const char *const live[] = {
        [NAMES_AT_END] = "CREATE TEMP TABLE live AS SELECT site_id, end_bytes AS live_bytes, end_count AS live_count "
                         "FROM site WHERE end_count > 0",
        [NAMES_AT_PEAK] = "CREATE TEMP TABLE live AS SELECT site_id, at_peak_bytes AS live_bytes, at_peak_count AS "
                          "live_count FROM site_stat WHERE at_peak_count > 0",
    };
    *result = (struct at_result){.time_ns = time_ns, .is_exact = 1};
    int rc = db_exec(db, "CREATE TEMP TABLE name_live(name_id INTEGER PRIMARY KEY)", err);
    if (rc == 0)
        rc = at == NAMES_AT_TIME ? at_load(db, time_ns, 0, result, err) : db_exec(db, live[at], err);
    return rc == 0 ? run(db, names[at], result->time_ns, err) : rc;
}
