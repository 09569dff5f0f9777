/*
 * Looks driver functions up in every way there is and says what came, one line each: the file that the address lies in,
 * or "none" and what dlerror says after the file's name. With and without memprof the lines must be the same but for
 * libmemprof.so in the place of libcuda.so.1.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void say(const char *how, const char *name, void *p)
{
    Dl_info info;
    const char *error = dlerror();
    if (p && dladdr(p, &info)) {
        const char *slash = strrchr(info.dli_fname, '/');
        printf("%s %s: %s%s\n", how, name, slash ? slash + 1 : info.dli_fname, error ? " and an error" : "");
    } else {
        const char *text = error ? strrchr(error, ':') : NULL;
        printf("%s %s: none%s\n", how, name, text ? text : error ? error : ", no error");
    }
}

static const char *const names[] = {
    "cuMemAlloc_v2",       "cuMemAlloc", "cuMemAllocAsync_ptsz", "cuMemCreate", "cuGetProcAddress",
    "cuGetProcAddress_v2", "cuInit",     "cuMemAllocX",          "cuMem",       "cuMemcpyHtoD_v2_ptds",
    "cudaMalloc",          "malloc",
};
#define NAMES (sizeof names / sizeof *names)

static void all(const char *how, void *handle)
{
    for (unsigned i = 0; i < NAMES; i++)
        say(how, names[i], dlsym(handle, names[i]));
}

typedef int proc1(const char *, void **, int, uint64_t);
typedef int proc2(const char *, void **, int, uint64_t, int *);

static void ask(proc1 *old, proc2 *new, const char *name, int version, uint64_t flags)
{
    void *p = NULL;
    int status = -1;
    char how[64];
    int code = old ? old(name, &p, version, flags) : new (name, &p, version, flags, &status);
    snprintf(how, sizeof how, "%s %d flags %d result %d %d", old ? "v1" : "v2", version, (int)flags, code, status);
    dlerror();
    say(how, name, p);
}

static void ask_all(proc1 *old, proc2 *new)
{
    static const char *const asked[] = {"cuMemAlloc",         "cuMemFreeAsync", "cuGetProcAddress",
                                        "cuMemcpyHtoD",       "cuCtxCreate",    "cuMemcpyBatchAsync",
                                        "cuGraphInstantiate", "cuMemGetInfo",   "cuNothing"};
    static const int versions[] = {2000, 3020, 7000, 11020, 11040, 12000, 12080, 13000, 13010, 20000};
    for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++)
        for (unsigned v = 0; v < sizeof versions / sizeof *versions; v++)
            for (uint64_t flags = 0; flags <= 2; flags++)
                ask(old, new, asked[i], versions[v], flags);
}

int main(int argc, char **argv)
{
    dlerror();
    all("default, not loaded", RTLD_DEFAULT);
    all("program, not loaded", dlopen(NULL, RTLD_NOW));
    all("next, not loaded", RTLD_NEXT);
    void *driver = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        return 1;
    all("handle", driver);
    for (unsigned i = 0; i < NAMES; i++)
        say("version", names[i], dlvsym(driver, names[i], "NOT_THERE_1"));
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    all("libc", libc);
    proc1 *old;
    proc2 *new;
    *(void **)&old = dlsym(driver, "cuGetProcAddress");
    *(void **)&new = dlsym(driver, "cuGetProcAddress_v2");
    dlerror();
    if (old)
        ask_all(old, NULL);
    if (new)
        ask_all(NULL, new);
    /* what stays after dlclose: the program calls through the pointers that it kept */
    int (*init)(unsigned);
    *(void **)&init = dlsym(driver, "cuInit");
    printf("init %d\n", init(0));
    dlclose(driver);
    driver = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    all("default, global", RTLD_DEFAULT);
    all("handle again", driver);
    return 0;
}
