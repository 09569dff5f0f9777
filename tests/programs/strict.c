/* strict: goes on in seccomp's strict mode, where most system calls kill, on stack pages that nobody has seen. */
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) static int deep(int n)
{
    volatile char page[4096];
    page[0] = (char)n;
    if (n)
        return deep(n - 1) + page[0];
    free(malloc(50));
    return 0;
}

__attribute__((noinline)) static void before(void)
{
    free(malloc(60));
}

int main(void)
{
    before();
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        syscall(SYS_exit, 77);
    deep(10);
    syscall(SYS_exit, 0);
}
