/* Finding the driver and its functions, and the hook for a pointer that a look-up gave. */
#include "../real.h"
#include "cuda.h"

#include <dlfcn.h>
#include <link.h>

struct cuda_driver cuda_driver;

static int names_driver(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    static const char soname[] = "libcuda.so";
    (void)bytes;
    (void)unused;
    for (const char *at = info->dlpi_name ? info->dlpi_name : ""; *at; at++) {
        unsigned i = 0;
        while (soname[i] && at[i] == soname[i])
            i++;
        if (!soname[i])
            return 1;
    }
    return 0;
}

/* By soname, so it is found under whatever path it was loaded. From now on it stays: pointers into it are kept here,
 * and cudart closes it where its start fails. */
static void *driver_open(void)
{
    static const char *const names[] = {"libcuda.so.1", "libcuda.so"};
    void *handle = NULL;
    /* dlopen allocates, as the program alone would not; this does not, and holds the loader's lock over its list */
    if (!real.dl_iterate_phdr || !real.dl_iterate_phdr(names_driver, NULL))
        return NULL;
    for (unsigned i = 0; !handle && real.dlopen && i < sizeof names / sizeof *names; i++)
        handle = real.dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    return handle;
}

__attribute__((noinline, force_align_arg_pointer)) int cuda_bind_slow(void)
{
    int saved = errno;
    real_init();
    void *handle = driver_open();
    errno = saved;
    if (!handle)
        return 0;
    /* two threads may do this at once: they store the same */
    for (int i = 0; i < CUDA_SYMBOLS; i++)
        if (!cuda_driver.symbol[i])
            cuda_driver.symbol[i] = real_find_in(handle, cuda_rows[i].symbol);
#define X(name, parameters) cuda_driver.ask.name = (int(*) parameters)real_find_in(handle, #name);
#include "cuda_questions.def"
#undef X
    __atomic_store_n(&cuda_driver.bound, 1, __ATOMIC_RELEASE);
    return 1;
}

static int same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

int cuda_find(const char *symbol)
{
    for (int i = 0; i < CUDA_SYMBOLS; i++)
        if (same(cuda_rows[i].symbol, symbol))
            return i;
    return -1;
}

void *cuda_hook_of(int symbol, const void *genuine)
{
    if (!genuine || genuine != cuda_driver.symbol[symbol])
        return NULL;
    cuda_driver.used = 1;
    return cuda_rows[symbol].hook;
}

/* Other names under which a variant serves, and all names and versions that are known. */
static const struct {
    const char *name;
    uint32_t version;
    int symbol; /* -1: passed through */
} others[] = {
#define CUDA(...)
#define CUDA_ALIAS(symbol, name, version)  {#name, version, CUDA_##symbol},
#define CUDA_PASSED(symbol, name, version) {#name, version, -1},
#include "cuda.def"
};
#define OTHERS (sizeof others / sizeof *others)
/* The newest driver API whose variants are all in cuda.def: above it a name may mean a variant that is not known here.
 */
#define VERSION_KNOWN 13000

/* The newest variant with at most this version; where a name has variants for the thread's own stream, of that sort. */
static int variant(const char *name, uint32_t version, uint32_t per_thread)
{
    int best = -1;
    uint32_t best_version = 0;
    for (uint32_t sort = per_thread; best < 0; sort = 0) {
        for (int i = 0; i < CUDA_SYMBOLS; i++) {
            const struct cuda_row *r = &cuda_rows[i];
            if (r->per_thread == sort && r->version <= version && r->version >= best_version && same(r->name, name)) {
                best = i;
                best_version = r->version;
            }
        }
        if (!sort)
            break;
    }
    for (unsigned i = 0; i < OTHERS; i++)
        if (others[i].version <= version && others[i].version > best_version && same(others[i].name, name)) {
            best = others[i].symbol;
            best_version = others[i].version;
        }
    return best;
}

void *cuda_hook_of_name(const char *name, int version, uint64_t flags, void *genuine, uint64_t *untracked)
{
    int first = -1, named = 0;
    uint32_t per_thread = flags & CU_PROC_PER_THREAD_STREAM ? 1 : 0;
    if (name[0] != 'c' || name[1] != 'u')
        return NULL;
    int wanted = version < 0 ? -1 : variant(name, (uint32_t)version, per_thread);
    if (wanted >= 0 && genuine == cuda_driver.symbol[wanted]) {
        cuda_driver.used = 1;
        return cuda_rows[wanted].hook;
    }
    for (int i = 0; i < CUDA_SYMBOLS; i++) {
        const struct cuda_row *r = &cuda_rows[i];
        if (genuine == r->hook)
            return r->hook;
        int of_name = same(r->name, name);
        named |= of_name;
        if (genuine == cuda_driver.symbol[i] && (first < 0 || of_name))
            first = i;
    }
    /* A function that the driver does not export, or exports under another address. */
    if (first < 0 && wanted >= 0 && version <= VERSION_KNOWN) {
        if (!cuda_driver.symbol[wanted])
            __atomic_store_n(&cuda_driver.symbol[wanted], genuine, __ATOMIC_RELEASE);
        first = wanted;
    }
    if (first >= 0) {
        cuda_driver.used = 1;
        return cuda_rows[first].hook;
    }
    *untracked = named ? (uint64_t)version : 0;
    return NULL;
}

/* The driver was used and no hook was ever reached. */
static int was_missed(void)
{
    int count;
    if (cuda_driver.used || !cuda_bind())
        return 0;
    return cuda_driver.ask.cuDeviceGetCount && cuda_driver.ask.cuDeviceGetCount(&count) != CU_NOT_INITIALIZED;
}

/* Destructors run before those of libraries that were loaded later, so the driver is still whole; an on_exit handler of
 * this library would run after them. */
__attribute__((destructor)) static void library_end(void)
{
    int saved = errno;
    if (gate.on && sys_getpid() == process.pid && was_missed())
        COUNT(cuda_missed, 1);
    errno = saved;
}
