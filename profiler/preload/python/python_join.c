#include "python_join.h"

#include "python_layout.h"

struct join {
    uint64_t *out;
    unsigned count, most;
};

static void join_add(struct join *j, uint64_t word)
{
    if (j->count < j->most)
        j->out[j->count] = word;
    j->count++;
}

static void join_frames(struct join *j, const struct python_frame *frames, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        if (frames[i].id != PYTHON_NO_CODE)
            join_add(j, WIRE_PYTHON_WORD(frames[i].id, frames[i].offset));
}

static unsigned join_end(const struct join *j, int *is_cut)
{
    if (j->count <= j->most)
        return j->count;
    *is_cut = 1;
    return j->most;
}

/* The end of the first group from `from` on whose anchor lies in the C frame; 0: none does. */
static unsigned group_in(const struct python_frame *frames, unsigned from, unsigned count, uint64_t low, uint64_t high)
{
    for (unsigned i = from; i < count; i++)
        if (frames[i].anchor && frames[i].anchor >= low && frames[i].anchor < high)
            return i + 1;
    return 0;
}

static void join_by_anchor(struct join *j, const struct python_parts *p)
{
    unsigned next = 0;
    for (unsigned i = 0; i < p->native_count; i++) {
        uint64_t high = i + 1 < p->native_count ? p->sps[i + 1] : UINT64_MAX;
        unsigned end = group_in(p->frames, next, p->count, p->sps[i], high);
        if (!end) {
            join_add(j, p->pcs[i]);
            continue;
        }
        join_frames(j, p->frames, next, end);
        next = end;
    }
    join_frames(j, p->frames, next, p->count);
}

static int is_evaluation(uint64_t pc)
{
    return pc > python.eval_start && pc <= python.eval_end;
}

/* 3.9 has nothing on the C stack: each frame belongs to a call of the evaluation function, from the outermost on. */
static void join_by_function(struct join *j, const struct python_parts *p)
{
    unsigned evaluations = 0, next = 0;
    for (unsigned i = 0; i < p->native_count; i++)
        evaluations += (unsigned)is_evaluation(p->pcs[i]);
    unsigned extra = p->count > evaluations ? p->count - evaluations : 0; /* run by its unlikely part, elsewhere */
    for (unsigned i = 0; i < p->native_count; i++) {
        if (next == p->count || !is_evaluation(p->pcs[i])) {
            join_add(j, p->pcs[i]);
            continue;
        }
        join_frames(j, p->frames, next, next + extra + 1);
        next += extra + 1;
        extra = 0;
    }
    join_frames(j, p->frames, next, p->count);
}

unsigned python_join(const struct python_parts *parts, uint64_t *out, unsigned most, int *is_cut)
{
    struct join j = {out, 0, most};
    int has_anchors = 0;
    for (unsigned i = 0; i < parts->count; i++)
        has_anchors |= parts->frames[i].anchor != 0;
    if (has_anchors)
        join_by_anchor(&j, parts);
    else
        join_by_function(&j, parts);
    return join_end(&j, is_cut);
}

/* --- what the last one shares --- */

struct shared { /* so many of the outermost are those of the last stack */
    unsigned native, frames;
};

static struct shared find_shared(const struct python_seam *last, const struct python_parts *p)
{
    struct shared s = {0, 0};
    unsigned most = last->native_count < p->native_count ? last->native_count : p->native_count;
    const uint64_t *pc = p->pcs + p->native_count, *sp = p->sps + p->native_count;
    while (s.native < most && last->native[s.native].sp == *--sp && last->native[s.native].pc == *--pc)
        s.native++;
    most = !s.native ? 0 : last->count < p->count ? last->count : p->count;
    for (const struct python_frame *f = p->frames + p->count; s.frames < most; s.frames++)
        if ((--f)->anchor != last->frames[s.frames].anchor || f->id != last->frames[s.frames].id ||
            f->offset != last->frames[s.frames].offset)
            break;
    return s;
}

/* Whether anchors and C frames come in the order of the stack, so that one pass over both joins them. What is shared
 * did. */
static int is_in_order(const struct python_parts *p, struct shared s)
{
    uint64_t highest = 0;
    for (unsigned i = 0; i < p->count; i++) {
        uint64_t anchor = p->frames[i].anchor;
        if (anchor && anchor < highest)
            return 0;
        highest = anchor ? anchor : highest;
    }
    for (unsigned i = 1; i < p->native_count && i <= p->native_count - s.native; i++)
        if (p->sps[i] < p->sps[i - 1])
            return 0;
    return highest && p->native_count && p->sps[0];
}

/* From the innermost on, until a C frame that is shared finds as many frames of Python's left as it found then: all
 * outside it is the same, *known words. Returns how many C frames came before that. */
static unsigned join_inside(struct join *j, struct python_seam *last, const struct python_parts *p, struct shared s,
                            unsigned *known)
{
    unsigned next = 0, at = 0, i = 0;
    for (; i < p->native_count; i++) {
        unsigned outer = p->native_count - 1 - i, left = p->count - next;
        if (outer < s.native && left <= s.frames && left == last->native[outer].frames) {
            *known = last->native[outer].words;
            return i;
        }
        uint64_t low = p->sps[i], high = outer ? p->sps[i + 1] : UINT64_MAX;
        last->native[outer].pc = p->pcs[i];
        last->native[outer].sp = low;
        last->native[outer].frames = left;
        last->native[outer].words = j->count;               /* from inside, for now */
        while (at < p->count && p->frames[at].anchor < low) /* none is 0 */
            at++;
        if (at == p->count || p->frames[at].anchor >= high) {
            join_add(j, p->pcs[i]);
            continue;
        }
        join_frames(j, p->frames, next, at + 1);
        next = ++at;
    }
    join_frames(j, p->frames, next, p->count);
    *known = 0;
    return i;
}

/* After the first `anew` C frames were joined: `words` is what all came to. */
static void seam_keep(struct python_seam *last, const struct python_parts *p, struct shared s, unsigned anew,
                      unsigned words)
{
    for (unsigned i = 0; i < anew; i++) {
        uint32_t *from = &last->native[p->native_count - 1 - i].words;
        *from = words - *from;
    }
    for (unsigned k = s.frames; k < p->count; k++) {
        const struct python_frame *f = &p->frames[p->count - 1 - k];
        last->frames[k].anchor = f->anchor;
        last->frames[k].id = f->id;
        last->frames[k].offset = f->offset;
    }
    last->count = p->count;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    last->native_count = p->native_count;
}

unsigned python_join_next(struct python_seam *last, const struct python_parts *parts, uint64_t *out, unsigned most,
                          unsigned *known, int *is_cut)
{
    struct shared s = find_shared(last, parts);
    struct join j = {out, 0, most};
    *known = 0;
    last->native_count = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (!is_in_order(parts, s))
        return python_join(parts, out, most, is_cut);
    unsigned anew = join_inside(&j, last, parts, s, known);
    if (likely(j.count + *known <= most)) {
        seam_keep(last, parts, s, anew, j.count + *known);
        return j.count + *known;
    }
    j.count = 0;
    join_inside(&j, last, parts, (struct shared){0, 0}, known);
    return join_end(&j, is_cut);
}
