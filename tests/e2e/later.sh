# What is written after the look at the highest resident memory: by arithmetic. Of 300 MiB 150 are seen, and 8 more come
# just before the end, which is less than a new maximum is told by.
mib=1048576
rested() { # HOW: recorded, with the 150 MiB seen; with more time where the machine is busy
    for ms in 1000 4000 16000; do
        # shellcheck disable=SC2086
        record_ok "$PROGRAMS/later" $ms $1
        [ "$(value "SELECT max(present_bytes) FROM resident_scan")" -lt $((150 * mib)) ] || break
    done
    "$MEMPROF" report out.db >report.txt
    "$MEMPROF" report --by line --sort resident out.db >by.txt
}
touched() {
    value "SELECT r.resident_bytes FROM resident_account r JOIN function f ON f.function_id = r.key_id
        WHERE r.scope = 'function' AND r.inclusive = 1 AND r.kind = 'all' AND f.plain_name = 'table'"
}

# the look for the end is made anyway: it is the one at the highest resident memory
for _ in 1 2 3 4 5; do # a busy machine may make it too late
    rested ""
    [ "$(touched)" != $((158 * mib)) ] || break
    at_least "too late, after ns" 50000000 "$(value "SELECT max(p.end_ns - c.time_ns) FROM resident_scan c
        JOIN process p USING(process_id) WHERE c.is_last")"
done
equal "all that was written" $((158 * mib)) "$(touched)"
contains "the rest" report.txt "142.00 MiB (47 %) were on no page"
lacks "no peak but that" report.txt "of a peak RSS of"

# what was given back again nobody has seen: the kernel's peak says that it was there
rested gone
equal "all that was seen" $((150 * mib)) "$(touched)"
contains "the look" report.txt "150.00 MiB (50 %) were on no page"
contains "the peak" by.txt ", of a peak RSS of "
said=$(sed -n 's/.* Resident memory was up to \([0-9]*\)\.[0-9]* MiB more at another time than at this look.*/\1/p' \
    report.txt)
at_least "MiB that may have been written later" 7 "${said:-0}"
at_most "MiB that may have been written later" 9 "${said:-0}"
"$MEMPROF" report --json out.db >report.json
bytes=$(sqlite3 :memory: "CREATE TABLE j(t); INSERT INTO j VALUES(CAST(readfile('report.json') AS TEXT));
    SELECT e.value ->> 'bytes' FROM j, json_each(t, '\$.findings') e WHERE e.value ->> 'rule' = 'untouched'")
at_least "what certainly was not there" $((141 * mib)) "${bytes:-0}"
at_most "what certainly was not there" $((143 * mib)) "${bytes:-0}"
"$MEMPROF" report --html=out.html out.db >html.txt
contains "on the page" out.html "more at another time than at this look"
