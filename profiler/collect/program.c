#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define GLIBC_LOADER "ld-linux-x86-64.so.2"
#define SCRIPTS_MAX  4 /* interpreters that are scripts themselves; the kernel's own limit */

static int usable(const char *path)
{
    struct stat st;
    if (stat(path, &st))
        return -errno;
    return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : -EACCES;
}

int program_find(const char *name, char path[PATH_MAX], struct error *err)
{
    int rc = -ENOENT;
    if (strchr(name, '/')) {
        rc = snprintf(path, PATH_MAX, "%s", name) < PATH_MAX ? usable(path) : -ENAMETOOLONG;
        if (rc == -EACCES)
            return error_set(err, EACCES, "%s: not executable", name);
        return rc ? error_set(err, ENOENT, "%s: %s", name, strerror(-rc)) : 0;
    }
    const char *list = getenv("PATH");
    if (!list)
        list = "/bin:/usr/bin";
    for (const char *p = list; *name;) {
        size_t n = strcspn(p, ":");
        int length = snprintf(path, PATH_MAX, "%.*s%s%s", (int)n, p, n ? "/" : "./", name);
        int found = length < PATH_MAX ? usable(path) : -ENAMETOOLONG;
        if (found == 0)
            return 0;
        if (found == -EACCES)
            rc = -EACCES;
        if (!p[n])
            break;
        p += n + 1;
    }
    if (rc == -EACCES)
        return error_set(err, EACCES, "%s: found in PATH, but not executable", name);
    return error_set(err, ENOENT, "%s: not found in PATH", name);
}

/* The loader ignores LD_PRELOAD where the kernel raises privileges. */
static const char *raises_privileges(int fd)
{
    struct stat st;
    struct statvfs fs;
    if (fstat(fd, &st) || (fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_NOSUID))
        return NULL;
    if (st.st_mode & S_ISUID && st.st_uid != getuid())
        return "set-user-ID";
    if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid())
        return "set-group-ID";
    if (getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0)
        return "a file with capabilities";
    return NULL;
}

static int has_section(Elf *elf, const char *name)
{
    size_t names;
    Elf_Scn *section = NULL;
    if (elf_getshdrstrndx(elf, &names))
        return 0;
    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        const char *text = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (text && strcmp(text, name) == 0)
            return 1;
    }
    return 0;
}

/* The sanitizer that a program was built with: it has an allocator of its own, and refuses to start behind another
 * library. NULL: none. Linked in (clang), its entry is a dynamic symbol of the program; otherwise (gcc) it is a
 * library. */
static const char *sanitizer_of(Elf *elf)
{
    static const struct {
        const char *library, *entry, *name;
    } all[] = {{"libasan.so", "__asan_init", "AddressSanitizer"},
               {"libtsan.so", "__tsan_init", "ThreadSanitizer"},
               {"libmsan.so", "__msan_init", "MemorySanitizer"}};
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
        GElf_Shdr header;
        Elf_Data *data;
        if (!gelf_getshdr(section, &header) || (header.sh_type != SHT_DYNAMIC && header.sh_type != SHT_DYNSYM) ||
            !header.sh_entsize || !(data = elf_getdata(section, NULL)))
            continue;
        for (size_t i = 0; i < data->d_size / header.sh_entsize; i++) {
            GElf_Dyn entry;
            GElf_Sym symbol;
            const char *text = NULL;
            if (header.sh_type == SHT_DYNSYM && gelf_getsym(data, (int)i, &symbol))
                text = elf_strptr(elf, header.sh_link, symbol.st_name);
            else if (header.sh_type == SHT_DYNAMIC && gelf_getdyn(data, (int)i, &entry) && entry.d_tag == DT_NEEDED)
                text = elf_strptr(elf, header.sh_link, entry.d_un.d_val);
            for (size_t k = 0; text && k < sizeof all / sizeof *all; k++)
                if (strcmp(text, all[k].entry) == 0 || strncmp(text, all[k].library, strlen(all[k].library)) == 0)
                    return all[k].name;
        }
    }
    return NULL;
}

/* Path of the dynamic loader; 0: none, the binary is static. */
static int loader_of(Elf *elf, int fd, char loader[PATH_MAX])
{
    size_t count = 0;
    if (elf_getphdrnum(elf, &count))
        return 0;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_INTERP)
            continue;
        size_t length = header.p_filesz < PATH_MAX - 1 ? header.p_filesz : PATH_MAX - 1;
        ssize_t n = pread(fd, loader, length, (off_t)header.p_offset);
        loader[n > 0 ? n : 0] = 0;
        return 1;
    }
    return 0;
}

