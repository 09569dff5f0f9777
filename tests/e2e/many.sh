# memprof report with several files: a row each, what they sum up to, and what is wrong with some of them.
. "$ROOT/tests/lib.sh"

# hold N [STATUS]: N blocks of 100,000 bytes live at once, all freed; with STATUS 9 the program kills itself at the peak
cat >hold.c <<'END'
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static char *hold(size_t size) {
    char *p = malloc(size);
    p[0] = 1;
    return p;
}
int main(int argc, char **argv) {
    int n = atoi(argv[1]), status = argc > 2 ? atoi(argv[2]) : 0;
    char *p[100];
    for (int i = 0; i < n; i++)
        p[i] = hold(100000);
    if (status == 9)
        kill(getpid(), SIGKILL);
    for (int i = status == 3; i < n; i++)
        free(p[i]);
    return status;
}
END
"$CC" -g -O0 -o hold hold.c
rec() { "$MEMPROF" run -q -o "$@" >/dev/null 2>run.err || true; }
for rank in 0 1 2 10; do
    RANK=$rank rec 'run.%q{RANK}.db' -- ./hold $((rank + 3))
done
# csv OPTIONS...: rows as rows.csv; rows COLUMNS
csv() { "$MEMPROF" report "$@" --csv >rows.csv; }
rows() { sqlite3 :memory: -cmd '.import --csv rows.csv r' "SELECT $1 FROM r"; }

csv 'run.*.db'
equal 'the rows' '0|run.0.db|300000
1|run.1.db|400000
2|run.2.db|500000
10|run.10.db|1300000' "$(rows 'rank, file, peak_bytes')"
equal 'the top line' 'hold|hold.c|5|300000' \
    "$(rows "top_function, replace(top_file, '$PWD/', ''), top_line, top_bytes" | head -n 1)"
equal 'the counts' '13|1300000|0|exit status 0|complete' \
    "$(rows 'alloc_count, alloc_bytes, end_bytes, ended, state' | tail -n 1)"
cp rows.csv first.csv
csv run.10.db run.2.db run.0.db run.1.db
cmp first.csv rows.csv || fail 'the order of the arguments matters'
# 300000 + 400000 + 500000 + 1300000 = 2500000; the mean 625000; 1300000 / 625000 = 2.08
"$MEMPROF" report 'run.*.db' --json >got.json
equal 'sums' '4|2500000|625000|2.08|1300000|run.10.db|0' "$(sqlite3 :memory: "SELECT j ->> '$.files',
    j ->> '$.sum_of_peaks_bytes', j ->> '$.mean_peak_bytes', j ->> '$.imbalance', j ->> '$.most_peak_bytes',
    j ->> '$.most_file', j ->> '$.sum_of_end_bytes'
    FROM (SELECT CAST(readfile('got.json') AS TEXT) -> '$.devices[0]' j)")"
"$MEMPROF" report 'run.*.db' >got
contains 'how many' got '4 recordings'
contains 'the highest' got '1.24 MiB'
lacks 'all are whole' got 'state'
csv 'run.*.db' --sort peak --top 2
equal 'by peak' 'run.10.db
run.2.db' "$(rows file)"
csv 'run.*.db' --sort start
equal 'by start' 'run.10.db
run.2.db
run.1.db
run.0.db' "$(rows file)"

# --- files that are not whole: named, and taken as far as they go
RANK=3 rec 'run.%q{RANK}.db' -- ./hold 4 9
rec failed.db -- ./hold 2 3
head -c $(($(stat -c %s run.10.db) - 4096)) run.10.db >cut.db
head -c 50 run.10.db >head.db
: >empty.db
echo text >text.db
csv cut.db empty.db failed.db head.db missing.db run.3.db text.db
equal 'cut off' 'cut.db|10|1300000|0' "$(rows 'file, rank, peak_bytes, end_bytes' | grep ^cut)"
equal 'killed' 'run.3.db|3|400000|400000|killed by signal 9 (Killed)' \
    "$(rows 'file, rank, peak_bytes, end_bytes, ended' | grep ^run)"
equal 'failed' 'failed.db|200000|100000|exit status 3' \
    "$(rows 'file, peak_bytes, end_bytes, ended' | grep ^failed)"
