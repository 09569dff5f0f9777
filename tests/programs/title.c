/* Names itself as servers do: by its arguments' memory in a forked child (as setproctitle does), by prctl in another.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const char title[] = "server: worker 1";
    size_t room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);
    free(malloc(10));
    if (fork() == 0) {
        memset(argv[0], 0, room);
        memcpy(argv[0], title, sizeof title < room ? sizeof title : room - 1);
        free(malloc(20));
        _exit(0);
    }
    if (fork() == 0) {
        prctl(PR_SET_NAME, "by prctl");
        free(malloc(30));
        exit(0);
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}
