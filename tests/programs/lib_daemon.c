/* Goes on as a daemon, whose parent has ended for some time before it allocates. */
#include <unistd.h>

int go_on_alone(void)
{
    pid_t pid = fork();
    if (pid > 0)
        _exit(0);
    usleep(500000);
    return pid;
}
