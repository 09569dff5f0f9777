/* Memory that the program, or an allocator other than glibc's, takes from the kernel itself. glibc's own calls do not
 * pass here. */
#include "oom.h"
#include "process.h"
#include "real.h"
#include "record.h"
#include "record_free.h"
#include "record_python.h"
#include "sys.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#define NEED(name)                                                                                                     \
    do {                                                                                                               \
        if (unlikely(!real.name))                                                                                      \
            real_init();                                                                                               \
    } while (0)

/* 0: do not record; 1: a call of the program; 2: made inside an allocator's call, a segment of that allocator */
static int enter(struct thread *t, struct unwind_state s)
{
    if (unlikely(t->maps_hidden) && thread_is_within(t, s, t->cuda_sp))
        return 0;
    if (thread_enter(t, s))
        return 1;
    return thread_enter_inside(t) ? 2 : 0;
}

/* Before the real call, whether it is recorded or not. */
static inline void memory_goes(void)
{
    __atomic_fetch_add(&unwind_unmaps, 1, __ATOMIC_RELEASE);
}

static uint64_t flags_and_stack(struct thread *t, struct unwind_state s, int entered, unsigned flags)
{
    if (entered == 2)
        return (uint64_t)(flags | WIRE_MAP_SEGMENT) << 32;
    return (uint64_t)flags << 32 | record_stack(t, s);
}

/* The same of what takes mappings away. */
static uint64_t end_of_map(struct thread *t, struct unwind_state s, int entered, unsigned flags)
{
    if (entered == 2)
        return (uint64_t)(flags | WIRE_MAP_SEGMENT) << 32;
    return (uint64_t)flags << 32 | record_free_stack(t, s);
}

/* Whether a mapping of the file takes memory that has no place on a disk: of a memfd, of /dev/shm or another tmpfs, of
 * huge pages, where it is shared; of /dev/zero, as of no file. */
static int is_memory(int fd, int flags)
{
    struct stat file;
    struct statfs system;
    if (process_is_filtered() || sys_call(SYS_fstat, fd, &file, 0))
        return 0;
    if (S_ISCHR(file.st_mode))
        return file.st_rdev == makedev(1, 5);
    return S_ISREG(file.st_mode) && (flags & MAP_TYPE) != MAP_PRIVATE && sys_call(SYS_fstatfs, fd, &system, 0) == 0 &&
           (system.f_type == TMPFS_MAGIC || system.f_type == HUGETLBFS_MAGIC);
}

static inline __attribute__((always_inline)) void *map(struct unwind_state s, void *address, size_t length,
                                                       int protection, int flags, int fd, off_t offset, unsigned hook)
{
    struct thread *t = &self;
    NEED(mmap);
    if (flags & MAP_FIXED)
        memory_goes();
    int entered = enter(t, s);
    void *p = real.mmap(address, length, protection, flags, fd, offset);
    if (!entered)
        return p;
    int saved = errno, is_oom = 0;
    unsigned wire_flags = (flags & MAP_ANONYMOUS || is_memory(fd, flags) ? 0 : WIRE_MAP_FILE) |
                          (protection == PROT_NONE ? WIRE_MAP_RESERVE : 0) |
                          ((flags & MAP_TYPE) == MAP_PRIVATE ? 0 : WIRE_MAP_SHARED);
    if (p != MAP_FAILED) {
        uint64_t second = flags_and_stack(t, s, entered, wire_flags);
        if (entered == 1 && wire_flags == 0 && record_python_is_arena(t, s, length))
            second |= (uint64_t)WIRE_MAP_ARENA << 32;
        uint64_t words[] = {WIRE_WORD1(WIRE_MAP, hook, (uint64_t)p), second, length};
        record_words(t, words, 4);
    } else if (saved == ENOMEM && entered == 1 && protection != PROT_NONE && !(flags & (MAP_HUGETLB | MAP_NORESERVE))) {
        record_oom(t, s, length, hook); /* the others ask for address space or for a favour: no memory is missing */
        is_oom = 1;
    }
    thread_leave(t);
    if (is_oom)
        oom_tell(t, s, WIRE_DEVICE_HOST, length);
    errno = saved;
    return p;
}

EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    return map(s, address, length, protection, flags, fd, offset, WIRE_HOOK_mmap);
}

EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    return map(s, address, length, protection, flags, fd, offset, WIRE_HOOK_mmap64);
}

EXPORT int munmap(void *address, size_t length)
{
    struct thread *t = &self;
    struct unwind_state s;
    UNWIND_HERE(s);
    NEED(munmap);
    /* stamped before the call, so what the kernel will refuse must be known now */
    int entered = (uintptr_t)address % 4096 == 0 && length ? enter(t, s) : 0;
    if (entered) {
        uint64_t words[] = {WIRE_WORD1(WIRE_UNMAP, WIRE_HOOK_munmap, (uint64_t)address), end_of_map(t, s, entered, 0),
                            length};
        record_words(t, words, 4);
    }
    memory_goes();
    int result = real.munmap(address, length);
    if (entered)
        thread_leave(t);
    return result;
}

