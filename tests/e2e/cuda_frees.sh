# run --free-stacks on the simulated driver: who frees memory of GPUs, and with which device current; in a snapshot of
# PyTorch, too.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/cuda/lib.sh"
need python3
export SIM_CUDA_DEVICES=2 SIM_CUDA_BYTES=268435456 SIM_CUDA_STATE="$PWD/state"
MIB=1048576
RUN_OPTIONS=--free-stacks
record_ok "$PROGRAMS/cuda_frees"
"$MEMPROF" report --frees --device cuda --json out.db >frees.json
python3 - >got <<'END'
import json
for row in sorted(json.load(open('frees.json')), key=lambda row: row['function']):
    print(row['function'].split('(')[0], row['alloc_function'].split('(')[0], row['device'], row['free_count'],
          row['free_bytes'], row['device_count'], row['device_bytes'])
END
cat >wanted <<END
drop make cuda:0 3 $((6 * MIB)) 0 0
drop_elsewhere make cuda:0 2 $((9 * MIB)) 2 $((9 * MIB))
drop_ordered make_ordered cuda:0 4 $((8 * MIB)) 0 0
END
diff wanted got || fail 'who frees'

"$MEMPROF" export --format torch-snapshot --device cuda:0 -o snapshot.pickle out.db
python3 - >got <<'END'
import collections, pickle
trace = pickle.load(open('snapshot.pickle', 'rb'))['device_traces'][0]
count = collections.Counter((e['action'], e['frames'][0]['name'].split('(')[0]) for e in trace
                            if e['action'].startswith('free_'))
for (action, name), n in sorted(count.items()):
    print(action, name, n)
END
cat >wanted <<'END'
free_completed drop 3
free_completed drop_elsewhere 2
free_completed drop_ordered 4
free_requested drop 3
free_requested drop_elsewhere 2
free_requested drop_ordered 4
END
diff wanted got || fail 'frames of the frees in the snapshot'
