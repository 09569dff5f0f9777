/* The variances of a sampled recording's estimates, by line, function, file and module: the table account_spread. */
#include "finish_account.h"

#include "../../common/sample_weight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sizes {                           /* of sampled sites */
    double *excess_bytes, *count_spread; /* by the site's id: as site_sample has them */
    uint64_t capacity;
};

static void add_size(void *arg, sqlite3_stmt *s)
{
    struct sizes *z = arg;
    uint64_t id = (uint64_t)sqlite3_column_int64(s, 0);
    if (id >= z->capacity)
        return;
    z->excess_bytes[id] = sqlite3_column_double(s, 1);
    z->count_spread[id] = sqlite3_column_double(s, 2);
}

static int64_t whole(double variance)
{
    return variance < 0 ? 0 : variance < 9e18 ? llround(variance) : INT64_MAX;
}

/* Of a site, instead of its statistics. */
static void vary(struct model_stats *into, const struct model_stats *was, uint32_t row, double bytes, double count)
{
#define SPREAD(column, unit)                                                                                           \
    into->own[STAT_##column][row] = (uint64_t)whole((double)(int64_t)packed_at(&was->of[STAT_##column], row) * unit);
#include "../../common/spread.def"
#undef SPREAD
}

static void vary_all(struct model *m, const struct model_stats *was, const struct sizes *z, double mean_bytes)
{
#define SPREAD(column, unit) model_stats_add(&m->stats, STAT_##column, m->site_count);
#include "../../common/spread.def"
#undef SPREAD
    for (size_t i = 0; i < m->site_count; i++) {
        const struct model_site *site = &m->sites[i];
        vary(&m->stats, was, site->row, z->excess_bytes[site->id] / mean_bytes,
             z->count_spread[site->id] * SPREAD_COUNT_PARTS);
    }
}

int account_spread_begin(struct model *m, struct model_stats *was, struct error *err)
{
    double mean_bytes = (double)db_meta_int(m->db, "sample_bytes", 0);
    struct sizes z = {.capacity = 1};
    if (mean_bytes <= 0)
        return 0;
    for (size_t i = 0; i < m->site_count; i++)
        z.capacity = (uint64_t)m->sites[i].id >= z.capacity ? (uint64_t)m->sites[i].id + 1 : z.capacity;
    z.excess_bytes = xcalloc(z.capacity, sizeof *z.excess_bytes);
    z.count_spread = xcalloc(z.capacity, sizeof *z.count_spread);
    int rc = model_each(m->db, "SELECT site_id, excess_bytes, count_spread FROM site_sample", add_size, &z, err);
    if (rc == 0) {
        *was = m->stats;
        m->stats = (struct model_stats){.capacity = 0};
        vary_all(m, was, &z, mean_bytes);
    }
    free(z.excess_bytes);
    free(z.count_spread);
    return rc ? rc : 1;
}

int account_write_spread(const struct account_pass *p, struct error *err)
{
#define SPREAD(column, unit) ", " #column
    static const char sql[] = "INSERT OR REPLACE INTO account_spread(scope, key_id, inclusive, device_id, kind"
#include "../../common/spread.def"
#undef SPREAD
#define SPREAD(column, unit) ", ?"
                              ") VALUES(?, ?, ?, ?, ?"
#include "../../common/spread.def"
#undef SPREAD
                              ")";
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(p->m->db, sql, &s, err);
    for (size_t i = 0; i < p->out_count && rc == 0; i++) {
        const struct out_row *o = &p->out[i];
        int at = 6;
        account_bind_key(p, o, s);
#define SPREAD(column, unit) sqlite3_bind_int64(s, at++, o->stat[STAT_##column]);
#include "../../common/spread.def"
#undef SPREAD
        rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(p->m->db, err);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return rc == 0 && finish_interrupted ? -EINTR : rc;
}
