/* What the kernel knows of this image, and nobody any more when its parent or the collector asks. */
#include "image.h"

#include "process.h"

#include <fcntl.h>

static long read_file(const char *path, char *text, size_t room)
{
    int fd = sys_open(path, O_RDONLY | O_CLOEXEC);
    long n = fd < 0 ? fd : sys_read(fd, text, room);
    if (fd >= 0)
        sys_close(fd);
    return n;
}

/* From the line "VmHWM:     1234 kB"; 0: there is none. Not getrusage: what that says counts the images before, and the
 * process that forked this one. */
static uint64_t peak_rss_bytes(const char *text, long length)
{
    static const char name[] = "\nVmHWM:";
    uint64_t kib = 0;
    for (long i = 0; i + (long)sizeof name < length; i++) {
        unsigned k = 0;
        while (name[k] && text[i + (long)k] == name[k])
            k++;
        if (name[k])
            continue;
        for (i += (long)k; i < length && (text[i] == ' ' || text[i] == '\t'); i++)
            ;
        for (; i < length && text[i] >= '0' && text[i] <= '9'; i++)
            kib = kib * 10 + (uint64_t)(text[i] - '0');
        return kib * 1024;
    }
    return 0;
}

void image_ends(void)
{
    static int under_way; /* in this process: the text is one for all threads, and the second leaves it to the first */
    static char text[2048];
    struct wire_proc *slot = process.slot;
    int pid = process.pid;
    if (!gate.on || !slot || process.filtered || sys_getpid() != pid || slot->pid != pid ||
        __atomic_exchange_n(&under_way, pid, __ATOMIC_ACQUIRE) == pid)
        return;
    long n = read_file("/proc/self/status", text, sizeof text);
    slot->peak_rss_bytes = peak_rss_bytes(text, n);
    n = read_file("/proc/self/cmdline", slot->title, sizeof slot->title);
    slot->title_bytes = n > 0 ? (uint32_t)n : 0;
    __atomic_store_n(&under_way, 0, __ATOMIC_RELEASE);
}
