#include "target.h"

#include "../../common/io.h"
#include "../wire.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATUS_BYTES  4096
#define PTRACE_SCOPE  "/proc/sys/kernel/yama/ptrace_scope"
#define LIBRARY_NAME  "libmemprof.so"
#define SESSION_NAME  "MEMPROF_SESSION="
#define ENVIRON_BYTES (1u << 20)

static int read_text(pid_t pid, const char *name, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t n = io_read(fd, text, room - 1);
    text[n] = 0;
    close(fd);
    return (int)n;
}

/* The number behind a line's name; -1: no such line. */
static long long status_number(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    return line ? strtoll(line + strlen(name), NULL, 10) : -1;
}

static char read_digit(const char *path)
{
    char text[8] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        io_read(fd, text, sizeof text - 1);
        close(fd);
    }
    return *text;
}

int target_refusal(const struct target_refusal *r, struct error *err)
{
    const int pid = (int)r->pid;
    const char scope = read_digit(r->scope_path);
    if (r->tracer > 0)
        return error_set(err, EBUSY,
                         "%d: process %d traces it (a debugger, or another memprof that attaches); end that first", pid,
                         (int)r->tracer);
    if (scope == '3')
        return error_set(err, EPERM,
                         "%d: this machine lets nobody trace (%s is 3, until it starts anew); start the program with "
                         "'memprof run'",
                         pid, r->scope_path);
    if (r->own_uid == 0)
        return error_set(err, EPERM,
                         "%d: not allowed to trace it, though root: in a container it needs the capability SYS_PTRACE",
                         pid);
    if (r->uid >= 0 && r->uid != (long long)r->own_uid)
        return error_set(err, EPERM, "%d: a process of another user; attach as %s", pid,
                         scope == '0' || !scope ? "that user, or as root" : "root");
    if (scope && scope != '0')
        return error_set(err, EPERM, "%d: not allowed to trace it (%s is %c); attach as root, or set that to 0", pid,
                         r->scope_path, scope);
    return error_set(err, EPERM,
                     "%d: not allowed to trace it; attach as root, in a container with the capability SYS_PTRACE "
                     "given to that",
                     pid);
}

int target_refused(pid_t pid, struct error *err)
{
    char status[STATUS_BYTES] = "";
    read_text(pid, "status", status, sizeof status);
    return target_refusal(&(struct target_refusal){.pid = pid,
                                                   .tracer = (pid_t)status_number(status, "\nTracerPid:\t"),
                                                   .uid = status_number(status, "\nUid:\t"),
                                                   .own_uid = geteuid(),
                                                   .scope_path = PTRACE_SCOPE},
                          err);
}

static int check_status(pid_t pid, struct error *err)
{
    char status[STATUS_BYTES];
    int n = read_text(pid, "status", status, sizeof status);
    if (n < 0)
        return error_set(err, ESRCH, "%d: no such process", (int)pid);
    if (pid == getpid())
        return error_set(err, EINVAL, "%d: this is memprof itself", (int)pid);
    if (status_number(status, "\nTgid:\t") != pid)
        return error_set(err, EINVAL, "%d: a thread; name its process, %lld", (int)pid,
                         status_number(status, "\nTgid:\t"));
    if (strstr(status, "\nState:\tZ") || strstr(status, "\nState:\tX"))
        return error_set(err, ESRCH, "%d: it has ended, or its first thread has", (int)pid);
    if (strstr(status, "\nState:\tT"))
        return error_set(err, EINVAL, "%d: it is stopped; continue it first ('kill -CONT %d')", (int)pid, (int)pid);
    if (status_number(status, "\nTracerPid:\t") > 0)
        return target_refused(pid, err);
    if (!strstr(status, "\nVmSize:"))
        return error_set(err, EINVAL, "%d: a thread of the kernel", (int)pid);
    if (status_number(status, "\nSeccomp:\t") > 0)
        return error_set(
            err, EINVAL,
            "%d: a seccomp filter guards it, which may kill it for what memprof does; start it with 'memprof run'",
            (int)pid);
    return 0;
}

/* 1: it is to the process what it is to us; 0: not, or it cannot be known. */
static int is_same_namespace(pid_t pid, const char *name)
{
    char path[64];
    struct stat own, its;
    snprintf(path, sizeof path, "/proc/self/ns/%s", name);
    if (stat(path, &own))
        return 1;
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, name);
    return stat(path, &its) == 0 && own.st_ino == its.st_ino && own.st_dev == its.st_dev;
}

static int check_room(pid_t pid, const char *library, struct error *err)
{
    char path[PATH_MAX + 64];
    struct stat own, its;
    if (!is_same_namespace(pid, "pid"))
        return error_set(err, EINVAL, "%d: it runs in a container; attach with the memprof in there", (int)pid);
    if (!library)
        return 0;
    snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, library);
    if (stat(library, &own) || stat(path, &its) || own.st_ino != its.st_ino || own.st_dev != its.st_dev)
        return error_set(err, EINVAL,
                         "%d: it has another root directory, where %s is not; attach with a memprof in there", (int)pid,
                         library);
    return 0;
}

static int has_interpreter(int fd, const Elf64_Ehdr *e)
{
    Elf64_Phdr p;
    for (unsigned i = 0; i < e->e_phnum; i++)
        if (pread(fd, &p, sizeof p, (off_t)(e->e_phoff + i * sizeof p)) == sizeof p && p.p_type == PT_INTERP)
            return 1;
    return 0;
}

