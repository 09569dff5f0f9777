# A program of the simulated driver, in every layer of a device's memory: the collector's model against sums by hand.
export LD_LIBRARY_PATH="$BUILD/cuda/13000:$BUILD/cuda"
export SIM_CUDA_DEVICES=2 SIM_CUDA_BYTES=268435456 SIM_CUDA_CONTEXT_BYTES=16777216 SIM_CUDA_STATE="$PWD/state"
M=1048576
run() { record_ok "$PROGRAMS/cuda_layers" "$1"; }
of() { value "SELECT $3 FROM v_total WHERE device = '$1' AND kind = '$2'"; }
layers() { # device kind alloc free peak-active peak-reserved
    equal "$1 $2 allocations" "$3" "$(of "$1" "$2" alloc_count)"
    equal "$1 $2 frees" "$4" "$(of "$1" "$2" free_count)"
    equal "$1 $2 active" "$(($5 * M))" "$(of "$1" "$2" peak_active_bytes)"
    equal "$1 $2 reserved" "$(($6 * M))" "$(of "$1" "$2" peak_reserved_bytes)"
}

if [ ! -e "$BUILD/cuda/13000/libcuda.so.1" ]; then skip "built without CUDA"; fi

run plain
"$MEMPROF" lines --func do_plain --device cuda:0 >got
contains "2 MiB of managed memory above what is reserved" got "  7.00M     5.00M "
contains "why" got "(more active than reserved: managed memory and that of other processes is not reserved here)"
equal "lines of the host before its heap was asked" 0 \
    "$(value "SELECT count(*) FROM site WHERE device_id = 0 AND reserved_peak_bytes < active_peak_bytes")"
layers cuda:0 device 2 2 8 8
layers cuda:0 managed 1 1 2 0
layers cuda:0 all 3 3 8 8
layers host pinned 1 1 1 1
equal "copies to the device" "2|$((2 * M))" \
    "$(sql "SELECT sum(transfer_count) || '|' || sum(transfer_bytes) FROM v_transfer WHERE direction = 'HtoD'")"
equal "copies to the host" "1|$((M / 2))" \
    "$(sql "SELECT transfer_count || '|' || transfer_bytes FROM v_transfer WHERE direction = 'DtoH'")"
equal "fills" "1|4096" \
    "$(sql "SELECT transfer_count || '|' || transfer_bytes FROM v_transfer WHERE direction = 'fill'")"
for what in HtoD_v2 DtoH_v2 D8_v2; do
    for line in $(grep -n "$what" "$ROOT/tests/programs/cuda_layers.c" | cut -d: -f1); do
        equal "line $line" \
            do_plain "$(sql "SELECT function FROM v_transfer WHERE line = $line AND file LIKE '%cuda_layers.c'")"
    done
done
"$MEMPROF" report --transfers --csv >got
contains "the report of transfers" got "cuda:0,HtoD,1,$M,do_plain,"
contains "the report of transfers" got "cuda:0,DtoH,1,$((M / 2)),do_plain,"
line=$(grep -n 'line of plain' "$ROOT/tests/programs/cuda_layers.c" | cut -d: -f1)
equal "the allocating line" "2|$((8 * M))" \
    "$(sql "SELECT alloc_count || '|' || alloc_bytes FROM v_line
    WHERE device = 'cuda:0' AND kind = 'device' AND line = $line")"

# the frees wait for the stream: 6 MiB are active, 2 allocated, until the host has waited
run pool
layers cuda:0 pool 3 3 6 6
equal "active and allocated apart" 1 \
    "$(value "SELECT count(*) > 0 FROM v_timeline
    WHERE device = 'cuda:0' AND active_bytes = 6 * $M AND allocated_bytes = 2 * $M")"
equal "most allocated" $((6 * M)) "$(value "SELECT max(allocated_max_bytes) FROM timeline WHERE device_id = 1")"
equal "requests" 3 \
    "$("$MEMPROF" sql out.db "SELECT count(*) AS n FROM v_event WHERE op = 'free_requested'" --csv | tail -1)"
equal "at the end" "0|0" \
    "$(sql "SELECT active_last_bytes || '|' || allocated_last_bytes FROM timeline WHERE device_id = 1 AND level = 0
    ORDER BY time_ns DESC LIMIT 1")"

# a handler that leaves a driver's call: what comes later is the program's, further up in the stack as well
run left
layers cuda:0 device 2 2 5 5
equal "maps" "2|$((6 * M))" \
    "$(sql "SELECT sum(alloc_count) || '|' || sum(alloc_bytes) FROM v_line WHERE function = 'below' AND kind = 'map'")"

