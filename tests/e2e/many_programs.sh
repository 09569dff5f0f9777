# A recording of several programs: what to look at next is who of them it was, in rows of one line each.
cp "$PROGRAMS/own_new" one
cp "$PROGRAMS/own_new" two
long=$(printf '%01000d' 7)
record_ok sh -c "./one malloc $long; ./two malloc; true"
"$MEMPROF" report out.db >report
grep -q '^ *\(Next: \)\{0,1\} *memprof report --by process$' report || { cat report; fail "no report by process"; }
"$MEMPROF" report out.db --by process >table
contains "the table" table "./one malloc 0000"
at_least "its widest row, of a command of 1,014 characters" 500 "$(wc -L <table)"
at_most "its widest row" 600 "$(wc -L <table)"
"$MEMPROF" report out.db --by process --csv >csv
contains "CSV" csv "./one malloc $long"
"$MEMPROF" report out.db --by process --json >json
contains "JSON" json "./one malloc $long"
"$MEMPROF" report out.db --process "$(value "SELECT pid FROM process WHERE exe LIKE '%/one'")" >report
lacks "one of them" report "--by process"

# a program and the shell that started it
record_ok sh -c "./one malloc; ./one malloc; true"
"$MEMPROF" report out.db >report
lacks "a program" report "--by process"

# A program whose own blocks are the lesser part: what leaves most is offered, as 'memprof leaks' lists the program's
# own.
cat >starts.c <<'EOF'
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept;

/* starts OWN [OTHER...]: leaves so many bytes, and programs of another name that do */
int main(int argc, char **argv)
{
    kept = memset(malloc((size_t)atoi(argv[1])), 1, (size_t)atoi(argv[1]));
    for (int i = 2; i < argc; i++) {
        if (fork() == 0) {
            execl("./other", "other", argv[i], NULL);
            _exit(1);
        }
        wait(NULL);
    }
    return kept == NULL;
}
EOF
"$CC" -O1 -g -fno-builtin -o starts starts.c
cp starts other
record_ok ./starts 1000 100000
"$MEMPROF" report out.db >report
pid=$(value "SELECT pid FROM process WHERE exe LIKE '%/other'")
contains "where most is" report " memprof leaks --process $pid   (other, which had most live at"
"$MEMPROF" leaks --process "$pid" out.db >leaks
contains "which it lists" leaks "97.66 KiB in 1 block"
record_ok ./starts 100000 1000
"$MEMPROF" report out.db >report
grep -q '^ *\(Next: \)\{0,1\} *memprof leaks$' report || { cat report; fail "the program's own is most"; }
# others that leave more all together, where none has as much as the program: what it left is said, and what they did
record_ok ./starts 5000000 4000000 3000000
"$MEMPROF" report out.db >report
contains "its own" report "* Never freed: 4.77 MiB in 1 block of host was still live at the end."
contains "the others" report "the largest of 2 processes, other, had 3.81 MiB"
lacks "the largest" report "which had most live"
record_ok ./starts 5000000 3000000 6000000
"$MEMPROF" report out.db >report
contains "another is the largest" report "the largest of 2 processes, other, had 5.72 MiB"
pid=$(value "SELECT pid FROM process WHERE command_line LIKE 'other %6000000'")
contains "another is the largest" report " memprof leaks --process $pid   (other, which had most live at"
