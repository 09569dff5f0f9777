/*
 * elf_find.h: a function that one loaded object defines, by its symbol table in memory: dlsym allocates and takes
 * locks.
 */
#ifndef MEMPROF_ELF_FIND_H
#define MEMPROF_ELF_FIND_H

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

/* What a symbol look-up needs of one loaded object. */
struct elf_object {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *sysv_hash;
    const ElfW(Half) * versions;
    ElfW(Addr) base;
};

static inline int elf_same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static inline int elf_object_read(const struct link_map *map, struct elf_object *o)
{
    *o = (struct elf_object){.base = map->l_addr};
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

/* The function of that name, defined here and in its default version. */
static inline int elf_is_symbol(const struct elf_object *o, uint32_t i, const char *name)
{
    const ElfW(Sym) *s = &o->symbols[i];
    unsigned type = ELF64_ST_TYPE(s->st_info);
    return s->st_shndx != SHN_UNDEF && ELF64_ST_BIND(s->st_info) != STB_LOCAL &&
           elf_same(o->strings + s->st_name, name) &&
           !(o->versions && o->versions[i] & 0x8000) && /* a hidden, older version */
           (type == STT_FUNC || type == STT_NOTYPE || type == STT_GNU_IFUNC);
}

static inline const ElfW(Sym) * elf_symbol_gnu(const struct elf_object *o, const char *name)
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
        if ((c | 1) == (hash | 1) && elf_is_symbol(o, i, name))
            return &o->symbols[i];
        if (c & 1)
            return NULL;
    }
}

static inline const ElfW(Sym) * elf_symbol_sysv(const struct elf_object *o, const char *name)
{
    for (uint32_t i = 0; i < o->sysv_hash[1]; i++)
        if (elf_is_symbol(o, i, name))
            return &o->symbols[i];
    return NULL;
}

/* NULL: not defined there. */
static inline const ElfW(Sym) * elf_symbol(const struct elf_object *o, const char *name)
{
    return o->gnu_hash ? elf_symbol_gnu(o, name) : elf_symbol_sysv(o, name);
}

/* An indirect function is resolved. NULL: not defined there. */
static inline void *elf_find(const struct link_map *map, const char *name)
{
    struct elf_object o;
    const ElfW(Sym) *s = elf_object_read(map, &o) ? elf_symbol(&o, name) : NULL;
    void *p = s ? (void *)(o.base + s->st_value) : NULL;
    return s && ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC ? ((void *(*)(void))p)() : p;
}

#endif
