#include "figures.h"

#include "own.h"
#include "sys.h"

enum { DEPTH_MAX = 32, PAGE = 4096, FIRST_BLOCKS = 512 };

struct block {
    uint64_t address; /* 0: free */
    uint64_t size_bytes;
    uint64_t birth; /* the thread's how manieth allocation it is */
};

struct figures {
    const struct wire_ring *ring; /* whose records are read; another one: the process forked */
    uint64_t cursor;              /* read up to here */
    uint32_t depth;               /* scopes that are open; those beyond DEPTH_MAX have no figures */
    uint32_t unknown;             /* the outermost ones of them, which began before a fork or a lost record */
    uint32_t is_lost;             /* not all records could be read */
    uint64_t alloc_count, alloc_bytes, free_count;
    struct block *blocks; /* what was allocated in a scope and lives; open addressing */
    uint64_t capacity, used;
    struct {
        uint64_t alloc_count, alloc_bytes, free_count; /* as it began */
        uint64_t live_bytes, live_count, peak_bytes;   /* of blocks of its own */
        uint32_t pauses;                               /* as it began: of another number nothing is known */
    } scope[DEPTH_MAX];
};
_Static_assert(sizeof(struct figures) <= PAGE, "one page");

static const uint8_t words_of[] = {
#define X(op, words, meaning) [WIRE_##op] = words,
#include "../wire_ops.def"
#undef X
};

/* --- blocks --- */

static uint64_t slot_of(const struct figures *f, uint64_t address)
{
    return (address >> 4) * 0x9e3779b97f4a7c15u >> 20 & (f->capacity - 1);
}

static struct block *find(const struct figures *f, uint64_t address)
{
    uint64_t slot = slot_of(f, address);
    while (f->blocks[slot].address && f->blocks[slot].address != address)
        slot = (slot + 1) & (f->capacity - 1);
    return &f->blocks[slot];
}

/* 0: no memory. */
static int grow(struct figures *f)
{
    struct block *old = f->blocks;
    uint64_t old_capacity = f->capacity, capacity = old ? 2 * old_capacity : FIRST_BLOCKS;
    struct block *blocks = own_map(capacity * sizeof *blocks);
    if (!blocks)
        return 0;
    f->blocks = blocks;
    f->capacity = capacity;
    for (uint64_t i = 0; old && i < old_capacity; i++)
        if (old[i].address)
            *find(f, old[i].address) = old[i];
    if (old)
        own_unmap(old, old_capacity * sizeof *old);
    return 1;
}

static void forget_blocks(struct figures *f)
{
    if (f->blocks)
        own_unmap(f->blocks, f->capacity * sizeof *f->blocks);
    f->blocks = NULL;
    f->capacity = f->used = 0;
}

/* What comes behind the slot moves up, so that searches need not step over holes. */
static void take_out(struct figures *f, struct block *block)
{
    uint64_t mask = f->capacity - 1, hole = (uint64_t)(block - f->blocks);
    for (uint64_t i = (hole + 1) & mask; f->blocks[i].address; i = (i + 1) & mask) {
        uint64_t home = slot_of(f, f->blocks[i].address);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            f->blocks[hole] = f->blocks[i];
            hole = i;
        }
    }
    f->blocks[hole].address = 0;
    f->used--;
}

/* --- records --- */

static unsigned scopes(const struct figures *f)
{
    return f->depth < DEPTH_MAX ? f->depth : DEPTH_MAX;
}

/* A block belongs to the scopes that were open at its birth, and still are: from the outermost one on. */
static void died(struct figures *f, uint64_t address)
{
    struct block *block = f->capacity ? find(f, address) : NULL;
    if (!block || !block->address)
        return;
    for (unsigned i = 0; i < scopes(f) && block->birth > f->scope[i].alloc_count; i++) {
        f->scope[i].live_bytes -= block->size_bytes;
        f->scope[i].live_count--;
    }
    take_out(f, block);
}

static void born(struct figures *f, uint64_t address, uint64_t size_bytes)
{
    died(f, address); /* freed by another thread, or its free was not seen */
    f->alloc_count++;
    f->alloc_bytes += size_bytes;
    if (f->used * 2 >= f->capacity && !grow(f)) {
        f->is_lost = 1;
        return;
    }
    *find(f, address) = (struct block){address, size_bytes, f->alloc_count};
    f->used++;
    for (unsigned i = 0; i < scopes(f); i++) {
        f->scope[i].live_count++;
        f->scope[i].live_bytes += size_bytes;
        if (f->scope[i].live_bytes > f->scope[i].peak_bytes)
            f->scope[i].peak_bytes = f->scope[i].live_bytes;
    }
}

