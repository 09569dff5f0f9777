/*
 * libmemprof_audit.so: memprof run --cuda-delivery=audit. The dynamic loader's auditor, in a namespace of its own,
 * without any library: it sees how each reference to the CUDA driver is bound, those by dlsym included, and puts
 * libmemprof.so's function of the same name in its place. So it reaches libraries loaded with RTLD_DEEPBIND, which look
 * into the driver before any preloaded library and call libc's own dlsym. References of libmemprof.so itself and of the
 * driver stay as they are, and so do other namespaces (dlmopen): their driver is another.
 */
#include "../preload/elf_find.h"

#include <link.h>

#define EXPORT __attribute__((visibility("default")))

enum { OTHER = 1, HOOKS, DRIVER };
static const struct link_map *hooks; /* libmemprof.so, once it is loaded */

static int begins(const char *text, const char *with)
{
    while (*with && *text == *with)
        text++, with++;
    return !*with;
}

static const char *base_name(const char *path)
{
    const char *base = path ? path : "";
    for (const char *p = base; *p; p++)
        if (*p == '/')
            base = p + 1;
    return base;
}

EXPORT unsigned la_version(unsigned loader)
{
    return loader < LAV_CURRENT ? loader : LAV_CURRENT;
}

EXPORT unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
    const char *name = base_name(map->l_name);
    *cookie = OTHER;
    if (namespace != LM_ID_BASE)
        return 0;
    if (elf_same(name, "libmemprof.so")) {
        *cookie = HOOKS;
        hooks = map;
        return 0;
    }
    if (begins(name, "libcuda.so")) {
        *cookie = DRIVER;
        return LA_FLG_BINDTO;
    }
    return LA_FLG_BINDFROM;
}

EXPORT uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags,
                              const char *name)
{
    (void)index;
    *flags |= LA_SYMB_NOPLTENTER | LA_SYMB_NOPLTEXIT;
    /* what libmemprof.so exports of such names is the hooks of cuda.def */
    if (hooks && *from == OTHER && *to == DRIVER && begins(name, "cu")) {
        void *hook = elf_find(hooks, name);
        if (hook)
            return (uintptr_t)hook;
    }
    return symbol->st_value;
}
