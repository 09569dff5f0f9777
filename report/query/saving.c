#include "saving.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/search.h"
#include "../../common/wrap.h"

#include <errno.h>
#include <stdlib.h>

enum { CHANGES_MAX = 1 << 23, CHUNKS_READ_MAX = 256 };

void saving_leave_out(struct saving *s, int64_t bytes)
{
    wrap_change(&s->left_out_bytes, (uint64_t)(bytes > 0 ? bytes : 0));
}

void saving_add(struct saving *s, int64_t from, int64_t until, int64_t bytes)
{
    if (from >= until || bytes == 0)
        return;
    if (s->change_count + 2 > CHANGES_MAX) {
        saving_leave_out(s, bytes);
        return;
    }
    *ARRAY_ADD(s->changes, s->change_count, s->change_capacity) = (struct saving_change){from, bytes};
    if (until != PASS_END)
        *ARRAY_ADD(s->changes, s->change_count, s->change_capacity) =
            (struct saving_change){until, wrap_subtract(0, bytes)};
}

void saving_close(struct saving *s)
{
    free(s->changes);
    *s = (struct saving){0};
}

/* Of one event those that make it less come first. */
static int by_event(const void *a, const void *b)
{
    const struct saving_change *x = a, *y = b;
    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

struct search {
    const struct saving *saving;
    const struct pass *pass;
    const struct pass_level *level;
    int64_t *bound; /* by bucket: what it is not above; exact where is_read */
    int64_t *less;  /* by bucket: what is saved where it begins */
    uint8_t *is_read;
    struct chunk_codec *codec;
    sqlite3_stmt *data;
};

/* The first change at an event or behind it. */
static size_t change_from(const struct saving *s, int64_t event)
{
    const size_t low = SEARCH_FIRST(s->change_count, i, s->changes[i].event < event);
    return low;
}

/* The highest of a bucket less the least that is saved anywhere in it. */
static void bound_all(struct search *s)
{
    const struct saving *all = s->saving;
    size_t next = 0;
    int64_t less = 0;
    for (uint32_t b = 0; b < s->pass->bucket_count; b++) {
        int64_t end = b + 1 < s->pass->bucket_count ? s->pass->buckets[b + 1].first_event : PASS_END, least = less;
        s->less[b] = less;
        for (; next < all->change_count && all->changes[next].event < end; next++) {
            wrap_change(&less, (uint64_t)all->changes[next].bytes);
            least = less < least ? less : least;
        }
        s->bound[b] = s->level->most[b];
        wrap_change(&s->bound[b], -(uint64_t)least);
    }
}

/* Where several changes are of one event, all of them have come before it is looked at. */
static void read_bucket(struct search *s, uint32_t bucket, const struct chunk_event *events, const struct pass_chunk *c,
                        int64_t *active)
{
    const struct saving *all = s->saving;
    int64_t first = s->pass->buckets[bucket].first_event, end = c->first_event + c->event_count;
    int64_t less = s->less[bucket];
    size_t next = change_from(all, first);
    if (bucket + 1 < s->pass->bucket_count && s->pass->buckets[bucket + 1].first_event < end)
        end = s->pass->buckets[bucket + 1].first_event;
    s->bound[bucket] = INT64_MIN;
    for (int64_t number = first; number < end; number++) {
        const struct chunk_event *e = &events[number - c->first_event];
        int is_birth = chunk_op_is_birth(e->op);
        for (; next < all->change_count && all->changes[next].event <= number; next++)
            wrap_change(&less, (uint64_t)all->changes[next].bytes);
        if (e->device == s->level->device_id && (is_birth || chunk_op_is_loss(e->op)))
            wrap_change(active, is_birth ? e->size_bytes : -e->size_bytes);
        int64_t now = *active;
        wrap_change(&now, -(uint64_t)less);
        if (now > s->bound[bucket])
            s->bound[bucket] = now;
    }
    s->is_read[bucket] = 1;
}

static int read_chunk(struct search *s, uint32_t number, struct error *err)
{
    const struct pass_chunk *c = &s->pass->chunks[number];
    const struct chunk_event *events;
    sqlite3_bind_int64(s->data, 1, c->chunk_id);
    const void *data = sqlite3_step(s->data) == SQLITE_ROW ? sqlite3_column_blob(s->data, 0) : NULL;
    long count = data ? chunk_decode_events(s->codec, data, (size_t)sqlite3_column_bytes(s->data, 0), &events) : -1;
    int64_t active = s->level->start[number];
    uint32_t bucket = 0;
    while (bucket < s->pass->bucket_count && s->pass->buckets[bucket].chunk < number)
        bucket++;
    for (; count == c->event_count && bucket < s->pass->bucket_count && s->pass->buckets[bucket].chunk == number;
         bucket++)
        read_bucket(s, bucket, events, c, &active);
    sqlite3_reset(s->data);
    return count == c->event_count ? 0
                                   : error_set(err, EBADMSG, "%s: chunk %lld of the events cannot be read again",
                                               sqlite3_db_filename(s->pass->db, "main"), (long long)c->chunk_id);
}

/* The highest bound, once it is no bound any more. */
static int find(struct search *s, int64_t *highest, int *is_exact, struct error *err)
{
    for (int read = 0;; read++) {
        uint32_t top = 0;
        for (uint32_t b = 1; b < s->pass->bucket_count; b++)
            if (s->bound[b] > s->bound[top])
                top = b;
        *highest = s->bound[top];
        *is_exact = s->is_read[top];
        if (*is_exact || read == CHUNKS_READ_MAX)
            return 0;
        int rc = read_chunk(s, s->pass->buckets[top].chunk, err);
        if (rc)
            return rc;
    }
}

/* Less what was saved where the peak was it cannot be lower. */
static int64_t most_saved(const struct saving *s, int64_t peak_event)
{
    int64_t less = s->left_out_bytes;
    for (size_t i = 0; i < s->change_count && s->changes[i].event <= peak_event; i++)
        wrap_change(&less, (uint64_t)s->changes[i].bytes);
    return less;
}

int saving_measure(struct saving *saving, const struct pass *pass, int64_t device_id, struct saving_result *result,
                   struct error *err)
{
    struct search s = {.saving = saving, .pass = pass, .level = pass_level_of(pass, device_id)};
    int64_t highest = 0;
    int rc;
    *result = (struct saving_result){.is_exact = 1};
    if (!s.level || !pass->bucket_count)
        return 0;
    if (saving->change_count)
        qsort(saving->changes, saving->change_count, sizeof *saving->changes, by_event);
    s.bound = xcalloc(pass->bucket_count, sizeof *s.bound);
    s.less = xcalloc(pass->bucket_count, sizeof *s.less);
    s.is_read = xcalloc(pass->bucket_count, sizeof *s.is_read);
    s.codec = chunk_codec_open();
    bound_all(&s);
    rc = db_prepare(pass->db, "SELECT data FROM event_chunk WHERE chunk_id = ?", &s.data, err);
    if (rc == 0)
        rc = find(&s, &highest, &result->is_exact, err);
    result->peak_bytes = s.level->peak_bytes;
    result->least_bytes = result->peak_bytes;
    wrap_change(&result->least_bytes, highest > 0 ? -(uint64_t)highest : 0);
    result->most_bytes = result->least_bytes;
    result->is_exact &= saving->left_out_bytes == 0;
    if (!result->is_exact)
        result->most_bytes = most_saved(saving, s.level->peak_event);
    sqlite3_finalize(s.data);
    chunk_codec_close(s.codec);
    free(s.bound);
    free(s.less);
    free(s.is_read);
    return rc;
}
