# Imported snapshots of PyTorch: the database says what a plain unpickling says, of generated ones in every form that the
# picklers write, and of real ones.
need python3
make="python3 $ROOT/tests/torch/make_snapshot.py"

# of one device: the lines of expect.py
facts() {
    d="device = '$1'"
    s="device_id = (SELECT device_id FROM device WHERE name = '$1')"
    sql "SELECT '$1|segments|' || count(*), '$1|segment bytes|' || coalesce(sum(size_bytes), 0) FROM (SELECT 1, sum(size_bytes) size_bytes FROM segment_block WHERE $s GROUP BY segment_address)" | tr '|' '\n' | paste -d'|' - - -
    for state in active 'awaiting free' inactive; do
        sql "SELECT '$1|$state blocks|' || count(*) FROM segment_block WHERE $s AND state = '$state'"
        sql "SELECT '$1|$state bytes|' || coalesce(sum(size_bytes), 0) FROM segment_block WHERE $s AND state = '$state'"
        [ "$state" = inactive ] || sql "SELECT '$1|$state requested|' || coalesce(sum(requested_bytes), 0) FROM segment_block WHERE $s AND state = '$state'"
    done
    sql "SELECT '$1|end active bytes|' || coalesce(sum(end_active_bytes), 0) FROM v_total WHERE $d AND kind = 'all'"
    sql "SELECT '$1|end blocks|' || coalesce(sum(end_count), 0) FROM v_total WHERE $d AND kind = 'all'"
    sql "SELECT '$1|active by segments|' || coalesce(sum(size_bytes), 0) FROM segment_block WHERE $s AND state <> 'inactive'"
    sql "SELECT '$1|allocated by segments|' || coalesce(sum(size_bytes), 0) FROM segment_block WHERE $s AND state = 'active'"
    "$MEMPROF" sql --csv out.db "WITH h(hook) AS (VALUES('alloc'),('free_requested'),('free_completed'),('segment_alloc'),('segment_free'),('segment_map'),('segment_unmap'),('oom'))
        SELECT '$1|event ' || h.hook || '|' || (SELECT count(*) FROM v_event e WHERE e.hook = h.hook AND $d) FROM h" | tail -n +2
    sql "SELECT '$1|peak active|' || coalesce(sum(peak_active_bytes), 0) FROM v_total WHERE $d AND kind = 'all'"
    sql "SELECT '$1|peak ns|' || coalesce(sum(peak_active_ns), 0) FROM v_total WHERE $d AND kind = 'all'"
    sql "SELECT '$1|peak reserved|' || coalesce(sum(peak_reserved_bytes), 0) FROM v_total WHERE $d AND kind = 'all'"
    "$MEMPROF" sql --csv out.db "SELECT '$1|start active|' || coalesce(sum(size_bytes), 0) FROM v_event WHERE hook = 'before the history' AND op = 'alloc' AND $d" | tail -n +2
}
# same WHAT SNAPSHOT [LINES TO LEAVE OUT]
same() {
    "$MEMPROF" import -q "$2" -o out.db || fail "$1: import"
    python3 "$ROOT/tests/torch/expect.py" "$2" | grep -v "${3:-^$}" | sort >expected
    cut -d'|' -f1 expected | uniq | sort -u >names
    while read -r name; do facts "$name"; done <names | grep -v "${3:-^$}" | sort >got
    cmp -s expected got || { diff expected got; fail "$1: not what a plain unpickling says"; }
    equal "$1: state" complete "$(sql "SELECT value FROM meta WHERE key = 'state'")"
    equal "$1: unmatched frees and replaced blocks" 0 "$(value "SELECT sum(value) FROM counter WHERE name IN ('unmatched_free', 'replaced_block')")"
    balance >/dev/null
}
for shape in plain devices oom expandable pending annotations pools ring cut old host all empty; do
    leave=
    # what happened after the history was turned off, nobody can know; the oldest form has no history
    [ $shape = cut ] && leave='peak\|start\|^$'
    [ $shape = old ] && leave='start'
    for form in '--protocol 4' '--protocol 2' '--protocol 5' --cpp; do
        # shellcheck disable=SC2086
        $make $shape s.pickle $form
        same "$shape $form" s.pickle "$leave"
    done
done

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
equal 'ranges' '30' "$(value "SELECT count(*) FROM mark WHERE is_range AND end_ns > start_ns AND (name = 'forward' OR name LIKE 'step %')")"
equal 'a range from before' 0 "$(value "SELECT start_ns FROM mark WHERE name = 'before' AND is_range")"
equal 'a range that was not closed' 1 "$(value "SELECT count(*) FROM mark WHERE name = 'unfinished' AND is_range AND end_ns IS NULL")"
equal 'instants' 'epoch 3 snapshot' "$(sql "SELECT group_concat(name, ' ') FROM (SELECT name FROM mark WHERE NOT is_range ORDER BY name)")"
equal 'oom: free bytes and size' "15|$((123 << 20))|$((77 << 20))" "$(sql "SELECT count(*), min(device_free_bytes), min(size_bytes) FROM oom")"
equal 'streams' 'stream 0 stream 94387000' "$(sql "SELECT group_concat(name, ' ') FROM (SELECT name FROM thread ORDER BY name)")"
equal 'pools' '0,1 3,0' "$(sql "SELECT group_concat(pool, ' ') FROM (SELECT DISTINCT pool FROM segment WHERE pool IS NOT NULL ORDER BY pool)")"
equal 'segments with a stream' 0 "$(value "SELECT count(*) FROM segment WHERE stream IS NULL")"
equal 'expandable ones are of cuda:1' 'cuda:1' "$(sql "SELECT group_concat(name) FROM (SELECT DISTINCT name FROM segment JOIN device USING(device_id) WHERE is_expandable)")"
equal 'a setting' 0.8 "$(sql "SELECT value FROM meta WHERE key = 'torch.garbage_collection_threshold'")"
equal 'a nested setting' '{1: 0, 2: 0, 4: 8}' "$(sql "SELECT value FROM meta WHERE key = 'torch.roundup_power2_divisions'")"
equal 'languages' 'native python' "$(sql "SELECT group_concat(language, ' ') FROM (SELECT DISTINCT language FROM frame ORDER BY 1)")"
contains 'unknown keys' /dev/stdin a_new_key <<EOF
$(sql "SELECT value FROM meta WHERE key = 'unknown_keys'")
EOF

# real ones
samples=${TORCH_SNAPSHOTS:-$ROOT/../shared/data/torch-snapshots}
[ -d "$samples" ] || skip "no real snapshots in $samples: the rest was not tested"
for file in "$samples"/*.pickle; do
    same "$(basename "$file")" "$file"
done
