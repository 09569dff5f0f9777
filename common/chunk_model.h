/*
 * chunk_model.h: what the writer and the readers of a chunk of events share, nobody else: the columns, the model of
 * what an allocator does that both sides step, and the reading of what does not depend on more than that.
 */
#ifndef MEMPROF_CHUNK_MODEL_H
#define MEMPROF_CHUNK_MODEL_H

#include "chunk_stream.h"
#include "kind.h"

static const char CHUNK_EVENTS_MAGIC[4] = {'M', 'P', 'C', 'E'};

enum { /* columns */
       C_TIME,
       C_SITE, /* allocations */
       C_SIZE,
       C_ADDRESS,
       C_MATCH,      /* frees: which block */
       C_NEW_SITE,   /* ids of sites that the chunk did not name before */
       C_OTHER_SITE, /* frees of older blocks, and all other events */
       C_OTHER_SIZE,
       C_OTHER_ADDRESS,
       C_COUNT
};

enum { S_TABLE, S_CODE, S_THREAD, S_THREAD_HIGH, S_COLUMNS, S_COUNT = S_COLUMNS + C_COUNT * COLUMN_STREAMS };

/* The streams of times between events (stream_pack) */
#define CHUNK_EVENTS_NOISE (((1ull << COLUMN_STREAMS) - 1) << (S_COLUMNS + C_TIME * COLUMN_STREAMS))

#define SLOTS (2 * CHUNK_EVENTS)
#define NONE  UINT32_MAX
#define BINS  4096u

enum { SITE_EXPECTED = 0, SITE_NEW = 1, SITE_KNOWN = 1 }; /* SITE_KNOWN + n: the n-th of the chunk, n from 1 */
enum { ADDRESS_EXPECTED = 0, ADDRESS_ODD = 1, ADDRESS_NEAR = 2 };
enum {
    MATCH_NONE = 0,
    MATCH_NEWEST = 1,
    MATCH_NEXT = 2,
    MATCH_PREVIOUS = 3,
    MATCH_AGE = 3
}; /* MATCH_AGE + age, age from 1 */

/* Distinct keys in order of appearance. The writer finds a key's number through the slots. */
struct dict {
    uint32_t count;
    uint64_t keys[CHUNK_EVENTS];
    uint32_t slot_of[CHUNK_EVENTS];
    uint32_t slots[SLOTS]; /* number + 1; 0: empty */
};

struct site_model {
    uint64_t size;       /* of its last allocation */
    uint32_t next_local; /* the site that followed it last, in the same thread */
    uint32_t site_id;
};

struct thread_model {
    uint64_t next_address; /* where the next block is if it lies behind the last one */
    uint64_t other_address;
    uint32_t site;        /* local number of the last allocation's site */
    uint32_t cursor_next; /* neighbours of the last freed block, in the list of live blocks of its thread */
    uint32_t cursor_previous;
    uint32_t pending; /* event of a realloc's free, until its allocation; NONE */
};

struct chunk_events_state {
    struct dict sites;                        /* writer */
    struct dict threads;                      /* writer; key: process << 32 | thread */
    struct dict codes;                        /* writer; key: op | hook << 8 | device << 16 | kind << 24 */
    struct site_model site[CHUNK_EVENTS + 1]; /* by local number, from 1; 0: none before */
    struct thread_model thread[CHUNK_EVENTS];
    uint32_t site_count;
    uint32_t last_other_site; /* local */
    uint32_t thread_count;
    uint32_t alloc_count;
    uint32_t position[CHUNK_EVENTS]; /* event of the n-th allocation */
    uint32_t ordinal[CHUNK_EVENTS];  /* the reverse; writer */
    /* Doubly linked lists of the blocks born in the chunk and still live, one a thread. Nodes: n < CHUNK_EVENTS the
     * n-th allocation, CHUNK_EVENTS + t the head of thread t. next is NONE for a block that is gone. */
    struct model_node {
        uint32_t next, previous;
    } node[SLOTS];
    /* Freed addresses by thread and size class: stacks of events, as allocators reuse the last freed block first */
    uint32_t bins[BINS]; /* event + 1 */
    uint32_t link[CHUNK_EVENTS];
};

/* Empties the codec's model, made at the first call; NULL without memory. */
struct chunk_events_state *chunk_model_begin(struct chunk_codec *codec);

static inline void model_add_thread(struct chunk_events_state *m)
{
    uint32_t t = m->thread_count++, head = CHUNK_EVENTS + t;
    m->thread[t] = (struct thread_model){.cursor_next = head, .cursor_previous = head, .pending = NONE};
    m->node[head] = (struct model_node){head, head};
}

static inline uint32_t model_add_site(struct chunk_events_state *m, uint32_t site_id)
{
    m->site[++m->site_count] = (struct site_model){.site_id = site_id};
    return m->site_count;
}

