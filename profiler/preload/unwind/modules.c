#include "modules.h"

#include "../../wire.h"
#include "../sys.h"
#include "unwind.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/uio.h>

/* More modules than this at one time: the rest are not announced, so their frames stay without names. */
#define MODULES_MAX 4096u

struct identity {
    uint64_t start, end; /* of the whole mapping */
    const struct link_map *map;
    uint64_t name_hash;
};

struct module {
    struct identity identity;
    struct cfi_image image;
    uint32_t number;
};

/*
 * Written by the holder of `held` only; `version` is odd while it writes, so readers need no lock and see a torn entry
 * for what it is. The lock is never waited for: who does not get it leaves the work to a later look-up (MODULE_PENDING)
 * or to the holder (`sweep_due`); so neither a signal handler nor another thread can deadlock on it.
 */
static struct {
    uint32_t held;
    uint32_t sweep_due;
    uint32_t version;
    uint32_t slots; /* modules[] in use, with free ones (start 0) between */
    uint32_t last_number;
    struct module modules[MODULES_MAX];
    /* holder only; here, because stacks may be small */
    struct module new_module;
    char path[WIRE_PATH_MAX + 1];
    char maps[256];   /* a part of /proc/self/maps */
    uint64_t signals; /* blocked when it came */
} table;

#define NOINLINE __attribute__((noinline))

int memory_readable(uint64_t address)
{
    /* With an impossible `how` the kernel reads the set and then refuses: EINVAL where it could be read, else EFAULT.
     */
    return sys_call6(SYS_rt_sigprocmask, ~0l, (long)address, 0, 8, 0, 0) == -22;
}

static int range_readable(uint64_t start, uint64_t bytes)
{
    for (uint64_t at = start; at < start + bytes; at = (at | 4095) + 1)
        if (!memory_readable(at & ~7ull))
            return 0;
    return memory_readable((start + bytes - 1) & ~7ull);
}

/* --- ELF headers in memory --- */

struct facts {
    struct cfi_image image;
    const uint8_t *build_id;
    size_t build_id_bytes;
};

struct headers {
    const Elf64_Phdr *at;
    unsigned count;
    uint64_t bias;
    uint64_t low, high; /* segments outside are not believed */
};

/* The ELF header at the start of a mapping. */
static NOINLINE int headers_read(uint64_t start, uint64_t end, struct headers *h)
{
    const Elf64_Ehdr *e = (const Elf64_Ehdr *)start;
    uint64_t bytes = end - start;
    if (bytes < sizeof *e || !range_readable(start, sizeof *e))
        return -1;
    if (e->e_ident[0] != 0x7f || e->e_ident[1] != 'E' || e->e_ident[2] != 'L' || e->e_ident[3] != 'F' ||
        e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_phentsize != sizeof(Elf64_Phdr) || e->e_phnum > 256)
        return -1;
    uint64_t size = (uint64_t)e->e_phnum * sizeof(Elf64_Phdr);
    if (size == 0 || e->e_phoff % 8 != 0 || e->e_phoff > bytes || size > bytes - e->e_phoff ||
        !range_readable(start + e->e_phoff, size))
        return -1;
    h->at = (const Elf64_Phdr *)(start + e->e_phoff);
    h->count = e->e_phnum;
    return 0;
}

/* The program headers of a module. Where its segments have gaps between them, the mapping that _dl_find_object knows is
 * one segment, which need not begin with the ELF header: that lies at the load bias, or for the program itself where
 * the kernel says. */
static NOINLINE int headers_elsewhere(const struct identity *id, struct headers *h)
{
    struct dl_find_object o;
    h->low = 0;
    h->high = 1ull << 47;
    if (h->bias && _dl_find_object((void *)h->bias, &o) == 0 && o.dlfo_link_map == id->map &&
        headers_read(h->bias, (uint64_t)o.dlfo_map_end, h) == 0)
        return 0;
    if (id->map->l_name && *id->map->l_name)
        return -1;
    h->at = (const Elf64_Phdr *)getauxval(AT_PHDR);
    h->count = (unsigned)getauxval(AT_PHNUM);
    return h->at && h->count <= 256 && range_readable((uint64_t)h->at, h->count * sizeof *h->at + 1) ? 0 : -1;
}

static int headers_open(const struct identity *id, struct headers *h)
{
    h->bias = id->map->l_addr;
    h->low = id->start;
    h->high = id->end;
    return headers_read(id->start, id->end, h) == 0 ? 0 : headers_elsewhere(id, h);
}

