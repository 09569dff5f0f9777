#include "slots.h"

#include "elf_find.h"
#include "elf_slots.h"
#include "real.h"
#include "sys.h"
#include "unwind/modules.h"

#define SLOTS_MAX 65536u
#define PAGE      4096ul

extern struct r_debug _r_debug;
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

struct slot {
    uint64_t *at;
    uint64_t original, hook;
};

static struct slot *slots; /* SLOTS_MAX, mapped at the first patch */
static unsigned slot_count;
static const struct link_map *last_object; /* of the loader's list, when it was last gone through */

/* --- writing them --- */

/* Adds 0 by an atomic operation of the kernel's, which says so where the page may not be written. */
static int is_writable(const uint64_t *at)
{
    static uint32_t nobody;
    const unsigned add_nothing = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
    return sys_call6(SYS_futex, (long)&nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, (long)at, add_nothing) >= 0;
}

static int protect(const uint64_t *at, int protection)
{
    return sys_call(SYS_mprotect, (uint64_t)at & ~(PAGE - 1), PAGE, protection) == 0;
}

/* In one store: other threads call through it meanwhile. Nothing where it is not what it was. */
static int write_slot(uint64_t *at, uint64_t from, uint64_t to)
{
    int was_writable = is_writable(at);
    if (!was_writable && !protect(at, PROT_READ | PROT_WRITE))
        return 0;
    int is_written = __atomic_compare_exchange_n(at, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    if (!was_writable)
        protect(at, PROT_READ);
    return is_written;
}

/* --- which --- */

struct object {
    struct link_map map; /* as much of one as elf_find.h needs */
    const struct dl_phdr_info *info;
    struct elf_slots called;
    uint64_t relro_start, relro_end;
    struct elf_object elf;
};

static int has_prefix(const char *name, const char *prefix)
{
    while (*prefix && *name == *prefix)
        name++, prefix++;
    return !*prefix;
}

/* Not those of GPUs, whose pointers the program has fetched long ago, nor the calls of memprof.h, which look twice at
 * their slot: nothing may take it away in between. dlsym goes by its caller. */
static int is_left_alone(const char *name)
{
    static const char *const prefixes[] = {"cu",    "nvtx",  "InitializeInjection", "_ZN3c10", "memprof_",
                                           "dlsym", "dlvsym"};
    for (unsigned i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (has_prefix(name, prefixes[i]))
            return 1;
    return 0;
}

/* Our function of that name, if we stand before it; 0: none. */
static uint64_t hook_of(const char *name)
{
    static struct elf_object own;
    struct link_map map = {.l_ld = _DYNAMIC};
    struct dl_find_object found;
    if (is_left_alone(name))
        return 0;
    if (!own.symbols) {
        if (_dl_find_object(_DYNAMIC, &found))
            return 0;
        map.l_addr = found.dlfo_link_map->l_addr;
        elf_object_read(&map, &own);
    }
    const ElfW(Sym) *s = elf_symbol(&own, name);
    return s && ELF64_ST_VISIBILITY(s->st_other) == STV_DEFAULT ? own.base + s->st_value : 0;
}

static int is_in_object(const struct object *o, uint64_t address)
{
    for (unsigned i = 0; i < o->info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &o->info->dlpi_phdr[i];
        uint64_t start = o->map.l_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && address >= start && address - start < p->p_memsz)
            return 1;
    }
    return 0;
}

/* Only what leads to the function that our hook goes on to: at once, or through the object's own stub as soon as it is
 * called. An object with an allocator of its own keeps that. */
static int is_ours_to_take(const struct object *o, const char *name, uint64_t value)
{
    if (!value)
        return 0;
    if (value == (uint64_t)real_find_next(name))
        return 1;
    return is_in_object(o, value) && !elf_symbol(&o->elf, name);
}

static int keep(uint64_t *at, uint64_t original, uint64_t hook)
{
    unsigned i = 0;
    while (i < slot_count && slots[i].at != at)
        i++;
    if (i == SLOTS_MAX)
        return 0;
    slots[i] = (struct slot){at, original, hook};
    slot_count += i == slot_count;
    return 1;
}

/* 1: the object's relocation is not over yet. */
static int patch_one(const struct object *o, const ElfW(Rela) * r)
{
    if (!elf_slots_is_one(r))
        return 0;
    const char *name = o->elf.strings + o->elf.symbols[ELF64_R_SYM(r->r_info)].st_name;
    uint64_t hook = hook_of(name), *at = (uint64_t *)(o->map.l_addr + r->r_offset);
    if (!hook || (uint64_t)at % sizeof *at)
        return 0;
    uint64_t page = (uint64_t)at & ~(PAGE - 1);
    if (page >= o->relro_start && page < o->relro_end && is_writable(at))
        return 1;
    uint64_t value = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if (value != hook && is_ours_to_take(o, name, value) && keep(at, value, hook))
        write_slot(at, value, hook);
    return 0;
}

/* 0: it has none that is ours. */
static int read_object(const struct dl_phdr_info *info, struct object *o)
{
    *o = (struct object){.info = info, .map.l_addr = info->dlpi_addr};
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uint64_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_DYNAMIC)
            o->map.l_ld = (ElfW(Dyn) *)at;
        if (p->p_type == PT_GNU_RELRO) { /* as the loader rounds it */
            o->relro_start = at & ~(PAGE - 1);
            o->relro_end = (at + p->p_memsz) & ~(PAGE - 1);
        }
    }
    if (!o->map.l_ld || o->map.l_ld == _DYNAMIC || info->dlpi_addr == _r_debug.r_ldbase ||
        !elf_object_read(&o->map, &o->elf))
        return 0;
    elf_slots_read(&o->map, &o->called);
    return 1;
}

