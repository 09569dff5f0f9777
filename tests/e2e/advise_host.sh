# memprof advise, on the host: each rule tells of its sample with the line, and nothing of the twin that does what is
# advised. Where what is saved is exact, the twin's peak is the one that was predicted; a bound is no less than what the
# twin saves.
. "$ROOT/tests/lib.sh"
need python3
source=$ROOT/tests/programs/advise.c
line() { grep -n "/\* $1 \*/" "$source" | cut -d : -f 1; }
peak() { DB=$1 value "SELECT peak_active_bytes FROM total WHERE kind = 'all'"; }
both() {
    "$MEMPROF" run -q -o "$1.db" "$PROGRAMS/advise" "$1"
    "$MEMPROF" run -q -o "$1-mended.db" "$PROGRAMS/advise" "$1" mended
    "$MEMPROF" advise "$1.db" >"$1.txt"
    "$MEMPROF" advise "$1.db" --json >"$1.json"
    "$MEMPROF" advise "$1-mended.db" >"$1-mended.txt"
    equal "$1, mended" 'Nothing to advise.' "$(cat "$1-mended.txt")"
}
# found MODE RULE KEY: of the one finding of the mode, which must be of the rule
found() {
    sqlite3 :memory: "SELECT iif(json_array_length(f) = 1 AND json_extract(f, '$[0].rule') = '$2',
        coalesce(json_extract(f, '$[0].evidence.$3'), json_extract(f, '$[0].$3')), f)
        FROM (SELECT json_extract(readfile('$1.json'), '$.findings') AS f)"
}
# place MODE RULE MARK: the finding is about the line with this mark
place() { equal "$1: line" "$(line "$3")" "$(found "$1" "$2" line)"; }
exact() {
    equal "$1: saved" exact "$(found "$1" "$2" saved)"
    was=$(peak "$1.db") now=$(peak "$1-mended.db") saved=$(found "$1" "$2" saved_bytes)
    equal "$1: peak" "$was" "$(found "$1" "$2" peak_bytes)"
    at_most "$1: away from its twin by" $((now / 100)) $((was - saved > now ? was - saved - now : now - was + saved))
}
bound() {
    equal "$1: saved" 'at most' "$(found "$1" "$2" saved)"
    at_least "$1: the bound" $(($(peak "$1.db") - $(peak "$1-mended.db"))) "$(found "$1" "$2" saved_bytes)"
}

both leak
place leak leaks answer
bound leak leaks
equal 'leak: saved' 8000000 "$(found leak leaks saved_bytes)"
contains 'leak' leak.txt '* Never freed, saves at most 7.63 MiB of a peak of 15.63 MiB'

"$MEMPROF" report leak.db --html=leak.html >/dev/null
contains 'leak: the page' leak.html \
    '<p class="saves">It saves at most 7.63 MiB of a peak of 15.63 MiB.</p>'

both wrapper
bound wrapper leaks
contains 'wrapper' wrapper.txt \
    "Most of it was for lose (advise.c:$(line lose)): little of what is allocated there for it is freed."

# of a Python line no function of the interpreter is said to keep it, nor the line itself
cat >keep.py <<'END'
import os
def keep(n): return bytearray(n)
kept = [keep(100000) for i in range(100)]
os._exit(0)
END
for python in /usr/bin/python3 python3; do
    "$MEMPROF" run -q -o python.db -- "$python" keep.py
    "$MEMPROF" advise python.db >python.txt
    contains "$python" python.txt 'keep (keep.py:2), 9.54 MiB in 100 blocks.'
    lacks "$python" python.txt 'little of what is allocated there for it is freed'
done

