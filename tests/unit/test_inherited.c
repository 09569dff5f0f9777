/* What forked children have of their parents, against copies of the whole heap at each fork. */
#include "../../common/kind.h"
#include "../../report/query/inherited.h"
#include "random.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PROCESSES = 12, ADDRESSES = 60, EVENTS = 3000, ROUNDS = 60 };

struct naive_block {
    uint64_t size_bytes; /* 0: none */
    uint32_t site_id, forks;
};

struct naive { /* a process at an instant */
    struct naive_block block[ADDRESSES];
    int is_there; /* it has begun */
    int64_t end_ns, teardown_ns;
};

static struct chunk_event events[EVENTS];
static size_t event_count;
static struct naive now[PROCESSES + 1], at_instant[PROCESSES + 1];
static int process_count;

static void take_copy(int64_t at_ns, int64_t time_ns, int *is_taken)
{
    if (!*is_taken && time_ns > at_ns) {
        memcpy(at_instant, now, sizeof now);
        *is_taken = 1;
    }
}

static void add_event(unsigned op, int process, size_t address, uint64_t size, uint32_t site, int64_t time_ns)
{
    events[event_count++] = (struct chunk_event){.time_ns = (uint64_t)time_ns,
                                                 .address = 16 * (address + 1),
                                                 .size_bytes = size,
                                                 .site_id = site,
                                                 .thread_id = (uint32_t)process,
                                                 .process_id = (uint16_t)process,
                                                 .op = (uint8_t)op,
                                                 .kind = KIND_heap};
}

static void step(int process, int64_t time_ns)
{
    size_t address = rnd(ADDRESSES);
    struct naive_block *b = &now[process].block[address];
    int is_seen = !now[process].teardown_ns; /* what comes later is told, and counts for nothing */
    if (b->size_bytes) {
        add_event(b->forks ? CHUNK_inherited_free : CHUNK_free, process, address, b->forks ? 0 : b->size_bytes,
                  b->forks ? 0 : b->site_id, time_ns);
        if (is_seen)
            *b = (struct naive_block){0};
    } else if (is_seen) {
        *b = (struct naive_block){1 + rnd(5000), (uint32_t)(process * 4 + (int)rnd(4)), 0};
        add_event(rnd(4) ? CHUNK_alloc : CHUNK_realloc_alloc, process, address, b->size_bytes, b->site_id, time_ns);
    }
}

static void split(sqlite3 *db, int parent, int64_t time_ns)
{
    struct naive *child = &now[++process_count];
    *child = now[parent];
    child->teardown_ns = 0;
    for (size_t i = 0; i < ADDRESSES; i++)
        child->block[i].forks += child->block[i].size_bytes != 0;
    scratch_sql(db,
                "INSERT INTO process(process_id, pid, parent_id, start_kind, exe, command_line, start_ns) VALUES(%d, "
                "%d, %d, 'fork', '', '', %lld)",
                process_count, process_count, parent, (long long)time_ns);
    scratch_sql(db,
                "INSERT INTO heap_range(process_id, time_ns, address, size_bytes, arena) VALUES(%d, %lld, 16, 9, 0)",
                process_count, (long long)time_ns);
}

static void write_events(sqlite3 *db)
{
    struct chunk_codec *codec = chunk_codec_open();
    struct buf data = BUF(1 << 24);
    sqlite3_stmt *s;
    sqlite3_prepare_v2(
        db,
        "INSERT INTO event_chunk(chunk_id, first_event, event_count, first_ns, last_ns, device_mask, data, "
        "site_delta) VALUES(1, 0, ?1, 0, ?2, 1, ?3, x'')",
        -1, &s, NULL);
    assert_int_equal(chunk_encode_events(codec, events, event_count, &data), 0);
    sqlite3_bind_int64(s, 1, (int64_t)event_count);
    sqlite3_bind_int64(s, 2, INT64_MAX);
    sqlite3_bind_blob(s, 3, data.data, (int)data.length, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(s), SQLITE_DONE);
    sqlite3_finalize(s);
    chunk_codec_close(codec);
    buf_free(&data);
}

