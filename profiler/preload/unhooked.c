#include "unhooked.h"

#include "elf_find.h"
#include "elf_slots.h"
#include "process.h"
#include "real.h"
#include "record_module.h"

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

static int gives_back(const char *name)
{
    return elf_same(name, "free") || elf_same(name, "realloc");
}

/* Whether an address is in the C library that the program goes by. What that calls itself is not asked for. */
static int is_in_libc(uint64_t address, const struct link_map *caller)
{
    struct dl_find_object there, libc;
    return _dl_find_object((void *)address, &there) == 0 && _dl_find_object((void *)real.fork, &libc) == 0 &&
           there.dlfo_link_map == libc.dlfo_link_map && libc.dlfo_link_map->l_addr != caller->l_addr;
}

/* A slot that was never called through, and is bound at its first call, leads into its own object yet. */
static int is_past_us(const struct link_map *map)
{
    struct elf_object object;
    struct elf_slots called;
    if (!map->l_ld || map->l_ld == _DYNAMIC || !elf_object_read(map, &object))
        return 0;
    elf_slots_read(map, &called);
    for (unsigned i = 0; i < ELF_SLOTS_TABLES; i++)
        for (size_t k = 0; k < called.counts[i]; k++) {
            const ElfW(Rela) *r = &called.tables[i][k];
            if (elf_slots_is_one(r) && gives_back(object.strings + object.symbols[ELF64_R_SYM(r->r_info)].st_name) &&
                is_in_libc(__atomic_load_n((const uint64_t *)(map->l_addr + r->r_offset), __ATOMIC_RELAXED), map))
                return 1;
        }
    return 0;
}

/* Where this library came late it stands before nobody, and writes the slots itself. */
static int may_look(void)
{
    return real.fork && !real_is_late();
}

/* A program may close what it has closed: glibc then finds so in what is left of the map, and answers with an error. */
static int is_loaded(const struct link_map *map)
{
    struct dl_find_object found;
    return map && _dl_find_object(map->l_ld, &found) == 0 && found.dlfo_link_map == map;
}

void unhooked_look_at(struct thread *t, const void *handle)
{
    const struct link_map *map = handle; /* as glibc has it */
    if (is_loaded(map) && may_look() && is_past_us(map) && map->l_name)
        record_module_unhooked(t, map->l_name);
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct link_map map = {.l_addr = info->dlpi_addr}; /* as much of one as is_past_us needs */
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            map.l_ld = (ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    if (info->dlpi_name && is_past_us(&map))
        record_module_unhooked(arg, info->dlpi_name);
    return 0;
}

/* In a forked child the loader's lock may be held for ever; what its parent had opened the parent tells of. */
void unhooked_look(struct thread *t)
{
    if (may_look() && real.dl_iterate_phdr && process.slot && process.slot->start_kind != WIRE_START_FORK)
        real.dl_iterate_phdr(look_at, t);
}
