# What a Python program holds at its end is what it holds where its interpreter begins to take itself down, however it
# ends; what that frees is told beside it. The interpreter's own is one line.
program=$ROOT/tests/programs/python_leaks.py
need python3

# COLUMN of the rows of FUNCTION in leaks.json, of the script's own
of() {
    sqlite3 :memory: "SELECT coalesce(sum(json_extract(value, '$.$2')), 0) FROM json_each(readfile('leaks.json'),
        '$.leaks') WHERE '.' || json_extract(value, '$.function') GLOB '*.$1'
        AND json_extract(value, '$.file') NOT LIKE '%/lib/%'"
}
leaks() { "$MEMPROF" leaks --json --by line "$@" >leaks.json || fail "leaks $*"; }
# what the program said of NAME, against the line of FUNCTION
as_said() {
    name=$1
    function=$2
    leaks --python-only
    equal "$name: bytes of $function" "$(awk -v n="$3" '$1 == n { print $2 }' out)" "$(of "$function" end_bytes)"
    equal "$name: blocks of $function" "$(awk -v n="$3" '$1 == n { print $3 }' out)" "$(of "$function" end_count)"
}
# PYTHON HOW STATUS TEARDOWNS
ends() {
    name="$1 $2"
    got=0
    rm -f out.db
    "$MEMPROF" run -q -o out.db -- "$1" "$program" "$2" >out 2>err || got=$?
    equal "$name: status" "$3" "$got"
    sound >/dev/null || fail "$name: unsound"
    equal "$name: teardowns" "$4" "$(value 'SELECT count(*) FROM teardown')"
    as_said "$name" __init__ parent
}

root=${PYENV_ROOT:-$HOME/.pyenv}/versions
for python in /usr/bin/python3 "$root"/3.9.*/bin/python3 "$root"/3.1[13].*/bin/python3; do
    [ -x "$python" ] || continue
    ends "$python" return 0 1
    equal "$python: freed after the end" "$(of __init__ end_count)" "$(of __init__ torn_down_count)"
    equal "$python: the program's own free" 0 "$(value "SELECT count(*) FROM v_leak WHERE end_bytes = 50001")"
    # nothing but the script's own lines is shown of a program that keeps one block
    echo 'keep = bytearray(100000)' >one.py
    record_ok "$python" one.py
    leaks
    equal "$python: rows" "100001 1" "$(of '<module>' end_bytes) $(sqlite3 :memory: \
        "SELECT json_array_length(readfile('leaks.json'), '$.leaks')")"
    "$MEMPROF" leaks >leaks.txt
    contains "$python: one line" leaks.txt "of Python's own: its start-up, what it imported, interned strings"
    "$MEMPROF" report >report.txt
    equal "$python: first in the report, too" "97.66 KiB 1 <module> one.py:1" \
        "$(awk '/^Live at the end/ { getline; getline; print $1, $2, $3, $4, $5 }' report.txt)"
    own=$(sed -n "s/^\(Not shown: .* of Python's own\).*/\1/p" leaks.txt)
    contains "$python: the same line below" report.txt "$own"
    # what the table and the page call the end, and how much was freed after it
    after=$(value "SELECT end_count - alloc_count + free_count FROM v_total WHERE device = 'host' AND kind = 'all'")
    at_least "$python: freed after the end" 100 "$after"
    sed -n "s/^(live at end: \(.* in\) \([0-9,]*\) blocks)$/\1 \2/p" report.txt | tr -d , >end.txt
    contains "$python: the end, in the report" end.txt "where Python began to take itself down which then freed "
    equal "$python: blocks that were freed then" "$after" "$(sed 's/.* //' end.txt)"
    "$MEMPROF" report out.db --html=page.html >/dev/null
    contains "$python: the end, on the page" page.html \
        '<p class="hint">At the end: where Python began to take itself down, which then freed '
    "$MEMPROF" leaks --all >leaks.txt
    contains "$python: --all" leaks.txt Py_InitializeFromConfig
done

