/*
 * life WHAT: a program that treats the driver badly, or as old programs do. What it prints must not depend on memprof.
 *   fork      forks after cuInit; both go on
 *   close     closes the driver after use, calls on through pointers that it kept, and opens it again
 *   threads   many threads, each with its own default stream
 *   unused    loads the driver and asks for nothing
 *   newer     asks a driver that is newer than memprof (newer.c)
 *   missed    uses the driver through pointers that no hook can stand in front of
 */
#include "../include/cuda_abi.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static CUresult (*init)(unsigned), (*retain)(CUcontext *, int), (*set)(CUcontext), (*alloc)(CUdeviceptr *, size_t),
    (*release)(CUdeviceptr), (*alloc_async)(CUdeviceptr *, size_t, CUstream), (*free_async)(CUdeviceptr, CUstream);

static void *driver;

static void find(void *(*look)(const char *))
{
    *(void **)&init = look("cuInit");
    *(void **)&retain = look("cuDevicePrimaryCtxRetain");
    *(void **)&set = look("cuCtxSetCurrent");
    *(void **)&alloc = look("cuMemAlloc_v2");
    *(void **)&release = look("cuMemFree_v2");
    *(void **)&alloc_async = look("cuMemAllocAsync_ptsz");
    *(void **)&free_async = look("cuMemFreeAsync_ptsz");
}

static void *by_dlsym(const char *name)
{
    return dlsym(driver, name);
}

/* As a loader of its own does: by the driver's symbol table. */
static void *by_table(const char *name)
{
    const struct link_map *map = driver;
    const Elf64_Sym *symbols = NULL;
    const char *strings = NULL;
    for (const Elf64_Dyn *d = map->l_ld; d->d_tag; d++) {
        if (d->d_tag == DT_SYMTAB)
            symbols = (const Elf64_Sym *)d->d_un.d_ptr;
        if (d->d_tag == DT_STRTAB)
            strings = (const char *)d->d_un.d_ptr;
    }
    for (const Elf64_Sym *s = symbols + 1; (const char *)s < strings; s++)
        if (strcmp(strings + s->st_name, name) == 0)
            return (void *)(map->l_addr + s->st_value);
    return NULL;
}

static int use(void)
{
    CUdeviceptr p = 0;
    CUresult result = alloc(&p, 4096);
    return (int)(result ? result : release(p));
}

static CUcontext context;

static void *thread(void *unused)
{
    CUdeviceptr p[20];
    if (set(context))
        return (void *)1;
    for (int i = 0; i < 20; i++)
        if (alloc_async(&p[i], 1000, NULL))
            return (void *)1;
    for (int i = 0; i < 20; i++)
        if (free_async(p[i], NULL))
            return (void *)1;
    return unused;
}

static int newer(void)
{
    CUresult (*proc)(const char *, void **, int, cuuint64_t, int *);
    CUresult (*v2)(CUdeviceptr *, size_t), (*v3)(CUdeviceptr *, size_t, cuuint64_t),
        (*async)(CUdeviceptr *, size_t, CUstream);
    void *future, *again;
    CUdeviceptr p;
    int status;
    *(void **)&proc = dlsym(driver, "cuGetProcAddress_v2");
    printf("proc %d\n", proc("cuGetProcAddress", (void **)&proc, 14000, 0, &status));
    for (int i = 0; i < 3; i++)
        printf("v3 %d\n", proc("cuMemAlloc", (void **)&v3, 14000, 0, &status));
    printf("v3 gives %d", v3(&p, 1, 2));
    printf(" %llx\n", p);
    printf("v2 %d\n", proc("cuMemAlloc", (void **)&v2, 13000, 0, &status));
    printf("v2 gives %d", v2(&p, 3));
    printf(" %llx\n", p);
    printf("async %d\n", proc("cuMemAllocAsync", (void **)&async, 12000, 0, &status));
    printf("async gives %d", async(&p, 4, (CUstream)0x10));
    printf(" %llx\n", p);
    printf("future %d\n", proc("cuFuture", &future, 14000, 0, &status));
    printf("nothing %d\n", proc("cuNothing", &again, 14000, 0, &status));
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver || !*what)
        return 2;
    if (strcmp(what, "unused") == 0)
        return 0;
    if (strcmp(what, "newer") == 0)
        return newer();
    find(strcmp(what, "missed") == 0 ? by_table : by_dlsym);
    printf("init %d\n", init(0));
    printf("retain %d\n", retain(&context, 0));
    printf("set %d\n", set(context));
    printf("use %d\n", use());
    fflush(stdout);
    if (strcmp(what, "fork") == 0) {
        pid_t pid = fork();
        if (pid == 0) {
            printf("child: use %d\n", use());
            printf("child: init %d\n", init(0));
            fflush(stdout);
            free(malloc(77777));
            exit(3);
        }
        int status;
        waitpid(pid, &status, 0);
        printf("child's status %d, parent: use %d\n", WEXITSTATUS(status), use());
    } else if (strcmp(what, "close") == 0) {
        for (int i = 0; i < 3; i++) {
            printf("close %d\n", dlclose(driver));
            driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
            find(by_dlsym);
            /* a driver that was really unloaded begins anew */
            printf("init %d\n", init(0));
            printf("retain %d\n", retain(&context, 0));
            printf("set %d\n", set(context));
            printf("use %d\n", use());
        }
    } else if (strcmp(what, "threads") == 0) {
        pthread_t threads[20];
        void *result;
        for (int i = 0; i < 20; i++)
            pthread_create(&threads[i], NULL, thread, NULL);
        for (int i = 0; i < 20; i++) {
            pthread_join(threads[i], &result);
            printf("thread %d: %ld\n", i, (long)result);
        }
    }
    return 0;
}
