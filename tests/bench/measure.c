/*
 * measure PROGRAM [ARG]...: runs it and writes one line to standard error: wall=, user=, sys= (seconds, of it and all
 * that it waited for) and max_rss_kib= (the largest single process of them). Exits with the program's status.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
static double seconds(struct timeval t)
{
    return t.tv_sec + t.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    double start = now();
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (wait4(pid, &status, 0, &usage) < 0)
        return 1;
    double end = now();
    fprintf(stderr, "\nmeasure: wall=%.6f user=%.6f sys=%.6f max_rss_kib=%ld\n", end - start, seconds(usage.ru_utime),
            seconds(usage.ru_stime), usage.ru_maxrss);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
