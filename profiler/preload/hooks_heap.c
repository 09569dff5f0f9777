/* The malloc family. C++ operator new and delete, strdup, getline and the like arrive through these. */
#include "oom.h"
#include "pause.h"
#include "real.h"
#include "record.h"
#include "record_free.h"

#include <errno.h>

/* Common end of a hook whose real function found no memory. errno stays. */
static __attribute__((noinline)) void *failed(struct thread *t, struct unwind_state s, size_t size_bytes, unsigned hook)
{
    record_oom(t, s, size_bytes, hook);
    thread_leave(t);
    oom_tell(t, s, WIRE_DEVICE_HOST, size_bytes);
    return NULL;
}

/* A hook whose real function may be called before the library's constructor: real.NAME is there after this. */
#define NEED(name)                                                                                                     \
    do {                                                                                                               \
        if (unlikely(!real.name))                                                                                      \
            real_init();                                                                                               \
    } while (0)

/* Common end of a hook of a birth in a pause: p is what it gave. */
static __attribute__((noinline)) void *born_in_pause(struct thread *t, void *p)
{
    uint32_t pause = pause_now();
    if (p && pause)
        pause_unseen(pause, p);
    thread_leave(t);
    return p;
}

/* The same where only some births are recorded, of one that is not left out. */
static __attribute__((noinline)) void *born_apart(struct thread *t, struct unwind_state s, void *p, size_t size_bytes,
                                                  unsigned hook, enum thread_entry entry)
{
    if (entry == ENTERED_PAUSED)
        return born_in_pause(t, p);
    if (unlikely(!p))
        return failed(t, s, size_bytes, hook);
    thin_lives(p);
    record_alloc(t, s, p, size_bytes, hook);
    thread_leave(t);
    return p;
}

/* Hooks that return a block: the real call, then its record. errno stays what the real call left: nothing below sets
 * it. enter: how it is entered. */
