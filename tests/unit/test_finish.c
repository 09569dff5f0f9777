/*
 * test_finish.c: accounts of random recordings (trees with recursion, inline chains, several devices and kinds) against
 * plain SQL over v_stack, and own peaks against a replay of all events; then what finish_database must survive.
 */
#include "../../common/chunk.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../profiler/collect/finish.h"
#include "scratch.h"

#include <errno.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SITES     80
#define NODES     300
#define ADDRESSES 60
#define BUCKET_NS 64 /* and so many events */
#define GROUPS    4

static uint32_t seed;

static uint32_t roll(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(seed >> 4) * below) >> 28);
}

static sqlite3 *create(const char *name)
{
    sqlite3 *db = scratch_db(name);
    scratch_sql(db,
                "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;"
                "INSERT INTO meta VALUES('format', 'memprof'), ('state', 'recorded'), ('events_kept', 'all');"
                "INSERT INTO device(device_id, name, total_bytes) VALUES(0, 'host', NULL), (1, 'cuda:0', NULL);"
                "INSERT INTO process VALUES(1, 4000000, NULL, 'exec', '/bin/app', 'app', 0, NULL, NULL, NULL, NULL);"
                "INSERT INTO thread VALUES(1, 1, 4000000, 'app', 0, NULL);");
    return db;
}

/* --- a random recording ------------------------------------------------------------------------------------------ */

struct block {
    uint32_t site;
    uint64_t size;
};

struct tracked { /* a site as the collector would account for it */
    uint32_t group, stack;
    int64_t live, live_count, own_peak, at_peak, at_peak_count, at_kind_peak;
    int64_t alloc_count, alloc_bytes, free_count, free_bytes, end_bytes, end_count, largest, active_peak;
    /* in the chunk */
    struct chunk_delta delta;
    int64_t chunk_live, chunk_high;
};

static const struct {
    int device;
    enum kind kind;
} groups[GROUPS] = {{0, KIND_heap}, {0, KIND_map}, {1, KIND_device}, {1, KIND_pool}};

static struct tracked sites[SITES + 1];
static struct chunk_event *all_events;
static size_t all_count;

static void make_names(sqlite3 *db)
{
    scratch_sql(
        db,
        "INSERT INTO module(module_id, process_id, path, build_id, start_address, end_address, bias, load_ns, symbols) "
        "VALUES"
        "(1, 1, '/bin/app', 'aa', 0, 1, 0, 0, 'dwarf'), (2, 1, '/lib/one.so', 'bb', 0, 1, 0, 0, 'dwarf'),"
        "(3, 1, '/lib/one.so', 'bb', 0, 1, 0, 0, 'dwarf'), (4, 1, '/opt/libmemprof.so', NULL, 0, 1, 0, 0, 'symtab'),"
        "(5, 1, '/lib/one.so', 'cc', 0, 1, 0, 0, 'none: x')");
    for (int i = 1; i <= 6; i++)
        scratch_sql(db, "INSERT INTO file VALUES(%d, '/src/f%d.c', NULL)", i, i);
    for (int i = 1; i <= 25; i++)
        scratch_sql(db, "INSERT INTO function VALUES(%d, 'fn%d', 'fn%d', 'fn%d', %d, %d, %d)", i * 3, i, i, i,
                    i % 6 + 1, i, i % 5 == 0);
}

static void make_addresses(sqlite3 *db)
{
    for (int i = 1; i <= ADDRESSES; i++) {
        int module = (int)roll(6);
        char text[8];
        snprintf(text, sizeof text, module ? "%d" : "NULL", module);
        scratch_sql(db, "INSERT INTO address VALUES(%d, %s, %d)", i, text, 100 * i);
        if (roll(6) == 0) {
            scratch_sql(db, "INSERT INTO frame(address_id, inline_depth) VALUES(%d, 0)", i);
            continue;
        }
        int chain = 1 + (int)roll(3);
        for (int depth = 0; depth < chain; depth++) {
            int function = roll(10) ? 3 * (1 + (int)roll(25)) : 0, file = roll(3) ? 1 + (int)roll(6) : 0;
            scratch_sql(
                db,
                "INSERT INTO frame(address_id, inline_depth, function_id, file_id, line, is_inline) VALUES(%d, %d, "
                "nullif(%d, 0), nullif(%d, 0), %s, %d)",
                i, depth, function, file,
                !file || roll(8) == 0 ? "NULL"
                : roll(2)             ? "7"
                                      : "12",
                depth + 1 < chain);
        }
    }
}

static void make_stacks(sqlite3 *db)
{
    for (int i = 1; i <= NODES; i++) {
        /* mostly below a recent node, so that stacks are deep and addresses repeat on them */
        int parent = i < 4 || roll(20) == 0 ? 0 : i - 1 - (int)roll((uint32_t)(i < 20 ? i - 1 : 12));
        scratch_sql(db, "INSERT INTO stack VALUES(%d, nullif(%d, 0), %d, 1, 0)", 2 * i, 2 * parent,
                    1 + (int)roll(ADDRESSES));
    }
}

struct level {
    int64_t live, peak;
};

static void count_peaks(struct level *device, struct level *kind, uint32_t group)
{
    struct level *d = &device[groups[group].device], *k = &kind[group];
    if (d->live > d->peak) {
        d->peak = d->live;
        for (int i = 1; i <= SITES; i++)
            if (groups[sites[i].group].device == groups[group].device) {
                sites[i].at_peak = sites[i].live;
                sites[i].at_peak_count = sites[i].live_count;
            }
    }
    if (k->live > k->peak) {
        k->peak = k->live;
        for (int i = 1; i <= SITES; i++)
            if (sites[i].group == group)
                sites[i].at_kind_peak = sites[i].live;
    }
}