static int check_program(pid_t pid, struct error *err)
{
    char path[64];
    Elf64_Ehdr e;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES || errno == EPERM
                   ? target_refused(pid, err)
                   : error_set(err, ESRCH, "%d: its program cannot be read: %s", (int)pid, strerror(errno));
    int is_read = pread(fd, &e, sizeof e, 0) == sizeof e, rc = 0;
    if (!is_read || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
        e.e_machine != EM_X86_64)
        rc = error_set(err, EINVAL, "%d: its program is not of 64 bits for x86-64; it cannot be recorded", (int)pid);
    else if (!has_interpreter(fd, &e))
        rc = error_set(err, EINVAL, "%d: its program is statically linked; it cannot be recorded", (int)pid);
    close(fd);
    return rc;
}

/* Of a setuid program the kernel says so; one may only be traced by root, and its loader takes no library of others. */
static int check_secure(pid_t pid, struct error *err)
{
    Elf64_auxv_t auxv[64];
    int n = read_text(pid, "auxv", (char *)auxv, sizeof auxv);
    if (n == -EACCES || n == -EPERM)
        return target_refused(pid, err);
    for (int i = 0; i < n / (int)sizeof *auxv; i++)
        if (auxv[i].a_type == AT_SECURE && auxv[i].a_un.a_val)
            return error_set(err, EINVAL,
                             "%d: it runs with rights that its starter had not (setuid); it cannot be attached to",
                             (int)pid);
    return 0;
}

static int check_not_started_by_us(pid_t pid, struct error *err)
{
    char *text = xmalloc(ENVIRON_BYTES);
    int n = read_text(pid, "environ", text, ENVIRON_BYTES), found = 0;
    for (const char *p = text; n > 0 && p < text + n && !found; p += strlen(p) + 1)
        found = !strncmp(p, SESSION_NAME, strlen(SESSION_NAME)) && p[strlen(SESSION_NAME)];
    free(text);
    return found ? error_set(err, EBUSY,
                             "%d: 'memprof run' has started it, and records it or did; it cannot be attached to",
                             (int)pid)
                 : 0;
}

static int ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static int find_parts(struct target *t, struct error *err)
{
    struct remote *r = &t->remote;
    const int pid = (int)t->pid;
    t->loader = remote_owner(r, "__tls_get_addr");
    t->libc = remote_owner(r, "gnu_get_libc_version");
    t->allocator = remote_owner(r, "malloc");
    t->library = NULL;
    for (size_t i = 0; i < r->count; i++)
        if (ends_with(r->objects[i].name, "/" LIBRARY_NAME))
            t->library = &r->objects[i];
    if (!t->libc || !t->loader || !t->allocator)
        return error_set(err, EINVAL, "%d: its C library is not glibc; it cannot be recorded", pid);
    t->dlopen = remote_symbol(r, t->libc, "dlopen", NULL);
    t->dlsym = remote_symbol(r, t->libc, "dlsym", NULL);
    t->dlerror = remote_symbol(r, t->libc, "dlerror", NULL);
    if (!t->dlopen || !t->dlsym || !t->dlerror || !remote_symbol(r, t->libc, "_dl_find_object", NULL))
        return error_set(err, EINVAL, "%d: its C library is older than glibc 2.35; it cannot be recorded", pid);
    if (t->allocator == &r->objects[0])
        return error_set(err, EINVAL, "%d: its program defines malloc itself, so that its heap is not seen", pid);
    return 0;
}

int target_refresh(struct target *t)
{
    struct error unused;
    remote_close(&t->remote);
    int rc = remote_open(&t->remote, t->pid);
    return rc ? rc : find_parts(t, &unused);
}

/* A library that came once stays: one of another version cannot join our recording. */
static int check_library(const struct target *t, struct error *err)
{
    struct wire_library its = {0};
    uint64_t at = t->library ? remote_symbol(&t->remote, t->library, "memprof_hook_version", NULL) : 0;
    int is_known = at && remote_read(t->pid, at, &its, sizeof its);
    if (!t->library || (is_known && its.wire_version == WIRE_VERSION))
        return 0;
    its.version[sizeof its.version - 1] = 0;
    return error_set(err, EINVAL,
                     "%d: the library of %s memprof%s%s is in it already (%s), and stays until it ends; attach with "
                     "that memprof, or start the process anew",
                     (int)t->pid, is_known ? "another" : "an older", is_known ? ", " : "", its.version,
                     t->library->name);
}

int target_open(struct target *t, pid_t pid, const char *library, struct error *err)
{
    *t = (struct target){.pid = pid};
    int rc = check_status(pid, err);
    if (rc == 0)
        rc = check_program(pid, err);
    if (rc == 0)
        rc = check_secure(pid, err);
    if (rc == 0)
        rc = check_room(pid, library, err);
    if (rc == 0)
        rc = check_not_started_by_us(pid, err);
    if (rc)
        return rc;
    rc = remote_open(&t->remote, pid);
    if (rc == -EPERM)
        rc = target_refused(pid, err);
    else if (rc)
        rc = error_set(err, EINVAL, "%d: its dynamic loader keeps no list of what is loaded; it cannot be attached to",
                       (int)pid);
    if (rc == 0)
        rc = find_parts(t, err);
    if (rc == 0 && library)
        rc = check_library(t, err);
    if (rc)
        target_close(t);
    return rc;
}

void target_close(struct target *t)
{
    remote_close(&t->remote);
}