/* The readable segment of the module that holds an address. */
static int segment_of(const struct headers *h, uint64_t address, uint64_t *begin, uint64_t *end)
{
    for (unsigned i = 0; i < h->count; i++) {
        const Elf64_Phdr *p = &h->at[i];
        uint64_t start = p->p_vaddr + h->bias;
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_R) || start < h->low || start > h->high ||
            p->p_memsz > h->high - start || address < start || address >= start + p->p_memsz)
            continue;
        *begin = start;
        *end = start + p->p_memsz;
        return 0;
    }
    return -1;
}

static int note_is_build_id(const Elf64_Nhdr *n)
{
    const char *name = (const char *)(n + 1);
    return n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && name[0] == 'G' && name[1] == 'N' && name[2] == 'U' &&
           name[3] == 0 && n->n_descsz > 0 && n->n_descsz <= 64;
}

static NOINLINE void find_build_id(const struct headers *h, struct facts *f)
{
    for (unsigned i = 0; i < h->count; i++) {
        const Elf64_Phdr *p = &h->at[i];
        uint64_t begin, end, at = p->p_vaddr + h->bias;
        if (p->p_type != PT_NOTE || p->p_memsz > 65536 || at % 4 != 0 || segment_of(h, at, &begin, &end) < 0 ||
            p->p_memsz > end - at || p->p_memsz < sizeof(Elf64_Nhdr) || !range_readable(at, p->p_memsz))
            continue;
        uint64_t align = p->p_align == 8 ? 8 : 4;
        for (uint64_t left = p->p_memsz; left >= sizeof(Elf64_Nhdr);) {
            const Elf64_Nhdr *n = (const Elf64_Nhdr *)at;
            uint64_t name = ((uint64_t)n->n_namesz + align - 1) & ~(align - 1);
            uint64_t data = ((uint64_t)n->n_descsz + align - 1) & ~(align - 1);
            if (name > left || data > left || sizeof *n + name + n->n_descsz > left)
                break;
            if (note_is_build_id(n)) {
                f->build_id = (const uint8_t *)(n + 1) + name;
                f->build_id_bytes = n->n_descsz;
                return;
            }
            uint64_t whole = sizeof *n + name + data;
            if (whole > left)
                break;
            at += whole;
            left -= whole;
        }
    }
}

/* Where .eh_frame is, by the header's pc-relative pointer (the one encoding in use); 0: somewhere else. */
static uint64_t frames_of(const uint8_t *header, uint64_t begin, uint64_t end)
{
    uint64_t at = (uint64_t)header;
    if (at < begin || end - at < 8 || header[0] != 1 || header[1] != 0x1b)
        return 0;
    int32_t offset = (int32_t)((uint32_t)header[4] | (uint32_t)header[5] << 8 | (uint32_t)header[6] << 16 |
                               (uint32_t)header[7] << 24);
    return at + 4 + (uint64_t)(int64_t)offset;
}

static NOINLINE void read_facts(const struct identity *id, const void *eh_frame_header, struct facts *f)
{
    struct headers h;
    uint64_t begin = id->start, end = id->end;
    *f = (struct facts){0};
    int have_headers = headers_open(id, &h) == 0;
    if (have_headers)
        find_build_id(&h, f);
    if (!eh_frame_header)
        return;
    uint64_t at = (uint64_t)eh_frame_header;
    if (have_headers && segment_of(&h, at, &begin, &end) == 0) {
        uint64_t frames = frames_of(eh_frame_header, begin, end), other_begin, other_end;
        if (frames && (frames < begin || frames >= end) && segment_of(&h, frames, &other_begin, &other_end) == 0) {
            begin = other_begin < begin ? other_begin : begin;
            end = other_end > end ? other_end : end;
        }
    }
    if (at < begin || at >= end)
        return;
    f->image = (struct cfi_image){(const uint8_t *)begin, (const uint8_t *)end, eh_frame_header};
}

/* --- the table --- */

#define NAME_HASH 0xcbf29ce484222325ull

static inline uint64_t hash_byte(uint64_t h, char c)
{
    return (h ^ (uint8_t)c) * 0x100000001b3ull;
}

static uint64_t hash_name(const char *name)
{
    uint64_t h = NAME_HASH;
    for (; name && *name; name++)
        h = hash_byte(h, *name);
    return h;
}

static int table_find(const struct identity *id, struct cfi_image *image)
{
    uint32_t version = __atomic_load_n(&table.version, __ATOMIC_ACQUIRE);
    uint32_t slots = __atomic_load_n(&table.slots, __ATOMIC_RELAXED);
    if (version & 1)
        return 0;
    for (uint32_t i = 0; i < slots; i++) {
        const struct module *m = &table.modules[i];
        if (m->identity.start != id->start)
            continue;
        int same = m->identity.end == id->end && m->identity.map == id->map && m->identity.name_hash == id->name_hash;
        *image = m->image;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        return same && __atomic_load_n(&table.version, __ATOMIC_RELAXED) == version;
    }
    return 0;
}

