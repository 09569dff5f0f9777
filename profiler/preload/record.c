#include "record.h"

#include "python/python.h"
#include "real.h"

#include <malloc.h>

/* --- room --- */

/* Kept free by all but nested records: a signal handler may write between a hook's check for room and its record. */
#define NESTED_WORDS      4096u
#define HEAP_WORDS_WALKED 500000u /* in one interval of samples (10 ms): 40 ns a chunk, two words each */

static uint64_t capacity(const struct thread *t)
{
    return t->depth > 1 ? WIRE_RING_WORDS - WIRE_RECORD_MAX : WIRE_RING_WORDS - NESTED_WORDS;
}

static void wake_collector(void)
{
    uint32_t *sleeping = &process.control->sleeping;
    if (__atomic_load_n(sleeping, __ATOMIC_RELAXED) && __atomic_exchange_n(sleeping, 0, __ATOMIC_ACQ_REL))
        sys_futex_wake(sleeping);
}

static void wait_for_collector(struct thread *t, uint64_t words)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    uint64_t next_check_ns = 100000000;
    for (unsigned round = 0; thread_owns_ring(t); round++) {
        uint64_t tail = __atomic_load_n(&t->ring->tail, __ATOMIC_ACQUIRE);
        if (t->head + words - tail <= capacity(t))
            break;
        wake_collector();
        if (__atomic_load_n(&process.control->state, __ATOMIC_RELAXED) != WIRE_STATE_ON) {
            process_off();
            break;
        }
        if (round < 64)
            __builtin_ia32_pause();
        else
            sys_sleep_ns(20000);
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t waited_ns =
            (uint64_t)(now.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)now.tv_nsec - (uint64_t)begin.tv_nsec;
        if (waited_ns > next_check_ns) {
            next_check_ns += 100000000;
            if (!wire_collector_lives(process.control)) {
                process_off();
                break;
            }
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    COUNT(wait_count, 1);
    COUNT(wait_ns,
          (uint64_t)(now.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)now.tv_nsec - (uint64_t)begin.tv_nsec);
}

static int disowned(void)
{
    process_disowned();
    return 0;
}

int record_room_slow(struct thread *t, uint64_t words)
{
    const uint64_t eighth = WIRE_RING_WORDS / 8;
    if (!thread_owns_ring(t))
        return disowned();
    uint64_t tail = __atomic_load_n(&t->ring->tail, __ATOMIC_ACQUIRE);
    if (t->head - tail > eighth)
        wake_collector();
    if (t->head + words - tail > capacity(t)) {
        if (t->depth > 1 || t->writing) {
            COUNT(lost_event, 1);
            return 0;
        }
        wait_for_collector(t, words);
        if (!thread_owns_ring(t))
            return disowned();
        tail = __atomic_load_n(&t->ring->tail, __ATOMIC_ACQUIRE);
        if (t->head + words - tail > capacity(t)) {
            COUNT(lost_event, 1);
            return 0;
        }
    }
    /* come back here at each eighth of the ring, to wake a sleeping collector in time */
    uint64_t limit = t->head + words + eighth;
    uint64_t most = tail + WIRE_RING_WORDS - NESTED_WORDS;
    t->limit = limit > most ? most : limit;
    return 1;
}

/* --- stacks --- */

/* Ids of stacks by their hash: a list of tables, each four times the size of the one before; a look-up starts at the
 * newest. An entry's hash is taken with compare and swap; its id is 0 until its definition was written to a ring, so
 * that no event with the id can be ordered before the definition. Two threads may define one stack twice: the collector
 * sees that they are the same. */
struct stack_entry {
    uint64_t hash; /* 0: free */
    uint32_t id;
    uint32_t fill;
};

#define TABLES           10
#define TABLE_FIRST_BITS 12
#define TABLE_HUGE_BYTES (4ul << 20) /* tables from here on take huge pages: they are touched all over soon */
static struct stack_table {
    struct stack_entry *entries;
    uint32_t count;
} tables[TABLES];
static uint32_t table_newest;
static uint32_t stack_ids;

static struct stack_entry *table_entries(unsigned k)
{
    struct stack_entry *e = __atomic_load_n(&tables[k].entries, __ATOMIC_ACQUIRE);
    if (e)
        return e;
    size_t bytes = sizeof *e << (TABLE_FIRST_BITS + 2 * k);
    e = bytes < TABLE_HUGE_BYTES ? sys_map(bytes) : sys_map_huge(bytes);
    struct stack_entry *expected = NULL;
    if (!e) {
        COUNT(map_refused, 1);
    } else if (!__atomic_compare_exchange_n(&tables[k].entries, &expected, e, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        sys_unmap(e, bytes);
        e = expected;
    }
    return e;
}

static inline uint32_t table_find(unsigned k, uint64_t hash)
{
    struct stack_entry *e = __atomic_load_n(&tables[k].entries, __ATOMIC_ACQUIRE);
    unsigned bits = TABLE_FIRST_BITS + 2 * k;
    if (!e)
        return 0;
    for (size_t i = hash >> (64 - bits);; i = (i + 1) & ((1ul << bits) - 1)) {
        uint64_t h = __atomic_load_n(&e[i].hash, __ATOMIC_RELAXED);
        if (likely(h == hash))
            return __atomic_load_n(&e[i].id, __ATOMIC_ACQUIRE);
        if (!h)
            return 0;
    }
}

static void table_insert(uint64_t hash, uint32_t id)
{
    unsigned k = __atomic_load_n(&table_newest, __ATOMIC_ACQUIRE);
    struct stack_entry *e = table_entries(k);
    if (!e)
        return; /* the stack is defined again when it comes back */
    unsigned bits = TABLE_FIRST_BITS + 2 * k;
    uint32_t count = __atomic_add_fetch(&tables[k].count, 1, __ATOMIC_RELAXED);
    if (count > (1u << bits) / 2 && k + 1 < TABLES) {
        unsigned expected = k;
        if (table_entries(k + 1))
            __atomic_compare_exchange_n(&table_newest, &expected, k + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
    if (count > (1u << bits) / 8 * 7)
        return;
    for (size_t i = hash >> (64 - bits);; i = (i + 1) & ((1ul << bits) - 1)) {
        uint64_t none = 0;
        if (__atomic_compare_exchange_n(&e[i].hash, &none, hash, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
            none == hash) {
            __atomic_store_n(&e[i].id, id, __ATOMIC_RELEASE);
            return;
        }
    }
}

static __attribute__((noinline)) uint32_t stack_older(uint64_t hash)
{
    for (unsigned k = __atomic_load_n(&table_newest, __ATOMIC_ACQUIRE); k-- > 0;) {
        uint32_t id = table_find(k, hash);
        if (id) {
            table_insert(hash, id); /* stacks in use move to the newest table */
            return id;
        }
    }
    return 0;
}

static uint32_t stack_define(struct thread *t, const struct unwind_stack *stack, const uint64_t *addresses)
{
    uint32_t words = stack->depth + 2;
    if (!record_room(t, words))
        return 0;
    uint32_t id = __atomic_add_fetch(&stack_ids, 1, __ATOMIC_RELAXED);
    uint64_t stamp = record_begin(t);
    uint64_t at = record_reserve(t, words);
    record_word(t, at, stamp);
    record_word(t, at + 1, (uint64_t)WIRE_STACK << 56 | (uint64_t)stack->flags << 48 | (uint64_t)words << 32 | id);
    for (uint32_t i = 0; i < stack->depth; i++)
        record_word(t, at + 2 + i, addresses[i]);
    record_end(t);
    table_insert(stack->hash, id);
    return id;
}

/* Whether the thread has its buffers. They are gone once its end was announced; new ones would never be given back. */
static inline __attribute__((always_inline)) int has_memory(struct thread *t)
{
    return likely(t->unwind != NULL) || (t->ring->state != WIRE_RING_CLOSING && thread_memory(t));
}

static __attribute__((noinline)) uint32_t stack_nested(struct thread *t, struct unwind_state s)
{
    struct unwind_stack stack;
    if (!has_memory(t))
        return 0;
    unwind_nested(t->unwind, s, &stack);
    uint32_t id = table_find(table_newest, stack.hash);
    if (!id)
        id = stack_older(stack.hash);
    if (!id) {
        unwind_nested_addresses(t->unwind, t->addresses + WIRE_STACK_MAX);
        id = stack_define(t, &stack, t->addresses + WIRE_STACK_MAX);
    }
    return id;
}

static __attribute__((noinline)) uint32_t stack_new(struct thread *t, const struct unwind_stack *stack)
{
    uint32_t id = stack_older(stack->hash);
    if (!id) {
        unwind_addresses(t->unwind, t->addresses);
        id = stack_define(t, stack, t->addresses);
    }
    return id;
}

/* --- Python --- */

/* Code ids stand in the same tables as stack ids, by hashes of their own. */
static uint32_t code_ids;

struct python_work {
    struct python_frame frames[WIRE_STACK_MAX];
    uint64_t sps[WIRE_STACK_MAX];
    uint64_t joined[WIRE_STACK_MAX];
    struct python_memory memory;
};

struct code_part {
    const unsigned char *data;
    uint64_t bytes;
};

static uint64_t padded(uint64_t bytes)
{
    return (bytes + 7) / 8;
}

/* Word `at` of the parts one after the other. */
static uint64_t code_word(const struct code_part *parts, unsigned count, uint64_t at)
{
    uint64_t word = 0;
    for (unsigned i = 0; i < count; i++) {
        uint64_t words = padded(parts[i].bytes);
        if (at >= words) {
            at -= words;
            continue;
        }
        for (uint64_t k = at * 8; k < at * 8 + 8 && k < parts[i].bytes; k++)
            word |= (uint64_t)parts[i].data[k] << (8 * (k & 7));
        break;
    }
    return word;
}

static uint32_t text_count(const struct python_text *text)
{
    return text->count < WIRE_CODE_TEXT_MAX ? text->count : WIRE_CODE_TEXT_MAX;
}

/* 0: no room. */
static int code_write(struct thread *t, uint32_t id, const struct python_code *code)
{
    struct wire_code head = {
        .minor = code->minor,
        .first_line = code->first_line,
        .name = {code->name.kind, text_count(&code->name)},
        .qualified_name = {code->qualified_name.kind, text_count(&code->qualified_name)},
        .file = {code->file.kind, text_count(&code->file)},
        .table = {1, code->table.count},
    };
    struct code_part parts[] = {
        {(const unsigned char *)&head, sizeof head},
        {code->name.data, (uint64_t)head.name.count * head.name.character_bytes},
        {code->qualified_name.data, (uint64_t)head.qualified_name.count * head.qualified_name.character_bytes},
        {code->file.data, (uint64_t)head.file.count * head.file.character_bytes},
        {code->table.data, head.table.count},
    };
    uint64_t words = 0;
    for (unsigned i = 0; i < 4; i++)
        words += padded(parts[i].bytes);
    if (head.table.count > (WIRE_CODE_WORDS_MAX - words) * 8)
        parts[4].bytes = head.table.count = (uint32_t)(WIRE_CODE_WORDS_MAX - words) * 8;
    words += padded(parts[4].bytes);
    for (uint64_t before = 0; before < words;) {
        unsigned part = words - before < WIRE_CODE_PART ? (unsigned)(words - before) : WIRE_CODE_PART;
        if (!record_room(t, part + 3))
            return 0;
        uint64_t stamp = record_begin(t);
        uint64_t at = record_reserve(t, part + 3);
        record_word(t, at, stamp);
        record_word(t, at + 1, (uint64_t)WIRE_CODE << 56 | (uint64_t)(part + 3) << 32 | id);
        record_word(t, at + 2, before << 32 | words);
        for (unsigned i = 0; i < part; i++)
            record_word(t, at + 3 + i, code_word(parts, 5, before + i));
        record_end(t);
        before += part;
    }
    return 1;
}

/* 0: no room for its definition. */
static uint32_t code_id(struct thread *t, const struct python_frame *frame)
{
    uint64_t hash = frame->print * 0xd6e8feb86659fd93ull ^ 0x436f6465; /* far from the hash of any stack */
    hash ^= hash >> 32;
    hash += !hash;
    uint32_t id = table_find(__atomic_load_n(&table_newest, __ATOMIC_ACQUIRE), hash);
    if (!id)
        id = stack_older(hash);
    if (id)
        return id;
    struct python_code code;
    id = PYTHON_NO_CODE;
    if (python_code_read(frame->code, &code)) {
        id = __atomic_add_fetch(&code_ids, 1, __ATOMIC_RELAXED) & 0x7fffffff;
        if (!code_write(t, id, &code))
            return 0;
    }
    table_insert(hash, id);
    return id;
}

static __attribute__((noinline)) uint32_t stack_new_mixed(struct thread *t, struct unwind_state s,
                                                          const struct unwind_stack *native, uint64_t hash)
{
    uint32_t id = stack_older(hash);
    if (id)
        return id;
    if (!t->python && !(t->python = sys_map(sizeof *t->python))) {
        COUNT(map_refused, 1);
        return 0;
    }
    struct python_work *w = t->python;
    unsigned most = process.control->depth_max;
    int is_cut = 0;
    unsigned count = python_frames(w->frames, most, &is_cut);
    for (unsigned i = 0; i < count; i++)
        if (!(w->frames[i].id = code_id(t, &w->frames[i])))
            return 0;
    unwind_addresses(t->unwind, t->addresses);
    unwind_pointers(t->unwind, s, w->sps);
    struct unwind_stack joined = {.hash = hash, .flags = native->flags};
    joined.depth = python_join(t->addresses, w->sps, native->depth, w->frames, count, w->joined, most, &is_cut);
    if (is_cut)
        joined.flags |= WIRE_STACK_CUT;
    return stack_define(t, &joined, w->joined);
}

/* The native stack's id, when one is kept, is not this one's: the same native frames run any Python. */
static __attribute__((noinline)) uint32_t stack_mixed(struct thread *t, struct unwind_state s,
                                                      const struct unwind_stack *native, uint64_t python)
{
    uint64_t hash = (native->hash ^ python >> 29 ^ python << 35) * 0x9fb21c651e98df25ull;
    hash ^= hash >> 32;
    hash += !hash;
    if (hash == t->python_hash && t->python_id)
        return t->python_id;
    uint32_t id = table_find(__atomic_load_n(&table_newest, __ATOMIC_ACQUIRE), hash);
    if (unlikely(!id))
        id = stack_new_mixed(t, s, native, hash);
    t->python_id = 0; /* never a hash with another one's id, wherever a signal handler looks */
    barrier();
    t->python_hash = hash;
    barrier();
    t->python_id = id;
    return id;
}

static inline __attribute__((always_inline)) uint32_t stack_id(struct thread *t, struct unwind_state s)
{
    if (!has_memory(t))
        return 0;
    struct unwind_stack stack;
    unwind_stack(t->unwind, s, &stack);
    if (unlikely(python_loaded)) {
        uint64_t python = python_hash(t->python ? &t->python->memory : NULL, process.control->depth_max);
        if (python)
            return stack_mixed(t, s, &stack, python);
    }
    if (stack.id && *stack.id)
        return *stack.id;
    uint32_t id = table_find(__atomic_load_n(&table_newest, __ATOMIC_ACQUIRE), stack.hash);
    if (unlikely(!id))
        id = stack_new(t, &stack);
    if (stack.id)
        *stack.id = id;
    return id;
}

int record_is_arena(const struct thread *t, struct unwind_state s, size_t length)
{
    return unlikely(python_loaded) && t->unwind &&
           python_takes_arena(s.pc, length, &(t->depth > 1 ? &t->unwind->nested : &t->unwind->walk)->careful.work);
}

void record_unmap_python(struct python_work *work)
{
    sys_unmap(work, sizeof *work);
}

uint32_t record_stack(struct thread *t, struct unwind_state s)
{
    return unlikely(t->depth > 1) ? stack_nested(t, s) : stack_id(t, s);
}

void record_forget_stacks(int ids_go_on)
{
    for (unsigned k = 0; k < TABLES; k++) {
        if (tables[k].entries)
            sys_unmap(tables[k].entries, sizeof(struct stack_entry) << (TABLE_FIRST_BITS + 2 * k));
        tables[k] = (struct stack_table){NULL, 0};
    }
    table_newest = 0;
    self.python_id = 0;
    if (!ids_go_on)
        stack_ids = 0;
}

/* --- records --- */

static __attribute__((noinline)) void sample_if_due(struct thread *t, uint64_t stamp)
{
    uint64_t due = __atomic_load_n(&process.heap_sample_due, __ATOMIC_RELAXED);
    /* other threads stay out for a second, not for ever: this one may be left by longjmp */
    uint64_t later = stamp + 100 * process.heap_sample_interval;
    if (t->depth == 1 && t->writing == 0 && stamp >= due &&
        __atomic_compare_exchange_n(&process.heap_sample_due, &due, later, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        record_heap_sample(t);
}

static inline __attribute__((always_inline)) uint64_t write_alloc(struct thread *t, uint32_t stack, const void *p,
                                                                  size_t size_bytes, unsigned hook)
{
    uint64_t stamp;
    if (likely(size_bytes <= UINT32_MAX)) {
        if (!record_room(t, 3))
            return 0;
        stamp = record_begin(t);
        uint64_t at = record_reserve(t, 3);
        record_word(t, at, stamp);
        record_word(t, at + 1, WIRE_WORD1(WIRE_ALLOC, hook, (uint64_t)p));
        record_word(t, at + 2, (uint64_t)size_bytes << 32 | stack);
    } else {
        if (!record_room(t, 4))
            return 0;
        stamp = record_begin(t);
        uint64_t at = record_reserve(t, 4);
        record_word(t, at, stamp);
        record_word(t, at + 1, WIRE_WORD1(WIRE_ALLOC_BIG, hook, (uint64_t)p));
        record_word(t, at + 2, stack);
        record_word(t, at + 3, size_bytes);
    }
    record_end(t);
    return stamp;
}

void record_alloc_nested(struct thread *t, struct unwind_state s, const void *p, size_t size_bytes, unsigned hook)
{
    uint32_t stack = stack_nested(t, s);
    write_alloc(t, stack, p, size_bytes, hook);
}

void record_alloc_plain(struct thread *t, struct unwind_state s, const void *p, size_t size_bytes, unsigned hook)
{
    uint64_t stamp = write_alloc(t, stack_id(t, s), p, size_bytes, hook);
    if (unlikely(stamp >= __atomic_load_n(&process.heap_sample_due, __ATOMIC_RELAXED)))
        sample_if_due(t, stamp);
}

void record_words(struct thread *t, const uint64_t *words_from_1, unsigned count)
{
    if (!record_room(t, count))
        return;
    uint64_t stamp = record_begin(t);
    uint64_t at = record_reserve(t, count);
    record_word(t, at, stamp);
    for (unsigned i = 1; i < count; i++)
        record_word(t, at + i, words_from_1[i - 1]);
    record_end(t);
}

void record_oom(struct thread *t, struct unwind_state s, size_t size_bytes, unsigned hook)
{
    uint64_t words[] = {WIRE_WORD1(WIRE_OOM, hook, 12), record_stack(t, s), size_bytes};
    record_words(t, words, 4);
}

/* What a walk over the heap takes: as long as the last one, and longer where nobody looked for a while, which is when a
 * thread does nothing but free: each block it freed may be a chunk more to visit. */
static uint64_t walk_cost(const struct thread *t, uint64_t now)
{
    struct heap_walk *w = &process.heap_walk;
    uint64_t interval = process.heap_sample_interval;
    uint64_t known = t == w->thread && t->head >= w->head ? w->head : 0;
    uint64_t guess = (t->head - known) * (interval / HEAP_WORDS_WALKED);
    if (now - w->sampled > 4 * interval && guess > w->cost)
        w->cost = guess;
    return w->cost;
}

/* mallinfo2 walks every free chunk of every arena, so there are at least fifty times what it takes between two calls:
 * at most 2 % whatever the heap looks like. In between, the break says how the first arena grows and shrinks. */
__attribute__((noinline, force_align_arg_pointer)) /* libc stores aligned; the program's stack may be misaligned */
void record_heap_sample(struct thread *t)
{
    struct heap_walk *w = &process.heap_walk;
    /* mallinfo2 takes the allocator's locks: not from a signal handler that may have interrupted their holder */
    if (!process.heap_sample_interval || !real.malloc_is_libc || process.heap_locks_unsure || t->depth != 1 ||
        t->writing)
        return;
    uint64_t begin = clock_now(), top = real.sbrk ? (uint64_t)real.sbrk(0) : 0;
    uint64_t arena_bytes, mapped_bytes = w->mapped_bytes;
    if (!w->end || begin - w->end >= 50 * walk_cost(t, begin)) {
        struct mallinfo2 info = real.mallinfo2();
        arena_bytes = w->arena_bytes = info.arena;
        mapped_bytes = w->mapped_bytes = info.hblkhd;
        w->top = top;
        w->end = clock_now();
        w->cost = w->end - begin;
        w->thread = t;
        w->head = t->head;
    } else {
        arena_bytes = w->arena_bytes + (top - w->top);
        if (top < w->top && w->top - top > w->arena_bytes)
            arena_bytes = 0;
    }
    w->sampled = begin;
    uint64_t words[] = {WIRE_WORD1(WIRE_HEAP_SAMPLE, 0, 0), arena_bytes, mapped_bytes};
    record_words(t, words, 4);
    COUNT(heap_sample, 1);
    __atomic_store_n(&process.heap_sample_due, clock_now() + process.heap_sample_interval, __ATOMIC_RELEASE);
}

/* --- modules: called by the unwinder --- */

static void add_padded(struct thread *t, uint64_t *at, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = 0;
        for (size_t k = 0; k < 8 && i + k < bytes; k++)
            word |= (uint64_t)p[i + k] << (8 * k);
        record_word(t, (*at)++, word);
    }
}

int record_module_load(uint32_t number, uint64_t start, uint64_t end, uint64_t bias, const uint8_t *build_id,
                       size_t build_id_bytes, const char *path)
{
    struct thread *t = &self;
    size_t path_bytes = 0;
    while (path_bytes < WIRE_PATH_MAX && path[path_bytes])
        path_bytes++;
    if (build_id_bytes > 64)
        build_id_bytes = 0;
    unsigned words = (unsigned)(6 + (build_id_bytes + 7) / 8 + (path_bytes + 7) / 8);
    if (!t->ring || !record_room(t, words))
        return 0;
    uint64_t stamp = record_begin(t);
    uint64_t at = record_reserve(t, words);
    record_word(t, at++, stamp);
    record_word(t, at++, (uint64_t)WIRE_MODULE_LOAD << 56 | (uint64_t)words << 32 | number);
    record_word(t, at++, start);
    record_word(t, at++, end);
    record_word(t, at++, bias);
    record_word(t, at++, (uint64_t)build_id_bytes << 32 | path_bytes);
    add_padded(t, &at, build_id, build_id_bytes);
    add_padded(t, &at, path, path_bytes);
    record_end(t);
    return 1;
}

void record_module_unload(uint32_t number)
{
    struct thread *t = &self;
    if (!t->ring)
        return;
    uint64_t words[] = {WIRE_WORD1(WIRE_MODULE_UNLOAD, 0, number)};
    record_words(t, words, 2);
}
