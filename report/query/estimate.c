#include "estimate.h"

#include "../../common/db.h"
#include "../../common/sample_weight.h"
#include "../../common/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The statistics that have one, in the order of their columns. */
static const uint8_t spread_of[] = {
#define SPREAD(column, unit) STAT_##column,
#include "../../common/spread.def"
#undef SPREAD
};
enum { SPREAD_COUNT = sizeof spread_of };

struct estimates {
    sqlite3 *db;
    double mean_bytes;
    int is_whole;          /* no lens: the accounts are those of the file */
    sqlite3_stmt *account; /* ?1 scope, ?2 key, ?3 inclusive, ?4 device, ?5 kind */
    sqlite3_stmt *sites;   /* ?1 stack (NULL: all), ?2 device, ?3 kind ('all') */
};

int64_t estimate_mean_bytes(sqlite3 *db)
{
    int64_t mean_bytes = db_meta_int(db, "sample_bytes", 0);
    return mean_bytes > 0 ? mean_bytes : 0;
}

int estimate_refuse(sqlite3 *db, const char *path, const char *why, struct error *err)
{
    char text[UNITS_TEXT];
    int64_t mean_bytes = estimate_mean_bytes(db);
    if (!mean_bytes)
        return 0;
    return error_set(err, ENOTSUP, "%s: has a sample of its blocks (--sample %s) and %s; record it without --sample",
                     path, units_bytes(text, mean_bytes), why);
}

double estimate_error(double variance)
{
    return variance > 0 ? SAMPLE_ERRORS * sqrt(variance) : 0;
}

struct estimates *estimates_open(sqlite3 *db)
{
#define SPREAD(column, unit) ", " #column
    static const char account[] = "SELECT 0"
#include "../../common/spread.def"
#undef SPREAD
                                  " FROM account_spread JOIN device d USING(device_id) WHERE scope = ?1 AND key_id = "
                                  "?2 AND inclusive = ?3 AND d.name = ?4 AND kind = ?5";
#define SPREAD(column, unit) ", total(s." #column " * " SPREAD_##unit ")"
#define SPREAD_bytes         "(1.0 * x.excess_bytes)"
#define SPREAD_count         "x.count_spread"
    static const char sites[] =
        "SELECT 1"
#include "../../common/spread.def"
#undef SPREAD
        " FROM site_sample x JOIN site s USING(site_id) JOIN device d USING(device_id) WHERE (?1 "
        "IS NULL OR s.stack_id = ?1) AND d.name = ?2 AND ?3 IN ('all', s.kind)";
    int64_t mean_bytes = estimate_mean_bytes(db);
    if (!mean_bytes)
        return NULL;
    struct estimates *e = xcalloc(1, sizeof *e);
    e->db = db;
    e->mean_bytes = (double)mean_bytes;
    e->is_whole = !db_int(db, "SELECT count(*) FROM temp.sqlite_schema WHERE name IN ('account', 'site')", 0);
    if (db_prepare(db, account, &e->account, NULL) || db_prepare(db, sites, &e->sites, NULL))
        e->is_whole = 0;
    return e;
}

void estimates_close(struct estimates *e)
{
    if (!e)
        return;
    sqlite3_finalize(e->account);
    sqlite3_finalize(e->sites);
    free(e);
}

static int is_bytes(int stat)
{
    return stat_infos[stat].unit == STAT_UNIT_bytes;
}

double estimates_bound(const struct estimates *e, const char *device, int64_t bytes)
{
    return e && device && strcmp(device, "host") == 0 ? estimate_error((double)bytes * e->mean_bytes) : 0;
}

/* Whatever its blocks are: counts have no bound. */
static void bound(const struct estimates *e, const char *device, struct stat_row *stats)
{
    const int is_host = device && strcmp(device, "host") == 0;
    for (int i = 0; i < SPREAD_COUNT; i++) {
        int stat = spread_of[i];
        stats->error[stat] =
            is_bytes(stat) ? estimates_bound(e, device, stats->value[stat]) : -(is_host && stats->value[stat] > 0);
    }
    stats->error[STAT_own_peak_bytes] = estimates_bound(e, device, stats->value[STAT_own_peak_bytes]);
    stats->error[STAT_active_peak_bytes] = estimates_bound(e, device, stats->value[STAT_active_peak_bytes]);
    stats->error[STAT_lifetime_ns] = stats->error[STAT_free_count];
}

/* The first column says whether they are in no units of account_spread. */
static void read_errors(const struct estimates *e, sqlite3_stmt *s, struct stat_row *stats)
{
    const int is_whole = sqlite3_column_int(s, 0);
    const double bytes = is_whole ? 1 : e->mean_bytes, counts = is_whole ? 1 : 1.0 / SPREAD_COUNT_PARTS;
    for (int i = 0; i < SPREAD_COUNT; i++) {
        double variance = sqlite3_column_double(s, i + 1);
        stats->error[spread_of[i]] = estimate_error(variance * (is_bytes(spread_of[i]) ? bytes : counts));
    }
    stats->error[STAT_lifetime_ns] = stats->error[STAT_free_count] == 0 ? 0 : -1;
}

void estimates_fill_bounds(const struct estimates *e, const char *device, struct stat_row *stats)
{
    if (!e)
        return;
    stats->known &= ~(1u << STAT_temporary_count | 1u << STAT_temporary_bytes); /* nobody saw the next allocation */
    bound(e, device, stats);
}

void estimates_fill(struct estimates *e, enum row_key by, int inclusive, const char *kind, const char *device,
                    int64_t key_id, struct stat_row *stats)
{
    if (!e)
        return;
    sqlite3_stmt *s = by == ROW_STACK || by == ROW_DEVICE ? e->sites : e->account;
    estimates_fill_bounds(e, device, stats);
    if (!e->is_whole)
        return;
    sqlite3_reset(s);
    if (s == e->sites) {
        if (by == ROW_STACK)
            sqlite3_bind_int64(s, 1, key_id);
        else
            sqlite3_bind_null(s, 1);
        sqlite3_bind_text(s, 2, device, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 3, kind ? kind : "all", -1, SQLITE_STATIC);
    } else {
        sqlite3_bind_text(s, 1, row_key_names[by], -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, key_id);
        sqlite3_bind_int(s, 3, inclusive);
        sqlite3_bind_text(s, 4, device, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 5, kind ? kind : "all", -1, SQLITE_STATIC);
    }
    if (sqlite3_step(s) == SQLITE_ROW)
        read_errors(e, s, stats);
    sqlite3_reset(s);
    if (by == ROW_DEVICE)
        stats->error[STAT_own_peak_bytes] = stats->error[STAT_at_peak_bytes];
}