# However the script ends, its interpreter ends as one does that returns, but by _exit.
ends python3 exit 3 1
ends python3 raise 1 1
ends python3 _exit 4 0
equal "nothing was freed after _exit" 0 "$(of __init__ torn_down_count)"

# What the interpreter frees itself is no leak, nor is the table of its arenas, which these strings make grow: known by
# its name in the one, and by who asked for it in the other, which has no symbols.
echo 'keep = [str(i) * 3 for i in range(400_000)]' >many.py
for one in "$root"/3.12.*/bin/python3 /usr/bin/python3; do
    [ -x "$one" ] || continue
    "$MEMPROF" check -q -o out.db --max-leak 0 --max-leak-blocks 0 --max-live-at-end 1K -- "$one" many.py \
        >check.txt && fail "$one: --max-live-at-end: kept"
    equal "$one: --max-leak 0" "kept kept broken" "$(awk '/^(kept|broken) / { a[$2] = $1 }
        END { print a["max-leak"], a["max-leak-blocks"], a["max-live-at-end"] }' check.txt)"
    contains "$one: the line" check.txt "many.py:1"
    lacks "$one: frames of the interpreter in check" check.txt "PyEval_EvalCode"
    "$MEMPROF" leaks --error-exitcode 7 >leaks.txt || fail "$one: --error-exitcode of what Python freed"
done

# Children end like their parents; a process alone says the same as all together.
ends python3 fork 0 2
as_said "python3 fork" child child
leaks --python-only --process "$(value "SELECT pid FROM process JOIN teardown USING(process_id)
    ORDER BY start_ns DESC LIMIT 1")"
equal "fork: the child alone" "3000100 100 100" \
    "$(of child end_bytes) $(of child end_count) $(of child torn_down_count)"
equal "fork: its parent's are not its own" 0 "$(of __init__ end_count)"
ends python3 process 0 1 # multiprocessing's children end with _exit
leaks --python-only
equal "multiprocessing: the child's" "3000100 100 0" \
    "$(of child end_bytes) $(of child end_count) $(of child torn_down_count)"
# how many stacks with FRAME in leaks.txt say that they were not all freed by the interpreter's end
marked() {
    awk -v frame="$1" '/allocated at$/ { head = $0 } index($0, frame) && head ~ /interpreter/ { n++ }
        END { print n + 0 }' leaks.txt
}
"$MEMPROF" leaks --top 0 >leaks.txt
contains "multiprocessing: the child's stack" leaks.txt " child "
lacks "frames of the interpreter" leaks.txt "[python3"
contains "how to see them" leaks.txt \
    "Frames of Python's interpreter and of imports are left out; --frames 0 shows them."
equal "a child without a teardown has no mark" 0 "$(marked " child ")"
ends python3 daemon 0 1

# Stacks that a process and its fork share: the parent frees its blocks as it takes itself down, the child ends without.
cat >shared.py <<'END'
import os
keep = []
def hold():
    for _ in range(50):
        keep.append(bytearray(30_000))
pid = 1
for turn in range(2):
    hold()
    if turn == 0:
        pid = os.fork()
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
END
record_ok python3 shared.py
"$MEMPROF" leaks --top 0 >leaks.txt
contains "the child's blocks" leaks.txt " hold "
equal "its parent's teardown left none of them" 0 "$(marked " hold ")"
equal "of the child alone" 0 "$("$MEMPROF" leaks --top 0 \
    --process "$(value "SELECT pid FROM process WHERE start_kind = 'fork' ORDER BY start_ns DESC
        LIMIT 1")" >leaks.txt; marked " hold ")"

# What a forked child left is not above its parent's megabytes, which Python freed.
cat >child.py <<'END'
import os
kept = []
def hold():
    kept.extend(bytearray(2000000) for _ in range(8))
hold()
pid = os.fork()
if pid == 0:
    kept.extend(bytearray(600) for _ in range(3))
    os._exit(0)
os.waitpid(pid, 0)
END
record_ok python3 child.py
"$MEMPROF" leaks >leaks.txt
equal "what Python freed is first" \
    "Freed by Python when it took itself down: 15.26 MiB in 8 blocks; below, what was left: " \
    "$(head -n 1 leaks.txt | sed 's/left: .*/left: /')"