/* err: why, without the path. */
static enum program_check check_elf(const char *path, int fd, Elf *elf, struct error *err)
{
    char loader[PATH_MAX];
    GElf_Ehdr header;
    if (!gelf_getehdr(elf, &header))
        return PROGRAM_OK; /* the kernel will say what is wrong with it */
    if (header.e_ident[EI_CLASS] != ELFCLASS64 && (header.e_machine == EM_386 || header.e_machine == EM_X86_64)) {
        error_set(err, ENOEXEC, "a 32-bit program; memprof records 64-bit ones");
        return PROGRAM_UNUSABLE;
    }
    if (header.e_machine != EM_X86_64) {
        error_set(err, ENOEXEC, "built for another architecture (ELF machine %u)", header.e_machine);
        return PROGRAM_UNUSABLE;
    }
    const char *name = strrchr(path, '/');
    if (strcmp(name ? name + 1 : path, GLIBC_LOADER) == 0) /* started with a program as its argument */
        return PROGRAM_OK;
    int go = has_section(elf, ".go.buildinfo") || has_section(elf, ".note.go.buildid");
    if (!loader_of(elf, fd, loader)) {
        error_set(err, ENOEXEC, "%s; the library cannot be loaded into it",
                  go ? "a static Go program" : "statically linked");
        return PROGRAM_UNUSABLE;
    }
    const char *base = strrchr(loader, '/');
    base = base ? base + 1 : loader;
    if (strcmp(base, GLIBC_LOADER) != 0) {
        error_set(err, ENOEXEC, "%s (loader %s); memprof records programs of glibc",
                  strncmp(base, "ld-musl", 7) == 0 ? "linked with musl" : "not linked with glibc", loader);
        return PROGRAM_UNUSABLE;
    }
    const char *privilege = raises_privileges(fd);
    if (privilege) {
        error_set(err, EPERM, "%s: the system lets no library be preloaded", privilege);
        return PROGRAM_UNUSABLE;
    }
    const char *sanitizer = sanitizer_of(elf);
    if (sanitizer) {
        error_set(err, ENOEXEC, "built with %s, which has a heap of its own", sanitizer);
        return PROGRAM_UNUSABLE;
    }
    if (go) {
        error_set(err, 0, "a Go program: memory of Go's own heap is seen as mappings, only that of C as blocks");
        return PROGRAM_NOTED;
    }
    return PROGRAM_OK;
}

/* "#! /path argument": the interpreter's path; 0: not a script. */
static int script_interpreter(int fd, char interpreter[PATH_MAX])
{
    char line[258];
    ssize_t n = pread(fd, line, sizeof line - 1, 0);
    if (n < 2 || line[0] != '#' || line[1] != '!')
        return 0;
    line[n] = 0;
    char *start = line + 2 + strspn(line + 2, " \t");
    start[strcspn(start, " \t\r\n")] = 0;
    snprintf(interpreter, PATH_MAX, "%s", start);
    return *start != 0;
}

/* Of the program, or of the script's interpreter, whose path file becomes. */
static enum program_check check(const char *path, char file[PATH_MAX], struct error *err)
{
    char interpreter[PATH_MAX];
    enum program_check result = PROGRAM_OK;
    int fd = -1;
    snprintf(file, PATH_MAX, "%s", path);
    for (int depth = 0; depth < SCRIPTS_MAX; depth++) {
        if (fd >= 0)
            close(fd);
        fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* it may be anything by now */
        if (fd < 0 || !script_interpreter(fd, interpreter))
            break;
        memcpy(file, interpreter, PATH_MAX);
    }
    if (fd < 0) /* executable, but not readable */
        return PROGRAM_OK;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    if (elf && elf_kind(elf) == ELF_K_ELF)
        result = check_elf(file, fd, elf, err);
    elf_end(elf);
    close(fd);
    return result;
}

enum program_check program_check(const char *path, struct error *err)
{
    char file[PATH_MAX];
    struct error why = {""};
    enum program_check result = check(path, file, &why);
    if (result != PROGRAM_OK)
        error_set(err, ENOEXEC, "%s: %s%s", file, why.text,
                  result == PROGRAM_UNUSABLE ? "; running it without recording" : "");
    return result;
}

int program_is_unusable(const char *path, struct error *why)
{
    char file[PATH_MAX];
    return check(path, file, why) == PROGRAM_UNUSABLE;
}