static void write_chunk(sqlite3 *db, const struct chunk_event *events, size_t count, int id, size_t first)
{
    struct chunk_codec *codec = chunk_codec_open();
    struct chunk_delta deltas[SITES];
    size_t touched = 0;
    for (int i = 1; i <= SITES; i++) {
        struct tracked *t = &sites[i];
        if (t->delta.alloc_count || t->delta.free_count) {
            t->delta.site_id = (uint32_t)i;
            t->delta.rise_bytes = (uint64_t)(t->chunk_high - t->chunk_live);
            deltas[touched++] = t->delta;
        }
        t->delta = (struct chunk_delta){0};
        t->chunk_live = t->chunk_high = t->live;
    }
    struct buf data = BUF(64 << 20), delta = BUF(64 << 20);
    assert_int_equal(chunk_encode_events(codec, events, count, &data), 0);
    assert_int_equal(chunk_encode_deltas(codec, deltas, touched, &delta), 0);
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_prepare_v2(db, "INSERT INTO event_chunk VALUES(?, ?, ?, ?, ?, 3, ?, ?)", -1, &s, NULL),
                     SQLITE_OK);
    sqlite3_bind_int(s, 1, id);
    sqlite3_bind_int64(s, 2, (int64_t)events[0].time_ns);
    sqlite3_bind_int64(s, 3, (int64_t)events[count - 1].time_ns);
    sqlite3_bind_int64(s, 4, (int64_t)count);
    sqlite3_bind_int64(s, 5, (int64_t)first);
    sqlite3_bind_blob64(s, 6, data.data, data.length, SQLITE_STATIC);
    sqlite3_bind_blob64(s, 7, delta.data, delta.length, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(s), SQLITE_DONE);
    sqlite3_finalize(s);
    buf_free(&data);
    buf_free(&delta);
    chunk_codec_close(codec);
}

static void account_event(const struct chunk_event *e, struct level *device, struct level *kind)
{
    struct tracked *t = &sites[e->site_id];
    int is_alloc = e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc;
    int64_t size = (int64_t)e->size_bytes, change = is_alloc ? size : -size;
    t->live += change;
    t->live_count += is_alloc ? 1 : -1;
    device[e->device].live += change;
    kind[t->group].live += change;
    if (is_alloc) {
        t->alloc_count++;
        t->alloc_bytes += size;
        t->delta.alloc_count++;
        t->delta.alloc_bytes += (uint64_t)size;
        t->largest = size > t->largest ? size : t->largest;
    } else {
        t->delta.free_count++;
        t->delta.free_bytes += (uint64_t)size;
        *(e->op == CHUNK_end ? &t->end_bytes : &t->free_bytes) += size;
        *(e->op == CHUNK_end ? &t->end_count : &t->free_count) += 1;
    }
    if (t->live > t->own_peak)
        t->own_peak = t->live;
    if (t->live > t->chunk_high)
        t->chunk_high = t->live;
    count_peaks(device, kind, t->group);
    if (device[e->device].live > t->active_peak)
        t->active_peak = device[e->device].live;
}

/* The highest live bytes of each device in each BUCKET_NS. */
static void write_timeline(sqlite3 *db)
{
    int64_t live[2] = {0, 0}, most[2] = {0, 0};
    for (size_t i = 0; i < all_count; i++) {
        const struct chunk_event *e = &all_events[i];
        int is_alloc = e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc;
        if (e->op != CHUNK_oom)
            live[e->device] += is_alloc ? (int64_t)e->size_bytes : -(int64_t)e->size_bytes;
        most[e->device] = live[e->device] > most[e->device] ? live[e->device] : most[e->device];
        if ((i + 1) % BUCKET_NS && i + 1 < all_count)
            continue;
        for (int d = 0; d < 2; d++) {
            scratch_sql(db,
                        "INSERT INTO timeline VALUES(%d, 0, %lld, %d, 0, %lld, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0)",
                        d, (long long)(i / BUCKET_NS * BUCKET_NS), BUCKET_NS, most[d]);
            most[d] = live[d];
        }
    }
}

