/* What the kernel knows of this image and nobody can ask any more once it is gone: its peak, its title, and what the
 * process executes next, which may be nothing that can be recorded. */
#include "image.h"

#include "environment.h"
#include "needed.h"
#include "process.h"
#include "rights.h"
#include "session.h"
#include "status.h"
#include "unwind/modules.h"

#include <fcntl.h>

static long read_file(const char *path, char *text, size_t room)
{
    int fd = sys_open(path, O_RDONLY | O_CLOEXEC);
    long n = fd < 0 ? fd : sys_read(fd, text, room);
    if (fd >= 0)
        sys_close(fd);
    return n;
}

/* In KiB; 0: there is none. Not getrusage: what that says counts the images before, and the process that forked this
 * one. */
static uint64_t peak_rss_bytes(const char *text)
{
    const char *line = status_line(text, "\nVmHWM:");
    return line ? status_number(&line, 10) * 1024 : 0;
}

void image_ends(void)
{
    static int under_way; /* in this process: the text is one for all threads, and the second leaves it to the first */
    static char text[2048];
    struct wire_proc *slot = process.slot;
    int pid = process.pid;
    if (!gate.on || !slot || process_is_filtered() || sys_getpid() != pid || slot->pid != pid ||
        __atomic_exchange_n(&under_way, pid, __ATOMIC_ACQUIRE) == pid)
        return;
    long n = read_file("/proc/self/status", text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    slot->peak_rss_bytes = peak_rss_bytes(text);
    n = read_file("/proc/self/cmdline", slot->title, sizeof slot->title);
    slot->title_bytes = n > 0 ? (uint32_t)n : 0;
    __atomic_store_n(&under_way, 0, __ATOMIC_RELEASE);
}

/* --- the next image --- */

#define ENOENT_RESULT   (-2)
#define EACCES_RESULT   (-13)
#define ENOSYS_RESULT   (-38)
#define SYS_FACCESSAT2  439
#define BY_EFFECTIVE_ID 0x200
#define CURRENT_DIR     (-100)

static long can_access_at(long directory, const char *path, int mode)
{
    long rc = sys_call6(SYS_FACCESSAT2, directory, (long)path, mode, BY_EFFECTIVE_ID, 0, 0);
    return rc == ENOSYS_RESULT ? sys_call6(SYS_faccessat, directory, (long)path, mode, 0, 0, 0) : rc;
}

static long can_access(const char *path, int mode)
{
    return can_access_at(CURRENT_DIR, path, mode);
}

static char *path_of(struct image_target *t)
{
    return (char *)(t->words + 3);
}

/* 0: it has no room. */
static int add(struct image_target *t, const char *text, size_t length)
{
    char *path = path_of(t);
    for (size_t i = 0; i < length && text[i]; i++) {
        if (t->bytes == WIRE_TARGET_MAX - 1)
            return 0;
        path[t->bytes++] = text[i];
    }
    path[t->bytes] = 0;
    return 1;
}

/* The current directory, where what follows is relative to it. */
static int add_directory(struct image_target *t, const char *next)
{
    char *path = path_of(t);
    t->bytes = 0;
    if (*next == '/')
        return 1;
    long n = sys_call(SYS_getcwd, path, WIRE_TARGET_MAX - 1, 0);
    if (n < 2 || *path != '/')
        return 0;
    t->bytes = (uint32_t)n - 1; /* the NUL */
    return path[t->bytes - 1] == '/' || add(t, "/", 1);
}

static int find_at(struct image_target *t, int fd, const char *file)
{
    char link[32] = "/proc/self/fd/";
    if (*file == '/' || (*file && fd == CURRENT_DIR)) {
        int has_room = add_directory(t, file);
        while (file[0] == '.' && file[1] == '/')
            file += 2;
        return has_room && add(t, file, WIRE_TARGET_MAX);
    }
    if (*file || fd < 0)
        return 0;
    unsigned at = 14, digits = 1;
    for (int rest = fd; rest >= 10; rest /= 10)
        digits++;
    for (unsigned i = digits; i-- > 0; fd /= 10)
        link[at + i] = (char)('0' + fd % 10);
    long n = sys_readlink(link, path_of(t), WIRE_TARGET_MAX - 1);
    if (n < 1 || *path_of(t) != '/')
        return 0;
    t->bytes = (uint32_t)n;
    return 1;
}

/* Goes from directory on to the next part of a path, which it then stands behind. */
static long step(struct image_target *t, long directory, const char **path, const char *end)
{
    const char *p = *path;
    t->bytes = 0;
    while (p < end && *p != '/' && add(t, p, 1))
        p++;
    while (p < end && *p == '/')
        p++;
    *path = p;
    long next = sys_call6(SYS_openat, directory, (long)path_of(t), O_PATH | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
    if (directory >= 0)
        sys_close((int)directory);
    return next;
}

/* Whether file can be executed in a directory whose path has no room in t, part by part. The path is then not known. */
static int is_in_long(struct image_target *t, const char *path, size_t length, const char *file)
{
    const char *end = path + length;
    long directory = CURRENT_DIR;
    if (length && *path == '/')
        directory = sys_open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (length && path < end && *path == '/')
        path++;
    while (path < end && (directory >= 0 || directory == CURRENT_DIR))
        directory = step(t, directory, &path, end);
    t->bytes = 0;
    int is_there = (directory >= 0 || directory == CURRENT_DIR) && add(t, file, WIRE_TARGET_MAX) &&
                   can_access_at(directory, path_of(t), 1) == 0;
    if (directory >= 0)
        sys_close((int)directory);
    t->bytes = 0;
    return is_there;
}

static int find_in_path(struct image_target *t, const char *file)
{
    const char *list = environment_find("PATH");
    for (const char *p = list ? list : "/bin:/usr/bin";; p++) {
        size_t n = 0;
        while (p[n] && p[n] != ':')
            n++;
        int has_room =
            add_directory(t, n ? p : "") && add(t, p, n) && (!n || add(t, "/", 1)) && add(t, file, WIRE_TARGET_MAX);
        if (has_room ? can_access(path_of(t), 1) == 0 : is_in_long(t, p, n, file))
            return 1;
        p += n;
        if (!*p)
            return 0;
    }
}

static int has_slash(const char *file)
{
    while (*file && *file != '/')
        file++;
    return *file;
}

void image_target(struct image_target *t, int fd, const char *file, enum image_search search)
{
    t->bytes = t->without_library = 0;
    t->reach = WIRE_REACH_YES;
    t->words[2] = 0;
    path_of(t)[0] = 0;
    if (!gate.on || !(process.control->flags & WIRE_FOLLOW))
        return;
    t->words[2] = clock_now();
    if (process_is_filtered())
        return;
    if (!file || !memory_readable((uint64_t)file & ~7ull) ||
        !(search == IMAGE_IN_PATH && *file && !has_slash(file) ? find_in_path(t, file) : find_at(t, fd, file)))
        t->bytes = 0;
    path_of(t)[t->bytes] = 0;
    long session = can_access(process.control->session_path, 6), library = can_access(process.control->library_path, 4);
    t->without_library = library == ENOENT_RESULT || library == EACCES_RESULT;
    /* another user's capabilities, by which it may have access yet, end with the exec */
    uint32_t uid = (uint32_t)sys_call(SYS_geteuid, 0, 0, 0);
    if (session == EACCES_RESULT || (uid && uid != process.control->uid))
        t->reach = WIRE_REACH_DENIED;
    else if (t->without_library)
        t->reach = WIRE_REACH_NO_LIBRARY;
    else if (session == ENOENT_RESULT)
        t->reach = WIRE_REACH_NO_SESSION;
    else
        t->reach = (uint32_t)rights_of_next();
    /* nothing could be recorded, and the library would take from the program what little it may have */
    t->without_library |= (uint32_t)!session_has_room();
    t->without_library |= (uint32_t)needed_comes_first(path_of(t)); /* the collector finds out why it did not come */
}
