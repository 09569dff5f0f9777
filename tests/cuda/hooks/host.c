/* host PLUGIN [deep]: a program without CUDA that loads a plugin with RTLD_LOCAL (and RTLD_DEEPBIND) and runs it. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | (argc > 2 ? RTLD_DEEPBIND : 0)) : NULL;
    int (*run)(void) = NULL;
    if (plugin)
        *(void **)&run = dlsym(plugin, "plugin_main");
    if (!run) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    return run();
}