static void table_write(struct module *slot, const struct module *content)
{
    __atomic_store_n(&table.version, table.version + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    *slot = *content;
    __atomic_store_n(&table.version, table.version + 1, __ATOMIC_RELEASE);
}

static void withdraw(struct module *m)
{
    static const struct module none;
    uint32_t number = m->number;
    modules_watch_gone(m->identity.start);
    table_write(m, &none);
    record_module_unload(number);
}

/* While the table is held no signal handler runs: one that leaves by longjmp would leave it held for ever. */
static int try_hold(void)
{
    if (__atomic_load_n(&table.held, __ATOMIC_RELAXED))
        return 0;
    uint64_t before = sys_signals_set(SYS_SIGNALS_OTHERS);
    if (!__atomic_exchange_n(&table.held, 1, __ATOMIC_ACQUIRE)) {
        table.signals = before;
        return 1;
    }
    sys_signals_set(before);
    return 0;
}

long memory_read(const void *from, void *to, size_t bytes)
{
    struct iovec local = {to, bytes}, remote = {(void *)from, bytes};
    return sys_call6(SYS_process_vm_readv, sys_getpid(), (long)&local, 1, (long)&remote, 1, 0);
}

/* Whether a module still has its name. Another thread may be closing it meanwhile, so its memory is read through the
 * kernel. Where that is refused the answer is no: then the module is announced once more. */
static int has_name(const struct link_map *map, uint64_t name_hash)
{
    const char *name;
    uint64_t h = NAME_HASH;
    if (memory_read(&map->l_name, &name, sizeof name) != sizeof name)
        return 0;
    for (;;) {
        char part[64];
        size_t bytes = 64 - (uint64_t)name % 64; /* not across a page */
        if (memory_read(name, part, bytes) != (long)bytes)
            return 0;
        for (size_t i = 0; i < bytes; i++) {
            if (!part[i])
                return h == name_hash;
            h = hash_byte(h, part[i]);
        }
        name += bytes;
    }
}

static NOINLINE int is_there(const struct module *m)
{
    struct dl_find_object o;
    return _dl_find_object((void *)m->identity.start, &o) == 0 && o.dlfo_link_map == m->identity.map &&
           (uint64_t)o.dlfo_map_start == m->identity.start && (uint64_t)o.dlfo_map_end == m->identity.end &&
           has_name(m->identity.map, m->identity.name_hash);
}

static int sweep(void)
{
    int gone = 0;
    for (uint32_t i = 0; i < table.slots; i++) {
        struct module *m = &table.modules[i];
        if (m->identity.start == 0 || is_there(m))
            continue;
        withdraw(m);
        gone = 1;
    }
    return gone;
}

/* Lets go of the table, having done what others asked for meanwhile. Rules go before the table does: who comes next
 * finds nothing to do and must not find old rules. */
static NOINLINE void let_go(int gone)
{
    do {
        if (__atomic_exchange_n(&table.sweep_due, 0, __ATOMIC_ACQ_REL))
            gone |= sweep();
        if (gone)
            unwind_modules_changed();
        gone = 0;
        uint64_t signals = table.signals;
        __atomic_store_n(&table.held, 0, __ATOMIC_RELEASE);
        sys_signals_set(signals);
    } while (__atomic_load_n(&table.sweep_due, __ATOMIC_ACQUIRE) && try_hold());
}

/* The file that is mapped at an address: "7f00-7f10 r-xp 00000000 fe:01 1234   /path". Returns the path's length. */
static long mapped_path(uint64_t address)
{
    uint64_t number = 0, start = 0;
    long length = 0, n;
    enum { START, END, REST, PATH, OTHER } part = START;
    int fd = sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (n = sys_read(fd, table.maps, sizeof table.maps)) > 0)
        for (long i = 0; i < n; i++) {
            char c = table.maps[i];
            if (c == '\n') {
                if (part == PATH)
                    goto out;
                part = START;
                number = 0;
            } else if (part == START && c == '-') {
                start = number;
                number = 0;
                part = END;
            } else if (part == END && c == ' ') {
                part = address >= start && address < number ? REST : OTHER;
            } else if (part == START || part == END) {
                number = number << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
            } else if (part == PATH || (part == REST && c == '/')) {
                part = PATH;
                if (length < WIRE_PATH_MAX)
                    table.path[length++] = c;
            }
        }
out:
    if (fd >= 0)
        sys_close(fd);
    return length;
}

