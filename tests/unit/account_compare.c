#include "account_model.h"

#include "../../common/chunk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void compare_stats(const char *where, const struct stats *s)
{
    static const char columns[] = "0"
#define STAT(column, name, unit, combine, text) ", " #column
#include "../../common/stat.def"
#undef STAT
        ;
    char sql[1024];
    sqlite3_stmt *row;
    snprintf(sql, sizeof sql, "SELECT %s FROM %s", columns, where);
    assert_int_equal(sqlite3_prepare_v2(account_db, sql, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    int i = 0;
#define STAT(column, name, unit, combine, text)                                                                        \
    if (sqlite3_column_int64(row, ++i) != (int64_t)s->column)                                                          \
        fail_msg("%s: " #column " %ld, expected %ld", where, (long)sqlite3_column_int64(row, i), (long)s->column);
#include "../../common/stat.def"
#undef STAT
    sqlite3_finalize(row);
}

/* No two columns are alike in all rows: a swap is seen. */
static void check_distinct(const char *rows)
{
    static const char *const columns[] = {
#define STAT(column, name, unit, combine, text) #column,
#include "../../common/stat.def"
#undef STAT
    };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(account_query("SELECT count(*) FROM %s AND %s <> %s", rows, columns[i], columns[j]) > 0);
}

static void compare_sites(struct model *m)
{
    char where[200];
    uint64_t rows = 0;
    for (unsigned d = 0; d < MODEL_DEVICES; d++)
        for (unsigned k = 0; k < KIND_COUNT; k++)
            for (unsigned i = 0; i < MODEL_STACKS; i++) {
                if (!m->sites[d][k][i].alloc_count)
                    continue;
                rows++;
                snprintf(where, sizeof where, "site WHERE device_id=%u AND kind='%s' AND stack_id=%u", d, kind_name(k),
                         i);
                compare_stats(where, &m->sites[d][k][i]);
            }
    assert_int_equal(account_query("SELECT count(*) FROM site"), rows);
    for (unsigned d = 0; d < MODEL_DEVICES; d++)
        for (unsigned i = 0; i < MODEL_THREADS; i++)
            for (unsigned k = 0; k <= KIND_COUNT; k++) {
                struct stats *s = &m->threads[d][k][i];
                if (!s->alloc_count)
                    continue;
                if (k == KIND_COUNT) { /* sums of the kinds, all at the device's peak */
                    for (unsigned j = 0; j < KIND_COUNT; j++) {
                        s->at_peak_bytes += m->threads[d][j][i].at_peak_bytes;
                        s->at_peak_count += m->threads[d][j][i].at_peak_count;
                    }
                    s->at_kind_peak_bytes = s->at_peak_bytes;
                }
                snprintf(where, sizeof where,
                         "account WHERE scope='thread' AND inclusive=0 AND device_id=%u AND kind='%s' "
                         "AND key_id=%u",
                         d, kind_name(k), i);
                compare_stats(where, s);
            }
    check_distinct("site WHERE 1");
    check_distinct("account WHERE scope = 'thread'");
}

static void compare_totals(const struct model *m)
{
    for (unsigned d = 0; d < MODEL_DEVICES; d++)
        for (unsigned k = 0; k <= KIND_COUNT; k++) {
            const struct peak *p = &m->peaks[d][k];
            struct stats sum = {0};
            for (unsigned i = 0; i < MODEL_SITES; i++) {
                const struct stats *s = &m->sites[d][i / MODEL_STACKS % KIND_COUNT][i % MODEL_STACKS];
                if (i >= KIND_COUNT * MODEL_STACKS || (k < KIND_COUNT && i / MODEL_STACKS != k))
                    continue;
                sum.alloc_count += s->alloc_count;
                sum.alloc_bytes += s->alloc_bytes;
                sum.free_count += s->free_count;
                sum.free_bytes += s->free_bytes;
                sum.temporary_count += s->temporary_count;
                sum.temporary_bytes += s->temporary_bytes;
                sum.end_bytes += s->end_bytes;
                sum.end_count += s->end_count;
                sum.lifetime_ns += s->lifetime_ns;
                if (k == KIND_COUNT)
                    sum.at_peak_bytes += s->at_peak_bytes;
                else
                    sum.at_kind_peak_bytes += s->at_kind_peak_bytes;
            }
            if (!sum.alloc_count)
                continue;
#define TOTAL(column, value)                                                                                           \
    assert_int_equal(account_query("SELECT " #column " FROM total WHERE device_id=%u AND kind='%s'", d, kind_name(k)), \
                     value)
            TOTAL(alloc_count, sum.alloc_count);
            TOTAL(alloc_bytes, sum.alloc_bytes);
            TOTAL(free_count, sum.free_count);
            TOTAL(free_bytes, sum.free_bytes);
            TOTAL(temporary_count, sum.temporary_count);
            TOTAL(temporary_bytes, sum.temporary_bytes);
            TOTAL(end_active_bytes, sum.end_bytes);
            TOTAL(end_count, sum.end_count);
            TOTAL(lifetime_ns, sum.lifetime_ns);
            TOTAL(peak_active_bytes, p->bytes);
            TOTAL(peak_active_ns, p->time_ns);
            TOTAL(peak_active_count, p->count);
            TOTAL(peak_reserved_bytes, m->reserved_peak[d][k]);
            assert_int_equal(sum.at_peak_bytes + sum.at_kind_peak_bytes, p->bytes);
            assert_int_equal(
                account_query("SELECT value_bytes FROM peak WHERE device_id=%u AND kind='%s' AND what='active' AND "
                              "rank=0",
                              d, kind_name(k)),
                p->bytes);
            if (k < KIND_COUNT) {
                assert_int_equal(
                    account_query("SELECT sum(alloc_count) FROM size_class WHERE device_id=%u AND kind='%s'", d,
                                  kind_name(k)),
                    sum.alloc_count);
                assert_int_equal(
                    account_query("SELECT sum(free_bytes) FROM lifetime_class WHERE device_id=%u AND kind='%s'", d,
                                  kind_name(k)),
                    sum.free_bytes);
            }
        }
    assert_int_equal(account_query("SELECT sum(realloc_count) FROM total WHERE kind='all'"), m->reallocs);
}

void model_compare_rows(struct model *m, const struct account_run *r)
{
    struct account_counts counts;
    account_counts(r->account, &counts);
    assert_int_equal(counts.unmatched_frees, m->unmatched);
    assert_int_equal(counts.inherited_frees, m->inherited);
    assert_int_equal(counts.replaced_blocks, m->replaced);
    assert_int_equal(counts.live_blocks, m->block_count);
    compare_sites(m);
    compare_totals(m);
}

/* Level 0, bucket by bucket; every level has the peak. */
void model_compare_timeline(const struct model *m, unsigned most)
{
    sqlite3_stmt *s;
    size_t next = 0;
    uint64_t active = 0, expected_start = 0, buckets = 0;
    assert_int_equal(
        sqlite3_prepare_v2(account_db,
                           "SELECT time_ns, width_ns, active_min_bytes, active_max_bytes, active_max_ns, "
                           "active_last_bytes FROM timeline WHERE device_id=0 AND level=0 ORDER BY time_ns",
                           -1, &s, NULL),
        SQLITE_OK);
    for (; sqlite3_step(s) == SQLITE_ROW; buckets++) {
        uint64_t start = (uint64_t)sqlite3_column_int64(s, 0), end = start + (uint64_t)sqlite3_column_int64(s, 1);
        uint64_t min = active, max = active, max_ns = start;
        assert_int_equal(start, expected_start);
        expected_start = end;
        for (; next < m->change_count && m->changes[next].time_ns < end; next++) {
            active = m->changes[next].active;
            if (active > max) {
                max = active;
                max_ns = m->changes[next].time_ns;
            }
            /* within a process's end, and between a lost block and the one in its place, the order is free */
            min = active < min ? active : min;
        }
        assert_int_equal(sqlite3_column_int64(s, 2), min);
        assert_int_equal(sqlite3_column_int64(s, 3), max);
        assert_int_equal(sqlite3_column_int64(s, 5), active);
        if (max != (uint64_t)sqlite3_column_int64(s, 3) || max_ns > (uint64_t)sqlite3_column_int64(s, 4) + 1000000)
            fail_msg("bucket at %lu", (unsigned long)start);
    }
    sqlite3_finalize(s);
    assert_int_equal(next, m->change_count);
    assert_true(buckets > most / 4 && buckets <= most);
    for (int64_t level = account_query("SELECT max(level) FROM timeline"); level >= 0; level--) {
        assert_int_equal(
            account_query("SELECT max(active_max_bytes) FROM timeline WHERE device_id=0 AND level=%d", (int)level),
            m->peaks[0][KIND_COUNT].bytes);
        assert_int_equal(
            account_query("SELECT count(*) FROM timeline WHERE device_id=0 AND level=%d AND active_max_ns=%ld AND "
                          "active_max_bytes=%ld",
                          (int)level, (long)m->peaks[0][KIND_COUNT].time_ns, (long)m->peaks[0][KIND_COUNT].bytes),
            1);
        assert_int_equal(
            account_query("SELECT sum(alloc_count) FROM timeline WHERE device_id=0 AND level=%d", (int)level),
            account_query("SELECT alloc_count FROM total WHERE device_id=0 AND kind='all'"));
    }
    assert_int_equal(account_query("SELECT max(active_bytes) FROM v_timeline WHERE device='host'"),
                     m->peaks[0][KIND_COUNT].bytes);
}

static void site_ids(int64_t ids[MODEL_DEVICES][KIND_COUNT][MODEL_STACKS])
{
    for (unsigned d = 0; d < MODEL_DEVICES; d++)
        for (unsigned k = 0; k < KIND_COUNT; k++)
            for (unsigned j = 0; j < MODEL_STACKS; j++)
                ids[d][k][j] = account_query(
                    "SELECT site_id FROM site WHERE device_id=%u AND kind='%s' AND stack_id=%u", d, kind_name(k), j);
}

void model_compare_snapshots(const struct model *m)
{
    int64_t ids[MODEL_DEVICES][KIND_COUNT][MODEL_STACKS];
    uint64_t first = (uint64_t)account_query("SELECT coalesce(min(first_event), 0) FROM event_chunk");
    site_ids(ids);
    for (unsigned i = 0; i < m->snapshot_count; i++) {
        const struct snapshot *s = &m->snapshots[i];
        struct account_held held[MODEL_SITES + 1] = {0};
        if (s->event_count < first)
            continue;
        account_rebuild(s->event_count, held);
        for (unsigned d = 0; d < MODEL_DEVICES; d++)
            for (unsigned k = 0; k < KIND_COUNT; k++)
                for (unsigned j = 0; j < MODEL_STACKS; j++)
                    if (ids[d][k][j] >= 0) {
                        assert_int_equal(held[ids[d][k][j]].bytes, s->bytes[d][k][j]);
                        assert_int_equal(held[ids[d][k][j]].count, s->count[d][k][j]);
                    }
    }
}

/* The key frame of the device's peak holds what the rows say. */
void model_compare_peak_frame(const struct model *m)
{
    struct chunk_codec *codec = chunk_codec_open();
    sqlite3_stmt *s;
    size_t length;
    const struct chunk_live *live;
    uint64_t sum = 0;
    assert_int_equal(sqlite3_prepare_v2(account_db,
                                        "SELECT data, event_count FROM keyframe WHERE reason='peak' AND device_id=0",
                                        -1, &s, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    const void *data = account_blob(s, 0, &length);
    long n = chunk_decode_live(codec, data, length, &live);
    assert_true(n > 0);
    for (long i = 0; i < n; i++) {
        sum += live[i].live_bytes;
        assert_int_equal(account_query("SELECT at_peak_bytes FROM site WHERE site_id=%u", live[i].site_id),
                         live[i].live_bytes);
        assert_int_equal(account_query("SELECT at_peak_count FROM site WHERE site_id=%u", live[i].site_id),
                         live[i].live_count);
    }
    assert_int_equal(sum, m->peaks[0][KIND_COUNT].bytes);
    sqlite3_finalize(s);
    chunk_codec_close(codec);
}
