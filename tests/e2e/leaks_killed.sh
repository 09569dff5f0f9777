# What Python's workers held when they were killed is not what was left by interpreters that took themselves down:
# leaks says so as the report does, and counts it, as it does what one program had when it was killed. The report says
# it above its tables where one worker had more than 4 MiB, whatever its parent's start-up held, and what Python freed.
need python3
# An interpreter of one's own may import more at its start than Debian's.
pythons=python3
[ ! -x /usr/bin/python3 ] || [ "$(realpath "$(command -v python3)")" = "$(realpath /usr/bin/python3)" ] ||
    pythons='python3 /usr/bin/python3'
cat >job.py <<'E'
import multiprocessing, sys, time
kept = []
def work(pipe):
    kept.append(bytearray(int(sys.argv[1])))
    pipe.send(1)
    time.sleep(100)
if __name__ == "__main__":
    context = multiprocessing.get_context(*sys.argv[3:] or ["spawn"])
    for _ in range(2):
        here, there = context.Pipe()
        worker = context.Process(target=work, args=(there,))
        worker.start()
        here.recv()
        worker.terminate()
        worker.join()
    freed = bytearray(int(sys.argv[2]))
E
killed() { # python, bytes of each worker, bytes that the parent keeps until Python frees them [, how it starts them]
    record_ok "$1" job.py "$2" "$3" ${4+"$4"}
    equal "$1: killed" 2 "$(value "SELECT count(*) FROM process WHERE end_kind = 'signal'")"
    "$MEMPROF" report >report.txt
}

for python in $pythons; do
    # together more than 4 MiB, but never at once
    killed "$python" 3000000 6000000
    lacks "workers of 3 MB" report.txt 'processes were killed'
    # each has what it allocated, and few blocks of multiprocessing's
    "$MEMPROF" report --json >report.json
    equal "$python: what one of them had, for lists" "1 1" "$("$python" -S -c 'import json
found = [f for f in json.load(open("report.json"))["findings"] if f["title"] == "Live when processes were killed"]
print(len(found), *[int(f["minor"] and 3000000 < f["bytes"] < 3500000) for f in found])')"

    killed "$python" 5000000 2000000
    how=$(grep -o 'live when 2 of [0-9]* processes were killed' report.txt)
    [ -n "$how" ] || fail "$python: the report: $(cat report.txt)"
    code=0
    "$MEMPROF" leaks --error-exitcode 9 >leaks.txt || code=$?
    equal "--error-exitcode" 9 $code
    grep -q "^L${how#l}.*: 9\.[0-9]* MiB in .*; below, what Python freed as it ended: 1\.[0-9]* MiB in " leaks.txt ||
        fail "as the report has it: $(cat leaks.txt)"
    tr '\n' ' ' <leaks.txt >line.txt
    grep -q "of this; 9\.[0-9]* MiB in [0-9,]* blocks were $how.*, which --error-exitcode and 'check --max-leak'" \
        line.txt || fail "the sums: $(cat leaks.txt)"
    # two of 5,000,001 B
    contains "of workers" leaks.txt \
        "9.54 MiB in 2 blocks, largest 4.77 MiB (host heap), live when processes were killed,"
    lacks "no interpreter's end" leaks.txt "Left when Python had taken itself down"
done
"$MEMPROF" check --max-leak 9M out.db >check.txt && fail "--max-leak: kept"

# a process alone
pid=$(sql "SELECT pid FROM process WHERE end_kind = 'signal' LIMIT 1")
"$MEMPROF" leaks --process "$pid" >leaks.txt
lacks "a worker alone" leaks.txt "taken itself down"

for python in $pythons; do
    # what the interpreter keeps in the parent is more than all of it, and in no forked worker: it decides nothing
    killed "$python" 200000 1000 fork
    "$MEMPROF" leaks >leaks.txt
    head -1 leaks.txt >line.txt
    grep -q '^Live when 2 of 3 processes were killed: 3[0-9][0-9]\.[0-9]* KiB in ' line.txt ||
        fail "forked: $(cat line.txt)"
    "$MEMPROF" report --json >report.json
    contains "forked: so does the report" report.json '"title": "Live when processes were killed"'
    lacks "forked: the report" report.json '"Never freed"'
done