/* Allocations and frees that swing, so that sites have their peaks at different times. */
static void make_events(sqlite3 *db, size_t count, size_t chunk_events)
{
    struct level device[2] = {{0, 0}, {0, 0}}, kind[GROUPS] = {{0, 0}};
    struct block *blocks = malloc(count * sizeof *blocks);
    size_t live = 0, chunk_start = 0;
    int chunk = 1;
    all_events = realloc(all_events, (count + 1) * sizeof *all_events);
    all_count = 0;
    memset(sites, 0, sizeof sites);
    for (uint32_t i = 1; i <= SITES; i++) {
        sites[i].group = roll(GROUPS);
        sites[i].stack = roll(30) ? 2 * (1 + roll(NODES)) : 0;
    }
    while (all_count < count) {
        uint32_t phase = (uint32_t)(all_count * 12 / count);
        int grows = live < 10 || roll(100) < (phase % 3 == 0 ? 58u : phase % 3 == 1 ? 50u : 42u);
        if (count - all_count <= live)
            grows = 0;
        struct chunk_event e = {.time_ns = all_count, .thread_id = 1, .process_id = 1, .hook = 1};
        if (grows) {
            uint32_t site = 1 + (roll(3) ? roll(SITES) : (phase * 7 + roll(6)) % SITES);
            e.op = roll(9) ? CHUNK_alloc : CHUNK_realloc_alloc;
            e.size_bytes = roll(50) ? roll(5000) : roll(200000);
            e.site_id = site;
            blocks[live++] = (struct block){site, e.size_bytes};
        } else if (live == 0) {
            e.op = CHUNK_oom;
            e.site_id = 1 + roll(SITES);
            e.size_bytes = 1ull << 40; /* must not count */
        } else {
            size_t at = roll((uint32_t)live);
            e.op = count - all_count < 200 ? CHUNK_end : roll(9) ? CHUNK_free : CHUNK_realloc_free;
            e.size_bytes = blocks[at].size;
            e.site_id = blocks[at].site;
            blocks[at] = blocks[--live];
        }
        e.kind = (uint8_t)groups[sites[e.site_id].group].kind;
        e.device = (uint8_t)groups[sites[e.site_id].group].device;
        e.address = 0x1000 + all_count * 16;
        if (e.op != CHUNK_oom)
            account_event(&e, device, kind);
        all_events[all_count++] = e;
        if (all_count - chunk_start == chunk_events || all_count == count) {
            write_chunk(db, all_events + chunk_start, all_count - chunk_start, chunk++, chunk_start);
            chunk_start = all_count;
        }
    }
    free(blocks);
    for (int i = 1; i <= SITES; i++) {
        struct tracked *t = &sites[i];
        scratch_sql(
            db,
            "INSERT INTO site VALUES(%d, %d, 1, %d, '%s', %lld, %lld, %lld, %lld, %d, %d, %lld, %lld, %lld, %lld, "
            "%lld, %lld, %lld, %d, %lld, %d)",
            i, t->stack, groups[t->group].device, kind_name(groups[t->group].kind), t->alloc_count, t->alloc_bytes,
            t->free_count, t->free_bytes, i % 7, i % 11, t->at_peak, t->at_peak_count, t->at_kind_peak, t->own_peak,
            t->end_bytes, t->end_count, t->active_peak, 1000 + i, t->largest, i * 13);
    }
    for (int d = 0; d < 2; d++)
        scratch_sql(db, "INSERT INTO total SELECT %d, 'all', 0, 0, 0, 0, 0, 0, %lld, 0, 0, 0, 0, 0, 0, 0, 0", d,
                    device[d].peak);
    for (int g = 0; g < GROUPS; g++)
        scratch_sql(db, "INSERT INTO total SELECT %d, '%s', 0, 0, 0, 0, 0, 0, %lld, 0, 0, 0, 0, 0, 0, 0, 0",
                    groups[g].device, kind_name(groups[g].kind), kind[g].peak);
}

static sqlite3 *make_random(const char *name, uint32_t with_seed, size_t events, size_t chunk_events)
{
    seed = with_seed;
    sqlite3 *db = create(name);
    scratch_sql(db, "BEGIN");
    make_names(db);
    make_addresses(db);
    make_stacks(db);
    make_events(db, events, chunk_events);
    write_timeline(db);
    scratch_sql(db, "COMMIT");
    return db;
}

/* --- the naive way ----------------------------------------------------------------------------------------------- */

/* site_key(scope, key, inclusive, site_id), keys as text, from v_stack; memprof's own module left out. */
static const char naive_keys[] =
    "CREATE TEMP TABLE walk AS SELECT s.site_id, v.depth, v.address_id, fn.function_id, fi.file_id, v.line AS line, "
    "v.is_allocator,"
    "  a.module_id, a.offset, m.path AS module, m.build_id FROM site s JOIN v_stack v USING(stack_id) JOIN address a "
    "USING(address_id)"
    "  LEFT JOIN module m ON m.module_id = a.module_id LEFT JOIN function fn ON fn.name = v.function LEFT JOIN file fi "
    "ON fi.path = v.file"
    "  WHERE m.path IS NULL OR m.path <> '/opt/libmemprof.so';"
    "UPDATE walk SET line = NULL WHERE file_id IS NULL;"
    "CREATE TEMP TABLE self AS SELECT s.site_id, coalesce("
    "  (SELECT min(depth) FROM walk w WHERE w.site_id = s.site_id AND line > 0 AND NOT is_allocator),"
    "  (SELECT min(depth) FROM walk w WHERE w.site_id = s.site_id AND function_id IS NOT NULL AND NOT is_allocator)) "
    "AS depth,"
    "  (SELECT min(depth) FROM walk w WHERE w.site_id = s.site_id) AS first FROM site s;"
    "CREATE TEMP TABLE site_key(scope, key, inclusive, site_id, UNIQUE(scope, key, inclusive, site_id));"
    /* self */
    "INSERT INTO site_key SELECT 'line', printf('%s|%s|%d', function_id, iif(line > 0, file_id, NULL), coalesce(line, "
    "0)), 0, site_id"
    "  FROM self JOIN walk USING(site_id, depth);"
    "INSERT INTO site_key SELECT 'line', printf('%s+%d/%s', module, offset, build_id), 0, s.site_id FROM self s JOIN "
    "walk w ON"
    "  w.site_id = s.site_id AND w.depth = s.first WHERE s.depth IS NULL;"
    "INSERT INTO site_key SELECT 'line', '?', 0, site_id FROM self WHERE first IS NULL;"
    "INSERT INTO site_key SELECT 'function', function_id, 0, site_id FROM self JOIN walk USING(site_id, depth) WHERE "
    "function_id;"
    "INSERT INTO site_key SELECT 'file', file_id, 0, site_id FROM self JOIN walk USING(site_id, depth) WHERE file_id;"
    "INSERT INTO site_key SELECT 'module', module || '/' || coalesce(build_id, ''), 0, s.site_id FROM self s JOIN walk "
    "w ON"
    "  w.site_id = s.site_id AND w.depth = coalesce(s.depth, s.first) WHERE module IS NOT NULL;"
    /* inclusive */
    "INSERT OR IGNORE INTO site_key SELECT 'line', printf('%s|%s|%d', function_id, iif(line > 0, file_id, NULL), "
    "coalesce(line, 0)), 1,"
    "  site_id FROM walk WHERE function_id IS NOT NULL OR line > 0;"
    "INSERT OR IGNORE INTO site_key SELECT 'line', printf('%s+%d/%s', module, offset, build_id), 1, site_id FROM walk "
    "WHERE"
    "  printf('%s+%d/%s', module, offset, build_id) IN (SELECT key FROM site_key WHERE scope = 'line' AND inclusive = "
    "0);"
    "INSERT OR IGNORE INTO site_key SELECT 'line', '?', 1, site_id FROM self WHERE first IS NULL;"
    "INSERT OR IGNORE INTO site_key SELECT 'function', function_id, 1, site_id FROM walk WHERE function_id;"
    "INSERT OR IGNORE INTO site_key SELECT 'file', file_id, 1, site_id FROM walk WHERE file_id;"
    "INSERT OR IGNORE INTO site_key SELECT 'module', module || '/' || coalesce(build_id, ''), 1, site_id FROM walk "
    "WHERE module NOT NULL;";