equal 'not read' 'empty.db
head.db
missing.db
text.db' "$(rows "file" | grep -v -e cut -e failed -e run)"
equal 'and why' 5 "$(rows "problem" | grep -c .)"
"$MEMPROF" report run.0.db cut.db >got
contains 'cut off, named' got '! cut.db: damaged: only a part of it can be read'
"$MEMPROF" report run.0.db failed.db empty.db >got
contains 'how many cannot be read' got '3 recordings, 1 of them cannot be read'
contains 'named' got '! empty.db: empty file'
contains 'its row' got 'not read'
contains 'a status' got 'exit status 3'
# events end in the middle of the run: what is missing is said
sqlite3 run.1.db "INSERT INTO meta VALUES('partial', 'the disk was full')"
cp run.1.db partial.db
"$MEMPROF" report run.0.db partial.db >got
contains 'partial' got '! partial.db: partial recording: the disk was full'
contains 'its numbers' got '390.62 KiB'
# a part of it cannot be read: the numbers that were read before that stay
cp run.2.db broken.db
sqlite3 broken.db 'DROP TABLE account'
csv run.0.db broken.db
equal 'what was read of it' '500000' "$(rows "peak_bytes" | tail -n 1)"
"$MEMPROF" report run.0.db broken.db >got
contains 'a part of it' got '! broken.db'
contains 'a part of it' got 'damaged'
status=0
"$MEMPROF" report empty.db text.db 2>err || status=$?
equal 'nothing to be read' 1 $status
contains 'nothing to be read' err 'none of 2 files can be read; the first: empty.db: empty file'

# live at the end above the peak: three processes, one after the other, kept 100,000 of 200,000 bytes each
rec ended.db -- sh -c 'for i in 1 2 3; do ./hold 2 3; done'
"$MEMPROF" report run.0.db ended.db >got
why='live at the end is above the peak: processes ended at different times'
contains 'why there is more than at the peak' got "$why"
"$MEMPROF" report run.0.db ended.db --html=ended.html >/dev/null
contains 'on the page' ended.html "$why"
"$MEMPROF" report run.0.db run.2.db >got
lacks 'nothing to explain' got 'live at the end is above'

# --- names are text
name=$(printf 'a\033[31m\n.db')
cp run.0.db "$name"
"$MEMPROF" report "$name" run.2.db >got
contains 'control characters' got 'a\x1b[31m\x0a.db'
lacks 'control characters' got "$(printf '\033')"
"$MEMPROF" report "$name" run.2.db --json >got.json
equal 'in JSON' "$name" "$(sqlite3 :memory: "SELECT CAST(readfile('got.json') AS TEXT) ->> '$.files[0].file'")"
cp run.0.db 'x[1].db'
csv 'x[1].db' run.2.db
equal 'a name is no pattern' 'run.2.db
x[1].db' "$(rows file | sort)"
csv 'run.[02].db'
equal 'a pattern' 'run.0.db
run.2.db' "$(rows file)"
csv run.0.db 'run.?.db' run.0.db
equal 'once' 1 "$(rows file | grep -c run.0)"

# a pattern that nothing matches is as a name that is not there: a row, and the others are shown
csv 'none.*' run.2.db
equal 'nothing matches' 'none.*|none.*: no such file, and none that matches
run.2.db|' "$(rows "file, problem" | sort)"
"$MEMPROF" merge -o matched.db 'none.*' run.2.db run.0.db 2>err || fail 'merge beside a pattern without a match'
contains 'merged beside it' err 'none.*: no such file, and none that matches'
contains 'merged beside it' err '2 recordings merged'

# --- what does not go with several files
# wrong TEXT ARGUMENT...
wrong() {
    text=$1
    shift
    status=0
    "$MEMPROF" report "$@" >out 2>err || status=$?
    equal "status of $*" 2 $status
    contains "$*" err "$text"
    equal 'one line' 1 "$(wc -l <err | tr -d ' ')"
}
wrong "'memprof report FILE --at'" run.0.db run.2.db --at peak
wrong "'memprof merge -o all.db FILE...' makes one of them, or 'memprof report FILE --by'" \
    run.0.db run.2.db --by line
wrong "'memprof report FILE --segments'" 'run.*.db' --segments
wrong "'memprof report FILE --skip'" 'run.*.db' --skip hold
wrong "did you mean 'peak'" run.0.db run.2.db --sort peek
wrong "--sort help" run.0.db run.2.db --sort alloc.bytes
wrong "no device 'cuda:7'" run.0.db run.2.db --device cuda:7
wrong 'leave out --json' run.0.db run.2.db --html --json
status=0
"$MEMPROF" report 'none.*' 2>err || status=$?
equal 'no file' 1 $status
contains 'no file' err 'none.*: no such file, and none that matches'
