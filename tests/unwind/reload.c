/*
 * reload.c A.so B.so C.so: loads two libraries in turn at the same address, A and B with the unwinder told of each
 * dlclose, A and C without, as where libc itself closes one (then a change is seen once a return address is met that
 * the library before did not have), and compares every stack with libunwind's. Checks what is said of modules, and that
 * a stack through a reused address never has an earlier hash. Prints what happened; exit status 0 when all is well.
 */
#define UNW_LOCAL_ONLY
#include "../../profiler/preload/unwind/rules.h"

#include <dlfcn.h>
#include <libunwind.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_stack_end;

static struct {
    uint32_t number;
    uint64_t start, end;
    char name[256];
    unsigned build_id_bytes;
} loaded[1024];
static unsigned loads, unloads, bad;

#define BAD(...) (bad++ < 10 ? printf(__VA_ARGS__) : 0)

int record_module_load(uint32_t number, uint64_t start, uint64_t end, uint64_t bias, const uint8_t *build_id,
                       size_t build_id_bytes, const char *path)
{
    (void)bias, (void)build_id;
    for (unsigned i = 0; i < 1024; i++)
        if (loaded[i].number && (loaded[i].number == number || (loaded[i].start < end && start < loaded[i].end)))
            BAD("module %u %s overlaps %u %s\n", number, path, loaded[i].number, loaded[i].name);
    for (unsigned i = 0; i < 1024; i++)
        if (!loaded[i].number) {
            loaded[i].number = number;
            loaded[i].start = start;
            loaded[i].end = end;
            loaded[i].build_id_bytes = (unsigned)build_id_bytes;
            snprintf(loaded[i].name, sizeof loaded[i].name, "%s", path);
            break;
        }
    loads++;
    return 1;
}

void record_module_unload(uint32_t number)
{
    unloads++;
    for (unsigned i = 0; i < 1024; i++)
        if (loaded[i].number == number) {
            loaded[i].number = 0;
            return;
        }
    BAD("module %u unloaded, but it is not loaded\n", number);
}

static const char *module_of(uint64_t pc)
{
    for (unsigned i = 0; i < 1024; i++)
        if (loaded[i].number && pc >= loaded[i].start && pc < loaded[i].end)
            return loaded[i].build_id_bytes ? loaded[i].name : "(no build-id)";
    return "(none)";
}

static struct unwind_thread *thread;
static uint64_t last_hash;
static unsigned which, taken;

static __attribute__((noinline)) void take(void)
{
    static uint64_t pcs[UNWIND_FRAMES];
    struct unwind_state s;
    struct unwind_stack out;
    unw_context_t context;
    unw_cursor_t cursor;
    unw_word_t ip = 0;
    UNWIND_HERE(s);
    unwind_stack(thread, s, &out);
    unwind_addresses(thread, pcs);
    if (out.flags)
        BAD("flags %u\n", out.flags);
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    for (uint32_t i = 0; i < out.depth; i++) {
        if (unw_step(&cursor) <= 0 || unw_get_reg(&cursor, UNW_REG_IP, &ip) || ip != pcs[i])
            BAD("frame %u of %u: %lx, libunwind %lx\n", i, out.depth, (unsigned long)pcs[i], (unsigned long)ip);
        if (strcmp(module_of(pcs[i]), "(none)") == 0)
            BAD("frame %u is in no announced module\n", i);
    }
    const char *name = strrchr(module_of(pcs[0]), '/');
    if (!name || name[1] != "abc"[which])
        BAD("innermost module is %s\n", module_of(pcs[0]));
    last_hash = out.hash;
    taken++;
}

static void call(const char *path)
{
    void (*f)(void (*)(void));
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        exit(2);
    }
    *(void **)&f = dlsym(library, "plugin_call");
    f(take);
    f(take);
    dlclose(library);
}

int main(int argc, char **argv)
{
    uint64_t seen[2] = {0, 0};
    if (argc != 4)
        return 2;
    thread = calloc(1, unwind_thread_bytes());
    unwind_thread_init(thread, (uint64_t)__libc_stack_end, 512);
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE);
    for (unsigned round = 0; round < 400; round++) {
        int told = round < 200;
        which = round & 1 ? told ? 1 : 2 : 0;
        call(argv[1 + which]);
        if (last_hash == seen[0] || last_hash == seen[1])
            BAD("round %u: a hash came back\n", round);
        seen[round & 1] = last_hash;
        if (told)
            unwind_after_dlclose();
    }
    printf("stacks %u, loads %u, unloads %u, bad %u\n", taken, loads, unloads, bad);
    /* every load of a library is announced, and withdrawn by the next or by unwind_after_dlclose */
    return bad || taken != 800 || unloads != 399 || loads < 400 + 2 ? 1 : 0;
}