# what a program collects and keeps until it ends is rather its data where no stack has half of it: of 16 lines, or of
# many stacks in code without names; a leak is one there, too
strip -o stripped "$PROGRAMS/advise"
# kept WHAT PATTERN PROGRAM MODE: what comes evenly does not where the machine holds the program up: again, then
kept() {
    for attempt in 1 2 3 4 5; do
        rm -f kept.db
        "$MEMPROF" run -q -o kept.db "$3" "$4"
        "$MEMPROF" advise kept.db >kept.txt
        ! grep -qF "$2" kept.txt || break
    done
    contains "$1, recording $attempt" kept.txt "$2"
}
for program in "$PROGRAMS/advise data" './stripped stacks'; do
    kept "$program" '? Never freed, saves at most 3.8' ${program% *} ${program##* }
    contains "$program" kept.txt 'A program that gives nothing back as it ends has its data here, too.'
    lacks "$program" kept.txt '* Never freed'
done
kept 'stripped, leak' '* Never freed, saves at most 7.63 MiB of a peak of 15.63 MiB' ./stripped leak

both steps
place steps steps kept
bound steps steps
equal 'steps: a step' 1024 "$(found steps steps bytes_an_execution)"
equal 'steps: never freed' 40 "$(found steps steps never_freed_count)"
contains 'steps' steps.txt '* Grows with each step, saves at most 40.00 KiB of a peak of 104.00 KiB'

# three of a kind, with what is left out; all with --top 0, and in JSON
both five
contains 'five' five.txt '(and 2 more of this kind, 120.00 KiB summed; --top 0 shows all)'
equal 'five: shown' 3 "$(grep -c '^\* Grows with each step' five.txt)"
"$MEMPROF" advise five.db --top 0 >all.txt
equal 'five: all' 5 "$(grep -c '^\* Grows with each step' all.txt)"
lacks 'five: all' all.txt 'more of this kind'
"$MEMPROF" advise five.db -n 4 >all.txt
contains 'five: four' all.txt '(and 1 more of this kind, 40.00 KiB summed; --top 0 shows all)'
equal 'five: in JSON' 5 "$(python3 -c "import json; print(len(json.load(open('five.json'))['findings']))")"

both phase
place phase phase activations
exact phase phase
equal 'phase: executions' 39 "$(found phase phase execution_count)"
contains 'phase' phase.txt '* Held past its phase, saves 3.50 MiB of a peak of 4.50 MiB'

# blocks go in another order than that of the executions which made them
both mixed
place mixed phase mixed
exact mixed phase
equal 'mixed: executions' 39 "$(found mixed phase execution_count)"
contains 'mixed' mixed.txt 'which were still live when the next execution of that had ended, in 39 of 40 executions.'

# held while another phase of the same turn runs
both loop
place loop phase batch
exact loop phase
equal 'loop: executions' 40 "$(found loop phase execution_count)"
equal 'loop: severity' info "$(found loop phase severity)"
contains 'loop' loop.txt '? Held past its phase, saves 1.00 MiB of a peak of 3.50 MiB'
contains 'loop' loop.txt 'in load which were held while work ran, and freed behind it, in 40 of 40 executions.'

both turns
place turns phase turn
exact turns phase

both once
place once phase text
exact once phase
contains 'once' once.txt '? Held past its phase, saves '
equal 'once' info "$(found once phase severity)"

both churn
place churn churn format
exact churn churn
equal 'churn: blocks' 300000 "$(found churn churn temporary_count)"
equal 'churn: size' 1100 "$(found churn churn size_bytes)"
equal 'churn: saved' 0 "$(found churn churn saved_bytes)"
equal 'churn: severity' info "$(found churn churn severity)"
"$MEMPROF" advise churn.db >churn.txt
contains 'churn: what it takes' churn.txt ' The calls took some 15 ms of the '
"$MEMPROF" run -q -o none.db "$PROGRAMS/advise" few
equal 'too few to be felt' 'Nothing to advise.' "$("$MEMPROF" advise none.db)"
"$MEMPROF" report none.db --json >few.json
lacks 'too few to be felt' few.json '"rule": "churn"'

# what a busy machine holds up for more than 1 ms is not counted: again, where it was more than a fifth
for attempt in 1 2 3 4 5 6 7 8; do
    both reuse
    case $(found reuse reuse reuse_count) in 2[0-9][0-9][0-9][0-9][0-9]) break ;; esac
done
place reuse reuse page
exact reuse reuse
at_most 'reuse: times' 249999 "$(found reuse reuse reuse_count)"
at_least "reuse: times, recording $attempt" 200000 "$(found reuse reuse reuse_count)"
equal 'reuse: severity' info "$(found reuse reuse severity)"

# a list that is grown by halves may have more room than it needs: what is saved is not memory
both reallocs
place reallocs reallocs list
equal 'reallocs: in a row' 1999 "$(found reallocs reallocs longest_row)"
equal 'reallocs: copied' $((64 * 1999 * 2000 / 2)) "$(found reallocs reallocs copied_bytes_at_most)"
equal 'reallocs: severity' info "$(found reallocs reallocs severity)"