#define HOOK_ALLOC_ENTERED(enter, refused, name, size_bytes, ...)                                                      \
    struct thread *t = &self;                                                                                          \
    struct unwind_state s;                                                                                             \
    UNWIND_HERE(s);                                                                                                    \
    NEED(name);                                                                                                        \
    enum thread_entry entry = enter(t, s, (size_bytes));                                                               \
    if (unlikely(entry == ENTER_NOT))                                                                                  \
        return real.name(__VA_ARGS__);                                                                                 \
    if (unlikely(entry != ENTERED)) {                                                                                  \
        void *p = real.name(__VA_ARGS__);                                                                              \
        if (!(p ? entry == ENTERED_LEFT_OUT : (refused)))                                                              \
            return born_apart(t, s, p, (size_bytes), WIRE_HOOK_##name, entry);                                         \
        thread_leave(t);                                                                                               \
        return p;                                                                                                      \
    }                                                                                                                  \
    void *p = real.name(__VA_ARGS__);                                                                                  \
    if (likely(p != NULL))                                                                                             \
        record_alloc(t, s, p, (size_bytes), WIRE_HOOK_##name);                                                         \
    else if (!(refused))                                                                                               \
        return failed(t, s, (size_bytes), WIRE_HOOK_##name);                                                           \
    thread_leave(t);                                                                                                   \
    return p

/* Where NULL may also mean that the alignment was refused. */
#define HOOK_ALLOC_ALIGNED(name, size_bytes, ...)                                                                      \
    HOOK_ALLOC_ENTERED(thread_enter_birth, !p && errno != ENOMEM, name, (size_bytes), __VA_ARGS__)

/* The hooks that programs call most look at the gate first and jump to one of three functions. So what a thinned
 * recording leaves out, which is nearly all, saves no registers but its own, and a recording of everything compares
 * once, as without this. A jump leaves the caller's return address where UNWIND_HERE looks for it. */

/* frame: of a function that UNWIND_HERE could stand in. */
static inline uint64_t callers_sp(const uint64_t *frame)
{
    return (uint64_t)(frame + 2);
}

/* Of a hook that leaves out: what it needs of its caller is looked up here, and costs the way that goes well nothing.
 */
static __attribute__((noinline)) void failed_left_out(const uint64_t *frame, size_t size_bytes, unsigned hook)
{
    failed(&self, (struct unwind_state){frame[1], callers_sp(frame), frame[0]}, size_bytes, hook);
}

/* A birth that is left out. can_be_null: without a failure. */
#define HOOK_ALLOC_LEFT_OUT(name, can_be_null, size_bytes, ...)                                                        \
    struct thread *t = &self;                                                                                          \
    thread_enter_thinned(t, callers_sp(__builtin_frame_address(0)));                                                   \
    void *p = real.name(__VA_ARGS__);                                                                                  \
    if (unlikely(!p) && !(can_be_null)) {                                                                              \
        failed_left_out(__builtin_frame_address(0), (size_bytes), WIRE_HOOK_##name);                                   \
        return NULL;                                                                                                   \
    }                                                                                                                  \
    thread_leave_thinned(t);                                                                                           \
    return p

static __attribute__((noinline)) void *malloc_open(size_t size)
{
    HOOK_ALLOC_ENTERED(thread_enter_birth_open, 0, malloc, size, size);
}

static __attribute__((noinline)) void *malloc_left_out(size_t size)
{
    HOOK_ALLOC_LEFT_OUT(malloc, 0, size, size);
}

static __attribute__((noinline)) void *malloc_apart(size_t size)
{
    HOOK_ALLOC_ENTERED(thread_enter_birth_slow, 0, malloc, size, size);
}

EXPORT void *malloc(size_t size)
{
    if (likely(gate.on == GATE_OPEN))
        return malloc_open(size);
    return thread_leaves_out_birth(&self, size) ? malloc_left_out(size) : malloc_apart(size);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    HOOK_ALLOC_ALIGNED(memalign, size, alignment, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    HOOK_ALLOC_ALIGNED(aligned_alloc, size, alignment, size);
}

EXPORT void *valloc(size_t size)
{
    HOOK_ALLOC_ALIGNED(valloc, size, size);
}

EXPORT void *pvalloc(size_t size)
{
    HOOK_ALLOC_ALIGNED(pvalloc, size > SIZE_MAX - 4095 ? size : (size + 4095) & ~(size_t)4095, size);
}

static size_t product(size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

static __attribute__((noinline)) void *calloc_open(size_t count, size_t size)
{
    HOOK_ALLOC_ENTERED(thread_enter_birth_open, 0, calloc, product(count, size), count, size);
}

static __attribute__((noinline)) void *calloc_left_out(size_t count, size_t size)
{
    HOOK_ALLOC_LEFT_OUT(calloc, 0, product(count, size), count, size);
}

static __attribute__((noinline)) void *calloc_apart(size_t count, size_t size)
{
    HOOK_ALLOC_ENTERED(thread_enter_birth_slow, 0, calloc, product(count, size), count, size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    if (likely(gate.on == GATE_OPEN))
        return calloc_open(count, size);
    return thread_leaves_out_birth(&self, product(count, size)) ? calloc_left_out(count, size)
                                                                : calloc_apart(count, size);
}

EXPORT int posix_memalign(void **result, size_t alignment, size_t size)
{
    struct thread *t = &self;
    struct unwind_state s;
    UNWIND_HERE(s);
    NEED(posix_memalign);
    enum thread_entry entry = thread_enter_birth(t, s, size);
    int code = real.posix_memalign(result, alignment, size);
    if (unlikely(entry != ENTERED)) {
        if (entry == ENTER_NOT)
            return code;
        if (entry == ENTERED_PAUSED || (code ? code == ENOMEM : entry == ENTERED_CHOSEN))
            born_apart(t, s, code ? NULL : *result, size, WIRE_HOOK_posix_memalign, entry);
        else
            thread_leave(t);
        return code;
    }
    if (likely(code == 0))
        record_alloc(t, s, *result, size, WIRE_HOOK_posix_memalign);
    else if (code == ENOMEM)
        return failed(t, s, size, WIRE_HOOK_posix_memalign), code;
    thread_leave(t);
    return code;
}

static __attribute__((noinline)) void resized_to_nothing(struct thread *t, uint64_t before, const void *old,
                                                         uint32_t stack, unsigned hook)
{
    if (process.free_stacks) {
        record_free_at(t, before, old, stack, hook);
        return;
    }
    uint64_t at = record_reserve(t, 2);
    record_word(t, at, before);
    record_word(t, at + 1, WIRE_WORD1(WIRE_FREE, hook, (uint64_t)old));
}

/* Leaves the hook. The old block dies before the new one can be seen by others, so the record carries a stamp from each
 * side of the call, and the ring stays busy over it. What fails leaves the old block as it was. */
static inline __attribute__((always_inline)) void *resize(struct thread *t, struct unwind_state s, void *old,
                                                          size_t size, unsigned hook)
{
    if (!old) {
        void *p = real.realloc(NULL, size);
        if (unlikely(!p))
            return failed(t, s, size, hook);
        record_alloc(t, s, p, size, hook);
        thread_leave(t);
        return p;
    }
    uint32_t stack = record_stack(t, s);
    if (!record_room(t, 6)) {
        void *p = real.realloc(old, size);
        thread_leave(t);
        return p;
    }
    uint64_t before = record_begin(t);
    void *p = real.realloc(old, size);
    if (likely(p)) {
        uint64_t after = clock_ordered();
        uint64_t at = record_reserve(t, 6);
        record_word(t, at, before);
        record_word(t, at + 1, WIRE_WORD1(WIRE_REALLOC, hook, (uint64_t)old));
        record_word(t, at + 2, stack);
        record_word(t, at + 3, size);
        record_word(t, at + 4, (uint64_t)p);
        record_word(t, at + 5, after);
    } else if (size == 0) { /* glibc: freed */
        resized_to_nothing(t, before, old, stack, hook);
    }
    record_end(t);
    if (unlikely(!p && size))
        return failed(t, s, size, hook);
    thread_leave(t);
    return p;
}

/* Where only some blocks are recorded: the old one and the new one may be of them or not. */
static __attribute__((noinline)) void *resize_thinned(struct thread *t, struct unwind_state s, void *old, size_t size,
                                                      unsigned hook, enum thread_entry entry)
{
    int is_chosen = entry == ENTERED_CHOSEN, was_chosen = old && thin_dies(old);
    uint32_t stack = is_chosen ? record_stack(t, s) : 0;
    int is_told = (is_chosen || was_chosen) && record_room(t, 6);
    uint64_t before = is_told ? record_begin(t) : 0;
    void *p = real.realloc(old, size);
    if (p ? is_chosen : size && was_chosen)
        thin_lives(p ? p : old);
    if (is_told && p && is_chosen) {
        uint64_t after = clock_ordered(), at = record_reserve(t, 6);
        record_word(t, at, before);
        record_word(t, at + 1, WIRE_WORD1(WIRE_REALLOC, hook, (uint64_t)old));
        record_word(t, at + 2, stack);
        record_word(t, at + 3, size);
        record_word(t, at + 4, (uint64_t)p);
        record_word(t, at + 5, after);
    } else if (is_told && was_chosen && (p || !size)) {
        uint64_t at = record_reserve(t, 2);
        record_word(t, at, before);
        record_word(t, at + 1, WIRE_WORD1(WIRE_FREE, hook, (uint64_t)old));
    }
    if (is_told)
        record_end(t);
    if (unlikely(!p && size && entry != ENTERED_PAUSED))
        return failed(t, s, size, hook);
    thread_leave(t);
    return p;
}

/* In a pause: what the old block was is told, where that may be of use, but not the new one. */
static __attribute__((noinline)) void *resize_in_pause(struct thread *t, void *old, size_t size, unsigned hook)
{
    uint32_t pause = pause_now();
    int is_told = old && !(pause && pause_is_unseen(pause, old)) && record_room(t, 2);
    uint64_t before = is_told ? record_begin(t) : 0;
    void *p = real.realloc(old, size);
    if (is_told) {
        if (p || !size) {
            uint64_t at = record_reserve(t, 2);
            record_word(t, at, before);
            record_word(t, at + 1, WIRE_WORD1(WIRE_FREE, hook, (uint64_t)old));
        }
        record_end(t);
    }
    return born_in_pause(t, p);
}

static __attribute__((noinline)) void *resize_apart(struct thread *t, struct unwind_state s, void *old, size_t size,
                                                    unsigned hook, enum thread_entry entry)
{
    return thin.is_on ? resize_thinned(t, s, old, size, hook, entry) : resize_in_pause(t, old, size, hook);
}

#define HOOK_REALLOC_ENTERED(enter)                                                                                    \
    struct thread *t = &self;                                                                                          \
    struct unwind_state s;                                                                                             \
    UNWIND_HERE(s);                                                                                                    \
    NEED(realloc);                                                                                                     \
    enum thread_entry entry = enter(t, s, size);                                                                       \
    if (unlikely(entry != ENTERED))                                                                                    \
        return entry == ENTER_NOT ? real.realloc(old, size) : resize_apart(t, s, old, size, WIRE_HOOK_realloc, entry); \
    return resize(t, s, old, size, WIRE_HOOK_realloc)

static __attribute__((noinline)) void *realloc_open(void *old, size_t size)
{
    HOOK_REALLOC_ENTERED(thread_enter_birth_open);
}

static __attribute__((noinline)) void *realloc_left_out(void *old, size_t size)
{
    HOOK_ALLOC_LEFT_OUT(realloc, !size, size, old, size);
}

static __attribute__((noinline)) void *realloc_apart(void *old, size_t size)
{
    HOOK_REALLOC_ENTERED(thread_enter_birth_slow);
}

EXPORT void *realloc(void *old, size_t size)
{
    if (likely(gate.on == GATE_OPEN))
        return realloc_open(old, size);
    return thread_leaves_out_death(&self, old) && thread_passes_birth(&self, size) ? realloc_left_out(old, size)
                                                                                   : realloc_apart(old, size);
}

EXPORT void *reallocarray(void *old, size_t count, size_t size)
{
    struct thread *t = &self;
    struct unwind_state s;
    UNWIND_HERE(s);
    NEED(reallocarray);
    size_t bytes = product(count, size);
    enum thread_entry entry = thread_enter_birth(t, s, bytes);
    if (unlikely(entry == ENTER_NOT))
        return real.reallocarray(old, count, size);
    if (likely(bytes != SIZE_MAX))
        return likely(entry == ENTERED) ? resize(t, s, old, bytes, WIRE_HOOK_reallocarray)
                                        : resize_apart(t, s, old, bytes, WIRE_HOOK_reallocarray, entry);
    void *p = real.reallocarray(old, count, size); /* its own to refuse, which leaves the old block as it is */
    if (!p && entry != ENTERED_PAUSED)
        return failed(t, s, bytes, WIRE_HOOK_reallocarray);
    thread_leave(t);
    return p;
}

/* The record comes before the real free: the address may be another thread's the instant after. free keeps errno. */
#define HOOK_FREE_ENTERED(enter, hook, call)                                                                           \
    struct thread *t = &self;                                                                                          \
    struct unwind_state s;                                                                                             \
    UNWIND_HERE(s);                                                                                                    \
    NEED(free);                                                                                                        \
    enum thread_entry entry = p ? enter(t, s, p, hook) : ENTER_NOT;                                                    \
    if (unlikely(entry == ENTER_NOT)) {                                                                                \
        call;                                                                                                          \
        return;                                                                                                        \
    }                                                                                                                  \
    if (likely(entry == ENTERED))                                                                                      \
        record_free(t, p, hook);                                                                                       \
    call;                                                                                                              \
    thread_leave(t)

#define HOOK_FREE(name, hook, call) HOOK_FREE_ENTERED(record_enter_death, hook, call)

static __attribute__((noinline)) void free_open(void *p)
{
    HOOK_FREE_ENTERED(record_enter_death_open, WIRE_HOOK_free, real.free(p));
}

static __attribute__((noinline)) void free_left_out(void *p)
{
    struct thread *t = &self;
    thread_enter_thinned(t, callers_sp(__builtin_frame_address(0)));
    real.free(p);
    thread_leave_thinned(t);
}

static __attribute__((noinline)) void free_apart(void *p)
{
    HOOK_FREE_ENTERED(record_free_enter, WIRE_HOOK_free, real.free(p));
}

EXPORT void free(void *p)
{
    if (likely(gate.on == GATE_OPEN))
        free_open(p);
    else if (thread_leaves_out_death(&self, p))
        free_left_out(p);
    else
        free_apart(p);
}

/* Gone from glibc since 2.26; programs older than that still call it. */
EXPORT void cfree(void *p)
{
    HOOK_FREE(cfree, WIRE_HOOK_cfree, real.free(p));
}

static void call_free_sized(void *p, size_t size)
{
    if (real.free_sized)
        real.free_sized(p, size);
    else
        real.free(p);
}

static void call_free_aligned_sized(void *p, size_t alignment, size_t size)
{
    if (real.free_aligned_sized)
        real.free_aligned_sized(p, alignment, size);
    else
        real.free(p);
}

/* C23. Older C libraries lack them; there they are free. */
EXPORT void free_sized(void *p, size_t size)
{
    HOOK_FREE(free_sized, WIRE_HOOK_free_sized, call_free_sized(p, size));
}

EXPORT void free_aligned_sized(void *p, size_t alignment, size_t size)
{
    HOOK_FREE(free_aligned_sized, WIRE_HOOK_free_aligned_sized, call_free_aligned_sized(p, alignment, size));
}
