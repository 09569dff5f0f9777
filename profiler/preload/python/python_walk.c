#include "python.h"

#include "../unwind/modules.h"
#include "python_layout.h"

#include <pthread.h>

uint32_t python_loaded;

/* --- the calling thread's state --- */

/* A sub-interpreter's state, where it runs on this thread: until 3.11 the thread's key always has the first one. The
 * state may be another thread's and go at any time, so it is read through the kernel. */
static NOINLINE uint64_t sub_state(const struct python_layout *l, uint64_t state)
{
    uint64_t current = word_at(python.runtime + l->current), thread = 0;
    if (current == state || !is_object(current) ||
        word_at(python.runtime + l->head) == word_at(python.runtime + l->main) ||
        memory_read((const void *)(current + l->thread_id), &thread, sizeof thread) != sizeof thread)
        return state;
    return thread == this_thread() ? current : state;
}

/* The newest state of this thread that was found readable, where that has to be asked. */
static __thread uint64_t known_state __attribute__((tls_model("initial-exec")));

/* 0: this thread runs no Python. The key's value is set and cleared by this thread only, but for the end of the
 * interpreter, which frees the states of all other threads. */
INLINE uint64_t thread_state(const struct python_layout *l)
{
    uint64_t tss = word_at(python.runtime + l->tss); /* {int initialized; pthread_key_t key;} */
    if (unlikely((uint32_t)tss != 1 && !python.key))
        return 0;
    uint64_t state = (uint64_t)pthread_getspecific(unlikely(python.key) ? python.key - 1 : (pthread_key_t)(tss >> 32));
    if (!is_object(state))
        return 0;
    if (unlikely(python.key) && unlikely(state != known_state)) { /* the key may be another library's by now */
        if (!python_readable(state, 512))
            return 0;
        known_state = state;
    }
    uint64_t finalizing = word_at(python.runtime + l->finalizing);
    if (unlikely(finalizing && finalizing != state))
        return 0;
    if (unlikely(word_at(state + l->thread_id) != this_thread()))
        return 0;
    if (l->current && unlikely(word_at(python.runtime + l->current) != state))
        state = sub_state(l, state);
    return state;
}

/* --- code objects --- */

INLINE uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

/*
 * Code objects die and others get their memory, with their names and tables in the same places. From 3.12 on each has a
 * version of its own. Before, they are told apart by where their parts lie and by what they hold: the name's hash, the
 * file name's length and end, the table's length and beginning.
 */
#define FILE_NAME_MOST 4096u
#define FILE_KIND      (1u << 5) /* its characters follow the head */
INLINE int contents_read(const struct python_layout *l, uint64_t code, struct python_contents *c)
{
    c->first_line = half_at(code + l->first_line);
    if (l->version) {
        c->version = half_at(code + l->version);
        return 1;
    }
    c->name = word_at(code + l->name);
    c->file = word_at(code + l->filename);
    c->table = word_at(code + l->table);
    if (unlikely(!is_object(c->name) || !is_object(c->file) || !is_object(c->table)))
        return 0;
    c->name_hash = word_at(c->name + 24);
    c->table_length = word_at(c->table + 16);
    c->table_begin = word_at(c->table + 32);
    c->file_length = word_at(c->file + 16);
    c->file_kind = half_at(c->file + 32);
    /* of memory that may be another object's by now: no length from there leads far away */
    int has_end = c->file_kind & FILE_KIND && c->file_length < FILE_NAME_MOST;
    c->file_end_at = c->file + (likely(has_end) ? l->ascii_bytes + c->file_length - 8 : 16);
    c->file_end = word_at(c->file_end_at);
    return 1;
}