contains "then what the child left" leaks.txt "Left:"

# Beside a program in C, whose leaks have no mark, one in Python whose leak in C has.
cat >lost.py <<'END'
import ctypes
kept = bytearray(60_000)
def lose():
    ctypes.CDLL(None).malloc(ctypes.c_size_t(70_000))
lose()
END
record_ok sh -c "'$SAMPLES/leak' 2>/dev/null; python3 lost.py"
"$MEMPROF" leaks --top 0 >leaks.txt
contains "the program in C" leaks.txt "  load_defaults  "
contains "the interpreter freed" leaks.txt "which then freed "
grep -q '^Left when Python had taken itself down: .* below, what it freed then: .* block' leaks.txt || fail "what comes"
equal "it comes first" "Left when" "$(head -n 1 leaks.txt | cut -c 1-9)"
equal "a program in C has no mark" "0 0" "$(marked "  load_defaults ") $(marked "  parse_line ")"
equal "a leak of Python's process has" 1 "$(marked "  lose ")"
record_ok python3 lost.py
"$MEMPROF" report --segments >segments.txt
contains "the end of the heaps" segments.txt "of Python, as when it began to take itself down"
contains "the true end" segments.txt "At the true end (--at end), when it had, its heaps were "
"$MEMPROF" report --segments --at end >segments.txt
contains "the true end alone" segments.txt "As at each process's end, after Python took itself down"
"$MEMPROF" report --segments --at peak >segments.txt
lacks "an instant before that" segments.txt "took itself down"
"$MEMPROF" check --max-leak 69999 --max-leak-blocks 0 --json out.db >check.json && fail "a leak: kept"
equal "what nobody freed" "70000 1" "$(python3 -c 'import json
print(*[r["measured"] for r in json.load(open("check.json"))["rules"]])')"
"$MEMPROF" leaks --error-exitcode 7 >leaks.txt && fail "--error-exitcode of a leak"
equal "what leaked stands first" "lose freed module" "$(awk '/  lose  / && !n++ { printf "lose " }
    /^Freed by Python/ { printf "freed " } /#0  <module>/ && !m++ { printf "module" }' leaks.txt)"
equal "what each line has" "70000 0 60001 60001" "$("$MEMPROF" leaks --json --by line | python3 -c 'import json, sys
rows = {r["function"]: r for r in json.load(sys.stdin)["leaks"]}
print(*[rows[f][k] for f in ("lose", "<module>") for k in ("end_bytes", "torn_down_bytes")])')"

# Without events, and where SIGINT is ignored, as in a shell's background job.
(trap '' INT; "$MEMPROF" run -q --aggregate -o out.db -- python3 "$program" return >out) || fail "--aggregate"
as_said aggregate __init__ parent
equal "aggregate: key frame" 1 "$(value "SELECT count(*) FROM keyframe JOIN teardown USING(time_ns)
    WHERE reason = 'teardown'")"
leaks --python-only --at "$(value 'SELECT time_ns FROM teardown')ns"
equal "aggregate: at that instant" 1500 "$(of __init__ end_count)"

# Any instant: as many blocks as the line had allocated by then, as it freed none.
record_ok python3 "$program" return >out
site=$(value "SELECT site_id FROM v_leak WHERE function = 'Repo.__init__'")
equal "lines: the same end" "$((1500 * 20001))" "$("$MEMPROF" lines --csv --func 'Repo.__init__' \
    --columns net.growth | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "net_growth_bytes") c = i }
        NR > 1 { n += $c } END { print n }')"
