# memprof_on_oom: who is told of allocations that fail, of which device, where, and that errno and results stay.
. "$ROOT/tests/lib.sh"
"$PROGRAMS/on_oom" >plain.out
equal 'without memprof' 'not recorded|good 12, calls 0, answered 0' "$(paste -s -d '|' plain.out)"
record_ok "$PROGRAMS/on_oom"
cat >want <<'END'
first: host 9223372036854775807
first: host 18446744073709551615
first: host 9223372036854775807
first: host 18446744073709551615
first: host 9223372036854775807
first: host 9223372036854775807
first: host 4611686018427387904
second: host 9223372036854775806
second: host 9223372036854775805
deeper: host 9223372036854775807
good 13, calls 13, answered 10
END
cmp -s want run.out || { diff want run.out; fail 'who was told'; }
# the ten, what failed in them, the first, the three that left, and the last; none of the pause
equal 'failures' 25 "$(value 'SELECT count(*) FROM oom')"

[ -e "$BUILD/cuda/13000/libcuda.so.1" ] || skip 'the rest needs the simulated driver'
export LD_LIBRARY_PATH="$BUILD/cuda/13000:$BUILD/cuda"
export SIM_CUDA_BYTES=268435456 SIM_CUDA_CONTEXT_BYTES=16777216 SIM_CUDA_STATE="$PWD/state"
record_ok "$PROGRAMS/cuda_layers" on_oom
# the simulated driver has pinned memory enough
told='told: cuda:0 1099511627776, 0, active 8388608'
equal 'of a GPU' "$told|$told|codes 2 2 0" "$(paste -s -d '|' run.out)"
