# samples/fragment.cu: segments that one small block each keeps from being one large hole; told of through memprof.h.
. "$ROOT/tests/cuda/lib.sh"
MIB=1048576
for fragment in $(builds_of fragment); do
    echo "$fragment"
    record_ok "$fragment"
    same_ledger run.out
    contains "what the program says" run.out '5 segments after one more request'
    equal "active and reserved" "$((64 * MIB))|$((80 * MIB))" "$(sql "SELECT peak_active_bytes || '|' || peak_reserved_bytes FROM v_total WHERE device = 'cuda:0' AND kind = 'all'")"
    # at the mark: the four that last and the large one
    at=$(value "SELECT start_ns FROM mark WHERE name = 'fragmented' AND is_range = 0")
    equal "at the mark" "$(((4 + 16) * MIB)) $(((4 + 16) * MIB)) $((80 * MIB))" "$(events cuda:0 "time_ns <= $at" | sums | tail -1)"
    "$MEMPROF" report out.db --by line --skip take --device cuda:0 --at "${at}ns" >at.txt
    for caller in long_lived:4.00 main:16.00; do
        grep " ${caller%:*} " at.txt >row.txt || { cat at.txt; fail "no row of ${caller%:*}"; }
        contains "what ${caller%:*} holds at the mark" row.txt "${caller#*:} MiB"
    done
    lacks "what is gone" at.txt short_lived
    same_behaviour "$fragment"
done