# what a pool held for a moment between two readings of its attributes, its own highest value tells
run spike
equal "a pool's highest value" $((6 * M)) "$(cat run.out)"
equal "reserved at the peak" "$((6 * M))|$((4 * M))" \
    "$(sql "SELECT peak_reserved_bytes || '|' || peak_active_bytes FROM v_total
    WHERE device = 'cuda:0' AND kind = 'pool'")"

# copies and fills of graphs: at each launch, 3 + 2 + 1 of one form and 1 after an update, and the parent's own fill
# twice
run graph
equal "copies of graphs" "DtoH|7|$((6 * M / 2 + M / 4)) HtoD|7|$((6 * M + 2 * M)) fill|9|$((7 * 4096 + 2 * 100))" \
    "$(sql "SELECT group_concat(x, ' ')
    FROM (SELECT direction || '|' || sum(transfer_count) || '|' || sum(transfer_bytes) AS x FROM v_transfer
    WHERE device = 'cuda:0' GROUP BY direction ORDER BY direction)")"
line=$(grep -n 'line of the node' "$ROOT/tests/programs/cuda_layers.c" | cut -d: -f1)
equal "where the node was made" "capture|7" \
    "$(sql "SELECT function || '|' || sum(transfer_count) FROM v_transfer
    WHERE line = $line AND file LIKE '%cuda_layers.c'")"

# physical memory counts once, whoever imported it and whatever multicast memory is over it; what was imported is
# foreign
run shared
layers cuda:0 vmm 1 1 2 2
layers foreign:0 vmm 1 1 2 0

# external memory and a pointer of another process's pool are freed like the program's own
run foreign
layers foreign:0 device 3 3 3 0
layers cuda:0 pool 1 1 3 4

# what the driver refuses takes nothing away, and is said
run refused
layers cuda:0 device 1 1 1 1
equal "refused" 5 "$(value "SELECT value FROM counter WHERE name = 'device_refused'")"
"$MEMPROF" info >got
contains "refused calls" got "calls to free, unmap or destroy that the driver refused"

# 16 MiB given to a sub-allocator at once are no block at any time
record "$PROGRAMS/cuda_layers" sub
sound
layers cuda:0 sub 3 2 7 0
layers cuda:0 device 0 0 0 16
layers cuda:0 all 3 2 7 16
line=$(grep -n 'line of the pin' "$ROOT/tests/programs/cuda_layers.c" | cut -d: -f1)
equal "what is left" "$line|$((2 * M))" "$(sql "SELECT line || '|' || end_bytes FROM v_leak WHERE device = 'cuda:0'")"
# 2 of 16 MiB are live, behind a hole of 5 and before one of 9; at the peak 7 were
"$MEMPROF" report --segments --csv >got
equal "the segment" "cuda:0|device|activations|$((16 * M))|$((2 * M))|1|$((9 * M))|$((2 * M))|do_sub|$line" \
    "$(tail -1 got | awk -F, '{ print $1 "|" $2 "|" $3 "|" $6 "|" $8 "|" $9 "|" $10 "|" $11 "|" $13 "|" $15 }')"
"$MEMPROF" report --segments --at peak --csv >got
equal "at the peak" "$((7 * M))|3|$((9 * M))" "$(tail -1 got | awk -F, '{ print $8 "|" $9 "|" $10 }')"

# where cuda:0's peak ends, 12 of 16 MiB are live; then cuda:1 gets the same addresses, and leaves them again
record "$PROGRAMS/cuda_layers" reuse
sound
contains "addresses" run.out 'the same address'
"$MEMPROF" report --segments --at peak --csv >got
equal "at each device's peak" "cuda:0|$((16 * M))|$((12 * M))|1 cuda:1|$((16 * M))|$((8 * M))|2" \
    "$(sed 1d got | sort | awk -F, '{ print $1 "|" $6 "|" $8 "|" $9 }' | paste -sd' ')"

# what the driver's pools reserve is no segment
run pool
"$MEMPROF" report --segments --device cuda:0 >got
equal "pools" \
    "What the driver's pools and mappings reserve is known as sums alone and not listed as segments \
(docs/devices.md)." \
    "$(cat got)"
"$MEMPROF" report --segments --device host >got
lacks "no pools" got "the driver's pools"

# two programs, one after the other, that give back 4 of 12 and of 20 MiB: at an instant of the second one the first
# one's are gone; without one each program's are listed as they were at its own end
record_ok sh -c "'$PROGRAMS/cuda_layers' leave; '$PROGRAMS/cuda_layers' 'leave more'"
segments() {
    "$MEMPROF" report --segments --device cuda:0 --csv "$@" |
        awk -F, 'NR == 1 { while ($++i != "size_bytes") if (i > NF) exit 1; next } { print $i / 1048576 }' | sort -n |
        paste -sd' '
}
# whatever the collector wrote meanwhile, on a loaded machine too
equal "segments that begin after their process's end" 0 \
    "$(value "SELECT count(*) FROM segment JOIN process USING(process_id) WHERE alloc_ns > end_ns OR free_ns > end_ns")"
