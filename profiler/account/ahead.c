#include "ahead.h"

#include "huge.h"

#include <stdint.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u

void *ahead_map(size_t bytes, int huge)
{
    size_t room = huge ? bytes + HUGE_BYTES : bytes;
    char *map = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    if (huge) {
        char *start = (char *)(((uintptr_t)map + HUGE_BYTES - 1) & ~(uintptr_t)(HUGE_BYTES - 1));
        char *end = (char *)(((uintptr_t)start + bytes + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1));
        if (start > map)
            munmap(map, (size_t)(start - map));
        if (end < map + room)
            munmap(end, (size_t)(map + room - end));
        map = start;
        madvise(map, bytes, MADV_HUGEPAGE);
    }
    return map;
}

/* In steps: both threads take them, and the lock on the address space, and the worker, come free in between. */
static int touch(void *arg)
{
    struct ahead *ahead = arg;
    size_t at = __atomic_fetch_add(&ahead->touched, HUGE_BYTES, __ATOMIC_RELAXED);
    if (at >= ahead->bytes)
        return 0;
    uint64_t before_ns = huge_clock_ns();
    madvise(ahead->memory + at, ahead->bytes - at < HUGE_BYTES ? ahead->bytes - at : HUGE_BYTES, MADV_POPULATE_WRITE);
    if (ahead->is_huge && huge_was_slow(before_ns)) {
        madvise(ahead->memory, ahead->bytes, MADV_NOHUGEPAGE); /* what is there stays */
        __atomic_store_n(&ahead->huge_is_slow, 1, __ATOMIC_RELAXED);
    }
    return 1;
}

void ahead_begin(struct worker *worker, struct ahead *ahead, size_t bytes, int huge)
{
    void *memory = worker && !ahead->memory ? ahead_map(bytes, huge) : NULL;
    if (!memory)
        return;
    *ahead = (struct ahead){.memory = memory, .bytes = bytes, .is_huge = huge};
    ahead->work.run = touch;
    ahead->work.arg = ahead;
    worker_post(worker, &ahead->work);
}

void *ahead_take(struct worker *worker, struct ahead *ahead, int *huge_is_slow)
{
    void *memory = ahead->memory;
    if (memory) {
        while (touch(ahead)) /* what the worker has not come to yet */
            ;
        worker_wait(worker, &ahead->work);
        *huge_is_slow |= ahead->huge_is_slow;
    }
    ahead->memory = NULL;
    return memory;
}

void ahead_drop(struct worker *worker, struct ahead *ahead)
{
    if (!ahead->memory)
        return;
    worker_cancel(worker, &ahead->work);
    munmap(ahead->memory, ahead->bytes);
}
