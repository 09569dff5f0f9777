/* dlloop ROUNDS A.so B.so [deep]: loads and unloads two plugins in turns and calls their plugin_work; with `deep`,
 * RTLD_DEEPBIND. Says whether they shared an address. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int shared = 0;
    void *last = NULL;
    if (argc < 4)
        return 2;
    for (int i = 0; i < atoi(argv[1]); i++) {
        void *library = dlopen(argv[2 + i % 2], RTLD_NOW | (argc > 4 ? RTLD_DEEPBIND : 0));
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        void (*work)(void) = (void (*)(void))dlsym(library, "plugin_work");
        shared += (void *)work == last;
        last = (void *)work;
        work();
        dlclose(library);
    }
    fprintf(stderr, "same address %d times\n", shared);
    return 0;
}
