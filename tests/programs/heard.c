/* heard [stop]: says "ready", then a line for each signal of a terminal that comes, and ends with SIGUSR1. With "stop"
 * SIGTSTP stops it as it does by default. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGINT, "INT\n"}, {SIGQUIT, "QUIT\n"}, {SIGWINCH, "WINCH\n"}, {SIGCONT, "CONT\n"}, {SIGTSTP, "TSTP\n"}};

static void say(const char *text)
{
    if (write(1, text, strlen(text)) < 0)
        _exit(1);
}

static void heard(int number)
{
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
        if (signals[i].number == number)
            say(signals[i].name);
}

static void end(int number)
{
    (void)number;
    say("end\n");
    _exit(5);
}

int main(int argc, char **argv)
{
    int stops = argc > 1 && strcmp(argv[1], "stop") == 0;
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i].number,
                  &(struct sigaction){.sa_handler = stops && signals[i].number == SIGTSTP ? SIG_DFL : heard}, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = end}, NULL);
    say("ready\n");
    for (;;)
        pause();
}
