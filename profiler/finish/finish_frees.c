/* Frees that matched no live block: a block that is freed twice is one whose address was last that of a block that was
 * freed. The events say so, from the newest of them that came before. */
#include "finish_private.h"

#include "../../common/chunk.h"

#include <errno.h>
#include <stdlib.h>

#define FREES_MAX  64u /* unmatched_free has no more rows */
#define MARKS_BITS 12

struct stray {
    int64_t free_id, event_number, device_id, process_id, address;
    int is_settled; /* the last event at its address was found: */
    int is_twice;   /* a free */
    int64_t site_id, freed_ns, freed_thread_id;
};

struct frees {
    sqlite3 *db;
    struct stray all[FREES_MAX];
    unsigned count, open; /* open: not settled */
    uint64_t marks[(1u << MARKS_BITS) / 64];
};

static unsigned mark_of(uint64_t address)
{
    return (unsigned)(address * 0x9E3779B97F4A7C15ull >> (64 - MARKS_BITS));
}

static int load(struct frees *f, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE, rc = db_prepare(f->db,
                                            "SELECT free_id, event_number, device_id, coalesce(process_id, 0), address "
                                            "FROM unmatched_free ORDER BY free_id LIMIT 64",
                                            &s, err);
    while (rc == 0 && f->count < FREES_MAX && (step = sqlite3_step(s)) == SQLITE_ROW) {
        struct stray *t = &f->all[f->count++];
        *t = (struct stray){.free_id = sqlite3_column_int64(s, 0),
                            .event_number = sqlite3_column_int64(s, 1),
                            .device_id = sqlite3_column_int64(s, 2),
                            .process_id = sqlite3_column_int64(s, 3),
                            .address = sqlite3_column_int64(s, 4)};
        unsigned mark = mark_of((uint64_t)t->address);
        f->marks[mark / 64] |= 1ull << mark % 64;
    }
    if (rc == 0 && step != SQLITE_DONE && step != SQLITE_ROW)
        rc = db_error(f->db, err);
    sqlite3_finalize(s);
    f->open = f->count;
    return rc;
}

static void see(struct frees *f, const struct chunk_event *e, int64_t number)
{
    unsigned mark = mark_of(e->address);
    if (!(f->marks[mark / 64] >> mark % 64 & 1))
        return;
    int is_free = e->op == CHUNK_free || e->op == CHUNK_realloc_free;
    if (!is_free && !chunk_op_is_birth(e->op))
        return;
    for (unsigned i = 0; i < f->count; i++) {
        struct stray *t = &f->all[i];
        if (t->is_settled || t->event_number <= number || (uint64_t)t->address != e->address ||
            t->process_id != e->process_id || t->device_id != e->device)
            continue;
        t->is_settled = 1;
        f->open--;
        t->is_twice = is_free;
        t->site_id = e->site_id;
        t->freed_ns = (int64_t)e->time_ns;
        t->freed_thread_id = e->thread_id;
    }
}

/* From the newest chunk back. A damaged one has no events: what it might have said is not known then. */
static int search(struct frees *f, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE,
        rc = db_prepare(f->db, "SELECT data, first_event FROM event_chunk WHERE first_event < ? ORDER BY chunk_id DESC",
                        &s, err);
    struct chunk_codec *codec = chunk_codec_open();
    if (rc == 0)
        sqlite3_bind_int64(s, 1, f->all[f->count - 1].event_number);
    while (rc == 0 && codec && f->open && (step = sqlite3_step(s)) == SQLITE_ROW) {
        const struct chunk_event *events;
        long n = chunk_decode_events(codec, sqlite3_column_blob(s, 0), (size_t)sqlite3_column_bytes(s, 0), &events);
        int64_t first = sqlite3_column_int64(s, 1);
        if (n < 0 || first < 0 || first > INT64_MAX - CHUNK_EVENTS)
            break;
        for (long i = n; i-- > 0;)
            see(f, &events[i], first + i);
    }
    if (rc == 0 && step != SQLITE_DONE && step != SQLITE_ROW)
        rc = db_error(f->db, err);
    chunk_codec_close(codec);
    sqlite3_finalize(s);
    return rc;
}

static int save(const struct frees *f, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(
        f->db, "UPDATE unmatched_free SET site_id = ?, freed_ns = ?, freed_thread_id = ? WHERE free_id = ?", &s, err);
    for (unsigned i = 0; rc == 0 && i < f->count; i++) {
        const struct stray *t = &f->all[i];
        if (!t->is_twice)
            continue;
        sqlite3_bind_int64(s, 1, t->site_id);
        sqlite3_bind_int64(s, 2, t->freed_ns);
        sqlite3_bind_int64(s, 3, t->freed_thread_id);
        sqlite3_bind_int64(s, 4, t->free_id);
        if (sqlite3_step(s) != SQLITE_DONE)
            rc = db_error(f->db, err);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return rc;
}

int finish_frees(sqlite3 *db, struct error *err)
{
    struct frees f = {.db = db};
    if (!db_int(db, "SELECT 1 FROM unmatched_free", 0)) /* a file of an older version has no such table */
        return 0;
    int rc = load(&f, err);
    if (rc == 0 && f.count)
        rc = search(&f, err);
    return rc ? rc : save(&f, err);
}
