# Policies on the simulated driver: pools with a band end with less reserved than without, by the program's numbers;
# pools that are destroyed while somebody may be trimming them; a trim while a free is pending, which gives nothing
# back, and one that waits for the device first.
. "$ROOT/tests/cuda/lib.sh"
MIB=1048576
P=$PROGRAMS/cuda_policy
export SIM_CUDA_BYTES=$((256 * MIB)) SIM_CUDA_CONTEXT_BYTES=$((16 * MIB)) SIM_CUDA_STATE="$PWD/state"
under() {
    RUN_OPTIONS="--policy $1"
    record_ok "$P" "$2" >sound.txt || { cat sound.txt; fail "$2"; }
}
last() { value "SELECT reserved_last_bytes FROM timeline JOIN device USING(device_id) WHERE name = 'cuda:0'
    AND level = 0 AND time_ns <= (SELECT start_ns FROM mark WHERE name = 'the end') ORDER BY time_ns DESC LIMIT 1"; }

echo 'a pool that keeps what it holds'
RUN_OPTIONS=
record_ok "$P" alone >sound.txt
equal 'without a policy' 'used 0 reserved 12582912' "$(cat run.out)"
cat >pools.txt <<'END'
cuda:*   0-101   idle >= 12MiB   pool-trim, callback after
END
for mode in thread poll; do
    under pools.txt $mode
    equal "by $mode" 'used 0 reserved 0' "$(cat run.out)"
    equal 'given back' $((12 * MIB)) \
        "$(value "SELECT sum(before_bytes - after_bytes) FROM policy_action WHERE action = 'pool-trim'")"
    equal 'as recorded' $((12 * MIB)) "$(value "SELECT max(reserved_before_bytes) FROM policy_action")"
    equal 'at the end' 0 "$(last)"
done
"$MEMPROF" report --policy --device cuda:0 out.db >report.txt
contains 'the report' report.txt '12.00 MiB'

echo 'a free that is pending'
cat >pending.txt <<'END'
cuda:0   0-101   reserved >= 12MiB   pool-trim
END
under pending.txt pending
equal 'a trim alone' 'used 12582912 reserved 12582912' "$(cat run.out)"
sed 's/pool-trim/pool-trim-sync/' pending.txt >sync.txt
under sync.txt pending
equal 'behind the work' 'used 0 reserved 0' "$(cat run.out)"

echo 'pools that go'
cat >all.txt <<'END'
cuda:0   0-101   active >= 0   pool-trim-sync, callback, mark
host     0-101   active >= 0   malloc-trim
END
under all.txt destroy
equal 'all of them' 'pools 400' "$(cat run.out)"

echo "the sample's own numbers"
for pools in $(builds_of pools); do
    RUN_OPTIONS="--policy all.txt"
    record_ok "$pools" >sound.txt || { cat sound.txt; fail "$pools"; }
    grep '^ledger' run.out >ledger.txt
    same_ledger run.out
done
