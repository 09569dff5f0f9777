#include "held.h"

#include "../../common/array.h"
#include "../../common/chunk.h"
#include "../../common/db.h"
#include "../../common/map.h"

#include <errno.h>
#include <stdlib.h>

struct held {
    struct chunk_codec *codec;
    const int64_t *times_ns;
    int count, next; /* instants; those before next were taken */
    held_take *take;
    void *arg;
    struct held_site *sites;
    uint32_t site_count, site_capacity;
    struct map site_of; /* by id, in sites */
};

/* Unsigned: what is damaged may wrap. */
static void change(struct held *h, uint32_t site_id, uint64_t bytes)
{
    uint32_t number = map_number_or(&h->site_of, site_id, 0, h->site_count);
    if (number == h->site_count)
        *ARRAY_ADD(h->sites, h->site_count, h->site_capacity) = (struct held_site){site_id, 0};
    h->sites[number].bytes = (int64_t)((uint64_t)h->sites[number].bytes + bytes);
}

/* The instants before a time. */
static int take_before(struct held *h, int64_t time_ns)
{
    int rc = 0;
    while (rc == 0 && h->next < h->count && h->times_ns[h->next] < time_ns) {
        rc = h->take(h->arg, h->next, h->sites, h->site_count);
        h->next++;
    }
    return rc;
}

static int read_deltas(struct held *h, const void *data, size_t length)
{
    const struct chunk_delta *deltas;
    long n = data ? chunk_decode_deltas(h->codec, data, length, &deltas) : -EBADMSG;
    for (long i = 0; i < n; i++)
        if (deltas[i].alloc_bytes != deltas[i].free_bytes)
            change(h, deltas[i].site_id, deltas[i].alloc_bytes - deltas[i].free_bytes);
    return n < 0 ? -ENODATA : 0;
}

static int read_events(struct held *h, const void *data, size_t length)
{
    const struct chunk_event *events;
    long n = data ? chunk_decode_events(h->codec, data, length, &events) : -EBADMSG;
    int rc = n < 0 ? -ENODATA : 0;
    for (long i = 0; rc == 0 && i < n; i++) {
        const struct chunk_event *e = &events[i];
        if (h->next < h->count && h->times_ns[h->next] < (int64_t)e->time_ns)
            rc = take_before(h, (int64_t)e->time_ns);
        if (e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc)
            change(h, e->site_id, e->size_bytes);
        else if (chunk_op_is_loss(e->op))
            change(h, e->site_id, -e->size_bytes);
    }
    return rc;
}

static int read_chunks(struct held *h, sqlite3_stmt *s, struct error *err)
{
    int64_t expected = 0;
    int rc = 0;
    while (h->next < h->count && db_next(s, &rc, err)) {
        int64_t last_ns = sqlite3_column_int64(s, 1), events = sqlite3_column_int64(s, 2);
        if (sqlite3_column_int64(s, 3) != expected || events < 0 || __builtin_add_overflow(expected, events, &expected))
            return -ENODATA;
        rc = take_before(h, sqlite3_column_int64(s, 0));
        if (rc == 0 && h->next < h->count) {
            /* the larger column is read only where it is wanted */
            const int column = h->times_ns[h->next] < last_ns ? 5 : 4;
            const void *data = sqlite3_column_blob(s, column);
            size_t length = (size_t)sqlite3_column_bytes(s, column);
            rc = column == 5 ? read_events(h, data, length) : read_deltas(h, data, length);
        }
        if (rc)
            return rc;
    }
    return rc ? rc : expected ? take_before(h, INT64_MAX) : -ENODATA;
}

int held_at(sqlite3 *db, const int64_t *times_ns, int count, held_take *take, void *arg, struct error *err)
{
    struct held h = {.codec = chunk_codec_open(), .times_ns = times_ns, .count = count, .take = take, .arg = arg};
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT first_ns, last_ns, event_count, first_event, site_delta, data FROM event_chunk "
                        "ORDER BY chunk_id",
                        &s, err);
    if (rc == 0)
        rc = read_chunks(&h, s, err);
    sqlite3_finalize(s);
    chunk_codec_close(h.codec);
    map_close(&h.site_of);
    free(h.sites);
    return rc;
}
