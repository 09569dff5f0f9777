# Whose leaks `memprof leaks` counts: those of the program that was named and of its forks, not of what it executed; of
# a shell's programs, where a shell was named. What the C library keeps, and OpenMP's, fails no clean program.
cat >other.c <<'END'
#include <stdlib.h>
void *kept;
__attribute__((noinline)) static void other(void)
{
    kept = malloc(3000);
}
int main(void)
{
    other();
    return 0;
}
END
cat >app.c <<'END'
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
void *volatile kept;
__attribute__((noinline)) static void here(int size)
{
    kept = malloc((size_t)size);
}
int main(int argc, char **argv)
{
    here(1000);
    if (fork() == 0) {
        here(2000);
        return 0;
    }
    wait(NULL);
    if (argc > 1)
        execv(argv[1], argv + 1);
    return system("./other");
}
END
cat >clean.c <<'END'
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static void *work(void *unused)
{
    return unused;
}
int main(void)
{
    time_t now = time(NULL);
    pthread_t thread;
    setlocale(LC_ALL, "");
    localtime(&now);
    getpwnam("root");
    getservbyname("http", "tcp");
    setenv("MEMPROF_TEST_NAME", "value", 1);
    putenv("MEMPROF_TEST_OTHER=1");
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread, NULL, work, NULL) == 0)
            pthread_join(thread, NULL);
    puts("clean");
    return system("true");
}
END
for program in other app clean; do "$CC" -O1 -g -fno-builtin -o $program $program.c -lpthread; done
# leaks OPTION...: bytes of the program's, exit status
leaks() {
    code=0
    "$MEMPROF" leaks --json --error-exitcode 9 "$@" >leaks.json || code=$?
    python3 -c 'import json, sys
d = json.load(open("leaks.json"))
print(d["end_bytes"], int(sys.argv[1]))' $code
}
key() { python3 -c 'import json, sys; print(json.load(open("leaks.json"))[sys.argv[1]])' "$1"; }

record_ok ./app
equal "the program and its fork" "3000 9" "$(leaks)"
at_least "others" 3000 "$(key other_programs_bytes)"
"$MEMPROF" leaks >leaks.txt
contains "how to see them" leaks.txt "; --process PID shows one of their processes ("
lacks "the other's function" leaks.txt "  other "
"$MEMPROF" leaks --all >leaks.txt
contains "all" leaks.txt "  other "
pid=$(sql "SELECT pid FROM process WHERE exe LIKE '%/other'")
equal "one process" "3000 9" "$(leaks --process "$pid")"

cat >none.c <<'END'
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    free(malloc(10));
    if (fork() == 0)
        _exit(0);
    wait(NULL);
    return 0;
}
END
"$CC" -O1 -g -fno-builtin -o none none.c
record_ok ./none
"$MEMPROF" report >report.txt
lacks "nothing was live" report.txt "memprof leaks"
contains "all processes" report.txt ", 2 processes, "
"$MEMPROF" report --by process >report.txt
contains "a process that allocated nothing" report.txt "(1 of 2 processes allocated nothing)"
record_ok ./app
"$MEMPROF" report >report.txt
contains "what was live" report.txt "memprof leaks"

record_ok ./clean
equal "a clean program" "0 0" "$(leaks)"
at_least "what the library keeps" 1 "$(key library_bytes)"

# where a program ends in another it is what that one leaves
record_ok ./app ./other
equal "executed in its place" "3000 9" "$(leaks)"
equal "what the first one had" 3000 "$(key other_programs_bytes)"

# a launcher stands for what it starts, also behind env, which becomes its command, and with a shell in between
record_ok timeout 100 env A=b ./app
equal "a launcher's program" "3000 9" "$(leaks)"
at_least "what the program of a launcher ran" 3000 "$(key other_programs_bytes)"
record_ok timeout 100 sh -c './other; ./app; true'
equal "a launcher's shell's programs" "9000 9" "$(leaks)"

# a program that executes itself
cat >self.c <<'END'
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
void *volatile kept;
int main(int argc, char **argv)
{
    kept = malloc(argc > 1 ? 500 : 1000);
    if (argc == 1 && fork() == 0)
        execl(argv[0], argv[0], "worker", (char *)NULL);
    if (argc == 1)
        wait(NULL);
    return 0;
}
END
"$CC" -O1 -g -fno-builtin -o self self.c
record_ok ./self
equal "itself" "1500 9" "$(leaks)"

record_ok sh -c './other; ./app; true'
equal "a shell's programs" "9000 9" "$(leaks)"

cat >team.c <<'END'
#include <stdlib.h>
void *volatile kept;
int main(void)
{
    int sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 100; i++) {
        free(malloc(100));
        sum += i;
    }
#ifdef LEAK
#pragma omp parallel num_threads(2)
#pragma omp critical
    kept = malloc(50);
#endif
    return sum != 4950;
}
END
"$CC" -O1 -g -fopenmp -o team team.c 2>err || skip "no OpenMP: $(head -n 1 err)"
record_ok ./team
equal "OpenMP" "0 0" "$(leaks)"
"$CC" -O1 -g -fopenmp -DLEAK -o team team.c
record_ok ./team
equal "OpenMP with a leak" "100 9" "$(leaks)"