/* Whether contents_read would say the same; the file's name is asked for what it holds only where has_file. */
INLINE int contents_hold(const struct python_layout *l, uint64_t code, const struct python_contents *c, int has_file)
{
    uint64_t differ = half_at(code + l->first_line) ^ c->first_line;
    if (l->version)
        return !(differ | (half_at(code + l->version) ^ c->version));
    differ |= word_at(code + l->name) ^ c->name;
    differ |= word_at(code + l->filename) ^ c->file;
    differ |= word_at(code + l->table) ^ c->table;
    if (unlikely(differ))
        return 0;
    differ = word_at(c->name + 24) ^ c->name_hash;
    differ |= word_at(c->table + 16) ^ c->table_length;
    differ |= word_at(c->table + 32) ^ c->table_begin;
    if (has_file) {
        differ |= word_at(c->file + 16) ^ c->file_length;
        differ |= (half_at(c->file + 32) ^ c->file_kind) & FILE_KIND;
        if (unlikely(differ)) /* the end may be where no memory is */
            return 0;
        differ = word_at(c->file_end_at) ^ c->file_end;
    }
    return !differ;
}

INLINE uint64_t contents_print(const struct python_layout *l, uint64_t code, const struct python_contents *c)
{
    if (l->version)
        return code ^ (uint64_t)c->version << 32 ^ (uint64_t)c->first_line << 48;
    uint64_t print = code ^ rotate(c->name, 13) ^ rotate(c->file, 27) ^ rotate(c->table, 41) ^ c->first_line;
    print = print * UNWIND_HASH_K + c->name_hash;
    print += c->file_end * 0xd6e8feb86659fd93ull + c->file_length;
    print += c->table_begin * 0xa0761d6478bd642full + c->table_length;
    return print ^ print >> 29;
}

INLINE uint64_t code_print(const struct python_layout *l, uint64_t code)
{
    struct python_contents c;
    return contents_read(l, code, &c) ? contents_print(l, code, &c) : 0;
}

struct walk {
    uint64_t hash;
    unsigned count;
    int is_cut;
};

/* Until 3.10: frame objects, one to an evaluation. */
INLINE struct walk walk_objects(const struct python_layout *l, uint64_t state, struct python_frame *out, unsigned most)
{
    struct walk w = {0, 0, 0};
    uint64_t frame = word_at(state + l->frame), c_frame = out && l->cframe ? word_at(state + l->cframe) : 0;
    for (; is_object(frame); frame = word_at(frame + l->previous)) {
        uint64_t code = word_at(frame + l->code), print;
        if (unlikely(!is_object(code) || !(print = code_print(l, code))))
            break;
        if (unlikely(w.count == most)) {
            w.is_cut = 1;
            break;
        }
        uint32_t offset = half_at(frame + l->instruction);
        w.hash = w.hash * UNWIND_HASH_K + print + offset;
        if (out) {
            out[w.count] = (struct python_frame){print, code, c_frame, offset, 0};
            if (is_object(c_frame))
                c_frame = word_at(c_frame + l->cframe_previous);
        }
        w.count++;
    }
    return w;
}

/* From 3.11 on: interpreter frames, any number of them in an evaluation. In 3.11 the outermost of them is marked and
 * the evaluation has a C frame record on its stack; from 3.12 on a frame that is no code's lies there. */
INLINE struct walk walk_frames(const struct python_layout *l, uint64_t state, struct python_frame *out, unsigned most)
{
    struct walk w = {0, 0, 0};
    uint64_t c_frame = 0, frame = word_at(state + l->frame);
    if (l->cframe_frame != NOT_THERE) {
        c_frame = frame;
        if (!is_object(c_frame))
            return w;
        frame = word_at(c_frame + l->cframe_frame);
    }
    for (; is_object(frame); frame = word_at(frame + l->previous)) {
        unsigned owner = *(const uint8_t *)(frame + l->owner);
        if (owner >= OWNED_BY_C) {
            if (out && w.count && !out[w.count - 1].anchor)
                out[w.count - 1].anchor = frame;
            continue;
        }
        uint64_t code = word_at(frame + l->code) & ~7ull, print;
        if (unlikely(!is_object(code) || !(print = code_print(l, code))))
            break;
        if (unlikely(w.count == most)) {
            w.is_cut = 1;
            break;
        }
        uint32_t offset = (uint32_t)(word_at(frame + l->instruction) - (code + l->bytecode));
        w.hash = w.hash * UNWIND_HASH_K + print + offset;
        if (out) {
            uint64_t anchor = 0;
            if (l->is_entry && *(const uint8_t *)(frame + l->is_entry)) {
                anchor = c_frame;
                if (is_object(c_frame))
                    c_frame = word_at(c_frame + l->cframe_previous);
            }
            out[w.count] = (struct python_frame){print, code, anchor, offset, 0};
        }
        w.count++;
    }
    return w;
}

