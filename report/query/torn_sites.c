#include "torn_sites.h"

#include "../../common/db.h"
#include "views.h"

#include <errno.h>

static int open_packed(struct torn_sites *t, struct error *err)
{
    packed_hold(t->packed);
    long rc = t->last = packed_count(t->packed, PACKED_TABLE_site);
    if (rc >= 0)
        rc = packed_read(t->packed, PACKED_site_torn_bytes, &t->bytes);
    if (rc >= 0)
        rc = packed_read(t->packed, PACKED_site_torn_count, &t->counts);
    return rc >= 0 ? 0 : error_set(err, EIO, "%s: %s", sqlite3_db_filename(t->db, "main"), packed_error(rc));
}

int torn_sites_open(sqlite3 *db, struct torn_sites *t, struct error *err)
{
    *t = (struct torn_sites){.db = db, .packed = views_are_packed(db, "site_teardown") ? packed_shared(db) : NULL};
    if (t->packed)
        return open_packed(t, err);
    int rc = db_prepare(db, "SELECT site_id, freed_bytes, freed_count FROM site_teardown ORDER BY site_id", &t->s, err);
    t->step = rc ? SQLITE_ERROR : sqlite3_step(t->s);
    return rc;
}

/* A row is there where its count is not 0. */
static struct torn packed_torn(const struct torn_sites *t, uint32_t row)
{
    const int64_t count = (int64_t)packed_at(t->counts, row);
    return count ? (struct torn){(int64_t)packed_at(t->bytes, row), count} : (struct torn){0};
}

struct torn torn_sites_of(struct torn_sites *t, int64_t site_id)
{
    if (t->packed)
        return site_id > 0 && site_id <= t->last ? packed_torn(t, (uint32_t)site_id) : (struct torn){0};
    while (t->step == SQLITE_ROW && sqlite3_column_int64(t->s, 0) < site_id)
        t->step = sqlite3_step(t->s);
    if (t->step != SQLITE_ROW || sqlite3_column_int64(t->s, 0) != site_id)
        return (struct torn){0};
    return (struct torn){sqlite3_column_int64(t->s, 1), sqlite3_column_int64(t->s, 2)};
}

int torn_sites_close(struct torn_sites *t, struct error *err)
{
    const int is_met = !t->packed && t->s && t->step != SQLITE_ROW && t->step != SQLITE_DONE;
    const int rc = is_met ? db_error(t->db, err) : 0;
    sqlite3_finalize(t->s);
    if (t->packed)
        packed_let(t->packed);
    *t = (struct torn_sites){0};
    return rc;
}

static struct torn sum_of_packed(const struct torn_sites *t)
{
    struct torn sum = {0};
    for (uint32_t row = 1; row <= t->last; row++) {
        const struct torn torn = packed_torn(t, row);
        if (__builtin_add_overflow(sum.bytes, torn.bytes, &sum.bytes) ||
            __builtin_add_overflow(sum.count, torn.count, &sum.count))
            return (struct torn){0};
    }
    return sum;
}

struct torn torn_sites_sum(sqlite3 *db)
{
    struct torn_sites t;
    struct error err;
    struct torn sum = {0};
    if (!views_are_packed(db, "site_teardown"))
        return (struct torn){db_int(db, "SELECT sum(freed_bytes) FROM site_teardown", 0),
                             db_int(db, "SELECT sum(freed_count) FROM site_teardown", 0)};
    if (torn_sites_open(db, &t, &err) == 0)
        sum = sum_of_packed(&t);
    torn_sites_close(&t, &err);
    return sum;
}