EXPORT void *mremap(void *old, size_t old_length, size_t length, int flags, ...)
{
    struct thread *t = &self;
    struct unwind_state s;
    UNWIND_HERE(s);
    va_list args;
    va_start(args, flags);
    void *address = flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) ? va_arg(args, void *) : NULL;
    va_end(args);
    NEED(mremap);
    memory_goes();
    int entered = enter(t, s);
    if (!entered)
        return real.mremap(old, old_length, length, flags, address);
    uint64_t stack = flags_and_stack(t, s, entered, flags & MREMAP_DONTUNMAP ? WIRE_MAP_KEEP_OLD : 0);
    int room = record_room(t, 7);
    uint64_t before = room ? record_begin(t) : 0;
    void *p = real.mremap(old, old_length, length, flags, address);
    int saved = errno;
    if (room) {
        if (p != MAP_FAILED) {
            uint64_t after = clock_ordered(), at = record_reserve(t, 7);
            record_word(t, at, before);
            record_word(t, at + 1, WIRE_WORD1(WIRE_REMAP, WIRE_HOOK_mremap, (uint64_t)old));
            record_word(t, at + 2, stack);
            record_word(t, at + 3, old_length);
            record_word(t, at + 4, (uint64_t)p);
            record_word(t, at + 5, length);
            record_word(t, at + 6, after);
        }
        record_end(t);
    }
    /* else: no room at this place */
    int is_oom = p == MAP_FAILED && saved == ENOMEM && entered == 1 && flags & MREMAP_MAYMOVE;
    if (is_oom)
        record_oom(t, s, length, WIRE_HOOK_mremap);
    thread_leave(t);
    if (is_oom)
        oom_tell(t, s, WIRE_DEVICE_HOST, length);
    errno = saved;
    return p;
}

EXPORT int mprotect(void *address, size_t length, int protection)
{
    struct thread *t = &self;
    struct unwind_state s;
    UNWIND_HERE(s);
    NEED(mprotect);
    if (!(protection & PROT_READ))
        memory_goes();
    int entered = enter(t, s);
    int result = real.mprotect(address, length, protection);
    if (entered) {
        int saved = errno;
        if (result == 0) {
            uint64_t words[] = {WIRE_WORD1(WIRE_PROTECT, WIRE_HOOK_mprotect, (uint64_t)address),
                                flags_and_stack(t, s, entered, protection == PROT_NONE ? WIRE_MAP_RESERVE : 0), length};
            record_words(t, words, 4);
        }
        thread_leave(t);
        errno = saved;
    }
    return result;
}

/* System V's shared memory: its size is the segment's. */
static uint64_t segment_bytes(int id)
{
    struct shmid_ds segment;
    return process_is_filtered() || sys_call(SYS_shmctl, id, IPC_STAT, &segment) < 0 ? 0 : segment.shm_segsz;
}

EXPORT void *shmat(int id, const void *address, int flags)
{
    struct thread *t = &self;
    struct unwind_state s;
    UNWIND_HERE(s);
    NEED(shmat);
    if (flags & SHM_REMAP)
        memory_goes();
    int entered = enter(t, s);
    void *p = real.shmat(id, address, flags);
    if (!entered)
        return p;
    int saved = errno;
    uint64_t length = p == (void *)-1 ? 0 : segment_bytes(id);
    if (length) {
        unsigned wire_flags = WIRE_MAP_ATTACH | WIRE_MAP_SHARED;
        uint64_t words[] = {WIRE_WORD1(WIRE_MAP, WIRE_HOOK_shmat, (uint64_t)p),
                            flags_and_stack(t, s, entered, wire_flags), length};
        record_words(t, words, 4);
    }
    thread_leave(t);
    errno = saved;
    return p;
}

/* Stamped before the call, which the kernel refuses where nothing was attached: nothing is known there, then. */
EXPORT int shmdt(const void *address)
{
    struct thread *t = &self;
    struct unwind_state s;
    UNWIND_HERE(s);
    NEED(shmdt);
    int entered = enter(t, s);
    if (entered) {
        uint64_t words[] = {WIRE_WORD1(WIRE_UNMAP, WIRE_HOOK_shmdt, (uint64_t)address),
                            end_of_map(t, s, entered, WIRE_MAP_ATTACH), 0};
        record_words(t, words, 4);
    }
    memory_goes();
    int result = real.shmdt(address);
    if (entered)
        thread_leave(t);
    return result;
}

static void break_moved(struct thread *t, struct unwind_state s, int entered, uint64_t old, uint64_t now, unsigned hook)
{
    uint64_t words[] = {WIRE_WORD1(WIRE_BREAK, hook, now), flags_and_stack(t, s, entered, 0), old};
    record_words(t, words, 4);
}

EXPORT void *sbrk(intptr_t increment)
{
    struct thread *t = &self;
    struct unwind_state s;
    UNWIND_HERE(s);
    NEED(sbrk);
    int entered = increment ? enter(t, s) : 0;
    void *old = real.sbrk(increment);
    if (entered) {
        int saved = errno, is_oom = old == (void *)-1 && saved == ENOMEM && increment > 0;
        if (old != (void *)-1)
            break_moved(t, s, entered, (uint64_t)old, (uint64_t)old + (uint64_t)increment, WIRE_HOOK_sbrk);
        else if (is_oom)
            record_oom(t, s, (size_t)increment, WIRE_HOOK_sbrk);
        thread_leave(t);
        if (is_oom)
            oom_tell(t, s, WIRE_DEVICE_HOST, (size_t)increment);
        errno = saved;
    }
    return old;
}

EXPORT int brk(void *address)
{
    struct thread *t = &self;
    struct unwind_state s;
    UNWIND_HERE(s);
    NEED(brk);
    NEED(sbrk);
    int entered = enter(t, s);
    uint64_t old = entered ? (uint64_t)real.sbrk(0) : 0;
    int result = real.brk(address);
    if (entered) {
        int saved = errno;
        if (result == 0)
            break_moved(t, s, entered, old, (uint64_t)address, WIRE_HOOK_brk);
        thread_leave(t);
        errno = saved;
    }
    return result;
}
