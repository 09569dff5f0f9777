/* Packed tables: what is written is what is read, newer values stand before older ones, damage is an error. */
#include "../../common/packed.h"

#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../profiler/finish/packed_write.h"
#include "../../profiler/store/nodes.h"
#include "../../profiler/store/store.h"
#include "random.h"
#include "scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_numbers(void **state)
{
    (void)state;
    static uint64_t values[CHUNK_NUMBERS];
    struct chunk_codec *codec = chunk_codec_open();
    struct buf out = BUF(1 << 21);
    const uint64_t *read;
    for (size_t i = 0; i < CHUNK_NUMBERS; i++) /* small ones alone for a while, too, from any place on */
        values[i] = i % 3 && i % 101 > 40 ? rnd(UINT64_MAX) >> (rnd(UINT64_MAX) & 63) : i % 192;
    for (size_t count = 0; count <= CHUNK_NUMBERS; count = count * 3 + 1) {
        buf_reset(&out);
        assert_int_equal(chunk_encode_numbers(codec, values, count, &out), 0);
        assert_int_equal(chunk_count_numbers(out.data, out.length), (long)count);
        assert_int_equal(chunk_decode_numbers(codec, out.data, out.length, &read), (long)count);
        assert_int_equal(count ? memcmp(read, values, count * sizeof *values) : 0, 0);
    }
    assert_int_equal(chunk_encode_numbers(codec, values, CHUNK_NUMBERS + 1ul, &out), -EFBIG);
    for (size_t i = 0; i < out.length; i += out.length / 50 + 1) {
        out.data[i] ^= 1;
        assert_int_equal(chunk_decode_numbers(codec, out.data, out.length, &read), -EBADMSG);
        out.data[i] ^= 1;
    }
    assert_int_equal(chunk_decode_numbers(codec, out.data, out.length - 1, &read), -EBADMSG);
    buf_free(&out);
    chunk_codec_close(codec);
}

/* --- stacks --- */

#define NODES 150000u /* more than two chunks of 65,536 */

static struct {
    uint32_t caller, address, depth;
} model[NODES + 1];

/* Some committed before they are packed, chunks full and begun, roots with flags. */
static void make_stacks(const char *path)
{
    struct error err;
    struct store *store;
    unlink(path);
    assert_int_equal(store_create(path, &store, &err), 0);
    struct nodes *nodes = nodes_open(store);
    for (uint32_t count = 0; count < NODES;) {
        uint32_t caller = rnd(UINT64_MAX) % 8 && count ? count - rnd(UINT64_MAX) % (count < 50 ? count : 50) : 0;
        uint32_t address = 1 + rnd(UINT64_MAX) % 50000, flags = caller ? 0 : rnd(UINT64_MAX) % 4;
        uint32_t id = nodes_child(nodes, caller ? caller : NODES_ROOT + flags, address);
        if (id <= count)
            continue;
        count = id;
        model[id].caller = caller ? caller : NODES_ROOT + flags;
        model[id].address = address;
        model[id].depth = caller ? model[caller].depth + 1 : 1;
        if (rnd(UINT64_MAX) % 20000 == 0) {
            nodes_write(nodes);
            store_commit(store);
        }
    }
    nodes_write(nodes);
    nodes_close(nodes);
    assert_int_equal(store_close(store, &err), 0);
}

static void compare_stacks(sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    uint32_t id = 0;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM stack ORDER BY stack_id", -1, &s, NULL), SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW) {
        int is_root = model[++id].caller >= NODES_ROOT;
        assert_int_equal(sqlite3_column_int64(s, 0), id);
        assert_int_equal(sqlite3_column_type(s, 1), is_root ? SQLITE_NULL : SQLITE_INTEGER);
        assert_int_equal(sqlite3_column_int64(s, 1), is_root ? 0 : model[id].caller);
        assert_int_equal(sqlite3_column_int64(s, 2), model[id].address);
        assert_int_equal(sqlite3_column_int64(s, 3), model[id].depth);
        assert_int_equal(sqlite3_column_int64(s, 4), is_root ? model[id].caller - NODES_ROOT : 0);
    }
    sqlite3_finalize(s);
    assert_int_equal(id, NODES);
}

