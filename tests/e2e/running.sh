# A file that is still being written: what is live so far, in every report, as where memprof is killed.
. "$ROOT/tests/lib.sh"
need python3
cat >leaky.c <<'EOF'
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char *list[100000];
static int count;
static void keep(void) { list[count++] = memset(malloc(10000), 1, 10000); }
/* So many blocks; 0: one each 10 ms until its input ends. */
int main(int argc, char **argv)
{
    struct pollfd in = {0, POLLIN, 0};
    int most = argc > 1 ? atoi(argv[1]) : 0;
    while (most ? count < most : poll(&in, 1, 10) == 0)
        keep();
    return poll(&in, 1, -1) < 0;
}
EOF
"$CC" -g -O0 -o leaky leaky.c
mkfifo more
# start FILE ENOUGH ARGUMENT...: until so many blocks are in the file
start() {
    file=$1 enough=$2
    shift 2
    "$MEMPROF" run -q -o "$file" -- ./leaky "$@" <more 2>run.err &
    run=$!
    exec 9>more
    for _ in $(seq 200); do
        [ "$(sqlite3 -readonly "$file" 'SELECT sum(alloc_count) FROM main.site' 2>err)" -ge "$enough" ] 2>err && return
        sleep 0.1
    done
    cat run.err err
    fail 'it does not record'
}
stop() { exec 9>&-; wait $run; }
check() {
    want=$1 status=0
    shift
    "$MEMPROF" check "$@" >got 2>got.err || status=$?
    [ "$want" = $status ] || { cat got got.err; fail "check $*: status $want expected, not $status"; }
}

# 100 blocks of 10,000 B, then nothing more
start run.1.db 100 100
"$MEMPROF" report run.1.db --json >got
python3 - <<'EOF' || { cat got; fail 'live so far'; }
import json
d = json.load(open("got"))
host = [t for t in d["totals"] if t["device"] == "host" and t["kind"] == "all"][0]
assert (host["end_active_bytes"], host["end_count"]) == (1000000, 100), host
assert d["state"] == "recording", d["state"]
EOF
"$MEMPROF" report run.1.db >got
contains 'what it is' got 'still being recorded'
contains 'live' got '976.56 KiB'
"$MEMPROF" leaks run.1.db >got
contains 'leaks' got 'keep'
contains 'leaked' got '976.56 KiB'
lacks 'leaks' got 'Nothing was live'
check 1 run.1.db --max-leak 999999
contains 'said' got 'still being recorded'
contains 'measured' got '976.56 KiB (1,000,000)'
check 0 run.1.db --max-leak 1000000 --max-leak-blocks 100
# the column that is sorted by is there: 100 x 10,000 B
"$MEMPROF" report run.1.db --by function --sort net.growth --kind heap --top 1 >got
grep -q 'live at end  net.growth  function' got || { cat got; fail 'the column that is sorted by'; }
grep -q '976.56 KiB  976.56 KiB  keep ' got || { cat got; fail 'its numbers'; }
# most of such a file may be in its log
before=$(stat -c %s run.1.db-wal)
"$MEMPROF" info run.1.db --json >got.json
"$MEMPROF" info run.1.db >got
contains 'its log' got ' in its write-ahead log'
python3 - "$before" "$(stat -c %s run.1.db-wal)" <<'EOF' || { cat got.json; fail 'the size of the log'; }
import json, sys
assert int(sys.argv[1]) <= json.load(open("got.json"))["log_bytes"] <= int(sys.argv[2]), sys.argv
EOF
# beside one that has ended
"$MEMPROF" run -q -o run.0.db -- true
"$MEMPROF" report 'run.*.db' >got
grep 'run.1.db' got >row
contains 'of several' row '976.56 KiB'

# a merge names it as it does one that was cut off
"$MEMPROF" merge -o all.db run.0.db run.1.db 2>merge.err
contains 'a merge' merge.err 'run.1.db: still being recorded'
lacks 'a merge' merge.err 'run.0.db'
equal 'said' run.1.db "$(sqlite3 all.db 'SELECT path FROM recording WHERE partial IS NOT NULL')"
equal 'taken' 1000000 "$(sqlite3 all.db "SELECT end_active_bytes FROM v_recording WHERE path = 'run.1.db' AND
    device = 'host'")"
"$MEMPROF" info all.db >got
contains 'of all' got 'run.1.db: still being recorded'
# of it alone: what is made is no file that somebody writes
"$MEMPROF" merge -o one.db run.1.db 2>merge.err
equal 'of one' 'complete|1' "$(sqlite3 one.db "SELECT value, (SELECT count(*) FROM meta WHERE key = 'partial' AND
    value LIKE '%still being recorded%') FROM meta WHERE key = 'state'")"
equal 'the file itself' recording "$(sqlite3 -readonly run.1.db "SELECT value FROM meta WHERE key = 'state'")"
stop
check 1 run.1.db --max-leak 999999
lacks 'it has ended' got 'still being recorded'

# what grows was not given back
start grows.db 150
"$MEMPROF" report grows.db --json >got
python3 - <<'EOF' || { cat got; fail 'what grows'; }
import json
d = json.load(open("got"))
host = [t for t in d["totals"] if t["device"] == "host" and t["kind"] == "all"][0]
assert host["end_count"] >= 150 and host["end_active_bytes"] == 10000 * host["end_count"] == host["alloc_bytes"], host
titles = [f["title"] for f in d["findings"]]
assert "Live so far" in titles and any(t.startswith("Growth") for t in titles), titles
assert "Not freed so far" in titles and "Never freed" not in titles, titles
assert not any("given back" in f["text"] or f["title"] == "Growth nearly to the end" for f in d["findings"]), d
EOF
stop
