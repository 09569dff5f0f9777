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

/*
 * Code objects die and others get their memory, with their names and tables in the same places. From 3.12 on each has a
 * version of its own. Before, they are told apart by where their parts lie and by what they hold: the name's hash, the
 * file name's length and end, the table's length and beginning.
 */
#define FILE_NAME_MOST 4096u
#define FILE_KIND      (1u << 5) /* its characters follow the head */
INLINE int contents_read(const struct python_layout *l, uint64_t code, struct python_contents *c, struct python_file *f)
{
    c->code = code;
    c->kind = l->version ? PYTHON_BY_VERSION : PYTHON_BY_CONTENTS_AND_FILE;
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
    f->length = word_at(c->file + 16);
    f->kind = half_at(c->file + 32);
    /* of memory that may be another object's by now: no length from there leads far away */
    int has_end = f->kind & FILE_KIND && f->length < FILE_NAME_MOST;
    f->end_at = c->file + (likely(has_end) ? l->ascii_bytes + f->length - 8 : 16);
    f->end = word_at(f->end_at);
    return 1;
}

/* Codes may differ in one of these alone, or in two by as much: lambdas of one file that share their table differ in
 * address and line. So each has a factor of its own. */
INLINE uint64_t contents_print(const struct python_layout *l, const struct python_contents *c,
                               const struct python_file *f)
{
    uint64_t print = c->code * UNWIND_HASH_K + c->first_line * 0xd6e8feb86659fd93ull;
    if (l->version) {
        print += c->version * 0xa0761d6478bd642full;
    } else {
        print += c->name * 0xa0761d6478bd642full + c->file * 0xe7037ed1a0b428dbull + c->table * 0x8ebc6af09c88c6e3ull;
        print += c->name_hash * 0x589965cc75374cc3ull;
        print += f->end * 0xff51afd7ed558ccdull + f->length * 0xc4ceb9fe1a85ec53ull;
        print += c->table_begin * 0x1d8e4e27c47d124full + c->table_length * 0xeb44accab455d165ull;
    }
    return print ^ print >> 29;
}

INLINE uint64_t code_print(const struct python_layout *l, uint64_t code)
{
    struct python_contents c;
    struct python_file f;
    return contents_read(l, code, &c, &f) ? contents_print(l, &c, &f) : 0;
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
            out[w.count] = (struct python_frame){print, code, c_frame, offset, 0, NULL};
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
            out[w.count] = (struct python_frame){print, code, anchor, offset, 0, NULL};
        }
        w.count++;
    }
    return w;
}

/* --- the remembered frames --- */

/*
 * A thread remembers its last frames, the outermost first. The next walk ends at a frame that was among them, if from
 * there outwards all is what it was: no dependent loads, and code objects that several frames run are looked at once.
 * The frame where it ends may have gone on to another instruction. Frames are read only after a living one led to them.
 *
 * Each frame is looked at: where one function calls another in two places, nothing that the interpreter keeps differs
 * between the calls but the instruction in the caller's frame, however deep in the stack that is.
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

/* What a frame that is known to be one holds, against what it held; 0: the same. */
INLINE uint64_t link_differs(const struct python_layout *l, const struct python_link *at)
{
    return (frame_instruction(l, at->frame) ^ at->instruction) | (word_at(at->frame + l->code) ^ at->code);
}

/* Whether the frame outside it is still the one before. */
INLINE int link_leads_on(const struct python_layout *l, const struct python_link *at)
{
    return likely(word_at(at->frame + l->previous) == at[-1].frame);
}

/* How many of the first `count` remembered frames may stand, where not all of them do: those outside the innermost that
 * does not. */
static NOINLINE uint32_t frames_before_fallen(const struct python_layout *l, const struct python_memory *m,
                                              uint32_t count)
{
    const struct python_link *at = &m->links[SEARCH] + count - 1;
    while (at >= &m->links[SEARCH] && !link_differs(l, at) && link_leads_on(l, at))
        at--;
    return at < &m->links[SEARCH] ? 0 : (uint32_t)(at - &m->links[SEARCH]);
}

/* Whether the first `count` remembered frames stand, of which the innermost is known to be one. What a frame holds may
 * be looked at later, the word that leads on may not: the frame outside it is read by that. */
INLINE int frames_stand(const struct python_layout *l, const struct python_memory *m, uint32_t count)
{
    const struct python_link *at = &m->links[SEARCH] + count - 1;
    for (; count >= 4; count -= 4, at -= 4) {
        uint64_t differ = link_differs(l, at);
        if (!link_leads_on(l, at))
            return 0;
        differ |= link_differs(l, at - 1);
        if (!link_leads_on(l, at - 1))
            return 0;
        differ |= link_differs(l, at - 2);
        if (!link_leads_on(l, at - 2))
            return 0;
        differ |= link_differs(l, at - 3);
        if (unlikely(!link_leads_on(l, at - 3) || differ))
            return 0;
    }
    for (; count; count--, at--)
        if (unlikely(link_differs(l, at) || !link_leads_on(l, at)))
            return 0;
    return 1;
}

