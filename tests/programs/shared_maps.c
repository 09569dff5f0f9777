/* Shared memory, in pages of 4,096 bytes. Argument: a file, of more than 16 pages.
 *   of_memfd: 10 pages of a memfd, kept; of_shm: 20 pages of shm_open, of which the middle 5 are unmapped; of_segment:
 * 6 pages and a byte of System V's, attached twice, once detached (7 pages are left); of_zero: 3 pages of /dev/zero,
 *   private. refused: a shmdt of what was never attached, and the memfd's, which ends nothing.
 *   of_file: 16 pages of the file, shared; copied: 16 pages of a memfd, private: neither is counted. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

enum { PAGE = 4096 };

static char *map(size_t pages, int flags, int fd)
{
    return mmap(NULL, pages * PAGE, PROT_READ | (fd < 0 || flags & MAP_SHARED ? PROT_WRITE : 0), flags, fd, 0);
}

static __attribute__((noinline)) char *of_memfd(void)
{
    int fd = memfd_create("shared_maps", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 10 * PAGE))
        return NULL;
    char *p = map(10, MAP_SHARED, fd);
    close(fd);
    return p == MAP_FAILED ? NULL : memset(p, 1, 10 * PAGE);
}

static __attribute__((noinline)) int of_shm(void)
{
    char name[64];
    snprintf(name, sizeof name, "/memprof-shared-maps-%d", getpid());
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return 1;
    shm_unlink(name);
    if (ftruncate(fd, 20 * PAGE))
        return 1;
    char *p = map(20, MAP_SHARED, fd);
    close(fd);
    return p == MAP_FAILED || munmap(p + 8 * PAGE, 5 * PAGE);
}

static __attribute__((noinline)) int of_segment(void)
{
    int id = shmget(IPC_PRIVATE, 6 * PAGE + 1, IPC_CREAT | 0600);
    char *a = shmat(id, NULL, 0), *b = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    if (a == (void *)-1 || b == (void *)-1)
        return 1;
    b[0] = 1;
    return a[0] != 1 || shmdt(a);
}

static __attribute__((noinline)) int of_zero(void)
{
    int fd = open("/dev/zero", O_RDWR);
    char *p = map(3, MAP_PRIVATE, fd);
    close(fd);
    return p == MAP_FAILED;
}

static __attribute__((noinline)) int refused(char *mapped)
{
    static _Alignas(PAGE) char own[PAGE];
    return shmdt(own) != -1 || shmdt(mapped) != -1 || mapped[PAGE] != 1;
}

static __attribute__((noinline)) int of_file(const char *path)
{
    int fd = open(path, O_RDONLY);
    char *p = mmap(NULL, 16 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return p == MAP_FAILED;
}

static __attribute__((noinline)) int copied(void)
{
    int fd = memfd_create("copied", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 16 * PAGE))
        return 1;
    char *p = map(16, MAP_PRIVATE, fd);
    close(fd);
    return p == MAP_FAILED;
}

int main(int argc, char **argv)
{
    char *kept = of_memfd();
    return argc < 2 || !kept || of_shm() || of_segment() || of_zero() || refused(kept) || of_file(argv[1]) || copied();
}