/* A block is born in thread t, by event index. */
static inline void model_link(struct chunk_events_state *m, uint32_t index, uint32_t t)
{
    uint32_t n = m->alloc_count++, head = CHUNK_EVENTS + t, tail = m->node[head].previous;
    m->position[n] = index;
    m->node[n] = (struct model_node){head, tail};
    m->node[tail].next = n;
    m->node[head].previous = n;
}

static inline uint32_t model_newest(const struct chunk_events_state *m, uint32_t t)
{
    return m->node[CHUNK_EVENTS + t].previous;
}

static inline void model_unlink(struct chunk_events_state *m, uint32_t n, struct thread_model *th)
{
    uint32_t next = m->node[n].next, previous = m->node[n].previous;
    m->node[next].previous = previous;
    m->node[previous].next = next;
    m->node[n].next = NONE;
    th->cursor_next = next;
    th->cursor_previous = previous;
}

static inline int is_birth(unsigned op)
{
    return op == CHUNK_alloc || op == CHUNK_realloc_alloc;
}

static inline int is_death(unsigned op)
{
    return op == CHUNK_free || op == CHUNK_realloc_free;
}

static inline int is_live_node(const struct chunk_events_state *m, uint32_t n)
{
    return n < m->alloc_count && m->node[n].next != NONE;
}

/* --- reading --- */

struct reader {
    struct column c[C_COUNT];
    const uint8_t *codes;   /* tuples, 4 bytes each */
    const uint8_t *threads; /* 6 bytes each */
    uint32_t code_count, thread_count;
    uint64_t first_ns;
};

static inline int read_table(struct chunk_codec *codec, struct chunk_events_state *m, struct reader *r, size_t count)
{
    const struct stream *table = &codec->streams[S_TABLE];
    if (table->length < 16)
        return -1;
    memcpy(&r->first_ns, table->data, 8);
    memcpy(&r->code_count, table->data + 8, 4);
    memcpy(&r->thread_count, table->data + 12, 4);
    if (r->code_count > CHUNK_TUPLES || r->thread_count > count ||
        table->length != 16 + r->code_count * 4ull + r->thread_count * 6ull)
        return -1;
    r->codes = table->data + 16;
    r->threads = r->codes + r->code_count * 4ull;
    for (uint32_t i = 0; i < r->code_count; i++)
        if (r->codes[i * 4] >= CHUNK_OP_COUNT || r->codes[i * 4 + 3] >= KIND_COUNT)
            return -1;
    for (uint32_t i = 0; i < r->thread_count; i++)
        model_add_thread(m);
    if (codec->streams[S_CODE].length != count ||
        codec->streams[S_THREAD].length != (r->thread_count > 1 ? count : 0) ||
        codec->streams[S_THREAD_HIGH].length != (r->thread_count > 256 ? count : 0))
        return -1;
    for (unsigned i = 0; i < C_COUNT; i++)
        column_begin_read(&r->c[i], &codec->streams[S_COLUMNS + i * COLUMN_STREAMS]);
    return r->first_ns <= INT64_MAX ? 0 : -1;
}

static inline int get_site(struct chunk_events_state *m, struct column *c, struct column *new_site, uint32_t expected,
                           uint32_t *local)
{
    uint64_t value;
    if (column_get(c, &value) != 0)
        return -1;
    if (value == SITE_EXPECTED) {
        *local = expected;
    } else if (value == SITE_NEW) {
        if (column_get(new_site, &value) != 0 || m->site_count >= CHUNK_EVENTS)
            return -1;
        *local = model_add_site(m, m->site[m->site_count].site_id + (uint32_t)unzigzag(value));
    } else {
        if (value - SITE_KNOWN > m->site_count)
            return -1;
        *local = (uint32_t)(value - SITE_KNOWN);
    }
    return *local ? 0 : -1;
}

static inline int get_size(struct column *c, uint64_t expected, uint64_t *size)
{
    if (column_get(c, size) != 0)
        return -1;
    *size = *size ? *size - 1 : expected;
    return *size <= INT64_MAX ? 0 : -1;
}

/* The number of the allocation whose block a value of the column of matches means; 0 or -1. */
static inline int model_matched(const struct chunk_events_state *m, uint32_t t, uint64_t value, uint32_t *number)
{
    const struct thread_model *th = &m->thread[t];
    uint32_t n;
    if (value == MATCH_NEWEST)
        n = model_newest(m, t);
    else if (value == MATCH_NEXT)
        n = th->cursor_next;
    else if (value == MATCH_PREVIOUS)
        n = th->cursor_previous;
    else if (value - MATCH_AGE <= m->alloc_count)
        n = m->alloc_count - (uint32_t)(value - MATCH_AGE);
    else
        return -1;
    if (!is_live_node(m, n))
        return -1;
    *number = n;
    return 0;
}

#endif
