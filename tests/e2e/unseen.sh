# Where blocks of the heap are missing in the recording, nothing is said to be free, idle or growing that is theirs:
# blocks from before memprof attached, below --min-size, of libraries whose calls go past memprof. Tables say it.
program=$PROGRAMS/unseen
# says WHICH: of out.db, of which heap nearly all is free to believe the blocks that it has
says() {
    "$MEMPROF" report out.db >report
    "$MEMPROF" report out.db --segments >segments
    "$MEMPROF" report out.db --json >json
    "$MEMPROF" report out.db --html=page.html >page.out
    contains "$1: the heaps" segments "Heaps of glibc"
    contains "$1: their caveat" segments "Not known: $1"
    contains "$1: the table" report "What keeps memory from the kernel"
    contains "$1: its caveat" report "Not known: $1"
    contains "$1: the page's" page.html "Not known: $1"
    for title in "Free, but kept" "Reserved, but not" "Growth"; do
        lacks "$1: report" report "$title"
        lacks "$1: json" json "$title"
        lacks "$1: page" page.html "<h3>$title"
    done
    equal "$1: cards" 0 "$(grep -c 'class="finding \(bad\|warn\)"' page.html)"
}

RUN_OPTIONS=--min-size=8K
record_ok "$program" small
says "blocks smaller than 8.00 KiB (--min-size)"
RUN_OPTIONS=
record_ok "$program" deep "$PROGRAMS/lib_deep.so"
says "blocks of calls that were not seen ("
# what glibc says is in use beside those that are recorded: 8,000 of 4,000 bytes and their headers, more or less a page
# for each sample's rounding and what it keeps for itself
bytes=$(value "SELECT value FROM counter WHERE name = 'unseen_heap_bytes'")
at_least "bytes that were not seen" $((8000 * 4016 - 65536)) "$bytes"
at_most "bytes that were not seen" $((8000 * 4016 + (1 << 20))) "$bytes"
equal "none was freed unseen" 0 "$(value "SELECT count(*) FROM counter WHERE name = 'unfreed_heap_bytes'")"
# 7,000 of 8,000 blocks of 1,000 bytes were freed so: what glibc says is in use has their headers, and what it keeps
record_ok "$program" freed "$PROGRAMS/lib_deep.so"
bytes=$(value "SELECT value FROM counter WHERE name = 'unfreed_heap_bytes'")
at_least "bytes that count as live" $((7000 * 1000 - 65536)) "$bytes"
at_most "bytes that count as live" $((7000 * 1000)) "$bytes"
"$MEMPROF" report out.db >report
contains "freed unseen" report "! calls that were not seen freed 6.6"
contains "freed unseen, what to do" report "record again with --deepbind"
lacks "freed unseen" report "Never freed"
# the same of three threads that are gone as the program ends: glibc is asked once then, and where the machine is busy
# its answer may come too late
for try in 1 2 3; do
    record_ok "$program" threads "$PROGRAMS/lib_deep.so"
    bytes=$(value "SELECT value FROM counter WHERE name = 'unfreed_heap_bytes'")
    [ -z "$bytes" ] || break
done
at_least "three threads: bytes that count as live" $((3 * (7000 * 1000 - 65536))) "$bytes"
at_most "three threads: bytes that count as live" $((3 * 7000 * 1000)) "$bytes"
"$MEMPROF" report out.db >report
contains "three threads" report "! calls that were not seen freed 19."
lacks "three threads" report "Never freed"
# and of one of two processes, as a shell's
record_ok sh -c '"$0" freed "$1"; true' "$program" "$PROGRAMS/lib_deep.so"
bytes=$(value "SELECT value FROM counter WHERE name = 'unfreed_heap_bytes'")
at_least "two processes: bytes that count as live" $((7000 * 1000 - 65536)) "$bytes"
at_most "two processes: bytes that count as live" $((7000 * 1000)) "$bytes"
# of what is not freed at all these are a few: 500 of 8,000 of 4,000 bytes, less headers of the others
record_ok "$program" few "$PROGRAMS/lib_deep.so"
"$MEMPROF" report out.db >report
grep -q '^\* Never freed: 30\.[45].* Calls that were not seen freed 1\.7. MiB of it, or more\.$' report || fail "a few"
# one after another they are more than ever was live at once
record_ok "$program" again "$PROGRAMS/lib_deep.so"
"$MEMPROF" report out.db >report
peak=$(value "SELECT printf('%.2f MiB', peak_active_bytes / 1048576.0) FROM total WHERE kind = 'all' AND device_id = 0")
at_least "again: in all" $((3 * 8000 * 4000)) "$(value "SELECT value FROM counter WHERE name = 'replaced_bytes'")"
contains "again" report "until their addresses were used again, by $peak at most"
# the other way round: 8,000 of 4,000 bytes, and what glibc adds to each
record "$program" taken "$PROGRAMS/lib_deep.so"
"$MEMPROF" report out.db >report
grep -q '^! 8,000 frees of addresses .*; glibc had up to 3[01]\.[0-9]* MiB more in use than was recorded$' report ||
    fail "freed, and not seen before"
# all of it is seen
RUN_OPTIONS=--deepbind
record_ok "$program" freed "$PROGRAMS/lib_deep.so"
equal "--deepbind: all frees are known" "1000|0" "$(by_function fill | cut -d'|' -f5)|$(value "SELECT count(*) FROM
    counter WHERE name = 'unfreed_heap_bytes'")"
record_ok "$program" threads "$PROGRAMS/lib_deep.so"
equal "--deepbind: frees of three threads are known" "3000|0" "$(by_function free_own | cut -d'|' -f5)|$(value "SELECT
    count(*) FROM counter WHERE name = 'unfreed_heap_bytes'")"
record_ok "$program" deep "$PROGRAMS/lib_deep.so"
"$MEMPROF" report out.db --segments >segments
lacks "--deepbind" segments "Not known"
equal "--deepbind: all blocks are known" 0 "$(value "SELECT count(*) FROM counter WHERE name = 'unseen_heap_bytes'")"

command -v python3 >/dev/null && { [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] ||
    [ "$(id -u)" = 0 ]; } || skip "this user may not trace, or there is no python3"
. "$ROOT/tests/e2e/attach.inc"
start_target "$program" replace
attach_to "$target"
ask again >/dev/null
"$MEMPROF" detach "$target" || fail "detach failed"
wait $collector || { cat attach.err; fail "attach ended with $?"; }
end_target replaced
says "blocks from before memprof attached"
