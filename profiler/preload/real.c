#include "real.h"

#include <elf.h>
#include <link.h>

extern struct r_debug _r_debug;
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

struct real real;
static int real_ready;

/* What a symbol look-up needs of one loaded object. */
struct object {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *sysv_hash;
    const ElfW(Half) * versions;
    ElfW(Addr) base;
};

static int same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static int object_read(const struct link_map *map, struct object *o)
{
    *o = (struct object){.base = map->l_addr};
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        /* ld.so has relocated these in place, but for the vDSO, whose page is read-only */
        const void *p = (const void *)(d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr : d->d_un.d_ptr);
        switch (d->d_tag) {
        case DT_SYMTAB:
            o->symbols = p;
            break;
        case DT_STRTAB:
            o->strings = p;
            break;
        case DT_GNU_HASH:
            o->gnu_hash = p;
            break;
        case DT_HASH:
            o->sysv_hash = p;
            break;
        case DT_VERSYM:
            o->versions = p;
            break;
        }
    }
    return o->symbols && o->strings && (o->gnu_hash || o->sysv_hash);
}

static void *symbol_address(const struct object *o, uint32_t i, const char *name)
{
    const ElfW(Sym) *s = &o->symbols[i];
    unsigned type = ELF64_ST_TYPE(s->st_info);
    if (s->st_shndx == SHN_UNDEF || ELF64_ST_BIND(s->st_info) == STB_LOCAL || !same(o->strings + s->st_name, name))
        return NULL;
    if (o->versions && o->versions[i] & 0x8000) /* a hidden, older version */
        return NULL;
    void *p = (void *)(o->base + s->st_value);
    if (type == STT_GNU_IFUNC)
        return ((void *(*)(void))p)();
    return type == STT_FUNC || type == STT_NOTYPE ? p : NULL;
}

static void *find_gnu(const struct object *o, const char *name)
{
    const uint32_t *h = o->gnu_hash;
    uint32_t bucket_count = h[0], first = h[1], bloom_words = h[2];
    const uint32_t *buckets = h + 4 + bloom_words * 2, *chain = buckets + bucket_count;
    uint32_t hash = 5381;
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        hash = hash * 33 + *p;
    if (!bucket_count)
        return NULL;
    uint32_t i = buckets[hash % bucket_count];
    if (i < first)
        return NULL;
    for (;; i++) {
        uint32_t c = chain[i - first];
        void *p = (c | 1) == (hash | 1) ? symbol_address(o, i, name) : NULL;
        if (p || c & 1)
            return p;
    }
}

static void *find_sysv(const struct object *o, const char *name)
{
    for (uint32_t i = 0; i < o->sysv_hash[1]; i++) {
        void *p = symbol_address(o, i, name);
        if (p)
            return p;
    }
    return NULL;
}

static void *find_in(const struct link_map *map, const char *name)
{
    struct object o;
    if (!object_read(map, &o))
        return NULL;
    return o.gnu_hash ? find_gnu(&o, name) : find_sysv(&o, name);
}

void *real_find_in(const struct link_map *map, const char *name)
{
    return find_in(map, name);
}

/* The first definition after this library in load order: what RTLD_NEXT means. */
static void *find_next(const char *name)
{
    const struct link_map *map = _r_debug.r_map;
    while (map && map->l_ld != _DYNAMIC)
        map = map->l_next;
    for (map = map ? map->l_next : NULL; map; map = map->l_next) {
        void *p = find_in(map, name);
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
#define X(name, type, args) real.name = (type(*) args)find_next(#name);
    REAL_FUNCTIONS(X)
#undef X
    real.program_has_malloc = _r_debug.r_map && find_in(_r_debug.r_map, "malloc") != NULL;
    struct dl_find_object a, b;
    real.malloc_is_libc = real.mallinfo2 && _dl_find_object((void *)real.malloc, &a) == 0 &&
                          _dl_find_object((void *)real.fork, &b) == 0 && a.dlfo_link_map == b.dlfo_link_map;
    __atomic_store_n(&real_ready, 1, __ATOMIC_RELEASE);
}
