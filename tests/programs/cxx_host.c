/* A C program that loads C++ plug-ins, each for itself, uses them all, unloads them, and does that three times. Prints
 * what each says of its operator new, and whether the program itself could find one. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLUGINS_MAX = 8, ROUNDS = 3 };
struct plugin {
    void *handle;
    void (*work)(void);
    void (*tell)(int *handled, int *own);
};

static void *need(void *found)
{
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return found;
}

static void load(struct plugin *p, const char *path)
{
    p->handle = need(dlopen(path, RTLD_NOW | RTLD_LOCAL));
    *(void **)&p->work = need(dlsym(p->handle, "plugin_work"));
    *(void **)&p->tell = need(dlsym(p->handle, "plugin_tell"));
}

int main(int argc, char **argv)
{
    struct plugin all[PLUGINS_MAX];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 1; i < argc && i <= PLUGINS_MAX; i++)
            load(&all[i - 1], argv[i]);
        for (int i = 1; i < argc && i <= PLUGINS_MAX; i++)
            all[i - 1].work();
        for (int i = 1; i < argc && i <= PLUGINS_MAX; i++) {
            int handled, own;
            all[i - 1].tell(&handled, &own);
            printf("%d: handled %d own %d\n", i, handled, own);
            dlclose(all[i - 1].handle);
        }
    }
    printf("operator new for all: %s\n", dlsym(RTLD_DEFAULT, "_Znwm") ? "yes" : "no");
    return 0;
}
