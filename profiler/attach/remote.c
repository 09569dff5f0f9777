#include "remote.h"

#include "../../common/error.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define OBJECTS_MAX  16384u
#define DYNAMIC_MAX  512u
#define HEADERS_MAX  64u
#define CHAIN_MAX    4096u /* symbols looked at in one chain of a hash table */
#define AUXV_MAX     128u
#define PAGE         4096ul
#define SYMBOL_BYTES sizeof(Elf64_Sym)

int remote_read(pid_t pid, uint64_t address, void *to, size_t bytes)
{
    struct iovec local = {to, bytes}, there = {(void *)(uintptr_t)address, bytes};
    return process_vm_readv(pid, &local, 1, &there, 1, 0) == (ssize_t)bytes;
}

int remote_string(pid_t pid, uint64_t address, char *to, size_t room)
{
    size_t n = 0;
    while (n + 1 < room) {
        size_t part = PAGE - (address + n) % PAGE; /* the next page may not be there */
        part = part < room - 1 - n ? part : room - 1 - n;
        if (!remote_read(pid, address + n, to + n, part))
            return 0;
        const char *end = memchr(to + n, 0, part);
        if (end)
            return 1;
        n += part;
    }
    to[n] = 0;
    return 1;
}

/* --- objects --- */

static void read_dynamic(const struct remote *r, struct remote_object *o)
{
    Elf64_Dyn d;
    for (unsigned i = 0; i < DYNAMIC_MAX; i++) {
        if (!remote_read(r->pid, o->dynamic + i * sizeof d, &d, sizeof d) || d.d_tag == DT_NULL)
            return;
        uint64_t p = d.d_un.d_ptr < o->bias ? d.d_un.d_ptr + o->bias : d.d_un.d_ptr; /* the vdso's are not relocated */
        if (d.d_tag == DT_SYMTAB)
            o->symbols = p;
        else if (d.d_tag == DT_STRTAB)
            o->strings = p;
        else if (d.d_tag == DT_GNU_HASH)
            o->gnu_hash = p;
        else if (d.d_tag == DT_VERSYM)
            o->versions = p;
    }
}

static void read_segments(const struct remote *r, struct remote_object *o, uint64_t headers, unsigned count)
{
    Elf64_Phdr p;
    for (unsigned i = 0; i < count && i < HEADERS_MAX; i++) {
        if (!remote_read(r->pid, headers + i * sizeof p, &p, sizeof p))
            return;
        uint64_t start = o->bias + p.p_vaddr, end = start + p.p_memsz;
        if (p.p_type != PT_LOAD || !p.p_memsz)
            continue;
        if (!o->start || start < o->start)
            o->start = start;
        if (end > o->end)
            o->end = end;
        if (p.p_flags == (PF_R | PF_X) && p.p_filesz == p.p_memsz)
            o->code_end = end;
    }
}

static void read_own_headers(const struct remote *r, struct remote_object *o)
{
    Elf64_Ehdr e;
    if (remote_read(r->pid, o->bias, &e, sizeof e) && !memcmp(e.e_ident, ELFMAG, SELFMAG))
        read_segments(r, o, o->bias + e.e_phoff, e.e_phnum);
}

/* Of the program itself, as the kernel told it. */
struct headers {
    uint64_t at, count, bias, dynamic;
};

static int read_headers(pid_t pid, struct headers *h)
{
    char name[64];
    Elf64_auxv_t auxv[AUXV_MAX];
    Elf64_Phdr p;
    snprintf(name, sizeof name, "/proc/%d/auxv", (int)pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, auxv, sizeof auxv);
    if (fd >= 0)
        close(fd);
    *h = (struct headers){0};
    for (size_t i = 0; n > 0 && i < (size_t)n / sizeof *auxv; i++) {
        if (auxv[i].a_type == AT_PHDR)
            h->at = auxv[i].a_un.a_val;
        if (auxv[i].a_type == AT_PHNUM)
            h->count = auxv[i].a_un.a_val;
    }
    if (n <= 0 || !h->at)
        return n < 0 ? -EPERM : -ENOENT;
    for (unsigned i = 0; i < h->count && i < HEADERS_MAX; i++) {
        if (!remote_read(pid, h->at + i * sizeof p, &p, sizeof p))
            return errno == EPERM ? -EPERM : -ENOENT;
        if (p.p_type == PT_PHDR)
            h->bias = h->at - p.p_vaddr;
        if (p.p_type == PT_DYNAMIC)
            h->dynamic = p.p_vaddr;
    }
    return h->dynamic ? 0 : -ENOENT;
}

