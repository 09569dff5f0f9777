#include "record_python.h"

#include "own.h"
#include "record_heap.h"
#include "record_parts.h"
#include "record_stack.h"

/* Code ids stand in the same tables as stack ids, by hashes of their own. */
static uint32_t code_ids;

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
    struct record_part parts[] = {
        {(const unsigned char *)&head, sizeof head},
        {code->name.data, (uint64_t)head.name.count * head.name.character_bytes},
        {code->qualified_name.data, (uint64_t)head.qualified_name.count * head.qualified_name.character_bytes},
        {code->file.data, (uint64_t)head.file.count * head.file.character_bytes},
        {code->table.data, head.table.count},
    };
    uint64_t words = 0;
    for (unsigned i = 0; i < 4; i++)
        words += record_part_words(parts[i].bytes);
    if (head.table.count > (WIRE_CODE_WORDS_MAX - words) * 8)
        parts[4].bytes = head.table.count = (uint32_t)(WIRE_CODE_WORDS_MAX - words) * 8;
    return record_parts(t, WIRE_CODE, id, parts, 5);
}

/* 0: no room for its definition. */
static uint32_t code_id(struct thread *t, const struct python_frame *frame)
{
    uint64_t hash = frame->print * 0xd6e8feb86659fd93ull ^ 0x436f6465; /* far from the hash of any stack */
    hash ^= hash >> 32;
    hash += !hash;
    uint32_t id = record_stack_find(hash);
    if (!id)
        id = record_stack_find_older(hash);
    if (id)
        return id;
    struct python_code code;
    id = PYTHON_NO_CODE;
    if (python_code_read(frame->code, &code)) {
        id = __atomic_add_fetch(&code_ids, 1, __ATOMIC_RELAXED) & 0x7fffffff;
        if (!code_write(t, id, &code))
            return 0;
    }
    record_stack_keep(hash, id);
    return id;
}

/* 0: no room for the definition of one of them. */
static int code_ids_ask(struct thread *t, struct python_frame *frames, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (frames[i].id)
            continue;
        if (!(frames[i].id = code_id(t, &frames[i])))
            return 0;
        if (frames[i].kept)
            *frames[i].kept = frames[i].id;
    }
    return 1;
}

/* A thread that a fork gave another ring knows nothing of what it told before: nor what code it named, nor a stack. */
static void forget_other_ring(struct thread *t, struct python_work *w)
{
    if (likely(w->ids_attached == t->attached))
        return;
    python_forget_ids(&w->memory);
    w->ids_attached = t->attached;
    w->seam.native_count = 0;
}

static __attribute__((noinline)) uint32_t stack_new_mixed(struct thread *t, struct unwind_state s,
                                                          const struct unwind_stack *native, uint64_t hash)
{
    uint32_t id = record_stack_find_older(hash);
    if (id)
        return id;
    process_watch();
    if (!t->python && !(t->python = own_map(sizeof *t->python))) {
        COUNT(map_refused, 1);
        return 0;
    }
    struct python_work *w = t->python;
    unsigned most = process.control->depth_max, known = 0;
    int is_cut = 0;
    forget_other_ring(t, w);
    unsigned count = python_frames(&w->memory, w->frames, most, &is_cut);
    if (!code_ids_ask(t, w->frames, count))
        return 0;
    unwind_addresses(t->unwind, t->addresses);
    unwind_pointers(t->unwind, s, w->sps);
    if (!w->seam_number || w->seam_number != t->told_number)
        w->seam.native_count = 0; /* another stack was told since */
    w->seam_number = 0;           /* until this one is, which a signal handler may prevent by longjmp */
    barrier();
    struct python_parts parts = {t->addresses, w->sps, native->depth, w->frames, count};
    struct unwind_stack joined = {.hash = hash, .flags = native->flags};
    joined.depth = python_join_next(&w->seam, &parts, w->joined, most, &known, &is_cut);
    if (is_cut)
        joined.flags |= WIRE_STACK_CUT;
    id = record_stack_define(t, &joined, w->joined, known);
    barrier();
    w->seam_number = id ? t->told_number : 0;
    return id;
}

/* As long as all stacks fit the second cache, the trail would only be one more thing in it. */
#define TRAIL_TABLE 2u

/* The id of a stack that is not the last one. What a fork's child has of its parent's trail, and who is recorded anew,
 * is not found: modules are announced anew then, so that all hashes change. */
static inline __attribute__((always_inline)) uint32_t find_mixed(struct thread *t, struct unwind_state s,
                                                                 const struct unwind_stack *native, uint64_t hash)
{
    int has_trail = t->python && __atomic_load_n(&stack_table_newest, __ATOMIC_RELAXED) >= TRAIL_TABLE;
    uint32_t id = has_trail ? trail_find(&t->python->trail, hash) : 0;
    if (id)
        return id;
    id = record_stack_find(hash);
    if (unlikely(!id))
        id = stack_new_mixed(t, s, native, hash);
    if (has_trail && id)
        trail_add(&t->python->trail, hash, id, t->unwind);
    return id;
}

uint32_t record_python_stack(struct thread *t, struct unwind_state s, const struct unwind_stack *native,
                             uint64_t python)
{
    uint64_t hash = (native->hash ^ python >> 29 ^ python << 35) * 0x9fb21c651e98df25ull;
    hash ^= hash >> 32;
    hash += !hash;
    if (hash == t->python_hash && t->python_id)
        return t->python_id;
    uint32_t id = find_mixed(t, s, native, hash);
    t->python_id = 0; /* never a hash with another one's id, wherever a signal handler looks */
    barrier();
    t->python_hash = hash;
    barrier();
    t->python_id = id;
    return id;
}

/* Before the hook's own record, so that what is live by then is what the program had left to the interpreter. */
void record_python_teardown(struct thread *t, struct unwind_state s)
{
    struct unwind_stack stack;
    if (process.teardown_known || t->depth || !t->ring || !t->unwind || !python_ends_here())
        return;
    t->depth = 1;
    t->outer_sp = s.sp;
    barrier();
    uint32_t watched = gate_watched();
    process.teardown_known = 1;
    if (!process.free_stacks)
        __atomic_compare_exchange_n(&gate.on, &watched, gate_open(), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    unwind_stack(t->unwind, s, &stack);
    unwind_addresses(t->unwind, t->addresses);
    if (python_ends_program(t->addresses, stack.depth)) {
        record_heap_last(t); /* where its heaps end, before they shrink */
        record_words(t, (uint64_t[]){WIRE_WORD1(WIRE_TEARDOWN, 0, 0)}, 2);
    }
    barrier();
    t->depth = 0;
}

int record_python_is_arena(const struct thread *t, struct unwind_state s, size_t length)
{
    return unlikely(python_loaded) && t->unwind &&
           python_takes_arena(s.pc, length, &(t->depth > 1 ? &t->unwind->nested : &t->unwind->walk)->careful.work);
}

void record_python_unmap(struct python_work *work)
{
    own_unmap(work, sizeof *work);
}
