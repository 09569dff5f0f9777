#include "account_run.h"

#include "../../common/kind.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

sqlite3 *account_db;

void account_run_open(struct account_run *r, const struct account_options *options)
{
    struct error err;
    if (store_create(scratch_path("account.db"), &r->store, &err) != 0)
        fail_msg("%s", err.text);
    account_db = store_db(r->store);
    sqlite3_exec(account_db,
                 "INSERT OR IGNORE INTO device(device_id, name, total_bytes) VALUES(0,'host',NULL),(1,'cuda:0',NULL)",
                 NULL, NULL, NULL);
    r->account = account_open(r->store, options);
}

void account_run_close(struct account_run *r)
{
    struct error err;
    account_close(r->account);
    if (store_close(r->store, &err) != 0)
        fail_msg("%s", err.text);
    unlink(scratch_path("account.db"));
}

void account_feed(struct account_run *r, struct event *e, size_t count, unsigned device)
{
    for (size_t i = 0; i < count; i++) {
        e[i].process_id = e[i].thread_id = 1;
        e[i].device = (uint8_t)device;
        if (!e[i].kind)
            e[i].kind = device ? KIND_pool : KIND_heap;
    }
    account_events(r->account, e, count);
}

int64_t account_query(const char *format, ...)
{
    char sql[1024];
    va_list args;
    sqlite3_stmt *s;
    va_start(args, format);
    vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    if (sqlite3_prepare_v2(account_db, sql, -1, &s, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(account_db));
    int64_t value = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    sqlite3_finalize(s);
    return value;
}

const void *account_blob(sqlite3_stmt *s, int column, size_t *length)
{
    *length = (size_t)sqlite3_column_bytes(s, column);
    return sqlite3_column_blob(s, column);
}

struct chunk_event *account_kept_events(size_t *count, size_t *chunk_count)
{
    struct chunk_codec *codec = chunk_codec_open();
    struct chunk_event *all = NULL;
    sqlite3_stmt *s;
    *count = *chunk_count = 0;
    sqlite3_prepare_v2(account_db, "SELECT data FROM event_chunk ORDER BY chunk_id", -1, &s, NULL);
    for (; sqlite3_step(s) == SQLITE_ROW; ++*chunk_count) {
        const struct chunk_event *e;
        long n = chunk_decode_events(codec, sqlite3_column_blob(s, 0), (size_t)sqlite3_column_bytes(s, 0), &e);
        assert_true(n > 0);
        all = realloc(all, (*count + (size_t)n) * sizeof *all);
        memcpy(all + *count, e, (size_t)n * sizeof *e);
        *count += (size_t)n;
    }
    sqlite3_finalize(s);
    chunk_codec_close(codec);
    return all;
}

void account_rebuild(uint64_t event_count, struct account_held *held)
{
    struct chunk_codec *codec = chunk_codec_open();
    char sql[300];
    sqlite3_stmt *s;
    size_t length;
    uint64_t at;
    snprintf(sql, sizeof sql,
             "SELECT event_count, data FROM keyframe WHERE reason='periodic' AND event_count <= %lu ORDER BY "
             "event_count DESC LIMIT 1",
             (unsigned long)event_count);
    assert_int_equal(sqlite3_prepare_v2(account_db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    const struct chunk_live *live;
    const void *data = account_blob(s, 1, &length);
    long n = chunk_decode_live(codec, data, length, &live);
    assert_true(n >= 0);
    at = (uint64_t)sqlite3_column_int64(s, 0);
    for (long i = 0; i < n; i++)
        held[live[i].site_id] = (struct account_held){(int64_t)live[i].live_bytes, (int64_t)live[i].live_count};
    sqlite3_finalize(s);
    snprintf(sql, sizeof sql,
             "SELECT event_count, data, site_delta FROM event_chunk WHERE first_event >= %lu ORDER BY "
             "chunk_id",
             (unsigned long)at);
    assert_int_equal(sqlite3_prepare_v2(account_db, sql, -1, &s, NULL), SQLITE_OK);
    while (at < event_count && sqlite3_step(s) == SQLITE_ROW) {
        uint64_t count = (uint64_t)sqlite3_column_int64(s, 0);
        if (at + count <= event_count) {
            const struct chunk_delta *deltas;
            data = account_blob(s, 2, &length);
            n = chunk_decode_deltas(codec, data, length, &deltas);
            assert_true(n >= 0);
            for (long i = 0; i < n; i++) {
                held[deltas[i].site_id].bytes += (int64_t)(deltas[i].alloc_bytes - deltas[i].free_bytes);
                held[deltas[i].site_id].count += (int64_t)deltas[i].alloc_count - deltas[i].free_count;
            }
            at += count;
            continue;
        }
        const struct chunk_event *events;
        data = account_blob(s, 1, &length);
        assert_int_equal(chunk_decode_events(codec, data, length, &events), count);
        for (; at < event_count; at++, events++) {
            struct account_held *h = &held[events->site_id];
            int64_t size = (int64_t)events->size_bytes;
            if (events->op == CHUNK_alloc || events->op == CHUNK_realloc_alloc)
                *h = (struct account_held){h->bytes + size, h->count + 1};
            else if (chunk_op_is_death(events->op))
                *h = (struct account_held){h->bytes - size, h->count - 1};
            else if (events->op == CHUNK_cut)
                h->bytes -= size;
            else if (events->op == CHUNK_end)
                *h = (struct account_held){h->bytes - size, h->count - (int64_t)events->address};
        }
    }
    sqlite3_finalize(s);
    chunk_codec_close(codec);
    assert_int_equal(at, event_count);
}