static void remember_last_object(void)
{
    const struct link_map *map = _r_debug.r_map;
    while (map && map->l_next)
        map = map->l_next;
    last_object = map;
}

static int patch_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct object o;
    int *is_pending = arg;
    (void)size;
    if (!last_object)
        remember_last_object(); /* under the lock */
    if (read_object(info, &o))
        for (unsigned i = 0; i < ELF_SLOTS_TABLES; i++)
            for (size_t k = 0; k < o.called.counts[i]; k++)
                *is_pending |= patch_one(&o, &o.called.tables[i][k]);
    return 0;
}

int slots_patch(void)
{
    int is_pending = 0;
    if (!slots)
        slots = sys_map(SLOTS_MAX * sizeof *slots);
    last_object = NULL;
    if (slots && real.dl_iterate_phdr)
        real.dl_iterate_phdr(patch_object, &is_pending);
    return is_pending;
}

int slots_are_new(void)
{
    const struct link_map *next;
    return last_object && (memory_read(&last_object->l_next, &next, sizeof next) != sizeof next || next);
}

/* --- back --- */

static int is_mapped_object(const uint64_t *at)
{
    struct dl_find_object found;
    return _dl_find_object((void *)(uintptr_t)at, &found) == 0 && memory_readable((uint64_t)at);
}

static int restore_all(void)
{
    unsigned left = 0;
    for (unsigned i = 0; i < slot_count; i++) {
        struct slot s = slots[i];
        if (!is_mapped_object(s.at) || __atomic_load_n(s.at, __ATOMIC_ACQUIRE) != s.hook)
            continue;
        if (!write_slot(s.at, s.hook, s.original) && __atomic_load_n(s.at, __ATOMIC_ACQUIRE) == s.hook)
            slots[left++] = s;
    }
    slot_count = left;
    return (int)left;
}

static int restore_under_lock(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)info, (void)size;
    *(int *)arg = restore_all();
    return 1;
}

int slots_restore(void)
{
    int left = 0;
    if (slots && real.dl_iterate_phdr)
        real.dl_iterate_phdr(restore_under_lock, &left);
    return left;
}

void slots_restore_in_child(void)
{
    if (slots)
        restore_all();
}
