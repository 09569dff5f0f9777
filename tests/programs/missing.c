/* missing drop USER PROGRAM: allocates, gives up its rights for good, goes on with a thread and a child of its own,
 * looks at the recording with the rights it has left, and executes a program as that user. missing spawn PROGRAM,
 * missing vfork PROGRAM: runs it so, and then a program that does not exist. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

__attribute__((noinline)) static void before_work(void)
{
    for (int i = 0; i < 10; i++)
        free(malloc(100));
}

__attribute__((noinline)) static void after_work(void)
{
    for (int i = 0; i < 1000; i++)
        free(malloc(200));
}

static void *thread(void *unused)
{
    after_work();
    return unused;
}

static int drop(uid_t user, char **program)
{
    pthread_t t;
    before_work();
    if (setgid(user) || setuid(user))
        return 77;
    after_work();
    if (pthread_create(&t, NULL, thread, NULL) || pthread_join(t, NULL))
        return 1;
    pid_t child = fork();
    if (child == 0) {
        after_work();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    const char *session = getenv("MEMPROF_SESSION");
    if (session && (open(session, O_RDWR) >= 0 || open(session, O_RDONLY) >= 0 || errno != EACCES)) {
        puts("the recording is open to another user");
        return 1;
    }
    child = fork();
    if (child == 0) {
        execv(program[0], program);
        _exit(127);
    }
    waitpid(child, NULL, 0);
    return 0;
}

static void run(const char *how, char **program)
{
    pid_t child;
    if (strcmp(how, "spawn") == 0) {
        if (posix_spawn(&child, program[0], NULL, NULL, program, environ))
            return;
    } else {
        child = vfork();
        if (child == 0) {
            execv(program[0], program);
            _exit(127);
        }
    }
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    char *absent[] = {(char *)"/nowhere/at/all", NULL};
    if (argc > 3 && strcmp(argv[1], "drop") == 0)
        return drop((uid_t)atoi(argv[2]), argv + 3);
    run(argv[1], argv + 2);
    run(argv[1], absent);
    return 0;
}