/* Times are even; forks and teardowns lie between two events. */
static void make(sqlite3 *db, int64_t at_ns)
{
    int is_taken = 0;
    memset(now, 0, sizeof now);
    event_count = 0;
    process_count = now[1].is_there = 1;
    scratch_sql(db, "INSERT INTO meta VALUES('forked_heap', 'blocks')");
    scratch_sql(db,
                "INSERT INTO process(process_id, pid, start_kind, exe, command_line, start_ns) VALUES(1, 1, 'exec', "
                "'', '', 0)");
    for (int64_t ns = 2; event_count < EVENTS - 1; ns += 2) {
        int process = 1 + (int)rnd((uint64_t)process_count);
        take_copy(at_ns, ns, &is_taken);
        if (process_count < PROCESSES && rnd(EVENTS / PROCESSES) == 0 && !now[process].teardown_ns)
            split(db, process, ns);
        else if (rnd(EVENTS) == 0 && !now[process].teardown_ns && at_ns == INT64_MAX) {
            now[process].teardown_ns = ns;
            scratch_sql(db, "INSERT INTO teardown(process_id, time_ns) VALUES(%d, %lld)", process, (long long)ns);
        } else
            step(process, ns);
    }
    take_copy(-1, 0, &is_taken);
    write_events(db);
}

static void compare(const struct inherited *in, const struct blocks *live, int process)
{
    struct blocks blocks;
    uint64_t found = 0;
    assert_int_equal(inherited_blocks(in, live, (uint32_t)process, &blocks), 1);
    for (size_t i = 0; i < ADDRESSES; i++) {
        const struct naive_block *b = &at_instant[process].block[i];
        if (!b->size_bytes)
            continue;
        assert_true(found < blocks.count);
        assert_int_equal(blocks.slots[found].address, 16 * (i + 1));
        assert_int_equal(blocks.slots[found].size_bytes, b->size_bytes);
        assert_int_equal(blocks.slots[found].site_id, b->site_id);
        assert_int_equal(blocks.slots[found].forks, b->forks);
        found++;
    }
    assert_int_equal(found, blocks.count);
    free(blocks.slots);
}

static void test_copies(void **state)
{
    int compared = 0;
    (void)state;
    random_seed = 20260;
    for (uint64_t round = 0; round < random_volume(ROUNDS, 10); round++) {
        int64_t at_ns = round % 3 ? 1 + (int64_t)rnd(2 * EVENTS) : INT64_MAX;
        sqlite3 *db = scratch_db("inherited.db");
        struct inherited *in = NULL;
        struct blocks live;
        struct instant at;
        struct error err = {""};
        make(db, at_ns);
        if (at_ns == INT64_MAX)
            instant_end(&at);
        else
            instant_at(&at, at_ns);
        assert_int_equal(live_blocks_load(db, &at, "the test", &live, &in, &err), 0);
        for (int i = 2; in && i <= process_count; i++) {
            struct blocks none;
            if (at_instant[i].is_there) {
                compare(in, &live, i);
                compared++;
            } else {
                assert_int_equal(inherited_blocks(in, &live, (uint32_t)i, &none), 0);
            }
        }
        inherited_close(in);
        free(live.slots);
        sqlite3_close(db);
    }
    assert_true(compared > (int)random_volume(ROUNDS, 10) * 2);
}

/* Of a recording that does not have the frees, nothing is known. */
static void test_older(void **state)
{
    (void)state;
    sqlite3 *db = scratch_db("older.db");
    struct inherited *in = NULL;
    struct blocks live;
    struct instant at;
    struct error err = {""};
    make(db, INT64_MAX);
    scratch_sql(db, "UPDATE meta SET value = 'own' WHERE key = 'forked_heap'");
    instant_end(&at);
    assert_int_equal(live_blocks_load(db, &at, "the test", &live, &in, &err), 0);
    assert_null(in);
    free(live.slots);
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies), cmocka_unit_test(test_older)};
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