static uint64_t find_debug(pid_t pid, const struct headers *h)
{
    Elf64_Dyn d;
    for (unsigned i = 0; i < DYNAMIC_MAX; i++) {
        if (!remote_read(pid, h->bias + h->dynamic + i * sizeof d, &d, sizeof d) || d.d_tag == DT_NULL)
            return 0;
        if (d.d_tag == DT_DEBUG)
            return d.d_un.d_ptr;
    }
    return 0;
}

static int add_object(struct remote *r, uint64_t address, uint64_t *next, const struct headers *h)
{
    struct link_map map;
    if (!remote_read(r->pid, address, &map, offsetof(struct link_map, l_prev)))
        return 0;
    if (r->count % 64 == 0)
        r->objects = xrealloc(r->objects, (r->count + 64) * sizeof *r->objects);
    struct remote_object *o = &r->objects[r->count++];
    *o = (struct remote_object){.bias = map.l_addr, .dynamic = (uint64_t)map.l_ld};
    *next = (uint64_t)map.l_next;
    if (!remote_string(r->pid, (uint64_t)map.l_name, o->name, sizeof o->name))
        *o->name = 0;
    read_dynamic(r, o);
    if (r->count == 1)
        read_segments(r, o, h->at, (unsigned)h->count);
    else
        read_own_headers(r, o);
    return 1;
}

int remote_open(struct remote *r, pid_t pid)
{
    struct headers h;
    struct r_debug debug;
    *r = (struct remote){.pid = pid};
    int rc = read_headers(pid, &h);
    if (rc)
        return rc;
    r->debug = find_debug(pid, &h);
    if (!r->debug || !remote_read(pid, r->debug, &debug, sizeof debug))
        return -ENOENT;
    for (uint64_t at = (uint64_t)debug.r_map; at && r->count < OBJECTS_MAX;)
        if (!add_object(r, at, &at, &h))
            break;
    return r->count ? 0 : -ENOENT;
}

void remote_close(struct remote *r)
{
    free(r->objects);
    *r = (struct remote){0};
}

int remote_is_consistent(const struct remote *r)
{
    struct r_debug debug;
    return remote_read(r->pid, r->debug, &debug, sizeof debug) && debug.r_state == RT_CONSISTENT;
}

/* --- symbols --- */

static int is_symbol(const struct remote *r, const struct remote_object *o, uint32_t i, const char *name, Elf64_Sym *s)
{
    char text[128];
    uint16_t version = 0;
    if (!remote_read(r->pid, o->symbols + i * SYMBOL_BYTES, s, sizeof *s) || s->st_shndx == SHN_UNDEF ||
        ELF64_ST_BIND(s->st_info) == STB_LOCAL || !remote_string(r->pid, o->strings + s->st_name, text, sizeof text) ||
        strcmp(text, name) != 0)
        return 0;
    if (o->versions && !remote_read(r->pid, o->versions + i * sizeof version, &version, sizeof version))
        return 0;
    return !(version & 0x8000); /* a hidden, older version */
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        hash = hash * 33 + *p;
    return hash;
}

uint64_t remote_symbol(const struct remote *r, const struct remote_object *o, const char *name, uint64_t *size_bytes)
{
    uint32_t head[4], i = 0, hash = hash_of(name); /* buckets, first symbol, words of the filter, its shift */
    Elf64_Sym s;
    if (!o->symbols || !o->strings || !o->gnu_hash || !remote_read(r->pid, o->gnu_hash, head, sizeof head) || !head[0])
        return 0;
    const uint64_t buckets = o->gnu_hash + sizeof head + head[2] * 8ull, chain = buckets + head[0] * 4ull;
    if (!remote_read(r->pid, buckets + hash % head[0] * 4ull, &i, sizeof i) || i < head[1])
        return 0;
    for (unsigned n = 0; n < CHAIN_MAX; n++, i++) {
        uint32_t c;
        if (!remote_read(r->pid, chain + (i - head[1]) * 4ull, &c, sizeof c))
            return 0;
        if ((c | 1) == (hash | 1) && is_symbol(r, o, i, name, &s)) {
            if (size_bytes)
                *size_bytes = s.st_size;
            return o->bias + s.st_value;
        }
        if (c & 1)
            return 0;
    }
    return 0;
}

const struct remote_object *remote_owner(const struct remote *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (remote_symbol(r, &r->objects[i], name, NULL))
            return &r->objects[i];
    return NULL;
}
