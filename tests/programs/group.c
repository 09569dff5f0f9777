/* group PROGRAM [ARG]...: executes it as the leader of a new process group with SIGINT as a terminal's foreground job
 * has it; a shell gives its background jobs an ignored one. */
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    if (argc > 1)
        execvp(argv[1], argv + 1);
    return 127;
}
