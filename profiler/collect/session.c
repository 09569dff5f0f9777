#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Free rings keep this much memory in all, for threads to come; pages beyond go back to the system. */
#define SPARE_BYTES_MAX (16u << 20)
/* Of a limited address space, the rings take one of so many parts. */
#define SPACE_PART 4

_Static_assert(sizeof(pthread_mutex_t) <= sizeof((struct wire_control *)0)->owner, "the owner's mutex has its room");
_Static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0, "its futex is its first word");

static pthread_mutex_t *owner(const struct session *s)
{
    return (pthread_mutex_t *)s->control->owner;
}

static int owner_begin(const struct session *s)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    int code = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (!code)
        code = pthread_mutex_init(owner(s), &attributes);
    if (!code)
        code = pthread_mutex_lock(owner(s));
    pthread_mutexattr_destroy(&attributes);
    return code;
}

/* What the kernel holds against those that lack it, and want to look at our files. */
static uint64_t own_capabilities(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &header, data))
        return 0;
    return (uint64_t)data[1].permitted << 32 | data[0].permitted;
}

static void fill_control(struct session *s, const struct session_options *options)
{
    struct wire_control *c = s->control;
    c->version = WIRE_VERSION;
    c->flags = (options->use_tsc ? WIRE_CLOCK_TSC : 0) | (options->follow ? WIRE_FOLLOW : 0) |
               (options->free_stacks ? WIRE_FREE_STACKS : 0) | (options->is_attached ? WIRE_ATTACHED : 0);
    c->free_least_bytes = options->free_least_bytes;
    c->ring_count = s->ring_count;
    c->ring_words = WIRE_RING_WORDS;
    c->proc_count = WIRE_PROCS;
    c->depth_max = options->depth < 1 ? 1 : options->depth > WIRE_STACK_MAX ? WIRE_STACK_MAX : options->depth;
    c->sample_interval = options->sample_interval;
    c->total_bytes = WIRE_TOTAL_BYTES;
    c->uid = geteuid();
    c->capabilities = own_capabilities();
    c->sample_bytes = options->sample_bytes;
    c->least_bytes = options->least_bytes;
    c->sample_seed = options->sample_seed;
    snprintf(c->library_path, sizeof c->library_path, "%s", options->library);
    snprintf(c->session_path, sizeof c->session_path, "/proc/%d/fd/%d", (int)getpid(), s->fd);
    c->free_rings = 1;
    c->pauses = options->is_paused != 0;
    c->has_orders = options->has_orders != 0;
    c->state = WIRE_STATE_ON;
    __atomic_store_n(&c->magic, WIRE_MAGIC, __ATOMIC_RELEASE);
}

/* A limit on the size of files is about files on disks; where we may, it is lifted for this one. */
static int set_size(int fd)
{
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    int code = ftruncate(fd, (off_t)WIRE_TOTAL_BYTES) ? errno : 0;
    setrlimit(RLIMIT_FSIZE, &before);
    errno = code;
    return code ? -1 : 0;
}

/* All rings, of which only those in use cost memory. Where the address space is limited, they may take a part of it. */
static void *map_rings(struct session *s, uint32_t wanted)
{
    const uint64_t ring_bytes = WIRE_RING_WORDS * 8ull;
    struct rlimit space;
    s->ring_count = wanted && wanted < WIRE_RINGS ? wanted : WIRE_RINGS;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
        uint64_t part = space.rlim_cur / SPACE_PART;
        uint64_t most = part > WIRE_DATA_OFFSET ? (part - WIRE_DATA_OFFSET) / ring_bytes : 0;
        if (s->ring_count > most)
            s->ring_count = (uint32_t)most;
    }
    s->mapped_bytes = WIRE_DATA_OFFSET + s->ring_count * ring_bytes;
    errno = ENOMEM;
    if (!s->ring_count)
        return MAP_FAILED;
    return mmap(NULL, s->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd, 0);
}

