# A recorded image executes, in its place, a program that cannot be recorded: its numbers stay its own, under its own
# name, however late the collector looks, and the other program is a row that says why.
cat >before.c <<'END'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static void before_work(void)
{
    for (int i = 0; i < 100; i++)
        if (!malloc(1000))
            abort();
}
/* before [late]: executes $NEXT; late: in a child, while memprof stands still, whose number it gets */
int main(int argc, char **argv)
{
    const char *session = getenv("MEMPROF_SESSION"), *next = getenv("NEXT");
    char collector[16] = "0";
    if (argc > 1 && strcmp(argv[1], "late") == 0) {
        if (!session || sscanf(session, "/proc/%15[0-9]", collector) != 1 || kill(atoi(collector), SIGSTOP))
            return 1;
        if (fork() > 0)
            return wait(NULL) < 0;
    }
    before_work();
    execl(next, next, collector, (char *)0);
    return 1;
}
END
cat >next.c <<'END'
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int collector = argc > 1 ? atoi(argv[1]) : 0;
    if (collector > 0)
        kill(collector, SIGCONT);
    usleep(collector > 0 ? 500000 : 0);
    return 9;
}
END
$CC -g -O1 -fno-builtin before.c -o before
$CC -static next.c -o pstatic 2>/dev/null || skip "no static C library"
NEXT=./pstatic
export NEXT
said() { grep -c "$1" "$2" || :; } # how many lines
page_title() { "$MEMPROF" report out.db --html=page.html >/dev/null; sed -n 's/.*<title>\([^<]*\)<.*/\1/p' page.html; }

record ./before
equal "status" 9 $status
sound
equal "its numbers" "100|100000" "$(by_function before_work | cut -d'|' -f1,2)"
contains "run" run.err "memprof: the program that it executed could not be recorded: 'memprof info out.db' says why"
lacks "run" run.err "of its children"
"$MEMPROF" report --by process out.db >by.txt
equal "by process: the image that was recorded" 1 "$(said ' \./before$' by.txt)"
equal "by process: not the one that was not" 0 "$(said pstatic by.txt)"
contains "by process" by.txt "(1 program was not recorded and has no row: 'memprof info' says why)"
"$MEMPROF" report --by process --json out.db >by.json
contains "by process, json" by.json '"command": "./before"'
lacks "by process, json" by.json pstatic
"$MEMPROF" report --process "$(value "SELECT pid FROM process LIMIT 1")" out.db >one.txt
equal "head of the process" "./before" "$(head -n 1 one.txt)"
contains "how the process ended" one.txt "exit status 9"
contains "above the tables" one.txt "! the program that it executed in its place is not recorded (statically linked; "
"$MEMPROF" report out.db >report.txt
contains "of all processes, too" report.txt "! the program that it executed in its place is not recorded (statically l"
case $(page_title) in before*) ;; *) fail "the page's title: $(page_title)" ;; esac
contains "the page's list" page.html '"not_recorded":"statically linked; the library cannot be loaded into it"'
"$MEMPROF" info out.db >info.txt
equal "info" 1 "$(said "not recorded (statically linked): .*pstatic" info.txt)"

# a file of before that column
cp out.db older.db
sqlite3 older.db 'ALTER TABLE process DROP COLUMN not_recorded'
"$MEMPROF" report --by process older.db >older.txt || fail "an older file"
contains "an older file's process" older.txt "97.66 KiB"

# the first one goes on as what it started, and so do its children
record sh -c './before; ./before; exec ./before'
contains "run: its own and its children's" run.err \
    "memprof: the program that it executed and 2 programs of its children could not be recorded: "
"$MEMPROF" report --by process out.db >by.txt
equal "by process: of three" "0 3" "$(said pstatic by.txt) $(said ' \./before$' by.txt)"
contains "by process: of three" by.txt "(3 programs were not recorded and have no row: "

# a launcher whose child is a program without numbers
if command -v timeout >/dev/null; then
    record timeout 60 ./pstatic
    case $(page_title) in *pstatic*) fail "named after what has no numbers: $(page_title)" ;; esac
fi

# its first thread is looked for when it has another's name already
record_ok ./before late
equal "the first thread's name" "before" \
    "$(sql "SELECT t.name FROM thread t JOIN process p USING(process_id) WHERE p.start_kind = 'fork'")"
"$MEMPROF" info out.db >info.txt
equal "info: threads" 0 "$(sed -n '/^Threads/,$p' info.txt | grep -c pstatic || :)"
