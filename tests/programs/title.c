/* Names itself as servers do: by its arguments' memory in a forked child (as setproctitle does), by prctl in another. A
 * third has a child of its own after that, and a title that is no good for terminals. With "killed" it is one that
 * names itself so, and is killed 600 ms later. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void set_title(char **argv, size_t room, const char *title)
{
    memset(argv[0], 0, room);
    strncpy(argv[0], title, room - 1);
}

int main(int argc, char **argv)
{
    size_t room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);
    free(malloc(10));
    if (argc > 1 && strcmp(argv[1], "killed") == 0) {
        pid_t worker = fork();
        if (worker == 0) {
            set_title(argv, room, "server: worker 2");
            free(malloc(20));
            pause();
        }
        usleep(600000);
        kill(worker, SIGKILL);
        waitpid(worker, NULL, 0);
        return 0;
    }
    if (fork() == 0) {
        set_title(argv, room, "server: worker 1");
        free(malloc(20));
        _exit(0);
    }
    if (fork() == 0) {
        prctl(PR_SET_NAME, "by prctl");
        free(malloc(30));
        exit(0);
    }
    if (fork() == 0) {
        set_title(argv, room, "odd \033[7m\a\rx");
        if (fork() == 0)
            free(malloc(40));
        else
            wait(NULL);
        _exit(0);
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}