/* Without keeping them; *arg: how many so far. */
static int compare_chunk(void *arg, uint32_t first, const uint64_t *parents, const uint64_t *addresses, uint32_t count)
{
    uint32_t *seen = arg;
    assert_int_equal(first, *seen + 1);
    for (uint32_t i = 0; i < count; i++, (*seen)++) {
        assert_int_equal(parents[i], model[first + i].caller >= NODES_ROOT ? 0 : model[first + i].caller);
        assert_int_equal(addresses[i], model[first + i].address);
    }
    return 0;
}

static uint32_t begun; /* chunks that begins_second was asked of */

static int begins_second(void *arg, const uint64_t *addresses, uint32_t count)
{
    (void)arg;
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(addresses[i], model[begun * PACKED_ROWS + i + 1].address);
    return ++begun == 2;
}

static void test_stacks(void **state)
{
    (void)state;
    struct error err;
    sqlite3 *db;
    make_stacks(scratch_path("stacks.db"));
    assert_int_equal(sqlite3_open(scratch_path("stacks.db"), &db), SQLITE_OK);
    assert_int_equal(db_int(db, "PRAGMA user_version", 0), 2);
    assert_int_equal(packed_has(db, PACKED_TABLE_stack), 1);
    assert_int_equal(packed_has(db, PACKED_TABLE_site), 0);
    assert_string_equal(packed_source(db, PACKED_TABLE_site), "main.site");
    assert_int_equal(packed_views(db, &err), 0);
    assert_int_equal(packed_views(db, &err), 0);
    compare_stacks(db);
    uint32_t seen = 0;
    assert_int_equal(packed_each_stack(db, &(struct packed_visit){NULL, compare_chunk, &seen}), 0);
    assert_int_equal(seen, NODES);
    seen = PACKED_ROWS; /* those of the first chunk are passed over */
    begun = 0;
    assert_int_equal(packed_each_stack(db, &(struct packed_visit){begins_second, compare_chunk, &seen}), 0);
    assert_int_equal(seen, NODES);
    assert_int_equal(begun, 2);
    sqlite3_close(db);
}

/* --- sites --- */

#define SITES 150000u

static uint64_t sites[PACKED_COLUMNS][SITES + 1];

static void random_site(uint32_t id, uint32_t seldom)
{
    for (enum packed_column c = PACKED_KEY_site; c < PACKED_site_line_id; c++)
        sites[c][id] = rnd(UINT64_MAX) % seldom ? 0 : rnd(UINT64_MAX) >> (1 + rnd(UINT64_MAX) % 62);
    sites[PACKED_site_stack_id][id] = rnd(UINT64_MAX) % 1000;
    sites[PACKED_site_kind][id] = rnd(UINT64_MAX) % KIND_COUNT;
}

static void put(sqlite3 *db, struct chunk_codec *codec, uint32_t part, enum packed_column column, uint32_t first,
                const uint32_t *ids, uint32_t count)
{
    static uint64_t values[PACKED_ROWS];
    struct buf data = BUF(1 << 21);
    sqlite3_stmt *s = NULL;
    for (uint32_t i = 0; i < count; i++)
        values[i] = column == PACKED_ROW_IDS ? ids[i] : sites[column][ids ? ids[i] : first + i];
    int rc = packed_encode(codec, column, first, values, count, &data);
    assert_true(rc >= 0);
    assert_int_equal(sqlite3_prepare_v2(db, PACKED_INSERT, -1, &s, NULL), SQLITE_OK);
    packed_bind(s, PACKED_TABLE_site, part, column, first, count, &data);
    if (rc)
        assert_int_equal(sqlite3_step(s), SQLITE_DONE);
    sqlite3_finalize(s);
    buf_free(&data);
}

