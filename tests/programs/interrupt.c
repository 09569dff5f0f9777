/* interrupt exit|jump|fork|_Fork: a signal handler that interrupts realloc and does not simply return.
 * interrupt first: SIGWINCH interrupts the first allocation of all, and its handler leaves that by longjmp. */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;
static const char *what;
static volatile pid_t child;

static void handler(int signal)
{
    (void)signal;
    if (strcmp(what, "exit") == 0)
        exit(3);
    if (strcmp(what, "jump") == 0 || strcmp(what, "first") == 0)
        siglongjmp(back, 1);
    if (child)
        return;
    pid_t pid = strcmp(what, "fork") == 0 ? fork() : _Fork();
    child = pid ? pid : -1;
}

__attribute__((noinline)) static void work(void)
{
    void *blocks[64] = {0};
    for (unsigned i = 0; !child; i++)
        blocks[i % 64] = realloc(blocks[i % 64], 3000 + (i * 7919) % 60000);
}

__attribute__((noinline)) static void counted(void)
{
    for (int i = 0; i < 1000; i++) {
        void *p = malloc(123);
        __asm__ volatile("" : : "r"(p) : "memory");
    }
}

/* 8: no signal came */
static int first(void)
{
    signal(SIGWINCH, handler);
    if (!sigsetjmp(back, 1)) {
        void *p = malloc(1);
        return p ? 8 : 9;
    }
    signal(SIGWINCH, SIG_IGN);
    counted();
    return 0;
}

int main(int argc, char **argv)
{
    what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "first") == 0)
        return first();
    signal(SIGALRM, handler);
    if (!sigsetjmp(back, 1)) {
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 30000}}, NULL);
        work();
    }
    counted();
    if (child <= 0)
        return child ? 7 : 0;
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0 : 1;
}