#define SUMS                                                                                                           \
    "sum(alloc_count), sum(alloc_bytes), sum(free_count), sum(free_bytes), sum(temporary_count), "                     \
    "sum(temporary_bytes), "                                                                                           \
    "sum(at_peak_bytes), sum(at_peak_count), sum(at_kind_peak_bytes), sum(end_bytes), sum(end_count), "                \
    "max(active_peak_bytes), max(reserved_peak_bytes), max(largest_bytes), sum(lifetime_ns)"
#define COLUMNS                                                                                                        \
    "alloc_count, alloc_bytes, free_count, free_bytes, temporary_count, temporary_bytes, at_peak_bytes, "              \
    "at_peak_count, "                                                                                                  \
    "at_kind_peak_bytes, end_bytes, end_count, active_peak_bytes, reserved_peak_bytes, largest_bytes, lifetime_ns"

static const char naive_accounts[] =
    "CREATE TEMP TABLE naive AS SELECT scope, key, inclusive, device_id, kind, " SUMS
    " FROM site_key JOIN site USING(site_id) "
    "GROUP BY 1, 2, 3, 4, 5;"
    "INSERT INTO naive SELECT scope, key, inclusive, device_id, 'all', " SUMS
    " FROM site_key JOIN site USING(site_id) GROUP BY 1, 2, "
    "3, 4;"
    "CREATE TEMP TABLE key_name AS SELECT 'line' AS scope, line_id AS key_id, CASE WHEN function_id IS NULL AND "
    "file_id IS NULL AND "
    "  offset IS NULL THEN '?' WHEN offset IS NOT NULL THEN printf('%s+%d/%s', path, offset, build_id) ELSE"
    "  printf('%s|%s|%d', function_id, file_id, line) END AS key FROM line LEFT JOIN module_key ON key_id = "
    "module_key_id;"
    "INSERT INTO key_name SELECT 'function', function_id, function_id FROM function;"
    "INSERT INTO key_name SELECT 'file', file_id, file_id FROM file;"
    "INSERT INTO key_name SELECT 'module', key_id, path || '/' || coalesce(build_id, '') FROM module_key;"
    "CREATE TEMP TABLE ours AS SELECT scope, key, inclusive, device_id, kind, " COLUMNS
    " FROM account JOIN key_name USING(scope, key_id);";

static void assert_none(sqlite3 *db, const char *query)
{
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(db, query, -1, &s, NULL) != SQLITE_OK)
        fail_msg("%s: %s", query, sqlite3_errmsg(db));
    if (sqlite3_step(s) == SQLITE_ROW) {
        struct buf row = BUF(65536);
        for (int i = 0; i < sqlite3_column_count(s); i++)
            buf_printf(&row, " %s=%s", sqlite3_column_name(s, i), db_text(s, i));
        fail_msg("%.60s...:%s", query, row.data);
    }
    sqlite3_finalize(s);
}

static void check_accounts(sqlite3 *db)
{
    scratch_sql(db, "%s", naive_keys);
    scratch_sql(db, "%s", naive_accounts);
    assert_none(db, "SELECT * FROM naive EXCEPT SELECT * FROM ours");
    assert_none(db, "SELECT * FROM ours EXCEPT SELECT * FROM naive");
    assert_true(db_int(db, "SELECT count(*) FROM naive", 0) > 300);
    /* no row twice, none without a name, every site has a line */
    assert_none(db,
                "SELECT scope, key_id FROM account WHERE (scope, key_id) NOT IN (SELECT scope, key_id FROM key_name)");
    assert_none(
        db, "SELECT site_id FROM site WHERE site_id NOT IN (SELECT site_id FROM site_line JOIN line USING(line_id))");
    assert_none(
        db, "SELECT count(*) FROM line GROUP BY function_id, file_id, line, module_key_id, offset HAVING count(*) > 1");
    assert_none(
        db,
        "SELECT site_id FROM site_line JOIN key_name k ON k.scope = 'line' AND k.key_id = line_id LEFT JOIN site_key s "
        "USING(site_id) WHERE s.scope = 'line' AND s.inclusive = 0 AND s.key <> k.key");
}