static void put_all(sqlite3 *db, struct chunk_codec *codec, uint32_t part, uint32_t first, const uint32_t *ids,
                    uint32_t count)
{
    for (enum packed_column c = PACKED_KEY_site; c < PACKED_site_line_id; c++)
        put(db, codec, part, c, first, ids, count);
    if (ids)
        put(db, codec, part, PACKED_ROW_IDS, first, ids, count);
}

static void compare_sites(struct packed *p, uint32_t count)
{
    const struct packed_values *values;
    assert_int_equal(packed_count(p, PACKED_TABLE_site), count);
    for (enum packed_column c = PACKED_KEY_site; c < PACKED_KEY_resident_site; c++) {
        assert_int_equal(packed_read(p, c, &values), 0);
        for (uint32_t i = 1; i <= count; i++)
            if (packed_at(values, i) != sites[c][i])
                fail_msg("column %d of site %u", (int)c, i);
    }
    for (uint64_t stack = 0; stack < 1001; stack += 77) {
        uint32_t site = 0;
        assert_int_equal(packed_site_of_stack(p, (int64_t)stack, &site), 0);
        for (uint32_t i = 1; i <= count; i++)
            if (sites[PACKED_site_stack_id][i] == stack) {
                assert_int_equal(site, i);
                site = packed_next_site(p, site);
            }
        assert_int_equal(site, 0);
    }
}

/* Rows with more than a number, which the virtual table passes over itself. */
static void compare_above(sqlite3 *db, uint32_t count)
{
    static const int64_t least[] = {INT64_MIN, -1, 0, 1000, INT64_MAX / 4, INT64_MAX};
    struct error err;
    assert_int_equal(packed_views(db, &err), 0);
    for (size_t k = 0; k < sizeof least / sizeof *least; k++) {
        int64_t ids = 0;
        char sql[200];
        for (uint32_t i = 1; i <= count; i++)
            ids += (int64_t)sites[PACKED_site_lifetime_ns][i] > least[k] ? i : 0;
        snprintf(sql, sizeof sql,
                 "SELECT total(site_id) FROM site WHERE alloc_count >= 0 AND lifetime_ns > (SELECT CAST('%lld' AS "
                 "INTEGER))",
                 (long long)least[k]);
        assert_int_equal(db_int(db, sql, -1), ids);
    }
    assert_int_equal(db_int(db, "SELECT count(*) FROM site WHERE end_count > 'x' OR alloc_count > NULL", -1), 0);
    assert_int_equal(db_int(db, "SELECT count(*) FROM site WHERE end_count > 'x'", -1), 0);
    assert_int_equal(db_int(db,
                            "SELECT (SELECT count(*) FROM site WHERE end_count > 10.5) = count(*) FROM site WHERE "
                            "end_count > 10",
                            -1),
                     1);
}

static void test_sites(void **state)
{
    (void)state;
    sqlite3 *db = scratch_db("sites.db");
    struct chunk_codec *codec = chunk_codec_open();
    struct packed *p = packed_open(db);
    uint32_t count = SITES - 20000;
    for (uint32_t i = 1; i <= count; i++)
        random_site(i, 3);
    for (uint32_t first = 1; first <= count; first += PACKED_ROWS)
        put_all(db, codec, 0, first, NULL, count - first + 1 < PACKED_ROWS ? count - first + 1 : PACKED_ROWS);
    compare_sites(p, count);
    for (uint32_t part = 1; part <= 10; part++) { /* some anew, some of them several times; and new ones */
        static uint32_t ids[80000];
        uint32_t changed = 0, step = part == 4 ? 1 : 5000;
        for (uint32_t i = 1 + rnd(UINT64_MAX) % step; i <= count && changed < 70000; i += 1 + rnd(UINT64_MAX) % step)
            ids[changed++] = i;
        for (uint32_t i = 0; i < 2000; i++)
            ids[changed++] = ++count;
        for (uint32_t i = 0; i < changed; i++)
            random_site(ids[i], part == 7 ? UINT32_MAX : 5);
        for (uint32_t at = 0; at < changed; at += PACKED_ROWS)
            put_all(db, codec, part, at, ids + at, changed - at < PACKED_ROWS ? changed - at : PACKED_ROWS);
    }
    packed_renew(p); /* it sees them only then */
    compare_sites(p, count);
    compare_above(db, count);
    uint32_t too_high = PACKED_ROWS_MAX; /* more than there are rows at all */
    put(db, codec, 11, PACKED_ROW_IDS, 0, &too_high, 1);
    packed_renew(p);
    assert_int_equal(packed_count(p, PACKED_TABLE_site), -EBADMSG);
    packed_close(p);
    chunk_codec_close(codec);
    sqlite3_close(db);
}

