/*
 * The events of a chunk. Writer and reader step the same model of what an allocator does, so that most events say only
 * "as expected": the site that followed last time, the size that the site had last time, the address that was freed
 * last in that size class, the free of the newest block. docs/format.md has the rules.
 */
#include "chunk_model.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

static void dict_clear(struct dict *d)
{
    for (uint32_t i = 0; i < d->count; i++)
        d->slots[d->slot_of[i]] = 0;
    d->count = 0;
}

/* The number of key, from 0; a new key gets the next one. */
static inline uint32_t dict_number(struct dict *d, uint64_t key)
{
    uint32_t slot = (uint32_t)(key * 0x9E3779B97F4A7C15ull >> 32) & (SLOTS - 1);
    for (;; slot = (slot + 1) & (SLOTS - 1)) {
        uint32_t n = d->slots[slot];
        if (!n)
            break;
        if (d->keys[n - 1] == key)
            return n - 1;
    }
    d->keys[d->count] = key;
    d->slot_of[d->count] = slot;
    d->slots[slot] = d->count + 1;
    return d->count++;
}

void chunk_events_state_free(struct chunk_events_state *state)
{
    if (state)
        munmap(state, sizeof *state);
}

struct chunk_events_state *chunk_model_begin(struct chunk_codec *codec)
{
    struct chunk_events_state *m = codec->events;
    if (!m) {
        /* calloc writes zeros into all of it where it was used before, and a small chunk needs little of it. */
        m = mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (m == MAP_FAILED)
            return NULL;
        codec->events = m;
    }
    dict_clear(&m->sites);
    dict_clear(&m->threads);
    dict_clear(&m->codes);
    m->site[0] = (struct site_model){0};
    m->site_count = m->last_other_site = m->thread_count = m->alloc_count = 0;
    memset(m->bins, 0, sizeof m->bins);
    return m;
}

/* What glibc takes for a block of this size; other allocators are near enough. */
static inline uint64_t class_bytes(uint64_t size)
{
    return size <= 24 ? 32 : (size + 23) & ~15ull;
}

static inline uint32_t *model_bin(struct chunk_events_state *m, uint32_t t, uint64_t size)
{
    uint64_t key = class_bytes(size) >> 4 ^ (uint64_t)t << 32;
    return &m->bins[key * 0x9E3779B97F4A7C15ull >> 52];
}

/* The event whose freed address is expected to be handed out now; NONE when there is no such. */
static inline uint32_t model_expected(struct chunk_events_state *m, uint32_t t, int op, uint32_t *bin)
{
    if (op == CHUNK_realloc_alloc && m->thread[t].pending != NONE)
        return m->thread[t].pending;
    return *bin ? *bin - 1 : NONE;
}

/* A block is born: event index of thread t. */
static inline void model_alloc(struct chunk_events_state *m, uint32_t index, const struct chunk_event *e, uint32_t t,
                               uint32_t *bin)
{
    struct thread_model *th = &m->thread[t];
    if (e->op == CHUNK_realloc_alloc && th->pending != NONE) {
        th->pending = NONE; /* moved or not: the old place is not offered, real programs rarely get it next */
    } else if (*bin) {
        *bin = m->link[*bin - 1]; /* a wrong guess goes too, lest it stays on top for ever */
    }
    th->next_address = e->address + class_bytes(e->size_bytes);
    model_link(m, index, t);
}

static inline void model_free(struct chunk_events_state *m, uint32_t index, const struct chunk_event *e, uint32_t t)
{
    struct thread_model *th = &m->thread[t];
    if (e->op == CHUNK_realloc_free) {
        th->pending = index;
        return;
    }
    uint32_t *bin = model_bin(m, t, e->size_bytes);
    m->link[index] = *bin;
    *bin = index + 1;
}

/* --- writing --- */

static inline __attribute__((always_inline)) void put_address(struct column *c, uint64_t address, uint64_t expected)
{
    uint64_t d = address - expected;
    if (!(d & 15)) {
        column_put(c, ADDRESS_NEAR + zigzag((uint64_t)((int64_t)d >> 4)));
    } else {
        column_put(c, ADDRESS_ODD);
        column_put(c, zigzag(d));
    }
}