/* Replays all events for every row. Returns how many rows of several sites there were. */
static int check_own_peaks(sqlite3 *db)
{
    sqlite3_stmt *rows, *members;
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT a.scope, k.key, a.inclusive, a.device_id, a.kind, a.own_peak_bytes FROM account a "
                           "JOIN key_name k USING(scope, key_id)",
                           -1, &rows, NULL),
        SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT site_id FROM site_key JOIN site USING(site_id) WHERE scope = ?1 AND key = ?2 AND "
                           "inclusive = ?3 AND device_id = ?4 AND (kind = ?5 OR ?5 = 'all')",
                           -1, &members, NULL),
        SQLITE_OK);
    int several = 0;
    while (sqlite3_step(rows) == SQLITE_ROW) {
        uint8_t is_in[SITES + 1] = {0};
        int count = 0;
        for (int i = 0; i < 5; i++)
            sqlite3_bind_value(members, i + 1, sqlite3_column_value(rows, i));
        while (sqlite3_step(members) == SQLITE_ROW)
            count += is_in[sqlite3_column_int(members, 0)] = 1;
        sqlite3_reset(members);
        several += count > 1;
        int64_t live = 0, peak = 0;
        for (size_t i = 0; i < all_count; i++) {
            const struct chunk_event *e = &all_events[i];
            if (!is_in[e->site_id] || e->op == CHUNK_oom)
                continue;
            int is_alloc = e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc;
            live += is_alloc ? (int64_t)e->size_bytes : -(int64_t)e->size_bytes;
            peak = live > peak ? live : peak;
        }
        if (sqlite3_column_type(rows, 5) == SQLITE_NULL || sqlite3_column_int64(rows, 5) != peak)
            fail_msg("%s %s inclusive %d device %d %s: own peak %s, not %lld (%d sites)", db_text(rows, 0),
                     db_text(rows, 1), sqlite3_column_int(rows, 2), sqlite3_column_int(rows, 3), db_text(rows, 4),
                     db_text(rows, 5), (long long)peak, count);
    }
    sqlite3_finalize(rows);
    sqlite3_finalize(members);
    return several;
}

static void finish(sqlite3 *db, int again)
{
    struct finish_options options = {.again = again};
    struct error err = {""};
    if (finish_database(db, &options, &err))
        fail_msg("%s", err.text);
    assert_int_equal(db_int(db, "SELECT value = 'complete' FROM meta WHERE key = 'state'", 0), 1);
}

static void test_random_recordings(void **state)
{
    (void)state;
    static const size_t chunk_sizes[] = {50, 400, 3000, 20000};
    for (uint32_t i = 0; i < 12; i++) {
        sqlite3 *db = make_random("random.db", 100 + i, 20000, chunk_sizes[i % 4]);
        finish(db, 0);
        check_accounts(db);
        assert_true(check_own_peaks(db) > 100);
        assert_none(db, "SELECT 1 FROM meta WHERE key = 'own_peak_incomplete'");
        sqlite3_close(db);
    }
}

/* It only saves time: one that is not of these events, or not whole, changes nothing. */
static void test_any_timeline(void **state)
{
    (void)state;
    static const char *const damages[] = {
        "DELETE FROM timeline",
        "DELETE FROM timeline WHERE time_ns % 3 = 0",
        "DELETE FROM timeline WHERE time_ns < 1000 OR time_ns > 9000",
        "UPDATE timeline SET active_max_bytes = 0",
        "UPDATE timeline SET active_max_bytes = active_max_bytes / 2 WHERE device_id = 0",
        "UPDATE timeline SET width_ns = 9223372036854775807",
        "UPDATE timeline SET width_ns = -width_ns",
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        sqlite3 *db = make_random("timeline.db", 40, 10000, 500);
        scratch_sql(db, "%s", damages[i]);
        finish(db, 0);
        check_accounts(db);
        assert_true(check_own_peaks(db) > 100);
        sqlite3_close(db);
    }
}

static void test_finishing_twice_changes_nothing(void **state)
{
    (void)state;
    sqlite3 *db = make_random("twice.db", 7, 5000, 500);
    scratch_sql(db,
                "INSERT INTO account SELECT 'thread', 1, 0, 0, 'heap', 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1");
    finish(db, 0);
    scratch_sql(db, "CREATE TEMP TABLE first AS SELECT * FROM account");
    finish(db, 0);
    assert_none(db, "SELECT * FROM account EXCEPT SELECT * FROM first");
    assert_none(db, "SELECT * FROM first EXCEPT SELECT * FROM account");
    assert_int_equal(db_int(db, "SELECT count(*) FROM account WHERE scope = 'thread'", 0), 1);
    /* nothing can be looked up again here: what is known stays */
    scratch_sql(
        db, "CREATE TEMP TABLE frames AS SELECT * FROM frame WHERE address_id IN (SELECT address_id FROM address WHERE "
            "module_id NOT NULL)");
    finish(db, 1);
    assert_none(db, "SELECT * FROM frames EXCEPT SELECT * FROM frame");
    sqlite3_close(db);
}

static void expect_unknown(const char *name, const char *damage)
{
    sqlite3 *db = make_random(name, 9, 5000, 500);
    scratch_sql(db, "%s", damage);
    finish(db, 0);
    scratch_sql(db, "%s", naive_keys);
    scratch_sql(db, "%s", naive_accounts);
    assert_none(db, "SELECT * FROM naive EXCEPT SELECT * FROM ours");
    assert_int_equal(db_int(db, "SELECT count(*) FROM meta WHERE key = 'own_peak_incomplete'", 0), 1);
    assert_true(db_int(db, "SELECT count(*) FROM account WHERE own_peak_bytes IS NULL", 0) > 50);
    assert_true(db_int(db, "SELECT count(*) FROM account WHERE own_peak_bytes IS NOT NULL", 0) > 50);
    /* what one site makes is known all the same */
    assert_none(db, "SELECT * FROM v_line l WHERE own_peak_bytes IS NULL AND kind <> 'all' AND (SELECT count(*) FROM "
                    "site_line sl JOIN site s "
                    "USING(site_id) JOIN device d USING(device_id) WHERE sl.line_id = l.line_id AND s.kind = l.kind "
                    "AND d.name = l.device) = 1");
    sqlite3_close(db);
}

