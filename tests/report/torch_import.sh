# Imported snapshots of PyTorch: the database says what a plain unpickling says, of generated ones in every form that
# the picklers write.
need python3
. "$ROOT/tests/report/torch.inc"
make="python3 $ROOT/tests/torch/make_snapshot.py"

for shape in plain devices oom expandable pending annotations pools ring cut old host all empty; do
    leave=
    # what happened after the history was turned off, nobody can know; the oldest form has no history
    [ $shape = cut ] && leave='peak\|start\|^$'
    [ $shape = old ] && leave='start'
    case $shape in all | ring | old | pending) forms='4 2 5 cpp' ;; *) forms='4' ;; esac
    for form in $forms; do
        form=--$(echo "$form" | sed 's/^[0-9]/protocol &/')
        # shellcheck disable=SC2086
        $make $shape s.pickle $form
        same "$shape $form" s.pickle "$leave"
    done
done

# a block that came at the address of another one after the history's end
for seed in 2 3 4; do
    $make cut s.pickle --seed $seed
    same "cut, seed $seed" s.pickle 'peak\|start\|^$'
done

# ... of one that had lived before the history began, which has its size where a free is requested
cat >before.py <<'CODE'
import pickle, sys
start, size, segment = 1 << 32, int(sys.argv[1]), 1 << 21
block = {'address': start, 'size': 12288, 'requested_size': 12000, 'state': 'active_pending_free', 'frames': []}
rest = {'address': start + 12288, 'size': segment - 12288, 'requested_size': 0, 'state': 'inactive', 'frames': []}
pickle.dump({'segments': [{'device': 0, 'address': start, 'total_size': segment, 'stream': 0, 'segment_type': 'large',
                           'allocated_size': 0, 'active_size': 12288, 'blocks': [block, rest]}],
             'device_traces': [[{'action': 'free_requested', 'addr': start, 'size': size, 'stream': 0, 'time_us': 2000,
                                 'frames': [{'filename': 'a.py', 'line': 1, 'name': 'f'}]}]]}, open('s.pickle', 'wb'))
CODE
for size in 12000 12288 500 20000 -1; do # the first two are the same block's: asked for, or given
    python3 before.py $size
    "$MEMPROF" import -q s.pickle -o out.db
    held=$size
    case $size in 12000 | 12288) frees=0 ;; -1) frees=1 held=0 ;; *) frees=1 ;; esac
    equal "free requested of $size: blocks freed, bytes" "$frees|1|$((frees ? 12000 : size))|$((frees ? held : 0))" \
        "$(sql "SELECT free_count, end_count, end_active_bytes, free_bytes FROM total WHERE kind = 'sub'")"
done

# histories of one block in every order: what lives in the end is what the final state says
cat >orders.py <<'CODE'
import itertools, pickle
start, segment, n = 1 << 32, 1 << 21, 0
for state in 'active_allocated', 'active_pending_free', 'inactive':
    for order in itertools.chain(*(itertools.product(('alloc', 'free_requested', 'free_completed'), repeat=length)
                                   for length in (1, 2, 3))):
        if len(order) == 3 and (state == 'inactive' or order[2] != 'free_requested'):
            continue
        block = {'address': start, 'size': 12288, 'requested_size': 12000, 'state': state, 'frames': []}
        rest = {'address': start + 12288, 'size': segment - 12288, 'requested_size': 0, 'state': 'inactive'}
        events = [{'action': action, 'addr': start, 'size': 12000, 'stream': 0, 'time_us': 1000 + 10 * i, 'frames': []}
                  for i, action in enumerate(order)]
        pickle.dump({'segments': [{'device': 0, 'address': start, 'total_size': segment, 'stream': 0,
                                   'blocks': [block, rest], 'segment_type': 'large'}], 'device_traces': [events]},
                    open(f'order{n}.pickle', 'wb'))
        print(f'order{n}', '0,0' if state == 'inactive' else '12000,1', state, *order)
        n += 1
