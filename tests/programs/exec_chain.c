/* exec_chain N: allocates 10 blocks of N bytes in `link_work` (never freed), then executes itself with N - 1; N = 0
 * ends with status 42. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static __attribute__((noinline)) void link_work(int n)
{
    for (int i = 0; i < 10; i++)
        if (!malloc(n))
            abort();
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 3;
    link_work(n);
    if (n == 0)
        return 42;
    char text[16];
    snprintf(text, sizeof text, "%d", n - 1);
    execl("/nonexistent/program", "program", (char *)NULL); /* a failed exec changes nothing */
    execl("/proc/self/exe", argv[0], text, (char *)NULL);
    return 1;
}