static void read_record(struct figures *f, const struct thread *t, uint64_t at, uint64_t word1)
{
    const uint64_t mask = WIRE_RING_WORDS - 1, *w = t->words;
    switch (WIRE_OP(word1)) {
    case WIRE_ALLOC:
        born(f, WIRE_A(word1), w[(at + 2) & mask] >> 32);
        break;
    case WIRE_ALLOC_BIG:
        born(f, WIRE_A(word1), w[(at + 3) & mask]);
        break;
    case WIRE_REALLOC:
        f->free_count++;
        died(f, WIRE_A(word1));
        born(f, w[(at + 4) & mask] & WIRE_A_MASK, w[(at + 3) & mask]);
        break;
    case WIRE_FREE:
        f->free_count++;
        died(f, WIRE_A(word1));
        break;
    default:
        break;
    }
}

static void catch_up(struct figures *f, const struct thread *t)
{
    const uint64_t head = t->head;
    while (f->cursor != head && !f->is_lost) {
        uint64_t word1 = t->words[(f->cursor + 1) & (WIRE_RING_WORDS - 1)], left = head - f->cursor;
        unsigned op = WIRE_OP(word1);
        uint64_t words = op < sizeof words_of ? words_of[op] : 1;
        if (!words)
            words = word1 >> 32 & 0xffff;
        if (words < 2 || words > left) {
            f->is_lost = 1;
            return;
        }
        read_record(f, t, f->cursor, word1);
        f->cursor += words;
    }
}

void figures_keep_up(struct thread *t, int has_room)
{
    struct figures *f = t->figures;
    if (!f->depth || f->is_lost)
        return;
    if (!has_room || f->ring != t->ring || t->limit - f->cursor > WIRE_RING_WORDS)
        f->is_lost = 1; /* the last: a signal handler's records alone, which are left for the next call */
    else if (t->depth == 1 && !t->writing)
        catch_up(f, t);
}

/* --- scopes --- */

/* Anew, from here on. */
static void start(struct figures *f, const struct thread *t)
{
    forget_blocks(f);
    f->ring = t->ring;
    f->cursor = t->head;
    f->unknown = f->depth;
    f->is_lost = 0;
}

void figures_begin(struct thread *t)
{
    struct figures *f = t->figures ? t->figures : (t->figures = sys_map(PAGE));
    if (!f)
        return;
    if (f->depth && f->ring == t->ring)
        catch_up(f, t);
    if (!f->depth || f->ring != t->ring || f->is_lost)
        start(f, t);
    if (f->depth < DEPTH_MAX) {
        f->scope[f->depth].pauses = __atomic_load_n(&process.control->pauses, __ATOMIC_RELAXED);
        f->scope[f->depth].alloc_count = f->alloc_count;
        f->scope[f->depth].alloc_bytes = f->alloc_bytes;
        f->scope[f->depth].free_count = f->free_count;
        f->scope[f->depth].live_bytes = f->scope[f->depth].live_count = f->scope[f->depth].peak_bytes = 0;
    }
    f->depth++;
}

void figures_end(struct thread *t)
{
    struct figures *f = t->figures;
    if (!f || !f->depth)
        return;
    if (f->depth > 1 && f->ring == t->ring)
        catch_up(f, t); /* what follows is the outer scopes' alone */
    f->depth--;
    f->unknown = f->unknown < f->depth ? f->unknown : f->depth;
    if (!f->depth && f->capacity > FIRST_BLOCKS)
        forget_blocks(f);
}

int figures_ask(struct thread *t, struct figures_scope *scope)
{
    struct figures *f = t->figures;
    if (!f || !f->depth || f->depth > DEPTH_MAX || f->depth <= f->unknown || f->ring != t->ring)
        return 0;
    catch_up(f, t);
    const unsigned i = f->depth - 1;
    const uint32_t pauses = __atomic_load_n(&process.control->pauses, __ATOMIC_RELAXED);
    *scope = (struct figures_scope){
        .alloc_count = f->alloc_count - f->scope[i].alloc_count,
        .alloc_bytes = f->alloc_bytes - f->scope[i].alloc_bytes,
        .free_count = f->free_count - f->scope[i].free_count,
        .live_bytes = f->scope[i].live_bytes,
        .live_count = f->scope[i].live_count,
        .peak_bytes = f->scope[i].peak_bytes,
    };
    return !thin.is_on && !f->is_lost && !(pauses & 1) && pauses == f->scope[i].pauses;
}

void figures_close(struct thread *t)
{
    struct figures *f = t->figures;
    if (!f)
        return;
    t->figures = NULL;
    forget_blocks(f);
    sys_unmap(f, PAGE);
}
