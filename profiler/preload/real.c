#include "real.h"

#include "elf_find.h"
#include "hooks_new.h"
#include "sys.h"

extern struct r_debug _r_debug;
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

struct real real;
static int real_ready;

void *real_find_in(const struct link_map *map, const char *name)
{
    return elf_find(map, name);
}

static const struct link_map *own_map(void)
{
    const struct link_map *map = _r_debug.r_map;
    while (map && map->l_ld != _DYNAMIC)
        map = map->l_next;
    return map;
}

static void *find_from(const struct link_map *map, const struct link_map *end, const char *name)
{
    for (; map && map != end; map = map->l_next) {
        void *p = elf_find(map, name);
        if (p)
            return p;
    }
    return NULL;
}

int real_is_late(void)
{
    static int known; /* 1: no, 2: yes */
    if (!known) {
        const struct link_map *own = own_map();
        known = own && !find_from(own->l_next, NULL, "gnu_get_libc_version") ? 2 : 1;
    }
    return known == 2;
}

/* Loaded while the program ran, it comes behind all others: theirs are the definitions that the program goes by. */
void *real_find_next(const char *name)
{
    const struct link_map *own = own_map();
    return real_is_late() ? find_from(_r_debug.r_map, own, name) : find_from(own ? own->l_next : NULL, NULL, name);
}

void real_hide(const char *const *names, unsigned count)
{
    const struct link_map *map = own_map();
    struct elf_object o;
    uint64_t start = UINT64_MAX, end = 0;
    if (!map || !elf_object_read(map, &o))
        return;
    for (unsigned i = 0; i < count; i++) {
        const ElfW(Sym) *s = names[i] ? elf_symbol(&o, names[i]) : NULL;
        uint64_t page = (uint64_t)s & ~4095ul, page_end = ((uint64_t)(s + 1) + 4095) & ~4095ul;
        start = s && page < start ? page : start;
        end = s && page_end > end ? page_end : end;
    }
    if (start >= end || sys_call(SYS_mprotect, start, end - start, PROT_READ | PROT_WRITE) != 0)
        return;
    for (unsigned i = 0; i < count; i++) {
        ElfW(Sym) *s = names[i] ? (ElfW(Sym) *)(uintptr_t)elf_symbol(&o, names[i]) : NULL;
        if (s)
            __atomic_store_n(&s->st_other, STV_HIDDEN, __ATOMIC_RELAXED); /* who has just found it may go on with it */
    }
    sys_call(SYS_mprotect, start, end - start, PROT_READ);
}

/* Whether both are of one library. */
static int is_beside(void *a, void *b)
{
    struct dl_find_object of_a, of_b;
    return _dl_find_object(a, &of_a) == 0 && _dl_find_object(b, &of_b) == 0 && of_a.dlfo_link_map == of_b.dlfo_link_map;
}

void real_init(void)
{
    if (__atomic_load_n(&real_ready, __ATOMIC_ACQUIRE))
        return;
        /* Two threads may do this at once: they store the same values. */
#define X(name, type, args) real.name = (type(*) args)real_find_next(#name);
#include "real.def"
#undef X
    real.program_has_malloc = _r_debug.r_map && elf_find(_r_debug.r_map, "malloc") != NULL;
    real.program_has_new = _r_debug.r_map && elf_find(_r_debug.r_map, "_Znwm") != NULL;
    new_find();
    real.malloc_is_libc = real.mallinfo2 && is_beside((void *)real.malloc, (void *)real.fork);
    if (real.malloc_usable_size && !is_beside((void *)real.malloc_usable_size, (void *)real.free))
        real.malloc_usable_size = NULL; /* another allocator's */
    __atomic_store_n(&real_ready, 1, __ATOMIC_RELEASE);
}
