#include "session.h"

#include "door.h"
#include "order.h"
#include "own.h"
#include "thread.h"

#include <fcntl.h>
#include <sys/stat.h>

#define RING_BYTES ((uint64_t)WIRE_RING_WORDS * sizeof(uint64_t))
/* Mapped at the start, where that is no large part of a limited address space: 8 MiB. Threads take the rings of lower
 * numbers first. */
#define RINGS_FIRST 16u
#define FIRST_BYTES (WIRE_DATA_OFFSET + RINGS_FIRST * RING_BYTES)
#define SPACE_PART  4u /* of the address space */

static uint64_t *ring_maps[WIRE_RINGS]; /* kept for the ring's next thread; its present one writes here */
static uint32_t ring_map_count;         /* any thread adds */
static dev_t file_device;               /* of the file that is mapped */
static ino_t file_inode;

static void *session_map_part(int fd, uint64_t offset, uint64_t size_bytes)
{
    long at =
        sys_call6(SYS_mmap, 0, (long)size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (long)offset);
    if (at < 0 && at > -4096)
        return NULL;
    sys_call(SYS_madvise, at, size_bytes, MADV_DONTDUMP);
    return (void *)at;
}

static int session_valid(const struct wire_control *c)
{
    return c->magic == WIRE_MAGIC && c->version == WIRE_VERSION && c->ring_count <= WIRE_RINGS &&
           c->ring_words == WIRE_RING_WORDS && c->proc_count <= WIRE_PROCS && c->depth_max > 0 &&
           c->depth_max <= WIRE_STACK_MAX && c->sample_bytes <= WIRE_SAMPLE_MOST;
}

/* The program is to have what it needs: then each thread maps its own ring. */
int session_has_space(void)
{
    return sys_address_limit() / SPACE_PART >= FIRST_BYTES;
}

int session_has_room(void)
{
    return sys_address_limit() > WIRE_DATA_OFFSET + RING_BYTES;
}

/* The control page and all up to the rings' data, or to the first rings. */
static struct wire_control *map_valid(int fd, uint64_t bytes)
{
    struct wire_control *c = session_map_part(fd, 0, bytes);
    if (c && !session_valid(c)) {
        sys_unmap(c, bytes);
        c = NULL;
    }
    return c;
}

static int is_session_file(int fd, struct stat *st)
{
    return sys_call(SYS_fstat, fd, st, 0) == 0 && S_ISREG(st->st_mode) && (uint64_t)st->st_size == WIRE_TOTAL_BYTES;
}

/* Threads may still be in hooks of a recording before: what they go by is never nothing in between. */
int session_map(const char *path)
{
    struct stat st;
    struct wire_control *c = NULL;
    char *data = NULL;
    int fd = *path ? sys_open(path, O_RDWR | O_CLOEXEC) : door_take();
    if (fd < 0)
        return 0;
    if (is_session_file(fd, &st)) {
        if (session_has_space())
            c = map_valid(fd, FIRST_BYTES);
        if (c)
            data = (char *)c + WIRE_DATA_OFFSET;
        else
            c = map_valid(fd, WIRE_DATA_OFFSET);
    }
    sys_close(fd);
    if (!c)
        return 0;
    for (uint32_t i = 0; process.control && i < WIRE_RINGS; i++)
        ring_maps[i] = NULL;
    ring_map_count = 0;
    file_device = st.st_dev;
    file_inode = st.st_ino;
    process.data = data;
    __atomic_store_n(&process.control, c, __ATOMIC_RELEASE);
    return 1;
}

static struct wire_ring *ring_at(uint32_t i)
{
    return (struct wire_ring *)((char *)process.control + WIRE_HEADERS_OFFSET) + i;
}

struct wire_desk *session_desk(void)
{
    return (struct wire_desk *)((char *)process.control + WIRE_DESK_OFFSET);
}

struct wire_answer *session_answer(const struct wire_ring *ring)
{
    return (struct wire_answer *)((char *)process.control + WIRE_ANSWERS_OFFSET) + (ring - ring_at(0));
}

struct wire_left *session_left(const struct wire_ring *ring)
{
    return (struct wire_left *)((char *)process.control + WIRE_LEFT_OFFSET) + (ring - ring_at(0));
}

/* A shared mapping can be had once more from one that is there, and longer; its part before the ring goes again. That
 * is from the nearest ring below: the kernel counts the part against limits, and of a process that locks its memory
 * reads both in. No file is opened: a filter may kill who does, and is known only once the collector has looked. */
static void *ring_map_again(uint32_t index)
{
    uint32_t least = process.data ? RINGS_FIRST : 0, near = index;
    while (near > least && !ring_maps[near])
        near--;
    char *from = (char *)ring_maps[near];
    if (!from && process.data)
        from = process.data + (uint64_t)--near * RING_BYTES;
    if (!from)
        return NULL;
    uint64_t before = (uint64_t)(index - near) * RING_BYTES;
    long at = sys_call6(SYS_mremap, (long)from, 0, (long)(before + RING_BYTES), MREMAP_MAYMOVE, 0, 0);
    if (at < 0 && at > -4096)
        return NULL;
    sys_unmap((void *)at, before);
    sys_call(SYS_madvise, at + (long)before, RING_BYTES, MADV_DONTDUMP);
    return (char *)at + before;
}