/* Looks of one chunk, of several, of none; as the virtual table shows them, by look and by row, and what teardowns
 * freed beside. */
static void test_looks(void **state)
{
    (void)state;
    static const uint32_t counts[] = {5, 0, PACKED_ROWS, 2 * PACKED_ROWS + 7, 1};
    static uint64_t values[PACKED_ROWS];
    sqlite3 *db = scratch_db("looks.db");
    struct chunk_codec *codec = chunk_codec_open();
    struct buf data = BUF(1 << 21);
    struct error err;
    sqlite3_stmt *s = NULL;
    int64_t sum[5] = {0}, all = 0;
    assert_int_equal(sqlite3_prepare_v2(db, PACKED_INSERT, -1, &s, NULL), SQLITE_OK);
    for (uint32_t look = 0; look < 5; look++)
        for (enum packed_column c = PACKED_KEY_resident_site; c < PACKED_COLUMNS; c++)
            for (uint32_t first = 1, count; first <= counts[look]; first += count) {
                count = counts[look] - first + 1 < PACKED_ROWS ? counts[look] - first + 1 : PACKED_ROWS;
                for (uint32_t i = 0; i < count; i++) {
                    values[i] = c == PACKED_KEY_resident_site ? first + i : (look + 1) * (first + i) % 1000 * c;
                    sum[look] += c == PACKED_resident_site_untouched_bytes ? (int64_t)values[i] : 0;
                }
                assert_int_equal(packed_encode(codec, c, first, values, count, &data), 1);
                packed_bind(s, PACKED_TABLE_resident_site, 10 + look, c, first, count, &data);
                assert_int_equal(sqlite3_step(s), SQLITE_DONE);
                sqlite3_reset(s);
            }
    sqlite3_finalize(s);
    assert_string_equal(packed_source(db, PACKED_TABLE_resident_site), "packed_resident_site");
    assert_int_equal(packed_views(db, &err), 0);
    for (uint32_t look = 0; look < 5; look++) {
        char sql[200];
        snprintf(sql, sizeof sql,
                 "SELECT count(*) * 1000000000000 + sum(untouched_bytes) FROM resident_site WHERE "
                 "scan_id = %u AND site_id > 0",
                 10 + look);
        assert_int_equal(db_int(db, sql, 0), counts[look] ? counts[look] * 1000000000000 + sum[look] : 0);
        snprintf(sql, sizeof sql, "SELECT sum(live_bytes - live_count * %d / %d) FROM resident_site WHERE scan_id = %u",
                 PACKED_resident_site_live_bytes, PACKED_resident_site_live_count, 10 + look);
        assert_int_equal(db_int(db, sql, 0), 0);
        all += counts[look];
    }
    assert_int_equal(db_int(db, "SELECT count(*) FROM resident_site", 0), all);
    assert_int_equal(db_int(db, "SELECT count(*) FROM (SELECT DISTINCT scan_id, site_id FROM resident_site)", 0), all);
    assert_int_equal(db_int(db, "SELECT scan_id * 100 + site_id FROM resident_site WHERE rowid = 6", 0), 1201);
    assert_int_equal(db_int(db, "SELECT count(*) FROM resident_site WHERE scan_id IN (9, 11, 15, 10.5, 'x')", 9), 0);
    /* no teardown: the plain tables stay what they are */
    assert_int_equal(db_int(db, "SELECT count(*) FROM temp.sqlite_schema", 0), 1);
    struct packed *p = packed_open(db);
    scratch_sql(db, "DELETE FROM packed WHERE part = 13 AND first_row = 1 AND column_name = 'site_id'");
    assert_int_equal(packed_count(p, PACKED_TABLE_resident_site), -EBADMSG);
    packed_close(p);
    buf_free(&data);
    chunk_codec_close(codec);
    sqlite3_close(db);
}