INLINE int file_holds(uint64_t file, const struct python_file *f)
{
    uint64_t differ = (word_at(file + 16) ^ f->length) | ((half_at(file + 32) ^ f->kind) & FILE_KIND);
    return likely(!differ) && word_at(f->end_at) == f->end; /* else the end may be where no memory is */
}

/* Whether contents_read would say the same of the first `count` codes, each of which a living frame runs. */
INLINE int codes_hold(const struct python_layout *l, const struct python_memory *m, uint32_t count)
{
    for (const struct python_contents *c = m->codes, *end = c + count; c != end; c++) {
        uint64_t differ;
        if (l->function_version && c->kind == PYTHON_BY_FUNCTION) {
            /* the function that the frame holds is asked only when it is that one */
            if (unlikely(word_at(c->frame + l->function) != c->function) ||
                unlikely(half_at(c->function + l->function_version) != c->version))
                return 0;
            continue;
        }
        differ = half_at(c->code + l->first_line) ^ c->first_line;
        if (l->version) {
            if (unlikely(differ | (half_at(c->code + l->version) ^ c->version)))
                return 0;
            continue;
        }
        differ |= word_at(c->code + l->name) ^ c->name;
        differ |= word_at(c->code + l->filename) ^ c->file;
        differ |= word_at(c->code + l->table) ^ c->table;
        if (unlikely(differ))
            return 0;
        differ = word_at(c->name + 24) ^ c->name_hash;
        differ |= word_at(c->table + 16) ^ c->table_length;
        differ |= word_at(c->table + 32) ^ c->table_begin;
        if (unlikely(differ))
            return 0;
        if (c->kind == PYTHON_BY_CONTENTS_AND_FILE && unlikely(!file_holds(c->file, &m->files[c - m->codes])))
            return 0;
    }
    return 1;
}

/*
 * 3.11 has no versions of code, but its functions have them once the interpreter has specialized a call. While one
 * function has one version it holds one code, so that code's memory is nobody else's, and a frame that the function
 * began meanwhile runs that code and no other.
 */
INLINE void tell_by_function(const struct python_layout *l, struct python_contents *c, uint64_t frame)
{
    uint64_t function = word_at(frame + l->function);
    if (!python.keeps_functions || !is_object(function) || word_at(function + l->function_code) != c->code)
        return;
    uint64_t version = half_at(function + l->function_version);
    if (!version)
        return;
    c->kind = PYTHON_BY_FUNCTION;
    c->frame = frame;
    c->function = function;
    c->version = version;
}

/* The place in m->codes of a code that `frame` runs, inside frames that run the first `count` of them: one of the last
 * of these, or one more. PYTHON_FRAMES: it is no code, or not to be remembered. */
INLINE uint32_t code_remember(const struct python_layout *l, struct python_memory *m, uint64_t frame, uint64_t code,
                              uint32_t count)
{
    struct python_contents *c = &m->codes[count];
    struct python_file *f = &m->files[count];
    for (uint32_t k = 1; k <= SEARCH && k <= count; k++)
        if (c[-(int)k].code == code)
            return count - k;
    if (!is_object(code) || !contents_read(l, code, c, f) || !(m->prints[count] = contents_print(l, c, f)))
        return PYTHON_FRAMES;
    if (!l->version && count && c[-1].kind != PYTHON_BY_FUNCTION && c[-1].file == c->file)
        c->kind = PYTHON_BY_CONTENTS;
    if (l->function_version)
        tell_by_function(l, c, frame);
    return count;
}

/* Makes a link of a living frame, inside the ones before it. 0: it is not to be remembered. */
INLINE int frame_remember(const struct python_layout *l, struct python_memory *m, struct python_link *link,
                          uint64_t frame, unsigned most)
{
    uint64_t instruction = frame_instruction(l, frame), word = word_at(frame + l->code);
    struct python_seen *seen = &m->seen[link - m->links];
    const struct python_seen outer = seen[-1];
    *link = (struct python_link){frame, instruction, word};
    *seen = (struct python_seen){0, outer.sum, outer.frames, outer.codes};
    m->ids[link - m->links] = 0;
    if (is_of_c(l, frame))
        return 1;
    if (unlikely(outer.frames == most))
        return 0;
    uint32_t code = code_remember(l, m, frame, word & ~7ull, outer.codes);
    if (unlikely(code == PYTHON_FRAMES))
        return 0;
    seen->codes += code == outer.codes;
    seen->print = m->prints[code];
    seen->sum += (seen->print + instruction_offset(l, instruction, word & ~7ull)) * unwind_powers[seen->frames++];
    return 1;
}

/* A signal handler may leave these by longjmp: what is remembered must be sound at every instruction. */
INLINE void remembered(struct python_memory *m, uint32_t count)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    m->count = count;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Puts the `count` new frames of m->steps inside the first `standing`. 0: they are not to be remembered. */
INLINE int frames_remember(const struct python_layout *l, struct python_memory *m, uint32_t standing, uint32_t count,
                           unsigned most)
{
    struct python_link *link = &m->links[SEARCH] + standing;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    for (uint32_t i = count; i--; link++)
        if (unlikely(!frame_remember(l, m, link, m->steps[i], most)))
            return 0;
    remembered(m, standing + count);
    return 1;
}