/* The path may be another file's by now, and of this process cannot be opened where it has another root or user. */
static void *ring_map_file(uint32_t index)
{
    struct stat st;
    int fd = process_is_filtered() ? -1 : sys_open(process.control->session_path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    void *words = NULL;
    if (is_session_file(fd, &st) && st.st_dev == file_device && st.st_ino == file_inode)
        words = session_map_part(fd, WIRE_DATA_OFFSET + (uint64_t)index * RING_BYTES, RING_BYTES);
    sys_close(fd);
    return words;
}

static int process_is_locking(void)
{
    return process.slot && __atomic_load_n(&process.slot->is_locking, __ATOMIC_RELAXED);
}

/* A program may limit its address space at any time (RLIMIT_AS), so no more of it is taken than rings are used. */
uint64_t *session_ring_words(const struct wire_ring *ring)
{
    uint32_t index = (uint32_t)(ring - ring_at(0));
    if (process.data && index < RINGS_FIRST)
        return (uint64_t *)(process.data + (uint64_t)index * RING_BYTES);
    if (ring_maps[index])
        return ring_maps[index];
    void *words = process_is_locking() ? ring_map_file(index) : NULL;
    if (!words)
        words = ring_map_again(index);
    if (!words)
        words = ring_map_file(index);
    ring_maps[index] = words;
    if (words)
        __atomic_fetch_add(&ring_map_count, 1, __ATOMIC_RELAXED);
    return words;
}

uint64_t session_addresses(void)
{
    return (process.data ? FIRST_BYTES : WIRE_DATA_OFFSET) +
           __atomic_load_n(&ring_map_count, __ATOMIC_RELAXED) * RING_BYTES;
}

static struct wire_proc *slot_at(uint32_t i)
{
    return (struct wire_proc *)((char *)process.control + WIRE_PROCS_OFFSET) + i;
}

/* From the link "pid:[4026531836]". */
static uint64_t pid_namespace(void)
{
    char link[64];
    uint64_t number = 0;
    long n = sys_readlink("/proc/self/ns/pid", link, sizeof link);
    for (long i = 5; i < n && link[i] >= '0' && link[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(link[i] - '0');
    return number;
}

int session_slot_claim(uint32_t start_kind, uint32_t parent_slot, int parent_pid)
{
    uint32_t count = process.control->proc_count;
    uint64_t own_namespace = pid_namespace();
    for (uint32_t i = 0; i < count; i++) {
        struct wire_proc *p = slot_at(i);
        uint32_t expected = WIRE_PROC_FREE;
        if (__atomic_load_n(&p->state, __ATOMIC_RELAXED) != WIRE_PROC_FREE ||
            !__atomic_compare_exchange_n(&p->state, &expected, WIRE_PROC_CLAIMED, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        /* at once: should we be killed here, the collector must know whose slot it is */
        p->pid_namespace = own_namespace;
        __atomic_store_n(&p->pid, process.pid, __ATOMIC_RELEASE);
        p->parent_pid = parent_pid;
        p->parent_slot = parent_slot;
        p->start_kind = start_kind;
        p->counters = (struct wire_counters){0};
        long n = sys_readlink("/proc/self/exe", p->exe, sizeof p->exe - 1);
        p->exe[n > 0 ? n : 0] = 0;
        int fd = sys_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? 0 : sys_read(fd, p->command, sizeof p->command);
        if (fd >= 0)
            sys_close(fd);
        p->command_bytes = n > 0 ? (uint32_t)n : 0;
        p->start_stamp = start_kind == WIRE_START_FORK && self.fork_stamp ? self.fork_stamp : clock_now();
        process.slot = p;
        process.slot_index = i;
        own_begin();
        order_begin();
        __atomic_store_n(&p->state, WIRE_PROC_LIVE, __ATOMIC_RELEASE);
        return 1;
    }
    __atomic_fetch_add(&process.control->procs_refused, 1, __ATOMIC_RELAXED);
    return 0;
}

struct wire_ring *session_ring_pop(void)
{
    uint64_t *list = &process.control->free_rings;
    uint64_t old = __atomic_load_n(list, __ATOMIC_ACQUIRE);
    for (;;) {
        uint32_t index = (uint32_t)old;
        if (!index || index > process.control->ring_count)
            return NULL;
        struct wire_ring *r = ring_at(index - 1);
        uint32_t link = __atomic_load_n(&r->next_free, __ATOMIC_RELAXED);
        uint32_t next = wire_ring_after(link, index, process.control->ring_count);
        if (__atomic_compare_exchange_n(list, &old, ((old >> 32) + 1) << 32 | next, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return r;
    }
}
