# memprof attach to a program that has a title of its own in the memory of its arguments, and was started by a link: the
# title without the room behind it, and the link's name.
[ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] || [ "$(id -u)" = 0 ] ||
    skip "this user may not trace"
need python3
. "$ROOT/tests/e2e/attach.inc"
cat >many.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void *volatile kept;
__attribute__((noinline)) static void work(int size)
{
    kept = malloc((size_t)size);
}
int main(int argc, char **argv)
{
    size_t room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);
    char line[64];
    memset(argv[0], 0, room);
    strncpy(argv[0], "server *:7914", room - 1);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        for (int i = 0; i < 100; i++)
            work(1000);
        puts("worked");
        fflush(stdout);
    }
    return 0;
}
END
"$CC" -O1 -fno-builtin -o many-check many.c
ln -s many-check server
start_target ./server --with some --more arguments "and room for a title"
attach_to "$target"
ask work >/dev/null
"$MEMPROF" detach "$target" || fail "detach failed"
wait $collector || { cat attach.err; fail "attach ended with $?"; }
end_target worked
"$MEMPROF" report out.db >report
equal "the command" "'server *:7914'" "$(head -n 1 report)"
equal "the process" "'server *:7914'" "$(value "SELECT command_line FROM process")"
contains "its module" report "work      [server]"
lacks "its module" report "many-check"
