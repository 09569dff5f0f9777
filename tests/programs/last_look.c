/* last_look HOW: `kept` maps 100 MiB and `halved` 20 MiB, and both write all of it; 10 MiB of `halved` are given back,
 * and the program ends 700 ms later: "exit", "_exit", "main" (returns), "kill" (SIGKILL, from itself). With a second
 * argument they are given back just before the end. "fork" does "exit" in a child, whose parent had none of it, and
 * that ends 300 ms after it. "linger" ends when it has read a byte, or that there is none. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char *map(size_t mib)
{
    char *p = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        exit(1);
    return memset(p, 1, mib << 20);
}
static __attribute__((noinline)) char *kept(void)
{
    char *p = map(100);
    __asm__ volatile("");
    return p;
}
static __attribute__((noinline)) char *halved(void)
{
    char *p = map(20);
    __asm__ volatile("");
    return p;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "main";
    int is_late = argc > 2;
    char byte;
    pid_t child = strcmp(how, "fork") ? 0 : fork();
    if (child) {
        waitpid(child, NULL, 0);
        usleep(300000);
        return 0;
    }
    kept();
    char *p = halved();
    if (is_late)
        usleep(700000);
    if (madvise(p, 10 << 20, MADV_DONTNEED))
        return 1;
    if (!is_late)
        usleep(700000);
    if (!strcmp(how, "linger") && read(0, &byte, 1) < 0)
        return 1;
    if (!strcmp(how, "_exit"))
        _exit(0);
    if (!strcmp(how, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(how, "exit") || !strcmp(how, "fork"))
        exit(0);
    return 0;
}