# of workers that are killed together their sum weighs, though each had little
cat >together.c <<'END'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static void *work(void)
{
    return memset(malloc(3 << 20), 1, 3 << 20);
}
int main(int argc, char **argv)
{
    pid_t pids[20];
    int all = argc > 1;
    (void)argv;
    for (int i = 0; i < 20; i++) {
        if (!(pids[i] = fork())) {
            work();
            for (;;)
                pause();
        }
        if (!all) {
            usleep(50000);
            kill(pids[i], SIGKILL);
            waitpid(pids[i], NULL, 0);
        }
    }
    usleep(300000);
    for (int i = 0; all && i < 20; i++)
        kill(pids[i], SIGKILL);
    for (int i = 0; all && i < 20; i++)
        waitpid(pids[i], NULL, 0);
    return 0;
}
END
"$CC" -g -O1 -fno-builtin -o together together.c
record_ok ./together at-once
"$MEMPROF" report >report.txt
contains "killed together" report.txt "Live when processes were killed: 60.00 MiB in 20 blocks of host were live when"
record_ok ./together
"$MEMPROF" report >report.txt
lacks "killed one after another" report.txt "Live when processes were killed"

# a program that is no Python's: its parent or a child is killed, or it alone
cat >family.c <<'END'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static void keep(size_t mib)
{
    memset(malloc(mib << 20), 1, mib << 20);
}
int main(int argc, char **argv)
{
    const char *killed = argc > 1 ? argv[1] : "";
    if (strcmp(killed, "only") == 0) { /* the child alone has anything */
        if (fork() == 0) {
            keep(6);
            raise(SIGKILL);
        }
        return wait(NULL) < 0;
    }
    keep(6);
    for (int i = 0; i < 2 && strcmp(killed, "workers") == 0; i++)
        if (fork() == 0) {
            keep(1);
            if (i)
                raise(SIGKILL);
            return 0;
        }
    if (strcmp(killed, "alone") != 0 && fork() == 0) {
        keep(9);
        usleep(200000);
        if (strcmp(killed, "child") == 0)
            raise(SIGKILL);
        return 0;
    }
    usleep(100000);
    if (strcmp(killed, "parent") == 0 || strcmp(killed, "alone") == 0)
        raise(SIGKILL);
    while (wait(NULL) > 0)
        ;
    return 0;
}
END
"$CC" -g -O1 -fno-builtin -o family family.c
of_family() { # WHO WAS KILLED: the sentence, and what JSON has of it
    record ./family "$1"
    "$MEMPROF" leaks out.db >leaks.txt
    "$MEMPROF" leaks --json out.db >leaks.json
    echo "$(grep -E '^(Of this|All of it)' leaks.txt | sed 's/, and in use.*//')" \
        "$(sqlite3 :memory: "CREATE TABLE j(t); INSERT INTO j VALUES(CAST(readfile('leaks.json') AS TEXT));
        SELECT (t ->> 'killed_bytes') / 1048576, t ->> 'killed_count' FROM j")"
}
equal "a parent" "Of this, 6.00 MiB in 1 block was live when 1 of 2 processes was killed 6|1" "$(of_family parent)"
contains "its stack" leaks.txt "6.00 MiB in 1 block (host heap), live when processes were killed, allocated at"
contains "the other stack" leaks.txt "9.00 MiB in 1 block (host heap), allocated at"
equal "a child" "Of this, 9.00 MiB in 1 block was live when 1 of 2 processes was killed 9|1" "$(of_family child)"
equal "one alone" "All of it was live when the program was killed 6|1" "$(of_family alone)"
equal "a child, where nobody else has anything" "All of it was live when a process of it was killed 6|1" \
    "$(of_family only)"
"$MEMPROF" report out.db >report.txt
contains "the same in the report" report.txt "Live when a process was killed: 6.00 MiB in 1 block of host"
equal "none" " 0|0" "$(of_family none)"
# of a stack that several had, what the one had that was killed
equal "workers" "Of this, 1.00 MiB in 1 block was live when 1 of 4 processes was killed 1|1" "$(of_family workers)"
contains "their stack" leaks.txt "of which 1.00 MiB in 1 block live when processes were killed, allocated at"
pid=$(sql "SELECT pid FROM process WHERE end_kind = 'signal'")
"$MEMPROF" leaks --process "$pid" out.db >leaks.txt
contains "the one that was killed" leaks.txt "All of it was live when the process was killed"
