#include "needed.h"

#include "sys.h"

#include <elf.h>
#include <fcntl.h>

#define HEADERS_MAX 64u  /* of a program; more have none of interest */
#define ENTRIES_MAX 512u /* of its dynamic section */

/* 0: there is not so much there. */
static int read_at(int fd, void *data, unsigned size_bytes, uint64_t offset)
{
    return sys_call6(SYS_pread64, fd, (long)data, (long)size_bytes, (long)offset, 0, 0) == (long)size_bytes;
}

/* The header of a kind, of the segment that holds address where that is not 0. 0: there is none. */
static int find_header(int fd, const Elf64_Ehdr *file, uint32_t type, uint64_t address, Elf64_Phdr *header)
{
    for (unsigned i = 0; i < file->e_phnum && i < HEADERS_MAX; i++) {
        if (!read_at(fd, header, sizeof *header, file->e_phoff + i * sizeof *header))
            return 0;
        if (header->p_type == type &&
            (!address || (address >= header->p_vaddr && address - header->p_vaddr < header->p_filesz)))
            return 1;
    }
    return 0;
}

static int begins_with(const char *text, const char *start)
{
    while (*start && *text == *start)
        text++, start++;
    return !*start;
}

static int is_sanitizer(int fd, uint64_t name_offset)
{
    char name[sizeof "libasan.so" - 1] = "";
    static const char *const all[] = {"libasan.so", "libtsan.so", "libmsan.so"};
    if (!read_at(fd, name, sizeof name, name_offset))
        return 0;
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        unsigned k = 0;
        while (k < sizeof name && name[k] == all[i][k])
            k++;
        if (k == sizeof name)
            return 1;
    }
    return 0;
}

/* The value of the first entry with a tag from *at on, which it is moved behind; 0: there is none. */
static uint64_t next_entry(int fd, const Elf64_Phdr *dynamic, int64_t tag, unsigned *at)
{
    Elf64_Dyn entry;
    while (*at < ENTRIES_MAX && (*at + 1) * sizeof entry <= dynamic->p_filesz &&
           read_at(fd, &entry, sizeof entry, dynamic->p_offset + *at * sizeof entry)) {
        ++*at;
        if (entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag == tag)
            return entry.d_un.d_val;
    }
    return 0;
}

static int needs_sanitizer(int fd)
{
    Elf64_Ehdr file;
    Elf64_Phdr dynamic, strings;
    unsigned at = 0;
    if (!read_at(fd, &file, sizeof file, 0) || !begins_with((const char *)file.e_ident, ELFMAG "\2") ||
        file.e_phentsize != sizeof dynamic || !find_header(fd, &file, PT_DYNAMIC, 0, &dynamic))
        return 0;
    uint64_t table = next_entry(fd, &dynamic, DT_STRTAB, &at), name;
    if (!table || !find_header(fd, &file, PT_LOAD, table, &strings))
        return 0;
    table += strings.p_offset - strings.p_vaddr;
    at = 0;
    while ((name = next_entry(fd, &dynamic, DT_NEEDED, &at)))
        if (is_sanitizer(fd, table + name))
            return 1;
    return 0;
}

int needed_comes_first(const char *path)
{
    int fd = *path ? sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0)
        return 0;
    int is_needed = needs_sanitizer(fd);
    sys_close(fd);
    return is_needed;
}