/* A column as an earlier version wrote it, with newer values as this one does; and none of the two twice. */
static void test_earlier(void **state)
{
    (void)state;
    sqlite3 *db = scratch_db("earlier.db");
    struct chunk_codec *codec = chunk_codec_open();
    const struct packed_values *values;
    struct error err;
    static uint64_t anew[1001];
    uint32_t ids[100];
    for (uint32_t i = 1; i <= 1000; i++) {
        random_site(i, 5);
        sites[PACKED_site_alloc_bytes][i] = sites[PACKED_site_active_peak_bytes][i];
    }
    put_all(db, codec, 0, 1, NULL, 1000);
    scratch_sql(db, "DELETE FROM packed WHERE column_name = 'active_peak_changes';"
                    "UPDATE packed SET column_name = 'active_peak_bytes' WHERE column_name = 'alloc_bytes'");
    for (uint32_t i = 0; i < 100; i++) {
        ids[i] = 1 + i * 7;
        random_site(ids[i], 5);
    }
    put_all(db, codec, 1, 0, ids, 100);
    struct packed *p = packed_open(db);
    assert_int_equal(packed_read(p, PACKED_site_active_peak_bytes, &values), 0);
    for (uint32_t i = 1; i <= 1000; i++) {
        if (packed_at(values, i) != sites[PACKED_site_active_peak_bytes][i])
            fail_msg("site %u", i);
        anew[i] = packed_at(values, i);
    }
    /* written anew, it needs a reader of today */
    sqlite3_stmt *insert = NULL;
    scratch_sql(db, "PRAGMA user_version = 2; DELETE FROM packed WHERE column_name LIKE 'active_peak%%' OR part > 0");
    assert_int_equal(sqlite3_prepare_v2(db, PACKED_INSERT, -1, &insert, NULL), SQLITE_OK);
    assert_int_equal(packed_write(insert, codec, PACKED_site_line_id, anew, 1000, &err), 0);
    assert_int_equal(db_int(db, "PRAGMA user_version", 0), 2);
    for (uint32_t i = 1; i <= 1000; i++)
        anew[i] = sites[PACKED_site_active_peak_bytes][i];
    assert_int_equal(packed_write(insert, codec, PACKED_site_active_peak_bytes, anew, 1000, &err), 0);
    assert_int_equal(db_int(db, "PRAGMA user_version", 0), 4);
    sqlite3_finalize(insert);
    packed_close(p);
    p = packed_open(db);
    assert_int_equal(packed_read(p, PACKED_site_active_peak_bytes, &values), 0);
    for (uint32_t i = 1; i <= 1000; i++)
        assert_true(packed_at(values, i) == sites[PACKED_site_active_peak_bytes][i]);
    packed_close(p);
    scratch_sql(db, "INSERT INTO packed SELECT table_name, part, 'active_peak_bytes', first_row, row_count, data FROM "
                    "packed WHERE column_name = 'active_peak_changes'");
    p = packed_open(db);
    assert_int_equal(packed_read(p, PACKED_site_active_peak_bytes, &values), -EBADMSG);
    packed_close(p);
    chunk_codec_close(codec);
    sqlite3_close(db);
}

/* --- damage --- */

