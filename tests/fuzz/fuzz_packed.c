/*
 * The packed tables on hostile rows: no crash, and what the reader gives can be used as its users do: callers lie below
 * their callees, sites of a stack ascend, looks are whole. The input is a list of rows of the table packed, whose
 * columns of numbers are encoded here, as bytes that zstd must accept first would stop a fuzzer at once; some get a
 * byte changed after.
 */
#include "../../common/packed.h"
#include "../../common/schema.h"
#include "input.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 48

static struct chunk_codec *codec;
static sqlite3 *db;
static sqlite3_stmt *insert;
static volatile uint64_t sink;

/* Small numbers mostly, as they are in sound files; and any. */
static uint64_t take_number(struct input *in)
{
    uint64_t value = input_take(in);
    if (value < 250)
        return value;
    for (uint64_t bytes = value - 248, i = 0; i < bytes + 1; i++)
        value = value << 8 | input_take(in);
    return value;
}

static void start(void)
{
    codec = chunk_codec_open();
    if (!codec || sqlite3_open(":memory:", &db) != SQLITE_OK ||
        sqlite3_exec(db, common_schema_sql, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, PACKED_INSERT, -1, &insert, NULL) != SQLITE_OK)
        abort();
}

static void add_row(struct input *in)
{
    uint64_t values[512];
    struct buf data = BUF(1 << 20);
    static const enum packed_table tables[] = {PACKED_TABLE_stack, PACKED_TABLE_site, PACKED_TABLE_resident_site,
                                               PACKED_TABLE_site};
    enum packed_table table = tables[input_take(in) & 3];
    enum packed_column column = input_take(in) % (PACKED_COLUMNS + 1);
    uint32_t part = (uint32_t)input_take(in) % 4, first = (uint32_t)take_number(in);
    uint32_t count = (uint32_t)input_take(in) * 2, said = count;
    for (uint32_t i = 0; i < count; i++)
        values[i] = take_number(in);
    if (chunk_encode_numbers(codec, values, count, &data) == 0) {
        uint64_t change = input_take(in);
        if (change == 1)
            said++;
        if (change == 2)
            data.data[take_number(in) % data.length] ^= (char)input_take(in);
        packed_bind(insert, table, part, column, first, said, &data);
        sqlite3_step(insert); /* a key that is there already is refused */
        sqlite3_reset(insert);
    }
    buf_free(&data);
}

static void read_columns(struct packed *p)
{
    const struct packed_values *values;
    for (enum packed_column c = 0; c < PACKED_COLUMNS; c++) {
        if (packed_read(p, c, &values) != 0)
            continue;
        long count = packed_count(p, packed_table_of(c));
        for (long i = 1; i <= count && i < 2000; i++)
            if (packed_at(values, (uint32_t)i) >= (uint64_t)i && c == PACKED_stack_parent_id)
                abort();
        sink += count > 0 ? packed_at(values, (uint32_t)count) : 0;
    }
}

static void read_sites(struct packed *p)
{
    for (int64_t stack = -1; stack < 20; stack++) {
        uint32_t site = 0, before = 0;
        if (packed_site_of_stack(p, stack, &site) != 0)
            return;
        for (; site; before = site, site = packed_next_site(p, site))
            if (site <= before)
                abort();
    }
}

static void read_looks(struct packed *p)
{
    long count = packed_count(p, PACKED_TABLE_resident_site);
    for (int64_t look = -1; look < 5 && count >= 0; look++) {
        uint32_t first, last;
        packed_look_rows(p, look, &first, &last);
        for (; first <= last; first++)
            if (first > count || packed_look_of(p, first) != look)
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct error err;
    const uint32_t *depths;
    if (!codec)
        start();
    for (int i = 0; i < ROWS_MOST && in.size; i++)
        add_row(&in);
    struct packed *p = packed_open(db);
    read_columns(p);
    if (packed_depths(p, &depths) == 0 && packed_count(p, PACKED_TABLE_stack) > 0)
        sink += depths[1];
    read_sites(p);
    read_looks(p);
    packed_close(p);
    if (packed_views(db, &err) == 0) {
        sqlite3_exec(db,
                     "SELECT sum(depth) FROM stack; SELECT sum(alloc_bytes), max(kind) FROM site JOIN site_line "
                     "USING(site_id); SELECT count(*) FROM site a JOIN site b USING(stack_id) WHERE a.site_id < 100;"
                     "SELECT sum(freed_bytes), count(kept_count) FROM site_teardown LEFT JOIN site_kept USING(site_id);"
                     "SELECT sum(resident_bytes), max(scan_id) FROM resident_site GROUP BY site_id;"
                     "SELECT total(untouched_bytes) FROM resident_site WHERE scan_id IN (0, 1, 2, 'x', 1.5)",
                     NULL, NULL, NULL);
        sqlite3_exec(db,
                     "DROP TABLE IF EXISTS temp.stack; DROP TABLE IF EXISTS temp.site; DROP TABLE IF EXISTS "
                     "temp.site_line; DROP TABLE IF EXISTS temp.site_teardown; DROP TABLE IF EXISTS temp.site_kept; "
                     "DROP TABLE IF EXISTS temp.resident_site",
                     NULL, NULL, NULL);
    }
    sqlite3_exec(db, "DELETE FROM packed", NULL, NULL, NULL);
    return 0;
}
