/* Python (libpython, argv[1]) is told of allocations that fail, and ends; more fail then. argv[2] times. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static volatile size_t huge = PTRDIFF_MAX;

static void *find(void *library, const char *name)
{
    void *p = dlsym(library, name);
    if (!p)
        exit(77);
    return p;
}

static void fail(unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        if (malloc(huge - i))
            abort();
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!library)
        return 77;
    void (*initialize)(int) = (void (*)(int))find(library, "Py_InitializeEx");
    int (*finalize)(void) = (int (*)(void))find(library, "Py_FinalizeEx");
    int (*run)(const char *, void *) = (int (*)(const char *, void *))find(library, "PyRun_SimpleStringFlags");
    for (int round = 0; round < (argc > 2 ? atoi(argv[2]) : 1); round++) {
        initialize(0);
        run("import memprof\n"
            "memprof.on_oom(lambda device, size: print(device, int(size), flush=True))\n",
            NULL);
        fail(2);
        run("for i in range(100): pass\n", NULL);
        finalize();
        fail(100); /* nobody is told: more than there is room for */
        puts("ended");
        fflush(stdout);
    }
    return 0;
}
