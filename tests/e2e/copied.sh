# Pages that a process copies after all of its memory was there: by arithmetic. Of 60 MiB from before a fork one of two
# processes writes to 50 MiB, and the resident bytes of neither change; after that they share 10 MiB.
mib=1048576
written() { # HOW: recorded, the look at the highest resident memory after the writing; with more time where it is busy
    for ms in 500 2000 8000; do
        record_ok "$PROGRAMS/copied" $ms "$1"
        shared=$(value "SELECT r.resident_shared_bytes FROM resident_account r JOIN function f ON f.function_id =
            r.key_id WHERE r.scope = 'function' AND r.inclusive = 1 AND r.kind = 'all' AND f.plain_name = 'table'")
        [ "$shared" != $((10 * mib)) ] || break
    done
    equal "$1: shared still" $((10 * mib)) "$shared"
    "$MEMPROF" report out.db >report.txt
    again=$(sed -n '2s/.*(sampled; at least \([0-9]*\)\.[0-9]* MiB counted again: shared by processes).*/\1/p' \
        report.txt)
    at_least "$1: counted again, MiB" 10 "${again:-0}"
    at_most "$1: counted again, MiB" 13 "${again:-0}" # and code
    # all in a round, in which both processes have all of it
    at_least "$1: what was looked at" $((120 * mib)) "$(value "SELECT sum(present_bytes) FROM resident_scan
        WHERE is_peak")"
    at_least "$1: copied" $((50 * mib)) "$(value "SELECT copied_bytes FROM v_fork")"
    at_most "$1: copied" $((51 * mib)) "$(value "SELECT copied_bytes FROM v_fork")"
}
written child
written parent