"$MEMPROF" lines --func 'Repo.__init__' >lines.txt
contains "lines: which end" lines.txt "(net growth: until Python began to take itself down, as 'live at end' is)"
for n in 1 700 1500; do
    at=$("$MEMPROF" sql --csv out.db "SELECT time_ns FROM v_event WHERE op LIKE '%alloc' AND site_id = $site
        ORDER BY time_ns LIMIT 1 OFFSET $((n - 1))" | tail -n 1)
    leaks --python-only --at "${at}ns"
    equal "at $at ns" "$((n * 20001)) $n" "$(of __init__ end_bytes) $(of __init__ end_count)"
done
"$MEMPROF" leaks --at "${at}ns" >leaks.txt
contains "the instant is said" leaks.txt "Live at "
lacks "no teardown at an instant" leaks.txt "take itself down"
if "$MEMPROF" leaks --at soon >/dev/null 2>err; then fail "--at soon"; fi
contains "--at soon" err "leaks: --at 'soon': expected peak, end, now, mark:NAME, or a time"

# What interpreters keep for themselves is no finding, however many of them; the finding is of the rows of `leaks`.
"$MEMPROF" run -q -o out.db -- sh -c "$(printf "'$python' -c pass;%.0s" 1 2 3 4 5 6 7 8 9 10) true"
at_least "live at the end" $((4 << 20)) "$(total end_active_bytes)"
"$MEMPROF" report out.db >report.txt
lacks "nothing of the program's" report.txt "Live at the end: "
lacks "nothing of the program's" report.txt "* Never freed"
record_ok "$python" "$program" return
"$MEMPROF" leaks --by line >leaks.txt
"$MEMPROF" report out.db >report.txt
found=$(sed -n \
    's/^Live when Python began to end: \([^,]*,*[0-9]* blocks\) of host, which it then freed.*/\1/p' report.txt)
equal "the sums of leaks" "$(sed -n 's/^Live at the end: \(.* blocks\), from .*/\1/p' leaks.txt)" "$found"
lacks "what Python freed is no leak" report.txt "* Live at the end"
record_ok "$python" one.py
"$MEMPROF" report out.db --html=page.html >/dev/null
contains "the page's" page.html "<p>97.66 KiB in 1 block of host, which it then freed. "

# What keeps the heap from shrinking is judged before the interpreter frees it all: 2,000 blocks of 600 bytes among
# 40 MB that went, on pages that the program counts by itself.
cat >heap.py <<'END'
import ctypes, time
def keep():
    return bytearray(600)
def load():
    rows, keys = [], []
    for i in range(20000):
        rows.append(bytearray(2000 + i % 100))
        if i % 10 == 9:
            keys.append(keep())
    return keys
keys = load()
pages = set()
for key in keys:
    start = ctypes.addressof(ctypes.c_char.from_buffer(key)) - 16
    pages |= {start >> 12, start + 608 + 15 >> 12}
print(len(pages) * 4096)
time.sleep(1.2)
END
held() { "$MEMPROF" report --segments --by line --csv --top 0 "$@" out.db >lines.csv; }
kept() { sqlite3 :memory: ".import --csv lines.csv l" "SELECT $1 FROM l WHERE function = 'keep'"; }
for option in '' --python-allocators; do
    RUN_OPTIONS=$option record_ok python3 heap.py
    held
    # of each object 600 bytes and one more; with --python-allocators also the object itself
    at_least "heap $option: blocks" 2000 "$(kept live_count)"
    both=$(sqlite3 :memory: ".import --csv lines.csv l" "SELECT sum(pinned_bytes) FROM l WHERE function = 'keep' OR
        function LIKE '(shared%'")
    at_least "heap $option: their pages" "$(cat run.out)" "$both"
    at_most "heap $option: pinned by them alone" "$(($(cat run.out) + $(kept "live_count - 2000") * 4096))" \
        "$(kept pinned_bytes)"
    at_least "heap $option: free below them" $((28 << 20)) "$(kept held_bytes)"
    held --at end
    equal "heap $option: the true end" "" "$(kept live_count)"
    "$MEMPROF" report out.db >report.txt
    contains "heap $option: finding" report.txt "* Free, but kept from the kernel: keep (heap.py:"
    contains "heap $option: and what was left" report.txt "That is as Python began to take itself down; when it had, "
    contains "heap $option: table" report.txt "What keeps memory from the kernel, as Python began to take itself down"
    "$MEMPROF" report out.db --html=page.html >/dev/null
    contains "heap $option: page" page.html "The heap as Python began to take itself down"
done