/* 1: all can be read. */
static int can_read(sqlite3 *db)
{
    struct packed *p = packed_open(db);
    const struct packed_values *values;
    const uint32_t *depths;
    uint32_t site;
    int ok = packed_count(p, PACKED_TABLE_stack) >= 0 && packed_count(p, PACKED_TABLE_site) >= 0;
    for (enum packed_column c = 0; c < PACKED_COLUMNS; c++)
        ok &= packed_read(p, c, &values) == 0;
    ok &= packed_depths(p, &depths) == 0;
    ok &= packed_site_of_stack(p, 5, &site) == 0;
    packed_close(p);
    return ok;
}

static int take_nothing(void *arg, uint32_t first, const uint64_t *parents, const uint64_t *addresses, uint32_t count)
{
    (void)arg, (void)first, (void)parents, (void)addresses, (void)count;
    return 0;
}

/* The same of the stacks beside each other; damage of another column is not seen there. */
static int can_read_stacks(sqlite3 *db)
{
    return packed_each_stack(db, &(struct packed_visit){NULL, take_nothing, NULL}) == 0;
}

static void test_damage(void **state)
{
    (void)state;
    static const char *const damages[] = {
        "UPDATE packed SET data = zeroblob(length(data))",
        "UPDATE packed SET data = x''",
        "UPDATE packed SET data = substr(data, 1, length(data) - 1) WHERE column_name = 'address_id'",
        "UPDATE packed SET row_count = row_count + 1 WHERE column_name = 'parent_id'",
        "UPDATE packed SET row_count = 0 WHERE column_name = 'flags'",
        "UPDATE packed SET first_row = first_row + 1 WHERE column_name = 'parent_id'",
        "UPDATE packed SET first_row = -9223372036854775807 WHERE column_name = 'parent_id' AND first_row = 1",
        "UPDATE packed SET first_row = 9223372036854775807 WHERE column_name = 'address_id' AND first_row = 1",
        "DELETE FROM packed WHERE column_name = 'parent_id' AND first_row = 1",
        "DELETE FROM packed WHERE column_name = 'parent_id' AND first_row > 131072",
        "UPDATE packed SET part = 1 WHERE column_name = 'address_id'",
        "UPDATE packed SET part = -1 WHERE column_name = 'address_id'",
        /* callers above 2^32 or not below their callees */
        "UPDATE packed SET data = (SELECT data FROM packed WHERE column_name = 'address_id' AND first_row = 1) WHERE "
        "column_name = 'parent_id' AND first_row = 1",
        /* ids of newer values that there cannot be */
        "UPDATE packed SET column_name = 'row_id', part = 1 WHERE column_name = 'flags' AND first_row = 1",
        "INSERT INTO packed SELECT table_name, 0, 'row_id', first_row, row_count, data FROM packed WHERE column_name = "
        "'address_id'",
        /* newer callers, whose numbers would be far above all */
        "INSERT INTO packed SELECT table_name, 1, CASE column_name WHEN 'address_id' THEN 'row_id' ELSE column_name "
        "END, 200000000, row_count, data FROM packed WHERE first_row = 1 AND (column_name LIKE 'parent%' OR "
        "column_name = 'address_id')",
    };
    make_stacks(scratch_path("stacks.db"));
    sqlite3 *db;
    assert_int_equal(sqlite3_open(scratch_path("stacks.db"), &db), SQLITE_OK);
    assert_int_equal(can_read(db), 1);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        scratch_sql(db, "BEGIN");
        scratch_sql(db, "%s", damages[i]);
        if (can_read(db))
            fail_msg("taken for sound: %s", damages[i]);
        if (strstr(damages[i], "'parent_id'") && !strstr(damages[i], "> 131072") && can_read_stacks(db))
            fail_msg("taken for sound stacks: %s", damages[i]);
        scratch_sql(db, "ROLLBACK");
    }
    assert_int_equal(can_read(db), 1);
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_stacks),  cmocka_unit_test(test_sites),
        cmocka_unit_test(test_looks),   cmocka_unit_test(test_earlier), cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