static const char *full_path(const char *name, uint64_t start)
{
    if (name && *name == '/')
        return name;
    /* the program itself: where the loader was started with it as an argument (the kernel maps no interpreter then),
     * the link names the loader */
    if ((!name || !*name) && !getauxval(AT_BASE)) {
        long n = mapped_path(start);
        table.path[n] = 0;
        if (n)
            return table.path;
    }
    if (!name || !*name) {
        long n = sys_readlink("/proc/self/exe", table.path, WIRE_PATH_MAX);
        table.path[n > 0 ? n : 0] = 0;
        return table.path;
    }
    long used = 0;
    for (const char *p = name; *p; p++)
        if (*p == '/')
            used = 1;
    if (!used)
        return name; /* linux-vdso.so.1: no file */
    used = sys_call(SYS_getcwd, table.path, WIRE_PATH_MAX, 0);
    if (used <= 1 || table.path[0] != '/')
        return name;
    used--; /* the NUL */
    if (table.path[used - 1] != '/')
        table.path[used++] = '/';
    while (*name && used < WIRE_PATH_MAX)
        table.path[used++] = *name++;
    table.path[used] = 0;
    return table.path;
}

/* Holder only. Whatever lay in the module's range before is gone, even where no dlclose that we saw closed it. */
static int withdraw_overlapping(const struct identity *id)
{
    int gone = 0;
    for (uint32_t i = 0; i < table.slots; i++) {
        struct module *m = &table.modules[i];
        if (m->identity.start != 0 && m->identity.start < id->end && id->start < m->identity.end) {
            withdraw(m);
            gone = 1;
        }
    }
    return gone;
}

/* 0: the announcement found no room in the ring; it is made up at the next miss. */
static NOINLINE int add(const struct identity *id, const struct facts *f)
{
    uint32_t i = 0;
    while (i < table.slots && table.modules[i].identity.start != 0)
        i++;
    if (i == MODULES_MAX)
        return 1;
    struct module *m = &table.new_module;
    *m = (struct module){*id, f->image, ++table.last_number};
    if (!record_module_load(m->number, id->start, id->end, id->map->l_addr, f->build_id, f->build_id_bytes,
                            full_path(id->map->l_name, id->start)))
        return 0;
    table_write(&table.modules[i], m);
    modules_watch_seen(id->map, id->start);
    if (i == table.slots)
        __atomic_store_n(&table.slots, i + 1, __ATOMIC_RELEASE);
    return 1;
}

/* Not inlined: what it needs of the stack is for the few calls that announce. */
static NOINLINE enum module_found announce(const struct identity *id, const void *eh_frame_header,
                                           struct cfi_image *image)
{
    struct facts f;
    read_facts(id, eh_frame_header, &f);
    int gone = 0, announced = try_hold();
    if (announced) {
        if (!table_find(id, image)) {
            gone = withdraw_overlapping(id);
            announced = add(id, &f);
        }
        let_go(gone);
    }
    *image = f.image;
    return announced ? MODULE_KNOWN : MODULE_PENDING;
}

/* The .eh_frame_hdr of the module at an address, or NULL; 0 in *id where there is no module. */
static NOINLINE const void *identify(uint64_t address, struct identity *id)
{
    struct dl_find_object o;
    id->start = 0;
    if (_dl_find_object((void *)address, &o) != 0)
        return NULL;
    *id = (struct identity){(uint64_t)o.dlfo_map_start, (uint64_t)o.dlfo_map_end, o.dlfo_link_map,
                            hash_name(o.dlfo_link_map->l_name)};
    return o.dlfo_eh_frame;
}

enum module_found module_find(uint64_t address, struct cfi_image *image)
{
    struct identity id;
    const void *eh_frame_header = identify(address, &id);
    if (!id.start)
        return MODULE_NONE;
    if (table_find(&id, image))
        return MODULE_KNOWN;
    return announce(&id, eh_frame_header, image);
}

int module_range(uint64_t address, uint64_t *start, uint64_t *end)
{
    struct identity id;
    identify(address, &id);
    *start = id.start;
    *end = id.end;
    return id.start != 0;
}

void modules_sweep(void)
{
    __atomic_store_n(&table.sweep_due, 1, __ATOMIC_RELEASE);
    if (try_hold())
        let_go(0);
    else
        unwind_modules_changed(); /* the holder will sweep, but this thread may not go on with old rules until then */
}

void modules_forget(void)
{
    table.held = 0;
    table.sweep_due = 0;
    table.version = 0;
    table.slots = 0;
    /* numbers go on, so that no module of the child has one of its parent */
}

#define RESTART_TRIES  1000u
#define RESTART_NAP_NS 100000

/* Who holds the table announces a module, for which he may wait for room in a ring. */
void modules_restart(void)
{
    for (unsigned i = 0; i < RESTART_TRIES; i++) {
        if (try_hold()) {
            for (uint32_t k = 0; k < table.slots; k++)
                if (table.modules[k].identity.start)
                    withdraw(&table.modules[k]);
            let_go(1);
            return;
        }
        sys_sleep_ns(RESTART_NAP_NS);
    }
}
