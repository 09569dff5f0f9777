# For the tests of CUDA: the simulated driver, and the comparison of a sample's own ledger with what memprof recorded.
SIM=$BUILD/cuda
# driver VERSION: programs find the simulated driver of this CUDA version, the stand-in runtime and NVML
driver() { LD_LIBRARY_PATH=$SIM/$1:$SIM; export LD_LIBRARY_PATH; }
driver 13000
[ -e "$SIM/13000/libcuda.so.1" ] || skip "the simulated driver is not built"

# The builds of a sample that run on the simulated driver: plain always, shared where nvcc is.
builds_of() { for kind in plain shared; do [ ! -x "$SIM/$kind/$1" ] || echo "$SIM/$kind/$1"; done; }

# column DEVICE KIND COLUMN: of v_total, 0 when there is no row
column() { value "SELECT $3 FROM v_total WHERE device = '$1' AND kind = '$2'"; }

# same_ledger FILE: every line that the sample printed against v_total; no kind of a device is recorded that it does not
# name
same_ledger() {
    grep '^ledger ' "$1" >ledger.txt || fail "no ledger in $1"
    while read -r _ device kind allocs bytes frees freed peak; do
        case $kind in
        segment) # not blocks: what the sample's own allocator holds
            equal "$device reserved by the sample's allocator" "$peak" "$(column "$device" all peak_reserved_bytes)"
            equal "$device: no segment is a block" "0|0" \
                "$(sql "SELECT coalesce(sum(alloc_count), 0) || '|' || coalesce(sum(alloc_bytes), 0) FROM v_total
                WHERE device = '$device' AND kind = 'device'")"
            continue ;;
        all) [ "$device" != host ] || continue ;; # the program's own heap is there too
        esac
        equal "$device $kind" "$allocs|$bytes|$frees|$freed|$peak" \
            "$(sql "SELECT alloc_count || '|' || alloc_bytes || '|' || free_count || '|' || free_bytes || '|' ||
            peak_active_bytes FROM v_total WHERE device = '$device' AND kind = '$kind'")"
    done <ledger.txt
    sql "SELECT device || ' ' || kind FROM v_total WHERE device LIKE 'cuda:%' AND alloc_count > 0
        ORDER BY 1" >recorded.txt
    awk '$2 ~ /^cuda:/ && $3 != "segment" { print $2, $3 }' ledger.txt | sort >named.txt
    cmp -s recorded.txt named.txt || {
        diff named.txt recorded.txt
        fail "other kinds of memory than the sample's ledger names"
    }
}

# line_of FILE TEXT: the number of the first line with TEXT
line_of() { awk -v p="$2" 'index($0, p) { print NR; exit }' "$ROOT/$1"; }

# same_behaviour COMMAND...: status, output and messages with memprof and without; the recording stays in out.db
same_behaviour() {
    plain=0 profiled=0
    "$@" >plain.out 2>plain.err || plain=$?
    rm -f out.db
    "$MEMPROF" run -q -o out.db $RUN_OPTIONS -- "$@" >run.out 2>run.err || profiled=$?
    equal "status" "$plain" "$profiled"
    cmp -s plain.out run.out || { diff plain.out run.out | head -20; fail "other output under memprof: $*"; }
    cmp -s plain.err run.err || { diff plain.err run.err | head -20; fail "other messages under memprof: $*"; }
    [ -f out.db ] || fail "no database from: $*"
}

# events DEVICE [CONDITION]: "op kind bytes" of each event of the device, in order
events() {
    "$MEMPROF" sql out.db --csv "SELECT op, kind, size_bytes FROM v_event WHERE device = '$1' AND ${2:-1}" |
        tr -d '\r' | tr ',' ' ' | sed 1d
}
# sums: of such lines, after each "active allocated reserved", in bytes
sums() {
    awk '$1 == "alloc" { active += $3; allocated += $3 }
         $1 == "free_requested" { allocated -= $3; waiting += $3 }
         $1 == "free" { active -= $3; if (waiting) waiting -= $3; else allocated -= $3 }
         $1 == "segment_alloc" { reserved += $3 }
         $1 == "segment_free" { reserved -= $3 }
         { printf "%d %d %d\n", active, allocated, reserved }'
}
