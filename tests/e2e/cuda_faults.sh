# Programs that misuse CUDA, and drivers that fail: what the program sees is the same under memprof, and the recording
# is what the program's own ledger says.
. "$ROOT/tests/cuda/lib.sh"
FAULTS=$SIM/programs/faults
SIM_CUDA_DEVICES=2
export SIM_CUDA_DEVICES
both() {
    echo "$*"
    same_behaviour "$FAULTS" "$@"
    same_ledger run.out
    equal "state" complete "$(sql "SELECT value FROM meta WHERE key = 'state'")"
    balance
}

both wrong_free
both reset
equal "the other device's blocks outlive a reset" "1|1" \
    "$(sql "SELECT alloc_count || '|' || free_count FROM v_total WHERE device = 'cuda:1' AND kind = 'device'")"
both pending
equal "nothing is live at the end" 0 "$(column cuda:0 all end_active_bytes)"
both forked
equal "the child's allocations" 0 "$(value "SELECT count(*) FROM oom")"
both graph
# 3 MiB in the graph's units of 2 MiB, held between the launches
equal "reserved by graphs" 4194304 "$(column cuda:0 all peak_reserved_bytes)"
both leak
equal "leaks" "cuda:0|30000|3 cuda:1|20000|2" \
    "$(sql "SELECT group_concat(device || '|' || b || '|' || c, ' ')
    FROM (SELECT device, sum(end_bytes) b, sum(end_count) c FROM v_leak WHERE device LIKE 'cuda:%' GROUP BY 1
    ORDER BY 1)")"
"$MEMPROF" leaks out.db >leaks.txt || true
contains "leaks" leaks.txt faults.cpp

# Memory of another process is counted where it was allocated, once.
echo ipc
same_behaviour "$FAULTS" ipc
same_ledger run.out
equal "processes" 2 "$(value "SELECT count(DISTINCT pid) FROM process")"

# No driver, drivers that cannot start, no device, failing allocations, drivers older than the functions asked for.
NET=$SIM/plain/net
echo "no driver"
LD_LIBRARY_PATH=$SIM same_behaviour "$NET" 1 3
contains "no driver" run.err 'driver version is insufficient'
equal "no device" 0 "$(value "SELECT count(*) FROM device WHERE name LIKE 'cuda:%'")"
for code in 100 803 999; do
    echo "cuInit gives $code"
    SIM_CUDA_INIT_ERROR=$code same_behaviour "$NET" 1 3
    equal "nothing was allocated" 0 \
        "$(value "SELECT coalesce(sum(alloc_count), 0) FROM v_total WHERE device LIKE 'cuda:%'")"
done
echo "no devices"
SIM_CUDA_DEVICES=0 same_behaviour "$NET" 1 3
echo "too small for a context"
SIM_CUDA_BYTES=1048576 same_behaviour "$NET" 1 3
echo "too small for the net"
SIM_CUDA_BYTES=$((18 << 20)) same_behaviour "$NET" 1 3
equal "the failure" "4194304|1" "$(sql "SELECT size_bytes || '|' || count(*) FROM oom")"
for version in 10020 11020 11080 12040; do
    echo "driver $version"
    driver $version
    same_behaviour "$NET" 1 3
    same_ledger run.out
done

# Each allocation of a program failing in turn (the first one is the context's): it ends as it does without us, and the
# failure is told.
driver 13000
for at in 2 3 4 5 6 7; do
    for program in fragment vmm; do
        SIM_CUDA_FAIL_AT=$at same_behaviour "$SIM/plain/$program"
        grep '^ledger' run.out >/dev/null || equal "$program: failure $at" 1 "$(value "SELECT count(*) FROM oom")"
    done
done