static inline __attribute__((always_inline)) void put_site(struct chunk_events_state *m, struct column *c,
                                                           struct column *new_site, uint32_t site_id, uint32_t expected,
                                                           uint32_t *local)
{
    if (expected && m->site[expected].site_id == site_id) {
        column_put(c, SITE_EXPECTED);
        *local = expected;
        return;
    }
    uint32_t count = m->sites.count, n = dict_number(&m->sites, site_id) + 1;
    *local = n;
    if (n > count) {
        column_put(c, SITE_NEW);
        column_put(new_site, zigzag((uint64_t)site_id - m->site[m->site_count].site_id));
        model_add_site(m, site_id);
    } else {
        column_put(c, SITE_KNOWN + (uint64_t)n);
    }
}

static inline __attribute__((always_inline)) void
put_birth(struct chunk_events_state *m, struct column *c, const struct chunk_event *events, uint32_t index, uint32_t t)
{
    const struct chunk_event *e = &events[index];
    struct thread_model *th = &m->thread[t];
    uint32_t before = th->site, local;
    put_site(m, &c[C_SITE], &c[C_NEW_SITE], e->site_id, m->site[before].next_local, &local);
    m->site[before].next_local = th->site = local;
    struct site_model *s = &m->site[local];
    column_put(&c[C_SIZE], e->size_bytes == s->size ? 0 : e->size_bytes + 1);
    s->size = e->size_bytes;
    uint32_t *bin = model_bin(m, t, e->size_bytes), expected = model_expected(m, t, e->op, bin);
    int hit = expected != NONE && events[expected].address == e->address;
    if (hit)
        column_put(&c[C_ADDRESS], ADDRESS_EXPECTED);
    else
        put_address(&c[C_ADDRESS], e->address, th->next_address);
    m->ordinal[index] = m->alloc_count;
    model_alloc(m, index, e, t, bin);
}

/* Site, size and address as such. */
static inline __attribute__((always_inline)) void put_other(struct chunk_events_state *m, struct column *c,
                                                            const struct chunk_event *e, uint32_t t)
{
    uint32_t local;
    put_site(m, &c[C_OTHER_SITE], &c[C_NEW_SITE], e->site_id, m->last_other_site, &local);
    m->last_other_site = local;
    column_put(&c[C_OTHER_SIZE], e->size_bytes == m->site[local].size ? 0 : e->size_bytes + 1);
    put_address(&c[C_OTHER_ADDRESS], e->address, m->thread[t].other_address);
    m->thread[t].other_address = e->address + class_bytes(e->size_bytes);
}

static inline __attribute__((always_inline)) void
put_death(struct chunk_events_state *m, struct column *c, const struct chunk_event *events, uint32_t index, uint32_t t)
{
    const struct chunk_event *e = &events[index], *born = &events[e->match];
    struct thread_model *th = &m->thread[t];
    uint32_t n;
    if (e->match < index && is_birth(born->op) && born->address == e->address && born->size_bytes == e->size_bytes &&
        born->site_id == e->site_id && is_live_node(m, n = m->ordinal[e->match])) {
        uint32_t newest = model_newest(m, t);
        column_put(&c[C_MATCH], n == newest                ? MATCH_NEWEST
                                : n == th->cursor_next     ? MATCH_NEXT
                                : n == th->cursor_previous ? MATCH_PREVIOUS
                                                           : MATCH_AGE + (uint64_t)(m->alloc_count - n));
        model_unlink(m, n, th);
    } else {
        column_put(&c[C_MATCH], MATCH_NONE);
        put_other(m, c, e, t);
    }
    model_free(m, index, e, t);
}

