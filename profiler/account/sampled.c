#include "sampled.h"

#include "../../common/array.h"
#include "../../common/sample_weight.h"
#include "../store/store.h"
#include "event.h"
#include "site.h"

#include <stdlib.h>

uint32_t sampled_site(struct sampled *s, struct site_table *sites, const struct event *e)
{
    uint64_t size_bytes = e->size_bytes ? e->size_bytes : 1;
    uint64_t *place = map_slot(&s->sites, e->stack_id, size_bytes);
    if (*place)
        return (uint32_t)*place;
    uint32_t id = site_add(sites, e->stack_id, e->process_id, e->device, e->kind);
    *place = id;
    ARRAY_ROOM_ZERO(s->of, id + 1ul, s->capacity);
    const double weight = sample_weight(size_bytes, s->mean_bytes);
    s->of[id] = (struct sample){.size_bytes = size_bytes,
                                .bytes = sample_bytes(size_bytes, s->mean_bytes),
                                .whole = (uint64_t)weight,
                                .fraction = sample_fraction(weight)};
    *ARRAY_ADD(s->written, s->written_count, s->written_capacity) = id;
    return id;
}

void sampled_write(struct sampled *s, struct store *store)
{
    for (uint32_t i = 0; i < s->written_count; i++) {
        sqlite3_stmt *q = store_statement(store, "INSERT INTO site_sample VALUES(?, ?, ?, ?)");
        if (!q)
            return;
        const struct sample *sample = &s->of[s->written[i]];
        sqlite3_bind_int64(q, 1, s->written[i]);
        sqlite3_bind_int64(q, 2, (int64_t)sample->size_bytes);
        sqlite3_bind_double(q, 3, sample_count_spread(sample_weight(sample->size_bytes, s->mean_bytes)));
        sqlite3_bind_int64(q, 4, (int64_t)(sample->bytes - sample->size_bytes));
        store_step(store, q);
    }
    s->written_count = 0;
}

void sampled_close(struct sampled *s)
{
    map_close(&s->sites);
    free(s->of);
    free(s->written);
}
