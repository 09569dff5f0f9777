# How a program ended stands above the tables, and what was live when it was killed, or where its recording was cut, is
# not called never freed: on the terminal, in JSON, on the page.
cat >app.c <<'EOF'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *kept[80];
__attribute__((noinline)) static void hold(int count)
{
    for (int i = 0; i < count; i++)
        memset(kept[i] = malloc(65536), 1, 65536);
}
/* Workers that hold most are killed as they wait for more to do, as a pool's are. */
static void pool(void)
{
    pid_t workers[2];
    int ready[2];
    char byte;
    if (pipe(ready))
        abort();
    for (int i = 0; i < 2; i++)
        if ((workers[i] = fork()) == 0) {
            hold(80);
            for (byte = 1; write(ready[1], &byte, 1) == 1;)
                pause();
        }
    for (int i = 0; i < 2; i++)
        if (read(ready[0], &byte, 1) != 1)
            abort();
    for (int i = 0; i < 2; i++)
        kill(workers[i], SIGTERM);
    while (wait(NULL) > 0)
        ;
    hold(1);
    exit(0);
}
int main(int argc, char **argv)
{
    if (argv[1][0] == 'p')
        pool();
    if (argc > 2 && fork() == 0) { /* a child that holds most, and returns */
        hold(80);
        _exit(0);
    }
    while (argc > 2 && wait(NULL) > 0)
        ;
    hold(argc > 2 ? 1 : 80);
    switch (argv[1][0]) {
    case 'k': raise(SIGKILL); break;
    case 'a': abort();
    case 's': write(1, "ready\n", 6), sleep(60); break;
    case 'r': return 0;
    }
    return 3;
}
EOF
"$CC" -O1 -g -fno-builtin -o app app.c
need python3
# said ENDED TITLE WHEN: what the reports of out.db say
said() {
    same_findings
    equal "ended" "$1" "$(sed -n 's/^Ended: //p' report.txt)"
    contains "the finding" report.txt "$2: 5.00 MiB in 80 blocks of host were $3. All of it: hold (app.c:"
    contains "the page's finding" page.html "<h3>$2</h3>"
    # where the machine held the program up in the middle, it may have grown all the way, too
    equal "the finding's title in JSON" 1 \
        "$(python3 -c 'import json, sys
print([f["title"] for f in json.load(open("report.json"))["findings"] if not f["minor"]].count(sys.argv[1]))' "$2")"
    [ "$2" != "Never freed" ] || return 0
    for file in report.txt report.json page.html; do lacks "what else" $file "Never freed"; done
}
ended() { python3 -c 'import json; print(json.load(open("report.json"))["ended"])'; }

record ./app k
equal "status" 137 $status
said "killed by signal 9 (Killed)" "Live when it was killed" "live when the program was killed"
contains "on the page" page.html "<dt>Ended</dt><dd>killed by signal 9 (Killed)</dd>"
equal "in JSON" "killed by signal 9 (Killed)" "$(ended)"
record ./app a
said "killed by signal 6 (Aborted)" "Live when it was killed" "live when the program was killed"
record ./app x
equal "status" 3 $status
said "exit status 3" "Never freed" "still live at the end"
record_ok ./app r
said "" "Never freed" "still live at the end"
equal "in JSON" "exit status 0" "$(ended)"

# events that were lost do not cut a recording; that the recorder stopped in a process does
sqlite3 out.db "INSERT INTO meta VALUES('partial', '1 event not recorded by the program side')"
said "" "Never freed" "still live at the end"
sqlite3 out.db "INSERT INTO counter SELECT process_id, 'stopped', 1, 'x' FROM process"
said "" "Live where the recording ends" "live where the recording ends"

# who held it decides: here a child that returned
record ./app k child
"$MEMPROF" report out.db >report.txt
contains "of a child that returned" report.txt "* Never freed: 5.06 MiB in 81 blocks of host were still live at the end"
contains "beside it" report.txt "(1 of 2 processes was killed)"
# the program was not killed
record_ok ./app p
"$MEMPROF" report out.db >report.txt
contains "workers that were killed" report.txt "Live when processes were killed: 10.06 MiB in 161 blocks of host were\
 live when 2 of 3 processes were killed, or at the ends of the others; of 3 processes the largest, app, had 5.00 MiB"
lacks "of the program" report.txt "was killed"

# a collector that was killed
rm -f out.db
"$MEMPROF" run -q -o out.db -- ./app s >run.out 2>run.err &
runner=$!
for i in $(seq 300); do
    [ "$(sqlite3 -readonly out.db "SELECT sum(alloc_bytes) >= 80 * 65536 FROM site" 2>/dev/null)" != 1 ] || break
    sleep 0.1
done
pid=$(value "SELECT pid FROM process")
kill -KILL $runner
wait $runner 2>/dev/null || true
[ "$pid" = 0 ] || kill -KILL "$pid"
said "" "Live where the recording ends" "live where the recording ends"

# one whose parent waits for it no more: nobody says how it ended
record sh -c '(./app k &); sleep 1; true'
equal "the shell's own status" 0 $status
equal "its end" "unknown" "$(sql "SELECT end_kind FROM process WHERE exe LIKE '%/app'")"
"$MEMPROF" report out.db >report.txt
"$MEMPROF" report out.db --html=page.html >page.out
contains "the finding" report.txt "Live where it ended: 5.00 MiB in "
line=$(grep -n 'memset(kept' app.c | cut -d: -f1)
contains "the line, and what is not known" report.txt \
    ": hold (app.c:$line), 5.00 MiB in 80 blocks. How it ended is not known."
contains "the page's finding" page.html "<h3>Live where it ended</h3>"
lacks "what else" report.txt "Never freed"
