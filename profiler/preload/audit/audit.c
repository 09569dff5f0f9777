/*
 * libmemprof_audit.so: memprof run --deepbind, --cuda-delivery=audit. The dynamic loader's auditor, in a namespace of
 * its own, without any library: it sees how each reference to the CUDA driver is bound, those by dlsym included, and
 * each call of the C library's allocator, and puts libmemprof.so's function of the same name in its place. So it
 * reaches libraries loaded with RTLD_DEEPBIND, which look into the driver and the C library before any preloaded
 * library and call libc's own dlsym. References of libmemprof.so itself, of the driver and of the C library stay as
 * they are, and so do other namespaces (dlmopen): their driver and C library are others. What dlsym gives of the C
 * library stays too: a preloaded library that asks for the next malloc must not get the one before it.
 */
#include "../elf_find.h"

#include <link.h>

#define EXPORT __attribute__((visibility("default")))

enum { OTHER = 1, HOOKS, DRIVER, LIBC };
static const struct link_map *hooks; /* libmemprof.so, once it is loaded */

/* What is hooked of the C library's memory. */
static const char *const memory[] = {
#define HOST_heap(name) #name,
#define HOST_map(name)  #name,
#define HOST_none(name)
#define HOST_device(name)
#define HOST_managed(name)
#define HOST_pinned(name)
#define HOST_pool(name)
#define HOST_array(name)
#define HOST_vmm(name)
#define HOST_sub(name)
#define X(name, kind) HOST_##kind(name)
#include "../../wire_hooks.def"
#undef X
};

static int is_memory(const char *name)
{
    for (unsigned i = 0; i < sizeof memory / sizeof *memory; i++)
        if (elf_same(name, memory[i]))
            return 1;
    return 0;
}

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
    if (begins(name, "libc.so.")) {
        *cookie = LIBC;
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
    if (hooks && *from == OTHER && *to == LIBC && !(*flags & LA_SYMB_DLSYM) && is_memory(name)) {
        void *hook = elf_find(hooks, name);
        if (hook)
            return (uintptr_t)hook;
    }
    return symbol->st_value;
}
