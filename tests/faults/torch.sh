# Snapshots that are none, that are damaged, and that want to run something: one line, exit 1, and an older recording
# stays.
need python3
make="python3 $ROOT/tests/torch/make_snapshot.py"
echo 'an older recording' >out.db
cp out.db older

# refused WHAT FILE TEXT
refused() {
    status=0
    "$MEMPROF" import "$2" >out 2>err || status=$?
    equal "$1: status" 1 $status
    [ "$(wc -l <err)" = 1 ] || { cat err; fail "$1: one line expected"; }
    contains "$1" err "memprof: $2: $3"
    cmp -s older out.db || fail "$1: out.db is another file"
    [ ! -e out.db.old ] || fail "$1: out.db was moved"
}
python3 - <<'EOF'
import os, pickle
class Runs:
    def __reduce__(self): return os.system, ('touch ran',)
class State:
    pass
for protocol in range(2, 6):
    pickle.dump({'segments': [], 'device_traces': [[Runs()]]}, open('runs%d' % protocol, 'wb'), protocol)
    pickle.dump({'segments': State(), 'device_traces': []}, open('state%d' % protocol, 'wb'), protocol)
pickle.dump({'segments': []}, open('old', 'wb'), 0)
pickle.dump([1, 2, 3], open('other', 'wb'), 4)
pickle.dump({'weights': {'a': 1.5}}, open('weights', 'wb'), 4)
open('text', 'w').write('{"segments": []}')
open('empty', 'w')
open('zip', 'wb').write(b'PK\3\4' + bytes(100))
open('random', 'wb').write(bytes(i * 7919 % 251 for i in range(5000)))
open('long', 'wb').write(b'\x80\x04\x8d' + b'\xff' * 8)
open('deep', 'wb').write(b'\x80\x04' + b'](' * 5000)
open('cycle', 'wb').write(b'\x80\x04]\x94h\x00a.')
# entries of a history in two histories, and a list of unlike things
e = {'action': 'alloc', 'addr': 512, 'size': 512, 'stream': 0, 'time_us': 1, 'frames': []}
pickle.dump({'segments': [], 'device_traces': [[e, e]]}, open('twice', 'wb'), 4)
EOF
for protocol in 2 3; do
    refused "a call, protocol $protocol" runs$protocol 'byte '
    contains "a call, protocol $protocol" err \
        ': GLOBAL would run or fetch code; a memory snapshot is data only: refused'
done
for protocol in 4 5; do
    refused "a call, protocol $protocol" runs$protocol 'byte '
    contains "a call, protocol $protocol" err \
        ': STACK_GLOBAL would run or fetch code; a memory snapshot is data only: refused'
done
for protocol in 2 3 4 5; do
    refused "an object, protocol $protocol" state$protocol 'byte '
    contains "an object, protocol $protocol" err 'GLOBAL would run or fetch code'
done
[ ! -e ran ] || fail 'the pickle ran'
refused 'protocol 0' old 'not a pickle of protocol 2 to 5'
refused 'a list' other "a pickle, but no memory snapshot: it has neither 'segments' nor 'device_traces'"
refused 'weights' weights "a pickle, but no memory snapshot"
refused 'JSON' text 'not a pickle of protocol 2 to 5: it begins with 0x7b 0x22'
refused 'nothing' empty 'empty, or nearly so: not a pickle'
refused 'a zip file' zip 'not a pickle'
refused 'noise' random 'not a pickle'
refused 'a long text' long 'byte 2: a text of more than 16 MiB'
refused 'nesting' deep 'byte 2003: nested deeper than a memory snapshot is'
refused 'a list in itself' cycle 'byte 6: items are added to what is no list, or was complete'
refused 'an entry twice' twice 'byte '
refused 'a directory' . 'a directory; expected a file that PyTorch, heaptrack or pprof wrote'
refused 'no file' nowhere 'No such file or directory'
ln -s out.db link
status=0
"$MEMPROF" import link >out 2>err || status=$?
equal 'its own output: status' 1 $status
contains 'its own output' err 'memprof: out.db: is the file to import itself; give the database another name with -o'
cmp -s older out.db || fail 'its own output: gone'
rm link

# cut anywhere: never a crash, never half a recording
$make all s.pickle --events 30
size=$(stat -c %s s.pickle)
for part in 1 2 3 10 $((size / 5)) $((size / 3)) $((size / 2)) $((size - 100)) $((size - 1)); do
    head -c "$part" s.pickle >cut
    refused "the first $part bytes" cut ''
done

# wrong types and values, each in every place: what makes no sense is skipped and counted
python3 - <<'EOF'
import copy, pickle
s = pickle.load(open('s.pickle', 'rb'))
odd = [None, True, -1, 1 << 58, 1 << 70, -(1 << 70), 1.5, float('nan'), float('inf'), '', 'x' * 300, '\ud800',
       b'x', [], {}, (), {'frames': []}, [[]], [None]]
def put(name, change):
    t = copy.deepcopy(s)
    change(t)
    pickle.dump(t, open(name, 'wb'), 4)
def parts(t):
    """Each in an entry, a segment or a block of its own: what is skipped of one hides none of the others."""
    for n, key in enumerate(('addr', 'size', 'time_us', 'frames', 'stream', 'action', 'pool_id')):
        trace = t['device_traces'][0]
        trace[(i + n) % len(trace)].update({key: v})
    for n, key in enumerate(('address', 'total_size', 'blocks', 'device', 'segment_pool_id', 'segment_type', 'frames')):
        t['segments'][n].update({key: v})
    for n, key in enumerate(('address', 'size', 'requested_size', 'state'), 7):
        t['segments'][n]['blocks'][0].update({key: v})
    for n, key in enumerate(('time_us', 'name', 'device', 'stage')):
        t['external_annotations'][n].update({key: v})
for i, v in enumerate(odd):
    put('odd%d' % i, parts)
    put('odd%d-rest' % i, lambda t: t.update(dict.fromkeys(
        ('allocator_settings', 'external_annotations', 'host_segments', 'host_traces'), v)))
    for key in ('segments', 'device_traces'):
        put('odd%d-%s' % (i, key), lambda t: t.update({key: v}))
EOF
count=0
for file in odd*; do
    status=0
    "$MEMPROF" import -q "$file" -o odd.db >out 2>err || status=$?
    [ $status -le 1 ] || { cat err; fail "$file: status $status"; }
    [ "$(wc -l <err)" = $status ] || { cat err; fail "$file: $(wc -l <err) lines, status $status"; }
    if [ $status = 0 ]; then
        bad=$(sqlite3 -readonly odd.db \
            "SELECT count(*) FROM total WHERE end_active_bytes < 0 OR alloc_count - free_count <> end_count")
        [ "$bad" = 0 ] || fail "$file: balances"
        count=$((count + 1))
    fi
    rm -f odd.db odd.db.old
done
at_least 'odd snapshots that are read all the same' 60 $count
