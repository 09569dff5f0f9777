#include "symbols_private.h"

#include "../../common/array.h"
#include "../../common/buf.h"
#include "../../common/map.h"
#include "../../common/search.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYMBOLS_MAX (8u << 20)
#define NAME_PART   512 /* of a name, by which it is told from others */

struct symbol {
    uint64_t start, end;
    uint64_t reach; /* the largest end of this and all before it */
    const char *name;
    const char *unit; /* the source file of a local function; NULL: not known, or no other one has its name */
    uint8_t sized;
    uint8_t rank; /* smaller is better */
};

struct symbols_elf {
    Dwfl *dwfl;
    Dwfl_Module *module;
    char *path;
    char *debug_path; /* debuginfo_path of the callbacks */
    char build_id[2 * SYMBOLS_BUILD_ID_MAX + 1];
    struct symbol *symbols; /* by start, one a start and kind */
    size_t count;
    int is_indexed;
    Dwfl_Callbacks callbacks;
};

static void hex(const void *bytes, size_t length, char *out)
{
    for (size_t i = 0; i < length; i++)
        sprintf(out + 2 * i, "%02x", ((const unsigned char *)bytes)[i]);
    out[2 * length] = 0;
}

static int read_build_id(Elf *elf, char out[2 * SYMBOLS_BUILD_ID_MAX + 1])
{
    const void *bytes;
    ssize_t length = dwelf_elf_gnu_build_id(elf, &bytes);
    out[0] = 0;
    if (length <= 0 || length > SYMBOLS_BUILD_ID_MAX)
        return 0;
    hex(bytes, (size_t)length, out);
    return 1;
}

/* Opens path when it is an executable or shared object with that build-id. Returns its fd or -1 with why. */
static int open_checked(const char *path, const char *build_id, char found_id[], char *why, size_t why_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        snprintf(why, why_size, "%s", errno == ENOENT ? "file gone" : strerror(errno));
        return -1;
    }
    struct stat st;
    const char *refused = NULL;
    Elf *elf = NULL;
    GElf_Ehdr header;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        refused = "not a regular file";
    else if (!(elf = elf_begin(fd, ELF_C_READ_MMAP, NULL)) || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header))
        refused = "not an ELF file";
    else if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
        refused = "neither a program nor a shared library";
    else if (read_build_id(elf, found_id), build_id && *build_id && strcasecmp(build_id, found_id))
        refused = "file changed since the run";
    elf_end(elf);
    if (refused) {
        snprintf(why, why_size, "%s", refused);
        close(fd);
        return -1;
    }
    return fd;
}

static char *build_id_path(const char *build_id)
{
    size_t length = strlen(build_id);
    if (length < 4 || strspn(build_id, "0123456789abcdefABCDEF") != length)
        return NULL;
    char *path = NULL;
    return asprintf(&path, "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id, build_id + 2) < 0 ? NULL : path;
}

struct symbols_elf *symbols_elf_open(const char *path, const char *build_id, char *why, size_t why_size)
{
    elf_version(EV_CURRENT);
    struct symbols_elf *e = xcalloc(1, sizeof *e);
    e->path = xstrdup(path);
    int fd = open_checked(path, build_id, e->build_id, why, why_size);
    if (fd < 0 && build_id && *build_id) {
        /* The file is gone or another one, but its debug file has the same addresses and names. */
        char *debug = build_id_path(build_id);
        char ignored[8];
        fd = debug ? open_checked(debug, build_id, e->build_id, ignored, sizeof ignored) : -1;
        if (fd >= 0) {
            free(e->path);
            e->path = debug;
        } else {
            free(debug);
        }
    }
    if (fd < 0) {
        symbols_elf_close(e);
        return NULL;
    }
    e->debug_path = xstrdup(":.debug:/usr/lib/debug");
    e->callbacks.find_elf = dwfl_build_id_find_elf;
    e->callbacks.find_debuginfo = dwfl_standard_find_debuginfo;
    e->callbacks.section_address = dwfl_offline_section_address;
    e->callbacks.debuginfo_path = &e->debug_path;
    e->dwfl = dwfl_begin(&e->callbacks);
    if (e->dwfl) {
        dwfl_report_begin(e->dwfl);
        /* base 0: module addresses are the file's own. libdwfl owns fd once this succeeds. */
        e->module = dwfl_report_elf(e->dwfl, e->path, e->path, fd, 0, true);
        dwfl_report_end(e->dwfl, NULL, NULL);
    }
    if (!e->module) {
        snprintf(why, why_size, "damaged: %s", dwfl_errmsg(-1));
        close(fd);
        symbols_elf_close(e);
        return NULL;
    }
    return e;
}

void symbols_elf_close(struct symbols_elf *e)
{
    if (!e)
        return;
    if (e->dwfl)
        dwfl_end(e->dwfl);
    free(e->symbols);
    free(e->debug_path);
    free(e->path);
    free(e);
}

Dwarf *symbols_elf_dwarf(struct symbols_elf *e, uint64_t *bias)
{
    Dwarf_Addr value = 0;
    Dwarf *dwarf = dwfl_module_getdwarf(e->module, &value);
    *bias = value;
    return dwarf;
}

/* --- symbol tables ----------------------------------------------------------------------------------------------- */

/* Which of several names of one address people know: "malloc", not "__libc_malloc". */
static int better_name(const char *a, const char *b)
{
    size_t x = strspn(a, "_"), y = strspn(b, "_");
    int version_a = strchr(a, '@') != NULL, version_b = strchr(b, '@') != NULL;
    if (version_a != version_b)
        return version_a < version_b;
    if (x != y && strncmp(a, "_Z", 2) && strncmp(b, "_Z", 2))
        return x < y;
    size_t length_a = strlen(a), length_b = strlen(b);
    if (length_a != length_b)
        return length_a < length_b;
    return strcmp(a, b) < 0;
}

static int by_start(const void *pa, const void *pb)
{
    const struct symbol *a = pa, *b = pb;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->sized != b->sized)
        return a->sized > b->sized ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->end != b->end) /* the larger first: aliases are the same size, a label inside is smaller */
        return a->end > b->end ? -1 : 1;
    if (strcmp(a->name, b->name) == 0)
        return 0;
    return better_name(a->name, b->name) ? -1 : 1;
}