equal "segments at the peak" "4 16" "$(segments --at peak)"
equal "segments when the second one has freed" 16 \
    "$(segments --at "$(value "SELECT max(free_ns) FROM segment WHERE device_id = 1")ns")"
equal "segments of the first one" 8 \
    "$(segments --at "$(value "SELECT min(free_ns) FROM segment WHERE device_id = 1")ns")"
equal "segments of the first one, at its end" 8 \
    "$(segments --at "$(value "SELECT min(end_ns) FROM segment JOIN process USING(process_id) WHERE device_id = 1")ns")"
equal "segments at the end of each" "8 16" "$(segments)"

# more segments of the host than are listed leave those of the device their rows
run many
equal "listed" "heap 65536,device 1" \
    "$(sql "SELECT group_concat(x)
    FROM (SELECT kind || ' ' || count(*) AS x FROM segment GROUP BY device_id, kind ORDER BY device_id)")"
"$MEMPROF" info >got
contains "not listed" got "64  segments that are not listed: each kind of a device lists its first 65,536"

run host
equal "host's blocks" "2|2|1500" \
    "$(sql "SELECT alloc_count || '|' || free_count || '|' || peak_active_bytes FROM v_total
    WHERE device = 'host' AND kind = 'sub'")"
equal "the arena is no block" 0 \
    "$(value "SELECT sum(alloc_count) FROM v_function
    WHERE device = 'host' AND kind = 'heap' AND inclusive = 0 AND function = 'do_host_sub'")"

run oom
set -- $(cat run.out) # asked for, free, total
equal "failures" 2 "$(value "SELECT count(*) FROM oom")"
equal "the device's" "$1|$2|$3|$((40 * M))" \
    "$(sql "SELECT size_bytes || '|' || device_free_bytes || '|' || device_total_bytes || '|' || active_bytes FROM oom
    WHERE device_id = 1")"
equal "the host's" $((1 << 60)) "$(value "SELECT size_bytes FROM oom WHERE device_id = 0")"
equal "frames at a failure" 2 "$(value "SELECT count(*) FROM keyframe WHERE reason = 'oom'")"
"$MEMPROF" report --json >got.json
line=$(grep -n 'line of the failure' "$ROOT/tests/programs/cuda_layers.c" | cut -d: -f1)
contains "failures in the report" got.json \
    "\"size_bytes\": $1, \"active_bytes\": $((40 * M)), \"device_free_bytes\": $2, \"device_total_bytes\": $3,\
 \"device\": \"cuda:0\", \"kind\": \"device\", \"function\": \"do_oom\""
contains "its line" got.json "cuda_layers.c\", \"line\": $line, \"is_handled\": 0, \"is_impossible\": 0}"
equal "tried again" 1 "$(value "SELECT value FROM counter WHERE name = 'alloc_retry_count'")"

# both devices, freed while the other one is current; the driver's own figures while nothing happens: a context, and
# ours. A reading may be older or newer than what is accounted beside it: of a context alone, before ours or after; or
# it is ours, but we are not accounted yet, and no later one says the same again: then the program runs once more.
figures() {
    sql "SELECT group_concat(x)
    FROM (SELECT DISTINCT device_id, (total_bytes / $M) || '|' || (used_bytes / $M) || '|' || (reserved_bytes / $M) AS x
    FROM device_sample WHERE active_bytes > 0 AND used_bytes > 16 * $M ORDER BY device_id)"
}
for attempt in 1 2 3 4 5; do
    run two
    [ "$(figures)" != "256|17|1,256|18|2" ] || break
done
layers cuda:0 device 1 1 1 1
layers cuda:1 device 1 1 2 2
equal "the driver's figures, recording $attempt" "256|17|1,256|18|2" "$(figures)"
"$MEMPROF" report >got
contains "layers" got "1.00 MiB  17.00 MiB    16.00 MiB  239.00 MiB"
"$MEMPROF" info >got
contains "layers" got "2.00 MiB  18.00 MiB    16.00 MiB  238.00 MiB"
equal "devices" \
    "host|,cuda:0|GPU-6d656d70-726f-662d-7369-6d2d67707500,cuda:1|GPU-6d656d70-726f-662d-7369-6d2d67707501" \
    "$(sql "SELECT group_concat(name || '|' || coalesce(uuid, '')) FROM (SELECT * FROM device ORDER BY device_id)")"