static int put_table(struct chunk_codec *codec, const struct chunk_events_state *m, uint64_t first_ns)
{
    struct stream *s = &codec->streams[S_TABLE];
    uint32_t codes = m->codes.count, threads = m->threads.count;
    if (stream_reserve(s, 16 + codes * 4ull + threads * 6ull) != 0)
        return -ENOMEM;
    uint8_t *p = s->data;
    memcpy(p, &first_ns, 8);
    memcpy(p + 8, &codes, 4);
    memcpy(p + 12, &threads, 4);
    p += 16;
    for (uint32_t i = 0; i < codes; i++, p += 4)
        memcpy(p, &m->codes.keys[i], 4);
    for (uint32_t i = 0; i < threads; i++, p += 6) {
        uint64_t key = m->threads.keys[i]; /* its low 6 bytes: thread, process */
        memcpy(p, &key, 6);
    }
    s->length = (size_t)(p - s->data);
    if (threads <= 1)
        codec->streams[S_THREAD].length = 0;
    if (threads <= 256)
        codec->streams[S_THREAD_HIGH].length = 0;
    return 0;
}

static int begin_write(struct chunk_codec *codec, struct column c[C_COUNT], size_t count)
{
    for (unsigned i = S_CODE; i < S_COLUMNS; i++)
        if (stream_reserve(&codec->streams[i], count + 1) != 0)
            return -ENOMEM;
    /* times two: an odd address is two values */
    for (unsigned i = 0; i < C_COUNT; i++)
        if (column_begin_write(&c[i], &codec->streams[S_COLUMNS + i * COLUMN_STREAMS], count * 2) != 0)
            return -ENOMEM;
    return 0;
}

/* As in chunk_events_state.threads: thread and process lie beside each other. */
_Static_assert(offsetof(struct chunk_event, process_id) == offsetof(struct chunk_event, thread_id) + 4 &&
                   offsetof(struct chunk_event, op) == offsetof(struct chunk_event, process_id) + 2 &&
                   offsetof(struct chunk_event, kind) == offsetof(struct chunk_event, op) + 3,
               "numbers made of neighbours");
static inline uint64_t event_thread(const struct chunk_event *e)
{
    uint64_t key;
    memcpy(&key, (const char *)e + offsetof(struct chunk_event, thread_id), sizeof key);
    return key & 0xffffffffffff;
}

struct event_streams {
    uint8_t *code, *thread, *thread_high;
};

/* The number of a thread, as yet unknown or another than that of the event before; index: of the event. */
static uint32_t find_thread(struct chunk_events_state *m, const struct event_streams *s, uint64_t key, uint32_t index)
{
    uint32_t thread = dict_number(&m->threads, key);
    if (thread < m->thread_count)
        return thread;
    model_add_thread(m);
    if (thread == 1) /* up to here all events were the first one's */
        memset(s->thread, 0, index);
    else if (thread == 256)
        memset(s->thread_high, 0, index);
    return thread;
}

static int put_events(struct chunk_codec *codec, struct chunk_events_state *m, struct column columns[C_COUNT],
                      const struct chunk_event *events, size_t count)
{
    uint64_t before_ns = count ? events[0].time_ns : 0, sizes = 0, thread_key = UINT64_MAX;
    uint32_t tuple = UINT32_MAX, tuple_number = 0, thread = 0;
    const struct event_streams s = {codec->streams[S_CODE].data, codec->streams[S_THREAD].data,
                                    codec->streams[S_THREAD_HIGH].data};
    /* A copy whose address nobody has: else all of it would be read again after every byte that is written. */
    struct column c[C_COUNT];
    memcpy(c, columns, sizeof c);
    for (uint32_t i = 0; i < count; i++) {
        const struct chunk_event *e = &events[i];
        uint32_t t;
        memcpy(&t, (const char *)e + offsetof(struct chunk_event, op), sizeof t); /* tuple */
        if (e->time_ns < before_ns)
            return -EFBIG;
        if (t != tuple) {
            tuple_number = dict_number(&m->codes, t);
            tuple = t;
            if (tuple_number >= CHUNK_TUPLES)
                return -EFBIG;
        }
        s.code[i] = (uint8_t)tuple_number;
        uint64_t key = event_thread(e);
        if (key != thread_key) {
            thread_key = key;
            thread = find_thread(m, &s, key, i);
        }
        if (m->thread_count > 1) {
            s.thread[i] = (uint8_t)thread;
            if (m->thread_count > 256)
                s.thread_high[i] = (uint8_t)(thread >> 8);
        }
        column_put_mixed(&c[C_TIME], e->time_ns - before_ns);
        before_ns = e->time_ns;
        sizes |= e->size_bytes;
        if (is_birth(e->op))
            put_birth(m, c, events, i, thread);
        else if (is_death(e->op))
            put_death(m, c, events, i, thread);
        else
            put_other(m, c, e, thread);
    }
    if (before_ns > INT64_MAX || sizes > INT64_MAX)
        return -EFBIG;
    memcpy(columns, c, sizeof c);
    for (unsigned i = S_CODE; i <= S_THREAD_HIGH; i++)
        codec->streams[i].length = count;
    for (unsigned i = 0; i < C_COUNT; i++)
        column_end_write(&columns[i], &codec->streams[S_COLUMNS + i * COLUMN_STREAMS]);
    return put_table(codec, m, count ? events[0].time_ns : 0);
}