static void test_missing_or_damaged_events(void **state)
{
    (void)state;
    expect_unknown("a.db", "UPDATE meta SET value = 'last' WHERE key = 'events_kept'");
    expect_unknown("b.db", "DELETE FROM event_chunk WHERE chunk_id = 3");
    expect_unknown("c.db", "DELETE FROM event_chunk WHERE chunk_id = 10");
    expect_unknown("d.db", "DELETE FROM event_chunk; UPDATE meta SET value = 'none' WHERE key = 'events_kept'");
    expect_unknown("e.db", "UPDATE event_chunk SET site_delta = x'00112233' WHERE chunk_id = 5");
    expect_unknown("f.db", "UPDATE event_chunk SET site_delta = NULL WHERE chunk_id = 5");
    expect_unknown("g.db", "UPDATE site SET alloc_bytes = alloc_bytes + 1 WHERE site_id = 5");
    expect_unknown("h.db", "DELETE FROM event_chunk");
    /* the deltas are whole but the events are not */
    sqlite3 *db = make_random("i.db", 9, 5000, 500);
    scratch_sql(db, "UPDATE event_chunk SET data = zeroblob(length(data))");
    finish(db, 0);
    assert_int_equal(db_int(db, "SELECT count(*) FROM meta WHERE key = 'own_peak_incomplete'", 0), 1);
    sqlite3_close(db);
    /* one chunk of events: whatever is said all the same is right */
    for (int chunk = 1; chunk <= 10; chunk++) {
        db = make_random("j.db", 9, 5000, 500);
        scratch_sql(db, "UPDATE event_chunk SET data = zeroblob(length(data)) WHERE chunk_id = %d", chunk);
        finish(db, 0);
        scratch_sql(db, "CREATE TEMP TABLE damaged AS SELECT * FROM account");
        scratch_sql(db, "DELETE FROM event_chunk");
        sqlite3 *whole = make_random("whole.db", 9, 5000, 500);
        finish(whole, 0);
        sqlite3_close(whole);
        scratch_sql(db, "ATTACH %Q AS whole", scratch_path("whole.db"));
        assert_none(db, "SELECT * FROM damaged WHERE own_peak_bytes NOT NULL EXCEPT SELECT * FROM whole.account");
        assert_true(db_int(db, "SELECT count(*) FROM damaged WHERE own_peak_bytes NOT NULL", 0) > 200);
        sqlite3_close(db);
    }
}

static void test_hostile_rows(void **state)
{
    (void)state;
    static const char *const damages[] = {
        "UPDATE stack SET parent_id = stack_id WHERE stack_id = 10",
        "UPDATE stack SET parent_id = 600 WHERE stack_id = 2; UPDATE stack SET parent_id = 2 WHERE stack_id > 2",
        "UPDATE stack SET parent_id = stack_id + 2 WHERE stack_id < 600; UPDATE stack SET parent_id = 2 WHERE stack_id "
        "= 600",
        "UPDATE stack SET parent_id = 999999, address_id = -5",
        "UPDATE stack SET address_id = 9223372036854775807",
        "DELETE FROM stack",
        "DELETE FROM address",
        "DELETE FROM module",
        "DELETE FROM function",
        "DELETE FROM file",
        "UPDATE frame SET line = -3, function_id = 77777777777, file_id = -1",
        "UPDATE frame SET line = 9223372036854775807, inline_depth = -inline_depth",
        "UPDATE site SET alloc_bytes = 9223372036854775807, at_peak_bytes = -9223372036854775807, lifetime_ns = "
        "9223372036854775807",
        "UPDATE site SET kind = 'a kind with a name that is far longer than any kind has', device_id = site_id * "
        "1000000000000",
        "UPDATE site SET kind = site_id",
        "UPDATE site SET site_id = site_id * 100000000000, stack_id = -stack_id",
        "UPDATE site SET site_id = -site_id",
        "UPDATE event_chunk SET event_count = 9223372036854775807, first_event = 0",
        "UPDATE total SET peak_active_bytes = -1",
        "UPDATE account SET scope = 'thread'; UPDATE meta SET value = NULL WHERE key = 'events_kept'",
        "UPDATE module SET path = '/nonexistent/' || path, build_id = ''; DELETE FROM frame",
        "UPDATE module SET path = char(0), bias = -9223372036854775807; DELETE FROM frame; UPDATE address SET offset = "
        "-9223372036854775808",
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        sqlite3 *db = make_random("hostile.db", 11, 3000, 300);
        scratch_sql(db, "PRAGMA foreign_keys = OFF; %s", damages[i]);
        finish(db, 0);
        sqlite3_close(db);
    }
}

static void test_empty_recording(void **state)
{
    (void)state;
    sqlite3 *db = create("empty.db");
    finish(db, 0);
    assert_int_equal(db_int(db, "SELECT count(*) FROM account", -1), 0);
    sqlite3_close(db);
}

/* --- the self rule ----------------------------------------------------------------------------------------------- */

