/* strange: calls from a misaligned stack, an image without an environment, a thread whose destructors allocate to the
 * end. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_key_t key;

static void late(void *round)
{
    free(malloc(50));
    if ((uintptr_t)round < 9)
        pthread_setspecific(key, (char *)round + 1);
}

static void *thread(void *argument)
{
    free(malloc(100));
    pthread_setspecific(key, (void *)1);
    return argument;
}

__attribute__((noinline)) static void misaligned(void)
{
    void *p;
    __asm__ volatile("sub $136, %%rsp\n\t"
                     "mov $64, %%edi\n\t"
                     "call malloc\n\t"
                     "mov %%rax, %%rdi\n\t"
                     "call free\n\t"
                     "add $136, %%rsp"
                     : "=a"(p)
                     :
                     : "rdi", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory");
}

int main(int argc, char **argv)
{
    pthread_t t;
    if (argc > 1)
        return 5;
    misaligned();
    pthread_key_create(&key, late);
    for (int i = 0; i < 50; i++)
        if (pthread_create(&t, NULL, thread, NULL) || pthread_join(t, NULL))
            return 2;
    pid_t pid = fork();
    if (pid == 0) {
        char *const arguments[] = {argv[0], "again", NULL};
        execve("/proc/self/exe", arguments, NULL);
        _exit(127);
    }
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 5 ? 0 : 3;
}
