# samples/fragment.cu: segments that one small block each keeps from being one large hole; told of through memprof.h.
. "$ROOT/tests/cuda/lib.sh"
MIB=1048576
for fragment in $(builds_of fragment); do
    echo "$fragment"
    record_ok "$fragment"
    same_ledger run.out
    "$MEMPROF" report out.db >report.txt
    contains "a line of the device with the largest peak" report.txt 'lines --func take'
    contains "what the program says" run.out '5 segments after one more request'
    equal "active and reserved" "$((64 * MIB))|$((80 * MIB))" \
        "$(sql "SELECT peak_active_bytes || '|' || peak_reserved_bytes FROM v_total
        WHERE device = 'cuda:0' AND kind = 'all'")"
    # at the mark: the four that last and the large one
    at=$(value "SELECT start_ns FROM mark WHERE name = 'fragmented' AND is_range = 0")
    equal "at the mark" "$(((4 + 16) * MIB)) $(((4 + 16) * MIB)) $((80 * MIB))" \
        "$(events cuda:0 "time_ns <= $at" | sums | tail -1)"
    "$MEMPROF" report out.db --by line --skip take --device cuda:0 --at "${at}ns" >at.txt
    for caller in long_lived:4.00 main:16.00; do
        grep " ${caller%:*} " at.txt >row.txt || { cat at.txt; fail "no row of ${caller%:*}"; }
        contains "what ${caller%:*} holds at the mark" row.txt "${caller#*:} MiB"
    done
    lacks "what is gone" at.txt short_lived
    same_behaviour "$fragment"
done
# At the program's own mark: 4 kept pieces of 1 MiB pin a segment of 16 MiB each, a fifth is full of one block.
at=$(sql "SELECT start_ns FROM mark WHERE name = 'fragmented'")
"$MEMPROF" report out.db --segments --csv --at "${at}ns" >segments.csv || fail "report --segments --at"
equal "segments at the mark" \
    "$(printf '16777216 1048576\n16777216 1048576\n16777216 1048576\n16777216 1048576\n16777216 16777216')" \
    "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) { if ($i == "size_bytes") s = i;
    if ($i == "live_bytes") l = i } next } { print $s, $l }' segments.csv | sort)"