static void test_self_lines(void **state)
{
    (void)state;
    sqlite3 *db = create("self.db");
    scratch_sql(
        db,
        "INSERT INTO module(module_id, process_id, path, start_address, end_address, bias, load_ns) VALUES"
        "(1, 1, '/bin/app', 0, 1, 0, 0), (2, 1, '/usr/lib/libmemprof.so', 0, 1, 0, 0);"
        "INSERT INTO file VALUES(1, '/src/app.c', NULL), (2, '/src/new_allocator.h', NULL);"
        "INSERT INTO function VALUES(1, 'main', 'main', 'main', 1, 1, 0), (2, 'allocate', 'allocate', 'x', 2, 1, 1),"
        "(3, 'libcall', 'libcall', 'libcall', NULL, NULL, 0), (4, 'thread_start', 'thread_start', 'thread_start', 1, "
        "9, 0);"
        "INSERT INTO address VALUES(1, 1, 16), (2, 1, 32), (3, 1, 48), (4, 2, 64), (5, 1, 80);"
        /* 1: main with a line; 2: the allocator with one; 3: a library function without; 4: memprof's own; 5: nothing
           known */
        "INSERT INTO frame(address_id, inline_depth, function_id, file_id, line) VALUES(1, 0, 1, 1, 5), (2, 0, 2, 2, "
        "100),"
        "(3, 0, 3, NULL, NULL), (4, 0, 4, 1, 77), (5, 0, NULL, NULL, NULL);"
        /* outermost first */
        "INSERT INTO stack VALUES(1, NULL, 1, 1, 0), (2, 1, 3, 2, 0), (3, 2, 2, 3, 0), (4, NULL, 4, 1, 0), (5, 4, 3, "
        "2, 0),"
        "(6, 5, 2, 3, 0), (7, NULL, 5, 1, 0), (8, 7, 2, 2, 0), (9, NULL, 5, 1, 0);");
    static const int stacks[] = {3, 6, 8, 9, 4, 0};
    for (int i = 0; i < 6; i++)
        scratch_sql(db, "INSERT INTO site SELECT %d, %d, 1, 0, 'heap', 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", i + 1,
                    stacks[i]);
    finish(db, 0);
    static const char *const expected[] = {
        "main /src/app.c 5", /* past the allocator and the function without a line */
        "libcall  0",        /* the thread's start is memprof's own: no line anywhere else */
        "/bin/app+0x20  0",  /* only an allocator's function is known: the innermost address */
        "/bin/app+0x50  0",  "unknown  0", "unknown  0",
    };
    for (int i = 0; i < 6; i++) {
        char query[500];
        snprintf(query, sizeof query,
                 "SELECT 1 FROM site_line sl JOIN line l USING(line_id) LEFT JOIN function fn USING(function_id) LEFT "
                 "JOIN file f ON "
                 "f.file_id = l.file_id LEFT JOIN module_key m ON m.key_id = l.module_key_id WHERE site_id = %d AND "
                 "printf('%%s %%s %%d', coalesce(fn.name, m.path || printf('+0x%%x', l.offset), 'unknown'), f.path, "
                 "l.line) = '%s'",
                 i + 1, expected[i]);
        if (db_int(db, query, 0) != 1)
            fail_msg("site %d is not at '%s'", i + 1, expected[i]);
    }
    sqlite3_close(db);
}

/* --- symbols in the database ------------------------------------------------------------------------------------- */

static void test_jit_addresses(void **state)
{
    (void)state;
    sqlite3 *db = create("jit.db");
    int pid = getpid();
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", pid);
    FILE *f = fopen(path, "w");
    fputs("700000000000 100 js:work\n", f);
    fclose(f);
    scratch_sql(
        db,
        "UPDATE process SET pid = %d;"
        "INSERT INTO module(module_id, process_id, path, start_address, end_address, bias, load_ns) VALUES(1, 1, "
        "'//anon', 0, 1, "
        "123145302310912, 0);"
        "INSERT INTO address VALUES(1, NULL, 123145302310928), (2, NULL, 4096), (3, 1, 32);"
        "INSERT INTO stack VALUES(1, NULL, 2, 1, 0), (2, 1, 1, 2, 0), (3, NULL, 3, 1, 0);"
        "INSERT INTO site SELECT 1, 2, 1, 0, 'heap', 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1;",
        pid);
    finish(db, 0);
    unlink(path);
    assert_int_equal(
        db_int(
            db,
            "SELECT count(*) FROM frame JOIN function USING(function_id) WHERE name = 'js:work' AND language = 'jit' "
            "AND address_id IN (1, 3)",
            0),
        2);
    assert_int_equal(db_int(db, "SELECT count(*) FROM frame WHERE address_id = 2 AND function_id IS NULL", 0), 1);
    assert_int_equal(db_int(db, "SELECT count(*) FROM module WHERE symbols = 'perf map'", 0), 1);
    sqlite3_close(db);
}

__attribute__((noinline)) static void *return_address(void)
{
    return __builtin_return_address(0);
}

static int find_main(struct dl_phdr_info *info, size_t size, void *bias)
{
    (void)size;
    *(uint64_t *)bias = info->dlpi_addr;
    return 1; /* the program itself comes first */
}

static void test_own_module_and_source(void **state)
{
    (void)state;
    sqlite3 *db = create("own.db");
    char *path = realpath("/proc/self/exe", NULL);
    void *here = return_address();
    int line = __LINE__ - 1;
    uint64_t bias = 0;
    dl_iterate_phdr(find_main, &bias);
    scratch_sql(
        db,
        "INSERT INTO module(module_id, process_id, path, start_address, end_address, bias, load_ns) VALUES(1, 1, %Q, "
        "0, 1, 0, 0),"
        "(2, 1, '/gone (deleted)', 0, 1, 0, 0);"
        "INSERT INTO address VALUES(1, 1, %lld), (2, 2, 100), (3, 1, %lld);",
        path, (long long)((uintptr_t)here - bias), 1LL);
    struct finish_options options = {.with_source = 1};
    struct error err = {""};
    assert_int_equal(finish_database(db, &options, &err), 0);
    char query[300];
    snprintf(query, sizeof query,
             "SELECT count(*) FROM frame f JOIN function fn USING(function_id) JOIN file fi ON fi.file_id = f.file_id "
             "WHERE f.address_id = 1 "
             "AND fn.name = 'test_own_module_and_source' AND f.line = %d AND fi.source LIKE '%%return_address()%%'",
             line);
    assert_int_equal(db_int(db, query, 0), 1);
    assert_int_equal(
        db_int(db, "SELECT count(*) FROM frame WHERE address_id IN (2, 3) AND function_id IS NULL AND inline_depth = 0",
               0),
        2);
    assert_int_equal(db_int(db, "SELECT symbols = 'dwarf' FROM module WHERE module_id = 1", 0), 1);
    assert_int_equal(
        db_int(db, "SELECT symbols = 'none: file deleted while it ran' FROM module WHERE module_id = 2", 0), 1);
    free(path);
    sqlite3_close(db);
}

