# What forked children cost: by arithmetic, and by what the kernel counts of the first one. The parent touched 64 MiB;
# that child wrote to 16 MiB of them and to 8 MiB of its own, the other one to nothing.
mib=1048576
near() { # WHAT EXPECTED ACTUAL: libraries' data, stacks and tables are beside the program's own
    at_least "$1" $(($2 - 65536)) "$3"
    at_most "$1" $(($2 + mib)) "$3"
}
kernel() { # FIELD of smaps_rollup, bytes
    echo $((1024 * $(sed -n "s/^$1: *\([0-9]*\) kB/\1/p" run.out)))
}
of() { # PROCESS COLUMN
    value "SELECT $2 FROM v_fork WHERE process_id = $1"
}

# looks take at most 1/64 of the run: on a loaded machine the one after the child has written comes late
for seconds in 1 4 12; do
    record_ok "$PROGRAMS/children" $seconds
    first=$(value "SELECT min(process_id) FROM process WHERE start_kind = 'fork'")
    [ "$(of "$first" 'copied_bytes + own_bytes')" -lt $((24 * mib)) ] || break
done
second=$(value "SELECT max(process_id) FROM process WHERE start_kind = 'fork'")
equal "forks" 2 "$(value "SELECT count(*) FROM v_fork")"
near "still shared" $((48 * mib)) "$(of "$first" shared_bytes)"
near "copied" $((16 * mib)) "$(of "$first" copied_bytes)"
near "own" $((8 * mib)) "$(of "$first" own_bytes)"
near "shared by one that did nothing" $((64 * mib)) "$(of "$second" shared_bytes)"
at_most "copied by one that did nothing" $mib "$(of "$second" copied_bytes)"
at_most "own of one that did nothing" $mib "$(of "$second" own_bytes)"
equal "sums" 0 "$(value "SELECT count(*) FROM resident_fork f JOIN resident_scan c USING(scan_id)
    WHERE f.shared_bytes + f.copied_bytes + f.own_bytes + f.file_bytes <> c.present_bytes")"
inherited=$(value "SELECT CAST(total(resident_bytes) AS INTEGER) FROM v_resident WHERE what = 'inherited'")
told=$(value "SELECT CAST(total(f.shared_bytes + copied_bytes) AS INTEGER) FROM resident_fork f JOIN resident_scan
    USING(scan_id) WHERE is_peak")
near "a rest of its own" "$inherited" "$told" # with memprof's own
at_least "of both" $((2 * 64 * mib)) "$inherited"
at_most "not called the heap's" $mib "$(value "SELECT CAST(total(resident_bytes) AS INTEGER) FROM v_resident
    WHERE what IN ('heap', 'anonymous')")"
# the kernel's own count, up to the stack of the function that asks for it
near "anonymous pages, by the kernel" "$(kernel Anonymous)" "$(of "$first" 'shared_bytes + copied_bytes + own_bytes')"
near "private pages, by the kernel" "$(kernel Private_Dirty)" "$(of "$first" 'copied_bytes + own_bytes')"

"$MEMPROF" report --by process --sort resident out.db >by.txt
contains "a table" by.txt "Resident memory of forked processes, by what each costs: "
"$MEMPROF" report --by process --sort resident --json out.db >by.json
equal "for programs" "$(of "$first" copied_bytes)|$(of "$second" shared_bytes)" "$(sqlite3 :memory: "
    CREATE TABLE j(t); INSERT INTO j VALUES(CAST(readfile('by.json') AS TEXT));
    SELECT max(e.value ->> 'inherited_copied_bytes') || '|' || max(e.value ->> 'inherited_shared_bytes')
    FROM j, json_each(t, '\$.forked') e")"
pid_of() { value "SELECT pid FROM process WHERE process_id = $1"; }
parent=$(pid_of 1)
"$MEMPROF" report --process "$(pid_of "$first")" out.db >first.txt
contains "whose it is" first.txt "Forked from $parent: it allocated 8.00 MiB itself and inherited 64."
contains "its parts" first.txt " were inherited and still shared (no cost), 16."
"$MEMPROF" report --process "$(pid_of "$second")" out.db >second.txt
contains "one that does nothing" second.txt "Forked from $parent: it allocated nothing itself and inherited 64."
"$MEMPROF" report --process "$parent" out.db >parent.txt
lacks "one that did not fork" parent.txt "Forked"
# each has its own events: a block's birth and death; and the sum is all
for id in 1 $first $second; do
    "$MEMPROF" sql --csv out.db "SELECT count(*) FROM v_event WHERE process_id = $id" | tail -n 1 | tr -d '\r' >count
    "$MEMPROF" report --process "$(pid_of "$id")" out.db >one.txt
    contains "its own events" one.txt ", $(cat count) event"
done
contains "a birth and a death" first.txt ", 2 events"
contains "no event" second.txt ", 0 events"

# the sum of all processes' RSS has 48 MiB that the first child shares, and 64 MiB of the second, more than once; and
# code and libraries, which are less than 3 MiB a process
again() { # WHAT MIB_OF_THE_PROGRAM PROCESSES
    "$MEMPROF" report out.db >report.txt
    again=$(sed -n '2s/.*(sampled; at least \([0-9]*\)\.[0-9]* MiB counted again: shared by processes).*/\1/p' \
        report.txt)
    at_least "$1, MiB" $(($2 - 1)) "${again:-0}"
    at_most "$1, MiB" $(($2 + 3 * ($3 - 1))) "${again:-0}"
}
again "counted again" $((48 + 64)) 3
"$MEMPROF" info out.db >info.txt
contains "in the list of processes" info.txt "(the peak RSS of a fork has what it shares with its parent"
"$MEMPROF" report --html=out.html out.db >html.txt
contains "on the page" out.html "MiB counted again: shared by processes"

# a file of an older version knows nothing of this
cp out.db older.db
sqlite3 older.db "DROP VIEW v_fork; DROP TABLE resident_fork; DROP TABLE resident_again"
"$MEMPROF" report --by process --sort resident older.db >older.txt
lacks "an older file" older.txt "Resident memory of forked processes, by what each costs: "
"$MEMPROF" report --process "$(pid_of "$first")" older.db >older.txt
contains "an older file's process" older.txt "itself; what it inherited was not looked at"
"$MEMPROF" report older.db >older.txt
contains "an older file's sum" older.txt "(sampled; what forks share is counted in each)"

# memory that all have mapped is in each's RSS, and so is a file that programs which are no forks of each other read;
# two files are not one
head -c $((32 * mib)) /dev/zero >one.bin
cp one.bin two.bin
for ms in 1000 4000 12000; do # as above
    record_ok "$PROGRAMS/shared" 3 $ms
    peak=$(value "SELECT total(present_bytes) >= 3 * 33 * $mib FROM resident_scan WHERE is_peak")
    [ "$peak" -eq 0 ] || break
done
again "shared memory" $((2 * 32)) 3
two() { # FILE: that the second one reads
    for ms in 1000 4000 12000; do
        record_ok sh -c "'$PROGRAMS/shared' 1 $ms one.bin & '$PROGRAMS/shared' 1 $ms $1; wait"
        peak=$(value "SELECT total(present_bytes) >= 2 * 33 * $mib FROM resident_scan WHERE is_peak")
        [ "$peak" -eq 0 ] || break
    done
}
two one.bin
again "a file" 32 3
two two.bin
again "two files" 1 3