/* The innermost of the first `count` frames, all of which stand, has gone on to another instruction of its code. */
INLINE void frame_goes_on(const struct python_layout *l, struct python_memory *m, uint32_t count, uint64_t instruction)
{
    struct python_link *link = &m->links[SEARCH] + count - 1;
    struct python_seen *seen = &m->seen[SEARCH] + count - 1;
    remembered(m, count - 1);
    link->instruction = instruction;
    if (likely(seen->print != 0))
        seen->sum = seen[-1].sum + (seen->print + instruction_offset(l, instruction, link->code & ~7ull)) *
                                       unwind_powers[seen[-1].frames];
    remembered(m, count);
}

/* Whether the living frame is the innermost of the first *standing ones, but for its instruction, and all outside it is
 * what it was; if not, *standing is how many may still be met. */
INLINE int meets_remembered(const struct python_layout *l, struct python_memory *m, uint64_t frame, uint32_t *standing)
{
    const struct python_link *link = &m->links[SEARCH] + *standing - 1;
    int k = 0;
    while (link[-k].frame != frame && ++k < SEARCH)
        ;
    if (k == SEARCH)
        return 0;
    link -= k;
    uint32_t outer = *standing - (uint32_t)k - 1;
    *standing = outer;
    if (word_at(frame + l->code) != link->code || !link_leads_on(l, link))
        return 0;
    if (likely(frames_stand(l, m, outer))) {
        int hold = codes_hold(l, m, m->seen[SEARCH + outer].codes);
        *standing = hold ? outer + 1 : 0;
        return hold;
    }
    *standing = frames_before_fallen(l, m, outer);
    return 0;
}

/* The same as the walk over all frames; 0: that has to do it. */
INLINE int walk_memory(const struct python_layout *l, struct python_memory *m, uint64_t frame, unsigned most,
                       struct walk *w)
{
    uint32_t standing = m->count, count = 0;
    for (;; frame = word_at(frame + l->previous)) {
        if (unlikely(!is_object(frame))) {
            standing = 0;
            break;
        }
        if (likely(meets_remembered(l, m, frame, &standing))) {
            uint64_t instruction = frame_instruction(l, frame);
            if (instruction != m->links[SEARCH + standing - 1].instruction)
                frame_goes_on(l, m, standing, instruction);
            break;
        }
        if (unlikely(standing + count >= PYTHON_FRAMES - 1))
            return 0;
        m->steps[count++] = frame;
    }
    m->count = standing;
    if (count && unlikely(!frames_remember(l, m, standing, count, most)))
        return 0;
    const struct python_seen *seen = &m->seen[SEARCH] + m->count - 1;
    *w = (struct walk){seen->sum, seen->frames, 0};
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

/* What the walk over all frames gives, of those that are remembered: all but where their evaluations lie. */
static unsigned remembered_frames(const struct python_layout *l, struct python_memory *m, uint64_t state,
                                  struct python_frame *out)
{
    int by_entry = l->bytecode && l->is_entry; /* else each frame has an evaluation, or a frame of C marks it */
    uint64_t c_frame = by_entry                    ? word_at(state + l->frame)
                       : !l->bytecode && l->cframe ? word_at(state + l->cframe)
                                                   : 0;
    unsigned count = 0;
    for (uint32_t i = PYTHON_SEARCH + m->count; i-- > PYTHON_SEARCH;) {
        const struct python_link *link = &m->links[i];
        if (!m->seen[i].print) {
            if (count && !out[count - 1].anchor)
                out[count - 1].anchor = link->frame;
            continue;
        }
        int has_evaluation = l->bytecode ? by_entry && *(const uint8_t *)(link->frame + l->is_entry) : 1;
        uint64_t code = link->code & ~7ull;
        out[count++] = (struct python_frame){
            m->seen[i].print, code,      has_evaluation ? c_frame : 0, instruction_offset(l, link->instruction, code),
            m->ids[i],        &m->ids[i]};
        if (has_evaluation && is_object(c_frame))
            c_frame = word_at(c_frame + l->cframe_previous);
    }
    return count;
}

unsigned python_frames(struct python_memory *m, struct python_frame *frames, unsigned most, int *is_cut)
{
    const struct python_layout *l = &python.layout;
    uint64_t state = thread_state(l);
    if (!state)
        return 0;
    if (m->count && !m->pause)
        return remembered_frames(l, m, state, frames);
    struct walk w = l->minor >= 11 ? walk_frames(l, state, frames, most) : walk_objects(l, state, frames, most);
    *is_cut |= w.is_cut;
    return w.count;
}

void python_forget_ids(struct python_memory *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        m->ids[PYTHON_SEARCH + i] = 0;
}