static void test_interruption(void **state)
{
    (void)state;
    sqlite3 *db = make_random("stop.db", 5, 3000, 300);
    struct finish_options options = {0};
    struct error err = {""};
    scratch_sql(db, "CREATE TEMP TABLE before AS SELECT count(*) AS n FROM account");
    finish_interrupted = 1;
    assert_int_equal(finish_database(db, &options, &err), -EINTR);
    finish_interrupted = 0;
    assert_int_equal(db_int(db, "SELECT value = 'recorded' FROM meta WHERE key = 'state'", 0), 1);
    assert_int_equal(db_int(db, "SELECT (SELECT n FROM before) = count(*) FROM account", 0), 1);
    finish(db, 0);
    check_accounts(db);
    sqlite3_close(db);
}

/* --- the self line under Python ---------------------------------------------------------------------------------- */

/* One address, frame, function and stack node. */
static void python_node(sqlite3 *db, int id, int caller, int module, const char *function, int file,
                        const char *language)
{
    char text[8];
    snprintf(text, sizeof text, module ? "%d" : "NULL", module);
    scratch_sql(db, "INSERT INTO address VALUES(%d, %s, %d)", id, text, module ? 100 * id : -id);
    scratch_sql(db, "INSERT INTO function VALUES(%d, %Q, %Q, %Q, NULL, NULL, 0)", id, function, function, function);
    scratch_sql(db,
                "INSERT INTO frame(address_id, inline_depth, function_id, file_id, line, language) VALUES(%d, 0, %d, "
                "nullif(%d, 0), nullif(%d, 0), %Q)",
                id, id, file, file ? 10 + id : 0, language);
    snprintf(text, sizeof text, caller ? "%d" : "NULL", caller);
    scratch_sql(db, "INSERT INTO stack VALUES(%d, %s, %d, 1, 0)", id, text, id);
}

static void python_site(sqlite3 *db, int stack)
{
    scratch_sql(db, "INSERT INTO site VALUES(%d, %d, 1, 0, 'heap', 1, 8, 0, 0, 0, 0, 8, 1, 8, 8, 8, 1, 8, 8, 8, 0)",
                stack, stack);
}

static void expect_self(sqlite3 *db, int stack, const char *function)
{
    char query[256];
    snprintf(query, sizeof query,
             "SELECT count(*) FROM site_line JOIN line USING(line_id) JOIN function USING(function_id) WHERE site_id = "
             "%d AND name = '%s'",
             stack, function);
    if (db_int(db, query, -1) != 1)
        fail_msg("site %d is not charged to %s", stack, function);
}

static void test_python_self(void **state)
{
    (void)state;
    sqlite3 *db = create("python.db");
    const char *path = scratch_path("ext.c");
    fclose(fopen(path, "w"));
    scratch_sql(
        db,
        "INSERT INTO module(module_id, process_id, path, build_id, start_address, end_address, bias, load_ns, symbols) "
        "VALUES(1, 1, '/home/u/venv/lib/libpython3.11.so.1.0', 'aa', 0, 1, 0, 0, 'dwarf'),"
        "(2, 1, '/home/u/work/ext.so', 'bb', 0, 1, 0, 0, 'dwarf'), (3, 1, '/usr/lib/libx.so', 'cc', 0, 1, 0, 0, "
        "'dwarf'),"
        "(4, 1, '/home/u/.local/lib/python3.11/site-packages/np/core.so', 'dd', 0, 1, 0, 0, 'dwarf'),"
        "(5, 1, '/home/u/venv/lib/libblas.so', 'ee', 0, 1, 0, 0, 'dwarf')");
    scratch_sql(db, "INSERT INTO file VALUES(1, '/src/train.py', NULL), (2, %Q, NULL), (3, '/build/gone.c', NULL)",
                path);
    /* a C program, then Python, then each kind of native code */
    python_node(db, 1, 0, 2, "main", 2, "native");
    python_node(db, 2, 1, 1, "PyEval_EvalCode", 2, "native"); /* the interpreter before any Python */
    python_node(db, 3, 2, 0, "train", 1, "python");
    python_node(db, 4, 3, 1, "list_append", 2, "native");
    python_node(db, 5, 3, 4, "array_new", 2, "native");
    python_node(db, 6, 3, 3, "x_alloc", 2, "native");
    python_node(db, 7, 3, 5, "dgemm", 2, "native"); /* beside the interpreter */
    python_node(db, 8, 3, 2, "ext_own", 2, "native");
    python_node(db, 9, 8, 3, "x_inside", 2, "native"); /* called by one's own code */
    python_node(db, 10, 3, 2, "ext_stripped", 0, "native");
    python_node(db, 11, 3, 2, "ext_source_gone", 3, "native");
    python_node(db, 12, 8, 0, "callback", 1, "python"); /* own code calls Python again */
    for (int i = 1; i <= 12; i++)
        python_site(db, i);
    struct finish_options options = {0};
    struct error err = {""};
    assert_int_equal(finish_database(db, &options, &err), 0);
    expect_self(db, 1, "main");
    expect_self(db, 2, "PyEval_EvalCode");
    for (int i = 3; i <= 7; i++)
        expect_self(db, i, "train");
    expect_self(db, 8, "ext_own");
    expect_self(db, 9, "ext_own");
    expect_self(db, 10, "train");
    expect_self(db, 11, "train");
    expect_self(db, 12, "callback");
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_recordings),
        cmocka_unit_test(test_any_timeline),
        cmocka_unit_test(test_finishing_twice_changes_nothing),
        cmocka_unit_test(test_missing_or_damaged_events),
        cmocka_unit_test(test_hostile_rows),
        cmocka_unit_test(test_empty_recording),
        cmocka_unit_test(test_self_lines),
        cmocka_unit_test(test_jit_addresses),
        cmocka_unit_test(test_own_module_and_source),
        cmocka_unit_test(test_interruption),
        cmocka_unit_test(test_python_self),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
