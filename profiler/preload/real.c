#include "real.h"

#include "elf_find.h"

extern struct r_debug _r_debug;
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

struct real real;
static int real_ready;

void *real_find_in(const struct link_map *map, const char *name)
{
    return elf_find(map, name);
}

void *real_find_next(const char *name)
{
    const struct link_map *map = _r_debug.r_map;
    while (map && map->l_ld != _DYNAMIC)
        map = map->l_next;
    for (map = map ? map->l_next : NULL; map; map = map->l_next) {
        void *p = elf_find(map, name);
        if (p)
            return p;
    }
    return NULL;
}

void real_init(void)
{
    if (__atomic_load_n(&real_ready, __ATOMIC_ACQUIRE))
        return;
        /* Two threads may do this at once: they store the same values. */
#define X(name, type, args) real.name = (type(*) args)real_find_next(#name);
#include "real.def"
#undef X
    /* loaded late, as NVTX's tool of a program that is not recorded: libc lies before us in the list */
    for (const struct link_map *map = _r_debug.r_map; map && !real.dlopen; map = map->l_next)
        if (map->l_ld != _DYNAMIC)
            real.dlopen = (void *(*)(const char *, int))elf_find(map, "dlopen");
    real.program_has_malloc = _r_debug.r_map && elf_find(_r_debug.r_map, "malloc") != NULL;
    struct dl_find_object a, b;
    real.malloc_is_libc = real.mallinfo2 && _dl_find_object((void *)real.malloc, &a) == 0 &&
                          _dl_find_object((void *)real.fork, &b) == 0 && a.dlfo_link_map == b.dlfo_link_map;
    __atomic_store_n(&real_ready, 1, __ATOMIC_RELEASE);
}