int session_open(struct session *s, const struct session_options *options, struct error *err)
{
    *s = (struct session){.fd = -1};
    if (strlen(options->library) >= WIRE_PATH_MAX)
        return error_set(err, ENAMETOOLONG, "%s: path too long", options->library);
    s->fd = memfd_create("memprof", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (s->fd < 0)
        return error_set(err, errno, "shared memory: memfd_create: %s", strerror(errno));
    int rc = 0;
    void *p = MAP_FAILED;
    if (set_size(s->fd) == 0)
        p = map_rings(s, options->ring_count);
    if (p == MAP_FAILED)
        rc = error_set(err, errno, "shared memory: %s; is the %s?", strerror(errno),
                       errno == EFBIG ? "size of files limited (ulimit -f)" : "address space limited (ulimit -v)");
    if (rc) {
        session_close(s);
        return rc;
    }
    madvise(p, s->mapped_bytes, MADV_DONTDUMP);
    s->control = p;
    s->procs = (struct wire_proc *)((char *)p + WIRE_PROCS_OFFSET);
    s->rings = (struct wire_ring *)((char *)p + WIRE_HEADERS_OFFSET);
    s->data = (uint64_t *)((char *)p + WIRE_DATA_OFFSET);
    s->kept_words = xcalloc(WIRE_RINGS, sizeof *s->kept_words);
    int code = owner_begin(s);
    if (code) {
        rc = error_set(err, code, "shared memory: robust mutex: %s", strerror(code));
        session_close(s);
        return rc;
    }
    s->owned = 1;
    fill_control(s, options);
    return 0;
}

void session_close(struct session *s)
{
    if (s->control) {
        __atomic_store_n(&s->control->state, WIRE_STATE_OFF, __ATOMIC_RELEASE);
        if (s->owned) /* the kernel must not look for it here when this thread ends */
            pthread_mutex_unlock(owner(s));
        munmap(s->control, s->mapped_bytes);
    }
    if (s->fd >= 0)
        close(s->fd);
    free(s->kept_words);
    *s = (struct session){.fd = -1};
}

int session_is_shared(struct session *s)
{
    /* The kernel refuses to seal a file that somebody may write through a mapping. Nobody seals it but us: a process
     * that opens it would be told that the recording is over. The range stays ours meanwhile. */
    void *base = s->control;
    if (mmap(base, s->mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        return 0;
    int shared = fcntl(s->fd, F_ADD_SEALS, F_SEAL_WRITE) != 0 && errno == EBUSY;
    /* a sealed file has private mappings only; that will do for what is still to be read */
    int sharing = (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_NORESERVE | MAP_FIXED;
    if (mmap(base, s->mapped_bytes, PROT_READ | PROT_WRITE, sharing, s->fd, 0) == MAP_FAILED)
        bug("the shared memory cannot be mapped again");
    return shared;
}

uint32_t session_pops(const struct session *s)
{
    return (uint32_t)(__atomic_load_n(&s->control->free_rings, __ATOMIC_ACQUIRE) >> 32) - s->pushes;
}

/* What was given back lies in front of what nobody had, so that is taken only where nothing was given back: as many
 * rings were ever taken as were in hands at one time at most. That number falls where we give one back, and nowhere
 * else. list: as it was before the next push. */
static void note_hands(struct session *s, uint64_t list)
{
    uint32_t in_hands = (uint32_t)(list >> 32) - 2 * s->pushes;
    if (in_hands > s->ring_count)
        in_hands = s->ring_count;
    if (in_hands > s->ring_end)
        s->ring_end = in_hands;
}

uint32_t session_ring_end(struct session *s)
{
    note_hands(s, __atomic_load_n(&s->control->free_rings, __ATOMIC_ACQUIRE));
    return s->ring_end;
}

void session_ring_taken(struct session *s, uint32_t ring)
{
    s->spare_bytes -= s->kept_words[ring] * 8ull;
    s->kept_words[ring] = 0;
}

void session_free_ring(struct session *s, uint32_t ring, uint64_t words_used)
{
    struct wire_ring *r = &s->rings[ring];
    uint64_t bytes = (words_used < WIRE_RING_WORDS ? words_used : WIRE_RING_WORDS) * 8;
    if (bytes > WIRE_PAGE && s->spare_bytes + bytes > SPARE_BYTES_MAX &&
        fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)(WIRE_DATA_OFFSET + (uint64_t)ring * WIRE_RING_WORDS * 8), WIRE_RING_WORDS * 8) == 0)
        bytes = 0;
    s->kept_words[ring] = (uint32_t)(bytes / 8);
    s->spare_bytes += bytes;
    /* the next thread begins at the ring's start, on pages that are there */
    r->tail = 0;
    r->busy = 0;
    __atomic_store_n(&r->head, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&r->state, WIRE_RING_FREE, __ATOMIC_RELEASE);
    uint64_t old = __atomic_load_n(&s->control->free_rings, __ATOMIC_ACQUIRE);
    do
        r->next_free = (uint32_t)old ? (uint32_t)old : WIRE_RING_LAST;
    while (!__atomic_compare_exchange_n(&s->control->free_rings, &old, ((old >> 32) + 1) << 32 | (ring + 1), 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    note_hands(s, old);
    s->pushes++;
}