int chunk_encode_events(struct chunk_codec *codec, const struct chunk_event *events, size_t count, struct buf *out)
{
    struct column columns[C_COUNT];
    struct chunk_events_state *m = count > CHUNK_EVENTS ? NULL : chunk_model_begin(codec);
    if (!m)
        return count > CHUNK_EVENTS ? -EFBIG : -ENOMEM;
    int rc = begin_write(codec, columns, count);
    if (rc == 0)
        rc = put_events(codec, m, columns, events, count);
    return rc ? rc : frame_pack(codec, CHUNK_EVENTS_MAGIC, count, S_COUNT, CHUNK_EVENTS_NOISE, out);
}

/* --- reading --- */

static inline int get_address(struct column *c, uint64_t value, uint64_t expected, uint64_t *address)
{
    uint64_t odd;
    if (value >= ADDRESS_NEAR) {
        *address = expected + (unzigzag(value - ADDRESS_NEAR) << 4);
        return 0;
    }
    if (value != ADDRESS_ODD || column_get(c, &odd) != 0)
        return -1;
    *address = expected + unzigzag(odd);
    return 0;
}

static inline int get_birth(struct chunk_events_state *m, struct column *c, struct chunk_event *events, uint32_t index,
                            uint32_t t)
{
    struct chunk_event *e = &events[index];
    struct thread_model *th = &m->thread[t];
    uint32_t before = th->site, local;
    uint64_t value;
    if (get_site(m, &c[C_SITE], &c[C_NEW_SITE], m->site[before].next_local, &local) != 0)
        return -1;
    m->site[before].next_local = th->site = local;
    struct site_model *s = &m->site[local];
    e->site_id = s->site_id;
    if (get_size(&c[C_SIZE], s->size, &e->size_bytes) != 0 || column_get(&c[C_ADDRESS], &value) != 0)
        return -1;
    s->size = e->size_bytes;
    uint32_t *bin = model_bin(m, t, e->size_bytes), expected = model_expected(m, t, e->op, bin);
    if (value == ADDRESS_EXPECTED) {
        if (expected == NONE)
            return -1;
        e->address = events[expected].address;
    } else if (get_address(&c[C_ADDRESS], value, th->next_address, &e->address) != 0) {
        return -1;
    }
    model_alloc(m, index, e, t, bin);
    return 0;
}

static inline int get_other(struct chunk_events_state *m, struct column *c, struct chunk_event *e, uint32_t t)
{
    uint32_t local;
    uint64_t value;
    if (get_site(m, &c[C_OTHER_SITE], &c[C_NEW_SITE], m->last_other_site, &local) != 0)
        return -1;
    m->last_other_site = local;
    e->site_id = m->site[local].site_id;
    if (get_size(&c[C_OTHER_SIZE], m->site[local].size, &e->size_bytes) != 0 ||
        column_get(&c[C_OTHER_ADDRESS], &value) != 0 ||
        get_address(&c[C_OTHER_ADDRESS], value, m->thread[t].other_address, &e->address) != 0)
        return -1;
    m->thread[t].other_address = e->address + class_bytes(e->size_bytes);
    return 0;
}