/* The rank of a symbol that may name code, -1 for all others. */
static int rank_of(const GElf_Sym *sym)
{
    int type = GELF_ST_TYPE(sym->st_info), binding = GELF_ST_BIND(sym->st_info);
    int rank = binding == STB_GLOBAL || binding == STB_GNU_UNIQUE || binding == STB_WEAK ? 0 : 1;
    if (type == STT_NOTYPE)
        return rank + 2;
    return type == STT_FUNC || type == STT_GNU_IFUNC ? rank : -1;
}

/* The end of the section that holds a symbol without size; 0: not code. */
static uint64_t section_end(Elf *elf, GElf_Word section, const GElf_Sym *sym, GElf_Addr value)
{
    GElf_Shdr header;
    Elf_Scn *scn = section < SHN_LORESERVE ? elf_getscn(elf, section) : NULL;
    if (!scn || !gelf_getshdr(scn, &header) || !(header.sh_flags & SHF_EXECINSTR))
        return 0;
    uint64_t end;
    if (sym->st_value < header.sh_addr || __builtin_add_overflow(header.sh_addr, header.sh_size, &end) ||
        sym->st_value >= end)
        return 0;
    return value + (end - sym->st_value);
}

/* unit: of the local symbols that follow, which a symbol of that type sets. */
static int take_symbol(struct symbols_elf *e, int index, const char **unit, struct symbol *out)
{
    GElf_Sym sym;
    GElf_Addr value;
    GElf_Word section;
    Elf *elf;
    Dwarf_Addr bias;
    const char *name = dwfl_module_getsym_info(e->module, index, &sym, &value, &section, &elf, &bias);
    if (name && GELF_ST_TYPE(sym.st_info) == STT_FILE)
        *unit = *name && *name != '<' ? name : NULL; /* "<artificial>" */
    if (!name || !*name || name[0] == '$' || section == SHN_UNDEF || !elf)
        return 0;
    int rank = rank_of(&sym);
    uint64_t limit = rank < 0 ? 0 : section_end(elf, section, &sym, value);
    if (!limit)
        return 0;
    *out = (struct symbol){.start = value, .end = limit, .name = name, .rank = (uint8_t)rank};
    if (GELF_ST_BIND(sym.st_info) == STB_LOCAL)
        out->unit = *unit;
    if (sym.st_size) {
        out->sized = 1;
        if (sym.st_size < limit - value)
            out->end = value + sym.st_size;
    }
    return 1;
}

/* Removes all but the best of each start, ends symbols without a size where the next begins, and drops those that lie
 * inside a sized one. */
static void settle(struct symbols_elf *e)
{
    size_t kept = 0;
    uint64_t reach = 0; /* of sized symbols */
    for (size_t i = 0; i < e->count; i++) {
        struct symbol *s = &e->symbols[i];
        if (kept && e->symbols[kept - 1].start == s->start)
            continue;
        if (!s->sized && s->start < reach)
            continue;
        if (s->sized && s->end > reach)
            reach = s->end;
        e->symbols[kept++] = *s;
    }
    e->count = kept;
    reach = 0;
    for (size_t i = 0; i < kept; i++) {
        struct symbol *s = &e->symbols[i];
        if (!s->sized && i + 1 < kept && e->symbols[i + 1].start < s->end)
            s->end = e->symbols[i + 1].start;
        if (s->end > reach)
            reach = s->end;
        s->reach = reach;
    }
}

static const char several[] = "";

