# What is on pages as a process ends: a program gives back 10 MiB of 120 some time before it, or just then. By
# arithmetic. The end waits for that look, but not for a collector that does not come.
of_function() { # FUNCTION: its bytes at the last look at each process
    value "SELECT r.resident_end_bytes FROM resident_account r JOIN function f ON f.function_id = r.key_id
        WHERE r.scope = 'function' AND r.inclusive = 1 AND r.kind = 'all' AND f.plain_name = '$1'"
}
# A busy machine may let the collector come too late: then the program has waited for all of the 50 ms.
look() { # HOW: the recording of a try that was in time; else nothing is known
    for _ in 1 2 3 4 5 6; do
        # shellcheck disable=SC2086
        record "$PROGRAMS/last_look" $1
        [ "$(of_function halved)" != $((10 << 20)) ] || return 0
        case $1 in kill) continue ;; esac
        at_least "$1: too late, after ns" 50000000 "$(value "SELECT max(p.end_ns - c.time_ns) FROM resident_scan c
            JOIN process p USING(process_id) WHERE c.is_last")"
    done
    echo "$1: this machine is too busy"
    return 1
}
for how in "exit" "_exit" "main" "exit late" "_exit late" "main late" "fork" "fork late" "kill"; do
    look "$how" || [ "$how" = kill ] || continue
    equal "$how" "$((100 << 20))|$((10 << 20))" "$(of_function kept)|$(of_function halved)"
    equal "$how, a look before the end" 0 "$(value "SELECT count(*) FROM resident_scan c JOIN process p
        USING(process_id) WHERE p.end_ns < c.time_ns + c.duration_ns")"
done

# the instant is said: one where one process was looked at
look "exit late" || record_ok "$PROGRAMS/last_look" exit late
"$MEMPROF" report --by line --sort resident out.db >by.txt
at=$(sed -n 's/.*; the last look of all was \(at [0-9.]* [a-z]*\), before the end)/\1/p' by.txt)
contains "its column" by.txt "last look"
equal "... and its instant" "$at" "$(sed -n '3s/.*\(at [0-9.]* [a-z]*\)$/\1/p' by.txt)"
# of several from when to when, and for each its own: the child ended before its parent
look "fork late" || skip "too busy for the rest"
"$MEMPROF" report --by line --sort resident out.db >by.txt
grep -qE ' at [0-9.]+ m?s to [0-9.]+ m?s$' by.txt || { cat by.txt; fail "no instants of the last looks"; }
"$MEMPROF" report --by process --sort resident --json out.db >by.json
sqlite3 :memory: "CREATE TABLE j(t); INSERT INTO j VALUES(CAST(readfile('by.json') AS TEXT));
    SELECT count(*), max(e.value ->> 'last_ns') - min(e.value ->> 'last_ns') > 200000000,
    sum((e.value ->> 'last_bytes') BETWEEN $((110 << 20)) AND $((114 << 20)))
    FROM j, json_each(t, '\$.resident_processes') e" >looks.txt
equal "each process's instant" "2|1|1" "$(cat looks.txt)"

# a collector that is stopped holds nobody up for longer than it may: 50 ms, and what a busy machine adds
mkfifo go
"$MEMPROF" run -q -o stopped.db "$PROGRAMS/last_look" linger <go &
collector=$!
exec 9>go
program=
for _ in $(seq 100); do
    program=$(pgrep -P $collector -f last_look) && break
    sleep 0.05
done
[ -n "$program" ] || fail "no program"
sleep 1.2
kill -STOP $collector
exec 9>&-
state=R
for _ in $(seq 100); do
    state=$(sed 's/.*) //; s/ .*//' "/proc/$program/stat" 2>/dev/null || echo X)
    case $state in [ZX]) break ;; esac
    sleep 0.05
done
kill -CONT $collector
wait $collector || fail "the run ended with $?"
case $state in [ZX]) ;; *) fail "the program waits for a stopped collector: $state" ;; esac
