#include "symbols.h"

#include "symbols_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct symbols {
    char source[200];
    int is_cached_safely; /* what it answers depends on the probed files alone */
    struct symbols_elf *elf;
    struct symbols_dwarf *dwarf;
    uint64_t dwarf_bias;
    struct symbols_perf *perf;
    struct symbols_strings *strings;
};

/* Names of things in a process's memory map that are no files. */
static const char *not_a_file(const char *path)
{
    if (strncmp(path, "linux-vdso.so", 13) == 0 || strcmp(path, "[vdso]") == 0)
        return "code of the kernel (vdso)";
    size_t length = strlen(path);
    if (length > 10 && strcmp(path + length - 10, " (deleted)") == 0)
        return "file deleted while it ran";
    if (strncmp(path, "/memfd:", 7) == 0 || strncmp(path, "memfd:", 6) == 0)
        return "memory, not a file (memfd)";
    if (*path != '/')
        return "not a file";
    return NULL;
}

static struct symbols *none(const char *why)
{
    struct symbols *s = xcalloc(1, sizeof *s);
    snprintf(s->source, sizeof s->source, "none: %s", why);
    return s;
}

struct symbols *symbols_open_flags(const char *path, const char *build_id, int flags)
{
    const char *refused = not_a_file(path);
    if (refused)
        return none(refused);
    char why[160] = "";
    struct symbols_elf *elf = symbols_elf_open(path, build_id, why, sizeof why);
    if (!elf)
        return none(why);
    struct symbols *s = xcalloc(1, sizeof *s);
    s->elf = elf;
    s->strings = symbols_strings_open();
    s->is_cached_safely = !(flags & SYMBOLS_NO_DWARF);
    Dwarf *dwarf = flags & SYMBOLS_NO_DWARF ? NULL : symbols_elf_dwarf(elf, &s->dwarf_bias);
    if (dwarf)
        s->dwarf = symbols_dwarf_open(dwarf, s->strings);
    if (s->dwarf && !symbols_dwarf_is_empty(s->dwarf))
        snprintf(s->source, sizeof s->source, "dwarf");
    else if (symbols_elf_has_symbols(elf))
        snprintf(s->source, sizeof s->source, "symtab");
    else
        snprintf(s->source, sizeof s->source, "none: no symbols in the file");
    return s;
}

struct symbols *symbols_open(const char *path, const char *build_id)
{
    return symbols_open_flags(path, build_id, 0);
}

struct symbols *symbols_open_perf_map(int pid)
{
    char path[64], why[160] = "";
    snprintf(path, sizeof path, "/tmp/perf-%d.map", pid);
    struct symbols_perf *perf = symbols_perf_open(path, why, sizeof why);
    if (!perf)
        return none(why);
    struct symbols *s = xcalloc(1, sizeof *s);
    s->perf = perf;
    s->strings = symbols_strings_open();
    snprintf(s->source, sizeof s->source, "perf map");
    return s;
}

void symbols_close(struct symbols *s)
{
    if (!s)
        return;
    symbols_dwarf_close(s->dwarf);
    symbols_elf_close(s->elf);
    symbols_perf_close(s->perf);
    symbols_strings_close(s->strings);
    free(s);
}

const char *symbols_source(const struct symbols *s)
{
    return s->source;
}

static int is_mangled(const char *name)
{
    return strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0;
}

/* glibc's own name of a function (__GI___strdup, _IO_new_fopen) is not the one that people call, which stands in the
 * symbol table, perhaps with a version. */
static void name_as_called(struct symbols *s, uint64_t offset, struct symbols_frame *outer)
{
    const char *own = outer->raw_name, *raw, *unit;
    char name[256];
    if (!own || *own != '_' || is_mangled(own) || !s->elf || !(raw = symbols_elf_name(s->elf, offset, &unit)))
        return;
    size_t length = strcspn(raw, "@");
    if (length >= sizeof name || strspn(raw, "_") >= strspn(own, "_"))
        return;
    memcpy(name, raw, length);
    name[length] = 0;
    if (strstr(own, name))
        outer->raw_name = symbols_strings_name(s->strings, name, &outer->name);
}

/* The symbol of a function's own code, where that is what it claims to be: linkers fold functions of equal code. */
static void name_inlined(struct symbols *s, uint64_t offset, struct symbols_frame *frame)
{
    const char *unit, *raw = s->elf ? symbols_elf_name(s->elf, offset, &unit) : NULL, *name;
    if (!raw || !is_mangled(raw) || !(raw = symbols_strings_name(s->strings, raw, &name)))
        return;
    char *plain = symbols_plain_name(name);
    if (strncmp(frame->raw_name, plain, strlen(plain)) == 0) {
        frame->raw_name = raw;
        frame->name = name;
    }
    free(plain);
}

int symbols_lookup(struct symbols *s, uint64_t offset, struct symbols_frame frames[SYMBOLS_INLINE_MAX])
{
    int count = 0;
    uint64_t symbol_at[SYMBOLS_INLINE_MAX];
    const char *unit = NULL;
    if (s->dwarf)
        count = symbols_dwarf_lookup(s->dwarf, offset - s->dwarf_bias, frames, symbol_at);
    for (int i = 0; i + 1 < count; i++)
        if (symbol_at[i])
            name_inlined(s, symbol_at[i] + s->dwarf_bias, &frames[i]);
    if (count && !symbol_at[count - 1]) {
        name_as_called(s, offset, &frames[count - 1]);
        return count;
    }
    const char *raw = s->elf    ? symbols_elf_name(s->elf, offset, &unit)
                      : s->perf ? symbols_perf_name(s->perf, offset)
                                : NULL;
    struct symbols_frame *outer = &frames[count ? count - 1 : 0];
    if (!raw || (count && outer->raw_name && !is_mangled(raw)))
        return count;
    if (count == 0)
        memset(frames, 0, sizeof *frames);
    outer->raw_name = symbols_strings_name(s->strings, raw, &outer->name);
    if (unit && !count && outer->name)
        outer->name = symbols_strings_of_unit(s->strings, outer->name, unit);
    return count ? count : outer->raw_name != NULL;
}

int symbols_probes(struct symbols *s, char *paths[SYMBOLS_PROBES_MAX])
{
    return s->elf ? symbols_elf_probes(s->elf, paths) : 0;
}

int symbols_may_cache(const struct symbols *s)
{
    return s->elf && s->is_cached_safely && !(s->dwarf && symbols_dwarf_is_split(s->dwarf));
}