static inline int get_death(struct chunk_events_state *m, struct column *c, struct chunk_event *events, uint32_t index,
                            uint32_t t)
{
    struct chunk_event *e = &events[index];
    struct thread_model *th = &m->thread[t];
    uint64_t value;
    uint32_t n;
    if (column_get(&c[C_MATCH], &value) != 0)
        return -1;
    if (value == MATCH_NONE) {
        if (get_other(m, c, e, t) != 0)
            return -1;
        model_free(m, index, e, t);
        return 0;
    }
    if (model_matched(m, t, value, &n) != 0)
        return -1;
    const struct chunk_event *born = &events[m->position[n]];
    e->address = born->address;
    e->size_bytes = born->size_bytes;
    e->site_id = born->site_id;
    e->match = (uint16_t)m->position[n];
    model_unlink(m, n, th);
    model_free(m, index, e, t);
    return 0;
}

static int read_events(struct chunk_codec *codec, struct chunk_events_state *m, struct reader *r, size_t count,
                       struct chunk_event *events)
{
    const uint8_t *code = codec->streams[S_CODE].data;
    const uint8_t *low = r->thread_count > 1 ? codec->streams[S_THREAD].data : NULL;
    const uint8_t *high = r->thread_count > 256 ? codec->streams[S_THREAD_HIGH].data : NULL;
    uint64_t time_ns = r->first_ns, step;
    for (uint32_t i = 0; i < count; i++) {
        struct chunk_event *e = &events[i];
        uint32_t t = (low ? low[i] : 0u) | (high ? (uint32_t)high[i] << 8 : 0u);
        if (code[i] >= r->code_count || t >= r->thread_count || column_get(&r->c[C_TIME], &step) != 0 ||
            __builtin_add_overflow(time_ns, step, &time_ns) || time_ns > INT64_MAX)
            return -1;
        const uint8_t *tuple = r->codes + code[i] * 4;
        e->time_ns = time_ns;
        e->op = tuple[0];
        e->hook = tuple[1];
        e->device = tuple[2];
        e->kind = tuple[3];
        memcpy(&e->thread_id, r->threads + t * 6ull, 4);
        memcpy(&e->process_id, r->threads + t * 6ull + 4, 2);
        e->match = 0;
        int failed = is_birth(e->op)   ? get_birth(m, r->c, events, i, t)
                     : is_death(e->op) ? get_death(m, r->c, events, i, t)
                                       : get_other(m, r->c, e, t);
        if (failed)
            return -1;
    }
    for (unsigned i = 0; i < C_COUNT; i++)
        if (!column_is_read(&r->c[i]))
            return -1;
    return 0;
}

long chunk_decode_events(struct chunk_codec *codec, const void *data, size_t length, const struct chunk_event **events)
{
    struct chunk_events_state *m = chunk_model_begin(codec);
    if (!m)
        return -ENOMEM;
    long count = frame_unpack(codec, CHUNK_EVENTS_MAGIC, CHUNK_EVENTS, S_COUNT, FRAME_ALL, data, length);
    if (count < 0)
        return count;
    struct chunk_event *rows = codec_room(codec, (size_t)count, sizeof *rows);
    if (!rows)
        return -ENOMEM;
    struct reader r;
    if (read_table(codec, m, &r, (size_t)count) != 0 || read_events(codec, m, &r, (size_t)count, rows) != 0)
        return -EBADMSG;
    *events = rows;
    return count;
}

long chunk_decode_ops(struct chunk_codec *codec, const void *data, size_t length)
{
    const struct stream *table = &codec->streams[S_TABLE];
    uint32_t count;
    long ops = 0;
    int rc = frame_unpack_first(codec, CHUNK_EVENTS_MAGIC, S_COUNT, data, length);
    if (rc)
        return rc;
    if (table->length < 16)
        return -EBADMSG;
    memcpy(&count, table->data + 8, 4);
    if (count > CHUNK_TUPLES || table->length < 16 + count * 4ull)
        return -EBADMSG;
    for (uint32_t i = 0; i < count; i++) {
        unsigned op = table->data[16 + i * 4ull];
        if (op >= CHUNK_OP_COUNT)
            return -EBADMSG;
        ops |= 1l << op;
    }
    return ops;
}