CODE
python3 orders.py >orders
equal "orders" 54 "$(wc -l <orders)"
while read -r name expected what; do
    "$MEMPROF" import -q $name.pickle -o out.db
    [ "$(sqlite3 -separator , out.db "SELECT total(end_active_bytes) + 0, total(end_count) + 0 FROM total
        WHERE kind = 'sub'" | sed 's/\.0//g')" = "$expected" ] || fail "$what: not $expected bytes, blocks"
done <orders

# a device that is none is said
sed "s/'device': 0/'device': 1000/" before.py >other.py
python3 other.py 12000
"$MEMPROF" import s.pickle -o out.db 2>err
contains 'a device of a number too high' err '1 values that are not used'

# what the history does not say is said
$make ring s.pickle
"$MEMPROF" import s.pickle -o out.db 2>err
contains 'a ring' err 'blocks that were live before the history begins'
"$MEMPROF" report out.db >report
contains 'a ring: the report says so' report 'blocks that were live before the history begins'
$make cut s.pickle
"$MEMPROF" import s.pickle -o out.db 2>err
contains 'a cut history' err 'whose allocation the history does not have'

# marks, oom, streams, pools, settings
$make all s.pickle
"$MEMPROF" import -q s.pickle -o out.db
"$MEMPROF" info out.db >info
grep '^allocator settings ' info >settings || { cat info; fail 'no allocator settings'; }
contains 'settings' settings 'max_split_size -1,'
contains 'nested settings' settings 'roundup_power2_divisions '
equal 'ranges' '30' \
    "$(value "SELECT count(*) FROM mark
    WHERE is_range AND end_ns > start_ns AND (name = 'forward' OR name LIKE 'step %')")"
equal 'a range from before' 0 "$(value "SELECT start_ns FROM mark WHERE name = 'before' AND is_range")"
equal 'a range that was not closed' 1 \
    "$(value "SELECT count(*) FROM mark WHERE name = 'unfinished' AND is_range AND end_ns IS NULL")"
equal 'instants' 'epoch 3 snapshot' \
    "$(sql "SELECT group_concat(name, ' ') FROM (SELECT name FROM mark WHERE NOT is_range ORDER BY name)")"
equal 'oom: free bytes and size' "15|$((123 << 20))|$((77 << 20))" \
    "$(sql "SELECT count(*), min(device_free_bytes), min(size_bytes) FROM oom")"
equal 'streams' 'stream 0 stream 94387000' \
    "$(sql "SELECT group_concat(name, ' ') FROM (SELECT name FROM thread ORDER BY name)")"
equal 'pools' '0,1 3,0' \
    "$(sql "SELECT group_concat(pool, ' ')
    FROM (SELECT DISTINCT pool FROM segment WHERE pool IS NOT NULL ORDER BY pool)")"
equal 'segments with a stream' 0 "$(value "SELECT count(*) FROM segment WHERE stream IS NULL")"
equal 'expandable ones are of cuda:1' 'cuda:1' \
    "$(sql "SELECT group_concat(name)
    FROM (SELECT DISTINCT name FROM segment JOIN device USING(device_id) WHERE is_expandable)")"
equal 'a setting' 0.8 "$(sql "SELECT value FROM meta WHERE key = 'torch.garbage_collection_threshold'")"
equal 'a nested setting' '{1: 0, 2: 0, 4: 8}' \
    "$(sql "SELECT value FROM meta WHERE key = 'torch.roundup_power2_divisions'")"
equal 'languages' 'native python' \
    "$(sql "SELECT group_concat(language, ' ') FROM (SELECT DISTINCT language FROM frame ORDER BY 1)")"
contains 'unknown keys' /dev/stdin a_new_key <<EOF
$(sql "SELECT value FROM meta WHERE key = 'unknown_keys'")
EOF
