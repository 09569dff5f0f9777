/* usage: deep LIBRARY [deep]: blocks that lib_deep.c allocates or frees, 1,000 times each:
 *   100 bytes of its own, freed by it; 12 bytes from its strdup, freed by it; 200 bytes of ours, freed by it; 300 bytes
 * of its own, freed by us: 4,000 blocks, 612,000 bytes, none of them left. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *(*own)(size_t);
static void (*give_back)(void *);
static char *(*copy)(const char *);

static __attribute__((noinline)) void work(void)
{
    for (int i = 0; i < 1000; i++) {
        give_back(own(100));
        give_back(copy("hello world"));
        give_back(malloc(200));
        free(own(300));
    }
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | (argc > 2 ? RTLD_DEEPBIND : 0)) : NULL;
    if (!library) {
        fprintf(stderr, "deep: %s\n", dlerror());
        return 2;
    }
    *(void **)&own = dlsym(library, "own");
    *(void **)&give_back = dlsym(library, "give_back");
    *(void **)&copy = dlsym(library, "copy");
    work();
    return 0;
}