# nothing is wrong with these
for program in true 'ls /usr/bin' 'sqlite3 :memory: .quit'; do
    "$MEMPROF" run -q -o none.db $program >/dev/null
    equal "$program" 'Nothing to advise.' "$("$MEMPROF" advise none.db)"
done

# what is live when a program is killed was in use
status=0
"$MEMPROF" run -q -o none.db "$PROGRAMS/advise" killed 2>/dev/null || status=$?
equal 'killed: status' 137 "$status"
equal 'killed' 'Nothing to advise.' "$("$MEMPROF" advise none.db)"

# damaged recordings: stacks that are their own callers; events that cannot be read
cp leak.db bad.db
sqlite3 bad.db 'UPDATE stack SET parent_id = stack_id'
timeout 60 "$MEMPROF" advise bad.db >got || fail "stacks that are their own callers: status $?"
contains 'own callers' got '* Never freed, saves at most 7.63 MiB'
cp leak.db bad.db
sqlite3 bad.db "UPDATE event_chunk SET data = x'00' WHERE chunk_id = 1"
"$MEMPROF" advise bad.db >got
contains 'damaged events' got 'Not all events are in this recording, or some are damaged'

# without all events: said so, bounds from the tables alone, and no rule that needs events
"$MEMPROF" run -q --aggregate -o none.db "$PROGRAMS/advise" leak
"$MEMPROF" advise none.db >got
contains 'aggregate' got 'Not all events are in this recording'
contains 'aggregate' got '* Never freed, saves at most 7.63 MiB of a peak of 15.63 MiB'
"$MEMPROF" run -q --aggregate -o none.db "$PROGRAMS/advise" phase
"$MEMPROF" advise none.db >got
contains 'aggregate' got 'Nothing to advise.'
"$MEMPROF" advise none.db --json | python3 -c "
import json, sys
got = json.load(sys.stdin)
assert got['findings'] == [] and got['not_known'].startswith('Not all events'), got"
"$MEMPROF" advise leak.db --device cuda:0 >got 2>&1 && fail 'a device that is not there'
contains 'device' got 'cuda:0'

# a script in Python whose steps are ranges: what grows by 5,000 bytes a step, and what each step leaves for ten others;
# each line once
cat >train.py <<'EOF'
history, cache = [], {}


def step(i):
    history.append(bytes(5000))
    cache[i % 10] = bytearray(100000)
    return sum(range(1000))


for i in range(60):
    step(i)
EOF
sed 's/cache\[i % 10\] = \(.*\)/buffer = \1; del buffer/' train.py >mended.py
python=$(command -v /usr/bin/python3 || command -v python3)
"$MEMPROF" run -q --range step -o train.db -- "$python" train.py
"$MEMPROF" run -q --range step -o mended.db -- "$python" mended.py
"$MEMPROF" advise train.db --json >train.json
python3 -c "
import json
found = {f['rule']: f for f in json.load(open('train.json'))['findings'] if f['severity'] != 'info'}
assert sorted(found) == ['phase', 'steps'], found
steps, phase = found['steps'], found['phase']
assert (steps['line'], steps['file'][-8:]) == (5, 'train.py') and phase['line'] == 6, found
assert 5000 <= steps['evidence']['bytes_an_execution'] < 5100, steps
print(phase['peak_bytes'] - phase['saved_bytes'])" >predicted || { "$MEMPROF" advise train.db; fail 'train.py'; }
now=$(peak mended.db) predicted=$(cat predicted)
at_most 'train.py: away from its twin by' $((now / 100)) $((predicted > now ? predicted - now : now - predicted))

# no more than what is lost is saved, whatever the interpreter keeps beside it
cat >lost.py <<'EOF'
import ctypes

libc = ctypes.CDLL(None)
libc.calloc.restype = ctypes.c_void_p
for i in range(80):
    ctypes.memset(libc.calloc(100000, 1), 1, 100000)
EOF
"$MEMPROF" run -q -o lost.db -- "$python" lost.py
"$MEMPROF" advise lost.db --json >lost.json
at_most 'lost.py: saved' 8000000 "$(found lost leaks saved_bytes)"
