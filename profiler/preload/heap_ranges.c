/*
 * The main arena begins where the kernel says that the break began, and ends at the break (unless the program moves the
 * break too, and then its memory lies between). The other arenas, which only threads have, lie in heaps of at most 64
 * MiB, each at an address that is a multiple of that, with a header that says how much of it is in use. Nobody has a
 * list of them, so the kernel's list of mappings is read, and headers are believed that fit. What is read may go at any
 * time: the kernel copies it.
 */
#include "heap_ranges.h"

#include "real.h"
#include "record_ring.h"
#include "self_stat.h"
#include "unwind/modules.h"

#include <fcntl.h>

#define HEAP_BYTES   (64ul << 20) /* HEAP_MAX_SIZE of glibc on 64 bits, without huge pages for malloc */
#define RANGES_MAX   512u
#define CHECKS_MAX   4096u /* places looked at in one scan */
#define RECORDS_FAST 8192u /* of a process; then one a second of each range */
#define SCAN_RATIO   100u  /* a scan takes at most 1 % of the time */

enum { MAIN, MAPPED, FIRST_HEAP };

struct heap_header { /* heap_info of glibc */
    uint64_t arena, before, size_bytes, writable_bytes;
};

static struct {
    int32_t busy;
    unsigned count;
    uint64_t start;   /* of the break; 0: not known */
    uint64_t scanned; /* stamp of the end of the last scan; 0: none yet */
    uint64_t cost;    /* of it, in stamps */
    uint32_t records;
    struct heap_range {
        uint64_t address, arena;
        uint64_t size_bytes, told_bytes;
        uint64_t told; /* stamp */
    } range[RANGES_MAX];
    char text[4096];
} heap;

/* --- the break --- */

static void look_at_break(void)
{
    struct heap_range *r = &heap.range[MAIN];
    uint64_t top = real.sbrk ? (uint64_t)real.sbrk(0) : 0;
    r->address = heap.start;
    r->size_bytes = heap.start && top > heap.start ? top - heap.start : 0;
}

/* --- the other arenas --- */

static int is_header(const struct heap_header *h, uint64_t address, uint64_t end)
{
    uint64_t arena_offset = h->arena - address; /* the first heap of an arena holds it, behind the header */
    return h->arena && h->size_bytes && h->size_bytes <= h->writable_bytes && h->writable_bytes <= HEAP_BYTES &&
           (h->size_bytes | h->writable_bytes) % 4096 == 0 && h->writable_bytes <= end - address &&
           (h->before ? h->before % HEAP_BYTES == 0 && arena_offset >= HEAP_BYTES
                      : arena_offset >= sizeof *h && arena_offset <= 128 && arena_offset % 16 == 0);
}

static void found_heap(uint64_t address, const struct heap_header *h)
{
    unsigned i = FIRST_HEAP, unused = heap.count;
    for (; i < heap.count && heap.range[i].address != address; i++)
        if (!heap.range[i].size_bytes && !heap.range[i].told_bytes)
            unused = i; /* it is gone, and that was told */
    if (i == heap.count) {
        i = unused;
        if (i == RANGES_MAX)
            return;
        heap.count += i == heap.count;
        heap.range[i] = (struct heap_range){.address = address};
    }
    heap.range[i].arena = h->arena & ~(HEAP_BYTES - 1);
    heap.range[i].size_bytes = h->size_bytes;
}

static void look_at_mapping(uint64_t start, uint64_t end, unsigned *checks)
{
    uint64_t at = (start + HEAP_BYTES - 1) & ~(HEAP_BYTES - 1);
    for (; at >= start && at < end && *checks < CHECKS_MAX; at += HEAP_BYTES, ++*checks) {
        struct heap_header h;
        if (memory_read((const void *)at, &h, sizeof h) == sizeof h && is_header(&h, at, end))
            found_heap(at, &h);
    }
}

static unsigned hex_digit(char c)
{
    return c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* Lines such as "7f2a14000000-7f2a14021000 rw-p 00000000 00:00 0". */
static void scan_mappings(void)
{
    uint64_t edge[2] = {0, 0};
    unsigned part = 0, checks = 0; /* part: start, end, access, the rest */
    for (unsigned i = FIRST_HEAP; i < heap.count; i++)
        heap.range[i].size_bytes = 0;
    int fd = sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (long n; fd >= 0 && (n = sys_read(fd, heap.text, sizeof heap.text)) > 0;) {
        for (long i = 0; i < n; i++) {
            char c = heap.text[i];
            if (c == '\n') {
                part = 0;
                edge[0] = edge[1] = 0;
            } else if (part < 2 && hex_digit(c) < 16) {
                edge[part] = edge[part] << 4 | hex_digit(c);
            } else if (part < 2) {
                part++;
            } else if (part < 4) { /* 'r', 'w' */
                part = c == (part == 2 ? 'r' : 'w') ? part + 1 : 5;
                if (part == 4)
                    look_at_mapping(edge[0], edge[1], &checks);
            }
        }
    }
    if (fd >= 0)
        sys_close(fd);
}

static void look_at_arenas(int is_last)
{
    uint64_t now = clock_now();
    if ((__libc_single_threaded && heap.count == FIRST_HEAP) ||
        (!is_last && heap.scanned && now - heap.scanned < SCAN_RATIO * heap.cost))
        return;
    scan_mappings();
    heap.scanned = clock_now();
    heap.cost = heap.scanned - now;
}

/* --- all --- */

static void tell(struct thread *t, struct heap_range *r, uint64_t second, int is_last)
{
    uint64_t now = clock_now();
    uint64_t change = r->size_bytes > r->told_bytes ? r->size_bytes - r->told_bytes : r->told_bytes - r->size_bytes;
    int is_late = now - r->told >= second, is_large = change > r->told_bytes / 256;
    if (!change || !(is_last || is_late || (is_large && heap.records < RECORDS_FAST)))
        return;
    uint64_t words[] = {WIRE_WORD1(WIRE_HEAP_RANGE, 0, r->address), r->size_bytes, r->arena};
    record_words(t, words, 4);
    r->told_bytes = r->size_bytes;
    r->told = now;
    heap.records++;
}

void heap_ranges_start(void)
{
    for (unsigned i = 0; i < heap.count; i++)
        heap.range[i] = (struct heap_range){0};
    heap.count = FIRST_HEAP;
    heap.start = heap.scanned = heap.cost = 0;
    heap.records = 0;
    __atomic_store_n(&heap.busy, 0, __ATOMIC_RELEASE);
}

void heap_ranges_tell(struct thread *t, uint64_t mapped_bytes, uint64_t second, int is_last)
{
    if (__atomic_exchange_n(&heap.busy, 1, __ATOMIC_ACQUIRE))
        return;
    if (!heap.start)
        heap.start = self_stat(SELF_STAT_START_BRK, heap.text, sizeof heap.text);
    look_at_break();
    look_at_arenas(is_last);
    if (mapped_bytes != HEAP_MAPPED_SAME)
        heap.range[MAPPED].size_bytes = mapped_bytes;
    for (unsigned i = 0; i < heap.count; i++)
        tell(t, &heap.range[i], second, is_last);
    __atomic_store_n(&heap.busy, 0, __ATOMIC_RELEASE);
}