/* Forgets the source files of functions whose names say which one they are. */
static void keep_needed_units(struct symbols_elf *e)
{
    struct text_map names = {0}; /* the number of a name */
    const char **units = NULL;   /* by that: the first one, or several */
    size_t count = 0, capacity = 0;
    uint32_t *number = xcalloc(e->count, sizeof *number);
    for (size_t i = 0; i < e->count; i++) {
        const struct symbol *s = &e->symbols[i];
        if (!s->unit)
            continue;
        uint32_t *slot = text_map_slot(&names, s->name, strnlen(s->name, NAME_PART));
        if (!*slot) {
            *ARRAY_ADD(units, count, capacity) = s->unit;
            *slot = (uint32_t)count;
        } else if (units[*slot - 1] != several && strcmp(units[*slot - 1], s->unit)) {
            units[*slot - 1] = several;
        }
        number[i] = *slot;
    }
    for (size_t i = 0; i < e->count; i++)
        if (number[i] && units[number[i] - 1] != several)
            e->symbols[i].unit = NULL;
    text_map_close(&names);
    free(units);
    free(number);
}

static void index_symbols(struct symbols_elf *e)
{
    const char *unit = NULL;
    if (e->is_indexed)
        return;
    e->is_indexed = 1;
    int count = dwfl_module_getsymtab(e->module);
    if (count <= 0)
        return;
    if ((unsigned)count > SYMBOLS_MAX)
        count = (int)SYMBOLS_MAX;
    e->symbols = xcalloc((size_t)count, sizeof *e->symbols);
    for (int i = 1; i < count; i++)
        e->count += (size_t)take_symbol(e, i, &unit, &e->symbols[e->count]);
    if (!e->count)
        return;
    keep_needed_units(e);
    qsort(e->symbols, e->count, sizeof *e->symbols, by_start);
    settle(e);
}

int symbols_elf_has_symbols(struct symbols_elf *e)
{
    index_symbols(e);
    return e->count != 0;
}

/* A symbol without a size, of assembler, reaches to the next one or to its section's end. Code between them that lost
 * its own name is none of its: the unwinding rules tell where each function begins. */
static int is_its_code(struct symbols_elf *e, const struct symbol *s, uint64_t offset)
{
    GElf_Addr bias = 0;
    Elf *elf = s->sized ? NULL : dwfl_module_getelf(e->module, &bias);
    return !elf || symbols_function_begin(elf, offset - bias) + bias <= s->start;
}

const char *symbols_elf_name(struct symbols_elf *e, uint64_t offset, const char **unit)
{
    index_symbols(e);
    *unit = NULL;
    const size_t low = SEARCH_FIRST(e->count, i, e->symbols[i].start <= offset);
    for (size_t i = low; i-- > 0 && e->symbols[i].reach > offset;)
        if (offset < e->symbols[i].end && is_its_code(e, &e->symbols[i], offset)) {
            *unit = e->symbols[i].unit;
            return e->symbols[i].name;
        }
    return NULL;
}

/* --- identity ---------------------------------------------------------------------------------------------------- */

static void add_probe(char *paths[], int *count, char *path)
{
    if (path && *path == '/' && *count < SYMBOLS_PROBES_MAX)
        paths[(*count)++] = path;
    else
        free(path);
}

static char *join(const char *format_prefix, const char *directory, int directory_length, const char *middle,
                  const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s%.*s%s%s", format_prefix, directory_length, directory, middle, name) < 0 ? NULL : path;
}

int symbols_elf_probes(struct symbols_elf *e, char *paths[SYMBOLS_PROBES_MAX])
{
    int count = 0;
    add_probe(paths, &count, xstrdup(e->path));
    if (e->build_id[0])
        add_probe(paths, &count, build_id_path(e->build_id));
    const char *main_file = NULL, *debug_file = NULL;
    dwfl_module_info(e->module, NULL, NULL, NULL, NULL, NULL, &main_file, &debug_file);
    if (debug_file)
        add_probe(paths, &count, xstrdup(debug_file));
    GElf_Addr bias;
    Elf *elf = dwfl_module_getelf(e->module, &bias);
    GElf_Word crc;
    const char *link = elf ? dwelf_elf_gnu_debuglink(elf, &crc) : NULL;
    const char *slash = strrchr(e->path, '/');
    if (link && slash && !strchr(link, '/')) {
        int length = (int)(slash - e->path) + 1;
        add_probe(paths, &count, join("", e->path, length, "", link));
        add_probe(paths, &count, join("", e->path, length, ".debug/", link));
        add_probe(paths, &count, join("/usr/lib/debug", e->path, length, "", link));
    }
    Dwarf_Addr dwarf_bias;
    Dwarf *dwarf = dwfl_module_getdwarf(e->module, &dwarf_bias);
    const char *alt_name = NULL;
    const void *alt_id = NULL;
    ssize_t alt_length = dwarf ? dwelf_dwarf_gnu_debugaltlink(dwarf, &alt_name, &alt_id) : 0;
    if (alt_length > 0 && alt_length <= SYMBOLS_BUILD_ID_MAX) {
        char id[2 * SYMBOLS_BUILD_ID_MAX + 1];
        hex(alt_id, (size_t)alt_length, id);
        add_probe(paths, &count, build_id_path(id));
        const char *base = debug_file ? debug_file : e->path;
        slash = strrchr(base, '/');
        if (alt_name[0] == '/')
            add_probe(paths, &count, xstrdup(alt_name));
        else if (slash)
            add_probe(paths, &count, join("", base, (int)(slash - base) + 1, "", alt_name));
    }
    return count;
}
