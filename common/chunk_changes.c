/* The reader for who only wants to know what was live: neither times nor addresses are unpacked or followed. */
#include "chunk_model.h"

#include <errno.h>

#define COLUMN_BITS(column) (0xfull << (S_COLUMNS + (column)*COLUMN_STREAMS))
#define WANTED                                                                                                         \
    (1ull << S_TABLE | 1ull << S_CODE | 1ull << S_THREAD | 1ull << S_THREAD_HIGH | COLUMN_BITS(C_SITE) |               \
     COLUMN_BITS(C_SIZE) | COLUMN_BITS(C_MATCH) | COLUMN_BITS(C_NEW_SITE) | COLUMN_BITS(C_OTHER_SITE) |                \
     COLUMN_BITS(C_OTHER_SIZE))
_Static_assert(COLUMN_STREAMS == 4, "as COLUMN_BITS has it");

/* m->position: the change of the n-th allocation */
static inline int birth(struct chunk_events_state *m, struct column *c, uint32_t t, uint32_t index,
                        struct chunk_change *change)
{
    struct thread_model *th = &m->thread[t];
    uint32_t before = th->site, local;
    uint64_t size;
    if (get_site(m, &c[C_SITE], &c[C_NEW_SITE], m->site[before].next_local, &local) != 0)
        return -1;
    m->site[before].next_local = th->site = local;
    struct site_model *s = &m->site[local];
    if (get_size(&c[C_SIZE], s->size, &size) != 0)
        return -1;
    s->size = size;
    *change = (struct chunk_change){s->site_id, local, (int64_t)size};
    model_link(m, index, t);
    return 0;
}

static inline int other(struct chunk_events_state *m, struct column *c, struct chunk_change *change)
{
    uint32_t local;
    uint64_t size;
    if (get_site(m, &c[C_OTHER_SITE], &c[C_NEW_SITE], m->last_other_site, &local) != 0 ||
        get_size(&c[C_OTHER_SIZE], m->site[local].size, &size) != 0)
        return -1;
    m->last_other_site = local;
    *change = (struct chunk_change){m->site[local].site_id, local, -(int64_t)size};
    return 0;
}

static inline int death(struct chunk_events_state *m, struct column *c, uint32_t t, struct chunk_change *changes,
                        struct chunk_change *change)
{
    uint64_t value;
    uint32_t n;
    if (column_get(&c[C_MATCH], &value) != 0)
        return -1;
    if (value == MATCH_NONE)
        return other(m, c, change);
    if (model_matched(m, t, value, &n) != 0)
        return -1;
    const struct chunk_change *born = &changes[m->position[n]];
    *change = (struct chunk_change){born->site_id, born->site_number, -born->bytes};
    model_unlink(m, n, &m->thread[t]);
    return 0;
}

static long read_changes(struct chunk_codec *codec, struct chunk_events_state *m, struct reader *r, size_t count,
                         struct chunk_change *changes)
{
    static const uint8_t columns[] = {C_SITE, C_SIZE, C_MATCH, C_NEW_SITE, C_OTHER_SITE, C_OTHER_SIZE};
    const uint8_t *code = codec->streams[S_CODE].data;
    const uint8_t *low = r->thread_count > 1 ? codec->streams[S_THREAD].data : NULL;
    const uint8_t *high = r->thread_count > 256 ? codec->streams[S_THREAD_HIGH].data : NULL;
    uint32_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t t = (low ? low[i] : 0u) | (high ? (uint32_t)high[i] << 8 : 0u);
        if (code[i] >= r->code_count || t >= r->thread_count)
            return -1;
        unsigned op = r->codes[code[i] * 4];
        int failed = is_birth(op)   ? birth(m, r->c, t, kept, &changes[kept])
                     : is_death(op) ? death(m, r->c, t, changes, &changes[kept])
                                    : other(m, r->c, &changes[kept]);
        if (failed)
            return -1;
        kept += is_birth(op) || chunk_op_is_loss(op);
    }
    for (unsigned i = 0; i < sizeof columns; i++)
        if (!column_is_read(&r->c[columns[i]]))
            return -1;
    return kept;
}

long chunk_decode_changes(struct chunk_codec *codec, const void *data, size_t length,
                          const struct chunk_change **changes)
{
    struct chunk_events_state *m = chunk_model_begin(codec);
    if (!m)
        return -ENOMEM;
    long count = frame_unpack(codec, CHUNK_EVENTS_MAGIC, CHUNK_EVENTS, S_COUNT, WANTED, data, length);
    if (count < 0)
        return count;
    struct chunk_change *rows = codec_room(codec, (size_t)count, sizeof *rows);
    if (!rows)
        return -ENOMEM;
    struct reader r;
    long kept = read_table(codec, m, &r, (size_t)count) == 0 ? read_changes(codec, m, &r, (size_t)count, rows) : -1;
    *changes = rows;
    return kept < 0 ? -EBADMSG : kept;
}
