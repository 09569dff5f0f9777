/*
 * elf_slots.h: the slots through which one loaded object calls functions of others (GOT entries), by its relocations in
 * memory.
 */
#ifndef MEMPROF_ELF_SLOTS_H
#define MEMPROF_ELF_SLOTS_H

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

enum { ELF_SLOTS_TABLES = 2 };

/* Those of functions that are bound at their first call, and of all else. */
struct elf_slots {
    const ElfW(Rela) * tables[ELF_SLOTS_TABLES];
    size_t counts[ELF_SLOTS_TABLES];
};

/* Relative relocations, of which large objects have many, are the first of theirs, and no slots. */
static inline void elf_slots_skip(struct elf_slots *s, size_t relative_count)
{
    for (unsigned i = 0; i < ELF_SLOTS_TABLES; i++)
        s->counts[i] = s->tables[i] ? s->counts[i] : 0;
    if (relative_count > s->counts[1])
        return;
    s->tables[1] += relative_count;
    s->counts[1] -= relative_count;
}

static inline void elf_slots_read(const struct link_map *map, struct elf_slots *s)
{
    size_t relative_count = 0;
    *s = (struct elf_slots){.counts = {0}};
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        const void *p = (const void *)(d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr : d->d_un.d_ptr);
        if (d->d_tag == DT_JMPREL)
            s->tables[0] = p;
        else if (d->d_tag == DT_PLTRELSZ)
            s->counts[0] = d->d_un.d_val / sizeof(ElfW(Rela));
        else if (d->d_tag == DT_RELA)
            s->tables[1] = p;
        else if (d->d_tag == DT_RELASZ)
            s->counts[1] = d->d_un.d_val / sizeof(ElfW(Rela));
        else if (d->d_tag == DT_RELACOUNT)
            relative_count = d->d_un.d_val;
    }
    elf_slots_skip(s, relative_count);
}

/* Whether a relocation is one of a slot. */
static inline int elf_slots_is_one(const ElfW(Rela) * r)
{
    const unsigned type = ELF64_R_TYPE(r->r_info);
    return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}

#endif
