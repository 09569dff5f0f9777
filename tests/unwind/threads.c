/*
 * threads.c A.so B.so ROUNDS: threads that load, call and unload one of two libraries each while others unwind and
 * fork. Every stack must have the depth and the outermost and innermost addresses that this thread's own loading gives
 * it. Exit status 0 when all is well.
 */
#include "../../profiler/preload/unwind/rules.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned loads, unloads, bad, taken;

int record_module_load(uint32_t number, uint64_t start, uint64_t end, uint64_t bias, const uint8_t *build_id,
                       size_t build_id_bytes, const char *path)
{
    (void)number, (void)start, (void)end, (void)bias, (void)build_id, (void)build_id_bytes, (void)path;
    __atomic_fetch_add(&loads, 1, __ATOMIC_RELAXED);
    return 1;
}

void record_module_unload(uint32_t number)
{
    (void)number;
    __atomic_fetch_add(&unloads, 1, __ATOMIC_RELAXED);
}

#define BAD(...) (__atomic_fetch_add(&bad, 1, __ATOMIC_RELAXED) < 10 ? printf(__VA_ARGS__) : 0)

static __thread struct unwind_thread *thread;
static __thread uint64_t library_start, library_end, usual_depth, outermost;

static __attribute__((noinline)) void take(void)
{
    static __thread uint64_t pcs[UNWIND_FRAMES];
    struct unwind_state s;
    struct unwind_stack out;
    UNWIND_HERE(s);
    unwind_stack(thread, s, &out);
    unwind_addresses(thread, pcs);
    usual_depth = usual_depth ? usual_depth : out.depth;
    outermost = outermost ? outermost : pcs[out.depth - 1];
    if (out.flags || out.depth != usual_depth || pcs[out.depth - 1] != outermost)
        BAD("flags %u, depth %u, not %lu, outermost %lx\n", out.flags, out.depth, (unsigned long)usual_depth,
            (unsigned long)pcs[out.depth - 1]);
    if (pcs[0] < library_start || pcs[0] >= library_end)
        BAD("innermost %lx is not in %lx-%lx\n", (unsigned long)pcs[0], (unsigned long)library_start,
            (unsigned long)library_end);
    __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
}

struct work {
    const char *path;
    int rounds;
};

static void *run(void *argument)
{
    struct work *w = argument;
    uint64_t self;
    __asm__("mov %%fs:0, %0" : "=r"(self));
    thread = calloc(1, unwind_thread_bytes());
    unwind_thread_init(thread, self, 512);
    for (int i = 0; i < w->rounds; i++) {
        void (*f)(void (*)(void));
        struct dl_find_object o;
        void *library = dlopen(w->path, RTLD_NOW);
        unwind_after_dlclose();
        *(void **)&f = dlsym(library, "plugin_call");
        _dl_find_object(*(void **)&f, &o);
        library_start = (uint64_t)o.dlfo_map_start;
        library_end = (uint64_t)o.dlfo_map_end;
        for (int k = 0; k < 20; k++)
            f(take);
        if (i % 50 == 0) {
            int status;
            pid_t child = fork();
            if (child == 0) {
                unwind_after_fork();
                unwind_thread_init(thread, self, 512);
                loads = bad = 0;
                f(take);
                _exit(bad || loads < 3); /* the library, this program, libc */
            }
            if (waitpid(child, &status, 0) != child || status != 0)
                BAD("child: status %x\n", (unsigned)status);
        }
        dlclose(library);
        unwind_after_dlclose();
    }
    free(thread);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t id[4];
    struct work work[4];
    if (argc != 4)
        return 2;
    for (int i = 0; i < 4; i++) {
        work[i] = (struct work){argv[1 + (i & 1)], atoi(argv[3])};
        if (pthread_create(&id[i], NULL, run, &work[i]))
            return 2;
    }
    for (int i = 0; i < 4; i++)
        pthread_join(id[i], NULL);
    printf("stacks %u, loads %u, unloads %u, bad %u\n", taken, loads, unloads, bad);
    return bad != 0 || taken != 4u * 20 * (unsigned)work[0].rounds;
}