/* --- the remembered frames --- */

/*
 * A thread remembers its last frames, the outermost first. The next walk ends at a frame that was among them, if from
 * there outwards all is what it was: no dependent loads, and code objects that several frames run are looked at once.
 * Frames are read only after a living one led to them.
 */
#define PAUSE  256 /* walks after one that cannot be remembered: a stack deeper than the limit */
#define SEARCH PYTHON_SEARCH

INLINE uint64_t frame_instruction(const struct python_layout *l, uint64_t frame)
{
    return l->bytecode ? word_at(frame + l->instruction) : half_at(frame + l->instruction);
}

INLINE uint32_t instruction_offset(const struct python_layout *l, uint64_t instruction, uint64_t code)
{
    return l->bytecode ? (uint32_t)(instruction - (code + l->bytecode)) : (uint32_t)instruction;
}

INLINE int is_of_c(const struct python_layout *l, uint64_t frame)
{
    return l->bytecode && *(const uint8_t *)(frame + l->owner) >= OWNED_BY_C;
}

/* What python_seen.look asks for. What several frames have in common is looked at once, in the outermost. */
enum { LOOK_CODE = 1, LOOK_FILE = 2, LOOK_NO_FURTHER = 4 };

/* The frames from *at on outwards, which is known to be one: whether all of them stand. If not, *at is the first that
 * does not. */
INLINE int frames_stand(const struct python_layout *l, struct python_seen **at)
{
    struct python_seen *seen = *at;
    uint64_t frame = seen->frame;
    for (;; seen--) {
        uint64_t previous = seen->previous, code = seen->code;
        uint64_t differ = frame_instruction(l, frame) ^ seen->instruction;
        differ |= word_at(frame + l->code) ^ code;
        differ |= word_at(frame + l->previous) ^ previous;
        if (unlikely(differ))
            break;
        uint32_t look = seen->look;
        if (look) {
            code &= ~7ull;
            if (look & LOOK_CODE && unlikely(!contents_hold(l, code, seen->contents, look & LOOK_FILE)))
                break;
            if (look & LOOK_NO_FURTHER)
                return 1;
        }
        frame = previous;
    }
    *at = seen;
    return 0;
}

/* Makes `seen` of a living frame, inside the ones before it. 0: it is not to be remembered. */
INLINE int frame_remember(const struct python_layout *l, struct python_memory *m, struct python_seen *seen,
                          uint64_t frame, unsigned most)
{
    uint64_t instruction = frame_instruction(l, frame), word = word_at(frame + l->code), code = word & ~7ull;
    struct python_contents *c = &m->contents[seen - m->seen];
    int is_outermost = seen == m->seen + SEARCH, k = 1;
    *seen = (struct python_seen){.frame = frame,
                                 .previous = word_at(frame + l->previous),
                                 .instruction = instruction,
                                 .code = word,
                                 .contents = c,
                                 .sum = seen[-1].sum,
                                 .frames = seen[-1].frames,
                                 .look = is_outermost ? LOOK_NO_FURTHER : 0};
    if (is_of_c(l, frame))
        return 1;
    while (k <= SEARCH && !(seen[-k].code == word && seen[-k].print))
        k++;
    if (k <= SEARCH) {
        seen->print = seen[-k].print;
    } else {
        if (!is_object(code) || !contents_read(l, code, c) || !(seen->print = contents_print(l, code, c)))
            return 0;
        seen->look |=
            seen[-1].look & LOOK_CODE && seen[-1].contents->file == c->file ? LOOK_CODE : LOOK_CODE | LOOK_FILE;
    }
    if (unlikely(seen->frames == most))
        return 0;
    seen->sum += (seen->print + instruction_offset(l, instruction, code)) * unwind_powers[seen->frames++];
    return 1;
}

/* Puts the `count` new frames of m->steps inside those before `top`. 0: they are not to be remembered. */
INLINE int frames_remember(const struct python_layout *l, struct python_memory *m, struct python_seen *top,
                           uint32_t count, unsigned most)
{
    /* A signal handler may leave this by longjmp: what is remembered must be sound at every instruction. */
    m->count = (uint32_t)(top - m->seen) - SEARCH;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    for (; count--; top++)
        if (unlikely(!frame_remember(l, m, top, m->steps[count], most)))
            return 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    m->count = (uint32_t)(top - m->seen) - SEARCH;
    return 1;
}

/* The same as the walk over all frames; 0: that has to do it. */
INLINE int walk_memory(const struct python_layout *l, struct python_memory *m, uint64_t frame, unsigned most,
                       struct walk *w)
{
    struct python_seen *top = &m->seen[SEARCH] + m->count; /* those before it may stand */
    uint32_t count = 0;
    for (;; frame = word_at(frame + l->previous)) {
        if (unlikely(!is_object(frame))) {
            top = &m->seen[SEARCH];
            break;
        }
        int k = 1;
        while (top[-k].frame != frame && ++k <= SEARCH)
            ;
        if (likely(k <= SEARCH)) {
            struct python_seen *fallen = top - k;
            if (likely(frames_stand(l, &fallen))) {
                top -= k - 1;
                break;
            }
            top = fallen; /* those outside that one are looked at when the walk gets there */
        }
        if (unlikely(count == PYTHON_FRAMES - 1 || top - m->seen + count == PYTHON_FRAMES + SEARCH))
            return 0;
        m->steps[count++] = frame;
    }
    if ((count || top != &m->seen[SEARCH] + m->count) && unlikely(!frames_remember(l, m, top, count, most)))
        return 0;
    top = &m->seen[SEARCH] + m->count;
    *w = (struct walk){top[-1].sum, top[-1].frames, 0};
    return 1;
}

INLINE struct walk walk_hashed(const struct python_layout *l, struct python_memory *m, uint64_t state, unsigned most)
{
    struct walk w;
    uint64_t frame = word_at(state + l->frame);
    if (l->bytecode && l->cframe_frame != NOT_THERE)
        frame = is_object(frame) ? word_at(frame + l->cframe_frame) : 0;
    if (m && likely(!m->pause)) {
        if (likely(walk_memory(l, m, frame, most, &w)))
            return w;
        m->count = 0;
        m->pause = PAUSE;
    } else if (m) {
        m->pause--;
    }
    return l->bytecode ? walk_frames(l, state, NULL, most) : walk_objects(l, state, NULL, most);
}

uint64_t python_hash(struct python_memory *m, unsigned most)
{
    if (unlikely(!__atomic_load_n(&python.is_verified, __ATOMIC_ACQUIRE)) && !python_verify())
        return 0;
    const struct python_layout *l = &python.layout;
    uint64_t state = thread_state(l);
    if (!state)
        return 0;
    struct walk w;
    switch (l->minor) {
    case 11:
        w = walk_hashed(&python_layouts[2], m, state, most);
        break;
    case 12:
        w = walk_hashed(&python_layouts[3], m, state, most);
        break;
    default:
        w = walk_hashed(l, m, state, most);
    }
    if (!w.count)
        return 0;
    uint64_t hash = w.hash + (uint64_t)w.is_cut;
    hash ^= hash >> 31;
    return hash + !hash;
}

int python_ends_here(void)
{
    return __atomic_load_n(&python_loaded, __ATOMIC_ACQUIRE) && python_is_ending() && thread_state(&python.layout);
}

unsigned python_frames(struct python_frame *frames, unsigned most, int *is_cut)
{
    const struct python_layout *l = &python.layout;
    uint64_t state = thread_state(l);
    if (!state)
        return 0;
    struct walk w = l->minor >= 11 ? walk_frames(l, state, frames, most) : walk_objects(l, state, frames, most);
    *is_cut |= w.is_cut;
    return w.count;
}
